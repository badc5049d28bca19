"""What a table may be made of, and how its columns are read."""

import datetime
import decimal
import gzip
import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import pairgram
from axes import every
from pairgram import Pairgram, RankRLS, dump_letor, scan
from parts.data import hash_ids
from parts.tables import read_labels
from table_sources import arrow, cut_table, make_rows, ranking_rows, scanned, write_parts

ROWS = make_rows()
NAMES = {"label": "label", "qid": "query", "weight": "w", "features": ROWS.names}
WANTED = RankRLS().fit(ROWS.X, ROWS.y, qid=ROWS.qid, sample_weight=ROWS.weight)
LETOR = ranking_rows()


def check(table, wanted=WANTED, rtol=1e-9):
    found = RankRLS().fit(table)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=rtol)
    return found


def read(table):
    """All rows of a table, as arrays."""
    rows = list(table.each(lambda rows: rows))
    return np.concatenate([one.X for one in rows]), np.concatenate([one.y for one in rows])


@pytest.fixture(params=[(), (7, 7, 300)], ids=["one file", "files"])
def folder(request, tmp_path):
    write_parts(tmp_path, ROWS.frame, request.param, row_group_size=50)
    return tmp_path


def test_parquet_files(folder):
    check(scan(folder, **NAMES))
    check(scan(str(folder), **NAMES))
    check(scan(folder / "*.parquet", **NAMES))
    check(scan(sorted(folder.iterdir()), **NAMES))
    check(scan(f"file://{folder}", **NAMES))
    check(scan(pyarrow.dataset.dataset(folder), **NAMES))


def test_letor_files_of_rows_and_comments(tmp_path, set_limits):
    y = LETOR.y[:100]
    dump_letor(tmp_path / "rows.txt", LETOR.X[:100], y, qid=LETOR.qid[:100])
    rows = (tmp_path / "rows.txt").read_text()
    wanted = scan(tmp_path / "rows.txt").n_rows()
    for piece_bytes in (64, 1 << 20):
        set_limits(piece_bytes=piece_bytes)
        for head, tail in (("", "# end"), ("# begin\n" * 99, "\n \n#\n  # end")):
            (tmp_path / "rows.txt").write_text(head + rows + tail)
            table = scan(tmp_path / "rows.txt")
            assert table.n_rows() == wanted
            np.testing.assert_array_equal(read(table)[1], y)


