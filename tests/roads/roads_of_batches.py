"""Models for each of many data sets, which are those of single fits."""

from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
from journeys import Journey, Rows
from outcomes import Outcome, outcome_of
from query_ids import RENAMINGS
from road import COMPARED, LINEAR, SINGLE, road
from sklearn.linear_model import Ridge

from pairgram import fit_many


def _arguments(rows: Rows) -> dict[str, Any]:
    named = {"X": rows.X, "y": rows.labels, **rows.fit_arguments}
    return {name: value for name, value in named.items() if value is not None}


def _others(journey: Journey) -> list[dict[str, Any]]:
    """Return further problems with rows of their own."""
    rng, (n, d) = journey.rng(), journey.rows.X.shape
    sizes = rng.integers(1, 2 * n, 5)
    return [
        {"X": rng.normal(size=(k, d)), "y": rng.integers(0, 3, k) * 1.0, "qid": np.arange(k) // 3}
        for k in sizes
    ]


@road()
def batch_of_one(journey: Journey) -> Outcome:
    batch = fit_many(journey.estimator, [_arguments(journey.rows)])
    return outcome_of(journey, batch.models[0])


@road()
def batch_of_many(journey: Journey) -> Outcome:
    problems = _others(journey)
    problems.insert(2, _arguments(journey.rows))
    model = fit_many(journey.estimator, problems, fallback=0.0).models[2]
    if model is None:
        journey.fit()  # whose error is the outcome
        raise AssertionError("rows that can be fitted alone have no model in the batch")
    return outcome_of(journey, model)


OF_SMALL = ("RankRLS", "RankRLSCV", "RankRLSCV by evidence", "RankRLSCV of a map")


@road(kinds=(*OF_SMALL, "PairwiseELMCV", "PointwiseELM"))
def batch_of_targets(journey: Journey) -> Outcome | None:
    if journey.parameters.get("pairs", None) not in ("with_ties", None):
        return None
    problem = _arguments(journey.rows)
    problem["y"] = np.column_stack([2 * problem["y"], problem["y"]])
    if (problem["y"] < 0).any() and journey.parameters.get("target") == "gain":
        return None
    models = fit_many(journey.estimator, [problem]).models[0]
    return outcome_of(journey, models[1])


OF_KEYS = tuple(kind for kind in SINGLE if kind not in COMPARED)
FRAMES = (pandas.DataFrame, polars.DataFrame, pyarrow.table)
# Keys that a column of each package holds.
KEYS = ("text", "int8", "numerals", "datetimes", "uint64")


@road(kinds=(*OF_KEYS, "RankRLSCV", "PairwiseELMCV"))
def batch_of_keys(journey: Journey) -> Outcome:
    """The rows of a key in a frame; rows to score in another order of columns, and other keys."""
    rows, rng = journey.rows, journey.rng()
    n, d = rows.X.shape
    X = np.vstack([rows.X, rng.normal(size=(4, d))])
    key = RENAMINGS[KEYS[journey.seed % len(KEYS)]](np.repeat([3, 5], [n, 4]))
    columns = dict(zip(rows.names, X.T, strict=True))
    columns |= {
        "key": key,
        "label": np.append(rows.y, [0.0, 1.0, 2.0, 1.0]),
        "qid": np.append(rows.query, [0, 0, 1, 1]),
        "weight": np.append(np.ones(n) if rows.weight is None else rows.weight, np.ones(4)),
    }
    if rows.propensity is not None:
        columns["propensity"] = np.append(rows.propensity, np.ones(4))
    frame_of = FRAMES[journey.seed % 3]
    # The rows of a key stand anywhere, in their order.
    place = rng.uniform(size=n + 4)
    place[:n].sort()
    order = np.argsort(place)
    shuffled = {
        name: [column[i] for i in order] if isinstance(column, list) else column[order]
        for name, column in columns.items()
    }
    batch = fit_many(
        journey.estimator,
        frame_of(shuffled),
        by="key",
        features=rows.names,
        label="label",
        qid="qid",
        sample_weight="weight",
        propensity="propensity" if "propensity" in columns else None,
        on_error="raise",
    )
    model = batch.model_of(key[0])
    other = {name: columns[name] for name in rng.permutation(rows.names).tolist()} | {"key": key}
    scores = batch.predict(frame_of(other), "key", qid=columns["qid"])
    return outcome_of(journey, model, scores=scores[:n])


def of_a_fallback(journey: Journey) -> Outcome:
    """The scores of another estimator for rows without a model."""
    rows = journey.rows
    return Outcome({"predict": Ridge().fit(rows.X, rows.y).predict(rows.X)})


@road(kinds=LINEAR[:1], plain=of_a_fallback, refuses=("has the columns", "order", "names"))
def fallback_in_another_order_of_columns(journey: Journey) -> Outcome:
    """A fallback that was fitted to other places of the columns scores by their names."""
    rows = journey.rows
    columns = dict(zip(rows.names, rows.X.T, strict=True))
    reverse = dict(reversed(columns.items()))
    named = {"key": ["a"] * len(rows), "label": rows.y}
    batch = fit_many(
        journey.estimator.__class__(), pandas.DataFrame(columns | named), by="key", label="label"
    )
    fallback = Ridge().fit(pandas.DataFrame(reverse), rows.y)
    frame = FRAMES[journey.seed % 3](columns | {"key": ["b"] * len(rows)})
    return Outcome({"predict": np.asarray(batch.predict(frame, "key", fallback=fallback))})
