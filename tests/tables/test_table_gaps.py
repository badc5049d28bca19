"""Missing values of tables: means, and medians of the rows that are drawn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone

from pairgram import Fill, RankRLS, RankRLSCV
from row_value import fill_of, row_value
from table_sources import Rows, cut_table, make_rows


def with_gaps(rows, share=0.2, seed=0):
    X = rows.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return replace(rows, X=X)


def table_of(rows, borders=(), ends=(), weight=None):
    names = {"label": "label", "qid": "query", "weight": weight, "features": rows.names}
    return cut_table(rows.frame, borders, ends, **names)


def median_of(X, weights, k):
    """Repeat every row as often as four times its weight says, which is whole."""
    known = ~np.isnan(X[:, k]) & (weights > 0)
    return np.median(np.repeat(X[known, k], (4 * weights[known]).astype(int)))


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("missing", ["zero", "mean", "median"])
def test_arrays_and_tables_take_the_same_values(missing, weight):
    rows = with_gaps(make_rows())
    table = table_of(rows, (3, 60, 300), (1, 2, 100, 299), weight=weight)
    given = None if weight is None else rows.weight
    for ranker in (
        RankRLS(feature_map=row_value(fill=missing)),
        RankRLSCV(feature_map=row_value("standard", fill=missing)),
    ):
        model = ranker.fit(table)
        want = clone(ranker).fit(rows.X, rows.y, qid=rows.qid, sample_weight=given)
        np.testing.assert_allclose(fill_of(model), fill_of(want), rtol=1e-13)
        np.testing.assert_allclose(model.predict(table), want.predict(rows.X), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.booleans(),
    st.sampled_from(["normal", "few values", "heavy"]),
)
def test_medians_of_tables_are_exact(seed, weighted, kind):
    rows = make_rows(n_queries=30, n_features=5, seed=seed)
    X = {"normal": rows.X, "few values": np.round(rows.X / 4), "heavy": np.exp(3 * rows.X)}[kind]
    rows = with_gaps(Rows(X, rows.y, rows.qid, rows.weight), seed=seed)
    rows.X[:, 1] = np.where(np.arange(len(rows.X)) % 37 == 5, rows.X[:, 0], np.nan)
    rows.X[5, 1] = 1.0
    weights = rows.weight if weighted else np.ones(len(rows.X))
    weights[5] = 1.0
    table = table_of(rows, (50, 200), (20, 210), weight="w" if weighted else None)
    want = [median_of(rows.X, weights, k) for k in range(5)]
    found = table.filled("median").layout.fill
    np.testing.assert_allclose(found, want, rtol=1e-14)


def test_medians_of_many_rows_are_those_of_some_that_are_drawn(set_limits):
    set_limits(sample_rows=60)
    tables = [table_of(make_rows(), borders) for borders in ((), (3, 60))]
    found = [table.filled("median").layout.fill for table in tables]
    np.testing.assert_array_equal(found, [np.median(tables[0].sample(60).rows.X, axis=0)] * 2)


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_a_column_without_values_is_zero_with_a_warning(missing):
    rows = with_gaps(make_rows())
    rows.X[:, 2] = np.nan
    table = table_of(rows, (60,), ())
    with pytest.warns(UserWarning, match=f"column 'f2' of X has no value .* of the {missing}: "):
        model = RankRLS(feature_map=row_value(fill=missing)).fit(table)
    assert fill_of(model)[2] == 0 and model.coef_[2] == 0
    with pytest.warns(UserWarning, match="column 2 of X has no value in any row, so that 0 takes"):
        own = RankRLS(feature_map=row_value(fill=missing)).fit(rows.X, rows.y, qid=rows.qid)
    np.testing.assert_allclose(own.coef_, model.coef_, rtol=1e-9)


def test_validation_tables_take_the_values_of_the_training_rows():
    rows, held = with_gaps(make_rows()), with_gaps(make_rows(seed=3), 0.4, seed=1)
    tables = [table_of(one, (60,), ()) for one in (rows, held)]
    model = RankRLSCV(feature_map=Fill("median")).fit(tables[0], validation=tables[1])
    np.testing.assert_allclose(fill_of(model), np.nanmedian(rows.X, axis=0), rtol=1e-14)
    filled = [np.where(np.isnan(one.X), fill_of(model), one.X) for one in (rows, held)]
    want = RankRLSCV().fit(
        filled[0], rows.y, qid=rows.qid, validation=(filled[1], held.y, held.qid)
    )
    np.testing.assert_allclose(model.scores_, want.scores_, rtol=1e-9)


def test_gaps_of_scored_tables_are_an_error_unless_the_model_fills_them():
    rows = make_rows()
    model, gaps = RankRLS().fit(rows.X, rows.y, qid=rows.qid), with_gaps(rows)
    with pytest.raises(ValueError, match="has a missing value: give the ranker feature_map=Fill"):
        model.predict(table_of(gaps))
