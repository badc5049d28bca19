"""`recommend`: the best things for every user, without the scores of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.arrays import (
    block_rows,
    blocks,
    column_names,
    predicted,
    select_columns,
    without_names,
)
from pairgram._support.checks import ArgumentError, Rows, Vector, require_finite, verbatim
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram._support.parameters import is_integer
from pairgram.features.base import checked, node_map_of
from pairgram.features.cross import Cross
from pairgram.features.inputs import after_inputs
from pairgram.rankers.batch_fit import BatchFit, is_product
from pairgram.rankers.scores import checked_rows

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike


@dataclass(frozen=True, eq=False)
class Recommendations:
    """What `recommend` returns: the best things for every user, the best first.

    Attributes
    ----------
    users : ndarray of shape (n_users,)
        The ids of the users: the index of a frame, or the numbers of the rows.
    items : ndarray of shape (n_users, k)
        The ids of the things. Where a user has less than k, ``places`` is −1 and the id is that of
        no thing: None for ids that are objects, else −1.
    scores : ndarray of shape (n_users, k), float64
        Scores that order the things of one user; those of two users are not comparable. NaN where
        there is no thing.
    places : ndarray of shape (n_users, k), int64
        The rows of `items` that were given. −1 where there is none.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    scores: Vector
    places: Rows

    def __repr__(self) -> str:
        n_users, k = self.places.shape
        return f"<Recommendations of {k} things for {n_users} users>"

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
    exclude: Any = None,
    candidates: ArrayLike | None = None,
    n_threads: int | None = None,
) -> Recommendations:
    """Return the k best things for every user.

    The scores of all pairs are never stored. With a `Cross` model, or a batch of linear models,
    they are products of a vector of the user and one of the thing: blocks of products in float32
    find what may be among the k best, and this is scored in float64, so that the result is that of
    ``predict`` for all pairs.

    Parameters
    ----------
    model : fitted ranker with a `Cross` map, `BatchFit` of linear models, or any fitted model
    users : array-like, frame or list of keys
        - For a `Cross` model, the left columns of every user: a frame with these columns, or an
          array in the order of ``feature_map_.left_``.
        - For a `BatchFit`, the keys of the users. Others get what its `fallback` recommends.
        - For another model, the columns that describe users: a frame, or an array of the first
          columns. A model of things alone takes an array of no columns, and recommends the same
          to everybody.
    items : array-like or frame of shape (n_items, n_columns)
        The other columns, in the same way; arrays have them in ascending order.
    k : int ≥ 1, default=10
    exclude : sparse matrix of shape (n_users, n_items), pair of array-likes, or None, default=None
        Things that a user shall not get, such as those seen: the entries of a sparse matrix, or
        the ids of users and of things, pair by pair.
    candidates : array-like of ids, or None, default=None
        The things to choose from; None takes all.
    n_threads : int or None, default=None
        Number of threads, also of BLAS. None takes all processors of the process.

    Returns
    -------
    Recommendations
        Of things with equal scores the one that stands first in `items` comes first.

    Raises
    ------
    ValueError
        If a column is missing, an id is unknown, or the model needs whole lists or an offset. The
        message names it.

    Notes
    -----
    2 · n_users · n_items · width flops in float32 for products, where width is the number of kept
    and right features; other models are asked for n_users · n_items scores, in blocks.

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
    if not is_integer(k) or k < 1:
        raise ArgumentError("k", f"must be an integer >= 1, got {verbatim(repr(k))}")
    item_ids, n_items = _ids_of(items)
    if isinstance(model, BatchFit):
        user_ids = np.asarray(users)
        score = _of_batch(model, user_ids, items)
    else:
        check_is_fitted(model)
        _refuse(model)
        user_ids, _ = _ids_of(users)
        cross = getattr(model, "feature_map_", None)
        if isinstance(cross, Cross) and model.prior_ is None:
            score = _of_cross(model, cross, users, items, n_threads)
        else:
            score = _of_pairs(model, users, items)
    chosen = (
        np.arange(n_items) if candidates is None else _places(candidates, item_ids, "candidates")
    )
    chosen = np.unique(chosen)  # ascending, as ties are broken
    without = _left_out(exclude, user_ids, item_ids, chosen)
    places, scores = score.best(chosen, int(k), without, resolve_n_threads(n_threads))
    names = item_ids.astype(object) if item_ids.dtype.kind not in "iu" else item_ids
    found = names[np.maximum(places, 0)] if len(names) else np.empty(places.shape, names.dtype)
    found[places < 0] = None if names.dtype == object else -1
    return Recommendations(user_ids, found, scores, places)


@dataclass(frozen=True, eq=False)
class _Products:
    """Scores that are products of a vector of the user and one of the thing."""

    of_users: Vector
    of_items: Vector

    def best(self, chosen: Rows, k: int, without: Any, n_threads: int) -> tuple[Rows, Vector]:
        """Return the places and the scores of the best things of every user."""
        whole = len(chosen) == len(self.of_items)
        of_items = self.of_items if whole else np.ascontiguousarray(self.of_items[chosen])
        with single_threaded_blas:
            found, scores = _core.top_products(
                self.of_users,
                of_items,
                k,
                None if without is None else without.indptr.astype(np.int64),
                None if without is None else without.indices.astype(np.int64),
                n_threads,
            )
        return _chosen(found, chosen), scores


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores that a model makes of whole rows, for one user after the other.

    `of_user` returns the scores of all things for the user of a number.
    """

    n_users: int
    of_user: Callable[[int], Vector]

    def best(self, chosen: Rows, k: int, without: Any, n_threads: int) -> tuple[Rows, Vector]:
        """Return the places and the scores of the best things of every user."""
        found = np.full((self.n_users, k), -1, np.int64)
        scores = np.full((self.n_users, k), np.nan)
        for user in range(self.n_users):
            of_items = np.asarray(self.of_user(user), np.float64)[chosen]
            order = np.argsort(-of_items, kind="stable")
            if without is not None:
                out = without.indices[without.indptr[user] : without.indptr[user + 1]]
                order = order[~np.isin(order, out)]
            best = order[:k]
            found[user, : len(best)], scores[user, : len(best)] = best, of_items[best]
        return _chosen(found, chosen), scores


