"""What a step compares is compared exactly: scores are those of predict."""

import contextlib
import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from pairgram import Fill, RankRLS, export

CODES = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)


def scored(model, rows):
    """Return the scores of the exported function of Python."""
    space = {}
    names = [f"x{number}" for number in range(len(rows[0]))]
    exec(export.to_python(model, features=names, name="score"), space)
    return np.array([space["score"](row) for row in rows])


def held(model, frame):
    """Hold the function, and SQL in DuckDB, against predict."""
    own = model.predict(frame)
    rows = frame.to_numpy().tolist()
    np.testing.assert_allclose(scored(model, rows), own, atol=1e-12 * (1 + np.ptp(own)))
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("given", frame)
        text = export.to_sql(model, features=list(frame))
        found = connection.execute(f"SELECT {text} FROM given").fetchall()
    assert all(isinstance(one, float) for (one,) in found)
    np.testing.assert_allclose([one for (one,) in found], own, atol=1e-12 * (1 + np.ptp(own)))


def in_sqlite(text, column, values):
    """Return what an expression is for the values of a column."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t ({column})")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        return [one for (one,) in connection.execute(f"SELECT {text} FROM t").fetchall()]


@pytest.mark.parametrize("limits", [{"min_frequency": 2}, {"max_categories": 3}])
def test_rare_categories_beside_missing_ones(limits):
    column = ["a"] * 5 + ["b"] * 5 + ["rare"] + [np.nan] * 3
    frame = pd.DataFrame({"c": pd.Series(column, dtype=object)})
    encoder = OrdinalEncoder(**CODES, encoded_missing_value=-2, **limits)
    model = make_pipeline(encoder, RankRLS()).fit(frame, np.arange(14.0) % 5)
    rows = [["rare"], ["a"], ["b"], [None], ["new"]]
    given = pd.DataFrame({"c": pd.Series(["rare", "a", "b", np.nan, "new"], dtype=object)})
    np.testing.assert_allclose(scored(model, rows), model.predict(given), atol=1e-12)


def test_ids_that_float64_does_not_hold_are_refused():
    ids = np.array([2**53, 2**53 + 1, 5] * 4)[:, None]
    model = make_pipeline(ONE_HOT, RankRLS()).fit(ids, np.arange(12.0) % 5)
    with pytest.raises(ValueError, match="9007199254740993, which float64 does not hold: make it"):
        export.to_python(model, features=["id"])


@pytest.mark.filterwarnings("ignore:.*quantile_method:FutureWarning")
def test_numbers_in_columns_of_text_of_sqlite():
    X = np.array([[20.0], [100.0], [110.0], [9.0], [31.0]] * 8)
    for first in (KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), ONE_HOT):
        model = make_pipeline(first, RankRLS(0.1)).fit(X, X[:, 0] % 7)
        text = export.to_sql(model, features=["a"], dialect="sqlite")
        found = in_sqlite(text, "a TEXT", [f"{x:g}" for x in X[:5, 0]])
        np.testing.assert_allclose(found, model.predict(X[:5]), atol=1e-9)


def test_text_is_compared_by_bytes_in_sqlite_whatever_the_column_says():
    frame = pd.DataFrame({"brand": ["Sony", "acme", "zeta"] * 6})
    model = make_pipeline(ONE_HOT, RankRLS(0.1)).fit(frame, np.arange(18.0) % 5)
    text = export.to_sql(model, features=["brand"], dialect="sqlite")
    found = in_sqlite(text, "brand TEXT COLLATE NOCASE", ["Sony", "SONY", "acme"])
    given = pd.DataFrame({"brand": ["Sony", "SONY", "acme"]})
    np.testing.assert_allclose(found, model.predict(given), atol=1e-9)


@pytest.mark.parametrize(
    "first", [make_pipeline(ONE_HOT, StandardScaler()), TargetEncoder(target_type="continuous")]
)
def test_products_of_categories_run_in_duckdb(first):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": rng.choice([*"abc"], 80), "c": rng.choice([*"xyz"], 80)})
    powers = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    model = make_pipeline(first, powers, RankRLS(0.1))
    held(model.fit(frame, rng.normal(size=80)), frame)


def test_products_after_an_imputer_need_no_other():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 3)) < 0.2, np.nan, rng.normal(size=(60, 3)))
    steps = SimpleImputer(), PolynomialFeatures(2, include_bias=False)
    model = make_pipeline(*steps, RankRLS(feature_map=Fill("mean"))).fit(X, rng.normal(size=60))
    np.testing.assert_allclose(scored(model, X.tolist()), model.predict(X), atol=1e-12)
    late = make_pipeline(
        ColumnTransformer([("p", "passthrough", [0, 1, 2])]),
        steps[1],
        RankRLS(feature_map=Fill("mean")),
    )
    with pytest.raises(ValueError, match="contains NaN"):
        late.fit(X, rng.normal(size=60))
