"""`recommend`: the best items for every user, without the scores of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.arrays import (
    block_rows,
    blocks,
    checked_sparse,
    column_names,
    columns_of,
    read_rows,
    select_columns,
    with_entries,
    without_names,
)
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Rows,
    Vector,
    require_finite,
    verbatim,
    warn_caller,
)
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import check_size
from pairgram.cross.ids import distinct_ascending, distinct_ids, places_among, places_of_pairs
from pairgram.cross.products import Cross
from pairgram.data.queries import plain_ids
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import checked, dense, node_map_of
from pairgram.features.gaps import filled
from pairgram.features.row_values import Chain
from pairgram.metrics.evaluation import evaluate, get_metric
from pairgram.metrics.metric import FAMILIES, Metric, listed_metrics
from pairgram.rankers.batch_fit import BatchFit, is_product
from pairgram.rankers.scores import Scorer, checked_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from pairgram._support.types import BaseEstimator, RowsLike


# Whether all users have one list is seen by so many, whose scores differ by this share.
FEW_USERS, SAME = 20, 1e-9


@dataclass(frozen=True, eq=False)
class Recommendations:
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
    all_items : ndarray of shape (n_items,)
        The ids of all items.
    candidates : ndarray of shape (n_candidates,), int64
        The rows of items that were chosen from.
    excluded : CSR array of shape (n_users, n_candidates), or None
        Its entries are the pairs that were left out.
    """

    users: AnyArray
    items: AnyArray
    scores: Vector
    places: Rows
    all_items: AnyArray
    candidates: Rows
    excluded: csr_array | None

    def __repr__(self) -> str:
        n_users, k = self.places.shape
        return f"<Recommendations of {k} items for {n_users} users>"

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

    def evaluate(
        self,
        users: ArrayLike,
        items: ArrayLike,
        metrics: str | Metric | Iterable[str | Metric] | None = None,
        *,
        per_user: bool = False,
    ) -> dict[str, Any]:
        """Return how well the lists find items that were held out, such as later interactions.

        All items that could be recommended compete, not a sample of them. Only users who have
        something held out count.

        Parameters
        ----------
        users, items : array-like of shape (n_pairs,)
            The ids of the user and the item of every pair that was held out. A pair that is there
            twice counts once. Items that were no candidates count as not found.
        metrics : str, Metric, iterable of them, or None, default=None
            Metrics that look at the first ranks, at most those recommended, such as "map@10". None
            takes hit_rate, ndcg, recall, p and mrr, at k.
        per_user : bool, default=False
            If True, return the values of every user, and the ids of these users as "user".

        Returns
        -------
        dict
            For the name of every metric its mean over users, as `evaluate` defines it for a list
            that lacks what was not recommended. "coverage" is the share of the candidates that are
            in the list of any user, "n_users" the number of users who count, and
            "n_users_without" of those who have nothing held out.

        Raises
        ------
        ValueError
            If an id is unknown, if a pair was left out by `exclude`, so that it could not be found,
            or if a metric looks further than the lists.

        Examples
        --------
        >>> import numpy as np
        >>> from pairgram import RankRLS, recommend
        >>> things = np.arange(5.0)[:, None]
        >>> model = RankRLS().fit(things, np.arange(5))
        >>> found = recommend(model, np.empty((2, 0)), things, k=2, exclude=([0], [4]))
        >>> found.items.tolist()
        [[3, 2], [4, 3]]
        >>> found.evaluate([0, 0, 1], [2, 1, 0], ["recall@2", "mrr@2"])
        {'recall@2': 0.25, 'mrr@2': 0.25, 'coverage': 0.6, 'n_users': 2, 'n_users_without': 0}
        """
        wanted = self._metrics(metrics)
        pairs = self._held_out(users, items)
        n_items, k = len(self.all_items), self.places.shape[1]
        with_pairs = distinct_ascending(pairs // max(n_items, 1))
        if not len(with_pairs):
            raise ArgumentError("users", "must have a pair or more that was held out, got none")
        places = self.places[with_pairs]
        user, rank = np.nonzero(places >= 0)
        listed = with_pairs[user] * n_items + places[user, rank]
        missed = np.setdiff1d(pairs, listed, assume_unique=True)
        of_missed = np.searchsorted(with_pairs, missed // max(n_items, 1))
        owner = np.concatenate((user, of_missed))
        order = np.argsort(owner, kind="stable")
        y = np.concatenate((np.isin(listed, pairs, assume_unique=True), np.ones(len(missed))))[
            order
        ]
        score = np.concatenate((k - rank, np.full(len(missed), np.nan)))[order]
        values = evaluate(wanted, y, score, owner[order], per_query=per_user)
        if per_user:
            return {"user": self.users[with_pairs], **values}
        shown = np.unique(self.places[self.places >= 0])
        return {
            **values,
            "coverage": len(shown) / len(self.candidates) if len(self.candidates) else np.nan,
            "n_users": len(with_pairs),
            "n_users_without": len(self.users) - len(with_pairs),
        }

    def _metrics(self, metrics: str | Metric | Iterable[str | Metric] | None) -> list[Metric]:
        """Return metrics that look at no more than the ranks that there are."""
        k = self.places.shape[1]
        if metrics is None:
            metrics = [f"{name}@{k}" for name in ("hit_rate", "ndcg", "recall", "p", "mrr")]
        listed = listed_metrics(metrics, "")
        wanted = [one if isinstance(one, Metric) else get_metric(one) for one in listed]
        for metric in wanted:
            ranks = FAMILIES[metric.family].ranks and FAMILIES[metric.family].of_lists
            if not ranks or metric.k is None or metric.k > k:
                raise ArgumentError(
                    "metrics",
                    f"must look at the first {k} ranks or fewer, which were recommended, such as "
                    f"'recall@{k}', got {metric.name!r}",
                )
        return wanted

    def _held_out(self, users: ArrayLike, items: ArrayLike) -> Rows:
        """Return ``user * n_items + item`` of the pairs, in ascending order, each of them once."""
        n_items = len(self.all_items)
        of_users, of_items = places_of_pairs(
            users, items, self.users, self.all_items, ("users", "items")
        )
        pairs = distinct_ascending(of_users * n_items + of_items)
        if self.excluded is not None:
            row = np.repeat(np.arange(len(self.users)), np.diff(self.excluded.indptr))
            column = self.candidates[self.excluded.indices]
            out = np.isin(pairs, row * n_items + column, assume_unique=True)
            if out.any():
                user, item = divmod(int(pairs[int(np.argmax(out))]), n_items)
                one = (plain_ids(self.users)[user], plain_ids(self.all_items)[item])
                raise ArgumentError(
                    "items",
                    f"must not have pairs that `exclude` left out, which no list can have, got "
                    f"{int(out.sum())} of them, such as {verbatim(repr(one))}",
                )
        return pairs


def recommend(
    model: Any,
    users: RowsLike,
    items: RowsLike,
    k: int = 10,
    *,
    user_ids: str | ArrayLike | None = None,
    item_ids: str | ArrayLike | None = None,
    exclude: Any = None,
    candidates: ArrayLike | None = None,
) -> Recommendations:
    """Return the k best items for every user.

    The scores of all pairs are never stored. With a `Cross` model, or a batch of linear models,
    they are products of a vector of the user and one of the item: blocks of products in float32
    find what may be among the k best, and this is scored in float64, so that the result is that of
    ``predict`` for all pairs.

    Parameters
    ----------
    model : fitted ranker with a `Cross` map, `BatchFit` of linear models, or any other
        Any fitted model, or the scorer that `row_scorer` of a ranker returns.
    users : array-like, frame, or list of keys
        - For a `Cross` model, the left columns of every user: a frame with these columns, or an
          array in the order of ``feature_map_.left_``.
        - For a `BatchFit`, the keys of the users, each of them once. Users without a model get what
          the `fallback` of the batch recommends. If it is a number, all items have the same score;
          NaN recommends nothing.
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
    exclude : sparse matrix of shape (n_users, n_items), pair of array-likes, or None, default=None
        Items that are not recommended to a user, such as those already seen: the stored entries of
        a sparse matrix, or the ids of users and of items, pair by pair.
    candidates : array-like of ids, or None, default=None
        The items to choose from; None takes all.

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
        if isinstance(model, Scorer):
            model = _OfScorer(model)
        else:
            check_is_fitted(model)
        users, of_users = _read(model, users, "users", user_ids)
    items, of_items = _read(model, items, "items", item_ids)
    chosen = np.arange(len(of_items))
    if candidates is not None:  # ascending, as ties are broken
        chosen = np.unique(places_among(candidates, of_items, "candidates"))
    without = _left_out(exclude, of_users, of_items, chosen)
    if not len(of_users) or not len(of_items):
        shape = len(of_users), k
        places, scores = np.full(shape, -1, np.int64), np.full(shape, np.nan)
    else:
        score = _scores_by(model, users, of_users, items, len(of_items))
        has_columns = not isinstance(model, BatchFit) and getattr(users, "shape", ())[1:] != (0,)
        if has_columns and len(of_users) > 1 and score.is_one_list:
            warn_caller(
                "all users get one list: no column of users changes the order of items in this "
                "model. Take Cross(...), or fit_many, or users without columns if that is meant",
                UserWarning,
            )
        places, scores = score.best(chosen, k, without)
    if np.isinf(scores).any():
        raise ValueError("users and items too large: scores of their pairs overflow")
    listed = _named(of_items, places)
    ids = of_users.copy(), of_items.copy()  # those of the caller may change
    return Recommendations(ids[0], listed, scores, places, ids[1], chosen, without)


def _scores_by(
    model: BaseEstimator | BatchFit,
    users: RowsLike,
    user_ids: AnyArray,
    items: RowsLike,
    n_items: int,
) -> _Products | _Scores:
    """Return what has the scores of all pairs of users and items."""
    if isinstance(model, BatchFit):
        return _of_batch(model, user_ids, items, n_items)
    cross = Chain.of(getattr(model, "feature_map_", None)).then
    if isinstance(cross, Cross) and model.prior_ is None:
        return _of_cross(model, cross, users, items)
    return _of_pairs(model, users, items, len(user_ids))


@dataclass(frozen=True, eq=False)
class _Products:
    """Scores that are products of a vector of the user and one of the item."""

    of_users: Vector
    of_items: Vector
    constant: Vector | float = 0.0  # that is added to all scores of a user

    @property
    def is_one_list(self) -> bool:
        """Whether all users have the same vector."""
        return not np.ptp(self.of_users, axis=0).any()

    def best(self, chosen: Rows, k: int, without: csr_array | None) -> tuple[Rows, Vector]:
        """Return the places and the scores of the best items of every user."""
        whole = len(chosen) == len(self.of_items)
        of_items = self.of_items if whole else np.ascontiguousarray(self.of_items[chosen])
        indptr = indices = None
        if without is not None:
            indptr, indices = without.indptr.astype(np.int64), without.indices.astype(np.int64)
        with single_threaded_blas:
            found, scores = _core.top_products(
                self.of_users, of_items, k, indptr, indices, thread_count()
            )
        scores = scores + np.reshape(self.constant, (-1, 1))
        found[np.isnan(scores)] = -1
        return _chosen(found, chosen), scores


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores that a model makes of whole rows, for one user after the other.

    `of_user` returns the scores of all items for the user of a number.
    """

    n_users: int
    of_user: Callable[[int], Vector]

    @property
    def is_one_list(self) -> bool:
        """Whether the scores of a few users differ by a constant from those of the first."""
        first = np.asarray(self.of_user(0), np.float64)
        few = (self.of_user(user) - first for user in range(1, min(self.n_users, FEW_USERS)))
        return all(np.ptp(one) <= SAME * np.abs(first).max() for one in few)

    def best(self, chosen: Rows, k: int, without: csr_array | None) -> tuple[Rows, Vector]:
        """Return the places and the scores of the best items of every user."""
        found = np.full((self.n_users, k), -1, np.int64)
        scores = np.full((self.n_users, k), np.nan)
        for user in range(self.n_users):
            of_items = np.asarray(self.of_user(user), np.float64)[chosen]
            order = np.argsort(-of_items, kind="stable")
            if without is not None:
                out = without.indices[without.indptr[user] : without.indptr[user + 1]]
                order = order[~np.isin(order, out)]
            best = order[:k]
            best = best[~np.isnan(of_items[best])]
            found[user, : len(best)], scores[user, : len(best)] = best, of_items[best]
        return _chosen(found, chosen), scores


def _chosen(found: Rows, chosen: Rows) -> Rows:
    """Return the rows of all items for rows of the chosen ones; −1 stays."""
    if not len(chosen):
        return found
    return np.where(found < 0, -1, chosen[np.maximum(found, 0)])


class _OfScorer:
    """A scorer as a model without names of columns, whose rows are checked before."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer, self.n_features_in_ = scorer, scorer.n_features_in_

    def predict(self, X: Vector) -> Vector:
        """Return the scores of rows."""
        return self.scorer(np.ascontiguousarray(X, self.scorer.dtype))


def _read(
    model: BaseEstimator | BatchFit, rows: Any, name: str, ids: str | ArrayLike | None
) -> tuple[Any, AnyArray]:
    """Return rows and their ids."""
    argument = f"{name.removesuffix('s')}_ids"
    if as_stream(rows) is not None:
        raise ArgumentError(name, "must be rows in memory, such as a frame, got a table of scan")
    if isinstance(ids, str):
        ids = select_columns(rows, ids, argument)
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if ids is None:
        index = getattr(rows, "index", None)
        plain = index is None or callable(index)
        found = np.arange(n_rows) if plain else distinct_ids(index, f"index of {name}")
    else:
        found = distinct_ids(ids, argument)
    if len(found) != n_rows:
        raise ArgumentError(argument, f"must be one for each of {n_rows} rows, got {len(found)}")
    return _without_lists(model, rows), found


def _without_lists(model: BaseEstimator | BatchFit, rows: Any) -> Any:
    """Return a frame with the entries of lists as columns, if a model knows such columns."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    there = column_names(rows) or []
    columns, widths = columns_of(names, there)
    if not widths:
        return rows
    return with_entries(select_columns(rows, [name for name in columns if name in there], "rows"))


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


def _left_out(exclude: Any, users: AnyArray, items: AnyArray, chosen: Rows) -> csr_array | None:
    """Return a CSR matrix (n_users, n_chosen) whose entries are the pairs to leave out, or None."""
    if exclude is None:
        return None
    shape = (len(users), len(items))
    if scipy.sparse.issparse(exclude):
        if exclude.shape != shape:
            raise ArgumentError(
                "exclude", f"must have shape (n_users, n_items) = {shape}, got {exclude.shape}"
            )
        found = scipy.sparse.csr_array(checked_sparse(exclude, "exclude"), copy=True)
    elif isinstance(exclude, Sequence) and len(exclude) == 2:
        rows, columns = places_of_pairs(
            exclude[0], exclude[1], users, items, ("exclude", "exclude")
        )
        found = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    else:
        raise ArgumentError(
            "exclude",
            "must be a sparse matrix, or a pair of the ids of users and of items, got "
            f"{type(exclude).__name__}",
        )
    if len(chosen) < len(items):
        found = scipy.sparse.csr_array(found[:, chosen])
    found.sum_duplicates()
    return found


def _side(
    rows: Any, columns: Rows, model: BaseEstimator, name: str, takes_gaps: bool = False
) -> Vector:
    """Return whole rows of a model that have some columns, and zeros in the others."""
    names = getattr(model, "feature_names_in_", None)
    if column_names(rows) is not None:
        if names is None:
            raise ArgumentError(
                name, "must be an array, as the model was fitted to rows without names of columns"
            )
        rows = select_columns(rows, [names[column] for column in columns], name)
    if np.ndim(rows) < 2 or np.shape(rows)[1] != len(columns):
        raise ArgumentError(
            name,
            f"must have {len(columns)} columns, those of its side, got shape {np.shape(rows)}",
        )
    values = dense(read_rows(rows, name)).astype(np.float64, copy=False)
    fill = Chain.of(getattr(model, "feature_map_", None)).fill
    values = filled(values, None if fill is None else fill.fill_[columns])
    finite = np.isfinite(values) | (np.isnan(values) & takes_gaps)
    bad = np.flatnonzero(~finite.all(axis=1))
    if len(bad):
        raise ArgumentError(name, f"must not hold NaN or infinity, got it in row {bad[0]}")
    whole = np.zeros((len(values), model.n_features_in_))
    whole[:, columns] = values
    return whole


def _of_cross(model: BaseEstimator, cross: Cross, users: RowsLike, items: RowsLike) -> _Products:
    """Return the vectors of users and items of a model with a `Cross` map."""
    whole = Chain.of(model.feature_map_).after_fill
    # Inputs may make two columns of each; both are of the same side.
    left = np.array(list(dict.fromkeys((cross.left_ % model.n_features_in_).tolist())), np.int64)
    others = np.unique(np.concatenate((cross.kept_, cross.right_)) % model.n_features_in_)
    both = np.intersect1d(left, others)
    if len(both):
        raise ArgumentError(
            "model",
            f"must not have column {both[0]} of X as a left column and as a kept or right one",
        )
    node_map = node_map_of(whole, np.float64)
    user_rows = checked(whole, _side(users, left, model, "users"))
    item_rows = checked(whole, _side(items, others, model, "items"))
    return _Products(
        node_map.left_weights(user_rows, model.coef_, thread_count()),
        node_map.right_side(item_rows, thread_count()),
    )


def _of_batch(
    batch: BatchFit, keys: AnyArray, items: RowsLike, n_items: int
) -> _Products | _Scores:
    """Return the scores of items by the models of users."""
    models = batch._models_of(keys)
    fitted = list({id(model): model for model in models if not isinstance(model, Real)}.values())
    if fitted and all(map(is_product, fitted)):
        rows = checked_rows(fitted[0], _own_columns(fitted[0], items))
        if not scipy.sparse.issparse(rows):
            require_finite(rows, "items")
            none = np.zeros(rows.shape[1])
            weights = [none if isinstance(model, Real) else model.coef_ for model in models]
            constant = [float(model) if isinstance(model, Real) else 0.0 for model in models]
            rows = np.require(rows, np.float64, ["C", "A"])
            return _Products(np.array(weights, np.float64), rows, np.array(constant))

    def of_user(user: int) -> Vector:
        model = models[user]
        if isinstance(model, Real):
            return np.full(n_items, float(model))
        return np.asarray(model.predict(_own_columns(model, items)))

    return _Scores(len(keys), of_user)


def _own_columns(model: BaseEstimator, rows: RowsLike) -> Any:
    """Return rows, and of a frame the columns that a model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or column_names(rows) is None:
        return rows
    return select_columns(rows, list(names), "items")


def _takes_gaps(model: BaseEstimator) -> bool:
    """Tell whether a model says that it takes NaN, as trees of other packages do."""
    try:
        return bool(get_tags(model).input_tags.allow_nan)
    except (AttributeError, TypeError):  # it is no estimator of scikit-learn
        return False


def _of_pairs(model: BaseEstimator, users: Any, items: Any, n_users: int) -> _Scores:
    """Return the scores of whole rows, of the columns of a user and those of an item."""
    names = getattr(model, "feature_names_in_", None)
    of_users, of_items = column_names(users), column_names(items)
    if names is not None and of_items is not None:
        given = {*(of_users or ()), *of_items}
        lost = next((name for name in names if name not in given), None)
        if lost is not None:
            raise ArgumentError(
                "items", verbatim(f"must have the column {lost!r}, which is not of users either")
            )
        if of_users is None and np.shape(users)[1:] != (0,):
            raise ArgumentError("users", "must be a frame, as items is, or an array of no columns")
        own = [place for place, name in enumerate(names) if name not in of_items]
    else:
        own = list(range(np.shape(users)[1] if np.ndim(users) == 2 else 0))
    others = np.setdiff1d(np.arange(model.n_features_in_), own)
    gaps = _takes_gaps(model)
    user_columns = _side(users, np.array(own, np.int64), model, "users", gaps) if own else None
    item_columns = _side(items, others, model, "items", gaps)
    plain = without_names(model)

    def of_user(user: int) -> Vector:
        scores = []
        for part in blocks(len(item_columns), block_rows(item_columns.shape[1])):
            rows = item_columns[part].copy()
            if user_columns is not None:
                rows[:, own] = user_columns[user, own]
            scores.append(plain.predict(rows))
        return np.concatenate(scores)

    return _Scores(n_users, of_user)
