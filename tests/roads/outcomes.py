"""What a road leads to, and whether two roads lead to the same.

Two roads round differently, so the numbers may differ. How much they may differ is not guessed: the
same road is gone again with columns that are nudged by a known share, and what the answers move by
is the measure. An answer that a nudge turns over, such as the order of two scores that tie but for
rounding errors, is no answer that two roads must share. What is not a number, an error, or what
nudges do not move must be the same.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from journeys import Journey

from row_value import fill_of

# Columns are nudged by this share, which is 256 times the rounding of a float64.
NUDGE = 2.0**-44
NUDGE_32 = 2.0**-21
# An answer may be off by so many times what a nudge moves it by, and by this share of its size.
TIMES = 16.0
SHARE = 1e-11
# The documented share of rounding errors, which is multiplied by λ_max / alpha.
EPSILON = 1e-15
# Rounding errors of scores that are a larger share of them may order two rows either way.
LARGEST_SHARE = 1e-5
# A number that may be off by this share of its size is a rounding error itself.
LARGEST_BOUND = 0.1
# The values that are held against each other one by one: each stands for a setting.
ALONG = ("scores", "results")
JUDGED = (*ALONG, "best")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The numbers of a fitted model, by name, and what must be equal; or the error of the road."""

    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    equal: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    # How many times larger than the rounding of a number its effect may be: about λ_max / alpha.
    amplification: dict[str, Any] = field(default_factory=dict)


def outcome_of(
    journey: Journey, model: Any, X: Any = None, *, scores: Any = None, same_rows: bool = True
) -> Outcome:
    """Read off a fitted model.

    Parameters
    ----------
    journey : Journey
    model : fitted ranker
    X : the rows of the journey, as the road has them; None takes the array
    scores : array-like of shape (n_rows,) or None
        The scores of these rows; None takes those of ``predict``
    same_rows : bool
        Whether the model was fitted to the rows of the journey in their order. Models of different
        queries have different origins, so held-out scores are compared within queries.
    """
    if scores is None:
        scores = model.predict(journey.rows.X if X is None else X)
    scores = np.asarray(scores, dtype=np.float64)
    numbers = {"predict": scores - scores.mean()}
    if journey.is_pointwise:
        numbers["level"] = scores.mean(keepdims=True)
    equal: dict[str, Any] = {"labels": float(np.abs(journey.rows.y).max())}
    if hasattr(model, "intercept_"):
        numbers["intercept"] = np.atleast_1d(model.intercept_)
    if hasattr(model, "scores_"):
        numbers["scores"] = np.asarray(model.scores_, dtype=np.float64)
        numbers["best"] = np.atleast_1d(model.best_score_)
        numbers["results"] = np.asarray(model.cv_results_["mean_test_score"])
        equal["order of cv_results_"] = [
            {k: None if k in ("alpha", "C") else str(v) for k, v in row.items()}
            for row in model.cv_results_["params"]
        ]
        equal["scoring"] = str(getattr(model, "scoring_", None))
        equal["ranks"] = "_error" not in equal["scoring"]
        held_out = getattr(model, "held_out_", None)
        if held_out is not None and same_rows:
            compared = journey.rows.preferences is not None  # scores are differences then
            within = held_out if compared else _within_queries(held_out, journey.rows.query)
            numbers["held out"] = within
    for name in ("alpha_", "C_"):
        if hasattr(model, name):
            numbers["ridge"] = np.atleast_1d(np.asarray(getattr(model, name), dtype=np.float64))
    if hasattr(model, "scores_"):
        equal["choice"] = {
            name: str(getattr(model, name)) for name in ("pairs_", "scale_") if hasattr(model, name)
        }
    return Outcome(numbers, equal, amplification=_amplification(journey, model))


def filled(model: Any, X: np.ndarray) -> np.ndarray:
    """Return rows with what takes the place of missing values in a ranker, or in a pipeline."""
    fill = fill_of(model[-1] if hasattr(model, "steps") else model)
    return X if fill is None else np.where(np.isnan(X), fill, X)


def _within_queries(scores: np.ndarray, query: np.ndarray) -> np.ndarray:
    if query.max() == 0:
        return scores
    rows = np.bincount(query)
    return scores - (np.bincount(query, scores) / np.maximum(rows, 1))[query]


