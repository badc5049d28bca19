"""Columns of lists beside others: each entry is a feature, in every fit, file and prediction."""

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairgram import Cross, Fill, Pairgram, RankRLS, RankRLSCV, load_model, scan

N_QUERIES, SIZE = 12, 7
NAMES = {"label": "y", "qid": "q"}
LEFT, RIGHT = ["age", "user"], ["price", "item"]
ENTRIES = ["age", "user[0]", "user[1]", "user[2]", "price", "item[0]", "item[1]"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = N_QUERIES * SIZE
    query = np.repeat(np.arange(N_QUERIES), SIZE)
    X = rng.normal(size=(n, 7))
    X[:, :4] = rng.normal(size=(N_QUERIES, 4))[query]
    y = np.digitize((X[:, 1:3] * X[:, 5:]).sum(axis=1) + X[:, 4], [-1.0, 1.0]).astype(float)
    return X, y, query


def frame_of(X, y, query, kind=pa.list_):
    def lists(block):
        return pa.array(block.tolist(), kind(pa.float64()))

    columns = [y, X[:, 0], lists(X[:, 1:4]), query, X[:, 4], lists(X[:, 5:])]
    return pa.table(columns, ["y", "age", "user", "q", "price", "item"])


def cross(**named):
    return Cross(LEFT, RIGHT, **named)


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list], ids=["list", "large"])
def test_a_fit_is_that_of_the_entries(rows, tmp_path, kind):
    X, y, query = rows
    frame = frame_of(*rows, kind)
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=20)
    reference = RankRLSCV(feature_map=Cross([0, 1, 2, 3], [4, 5, 6])).fit(X, y, qid=query)
    for source in (frame, tmp_path / "rows.parquet", lambda: iter([frame])):
        table = scan(source, **NAMES)
        assert table.feature_names == ENTRIES
        model = RankRLSCV(feature_map=cross()).fit(table)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-10)
        assert model.feature_names_in_.tolist() == ENTRIES
        np.testing.assert_allclose(model.predict(table), reference.predict(X), atol=1e-10)
    names = model.feature_map_.get_feature_names_out(ENTRIES)
    assert "user[2] × item[1]" in names.tolist()
    assert model.feature_map_.left_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames(rows, package):
    frame = frame_of(*rows)
    if package == "polars":
        frame = polars.from_arrow(frame)
        frame = frame.with_columns(item=frame["item"].cast(polars.Array(polars.Float64, 2)))
    else:
        frame = frame.to_pandas()
    table = scan(frame, **NAMES)
    assert table.feature_names == ENTRIES
    np.testing.assert_array_equal(np.vstack(list(table.each(lambda part: part.X))), rows[0])


def test_statistics(rows):
    table = scan(frame_of(*rows), **NAMES)
    model = RankRLS(feature_map=cross()).fit(table)
    total = Pairgram.from_rows(table, feature_map=cross())
    np.testing.assert_allclose(total.solve(1.0), model.coef_, atol=1e-9)
    assert total.feature_names_in_ == ENTRIES


def test_saved_models_find_their_columns(rows, tmp_path):
    frame = frame_of(*rows)
    model = RankRLS(feature_map=cross(keep=["user[0]"])).fit(scan(frame, **NAMES))
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    wanted = model.predict(scan(frame, **NAMES))
    others = frame.append_column("stars", frame["y"]).select(
        ["item", "stars", "user", "price", "age"]
    )
    np.testing.assert_array_equal(loaded.predict(scan(others)), wanted)
    named = scan(others, features=loaded.feature_names_in_)
    assert list(named.layout.features) == ["age", "user", "price", "item"]
    np.testing.assert_array_equal(loaded.predict(named), wanted)


def test_missing_numbers(rows):
    X, y, query = rows
    gaps = X.copy()
    gaps[5, 2] = gaps[9, 4] = np.nan
    table = scan(frame_of(gaps, y, query), **NAMES)
    model = RankRLS(feature_map=Fill()).fit(table)
    filled = np.where(np.isnan(gaps), np.nanmean(gaps, axis=0), gaps)
    np.testing.assert_allclose(model.coef_, RankRLS().fit(filled, y, qid=query).coef_, atol=1e-10)


def test_columns_with_such_names_stay_columns(rows):
    X, y, query = rows
    frame = pa.table({"y": y, "q": query, "a[0]": X[:, 1], "a[1]": X[:, 4]})
    table = scan(frame, **NAMES)
    model = RankRLS().fit(table)
    assert model.feature_names_in_.tolist() == ["a[0]", "a[1]"]
    others = scan(frame.select(["a[1]", "y", "a[0]"]))
    np.testing.assert_array_equal(model.predict(others), model.predict(table))
