"""Score rows and tables by a fitted model, serve scores, and tell what columns contribute."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_is_fitted, validate_data

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import (
    is_native_float,
    is_ready,
    read_rows,
)
from pairgram._support.checks import AnyArray, Vector, naming_not_finite, require_finite
from pairgram._support.machine import single_threaded_blas
from pairgram.data.dataset import RankingData, require_finite_features
from pairgram.data.pairs import Pairs
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import (
    RowScorer,
    is_known,
    linear_nodes,
    scorer_of,
    scores_of_rows,
)
from pairgram.features.gaps import filled
from pairgram.features.row_values import Chain
from pairgram.solvers.ridge_path import ColumnSums

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, Matrix, RowsLike, Transformer


class Scorer:
    """Scores C-contiguous rows of one type, in one thread and without checks.

    Scores are float64. For float64 rows they have the same bits as those of `predict`, which rounds
    the scores of float32 rows to float32. Any number of threads may call it at the same
    time. It does not change when the model is fitted again. A pickle holds what it was made of, and
    the scorer that is made of that gives the same bits.

    Parameters
    ----------
    model : fitted ranker of this package
    dtype : float64 or float32
        The type of the rows.
    """

    __slots__ = (
        "_coef",
        "_constant",
        "_dtype",
        "_made_of",
        "_missing",
        "_n_features",
        "_parts",
    )

    def __init__(self, model: BaseEstimator, dtype: DTypeLike = np.float64) -> None:
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {self._dtype}")
        name = type(model).__name__
        if getattr(model, "prior_", None) is not None:
            raise ValueError(
                f"the {name} adds the scores of a prior, which a scorer does not: use predict"
            )
        chain = Chain.of(model.feature_map_)
        feature_map = chain.after_fill
        coef = np.array(model.coef_, np.float64, order="C")
        coef.flags.writeable = False
        # All that is read of the model here and above, for a pickle.
        self._made_of = SimpleNamespace(
            coef_=coef,
            feature_map_=copy.copy(model.feature_map_),
            n_features_in_=model.n_features_in_,
        )
        self._constant = 0.0
        self._coef, self._parts = coef, None
        self._missing, self._n_features = None, int(model.n_features_in_)
        if chain.fill is not None:
            self._missing = np.array(chain.fill.fill_, self._dtype)
        if feature_map is None:
            return
        found = scorer_of(feature_map, coef, self._dtype)
        if found is None:
            raise ValueError(
                f"the {name} has a feature map or a kernel of Python's, which only predict scores"
            )
        parts = list(found.parts)
        self._constant = found.offset
        if len(parts) == 1 and parts[0][0] is None:  # nodes that are linear
            self._coef = parts[0][1]
        else:
            self._parts = parts

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""
        return self._dtype

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the rows."""
        return self._n_features

    @property
    def linear(self) -> tuple[Vector, float] | None:
        """The weights of the columns, without gaps, and a constant, if the score is their sum."""
        return (self._coef, self._constant) if self._parts is None else None

    def __call__(self, X: AnyArray) -> AnyArray:
        """Return the scores of rows, (n_rows,).

        Parameters
        ----------
        X : C-contiguous ndarray of shape (n_rows, n_features), of the scorer's type
            Nothing is checked but the type and the shape. A row with NaN or infinity has no
            meaningful score.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        TypeError
            If X is no ndarray, or has another type.
        ValueError
            If X has another shape, or is not C-contiguous.
        """
        try:
            if X.dtype is not self._dtype and X.dtype != self._dtype:
                raise TypeError("the rows have another type")
            return self._scores(X)
        except (AttributeError, TypeError, ValueError) as error:  # checked when it is too late,
            self._refuse(X, error)  # because checks take time
            raise

    def _scores(self, X: AnyArray) -> AnyArray:
        if self._missing is not None:
            if X.shape[1:] != self._missing.shape:  # it could be broadcast
                raise ValueError("the rows have another shape")
            X = np.where(np.isnan(X), self._missing, X)
        if self._parts is None:
            scores = _core.score_rows(X, self._coef)
        else:
            node_map, coef = self._parts[0]
            scores = node_map.score(X, coef, 1)
            for node_map, coef in self._parts[1:]:
                scores = scores + node_map.score(X, coef, 1)
        return scores + self._constant if self._constant else scores

    def _refuse(self, X: object, error: Exception) -> None:
        """Raise an error that says what is wrong with the rows, if it is their form."""
        wanted = f"a scorer takes a C-contiguous ndarray of {self._dtype}, (n, {self._n_features})"
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"{wanted}, got {type(X).__name__}: take predict, or convert"
            ) from error
        if X.dtype != self._dtype:
            other = f"row_scorer(dtype='{X.dtype}')" if X.dtype.char in "df" else "predict"
            raise TypeError(
                f"{wanted}, got {X.dtype}: take {other}, or convert the rows"
            ) from error
        if X.ndim != 2 or X.shape[1] != self._n_features:
            raise ValueError(f"{wanted}, got shape {X.shape}") from error
        if not X.flags.c_contiguous:
            raise ValueError(
                f"{wanted}, got rows in another order: take numpy.ascontiguousarray(X)"
            ) from error

    def __reduce__(self) -> Any:
        return type(self), (self._made_of, self._dtype)


