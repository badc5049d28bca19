"""Queries whose rows stand anywhere, against the same rows with those of every query together."""

import os
import tempfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import pairgram
from parts.tables import grouping
from table_sources import COLUMNS, named_frame, same


@pytest.fixture(scope="module")
def rows():
    """Rows in an order without queries, and the stable order by query."""
    X, y, qid = pairgram.make_ranking(40, 25, 5, random_state=0)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(y))
    X, y, qid = X[mixed], y[mixed], qid[mixed]
    return X, y, qid, rng.random(len(y)) + 0.1, np.argsort(qid, kind="stable")


@pytest.fixture
def frame(rows):
    return named_frame(*rows[:4])


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def parquet(frame, tmp_path):
    (tmp_path / "rows").mkdir()
    for number, start in enumerate(range(0, len(frame), 300)):
        piece = pyarrow.Table.from_pandas(frame.iloc[start : start + 300], preserve_index=False)
        pyarrow.parquet.write_table(piece, tmp_path / "rows" / f"{number}.parquet")
    return tmp_path / "rows"


def csv(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def dictionaries(frame, _):
    return pyarrow.Table.from_pandas(frame.assign(q=frame["q"].astype("category")))


def factory(frame, _):
    return lambda: (frame.iloc[start : start + 170] for start in range(0, len(frame), 170))


def dask_frame(frame, _):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame, npartitions=5, sort=False)


SOURCES = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pytest.importorskip("polars").from_pandas(frame),
    "lazy": lambda frame, _: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "dictionaries": dictionaries,
    "parquet": parquet,
    "csv": csv,
    "factory": factory,
    "dask": dask_frame,
}


@pytest.mark.parametrize(
    ("source", "bucket_bytes"),
    [*((source, 1 << 27) for source in SOURCES)]
    + [(source, 8000) for source in ("pandas", "dictionaries", "csv", "dask")],
)
def test_the_model_is_that_of_sorted_rows(
    rows, frame, source, bucket_bytes, tmp_path, folders, set_limits
):
    X, y, qid, weights, _ = rows
    set_limits(bucket_bytes=bucket_bytes)
    set_limits(bucket_bits=2)  # files are spread more than once
    scattered = pairgram.scan(SOURCES[source](frame, tmp_path), **COLUMNS)
    with pytest.raises(ValueError, match=r"do not stand together.*group_queries=True"):
        pairgram.RankRLS().fit(scattered)
    path = tmp_path / "rows"
    given = path if path.exists() else SOURCES[source](frame, tmp_path)
    table = pairgram.scan(given, group_queries=True, **COLUMNS)
    n_files = sum(len(files) for _, _, files in os.walk(folders))
    assert (n_files > 4) == (bucket_bytes == 8000 and source != "dask")
    model = pairgram.RankRLS(pairs=pairgram.Pairs("gain_difference", weighting="queries")).fit(
        table
    )
    arrays = pairgram.RankRLS(pairs=pairgram.Pairs("gain_difference", weighting="queries"))
    same(model.coef_, arrays.fit(X, y, qid=qid, sample_weight=weights).coef_)
    # Scores have the order of the source, as without group_queries.
    same(model.predict(table), arrays.predict(X))
    batches = pairgram.predict(model, table, keep=["row", "q"])
    written = pyarrow.concat_tables(list(batches))
    assert [*map(int, written["row"].to_pylist())] == list(range(len(y)))  # text of CSV
    same(written["score"].to_numpy(), arrays.predict(X))
    expected = pairgram.evaluate(["ndcg@10"], y, arrays.predict(X), qid=qid, sample_weight=weights)
    assert pairgram.evaluate(["ndcg@10"], table, model) == pytest.approx(expected, rel=1e-12)
    del table
    assert not list(folders.glob("pairgram-*"))


@pytest.mark.parametrize("bucket_bytes", [1 << 27, 4000], ids=["memory", "files"])
def test_rows_of_a_query_keep_their_order(rows, frame, bucket_bytes, folders, set_limits):
    set_limits(bucket_bytes=bucket_bytes)
    table = pairgram.scan(frame, group_queries=True, label="row", qid="q", features=["x0"])
    found = []

    def keep(batch):
        found.append((batch.ids.repeat(batch.sizes), batch.y))

    list(table.each(keep))
    ids, numbers = (np.concatenate(part) for part in zip(*found, strict=True))
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    assert len(starts) == frame["q"].nunique()
    inner = np.delete(np.diff(numbers), starts[1:] - 1)
    assert (inner > 0).all()
    by_name = dict(zip(frame["row"], frame["q"], strict=True))
    assert [by_name[number] for number in numbers] == ids.tolist()


