"""Pairgram: additivity, streams, the scopes, sparse rows, files."""

import copy
import functools
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

import reference
from pairgram import Pairgram, QueryKFold, RankRLS, RankRLSCV
from parts.data import Pairs, checked_data
from parts.support import on_threads
from problems import problems

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]


def of(problem, rows=slice(None), X=None, **settings):
    def part(values):
        whole = isinstance(rows, slice) and rows == slice(None)  # COO arrays have no parts
        return values if values is None or whole else values[rows]

    return Pairgram.from_rows(
        part(problem.X if X is None else X),
        problem.y[rows],
        qid=problem.query[rows],
        sample_weight=part(problem.v),
        query_weight=part(problem.query_weight),
        **settings,
    )


def sums(pairgram):
    g = pairgram.g[:, None]
    return np.block([[pairgram.G, g], [g.T, np.array([[pairgram.yy]])]])


def assert_same(actual, expected, tolerance=1e-9):
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def test_users_see_what_the_documentation_says():
    attributes = Pairgram.__doc__.partition("\n    Notes\n")[0]
    methods = {"from_rows", "update", "solve", "path", "default_alphas"}
    methods |= {"save", "to_bytes", "load", "from_bytes"}
    for name in {name for name in dir(Pairgram) if name[0] != "_"} - methods:
        assert re.search(rf"^    (\w+, )*{name}(, \w+)* : ", attributes, re.M), name


@given(
    problems(),
    st.sampled_from(PAIRS),
    st.sampled_from(WEIGHTINGS),
    st.sampled_from(["label", "gain"]),
)
def test_statistics_equal_the_dense_laplacian(problem, pairs, weighting, target):
    pairgram = of(problem, pairs=Pairs(pairs, weighting=weighting, target=target))
    expected, total = reference.statistics(
        problem.X,
        problem.y,
        problem.query,
        pairs,
        problem.v,
        weighting,
        problem.query_weight,
        target,
    )
    assert_same(sums(pairgram), expected, 1e-12)
    np.testing.assert_allclose(pairgram.pair_weight, total, rtol=1e-12)
    assert pairgram.n_rows == len(problem.y)
    assert pairgram.n_queries == len(np.unique(problem.query))


@given(problems(min_queries=2), st.sampled_from(PAIRS), st.sampled_from(WEIGHTINGS), st.data())
def test_merge_and_subtract_equal_a_refit(problem, pairs, weighting, data):
    left = np.isin(problem.query, data.draw(st.sets(st.sampled_from(list(problem.query)))))
    if left.all() or not left.any():
        return
    named = {"pairs": Pairs(pairs, weighting=weighting)}
    whole, a, b = of(problem, **named), of(problem, left, **named), of(problem, ~left, **named)
    assert_same(sums(a + b), sums(whole))
    assert_same(sums(whole - b), sums(a))
    assert (a + b).n_queries == whole.n_queries
    assert (whole - b).n_rows == a.n_rows
    np.testing.assert_allclose((a + b).pair_weight, whole.pair_weight, rtol=1e-12)
    stream = Pairgram(**named)
    for rows in (left, ~left):
        stream.update(
            problem.X[rows],
            problem.y[rows],
            qid=problem.query[rows],
            sample_weight=None if problem.v is None else problem.v[rows],
            query_weight=None if problem.query_weight is None else problem.query_weight[rows],
        )
    assert_same(sums(stream), sums(whole))


