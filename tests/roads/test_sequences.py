"""Statistics go any sequence of additions, subtractions and files, and are those of what is left.

Each part of the rows may be added and subtracted any number of times. The end of every sequence is
beside the sum of the parts that are there, which are made anew of dense rows of float64. A
subtraction may be refused, but only where so little is left that rounding has taken its digits.
"""

import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from pairgram import Pairgram, Pairs, Preferences

N_PARTS, N_COLUMNS, LENGTH = 4, 3, 12
KINDS = ("queries", "rows", "one list", "comparisons", "both")
SETTINGS = {"rows": {"pairs": None}, "one list": {"pairs": Pairs(scope="global")}}
# Of the types of rows: how near the sums are, and which share of the largest ones may be refused.
NEAR = {np.float64: 1e-4, np.float32: 3e-2}
FEW = {np.float64: 1e-9, np.float32: 1e-3}


class Parts:
    """Some parts of rows, of which the columns and labels differ in size."""

    def __init__(self, kind, seed, offset, sizes):
        rng = np.random.default_rng(seed)
        self.kind, self.rows = kind, []
        shared = rng.normal(size=(LENGTH, N_COLUMNS))
        for part, (of_column, of_label) in enumerate(sizes):
            X = rng.normal(size=(LENGTH, N_COLUMNS))
            X[:, 0] *= of_column
            X[:, 1] += offset
            y = of_label * rng.integers(0, 3, LENGTH)
            qid = part * LENGTH + rng.integers(0, 3, LENGTH)
            if kind == "comparisons" or (kind == "both" and part % 2):
                winner = rng.integers(0, LENGTH // 2, 20)
                X, qid = shared, None
                y = Preferences(winner, winner + LENGTH // 2, margin=of_label * rng.random(20))
            elif kind not in ("queries", "both"):
                qid = None
            self.rows.append((X, y, qid))

    def statistics(self, part, make=np.asarray):
        X, y, qid = self.rows[part]
        return Pairgram.from_rows(make(X), y, qid=qid, **SETTINGS.get(self.kind, {}))


def make_of(dtype, container):
    return lambda X: (sp.csr_array if container == "csr" else np.asarray)(X.astype(dtype))


def as_file(total, way):
    if way == "bytes":
        return Pairgram.from_bytes(total.to_bytes())
    return pickle.loads(pickle.dumps(total)) if way == "pickle" else total


def diagonal(total):
    return np.append(np.diag(total.G), total.yy)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(
    container=st.sampled_from(["dense", "csr"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    data=st.data(),
)
def test_any_sequence_leaves_what_is_there(kind, container, dtype, data):
    sizes = st.tuples(st.sampled_from([1.0, 1e3, 1e6]), st.sampled_from([1.0, 1e3, 1e7]))
    drawn = data.draw(st.lists(sizes, min_size=N_PARTS, max_size=N_PARTS))
    offset = data.draw(st.sampled_from([0.0, 1e3]))
    parts = Parts(kind, data.draw(st.integers(0, 999)), offset, drawn)
    make = make_of(dtype, container)
    there, total, largest = [], None, np.zeros(N_COLUMNS + 1)
    for _ in range(data.draw(st.integers(2, 9))):
        part = data.draw(st.integers(0, N_PARTS - 1))
        statistics = parts.statistics(part, make)
        if part not in there:
            there.append(part)
            total = statistics if total is None else total + statistics
        elif len(there) > 1:
            rest = [one for one in there if one != part]
            left = reduce(add, map(parts.statistics, rest))
            try:
                total = total - statistics
            except ValueError as error:
                assert "has only" in str(error), error
                assert (diagonal(left) < FEW[dtype] * largest).any(), error
                return
            there = rest
        total = as_file(total, data.draw(st.sampled_from(["", "bytes", "pickle"])))
        largest = np.maximum(largest, diagonal(total))
    expected = reduce(add, map(parts.statistics, there))
    assert (total.n_rows, total.n_queries) == (expected.n_rows, max(0, expected.n_queries))
    size = np.sqrt(diagonal(expected))
    near = NEAR[dtype] * (1 + offset * np.finfo(dtype).eps / np.finfo(np.float32).eps / 1e3)
    assert (np.abs(total.G - expected.G) <= near * np.outer(size[:-1], size[:-1])).all()
    assert (np.abs(total.g - expected.g) <= near * size[:-1] * size[-1]).all()
    assert abs(total.yy - expected.yy) <= near * expected.yy
