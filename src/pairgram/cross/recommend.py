"""`recommend`: the best items for every user, without the scores of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.arrays import (
    column_names,
    columns_of,
    features_among,
    judged,
    read_rows,
    select_columns,
    without_names,
)
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Rows,
    Vector,
    require_finite,
    warn_caller,
)
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import check_size
from pairgram.cross.ids import distinct_ascending, distinct_ids, places_among
from pairgram.cross.products import Cross
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import checked, dense, node_map_of
from pairgram.features.gaps import filled
from pairgram.features.row_values import Chain
from pairgram.rankers.batch_fit import BatchFit, is_product
from pairgram.rankers.scores import checked_rows

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike


# Whether all users have one list is seen by so many, whose scores differ by this share.
FEW_USERS, SAME = 20, 1e-9

# The items that each user is not given: where those of a user begin, and their places.
Excluded = tuple[Rows, Rows]
# What finds the places and the scores of the k best items of every user.
Best = Callable[[int, Excluded | None], tuple[Rows, Vector]]


class Recommendations(NamedTuple):
    """What `recommend` returns: the best items for every user, the best first.

    Attributes
    ----------
    users : ndarray of shape (n_users,)
        The ids of the users: the index of a frame, or the numbers of the rows.
    items : ndarray of shape (n_users, k)
        The ids of the items. Where a user has less than k, ``places`` is −1, and the id is −1 for
        integers of NumPy but uint64, NaT for times of NumPy, and None for other types.
    scores : ndarray of shape (n_users, k), float64
        Scores that order the items of one user; those of two users are not comparable. NaN where
        there is no item.
    places : ndarray of shape (n_users, k), int64
        The rows of `items` that were given. −1 where there is none.
    """

    users: AnyArray
    items: AnyArray
    scores: Vector
    places: Rows

    def to_frame(self) -> Any:
        """Return a frame of pandas with a row for every recommendation: user, rank, item, score."""
        import pandas

        user, rank = np.nonzero(self.places >= 0)
        return pandas.DataFrame(
            {
                "user": self.users[user],
                "rank": rank + 1,
                "item": self.items[user, rank],
                "score": self.scores[user, rank],
            }
        )


def recommend(
    model: Any,
    users: RowsLike,
    items: RowsLike,
    k: int = 10,
    *,
    user_ids: str | ArrayLike | None = None,
    item_ids: str | ArrayLike | None = None,
    exclude: tuple[ArrayLike, ArrayLike] | None = None,
) -> Recommendations:
    """Return the k best items for every user.

    The scores of all pairs are never stored. With a `Cross` model, or a batch of linear models,
    they are products of a vector of the user and one of the item: blocks of products in float32
    find what may be among the k best, and this is scored in float64, so that the result is that of
    ``predict`` for all pairs.

    Parameters
    ----------
    model : fitted ranker with a `Cross` map, `BatchFit` of linear models, or any other
        Any fitted model.
    users : array-like, frame, or list of keys
        - For a `Cross` model, the left columns of every user: a frame with these columns, or an
          array in the order of ``feature_map_.left_``.
        - For a `BatchFit`, the keys of the users, each of them once. Users without a model get what
          the `fallback` of the batch recommends, which must be a model.
        - For another model, the columns that describe users: a frame, or an array of the first
          columns. A model of items alone takes an array of no columns, and recommends the same
          to everybody.
    items : array-like or frame of shape (n_items, n_columns)
        The other columns: the kept and right ones of a `Cross` model, and those of an item of any
        other. Arrays have them in ascending order. Frames may have columns of lists.
        Missing values are filled as those of the fit.
    k : int ≥ 1, default=10
    user_ids, item_ids : str, array-like or None, default=None
        The ids of users and items: the name of a column of the frame, or an id for each row. None
        takes the index of a frame of pandas, or else the numbers of the rows.
    exclude : pair of array-likes of shape (n_pairs,), or None, default=None
        Items that are not recommended to a user, such as those already seen: the ids of users and
        of items, pair by pair.

    Returns
    -------
    Recommendations
        Items with equal scores have the order in which they stand in `items`.

    Raises
    ------
    ValueError
        If a column is missing, an id is unknown, or the model needs whole lists. The message
        names it.

    Notes
    -----
    Products take 2 · n_users · n_items · width flops in float32, where width is the number of kept
    and right features. Other models score n_users · n_items rows, in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import Cross, RankRLS, recommend
    >>> rng = np.random.default_rng(0)
    >>> person, thing = rng.normal(size=(50, 2)), rng.normal(size=(8, 2))
    >>> X = np.hstack([np.repeat(person, 8, axis=0), np.tile(thing, (50, 1))])
    >>> y = (X[:, :2] * X[:, 2:]).sum(axis=1)
    >>> model = RankRLS(feature_map=Cross([0, 1], [2, 3])).fit(X, y, qid=np.arange(400) // 8)
    >>> found = recommend(model, person[:2], thing, k=3)
    >>> bool((found.places[0] == np.argsort(-thing @ person[0])[:3]).all())
    True
    """
    k = check_size("k", k)
    if isinstance(model, BatchFit):
        if user_ids is not None:
            raise ArgumentError("user_ids", "must be None for a batch, whose keys are the ids")
        of_users = distinct_ids(users, "users")
    else:
        check_is_fitted(model)
        of_users = _ids(users, user_ids, "users")
    of_items = _ids(items, item_ids, "items")
    excluded = None if exclude is None else _left_out(exclude, of_users, of_items)
    cross = Chain.of(getattr(model, "feature_map_", None)).then
    best: Best
    if isinstance(model, BatchFit):
        best = _of_batch(model, of_users, items)
    elif isinstance(cross, Cross) and model.prior_ is None:
        best = _of_cross(model, cross, users, items)
    else:
        best = _of_pairs(model, users, items, len(of_users))
    places, scores = best(k, excluded)
    if np.isinf(scores).any():
        raise ValueError("users and items too large: scores of their pairs overflow")
    # The ids of the caller may change.
    return Recommendations(of_users.copy(), _named(of_items, places), scores, places)


def _ids(rows: Any, ids: str | ArrayLike | None, name: str) -> AnyArray:
    """Return the ids of rows."""
    argument = f"{name.removesuffix('s')}_ids"
    if as_stream(rows) is not None:
        raise ArgumentError(name, "must be rows in memory, such as a frame, got a table of scan")
    if isinstance(ids, str):
        ids = select_columns(rows, ids, argument)
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if ids is None:
        index = getattr(rows, "index", None)
        plain = index is None or callable(index)
        return np.arange(n_rows) if plain else distinct_ids(index, f"index of {name}")
    found = distinct_ids(ids, argument)
    if len(found) != n_rows:
        raise ArgumentError(argument, f"must be one for each of {n_rows} rows, got {len(found)}")
    return found


def _named(ids: AnyArray, places: Rows) -> AnyArray:
    """Return the ids in some places, and what stands for none where a place is −1."""
    none: Any = None
    if np.can_cast(ids.dtype, np.int64):
        ids, none = ids.astype(np.int64), -1
    elif ids.dtype.kind in "mM":
        none = np.array("NaT", ids.dtype)
    else:
        ids = ids.astype(object)
    found = np.full(places.shape, none, ids.dtype)
    there = places >= 0
    found[there] = ids[places[there]]
    return found


def _left_out(exclude: Any, users: AnyArray, items: AnyArray) -> Excluded:
    """Return the places of the items that each user is not given."""
    if not isinstance(exclude, Sequence) or len(exclude) != 2:
        raise ArgumentError(
            "exclude",
            f"must be a pair of the ids of users and of items, got {type(exclude).__name__}",
        )
    rows = places_among(exclude[0], users, "exclude", "users")
    columns = places_among(exclude[1], items, "exclude")
    if len(rows) != len(columns):
        raise ArgumentError(
            "exclude", f"must pair users with items, got {len(rows)} users and {len(columns)} items"
        )
    pairs = distinct_ascending(rows * len(items) + columns)
    begins = np.searchsorted(pairs, np.arange(len(users) + 1) * len(items))
    return begins, pairs % len(items)


def _best_products(
    of_users: Vector, of_items: Vector, k: int, excluded: Excluded | None
) -> tuple[Rows, Vector]:
    """Return the best items by products of a vector of the user and one of the item."""
    begins, out = excluded or (None, None)
    with single_threaded_blas:
        return _core.top_products(of_users, of_items, k, begins, out, thread_count())


def _best_scores(
    of_user: Callable[[int], Vector], n_users: int, k: int, excluded: Excluded | None
) -> tuple[Rows, Vector]:
    """Return the best items by the scores of all items for the user of a number."""
    places = np.full((n_users, k), -1, np.int64)
    scores = np.full((n_users, k), np.nan)
    for user in range(n_users):
        of_items = of_user(user).astype(np.float64)
        order = np.argsort(-of_items, kind="stable")
        if excluded is not None:
            begins, out = excluded
            order = order[~np.isin(order, out[begins[user] : begins[user + 1]])]
        best = order[:k]
        places[user, : len(best)], scores[user, : len(best)] = best, of_items[best]
    return places, scores


def _of_cross(model: BaseEstimator, cross: Cross, users: RowsLike, items: RowsLike) -> Best:
    """Return what finds the best items by a model with a `Cross` map."""
    chain = Chain.of(model.feature_map_)
    # Inputs may make two columns of each; both are of the same side.
    left = np.array(list(dict.fromkeys((cross.left_ % model.n_features_in_).tolist())), np.int64)
    others = np.unique(np.concatenate((cross.kept_, cross.right_)) % model.n_features_in_)
    both = np.intersect1d(left, others)
    if len(both):
        raise ArgumentError(
            "model",
            f"must not have column {both[0]} of X as a left column and as a kept or right one",
        )

    def whole(rows: Any, columns: Rows, name: str) -> Vector:
        """Return rows of the map that have some columns, and zeros in the others."""
        values = _side(rows, columns, model, name)
        values = filled(values, None if chain.fill is None else chain.fill.fill_[columns])
        require_finite(values, name)
        padded = np.zeros((len(values), model.n_features_in_))
        padded[:, columns] = values
        return np.asarray(checked(chain.after_fill, padded))

    node_map = node_map_of(chain.after_fill, np.float64)
    of_users = node_map.left_weights(whole(users, left, "users"), model.coef_, thread_count())
    of_items = node_map.right_side(whole(items, others, "items"), thread_count())
    return partial(_best_products, of_users, of_items)


def _of_batch(batch: BatchFit, keys: AnyArray, items: RowsLike) -> Best:
    """Return what finds the best items by the models of users."""
    models = batch._models_of(keys)
    if any(isinstance(model, Real) for model in models):
        raise ArgumentError(
            "users",
            "must have models, because the fallback of the batch is a number, which orders "
            "nothing: leave the others out",
        )
    names = next((m.feature_names_in_ for m in models if hasattr(m, "feature_names_in_")), None)
    if names is not None:
        items = _own_columns(items, names, "items")
    if models and all(map(is_product, models)):
        rows = checked_rows(models[0], items)
        require_finite(rows, "items")
        if not scipy.sparse.issparse(rows):
            rows = np.require(rows, np.float64, ["C", "A"])
            return partial(_best_products, np.array([one.coef_ for one in models]), rows)
    return partial(_best_scores, lambda user: judged(models[user], items), len(keys))


def _of_pairs(model: BaseEstimator, users: Any, items: Any, n_users: int) -> Best:
    """Return what finds the best items by scores of rows with columns of both sides."""
    names, there = getattr(model, "feature_names_in_", None), column_names(items)
    everything = np.arange(model.n_features_in_)
    if names is None or there is None:
        own = everything[: np.shape(users)[-1]]
    else:
        own = np.flatnonzero(~np.isin(names, features_among(list(names), there, None)))
    others = np.setdiff1d(everything, own)
    of_items = _side(items, others, model, "items")
    of_users = _side(users, own, model, "users") if len(own) else None
    rows, plain = np.empty((len(of_items), len(everything))), without_names(model)
    rows[:, others] = of_items

    def of_user(user: int) -> Vector:
        if of_users is not None:
            rows[:, own] = of_users[user]
        return judged(plain, rows)

    if n_users > 1 and getattr(users, "shape", ())[1:] != (0,):
        first = of_user(0)
        few = (of_user(user) - first for user in range(1, min(n_users, FEW_USERS)))
        if all(np.ptp(one) <= SAME * np.abs(first).max() for one in few):
            warn_caller(
                "all users get one list: no column of users changes the order of items in this "
                "model. Take Cross(...), or fit_many, or users without columns if that is meant",
                UserWarning,
            )
    return partial(_best_scores, of_user, n_users)


def _side(rows: Any, columns: Rows, model: BaseEstimator, name: str) -> Vector:
    """Return the values of the columns of a model that are those of one side."""
    if column_names(rows) is not None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            raise ArgumentError(
                name, "must be an array, as the model was fitted to rows without names of columns"
            )
        rows = _own_columns(rows, names[columns], name)
    values = dense(read_rows(rows, name)).astype(np.float64, copy=False)
    if values.shape[1] != len(columns):
        raise ArgumentError(
            name, f"must have {len(columns)} columns, those of its side, got shape {values.shape}"
        )
    return values


def _own_columns(rows: Any, names: AnyArray, name: str) -> Any:
    """Return rows, and of a frame the columns of some features, which may be entries of lists."""
    there = column_names(rows)
    return rows if there is None else select_columns(rows, columns_of(list(names), there)[0], name)
