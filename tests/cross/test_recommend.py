"""recommend, against the sorted scores of all pairs of users and things."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, strategies as st
from sklearn.pipeline import make_pipeline

import pairgram as pg
from axes import every
from pairgram import _core
from row_value import fill_of, row_value
from table_sources import scanned

N_USERS, N_ITEMS = 40, 25


def made():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(N_USERS, 3)), rng.normal(size=(N_ITEMS, 4))
    items[7] = items[3]  # a thing that is there twice
    X = np.hstack([np.repeat(users, N_ITEMS, axis=0), np.tile(items, (N_USERS, 1))])
    scores = users @ rng.normal(size=(3, 4)) @ items.T + items[:, 0]
    y = np.digitize(scores, [-1.0, 0.5, 2.0]).astype(float).ravel()
    return users, items, X, y, np.repeat(np.arange(N_USERS), N_ITEMS)


WORLD = users, items, X, y, qid = made()


def sorted_places(scores, k, out=None):
    """Return the best k of every row; of equal scores the first comes first."""
    found = np.full((len(scores), k), -1)
    for user, row in enumerate(scores):
        order = [j for j in np.argsort(-row, kind="stable") if out is None or not out[user, j]]
        found[user, : min(k, len(order))] = order[:k]
    return found


def fitted(**settings):
    feature_map = pg.Cross([0, 1, 2], slice(4, None), keep=3, **settings)
    return pg.RankRLS(0.1, feature_map=feature_map).fit(X, y, qid=qid)


@pytest.mark.parametrize("k", [1, 5, 25, 40])
def test_cross_models(k):
    model = fitted()
    found = pg.recommend(model, users, items, k)
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, k))
    n = min(k, N_ITEMS)
    np.testing.assert_array_equal(
        found.scores[:, :n], np.take_along_axis(scores, found.places[:, :n], 1)
    )
    assert np.isnan(found.scores[:, n:]).all()


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_what_is_left_out(seed, k):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(-2, 3, (6, 2)) * 1.0, rng.integers(-2, 3, (9, 2)) * 1.0
    X = np.hstack([np.repeat(users, 9, axis=0), np.tile(items, (6, 1))])
    model = pg.RankRLS(feature_map=pg.Cross([0, 1], [2, 3])).fit(
        X, rng.integers(0, 2, 54), qid=np.arange(54) // 9
    )
    out = rng.random((6, 9)) < 0.3
    twice = [np.tile(ids, 2) for ids in np.nonzero(out)]
    found = pg.recommend(model, users, items, k, exclude=twice)
    scores = model.predict(X).reshape(6, 9)
    np.testing.assert_array_equal(found.places, sorted_places(scores, k, out))


@pytest.mark.parametrize("inputs", ["standard", "quantile", "raw+quantile"])
def test_inputs_before_the_map(inputs):
    feature_map = pg.Cross([0, 1, 2], [3, 4, 5, 6])
    warned = pytest.warns(
        UserWarning, match="before a Cross changes nothing, because no side names"
    )
    with warned if inputs == "raw+quantile" else nullcontext():
        model = pg.RankRLS(feature_map=row_value(inputs, feature_map)).fit(X, y, qid=qid)
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    if inputs == "raw+quantile":
        model_columns = model.feature_map_[-1].left_
        assert (model_columns == [0, 1, 2]).all()
    found = pg.recommend(model, users, items, 6)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 6))


def test_frames_and_ids():
    names = ["age", "sex", "work", "year", "a", "b", "c"]
    frame = pd.DataFrame(X, columns=names)
    model = pg.RankRLS(feature_map=pg.Cross(["age", "sex", "work"], ["a", "b"], keep=["year", "c"]))
    model.fit(frame, y, qid=qid)
    people = pd.DataFrame(users, columns=names[:3], index=[f"u{i}" for i in range(N_USERS)])
    things = pd.DataFrame(items, columns=names[3:], index=[f"i{i}" for i in range(N_ITEMS)])
    few = things.loc[["i9", "i5", "i0"]]
    found = pg.recommend(model, people, few, 3, exclude=(["u1", "u1"], ["i0", "i5"]))
    assert found.items[1].tolist() == ["i9", None, None]
    assert set(found.items[0]) == {"i0", "i5", "i9"}
    table = found.to_frame()
    assert table.columns.tolist() == ["user", "rank", "item", "score"]
    assert len(table) == 3 * N_USERS - 2
    with pytest.raises(ValueError, match="items: there is no column 'year'"):
        pg.recommend(model, people, things.drop(columns="year"))


def test_batches_of_users_and_cold_ones():
    problems = [(items, y[qid == user], np.zeros(N_ITEMS, int)) for user in range(5)]
    everybody = pg.RankRLS().fit(np.tile(items, (N_USERS, 1)), y, qid=qid)
    batch = pg.fit_many(pg.RankRLS(), problems, fallback=everybody)
    found = pg.recommend(batch, [0, 3, 77], items, 4)
    scores = np.array([batch.predict(items, np.repeat(key, N_ITEMS)) for key in (0, 3, 77)])
    np.testing.assert_array_equal(found.places, sorted_places(scores, 4))
    assert found.users.tolist() == [0, 3, 77]


def test_a_batch_of_a_frame():
    names = list("abcd")
    things = pd.DataFrame(dict(zip(names, items.T, strict=True)))  # column by column in memory
    rated = pd.concat([things.assign(y=y[qid == user], user=user) for user in range(5)])
    batch = pg.fit_many(pg.RankRLS(), rated, "y", by="user")
    found = pg.recommend(batch, [3, 0], things[names[::-1]].assign(title="text"), 4)
    scores = np.array([batch.predict(things.assign(user=key), "user") for key in (3, 0)])
    np.testing.assert_array_equal(found.places, sorted_places(scores, 4))


@pytest.mark.parametrize("left", [[2, 0, 1], slice(0, 3)])
def test_arrays_have_the_left_columns_in_their_order(left):
    model = pg.RankRLS(feature_map=pg.Cross(left, [6, 4], keep=5)).fit(X, y, qid=qid)
    found = pg.recommend(model, users[:, left], items[:, 1:], 5)  # column 3 is none of the model
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))
    assert model.feature_map_.left_.tolist() == np.arange(7)[left].tolist()


@every(
    other=[1e-300, 1e-160, 1.0, 1e140], size=[1e-300, 1e-170, 1e-161, 1e-155, 1e150, 1e160, 1e300]
)
def test_sizes_of_all_kinds(size, other):
    if not 1e-310 < size * other < 1e300:
        return
    rng = np.random.default_rng(0)
    weights, items = rng.normal(size=(5, 4)) * size, rng.normal(size=(3000, 4)) * other
    problems = [(items[:9] / other, np.arange(9.0), np.zeros(9, int)) for _ in weights]
    batch = pg.fit_many(pg.RankRLS(), problems)
    batch.coef_[:] = weights
    found = pg.recommend(batch, range(5), items, 7)
    scores = [np.sort(items @ weight)[::-1][:7] for weight in weights]
    np.testing.assert_allclose(found.scores, scores, rtol=1e-12)


def with_weights(*weights):
    """Return a batch of linear models of things."""
    n = len(weights[0])
    problems = [(np.eye(n + 1, n), np.arange(n + 1.0), np.zeros(n + 1, int)) for _ in weights]
    batch = pg.fit_many(pg.RankRLS(), problems)
    batch.coef_[:] = weights
    return batch


@pytest.mark.parametrize("n_users", [1, 8, 9, 70, 130])
def test_places_and_bits_for_any_number_of_threads(n_users):
    """Of things in several strips, the largest of which comes last."""
    rng = np.random.default_rng(n_users)
    users, items = rng.normal(size=(n_users, 37)), rng.normal(size=(2500, 37))
    items[-1] *= 1e60
    found, scores = _core.top_products(users, items, 5)
    np.testing.assert_array_equal(found, sorted_places(users @ items.T, 5))
    expected = np.take_along_axis(users @ items.T, found, 1)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    for n_threads in (2, 3, 20):
        again = _core.top_products(users, items, 5, n_threads=n_threads)
        np.testing.assert_array_equal(again[0], found)
        np.testing.assert_array_equal(again[1], scores)


def test_scores_that_are_equal_in_float():
    """The best come last, by less than the products in float32 can tell."""
    items = np.random.default_rng(0).normal(size=8) + np.zeros((5000, 1))
    items[:, 0] += 1e-10 * np.arange(5000)
    found = pg.recommend(with_weights(np.ones(8)), [0], items, 3)
    assert found.places.tolist() == [[4999, 4998, 4997]]


def test_sizes_whose_product_is_no_normal_number():
    items = 2.0**-535 * np.arange(300.0)[:, None]
    found = pg.recommend(with_weights([2.0**-530]), [0], items, 3)
    assert found.places.tolist() == [[299, 298, 297]]
    np.testing.assert_array_equal(found.scores, [2.0**-1065 * np.array([299, 298, 297])])


def test_a_score_that_overflows_hides_no_better_one():
    user, items = np.array([[1e200, 1.0]]), np.array([[-1e200, 0.0], [0.0, 5.0]])
    found, scores = _core.top_products(user, items, 1)
    assert (found, scores) == (1, 5.0)


def test_ids_are_those_that_were_given():
    ids = np.arange(N_USERS), np.arange(N_ITEMS)
    found = pg.recommend(fitted(), users, items, 3, user_ids=ids[0], item_ids=ids[1])
    expected = found.to_frame()
    for one in ids:
        one[:] = one[::-1].copy()
    assert found.to_frame().equals(expected)


def test_nothing_is_left():
    everything = np.nonzero(np.ones((N_USERS, N_ITEMS)))
    found = pg.recommend(fitted(), users, items, 3, exclude=everything)
    assert (found.places == -1).all()
    assert np.isnan(found.scores).all()
    assert len(found.to_frame()) == 0


def test_sparse_rows_of_users_and_things():
    model = fitted()
    found = pg.recommend(model, scipy.sparse.csr_array(users), scipy.sparse.csr_array(items), 4)
    np.testing.assert_array_equal(found.places, pg.recommend(model, users, items, 4).places)


@pytest.mark.parametrize("kind", ["products", "scores"])
@pytest.mark.parametrize("number", [5.0, np.nan])
def test_a_number_for_users_without_models_orders_nothing(kind, number):
    problems = [(items, y[qid == user], np.zeros(N_ITEMS, int)) for user in range(3)]
    inputs = "standard" if kind == "scores" else None
    batch = pg.fit_many(pg.RankRLS(feature_map=inputs), problems, fallback=number)
    with pytest.raises(ValueError, match="users must have models, because the fallback"):
        pg.recommend(batch, [77, 1], items, 3)
    own = batch.predict(items, np.full(N_ITEMS, 1))
    found = pg.recommend(batch, [user for user in (77, 1) if user in batch], items, 3)
    np.testing.assert_array_equal(found.places, sorted_places(own[None], 3))
    np.testing.assert_array_equal(found.scores[0], own[found.places[0]])


def test_batches_take_frames_with_further_columns():
    frame = pd.DataFrame(items[:, :2], columns=["a", "b"])
    rows = pd.concat([frame.assign(user=f"u{user}", y=y[qid == user]) for user in range(3)])
    batch = pg.fit_many(pg.RankRLS(), rows, "y", by="user")
    found = pg.recommend(batch, ["u2", "u0"], frame.assign(title="x"), 2)
    scores = [batch.predict(frame, [user] * N_ITEMS) for user in ("u2", "u0")]
    np.testing.assert_array_equal(found.places, sorted_places(np.array(scores), 2))


def test_ids_of_things_are_those_of_the_frame():
    model, plain = fitted(), pg.recommend(fitted(), users, items, N_ITEMS + 1)
    numbers = np.arange(N_ITEMS)
    for index in (
        numbers.astype(np.uint8),
        numbers.astype(np.uint64) + np.uint64(2**63),
        pd.to_datetime(numbers, unit="D").as_unit("ns"),
        pd.to_timedelta(numbers, unit="h"),
        pd.MultiIndex.from_product([range(5), list("abcde")]),
        [1, "1", 2.5, b"1", *range(2, N_ITEMS - 2)],
    ):
        things = pd.DataFrame(items, columns=list("abcd"), index=index)
        names = pd.RangeIndex(7).map("c{}".format)
        of_frame = pg.RankRLS(0.1, feature_map=pg.Cross([0, 1, 2], slice(4, None), keep=3))
        of_frame.fit(pd.DataFrame(X, columns=names), y, qid=qid)
        things.columns = names[3:]
        people = pd.DataFrame(users, columns=names[:3])
        first = list(things.index[:2])
        found = pg.recommend(of_frame, people, things, N_ITEMS + 1, exclude=([0, 0], first))
        listed = list(things.index)
        assert list(found.items[1])[:-1] == [listed[j] for j in plain.places[1, :-1]]
        assert found.places[0, -3:].tolist() == [-1] * 3
    assert model.n_features_in_ == 7


@pytest.mark.parametrize("of_things", [True, False])
@pytest.mark.filterwarnings("ignore:all users get one list")
def test_other_models(of_things):
    rows = X[:, 3:] if of_things else X
    model = pg.PointwiseELM(n_nodes=20, random_state=0).fit(rows, y, qid=qid)
    found = pg.recommend(model, users[:, :0] if of_things else users, items, 5)
    scores = model.predict(rows).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_ids_of_frames_without_an_index(package):
    module = pytest.importorskip(package)
    frame_of = module.DataFrame if package == "polars" else module.table
    series = module.Series if package == "polars" else module.array
    names = [f"c{j}" for j in range(7)]
    frame = frame_of(dict(zip(names, X.T, strict=True)))
    model = pg.RankRLS(feature_map=pg.Cross(names[:3], names[3:])).fit(frame, y, qid=qid)
    people = frame_of(
        {"who": [f"u{i}" for i in range(N_USERS)]} | dict(zip(names[:3], users.T, strict=True))
    )
    things = frame_of(dict(zip(names[3:], items.T, strict=True)))
    listed = [f"i{i}" for i in range(N_ITEMS)]
    pairs = series(["u1", "u1", "u3"]), series(["i0", "i5", "i9"])
    found = pg.recommend(
        model,
        people,
        things,
        4,
        user_ids="who",
        item_ids=series(listed),
        exclude=pairs,
    )
    out = np.zeros((N_USERS, N_ITEMS), bool)
    out[[1, 1, 3], [0, 5, 9]] = True
    scores = model.predict(frame).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 4, out))
    assert found.users[3] == "u3" and found.items[3, 0] == listed[found.places[3, 0]]


def tables_of():
    """Return tables of rows, of people and of things, with lists among their columns."""
    pa = pytest.importorskip("pyarrow")

    def columns(person, thing):
        return {
            "age": person[:, 0],
            "person": pa.array(person[:, 1:].tolist()),
            "price": thing[:, 0],
            "thing": pa.array(thing[:, 1:].tolist()),
        }

    rows = pa.table({"y": y, "q": qid, **columns(X[:, :3], X[:, 3:])})
    both = columns(users, items)
    people = pa.table({"who": [f"u{i}" for i in range(N_USERS)], **dict(list(both.items())[:2])})
    things = pa.table({"what": np.arange(N_ITEMS) * 2, **dict(list(both.items())[2:])})
    return rows, people, things


def test_tables_with_lists(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, people, things = tables_of()
    model = pg.RankRLS(feature_map=pg.Cross(["age", "person"], ["price", "thing"]))
    model.fit(pg.scan(rows, label="y", qid="q"))
    scores = model.predict(pg.scan(rows, label="y", qid="q")).reshape(N_USERS, N_ITEMS)
    pq.write_table(people, tmp_path / "people.parquet")
    pq.write_table(things, tmp_path / "things.parquet", row_group_size=7)
    model.save(tmp_path / "model")
    found = pg.recommend(
        pg.load_model(tmp_path / "model"),
        pq.read_table(tmp_path / "people.parquet"),
        pq.read_table(tmp_path / "things.parquet"),
        6,
        user_ids="who",
        item_ids="what",
        exclude=(["u2"], [8]),
    )
    out = np.zeros((N_USERS, N_ITEMS), bool)
    out[2, 4] = True
    np.testing.assert_array_equal(found.places, sorted_places(scores, 6, out))
    assert found.users[2] == "u2"
    assert (found.items == found.places * 2).all()
    for kind in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(kind)
        frames = [people, things]
        if kind == "pandas":
            frames = [one.to_pandas() for one in frames]
            frames = [frames[0].set_index("who"), frames[1].set_index("what")]
        elif kind == "polars":
            import polars

            frames = [polars.from_arrow(one) for one in frames]
        named = {} if kind == "pandas" else {"user_ids": "who", "item_ids": "what"}
        other = pg.recommend(model, *frames, 6, **named, exclude=(["u2"], [8]))
        np.testing.assert_array_equal(other.places, found.places)
        assert (other.users == found.users).all() and (other.items == found.items).all()
    short = things.set_column(2, "thing", pa.array([[1.0]] * N_ITEMS))
    with pytest.raises(ValueError, match="items must have 4 columns, those of its side"):
        pg.recommend(model, people, short)
    with pytest.raises(ValueError, match="users: there is no column 'person"):
        pg.recommend(model, people.drop(["person"]), things)
    with pytest.raises(ValueError, match="users must be rows in memory"):
        pg.recommend(model, pg.scan(people, exclude="who"), things)


def test_missing_numbers_of_tables_are_those_of_the_fit():
    pa = pytest.importorskip("pyarrow")
    names = [f"c{j}" for j in range(7)]
    gaps = X.copy()
    gaps[::9, 4] = np.nan
    rows = pa.table(dict(zip(names, gaps.T, strict=True)) | {"y": y, "q": qid})
    model = pg.RankRLS(feature_map=make_pipeline(pg.Fill(), pg.Cross(names[:3], names[3:])))
    model.fit(pg.scan(rows, label="y", qid="q"))
    some = items.copy()
    some[[2, 5], 1] = np.nan
    things = pa.table(dict(zip(names[3:], some.T, strict=True)))
    people = pa.table(dict(zip(names[:3], users.T, strict=True)))
    filled = np.where(np.isnan(some), fill_of(model)[3:], some)
    whole = np.hstack([np.repeat(users, N_ITEMS, axis=0), np.tile(filled, (N_USERS, 1))])
    scores = model.predict(scanned((whole, y))).reshape(N_USERS, N_ITEMS)
    found = pg.recommend(model, people, things, 5)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))


def test_models_that_take_missing_numbers():
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X, y)
    some = items.copy()
    some[2, 1] = np.nan
    whole = np.hstack([np.repeat(users, N_ITEMS, axis=0), np.tile(some, (N_USERS, 1))])
    found = pg.recommend(model, users, some, 5)
    scores = model.predict(whole).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))


@every(excludes=[False, True], kind=["linear", "other columns"])
def test_one_list_for_all_users_is_told(kind, excludes):
    exclude = ([1, 2], [3, 4]) if excludes else None
    if kind == "other columns":
        people = pd.DataFrame(users, columns=["age", "sex", "work"])
        things = pd.DataFrame(items, columns=list("abcd"))
        names = pd.DataFrame(X[:, 3:], columns=list("abcd"))
        model = pg.RankRLS(feature_map=pg.Kernel("rbf")).fit(names[:200], y[:200], qid=qid[:200])
    else:
        people, things = users, items
        model = pg.RankRLS().fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="all users get one list: no column of users changes"):
        pg.recommend(model, people, things, exclude=exclude)
    pg.recommend(model, people[:1], things, exclude=None)
    pg.recommend(fitted(), users, items, exclude=exclude)
