"""Compare systems on the same queries: means, bootstrap intervals, tests, and changed queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import object_array, real_array
from pairgram._support.checks import AnyArray, Vector
from pairgram._support.parameters import check_size, check_text
from pairgram.comparing.tabled import Table, rows_of, text_of
from pairgram.data.queries import Queries, plain_ids
from pairgram.metrics.evaluation import evaluate, get_metric
from pairgram.metrics.metric import Metric, is_loss, listed_metrics

# This many signs or counts of resampled queries are held at a time: 32 MiB.
_BLOCK = 1 << 22
# All signs of at most this many differences are enumerated, in 36 MiB.
_LONGEST_EXACT = 18
# The quantiles between which 95 % of bootstrap means lie.
TAILS = (0.025, 0.975)
# Sums that differ by rounding alone count as equal.
_ROUNDING = 1e-12


def randomization_test(
    differences: Vector, n_permutations: int, rng: np.random.Generator
) -> Vector:
    """Return two-sided p-values of the paired randomisation test, shape (n_columns,).

    Under the null hypothesis the two systems could be exchanged in any query, so every difference
    has either sign. The p-value is the fraction of the assignments of signs whose sum is at least
    as large in size as that of the data. All assignments are tried if they are at most
    `n_permutations`; differences of 0 have no sign. Otherwise as many are drawn, and those of the
    data count as one more. One draw of signs serves all columns.

    References
    ----------
    Smucker, Allan, Carterette (2007). A comparison of statistical significance tests for
    information retrieval evaluation. CIKM.
    """
    filled = np.nan_to_num(differences, nan=0.0)
    n_signs = (filled != 0).sum(axis=0)
    exact = n_signs <= min(_LONGEST_EXACT, np.log2(n_permutations))
    p = np.empty(filled.shape[1])
    for column in np.flatnonzero(exact):
        own = filled[filled[:, column] != 0, column]
        bits = np.arange(1 << len(own))[:, None] >> np.arange(len(own)) & 1
        p[column] = _as_extreme(bits, own[:, None])[0] / len(bits)
    drawn = filled[:, ~exact]
    if drawn.size:
        counts = np.zeros(drawn.shape[1])
        n_queries = len(drawn)
        rows = max(1, _BLOCK // n_queries)
        for begin in range(0, n_permutations, rows):
            size = min(rows, n_permutations - begin)
            packed = rng.integers(0, 256, (size, -(-n_queries // 8)), dtype=np.uint8)
            counts += _as_extreme(np.unpackbits(packed, axis=1, count=n_queries), drawn)
        p[~exact] = (counts + 1) / (n_permutations + 1)
    return p


def _as_extreme(bits: AnyArray, differences: Vector) -> Vector:
    """Return how many rows of signs make sums of at least the size of the plain ones."""
    total = differences.sum(axis=0)
    # With the sign -1 where the bit is 0: twice the sum of those with bit 1, minus all.
    sums = np.abs(2 * (bits.astype(np.float64) @ differences) - total)
    margin = _ROUNDING * np.abs(differences).sum(axis=0)
    return (sums >= np.abs(total) - margin).sum(axis=0).astype(np.float64)


def holm(p: Vector) -> Vector:
    """Return p-values corrected for their number by Holm's step-down method; NaN stays NaN.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6.
    """
    corrected = np.full_like(p, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected


def bootstrap_means(values: Vector, n_resamples: int, rng: np.random.Generator) -> Vector:
    """Return the means of columns in bootstrap samples, (n_resamples, n_columns).

    Queries are drawn with replacement, the same ones for all columns. A mean is NaN if the sample
    has no value of the column, or the column has a single one, which tells nothing of others.
    """
    n_queries = len(values)
    known = (~np.isnan(values)).astype(np.float64)
    stacked = np.hstack([np.nan_to_num(values, nan=0.0), known])
    means = np.empty((n_resamples, values.shape[1]))
    rows = max(1, _BLOCK // n_queries)
    for begin in range(0, n_resamples, rows):
        size = min(rows, n_resamples - begin)
        drawn = rng.integers(0, n_queries, (size, n_queries))
        drawn += n_queries * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_queries).reshape(size, n_queries)
        sums, weights = np.hsplit(counts.astype(np.float64) @ stacked, 2)
        with np.errstate(invalid="ignore"):
            means[begin : begin + size] = sums / weights
    means[:, known.sum(axis=0) < 2] = np.nan
    return means


def percentile_intervals(means: Vector) -> tuple[Vector, Vector]:
    """Return the ends of 95 % intervals of bootstrap means; NaN for a column without."""
    ends = np.full((2, means.shape[1]), np.nan)
    known = ~np.isnan(means).all(axis=0)
    ends[:, known] = np.nanquantile(means[:, known], TAILS, axis=0)
    return ends[0], ends[1]


_ORDER = "; the order is compare(y, qid, scores, metrics)"
# Values that differ by rounding alone are ties.
_TIE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` and `compare_values` return: two tables, which ``print`` shows.

    A table is a dict of columns, of which ``pandas.DataFrame`` makes a frame. So it does of
    ``values["ndcg@10"]``, whose differences tell which queries changed most.

    Attributes
    ----------
    means : dict of str to ndarray
        A row for every metric and system, with the columns ``metric``, ``system``, ``mean``,
        ``low`` and ``high`` (the 95 % bootstrap interval of the mean; NaN for one query), and
        ``n_queries`` (those in which the metric is defined).
    differences : dict of str to ndarray
        A row for every metric and pair of systems, with the columns ``metric``, ``system``,
        ``against``, ``difference`` (the mean of system minus that of against), ``low`` and
        ``high`` (its bootstrap interval); ``wins``, ``ties`` and ``losses`` (numbers of queries in
        which system is better, equal or worse); ``p`` (p-values of the randomisation test); and
        ``p_holm`` (corrected for the number of pairs).
    qid : ndarray of shape (n_queries,)
        The ids of the queries.
    values : dict of str to dict of str to ndarray of shape (n_queries,)
        The values of every metric and system in every query.
    losses : frozenset of str
        The metrics for which less is better.

    Examples
    --------
    >>> from pairgram import compare
    >>> y, qid = [1, 0, 0, 1], ["a", "a", "b", "b"]
    >>> result = compare(y, qid, {"one": [2, 1, 1, 2], "two": [2, 1, 2, 1]}, "mrr")
    >>> result.means["mean"].tolist(), result.values["mrr"]["two"].tolist()
    ([1.0, 0.75], [1.0, 0.5])
    >>> result.to_dict()["means"][1]["system"]
    'two'
    """

    means: Table
    differences: Table
    qid: AnyArray
    values: dict[str, dict[str, Vector]]
    losses: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the two tables as lists of rows of plain numbers and texts, ready for JSON."""
        return {
            "n_queries": len(self.qid),
            "means": rows_of(self.means),
            "differences": rows_of(self.differences),
        }

    def __repr__(self) -> str:
        """Return the tables as text."""
        parts = self._tables().values()
        return "\n\n".join(f"{title}\n{text_of(table)}" for title, table in parts)

    def _tables(self) -> dict[str, tuple[str, Table]]:
        """Return the titles and the tables, by their names."""
        title = f"{len(self.qid)} queries, 95 % intervals"
        return {
            "means": (title, self.means),
            "differences": ("Differences, system minus against", self.differences),
        }


def compare(
    y: ArrayLike,
    qid: ArrayLike,
    scores: Mapping[str, ArrayLike],
    metrics: str | Metric | Iterable[str | Metric] = "ndcg@10",
    *,
    baseline: str | None = None,
    n_permutations: int = 100_000,
    n_resamples: int = 10_000,
    random_state: int | None = 0,
) -> Comparison:
    """Compare several systems on the same queries.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, as in `evaluate`.
    qid : array-like of shape (n_rows,)
        Query ids. Queries are what the tests take as independent.
    scores : dict of str to array-like of shape (n_rows,)
        The scores of two or more systems, by their names.
    metrics : str, Metric, or iterable of them
        See `evaluate`; `get_metric` makes those of other conventions.
    baseline : str or None
        The system that all others are compared with. None compares every pair of systems.
    n_permutations : int ≥ 1
        The number of random assignments of signs in the randomisation test. If there are no more
        assignments than this in all, and at most 18 queries differ, all are tried, and p is exact.
    n_resamples : int ≥ 1
        The number of bootstrap samples of queries.
    random_state : int or None
        The seed of the permutations and of the bootstrap. None draws new ones each time.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there are fewer than two systems, if `qid` is None, if a setting is out of its range, and
        as in `evaluate`.
    TypeError
        If arguments are in the wrong order, or if `scores` is no dict.

    Notes
    -----
    The p-values are two-sided, for differences that are paired by query. The randomisation test
    needs no assumption about their distribution [1]_. ``scipy.stats.ttest_rel`` of two columns of
    `Comparison.values` is the t test, with ``nan_policy="omit"`` where a metric is undefined (NaN)
    in some queries.
    Intervals are those of the percentile bootstrap, which resamples queries. They are not corrected
    for their number. ``scipy.stats.bootstrap`` of columns of `Comparison.values` makes others.

    The tests assume that queries are independent, and that their number was fixed before the first
    look. If you stop an experiment as soon as p is small, you find differences where there are
    none. All sessions of one user should share one query id.

    Among many pairs some p-values are small by chance. ``p_holm`` is corrected by
    Holm's method for the number of pairs, but not for the number of metrics: choose one metric to
    decide by beforehand.

    A system whose settings were chosen on these queries looks better than it is: compare on queries
    that no choice has used.

    A query in which a metric is undefined (NaN) is left out of its differences. The better value
    wins: the lower one for misranking and metrics whose names end in error, and the higher one for
    the others. Two values tie, with the difference 0, if they differ by at most 1e-12 times the
    larger of their sizes and 1, or times the largest size in any query if all are below 1.

    References
    ----------
    .. [1] Smucker, Allan, Carterette (2007). A comparison of statistical significance tests for
       information retrieval evaluation. CIKM.

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import compare, make_ranking
    >>> X, y, qid = make_ranking(50, 20, 3, random_state=0)
    >>> result = compare(y, qid, {"one": X[:, 0], "two": X.sum(axis=1)}, "ndcg@10")
    >>> result.differences["system"][0], result.differences["against"][0]
    ('two', 'one')
    >>> print(compare(y, qid, {"one": X[:, 0], "two": X[:, 1]}))
    50 queries, 95 % intervals
    metric   system    mean     low    high  n_queries
    ndcg@10  one     0.3800  0.3366  0.4238         50
    ndcg@10  two     0.1192  0.0946  0.1445         50
    <BLANKLINE>
    Differences, system minus against
    metric   system  against  difference ... wins  ties  losses      p  p_holm
    ndcg@10  two     one         -0.2608 ...    1     0      49  1e-05   1e-05
    """
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else y
    if isinstance(first, (str, Metric)):
        raise TypeError(f"y must be the labels of the rows, got {first!r}{_ORDER}")
    if not isinstance(scores, Mapping):
        kind = type(scores).__name__
        raise TypeError(f"scores must be a dict of names to scores, got {kind}{_ORDER}")
    if qid is None:
        raise ValueError("qid must be given, because systems are compared query by query")
    listed = listed_metrics(metrics, _ORDER)
    wanted = [m if isinstance(m, Metric) else get_metric(m) for m in listed]
    names = _checked_names(scores, "scores")
    columns = [real_array(score, f"scores of {name!r}") for name, score in scores.items()]
    for name, column in zip(names, columns, strict=True):
        if column.shape != np.shape(y):
            raise ValueError(
                f"scores of {name!r} must have shape {np.shape(y)}, as y, got {column.shape}"
            )
    found = evaluate(wanted, y, np.stack(columns), qid, per_query=True)
    queries = Queries.make(len(columns[0]), qid=qid)
    assert queries.ids is not None
    ids = object_array(plain_ids(queries.ids))
    return compare_values(
        {
            name: {"qid": ids, **{metric: values[place] for metric, values in found.items()}}
            for place, name in enumerate(names)
        },
        baseline=baseline,
        n_permutations=n_permutations,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def compare_values(
    values: Mapping[str, Mapping[str, ArrayLike]],
    *,
    baseline: str | None = None,
    n_permutations: int = 100_000,
    n_resamples: int = 10_000,
    random_state: int | None = 0,
) -> Comparison:
    """Compare metrics that are known for every query, such as those of TREC runs.

    Parameters
    ----------
    values : dict of str to dict of str to array-like of shape (n_queries,)
        For each of two or more systems, by their names, what
        ``evaluate_run(qrels, run, metrics, per_query=True)`` returns: the metrics by their names,
        and the ids of the queries as "qid". All have the same queries, in one order.
    baseline, n_permutations, n_resamples, random_state
        See `compare`.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there are fewer than two systems, or if they have other queries or metrics.
    TypeError
        If `values` are not as described.

    Examples
    --------
    >>> from pairgram import compare_values
    >>> good = {"qid": ["a", "b", "c"], "mrr": [1.0, 1.0, 0.5]}
    >>> bad = {"qid": ["a", "b", "c"], "mrr": [0.5, 0.5, 0.25]}
    >>> result = compare_values({"bad": bad, "good": good})
    >>> result.differences["difference"].round(4).tolist(), result.differences["p"].tolist()
    ([0.4167], [0.25])
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"values must be a dict of names to tables, got {type(values).__name__}")
    names = _checked_names(values, "values")
    tables = {name: dict(values[name]) for name in names}
    ids = {name: np.asarray(table.pop("qid", ())).tolist() for name, table in tables.items()}
    first, found = names[0], dict[str, dict[str, Vector]]()
    if not ids[first] or not tables[first]:
        raise ValueError(f"values of {first!r} must have queries, as 'qid', and metrics")
    for name, table in tables.items():
        if ids[name] != ids[first] or table.keys() != tables[first].keys():
            raise ValueError(
                f"values of {name!r} must have the queries, as 'qid', and the metrics of {first!r}"
            )
        for metric, column in table.items():
            of_queries = real_array(column, f"{metric} of {name!r}")
            if of_queries.shape != (len(ids[name]),):
                raise ValueError(f"{metric} of {name!r} must be one number for each query")
            found.setdefault(metric, {})[name] = of_queries
    if baseline is not None:
        check_text("baseline", baseline, names)
    check_size("n_permutations", n_permutations)
    check_size("n_resamples", n_resamples)
    pairs = [
        (system, against) for against, system in combinations(names, 2) if baseline is None
    ] or [(system, str(baseline)) for system in names if system != baseline]
    qid = object_array(ids[first])
    of_system = [(metric, name) for metric in found for name in names]
    of_pair = [(metric, *pair) for metric in found for pair in pairs]
    single = np.stack([found[metric][name] for metric, name in of_system], axis=1)
    paired = np.stack([_differences(*(found[m][one] for one in pair)) for m, *pair in of_pair], 1)
    rng = np.random.default_rng(random_state)
    n = single.shape[1]
    # All resampled means are of the same samples.
    resampled = bootstrap_means(np.hstack([single, paired]), n_resamples, rng)
    p = randomization_test(paired, n_permutations, rng)
    low, high = percentile_intervals(resampled)
    means = {
        "metric": object_array(metric for metric, _ in of_system),
        "system": object_array(name for _, name in of_system),
        "mean": _means(single),
        "low": low[:n],
        "high": high[:n],
        "n_queries": (~np.isnan(single)).sum(axis=0),
    }
    losses = frozenset(filter(is_loss, found))
    sign = np.array([-1.0 if metric in losses else 1.0 for metric, _, _ in of_pair])
    differences = {
        "metric": object_array(metric for metric, _, _ in of_pair),
        "system": object_array(system for _, system, _ in of_pair),
        "against": object_array(other for _, _, other in of_pair),
        "difference": _means(paired),
        "low": low[n:],
        "high": high[n:],
        "wins": (sign * paired > 0).sum(axis=0),
        "ties": (paired == 0).sum(axis=0),
        "losses": (sign * paired < 0).sum(axis=0),
        "p": p,
        "p_holm": np.concatenate([holm(own) for own in p.reshape(-1, len(pairs))]),
    }
    return Comparison(means, differences, qid, found, losses)


def _checked_names(systems: Mapping[str, Any], argument: str) -> list[str]:
    names = list(systems)
    if len(names) < 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} must name at least two systems, got {names}")
    return names


def _differences(one: Vector, other: Vector) -> Vector:
    """Return the differences of values in every query, 0 where they are rounding errors."""
    sizes = np.maximum(np.abs(one), np.abs(other))
    least = min(1.0, np.fmax.reduce(sizes, initial=0.0))  # errors may have the unit of tiny labels
    tied = np.abs(one - other) <= _TIE * np.maximum(least, sizes)
    return np.where(tied, 0.0, one - other)


def _means(values: Vector) -> Vector:
    """Return the means of columns, with the bits of `evaluate`."""
    return Metric.mean(np.ascontiguousarray(values.T))
