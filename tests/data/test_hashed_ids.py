"""Statistics remember query ids: what is cut in two over updates or shards is refused."""

import copy
import datetime
import hashlib
import pickle
import uuid

import numpy as np
import pandas as pd
import pytest

from pairgram import Pairgram, Pairs
from parts.data import Queries, QueryIds, hash_ids
from table_sources import scanned

X, Y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
AGAIN = "came in an earlier update: each call must hold whole queries"


def of(qid, **named):
    n = len(qid)
    return Pairgram.from_rows(X[:n], Y[:n], qid=qid, **named)


def hashes(ids):
    return hash_ids(ids if isinstance(ids, np.ndarray) else np.asarray(ids)).tolist()


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_an_id_that_comes_again_is_refused_and_named():
    stream = of(["a", "b", "a"])
    stream.update(X[:2], Y[:2], qid=["c", "c"])
    before = stream.G
    for ids, named in ((["d", "b"], "'b'"), (["a", "d"], "'a'"), (["c", "a"], "'c' and 1 more")):
        with pytest.raises(ValueError, match=f"^qid {named} {AGAIN}"):
            stream.update(X[:2], Y[:2], qid=ids)
    np.testing.assert_array_equal(stream.G, before)
    assert stream.n_queries == 3
    stream.update(X[:2], Y[:2], qid=["d", "d"])


def test_queries_have_ids_or_have_none():
    """What has no id could be subtracted, or added, any number of times."""
    total = of([1, 1, 2, 2, 3, 3])
    two = Pairgram.from_rows(X[2:4], Y[2:4])
    unchecked = of([1, 1, 2, 2, 3, 3], ids=None)
    assert (unchecked + total).ids is None and (unchecked - two).ids is None
    first = Pairgram.from_rows(X[:2], Y[:2])
    stream = Pairgram.from_rows(X[:2], Y[:2]).update(X[:2], Y[:2]).update(X[2:4], Y[2:4])
    assert (stream.n_queries, total.n_queries, (stream - first).n_queries) == (3, 3, 2)
    nothing = two - two
    assert (nothing + total).ids == (total + nothing).ids == (total - nothing).ids == "check"


def test_shards_that_share_a_query_do_not_merge():
    left, right = of([1, 1, 2, 3, 3]), of([3, 3, 4, 5])
    for a, b in ((left, right), (right, left)):
        with pytest.raises(ValueError, match=r"^cannot merge: 1 query id is in both, and"):
            a + b
    with pytest.raises(ValueError, match="is in both"):
        sum([of([1]), of([2]), of([1])])
    assert sum([of([1]), of([2]), of([3])]).n_queries == 3
    with pytest.raises(ValueError, match="qid 2 came in an earlier update"):
        (of([1]) + of([2])).update(X[:1], Y[:1], qid=[2])


def test_what_is_subtracted_may_be_added_again():
    total = of([1, 1, 2, 2, 3, 3])
    two = Pairgram.from_rows(X[2:4], Y[2:4], qid=[2, 2])
    rest = total - two
    with pytest.raises(ValueError, match="1 query id is in both"):
        rest + of([3])
    np.testing.assert_allclose((rest + two).G, total.G, rtol=1e-12)
    rest.update(X[2:4], Y[2:4], qid=[2, 2])


def test_ids_need_not_be_checked():
    stream = of([1, 2], ids=None).update(X[:2], Y[:2], qid=[1, 2])
    assert (stream.n_queries, stream.ids) == (4, None)
    assert "ids=None" in repr(stream) and "ids='check'" in repr(of([1]))
    (of([1], ids=None) + of([1], ids=None)).update(X[:1], Y[:1], qid=[1])
    together = {"pairs": Pairs(scope="global")}
    whole = of([1, 1, 2], **together).update(X[:2], Y[:2], qid=[2, 1])
    assert (whole + whole).n_rows == 10 and (whole - of([7], **together)).n_rows == 4


def test_the_check_of_too_many_ids_ends_with_a_warning(set_limits):
    set_limits(most_ids=5)
    stream = of([1, 2, 3])
    stream.update(X[:2], Y[:2], qid=[4, 5])
    assert stream.ids == "check"
    text = r"more than 5 queries, and query ids are no longer checked: .* with ids=None"
    with pytest.warns(UserWarning, match=text) as of_sum:
        total = stream + of([6])
    table = scanned((X[:1], Y[:1], np.array([6])))
    with pytest.warns(UserWarning, match=text):
        copy.copy(stream).update(table)
    with pytest.warns(UserWarning, match=text) as of_update:
        stream.update(X[:1], Y[:1], qid=[6])
    assert of_sum[0].filename == of_update[0].filename == __file__
    for full in (total, stream, Pairgram.from_bytes(total.to_bytes())):
        assert full.ids is None and "6 queries, ids=None" in repr(full)
        full.update(X[:1], Y[:1], qid=[1])  # the end is told once
        full.update(table)
        assert (of([1]) + full + of([1])).n_queries == 10
        assert (full - of([1])).n_queries == 7
    of([1, 2, 3, 4, 5, 6], ids=None)


