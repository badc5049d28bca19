"""Statistics of days on the command line: update, solve and drift."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pairgram as pg
from parts.cli import app, run

COLUMNS = ("--label", "y", "--qid", "q")


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Three days as Parquet files, and their rows."""
    monkeypatch.chdir(tmp_path)
    X, y, qid = pg.make_ranking(30, 8, 4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, q=qid)
    parts = [frame[qid % 3 == day] for day in range(3)]
    for day, part in enumerate(parts):
        part.to_parquet(f"{day}.parquet")
    return parts


def statistics(part):
    return pg.Pairgram.from_rows(part[list("abcd")], part["y"], qid=part["q"])


def test_a_total_of_days_forgets(days):
    run("update", "total", "0.parquet", *COLUMNS)
    found = json.loads(run("update", "total", "1.parquet", *COLUMNS, "--decay", "0.5", "--json"))
    assert found["added_queries"] == 10 and found["n_queries"] == 20
    expected = 0.5 * statistics(days[0]) + statistics(days[1])
    np.testing.assert_allclose(pg.Pairgram.load("total").G, expected.G, rtol=1e-12)
    before = Path("total").read_bytes()
    assert "in both" in run("update", "total", "1.parquet", *COLUMNS, code=2)
    assert "--pairs without_ties: total has with_ties" in run(
        "update", "total", "2.parquet", *COLUMNS, "--pairs", "without_ties", code=2
    )
    assert "want --qid" in run("update", "total", "2.parquet", "--label", "y", code=2)
    assert Path("total").read_bytes() == before
    run("solve", "total", "--alpha", 3, "-o", "model")
    model = pg.load_model("model")
    np.testing.assert_allclose(model.coef_, pg.RankRLS.from_pairgram(expected, 3.0).coef_)
    assert "give --alpha, or the files of two days" in run("solve", "total", "-o", "m", code=2)
    run("update", "other", "0.parquet", *COLUMNS, "--pairs", "none")
    assert pg.Pairgram.load("other").settings.pairs is None


def test_a_total_of_days_with_gaps(days):
    parts = [part.copy() for part in days[:2]]
    for day, part in enumerate(parts):
        part.iloc[day::5, 2] = np.nan
        part.to_parquet(f"{day}.parquet")
    run("update", "total", "0.parquet", *COLUMNS, "--missing", "zero")
    run("update", "total", "1.parquet", *COLUMNS)  # it keeps what takes their place
    run("solve", "total", "--alpha", 3, "-o", "model")
    model, rows = pg.load_model("model"), pd.concat(parts)
    want = pg.RankRLS(3.0, missing="zero").fit(rows[list("abcd")], rows["y"], qid=rows["q"])
    np.testing.assert_allclose(model.predict(rows[list("abcd")]), want.predict(rows[list("abcd")]))
    told = run("update", "total", "2.parquet", *COLUMNS, "--missing", "mean", code=2)
    assert "--missing must be 'zero' or None: statistics do not hold means and medians" in told
    assert "Pairgram(" not in told


def test_a_total_without_a_user(days):
    for day in range(3):
        run("update", "total", f"{day}.parquet", *COLUMNS, "--decay", 0.5)
    whole = pd.concat(days)
    gone = whole[whole["q"] % 5 == 0]
    gone.to_parquet("gone.parquet")
    found = json.loads(run("forget", "total", "gone.parquet", *COLUMNS, "--json"))
    assert (found["forgotten_queries"], found["n_queries"]) == (6, 24)
    assert found["forgotten_rows"] == len(gone)
    expected = pg.Pairgram()
    for part in days:
        left = part[part["q"] % 5 > 0]
        expected = (0.5 * expected).update(left[list("abcd")], left["y"], qid=left["q"])
    np.testing.assert_allclose(pg.Pairgram.load("total").G, expected.G, atol=1e-10)
    before = Path("total").read_bytes()
    assert "not in these statistics" in run("forget", "total", "gone.parquet", *COLUMNS, code=2)
    whole[whole["q"] == 1].iloc[1:].to_parquet("some.parquet")
    assert "cannot subtract" in run("forget", "total", "some.parquet", *COLUMNS, code=2)
    assert "want --qid" in run("forget", "total", "some.parquet", "--label", "y", code=2)
    assert Path("total").read_bytes() == before


