"""Wide sparse rows by conjugate gradients: the direct solution, without a matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, strategies as st
from sklearn.exceptions import ConvergenceWarning

import forms
from axes import every
from pairgram import (
    Kernel,
    Pairs,
    PairwiseELM,
    PairwiseELMCV,
    PointwiseELM,
    PointwiseELMCV,
    RankRLS,
    RankRLSCV,
)
from parts.support import on_threads
from problems import BY_STEPS, problems


def wide_rows(n_rows=5_000, n_features=100_000, per_row=20, seed=0):
    rng = np.random.default_rng(seed)
    entries = n_rows * per_row
    index = rng.integers(0, n_features, entries), np.repeat(np.arange(n_rows), per_row)
    X = sp.csr_array((rng.random(entries), index[::-1]), shape=(n_rows, n_features))
    score = X @ rng.normal(size=n_features)
    y = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(float)
    return X, y, np.arange(n_rows) // 25


@given(
    problems(max_features=6),
    st.sampled_from(["with_ties", "without_ties", "gain_difference", None]),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.booleans(),
)
def test_equal_to_the_direct_solution(limits_of, problem, pairs, weighting, scale):
    weights = {"sample_weight": problem.v, "query_weight": problem.query_weight}
    model = forms.RankRLS(0.3, pairs=Pairs(pairs, weighting=weighting), scale=scale, form="primal")
    try:
        model.fit(sp.csr_array(problem.X), problem.y, qid=problem.query, **weights)
    except ValueError:  # no pairs
        assume(False)
    direct = model.coef_
    with limits_of(**BY_STEPS):
        model.fit(sp.csr_array(problem.X), problem.y, qid=problem.query, **weights)
    # The condition of the system multiplies the residual, which is 1e-10 of the right-hand side.
    np.testing.assert_allclose(model.coef_, direct, rtol=0, atol=1e-6 * abs(direct).max())
    assert model.form_ == "primal"


@pytest.mark.parametrize("scales", ["as they are", "lognormal", "far from 0"])
def test_true_residuals_of_many_ridges_are_small(iterate, scales):
    """They are computed anew, by NumPy."""
    X, y, qid = wide_rows(300, 240)
    rng = np.random.default_rng(1)
    if scales == "lognormal":
        X = sp.csr_array(X @ sp.diags_array(np.exp(1.5 * rng.normal(size=240))))
    elif scales == "far from 0":
        X = sp.csr_array(sp.hstack([rng.normal(size=(300, 9)) + 3e6, X[:, 9:]]))
    search = RankRLSCV(cv=2).fit(X, y, qid=qid)
    queries = X.toarray().astype(np.longdouble).reshape(12, 25, 240)
    centred = (queries - queries.mean(axis=1, keepdims=True)).reshape(X.shape)
    b = 25 * centred.T @ (y - np.bincount(qid, y)[qid] / 25)
    for alpha, w in [*zip(search.alphas_, search.coef_path_, strict=True)][::6]:
        residual = b - 25 * (centred.T @ (centred @ w)) - alpha * w
        assert np.linalg.norm(residual) < 1.05e-8 * np.linalg.norm(b)


def test_features_that_never_vary_have_the_ridges_of_dense_rows(iterate):
    X, y, qid = np.ones((40, 3)), np.arange(40.0) % 3, np.arange(40) // 8
    search = RankRLSCV(cv=5).fit(sp.csr_array(X), y, qid=qid)
    np.testing.assert_array_equal(search.alphas_, RankRLSCV(cv=5).fit(X, y, qid=qid).alphas_)
    assert not search.coef_path_.any()


@pytest.mark.parametrize(
    "model", [PairwiseELM(feature_map=Kernel("linear")), PointwiseELM(feature_map=Kernel("linear"))]
)
def test_machines_with_a_linear_kernel(iterate, model):
    X, y, qid = wide_rows(60, 200, 5)
    found = model.fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(found, model.fit(X.toarray(), y, qid=qid).predict(X), atol=1e-8)


def test_no_ridge_gives_the_least_norm(iterate):
    X, y, qid = wide_rows(50, 200, 5)
    direct = RankRLS(0.0).fit(X.toarray(), y, qid=qid).coef_
    np.testing.assert_allclose(RankRLS(0.0).fit(X, y, qid=qid).coef_, direct, atol=1e-7)


@pytest.mark.parametrize("shape", [(300, 500), (300, 2_000), (600, 150)])
@pytest.mark.parametrize("share", [1e-5, 1e-7, 1e-10])
def test_a_small_ridge_decides_where_no_pair_differs(iterate, shape, share):
    """Also among features whose ones add up to the same in every row."""
    X, y, qid = wide_rows(*shape, 10)
    X.data[:] = 1.0
    dense = X.toarray()
    alpha = share * RankRLSCV(cv=3).fit(dense, y, qid=qid).alphas_[0]
    direct = forms.RankRLS(alpha, form="dual").fit(dense, y, qid=qid).coef_
    found = RankRLS(alpha).fit(X, y, qid=qid).coef_  # warnings are errors here
    np.testing.assert_allclose(found, direct, rtol=0, atol=3e-6 * abs(direct).max())


def test_a_hundred_thousand_features():
    X, y, qid = wide_rows()  # their Gram matrix would take 80 GB
    model = RankRLS(1.0).fit(X, y, qid=qid)
    assert (model.form_, model.coef_.shape) == ("primal", (100_000,))
    dual = forms.RankRLS(1.0, form="dual").fit(X[:500], y[:500], qid=qid[:500])
    assert dual.form_ == "dual"
    f = model.predict(X)
    index = qid[:, None] == np.arange(200)
    centred = (y - f) - index @ (index.T @ (y - f) / 25)
    gradient = X.T @ (25 * centred) - model.coef_
    assert abs(gradient).max() < 1e-6 * abs(X.T @ (25 * y)).max()


def test_same_bits_for_any_number_of_threads(iterate):
    X, y, qid = wide_rows(9_000, 300, 5)
    one, two = on_threads((1, 2), lambda: RankRLS().fit(X, y, qid=qid).coef_)
    assert (one == two).all()


def test_too_few_steps_are_told(iterate, set_limits):
    X, y, qid = wide_rows(50, 200, 5)
    set_limits(gradient_steps=1)
    with pytest.warns(ConvergenceWarning, match="alpha=0.001"):
        RankRLS(1e-3).fit(X, y, qid=qid)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(iterate, bad):
    X, y, qid = wide_rows(50, 200, 5)
    X.data[3] = bad
    with pytest.raises(ValueError, match="X contains"):
        RankRLS().fit(X, y, qid=qid)


@pytest.mark.parametrize("scale", [False, True])
def test_columns_that_do_not_vary_have_the_weight_zero(iterate, scale):
    X, y, qid = wide_rows(100, 200, 5)
    wanted = RankRLS(scale=scale).fit(X, y, qid=qid).coef_
    constant = sp.csr_array((1e12 * (1.0 + qid))[:, None])
    found = RankRLS(scale=scale).fit(sp.hstack([constant, X], format="csr"), y, qid=qid).coef_
    assert found[0] == 0
    np.testing.assert_allclose(found[1:], wanted, atol=1e-8 * abs(wanted).max())


def graded_rows(dtype=np.float64, seed=1):
    """Sparse rows of 50 queries that a direct search solves too."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((600, 80), density=0.1, random_state=rng, format="csr").astype(dtype)
    f = X @ rng.normal(size=80) + 0.3 * rng.normal(size=600)
    more = {
        "sample_weight": rng.choice([0.0, 0.5, 1.0, 2.0], 600),
        "offset": rng.normal(size=600),
        "query_weight": np.repeat(rng.choice([0.5, 2.0], 50), 12),
    }
    return X, np.digitize(f, [-1, 0, 1]).astype(float), np.repeat(np.arange(50), 12), more


