"""`Form`: the score of a model as a sum of parts that other systems can compute, and files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self
from unicodedata import category

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram.features.base import terms_of
from pairgram.features.formulas import (
    Affine,
    Column,
    Hidden,
    Indicator,
    Piecewise,
    Products,
    Terms,
    stepped,
)
from pairgram.features.kernels import KernelTerm
from pairgram.files.transformers import columns_after

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from pairgram.features.inputs import ListInputs


class _Named:
    """A model that knows the names of the columns that it reads, in the order of X."""

    feature_names: tuple[str, ...] = ()

    def named(self, names: tuple[str, ...]) -> Self:
        """Return the model with its names set."""
        self.feature_names = names
        return self


class SolrModel(_Named, dict[str, Any]):
    """The body of a request to Solr's model store."""


class LtrPluginModel(_Named, dict[str, Any]):
    """The body of a ``_createmodel`` request to the plugin of Elasticsearch or OpenSearch."""


class VespaProfile(_Named, str):
    """A rank profile of a Vespa schema."""

    onnx: Any = None  # the OnnxModel that it reads, if it reads one
    template: str = ""  # the expression, with x[j] in the place of the name of column j


class VespaListProfile(VespaProfile):
    """A rank profile of a Vespa schema whose global phase compares the documents of a list."""


class RanklibModel(_Named, str):
    """The text of a linear model of RankLib."""


class SqlExpression(_Named, str):
    """An expression of SQL."""

    dialect: str = "standard"


class PythonFunction(_Named, str):
    """The source of a function without dependencies."""


class OnnxModel(_Named, bytes):
    """The bytes of an ONNX file."""


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Form:
    """``constant + weights · columns + Σ hidden nodes + Σ kernels + Σ products``.

    Attributes
    ----------
    names : tuple of str
        The names of the caller's columns.
    columns : tuple of Column
    weights : ndarray of shape (n_columns,)
        All weights and the constant have a second dimension if the form is of a feature map, whose
        features are as many scores.
    hidden : tuple of Hidden
    kernels : tuple of KernelTerm
    products : tuple of Products
    constant : float
    missing : ndarray of shape (n_names,), or None
        What takes the place of missing values.
    lists : ListInputs or None
        Inputs within lists, if there are any. The sources of `columns` are then what they make, and
        not the caller's columns.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    weights: Vector
    hidden: tuple[Hidden, ...] = ()
    kernels: tuple[KernelTerm, ...] = ()
    products: tuple[Products, ...] = ()
    constant: Any = 0.0
    missing: Vector | None = None
    lists: ListInputs | None = None

    @property
    def is_linear(self) -> bool:
        """Whether the score is a weighted sum of the caller's columns and a constant."""
        return not self.beside and self.is_affine

    @property
    def curved(self) -> str:
        """What makes the score no sum of products of columns; "" if nothing does."""
        if self.hidden:
            return "hidden nodes"
        return f"the {self.kernels[0].kernel.called}" if self.kernels else ""

    @property
    def beside(self) -> str:
        """What there is beside weighted columns, in words; "" if there is nothing."""
        return self.curved or "products of columns" * bool(self.products)

    @property
    def is_affine(self) -> bool:
        """Whether every column is a scaled column of the caller."""
        return all(isinstance(column, Affine) for column in self.columns)

    def matrix(self) -> tuple[Vector, Vector]:
        """Return (A, b) with columns ``A x + b`` of an affine form, (n_columns, n_names)."""
        matrix, offset = np.zeros((len(self.columns), len(self.names))), np.zeros(len(self.columns))
        for row, column in enumerate(self.columns):
            assert isinstance(column, Affine)
            matrix[row, column.source], offset[row] = column.factor, column.offset
        return matrix, offset

    def folded(self) -> tuple[Vector, float]:
        """Return (weights of the sources, constant) of a linear form.

        The sources are the caller's columns, or what inputs within lists make of them.
        """
        n_sources = len(self.names) if self.lists is None else self.lists.n_outputs
        weights, constant = np.zeros(n_sources), self.constant
        for column, weight in zip(self.columns, self.weights.tolist(), strict=True):
            assert isinstance(column, Affine)
            weights[column.source] += weight * column.factor
            constant += weight * column.offset
        return weights, constant

    def values(self, X: Vector) -> Vector:
        """Return the values of the columns, (n_rows, n_columns), for the caller's rows."""
        return np.column_stack([column.of(X[:, column.source]) for column in self.columns])

    def scores(self, X: NDArray[Any]) -> Vector:
        """Return the scores of the caller's rows, (n_rows,), in float64."""
        return self.terms(X)[0]

    def terms(self, X: NDArray[Any]) -> tuple[Vector, Vector]:
        """Return (scores, sums of the sizes of what rounding acts on), both (n_rows,).

        A term ``w h`` of the score has the size ``|w h|``. What enters a column is rounded before:
        ``|factor x| + |offset|``, times how fast the score changes with the column at most.
        """
        X = np.asarray(X, np.float64)
        if self.missing is not None:
            X = np.where(np.isnan(X), self.missing, X)
        C = self.values(X)
        rounded = np.column_stack([column.size(X[:, column.source]) for column in self.columns])
        scores = self.constant + C @ self.weights
        sizes = rounded @ np.abs(self.weights)
        parts: list[Hidden | KernelTerm | Products] = [*self.hidden, *self.kernels, *self.products]
        for part in parts:
            H = part.values(C)
            scores = scores + H @ part.weights
            sizes = sizes + (np.abs(H) + part.change(C, rounded)) @ np.abs(part.weights)
        return scores, sizes


