"""Products of columns by conjugate gradients: the direct solution, without a product."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import forms
from pairgram import Cross, Pairs, QueryKFold, RankRLS, RankRLSCV, _core
from parts.support import on_threads
from problems import BY_STEPS, Problem, problems, ranking_problem
from reference import laplacian

LEFT, RIGHT, KEPT = [1, 3, 4], [0, 5, 6, 7], [2]
PAIRS = ("with_ties", "without_ties", "gain_difference", "label_difference", "clicks", None)


def cross(**changed):
    return Cross(**{"left": LEFT, "right": RIGHT, "keep": KEPT, **changed})


def drawn_rows(sizes, seed=0, *, varies=False, dtype=np.float64):
    """Return X, y, the query and the weight of rows, in any order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(qid), 8))
    if not varies:
        X[:, LEFT] = rng.normal(size=(len(sizes), len(LEFT)))[qid]
    y = np.digitize(X[:, 1] * X[:, 0] + X[:, 2], [-1.0, 0.5, 2.0]).astype(float)
    return X.astype(dtype), y, qid, rng.choice([0.0, 0.5, 1.0, 2.0], len(qid))


def products(X, left, right, kept):
    sides = np.column_stack([np.ones(len(X)), X[:, left]])
    both = (sides[:, :, None] * X[:, None, right]).reshape(len(X), -1)
    return np.hstack([X[:, kept], both])


def systems_of(X, *problems, n_threads=1):
    kind = _core.NodeMap32 if X.dtype == np.float32 else _core.NodeMap64
    columns = (np.array(one, np.int64) for one in ([4], [0, 2], [1, 3]))
    node_map = kind.cross(5, *columns)
    return _core.cross_pairs(X, node_map, list(problems), n_threads)


@given(
    problems(),
    st.sampled_from([*PAIRS[:4], None]),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.sampled_from([np.float64, np.float32]),
    st.booleans(),
    st.integers(1, 13),
)
def test_products_and_squares_are_those_of_the_laplacian(
    problem, pairs, weighting, dtype, varies, n_vectors
):
    rng = np.random.default_rng(n_vectors)
    X = rng.normal(size=(len(problem.y), 5)).astype(dtype)
    if not varies:
        X[:, [0, 2]] = rng.normal(size=(problem.query.max() + 1, 2))[problem.query]
    other = Problem(problem.X, problem.y, problem.query, np.ones(len(problem.y)), None)
    both = (problem, other)
    systems = systems_of(X, *(ranking_problem(one, pairs, weighting) for one in both))
    H = products(X.astype(float), [0, 2], [1, 3], [4])
    laplacians = [
        laplacian(one.y, one.query, pairs, one.v, weighting, one.query_weight)[0] for one in both
    ]
    grams = [H.T @ L @ H for L in laplacians]
    atol = (1e-12 if dtype == np.float64 else 1e-5) * max(1.0, *(abs(G).max() for G in grams))
    vectors, numbers = rng.normal(size=(n_vectors, 7)), rng.integers(0, 2, n_vectors)
    expected = [grams[k] @ p for k, p in zip(numbers, vectors, strict=True)]
    np.testing.assert_allclose(systems.product(vectors, numbers), expected, rtol=0, atol=3 * atol)
    for number, L in enumerate(laplacians):
        z = L @ rng.normal(size=len(X))
        np.testing.assert_allclose(systems.transposed(z), H.T @ z, rtol=0, atol=atol)
        diagonal, size, of_left = systems.squares(number, True)
        assert (2 * size >= diagonal - atol).all()
        np.testing.assert_allclose(of_left, of_left.T, rtol=1e-12, atol=atol)
        if systems.is_constant:
            np.testing.assert_allclose(diagonal, np.diag(grams[number]), rtol=0, atol=atol)
            # A ⊗ B has the trace of the products.
            np.testing.assert_allclose(np.trace(of_left), diagonal[1:].sum(), rtol=1e-4, atol=atol)
        else:
            assert (2 * size >= np.diag(grams[number]) - atol).all()


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", None])
@pytest.mark.parametrize("varies", [False, True])
def test_long_queries_give_the_same_bits_for_any_number_of_threads(pairs, varies):
    rng = np.random.default_rng(0)
    sizes = [60_000, 30, 30_000, 0, 2]  # the first two of thousands are shared among threads
    n = sum(sizes)
    query = np.repeat(range(5), sizes)
    y = rng.integers(0, 3, n).astype(float)
    problem = ranking_problem(Problem(np.empty((n, 0)), y, query, None, None), pairs)
    X = rng.normal(size=(n, 5))
    if not varies:
        X[:, [0, 2]] = rng.normal(size=(5, 2))[query]
    systems = systems_of(X, problem)
    vectors, numbers = rng.normal(size=(3, 7)), np.zeros(3, dtype=np.int64)
    one = systems.product(vectors, numbers)
    H = products(X, [0, 2], [1, 3], [4])
    scores = H @ vectors.T
    for adjoint in (False, True):
        _core.apply_half_laplacian(problem, scores, adjoint=adjoint)
    expected = (H.T @ scores).T
    np.testing.assert_allclose(one, expected, rtol=0, atol=1e-11 * abs(expected).max())
    squares = systems.squares(0, True)
    for n_threads in (2, 3, 7):
        again = systems_of(X, problem, n_threads=n_threads)
        np.testing.assert_array_equal(again.product(vectors, numbers, n_threads), one)
        for found, known in zip(again.squares(0, True, n_threads), squares, strict=True):
            np.testing.assert_array_equal(found, known)


