"""Pictures of models, of their scores in queries, and of searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

# The first two are of Okabe and Ito's palette.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
LONGEST_LABEL = 36
# A 95 % interval reaches this many standard deviations to both sides.
BAR = 1.96


class Plot(NamedTuple):
    """What a plotting function returns; ``ax, data = ...`` unpacks it.

    Attributes
    ----------
    ax : matplotlib.axes.Axes
        ``ax.figure.savefig("file.png")`` writes it.
    data : dict of str to ndarray
        The numbers that are drawn.
    """

    ax: Any
    data: Mapping[str, NDArray[Any]]


def axes_of(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Any:
    """Return the axes to draw in: new axes of this size in inches if there are none."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        message = "pairgram.plots needs matplotlib: pip install 'pairgram[plots]'"
        raise ImportError(message) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def require(model: BaseEstimator, attribute: str, wanted: str) -> Any:
    """Return an attribute of a model, or raise a ValueError that says which models have it."""
    found = getattr(model, attribute, None)
    if found is None:
        raise ValueError(f"want {wanted}, got {type(model).__name__} without {attribute}")
    return found


def check_count(name: str, value: Any) -> None:
    """Raise a ValueError if a count is no integer from 1 on."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def shortened(label: object) -> str:
    """Return a label that leaves room for the picture."""
    text = str(label)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def weights(table: Any, ax: Axes | None = None, *, n_largest: int = 20) -> Plot:
    """Draw bars of the weights of columns, the most important first, with their 95 % intervals.

    Parameters
    ----------
    table : what ``model.column_weights()`` returned, with a column ``deviation``
        The deviations are ``np.sqrt(posterior(model, X, y).covariance.diagonal())``, in the order
        of ``table["column"]``.
    ax : matplotlib.axes.Axes, or None for new axes
    n_largest : int ≥ 1, default=20
        How many columns are drawn.

    Returns
    -------
    Plot
        The data are ``name``, ``weight`` and ``deviation``.

    Raises
    ------
    ValueError
        If the table has no deviations, or if `n_largest` is out of its range.

    Notes
    -----
    The ridge shrinks weights towards 0. The intervals do not include this bias.
    """
    check_count("n_largest", n_largest)
    data = _columns_of(table, ("name", "weight", "deviation"), "column_weights", n_largest)
    reach = BAR * data["deviation"]
    ax = axes_of(ax, 6.4, 1.2 + 0.28 * len(reach))
    places = np.arange(len(reach))[::-1]
    ax.barh(places, data["weight"], xerr=reach, color=BLUE, ecolor="black", error_kw={"lw": 1})
    ax.set_yticks(places, [shortened(one) for one in data["name"]])
    ax.axvline(0, color="black", lw=0.6)
    ax.set(xlabel="weight, and its 95 % interval")
    ax.locator_params(axis="x", nbins=4)  # names may leave little room
    ax.margins(y=0.02)
    return Plot(ax, data)


def ranks(table: Any, names: Any = None, ax: Axes | None = None, *, n_first: int = 30) -> Plot:
    """Draw the scores of a list with their 95 % intervals and the ranks that rows may have.

    Parameters
    ----------
    table : what ``posterior(model, X, y).rank_ranges(X)`` returned, for one list
        Or the rows of one list of it, whose numbers stay those of the whole X.
    names : sequence of str, or None, default=None
        The name of each row of X. None takes the numbers of the rows.
    ax : matplotlib.axes.Axes, or None for new axes
    n_first : int ≥ 1, default=30
        How many rows are drawn: those with the highest scores.

    Returns
    -------
    Plot
        The data are ``name``, ``score``, ``deviation``, ``best`` and ``worst``.

    Raises
    ------
    ValueError
        If the table is not such a table, or has several lists; if there are fewer names than rows
        of X; or if `n_first` is out of its range.
    """
    check_count("n_first", n_first)
    wanted = ("row", "score", "deviation", "best", "worst")
    numbers = _columns_of(table, wanted, "rank_ranges", None)["row"]
    n_rows = int(numbers.max(initial=-1)) + 1  # of X, of which the list may be a part
    lists = [*table["qid"]] if "qid" in table else []
    if any(one != lists[0] for one in lists):
        raise ValueError("table must be of one list: take the rows of one query")
    if names is not None and len(names) < n_rows:
        raise ValueError(f"names must have a name for each of {n_rows} rows, got {len(names)}")
    data = _columns_of(table, wanted, "rank_ranges", n_first)
    rows = data.pop("row")
    known = None if names is None else [*names]  # a column of pandas may have another index
    of_rows = [f"row {row}" if known is None else str(known[row]) for row in rows]
    data = {"name": np.array(of_rows, object), **data}
    places = np.arange(len(rows))[::-1]
    ax = axes_of(ax, 6.4, 1.2 + 0.28 * len(rows))
    ax.errorbar(
        data["score"],
        places,
        xerr=BAR * data["deviation"],
        fmt="o",
        ms=5,
        color=BLUE,
        ecolor=GREY,
        elinewidth=1.5,
    )
    ax.set_yticks(places, [shortened(one) for one in of_rows])
    spans = zip(data["best"].tolist(), data["worst"].tolist(), strict=True)
    told = [f"{best}" if best == worst else f"{best}–{worst}" for best, worst in spans]
    right = ax.secondary_yaxis("right")
    right.set_yticks(places, told)
    right.tick_params(length=0)
    right.set_ylabel("ranks it may have")
    ax.set(xlabel="score, and its 95 % interval")
    ax.margins(y=0.02)
    return Plot(ax, data)


def _columns_of(
    table: Any, names: tuple[str, ...], method: str, n_first: int | None
) -> dict[str, NDArray[Any]]:
    """Return the first rows of columns of a table, or raise a ValueError if it lacks one."""
    for name in names:
        if not hasattr(table, "keys") or name not in table:
            raise ValueError(f"table must be what {method} returned; it has no {name!r}")
    return {name: np.asarray(table[name])[:n_first] for name in names}


def differences(
    comparison: Any,
    systems: tuple[str, str] | None = None,
    metric: str | None = None,
    ax: Any = None,
) -> Plot:
    """Draw how much better a system is than another in every query, in ascending order.

    Parameters
    ----------
    comparison : what `pairgram.compare` or `pairgram.compare_values` returned
    systems : (str, str) or None
        The names of two of its systems. None takes those of the first row of its table of
        differences.
    metric : str or None
        The name of one of its metrics. None takes the first.
    ax : matplotlib.axes.Axes, or None for new axes

    Returns
    -------
    Plot
        The data are ``qid``, the ids of the queries in the order drawn, and ``difference``, the
        metric of the first system minus that of the second. Queries in which the metric is
        undefined are left out.

    Raises
    ------
    ValueError
        If the comparison has no such system or metric, or if no query is left.
    """
    require(comparison, "differences", "what pairgram.compare returned")
    metric = _one_of("metric", metric, list(comparison.values))
    values = comparison.values[metric]
    table = comparison.differences
    names = (table["system"][0], table["against"][0]) if systems is None else systems
    if len(names) != 2:
        raise ValueError(f"systems must be two names, got {names!r}")
    one, other = (values[_one_of("systems", name, list(values))] for name in names)
    both = np.flatnonzero(np.isfinite(one) & np.isfinite(other))
    if not len(both):
        raise ValueError(f"{metric} is defined in no query of {names[0]} and {names[1]}")
    least = 1e-12 * min(1.0, np.abs([one[both], other[both]]).max())
    change = np.where(np.isclose(one, other, 1e-12, least), 0.0, one - other)[both]
    order = np.argsort(change, kind="stable")
    change, queries = change[order], comparison.qid[both[order]]
    ax = axes_of(ax)
    gain = -change if metric in comparison.losses else change
    colours = np.where(gain > 0, BLUE, ORANGE)
    ax.bar(np.arange(len(change)), change, width=1.0, color=colours.tolist(), lw=0)
    counts = [(gain > 0).sum(), (gain < 0).sum(), (gain == 0).sum()]
    first, second = map(shortened, names)
    ax.axhline(0, color="black", lw=0.6)
    ax.axhline(change.mean(), color=GREY, ls="--", lw=1.2, label=f"mean: {change.mean():+.4f}")
    ax.bar([0], [0], color=BLUE, label=f"{first} better: {counts[0]}")
    ax.bar([0], [0], color=ORANGE, label=f"{second} better: {counts[1]}")
    ax.plot([], [], ls="none", label=f"equal: {counts[2]}")
    ax.set(
        xlabel="queries, by difference",
        ylabel=f"{metric}: {first} − {second}",
        xlim=(-0.5, len(change) - 0.5),
    )
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, loc="best")
    return Plot(ax, {"qid": queries, "difference": change})


def _one_of(what: str, name: str | None, known: list[str]) -> str:
    if name is None:
        return known[0]
    if name not in known:
        raise ValueError(f"{what}: the comparison must have {name!r}, has {', '.join(known)}")
    return name


def scores(search: BaseEstimator, ax: Axes | None = None) -> Plot:
    """Draw the held-out score along alpha or C, its standard error, and the choice.

    Parameters
    ----------
    search : fitted ranker with `alphas_` or `Cs_`, such as `RankRLSCV` or `RankSVMCV`
        The standard error, of the mean over splits or over queries, is drawn if the search has
        splits, or `per_query_`.
    ax : matplotlib.axes.Axes, or None for new axes

    Returns
    -------
    Plot
        The data are ``alpha`` (or ``C``) and ``score``, in ascending order of alpha,
        ``standard_error`` (NaN where it is not known) and ``chosen``, the chosen alpha.

    Raises
    ------
    ValueError
        If the model has chosen no alpha and no C, or both.
    """
    means = np.asarray(require(search, "scores_", "a fitted search over alpha or C"), np.float64)
    if means.ndim != 1:
        raise ValueError("the search has chosen alpha and C: want one that has chosen one of them")
    name = "C" if hasattr(search, "Cs_") else "alpha"
    tried = np.asarray(getattr(search, f"{name}s_"), np.float64)
    order = np.argsort(tried)
    errors = _standard_errors(search, name, tried)[order]
    tried, means = tried[order], means[order]
    ax = axes_of(ax)
    if np.isfinite(errors).any():
        ax.fill_between(tried, means - errors, means + errors, color=BLUE, alpha=0.2, lw=0)
        ax.plot([], [], color=BLUE, alpha=0.3, lw=8, label="± standard error")
    ax.plot(tried, means, color=BLUE, marker="o", ms=3.5, label="held-out mean")
    chosen = float(getattr(search, f"{name}_"))
    ax.axvline(chosen, color=ORANGE, ls="--", label=f"chosen: {chosen:.3g}")
    ax.set(xscale="log", xlabel=name, ylabel=_metric_name(search))
    ax.legend(frameon=False)
    return Plot(
        ax,
        {
            name: tried,
            "score": means,
            "standard_error": errors,
            "chosen": np.array([chosen]),
        },
    )


def _standard_errors(
    search: BaseEstimator, name: str, tried: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the standard errors of the scores of the chosen settings, NaN if not known."""
    unknown = np.full(len(tried), np.nan)
    results = getattr(search, "cv_results_", None)
    if results is None:
        return unknown
    best = results["params"][search.best_index_]
    same = [
        number
        for number, params in enumerate(results["params"])
        if all(_equal(params[key], value) for key, value in best.items() if key != name)
    ]
    by_value = {float(results["params"][number][name]): number for number in same}
    rows = [by_value.get(value) for value in tried.tolist()]
    splits = [name for name in results if name.startswith("split")]
    per_query = getattr(search, "per_query_", None)
    values = () if per_query is None else per_query[search.scoring_.name]
    size = len(splits) or np.isfinite(values).sum()
    if size < 2 or None in rows:
        return unknown
    deviations = np.asarray(results["std_test_score"], np.float64)[np.array(rows, np.int64)]
    return deviations / size**0.5


def _equal(first: object, second: object) -> bool:
    return first is second or bool(np.all(first == second))


def _metric_name(search: BaseEstimator) -> str:
    metric = getattr(search, "scoring_", None)
    less = "" if getattr(metric, "greater_is_better", True) else " (less is better)"
    return str(getattr(metric, "name", "score")) + less
