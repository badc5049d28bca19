"""A Gaussian process with a flat constant for every list, in 50 digits, by its definition."""

from functools import cached_property

import mpmath
import numpy as np
from mpmath import mp


def exact(values):
    """Return numbers as a matrix of mpmath."""
    return mp.matrix(np.atleast_2d(values).tolist())


def column(values):
    return exact(values).T


def linear(X, Z):
    return exact(X) * exact(Z).T


def rbf(gamma):
    """Return the rbf kernel in 50 digits."""

    def kernel(X, Z):
        X, Z = (np.vectorize(mp.mpf, otypes=[object])(part) for part in (X, Z))
        rows = [[mp.exp(-mp.mpf(gamma) * ((x - z) ** 2).sum()) for z in Z] for x in X]
        return mp.matrix(rows)

    return kernel


class Process:
    """``y_i = f_i + b_q + e_i``, ``var e_i = σ² / v_i`` and ``cov f = σ² K / alpha``.

    All is in units of σ². Nothing is shared with the package but the model.
    """

    def __init__(self, kernel, X, y, qid, weight, alpha):
        self.kernel, self.X, self.qid, self.alpha = kernel, X, qid, mp.mpf(alpha)
        self.y, self.weight = column(y), [mp.mpf(w) for w in weight]
        self.lists = sorted(set(qid.tolist()))
        self.B = exact(np.array(qid[:, None] == self.lists, float))
        self.inverse = (kernel(X, X) / self.alpha + mp.diag([1 / w for w in self.weight])) ** -1

    @cached_property
    def flat(self):
        """``Bᵀ C⁻¹ B`` for the covariance C of the labels and the lists B."""
        return self.B.T * self.inverse * self.B

    @cached_property
    def projected(self):
        """``C⁻¹`` without what the constants explain."""
        half = self.inverse * self.B
        return self.inverse - half * self.flat**-1 * half.T

    def mean(self, X):
        return (self.kernel(X, self.X) / self.alpha) * (self.projected * self.y)

    def covariance(self, X, Z):
        ours, theirs = (self.kernel(part, self.X) / self.alpha for part in (X, Z))
        return self.kernel(X, Z) / self.alpha - ours * self.projected * theirs.T

    @property
    def degrees(self):
        return len(self.weight) - len(self.lists)

    @cached_property
    def left(self):
        return (self.y.T * self.projected * self.y)[0]

    @property
    def evidence(self):
        """The restricted likelihood at its best noise, of labels of weight 1."""
        size = mp.log(mp.det(self.flat)) - mp.log(mp.det(self.inverse))
        totals = self.B.T * mp.matrix(self.weight)
        alone = sum(map(mp.log, totals)) - sum(map(mp.log, self.weight))
        noise = self.left / self.degrees
        return -(self.degrees * (mp.log(2 * mp.pi * noise) + 1) + size - alone) / 2

    @property
    def noise_of_held_out_lists(self):
        """``Σ z_qᵀ L_q r_q / (N − q)`` with residuals z of models without the list, r of all."""
        total = mp.mpf(0)
        for one in self.lists:
            own, rest = self.qid == one, self.qid != one
            weight, y = np.array(self.weight), np.array(list(self.y))
            told = self.X[rest], y[rest], self.qid[rest], weight[rest]
            without = Process(self.kernel, *told, self.alpha)
            z, r = (y[own] - list(model.mean(self.X[own])) for model in (without, self))
            w = weight[own]
            total += (w * (z - (w @ z) / w.sum()) * r).sum()
        return total / self.degrees


mpmath.mp.dps = 50
