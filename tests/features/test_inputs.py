"""Inputs: against scikit-learn's transformers, and rankers against fits to transformed columns."""

import math
import os
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    StandardScaler,
)

import forks
import pairgram as pg
from axes import every
from pairgram import _core
from pairgram._core import column_moments, order_statistics
from pairgram.features.inputs import _weighted_places
from parts.features import fit_inputs
from parts.support import on_threads
from row_value import inputs_of, part, preceded, row_value
from table_sources import scanned

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}
KINDS = [*SCALERS, "quantile", "raw+quantile"]
pytestmark = pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")


def skewed(n, seed=0):
    """Columns of many shapes: even, offset, skewed, of few values, constant, half zeros."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.random(n),
            rng.normal(1e4, 1, n),
            rng.exponential(1, n) ** 6,
            rng.integers(0, 4, n) / 3,
            np.full(n, 3.3),
            np.where(rng.random(n) < 0.6, 0, rng.random(n)),
            2.0 ** -rng.integers(0, 1000, n),
            -np.exp(rng.normal(0, 5, n)),
        ]
    )


@pytest.fixture(scope="module")
def data():
    X, y, qid = pg.make_ranking(25, (2, 14), 6, random_state=0)
    rng = np.random.default_rng(0)
    return X * np.exp(rng.normal(0, 3, 6)) + rng.normal(0, 10, 6), y, qid


def columns(n_rows):
    values = st.one_of(
        st.floats(-1e6, 1e6, allow_subnormal=False),
        st.sampled_from([0.0, 1.0, -2.5]),
        st.floats(-1e-3, 1e-3, allow_subnormal=False),
    )
    return arrays(np.float64, (n_rows, 2), elements=values)


@every(kind=SCALERS, n=[1, 2, 33, 9000])
def test_scalers_are_those_of_scikit_learn(kind, n):
    X = skewed(n)
    other = SCALERS[kind]().fit(X)
    wide = np.vstack([X, 3 * X + 1])
    wanted = other.transform(wide)
    # A mean of scikit-learn is exact to some units in the last place of the largest value.
    noise = 1e-14 * abs(X).max(axis=0) / (other.scale_ if kind == "standard" else 1)
    found = fit_inputs(kind, X).transform(wide)
    assert (abs(found - wanted) <= 1e-12 * np.maximum(1, abs(wanted)) + noise).all()


@given(st.integers(1, 40).flatmap(columns), st.sampled_from(sorted(SCALERS)))
def test_scalers_of_drawn_columns(X, kind):
    wanted = SCALERS[kind]().fit_transform(X)
    found = fit_inputs(kind, X).transform(X)
    if kind == "standard":  # what counts as constant, and digits of tiny squares, may differ
        spread, size = X.std(axis=0), abs(X).max(axis=0)
        usual = spread > np.maximum(1e-9 * size, 1e-140)
        noise = 1e-14 * size[usual] / spread[usual]
        assert (abs(found - wanted)[:, usual] <= 1e-12 * abs(wanted[:, usual]) + noise).all()
    else:
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def quantiles_of_scikit_learn(X):
    """Fit scikit-learn's class, whose quantiles may be a rounding error beside the rows at them."""
    n, n_quantiles = len(X), min(100, len(X))
    fitted = QuantileTransformer(n_quantiles=n_quantiles, subsample=None).fit(X)
    rows, rest = np.divmod((n - 1) * np.arange(n_quantiles), max(1, n_quantiles - 1))
    fitted.quantiles_[rest == 0] = np.sort(X, axis=0)[rows[rest == 0]]
    return fitted


@given(st.integers(1, 300).flatmap(columns))
def test_quantiles_at_atoms_and_of_columns_without_them(X):
    own = fit_inputs("quantile", X)
    other = quantiles_of_scikit_learn(X)
    wanted = other.transform(X)
    found = own.transform(X)
    for j in range(2):
        if len(np.unique(other.quantiles_[:, j])) == len(other.quantiles_):
            assert abs(found[:, j] - wanted[:, j]).max() < 1e-9
        knots = np.unique(other.quantiles_[:, j])
        at = np.repeat(knots[:, None], 2, axis=1)
        assert abs(own.transform(at) - other.transform(at))[:, j].max() <= 1e-12


