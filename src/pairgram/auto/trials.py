"""The trials of an `AutoRanker`: what there is to try, in which order, and how long it takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from pairgram._support import limits
from pairgram._support.parameters import InputsName
from pairgram._support.rates import seconds_of
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.features.kernel_map import Kernel
from pairgram.features.nystroem import Nystroem
from pairgram.features.random_fourier import RandomFourier
from pairgram.model_selection.splits import default_cv
from pairgram.solvers.costs import (
    Work as Solved,
    dual_seconds,
    most_products,
    primal_seconds,
)
from pairgram.solvers.ridge_path import DEFAULT_POWERS

if TYPE_CHECKING:
    from pairgram._support.types import RandomState

Work = Mapping[str, float]
# The steps that all ridges take on wide sparse rows.
STEPS = 300

COLUMNS = "columns"

N_FEATURES = 500
MOST_KERNEL_ROWS = 6_000
# Shares of the width at which an rbf kernel of columns with variance 1 falls off.
WIDTHS = (1 / 16, 1 / 4)
# The variance of the distribution function of a column.
OF_QUANTILES = 1 / 12


class InputKind(NamedTuple):
    """A kind of inputs that linear models try.

    Attributes
    ----------
    name : str or None
    width : int
        The columns that it makes of a column of X.
    searches : bool
        Whether it looks for the place of a value among those of its column.
    takes_sparse : bool
    """

    name: str | None
    width: int = 1
    searches: bool = False
    takes_sparse: bool = False


KINDS = (
    InputKind(None, takes_sparse=True),
    InputKind("raw+quantile", width=2, searches=True),
    InputKind("quantile", searches=True),
    InputKind("standard"),
    InputKind("maxabs", takes_sparse=True),
)


@dataclass(frozen=True)
class Task:
    """What is known of a data set before the first fit.

    Attributes
    ----------
    n_rows, n_columns : int
    n_entries : int
        The values of X that are stored.
    choices : tuple of pairs
        What linear models choose from.
    sparse : bool
    iterates : bool
        Whether linear models are found by conjugate gradients.
    n_refits : int
        The fits of every model to parts of the rows, as in folds.
    largest_query : int
        The rows of the largest query.
    """

    n_rows: int
    n_columns: int
    n_entries: int
    choices: tuple[PairsLike, ...] = ("with_ties",)
    sparse: bool = False
    iterates: bool = False
    n_refits: int = 0
    largest_query: int = 1

    @classmethod
    def of(cls, data: RankingData, choices: Sequence[PairsLike], n_refits: int) -> Task:
        """Return the task of dense or CSR rows."""
        X, sparse = data.X, scipy.sparse.issparse(data.X)
        n_rows, n_columns = X.shape
        n_splits = n_refits or default_cv(data.held_together.n_filled, n_rows)
        work = Solved(len(DEFAULT_POWERS), 1 + n_splits, path=True, exact=not n_refits)
        return cls(
            n_rows,
            n_columns,
            n_entries=X.nnz if sparse else X.size,
            choices=tuple(choices),
            sparse=sparse,
            iterates=sparse and _takes_steps(data, work),
            n_refits=n_refits,
            largest_query=int(data.queries.sizes.max(initial=1)),
        )

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
    work : mapping of str to float
        The work of the search, by the kinds in `SECONDS`.
    map_or_kernel : transformer or None
        What comes after the inputs.
    choice : pairs, or None
        None takes those of the best model before it.
    family : str
        Which trials it is like.
    """

    features: str
    inputs: str | None
    work: Work
    map_or_kernel: Any = None
    choice: PairsLike = None
    family: str = COLUMNS

    @property
    def name(self) -> str:
        """The name for people."""
        pairs = f", {self.choice}" if self.choice else ""
        of = "" if self.inputs is None else f" of {self.inputs} inputs"
        return f"{self.features}{of}{pairs}"

    @property
    def cost(self) -> float:
        """The seconds at the rates of `SECONDS`, which are the same on every machine."""
        return seconds_of(self.work)


def trials(task: Task, random_state: RandomState) -> list[Trial]:
    """Return all trials for a task, in the order in which they are made.

    Linear models come first. Inputs and pairs take turns among them, so that few trials have tried
    some of both; quantiles come second, because columns with long tails hide all else.
    """
    kinds = [
        kind for kind in KINDS if (kind.takes_sparse if task.sparse else kind.name != "maxabs")
    ]
    pairs = itertools.product(enumerate(kinds), enumerate(task.choices))
    in_turn = sorted(pairs, key=lambda pair: (pair[0][0] + pair[1][0], pair[1][0]))
    found = [
        Trial(COLUMNS, kind.name, _linear(task, kind), choice=choice)
        for (_, kind), (_, choice) in in_turn
    ]
    for width in WIDTHS:
        for inputs in task.even:
            found.append(_fourier(task, inputs, _gamma(task, inputs, width), random_state))
    small = task.n_rows <= MOST_KERNEL_ROWS
    of_minmax = (*task.even, None)  # counts need no scale
    found += [
        _kernel(task, kind, "minmax") if small else _nystroem(task, kind, random_state)
        for kind in of_minmax
    ]
    if small:
        for width in WIDTHS:
            for inputs in task.even:
                found.append(_kernel(task, inputs, "rbf", _gamma(task, inputs, width)))
    return found


