"""`Form`: the formula of a model with the names of its columns, and what exports are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram.export.formulas import (
    Apply,
    Column,
    KernelValues,
    Radial,
    Sum,
    Times,
    leaves,
    nodes_of,
    stepped,
    sum_of,
    through,
)
from pairgram.export.transformers import columns_before
from pairgram.features.feature_map import formula_of
from pairgram.features.row_values import Chain


class _Named:
    """A model that knows the names of the columns that it reads, in the order of X."""

    feature_names: tuple[str, ...] = ()
    text_names: tuple[str, ...] = ()  # of the columns that are text
    atoms: Any = ()  # what features are, by their names
    definitions: Any = ()  # of features that the engine computes from fields

    def named(self, names: tuple[str, ...], texts: tuple[str, ...] = (), **more: Any) -> Self:
        """Return the model with its names, and other attributes, set."""
        vars(self).update(feature_names=names, text_names=texts, **more)
        return self


class SolrModel(_Named, dict[str, Any]):
    """The body of a request to Solr's model store.

    Attributes
    ----------
    definitions : list of dict
        The body of a request to Solr's feature store: the features that the engine must compute
        from fields, such as whether a field has a certain category.
    """


class LtrPluginModel(_Named, dict[str, Any]):
    """The body of a ``_createmodel`` request to the plugin of Elasticsearch or OpenSearch.

    Attributes
    ----------
    definitions : list of dict
        Entries of the ``features`` of a feature set: those that the engine must compute from
        fields.
    """


class VespaProfile(_Named, str):
    """A rank profile of a Vespa schema."""

    onnx: Any = None  # the OnnxModel that it reads, if it reads one
    template: str = ""  # the expression, with x[j], gap[j] and where in the words of Python


class RanklibModel(_Named, str):
    """The text of a linear model of RankLib."""


class SqlExpression(_Named, str):
    """An expression of SQL."""

    dialect: str = "standard"


class PythonFunction(_Named, str):
    """The source of a function without dependencies."""


class OnnxModel(_Named, bytes):
    """The bytes of an ONNX file."""


# Text of an expression, the function that Vespa calls if, the place of a column, and of its gap.
WORD = re.compile(r"""("(?:[^"\\]|\\.)*")|where\(|(x|gap)\[([0-9]+)\]""")
BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
Vector = NDArray[np.float64]


def in_vespa(template: str, names: Sequence[str], texts: Sequence[str]) -> str:
    """Return an expression of `VespaProfile.template` in Vespa's words."""

    def word(found: re.Match[str]) -> str:
        text, kind, place = found.groups()
        if place is None:
            return text or "if("
        name = names[int(place)]
        if kind == "x":
            return name
        return f'{name} == ""' if name in texts else f"isNan({name})"

    return WORD.sub(word, template)


@dataclass(frozen=True, eq=False)
class Form:
    """The formula of a model, and the names of the columns that it reads.

    Attributes
    ----------
    names : tuple of str
        The names of the caller's columns.
    columns : tuple of Column
        What the steps of a pipeline, fills and scales make of them.
    score : callable
        It returns the formula of the score, given that of the columns.
    told : ndarray of shape (n_names,), or None
        What an engine must be told to put in the place of missing values.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    score: Callable[[Sum], Any]
    told: Vector | None = None

    @cached_property
    def tree(self) -> Sum:
        """The formula of the score."""
        found: Sum = self.score(sum_of(self.columns))
        return found

    @property
    def curved(self) -> str:
        """What makes the score no sum of products of columns, in words; "" if nothing does."""
        for node in nodes_of(self.tree):
            if isinstance(node, KernelValues):
                return f"the {node.kernel.name} kernel"
            if isinstance(node, (Apply, Radial)):
                return "hidden nodes"
        return ""

    @property
    def has_products(self) -> bool:
        """Whether columns are multiplied."""
        return any(isinstance(node, Times) for node in nodes_of(self.tree))

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the columns that are text."""
        found = {leaf.source for leaf in leaves(self.columns) if leaf.texts}
        return tuple(self.names[source] for source in sorted(found))


