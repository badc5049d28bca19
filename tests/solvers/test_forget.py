"""Queries of many days leave statistics as if they had never been seen."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from axes import every
from pairgram import Clicks, Cross, Fill, Pairgram, RandomNodes, RankRLS, make_ranking, scan

X, y, QUERY = make_ranking(30, (3, 9), 4, random_state=0)
DAY, USER = QUERY // 10, QUERY % 7
GONE = USER == 3
NAMES = list("abcd")


def total_of(rows, road="arrays", **settings):
    total = Pairgram(**settings)
    for day in range(3):
        own = rows & (day == DAY)
        total = 0.9 * total
        total.update(*given(own, road), **({} if road == "table" else {"qid": QUERY[own]}))
    return total


def forget(total, *rows, factor=1.0, **named):
    """Return statistics without rows, as the page of daily statistics says."""
    told = {"pairs": total.settings, "feature_map": total.feature_map, "ids": total.ids}
    return total - factor * Pairgram.from_rows(*rows, **named, **told)


def given(rows, road):
    if road == "arrays":
        return X[rows], y[rows]
    if road == "frame":
        return pd.DataFrame(X[rows], columns=NAMES), y[rows]
    return (scan(frame_of(rows), label="y", qid="q"),)


def frame_of(rows, values=X):
    columns = dict(zip(NAMES, values[rows].T, strict=True))
    return pa.table(columns | {"y": y[rows], "q": QUERY[rows]})


@every(
    settings=[{}, {"pairs": None}, {"feature_map": Cross([0, 1], [2, 3])}],
    road=["arrays", "frame", "table"],
)
def test_what_is_left_is_what_was_never_added(road, settings):
    total = total_of(np.full(len(y), True), road, **settings)
    for day in range(3):
        gone = GONE & (day == DAY)
        named = {} if road == "table" else {"qid": QUERY[gone]}
        total = forget(total, *given(gone, road), **named, factor=0.9 ** (2 - day))
    expected = total_of(~GONE, road, **settings)
    np.testing.assert_allclose(total.G, expected.G, atol=1e-9)
    np.testing.assert_allclose(total.g, expected.g, atol=1e-9)
    assert (total.n_rows, total.n_queries) == (expected.n_rows, expected.n_queries)
    again = {} if road == "table" else {"qid": QUERY[GONE]}
    with pytest.raises(ValueError, match=r"cannot subtract: 4 query ids are not in these statis"):
        forget(total, *given(GONE, road), **again)
    total.update(*given(GONE, road), **again)


def test_weights(tmp_path):
    weight, each = 1.0 + QUERY % 3, 1.0 + QUERY % 2

    def decayed(rows):
        total = Pairgram()
        for day in range(3):
            own = rows & (day == DAY)
            told = {"sample_weight": weight[own], "query_weight": each[own]}
            total = (0.5 * total).update(X[own], y[own], qid=QUERY[own], **told)
        return total

    total, expected = decayed(np.full(len(y), True)), decayed(~GONE)
    total.save(tmp_path / "total")
    loaded = Pairgram.load(tmp_path / "total")
    mixed = np.random.default_rng(0).permutation(np.flatnonzero(GONE))
    for day in range(3):
        own = mixed[DAY[mixed] == day]
        told = {"sample_weight": weight[own], "query_weight": each[own], "factor": 0.5 ** (2 - day)}
        loaded = forget(loaded, X[own], y[own], qid=QUERY[own], **told)
    np.testing.assert_allclose(loaded.G, expected.G, atol=1e-9)
    np.testing.assert_allclose(loaded.g, expected.g, atol=1e-9)
    np.testing.assert_array_equal(loaded.n_varying, expected.n_varying)


def test_missing_values_of_a_table():
    gaps = X.copy()
    gaps[::5, 1] = np.nan

    def table(rows):
        return scan(frame_of(rows, gaps), label="y", qid="q")

    filled = {"feature_map": Fill(np.zeros(X.shape[1]))}
    total, expected = (
        (0.5 * Pairgram.from_rows(table(rows & (DAY == 0)), **filled)).update(
            table(rows & (DAY == 1))
        )
        for rows in (np.full(len(y), True), ~GONE)
    )
    for day in range(2):
        total = forget(total, table(GONE & (day == DAY)), factor=0.5 ** (1 - day))
    np.testing.assert_allclose(total.G, expected.G, atol=1e-9)


def test_errors_leave_statistics_as_they_were():
    total = total_of(np.full(len(y), True))
    before = total.G.copy()
    gone = y[GONE]
    clicks = Clicks(gone > 1, np.ones(len(gone)))
    for message, labels, named in (
        ("cannot subtract: .*not in these statistics", gone, {"qid": QUERY[GONE] + 100}),
        ("some queries have ids and others have none", gone, {}),
        (
            "squares that are left add up to less than 0",
            gone,
            {"qid": QUERY[GONE], "factor": 1e3},
        ),
        ("pairs must be 'clicks' for statistics of clicks", clicks, {"qid": QUERY[GONE]}),
    ):
        with pytest.raises(ValueError, match=message):
            forget(total, X[GONE], labels, **named)
    with pytest.raises(ValueError, match="cannot subtract statistics of columns"):
        forget(total, *given(GONE, "frame"), qid=QUERY[GONE])
    np.testing.assert_array_equal(total.G, before)
    unchecked = forget(Pairgram(ids=None).update(X, y, qid=QUERY), X, y, qid=QUERY)
    assert unchecked.n_rows == 0 and not unchecked.G.any()


def of_queries(queries, X, y=y):
    rows = np.isin(QUERY, queries)
    return Pairgram.from_rows(X[rows], y[rows], qid=QUERY[rows])


def test_labels_that_are_lost_in_rounding_are_refused():
    first, others = np.arange(1), np.arange(1, 30)
    for size, is_lost in ((1e3, False), (1e8, True)):
        wrong = np.where(QUERY == 0, size * y, y)
        total, part = of_queries(np.arange(30), X, wrong), of_queries(first, X, wrong)
        if is_lost:
            with pytest.raises(ValueError, match="cannot subtract: the label has only"):
                total - part
        else:
            np.testing.assert_allclose((total - part).g, of_queries(others, X).g, rtol=1e-9)
    equal = np.where(QUERY == 0, 1e8 * y, 2.0)  # the labels left are equal in every query
    left = of_queries(np.arange(30), X, equal) - of_queries(first, X, equal)
    assert not left.g.any() and left.yy == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_was_never_added_leaves_a_negative_direction(dtype):
    """Few queries are left, so that most directions have nothing left in them."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(len(y), 40)).astype(dtype)
    total, few = of_queries(np.arange(30), wide), np.arange(3, 30)
    left = total - of_queries(few, wide)
    np.testing.assert_allclose(left.G, of_queries(np.arange(3), wide).G, rtol=1e-4, atol=1e-3)
    other = wide + 0.1 * rng.normal(size=wide.shape).astype(dtype)
    noisy = y + 0.1 * rng.normal(size=len(y))
    for part in (of_queries(few, other), of_queries(few, wide, noisy), 1.1 * of_queries(few, wide)):
        with pytest.raises(ValueError, match="squares that are left add up to less than 0: what"):
            total - part


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("is_saved", [False, True])
def test_digits_that_are_lost_do_not_come_back(dtype, is_saved):
    size = 1e4 if dtype == np.float64 else 30.0
    columns = X.copy()
    columns[QUERY < 10, 0] *= size**2
    columns[(QUERY >= 10) & (QUERY < 20), 0] *= size
    columns = columns.astype(dtype)
    first, second, third = np.arange(10), np.arange(10, 20), np.arange(20, 30)
    total = of_queries(np.arange(30), columns)
    with pytest.raises(ValueError, match="cannot subtract: feature 0 varies in 10 of the queries"):
        total - of_queries(np.arange(20), columns)
    left = total - of_queries(first, columns)
    if is_saved:
        left = Pairgram.from_bytes(left.to_bytes())
    with pytest.raises(ValueError, match="cannot subtract: feature 0 varies in 10 of the queries"):
        left - of_queries(second, columns)
    small = of_queries(third, columns) + of_queries(second, columns) - of_queries(second, columns)
    np.testing.assert_allclose(small.G, of_queries(third, columns).G, rtol=1e-3, atol=1e-3)
    empty = total - of_queries(np.arange(30), columns)
    assert empty.n_rows == 0 and not empty.G.any() and not empty.g.any() and empty.yy == 0.0


