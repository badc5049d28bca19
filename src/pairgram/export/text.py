"""Models as expressions: SQL, Python, and Vespa's ranking expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING

import numpy as np

from pairgram.export.form import Form, PythonFunction, SqlExpression, Vector, form_of
from pairgram.features.formulas import Affine, Column, Indicator

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

ALTERNATIVE = "take to_onnx, or a model that is linear in its inputs"


def _equal(name: str, values: Sequence[str]) -> str:
    return f"({name} == {values[0]})"


def expression(
    form: Form,
    columns: Sequence[str],
    least: str,
    greatest: str,
    test: Callable[[str, Sequence[str]], str] = _equal,
    known: Sequence[tuple[str, str]] | None = None,
) -> str:
    """Return the score as arithmetic on columns that are written as given.

    Parameters
    ----------
    form : Form
        Without hidden nodes and kernels. Products become a term for every right column.
    columns : list of str
        How each of the caller's columns is written.
    least, greatest : str
        The functions of two numbers that return the smaller and the larger.
    test : callable
        Given how a column is written, and one or two numbers, it writes a test that is 1 where the
        column has one of them, else 0. Two numbers are a category and that category in float32,
        if no other category of the column is the same in float32.
    known : list of (str, str), or None
        For SQL: how each column is written where it has a number, and the condition that it has
        one. None means that `columns` always have numbers.
    """
    if form.is_linear:
        weights, constant = form.folded()
        terms = [
            f"{number(weight)} * {column}"
            for weight, column in zip(weights.tolist(), columns, strict=True)
            if weight != 0
        ]
        return " + ".join([number(constant)] * (constant != 0) + terms) or "0.0"
    singles = Counter(
        (one.source, _single(one)) for one in form.columns if isinstance(one, Indicator)
    )

    def weighted(column: Column, weight: float) -> tuple[float, str]:
        """Return weight times a column, as a constant and a term that may be empty."""
        name = columns[column.source]
        if isinstance(column, Affine):
            return weight * column.offset, f"{number(weight * column.factor)} * {name}"
        if isinstance(column, Indicator):
            single = _single(column)
            is_own = singles[column.source, single] == 1 and np.isfinite(single)
            values = dict.fromkeys([column.value, single] if is_own else [column.value])
            return 0.0, f"{number(weight)} * {test(name, [*map(number, values)])}"
        lowest = float(column.values[0])
        if known is not None:  # LEAST and GREATEST may ignore a NULL
            name, condition = known[column.source]
        ramps: list[str] = []  # in brackets, as parsers refuse a sum of thousands of terms
        pairs = zip(column.knots[:-1].tolist(), column.knots[1:].tolist(), strict=True)
        steps = [float(b - a) for a, b in zip(column.values, column.values[1:], strict=False)]
        for (knot, following), step in zip(pairs, steps, strict=True):
            if step == 0:
                continue
            share = f"({name} - {number(knot)}) / {number(following - knot)}"
            ramp = f"{least}({greatest}({share}, 0.0), 1.0)"
            ramps.append(f"{number(weight * step)} * {ramp}")
        if not ramps:
            return weight * lowest, ""
        text = f"({' + '.join(ramps)})"
        if known is not None:
            fill = np.nan if form.missing is None else form.missing[column.source]
            filled = weight * (float(column.of(np.array(fill))) - lowest)
            other = "NULL" if np.isnan(filled) else number(filled)
            text = f"CASE WHEN {condition} THEN {text} ELSE {other} END"
        return weight * lowest, text

    def total(numbers: Iterable[int], weights: Vector, constant: float = 0.0) -> str:
        """Return a weighted sum of columns and a constant."""
        terms = []
        for at, weight in zip(numbers, weights.tolist(), strict=True):
            if weight != 0:
                more, term = weighted(form.columns[at], weight)
                constant += more
                terms += [term] * bool(term)
        return " + ".join([number(constant)] * (constant != 0 or not terms) + terms)

    sums = [total(range(len(form.columns)), form.weights, form.constant)]
    for part in form.products:
        for at, weights in zip(part.right.tolist(), part.matrix.T, strict=True):
            if weights.any():
                factor = total([at], np.ones(1))
                sums.append(f"({factor}) * ({total(part.left.tolist(), weights)})")
    return " + ".join(sums)


def number(value: float) -> str:
    text = repr(float(value))
    return f"({text})" if value < 0 else text


def _single(category: Indicator) -> float:
    """Return a category as a column of float32 has it."""
    with np.errstate(over="ignore"):
        return float(np.float32(category.value))


def _require_expression(what: str, form: Form) -> None:
    if form.curved:
        raise ValueError(f"{what} would be too long for a model with {form.curved}: {ALTERNATIVE}")


# How a dialect writes a column so that it is computed in float64: MySQL cuts quotients of exact
# numbers, and DuckDB computes columns of REAL in float32.
_IN_FLOAT64 = {"standard": "CAST({0} AS DOUBLE PRECISION)", "mysql": "({0} + 0e0)"}
# How a dialect makes NaN of a number NULL. SQLite and MySQL have no NaN.
_WITHOUT_NAN = {
    "standard": "NULLIF({0}, 'NaN')",
    "bigquery": "CASE WHEN {0} = {0} THEN {0} END",
}


def _one_of(name: str, values: Sequence[str]) -> str:
    # A column of REAL has the value in float32, and PostgreSQL compares it in float64.
    found = f"= {values[0]}" if len(values) == 1 else f"IN ({', '.join(values)})"
    return f"CASE WHEN {name} {found} THEN 1.0 ELSE 0.0 END"


def to_sql(
    model: BaseEstimator, *, features: Sequence[str] | None = None, dialect: str = "standard"
) -> SqlExpression:
    """Return the score as an expression of SQL, for a ``SELECT`` or an ``ORDER BY``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    features : list of str or None, default=None
        The names of the columns of the table, in the order of the columns of X. They are quoted.
    dialect : {"standard", "sqlite", "mysql", "bigquery"}, default="standard"
        "standard" serves PostgreSQL, DuckDB and Snowflake. The dialects differ in the quotes of
        names, in the names of the smaller and the larger of two numbers, and in how NaN is found.

    Returns
    -------
    SqlExpression
        A str.

    Raises
    ------
    ValueError
        If the model has hidden nodes or a kernel, or if BigQuery cannot quote a name.

    Notes
    -----
    A NULL and a NaN count as the model's `fill_values_`. Without `fill_values_`, a row with one in
    a column of the model has the score NULL. In a column of categories they are none of the
    categories. SQLite and MySQL have no NaN. PostgreSQL, DuckDB and Snowflake order NaN above all
    numbers, so the expression makes it NULL there, by ``NULLIF(CAST(column AS DOUBLE PRECISION),
    'NaN')``. In BigQuery NaN is not equal to itself: ``CASE WHEN column = column THEN column END``.

    Where `ORDER BY ... DESC` has NULL first, as in PostgreSQL, write ``NULLS LAST``.

    Scales of inputs are multiplied into the weights. A score errs by some 1e-16 times its largest
    term: take an offset from columns of huge values, such as times, before the fit.
    """
    if dialect not in ("standard", "sqlite", "mysql", "bigquery"):
        raise ValueError(
            f"dialect must be 'standard', 'sqlite', 'mysql' or 'bigquery', got {dialect!r}"
        )
    form = form_of(model, features, partial(_require_expression, "an expression of SQL"))
    mark = "`" if dialect in ("mysql", "bigquery") else '"'
    refused = next((name for name in form.names if "`" in name or "\\" in name), None)
    if dialect == "bigquery" and refused is not None:
        raise ValueError(f"BigQuery has no columns with backticks or backslashes, got {refused!r}")
    quoted = [mark + name.replace(mark, 2 * mark) + mark for name in form.names]
    wide = [_IN_FLOAT64.get(dialect, "{0}").format(name) for name in quoted]
    clean = [_WITHOUT_NAN.get(dialect, "{0}").format(name) for name in wide]
    known = [(name, f"{one} IS NOT NULL") for name, one in zip(wide, clean, strict=True)]
    columns = clean
    if form.missing is not None:
        filled = zip(clean, form.missing.tolist(), strict=True)
        columns = [f"COALESCE({one}, {number(value)})" for one, value in filled]
    least, greatest = ("MIN", "MAX") if dialect == "sqlite" else ("LEAST", "GREATEST")
    text = expression(form, columns, least, greatest, _one_of, known)
    exported: SqlExpression = SqlExpression(text).named(form.names)
    exported.dialect = dialect
    return exported


def to_python(
    model: BaseEstimator, *, features: Sequence[str] | None = None, name: str = "score"
) -> PythonFunction:
    """Return the source of a Python function that needs nothing but Python.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    features : list of str or None, default=None
        The names of the columns of X, for the docstring of the function.
    name : str, default="score"
        The name of the function.

    Returns
    -------
    PythonFunction
        A str: a function of a sequence of numbers, the columns of one row, that returns its score.

    Raises
    ------
    ValueError
        If the model has hidden nodes or a kernel, or if `name` is no name of Python.

    Notes
    -----
    Scales of inputs are multiplied into the weights, so scores err as in `to_sql`.
    """
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"name must be a name of Python, got {name!r}")
    form = form_of(model, features, partial(_require_expression, "a function"))
    columns = [f"x[{number}]" for number in range(len(form.names))]
    text = expression(form, columns, "min", "max")
    documented = f"Return the score of one row x, the columns {', '.join(form.names)}."
    lines = [f"def {name}(x):", f"    {documented!r}"]
    if form.missing is not None:
        lines += [
            f"    missing = {form.missing.tolist()!r}",
            "    x = [m if v is None or v != v else v for v, m in zip(x, missing)]",
        ]
    lines += [f"    return {text}", ""]
    return PythonFunction("\n".join(lines)).named(form.names)