def form_of(
    model: BaseEstimator,
    features: Sequence[str] | None = None,
    require: Callable[[Form], None] | None = None,
    *,
    unnamed: bool = False,
    within_lists: bool = False,
) -> Form:
    """Return the form of a fitted ranker, or of a pipeline that ends in one.

    Parameters
    ----------
    model : fitted ranker or sklearn.pipeline.Pipeline
    features : list of str or None
        The names of the columns of X. None takes those that the model was fitted with.
    require : callable or None
        A function that refuses a form that the engine does not have. It is called before names are
        asked for, and the names of its form are the numbers of the columns.
    unnamed : bool, default=False
        Whether columns without names are called x0, x1 and so on, because the engine needs none.
    within_lists : bool, default=False
        Whether the engine compares the rows of a list. The form then has `lists`.

    Raises
    ------
    TypeError
        If the model is no estimator.
    ValueError
        If there are no names, or if a part of the model has no such form. The message names it.
    """
    steps: list[tuple[str, Any]] = []
    ranker = model
    if isinstance(model, Pipeline):
        steps, ranker = list(model.steps[:-1]), model.steps[-1][1]
    if isinstance(ranker, type):
        raise TypeError(f"model must be a fitted ranker, got the class {ranker.__name__}")
    if not hasattr(ranker, "fit"):
        raise TypeError(f"model must be a fitted ranker, got {type(ranker).__name__}")
    check_is_fitted(ranker)
    if not hasattr(ranker, "coef_") or not hasattr(ranker, "feature_map_"):
        raise ValueError(f"model must be a ranker of pairgram, got {type(ranker).__name__}")
    first = steps[0][1] if steps else ranker
    n_features = int(getattr(model, "n_features_in_", getattr(first, "n_features_in_", 0)))
    columns: list[Column] = [Affine(j) for j in range(n_features)]
    for name, step in steps:
        columns = columns_after(step, columns, f"step {name!r}")
    if len(columns) != int(ranker.n_features_in_):
        raise ValueError(
            f"the {type(ranker).__name__} was fitted to {ranker.n_features_in_} columns, and the "
            f"{'steps before it give' if steps else 'model has'} {len(columns)}"
        )
    form = _of_ranker(ranker, tuple(map(str, range(n_features))), columns, within_lists)
    if form.lists is not None and steps:
        raise ValueError(
            f"step {steps[0][0]!r} before inputs={form.lists.kind!r} cannot be exported: a scale "
            "changes nothing within a list, so fit the ranker alone"
        )
    if require is not None:
        require(form)
    given = getattr(first, "feature_names_in_", None) if features is None else features
    if given is None and unnamed:
        given = [f"x{number}" for number in range(n_features)]
    return replace(form, names=tuple(_names(given, n_features)))


def form_of_map(feature_map: BaseEstimator) -> Form:
    """Return the form of the features of a fitted feature map of this package.

    Raises
    ------
    ValueError
        If there is no such form. The message names the part.
    """
    check_is_fitted(feature_map)
    names = tuple(f"x{number}" for number in range(int(feature_map.n_features_in_)))
    features = np.eye(len(feature_map.get_feature_names_out()))
    columns: list[Column] = [Affine(j) for j in range(len(names))]
    return _with_terms(names, columns, terms_of(feature_map, features))


def _with_terms(
    names: tuple[str, ...], columns: list[Column], terms: Terms, constant: float = 0.0
) -> Form:
    total = sum(terms.constants, constant)
    return Form(
        names,
        tuple(columns),
        np.zeros(len(columns)) if terms.weights is None else terms.weights,
        terms.hidden,
        terms.kernels,
        terms.products,
        total if np.ndim(total) else float(total),
    )


