"""The batch kernel against dense matrices, and fits by it against fits by statistics."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_array

import pairgram as pg
from pairgram import _core
from parts.data import RankingData
from parts.features import node_map_of
from parts.solvers import SmallProblem
from problems import compiled, problems
from reference import laplacian, statistics

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]
ALPHAS, DAMPING = np.array([3.0, 0.5, 0.5, 0.1]), np.array([0.0, 0.0, 0.7, 2.0])


def batch_problem(X, targets, y, offsets, pairs="kept", map=None):
    problem = _core.RankingProblem(y, offsets, pairs=pairs, weighting="pairs")
    return _core.BatchProblem(problem, X, targets, map=map)


def joined(lists):
    return np.concatenate(lists), np.cumsum([0, *map(len, lists)])


def reference_models(problem, rows, pairs, weighting, target, relative):
    """The models of the given rows, (n_grid, n_features), by dense matrices; None without pairs."""
    v = None if problem.v is None else problem.v[rows]
    weight = None if problem.query_weight is None else problem.query_weight[rows]
    y, query = problem.y[rows], problem.query[rows]
    whole = np.column_stack([problem.X[rows], target[rows]])
    S, N = statistics(whole, y, query, pairs, v, weighting, weight)
    counts = (np.ones(len(rows)) if v is None else v) * (1 if weight is None else weight) > 0
    if pairs is None:
        some = counts.any()
    else:
        same = (query[:, None] == query) & counts[:, None] & counts
        tied = y[:, None] == y if pairs != "with_ties" else np.eye(len(rows), dtype=bool)
        some = (same & ~tied).any()
    if not some:
        return None
    n = problem.X.shape[1]
    G, g = S[:n, :n], S[:n, n]
    unit = N / 2 if relative else 1.0
    models = []
    for alpha, delta in zip(unit * ALPHAS, unit * DAMPING, strict=True):
        A = G + alpha * np.eye(n)
        # (A² + δ²) w = A g without the square, which would lose half of the digits
        stacked = np.vstack([A, delta * np.eye(n)])
        models.append(np.linalg.lstsq(stacked, np.append(g, np.zeros(n)))[0])
    return np.array(models)


@given(
    problem=problems(max_features=12),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    relative=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150)
def test_held_out_scores(problem, pairs, weighting, relative, seed):
    rng = np.random.default_rng(seed)
    n = len(problem.y)
    splits = [(rng.integers(0, n, n // 2 + 1), rng.integers(0, n, rng.integers(4)))]
    splits += [np.split(rng.permutation(n), [rng.integers(n + 1)]) for _ in range(2)]
    target = np.round(rng.normal(size=n), 1)
    arguments = compiled(problem, pairs, weighting, target=target)
    task = (
        _core.BatchProblem(*arguments),
        joined([train for train, _ in splits]),
        joined([test for _, test in splits]),
        ALPHAS,
        DAMPING,
        relative,
    )
    models = [
        reference_models(problem, train, pairs, weighting, target, relative) for train, _ in splits
    ]
    (scores,) = _core.hold_out_batch([task], 1)
    if any(model is None for model in models):
        assert scores is None
        return
    expected = np.hstack(
        [model @ problem.X[test].T for model, (_, test) in zip(models, splits, strict=True)]
    )
    assert scores.shape == (1, 4, expected.shape[1])
    scale = abs(expected).max(initial=1.0)
    np.testing.assert_allclose(scores[0], expected, rtol=1e-8, atol=1e-9 * scale)


@given(
    problem=problems(max_features=40),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
)
@settings(max_examples=100)
def test_decompositions(problem, pairs, weighting):
    rows = np.arange(len(problem.y))
    expected = reference_models(problem, rows, pairs, weighting, problem.y, False)
    arguments = compiled(problem, pairs, weighting)
    (found,) = _core.decompose_batch([_core.BatchProblem(*arguments)], 1)
    assert (found is None) == (expected is None)
    if found is None:
        return
    eigenvalues, vectors, projections, pair_weight = found
    S, N = statistics(
        problem.X, problem.y, problem.query, pairs, problem.v, weighting, problem.query_weight
    )
    n, n_features = problem.X.shape
    assert 1 <= len(eigenvalues) <= (n if n < 0.6 * n_features else n_features)
    assert (np.diff(eigenvalues) >= 0).all()
    size = abs(S).max()
    np.testing.assert_allclose(vectors.T * eigenvalues @ vectors, S[:-1, :-1], atol=1e-11 * size)
    np.testing.assert_allclose(projections[0] @ vectors, S[:-1, -1], atol=1e-11 * size)
    np.testing.assert_allclose(pair_weight, N, rtol=1e-12)


def mapped_problem(n, n_nodes, pairs="kept", seed=0, n_targets=1):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n, 4)), np.round(rng.normal(size=(n, n_targets)), 1)
    nodes = pg.RandomNodes(n_nodes, weight_range=(-3, 3), random_state=seed).fit(X)
    bound = batch_problem(
        X, y, y[:, 0].copy(), np.array([0, n // 3, n]), pairs, node_map_of(nodes, np.float64)
    )
    return X, y, nodes, bound


@pytest.mark.parametrize("n_nodes", [5, 60])  # fewer, and more, than rows
def test_a_map_and_many_targets_give_what_each_gives_alone(n_nodes):
    X, y, nodes, bound = mapped_problem(30, n_nodes, n_targets=3)
    rows = np.random.default_rng(0).permutation(30)
    lists = joined([rows[:20], rows[5:]]), joined([rows[20:], rows[:5]])
    (scores,) = _core.hold_out_batch([(bound, *lists, ALPHAS, DAMPING, True)], 2)
    H = nodes.transform(X)
    for target in range(3):
        alone = batch_problem(
            H, y[:, target : target + 1].copy(), y[:, target].copy(), np.array([0, 10, 30])
        )
        (expected,) = _core.hold_out_batch([(alone, *lists, ALPHAS, DAMPING, True)], 1)
        np.testing.assert_allclose(scores[target], expected[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("n", "n_copies"), [(30, 2), (12, 6)])  # by features, and by rows
def test_null_directions_give_the_minimum_norm(n, n_copies):
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(n, 3)) * [1.0, 30.0, 1e3], (1, n_copies)) + 7.0
    y = rng.normal(size=n)
    problem = batch_problem(X, y[:, None].copy(), y, np.array([0, n]))
    rows = np.arange(n)
    tiny, zero = np.array([0.0, 1e-13]), np.zeros(2)
    lists = joined([rows]), joined([rows])
    (scores,) = _core.hold_out_batch([(problem, *lists, tiny, zero, False)], 1)
    centred = X - X.mean(axis=0)
    w = np.linalg.lstsq(centred, y - y.mean(), rcond=1e-10)[0]
    for found in scores[0]:
        np.testing.assert_allclose(found - found.mean(), centred @ w, atol=1e-8)
    ((eigenvalues, _, projections, _),) = _core.decompose_batch([problem], 1)
    assert (projections[0] != 0).sum() == 3
    assert (eigenvalues >= 0).all()


@pytest.mark.parametrize("n_nodes", [5, 60])
def test_rounding_of_the_map_is_no_feature(n_nodes):
    """Nodes that vary by rounding alone, as equal rows may: a tiny ridge would blow that up."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 4)), rng.normal(size=30)

    def decomposition(width):
        ranges = {"weight_range": (-width, width), "bias_range": (1.0, 2.0)}
        nodes = pg.RandomNodes(n_nodes, "linear", random_state=0, **ranges).fit(X)
        assert (np.ptp(nodes.transform(X), axis=0) > 0).any()
        problem = batch_problem(
            X, y[:, None].copy(), y, np.array([0, 30]), map=node_map_of(nodes, np.float64)
        )
        ((eigenvalues, _, projections, _),) = _core.decompose_batch([problem], 1)
        return eigenvalues, projections

    eigenvalues, projections = decomposition(1e-15)
    assert (eigenvalues == 0).all()
    assert (projections == 0).all()
    assert decomposition(1e-11)[0].max() > 0  # which is no rounding