def mean_of_linear(task: Task) -> Trial:
    """Return the trial of the mean of linear models, which needs the Gram matrix of its columns."""
    width = task.n_columns * (1 if task.sparse else 2)
    gram = float(task.n_rows) * width**2 if width <= task.n_rows and not task.iterates else 0.0
    work = {"trial": 1.0, "inputs": float(task.n_entries), "gram": gram}
    return Trial("mean of linear models", None, work)


def _gamma(task: Task, inputs: InputsName | None, width: float) -> float:
    variance = OF_QUANTILES if inputs == "quantile" else 1.0
    return width / (task.n_columns * variance)


def _linear(task: Task, kind: InputKind) -> Work:
    searched = {"inputs": float(task.n_entries if kind.searches else 0)}
    if task.iterates:
        entries = float(task.n_entries) * (1 + task.n_refits)
        return {"trial": 1.0, "step entry": entries * STEPS} | searched
    return _path(task, task.n_columns * kind.width) | searched


def _path(task: Task, n_features: int) -> dict[str, float]:
    """Return the work of a path of ridges of features, and of its held-out scores."""
    if n_features > task.n_rows:
        return _dual_path(task) | {"gram": 2 * float(task.n_rows) ** 2 * n_features}
    return {
        "trial": 1.0,
        "gram": float(task.n_rows) * n_features**2 * (2 if task.n_refits else 3),
        "eigenvectors": float(n_features) ** 3 * (1 + task.n_refits),
        "held out": float(task.n_rows) * n_features * len(DEFAULT_POWERS),
    }


def _dual_path(task: Task) -> dict[str, float]:
    """Return the work of a path of ridges of a kernel matrix, and of its held-out scores."""
    n_rows = float(task.n_rows)
    largest = n_rows / task.n_refits if task.n_refits else task.largest_query
    work = {"trial": 1.0, "band": n_rows**3, "held out": n_rows**2 * len(DEFAULT_POWERS)}
    if largest > limits.now.fold_share * n_rows:
        work["eigenvectors"] = n_rows**3
    return work


def _on_map(task: Task, products: float) -> dict[str, float]:
    return _path(task, N_FEATURES) | {"map": products * task.n_entries * N_FEATURES}


def _fourier(
    task: Task, inputs: InputsName | None, gamma: float, random_state: RandomState
) -> Trial:
    feature_map = RandomFourier(N_FEATURES, gamma=gamma, random_state=random_state)
    name = f"{N_FEATURES} Fourier features, gamma {gamma:.2g}"
    return Trial(name, inputs, _on_map(task, 1.0), feature_map, family="Fourier features")


def _nystroem(task: Task, inputs: InputsName | None, random_state: RandomState) -> Trial:
    feature_map = Nystroem("minmax", n_components=N_FEATURES, random_state=random_state)
    name = f"{N_FEATURES} minmax landmarks"
    return Trial(name, inputs, _on_map(task, 4.0), feature_map, family="minmax")


def _kernel(
    task: Task, inputs: InputsName | None, kernel: str, gamma: float | None = None
) -> Trial:
    work = _dual_path(task) | {"map": float(task.n_rows) ** 2 * task.n_columns}
    name = f"{kernel} kernel" if gamma is None else f"{kernel} kernel, gamma {gamma:.2g}"
    return Trial(name, inputs, work, Kernel(kernel, gamma=gamma), family=kernel)


# Labels up to this are grades, of which 2^y makes a gain.
LARGEST_GRADE = 10


def choices_of(data: RankingData) -> tuple[PairsLike, ...]:
    """Return the pairs that linear models choose from, by the labels."""
    if data.is_single_query:  # without tied pairs, every row held out would need a fit
        return ("with_ties",)
    if data.judgements is not None:
        return ("clicks",)
    y = data.y
    graded = bool((y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) <= LARGEST_GRADE)
    if not graded:
        return "with_ties", "without_ties"
    pairs = [Pairs("with_ties"), Pairs("without_ties"), Pairs("gain_difference")]
    return *(one.short for one in pairs), *(replace(one, target="gain") for one in pairs)


def _takes_steps(data: RankingData, work: Solved) -> bool:
    """Tell whether sparse rows without a feature map are solved by conjugate gradients."""
    if len(data.y) < data.n_features:
        return most_products(data, work, "dual", dual_seconds(data, work)) > 0
    return most_products(data, work, "primal", primal_seconds(data, work)) > 0
