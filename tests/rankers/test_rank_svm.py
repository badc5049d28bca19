"""RankSVM against L-BFGS on explicit pairs, its ways of reading features, and RankSVMCV."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem as SklearnNystroem, RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference_svm
from pairgram import (
    Nystroem,
    Pairs,
    QueryKFold,
    RandomFourier,
    RandomNodes,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    get_metric,
    load_letor_folds,
    load_model,
    make_ranking,
)
from parts.data import checked_data
from parts.solvers import svm_features, svm_training as training
from parts.support import on_threads
from problems import problems

LOSSES = ["squared_hinge", "squared"]
WEIGHTINGS = ["pairs", "documents", "queries"]
DATA = X, y, qid = make_ranking(40, (1, 25), 6, random_state=0)


def gradient_at(coef, X, y, qid):
    """The sizes of the gradient at coefficients and at 0."""
    A, W = reference_svm.preference_pairs(y, qid)
    found = (reference_svm.objective(w, X, A, W, 1.0)[1] for w in (coef, 0 * coef))
    return [np.linalg.norm(gradient) for gradient in found]


def best_objective(H, A, W, C, loss, start=0.0):
    """The least objective that L-BFGS finds on explicit pairs, from weights near it or none."""
    result = scipy.optimize.minimize(
        reference_svm.objective,
        start + np.zeros(H.shape[1]),
        (H, A, W, C, loss),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-12},
    )
    return result.fun


@settings(max_examples=50)
@given(
    problems(),
    st.sampled_from(LOSSES),
    st.sampled_from(WEIGHTINGS),
    st.sampled_from([0.01, 1.0, 50.0]),
)
def test_the_objective_is_that_of_l_bfgs_on_explicit_pairs(problem, loss, weighting, C):
    A, W = reference_svm.preference_pairs(
        problem.y, problem.query, problem.v, problem.query_weight, weighting
    )
    if not W.any():
        return
    model = RankSVM(C, loss=loss, pairs=Pairs("without_ties", weighting=weighting), tol=1e-9).fit(
        problem.X, problem.y, **problem.named
    )
    value, gradient = reference_svm.objective(model.coef_, problem.X, A, W, C, loss)
    assert value <= best_objective(problem.X, A, W, C, loss) * (1 + 1e-8)
    _, at_zero = reference_svm.objective(0 * model.coef_, problem.X, A, W, C, loss)
    # the gradient's terms can be far larger than their sum at 0, to which tol refers
    differences = abs(A @ problem.X)
    terms = 2 * C * np.linalg.norm((W * (1 + differences @ abs(model.coef_))) @ differences)
    rounding = 4 * np.finfo(float).eps * terms
    assert np.linalg.norm(gradient) <= 2e-9 * np.linalg.norm(at_zero) + rounding
    np.testing.assert_allclose(model.history_["objective"][-1], value, rtol=1e-9)


@pytest.mark.parametrize("seed", [198, 351, 2445, 2693])
def test_features_of_unequal_size_do_not_end_it_early(seed):
    """The objective is at its minimum to the last digit before the gradient is at tol."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) * (1000, 1, 1, 1)
    y, qid = rng.integers(0, 3, 40), np.arange(40) // 8
    model = RankSVM(tol=1e-9).fit(X, y, qid=qid)
    found, at_zero = gradient_at(model.coef_, X, y, qid)
    assert found <= 2e-9 * at_zero


@pytest.mark.parametrize(("name", "C"), [("OHSUMED", 2**-9), ("MQ2008", 2**-7)])
def test_the_objective_on_letor_data_at_the_default_tolerance(benchmark_data, name, C):
    rows = next(iter(load_letor_folds(benchmark_data / name))).train
    A, W = reference_svm.preference_pairs(rows.y, rows.qid)
    model = RankSVM(C).fit(rows.X, rows.y, qid=rows.qid)
    value, _ = reference_svm.objective(model.coef_, rows.X, A, W, C)
    best = best_objective(rows.X, A, W, C, "squared_hinge", model.coef_)
    assert value <= best * (1 + 1e-6)
    assert model.n_hessian_products_ <= 10


def test_the_squared_loss_has_a_closed_form():
    A, W = reference_svm.preference_pairs(y, qid)
    D = A @ X
    expected = np.linalg.solve(np.eye(X.shape[1]) + 2 * 0.3 * D.T @ D, 2 * 0.3 * D.T @ W)
    model = RankSVM(0.3, loss="squared", tol=1e-10).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    assert model.n_hessian_products_ <= 2  # the preconditioner is the Hessian


