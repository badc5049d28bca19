"""The command line on tables: Parquet, CSV and TSV files, and patterns of LETOR files."""

import json
import os
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import forks
import shop
from pairgram import (
    AutoRanker,
    ELMRankCV,
    Kernel,
    PairwiseELMCV,
    RandomFourier,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    dump_letor,
    evaluate,
    export,
    load_model,
    make_ranking,
    predict,
    save_model,
    scan,
)
from parts.cli import error, ran as run, report
from row_value import fill_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ["b", "a", "c", "d"]
COLUMNS = ("--label", "relevance", "--qid", "query_id")
FEATURES = ("--features", ",".join(NAMES))


def write(path, X, y, qid, first=0):
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    documents = [f"d{first + i}" for i in range(len(y))]
    pq.write_table(pa.table(columns | {"relevance": y, "query_id": qid, "doc": documents}), path)


@pytest.fixture(scope="module")
def data():
    return make_ranking(40, (4, 9), 4, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """Two files, cut in the middle of a query, and a validation file."""
    folder = tmp_path_factory.mktemp("tables")
    X, y, qid = data
    (folder / "data").mkdir()
    cut = int(np.searchsorted(qid, 13)) + 2
    for name, rows in (("1", slice(0, cut)), ("2", slice(cut, None))):
        write(folder / "data" / f"{name}.parquet", X[rows], y[rows], qid[rows], rows.start)
    write(folder / "vali.parquet", *make_ranking(20, 6, 4, random_state=1))
    return folder


@pytest.fixture(scope="module")
def model_file(folder):
    path = folder / "m.safetensors"
    RankRLS(2.0).fit(table_of(folder)).save(path)
    return path


def table_of(folder, name="data", **options):
    return scan(folder / name, label="relevance", qid="query_id", features=NAMES, **options)


@pytest.mark.parametrize("name", ["data", "data/*.parquet"])
def test_train_fits_what_the_library_does(folder, data, tmp_path, name):
    output, notes = run("train", folder / name, *COLUMNS, *FEATURES, "-o", tmp_path / "m", "--json")
    want = RankRLSCV(pairs=["with_ties", "without_ties"]).fit(table_of(folder))
    model, found = load_model(tmp_path / "m"), json.loads(output)
    np.testing.assert_array_equal(model.coef_, want.coef_)
    assert model.feature_names_in_.tolist() == NAMES
    assert (found["n_rows"], found["n_queries"], found["model"]) == (len(data[1]), 40, "rankrls")
    assert (found["score"], found["held_out"]) == (want.best_score_, "leave-query-out")
    assert notes == ""


@pytest.mark.parametrize(
    ("options", "make"),
    [
        ("--model ranksvm --valid", RankSVMCV()),
        ("--pairs with_ties --valid", RankRLSCV(pairs=["with_ties"])),
        (
            "--model elm-pairwise --nodes 9 --feature-map minmax --valid",
            PairwiseELMCV(n_nodes=9, random_state=0, feature_map=["minmax"]),
        ),
        (
            "--model rank-fourier --components 9 --gamma 0.5 --Cs 0.1,1",
            RankSVMCV([0.1, 1.0], feature_map=[RandomFourier(9, gamma=0.5, random_state=0)]),
        ),
    ],
)
def test_train_with_a_validation_table_or_folds(folder, tmp_path, options, make):
    valid = folder / "vali.parquet" if "--valid" in options else None
    given = [*COLUMNS, *FEATURES, *options.split(), *([] if valid is None else [valid])]
    said, notes = run("train", folder / "data", *given, "-o", tmp_path / "m", "--json")
    held = None if valid is None else table_of(folder, "vali.parquet")
    want, found = make.fit(table_of(folder), validation=held), json.loads(said)
    np.testing.assert_array_equal(load_model(tmp_path / "m").coef_, want.coef_)
    assert (found["held_out"], found["score"]) == (str(valid or "5 folds"), want.best_score_)
    assert notes == ""


def test_missing_features_take_the_mean_that_the_model_keeps(tmp_path, data):
    X, y, qid = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    write(tmp_path / "a.parquet", X, y, qid)
    given = ("train", tmp_path / "a.parquet", *COLUMNS, *FEATURES, "-o", tmp_path / "m")
    run(*given, "--missing", "mean")
    means = np.nanmean(X, axis=0)
    np.testing.assert_allclose(fill_of(load_model(tmp_path / "m")), means, rtol=1e-13)
    output, _ = run("predict", tmp_path / "m", tmp_path / "a.parquet")
    want = np.where(np.isnan(X), means, X) @ load_model(tmp_path / "m").coef_
    np.testing.assert_allclose(np.array(output.split(), float), want, rtol=1e-12, atol=1e-14)
    shown = json.loads(run("inspect", tmp_path / "m", "--json")[0])
    assert shown["parameters"]["feature_map"] == "Fill()"


@pytest.mark.parametrize("model", ["auto", "elmrank", "ranksvm"])
def test_models_that_read_tables_as_a_whole_fill_as_others_do(model, tmp_path, data):
    X, y, qid = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    write(tmp_path / "a.parquet", X[qid < 20], y[qid < 20], qid[qid < 20])
    write(tmp_path / "b.parquet", X[qid >= 20], y[qid >= 20], qid[qid >= 20])
    given = ("train", tmp_path / "a.parquet", *COLUMNS, *FEATURES, "--missing", "median")
    run(*given, "--valid", tmp_path / "b.parquet", "--model", model, "-o", tmp_path / "m")
    medians = np.nanmedian(X[qid < 20], axis=0)
    np.testing.assert_allclose(fill_of(load_model(tmp_path / "m")), medians, rtol=1e-14)


def test_predict_writes_parquet_with_columns_of_the_table(folder, model_file, tmp_path):
    want = load_model(model_file).predict(table_of(folder))
    for options, columns in (
        ((), ["score"]),
        (("--qid", "query_id"), ["query_id", "score"]),
        (("--keep", "doc,query_id"), ["doc", "query_id", "score"]),
    ):
        run("predict", model_file, folder / "data", "-o", tmp_path / "s.parquet", *options)
        scores = pq.read_table(tmp_path / "s.parquet")
        assert scores.column_names == columns
        np.testing.assert_array_equal(scores["score"].to_numpy(), want)
    assert scores["doc"].to_pylist() == [f"d{i}" for i in range(len(want))]
    run("predict", model_file, folder / "data", "--output", tmp_path / "s.txt")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "s.txt"), want)


