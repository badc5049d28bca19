"""From interactions to rows: negative sampling, and leave-last-out splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Flags,
    Rows,
    Vector,
    warn_caller,
)
from pairgram._support.parameters import check_size, check_text
from pairgram.cross.ids import distinct_ascending, distinct_ids, id_array, places_among
from pairgram.data.queries import Queries, as_ids
from pairgram.features.feature_map import generator

if TYPE_CHECKING:
    from pairgram._support.types import Draws, RandomState

By = Literal["uniform", "popularity"]


class SampledRows(NamedTuple):
    """What `sample_negatives` returns: rows to fit to, with those of a user together.

    The interactions of a user come first, and then the items that were drawn.
    ``pandas.DataFrame(rows._asdict())`` is a frame of them.

    Attributes
    ----------
    users : ndarray of shape (n_rows,)
        The ids of the users, which serve as query ids.
    items : ndarray of shape (n_rows,)
        The ids of the items.
    labels : ndarray of shape (n_rows,), float64
        1 for interactions, and 0 for items that were drawn.
    source : ndarray of shape (n_rows,), int64
        The number of the interaction that the row is, or for which its item was drawn.
    """

    users: AnyArray
    items: AnyArray
    labels: Vector
    source: Rows


def sample_negatives(
    users: ArrayLike,
    items: ArrayLike,
    n: int = 1,
    *,
    by: By = "uniform",
    catalog: ArrayLike | None = None,
    random_state: RandomState = None,
) -> SampledRows:
    """Return interactions, and for each of them n items that its user has not seen.

    The items drawn for a user all differ. A user with m interactions gets ``n m`` of them, or all
    unseen items if there are fewer.

    Parameters
    ----------
    users, items : array-like of shape (n_interactions,)
        The ids of the user and the item of every interaction. A pair may occur several times.
    n : int ≥ 1, default=1
        The number of items to draw for every interaction.
    by : {"uniform", "popularity"}, default="uniform"
        Whether all items are equally likely, or likely in proportion to their numbers of
        interactions. Items are drawn for a user without replacement.
    catalog : array-like of shape (n_items,) or None, default=None
        The ids of all items to draw from, each of them once. None takes the items that have an
        interaction.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    SampledRows
        At most n_interactions + n · n_interactions rows, ready for ``fit(..., qid=rows.users)``.

    Raises
    ------
    ValueError
        If a length or an id is wrong, or an item is not in the catalog. The message names it.

    Warns
    -----
    UserWarning
        If users have fewer unseen items than were asked for. The message tells how many users.

    Notes
    -----
    Seen items are never drawn and rejected. A random place among the unseen items, or among their
    interactions, is turned into an item by one binary search in what all users have seen. If two
    draws of a user give the same item, the second is drawn again without it. The time is
    O(N log N) for N rows, and the memory O(N).

    Examples
    --------
    >>> from pairgram import sample_negatives
    >>> rows = sample_negatives(["ann", "bob", "ann"], [1, 2, 3], catalog=range(6), random_state=0)
    >>> rows.users.tolist(), rows.labels.tolist()
    (['ann', 'ann', 'ann', 'ann', 'bob', 'bob'], [1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    >>> set(rows.items[2:4].tolist()) <= {0, 2, 4, 5}
    True
    """
    n = check_size("n", n)
    check_text("by", by, get_args(By))
    rng = generator(random_state)
    of_users = _users_of(users)
    codes, ids = _codes(items, catalog, of_users.n_rows)
    n_users, n_items = of_users.n_queries, len(ids)
    weights = np.bincount(codes, minlength=n_items) if by == "popularity" else None
    total = n_items if weights is None else int(weights.sum())
    if n_users * (max(total, n_items) + 1) >= 2**63:
        raise ArgumentError("users", f"must be fewer for {n_items} items, got {n_users}")
    place = of_users.index()
    seen = distinct_ascending(place * n_items + codes)
    n_left = (n_items if weights is None else int((weights > 0).sum())) - np.bincount(
        seen // max(n_items, 1), minlength=n_users
    )  # an item that was seen has an interaction, so that it may be drawn
    wanted = n * of_users.sizes
    found = np.minimum(wanted, n_left)
    _tell_of_few(found, wanted, of_users)
    owner = np.repeat(np.arange(n_users), found)
    drawn = _drawn(owner, seen, n_items, weights, rng)

    order = np.arange(len(codes)) if of_users.order is None else of_users.order
    within = np.arange(len(drawn)) - np.repeat(np.cumsum(found) - found, found)
    source = order[of_users.offsets[:-1][owner] + within // n]
    # Rows of a user stand together: what was drawn comes behind the interactions.
    owners = np.concatenate((np.repeat(np.arange(n_users), of_users.sizes), owner))
    rows = np.argsort(owners, kind="stable")
    assert of_users.ids is not None
    return SampledRows(
        of_users.ids[owners[rows]],
        ids[np.concatenate((of_users.grouped(codes), drawn))[rows]],
        np.concatenate((np.ones(len(codes)), np.zeros(len(drawn))))[rows],
        np.concatenate((order, source))[rows],
    )


def _users_of(users: ArrayLike) -> Queries:
    """Return users as queries of their rows."""
    ids = id_array(users, "users")
    return Queries.make(len(ids), qid=ids, name="users")


def _codes(items: ArrayLike, catalog: ArrayLike | None, n_rows: int) -> tuple[Rows, AnyArray]:
    """Return the numbers of items, and the ids that they are numbers of."""
    queries = Queries.make(n_rows, qid=items, name="items")
    assert queries.ids is not None
    if catalog is None:
        return queries.index(), queries.ids
    known = distinct_ids(catalog, "catalog")
    return places_among(queries.ids, known, "items", "items of the catalog")[queries.index()], known


def _tell_of_few(found: Rows, wanted: Rows, users: Queries) -> None:
    few = np.flatnonzero(found < wanted)
    if len(few):
        first = few[0]
        warn_caller(
            f"{len(few)} of {len(found)} users have seen so much that fewer items are left than "
            f"are asked for, and get all of them: user {users.name(int(first))} gets "
            f"{found[first]} in place of {wanted[first]}",
            UserWarning,
        )


def _drawn(owner: Rows, taken: Rows, n_items: int, weights: Rows | None, rng: Draws) -> Rows:
    """Return an item for every row of some users, such that the items of a user differ.

    Parameters
    ----------
    owner : ndarray of shape (n_rows,), int64
        The user of every row, in ascending order.
    taken : ndarray of int64
        ``user * n_items + item`` of what may not be drawn, in ascending order.
    n_items : int
    weights : ndarray of shape (n_items,), int64, or None
        How likely items are. None stands for 1.
    """
    found = np.empty(len(owner), np.int64)
    pending = np.arange(len(owner))
    while len(pending):  # every user gets an item in every round, or more
        of_rows = owner[pending]
        pairs = of_rows * n_items + _round(of_rows, taken, n_items, weights, rng)
        again = _repeated(pairs)
        found[pending] = pairs % max(n_items, 1)
        users = of_rows[again]
        kept = np.concatenate((taken, pairs[~again]))
        taken = np.sort(kept[np.isin(kept // max(n_items, 1), users)])
        pending = pending[again]
    return found


def _repeated(pairs: Rows) -> Flags:
    """Tell which pairs stand before at an earlier place."""
    out = np.ones(len(pairs), bool)
    out[np.unique(pairs, return_index=True)[1]] = False
    return out


def _round(owner: Rows, taken: Rows, n_items: int, weights: Rows | None, rng: Draws) -> Rows:
    """Return an item for every row, drawn without those taken, but with repetitions.

    Items lie side by side on a line, each as long as its weight. Without what a user has taken,
    the line is shorter. A point is drawn there. The items taken that lie before it, and are found
    by one search for all users, tell where it is on the whole line.
    """
    taken = taken[: np.searchsorted(taken, (owner[-1] + 1) * n_items)]  # users behind get nothing
    users, things = np.divmod(taken, max(n_items, 1))
    if weights is None:
        begins, length, ends = things, n_items, None
        own = np.ones(len(things), np.int64)
    else:
        ends = np.cumsum(weights)
        begins, length = (ends - weights)[things], int(ends[-1])
        own = weights[things]
    sums = np.concatenate(([0], np.cumsum(own)))
    first = np.searchsorted(users, np.arange(owner[-1] + 2))
    before = sums[first]  # what users with smaller numbers have taken
    rest = length - np.diff(before)
    point = np.minimum((rng.random(len(owner)) * rest[owner]).astype(np.int64), rest[owner] - 1)
    marks = users * (length + 1) + begins - (sums[:-1] - before[users])
    at = np.searchsorted(marks, owner * (length + 1) + point, side="right")
    point += sums[at] - before[owner]
    return point if ends is None else np.searchsorted(ends, point, side="right")


class LastOut(NamedTuple):
    """What `leave_last_out` returns.

    Attributes
    ----------
    train, test : ndarray of shape (n_interactions,), bool
        Masks of the interactions.
    """

    train: Flags
    test: Flags


def leave_last_out(users: ArrayLike, times: ArrayLike, n: int = 1) -> LastOut:
    """Return which interactions to train with, and the last n of every user, to test with.

    Users with n interactions or fewer keep all of them for training. If two interactions have the
    same time, the one in the later row counts as later.

    Parameters
    ----------
    users : array-like of shape (n_interactions,)
        User ids. The interactions of a user may stand anywhere.
    times : array-like of shape (n_interactions,), numbers or times
        The time of every interaction.
    n : int ≥ 1, default=1
        The number of interactions to hold out for every user.

    Returns
    -------
    LastOut
        A pair of masks, train and test. Each row is in exactly one of them.

    Raises
    ------
    ValueError
        If a length is wrong, if an id is missing, or if a time is missing, or neither a number nor
        a time.

    Warns
    -----
    UserWarning
        If users have n interactions or fewer, or if the order of rows decides which of several
        interactions of the same time is held out. The message tells how many users.

    Notes
    -----
    This tests models on users that they know. To test on new users, take `QueryKFold` with the
    users as query ids, which holds out all interactions of a user.

    Examples
    --------
    >>> from pairgram import leave_last_out
    >>> train, test = leave_last_out(["ann", "bob", "ann", "bob"], [4, 1, 2, 3])
    >>> test.tolist()
    [True, False, False, True]
    """
    n = check_size("n", n)
    of_users = _users_of(users)
    when = _times(times, of_users.n_rows)
    place = of_users.index()
    order = np.lexsort((when, place))  # stable: of equal times the later row comes later
    to_end = np.repeat(of_users.offsets[1:], of_users.sizes) - np.arange(len(order))
    out = (to_end <= n) & np.repeat(of_users.sizes > n, of_users.sizes)
    test = np.zeros(len(order), bool)
    test[order] = out
    few = int((of_users.sizes <= n).sum())
    if few:
        warn_caller(
            f"{few} of {of_users.n_queries} users have {n} interactions or fewer, of which none is "
            "held out",
            UserWarning,
        )
    first = np.flatnonzero(out & (to_end == n))
    tied = int((when[order[first]] == when[order[first - 1]]).sum())
    if tied:
        warn_caller(
            f"for {tied} of {of_users.n_queries} users, the first interaction that is held out and "
            "the last one that is not have the same time: the one that stands later is held out",
            UserWarning,
        )
    return LastOut(~test, test)


def _times(times: ArrayLike, n_rows: int) -> AnyArray:
    """Return times as numbers or as times of NumPy; objects with dates become their ranks."""
    when = as_ids(times, n_rows, "times")
    if when.dtype.kind == "O" and all(hasattr(one, "year") for one in when):
        try:
            return np.unique(when, return_inverse=True)[1]
        except TypeError:  # with time zones and without
            pass
    if when.dtype.kind not in "iufmM":
        raise ArgumentError("times", "must be numbers, or times that can be compared")
    return when
