"""Ctrl-C, and any other signal handler that raises, stops compiled code within a second."""

import signal
import threading
import time

import numpy as np
import pytest

from pairgram import (
    Kernel,
    Pairgram,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    _core,
    evaluate,
    fit_many,
)
from parts.solvers import BandForm
from parts.support import thread_count, threads

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="needs the main thread"
    ),
]

rng = np.random.default_rng(0)


# Work stops so many seconds after it is told at the latest, on a machine that is kept busy.
SOON = 3.0


def _rows(n, d, per_query=100):
    few = rng.standard_normal((1000, d))  # drawing all takes longer than the work
    return np.resize(few, (n, d)), rng.random(n), np.arange(n) // per_query


def gram_of_nodes():
    X, y, qid = _rows(40_000, 20)
    nodes = RandomNodes(1500, activation="sigmoid", random_state=0)
    return lambda: RankRLS(feature_map=nodes).fit(X, y, qid=qid)


def gram_of_one_call(n_times=9):
    """A small matrix, of which a task sums an eighth of all rows."""
    X, y, qid = _rows(100_000, 250)
    return lambda: [Pairgram.from_rows(X, y, qid=qid) for _ in range(n_times)]


def hold_out():
    X, y, qid = _rows(40_000, 250)
    return lambda: RankRLSCV().fit(X, y, qid=qid)


def factorise():
    """A single call that would take nine seconds of one thread, were it not stopped."""
    few = np.eye(1500)
    began = time.perf_counter()
    _core.cholesky(few, 1)
    order = int(1500 * min(8.0, (9.0 / (time.perf_counter() - began)) ** (1 / 3)))
    matrix = np.zeros((order, order))
    np.fill_diagonal(matrix, 2.0)
    return lambda: _core.cholesky(matrix, thread_count())


def kernel_path():
    X, y, qid = _rows(4000, 10, 40)
    search = RankRLSCV([1.0, 0.1], feature_map=Kernel("rbf"))
    few = X[:40], y[:40], qid[:40]
    return lambda: [search.fit(X, y, qid=qid, validation=few) for _ in range(9)]


def hold_out_of_a_kernel():
    n = 1500
    form = BandForm(np.diag(rng.random(n)))
    folds, none = np.split(np.arange(n), 50), np.zeros(51, np.int64)
    alphas, target, points = np.linspace(9, 1, 1500), rng.random(n), np.empty((0, n))
    return lambda: form.hold_out(alphas, target, folds, points, none)


def transform():
    X, _, _ = _rows(100_000, 50)
    made = RandomFourier(1000, random_state=0).fit(X[:10])
    return lambda: [made.transform(X) for _ in range(9)]


def metrics():
    y, scores = rng.integers(0, 4, 10**6) * 1.0, rng.random((10, 10**6))
    qid = np.arange(10**6) // 100
    return lambda: [evaluate(["ndcg@10", "map", "kendall"], y, s, qid) for s in scores]


def many_fits():
    X, y, _ = _rows(400_000, 20)
    user = np.arange(len(y)) // 100
    return lambda: [fit_many(RankRLS(), X, y, by=user) for _ in range(9)]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        gram_of_nodes,
        gram_of_one_call,
        hold_out,
        factorise,
        kernel_path,
        hold_out_of_a_kernel,
        transform,
        metrics,
        many_fits,
    ],
)
def test_work_is_stopped(alarm, make, n_threads):
    work, n_before = make(), threading.active_count()
    lateness = np.inf
    for _ in range(5):  # other programs may keep the processors busy
        if lateness >= SOON:
            alarm.start()
            with threads(n_threads), pytest.raises(alarm.Stop):
                while alarm.lateness() < 5.0:  # a fast machine does it several times
                    work()
            lateness = alarm.lateness()
    assert lateness < SOON
    assert threading.active_count() == n_before
    X, y, qid = _rows(60, 3, 10)
    assert np.isfinite(RankRLSCV().fit(X, y, qid=qid).coef_).all()


def test_a_stopped_fit_leaves_the_estimator_as_it_was(alarm):
    X, y, qid = _rows(60, 20, 10)
    model = RankRLS(feature_map=RandomNodes(1500, activation="sigmoid", random_state=0))
    expected = model.fit(X, y, qid=qid).predict(X)
    long = _rows(40_000, 20)
    alarm.start()
    with pytest.raises(alarm.Stop):
        model.fit(long[0], long[1], qid=long[2])
    np.testing.assert_array_equal(model.predict(X), expected)


def test_a_stopped_update_leaves_the_statistics_as_they_were(alarm):
    X, y, qid = _rows(60, 20, 10)
    nodes = RandomNodes(1500, activation="sigmoid", random_state=0).fit(X)
    total = Pairgram.from_rows(X, y, qid=qid, feature_map=nodes)
    before = total.G.copy()
    long = _rows(40_000, 20)
    alarm.start()
    with pytest.raises(alarm.Stop):
        total.update(long[0], long[1], qid=long[2] + 100)
    np.testing.assert_array_equal(total.G, before)


def test_other_threads_do_not_look_for_signals(alarm):
    """Python runs handlers in the main thread alone; the work of others goes on."""
    work, done = gram_of_one_call(3), threading.Event()
    worker = threading.Thread(target=lambda: (work(), done.set()))
    worker.start()
    alarm.start()
    with pytest.raises(alarm.Stop):
        done.wait()
    assert alarm.lateness() < SOON
    assert done.wait(60)
    worker.join()


def test_an_alarm_that_a_callback_drops_comes_again(alarm):
    begun = threading.Event()

    class Dropped:
        def __del__(self):
            begun.set()
            while alarm.lateness() < 0.1:
                pass

    alarm.start()
    with pytest.raises(alarm.Stop):
        Dropped()  # which drops the exception of the first alarm
        while alarm.lateness() < 5.0:
            pass
    assert begun.is_set()
