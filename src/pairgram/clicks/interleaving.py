"""Team-draft interleaving: two rankers share one list, and clicks tell which is better."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from pairgram._support.checks import AnyArray, ArgumentError, verbatim
from pairgram._support.parameters import check_size
from pairgram.data.queries import Queries, check_weights, read_ids
from pairgram.features.feature_map import generator

if TYPE_CHECKING:
    from pairgram._support.types import RandomState

A, B = "a", "b"


class Interleaved(NamedTuple):
    """One list that shows the items of two rankers.

    Attributes
    ----------
    items : list
        The items to show, the first one on top.
    team : ndarray of shape (n_items,) of str
        For every item, "a" or "b": the ranker that contributed it.
    """

    items: list[Any]
    team: AnyArray


def interleave(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    k: int | None = None,
    random_state: RandomState = None,
) -> Interleaved:
    """Mix two result lists into one by team-draft interleaving.

    In every round, each ranker appends its best item that is not in the list yet. A coin decides
    which ranker comes first in a round. At any depth, the numbers of items of the two rankers
    therefore differ by at most one, and neither has better positions on average.

    Parameters
    ----------
    a, b : sequence of hashable items
        The ranked items of both rankers, the best one first, without repetitions.
    k : int ≥ 1 or None, default=None
        How many items to show at most. The list also ends as soon as the ranker whose turn it is
        has no other item left. None sets no limit.
    random_state : int, RandomState, Generator or None, default=None
        The source of the draws. Give one generator to all calls of an experiment: the same int in
        every call would draw the same order for every list.

    Returns
    -------
    Interleaved
        The items, and the team of each. Log the teams beside the clicks, because `credit` needs
        both.

    Raises
    ------
    ValueError
        If an item stands twice in a list, or if `k` is not such a number.

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
        The numbers of lists in which the items of "a" were clicked more often, those of "b" were,
        or both equally often.
    share : float
        The share of the lists with a winner that "a" won; 0.5 means equally good. If no list has a
        winner, this and the numbers below are NaN.
    low, high : float
        The ends of the exact 95 % interval of the share.
    p : float
        The two-sided p-value of the sign test, whose null hypothesis is that both rankers are
        equally likely to win a list.
    """

    wins_a: int
    wins_b: int
    ties: int
    share: float
    low: float
    high: float
    p: float


def credit(team: ArrayLike, clicks: ArrayLike, qid: ArrayLike) -> Credit:
    """Count the lists that each ranker won by its clicks, and test whether one is better.

    Parameters
    ----------
    team : array-like of shape (n_rows,) of "a" and "b"
        The teams of all shown items, as `interleave` returns them.
    clicks : array-like of shape (n_rows,), finite and ≥ 0
        Whether each item was clicked, or how often.
    qid : array-like of shape (n_rows,)
        The id of the list of each item. Every list that was shown needs an id of its own, even if
        the same query was shown before.

    Returns
    -------
    Credit

    Raises
    ------
    ValueError
        If the shapes differ, if a team is neither "a" nor "b", or if clicks are not as described.

    Notes
    -----
    A list is won by the ranker whose items got more clicks, by whatever margin. The sign test is
    that of Chapelle, Joachims, Radlinski and Yue (2012). It assumes that lists are independent, and
    that their number was fixed before the first look. If you look repeatedly and stop as soon as p
    is small, you find differences where there are none. If users come back, count all lists of a
    user as one list, with one id.

    Examples
    --------
    >>> from pairgram.clicks import credit
    >>> credit(["a", "b", "b", "a"], [1, 0, 0, 1], qid=[1, 1, 2, 2]).wins_a
    2
    """
    counts = check_weights(clicks, np.size(clicks), "clicks")
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
