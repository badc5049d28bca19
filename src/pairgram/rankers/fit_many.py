"""`fit_many` fits one model to each of many data sets."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from numbers import Number, Real
from operator import length_hint
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support import limits
from pairgram._support.arrays import (
    column_names,
    index_columns,
    read_rows,
    real_array,
    select_columns,
)
from pairgram._support.checks import ArgumentError, Rows, Vector, not_finite, warn_caller
from pairgram._support.machine import (
    cached_property,
    one_thread,
    resolve_n_threads,
    single_threaded_blas,
)
from pairgram._support.row_warnings import (
    Heard,
    warn_of_empty_columns,
    warn_of_time,
    without_row_warnings,
)
from pairgram.data.dataset import RowInfo
from pairgram.data.preferences import as_preferences
from pairgram.data.queries import Queries, one_query_meant, read_ids
from pairgram.features.columns import column_numbers
from pairgram.rankers.batch_fit import BatchFit, check_fallback
from pairgram.rankers.preparation import GivenArrays
from pairgram.rankers.prior import frozen
from pairgram.solvers.constrained import numbers_of

if TYPE_CHECKING:
    from pairgram._support.types import Estimator, FrameLike

# A group of fits takes about so many seconds.
GROUP_SECONDS = 5e-3
# Problems that take less time are solved in the calling thread.
THREAD_SECONDS = 1e-3
# The share of a long time after which the problems before tell how long all take.
FIRST_SHARE = 1 / 60
KNOWN = {"X", "y", *RowInfo._fields}


def fit_many(
    estimator: Estimator,
    problems: Any,
    *,
    by: str | None = None,
    features: Sequence[str] | None = None,
    label: str | None = None,
    qid: str | None = None,
    sample_weight: str | None = None,
    propensity: str | None = None,
    prior: Estimator | ArrayLike | None = None,
    fallback: BaseEstimator | float | None = None,
    n_threads: int | None = None,
    on_error: Literal["warn", "raise"] = "warn",
) -> BatchFit:
    """Fit a clone of an estimator to each of many data sets, small ones by compiled code.

    The data sets are given one by one, or as the rows of one frame that have the same key. Each
    gets a model of its own; they are not batches of one fit.

    Parameters
    ----------
    estimator : estimator
        It is cloned and not changed.
    problems : iterable of (X, y), (X, y, qid), or dict of arguments of ``fit``; or a frame
        A frame needs `by`. Problems are read while earlier ones are fitted, and released once they
        are fitted. An array may be read after the next problem has been asked for, so a generator
        must not reuse an array for other data. If y has shape (n_rows, n_targets), one model is
        fitted per target, and these models share the work that does not depend on y. This needs
        ``pairs="with_ties"`` or None, because other pairs depend on y. y may also be `Preferences`
        where the estimator takes them.
    by : str or None, default=None
        The column of keys, such as users, if `problems` is a frame of pandas or polars or a pyarrow
        table. The rows of every key are one data set, wherever they stand.
    features, label, qid, sample_weight, propensity : list of str, then str or None
        The columns of a frame that are X, y, and the arguments of ``fit`` with these names. By
        default all other columns are features, without the index of pandas that a table of pyarrow
        may have. `label` is required. The parameter `positive` of the estimator and a `Cross` may
        have their names.
    prior : fitted ranker or None, default=None
        A model of all rows, which becomes the `prior` of every fit. The estimator must have a
        parameter of this name.
    fallback : fitted estimator, float or None, default=None
        What scores rows whose key has no model in `BatchFit.predict`, such as a model of all rows.
        None takes `prior`.
    n_threads : int or None, default=None
        Number of threads for all fits together. None takes that of the estimator. The models keep
        the `n_threads` of the estimator.
    on_error : {"warn", "raise"}, default="warn"
        What happens if a problem cannot be fitted. "warn" leaves None in its place, gives one
        ``FitFailedWarning`` for all failures, and writes the errors to the table. It raises an
        error only if no problem could be fitted and there is neither `fallback` nor `prior` to
        score rows. "raise" raises the first error after the fits that run in threads at the same
        time have ended. Rows that an error names are those of the frame if there is one.

    Returns
    -------
    BatchFit

    Raises
    ------
    ValueError
        If `on_error` is none of those, if a frame lacks a column, if a key is missing, if the
        estimator takes no `prior`, if `fallback` cannot score rows, or if every problem failed and
        there is neither `fallback` nor `prior`. With ``on_error="raise"`` any error of ``fit`` is
        raised, with a note that gives the number of the problem and its key.
    TypeError
        If `problems` is a single problem that is not in a list; or if an argument is not of the
        kind above, such as a number as `prior`.

    Notes
    -----
    Every model is the one that ``clone(estimator).fit(...)`` gives for the problem alone. With an
    int as `random_state` all models therefore have the same seed. The only parameters that
    models share are frozen estimators, such as a `prior` from which every model starts. Models with
    the same nodes may share ``feature_map_``. Models of `ELMRank` and `ELMRankCV` have the same
    bits as those of single fits; other models differ from them by rounding errors.

    There is no warning for problems without two different labels in a query, such as users who
    rated everything alike. With tied pairs, their models are zero. What a fit would say of columns
    without values, or of rows that do not suit a kernel or map, is told once for all problems.

    Compiled code fits small problems of `RankRLS`, `PairwiseELM`, `PointwiseELM`, `ELMRank` and
    their searches. Those that take a millisecond or more are fitted in threads. A problem is small
    if X is a dense array of float64 or float32 with at most 2^19 values after the feature map, and
    if it has at most 256 rows or at most 256 features. The estimator must have
    ``form="auto"``, and no kernel but the linear one, no feature map with Python code, no
    ``scale=True``, no list of settings and no ``cv="leave-pair-out"``. All other estimators and
    problems are fitted one by one. float32 rows of small problems are solved in float64.

    Examples
    --------
    >>> from pairgram import ELMRankCV, fit_many, make_ranking
    >>> problems = [make_ranking(1, 30, random_state=seed)[:2] for seed in range(3)]
    >>> batch = fit_many(ELMRankCV(n_nodes=20, cv=5, random_state=0), problems)
    >>> batch
    <BatchFit of 3 models, 0 failed>
    >>> batch.models[2].predict(problems[2][0]).shape
    (30,)

    A model for every user of a frame, which predicts by key:

    >>> import pandas
    >>> from pairgram import RankRLS
    >>> frame = pandas.DataFrame({"user": ["a", "b"] * 10, "price": range(20), "age": 7})
    >>> frame["rating"] = [1.0, -1.0] * 10 * frame["price"]
    >>> batch = fit_many(RankRLS(), frame, by="user", label="rating")
    >>> batch.keys.tolist(), batch.predict(frame, "user").shape
    (['a', 'b'], (20,))
    """
    if on_error not in ("warn", "raise"):
        raise ValueError(f"on_error must be 'warn' or 'raise', got {on_error!r}")
    _require_estimator(
        "estimator", estimator, ("fit", "get_params"), "an estimator, such as RankRLS()"
    )
    if prior is not None:
        wanted = "None or a fitted ranker (for weights, take the parameter prior of the estimator)"
        _require_estimator("prior", prior, ("fit", "predict"), wanted)
    columns = _Columns(by, features, label, qid, sample_weight, propensity)
    groups = names = None
    named: dict[str, Any] = {}
    if by is None:
        columns.refuse()
        _refuse_one_problem(problems)
    else:
        problems, groups, names = columns.split(problems)
        estimator, named = _with_numbers(estimator, names)
    if fallback is not None:
        check_fallback(fallback, names)
    fallback = prior if fallback is None else fallback
    estimator, nameless = _with_prior(estimator, prior, names)
    total = length_hint(problems) if groups is None else groups.n_queries
    batch, begun, told = _Batch(estimator, n_threads), perf_counter(), False
    fits = []
    for fit in batch.run(problems):
        if fit.error is not None and groups is not None:
            _name_rows(fit.error, groups.rows(fit.number))
        if on_error == "raise" and fit.error is not None:
            fit.error.add_note(f"in {_problem(fit.number, groups)} of fit_many")
            raise fit.error
        if fit.error is not None:
            fit.error.__traceback__ = None  # its frames would keep the data in memory
        fits.append(fit)
        told = told or _warn_of_time(perf_counter() - begun, len(fits), total)
    failed = [fit for fit in fits if fit.error is not None]
    if failed:
        first = failed[0]
        message = (
            f"{len(failed)} of {len(fits)} problems failed, the first is "
            f"{_problem(first.number, groups)}: {_said(first.error)}"
        )
        if len(failed) == len(fits) and fallback is None:
            raise ValueError(message) from first.error
        warnings.warn(message, FitFailedWarning, stacklevel=2)
    for model in (model for fit in fits for model in fit.models if names is not None and model):
        model.feature_names_in_ = names
        vars(model).update(named)
    if nameless is not None:
        nameless.feature_names_in_ = names
    _tell_of_rows(fits, names)
    models = [fit.models if fit.many_targets else fit.models[0] for fit in fits]
    keys = None if groups is None else groups.ids
    return BatchFit(models, _table(fits), np.arange(len(fits)) if keys is None else keys, fallback)


class _Columns(NamedTuple):
    """The names of the columns of a frame."""

    by: str | None
    features: Sequence[str] | None
    label: str | None
    qid: str | None
    sample_weight: str | None
    propensity: str | None

    def refuse(self) -> None:
        """Raise a ValueError if a column is named although there is no frame."""
        given = [name for name, value in self._asdict().items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} names a column of a frame: give by as well, its keys")

    def split(self, frame: FrameLike) -> tuple[Iterator[dict[str, Any]], Queries, NDArray[Any]]:
        """Return the problems of a frame, the rows of their keys, and the names of the features.

        The rows are sorted by key once, and the problems are slices of them.
        """
        for name, value in self._asdict().items():
            listed = name == "features" and isinstance(value, Iterable)
            single = name != "features" and isinstance(value, Hashable)
            if not (value is None or listed or single):
                wanted = "a list of names of columns" if name == "features" else "a column's name"
                raise TypeError(f"{name} must be {wanted} of the frame, got {_found(value)}")
        if self.label is None:
            raise ValueError("label must name the column of labels of the frame, got None")
        others = {k: v for k, v in self._asdict().items() if k != "features" and v is not None}
        read = {name: select_columns(frame, column, name) for name, column in others.items()}
        names = self._features(frame, list(others.values()))
        X = read_rows(select_columns(frame, names, "features"), "features", sparse=False)
        queries = Queries.make(len(X), qid=read.pop("by"), name=f"column {self.by!r}")
        arrays = {"X": X, "y": real_array(read.pop("label"), f"column {self.label!r}")}
        if "qid" in read:
            arrays["qid"] = read_ids(read.pop("qid"), len(X), f"column {self.qid!r}")
        arrays |= {name: np.asarray(column) for name, column in read.items()}
        arrays = {name: queries.grouped(array) for name, array in arrays.items()}
        problems = (
            {name: array[begin:end] for name, array in arrays.items()}
            for begin, end in pairwise(queries.offsets.tolist())
        )
        return problems, queries, np.array(names, dtype=object)

    def _features(self, frame: FrameLike, others: list[str]) -> list[str]:
        names = self.features
        if names is None:
            no_features = {*others, *index_columns(frame)}
            names = [name for name in column_names(frame) or () if name not in no_features]
        names = [names] if isinstance(names, str) else list(names)
        if not names:
            raise ValueError("features must name a column of the frame or more, got none")
        both = [name for name in names if name in others]
        if both:
            raise ValueError(f"features must not have {both[0]!r}, which by, label or qid has")
        return names


def _warn_of_time(seconds: float, n_done: int, n_problems: int) -> bool:
    """Warn if all problems are expected to take long, and tell whether they are.

    It is asked after each problem, as they differ, but not before a sixtieth of a long time, in
    which few problems tell nothing of the others.
    """
    whole, limit = seconds * n_problems / n_done, limits.now.long_fit_seconds
    if n_done == n_problems or seconds < FIRST_SHARE * limit or whole <= limit:
        return False
    warn_of_time(whole, "give fewer problems, or an estimator that takes less for one")
    return True


def _tell_of_rows(fits: Sequence[_Fit], names: NDArray[Any] | None) -> None:
    """Warn once of each kind of what the fits would have said of rows."""
    heard: dict[Any, list[str]] = {}
    for fit in fits:
        for kind, message in fit.heard.items():
            heard.setdefault(kind, []).append(message)
    empty = [kind for kind in heard if isinstance(kind, tuple)]
    if empty:
        columns = sorted({column for column, _ in empty}, key=lambda name: (len(name), name))
        listed = [repr(names[int(j)]) if names is not None else j for j in columns]
        most = max(len(heard[kind]) for kind in empty)
        where = f" of {'up to ' * (len(listed) > 1)}{most} of {len(fits)} problems"
        warn_of_empty_columns(listed, empty[0][1], where)
    for kind, messages in heard.items():
        if kind not in empty:
            alike = f"{len(messages)} of {len(fits)} problems have rows like those of the first"
            warn_caller(f"{alike}: {messages[0]}", UserWarning)


def _problem(number: int, groups: Queries | None) -> str:
    """Return how messages call a problem: by its number, and its key if there is a frame."""
    if groups is None or groups.ids is None:
        return f"problem {number}"
    return f"problem {number} (key {groups.ids.tolist()[number]!r})"


def _said(error: Exception | None) -> str:
    """Return an error as a text, with the name of its public class."""
    kind = ValueError if type(error) is ArgumentError else type(error)
    return f"{kind.__name__}: {error}"


def _name_rows(error: Exception, rows: Rows | slice) -> None:
    """Let an error name rows of the frame, where it names rows of one key."""
    numbers = range(rows.start, rows.stop) if isinstance(rows, slice) else rows
    if isinstance(error, ArgumentError) and error.row is not None and error.row < len(numbers):
        error.row, error.of = int(numbers[error.row]), " of the frame"


def _with_numbers(estimator: BaseEstimator, names: NDArray[Any]) -> tuple[Any, dict[str, Any]]:
    """Return the estimator with numbers in place of names of columns, and what it had before.

    The problems of a frame are arrays, and their models get the names after the fits.
    """
    estimator = clone(estimator)
    for part in estimator.get_params().values():
        for own in getattr(part, "_of_columns", ()):
            if (columns := getattr(part, own)) is not None:
                numbers = column_numbers(columns, own, len(names), names.tolist()).tolist()
                part.set_params(**{own: numbers})
    positive = getattr(estimator, "positive", False)
    columns = positive.tolist() if isinstance(positive, np.ndarray) else positive
    if not (isinstance(columns, Sequence) and any(isinstance(c, str) for c in columns)):
        return estimator, {}
    return estimator.set_params(positive=numbers_of(columns, list(names))), {"positive": positive}


def _with_prior(
    estimator: BaseEstimator, prior: Any, names: NDArray[Any] | None
) -> tuple[Any, Any]:
    """Return the estimator with a fitted model as its prior, and a copy of it without names.

    The problems of a frame are arrays, so their prior does without names during the fits. There is
    no copy of a model that had none.
    """
    own = frozen(getattr(estimator, "prior", None))
    if prior is None and names is not None and isinstance(own, FrozenEstimator):
        prior = own.estimator
    if prior is None:
        return estimator, None
    if "prior" not in estimator.get_params(deep=False):
        raise ValueError(f"prior must be None: {type(estimator).__name__} has no such parameter")
    check_is_fitted(prior)
    known = vars(prior).get("feature_names_in_")
    start, nameless = prior, None
    if known is not None and names is not None:
        if list(known) != list(names):
            raise ValueError(f"prior has the columns {list(known)}, but features are {list(names)}")
        start = nameless = copy.copy(prior)
        del nameless.feature_names_in_
    return clone(estimator).set_params(prior=FrozenEstimator(start)), nameless


def _require_estimator(name: str, value: object, methods: Sequence[str], wanted: str) -> None:
    """Raise a TypeError if an argument is not an instance that has some methods."""
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, got the class {value.__name__}")
    if not all(hasattr(value, method) for method in methods):
        raise TypeError(f"{name} must be {wanted}, got {_found(value)}")


def _found(value: object) -> str:
    """Return how messages call a value: by its type, and a number or a text by itself as well."""
    kind = type(value).__name__
    return f"{kind} {value!r:.60}" if np.isscalar(value) else kind


def _refuse_one_problem(problems: object) -> None:
    """Raise a TypeError if the data of one problem are given in place of a list of problems."""
    one: Any = problems[0] if isinstance(problems, (tuple, list)) and problems else problems
    if isinstance(problems, str) or not isinstance(problems, Iterable):
        found = _found(problems)
    elif isinstance(problems, Mapping) and not KNOWN.intersection(problems):
        found = "a mapping: give its values(). The models come in their order"
    elif isinstance(problems, Mapping) or hasattr(one, "shape"):
        found = "the data of one problem: put it in a list, [(X, y)]"
    else:
        return
    raise TypeError(
        "problems must be a list, or another iterable, of (X, y), (X, y, qid) or dicts, got "
        f"{found}"
    )


@dataclass(eq=False)
class _Fit:
    """One problem, and the models or the error that came of it."""

    number: int
    many_targets: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    targets: Vector | None = None  # y, if it has shape (n_rows, n_targets)
    n_rows: int = 0
    n_queries: int = 0
    model: Any = None
    solve: Callable[[], list[dict[str, Any]]] | None = None  # what is left to do for a small one
    models: list[Any] = field(default_factory=lambda: [None])
    error: Exception | None = None
    heard: Heard = field(default_factory=dict)

    def drop_data(self) -> None:
        """Drop all but the results: the data of all problems may be larger than memory."""
        self.arguments, self.targets, self.model, self.solve = {}, None, None, None


class _Batch:
    """Fits of clones of one estimator."""

    def __init__(self, estimator: BaseEstimator, n_threads: int | None) -> None:
        self.estimator = clone(estimator)
        self.n_threads = n_threads
        if n_threads is None:
            self.n_threads = getattr(self.estimator, "n_threads", None)
        self.constant = all(_is_constant(value) for value in vars(self.estimator).values())
        self.group_size, self.seconds = 1, 0.0

    def run(self, problems: Iterable[Any]) -> Iterator[_Fit]:
        """Yield every problem after its fit.

        Small problems are solved in groups, in threads while Python prepares the next. Those that
        take less than `THREAD_SECONDS` are mostly Python, for which threads would only wait.
        """
        threads = resolve_n_threads(self.n_threads)
        with ThreadPoolExecutor(threads) as pool:
            running: deque[Future[list[_Fit]]] = deque()
            for group in self._groups(problems):
                alone = threads == 1 or self.seconds < THREAD_SECONDS
                while running and (alone or len(running) == threads):
                    yield from running.popleft().result()
                if alone:
                    yield from self._run_group(group)
                else:
                    running.append(pool.submit(self._run_group, group))
            while running:
                yield from running.popleft().result()

    def _groups(self, problems: Iterable[Any]) -> Iterator[list[_Fit]]:
        group: list[_Fit] = []
        for number, problem in enumerate(problems):
            fit = _Fit(number)
            try:
                with one_query_meant(), without_row_warnings(fit.heard):
                    self._take(fit, problem)
                    self._begin(fit)
                    if fit.solve is None:
                        self._fit_alone(fit)
            except Exception as error:
                fit.error = error
            group.append(fit)
            if len(group) >= self.group_size:
                yield group
                group = []
        if group:
            yield group

    def _run_group(self, group: list[_Fit]) -> list[_Fit]:
        """Solve the small problems of a group in this thread.

        Groups are made as large as takes `GROUP_SECONDS`, because a group costs time as well.
        """
        begun = perf_counter()
        with one_thread(), single_threaded_blas:
            for fit in group:
                if fit.solve is not None and fit.error is None:
                    try:
                        with without_row_warnings(fit.heard):
                            self._finish(fit, fit.solve())
                    except Exception as error:
                        fit.error = error
                fit.drop_data()
        seconds = perf_counter() - begun
        quick, self.seconds = seconds < GROUP_SECONDS, seconds / len(group)
        larger = min(limits.now.group_size, 2 * len(group))
        self.group_size = larger if quick else max(1, len(group) // 2)
        return group

    def _finish(self, fit: _Fit, fitted: list[dict[str, Any]]) -> None:
        known = {name: value for name, value in vars(fit.model).items() if name[-1] == "_"}
        fit.models = [fit.model] if len(fitted) == 1 else [self._fresh() for _ in fitted]
        for model, attributes in zip(fit.models, fitted, strict=True):
            vars(model).update(known | attributes)

    def _take(self, fit: _Fit, problem: object) -> None:
        if isinstance(problem, Mapping):
            fit.arguments = dict(problem)
        elif isinstance(problem, (tuple, list)) and len(problem) in (2, 3):
            fit.arguments = dict(zip(("X", "y", "qid"), problem, strict=False))
        else:
            raise TypeError(
                "a problem must be (X, y), (X, y, qid) or a dict of arguments of fit, got "
                f"{type(problem).__name__}"
            )
        if "X" not in fit.arguments or "y" not in fit.arguments:
            raise ValueError(f"a problem must have X and y, got {', '.join(fit.arguments)}")
        X = fit.arguments["X"]
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        fit.n_rows = shape[0] if len(shape) == 2 else 0
        y = fit.arguments["y"]
        if as_preferences(y) is not None or np.ndim(y) != 2:
            return
        targets = real_array(y, "y")
        if 0 in targets.shape:
            raise ValueError(f"y must have one label or more, got shape {targets.shape}")
        fit.many_targets, fit.targets = True, targets
        fit.models = [None] * targets.shape[1]
        pairs = getattr(self.estimator, "pairs", "with_ties")
        if pairs not in ("with_ties", None):
            raise ValueError(
                f"y of shape (n_rows, n_targets) needs pairs='with_ties' or None, got {pairs!r}: "
                "which pairs count depends on the labels"
            )
        if (at := not_finite(targets)) is not None:
            row, target = divmod(at, targets.shape[1])
            text = (
                f"must hold finite numbers, got {targets[row, target]} in {{place}} of target "
                f"{target}: give a target with gaps as a problem of its own rows"
            )
            raise ArgumentError("y", text, row=row)

    @cached_property
    def has_spec(self) -> bool:
        """Whether a fit does what the estimator's spec says, and nothing else.

        A class that replaces `fit`, and not the spec, is fitted by its own.
        """
        bases = type(self.estimator).__mro__
        fit, spec = (
            next((i for i, base in enumerate(bases) if name in vars(base)), len(bases))
            for name in ("fit", "_spec")
        )
        return spec <= fit and spec < len(bases)

    @cached_property
    def spec(self) -> Any:
        """What all problems fit, if nobody can change a parameter in place."""
        return self.estimator._spec()

    def _begin(self, fit: _Fit) -> None:
        """Check the data and prepare the fit if compiled code can solve the problem."""
        if not self.has_spec or not KNOWN.issuperset(fit.arguments):
            return
        if fit.targets is not None and fit.arguments.get("propensity") is not None:
            return  # which divides every target
        model = self._fresh()
        spec = self.spec if self.constant else model._spec()
        if not spec.is_batched:
            return
        y = fit.arguments["y"] if fit.targets is None else fit.targets[:, 0].copy()
        info = RowInfo(*(fit.arguments.get(name) for name in RowInfo._fields))
        rows = GivenArrays(model, fit.arguments["X"], y, info, spec.rows)
        spec = rows.spec_of(spec)
        data = rows.fitted(spec.rows.kinds[0], spec.rows).whole
        fit.model, fit.n_queries = model, data.queries.n_queries
        if spec.is_small(data):
            vars(model).update(rows.told)
            fit.solve = partial(spec.fit, data, rows.prior, labels=fit.targets, small=True)

    def _fresh(self) -> Any:
        """Return an unfitted estimator that shares nothing that could change."""
        if not self.constant:
            return clone(self.estimator)
        model = object.__new__(type(self.estimator))  # copy.copy takes six times as long
        vars(model).update(vars(self.estimator))
        return model

    def _fit_alone(self, fit: _Fit) -> None:
        arguments = {name: value for name, value in fit.arguments.items() if value is not None}
        columns = [arguments.pop("y")] if fit.targets is None else list(fit.targets.T)
        arguments.pop("y", None)
        fit.models = [self._fitted(y, arguments) for y in columns]
        ids = [arguments.get(name) for name in ("qid", "group")]
        fit.n_queries = Queries.make(fit.n_rows, qid=ids[0], group=ids[1]).n_queries

    def _fitted(self, y: NDArray[Any], arguments: dict[str, Any]) -> Any:
        """Fit a clone in the threads of this batch."""
        model = clone(self.estimator)
        if not hasattr(model, "n_threads"):
            return model.fit(y=y, **arguments)
        own, model.n_threads = model.n_threads, self.n_threads
        model = model.fit(y=y, **arguments)
        model.n_threads = own
        made = getattr(model, "feature_map_", None)
        given = getattr(getattr(model, "feature_map", None), "n_threads", None)
        if made is not None and given is None and getattr(made, "n_threads", own) != own:
            made.n_threads = own  # the fitted map took its number from the model
        return model


def _is_constant(value: object) -> bool:
    """Tell whether a parameter is one that nobody can change in place, or that clones share."""
    if isinstance(value, tuple):
        return all(_is_constant(each) for each in value)
    return value is None or isinstance(value, (str, Number, FrozenEstimator))


def _table(fits: list[_Fit]) -> dict[str, NDArray[Any]]:
    rows = [(fit, target, model) for fit in fits for target, model in enumerate(fit.models)]

    def number(model: BaseEstimator, *names: str) -> float:
        found = (getattr(model, name) for name in names if hasattr(model, name))
        value = next(found, None)
        return float(value) if isinstance(value, Real) else np.nan

    errors = np.empty(len(rows), dtype=object)
    errors[:] = [None if fit.error is None else _said(fit.error) for fit, _, _ in rows]
    return {
        "problem": np.array([fit.number for fit, _, _ in rows], dtype=np.int64),
        "target": np.array([target for _, target, _ in rows], dtype=np.int64),
        "n_rows": np.array([fit.n_rows for fit, _, _ in rows], dtype=np.int64),
        "n_queries": np.array([fit.n_queries for fit, _, _ in rows], dtype=np.int64),
        "alpha": np.array([number(model, "alpha_", "alpha") for _, _, model in rows]),
        "C": np.array([number(model, "C_", "C") for _, _, model in rows]),
        "best_score": np.array([number(model, "best_score_") for _, _, model in rows]),
        "error": errors,
    }