@given(problems(weights=False), st.sampled_from(WEIGHTINGS), st.booleans(), st.data())
def test_global_pairs_merge_across_shards(problem, weighting, weighted, data):
    n = len(problem.y)
    v = np.random.default_rng(0).choice([0.0, 1.0, 2.5], n) if weighted else None
    named = {"pairs": Pairs("with_ties", scope="global", weighting=weighting)}
    expected, total = reference.statistics(
        problem.X, problem.y, np.zeros(n), "with_ties", v, weighting
    )
    part = lambda rows: None if v is None else v[rows]  # noqa: E731
    whole = Pairgram.from_rows(problem.X, problem.y, sample_weight=v, **named)
    assert_same(sums(whole), expected, 1e-12)
    np.testing.assert_allclose(whole.pair_weight, total, rtol=1e-12, atol=1e-12)
    cut = data.draw(st.integers(1, n)) if n > 1 else 1
    if cut == n:
        return
    a = Pairgram.from_rows(
        problem.X[:cut], problem.y[:cut], sample_weight=part(slice(cut)), **named
    )
    b = Pairgram.from_rows(
        problem.X[cut:], problem.y[cut:], sample_weight=part(slice(cut, None)), **named
    )
    assert_same(sums(a + b), expected)
    smaller, _ = reference.statistics(
        problem.X[:cut], problem.y[:cut], np.zeros(cut), "with_ties", part(slice(cut)), weighting
    )
    np.testing.assert_allclose(
        sums(whole - b), smaller, rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max())
    )
    assert (a + b).n_queries == 1


