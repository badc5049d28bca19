"""RandomFourier and Nystroem: draws, kernels, the fused path, files, bad parameters."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem as SklearnNystroem, RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import pairgram as pg
from axes import every
from pairgram import _core
from parts.data import Pairs, RankingData, checked_data
from parts.features import Kernel, nystroem
from parts.solvers import PairSums, leave_query_out
from parts.support import on_threads
from problems import problems

PARAMETERS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.2},
    "polynomial": {"gamma": 0.1, "degree": 3, "coef0": 0.5},
    "linear": {},
}
LANDMARKS = ["uniform", "kmeans"]


def cauchy_kernel(X, Z, gamma):
    return (1 / (1 + gamma**2 * (X[:, None] - Z) ** 2)).prod(axis=2)


MAPS = [
    pg.RandomFourier(40, random_state=0),
    pg.RandomFourier(40, kernel="laplacian", random_state=0),
    pg.RandomFourier(7, kernel="cauchy", gamma=2.0, random_state=0),
    *[pg.Nystroem(k, **named, n_components=20, random_state=0) for k, named in PARAMETERS.items()],
    pg.Nystroem("tanimoto", n_components=20, random_state=0),
    pg.Nystroem(landmarks="kmeans", n_components=15, random_state=0),
]


def name_of(feature_map):
    changed = [
        feature_map.kernel,
        getattr(feature_map, "landmarks", ""),
        type(feature_map).__name__,
    ]
    return "-".join(map(str, changed))


def fresh(feature_map, **parameters):
    return clone(feature_map).set_params(**parameters)


@pytest.fixture(scope="module")
def data():
    return pg.make_ranking(25, (1, 20), 5, random_state=0)


@every(estimator=[*MAPS[2:4], *MAPS[-3:], pg.Nystroem("minmax", n_components=20)])
def test_scikit_learn_checks(estimator):
    check_estimator(estimator, on_skip=None)


@given(st.integers(0, 2**31 - 1), st.integers(1, 30), st.integers(1, 60), st.floats(0.01, 3))
def test_the_draws_are_those_of_scikit_learn(seed, n_features, n_components, gamma):
    X = np.random.default_rng(seed).normal(size=(20, n_features))
    theirs = RBFSampler(gamma=gamma, n_components=n_components, random_state=seed).fit(X)
    ours = pg.RandomFourier(n_components, gamma=gamma, random_state=seed).fit(X)
    np.testing.assert_array_equal(ours.weights_, theirs.random_weights_)
    np.testing.assert_array_equal(ours.bias_, theirs.random_offset_)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=0, atol=1e-12)
    single = ours.transform(X.astype(np.float32))
    np.testing.assert_allclose(single, theirs.transform(X), rtol=0, atol=1e-4)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_the_draws_follow_a_generator(make):
    X = np.zeros((3, 40))
    feature_map = pg.RandomFourier(9, gamma=0.5, random_state=make(1)).fit(X)
    rng = make(1)
    np.testing.assert_array_equal(feature_map.weights_, rng.normal(size=(40, 9)))
    np.testing.assert_array_equal(feature_map.bias_, rng.uniform(0, 2 * np.pi, 9))
    assert pg.RandomFourier(9).fit(X).gamma_ == 1 / 40


@pytest.mark.parametrize(
    ("parameters", "exact"),
    [
        ({"kernel": "rbf"}, lambda X: rbf_kernel(X, gamma=0.4)),
        ({"kernel": "laplacian"}, lambda X: laplacian_kernel(X, gamma=0.4)),
        ({"kernel": "cauchy"}, lambda X: cauchy_kernel(X, X, 0.4)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fourier_features_approximate_their_kernel(parameters, exact, dtype):
    X = np.random.default_rng(0).normal(size=(30, 4))
    errors = []
    for m in (400, 40_000):
        feature_map = pg.RandomFourier(m, gamma=0.4, random_state=0, **parameters)
        Z = feature_map.fit_transform(X.astype(dtype)).astype(float)
        errors.append(np.sqrt(np.mean((Z @ Z.T - exact(X)) ** 2)))
    assert errors[0] < 2 / np.sqrt(400)
    assert errors[1] < 2 / np.sqrt(40_000)


def test_heavy_tails_keep_their_phases_in_float32():
    X = np.random.default_rng(0).normal(size=(50, 6))
    feature_map = pg.RandomFourier(5000, kernel="laplacian", gamma=3.0, random_state=0).fit(X)
    single = X.astype(np.float32)
    assert np.abs(feature_map.weights_).max() > 1e4
    np.testing.assert_allclose(
        feature_map.transform(single), feature_map.transform(single.astype(float)), atol=2e-9
    )


@given(st.integers(0, 2**31 - 1), st.sampled_from(sorted(PARAMETERS)), st.integers(1, 30))
def test_the_kernel_is_that_of_scikit_learn(seed, kernel, n_components):
    # As many components as columns would make the linear kernel's matrix singular, now and then.
    X = np.random.default_rng(seed).normal(size=(60, 40))
    named = {"kernel": kernel, **PARAMETERS[kernel], "n_components": n_components}
    theirs = SklearnNystroem(**named, random_state=seed).fit(X)
    ours = pg.Nystroem(**named, random_state=seed, tol=1e-12).fit(X)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    np.testing.assert_array_equal(ours.components_, theirs.components_)
    Z, expected = ours.transform(X), theirs.transform(X)
    assert Z.shape == (60, n_components)
    np.testing.assert_allclose(
        Z @ Z.T, expected @ expected.T, rtol=0, atol=1e-10 * (expected**2).sum(axis=1).max()
    )
    single = ours.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-4 * np.abs(Z).max())


@every(kernel=[*PARAMETERS], landmarks=LANDMARKS)
def test_the_kernel_of_landmarks_is_exact(kernel, landmarks):
    X = np.random.default_rng(0).normal(size=(150, 5))
    named = PARAMETERS[kernel]
    ours = pg.Nystroem(
        kernel, **named, n_components=30, landmarks=landmarks, tol=0, random_state=0
    ).fit(X)
    components = ours.components_
    K = pairwise_kernels(X, components, metric=kernel, **named)
    Z = ours.transform(X) @ ours.transform(components).T
    np.testing.assert_allclose(Z, K, atol=1e-9 * np.abs(K).max())
    assert (np.triu(ours.whitening_, 1) == 0).all()
    assert (np.diag(ours.whitening_) > 0).all()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_distances_far_from_the_origin_keep_their_digits(kernel):
    X = np.random.default_rng(0).normal(size=(80, 5))
    far = X + 2.0**20
    near, there = (
        pg.Nystroem(kernel, gamma=0.3, n_components=20, random_state=0).fit_transform(rows)
        for rows in (far - 2.0**20, far)
    )
    np.testing.assert_allclose(there, near, atol=1e-9)


def test_repeated_landmarks_are_dropped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4))[rng.integers(0, 6, 200)]
    exact = rbf_kernel(X, gamma=0.3)
    for landmarks in LANDMARKS:
        ours = pg.Nystroem(gamma=0.3, n_components=50, landmarks=landmarks, random_state=0)
        Z = ours.fit_transform(X)
        assert Z.shape == (200, 6)
        assert len(ours.get_feature_names_out()) == 6
        np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-12)


def test_small_eigenvalues_are_dropped():
    X = np.random.default_rng(0).normal(size=(100, 3))
    for tol in (1e-8, 1e-3, 0.5):
        ours = pg.Nystroem(gamma=0.1, n_components=60, tol=tol, random_state=0).fit(X)
        eigenvalues = np.linalg.eigvalsh(rbf_kernel(ours.components_, gamma=0.1))
        assert ours.whitening_.shape == (60, (eigenvalues > tol).sum())
        norms = np.linalg.norm(ours.whitening_, ord=2)
        np.testing.assert_allclose(norms, eigenvalues[eigenvalues > tol].min() ** -0.5, rtol=1e-6)
    with pytest.raises(
        ValueError, match="no eigenvalue of the landmarks' kernel is above tol=1000"
    ):
        pg.Nystroem(tol=1000, random_state=0).fit(X)


@pytest.mark.parametrize("n_landmarks", [1, 2, 40])
def test_whitening_with_and_without_eigenvectors(n_landmarks, monkeypatch):
    X = np.random.default_rng(0).normal(size=(n_landmarks, 8))
    K = rbf_kernel(X, gamma=0.3)
    smallest = np.linalg.eigvalsh(K)[0]
    for tol, n_features in ((0.0, n_landmarks), (0.99 * smallest, n_landmarks)):
        direct = nystroem._whitening(K, tol)
        with monkeypatch.context() as patch:
            patch.setattr(nystroem, "_is_definite", lambda *_: False)
            expected = nystroem._whitening(K, tol)
        assert direct.shape == expected.shape == (n_landmarks, n_features)
        assert direct.flags.c_contiguous
        np.testing.assert_allclose(direct, expected, atol=1e-10 * np.abs(expected).max())
        np.testing.assert_allclose(direct.T @ K @ direct, np.eye(n_landmarks), atol=1e-11)
    if n_landmarks > 1:
        assert nystroem._whitening(K, 1.01 * smallest).shape == (n_landmarks, n_landmarks - 1)
    assert nystroem._is_definite(K, 0.99 * smallest)
    assert not nystroem._is_definite(K, 1.01 * smallest)
    assert not nystroem._is_definite(-K, 0.0)


def test_all_rows_are_landmarks_where_there_are_fewer():
    X = np.random.default_rng(0).normal(size=(12, 3))
    for landmarks in LANDMARKS:
        Z = pg.Nystroem(gamma=0.5, tol=0, landmarks=landmarks, random_state=0).fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.5), atol=1e-10)


def test_centres_explain_more_than_uniform_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[:1800] *= 0.01
    K = rbf_kernel(X, gamma=0.1)
    left = {}
    for landmarks in LANDMARKS:
        ours = pg.Nystroem(gamma=0.1, n_components=100, landmarks=landmarks, random_state=0)
        Z = ours.fit_transform(X)
        left[landmarks] = np.trace(K) - (Z**2).sum()
    assert left["kmeans"] < 0.5 * left["uniform"]


def test_many_rows_are_clustered_in_batches(set_limits):
    X = np.random.default_rng(0).normal(size=(300, 3))
    set_limits(lloyd_rows=200)
    ours = pg.Nystroem(landmarks="kmeans", n_components=10, random_state=0).fit(X)
    assert ours.components_.shape == (10, 3)
    assert not hasattr(ours, "component_indices_")


@every(dtype=[np.float64, np.float32], feature_map=MAPS)
def test_scores_need_no_whitened_rows(feature_map, dtype):
    X, y, qid = pg.make_ranking(60, (1, 20), 5, random_state=0)
    X = X.astype(dtype)
    for ranker in (pg.RankRLS(0.1), pg.RankSVM(0.1)):
        model = ranker.set_params(feature_map=feature_map).fit(X, y, qid=qid)
        expected = model.feature_map_.transform(X) @ model.coef_
        atol = (1e-9 if dtype == np.float64 else 1e-4) * np.abs(expected).max()
        for rows in (X, sp.csr_array(X), X[:1]):
            scores = model.predict(rows)
            assert scores.dtype == dtype
            np.testing.assert_allclose(scores, expected[: len(scores)], atol=atol)


@every(dtype=[np.float64, np.float32], feature_map=MAPS)
def test_threads_and_containers_do_not_matter(feature_map, dtype):
    X = np.random.default_rng(0).normal(size=(2000, 6)).astype(dtype)

    def transformed():
        fitted = fresh(feature_map).fit(X)
        return fitted.transform(X), fitted.transform(sp.csr_array(X))

    (expected, _), *others = on_threads((1, 2, 5), transformed)
    assert expected.dtype == dtype
    np.testing.assert_array_equal(others, [(expected, expected)] * 2)
    sparse = fresh(feature_map).fit(sp.csr_matrix(X)).transform(X)
    if getattr(feature_map, "landmarks", "") == "kmeans":  # scikit-learn sums in another order
        np.testing.assert_allclose(sparse @ sparse[:99].T, expected @ expected[:99].T, atol=0.05)
    else:
        np.testing.assert_array_equal(sparse, expected)


@pytest.mark.parametrize("feature_map", MAPS, ids=name_of)
@every(pairs=["with_ties", "without_ties", None], dtype=[np.float64, np.float32])
def test_fused_maps_equal_explicit_ones(data, feature_map, pairs, dtype):
    X, y, qid = data
    X = X.astype(dtype)
    H = clone(feature_map).fit(X).transform(X).astype(float)
    fused = pg.RankRLS(0.5, pairs=pairs, feature_map=feature_map).fit(X, y, qid=qid)
    explicit = pg.RankRLS(0.5, pairs=pairs).fit(H, y, qid=qid)
    expected = explicit.predict(H)
    tolerance = (1e-9 if dtype == np.float64 else 2e-3) * np.abs(expected).max()
    np.testing.assert_allclose(fused.predict(X), expected, atol=tolerance)
    named = {"pairs": pairs, "scoring": "pairwise_squared_error"}
    fused = pg.RankRLSCV([1.0, 10.0], **named, feature_map=feature_map).fit(X, y, qid=qid)
    explicit = pg.RankRLSCV([1.0, 10.0], **named).fit(H, y, qid=qid)
    rtol = 1e-8 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(fused.scores_, explicit.scores_, rtol=rtol)


@every(feature_map=MAPS)
def test_leaving_queries_out_equals_refits(data, feature_map):
    X, y, qid = data
    fitted = clone(feature_map).fit(X)
    alphas = np.array([3.0, 0.5])
    ranking = checked_data(X, y, qid=qid)
    ranking = RankingData(ranking.X, ranking.y, ranking.queries, feature_map=fitted)
    total = PairSums.of(ranking, Pairs())
    held_out = leave_query_out(ranking, total.settings, total.decompose(), alphas, lambda: total)
    H = fitted.transform(X)
    for query in np.unique(qid)[:6]:
        test = qid == query
        for scores, alpha in zip(held_out, alphas, strict=True):
            refit = pg.RankRLS(alpha).fit(H[~test], y[~test], qid=qid[~test])
            np.testing.assert_allclose(scores[test], refit.predict(H[test]), atol=1e-8)


@given(
    problems(weights=False),
    st.integers(1, 300),
    st.integers(1, 7),
    st.sampled_from(["product", "manhattan", "tanimoto"]),
    st.booleans(),
    st.sampled_from([np.float64, np.float32]),
)
def test_node_maps(problem, n_nodes, degree, argument, triangular, dtype):
    rng = np.random.default_rng(n_nodes)
    n_features = problem.X.shape[1]
    n_outputs = int(rng.integers(1, n_nodes + 1))
    W = rng.normal(size=(n_features, n_nodes))
    b, c = rng.random(n_nodes), rng.random(n_nodes)
    origin, tail = rng.normal(size=n_features), rng.normal(size=(n_nodes, n_outputs))
    if triangular:
        tail = np.tril(tail)
    middle = n_nodes // 2
    segments = [(0, middle, "linear"), (middle, n_nodes, "tanh")]
    options = {"scale": 0.7, "degree": degree}
    if argument == "tanimoto":
        b, c = (W**2).sum(axis=0), None
    if argument != "product":
        options[argument] = True
    wide = _core.NodeMap64(W, b, c, segments, **options, origin=origin, tail=tail)
    shifted = problem.X.astype(dtype).astype(float) - origin
    if argument == "manhattan":
        nodes = c * np.abs(shifted[:, :, None] - W).sum(axis=1) + b
    elif argument == "tanimoto":
        nodes = shifted @ W
        nodes = nodes / ((shifted**2).sum(axis=1)[:, None] + b - nodes)
    else:
        nodes = shifted @ W + c * (shifted**2).sum(axis=1)[:, None] + b
    nodes = 0.7 * np.hstack([nodes[:, :middle] ** degree, np.tanh(nodes[:, middle:])])
    expected = nodes @ tail
    size = np.abs(nodes) @ np.abs(tail)
    if dtype == np.float64:
        found, atol = wide.map(problem.X, 2), 1e-12 * size.max()
    else:
        rows = problem.X.astype(np.float32)
        found, atol = _core.NodeMap32.in_double(wide).map(rows, 2), 1e-6 * size.max()
        narrow = [None if a is None else a.astype(np.float32) for a in (W, b, c, origin, tail)]
        own = _core.NodeMap32(*narrow[:3], segments, **options, origin=narrow[3], tail=narrow[4])
        np.testing.assert_allclose(own.map(rows, 1), expected, rtol=0, atol=3e-4 * size.max())
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "tanimoto", "minmax"])
def test_features_in_single_precision_lose_little_by_whitening(kernel):
    """Whitening multiplies the errors of rounded kernel values by up to 1000."""
    X = np.random.default_rng(0).random((500, 6)).astype(np.float32)
    gamma = {"rbf": 0.01, "laplacian": 0.001}.get(kernel)
    nystroem = pg.Nystroem(kernel, gamma=gamma, n_components=150, random_state=0).fit(X)
    found, exact = nystroem.transform(X), nystroem.transform(X.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-5)
    rounding = nystroem._rounding(X)
    assert (np.sqrt(((found - exact) ** 2).mean(axis=0)) < rounding).all()


@pytest.mark.parametrize("n_models", [1, 2, 5, 9])
def test_no_model_hides_a_row_that_is_not_finite(n_models):
    rng = np.random.default_rng(0)
    for dtype, node_map in ((np.float64, _core.NodeMap64), (np.float32, _core.NodeMap32)):
        weights, bias = rng.normal(size=(3, 4)).astype(dtype), np.zeros(4, dtype)
        nodes = node_map(weights, bias, None, [(0, 4, "sigmoid")])
        rows = rng.normal(size=(300, 3)).astype(dtype)
        rows[[2, 280], 1] = np.inf, np.nan
        scores = nodes.score(rows, rng.normal(size=(n_models, 4)), 2)
        assert np.flatnonzero(np.isnan(scores).any(axis=0)).tolist() == [2, 280]
        assert np.isnan(scores[:, [2, 280]]).all()


def test_statistics_of_one_kernel_map_merge(data, tmp_path):
    X, y, qid = data
    half = qid < 12
    for feature_map in MAPS:
        fitted = clone(feature_map).fit(X)
        a, b = (
            pg.Pairgram.from_rows(X[rows], y[rows], qid=qid[rows], feature_map=fitted)
            for rows in (half, ~half)
        )
        a.save(tmp_path / "part")
        whole = pg.Pairgram.from_rows(fitted.transform(X), y, qid=qid)
        merged = pg.Pairgram.load(tmp_path / "part") + b
        np.testing.assert_allclose(merged.G, whole.G, rtol=1e-8, atol=1e-9 * np.abs(whole.G).max())
        other = fresh(feature_map, random_state=1).fit(X)
        if fitted.kernel == "linear":  # one more parameter that tells maps apart
            other = fresh(feature_map, n_components=3, random_state=1).fit(X)
        with pytest.raises(ValueError, match="cannot merge statistics of different"):
            a + pg.Pairgram.from_rows(X, y, qid=qid, feature_map=other)


def test_settings_changed_after_fit_do_not_reach_the_features(data, tmp_path):
    X, y, qid = data
    for feature_map, changes in (
        (pg.RandomFourier(20, random_state=0), {"kernel": "laplacian", "gamma": 9.0}),
        (pg.Nystroem(n_components=20, random_state=0), {"kernel": "laplacian", "gamma": 9.0}),
        (Kernel("rbf", gamma=0.5), {"kernel": "laplacian", "gamma": 9.0}),
    ):
        model = pg.RankRLS(feature_map=feature_map).fit(X, y, qid=qid)
        before = model.predict(X)
        model.feature_map_.set_params(**changes)
        np.testing.assert_array_equal(model.predict(X), before)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(pg.load_model(tmp_path / "model").predict(X), before)


@every(dtype=[np.float64, np.float32], feature_map=MAPS)
def test_rounding_of_equal_rows_is_not_scaled_up(feature_map, dtype):
    rng = np.random.default_rng(0)
    sizes = [9, 11, 100, 50, 6001]
    X = np.repeat(rng.random((5, 7)), sizes, axis=0).astype(dtype)
    y, qid = rng.normal(size=len(X)), np.repeat(np.arange(5), sizes)
    total = pg.Pairgram.from_rows(X, y, qid=qid, feature_map=feature_map)
    assert np.abs(total.solve(1.0, scale=True)).max() < 1e-6


def test_whitened_rounding_of_equal_rows_is_not_scaled_up():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sizes = [6001, 4001]
        X = np.repeat(rng.random((2, 46)), sizes, axis=0)
        y, qid = rng.normal(size=len(X)), np.repeat([0, 1], sizes)
        fitted = pg.Nystroem(n_components=300, tol=1e-12, gamma=0.05, random_state=0)
        total = pg.Pairgram.from_rows(X, y, qid=qid, feature_map=fitted.fit(rng.random((400, 46))))
        assert np.abs(total.solve(1.0, scale=True)).max() < 1e-6


def test_a_function_of_rows_goes_by_its_matrix_or_by_scikit_learn(data):
    X, y, qid = data

    named = pg.RankRLS(feature_map=pg.Kernel("rbf", gamma=0.3)).fit(X, y, qid=qid)
    given = pg.RankRLS(feature_map=pg.Kernel("precomputed"))
    given.fit(rbf_kernel(X, gamma=0.3), y, qid=qid)
    scores = given.predict(rbf_kernel(X[:9], X, gamma=0.3))
    np.testing.assert_allclose(scores, named.predict(X[:9]), atol=1e-9)

    def of_two_rows(x, z):
        return np.exp(-0.3 * ((x - z) ** 2).sum())

    ours = pg.Nystroem(gamma=0.3, n_components=20, random_state=0)
    theirs = SklearnNystroem(of_two_rows, n_components=20, random_state=0)
    expected = pg.RankRLS(feature_map=ours).fit(X, y, qid=qid).predict(X)
    scores = pg.RankRLS(feature_map=theirs).fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(scores, expected, atol=1e-7)
