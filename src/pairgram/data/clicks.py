"""Clicks and propensities: their checks, and the targets that clicks of a list make."""

from __future__ import annotations

import numpy as np

from pairgram._support.checks import Rows, Vector


def wrong_click(clicks: Vector, propensity: Vector) -> tuple[int, bool, str] | None:
    """Return the first row with a negative click or a wrong propensity, or None if all are right.

    A propensity is above 0 and at most 1 where there is a click. Elsewhere it may be 0 or NaN as
    well, which say that the row was not shown. The result is the number of the row, whether the
    click is what is wrong, and what is wanted and found.
    """
    with np.errstate(invalid="ignore"):
        outside = (propensity < 0) | (propensity > 1)
        unseen = (clicks > 0) & ~(propensity > 0)
    for bad, values, wanted in (
        (
            ~((clicks >= 0) & np.isfinite(clicks)),
            clicks,
            "must hold clicks, which are finite and 0 or more",
        ),
        (outside, propensity, "must be from 0 to 1"),
        (unseen, propensity, "must be above 0 where there is a click"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            return row, values is clicks, f"{wanted}, got {values[row]:g}"
    return None


def click_targets(clicks: Vector, weights: Vector, query: Rows, n_queries: int) -> Vector:
    """Return targets whose differences, fitted with the pairs of clicks, say what clicks say.

    Row i of a list was clicked ``a_i`` times, if every click is counted ``1 / propensity`` times.
    A click says that the score of its row is 1 above that of every other row j of the list, so the
    sum is ``Σ_i a_i Σ_j v_i v_j (1 − (f_i − f_j))²``. Two rows meet in it with the weight
    ``a_i + a_j`` and the target ``(a_i − a_j) / (a_i + a_j)``, which is no difference of two
    numbers of rows. The sum has the same gradient as one of differences of

        ``y_i = P a_i / (V a_i + A)``,  ``V = Σ v``, ``A = Σ v a``,  ``P = A / Σ v a² / (V a + A)``,

    because ``L y`` of these is ``v_i (V a_i − A)``, what the clicks pull at each row. O(n_rows).

    Parameters
    ----------
    clicks : ndarray of shape (n_rows,), float64, ≥ 0
        The numbers a.
    weights : ndarray of shape (n_rows,), float64
        The row weights v.
    query : ndarray of shape (n_rows,), int64
    n_queries : int
    """

    def total(values: Vector) -> Vector:
        return np.bincount(query, values, minlength=n_queries).astype(np.float64)

    clicked = total(weights * clicks)
    degrees = total(weights)[query] * clicks + clicked[query]
    shares = np.divide(clicks, degrees, out=np.zeros_like(clicks), where=degrees > 0)
    pull = total(weights * clicks * shares)
    scale = np.divide(clicked, pull, out=np.zeros_like(pull), where=pull > 0)
    return scale[query] * shares
