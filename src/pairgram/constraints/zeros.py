"""`ElasticNet` and `MaxNonzero`: weights of which some are exactly 0."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.parameters import COUNT, FLAG, Setting, number
from pairgram.constraints.positive import bounded, root_of
from pairgram.solvers.constraint import Constraint
from pairgram.solvers.ridge_path import DEFAULT_POWERS

# Coordinate descent ends at this duality gap, as a share of the squared targets. It has to find
# only the signs: the weights then come from a linear system.
COARSE, FINE = 1e-8, 1e-14
MAX_ITER = 100_000
# A column is left out of a selection if the columns before it leave less than this share of it.
LEAST_LEFT = 1e-12


@dataclass(eq=False, repr=False)
class ElasticNet(Constraint):
    """A penalty that makes weights exactly 0, as a value of `constraint` of `RankRLS`.

    The penalty is ``alpha ((1 − r) ‖w‖² + 2 r ‖w‖₁)`` with the share r.

    Parameters
    ----------
    l1_ratio : float above 0, up to 1
        The share r.
    positive : bool, default=False
        Whether all weights must be ≥ 0.

    Notes
    -----
    scikit-learn's coordinate descent finds which weights are not 0; these are then solved for
    exactly. It takes about d³ flops for every alpha besides the Gram matrix of d features. The
    default ridges of `RankRLSCV` are 34 values: the first is the least at which all weights are 0,
    and each is ``2^(1/3)`` times the next.

    Examples
    --------
    >>> from pairgram import ElasticNet, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(1e4, constraint=ElasticNet(0.9)).fit(X, y, qid=qid)
    >>> bool((model.coef_ == 0).any())
    True
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "l1_ratio": number(0, above=True, high=1),
        "positive": FLAG,
    }

    l1_ratio: float
    _: KW_ONLY
    positive: bool = False

    def solve(self, G: Vector, g: Vector, alphas: Vector) -> Vector:
        """Return the weights for every alpha."""
        solutions, some = np.zeros((len(alphas), len(g))), alphas > 0
        positive = bool(self.positive)
        solutions[some] = _elastic_net(G, g, alphas[some], self.l1_ratio, positive)
        if not some.all():  # no penalty, which coordinate descent cannot do
            solutions[~some] = bounded(G, g, 0.0, np.full(len(g), positive), g > 0)
        return solutions

    def default_alphas(self, G: Vector, g: Vector, started: bool) -> Vector:
        """Return a descending grid, of which the first is the least with all weights 0."""
        largest = np.abs(g).max(initial=0.0) / self.l1_ratio or 1.0
        return np.asarray(largest * 2.0 ** (-np.arange(len(DEFAULT_POWERS)) / 3))


@dataclass(eq=False, repr=False)
class MaxNonzero(Constraint):
    """At most so many weights that are not 0, as a value of `constraint` of `RankRLS`.

    Columns of X are added one by one, always the one that lowers the objective most if all weights
    are fitted anew.

    Parameters
    ----------
    k : int ≥ 1
        The largest number of weights that are not 0.

    Notes
    -----
    This is a Cholesky decomposition with the best column as the next pivot. It takes about d³ flops
    for every alpha besides the Gram matrix of d features.

    Examples
    --------
    >>> from pairgram import MaxNonzero, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> int((RankRLS(constraint=MaxNonzero(3)).fit(X, y, qid=qid).coef_ != 0).sum())
    3
    """

    settings: ClassVar[Mapping[str, Setting]] = {"k": COUNT}

    k: int

    def of_columns(self, n_columns: int, n_weights: int, names: Any) -> MaxNonzero:
        """Return the same, after a check of the parameter."""
        found = super().of_columns(n_columns, n_weights, names)
        if n_columns != n_weights:
            raise ValueError(
                "MaxNonzero counts columns of X, of which these inputs make two weights each: take "
                "feature_map='quantile'"
            )
        if self.k > n_columns:
            raise ArgumentError("k", f"must be at most {n_columns}, got {self.k}")
        return found

    def solve(self, G: Vector, g: Vector, alphas: Vector) -> Vector:
        """Return the weights for every alpha."""
        return np.stack([_select(G, g, alpha, self.k) for alpha in alphas])


