"""The dual form against dense systems, the primal form and explicit refits."""

import tracemalloc
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

import forms
import reference
from axes import every
from pairgram import (
    PairwiseELMCV,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    kernel_matrix,
    load_model,
    make_ranking,
)
from parts.data import Pairs, checked_data
from parts.features import Kernel, kernels as matrix
from parts.solvers import DualGram, PairSums, leave_query_out, leave_row_out, split_scores
from parts.support import on_threads
from problems import Problem, problems
from reference_dual import (
    PAIRS,
    WEIGHTINGS,
    assert_scores,
    data_of,
    explicit,
    laplacian,
    refits,
    size_of,
)

KERNELS = ["linear", "rbf"]  # the first of low rank

settings_drawn = st.builds(
    Pairs,
    st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    target=st.sampled_from(["label", "gain"]),
)


def held_out(data, total, ridge, alphas):
    return leave_query_out(data, total.settings, ridge, alphas, lambda: total)


def assert_refits(scores, problem, K, settings, alphas, tolerances=None):
    """Scores of every query are those of a refit without it."""
    rows = np.arange(len(problem.y))
    splits = [(rows[problem.query != q], rows[problem.query == q]) for q in set(problem.query)]
    expected = refits(problem, K, settings, alphas, splits)
    for (_, test), part in zip(splits, expected, strict=True):
        if tolerances is None:
            assert_scores(scores[:, test], part, problem.y)
            continue
        for actual, wanted, tolerance in zip(scores[:, test], part, tolerances, strict=True):
            assert_scores(actual, wanted, problem.y, tolerance)


@pytest.mark.usefixtures("decomposition")
@hypothesis.settings(max_examples=12)
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
    assert (np.diff(path.eigen.eigenvalues) >= 0).all()
    coefs = path.coef(alphas)
    for alpha, coef in zip(alphas, coefs, strict=True):
        expected = explicit(problem, K64, settings, alpha)
        # rounding of K is all that a negative eigenvalue, which the path leaves out, comes from
        tolerance = 1e-8 if dtype == np.float64 else 1e-7 * scale / alpha
        assert_scores(K64 @ coef, K64 @ expected, problem.y, tolerance)
        assert_scores(K64 @ system.solve(alpha), K64 @ expected, problem.y)
    np.testing.assert_array_equal(K, given_K)


@pytest.mark.usefixtures("decomposition")
@hypothesis.settings(max_examples=12)
@given(problem=problems(max_features=3), settings=settings_drawn)
def test_linear_kernel_is_the_primal_form(problem, settings):
    K = problem.X @ problem.X.T
    L = laplacian(problem, settings)
    G = problem.X.T @ L @ problem.X
    hypothesis.assume(np.abs(G).max() > 1e-9 * np.abs(L).max())  # there are pairs
    system = DualGram(data_of(problem, K), settings)
    path = system.decompose()
    for share in (1.0, 1e-3, 1e-6):
        alpha = share * size_of(L, K)
        model = RankRLS(
            alpha, pairs=Pairs(settings.kind, weighting=settings.weighting, target=settings.target)
        ).fit(problem.X, problem.y, **problem.named)
        for coef in (system.solve(alpha), path.coef([alpha])[0]):
            assert_scores(K @ coef, model.predict(problem.X), problem.y)


@pytest.mark.usefixtures("decomposition")
@pytest.mark.parametrize("pairs", PAIRS)
def test_no_ridge_gives_the_minimum_norm(pairs):
    """Both where K has full rank and where it has not: the systems are singular."""
    X, y, qid = make_ranking(6, (1, 9), 4, random_state=0)
    for K, features in ((X @ X.T, X), (kernel_matrix(X), np.linalg.cholesky(kernel_matrix(X)))):
        settings = Pairs(pairs)
        data = checked_data(K, y, qid=qid)
        L, _ = reference.laplacian(y, np.unique(qid, return_inverse=True)[1], pairs)
        G = features.T @ L @ features
        expected = features @ (np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ features.T @ L @ y)
        assert_scores(K @ DualGram(data, settings).solve(0.0), expected, y)


