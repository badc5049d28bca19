"""`Form`: the score of a model as a sum of parts that other systems can compute, and files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
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
    Lookup,
    Piecewise,
    Product,
    Products,
    Rows,
    Steps,
    leaves,
    stepped,
)
from pairgram.features.kernels import KernelTerm
from pairgram.features.transformers import columns_before

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class _Named:
    """A model that knows the names of the columns that it reads, in the order of X."""

    feature_names: tuple[str, ...] = ()
    text_names: tuple[str, ...] = ()  # of the columns that are text
    fields: Mapping[str, str] = MappingProxyType({})  # of an index, by the names of columns

    def named(self, names: tuple[str, ...], texts: tuple[str, ...] = ()) -> Self:
        """Return the model with its names set."""
        self.feature_names, self.text_names = names, texts
        return self


class SolrModel(_Named, dict[str, Any]):
    """The body of a request to Solr's model store.

    Attributes
    ----------
    definitions : list of dict
        The body of a request to Solr's feature store: the features that the engine must compute
        from fields, such as whether a field has a certain category.
    """

    definitions: Any = ()


class LtrPluginModel(_Named, dict[str, Any]):
    """The body of a ``_createmodel`` request to the plugin of Elasticsearch or OpenSearch.

    Attributes
    ----------
    definitions : list of dict
        Entries of the ``features`` of a feature set: those that the engine must compute from
        fields.
    """

    definitions: Any = ()


class VespaProfile(_Named, str):
    """A rank profile of a Vespa schema."""

    onnx: Any = None  # the OnnxModel that it reads, if it reads one
    template: str = ""  # the expression, with x[j] in the place of the name of column j


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
    hidden : tuple of Hidden
    kernels : tuple of KernelTerm
    products : tuple of Products
    constant : float
    missing : ndarray of shape (n_names,), or None
        What takes the place of missing values.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    weights: Vector
    hidden: tuple[Hidden, ...] = ()
    kernels: tuple[KernelTerm, ...] = ()
    products: tuple[Products, ...] = ()
    constant: float = 0.0
    missing: Vector | None = None

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
        return all(isinstance(one, Affine) and one.has_gaps for one in self.columns)

    @property
    def read(self) -> frozenset[int]:
        """The numbers of the columns that the model reads."""
        return frozenset(source for column in self.columns for source in column.sources)

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the columns that are text."""
        found = {
            leaf.source
            for column in self.columns
            for leaf in leaves(column)
            if isinstance(leaf, Lookup) and any(isinstance(key, str) for key in leaf.keys)
        }
        return tuple(self.names[source] for source in sorted(found))

    def rows(self, X: NDArray[Any]) -> Rows:
        """Return the caller's columns: of float64, or of objects if they are text."""
        texts = {self.names.index(name) for name in self.texts}
        return [
            column.astype(object) if j in texts else column.astype(np.float64)
            for j, column in enumerate(np.asarray(X).T)
        ]

    def matrix(self) -> tuple[Vector, Vector]:
        """Return (A, b) with columns ``A x + b`` of an affine form, (n_columns, n_names)."""
        matrix, offset = np.zeros((len(self.columns), len(self.names))), np.zeros(len(self.columns))
        for row, column in enumerate(self.columns):
            assert isinstance(column, Affine)
            matrix[row, column.source], offset[row] = column.factor, column.offset
        return matrix, offset

    def folded(self) -> tuple[Vector, float]:
        """Return (weights of the caller's columns, constant) of a linear form."""
        weights, constant = np.zeros(len(self.names)), self.constant
        for column, weight in zip(self.columns, self.weights.tolist(), strict=True):
            assert isinstance(column, Affine)
            weights[column.source] += weight * column.factor
            constant += weight * column.offset
        return weights, constant

    def scores(self, X: NDArray[Any]) -> Vector:
        """Return the scores of the caller's rows, (n_rows,), in float64."""
        return self.terms(X)[0]

    def terms(self, X: NDArray[Any]) -> tuple[Vector, Vector]:
        """Return (scores, sums of the sizes of what rounding acts on), both (n_rows,).

        A term ``w h`` of the score has the size ``|w h|``. What enters a column is rounded before:
        ``|factor x| + |offset|``, times how fast the score changes with the column at most.
        """
        rows = self.rows(X)
        if self.missing is not None:
            rows = [
                np.where(np.isnan(x), fill, x) for x, fill in zip(rows, self.missing, strict=True)
            ]
        C = np.column_stack([column.of(rows) for column in self.columns])
        rounded = np.column_stack([column.size(rows) for column in self.columns])
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
    n_features, own_names, columns = columns_before([*steps, ("ranker", ranker)])
    if len(columns) != int(ranker.n_features_in_):
        raise ValueError(
            f"the {type(ranker).__name__} was fitted to {ranker.n_features_in_} columns, and the "
            f"{'steps before it give' if steps else 'model has'} {len(columns)}"
        )
    form = _of_ranker(ranker, tuple(map(str, range(n_features))), columns, steps)
    if require is not None:
        require(form)
    given = own_names if features is None else features
    if given is None and unnamed:
        given = [f"x{number}" for number in range(n_features)]
    form = replace(form, names=tuple(_names(given, n_features)))
    _check_kinds(form)
    return form


