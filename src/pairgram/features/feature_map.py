"""`FeatureMap`, the base class of maps; functions for any transformer; scores of mapped rows."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeGuard

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._rooms import words_of
from pairgram._support.arrays import (
    block_rows,
    blocks,
    checked_sparse,
    column_names,
    read_rows,
    real_array,
    require_numbers,
    with_entries,
)
from pairgram._support.checks import AnyArray, Vector, naming_not_finite, require_finite
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import stored
from pairgram._support.schema import Kind, brief, check_record
from pairgram._support.whole_fit import WholeFit

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RandomState, RowsLike, Transformer

# A linear map is applied to the Gram matrix instead of the rows if its condition number is at most
# this.
MAX_CONDITION = 1e3
# Singular values and eigenvalues below this share of the largest, times the order, are noise.
NOISE = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class LinearNodes:
    """The map ``h = Aᵀx + b`` of fitted nodes.

    Attributes
    ----------
    weights : ndarray of shape (n_inputs, n_nodes)
        The matrix A.
    bias : ndarray of shape (n_nodes,)
        The offsets b.
    well_conditioned : bool or None
        Whether A is, as far as its effect on Gram matrices goes; None if that is not known yet.
    before : feature map or None
        The map that makes x of a row, if x is not the row itself.
    """

    weights: Vector
    bias: Vector
    well_conditioned: bool | None = None
    before: Any = None

    def fold(self, coefs: Vector) -> tuple[Vector, Vector]:
        """Return the (weights of the inputs, offsets) that are equal to models of the nodes.

        For coefs of shape (n_nodes,) the shapes are (n_inputs,) and (). For (n_models, n_nodes)
        they are (n_models, n_inputs) and (n_models,).
        """
        weights, bias, coefs = (
            np.ascontiguousarray(a, np.float64) for a in (self.weights, self.bias[None], coefs)
        )
        return _core.score_rows(weights, coefs), _core.score_rows(bias, coefs)[..., 0]

    def acts_on_sums(self) -> bool:
        """Tell whether ``AᵀGA`` is as exact as the Gram matrix of mapped rows, and cheaper."""
        n_inputs, n_nodes = self.weights.shape
        if n_inputs**2 > n_nodes * (2 * n_inputs + n_nodes):  # flops per row
            return False
        if self.well_conditioned is not None:
            return self.well_conditioned
        with single_threaded_blas:
            A = self.weights if n_inputs <= n_nodes else self.weights.T
            squares = scipy.linalg.eigvalsh(A @ A.T, check_finite=False)
        largest = squares.max(initial=0.0)
        kept = squares[squares > NOISE * max(A.shape) * largest]
        return bool(largest == 0 or kept.min() * MAX_CONDITION**2 >= largest)


@dataclass(frozen=True, eq=False)
class RowScorer:
    """Compiled maps of rows and linear models of their outputs. The score is the sum of all parts.

    Attributes
    ----------
    parts : iterable of (node map or None, coefficients)
        With None, the coefficients multiply the inputs.
    offset : float
        A number that is added to all scores.
    """

    parts: Iterable[tuple[Any, Vector]]
    offset: float = 0.0

    def scores(self, X: Matrix) -> Vector:
        """Return the scores of checked rows. A row with NaN or infinity gets NaN or infinity."""
        total: Any = None
        for node_map, coef in self.parts:
            scores = _part_of_scores(node_map, coef, X)
            total = scores if total is None else total + scores
        return total + self.offset if self.offset else total


def _part_of_scores(node_map: Any, coef: Vector, X: Any) -> Vector:
    if scipy.sparse.issparse(X) and node_map is None:
        return score_features(X, coef)
    if scipy.sparse.issparse(X) or not (X.flags.c_contiguous and X.flags.aligned):

        def copied(block: Any) -> Vector:
            return _part_of_scores(node_map, coef, np.require(dense(block), None, ["C", "A"]))

        return in_blocks(copied, X)
    if node_map is None:
        return _core.score_rows(X, coef, thread_count())
    return node_map.score(X, coef, thread_count())


def dense(X: Matrix) -> AnyArray:
    """Return rows as an array."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X)


