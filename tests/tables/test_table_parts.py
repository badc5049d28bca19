"""Queries that partitions and batches cut reach a task whole, once, and in their order."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from parts.tables import Part, Place, TableRows, fold, in_tree, join_by_id, runs_of


@dataclass(frozen=True)
class Record:
    """Returns the rows of every query: its id, and the numbers that stand in X, y and weights."""

    needs_queries: bool = True
    reads_features: bool = True

    def block(self, rows):
        ends = np.cumsum(rows.sizes)
        assert len(rows.X) == len(rows.y) == len(rows.weights) == ends[-1] > 0
        np.testing.assert_array_equal(rows.X[:, 0], rows.y)
        np.testing.assert_array_equal(rows.weights, rows.y)
        return [
            (int(name), rows.y[end - size : end].astype(int).tolist())
            for name, size, end in zip(rows.ids, rows.sizes, ends, strict=True)
        ]

    def join(self, first, second):
        return first + second


@st.composite
def cut_queries(draw):
    """(queries, partitions of batches of TableRows); partitions may have no rows."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    names = draw(st.permutations(range(len(sizes))))
    n = sum(sizes)
    ids = np.repeat(names, sizes)
    kind = draw(st.sampled_from(["anywhere", "every row", "one"]))
    if kind == "anywhere":
        borders = sorted(draw(st.lists(st.integers(0, n), max_size=6)))
    else:
        borders = list(range(1, n)) if kind == "every row" else []
    ends = draw(st.sets(st.integers(1, n)))
    partitions = []
    for number, (begin, end) in enumerate(zip([0, *borders], [*borders, n], strict=True)):
        cuts = [begin, *sorted(e for e in ends if begin < e < end), end]
        partitions.append(
            [
                table_rows(np.arange(a, b), ids[a:b], a - begin, number)
                for a, b in pairwise(cuts)
                if b > a
            ]
        )
    starts = np.cumsum([0, *sizes])
    queries = [
        (name, list(range(a, b))) for name, a, b in zip(names, starts[:-1], starts[1:], strict=True)
    ]
    return queries, partitions


def table_rows(numbers, ids, first=0, partition=0):
    values = numbers.astype(float)
    return TableRows(
        values[:, None], values, values.copy(), *runs_of(ids), Place("a file", partition, first)
    )


@given(cut_queries())
def test_whole_queries_reach_a_task_once_and_in_order(drawn):
    queries, partitions = drawn
    task = Record()
    parts = [fold(batches, task) for batches in partitions]
    whole = in_tree(iter(parts), len(parts), lambda a, b: a.join(b, task))
    assert whole.close(task) == queries
    assert whole.n_rows == tuple(sum(b.n_rows for b in batches) for batches in partitions)


@given(cut_queries(), st.randoms())
def test_queries_meet_by_their_ids_whatever_the_order_of_partitions(drawn, random):
    queries, partitions = drawn
    task = Record()
    parts = [fold(batches, task) for batches in partitions]
    random.shuffle(parts)
    found = join_by_id(parts, task).close(task) or []
    assert sorted((name, sorted(rows)) for name, rows in found) == sorted(queries)


@given(cut_queries())
def test_a_task_of_rows_gets_every_row_once(drawn):
    queries, partitions = drawn
    task = Record(needs_queries=False)
    parts = [fold(batches, task) for batches in partitions]
    whole = in_tree(iter(parts), len(parts), lambda a, b: a.join(b, task))
    rows = [row for _, of_query in whole.close(task) for row in of_query]
    assert rows == [row for _, of_query in queries for row in of_query]


def test_the_tree_depends_on_the_number_of_leaves_alone():
    asked = []

    def leaf(number):
        asked.append(number)
        return str(number)

    assert in_tree(map(leaf, range(5)), 5, "({}{})".format) == "(((01)2)(34))"
    assert asked == list(range(5))


def test_no_rows_have_no_result():
    task = Record()
    empty = fold([], task)
    assert empty.close(task) is None
    assert empty.join(empty, task).close(task) is None
    assert join_by_id([empty, empty], task).close(task) is None
    one = fold([table_rows(np.arange(3), np.array([7, 7, 8]))], task)
    for joined in (empty.join(one, task), one.join(empty, task)):
        assert joined.close(task) == [(7, [0, 1]), (8, [2])]


def test_a_query_beyond_the_limit_is_refused_by_name(set_limits):
    set_limits(query_bytes=8 * 5)
    task = Record()
    batches = [table_rows(np.arange(k, k + 2), np.array([7, 7]), k) for k in (0, 2)]
    fold(batches, task)
    batches.append(table_rows(np.arange(4, 6), np.array([7, 7]), 4))
    with pytest.raises(ValueError, match=r"a file, rows 4 to 5, .*: query 7 has more than"):
        fold(batches, task)
    fold(batches, replace(task, needs_queries=False))


def test_open_queries_keep_no_batch_alive():
    rows = table_rows(np.arange(100), np.repeat([1, 2, 3], [2, 96, 2]))
    part = Part.of_rows(rows, Record())
    assert [rows.X.base for rows in part.open] == [None, None]
