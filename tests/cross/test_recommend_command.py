"""``pairgram recommend``: files of models, users and things, beside the function."""

import csv
from functools import partial

import numpy as np
import pytest

from pairgram import Cross, RankRLS, recommend, scan
from parts.cli import ran

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
csv_of_arrow = pytest.importorskip("pyarrow.csv")

N_USERS, N_ITEMS = 8, 9


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a model and its files to the folder of the test; return the model, users and things."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(N_USERS, 3)), rng.normal(size=(N_ITEMS, 2))
    of_users = {"age": users[:, 0], "taste": pa.array(users[:, 1:].tolist())}
    of_items = {"price": items[:, 0], "year": items[:, 1]}
    place, thing = np.repeat(np.arange(N_USERS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_USERS)
    rows = {name: pa.array(column).take(place) for name, column in of_users.items()}
    rows |= {name: column[thing] for name, column in of_items.items()}
    table = pa.table(rows | {"y": rng.integers(0, 3, len(place)), "q": place})
    model = RankRLS(feature_map=Cross(["age", "taste"], ["price", "year"]))
    model.fit(scan(table, label="y", qid="q"))
    model.save("m.model")
    people = pa.table({"user": [f"u{i}" for i in range(N_USERS)], **of_users, "name": ["x"] * 8})
    things = pa.table({"item": np.arange(N_ITEMS) * 10, **of_items, "title": ["x"] * 9})
    pq.write_table(people, "users.parquet")
    pq.write_table(things, "items.parquet")
    seen = {"user": ["u0", "u3", "u0"], "item": [0, 50, 80], "stars": [1, 2, 3]}
    pq.write_table(pa.table(seen), "seen.parquet")
    return model, people, things


run = partial(ran, "recommend")
ALL = ("m.model", "users.parquet", "items.parquet")


def test_files_have_what_the_function_returns(files, tmp_path):
    model, people, things = files
    exclude = (["u0", "u3", "u0"], [0, 50, 80])
    found = recommend(
        model,
        people.drop(["name"]),
        things.drop(["title"]),
        4,
        user_ids="user",
        item_ids="item",
        exclude=exclude,
    ).to_frame()
    run(*ALL, "--k", 4, "--exclude", "seen.parquet", "-o", "out.parquet")
    written = pq.read_table("out.parquet")
    assert written.column_names == ["user", "rank", "item", "score"]
    for name in written.column_names:
        assert written[name].to_pylist() == found[name].tolist()
    for name, separator in (("out.tsv", "\t"), ("out.csv", ","), ("-", "\t")):
        text, _ = run(*ALL, "-k", 4, "--exclude", "seen.parquet", "-o", name)
        if name != "-":
            text = (tmp_path / name).read_text()
        first, *rest = csv.reader(text.splitlines(), delimiter=separator)
        assert first == ["user", "rank", "item", "score"]
        assert rest == [list(map(str, row)) for row in found.itertuples(index=False)]


def test_one_column_of_lists_is_a_whole_side(files):
    rng = np.random.default_rng(1)
    users, items = rng.normal(size=(5, 2)), pa.array(rng.normal(size=(6, 3)).tolist())
    place, thing = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)
    rows = {"age": users[place, 0], "height": users[place, 1], "embedding": items.take(thing)}
    table = pa.table(rows | {"y": rng.integers(0, 3, 30), "q": place})
    model = RankRLS(feature_map=Cross(["age", "height"], ["embedding"]))
    model.fit(scan(table, label="y", qid="q"))
    model.save("m.model")
    people = pa.table({"user": np.arange(5), "age": users[:, 0], "height": users[:, 1]})
    things = pa.table({"item": np.arange(6), "embedding": items})
    pq.write_table(people, "users.parquet")
    pq.write_table(things, "items.parquet")
    run(*ALL, "-k", 3, "-o", "out.parquet")
    found = recommend(model, people, things, 3, user_ids="user", item_ids="item").to_frame()
    assert pq.read_table("out.parquet")["item"].to_pylist() == found["item"].tolist()


def test_names_of_columns(files):
    _, people, things = files
    pq.write_table(people.rename_columns(["who", *people.column_names[1:]]), "users.parquet")
    import pyarrow.csv

    pyarrow.csv.write_csv(things.rename_columns(["sku", *things.column_names[1:]]), "items.csv")
    pair = ("--user-id", "who", "--item-id", "sku")
    text, _ = run("m.model", "users.parquet", "items.csv", *pair)
    rows = [line.split("\t") for line in text.splitlines()]
    assert rows[0] == ["who", "rank", "sku", "score"]
    assert len(rows) == 1 + N_ITEMS * N_USERS and {row[2] for row in rows[1:]} >= {"20", "40"}


def test_pairs_of_others_are_told(files):
    pq.write_table(pa.table({"user": ["u0", "u99"], "item": [0, 0]}), "seen.parquet")
    text, note = run(*ALL, "--exclude", "seen.parquet", "-k", N_ITEMS)
    assert "seen.parquet has 1 pair of a user or an item that is in neither file" in note
    assert "'u99'" in note
    assert sum(line.startswith("u0\t") for line in text.splitlines()) == N_ITEMS - 1


def test_users_without_columns(files):
    _, people, things = files
    rng = np.random.default_rng(1)
    frame = things.select(["price", "year"])
    RankRLS().fit(frame, rng.integers(0, 3, N_ITEMS)).save("of_things.model")
    pq.write_table(people.select(["user"]), "users.parquet")
    text, _ = run("of_things.model", "users.parquet", "items.parquet", "-k", 1)
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    assert [row[0] for row in rows] == [f"u{i}" for i in range(N_USERS)]
    assert len({row[2] for row in rows}) == 1


def test_ids_of_any_text_and_of_times(files):
    people = files[1]
    ids = [f"a{end}b{i}" for i, end in zip(range(N_USERS), ["\n", "\r", ",", '"'] * 2, strict=True)]
    pq.write_table(people.set_column(0, "user", pa.array(ids)), "odd.parquet")
    run("m.model", "odd.parquet", "items.parquet", "--k", 1, "-o", "odd.csv")
    with open("odd.csv", newline="") as file:
        assert [row["user"] for row in csv.DictReader(file)] == ids
    times = pa.array(np.arange(N_USERS) * 10**18, pa.timestamp("ns"))
    pq.write_table(people.set_column(0, "user", times), "times.parquet")
    for ending in ("parquet", "csv"):
        output = f"of_times.{ending}"
        run("m.model", "times.parquet", "items.parquet", "--k", 1, "-o", output)
        read = pq.read_table if ending == "parquet" else csv_of_arrow.read_csv
        assert read(output)["user"].cast(pa.timestamp("ns")).to_pylist() == times.to_pylist()
