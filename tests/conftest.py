"""Property tests have the same examples wherever they run, and no clock: machines are noisy."""

import signal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

settings.register_profile(
    "hiddenmanifold",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hiddenmanifold")

# Hypothesis mixes in constants of whichever sources are loaded by then, so that its examples would
# change with the order of the tests, with their spread over processes, and with every edit
providers._get_local_constants = lambda: providers._local_constants

# a shell that starts the tests in the background has them, and all they start, ignore a Ctrl-C
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# folders that go all the way
SLOW = {"agreement", "cli", "data", "explorer", "figures", "paper", "storage"}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name in SLOW:
            item.add_marker("slow")


@pytest.fixture(params=["compiled", "numpy"])
def each_engine(request, monkeypatch):
    """Run a test by the compiled kernel, and by NumPy."""
    from hiddenmanifold import compiled

    if request.param == "numpy":
        monkeypatch.setattr(compiled, "_extension", None)
    elif compiled.engine() == "numpy":
        pytest.skip("the kernel is not built")
