"""Pictures of queries: the differences of two models, and quality after so many queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairgram.plots.axes import BLUE, GREY, ORANGE, Plot, axes_of, require, shortened


def differences(
    comparison: Any,
    systems: tuple[str, str] | None = None,
    metric: str | None = None,
    ax: Any = None,
) -> Plot:
    """Draw how much better a system is than another in every query, in ascending order.

    Parameters
    ----------
    comparison : what `pairgram.compare` or `pairgram.compare_runs` returned
    systems : (str, str) or None
        The names of two of its systems. None stands for those of the first row of its table of
        differences.
    metric : str or None
        The name of one of its metrics. None stands for the first.
    ax : matplotlib.axes.Axes or None

    Returns
    -------
    Plot
        The data are ``qid``, the ids of the queries in the order drawn, and ``difference``, that of
        the first system less the second. Queries in which the metric is not defined are left out.

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
    change = (one - other)[both]
    order = np.argsort(change, kind="stable")
    change, queries = change[order], comparison.qid[both[order]]
    ax = axes_of(ax)
    colours = np.where(change > 0, BLUE, ORANGE)
    ax.bar(np.arange(len(change)), change, width=1.0, color=colours.tolist(), lw=0)
    counts = [(change > 0).sum(), (change < 0).sum(), (change == 0).sum()]
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


def learning_curve(curve: Any, ax: Any = None) -> Plot:
    """Draw the quality of a ranker after so many queries, with its standard error.

    Parameters
    ----------
    curve : what `pairgram.learning_curve` returned
    ax : matplotlib.axes.Axes or None

    Returns
    -------
    Plot
        The data are ``n_queries``, ``mean`` and ``standard_error``.
    """
    require(curve, "n_queries", "what pairgram.learning_curve returned")
    sizes, means, errors = curve.n_queries, curve.mean, curve.standard_error
    ax = axes_of(ax)
    if np.isfinite(errors).any():
        ax.fill_between(sizes, means - errors, means + errors, color=BLUE, alpha=0.2, lw=0)
        ax.plot([], [], color=BLUE, alpha=0.3, lw=8, label="± standard error over folds")
    ax.plot(sizes, means, color=BLUE, marker="o", ms=4, label="mean over folds")
    ax.set(xlabel="queries to learn from", ylabel=curve.metric)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, loc="lower right")
    return Plot(ax, {"n_queries": sizes, "mean": means, "standard_error": errors})