def same_search(direct, iterated):
    """Both searches judge and choose alike."""
    np.testing.assert_allclose(iterated.alphas_, direct.alphas_, rtol=1e-8)
    for column in (name for name in direct.cv_results_ if name.endswith("test_score")):
        found, expected = iterated.cv_results_[column], direct.cv_results_[column]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=column)
    chosen = [(one.pairs_, one.scale_) for one in (direct, iterated)]
    assert chosen[0] == chosen[1]
    scale = abs(direct.coef_).max()
    np.testing.assert_allclose(iterated.coef_, direct.coef_, rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(
        iterated.coef_path_, direct.coef_path_, rtol=0, atol=1e-6 * abs(direct.coef_path_).max()
    )


@every(
    settings=[
        {"cv": 5},
        {"cv": 3, "scale": [False, True]},
        {"cv": 4, "pairs": ["without_ties", Pairs("gain_difference", target="gain")]},
        {"cv": 5, "pairs": None},
        {"cv": 5, "pairs": Pairs(weighting="queries"), "feature_map": "maxabs"},
        {"cv": 5, "pairs": Pairs(scope="global")},
        {"alphas": [0.1, 10.0, 1.0], "cv": 3, "scoring": "pairwise_squared_error"},
    ],
    weighted=[False, True],
)
def test_a_search_is_that_of_the_direct_solutions(limits_of, settings, weighted):
    X, y, qid, others = graded_rows()
    if settings.get("pairs") == Pairs(scope="global"):
        del others["query_weight"]  # all rows are one query
    named = {"qid": qid} | (others if weighted else {})
    direct = RankRLSCV(**settings).fit(X, y, **named)
    with limits_of(**BY_STEPS):
        iterated = RankRLSCV(**settings).fit(X, y, **named)
    same_search(direct, iterated)
    spread = np.ptp(direct.held_out_)
    np.testing.assert_allclose(iterated.held_out_, direct.held_out_, rtol=0, atol=1e-6 * spread)


@pytest.mark.parametrize("model", [PairwiseELMCV, PointwiseELMCV])
def test_a_search_of_a_machine_with_a_linear_kernel(limits_of, model):
    X, y, qid, _ = graded_rows()
    direct = model(feature_map=Kernel("linear"), cv=3).fit(X, y, qid=qid)
    with limits_of(**BY_STEPS):
        iterated = model(feature_map=Kernel("linear"), cv=3).fit(X, y, qid=qid)
    np.testing.assert_allclose(iterated.scores_, direct.scores_, rtol=0, atol=1e-6)
    assert pytest.approx(direct.C_, rel=1e-12) == iterated.C_


def test_a_search_judges_by_a_validation_set_and_starts_from_a_prior(limits_of):
    X, y, qid, _ = graded_rows()
    held, prior = graded_rows(seed=2)[:3], np.linspace(-1, 1, 80)
    settings = {"prior": prior, "alphas": [1e6, 1.0, 0.01]}
    direct = RankRLSCV(**settings).fit(X, y, qid=qid, validation=held)
    with limits_of(**BY_STEPS):
        iterated = RankRLSCV(**settings).fit(X, y, qid=qid, validation=held)
    same_search(direct, iterated)


def test_a_search_without_cv_takes_five_folds_of_queries(iterate):
    X, y, qid, _ = graded_rows()
    default, five = (RankRLSCV(cv=cv).fit(X, y, qid=qid) for cv in (None, 5))
    np.testing.assert_array_equal(default.scores_, five.scores_)
    assert "split4_test_score" in default.cv_results_


def test_pairs_are_left_out_exactly_whatever_the_size(iterate):
    X, y, _, _ = graded_rows()
    X, y = X[:60], y[:60]
    search = RankRLSCV(cv="leave-pair-out").fit(X, y)
    dense = RankRLSCV(cv="leave-pair-out").fit(X.toarray(), y)
    np.testing.assert_allclose(search.scores_, dense.scores_, atol=1e-9)


def test_a_search_of_float32_rows_with_long_indices(limits_of):
    X, y, qid, _ = graded_rows(np.float32)
    long = X.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    direct = RankRLSCV(cv=3).fit(X.astype(np.float64), y, qid=qid)
    with limits_of(**BY_STEPS):
        short, found = (RankRLSCV(cv=3).fit(rows, y, qid=qid) for rows in (X, long))
    np.testing.assert_array_equal(short.coef_path_, found.coef_path_)
    np.testing.assert_allclose(found.scores_, direct.scores_, rtol=0, atol=1e-6)


def test_a_search_has_the_same_bits_for_any_number_of_threads(iterate):
    X, y, qid, _ = graded_rows()
    one, two = on_threads((1, 2), lambda: RankRLSCV(cv=3).fit(X, y, qid=qid))
    np.testing.assert_array_equal(one.coef_path_, two.coef_path_)
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_a_column_that_varies_in_one_query_alone_does_not_order_its_rows(iterate):
    X, y, qid, _ = graded_rows()
    own = sp.csr_array((np.arange(12.0), (np.arange(12), np.zeros(12, int))), shape=(600, 1))
    X = sp.csr_array(sp.hstack([X[:, :0].tocsr(), own]))
    search = RankRLSCV(cv=50, alphas=[1e-6]).fit(X, y, qid=qid)
    assert len(set(search.held_out_[:12])) == 1


def test_splits_are_solved_in_groups_that_memory_holds(limits_of):
    X, y, qid, _ = graded_rows()
    with limits_of(**BY_STEPS):
        together = RankRLSCV(cv=10).fit(X, y, qid=qid)
    with limits_of(**BY_STEPS, available_memory=2.5 * 8 * 2 * (74 * 80 + 5 * 600)):
        by_two = RankRLSCV(cv=10).fit(X, y, qid=qid)
    np.testing.assert_array_equal(by_two.coef_path_, together.coef_path_)
    np.testing.assert_array_equal(by_two.held_out_, together.held_out_)
