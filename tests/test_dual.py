"""The dual form against dense systems, the primal form and explicit refits."""

import tracemalloc
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

import reference
from pairgram import (
    KernelMap,
    RankRLS,
    RankRLSCV,
    _kernel_tiles,
    dual,
    held_out,
    kernel_matrix,
    make_ranking,
)
from pairgram import data as data_module
from pairgram.data import RankingData
from pairgram.dual import DualGram
from pairgram.gram import Pairgram
from pairgram.pairs import PairSettings
from problems import Problem, problems

PAIRS = ["kept", "dropped", "gain", "absdiff", None]
WEIGHTINGS = ["pairs", "documents", "queries"]
KERNELS = ["linear", "rbf"]  # the first of low rank


def data_of(problem, K):
    return RankingData.make(
        K,
        problem.y,
        qid=problem.query,
        sample_weight=problem.v,
        query_weight=problem.query_weight,
    )


def laplacian(problem, settings, rows=slice(None)):
    """The Laplacian of some rows."""
    query = problem.query[rows]
    if settings.scope == "global" and settings.pairs is not None:
        query = np.zeros_like(query)
    weights = [None if w is None else w[rows] for w in (problem.v, problem.query_weight)]
    return reference.laplacian(
        problem.y[rows], query, settings.pairs, weights[0], settings.weighting, weights[1]
    )[0]


def explicit(problem, K, settings, alpha, train=None):
    """(L K + alpha I)⁻¹ L y of the training rows, with an entry for every row.

    Refined with residuals in extended precision: the system is not symmetric, and its condition is
    far above that of R K Rᵀ + alpha I.
    """
    train = np.arange(len(problem.y)) if train is None else train
    t = problem.y if settings.target == "label" else 2.0**problem.y - 1
    L, K = laplacian(problem, settings, train), K[np.ix_(train, train)]
    inverse = np.linalg.inv(L @ K + alpha * np.eye(len(train)))
    L, K = L.astype(np.longdouble), K.astype(np.longdouble)
    solution = np.zeros(len(train), np.longdouble)
    for _ in range(3):
        solution += inverse @ (L @ (t[train] - K @ solution) - alpha * solution).astype(float)
    coef = np.zeros(len(problem.y))
    coef[train] = solution
    return coef


def size_of(L, K):
    """The sum of the eigenvalues of R K Rᵀ, 1 where there are no pairs."""
    return (L * K).sum() or 1.0


