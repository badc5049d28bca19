"""Simulated clicks of users who look at some positions more than at others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector, not_finite
from pairgram._support.parameters import check_setting, check_size, number
from pairgram.data.queries import Queries, check_weights
from pairgram.features.feature_map import generator

if TYPE_CHECKING:
    from pairgram._support.types import RandomState


class ClickLog(NamedTuple):
    """Lists that were shown to users, row by row; the rows of a list stand together.

    Attributes
    ----------
    row : ndarray of shape (n_shown,), int64
        The number of the row that was given to `simulate`: ``X[log.row]`` are its features.
    impression : ndarray of shape (n_shown,), int64
        The number of the list, which is the `qid` of a fit to clicks.
    position : ndarray of shape (n_shown,), int64
        The position in the list from 1, or 0 for rows below the cut, which were not shown.
    click : ndarray of shape (n_shown,), float64
        1 where the user clicked, else 0.
    propensity : ndarray of shape (n_shown,), float64
        The probability that the user looked at the row; 0 if it was not shown.
    """

    row: Rows
    impression: Rows
    position: Rows
    click: Vector
    propensity: Vector


def simulate(
    y: ArrayLike,
    qid: ArrayLike | None,
    scores: ArrayLike,
    *,
    n_impressions: int = 1,
    k: int | None = 10,
    examination: ArrayLike | None = None,
    noise: float = 0.1,
    max_grade: float | None = None,
    random_state: RandomState = None,
) -> ClickLog:
    """Show lists of rankers to users, and draw what they click.

    Parameters
    ----------
    y : array-like of shape (n_rows,), ≥ 0
        Relevance labels. A row is attractive with the probability ``noise + (1 - noise) (2^y - 1) /
        (2^max_grade - 1)``.
    qid : array-like of shape (n_rows,), or None
        Query ids. None means that all rows are one query.
    scores : array-like of shape (n_rows,) or (n_rankers, n_rows)
        Scores of one or several rankers. Every list is ranked by one of them, drawn at random. With
        several rankers, rows appear at several positions, as `estimate_propensities` needs.
    n_impressions : int ≥ 1, default=1
        How many lists are shown for every query.
    k : int ≥ 1 or None, default=10
        How many rows of a list are shown. None shows all.
    examination : array-like of shape (k,), from 0 to 1, or None
        The probabilities of looking at each position; users click what they look at and what is
        attractive. Positions after the last one have its probability. None stands for ``1 / i``.
    noise : float from 0 to 1, default=0.1
        The probability that a row of label 0 is attractive.
    max_grade : float or None, default=None
        The label of a row that is always attractive. None takes the highest of `y`.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    ClickLog

    Raises
    ------
    ValueError
        If an argument is not as described; the message names it.

    References
    ----------
    Joachims, Swaminathan, Schnabel (2017). Unbiased learning-to-rank with biased feedback. WSDM.

    Examples
    --------
    >>> from pairgram import Clicks, RankRLSCV, make_ranking
    >>> from pairgram.clicks import simulate
    >>> X, y, qid = make_ranking(random_state=0)
    >>> log = simulate(y, qid, X[:, 0], n_impressions=20, random_state=0)
    >>> shown = log.position > 0
    >>> clicks, row = Clicks(log.click, log.propensity)[shown], log.row[shown]
    >>> model = RankRLSCV(feature_map="standard")
    >>> model = model.fit(X[row], clicks, qid=log.impression[shown], groups=qid[row])
    >>> model.scoring_.name
    'ips_dcg@10'
    """
    labels = check_weights(y, np.size(y), "y")
    n_rows = len(labels)
    check_size("n_impressions", n_impressions)
    if k is not None:
        check_size("k", k)
    rankers = np.atleast_2d(real_array(scores, "scores"))
    if rankers.ndim != 2 or rankers.shape[1] != n_rows or not_finite(rankers.ravel()) is not None:
        raise ArgumentError(
            "scores",
            f"must have a finite number for each of {n_rows} rows, got shape {np.shape(scores)}",
        )
    least = float(labels.max(initial=0.0))
    highest = least if max_grade is None else float(max_grade)
    check_setting("max_grade", highest, number(least, high=1000))
    check_setting("noise", noise, number(0, high=1))
    looks = _examination(examination)
    rng, queries = generator(random_state), Queries.make(n_rows, qid=qid)
    attraction = np.expm1(labels * np.log(2))
    if highest > 0:
        attraction /= np.expm1(highest * np.log(2))
    attraction = noise + (1 - noise) * attraction

    query = queries.index()
    orders = np.array([np.lexsort((-own, query)) for own in rankers])  # rows by query and place
    place = np.arange(n_rows) - np.repeat(queries.offsets[:-1], queries.sizes) + 1
    shown = np.where(place <= (n_rows if k is None else k), place, 0)
    # The lists of a query stand together: of each list, the number of its query and its first row.
    filled = np.flatnonzero(queries.sizes)
    list_query = np.repeat(filled, n_impressions)
    sizes = queries.sizes[list_query]
    impression = np.repeat(np.arange(len(list_query)), sizes)
    begin = np.cumsum(sizes) - sizes
    at = np.arange(len(impression)) - np.repeat(begin - queries.offsets[list_query], sizes)
    ranker = (rng.random(len(list_query)) * len(rankers)).astype(np.int64)
    row, position = orders[ranker[impression], at], shown[at]
    attractive = rng.random(len(row)) < attraction[row]
    propensity = np.where(position > 0, looks[np.minimum(position, len(looks)) - 1], 0.0)
    click = attractive & (rng.random(len(row)) < propensity)
    return ClickLog(row, impression, position, click.astype(np.float64), propensity)


def _examination(given: ArrayLike | None) -> Vector:
    """Return the probability of looking at every position, as far as they differ."""
    if given is None:
        return 1.0 / np.arange(1, 10_001)
    looks = check_weights(given, np.size(given), "examination")
    if not len(looks) or looks.max() > 1:
        raise ArgumentError("examination", f"must hold probabilities, got {given!r}")
    return looks
