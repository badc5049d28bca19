"""The same rows in other arrays and frames, in another order, with other ids and threads."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import scipy.sparse
from journeys import Journey, Rows
from outcomes import NUDGE_32, Outcome, outcome_of
from query_ids import RENAMINGS
from road import COMPARED, LINEAR, OF_GROUPS, SEARCHES, plain, road

from pairgram import (
    Clicks,
    Cross,
    Kernel,
    Pairgram,
    Pairs,
    Preferences,
    QueryKFold,
    RankRLS,
    RankSVM,
)
from pairgram._support.limits import limits_of
from pairgram.features.row_values import Chain
from parts.support import on_threads
from problems import BY_STEPS


def of_array(journey: Journey, X: Any) -> Outcome:
    return outcome_of(journey, journey.fit(X=X), X)


@road()
def fortran_order(journey: Journey) -> Outcome:
    return of_array(journey, np.asfortranarray(journey.rows.X))


@road()
def strides(journey: Journey) -> Outcome:
    n, d = journey.rows.X.shape
    wide = np.full((2 * n, 3 * d), np.nan)
    wide[::2, ::3] = journey.rows.X
    return of_array(journey, wide[::2, ::3])


@road()
def read_only(journey: Journey) -> Outcome:
    given = vars(journey.rows).items()
    arrays = {name: one.copy() for name, one in given if isinstance(one, np.ndarray)}
    for array in arrays.values():
        array.flags.writeable = False
    rows = replace(journey.rows, **arrays)
    return outcome_of(journey, journey.fit(rows), rows.X)


@road()
def lists(journey: Journey) -> Outcome:
    rows = journey.rows
    X, told = rows.X.tolist(), {}
    if rows.preferences is None:
        told = {"y": rows.y, "propensity": rows.propensity, **rows.fit_arguments}
    listed = {name: one.tolist() for name, one in told.items() if one is not None}
    if "propensity" in listed:
        listed["y"] = Clicks(listed["y"], listed.pop("propensity"))
    return outcome_of(journey, journey.fit(X=X, **listed), X)


def single_precision(journey: Journey) -> Outcome:
    """The plain road for the values that float32 holds."""
    X = journey.rows.X.astype(np.float32).astype(np.float64)
    return of_array(journey, X)


@road(plain=single_precision, nudge=NUDGE_32, nudge_values=True)
def float32(journey: Journey) -> Outcome:
    return of_array(journey, journey.rows.X.astype(np.float32))


@road(plain=single_precision, nudge=NUDGE_32, nudge_values=True)
def frames_of_float32(journey: Journey) -> Outcome:
    """They are float32 to the model too."""
    X = journey.rows.X.astype(np.float32)
    frame = _frame(journey, X, ("polars", "pyarrow", "pandas")[journey.seed % 3])
    model = journey.fit(X=frame)
    assert model.predict(frame).dtype == np.float32
    return outcome_of(journey, model, frame)


@road(refuses=("sparse", "CSR", "maxabs", "[Ss]parse data"), nudge=2.0**-34, nudge_values=True)
def csr(journey: Journey) -> Outcome:
    return of_array(journey, scipy.sparse.csr_matrix(journey.rows.X))


# What steps of conjugate gradients end with is not exact: residuals fall below 1e-8 of b, and small
# ridges divide them.
NUDGE_OF_STEPS = 2.0**-26
ITERATED = (
    *(kind for kind in LINEAR if kind.startswith("RankRLS")),
    "RankRLSCV of choices",
    "PointwiseELM",
    "PairwiseELM",
    "PointwiseELMCV",
    "PairwiseELMCV",
)


def of_folds(journey: Journey) -> Outcome:
    """The plain road of the linear model, with the folds that steps take where `cv` is None."""
    return plain(_of_inputs(journey))


def in_features(journey: Journey) -> Journey:
    """Return the journey without nodes or another kernel."""
    kernel = {"feature_map": Kernel("linear")} if "kernel" in journey.parameters else {}
    return journey.with_parameters(**kernel)


def _of_inputs(journey: Journey) -> Journey:
    return _with_folds(in_features(journey))


def _with_folds(journey: Journey) -> Journey:
    given, changed = journey.parameters, {}
    if "cv" in given and given["cv"] is None:
        n_queries = len(journey.rows.offsets) - 1
        n_folds = min(5, n_queries if n_queries > 1 else len(journey.rows) // 2)
        changed["cv"] = max(2, n_folds)
    return journey.with_parameters(**changed)


def _by_steps(journey: Journey, dtype: type) -> Outcome | None:
    """Take `cv` as it is: None must stand for the folds of the plain road.

    Held-out scores of folds of one list have a constant each that says nothing, and differs.
    """
    if journey.is_search and len(journey.rows.offsets) == 2:
        return None
    with limits_of(**BY_STEPS):
        X = scipy.sparse.csr_array(journey.rows.X.astype(dtype))
        return of_array(in_features(journey), X)


# A decomposition of all rows tells held-out scores by a subtraction; steps fit every fold.
SUBTRACTED = "held-out scores are rounding error"
BY_STEPS_ALONE: Any = {"refuses": ("CSR", "maxabs"), "spares": SUBTRACTED, "nudge_values": True}


@road(ITERATED, plain=of_folds, nudge=NUDGE_OF_STEPS, **BY_STEPS_ALONE)
def csr_by_steps(journey: Journey) -> Outcome | None:
    return _by_steps(journey, np.float64)


def of_folds_of_a_map(journey: Journey) -> Outcome:
    return plain(_with_folds(journey))


@road(
    ("RankRLS of a map", "RankRLSCV of a map"),
    plain=of_folds_of_a_map,
    nudge=NUDGE_OF_STEPS,
    nudge_values=True,
)
def cross_by_steps(journey: Journey) -> Outcome | None:
    """Products of columns are not made."""
    one_list = journey.is_search and len(journey.rows.offsets) == 2
    if one_list or not isinstance(journey.parameters["feature_map"], Cross):
        return None
    with limits_of(**BY_STEPS):
        return plain(journey)


def of_folds_in_single_precision(journey: Journey) -> Outcome:
    return of_folds(replace(journey, rows=journey.rows.rounded_to_float32()))


@road(ITERATED, plain=of_folds_in_single_precision, nudge=NUDGE_32, **BY_STEPS_ALONE)
def csr_of_float32_by_steps(journey: Journey) -> Outcome | None:
    return _by_steps(journey, np.float32)


def _frame(journey: Journey, X: Any, package: str) -> Any:
    columns = dict(zip(journey.rows.names, X.T, strict=True))
    if package == "pandas":
        # The index is not what matches rows to labels.
        return pandas.DataFrame(columns, index=journey.rng().permutation(len(X)))
    return polars.DataFrame(columns) if package == "polars" else pyarrow.table(columns)


@road()
def pandas_frame(journey: Journey) -> Outcome:
    return of_array(journey, _frame(journey, journey.rows.X, "pandas"))


@road()
def polars_frame(journey: Journey) -> Outcome:
    return of_array(journey, _frame(journey, journey.rows.X, "polars"))


@road()
def pyarrow_table(journey: Journey) -> Outcome:
    return of_array(journey, _frame(journey, journey.rows.X, "pyarrow"))


@road(refuses=(r"collect\(\)",))
def lazy_frame(journey: Journey) -> Outcome:
    frame = _frame(journey, journey.rows.X, "polars")
    return outcome_of(journey, journey.fit(X=frame.lazy()), frame.lazy())


@road(refuses=("feature names should match", "names should match"))
def columns_in_another_order(journey: Journey) -> Outcome:
    """Rows to score whose columns stand in another order are refused, or taken by their names."""
    package = ("polars", "pyarrow", "pandas")[journey.seed % 3]
    frame = _frame(journey, journey.rows.X, package)
    model = journey.fit(X=frame)
    order = [journey.rows.names[j] for j in journey.rng().permutation(len(journey.rows.names))]
    return outcome_of(journey, model, frame.select(order) if package != "pandas" else frame[order])


@road(kinds=LINEAR)
def fitted_to_columns_in_another_order(journey: Journey) -> Outcome:
    order = journey.rng().permutation(journey.rows.X.shape[1])
    return of_array(journey, journey.rows.X[:, order])


@road()
def renamed_ids(journey: Journey) -> Outcome | None:
    """Other ids, of any types, change nothing."""
    if journey.rows.preferences is not None:
        return None
    rename = list(RENAMINGS.values())[journey.seed % len(RENAMINGS)]
    return outcome_of(journey, journey.fit(qid=rename(journey.rows.query)))


def judged_by_pairs(journey: Journey) -> Outcome:
    """The plain road with a metric that counts ties as half: others order them by row."""
    return plain(_judged_by_pairs(journey))


def _judged_by_pairs(journey: Journey) -> Journey:
    changed = {"scoring": "pairwise_accuracy"} if journey.is_search else {}
    return journey.with_parameters(**changed)


@road(
    kinds=("RankRLS", "RankRLSCV", "RankSVM", "RankRLS of clicks", "RankSVM of clicks"),
    plain=judged_by_pairs,
)
def permuted_rows(journey: Journey) -> Outcome:
    rows, journey = journey.rows, _judged_by_pairs(journey)
    order = journey.rng().permutation(len(rows))
    shuffled = rows.taken(order)
    return outcome_of(journey, journey.fit(shuffled), same_rows=False)


def whole_weights(journey: Journey) -> Outcome:
    """The plain road with weights that are whole numbers."""
    return outcome_of(journey, journey.fit(sample_weight=_times(journey)))


def _times(journey: Journey) -> np.ndarray:
    weight = journey.rows.weight
    return np.ceil(np.ones(len(journey.rows)) if weight is None else weight).astype(int)


@road(kinds=("RankRLS", "RankRLS with constraints", "RankSVM"), plain=whole_weights)
def rows_of_weight_2_stand_twice(journey: Journey) -> Outcome | None:
    times = _times(journey)
    rows = Rows(journey.rows.X, journey.rows.y, journey.rows.query)
    model = journey.fit(rows.taken(np.repeat(np.arange(len(rows)), times)))
    if not model.coef_.any():  # one row of weight 2 is no pair, which is an error
        whole_weights(journey)
    return outcome_of(journey, model)


@road()
def other_threads(journey: Journey) -> Outcome:
    """The number of threads does not change a bit."""
    first, *others = on_threads((1, 2, 3), lambda: outcome_of(journey, journey.fit()))
    for other in others:
        for name, value in first.numbers.items():
            np.testing.assert_array_equal(other.numbers[name], value, err_msg=name)
    return first


def _compared(journey: Journey) -> Preferences | None:
    """Write the pairs of the journey out, if comparisons can say what its settings say."""
    given, rows = journey.parameters, journey.rows
    pairs = Pairs.of(given.get("pairs", "without_ties"))
    if pairs != Pairs(pairs.kind) or Chain.of(given.get("feature_map")).scaling is not None:
        return None
    of_labels = isinstance(journey.estimator, RankSVM)  # only the order of labels counts
    if pairs.kind not in ("with_ties", "without_ties"):
        return None
    ties = pairs.kind == "with_ties"
    same = rows.query[:, None] == rows.query
    wins = rows.y[:, None] > rows.y
    first, second = np.nonzero(same & (wins | (np.triu(~wins & ~wins.T, 1) & ties)))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    weights = weight[first] * weight[second]
    if not weights.any():
        return None
    margin = 1.0 if of_labels else rows.y[first] - rows.y[second]
    return Preferences(first, second, weight=weights, margin=margin)


OF_PAIRS = tuple(f"RankRLS{of}" for of in ("", " of a map", " of a kernel", " with constraints"))


@road(kinds=(*OF_PAIRS, "RankSVM"))
def comparisons(journey: Journey) -> Outcome | None:
    """The pairs of labels, each written out, are the same model; they go back to default pairs."""
    y = _compared(journey)
    if y is None:
        return None
    usual = type(journey.estimator)().pairs
    model = journey.with_parameters(pairs=usual).fit(y=y, qid=None, sample_weight=None)
    return outcome_of(journey, model)


def of_inputs(journey: Journey) -> Outcome:
    """The plain road of the columns themselves, as statistics have them."""
    return plain(journey.with_parameters(feature_map=None).in_form("primal"))


@road(kinds=("RankRLS of comparisons",), plain=of_inputs, nudge=2.0**-40)
def statistics_of_several_comparisons(journey: Journey) -> Outcome:
    """Comparisons come in two parts, and one part twice, which is subtracted again."""
    y, given, X = journey.rows.preferences, journey.parameters, journey.rows.X
    first = journey.rng().random(y.n_pairs) < 0.5
    first[0] = True  # no part may weigh nothing
    total = Pairgram.from_rows(X, y.counting(first * 1.0))
    if not first.all():
        rest = y.counting(~first * 1.0)
        total = total.update(X, rest).update(X, rest) - Pairgram.from_rows(X, rest)
    total = Pairgram.from_bytes(total.to_bytes())
    model = RankRLS.from_pairgram(total, given["alpha"], scale=given["scale"])
    assert not model.uses_qid_
    return outcome_of(journey, model)


@road(kinds=("RankRLS",))
def statistics_of_comparisons(journey: Journey) -> Outcome | None:
    y, given = _compared(journey), journey.parameters
    if y is None:
        return None
    total = Pairgram.from_rows(journey.rows.X, y)
    model = RankRLS.from_pairgram(total, given["alpha"], scale=given["scale"])
    return outcome_of(journey, model)


OF_LABELS = tuple(kind for kind in SEARCHES if kind not in (*OF_GROUPS, *COMPARED))


def _groups(journey: Journey) -> np.ndarray:
    """Return a group of two queries or three for every row."""
    numbers = np.unique(journey.rows.query, return_inverse=True)[1]
    return np.random.default_rng(journey.seed).permutation(numbers.max() + 1)[numbers] // 2


def of_folds_of_groups(journey: Journey) -> Outcome:
    """The plain road of a search by a list of splits, whose folds are whole groups."""
    rows = journey.rows
    splits = list(QueryKFold(2).split(rows.X, qid=_groups(journey)))
    return plain(journey.with_parameters(cv=splits))


@road(kinds=OF_LABELS, plain=of_folds_of_groups)
def folds_of_groups(journey: Journey) -> Outcome | None:
    if len(journey.rows.offsets) <= 4:  # fewer groups than folds, or folds of rows
        return None
    model = journey.with_parameters(cv=2).fit(groups=_groups(journey))
    return outcome_of(journey, model)


@road(kinds=tuple(kind for kind in OF_LABELS if kind != "RankRLSCV by evidence"))
def groups_of_single_queries(journey: Journey) -> Outcome | None:
    if len(journey.rows.offsets) <= 2:  # rows are held out
        return None
    return outcome_of(journey, journey.fit(groups=journey.rows.query))
