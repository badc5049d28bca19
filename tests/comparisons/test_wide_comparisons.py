"""Comparisons of sparse rows with very many columns, by conjugate gradients."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge

from pairgram import Preferences, RankRLS, RankRLSCV


def made(seed=0, n_items=300, n_columns=900, n_pairs=1200):
    """Return sparse items, comparisons with weights and margins, and their differences, dense."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array(
        (n_items, n_columns), density=0.01, random_state=rng, format="csr"
    )
    winner = rng.integers(0, n_items, n_pairs)
    loser = (winner + rng.integers(1, n_items, n_pairs)) % n_items
    told = {"weight": rng.uniform(0.5, 2, n_pairs), "margin": rng.uniform(0, 3, n_pairs)}
    groups = rng.integers(0, 9, n_pairs)
    y = Preferences(winner, loser, groups=groups, **told)
    dense = X.toarray()
    return X, y, dense[winner] - dense[loser]


def reference(Z, y, alpha, rows=slice(None), target=None):
    target = y.margin if target is None else target
    model = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky")
    return model.fit(Z[rows], target[rows], sample_weight=y.weight[rows]).coef_


@pytest.mark.parametrize("started", [False, True])
def test_one_ridge(set_limits, started):
    X, y, Z = made()
    set_limits(direct_seconds=0.0, step_patience=1e9)
    offset = np.random.default_rng(1).normal(size=X.shape[0]) if started else None
    target = y.margin - (y.differences(offset) if started else 0.0)
    for alpha in (0.01, 1.0):
        expected = reference(Z, y, alpha, target=target)
        model = RankRLS(alpha).fit(X, y, offset=offset)
        size = 1e-6 * np.abs(expected).max()
        np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=size)
        dense = RankRLS(alpha).fit(X.toarray(), y, offset=offset)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=0, atol=size)


@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
def test_every_ridge_by_folds(set_limits, scoring):
    X, y, Z = made()
    alphas = np.array([0.1, 10.0])
    set_limits(direct_seconds=0.0, step_patience=1e9, exact_patience=0.0)
    search = RankRLSCV(alphas, scoring=scoring).fit(X, y)
    assert search.cv_ == "5 splits of groups"
    parts = np.random.default_rng(0).integers(0, 4, y.n_pairs)
    splits = [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(4)]
    search = RankRLSCV(alphas, scoring=scoring, cv=splits).fit(X, y)
    for alpha, found in zip(alphas, search.cv_results_["mean_test_score"], strict=True):
        scores = np.zeros(y.n_pairs)
        for train, test in splits:
            scores[test] = Z[test] @ reference(Z, y, alpha, train)
        values = (np.sign(scores) + 1) / 2 if scoring == "accuracy" else (y.margin - scores) ** 2
        counted = y.margin > 0 if scoring == "accuracy" else y.margin >= 0
        expected = np.average(values[counted], weights=y.weight[counted])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        if alpha == search.alpha_:
            np.testing.assert_allclose(search.held_out_, scores, rtol=1e-5, atol=1e-6)


def test_what_is_asked_for_by_name_is_exact(set_limits):
    X, y, _ = made()
    exact = RankRLSCV([1.0], cv="leave-item-out").fit(X.toarray(), y).best_score_
    set_limits(direct_seconds=0.0, step_patience=1e9, exact_patience=0.0)
    search = RankRLSCV([1.0], cv="leave-item-out").fit(X, y)
    assert search.cv_ == "leave-item-out"
    np.testing.assert_allclose(search.best_score_, exact)


def test_steps_that_take_too_long_are_left(set_limits):
    X, y, Z = made()
    set_limits(direct_seconds=0.0, step_patience=1e-9)
    found = RankRLSCV([0.1, 1.0], cv=3).fit(X, y)
    np.testing.assert_allclose(found.coef_, reference(Z, y, found.alpha_), rtol=1e-6, atol=1e-8)


def test_entries_of_one_place_are_added_up(set_limits):
    X, y, Z = made()
    set_limits(direct_seconds=0.0, step_patience=1e9)
    halves = X.data / 2, np.repeat(X.indices, 2), 2 * X.indptr
    twice = scipy.sparse.csr_array((np.repeat(halves[0], 2), *halves[1:]), shape=X.shape)
    assert not twice.has_canonical_format
    found = RankRLS(0.1).fit(twice, y).coef_
    np.testing.assert_allclose(found, reference(Z, y, 0.1), rtol=1e-6, atol=1e-8)
    assert twice.nnz == 2 * X.nnz


def test_features_that_differ_nowhere_have_no_weight(set_limits):
    X, y, Z = made()
    set_limits(direct_seconds=0.0, step_patience=1e9)
    constant = scipy.sparse.csr_array(np.full((X.shape[0], 1), 1e3))
    wide = scipy.sparse.hstack([X, constant], format="csr")
    found = RankRLS(0.1).fit(wide, y).coef_
    assert found[-1] == 0.0
    np.testing.assert_allclose(found[:-1], reference(Z, y, 0.1), rtol=1e-6, atol=1e-7)


def test_differences_whose_squares_vanish_are_refused(set_limits):
    X, y, _ = made()
    set_limits(direct_seconds=0.0, step_patience=1e9)
    with pytest.raises(ValueError, match="too small"):
        RankRLS(0.1).fit(X * 1e-170, y)
