"""`AutoRanker`: the best of several models by held-out queries, without settings."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, verbatim
from pairgram._support.machine import until
from pairgram._support.parameters import (
    check_parameters,
)
from pairgram._support.row_warnings import warn_of_equal_labels, without_row_warnings
from pairgram.auto.mean import mean_of_columns
from pairgram.auto.trials import (
    COLUMNS,
    Task,
    Trial,
    choices_of,
    mean_of_linear,
    trials,
)
from pairgram.data.pairs import Pairs
from pairgram.data.queries import one_query_meant
from pairgram.features.row_values import WORDS, Chain, Fill
from pairgram.model_selection.judge import (
    Judge,
    Judged,
    column_of,
    ordered,
    refuse_criterion,
    search_results,
)
from pairgram.model_selection.splits import held_by_default, make_splits
from pairgram.rankers.linear_ranker import LinearSearch
from pairgram.rankers.preparation import GivenArrays, Preparation, Search, Spec, needs_rows
from pairgram.rankers.rank_rls import RankRLSCV

if TYPE_CHECKING:
    from pairgram._support.types import CV, RandomState
    from pairgram.metrics.evaluation import Scoring
    from pairgram.rankers.validation import Validation

# Models whose difference is at most so many standard errors cannot be told apart. Features or a
# kernel must lead by as many: they have more ways to be better by chance than linear models.
LEAD = 1.0
# A family of features or kernels is given up if so many of its trials stay further behind.
FIRST_OF_FAMILY = 2
# Once features or a kernel have led, others are worth so many times more time.
AFTER_GAIN = 5.0
# A trial is begun if so many times the seconds that are expected are left.
MARGIN = 1.2
# What is expected of work counts as much as if so many seconds of it had been measured.
KNOWN = 0.02
# The settings that are not numbers.
TEXTS = ("features", "inputs", "pairs", "outcome")
# Why a trial was not made, or not to its end.
OVER_BUDGET, STOPPED, GIVEN_UP, NO_GAIN = "over budget", "stopped", "given up", "no gain"


@dataclass(frozen=True, eq=False)
class TrialsSpec(Spec):
    """The trials of an `AutoRanker`, whose parameters the attributes are.

    Attributes
    ----------
    rows : Preparation
    search : Search
        How every trial holds rows out.
    budget : float or None
        `time_budget`, in seconds.
    verbose : bool
    random_state : int, RandomState, Generator or None
    began : float
        When the fit began, by `time.perf_counter`.
    """

    search: Search
    budget: float | None
    verbose: bool
    random_state: RandomState
    began: float = field(default_factory=time.perf_counter)

    def of_preferences(self, preferences: Any) -> Self:
        """Return the same: every trial takes comparisons."""
        return self

    def of_clicks(self) -> Self:
        """Return the trials of clicks, which all judge by clicks / propensities."""
        return replace(self, search=self.search.of_clicks())

    def fit_arrays(self, rows: GivenArrays, validation: Validation) -> dict[str, Any]:
        """Try the models that the budget allows; return the attributes of the best."""
        data, cv = rows.data, self.search.cv
        compares = data.preferences is not None  # which are held out by each trial alike
        task = Task.of(data, choices_of(data), 0)
        if not compares and cv is None and validation is None:  # all trials have these folds
            n_held = data.held_together.n_filled
            cv = held_by_default(n_held, len(data.y), not task.iterates)
        splits = None if compares or cv is None else make_splits(cv, data)
        task = Task.of(data, task.choices, 0 if splits is None else len(splits))
        common = {"scoring": self.search.scoring}
        common |= {
            "cv": cv if compares else splits and list(splits),
        }
        named = rows.arguments | {"validation": validation}
        course, mean = _Course(self, common, named), mean_of_linear(task)
        every = trials(task, self.random_state)
        course.make([trial for trial in every if trial.family == COLUMNS], mean.cost)
        if not compares:
            course.average(mean, rows, validation, splits)
        course.make([trial for trial in every if trial.family != COLUMNS])
        best = course.best
        course.tell_best()
        names = {*vars(best), "held_out_", "per_query_"}
        found = {name: getattr(best, name) for name in names if name.endswith("_")}
        found["_column_sums"] = best._column_sums
        if not compares and data.offset is None and not data.labels_differ(Pairs()):
            warn_of_equal_labels()
        return found | {"best_estimator_": best} | course.results()


class _Course:
    """The trials of one fit, one after the other, and the best search so far."""

    def __init__(self, spec: TrialsSpec, common: dict[str, Any], named: dict[str, Any]) -> None:
        self.spec, self.common, self.named = spec, common, named
        self.end = float("inf") if spec.budget is None else spec.began + spec.budget
        self.expected = self.taken = KNOWN  # seconds of all trials so far
        self.rows: list[dict[str, Any]] = []  # of the table of trials
        self.best_row = 0
        self.first: RankRLSCV | None = None
        self.linear: list[RankRLSCV] = []
        self.linear_best: list[RankRLSCV] = []  # the single one, beside its mean with others
        self.behind: dict[str, list[bool]] = {}  # of every family, in the order of its trials
        self.useful = self.idle = 0.0  # costs up to the last gain, and since
        self.gained = False  # whether features or a kernel have led

    @property
    def best(self) -> RankRLSCV:
        """The best search so far."""
        assert self.first is not None  # the first trial is always made
        return self.first

    @property
    def slowness(self) -> float:
        """How many times as long as expected the trials so far have taken."""
        return self.taken / self.expected

    def make(self, every: Sequence[Trial], then: float = 0.0) -> None:
        """Make the trials that are worth it and end in time, also for what costs `then` later."""
        for trial in every:
            end = self.end - self.slowness * then
            reason = self._reason_against(trial, end)
            if reason:
                self.add(trial, reason)
                self._print(f"{trial.name}: {reason}")
            else:
                self._make(trial, end)

    def _reason_against(self, trial: Trial, end: float) -> str:
        """Return why a trial should not be made, or an empty string."""
        if self.first is None:
            return ""
        if time.perf_counter() + MARGIN * self.slowness * trial.cost > end:
            return OVER_BUDGET
        of_family = self.behind.get(trial.family, [])
        if trial.family != COLUMNS:
            if len(of_family) == FIRST_OF_FAMILY and all(of_family):
                return GIVEN_UP
            patience = limits.now.patience * (AFTER_GAIN if self.gained else 1.0)
            if self.idle + trial.cost > patience * self.useful + limits.now.patient_seconds:
                return NO_GAIN
        return ""

    def _make(self, trial: Trial, end: float) -> None:
        best = self.first
        pairs = trial.choice or (None if best is None else best.pairs_) or "with_ties"
        way = Chain(self.spec.rows.filler, WORDS.get(trial.inputs or ""), trial.map_or_kernel)
        search = RankRLSCV(pairs=pairs, feature_map=way.short, **self.common)
        began = time.perf_counter()
        end = end if best is not None else float("inf")
        try:
            with one_query_meant(), without_row_warnings(), until(end, self.slowness):
                search.fit(**self.named)
        except (TimeoutError, ValueError, MemoryError) as error:
            if best is None:
                raise
            self._add_unfinished(trial, error, time.perf_counter() - began)
            return
        seconds = time.perf_counter() - began
        self.expected, self.taken = self.expected + trial.cost, self.taken + seconds
        lead, spread = (np.nan, np.nan) if best is None else _lead(search, best)
        is_linear = trial.family == COLUMNS
        self.add(trial, "tried", search, seconds, (lead, spread))
        self._print(f"{trial.name}: {search.best_score_:.4f}, {seconds:.2f} s")
        self.idle += trial.cost
        if is_linear:
            self.linear.append(search)
            gains = best is None or lead > 0
        else:
            rivals = [_lead(search, one) for one in (self.best, *self.linear_best)]
            errors = [np.nan_to_num(error) for _, error in rivals]
            leads = [one for one, _ in rivals]
            gains = all(one > LEAD * error for one, error in zip(leads, errors, strict=True))
            behind = any(one < -error for one, error in zip(leads, errors, strict=True))
            self.behind.setdefault(trial.family, []).append(behind)
        if gains:
            self.first, self.best_row = search, len(self.rows) - 1
            self.gained = not is_linear
        if is_linear or self.first is search:
            self.useful, self.idle = self.useful + self.idle, 0.0

    def _add_unfinished(self, trial: Trial, error: Exception, seconds: float) -> None:
        """Add a trial that was stopped, or that failed."""
        if isinstance(error, TimeoutError):
            outcome, how = STOPPED, f"stopped after {seconds:.2f} s, when the time was over"
        else:
            outcome = how = f"failed: {error}"
        self.add(trial, outcome, seconds=seconds)
        self._print(f"{trial.name}: {how}")

    def average(self, trial: Trial, rows: GivenArrays, validation: Validation, splits: Any) -> None:
        """Take the mean of the linear models that cannot be told apart from the best of them."""
        best = self.best
        self.linear_best = [best]
        members = [best]
        for search in self.linear:
            lead, error = _lead(search, best)
            if search is not best and lead >= -LEAD * error:  # not with an error of NaN
                members.append(search)
        tests = np.concatenate([test for _, test in splits]) if splits else np.arange(0)
        alone = np.bincount(tests).max(initial=0) < 2  # no row has several held-out scores
        if len(members) == 1 or rows.data.offset is not None or not alone:
            return
        trial = replace(trial, features=f"mean of {len(members)} linear models")
        began = time.perf_counter()
        held_rows = tests if splits else slice(None)
        try:
            with without_row_warnings(), until(self.end, self.slowness):
                held = None if validation is None else rows.held(validation, rows.data)
                told = self.common["cv"], held, best.scoring_
                judge = Judge.make(rows.data, *told, exact=True)  # as the trials, if cv is None
                mean, deviation = mean_of_columns(
                    members, rows.data, self.spec.rows, judge, held_rows
                )
        except (TimeoutError, ValueError, MemoryError) as why:
            self._add_unfinished(trial, why, time.perf_counter() - began)
            return
        lead, error = _lead(mean, best)
        seconds = time.perf_counter() - began
        trial = replace(trial, inputs=Chain.of(mean.feature_map_).kind)
        self.add(trial, "tried", mean, seconds, (lead, error), deviation)
        self._print(f"{trial.name}: {mean.best_score_:.4f}, {seconds:.2f} s")
        if lead >= -LEAD * error:
            self.first, self.best_row = mean, len(self.rows) - 1

    def add(
        self,
        trial: Trial,
        outcome: str,
        search: RankRLSCV | None = None,
        seconds: float = np.nan,
        lead: tuple[float, float] = (np.nan, np.nan),
        deviation: float | None = None,
    ) -> None:
        """Add a trial to the table, with what was found if it was made."""
        numbers = (np.nan,) * 3
        if search is not None:
            if deviation is None:
                deviation = search.cv_results_["std_test_score"][search.best_index_]
            numbers = (search.alpha_, search.best_score_, deviation)
        row = {
            "features": trial.features,
            "inputs": trial.inputs,
            "pairs": trial.choice if search is None else search.pairs_,
            **dict(zip(("alpha", "score", "deviation"), numbers, strict=True)),
            **dict(zip(("lead", "standard_error"), lead, strict=True)),
            "seconds": seconds,
            "outcome": outcome,
        }
        self.rows.append(row)

    def results(self) -> dict[str, Any]:
        """Return the attributes ``trials_``, ``cv_results_`` and ``best_index_``."""
        self.rows[self.best_row]["outcome"] = "best"
        every: dict[str, Any] = {
            name: (column_of if name in TEXTS else np.array)([row[name] for row in self.rows])
            for name in self.rows[0]
        }
        made = np.isin(every["outcome"], ("best", "tried"))
        columns = {name: every[name][made] for name in ("features", "inputs", "pairs", "alpha")}
        judged = Judged(every["score"][made], every.pop("deviation")[made])
        rank = -ordered(judged.means, self.best.scoring_)
        return {
            "trials_": every,
            "cv_results_": search_results(columns, judged, rank),
            "best_index_": int(made[: self.best_row].sum()),
        }

    def tell_best(self) -> None:
        """Print what is kept."""
        row = self.rows[self.best_row]
        of = "" if row["inputs"] is None else f" of {row['inputs']} inputs"
        self._print(f"kept: {row['features']}{of}, {row['pairs']}")

    def _print(self, line: str) -> None:
        if self.spec.verbose:
            print(line, file=sys.stderr, flush=True)


@dataclass(eq=False, repr=False)
class AutoRanker(LinearSearch):
    """Rank without choosing settings: try several models on held-out queries and keep the best.

    The models are `RankRLSCV` searches. Linear models come first: of the columns as they are, of
    the columns and their distribution functions, of these functions alone, and of scaled columns,
    each with several `pairs`. Then come random Fourier features, and then the kernels
    "minmax" and "rbf" if there are at most 6,000 rows, or Nyström features of "minmax" if there are
    more. Each search chooses its ridge by exact leave-query-out, or by five folds for wide sparse
    rows.

    A linear model replaces the best before it if its mean over the held-out queries is higher. Then
    all linear models that are at most one standard error behind the best are averaged, because the
    best of many is in part the luckiest. The mean takes the place of the best, unless it is more
    than a standard error behind. Features or a kernel must lead both the best linear model and the
    best so far by a standard error, so that a more complex model does not win by chance. Standard
    errors are those of the differences in single queries. With a single query there are none, and
    every lead is enough.

    Parameters
    ----------
    time_budget : float > 0 or None, default=30.0
        Seconds that the fit may take; it may exceed them by a tenth plus 0.2 s. The first trial, of
        ``RankRLSCV()``, is always made. The seconds of each
        trial serve to predict those of later ones. A trial that would not end in time is not begun,
        and one that runs over is stopped. The speed of the machine therefore decides which trials
        are made. Those left out have the outcome "over budget" or "stopped" in `trials_`. If there
        are none, the model depends on the data, the settings and the seed alone. With None there is
        no limit, so this always holds.
    cv : int, splitter, iterable of splits or None, default=None
        As in `RankRLSCV`. All trials use the same splits.
    scoring : str, Metric, scorer or None, default=None
        The metric that judges, as in `RankRLSCV`. If y are `Clicks`, it must
        be a metric of clicks, and None stands for "ips_dcg@10".
    verbose : bool, default=False
        Whether to print a line for every trial on standard error: what came of it, or why it was
        left out.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the random features.
    feature_map : Fill or None, default=None
        What fills missing values before all models that are tried.

    Attributes
    ----------
    best_estimator_ : RankRLSCV
        The search that won, fitted to all rows. All other attributes of a `RankRLSCV` are here too.
        If a mean of linear models won, `coef_`, `feature_map_`, `held_out_`, `per_query_` and
        `best_score_` are its own, and settings, ridges and `coef_path_` are those of its best
        member.
    best_score_ : float
        Its mean held-out score. As the best of many scores it is optimistic; use a test set for an
        honest estimate.
    trials_ : dict of str to ndarray
        A row for every trial, in their order: ``features``, ``inputs``, ``pairs``,
        ``alpha``, ``score``, ``lead`` (over the best model before it), ``standard_error`` (of the
        lead), ``seconds`` and ``outcome``, which is

        - "best", or "tried" if another model won;
        - "over budget" if it was not begun, because it would not have ended in time;
        - "stopped" if it did not end in time;
        - "given up" if the first two trials of its kind were further behind than a standard error;
        - "no gain" if the trials since the last gain would have cost more than a second plus twice
          what those up to it cost (ten times once features or a kernel have led). Costs are
          computed at fixed rates, so they are the same on every machine;
        - or why it failed.
    cv_results_ : dict
        The trials that were made, in the columns of scikit-learn's searches: ``params``,
        ``param_features``, ``param_inputs``, ``param_pairs``, ``param_alpha``,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    best_index_ : int
        The row of the best model in `cv_results_`.

    See Also
    --------
    RankRLSCV : One of these searches, with settings.

    Notes
    -----
    `fit` takes no table of `scan`. A linear path costs n · n_features² + n_features³ flops, a
    kernel n³. Memory is that of the largest trial, and of 8 n bytes for each linear model.

    Models are divided by the standard deviation of their held-out scores within queries before they
    are averaged. Their mean is a model of the columns, of their distribution functions or of both,
    as `feature_map_` says, and its held-out scores are exact as theirs are. There is no mean for
    comparisons, with offsets, with a single query, or if a row is held out several times.

    Examples
    --------
    >>> from pairgram import AutoRanker, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = AutoRanker(time_budget=1.0).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    time_budget: float | None = 30.0
    _: KW_ONLY
    cv: CV = None
    scoring: Scoring = None
    verbose: bool = False
    random_state: RandomState = 0
    feature_map: Fill | None = None

    def _spec(self) -> TrialsSpec:
        check_parameters(self, "time_budget")
        refuse_criterion(self.scoring)
        way = Chain.of(self.feature_map)
        if way.scaling is not None or way.then is not None:
            raise ArgumentError(
                "feature_map",
                "must be a Fill or None: an AutoRanker chooses the others, got "
                f"{verbatim(repr(self.feature_map))}",
            )
        return TrialsSpec(
            Preparation((way,), needed=needs_rows(self)),
            Search(self.cv, self.scoring),
            None if self.time_budget is None else float(self.time_budget),
            self.verbose,
            self.random_state,
        )

    def _contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the contents of a file of the best model; `load_model` reads it as one."""
        best = self.best_estimator_
        return best._contents()


def _lead(search: RankRLSCV, best: RankRLSCV) -> tuple[float, float]:
    """Return the mean lead of a search over the best before it, and its standard error.

    The error is that of the weighted differences in the single queries. It is NaN for a single one.
    """
    metric = search.scoring_
    sign = 1 if metric.greater_is_better else -1
    lead = sign * (search.best_score_ - best.best_score_)
    leads = search.per_query_[metric.name] - best.per_query_[metric.name]
    counted = ~np.isnan(leads) & (search.per_query_["weight"] > 0)
    leads, weights = leads[counted], search.per_query_["weight"][counted]
    if len(leads) < 2:
        return float(lead), np.nan
    shares = weights / weights.sum()
    squares = (shares * (leads - shares @ leads)) ** 2
    return float(lead), float(np.sqrt(squares.sum() * len(leads) / (len(leads) - 1)))
