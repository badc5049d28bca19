"""Kernel models by dense systems, refitted without the rows that are held out."""

import numpy as np

import reference
from parts.data import checked_data

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]


def data_of(problem, K):
    return checked_data(K, problem.y, **problem.named)


def laplacian(problem, settings, rows=slice(None)):
    """The Laplacian of some rows."""
    query = problem.query[rows]
    if settings.scope == "global" and settings.kind is not None:
        query = np.zeros_like(query)
    weights = [None if w is None else w[rows] for w in (problem.v, problem.query_weight)]
    return reference.laplacian(
        problem.y[rows], query, settings.kind, weights[0], settings.weighting, weights[1]
    )[0]


def explicit(problem, K, settings, alpha, train=None):
    """(L K + alpha I)⁻¹ L y of the training rows, with an entry for every row.

    Refined with residuals in extended precision: the system is not symmetric, and its condition is
    far above that of R K Rᵀ + alpha I.
    """
    train = np.arange(len(problem.y)) if train is None else train
    t = problem.y if settings.target == "label" else 2.0**problem.y - 1
    L, K = laplacian(problem, settings, train), K[np.ix_(train, train)]
    inverse = np.linalg.inv(L @ K + alpha * np.eye(len(train)))
    L, K = L.astype(np.longdouble), K.astype(np.longdouble)
    solution = np.zeros(len(train), np.longdouble)
    for _ in range(3):
        solution += inverse @ (L @ (t[train] - K @ solution) - alpha * solution).astype(float)
    coef = np.zeros(len(problem.y))
    coef[train] = solution
    return coef


def size_of(L, K):
    """The sum of the eigenvalues of R K Rᵀ, 1 where there are no pairs."""
    return (L * K).sum() or 1.0


def assert_scores(actual, expected, y, tolerance=1e-8):
    size = max(np.abs(expected).max(initial=0.0), np.abs(y).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


def refits(problem, K, settings, alphas, splits):
    """The scores of every split's test rows by explicit dual refits."""
    return [
        np.array([K[test] @ explicit(problem, K, settings, alpha, train) for alpha in alphas])
        for train, test in splits
    ]
