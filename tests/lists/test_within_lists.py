"""Columns within lists: against slow references, and tools that hand rankers the columns."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import rankdata

import pairgram as pg
from axes import every
from pairgram import _core

KINDS = ("rank", "raw+rank", "standard", "runs")


def of_one_list(kind, x):
    """The columns of one list and one input, by the definition."""
    n, x = len(x), x.astype(np.longdouble)
    if kind == "rank":
        below = np.array([(x < value).sum() + ((x == value).sum() - 1) / 2 for value in x])
        return [below / (n - 1) if n > 1 else np.full(1, 0.5)]
    if kind == "raw+rank":
        return [x, *of_one_list("rank", x)]
    if kind == "standard":
        x = x - x[0]  # which loses nothing here
        return [(x - x.mean()) / x.std() if np.ptp(x) > 0 else np.zeros(n)]
    scaled, reciprocal, there = np.zeros(n), np.zeros(n), ~np.isnan(x)
    known = x[there]
    if len(known):
        spread = np.ptp(known)
        scaled[there] = (known - known.min()) / spread if spread > 0 else 1.0
        reciprocal[there] = 60 / (60 + rankdata(-known))
    return [scaled, reciprocal]


def reference(kind, X, query):
    """The columns of rows, (n_rows, n_columns): those of one sort stand together."""
    halves = 2 if kind in ("raw+rank", "runs") else 1
    out = np.empty((halves, *X.shape))
    for name in np.unique(query):
        rows = query == name
        for j in range(X.shape[1]):
            out[:, rows, j] = of_one_list(kind, X[rows, j])
    return np.hstack(list(out))


@st.composite
def rows_in_lists(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.choice([1, 2, 3, 7, 40], size=draw(st.integers(1, 6)))
    query = rng.permutation(np.repeat(rng.permutation(len(sizes)), sizes))
    X = rng.normal(size=(len(query), draw(st.integers(1, 20))))
    if draw(st.booleans()):
        X = np.round(2 * X)
    X[:, 0] = draw(st.sampled_from([0.0, 1e9])) + rng.integers(0, 2, len(X))
    return X.astype(draw(st.sampled_from([np.float64, np.float32]))), query


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=rows_in_lists(), n_threads=st.integers(1, 3), seed=st.integers(0, 99))
def test_columns_follow_their_definition(kind, drawn, n_threads, seed):
    X, query = drawn
    if kind == "runs":
        X = np.where(np.random.default_rng(seed).random(X.shape) < 0.3, np.nan, X).astype(X.dtype)
    with pg.threads(n_threads):
        found = pg.within_lists(X, query, kind)
    assert found.dtype == X.dtype
    wanted = reference(kind, X.astype(np.float64), query)
    close = 1e-12 if X.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=close, atol=close)


@pytest.mark.parametrize("n", [2, 100, 3000])
def test_values_that_differ_in_their_last_bits(n):
    rng = np.random.default_rng(0)
    x = 1.0 + 2.0**-52 * rng.permutation(n)
    x[rng.integers(0, n, n // 10)] = 1.0
    out = pg.within_lists(x[:, None], None, "rank")
    np.testing.assert_array_equal(out[:, 0], (rankdata(x) - 1) / (n - 1))


@every(n=[7, 8, 9, 16, 17, 100, 128, 129, 1024, 2048])
def test_lists_of_any_length_are_sorted(n):
    x = np.random.default_rng(n).permutation(np.arange(n) - n // 2).astype(float)
    out = _core.list_columns("rank", False, x[:, None].copy(), np.array([0, n]), None, 1)
    np.testing.assert_array_equal(out[:, 0], (rankdata(x) - 1) / (n - 1))


def test_zeros_of_both_signs_tie():
    out = pg.within_lists([[0.0], [-0.0], [1.0], [-1.0]], None, "rank")
    np.testing.assert_allclose(out[:, 0], [0.5, 0.5, 1.0, 0.0])


def test_frames_and_sparse_rows():
    X, _, qid = pg.make_ranking(9, (1, 9), 3, random_state=0)
    wanted = pg.within_lists(X, qid)
    polars, sparse = pytest.importorskip("polars"), pytest.importorskip("scipy.sparse")
    np.testing.assert_array_equal(pg.within_lists(polars.DataFrame(X), qid), wanted)
    np.testing.assert_array_equal(pg.within_lists(sparse.csr_array(X), qid), wanted)


def test_a_ranker_learns_what_only_lists_tell():
    X, y, qid = pg.make_ranking(200, (5, 12), 3, random_state=0)
    X += 100 * np.random.default_rng(0).normal(size=(200, 3))[qid]  # units differ between queries
    train = qid < 100
    raw = pg.RankRLSCV(feature_map=pg.RandomNodes(50, random_state=0))
    raw.fit(X[train], y[train], qid=qid[train])
    H = pg.within_lists(X, qid, "rank")
    own = pg.RankRLSCV(feature_map=pg.RandomNodes(50, random_state=0))
    own.fit(H[train], y[train], qid=qid[train])
    rest = ~train
    assert own.score(H[rest], y[rest], qid=qid[rest]) > raw.score(X[rest], y[rest], qid=qid[rest])
