"""Slow references of comparisons: differences written out, and refits without what is held out."""

import numpy as np


def written_out(X, winner, loser):
    """Return the differences of rows, one after the other."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return np.array([X[i] - X[j] for i, j in zip(winner, loser, strict=True)])


def ridge(Z, margin, weight, alpha):
    """Return the solution of ``Σ w (m − zᵀc)² + alpha ‖c‖²``."""
    G = (Z.T * weight) @ Z + alpha * np.eye(Z.shape[1])
    return np.linalg.solve(G, Z.T @ (weight * margin))


def folds_of(way, winner, loser, groups=None):
    """Return lists of the comparisons that are held out together."""
    every = np.arange(len(winner))
    if way == "leave-comparison-out":
        return [every[[p]] for p in every]
    if way == "leave-group-out":
        return [every[groups == one] for one in np.unique(groups)]
    items = np.union1d(winner, loser)
    return [every[(winner == item) | (loser == item)] for item in items]


def refitted(Z, margin, weight, alpha, folds):
    """Yield (comparisons, their scores by the model of all others) of every fold."""
    every = np.arange(len(Z))
    for test in folds:
        train = np.setdiff1d(every, test)
        yield test, Z[test] @ ridge(Z[train], margin[train], weight[train], alpha)


def judged(name, Z, margin, weight, alpha, folds):
    """Return the mean of a metric over held-out comparisons."""
    total, sums = 0.0, 0.0
    for test, scores in refitted(Z, margin, weight, alpha, folds):
        if name == "squared_error":
            values, own = (margin[test] - scores) ** 2, weight[test]
        else:
            values = np.where(scores > 0, 1.0, np.where(scores == 0, 0.5, 0.0))
            own = np.where(margin[test] > 0, weight[test], 0.0)
        total, sums = total + own.sum(), sums + own @ values
    return sums / total