def test_evaluate(folder, model_file):
    output, _ = run("evaluate", folder / "data", "--model", model_file, *COLUMNS, "--json")
    found = json.loads(output)
    names = ["ndcg@10", "map"]
    want = evaluate(names, table_of(folder), load_model(model_file))
    assert {name: found["metrics"][name] for name in names} == pytest.approx(want, rel=1e-14)
    assert found["n_queries"] == 40
    assert "40 queries" in run("evaluate", folder / "data", "--model", model_file, *COLUMNS)[0]


def test_patterns_of_letor_files_are_tables(tmp_path, data):
    X, y, qid = data
    X = X.copy()
    X[qid >= 20, 3] = 0.0  # which the second file does not name
    for name, rows in (("1", qid < 20), ("2", qid >= 20)):
        dump_letor(tmp_path / f"{name}.txt", X[rows], y[rows], qid=qid[rows])
    pattern, valid = tmp_path / "[1-2].txt", ("--valid", tmp_path / "2.txt")
    run("train", pattern, "-o", tmp_path / "m", "--pairs", "with_ties", *valid)
    model = load_model(tmp_path / "m")
    held = (X[qid >= 20], y[qid >= 20], qid[qid >= 20])
    want = RankRLSCV(pairs=["with_ties"]).fit(X, y, qid=qid, validation=held)
    np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-9)
    output, _ = run("predict", tmp_path / "m", tmp_path / "[2].txt")
    np.testing.assert_array_equal(np.array(output.split(), float), model.predict(X[qid >= 20]))
    run("predict", tmp_path / "m", tmp_path / "2.txt", "-o", tmp_path / "s.parquet")
    assert pq.read_table(tmp_path / "s.parquet").column_names == ["qid", "score"]