@pytest.mark.usefixtures("decomposition")
def test_alpha_too_small_for_cholesky():
    """Beyond double precision, the answer is that without a ridge, not residuals by alpha."""
    X, y, qid = make_ranking(6, (2, 9), 3, random_state=0)
    system = DualGram(checked_data(X @ X.T, y, qid=qid), Pairs())
    expected = RankRLS(0.0).fit(X, y, qid=qid).predict(X)
    assert_scores(X @ X.T @ system.solve(1e-20), expected, y)


@hypothesis.settings(max_examples=12)
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
    made_K = replace(given_K, X=X, feature_map=Kernel(kernel).fit(X))
    one, other = DualGram(made_K, settings), DualGram(given_K, settings)
    scale = abs(size_of(laplacian(problem, settings), K))
    assert_scores(K @ one.solve(scale), K @ other.solve(scale), problem.y, 1e-10)
    alphas = scale * np.array([1.0, 1e-3])
    rows = np.arange(len(problem.y))
    part = rows[problem.query > 0]
    if given_K.take(part).has_pairs(settings).any():
        expected = K @ DualGram(given_K, settings, part).solve(scale)
        found = K @ DualGram(made_K, settings, part).solve(scale)
        assert_scores(found, expected, problem.y, 1e-10)
    if given_K.has_pairs(settings).sum() < 2:
        return
    scores = [
        held_out(data, total, total.decompose(), alphas)
        for data, total in ((made_K, one), (given_K, other))
    ]
    assert_scores(*scores, problem.y)


@pytest.mark.usefixtures("decomposition")
@pytest.mark.parametrize("block_rows", [1, 2048])
def test_leave_query_out_of_a_large_problem(set_limits, block_rows):
    """With rows in blocks."""
    set_limits(held_rows=block_rows)
    X, y, qid = make_ranking(12, (1, 15), 3, random_state=0)
    qid = qid[np.random.default_rng(0).permutation(len(y))]
    problem = Problem(X, y, np.unique(qid, return_inverse=True)[1], None, None)
    K, settings = kernel_matrix(X), Pairs("without_ties")
    data = replace(data_of(problem, K), X=X, feature_map=Kernel("rbf").fit(X))
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    for alpha, coef in zip(alphas, ridge.coef(alphas), strict=True):
        assert_scores(K @ coef, K @ explicit(problem, K, settings, alpha), y)
    scores = held_out(data, total, ridge, alphas)
    assert_refits(scores, problem, K, settings, alphas)


def test_directions_that_queries_barely_see():
    """A smooth kernel of one feature: most eigenvalues are rounding error, but not their part."""
    rng = np.random.default_rng(0)
    n = 120
    query = np.repeat(np.arange(6), 20)
    problem = Problem(rng.normal(size=(n, 1)), rng.integers(0, 5, n) * 1.0, query, None, None)
    K, settings = kernel_matrix(problem.X), Pairs()
    data = data_of(problem, K)
    total = DualGram(data, settings)
    ridge = total.decompose()
    rows = np.arange(n)
    splits = [(rows[query != q], rows[query == q]) for q in range(6)]
    for share, tolerance in ((1e-2, 1e-12), (1e-4, 1e-10), (1e-6, 1e-7)):
        alphas = share * ridge.eigen.eigenvalues[-1:]
        expected = K @ explicit(problem, K, settings, alphas[0])
        assert_scores(K @ ridge.coef(alphas)[0], expected, problem.y, tolerance)
        assert_scores(K @ total.solve(alphas[0]), expected, problem.y, tolerance)
        scores = held_out(data, total, ridge, alphas)
        expected = np.hstack(refits(problem, K, settings, alphas, splits))
        assert_scores(scores, expected, problem.y, tolerance)


# Held-out scores ----------------------------------------------------------------------------------


def assert_held_out(problem, settings, tolerances):
    """Leave-query-out scores at falling ridges against refits."""
    K, data = kernel_matrix(problem.X), data_of(problem, kernel_matrix(problem.X))
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * 10.0 ** np.arange(0, -2 * len(tolerances), -2)
    scores = held_out(data, total, ridge, alphas)
    assert_refits(scores, problem, K, settings, alphas, tolerances)


