"""Warn of rows that do not suit a kernel or map, and of labels without differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from pairgram._support.checks import Rows, Vector, warn_caller
from pairgram._support.parameters import OF_DISTANCES

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# At most this many rows and values are examined.
SAMPLE_ROWS, SAMPLE_VALUES = 1024, 1 << 22
SEVERAL_ROWS = 20
# Standard deviations are examined only if there are at least this many rows.
FEWEST_ROWS = 20
# So few queries that are held out in turn choose settings badly.
FEW_HELD = 3
# A standard deviation is small if it is below this share of the largest. The squared differences of
# such a column are then 1e-4 of those of the other column.
SMALL_SPREAD = 0.01
# There is a warning if this share of the columns that vary have a small standard deviation.
MANY_SMALL = 1 / 3
# There is a warning where a path may lose more of a narrow column than this share, as default
# ridges do from there on.
LOST = 1e-6

# What is told of a data set among many: a message of each kind. Columns without any value have
# kinds of their own, and no message: one warning names them all.
Heard = dict[Any, str]

_silent: ContextVar[bool] = ContextVar("silent", default=False)
_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


@contextmanager
def without_row_warnings(heard: Heard | None = None) -> Iterator[None]:
    """Within this context, the functions of this module give no warnings.

    `heard` gets what they would have said of rows and inputs: the first message of each kind. The
    kind of a column without any value is (its name, what was to take its place).
    """
    tokens = _silent.set(True), _heard.set(heard)
    try:
        yield
    finally:
        _silent.reset(tokens[0])
        _heard.reset(tokens[1])


def tell(kind: str, message: str) -> None:
    """Warn, or keep the message where it is heard."""
    if (heard := _heard.get()) is not None:
        heard.setdefault(kind, message)
    elif not _silent.get():
        warn_caller(message, UserWarning)


def warn_of_equal_labels() -> None:
    """Warn that no query has two rows with different labels."""
    if not _silent.get():
        warn_caller(
            "no query has two rows with different labels, so there is nothing to learn: the model "
            "is zero",
            UserWarning,
        )


def warn_of_lost_digits() -> None:
    """Warn that a difference of sums is rounding error, or nearly so."""
    tell(
        "digits",
        "what the model leaves of the labels has fewer than two digits, because it is a difference "
        "of large sums, so that the noise or the loss is not known: subtract from the labels what "
        "is known of them, or fit to rows of float64 in memory",
    )


def warn_of_empty_columns(names: Sequence[str], missing: str, where: str = "") -> None:
    """Warn of columns without any value, in whose place there is no mean or median."""
    if (heard := _heard.get()) is not None:
        heard.update(((name, missing), "") for name in names)
    elif names and not _silent.get():
        listed = ", ".join(names[:10]) + ", ..." * (len(names) > 10)
        column = "column {} of X has" if len(names) == 1 else "columns {} of X have"
        warn_caller(
            f"{column.format(listed)} no value in any row{where}, so that 0 takes the place "
            f"of the {missing}: leave such columns out",
            UserWarning,
        )


def warn_of_few_held(n_held: int, n_rows: int) -> None:
    """Warn if settings are chosen by two or three queries, or groups, that are held out whole."""
    if n_rows >= SEVERAL_ROWS and not _silent.get():
        warn_caller(
            f"settings are chosen by {n_held} queries or groups that are held out as wholes: each "
            "is scored by what the others tell, which may be little, and then the choice is poor "
            "and a ridge may be far too large. Choose by scoring='evidence', "
            "which holds nothing out; hold out rows of every query, as by "
            "cv=KFold(5, shuffle=True); or give no qid (--one-query), if all labels compare",
            UserWarning,
        )


def warn_of_threshold(
    name: str, relevant: float, smallest: float, largest: float, n_rows: int
) -> None:
    """Warn if labels that differ all count as relevant for a metric.

    A few rows may well all be relevant, and differ in how much.
    """
    if n_rows >= SEVERAL_ROWS and largest > smallest >= relevant and not _silent.get():
        warn_caller(
            f"{name}: every label is at least relevant={relevant:g}, so that all rows count as "
            f"relevant: give get_metric({name!r}, relevant=...), or labels 0 and 1",
            UserWarning,
        )


def warn_of_clicks(name: str, smallest: float, largest: float, n_rows: int) -> None:
    """Warn if no click counts more than once for a metric, as if users saw every row."""
    if n_rows >= SEVERAL_ROWS and smallest < largest <= 1 and not _silent.get():
        warn_caller(
            f"{name}: no click counts more than 1, as if users looked at all positions alike, so "
            "the order that was shown looks good: give y=Clicks(...), or labels divided by "
            "propensities",
            UserWarning,
        )


def warn_of_rows(feature_map: object, X: Matrix, names: Sequence[Any] | None = None) -> None:
    """Warn if checked rows do not suit a map or kernel of this package.

    Nodes that are not linear, and kernels of distances or powers, mix all columns in one number, to
    which columns of small standard deviation hardly contribute. They warn if at least a third of
    the columns that vary have a standard deviation below a hundredth of the largest.

    Parameters
    ----------
    feature_map : FeatureMap, or the name of a kernel
        A map that has neither a `kernel` nor an `activation` suits all rows.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    names : sequence of str or None
        The names of the columns. With None, messages give their numbers.

    Notes
    -----
    Up to 1,024 evenly spaced rows are examined. Standard deviations need at least 20 rows.
    """
    if _silent.get() and _heard.get() is None:  # nobody hears it
        return
    kernel = feature_map if isinstance(feature_map, str) else getattr(feature_map, "kernel", None)
    activation = getattr(feature_map, "activation", "linear")
    if kernel in OF_DISTANCES:
        _warn_of_spreads(X, names, f"the {kernel} kernel")
    elif kernel is None and activation != "linear":
        _warn_of_spreads(X, names, "nodes that are not linear")


def narrow_loss(squares: Vector, alpha: float = 0.0) -> float:
    """Return what share of its narrowest column an eigendecomposition of a system loses.

    The columns have these sums of squares, (n_features,), of which those of 0 do not count.
    """
    varying = squares[squares > 0]
    narrowest = varying.min(initial=np.inf) + alpha
    eps = float(np.finfo(np.float64).eps)
    with np.errstate(invalid="ignore"):  # of features that overflow, which is told elsewhere
        return float(eps * len(squares) * varying.max(initial=0.0) / narrowest)


def loses_narrow(squares: Vector) -> bool:
    """Tell whether a path loses columns; the number of columns, a bound's factor, is no reason."""
    return narrow_loss(squares) > LOST * len(squares)


