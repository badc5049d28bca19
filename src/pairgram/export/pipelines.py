"""`row_scorer`, and what scores rows by the formulas of the steps of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram._support import limits
from pairgram._support.arrays import blocks, kind_of, kind_of_values
from pairgram._support.checks import AnyArray
from pairgram.export.form import filled_columns, require_numbers
from pairgram.export.formulas import Rows, is_missing, leaves, sum_of
from pairgram.export.transformers import columns_before
from pairgram.rankers.linear_ranker import LinearRanker
from pairgram.rankers.scores import Scorer


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
    texts : dict of str or int to frozenset of str
        The columns that are text, by name or else by number, with the categories of each.
    names : tuple of str or int
        The columns that are read, by name or else by number.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.n_features_in_, self.feature_names_in_, columns = columns_before(pipeline.steps)
        columns = filled_columns(pipeline.steps[-1][1], columns)
        ranker = pipeline.steps[-1][1].row_scorer()
        found, names = [*leaves(columns)], self.feature_names_in_ or range(self.n_features_in_)
        sources = sorted({one.source for one in found}) or [0]  # to know how many rows there are
        texts: dict[int, set[str]] = {source: set() for source in sources}
        for one in found:
            texts[one.source] |= one.texts
            if one.accepted is None:
                require_numbers(one, names[one.source])
        accepted = ((one.source, one.accepted) for one in found if one.accepted is not None)
        self._accepted = [*dict.fromkeys(accepted)]
        self._ranker, self._sum, self._width = ranker, sum_of(columns), max(1, len(columns))
        if ranker.linear is not None:  # all categories of a source become one number
            coef, constant = ranker.linear
            self._ranker, self._sum = None, self._sum.times(coef[:, None], constant)
            self._width = len(sources)
        self.names = tuple(names[source] for source in sources)
        self.texts = {names[source]: frozenset(own) for source, own in texts.items() if own}
        self._sources = [(source, object if own else float) for source, own in texts.items()]

    def __call__(self, X: AnyArray | Mapping[str, ArrayLike]) -> AnyArray:
        """Return the scores of rows, (n_rows,).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or mapping
            Rows, of objects if there is text; or what has the values of a column under its name,
            ``X[name]``: a dict of lists, or a frame. Other columns are left out. None and NaN are
            missing. Numbers are not checked: an infinite one, or one that is missing where no step
            fills it, has no meaningful score.

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
        columns = self._columns_of(X)
        n_rows = len(columns[self._sources[0][0]])
        size = max(1, limits.now.dense_block_bytes // (8 * self._width))
        if n_rows <= size:
            return self._scores(columns)
        parts = ([x if x is None else x[k] for x in columns] for k in blocks(n_rows, size))
        return np.concatenate([*map(self._scores, parts)])

    def _scores(self, columns: Rows) -> AnyArray:
        values = self._sum.values(columns)
        return values[:, 0] if self._ranker is None else self._ranker(values)

    def of_columns(self, names: Sequence[str]) -> ScorerOfColumns:
        """Return what scores rows of columns with these names."""
        return ScorerOfColumns(self, names)

    def _columns_of(self, X: AnyArray | Mapping[str, ArrayLike]) -> Any:
        """Return the columns of rows."""
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
            given, names = X.T, range(self.n_features_in_)
        elif names is None:
            raise ValueError(
                "X must be an ndarray, because the pipeline was fitted to columns without names, "
                f"got {type(X).__name__}"
            )
        columns: list[Any] = [None] * self.n_features_in_
        first, _ = self._sources[0]
        for source, dtype in self._sources:
            columns[source] = one = _column_of(given, names[source], dtype)
            if len(one) != len(columns[first]):
                raise ValueError(
                    f"column {names[source]!r} of X has {len(one)} values, and column "
                    f"{names[first]!r} has {len(columns[first])}"
                )
        for source, accepted in self._accepted:
            for row, value in enumerate(columns[source].tolist()):
                if value in accepted or (None in accepted and is_missing(columns[source][[row]])):
                    continue
                raise ValueError(
                    f"row {row} of X has {value!r} in column {names[source]!r}, which no row "
                    "had in fit: its encoder has handle_unknown='error'"
                )
        return columns


def _column_of(given: Any, name: Any, dtype: type) -> AnyArray:
    """Return the values of a column, (n_rows,)."""
    try:
        values = given[name]
    except KeyError:
        raise ValueError(f"X has no column {name!r}") from None
    try:
        found: AnyArray = np.asarray(values, None if dtype is float else object)
    except ValueError:  # lists of several lengths
        found = np.asarray(values, object)
    if found.dtype != dtype:  # which may be of text such as "1"
        kind = kind_of(getattr(values, "dtype", object))
        if kind == "objects":
            kind = kind_of_values(np.asarray(values, object))
        if kind != "numbers":
            raise ValueError(f"column {name!r} of X must hold numbers, got {kind}")
        found = np.asarray(values, dtype)
    if found.ndim != 1:
        raise ValueError(f"column {name!r} of X must be (n,), got shape {found.shape}")
    return found


@dataclass(frozen=True, eq=False)
class ScorerOfColumns:
    """Scores rows of columns of a table, some of which a pipeline reads.

    Attributes
    ----------
    scorer : PipelineScorer
    names : sequence of str
        The names of the columns, in the order of the rows.
    """

    scorer: PipelineScorer
    names: Sequence[str]

    def predict(self, X: AnyArray) -> AnyArray:
        """Return the scores of rows, (n_rows,).

        Raises
        ------
        ValueError
            If a row has no finite score.
        """
        scores = self.scorer(dict(zip(self.names, X.T, strict=True)))
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores)))
            cells, read = zip(self.names, X[row], strict=True), self.scorer.names
            gaps = [repr(name) for name, x in cells if x != x and name in read]
            why = "a step of the pipeline has no number for it"
            if gaps:
                why = f"no step of the pipeline fills what it lacks in column {', '.join(gaps)}"
            raise ValueError(f"row {row} of these gets the score {scores[row]}: {why}")
        return scores


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
        ``row_scorer(X) -> ndarray of shape (n_rows,), float64``. That of a ranker is what
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