def checked_rows(estimator: BaseEstimator, X: Any) -> Any:
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
        is_ready(X, 2)
        and X.shape[1] == fitted.get("n_features_in_")
        and "feature_names_in_" not in fitted
    ):
        return X
    return _frame_rows(estimator, X)


def _frame_rows(estimator: BaseEstimator, X: Any) -> Any:
    """Return `checked_rows` of what is not an array of floats, or has names of columns."""
    check_is_fitted(estimator)
    pandas = sys.modules.get("pandas")
    is_frame = pandas is not None and type(X) is pandas.DataFrame
    is_frame = is_frame and X.columns.is_unique
    if is_frame and X.size > 0 and all(map(is_native_float, set(X.dtypes))):
        return validate_data(estimator, X, reset=False, skip_check_array=True).to_numpy()
    return read_rows(X, estimator=estimator)


def rows_to_score(model: BaseEstimator, X: Any) -> Any:
    """Return the rows that a model scores: checked, and without missing values if it fills them.

    CSR rows are taken as they are.
    """
    rows = checked_rows(model, X)
    fill = Chain.of(model.feature_map_).fill
    return rows if fill is None else filled(rows, fill.fill_)


def scores_of(ranker: BaseEstimator, X: Matrix) -> AnyArray:
    """Return the scores of checked rows by a fitted linear ranker, (n_rows,), in the type of X.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, or if a kernel value overflows. The message names the row.
    """
    feature_map = Chain.of(ranker.feature_map_).after_fill
    scores = _scores_of(ranker, feature_map, X)
    if not np.isfinite(scores).all():
        _refuse_rows(ranker, feature_map, X, int(np.argmin(np.isfinite(scores))))
    return scores if X.dtype == np.float64 else in_float32(scores)


def in_float32(scores: Vector) -> AnyArray:
    """Return scores as float32; it is a ValueError if one overflows."""
    if np.abs(scores).max(initial=0.0) > np.finfo(np.float32).max:
        raise ValueError("X too large: scores of its rows overflow float32")
    return scores.astype(np.float32)


def _refuse_rows(
    ranker: BaseEstimator, feature_map: Transformer | None, X: Matrix, row: int
) -> NoReturn:
    """Raise a ValueError that says why a row has no finite score."""
    with naming_not_finite(getattr(ranker, "feature_names_in_", None)):
        require_finite(X, "X")
        if not (feature_map is None or is_known(feature_map)):
            require_finite_features(feature_map, X)
    made = "" if feature_map is None else ", or what the feature map makes of it, overflows"
    raise ValueError(f"X too large: the score of row {row}{made or ' overflows'}")


