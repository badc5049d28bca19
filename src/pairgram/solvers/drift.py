"""What has changed between the columns of today's rows and those that a model was made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from scipy.stats import t as student

from pairgram._support.arrays import BLOCK_ROWS
from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.tabled import Table as Columns, Tabled, rows_of
from pairgram.data.dataset import RankingData, names_of
from pairgram.data.queries import Queries
from pairgram.data.seen_columns import SeenColumns
from pairgram.features.base import dense
from pairgram.metrics.compare import holm
from pairgram.solvers.pairgram import Pairgram
from pairgram.tables.columns import TableRows
from pairgram.tables.passes import Task
from pairgram.tables.table import as_table

if TYPE_CHECKING:
    from pairgram._support.types import RowsLike

# A difference of means that is smaller than this share of the range is a rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Drift(Tabled):
    """What `drift` returns. Printed, it shows a table of the columns that changed.

    Attributes
    ----------
    table : dict of str to ndarray
        A row for every column of the data, which ``pandas.DataFrame`` takes. Its p-values are
        corrected by Holm's method for all columns and tests together.

        ``column``
            The name, or the number, of the column.
        ``shift``, ``p_shift``
            The mean of today minus that of the reference, divided by the standard deviation of the
            reference; both over the rows that have a value. Infinite if a constant moved.
        ``outside``, ``p_outside``
            The share of today's values that are outside of the range that the reference has ever
            seen; NaN if today is statistics.
        ``missing``, ``missing_before``, ``p_missing``
            The share of rows without a value, today and in the reference.
        ``new_constant``, ``p_constant``
            Whether all values of today are equal, but those of the reference were not.
        ``new_missing``
            Whether values are missing today, but none ever was in the reference.
        ``changed``
            Whether one of the p-values is at most `level`.
    level : float
        The probability that some column of unchanged data is said to have changed.
    n_queries : tuple of int
        The queries that the reference has ever seen, and those of today.

    Examples
    --------
    >>> from pairgram import drift, make_ranking
    >>> X, y, qid = make_ranking(200, 10, 4, random_state=0)
    >>> today = X[qid >= 150].copy()
    >>> today[:, 2] += 1
    >>> found = drift(X[qid < 150], today, qid=qid[qid >= 150], reference_qid=qid[qid < 150])
    >>> found.changed
    [2]
    """

    table: Columns
    level: float
    n_queries: tuple[int, int]

    @property
    def changed(self) -> list[Any]:
        """The names, or the numbers, of the columns that changed."""
        names: list[Any] = self.table["column"][self.table["changed"]].tolist()
        return names

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a list of rows of plain numbers and texts, as for JSON."""
        return {
            "level": self.level,
            "n_queries": {"reference": self.n_queries[0], "today": self.n_queries[1]},
            "changed": self.changed,
            "columns": rows_of(self.table),
        }

    def _tables(self) -> dict[str, tuple[str, Columns]]:
        kept, n_columns = self.table["changed"], len(self.table["column"])
        title = (
            f"{np.count_nonzero(kept)} of {n_columns} columns changed: {self.n_queries[1]} queries "
            f"beside {self.n_queries[0]}, level {self.level:g}"
        )
        return {"columns": (title, {name: column[kept] for name, column in self.table.items()})}