def test_compare_takes_tables_and_parquet_files_of_scores(folder, data, tmp_path):
    X, y, qid = data
    dump_letor(tmp_path / "rows.txt", X, y, qid=qid)
    np.savetxt(tmp_path / "a.scores", X[:, 0], "%.17g")
    np.savetxt(tmp_path / "b.scores", X[:, 1], "%.17g")
    pq.write_table(pa.table({"doc": np.arange(len(y)), "score": X[:, 1]}), tmp_path / "b.parquet")
    texts, mixed = (
        ("--json", tmp_path / "a.scores", tmp_path / b) for b in ("b.scores", "b.parquet")
    )

    def numbers(*arguments):
        found = json.loads(run("compare", *arguments)[0].replace("b.parquet", "b.scores"))
        return found.pop("file"), found

    file, want = numbers(tmp_path / "rows.txt", *texts)
    assert file == str(tmp_path / "rows.txt")
    assert numbers(tmp_path / "rows.txt", *mixed) == (file, want)
    for scores in (texts, mixed):
        found = numbers(folder / "data" / "*.parquet", *COLUMNS, *scores)
        assert found == (str(folder / "data" / "*.parquet"), want)
    evaluated = ("evaluate", tmp_path / "rows.txt", "--scores")
    assert run(*evaluated, tmp_path / "b.parquet") == run(*evaluated, tmp_path / "b.scores")


@pytest.mark.parametrize("prior", [False, True])
def test_a_letor_file_has_its_features_in_the_order_of_the_models_columns(tmp_path, prior):
    X, y, qid = make_ranking(20, 8, 4, random_state=0)
    frame = pd.DataFrame(X, columns=NAMES)
    before = FrozenEstimator(RankRLS().fit(frame, y, qid=qid)) if prior else None
    model = RankRLS(prior=before).fit(frame, y, qid=qid)
    model.save(tmp_path / "m.safetensors")
    dump_letor(tmp_path / "rows.txt", X, y, qid=qid)
    note = (
        f"pairgram: note: {tmp_path / 'rows.txt'} has no names of columns: its features are taken "
        "in the order of the model's columns\n"
    )
    text, said = run("predict", tmp_path / "m.safetensors", tmp_path / "rows.txt")
    np.testing.assert_array_equal(np.array(text.split(), float), model.predict(frame))
    assert said == note
    evaluated = run("evaluate", tmp_path / "rows.txt", "--model", tmp_path / "m.safetensors")
    assert evaluated[1] == note


def test_an_extra_that_is_missing_is_named(folder, model_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    assert "pip install 'pairgram[parquet]'" in error("predict", model_file, folder / "data")
    dump_letor(tmp_path / "a.txt", *make_ranking(3, 3, 4, random_state=0)[:2])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    model = RankRLS().fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ImportError, match=r"pairgram\[parquet\]"):
        predict(model, scan(tmp_path / "a.txt"), output=tmp_path / "s.parquet")


def test_rows_are_counted_on_a_terminal(folder, data, monkeypatch):
    shown = []

    class Terminal:
        def isatty(self):
            return True

        def write(self, text):
            shown.append(text)

        def flush(self):
            pass

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with report.passes() as watch:
        RankRLSCV().fit(watch(table_of(folder)))
    text = "".join(shown)
    n_rows = len(data[1])
    assert f"{n_rows:,} rows read" in text and text.count(f"{3 * n_rows:,} rows read") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is POSIX")
def test_interrupting_leaves_no_file(tmp_path, model_file, data):
    X, y, qid = data
    for i in range(9):
        write(tmp_path / f"{i}.parquet", X, y, qid + 100 * i)
    output = tmp_path / "out"
    output.mkdir()
    code = (  # interrupts itself while it writes, and would then wait until the test is over
        # Where a shell runs the tests in the background, they and what they start ignore SIGINT.
        f"{forks.in_folder(tmp_path)}"
        "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pairgram.tables import table_scores\n"
        "def scored(*given):\n"
        f"    print(len(os.listdir({str(output)!r})))\n"
        "    os.kill(os.getpid(), signal.SIGINT); time.sleep(60); yield\n"
        "table_scores._tables = scored\n"
        "from pairgram.cli import main; main()"
    )
    command = ("predict", model_file, tmp_path / "*.parquet", "-o", output / "s.parquet")
    process = forks.start(code, *command)
    process.join()
    assert process.exitcode == 130
    assert (tmp_path / "printed").read_text() == "1\n"
    assert (tmp_path / "said").read_text() == "pairgram: interrupted\n"
    assert os.listdir(output) == []