def _elastic_net(G: Vector, g: Vector, alphas: Vector, l1_ratio: float, positive: bool) -> Vector:
    """Return elastic nets, (n_alphas, n_features): signs by coordinate descent, then exact weights.

    scikit-learn divides the squared errors by the number of rows, which is that of the root here.
    """
    todo = np.argsort(-alphas, kind="stable")  # each starts from the solution before
    R, to_b = root_of(G)
    b = to_b @ g
    solutions = np.zeros((len(alphas), len(g)))
    if not b.any() or not len(alphas):
        return solutions
    for tol in (COARSE, FINE):
        with warnings.catch_warnings(record=True) as unfinished:
            warnings.simplefilter("always", ConvergenceWarning)
            _, coefs, _ = enet_path(
                R,
                b,
                l1_ratio=l1_ratio,
                alphas=alphas[todo] / len(R),
                precompute=np.ascontiguousarray(G),
                Xy=g,
                positive=positive,
                tol=tol,
                max_iter=MAX_ITER,
            )
        rough = []
        for at, coef in zip(todo, coefs.T, strict=True):
            exact = _polished(G, g, alphas[at], l1_ratio, coef, positive)
            solutions[at] = coef if exact is None else exact
            if exact is None:
                rough.append(at)
        todo = np.array(rough, dtype=np.int64)
        if not len(todo):
            return solutions
    if unfinished:  # with the finer tolerance
        warnings.warn(
            f"coordinate descent did not converge in {MAX_ITER} steps for {len(todo)} of "
            f"{len(alphas)} alphas: give larger alphas",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solutions


def _polished(
    G: Vector, g: Vector, alpha: float, l1_ratio: float, coef: Vector, positive: bool
) -> Vector | None:
    """Return the exact solution that has the signs of an approximation, or None if there is none.

    A solution has a gradient of ``alpha l1_ratio`` times the sign where a weight is not 0, and at
    most of this size elsewhere.
    """
    used = np.flatnonzero(coef)
    signs, l1 = np.sign(coef), alpha * l1_ratio
    A = G[np.ix_(used, used)] + alpha * (1 - l1_ratio) * np.eye(len(used))
    solution = np.zeros(len(g))
    if len(used):
        try:
            factor = scipy.linalg.cho_factor(A)
        except np.linalg.LinAlgError:
            return None
        solution[used] = scipy.linalg.cho_solve(factor, g[used] - l1 * signs[used])
    gradient = g - G @ solution
    size = gradient if positive else np.abs(gradient)
    unused = np.ones(len(g), dtype=bool)
    unused[used] = False
    slack = 1e-9 * np.abs(g).max(initial=0.0)
    agrees = (np.sign(solution[used]) == signs[used]).all()
    return solution if agrees and (size[unused] <= l1 + slack).all() else None


def _select(G: Vector, g: Vector, alpha: float, most: int) -> Vector:
    """Return the ridge solution on at most so many columns, added one by one, the best next first.

    The best next column lowers the objective most if all weights are fitted anew. This is Cholesky
    decomposition of ``G + alpha I`` with this choice of pivots, in n_columns · most² flops.
    """
    diagonal = G.diagonal() + alpha
    left, residual = diagonal.copy(), g.copy()
    factor, half = np.zeros((most, len(g))), np.zeros(most)
    chosen: list[int] = []
    for step in range(most):
        usable = left > LEAST_LEFT * diagonal
        usable[chosen] = False
        if not usable.any():
            break
        gains = np.where(usable, residual**2 / np.where(usable, left, 1.0), -1.0)
        j = int(np.argmax(gains))
        row = G[j] - factor[:step, j] @ factor[:step]
        row[j] += alpha
        row /= np.sqrt(left[j])
        half[step] = residual[j] / np.sqrt(left[j])
        residual -= row * half[step]
        left -= row**2
        factor[step] = row
        chosen.append(j)
    solution, n = np.zeros(len(g)), len(chosen)
    if n:  # the rows of the factor are a Cholesky factor of the chosen columns
        solution[chosen] = scipy.linalg.solve_triangular(factor[:n, chosen], half[:n])
    return solution