@pytest.mark.parametrize("labels", [[0, 1, 5, 6], [0, 1, 7, 8], [0, 1, 9, 10], [0, 1, 40, 41]])
def test_levels_that_hardly_any_pair_joins(labels):
    rng = np.random.default_rng(0)
    y = rng.choice(labels, 60) * 1.0
    problem = Problem(rng.normal(size=(60, 3)), y, np.repeat(np.arange(6), 10), None, None)
    settings = Pairs(lambda a, b: np.exp(-((a - b) ** 2)))
    assert_held_out(problem, settings, [1e-11, 1e-10, 1e-8])


@every(pairs=PAIRS, weight=[1e-9, 1e-12, 1e-16, 1e-24, 1e-200])
def test_rows_that_hardly_count(pairs, weight):
    rng = np.random.default_rng(0)
    y, query = rng.integers(0, 3, 60) * 1.0, np.repeat(np.arange(6), 10)
    v, query_weight = np.ones(60), np.ones(60)
    v[::7], query_weight[query == 2] = weight, weight
    X = rng.normal(size=(60, 3))
    for problem in (Problem(X, y, query, v, None), Problem(X, y, query, None, query_weight)):
        assert_held_out(problem, Pairs(pairs), [1e-9, 1e-8, 1e-7])


@pytest.mark.usefixtures("decomposition")
@hypothesis.settings(max_examples=12)
@given(problem=problems(min_queries=2), settings=settings_drawn, kernel=st.sampled_from(KERNELS))
def test_leave_query_out(problem, settings, kernel):
    K = kernel_matrix(problem.X, kernel=kernel)
    data = data_of(problem, K)
    hypothesis.assume(data.has_pairs(settings).sum() > 1)
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    scores = held_out(data, total, ridge, alphas)
    assert_refits(scores, problem, K, settings, alphas)


@pytest.mark.parametrize("pairs", PAIRS[:2])
def test_leave_query_out_of_global_pairs(pairs):
    X, y, qid = make_ranking(8, (1, 9), 4, random_state=0)
    problem = Problem(X, y, np.unique(qid, return_inverse=True)[1], None, None)
    K, settings = kernel_matrix(X), Pairs(pairs, scope="global")
    data = data_of(problem, K)
    total = DualGram(data, settings)
    alphas = np.array([10.0, 0.1])
    scores = held_out(data, total, total.decompose(), alphas)
    assert_refits(scores, problem, K, settings, alphas)


