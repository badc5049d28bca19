"""Slow, obvious NumPy versions of the compiled code: dense Laplacians and explicit pairs."""

import numpy as np

OMEGAS = {
    "with_ties": lambda a, b: 1.0,
    "without_ties": lambda a, b: float(a != b),
    "gain_difference": lambda a, b: abs(2.0**a - 2.0**b),
    "label_difference": lambda a, b: abs(a - b),
    # levels that no path of pairs joins
    "apart": lambda a, b: float(abs(a - b) == 1 and min(a, b) in (0, 2)),
}


def pair_weights(y, v, omega, weighting="pairs", query_weight=1.0):
    """W of one query, (n, n), from a scalar function omega(a, b)."""
    levels, at = np.unique(y, return_inverse=True)
    of_levels = np.array([[omega(a, b) for b in levels] for a in levels])
    W = np.outer(v, v) * of_levels.reshape(len(levels), len(levels))[np.ix_(at, at)]
    divisor = {"pairs": 1.0, "documents": v.sum(), "queries": W.sum() / 2}[weighting]
    return query_weight * W / divisor if divisor > 0 else 0 * W


def laplacian(y, query, pairs, v=None, weighting="pairs", query_weight=None):
    """L, (n, n), over all queries; `query` holds the id of every row; also returns Σ W."""
    n = len(y)
    v = np.ones(n) if v is None else v
    L, total = np.zeros((n, n)), 0.0
    for q in np.unique(query):
        rows = np.flatnonzero(query == q)
        c = 1.0 if query_weight is None else query_weight[rows[0]]
        if pairs is None:
            if weighting == "queries":
                c = c / v[rows].sum() if v[rows].sum() > 0 else 0.0
            L[rows, rows] = c * v[rows]
            total += c * v[rows].sum()
            continue
        omega = pairs if callable(pairs) else OMEGAS[pairs]
        W = pair_weights(y[rows], v[rows], omega, weighting, c)
        L[np.ix_(rows, rows)] = np.diag(W.sum(axis=1)) - W
        total += W.sum()
    return L, total


def statistics(X, y, query, pairs, v=None, weighting="pairs", query_weight=None, target="label"):
    """[X, t]ᵀ L [X, t] by dense matrices in float64, with t = y or 2^y − 1; and Σ W."""
    t = y if target == "label" else 2.0**y - 1
    rows = np.column_stack([np.asarray(X, dtype=float), t])
    L, total = laplacian(y, query, pairs, v, weighting, query_weight)
    return rows.T @ L @ rows, total


def objective(w, X, y, query, pairs, alpha, v=None):
    """½ Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))² + alpha ‖w‖² pair by pair."""
    f = X @ w
    value = alpha * w @ w
    v = np.ones(len(y)) if v is None else v
    for q in np.unique(query):
        rows = np.flatnonzero(query == q)
        for i in rows:
            for j in rows:
                weight = v[i] * v[j] * OMEGAS[pairs](y[i], y[j])
                value += 0.5 * weight * ((y[i] - y[j]) - (f[i] - f[j])) ** 2
    return value


def ridge(S, alpha, scale=None):
    """The weights from the statistics of [X, t]."""
    G, g = S[:-1, :-1], S[:-1, -1]
    t = np.ones(len(g)) if scale is None else scale
    return t * np.linalg.solve(t[:, None] * G * t + alpha * np.eye(len(g)), t * g)
