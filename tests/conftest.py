"""What the tests share."""

import gc
import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings
from threadpoolctl import threadpool_limits

from pairgram._support import limits

# How long an example takes says more about the machine than about the code. The examples are the
# same in every run. --hypothesis-profile=long gives each test others at every run, and many times
# as many as it asks for.
settings.register_profile("pairgram", max_examples=30, deadline=None, derandomize=True)
settings.register_profile(
    "long", max_examples=30, deadline=None, derandomize=False, print_blob=True
)
settings.load_profile("pairgram")
LONGER = 33
# What starts the tests may set it, and tables in pipes would then be as narrow.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items):
    """Adapt property tests: to the labels that hypothesis draws, and to the long profile."""
    properties = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
    for item in properties:
        # Few drawn labels are often equal, or all relevant.
        item.add_marker(pytest.mark.filterwarnings("ignore:no query has two rows"))
        item.add_marker(pytest.mark.filterwarnings("ignore:.*every label is at least relevant"))
    if settings.get_current_profile_name() != "long":
        return
    for test in {item.obj for item in properties}:  # they get more examples where they say a number
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(
            own, deadline=None, derandomize=False, max_examples=LONGER * own.max_examples
        )


def pytest_collection_finish():
    """Let collections of garbage, and forks, pass over all that the tests have imported."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let the tests of a file stay together, so that few of their fixtures are made twice."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    """Keep the settings of a property test as they are.

    Hypothesis lays others over them for each of its parameters, and more than some 900 layers, as
    the tests of roads have, are too deep for Python.
    """
    function = getattr(item, "obj", None)
    before = getattr(function, "_hypothesis_internal_use_settings", None)
    try:
        return (yield)
    finally:
        if before is not None:
            function._hypothesis_internal_use_settings = before


# MLflow would report its use to its makers.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

# Tests that run side by side share the processors. Threads of BLAS that wait for each other's
# processor would take ten times as long.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    import scipy.linalg  # noqa: F401  the limit holds for what is loaded

    each = max(1, (os.cpu_count() or 1) // int(workers))
    threadpool_limits(each, user_api="blas")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(each))  # of the processes that tests start

# The thread sanitizer is to see more threads than a machine may have processors.
if cpus := os.environ.get("PAIRGRAM_TEST_CPUS"):
    os.sched_getaffinity = lambda pid: set(range(int(cpus)))


@pytest.fixture(scope="session")
def benchmark_data():
    """Return the folder of the benchmark data, or skip the test."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PAIRGRAM_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}: set PAIRGRAM_DATA")
    return folder


@pytest.fixture
def routing():
    """Switch scikit-learn's metadata routing on for one test."""
    from sklearn import config_context  # what distributes tests among processes does without it

    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="session")
def limits_of():
    """Return what changes limits within a with statement."""
    return limits.limits_of


@pytest.fixture
def set_limits(limits_of):
    """Return a function that changes limits until the test ends."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(limits_of(**changes))


@pytest.fixture
def free_memory(set_limits):
    """Return a function that sets the bytes that are free, also for what is too small to ask."""
    set_limits(unasked_bytes=0)
    return lambda n_bytes: set_limits(available_memory=n_bytes)


class Stop(BaseException):
    """What the signal handler raises: like KeyboardInterrupt, not an error."""


@pytest.fixture
def alarm(monkeypatch):
    """Raise `Stop` in the main thread, a while after `start` is called."""

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)

    class Alarm:
        Stop = Stop

        def start(self, seconds=0.1):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            self.due = time.perf_counter() + seconds

        def lateness(self):
            return time.perf_counter() - self.due

    alarm, report = Alarm(), sys.unraisablehook

    def try_again(unraisable):
        """Start anew if the alarm struck where Python drops exceptions, as in callbacks of gc."""
        if unraisable.exc_type is Stop:
            alarm.start()
        else:
            report(unraisable)

    monkeypatch.setattr(sys, "unraisablehook", try_again)
    yield alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def iterate(set_limits):
    """Solve sparse rows and products of any shape by conjugate gradients."""
    from problems import BY_STEPS

    set_limits(**BY_STEPS)
