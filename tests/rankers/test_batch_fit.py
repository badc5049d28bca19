"""A model for every key of a frame, predictions by key, and the file of a batch."""

from dataclasses import replace
from functools import reduce
from operator import getitem

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import pairgram as pg
from fuzz.forge import Tensor, instead, pack, parse
from pairgram.rankers.batch_fit import Models
from row_value import inputs_of

FEATURES = ["price", "age", "size"]


def frame_of(n_users=7, seed=0, keys=None):
    """Rows of users in any order, each with rows of several sessions."""
    rng = np.random.default_rng(seed)
    X, y, session = pg.make_ranking(5 * n_users, (4, 9), 3, random_state=seed)
    keys = [f"user {number}" for number in range(n_users)] if keys is None else keys
    frame = pd.DataFrame(X, columns=FEATURES)
    frame["rating"], frame["session"] = y, session
    frame["user"] = [keys[number] for number in session % n_users]
    frame["weight"] = rng.uniform(0.5, 2.0, len(y))
    return frame.iloc[rng.permutation(len(y))].reset_index(drop=True)


def by_hand(estimator, frame, scored=None):
    """The scores of every row by a model of the rows of its user."""
    scored = frame if scored is None else scored
    scores = np.full(len(scored), np.nan)
    for user, rows in frame.groupby("user"):
        arguments = {"qid": rows["session"], "sample_weight": rows["weight"]}
        model = estimator.fit(rows[FEATURES], rows["rating"], **arguments)
        mine = (scored["user"] == user).to_numpy()
        scores[mine] = model.predict(scored.loc[mine, FEATURES])
    return scores