def test_any_number_of_threads_gives_the_same_bits():
    tasks, bounds = [], []
    for seed in range(12):
        n = 20 + 7 * seed
        bound = mapped_problem(n, 25, seed=seed)[3]
        rows = np.random.default_rng(seed).permutation(n)
        lists = joined([rows[10:], rows[:-10]]), joined([rows[:10], rows[-10:]])
        tasks.append((bound, *lists, ALPHAS, DAMPING, True))
        bounds.append(bound)
    for kernel, items in ((_core.hold_out_batch, tasks), (_core.decompose_batch, bounds)):
        one, four = kernel(items, 1), kernel(items, 4)
        for a, b in zip(one, four, strict=True):
            for x, z in (
                zip(np.atleast_1d(a), np.atleast_1d(b), strict=True)
                if isinstance(a, np.ndarray)
                else zip(a[:3], b[:3], strict=True)
            ):
                assert (x == z).all()


def test_what_fails_does_not_stop_the_others():
    good = mapped_problem(20, 5)[3]
    offsets = np.array([0, 20])
    X, ones = np.random.default_rng(0).uniform(size=(20, 3)), np.ones((20, 1))
    tied = batch_problem(X, ones, ones[:, 0].copy(), offsets, "dropped")
    infinite = X.copy()
    infinite[3, 1] = np.inf
    y = np.arange(20.0)
    wild = batch_problem(infinite, y[:, None].copy(), y, offsets, "dropped")
    nodes = node_map_of(pg.RandomNodes(4, random_state=0).fit(X), np.float64)
    hidden = batch_problem(infinite, y[:, None].copy(), y, offsets, "dropped", nodes)
    found = _core.decompose_batch([tied, good, wild, hidden], 2)
    assert [one is None for one in found] == [True, False, True, True]
    lists = joined([np.arange(15)]), joined([np.arange(15, 20)])
    held = _core.hold_out_batch(
        [(problem, *lists, ALPHAS, DAMPING, True) for problem in (tied, good, wild, hidden)], 2
    )
    assert [one is None for one in held] == [True, False, True, True]


