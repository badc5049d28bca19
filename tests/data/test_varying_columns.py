"""In how many queries features vary, and what a subtraction leaves of them."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

import forms
import pairgram as pg
import reference
from axes import every
from pairgram import Pairgram, RankRLS, _core
from parts.solvers import svm_training as training
from problems import BY_STEPS, compiled, problems

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", "apart", None]


def expected_counts(problem, pairs):
    """By loops over all pairs of rows: the queries in which a pair that has weight differs."""
    n, d = problem.X.shape
    v = np.ones(n) if problem.v is None else problem.v
    counts = np.zeros(d + 1, dtype=int)
    for query in np.unique(problem.query):
        rows = [i for i in np.flatnonzero(problem.query == query) if v[i] > 0]
        if problem.query_weight is not None and not problem.query_weight[rows].all():
            continue
        if pairs is None:
            varies = [any(problem.X[i, j] != 0 for i in rows) for j in range(d)]
        else:
            omega = reference.OMEGAS[pairs]
            if not any(omega(problem.y[i], problem.y[k]) > 0 for i in rows for k in rows):
                continue
            varies = [len({problem.X[i, j] for i in rows}) > 1 for j in range(d)]
        counts += [*varies, any(varies)]
    return counts


def coarse(problem):
    """Few values, so that features are often constant within a query, or 0."""
    problem.X = np.round(problem.X) + 0.0
    return problem


@given(problems(), st.sampled_from(PAIRS), st.sampled_from([1, 2, 3]))
def test_compiled_counts(problem, pairs, threads):
    problem = coarse(problem)
    expected = expected_counts(problem, pairs)
    for dtype in (np.float64, np.float32):
        arguments = compiled(problem, pairs, dtype=dtype)
        for block_rows in (0, 2, 5):
            counts = np.zeros(problem.X.shape[1] + 1, np.int64)
            _core.gram(*arguments, block_rows=block_rows, varying=counts, n_threads=threads)
            assert counts.tolist() == expected.tolist()


@given(problems(), st.sampled_from([*PAIRS[:4], None]))
def test_dense_and_sparse_rows_have_the_same_counts(limits_of, problem, pairs):
    problem = coarse(problem)
    expected = expected_counts(problem, pairs)[:-1].tolist()
    unsorted = sp.csr_array(problem.X)[:, ::-1][:, ::-1]
    halves = sp.csr_array(
        (np.repeat(unsorted.data / 2, 2), np.repeat(unsorted.indices, 2), 2 * unsorted.indptr),
        shape=unsorted.shape,
    )
    listed = (problem.X != 0) | (np.arange(problem.X.size).reshape(problem.X.shape) % 3 == 0)
    row, column = np.nonzero(listed)  # and so some of the zeros
    zeros = sp.csr_array((problem.X[listed], (row, column)), shape=problem.X.shape)
    longer = sp.csr_array(problem.X)
    longer.indices, longer.indptr = longer.indices.astype(np.int64), longer.indptr.astype(np.int64)
    named = problem.named | {"pairs": pairs}
    for share in (0.15, 2.0):  # 2: by sparse products, whatever the density
        with limits_of(dense_share=share):
            for X in (problem.X, problem.X.astype(np.float32), unsorted, halves, zeros, longer):
                total = Pairgram.from_rows(X, problem.y, **named)
                assert total.n_varying.tolist() == expected


def test_counts_add_up_and_are_taken_away_again(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 8)).astype(float)
    X[:, 1], X[12:, 2] = 3.0, -1.0
    y, qid = rng.normal(size=60), np.arange(60) // 4
    whole = Pairgram.from_rows(X, y, qid=qid)
    parts = [Pairgram.from_rows(X[k : k + 12], y[k : k + 12], qid=qid[k : k + 12]) for k in (0, 12)]
    rest = Pairgram.from_rows(X[24:], y[24:], qid=qid[24:])
    assert whole.n_varying[1] == 0 and 0 < whole.n_varying[2] <= 3
    assert ((parts[0] + parts[1] + rest).n_varying == whole.n_varying).all()
    left = whole - parts[0]
    assert left.n_varying.tolist() == (parts[1] + rest).n_varying.tolist()
    assert left.n_varying[2] == 0
    for zeros in (left.G[2], left.G[:, 2], left.g[2]):
        assert not zeros.any()
    whole.save(tmp_path / "whole")
    loaded = Pairgram.load(tmp_path / "whole")
    assert (loaded.n_varying == whole.n_varying).all() and loaded.n_varying.dtype == np.int64
    nothing = whole - whole
    assert not nothing.G.any() and not nothing.g.any() and nothing.yy == 0


def dominated(s):
    """Rows of one query whose features are s times those of the others."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(200, 4)), rng.normal(size=200), np.arange(200) // 10
    X[:10] *= s
    return X, y, qid


