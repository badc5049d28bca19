"""Team-draft interleaving: two rankers share one list, and clicks tell which is better."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, verbatim
from pairgram._support.parameters import check_size
from pairgram.data.queries import Queries, read_ids
from pairgram.features.base import generator

if TYPE_CHECKING:
    from pairgram._support.types import RandomState

A, B = "a", "b"


class Interleaved(NamedTuple):
    """One list of two rankers.

    Attributes
    ----------
    items : list
        The items to show, the first one on top.
    team : ndarray of shape (n_items,) of str
        For every item, "a" or "b": the ranker that put it there.
    """

    items: list[Any]
    team: NDArray[Any]


def interleave(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    k: int | None = None,
    random_state: RandomState = None,
) -> Interleaved:
    """Make one list of two by team-draft interleaving.

    In every round each ranker puts its best item that is not in the list yet below the others; who
    comes first in a round is drawn. So both rankers have as many items in the list, to one, at any
    depth, and none has better places on average.

    Parameters
    ----------
    a, b : sequence of hashable items
        The ranked items of both rankers, the best one first, without repetitions.
    k : int ≥ 1 or None, default=None
        How many items to show at most. None shows all until a ranker has no other item left.
    random_state : int, RandomState, Generator or None, default=None
        The source of the draws. Give one generator to all calls of an experiment: the same int in
        every call would draw the same order for every list.

    Returns
    -------
    Interleaved
        The items, and the team of each, to be logged beside the clicks for `credit`.

    Raises
    ------
    ValueError
        If an item stands twice in a list.

    References
    ----------
    Radlinski, Kurup, Joachims (2008). How does clickthrough data reflect retrieval quality? CIKM.

    Examples
    --------
    >>> from pairgram.clicks import interleave
    >>> interleave(["x", "y", "z"], ["z", "x", "w"], k=3, random_state=0).items
    ['z', 'x', 'w']
    """
    if k is not None:
        check_size("k", k)
    for name, items in ((A, a), (B, b)):
        if len(set(items)) < len(items):
            twice = next(item for at, item in enumerate(items) if item in items[:at])
            raise ArgumentError(
                name, f"must hold every item once, got {verbatim(repr(twice))} twice"
            )
    rng = generator(random_state)
    left, none = {A: iter(a), B: iter(b)}, object()
    shown: dict[Any, None] = {}
    team: list[str] = []
    while k is None or len(shown) < k:
        n_a = team.count(A)
        first = n_a < len(team) - n_a or (2 * n_a == len(team) and rng.random() < 0.5)
        turn = A if first else B
        item = next((one for one in left[turn] if one not in shown), none)
        if item is none:  # this ranker has no other item
            break
        shown[item] = None
        team.append(turn)
    return Interleaved(list(shown), np.array(team, dtype="U1"))


class Credit(NamedTuple):
    """Which of two interleaved rankers got more clicks.

    Attributes
    ----------
    wins_a, wins_b, ties : int
        In how many lists a ranker's items were clicked more often than the other's, and as often.
    share : float
        The share of the lists with a winner that "a" won; 0.5 means equally good. NaN if there are
        none.
    low, high : float
        The ends of the exact 95 % interval of the share.
    p : float
        The two-sided p-value of the sign test: that both win as often. NaN if no list has a winner.
    """

    wins_a: int
    wins_b: int
    ties: int
    share: float
    low: float
    high: float
    p: float


def credit(team: ArrayLike, clicks: ArrayLike, qid: ArrayLike) -> Credit:
    """Count the lists that either ranker won by its clicks, and test whether one is better.

    Parameters
    ----------
    team : array-like of shape (n_rows,) of "a" and "b"
        The teams of all shown items, as `interleave` returns them.
    clicks : array-like of shape (n_rows,), finite and ≥ 0
        Whether each item was clicked, or how often.
    qid : array-like of shape (n_rows,)
        The list of each item: every list that was shown has an id of its own, not every query.

    Returns
    -------
    Credit

    Raises
    ------
    ValueError
        If the shapes differ, or if a team is neither "a" nor "b".

    Notes
    -----
    A list is won by the ranker whose items got more clicks, by whatever margin; the sign test is
    then that of the literature (Chapelle, Joachims, Radlinski, Yue 2012). It takes lists as
    independent, and their number as fixed before: who looks again and again, and stops when p is
    small, finds differences where there are none. Lists of one user are better counted as one list,
    with one id.

    Examples
    --------
    >>> from pairgram.clicks import credit
    >>> credit(["a", "b", "b", "a"], [1, 0, 0, 1], qid=[1, 1, 2, 2]).wins_a
    2
    """
    counts = real_array(clicks, "clicks")
    if counts.ndim != 1:
        raise ArgumentError("clicks", f"must have one value per row, got shape {counts.shape}")
    bad = ~(np.isfinite(counts) & (counts >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ArgumentError(
            "clicks", f"must be finite and >= 0, got {counts[row]} in {{place}}", row=row
        )
    teams = read_ids(team, len(counts), "team")
    of_a = teams == A
    other = ~(of_a | (teams == B))
    if other.any():
        row = int(np.argmax(other))
        raise ArgumentError(
            "team", f"must be 'a' or 'b', got {verbatim(repr(teams[row]))} in {{place}}", row=row
        )
    lists = Queries.make(len(counts), qid=qid)
    leads = np.bincount(lists.index(), np.where(of_a, counts, -counts), minlength=lists.n_queries)
    wins_a, wins_b = int((leads > 0).sum()), int((leads < 0).sum())
    ties, decided = lists.n_queries - wins_a - wins_b, wins_a + wins_b
    if decided == 0:
        return Credit(0, 0, ties, np.nan, np.nan, np.nan, np.nan)
    test = binomtest(wins_a, decided)
    low, high = test.proportion_ci(0.95)
    return Credit(wins_a, wins_b, ties, wins_a / decided, float(low), float(high), test.pvalue)