def _scores_of(ranker: BaseEstimator, feature_map: Transformer | None, X: Matrix) -> Vector:
    if feature_map is None:
        return RowScorer([(None, _vector(ranker.coef_))]).scores(X)
    if not is_known(feature_map):
        return _mapped_scores(ranker, feature_map, X)
    scorer = _prepared(ranker, feature_map, X.dtype)
    if scorer is None:
        return _mapped_scores(ranker, feature_map, X)
    return scorer.scores(X)


def _mapped_scores(ranker: BaseEstimator, feature_map: Transformer | None, X: Matrix) -> Vector:
    """Return the scores of rows whose features Python makes, block by block."""
    with naming_not_finite(getattr(ranker, "feature_names_in_", None)):
        if is_known(feature_map):
            require_finite(X, "X")
        try:
            with single_threaded_blas:  # maps of this package have threads of their own
                return scores_of_rows(feature_map, X, _vector(ranker.coef_))
        except ValueError:
            require_finite(X, "X")  # this names the row, whereas the map only saw a block
            raise


def _vector(coef: ArrayLike) -> Vector:
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

    def is_of(self, feature_map: Transformer | None, coef: bytes) -> bool:
        """Tell whether the model was made from this map and these coefficients."""
        now = _attributes(feature_map)
        return (
            type(feature_map) is self.kind
            and coef == self.coef
            and len(now) == len(self.attributes)
            and all(now.get(name, self) is value for name, value in self.attributes.items())
        )


def _attributes(feature_map: Transformer | None) -> dict[str, Any]:
    """Return all that a map was made from: its attributes, and those of maps within it."""
    own = dict(vars(feature_map))
    if own.get("feature_map") is not None:  # after inputs
        inner = _attributes(own["feature_map"])
        own |= {f"feature_map.{name}": value for name, value in inner.items()}
    return own


def _prepared(
    ranker: BaseEstimator, feature_map: Transformer | None, dtype: np.dtype[Any]
) -> RowScorer | None:
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
    scorer = scorer_of(feature_map, coef, dtype)
    if scorer is None:
        return None
    if sum(getattr(value, "nbytes", 0) for value in attributes.values()) <= limits.now.kept_bytes:
        scorer = replace(scorer, parts=list(scorer.parts))
        kept[dtype.char] = _Prepared(type(feature_map), attributes, values, scorer)
    return scorer


def in_memory(
    model: BaseEstimator, X: RowsLike, qid: ArrayLike | None = None
) -> tuple[BaseEstimator, Any, Any]:
    """Return rows and their query ids, which are read if X is a table, and a model of these."""
    stream = as_stream(X, qid=qid)
    return (model, X, qid) if stream is None else stream.arrays(model)


def input_weights(model: BaseEstimator) -> Vector | None:
    """Return the weights of columns, scaled if the model scales them; None if there are none.

    Linear nodes have such weights, other feature maps and kernels do not.
    """
    then = Chain.of(model.feature_map_).then
    if then is None:
        return np.asarray(model.coef_)
    nodes = linear_nodes(then)
    return None if nodes is None else nodes.fold(model.coef_)[0]


def _required_weights(model: BaseEstimator, what: str) -> Vector:
    if model.prior_ is not None:
        raise ValueError(
            f"{what} needs a model that is linear in the columns of X, but the scores of a "
            f"{type(model.prior_).__name__}, its prior, are added to this one's"
        )
    weights, then = input_weights(model), Chain.of(model.feature_map_).then
    if weights is None:
        raise ValueError(
            f"{what} needs a model that is linear in the columns of X, got one with "
            f"{type(then).__name__}: its scores are not sums over columns"
        )
    return weights