def test_what_is_handed_out_is_a_copy():
    total = of_queries(np.arange(30), X)
    total.n_varying[:] = 0
    assert (total.n_varying > 0).all()
    assert sum([total]) is not total
    mapped = Pairgram.from_rows(X, y, qid=QUERY, feature_map=RandomNodes(5, random_state=0))
    model = RankRLS.from_pairgram(mapped)
    model.feature_map.set_params(random_state=1).fit(X)
    expected = RankRLS.from_pairgram(mapped).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_other_threads_are_no_rows_lost(monkeypatch):
    X, y, qid = make_ranking(12, 5, 3, random_state=0)
    total, half = Pairgram(), qid < 6
    found = Pairgram._ids_with

    def meanwhile(self, data):
        monkeypatch.undo()
        total.update(X[~half], y[~half], qid=qid[~half])
        return found(self, data)

    monkeypatch.setattr(Pairgram, "_ids_with", meanwhile)
    with pytest.raises(RuntimeError, match="changed by another thread"):
        total.update(X[half], y[half], qid=qid[half])
    assert total.n_queries == 6
    total.update(X[half], y[half], qid=qid[half])
    assert total.n_queries == 12


def test_the_map_is_that_of_the_start():
    X, y, qid = make_ranking(12, 5, 3, random_state=0)
    nodes = RandomNodes(4, random_state=0).fit(X)
    expected = Pairgram.from_rows(nodes.transform(X), y, qid=qid).G
    total, half = Pairgram(feature_map=nodes), qid < 6
    nodes.set_params(random_state=1).fit(X)
    total.update(X[half], y[half], qid=qid[half])
    total.feature_map.set_params(random_state=2).fit(X)
    total.update(X[~half], y[~half], qid=qid[~half])
    np.testing.assert_allclose(total.G, expected, rtol=1e-10, atol=1e-10 * expected.max())