def _amplification(journey: Journey, model: Any) -> dict[str, Any]:
    """Return bounds of λ_max / alpha, by which rounding errors of scores are multiplied."""
    values = filled(model, journey.rows.X)
    before, squares = np.ptp(values, axis=0), float((values**2).sum())
    if getattr(model, "feature_map_", None) is not None:
        values = np.asarray(model.feature_map_.transform(values), dtype=np.float64)
    centre = 0.0 if journey.is_pointwise else values.mean(axis=0)
    size = float(((values - centre) ** 2).sum()) + np.abs(values).max(initial=0.0)
    if getattr(model, "scale_", getattr(model, "scale", False)):
        size = max(size, values.shape[1])
    ridges = {"predict": _first(model, ("alpha_", "alpha"), ("C_", "C"))}
    if hasattr(model, "scores_"):
        ridges["scores"] = _first(model, ("alphas_",), ("Cs_",))
        ridges["results"] = _first(model.cv_results_, ("param_alpha",), ("param_C",))
    # What all rows have in common takes digits of the differences that order them, all digits if a
    # map rounds rows that differ to equal ones.
    deviations = values.std(axis=0)
    without = 0.0 if before.any() and not deviations.any() else np.inf
    with np.errstate(divide="ignore"):
        common = np.abs(values).max(axis=0) / np.where(deviations > 0, deviations, without)
    # Not every entry of a search has the inputs that it chose.
    sizes = dict.fromkeys(ridges, size) | {"results": max(size, squares)}
    # The solver of a RankSVM stops at its own tolerance, which is that of a gradient.
    times = max(1.0, getattr(model, "tol", 0.0) / EPSILON)
    found = {
        name: times * np.maximum(1.0, 8 * len(values) * sizes[name] / np.maximum(ridge, 1e-300))
        for name, ridge in ridges.items()
    }
    order = np.array(1.0 + common.max(initial=0.0))
    if getattr(model, "scale_", getattr(model, "scale", False)):  # columns of few digits count too
        found["predict"] = found["predict"] * order
    return found | {"order": order}


def _first(found: Any, ridges: tuple[str, ...], Cs: tuple[str, ...]) -> np.ndarray:
    """Return the first of some attributes or entries, as ridges."""
    known = found if isinstance(found, dict) else vars(found)
    for names, power in ((ridges, 1.0), (Cs, -1.0)):
        for name in names:
            if name in known:
                return np.asarray(known[name], dtype=np.float64) ** power
    return np.array(1.0)