@pytest.mark.parametrize("n", [2, 99, 100, 101, 5000])
def test_quantiles_are_those_of_scikit_learn(n):
    X = skewed(n)
    own = fit_inputs("quantile", X)
    other = quantiles_of_scikit_learn(X)
    rng = np.random.default_rng(1)
    outside = rng.normal(X.mean(axis=0), 3 * X.std(axis=0), (500, X.shape[1]))
    for rows in (X, outside):
        wanted, found = other.transform(rows), own.transform(rows)
        for j in (0, 1, 2, 7):
            assert abs(found[:, j] - wanted[:, j]).max() <= 1e-12
    for j in range(X.shape[1]):
        at = np.repeat(other.quantiles_[:, [j]], X.shape[1], axis=1)
        assert abs(own.transform(at) - other.transform(at))[:, j].max() <= 1e-12


def test_quantiles_are_continuous_and_rise():
    X = skewed(3000)
    own = fit_inputs("quantile", X)
    for j in range(X.shape[1]):
        grid = np.linspace(X[:, j].min() - 1, X[:, j].max() + 1, 20001)
        found = own.transform(np.repeat(grid[:, None], X.shape[1], axis=1))[:, j]
        assert found.min() == 0.0
        assert found.max() == (1.0 if j != 4 else 0.0)
        assert (np.diff(found) >= -1e-15).all()
    half = own.transform(np.full((1, X.shape[1]), 1e-12))[0, 5]
    assert half < 1e-8  # continuous beside the zeros, where scikit-learn jumps to .6
    three = fit_inputs("quantile", np.repeat([[0.0], [1.0], [2.0]], [251, 500, 253], axis=0))
    assert part(three, "knots").tolist() == [0, 1, 2]
    assert part(three, "values") == pytest.approx([0, 49.5 / 99, 1], abs=1e-12)
    assert three.transform([[-9], [0.5], [2], [9]])[:, 0] == pytest.approx([0, 0.25, 1, 1])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tied_value_has_one_knot(weighted):
    """The exact place of a quantile may be the first or last row of a value."""
    rng = np.random.default_rng(0)
    for n in (*range(2, 110), *range(110, 300, 9)):
        X = rng.integers(0, 3, (n, 2)).astype(float)
        weights = rng.integers(1, 4, n) / 1.0 if weighted else None
        own = fit_inputs("quantile", X, weights)
        columns = np.repeat(X, weights.astype(int), axis=0) if weighted else X
        places, knots, values = len(columns) - 1, [], []
        for column in np.sort(columns, axis=0).T:
            last = min(100, len(columns)) - 1
            exact = []
            for k in range(last + 1):
                below, rest = divmod(places * k, last)
                step = 0 if rest == 0 else (column[below + 1] - column[below]) * rest / last
                exact.append(column[below] + step)
            for knot in sorted(set(np.round(exact, 9))):
                levels = np.flatnonzero(np.round(exact, 9) == knot)
                knots.append(knot)
                ends = 0 in levels, last in levels
                values.append(0 if ends[0] else 1 if ends[1] else levels[[0, -1]].mean() / last)
        assert part(own, "knots") == pytest.approx(knots, abs=1e-9)
        assert part(own, "values") == pytest.approx(values, abs=1e-12)
        whole = np.abs(part(own, "knots") - np.rint(part(own, "knots"))) < 1e-3
        assert (part(own, "knots") == np.rint(part(own, "knots")))[whole].all()