@pytest.mark.parametrize(
    ("train", "test", "grid", "message"),
    [
        (([0, 30], [0, 2]), ([1], [0, 1]), 2, "rows of splits"),
        (([0, -1], [0, 2]), ([1], [0, 1]), 2, "rows of splits"),
        (([0, 1], [0, 3]), ([1], [0, 1]), 2, "bounds of splits"),
        (([0, 1], [1, 2]), ([1], [0, 1]), 2, "bounds of splits"),
        (([0, 1], [0, 2, 1]), ([1], [0, 1, 1]), 2, "bounds of splits"),
        (([0, 1], [0, 1, 2]), ([1], [0, 1]), 2, "as many splits"),
        (([0, 1], []), ([1], []), 2, "bounds"),
        (([0, 1], [0, 2]), ([1], [0, 1]), 3, "equal size"),
    ],
)
def test_bindings_refuse_what_would_read_outside(train, test, grid, message):
    bound = mapped_problem(30, 5)[3]
    lists = [tuple(np.array(part, dtype=np.int64) for part in pair) for pair in (train, test)]
    with pytest.raises(ValueError, match=message):
        _core.hold_out_batch([(bound, *lists, np.ones(2), np.ones(grid), True)], 1)


def test_bindings_refuse_other_types_and_no_rows():
    with pytest.raises(TypeError):
        _core.decompose_batch([1], 1)
    with pytest.raises((TypeError, ValueError)):
        _core.decompose_batch([None], 1)
    with pytest.raises(ValueError, match="not be empty"):
        batch_problem(np.empty((0, 2)), np.empty((0, 1)), np.empty(0), np.array([0]))


def by_statistics(model, *args, **kwargs):
    """Fit a model without the batch kernel."""
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr(SmallProblem, "fits", staticmethod(lambda data: False))
        return model.fit(*args, **kwargs)