def test_history_and_the_default_tolerance(set_limits):
    for C in (1e-3, 1.0, 1e3):
        model = RankSVM(C).fit(X, y, qid=qid)
        history = model.history_
        assert model.n_hessian_products_ == history["n_hessian_products"].sum() <= 12
        assert model.n_iter_ == len(history["step"]) == len(history["objective"]) - 1
        assert (np.diff(history["objective"]) < 0).all()
        np.testing.assert_allclose(history["relative_gradient"][0], 1)
        assert history["relative_gradient"][-1] <= 1e-3 < history["relative_gradient"][-2]
    set_limits(newton_steps=1)
    with pytest.warns(ConvergenceWarning, match=r"1 of 1 .* tol=1e-10 in 1 Newton"):
        RankSVM(tol=1e-10).fit(X, y, qid=qid)


@pytest.mark.parametrize("factor", [1e155, 1e308, 1e-300])
@pytest.mark.parametrize("widest", [4096, 1])
def test_only_the_order_of_labels_counts(factor, widest, set_limits):
    set_limits(widest_gram=widest)
    X, y, qid = DATA
    expected = RankSVM(0.1).fit(X, y, qid=qid)
    y = y / y.max() * factor
    np.testing.assert_array_equal(RankSVM(0.1).fit(X, y, qid=qid).coef_, expected.coef_)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_invariances(weighting):
    make = RankSVM(0.1, pairs=Pairs("without_ties", weighting=weighting), tol=1e-8)
    expected = make.fit(X, y, qid=qid).coef_
    far = make.fit(X + 1e4, 3 * y + 10 * qid, qid=qid).coef_
    np.testing.assert_allclose(far, expected, rtol=1e-5)
    twice = np.concatenate((np.arange(len(y)), np.arange(100)))
    repeated = make.fit(X[twice], y[twice], qid=qid[twice]).coef_
    weights = np.where(np.arange(len(y)) < 100, 2.0, 1.0)
    weighted = make.fit(X, y, qid=qid, sample_weight=weights).coef_
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


@pytest.mark.parametrize("feature_map", [None, RandomNodes(50, "sine", random_state=0)])
def test_the_same_bits_for_any_threads(feature_map):
    X, y, qid = make_ranking(100, (1, 150), 20, random_state=1)
    model = RankSVM(0.1, feature_map=feature_map)
    fits = on_threads((1, 2, 5), lambda: model.fit(X, y, qid=qid).coef_)
    np.testing.assert_array_equal(fits[1], fits[0])
    np.testing.assert_array_equal(fits[2], fits[0])


@pytest.mark.parametrize("short_of_memory", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "map"])
def test_many_features_are_preconditioned_by_the_diagonal(
    kind, short_of_memory, set_limits, free_memory
):
    X, y, qid = DATA
    X = sp.csr_array(X) if kind == "sparse" else X
    nodes = RandomNodes(20, random_state=0) if kind == "map" else None
    exact = RankSVM(0.1, feature_map=nodes, tol=1e-8).fit(X, y, qid=qid)
    if short_of_memory:
        free_memory(1)
    else:
        set_limits(widest_gram=1)
    model = RankSVM(0.1, feature_map=nodes, tol=1e-8).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-5, atol=1e-6)
    assert model.n_hessian_products_ > exact.n_hessian_products_


def test_a_hundred_thousand_sparse_features_need_no_matrix_of_them():
    rng = np.random.default_rng(0)
    X = sp.random_array((len(y), 100_000), density=1e-3, format="csr", random_state=rng)
    model = RankSVM(1.0, tol=1e-6).fit(X, y, qid=qid)
    found, at_zero = gradient_at(model.coef_, X, y, qid)
    assert found <= 1.1e-6 * at_zero


class Rounded(TransformerMixin, BaseEstimator):
    """Features of a type that the kernels do not know."""

    def __init__(self, dtype="int64"):
        self.dtype = dtype

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return (X > 0).astype(self.dtype) if self.dtype != "1-d" else X[:, 0]