@pytest.mark.parametrize("command", ["train", "predict"])
def test_an_output_that_the_table_reads(tmp_path, data, model_file, command):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "p0.parquet"
    write(path, *data)
    before = path.read_bytes()
    model = [model_file] if command == "predict" else []
    columns = COLUMNS if command == "train" else COLUMNS[2:]
    said = error(command, *model, tmp_path / "data", *columns, *FEATURES, "-o", path)
    assert said == f"--output must not be a file that the table reads, got {path}"
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["label", "missing", "features", "qid"])
def test_files_named_like_options(folder, tmp_path, monkeypatch, name):
    table = pq.read_table(folder / "vali.parquet")
    number = table.schema.get_field_index("a")
    holes = pa.array([None, *table["a"].to_pylist()[1:]], table.schema.field("a").type)
    monkeypatch.chdir(tmp_path)
    pq.write_table(table.set_column(number, "a", holes), f"{name}.parquet")
    message = error(
        *("train", f"{name}.parquet", *COLUMNS, *FEATURES, "--model", "rankrls", "-o", "m")
    )
    assert message.startswith(
        f"{name}.parquet, row 0, counted from 0: column 'a' has a missing value"
    )


def test_columns_that_are_no_features_are_left_out_of_training(folder, tmp_path):
    data, models = folder / "data", (tmp_path / "a", tmp_path / "b")
    common = ("train", data, *COLUMNS, "--model", "rankrls")
    run(*common, *FEATURES, "-o", models[0])
    run(*common, "--exclude", "doc", "-o", models[1])
    assert run("predict", models[0], data) == run("predict", models[1], data)
    said = error("predict", models[1], data, "--exclude", "doc")
    assert said == "--exclude is not for this model, which finds its columns by name"
    run(*common, "--exclude", "doc", "--valid", data, "-o", models[1])
    _, note = run(*common, "-o", models[1])
    assert run("predict", models[0], data) == run("predict", models[1], data)
    assert note == (
        "pairgram: note: took 4 columns as features: b, a, c, d; left out doc (text): --features, "
        "--exclude and --missing say otherwise\n"
    )


@pytest.mark.parametrize("model", ["rankrls", "auto --time-budget 1e-6", "ranksvm --Cs 0.1"])
def test_a_first_look_says_what_it_assumes(folder, tmp_path, model):
    """Text and dates are left out, and gaps filled, if nobody said what features are."""
    frame = pd.read_parquet(folder / "data")
    frame.loc[3, "b"] = np.nan
    frame["day"] = pd.Timestamp("2024-05-01")
    frame.to_parquet(tmp_path / "shop.parquet")
    given = ("train", tmp_path / "shop.parquet", *COLUMNS, "--model", *model.split())
    filled = ("; missing values count as the mean of their column: --features, --exclude and "
              "--missing say otherwise")  # fmt: skip
    said = f"took 4 columns as features: b, a, c, d; left out doc (text), day (times){filled}"
    _, note = run(*given, "-o", tmp_path / "m")
    assert note == f"pairgram: note: {said}\n"
    _, note = run(*given, "--exclude", "a,doc", "-o", tmp_path / "n")  # the rest is assumed alike
    said = f"took 3 columns as features: b, c, d; left out day (times){filled}"
    assert note == f"pairgram: note: {said}\n"
    run(*given, *FEATURES, "--missing", "mean", "-o", tmp_path / "n")
    one, other = (run("predict", tmp_path / name, tmp_path / "shop.parquet") for name in "mn")
    assert one == other


def test_tables_with_long_tails_try_other_scales(folder, tmp_path):
    frame = pd.read_parquet(folder / "data").assign(b=lambda one: np.exp(9 * one["b"]))
    frame.loc[3, "a"] = np.nan
    frame.to_parquet(tmp_path / "tails.parquet")
    given = (
        "train",
        tmp_path / "tails.parquet",
        *COLUMNS,
        "--exclude",
        "doc",
        "-o",
        tmp_path / "m",
    )
    found = json.loads(run(*given, "--json")[0])
    kind = found["params"]["feature_map"]
    assert kind in ("standard", "quantile") and found["score"] > found["raw_columns"]
    alone = json.loads(run(*given, "--json", "--feature-map", kind)[0])
    assert alone["score"] == pytest.approx(found["score"], rel=1e-12)


