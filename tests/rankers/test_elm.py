"""PointwiseELM and PairwiseELM: the papers' systems, in both forms, with nodes and kernels."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.preprocessing import FunctionTransformer

import forms
import pairgram as pg
from axes import drawn
from problems import problems
from reference import laplacian

ACTIVATIONS = ["linear", "sigmoid", "gaussian"]


def close(a, b, tolerance=1e-8):
    scale = max(1.0, abs(np.asarray(b)).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


def within_queries(scores, query):
    """Scores from the mean of their query: an offset of all rows changes no pair."""
    means = np.bincount(query, scores) / np.maximum(np.bincount(query), 1)
    return scores - means[query]


def machine(pairs, *args, **options):
    if pairs is None:
        return forms.PointwiseELM(*args, **options)
    return forms.PairwiseELM(*args, pairs=pairs, **options)


def search(pairs, *args, **options):
    if pairs is None:
        return forms.PointwiseELMCV(*args, **options)
    return forms.PairwiseELMCV(*args, pairs=pairs, **options)


def bias_for(activation):
    return (0.5, 1.0) if activation == "gaussian" else (-1.0, 1.0)


def kernel_of(name, X, Z, gamma):
    if name == "linear":
        return X @ Z.T
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


@given(
    problems(min_queries=1),
    st.sampled_from([None, "with_ties", "without_ties", "gain_difference"]),
    st.sampled_from(ACTIVATIONS),
    st.sampled_from([2, 9, 200]),
    st.sampled_from(["smaller", "primal", "dual"]),
)
def test_nodes_solve_the_systems_of_the_paper(problem, pairs, activation, n_nodes, form):
    """Eq. 4 and 15, with the Laplacian as a matrix and H explicit, whatever the form."""
    nodes = {"n_nodes": n_nodes, "activation": activation, "bias_range": bias_for(activation)}
    v = problem.v
    L, _ = laplacian(problem.y, problem.query, pairs, v, query_weight=problem.query_weight)
    if not L.any():
        return
    own = pg.RandomNodes(random_state=3, **nodes)
    model = machine(pairs, 2.0, form=form, feature_map=own)
    model.fit(problem.X, problem.y, **problem.named)
    H = own.fit_transform(problem.X)
    beta = np.linalg.solve(np.eye(n_nodes) / 2 + H.T @ L @ H, H.T @ L @ problem.y)
    close(model.predict(problem.X), H @ beta)
    close(model.coef_, beta)
    assert model.form_ in ("primal", "dual")
    assert form in ("smaller", model.form_)


@given(
    problems(min_queries=1),
    st.sampled_from([None, "with_ties", "without_ties"]),
    st.sampled_from(["linear", "rbf", "precomputed"]),
)
def test_kernels_solve_the_systems_of_the_paper(problem, pairs, kernel):
    """Eq. 9 and 16: K (I/C + LK)⁻¹ L y."""
    X, gamma = problem.X, 0.7
    L, _ = laplacian(problem.y, problem.query, pairs, problem.v)
    if not L.any():
        return
    name = kernel if kernel == "linear" else "rbf"
    K = kernel_of(name, X, X, gamma)
    options = {"feature_map": pg.Kernel(kernel, gamma=gamma)}
    model = machine(pairs, 3.0, **options)
    rows = K if kernel == "precomputed" else X
    model.fit(rows, problem.y, qid=problem.query, sample_weight=problem.v)
    a = np.linalg.solve(np.eye(len(K)) / 3 + L @ K, L @ problem.y)
    close(model.predict(rows), K @ a)
    other = X[:5] + 0.25
    K_other = kernel_of(name, other, X, gamma)
    close(model.predict(K_other if kernel == "precomputed" else other), K_other @ a)


@pytest.mark.parametrize(
    "options",
    [
        {"feature_map": pg.Kernel("linear")},
        {"feature_map": pg.Kernel("linear"), "form": "dual"},
        {"feature_map": pg.Kernel("rbf")},
        {"n_nodes": 7, "activation": "sigmoid"},
        {"n_nodes": 7, "activation": "sigmoid", "form": "dual"},
        {"n_nodes": 200, "activation": "sigmoid"},
        {"n_nodes": 200},
        {"n_nodes": 200, "form": "dual"},
    ],
    ids=str,
)
@drawn(3, pairs=[None, "with_ties", "without_ties"], cv=["queries", "folds", "validation"])
def test_searches_score_what_refits_score(pairs, options, cv):
    """Every C, held out by leave-query-out, folds of queries and a validation set."""
    X, y, qid = pg.make_ranking(8, 5, n_features=4, random_state=0)
    Cs = [1e-3, 1.0, 30.0]
    numbers = np.unique(qid, return_inverse=True)[1]
    folds = {"queries": numbers, "folds": numbers % 3, "validation": (numbers >= 6).astype(int)}[cv]
    if cv == "folds":
        splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    else:
        splits = None
    train = folds == 0 if cv == "validation" else np.ones(len(y), dtype=bool)
    held = (X[~train], y[~train], qid[~train]) if cv == "validation" else None
    model = search(
        pairs, Cs, cv=splits, scoring="pairwise_squared_error", random_state=1, **options
    )
    model.fit(X[train], y[train], qid=qid[train], validation=held)
    expected = []
    for C in Cs:
        scores = np.zeros(len(y))
        held_out = [1] if cv == "validation" else range(folds.max() + 1)
        for f in held_out:
            test = folds == f
            one = machine(pairs, C, random_state=1, **options)
            scores[test] = one.fit(X[~test], y[~test], qid=qid[~test]).predict(X[test])
        kept = ~train if cv == "validation" else train
        expected.append(model.scoring_(y[kept], scores[kept], qid[kept]))
    close(model.scores_, expected)
    assert model.Cs_.tolist() == Cs
    best = machine(pairs, model.C_, random_state=1, **options)
    best.fit(X[train], y[train], qid=qid[train])
    close(within_queries(model.predict(X), numbers), within_queries(best.predict(X), numbers), 1e-7)
    assert model.form_ == best.form_


def test_leave_one_row_out_in_the_dual():
    """One query: rows are held out in turn, each from the mean of the others."""
    X, y, _ = pg.make_ranking(1, 15, n_features=3, random_state=0)
    for options in ({"feature_map": pg.Kernel("rbf")}, {"n_nodes": 60, "activation": "tanh"}):
        for form in ("smaller", "dual"):
            model = forms.PairwiseELMCV([0.1, 10.0], random_state=0, form=form, **options).fit(X, y)
            expected = []
            for C in model.Cs_:
                scores = np.empty(15)
                for i in range(15):
                    rest = np.arange(15) != i
                    one = forms.PairwiseELM(C, random_state=0, **options).fit(X[rest], y[rest])
                    origin = one.predict(X[rest]).mean()
                    scores[i] = one.predict(X[i : i + 1])[0] - origin
                expected.append(model.scoring_(y, scores))
            close(model.scores_, expected)


def test_the_smaller_system_is_solved():
    X, y, qid = pg.make_ranking(4, 10, n_features=5, random_state=0)
    ways = {
        "rows": pg.PairwiseELM(n_nodes=100, activation="relu"),
        "nodes": pg.PairwiseELM(n_nodes=20, activation="relu"),
        "inputs": pg.PairwiseELM(n_nodes=100_000),
        "linear": pg.PointwiseELM(feature_map=pg.Kernel("linear")),
        "kernel": pg.PointwiseELM(feature_map=pg.Kernel("rbf")),
    }
    found = {name: model.fit(X, y, qid=qid).form_ for name, model in ways.items()}
    assert found == {
        "rows": "dual",
        "nodes": "primal",
        "inputs": "primal",
        "linear": "primal",
        "kernel": "dual",
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_offsets_of_queries_do_no_harm_in_the_dual(weighted):
    X, y, qid = pg.make_ranking(6, 10, n_features=100, random_state=0)
    number = np.unique(qid, return_inverse=True)[1]
    v = np.ones(len(y))
    if weighted:
        v[::7] = 0
    options = {"feature_map": pg.Kernel("linear"), "form": "dual"}
    near = forms.PairwiseELM(1e-2, **options).fit(X, y, qid=qid, sample_weight=v)
    shift = 2.0 ** np.arange(10, 16)[number][:, None]
    far = X + shift
    far[v == 0] += 2.0**30  # rows that do not count
    close(
        forms.PairwiseELM(1e-2, **options).fit(far, y, qid=qid, sample_weight=v).coef_, near.coef_
    )
    assert pg.RankRLS(1e2).fit(far, y, qid=qid, sample_weight=v).form_ == "dual"


def test_a_large_ridge_does_not_order_left_out_rows_backwards():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 10)), rng.normal(size=60)
    for model in (
        pg.PairwiseELMCV(feature_map=pg.Kernel("rbf")),
        pg.PairwiseELMCV(feature_map=pg.Kernel("linear")),
        pg.RankRLSCV([1e12]),
    ):
        assert 0.3 < model.fit(X, y).scores_[0] < 0.7


def test_a_search_reports_the_C_that_was_given():
    X, y, qid = pg.make_ranking(10, 8, random_state=0)
    Cs = [3.0, 49.0, 0.3]  # the inverse of the inverse of 49 is another number
    model = pg.PairwiseELMCV(Cs).fit(X, y, qid=qid)
    assert model.Cs_.tolist() == model.cv_results_["param_C"].tolist() == Cs
    assert model.cv_results_["params"] == [{"C": C, "pairs": "with_ties"} for C in Cs]
    assert model.C_ in Cs
    assert pg.PointwiseELMCV(Cs).fit(X, y, qid=qid).cv_results_["params"] == [{"C": C} for C in Cs]


def test_the_dual_leaves_the_data_alone():
    X, y, qid = pg.make_ranking(3, 4, n_features=30, random_state=0)
    before = X.copy()
    for feature_map in (None, FunctionTransformer()):  # which returns X itself
        pg.RankRLS(feature_map=feature_map).fit(X, y, qid=qid)
        assert (before == X).all()
