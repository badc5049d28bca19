"""The frozen function of a pipeline: every transformer, every form of rows, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

import shop
from pairgram import (
    ElasticNet,
    Fill,
    Kernel,
    RandomNodes,
    RankRLS,
    export,
    load_model,
    make_ranking,
    row_scorer,
    save_model,
)

RANKERS = {
    "linear": RankRLS(0.1),
    "kernel": RankRLS(feature_map=Kernel("rbf", gamma=0.1)),
    "nodes": RankRLS(feature_map=RandomNodes(20, random_state=0)),
    "fills": RankRLS(feature_map=Fill("mean")),
}
pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories", "ignore:columns of X")


def same(found, wanted):
    """Hold scores against others, up to rounding."""
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.ptp(wanted))


def of_polars(frame):
    """Return a frame of polars, which has null for missing text."""
    texts = frame[shop.TEXTS].astype(object).where(frame[shop.TEXTS].notna(), None)
    return pl.DataFrame({**frame.to_dict("list"), **texts.to_dict("list")})


CASES = [(name, "linear") for name in shop.TRANSFORMERS]
MIXED = ("shop", "PolynomialFeatures, text", "OneHotEncoder, scaled")
CASES += [(name, ranker) for name in MIXED for ranker in RANKERS if ranker != "linear"]


@pytest.mark.parametrize(("name", "ranker"), CASES)
def test_scores_are_those_of_the_pipeline(name, ranker, tmp_path):
    rows, new = shop.frame(), shop.others()
    model = shop.fitted(name, rows, RANKERS[ranker])
    save_model(model, tmp_path / "m")
    scorer = row_scorer(load_model(tmp_path / "m"))
    again = pickle.loads(pickle.dumps(scorer))
    for frame in (rows, new):
        wanted = model.predict(frame)
        given = [frame, frame.to_dict("list"), frame.to_numpy(object), of_polars(frame)]
        given.append({name: [*values, *values[:0]] for name, values in frame.items()})
        for X in given:
            same(scorer(X), wanted)
        np.testing.assert_array_equal(again(frame), scorer(frame))
        alone = [scorer(frame[i : i + 1])[0] for i in range(0, len(frame), 15)]
        np.testing.assert_array_equal(alone, scorer(frame)[::15])


def test_a_scorer_is_frozen():
    rows = shop.frame()
    model = shop.fitted("shop", rows)
    scorer = row_scorer(model)
    before = scorer(rows)
    model.fit(rows[::-1], shop.targets(rows))
    assert np.abs(model.predict(rows) - before).max() > 0.01
    np.testing.assert_array_equal(scorer(rows), before)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", object])
def test_arrays_of_numbers(dtype):
    X, y, _ = make_ranking(20, 10, 6, random_state=0)
    X = np.round(8 * X)  # which all of these types hold
    steps = SimpleImputer(), PolynomialFeatures(2), PolynomialFeatures(2, interaction_only=True)
    for before in ((StandardScaler(),), steps[:2], (*steps, StandardScaler())):
        for ranker in (RankRLS(), RankRLS(feature_map=Kernel("rbf", gamma=1e-3))):
            model = make_pipeline(*before, ranker).fit(X, y)
            scorer = row_scorer(model)
            same(scorer(np.asfortranarray(X.astype(dtype))), model.predict(X))
            same(scorer(X.astype(dtype)[::3, ::1]), model.predict(X[::3]))
            assert scorer(X[:0].astype(dtype)).shape == (0,)
            assert scorer.n_features_in_ == 6
            assert scorer.feature_names_in_ is None


def test_categories_that_an_encoder_refuses():
    rows = shop.frame()[["brand", "colour", "stock"]]
    rows["brand"] = np.resize(["a", "b", "c"], len(rows))
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    columns = shop.columns(
        (OneHotEncoder(drop="first"), ["brand"]),
        (filled, ["colour"]),
        (OrdinalEncoder(), ["stock"]),
    )
    y = np.arange(len(rows)) % 5
    for ranker in (
        RankRLS(),
        RankRLS(constraint=ElasticNet(1.0), alpha=1e9),
        RankRLS(feature_map=Kernel("rbf")),
    ):
        model = make_pipeline(columns, ranker).fit(rows, y)
        scorer = row_scorer(model)
        same(scorer(rows), model.predict(rows))
        for name, value in (("brand", "d"), ("brand", None), ("colour", "mauve"), ("stock", 9.0)):
            other = rows.astype({name: object})
            other.loc[7, name] = value
            with pytest.raises(ValueError, match="unknown categories"):
                model.predict(other)
            with pytest.raises(ValueError, match=f"row 7 of X has {value!r} in column '{name}'"):
                scorer(other)
        given = rows.assign(colour=np.nan)
        same(scorer(given), model.predict(given.astype(object)))


def test_categories_that_one_of_two_encoders_refuses():
    rows = pd.DataFrame({"brand": np.resize(["a", "b"], 40), "stock": np.arange(40.0)})
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    for other in (filled, OneHotEncoder(categories=[["a", "b", "c"]])):
        for two in ((OneHotEncoder(), other), (other, OneHotEncoder())):
            columns = shop.columns(*((encoder, ["brand"]) for encoder in two))
            model = make_pipeline(columns, RankRLS()).fit(rows, np.arange(40) % 5)
            new = rows.assign(brand=rows["brand"].replace("b", np.nan if other is filled else "c"))
            for score in (model.predict, row_scorer(model)):
                with pytest.raises(ValueError, match=r"unknown categories|row 1 of X has"):
                    score(new)


def test_arrays_of_numbers_that_an_encoder_refuses():
    X = np.column_stack([np.resize([0.0, 1, 2], 30), np.arange(30) % 7])
    columns = ColumnTransformer([("one", OneHotEncoder(), [0])], remainder="passthrough")
    model = make_pipeline(columns, RankRLS()).fit(X, np.arange(30) % 5)
    scorer = row_scorer(model)
    same(scorer(X), model.predict(X))
    for dtype in (np.float64, np.float32, np.int64, object):
        with pytest.raises(ValueError, match=r"row 1 of X has 7(\.0)? in column 0"):
            scorer(np.array([[1, 2], [7, 1]], dtype))


def test_a_model_of_no_column():
    rows = shop.frame()
    model = shop.fitted("SimpleImputer, mean", rows, RankRLS(alpha=1e300))
    for given in (rows, rows.to_dict("list"), rows.to_numpy()):
        np.testing.assert_array_equal(row_scorer(model)(given), model.predict(rows))


def test_a_step_that_does_nothing():
    X, y, _ = make_ranking(20, 10, 6, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline("passthrough", RankRLS()).fit(frame, y)
    same(row_scorer(model)(frame[list("fedcba")]), model.predict(frame))
    assert export.verify(export.to_sql(model), model, frame).n_reordered == 0


def test_columns_that_no_step_takes_are_not_read():
    rows = shop.frame()
    model = shop.fitted("SimpleImputer, mean", rows)
    same(row_scorer(model)({"rating": rows["rating"], "price": rows["price"]}), model.predict(rows))


def test_a_ranker_gives_its_own():
    X, y, qid = make_ranking(20, 10, 6, random_state=0)
    model = RankRLS().fit(X, y, qid=qid)
    scorer = row_scorer(model, "float32")
    assert scorer.dtype == np.float32
    np.testing.assert_array_equal(scorer(X.astype("f")), model.row_scorer("f")(X.astype("f")))
