"""Searches warn if two or three queries are all that is held out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

import pairgram
from axes import every
from pairgram import AutoRanker, ELMRankCV, Positive, RankRLSCV, RankSVMCV

WARNING = "settings are chosen by {} queries or groups"


def _lists(n: int, size: int = 12) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * size, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=len(X)), np.repeat(np.arange(n), size)


SEARCHES = {
    "RankRLSCV": RankRLSCV(scoring="kendall"),
    "conjugate gradients": RankRLSCV(scoring="kendall", cv=None, constraint=Positive()),
    "AutoRanker": AutoRanker(scoring="kendall", time_budget=None),
    "ELMRankCV": ELMRankCV(n_nodes=10, random_state=0),
    "RankSVMCV": RankSVMCV(Cs=[0.1, 1.0], scoring="kendall"),
}


@every(n=[2, 3], name=SEARCHES)
def test_searches_warn_of_two_or_three_queries(name: str, n: int) -> None:
    X, y, qid = _lists(n)
    with pytest.warns(UserWarning, match=WARNING.format(n)):
        SEARCHES[name].fit(X, y, qid=qid)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("name", ["RankRLSCV", "AutoRanker"])
def test_one_list_and_four_give_no_warning(name: str, n: int) -> None:
    X, y, qid = _lists(n)
    SEARCHES[name].fit(X, y, qid=None if n == 1 else qid)


def test_other_ways_to_choose_give_no_warning() -> None:
    X, y, qid = _lists(2)
    RankRLSCV(scoring="evidence").fit(X, y, qid=qid)
    RankRLSCV(scoring="kendall", cv=KFold(5, shuffle=True, random_state=0)).fit(X, y, qid=qid)
    RankRLSCV(scoring="kendall").fit(X, y, qid=qid, validation=(X, y, qid))
    RankRLSCV(scoring="kendall").fit(X[10:15], y[10:15], qid=qid[10:15])  # too few rows to say it


def test_few_groups_of_many_queries_give_the_warning() -> None:
    X, y, qid = _lists(6)
    with pytest.warns(UserWarning, match=WARNING.format(2)):
        RankRLSCV(scoring="kendall").fit(X, y, qid=qid, groups=qid // 3)


def test_a_table_of_two_queries_gives_the_warning(tmp_path: Path) -> None:
    X, y, qid = _lists(2)
    pairgram.dump_letor(tmp_path / "two.txt", X, y, qid=qid)
    with pytest.warns(UserWarning, match=WARNING.format(2)):
        RankRLSCV(scoring="kendall").fit(pairgram.scan(tmp_path / "two.txt"))


def test_the_advice_of_the_warning_is_heard() -> None:
    """The evidence chooses a ridge of the size of those that are good for new rows."""
    rng = np.random.default_rng([6, 2, 20])
    qid = np.repeat([0, 1], 20)
    weights = rng.normal(size=(2, 10))  # each list has a target of its own
    X, new = rng.normal(size=(40, 10)), rng.normal(size=(400, 10))
    y = (X * weights[qid]).sum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        left_out = RankRLSCV(scoring="kendall").fit(X, y, qid=qid)
    evidence = RankRLSCV(scoring="evidence").fit(X, y, qid=qid)
    ids = np.repeat([0, 1], 200)
    truth = (new * weights[ids]).sum(axis=1)
    taus = [
        pairgram.evaluate("kendall", truth, model.predict(new), ids)["kendall"]
        for model in (evidence, left_out)
    ]
    assert taus[0] >= taus[1] - 0.01
    assert evidence.alpha_ < 1e5