def test_a_ridge_is_chosen_by_days(days):
    for day in range(3):
        run("update", f"day{day}", f"{day}.parquet", *COLUMNS)
    files = ("day0", "day1", "day2")
    found = json.loads(run("solve", *files, "-o", "model", "--json"))
    expected = pg.RankRLSCV.from_pairgrams(list(map(statistics, days)))
    assert found["alpha"] == pytest.approx(expected.alpha_)
    assert found["loss"] == pytest.approx(expected.best_score_)
    np.testing.assert_allclose(pg.load_model("model").coef_, expected.coef_, rtol=1e-9)
    options = ("--decays", "0.5,1", "--alphas", "1,10", "--json")
    found = json.loads(run("solve", *files, "-o", "model", *options))
    expected = pg.RankRLSCV.from_pairgrams(
        list(map(statistics, days)), [1.0, 10.0], decays=[0.5, 1.0]
    )
    assert (found["alpha"], found["decay"]) == (expected.alpha_, expected.decay_)
    Path("day0").rename("day10")
    said = CliRunner().invoke(app, ["solve", "day1", "day10", "day2", "-o", "m", "--decays", "1"])
    assert "numbers in their names are not" in said.stderr
    for order in (("day1", "day2", "day10"), ("day10", "day1", "day2")):
        said = CliRunner().invoke(app, ["solve", *order, "-o", "m", "--decays", "1"])
        assert (said.exit_code, said.stderr) == (0, "")
    Path("day10").rename("day0")
    wrong = run("solve", *files, "-o", "m", "--alpha", 1, "--decays", "1", code=2)
    assert "give --alpha, or --alphas and --decays" in wrong
    assert "--output" in run("solve", *files, "-o", "day1", code=2)


@pytest.mark.parametrize(
    ("command", "model", "held_out"),
    [
        ("train", "rankrls", "5 folds of groups"),
        ("train", "auto", "leave-group-out"),
        ("train", "ranksvm", "5 folds of groups"),
        ("cv", "rankrls", None),
    ],
)
def test_groups_are_held_out(days, command, model, held_out):
    frame = pd.concat(days).assign(day=lambda rows: (rows["q"] * 7) % 5)
    frame.to_parquet("all.parquet")
    search = {
        "auto": pg.AutoRanker(time_budget=0.1),
        "ranksvm": pg.RankSVMCV(),
        "rankrls": pg.RankRLSCV(pairs=["with_ties", "without_ties"]),
    }[model]
    options = (*COLUMNS, "--groups", "day", "--model", model, "--json")
    if command == "train":
        options += ("-o", "model")
    found = json.loads(run(command, "all.parquet", *options))
    assert found.get("held_out") == held_out
    if model != "auto":
        rows = frame[list("abcd")], frame["y"]
        expected = search.fit(*rows, qid=frame["q"], groups=frame["day"]).best_score_
        score = found["score"] if command == "train" else found["best"]["score"]
        assert score == pytest.approx(expected, rel=1e-6)


def test_drift_names_the_columns_that_changed(days):
    run("update", "total", "0.parquet", *COLUMNS)
    run("update", "total", "1.parquet", *COLUMNS)
    changed = days[2].assign(b=days[2]["b"] + 3, c=days[2]["c"].where(days[2].index % 4 > 0))
    changed.to_parquet("changed.parquet")
    total = statistics(days[0]) + statistics(days[1])
    expected = pg.drift(total, changed[list("abcd")], qid=changed["q"])
    assert expected.changed == ["b", "c"]
    found = run("drift", "total", "changed.parquet", *COLUMNS)
    assert found.startswith("2 of 4 columns changed: 10 queries beside 20, level 0.05")
    marks = {line.split()[0]: line.split()[-1] for line in found.splitlines() if line}
    listed = [line.split()[0] for line in str(expected).splitlines()[1:] if line]
    assert {name: marks[name] for name in "bc"} == {"b": "yes", "c": "yes"}
    assert set(listed) <= marks.keys()
    as_json = json.loads(run("drift", "total", "changed.parquet", *COLUMNS, "--json"))
    assert as_json["changed"] == ["b", "c"] and len(as_json["columns"]) == 4
    rows = json.loads(run("drift", "0.parquet", "changed.parquet", *COLUMNS, "--json"))
    assert rows["n_queries"] == {"reference": 10, "today": 10}
    assert run("drift", "total", "total").startswith("0 of 4 columns changed")
    assert "want --qid" in run("drift", "total", "2.parquet", "--label", "y", code=2)
    assert "level must be" in run("drift", "total", "total", "--level", 2, code=2)


def test_propensities_are_for_statistics_of_clicks(days):
    options = (*COLUMNS, "--propensity", "a")
    found = run("update", "total", "0.parquet", *options, code=2)
    assert "--propensity must be None for statistics with --pairs with_ties: make them" in found
    assert found.rstrip().endswith("with --pairs clicks")


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked by flock")
def test_updates_of_one_file_wait_for_each_other(days):
    import fcntl

    run("update", "total", "0.parquet", *COLUMNS)
    code = "from pairgram.cli import main; main()"
    with open("total", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # all begin, and wait
        processes = [
            subprocess.Popen([sys.executable, "-c", code, *command, *COLUMNS])
            for command in (
                ("update", "total", "1.parquet"),
                ("update", "total", "2.parquet"),
                ("forget", "total", "0.parquet"),
            )
        ]
        time.sleep(1)
        assert all(process.poll() is None for process in processes)
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    expected = statistics(days[1]) + statistics(days[2])
    np.testing.assert_allclose(pg.Pairgram.load("total").G, expected.G, rtol=1e-9, atol=1e-9)