def test_hive_partitions(tmp_path):
    frame = ROWS.frame
    year = pa.array(np.arange(frame.num_rows) // 200 + 2020)
    pyarrow.dataset.write_dataset(
        frame.append_column("year", year),
        tmp_path,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(pa.schema([("year", pa.int64())]), flavor="hive"),
    )
    check(scan(tmp_path, **NAMES))
    X, _ = read(scan(tmp_path, **NAMES | {"features": ["f0", "year"]}))
    for given in (tmp_path, tmp_path / "*" / "*.parquet", pyarrow.dataset.dataset(tmp_path)):
        names = scan(given, **NAMES | {"features": None}).feature_names
        assert set(names) >= {*ROWS.names} and "year" not in names
    np.testing.assert_array_equal(X[:, 1], year)
    np.testing.assert_array_equal(X[:, 0], ROWS.X[:, 0])


def write_folders(root, names, frame=ROWS.frame):
    """Write a file of the same rows into each of some folders."""
    for name in names:
        (root / name).mkdir()
        pq.write_table(frame, root / name / "rows.parquet")


@pytest.mark.parametrize("order", [1, -1])
def test_values_of_folders_take_the_place_of_those_in_files(tmp_path, order):
    """Whatever types the other columns of the files have."""
    own = ROWS.frame.append_column("day", pa.array(np.full(ROWS.frame.num_rows, 99, np.int32)))
    narrow = own.set_column(0, "f0", own.column("f0").cast(pa.float32()))
    for day, frame in zip((1, 2), (own, narrow)[::order], strict=True):
        write_folders(tmp_path, [f"day={day}"], frame)
    names = NAMES | {"qid": "day", "features": ["f1", "f2"]}
    ids = np.concatenate(list(scan(tmp_path, **names).each(lambda rows: rows.ids)))
    assert ids.tolist() == [1, 2]


def test_numbers_in_names_of_folders_may_have_leading_zeros(tmp_path):
    """They are no ids, but features."""
    write_folders(tmp_path, ["month=01", "month=12"])
    X, _ = read(scan(tmp_path, **NAMES | {"qid": None, "features": ["month"]}))
    assert np.unique(X).tolist() == [1, 12]


@pytest.mark.parametrize("index", ["__index_level_0__", "number"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, index):
    frame = ROWS.frame.select([*ROWS.names, "label", "query", "w"]).to_pandas()
    frame.index = pd.Index(np.arange(len(frame))[::-1], name=None if index[0] == "_" else index)
    table = pa.Table.from_pandas(frame)
    assert table.column_names[-1] == index
    pq.write_table(table, tmp_path / "rows.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "rows.feather")
    names = NAMES | {"features": None}
    sources = [tmp_path / "rows.parquet", tmp_path / "rows.feather", table, lambda: iter([table])]
    if index[0] == "_":  # polars keeps no more than the name
        pl = pytest.importorskip("polars")
        sources += [pl.from_arrow(table), pl.scan_parquet(tmp_path / "rows.parquet")]
    for source in sources:
        assert scan(source, **names).feature_names == ROWS.names
        check(scan(source, **names))
        assert scan(source, **names | {"features": [index]}).feature_names == [index]
    plain = table.drop_columns(["label", "query", "w"])
    if index[0] != "_":  # whoever names it and hands it over wants it
        RankRLS().fit(plain, ROWS.y, qid=ROWS.qid).predict(plain)
    for metadata in (b"no JSON", b"{}", b'{"index_columns": null}'):
        strange = plain.replace_schema_metadata({b"pandas": metadata})
        assert (index in scan(strange).feature_names) == (index[0] != "_")
    one_user = table.drop_columns("w").append_column("user", pa.array(["a"] * len(ROWS.y)))
    batch = pairgram.fit_many(RankRLS(), one_user, "label", by="user", qid="query")
    assert list(batch.models[0].feature_names_in_) == ROWS.names


@pytest.mark.parametrize("name", ["csv", "csv.gz", "tsv", "tsv.gz", "feather", "arrow"])
def test_files_of_other_kinds(tmp_path, name):
    for number, part in enumerate((ROWS.frame.slice(0, 200), ROWS.frame.slice(200))):
        path = tmp_path / f"{number}.{name}"
        if name == "feather":
            pyarrow.feather.write_feather(part, path)
        elif name == "arrow":
            with pa.ipc.new_file(path, part.schema) as file:
                file.write_table(part, max_chunksize=100)
        else:
            part.to_pandas().to_csv(path, sep="\t" if name[0] == "t" else ",", index=False)
    check(scan(tmp_path, **NAMES))
    check(scan([tmp_path / f"0.{name}", tmp_path / f"1.{name}"], **NAMES))


@pytest.mark.parametrize("name", ["rows[1].parquet", "rows*.parquet", "rows?.parquet"])
def test_a_file_whose_name_looks_like_a_pattern(tmp_path, name):
    pq.write_table(ROWS.frame, tmp_path / name)
    pq.write_table(ROWS.frame.slice(0, 100), tmp_path / "rows1.parquet")
    check(scan(tmp_path / name, **NAMES))


def test_addresses_that_fsspec_knows():
    import fsspec

    system = fsspec.filesystem("memory")
    for number, frame in enumerate((ROWS.frame.slice(0, 99), ROWS.frame.slice(99))):
        with system.open(f"/rows/part-{number}.parquet", "wb") as file:
            pq.write_table(frame, file)
    try:
        check(scan(pyarrow.dataset.dataset("/rows", filesystem=system), **NAMES))
        with pytest.raises(
            ValueError, match=r"memory://rows: cannot be read: .*give scan a dataset"
        ):
            scan("memory://rows", **NAMES)
    finally:
        system.rm("/rows", recursive=True)


FRAMES = {
    "pandas": lambda frame: frame.to_pandas(),
    "polars": lambda frame: pytest.importorskip("polars").from_arrow(frame),
    "lazy": lambda frame: pytest.importorskip("polars").from_arrow(frame).lazy(),
    "arrow": lambda frame: frame,
    "batch": lambda frame: frame.combine_chunks().to_batches()[0],
    "dataset": pyarrow.dataset.dataset,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    check(scan(FRAMES[kind](ROWS.frame), **NAMES))


@pytest.mark.parametrize("blocks", ["one", "several"])
def test_later_changes_of_a_frame_of_pandas_are_not_seen(blocks):
    frame = ROWS.frame.to_pandas()
    if blocks == "one":
        frame = pd.DataFrame(ROWS.X.copy(), columns=ROWS.names).assign(
            label=ROWS.y, query=ROWS.qid, w=ROWS.weight
        )
    table = scan(frame, **NAMES)
    frame.loc[:, "f0"] *= -5
    frame["label"] = 0.0
    frame.iloc[3:9, :3] = 7.0
    del frame["w"]
    check(table)
    frame["f1"] += 1
    np.testing.assert_allclose(WANTED.predict(table), WANTED.predict(ROWS.X), rtol=1e-9)


def test_a_filtered_dataset(tmp_path):
    pq.write_table(ROWS.frame, tmp_path / "rows.parquet")
    kept = ROWS.y < 3
    wanted = RankRLS().fit(ROWS.X[kept], ROWS.y[kept], qid=ROWS.qid[kept])
    names = NAMES | {"weight": None}
    for folders in (None, "hive"):
        dataset = pyarrow.dataset.dataset(tmp_path, partitioning=folders)
        dataset = dataset.filter(pc.field("label") < 3)
        check(scan(dataset, **names), wanted)
        assert "f0" in scan(dataset, **names | {"features": None}).feature_names


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "batch"])
def test_a_function_that_returns_frames(kind):
    frame = ROWS.frame

    def factory():
        for begin in range(0, frame.num_rows, 90):
            yield FRAMES[kind](frame.slice(begin, 90))
            yield FRAMES[kind](frame.slice(begin, 1))[:0]

    check(scan(factory, **NAMES))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_function_that_returns_arrays_as_lists(dtype):
    rows = replace(ROWS, X=ROWS.X.astype(dtype))
    pieces = np.array_split(np.arange(len(rows.y)), 7)
    parts = (one for at in pieces for one in (at, at[:0]))
    table = scanned(*((rows.X[at], rows.y[at], rows.qid[at], rows.weight[at]) for at in parts))
    assert table.has_queries and table.layout.dtype == dtype
    check(table, rtol=1e-9 if dtype is np.float64 else 1e-4)
    assert pairgram.predict(WANTED, table, output=None) is not None
    scores = WANTED.predict(table)
    np.testing.assert_allclose(scores, WANTED.predict(rows.X), rtol=1e-6)
    assert scores.dtype == dtype


BUFFERS = {
    "polars": lambda X, y, qid: pytest.importorskip("polars").DataFrame(
        dict(zip(ROWS.names, X.T, strict=True)) | {"label": y, "query": qid}
    ),
    "lists": arrow,
}


@pytest.mark.parametrize("n_rows", [50, 300])
@pytest.mark.parametrize("fewest", [1, 1 << 16])
@pytest.mark.parametrize("kind", BUFFERS)
def test_a_function_that_uses_its_memory_again(kind, fewest, n_rows, set_limits):
    """Batches wait for others to be put together with them, or for the consumer."""
    set_limits(fewest_batch_rows=fewest)
    columns = kind == "polars"  # whose columns are contiguous

    def factory():
        X = np.empty((n_rows, 4), order="F" if columns else "C")
        y, qid = np.empty(n_rows), np.empty(n_rows, np.int64)
        for begin in range(0, len(ROWS.y), n_rows):
            rows = slice(begin, begin + n_rows)
            n = len(ROWS.y[rows])
            X[:n], y[:n], qid[:n] = ROWS.X[rows], ROWS.y[rows], ROWS.qid[rows]
            yield BUFFERS[kind](X[:n], y[:n], qid[:n])

    lists = {"label": "y", "qid": "qid", "features": "X"}
    table = scan(factory, **lists if kind == "lists" else NAMES | {"weight": None})
    wanted = RankRLS().fit(ROWS.X, ROWS.y, qid=ROWS.qid)
    check(table, wanted)
    np.testing.assert_allclose(wanted.predict(table), wanted.predict(ROWS.X), rtol=1e-9)
    read_rows = read(table)
    np.testing.assert_array_equal(read_rows[0], ROWS.X)
    np.testing.assert_array_equal(read_rows[1], ROWS.y)


def dump(path, rows=LETOR, **named):
    dump_letor(path, rows.X, rows.y, qid=rows.qid, **named)
    return path


@pytest.mark.parametrize("end", ["txt", "txt.gz"])
@pytest.mark.parametrize("piece", [1 << 20, 997, 61])
def test_letor_files_in_pieces(tmp_path, set_limits, end, piece):
    n = 200 if piece < 1000 else len(LETOR.y)
    rows = replace(LETOR, X=LETOR.X[:n], y=LETOR.y[:n], qid=LETOR.qid[:n])
    path = dump(tmp_path / "rows.txt", rows)
    (tmp_path / "rows.txt.gz").write_bytes(gzip.compress(path.read_bytes()))
    set_limits(piece_bytes=piece)
    wanted = RankRLS().fit(rows.X, rows.y, qid=rows.qid)
    table = scan(tmp_path / f"rows.{end}")
    check(table, wanted)
    X, y = read(table)
    np.testing.assert_array_equal(X, rows.X)
    np.testing.assert_array_equal(y, rows.y)


def test_several_letor_files_that_cut_a_query(tmp_path):
    paths = []
    for number, at in enumerate(np.array_split(np.arange(len(LETOR.y)), 3)):
        paths.append(tmp_path / f"part-{number}.txt")
        dump_letor(paths[-1], LETOR.X[at], LETOR.y[at], qid=LETOR.qid[at])
    check(scan(paths), RankRLS().fit(LETOR.X, LETOR.y, qid=LETOR.qid))
    check(scan(tmp_path / "part-*.txt"), RankRLS().fit(LETOR.X, LETOR.y, qid=LETOR.qid))


@pytest.mark.parametrize("piece", [1 << 20, 64])
def test_errors_of_letor_files_name_the_line(tmp_path, set_limits, piece):
    path = tmp_path / "rows.txt"
    lines = [f"{k % 2} qid:{k // 5} 1:{k} 2:0.5" for k in range(40)]
    lines[3] = "# a comment"
    lines[7] = ""
    lines[30] = "1 qid:6 1:three 2:4"
    path.write_text("\n".join(lines[:5]) + "\n")
    set_limits(piece_bytes=piece)
    table = replace(scan(path), files=scan(ROWS.frame, **NAMES).files)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"rows\.txt:31:"):
        RankRLS().fit(table)


def test_ids_of_letor_files_are_text(tmp_path, set_limits):
    """One piece has numbers alone, and another has words."""
    lines = [f"{k % 3} qid:{name} 1:{k}" for name in ("007", "a", "7") for k in range(4)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    for piece in (1 << 20, 30, 45):
        set_limits(piece_bytes=piece)
        assert scan(tmp_path / "rows.txt").survey().n_queries == 3


def test_letor_files_without_ids(tmp_path):
    rows = LETOR
    dump_letor(tmp_path / "none.txt", rows.X, rows.y)
    table = scan(tmp_path / "none.txt")
    assert not table.has_queries
    wanted = RankRLS(pairs=None).fit(rows.X, rows.y)
    np.testing.assert_allclose(RankRLS(pairs=None).fit(table).coef_, wanted.coef_, rtol=1e-9)
    dump(tmp_path / "some.txt")
    with pytest.raises(ValueError, match=r"in all files or none: .*some\.txt has, .*none\.txt not"):
        RankRLS().fit(scan([tmp_path / "some.txt", tmp_path / "none.txt"]))


def test_a_letor_file_that_is_cut(tmp_path):
    whole = gzip.compress(dump(tmp_path / "rows.txt").read_bytes())
    path = tmp_path / "rows.txt.gz"
    path.write_bytes(whole)
    table = replace(scan(path), files=scan(ROWS.frame, **NAMES).files)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"rows\.txt\.gz: found a damaged or cut-off"):
        RankRLS().fit(table)


# Columns


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_a_column_of_lists(tmp_path, kind, dtype):
    lists = pa.array(ROWS.X.tolist(), pa.list_(dtype))
    if kind == "large":
        lists = lists.cast(pa.large_list(dtype))
    if kind == "fixed":
        lists = lists.cast(pa.list_(dtype, 4))
    frame = ROWS.frame.append_column("x", lists)
    names = NAMES | {"features": "x"}
    table = scan(frame, **names)
    assert table.n_features == 4 and table.feature_names is None
    assert table.layout.dtype == (np.float32 if dtype == pa.float32() else np.float64)
    check(table, rtol=1e-4 if dtype == pa.float32() else 1e-9)
    check(cut_table(frame, [50, 51], [20, 400], **names), rtol=1e-4)
    write_parts(tmp_path, frame, [77])
    check(scan(tmp_path, **names), rtol=1e-4)


def test_columns_of_other_types():
    rng = np.random.default_rng(0)
    n = len(ROWS.y)
    whole, flags = rng.integers(0, 9, n), rng.random(n) < 0.5
    columns = {
        "flag": pa.array(flags),
        "int8": pa.array(whole.astype(np.int8)),
        "uint64": pa.array(whole.astype(np.uint64)),
        "nullable": pa.array(whole, pa.int64()),
        "half": pa.array(whole.astype(np.float16)),
        "decimal": pa.array([decimal.Decimal(int(k)) / 4 for k in whole], pa.decimal128(10, 2)),
        "dictionary": pa.array(whole * 0.5).dictionary_encode(),
    }
    frame = pa.table(columns | {"label": ROWS.y, "query": ROWS.qid})
    table = scan(frame, label="label", qid="query")
    X, _ = read(table)
    wanted = np.column_stack([flags, whole, whole, whole, whole, whole / 4, whole * 0.5])
    np.testing.assert_array_equal(X, wanted)
    assert table.feature_names == list(columns)
    narrow = scan(frame, label="label", qid="query", features=["flag", "int8", "half"])
    assert narrow.layout.dtype == np.float32
    np.testing.assert_array_equal(read(narrow)[0], wanted[:, [0, 1, 4]])


def test_pandas_with_nullable_columns():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], "Int64"),
            "b": pd.array([True, False, None], "boolean"),
            "c": pd.Categorical([2.0, 4.0, 2.0]),
            "y": pd.array([0, 1, 2], "Int32"),
            "q": pd.array(["u", "u", "u"], "string"),
        }
    )
    table = scan(frame, label="y", qid="q").filled(0)
    X, y = read(table)
    np.testing.assert_array_equal(X, [[1, 1, 2], [0, 0, 4], [3, 0, 2]])
    np.testing.assert_array_equal(y, [0, 1, 2])


