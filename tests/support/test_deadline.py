"""Compiled code ends once the time of its thread is over."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse

from pairgram import Kernel, RankRLSCV, _core, kernel_matrix, make_ranking, time_limit
from parts.support import deadline as deadline_of_thread, on_threads, until


@pytest.fixture
def deadline():
    """Set a deadline for this thread, until the test ends."""
    yield _core.set_deadline
    _core.set_deadline(None)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_long_fit_ends_with_an_error(deadline, n_threads):
    few, y, qid = make_ranking(500, 40, 4, random_state=0)
    X = np.tile(few, 100) + np.arange(400)
    deadline(0.2)
    began = time.perf_counter()
    with pytest.raises(TimeoutError, match="time for this computation is over"):
        on_threads([n_threads], lambda: RankRLSCV(cv=50).fit(X, y, qid=qid))
    assert time.perf_counter() - began < 2.0


def test_short_calls_keep_to_it_too(deadline):
    X = np.ones((10, 3))
    deadline(0.05)
    with pytest.raises(TimeoutError):
        while True:
            _core.score_rows(X, np.ones(3))
    deadline(None)
    _core.score_rows(X, np.ones(3))


def test_other_threads_go_on(deadline):
    found = []
    deadline(0.0)
    thread = threading.Thread(
        target=lambda: found.append(_core.score_rows(np.ones((4, 2)), np.ones(2)))
    )
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], 2.0)


def test_what_cannot_be_interrupted_asks_before():
    clock = deadline_of_thread()
    clock.require(1e9)
    with until(time.perf_counter() + 100.0, slowness=10.0):
        deadline_of_thread().require(5.0)
        with pytest.raises(TimeoutError):
            deadline_of_thread().require(11.0)
        with until(0.0), pytest.raises(TimeoutError):
            deadline_of_thread().require()
        deadline_of_thread().require()
        _core.score_rows(np.ones((10, 3)), np.ones(3))
    assert deadline_of_thread() is clock


def test_what_python_computes_keeps_to_it_too(set_limits):
    """The minmax kernel of sparse rows is NumPy's work, in threads of its own."""
    set_limits(tile=16)
    X = scipy.sparse.random_array((64, 5), density=0.5, format="csr", random_state=0)
    for n_threads in (1, 2):
        with until(0.0), pytest.raises(TimeoutError, match="time for this computation"):
            on_threads([n_threads], lambda: kernel_matrix(X, kernel="minmax"))
    X, y, _ = make_ranking(1, 40, 3, random_state=0)
    with until(0.0), pytest.raises(TimeoutError):  # eigenvectors, and rows that are held out
        RankRLSCV(feature_map=Kernel("rbf")).fit(X, y)


def test_a_fit_beyond_its_time_limit_leaves_the_model_as_it_was():
    X, y, _ = make_ranking(1, 40, 3, random_state=0)
    model = RankRLSCV(feature_map=Kernel("rbf")).fit(X, y)
    before = dict(vars(model))
    with time_limit(0), pytest.raises(TimeoutError):
        model.fit(X, y)
    assert vars(model) == before
    with time_limit(1e6):
        assert (model.fit(X, y).coef_ == before["coef_"]).all()
    for seconds in (-1, True, "1", np.nan):
        with pytest.raises(ValueError, match="seconds must be a number >= 0"), time_limit(seconds):
            pass