def for_float32(form: Form, engine: str) -> Form:
    """Return a form for an engine that reads float32: it has the knots and fills of float32.

    An engine rounds the values of its columns to float32. Knots and fills must be rounded too: a
    row whose value is a knot is otherwise beside it. Categories stay as they are, because engines
    differ in how they compare.

    Raises
    ------
    ValueError
        If float32 cannot hold a knot, a fill or a category, or has one number for two categories.

    Warns
    -----
    UserWarning
        If two knots are one number in float32.
    """
    columns: list[Column] = []
    categories: dict[tuple[int, float], float] = {}
    close: str | None = None
    for column in form.columns:
        name = form.names[column.source]
        if isinstance(column, Piecewise):
            knots = np.array([_rounded(knot, name, "knot") for knot in column.knots.tolist()])
            if close is None and (equal := np.diff(knots) == 0).any():
                at = int(np.argmax(equal))
                low, high = column.knots[at : at + 2].tolist()
                close = f"column {name!r} has the knots {low!r} and {high!r}"
            column = stepped(column.source, knots, column.values)
        elif isinstance(column, Indicator):
            key = (column.source, _rounded(column.value, name, "category"))
            if categories.setdefault(key, column.value) != column.value:
                raise ValueError(
                    f"column {name!r} has the categories {categories[key]!r} and "
                    f"{column.value!r}, which are one number for {engine}, because it reads "
                    "float32: number the categories anew"
                )
        columns.append(column)
    if close is not None:
        warnings.warn(
            f"{close}, which {engine} cannot tell apart, because it reads float32: rows with such "
            "values may get other scores than the model's, which verify measures: round the column "
            "before fit, or subtract a constant",
            UserWarning,
            stacklevel=3,
        )
    missing = form.missing
    if missing is not None:
        pairs = zip(missing.tolist(), form.names, strict=True)
        missing = np.array([_rounded(fill, name, "fill") for fill, name in pairs])
    return replace(form, columns=tuple(columns), missing=missing)


def _rounded(value: float, name: str, what: str) -> float:
    """Return a constant of a column as float32 holds it, or raise a ValueError that names both."""
    with np.errstate(over="ignore"):
        found = float(np.float32(value))
    if np.isinf(found):
        raise ValueError(
            f"column {name!r} has the {what} {value!r}, which is beyond float32, in which engines "
            "read columns: scale the column before fit"
        )
    return found


def _names(given: Sequence[str] | None, n_features: int) -> list[str]:
    if given is None:
        raise ValueError(
            f"features must name the {n_features} columns of X, in their order, because the "
            "model was fitted to columns without names"
        )
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(f"features must name the {n_features} columns of X, got {len(names)}")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ValueError(f"features must have different names, got {doubled!r} more than once")
    # A line break in a name would end a line of an exported text, and start one of its own.
    broken = next((n for n in names if any(category(c) in ("Cc", "Zl", "Zp") for c in n)), None)
    if broken is not None:
        raise ValueError(
            f"names of columns must have no line breaks and control characters, got {broken!r}: "
            "give other names by features"
        )
    return names


def _of_ranker(
    ranker: BaseEstimator, names: tuple[str, ...], columns: list[Column], within_lists: bool
) -> Form:
    if getattr(ranker, "uses_offset_", False):
        raise ValueError(
            f"the {type(ranker).__name__} was fitted with offsets, which an exported model cannot "
            "read: fit without, or add them in the engine"
        )
    inputs, missing = getattr(ranker, "inputs_", None), getattr(ranker, "fill_values_", None)
    lists = inputs if within_lists and getattr(inputs, "reads_lists", False) else None
    if lists is not None:
        columns = [Affine(j) for j in range(lists.n_outputs)]
    elif inputs is not None:
        columns = inputs.formulas(columns)
    terms = terms_of(ranker.feature_map_, np.asarray(ranker.coef_, np.float64))
    form = replace(
        _with_terms(names, columns, terms, float(getattr(ranker, "intercept_", 0.0))),
        missing=None if missing is None else np.asarray(missing),
        lists=lists,
    )
    prior = getattr(ranker, "prior_", None)
    if prior is None:
        return form
    if not hasattr(prior, "feature_map_"):
        raise ValueError(f"prior is a {type(prior).__name__}, which cannot be exported")
    raise ValueError(
        "the scores of the prior are added to the model, and the prior has other columns: export "
        "both, and add their scores; or give the prior as weights"
    )