@pytest.mark.parametrize("bucket_bytes", [128 << 20, 10_000])
@pytest.mark.parametrize("source", ["ipc", "frame"])
def test_text_of_polars(rows, frame, bucket_bytes, source, tmp_path, folders, set_limits):
    """Its files hold views of text, and dictionaries of them, in columns that nobody needs too."""
    pl = pytest.importorskip("polars")
    set_limits(bucket_bytes=bucket_bytes)
    X, y, qid, _, order = rows
    wanted = pairgram.RankRLS().fit(X[order], y[order], qid=qid[order]).coef_
    own = pl.DataFrame(
        {name: frame[name].to_numpy() for name in ("x0", "x1", "x2", "x3", "x4", "y")}
    )
    names = [f"q{one}" for one in qid]
    own = own.with_columns(
        *(pl.Series(name, names, dtype=kind) for name, kind in kinds_of_text(pl)),
        tags=pl.Series([["a", "b"]] * len(y)),
        bytes=pl.Series([b"a"] * len(y)),
    )
    own.write_ipc(tmp_path / "rows.arrow")
    given = tmp_path / "rows.arrow" if source == "ipc" else own
    for name in ("text", "categories", "choices"):
        named = {"label": "y", "qid": name, "features": [f"x{j}" for j in range(5)]}
        model = pairgram.RankRLS().fit(pairgram.scan(given, group_queries=True, **named))
        np.testing.assert_allclose(model.coef_, wanted, rtol=1e-9)
        scores = pairgram.predict(model, pairgram.scan(given, **named), output=None)
        kept = pyarrow.concat_tables(scores)[name].to_pylist()
        assert kept == names


def kinds_of_text(pl):
    choices = sorted({f"q{one}" for one in range(2000)})
    return [("text", pl.String), ("categories", pl.Categorical), ("choices", pl.Enum(choices))]


@pytest.mark.parametrize("bucket_bytes", [128 << 20, 10_000])
@pytest.mark.parametrize("kind", ["frame", "dask"])
def test_columns_may_have_any_names(rows, frame, kind, bucket_bytes, folders, set_limits):
    """Hashes and places of rows stand in columns of their own meanwhile."""
    set_limits(bucket_bytes=bucket_bytes)
    X, y, qid, _, order = rows
    wanted = pairgram.RankRLS().fit(X[order], y[order], qid=qid[order]).coef_
    taken = ["__pairgram_hash__", "__pairgram_place__"]
    frame = frame.rename(columns=dict(zip(["x1", "x2"], taken, strict=True)))
    if kind == "dask":
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    names = {"label": "y", "qid": "q", "features": ["x0", *taken, "x3", "x4"]}
    model = pairgram.RankRLS().fit(pairgram.scan(frame, group_queries=True, **names))
    np.testing.assert_allclose(model.coef_, wanted, rtol=1e-9)


@pytest.mark.parametrize("bucket_bytes", [1 << 27, 4000], ids=["memory", "files"])
def test_letor_files_and_arrays(rows, bucket_bytes, tmp_path, folders, set_limits):
    X, y, qid, weights, order = rows
    set_limits(bucket_bytes=bucket_bytes)
    expected = pairgram.RankRLS().fit(X, y, qid=qid)
    with open(tmp_path / "train.txt", "w") as file:
        for values, label, name in zip(X, y, qid, strict=True):
            numbers = " ".join(f"{j}:{value!r}" for j, value in enumerate(values.tolist(), 1))
            file.write(f"{int(label)} qid:{name} {numbers}\n")
    table = pairgram.scan(tmp_path / "train.txt", group_queries=True)
    model = pairgram.RankRLSCV(alphas=[expected.alpha]).fit(table)
    same(model.coef_, expected.coef_)
    same(model.predict(table), expected.predict(X))
    pairgram.predict(model, table, output=tmp_path / "scores.parquet")
    written = pyarrow.parquet.read_table(tmp_path / "scores.parquet")
    same(written["score"].to_numpy(), expected.predict(X))

    X_wide = np.hstack([X, np.ones((len(X), 2))])
    wide = pairgram.RankRLS().fit(X_wide, y, qid=qid)
    X_wide[:, -2:] = 0.0
    same(wide.predict(table), wide.predict(X_wide))

    def arrays():
        for piece in np.array_split(np.arange(len(y)), 7):
            yield X[piece].astype(np.float32), y[piece], qid[piece], weights[piece]

    table = pairgram.scan(arrays, group_queries=True)
    found = pairgram.RankSVM(tol=1e-7).fit(table)
    svm = pairgram.RankSVM(tol=1e-7)
    wide = X.astype(np.float32).astype(np.float64)
    svm.fit(wide[order], y[order], qid=qid[order], sample_weight=weights[order])
    assert found.history_["objective"][-1] == pytest.approx(svm.history_["objective"][-1], 1e-6)