def drift(
    reference: Pairgram | RowsLike,
    today: Pairgram | RowsLike,
    *,
    qid: ArrayLike | None = None,
    reference_qid: ArrayLike | None = None,
    level: float = 0.05,
    n_threads: int | None = None,
) -> Drift:
    """Tell which columns of today's rows differ from those that a model was made of.

    Labels are not looked at.

    Parameters
    ----------
    reference : Pairgram, array-like of shape (n_rows, n_columns), or table of `scan`
        The statistics of what a model has learnt from, or its rows, in which NaN is a missing
        value. Statistics may be sums, differences and products; they keep the range of all values
        that they have ever seen.
    today : Pairgram, array-like of shape (n_rows, n_columns), or table of `scan`
        The statistics or rows to compare with the reference. They must have the same columns.
    qid : array-like of shape (n_rows,) or None, default=None
        The query ids of today's rows, if these are an array. With None every row counts as a query
        of its own, and must be independent of the others.
    reference_qid : array-like of shape (n_rows,) or None, default=None
        The same for the rows of the reference.
    level : float between 0 and 1, default=0.05
        The probability that some column of unchanged data is said to have changed.
    n_threads : int ≥ 1 or None, default=None
        As in `Pairgram`.

    Returns
    -------
    Drift

    Raises
    ------
    TypeError
        If the reference or today is a model, which does not hold what is needed: give statistics.
    ValueError
        If the columns differ, if a value is infinite or so large that squares overflow, if a
        parameter is not as described, or if statistics come from a file of a version before 0.3,
        which does not hold what is needed.

    Notes
    -----
    The tests take queries to be independent of each other, but not the rows of a query. The number
    of columns and tests does not matter, because p-values are corrected for it.

    ``p_shift`` is the p-value of Welch's t test of the two means, whose variances are those of sums
    over queries [1]_. The larger of two variances is taken, that of each side by itself and that of
    both sides together, so that rare values do no harm. ``p_missing`` is the same for the shares of
    missing values, if there were some before.

    The other p-values are exact if the queries of today and of the reference are exchangeable. If k
    of the m queries of today have a value above all those of the n queries of the reference, the
    probability of this is at most ``Π (m − i) / (m + n − i)`` over i < k. The same holds for values
    below, and for the first missing values. ``p_constant`` is the probability that all m queries of
    today are among those with the constant value, given how many queries differ from it. If today
    is statistics, only its range is known; a range that is wider counts as one query.

    A shift is one of means. A column of which only the spread changes is named once values leave
    the range. With weights and decays, the mean is the weighted one. With a feature map, the
    columns are those of the rows before it.

    References
    ----------
    .. [1] Cochran (1977). Sampling techniques, 3rd edition, §6.3: the variance of a ratio.

    Examples
    --------
    >>> from pairgram import Pairgram, drift, make_ranking
    >>> X, y, qid = make_ranking(200, 10, 4, random_state=0)
    >>> total = Pairgram.from_rows(X, y, qid=qid)
    >>> drift(total, X[qid < 50], qid=qid[qid < 50]).changed
    []
    """
    if isinstance(level, bool) or not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, got {level!r}")
    before = _look("reference", reference, reference_qid, None, n_threads)
    now = _look("today", today, qid, before, n_threads)
    return _compared(before, now, level)


class _Looked(NamedTuple):
    """What is seen of one side.

    Attributes
    ----------
    seen : SeenColumns
    names : list of str, or None
    outside : ndarray of shape (3, n_columns), or None
        Of rows that are held against a range: the weight of the values outside of it, and the
        numbers of queries with a value below and above it. None if only the range is known.
    """

    seen: SeenColumns
    names: list[str] | None = None
    outside: Vector | None = None

    def joined(self, other: _Looked) -> _Looked:
        """Return what is seen of the rows of both."""
        outside = None
        if self.outside is not None and other.outside is not None:
            outside = self.outside + other.outside
        return _Looked(self.seen.joined(other.seen), self.names, outside)


def _look(
    name: str, given: Any, qid: ArrayLike | None, before: _Looked | None, n_threads: int | None
) -> _Looked:
    """Look at statistics, a table or rows, which must have the columns of the other side."""
    if hasattr(given, "predict"):
        raise TypeError(
            f"{name} must be statistics, rows or a table, got {type(given).__name__}: give "
            "Pairgram.from_rows(X, y, qid=qid) of the rows that the model was fitted to"
        )
    argument = "qid" if before is not None else "reference_qid"
    table = as_table(given, **{argument: qid})
    range_ = None if before is None else before.seen.range
    if isinstance(given, Pairgram):
        if qid is not None:
            raise ValueError(f"{argument} must be None if {name} is statistics, which have queries")
        given._total.required()
        if given._seen is None:
            raise ValueError(
                f"{name} must be statistics that know their columns; these are from a file of an "
                "earlier version, or its squares overflow: build them from rows again"
            )
        found = _Looked(given._seen, given.feature_names_in_)
        _require_columns(before, len(found.seen.pivot), found.names)
    elif table is not None:
        if before is not None:
            table = table.widened(len(before.seen.pivot)).with_features(before.names)
        table = replace(table, layout=replace(table.layout, label=None))
        table = table.filling(None if table.layout.sparse else np.full(table.n_features, np.nan))
        _require_columns(before, table.n_features, table.feature_names)
        block = partial(_of_rows, name, range_, n_threads)
        task: Task[_Looked] = Task(block, _Looked.joined, needs_queries=table.has_queries)
        found = table.reduce(task)._replace(names=table.feature_names)
    else:
        n_rows = given.shape[0] if hasattr(given, "shape") else len(given)
        try:
            data = RankingData.make(given, np.zeros(n_rows), qid=qid)
        except ArgumentError as error:
            error.parameter = {"X": name, "qid": argument}.get(
                error.parameter or "", error.parameter
            )
            raise
        _require_columns(before, data.X.shape[1], names_of(given))
        found = _of_data(name, data, range_, n_threads)._replace(names=names_of(given))
    if not np.isfinite(found.seen.sums).all():
        raise ValueError(f"{name} too large: the sums of squares of a column overflow")
    return found