def statistics(pairgram):
    return np.block([[pairgram.G, pairgram.g[:, None]], [pairgram.g, pairgram.yy]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", None])
def test_a_query_that_dominates_cannot_be_forgotten_in_silence(make, pairs):
    for s, digits in ((1e2, 1e-10), (1e4, 1e-6)):
        X, y, qid = dominated(s)
        total = Pairgram.from_rows(make(X), y, qid=qid, pairs=pairs)
        one = Pairgram.from_rows(make(X[:10]), y[:10], qid=qid[:10], pairs=pairs)
        rest = Pairgram.from_rows(make(X[10:]), y[10:], qid=qid[10:], pairs=pairs)
        expected = statistics(rest)
        error = np.abs(statistics(total - one) - expected).max() / np.abs(expected).max()
        assert error < digits
    for s in (1e7, 1e8, 1e100):
        X, y, qid = dominated(s)
        total = Pairgram.from_rows(make(X), y, qid=qid, pairs=pairs)
        one = Pairgram.from_rows(make(X[:10]), y[:10], qid=qid[:10], pairs=pairs)
        with pytest.raises(ValueError, match=r"feature 0 varies in 19 of the queries left but has"):
            total - one
        assert total.n_queries == 20


def test_the_feature_is_called_by_its_name():
    X, y, qid = dominated(1.0)
    X[:10, 2] *= 1e9
    frame = pd.DataFrame(X, columns=["title", "price", "visits", "age"])
    total = Pairgram.from_rows(frame, y, qid=qid)
    with pytest.raises(ValueError, match="cannot subtract: feature 'visits' varies in 19"):
        total - Pairgram.from_rows(frame[:10], y[:10], qid=qid[:10])


def test_pairs_of_all_rows():
    """Of shards of one query, what is left below 1e-13 is constant; up to 1e-10 it is refused."""
    named = {"pairs": pg.Pairs(scope="global")}
    X, y, _ = dominated(1.0)
    X[10:, 3] = 7.0  # varies in the first shard alone
    total = Pairgram.from_rows(X, y, **named)
    assert total.n_varying.tolist() == [1, 1, 1, 1]
    first = Pairgram.from_rows(X[:10], y[:10], **named)
    left = total - first
    assert left.n_varying.tolist() == [1, 1, 1, 0] and not left.G[3].any()
    X[:10, 0] *= 1e6
    total, first = Pairgram.from_rows(X, y, **named), Pairgram.from_rows(X[:10], y[:10], **named)
    with pytest.raises(ValueError, match=r"feature 0 has only .* of its sum of squares left"):
        total - first


@every(
    pairs=["with_ties", None],
    feature_map=[
        pg.RandomNodes(7, "linear", random_state=0),
        pg.RandomNodes(7, "relu", random_state=0),
        pg.RandomFourier(7, random_state=0),
        pg.Nystroem(n_components=7, random_state=0),
    ],
)
def test_mapped_rows(feature_map, pairs):
    X, y, qid = dominated(1.0)
    X[20:30] = X[20]  # a query of equal rows
    fitted = feature_map.fit(X)
    named = {"feature_map": fitted, "pairs": pairs}
    total = Pairgram.from_rows(X, y, qid=qid, **named)
    assert total.n_varying.max() == (20 if pairs is None else 19)
    part = Pairgram.from_rows(X[20:30], y[20:30], qid=qid[20:30], **named)
    if pairs is not None:
        assert part.n_varying.tolist() == [0] * 7
    others = [np.delete(array, slice(20, 30), 0) for array in (X, y, qid)]
    rest = Pairgram.from_rows(*others[:2], **named)
    assert ((total - part).n_varying <= total.n_varying).all()
    assert rest.n_varying.max() == 1
    only = total - Pairgram.from_rows(*others[:2], qid=others[2], **named)
    if pairs is not None:  # equal rows are left, of which nothing can be learnt
        assert not only.G.any() and not only.solve(1.0).any()


@every(
    model=[
        RankRLS(),
        RankRLS(0.0),
        forms.RankRLS(form="dual"),
        pg.RankRLSCV(),
        pg.RankRLSCV(scale=True),
        pg.RankRLSCV(cv=3),
        pg.RankRLSCV([0.0, 1.0]),
        pg.RankRLSCV(feature_map="maxabs"),
        pg.RankSVM(),
    ],
    n_features=[6, 40, 100],
)
def test_columns_that_do_not_vary_have_the_weight_zero(model, n_features):
    X, y, qid = pg.make_ranking(30, 12, n_features, random_state=n_features)
    at = [0, 3, n_features]
    X = np.insert(X, at, (1e18 + 1e13 * qid)[:, None], axis=1)  # one value in every query
    constant = np.array(at) + np.arange(3)
    fits = [model.fit(X, y, qid=qid).coef_]
    fits += [fit.coef_ for fit in pg.fit_many(model, [(X, y, qid)] * 2).models]
    if isinstance(model, pg.RankSVM):
        fits.append(model.fit(sp.csr_array(X), y, qid=qid).coef_)
    if model.get_params().get("feature_map") is None:
        gram = Pairgram.from_rows(X, y, qid=qid)
        fits += [*gram.path([1e-3, 1.0]), gram.solve(1.0)]
    for coef in fits:
        np.testing.assert_array_equal(coef[constant], 0.0)
        assert np.count_nonzero(coef) == n_features


def drifting(n_queries=60):
    """Rows whose first column is a time in seconds: a little of its size tells the label."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), 10)
    later = rng.integers(0, 300, len(qid))
    X = np.column_stack([1.7e9 + 86400 * qid + later, rng.normal(size=(len(qid), 20))])
    return X, np.clip(np.round(later / 100 + 0.3 * rng.normal(size=len(qid))), 0, 3), qid


@pytest.mark.parametrize("model", [pg.RankSVM(), pg.RankSVM(tol=1e-6), pg.RankSVMCV([0.01], cv=2)])
def test_sparse_columns_that_vary_by_a_little_of_their_size_keep_their_weight(model):
    X, y, qid = drifting()
    dense = model.fit(X, y, qid=qid).coef_
    sparse = model.fit(sp.csr_array(X), y, qid=qid).coef_
    np.testing.assert_allclose(sparse[0], dense[0], rtol=1e-3)
    assert abs(dense[0]) > 1e-3


def test_conjugate_gradients_keep_columns_that_vary(set_limits):
    X, y, qid = drifting()
    wanted = RankRLS().fit(X, y, qid=qid).coef_
    set_limits(**BY_STEPS)
    found = RankRLS().fit(sp.csr_array(X), y, qid=qid).coef_
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-3)


def test_a_sample_does_not_tell_that_a_column_is_constant(monkeypatch, set_limits):
    X, y, qid = pg.make_ranking(100, 10, 5, random_state=0)
    X[:, 0] = 1e15 + 1e10 * qid
    X[:, 1] = qid == 99  # varies within no query of a sample, and within one of all
    X[-5:, 1] = 3 * y[-5:]
    wanted = pg.RankSVM(tol=1e-6).fit(X, y, qid=qid).coef_
    set_limits(sampled_features=1)
    set_limits(fewest_sampled_rows=80)
    sampled = mock.Mock(wraps=training.sample_queries)
    monkeypatch.setattr(training, "sample_queries", sampled)
    for rows in (X, sp.csr_array(X)):
        found = pg.RankSVM(tol=1e-6).fit(rows, y, qid=qid).coef_
        assert found[0] == 0 and found[1] != 0
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)
    assert sampled.called


@pytest.mark.parametrize("model", [RankRLS(), pg.RankRLSCV(), pg.RankRLSCV(cv=3)], ids=repr)
def test_times_in_nanoseconds_leave_nothing_in_the_dual_form(model):
    X, y, qid = pg.make_ranking(12, 6, 100, random_state=0)
    rng = np.random.default_rng(0)
    times = 1.7e18 + 3e16 * rng.random((12, 1))
    fitted = model.fit(np.hstack([X, times[qid]]), y, qid=qid)
    assert fitted.form_ == "dual" and fitted.coef_[-1] == 0
    np.testing.assert_allclose(fitted.coef_[:-1], model.fit(X, y, qid=qid).coef_, rtol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_fold_gives_columns_that_vary_outside_of_it_alone_the_weight_zero(make):
    X, y, qid = pg.make_ranking(40, 10, 5, random_state=0)
    rng = np.random.default_rng(0)
    only = np.where(qid == 3, 1e5 * rng.random(len(qid)), 0.0)  # varies in a single query
    X = make(np.column_stack([X, only]))
    Cs = [1e-3, 1e-2, 1e-1]
    search = pg.RankSVMCV(Cs, tol=1e-6).fit(X, y, qid=qid)
    for C, score in zip(Cs, search.scores_, strict=True):
        held_out = np.empty(len(y))
        for train, test in pg.QueryKFold(5).split(X, y, qid):
            fitted = pg.RankSVM(C, tol=1e-6).fit(X[train], y[train], qid=qid[train])
            assert (3 in qid[train]) != (fitted.coef_[-1] == 0)
            held_out[test] = fitted.predict(X[test])
        assert abs(pg.evaluate("ndcg@10", y, held_out, qid)["ndcg@10"] - score) < 1e-12
