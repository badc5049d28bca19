"""Columns that are interleaved to rows by compiled code, against NumPy."""

import numpy as np

from axes import drawn
from pairgram import _core


@drawn(
    36,
    dtype=[np.float32, np.float64],
    n_rows=[0, 1, 2, 1023, 1024, 1025, 5000],
    n_columns=[1, 7, 8, 9, 15, 16, 17, 40],
    filled=[False, True],
)
def test_rows_are_those_of_numpy(n_rows, n_columns, dtype, filled):
    rng = np.random.default_rng(n_rows + n_columns)
    X = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    holes = rng.random(X.shape) < 0.01
    holes[:, rng.random(n_columns) < 0.5] = False
    X[holes] = np.nan
    fill = rng.normal(size=n_columns).astype(dtype) if filled else None
    expected = np.where(holes, fill, X) if filled else X
    columns = [np.ascontiguousarray(column) for column in X.T]
    for n_threads in (1, 2, 5):
        rows, missing = _core.interleave_columns(columns, fill, n_threads)
        assert rows.dtype == dtype
        assert rows.flags.c_contiguous
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(missing, holes.any(axis=0))
    for column, before in zip(columns, X.T, strict=True):
        np.testing.assert_array_equal(column, before)


def test_infinity_and_signed_zeros_are_kept():
    column = np.array([np.inf, -np.inf, -0.0, 0.0])
    rows, missing = _core.interleave_columns([column, column], np.ones(2), 1)
    np.testing.assert_array_equal(np.signbit(rows[:, 1]), [False, True, True, False])
    np.testing.assert_array_equal(rows[:, 0], column)
    assert not missing.any()
