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


@pytest.mark.parametrize("left", [[2, 0, 1], slice(0, 3)])
def test_arrays_have_the_left_columns_in_their_order(world, left):
    users, items, X, y, qid = world
    model = RankRLS(feature_map=Cross(left, [6, 4], keep=5)).fit(X, y, qid=qid)
    found = recommend(model, users[:, left], items[:, 1:], 5)  # column 3 is none of the model
    scores = model.predict(X).reshape(N_USERS, N_ITEMS)
    np.testing.assert_array_equal(found.places, sorted_places(scores, 5))
    assert model.feature_map_.left_.tolist() == np.arange(7)[left].tolist()


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-161, 1e-155, 1e150, 1e160, 1e300])
@pytest.mark.parametrize("other", [1e-300, 1e-160, 1.0, 1e140])
def test_sizes_of_all_kinds(size, other):
    if not 1e-310 < size * other < 1e300:
        return
    rng = np.random.default_rng(0)
    weights, items = rng.normal(size=(5, 4)) * size, rng.normal(size=(3000, 4)) * other
    problems = [(items[:9] / other, np.arange(9.0), np.zeros(9, int)) for _ in weights]
    batch = fit_many(RankRLS(), problems)
    for model, weight in zip(batch.models, weights, strict=True):
        model.coef_ = weight
    found = recommend(batch, range(5), items, 7)
    scores = [np.sort(items @ weight)[::-1][:7] for weight in weights]
    np.testing.assert_allclose(found.scores, scores, rtol=1e-12)


def test_scores_that_overflow(world):
    users, items, *_ = world
    with pytest.raises(ValueError, match="scores of their pairs overflow"):
        recommend(fitted(world), users * 1e300, items * 1e300)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_what_is_left_out_stays_as_it_was(world, dtype):
    users, items, *_ = world
    model = fitted(world)
    columns = np.array([5, 1, 5, 0], dtype)  # not in order, and one twice
    indptr = np.array([0] + [4] * N_USERS, dtype)
    exclude = scipy.sparse.csr_matrix((np.ones(4), columns, indptr), (N_USERS, N_ITEMS))
    everything = recommend(model, users, items, N_ITEMS).places
    found = recommend(model, users, items, N_ITEMS, exclude=exclude)
    assert found.places[0, :-3].tolist() == [j for j in everything[0] if j not in (0, 1, 5)]
    np.testing.assert_array_equal(found.places[1:], everything[1:])
    assert exclude.indices.tolist() == [5, 1, 5, 0]
    assert exclude.data.tolist() == [1.0] * 4


def test_nobody_and_nothing(world):
    users, items, *_ = world
    model = fitted(world)
    assert recommend(model, users[:0], items, 3).items.shape == (0, 3)
    for found in (
        recommend(model, users, items[:0], 3),
        recommend(model, users, items, 3, candidates=[]),
        recommend(model, users, items, 3, exclude=np.nonzero(np.ones((N_USERS, N_ITEMS)))),
    ):
        assert (found.places == -1).all()
        assert np.isnan(found.scores).all()
        assert len(found.to_frame()) == 0


def test_sparse_rows_of_users_and_things(world):
    users, items, *_ = world
    model = fitted(world)
    found = recommend(model, scipy.sparse.csr_array(users), scipy.sparse.csr_array(items), 4)
    np.testing.assert_array_equal(found.places, recommend(model, users, items, 4).places)


@pytest.mark.parametrize("kind", ["products", "scores"])
@pytest.mark.parametrize("number", [5.0, np.nan])
def test_a_number_for_users_without_models(world, kind, number):
    _, items, _, y, qid = world
    problems = [(items, y[qid == user], np.zeros(N_ITEMS, int)) for user in range(3)]
    inputs = "standard" if kind == "scores" else None
    batch = fit_many(RankRLS(inputs=inputs), problems, fallback=number)
    found = recommend(batch, [77, 1, 88], items, 3)
    nobody = [0, 1, 2] if number == 5 else [-1] * 3
    np.testing.assert_array_equal(found.places[[0, 2]], [nobody] * 2)
    np.testing.assert_array_equal(found.scores[[0, 2]], np.full((2, 3), number))
    own = batch.predict(items, np.full(N_ITEMS, 1))
    np.testing.assert_array_equal(found.places[1], sorted_places(own[None], 3)[0])
    np.testing.assert_array_equal(found.scores[1], own[found.places[1]])


