"""`missing` of every ranker: what takes the place of missing values is part of the model."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import forms
import pairgram as pg
from axes import every
from row_value import fill_of, preceded, row_value

WORDS = ("zero", "mean", "median")
X, y, QID = pg.make_ranking(n_queries=40, n_features=5, random_state=0)
RNG = np.random.default_rng(0)
X = X + np.arange(5)
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
WEIGHT = RNG.choice([0.0, 1.0, 2.0, 3.0], len(y))
NODES = {"n_nodes": 20, "random_state": 0}
RANKERS = [
    pg.RankRLS(),
    pg.RankRLS(feature_map="quantile"),
    pg.RankRLS(feature_map=pg.Kernel("rbf", gamma=0.1)),
    forms.RankRLS(form="dual"),
    pg.RankRLS(pairs=None),
    pg.RankRLS(constraint=pg.Positive()),
    pg.RankRLS(feature_map=make_pipeline(pg.Standard(), pg.RandomNodes(**NODES))),
    pg.RankRLSCV(),
    pg.RankRLSCV(cv=3, feature_map=[None, "minmax"]),
    pg.RankRLSCV(scoring="evidence"),
    pg.PointwiseELM(**NODES),
    pg.PointwiseELMCV(**NODES),
    pg.PairwiseELM(**NODES),
    pg.PairwiseELMCV(**NODES),
    pg.ELMRank(**NODES),
    pg.ELMRankCV([0.1], [1.0, 10.0], cv=3, **NODES),
    pg.RankSVM(tol=1e-10),
    pg.RankSVM(feature_map=pg.Nystroem(n_components=10, random_state=0), tol=1e-10),
    pg.RankSVMCV([0.1, 1.0], cv=3, tol=1e-10),
]


MACHINES = (
    pg.PointwiseELM,
    pg.PointwiseELMCV,
    pg.PairwiseELM,
    pg.PairwiseELMCV,
    pg.ELMRank,
    pg.ELMRankCV,
)


def imputer(missing):
    word = "constant" if missing == "zero" else missing
    return SimpleImputer(strategy=word, fill_value=0.0 if missing == "zero" else None)


def predicted(model, rows, qid=QID):
    return model.predict(rows)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
@every(missing=WORDS)
def test_it_is_simple_imputer_before_the_ranker(ranker, missing):
    whole = imputer(missing).fit_transform(GAPS)
    want = clone(ranker).fit(whole, y, qid=QID)
    model = preceded(ranker, fill=missing).fit(GAPS, y, qid=QID)
    np.testing.assert_allclose(
        fill_of(model),
        imputer(missing).fit(GAPS).statistics_.astype(float),
        rtol=1e-12,
        atol=1e-14,
    )
    size = np.abs(predicted(want, whole)).max()
    # Rounding errors of the means grow with λ_max / alpha, which the ELMs and kernels have large.
    loose = 1e-7 if isinstance(ranker, MACHINES) else 1e-12
    np.testing.assert_allclose(
        predicted(model, GAPS), predicted(want, whole), rtol=loose, atol=loose * size
    )
    if hasattr(want, "scores_"):
        np.testing.assert_allclose(model.scores_, want.scores_, rtol=1e-6)


@pytest.mark.parametrize("missing", WORDS)
def test_auto_ranker(missing, tmp_path):
    model = pg.AutoRanker(time_budget=None, feature_map=row_value(fill=missing)).fit(
        GAPS[:150], y[:150], qid=QID[:150]
    )
    fill = imputer(missing).fit(GAPS[:150])
    np.testing.assert_allclose(
        fill_of(model), fill.statistics_.astype(float), rtol=1e-12, atol=1e-14
    )
    want = pg.AutoRanker(time_budget=None).fit(fill.transform(GAPS[:150]), y[:150], qid=QID[:150])
    scores = model.predict(GAPS)
    np.testing.assert_allclose(scores, want.predict(fill.transform(GAPS)), rtol=1e-8, atol=1e-8)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(pg.load_model(tmp_path / "m").predict(GAPS), scores)
    assert list(model.trials_["outcome"]) == list(want.trials_["outcome"])


@every(order="CF", dtype=[np.float64, np.float32], missing=["mean", "median"])
def test_weights_are_numbers_of_rows(missing, dtype, order):
    rows = np.asarray(GAPS, dtype, order=order)
    before = rows.copy()
    model = pg.RankRLS(feature_map=row_value(fill=missing)).fit(
        rows, y, qid=QID, sample_weight=WEIGHT
    )
    np.testing.assert_array_equal(rows, before)
    assert model.predict(rows).dtype == dtype
    times = WEIGHT.astype(int)
    repeated = [np.repeat(array, times, axis=0) for array in (GAPS.astype(dtype), y, QID)]
    fill = imputer(missing).fit(repeated[0].astype(np.float64)).statistics_
    np.testing.assert_allclose(fill_of(model), fill, rtol=1e-12)
    # The weight of a query is that of its rows.
    of_query = np.where(QID % 2, 2.0, 1.0)
    by_query = pg.RankRLS(feature_map=row_value(fill=missing)).fit(
        rows, y, qid=QID, query_weight=of_query
    )
    both = pg.RankRLS(feature_map=row_value(fill=missing)).fit(
        rows, y, qid=QID, sample_weight=of_query
    )
    np.testing.assert_allclose(fill_of(by_query), fill_of(both), rtol=1e-15)


FRAMES = {
    "pandas": lambda rows, names: pd.DataFrame(rows, columns=names),
    "nullable": lambda rows, names: pd.DataFrame(rows, columns=names).convert_dtypes(),
    "pandas of pyarrow": lambda rows, names: pd.DataFrame(rows, columns=names).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": lambda rows, names: pl.DataFrame(rows, schema=names).fill_nan(None),
    "pyarrow": lambda rows, names: pa.table(
        {n: pa.array(c, from_pandas=True) for n, c in zip(names, rows.T, strict=True)}
    ),
}


@every(make=FRAMES.values(), missing=WORDS)
def test_frames_are_their_arrays(make, missing):
    rows = GAPS.copy()
    rows[:, 4] = np.round(rows[:, 4])  # whole numbers, some of which are missing
    names = [f"f{j}" for j in range(5)]
    frame = make(rows, names)
    model = pg.RankRLS(feature_map=row_value(fill=missing)).fit(frame, y, qid=QID)
    want = pg.RankRLS(feature_map=row_value(fill=missing)).fit(rows, y, qid=QID)
    np.testing.assert_array_equal(fill_of(model), fill_of(want))
    np.testing.assert_array_equal(model.predict(frame), want.predict(rows))
    columns = {"label": y, "qid": QID}
    whole = make(np.column_stack([rows, y, QID]), [*names, *columns])
    table = pg.scan(whole, label="label", qid="qid")
    by_table = pg.RankRLS(feature_map=row_value(fill=missing)).fit(table)
    np.testing.assert_allclose(fill_of(by_table), fill_of(want), rtol=1e-13)
    np.testing.assert_allclose(by_table.predict(table), want.predict(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("missing", [None, *WORDS])
def test_the_tag_says_whether_nan_is_taken(missing):
    for ranker in (*RANKERS, pg.AutoRanker()):
        tags = get_tags(preceded(ranker, fill=missing)).input_tags
        assert tags.allow_nan == (missing is not None)
        assert not (missing is not None and tags.sparse)
    search = GridSearchCV(
        pg.RankRLS(pairs=None),
        {"feature_map": [row_value(fill=word) for word in WORDS]},
        error_score="raise",
    )
    assert np.isfinite(search.fit(GAPS, y).cv_results_["mean_test_score"]).all()


def test_nothing_changes_without_it():
    for ranker in RANKERS:
        with pytest.raises(
            ValueError, match=r"NaN: row .* or fit a ranker with feature_map=Fill\('mean'\)"
        ):
            clone(ranker).fit(GAPS, y, qid=QID)
    model = pg.RankRLS().fit(X, y, qid=QID)
    assert fill_of(model) is None
    with pytest.raises(ValueError, match="NaN"):
        model.predict(GAPS)


def test_rows_without_gaps_have_fill_values_too():
    model = pg.RankRLS(feature_map=pg.Fill("mean")).fit(X, y, qid=QID)
    np.testing.assert_allclose(fill_of(model), X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(model.coef_, pg.RankRLS().fit(X, y, qid=QID).coef_, rtol=1e-13)
    np.testing.assert_array_equal(
        model.predict(np.full((2, 5), np.nan))[0], model.predict(fill_of(model)[None])[0]
    )


def test_comparisons_and_clicks():
    pairs = pg.Preferences([0, 5, 9], [3, 6, 1])
    model = pg.RankRLS(feature_map=pg.Fill("mean")).fit(GAPS[:10], pairs)
    counted = GAPS[[0, 5, 9, 3, 6, 1]]
    np.testing.assert_allclose(fill_of(model), np.nanmean(counted, axis=0), rtol=1e-12)
    clicks, shown = (y > y.mean()).astype(float), np.full(len(y), 0.5)
    model = pg.RankRLS(feature_map=pg.Fill("median")).fit(GAPS, pg.Clicks(clicks, shown), qid=QID)
    np.testing.assert_array_equal(fill_of(model), np.nanmedian(GAPS, axis=0))


def test_validation_rows_take_the_values_of_the_training_rows():
    train, held = QID < 30, QID >= 30
    shifted = GAPS[held] + 5.0
    for prior in (None, LinearRegression().fit(X, y)):
        model = pg.RankRLSCV(feature_map=pg.Fill("mean"), prior=prior).fit(
            GAPS[train], y[train], qid=QID[train], validation=(shifted, y[held], QID[held])
        )
        fill = imputer("mean").fit(GAPS[train])
        want = pg.RankRLSCV(prior=prior).fit(
            fill.transform(GAPS[train]),
            y[train],
            qid=QID[train],
            validation=(fill.transform(shifted), y[held], QID[held]),
        )
        np.testing.assert_allclose(model.scores_, want.scores_, rtol=1e-10)
        np.testing.assert_allclose(model.predict(GAPS), want.predict(fill.transform(GAPS)))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    "prior",
    [
        pg.RankRLS(),
        pg.RankRLS(feature_map=pg.Fill(0.0)),
        pg.RankRLS(feature_map=pg.Kernel("rbf", gamma=0.1)),
        LinearRegression(),
    ],
    ids=repr,
)
def test_a_prior_sees_rows_that_are_filled(prior, named, tmp_path):
    names = [f"f{j}" for j in range(5)]
    frame = (lambda rows: pd.DataFrame(rows, columns=names)) if named else (lambda rows: rows)
    others = {"qid": QID} if hasattr(prior, "feature_map") else {}
    before = clone(prior).fit(frame(X), y, **others)
    fill = imputer("mean").fit(GAPS)
    model = pg.RankRLS(feature_map=pg.Fill("mean"), prior=before).fit(frame(GAPS), y, qid=QID)
    whole = frame(fill.transform(GAPS))
    want = pg.RankRLS(prior=before).fit(whole, y, qid=QID)
    np.testing.assert_allclose(model.predict(frame(GAPS)), want.predict(whole), rtol=1e-9)
    columns = dict(zip(names, GAPS.T, strict=True)) | {"y": y, "q": QID}
    if named:
        by_table = pg.RankRLS(feature_map=pg.Fill("mean"), prior=before).fit(
            pg.scan(pa.table(columns), label="y", qid="q")
        )
        np.testing.assert_allclose(by_table.predict(frame(GAPS)), want.predict(whole), rtol=1e-7)
    if hasattr(prior, "feature_map"):
        model.save(tmp_path / "m")
        loaded = pg.load_model(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict(frame(GAPS)), model.predict(frame(GAPS)))


def test_what_else_reads_rows():
    model = pg.RankRLS(feature_map=pg.Fill("mean")).fit(GAPS, y, qid=QID)
    sure = pg.posterior(model, GAPS, y, qid=QID)
    whole = np.where(np.isnan(GAPS), fill_of(model), GAPS)
    np.testing.assert_array_equal(model.contributions(GAPS), model.contributions(whole))
    found, want = (model.column_weights(rows, qid=QID) for rows in (GAPS, whole))
    np.testing.assert_array_equal(found["spread"], want["spread"])
    for scores in (model.predict, sure.std):
        np.testing.assert_array_equal(scores(GAPS), scores(whole))
    assert model.score(GAPS, y + 9, qid=QID) == model.score(whole, y + 9, qid=QID)


@pytest.mark.filterwarnings("ignore:all users get one list")
def test_recommendations():
    model = pg.RankRLS(feature_map=make_pipeline(pg.Fill("mean"), pg.Cross([0, 1], [2, 3, 4]))).fit(
        GAPS, y, qid=QID
    )
    fill = fill_of(model)
    users, items = GAPS[:6, :2], GAPS[:30, 2:]
    wholes = np.where(np.isnan(users), fill[:2], users), np.where(np.isnan(items), fill[2:], items)
    found, want = pg.recommend(model, users, items, k=4), pg.recommend(model, *wholes, k=4)
    np.testing.assert_array_equal(found.items, want.items)
    linear = pg.RankRLS(feature_map=pg.Fill("mean")).fit(GAPS, y, qid=QID)
    found, want = (pg.recommend(linear, *both, k=4) for both in ((users, items), wholes))
    np.testing.assert_array_equal(found.items, want.items)


@pytest.mark.parametrize("fallback", [None, "model", "scores"])
def test_many_models_fill_each_by_its_own_values(fallback):
    keys = QID % 4
    frame = pd.DataFrame(GAPS, columns=list("abcde")).assign(y=y, key=keys, qid=QID)
    for missing in WORDS:
        ranker = pg.RankRLS(feature_map=row_value(fill=missing))
        batch = pg.fit_many(ranker, frame, "y", by="key", qid="qid")
        alone = [
            clone(ranker).fit(GAPS[keys == k], y[keys == k], qid=QID[keys == k]) for k in range(4)
        ]
        want = np.empty(len(y))
        for k, model in enumerate(alone):
            want[keys == k] = model.predict(GAPS[keys == k])
        other = {
            None: None,
            "model": pg.RankRLS(feature_map=pg.Fill(0.0)).fit(frame[list("abcde")], y, qid=QID),
            "scores": 3.0,
        }[fallback]
        given = keys.copy()
        if other is not None:
            given[:20] = 9
            want[:20] = 3.0 if fallback == "scores" else other.predict(frame[list("abcde")])[:20]
        found = batch.predict(frame, given, fallback=other)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-10)


def test_in_a_pipeline():
    pipeline = make_pipeline(SimpleImputer(), pg.RankRLS(feature_map=pg.Fill("mean"))).fit(GAPS, y)
    np.testing.assert_allclose(
        pipeline.predict(GAPS),
        pg.RankRLS(feature_map=pg.Fill("mean")).fit(GAPS, y).predict(GAPS),
        rtol=1e-10,
    )


# Statistics


def test_statistics_take_values_that_are_fixed_before(tmp_path):
    fill = np.nanmedian(GAPS, axis=0)
    whole = np.where(np.isnan(GAPS), fill, GAPS)
    want = pg.RankRLS(2.0).fit(whole, y, qid=QID)
    parts = [QID < 10, (QID >= 10) & (QID < 25), QID >= 25]
    shards = [
        pg.Pairgram.from_rows(GAPS[p], y[p], qid=QID[p], feature_map=pg.Fill(fill)) for p in parts
    ]
    sent = [pg.Pairgram.from_bytes(one.to_bytes()) for one in shards]
    stream = pg.Pairgram(feature_map=pg.Fill(fill))
    for part in parts:
        stream.update(GAPS[part], y[part], qid=QID[part])
    table = pg.scan(
        pa.table({f"f{j}": c for j, c in enumerate(GAPS.T)} | {"y": y, "q": QID}),
        label="y",
        qid="q",
    )
    for total in (
        sum(shards),
        sum(sent),
        stream,
        pg.Pairgram.from_rows(table, feature_map=pg.Fill(fill)),
    ):
        np.testing.assert_array_equal(total.feature_map.fill_, fill)
        model = pg.RankRLS.from_pairgram(total, 2.0)
        np.testing.assert_array_equal(fill_of(model), fill)
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-9)
        model.save(tmp_path / "m")
        rows = pa.table({f"f{j}": c for j, c in enumerate(GAPS.T)})
        scores = pg.load_model(tmp_path / "m").predict(rows if total.feature_names_in_ else GAPS)
        np.testing.assert_allclose(scores, want.predict(whole), rtol=1e-8)
    left = stream - shards[0]
    np.testing.assert_allclose(left.G, (shards[1] + shards[2]).G, rtol=1e-9)
    search = pg.RankRLSCV.from_pairgrams(shards)
    np.testing.assert_array_equal(fill_of(search), fill)


def test_statistics_without_gaps_go_with_all_others():
    first, second = QID < 20, QID >= 20
    zero = pg.Pairgram.from_rows(GAPS[first], y[first], qid=QID[first], feature_map=pg.Fill(0.0))
    plain = pg.Pairgram.from_rows(X[second], y[second], qid=QID[second])
    for total in (zero + plain, plain + zero):
        np.testing.assert_array_equal(total.feature_map.fill_, np.zeros(5))
    own = copy.deepcopy(zero).update(X[second], y[second], qid=QID[second])
    np.testing.assert_allclose(own.G, (zero + plain).G, rtol=1e-12)
    # What a table says is kept as well.
    table = pg.scan(
        pa.table({f"f{j}": c for j, c in enumerate(GAPS.T)} | {"y": y, "q": QID}),
        label="y",
        qid="q",
    )
    by_table = pg.Pairgram.from_rows(table, feature_map=pg.Fill(np.zeros(5)))
    np.testing.assert_array_equal(by_table.feature_map.fill_, np.zeros(5))
    want = pg.RankRLS(feature_map=pg.Fill(0.0)).fit(GAPS, y, qid=QID)
    found = pg.RankRLS.from_pairgram(by_table).predict(
        pd.DataFrame(GAPS, columns=[f"f{j}" for j in range(5)])
    )
    np.testing.assert_allclose(found, want.predict(GAPS), rtol=1e-9, atol=1e-9)