FRAME = frame_of()
COLUMNS = {"y": "rating", "by": "user", "qid": "session", "sample_weight": "weight"}
ESTIMATORS = [
    pg.RankRLS(0.5),
    pg.RankRLSCV([0.1, 1.0, 10.0], cv=2),
    pg.RankRLS(pairs="without_ties", scale=True),
    pg.ELMRankCV([0.1], [1.0, 8.0], n_nodes=5, random_state=0),
    pg.PairwiseELMCV([0.1, 1.0], activation="tanh", n_nodes=5, random_state=0),
    pg.RankSVM(0.1),
    pg.RankRLS(feature_map=pg.Cross("price", ["age"], keep="size")),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_frame_gives_the_models_of_its_keys(estimator, tmp_path):
    batch = pg.fit_many(estimator, FRAME, **COLUMNS)
    assert batch.keys.tolist() == FRAME["user"].unique().tolist()
    expected = by_hand(estimator, FRAME)
    assert_allclose(batch.predict(FRAME[FEATURES], FRAME["user"]), expected, atol=1e-8)
    assert batch.coef_.shape == (7, len(batch.models[0].coef_))
    assert_array_equal(batch.coef_[3], batch.models[3].coef_)
    batch.save(tmp_path / "m")
    again = pg.BatchFit.load(tmp_path / "m")
    assert_array_equal(again.predict(FRAME, "user"), batch.predict(FRAME, "user"))
    assert_array_equal(again.keys, batch.keys)
    assert_array_equal(again.best_score_, batch.best_score_)
    for model, loaded in zip(batch.models, again.models, strict=True):
        model.save(tmp_path / "one")
        loaded.save(tmp_path / "again")
        first, second = (parse((tmp_path / p).read_bytes()) for p in ("one", "again"))
        assert (first.kind, first.settings) == (second.kind, second.settings)
        alone = pg.load_model(tmp_path / "one")
        assert_array_equal(loaded.predict(FRAME[FEATURES]), alone.predict(FRAME[FEATURES]))


@pytest.mark.parametrize("inputs", ["standard", "quantile", "raw+quantile"])
def test_every_key_has_inputs_of_its_own(inputs, tmp_path):
    estimator = pg.RankRLS(feature_map=inputs)
    batch = pg.fit_many(estimator, FRAME, **COLUMNS)
    expected = by_hand(estimator, FRAME)
    assert_allclose(batch.predict(FRAME[FEATURES], FRAME["user"]), expected, atol=1e-8)


@pytest.mark.parametrize("keys", [[5, -3, 7, 2**40, 0, 1, 2], list("äbcdefg")], ids=str)
def test_keys_come_back_from_a_file(keys, tmp_path):
    batch = pg.fit_many(pg.RankRLS(), frame_of(keys=keys), **COLUMNS)
    batch.save(tmp_path / "m")
    assert pg.BatchFit.load(tmp_path / "m").keys.tolist() == batch.keys.tolist()


def test_pairs_are_keys():
    batch = pg.fit_many(pg.RankRLS(), frame_of(keys=[(n, "a") for n in range(7)]), **COLUMNS)
    keys = pd.Series([(1, "a"), (6, "a")])
    assert np.isfinite(batch.predict(frame_of()[FEATURES][:2], keys)).all()


@pytest.mark.parametrize("start", [0, 9_007_199_254_740_993, 2**63 - 9, -(2**63)])
def test_integers_as_objects_are_saved(tmp_path, start):
    frame = frame_of()
    number, _ = pd.factorize(frame["user"])
    frame["user"] = pd.Series([start + int(k) for k in number], dtype=object)
    batch = pg.fit_many(pg.RankRLS(), frame, **COLUMNS)
    batch.save(tmp_path / "m")
    loaded = pg.BatchFit.load(tmp_path / "m")
    assert loaded.keys.tolist() == batch.keys.tolist()
    rows = frame[FEATURES], frame["user"]
    assert_array_equal(loaded.predict(*rows), batch.predict(*rows))


def test_rows_of_other_keys_go_to_the_fallback():
    frame, other = frame_of(), frame_of(9, seed=1)
    batch = pg.fit_many(pg.RankRLS(), frame, **COLUMNS)
    unknown = ~other["user"].isin(frame["user"]).to_numpy()
    assert 0 < unknown.sum() < len(other)
    scores = batch.predict(other, "user", fallback=np.nan)
    assert_array_equal(np.isnan(scores), unknown)
    everybody = pg.RankRLS(2.0).fit(frame[FEATURES], frame["rating"], qid=frame["session"])
    for given in (other, pa.Table.from_pandas(other)):
        scores = batch.predict(given, "user", fallback=everybody)
        assert_array_equal(scores[unknown], everybody.predict(other[FEATURES])[unknown])
    assert_allclose(scores[~unknown], by_hand(pg.RankRLS(), frame, other)[~unknown], atol=1e-9)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_numbers_are_no_keys_of_models_whose_keys_are_text(dtype):
    numbers = frame_of(keys=range(7))
    texts = numbers.assign(user=numbers["user"].astype("str").astype(dtype))
    of_numbers, of_texts = (pg.fit_many(pg.RankRLS(), one, **COLUMNS) for one in (numbers, texts))
    first = numbers["user"][0]
    message = f"keys must be text, such as '{first}', because .* got numbers, such as {first}, and"
    for column in (numbers["user"], numbers["user"].astype(float), list(numbers["user"])):
        with pytest.raises(ValueError, match=message.replace(f"as {first},", f"as {column[0]},")):
            of_texts.predict(numbers, column, fallback=0.0)
    message = f"keys must be numbers, such as {first}, because .* got text, such as '{first}', and"
    with pytest.raises(ValueError, match=message):
        of_numbers.predict(texts, "user", fallback=0.0)
    mixed = list(texts["user"])
    mixed[0] = 0
    scores = of_texts.predict(texts, mixed, fallback=np.nan)
    assert np.isnan(scores[0]) and np.isfinite(scores[1:]).all()
    assert (of_texts.predict(texts, ["new"] * len(texts), fallback=0.5) == 0.5).all()


def test_a_batch_has_a_fallback_without_a_prior(tmp_path):
    frame, other = frame_of(), frame_of(20, seed=1)
    unknown = ~other["user"].isin(frame["user"]).to_numpy()
    everybody = pg.RankRLS(2.0).fit(frame[FEATURES], frame["rating"], qid=frame["session"])
    batch = pg.fit_many(pg.RankRLS(), frame, **COLUMNS, fallback=everybody)
    assert batch.fallback is everybody and batch.models[0].prior is None
    scores = batch.predict(other, "user")
    assert_array_equal(scores[unknown], everybody.predict(other[FEATURES])[unknown])
    plain = pg.fit_many(pg.RankRLS(), frame, **COLUMNS)
    known = other[~unknown]
    assert_array_equal(scores[~unknown], plain.predict(known, "user"))
    batch.save(tmp_path / "m")
    assert_array_equal(pg.BatchFit.load(tmp_path / "m").predict(other, "user"), scores)
    both = pg.fit_many(pg.RankRLS(), frame, **COLUMNS, prior=everybody, fallback=0.5)
    frozen = pg.fit_many(
        pg.RankRLS(prior=FrozenEstimator(everybody)), frame, **COLUMNS, fallback=0.5
    )
    assert_array_equal(frozen.coef_, both.coef_)
    assert everybody.feature_names_in_.tolist() == FEATURES
    for number in (0.5, -1, float("nan")):
        replace(both, fallback=number).save(tmp_path / "number.safetensors")
        loaded = pg.BatchFit.load(tmp_path / "number.safetensors")
        assert_equal(loaded.fallback, float(number))
    assert (both.predict(other, "user")[unknown] == 0.5).all()
    assert both.models[0].prior is not None
    trees = DecisionTreeRegressor(max_depth=2).fit(frame[FEATURES], frame["rating"])
    of_trees = pg.fit_many(pg.RankRLS(), frame, **COLUMNS, fallback=trees)
    assert_array_equal(
        of_trees.predict(other, "user")[unknown], trees.predict(other[FEATURES])[unknown]
    )
    for wrong, message in (
        ("mean", "fallback must be a fitted model or a number, got 'mean'"),
        (pg.RankRLS(), "fallback: This RankRLS instance is not fitted"),
        (everybody, r"fallback has the columns \['price', 'age', 'size'\], but the models have"),
    ):
        with pytest.raises(ValueError, match=message):
            pg.fit_many(
                pg.RankRLS(), frame[["size", "user", "rating"]], "rating", by="user", fallback=wrong
            )


KINDS = {
    "pandas": pd.DataFrame,
    "polars": lambda frame: pytest.importorskip("polars").DataFrame(frame),
    "arrow": pa.table,
}


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_columns_reach_constraints(kind, tmp_path):
    frame = frame_of().assign(rating=lambda rows: rows["price"] - 2 * rows["age"] - rows["size"])
    ranker = pg.RankRLS(constraint=pg.Positive(["size"]))
    batch = pg.fit_many(ranker, frame, **COLUMNS)
    numbers = pg.fit_many(pg.RankRLS(constraint=pg.Positive([2])), frame, **COLUMNS)
    assert_array_equal(batch.coef_, numbers.coef_)
    assert (batch.coef_[:, 2] == 0).all() and (batch.coef_[:, 1] < 0).all()
    assert ranker.constraint.columns == batch.models[0].constraint.columns == ["size"]
    batch.save(tmp_path / "m")
    assert pg.BatchFit.load(tmp_path / "m").models[1].constraint.columns == ["size"]
    array = pg.fit_many(pg.RankRLS(constraint=pg.Positive(np.array(["size"]))), frame, **COLUMNS)
    assert_array_equal(batch.coef_, array.coef_)
    rows = KINDS[kind](frame[FEATURES])
    alone = pg.RankRLS(constraint=pg.Positive(["size"])).fit(
        rows, frame["rating"], qid=frame["session"]
    )
    assert alone.coef_[2] == 0 and alone.coef_[1] < 0
    search = pg.RankRLSCV(constraint=pg.Positive(["size"]), feature_map="quantile", cv=2)
    search.fit(rows, frame["rating"], qid=frame["session"])
    assert search.coef_[2] == 0 and search.coef_[1] < 0


def test_a_user_whose_fit_fails_has_no_model(tmp_path):
    frame = frame_of()
    frame.loc[frame["user"] == "user 2", "price"] = np.nan
    with pytest.warns(FitFailedWarning, match="1 of 7 data sets have no model"):
        batch = pg.fit_many(pg.RankRLSCV(cv=2), frame, **COLUMNS)
    number = batch.keys.tolist().index("user 2")
    assert batch.models[number] is None and np.isnan(batch.coef_[number]).all()
    batch.save(tmp_path / "m")
    frame = frame.fillna({"price": 0.0})
    for one in (batch, pg.BatchFit.load(tmp_path / "m")):
        assert one.models[number] is None
        assert "NaN" in one.errors_[number]
        scores = one.predict(frame, "user", fallback=0.0)
        assert (scores[frame["user"] == "user 2"] == 0).all()
        assert_array_equal(one.best_score_, batch.best_score_)


DAY = np.timedelta64(1, "D")


@pytest.mark.parametrize("start", [np.datetime64("2024-01-01"), np.timedelta64(0, "D")])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_are_keys(start, unit):
    frame = frame_of()
    days = (start + np.arange(7) * DAY).astype(f"{start.dtype.kind}8[{unit}]")
    frame["user"] = days[frame["user"].str[-1].astype(int)]
    batch = pg.fit_many(pg.RankRLS(), frame, **COLUMNS)
    assert batch.keys.dtype == days.dtype
    pandas_time = pd.Timestamp if start.dtype.kind == "M" else pd.Timedelta
    for number, key in enumerate(batch.keys):
        model = batch.models[number]
        standard = key.astype(f"{start.dtype.kind}8[us]").item()
        for same in (key, pandas_time(key), standard, key.astype(start.dtype)):
            assert (batch[same].coef_ == model.coef_).all()
    scores = batch.predict(frame, "user")
    for unit in ("s", "ms", "ns"):
        other = days.dtype.str[1] + f"8[{unit}]"
        same = frame["user"].to_numpy().astype(other)
        assert_array_equal(batch.predict(frame, same), scores)
        with pytest.raises(ValueError, match="7 of 7 keys have no model"):
            batch.predict(frame, same + np.timedelta64(1, unit))
    for same in (list(frame["user"]), frame["user"].astype(object)):
        assert_array_equal(batch.predict(frame, same), scores)
    for other in (["a"] * len(frame), np.arange(len(frame))):
        with pytest.raises(ValueError, match=r"keys must be (differences of )?times, such as np\."):
            batch.predict(frame, other, fallback=0.0)
    finer = batch.keys[0] + np.timedelta64(1, "ns")
    later = days[-1] + DAY
    for wrong in (finer, pandas_time(finer), later, "2024-01-01", np.datetime64("NaT", "D")):
        with pytest.raises(KeyError, match=r"the first keys are \[np\.(date|timedelta)"):
            batch[wrong]


def test_a_fallback_scores_all_rows_if_no_model_is_left():
    everybody = pg.RankRLS().fit(FRAME[FEATURES], FRAME["rating"], qid=FRAME["session"])
    trees = DecisionTreeRegressor(max_depth=2).fit(FRAME[FEATURES], FRAME["rating"])
    wrong = FRAME.assign(price=np.nan)
    n_users = FRAME["user"].nunique()
    for argument, fallback in (("prior", everybody), ("fallback", trees), ("fallback", 0.5)):
        message = f"^{n_users} of {n_users} data sets have no model, .* NaN"
        with pytest.warns(FitFailedWarning, match=message):
            failed = pg.fit_many(pg.RankRLS(), wrong, **COLUMNS, **{argument: fallback})
        assert list(failed.models) == [None] * n_users
        expected = np.full(len(FRAME), 0.5)
        if fallback != 0.5:
            expected = fallback.predict(FRAME[FEATURES])
        assert_array_equal(failed.predict(FRAME, "user"), expected)
        rows = FRAME[FEATURES].to_numpy(np.float32)
        assert failed.predict(rows, FRAME["user"], fallback=np.nan).dtype == np.float32


def test_lists_of_problems_have_their_numbers_as_keys():
    problems = [pg.make_ranking(1, 20, 3, random_state=seed)[:2] for seed in range(4)]
    batch = pg.fit_many(pg.RankRLS(2.0, pairs=pg.Pairs(scope="global")), problems)
    keys = np.repeat([3, 0, 2], 20)
    X = np.vstack([problems[number][0] for number in (3, 0, 2)])
    expected = [batch.models[number].predict(problems[number][0]) for number in (3, 0, 2)]
    assert_allclose(batch.predict(X, keys), np.concatenate(expected), rtol=1e-12)


def test_rows_in_float32_and_csr():
    batch = pg.fit_many(pg.RankRLS(), FRAME, **COLUMNS)
    X, keys = FRAME[FEATURES].to_numpy(np.float32), FRAME["user"]
    named = pd.DataFrame(X, columns=FEATURES)
    scores = batch.predict(named, keys)
    assert scores.dtype == np.float32
    assert_allclose(scores, batch.predict(FRAME, "user"), atol=1e-5)
    plain = pg.fit_many(pg.RankRLS(), [(X, FRAME["rating"].to_numpy())])
    csr = plain.predict(sp.csr_array(X), np.zeros(len(X), int))
    assert_allclose(csr, plain.predict(X, np.zeros(len(X), int)), atol=1e-5)


def test_models_with_other_features_are_not_stacked(tmp_path):
    batch = pg.fit_many(pg.RankRLS(feature_map=pg.Kernel("rbf")), FRAME, **COLUMNS)
    assert_allclose(
        batch.predict(FRAME, "user"),
        by_hand(pg.RankRLS(feature_map=pg.Kernel("rbf")), FRAME),
        atol=1e-8,
    )


def test_searches_over_other_settings_are_not_saved_together(tmp_path):
    frame = frame_of(20)
    search = pg.RankRLSCV([0.1, 1.0], pairs=["with_ties", "without_ties"], cv=2, scoring="map")
    batch = pg.fit_many(search, frame, **COLUMNS)
    assert len({model.pairs_ for model in batch.models}) == 2
    with pytest.raises(ValueError, match="differs from the first in more than its coeff"):
        batch.save(tmp_path / "m")


def at(name, index, value):
    return instead(name, lambda array: array.__setitem__(index, value) or array)


def setting(*path, value):
    *places, last = path
    return lambda contents: reduce(getitem, places, contents.settings).update({last: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("coefs", (1, 1), np.inf), "coefs must be finite"),
        (lambda c: c.tensors.update(coefs=Tensor.of(np.ones((7, 4)))), "column for every coeff"),
        (lambda c: c.tensors.update(coefs=Tensor.of(np.ones((6, 3)))), "but models is 6 elsewhere"),
        (lambda c: c.tensors.pop("model.coef_"), "model: coef_ is missing"),
        (lambda c: c.tensors.pop("coefs"), "coefs is missing"),
        (lambda c: c.tensors.update({"other.x": Tensor.of(np.ones(3))}), "'other.x' is no array"),
        (lambda c: c.tensors.update({"fallback.x": Tensor.of(np.ones(3))}), "but fallback is None"),
        (setting("model", "kind", value="Pairgram"), "model.kind must be one of 'RankRLS'"),
        (setting("model", "settings", "alpha", value=-1), "model: alpha must be a finite number"),
        (setting("model", value=None), "model must be an object"),
        (setting("feature_map", value={}), "feature_map must be None"),
        (setting("keys", value=["a"] * 6), "want 7 keys"),
        (setting("keys", value=["a"] * 7), "two models have the same key"),
        (setting("keys", value=None), "keys must be text or an array"),
        (setting("errors", value=["x"] * 7), "errors must leave a model"),
        (setting("errors", value=[None]), "want 7 errors"),
        (setting("more", value=1), "'more' is no setting"),
        (setting("fallback_score", value="half"), "fallback_score must be a number as text"),
        (setting("fallback_score", value=0.5), "fallback_score must be a number as text"),
    ],
)
def test_forged_files_are_refused(tmp_path, change, message):
    pg.fit_many(pg.RankRLS(), frame_of(), **COLUMNS).save(tmp_path / "m")
    contents = parse((tmp_path / "m").read_bytes())
    change(contents)
    (tmp_path / "m").write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message) as caught:
        pg.BatchFit.load(tmp_path / "m")
    assert str(caught.value).startswith(str(tmp_path / "m"))


