"""Pictures of queries: the differences of two models, and quality after so many queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram.plots.axes import BLUE, GREY, ORANGE, Plot, axes_of

__all__ = ["differences", "learning_curve"]


def differences(
    first: ArrayLike,
    second: ArrayLike,
    names: tuple[str, str] = ("first", "second"),
    metric: str = "metric",
    ax: Any = None,
) -> Plot:
    """Draw how much better a model is than another in every query, in ascending order.

    Parameters
    ----------
    first, second : array-like of shape (n_queries,)
        A metric of the same queries, such as ``evaluate(..., per_query=True)`` returns it. Queries
        of which one is NaN are left out.
    names : (str, str)
        What the models are called.
    metric : str
        The name of the metric.
    ax : matplotlib.axes.Axes or None

    Returns
    -------
    Plot
        The data are ``query``, the numbers of the queries in the order drawn, and ``difference``,
        first − second.

    Raises
    ------
    ValueError
        If the numbers of queries differ, or if no query is left.
    """
    one, other = (np.asarray(values, np.float64) for values in (first, second))
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(
            f"first and second must be of the same queries, got shapes {one.shape}, {other.shape}"
        )
    both = np.flatnonzero(np.isfinite(one) & np.isfinite(other))
    if not len(both):
        raise ValueError("first and second must have a query in which both are numbers")
    change = (one - other)[both]
    order = np.argsort(change, kind="stable")
    change, queries = change[order], both[order]
    ax = axes_of(ax)
    colours = np.where(change > 0, BLUE, ORANGE)
    ax.bar(np.arange(len(change)), change, width=1.0, color=colours.tolist(), lw=0)
    counts = [(change > 0).sum(), (change < 0).sum(), (change == 0).sum()]
    ax.axhline(0, color="black", lw=0.6)
    ax.axhline(change.mean(), color=GREY, ls="--", lw=1.2, label=f"mean: {change.mean():+.4f}")
    ax.bar([0], [0], color=BLUE, label=f"{names[0]} better: {counts[0]}")
    ax.bar([0], [0], color=ORANGE, label=f"{names[1]} better: {counts[1]}")
    ax.plot([], [], ls="none", label=f"equal: {counts[2]}")
    ax.set(
        xlabel="queries, by difference",
        ylabel=f"{metric}: {names[0]} − {names[1]}",
        xlim=(-0.5, len(change) - 0.5),
    )
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, loc="upper left")
    return Plot(ax, {"query": queries, "difference": change})


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
    sizes, means, errors = curve.n_queries, curve.mean, curve.standard_error
    ax = axes_of(ax)
    if np.isfinite(errors).all():
        ax.fill_between(sizes, means - errors, means + errors, color=BLUE, alpha=0.2, lw=0)
        ax.plot([], [], color=BLUE, alpha=0.3, lw=8, label="± standard error over folds")
    ax.plot(sizes, means, color=BLUE, marker="o", ms=4, label="mean over folds")
    ax.set(xlabel="queries to learn from", ylabel=curve.metric)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, loc="lower right")
    return Plot(ax, {"n_queries": sizes, "mean": means, "standard_error": errors})