@given(
    seed=st.integers(0, 2**32 - 1),
    pairs=st.sampled_from(["with_ties", "without_ties", "gain_difference"]),
    scope=st.sampled_from(["query", "global"]),
    n_nodes=st.sampled_from([3, 40]),
    weighted=st.booleans(),
)
@settings(max_examples=30)
def test_both_routes_agree(seed, pairs, scope, n_nodes, weighted):
    rng = np.random.default_rng(seed)
    X, y, qid = pg.make_ranking(8, 5, n_features=4, random_state=int(rng.integers(1 << 30)))
    X[:, 0] = 1.0  # a column that does not vary
    X[7] = X[2]
    v = rng.choice([0.0, 1.0, 2.5], len(y)) if weighted else None
    model = pg.ELMRankCV(
        cv=3,
        pairs=pairs,
        scope=scope,
        n_nodes=n_nodes,
        n_estimators=2,
        scoring="pearson",
        weight_range=[(-1, 1), (-9, 9)],
        random_state=seed,
    )
    model.fit(X, y, qid=qid, sample_weight=v)
    scores, found, chosen = model.scores_, model.predict(X), (model.alpha_, model.C_)
    by_statistics(model, X, y, qid=qid, sample_weight=v)
    np.testing.assert_allclose(scores, model.scores_, rtol=1e-8, atol=1e-8)
    if chosen == (model.alpha_, model.C_):  # else tied up to rounding
        expected = model.predict(X)
        np.testing.assert_allclose(found, expected, atol=1e-7 * abs(expected).max())


def test_nodes_that_do_not_vary_get_no_weight():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(40, 0.3), np.full(40, 0.7)])  # every node is constant
    y = rng.normal(size=40)
    model = pg.ELMRank(alpha=0.0, n_nodes=8, random_state=0)
    assert (model.fit(X, y).coef_ == 0).all()
    assert (by_statistics(model, X, y).coef_ == 0).all()


def test_errors_are_those_of_the_other_route():
    X, y, qid = pg.make_ranking(6, 5, n_features=3, random_state=0)
    model = pg.ELMRank(pairs="without_ties", n_nodes=4, random_state=0)
    for wrong in (np.nan, np.inf):
        bad = X.copy()
        bad[4, 1] = wrong
        messages = []
        for fit in (lambda m, *a: m.fit(*a), by_statistics):
            with pytest.raises(ValueError, match=r"NaN|infinity") as error:
                fit(model, bad, y)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    with pytest.raises(ValueError, match="no pair of rows counts"):
        model.fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="split 1 have no pairs"):
        splits = [(np.arange(9), np.arange(9, 20)), (np.array([3]), np.arange(3))]
        pg.ELMRankCV(cv=splits, n_nodes=4).fit(X, y, qid=qid)


def test_which_data_the_kernel_takes():
    X = np.random.default_rng(0).uniform(size=(30, 3))
    y = np.arange(30.0)

    def fits(X, feature_map=None):
        data = RankingData.delimit(X, np.resize(y, X.shape[0]))
        return SmallProblem.fits(replace(data, feature_map=feature_map))

    assert fits(X)
    assert fits(X, pg.RandomNodes(1000).fit(X))
    assert fits(X.astype(np.float32))
    assert not fits(csr_array(X))
    assert not fits(X, pg.RandomNodes(10, np.tanh).fit(X))
    assert not fits(np.ones((300, 300)))
    assert not fits(np.ones((300_000, 2)))


