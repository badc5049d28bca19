"""Formulas are trees of atoms: values, tables, gaps, and rows whatever stands beside."""

import numpy as np
import pytest

from axes import every
from parts.export import Atom, Column, constant, product, sum_of, through

NAN = float("nan")
ROWS = [
    np.array([0.5, NAN, 3.0, -1.0]),
    np.array(["red", None, "green", "blue"], object),
    np.array([1e9, 2.0, NAN, 0.1]),
]
LOOKUP = Column(1, "lookup", ("red", "blue", "green"), np.array([1.0, 2.0, 3.0, -1e9]), 7.0)
COLUMNS = {
    "plain": (Column(0), [0.5, NAN, 3.0, -1.0]),
    "filled": (Column(0).filled(4.0).scaled(2.0, 1.0), [2.0, 9.0, 7.0, -1.0]),
    "gap": (Column(0).gap(), [0, 1, 0, 0]),
    "steps": (Column(0, "steps", np.array([0.5, 3.0]), np.array([1.0, 5.0, 2.0])), [5, NAN, 2, 1]),
    "ramps": (
        through(Column(0).filled(1.0), [0.0, 2.0, 4.0], [0.0, 1.0, 0.0]),
        [0.25, 0.5, 0.5, 0],
    ),
    "curve": (
        Column(0, "curve", ("log", 2.0, 3.0)).scaled(2.0, 0.0),
        [2 * np.log(4.0), NAN, 2 * np.log(9.0), 0.0],
    ),
    "lookup": (LOOKUP, [1.0, 7.0, 3.0, 2.0]),
    "constant": (constant(3.0, 4.0, 1), [3, 4, 3, 3]),
    "product": (product(Column(0).filled(2.0), LOOKUP).scaled(2.0, 1.0), [2.0, 29.0, 19.0, -3.0]),
}


@every(name=COLUMNS)
def test_values(name):
    column, values = COLUMNS[name]
    found = sum_of([column]).values(ROWS)[:, 0]
    np.testing.assert_allclose(found, values, rtol=1e-6)


def test_columns_side_by_side_and_weighed():
    columns, values = zip(
        *(own for name, own in COLUMNS.items() if name not in ("curve", "gap")), strict=True
    )
    weights = np.arange(1.0, len(columns) + 1)[:, None]
    made = sum_of(columns)
    wanted = np.column_stack(values)
    wanted[np.isnan(wanted).any(axis=1)] = NAN  # a row that lacks a value has no score
    np.testing.assert_allclose(made.values(ROWS), wanted, rtol=1e-6)
    whole = made.times(weights, 0.5).values(ROWS)
    np.testing.assert_allclose(whole, wanted @ weights + 0.5, rtol=1e-6)
    for k in range(4):  # the bits of a row alone
        np.testing.assert_array_equal(
            made.times(weights, 0.5).values([x[[k]] for x in ROWS]), whole[[k]]
        )


def test_sizes_and_float32():
    made = sum_of([Column(0).filled(1.0), Column(2).filled(0.0)]).times(
        np.array([[1.0], [-1.0]]), -2.0
    )
    sizes = made.values(ROWS, of=abs)[:, 0]
    np.testing.assert_allclose(sizes, [1e9 + 2.5, 5.0, 5.0, 3.1])
    single = [x if x.dtype.kind == "O" else x.astype(np.float32) for x in ROWS]
    narrow = made.values(single, np.float32)
    assert narrow.dtype == np.float32
    assert 0 < np.abs(narrow - made.values(ROWS)).max() <= 1e9 * 2.0**-23


@pytest.mark.parametrize("column", [Column(0), COLUMNS["curve"][0], COLUMNS["product"][0]])
def test_only_columns_of_a_few_values_are_mapped(column):
    with pytest.raises(ValueError, match="bins of a column that was computed before"):
        column.mapped(lambda value: value, "bins")
    doubled = LOOKUP.mapped(lambda value: 2 * value, "")
    assert doubled.values.tolist() == [2.0, 4.0, 6.0, -2e9] and doubled.missing == 14.0


def test_atoms_of_a_column():
    constant_part, parts = COLUMNS["steps"][0].parts()
    assert constant_part == 1.0
    assert parts == [(4.0, Atom("step", 0, 0.5)), (-3.0, Atom("step", 0, 3.0))]
