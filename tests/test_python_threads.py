"""Python threads beside compiled code: what runs at the same time, and what is refused."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from pairgram import (
    Kernel,
    Nystroem,
    Pairgram,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    _core,
    evaluate,
    make_ranking,
)
from problems import OfScores

N = 2_000_000
rng = np.random.default_rng(0)


@cache
def problem(n=N, pairs="dropped", n_queries=20):
    offsets = np.linspace(0, n, n_queries + 1).astype(np.int64)
    return _core.RankingProblem(
        rng.normal(size=n), offsets, order=rng.permutation(n), pairs=pairs, weighting="pairs"
    )


def ticks_during(work):
    """How often a thread that does next to nothing comes to its turn while `work` runs."""
    times, done = [], threading.Event()

    def tick():
        while not done.is_set():
            times.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        time.sleep(0.01)
        begin = time.perf_counter()
        work()
        end = time.perf_counter()
    finally:
        done.set()
        ticker.join()
    return sum(begin < moment < end for moment in times)


@pytest.mark.parametrize(
    "work",
    [
        _core.pair_weight,
        _core.laplacian_diagonal,
        _core.laplacian_pivots,
        _core.PairOperator,
    ],
    ids=lambda work: work.__name__,
)
def test_other_threads_run_beside(work):
    bound = problem()
    # Other programs may keep the processors busy; a thread that waits for the GIL has one turn.
    assert any(ticks_during(lambda: work(bound)) >= 3 for _ in range(5))


def test_other_threads_run_beside_the_checks():
    labels, order = rng.normal(size=N), rng.permutation(N)
    arguments = labels, np.array([0, N])

    def work():
        for _ in range(3):
            _core.RankingProblem(*arguments, order=order, pairs="dropped", weighting="pairs")

    assert any(ticks_during(work) >= 3 for _ in range(5))


def test_one_problem_serves_many_threads():
    bound = problem(40_000)
    expected = _core.laplacian_diagonal(bound)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: _core.laplacian_diagonal(bound), range(64)))
    for diagonal in found:
        np.testing.assert_array_equal(diagonal, expected)


def test_a_problem_keeps_its_arrays_alive():
    bound = problem(1000)  # of arrays that nobody else keeps
    expected = _core.laplacian_diagonal(bound)
    filler = [np.full(1000, -7) for _ in range(200)]  # where freed arrays would be
    assert len(filler) == 200
    np.testing.assert_array_equal(_core.laplacian_diagonal(bound), expected)


def together(n_threads, work):
    """Run work(number) in threads that begin at once; return what they return or raise."""
    barrier = threading.Barrier(n_threads)

    def run(number):
        barrier.wait()
        try:
            return work(number)
        except RuntimeError as error:
            return error

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, range(n_threads)))


def test_a_loss_has_one_user_at_a_time():
    """A call beside another is refused; those that are taken return what they return alone."""
    bound = problem(200_000, n_queries=50)
    scores = rng.normal(size=(6, 200_000))
    alone = [OfScores(_core.PairOperator(bound)).set_scores(s) for s in scores]
    shared = OfScores(_core.PairOperator(bound)).loss(200_000, 1)
    n_refused = 0
    for _ in range(5):
        for found, expected in zip(
            together(6, lambda i: shared.at(scores[i], scores[i], 0.0)), alone, strict=True
        ):
            if isinstance(found, RuntimeError):
                assert "another thread is using this object" in str(found)
                n_refused += 1
            else:
                assert found[0] == expected[0]
                np.testing.assert_array_equal(found[3], expected[1])
        if n_refused:
            break
    assert n_refused > 0
    loss, _, _, gradient = shared.at(scores[0], scores[0], 0.0)  # refused calls leave it free
    assert loss == alone[0][0]
    np.testing.assert_array_equal(gradient, alone[0][1])


def test_a_parser_has_one_user_at_a_time():
    text = b"".join(b"%d qid:%d 1:0.5 2:%d\n" % (i % 3, i // 9, i) for i in range(60_000))
    options = {"name": "f", "n_features": -1, "zero_based": False, "keep_comments": False}
    n_refused = 0
    for _ in range(5):
        parser = _core.LetorParser64(**options, piece_size=1 << 16, n_threads=1)
        found = together(6, lambda _, parser=parser: parser.feed(text) or parser.n_rows)
        n_refused += sum(isinstance(one, RuntimeError) for one in found)
        parser.finish()
        assert parser.n_rows % 60_000 == 0  # whole calls, or none
        assert parser.n_rows > 0
    assert n_refused > 0


def test_estimators_fit_in_threads():
    """One data set, many threads, each with an estimator of its own."""
    X, y, qid = make_ranking(60, 20, n_features=6, random_state=0)
    expected = RankRLS(pairs="without_ties").fit(X, y, qid=qid).coef_
    with ThreadPoolExecutor(4) as pool:
        fits = pool.map(lambda _: RankRLS(pairs="without_ties").fit(X, y, qid=qid).coef_, range(40))
        for coef in fits:
            np.testing.assert_array_equal(coef, expected)


def shared_works():
    """Calls by a name, each on what all threads share; they are too small to give up the GIL."""
    X, y, qid = make_ranking(12, 8, n_features=5, random_state=1)
    models = {
        "linear": RankRLS(),
        "nodes": RankRLS(feature_map=RandomNodes(20, random_state=0)),
        "nystroem": RankRLS(feature_map=Nystroem(n_components=20, random_state=0)),
        "kernel": RankRLS(feature_map=Kernel("rbf")),
        "svm": RankSVM(),
        "search": RankRLSCV(),
    }
    for name, model in models.items():
        fitted = clone(model).fit(X, y, qid=qid)
        yield f"predict {name}", lambda fitted=fitted: fitted.predict(X)
        yield f"fit {name}", lambda m=model: clone(m).fit(X, y, qid=qid).predict(X[:8])
    statistics = Pairgram.from_rows(X, y, qid=qid)
    yield "statistics", lambda: statistics.solve(1.0)
    for metric in ("ndcg@5", "kendall", "map"):
        yield metric, lambda m=metric: evaluate(m, y > 0, X[:, 0], qid, per_query=True)[m]


@pytest.mark.parametrize("work", [pytest.param(work, id=name) for name, work in shared_works()])
def test_small_calls_share_what_they_read(work):
    alone = work()
    for found in together(8, lambda _: [work() for _ in range(5)]):
        assert not isinstance(found, RuntimeError), found
        for again in found:
            np.testing.assert_array_equal(again, alone)