def form_of(
    model: BaseEstimator,
    features: Sequence[str] | None = None,
    *,
    unnamed: bool = False,
    told: bool = False,
) -> Form:
    """Return the form of a fitted ranker, or of a pipeline that ends in one.

    Parameters
    ----------
    model : fitted ranker or sklearn.pipeline.Pipeline
    features : list of str or None
        The names of the columns of X. None takes those that the model was fitted with.
    unnamed : bool, default=False
        Whether columns without names are called x0, x1 and so on, because the engine needs none.
    told : bool, default=False
        Whether the engine is told the values that a ranker without steps before it puts in the
        place of missing ones, and they are no part of the formula.

    Raises
    ------
    TypeError
        If the model is no estimator.
    ValueError
        If there are no names, or if a part of the model has no such form. The message names it.
    """
    steps = model.steps if isinstance(model, Pipeline) else [("ranker", model)]
    ranker: Any = steps[-1][1]
    is_class = isinstance(ranker, type)
    if is_class or not hasattr(ranker, "fit"):
        got = f"the class {ranker.__name__}" if is_class else type(ranker).__name__
        raise TypeError(f"model must be a fitted ranker, got {got}")
    check_is_fitted(ranker)
    if not hasattr(ranker, "coef_") or not hasattr(ranker, "feature_map_"):
        raise ValueError(f"model must be a ranker of pairgram, got {type(ranker).__name__}")
    n_features, own_names, columns = columns_before(steps)
    if len(columns) != int(ranker.n_features_in_):
        raise ValueError(
            f"the {type(ranker).__name__} was fitted to {ranker.n_features_in_} columns, and the "
            f"steps before it give {len(columns)}"
        )
    if getattr(ranker, "prior_", None) is not None:
        raise ValueError(
            "the scores of the prior are added to the model, and cannot be exported with it: "
            "export both, and add their scores; or give the prior as weights"
        )
    row, fills = Chain.of(ranker.feature_map_), None
    if row.fill is not None and told and len(steps) == 1:
        fills = np.asarray(row.fill.fill_)
    else:
        columns = filled_columns(ranker, columns)
    if row.inputs is not None:
        columns = _scaled(row.inputs, columns)
    score = partial(formula_of, row.then, coef=np.asarray(ranker.coef_, np.float64))
    given = own_names if features is None else features
    if given is None and unnamed:
        given = [f"x{number}" for number in range(n_features)]
    form = Form(tuple(_names(given, n_features)), tuple(columns), score, fills)
    _check_kinds(form)
    return form


def filled_columns(ranker: Any, columns: list[Column]) -> list[Column]:
    """Return columns in which a ranker has filled what is missing."""
    fill = Chain.of(ranker.feature_map_).fill
    if fill is None:
        return columns
    return [one.filled(value) for one, value in zip(columns, fill.fill_.tolist(), strict=True)]


def require_numbers(leaf: Column, name: object) -> None:
    """Refuse a column of an encoder that has no number for some categories."""
    if leaf.kind == "lookup" and not np.isfinite(leaf.values).all():
        raise ValueError(
            f"column {name!r} has no number for unknown categories, and an engine "
            "scores every row: fit OrdinalEncoder with "
            "handle_unknown='use_encoded_value' and an unknown_value that is a number"
        )


def _check_kinds(form: Form) -> None:
    """Refuse columns that are text and numbers, and encoders that lack a number."""
    texts = set(form.texts)
    for leaf in leaves(form.columns):
        name, is_lookup = form.names[leaf.source], leaf.kind == "lookup"
        require_numbers(leaf, name)
        if (not is_lookup or leaf.at) and bool(leaf.texts) != (name in texts):
            raise ValueError(
                f"column {name!r} is text for one transformer and a number for another, which "
                "engines do not have: give each a column of its own"
            )