@pytest.mark.parametrize("dtype", ["int64", "bool", "float16", "float32"])
def test_maps_may_make_features_of_any_type(dtype, free_memory):
    stored = RankSVM(0.1, feature_map=Rounded("float64"), tol=1e-8).fit(X, y, qid=qid)
    for n_bytes in (1e9, 7 * X.size):  # which hold the features, or not
        free_memory(n_bytes)
        model = RankSVM(0.1, feature_map=Rounded(dtype), tol=1e-8).fit(X, y, qid=qid)
        np.testing.assert_allclose(model.coef_, stored.coef_, rtol=1e-6)
        with pytest.raises(ValueError, match=r"feature_map .* 2-d .*, but gave shape \(1,\)"):
            model.set_params(feature_map=Rounded("1-d")).fit(X, y, qid=qid)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_that_are_made_again_have_the_same_bits_for_any_threads(
    dtype, set_limits, free_memory
):
    set_limits(dense_block_bytes=1 << 17)
    X, y, qid = make_ranking(60, (1, 150), 20, random_state=1)
    X = X.astype(dtype)
    nodes = RandomNodes(50, "sine", random_state=0)
    stored = RankSVM(0.1, feature_map=nodes).fit(X, y, qid=qid).coef_
    free_memory(7 * len(y) * 50)
    model = RankSVM(0.1, feature_map=nodes)
    fits = on_threads((1, 2, 5), lambda: model.fit(X, y, qid=qid).coef_)
    np.testing.assert_array_equal(fits[1], fits[0])
    np.testing.assert_array_equal(fits[2], fits[0])
    np.testing.assert_allclose(fits[0], stored, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["nodes", "transformer", "sparse"])
def test_features_that_do_not_fit_are_made_again(kind, set_limits, free_memory):
    X, y, qid = DATA
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    X = sp.csr_array(X) if kind == "sparse" else X
    nodes = RandomNodes(30, "sine", random_state=0)
    if kind == "transformer":
        nodes = RBFSampler(n_components=30, random_state=0)
    stored = RankSVM(0.1, feature_map=nodes, tol=1e-8).fit(X, y, qid=qid)
    coarse = RankSVM(0.1, feature_map=nodes).fit(X, y, qid=qid)  # in single precision
    free_memory(7 * len(y) * 30)
    for block_bytes in (64 << 20, 30 * 8 * 40, 30 * 8 * 7):  # all, some, and cut queries
        set_limits(dense_block_bytes=block_bytes)
        model = RankSVM(0.1, feature_map=nodes, tol=1e-8).fit(X, y, qid=qid)
        np.testing.assert_allclose(model.coef_, stored.coef_, rtol=1e-5, atol=1e-7)
    assert coarse.history_["objective"][-1] <= stored.history_["objective"][-1] * 1.001
    np.testing.assert_allclose(coarse.history_["objective"][0], stored.history_["objective"][0])


def test_large_features_are_stored_in_single_precision(set_limits):
    nodes = RandomNodes(30, "sine", random_state=0)
    model = RankSVM(0.1, feature_map=nodes).fit(X, y, qid=qid)
    set_limits(smallest_single=8 * 30 * len(y) - 1)
    coarse = RankSVM(0.1, feature_map=nodes).fit(X, y, qid=qid)
    fine = RankSVM(0.1, feature_map=nodes, tol=9e-6).fit(X, y, qid=qid)
    assert (coarse.coef_ != model.coef_).all()
    np.testing.assert_allclose(coarse.coef_, model.coef_, rtol=1e-3, atol=1e-5)
    set_limits(finest_single=1e-6)
    assert (RankSVM(0.1, feature_map=nodes, tol=9e-6).fit(X, y, qid=qid).coef_ != fine.coef_).all()


@pytest.fixture
def sampled(monkeypatch, set_limits):
    """Return what lets a sample precondition few rows of few features, and returns its sizes."""
    sizes, draw = [], training.sample_queries

    def watched(*arguments):
        sample = draw(*arguments)
        sizes.append(0 if sample is None else len(sample.y))
        return sample

    def start(fewest_rows=100):
        set_limits(sampled_features=1, fewest_sampled_rows=fewest_rows, rows_per_feature=0)
        monkeypatch.setattr(training, "sample_queries", watched)
        return sizes

    return start


