"""Models for each of many data sets, which are those of single fits."""

import numpy as np
import pandas
import polars
import pyarrow
from journeys import Journey
from outcomes import Outcome, outcome_of
from query_ids import RENAMINGS
from road import COMPARED, LINEAR, SINGLE, road
from sklearn.linear_model import Ridge

from pairgram import fit_many


def _is_simple(journey: Journey) -> bool:
    """Tell whether labels and weights are all that a fit takes beside rows and ids."""
    return journey.rows.preferences is None and journey.rows.propensity is None


@road()
def batch_of_one(journey: Journey) -> Outcome | None:
    rows = journey.rows
    if not _is_simple(journey):
        return None
    keys = ["it"] * len(rows)
    batch = fit_many(journey.estimator, rows.X, rows.y, by=keys, **rows.fit_arguments)
    return outcome_of(journey, batch["it"])


@road()
def batch_of_many(journey: Journey) -> Outcome | None:
    """A list of data sets, with rows of other sizes beside those of the journey."""
    rows, rng = journey.rows, journey.rng()
    if not _is_simple(journey) or rows.weight is not None or rows.groups is not None:
        return None
    problems = [
        (rng.normal(size=(k, rows.X.shape[1])), rng.integers(0, 3, k) * 1.0, np.arange(k) // 3)
        for k in rng.integers(1, 2 * len(rows), 5)
    ]
    problems.insert(2, (rows.X, rows.y, rows.query))
    model = fit_many(journey.estimator, problems, fallback=0.0).models[2]
    if model is None:
        journey.fit()  # whose error is the outcome
        raise AssertionError("rows that can be fitted alone have no model in the batch")
    return outcome_of(journey, model)


OF_SMALL = ("RankRLS", "RankRLSCV", "RankRLSCV by evidence", "RankRLSCV of a map")


@road(kinds=(*OF_SMALL, "PairwiseELMCV", "PointwiseELM"))
def batch_of_targets(journey: Journey) -> Outcome | None:
    rows = journey.rows
    if rows.weight is not None or rows.others:
        return None
    if (rows.y < 0).any() and "gain" in str(journey.parameters.get("pairs")):
        return None
    targets = np.column_stack([2 * rows.y, rows.y])
    return outcome_of(journey, fit_many(journey.estimator, rows.X, targets, qid=rows.query)[1])


OF_KEYS = tuple(kind for kind in SINGLE if kind not in COMPARED)
FRAMES = (pandas.DataFrame, polars.DataFrame, pyarrow.table)
# Keys that a column of each package holds.
KEYS = ("text", "int8", "numerals", "datetimes", "uint64")


@road(kinds=(*OF_KEYS, "RankRLSCV", "PairwiseELMCV"))
def batch_of_keys(journey: Journey) -> Outcome | None:
    """The rows of a key in a frame; rows to score in another order of columns, and other keys."""
    rows, rng = journey.rows, journey.rng()
    if rows.propensity is not None:
        return None
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
        "label",
        by="key",
        qid="qid",
        sample_weight="weight",
    )
    model = batch[key[0]]
    other = {name: columns[name] for name in rng.permutation(rows.names).tolist()} | {"key": key}
    scores = batch.predict(frame_of(other), "key")[:n]
    return outcome_of(journey, model, scores=scores)


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
        journey.estimator.__class__(), pandas.DataFrame(columns | named), "label", by="key"
    )
    fallback = Ridge().fit(pandas.DataFrame(reverse), rows.y)
    frame = FRAMES[journey.seed % 3](columns | {"key": ["b"] * len(rows)})
    return Outcome({"predict": np.asarray(batch.predict(frame, "key", fallback=fallback))})