def test_files_and_pickles_hold_ids(tmp_path):
    total = of(["b", "a", "c"]) + of([1.5, 2.5])
    total.save(tmp_path / "total")
    for same in (Pairgram.load(tmp_path / "total"), pickle.loads(pickle.dumps(total))):
        assert same.ids == "check"
        for wrong in ("a", 2.5):
            with pytest.raises(ValueError, match=AGAIN):
                same.update(X[:1], Y[:1], qid=[wrong])
        with pytest.raises(ValueError, match="1 query id is in both"):
            same + of([7.5, 2.5])
        same.update(X[:1], Y[:1], qid=["d"])
    of([1, 2], ids=None).save(tmp_path / "none")
    assert Pairgram.load(tmp_path / "none").ids is None


def test_equal_numbers_are_equal_ids_in_any_type():
    expected = hashes([1, 2, 3])
    for dtype in ("i1", "u2", "<i4", ">i8", "u8", "f4", ">f8"):
        assert hashes(np.array([1, 2, 3], dtype)) == expected
    assert hashes(objects(1, 2.0, np.int8(3))) == expected
    assert hashes(np.array([True]))[0] == hashes([1])[0] == hashes(objects(True))[0]
    assert hashes([-1])[0] == hashes([-1.0])[0] == hashes(np.array([-1], np.int8))[0]
    assert hashes(np.array([-0.0])) == hashes([0])
    large = 2**64 - 1
    assert hashes(np.array([large], np.uint64)) == hashes(objects(large)) != hashes([-1])
    assert hashes([0.1]) == hashes(objects(0.1)) != hashes(np.array([0.1], np.float32))
    stream = of(np.array([1, 2], np.int8))
    with pytest.raises(ValueError, match=r"qid 2\.0 came"):
        stream.update(X[:2], Y[:2], qid=[2.0, 3.0])


def test_text_times_and_tuples():
    words = ["a", "ab", "", "abc", "ü", "猫猫猫", "a" * 255]
    expected = hashes(words)
    assert len(set(expected)) == len(words)
    assert hashes(objects(*words)) == hashes(np.array(words, "U300")) == expected
    assert hashes(np.array(words, ">U300")) == hashes(pd.array(words, dtype="string")) == expected
    assert [hashes(objects(word, 1))[0] for word in words] == expected
    assert hashes(np.array([b"ab"])) == hashes(objects(b"ab")) != hashes(["ab"])
    assert hashes(["1"]) != hashes([1]) and hashes(objects("a\0")) != hashes(["a"])
    assert hashes(objects("\ud800"))  # half of a surrogate pair
    day = np.datetime64("2026-01-02")
    assert (
        hashes(np.array([day])) == hashes(np.array([day], "M8[s]")) == hashes(objects(day, 1)[:1])
    )
    assert hashes(objects(datetime.date(2026, 1, 2))) != hashes([20260102])
    assert hashes(objects(("a", 1))) == hashes(objects(("a", 1.0))) != hashes(objects((1, "a")))
    one = uuid.UUID(int=5)
    assert hashes(objects(one)) == hashes(objects(uuid.UUID(int=5)))
    for other in (object(), (1, object())):
        with pytest.raises(ValueError, match="qid must be numbers, text, bytes, times, UUID or t"):
            hashes(objects(other, 1))


def distinct(ids):
    found = hashes(ids)
    return len(set(found)) == len(found)


def test_equal_instants_are_equal_ids():
    zones = [datetime.timezone(datetime.timedelta(hours=h)) for h in (0, 1, -8)]
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=zones[0])
    assert len(set(hashes(objects(*(noon.astimezone(zone) for zone in zones))))) == 1
    assert hashes(objects(pd.Timestamp(noon).tz_convert("Asia/Tokyo"))) == hashes(objects(noon))
    naive = noon.replace(tzinfo=None)
    last = datetime.datetime.max.replace(tzinfo=zones[2])  # no time in UTC that Python has
    assert distinct(objects(noon, naive, noon.replace(tzinfo=zones[1]), last))
    stream = of(objects(noon, last))
    with pytest.raises(ValueError, match="came in an earlier update"):
        stream.update(X[:1], Y[:1], qid=objects(noon.astimezone(zones[1])))


