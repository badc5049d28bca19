"""`row_scorer`: frozen functions that score rows, of rankers and of pipelines that end in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.checks import Vector
from pairgram.features.formulas import (
    Affine,
    Column,
    Lookup,
    Product,
    Rows,
    combined,
    is_missing,
    leaves,
)
from pairgram.files.transformers import columns_before
from pairgram.rankers.base import LinearRanker

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator
    from pairgram.rankers.scores import Scorer

Places = NDArray[np.intp]


class _Numbers:
    """Affine columns, side by side."""

    def __init__(self, columns: Sequence[Affine], factors: Places) -> None:
        self.sources = [column.source for column in columns]
        self.factors = np.array([column.factor for column in columns])
        self.offsets = np.array([column.offset for column in columns])
        fills = np.array([column.fill for column in columns])
        self.fills = None if np.isnan(fills).all() else fills
        self.plain = self.fills is None and all(column.is_plain for column in columns)

    def of(self, rows: Rows, values: Vector) -> Vector:
        if not isinstance(rows, np.ndarray):
            found = np.column_stack([rows[source] for source in self.sources])
        elif self.sources == list(range(len(rows))):
            found = rows.T
        else:
            found = rows[self.sources].T
        if self.plain:
            return found
        made = found * self.factors + self.offsets
        return made if self.fills is None else np.where(np.isnan(found), self.fills, made)


class _Categories:
    """Columns that look up the categories of one source, side by side."""

    def __init__(self, columns: Sequence[Lookup], factors: Places) -> None:
        keys = np.array([*dict.fromkeys(key for one in columns for key in one.keys)], dtype=object)
        self.source = columns[0].source
        self.number = {key: number for number, key in enumerate(keys)}
        # The last two rows are those of unknown categories and of missing ones.
        found = [[*one.known(keys), one.other, one.fill] for one in columns]
        self.values = np.ascontiguousarray(np.transpose(found))

    def of(self, rows: Rows, values: Vector) -> Vector:
        x, number = rows[self.source], self.number
        codes = np.array([number.get(value, -2) for value in x.tolist()], np.intp)
        (unknown,) = np.nonzero(codes == -2)
        if len(unknown):
            codes[unknown[is_missing(x[unknown])]] = -1
        return np.asarray(self.values[codes])


class _Products:
    """Products of columns that have been computed, side by side."""

    def __init__(self, columns: Sequence[Product], factors: Places) -> None:
        self.left, self.right = factors.T
        self.factors = np.array([column.factor for column in columns])
        self.offsets = np.array([column.offset for column in columns])

    def of(self, rows: Rows, values: Vector) -> Vector:
        found = values[:, self.left] * values[:, self.right]
        return np.asarray(self.factors * found + self.offsets)


class _Alone:
    """A column that is computed alone."""

    def __init__(self, columns: Sequence[Column], factors: Places) -> None:
        (self.column,) = columns

    def of(self, rows: Rows, values: Vector) -> Vector:
        return self.column.of(rows)[:, None]


def _factors(column: Column) -> tuple[Column, ...]:
    return (column.left, column.right) if isinstance(column, Product) else ()


def _group(column: Column, place: int) -> tuple[int, int, Any]:
    """Return what is the same for columns that are computed at once; lower ones come first."""
    depth = 0
    inner = _factors(column)
    while inner:
        depth, inner = depth + 1, tuple(one for part in inner for one in _factors(part))
    if depth:
        return depth, 0, _Products
    if isinstance(column, Lookup):
        return 0, column.source, _Categories
    return (0, 0, _Numbers) if isinstance(column, Affine) else (0, place, _Alone)


class _Columns:
    """Columns that are computed of a caller's columns, as many at a time as possible."""

    def __init__(self, columns: Sequence[Column]) -> None:
        order, self.width = [*columns], len(columns)
        place = {id(column): k for k, column in enumerate(order)}
        groups: dict[Any, list[int]] = {}
        for k, column in enumerate(order):
            for factor in _factors(column):  # behind the columns, if it is none of them
                if place.setdefault(id(factor), len(order)) == len(order):
                    order.append(factor)
            groups.setdefault(_group(column, k), []).append(k)
        self.n_all, self.parts = len(order), []  # [(places, what computes them)]
        for depth, _, kind in sorted(groups, key=lambda group: group[0]):
            at = groups[depth, _, kind]
            own = [order[k] for k in at]
            factors = np.array([[place[id(one)] for one in _factors(column)] for column in own])
            self.parts.append((np.array(at), kind(own, factors)))

    def of(self, rows: Rows, n_rows: int) -> Vector:
        """Return the values of the columns, (n_rows, n_columns), C-contiguous."""
        if len(self.parts) == 1:
            ((_, part),) = self.parts
            return np.ascontiguousarray(part.of(rows, np.empty((0, 0))))
        values = np.empty((n_rows, self.n_all))
        for at, part in self.parts:
            values[:, at] = part.of(rows, values)
        return np.ascontiguousarray(values[:, : self.width])