@pytest.mark.parametrize("pairs", ["without_ties", "gain_difference"])
def test_global_pairs_with_labels_do_not_merge(pairs):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.integers(0, 3, 12).astype(float)
    a = Pairgram.from_rows(X, y, qid=np.arange(12) // 3, pairs=Pairs(pairs, scope="global"))
    expected, _ = reference.statistics(X, y, np.zeros(12), pairs)
    assert_same(sums(a), expected, 1e-12)
    assert a.n_rows == 12


@given(problems(), st.sampled_from(PAIRS), st.sampled_from(WEIGHTINGS), st.sampled_from([0.1, 0.9]))
def test_sparse_rows_equal_dense_rows(problem, pairs, weighting, density):
    keep = np.random.default_rng(0).random(problem.X.shape) < density
    problem.X = problem.X * keep
    named = {"pairs": Pairs(pairs, weighting=weighting)}
    dense = of(problem, **named)
    for container in (sp.csr_array, sp.csr_matrix, sp.coo_array):
        sparse = of(problem, X=container(problem.X), **named)
        assert_same(sums(sparse), sums(dense), 1e-12)
        np.testing.assert_allclose(sparse.pair_weight, dense.pair_weight, rtol=1e-12)


def test_sparse_rows_in_dense_blocks(set_limits):
    rng = np.random.default_rng(0)
    query = rng.permutation(np.repeat(np.arange(20), 7))
    X, y = rng.normal(size=(140, 5)), rng.integers(0, 3, 140).astype(float)
    set_limits(dense_block_bytes=5 * 8 * 30)
    csr = checked_data(sp.csr_array(X), y, qid=query)
    blocks = list(csr.blocks(Pairs()))
    assert len(blocks) == 5
    total = Pairgram.from_rows(sp.csr_array(X), y, qid=query)
    assert_same(sums(total), sums(Pairgram.from_rows(X, y, qid=query)), 1e-13)


def test_solve_path_and_gradient():
    rng = np.random.default_rng(1)
    X, query = rng.normal(size=(60, 4)) * [1, 10, 0.1, 1], np.arange(60) // 6
    y = rng.integers(0, 3, 60).astype(float)
    pairgram = Pairgram.from_rows(X, y, qid=query, pairs="without_ties")
    alphas = [1e-3, 5.0, 1e-1, 1e4]
    path = pairgram.path(alphas)
    for alpha, w in zip(alphas, path, strict=True):
        np.testing.assert_allclose(pairgram.solve(alpha), w, rtol=1e-9)
        step = 1e-5 * np.eye(4)
        value = lambda w: reference.objective(w, X, y, query, "without_ties", alpha)  # noqa: E731, B023
        slope = [(value(w + e) - value(w - e)) / 2e-5 for e in step]
        np.testing.assert_allclose(slope, 0, atol=1e-4 * value(w))
    scale = 1 / np.sqrt(np.diag(pairgram.G))
    S = sums(pairgram)
    for alpha, w in zip(alphas, pairgram.path(alphas, scale=True), strict=True):
        np.testing.assert_allclose(w, reference.ridge(S, alpha, scale), rtol=1e-9)
        np.testing.assert_allclose(pairgram.solve(alpha, scale=True), w, rtol=1e-9)
    largest = np.linalg.eigvalsh(pairgram.G)[-1]
    grid = pairgram.default_alphas()
    np.testing.assert_allclose(grid[[0, -1]], largest / 1e4 * 2.0 ** np.array([15, -18]))
    assert pairgram.path().shape == (34, 4)


def test_a_singular_system_has_its_minimum_norm_solution():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    X = np.column_stack([X, X[:, 0], np.ones(30)])
    y = rng.normal(size=30)
    w = Pairgram.from_rows(X, y).solve(0)
    np.testing.assert_allclose(w[[0, 3]], [w[2], 0], atol=1e-9)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(w, np.linalg.pinv(centred) @ (y - y.mean()), atol=1e-9)
    assert not Pairgram.from_rows(X, np.zeros(30)).solve(0).any()


def test_results_do_not_depend_on_threads_or_row_order():
    rng = np.random.default_rng(3)
    X, query = rng.normal(size=(5000, 9)), np.repeat(np.arange(250), 20)
    y = rng.integers(0, 4, 5000).astype(float)
    one, *others = on_threads((1, 2, 5), lambda: Pairgram.from_rows(X, y, qid=query))
    for other in others:
        np.testing.assert_array_equal(other.G, one.G)
    shuffled = rng.permutation(5000)
    other = Pairgram.from_rows(X[shuffled], y[shuffled], qid=query[shuffled])
    assert_same(other.G, one.G, 1e-13)
    shifted = Pairgram.from_rows(X, y + rng.normal(size=250)[query], qid=query)
    assert_same(shifted.g, one.g, 1e-12)


def test_a_duplicated_row_is_weight_two():
    rng = np.random.default_rng(4)
    X, y, query = rng.normal(size=(20, 3)), rng.integers(0, 3, 20).astype(float), np.arange(20) // 5
    v = np.ones(20)
    v[[3, 11]] = 2
    twice = np.append(np.arange(20), [3, 11])
    for pairs in PAIRS:
        for weighting in WEIGHTINGS:
            named = {"pairs": Pairs(pairs, weighting=weighting)}
            weighted = Pairgram.from_rows(X, y, qid=query, sample_weight=v, **named)
            repeated = Pairgram.from_rows(X[twice], y[twice], qid=query[twice], **named)
            assert_same(sums(weighted), sums(repeated), 1e-13)


def test_layouts_and_types_of_input():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 9, (24, 4)).astype(float), rng.integers(0, 3, 24)
    expected = Pairgram.from_rows(X, y, qid=np.arange(24) // 6).G
    read_only = X.copy()
    read_only.setflags(write=False)
    for same in (
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        read_only,
        X.astype(int),
        X.astype(np.float32),
        X.tolist(),
    ):
        actual = Pairgram.from_rows(same, y.tolist(), qid=list("aaaaaabbbbbbccccccdddddd")).G
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_streams_refuse_split_queries_and_other_widths():
    X, y = np.eye(4), np.arange(4.0)
    stream = Pairgram().update(X, y, qid=["a", "a", "b", "b"])
    with pytest.raises(ValueError, match="qid 'b' came in an earlier update"):
        stream.update(X, y, qid=["c", "c", "b", "b"])
    with pytest.raises(ValueError, match="must have 4 features, got 3"):
        stream.update(X[:, :3], y, qid=["c", "c", "d", "d"])
    assert stream.n_rows == 4
    stream = Pairgram().update(X, y).update(X, y)  # without ids every call is a query
    assert (stream.n_rows, stream.n_queries) == (8, 2)


def test_a_callable_gives_pair_weights():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(15, 2)), rng.integers(0, 4, 15).astype(float)
    omega = lambda a, b: np.where(a == b, 0.25, np.maximum(a, b))  # noqa: E731
    expected, _ = reference.statistics(X, y, np.zeros(15), lambda a, b: float(omega(a, b)))
    assert_same(sums(Pairgram.from_rows(X, y, pairs=omega)), expected, 1e-13)


