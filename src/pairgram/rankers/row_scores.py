"""Score rows by a fitted model: a row gets the same bits whatever other rows there are."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from pairgram._support.arrays import read_rows
from pairgram._support.checks import require_finite
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector
from pairgram.feature_maps.base import is_known, scores_of_rows
from pairgram.feature_maps.input_map import InputMap, after_inputs
from pairgram.feature_maps.row_scorer import RowScorer
from pairgram.problem.data import require_finite_features

__all__ = ["checked_rows", "scores_of"]


# A prepared model is kept between calls if its arrays take at most this many bytes.
KEPT_BYTES = 64 << 20


def checked_rows(estimator: Any, X: Any) -> Any:
    """Return the rows that `predict` is given, dense or CSR, as float64 or float32.

    They may still hold NaN or infinity. scikit-learn's checks take longer than scoring a hundred
    rows. Arrays and data frames of floats, which these checks would not change, are therefore
    checked only for the names and the number of features.

    Raises
    ------
    ValueError
        If X is not as described, or has other features than in `fit`.
    """
    fitted = vars(estimator)
    if (
        type(X) is np.ndarray
        and X.ndim == 2
        and _is_ready(X.dtype)
        and X.size > 0
        and X.shape[1] == fitted.get("n_features_in_")
        and "feature_names_in_" not in fitted
    ):
        return X
    check_is_fitted(estimator)
    pandas = sys.modules.get("pandas")
    is_frame = pandas is not None and type(X) is pandas.DataFrame
    is_frame = is_frame and X.columns.is_unique
    if is_frame and X.size > 0 and all(map(_is_ready, set(X.dtypes))):
        return validate_data(estimator, X, reset=False, skip_check_array=True).to_numpy()
    return read_rows(X, estimator=estimator)


def _is_ready(dtype: Any) -> bool:
    """Tell whether a dtype is NumPy's float64 or float32, in the byte order of the machine."""
    return isinstance(dtype, np.dtype) and dtype.char in "df" and dtype.isnative


def scores_of(ranker: Any, X: Any) -> NDArray[Any]:
    """Return the scores of checked rows by a fitted linear ranker, (n_rows,), in the type of X.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, or if a kernel value overflows. The message names the row.
    """
    scores = _scores_of(ranker, X)
    if not np.isfinite(scores).all():  # find out what is wrong with X
        require_finite(X, "X")
        feature_map = after_inputs(ranker.inputs_, ranker.feature_map_)
        if is_known(feature_map):
            row = int(np.argmin(np.isfinite(scores)))
            feature_map.require_finite_row(X[row : row + 1], row)
        if feature_map is not None:
            require_finite_features(feature_map, X)
        raise ValueError("X too large: scores of its rows overflow")
    if X.dtype == np.float64:
        return scores
    if np.abs(scores).max(initial=0.0) > np.finfo(X.dtype).max:
        raise ValueError("X too large: scores of its rows overflow float32")
    return scores.astype(X.dtype)


def _scores_of(ranker: Any, X: Any) -> Vector:
    feature_map = after_inputs(ranker.inputs_, ranker.feature_map_)
    if feature_map is None:
        return RowScorer([(None, _vector(ranker.coef_))]).scores(X, ranker.n_threads)
    if not is_known(feature_map):
        return _mapped_scores(feature_map, ranker.coef_, X)
    compiled = feature_map.scores_sparse or not scipy.sparse.issparse(X)
    scorer = _prepared(ranker, feature_map, X.dtype) if compiled else None
    if scorer is None:
        return _mapped_scores(feature_map, ranker.coef_, X)
    return scorer.scores(X, feature_map.n_threads)


def _mapped_scores(feature_map: Any, coef: Vector, X: Any) -> Vector:
    """Return the scores of rows whose features Python makes, block by block."""
    if is_known(feature_map):
        require_finite(X, "X")
    try:
        with single_threaded_blas():  # maps of this package have threads of their own
            return scores_of_rows(feature_map, X, _vector(coef), 1)
    except ValueError:
        require_finite(X, "X")  # this names the row, whereas the map only saw a block
        raise


def _vector(coef: Any) -> Vector:
    return np.ascontiguousarray(coef, np.float64)


# The prepared models of every ranker, by the type of rows. They are not part of the ranker, so they
# are not pickled or copied with it, and they are freed with it.
_kept: WeakKeyDictionary[Any, dict[str, _Prepared]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A prepared model that is kept for later calls, and what it was made from.

    For the map, the objects that are its attributes are kept. For the coefficients, which are
    short, the values are kept, so that a change in place is noticed.
    """

    kind: type
    attributes: dict[str, Any]
    coef: bytes
    scorer: RowScorer

    def is_of(self, feature_map: Any, coef: bytes) -> bool:
        """Tell whether the model was made from this map and these coefficients."""
        now = _attributes(feature_map)
        return (
            type(feature_map) is self.kind
            and coef == self.coef
            and len(now) == len(self.attributes)
            and all(now.get(name, self) is value for name, value in self.attributes.items())
        )


def _attributes(feature_map: Any) -> dict[str, Any]:
    """Return all that a map was made from: its attributes, and those of a map after inputs."""
    own = dict(vars(feature_map))
    if isinstance(feature_map, InputMap) and feature_map.feature_map is not None:
        own |= {f"map.{name}": value for name, value in vars(feature_map.feature_map).items()}
    return own


def _prepared(ranker: Any, feature_map: Any, dtype: np.dtype[Any]) -> RowScorer | None:
    """Return the prepared model for rows of a type, or None if only Python can score them.

    A small one is kept for the next call.
    """
    coef = _vector(ranker.coef_)
    values = coef.tobytes()
    try:
        kept = _kept.setdefault(ranker, {})
    except TypeError:  # a subclass that cannot be hashed
        kept = {}
    known = kept.get(dtype.char)
    if known is not None and known.is_of(feature_map, values):
        return known.scorer
    attributes = _attributes(feature_map)
    scorer: RowScorer | None = feature_map.scorer(coef, dtype)
    if scorer is None:
        return None
    if sum(getattr(value, "nbytes", 0) for value in attributes.values()) <= KEPT_BYTES:
        scorer = replace(scorer, parts=list(scorer.parts))
        kept[dtype.char] = _Prepared(type(feature_map), attributes, values, scorer)
    return scorer
