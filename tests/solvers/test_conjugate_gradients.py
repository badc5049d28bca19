"""Wide sparse rows by conjugate gradients: the direct solution, without a matrix."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, strategies as st
from sklearn.exceptions import ConvergenceWarning

from pairgram import PairwiseELM, PointwiseELM, RankRLS, RankRLSCV
from problems import problems


@pytest.fixture
def iterate(set_limits):
    """Solve sparse rows of any shape by conjugate gradients."""
    set_limits(direct_order=0)


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
    model = RankRLS(0.3, pairs=pairs, weighting=weighting, scale=scale, form="primal")
    try:
        model.fit(sp.csr_array(problem.X), problem.y, qid=problem.query, **weights)
    except ValueError:  # no pairs
        assume(False)
    direct = model.coef_
    with limits_of(direct_order=0):
        model.fit(sp.csr_array(problem.X), problem.y, qid=problem.query, **weights)
    # The condition of the system multiplies the residual, which is 1e-10 of the right-hand side.
    np.testing.assert_allclose(model.coef_, direct, rtol=0, atol=1e-6 * abs(direct).max())
    assert model.form_ == "primal"


@pytest.mark.parametrize("model", [PairwiseELM(kernel="linear"), PointwiseELM(kernel="linear")])
def test_machines_with_a_linear_kernel(iterate, model):
    X, y, qid = wide_rows(60, 200, 5)
    found = model.fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(found, model.fit(X.toarray(), y, qid=qid).predict(X), atol=1e-8)


def test_no_ridge_gives_the_least_norm(iterate):
    X, y, qid = wide_rows(50, 200, 5)
    direct = RankRLS(0.0).fit(X.toarray(), y, qid=qid).coef_
    np.testing.assert_allclose(RankRLS(0.0).fit(X, y, qid=qid).coef_, direct, atol=1e-7)


def test_a_hundred_thousand_features():
    X, y, qid = wide_rows()  # their Gram matrix would take 80 GB
    model = RankRLS(1.0).fit(X, y, qid=qid)
    assert (model.form_, model.coef_.shape) == ("primal", (100_000,))
    dual = RankRLS(1.0, form="dual").fit(X[:500], y[:500], qid=qid[:500])
    assert dual.form_ == "dual"
    f = model.predict(X)
    index = qid[:, None] == np.arange(200)
    centred = (y - f) - index @ (index.T @ (y - f) / 25)
    gradient = X.T @ (25 * centred) - model.coef_
    assert abs(gradient).max() < 1e-6 * abs(X.T @ (25 * y)).max()


def test_same_bits_for_any_number_of_threads(iterate):
    X, y, qid = wide_rows(9_000, 300, 5)
    one, two = (RankRLS(n_threads=k).fit(X, y, qid=qid).coef_ for k in (1, 2))
    assert (one == two).all()


def test_a_search_solves_directly(iterate):
    X, y, qid = wide_rows(50, 200, 5)
    assert RankRLSCV([1.0]).fit(X, y, qid=qid).form_ == "dual"


def test_too_few_steps_are_told(iterate, set_limits):
    X, y, qid = wide_rows(50, 200, 5)
    set_limits(gradient_steps=1)
    with pytest.warns(ConvergenceWarning, match="alpha=0.001"):
        RankRLS(1e-3).fit(X, y, qid=qid)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(iterate, bad):
    X, y, qid = wide_rows(50, 200, 5)
    X.data[3] = bad
    with warnings.catch_warnings(), pytest.raises(ValueError, match="X contains"):
        RankRLS().fit(X, y, qid=qid)


@pytest.mark.parametrize("scale", [False, True])
def test_columns_that_do_not_vary_have_the_weight_zero(iterate, scale):
    X, y, qid = wide_rows(100, 200, 5)
    wanted = RankRLS(scale=scale).fit(X, y, qid=qid).coef_
    constant = sp.csr_array((1e12 * (1.0 + qid))[:, None])
    found = RankRLS(scale=scale).fit(sp.hstack([constant, X], format="csr"), y, qid=qid).coef_
    assert found[0] == 0
    np.testing.assert_allclose(found[1:], wanted, atol=1e-8 * abs(wanted).max())