def test_every_user_starts_from_the_model_of_all(tmp_path):
    frame, other = frame_of(), frame_of(9, seed=1)
    everybody = pg.RankRLS(2.0).fit(frame[FEATURES], frame["rating"], qid=frame["session"])
    batch = pg.fit_many(pg.RankRLS(5.0), frame, **COLUMNS, prior=everybody)
    expected = by_hand(pg.RankRLS(5.0, prior=FrozenEstimator(everybody)), frame)
    assert_allclose(batch.predict(frame, "user"), expected, atol=1e-8)
    unknown = ~other["user"].isin(frame["user"]).to_numpy()
    scores = batch.predict(other, "user")
    assert_allclose(scores[unknown], everybody.predict(other[FEATURES])[unknown], rtol=1e-12)
    batch.save(tmp_path / "m")
    assert_array_equal(pg.BatchFit.load(tmp_path / "m").predict(other, "user"), scores)
    strong = pg.fit_many(pg.RankRLS(1e12), frame, **COLUMNS, prior=everybody)
    assert_allclose(strong.coef_, np.tile(everybody.coef_, (7, 1)), atol=1e-6)


def test_a_prior_that_is_not_linear_is_part_of_the_batch(tmp_path):
    everybody = pg.RankRLS(feature_map=pg.Kernel("rbf")).fit(
        FRAME[FEATURES], FRAME["rating"], qid=FRAME["session"]
    )
    batch = pg.fit_many(pg.RankRLS(5.0), FRAME, **COLUMNS, prior=everybody)
    expected = by_hand(pg.RankRLS(5.0, prior=FrozenEstimator(everybody)), FRAME)
    assert_allclose(batch.predict(FRAME, "user"), expected, atol=1e-8)
    batch.save(tmp_path / "m")
    again = pg.BatchFit.load(tmp_path / "m")
    assert_allclose(again.predict(FRAME, "user"), expected, atol=1e-8)


