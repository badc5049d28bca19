"""Standard deviations of scores and of their differences, from the posterior of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import blocks, reads_lists
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import Reference, Setting, check_setting, check_size
from pairgram.data.dataset import as_slice
from pairgram.data.queries import Queries, as_ids
from pairgram.features.base import checked, dense, features_of, generator, scorer_of, scores_of_rows
from pairgram.features.kernel_map import kernel_among, with_support_of
from pairgram.rankers.scores import columns_of, in_memory

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RandomState, RowsLike
    from pairgram.solvers.posterior import Posterior

# Features are made of so many rows at once, and the kernel values of rows in tiles of so many.
ROWS_AT_ONCE, TILE = 1024, 128
LEVEL = Setting(
    "a number above 0.5 and below 1",
    lambda value: isinstance(value, Real) and 0.5 < float(value) < 1,
)


@dataclass(frozen=True, eq=False)
class Space:
    """Rows in the space of the ridge of a model.

    Attributes
    ----------
    rows : matrix of shape (n_rows, n_columns)
        What the feature map takes.
    feature_map : fitted transformer or None
    """

    rows: Any
    feature_map: Any

    def features(self, rows: Rows | slice) -> Vector:
        """Return the features of some rows, dense, in float64."""
        X = self.rows[as_slice(rows)]
        H = X if self.feature_map is None else features_of(self.feature_map, X)
        return dense(H).astype(np.float64)

    def squares(self, rows: Rows | slice) -> Vector:
        """Return the products of rows with themselves, (n_rows,)."""
        return self.products(self, rows)

    def products(self, other: Space, rows: Rows | slice) -> Vector:
        """Return the products of rows with the same rows of another matrix, (n_rows,)."""
        X, Z = (one.rows[as_slice(rows)] for one in (self, other))
        tiles = blocks(X.shape[0], TILE)
        return np.concatenate(
            [kernel_among(self.feature_map, X[tile], Z[tile]).diagonal() for tile in tiles]
        )

    def means(self, rows: Rows) -> tuple[Vector, Vector]:
        """Return the mean of the kernel values of some rows, and of their products with each."""
        own = self.rows[as_slice(rows)].astype(np.float64)
        of_rows = with_support_of(self.feature_map, own)
        shares = np.full(len(rows), 1 / len(rows))

        def mean_with(others: Any) -> Vector:
            scorer = scorer_of(of_rows, shares, own.dtype)
            if scorer is None:  # as of sparse rows
                return scores_of_rows(of_rows, others, shares)
            return scorer.scores(others.astype(np.float64))

        return mean_with(self.feature_map.support_rows_), mean_with(own)

    def centred_squares(self, rows: Rows) -> Vector:
        """Return the squared lengths of rows, less their mean, (n_rows,)."""
        K = kernel_among(self.feature_map, self.rows[rows], self.rows[rows])
        with_mean = K.mean(axis=1)
        return K.diagonal() - 2 * with_mean + with_mean.mean()


def posterior_of(model: BaseEstimator) -> Posterior:
    """Return the posterior of a model, or say how to get one."""
    found = getattr(model, "posterior_", None)
    if found is None:
        name = type(model).__name__
        known = "keep_covariance" in model._get_param_names()
        how = "fit it with keep_covariance=True" if known else "RankRLS and RankRLSCV can keep it"
        raise ValueError(f"this {name} does not know how sure its scores are: {how}")
    return found


def space_of(model: BaseEstimator, X: RowsLike, qid: ArrayLike | None) -> Space:
    """Return checked rows in the space of the ridge of a model."""
    rows, feature_map = columns_of(model, X, qid), model.feature_map_
    return Space(rows if feature_map is None else checked(feature_map, rows), feature_map)


def refuse_lists(model: BaseEstimator, what: str) -> None:
    """Raise a ValueError if what a model sees of a row depends on the other rows of its list."""
    if reads_lists(model):
        own = model.inputs_ is not None and model.inputs_.reads_lists
        seen = f"inputs={model.inputs_.kind!r}" if own else "those of its prior"
        raise ValueError(
            f"{what} compares single rows, but {seen} look at the other rows of their list: take "
            "predict(X, qid=..., return_std=True)"
        )


def deviations_of(
    model: BaseEstimator, X: RowsLike, qid: ArrayLike | None, reference: Reference
) -> Vector:
    """Return the standard deviations of scores relative to a reference; see `predict`."""
    posterior = posterior_of(model)
    if reference not in get_args(Reference):
        raise ArgumentError("reference", f"must be 'list' or 'training', got {reference!r}")
    if reference == "training" and posterior.mean is None:
        raise ArgumentError(
            "reference",
            "must be 'list' for a model of statistics, such as those of a table, which do not tell "
            "the mean of the rows",
        )
    space = space_of(model, X, qid)
    n_rows = space.rows.shape[0]
    with single_threaded_blas, ThreadPoolExecutor(thread_count()) as pool:
        if reference == "training":
            parts = [np.arange(n_rows)[part] for part in _even_blocks(n_rows)]
            variances = [*pool.map(partial(_from_training, posterior, space), parts)]
            return np.sqrt(np.concatenate(variances))
        lists = Queries.make(n_rows, qid=qid)
        order = np.arange(n_rows) if lists.order is None else lists.order
        found: list[Future[Vector]] = []
        for first, last in _batches(lists.sizes):
            rows, sizes = order[lists.offsets[first] : lists.offsets[last]], lists.sizes[first:last]
            if len(rows) <= ROWS_AT_ONCE:
                found.append(pool.submit(_of_lists, posterior, space, rows, sizes))
            elif len(rows):
                found += _of_long_list(posterior, space, rows, pool)
        deviations = np.empty(n_rows)
        deviations[order] = np.sqrt(np.concatenate([part.result() for part in found]))
    return deviations


def _batches(sizes: Rows) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of lists that make a block together, or of a list that is longer."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        begin = ends[first] - sizes[first]
        last = max(first + 1, int(np.searchsorted(ends, begin + ROWS_AT_ONCE, side="right")))
        yield first, last
        first = last


def _from_training(posterior: Posterior, space: Space, rows: Rows) -> Vector:
    """Return the variances of scores of rows, less the mean score of the training rows."""
    mean, shares, H, squares = posterior.mean, posterior.shares, space.features(rows), None
    assert mean is not None
    if shares is not None:
        squares = space.squares(rows) - 2 * (H @ shares) + mean @ shares
    H -= mean
    return posterior.variances(H, squares)


def _of_lists(posterior: Posterior, space: Space, rows: Rows, sizes: Rows) -> Vector:
    """Return the variances of scores of rows of whole lists, less the mean score of their list."""
    H, squares, sizes = space.features(rows), None, sizes[sizes > 0]
    begins = np.cumsum(sizes) - sizes
    H -= np.repeat(np.add.reduceat(H, begins, axis=0) / sizes[:, None], sizes, axis=0)
    if posterior.shares is not None:
        own = np.split(rows, begins[1:])
        squares = np.concatenate([space.centred_squares(one) for one in own])
    return posterior.variances(H, squares)


def _of_long_list(
    posterior: Posterior, space: Space, rows: Rows, pool: ThreadPoolExecutor
) -> list[Future[Vector]]:
    """Return the same of one list, in blocks."""
    parts = [rows[part] for part in _even_blocks(len(rows))]
    squares: Sequence[Vector | None] = [None] * len(parts)
    if posterior.shares is None:
        mean = sum(pool.map(lambda part: space.features(part).sum(axis=0), parts)) / len(rows)
    else:
        mean, with_all = space.means(rows)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        squares = np.split(with_all.mean() - 2 * with_all, ends)

    def of_part(part: Rows, square: Vector | None) -> Vector:
        H = space.features(part)
        H -= mean
        square = None if square is None else square + space.squares(part)
        return posterior.variances(H, square)

    return [pool.submit(of_part, *pair) for pair in zip(parts, squares, strict=True)]


def _even_blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices of about `ROWS_AT_ONCE` rows and of one size, for any number of threads."""
    return blocks(n_rows, -(-n_rows // max(2, -(-n_rows // ROWS_AT_ONCE))))


def deviations_of_differences(model: BaseEstimator, Xa: RowsLike, Xb: RowsLike) -> Vector:
    """Return the standard deviations of ``f(a) − f(b)``; see `std_of_differences`."""
    posterior = posterior_of(model)
    refuse_lists(model, "a standard deviation of differences")
    first, second = (space_of(model, X, None) for X in (Xa, Xb))
    n_rows = first.rows.shape[0]
    if second.rows.shape[0] != n_rows:
        raise ArgumentError(
            "Xb", f"must have as many rows as Xa, {n_rows}, got {second.rows.shape[0]}"
        )
    found = np.empty(n_rows)
    for part in blocks(n_rows, ROWS_AT_ONCE):
        squares = None
        if posterior.shares is not None:
            own = first.squares(part) + second.squares(part)
            squares = own - 2 * first.products(second, part)
        H = first.features(part) - second.features(part)
        found[part] = posterior.variances(H, squares)
    return np.sqrt(found)


def rank_ranges_of(
    model: BaseEstimator, X: RowsLike, qid: ArrayLike | None, level: float
) -> dict[str, AnyArray]:
    """Return the table of `Certain.rank_ranges`."""
    check_setting("level", level, LEVEL)
    model, X, qid = in_memory(model, X, qid)
    posterior = posterior_of(model)
    scores, deviations = model.predict(X, qid=qid, return_std=True)
    scores = scores.astype(np.float64)
    space, lists = space_of(model, X, qid), Queries.make(len(scores), qid=qid)
    order = np.arange(len(scores)) if lists.order is None else lists.order
    parts = [order[a:b] for a, b in pairwise(lists.offsets) if b > a]
    parts = [part[np.argsort(-scores[part], kind="stable")] for part in parts]
    apart = partial(_told_apart, posterior, space, scores, float(ndtri(level)))
    ends = np.ones((len(scores), 2), np.int64)
    several = [part for part in parts if len(part) > 1]  # a million lists may have one row each
    with single_threaded_blas, ThreadPoolExecutor(thread_count()) as pool:
        for part, found in zip(several, pool.map(apart, several), strict=True):
            ends[part] = found
    rows = np.concatenate([np.empty(0, np.int64), *parts])
    ranks = [np.arange(1, len(part) + 1) for part in parts]
    return {
        **({} if qid is None else {"qid": as_ids(qid, len(scores))[rows]}),
        "row": rows,
        "score": scores[rows],
        "deviation": deviations[rows],
        "rank": np.concatenate([np.empty(0, np.int64), *ranks]),
        "best": ends[rows, 0],
        "worst": ends[rows, 1],
    }


def _told_apart(
    posterior: Posterior, space: Space, all_scores: Vector, reach: float, rows: Rows
) -> Rows:
    """Return the best and the worst rank of the rows of a list, (n_rows, 2).

    `reach` is how many standard deviations two scores lie apart of which the order is known.
    """
    scores, H = all_scores[rows], space.features(rows)
    H -= H.mean(axis=0)
    Z = posterior.rooted(H)
    explained = np.einsum("ij,ij->i", Z, Z)
    of_kernel = posterior.shares is not None
    squares = space.squares(rows) if of_kernel else np.einsum("ij,ij->i", H, H)
    # What differs by less than this differs by rounding.
    least = 1e-12 * np.abs(scores).max()
    ends = np.empty((len(rows), 2), np.int64)
    for part in blocks(len(rows), TILE):
        square = explained[part, None] + explained - 2 * (Z[part] @ Z.T)
        if of_kernel:
            products = kernel_among(space.feature_map, space.rows[rows[part]], space.rows[rows])
            square = posterior.prior * (squares[part, None] + squares - 2 * products) - square
        else:
            known = squares[part, None] + squares - 2 * (H[part] @ H.T)
            near = square < 1e-6 * (explained[part, None] + explained)
            near |= known < 1e-6 * (squares[part, None] + squares)
            for row in np.flatnonzero(
                near.any(axis=1)
            ):  # whose difference of squares has no digits
                others = np.flatnonzero(near[row])
                for found, of in ((square, Z), (known, H)):
                    apart = of[part][row] - of[others]
                    found[row, others] = np.einsum("ij,ij->i", apart, apart)
            square = posterior.prior * known - square if posterior.prior else square
        reaches = reach * np.sqrt(posterior.noise * np.maximum(square, 0.0))
        above = scores - scores[part, None]
        ends[part, 0] = 1 + (above > np.maximum(reaches, least)).sum(axis=1)
        ends[part, 1] = len(rows) - (-above > np.maximum(reaches, least)).sum(axis=1)
    return ends


def drawn_weights(model: BaseEstimator, n_draws: int, random_state: RandomState) -> Vector:
    """Return draws of the weights of a model, (n_draws, n_features); see `Certain.draw_weights`."""
    check_size("n_draws", n_draws)
    return posterior_of(model).draws(model.coef_, int(n_draws), generator(random_state))


class Certain:
    """Methods of rankers that keep how sure their scores are."""

    predict: Callable[..., Any]

    def std_of_differences(self, Xa: RowsLike, Xb: RowsLike) -> Vector:
        """Return how sure the model is of differences of scores, as standard deviations.

        Parameters
        ----------
        Xa, Xb : array-like or CSR matrix of shape (n_rows, n_features)
            The rows of each pair.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            The standard deviation of ``f(a) − f(b)`` for the rows a of Xa and b of Xb, given the
            labels: ``sqrt(σ² (a − b)ᵀ (G + alpha I)⁻¹ (a − b))``, and the like with a kernel, or
            with the covariance of `draw_weights`. σ² is ``posterior_.noise``. For a difference of
            two labels of weight 1, its variance has ``2 posterior_.label_noise`` besides.

        Raises
        ------
        ValueError
            If the model has no ``keep_covariance``, if rows are not as in `predict`, if the kernel
            is "precomputed", or if what the model sees of a row depends on others of its list.

        Examples
        --------
        >>> from pairgram import RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> model = RankRLS(10.0, keep_covariance=True).fit(X, y, qid=qid)
        >>> model.std_of_differences(X[:3], X[3:6]).shape
        (3,)
        """
        check_is_fitted(self)
        return deviations_of_differences(self, Xa, Xb)

    def probability_above(self, Xa: RowsLike, Xb: RowsLike) -> Vector:
        """Return how probable it is, given the labels, that a row has the higher score.

        Parameters
        ----------
        Xa, Xb : array-like or CSR matrix of shape (n_rows, n_features)
            The rows of each pair.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            The probability that ``f(a) > f(b)``. It is ``Φ((f(a) − f(b)) / deviation)`` with the
            deviation of `std_of_differences`, and 1/2 for rows whose scores cannot differ.

        Raises
        ------
        ValueError
            As `std_of_differences`.
        """
        check_is_fitted(self)
        deviations = deviations_of_differences(self, Xa, Xb)
        difference = self.predict(Xa).astype(np.float64) - self.predict(Xb)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = ndtr(difference / deviations)
        return np.where(np.isnan(found), 0.5, found)

    def rank_ranges(
        self, X: RowsLike, *, qid: ArrayLike | None = None, level: float = 0.95
    ) -> dict[str, AnyArray]:
        """Return the range of ranks that each row may have, given how sure its score is.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            A table is read into memory.
        qid : array-like of shape (n_rows,) or None, default=None
            Query ids. None means that all rows are one list.
        level : float, 0.5 < level < 1, default=0.95
            The order of two rows is known if one is above the other with at least this probability.

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
            ``pandas.DataFrame(model.rank_ranges(X))`` makes a frame of it. Lists stand in the
            order of their first rows, and in each the best rows come first. The columns are

            - ``qid``, if it is given;
            - ``row``: the number of the row of X;
            - ``score``, and the ``deviation`` of its difference from the mean of its list, as of
              `predict`;
            - ``rank``: 1 for the highest score of its list;
            - ``best``: 1 + how many rows of its list are known to be above it;
            - ``worst``: the number of rows of its list, less those known to be below it.

        Raises
        ------
        ValueError
            If the model has no ``keep_covariance``, if rows are not as in `predict`, if the kernel
            is "precomputed", or if `level` is not such a number.

        Notes
        -----
        Every pair is judged by itself, as in `probability_above`, without a correction for the
        number of pairs. Among many rows, some pairs therefore seem to be in a known order by
        chance. A list of n rows takes ``O(n² n_coefs)`` time.

        Examples
        --------
        >>> import numpy as np
        >>> from pairgram import Preferences, RankRLS
        >>> battles = Preferences([0] * 30 + [1] * 30, [1] * 30 + [2] * 30)
        >>> arena = RankRLS(keep_covariance=True).fit(np.eye(3), battles)
        >>> arena.rank_ranges(np.eye(3))["row"]
        array([0, 1, 2])
        """
        check_is_fitted(self)
        return rank_ranges_of(self, X, qid, level)

    def draw_weights(self, n_draws: int = 1, random_state: RandomState = None) -> AnyArray:
        """Draw weights from their posterior distribution, as Thompson sampling does.

        Parameters
        ----------
        n_draws : int ≥ 1, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_draws, n_coefs), float64
            Draws from the normal distribution around `coef_` with the covariance
            ``σ² (G + alpha I)⁻¹``. With ``scale=True``, the diagonal of G takes the place of I.

        Raises
        ------
        ValueError
            If the model has no ``keep_covariance``; or if it has a kernel, or was solved in the
            dual form, as with fewer rows than features.

        Examples
        --------
        >>> from pairgram import RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> model = RankRLS(keep_covariance=True).fit(X, y, qid=qid)
        >>> model.draw_weights(1000, random_state=0).shape
        (1000, 20)
        """
        check_is_fitted(self)
        return drawn_weights(self, n_draws, random_state)