def score_features(H: Matrix, coefs: Vector) -> Vector:
    """Return the scores of dense or CSR features by one model, or by every model of a path.

    The scores of a dense row have the same bits whatever other rows H has.

    Parameters
    ----------
    H : ndarray or CSR matrix of shape (n_rows, n_features)
    coefs : ndarray of shape (n_features,) or (n_models, n_features), float64

    Returns
    -------
    ndarray of shape (n_rows,) or (n_models, n_rows), float64
    """
    if scipy.sparse.issparse(H):
        return np.ascontiguousarray((H @ coefs.T).T, dtype=np.float64)
    dtype = np.float32 if H.dtype == np.float32 else np.float64
    rows = np.require(H, dtype, ["C", "A"])
    return _core.score_rows(rows, np.ascontiguousarray(coefs), thread_count())


def native_nodes(
    dtype: DTypeLike,
    weights: AnyArray,
    bias: AnyArray,
    square: AnyArray | None,
    activation: str,
    *,
    in_double: bool = False,
    **options: Any,
) -> Any:
    """Return the compiled map for rows of a dtype. The arrays that describe it are converted.

    csrc/features/node_map.hpp gives its formula. With `in_double`, rows of float32 are mapped
    in float64, and the outputs are rounded.
    """
    single = np.dtype(dtype) == np.float32
    made = np.float32 if single and not in_double else np.float64
    make: Any = _core.NodeMap32 if made is np.float32 else _core.NodeMap64
    arrays = (None if a is None else np.ascontiguousarray(a, made) for a in (weights, bias, square))
    node_map = make(*arrays, [(0, len(bias), activation)], **options)
    return _core.NodeMap32.in_double(node_map) if single and in_double else node_map


class Unmade(Protocol):
    """What fits do in place of making all the features of a fitted map, which are very many."""

    def after(self, inputs: Any) -> Unmade:
        """Return the same for rows that inputs come before."""

    def check_inputs(self, inputs: Any, warns: bool) -> None:
        """Refuse inputs that make no sense before the map; warn of those without effect."""

    def rows_of(self, systems: Sequence[Any], settings: Any) -> Any:
        """Return the rows of several systems as `SparseRows` has them, for products alone."""

    def step_work(self, data: Any) -> dict[str, float]:
        """Return the work of such a product of a vector of one system."""

    def direct_work(self, data: Any, n_rows: int, n_held_alphas: int) -> dict[str, float] | None:
        """Return the work up to a matrix, and of held-out scores; None if features are made."""

    def folds_out(
        self, data: Any, settings: Any, eigen: Any, folds: Any, alphas: Vector
    ) -> tuple[Vector, Vector] | None:
        """Return scores and shares of whole folds that are held out, or None, as above."""


class Formula(Protocol):
    """Values of rows in other systems, from which maps make formulas by these methods."""

    def times(self, matrix: Any, offset: Any = 0.0) -> Formula:
        """Return ``values @ matrix + offset``."""

    def plus(self, other: Any) -> Formula:
        """Return the sum of both."""

    def nodes(self, name: str, weights: Vector, bias: Vector, coef: Vector) -> Formula:
        """Return ``Σ coef_k g(weights_kᵀ x + bias_k)``, where "cos" or an activation names g."""

    def radial(self, centres: Vector, bias: Vector, coef: Vector) -> Formula:
        """Return ``Σ coef_k exp(−bias_k ‖x − centres_k‖²)``."""

    def products(self, left: Vector, right: Vector) -> Formula:
        """Return ``Σ (left_kᵀ x) (right_kᵀ x)``."""

    def of_kernel(self, kernel: Any, rows: Vector, coef: Vector) -> Formula:
        """Return ``Σ coef_i k(x, rows_i)`` of a `KernelFunction`."""