@pytest.mark.parametrize(
    ("kind", "weighting"),
    [
        *(("X", weighting) for weighting in WEIGHTINGS),
        *zip(["sparse", "float32", "nodes"], WEIGHTINGS, strict=True),
        *zip(["foreign", "nystroem", "few"], WEIGHTINGS, strict=True),
    ],
)
def test_a_sample_for_the_preconditioner_changes_no_minimum(kind, weighting, sampled, free_memory):
    X, y, qid = make_ranking(100, (1, 12), 6, random_state=0)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    v, u = np.random.default_rng(1).random(len(y)) * (qid != 3), np.exp(qid / 20)
    feature_map = {
        "nodes": RandomNodes(15, random_state=0),
        "nystroem": Nystroem(n_components=20, random_state=0),
        "few": Nystroem("linear", n_components=20, random_state=0),
        "foreign": SklearnNystroem("poly", degree=2, n_components=9, random_state=0),
    }.get(kind)
    X = {"sparse": sp.csr_array(X), "float32": X.astype(np.float32)}.get(kind, X)
    named = {
        "pairs": Pairs("without_ties", weighting=weighting),
        "tol": 1e-8,
        "feature_map": feature_map,
    }
    weights = {"sample_weight": v, "query_weight": u}
    exact = RankSVM(0.1, **named).fit(X, y, qid=qid, **weights)
    sizes = sampled()
    for n_bytes in (1e9, 7 * len(y) * len(exact.coef_)):  # the latter hold those of the sample
        free_memory(n_bytes)
        model = RankSVM(0.1, **named).fit(X, y, qid=qid, **weights)
        assert 40 < sizes[-1] < 200
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-5, atol=1e-6)
        assert (model.coef_ != exact.coef_).any()
    model = RankSVM(0.1, **named)
    several = on_threads((1, 2, 5), lambda: model.fit(X, y, qid=qid).coef_)
    np.testing.assert_array_equal(several[1:], several[:1] * 2)


def test_kernel_values_in_single_precision(sampled, set_limits):
    """Values that differ little, whose whitening would multiply rounding errors by 1000."""
    X, y, qid = make_ranking(150, (1, 12), 6, random_state=0)
    nystroem = Nystroem(gamma=0.01, n_components=60, random_state=0)
    fine = RankSVM(10.0, feature_map=nystroem, tol=1e-7).fit(X, y, qid=qid)
    assert np.linalg.norm(fine.feature_map_.whitening_, 2) > 500
    sizes = sampled()
    set_limits(smallest_single=0)
    set_limits(finest_single=0)
    coarse = RankSVM(10.0, feature_map=nystroem, tol=1e-7).fit(X, y, qid=qid)
    assert sizes[-1] > 0
    assert (coarse.coef_ != fine.coef_).any()
    scores = fine.predict(X)
    np.testing.assert_allclose(coarse.predict(X), scores, atol=1e-4 * np.abs(scores).max())


def test_many_rows_of_many_features_need_few_products():
    X, y, qid = make_ranking(1000, (10, 20), 6, random_state=0)
    nystroem = Nystroem(gamma=0.3, n_components=300, random_state=0)
    model = RankSVM(2**-4, feature_map=nystroem).fit(X, y, qid=qid)
    assert model.n_hessian_products_ <= 10
    fine = RankSVM(2**-4, feature_map=nystroem, tol=1e-6).fit(X, y, qid=qid)
    assert model.history_["objective"][-1] <= fine.history_["objective"][-1] * (1 + 1e-4)


@given(problems(max_features=3))
def test_scatter_diagonal(problem):
    factor = np.random.default_rng(0).random(len(problem.offsets) - 1)
    v = np.ones(len(problem.y)) if problem.v is None else problem.v
    expected = np.zeros(problem.X.shape[1])
    for query in np.unique(problem.query):
        rows = problem.query == query
        if v[rows].sum() > 0:
            mean = np.average(problem.X[rows], axis=0, weights=v[rows])
            expected += factor[query] * v[rows] @ (problem.X[rows] - mean) ** 2
    made = checked_data(problem.X, problem.y, qid=problem.query, sample_weight=problem.v)
    actual = svm_features.scatter_diagonal(made, factor[made.queries.ids])
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("C", [1.0, 1e15])
def test_a_feature_given_twice(C):
    for seed in range(5):
        times = 1.7e9 + 1e6 * np.random.default_rng(seed).random(len(y))
        twice = np.column_stack((X, times, times))
        model = RankSVM(C).fit(twice, y, qid=qid)
        assert model.history_["relative_gradient"][-1] <= 1e-3
        assert model.history_["objective"][-1] < model.history_["objective"][0]
        assert np.isfinite(model.predict(twice)).all()