def column_weights_of(
    model: BaseEstimator, X: RowsLike | None, qid: ArrayLike | None
) -> dict[str, AnyArray]:
    """Return the table of `LinearRanker.column_weights`."""
    weights = _required_weights(model, "column_weights")
    if X is None and qid is not None:
        raise ValueError(
            "column_weights takes qid only together with X, the rows that have these ids"
        )
    if X is not None:
        if qid is None and model.uses_qid_:
            raise ValueError(
                f"column_weights needs qid with X: this {type(model).__name__} was fitted with "
                "query ids"
            )
        found = _measured_on(model, X, qid, weights)
    elif (sums := model._known_sums()) is not None:
        found = sums
    else:
        raise ValueError(
            "column_weights needs rows here, column_weights(X, qid=qid): the fit of this "
            f"{type(model).__name__} did not measure how much columns vary within queries, because "
            f"{_why_not(model)}"
        )
    table = {
        "column": np.arange(len(weights)),
        "name": names_of(model),
        "weight": weights,
        "spread": found.spread,
        "importance": np.abs(weights) * found.spread,
        "share": found.share(weights),
    }
    order = np.argsort(-table["importance"], kind="stable")
    return {name: values[order] for name, values in table.items()}


def _why_not(model: BaseEstimator) -> str:
    """Return why a fit did not measure its columns, as far as the model tells."""
    pairs = getattr(model, "pairs_", getattr(model, "pairs", ""))
    reasons = {
        "its weights were changed since": model._column_sums is not None,
        "it starts from a prior": getattr(model, "prior", None) is not None,
        "it has nodes": Chain.of(model.feature_map_).then is not None,
        "there are no pairs": getattr(pairs, "kind", pairs) is None,
        "it was solved in the dual form": getattr(model, "form_", "") == "dual",
    }
    other = (
        "it needed no Gram matrix of all pairs (models of fit_many, wide CSR rows), or "
        "started from a prior"
    )
    return next((reason for reason, holds in reasons.items() if holds), other)


def names_of(model: BaseEstimator) -> AnyArray:
    """Return `LinearRanker.column_names_`."""
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
    inputs = Chain.of(model.feature_map_).inputs
    return np.array(names if inputs is None else inputs.names(names), object)


def columns_of(model: BaseEstimator, X: RowsLike) -> Any:
    """Return the columns of rows that weights belong to; they are checked."""
    rows, inputs = rows_to_score(model, X), Chain.of(model.feature_map_).inputs
    require_finite(rows, "X")
    return rows if inputs is None else inputs.values(rows)


def _measured_on(
    model: BaseEstimator, X: RowsLike, qid: ArrayLike | None, weights: Vector
) -> ColumnSums:
    """Measure the columns on given rows, where every pair of rows of a query counts once."""
    rows = columns_of(model, X)
    data = RankingData.delimit(rows, np.zeros(rows.shape[0]), qid)
    squares, products = np.zeros((2, len(weights)))
    for block in data.blocks(Pairs()):
        inner = np.unique(data.queries.index()[block.rows], return_inverse=True)[1]
        sizes = np.bincount(inner)
        members = scipy.sparse.csr_array((np.ones(len(inner)), (inner, np.arange(len(inner)))))
        centred = block.X - (members @ block.X / sizes[:, None])[inner]
        weighted = sizes[inner][:, None] * centred
        squares += np.einsum("ij,ij->j", weighted, centred)
        products += weighted.T @ (centred @ weights)
    pair_weight = float((data.queries.sizes.astype(np.float64) ** 2).sum())
    return ColumnSums(squares, products, pair_weight, weights)


def contributions_of(model: BaseEstimator, X: RowsLike) -> Any:
    """Return the matrix of `LinearRanker.contributions`."""
    weights = _required_weights(model, "contributions")
    rows = columns_of(model, X)
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array(rows, dtype=np.float64) @ scipy.sparse.diags_array(weights)
    return rows * weights
