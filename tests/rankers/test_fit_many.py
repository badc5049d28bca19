"""fit_many against a plain loop of fits."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import pairgram as pg
from axes import every
from forms import in_form
from parts.support import on_threads

COMPILED = [
    pg.RankRLS(),
    pg.RankRLS(0.3, pairs=pg.Pairs("without_ties", weighting="queries")),
    pg.RankRLS(1e-9, pairs=pg.Pairs("label_difference", target="gain")),
    pg.RankRLS(pairs=np.logaddexp),
    pg.RankRLS(pairs=None, feature_map=pg.RandomNodes(50, random_state=0)),
    pg.RankRLS(pairs=pg.Pairs(scope="global"), feature_map=pg.RandomNodes(5, random_state=0)),
    pg.RankRLS(feature_map=pg.RandomFourier(40, gamma=0.2, random_state=0)),
    pg.RankRLS(prior=np.array([1.0, -2.0, 0.0, 3.0])),
    pg.PointwiseELM(0.1, random_state=0),
    pg.PairwiseELM(0.1, n_nodes=30, activation="tanh", pairs="without_ties", random_state=0),
    pg.RankRLSCV(),
    pg.RankRLSCV([0.1, 10.0, 1.0], pairs="without_ties", scoring="kendall"),
    pg.RankRLSCV(pairs=None, prior=np.array([1.0, -2.0, 0.0, 3.0])),
    pg.PairwiseELMCV([0.3, 0.1], n_nodes=30, scoring="pairwise_squared_error", random_state=0),
    pg.RankRLSCV(cv=2, scoring="kendall"),
    pg.RankRLSCV(pairs=None, cv=pg.QueryKFold(3, shuffle=True, random_state=0)),
    pg.PairwiseELMCV(cv=2, n_nodes=30, activation="tanh", random_state=0),
    pg.RankSVM(),
    pg.RankSVM(0.1, pairs=pg.Pairs("without_ties", weighting="queries"), loss="logistic", tol=1e-6),
    pg.RankSVM(3.0, loss="squared", feature_map=pg.RandomNodes(50, random_state=0)),
    pg.RankSVM(prior=np.array([1.0, -2.0, 0.0, 3.0])),
    pg.RankSVMCV(feature_map=pg.RandomNodes(5, random_state=0)),
    pg.RankSVMCV(
        [10.0, 0.1, 1.0],
        cv=3,
        loss="logistic",
        pairs=pg.Pairs("without_ties", weighting="queries"),
        scoring="map",
    ),
    pg.RankSVMCV(cv=2, prior=np.array([1.0, -2.0, 0.0, 3.0])),
]
ALONE = [
    pg.RankRLS(scale=True),
    pg.RankRLS(feature_map=pg.Kernel("rbf")),
    pg.RankRLS(feature_map="quantile"),
    pg.RankRLSCV(scale=True),
    pg.ELMRank(n_nodes=7, random_state=0),
    pg.ELMRankCV([0.1], [1.0, 8.0], n_nodes=5, cv=2, random_state=0),
]


def rows_of_users(n_users=7, seed=0, n_features=4):
    """X, y, user, qid and weights of rows in any order; users have 6 to 60 rows."""
    rng = np.random.default_rng(seed)
    user = rng.permutation(np.repeat(np.arange(n_users) * 3 - 5, rng.integers(24, 60, n_users)))
    n = len(user)
    X = rng.normal(size=(n, n_features)) * rng.uniform(0.3, 3, n_features)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    return X, rng.integers(0, 4, n) * 1.0, user, rng.integers(0, 5, n), weights


def same_as_alone(batch, estimator, X, y, user, exact=True, **others):
    for key in batch.keys.tolist():
        at = user == key
        own = {name: values[at] for name, values in others.items()}
        alone = clone(estimator).fit(X[at], y[at], **own)
        model = batch[key]
        assert type(model) is type(alone)
        if not hasattr(alone, "best_score_"):  # of a search a model has what was chosen
            assert vars(model).keys() == vars(alone).keys()
        for name in ("alpha_", "C_", "best_score_", "uses_qid_", "form_"):
            assert getattr(model, name, None) == getattr(alone, name, None)
        assert (model.coef_ == alone.coef_).all()
        assert (model.predict(X[at]) == alone.predict(X[at])).all()
        expected = alone.predict(X[at])
        size = (1e-13 if X.dtype == np.float64 else 1e-6) * abs(expected).max()
        np.testing.assert_allclose(batch.predict(X[at], user[at]), expected, atol=size)


@pytest.mark.parametrize("estimator", [*COMPILED, *ALONE], ids=repr)
@every(dtype=[np.float64, np.float32])
def test_models_have_the_bits_of_fits_alone(estimator, dtype):
    X, y, user, qid, weights = rows_of_users(5)
    X = X.astype(dtype)
    batch = pg.fit_many(estimator, X, y, by=user, qid=qid, sample_weight=weights)
    assert batch.keys.tolist() == pd.unique(user).tolist()
    same_as_alone(batch, estimator, X, y, user, qid=qid, sample_weight=weights)


@pytest.mark.parametrize("estimator", [pg.RankRLS(), pg.RankSVM(), pg.RankRLSCV()], ids=repr)
def test_weights_of_queries(estimator):
    X, y, user, qid, _ = rows_of_users()
    weights = 1.0 + (7 * user + qid) % 5
    batch = pg.fit_many(estimator, X, y, by=user, qid=qid, query_weight=weights)
    assert not batch.models.alone
    same_as_alone(batch, estimator, X, y, user, qid=qid, query_weight=weights)


@pytest.mark.parametrize(
    "estimator", [pg.RankRLSCV(), pg.RankRLSCV(cv=2), pg.RankSVMCV()], ids=repr
)
def test_groups_of_queries_are_held_out(estimator):
    X, y, user, _, weights = rows_of_users()
    qid = np.random.default_rng(1).integers(0, 20, len(y))
    told = {"qid": qid, "groups": qid // 2 + user, "sample_weight": weights}
    batch = pg.fit_many(estimator, X, y, by=user, **told)
    assert not batch.models.alone
    same_as_alone(batch, estimator, X, y, user, **told)
    told["groups"][np.argmax(user == batch.keys[0])] = 99  # of a query in two groups
    with pytest.warns(FitFailedWarning, match="1 of 7 .* groups must be constant within a query"):
        cut = pg.fit_many(estimator, X, y, by=user, **told)
    assert (cut.coef_[1:] == batch.coef_[1:]).all()


@pytest.mark.parametrize("estimator", [pg.RankRLSCV(cv=3), pg.RankSVMCV()], ids=repr)
def test_rows_of_one_query_are_held_out_in_folds(estimator):
    X, y, user, _, weights = rows_of_users()
    batch = pg.fit_many(estimator, X, y, by=user, sample_weight=weights)
    assert not batch.models.alone
    same_as_alone(batch, estimator, X, y, user, sample_weight=weights)


@every(estimator=COMPILED)
def test_lists_threads_and_parts_change_no_bit(estimator, set_limits):
    X, y, user, qid, _ = rows_of_users()
    keys = pd.unique(user)
    (batch,) = on_threads([1], lambda: pg.fit_many(estimator, X, y, by=user, qid=qid))
    parts = [(X[user == key], y[user == key], qid[user == key]) for key in keys]
    set_limits(dense_block_bytes=8 * 500 * X.shape[1])
    (listed,) = on_threads([3], lambda: pg.fit_many(estimator, parts, by=keys))
    assert listed.keys.tolist() == batch.keys.tolist()
    assert (listed.coef_ == batch.coef_).all()
    for given in (lambda X: np.asfortranarray(X).tolist(), lambda X: X.astype(">f8")):
        others = [(given(X), y, qid) for X, y, qid in parts]
        assert (pg.fit_many(estimator, others).coef_ == batch.coef_).all()
    listed = pg.fit_many(estimator, [(csr_array(X), y, qid) for X, y, qid in parts])
    assert not listed.models.alone
    np.testing.assert_allclose(
        listed.coef_, batch.coef_, rtol=0, atol=1e-14 * abs(batch.coef_).max()
    )


@pytest.mark.parametrize("estimator", COMPILED, ids=repr)
def test_sparse_rows_are_made_dense_part_by_part(estimator, set_limits):
    X, y, user, qid, weights = rows_of_users(5)
    X[abs(X) < 0.5] = 0
    told = {"by": user, "qid": qid, "sample_weight": weights}
    dense = pg.fit_many(estimator, X, y, **told)
    set_limits(dense_block_bytes=8 * 50 * X.shape[1])
    assert (pg.fit_many(estimator, X, y, **told).coef_ == dense.coef_).all()
    sparse = pg.fit_many(estimator, csr_array(X), y, **told)
    assert not sparse.models.alone
    np.testing.assert_allclose(
        sparse.coef_, dense.coef_, rtol=0, atol=1e-14 * abs(dense.coef_).max()
    )
    same_as_alone(sparse, estimator, csr_array(X), y, user, qid=qid, sample_weight=weights)


def test_compiled_fits_do_not_pass_fit(monkeypatch):
    X, y, user, _, _ = rows_of_users()
    monkeypatch.setattr(pg.RankRLS, "fit", lambda self, *_, **__: 1 / 0, raising=True)
    monkeypatch.setattr(pg.RankRLS.fit, "__module__", "pairgram.test")
    assert np.isfinite(pg.fit_many(pg.RankRLS(), X, y, by=user).coef_).all()


class Doubled(pg.RankRLS):
    """A ranker with a fit of its own."""

    def fit(self, X, y, **others):
        return super().fit(2 * X, y, **others)


def test_any_estimator():
    X, y, user, _, _ = rows_of_users()
    for estimator in (Ridge(), Doubled()):
        batch = pg.fit_many(estimator, X, y, by=user)
        for key in batch.keys:
            at = user == key
            assert (batch[key].coef_ == clone(estimator).fit(X[at], y[at]).coef_).all()


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@every(make=list(FRAMES.values()))
@every(estimator=[pg.RankRLS(), pg.RankRLS(scale=True)])
def test_columns_of_frames(make, estimator):
    X, y, user, qid, weights = rows_of_users()
    columns = dict(zip("abcd", X.T, strict=True))
    told = {"user": user, "label": y, "list": qid, "weight": weights}
    frame = make(columns | told)
    named = {"by": "user", "qid": "list", "sample_weight": "weight"}
    batch = pg.fit_many(estimator, frame, "label", **named)
    assert batch[user[0]].feature_names_in_.tolist() == list("abcd")
    arrays = pg.fit_many(estimator, X, y, by=user, qid=qid, sample_weight=weights)
    assert (batch.coef_ == arrays.coef_).all()
    shuffled = make({name: columns[name] for name in "dbca"} | {"user": user})
    np.testing.assert_array_equal(batch.predict(shuffled, "user"), arrays.predict(X, user))


@pytest.mark.parametrize("pairs", ["with_ties", None, "without_ties", "gain_difference"])
@every(gaps=[0, 0.1, 0.6])
def test_targets_are_fitted_to_the_rows_where_they_were_measured(pairs, gaps, set_limits):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(40, 5)), np.arange(40) % 3
    Y = rng.integers(0, 4, (40, 90)) * 1.0
    Y[rng.random(Y.shape) < gaps] = np.nan
    Y[:, 50:] = np.where(np.isnan(Y[:, [7]]), np.nan, rng.integers(0, 4, (40, 40)))
    estimator = pg.RankRLS(0.5, pairs=pairs)
    batch = pg.fit_many(estimator, X, Y, qid=qid)
    set_limits(dense_block_bytes=8 * 100 * X.shape[1])
    assert (pg.fit_many(estimator, X, Y, qid=qid).coef_ == batch.coef_).all()
    for target in range(90):
        known = ~np.isnan(Y[:, target])
        alone = clone(estimator).fit(X[known], Y[known, target], qid=qid[known])
        np.testing.assert_allclose(batch.coef_[target], alone.coef_, rtol=1e-11, atol=1e-13)


@every(estimator=[pg.RankRLS(pairs="without_ties"), pg.RankSVM(), pg.RankSVMCV(cv=2)])
def test_errors_are_those_of_fits_alone(estimator):
    X, y, user, qid, _ = rows_of_users(9)
    keys = pd.unique(user)
    X[np.flatnonzero(user == keys[2])[3], 1] = np.inf
    X[user == keys[3]] = 1e200 * X[user == keys[3]]
    y[user == keys[4]] = 2.0
    y[np.flatnonzero(user == keys[5])[0]] = np.nan
    y[user == keys[6]] = np.nan
    with pytest.warns(
        FitFailedWarning, match=f"5 of 9 data sets .* first is that of key {keys[2]}"
    ):
        batch = pg.fit_many(estimator, X, y, by=user, qid=qid)
    assert repr(batch) == "<BatchFit of 9 models, 5 failed>"
    for number, key in enumerate(keys):
        at = user == key
        if 2 <= number <= 6:
            with pytest.raises(ValueError) as caught:
                clone(estimator).fit(X[at], y[at], qid=qid[at])
            assert batch.errors_[number] == f"ValueError: {caught.value}"
            assert batch.models[number] is None and np.isnan(batch.coef_[number]).all()
            with pytest.raises(ValueError, match="has no model: ValueError"):
                batch[key]
            continue
        alone = clone(estimator).fit(X[at], y[at], qid=qid[at])
        assert batch.errors_[number] is None and (batch[key].coef_ == alone.coef_).all()
    with pytest.raises(ValueError, match="9 of 9 data sets have no model"):
        pg.fit_many(estimator, X, 0 * y, by=user)
    with pytest.warns(FitFailedWarning, match="9 of 9"):
        nothing = pg.fit_many(estimator, X, 0 * y, by=user, fallback=0.5)
    assert (nothing.predict(X, user) == 0.5).all()


@every(estimator=[pg.RankRLS(), pg.RankRLSCV(), pg.RankRLSCV(scoring="kendall"), pg.RankSVM()])
@every(empty=[0, 1, 2])
def test_sets_without_rows_change_no_other(estimator, empty):
    X, y, user, qid, _ = rows_of_users(2)
    filled = [(X[user == key], y[user == key], qid[user == key]) for key in pd.unique(user)]
    sets = filled[:]
    sets.insert(empty, (X[:0], y[:0], qid[:0]))
    with pytest.warns(FitFailedWarning, match=f"key {empty}: ValueError: Found array with 0 "):
        batch = pg.fit_many(estimator, sets)
    others = [model for model in batch.models if model is not None]
    for (rows, labels, ids), model in zip(filled, others, strict=True):
        alone = clone(estimator).fit(rows, labels, qid=ids)
        assert (model.coef_ == alone.coef_).all()
    targets = np.column_stack([y, y, y])
    targets[:, empty] = np.nan
    with pytest.warns(FitFailedWarning, match=f"key {empty}: ValueError: Found array with 0 "):
        pg.fit_many(estimator, X, targets, qid=qid)


def caught(function, *arguments, **named):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return function(*arguments, **named), len(found)


@pytest.mark.parametrize(("C", "most"), [(1.0, 100), (1e3, 1)])
def test_newton_steps_of_a_batch_are_those_of_fits_alone(set_limits, C, most):
    X, y, user, _, _ = rows_of_users()
    set_limits(newton_steps=most)
    estimator = pg.RankSVM(C)
    batch, n_warned = caught(pg.fit_many, estimator, X, y, by=user)
    for key in batch.keys.tolist():
        alone, n_own = caught(clone(estimator).fit, X[user == key], y[user == key])
        n_warned -= n_own
        assert batch[key].n_iter_ == alone.n_iter_ == len(alone.history_["step"])
        assert batch[key].n_hessian_products_ == alone.n_hessian_products_
        for name, values in alone.history_.items():
            assert (batch[key].history_[name] == values).all()
    assert n_warned == 0


def test_singular_systems_have_the_solution_of_smallest_norm():
    X, y, user, _, _ = rows_of_users(5)
    X[:, 3] = X[:, 0]
    wide = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), 70))])
    for rows in (X, wide):
        batch = pg.fit_many(pg.RankRLS(0.0), rows, y, by=user)
        for key in batch.keys:
            at = user == key
            Z, t = (values[at] - values[at].mean(axis=0) for values in (rows, y))
            expected = np.linalg.lstsq(Z, t, rcond=1e-10)[0]
            size = 1e-6 * abs(expected).max()
            np.testing.assert_allclose(batch[key].coef_, expected, atol=size)


def test_one_prior_for_all():
    X, y, user, _, _ = rows_of_users()
    everybody = pg.RankRLS(feature_map=pg.Kernel("rbf")).fit(X, y, qid=user)
    batch = pg.fit_many(pg.RankRLS(2.0), X, y, by=user, prior=everybody)
    alone = pg.RankRLS(2.0, prior=FrozenEstimator(everybody))
    same_as_alone(batch, alone, X, y, user)
    unknown = batch.predict(X[:5], np.full(5, 99))
    np.testing.assert_allclose(unknown, everybody.predict(X[:5]), rtol=1e-12)


def test_loops_over_many_data_sets_are_told():
    X, y = np.random.default_rng(0).normal(size=(404, 2)), np.arange(404.0)
    with pytest.warns(UserWarning, match="fits RankRLS by a loop over 101 data sets"):
        pg.fit_many(pg.RankRLS(scale=True), X, y, by=np.arange(404) // 4)


@pytest.mark.parametrize(
    "estimator", [pg.RankRLS(), pg.RankRLSCV(), pg.RankSVM(), pg.RankSVMCV()], ids=repr
)
def test_single_rows_are_told_as_fits_alone_and_need_none(estimator, monkeypatch):
    X, y, user, _, _ = rows_of_users()
    with pytest.raises(ValueError, match=r"got 1 sample|n_samples=1") as told:
        clone(estimator).fit(X[:1], y[:1])
    user[[3, 5, 8]] = 100, 101, 102
    monkeypatch.setattr(type(estimator), "fit", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(type(estimator).fit, "__module__", "pairgram.test")
    with pytest.warns(FitFailedWarning):
        batch = pg.fit_many(estimator, X, y, by=user)
    for key, error in zip(batch.keys.tolist(), batch.errors_, strict=True):
        assert error == (f"ValueError: {told.value}" if key >= 100 else None)


def test_the_reason_of_a_loop_is_told():
    X, y, user = np.eye(404)[:, :2], np.arange(404.0), np.arange(404) // 4
    y[5] = 2000
    with (
        pytest.warns(UserWarning, match="loop over 101 data sets: pair weights must be finite"),
        pytest.warns(FitFailedWarning, match="1 of 101"),
    ):
        pg.fit_many(pg.RankRLS(pairs="gain_difference"), X, y, by=user)


@every(dtype=[np.float64, np.float32], cv=[None, 3])
def test_queries_that_hold_a_column_are_held_out_by_compiled_refits(dtype, cv):
    rng = np.random.default_rng(0)
    user, qid = np.arange(1200) // 40, np.arange(1200) // 4
    X = (rng.random((1200, 8)) < 0.05) * rng.normal(1.0, 0.3, (1200, 8)).astype(dtype) + dtype(0.5)
    y = np.round(2 * X.sum(axis=1) + rng.normal(size=1200))
    batch = pg.fit_many(pg.RankRLSCV(cv=cv), X, y, by=user, qid=qid)
    assert not batch.models.alone
    for key in range(0, 30, 3):
        at = user == key
        alone = pg.RankRLSCV(cv=cv).fit(X[at], y[at], qid=qid[at])
        assert alone.alpha_ == batch[key].alpha_ and (alone.coef_ == batch[key].coef_).all()
        folds = pg.QueryKFold(10 if cv is None else cv).split(X[at], y[at], qid[at])
        for train, test in folds:
            model = pg.RankRLS(alone.alpha_).fit(X[at][train], y[at][train], qid=qid[at][train])
            found, expected = alone.held_out_[test], model.predict(X[at][test])
            np.testing.assert_allclose(
                found, expected, rtol=0, atol=1e-5 if dtype is np.float32 else 1e-11
            )


def test_a_loop_over_what_compiled_code_leaves_is_told():
    X, y, user = np.tile(np.eye(4)[:, :2], (101, 1)), np.arange(404) % 4, np.arange(404) // 4
    with pytest.warns(UserWarning, match="has fitted 101 of 101 models by a loop"):
        pg.fit_many(pg.RankRLSCV(pairs="without_ties"), X, y, by=user)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("estimator", [pg.RankRLS(), pg.PointwiseELM(random_state=0)], ids=repr)
def test_sparse_rows_of_targets_in_any_order_of_queries(estimator, gaps):
    X, y, _, qid, _ = rows_of_users()
    Y = np.column_stack([y, y[::-1], y**2])
    if gaps:
        Y[3, 0] = Y[[5, 9], 1:] = np.nan
    batch = pg.fit_many(estimator, csr_array(X), Y, qid=qid)
    assert not batch.models.alone
    for target in range(3):
        at = np.flatnonzero(~np.isnan(Y[:, target]))
        alone = clone(estimator).fit(X[at], Y[at, target], qid=qid[at])
        np.testing.assert_allclose(batch.coef_[target], alone.coef_, rtol=0, atol=1e-12)


def test_one_set_that_fails_leaves_no_other_to_a_loop():
    X, y, user, _, _ = rows_of_users()
    prior, graded, X_bad, key = pg.RankRLS().fit(X, y, qid=user), y.copy(), X.copy(), user[4]
    graded[4], X_bad[4] = -1, np.nan
    huge, weights, qid = y.copy(), np.ones(len(y)), np.random.default_rng(0).integers(0, 3, len(y))
    huge[4], weights[4] = 2000, 2
    groups = 10 * qid + (np.arange(len(y)) == 4)
    gains = pg.RankRLS(pairs=pg.Pairs(target="gain"))
    for call in (
        lambda: pg.fit_many(pg.RankRLSCV(scoring="ndcg@5"), X, graded, by=user),
        lambda: pg.fit_many(pg.RankRLS(), X_bad, y, by=user, prior=prior),
        lambda: pg.fit_many(pg.RankRLS(), csr_array(X_bad), y, by=user, prior=prior),
        lambda: pg.fit_many(pg.RankSVM(), X_bad, y, by=user, prior=prior),
        lambda: pg.fit_many(gains, X, huge, by=user),
        lambda: pg.fit_many(pg.RankRLS(), X, y, by=user, query_weight=weights),
        lambda: pg.fit_many(pg.RankSVM(), X, y, by=user, qid=qid, query_weight=weights),
        lambda: pg.fit_many(pg.RankRLSCV(), X, y, by=user, qid=qid, groups=groups),
    ):
        with pytest.warns(FitFailedWarning, match=f"first is that of key {key}"):
            batch = call()
        assert not batch.models.alone and sum(error is not None for error in batch.errors_) == 1


def test_weights_of_queries_mean_nothing_for_pairs_of_all_rows():
    X, y, user, _, _ = rows_of_users()
    ranker = pg.RankRLS(pairs=pg.Pairs(scope="global"))
    with pytest.raises(ValueError, match="query_weight must be None: all rows form pairs"):
        pg.fit_many(ranker, X, y, by=user, query_weight=np.full(len(y), 2.0))


@every(rows=[lambda X: X.tolist(), lambda X: X.astype(np.float32), np.asarray])
def test_an_empty_data_set_fails_alone(rows):
    X, y, _, _, _ = rows_of_users()
    with pytest.warns(FitFailedWarning, match="1 of 2 data sets have no model"):
        batch = pg.fit_many(pg.RankRLS(), [(X[:0], y[:0]), (rows(X), y > 1)])
    assert (batch.errors_[0] is None, batch.errors_[1]) == (False, None)


def test_labels_without_a_target_are_refused():
    with pytest.raises(ValueError, match="y must have a column or more"):
        pg.fit_many(pg.RankRLS(), np.ones((3, 2)), np.empty((3, 0)))


@pytest.mark.filterwarnings("ignore:settings are chosen by")
@every(cv=["forward", KFold(2), None], ids=["numbers", "texts"])
def test_groups_have_their_ids_in_fits_alone(cv, ids):
    X, y, user, _, _ = rows_of_users()
    qid = np.random.default_rng(1).integers(0, 8, len(y))
    groups = 30 - qid // 2
    if ids == "texts":
        qid, groups = (np.char.mod("id %d", values).tolist() for values in (qid, groups))
    search = pg.RankRLSCV(cv=cv)
    batch = pg.fit_many(search, X, y, by=user, qid=qid, groups=groups)
    for key in batch.keys:
        at = np.flatnonzero(user == key)
        own = {"qid": [qid[row] for row in at], "groups": [groups[row] for row in at]}
        alone = clone(search).fit(X[at], y[at], **own)
        assert (batch[key].alpha_, batch[key].best_score_) == (alone.alpha_, alone.best_score_)


@every(bad=[np.nan, -np.inf])
def test_one_set_that_is_no_numbers_fails_alone(bad):
    X, y, user, qid, _ = rows_of_users()
    first = user == user[0]
    for estimator in (
        pg.RankRLS(feature_map=pg.RandomFourier(5, gamma=1.0, random_state=0)),
        pg.RankRLS(pairs=pg.Pairs(target="gain")),
    ):
        whole = pg.fit_many(estimator, X, y, by=user)
        rows, labels = X.copy(), y.copy()
        of_labels = estimator.feature_map is None
        rows[[] if of_labels else 3, 1] = bad
        labels[3 if of_labels else []] = bad
        with pytest.warns(FitFailedWarning, match="1 of 7"):
            batch = pg.fit_many(estimator, rows, labels, by=user)
        same = user[3] != batch.keys
        assert (batch.coef_[same] == whole.coef_[same]).all()
    labels = np.where(first & (np.cumsum(first) == 2), np.nan, 1.0 * ~first * y)
    with pytest.warns(FitFailedWarning, match="y must not hold NaN"):
        pg.fit_many(pg.RankRLS(pairs="without_ties"), X, labels, by=user, qid=qid)


def test_folds_that_leave_no_pairs_are_an_error():
    X, y = np.random.default_rng(0).normal(size=(3, 4)), np.array([1.0, 4.0, 3.0])
    with pytest.raises(ValueError, match="training rows of split 0 have no pairs"):
        pg.RankRLSCV([1.0, 10.0], cv=2).fit(X, y)


def test_folds_without_a_ridge_have_the_scores_of_refits():
    rng = np.random.default_rng(1)
    X, y, qid = rng.normal(size=(12, 8)), rng.normal(size=12), np.repeat(np.arange(4), 3)
    search = pg.RankRLSCV([0.0, 1e-3], cv=2, scoring="pairwise_squared_error")
    scores = search.fit(X, y, qid=qid).scores_
    np.testing.assert_allclose(scores, in_form("primal", search).fit(X, y, qid=qid).scores_)


def test_the_highest_grade_is_that_of_each_data_set():
    X, by, qid = (
        np.random.default_rng(0).normal(size=(400, 4)),
        np.arange(400) % 2,
        np.arange(400) % 9,
    )
    y = np.where(by == 0, np.arange(400) // 2 % 2, np.arange(400) // 2 % 5) * 1.0
    for kind in (pg.RankRLSCV, pg.RankSVMCV):
        batch = pg.fit_many(kind([0.01, 1.0, 100.0], scoring="err@5"), X, y, by=by, qid=qid)
        for key in (0, 1):
            own = kind([0.01, 1.0, 100.0], scoring="err@5")
            own.fit(X[by == key], y[by == key], qid=qid[by == key])
            assert batch[key].best_score_ == own.best_score_
            np.testing.assert_array_equal(batch[key].coef_, own.coef_)


def test_time_that_is_over_ends_a_loop_of_fits():
    X, y, user, _, _ = rows_of_users()
    with pg.time_limit(0), pytest.raises(TimeoutError):
        pg.fit_many(pg.RankRLS(feature_map=pg.Kernel("rbf")), X, y, by=user)


def test_sparse_rows_of_several_targets_are_refused_as_elsewhere():
    X, Y = csr_array(np.eye(6)), np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="would make the zeros of a sparse matrix other numbers"):
        pg.fit_many(pg.RankRLS(feature_map="standard"), X, Y)


@pytest.mark.parametrize("model", [pg.RankRLS(), pg.RankRLSCV()])
def test_a_set_without_rows_is_one_that_failed(model):
    sets = [(np.eye(4)[:n], np.arange(float(n))) for n in (4, 0, 3)]
    with pytest.warns(FitFailedWarning, match="1 of 3 data sets have no model"):
        batch = pg.fit_many(model, sets)
    assert [error is None for error in batch.errors_] == [True, False, True]