def test_files_separated_by_tabs_are_tables(folder, data, tmp_path):
    for name in ("rows.tsv", "rows.csv"):
        frame = pd.read_parquet(folder / "data")
        frame.to_csv(tmp_path / name, sep="\t" if name == "rows.tsv" else ",", index=False)
    tabs, commas = tmp_path / "rows.tsv", tmp_path / "rows.csv"
    for file in (tabs, commas):
        run("train", file, *COLUMNS, *FEATURES, "--model", "rankrls", "-o", file.with_suffix(".m"))
    model = tabs.with_suffix(".m")
    assert run("predict", model, tabs) == run("predict", commas.with_suffix(".m"), commas)
    common = ("--model", model, *COLUMNS, "--json")
    found, wanted = (json.loads(run("evaluate", file, *common)[0]) for file in (tabs, commas))
    assert found["metrics"] == wanted["metrics"]
    validated = tmp_path / "valid.m"
    run("train", tabs, *COLUMNS, *FEATURES, "--model", "rankrls", "--valid", tabs, "-o", validated)
    assert validated.exists()


@pytest.mark.parametrize("name", ["s.txt", "s.parquet", "s.csv", "s.tsv", "s.arrow"])
def test_scores_of_a_table_are_evaluated(folder, model_file, tmp_path, name):
    data, scores = folder / "data", tmp_path / name
    run("predict", model_file, data, "-o", scores)
    given = ("evaluate", data, *COLUMNS, "--json", "--per-query")
    found = json.loads(run(*given, "--scores", scores)[0])
    wanted = json.loads(run(*given, "--model", model_file)[0])
    assert found["metrics"] == pytest.approx(wanted["metrics"], rel=1e-12)
    assert found["queries"] == wanted["queries"]
    assert (found["n_rows"], found["n_queries"]) == (wanted["n_rows"], wanted["n_queries"])
    rows = pd.read_parquet(data).sample(frac=1, random_state=0)  # queries may be scattered
    rows.to_parquet(tmp_path / "mixed.parquet")
    run("predict", model_file, tmp_path / "mixed.parquet", "-o", scores)
    given = ("evaluate", tmp_path / "mixed.parquet", *COLUMNS, "--json", "--scores", scores)
    assert json.loads(run(*given)[0])["metrics"] == pytest.approx(wanted["metrics"], rel=1e-12)


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_times_are_ids_of_queries(folder, model_file, tmp_path, unit):
    frame = pd.read_parquet(folder / "data")
    frame["query_id"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["query_id"], "h")
    frame["query_id"] = frame["query_id"].astype(f"datetime64[{unit}]")
    data, scores = tmp_path / "times.parquet", tmp_path / "s.txt"
    frame.to_parquet(data)
    run("predict", model_file, data, "-o", scores)
    given = ("evaluate", data, *COLUMNS, "--json", "--per-query")
    for model in (("--model", model_file), ("--scores", scores)):
        found = json.loads(run(*given, *model)[0])["queries"]
        assert len({one["qid"] for one in found}) == len(found) == 40
        assert found[13]["qid"].startswith("2020-01-01T13:00:00.0")


SMALL = make_ranking(3, 7, 4, random_state=5)


@pytest.fixture
def small(tmp_path):
    """A table of three queries, and one of the first of them."""
    X, y, qid = SMALL
    write(tmp_path / "three.parquet", X, y, qid)
    write(tmp_path / "one.parquet", X[:7], y[:7], qid[:7])
    return tmp_path


