# Needs Python >= 3.11 and make, and a C compiler to be fast; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
TOOLS := $(VENV)/.tools
PIP = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
RELEASE := $(VENV)/.release
LOWEST := .venv-lowest
EXTENSION := src/hiddenmanifold/compiled/_extension*.so src/hiddenmanifold/compiled/_extension*.pyd

.DEFAULT_GOAL := help
.PHONY: ready demo paper explore docs test test-fast check-lowest coverage verify mutants bench check-wheel check-pythons check-workflows sdist wheels bench-page browser lint format clean help

# One thread per process: the workers fill the cores, and timings and sums stay reproducible.
docs test test-fast check-lowest coverage verify bench bench-page: export OMP_NUM_THREADS := 1
docs test test-fast check-lowest coverage verify bench bench-page: export OPENBLAS_NUM_THREADS := 1
docs test test-fast check-lowest coverage verify bench bench-page: export MKL_NUM_THREADS := 1
# Tests start many processes, each of which would compile every module again: containers often forbid to keep them.
test test-fast check-lowest coverage: export PYTHONDONTWRITEBYTECODE :=

demo: $(RUNTIME) ## Quick Figures 1 and 2 of the paper, and its claims checked
	@$(BIN)/hiddenmanifold demo --directory demo

paper: $(RUNTIME) ## Every figure at the paper's sizes, and the report
	$(BIN)/hiddenmanifold figure all --full --directory paper
	$(BIN)/hiddenmanifold claims --report paper

docs: $(STAMP) ## Build the site, gallery and all: docs/_build/html/index.html
	$(BIN)/python -m sphinx -W --keep-going -n -q -d docs/_build/doctrees docs docs/_build/html
	@echo "the site: docs/_build/html/index.html"

explore: $(STAMP) ## Open the page on which curves follow sliders
	$(BIN)/hiddenmanifold explore

test: ready ## Run every test on all cores, those of style and types among them
	$(BIN)/python -m pytest -n auto

test-fast: $(STAMP) ## Run the quick tests, three of four, in less than a minute
	$(BIN)/python -m pytest -n auto -m "not slow"

# Old libraries among newer ones warn of their own age, which is no defect of this package. The second
# run has the tests of the command line and of the extras, which the fast ones leave out.
AGED := -W default::DeprecationWarning -W default::FutureWarning
check-lowest: browser ## The same and those of the extras, with the lowest versions allowed
	$$(sed -n 's/^requires-python = ">=\(.*\)"/python\1/p' pyproject.toml) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tests/lowest.py >$(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --requirement $(LOWEST)/requirements.txt --editable '.[dev]'
	$(LOWEST)/bin/python -m pytest -n auto -m "not slow" $(AGED)
	$(LOWEST)/bin/python -m pytest -n auto $(AGED) tests/cli tests/data tests/explorer tests/storage \
	    tests/test_chunked.py tests/parallel/test_cluster.py

# Every interpreter that is found, of the versions that are supported.
PYTHONS = $(foreach v,3.11 3.12 3.13 3.14,$(shell python$(v) -c 'import sys; print(sys.executable)' 2>/dev/null))
check-wheel: $(RELEASE) ## Build wheel and sdist, and try them in clean environments, without a compiler too
	$(BIN)/python tests/check_wheel.py $(PYTHONS)

check-workflows: $(RELEASE) ## Check the workflows of continuous integration, without a network
	$(BIN)/zizmor --offline --pedantic .github/workflows
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

sdist: $(RELEASE) ## The source distribution, in dist
	$(BIN)/python -m build --sdist --outdir dist

wheels: $(RELEASE) ## The wheel of this platform for every Python, in dist
	$(BIN)/python -m cibuildwheel --output-dir dist

check-pythons: ## The quick tests by every supported Python that is found
	@for python in $(PYTHONS); do \
	    $(MAKE) PYTHON=$$python VENV=.venv-$$(basename $$python) test-fast || exit 1; done

verify bench bench-page: export PYTHONPATH := tests
verify: $(STAMP) ## Whole tables of the tests and large searches: corners of double precision, linear programmes, any labels, kernels, sample sizes, pairs
	HIDDENMANIFOLD_WHOLE_TABLES=1 $(BIN)/python -m pytest -n auto $$(grep -l 'from seeds import' tests/*.py tests/*/*.py)
	$(BIN)/python benchmarks/corners.py
	$(BIN)/python benchmarks/linear_programmes.py
	$(BIN)/python benchmarks/any_labels.py
	$(BIN)/python benchmarks/kernel_machines.py
	$(BIN)/python benchmarks/sample_sizes.py
	$(BIN)/python benchmarks/pairs_of_fits.py
	$(BIN)/python benchmarks/training_time.py
	$(BIN)/python benchmarks/training_agreement.py
	$(BIN)/python benchmarks/training_of_rows.py
	$(BIN)/python benchmarks/several_classes.py

mutants: $(STAMP) ## Change a hundred tokens of the sources, one by one: do the tests notice?
	$(BIN)/python benchmarks/mutants.py

coverage: $(TOOLS) browser ## Which lines and branches of the sources the tests run
	$(BIN)/python -m pytest -n auto --cov --cov-report=term-missing:skip-covered

bench: $(TOOLS) browser ## Measure speed and accuracy
	$(BIN)/python benchmarks/run.py

bench-page: $(TOOLS) browser ## The same, written into docs/benchmarks.md
	@bash -o pipefail -c '$(BIN)/python benchmarks/run.py | $(BIN)/python benchmarks/page.py'

# At the same time, because both wait for the network.
ready:
	@$(MAKE) --no-print-directory -j2 $(STAMP) browser

# The page is tested in a real browser: one that is there, or Debian's where it may be installed.
browser: ## Find a Chromium for the tests of the page, or install one
	@for name in "$$CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
	    command -v "$$name" >/dev/null && exit 0; done; \
	{ command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	        && echo "no Chromium found: installing Debian's package chromium for the tests of the page" \
	        && { apt-get install -qq -y --no-install-recommends chromium || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1; } \
	    || echo "no Chromium found, and the tests of the page need one: install Debian's package" \
	        "chromium, or set CHROMIUM to the path of one" >&2

lint: $(STAMP) ## Check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/windows

format: $(STAMP) ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment and everything built
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	rm -rf src/*.egg-info $(EXTENSION)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Two sizes of the environment: what the figures need, and what the tests and the site need as well.
# Python compiles a module when it is first imported; to compile all at once takes half of the installation,
# and the pip that comes with Python 3.11 chooses versions in three times the time of a new one.
$(RUNTIME): EXTRAS := plot
$(STAMP): EXTRAS := dev
$(RUNTIME) $(STAMP): pyproject.toml setup.py $(wildcard src/hiddenmanifold/compiled/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: hiddenmanifold needs Python >= 3.11, and '$(PYTHON)' is not one;" \
	        "name another, for example: make PYTHON=python3.12 test" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@rm -f $(EXTENSION)
	$(PIP) --upgrade pip
	$(PIP) --editable '.[$(EXTRAS)]'
	@$(BIN)/python -c 'import hiddenmanifold.compiled'
	@touch $(RUNTIME) $@

$(TOOLS): $(STAMP)
	$(PIP) --editable '.[tools]'
	@touch $@

$(RELEASE): $(RUNTIME)
	$(PIP) --editable '.[release]'
	@touch $@
