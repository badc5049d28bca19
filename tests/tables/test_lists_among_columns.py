"""Columns of lists beside others: each entry is a feature, in every fit, file and prediction."""

import numpy as np
import pytest

from pairgram import Cross, Pairgram, RankRLS, RankRLSCV, load_model, scan

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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

    return pa.table(
        {
            "y": y,
            "age": X[:, 0],
            "user": lists(X[:, 1:4]),
            "q": query,
            "price": X[:, 4],
            "item": lists(X[:, 5:]),
        }
    )


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
    pytest.importorskip(package)
    frame = frame_of(*rows)
    if package == "polars":
        import polars

        frame = polars.from_arrow(frame)
        frame = frame.with_columns(item=frame["item"].cast(polars.Array(polars.Float64, 2)))
    else:
        frame = frame.to_pandas()
    table = scan(frame, **NAMES)
    assert table.feature_names == ENTRIES
    np.testing.assert_array_equal(np.vstack(list(table.each(lambda part: part.X))), rows[0])


def test_statistics_and_grouped_rows(rows):
    X, y, query = rows
    mixed = np.random.default_rng(1).permutation(len(y))
    grouped = scan(frame_of(X[mixed], y[mixed], query[mixed]), **NAMES, group_queries=True)
    table = scan(frame_of(*rows), **NAMES)
    model = RankRLS(feature_map=cross()).fit(table)
    np.testing.assert_allclose(
        RankRLS(feature_map=cross()).fit(grouped).coef_, model.coef_, atol=1e-10
    )
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
    assert named.layout.features == ("age", "user", "price", "item")
    np.testing.assert_array_equal(loaded.predict(named), wanted)


def test_missing_numbers(rows):
    X, y, query = rows
    gaps = X.copy()
    gaps[5, 2] = gaps[9, 4] = np.nan
    with pytest.raises(ValueError, match=r"row 5, .*: column 'user\[1\]' has a missing value"):
        RankRLS(feature_map=cross()).fit(scan(frame_of(gaps, y, query), **NAMES))
    table = scan(frame_of(gaps, y, query), **NAMES, missing="mean")
    model = RankRLS().fit(table)
    filled = np.where(np.isnan(gaps), np.nanmean(gaps, axis=0), gaps)
    np.testing.assert_allclose(model.coef_, RankRLS().fit(filled, y, qid=query).coef_, atol=1e-10)
    wrong = X.copy()
    wrong[3, 6] = np.inf
    with pytest.raises(ValueError, match=r"row 3, .*: column 'item\[1\]' must be finite, got inf"):
        RankRLS().fit(scan(frame_of(wrong, y, query), **NAMES))


def test_lists_of_other_lengths(rows):
    frame = frame_of(*rows)
    lists = frame["user"].to_pylist()
    lists[4] = lists[4][:2]
    uneven = frame.set_column(2, "user", pa.array(lists))
    with pytest.raises(
        ValueError, match=r"row 4, .*: column 'user' must hold lists of 3 numbers, got 2 numbers"
    ):
        RankRLS().fit(scan(uneven, **NAMES))
    model = RankRLS(feature_map=cross()).fit(scan(frame, **NAMES))
    short = frame.set_column(2, "user", pa.array([one[:2] for one in frame["user"].to_pylist()]))
    message = "column 'user' of the table must hold lists of 3 numbers, as in the fit, got lists"
    with pytest.raises(ValueError, match=f"{message} of 2 numbers"):
        model.predict(scan(short))
    with pytest.raises(ValueError, match=f"{message} of 2 numbers"):
        scan(short, features=model.feature_names_in_)
    single = frame.set_column(2, "user", frame["age"])
    with pytest.raises(ValueError, match="lists of 3 numbers, as in the fit, got numbers"):
        model.predict(scan(single))
    with pytest.raises(ValueError, match="lists of 3 numbers, as in the fit, got numbers"):
        scan(single, features=model.feature_names_in_)
    with pytest.raises(ValueError, match="lists of 1 numbers, as in the fit, got numbers"):
        scan(single, features=["age[0]"])
    with pytest.raises(ValueError, match=r"there is no column 'user\[2\]'"):
        scan(frame, features=["user[0]", "user[2]"])
    plain = RankRLS().fit(scan(single, **NAMES))
    with pytest.raises(ValueError, match=r"'user' .* must hold numbers, as in the fit, got lists"):
        plain.predict(scan(frame))


def test_bad_lists(rows):
    frame = frame_of(*rows)
    lists = frame["user"].to_pylist()
    lists[1] = None
    with pytest.raises(ValueError, match="'user' must hold lists of 3 numbers, got a missing"):
        RankRLS().fit(scan(frame.set_column(2, "user", pa.array(lists)), **NAMES))
    empty = pa.array([[]] * len(lists), pa.list_(pa.float64()))
    with pytest.raises(ValueError, match="column 'user' must hold lists of one number or more"):
        scan(frame.set_column(2, "user", empty), **NAMES)
    text = frame.set_column(2, "user", pa.array([["a"]] * len(rows[1])))
    with pytest.raises(ValueError, match="column 'user' must hold numbers, got lists"):
        scan(text, **NAMES)


def test_columns_with_such_names_stay_columns(rows):
    X, y, query = rows
    frame = pa.table({"y": y, "q": query, "a[0]": X[:, 1], "a[1]": X[:, 4]})
    table = scan(frame, **NAMES)
    model = RankRLS().fit(table)
    assert model.feature_names_in_.tolist() == ["a[0]", "a[1]"]
    others = scan(frame.select(["a[1]", "y", "a[0]"]))
    np.testing.assert_array_equal(model.predict(others), model.predict(table))