def _chosen(found: Rows, chosen: Rows) -> Rows:
    """Return the rows of all things for rows of the chosen ones; −1 stays."""
    if not len(chosen):
        return found
    return np.where(found < 0, -1, chosen[np.maximum(found, 0)])


def _refuse(model: BaseEstimator) -> None:
    inputs = getattr(model, "inputs_", None)
    if inputs is not None and inputs.reads_lists:
        raise ArgumentError(
            "model",
            f"must score rows alone, but its inputs {inputs.kind!r} are those of whole lists",
        )
    if getattr(model, "uses_offset_", False):
        raise ArgumentError("model", "must not need an offset to predict")


def _ids_of(rows: Any) -> tuple[NDArray[Any], int]:
    """Return the ids of rows, which are the index of a frame of pandas or numbers, and how many."""
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    index = getattr(rows, "index", None)
    if index is not None and not callable(index):
        ids = np.asarray(index)
        if len(np.unique(ids)) < len(ids):
            raise ValueError("the index of users and items must be their ids, each of them once")
        return ids, n_rows
    return np.arange(n_rows), n_rows


def _places(ids: ArrayLike, known: NDArray[Any], name: str, of: str = "items") -> Rows:
    """Return the places of ids among the known ones, which are those of users or of items.

    Raises
    ------
    ValueError
        If one is unknown. The message names it.
    """
    asked = np.asarray(ids)
    if asked.ndim != 1:
        raise ArgumentError(name, f"must be a list of ids, got an array of shape {asked.shape}")
    place = {one: number for number, one in enumerate(known.tolist())}
    found = [place.get(one, -1) for one in asked.tolist()]
    if -1 in found:
        unknown = asked.tolist()[found.index(-1)]
        raise ArgumentError(
            name, f"must have ids of {of}, got {verbatim(repr(unknown))}, which none of them has"
        )
    return np.array(found, np.int64)


def _left_out(exclude: Any, users: NDArray[Any], items: NDArray[Any], chosen: Rows) -> Any:
    """Return a CSR matrix (n_users, n_chosen) whose entries are the pairs to leave out, or None."""
    if exclude is None:
        return None
    shape = (len(users), len(items))
    if scipy.sparse.issparse(exclude):
        if exclude.shape != shape:
            raise ArgumentError(
                "exclude", f"must have shape (n_users, n_items) = {shape}, got {exclude.shape}"
            )
        found = scipy.sparse.csr_array(exclude)
    elif isinstance(exclude, Sequence) and len(exclude) == 2:
        rows = _places(exclude[0], users, "exclude", "users")
        columns = _places(exclude[1], items, "exclude")
        if len(rows) != len(columns):
            raise ArgumentError(
                "exclude",
                f"must pair users with things, got {len(rows)} users and {len(columns)} things",
            )
        found = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    else:
        raise ArgumentError(
            "exclude",
            "must be a sparse matrix, or a pair of the ids of users and of things, got "
            f"{type(exclude).__name__}",
        )
    if len(chosen) < len(items):
        found = scipy.sparse.csr_array(found[:, chosen])
    found.sum_duplicates()
    return found


def _side(rows: Any, columns: Rows, model: BaseEstimator, name: str, dtype: Any) -> NDArray[Any]:
    """Return whole rows of a model that have some columns, and zeros in the others."""
    names = getattr(model, "feature_names_in_", None)
    there = column_names(rows)
    if there is not None:
        if names is None:
            raise ArgumentError(
                name, "must be an array, as the model was fitted to rows without names of columns"
            )
        wanted = [names[column] for column in columns]
        lost = next((one for one in wanted if one not in there), None)
        if lost is not None:
            raise ArgumentError(name, verbatim(f"must have the column {lost!r}, got {list(there)}"))
        rows = select_columns(rows, wanted, name)
    values = np.asarray(rows, dtype)
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise ArgumentError(
            name,
            f"must have {len(columns)} columns, those of its side, got shape {values.shape}",
        )
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise ArgumentError(name, f"must not hold NaN or infinity, got it in row {bad[0]}")
    whole = np.zeros((len(values), model.n_features_in_), dtype)
    whole[:, columns] = values
    return whole