def _problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    return X, X @ [1.0, -1.0] + 0.1 * rng.normal(size=30)


@pytest.mark.parametrize("order", [1, -1])
def test_searches_that_chose_different_inputs_predict(order):
    rng = np.random.default_rng(0)
    X, qid = rng.random((60, 2)), np.repeat(np.arange(6), 10)
    problems = [(X, X.sum(axis=1), qid), (np.exp(20 * X), X.sum(axis=1), qid)][::order]
    search = pg.RankRLSCV(feature_map=[None, "quantile"], scoring="kendall")
    batch = pg.fit_many(search, problems)
    kinds = {None if inputs_of(m) is None else inputs_of(m).kind for m in batch.models}
    assert kinds == {None, "quantile"}
    for number, (rows, _, _) in enumerate(problems):
        expected = batch.models[number].predict(rows)
        assert_array_equal(batch.predict(rows, np.full(60, number)), expected)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_fallback_takes_rows_in_its_own_order_alone(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": 10 * rng.normal(size=60)})
    frame["y"], frame["u"] = frame["x"] - frame["z"], ["a", "b", "c"] * 20
    batch = pg.fit_many(pg.RankRLS(), frame[frame["u"] != "c"], "y", by="u")
    make = {
        "pandas": lambda rows: rows,
        "polars": lambda rows: pytest.importorskip("polars").from_pandas(rows),
        "pyarrow": lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
    }[kind]
    rows, of_c = make(frame), (frame["u"] == "c").to_numpy()
    for swapped in (Ridge(), pg.RankRLS()):
        swapped.fit(frame[["z", "x"]], frame["y"])
        for X in (rows, make(frame[["z", "x"]]), frame[["x", "z"]].to_numpy()):
            with pytest.raises(ValueError, match=r"fallback has the columns \['z', 'x'\], but the"):
                batch.predict(X, frame["u"], fallback=swapped)
    for own in (Ridge(), pg.RankRLS()):
        own.fit(frame[["x", "z"]], frame["y"])
        scores = batch.predict(rows, "u", fallback=own)
        expected = own.predict(frame.loc[of_c, ["x", "z"]])
        assert_allclose(scores[of_c], expected, rtol=1e-12)


def test_arrays_files_and_scores_make_few_models(monkeypatch, tmp_path):
    X, y, user = pg.make_ranking(40, 6, 3, random_state=0)
    batch, made = pg.fit_many(pg.RankRLS(), X, y, by=user), []
    one = Models.__getitem__
    monkeypatch.setattr(Models, "__getitem__", lambda self, at: made.append(at) or one(self, at))
    batch.save(tmp_path / "batch.safetensors")
    scores = pg.BatchFit.load(tmp_path / "batch.safetensors").predict(X, user)
    assert (scores == batch.predict(X, user)).all()
    assert np.isnan(batch.alpha_).all() and np.isnan(batch.best_score_).all()
    assert len(made) <= 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 7, 8, 20])