def for_float32(form: Form, engine: str) -> Form:
    """Return a form for an engine that reads float32: it has the knots of float32.

    An engine rounds the values of its columns to float32. Knots must be rounded too: a row whose
    value is a knot is otherwise beside it. Categories stay as they are, because engines differ in
    how they compare.

    Raises
    ------
    ValueError
        If float32 cannot hold a knot or a category, or has one number for two categories.

    Warns
    -----
    UserWarning
        If two knots are one number in float32.
    """
    categories: dict[tuple[int, float], float] = {}
    close: list[str] = []

    def rounded(column: Column) -> Column:
        if column.kind == "product":
            return replace(column, at=tuple(map(rounded, column.at)))
        name = form.names[column.source]
        what = {"ramps": "knot", "steps": "edge", "lookup": "category"}.get(column.kind)
        if what is None:
            return column
        values = [at for at in column.at if not isinstance(at, str)]
        with np.errstate(over="ignore"):
            places = np.array(values, np.float32).astype(np.float64)
        if np.isinf(places).any():
            raise ValueError(
                f"column {name!r} has the {what} {float(values[np.argmax(np.isinf(places))])!r}, "
                "which is beyond float32, in which engines read columns: scale the column before "
                "fit"
            )
        if what == "category":
            for value, place in zip(values, places.tolist(), strict=True):
                known = categories.setdefault((column.source, place), value)
                if known != value:
                    raise ValueError(
                        f"column {name!r} has the categories {known!r} and {value!r}, which are "
                        f"one number for {engine}, because it reads float32: number the "
                        "categories anew"
                    )
            return column
        if (equal := np.diff(places) == 0).any():
            low, high = column.at[np.argmax(equal) :][:2].tolist()
            close.append(f"column {name!r} has the {what}s {low!r} and {high!r}")
        return stepped(column, places) if what == "knot" else replace(column, at=places)

    columns = tuple(map(rounded, form.columns))
    if close:
        warnings.warn(
            f"{close[0]}, which {engine} cannot tell apart, because it reads float32: rows with "
            "such values may get other scores than the model's, which verify measures: round the "
            "column before fit, or subtract a constant",
            UserWarning,
            stacklevel=3,
        )
    return replace(form, columns=columns)


def require_gaps_apart(form: Form, engine: str) -> None:
    """Refuse an empty text that is another category than a missing one, where both are the same.

    Raises
    ------
    ValueError
        If there is one. The message names the column.
    """
    lookups = [leaf for leaf in leaves(form.columns) if leaf.kind == "lookup"]
    with_empty = {leaf.source for leaf in lookups if "" in leaf.at}
    for leaf in lookups:
        values = dict(zip(leaf.at, leaf.values.tolist(), strict=False))
        other = float(leaf.values[-1])
        own = values.get("", other)
        same = (own,) if leaf.is_filled else (own, other)
        if leaf.source in with_empty and not leaf.has_gaps and leaf.fill not in same:
            raise ValueError(
                f"column {form.names[leaf.source]!r} has the empty text as a category, and a "
                f"missing text counts as another: {engine} has no missing text, so write one of "
                "them as the other before fit"
            )


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
    broken = next(filter(BREAK.search, names), None)
    if broken is not None:
        raise ValueError(
            f"names of columns must have no line breaks and control characters, got {broken!r}: "
            "give other names by features"
        )
    return names


def _scaled(inputs: Any, columns: list[Column]) -> list[Column]:
    """Return the columns that a fitted scale makes of columns."""
    if inputs.factors is not None:
        factors, offsets = inputs.factors, -inputs.arrays["inputs_centre"] * inputs.factors
        return [*map(Column.scaled, columns, factors.tolist(), offsets.tolist())]
    ends = inputs.arrays["inputs_ends"][:-1]
    parts = (np.split(inputs.arrays[f"inputs_{name}"], ends) for name in ("knots", "values"))
    made = [*map(through, columns, *parts)]
    return columns + made if len(inputs.parts) > 1 else made