@pytest.mark.filterwarnings("ignore:settings are chosen by")
@pytest.mark.parametrize(
    ("model", "make"),
    [
        ("auto", lambda: AutoRanker(time_budget=2.0)),
        ("elmrank", lambda: ELMRankCV(random_state=0)),
    ],
)
def test_a_small_table_is_read_into_memory_for_models_that_need_it(small, model, make):
    budget = ("--time-budget", "2") if model == "auto" else ()
    given = ("train", small / "three.parquet", *COLUMNS, *FEATURES, "--model", model, *budget)
    found = json.loads(run(*given, "-o", small / "m", "--json")[0])
    fitted, wanted = load_model(small / "m"), make().fit(*SMALL[:2], qid=SMALL[2])
    assert (found["n_rows"], found["n_queries"], found["n_features"]) == (21, 3, 4)
    assert found["score"] == pytest.approx(wanted.best_score_)
    rows = pd.DataFrame(SMALL[0], columns=NAMES)
    np.testing.assert_allclose(fitted.predict(rows), wanted.predict(SMALL[0]))
    assert fitted.feature_names_in_.tolist() == NAMES
    run("predict", small / "m", small / "one.parquet")
    valid = ("--valid", small / "one.parquet")
    held = json.loads(run(*given, *valid, "-o", small / "v", "--json")[0])
    assert held["held_out"] == str(small / "one.parquet")


def test_a_table_of_one_query(small):
    """Rows with one id, and rows without ids and --one-query, are held out row by row as arrays."""
    rows = small / "one.parquet"
    frame = pd.read_parquet(rows)
    frame.drop(columns="query_id").to_parquet(small / "bare.parquet")
    frame.drop(columns="query_id").to_csv(small / "bare.csv", index=False)
    X, y = frame[NAMES], frame["relevance"]
    for model, search in (("rankrls", RankRLSCV(pairs="with_ties")), ("ranksvm", RankSVMCV())):
        given = ("--label", "relevance", *FEATURES, "--model", model, "--json")
        if model == "rankrls":
            given = (*given, "--pairs", "with_ties")
        wanted = search.fit(X, y)
        for file, ids in (
            (rows, COLUMNS[2:]),
            (small / "bare.parquet", ("--one-query",)),
            (small / "bare.csv", ("--one-query",)),
        ):
            trained = json.loads(run("train", file, *given, *ids, "-o", small / "m")[0])
            assert (trained["n_rows"], trained["n_queries"]) == (7, 1)
            assert trained["score"] == pytest.approx(wanted.best_score_)
            np.testing.assert_allclose(load_model(small / "m").predict(X), wanted.predict(X))
    scored = ("evaluate", small / "bare.csv", "--label", "relevance", "--one-query")
    by_model = (*scored, "--model", small / "m", "--metric", "kendall", "--json")
    found = json.loads(run(*by_model, "--per-query")[0])
    want = evaluate("kendall", y, wanted.predict(X))["kendall"]
    assert found["metrics"]["kendall"] == pytest.approx(want)
    assert [query["qid"] for query in found["queries"]] == ["all rows"]
    lines = run("predict", small / "m", small / "bare.csv")[0]
    (small / "s").write_text(lines)
    found = json.loads(run(*scored, "--scores", small / "s", "--metric", "kendall", "--json")[0])
    assert found["metrics"]["kendall"] == pytest.approx(want)
    auto = ("train", rows, *COLUMNS, *FEATURES, "--model", "auto", "--time-budget", "2")
    found = json.loads(run(*auto, "-o", small / "m", "--json")[0])
    assert (found["model"], found["n_queries"]) == ("auto", 1)


def test_a_table_of_one_query_may_have_a_kernel(small):
    frame = pd.read_parquet(small / "one.parquet")
    given = ("train", small / "one.parquet", "--label", "relevance", *FEATURES, "--kernel", "rbf")
    run(*given, "--one-query", "--alphas", 1, "--pairs", "with_ties", "-o", small / "m")
    model = load_model(small / "m")
    gamma = model.feature_map_.gamma_
    alone = RankRLS(1.0, feature_map=Kernel("rbf", gamma=gamma)).fit(
        frame[NAMES], frame["relevance"]
    )
    np.testing.assert_allclose(model.predict(frame[NAMES]), alone.predict(frame[NAMES]))


def test_a_table_that_does_not_fit_in_memory_is_told(small, free_memory):
    free_memory(100)
    given = ("train", small / "three.parquet", *COLUMNS, *FEATURES, "-o", small / "m")
    found = error(*given, "--model", "auto")
    assert found.endswith("if they are one query, which reads them in blocks")
    assert not (small / "m").exists()


