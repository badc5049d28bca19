"""What goes wrong with a table is a clear error, and leaves nothing behind."""

import pickle
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import pairgram as pg
from parts.tables import Place
from table_sources import NAMES, ROWS, cut, cut_table, write_parts

FIRST = pc.field("label") >= -1


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Threads that read for a table have ended when a test ends, however it ended."""
    yield
    assert [one.name for one in threading.enumerate() if "pairgram-reader" in one.name] == []


@pytest.fixture
def files(tmp_path):
    return write_parts(tmp_path, ROWS.frame, [100, 101, 300], row_group_size=60)


def test_a_file_that_ends_in_the_middle(files, tmp_path):
    table, whole = pg.scan(tmp_path, **NAMES), files[2].read_bytes()
    files[2].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"part-02\.parquet: cannot be read"):
        pg.RankRLS().fit(table)
    with pytest.raises(ValueError, match=r"part-02\.parquet"):
        pg.scan(tmp_path, **NAMES)
    files[2].write_bytes(whole[:200] + bytes(2000) + whole[2200:])
    with pytest.raises(ValueError, match=r"part-02\.parquet: cannot be read"):
        pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))
    files[2].unlink()
    with pytest.raises(FileNotFoundError, match=r"part-02\.parquet"):
        pg.RankRLS().fit(table)


def test_a_file_without_rows(files, tmp_path):
    wanted = pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))
    empty = ROWS.frame.slice(0, 0)
    pq.write_table(empty, tmp_path / "part-00a.parquet")
    pq.write_table(empty, tmp_path / "part-99.parquet")
    found = pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-10)


@pytest.mark.parametrize("kind", ["text", "numbers", "real"])
def test_ids_of_another_type_in_one_file(files, tmp_path, kind):
    """The number 7 and the text "7" are two ids, so a query that is cut would lose pairs."""
    frame = pq.read_table(files[2])
    at = frame.schema.get_field_index("query")
    ids = frame.column("query").to_numpy()
    other = {"text": pa.array(ids.astype(str)), "numbers": pa.array(ids.astype(np.int32))}
    other["real"] = pa.array(ids.astype(np.float64))
    wanted = pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))
    pq.write_table(frame.set_column(at, "query", other[kind]), files[2])
    try:
        found = pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))
    except ValueError as error:
        assert kind == "text" and "part-02.parquet" in str(error)
    else:
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-10)


@pytest.mark.parametrize("first", [True, False])
def test_ids_of_another_type_in_one_frame(first):
    as_text = pa.array(ROWS.qid.astype(str))
    at = ROWS.frame.schema.get_field_index("query")
    frames = [ROWS.frame, ROWS.frame.set_column(at, "query", as_text)]
    if first:
        frames.reverse()

    def factory():
        yield frames[0].slice(0, 203)
        yield frames[1].slice(203)

    with pytest.raises(ValueError, match=r"the source, row 203, .*: column 'query', the"):
        pg.RankRLS().fit(pg.scan(factory, **NAMES))

    table = cut_table(ROWS.frame, [203], **NAMES)
    for part, frame, begin in zip(table.partitions, frames, (0, 203), strict=True):
        part.table = frame.slice(begin, 203 if begin == 0 else None)
    with pytest.raises(ValueError, match=r"part \d, row 0, .* id, holds text, but before numb"):
        pg.RankRLS().fit(table)


@pytest.mark.parametrize("model", [pg.RankRLS(), pg.RankRLSCV(), pg.RankSVM()])
def test_a_query_in_two_places_is_refused_by_name(model):
    frame = pa.concat_tables([ROWS.frame, ROWS.frame.slice(0, 1)])
    for table in (
        cut_table(frame, [], **NAMES),
        cut_table(frame, [50, 200], [70], **NAMES),
        cut_table(frame, range(1, 300), **NAMES),
    ):
        with pytest.raises(ValueError, match=rf"query {ROWS.qid[0]} do not stand together: sort"):
            model.fit(table)


def test_a_query_that_is_too_large_is_refused_by_name(set_limits):
    sizes = np.bincount(ROWS.qid)
    large = int(sizes.argmax())
    set_limits(query_bytes=4 * 8 * (int(sizes.max()) - 1))
    frame, n_rows = ROWS.frame, len(ROWS.y)
    table = cut_table(frame, range(5, n_rows, 5), **NAMES)
    with pytest.raises(ValueError, match=rf"query {large} has more than .* MiB of rows"):
        pg.RankRLS().fit(table)
    pg.RankRLS(pairs=pg.Pairs(scope="global")).fit(table)
    set_limits(query_bytes=4 * 8 * n_rows)
    pg.RankRLS().fit(table)


def test_names_with_braces_are_told_as_they_are(tmp_path):
    path, name = tmp_path / "{place}.parquet", "{cost=low}"
    labels = pa.array([0.0, 1.0])
    pq.write_table(pa.table({"label": labels, "query": [1, 1], name: [1.0, None]}), path)
    with pytest.raises(ValueError) as caught:
        pg.RankRLS().fit(pg.scan(path, label="label", qid="query"))
    message = f"column {name!r} has a missing value: give the ranker feature_map=Fill('median') or"
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_a_source_that_changes_between_passes():
    calls = []

    def factory():
        calls.append(None)
        n_rows = 300 if len(calls) < 3 else 299
        yield ROWS.frame[:n_rows]

    with pytest.raises(ValueError, match="changed while it was read: the source had 300 rows, and"):
        pg.RankRLS().fit(pg.scan(factory, **NAMES))


def test_a_file_that_changes_between_passes(tmp_path):
    path = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(ROWS.frame, path)
    table = pg.scan(path, **NAMES)
    table.survey()
    pyarrow.csv.write_csv(ROWS.frame[:100], path)
    with pytest.raises(ValueError, match=r"changed while it was read: .*csv had [0-9]+ rows"):
        pg.RankRLS().fit(table)


class Failing:
    reads_features, needs_queries = True, True

    def __init__(self, error, at=2):
        self.error, self.left = error, at

    def block(self, rows):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return 0

    def join(self, first, second):
        return 0


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyboardInterrupt, MemoryError])
def test_a_task_that_raises(kind):
    with pytest.raises(kind, match="the task"):
        cut().reduce(Failing(kind("the task")))


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_a_source_that_raises(kind):
    def factory():
        yield ROWS.frame
        raise kind("the source")

    with pytest.raises(kind, match="the source"):
        pg.RankRLS().fit(pg.scan(factory, **NAMES))


def test_scores_that_nobody_takes_any_more():
    found = pg.predict(pg.RankRLS().fit(cut()), cut())
    next(found)
    assert any("pairgram-reader" in one.name for one in threading.enumerate())
    found.close()


class Slow:
    """A partition that takes its time."""

    name = "a slow part"

    def batches(self, number, columns):
        for begin in range(0, 400, 20):
            time.sleep(0.05)
            place = Place(self.name, number, begin)
            yield columns.rows(ROWS.frame.slice(begin, 20), place)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="needs the main thread"
)
def test_an_interrupt_ends_the_thread_and_restores_the_model(alarm):
    model = pg.RankRLS().fit(ROWS.X, ROWS.y, qid=ROWS.qid)
    before = dict(vars(model))
    alarm.start(0.25)
    with pytest.raises(alarm.Stop):
        model.fit(replace(cut(), partitions=(Slow(),)))
    assert alarm.lateness() < 5
    assert vars(model) == before


@pytest.mark.parametrize(
    "model", [pg.RankRLS(), pg.RankRLSCV(), pg.RankSVM(), pg.PairwiseELM(n_nodes=5)]
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model):
    model.fit(cut())
    before = dict(vars(model))
    frame = ROWS.frame.set_column(0, "f0", pa.array([1.0] * 399 + [None] * (len(ROWS.y) - 399)))
    with pytest.raises(ValueError, match="column 'f0' has a missing value"):
        model.fit(cut_table(frame, [60], [90], **NAMES))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(cut()), model.predict(cut()))


@pytest.mark.parametrize("make", [str, lambda folder: pa.dataset.dataset(folder).filter(FIRST)])
def test_an_output_that_the_table_reads(files, tmp_path, make):
    """It stays as it was. A new file in the folder is none that the table reads."""
    table = pg.scan(make(tmp_path), **NAMES)
    model, before = pg.RankRLS().fit(table), files[0].read_bytes()
    (tmp_path / "link").symlink_to(files[0])
    for output in (files[0], tmp_path / "link"):
        with pytest.raises(ValueError, match=r"output must not be a file.*part-00\.parquet"):
            pg.predict(model, table, output=output)
    assert files[0].read_bytes() == before
    pg.predict(model, table, output=tmp_path / "scores.parquet")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_that_a_file_lacks(tmp_path, kind):
    write = {"parquet": pq.write_table, "csv": pyarrow.csv.write_csv}[kind]
    write(ROWS.frame.slice(0, 100), tmp_path / f"a.{kind}")
    write(ROWS.frame.slice(100).drop(["f2"]), tmp_path / f"b.{kind}")
    table = pg.scan(tmp_path, **NAMES)
    X = np.where((np.arange(len(ROWS.y))[:, None] >= 100) & (np.arange(4) == 2), 0, ROWS.X)
    found = pg.RankRLS(feature_map=pg.Fill(0)).fit(table)
    np.testing.assert_allclose(found.coef_, pg.RankRLS().fit(X, ROWS.y, qid=ROWS.qid).coef_)
    with pytest.raises(ValueError, match=rf"b\.{kind}, row 0, .*: column 'f2' has a missing value"):
        pg.RankRLS().fit(table)


def test_a_table_without_queries_is_no_result_list():
    frame = pa.concat_tables([ROWS.frame] * 3)
    table = pg.scan(frame, label="label", features=ROWS.names)
    model = pg.RankRLS(pairs=pg.Pairs(scope="global")).fit(table)
    with pytest.warns(pg.MissingQueryWarning, match=rf"{frame.num_rows} rows.*Give scan qid="):
        pg.evaluate("ndcg@10", table, model)
    pg.evaluate("pearson", table, model)


def test_columns_of_other_types_are_named(tmp_path):
    plain = {"y": [0.0, 1.0], "q": [1, 1]}
    pq.write_table(pa.table(plain | {"size": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(plain | {"size": ["big", "2"]}), tmp_path / "b.parquet")
    table = pg.scan(tmp_path / "*.parquet", label="y", qid="q")
    message = r"b\.parquet: column 'size' holds text, but numbers in other files"
    with pytest.raises(ValueError, match=message):
        pg.RankRLS().fit(table)


@pytest.mark.parametrize("road", ["groups", "other types", "filter"])
def test_pages_whose_checksum_is_wrong(tmp_path, road):
    """A bit of a value has flipped, where nothing but the checksum tells it."""
    path, source, frame = tmp_path / "b.parquet", tmp_path, ROWS.frame.slice(100)
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(ROWS.frame.slice(0, 100), tmp_path / "a.parquet", **options)
    if road == "other types":
        frame = frame.set_column(0, "f0", frame.column("f0").cast(pa.float32()))
    pq.write_table(frame, path, **options)
    damaged = bytearray(path.read_bytes())
    damaged[400] ^= 1
    path.write_bytes(damaged)
    if road == "filter":
        source = pyarrow.dataset.dataset(path).filter(FIRST)
    with pytest.raises(ValueError, match=r"cannot be read: .*CRC checksum"):
        pg.RankRLS(pairs=None).fit(pg.scan(source, **NAMES))


@pytest.mark.parametrize("length", [0, 3, 100])
@pytest.mark.parametrize("number", [0, 2])
def test_files_of_columns_that_are_cut_off(files, tmp_path, number, length):
    files[number].write_bytes(files[number].read_bytes()[:length])
    for source in (tmp_path, files, files[number]):
        with pytest.raises(ValueError, match=rf"part-0{number}\.parquet") as found:
            pg.scan(source, **NAMES)
        assert type(found.value) is ValueError


@pytest.mark.parametrize("row", [0, 250, len(ROWS.y) - 1])
def test_a_feature_that_is_infinite(tmp_path, row):
    """The message names the row of the file and the column, wherever queries are cut."""
    X = ROWS.X.copy()
    X[row, 2] = -np.inf
    write_parts(tmp_path, replace(ROWS, X=X).frame, [100, 300], row_group_size=60)
    number = np.searchsorted([100, 300], row, side="right")
    place = rf"part-0{number}\.parquet, row {row - [0, 100, 300][number]}, .*: column 'f2' must be"
    with pytest.raises(ValueError, match=place):
        pg.RankRLS().fit(pg.scan(tmp_path, **NAMES))


def test_letor_files_that_leave_the_last_columns_out(tmp_path):
    """Validation tables and those that are scored are as wide as the table of fit."""
    X = ROWS.X.copy()
    pg.dump_letor(tmp_path / "train.txt", X, ROWS.y, qid=ROWS.qid)
    X[:, -1] = 0
    pg.dump_letor(tmp_path / "test.txt", X[:, :3], ROWS.y, qid=ROWS.qid)
    train, test = pg.scan(tmp_path / "train.txt"), pg.scan(tmp_path / "test.txt")
    assert test.n_features == 3 and pg.scan(tmp_path / "test.txt", n_features=6).n_features == 6
    model = pg.RankRLSCV().fit(train, validation=test)
    expected = pg.RankRLSCV().fit(ROWS.X, ROWS.y, qid=ROWS.qid, validation=(X, ROWS.y, ROWS.qid))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(test), model.predict(X))


def test_gaps_of_a_validation_table_are_filled_as_those_of_the_fit():
    X = ROWS.X.copy()
    X[5, 1] = np.nan
    train, held = pg.scan(ROWS.frame, **NAMES), pg.scan(replace(ROWS, X=X).frame, **NAMES)
    with pytest.raises(ValueError, match="column 'f1' has a missing value"):
        pg.RankRLSCV().fit(train, validation=held)
    X[5, 1] = 0
    model = pg.RankRLSCV(feature_map=pg.Fill(0)).fit(train, validation=held)
    expected = pg.RankRLSCV().fit(train, validation=pg.scan(replace(ROWS, X=X).frame, **NAMES))
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_rank_svm_takes_labels_of_any_size():
    """Only their order counts, also where the Gram matrix of the pairs is computed."""
    table = pg.scan(replace(ROWS, y=ROWS.y * 1e160).frame, **NAMES)
    expected = pg.RankSVM().fit(ROWS.X, ROWS.y, qid=ROWS.qid)
    np.testing.assert_allclose(pg.RankSVM().fit(table).coef_, expected.coef_, rtol=1e-2, atol=1e-3)


def test_wide_rank_svm_without_a_pair(set_limits):
    set_limits(widest_gram=2)
    table = pg.scan(replace(ROWS, y=np.ones_like(ROWS.y)).frame, **NAMES)
    with pytest.raises(ValueError, match="no preference pair counts"):
        pg.RankSVM().fit(table)


def test_ids_of_a_dictionary_are_held_to_their_kind():
    def blocks():
        for ids in (pa.array(["1", "2"]).dictionary_encode(), pa.array([2, 3])):
            yield pa.table({"x": [0.0, 1.0], "y": [0.0, 1.0], "q": ids})

    table = pg.scan(blocks, label="y", qid="q", features=["x"])
    with pytest.raises(ValueError, match="'q', the query id, holds numbers, but before text"):
        table.survey()