@every(pairs=["with_ties", "without_ties", None], weighting=WEIGHTINGS)
def test_leave_row_out(pairs, weighting):
    rng = np.random.default_rng(0)
    n = 25
    v = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    problem = Problem(
        rng.normal(size=(n, 3)), rng.normal(size=n).round(1), np.zeros(n, int), v, None
    )
    K, settings = kernel_matrix(problem.X), Pairs(pairs, weighting=weighting)
    data = data_of(problem, K)
    total = DualGram(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    scores = leave_row_out(data, total.settings, ridge, alphas, lambda total=total: total)
    for row in range(n):
        train = np.delete(np.arange(n), row)
        share = v[train] / v[train].sum()
        for alpha, score in zip(alphas, scores[:, row], strict=True):
            f = K @ explicit(problem, K, settings, alpha, train)
            origin = 0.0 if pairs is None else share @ f[train]
            assert_scores(score, f[row] - origin, problem.y)


@pytest.mark.usefixtures("decomposition")
@pytest.mark.parametrize("pairs", ["with_ties", None])
@pytest.mark.parametrize("kernel", ["linear", None])
def test_rows_held_out_that_would_be_rounding_error(pairs, kernel):
    """More features than rows: as the ridge falls, a row is all that tells its own part."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 60)), rng.normal(size=30)
    problem = Problem(X, y, np.zeros(30, int), None, None)
    K, settings = X @ X.T, Pairs(pairs)
    data = data_of(problem, K if kernel else X)
    total = DualGram(data, settings) if kernel else PairSums.of(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * np.array([1e-6, 1e-9, 1e-12, 1e-14, 1e-16])
    scores = leave_row_out(data, total.settings, ridge, alphas, lambda total=total: total)
    assert np.isnan(scores[2:]).any(axis=1).all()
    for row in range(3):
        train = np.delete(np.arange(30), row)
        for alpha, score in zip(alphas, scores[:, row], strict=True):
            f = K @ explicit(problem, K, settings, alpha, train)
            origin = 0.0 if pairs is None else f[train].mean()
            if np.isfinite(score):
                assert_scores(score, f[row] - origin, y, 1e-4)


@hypothesis.settings(max_examples=12)
@given(
    problem=problems(min_queries=2),
    settings=settings_drawn,
    scope=st.sampled_from(["query", "global"]),
)
def test_splits(problem, settings, scope):
    """Training rows that cut queries, as well as whole ones."""
    if scope == "global":
        problem.query_weight = None
    settings = Pairs(
        settings.kind, scope=scope, weighting=settings.weighting, target=settings.target
    )
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
    scores = split_scores(data, total, splits, lambda rest: rest.decompose().coef(alphas))
    for actual, expected in zip(scores, refits(problem, K, settings, alphas, splits), strict=True):
        assert_scores(actual, expected, problem.y)


def test_a_part_of_the_rows():
    X, y, qid = make_ranking(8, (3, 9), 4, random_state=0)
    K, settings = kernel_matrix(X), Pairs("without_ties")
    rows = np.flatnonzero(qid % 2 == 0)[::-1].copy()
    part = DualGram(checked_data(K, y, qid=qid), settings, rows)
    alone = DualGram(checked_data(K[np.ix_(rows, rows)].copy(), y[rows], qid=qid[rows]), settings)
    for coef, expected in (
        (part.solve(0.5), alone.solve(0.5)),
        (part.decompose().coef([0.5])[0], alone.decompose().coef([0.5])[0]),
    ):
        np.testing.assert_allclose(coef[rows], expected, rtol=1e-12)
        assert not np.delete(coef, rows).any()
    assert part.decompose().eigen.basis.shape[0] == len(y)


def test_a_kernel_model_is_a_linear_model_of_its_map():
    X, y, qid = make_ranking(8, (3, 9), 4, random_state=0)
    feature_map = Kernel("rbf", gamma=0.5).fit(X)
    K = feature_map.fit_transform(X)
    coef = DualGram(checked_data(K, y, qid=qid), Pairs()).solve(0.1)
    model = RankRLS(feature_map=feature_map).fit(X, y, qid=qid)
    model.coef_, model.feature_map_ = coef, feature_map
    np.testing.assert_allclose(model.predict(X), K @ coef, rtol=1e-10)


def test_threads():
    X, y, qid = make_ranking(55, 11, 4, random_state=0)  # more rows than a strip has vectors
    data = checked_data(kernel_matrix(X), y, qid=qid)

    def solutions():
        system = DualGram(data, Pairs("gain_difference"))
        return system.solve(0.1), system.decompose().eigen.basis

    # The bits of an eigendecomposition with more threads are BLAS's own affair.
    with threadpool_limits(1, user_api="blas"):
        one, *others = on_threads((1, 2, 5), solutions)
    for other in others:
        for found, wanted in zip(other, one, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_tools_of_scikit_learn(routing):
    pytest.importorskip("sklearn", minversion="1.8")  # which hands ids to score as well
    """A grid of gamma in a Pipeline, and a precomputed kernel, of which rows and columns go."""
    X, y, qid = make_ranking(12, 8, 4, random_state=0)
    splits = list(QueryKFold(3).split(X, qid=qid))
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), RankRLS(0.1, feature_map=Kernel("rbf"))),
        {"rankrls__feature_map__gamma": [0.01, 1.0]},
        cv=QueryKFold(3),
    ).fit(X, y, qid=qid)
    K = kernel_matrix(X)
    precomputed = cross_validate(
        RankRLS(0.1, feature_map=Kernel("precomputed")), K, y, cv=QueryKFold(3), params={"qid": qid}
    )
    scaled = [MinMaxScaler().fit(X[train]).transform(X) for train, _ in splits]
    for gamma, rows_of, actual in (
        (0.01, scaled, search.cv_results_["mean_test_score"][0]),
        (1.0, scaled, search.cv_results_["mean_test_score"][1]),
        (0.25, [X] * 3, precomputed["test_score"].mean()),
    ):
        model = RankRLS(0.1, feature_map=Kernel("rbf", gamma=gamma))
        expected = [
            model.fit(rows[train], y[train], qid=qid[train]).score(
                rows[test], y[test], qid=qid[test]
            )
            for rows, (train, test) in zip(rows_of, splits, strict=True)
        ]
        np.testing.assert_allclose(actual, np.mean(expected), rtol=1e-12)


# What is refused ----------------------------------------------------------------------------------


def dual_of(K, pairs="with_ties"):
    return DualGram(checked_data(K, np.arange(float(K.shape[0]))), Pairs(pairs))


def test_wrong_parameters():
    system = dual_of(np.eye(3))
    for call in (lambda: system.solve(1.0, scale=True), lambda: system.decompose(scale=True)):
        with pytest.raises(ValueError, match="scale must be False for a kernel"):
            call()
    with pytest.raises(ValueError, match="alpha must be a finite number >= 0"):
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
    # without a positive eigenvalue, however large the ridge
    for refused in (dual_of(-X @ X.T).decompose, lambda: dual_of(-X @ X.T).solve(1e6)):
        with pytest.raises(ValueError, match=r"must be positive semidefinite.*add up to 0 and"):
            refused()
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    with pytest.raises(ValueError, match="must be positive semidefinite"):
        RankRLS(feature_map=Kernel("precomputed")).fit(squares, np.arange(12.0))
    distances = -((X[:, None] - X) ** 2).sum(axis=2)  # indefinite, but not for differences
    expected = dual_of(2 * X @ X.T).decompose().eigen.eigenvalues
    np.testing.assert_allclose(dual_of(distances).decompose().eigen.eigenvalues[-3:], expected[-3:])


def test_too_little_memory(free_memory):
    system = dual_of(np.eye(10))
    free_memory(800.0)
    system.solve(1.0)
    message = r"dual form of 10 rows.*\(24 n² bytes\), takes 2.24e-06 GiB, but .* take fewer rows$"
    with pytest.raises(MemoryError, match=message):
        system.decompose()
    free_memory(799.0)
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
def test_memory_is_that_of_the_formula(set_limits, dtype):
    n = 384
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(n, 5)).astype(dtype), rng.normal(size=n), np.arange(n) // 8
    system = dual_of(kernel_matrix(X))
    fit, search = (
        RankRLS(feature_map=Kernel("rbf")),
        RankRLSCV([1.0, 0.1], feature_map=Kernel("rbf")),
    )
    set_limits(held_rows=16, tile=64)
    assert peak_words(lambda: system.solve(0.1), n) < 1.1
    assert peak_words(lambda: fit.fit(X, y, qid=qid), n) < 1.3
    assert peak_words(lambda: system.decompose(basis=True), n) < 3.1
    assert peak_words(system.decompose, n) < 1.4
    assert peak_words(lambda: search.fit(X, y, qid=qid), n) < 3.4
    search.set_params(pairs=["with_ties", None])  # one after the other
    assert peak_words(lambda: search.fit(X, y, qid=qid), n) < 3.4


@pytest.mark.parametrize(
    ("cv", "weighted", "words"),
    [(None, False, 3), (3, False, 3), ("leave-pair-out", False, 3), ("leave-pair-out", True, 3)],
)
def test_memory_of_rows_of_one_query(set_limits, free_memory, cv, weighted, words):
    n = 176 if weighted else 384  # by Python in 2n steps
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)), rng.integers(0, 2, n) * 1.0
    v = rng.uniform(1, 2, n) if weighted else None
    search = RankRLSCV([1.0], feature_map=Kernel("rbf"), cv=cv)
    set_limits(tile=64, held_rows=8, pair_entries=n * 8)
    assert peak_words(lambda: search.fit(X, y, sample_weight=v), n) < words + 0.5
    free_memory(words * 8.0 * n**2 - 1)
    with pytest.raises(MemoryError, match=rf"\({8 * words} n² bytes"):
        search.fit(X, y, sample_weight=v)


@pytest.mark.parametrize(
    ("search", "parameters", "per_square", "features"),
    [
        (False, {"feature_map": Kernel("rbf")}, 8, 8 * 10 * 30),
        (True, {"feature_map": Kernel("rbf")}, 24, 8 * 10 * 30),
        (True, {"feature_map": Kernel("precomputed")}, 24, 0),
        (False, {"form": "dual"}, 8, 8 * 10 * 30),
    ],
)
def test_the_kernel_is_not_made_where_its_system_has_no_room(
    free_memory, search, parameters, per_square, features
):
    X = np.random.default_rng(0).normal(size=(10, 30))
    X = X @ X.T if features == 0 else X
    model = RankRLSCV([1.0], **parameters) if search else forms.RankRLS(**parameters)
    needed = per_square * 100.0 + features
    free_memory(needed)
    model.fit(X, np.arange(10.0))
    free_memory(needed - 1)
    with pytest.raises(MemoryError, match=rf"dual form of 10 rows, .*\({per_square} n² bytes"):
        model.fit(X, np.arange(10.0))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_rows_of_float32(kernel):
    """Near those of float64 over the whole grid: the kernel is made in float64."""
    X, y, qid = make_ranking(20, (5, 15), 5, random_state=0)
    X32 = X.astype(np.float32)
    named = {"feature_map": Kernel(kernel, gamma=0.2), "form": "dual"}
    searches = [
        forms.RankRLSCV(**named, scoring="pairwise_squared_error").fit(rows, y, qid=qid)
        for rows in (X32, X32.astype(np.float64))
    ]
    np.testing.assert_allclose(searches[0].scores_, searches[1].scores_, rtol=1e-7)
    largest = searches[1].alphas_[0] * 1e4 / 2**15
    for share in (1e-2, 1e-4, 1e-6, 1e-8):
        model = forms.RankRLS(share * largest, **named)
        expected = model.fit(X, y, qid=qid).predict(X)
        scores = model.fit(X32, y, qid=qid).predict(X32)
        assert scores.dtype == np.float32
        assert np.abs(scores - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_what_is_refused_is_so_before_a_decomposition(monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(DualGram, "decompose", fail)
    X, y, _ = make_ranking(1, 400, 4, random_state=0)
    for message, named in (
        (
            "training rows of split 0",
            {"pairs": "without_ties", "cv": [(np.array([0]), np.arange(9))]},
        ),
        ("takes the time of", {"cv": "leave-pair-out", "alphas": np.geomspace(1e-9, 1, 9999)}),
        ("is for pairs='with_ties'", {"cv": "leave-pair-out", "pairs": "without_ties"}),
        ("training rows of split 0", {"cv": [(np.array([0]), np.arange(1, 400))]}),
    ):
        with pytest.raises(ValueError, match=message):
            RankRLSCV(feature_map=Kernel("rbf")).set_params(**named).fit(X, y)
    with pytest.raises(ValueError, match="leave-query-out needs two queries with pairs"):
        RankRLSCV(feature_map=Kernel("rbf")).fit(X, y, qid=np.r_[np.zeros(399), 1])
    monkeypatch.setattr(matrix, "matrix_of", fail)
    for named in ({"cv": "foo"}, {"scoring": "foo"}, {"cv": [(np.arange(3), np.array([400]))]}):
        with pytest.raises(ValueError, match=r"cv|foo"):
            RankRLSCV(feature_map=Kernel("rbf")).set_params(**named).fit(X, y)


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_queries_held_out_of_pairs_of_all_rows():
    """By the folds of one regression, of which an intercept changes no score of a query."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    query = rng.permutation(np.arange(30) % 6)
    v = rng.choice([0.0, 1.0, 2.0], 30)
    model = RankRLSCV(
        [10.0, 0.1],
        feature_map=Kernel("rbf"),
        pairs=Pairs(scope="global"),
        scoring="pairwise_squared_error",
    )
    scores = model.fit(X, y, sample_weight=v, qid=query).scores_
    rows = np.arange(30)
    splits = [(rows[query != q], rows[query == q]) for q in np.unique(query)]
    problem, K = Problem(X, y, query, v, None), kernel_matrix(X)
    parts = refits(problem, K, Pairs("with_ties", scope="global"), model.alphas_, splits)
    values, weights = [], []
    for (_, test), part in zip(splits, parts, strict=True):
        seen = v[test] > 0
        if seen.sum() > 1:
            values.append(2 * np.var(y[test][seen] - part[:, seen], axis=1))
            weights.append(v[test][seen].mean())
    np.testing.assert_allclose(scores, np.average(values, axis=0, weights=weights), rtol=1e-8)


def test_differences_that_are_rounding_errors_are_no_indefinite_kernel():
    """Rows of a query that are alike but for rounding: R K Rᵀ has no sign to speak of."""
    rng = np.random.default_rng(0)
    for n_queries in (1, 3):
        query = np.repeat(np.arange(n_queries), 6)
        f = rng.normal(size=(n_queries, 4))[query]
        K = f @ f.T
        K = K * (1 + 1e-16 * rng.normal(size=K.shape))
        problem = Problem(f, rng.normal(size=len(query)), query, None, None)
        system = DualGram(data_of(problem, (K + K.T) / 2), Pairs("with_ties"))
        coef = system.decompose().coef([1.0])
        assert np.ptp(((K + K.T) / 2 @ coef.T)[:6]) < 1e-6
        system.solve(0.0)


# The kernel's parameter --------------------------------------------------------------------------

GAMMAS = [0.01, 0.3, 4.0]


@every(cv=[None, 3, "leave-pair-out", "validation"], machine=[RankRLSCV, PairwiseELMCV])
def test_gamma_is_chosen_as_by_searches_of_each(machine, cv):
    X, y, qid = make_ranking(12, (4, 9), 3, random_state=1)
    qid = None if cv == "leave-pair-out" else qid
    rows = {"qid": qid}
    if cv == "validation":
        cv, rows["validation"] = None, (X[::2], y[::2], qid[::2])
    named = {
        "pairs": ["with_ties", None] if machine is RankRLSCV else "without_ties",
    }
    named |= {"cv": cv}
    if cv == "leave-pair-out":
        named["pairs"] = "with_ties"
    kernels = [Kernel("rbf", gamma=gamma) for gamma in GAMMAS]
    searches = [machine(**named, feature_map=one).fit(X, y, **rows) for one in kernels]
    model = machine(**named, feature_map=kernels).fit(X, y, **rows)
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(model.cv_results_["mean_test_score"], np.concatenate(scores))
    tried = [one.gamma for one in model.cv_results_["param_feature_map"]]
    assert tried == np.repeat(GAMMAS, [len(s) for s in scores]).tolist()
    best = searches[int(np.argmax([np.nanmax(s) for s in scores]))]
    assert model.feature_map_.gamma_ == best.feature_map.gamma
    assert model.best_score_ == best.best_score_
    np.testing.assert_array_equal(model.predict(X), best.predict(X))


def test_gamma_that_was_chosen_is_saved(tmp_path):
    X, y, qid = make_ranking(12, (4, 9), 3, random_state=1)
    for machine in (RankRLSCV, PairwiseELMCV):
        maps = [Kernel("laplacian"), Kernel("laplacian", gamma=0.1)]
        model = machine(feature_map=maps).fit(X, y, qid=qid)
        assert model.feature_map_.gamma_ in (1 / 3, 0.1)
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert loaded.feature_map_.gamma_ == model.feature_map_.gamma_
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_folds_are_those_of_every_gamma():
    X, y, qid = make_ranking(12, (4, 9), 3, random_state=1)
    splits = list(QueryKFold(3).split(X, qid=qid))
    for cv in ((split for split in splits), GroupShuffleSplit(3)):
        model = RankRLSCV(feature_map=[Kernel("rbf", gamma=g) for g in [0.1, 0.1]], cv=cv).fit(
            X, y, qid=qid
        )
        first, second = model.cv_results_["mean_test_score"].reshape(2, -1)
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e-12, 1e-100])
def test_a_singular_system_of_any_scale(size):
    """Where Cholesky has failed halfway and left its factor in one triangle."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 5)), np.arange(60) // 6
    y = X[:, 0] + rng.normal(size=60)
    K = size * (X @ X.T)
    scores = K @ RankRLS(0.0, feature_map=Kernel("precomputed")).fit(K, y, qid=qid).coef_
    np.testing.assert_allclose(scores, X @ RankRLS(0.0).fit(X, y, qid=qid).coef_, atol=1e-9)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_sparse_rows_with_a_huge_column(form):
    """A column of times, without zeros, takes no digits from the others."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(12, 20)), rng.normal(size=12), np.repeat([0, 1, 2], 4)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[:, 7] = 1.7e9 + np.arange(12)
    dense = forms.RankRLS(0.5, form=form).fit(X, y, qid=qid)
    rows = forms.RankRLS(0.5, form=form).fit(sp.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(rows.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
