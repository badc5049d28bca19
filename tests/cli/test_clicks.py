"""Logs of clicks on the command line: a column has the propensities of clicks."""

import json

import numpy as np
import pandas as pd
import pytest

import pairgram as pg
from pairgram.clicks import simulate
from parts.cli import run

NAMES = list("abcdef")
LOG = ("--qid", "shown", "--label", "clicked", "--propensity", "looked")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log as a Parquet file, and its frame."""
    monkeypatch.chdir(tmp_path)
    X, y, qid = pg.make_ranking(40, 8, 6, random_state=0)
    drawn = simulate(y, qid, X[:, :3].T, n_impressions=40, k=4, random_state=0)
    frame = pd.DataFrame(X[drawn.row], columns=NAMES).assign(
        shown=drawn.impression, clicked=drawn.click.astype(int), looked=drawn.propensity
    )
    frame.to_parquet("log.parquet")
    return frame


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("rankrls", pg.RankRLSCV()),
        ("ranksvm", pg.RankSVMCV()),
        ("elm-pairwise", pg.PairwiseELMCV(random_state=0)),
    ],
)
def test_a_column_of_propensities(log, model, expected):
    given = ("log.parquet", *LOG, "--features", ",".join(NAMES), "--json")
    said = json.loads(run("train", *given, "-o", "m.safetensors", "--model", model))
    expected.fit(log[NAMES], pg.Clicks(log["clicked"], log["looked"]), qid=log["shown"])
    assert said["metric"] == "ips_dcg@10"
    assert said["score"] == pytest.approx(expected.best_score_, rel=1e-6)
    found = pg.load_model("m.safetensors").predict(log[NAMES])
    np.testing.assert_allclose(found, expected.predict(log[NAMES]), rtol=1e-5, atol=1e-8)
    evaluated = json.loads(run("evaluate", *given, "--model", "m.safetensors"))
    told = pg.Clicks(log["clicked"], log["looked"]), found, log["shown"]
    assert evaluated["metrics"] == {
        "ips_dcg@10": pytest.approx(pg.evaluate("ips_dcg@10", *told)["ips_dcg@10"])
    }


@pytest.mark.parametrize("valid", [(), ("--valid", "log.parquet")])
def test_the_automatic_choice_takes_clicks(log, valid):
    options = (*LOG, "--features", ",".join(NAMES), *valid, "--json")
    said = run(
        *("train", "log.parquet", "-o", "m.safetensors", "--model", "auto"),
        *("--time-budget", "0.01", *options),
    )
    assert json.loads(said)["metric"] == "ips_dcg@10"
    assert pg.load_model("m.safetensors").pairs == "clicks"
