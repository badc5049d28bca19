"""What a row is: scales and quantiles of columns, what fills their gaps, and chains with maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
)

from pairgram._support.arrays import read_rows, real_array
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Vector,
    did_you_mean,
    require_finite,
    verbatim,
)
from pairgram._support.parameters import FillName, check_text, words
from pairgram._support.whole_fit import WholeFit
from pairgram.features.feature_map import finite_rows
from pairgram.features.gaps import fill_values, filled, refuse_sparse
from pairgram.features.inputs import FittedInputs, after_inputs, fit_inputs, parts_of, whole_map
from pairgram.features.kernels import is_precomputed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pairgram._support.types import RowsLike


class _OfColumns(WholeFit, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What all of these have as transformers of their own."""

    n_features_in_: int

    def fit(self, X: RowsLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the transformer to rows, without labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : ignored
        sample_weight : array-like of shape (n_rows,), ≥ 0, or None
            A row of weight 2 counts as two rows, and one of weight 0 not at all.

        Raises
        ------
        ValueError
            If X is not as the class wants it, or if no row has a weight.
        """
        rows = read_rows(X, estimator=self, reset=True)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            if not weights.any():
                raise ArgumentError("sample_weight", "must not be zero for every row")
        self._fit_rows(rows, weights, getattr(self, "feature_names_in_", None))
        return self

    @abstractmethod
    def _fit_rows(self, X: Any, weights: Vector | None, names: Any) -> Self:
        """Fit the transformer to checked rows with names of columns, as often as weights say."""

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Return the names of the columns that are made."""
        check_is_fitted(self)
        return np.array(self._names([*_check_feature_names_in(self, input_features)]), object)

    def _names(self, names: list[Any]) -> list[Any]:
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Scaling(_OfColumns):
    """The base class of scales and quantiles.

    Attributes
    ----------
    kind : str
        The word that stands for it.
    inputs_ : FittedInputs
        The fitted function of rows, which compiled code applies while it sums.
    """

    kind: ClassVar[Any]
    inputs_: FittedInputs

    def _fit_rows(self, X: Any, weights: Vector | None, names: Any) -> Self:
        return self._of(replace(fit_inputs(self.kind, X, weights), feature_names_in_=names))

    def _of(self, inputs: FittedInputs) -> Self:
        self.inputs_, self.n_features_in_ = inputs, inputs.n_features_in_
        if inputs.feature_names_in_ is not None:
            self.feature_names_in_ = inputs.feature_names_in_
        return self

    def transform(self, X: RowsLike) -> Any:
        """Return the columns of rows, (n_rows, n_columns), float32 for float32 X, else float64.

        Raises
        ------
        ValueError
            If X has other columns than in `fit`, or holds NaN or infinity.
        """
        check_is_fitted(self)
        rows = finite_rows(self, X, reset=False, sparse="csr" if self.kind == "maxabs" else False)
        return self.inputs_.values(rows)

    def _names(self, names: list[Any]) -> list[Any]:
        return list(self.inputs_.names(names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kind == "maxabs"
        return tags


@dataclass(eq=False, repr=False)
class Standard(_Scaling):
    """Columns with the mean 0 and the variance 1, as scikit-learn's ``StandardScaler`` makes them.

    The word "standard" stands for it as `feature_map` of a ranker, which then counts each row of
    `fit` as often as its weight says.

    Examples
    --------
    >>> from pairgram import Standard
    >>> Standard().fit_transform([[1.0], [3.0]]).tolist()
    [[-1.0], [1.0]]
    """

    kind = "standard"


@dataclass(eq=False, repr=False)
class MinMax(_Scaling):
    """Columns from 0 to 1, as scikit-learn's ``MinMaxScaler`` makes them; the word is "minmax".

    Examples
    --------
    >>> from pairgram import MinMax
    >>> MinMax().fit_transform([[1.0], [3.0]]).tolist()
    [[0.0], [1.0]]
    """

    kind = "minmax"


@dataclass(eq=False, repr=False)
class MaxAbs(_Scaling):
    """Columns from −1 to 1, as scikit-learn's ``MaxAbsScaler`` makes them; the word is "maxabs".

    Zeros stay zeros, so that CSR rows stay sparse.

    Examples
    --------
    >>> from pairgram import MaxAbs
    >>> MaxAbs().fit_transform([[0.0], [-2.0]]).tolist()
    [[0.0], [-1.0]]
    """

    kind = "maxabs"


@dataclass(eq=False, repr=False)
class Quantile(_Scaling):
    """The distribution function of each column; the words are "quantile" and "raw+quantile".

    Its knots are at most 100 quantiles, those of
    ``QuantileTransformer(n_quantiles=100, subsample=None)``. Equal quantiles are one knot in the
    middle of their levels; that of the lowest value is always 0, that of the highest 1. The
    function is linear between knots, and constant outside.

    Parameters
    ----------
    raw : bool, default=False
        Whether the columns as they are come first, and the functions after them.

    Examples
    --------
    >>> from pairgram import Quantile
    >>> Quantile(raw=True).fit_transform([[1.0], [10.0], [1000.0]]).tolist()
    [[1.0, 0.0], [10.0, 0.5], [1000.0, 1.0]]
    """

    raw: bool = False

    @property
    def kind(self) -> str:
        """The word that stands for it."""
        return "raw+quantile" if self.raw else "quantile"


@dataclass(eq=False, repr=False)
class Fill(_OfColumns):
    """Values in the place of missing ones, which are NaN in arrays, and null in frames and tables.

    Parameters
    ----------
    value : {"mean", "median"}, float, or array-like of shape (n_features,), default="mean"
        The mean or the median of the column over all rows of `fit` that have a value, each as often
        as its weight says; or a number; or one for each column. The median of an even number of
        values is midway between the two in the middle. A column without any value gets 0, with a
        warning.

    Attributes
    ----------
    fill_ : ndarray of shape (n_features,), float64
        What takes the place of what is missing.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import Fill, RankRLS
    >>> X = np.array([[1.0, 5.0], [np.nan, 3.0], [2.0, np.nan]])
    >>> model = RankRLS(feature_map=Fill("median")).fit(X, [2, 1, 0])
    >>> model.feature_map_.fill_
    array([1.5, 4. ])
    """

    value: FillName | float | ArrayLike = "mean"

    def _fit_rows(self, X: Any, weights: Vector | None, names: Any) -> Self:
        if scipy.sparse.issparse(X):
            refuse_sparse()
        return self._of(fill_values(self.checked_value(), X, weights, names), names)

    def checked_value(self) -> Any:
        """The parameter, after a check: a word or an array."""
        if isinstance(self.value, str):
            return check_text("value", self.value, words(FillName))
        values = real_array(self.value, "value")
        if values.ndim > 1 or not np.isfinite(values).all():
            raise ArgumentError(
                "value",
                "must be 'mean', 'median', a finite number or one for each column, got "
                f"{verbatim(repr(self.value))}",
            )
        return values

    def _of(self, fill: Any, names: Any) -> Self:
        self.fill_, self.n_features_in_ = fill, len(fill)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, object)
        return self

    def transform(self, X: RowsLike) -> Any:
        """Return rows without missing values, float32 for float32 X, else float64.

        Raises
        ------
        ValueError
            If X has other columns than in `fit`, is sparse, or holds infinity.
        """
        check_is_fitted(self)
        rows = filled(read_rows(X, estimator=self, sparse=False), self.fill_)
        require_finite(rows, "X", with_row=False)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# Words for values of `feature_map`.
WORDS = {
    "standard": Standard(),
    "minmax": MinMax(),
    "maxabs": MaxAbs(),
    "quantile": Quantile(),
    "raw+quantile": Quantile(raw=True),
}


class Chain(NamedTuple):
    """What a value of `feature_map` does to rows, one step after the other; fitted or not.

    Attributes
    ----------
    fill : Fill or None
    scaling : scale, Quantile or None
    then : transformer or None
        A map, a kernel, or what other packages make.
    """

    fill: Fill | None = None
    scaling: Any = None
    then: Any = None

    @classmethod
    def of(cls, value: Any) -> Chain:
        """Read a value of `feature_map`.

        Raises
        ------
        ValueError
            If it is a word that is not known, or no single value.
        """
        return AS_IT_IS if value is None else _chain(value)

    @property
    def kind(self) -> Any:
        """The word of the scale, or None."""
        return None if self.scaling is None else self.scaling.kind

    @property
    def inputs(self) -> FittedInputs | None:
        """The fitted function of rows that compiled code takes, or None."""
        return None if self.scaling is None else self.scaling.inputs_

    def scaled(self, inputs: FittedInputs) -> Chain:
        """Return the same with a fitted scale."""
        return self._replace(scaling=clone(WORDS[inputs.kind])._of(inputs))

    @classmethod
    def of_map(cls, feature_map: Any) -> Chain:
        """Return the chain of a fitted map that compiled code takes."""
        inputs, then = parts_of(feature_map)
        return cls(then=then) if inputs is None else cls(then=then).scaled(inputs)

    def filled_by(self, fill: Vector | None) -> Chain:
        """Return the chain with what fills gaps before it, if that is not None."""
        return self if fill is None else self._replace(fill=Fill(fill)._of(fill, None))

    @property
    def value(self) -> Any:
        """The steps as one value: None, a transformer or a Pipeline."""
        return _one([*self])

    @property
    def short(self) -> Any:
        """The word for a scale alone, and else the value."""
        alone = self.scaling is not None and self.fill is None and self.then is None
        return self.kind if alone else self.value

    @property
    def after_fill(self) -> Any:
        """The fitted map of rows whose gaps are filled, or None."""
        return after_inputs(self.inputs, self.then)

    def require(self) -> Chain:
        """Raise a ValueError if the steps do not go together; return them."""
        if self.fill is not None:
            self.fill.checked_value()
        if self[:2] != (None, None) and is_precomputed(getattr(self.then, "kernel", None)):
            raise ArgumentError(
                "feature_map",
                "must have nothing before kernel='precomputed', whose X are kernel values",
            )
        return self


AS_IT_IS = Chain()  # what a row is without a feature map


def _chain(value: Any) -> Chain:
    """Return the steps of a value of `feature_map` that is not None."""
    if isinstance(value, (str, list, tuple, type)):
        if not isinstance(value, str) or value not in WORDS:
            advice = did_you_mean(value, WORDS) if isinstance(value, str) else ""
            raise ArgumentError(
                "feature_map",
                f"must be one of {', '.join(map(repr, WORDS))}, a transformer or None, got "
                f"{verbatim(repr(value))}{advice}",
            )
        value = WORDS[value]
    steps = [value]
    if type(value) is Pipeline:
        steps = [one for _, one in value.steps if one not in (None, "passthrough")]
    fill = steps.pop(0) if steps and type(steps[0]) is Fill else None
    scaling = steps.pop(0) if steps and isinstance(steps[0], _Scaling) else None
    if fill is None and scaling is None:
        return Chain(then=value if len(steps) > 1 else steps[0] if steps else None)
    return Chain(fill, scaling, _one(steps))


def _one(steps: list[Any]) -> Any:
    """Return steps as one value."""
    steps = [one for one in steps if one is not None]
    return make_pipeline(*steps) if len(steps) > 1 else steps[0] if steps else None


def chain_of(data: Any) -> Chain:
    """Return the fitted steps of a `RankingData`, whose gaps are filled."""
    return Chain.of_map(whole_map(data))