def test_an_error_of_a_part_of_a_table_names_options(folder, tmp_path, set_limits):
    set_limits(query_bytes=8 * len(NAMES))  # one row
    given = ("train", folder / "data/*.parquet", *COLUMNS, *FEATURES, "-o", tmp_path / "m")
    text = error(*given, "--model", "rankrls")
    assert "1.parquet, rows 0 to " in text and ": query 0 has more than " in text
    assert ": give --qid shorter queries, or take fewer columns" in text


def test_an_export_of_a_model_of_text_is_verified(tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = make_ranking(10, 8, 2, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(s=rng.choice(["red", "blue"], len(y)))
    with config_context(enable_metadata_routing=True):
        columns = ColumnTransformer([("text", OneHotEncoder(), ["s"])], remainder="passthrough")
        model = make_pipeline(columns, RankRLS().set_fit_request(qid=True)).fit(frame, y, qid=qid)
    save_model(model, tmp_path / "m.safetensors")
    rows = frame.assign(qid=qid)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    given = ("export", tmp_path / "m.safetensors", "--to", "solr", "-o", tmp_path / "m.json")
    want = (
        f"of {export.verify(export.to_solr(model, 'model'), model, frame, qid).n_queries} queries"
    )
    for file in (tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        said = run(*given, "--verify", file, "--qid", "qid")[1]
        assert "order changed in 0 " in said and want in said
        assert "in 0 of 1 queries" in run(*given, "--verify", file, "--one-query")[1]


def test_a_pipeline_with_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, new = shop.frame(), shop.others()
    model = shop.fitted("shop", rows)
    save_model(model, "m.safetensors")
    new.insert(0, "doc", [f"d{i}" for i in range(len(new))])
    new["brand"] = new["brand"].replace("", "unknown")  # the empty text of CSV is missing
    wanted = model.predict(new)
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet")
    for file in ("new.csv", "new.parquet"):
        for out in ("o.csv", "o.tsv", "o.parquet"):
            run("predict", "m.safetensors", file, "--keep", "doc", "-o", out)
            reads = {"o.csv": pd.read_csv, "o.parquet": pd.read_parquet}
            found = reads.get(out, partial(pd.read_csv, sep="\t"))(out)
            assert list(found) == ["doc", "score"] and list(found["doc"]) == list(new["doc"])
            np.testing.assert_allclose(found["score"], wanted, atol=1e-12)
        lines = run("predict", "m.safetensors", file)[0].split()
        np.testing.assert_allclose([float(line) for line in lines], wanted, atol=1e-12)
    new.drop(columns="colour").to_csv("less.csv", index=False)
    assert "colour" in error("predict", "m.safetensors", "less.csv")
    judged = ("new.parquet", "--label", "stock", "--one-query", "--metric", "ndcg@10")
    qid = np.zeros(len(new), int)
    expected = evaluate(["ndcg@10"], new["stock"], wanted, qid)
    for scored in (("--scores", "o.parquet"), ("--model", "m.safetensors")):
        out, _ = run("evaluate", *judged, *scored, "--json")
        assert json.loads(out)["metrics"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "held_out", "search"),
    [
        ("rankrls", "leave-group-out", RankRLSCV(pairs=["with_ties", "without_ties"])),
        ("auto", "leave-group-out", None),
        ("ranksvm", "5 folds of groups", RankSVMCV()),
    ],
)
def test_groups_are_held_out(data, tmp_path, model, held_out, search):
    X, y, qid = data
    frame = pd.DataFrame(X, columns=NAMES).assign(relevance=y, query_id=qid, day=qid * 7 % 5)
    frame.to_parquet(tmp_path / "days.parquet")
    options = (*COLUMNS, *FEATURES, "--groups", "day", "--model", model, "--json")
    found = json.loads(run("train", tmp_path / "days.parquet", *options, "-o", tmp_path / "m")[0])
    assert found["held_out"] == held_out
    if search is not None:
        expected = search.fit(X, y, qid=qid, groups=frame["day"]).best_score_
        assert found["score"] == pytest.approx(expected, rel=1e-6)