class PipelineScorer:
    """Scores rows of a caller's own columns, text among them, in one thread.

    It computes what the steps of a pipeline compute by the formulas that exports have too: scores
    are those of `predict` up to rounding. Any number of threads may call it at the same time, and a
    pickle gives the same bits. It does not change when the pipeline is fitted again.

    Parameters
    ----------
    pipeline : fitted sklearn.pipeline.Pipeline that ends in a ranker of this package

    Attributes
    ----------
    feature_names_in_ : tuple of str, or None
        The names of the columns, if the pipeline was fitted to a frame.
    n_features_in_ : int
        The number of columns of the rows.
    text_names : tuple of str or int
        The columns that are text, by name or else by number.
    reads_lists : bool
        Whether the score of a row depends on the other rows of its list.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.n_features_in_, self.feature_names_in_, columns = columns_before(pipeline.steps)
        ranker: Scorer = pipeline.steps[-1][1].row_scorer()
        self.reads_lists = ranker.reads_lists
        self._ranker, self._coef, self._constant = ranker, None, 0.0
        # Of all columns, also of those whose weight is 0.
        encoded = [leaf for c in columns for leaf in leaves(c) if isinstance(leaf, Lookup)]
        accepted = {one.source: one.accepted for one in encoded if one.accepted is not None}
        self._accepted = list(accepted.items())
        if ranker.linear is not None:  # all categories of a source become one column
            coef, self._constant = ranker.linear
            sums = []
            for column, weight in combined(columns, coef.tolist()):
                if isinstance(column, Affine) and column.has_gaps:
                    self._constant += weight * column.offset
                    column, weight = Affine(column.source), weight * column.factor
                sums.append((column, weight))
            columns, self._coef = [one for one, _ in sums], np.array([weight for _, weight in sums])
        self._columns = _Columns(columns)
        found = [leaf for column in columns for leaf in leaves(column)]
        found += encoded
        texts = {
            one.source
            for one in found
            if isinstance(one, Lookup) and any(isinstance(key, str) for key in one.keys)
        }
        read = {one.source for one in found} | accepted.keys()
        sources = sorted(read) or [0]  # to know how many rows there are
        names = self.feature_names_in_ or range(self.n_features_in_)
        self.text_names = tuple(names[source] for source in sorted(texts))
        self._sources = [(source, object if source in texts else float) for source in sources]

    def __call__(
        self, X: NDArray[Any] | Mapping[str, ArrayLike], qid: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the scores of rows, (n_rows,).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or mapping
            Rows, of objects if there is text; or what has the values of a column under its name,
            ``X[name]``: a dict of lists, or a frame. Other columns are left out. None and NaN are
            missing. Numbers are not checked: an infinite one, or one that is missing where no step
            fills it, has no meaningful score.
        qid : array-like of shape (n_rows,) or None
            Query ids, for inputs within lists alone. None means that all rows are one list.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        TypeError
            If X is a list or another object without columns.
        ValueError
            If a column is not there, has another length than the first one, is text in the place of
            numbers, or has a category that its encoder refuses; or if X is an array of another
            shape.
        """
        rows = self._rows(X)
        values = self._columns.of(rows, len(rows[self._sources[0][0]]))
        if self._coef is None:
            return self._ranker(values, qid)
        return _core.score_rows(values, self._coef) + self._constant

    def _rows(self, X: NDArray[Any] | Mapping[str, ArrayLike]) -> Any:
        """Return the columns of rows, which a matrix of numbers has as its own rows."""
        given: Any = X
        names: Sequence[Any] | None = self.feature_names_in_
        if not hasattr(X, "__getitem__") or isinstance(X, (list, tuple, str)):
            raise TypeError(
                "X must be a dict of lists, with a list for every column, a frame, or an ndarray, "
                f"got {type(X).__name__}"
            )
        if isinstance(X, np.ndarray):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X must be (n, {self.n_features_in_}), got shape {X.shape}")
            if not self.text_names and X.dtype.kind == "f":
                return np.asarray(X.T, np.float64)
            given, names = X.T, range(self.n_features_in_)
        elif names is None:
            raise ValueError(
                "X must be an ndarray, because the pipeline was fitted to columns without names, "
                f"got {type(X).__name__}"
            )
        columns: list[Any] = [None] * self.n_features_in_
        for source, dtype in self._sources:
            columns[source] = one = _column_of(given, names[source], dtype)
            first, _ = self._sources[0]
            if len(one) != len(columns[first]):
                raise ValueError(
                    f"column {names[source]!r} of X has {len(one)} values, and column "
                    f"{names[first]!r} has {len(columns[first])}"
                )
        for source, accepted in self._accepted:
            values = columns[source].tolist()
            other = [row for row, value in enumerate(values) if value not in accepted]
            gaps = is_missing(columns[source][other])
            for row, is_gap in zip(other, gaps.tolist(), strict=True):
                if not is_gap or None not in accepted:
                    raise ValueError(
                        f"row {row} of X has {values[row]!r} in column {names[source]!r}, which no "
                        "row had in fit: its encoder has handle_unknown='error'"
                    )
        return columns