def _require_columns(before: _Looked | None, n_columns: int, names: list[str] | None) -> None:
    """Raise a ValueError if today has other columns than what is looked at before."""
    if before is None:
        return
    n_before = len(before.seen.pivot)
    if n_before != n_columns:
        raise ValueError(
            f"today must have the {n_before} columns of the reference, got {n_columns}"
        )
    if before.names is not None and names is not None and before.names != names:
        raise ValueError(
            f"today must have the columns of the reference, {before.names}, got {names}"
        )


def _of_rows(name: str, range_: Vector | None, n_threads: int | None, rows: TableRows) -> _Looked:
    """Look at some rows of a table."""
    n_rows = rows.n_rows
    queries = Queries.of_sizes(rows.sizes, rows.ids)
    data = RankingData(rows.X, np.zeros(n_rows), queries, rows.weights)
    return _of_data(name, data, range_, n_threads)


def _of_data(name: str, data: RankingData, range_: Vector | None, n_threads: int | None) -> _Looked:
    alone = data.queries.ids is None
    seen = SeenColumns.of(data, n_threads, by_rows=alone)
    if not np.isfinite(seen.range[:, seen.queries[1] > 0]).all():
        at = np.argwhere(np.isinf(data.X))[0]
        raise ArgumentError(
            name,
            "Input {argument} contains infinity: {place}, counted from 0",
            row=int(at[0]),
            column=int(at[1]),
            found="infinity",
        )
    if range_ is None:
        return _Looked(seen)
    index = np.arange(len(data.y)) if alone else data.queries.index()
    return _Looked(seen, None, _outside(data, index, range_))


def _outside(data: RankingData, index: NDArray[np.int64], range_: Vector) -> Vector:
    """Return the weight of values outside of a range, and the queries below and above it."""
    found = np.zeros((3, data.X.shape[1]))
    below, above = (np.zeros((int(index.max(initial=-1)) + 1, data.X.shape[1]), bool) for _ in "ab")
    for begin in range(0, len(index), BLOCK_ROWS):
        rows = slice(begin, begin + BLOCK_ROWS)
        X, counts = data.X[rows], (data.v[rows] > 0)[:, None]
        X = dense(X)
        low, high = range_
        for own, outside in ((below, low > X), (above, high < X)):
            outside &= counts
            found[0] += data.v[rows] @ outside
            at = np.flatnonzero(outside.any(axis=1))
            np.logical_or.at(own, index[rows][at], outside[at])
    found[1], found[2] = below.sum(axis=0), above.sum(axis=0)
    return found


def _compared(before: _Looked, now: _Looked, level: float) -> Drift:
    """Return the table of two sides."""
    old, new = before.seen, now.seen.from_pivot(before.seen.pivot)
    least, most = np.minimum(old.range, new.range)[0], np.maximum(old.range, new.range)[1]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = new.mean_from_pivot - old.mean_from_pivot
        difference[np.abs(difference) <= _ROUNDING * (most - least)] = 0.0
        shift = np.where(difference == 0, 0.0, difference / np.sqrt(old.variance))
        constant = (new.range[0] == new.range[1]) & (old.range[0] < old.range[1])
    means = [_Ratio.of(side.sums[[0, 1, 3, 4, 5]]) for side in (new, old)]
    # Of what is known, by the weight of all rows.
    known = [_Ratio.of(side.sums[[8, 0, 7, 6, 3]]) for side in (new, old)]
    known_difference = known[0].value - known[1].value
    never = old.queries[2] == 0
    (m, m_known, m_missing, _), (n, n_known, _, _) = new.queries, old.queries
    if now.outside is None:
        outside = np.full(len(shift), np.nan)
        ends = np.array([new.range[0] < old.range[0], new.range[1] > old.range[1]], float)
    else:
        known_before = np.isfinite(old.range[0]) & (new.sums[0] > 0)
        outside = now.outside[0] / np.where(known_before, new.sums[0], np.nan)
        ends = now.outside[1:]
    seen = (m_known > 0) & (n_known > 0)
    # The queries that reach beyond the range of before are all among those of today.
    top = _p_of_subset(ends.max(axis=0), m_known, m_known + n_known)
    p = {
        "p_shift": _p_of_ratios(difference, *means),
        "p_outside": np.where(seen, np.minimum(1.0, 2 * top), np.nan),
        "p_missing": np.where(
            never, _p_of_subset(m_missing, m, m + n), _p_of_ratios(known_difference, *known)
        ),
        "p_constant": np.where(constant & seen, _p_constant(old, new), np.nan),
    }
    corrected = holm(np.concatenate([*p.values()])).reshape(len(p), -1)
    p = dict(zip(p, corrected, strict=True))
    names: NDArray[Any] = np.arange(len(shift))
    if (known_names := before.names or now.names) is not None:
        names = np.array(known_names, dtype=object)
    with np.errstate(invalid="ignore"):
        changed = np.any(corrected <= level, axis=0)
    table: Columns = {
        "column": names,
        "shift": shift,
        "p_shift": p["p_shift"],
        "outside": outside,
        "p_outside": p["p_outside"],
        "missing": new.missing,
        "missing_before": old.missing,
        "p_missing": p["p_missing"],
        "new_constant": constant,
        "p_constant": p["p_constant"],
        "new_missing": never & (m_missing > 0),
        "changed": np.asarray(changed),
    }
    return Drift(table, level, (int(n.max(initial=0)), int(m.max(initial=0))))


