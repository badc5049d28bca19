"""Weights with signs and sparse weights, against solvers of explicit pairs of rows."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy.optimize import lsq_linear, nnls
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import GridSearchCV, KFold

import pairgram as pg
from axes import every
from parts.constraints import positive as solver


def rows_of(seed=0, n_features=7, n_queries=12):
    X, y, qid = pg.make_ranking(n_queries, (3, 8), n_features, random_state=seed)
    return X + np.roll(X, 1, axis=1), y, qid


def differences(X, y, qid):
    """Every pair of rows of a query once; the sum of squares is that of the objective."""
    i, j = np.array([p for p in combinations(range(len(y)), 2) if qid[p[0]] == qid[p[1]]]).T
    return X[i] - X[j], y[i] - y[j]


@every(seed=range(3), alpha=[0.0, 0.5, 50.0])
def test_positive_weights_are_those_of_nnls(seed, alpha):
    X, y, qid = rows_of(seed)
    model = pg.RankRLS(alpha, constraint=pg.Positive()).fit(X, -y + X[:, 0], qid=qid)
    D, d = differences(X, -y + X[:, 0], qid)
    G = D.T @ D + alpha * np.eye(7)
    R = scipy.linalg.cholesky(G)
    expected = nnls(R, scipy.linalg.solve_triangular(R, D.T @ d, trans="T"))[0]
    assert (expected == 0).any() and (expected > 0).any()
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


@every(
    order=[1, -1],
    kind=["plain", "crowded", "one direction", "equal columns"],
    n_features=[1, 30, 150],
)
def test_the_path_of_positive_weights_is_that_of_nnls(n_features, kind, order):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(n_features + 40, n_features))
    if kind == "crowded":
        X = X @ rng.normal(size=(n_features, n_features))
    elif kind == "one direction":
        X += 3 * rng.normal(size=(len(X), 1))
    elif kind == "equal columns":
        X[:, 1::2] = X[:, : n_features // 2 * 2 : 2]
    y = X @ rng.normal(size=n_features) + rng.normal(size=len(X))
    y -= y.mean()
    alphas = 10.0 ** np.arange(4, -3, -1)[::order]
    centred = X - X.mean(axis=0)
    statistics = pg.Pairgram.from_rows(X, y)
    path = pg.RankRLSCV(alphas, constraint=pg.Positive(), cv=2).fit(X, y).coef_path_
    for alpha, coef in zip(alphas, path, strict=True):
        ridge = np.sqrt(alpha / len(X)) * np.eye(n_features)
        expected = nnls(np.vstack([centred, ridge]), np.append(y, np.zeros(n_features)))[0]
        np.testing.assert_allclose(coef, expected, atol=1e-8)
        np.testing.assert_allclose(
            statistics.solve(alpha, constraint=pg.Positive()), expected, atol=1e-8
        )


def test_block_pivoting_ends_where_blocks_alone_would_not():
    rng = np.random.default_rng(0)
    for n in np.tile(np.arange(2, 22), 5):
        B = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-2, 2, n)
        A = B @ B.T + 1e-5 * np.eye(n) * np.trace(B @ B.T) / n
        sizes = np.sqrt(A.diagonal())
        A /= np.outer(sizes, sizes)
        g = rng.normal(size=n)
        R = scipy.linalg.cholesky(A)
        expected = nnls(R, scipy.linalg.solve_triangular(R, g, trans="T"))[0]
        for used in (g > 0, np.zeros(n, bool), np.ones(n, bool), rng.random(n) < 0.5):
            found = solver._pivoted(A, g, np.ones(n, bool), used)
            np.testing.assert_allclose(found, expected, atol=1e-8 * max(1.0, expected.max()))
    both = np.ones(2, bool)
    assert solver._pivoted(np.ones((2, 2)), np.ones(2), both, both) is None  # singular


@every(columns=[[0], [1, 2, 5], [6, 3], range(7)], scale=[False, True])
def test_some_weights_are_positive(columns, scale):
    X, y, qid = rows_of(1)
    y = X @ np.array([-1.0, 2, -1, 0.5, -3, 1, -0.1]) + 0.3 * y
    D, d = differences(X, y, qid)
    ridge = np.sqrt(0.7) * (np.sqrt((D**2).sum(0)) if scale else np.ones(7))
    low = np.full(7, -np.inf)
    low[list(columns)] = 0.0
    A, b = np.vstack([D, np.diag(ridge)]), np.concatenate([d, np.zeros(7)])
    expected = lsq_linear(A, b, (low, np.inf), method="bvls", tol=1e-15).x
    model = pg.RankRLS(0.7, scale=scale, constraint=pg.Positive(list(columns))).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    named = pg.RankRLS(0.7, scale=scale, constraint=pg.Positive(["abcdefg"[j] for j in columns]))
    np.testing.assert_array_equal(named.fit(frame, y, qid=qid).coef_, model.coef_)


@pytest.mark.parametrize("estimator", [pg.RankRLS, pg.RankRLSCV])
@pytest.mark.parametrize("columns", [np.array([1, 3]), [np.int64(1), 3], np.array(["b", "d"])])
def test_positive_columns_may_be_an_array(estimator, columns, tmp_path):
    X, y, qid = rows_of(1)
    X = pd.DataFrame(X, columns=list("abcdefg"))
    model = estimator(constraint=pg.Positive(columns)).fit(X, y, qid=qid)
    assert np.array_equal(
        model.coef_, estimator(constraint=pg.Positive([1, 3])).fit(X, y, qid=qid).coef_
    )
    model.save(tmp_path / "model")
    loaded = pg.load_model(tmp_path / "model")
    assert loaded.constraint.columns == list(columns)
    assert np.array_equal(loaded.predict(X), model.predict(X))


@every(positive=[[0], [2], [0, 2], [0, 1, 2], None], factor=[1e8, 1e-8])
def test_weights_of_badly_scaled_columns_are_not_lost(positive, factor):
    rng = np.random.default_rng(0)
    X, scales = rng.normal(size=(60, 4)), np.array([1.0, 1.0, factor, 1.0])
    y = X @ [1.0, -0.5, 2.0, 0.3]
    D, d = differences(X, y, np.zeros(60))
    D = D * scales
    low = np.full(4, -np.inf)
    low[slice(None) if positive is None else positive] = 0.0
    # the same problem in columns of about equal size
    A = np.vstack([D / scales, np.diag(0.1 / scales)])
    expected = lsq_linear(A, np.append(d, np.zeros(4)), (low, np.inf), method="bvls", tol=1e-15).x
    model = pg.RankRLS(0.01, constraint=pg.Positive(positive)).fit(X * scales, y)
    np.testing.assert_allclose(model.coef_ * scales, expected, atol=1e-6)


@every(l1_ratio=[0.1, 0.7, 1.0], positive=[False, True], alpha=[0.1, 30.0, 1e6])
def test_sparse_weights_are_those_of_the_elastic_net(l1_ratio, positive, alpha):
    X, y, qid = rows_of(2)
    D, d = differences(X, y, qid)
    net = ElasticNet(
        alpha / len(d),
        l1_ratio=l1_ratio,
        fit_intercept=False,
        positive=positive,
        tol=1e-13,
        max_iter=10**6,
    )
    expected = net.fit(D, d).coef_
    model = pg.RankRLS(alpha, constraint=pg.ElasticNet(l1_ratio, positive=positive)).fit(
        X, y, qid=qid
    )
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)
    np.testing.assert_array_equal(model.coef_ == 0, expected == 0)


@every(alpha=[0.0, 3.0], scale=[False, True])
def test_features_are_added_where_the_objective_falls_most(alpha, scale):
    X, y, qid = rows_of(3)
    D, d = differences(X, y, qid)
    unit = np.sqrt((D**2).sum(0)) if scale else np.ones(7)
    chosen = []
    for size in range(1, 8):
        found = {}
        for j in set(range(7)) - set(chosen):
            S = [*chosen, j]
            A = np.vstack([D[:, S], np.sqrt(alpha) * np.diag(unit[S])])
            w, *_ = np.linalg.lstsq(A, np.concatenate([d, np.zeros(size)]), rcond=None)
            errors = D[:, S] @ w - d
            found[errors @ errors + alpha * ((unit[S] * w) ** 2).sum()] = j, w
        j, w = found[min(found)]
        chosen.append(j)
        expected = np.zeros(7)
        expected[chosen] = w
        model = pg.RankRLS(alpha, constraint=pg.MaxNonzero(size), scale=scale).fit(X, y, qid=qid)
        np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


def test_equal_and_constant_columns_are_selected_once():
    X, y, qid = rows_of(4, 3)
    X = np.column_stack([X, X[:, 0], np.ones(len(y)), 2 * X[:, 1]])
    model = pg.RankRLS(0.0, constraint=pg.MaxNonzero(6)).fit(X, y, qid=qid)
    assert np.count_nonzero(model.coef_) == 3
    np.testing.assert_allclose(
        np.diff(model.predict(X)), np.diff(pg.RankRLS(0.0).fit(X, y, qid=qid).predict(X)), atol=1e-8
    )
    for constraints in (
        {"constraint": pg.Positive()},
        {"constraint": pg.Positive([0, 3])},
        {"constraint": pg.ElasticNet(0.5)},
    ):
        found = pg.RankRLS(1.0, **constraints).fit(X, y, qid=qid).coef_
        assert np.isfinite(found).all() and found[4] == 0


CONSTRAINTS = [
    {"constraint": pg.Positive()},
    {"constraint": pg.Positive([0, 2])},
    {"constraint": pg.ElasticNet(0.5)},
    {
        "constraint": pg.ElasticNet(0.9, positive=True),
    },
    {"constraint": pg.MaxNonzero(3)},
]


@every(options=[{}, {"pairs": "without_ties", "scale": True}], constraints=CONSTRAINTS)
def test_held_out_scores_are_those_of_refits(constraints, options):
    X, y, qid = rows_of(5)
    alphas = [30.0, 0.3, 3.0]
    model = pg.RankRLSCV(alphas, **constraints, **options).fit(X, y, qid=qid)
    expected = np.zeros((3, len(y)))
    for train, test in pg.QueryKFold(5).split(X, qid=qid):
        for row, alpha in zip(expected, alphas, strict=True):
            one = pg.RankRLS(alpha, **constraints, **options)
            row[test] = one.fit(X[train], y[train], qid=qid[train]).predict(X[test])
    found = pg.evaluate("ndcg@10", y, expected, qid)["ndcg@10"]
    np.testing.assert_allclose(model.scores_, found, rtol=1e-10)
    chosen = alphas.index(model.alpha_)
    np.testing.assert_allclose(model.held_out_, expected[chosen], atol=1e-8)
    alone = pg.RankRLS(model.alpha_, **constraints, **options).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-9)
    assert model.coef_path_.shape == (3, 7)


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=repr)
def test_a_validation_set_and_the_default_grid(constraints):
    X, y, qid = rows_of(6, n_queries=20)
    first = qid < 12
    validation = (X[~first], y[~first], qid[~first])
    model = pg.RankRLSCV(**constraints).fit(
        X[first], y[first], qid=qid[first], validation=validation
    )
    assert model.alphas_.shape == (34,) and (np.diff(model.alphas_) < 0).all()
    best = pg.evaluate("ndcg@10", y[~first], model.predict(X[~first]), qid[~first])["ndcg@10"]
    assert model.best_score_ == pytest.approx(best)
    constraint = constraints["constraint"]
    if isinstance(constraint, pg.ElasticNet) and not constraint.positive:
        counts = np.count_nonzero(model.coef_path_, axis=1)
        assert counts[0] == 0 and counts[1] > 0 and counts[-1] == 7


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=repr)
def test_statistics_and_files_have_the_same_weights(constraints, tmp_path):
    X, y, qid = rows_of(7)
    model = pg.RankRLS(0.5, **constraints).fit(X, y, qid=qid)
    streamed = pg.RankRLS.from_pairgram(pg.Pairgram.from_rows(X, y, qid=qid), 0.5, **constraints)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=1e-10)
    assert streamed.get_params() == model.get_params()
    for saved in (model, pg.RankRLSCV([0.5], **constraints).fit(X, y, qid=qid)):
        saved.save(tmp_path / "m")
        loaded = pg.load_model(tmp_path / "m")
        assert repr(loaded.constraint) == repr(constraints["constraint"])
        np.testing.assert_array_equal(loaded.predict(X), saved.predict(X))
    one = pg.fit_many(pg.RankRLS(0.5, **constraints), [(X, y, qid)]).models[0]
    np.testing.assert_array_equal(one.coef_, model.coef_)


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=repr)
def test_an_alpha_of_0_is_no_penalty(constraints):
    X, y, qid = rows_of(7)
    model = pg.RankRLSCV([1.0, 0.0, 1e-9], **constraints).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_path_[1], model.coef_path_[2], atol=1e-7)
    constraint = constraints["constraint"]
    if isinstance(constraint, pg.ElasticNet):
        constraint = pg.Positive() if constraint.positive else None
    alone = pg.RankRLS(0.0, constraint=constraint).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_path_[1], alone.coef_, atol=1e-8)


def test_constraints_have_the_habits_of_scikit_learn():
    X, y, qid = rows_of(8)
    columns = np.array([1, 3])
    model = pg.RankRLS(constraint=pg.Positive(columns))
    assert model.constraint.columns is columns  # as it was given
    copy = clone(model).set_params(constraint__columns=[2])
    assert copy.constraint.columns == [2] and model.constraint.columns is columns
    assert model.get_params()["constraint__columns"] is columns
    assert repr(pg.RankRLS(constraint=pg.MaxNonzero(3))) == "RankRLS(constraint=MaxNonzero(k=3))"
    net = pg.RankRLS(1e4, constraint=pg.ElasticNet(0.5))
    grid = {"constraint__l1_ratio": [0.1, 1.0], "alpha": [1e3, 1e4]}
    splits = list(pg.QueryKFold(3).split(X, qid=qid))
    with config_context(enable_metadata_routing=True):
        found = GridSearchCV(net, grid, cv=splits).fit(X, y, qid=qid)
    best = found.best_params_
    alone = pg.RankRLS(best["alpha"], constraint=pg.ElasticNet(best["constraint__l1_ratio"]))
    np.testing.assert_array_equal(found.predict(X), alone.fit(X, y, qid=qid).predict(X))
    whole = GridSearchCV(model, {"constraint": [None, pg.Positive(), pg.MaxNonzero(2)]}, cv=splits)
    with config_context(enable_metadata_routing=True):
        assert len(whole.fit(X, y, qid=qid).cv_results_["params"]) == 3
    assert pickle.loads(pickle.dumps(model)).constraint.columns.tolist() == [1, 3]


def test_rows_of_one_query_and_fewer_rows_than_features():
    X, y, _ = pg.make_ranking(1, 12, 30, random_state=0)
    model = pg.RankRLSCV([1.0, 10.0], constraint=pg.MaxNonzero(4)).fit(X, y)
    assert model.form_ == "primal" and np.count_nonzero(model.coef_) == 4
    assert (pg.RankRLSCV(cv=KFold(3), constraint=pg.Positive()).fit(X, y).coef_ >= 0).all()


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=repr)
def test_offsets_are_subtracted(constraints):
    X, y, qid = rows_of(9)
    offset = X @ np.linspace(-1, 1, 7)
    model = pg.RankRLS(0.5, **constraints).fit(X, y, qid=qid, offset=offset)
    expected = pg.RankRLS(0.5, **constraints).fit(X, y - offset, qid=qid).coef_
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
    search = pg.RankRLSCV([0.5], **constraints, scoring="pairwise_accuracy")
    search.fit(X, y, qid=qid, offset=offset)
    held_out = np.zeros(len(y))
    for train, test in pg.QueryKFold(5).split(X, qid=qid):
        one = pg.RankRLS(0.5, **constraints).fit(X[train], y[train] - offset[train], qid=qid[train])
        held_out[test] = one.predict(X[test]) + offset[test]
    np.testing.assert_allclose(search.held_out_, held_out, atol=1e-8)


def test_weights_of_0_are_exactly_0():
    """Where a column brings nothing in exact arithmetic, it does not rank rows by rounding."""
    n_zeros = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (9, 3)) * 1.0, rng.integers(0, 3, 9) * 1.0
        y[:2] = 0, 1  # something to learn
        coef = pg.RankRLS(constraint=pg.Positive()).fit(X, y, qid=np.arange(9) // 3).coef_
        assert not ((coef > 0) & (coef < 1e-12 * coef.max())).any()
        n_zeros += np.count_nonzero(coef == 0)
    assert n_zeros > 100
