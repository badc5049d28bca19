"""ELMRank against eq. 4-8 of Chen et al. 2014 in dense matrices, and its choice against refits."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

import pairgram as pg
from parts.solvers import RidgePath
from reference import laplacian

GRID = {"alphas": [1e-4, 1e-1, 1.0], "Cs": [2.0, 2.0**10]}


def problem(seed=0, n=40, n_features=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, n_features))
    return X, np.round(X @ rng.normal(size=n_features) + 0.1 * rng.normal(size=n), 1)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(("alpha", "C"), [(1e-3, 1024.0), (1.0, 2.0), (1e-5, 2.0**25), (0.0, 50.0)])
def test_the_equations_of_the_paper(alpha, C):
    X, y = problem()
    model = pg.ELMRank(alpha, C, n_nodes=7, random_state=3).fit(X, y)
    nodes = model.feature_map_
    H = sigmoid(X @ nodes.weights_ + nodes.bias_)
    m, n = H.shape
    A, B = 2 / m * H.T @ H + alpha * np.eye(n), 2 / m * H.T @ y
    for i in range(m):
        Hi, Yi = np.tile(H[i], (m, 1)), np.full(m, y[i])
        A -= (Hi.T @ H + H.T @ Hi) / m**2
        B -= (Hi.T @ y + H.T @ Yi) / m**2
    beta = np.linalg.solve(A.T @ A + np.eye(n) / C, A.T @ B)
    np.testing.assert_allclose(model.coef_, beta, rtol=1e-7, atol=1e-8 * abs(beta).max())


def test_without_the_second_regulariser_it_is_the_minimiser():
    X, y = problem(n=12)
    model = pg.ELMRank(0.1, 1e30, n_nodes=4, random_state=0).fit(X, y)
    H = model.feature_map_.transform(X)

    def objective(beta):
        f = H @ beta
        differences = (y[:, None] - y) - (f[:, None] - f)
        return (differences**2).mean() + 0.1 * beta @ beta

    best = objective(model.coef_)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert objective(model.coef_ + 1e-3 * rng.normal(size=4)) > best


@given(
    seed=st.integers(0, 2**32 - 1),
    pairs=st.sampled_from(["with_ties", "without_ties", "gain_difference", "label_difference"]),
    scope=st.sampled_from(["global", "query"]),
    weighted=st.booleans(),
)
@settings(max_examples=25)
def test_any_pairs(seed, pairs, scope, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    X = rng.uniform(size=(n, 3))
    y = rng.integers(0, 4, n).astype(float)
    y[:3] = 0, 1, 1
    qid = np.concatenate(([7, 7, 7], rng.integers(5, 8, n - 3)))
    v = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
    model = pg.ELMRank(0.01, 64.0, n_nodes=6, pairs=pg.Pairs(pairs, scope=scope), random_state=seed)
    model.fit(X, y, qid=qid, sample_weight=v)
    H = model.feature_map_.transform(X)
    L, N = laplacian(y, np.zeros(n) if scope == "global" else qid, pairs, v)
    A, B = 2 / N * H.T @ L @ H + 0.01 * np.eye(6), 2 / N * H.T @ L @ y
    beta = np.linalg.solve(A @ A + np.eye(6) / 64, A @ B)
    np.testing.assert_allclose(model.coef_, beta, rtol=1e-7, atol=1e-9)


def test_damped_ridge():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(6, 4))
    G, g = E.T @ E, E.T @ rng.normal(size=6)
    alphas, damping = np.array([3.0, 0.1, 0.1]), np.array([0.5, 0.0, 1e200])
    coefs = RidgePath.of(G.copy(), g).coef(alphas, damping)
    for coef, alpha, delta in zip(coefs[:2], alphas, damping, strict=False):
        A = G + alpha * np.eye(4)
        expected = np.linalg.solve(A @ A + delta**2 * np.eye(4), A @ g)
        np.testing.assert_allclose(coef, expected, rtol=1e-10)
    assert (coefs[2] == 0).all()


def test_draws_are_averaged_and_have_seeds_of_their_own():
    X, y = problem()
    model = pg.ELMRank(n_nodes=6, n_estimators=3, random_state=5).fit(X, y)
    nodes = model.feature_map_
    scores = []
    for draw in range(3):
        part = slice(6 * draw, 6 * draw + 6)
        H = sigmoid(X @ nodes.weights_[:, part] + nodes.bias_[part])
        L, N = laplacian(y, np.zeros(len(y)), "with_ties")
        A, B = 2 / N * H.T @ L @ H + 1e-3 * np.eye(6), 2 / N * H.T @ L @ y
        scores.append(H @ np.linalg.solve(A @ A + np.eye(6) / 1024, A @ B))
    np.testing.assert_allclose(model.predict(X), np.mean(scores, axis=0), rtol=1e-9)
    assert len(np.unique(nodes.weights_)) == nodes.weights_.size
    again = pg.ELMRank(n_nodes=6, n_estimators=3, random_state=5).fit(X, y)
    assert (again.coef_ == model.coef_).all()
    first = pg.ELMRank(n_nodes=6, random_state=5).fit(X, y)
    assert (first.feature_map_.weights_ == nodes.weights_[:, :6]).all()


def by_refits(model, X, y, splits, metric, qid=None, v=None):
    """Mean held-out metric over the grid, (n_alphas, n_Cs), by a fit for each of them."""
    values = np.empty((len(model.alphas_), len(model.Cs_)))
    names = {"pairs", "n_nodes", "n_estimators", "random_state"}
    shared = {name: getattr(model, name) for name in names}
    for i, alpha in enumerate(model.alphas_):
        for j, C in enumerate(model.Cs_):
            found, weights = [], []
            for train, test in splits:
                ids, w = (None if a is None else a[train] for a in (qid, v))
                fold = pg.ELMRank(alpha, C, **shared).fit(
                    X[train], y[train], qid=ids, sample_weight=w
                )
                groups = [test] if qid is None else [test[qid[test] == q] for q in set(qid[test])]
                for rows in groups:
                    found.append(pg.evaluate([metric], y[rows], fold.predict(X[rows]))[metric])
                    weights.append(1.0 if v is None else v[rows].mean())
            known = ~np.isnan(found)
            values[i, j] = np.average(np.array(found)[known], weights=np.array(weights)[known])
    return values


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", "label_difference"])
@pytest.mark.parametrize("n_estimators", [1, 3])
def test_held_out_scores_of_rows_are_those_of_refits(pairs, n_estimators):
    X, y = problem(n=24)
    model = pg.ELMRankCV(
        **GRID,
        cv=4,
        pairs=pg.Pairs(pairs, scope="global"),
        n_nodes=6,
        n_estimators=n_estimators,
        random_state=1,
    ).fit(X, y)
    expected = by_refits(
        model, X, y, list(KFold(4, shuffle=True, random_state=0).split(X)), "pairwise_squared_error"
    )
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-8)
    assert model.best_score_ == model.scores_.min()


@pytest.mark.parametrize("scope", ["global", "query"])
@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
def test_held_out_scores_of_queries_are_those_of_refits(scope, pairs):
    X, y, qid = pg.make_ranking(8, 6, n_features=3, random_state=0)
    v = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    model = pg.ELMRankCV(
        **GRID,
        cv=4,
        pairs=pg.Pairs(pairs, scope=scope),
        n_nodes=5,
        scoring="ndcg@3",
        random_state=1,
    ).fit(X, y, qid=qid, sample_weight=v)
    splits = list(pg.QueryKFold(4).split(X, qid=qid))
    expected = by_refits(model, X, y, splits, "ndcg@3", qid, v)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-8)
    assert model.best_score_ == model.scores_.max()


def test_splits_that_are_no_partition():
    X, y = problem(n=30)
    cv = ShuffleSplit(3, test_size=0.3, random_state=0)
    model = pg.ELMRankCV(**GRID, cv=cv, n_nodes=6, random_state=1).fit(X, y)
    expected = by_refits(model, X, y, list(cv.split(X)), "pairwise_squared_error")
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-8)


def test_a_validation_set():
    X, y = problem(n=40)
    Xv, yv = problem(seed=1, n=20)
    model = pg.ELMRankCV(**GRID, n_nodes=6, n_estimators=2, random_state=1)
    model.fit(X, y, validation=(Xv, yv))
    for i, alpha in enumerate(model.alphas_):
        for j, C in enumerate(model.Cs_):
            one = pg.ELMRank(alpha, C, n_nodes=6, n_estimators=2, random_state=1).fit(X, y)
            expected = pg.get_metric("pairwise_squared_error")(yv, one.predict(Xv))
            np.testing.assert_allclose(model.scores_[i, j], expected, rtol=1e-8)
    assert not any(name.startswith("split") for name in model.cv_results_)


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_offsets_are_subtracted(n_estimators):
    X, y = problem(n=40)
    Xv, yv = problem(seed=1, n=20)
    offset, held = X @ np.arange(5.0), Xv @ np.arange(5.0)
    named = {"n_nodes": 6, "n_estimators": n_estimators, "random_state": 1}
    model = pg.ELMRank(0.1, 8.0, **named).fit(X, y, offset=offset)
    expected = pg.ELMRank(0.1, 8.0, **named).fit(X, y - offset)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    validation = (Xv, yv, None, held)
    search = pg.ELMRankCV(**GRID, **named, scoring="pairwise_squared_error")
    search.fit(X, y, offset=offset, validation=validation)
    np.testing.assert_allclose(search.held_out_, search.predict(Xv) + held, rtol=1e-8)
    folds = list(KFold(4).split(X))
    search = pg.ELMRankCV([0.1], [8.0], **named, cv=folds, scoring="pairwise_squared_error")
    search.fit(X, y, offset=offset)
    for train, test in folds:
        one = pg.ELMRank(0.1, 8.0, **named).fit(X[train], (y - offset)[train])
        found = search.held_out_[test] - offset[test] - one.predict(X[test])
        np.testing.assert_allclose(found, found.mean(), atol=1e-8)  # up to a constant


def test_the_choice_and_its_refit():
    X, y = problem()
    maps = [pg.RandomNodes(8, weight_range=(-r, r)) for r in (1, 0.3, 0.1)]
    named = {"n_estimators": 2, "random_state": 0}
    model = pg.ELMRankCV(feature_map=maps, cv=4, **named).fit(X, y)
    assert model.scores_.shape == (7, 25)
    results = model.cv_results_
    assert {len(column) for column in results.values()} == {3 * 7 * 25}
    best = int(np.argmin(results["mean_test_score"]))
    assert results["rank_test_score"][best] == 1
    assert model.best_score_ == results["mean_test_score"][best] == model.scores_.min()
    assert model.alpha_ == results["param_alpha"][best]
    assert results["param_C"][best] == model.C_
    chosen = results["param_feature_map"][best]
    at = list(model.alphas_).index(model.alpha_), list(model.Cs_).index(model.C_)
    assert model.scores_[at] == model.best_score_
    for nodes in maps:
        scores = pg.ELMRankCV(feature_map=nodes, cv=4, **named).fit(X, y).scores_.ravel()
        here = [str(own) == str(nodes) for own in results["param_feature_map"]]
        assert (results["mean_test_score"][here] == scores).all()
    refit = pg.ELMRank(model.alpha_, model.C_, feature_map=chosen, **named).fit(X, y)
    assert (model.coef_ == refit.coef_).all()


def test_ties_go_to_the_largest_alpha_and_the_smallest_c():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    y = np.arange(12.0)
    maps = [pg.RandomNodes(3, weight_range=(-r, r), bias_range=(-r, r)) for r in (0, 1e-300)]
    model = pg.ELMRankCV(feature_map=maps, cv=3, scoring="misranking").fit(X, y)
    # Every score is tied: all settings misrank half of the pairs.
    assert len(set(model.cv_results_["mean_test_score"])) == 1
    assert (model.feature_map_.weight_range, model.alpha_, model.C_) == ((0, 0), 10.0, 2.0)


def test_nodes_have_the_ranges_of_the_paper_or_those_of_the_given_nodes():
    X, y = problem()

    def biases(**named):
        return pg.ELMRank(random_state=0, **named).fit(X, y).feature_map_.bias_

    assert -1 <= biases().min() < -0.8 and 0.8 < biases().max() <= 1
    assert 0 < biases(activation="gaussian").min() < biases(activation="gaussian").max() <= 1
    own = biases(feature_map=pg.RandomNodes(50, "gaussian", bias_range=(5, 6)))
    assert len(own) == 50 and 5 <= own.min() < own.max() <= 6
    scaled = make_pipeline(pg.Standard(), pg.RandomNodes(50, "tanh", bias_range=(5, 6)))
    assert pg.ELMRank(feature_map=scaled).fit(X, y).feature_map_[-1].bias_.min() >= 5


def test_all_maps_have_the_same_draws_whatever_the_random_state():
    maps = [pg.RandomNodes(4, weight_range=(-r, r), bias_range=(-r, r)) for r in (1, 2)]
    for state in (np.random.default_rng(0), np.random.RandomState(0), 0):
        model = pg.ELMRankCV(n_estimators=2, feature_map=maps, random_state=state)
        narrow, wide = model._spec().draws([5, 5])
        for a, b in zip(narrow, wide, strict=True):
            np.testing.assert_allclose(2 * a.weights_, b.weights_, rtol=1e-12)
            np.testing.assert_allclose(2 * a.bias_, b.bias_, rtol=1e-12)
        assert (narrow[0].weights_ != narrow[1].weights_).all()


def test_a_generator():
    X, y = problem()
    model = pg.ELMRank(n_nodes=5, n_estimators=2, random_state=np.random.default_rng(0)).fit(X, y)
    again = pg.ELMRank(n_nodes=5, n_estimators=2, random_state=np.random.default_rng(0)).fit(X, y)
    assert (model.coef_ == again.coef_).all()


@pytest.mark.parametrize("n", [20, 400])
def test_an_infinite_ridge(n):
    """The batch kernel and the other route."""
    X, y = problem(n=n)
    model = pg.ELMRank(1.7e308, n_nodes=300, random_state=0).fit(X, y)
    assert (abs(model.coef_) < 1e-300).all()
    assert (pg.ELMRankCV([1.7e308, 1.0], cv=3, n_nodes=300, random_state=0).fit(X, y).alpha_) == 1.0


def test_a_file_holds_the_nodes_of_all_draws_and_a_fit_draws_as_before(tmp_path):
    X, y = problem()
    nodes = pg.RandomNodes(5, "tanh", weight_range=np.array([-2.0, 2.0]))
    for given_as in ({"feature_map": make_pipeline(pg.MinMax(), nodes)}, {"n_nodes": 5}):
        model = pg.ELMRank(**given_as, n_estimators=3, random_state=0).fit(X, y)
        model.save(tmp_path / "model")
        same = pg.load_model(tmp_path / "model")
        assert (same.predict(X) == model.predict(X)).all()
        assert (same.fit(X, y).coef_ == model.coef_).all()


def test_folds_of_few_rows_hold_two_each():
    """A fold of one row has no pair to score."""
    X, y, _ = pg.make_ranking(1, 10, 3, random_state=0)
    named = {"n_nodes": 4, "random_state": 0}
    few = pg.ELMRankCV([0.1, 1.0], [1.0], cv=10, **named).fit(X, y)
    five = pg.ELMRankCV([0.1, 1.0], [1.0], cv=5, **named).fit(X, y)
    np.testing.assert_array_equal(few.scores_, five.scores_)
    many = pg.fit_many(pg.ELMRankCV([0.1, 1.0], [1.0], cv=10, **named), [(X, y)])
    np.testing.assert_array_equal(many.models[0].scores_, five.scores_)
