"""Which columns of today's rows have changed, and what statistics remember for it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st

import pairgram as pg
from pairgram import Pairgram, _core, drift
from pairgram._core import seen_columns
from parts.files import read_file, write_file

NAMES = ("N", "S", "squares", "NN", "NS", "SS", "NA", "AA", "A")


def slow(X, pivot, weights, qid):
    """Return the sums, the range and the numbers of queries, value by value."""
    d = X.shape[1]
    sums = {name: np.zeros(d) for name in NAMES}
    low, high, queries = np.full(d, np.inf), np.full(d, -np.inf), np.zeros((4, d), int)
    for j in range(d):
        for query in dict.fromkeys(qid):
            rows = [i for i in range(len(X)) if qid[i] == query and weights[i] > 0]
            known = [i for i in rows if not np.isnan(X[i, j])]
            if not rows:
                continue
            A, N = (sum(weights[i] for i in part) for part in (rows, known))
            values = [float(X[i, j]) for i in known]
            S = sum(weights[i] * (float(X[i, j]) - pivot[j]) for i in known)
            square = sum(weights[i] * (float(X[i, j]) - pivot[j]) ** 2 for i in known)
            own = (N, S, square, N * N, N * S, S * S, N * A, A * A, A)
            for name, value in zip(NAMES, own, strict=True):
                sums[name][j] += value
            queries[:, j] += [1, bool(known), len(known) < len(rows), len(set(values)) > 1]
            low[j], high[j] = min([low[j], *values]), max([high[j], *values])
    return np.array([sums[name] for name in NAMES]), np.array([low, high]), queries


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    d=st.sampled_from([1, 3, 9]),
    dtype=st.sampled_from([np.float64, np.float32]),
    weighted=st.booleans(),
    together=st.booleans(),
)
def test_seen_columns_are_those_of_a_loop(seed, d, dtype, weighted, together):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 70))
    X = rng.integers(-2, 3, (n, d)).astype(dtype)
    X[rng.random((n, d)) < 0.2] = np.nan
    qid = rng.integers(0, 1 + n // 3, n)
    if together:
        qid = np.sort(qid)
    weights = rng.integers(0, 3, n) * 0.5 if weighted else None
    numbers = np.unique(qid, return_inverse=True)[1]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(numbers))))
    order = None if together else np.argsort(numbers, kind="stable")
    pivot = rng.standard_normal(d)
    found = [seen_columns(X, pivot, offsets, order, weights, threads) for threads in (1, 2)]
    wanted = slow(X, pivot, np.ones(n) if weights is None else weights, qid)
    for one, other, expected in zip(*found, wanted, strict=True):
        assert np.array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12)


def test_many_rows_have_the_same_sums_for_any_number_of_threads():
    X, _, qid = pg.make_ranking(2000, (2, 40), 5, random_state=0)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(qid))))
    one, two = (seen_columns(X, X[0], offsets, None, None, threads) for threads in (1, 2))
    assert all(map(np.array_equal, one, two))
    assert one[0][0, 0] == len(X) and one[2][0, 0] == 2000
    np.testing.assert_allclose(one[0][1], (X - X[0]).sum(axis=0), rtol=1e-9)
    for wrong in (X[0, 1:], X[:2]):
        with pytest.raises(ValueError, match=r"pivot must be \(n_columns,\)"):
            seen_columns(X, wrong, offsets, None, None, 1)
    with pytest.raises(ValueError, match=r"weights must be \(n_rows,\)"):
        seen_columns(X, X[0], offsets, None, X[0], 1)


def column(kind, rng, effect):
    """Return a column that is plain, skewed, binary, rare by query or by row, or missing."""
    noise = rng.standard_normal(len(effect))
    if kind == 0:
        return effect + noise
    if kind == 1:
        return np.exp(1.5 * effect + noise)
    if kind == 2:
        return (noise > 0.5).astype(float)
    if kind == 3:
        return (effect > 2).astype(float)
    if kind == 4:
        return (noise > 3.1).astype(float)
    return np.where(effect + noise > 2, np.nan, rng.standard_t(2, len(effect)))


def of_rows(rng, n_queries, n_columns=6):
    """Return rows of columns of all kinds, most of which have an effect of queries."""
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 41, n_queries))
    effects = rng.standard_normal((n_columns, n_queries))
    return np.column_stack(
        [column(j % 6, rng, effect[qid]) for j, effect in enumerate(effects)]
    ), qid


@pytest.mark.parametrize("sizes", [(400, 60), (100, 100), (60, 12), (30, 200)])
@pytest.mark.parametrize("n_columns", [3, 24])
def test_unchanged_data_raise_an_alarm_in_5_percent_at_most(sizes, n_columns):
    alarms = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X, qid = of_rows(rng, sum(sizes), n_columns)
        before = (rng.permutation(sum(sizes)) < sizes[0])[qid]
        queries = {"qid": qid[~before], "reference_qid": qid[before]}
        alarms += bool(drift(X[before], X[~before], **queries, n_threads=1).changed)
    # 5 % of 120 are 6; with them, more than 14 would come once in a thousand times.
    assert alarms <= 14


@pytest.fixture
def sides():
    """Rows of 300 queries before and of 60 today."""
    X, qid = of_rows(np.random.default_rng(1), 360)
    return X[qid < 300], qid[qid < 300], X[qid >= 300].copy(), qid[qid >= 300]


def changes(sides, change):
    X, q, today, qid = sides
    change(today)
    found = drift(X, today, qid=qid, reference_qid=q)
    return found.changed, pd.DataFrame(found.table)


def test_what_changed_is_named(sides):
    assert changes(sides, lambda today: None)[0] == []

    def shifted(today):
        today[:, 0] += 2

    names, table = changes(sides, shifted)
    X, _, today, _ = sides
    assert names == [0]
    assert table["shift"][0] == pytest.approx((today[:, 0].mean() - X[:, 0].mean()) / X[:, 0].std())
    high = X[:, 0].max()
    assert table["outside"][0] == pytest.approx((today[:, 0] > high).mean())


def test_what_never_had_a_value_has_no_range():
    before = np.c_[np.full(50, np.nan), np.arange(50.0)]
    table = drift(before, np.c_[np.arange(50.0), np.arange(50.0)]).table
    np.testing.assert_array_equal(table["outside"], [np.nan, 0.0])


def test_missing_values_and_constants_are_named(sides):
    def change(today):
        today[::9, 1] = np.nan
        today[:, 2] = 1.0
        today[::2, 5] = np.nan

    names, table = changes(sides, change)
    assert names == [1, 2, 5]
    assert table["new_missing"].tolist() == [False, True, False, False, False, False]
    assert table["new_constant"][2] and table["p_constant"][2] < 1e-6
    assert table["missing"][1] == pytest.approx(np.isnan(sides[2][:, 1]).mean())
    assert table["missing_before"][5] == pytest.approx(np.isnan(sides[0][:, 5]).mean())


def test_values_out_of_range_are_named_though_the_mean_stays(sides):
    def change(today):
        today[::15, 3] = -1e-3

    names, table = changes(sides, change)
    assert names == [3] and table["p_shift"][3] > 0.5 and table["p_outside"][3] < 1e-6


def test_rows_without_queries_count_one_by_one():
    rng = np.random.default_rng(0)
    X, today = rng.standard_normal((2000, 3)), rng.standard_normal((300, 3))
    assert drift(X, today).changed == []
    today[:, 1] = 0.0  # the mean that it had
    today[:, 2] += 0.5
    found = drift(X, today)
    assert found.changed == [1, 2] and found.n_queries == (2000, 300)
    assert str(found).startswith("2 of 3 columns changed: 300 queries beside 2000, level 0.05")


def day(seed, n=40, offset=0.0):
    X, y, qid = pg.make_ranking(n, (2, 9), 3, random_state=seed)
    return X + offset, y, qid + 1000 * seed


def same(one, other):
    for (name, a), b in zip(one.table.items(), other.table.values(), strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=name)
        else:
            assert (a == b).all(), name


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_statistics_rows_and_tables_say_the_same(offset, tmp_path):
    X, y, q = (
        np.concatenate(part) for part in zip(*(day(s, offset=offset) for s in (1, 2)), strict=True)
    )
    today, _, qid = day(3, offset=offset)
    today[:, 1] += 0.5
    today[::5, 2] = np.nan
    expected = drift(X, today, qid=qid, reference_qid=q)
    assert 1 in expected.changed and 2 in expected.changed
    total = Pairgram()
    for seed in (1, 2):
        rows, labels, ids = day(seed, offset=offset)
        total.update(rows, labels, qid=ids)
    total.save(tmp_path / "total")
    for reference in (total, Pairgram.load(tmp_path / "total"), Pairgram.from_rows(X, y, qid=q)):
        same(drift(reference, today, qid=qid), expected)
    again = pd.DataFrame(today, columns=list("abc")).assign(q=qid)
    table = pg.scan(again, qid="q", features=list("abc"))
    same(
        drift(total, table),
        drift(pd.DataFrame(X, columns=list("abc")), again[list("abc")], qid=qid, reference_qid=q),
    )


def test_sparse_rows_are_seen_as_dense_ones_are():
    rng = np.random.default_rng(0)
    X, y, qid = pg.make_ranking(60, (1, 9), 6, random_state=0)
    X[rng.random(X.shape) < 0.7] = 0
    weights = rng.integers(0, 3, len(y)).astype(float)
    today = X[:50] + 0.1
    for given_weights in (None, weights):
        for pairs in ("with_ties", None):
            arguments = {"qid": qid, "sample_weight": given_weights, "pairs": pairs}
            dense = Pairgram.from_rows(X, y, **arguments)
            sparse = Pairgram.from_rows(scipy.sparse.csr_array(X), y, **arguments)
            same(drift(dense, today), drift(sparse, today))
            same(drift(dense, today), drift(sparse, scipy.sparse.csr_array(today)))


def test_times_among_sparse_rows_keep_their_digits():
    X, y, qid = pg.make_ranking(60, (1, 9), 4, random_state=0)
    X[:, 0] += 1.7e9
    today = X[:90] + np.array([0.5, 0, 0, 0])
    sides = [
        drift(Pairgram.from_rows(kind(X), y, qid=qid), kind(today))
        for kind in (np.asarray, scipy.sparse.csr_array)
    ]
    same(*sides)
    assert sides[0].table["shift"][0] > 0.1


def test_sums_fade_and_forget_but_the_range_stays():
    parts = [Pairgram.from_rows(X, y, qid=q) for X, y, q in map(day, range(3))]
    X, y, q = day(4)
    X[:, 0] += 50
    far = Pairgram.from_rows(X, y, qid=q)
    today, _, qid = day(5)
    total = parts[0] + 0.5 * parts[1] + parts[2]
    left, plain = (drift(one, today, qid=qid).table for one in (total + far - far, total))
    for name in ("shift", "missing", "missing_before"):
        np.testing.assert_allclose(left[name], plain[name], atol=1e-9)
    X[:, 1] = today[0, 1]
    inside = drift(total + far - far, X, qid=q).table["outside"]
    outside = drift(total, X, qid=q).table["outside"]
    assert inside[0] == 0 and outside[0] == 1
    weighted = np.concatenate([np.full(len(day(s)[1]), w) for s, w in ((0, 1), (1, 0.5), (2, 1))])
    rows = np.concatenate([day(s)[0] for s in range(3)])
    mean = np.average(rows, axis=0, weights=weighted)
    std = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weighted))
    np.testing.assert_allclose(plain["shift"], (today.mean(axis=0) - mean) / std, rtol=1e-9)
    again = (0 * far).update(*day(6)[:2], qid=day(6)[2])
    assert drift(again, X, qid=q).table["outside"][0] == 1


def test_missing_values_that_were_filled_are_known(tmp_path):
    X, y, q = day(1)
    X[::3, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, q=q)
    table = pg.scan(frame, label="y", qid="q", missing="zero")
    found = drift(Pairgram.from_rows(table), frame[list("abc")], qid=q)
    assert found.changed == []
    assert found.table["missing_before"][1] == pytest.approx(np.isnan(X[:, 1]).mean())
    assert found.table["shift"][1] == pytest.approx(0, abs=1e-12)
    filled = Pairgram.from_rows(frame[list("abc")].fillna(0), y, qid=q)
    np.testing.assert_allclose(Pairgram.from_rows(table).G, filled.G, rtol=1e-12, atol=1e-12)


def test_what_is_wrong_is_named():
    X, y, q = day(1)
    total = Pairgram.from_rows(X, y, qid=q)
    model = pg.RankRLS().fit(X, y, qid=q)
    with pytest.raises(
        TypeError, match="reference must be statistics, rows or a table, got RankRLS: give"
    ):
        drift(model, X)
    with pytest.raises(ValueError, match="today must have the 3 columns of the reference, got 2"):
        drift(total, X[:, :2])
    with pytest.raises(ValueError, match="qid must be None if today is statistics"):
        drift(total, total, qid=q)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 1"):
        drift(total, X, level=1)
    with pytest.raises(ValueError, match="holds no rows yet"):
        drift(Pairgram(), X)
    names = [pd.DataFrame(X, columns=list(one)) for one in ("abc", "abd")]
    with pytest.raises(
        ValueError, match=r"today must have the columns of the reference, .'a', 'b', 'c'"
    ):
        drift(*names)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="today contains infinity: row 7, column 2"):
        drift(total, X, qid=q)
    old = Pairgram._of(total._total, None)  # as from a file of an earlier version
    with pytest.raises(ValueError, match="from a file of an earlier version"):
        drift(old, X[:7])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("seen_range", lambda a: a[::-1] - np.array([[0.0], [1.0]]), "seen_range must ascend"),
        ("seen_sums", lambda a: a[:8], "seen_sums must have 9 rows"),
        ("seen_sums", lambda a: -a, "seen_sums must be >= 0"),
        ("seen_queries", lambda a: -a, "seen_queries must be >= 0"),
        ("seen_pivot", None, "arrays of seen columns must be four"),
    ],
)
def test_files_of_other_sums_are_refused(name, change, message, tmp_path):
    X, y, q = day(1)
    Pairgram.from_rows(X, y, qid=q).save(tmp_path / "total")
    _, arrays, settings = read_file(tmp_path / "total", ("Pairgram",))
    if change is None:
        del arrays[name]
    else:
        arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises(ValueError, match=message):
        write_file(tmp_path / "other", "Pairgram", arrays, settings)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("n_columns", "sizes", "block_rows"),
    [(5, [7, 0, 3, 200, 1, 40], 16), (60, [30] * 20, 0), (900, [90, 300, 10], 64)],
)
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_columns_are_seen_while_a_gram_matrix_is_made(
    dtype, n_columns, sizes, block_rows, sorted_rows
):
    """Queries that fit in a block, longer ones, and columns so many that there are tiles."""
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    X = rng.normal(3.0, 1.0, (n, n_columns)).astype(dtype)
    order = None if sorted_rows else rng.permutation(n)
    y, weights = rng.integers(0, 3, n).astype(float), rng.choice([0.0, 1.0, 2.5], n)
    pivot = X[0].astype(np.float64)
    problem = _core.RankingProblem(
        y, offsets, order=order, row_weights=weights, pairs="dropped", weighting="pairs"
    )
    expected = _core.seen_columns(X, pivot, offsets, order, weights, 1)
    for n_threads in (1, 3):
        found = (
            np.full((9, n_columns), np.nan),
            np.empty((2, n_columns)),
            np.empty_like(expected[2]),
        )
        told = {"block_rows": block_rows, "n_threads": n_threads}
        _core.gram(problem, X, y[:, None], seen=(pivot, weights, *found), **told)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-9)
    with pytest.raises(ValueError, match="seen: the pivot must be 1-d"):
        _core.gram(problem, X, y[:, None], seen=(pivot[1:], weights, *found))
    with pytest.raises(ValueError, match="seen: weights must be 1-d"):
        _core.gram(problem, X, y[:, None], seen=(pivot, weights[1:], *found))
    with pytest.raises(ValueError, match="seen: sums, range and queries must be"):
        _core.gram(problem, X, y[:, None], seen=(pivot, weights, found[0][1:], *found[1:]))


@pytest.mark.parametrize("exponent", [-500, -300, 300, 500])
def test_p_values_do_not_depend_on_the_unit_of_columns(exponent):
    rng = np.random.default_rng(0)
    before, now = rng.normal(size=(30, 3)), rng.normal([1, 0, 0], size=(25, 3))
    expected, unit = drift(before, now).table, 2.0**exponent
    found = drift(before * unit, now * unit).table
    for name in ("shift", "p_shift", "p_outside"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10)
    tiny = drift(before * 2.0**-600, now * 2.0**-600).table  # whose squares are 0
    assert np.isnan(tiny["p_shift"]).all() and not tiny["changed"].any()


def test_what_was_forgotten_raises_no_alarm():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        qid, y = np.repeat(np.arange(8), 5), rng.integers(0, 3, 40)
        first, second = rng.normal(size=(2, 40, 2))
        second[:, 0] = 0.7
        total = Pairgram().update(first, y, qid=qid).update(second, y, qid=qid + 100)
        assert not drift(total.forget(first, y, qid=qid), second, qid=qid + 100).changed
