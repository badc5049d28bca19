"""Thread counts, and the guard that holds BLAS to one thread."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import forks
from pairgram import Kernel, Pairgram, RankRLS, RankRLSCV
from parts.support import (
    cached_property,
    machine,
    on_threads,
    single_threaded_blas,
    thread_count,
    threads,
)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_number_of_threads(monkeypatch):
    available = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == available
    for value, expected in (("1", 1), ("1,2", 1), ("99999", available), ("x", available)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert thread_count() == expected
    with threads(np.int64(7)):  # what is asked for counts, whatever the machine has
        assert thread_count() == 7
        with threads(2):
            assert thread_count() == 2
            with threads(5):
                assert thread_count() == 2
        assert thread_count() == 7
        assert thread_count(100) == 1
    assert thread_count() == available


@contextmanager
def open_elsewhere(n):
    """Let another Python thread hold a context of so many threads open."""
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with threads(n):
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(10)
    yield
    leave.set()
    other.join()


def test_contexts_of_several_threads_overlap():
    before = thread_count()
    with threads(50):
        with open_elsewhere(30):
            assert thread_count() == 30
            with pytest.raises(KeyError), threads(20):
                assert thread_count() == 20
                raise KeyError
            assert thread_count() == 30
        assert thread_count() == 50
    assert thread_count() == before


def test_a_context_may_be_left_in_another_thread():
    before, context = thread_count(), threads(7)
    with context, context:
        context.__enter__()
        leaver = threading.Thread(target=context.__exit__)
        leaver.start()
        leaver.join()
        assert thread_count() == 7
    assert thread_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_forgets_the_contexts_of_other_threads():
    with open_elsewhere(1), threads(3):
        child = os.fork()
        if child == 0:
            os._exit(thread_count())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_wrong_numbers_of_threads(n):
    with pytest.raises(ValueError, match="n must be an integer >= 1, the number of threads, got"):
        threads(n)


def test_overlapping_guards_restore_what_was_set_before():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        inside, leave = threading.Event(), threading.Event()

        def hold():
            with single_threaded_blas:
                inside.set()
                leave.wait(10)

        first = threading.Thread(target=hold)
        with single_threaded_blas:
            first.start()
            inside.wait(10)
            assert blas_threads() == {1}
        assert blas_threads() == {1}  # the other still holds it
        leave.set()
        first.join()
        assert blas_threads() == before


def test_the_guard_is_left_after_an_error():
    before = blas_threads()
    with pytest.raises(KeyError), single_threaded_blas:
        raise KeyError
    assert blas_threads() == before


def _fit_in_child(results):
    X = np.random.default_rng(0).normal(size=(2000, 8))
    results.put(on_threads([2], lambda: Pairgram.from_rows(X, X[:, 0]).g)[0])


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_can_fit():
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    _fit_in_child(results)
    expected = results.get(timeout=60)
    child = context.Process(target=_fit_in_child, args=(results,))
    child.start()
    np.testing.assert_array_equal(results.get(timeout=60), expected)
    child.join(60)


def _blas_threads_of_child(results):
    X = np.random.default_rng(0).normal(size=(2000, 8))
    on_threads([2], lambda: Pairgram.from_rows(X, X[:, 0]))
    results.put(blas_threads())


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_under_the_guard_gets_its_threads_back():
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with single_threaded_blas:
            child = context.Process(target=_blas_threads_of_child, args=(results,))
            child.start()
            assert results.get(timeout=60) == before
            child.join(60)


def _exit_code_of_child(X, y, qid, expected):
    """Fork, fit in the child, and return 0 if it found the expected coefficients in time."""
    pid = os.fork()
    if pid == 0:
        gc.disable()  # objects of other tests may end threads, which the child does not have
        signal.alarm(30)  # which ends a child that waits for ever
        same = np.array_equal(RankRLSCV().fit(X, y, qid=qid).coef_, expected)
        os._exit(0 if same else 1)
    return os.waitpid(pid, 0)[1]


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children_forked_while_another_thread_fits(monkeypatch):
    """That thread is not in a call of OpenBLAS, whose lock of its memory stays taken in a child."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(600, 20)), rng.integers(0, 3, 600) * 1.0, np.arange(600) // 30
    expected = RankRLSCV().fit(X, y, qid=qid).coef_
    inside, leave = threading.Event(), threading.Event()
    kind = type(single_threaded_blas)
    enter = kind.__enter__

    def hold(guard):
        enter(guard)
        if threading.current_thread() is worker:
            inside.set()
            leave.wait(60)

    monkeypatch.setattr(kind, "__enter__", hold)
    worker = threading.Thread(target=lambda: RankRLSCV().fit(X, y, qid=qid))
    worker.start()
    assert inside.wait(60)
    try:
        codes = [_exit_code_of_child(X, y, qid, expected) for _ in range(3)]
    finally:
        leave.set()
        worker.join()
    assert codes == [0] * 3


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="forks")
def test_a_fork_waits_for_a_change_of_the_number_of_threads(monkeypatch):
    """A child would find BLAS's lock taken for ever, had it been forked in the middle of that."""
    inside, held = threading.Event(), []
    guard = machine.single_threaded_blas

    def change(library, n_threads):
        inside.set()
        held.append(guard._lock.locked())
        time.sleep(0.1)
        held.append(True)

    monkeypatch.setattr(guard, "_libraries", [SimpleNamespace(num_threads=2)])
    monkeypatch.setattr(machine, "_set_threads", change)
    worker = threading.Thread(target=lambda: guard.__enter__())
    worker.start()
    try:
        assert inside.wait(10)
        guard.before_fork()
        try:
            assert held == [True, True]
        finally:
            guard.after_fork()
    finally:
        worker.join()
        guard.__exit__()


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_eigendecomposition_takes_one_blas_thread(monkeypatch, kernel, n_threads):
    """So that its bits do not depend on the number of threads."""
    seen = []

    def eigh(*arguments, **named):
        seen.append(blas_threads())
        return scipy_eigh(*arguments, **named)

    scipy_eigh = scipy.linalg.eigh
    monkeypatch.setattr(scipy.linalg, "eigh", eigh)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 290)), rng.normal(size=300)
    # A singular system has no Cholesky factor.
    with threadpool_limits(2, user_api="blas"), threads(n_threads):
        RankRLS(0.0, feature_map=kernel and Kernel(kernel)).fit(X, y, qid=np.arange(300) // 10)
    assert seen == [{1}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_context_that_is_open_at_a_fork_is_left_in_the_child():
    code = (
        "import os, signal, sys\n"
        "import numpy\n"
        "from threadpoolctl import threadpool_info, threadpool_limits\n"
        "from pairgram._support.machine import single_threaded_blas\n"
        "threadpool_limits(2, user_api='blas')\n"
        "def count(): return max(i['num_threads'] for i in threadpool_info())\n"
        "before = count()\n"
        "with single_threaded_blas:\n"
        "    child = os.fork()\n"
        "    if child == 0: signal.alarm(20)\n"
        "if child == 0: os._exit(0 if count() == before else 3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    process = forks.start(code)
    process.join()
    assert process.exitcode == 0


class Slow:
    """Has a property whose computation can be held up."""

    def __init__(self, hold_up=None):
        self.hold_up, self.times = hold_up, 0

    @cached_property
    def value(self):
        """The value."""
        self.times += 1
        if self.hold_up is not None:
            self.hold_up()
        return self.times


def test_a_property_is_computed_once():
    one, other = Slow(), Slow()
    assert (one.value, one.value, one.times, other.times) == (1, 1, 1, 0)
    del one.value
    assert (one.value, Slow.value.__doc__) == (2, "The value.")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_a_property_that_a_thread_of_the_parent_computes():
    inside, leave = threading.Event(), threading.Event()

    def hold_up():
        inside.set()
        leave.wait(60)

    worker = threading.Thread(target=lambda: Slow(hold_up).value)
    worker.start()
    assert inside.wait(60)
    try:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # which ends a child that waits for ever
            os._exit(Slow().value)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    finally:
        leave.set()
        worker.join()