def _column_of(given: Any, name: Any, dtype: type) -> NDArray[Any]:
    """Return the values of a column, (n_rows,)."""
    try:
        found: NDArray[Any] = np.asarray(given[name], dtype)
    except KeyError:
        raise ValueError(f"X has no column {name!r}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} of X is not a column of numbers: {error}") from error
    if found.ndim != 1:
        raise ValueError(f"column {name!r} of X must be (n,), got shape {found.shape}")
    return found


def row_scorer(model: BaseEstimator, dtype: DTypeLike = np.float64) -> Scorer | PipelineScorer:
    """Return a frozen function that scores rows without the checks of `predict`, for serving.

    Parameters
    ----------
    model : fitted ranker, or sklearn.pipeline.Pipeline that ends in one
        Its other steps may be the transformers that `pairgram.export` takes.
    dtype : float64 or float32, default=float64
        The type of the rows of a ranker. A pipeline takes rows of any type.

    Returns
    -------
    callable
        ``row_scorer(X, qid=None) -> ndarray of shape (n_rows,), float64``. That of a ranker is what
        its method `row_scorer` returns. That of a pipeline takes rows of the columns that the
        pipeline was fitted to, as an array or by their names: a dict of lists, or a frame. Both can
        be pickled, and threads may share them.

    Raises
    ------
    TypeError
        If the model is neither a ranker nor a Pipeline that ends in one.
    ValueError
        If a step has no formula, or only Python can score rows. The message names the step.

    Notes
    -----
    The scores of a pipeline are computed by formulas, in float64, and are those of `predict` up to
    rounding: the steps themselves round in another order. Missing text is one category, whether it
    is None, NaN or NA; scikit-learn's encoders tell None from NaN. Numbers are not checked: where
    `predict` refuses a number, such as infinity, or NaN that no step fills, the score may be NaN.
    The weights of a linear model are folded into the categories, so that a column of text costs one
    dict lookup for each row.

    Examples
    --------
    >>> import pandas as pd
    >>> from pairgram import RankRLS, row_scorer
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> shop = pd.DataFrame({"brand": ["Acme", "Bolt", "Acme"], "price": [3.0, 2.0, 1.0]})
    >>> columns = make_column_transformer((OneHotEncoder(), ["brand"]), remainder="passthrough")
    >>> pipeline = make_pipeline(columns, RankRLS()).fit(shop, [2.0, 0.0, 1.0])
    >>> scorer = row_scorer(pipeline)
    >>> scores = scorer({"brand": ["Bolt", "Acme"], "price": [1.0, 1.0]})
    >>> bool(scores[1] > scores[0])
    True
    """
    if isinstance(model, LinearRanker):
        return model.row_scorer(dtype)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, LinearRanker):
        raise TypeError(
            "model must be a ranker of pairgram or a Pipeline that ends in one, got "
            f"{'a Pipeline that ends in ' * (last is not model)}{type(last).__name__}"
        )
    check_is_fitted(last)
    return PipelineScorer(model)
