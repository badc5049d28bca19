"""Models as expressions: SQL, Python, and Vespa's ranking expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from keyword import iskeyword
from typing import Any

from pairgram.export.artefacts import PythonFunction, SqlExpression
from pairgram.export.columns import Affine, Piecewise
from pairgram.export.form import Form, form_of

__all__ = ["expression", "to_python", "to_sql"]

ALTERNATIVE = "take to_onnx, or a model that is linear in its inputs"


def expression(
    form: Form,
    columns: Sequence[str],
    least: str,
    greatest: str,
    test: str = "({0} == {1})",
) -> str:
    """Return the score as arithmetic on columns that are written as given.

    Parameters
    ----------
    form : Form
        Without hidden nodes and kernels.
    columns : list of str
        How each of the caller's columns is written.
    least, greatest : str
        The functions of two numbers that return the smaller and the larger.
    test : str
        How a column is compared with a number; the value is 1 or 0.
    """
    if form.is_linear:
        weights, constant = form.folded()
        terms = [
            f"{_number(weight)} * {column}"
            for weight, column in zip(weights.tolist(), columns, strict=True)
            if weight != 0
        ]
        return " + ".join([_number(constant)] * (constant != 0) + terms) or "0.0"
    constant, terms = form.constant, []
    for column, weight in zip(form.columns, form.weights.tolist(), strict=True):
        if weight == 0:
            continue
        name = columns[column.source]
        if isinstance(column, Affine):
            constant += weight * column.offset
            terms.append(f"{_number(weight * column.factor)} * {name}")
        elif isinstance(column, Piecewise):
            constant += weight * float(column.values[0])
            ramps: list[str] = []  # in brackets, as parsers refuse a sum of thousands of terms
            pairs = zip(column.knots[:-1].tolist(), column.knots[1:].tolist(), strict=True)
            steps = [float(b - a) for a, b in zip(column.values, column.values[1:], strict=False)]
            for (knot, following), step in zip(pairs, steps, strict=True):
                if step == 0:
                    continue
                share = f"({name} - {_number(knot)}) / {_number(following - knot)}"
                ramp = f"{least}({greatest}({share}, 0.0), 1.0)"
                ramps.append(f"{_number(weight * step)} * {ramp}")
            if ramps:
                terms.append(f"({' + '.join(ramps)})")
        else:
            terms.append(f"{_number(weight)} * {test.format(name, _number(column.value))}")
    return " + ".join([_number(constant), *terms])


def _number(value: float) -> str:
    text = repr(float(value))
    return f"({text})" if value < 0 else text


def _require_expression(what: str, form: Form) -> None:
    if form.hidden or form.kernels:
        found = "hidden nodes" if form.hidden else "a kernel"
        raise ValueError(f"{what} would be too long for a model with {found}: {ALTERNATIVE}")


def to_sql(
    model: Any, *, features: Sequence[str] | None = None, dialect: str = "standard"
) -> SqlExpression:
    """Return the score as an expression of SQL, for a ``SELECT`` or an ``ORDER BY``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    features : list of str or None, default=None
        The names of the columns of the table, in the order of the columns of X. They are quoted.
    dialect : {"standard", "sqlite", "mysql", "bigquery"}, default="standard"
        "standard" serves PostgreSQL, DuckDB and Snowflake. The dialects differ in the quotes of
        names and in the names of the smaller and the larger of two numbers.

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
    A NULL counts as the model's `missing_`, in every dialect. A model without `missing_` makes the
    score of a row with a NULL in a weighted column NULL, in every dialect. Quantile and clipped
    inputs differ: LEAST and GREATEST ignore a NULL in PostgreSQL and DuckDB, so that it counts as
    the lowest value, and give NULL in Snowflake, MySQL, BigQuery and SQLite (there MIN and MAX). A
    NULL in a column of categories counts as none of them.
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
    columns = [mark + name.replace(mark, 2 * mark) + mark for name in form.names]
    if form.missing is not None:
        filled = zip(columns, form.missing.tolist(), strict=True)
        columns = [f"COALESCE({column}, {_number(value)})" for column, value in filled]
    least, greatest = ("MIN", "MAX") if dialect == "sqlite" else ("LEAST", "GREATEST")
    test = "CASE WHEN {0} = {1} THEN 1.0 ELSE 0.0 END"
    text = expression(form, columns, least, greatest, test)
    return SqlExpression(text).named(form.names)


def to_python(
    model: Any, *, features: Sequence[str] | None = None, name: str = "score"
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
    """
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"name must be a name of Python, got {name!r}")
    form = form_of(model, features, partial(_require_expression, "a function"))
    columns = [f"x[{number}]" for number in range(len(form.names))]
    text = expression(form, columns, "min", "max")
    lines = [f"def {name}(x):", f"    {_documented(form.names)!r}"]
    if form.missing is not None:
        lines += [
            f"    missing = {form.missing.tolist()!r}",
            "    x = [m if v is None or v != v else v for v, m in zip(x, missing)]",
        ]
    lines += [f"    return {text}", ""]
    return PythonFunction("\n".join(lines)).named(form.names)


def _documented(names: Sequence[str]) -> str:
    return f"Return the score of one row x, the columns {', '.join(names)}."