def test_batches_take_frames_with_further_columns(world):
    pandas = pytest.importorskip("pandas")
    _, items, _, y, qid = world
    frame = pandas.DataFrame(items[:, :2], columns=["a", "b"])
    rows = pandas.concat([frame.assign(user=f"u{user}", y=y[qid == user]) for user in range(3)])
    batch = fit_many(RankRLS(), rows, by="user", label="y")
    found = recommend(batch, ["u2", "u0"], frame.assign(title="x"), 2)
    scores = [batch.predict(frame, [user] * N_ITEMS) for user in ("u2", "u0")]
    np.testing.assert_array_equal(found.places, sorted_places(np.array(scores), 2))


def test_ids_of_things_are_those_of_the_frame(world):
    pandas = pytest.importorskip("pandas")
    users, items, *_ = world
    model, plain = fitted(world), recommend(fitted(world), users, items, N_ITEMS + 1)
    numbers = np.arange(N_ITEMS)
    for index in (
        numbers.astype(np.uint8),
        numbers.astype(np.uint64) + np.uint64(2**63),
        pandas.to_datetime(numbers, unit="D").as_unit("ns"),
        pandas.to_timedelta(numbers, unit="h"),
        pandas.MultiIndex.from_product([range(5), list("abcde")]),
        [1, "1", 2.5, b"1", *range(2, N_ITEMS - 2)],
    ):
        things = pandas.DataFrame(items, columns=list("abcd"), index=index)
        names = pandas.RangeIndex(7).map("c{}".format)
        of_frame = RankRLS(0.1, feature_map=Cross([0, 1, 2], slice(4, None), keep=3))
        X = pandas.DataFrame(world[2], columns=names)
        of_frame.fit(X, world[3], qid=world[4])
        things.columns = names[3:]
        people = pandas.DataFrame(users, columns=names[:3])
        first = list(things.index[:2])
        found = recommend(of_frame, people, things, N_ITEMS + 1, exclude=([0, 0], first))
        listed = list(things.index)
        assert list(found.items[1])[:-1] == [listed[j] for j in plain.places[1, :-1]]
        assert found.places[0, -3:].tolist() == [-1] * 3
        chosen = recommend(of_frame, people, things, 1, candidates=first[1:])
        assert (chosen.places == 1).all()
    assert model.n_features_in_ == 7


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
    with pytest.raises(ValueError, match="candidates must be ids of rows, got a mask"):
        recommend(model, users, items, candidates=np.ones(N_ITEMS, bool))
    with pytest.raises(ValueError, match="users must be real numbers, got complex"):
        recommend(model, users + 1j, items)
    with pytest.raises(ValueError, match="items: columns 0, 1, 2, 3 must hold numbers, got text"):
        recommend(model, users, [list("abcd")])
    batch = fit_many(RankRLS(), [(items, y[qid == 0], np.zeros(N_ITEMS, int))])
    with pytest.raises(ValueError, match="users must be ids, each of them once, got 0 twice"):
        recommend(batch, [0, 0], items)
    with pytest.raises(ValueError, match="1 of 1 keys have no model"):
        recommend(batch, [8], items)
    with pytest.raises(ValueError, match="keys must be numbers, such as 0"):
        recommend(batch, ["0"], items)
    kept = RankRLS(feature_map=Cross([0, 1], [2], keep=[0])).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="column 0 of X as a left column and as a kept or right"):
        recommend(kept, users, items)
    problems = [(items, y[qid == user], np.zeros(N_ITEMS, int)) for user in range(3)]
    with pytest.raises(ValueError, match="model must score rows alone"):
        recommend(fit_many(RankRLS(inputs="rank"), problems), [0], items)
    of_lists = RankRLS(inputs="rank").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="model must score rows alone"):
        recommend(of_lists, users, items)
