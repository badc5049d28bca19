"""Pairs of all rows of a table whose weights depend on two labels, against the same on arrays."""

import numpy as np
import pandas as pd
import pytest

import pairgram


def by_distance(a, b):
    """A weight of pairs that also counts rows of one label."""
    return np.sqrt(np.abs(a - b)) + 0.5 * (a == b)


PAIRS = ["without_ties", "gain_difference", "label_difference", by_distance]


@pytest.fixture(scope="module")
def rows():
    X, y, _ = pairgram.make_ranking(60, 20, 6, random_state=0)
    rng = np.random.default_rng(0)
    weights = rng.random(len(y))
    weights[::7] = 0
    return X, y, weights


def table_of(X, y, weights=None, cuts=(1, 2, 300, 301, 1000)):
    """A table in pieces, of which the first have a row each."""
    pieces = np.split(np.arange(len(y)), cuts)

    def read():
        for piece in pieces:
            own = None if weights is None else weights[piece]
            yield X[piece], y[piece], None, own

    return pairgram.scan(read)


def frame_of(X, y, n_partitions):
    """The same rows in Dask, which sends tasks and results as bytes."""
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    return pairgram.scan(dask.from_pandas(frame, npartitions=n_partitions, sort=False), label="y")


def same(model, expected, atol=1e-12):
    scale = np.abs(expected.coef_).max()
    assert scale > 0
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=atol * scale)


@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
@pytest.mark.parametrize("pairs", PAIRS)
def test_the_model_is_that_of_arrays(rows, pairs, weighting):
    X, y, weights = rows
    alpha = 0.1 if weighting == "pairs" else 1e-4
    settings = {"pairs": pairs, "scope": "global", "weighting": weighting, "alpha": alpha}
    for own, scale, target in ((None, False, "label"), (weights, True, "gain")):
        ranker = pairgram.RankRLS(**settings, scale=scale, target=target)
        expected = ranker.fit(X, y, sample_weight=own).coef_.copy()
        found = ranker.fit(table_of(X, y, own)).coef_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("pairs", PAIRS)
def test_a_large_offset_costs_no_digits(rows, pairs):
    X, y, weights = rows
    X = np.round(X * 2.0**20) / 2.0**20  # so that the shifted rows are exact
    ranker = pairgram.RankRLS(pairs=pairs, scope="global", alpha=1.0)
    expected = ranker.fit(X, y, sample_weight=weights).coef_.copy()
    X[:, 0] += 1e6
    X[:, 1] -= 1e6
    found = ranker.fit(table_of(X, y, weights)).coef_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_a_feature_that_does_not_vary_has_no_weight(rows):
    X, y, _ = rows
    X = np.column_stack([X, np.full(len(y), 0.1)])
    ranker = pairgram.RankRLS(pairs="gain_difference", scope="global", scale=True)
    model = ranker.fit(table_of(X, y))
    assert model.coef_[-1] == 0 and (model.coef_[:-1] != 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maps_and_inputs(rows, dtype):
    X, y, weights = rows
    X = X.astype(dtype)
    nodes = pairgram.RandomNodes(30, random_state=0)
    settings = {
        "pairs": "label_difference",
        "scope": "global",
        "weighting": "queries",
        "alpha": 1e-3,
    }
    model = pairgram.RankRLS(feature_map=nodes, inputs="standard", **settings)
    model.fit(table_of(X, y, weights))
    arrays = pairgram.RankRLS(feature_map=nodes, inputs="standard", **settings)
    arrays.fit(X, y, sample_weight=weights)
    same(model, arrays, 1e-10 if dtype is np.float64 else 1e-3)


def test_a_prior_is_taken_from_the_targets(rows):
    X, y, weights = rows
    prior = np.linspace(-1, 1, X.shape[1])
    ranker = pairgram.RankRLS(pairs="without_ties", scope="global", prior=prior, alpha=10.0)
    expected = ranker.fit(X, y, sample_weight=weights).coef_.copy()
    found = ranker.fit(table_of(X, y, weights)).coef_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("pairs", ["gain_difference", lambda a, b: (a - b) ** 2])
def test_partitions_that_are_worked_on_elsewhere(rows, pairs):
    X, y, _ = rows
    model = pairgram.RankRLS(pairs=pairs, scope="global").fit(frame_of(X, y, 4))
    same(model, pairgram.RankRLS(pairs=pairs, scope="global").fit(X, y))
    assert model.pairs is pairs


def test_a_callable_within_queries_is_sent_too():
    X, y, qid = pairgram.make_ranking(30, 20, 6, random_state=0)
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X).rename(columns=str).assign(y=y, q=qid)
    frame = dask.from_pandas(frame, npartitions=4, sort=False)
    ranker = pairgram.RankRLS(pairs=lambda a, b: np.abs(a - b) ** 1.5)
    found = ranker.fit(pairgram.scan(frame, label="y", qid="q")).coef_.copy()
    expected = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_a_search_takes_a_validation_table(rows):
    X, y, _ = rows
    train, other = slice(0, 800), slice(800, None)
    alphas = np.geomspace(1e-2, 1e6, 5)
    settings = {
        "scope": "global",
        "pairs": "gain_difference",
        "alphas": alphas,
        "scoring": "kendall",
    }
    table, held = table_of(X[train], y[train]), table_of(X[other], y[other])
    model = pairgram.RankRLSCV(**settings).fit(table, validation=held)
    arrays = pairgram.RankRLSCV(**settings).fit(X[train], y[train], validation=(X[other], y[other]))
    assert model.alpha_ == arrays.alpha_
    same(model, arrays)


def test_too_many_labels_are_refused():
    y = np.arange(1100.0)
    table = table_of(y[:, None] ** 2, y)
    pairgram.RankRLS(scope="global").fit(table)  # "with_ties" takes any labels


def test_labels_that_change_between_passes_are_refused(rows):
    X, y, _ = rows
    n_calls = 0

    def read():
        nonlocal n_calls
        n_calls += 1
        yield X, y + 0.5 * (n_calls > 4)

    ranker = pairgram.RankRLS(scope="global", pairs="without_ties")
    with pytest.raises(ValueError, match=r"the table changed .* new label"):
        table = pairgram.scan(read)
        for _ in range(5):
            ranker.fit(table)
