"""What `AutoRanker` tries, in which order, and how long each trial is expected to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import scipy.sparse

from pairgram._support.words import EngineName, InputsName, PluginName, words
from pairgram.feature_maps.nystroem import Nystroem
from pairgram.feature_maps.random_fourier import RandomFourier
from pairgram.least_squares.ridge_path import DEFAULT_POWERS

__all__ = ["Task", "Trial", "planned", "trials"]

# Seconds per operation, near what trials take on two cores. They are constants, so that a budget
# chooses the same trials on every machine.
GRAM = 3e-11  # a product and a sum of the Gram matrix
DECOMPOSITION = 1e-10  # times n_features³
HELD_OUT = 3e-9  # a feature of a row at one ridge
MAPPED = 2e-10  # a product and a sum of a feature map

# Engines that take weights of columns alone, and those that take quantiles too.
LINEAR_ENGINES, ENGINES_OF_COLUMNS = (*words(PluginName), "ranklib"), ("solr", "sql", "python")
COLUMNS, QUANTILES = "columns", ("quantile", "raw+quantile")

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
    def of(cls, X: Any, n_choices: int) -> Task:
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


def trials(task: Task, random_state: Any, engine: EngineName | None = None) -> list[Trial]:
    """Return all trials for a task, in the order in which they are made.

    With an `engine`, those whose models it cannot express are left out; see `pairgram.export`.
    """
    every = _all_trials(task, random_state)
    if engine in LINEAR_ENGINES:
        return [one for one in every if one.features == COLUMNS and one.inputs not in QUANTILES]
    if engine in ENGINES_OF_COLUMNS:
        return [one for one in every if one.features == COLUMNS]
    return every


def _all_trials(task: Task, random_state: Any) -> list[Trial]:
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


def _fourier(task: Task, inputs: InputsName | None, gamma: float, random_state: Any) -> Trial:
    feature_map = RandomFourier(N_FEATURES, gamma=gamma, random_state=random_state)
    seconds = _seconds(task, N_FEATURES) + MAPPED * task.n_rows * task.n_columns * N_FEATURES
    name = f"{N_FEATURES} Fourier features, gamma {gamma:.2g}"
    return Trial(name, inputs, seconds, {"feature_map": feature_map})


def _nystroem(task: Task, inputs: InputsName | None, random_state: Any) -> Trial:
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