class _Ratio(NamedTuple):
    """A ratio ``Σ S / Σ W`` of sums over queries, and what its variance follows from.

    Attributes
    ----------
    value : ndarray of shape (n_columns,)
    sums : ndarray of shape (5, n_columns)
        Σ W, Σ S, Σ W², Σ W S and Σ S².
    n : ndarray of shape (n_columns,)
        As many queries of equal weight would have this ratio of (Σ A)² and Σ A².
    """

    value: Vector
    sums: Vector
    n: Vector

    @classmethod
    def of(cls, sums: Vector) -> _Ratio:
        """Return the ratio of Σ W, Σ S, Σ W², Σ W S and Σ S²."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(sums[1] / sums[0], sums, sums[0] ** 2 / sums[2])

    def variance(self, value: Vector) -> Vector:
        """Return the variance of the ratio, if `value` is what it should be."""
        W, _, WW, WS, SS = self.sums
        return np.asarray(np.maximum(SS - value * (2 * WS - value * WW), 0.0) / W**2)


def _p_of_ratios(difference: Vector, one: _Ratio, other: _Ratio) -> Vector:
    """Return two-sided p-values of the difference of two ratios; NaN for less than two queries."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        a, b = (side.variance(side.value) * side.n / (side.n - 1) for side in (one, other))
        share = a / (a + b)  # squares of variances would overflow
        degrees = 1 / (share**2 / (one.n - 1) + (1 - share) ** 2 / (other.n - 1))
        least = np.minimum(one.n, other.n) - 1
        degrees = np.where(np.isfinite(degrees), degrees, least)
        # Of both sides together: per query of a weight of 1, then for as many as each side has.
        value = (one.sums[1] + other.sums[1]) / (one.sums[0] + other.sums[0])
        spread = [side.variance(value) * side.n**2 for side in (one, other)]
        together = sum(spread) / (one.n + other.n) * (1 / one.n + 1 / other.n)
        statistic = np.abs(difference) / np.sqrt(np.maximum(a + b, together))
        p = np.asarray(2 * student.sf(np.where(difference == 0, 0.0, statistic), degrees))
    # A statistic is infinite where squares of tiny values vanish.
    p[~(least > 1e-9) | np.isnan(difference) | np.isinf(statistic)] = np.nan
    return p


def _p_constant(old: SeenColumns, new: SeenColumns) -> Vector:
    """Return how probable it is that no query of today has another value than its constant one.

    At least so many queries of the reference have one: those whose values differ; by the
    inequality of Cauchy and Schwarz, (Σ Y)² / Σ Y² of Y = S − c N; and of rows that are queries of
    their own, Σ (x − c)² by the largest (x − c)².
    """
    m, n = new.queries[1], old.queries[1]
    N, S, squares, NN, NS, SS, _, AA, A = old.sums
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        c = new.range[0] - old.pivot
        Y, YY = S - c * N, SS - c * (2 * NS - c * NN)
        # What was forgotten, or has decayed, leaves rounding error in place of 0.
        YY[~(1e-12 * (SS + np.abs(2 * c * NS) + c * c * NN) < YY)] = np.nan
        farthest = np.max((old.range - new.range[0]) ** 2, axis=0)
        rows = np.where((A == AA) & (old.queries[0] == A), squares - c * (2 * S - c * N), 0.0)
        other = np.fmax(np.nan_to_num(Y**2 / YY), np.nan_to_num(rows / farthest))
    other = np.clip(np.maximum(np.floor(other * (1 - 1e-9)), old.queries[3]), 0, n)
    # That the m queries of today are all among the others of the m + n.
    return _p_of_subset(m, m + n - other, m + n)


def _p_of_subset(m: Vector, part: Vector, whole: Vector) -> Vector:
    """Return the probability that m of the whole, drawn without return, are all of a part."""
    with np.errstate(invalid="ignore"):
        logarithm = gammaln(part + 1.0) - gammaln(part - m + 1.0)
        logarithm -= gammaln(whole + 1.0) - gammaln(whole - m + 1.0)
    return np.asarray(np.minimum(1.0, np.exp(logarithm)))
