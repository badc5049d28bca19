"""`AutoRanker`: the best of several models by held-out queries, without settings."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.checks import warn_caller
from pairgram._support.parameters import EngineName, InputsName, PluginName, check_parameters, words
from pairgram._support.row_warnings import warn_of_equal_labels, without_row_warnings
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import one_query_meant
from pairgram.features.nystroem import Nystroem
from pairgram.features.random_fourier import RandomFourier
from pairgram.metrics.metric import Metric
from pairgram.model_selection.judge import Judged, choose, column_of, search_results
from pairgram.model_selection.splits import make_splits
from pairgram.rankers.base import LinearSearch
from pairgram.rankers.preparation import (
    QUANTILES,
    GivenArrays,
    Preparation,
    Search,
    Spec,
    needs_rows,
)
from pairgram.rankers.rank_rls import RankRLSCV
from pairgram.solvers.ridge_path import DEFAULT_POWERS

if TYPE_CHECKING:
    from pairgram._support.types import CV, Matrix, RandomState
    from pairgram.metrics.evaluation import Scoring
    from pairgram.rankers.preparation import Validation

# Seconds per operation, near what trials take on two cores. They are constants, so that a budget
# chooses the same trials on every machine.
GRAM = 3e-11  # a product and a sum of the Gram matrix
DECOMPOSITION = 1e-10  # times n_features³
HELD_OUT = 3e-9  # a feature of a row at one ridge
MAPPED = 2e-10  # a product and a sum of a feature map

# Engines that take weights of columns alone, and those that take quantiles too.
LINEAR_ENGINES, ENGINES_OF_COLUMNS = (*words(PluginName), "ranklib"), ("solr", "sql", "python")
COLUMNS = "columns"

N_FEATURES = 500
MOST_KERNEL_ROWS = 6_000
# Shares of the width at which an rbf kernel of columns with variance 1 falls off.
WIDTHS = (1 / 16, 1 / 4)
# The variance of the distribution function of a column.
OF_QUANTILES = 1 / 12


@dataclass(frozen=True)
class Task:
    """What is known of a data set before the first fit.

    Attributes
    ----------
    n_rows, n_columns : int
    n_choices : int
        The number of combinations of pairs and targets that linear models choose from.
    sparse : bool
    """

    n_rows: int
    n_columns: int
    n_choices: int
    sparse: bool

    @classmethod
    def of(cls, X: Matrix, n_choices: int) -> Task:
        """Return the task of dense or CSR rows."""
        n_rows, n_columns = X.shape
        return cls(n_rows, n_columns, n_choices, scipy.sparse.issparse(X))

    @property
    def scaled(self) -> InputsName:
        """The inputs that bring columns to a similar size."""
        return "maxabs" if self.sparse else "standard"

    @property
    def even(self) -> tuple[InputsName, ...]:
        """The inputs for features and kernels that mix all columns in one number."""
        return (self.scaled,) if self.sparse else (self.scaled, "quantile")


@dataclass(frozen=True)
class Trial:
    """One search: a `RankRLSCV` with these parameters.

    Attributes
    ----------
    features : str
        What the model is linear in, for people: "columns", "500 Fourier features, gamma 0.1".
    inputs : str or None
    seconds : float
        How long the search is expected to take.
    parameters : dict
        Further parameters of `RankRLSCV`.
    chooses : bool
        Whether the search chooses pairs and target. Otherwise it takes those of the best model
        before it, or all pairs and the labels if it is the first.
    """

    features: str
    inputs: InputsName | None
    seconds: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    chooses: bool = False

    @property
    def name(self) -> str:
        """The name for people."""
        return self.features if self.inputs is None else f"{self.features} of {self.inputs} inputs"


def trials(task: Task, random_state: RandomState, engine: EngineName | None = None) -> list[Trial]:
    """Return all trials for a task, in the order in which they are made.

    With an `engine`, those whose models it cannot express are left out; see `pairgram.export`.
    """
    every = _all_trials(task, random_state)
    if engine in LINEAR_ENGINES:
        return [one for one in every if one.features == COLUMNS and one.inputs not in QUANTILES]
    if engine in ENGINES_OF_COLUMNS:
        return [one for one in every if one.features == COLUMNS]
    return every


def _all_trials(task: Task, random_state: RandomState) -> list[Trial]:
    linear: list[InputsName | None] = [None, task.scaled]
    if not task.sparse:
        linear += ["quantile", "raw+quantile"]
    found = [Trial(COLUMNS, None, _seconds(task, task.n_columns))]
    found += [
        Trial(COLUMNS, inputs, _seconds(task, _width(task, inputs), task.n_choices), {}, True)
        for inputs in linear[task.n_choices == 1 :]
    ]
    for width in WIDTHS:
        for inputs in task.even:
            gamma = _gamma(task, inputs, width)
            found.append(_fourier(task, inputs, gamma, random_state))
    small = task.n_rows <= MOST_KERNEL_ROWS
    of_minmax: tuple[InputsName | None, ...] = (*task.even, None)  # counts need no scale
    found += [
        _kernel(task, kind, "minmax") if small else _nystroem(task, kind, random_state)
        for kind in of_minmax
    ]
    if small:
        for width in WIDTHS:
            for inputs in task.even:
                found.append(_kernel(task, inputs, "rbf", _gamma(task, inputs, width)))
    return found


def planned(every: Sequence[Trial], budget: float) -> list[Trial]:
    """Return the trials that a budget in seconds pays for, in their order.

    The first is always made. A trial that is too long is left out, and shorter ones after it may
    still be made.
    """
    chosen, left = [every[0]], budget - every[0].seconds
    for trial in every[1:]:
        if trial.seconds <= left:
            chosen.append(trial)
            left -= trial.seconds
    return chosen


def _width(task: Task, inputs: InputsName | None) -> int:
    return task.n_columns * (2 if inputs == "raw+quantile" else 1)


def _gamma(task: Task, inputs: InputsName | None, width: float) -> float:
    variance = OF_QUANTILES if inputs == "quantile" else 1.0
    return width / (task.n_columns * variance)


def _seconds(task: Task, n_features: int, n_choices: int = 1) -> float:
    """Return the expected time of a path of ridges by leave-query-out, for every choice."""
    order = min(n_features, task.n_rows)
    return n_choices * (GRAM * task.n_rows * n_features * order + _path(task, order))


def _path(task: Task, order: int) -> float:
    """Return the expected time of a path from a Gram or kernel matrix of this order."""
    held_out = HELD_OUT * task.n_rows * order * len(DEFAULT_POWERS)
    return DECOMPOSITION * order**3 + held_out


def _fourier(
    task: Task, inputs: InputsName | None, gamma: float, random_state: RandomState
) -> Trial:
    feature_map = RandomFourier(N_FEATURES, gamma=gamma, random_state=random_state)
    seconds = _seconds(task, N_FEATURES) + MAPPED * task.n_rows * task.n_columns * N_FEATURES
    name = f"{N_FEATURES} Fourier features, gamma {gamma:.2g}"
    return Trial(name, inputs, seconds, {"feature_map": feature_map})


def _nystroem(task: Task, inputs: InputsName | None, random_state: RandomState) -> Trial:
    feature_map = Nystroem("minmax", n_components=N_FEATURES, random_state=random_state)
    seconds = _seconds(task, N_FEATURES) + MAPPED * task.n_rows * task.n_columns * N_FEATURES * 4
    name = f"{N_FEATURES} minmax landmarks"
    return Trial(name, inputs, seconds, {"feature_map": feature_map})


def _kernel(
    task: Task, inputs: InputsName | None, kernel: str, gamma: float | None = None
) -> Trial:
    seconds = _path(task, task.n_rows) + MAPPED * task.n_rows**2 * task.n_columns
    name = f"{kernel} kernel" if gamma is None else f"{kernel} kernel, gamma {gamma:.2g}"
    return Trial(name, inputs, seconds, {"kernel": kernel, "gamma": gamma})


# By how many standard errors of the difference features or a kernel must lead. They have more ways
# to be better by chance than models that are linear in the columns.
LEAD = 1.0
# The plan keeps to fixed rates. The clock ends the trials after this multiple of the budget and
# these seconds, in which a short plan may load what it needs.
PATIENCE, GRACE = 3.0, 10.0
# Labels up to this are grades, of which 2^y makes a gain.
LARGEST_GRADE = 10
# The settings of the first model.
FIRST = {"pairs": "with_ties", "target": "label"}
# The settings that are not numbers.
TEXTS = ("features", "inputs", "pairs", "target")


@dataclass(frozen=True, eq=False)
class TrialsSpec(Spec):
    """The trials of an `AutoRanker`, whose parameters the attributes are.

    Attributes
    ----------
    rows : Preparation
    search : Search
        How every trial holds rows out.
    """

    search: Search
    budget: float
    engine: EngineName | None
    verbose: bool
    random_state: RandomState

    def fit_arrays(self, rows: GivenArrays, validation: Validation) -> dict[str, Any]:
        """Try the models that the budget allows; return the attributes of the best."""
        data, cv = rows.data, self.search.cv
        choices = _choices(data)
        task = Task.of(data.X, len(choices["pairs"]) * len(choices["target"]))
        every = trials(task, self.random_state, self.engine)
        common: dict[str, Any] = {"scoring": self.search.scoring, "n_threads": self.rows.n_threads}
        common["store_held_out"] = self.search.store
        common["cv"] = None if cv is None else list(make_splits(cv, data))
        named = rows.arguments | {"validation": validation}
        best, table = self._try(every, choices, common, named)
        found = {name: value for name, value in vars(best).items() if name.endswith("_")}
        found["_column_sums"] = best._column_sums
        if data.offset is None and not data.labels_differ(PairSettings()):
            warn_of_equal_labels()
        return found | {"best_estimator_": best} | table.results(best.scoring_)

    def _try(
        self,
        every: list[Trial],
        choices: dict[str, Any],
        common: dict[str, Any],
        named: dict[str, Any],
    ) -> tuple[RankRLSCV, _Table]:
        """Make the trials that the budget pays for; return the best search and all trials."""
        start, best, table = time.perf_counter(), None, _Table()
        plan, longest = planned(every, self.budget), PATIENCE * self.budget + GRACE
        for trial in every:
            if trial not in plan:
                table.add(trial, "over budget")
                continue
            if best is not None and time.perf_counter() - start > longest:
                table.add(trial, "skipped")
                continue
            if self.verbose and trial.seconds > limits.now.long_seconds:
                _print(f"{trial.name}: takes about {trial.seconds:.0f} s")
            settings = choices
            if not trial.chooses:
                settings = FIRST if best is None else {"pairs": best.pairs_, "target": best.target_}
            search = RankRLSCV(inputs=trial.inputs, **trial.parameters, **settings, **common)
            began = time.perf_counter()
            try:
                with one_query_meant(), without_row_warnings():
                    search.fit(**named)
            except (ValueError, MemoryError) as error:
                if best is None:
                    raise
                table.add(trial, f"failed: {error}")
                continue
            seconds = time.perf_counter() - began
            lead = (np.nan, np.nan) if best is None else _lead(search, best)
            table.add(trial, "tried", search, seconds, lead)
            needed = LEAD if trial.parameters else 0.0
            if best is None or lead[0] > needed * np.nan_to_num(lead[1]):
                best, table.best = search, len(table.outcomes) - 1
            if self.verbose:
                _print(f"{trial.name}: {search.best_score_:.4f}, {seconds:.2f} s")
        assert best is not None  # the first trial is always made
        if "skipped" in table.outcomes:
            warn_caller(
                f"the trials took more than {longest:.0f} s with a budget of "
                f"{self.budget:g} s, so {table.outcomes.count('skipped')} were skipped: "
                "another run may try more of them, and find another model",
                UserWarning,
            )
        return best, table


@dataclass(eq=False, repr=False)
class AutoRanker(LinearSearch):
    """Rank without choosing settings: try several models on held-out queries and keep the best.

    The models are `RankRLSCV` searches: of the columns as they are, scaled, replaced by their
    distribution functions, or both; then of random Fourier features; then of the kernels "minmax"
    and "rbf" if there are at most 6,000 rows, or of Nyström features of "minmax" if there are more.
    The cheapest comes first: the linear default. Each chooses its ridge, and the linear ones choose
    `pairs` and `target`, by exact leave-query-out.

    A model that is linear in the columns replaces the best before it if its mean over the held-out
    queries is higher. Features or a kernel must lead by a standard error of the difference in the
    single queries, so that a model that is more complex does not win by chance.

    Parameters
    ----------
    time_budget : float > 0, default=30.0
        Seconds that the trials may take together. Before the first fit, the budget chooses the
        trials by their expected times, which depend on the shape of X alone. Equal data, settings
        and seeds therefore give the same model on every machine. The first trial is always made.
        Trials that are left when ten seconds more than three times the budget are over are skipped,
        with a warning.
    cv : int, splitter, iterable of splits or None, default=None
        As in `RankRLSCV`. All trials use the same splits.
    scoring : str, Metric, scorer or None, default=None
        The metric that judges, as in `RankRLSCV`.
    exportable_to : str or None, default=None
        An engine that the model must fit: "solr", "ltr_plugin", "vespa", "onnx", "ranklib", "sql"
        or "python", which are functions of `pairgram.export`. "elasticsearch" and "opensearch"
        stand for "ltr_plugin", their learning-to-rank plugin. Models that it cannot express are
        not tried. Search plugins take weights of columns alone, Solr, SQL and Python quantiles too,
        and Vespa and ONNX every model.
    verbose : bool, default=False
        Whether to print a line for every trial on standard error.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the random features.
    n_threads : int or None, default=None
        As in `RankRLS`.

    Attributes
    ----------
    best_estimator_ : RankRLSCV
        The search that won, fitted to all rows. All other attributes of a `RankRLSCV` are here too.
    best_score_ : float
        Its mean held-out score. It is the best of many, so it flatters: a test set tells more.
    trials_ : dict of str to ndarray
        A row for every trial that was planned, or could have been: ``features``, ``inputs``,
        ``pairs``, ``target``, ``alpha``, ``score``, ``lead`` (over the best model before it),
        ``standard_error`` (of the lead), ``seconds``, ``expected_seconds`` and ``outcome``:
        "best", "tried", "over budget", "skipped" or why it failed.
    cv_results_ : dict
        The trials that were made, in the columns of scikit-learn's searches: ``params``,
        ``param_features``, ``param_inputs``, ``param_pairs``, ``param_target``, ``param_alpha``,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    best_index_ : int
        The row of the best model in `cv_results_`.

    See Also
    --------
    RankRLSCV : One of these searches, with settings.

    Notes
    -----
    `fit` takes no table of `scan`. A linear path costs n · n_features² + n_features³ flops, a
    kernel n³. Memory is that of the largest trial.

    Examples
    --------
    >>> from pairgram import AutoRanker, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = AutoRanker(time_budget=1.0).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    feature_map = None

    time_budget: float = 30.0
    _: KW_ONLY
    cv: CV = None
    scoring: Scoring = None
    exportable_to: EngineName | None = None
    verbose: bool = False
    random_state: RandomState = 0
    n_threads: int | None = None

    def _spec(self) -> TrialsSpec:
        check_parameters(self, "time_budget", "exportable_to")
        return TrialsSpec(
            Preparation(no_table=needs_rows(self), n_threads=self.n_threads),
            Search(self.cv, self.scoring, store=True),
            float(self.time_budget),
            self.exportable_to,
            self.verbose,
            self.random_state,
        )

    def _contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the contents of a file of the best model; `load_model` reads it as one."""
        best: RankRLSCV = self.best_estimator_
        return best._contents()


def _choices(data: RankingData) -> dict[str, Any]:
    """Return the pairs and targets that linear models choose from, by the labels."""
    if data.queries.n_filled == 1:  # without tied pairs, every row held out would need a fit
        return {"pairs": ["with_ties"], "target": ["label"]}
    y = data.y
    graded = bool((y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) <= LARGEST_GRADE)
    if not graded:
        return {"pairs": ["with_ties", "without_ties"], "target": ["label"]}
    return {"pairs": ["with_ties", "without_ties", "gain_difference"], "target": ["label", "gain"]}


def _lead(search: RankRLSCV, best: RankRLSCV) -> tuple[float, float]:
    """Return the mean lead of a search over the best before it, and its standard error.

    The error is that of the differences in the single queries. It is NaN for a single query.
    """
    metric = search.scoring_
    sign = 1 if metric.greater_is_better else -1
    lead = sign * (search.best_score_ - best.best_score_)
    leads = search.per_query_[metric.name] - best.per_query_[metric.name]
    leads = leads[~np.isnan(leads)]
    error = leads.std(ddof=1) / np.sqrt(len(leads)) if len(leads) > 1 else np.nan
    return float(lead), float(error)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Table:
    """What came of all trials."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.outcomes: list[str] = []
        self.best = 0

    def add(
        self,
        trial: Trial,
        outcome: str,
        search: RankRLSCV | None = None,
        seconds: float = np.nan,
        lead: tuple[float, float] = (np.nan, np.nan),
    ) -> None:
        """Add a trial, with what was found if it was made."""
        numbers = (np.nan,) * 3
        if search is not None:
            deviation = search.cv_results_["std_test_score"][search.best_index_]
            numbers = (search.alpha_, search.best_score_, deviation)
        row = {
            "features": trial.features,
            "inputs": trial.inputs,
            "pairs": None if search is None else search.pairs_,
            "target": None if search is None else search.target_,
            **dict(zip(("alpha", "score", "deviation"), numbers, strict=True)),
            **dict(zip(("lead", "standard_error"), lead, strict=True)),
            "seconds": seconds,
            "expected_seconds": trial.seconds,
        }
        self.rows.append(row)
        self.outcomes.append(outcome)

    def results(self, metric: Metric) -> dict[str, Any]:
        """Return the attributes ``trials_``, ``cv_results_`` and ``best_index_``."""
        outcomes = list(self.outcomes)
        outcomes[self.best] = "best"
        every = {
            name: column_of([row[name] for row in self.rows])
            if name in TEXTS
            else np.array([row[name] for row in self.rows])
            for name in self.rows[0]
        }
        made = np.array([outcome in ("best", "tried") for outcome in outcomes])
        columns = {name: every[name][made] for name in (*TEXTS, "alpha")}
        judged = Judged(every["score"][made], every.pop("deviation")[made])
        _, ranks = choose(judged.means, metric)
        return {
            "trials_": every | {"outcome": column_of(outcomes)},
            "cv_results_": search_results(columns, judged, ranks),
            "best_index_": int(made[: self.best].sum()),
        }
