"""Pairs of all rows of a table whose weights depend on two labels, against the same on arrays."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import pairgram
from axes import every
from row_value import row_value


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


def sent(X, y, qid=None):
    """The same rows in Dask, which sends tasks and results as bytes."""
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X).rename(columns=str).assign(y=y, q=qid)
    frame = dask.from_pandas(frame if qid is not None else frame.drop(columns="q"), npartitions=4)
    return pairgram.scan(frame, label="y", qid=None if qid is None else "q")


def check(table, X, y, weights=None, *, qid=None, atol=1e-12, scope="global", **settings):
    """The ranker of a table is that of the same rows as arrays."""
    pairs = pairgram.Pairs.of(settings.pop("pairs", "with_ties"))
    ranker = pairgram.RankRLS(pairs=dataclasses.replace(pairs, scope=scope), **settings)
    expected = ranker.fit(X, y, qid=qid, sample_weight=weights).coef_.copy()
    scale = np.abs(expected).max()
    assert scale > 0
    np.testing.assert_allclose(ranker.fit(table).coef_, expected, rtol=0, atol=atol * scale)


@every(pairs=PAIRS, weighting=["pairs", "documents", "queries"])
def test_the_model_is_that_of_arrays(rows, pairs, weighting):
    X, y, weights = rows
    named = {
        "pairs": pairgram.Pairs(pairs, weighting=weighting),
        "alpha": 0.1 if weighting == "pairs" else 1e-4,
    }
    check(table_of(X, y), X, y, **named)
    named["pairs"] = dataclasses.replace(named["pairs"], target="gain")
    check(table_of(X, y, weights), X, y, weights, **named, scale=True)


@pytest.mark.parametrize("pairs", PAIRS)
def test_a_large_offset_costs_no_digits(rows, pairs):
    X, y, weights = rows
    X = np.round(X * 2.0**20) / 2.0**20  # so that the shifted rows are exact
    far = X + np.array([1e6, -1e6, 0, 0, 0, 0])
    check(table_of(far, y, weights), X, y, weights, pairs=pairs, alpha=1.0)


def test_a_feature_that_does_not_vary_has_no_weight(rows):
    X, y, _ = rows
    X = np.column_stack([X, np.full(len(y), 0.1)])
    ranker = pairgram.RankRLS(pairs=pairgram.Pairs("gain_difference", scope="global"), scale=True)
    model = ranker.fit(table_of(X, y))
    assert model.coef_[-1] == 0 and (model.coef_[:-1] != 0).all()


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-10), (np.float32, 1e-3)])
def test_maps_and_inputs(rows, dtype, atol):
    X, y, weights = rows
    X, nodes = X.astype(dtype), pairgram.RandomNodes(30, random_state=0)
    named = {
        "pairs": pairgram.Pairs("label_difference", weighting="queries"),
        "alpha": 1e-3,
        "atol": atol,
    }
    table = table_of(X, y, weights)
    check(table, X, y, weights, feature_map=row_value("standard", nodes), **named)


def test_a_prior_is_taken_from_the_targets(rows):
    prior = np.linspace(-1, 1, rows[0].shape[1])
    check(table_of(*rows), *rows, pairs="without_ties", prior=prior, alpha=10.0)


@pytest.mark.parametrize("pairs", ["gain_difference", lambda a, b: (a - b) ** 2])
def test_partitions_that_are_worked_on_elsewhere(rows, pairs):
    X, y, _ = rows
    check(sent(X, y), X, y, pairs=pairs)


def test_a_callable_within_queries_is_sent_too():
    X, y, qid = pairgram.make_ranking(30, 20, 6, random_state=0)
    table = sent(X, y, qid)
    check(table, X, y, qid=qid, scope="query", pairs=lambda a, b: np.abs(a - b) ** 1.5)


def test_a_search_takes_a_validation_table(rows):
    X, y, _ = rows
    train, other = slice(0, 800), slice(800, None)
    settings = {"pairs": pairgram.Pairs("gain_difference", scope="global"), "scoring": "kendall"}
    settings["alphas"] = np.geomspace(1e-2, 1e6, 5)
    table, held = table_of(X[train], y[train]), table_of(X[other], y[other])
    model = pairgram.RankRLSCV(**settings).fit(table, validation=held)
    arrays = pairgram.RankRLSCV(**settings).fit(X[train], y[train], validation=(X[other], y[other]))
    assert model.alpha_ == arrays.alpha_
    atol = 1e-12 * np.abs(arrays.coef_).max()
    np.testing.assert_allclose(model.coef_, arrays.coef_, rtol=0, atol=atol)


def test_pairs_with_ties_take_any_number_of_labels():
    y = np.arange(1100.0)
    table = table_of(y[:, None] ** 2, y)
    pairgram.RankRLS(pairs=pairgram.Pairs(scope="global")).fit(table)


def test_labels_that_change_between_passes_are_refused(rows):
    X, y, _ = rows
    n_calls = 0

    def read():
        nonlocal n_calls
        n_calls += 1
        yield X, y + 0.5 * (n_calls > 4)

    ranker = pairgram.RankRLS(pairs=pairgram.Pairs("without_ties", scope="global"))
    with pytest.raises(ValueError, match=r"the table changed .* new label"):
        table = pairgram.scan(read)
        for _ in range(5):
            ranker.fit(table)
