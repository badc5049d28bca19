"""Linear nodes: their problem is solved in the inputs, and is that of the hidden values."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

from axes import every
from pairgram import Pairgram, Pairs, QueryKFold, RandomNodes, RankRLS, RankRLSCV, load_model
from problems import problems

NODES = st.sampled_from([1, 2, 4, 5, 7, 40])


def close(a, b, tolerance=1e-8):
    scale = max(1.0, abs(np.asarray(b)).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


@st.composite
def drawn_nodes(draw):
    """Nodes of full rank, of rank 1 (equal weights), with and without offsets."""
    weights = draw(st.sampled_from([(-1.0, 1.0), (0.5, 0.5)]))
    bias = draw(st.sampled_from([(0.0, 1.0), (0.0, 0.0), (-3.0, 3.0)]))
    return RandomNodes(
        draw(NODES), "linear", weight_range=weights, bias_range=bias, random_state=draw(NODES)
    )


@given(
    problems(min_queries=2),
    drawn_nodes(),
    st.sampled_from(["with_ties", "without_ties", "gain_difference", None]),
    st.sampled_from(["query", "global"]),
    st.booleans(),
)
def test_nodes_give_what_their_values_give(problem, nodes, pairs, scope, sparse):
    weighted = problem.query_weight is not None and scope == "query"
    if (problem.v is not None and not problem.v.any()) or (
        weighted and not problem.query_weight.any()
    ):
        return
    arguments = {"qid": problem.query, "sample_weight": problem.v}
    if weighted:
        arguments["query_weight"] = problem.query_weight
    X = scipy.sparse.csr_array(problem.X) if sparse else problem.X
    H = nodes.fit_transform(problem.X)
    try:
        explicit = RankRLS(0.5, pairs=Pairs(pairs, scope=scope)).fit(H, problem.y, **arguments)
    except ValueError as error:
        with pytest.raises(ValueError, match="no pair of rows counts"):
            RankRLS(0.5, pairs=Pairs(pairs, scope=scope), feature_map=nodes).fit(
                X, problem.y, **arguments
            )
        assert "no pair of rows counts" in str(error)
        return
    model = RankRLS(0.5, pairs=Pairs(pairs, scope=scope), feature_map=nodes)
    model.fit(X, problem.y, **arguments)
    close(model.predict(X), explicit.predict(H))
    close(model.coef_, explicit.coef_)


@every(pairs=["with_ties", "without_ties", None], n_nodes=[3, 6, 50], cv=[None, QueryKFold(3)])
def test_held_out_scores_are_those_of_the_values(pairs, n_nodes, cv):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6)), rng.integers(0, 3, 60)
    qid = np.repeat(np.arange(12), 5)
    nodes = RandomNodes(n_nodes, "linear", random_state=1)
    H = nodes.fit_transform(X)
    options = {
        "alphas": [0.01, 1.0, 100.0],
        "pairs": pairs,
        "cv": cv,
        "scoring": "pairwise_squared_error",
    }
    ours = RankRLSCV(**options, feature_map=nodes).fit(X, y, qid=qid)
    theirs = RankRLSCV(**options).fit(H, y, qid=qid)
    close(ours.scores_, theirs.scores_)
    close(ours.coef_path_, theirs.coef_path_)
    options["cv"] = None if cv is None else 3
    one = RankRLSCV(**options, feature_map=nodes).fit(X[:30], y[:30])  # rows of one query
    close(one.scores_, RankRLSCV(**options).fit(H[:30], y[:30]).scores_)


@pytest.mark.parametrize("pairs", ["with_ties", None])
def test_validation_sets_and_scaling(pairs):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    qid = np.repeat(np.arange(12), 5)
    nodes = RandomNodes(9, "linear", random_state=1)
    H = nodes.fit_transform(X)
    for scale in (False, True):
        options = {
            "alphas": [1.0, 10.0],
            "pairs": pairs,
            "scale": scale,
            "scoring": "pairwise_squared_error",
        }
        ours, theirs = RankRLSCV(**options, feature_map=nodes), RankRLSCV(**options)
        ours.fit(X[20:], y[20:], qid=qid[20:], validation=(X[:20], y[:20], qid[:20]))
        theirs.fit(H[20:], y[20:], qid=qid[20:], validation=(H[:20], y[:20], qid[:20]))
        close(ours.scores_, theirs.scores_)
        close(ours.predict(X), theirs.predict(H))


def test_many_nodes_cost_no_matrix_of_theirs(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    nodes = RandomNodes(100_000, "linear", random_state=0)  # 75 GiB as a Gram matrix
    model = RankRLS(1e5, feature_map=nodes).fit(X, y)
    A = nodes.fit(X).weights_
    K = (X - X.mean(0)) @ A @ A.T @ (X - X.mean(0)).T * 200
    fit = K @ np.linalg.solve(K + 1e5 * np.eye(200), y - y.mean())
    scores = model.predict(X)
    close(scores - scores.mean(), fit)
    model.save(tmp_path / "model")
    assert (load_model(tmp_path / "model").predict(X) == scores).all()


@every(pairs=["with_ties", "without_ties", None], scope=["query", "global"])
def test_statistics_of_linear_nodes_are_those_of_their_values(pairs, scope):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(40, 6)), rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
    for n_nodes in (2, 6, 20):
        nodes = RandomNodes(n_nodes, "linear", bias_range=(-1, 1), random_state=0)
        H = nodes.fit_transform(X)
        ours = Pairgram.from_rows(X, y, qid=qid, pairs=Pairs(pairs, scope=scope), feature_map=nodes)
        theirs = Pairgram.from_rows(H, y, qid=qid, pairs=Pairs(pairs, scope=scope))
        close(ours.G, theirs.G, 1e-12)
        close(ours.g, theirs.g, 1e-12)
        close(ours.yy, theirs.yy, 1e-12)


def test_ill_conditioned_nodes_are_mapped():
    """Weights that nearly repeat each other: too much is lost on the Gram matrix."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    nodes = RandomNodes(5, "linear", weight_range=(1.0, 1.0 + 1e-5), random_state=0)
    H = nodes.fit_transform(X)
    for pairs in ("with_ties", None):
        model = RankRLS(1e-9, pairs=pairs, feature_map=nodes).fit(X, y)
        theirs = RankRLS(1e-9, pairs=pairs).fit(H, y)
        a, b = model.predict(X), theirs.predict(H)
        close(a - a.mean(), b - b.mean(), 1e-4)


def test_nodes_without_weights():
    X, y = np.eye(3), np.arange(3.0)
    nodes = RandomNodes(5, "linear", weight_range=(0.0, 0.0), random_state=0)
    assert (RankRLS(feature_map=nodes).fit(X, y).predict(X) == 0).all()
    constant = RankRLS(1e-9, pairs=None, feature_map=nodes).fit(X, y)
    np.testing.assert_allclose(constant.predict(X), 1.0, atol=1e-6)
