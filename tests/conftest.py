"""Settings of all tests."""

import importlib
import os
import pkgutil
import signal

import pytest
from hypothesis import HealthCheck, settings

import hiddenmanifold

# no clock, since machines are noisy, and no database: what fails, fails again
settings.register_profile(
    "hiddenmanifold",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hiddenmanifold")

# a shell that starts the tests in the background has them, and all they start, ignore a Ctrl-C
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let every second worker begin at the other end, so that no module is compiled by both."""
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Dir) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items):
    """Start with the slow tests, so that no worker is left alone with one in the end.

    Hypothesis tries constants of the modules that are loaded: these are the same in every process
    that runs tests. The one that only hands them out collects none, and need not load them.
    """
    for module in pkgutil.walk_packages(hiddenmanifold.__path__, "hiddenmanifold."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, item.path))


@pytest.fixture(params=["compiled", "numpy"])
def each_engine(request, monkeypatch):
    """Run a test by the compiled kernel, and by NumPy."""
    from hiddenmanifold import compiled

    if request.param == "numpy":
        monkeypatch.setattr(compiled, "_extension", None)
    elif compiled.engine() == "numpy":
        pytest.skip("the kernel is not built")


@pytest.fixture
def by_each_engine(monkeypatch):
    """Ask for answers of the compiled kernel, if it is built, and of NumPy, one after the other."""
    from hiddenmanifold import compiled

    def answers(ask):
        if compiled.engine() == "compiled":
            yield ask()
        with monkeypatch.context() as without:
            without.setattr(compiled, "_extension", None)
            yield ask()

    return answers