def _of_cross(
    model: BaseEstimator, cross: Cross, users: Any, items: Any, n_threads: int | None
) -> _Products:
    """Return the vectors of users and things of a model with a `Cross` map."""
    threads = resolve_n_threads(n_threads)
    whole = after_inputs(getattr(model, "inputs_", None), cross)
    n_inputs = model.n_features_in_
    # Inputs may make two columns of each; both are of the same side.
    left = np.unique(cross.left_ % n_inputs)
    others = np.setdiff1d(np.arange(n_inputs), left)
    both = np.intersect1d(left, np.concatenate((cross.kept_, cross.right_)) % n_inputs)
    if len(both):
        raise ArgumentError(
            "model", f"must not have column {both[0]} of X on both sides, as its inputs do"
        )
    node_map = node_map_of(whole, np.float64)
    user_rows = _side(users, left, model, "users", np.float64)
    item_rows = _side(items, others, model, "items", np.float64)
    user_rows, item_rows = (
        checked(whole, rows) if len(rows) else rows for rows in (user_rows, item_rows)
    )
    return _Products(
        node_map.left_weights(user_rows, model.coef_, threads),
        node_map.right_side(item_rows, threads),
    )


def _of_batch(batch: BatchFit, keys: NDArray[Any], items: Any) -> _Products | _Scores:
    """Return the scores of things by the models of users."""
    if keys.ndim != 1:
        raise ArgumentError("users", "must be the keys of models of the batch")
    names = next(
        (one.feature_names_in_ for one in batch.models if hasattr(one, "feature_names_in_")), None
    )
    if names is not None and column_names(items) is not None:
        items = select_columns(items, list(names), "items")
    n_items = _ids_of(items)[1]
    if isinstance(batch.fallback, Real):
        no_scores = np.zeros(n_items)
    known = set(batch.keys.tolist())
    products = _products_of_batch(batch, keys.tolist(), items)
    if products is not None:
        return products

    def of_user(user: int) -> Vector:
        if isinstance(batch.fallback, Real) and keys[user] not in known:
            return no_scores
        return np.asarray(batch.predict(items, np.repeat(keys[user : user + 1], n_items)))

    return _Scores(len(keys), of_user)


def _products_of_batch(batch: BatchFit, keys: list[Any], items: Any) -> _Products | None:
    """Return the weights of users and the rows of things, if all scores are their products."""
    others = [] if batch.fallback is None else [batch.fallback]
    models = [model for model in batch.models if model is not None]
    cold = [one for one in others if not isinstance(one, Real)]
    if not models or not all(map(is_product, [*models, *cold])):
        return None
    rows = checked_rows(models[0], items)
    if scipy.sparse.issparse(rows):
        return None
    require_finite(rows, "items")
    weights = {
        key: model.coef_
        for key, model in zip(batch.keys.tolist(), batch.models, strict=True)
        if model is not None
    }
    missing = next((key for key in keys if key not in weights), None)
    if missing is not None and not others:
        raise ArgumentError(
            "users",
            verbatim(f"must have models, but {missing!r} has none: give the batch a fallback"),
        )
    fallback = cold[0].coef_ if cold else np.zeros(rows.shape[1])
    of_users = np.array([weights.get(key, fallback) for key in keys], np.float64)
    return _Products(
        of_users.reshape(len(keys), rows.shape[1]), np.ascontiguousarray(rows, np.float64)
    )


def _of_pairs(model: Any, users: Any, items: Any) -> _Scores:
    """Return the scores of whole rows, of the columns of a user and those of a thing."""
    names = getattr(model, "feature_names_in_", None)
    of_users, of_items = column_names(users), column_names(items)
    if names is not None and of_items is not None:
        places = {name: place for place, name in enumerate(names)}
        own = [places[name] for name in (of_users or ()) if name in places]
        others = [places[name] for name in of_items if name in places]
        lost = sorted(set(range(len(names))) - set(own) - set(others))
        if lost:
            raise ArgumentError(
                "items",
                verbatim(f"must have the column {names[lost[0]]!r}, which is not of users either"),
            )
        own = [place for place in own if place not in set(others)]
    else:
        width = np.shape(users)[1] if np.ndim(users) == 2 else 0
        own, others = list(range(width)), list(range(width, model.n_features_in_))
    user_columns = (
        _side(users, np.array(own, np.int64), model, "users", np.float64) if own else None
    )
    item_columns = _side(items, np.array(others, np.int64), model, "items", np.float64)
    n_users, plain = _ids_of(users)[1], without_names(model)

    def of_user(user: int) -> Vector:
        scores = []
        for part in blocks(len(item_columns), block_rows(item_columns.shape[1])):
            rows = item_columns[part].copy()
            if user_columns is not None:
                rows[:, own] = user_columns[user, own]
            scores.append(predicted(plain, rows, np.zeros(len(rows), np.int64)))
        return np.concatenate(scores)

    return _Scores(n_users, of_user)
