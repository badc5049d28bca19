"""`Posterior`: how sure the scores of a fitted model are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

from pairgram._support.arrays import blocks, blocks_of_parts
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector
from pairgram._support.files import shown
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import (
    AT_LEAST_0,
    Setting,
    check_setting,
    check_size,
    check_text,
    choice,
)
from pairgram._support.schema import FLOAT64, Array, Arrays, Kind, Sizes, require
from pairgram.data.queries import Queries, as_ids
from pairgram.features.feature_map import (
    checked,
    dense,
    generator,
    mapped,
    scores_of_rows,
)
from pairgram.features.kernel_map import kernel_among, with_support_of
from pairgram.features.row_values import Chain
from pairgram.files.kinds import PART
from pairgram.files.read_write import read_file, write_file
from pairgram.rankers.load import describe_part, restore_part
from pairgram.rankers.scores import columns_of, in_memory

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RandomState, RowsLike

Reference = Literal["list", "training"]
# Features are made of so many rows at once, and the kernel values of rows in tiles of so many. A
# triangular root is multiplied in at most so many panels of rows, or panels of so many rows.
ROWS_AT_ONCE, TILE, PANELS, PANEL = 1024, 128, 8, 48
# Kernel values of two rows that differ by less than this share are equal but for rounding.
ROUNDING = 1e-14
LEVEL = Setting(
    "a number above 0.5 and below 1",
    lambda value: isinstance(value, Real) and 0.5 < float(value) < 1,
)
# What files hold of a posterior besides its model.
SETTINGS = {
    "noise": AT_LEAST_0,
    "unseen": AT_LEAST_0,
    "label_noise": AT_LEAST_0,
    "kind": choice("exact", "approximate"),
}


def _check_file(settings: Any, arrays: Arrays, sizes: Sizes) -> None:
    require(not np.tril(arrays["root"], -1).any(), "root must be upper triangular")
    whole = "shares" not in arrays or ("mean" in arrays and settings["unseen"] > 0)
    require(whole, "shares needs mean and unseen > 0")
    of_map = settings["model"]["settings"]["feature_map"] or {}
    has_kernel = of_map.get("kind") == "Kernel"
    require(has_kernel == ("shares" in arrays), "shares must be there with a kernel alone")


_IN_FILE = Kind(
    {"model": PART, **SETTINGS},
    {
        "root": Array(FLOAT64, ("n_dimensions", "outputs")),
        "mean?": Array(FLOAT64, ("outputs",)),
        "shares?": Array(FLOAT64, ("outputs",)),
    },
    _check_file,
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Posterior:
    """How sure the scores of a model are, given the labels; `posterior` makes it.

    Only differences of scores mean something, because a constant that is added to the scores of a
    list changes no ranking.

    Attributes
    ----------
    model : RankRLS or RankRLSCV
        The fitted model. It does not change if that is fitted again.
    noise : float
        σ², in the unit of the objective.
    label_noise : float
        The variance of a label of weight 1, and half of that of a margin; about its mean where it
        differs from list to list, of which `kind` tells.
    kind : {"exact", "approximate"}
        "exact" if labels have the same weight in all lists, as with
        ``Pairs(weighting="documents")``, with lists of one size, or for comparisons.
    root : ndarray of shape (n_dimensions, n_coefs)
        A in the variance ``noise · ‖A h‖²`` of a difference h of features, or of kernel values with
        the training rows: upper triangular or trapezoidal.
    unseen : float
        1 / alpha where scores have directions that no training row has: with a kernel, or with more
        features than rows. The variance is then ``noise · (unseen k(h, h) − ‖A h‖²)`` with the
        squared length k(h, h) in the space of the ridge. Otherwise 0.
    mean : ndarray of shape (n_coefs,), or None
        The weighted mean of h over the training rows that count. None for statistics alone.
    shares : ndarray of shape (n_coefs,), or None
        With a kernel, the shares of the training rows in this mean.

    Examples
    --------
    >>> from pairgram import Posterior, RankRLS, make_ranking, posterior
    >>> X, y, qid = make_ranking(random_state=0)
    >>> posterior(RankRLS().fit(X, y, qid=qid), X, y, qid=qid).save("posterior.safetensors")
    >>> Posterior.load("posterior.safetensors").draw(1000, random_state=0).shape
    (1000, 20)
    """

    _in_file: ClassVar[Kind] = _IN_FILE

    model: Any
    root: Vector
    noise: float
    label_noise: float
    kind: Literal["exact", "approximate"]
    unseen: float = 0.0
    mean: Any = None
    shares: Vector | None = None

    def __repr__(self) -> str:
        noise = f"noise={self.noise:.4g}, label_noise={self.label_noise:.4g}"
        return f"<Posterior of {self.root.shape[1]} coefficients, {self.kind}, {noise}>"

    def std(
        self, X: RowsLike, *, qid: ArrayLike | None = None, reference: Reference = "list"
    ) -> Vector:
        """Return the standard deviations of scores relative to a reference.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            The rows of a table are read into memory.
        qid : array-like of shape (n_rows,) or None, default=None
            Query ids. None means that all rows are one list.
        reference : {"list", "training"}, default="list"
            What deviations are relative to: the mean score of the list of a row, or that of the
            training rows. With "list" they depend on the other rows of the list, and that of a row
            alone is 0.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        ValueError
            If rows are not as `predict` of the model takes them; or if `reference` is "training"
            and the posterior is of statistics or a table.

        Notes
        -----
        It takes ``n_rows · n_features²`` flops, with a kernel ``n_rows · n_support²`` and the
        kernel values of rows with those of their list.
        """
        check_text("reference", reference, get_args(Reference))
        if reference == "training" and self.mean is None:
            raise ArgumentError(
                "reference",
                "must be 'list' for a posterior of statistics, such as those of a table, which do "
                "not tell the mean of the rows",
            )
        *_, qid, rows = self._read(X, qid)
        return self._deviations(rows, qid, reference == "training")

    def std_of_differences(self, Xa: RowsLike, Xb: RowsLike) -> Vector:
        """Return the standard deviations of differences of scores.

        Parameters
        ----------
        Xa, Xb : array-like or CSR matrix of shape (n_rows, n_features)
            The rows of each pair.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            The standard deviation of ``f(a) − f(b)`` for the rows a of Xa and b of Xb, given the
            labels: ``sqrt(σ² (a − b)ᵀ (G + alpha I)⁻¹ (a − b))``, and the like with a kernel, or
            with ``scale=True``. For a difference of two labels of weight 1, its variance has
            ``2 label_noise`` besides.

        Raises
        ------
        ValueError
            If rows are not as in `predict`.
        """
        (*_, first), (*_, second) = self._read(Xa), self._read(Xb)
        n_rows = first.shape[0]
        if second.shape[0] != n_rows:
            raise ArgumentError(
                "Xb", f"must have as many rows as Xa, {n_rows}, got {second.shape[0]}"
            )
        return np.sqrt(self._of_differences(first, second))

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
        deviations, predict = self.std_of_differences(Xa, Xb), self.model.predict
        difference = predict(Xa).astype(np.float64) - predict(Xb)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = ndtr(difference / deviations)
        return np.where(np.isnan(found), 0.5, found)

    def rank_ranges(
        self, X: RowsLike, *, qid: ArrayLike | None = None, level: float = 0.95
    ) -> dict[str, AnyArray]:
        """Return the range of ranks that each row may have.

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
            ``pandas.DataFrame(found)`` makes a frame of it. Lists stand in the order of their first
            rows, and in each the best rows come first. The columns are

            - ``qid``, if it is given;
            - ``row``: the number of the row of X;
            - ``score``, and the ``deviation`` of its difference from the mean of its list, as of
              `std`;
            - ``rank``: 1 for the highest score of its list;
            - ``best``: 1 + how many rows of its list are known to be above it;
            - ``worst``: the number of rows of its list, less those known to be below it.

        Raises
        ------
        ValueError
            If rows are not as in `predict`, or if `level` is not such a number.

        Notes
        -----
        Every pair is judged by itself, as in `probability_above`, without a correction for the
        number of pairs. Among many rows, some pairs therefore seem to be in a known order by
        chance. A list of n rows takes ``O(n² n_coefs)`` time.

        Examples
        --------
        >>> import numpy as np
        >>> from pairgram import RankRLS, posterior
        >>> X, y = np.tile(np.eye(3), (30, 1)), np.tile([2.0, 1.0, 0.9], 30)
        >>> found = posterior(RankRLS().fit(X, y), X, y).rank_ranges(np.eye(3))
        >>> found["row"], found["best"], found["worst"]
        (array([0, 1, 2]), array([1, 2, 3]), array([1, 2, 3]))
        """
        check_setting("level", level, LEVEL)
        model, X, qid, rows = self._read(X, qid)
        scores = model.predict(X).astype(np.float64)
        lists, reach = Queries.make(len(scores), qid=qid), float(ndtri(level))
        order = np.arange(len(scores)) if lists.order is None else lists.order
        parts = [order[a:b] for a, b in pairwise(lists.offsets)]
        parts = [part[np.argsort(-scores[part], kind="stable")] for part in parts]
        order, ends = np.concatenate(parts), np.ones((len(scores), 2), np.int64)
        several = [part for part in parts if len(part) > 1]  # a million lists may have one row each
        with single_threaded_blas, ThreadPoolExecutor(thread_count()) as pool:
            told = pool.map(lambda own: self._told_apart(rows[own], scores[own], reach), several)
            for part, found in zip(several, told, strict=True):
                ends[part] = found
        return {
            **({} if qid is None else {"qid": as_ids(qid, len(scores))[order]}),
            "row": order,
            "score": scores[order],
            "deviation": self._deviations(rows, qid)[order],
            "rank": np.concatenate([np.arange(1, len(part) + 1) for part in parts]),
            "best": ends[order, 0],
            "worst": ends[order, 1],
        }

    @property
    def covariance(self) -> Vector:
        """The covariance of the weights, (n_coefs, n_coefs): ``σ² (G + alpha I)⁻¹``.

        With ``scale=True``, the diagonal of G takes the place of I. The square roots of its
        diagonal are the deviations of the weights. This is no test of them: the ridge shrinks
        weights towards 0, and their deviations do not include this bias. It is an error with a
        kernel, which has no weights.
        """
        if self.shares is not None:
            raise ValueError("a model with a kernel has no weights, whose covariance could be told")
        found = self.root.T @ self.root
        if self.unseen:
            found = self.unseen * np.eye(len(found)) - found
        return self.noise * found

    def draw(self, n_draws: int = 1, random_state: RandomState = None) -> AnyArray:
        """Draw weights from their posterior distribution, as Thompson sampling does.

        Parameters
        ----------
        n_draws : int ≥ 1, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_draws, n_coefs), float64
            Draws from the normal distribution around `coef_` with `covariance`. A copy of the model
            with such weights as its `coef_` scores rows by them.

        Raises
        ------
        ValueError
            If the model has a kernel, or was solved in the dual form, as with fewer rows than
            features.
        """
        check_size("n_draws", n_draws)
        if self.unseen:
            raise ValueError(
                "weights cannot be drawn for a model with a kernel, or with more features than "
                "rows, because its scores also vary in directions that no weight describes: take a "
                "feature_map such as Nystroem or RandomFourier, or scale=True"
            )
        normal = generator(random_state).normal(size=(int(n_draws), len(self.root)))
        with single_threaded_blas:
            return np.asarray(self.model.coef_ + self.noise**0.5 * (normal @ self.root))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior and its model to a safetensors file, which holds no code.

        The file is written completely or not at all. `Posterior.load` reads it.

        Raises
        ------
        ValueError
            If the model cannot be saved.
        OSError
            If the file cannot be written. The message names the file.
        """
        arrays, record = describe_part("model", self.model)
        own = {name: getattr(self, name) for name in ("root", "mean", "shares")}
        arrays |= {name: array for name, array in own.items() if array is not None}
        settings = {name: getattr(self, name) for name in SETTINGS}
        write_file(path, "Posterior", arrays, {"feature_map": None, "model": record, **settings})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. Loading runs no code from the file.

        Raises
        ------
        ValueError
            If the file does not hold a posterior, is damaged, or has a setting or an array that
            `save` would not write. The message names the file.
        OSError
            If the file cannot be read.
        """
        _, arrays, settings = read_file(path, ("Posterior",))
        model = restore_part(arrays, "model", settings["model"])
        own: Any = {name: arrays.get(name) for name in ("root", "mean", "shares")}
        if own["root"].shape[1:] != model.coef_.shape:
            raise ValueError(f"{shown(path)}: root must have a column for every coefficient")
        return cls(model=model, **own, **{name: settings[name] for name in SETTINGS})

    def _read(self, X: RowsLike, qid: ArrayLike | None = None) -> tuple[Any, Any, Any, Any]:
        """Return a model, rows and their query ids for `predict`, and what the map takes."""
        model, X, qid = in_memory(self.model, X, qid)
        rows, feature_map = columns_of(model, X), Chain.of(model.feature_map_).then
        return model, X, qid, rows if feature_map is None else checked(feature_map, rows)

    @property
    def _map(self) -> Any:
        """The map, or the kernel, of rows that are filled and scaled; None if there is none."""
        return Chain.of(self.model.feature_map_).then

    def _features(self, rows: Matrix) -> Vector:
        """Return the features, or the kernel values, of checked rows, dense, in float64."""
        feature_map = self._map
        made = rows if feature_map is None else mapped(feature_map, rows)
        return dense(made).astype(np.float64)

    def _products(self, rows: Matrix, others: Matrix) -> Vector:
        """Return the kernel values of rows with the same rows of another matrix, (n_rows,)."""
        of = self._map
        tiles = blocks(rows.shape[0], TILE)
        return np.concatenate(
            [kernel_among(of, rows[tile], others[tile]).diagonal() for tile in tiles]
        )

    def _rooted(self, H: Vector) -> Vector:
        """Return ``A h`` of rows h, (n_rows, n_dimensions); what is 0 is not multiplied."""
        found = np.empty((len(H), len(self.root)))
        with single_threaded_blas:
            for part in blocks(len(self.root), max(PANEL, len(self.root) // PANELS)):
                found[:, part] = H[:, part.start :] @ self.root[part, part.start :].T
        return found

    def _of(self, products: Vector, explained: Vector) -> Vector:
        """Return (co)variances of products in the space of the ridge, and of those of `rooted`."""
        return self.noise * (self.unseen * products - explained if self.unseen else explained)

    def _squares(self, H: Vector, rows: Matrix, with_mean: Any) -> Vector:
        """Return the squared lengths of rows less a mean, whose features are H.

        With a kernel, `with_mean` are the products with the mean, less half of that with itself.
        """
        if self.shares is None:
            return np.asarray(np.einsum("ij,ij->i", H, H))
        return self._products(rows, rows) - 2 * with_mean

    def _variances(self, H: Vector, squares: Vector) -> Vector:
        """Return the variances of differences h of these squared lengths."""
        Z = self._rooted(H)
        return np.maximum(self._of(squares, np.einsum("ij,ij->i", Z, Z)), 0.0)

    def _deviations(self, rows: Matrix, qid: ArrayLike | None, of_training: bool = False) -> Vector:
        """Return the deviations of scores of checked rows; see `std`."""
        found: list[Future[Vector]] = []
        with single_threaded_blas, ThreadPoolExecutor(thread_count()) as pool:
            order: Any = slice(None)
            if of_training:
                parts = _even_blocks(rows.shape[0])
                found += [pool.submit(self._around, rows[part], self.mean) for part in parts]
            else:
                lists = Queries.make(rows.shape[0], qid=qid)
                order = order if lists.order is None else lists.order
                rows = rows[order]
                for first, last in blocks_of_parts(lists.offsets, ROWS_AT_ONCE):
                    own = rows[lists.offsets[first] : lists.offsets[last]]
                    if own.shape[0] <= ROWS_AT_ONCE:
                        found.append(pool.submit(self._of_lists, own, lists.sizes[first:last]))
                    else:
                        found += self._of_long_list(own, pool)
        deviations = np.empty(rows.shape[0])
        deviations[order] = np.sqrt(np.concatenate([part.result() for part in found]))
        return deviations

    def _of_differences(self, first: Matrix, second: Matrix) -> Vector:
        """Return the variances of differences of scores of checked rows, (n_rows,)."""
        found = np.empty(first.shape[0])
        for part in blocks(len(found), ROWS_AT_ONCE):
            a, b = first[part], second[part]
            H = self._features(a) - self._features(b)
            both = self._squares(H, a, 0.0)
            if self.shares is not None:
                both += self._products(b, b)
                squares = both - 2 * self._products(a, b)
                both = np.where(squares <= ROUNDING * both, 0.0, squares)  # 0 of two equal rows
            found[part] = self._variances(H, both)
        return found

    def _with_mean(self, H: Vector) -> Any:
        """Return the products of rows with the mean of the training rows, less half of its own."""
        return 0.0 if self.shares is None else (H - self.mean / 2) @ self.shares

    def _around(self, rows: Matrix, mean: Vector, with_mean: Any = None) -> Vector:
        """Return the variances of scores of rows, less the mean score of a list.

        The products with this mean are those with the mean of the training rows if none are given.
        """
        H = self._features(rows)
        with_mean = self._with_mean(H) if with_mean is None else with_mean
        H -= mean
        return self._variances(H, self._squares(H, rows, with_mean))

    def _with_list(self, rows: Matrix) -> Any:
        """Return the products of rows with their mean, less half of that with itself."""
        if self.shares is None:
            return np.zeros(rows.shape[0])
        own, shares = rows.astype(np.float64), np.full(rows.shape[0], 1 / rows.shape[0])
        found = scores_of_rows(with_support_of(self._map, own), own, shares)
        return found - found.mean() / 2

    def _of_lists(self, rows: Matrix, sizes: Rows) -> Vector:
        """Return the variances of scores of whole lists, less the mean score of their list."""
        H, sizes = self._features(rows), sizes[sizes > 0]
        ends = np.cumsum(sizes)
        means = np.add.reduceat(H, ends - sizes, axis=0) / sizes[:, None]
        H -= np.repeat(means, sizes, axis=0)
        with_mean: Any = 0.0
        if self.shares is not None:
            own = (rows[end - size : end] for end, size in zip(ends, sizes, strict=True))
            with_mean = np.concatenate([*map(self._with_list, own)])
        return self._variances(H, self._squares(H, rows, with_mean))

    def _of_long_list(self, rows: Matrix, pool: ThreadPoolExecutor) -> list[Future[Vector]]:
        """Return the same of one list, in blocks."""
        parts, with_mean = [*_even_blocks(rows.shape[0])], self._with_list(rows)
        sums = pool.map(lambda part: self._features(rows[part]).sum(axis=0), parts)
        mean = sum(sums) / rows.shape[0]
        return [pool.submit(self._around, rows[part], mean, with_mean[part]) for part in parts]

    def _told_apart(self, rows: Matrix, scores: Vector, reach: float) -> Rows:
        """Return the best and the worst rank of the rows of a list, (n_rows, 2)."""
        H = self._features(rows)
        H -= H.mean(axis=0)
        Z, squares = self._rooted(H), self._squares(H, rows, 0.0)
        explained = np.einsum("ij,ij->i", Z, Z)
        # What differs by less than this differs by rounding.
        least = 1e-12 * np.abs(scores).max()
        ends = np.empty((len(scores), 2), np.int64)
        for part in blocks(len(scores), TILE):
            if self.shares is None:
                own = cdist(Z[part], Z, "sqeuclidean")
                square = cdist(H[part], H, "sqeuclidean") if self.unseen else own
            else:
                own = explained[part, None] + explained - 2 * (Z[part] @ Z.T)
                products = kernel_among(self._map, rows[part], rows)
                square = squares[part, None] + squares - 2 * products
            variances = self._of(square, own)
            apart = np.maximum(reach * np.sqrt(np.maximum(variances, 0.0)), least)
            above = scores - scores[part, None]
            ends[part, 0] = 1 + (above > apart).sum(axis=1)
            ends[part, 1] = len(scores) - (-above > apart).sum(axis=1)
        return ends


def _even_blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices of about `ROWS_AT_ONCE` rows and of one size, for any number of threads."""
    return blocks(n_rows, -(-n_rows // max(2, -(-n_rows // ROWS_AT_ONCE))))
