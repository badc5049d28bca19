"""`AutoRanker`: the best of several models by held-out queries, without settings."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram._support.checks import check_positive, check_text
from pairgram._support.row_warnings import without_row_warnings
from pairgram._support.words import EngineName, words
from pairgram.auto.plan import Task, Trial, planned, trials
from pairgram.least_squares.rank_rls import RankRLSCV
from pairgram.metrics import Metric
from pairgram.model_selection.judge import Judged, choose
from pairgram.model_selection.results import column_of, search_results
from pairgram.model_selection.splits import make_splits
from pairgram.problem.data import RankingData, RowInfo
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.queries_and_pairs.queries import one_query_meant
from pairgram.rankers.base import LinearRanker

__all__ = ["AutoRanker"]

# By how many standard errors of the difference features or a kernel must lead. They have more ways
# to be better by chance than models that are linear in the columns.
LEAD = 1.0
# Trials that are expected to take longer than this are announced, in seconds.
LONG = 10.0
# The plan keeps to fixed rates. The clock ends the trials after this multiple of the budget and
# these seconds, in which a short plan may load what it needs.
PATIENCE, GRACE = 3.0, 10.0
# Labels up to this are grades, of which 2^y makes a gain.
LARGEST_GRADE = 10
# The settings of the first model.
FIRST = {"pairs": "kept", "target": "label"}
# The settings that are not numbers.
TEXTS = ("features", "inputs", "pairs", "target")


class AutoRanker(LinearRanker):
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
    budget : float > 0, default=30.0
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
    A linear path costs n · n_features² + n_features³ flops, a kernel n³. Memory is that of the
    largest trial.

    Examples
    --------
    >>> from pairgram import AutoRanker, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = AutoRanker(budget=1.0).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    feature_map = None

    def __init__(
        self,
        budget: float = 30.0,
        *,
        cv: Any = None,
        scoring: str | Metric | None = None,
        exportable_to: EngineName | None = None,
        verbose: bool = False,
        random_state: Any = 0,
        n_threads: int | None = None,
    ) -> None:
        self.budget = budget
        self.cv = cv
        self.scoring = scoring
        self.exportable_to = exportable_to
        self.verbose = verbose
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        validation: Any = None,
    ) -> Self:
        """Try the models that the budget allows, and keep the best.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, offset, validation :
            As in `RankRLSCV.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The errors of `RankRLSCV.fit`; and if `budget` is not positive, or `exportable_to` is
            unknown.

        Warns
        -----
        UserWarning
            If the clock ended the trials; and as in `RankRLS.fit`.
        """
        budget = check_positive("budget", self.budget)
        engine = self.exportable_to
        if engine is not None:
            check_text("exportable_to", engine, words(EngineName), "or None")
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        data = self._check_rows(X, y, info)
        self._warn_of_missing_queries(data, info)
        choices = _choices(data)
        task = Task.of(data.X, len(choices["pairs"]) * len(choices["target"]))
        every = trials(task, self.random_state, engine)
        common: dict[str, Any] = {"scoring": self.scoring, "n_threads": self.n_threads}
        common["cv"] = None if self.cv is None else list(make_splits(self.cv, data))
        rows = _Rows(X, y, {**info._asdict(), "validation": validation})
        best, table = self._try(every, planned(every, budget), choices, common, rows)
        found = {name: value for name, value in vars(best).items() if name.endswith("_")}
        found["_column_sums"] = best._column_sums
        self.__dict__.update(found | {"best_estimator_": best} | table.results(best.scoring_))
        self._warn_of_equal_labels(data, [PairSettings()])
        return self

    def _try(
        self,
        every: list[Trial],
        plan: list[Trial],
        choices: dict[str, Any],
        common: dict[str, Any],
        rows: _Rows,
    ) -> tuple[RankRLSCV, _Table]:
        """Make the trials of the plan; return the best search and all trials."""
        start, best, table = time.perf_counter(), None, _Table()
        longest = PATIENCE * self.budget + GRACE
        for trial in every:
            if trial not in plan:
                table.add(trial, "over budget")
                continue
            if best is not None and time.perf_counter() - start > longest:
                table.add(trial, "skipped")
                continue
            if self.verbose and trial.seconds > LONG:
                _print(f"{trial.name}: takes about {trial.seconds:.0f} s")
            settings = choices
            if not trial.chooses:
                settings = FIRST if best is None else {"pairs": best.pairs_, "target": best.target_}
            search = RankRLSCV(
                inputs=trial.inputs, store_held_out=True, **trial.parameters, **settings, **common
            )
            began = time.perf_counter()
            try:
                rows.fit(search)
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
            warnings.warn(
                f"the trials took more than {longest:.0f} s with a budget of {self.budget:g} s, so "
                f"{table.outcomes.count('skipped')} were skipped: another run may try more of "
                "them, and find another model",
                UserWarning,
                stacklevel=4,
            )
        return best, table

    def _contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the contents of a file of the best model; `load_model` reads it as one."""
        best: RankRLSCV = self.best_estimator_
        return best._contents()


def _choices(data: RankingData) -> dict[str, Any]:
    """Return the pairs and targets that linear models choose from, by the labels."""
    if data.queries.n_filled == 1:  # without tied pairs, every row held out would need a fit
        return {"pairs": ["kept"], "target": ["label"]}
    y = data.y
    graded = bool((y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) <= LARGEST_GRADE)
    if not graded:
        return {"pairs": ["kept", "dropped"], "target": ["label"]}
    return {"pairs": ["kept", "dropped", "gain"], "target": ["label", "gain"]}


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


@dataclass(frozen=True, eq=False)
class _Rows:
    """The arguments of `fit`."""

    X: Any
    y: ArrayLike | None
    named: dict[str, Any]

    def fit(self, search: RankRLSCV) -> None:
        with one_query_meant(), without_row_warnings():
            search.fit(self.X, self.y, **self.named)


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
