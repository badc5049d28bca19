"""recommend, against the sorted scores of all pairs of users and things."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

from pairgram import Cross, PointwiseELM, RandomFourier, RankRLS, fit_many, recommend

N_USERS, N_ITEMS = 40, 25


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(N_USERS, 3)), rng.normal(size=(N_ITEMS, 4))
    items[7] = items[3]  # a thing that is there twice
    X = np.hstack([np.repeat(users, N_ITEMS, axis=0), np.tile(items, (N_USERS, 1))])
    scores = users @ rng.normal(size=(3, 4)) @ items.T + items[:, 0]
    y = np.digitize(scores, [-1.0, 0.5, 2.0]).astype(float).ravel()
    return users, items, X, y, np.repeat(np.arange(N_USERS), N_ITEMS)


def sorted_places(scores, k, out=None):
    """Return the best k of every row; of equal scores the first comes first."""
    found = np.full((len(scores), k), -1)
    for user, row in enumerate(scores):
        order = [j for j in np.argsort(-row, kind="stable") if out is None or not out[user, j]]
        found[user, : min(k, len(order))] = order[:k]
    return found


def fitted(world, **settings):
    _, _, X, y, qid = world
    feature_map = Cross([0, 1, 2], slice(4, None), keep=3, **settings)
    return RankRLS(0.1, feature_map=feature_map).fit(X, y, qid=qid)


@pytest.mark.parametrize("k", [1, 5, 25, 40])
@pytest.mark.parametrize(
    "settings",
    [{}, {"common_ridge": None}, {"left_map": RandomFourier(4, random_state=0)}],
    ids=["common", "products", "map"],
)
def test_cross_models(world, k, settings):
    users, items, X, *_ = world
    model = fitted(world, **settings)
    found = recommend(model, users, items, k)
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, k))
    n = min(k, N_ITEMS)
    np.testing.assert_array_equal(
        found.scores[:, :n], np.take_along_axis(scores, found.places[:, :n], 1)
    )
    assert np.isnan(found.scores[:, n:]).all()


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_what_is_left_out_and_what_is_chosen_from(seed, k, as_pairs):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(-2, 3, (6, 2)) * 1.0, rng.integers(-2, 3, (9, 2)) * 1.0
    X = np.hstack([np.repeat(users, 9, axis=0), np.tile(items, (6, 1))])
    model = RankRLS(feature_map=Cross([0, 1], [2, 3])).fit(
        X, rng.integers(0, 2, 54), qid=np.arange(54) // 9
    )
    out = rng.random((6, 9)) < 0.3
    chosen = np.flatnonzero(rng.random(9) < 0.7)
    exclude = np.nonzero(out) if as_pairs else scipy.sparse.csr_array(out)
    found = recommend(model, users, items, k, exclude=exclude, candidates=chosen)
    out[:, np.setdiff1d(np.arange(9), chosen)] = True
    scores = model.predict(X).reshape(6, 9)
    np.testing.assert_array_equal(found.places, sorted_places(scores, k, out))


@pytest.mark.parametrize("inputs", ["standard", "quantile", "raw+quantile"])
def test_inputs_before_the_map(world, inputs):
    users, items, X, y, qid = world
    feature_map = Cross([0, 1, 2], [3, 4, 5, 6])
    model = RankRLS(feature_map=feature_map, inputs=inputs).fit(X, y, qid=qid)
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    if inputs == "raw+quantile":
        model_columns = model.feature_map_.left_
        assert (model_columns == [0, 1, 2]).all()
    found = recommend(model, users, items, 6)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 6))


def test_frames_and_ids(world):
    pandas = pytest.importorskip("pandas")
    users, items, X, y, qid = world
    names = ["age", "sex", "work", "year", "a", "b", "c"]
    frame = pandas.DataFrame(X, columns=names)
    model = RankRLS(feature_map=Cross(["age", "sex", "work"], ["a", "b"], keep=["year", "c"]))
    model.fit(frame, y, qid=qid)
    people = pandas.DataFrame(users, columns=names[:3], index=[f"u{i}" for i in range(N_USERS)])
    things = pandas.DataFrame(items, columns=names[3:], index=[f"i{i}" for i in range(N_ITEMS)])
    found = recommend(
        model,
        people,
        things[::-1],
        3,
        exclude=(["u1", "u1"], ["i0", "i5"]),
        candidates=["i0", "i5", "i9"],
    )
    assert found.items[1].tolist() == ["i9", None, None]
    assert set(found.items[0]) == {"i0", "i5", "i9"}
    table = found.to_frame()
    assert table.columns.tolist() == ["user", "rank", "item", "score"]
    assert len(table) == 3 * N_USERS - 2
    with pytest.raises(ValueError, match="exclude must have ids of users, got 'u99'"):
        recommend(model, people, things, exclude=(["u99"], ["i0"]))
    with pytest.raises(ValueError, match="items must have the column 'year'"):
        recommend(model, people, things.drop(columns="year"))


def test_nobody_gets_nothing(world):
    users, items, *_ = world
    found = recommend(fitted(world), users[:0], items, 3)
    assert found.items.shape == found.scores.shape == (0, 3)


def test_batches_of_users_and_cold_ones(world):
    _, items, _, y, qid = world
    problems = [(items, y[qid == user], np.zeros(N_ITEMS, int)) for user in range(5)]
    everybody = RankRLS().fit(np.tile(items, (N_USERS, 1)), y, qid=qid)
    batch = fit_many(RankRLS(), problems, fallback=everybody)
    found = recommend(batch, [0, 3, 77], items, 4)
    scores = np.array([batch.predict(items, np.repeat(key, N_ITEMS)) for key in (0, 3, 77)])
    np.testing.assert_array_equal(found.places, sorted_places(scores, 4))
    assert found.users.tolist() == [0, 3, 77]


def test_a_batch_of_a_frame(world):
    pandas = pytest.importorskip("pandas")
    _, items, _, y, qid = world
    names = list("abcd")
    things = pandas.DataFrame(dict(zip(names, items.T, strict=True)))  # column by column in memory
    rated = pandas.concat([things.assign(y=y[qid == user], user=user) for user in range(5)])
    batch = fit_many(RankRLS(), rated, by="user", label="y", features=names)
    found = recommend(batch, [3, 0], things[names[::-1]].assign(title="text"), 4)
    scores = np.array([batch.predict(things.assign(user=key), "user") for key in (3, 0)])
    np.testing.assert_array_equal(found.places, sorted_places(scores, 4))
    with pytest.raises(ValueError, match="items: there is no column 'b'"):
        recommend(batch, [3, 0], things.drop(columns="b"), 4)


@pytest.mark.parametrize("of_things", [True, False])
def test_other_models(world, of_things):
    users, items, X, y, qid = world
    rows = X[:, 3:] if of_things else X
    model = PointwiseELM(n_nodes=20, random_state=0).fit(rows, y, qid=qid)
    found = recommend(model, users[:, :0] if of_things else users, items, 5)
    scores = model.predict(rows).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))


def test_bad_arguments(world):
    users, items, X, y, qid = world
    model = fitted(world)
    with pytest.raises(ValueError, match="users must have 3 columns"):
        recommend(model, users[:, :2], items)
    with pytest.raises(ValueError, match=r"items must not hold NaN or infinity, got it in row 2"):
        recommend(model, users, np.where(np.arange(N_ITEMS)[:, None] == 2, np.nan, items))
    with pytest.raises(ValueError, match="k must be an integer"):
        recommend(model, users, items, 0)
    with pytest.raises(ValueError, match="exclude must have shape"):
        recommend(model, users, items, exclude=scipy.sparse.eye_array(3))
    with pytest.raises(ValueError, match="candidates must have ids of items, got 99"):
        recommend(model, users, items, candidates=[99])
    of_lists = RankRLS(inputs="rank").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="model must score rows alone"):
        recommend(of_lists, users, items)
