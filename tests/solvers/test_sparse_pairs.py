"""Products of sparse rows with the pairs between them, against the Laplacian written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from axes import every
from pairgram import _core
from problems import Problem, problems, ranking_problem
from reference import laplacian

PAIRS = ["with_ties", "without_ties", "gain_difference", None]


def sparse_pairs(X, *of):
    bounds, columns = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return _core.sparse_pairs(bounds, columns, X.data, X.shape[1], list(of))


def sparse(rng, n_rows, n_columns, density, dtype=np.float64):
    X = sp.random_array((n_rows, n_columns), density=density, random_state=rng, format="csr")
    return X.astype(dtype)


@given(
    problems(),
    st.sampled_from(PAIRS),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.sampled_from([np.float64, np.float32]),
    st.integers(1, 13),
)
def test_products_and_the_diagonal_are_those_of_the_laplacian(
    problem, pairs, weighting, dtype, n_vectors
):
    rng = np.random.default_rng(n_vectors)
    X = sparse(rng, len(problem.y), 5, 0.5, dtype)
    other = Problem(problem.X, problem.y, problem.query, np.ones(len(problem.y)), None)
    both = (problem, other)
    systems = sparse_pairs(X, *(ranking_problem(one, pairs, weighting) for one in both))
    rows = X.toarray().astype(float)
    grams = [
        rows.T @ laplacian(one.y, one.query, pairs, one.v, weighting, one.query_weight)[0] @ rows
        for one in both
    ]
    vectors = rng.normal(size=(n_vectors, 5))
    numbers = rng.integers(0, 2, n_vectors)
    found = systems.product(vectors, numbers)
    expected = np.array([grams[k] @ p for k, p in zip(numbers, vectors, strict=True)])
    largest = max(1.0, *(abs(one).max() for one in grams))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * largest)
    for number, gram in enumerate(grams):
        diagonal, size = systems.diagonal(number)
        np.testing.assert_allclose(diagonal, np.diag(gram), rtol=0, atol=1e-12 * largest)
        assert (size >= diagonal - 1e-12 * largest).all()


@every(weight=[1, 1e9], pairs=["with_ties", "without_ties", "label_difference"])
def test_the_diagonal_of_full_columns_keeps_digits(pairs, weight):
    rng = np.random.default_rng(0)
    rows, y, query = rng.normal(size=(60, 3)), rng.integers(0, 3, 60) * 1.0, np.arange(60) // 12
    v = np.ones(60)
    v[::12] = weight
    at = Problem(rows, y, query, v, None)
    moved = sp.csr_array(rows + np.array([1e8, -3e9, 0]))
    moved[::7] = 0  # which do not count
    v[::7] = 0
    exact = rows + np.array([1e8, -3e9, 0]) - np.array([1e8, -3e9, 0])
    differences = exact[:, None] - exact
    L = laplacian(y, query, pairs, v, "pairs", None)[0]
    expected = -np.einsum("ij,ijk->k", L - np.diag(np.diag(L)), differences**2) / 2
    found, size = sparse_pairs(moved, ranking_problem(at, pairs, "pairs")).diagonal(0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (size >= (1 - 1e-12) * (np.diag(L) @ moved.toarray() ** 2)).all()


@pytest.mark.parametrize("pairs", PAIRS)
def test_long_queries_give_the_same_bits_for_any_number_of_threads(pairs):
    rng = np.random.default_rng(0)
    sizes = [4_000, 30, 3_500, 0, 2]  # the first two of thousands are shared among threads
    n = sum(sizes)
    problem = Problem(
        np.empty((n, 0)),
        rng.integers(0, 3, n).astype(float),
        np.repeat(range(5), sizes),
        None,
        None,
    )
    X = sparse(rng, n, 300, 0.1)
    systems = sparse_pairs(X, ranking_problem(problem, pairs))
    vectors, numbers = rng.normal(size=(3, 300)), np.zeros(3, dtype=np.int64)
    one = systems.product(vectors, numbers)
    centred = X @ vectors.T
    for adjoint in (False, True):
        _core.apply_half_laplacian(ranking_problem(problem, pairs), centred, adjoint=adjoint)
    expected = (X.T @ centred).T
    np.testing.assert_allclose(one, expected, rtol=0, atol=1e-12 * abs(expected).max())
    diagonal = systems.diagonal(0)
    for n_threads in (2, 3, 7):
        np.testing.assert_array_equal(systems.product(vectors, numbers, n_threads), one)
        np.testing.assert_array_equal(systems.diagonal(0, n_threads), diagonal)


@every(pairs=PAIRS, n_vectors=[3, 10], long=[False, True])
def test_products_of_very_many_columns(pairs, n_vectors, long):
    """X is read twice: first for the scores of all rows."""
    rng = np.random.default_rng(n_vectors)
    sizes = [40, 0, *[7] * 30, 50 * long]
    n, d = sum(sizes), 70_000
    per_row = np.full(n, 9)
    per_row[250:] = 6_000  # their query is shared among threads
    ends = np.concatenate(([0], np.cumsum(per_row))).astype(np.int32)
    index = rng.integers(0, d, ends[-1], dtype=np.int32)
    X = sp.csr_array((rng.normal(size=ends[-1]), index, ends), shape=(n, d))
    y, query = rng.integers(0, 3, n).astype(float), np.repeat(range(len(sizes)), sizes)
    weights = np.ones((2, n))
    weights[1, query % 3 == 0] = 0.0
    weights[1, 250:] = 2.0
    problems = [Problem(np.empty((n, 0)), y, query, one, None) for one in weights]
    systems = sparse_pairs(X, *(ranking_problem(one, pairs) for one in problems))
    vectors, numbers = rng.normal(size=(n_vectors, d)), rng.integers(0, 2, n_vectors)
    found = systems.product(vectors, numbers, 2)
    pairs_of = [laplacian(y, query, pairs, one, "pairs", None)[0] for one in weights]
    expected = [X.T @ (pairs_of[k] @ (X @ p)) for k, p in zip(numbers, vectors, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    for n_threads in (1, 3):
        np.testing.assert_array_equal(systems.product(vectors, numbers, n_threads), found)


@pytest.mark.parametrize(
    ("n_items", "n_columns", "n_pairs"),
    [(1, 3, 0), (7, 5, 20), (300, 40, 900), (4_000, 60, 9_000), (500, 70_000, 800)],
)
def test_products_with_comparisons_are_those_of_differences(n_items, n_columns, n_pairs):
    """The comparisons of 4,000 items are shared among threads; 70,000 columns are read twice."""
    rng = np.random.default_rng(n_items)
    X = sparse(rng, n_items, n_columns, min(1.0, 80 / n_columns))
    first = rng.integers(0, n_items, n_pairs)
    second = (first + rng.integers(1, max(2, n_items), n_pairs)) % n_items
    weights = rng.uniform(0, 2, (3, n_pairs)) * (rng.random((3, n_pairs)) < 0.8)
    systems = sparse_pairs(X, *(_core.Comparisons(n_items, first, second, w) for w in weights))
    A = X[first] - X[second]
    vectors, numbers = rng.normal(size=(7, n_columns)), rng.integers(0, 3, 7)
    found = systems.product(vectors, numbers)
    expected = np.array(
        [A.T @ (weights[k] * (A @ p)) for k, p in zip(numbers, vectors, strict=True)]
    )
    largest = max(1.0, abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * largest)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(systems.product(vectors, numbers, n_threads), found)
    for number, w in enumerate(weights):
        diagonal, size = systems.diagonal(number)
        np.testing.assert_allclose(diagonal, A.power(2).T @ w, rtol=1e-12)
        both = np.bincount(np.append(first, second), np.tile(w, 2), minlength=n_items)
        np.testing.assert_allclose(size, X.power(2).T @ both, rtol=1e-12)


def test_equal_items_have_products_of_exactly_zero():
    X = sp.csr_array(np.array([[0.1, 0.7], [0.1, 0.3], [0.1, 0.9]]))
    pairs = _core.Comparisons(3, np.array([0, 1, 2]), np.array([1, 2, 0]), None)
    systems = sparse_pairs(X, pairs)
    assert not systems.product(np.array([[1e9, 0.0]]), np.zeros(1, dtype=np.int64)).any()
    assert systems.diagonal(0)[0][0] == 0.0


def test_equal_scores_have_products_of_exactly_zero():
    X = sp.csr_array(np.full((6, 2), 0.1))
    problem = Problem(X, np.arange(6.0), np.repeat([0, 1], 3), np.array([1, 2, 3, 0.3, 1, 1]), None)
    systems = sparse_pairs(X, ranking_problem(problem, "with_ties"))
    assert not systems.product(np.array([[0.7, 1e9]]), np.zeros(1, dtype=np.int64)).any()


def test_entries_of_one_place_are_added_up():
    X = sp.csr_array((np.arange(1.0, 7), np.array([0, 0, 1, 1, 0, 0]), np.array([0, 2, 3, 6])))
    assert not X.has_canonical_format
    problem = ranking_problem(
        Problem(X, np.arange(3.0), np.zeros(3, dtype=int), None, None), "with_ties"
    )
    found = sparse_pairs(X, problem).diagonal(0)  # of rows that are read before they change
    X.sum_duplicates()
    expected = sparse_pairs(X, problem).diagonal(0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
