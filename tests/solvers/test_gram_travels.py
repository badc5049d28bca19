"""Statistics as bytes that travel, and statistics of tables."""

import numpy as np
import pytest

from fuzz import forge
from pairgram import Fill, Nystroem, Pairgram, Pairs, RandomNodes, make_ranking
from table_sources import scanned


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, (3, 9), 5, random_state=0)


def part_of(data, first, last):
    """The rows of the queries from first to last, as arguments of from_rows."""
    X, y, qid = data
    rows = (first <= qid) & (qid < last)
    return X[rows], y[rows], qid[rows]


def statistics(X, y, qid, **settings):
    return Pairgram.from_rows(X, y, qid=qid, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pairs": Pairs(scope="global", weighting="documents")},
        {"pairs": Pairs("gain_difference", target="gain"), "ids": None},
        {"feature_map": RandomNodes(4, random_state=0)},
    ],
)
def test_bytes_are_those_of_the_file(data, tmp_path, settings):
    total = statistics(*data, **settings)
    total.save(tmp_path / "total")
    sent = total.to_bytes()
    for same in (sent, bytearray(sent), memoryview(sent), (tmp_path / "total").read_bytes()):
        got = Pairgram.from_bytes(same)
        np.testing.assert_array_equal(got.G, total.G)
        assert (got.settings, got.n_queries, got.ids) == (
            *(total.settings, total.n_queries, total.ids),
        )


def test_shards_merge_and_are_subtracted_after_a_journey(data):
    shards = [statistics(*part_of(data, *ends)).to_bytes() for ends in ((0, 11), (11, 30))]
    total = sum(map(Pairgram.from_bytes, shards))
    whole = statistics(*data)
    np.testing.assert_allclose(total.G, whole.G, rtol=1e-12, atol=1e-12)
    rest = total - Pairgram.from_bytes(shards[0])
    want = statistics(*part_of(data, 11, 30))
    np.testing.assert_allclose(rest.G, want.G, rtol=1e-10, atol=1e-10)
    rest += Pairgram.from_bytes(shards[0])  # arrays of the bytes can be worked on
    assert rest.n_queries == 30


def test_every_damaged_byte_is_found(data):
    whole = statistics(*part_of(data, 0, 2)).to_bytes()
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        try:
            same = Pairgram.from_bytes(damaged)
        except ValueError as error:
            assert str(error).startswith("the bytes: ")
        else:  # white space of the header
            np.testing.assert_array_equal(same.G, Pairgram.from_bytes(whole).G)
    for length in range(0, len(whole), 37):
        message = "damaged or cut off" if length >= 10 else "not a file that pairgram wrote"
        with pytest.raises(ValueError, match=f"^the bytes: {message}"):
            Pairgram.from_bytes(whole[:length])


def test_forged_bytes_are_refused(data):
    total = statistics(*data)
    for change, message in (
        (lambda c: c.settings["pairs"].update(kind="all"), "pairs.kind must be one of 'with_ties'"),
        (lambda c: c.settings["state"].update(n_rows=-1), "state.n_rows must be an integer"),
        (lambda c: c.tensors.pop("sums"), "sums is missing"),
        (lambda c: setattr(c, "kind", "RankRLS"), "holds a model, 'RankRLS', want Pairgram"),
        (lambda c: setattr(c, "text", "[" * 100_000), "nested too deeply|Expecting value"),
        (lambda c: c.metadata.update(format="x"), "its format is 'x' and not 'pairgram-2'"),
    ):
        contents = forge.parse(total.to_bytes())
        change(contents)
        with pytest.raises(ValueError, match=f"^the bytes: .*({message})"):
            Pairgram.from_bytes(forge.pack(contents))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pairs": Pairs("without_ties", weighting="queries")},
        {"pairs": None},
        {"pairs": Pairs(scope="global")},
        {"feature_map": RandomNodes(4, random_state=0)},
        {"feature_map": Nystroem(n_components=4, random_state=0)},
    ],
)
def test_of_a_table(data, settings):
    X, y, qid = data
    cut = int(np.searchsorted(qid, 13)) + 1  # in the middle of a query
    parts = [(X[:cut], y[:cut], qid[:cut]), (X[cut:], y[cut:], qid[cut:])]
    total, want = Pairgram.from_rows(scanned(*parts), **settings), statistics(*data, **settings)
    if not isinstance(settings.get("feature_map"), Nystroem):  # whose draws are the table's own
        np.testing.assert_allclose(total.G, want.G, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(total.n_varying, want.n_varying)
        assert (total - want).n_queries == 0
    assert (total.n_rows, total.n_queries, total.ids) == (want.n_rows, want.n_queries, "check")


def test_a_stream_of_tables_checks_ids(data):
    days = [scanned(part_of(data, *ends)) for ends in ((0, 10), (10, 30))]
    total = Pairgram().update(days[0]).update(days[1])
    np.testing.assert_allclose(total.G, statistics(*data).G, rtol=1e-12, atol=1e-12)
    before = total.G
    with pytest.raises(ValueError, match="cannot merge statistics of 3 and 5 features"):
        total.update(scanned((np.eye(3), np.arange(3.0), np.arange(90, 93))))
    np.testing.assert_array_equal(total.G, before)
    assert total.n_queries == 30


def test_what_a_table_needs_for_statistics(data):
    X, y, qid = data
    assert Pairgram.from_rows(scanned((X, y)), pairs=None).n_rows == len(y)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    zeros = Pairgram.from_rows(scanned((holes, y, qid)), feature_map=Fill(np.zeros(X.shape[1])))
    np.testing.assert_allclose(zeros.G, statistics(np.nan_to_num(holes), y, qid).G, rtol=1e-12)