IDS = {
    "int8": lambda q: q.astype(np.int16),
    "uint64": lambda q: q.astype(np.uint64) + np.uint64(2**63),
    "float": lambda q: q + 0.5,
    "text": lambda q: [f"query {k}" for k in q],
    "large text": lambda q: pa.array([f"query {k}" for k in q], pa.large_string()),
    "dictionary": lambda q: pa.array([f"query {k}" for k in q]).dictionary_encode(),
    "bytes": lambda q: [b"query %d" % k for k in q],
    "dates": lambda q: [datetime.date(2020, 1, 1) + datetime.timedelta(int(k)) for k in q],
    "times": lambda q: pa.array(q.astype("datetime64[s]")),
    "zoned times": lambda q: pa.array(q.astype("datetime64[s]"), pa.timestamp("us", tz="UTC")),
    "views": lambda q: pa.array([f"query {k}" for k in q], pa.string_view()),
}


@pytest.mark.parametrize("kind", IDS)
def test_query_ids_of_every_type(tmp_path, kind):
    frame = ROWS.frame
    at = frame.schema.get_field_index("query")
    frame = frame.set_column(at, "query", pa.chunked_array([pa.array(IDS[kind](ROWS.qid))]))
    check(cut_table(frame, [33, 34], [5, 100], **NAMES))
    try:
        write_parts(tmp_path, frame, [70])
    except pa.ArrowNotImplementedError:
        assert kind == "views"
        pytest.skip("this pyarrow writes no views to Parquet files")
    table = scan(tmp_path, **NAMES)
    check(table)
    assert table.survey().n_queries == len(np.unique(ROWS.qid))
    cut = int(np.flatnonzero(ROWS.qid[1:] == ROWS.qid[:-1])[40]) + 1
    shuffled = pa.concat_tables([frame.slice(cut), frame.slice(0, cut)])
    with pytest.raises(ValueError, match=r"the rows of query .* do not stand together") as error:
        RankRLS().fit(scan(shuffled, **NAMES))
    if kind not in ("dates", "times", "zoned times"):
        assert f"query {frame.column('query')[cut].as_py()!r} do" in str(error.value)