@every(dtype=[np.float64, np.float32], n=[1, 130, 70000])
def test_order_statistics(dtype, n):
    X = skewed(n).astype(dtype)
    rng = np.random.default_rng(2)
    ranks = np.unique(np.append(rng.integers(0, n, 150), [0, n - 1]))
    wanted = np.sort(X, axis=0)[ranks].T.astype(np.float64)
    for threads in (1, 2):
        assert np.array_equal(order_statistics(X, ranks, threads), wanted)
    X[n // 2, 3] = np.nan
    found = order_statistics(X, ranks, 1)
    assert np.isnan(found[3]).all()
    assert np.array_equal(np.delete(found, 3, axis=0), np.delete(wanted, 3, axis=0))


def test_moments_do_not_depend_on_threads():
    X = skewed(20000)
    weights = np.random.default_rng(3).integers(0, 3, 20000).astype(float)
    for v in (None, weights):
        assert np.array_equal(column_moments(X, v, 1), column_moments(X, v, 2))
    repeated = np.repeat(X, weights.astype(int), axis=0)
    assert column_moments(X, weights, 2) == pytest.approx(column_moments(repeated, None, 2))


@every(dtype=[np.float64, np.float32], d=[1, 15, 16, 17, 40])
def test_moments_of_any_number_of_columns(dtype, d):
    rng = np.random.default_rng(d)
    X = (1e3 + rng.standard_normal((5000, d))).astype(dtype)
    weights = rng.integers(0, 3, 5000) * 0.5
    for v in (None, weights):
        rows = X.astype(np.float64) if v is None else X[v > 0].astype(np.float64)
        share = None if v is None else v[v > 0]
        mean = np.average(rows - rows[0], axis=0, weights=share)
        squares = np.average((rows - rows[0] - mean) ** 2, axis=0, weights=share)
        squares *= len(rows) if v is None else v.sum()
        wanted = [rows.min(axis=0), rows.max(axis=0), rows[0], mean, squares]
        assert column_moments(X, v, 2) == pytest.approx(np.stack(wanted), rel=1e-12)
    X[4321, d - 1] = np.nan
    assert np.isnan(column_moments(X, None, 1)[3:, d - 1]).all()
    assert np.isfinite(column_moments(X, None, 1)[3:, : d - 1]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weighted_quantiles_of_many_rows(dtype):
    rng = np.random.default_rng(6)
    X = np.column_stack([skewed(30000), rng.standard_cauchy((30000, 2)), rng.integers(0, 5, 30000)])
    X = X.astype(dtype)
    weights = rng.integers(0, 4, 30000).astype(float)
    repeated = fit_inputs("quantile", np.repeat(X, weights.astype(int), axis=0))
    for own in on_threads((1, 2), lambda: fit_inputs("quantile", X, weights)):
        assert part(own, "ends").tolist() == part(repeated, "ends").tolist()
        assert part(own, "knots") == pytest.approx(part(repeated, "knots"), rel=1e-12, abs=1e-12)
    # Weights that are not whole: between rows of weight 1.5, of which each stands for half a row
    # more than a step, the column is linear.
    X = np.arange(2000.0)[rng.permutation(2000), None]
    own = fit_inputs("quantile", X, np.full(2000, 1.5))
    place = np.linspace(0, 2999, 100)
    row = np.floor(place / 1.5)
    wanted = row + np.maximum(place - 1.5 * row - 0.5, 0.0)
    assert part(own, "knots") == pytest.approx(np.minimum(wanted, 1999), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeated_rows(kind):
    X = skewed(400)
    weights = np.random.default_rng(4).integers(0, 4, 400).astype(float)
    repeated = fit_inputs(kind, np.repeat(X, weights.astype(int), axis=0)).transform(X)
    noise = dict.fromkeys(("rtol", "atol"), 5e-10 if kind == "standard" else 5e-13)
    np.testing.assert_allclose(fit_inputs(kind, X, weights).transform(X), repeated, **noise)
    kept = weights > 0
    zero_or_one = fit_inputs(kind, X, kept.astype(float)).transform(X)
    np.testing.assert_allclose(zero_or_one, fit_inputs(kind, X[kept]).transform(X), **noise)


@every(kind=["quantile", "raw+quantile"], n=[1, 5, 30, 80])
def test_weights_are_repeated_rows_where_quantiles_are_few(kind, n):
    X = skewed(n)
    rng = np.random.default_rng(n)
    weights = rng.integers(1, 4, n).astype(float)
    repeated = fit_inputs(kind, np.repeat(X, weights.astype(int), axis=0))
    for v in (weights, weights / 4, np.append(weights, 0.0)):
        own = fit_inputs(kind, X if len(v) == n else np.vstack([X, X[:1] + 1e9]), v)
        if v.max() >= 1:
            assert part(own, "ends").tolist() == part(repeated, "ends").tolist()
            assert own.transform(X) == pytest.approx(repeated.transform(X), rel=1e-12, abs=1e-12)
        assert (np.diff(own.transform(np.sort(X, axis=0)), axis=0) >= 0).all()
    for v in (np.full(n, 2.5), np.full(n, 0.5), np.full(n, 1e-300), np.full(n, 1e300)):
        assert np.isfinite(fit_inputs(kind, X, v).transform(X)).all()


@pytest.mark.parametrize("unit", [2.0**60, 2.0**-300])
def test_weights_have_any_unit(unit):
    """A sum of weights that is no number of rows is no reason to take columns for constant."""
    rng = np.random.default_rng(0)
    X, weights = 3 + rng.normal(size=(40, 2)), rng.uniform(0.5, 2, 40)
    labels, qid = rng.normal(size=40), np.arange(40) // 4
    model = pg.RankRLS(feature_map="standard", pairs=pg.Pairs(weighting="queries"))
    expected = part(inputs_of(model.fit(X, labels, qid=qid, sample_weight=weights)), "scale")
    frame = {"a": X[:, 0], "b": X[:, 1], "y": labels, "q": qid, "w": weights * unit}
    table = pg.scan(pd.DataFrame(frame), label="y", qid="q", weight="w")
    for fitted in (model.fit(X, labels, qid=qid, sample_weight=frame["w"]), model.fit(table)):
        np.testing.assert_allclose(part(inputs_of(fitted), "scale"), expected, rtol=1e-12)


def test_a_row_of_weight_0_leaves_no_rounding_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    odd, weights = np.vstack([np.full((1, 2), 1e15), X]), np.append(0.0, np.ones(60))
    own, wanted = fit_inputs("standard", odd, weights), fit_inputs("standard", X)
    assert part(own, "centre") == pytest.approx(part(wanted, "centre"), rel=1e-14)
    assert part(own, "scale") == pytest.approx(part(wanted, "scale"), rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_rows_agree_with_float64_rows(kind):
    X = np.ascontiguousarray(skewed(3000)[:, [0, 1, 3, 5]], np.float32)
    single, double = fit_inputs(kind, X), fit_inputs(kind, X.astype(np.float64))
    for name, array in single.inputs_.arrays.items():
        np.testing.assert_allclose(array, double.inputs_.arrays[name], rtol=1e-13, err_msg=name)
    found, wanted = single.transform(X), double.transform(X.astype(np.float64))
    assert found.dtype == np.float32
    assert (abs(found - wanted) <= np.maximum(1e-6, 1e-6 * abs(wanted))).all()


MODELS = [
    pg.RankRLS(),
    pg.RankRLS(pairs=None),
    pg.RankRLS(pairs="gain_difference", scale=True),
    pg.RankRLS(pairs=pg.Pairs(scope="global", weighting="documents")),
    pg.RankRLS(feature_map=pg.RandomNodes(30, random_state=0)),
    pg.RankRLS(feature_map=pg.RandomNodes(9, "linear", random_state=0), pairs=None),
    pg.RankRLS(feature_map=FunctionTransformer(np.tanh)),
    pg.RankRLS(feature_map=pg.Kernel("laplacian")),
    pg.RankRLSCV(pairs=["with_ties", "without_ties"]),
    pg.RankRLSCV(pairs=None, cv=pg.QueryKFold(3)),
    pg.RankRLSCV(feature_map=[pg.Kernel("rbf", gamma=g) for g in [0.1, 0.3]]),
    pg.RankRLSCV(feature_map=pg.RandomFourier(30, random_state=0)),
    pg.RankRLSCV(feature_map=pg.Nystroem(n_components=10, random_state=0)),
    pg.PairwiseELM(random_state=0),
    pg.PairwiseELMCV(random_state=0),
    pg.PointwiseELM(feature_map=pg.Kernel("polynomial")),
    pg.PointwiseELMCV(n_nodes=40, random_state=0),
    pg.ELMRank(random_state=0),
    pg.ELMRankCV(Cs=[1.0, 8.0], n_estimators=2, random_state=0),
    pg.RankSVM(),
    pg.RankSVM(feature_map=pg.Nystroem(n_components=10, random_state=0)),
    pg.RankSVMCV([0.1, 1.0], feature_map=[None, pg.RandomFourier(20, random_state=0)], cv=2),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@every(kind=["standard", "raw+quantile"])
def test_rankers_are_those_of_transformed_columns(model, kind, data, tmp_path):
    X, y, qid = data
    own = preceded(model, kind).fit(X, y, qid=qid)
    assert inputs_of(own).kind == kind
    columns = inputs_of(own).transform(X)
    other = clone(model).fit(columns, y, qid=qid)
    scores, wanted = own.predict(X), other.predict(columns)
    assert abs(scores - wanted).max() <= 1e-9 * abs(wanted).max()
    assert own.coef_ == pytest.approx(other.coef_, rel=1e-7, abs=1e-9 * abs(other.coef_).max())
    if hasattr(own, "best_score_"):
        assert own.best_score_ == pytest.approx(other.best_score_, abs=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(own)).predict(X), scores)
    assert np.array_equal(own.predict(X[3:4]), scores[3:4])
    if isinstance(model.get_params().get("feature_map"), FunctionTransformer):
        return
    own.save(tmp_path / "model")
    loaded = pg.load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), scores)
    assert inputs_of(loaded).kind == kind


SEARCHES = [
    pg.RankRLSCV(),
    pg.RankRLSCV(feature_map=[pg.Kernel("rbf", gamma=g) for g in [0.1, 0.5]]),
    pg.RankRLSCV([9.0, 1.0, 0.1], feature_map=pg.RandomNodes(20, random_state=0)),
    pg.PairwiseELMCV([0.1, 1.0], n_nodes=20, random_state=0),
    pg.ELMRankCV(Cs=[2.0, 8.0], n_nodes=15, random_state=0),
    pg.RankSVMCV([0.1, 1.0], feature_map=[None, pg.RandomFourier(20, random_state=0)], cv=2),
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("valid", [False, True])
def test_searches_choose_inputs(search, valid, data, tmp_path):
    X, y, qid = data
    kinds = [None, "standard", "raw+quantile"]
    train = qid < 18 if valid else np.ones(len(y), bool)
    named = {"validation": (X[~train], y[~train], qid[~train])} if valid else {}
    if valid:
        search = clone(search).set_params(cv=None)
    found = (
        clone(search)
        .set_params(feature_map=row_value(kinds, search.feature_map))
        .fit(X[train], y[train], qid=qid[train], **named)
    )
    alone = [
        preceded(search, kind).fit(X[train], y[train], qid=qid[train], **named) for kind in kinds
    ]
    means = np.concatenate([one.cv_results_["mean_test_score"] for one in alone])
    assert found.cv_results_["mean_test_score"] == pytest.approx(means, abs=1e-12)
    chosen = alone[found.best_index_ // (len(means) // len(kinds))]
    assert (inputs_of(found) and inputs_of(found).kind) == (
        inputs_of(chosen) and inputs_of(chosen).kind
    )
    assert found.best_score_ == pytest.approx(chosen.best_score_, abs=1e-12)
    assert found.predict(X) == pytest.approx(chosen.predict(X), rel=1e-9)
    found.save(tmp_path / "model")
    assert np.array_equal(pg.load_model(tmp_path / "model").predict(X), found.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        pg.RankRLS(),
        pg.RankRLSCV(pairs="without_ties"),
        pg.RankSVM(),
        pg.RankRLS(feature_map=pg.Kernel("rbf")),
    ],
)
def test_sparse_rows_take_maxabs(model, data):
    X, y, qid = data
    X = np.where(X > 3, X, 0)
    own = clone(model).set_params(feature_map="maxabs")
    sparse, dense = (clone(own).fit(rows, y, qid=qid) for rows in (sp.csr_array(X), X))
    for rows in (X, sp.csr_array(X)):
        for one in (sparse, dense):
            assert one.predict(rows) == pytest.approx(sparse.predict(X), rel=1e-6, abs=1e-9)
    assert sp.issparse(inputs_of(sparse).transform(sp.csr_array(X)))


def test_wide_sparse_rows_stay_sparse():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 200_000), density=1e-4, format="csr", random_state=rng)
    y, qid = rng.integers(0, 3, 60), np.arange(60) // 10
    model = pg.RankRLS(feature_map="maxabs").fit(X, y, qid=qid)
    scaled = MaxAbsScaler().fit_transform(X)
    wanted = pg.RankRLS().fit(scaled, y, qid=qid).predict(scaled)
    assert model.predict(X) == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_other_names_are_refused(kind, data, tmp_path):
    X, y, qid = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    fits = [
        pg.RankRLS(feature_map=kind),
        pg.RankRLSCV(feature_map=[kind, None]),
        pg.ELMRank(feature_map=kind, n_nodes=5),
    ]
    models = [model.fit(frame, y, qid=qid) for model in fits]
    models[0].save(tmp_path / "model")
    models += [pg.load_model(tmp_path / "model"), pickle.loads(pickle.dumps(models[0]))]
    for model in models:
        if inputs_of(model) is None:
            continue
        columns = inputs_of(model).transform(X)  # an array has no names
        assert np.array_equal(inputs_of(model).transform(frame), columns)
        with pytest.raises(ValueError, match="feature names should match"):
            inputs_of(model).transform(frame[list("bacdef")])
    assert np.array_equal(
        inputs_of(models[0]).transform(pd.DataFrame(X)), inputs_of(models[0]).transform(X)
    )
    unnamed = inputs_of(pg.RankRLS(feature_map=kind).fit(X, y, qid=qid))
    assert np.array_equal(unnamed.transform(frame), unnamed.transform(X))


def test_a_column_of_a_huge_offset_keeps_its_digits(data):
    X, y, qid = data
    moved = X.copy()
    moved[:, 0] = 2.0**40 + np.round(X[:, 0] * 64) / 64
    still = moved.copy()
    still[:, 0] -= 2.0**40
    for model in (
        pg.RankRLSCV(),
        pg.RankRLS(feature_map=pg.RandomNodes(20, random_state=0)),
        pg.RankSVM(),
    ):
        for kind in ("standard", "minmax", "quantile"):
            one, other = (
                preceded(model, kind).fit(rows, y, qid=qid).predict(rows) for rows in (moved, still)
            )
            assert one == pytest.approx(other, rel=1e-3, abs=1e-3 * abs(other).max())


def test_the_warning_of_unlike_columns_names_inputs(data):
    X, y, qid = data
    model = pg.RankRLS(feature_map=pg.RandomNodes(20, random_state=0))
    odd = X * [1e6, 1, 1, 1, 1, 1]
    with pytest.warns(UserWarning, match="feature_map='standard'"):
        model.fit(odd, y, qid=qid)
    preceded(model, "standard").fit(odd, y, qid=qid)  # warnings are errors here


def distance(value, exact):
    return abs(float(Fraction(float(value)) - exact))


@pytest.mark.parametrize("offset", [1e4, 1e8, 1e10])
def test_scales_of_a_column_with_an_offset_are_exact(offset):
    X = np.random.default_rng(0).normal(offset, 1, (3000, 1))
    values = [Fraction(x) for x in X[:, 0].tolist()]
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / len(values)
    own, other = fit_inputs("standard", X), StandardScaler().fit(X)
    # Where the two differ, it is by the rounding of scikit-learn's mean.
    assert distance(part(own, "centre")[0], mean) <= 0.51 * np.spacing(offset)
    assert distance(part(own, "centre")[0], mean) <= distance(other.mean_[0], mean)
    assert part(own, "scale")[0] == pytest.approx(math.sqrt(variance), rel=1e-14)
    labels = np.arange(3000.0)
    parts = scanned(*((X[i : i + 99], labels[i : i + 99]) for i in range(0, 3000, 99)))
    of_table = inputs_of(
        pg.RankRLS(feature_map="standard", pairs=pg.Pairs(scope="global")).fit(parts)
    )
    assert distance(part(of_table, "centre")[0], mean) <= 0.51 * np.spacing(offset)
    assert part(of_table, "scale")[0] == pytest.approx(math.sqrt(variance), rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_order_statistics_of_crowded_columns(dtype):
    rng = np.random.default_rng(0)
    n = 40_000
    X = np.column_stack(
        [
            *(rng.integers(0, k, n) for k in (2, 5, 30, 300)),
            *(np.where(rng.random(n) < p, 0.0, rng.normal(0, 1, n)) for p in (0.1, 0.6, 0.99)),
            np.where(rng.random(n) < 0.6, 1e-9, np.exp(rng.normal(0, 20, n))),
            *np.exp(rng.normal(0, 8, (40, n))),
            np.where(np.arange(n) == 777, 1e300 if dtype == np.float64 else 1e30, rng.random(n)),
        ]
    ).astype(dtype)
    ranks = np.unique(np.append(np.linspace(0, n - 1, 100).astype(int), rng.integers(0, n, 60)))
    wanted = np.sort(X, axis=0)[ranks].T.astype(np.float64)
    for threads in (1, 2):
        assert np.array_equal(order_statistics(X, ranks, threads), wanted)


RISE_OF_A_FIT = """
import os, re
import numpy as np
from pairgram import RankRLS

def memory(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

rng = np.random.default_rng(0)
X, y, qid = rng.random((60_000, 100)), rng.integers(0, 3, 60_000), np.arange(60_000) // 40
for inputs in (None, "standard", "raw+quantile"):
    if not os.fork():
        model = RankRLS(feature_map=inputs)
        model.fit(X[:4000], y[:4000], qid=qid[:4000])
        open("/proc/self/clear_refs", "w").write("5")
        before = memory("VmRSS")
        model.fit(X, y, qid=qid)
        print((memory("VmHWM") - before) / X.nbytes, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux' /proc")
def test_resident_memory_rises_no_more_than_of_a_plain_fit(tmp_path):
    forks.start(forks.in_folder(tmp_path) + RISE_OF_A_FIT).join()
    plain, *rises = map(float, (tmp_path / "printed").read_text().split())
    assert len(rises) == 2
    assert max(rises) < plain + 0.25, (plain, rises)


def test_no_row_is_copied():
    import tracemalloc

    rng = np.random.default_rng(0)
    X, y, qid = rng.random((40_000, 60)), rng.integers(0, 3, 40_000), np.arange(40_000) // 40
    for kind in KINDS:
        tracemalloc.start()
        pg.RankRLS(feature_map=kind).fit(X, y, qid=qid)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < X.nbytes / 4


@pytest.mark.parametrize("kind", KINDS)
def test_priors_belong_to_the_columns_after_inputs(kind, data):
    X, y, qid = data
    first = pg.RankRLS(10.0, feature_map=kind).fit(X, y, qid=qid)
    columns = inputs_of(first).transform(X)
    for prior in (first.coef_, FrozenEstimator(first)):
        for model in (pg.RankRLS(1e9, prior=prior), pg.RankSVM(1e-9, prior=prior)):
            found = preceded(model, kind).fit(X, y, qid=qid)
            wanted = clone(model).set_params(prior=first.coef_).fit(columns, y, qid=qid)
            scores = found.predict(X) - wanted.predict(columns)
            assert np.ptp(scores) < 1e-6 * np.ptp(wanted.predict(columns))
            assert np.corrcoef(found.predict(X), first.predict(X))[0, 1] > 0.999
    other = pg.RankRLS(1e9, prior=FrozenEstimator(first)).fit(X, y, qid=qid)  # of other columns
    assert np.corrcoef(other.predict(X), first.predict(X))[0, 1] > 0.999
    search = pg.RankRLSCV([1e9], prior=FrozenEstimator(first), feature_map=[None, kind])
    search.fit(X, y, qid=qid)
    assert np.corrcoef(search.predict(X), first.predict(X))[0, 1] > 0.999


@pytest.mark.parametrize(("kind", "sparse"), [*((k, False) for k in KINDS), ("maxabs", True)])
@pytest.mark.parametrize("held", [False, True])
def test_searches_take_a_prior_of_the_columns_of_one_kind(kind, held, sparse, data):
    X, y, qid = data
    rows = sp.csr_array(X) if sparse else X
    first = pg.RankRLS(10.0, feature_map=kind).fit(rows, y, qid=qid)
    columns = inputs_of(first).transform(rows)
    train = np.flatnonzero(qid < 18)
    for search in (pg.RankSVMCV([1e-6, 1e-3]), pg.RankRLSCV([1.0, 1e3])):
        for prior in (first.coef_, FrozenEstimator(first)):
            own = clone(search).set_params(feature_map=kind, prior=prior)
            other = clone(search).set_params(prior=first.coef_)
            if not held:
                own.fit(rows, y, qid=qid)
                other.fit(columns, y, qid=qid)
            else:
                made = fit_inputs(kind, rows[train]).transform(rows)
                valid = np.flatnonzero(qid >= 18)
                for model, X_of in ((own.set_params(prior=first.coef_), rows), (other, made)):
                    model.fit(
                        X_of[train],
                        y[train],
                        qid=qid[train],
                        validation=(X_of[valid], y[valid], qid[valid]),
                    )
            assert own.best_score_ == pytest.approx(other.best_score_, abs=1e-12)
            scores = other.predict(columns if not held else made)
            assert own.predict(rows) == pytest.approx(scores, abs=1e-6 * np.ptp(scores))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_columns_after_inputs(kind, data):
    X, y, qid = data
    model = pg.RankRLS(feature_map=kind).fit(X, y, qid=qid)
    columns = inputs_of(model).transform(X)
    other = pg.RankRLS().fit(columns, y, qid=qid)
    for rows, others in (((), ()), ((X,), (columns,))):
        named = {"qid": qid} if rows else {}
        table, wanted = model.column_weights(*rows, **named), other.column_weights(*others, **named)
        assert table["importance"] == pytest.approx(wanted["importance"], rel=1e-6, abs=1e-12)
    assert len(set(table["name"])) == columns.shape[1]
    offset = model.predict(X) - model.contributions(X).sum(axis=1)
    assert abs(offset).max() < 1e-9 * abs(model.predict(X)).max()


@pytest.mark.parametrize("kind", ["maxabs", "standard", "raw+quantile"])
def test_files_with_wrong_inputs_are_refused(kind, data, tmp_path):
    X, y, qid = data
    pg.RankRLS(feature_map=kind).fit(X, y, qid=qid).save(tmp_path / "model")
    model = pg.load_model(tmp_path / "model")
    for name, array in inputs_of(model).inputs_.arrays.items():
        for wrong in (array[:-1], np.full_like(array, -1), array[::-1].copy()):
            if kind == "standard" and (wrong.shape == array.shape and name == "inputs_centre"):
                continue
            if kind != "raw+quantile" and np.array_equal(np.sort(wrong), np.sort(array)):
                continue
            if name == "inputs_values" and wrong.shape == array.shape:
                continue
            odd = pg.load_model(tmp_path / "model")
            inputs_of(odd).inputs_.arrays[name] = wrong
            with pytest.raises(ValueError, match=r"inputs|features"):
                odd.save(tmp_path / "odd")


def test_constraints_are_those_of_the_columns_after_inputs(data):
    X, y, qid = data
    for kind in KINDS:
        for model in (
            pg.RankRLS(constraint=pg.Positive()),
            pg.RankRLSCV([0.1, 10.0], constraint=pg.ElasticNet(0.5)),
        ):
            own = preceded(model, kind).fit(X, y, qid=qid)
            columns = inputs_of(own).transform(X)
            other = clone(model).fit(columns, y, qid=qid)
            assert own.predict(X) == pytest.approx(other.predict(columns), rel=1e-6, abs=1e-8)
    few = pg.RankRLS(constraint=pg.MaxNonzero(2), feature_map="quantile").fit(X, y, qid=qid)
    assert np.count_nonzero(few.coef_) == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_order_statistics_behind_equal_values_of_a_crowded_cell(dtype):
    """Zeros and far smaller numbers than the grid tells apart, which no row of a sample holds."""
    rng = np.random.default_rng(0)
    n = 40_000
    x = np.where(rng.random(n) < 0.7, 0.0, rng.random(n))
    tiny = (rng.random(n) < 0.2) & (np.arange(n) % -(-n // 256) > 0)
    x[tiny] = 1e-9 * (1 + rng.random(tiny.sum()))
    X = x.astype(dtype)[:, None]
    n_zeros = int((X == 0).sum())
    assert n_zeros > n / 2
    for rank in (0, n_zeros - 1, n_zeros, n_zeros + 1, n_zeros + 100, n_zeros + tiny.sum() - 1):
        wanted = np.partition(X[:, 0], rank)[rank]
        assert order_statistics(X, np.array([rank]), 1).tolist() == [[wanted]]


def test_places_within_rows_of_small_weights():
    """A row of weight w reaches from the weight before it to that and w."""
    x, weights = np.array([3.0, 0.0, 4.0]), np.array([0.5, 0.5, 2.0])
    places = np.array([0.0, 0.25, 0.5, 0.625, 1.0, 1.5, 2.5])
    below, above, share = _weighted_places(weights, places, x)
    assert below.tolist() == [0, 0, 3, 3, 4, 4, 4]
    assert above.tolist() == [3, 3, 4, 4, 4, 4, 4]
    assert share.tolist() == [0, 0.5, 0, 0.25, 0, 0, 0.5]


def test_columns_of_what_is_not_finite_are_nan():
    knots, ends = np.array([0.0, 1.0, 4.0]), np.array([3])
    columns = _core.InputColumns.functions(knots, np.array([0.0, 0.5, 1.0]), ends, False)
    rows = np.array([-1.0, 0.5, 2.5, 9.0, np.nan, np.inf, -np.inf])[:, None]
    made = _core.NodeMap64.after_columns(columns).map(rows, 1)[:, 0]
    np.testing.assert_array_equal(made, [0, 0.25, 0.75, 1, np.nan, np.nan, np.nan])


def test_sparse_rows_of_float32_are_not_rounded_again():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 12)) < 0.1, rng.normal(size=(300, 12)), 0.0)
    X[:, 0] = 1e5 + rng.normal(size=300)
    X = X.astype(np.float32)
    y, qid = rng.integers(0, 4, 300), np.arange(300) // 20
    model = pg.RankRLS(1e-3, scale=True, feature_map="maxabs")
    wanted = model.fit(X.astype(np.float64), y, qid=qid).coef_.copy()
    found = model.fit(sp.csr_array(X), y, qid=qid).coef_
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


@pytest.mark.parametrize("inputs", ["standard", "minmax", "maxabs"])
def test_columns_whose_squares_vanish_are_refused(inputs):
    X, y, qid = pg.make_ranking(20, 8, 3, random_state=0)
    with pytest.raises(ValueError, match="too small"):
        pg.RankRLS(feature_map=inputs).fit(X * 1e-165, y, qid=qid)
    constant = pg.RankRLS(feature_map=inputs).fit(np.full_like(X, 3.0), y, qid=qid)
    assert not constant.coef_.any()
