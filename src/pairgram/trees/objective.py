"""The loss of pairwise least squares, as LightGBM and XGBoost take an objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector, not_finite
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.data.queries import Queries

PER_DOCUMENT = Pairs(weighting="documents")


class PairwiseObjective:
    """What `objective` returns: a function of scores, which returns gradient and curvature.

    Attributes
    ----------
    diagonal_ : ndarray of shape (n_rows,)
        The curvature, the diagonal of the Laplacian L, whose mean is 1.
    """

    def __init__(self, target: Vector, cell: Rows, omega: Vector, factor: Vector) -> None:
        n_levels = len(omega)
        self._target, self._cell, self._omega = target, cell, omega
        counts = np.bincount(cell, minlength=len(factor) * n_levels).reshape(-1, n_levels)
        share, degree = np.repeat(factor, n_levels), counts @ omega
        diagonal = share * (degree - np.diag(omega)).ravel()  # no row forms a pair with itself
        mean = diagonal[cell].mean()
        self._share, self.diagonal_ = share / mean, diagonal[cell] / mean
        self._degree = (share * degree.ravel())[cell] / mean

    def __repr__(self) -> str:
        return f"<PairwiseObjective of {len(self._target)} rows>"

    def __call__(self, scores: Vector, data: object = None) -> tuple[Vector, Vector]:
        """Return the gradient and the curvature, (n_rows,) each, at scores of all rows.

        `data` is what LightGBM and XGBoost hand on, and is not read.
        """
        if np.shape(scores) != self._target.shape:
            raise ArgumentError(
                "scores",
                f"must have shape {self._target.shape}, as the labels of the objective: it is for "
                f"one training set, got {np.shape(scores)}",
            )
        rest = scores - self._target
        sums = np.bincount(self._cell, rest, len(self._share))
        pulls = self._share * (sums.reshape(-1, len(self._omega)) @ self._omega).ravel()
        rest *= self._degree
        rest -= pulls[self._cell]
        return rest, self.diagonal_


def objective(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    pairs: PairsLike = PER_DOCUMENT,
) -> PairwiseObjective:
    """Return the loss of `RankRLS` as an objective for trees.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Relevance labels, any finite numbers. Their order is that of the rows of the training set.
    qid : array-like of shape (n_rows,), any hashable type, or None
        Query ids. Without them, all rows are one query.
    pairs : Pairs, str or callable, default=Pairs(weighting="documents")
        As in `RankRLS`: all but None, which is LightGBM's own objective "l2", and "clicks". Kinds
        other than "with_ties" take at most 1,000 distinct labels. With ``weighting="documents"``
        every row counts alike, so that a long list has no more say than its rows have.

    Returns
    -------
    callable
        ``objective(scores, data) -> (gradient, curvature)``, each of shape (n_rows,), float64: a
        value of LightGBM's parameter ``objective``, or the argument ``obj`` of ``xgboost.train``.
        It can be pickled.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Notes
    -----
    The objective is ``½ (f − y)ᵀ L (f − y)``, where L is the Laplacian of the pair weights W, and
    so ``¼ Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))²``. It is divided by a number, so that the mean of
    the curvature is 1, as for LightGBM's "l2": limits on leaves and ridges mean the same. The
    gradient is ``L (f − y)``, by sums over the rows of a query with a label. It takes O(n_rows)
    time, and K² for every query with K labels in the data; with "with_ties" labels do not matter,
    and K is 1. The curvature is the diagonal of L.

    Trees alone gain nothing beyond noise by this loss on the real data that were tried: see the
    page on trees.

    Examples
    --------
    >>> import lightgbm
    >>> from pairgram import make_ranking, trees
    >>> X, y, qid = make_ranking(random_state=0)
    >>> settings = {"objective": trees.objective(y, qid), "verbosity": -1}
    >>> booster = lightgbm.train(settings, lightgbm.Dataset(X, y), 20)
    >>> booster.predict(X).shape
    (2000,)
    """
    labels = real_array(y, "y")
    if labels.ndim != 1 or not len(labels):
        raise ArgumentError("y", f"must have shape (n_rows,) with n_rows >= 1, got {labels.shape}")
    if (row := not_finite(labels)) is not None:
        raise ArgumentError("y", f"must be finite, got {labels[row]} in {{place}}", row=row)
    settings = Pairs.of(pairs)
    if settings.kind is None or settings.is_of_clicks:
        raise ArgumentError(
            "pairs", f"must be of labels, such as 'with_ties', got {settings.kind!r}"
        )
    queries = Queries.make(len(labels), qid=None if settings.joins_all_rows else qid)
    level, omega = np.zeros(len(labels), dtype=np.int64), np.ones((1, 1))
    if settings.kind != "with_ties":
        values, level = np.unique(labels, return_inverse=True)
        known = settings.levels(labels)
        omega = 1 - np.eye(len(values)) if known is None else known[1]
    cell = queries.index() * len(omega) + level
    counts = np.bincount(cell, minlength=queries.n_queries * len(omega)).reshape(-1, len(omega))
    of_pairs = np.einsum("ij,ij->i", counts @ omega, counts)
    factor = settings.factor(counts.sum(axis=1).astype(float), of_pairs)
    if not (of_pairs > np.diag(omega) @ counts.T).any():
        wanted = "two rows" if settings.kind == "with_ties" else "two labels that differ"
        raise ArgumentError("y", f"must have {wanted} in a query, or no pair counts")
    return PairwiseObjective(settings.targets(labels), cell, omega, factor)