def test_times_of_numpy_pandas_and_python_are_equal_ids():
    text = "2026-01-02T03:04:05.678901"
    expected = hashes(np.array([text], "M8[us]"))
    stamp = pd.Timestamp(text)
    for same in (stamp, datetime.datetime.fromisoformat(text), stamp.to_datetime64()):
        assert hashes(objects(same)) == hashes(objects(same, "a"))[:1] == expected
    assert hashes(pd.to_datetime(pd.Series([text])).to_numpy()) == expected
    assert hashes(objects(pd.Timestamp(f"{text}234"))) == hashes(np.array([f"{text}234"], "M8[ns]"))
    day = datetime.date(2026, 1, 2)
    assert hashes(objects(day)) == hashes(np.array([day], "M8[D]")) != expected
    three = hashes(np.array([3], "m8[s]"))
    seconds = datetime.timedelta(seconds=3)
    assert three == hashes(objects(seconds)) == hashes(objects(pd.Timedelta(seconds)))
    assert distinct(objects(np.timedelta64(3, "s"), np.datetime64(3, "s"), 3, 3 * 10**9))


def test_times_that_nanoseconds_do_not_hold():
    for kind in "mM":
        far = np.array([0, 10**11, 10**12, 9 * 10**12, -(10**12)], f"{kind}8[s]")
        assert distinct(far)
        assert hashes(far) == hashes(far.astype(f"{kind}8[us]")) == hashes(objects(*far))
        fine = np.array([1000, 1001, 1002, 2000], f"{kind}8[ps]")
        assert distinct(fine) and hashes(fine[:1]) == hashes(np.array([1], f"{kind}8[ns]"))
    assert hashes(np.array([3030], "M8[Y]")) == hashes(np.array(["5000-01-01"], "M8[h]"))
    assert hashes(objects(datetime.datetime(5000, 1, 1))) == hashes(np.array([3030], "M8[Y]"))


def test_large_floats_are_the_integers_that_they_equal():
    for number in (10**20, 2**63, -(2**80), 2**64, int(1e300)):
        expected = hashes(objects(number))
        assert hashes(objects(float(number))) == hashes(np.array([number], float)) == expected
    assert hashes(np.array([2**63], np.uint64)) == hashes([2.0**63])
    assert distinct(objects(10**20, 10**20 + 1, 1e21, np.inf, -np.inf))
    wide = np.array([2**63], np.longdouble) + 1  # which a float64 rounds, where it is wider
    assert hashes(wide) == hashes(objects(int(wide[0])))


def blake(told):
    digest = hashlib.blake2b(told, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def test_hashes_are_the_documented_ones():
    """Python's own seed is drawn for every process, and no hash depends on it."""
    assert hashes([1, -7]) == [10451216379200822465, 7790691224305936752]
    assert hashes([0.5, np.inf]) == [blake(b"n1/2"), blake(b"i")]
    assert hashes(["abc", ""]) == [blake(b"tabc"), blake(b"t")]
    assert hashes(np.array([b"ab"])) == [blake(b"bab")]
    assert hashes(objects(2**64)) == [blake(b"n%d/1" % 2**64)]
    utc = datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=datetime.UTC)
    for found, members in (
        (hashes(objects((4, "b"))), [hashes([4])[0], blake(b"tb")]),
        (hashes(np.array([5], "M8[us]")), [blake(b"tM"), hashes([5 * 10**12])[0]]),
        (hashes(np.array([5], "m8[us]")), [blake(b"tm"), hashes([5 * 10**12])[0]]),
        (hashes(objects(utc)), [blake(b"tz"), blake(b"tm"), hashes([5 * 10**18])[0]]),
    ):
        assert found == [blake(b"m" + np.array(members, np.uint64).tobytes())]


def test_ids_come_and_go_by_small_steps():
    rng = np.random.default_rng(0)
    mine, theirs, n_added = set(), QueryIds.of("check"), 0
    for _ in range(300):
        new = list(set(rng.integers(0, 10**6, rng.integers(1, 20)).tolist()) - mine)
        mine |= set(new)
        theirs = theirs.of_rows(Queries.make(len(new), qid=new), n_added)
        n_added += len(new)
        if rng.random() < 0.1:
            gone = rng.choice(sorted(mine), min(len(mine), 30), replace=False)
            mine -= set(gone.tolist())
            rest = QueryIds.of("check").of_rows(Queries.make(len(gone), qid=gone), 0)
            theirs = theirs.joined(rest, -1, len(mine) + len(gone), len(gone))
    assert theirs.hashes.tolist() == sorted(hashes(sorted(mine)))
