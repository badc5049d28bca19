"""Logs of clicks on the command line: propensities are estimated, and a model is trained."""

import json

import numpy as np
import pandas as pd
import pytest

import pairgram as pg
from pairgram.clicks import estimate_propensities, simulate
from parts.cli import run

NAMES = list("abcdef")
LOG = ("--qid", "shown", "--clicks", "clicked")
POSITION = ("--position", "position")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log as a Parquet file, and its frame."""
    monkeypatch.chdir(tmp_path)
    X, y, qid = pg.make_ranking(40, 8, 6, random_state=0)
    drawn = simulate(y, qid, X[:, :3].T, n_impressions=40, k=4, random_state=0)
    frame = pd.DataFrame(X[drawn.row], columns=NAMES).assign(
        item=[f"d{row}" for row in drawn.row],
        shown=drawn.impression,
        position=drawn.position,
        clicked=drawn.click.astype(int),
        looked=drawn.propensity,
        row=np.arange(len(drawn.row)),
    )
    frame.to_parquet("log.parquet")
    return frame


def fitted(frame, propensity):
    return pg.RankRLSCV().fit(
        frame[NAMES], frame["clicked"], qid=frame["shown"], propensity=propensity
    )


def test_items_tell_of_positions(log):
    said = json.loads(
        run(
            *("train", "log.parquet", "-o", "m.safetensors", *LOG, *POSITION, "--item", "item"),
            *("--features", ",".join(NAMES), "--json"),
        )
    )
    found = estimate_propensities(log["position"], log["clicked"], item=log["item"])
    listed = said["propensities"]
    np.testing.assert_allclose([row["propensity"] for row in listed], found.propensity)
    np.testing.assert_allclose([row["standard_error"] for row in listed], found.standard_error)
    expected = fitted(log, found.of(log["position"]))
    model = pg.load_model("m.safetensors")
    np.testing.assert_allclose(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == NAMES
    assert said["metric"] == "ips_dcg@10"
    assert said["score"] == pytest.approx(expected.best_score_)


def test_features_tell_of_positions_where_items_are_not_known(log):
    said = run(
        *("train", "log.parquet", "-o", "m.safetensors", *LOG, *POSITION),
        *("--features", ",".join(NAMES)),
    )
    found = estimate_propensities(log["position"], log["clicked"], X=log[NAMES])
    expected = fitted(log, found.of(log["position"]))
    np.testing.assert_allclose(pg.load_model("m.safetensors").coef_, expected.coef_, rtol=1e-5)
    assert f"{found.propensity[1]:.4f}" in said
    assert "how likely users look at each position; found by a regression on the features" in said


@pytest.mark.parametrize("model", ["rankrls", "ranksvm", "elm-pairwise"])
def test_a_column_of_propensities(log, model):
    common = ("--propensity", "looked", "--features", ",".join(NAMES), "--model", model, "--json")
    said = json.loads(run("train", "log.parquet", "-o", "m.safetensors", *LOG, *common))
    assert "propensities" not in said
    assert said["metric"] == "ips_dcg@10"
    table = pg.scan(
        "log.parquet", label="clicked", qid="shown", propensity="looked", features=NAMES
    )
    model = pg.load_model("m.safetensors")
    score = pg.evaluate("ips_dcg@10", table, model)["ips_dcg@10"]
    assert score > 0.9 * said["score"]


def test_cv_of_a_log_judges_by_its_propensities(log):
    given = ("--label", "clicked", "--qid", "shown", "--propensity", "looked")
    given = ("cv", "log.parquet", *given, "--features", ",".join(NAMES), "--json")
    said = json.loads(run(*given))
    expected = fitted(log, log["looked"])
    assert said["metric"] == "ips_dcg@10"
    assert said["best"]["score"] == pytest.approx(expected.best_score_)
    assert json.loads(run(*given, "--pairs", "clicks"))["path"] == said["path"]


@pytest.mark.parametrize("item", [(), ("--item", "item")], ids=["features", "item"])
def test_cv_estimates_propensities_as_train_does(log, item):
    given = (*LOG, *POSITION, *item, "--features", ",".join(NAMES), "--json")
    trained = json.loads(
        run("train", "log.parquet", "-o", "m.safetensors", "--model", "rankrls", *given)
    )
    said = json.loads(run("cv", "log.parquet", *given))
    assert said["metric"] == "ips_dcg@10"
    assert said["best"]["score"] == pytest.approx(trained["score"], rel=1e-6)
    assert said["propensities"] == trained["propensities"]
    shown = run("cv", "log.parquet", *given[:-1])
    assert "how likely users look at each position" in shown


@pytest.mark.parametrize("item", [(), ("--item", "item")], ids=["features", "item"])
def test_a_model_is_evaluated_on_a_log(log, item):
    model = fitted(log, log["looked"])
    model.save("m.safetensors")
    given = ("evaluate", "log.parquet", "--model", "m.safetensors", *LOG, *POSITION, *item)
    said = json.loads(run(*given, "--json"))
    told = {"item": log["item"]} if item else {"X": log[NAMES]}
    found = estimate_propensities(log["position"], log["clicked"], **told)
    expected = pg.evaluate(
        "ips_dcg@10",
        log["clicked"],
        model.predict(log[NAMES]),
        log["shown"],
        propensity=found.of(log["position"]),
    )
    assert said["metrics"] == {"ips_dcg@10": pytest.approx(expected["ips_dcg@10"], rel=1e-5)}
    np.testing.assert_allclose(
        [row["propensity"] for row in said["propensities"]], found.propensity, rtol=1e-5
    )
    assert "how likely users look at each position" in run(*given)
    known = ("--qid", "shown", "--label", "clicked", "--propensity", "looked", "--json")
    by_column = json.loads(run("evaluate", "log.parquet", "--model", "m.safetensors", *known))
    assert list(by_column["metrics"]) == ["ips_dcg@10"]
    assert "which would judge by clicks" in run(*given, "--metric", "map", code=2)
    wrong = ("evaluate", "log.parquet", "--scores", "s.txt", *LOG, *POSITION)
    assert "--clicks, --position and --item are for --model" in run(*wrong, code=2)
    assert "not for TREC runs" in run("evaluate", "--qrels", "a", "--run", "b", *LOG[2:], code=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (POSITION, "--position and --item are for logs: give --clicks"),
        ((*LOG, "--label", "clicked", *POSITION), "give --clicks or --label, not both"),
        (LOG, "with --clicks, give --position or --propensity, and not both"),
        ((*LOG, *POSITION, "--propensity", "looked"), "and not both"),
        ((*LOG, "--propensity", "looked", "--item", "item"), "--item is for --position"),
        ((*LOG, *POSITION, "--item", "row"), "unknown for 2, 3, 4: no clicked item"),
        (
            (*LOG, *POSITION, "--item", "item", "--pairs", "with_ties", "--pairs", "none"),
            "must be 'with_ties', the default, or 'clicks'",
        ),
        ((*LOG, *POSITION, "--item", "item", "--metric", "map"), "a metric of clicks"),
    ],
)
def test_what_a_log_lacks_is_told(log, given, message):
    features = ("--features", ",".join(NAMES))
    assert message in run("train", "log.parquet", "-o", "m.safetensors", *given, *features, code=2)


def test_the_row_of_a_click_at_no_place_is_told(log):
    log.loc[np.flatnonzero(log["clicked"])[0], "position"] = 0
    log.to_parquet("log.parquet")
    row = int(np.flatnonzero(log["clicked"])[0])
    said = run(
        *("train", "log.parquet", "-o", "m.safetensors", *LOG, *POSITION, "--item", "item"),
        *("--features", ",".join(NAMES)),
        code=2,
    )
    assert f"row {row}" in said
    assert "position must be from 1, the first place, where there is a click" in said


def test_a_document_of_several_queries_tells_by_query(log):
    """Clicks are not compared between queries that show the same document."""
    log["text"] = [f"q{int(row[1:]) // 8}" for row in log["item"]]
    log["sku"] = [f"s{int(row[1:]) % 8}" for row in log["item"]]
    log.to_parquet("log.parquet")
    common = ("train", "log.parquet", "-o", "m.safetensors", *LOG, *POSITION, "--json")
    features = ("--features", ",".join(NAMES))
    by_query, by_sku, by_item = (
        [
            row["propensity"]
            for row in json.loads(run(*common, *features, "--item", item))["propensities"]
        ]
        for item in ("text,sku", "sku", "item")
    )
    assert by_query == pytest.approx(by_item, rel=1e-9)
    assert by_sku != pytest.approx(by_item, rel=0.01)
    others = ("--exclude", "item,row,looked", "--groups", "text")
    said = json.loads(run(*common, *others, "--item", "text,sku"))
    assert said["n_features"] == len(NAMES)
    assert "--item takes a column, or two" in run(*common, "--item", "a,b,c", code=2)


def test_a_log_whose_lists_are_brought_together(log):
    common = ("-o", "m.safetensors", *LOG, *POSITION, "--item", "item", "--json")
    features = ("--features", ",".join(NAMES))
    expected = json.loads(run("train", "log.parquet", *common, *features))
    log.sample(frac=1.0, random_state=0).to_parquet("shuffled.parquet")
    found = json.loads(run("train", "shuffled.parquet", *common, *features, "--group-queries"))
    for row, other in zip(found["propensities"], expected["propensities"], strict=True):
        assert row == pytest.approx(other)
    assert found["score"] == pytest.approx(expected["score"])


@pytest.mark.parametrize("valid", [(), ("--valid", "log.parquet")])
def test_the_automatic_choice_takes_clicks(log, valid):
    options = (*LOG, "--propensity", "looked", "--features", ",".join(NAMES), *valid, "--json")
    said = run(
        *("train", "log.parquet", "-o", "m.safetensors", "--model", "auto"),
        *("--time-budget", "0.01", *options),
    )
    assert json.loads(said)["metric"] == "ips_dcg@10"
    assert pg.load_model("m.safetensors").pairs == "clicks"
