"""Queries: ids of any kind in any order, sizes, weights per query."""

import numpy as np
from hypothesis import given, strategies as st

from axes import every
from parts.data import Queries


def test_queries_by_hand():
    queries = Queries.make(6, qid=["b", "b", "a", "b", "cc", "a"])
    assert queries.offsets.tolist() == [0, 3, 5, 6]
    assert queries.order.tolist() == [0, 1, 3, 2, 5, 4]
    assert queries.index().tolist() == [0, 0, 1, 0, 2, 1]
    assert queries.sizes.tolist() == [3, 2, 1]
    assert queries.rows(1).tolist() == [2, 5]


def test_rows_that_stand_together_are_not_moved():
    queries = Queries.make(5, qid=["b", "b", "a", "c", "c"])
    assert queries.order is None
    assert queries.offsets.tolist() == [0, 2, 3, 5]
    assert queries.ids.tolist() == ["b", "a", "c"]
    assert queries.rows(2) == slice(3, 5)


@given(st.lists(st.integers(0, 6), max_size=40))
def test_every_row_is_in_its_query(ids):
    queries = Queries.make(len(ids), qid=np.array(ids, dtype=int))
    rows = np.arange(len(ids))
    seen = [rows[queries.rows(q)].tolist() for q in range(queries.n_queries)]
    first_seen = list(dict.fromkeys(ids))
    assert seen == [[i for i, other in enumerate(ids) if other == q] for q in first_seen]
    values = np.array(ids)
    assert (queries.grouped(values)[queries.offsets[:-1]] == first_seen).all() or not ids


@every(
    order=["ascending", "permuted", "joined", "interleaved"],
    dtype=[np.int64, np.int32, np.uint64, np.float64, ">i8", object, str],
)
def test_ids_of_any_dtype_make_the_same_queries(dtype, order):
    rng = np.random.default_rng(0)
    numbers = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    if order == "interleaved":
        rng.shuffle(numbers)
    elif order != "ascending":
        numbers = (7 * numbers + 5) % 300
    if order == "joined":
        numbers[numbers == numbers[-1]] = numbers[0]
    queries = Queries.make(len(numbers), qid=numbers.astype(dtype))
    ids = list(dict.fromkeys(numbers.tolist()))
    rows = np.arange(len(numbers))
    assert [int(each) for each in queries.ids] == ids
    assert [rows[queries.rows(q)].tolist() for q in range(queries.n_queries)] == [
        np.flatnonzero(numbers == each).tolist() for each in ids
    ]
    assert (queries.order is None) == (order in ("ascending", "permuted"))


def test_sizes_and_none():
    queries = Queries.of_sizes(np.array([2, 0, 3]))
    assert (queries.n_queries, queries.ids, queries.name(1)) == (3, None, "#1")
    assert queries.offsets.tolist() == [0, 2, 2, 5]
    assert Queries.make(4).offsets.tolist() == [0, 4]


def test_weights_per_query():
    queries = Queries.make(5, qid=["x", "y", "x", "z", "y"])
    assert queries.per_query([1, 2, 1, 0, 2], "query_weight").tolist() == [1, 2, 0]
    assert queries.per_query(3, "query_weight").tolist() == [3, 3, 3]