@pytest.mark.parametrize("scope", ["query", "global"])
def test_files_hold_everything(tmp_path, scope):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    total = Pairgram.from_rows(X, y, pairs=Pairs(scope=scope, weighting="documents"))
    total.save(tmp_path / "total.safetensors")
    loaded = Pairgram.load(tmp_path / "total.safetensors")
    assert loaded.settings == total.settings
    np.testing.assert_array_equal(sums(loaded), sums(total))
    np.testing.assert_array_equal(sums(loaded + total), sums(total + total))
    assert (loaded.n_rows, loaded.pair_weight) == (12, total.pair_weight)
    for same in (copy.deepcopy(total), pickle.loads(pickle.dumps(total))):
        np.testing.assert_array_equal(sums(same), sums(total))
    assert [path.name for path in tmp_path.iterdir()] == ["total.safetensors"]


class Weight:
    """A callable that deep copies as another object and cannot be hashed."""

    __hash__ = None

    def __call__(self, a, b):
        return np.abs(a - b)


@pytest.mark.parametrize(
    "omega", [Weight(), functools.partial(lambda a, b, c: c * abs(a - b), c=1)]
)
def test_any_callable_keeps_its_identity(omega):
    X, y = np.eye(4), np.arange(4.0)
    stream = Pairgram(pairs=omega).update(X, y).update(X, y)
    assert_same(sums(stream), 2 * sums(Pairgram.from_rows(X, y, pairs="label_difference")), 1e-14)


def test_a_feature_that_does_not_vary_is_not_scaled_up():
    rng = np.random.default_rng(0)
    X = sp.random_array((160, 60), density=0.05, random_state=rng).toarray()
    X[:, 7] = 0.1
    y, query = rng.normal(size=160), np.arange(160) // 8
    for rows in (X, sp.csr_array(X)):
        assert Pairgram.from_rows(rows, y, qid=query).solve(1.0, scale=True)[7] == 0
    X = rng.normal(size=(8000, 3)) * 100
    X[100:, 1] = 0.3
    y, query = rng.normal(size=8000), np.arange(8000) // 8
    only = query < 100 // 8 + 1
    rest = Pairgram.from_rows(X, y, qid=query) - Pairgram.from_rows(
        X[only], y[only], qid=query[only]
    )
    assert rest.solve(1.0, scale=True)[1] == 0


def test_tiny_ridges_do_not_blow_up_rounding_error():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    y = rng.normal(size=80)
    pairgram = Pairgram.from_rows(X, y)
    expected = pairgram.solve(0)
    for alpha in (1e-12, 1e-18, 1e-40, 5e-324):
        np.testing.assert_allclose(pairgram.solve(alpha), expected, rtol=1e-9)
        np.testing.assert_allclose(pairgram.path([alpha])[0], expected, rtol=1e-9)


def test_columns_that_vanish_in_a_part_are_constant_there():
    X, y, qid = np.array([[1.0], [0.0], [1e-160], [0.0]]), [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1]
    with pytest.raises(ValueError, match="X too small"):
        RankRLS().fit(X[2:], y[2:])
    model = RankRLSCV(alphas=[1.0, 2.0], cv=QueryKFold(2), scoring="pairwise_squared_error")
    first, second = model.fit(X, y, qid=qid).held_out_[:2]
    assert first == second == pytest.approx(0.0, abs=1e-15)


def test_float32_squares_that_vanish_or_overflow_are_taken_in_float64():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    for factor in (1e-25, 1e25):
        single = (X * factor).astype(np.float32)
        expected = Pairgram.from_rows(single.astype(float), y).G
        np.testing.assert_array_equal(Pairgram.from_rows(single, y).G, expected)


def test_weights_of_any_size():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 3, 20).astype(float)
    v = np.ones(20)
    v[0] = 1e-310
    zero = Pairgram.from_rows(X, y, sample_weight=np.where(v < 1, 0, v), pairs="gain_difference")
    assert_same(
        sums(Pairgram.from_rows(X, y, sample_weight=v, pairs="gain_difference")), sums(zero), 1e-13
    )


def test_rows_of_errors_are_those_of_the_caller(set_limits):
    set_limits(dense_block_bytes=1000)
    query = np.random.default_rng(0).permutation(np.repeat(np.arange(30), 5))
    y = np.zeros(150)
    y[101] = 2000
    with pytest.raises(ValueError, match=r"label 2000.* in row 101"):
        Pairgram.from_rows(
            sp.csr_array(np.ones((150, 2))), y, qid=query, pairs=Pairs(target="gain")
        )