def arrive(road: Callable[[Journey], Outcome], journey: Journey) -> Outcome:
    """Go a road to its end. Warnings are no part of the outcome."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return road(journey)
        except (ValueError, TypeError, NotImplementedError) as error:
            return Outcome(error=error)


class Reference:
    """The outcome of the plain road, and how far rounding errors may move it.

    Parameters
    ----------
    road : callable
    journey : Journey
    nudge_values : bool
        See `Road`.
    exact : bool
        False: rounding errors may turn over the order of held-out scores, and so the choice. A
        metric of that order must then be a number where it is one.
    """

    def __init__(
        self,
        road: Callable[[Journey], Outcome],
        journey: Journey,
        *,
        nudge_values: bool = False,
        exact: bool = True,
    ) -> None:
        self.exact = exact
        self.road = road
        self.nudge_values = nudge_values
        self.journey = journey
        self.outcome = arrive(road, journey)
        self._moved: dict[float, list[Outcome]] = {}

    def moved(self, share: float, n: int) -> list[Outcome]:
        """Return the outcomes of n journeys whose columns are nudged by a share."""
        known = self._moved.setdefault(share, [])
        for seed in range(len(known), n):
            known.append(arrive(self.road, self.journey.nudged(share, seed, self.nudge_values)))
        return known[:n]

    def faults(self, other: Outcome, share: float = NUDGE) -> list[str]:
        """Return what is wrong with the outcome of another road; nothing if they agree."""
        for n in (2, 12):
            faults = self._faults(other, self.moved(share, n), share)
            if not faults:
                return []
        return faults

    def _faults(self, other: Outcome, moved: list[Outcome], share: float) -> list[str]:
        mine = self.outcome
        if _is_noise(mine, other.error, share) or _is_noise(other, mine.error, share):
            return []
        if mine.error is not None or other.error is not None:
            one, two = type(mine.error), type(other.error)
            if issubclass(one, two) or issubclass(two, one):
                return []
            return [f"{other.error!r} in place of {mine.error!r}"]
        moved = [one for one in moved if one.error is None]
        base = SHARE * share / NUDGE

        def rounding(name: str, value: np.ndarray) -> np.ndarray:
            """Return the share by which numbers may be off for rounding errors alone."""
            name = name if name in ALONG else "predict"
            known = [one.amplification.get(name, np.array(1.0)) for one in (mine, other)]
            fit = [way for way in known if way.shape in ((), value.shape)]
            return (
                EPSILON
                * share
                / NUDGE
                * np.max(np.broadcast_arrays(*fit, np.zeros(value.shape)), axis=0)
            )

        faults = []
        bounds = {}
        for name, value in mine.numbers.items():
            theirs = other.numbers.get(name)
            if theirs is None:
                continue
            if theirs.shape != value.shape:
                faults.append(f"{name}: shape {theirs.shape} in place of {value.shape}")
                continue
            numbers = [one.numbers.get(name, np.empty(0)) for one in moved]
            size = 0.0 if name in ALONG else mine.equal.get("labels", 0.0)
            share_off = np.maximum(base, rounding(name, value))
            if (
                name == "predict" and share > NUDGE
            ):  # scores are rounded with what all have in common
                share_off = np.maximum(share_off, 2.0**-23 * mine.amplification["order"])
            bounds[name] = _bound(name, value, numbers, share_off, size)
            if name in JUDGED and mine.equal["ranks"]:
                order_off = share_off * mine.amplification["order"]
                bound = bounds[name] if self.exact else np.inf  # any number will do, but NaN
                bounds[name] = np.where(order_off > LARGEST_SHARE, np.nan, bound)
            elif name in JUDGED:  # squares of rounding errors of labels
                bounds[name] += (TIMES * EPSILON * share / NUDGE * mine.equal["labels"]) ** 2
        undecided = _undecided(mine, other, bounds, self.exact)
        for name, bound in bounds.items():
            if undecided and name not in ALONG:
                continue
            value, theirs = mine.numbers[name], other.numbers[name]
            wrong = ~(np.abs(theirs - value) <= bound) & (theirs != value)
            wrong &= ~((np.isnan(value) & np.isnan(theirs)) | np.isnan(bound))
            if wrong.any():
                at = np.unravel_index(np.argmax(wrong), wrong.shape)
                faults.append(
                    f"{name}{[int(i) for i in at]}: {theirs[at]!r} in place of {value[at]!r}, "
                    f"bound {bound[at]:.2g} ({np.count_nonzero(wrong)} of {wrong.size})"
                )
        if not undecided:
            faults += [
                f"{name}: {other.equal[name]} in place of {value}"
                for name, value in mine.equal.items()
                if name in other.equal and other.equal[name] != value
            ]
        return faults


def _is_noise(found: Outcome, error: Exception | None, share: float) -> bool:
    """Tell whether an error says that rounding errors judge, and they do for what is found."""
    if found.error is not None or "rounding error" not in str(error):
        return False
    off = EPSILON * share / NUDGE * found.amplification["results"] * found.amplification["order"]
    return bool((off > LARGEST_SHARE).all())


def _bound(
    name: str, value: np.ndarray, moved: list[np.ndarray], share: np.ndarray, size: float
) -> np.ndarray:
    """Return how far each number may be off; NaN where nothing can be said.

    Parameters
    ----------
    name : str
    value : ndarray
    moved : list of ndarray
        The numbers of nudged journeys.
    share : ndarray
        The share of the size of the numbers by which they may be off for rounding errors alone.
    size : float
        The least size of the numbers.
    """
    if not moved or any(one.shape != value.shape for one in moved):
        return np.full(value.shape, np.nan)
    spread = np.max([np.abs(one - value) for one in moved], axis=0)
    # A number that only a nudge makes NaN, or a number of NaN, may be either.
    spread = np.where(np.isnan(value) & np.all(np.isnan(moved), axis=0), 0.0, spread)
    if name not in ALONG and not np.isnan(spread).all():
        spread = np.where(np.isnan(spread), np.nan, np.nanmax(spread))
    finite = value[np.isfinite(value)]
    # The arrays along a path have numbers of one size, which is the metric's.
    size = max(size, np.abs(finite).max(initial=0.0))
    bound = np.asarray(TIMES * spread + share * size + 1e-300)
    return np.where(bound > LARGEST_BOUND * size, np.nan, bound)


def _undecided(mine: Outcome, other: Outcome, bounds: dict[str, np.ndarray], exact: bool) -> bool:
    """Tell whether rounding errors decide which settings a search chooses."""
    if "best" not in mine.numbers or "best" not in other.numbers:
        return False
    moved = np.abs(mine.numbers["ridge"] - other.numbers["ridge"]) > 1e-6 * mine.numbers["ridge"]
    if not moved.any() and mine.equal["choice"] == other.equal["choice"]:
        return False
    if not exact:
        return True
    if not (bounds["ridge"] <= 1e-6 * mine.numbers["ridge"]).all():
        return True  # nudges choose other settings as well
    off = abs(other.numbers["best"][0] - mine.numbers["best"][0])
    return not off > np.max(bounds["results"])