def _check_kinds(form: Form) -> None:
    """Refuse columns that are text and numbers, and encoders that lack a number."""
    texts = set(form.texts)
    for column in form.columns:
        for leaf in leaves(column):
            name = form.names[leaf.source]
            if isinstance(leaf, Lookup):
                is_text = any(isinstance(key, str) for key in leaf.keys)
                clash = bool(leaf.keys) and is_text != (name in texts)
                if not np.isfinite([leaf.other, *leaf.values]).all():
                    raise ValueError(
                        f"column {name!r} has no number for unknown categories, and an engine "
                        "scores every row: fit OrdinalEncoder with "
                        "handle_unknown='use_encoded_value' and an unknown_value that is a number"
                    )
            else:
                clash = name in texts
            if clash:
                raise ValueError(
                    f"column {name!r} is text for one transformer and a number for another, which "
                    "engines do not have: give each a column of its own"
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
    categories: dict[tuple[int, float], float] = {}
    close: list[str] = []

    def rounded_places(places: Vector, name: str, what: str) -> Vector:
        found = np.array([_rounded(place, name, what) for place in places.tolist()])
        if (equal := np.diff(found) == 0).any():
            at = int(np.argmax(equal))
            low, high = places[at : at + 2].tolist()
            close.append(f"column {name!r} has the {what}s {low!r} and {high!r}")
        return found

    def rounded(column: Column) -> Column:
        if isinstance(column, Product):
            return replace(column, left=rounded(column.left), right=rounded(column.right))
        name = form.names[column.sources[0]]
        if isinstance(column, Piecewise):
            return stepped(column, rounded_places(column.knots, name, "knot"))
        if isinstance(column, Steps):
            return replace(column, edges=rounded_places(column.edges, name, "edge"))
        if isinstance(column, Lookup):
            for value in column.keys:
                if isinstance(value, str):
                    continue
                key = (column.source, _rounded(value, name, "category"))
                if categories.setdefault(key, value) != value:
                    raise ValueError(
                        f"column {name!r} has the categories {categories[key]!r} and "
                        f"{value!r}, which are one number for {engine}, because it reads "
                        "float32: number the categories anew"
                    )
        return column

    columns = [rounded(column) for column in form.columns]
    if close:
        warnings.warn(
            f"{close[0]}, which {engine} cannot tell apart, because it reads float32: rows with "
            "such values may get other scores than the model's, which verify measures: round the "
            "column before fit, or subtract a constant",
            UserWarning,
            stacklevel=3,
        )
    missing = form.missing
    if missing is not None:
        pairs = zip(missing.tolist(), form.names, strict=True)
        missing = np.array([_rounded(fill, name, "fill") for fill, name in pairs])
    return replace(form, columns=tuple(columns), missing=missing)


def require_gaps_apart(form: Form, engine: str) -> None:
    """Refuse an empty text that is another category than a missing one, where both are the same.

    Raises
    ------
    ValueError
        If there is one. The message names the column.
    """
    lookups = [
        leaf for column in form.columns for leaf in leaves(column) if isinstance(leaf, Lookup)
    ]
    with_empty = {leaf.source for leaf in lookups if "" in leaf.keys}
    for leaf in lookups:
        own = float(leaf.values[leaf.keys.index("")]) if "" in leaf.keys else leaf.other
        same = (own,) if leaf.is_filled else (own, leaf.other)
        if leaf.source in with_empty and not leaf.has_gaps and leaf.fill not in same:
            raise ValueError(
                f"column {form.names[leaf.source]!r} has the empty text as a category, and a "
                f"missing text counts as another: {engine} has no missing text, so write one of "
                "them as the other before fit"
            )


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
    ranker: BaseEstimator,
    names: tuple[str, ...],
    columns: list[Column],
    steps: list[tuple[str, Any]],
) -> Form:
    inputs, missing = getattr(ranker, "inputs_", None), getattr(ranker, "fill_values_", None)
    if missing is not None and steps:  # it fills what the steps made, and not the caller's columns
        columns = [one.filled(fill) for one, fill in zip(columns, missing.tolist(), strict=True)]
        missing = None
    if inputs is not None:
        columns = inputs.formulas(columns)
    terms = terms_of(ranker.feature_map_, np.asarray(ranker.coef_, np.float64))
    form = Form(
        names,
        tuple(columns),
        np.zeros(len(columns)) if terms.weights is None else terms.weights,
        terms.hidden,
        terms.kernels,
        terms.products,
        float(sum(terms.constants)),
        None if missing is None else np.asarray(missing),
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
