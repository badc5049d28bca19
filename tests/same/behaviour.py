"""What people do, in place of judgements: comparisons, clicks, days, and columns that change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import pairgram

from .data import Rows, rows_of
from .fits import Configuration
from .public import pg
from .results import attempt, of_model

DATA = ("tall", "awkward", "wide")
MADE = {"dense": np.asarray, "csr": scipy.sparse.csr_array, "float32": np.float32}
# Estimators by their settings, of comparisons and of clicks.
SINGLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("RankRLS", {"alpha": 2.0}),
    ("RankRLS", {"alpha": 2.0, "form": "dual"}),
    ("RankRLS", {"alpha": 2.0, "scale": True}),
    ("RankRLS", {"alpha": 0.5, "positive": True}),
    ("RankRLS", {"alpha": 2.0, "kernel": "rbf", "gamma": 0.1}),
    ("RankRLS", {"alpha": 2.0, "feature_map": pg.RandomNodes(7, random_state=0)}),
    ("RankSVM", {"C": 0.1, "tol": 1e-9}),
    ("RankSVM", {"C": 0.1, "tol": 1e-9, "loss": "squared"}),
)
HELD_OUT = (None, 3, "forward", "leave-item-out", "leave-comparison-out", "item-folds")


def _compared(rows: Rows, margins: tuple[float, ...], groups: bool = False) -> Any:
    rng = np.random.default_rng(len(rows.y))
    n, n_pairs = len(rows.y), 4 * len(rows.y)
    winner = rng.integers(0, n, n_pairs)
    loser = (winner + rng.integers(1, n, n_pairs)) % n
    weight, margin = rng.uniform(0.5, 2.0, n_pairs), rng.choice(margins, n_pairs)
    days = np.array(list("abcd"))[rng.integers(0, 4, n_pairs)]
    return pg.Preferences(
        winner, loser, weight=weight, margin=margin, groups=days if groups else None
    )


def _clicked(rows: Rows) -> dict[str, Any]:
    """Return the arguments of `fit` of a log of the rows."""
    rng = np.random.default_rng(len(rows.y))
    n = len(rows.y)
    clicks = (rng.random(n) < 0.4).astype(float)
    propensity = np.where(clicks > 0, rng.choice([1.0, 0.5, 0.2], n), np.nan)
    if not hasattr(pairgram, "Clicks"):  # as in 0.3
        return {"y": clicks, "qid": rows.query, "propensity": propensity}
    return {"y": pairgram.Clicks(clicks, propensity), "qid": rows.query}


def _of_comparisons(name: str, settings: dict[str, Any], data: str, folder: Path) -> Any:
    rows, found = rows_of(data), {}
    logistic = settings.get("loss") == "logistic"
    y = _compared(rows, (0.0, 1.0) if logistic else (0.0, 1.0, 2.5), groups="cv" in settings)
    for way, make in MADE.items():
        model = attempt(lambda make=make: getattr(pg, name)(**settings).fit(make(rows.X), y))
        found[way] = of_model(model, rows.new) if hasattr(model, "predict") else model
    return found


def _of_clicks(name: str, settings: dict[str, Any], data: str, folder: Path) -> Any:
    rows, found = rows_of(data), {}
    for way, make in MADE.items():
        told = _clicked(rows)
        model = attempt(
            lambda make=make, told=told: getattr(pg, name)(**settings).fit(make(rows.X), **told)
        )
        found[way] = of_model(model, rows.new) if hasattr(model, "predict") else model
    return found


def _odds(data: str, folder: Path) -> Any:
    rows = rows_of(data)
    model = pg.RankSVM(0.1, loss="logistic", tol=1e-9).fit(rows.X, rows.y, qid=rows.query)
    if hasattr(model, "probability_preferred"):  # as in 0.3
        preferred = model.probability_preferred(rows.new, rows.new[::-1])
    else:
        preferred = pg.probability_preferred(model, rows.new, rows.new[::-1])
    return of_model(model, rows.new) | {"probability": preferred}


def _days(data: str, folder: Path) -> Any:
    rows = rows_of(data)
    total = pg.Pairgram.from_rows(rows.X, rows.y, qid=rows.query)
    today = rows.X[::2] + np.linspace(0, 2, rows.X.shape[1])
    some = pg.Pairgram.from_rows(today, rows.y[::2], qid=rows.query[::2] + 1000)
    return {
        "days": of_model(pg.RankRLSCV.from_pairgrams([total, some]), rows.new),
    }


def configurations() -> Iterator[tuple[str, Configuration]]:
    """Yield the name of every configuration, and what runs it."""
    searches = [("RankRLSCV", {"cv": cv}) for cv in HELD_OUT]
    searches += [("RankSVMCV", {"cv": cv, "Cs": [0.01, 1.0]}) for cv in (None, "item-folds")]
    odds = [("RankSVM", {"C": 0.1, "tol": 1e-9, "loss": "logistic"})]
    of_clicks = [("RankRLSCV", {"cv": cv}) for cv in (None, 3)]
    of_clicks += [("RankSVMCV", {"Cs": [0.01, 1.0]}), ("AutoRanker", {"time_budget": None})]
    for data in DATA:
        for number, (name, settings) in enumerate([*SINGLE, *odds, *searches]):
            yield (
                f"comparisons/{data}/{name}/{number}",
                partial(_of_comparisons, name, settings, data),
            )
        for number, (name, settings) in enumerate([*SINGLE, *of_clicks]):
            yield f"clicks/{data}/{name}/{number}", partial(_of_clicks, name, settings, data)
        yield f"odds/{data}", partial(_odds, data)
        yield f"days/{data}", partial(_days, data)
