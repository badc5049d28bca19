"""What becomes of a model after the fit, the other form of the problem, and statistics."""

import copy
import pickle
import tempfile
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from journeys import KINDS, Journey, Rows
from outcomes import Outcome, outcome_of
from road import COMPARED, OF_CLICKS, OF_GROUPS, plain, road
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from pairgram import Fill, Pairgram, Pairs, RankRLS, load_model, posterior, row_scorer


def _same_bits(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(found, wanted)


@road()
def copies(journey: Journey) -> Outcome:
    """A pickled, a copied and a saved model score every row with the same bits."""
    model = journey.fit()
    X = journey.rows.X
    scores = model.predict(X)
    _same_bits(pickle.loads(pickle.dumps(model)).predict(X), scores)
    _same_bits(copy.deepcopy(model).predict(X), scores)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        try:
            model.save(path)
        except (TypeError, ValueError) as error:
            if "cannot hold" not in str(error):
                raise
        else:
            _same_bits(load_model(path).predict(X), scores)
    return outcome_of(journey, model, X)


@road()
def fitted_again(journey: Journey) -> Outcome:
    """A model that was fitted before, with other settings to other rows, keeps nothing of that."""
    rows, known = journey.rows, journey.parameters
    wide = np.hstack([rows.X, rows.X])[::-1] + 1.0
    other = Rows(wide, np.arange(len(wide)) % 3 * 1.0, rows.query[::-1])
    frame = pandas.DataFrame(wide).add_prefix("f")
    prior = RankRLS(pairs=None).fit(frame.fillna(0.0), other.y)
    settings = {"feature_map": Fill("mean"), "prior": prior}
    choices = [{}, {"feature_map": "maxabs"}, {"pairs": None}, settings]
    changed = choices[journey.seed % 4]
    model = clone(journey.estimator)
    model.set_params(**{name: value for name, value in changed.items() if name in known})
    offset = {"offset": other.y} if journey.seed % 3 else {}
    with suppress(ValueError):
        model.fit(frame, other.y, qid=other.query, **offset)
    again = model.set_params(**known).fit(rows.X, rows.labels, **rows.fit_arguments)
    fresh = journey.fit()
    assert vars(again).keys() == vars(fresh).keys()
    _same_bits(again.predict(rows.X), fresh.predict(rows.X))
    return outcome_of(journey, again)


@road()
def row_by_row(journey: Journey) -> Outcome:
    """Rows have the same bits alone, in a batch, and next to an equal row."""
    model, rows = journey.fit(), journey.rows
    X, scores = rows.X, model.predict(rows.X)
    _same_bits([model.predict(X[i : i + 1])[0] for i in range(len(X))], scores)
    _same_bits(model.predict(np.repeat(X, 3, axis=0)), np.repeat(scores, 3))
    return outcome_of(journey, model, X)


@road(refuses=("of Python's",))
def frozen_function(journey: Journey) -> Outcome:
    model = journey.fit()
    scores = model.row_scorer()(journey.rows.X)
    return outcome_of(journey, model, scores=np.ravel(scores))


@road(refuses=("of Python's",))
def frozen_pipeline(journey: Journey) -> Outcome | None:
    """Imputers fill gaps by what was there; a file and a scorer know the pipeline."""
    rows = journey.rows
    if not isinstance(rows.X, np.ndarray) or np.isnan(rows.X).any() or not rows.X.size:
        return None
    X, parts = rows.X.copy(), []
    for j, column in enumerate(X.T):
        value = column[journey.rng().integers(len(X))]
        at = np.flatnonzero(column == value)
        if len(at) > 1:
            column[at[:-1:2]] = np.nan
            imputer = SimpleImputer(strategy="constant", fill_value=value)
            parts.append((f"part{j}", make_pipeline(imputer, "passthrough"), [j]))
        else:
            parts.append((f"part{j}", "passthrough", [j]))
    with config_context(enable_metadata_routing=True):
        ranker = clone(journey.estimator)
        ranker.set_fit_request(**dict.fromkeys(rows.fit_arguments, True))
        model = make_pipeline(ColumnTransformer(parts), ranker)
        model.fit(X, rows.labels, **rows.fit_arguments)
    scores = row_scorer(model)(X)
    return outcome_of(journey, model[-1], scores=np.ravel(scores))


@road(kinds=("RankRLS", "RankRLSCV", "RankRLSCV by evidence"), nudge=2.0**-36)
def other_form(journey: Journey) -> Outcome:
    rows, columns = journey.rows.X.shape
    is_dual = rows > columns if journey.seed % 4 else rows <= columns
    return outcome_of(journey, journey.in_form("dual" if is_dual else "primal").fit())


# The kinds of which statistics know all that matters, but for inputs.
STATISTICS = ("RankRLS", "RankRLS of clicks")


def _settings(journey: Journey) -> dict[str, Any]:
    """Return the settings of statistics. Those of clicks are made with the pairs of clicks."""
    pairs = Pairs.of(journey.parameters["pairs"])
    return {"pairs": pairs if journey.rows.propensity is None else replace(pairs, kind="clicks")}


def _statistics(journey: Journey, rows: Rows) -> Pairgram:
    return Pairgram.from_rows(rows.X, rows.labels, **rows.fit_arguments, **_settings(journey))


def _model(journey: Journey, statistics: Pairgram) -> Outcome:
    named = journey.parameters
    model = RankRLS.from_pairgram(statistics, named["alpha"], scale=named["scale"])
    if not model.coef_.any():  # statistics do not know single rows of weight > 0; `fit` does
        without_inputs(journey)
    return outcome_of(journey, model)


def without_inputs(journey: Journey) -> Outcome:
    return plain(journey.with_parameters(feature_map=None).in_form("primal"))


@road(kinds=STATISTICS, plain=without_inputs, refuses=("no rows",))
def statistics_of_all(journey: Journey) -> Outcome:
    return _model(journey, _statistics(journey, journey.rows))


@road(
    kinds=STATISTICS,
    plain=without_inputs,
    refuses=("scope='global'", "is rounding error"),
    nudge=2.0**-40,
)
def statistics_of_parts(journey: Journey) -> Outcome:
    """Parts of whole queries, merged in any order, with one added twice and subtracted again."""
    rows, rng = journey.rows, journey.rng()
    n_queries = len(rows.offsets) - 1
    of_row = np.repeat(rng.integers(0, 3, n_queries), np.diff(rows.offsets))
    parts = [rows.taken(of_row == k) for k in rng.permutation(3) if (of_row == k).any()]
    extra = replace(rows, X=rows.X[::-1] * 0.7, query=rows.query + 1000)
    sums = [_statistics(journey, part) for part in parts]
    added = _statistics(journey, extra)
    total = sum([*sums, added][1:], start=[*sums, added][0]) - added
    return _model(journey, Pairgram.from_bytes(total.to_bytes()))


def _in_two_parts(journey: Journey) -> tuple[float, np.ndarray]:
    """Draw a factor, and which rows are in the older of two parts of whole queries."""
    rows, rng = journey.rows, journey.rng()
    factor = float(rng.choice([0.03, 0.5, 0.95, 3.0]))
    n_queries = len(rows.offsets) - 1
    return factor, np.repeat(rng.random(n_queries) < 0.5, np.diff(rows.offsets))


def of_weighed_queries(journey: Journey) -> Outcome:
    """Fit queries of two weights; with a single list, rows of two weights."""
    factor, is_older = _in_two_parts(journey)
    weight, rows = np.where(is_older, factor * factor, factor), journey.rows
    journey = journey.with_parameters(feature_map=None).in_form("primal")
    if not Pairs.of(journey.parameters["pairs"]).joins_all_rows:
        return outcome_of(journey, journey.fit(query_weight=weight))
    weight = weight if rows.weight is None else weight * rows.weight
    return outcome_of(journey, journey.fit(sample_weight=weight))


@road(
    kinds=STATISTICS,
    plain=of_weighed_queries,
    refuses=("scope='global'"),
    nudge=2.0**-40,
)
def statistics_times_a_number(journey: Journey) -> Outcome:
    """Statistics are multiplied by a factor, others are added, and so is their sum, and is sent."""
    factor, is_older = _in_two_parts(journey)
    parts = [journey.rows.taken(rows) for rows in (is_older, ~is_older)]
    older, newer = (_statistics(journey, part) if len(part) else None for part in parts)
    total = newer if older is None else factor * older
    if older is not None and newer is not None:
        total = Pairgram.from_bytes(total.to_bytes()) + newer
    return _model(journey, Pairgram.from_bytes((total * factor).to_bytes()))


@road(kinds=STATISTICS, plain=without_inputs, refuses=("scope='global'"))
def statistics_of_a_stream(journey: Journey) -> Outcome:
    rows = journey.rows
    stream = Pairgram(**_settings(journey))
    for begin, end in pairwise(rows.offsets):
        part = rows.taken(slice(begin, end))
        stream.update(part.X, part.labels, **part.fit_arguments)
    return _model(journey, stream)


@road(kinds=("RankRLS", "RankSVM", *COMPARED, *OF_CLICKS, *OF_GROUPS))
def pipeline(journey: Journey) -> Outcome:
    """A pipeline of the ranker alone."""
    with config_context(enable_metadata_routing=True):
        ranker = clone(journey.estimator).set_fit_request(qid=True, sample_weight=True)
        rows = journey.rows
        model = make_pipeline("passthrough", ranker).fit(rows.X, rows.labels, **rows.fit_arguments)
        return outcome_of(journey, model)


@road(
    tuple(kind for kind in KINDS if kind.startswith("RankRLS") and kind not in OF_CLICKS),
    refuses=(r"^a posterior needs",),
)
def with_certainty(journey: Journey) -> Outcome | None:
    """The posterior of a model has deviations that fit each other, and ranks to go by."""
    pairs = journey.parameters.get("pairs", "with_ties")
    if pairs not in ("with_ties", None):
        return None
    # Squared distances of such rows are rounded by more than 1, so that kernels say nothing.
    if journey.parameters.get("kernel") is not None and np.ptp(journey.rows.X) > 1e7:
        return None
    rows, model = journey.rows, journey.fit()
    X, sure = rows.X, posterior(model, rows.X, rows.labels, **rows.fit_arguments)
    if len(X) < 4:
        return outcome_of(journey, model)
    first, second, third = X[:-2], X[1:-1], X[2:]
    pairs = (first, second), (second, third), (first, third), (third, first)
    of_pairs = [sure.std_of_differences(*pair) for pair in pairs]
    of_list = sure.std(X)
    slack = 1e-6 * max(one.max() for one in (*of_pairs, of_list))
    np.testing.assert_allclose(of_pairs[2], of_pairs[3], atol=slack)
    assert (of_pairs[2] <= of_pairs[0] + of_pairs[1] + slack).all()
    assert (of_pairs[0] <= of_list[:-2] + of_list[1:-1] + slack).all()
    _same_bits(pickle.loads(pickle.dumps(sure)).std(X), of_list)
    ranges = sure.rank_ranges(X)
    _same_bits(ranges["deviation"], of_list[ranges["row"]])
    _same_bits(np.sort(ranges["row"]), np.arange(len(X)))
    scores = model.predict(X)
    if np.ptp(scores) <= 1e-6 * np.abs(scores).max():  # what rows have in common hides their order
        return outcome_of(journey, model)
    above = np.array([sure.probability_above(X, np.tile(x, (len(X), 1))) for x in X])
    surely, maybe = above > 0.95 + 1e-6, above > 0.95 - 1e-6
    for row, best, worst in zip(ranges["row"], ranges["best"], ranges["worst"], strict=True):
        assert 1 + surely[row].sum() <= best <= 1 + maybe[row].sum()
        assert len(X) - maybe[:, row].sum() <= worst <= len(X) - surely[:, row].sum()
    return outcome_of(journey, model)
