"""Exported models in the arithmetic of their engines."""

import sqlite3
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from journeys import Journey
from outcomes import Outcome, filled, outcome_of
from road import road
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pairgram import export

# Engines that have no kernels, nodes or quantiles say so.
CANNOT = (
    "would be too long",
    "takes linear models",
    "cannot",
    "has no",
    "do not",
    "does not",
    "multiply no",
    "weighted sums",
    "are one number for",
)


@road(refuses=CANNOT, nudge_values=True)
def python_text(journey: Journey) -> Outcome:
    model = journey.fit()
    text = str(export.to_python(model, features=journey.rows.names))
    names: dict[str, Any] = {}
    exec(text, names)
    scores = [names["score"](row) for row in journey.rows.X.tolist()]
    return _of_text(journey, model, scores)


@road(refuses=CANNOT, nudge_values=True)
def sql_text(journey: Journey) -> Outcome:
    model = journey.fit()
    text = str(export.to_sql(model, features=journey.rows.names, dialect="sqlite"))
    names = ", ".join(f'"{name}"' for name in journey.rows.names)
    with sqlite3.connect(":memory:") as base:
        base.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" * len(journey.rows.names))
        base.executemany(f"INSERT INTO t VALUES ({marks})", journey.rows.X.tolist())
        scores = [row[0] for row in base.execute(f"SELECT {text} FROM t ORDER BY rowid")]
    base.close()
    return _of_text(journey, model, scores)


def _of_text(journey: Journey, model: Any, scores: list[float]) -> Outcome:
    """A score errs by a share of its largest term, as the documentation says."""
    outcome = outcome_of(journey, model, scores=scores)
    X = filled(model, journey.rows.X)
    deviations = X.std(axis=0)
    terms = np.abs(X).max(axis=0) / np.where(deviations > 0, deviations, 1.0)
    known = np.maximum(outcome.amplification["predict"], terms.max(initial=1.0))
    return replace(outcome, amplification=outcome.amplification | {"predict": known})


TARGETS = {
    "solr": lambda model, names: export.to_solr(model, "m", features=names),
    "plugin": lambda model, names: export.to_ltr_plugin(model, "m", features=names),
    "ranklib": lambda model, names: export.to_ranklib(model, features=names),
    "vespa": lambda model, names: export.to_vespa(model, "m", features=names),
    "onnx": lambda model, names: export.to_onnx(model, features=names),
    "onnx in float64": lambda model, names: export.to_onnx(
        model, features=names, precision="float64"
    ),
}


@road(refuses=CANNOT)
def engines_of_float32(journey: Journey) -> Outcome | None:
    """The check of an export finds no more than the bound of float32 that it states."""
    model = journey.fit()
    target = list(TARGETS.values())[journey.seed % len(TARGETS)]
    rows = journey.rows.rounded_to_float32()
    if target not in (TARGETS["onnx"], TARGETS["onnx in float64"]):  # whose features have defaults
        rows = replace(rows, X=filled(model, rows.X))
    parity = export.verify(target(model, rows.names), model, rows.X, rows.query)
    least = 1e-9 * np.ptp(journey.rows.y)  # below it, scores are rounding errors
    assert parity.max_error <= max(parity.bound, least), str(parity)
    return outcome_of(journey, model)


CATEGORIES = np.array([0.1, 0.2, 0.3, 7.0])


# Ridges that suit the columns as they were drawn are rounding errors for columns of unit variance.
TOO_SMALL = "held-out scores are rounding error"


@road(
    kinds=("RankRLS", "RankRLS of a kernel", "RankRLSCV of a kernel"),
    refuses=(*CANNOT, TOO_SMALL),
)
def categories_in_engines(journey: Journey) -> Outcome | None:
    """Categories that float32 does not hold are met all the same, or the export warns of them."""
    rows = journey.rows.rounded_to_float32()
    drawn = CATEGORIES[journey.rng().integers(0, len(CATEGORIES), len(rows))]
    X = np.column_stack([drawn, rows.X])
    names = ["category", *rows.names]
    columns = ColumnTransformer(
        [("category", OneHotEncoder(sparse_output=False), [0])], remainder=StandardScaler()
    )
    with config_context(enable_metadata_routing=True):
        ranker = clone(journey.estimator).set_fit_request(qid=True)
        model = make_pipeline(columns, ranker).fit(X, rows.y, qid=rows.query)
    target = ("onnx", "onnx in float64", "vespa")[journey.seed % 3]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        exported = TARGETS[target](model, names)
    parity = export.verify(exported, model, X, rows.query)
    told = any("float32" in str(one.message) for one in warned)
    assert told or parity.max_error <= 1e-3 * parity.spread + parity.bound + 1e-9 * np.ptp(
        rows.y
    ), str(parity)
    return outcome_of(journey, journey.fit())