@pytest.mark.parametrize("width", [6, 700])
def test_rows_and_weights_of_any_size(width):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, width)), rng.integers(0, 3, 60), np.arange(60) // 10
    expected = RankSVM(0.1, tol=1e-6).fit(X, y, qid=qid)
    large = RankSVM(0.1e-36, tol=1e-6).fit(1e18 * X, y, qid=qid)
    np.testing.assert_allclose(1e18 * large.coef_, expected.coef_, rtol=1e-3, atol=1e-5)
    model = RankSVM(0.1e-300, tol=1e-6).fit(X, y, qid=qid, sample_weight=np.full(60, 1e150))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.history_["relative_gradient"][0], 1.0)


def test_steps_end_where_rounding_errors_leave_no_curvature():
    rng = np.random.default_rng(0)
    X, y, qid = (
        1e18 * rng.normal(size=(14, 16)),
        rng.integers(0, 3, 14),
        np.repeat(range(3), [3, 5, 6]),
    )
    search = RankSVMCV(Cs=[0.01, 1.0], tol=1e-9, cv=2).fit(X, y, qid=qid)
    assert np.isfinite(search.scores_).all()
    assert np.isfinite(search.predict(X)).all()


def test_the_file_of_a_search_holds_the_model_of_the_choice(tmp_path):
    path = tmp_path / "model"
    chosen = RankSVMCV([0.01, 0.1], cv=3).fit(X, y, qid=qid)
    chosen.save(path)
    loaded = load_model(path)
    assert type(loaded) is RankSVM
    assert loaded.C == chosen.C_
    np.testing.assert_array_equal(loaded.coef_, chosen.coef_)


def test_not_finite_features_are_named(sampled, set_limits):
    X, y, qid = DATA
    X = X.copy()
    X[3, 1] = np.nan
    for widest in (4096, 1, 4096):
        set_limits(widest_gram=widest)
        for rows in (X, sp.csr_array(X)):
            with pytest.raises(ValueError, match="X contains NaN"):
                RankSVM().fit(rows, y, qid=qid)
            alone = np.where(np.arange(len(y)) == 3, -1, qid)  # the row has no pairs
            with pytest.raises(ValueError, match="X contains NaN"):
                RankSVM().fit(rows, y, qid=alone)
        sampled(60 if widest == 1 else 4096)  # the third time


