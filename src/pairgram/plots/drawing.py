"""Pictures of models, of their scores in queries, and of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def shortened(label: object) -> str:
    """Return a label that leaves room for the picture."""
    text = str(label)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def ranks(table: Any, names: Any = None, ax: Any = None) -> Axes:
    """Draw the scores of a list with their 95 % intervals and the ranks that rows may have.

    Parameters
    ----------
    table : what ``posterior(model, X, y).rank_ranges(X)`` returned, for one list
        Or some rows of it, whose numbers stay those of the whole X.
    names : sequence of str, or None, default=None
        The name of each row of X. None takes the numbers of the rows.
    ax : matplotlib.axes.Axes, or None for new axes

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the table is not such a table, or has several lists; or if there are fewer names than
        rows of X.
    """
    for name in ("row", "score", "deviation", "best", "worst"):
        if not hasattr(table, "keys") or name not in table:
            raise ValueError(f"table must be what rank_ranges returned; it has no {name!r}")
    rows = np.asarray(table["row"])
    if len({*table.get("qid", ())}) > 1:
        raise ValueError("table must be of one list: take the rows of one query")
    n_rows = int(rows.max(initial=-1)) + 1  # of X, of which the list may be a part
    if names is not None and len(names) < n_rows:
        raise ValueError(f"names must have a name for each of {n_rows} rows, got {len(names)}")
    known = [f"row {row}" for row in range(n_rows)] if names is None else [*names]
    places = np.arange(len(rows))[::-1]
    ax = axes_of(ax, 6.4, 1.2 + 0.28 * len(rows))
    reach = BAR * np.asarray(table["deviation"])
    style = {"fmt": "o", "ms": 5, "color": BLUE, "ecolor": GREY, "elinewidth": 1.5}
    ax.errorbar(np.asarray(table["score"]), places, xerr=reach, **style)
    ax.set_yticks(places, [shortened(known[row]) for row in rows])
    spans = zip(table["best"], table["worst"], strict=True)
    told = [f"{best}" if best == worst else f"{best}–{worst}" for best, worst in spans]
    right = ax.secondary_yaxis("right")
    right.set_yticks(places, told)
    right.tick_params(length=0)
    right.set_ylabel("ranks it may have")
    ax.set(xlabel="score, and its 95 % interval")
    ax.margins(y=0.02)
    return ax


def differences(
    comparison: Any,
    systems: tuple[str, str] | None = None,
    metric: str | None = None,
    ax: Any = None,
) -> Axes:
    """Draw how much better a system is than another in every query, in ascending order.

    Queries in which the metric is undefined are left out.

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
    matplotlib.axes.Axes

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
    change = np.sort(np.where(np.isclose(one, other, 1e-12, least), 0.0, one - other)[both])
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
    return ax


def _one_of(what: str, name: str | None, known: list[str]) -> str:
    if name is None:
        return known[0]
    if name not in known:
        raise ValueError(f"{what}: the comparison must have {name!r}, has {', '.join(known)}")
    return name


def scores(search: BaseEstimator, ax: Any = None) -> Axes:
    """Draw the held-out score along alpha or C, its standard error, and the choice.

    Parameters
    ----------
    search : fitted ranker with `alphas_` or `Cs_`, such as `RankRLSCV` or `RankSVMCV`
        The standard error, of the mean over splits or over queries, is drawn if the search has
        splits, or `per_query_`.
    ax : matplotlib.axes.Axes, or None for new axes

    Returns
    -------
    matplotlib.axes.Axes

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
    return ax


def _standard_errors(
    search: BaseEstimator, name: str, tried: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the standard errors of the scores of the chosen settings, NaN if not known."""
    results = getattr(search, "cv_results_", None)
    if results is None:
        return np.full(len(tried), np.nan)
    best = results["params"][search.best_index_]
    same = [
        all(_equal(params[key], value) for key, value in best.items() if key != name)
        for params in results["params"]
    ]
    per_query = getattr(search, "per_query_", None)
    values = () if per_query is None else per_query[search.scoring_.name]
    n_splits = sum(name.startswith("split") for name in results)
    size = n_splits or np.isfinite(values).sum()
    errors = np.asarray(results["std_test_score"])[same] / max(size, 1) ** 0.5
    return errors if size > 1 and len(errors) == len(tried) else np.full(len(tried), np.nan)


def _equal(first: object, second: object) -> bool:
    return first is second or bool(np.all(first == second))


def _metric_name(search: BaseEstimator) -> str:
    metric = getattr(search, "scoring_", None)
    less = "" if getattr(metric, "greater_is_better", True) else " (less is better)"
    return str(getattr(metric, "name", "score")) + less