@pytest.mark.parametrize("scope", ["query", "global"])
@pytest.mark.parametrize("offset", [1e9, 1e12])
def test_linear_nodes_see_no_offset(scope, offset):
    """Differences within pairs do not have it, so few digits may be lost to it."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(80, 6)) * 64) / 64  # which stays exact beside the offset
    y = X @ rng.normal(size=6) + 0.1 * rng.normal(size=80)
    qid = np.repeat(np.arange(8), 10)[rng.permutation(80)]
    far = X + offset * (1 + qid[:, None] if scope == "query" else 1)
    search = pg.ELMRankCV(
        [1e-3, 1e-1], [2.0, 1e3], n_nodes=4, activation="linear", cv=3, scope=scope, random_state=0
    )
    near = search.fit(X, y, qid=qid)
    scores, coef = near.scores_, near.coef_
    search.fit(far, y, qid=qid)
    np.testing.assert_allclose(search.scores_, scores, rtol=1e-8)
    np.testing.assert_allclose(search.coef_, coef, rtol=1e-8)
    for model in (
        pg.ELMRank(n_nodes=4, activation="linear", scope=scope, random_state=0),
        pg.PairwiseELM(n_nodes=4, random_state=0),
    ):
        if scope == "global" and isinstance(model, pg.PairwiseELM):
            continue
        (expected, found) = (
            pg.fit_many(model, [{"X": rows, "y": y, "qid": qid}]).models[0].coef_
            for rows in (X, far)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("scoring", ["ndcg@10", "pairwise_accuracy", "pairwise_squared_error"])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_queries", "is_binary"),
    [(9, 12, 3, False), (20, 30, 4, False), (20, 30, 4, True), (10, 40, 1, True), (8, 12, 4, True)],
)
def test_fewer_rows_than_features_are_searched_as_alone(
    n_rows, n_features, n_queries, is_binary, scoring
):
    search = pg.RankRLSCV(10.0 ** np.arange(-4, 5), scoring=scoring)
    of_queries = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (n_rows, n_features)) * 1.0
        X = X if is_binary else rng.normal(size=X.shape)
        y, query = rng.integers(0, 3, n_rows) * 1.0, np.arange(n_rows) * n_queries // n_rows
        of_queries.append({"X": X, "y": y} | ({"qid": query} if n_queries > 1 else {}))
    for named, found in zip(of_queries, pg.fit_many(search, of_queries).models, strict=True):
        alone = search.fit(**named)
        np.testing.assert_allclose(found.scores_, alone.scores_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.best_score_, alone.best_score_, rtol=1e-7)
        assert found.alpha_ == alone.alpha_
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
@pytest.mark.parametrize(("n_rows", "n_features", "n_queries"), [(9, 12, 3), (15, 30, 5)])
def test_held_out_scores_of_fewer_rows_err_by_rounding_alone(n_rows, n_features, n_queries, pairs):
    """Errors grow with the largest eigenvalue over alpha, beside refits with 50 digits."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, query = rng.normal(size=(n_rows, n_features)), np.arange(n_rows) * n_queries // n_rows
        y = np.arange(n_rows) % 3 * 1.0
        largest = np.linalg.norm(laplacian(y, query, pairs)[0] @ X @ X.T, 2)
        alphas = largest / 10.0 ** np.array([2, 4, 6, 8])
        searches = [
            pg.RankRLSCV([alpha], pairs=pairs, scoring="pairwise_squared_error") for alpha in alphas
        ]
        models = [pg.fit_many(search, [(X, y, query)]).models[0] for search in searches]
        with mpmath.workdps(50):
            rows = mpmath.matrix(X.tolist())
            K = rows * rows.T
            for number in range(n_queries):
                train, test = np.flatnonzero(query != number), np.flatnonzero(query == number)
                L = mpmath.matrix(laplacian(y[train], query[train], pairs)[0].tolist())
                inner = mpmath.matrix([[K[int(i), int(j)] for j in train] for i in train])
                for model, alpha in zip(models, alphas, strict=True):
                    shifted = L * inner + mpmath.mpf(float(alpha)) * mpmath.eye(len(train))
                    dual = mpmath.lu_solve(shifted, L * mpmath.matrix(y[train].tolist()))
                    exact = [
                        mpmath.fsum(K[int(i), int(j)] * dual[t] for t, j in enumerate(train))
                        for i in test
                    ]
                    scores = np.array(exact, dtype=np.float64)
                    error = np.ptp(model.held_out_[test] - scores)
                    assert error <= 4e-15 * largest / alpha * np.abs(scores).max()