@pytest.mark.parametrize("weighting", ["pairs", "queries"])
def test_cv_scores_are_those_of_models_of_the_training_rows(weighting):
    X, y, qid = DATA
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    maps = [None, RandomNodes(12, random_state=0)]
    Cs, splitter = [10.0, 0.01], QueryKFold(3)
    named = {"pairs": Pairs("without_ties", weighting=weighting), "tol": 1e-7}
    model = RankSVMCV(Cs, feature_map=maps, cv=splitter, scoring="map", **named)
    model.fit(X, y, qid=qid, sample_weight=weights)
    means = []
    for feature_map in maps:
        for C in Cs:
            held = np.full(len(y), np.nan)
            for train, test in splitter.split(X, y, qid=qid):
                part = RankSVM(C, feature_map=feature_map, **named)
                part.fit(X[train], y[train], qid=qid[train], sample_weight=weights[train])
                held[test] = part.predict(X[test])
            means.append(get_metric("map")(y, held, qid, sample_weight=weights))
    results = model.cv_results_
    np.testing.assert_allclose(results["mean_test_score"], means, rtol=1e-9)
    np.testing.assert_array_equal(results["param_C"], [10.0, 0.01, 10.0, 0.01])
    assert results["param_feature_map"][0] is None
    assert isinstance(results["param_feature_map"][2], RandomNodes)
    assert results["rank_test_score"][np.argmax(means)] == 1
    best = int(np.argmax(means))
    assert model.best_score_ == results["mean_test_score"][best]
    assert Cs[best % 2] == model.C_
    assert model.Cs_.tolist() == Cs
    alone = RankSVM(model.C_, feature_map=maps[best // 2], **named)
    alone.fit(X, y, qid=qid, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_cv_with_a_validation_set():
    X2, y2, qid2 = make_ranking(20, (1, 25), 6, random_state=5)
    nodes = RandomNodes(9, random_state=0)
    model = RankSVMCV([0.01, 1.0], feature_map=nodes, tol=1e-7)
    model.fit(X, y, qid=qid, validation=(X2, y2, qid2))
    for C, score in zip(model.Cs_, model.scores_, strict=True):
        alone = RankSVM(C, feature_map=nodes, tol=1e-7).fit(X, y, qid=qid)
        np.testing.assert_allclose(alone.score(X2, y2, qid=qid2), score, rtol=1e-9)


def test_a_map_may_take_missing_values_of_a_validation_set():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    held = (holes, y, qid)
    model = RankSVMCV([0.01, 1.0], feature_map=SimpleImputer(), tol=1e-7)
    model.fit(holes, y, qid=qid, validation=held)
    for C, score in zip(model.Cs_, model.scores_, strict=True):
        alone = RankSVM(C, feature_map=SimpleImputer(), tol=1e-7).fit(holes, y, qid=qid)
        np.testing.assert_allclose(alone.score(holes, y, qid=qid), score, rtol=1e-9)


def test_cv_fits_maps_once_without_labels():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 30)), rng.normal(size=60), np.arange(60) // 6
    sampler = RBFSampler(n_components=9, random_state=0)
    for kind in (RankSVMCV, RankRLSCV):
        told = kind(cv=3, scoring="kendall").fit(sampler.fit_transform(X), y, qid=qid)
        found = kind(feature_map=sampler, cv=3, scoring="kendall").fit(X, y, qid=qid)
        np.testing.assert_allclose(found.scores_, told.scores_, rtol=1e-9)
        with pytest.raises(ValueError, match="cannot be fitted to X alone"):
            kind(feature_map=SelectKBest(f_regression, k=10)).fit(X, y, qid=qid)


def test_cv_results_have_the_scores_of_every_split():
    maps = [None, RandomNodes(9, random_state=0)]
    model = RankSVMCV([0.01, 1.0], feature_map=maps, cv=QueryKFold(3)).fit(X, y, qid=qid)
    results = model.cv_results_
    C, feature_map = results["params"][3]["C"], results["params"][3]["feature_map"]
    assert C == 1.0
    assert feature_map is results["param_feature_map"][3]
    parts = np.array([results[f"split{k}_test_score"] for k in range(3)])
    for part, (train, test) in zip(parts, QueryKFold(3).split(X, y, qid=qid), strict=True):
        alone = RankSVM(C, feature_map=maps[1], tol=1e-6).fit(X[train], y[train], qid=qid[train])
        np.testing.assert_allclose(alone.score(X[test], y[test], qid=qid[test]), part[3], atol=0.01)
    np.testing.assert_allclose(results["std_test_score"], parts.std(axis=0))
    assert (parts.min(axis=0) <= results["mean_test_score"]).all()
    assert (parts.max(axis=0) >= results["mean_test_score"]).all()


def test_a_warning_as_an_error_leaves_no_half_of_a_model(set_limits):
    set_limits(newton_steps=1)
    for model in (RankSVM(tol=1e-9), RankSVMCV([0.1], tol=1e-9, cv=3)):
        with pytest.raises(ConvergenceWarning):  # as the tests' settings have it
            model.fit(X, y, qid=qid)
        names = {"coef_", "feature_map_", "uses_qid_", "history_"}
        assert len(names & set(vars(model))) in (0, len(names))


def test_cv_defaults():
    model = RankSVMCV(cv=3).fit(X, y, qid=qid)
    assert len(model.Cs_) == 11
    assert model.best_score_ == model.scores_.max()
    A, _ = reference_svm.preference_pairs(y, qid)
    trace = ((A @ X) ** 2).sum()
    np.testing.assert_allclose(model.Cs_, 2.0 ** np.arange(0, 21, 2) / (2 * trace))


def test_rank_svm_in_scikit_learns_tools(routing):
    search = GridSearchCV(RankSVM(), {"C": [0.01, 1.0]}, cv=QueryKFold(3)).fit(X, y, qid=qid)
    assert search.best_params_["C"] == RankSVMCV([0.01, 1.0], cv=3).fit(X, y, qid=qid).C_
    scaled = make_pipeline(StandardScaler(), RankSVM(0.1)).fit(X, y, qid=qid)
    plain = RankSVM(0.1).fit(StandardScaler().fit_transform(X), y, qid=qid)
    np.testing.assert_array_equal(
        scaled.predict(X), plain.predict(StandardScaler().fit_transform(X))
    )
    ranker, name = RankSVM(0.1, feature_map=RandomFourier(20, random_state=0)), "feature_map__gamma"
    search = GridSearchCV(ranker, {name: [1e-3, 1e-1]}, cv=QueryKFold(3)).fit(X, y, qid=qid)
    assert search.best_estimator_.feature_map_.gamma_ == search.best_params_[name]
    means = search.cv_results_["mean_test_score"]
    assert means[0] != means[1]
