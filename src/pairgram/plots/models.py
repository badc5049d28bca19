"""Pictures of a model: its weights along alpha, what columns are worth, and its training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairgram.plots.axes import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    Plot,
    axes_of,
    check_count,
    require,
    shortened,
)


def coefficients(search: Any, ax: Any = None, *, n_named: int = 7) -> Plot:
    """Draw the weights of a linear model along alpha, and the chosen alpha.

    The axis is as high as the lines with names. Grey ones may leave it where alpha is small.

    Parameters
    ----------
    search : fitted ranker with `alphas_` and `coef_path_`, such as `RankRLSCV`
    ax : matplotlib.axes.Axes or None
    n_named : int of 0 to 7, default=7
        So many columns, those with the largest weights at the chosen alpha, have colours and names.
        The others are grey.

    Returns
    -------
    Plot
        The data are ``alpha``, ascending, ``coef`` of shape (n_alphas, n_features), and ``named``,
        the numbers of the columns that have names.

    Raises
    ------
    ValueError
        If the model has no path of weights, if they are not those of columns, or if `n_named` is
        not such a number.
    """
    check_count("n_named", n_named, 0, len(COLOURS))
    path = np.asarray(require(search, "coef_path_", "a fitted search with a path"), np.float64)
    tried = np.asarray(require(search, "alphas_", "a fitted search with a path"), np.float64)
    if getattr(search, "form_", "primal") == "dual" or search.feature_map_ is not None:
        raise ValueError("want a linear model of columns, got one with a kernel or a feature map")
    order = np.argsort(tried)
    path, tried = path[order], tried[order]
    chosen = float(search.alpha_)
    sizes = np.abs(path[np.argmin(np.abs(np.log(tried) - np.log(chosen)))])
    named = np.argsort(-sizes, kind="stable")[:n_named]
    ax = axes_of(ax)
    others = np.setdiff1d(np.arange(path.shape[1]), named)
    if len(others):
        ax.plot(tried, path[:, others], color=GREY, alpha=0.35, lw=0.8)
    names = _names(search, path.shape[1])
    for colour, j in zip(COLOURS, named.tolist(), strict=False):
        ax.plot(tried, path[:, j], color=colour, lw=1.6, label=shortened(names[j]))
    ax.axvline(chosen, color=ORANGE, ls="--", lw=1.2, label=f"chosen: {chosen:.3g}")
    ax.axhline(0, color="black", lw=0.6)
    ax.set(xscale="log", xlabel="alpha", ylabel="weight")
    highest = 1.1 * np.abs(path[:, named]).max(initial=0.0)
    if highest > 0:
        ax.set_ylim(-highest, highest)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return Plot(ax, {"alpha": tried, "coef": path, "named": named})


def _names(model: Any, n_features: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != n_features:
        return [f"column {j}" for j in range(n_features)]
    return [str(name) for name in names]


def importances(found: Any, ax: Any = None, *, n_largest: int = 20) -> Plot:
    """Draw bars of the importances of columns, the largest first.

    Parameters
    ----------
    found : what `query_permutation_importance` returned
    ax : matplotlib.axes.Axes or None
    n_largest : int ≥ 1, default=20
        So many columns are drawn.

    Returns
    -------
    Plot
        The data are ``name``, ``mean`` and ``std`` of the bars, and ``column``, their numbers.

    Raises
    ------
    ValueError
        If `found` has no importances, or if `n_largest` is not such a number.
    """
    check_count("n_largest", n_largest, 1)
    require(found, "importances_mean", "what query_permutation_importance returned")
    means = np.asarray(found.importances_mean, np.float64)
    shown = np.argsort(-means, kind="stable")[:n_largest]
    names = found.get("feature_names") or [f"column {j}" for j in range(len(means))]
    labels = np.array([names[j] for j in shown], dtype=object)
    means, deviations = means[shown], np.asarray(found.importances_std, np.float64)[shown]
    ax = axes_of(ax, 6.4, 1.2 + 0.28 * len(shown))
    places = np.arange(len(shown))[::-1]
    ax.barh(places, means, xerr=deviations, color=BLUE, ecolor="black", error_kw={"lw": 1})
    ax.set_yticks(places, [shortened(one) for one in labels])
    ax.axvline(0, color="black", lw=0.6)
    ax.set(xlabel="fall of the metric when the column is shuffled")
    ax.locator_params(axis="x", nbins=4)  # names may leave little room
    ax.margins(y=0.02)
    return Plot(ax, {"name": labels, "mean": means, "std": deviations, "column": shown})


def convergence(models: Any, ax: Any = None) -> Plot:
    """Draw the relative gradient of RankSVM after every Newton step, and its tolerance.

    Parameters
    ----------
    models : fitted `RankSVM`, or dict of str to fitted `RankSVM`
    ax : matplotlib.axes.Axes or None

    Returns
    -------
    Plot
        The data are the relative gradients, by the names of the models.

    Raises
    ------
    ValueError
        If a model has no history.
    """
    if not isinstance(models, Mapping):
        models = {type(models).__name__: models}
    ax = axes_of(ax)
    data: dict[str, Any] = {}
    markers = "osD^vPX"
    for number, (name, model) in enumerate(models.items()):
        history = require(model, "history_", "a RankSVM that was just fitted")
        gradients = np.asarray(history["relative_gradient"], np.float64)
        data[str(name)] = gradients
        ax.plot(
            np.arange(len(gradients)),
            np.where(gradients > 0, gradients, np.nan),
            color=COLOURS[number % len(COLOURS)],
            marker=markers[number % len(markers)],
            ms=5,
            label=shortened(name),
        )
    for tolerance in sorted({float(model.tol) for model in models.values()}):
        ax.axhline(tolerance, color=GREY, ls="--", lw=1.2, label=f"tol = {tolerance:.3g}")
    ax.set(yscale="log", xlabel="Newton step", ylabel="gradient / first gradient")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return Plot(ax, data)
