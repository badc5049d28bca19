"""Models as expressions: SQL, Python, and Vespa's ranking expressions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from keyword import iskeyword
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pairgram._support.parameters import check_text
from pairgram.export.form import Form, PythonFunction, SqlExpression, form_of
from pairgram.export.formulas import Atom, Sum, Value, entries_of

ALTERNATIVE = "take to_onnx, or a model that is linear in its inputs"
BRACKET = 100  # terms, as parsers refuse a sum of thousands
Case = tuple[list[str], float]  # how the values are written that have a number, and the number


@dataclass(frozen=True)
class Dialect:
    """How a language writes what expressions are made of.

    Attributes
    ----------
    least, greatest : str
        The functions of two numbers that return the smaller and the larger.
    choose : str
        What is `other` if a condition `gap` holds, else `known`.
    nan : str
        A number that is none.
    at_least : str
        1 where the first of two numbers is at least the second, else 0.
    lookup : callable
        Given how a column is written, and cases, it returns the number of the case that the column
        has, and 0 if it has none. A category that is a number may be written in two ways: as it
        is, and in float32, if no other category of the column is the same in float32.
    text : callable
        It writes text.
    curves : mapping
        The functions of `CURVES`.
    is_strict : bool
        Whether a missing value has no score where the model has none. Others count it as 0.
    rounds : bool
        Whether columns may be of float32, so that categories are met in float32 too.
    has_low_edges : bool
        Whether an edge is lowered to its number in float32, where that is less: a row at an edge is
        then above it in float32, but so are numbers of float64 between the two.
    has_decimals : bool
        Whether a number without an exponent is a decimal number. Some databases make another number
        of float64 of it than the nearest one, which a category or an edge would miss.
    """

    least: str
    greatest: str
    choose: str
    nan: str
    at_least: str
    lookup: Callable[[str, list[Case]], str]
    text: Callable[[str], str]
    curves: Mapping[str, str]
    is_strict: bool = True
    rounds: bool = True
    has_low_edges: bool = False
    has_decimals: bool = False


def bracketed(terms: list[str]) -> str:
    """Return a sum, of sums in brackets if there are many terms."""
    groups = [" + ".join(terms[k : k + BRACKET]) for k in range(0, len(terms), BRACKET)]
    return " + ".join(groups if len(groups) == 1 else (f"({one})" for one in groups))


def expression(
    form: Form,
    columns: Sequence[str],
    dialect: Dialect,
    gaps: Sequence[str],
    inside: Sequence[str] | None = None,
) -> str:
    """Return the score as arithmetic on columns that are written as given.

    Parameters
    ----------
    form : Form
        Without hidden nodes and kernels.
    columns : list of str
        How each of the caller's columns is written.
    dialect : Dialect
    gaps : list of str
        How it is asked whether the value of a column is missing.
    inside : list of str, or None
        How each column is written where it is known to have a value. None stands for `columns`.
    """
    inside = columns if inside is None else inside
    tree, compared = form.tree, partial(number, exponent=dialect.has_decimals)
    keys = [one for one in tree.atoms if one.kind == "is" and not isinstance(one.low, str)]
    singles = Counter((one.source, _single(one.low)) for one in keys)

    def written(source: int, key: Value) -> list[str]:
        """Return the ways to write a category."""
        if isinstance(key, str):
            return [dialect.text(key)]
        single = _single(key)
        is_own = singles[source, single] == 1 and np.isfinite(single)
        own = [key, single] if is_own and dialect.rounds else [key]
        return [*map(compared, dict.fromkeys(own))]

    def known(name: str, weight: float, atom: Atom) -> str:
        """Return a weighted atom, other than a category, where the column has a value."""
        if atom.kind == "step":
            edge = min(atom.low, _single(atom.low)) if dialect.has_low_edges else atom.low
            name = dialect.at_least.format(name, compared(edge))
        elif atom.kind == "curve":
            inner = [name if atom.low == 1 else f"{number(atom.low)} * {name}"]
            inner += [number(atom.high)] * (atom.high != 0)
            name = dialect.curves[atom.name].format(f"({' + '.join(inner)})")
        elif atom.kind == "ramp":
            share = f"({name} - {number(atom.low)}) / {number(atom.high - atom.low)}"
            name = f"{dialect.least}({dialect.greatest}({share}, 0.0), 1.0)"
        return f"{number(weight)} * {name}"

    def of_column(at: int, atoms: list[tuple[float, Atom]]) -> str:
        """Return the weighted atoms of a column."""
        kinds = {atom.kind for _, atom in atoms}
        lacks, other = at in tree.open, sum(w for w, atom in atoms if atom.kind == "gap")
        if lacks:
            tests, other = dialect.is_strict and not kinds <= {"value", "curve"}, math.nan
        else:  # a gap is no category
            tests = other != 0 or not kinds <= {"is", "gap"}
        name = columns[at] if lacks and not tests else inside[at]
        cases = [(written(at, atom.low), weight) for weight, atom in atoms if atom.kind == "is"]
        others = [known(name, w, atom) for w, atom in atoms if atom.kind not in ("is", "gap")]
        terms = [dialect.lookup(name, cases)] * bool(cases) + [bracketed(others)] * bool(others)
        term = " + ".join(terms)
        if not tests:
            return term
        text = dialect.nan if math.isnan(other) else number(other)
        return dialect.choose.format(gap=gaps[at], other=text, known=term or "0.0")

    def total(node: Sum, k: int) -> str:
        """Return value k of a sum."""
        constant = float(node.offset[k])
        atoms: dict[int, list[tuple[float, Atom]]] = {}
        for weight, atom in node.entries(k):
            atoms.setdefault(atom.source, []).append((weight, atom))
        terms = [of_column(at, found) for at, found in sorted(atoms.items())]
        products: Any  # as there is nothing else
        for products, matrix in node.terms:
            for weight, at in entries_of(matrix, k):
                sides = [total(products.x, side) for side in (at, at + products.width)]
                factors = f"({sides[0]}) * ({sides[1]})"
                terms.append(factors if weight == 1 else f"{number(weight)} * {factors}")
        return bracketed([number(constant)] * (constant != 0 or not terms) + terms)

    return total(tree, 0)


def number(value: float, exponent: bool = False) -> str:
    """Write a number, on request with an exponent in any case."""
    text = repr(float(value))
    text += "e0" * (exponent and "e" not in text)
    return f"({text})" if value < 0 else text


def _single(value: float) -> float:
    """Return a number as a column of float32 has it."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _require_expression(what: str, form: Form) -> None:
    if form.curved:
        raise ValueError(f"{what} would be too long for a model with {form.curved}: {ALTERNATIVE}")