def test_missing_values_are_filled_by_the_mean_of_all_rows(rows, frame, folders, set_limits):
    X, y, qid, weights, _ = rows
    set_limits(bucket_bytes=4000)
    holes = frame.copy()
    holes.loc[::3, "x1"] = np.nan
    table = pairgram.scan(holes, missing="mean", group_queries=True, **COLUMNS)
    model = pairgram.RankRLS().fit(table)
    X = X.copy()
    X[::3, 1] = 0
    known = np.arange(len(y)) % 3 > 0
    X[~known, 1] = np.average(X[known, 1], weights=weights[known])
    arrays = pairgram.RankRLS().fit(X, y, qid=qid, sample_weight=weights)
    same(model.coef_, arrays.coef_)
    same(model.predict(table), arrays.predict(X))
    X[~known, 1] = np.median(X[known, 1])
    arrays = pairgram.RankRLS().fit(X, y, qid=qid)
    for source in (holes, parquet(holes, folders)):  # scored where the rows stand
        names = {**COLUMNS, "weight": None, "missing": "median"}
        table = pairgram.scan(source, group_queries=True, **names)
        scores = pairgram.RankRLS().fit(table).predict(table)
        np.testing.assert_allclose(scores, arrays.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("missing", [None, "mean"])
def test_runs_lack_documents_as_in_arrays(rows, frame, tmp_path, missing):
    X, y, qid, weights, _ = rows
    holes = frame.copy()
    holes.loc[700:, "x2"] = np.nan
    X = X.copy()
    known = np.arange(len(y)) < 700
    X[~known, 2] = np.nan if missing is None else np.average(X[known, 2], weights=weights[known])
    ranker = pairgram.RankRLS(inputs="runs")
    arrays = pairgram.RankRLS(inputs="runs").fit(X, y, qid=qid, sample_weight=weights)
    folder = parquet(holes, tmp_path)
    for source in (holes, folder):
        table = pairgram.scan(source, missing=missing, group_queries=True, **COLUMNS)
        same(ranker.fit(table).coef_, arrays.coef_)
    if missing is None:  # which other rankers do not take, of a search too
        table = pairgram.scan(folder, group_queries=True, **COLUMNS)
        for other in (pairgram.RankRLS(), pairgram.RankRLSCV(inputs=["runs", "rank"])):
            with pytest.raises(ValueError, match=r"parquet.*'x2' has a missing value.*'mean'"):
                other.fit(table)


def test_messages_name_the_place_in_the_source(frame, tmp_path):
    frame.loc[700, "x2"] = np.nan
    table = pairgram.scan(parquet(frame, tmp_path), group_queries=True, **COLUMNS)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"2\.parquet, row 100, .*: column 'x2' has a"):
            pairgram.RankRLS().fit(table)
    two = {**COLUMNS, "features": ["x0", "x1"]}
    others = pairgram.RankRLS().fit(pairgram.scan(frame, group_queries=True, **two))
    assert 0 <= pairgram.evaluate("ndcg", table, others)["ndcg"] <= 1  # which does not read x2


def test_a_full_disk_leaves_no_folder(frame, folders, monkeypatch, set_limits):
    set_limits(bucket_bytes=4000)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(grouping, "_written", full)
    with pytest.raises(OSError, match="No space left on device"):
        pairgram.scan(csv(frame, folders), group_queries=True, **COLUMNS)
    assert [path.name for path in folders.iterdir()] == ["rows.csv"]


def test_a_fork_does_not_remove_the_folder(folders):
    folder = grouping._Folder()
    path = folder.path
    grouping._remove(path, os.getpid() + 1)
    assert os.path.isdir(path)
    del folder
    assert not os.path.exists(path)


SHUFFLED = pairgram.QueryKFold(4, shuffle=True, random_state=1)


@pytest.mark.parametrize(
    ("bucket_bytes", "cv", "groups"),
    [
        (128 << 20, 3, None),
        (128 << 20, SHUFFLED, "g"),
        (20_000, 3, "g"),
        (20_000, SHUFFLED, None),
        (4000, 3, None),
        (4000, SHUFFLED, "g"),
    ],
)
def test_folds_are_those_in_memory(
    rows, frame, bucket_bytes, cv, groups, tmp_path, folders, set_limits
):
    X, y, qid, weights, _ = rows
    set_limits(bucket_bytes=bucket_bytes, bucket_bits=2)
    frame["g"] = qid // 3
    table = pairgram.scan(parquet(frame, tmp_path), group_queries=True, groups=groups, **COLUMNS)
    search = pairgram.RankRLSCV([0.1, 100.0], cv=cv, scoring="pairwise_squared_error")
    found = search.fit(table).scores_
    given = {} if groups is None else {"groups": frame["g"]}
    np.testing.assert_allclose(
        found, search.fit(X, y, qid=qid, sample_weight=weights, **given).scores_, rtol=1e-9
    )


def test_the_groups_of_a_file_of_text_are_no_feature(frame, tmp_path):
    frame["day"] = (np.unique(frame["q"], return_inverse=True)[1] * 3) % 5
    frame = frame[["x0", "x1", "y", "q", "day"]]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    named = {"label": "y", "qid": "q", "groups": "day", "group_queries": True}
    tables = [pairgram.scan(one, **named) for one in (tmp_path / "rows.csv", frame)]
    of_text, of_frame = (pairgram.RankRLSCV().fit(table) for table in tables)
    np.testing.assert_allclose(of_text.scores_, of_frame.scores_, rtol=1e-10)
    assert list(of_text.feature_names_in_) == ["x0", "x1"]
    assert "groups 'day'" in repr(tables[0])