def test_real_labels_of_sparse_rows_take_little_memory():
    rng = np.random.default_rng(4)
    X, y = (
        sp.random_array((20_000, 5), density=0.1, random_state=rng, format="csr"),
        rng.normal(size=20_000),
    )
    sparse = Pairgram.from_rows(X, y, pairs="without_ties")  # K² would be 3 GiB
    assert_same(sums(sparse), sums(Pairgram.from_rows(X.toarray(), y, pairs="without_ties")), 1e-11)


def test_global_streams_stand_a_large_offset():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 64, (60, 3)) / 64, rng.normal(size=60)
    named = {"pairs": Pairs(scope="global")}
    whole = Pairgram.from_rows(X, y, **named)
    far = Pairgram(**named).update(X[:20] + 2.0**40, y[:20]).update(X[20:] + 2.0**40, y[20:])
    assert_same(sums(far), sums(whole), 1e-12)


def test_odd_sparse_and_unaligned_rows():
    rng = np.random.default_rng(6)
    dense, y = rng.integers(0, 2, (30, 4)).astype(float), rng.normal(size=30)
    csr = sp.csr_array(dense)
    odd = sp.csr_array(
        (
            np.r_[csr.data[::-1], 0.0],
            np.r_[csr.indices, 0].astype(np.int64),
            np.r_[csr.indptr[:-1], csr.nnz + 1].astype(np.int64),
        ),
        shape=csr.shape,
    )
    odd.data[:-1] = csr.data / 2
    twice = sp.csr_array(
        (np.repeat(odd.data, 2), np.repeat(odd.indices, 2), 2 * odd.indptr), shape=csr.shape
    )
    assert_same(sums(Pairgram.from_rows(twice, y)), sums(Pairgram.from_rows(dense, y)), 1e-13)
    unaligned = np.frombuffer(b"x" + dense.tobytes(), dtype=float, offset=1).reshape(30, 4)
    assert_same(sums(Pairgram.from_rows(unaligned, y)), sums(Pairgram.from_rows(dense, y)), 0)
    swapped = dense.astype(">f8")
    assert_same(sums(Pairgram.from_rows(swapped, y)), sums(Pairgram.from_rows(dense, y)), 0)


def test_sum_merges_shards():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    shards = [Pairgram.from_rows(X[rows], y[rows]) for rows in np.split(np.arange(12), 3)]
    assert_same(sums(sum(shards)), sums(Pairgram.from_rows(X, y, qid=np.arange(12) // 4)), 1e-13)
    with pytest.raises(TypeError):
        sum(shards, start=1)


def test_columns_of_frames_must_agree(tmp_path):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"))
    y = rng.normal(size=12)
    stream = Pairgram().update(frame, y)
    stream.save(tmp_path / "stream")
    for same in (stream, Pairgram.load(tmp_path / "stream")):
        for other in (frame[list("cba")], frame.to_numpy()):
            with pytest.raises(ValueError, match="must have the columns of the rows before"):
                same.update(other, y)
            with pytest.raises(ValueError, match="cannot merge statistics of columns"):
                same + Pairgram.from_rows(other, y)
        assert (same + Pairgram.from_rows(frame, y)).n_rows == 24
    model = RankRLS.from_pairgram(stream)
    assert model.feature_names_in_.tolist() == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("cba")])


@pytest.mark.parametrize(
    "pairs", ["with_ties", "without_ties", "gain_difference", "label_difference"]
)
@pytest.mark.parametrize(("scope", "n_rows"), [("query", 7), ("global", 1)])
def test_statistics_of_single_rows_are_refused_as_by_fit(pairs, scope, n_rows):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows), np.arange(n_rows)
    settings = {"pairs": Pairs(pairs, scope=scope)}
    with pytest.raises(ValueError, match="no pair of rows counts") as of_fit:
        RankRLS(**settings).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="no pair of rows counts") as of_sums:
        RankRLS.from_pairgram(Pairgram.from_rows(X, y, qid=qid, **settings))
    assert str(of_sums.value) == str(of_fit.value)