def test_columns_that_do_not_vary_are_exactly_0(limits_of):
    X, y, qid, _ = drawn_rows([4, 6, 1], varies=False)
    X[:, 5] = 1e8 + np.array([0.1, 7.0, 3.0])[qid]  # within queries
    model = RankRLS(0.5, feature_map=cross())
    with limits_of(**BY_STEPS):
        model.fit(X, y, qid=qid)
    assert not model.coef_[1:].reshape(4, 4)[:, 1].any()


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=12),
    st.sampled_from(PAIRS),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.sampled_from(["query", "global"]),
    st.sampled_from(["weighted", "scaled", "varies", "float32"]),
    st.integers(0, 1000),
)
def test_equal_to_the_direct_solution(limits_of, sizes, pairs, weighting, scope, how, seed):
    assume(pairs != "clicks" or scope == "query")
    dtype = np.float32 if how == "float32" else np.float64
    X, y, qid, weight = drawn_rows(sizes, seed, varies=how == "varies", dtype=dtype)
    model = forms.RankRLS(
        0.3,
        pairs=Pairs(pairs, scope=scope, weighting=weighting),
        form="primal",
        scale=how == "scaled" and scope == "query",
        feature_map=cross(),
    )
    given = {"qid": qid, "sample_weight": weight if how == "weighted" else None}
    try:
        direct = model.fit(X.astype(np.float64), y, **given).coef_
    except ValueError:  # no pairs
        assume(False)
    with limits_of(**BY_STEPS):
        model.fit(X, y, **given)
    # The condition of the system multiplies the residual, which is 1e-10 of the right-hand side.
    # Products of float32 are not rounded to float32, as those of a Gram matrix are.
    atol = 1e-6 * abs(direct).max()
    np.testing.assert_allclose(model.coef_, direct, rtol=0, atol=atol)
    assert model.form_ == "primal"


@pytest.mark.parametrize("pairs", PAIRS)
def test_a_search_holds_folds_out_as_the_direct_one_does(limits_of, pairs):
    X, y, qid, weight = drawn_rows(np.random.default_rng(2).integers(5, 30, 30))
    search = RankRLSCV(pairs=pairs, cv=QueryKFold(3), feature_map=cross())
    search.fit(X, y, qid=qid, sample_weight=weight)
    direct = {name: getattr(search, name) for name in ("alphas_", "scores_", "coef_path_")}
    with limits_of(**BY_STEPS):
        search.fit(X, y, qid=qid, sample_weight=weight)
    for name, values in direct.items():
        found = getattr(search, name)
        np.testing.assert_allclose(found, values, rtol=1e-7, atol=1e-5 * abs(values).max())


def test_default_folds_take_the_place_of_leave_query_out(iterate):
    X, y, qid, _ = drawn_rows([12] * 20)
    search, other = on_threads((1, 3), lambda: RankRLSCV(feature_map=cross()).fit(X, y, qid=qid))
    assert "split4_test_score" in search.cv_results_
    np.testing.assert_array_equal(search.coef_path_, other.coef_path_)


def test_the_preconditioner_is_the_matrix_if_all_lists_have_the_same_things(set_limits):
    """A step or two solve them without a warning, in whatever order the things stand."""
    rng = np.random.default_rng(0)
    people, things = rng.normal(size=(40, 20)), rng.normal(size=(15, 10))
    things *= 10.0 ** rng.uniform(-3, 3, 10)
    order = np.concatenate([rng.permutation(15) for _ in people])
    X = np.hstack([np.repeat(people, 15, axis=0), things[order]])
    y, qid = rng.integers(0, 3, 600).astype(float), np.repeat(np.arange(40), 15)
    set_limits(**BY_STEPS, gradient_steps=3)
    RankRLS(1e-3, feature_map=Cross(slice(0, 20), slice(20, 30))).fit(X, y, qid=qid)


def test_sides_that_are_too_wide_are_preconditioned_by_the_diagonal(set_limits):
    X, y, qid, _ = drawn_rows([12] * 20)
    model = RankRLS(1.0, feature_map=cross())
    direct = model.fit(X, y, qid=qid).coef_
    set_limits(**BY_STEPS, widest_gram=2)
    np.testing.assert_allclose(model.fit(X, y, qid=qid).coef_, direct, rtol=0, atol=1e-8)


def test_steps_are_taken_where_the_products_are_many():
    """The Gram matrix of 6,480 products would take 340 MB. Warnings are errors here."""
    rng = np.random.default_rng(0)
    d, n_queries, size = 80, 150, 20
    people, things = rng.normal(size=(2, n_queries, d)) / np.sqrt(d)
    qid = np.repeat(np.arange(n_queries), size)
    thing = rng.integers(0, n_queries, len(qid))
    X = np.hstack([people[qid], things[thing]]).astype(np.float32)
    W = rng.normal(size=(d, d))
    truth = np.einsum("ij,ij->i", people[qid] @ W, things[thing])
    feature_map = Cross(slice(0, d), slice(d, 2 * d))
    model = RankRLS(1e-2, feature_map=feature_map).fit(X, truth, qid=qid)
    H, w = X.astype(float), model.coef_.reshape(d + 1, d)
    b, image = np.zeros((2, d + 1, d))
    for begin, end in pairwise(np.arange(0, len(qid) + 1, size)):
        u, V = np.append(1.0, H[begin, :d]), H[begin:end, d:]
        V = V - V.mean(axis=0)
        b += size * np.outer(u, truth[begin:end] @ V)
        image += size * np.outer(u, (V @ (u @ w)) @ V)
    assert np.linalg.norm(b - image - 1e-2 * w) < 2e-10 * np.linalg.norm(b)


def test_what_steps_do_not_do_is_an_error(iterate):
    X, y, qid, _ = drawn_rows([12] * 20, varies=True)
    with pytest.raises(ValueError, match="scale must be False where the left side of a Cross var"):
        RankRLS(scale=True, feature_map=cross()).fit(X, y, qid=qid)