def test_scores_have_the_bits_of_each_model(n_features, dtype):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, n_features)).astype(dtype), rng.integers(0, 4, 300) * 1.0
    user = rng.integers(0, 9, 300)
    batch = pg.fit_many(pg.RankRLS(), X, y, by=user)
    others = rng.normal(size=(80, n_features)).astype(dtype)
    for rows, keys in ((X, user), (others[::-1], rng.integers(0, 9, 80))):
        scores = batch.predict(rows, keys)
        for key in np.unique(keys):
            assert (scores[keys == key] == batch[key].predict(rows[keys == key])).all()


def test_scores_that_overflow_float32_are_an_error():
    rng = np.random.default_rng(0)
    X, y, user = rng.normal(size=(20, 3)), 1e12 * rng.normal(size=20), np.repeat([0, 1], 10)
    batch = pg.fit_many(pg.RankRLS(), X, y, by=user)
    huge = np.full((2, 3), 1e30, np.float32)
    for predict in (batch[0].predict, lambda X: batch.predict(X, [0, 1])):
        with pytest.raises(ValueError, match="scores of its rows overflow float32"):
            predict(huge)


def test_keys_are_found_and_iterated_over_as_those_of_a_dict():
    X, y, user = pg.make_ranking(5, 6, 3, random_state=0)
    batch = pg.fit_many(pg.RankRLS(), X, y, by=user + 3)
    assert list(batch) == batch.keys.tolist() == [3, 4, 5, 6, 7]
    assert 3 in batch and 0 not in batch
    days = np.datetime64("2026-01-01", "ns") + user * np.timedelta64(1, "D")
    dated = pg.fit_many(pg.RankRLS(), X, y, by=days)
    assert list(dated) == list(dated.keys) and all(key in dated for key in dated)
    assert pd.Timestamp("2026-01-02") in dated and pd.Timestamp("2025-01-02") not in dated
