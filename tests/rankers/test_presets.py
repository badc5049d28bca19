"""MPRank and LSSVR against their explicit systems, and as what they are of RankRLS."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from pairgram import LSSVR, MPRank, RankRLS, kernel_matrix, load_model, make_ranking
from problems import problems

KERNELS = ["linear", "rbf", "precomputed"]


def drawn(problem):
    """Rows, labels and weights, of which two or more are not 0."""
    n = len(problem.y)
    v = np.ones(n) if problem.v is None else problem.v
    assume((v > 0).sum() >= 2)
    return problem.X, problem.y, v


def inputs_and_kernel(X, kernel):
    """What `fit` takes, and the kernel matrix."""
    K = kernel_matrix(X, kernel="rbf" if kernel == "precomputed" else kernel)
    return (K if kernel == "precomputed" else X), K


@given(problem=problems(), kernel=st.sampled_from(KERNELS), C=st.sampled_from([0.01, 1.0, 30.0]))
def test_lssvr_solves_its_system(problem, kernel, C):
    """``[[0, 1ᵀ], [1, K + diag(1 / (C v))]] [b, a] = [0, y]`` over rows of weight > 0."""
    X, y, v = drawn(problem)
    given_X, K = inputs_and_kernel(X, kernel)
    model = LSSVR(C, kernel=kernel).fit(given_X, y, sample_weight=v)
    seen = v > 0
    n = seen.sum()
    system = np.zeros((n + 1, n + 1))
    system[0, 1:] = system[1:, 0] = 1
    system[1:, 1:] = K[np.ix_(seen, seen)] + np.diag(1 / (C * v[seen]))
    b, *a = np.linalg.solve(system, np.append(0.0, y[seen]))
    size = max(1.0, np.abs(y).max())
    np.testing.assert_allclose(model.intercept_, b, atol=1e-8 * size)
    np.testing.assert_allclose(model.predict(given_X), K[:, seen] @ a + b, atol=1e-8 * size)


@given(problem=problems(), kernel=st.sampled_from(KERNELS), C=st.sampled_from([1e-4, 0.01, 1.0]))
def test_mprank_minimises_its_objective(problem, kernel, C):
    """Least squares on the explicit differences of all ordered pairs."""
    X, y, v = drawn(problem)
    given_X, K = inputs_and_kernel(X, kernel)
    model = MPRank(C, kernel=kernel).fit(given_X, y, sample_weight=v)
    i, j = (part.ravel() for part in np.indices((len(y), len(y))))
    weights = C * v[i] * v[j]
    values, vectors = np.linalg.eigh(K)
    H = vectors * np.sqrt(np.maximum(values, 0.0))
    D, d = H[i] - H[j], y[i] - y[j]
    w = np.linalg.solve(D.T @ (weights[:, None] * D) + np.eye(len(y)), D.T @ (weights * d))
    scores, expected = model.predict(given_X), H @ w
    size = max(1.0, np.abs(y).max())
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-8 * size)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_they_are_presets_of_rank_rls(kernel):
    X, y, qid = make_ranking(6, (2, 9), 4, random_state=0)
    named = {"kernel": kernel, "gamma": 0.3, "scope": "global"}
    expected = RankRLS(1 / 6.0, **named).fit(X, y, qid=qid)
    model = MPRank(3.0, kernel=kernel, gamma=0.3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.uses_qid_
    expected = RankRLS(1 / 3.0, weighting="documents", **named).fit(X, y)
    model = LSSVR(3.0, kernel=kernel, gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_allclose(model.predict(X) - expected.predict(X), model.intercept_)
    assert model.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("model", [MPRank(2.0), LSSVR(2.0), LSSVR(0.5, kernel="rbf", gamma=0.2)])
def test_files(tmp_path, model):
    X, y, _ = make_ranking(6, (2, 9), 4, random_state=0)
    model.fit(X, y).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("C", [0, -1.0, 1e-310, np.inf, np.nan, "1", True])
@pytest.mark.parametrize("preset", [MPRank, LSSVR])
def test_wrong_C(preset, C):
    X, y, _ = make_ranking(3, 5, 2, random_state=0)
    with pytest.raises(ValueError, match=r"C must be a finite number > 0, got"):
        preset(C).fit(X, y)
    with pytest.raises(ValueError, match="query_weight must be None: all rows form pairs"):
        preset().fit(X, y, query_weight=np.ones(len(y)))