def assert_scores(actual, expected, y, tolerance=1e-8):
    size = max(np.abs(expected).max(initial=0.0), np.abs(y).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


settings_drawn = st.builds(
    PairSettings,
    st.sampled_from(PAIRS),
    st.just("query"),
    st.sampled_from(WEIGHTINGS),
    st.sampled_from(["label", "gain"]),
)


@hypothesis.settings(max_examples=40)
@given(
    problem=problems(),
    settings=settings_drawn,
    kernel=st.sampled_from(KERNELS),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_coefficients_solve_the_dual_system(problem, settings, kernel, dtype):
    K = kernel_matrix(problem.X, kernel=kernel).astype(dtype)
    given_K = K.copy()
    system = DualGram(data_of(problem, K), settings)
    K64 = K.astype(np.float64)
    scale = abs(size_of(laplacian(problem, settings), K64))
    alphas = scale * np.array([1.0, 1e-2, 1e-4])
    path = system.decompose()
    assert (np.diff(path.eigenvalues) >= 0).all()
    coefs = path.coef(alphas)
    for alpha, coef in zip(alphas, coefs, strict=True):
        expected = explicit(problem, K64, settings, alpha)
        # rounding of K is all that a negative eigenvalue, which the path leaves out, comes from
        tolerance = 1e-8 if dtype == np.float64 else 1e-7 * scale / alpha
        assert_scores(K64 @ coef, K64 @ expected, problem.y, tolerance)
        assert_scores(K64 @ system.solve(alpha), K64 @ expected, problem.y)
    np.testing.assert_array_equal(K, given_K)


@hypothesis.settings(max_examples=40)
@given(problem=problems(max_features=3), settings=settings_drawn)
def test_linear_kernel_is_the_primal_form(problem, settings):
    K = problem.X @ problem.X.T
    L = laplacian(problem, settings)
    if not np.abs(problem.X.T @ L @ problem.X).max() > 1e-9 * np.abs(L).max():
        return  # no pairs
    system = DualGram(data_of(problem, K), settings)
    path = system.decompose()
    for share in (1.0, 1e-3, 1e-6):
        alpha = share * size_of(L, K)
        model = RankRLS(
            alpha, pairs=settings.pairs, weighting=settings.weighting, target=settings.target
        ).fit(
            problem.X,
            problem.y,
            qid=problem.query,
            sample_weight=problem.v,
            query_weight=problem.query_weight,
        )
        for coef in (system.solve(alpha), path.coef([alpha])[0]):
            assert_scores(K @ coef, model.predict(problem.X), problem.y)


@pytest.mark.parametrize("pairs", PAIRS)
def test_no_ridge_gives_the_minimum_norm(pairs):
    """Both where K has full rank and where it has not: the systems are singular."""
    X, y, qid = make_ranking(6, (1, 9), 4, random_state=0)
    for K, features in (
        (X @ X.T, X),
        (kernel_matrix(X), np.linalg.cholesky(kernel_matrix(X))),
    ):
        settings = PairSettings(pairs)
        data = RankingData.make(K, y, qid=qid)
        L, _ = reference.laplacian(y, np.unique(qid, return_inverse=True)[1], pairs)
        G = features.T @ L @ features
        expected = features @ (np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ features.T @ L @ y)
        assert_scores(K @ DualGram(data, settings).solve(0.0), expected, y)


def test_alpha_too_small_for_cholesky():
    """Beyond double precision, the answer is that without a ridge, not residuals by alpha."""
    X, y, qid = make_ranking(6, (2, 9), 3, random_state=0)
    system = DualGram(RankingData.make(X @ X.T, y, qid=qid), PairSettings())
    expected = RankRLS(0.0).fit(X, y, qid=qid).predict(X)
    assert_scores(X @ X.T @ system.solve(1e-20), expected, y)


@hypothesis.settings(max_examples=30)
@given(
    problem=problems(min_queries=2),
    settings=settings_drawn,
    kernel=st.sampled_from(["linear", "rbf"]),
    sparse=st.booleans(),
)
def test_a_kernel_that_is_made_of_rows(problem, settings, kernel, sparse):
    """It is not kept, and gives what its matrix gives."""
    K = kernel_matrix(problem.X, kernel=kernel)
    given_K = data_of(problem, K)
    X = sp.csr_array(problem.X) if sparse else problem.X
    made_K = replace(given_K, X=X, feature_map=KernelMap(kernel).fit(X))
    one, other = DualGram(made_K, settings), DualGram(given_K, settings)
    scale = abs(size_of(laplacian(problem, settings), K))
    assert_scores(K @ one.solve(scale), K @ other.solve(scale), problem.y, 1e-10)
    alphas = scale * np.array([1.0, 1e-3])
    rows = np.arange(len(problem.y))
    part = rows[problem.query > 0]
    if given_K.take(part).has_pairs(settings).any():
        expected = K @ other.of(part).solve(scale)
        assert_scores(K @ one.of(part).solve(scale), expected, problem.y, 1e-10)
    if given_K.has_pairs(settings).sum() < 2:
        return
    scores = [
        held_out.leave_query_out(data, total, total.decompose(), alphas)
        for data, total in ((made_K, one), (given_K, other))
    ]
    assert_scores(*scores, problem.y)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_leave_query_out_of_a_large_problem(monkeypatch, block_bytes):
    """By the other driver of LAPACK, and with rows in blocks."""
    monkeypatch.setattr(dual, "DIVIDE_AND_CONQUER_ORDER", 0)
    monkeypatch.setattr(data_module, "DENSE_BLOCK_BYTES", block_bytes)
    X, y, qid = make_ranking(12, (1, 15), 3, random_state=0)
    qid = qid[np.random.default_rng(0).permutation(len(y))]
    problem = Problem(X, y, np.unique(qid, return_inverse=True)[1], None, None)
    K, settings = kernel_matrix(X), PairSettings("dropped")
    data = replace(data_of(problem, K), X=X, feature_map=KernelMap("rbf").fit(X))
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    for alpha, coef in zip(alphas, ridge.coef(alphas), strict=True):
        assert_scores(K @ coef, K @ explicit(problem, K, settings, alpha), y)
    scores = held_out.leave_query_out(data, total, ridge, alphas)
    rows = np.arange(len(y))
    splits = [(rows[problem.query != q], rows[problem.query == q]) for q in range(12)]
    for (_, test), expected in zip(
        splits, refits(problem, K, settings, alphas, splits), strict=True
    ):
        assert_scores(scores[:, test], expected, y)


def test_directions_that_queries_barely_see():
    """A smooth kernel of one feature: most eigenvalues are rounding error, but not their part."""
    rng = np.random.default_rng(0)
    n = 120
    query = np.repeat(np.arange(6), 20)
    problem = Problem(rng.normal(size=(n, 1)), rng.integers(0, 5, n) * 1.0, query, None, None)
    K, settings = kernel_matrix(problem.X), PairSettings()
    data = data_of(problem, K)
    total = DualGram(data, settings)
    ridge = total.decompose()
    rows = np.arange(n)
    splits = [(rows[query != q], rows[query == q]) for q in range(6)]
    for share, tolerance in ((1e-2, 1e-12), (1e-4, 1e-10), (1e-6, 1e-7)):
        alphas = share * ridge.eigenvalues[-1:]
        expected = K @ explicit(problem, K, settings, alphas[0])
        assert_scores(K @ ridge.coef(alphas)[0], expected, problem.y, tolerance)
        assert_scores(K @ total.solve(alphas[0]), expected, problem.y, tolerance)
        scores = held_out.leave_query_out(data, total, ridge, alphas)
        expected = np.hstack(refits(problem, K, settings, alphas, splits))
        assert_scores(scores, expected, problem.y, tolerance)


# Held-out scores ----------------------------------------------------------------------------------


def refits(problem, K, settings, alphas, splits):
    """The scores of every split's test rows by explicit dual refits."""
    return [
        np.array([K[test] @ explicit(problem, K, settings, alpha, train) for alpha in alphas])
        for train, test in splits
    ]


@hypothesis.settings(max_examples=40)
@given(problem=problems(min_queries=2), settings=settings_drawn, kernel=st.sampled_from(KERNELS))
def test_leave_query_out(problem, settings, kernel):
    K = kernel_matrix(problem.X, kernel=kernel)
    data = data_of(problem, K)
    if data.has_pairs(settings).sum() < 2:
        return
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    scores = held_out.leave_query_out(data, total, ridge, alphas)
    rows = np.arange(len(problem.y))
    queries = [rows[problem.query == q] for q in np.unique(problem.query)]
    splits = [(np.setdiff1d(rows, test), test) for test in queries]
    for (_, test), expected in zip(
        splits, refits(problem, K, settings, alphas, splits), strict=True
    ):
        assert_scores(scores[:, test], expected, problem.y)


@pytest.mark.parametrize("pairs", PAIRS[:2])
def test_leave_query_out_of_global_pairs(pairs):
    X, y, qid = make_ranking(8, (1, 9), 4, random_state=0)
    problem = Problem(X, y, np.unique(qid, return_inverse=True)[1], None, None)
    K, settings = kernel_matrix(X), PairSettings(pairs, "global")
    data = data_of(problem, K)
    total = DualGram(data, settings)
    alphas = np.array([10.0, 0.1])
    scores = held_out.leave_query_out(data, total, total.decompose(), alphas)
    rows = np.arange(len(y))
    splits = [(rows[problem.query != q], rows[problem.query == q]) for q in range(8)]
    for (_, test), expected in zip(
        splits, refits(problem, K, settings, alphas, splits), strict=True
    ):
        assert_scores(scores[:, test], expected, y)


@pytest.mark.parametrize("pairs", ["kept", "dropped", None])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_leave_row_out(pairs, weighting):
    rng = np.random.default_rng(0)
    n = 25
    v = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    problem = Problem(
        rng.normal(size=(n, 3)), rng.normal(size=n).round(1), np.zeros(n, int), v, None
    )
    K, settings = kernel_matrix(problem.X), PairSettings(pairs, weighting=weighting)
    data = data_of(problem, K)
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    scores = held_out.leave_row_out(data, total, ridge, alphas)
    for row in range(n):
        train = np.delete(np.arange(n), row)
        share = v[train] / v[train].sum()
        for alpha, score in zip(alphas, scores[:, row], strict=True):
            f = K @ explicit(problem, K, settings, alpha, train)
            origin = 0.0 if pairs is None else share @ f[train]
            assert_scores(score, f[row] - origin, problem.y)


@pytest.mark.parametrize("pairs", ["kept", None])
@pytest.mark.parametrize("kernel", ["linear", None])
def test_rows_held_out_that_would_be_rounding_error(pairs, kernel):
    """More features than rows: as the ridge falls, a row is all that tells its own part."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 60)), rng.normal(size=30)
    problem = Problem(X, y, np.zeros(30, int), None, None)
    K, settings = X @ X.T, PairSettings(pairs)
    data = data_of(problem, K if kernel else X)
    total = DualGram(data, settings) if kernel else Pairgram.from_data(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigenvalues.max() * np.array([1e-6, 1e-9, 1e-12, 1e-14, 1e-16])
    scores = held_out.leave_row_out(data, total, ridge, alphas)
    assert np.isnan(scores[2:]).any(axis=1).all()
    for row in range(3):
        train = np.delete(np.arange(30), row)
        for alpha, score in zip(alphas, scores[:, row], strict=True):
            f = K @ explicit(problem, K, settings, alpha, train)
            origin = 0.0 if pairs is None else f[train].mean()
            if np.isfinite(score):
                assert_scores(score, f[row] - origin, y, 1e-4)


@hypothesis.settings(max_examples=40)
@given(
    problem=problems(min_queries=2),
    settings=settings_drawn,
    scope=st.sampled_from(["query", "global"]),
)
def test_splits(problem, settings, scope):
    """Training rows that cut queries, as well as whole ones."""
    if scope == "global":
        problem.query_weight = None
    settings = PairSettings(settings.pairs, scope, settings.weighting, settings.target)
    K = kernel_matrix(problem.X)
    data = data_of(problem, K)
    rows = np.arange(len(problem.y))
    whole = [(rows[problem.query % 2 != k], rows[problem.query % 2 == k]) for k in (0, 1)]
    cut = list(KFold(3, shuffle=True, random_state=0).split(rows)) if len(rows) > 2 else []
    splits = [
        (train, test)
        for train, test in (*whole, *cut, (rows[::-1][: len(rows) // 2], rows[:1]))
        if data.take(train).as_scope(settings).has_pairs(settings).any()
    ]
    total = DualGram(data, settings)
    alphas = np.array([10.0, 0.1])
    scores = held_out.split_scores(data, total, splits, lambda rest: rest.decompose().coef(alphas))
    for actual, expected in zip(scores, refits(problem, K, settings, alphas, splits), strict=True):
        assert_scores(actual, expected, problem.y)


def test_a_part_of_the_rows():
    X, y, qid = make_ranking(8, (3, 9), 4, random_state=0)
    K, settings = kernel_matrix(X), PairSettings("dropped")
    rows = np.flatnonzero(qid % 2 == 0)[::-1].copy()
    part = DualGram(RankingData.make(K, y, qid=qid), settings).of(rows)
    assert part.n_rows == len(rows)
    alone = DualGram(
        RankingData.make(K[np.ix_(rows, rows)].copy(), y[rows], qid=qid[rows]), settings
    )
    for coef, expected in (
        (part.solve(0.5), alone.solve(0.5)),
        (part.decompose().coef([0.5])[0], alone.decompose().coef([0.5])[0]),
    ):
        np.testing.assert_array_equal(coef[rows], expected)
        assert not np.delete(coef, rows).any()
    assert part.decompose().basis.shape[0] == len(y)


def test_a_kernel_model_is_a_linear_model_of_its_map():
    X, y, qid = make_ranking(8, (3, 9), 4, random_state=0)
    feature_map = KernelMap("rbf", gamma=0.5).fit(X)
    K = feature_map.fit_transform(X)
    coef = DualGram(RankingData.make(K, y, qid=qid), PairSettings()).solve(0.1)
    model = RankRLS(feature_map=feature_map).fit(X, y, qid=qid)
    model.coef_, model.feature_map_ = coef, feature_map
    np.testing.assert_allclose(model.predict(X), K @ coef, rtol=1e-10)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads(n_threads):
    X, y, qid = make_ranking(20, (3, 19), 4, random_state=0)
    data = RankingData.make(kernel_matrix(X), y, qid=qid)
    one, more = (DualGram(data, PairSettings("gain"), n) for n in (1, n_threads))
    np.testing.assert_array_equal(more.solve(0.1), one.solve(0.1))
    np.testing.assert_array_equal(more.decompose().basis, one.decompose().basis)


# What is refused ----------------------------------------------------------------------------------


def dual_of(K, pairs="kept"):
    return DualGram(RankingData.make(K, np.arange(float(K.shape[0]))), PairSettings(pairs))


@pytest.mark.parametrize("K", [np.ones((3, 2)), sp.csr_array(np.eye(3))])
def test_what_is_not_a_kernel_matrix(K):
    with pytest.raises(ValueError, match=r"dense kernel matrix of shape \(3, 3\).*got"):
        dual_of(K)


def test_wrong_parameters():
    system = dual_of(np.eye(3))
    for call in (lambda: system.solve(1.0, scale=True), lambda: system.decompose(scale=True)):
        with pytest.raises(ValueError, match="scale must be False for a kernel"):
            call()
    with pytest.raises(ValueError, match="alpha must be finite and >= 0"):
        system.solve(-1.0)
    K = np.eye(3)
    K[0, 1] = K[1, 0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN"):
        dual_of(K, None).solve(1.0)


def test_an_indefinite_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    K = X @ X.T - 2 * np.outer(X[:, 0], X[:, 0])
    for refused in (dual_of(K).decompose, lambda: dual_of(K).solve(0.0)):
        with pytest.raises(ValueError, match="must be positive semidefinite"):
            refused()
    distances = -((X[:, None] - X) ** 2).sum(axis=2)  # indefinite, but not for differences
    expected = dual_of(2 * X @ X.T).decompose().eigenvalues
    np.testing.assert_allclose(dual_of(distances).decompose().eigenvalues[-3:], expected[-3:])


def test_too_little_memory(monkeypatch):
    system = dual_of(np.eye(10))
    monkeypatch.setattr(dual, "available_memory", lambda: 800.0)
    system.solve(1.0)
    message = r"dual form of 10 rows takes 2.24e-06 GiB .*\(24 n² bytes\).*a Nyström map"
    with pytest.raises(MemoryError, match=message):
        system.decompose()
    monkeypatch.setattr(dual, "available_memory", lambda: 799.0)
    with pytest.raises(MemoryError, match=r"\(8 n² bytes\)"):
        system.solve(1.0)


def peak_words(compute, n):
    """Float64 words that NumPy takes at its highest, over n²."""
    tracemalloc.start()
    try:
        compute()
        return tracemalloc.get_traced_memory()[1] / (8 * n**2)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_is_that_of_the_formula(monkeypatch, dtype):
    n, half = 512, dtype == np.float32
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(n, 5)).astype(dtype), rng.normal(size=n), np.arange(n) // 8
    system = dual_of(kernel_matrix(X))
    fit, search = RankRLS(kernel="rbf"), RankRLSCV([1.0, 0.1], kernel="rbf")
    monkeypatch.setattr(data_module, "DENSE_BLOCK_BYTES", 8 * n * 16)
    monkeypatch.setattr(_kernel_tiles, "TILE", 64)
    assert peak_words(lambda: system.solve(0.1), n) < 1.1
    assert peak_words(lambda: fit.fit(X, y, qid=qid), n) < (1.8 if half else 1.3)
    assert peak_words(system.decompose, n) < 3.1
    monkeypatch.setattr(dual, "DIVIDE_AND_CONQUER_ORDER", 0)
    assert peak_words(system.decompose, n) < 2.1
    assert peak_words(lambda: search.fit(X, y, qid=qid), n) < 2.4
    search.set_params(pairs=["kept", None])  # one after the other
    assert peak_words(lambda: search.fit(X, y, qid=qid), n) < 2.4


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("pairs", ["kept", None])
def test_features_that_are_not_finite(value, pairs):
    X = np.random.default_rng(0).uniform(size=(4, 6))
    X[0, 0] = value
    for rows in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
            RankRLS(pairs=pairs).fit(rows, np.arange(4.0))


def _linear(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("search", "parameters", "per_square", "features"),
    [
        (False, {"kernel": "rbf"}, 8, 0),
        (False, {"kernel": _linear}, 16, 0),
        (True, {"kernel": "rbf"}, 24, 0),
        (True, {"kernel": "precomputed"}, 24, 0),
        (False, {"form": "dual"}, 8, 8 * 10 * 30),
        (True, {"form": "auto"}, 24, 8 * 10 * 30),
    ],
)
def test_the_kernel_is_not_made_where_its_system_has_no_room(
    monkeypatch, search, parameters, per_square, features
):
    X = np.random.default_rng(0).normal(size=(10, 30))
    X = X @ X.T if parameters.get("kernel") == "precomputed" else X
    model = (RankRLSCV([1.0]) if search else RankRLS()).set_params(**parameters)
    needed = per_square * 100.0 + features
    monkeypatch.setattr(dual, "available_memory", lambda: needed)
    model.fit(X, np.arange(10.0))
    monkeypatch.setattr(dual, "available_memory", lambda: needed - 1)
    with pytest.raises(MemoryError, match=rf"dual form of 10 rows .*\({per_square} n² bytes.*Nyst"):
        model.fit(X, np.arange(10.0))


def test_float32_kernels_take_half(monkeypatch):
    X = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    monkeypatch.setattr(dual, "available_memory", lambda: 1200.0)
    RankRLS(kernel="rbf").fit(X, np.arange(10.0))
    monkeypatch.setattr(dual, "available_memory", lambda: 1199.0)
    with pytest.raises(MemoryError, match=r"with the kernel matrix \(12 n² bytes\)"):
        RankRLS(kernel="rbf").fit(X, np.arange(10.0))


def test_differences_that_are_rounding_errors_are_no_indefinite_kernel():
    """Rows of a query that are alike but for rounding: R K Rᵀ has no sign to speak of."""
    rng = np.random.default_rng(0)
    for n_queries in (1, 3):
        query = np.repeat(np.arange(n_queries), 6)
        f = rng.normal(size=(n_queries, 4))[query]
        K = f @ f.T
        K = K * (1 + 1e-16 * rng.normal(size=K.shape))
        problem = Problem(f, rng.normal(size=len(query)), query, None, None)
        system = DualGram(data_of(problem, (K + K.T) / 2), PairSettings("kept"))
        coef = system.decompose().coef([1.0])
        assert np.ptp(((K + K.T) / 2 @ coef.T)[:6]) < 1e-6
        system.solve(0.0)