def test_text_of_several_lines(tmp_path):
    path = tmp_path / "rows.csv"
    text = '"' + "a\n" * 50 + '"'
    lines = [f"{k % 2},{k // 9},{k},{text}\n" for k in range(20_000)]
    path.write_text("".join(["y,q,f,t\n", *lines]))
    names = {"label": "y", "qid": "q", "features": "f"}
    model = RankRLS().fit(scan(path, **names))
    rows = np.arange(20_000)
    expected = RankRLS().fit(rows[:, None], rows % 2, qid=rows // 9)
    np.testing.assert_allclose(model.coef_, expected.coef_)
    tabs = tmp_path / "rows.tsv"
    tabs.write_text(path.read_text().replace(",", "\t"))
    assert scan(tabs, **names).n_rows() == (20_000,)
    # A dataset of pyarrow is read as it says, and its error names what to do.
    dataset = pyarrow.dataset.dataset(path, format="csv")
    with pytest.raises(ValueError, match=r"rows\.csv: .*quotes goes on in the next.*give the path"):
        RankRLS().fit(scan(dataset, **names))


def test_features_may_be_those_of_a_fitted_model():
    frame = ROWS.frame.append_column("text", pa.array(["a"] * len(ROWS.y)))
    model = RankRLS().fit(scan(ROWS.frame, **NAMES))
    scores = model.predict(scan(frame, **NAMES | {"features": model.feature_names_in_}))
    np.testing.assert_array_equal(scores, model.predict(scan(ROWS.frame, **NAMES)))


@every(column=["label", "query", "w", "f1"], value=[None, np.nan])
def test_missing_values_are_named_by_their_place(tmp_path, column, value):
    """A null of Arrow is one, and NaN is one."""
    values = ROWS.frame.column(column).to_numpy().astype(float).tolist()
    values[82] = value
    at = ROWS.frame.schema.get_field_index(column)
    frame = ROWS.frame.set_column(at, column, pa.array(values, from_pandas=False))
    write_parts(tmp_path, frame, [70])
    for table in (scan(tmp_path, **NAMES), cut_table(frame, [70], **NAMES)):
        with pytest.raises(ValueError, match=rf"1\S*, row 12, .*: column '{column}'.* missing"):
            RankRLS().fit(table)


def test_columns_of_text_are_all_named_and_can_be_left_out():
    frame = ROWS.frame
    for name in ("title", "url"):
        frame = frame.append_column(name, pa.array(["a"] * len(ROWS.y)))
    names = NAMES | {"features": None}
    table = scan(frame, **names, exclude=["title", "url"])
    assert table.feature_names == ROWS.names
    check(table)
    assert scan(ROWS.frame, **names, exclude=ROWS.names[0]).feature_names == ROWS.names[1:]


def csv_rows(values, y=None, q=None):
    """Lines of a file .csv of a label, a query id and a feature."""
    y = [k % 3 for k in range(len(values))] if y is None else y
    q = [k // 10 for k in range(len(values))] if q is None else q
    lines = (f"{one},{two},{three}\n" for one, two, three in zip(y, q, values, strict=True))
    return "y,q,price\n" + "".join(lines)


@pytest.mark.parametrize("late", ["0.5", "1e300", "-7", ""])
@pytest.mark.parametrize("early", ["3", "", None])
def test_numbers_of_text_that_come_after_the_first_rows(tmp_path, early, late):
    """Types are guessed by the first rows of the first file, or by a header alone."""
    first = [] if early is None else [early] * 20_000
    ids = ["of many letters" * 5] * 20_001  # so that the rows have more than 2**20 bytes
    (tmp_path / "a.csv").write_text(csv_rows([*first, late], q=ids) if first else csv_rows([]))
    (tmp_path / "b.csv").write_text(csv_rows(["0.25", late]))
    for ending in ("tsv", "tsv.gz"):
        text = (tmp_path / "a.csv").read_text().replace(",", "\t").encode()
        opened = gzip.open if ending == "tsv.gz" else open
        with opened(tmp_path / f"a.{ending}", "wb") as file:
            file.write(text)
    wanted = np.array([float(one or "nan") for one in ([*first, late] if first else [])])
    both = np.concatenate([wanted, [0.25, float(late or "nan")]])
    sources = [(tmp_path / "*.csv", both)]
    if first:
        sources += [(tmp_path / "a.csv", wanted), (tmp_path / "a.tsv", wanted)]
        sources += [(tmp_path / "a.tsv.gz", wanted)]
    for source, values in sources:
        table = scan(source, label="y", features="price").filled(0)
        assert np.array_equal(read(table)[0][:, 0], np.where(np.isnan(values), 0.0, values))


@pytest.mark.parametrize("column", ["label", "weight", "propensity"])
def test_labels_and_weights_of_text_that_come_after_the_first_rows(tmp_path, column):
    n = 150_000
    values = ["1"] * n + ["0.5"]
    (tmp_path / "a.csv").write_text(csv_rows(["1"] * (n + 1), values))
    if column == "label":
        y, _ = read_labels(tmp_path / "a.csv", "y", "q")
        rows = list(scan(tmp_path / "a.csv", label="y", qid="q").each(lambda rows: rows))
        assert np.array_equal(y, np.concatenate([one.y for one in rows]))
    else:
        table = scan(tmp_path / "a.csv", label="price", features="q", **{column: "y"})
        rows = list(table.each(lambda rows: rows))
        y = np.concatenate([1 / one.y if column == "propensity" else one.weights for one in rows])
    assert np.array_equal(y, [float(one) for one in values])


@pytest.mark.parametrize("late", [0, 150_000])
@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 10**17 + 1])
@pytest.mark.parametrize("argument", ["label", "weight"])
def test_whole_numbers_that_floats_round_are_refused(tmp_path, late, number, argument):
    frame = pd.DataFrame({"y": 1, "q": np.arange(late + 3) // 9, "price": 1.5})
    frame.loc[late + 1, "y"] = number
    path = tmp_path / "a.parquet"
    frame.to_parquet(path, index=False)
    named = {"label": "price", "features": "q"} | {argument: "y"}
    with pytest.raises(ValueError, match=rf"a\.parquet, row {late + 1}, .*'y' must .* {number}$"):
        read(scan(path, **named))


@pytest.mark.parametrize("row", [0, 3, 150_000])
@pytest.mark.parametrize("column", ["price", "y"])
def test_a_text_among_numbers_is_named_by_its_row(tmp_path, row, column):
    frame = pd.DataFrame({"y": 1, "q": 1, "price": np.arange(max(row, 9) + 1)}).astype(object)
    frame.loc[row, column] = "low"
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=rf"'{column}'.*|row {row}, .*") as caught:
        read(scan(tmp_path / "a.csv", label="y", qid="q", features="price"))
    assert all(part in str(caught.value) for part in ("a.csv", f"row {row}, ", "'low'", column))


FIRST_AND_SECOND = {
    "int64 and double": (pa.array([1, 2, 3]), pa.array([0.5, 1.0, 2.0])),
    "int64 and float": (pa.array([1, 2, 3]), pa.array([0.1, 1, 2], pa.float32())),
    "float and double": (pa.array([0.1, 1, 2], pa.float32()), pa.array([0.1, 1.0, 2.0])),
    "int16 and int64": (pa.array([1, 2, 3], pa.int16()), pa.array([2**40 + 1, 2, 3])),
    "null and double": (pa.nulls(3), pa.array([0.5, 1.0, 2.0])),
    "bool and int64": (pa.array([True, False, True]), pa.array([7, 1, 2])),
    "bool and double": (pa.array([True, False, True]), pa.array([0.7, 1.0, 2.0])),
    "decimal and int64": (pa.array([decimal.Decimal("0.25")] * 3), pa.array([2**40 + 1, 1, 2])),
    "decimal and double": (pa.array([decimal.Decimal("0.25")] * 3), pa.array([1e300, 1, 2])),
    "codes and double": (pa.array([1, 2, 3]).dictionary_encode(), pa.array([0.5, 1, 2])),
}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("types", FIRST_AND_SECOND)
def test_numbers_of_other_types_in_the_next_file(tmp_path, types, order, ending):
    columns = FIRST_AND_SECOND[types][::order]
    for name, column in zip("abc", (*columns, columns[0]), strict=True):
        frame = pa.table({"y": [1.0, 2.0, 3.0], "q": [1, 1, 1], "x": column})
        path = tmp_path / f"{name}.{ending}"
        write = pq.write_table if ending == "parquet" else pyarrow.feather.write_feather
        write(frame, path)
    table = scan(tmp_path / f"*.{ending}", label="y", features="x").filled(0)
    found = read(table)[0][:, 0]
    wanted = [
        [0.0 if one is None else float(one) for one in column.to_pylist()] for column in columns
    ]
    assert np.array_equal(found, np.concatenate([*wanted, wanted[0]]))


def ids_of_csv(path, ids):
    path.write_text(csv_rows(["1"] * len(ids), q=ids))
    return read_labels(path, "y", "q")[1]


@pytest.mark.parametrize(
    "ids",
    [
        ["007", "7", "07"],
        ["+7", "7"],
        ["-0", "0"],
        ["1.5", "1.50", "1"],
        ["1e3", "1000"],
        ["0x10", "16"],
        ["12345678901234567890", "12345678901234567891"],
        ["true", "TRUE", "1"],
        ["a", "7"],
    ],
)
def test_ids_of_text_files_do_not_merge(tmp_path, ids):
    assert ids_of_csv(tmp_path / "a.csv", ids).tolist() == ids
    table = scan(tmp_path / "a.csv", label="y", qid="q")
    assert table.survey().n_queries == len(ids)
    kept = pa.concat_tables(pairgram.predict(RankRLS().fit([[0], [1]], [0, 1]), table))
    assert kept.column("q").to_pylist() == ids
    (tmp_path / "b.csv").write_text((tmp_path / "a.csv").read_text())
    (tmp_path / "a.csv").write_text(csv_rows(["1"], q=["5"]))
    assert read_labels(tmp_path / "*.csv", "y", "q")[1].tolist() == ["5", *ids]


@pytest.mark.parametrize("late", ["007", "abc", "NA"])
def test_ids_of_text_after_numbers_are_read_as_the_dataset_says(tmp_path, late):
    ids = [*(str(k // 10) for k in range(150_000)), late]
    (tmp_path / "a.csv").write_text(csv_rows(["1"] * len(ids), q=ids))
    as_text = pyarrow.csv.ConvertOptions(column_types={"q": pa.string()})
    kind = pyarrow.dataset.CsvFileFormat(convert_options=as_text)
    dataset = pyarrow.dataset.dataset(tmp_path / "a.csv", format=kind)
    assert read_labels(dataset, "y", "q")[1].tolist() == ids


TIMES = {
    "dates": [datetime.date(2024, 2, 1)] * 2,
    "times without": [datetime.datetime(2024, 2, 1, hour) for hour in (8, 9)],
    "times with": [datetime.datetime(2024, 2, 1, hour, tzinfo=datetime.UTC) for hour in (8, 9)],
    "text": ["2024-02-01", "2024-02-01 08:00:00"],
    "durations": [datetime.timedelta(hours=hour) for hour in (8, 9)],
}


@pytest.mark.parametrize(("one", "other"), [*itertools.permutations(TIMES, 2)])
@every(source=["parquet", "arrow", "dataset", "function"])
def test_ids_of_different_kinds_of_times(tmp_path, one, other, source):
    """As one type, the times of a day would be one query."""
    frames = [pa.table({"y": [1.0, 0.0], "q": TIMES[kind], "x": [1, 2]}) for kind in (one, other)]
    folder = tmp_path / source
    folder.mkdir()
    for name, frame in zip("ab", frames, strict=True):
        if source == "arrow":
            pyarrow.feather.write_feather(frame, folder / f"{name}.arrow")
        else:
            pq.write_table(frame, folder / f"{name}.parquet")
    given = pyarrow.dataset.dataset(folder) if source == "dataset" else folder
    message = rf"b\.\w+: column 'q' holds {other}.*, but {one}.* in other files"
    if source == "function":
        given = partial(iter, frames)
        message = rf"the source, row 2, .*: column 'q'.* holds {other}.*, but before {one}"
    with pytest.raises(ValueError, match=message):
        scan(given, label="y", qid="q").survey()


def test_times_of_other_units_and_zones_in_the_next_file(tmp_path):
    """They are of one kind: equal instants are one query."""
    times = pa.array(TIMES["times with"])
    for name, unit, zone in (("a", "us", "UTC"), ("b", "ms", "Europe/Helsinki")):
        ids = times.cast(pa.timestamp(unit, zone))
        frame = pa.table({"y": [1.0, 0.0], "q": ids if name == "a" else ids[::-1], "x": [1, 2]})
        pq.write_table(frame, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match="do not stand together"):
        scan(tmp_path, label="y", qid="q").survey()


def test_columns_that_are_not_read_may_be_of_any_kind(tmp_path):
    for name, kind in zip("ab", ("dates", "text"), strict=True):
        frame = pa.table({"y": [1.0, 0.0], "q": [1, 1], "x": [1, 2], "when": TIMES[kind]})
        frame = frame.set_column(1, "q", pa.array([ord(name)] * 2))
        pq.write_table(frame, tmp_path / f"{name}.parquet")
    table = scan(tmp_path, label="y", qid="q", features="x")
    assert table.survey().n_queries == 2
    model = RankRLS().fit(table)
    message = r"b\.parquet: column 'when' holds text, but dates in other files"
    with pytest.raises(ValueError, match=message):
        list(pairgram.predict(model, table, keep=["when"]))


@pytest.mark.parametrize("write", ["to_csv", "to_parquet"])
def test_columns_of_all_files_are_united(tmp_path, write):
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "y": [0.0, 1.0, 0.0, 1.0], "f": [1, 2, 3, 4]})
    kind = write.removeprefix("to_")
    later = frame.assign(q=frame["q"] + 2, f=0.5, g=1.0)
    getattr(frame, write)(tmp_path / f"a.{kind}", index=False)
    getattr(later, write)(tmp_path / f"b.{kind}", index=False)
    for source in (tmp_path, tmp_path / f"*.{kind}", [tmp_path / f"{one}.{kind}" for one in "ab"]):
        table = scan(source, label="y", qid="q")
        assert list(table.layout.features) == ["f", "g"]
        X, _ = read(table.filled(0))
        assert X.tolist() == [[1, 0], [2, 0], [3, 0], [4, 0], *[[0.5, 1]] * 4]
    with pytest.raises(ValueError, match=rf"a\.{kind}, row 0.*column 'g' has a missing value"):
        RankRLS().fit(scan(tmp_path, label="y", qid="q"))


@pytest.mark.parametrize("separator", [",", "\t"])
def test_row_numbers_of_to_csv_are_no_feature(tmp_path, separator):
    frame = ROWS.frame.to_pandas().sort_values("label", kind="stable")
    path = tmp_path / ("rows.csv" if separator == "," else "rows.tsv")
    frame.to_csv(path, sep=separator)
    named = {"label": "label", "qid": "query", "weight": "w"}
    with pytest.warns(UserWarning, match="the first column has no name and is left out"):
        table = scan(path, **named)
    assert table.feature_names == ROWS.names
    assert scan(path, features=["", *ROWS.names], **named).feature_names == ["", *ROWS.names]
    again = pd.read_csv(path, sep=separator)
    with pytest.warns(UserWarning, match="no name but that of pandas and is left out"):
        assert scan(again, **named).feature_names == ROWS.names


@pytest.mark.parametrize(
    ("log", "reader"), [("_delta_log", "deltalake"), ("metadata", "pyiceberg"), (".hoodie", "hudi")]
)
@pytest.mark.parametrize("given", ["folder", "pattern", "file", "above", "address"])
def test_files_of_a_lake_are_refused(tmp_path, log, reader, given):
    table, data = tmp_path / "lake" / "t", tmp_path / "lake" / "t" / "data" / "day=1"
    data.mkdir(parents=True)
    pq.write_table(ROWS.frame, data / "part-0.parquet")
    source = {
        "folder": table,
        "pattern": f"{table}/data/*/*.parquet",
        "file": data / "part-0.parquet",
        "above": tmp_path / "lake",
        "address": table.as_uri(),
    }[given]
    (table / "metadata").mkdir()  # of somebody else
    check(scan(source, **NAMES))
    (table / log).mkdir(exist_ok=True)
    (table / log / "v1.metadata.json").write_text("{}")
    with pytest.raises(ValueError, match=rf"lake/t has '{log}', which says .*: give .*{reader}"):
        scan(source, **NAMES)


def of_decimals(digits, scale, ids):
    """Three rows of every id, which are decimals of so many digits."""
    column = pa.array([decimal.Decimal(one) for one in ids for _ in range(3)])
    rng = np.random.default_rng(len(ids))
    x, y = rng.normal(size=len(column)), rng.integers(0, 3, len(column))
    return pa.table({"q": column.cast(pa.decimal128(digits, scale)), "x": x, "y": y})


BIG = 2**53
DECIMALS = {
    "one precision": [(20, 0, [BIG, BIG + 1])],
    "two precisions": [(20, 0, [BIG]), (25, 0, [BIG + 1, BIG + 2])],
    "fractions": [(20, 3, ["1.125", "0.1", BIG]), (25, 0, [BIG + 1])],
    "whole numbers too": [(20, 2, ["1.25"])],
    "wide": [(38, 0, [10**37, 10**37 + 1]), (38, 10, ["0.1", "10"])],
}


@pytest.mark.parametrize("kind", DECIMALS)
def test_decimal_ids_are_exact(tmp_path, kind):
    parts = [of_decimals(*part) for part in DECIMALS[kind]]
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    if kind == "whole numbers too":
        parts.append(parts[0].set_column(0, "q", pa.array([BIG, BIG + 1, BIG + 1])))
        pq.write_table(parts[1], tmp_path / "whole.parquet")
    ids = [one for part in parts for one in part["q"].to_pylist()]
    X, y = (np.concatenate([part[name].to_numpy() for part in parts]) for name in "xy")
    wanted = RankRLS().fit(X[:, None], y, qid=ids)
    table = scan(tmp_path, label="y", qid="q")
    found = RankRLS().fit(table)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)
    assert Pairgram.from_rows(table).n_queries == len(set(ids))
    kept = pa.concat_tables(pairgram.predict(found, table, keep=["q"]))
    assert kept["q"].to_pylist() == ids


def test_decimal_ids_are_those_of_other_numbers():
    ids = [1, decimal.Decimal("1.5"), decimal.Decimal("0.10"), BIG + 1]
    same = [decimal.Decimal("1.00"), 1.5, decimal.Decimal("0.1000"), decimal.Decimal(BIG + 1)]
    hashes = [hash_ids(np.array(one, object)) for one in (ids, same)]
    assert (hashes[0] == hashes[1]).all()
    assert hash_ids(np.array([0.1], object))[0] != hashes[0][2]


def test_relations_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    mixed = ROWS.frame.take(np.random.default_rng(0).permutation(len(ROWS.y)))
    pq.write_table(mixed, tmp_path / "rows.parquet")
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT * FROM '{tmp_path}/rows.parquet' ORDER BY query")
        check(scan(relation, **NAMES))
        with pytest.raises(TypeError, match=r"as often as it is asked.*got RecordBatchReader"):
            scan(pa.RecordBatchReader.from_stream(relation), **NAMES)


class OnlyArrow:
    """Rows of a package that nobody here knows."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.frame.__arrow_c_stream__(requested_schema)


def test_what_speaks_arrow():
    check(scan(OnlyArrow(), **NAMES))
    check(scan(lambda: iter([OnlyArrow()]), **NAMES))


def test_tables_of_deltalake(tmp_path):
    """Rows that were deleted do not count, nor those of a version that came later."""
    deltalake = pytest.importorskip("deltalake")
    half = int(np.searchsorted(ROWS.qid != ROWS.qid[0], True))  # files have no order of their own
    deltalake.write_deltalake(tmp_path / "rows", ROWS.frame.slice(0, half))
    deltalake.write_deltalake(tmp_path / "rows", ROWS.frame.slice(half), mode="append")
    deltalake.write_deltalake(tmp_path / "rows", ROWS.frame.slice(0, 9), mode="overwrite")
    check(scan(deltalake.DeltaTable(tmp_path / "rows", version=1), **NAMES))


def test_tables_of_pyiceberg(tmp_path):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    named = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri()}
    catalog = catalogs.SqlCatalog("own", **named)
    catalog.create_namespace("here")
    table = catalog.create_table("here.rows", schema=ROWS.frame.schema)
    table.append(ROWS.frame)
    check(scan(table, **NAMES))
    check(scan(table.scan(row_filter="query >= 0"), **NAMES))


def test_folders_whose_names_are_one_number_are_refused(tmp_path):
    for name in ("007", "7", "8"):
        (tmp_path / f"q={name}").mkdir()
        rows = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 2.0]})
        rows.to_parquet(tmp_path / f"q={name}" / "rows.parquet")
    with pytest.raises(ValueError, match="the folders q=007 and q=7 have one value, 7"):
        scan(tmp_path, label="y", qid="q")
    (tmp_path / "q=7").rename(tmp_path / "q=009")
    assert scan(tmp_path, label="y", qid="q").survey().n_queries == 3
