"""RankSVM by explicit pairs: the sparse matrix A of their differences, slow and obvious."""

import numpy as np
import scipy.sparse as sp


def preference_pairs(y, query, v=None, query_weight=None, weighting="pairs"):
    """Return (A, W): a row e_i − e_j of A and a weight for every pair with y_i > y_j."""
    v = np.ones(len(y)) if v is None else v
    pairs, weights = [], []
    for q in np.unique(query):
        rows = np.flatnonzero(query == q)
        pairs.append(rows[np.argwhere(y[rows, None] > y[rows])])
        products = v[pairs[-1]].prod(axis=1)
        divisor = {"pairs": 1.0, "documents": v[rows].sum(), "queries": products.sum()}[weighting]
        c = 1.0 if query_weight is None else query_weight[rows[0]]
        weights.append(c * products / divisor if divisor > 0 else 0 * products)
    (winners, losers), weights = np.concatenate(pairs).T, np.concatenate(weights)
    count = len(weights)
    each = np.arange(count)
    A = sp.csr_array((np.ones(count), (each, winners)), shape=(count, len(y)))
    A = A - sp.csr_array((np.ones(count), (each, losers)), shape=(count, len(y)))
    return A, weights


def pair_loss(f, A, W, loss="squared_hinge"):
    """Return the loss of eq. 22 (or that of all pairs), its gradient, and the diagonal of D.

    The Hessian is 2 AᵀDA, that of the logistic loss too.
    """
    if loss == "logistic":
        d = A @ f
        less = np.exp(-np.logaddexp(0, d))  # 1 − σ(d)
        D = W * less * np.exp(-np.logaddexp(0, -d)) / 2
        return W @ np.logaddexp(0, -d), -(A.T @ (W * less)), D
    p = 1 - A @ f
    D = W * (p > 0) if loss == "squared_hinge" else W
    return D @ p**2, -2 * (A.T @ (D * p)), D


def objective(w, H, A, W, C, loss="squared_hinge"):
    """½ ‖w‖² + C Σ W max(0, 1 − (f_i − f_j))², and its gradient."""
    value, gradient, _ = pair_loss(H @ w, A, W, loss)
    return 0.5 * w @ w + C * value, w + C * (H.T @ gradient)