@dataclass(frozen=True, eq=False)
class ValueMap:
    """A fitted map of rows to values in float64.

    Attributes
    ----------
    feature_map : FeatureMap
        The map that checks the rows.
    values : callable
        It returns the values of dense or CSR rows that have been checked.
    """

    feature_map: FeatureMap
    values: Callable[[Matrix], AnyArray]

    def checked(self, X: RowsLike) -> Any:
        """Check the rows and return them. Errors are those of `transform` of a `FeatureMap`."""
        return self.feature_map._checked(X)

    def transform(self, X: RowsLike) -> AnyArray:
        """Return the values of dense or CSR rows, (n_rows, n_values)."""
        return self.values(self.checked(X))


class FeatureMap(WholeFit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A transformer of rows that describes itself to compiled code and to files.

    It does not use labels. To users it is a transformer; what begins with an underscore is what the
    package needs besides, and functions of this module hand it to other modules. They use it for
    classes that derive from this one directly. A class that derives from one of those may override
    code, so it is treated like a transformer of any other package.
    `MAPS` lists the maps that files can hold.
    """

    n_features_in_: int
    # What a file holds of a fitted map beside its parameters. The array "map_weights" is the
    # attribute `weights_`, and the settings "fitted" are attributes. The dimensions "features" and
    # "outputs" are those of its inputs and outputs.
    _in_file: ClassVar[Kind]
    # Whether `_fit_checked` takes only the number of features from the rows.
    _draws_only = False
    # Whether a ridge is on the norm in the space of a kernel, and not on weights of the outputs.
    _is_kernel = False

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of features."""

    @abstractmethod
    def _node_map(self, dtype: DTypeLike) -> Any:
        """Return the compiled map for rows of a dtype, or None if only Python can map them."""

    def _as_linear(self) -> LinearNodes | None:
        """Return the matrix and the offsets of a linear map, or None for any other map."""
        return None

    def _unmade(self) -> Unmade | None:
        """Return what fits do in place of making the features, or None if they are made."""
        return None

    def _unwhitened(self) -> tuple[ValueMap, Vector] | None:
        """Return a map to centred values K and a matrix W such that features are ``K W``, or None.

        Centring shifts all scores by the same number.
        """
        return None

    def _fit_checked(self, X: Matrix, names: Sequence[Hashable] | None = None) -> Self:
        """Fit the map to rows that a ranker has checked, except for NaN and infinity.

        `names` are those of the columns, if they are known.

        A map that does not depend on the values need not check them, since the ranker will.
        """
        self.fit(X)
        return self

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        """Return a scorer of rows of a dtype, by the linear model `coef` of the features.

        It is None if only Python can map the rows; see `_scores`.
        """
        node_map = self._node_map(dtype)
        return None if node_map is None else RowScorer([(node_map, coef)])

    def _scores(self, X: Matrix, coefs: Vector) -> Vector:
        """Return the scores of checked rows by linear models of their features, block by block.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), without NaN and infinity
        coefs : ndarray of shape (n_outputs,) or (n_models, n_outputs), float64

        Returns
        -------
        ndarray of shape (n_rows,) or (n_models, n_rows), float64
        """
        if (nodes := self._as_linear()) is not None:
            weights, offsets = nodes.fold(coefs)
            return score_features(X, weights) + offsets[..., None]
        return scores_in_blocks(self._features, X, coefs)

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        """Return a linear model of the features of rows x as a formula, for other systems."""
        raise _no_formula(self)

    def _state(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and the settings of the fit, by their names in a file."""
        arrays = {}
        for key in self._in_file.arrays:
            name = key.rstrip("?")
            if (array := getattr(self, f"{name[4:]}_", None)) is not None:
                arrays[name] = array
        return arrays, {name: getattr(self, name) for name in self._in_file.settings["fitted"]}

    @classmethod
    def _restore(cls, arrays: dict[str, AnyArray], settings: dict[str, Any]) -> Self:
        """Make a fitted map of what a file holds of it."""
        fitted = settings.pop("fitted")
        self = cls(**settings)
        self.__dict__.update(fitted)
        for key, (_, dimensions) in cls._in_file.arrays.items():
            if (array := arrays.get(name := key.rstrip("?"))) is not None:
                setattr(self, f"{name[4:]}_", array)
                if "features" in dimensions:
                    self.n_features_in_ = array.shape[dimensions.index("features")]
        return self

    def _same(self, other: Self) -> bool:
        """Tell whether another fitted map of this class makes the same features."""
        (mine, fitted), (theirs, of_other) = self._state(), other._state()
        same = fitted == of_other and mine.keys() == theirs.keys()
        return same and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: RowsLike) -> AnyArray:
        """Return the features, (n_rows, n_features_out), float32 for float32 X, else float64.

        The features of a row have the same bits whatever other rows X has.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, or holds NaN or infinity.
        """
        return self._features(self._checked(X))

    def _features(self, X: Matrix) -> AnyArray:
        """Return the features of rows that have been checked."""
        if not scipy.sparse.issparse(X):
            return self._values(np.require(X, None, ["C", "A"]))
        values = np.empty((X.shape[0], self._n_features_out), X.dtype)
        for rows in blocks(X.shape[0], block_rows(X.shape[1], X.dtype)):
            values[rows] = self._values(np.ascontiguousarray(X[rows].toarray()))
        return values

    def _checked(self, X: RowsLike) -> Any:
        """Check the rows and return them. Errors are those of `transform`."""
        check_is_fitted(self)
        return finite_rows(self, X, reset=False)

    def _values(self, X: AnyArray) -> AnyArray:
        """Return the features of dense rows that have been checked."""
        return self._node_map(X.dtype).map(X, thread_count())

    def _rounding(self, X: Matrix) -> Vector:
        """Return a bound on the rounding error of each feature for rows X, (n_features_out,)."""
        H = self._features(self._checked(X))
        with np.errstate(over="ignore"):
            size = np.sqrt((H.astype(np.float64) ** 2).mean(axis=0))
        return 64 * np.finfo(H.dtype).eps * size

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the current parameters, as a model file holds them."""
        parameters = self.get_params(deep=False)
        if not isinstance(parameters.get("random_state", 0), Integral):
            parameters["random_state"] = None
        return parameters


def generator(random_state: RandomState) -> Any:
    """Return the RandomState or Generator that `random_state` stands for, as scikit-learn does."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def finite_rows(
    estimator: BaseEstimator, X: RowsLike, *, reset: bool, sparse: Literal["csr", False] = "csr"
) -> Matrix:
    """Return X as C-contiguous rows, or CSR, of float64 or float32, without NaN and infinity.

    Parameters
    ----------
    estimator : estimator
    X : array-like or sparse matrix of shape (n_rows, n_features)
    reset : bool
        Whether this is a fit, which sets the number and names of the features. Otherwise X must
        have the features of the fit.
    sparse : "csr" or False
        Whether CSR rows are accepted.

    Raises
    ------
    ValueError
        If X is not as described. For NaN and infinity the message names the column and, in a fit,
        the row. (Otherwise X may be a block of rows, with other row numbers.)
    """
    X = with_entries(X)
    names = column_names(X)
    rows = read_rows(X, estimator=estimator, reset=reset, sparse=sparse)
    with naming_not_finite(names):
        require_finite(rows, "X", with_row=reset)
    return rows


def mapped(feature_map: Transformer, X: Matrix) -> AnyArray:
    """Return the features that a fitted transformer makes of X, as a dense array.

    Raises
    ------
    ValueError
        If they are not a 2-d array of real numbers with a row for each row of X and at least one
        column.
    """
    H = feature_map.transform(X)
    if scipy.sparse.issparse(H):
        H = checked_sparse(H, "what feature_map makes").toarray()
    if not (type(H) is np.ndarray and H.dtype.kind in "biuf"):
        require_numbers(H, "what feature_map makes")
        H = real_array(H, "what feature_map makes", keep_float32=True)
    if H.ndim != 2 or len(H) != X.shape[0] or H.shape[1] == 0:
        raise ValueError(
            f"feature_map must make a 2-d array with a row for each of the {X.shape[0]} rows of X, "
            f"and a column or more, but gave shape {H.shape}"
        )
    return H


def is_known(feature_map: object) -> TypeGuard[FeatureMap]:
    """Tell whether a feature map derives directly from `FeatureMap`, and so uses no labels."""
    return FeatureMap in type(feature_map).__bases__


def is_kernel(feature_map: object) -> bool:
    """Tell whether a feature map is a kernel, in whose space the ridge is."""
    return is_known(feature_map) and feature_map._is_kernel


def draws_only(feature_map: object) -> bool:
    """Tell whether fitting a map takes only the number of columns from the rows."""
    return is_known(feature_map) and feature_map._draws_only


def node_map_of(feature_map: Transformer | None, dtype: DTypeLike) -> Any:
    """Return the compiled map of a fitted feature map, or None if only Python can apply it."""
    return feature_map._node_map(np.dtype(dtype)) if is_known(feature_map) else None


def linear_nodes(feature_map: Transformer | None) -> LinearNodes | None:
    """Return the matrix and the offsets of a fitted linear map, or None for any other map."""
    return feature_map._as_linear() if is_known(feature_map) else None


def unmade(feature_map: Transformer | None) -> Unmade | None:
    """Return what fits do in place of making the features of a fitted map, or None."""
    return feature_map._unmade() if is_known(feature_map) else None


def unwhitened(feature_map: Transformer | None) -> tuple[ValueMap, Vector] | None:
    """Return a map to centred values K and a matrix W such that features are ``K W``, or None."""
    return feature_map._unwhitened() if is_known(feature_map) else None


def n_outputs(feature_map: Transformer, X: Matrix) -> int:
    """Return the number of features of a fitted transformer; an unknown one maps a row of X."""
    if is_known(feature_map):
        return feature_map._n_features_out
    return int(mapped(feature_map, X[:1]).shape[1])


def checked(feature_map: object, X: RowsLike) -> Any:
    """Check rows for a fitted map of this package and return them; others check by themselves."""
    return feature_map._checked(X) if is_known(feature_map) else X


def rounding_of(feature_map: FeatureMap, X: Matrix) -> Vector:
    """Return a bound on the rounding error of each feature for rows X, (n_features_out,)."""
    return feature_map._rounding(X)


def formula_of(feature_map: Transformer | None, x: Formula, coef: Vector) -> Formula:
    """Return a linear model of the features that a fitted transformer makes of rows x.

    If `feature_map` is None, the features are the rows themselves.

    Raises
    ------
    ValueError
        If there is no such formula.
    """
    if feature_map is None:
        return x.times(coef[:, None])
    if not is_known(feature_map):
        raise _no_formula(feature_map)
    return feature_map._formula(x, coef)


def _no_formula(feature_map: Transformer | None) -> ValueError:
    return ValueError(
        f"feature_map is a {type(feature_map).__name__}, which cannot be exported: RandomNodes, "
        "RandomFourier, Nystroem, Cross and named kernels can"
    )


def scorer_of(feature_map: Transformer | None, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
    """Return a scorer of rows by a linear model of features, or None if only Python maps them.

    If `feature_map` is None, the features are the rows themselves.
    """
    if feature_map is None:
        return RowScorer([(None, coef)])
    return feature_map._scorer(coef, dtype) if is_known(feature_map) else None


def scores_of_rows(feature_map: Transformer | None, X: Matrix, coefs: Vector) -> Vector:
    """Return the scores of checked rows by linear models of the features of any transformer.

    If `feature_map` is None, the features are the rows themselves. The other parameters and the
    result are those of `FeatureMap._scores`.

    Raises
    ------
    ValueError
        The errors of `mapped` and those of the transformer.
    """
    if feature_map is None:
        return score_features(X, coefs)
    if is_known(feature_map):
        return feature_map._scores(X, coefs)
    return scores_in_blocks(partial(mapped, feature_map), X, coefs)


def scores_in_blocks(features: Callable[[Any], Any], X: Matrix, coefs: Vector) -> Vector:
    """Return the scores of rows by linear models of features that are made block by block."""
    return in_blocks(lambda block: score_features(features(block), coefs), X, coefs.shape[-1])


def in_blocks(scores: Callable[[Any], Vector], X: Matrix, width: int = 0) -> Vector:
    """Return the scores of rows, which a function gives for blocks; it makes `width` values."""
    size = block_rows(max(X.shape[1], width), X.dtype)
    return np.concatenate([scores(X[rows]) for rows in blocks(X.shape[0], size)], axis=-1)


# The maps that model files can hold, by the names there.
MAPS = {
    "Kernel": "features.kernel_map",
    "Nystroem": "features.nystroem",
    "RandomFourier": "features.random_fourier",
    "RandomNodes": "features.random_nodes",
    **words_of("feature map"),
}


def describe_map(
    feature_map: FeatureMap | None,
) -> tuple[dict[str, AnyArray], dict[str, Any] | None]:
    """Return the arrays and settings of a fitted map for a model file; see `restore_map`.

    Raises
    ------
    ValueError
        If the map is not of this package.
    """
    if feature_map is None:
        return {}, None
    kind = type(feature_map).__name__
    # Types are compared exactly, since a subclass may have its own code.
    if type(feature_map).__module__ != f"pairgram.{MAPS.get(kind)}":
        raise ValueError(
            f"feature_map is a {kind}, which a file cannot hold without running code when it is "
            f"loaded; {', '.join(MAPS)} can be saved, pickle holds the others"
        )
    arrays, fitted = feature_map._state()
    return arrays, {"kind": kind, **feature_map._saved_parameters(), "fitted": fitted}


def restore_map(arrays: dict[str, AnyArray], settings: dict[str, Any] | None) -> Any:
    """Make the fitted map that `describe_map` described. The contents must have been checked."""
    if settings is None:
        return None
    settings = dict(settings)
    kind = settings.pop("kind")
    return _class_of(kind)._restore(arrays, settings)


def _class_of(kind: str) -> type[FeatureMap]:
    return getattr(import_module(f"pairgram.{MAPS[kind]}"), kind)


def kind_of_map(kind: str) -> Kind:
    """Return what a file holds of a map of a class: its parameters, and what the class says."""
    own = _class_of(kind)
    names = signature(own).parameters
    in_file = own._in_file
    others = (name for name in names if name not in in_file.settings)
    return in_file._replace(settings={**stored(kind, *others), **in_file.settings})


def check_map(settings: Any) -> Kind:
    """Return what a file holds of the map that the settings name, after a check of the settings."""
    kind = settings.get("kind") if isinstance(settings, dict) else None
    if not isinstance(kind, str) or kind not in MAPS:
        raise ValueError(f"a feature map of kind {brief(kind)} is not known to this version")
    table = kind_of_map(kind)
    own = {key: value for key, value in settings.items() if key != "kind"}
    check_record(own, table.settings, "feature_map")
    return table


def same_map(a: object, b: object) -> bool:
    """Tell whether two fitted feature maps make the same features."""
    if a is b:
        return True
    if is_known(a) and type(a) is type(b):
        return bool(a._same(b))
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except (AttributeError, TypeError, pickle.PicklingError):  # a lambda cannot be pickled
        return False