def warn_of_narrow_columns(squares: Vector, names: Any) -> None:
    """Warn if a path loses narrow columns, with these sums of squares, beside wide ones."""
    if loses_narrow(squares):
        columns = np.argmax(squares), np.argmin(np.where(squares > 0, squares, np.inf))
        wide, narrow = (j if names is None else repr(names[j]) for j in columns)
        tell(
            "narrow",
            f"column {wide} of X spreads so much more widely than column {narrow} that the weight "
            "of such narrow columns is lost: give feature_map='standard', or scale=True to least "
            "squares, or put the columns in like units",
        )


def sample_of(X: Matrix) -> Any:
    """Return up to 1,024 evenly spaced rows, those that are examined."""
    n_rows, n_features = X.shape
    size = min(SAMPLE_ROWS, max(16, SAMPLE_VALUES // n_features))
    return X if n_rows <= size else X[np.linspace(0, n_rows - 1, size).astype(np.int64)]


def _spreads(X: Matrix) -> Vector:
    """Return the standard deviation of every column of a sample."""
    rows = sample_of(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if scipy.sparse.issparse(rows):
            return np.sqrt(mean_variance_axis(rows.astype(np.float64), axis=0)[1])
        return rows.std(axis=0, dtype=np.float64)


def _warn_of_spreads(X: Matrix, names: Sequence[Any] | None, what: str) -> None:
    if X.shape[0] < FEWEST_ROWS:
        return
    spreads = _spreads(X)
    varying = spreads > 0
    largest = spreads.max(initial=0.0)
    small = varying & (spreads < SMALL_SPREAD * largest)
    if np.count_nonzero(small) < max(1.0, MANY_SMALL * np.count_nonzero(varying)):
        return

    def described(columns: Rows) -> str:
        return ", ".join(
            f"{column if names is None else repr(names[column])} ({spreads[column]:.2g})"
            for column in columns[:3]
        )

    order = np.argsort(-spreads, kind="stable")
    large = order[: int(np.count_nonzero(varying & ~small))]
    ignored = order[len(large) : int(np.count_nonzero(varying))][::-1]
    tell(
        "spreads",
        f"columns of X differ so much in spread that {what} will hardly see {len(ignored)} of "
        f"{np.count_nonzero(varying)}: the standard deviation is largest in {described(large)} and "
        f"smallest in {described(ignored)}{', counted from 0' * (names is None)}. Scale them "
        "alike, as with feature_map='standard' of a ranker or StandardScaler in a Pipeline",
    )