def _cases(name: str, cases: list[Case]) -> str:
    # A column of REAL has the value in float32, and PostgreSQL compares it in float64.
    tests = [
        f"WHEN {name} = {one[0]}" if len(one) == 1 else f"WHEN {name} IN ({', '.join(one)})"
        for one, _ in cases
    ]
    # Products of decimals have more digits than databases hold.
    values = [number(value, True) for _, value in cases]
    whens = " ".join(f"{test} THEN {value}" for test, value in zip(tests, values, strict=True))
    return f"CASE {whens} ELSE 0e0 END"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _without_backslash(text: str) -> str:
    """Write text in SQL, of which Snowflake reads a backslash as the beginning of an escape."""
    return " || CHR(92) || ".join(map(_quoted, text.split("\\")))


_SQL = Dialect(
    least="LEAST",
    greatest="GREATEST",
    choose="CASE WHEN {gap} THEN {other} ELSE {known} END",
    nan="NULL",
    at_least="CASE WHEN {0} >= {1} THEN 1e0 ELSE 0e0 END",
    lookup=_cases,
    text=_without_backslash,
    curves={  # of other numbers there is none, which is an error in PostgreSQL
        "log": "LN(CASE WHEN {0} > 0 THEN {0} END)",
        "sqrt": "SQRT(CASE WHEN {0} >= 0 THEN {0} END)",
    },
    has_decimals=True,
)
DIALECTS = {
    "standard": _SQL,
    "sqlite": replace(_SQL, least="MIN", greatest="MAX", text=_quoted),
}


def to_sql(
    model: BaseEstimator, *, features: Sequence[str] | None = None, dialect: str = "standard"
) -> SqlExpression:
    """Return the score as an SQL expression, for a ``SELECT`` or an ``ORDER BY``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    features : list of str or None, default=None
        The names of the columns of the table, in the order of the columns of X. The expression
        quotes them. None takes those that the model was fitted with.
    dialect : {"standard", "sqlite"}, default="standard"
        "standard" serves PostgreSQL, DuckDB and Snowflake. The dialects differ in the quotes of
        names, in the names of the smaller and the larger of two numbers, and in how NaN is found.

    Returns
    -------
    SqlExpression
        A str.

    Raises
    ------
    ValueError
        If columns have no names, or if the model has hidden nodes or a kernel.

    Notes
    -----
    NULL and NaN count as the values of the model's `Fill`. Without it, a row with one of them
    in a column of the model has the score NULL. Where the steps of a pipeline fill missing values,
    or tell where they are, so does the expression. In a column of categories, a missing value is in
    no category, unless a category stands for missing values. scikit-learn distinguishes None from
    NaN if one of them is a category, and a database does not. Text is compared byte by byte. In
    PostgreSQL, DuckDB and Snowflake the collation of the column decides, if it treats different
    texts as equal.

    SQLite has no NaN. PostgreSQL, DuckDB and Snowflake order NaN above all numbers, so
    the expression makes it NULL there, by ``NULLIF(CAST(column AS DOUBLE PRECISION), 'NaN')``.
    PostgreSQL cannot cast a boolean to double precision: use ``column::int`` instead, for example
    in a view.

    Where `ORDER BY ... DESC` puts NULL first, as in PostgreSQL, add ``NULLS LAST``.

    Scales of inputs are multiplied into the weights. The rounding error of a score is about 1e-16
    times its largest term: subtract a constant from columns of huge values, such as times, before
    the fit.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> print(export.to_sql(model, features=["bm25", "price"], dialect="sqlite"))
    (-3.07...) * CAST("bm25" AS REAL) + 0.0500... * CAST("price" AS REAL)
    """
    check_text("dialect", dialect, DIALECTS)
    form = form_of(model, features)
    _require_expression("an expression of SQL", form)
    quoted = ['"' + name.replace('"', '""') + '"' for name in form.names]
    # DuckDB computes columns of REAL in float32, and SQLite compares columns of text as text.
    double = "REAL" if dialect == "sqlite" else "DOUBLE PRECISION"
    wide = [f"CAST({name} AS {double})" for name in quoted]
    clean = wide if dialect == "sqlite" else [f"NULLIF({name}, 'NaN')" for name in wide]
    texts = {form.names.index(name) for name in form.texts}
    for at in texts:
        wide[at] = clean[at] = quoted[at] + " COLLATE BINARY" * (dialect == "sqlite")
    for atom in form.tree.atoms:
        if "\0" in str(atom.low):
            raise ValueError(
                f"column {form.names[atom.source]!r} has the category {atom.low!r}, and text of "
                "SQL has no character NUL"
            )
    gaps = [f"{one} IS NULL" for one in clean]
    text = expression(form, clean, DIALECTS[dialect], gaps, wide)
    return SqlExpression(text).named(form.names, form.texts, dialect=dialect)


def _of_table(name: str, cases: list[Case]) -> str:
    entries = ", ".join(f"{one[0]}: {value!r}" for one, value in cases)
    return f"{{{entries}}}.get({name}, 0.0)"


_PYTHON = Dialect(
    least="min",
    greatest="max",
    choose="({other} if {gap} else {known})",
    nan="float('nan')",
    at_least="({0} >= {1})",
    lookup=_of_table,
    text=repr,
    curves={"log": "math.log{0}", "sqrt": "math.sqrt{0}"},
    rounds=False,
)


def to_python(
    model: BaseEstimator, name: str = "score", *, features: Sequence[str] | None = None
) -> PythonFunction:
    """Return the source of a Python function that needs nothing but Python.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    name : str, default="score"
        The name of the function.
    features : list of str or None, default=None
        The names of the columns of X, for the docstring of the function. None takes those that the
        model was fitted with.

    Returns
    -------
    PythonFunction
        A str: the source of a function that takes a sequence of numbers, the columns of one row,
        and returns its score.

    Raises
    ------
    ValueError
        If columns have no names, if the model has hidden nodes or a kernel, or if `name` is not a
        valid Python name.

    Notes
    -----
    Scales of inputs are multiplied into the weights, so rounding errors are as in `to_sql`.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> print(export.to_python(model, features=["bm25", "price"]), end="")
    def score(x):
        'Return the score of one row x, the columns bm25, price.'
        return (-3.07...) * x[0] + 0.0500... * x[1]
    """
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"name must be a name of Python, got {name!r}")
    form = form_of(model, features)
    _require_expression("a function", form)
    columns = [f"x[{number}]" for number in range(len(form.names))]
    gaps = [f"{one} is None or {one} != {one}" for one in columns]
    text = expression(form, columns, _PYTHON, gaps)
    documented = f"Return the score of one row x, the columns {', '.join(form.names)}."
    lines = [f"def {name}(x):", f"    {documented!r}"]
    if " is None" in text:  # pandas.NA has no truth of its own
        lines.append('    x = [None if type(v).__name__ == "NAType" else v for v in x]')
    if "math." in text:
        lines.append("    import math")
    lines += [f"    return {text}", ""]
    return PythonFunction("\n".join(lines)).named(form.names, form.texts)
