"""Pictures of a search: its scores along alpha or C, and over two of its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram.plots.axes import BLUE, ORANGE, Plot, axes_of, require, shortened


def scores(search: Any, ax: Any = None) -> Plot:
    """Draw the held-out score along alpha or C, its standard error, and the choice.

    Parameters
    ----------
    search : fitted ranker with `alphas_` or `Cs_`, such as `RankRLSCV` or `RankSVMCV`
        `settings` draws searches over both.
        The standard error is drawn if the search has splits, or was made with
        ``store_held_out=True``; it is then that of the mean over splits, or over queries.
    ax : matplotlib.axes.Axes or None

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
        raise ValueError("the search has chosen alpha and C: draw settings(search, 'alpha', 'C')")
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


def _standard_errors(search: Any, name: str, tried: NDArray[np.float64]) -> NDArray[np.float64]:
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
    size = len(splits) or (0 if per_query is None else len(per_query["qid"]))
    if size < 2 or None in rows:
        return unknown
    deviations = np.asarray(results["std_test_score"], np.float64)[np.array(rows, np.int64)]
    return np.asarray(deviations / size**0.5)


def _equal(first: Any, second: Any) -> bool:
    return first is second or bool(np.all(first == second))


def _metric_name(search: Any) -> str:
    metric = getattr(search, "scoring_", None)
    less = "" if getattr(metric, "greater_is_better", True) else " (less is better)"
    return str(getattr(metric, "name", "score")) + less


def settings(search: Any, rows: str | None = None, columns: str = "alpha", ax: Any = None) -> Plot:
    """Draw a heat map of the held-out scores over two settings; the best of the others is taken.

    If the columns are numbers, such as alpha, and the others have grids of their own, then each of
    them stands with the score at its nearest number.

    Parameters
    ----------
    search : fitted ranker with `cv_results_`
    rows : str or None
        A setting of ``cv_results_["params"]``, such as "gamma", or "features" of `AutoRanker`. None
        stands for the first other than `columns` of which the search tried several values.
    columns : str, default="alpha"
        Another, such as "inputs" of `AutoRanker`. If they are numbers > 0, their axis is
        logarithmic.
    ax : matplotlib.axes.Axes or None

    Returns
    -------
    Plot
        The data are ``row``, ``column`` and ``score``, of shape (n_cells,).

    Raises
    ------
    ValueError
        If the search has no such setting, or if it tried one value of every other setting.
    """
    results = require(search, "cv_results_", "a fitted search")
    params = results["params"]
    rows = _first_of_several(params, columns) if rows is None else rows
    for name in (rows, columns):
        if name not in params[0]:
            raise ValueError(f"the search must have a setting {name!r}, has {sorted(params[0])}")
    largest = getattr(getattr(search, "scoring_", None), "greater_is_better", True)
    column_values = _different([one[columns] for one in params])
    logarithmic = all(_is_number(value) and value > 0 for value in column_values)
    # Row by row, the scores of each combination of the other settings.
    curves: dict[str, dict[str, list[tuple[Any, float]]]] = {}
    for one, score in zip(params, results["mean_test_score"].tolist(), strict=True):
        others = str({name: _label(v) for name, v in one.items() if name not in (rows, columns)})
        curve = curves.setdefault(_label(one[rows]), {}).setdefault(others, [])
        curve.append((one[columns], score))
    best_of = {
        row: _best_of(list(of_row.values()), max if largest else min, nearest=logarithmic)
        for row, of_row in curves.items()
    }
    row_values = _different([one[rows] for one in params])
    cells = [(row, *cell) for row in row_values for cell in best_of[_label(row)]]
    n_columns = 10 if logarithmic else len(column_values)
    ax = axes_of(ax, 3.0 + 0.55 * max(6, n_columns), 1.6 + 0.4 * max(5, len(row_values)))
    scores = [score for _, _, score in cells]
    names = [_label(value) for value in row_values]
    place_of = {_label(value): place for place, value in enumerate(column_values)}
    for place, name in enumerate(names):
        of_row, values = best_of[name], np.full(n_columns, np.nan)
        if logarithmic:
            edges = _edges(np.array([column for column, _ in of_row]))
            values = np.array([score for _, score in of_row])
        else:
            edges = np.arange(n_columns + 1, dtype=np.float64) - 0.5
            for column, score in of_row:
                values[place_of[_label(column)]] = score
        image = ax.pcolormesh(
            edges,
            [place - 0.5, place + 0.5],
            values[np.newaxis],
            cmap="cividis",
            vmin=min(scores),
            vmax=max(scores),
        )
    ax.figure.colorbar(image, ax=ax, label=_metric_name(search))
    chosen = params[search.best_index_]
    at_column = chosen[columns] if logarithmic else place_of[_label(chosen[columns])]
    star = {"marker": "*", "ms": 16, "mfc": ORANGE, "mec": "white", "ls": "none"}
    ax.plot(at_column, names.index(_label(chosen[rows])), label="chosen", **star)
    ax.set_yticks(range(len(names)), map(shortened, names))
    if logarithmic:
        ax.set_xscale("log")
    else:
        labels = [_label(value) for value in column_values]
        crowded = sum(map(len, labels)) > 6 * len(labels)
        turned = {"rotation": 30, "ha": "right"} if crowded else {}
        ax.set_xticks(range(len(labels)), map(shortened, labels), **turned)
    ax.set(xlabel=columns, ylabel=rows, facecolor="#eeeeee")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    parts = zip(*cells, strict=True)
    row, column, score = (np.array(part, object) for part in parts)
    return Plot(ax, {"row": row, "column": column, "score": score.astype(np.float64)})


def _best_of(
    curves: list[list[tuple[Any, float]]], best: Callable[..., float], nearest: bool
) -> list[tuple[Any, float]]:
    """Return the best of several curves at each column that one of them has.

    Grids of numbers may differ from curve to curve. So, if `nearest`, a curve stands with its
    nearest score wherever its grid reaches.
    """
    columns = _different([column for curve in curves for column, _ in curve])
    scores: dict[str, list[float]] = {_label(column): [] for column in columns}
    for curve in curves:
        if nearest:
            own, of_own = zip(*sorted(curve), strict=True)
            places = np.searchsorted(_edges(np.array(own)), columns) - 1
            inside = zip(columns, places.tolist(), strict=True)
            curve = [(column, of_own[k]) for column, k in inside if 0 <= k < len(own)]
        for column, score in curve:
            scores[_label(column)].append(score)
    return [(column, best(scores[_label(column)])) for column in columns]


def _first_of_several(params: list[dict[str, Any]], columns: str) -> str:
    """Return the first setting that has several values and is not that of the columns."""
    for name in params[0]:
        if name != columns and len(_different([one[name] for one in params])) > 1:
            return name
    raise ValueError(f"rows: the search tried one value of every setting other than {columns!r}")


def _different(values: list[Any]) -> list[Any]:
    """Return the different values, numbers in ascending order."""
    known = list({_label(value): value for value in values}.values())
    return sorted(known, key=float) if all(map(_is_number, known)) else known


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _label(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) else str(value)


def _edges(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of cells around ascending numbers, on a logarithmic axis."""
    places = np.log(at)
    middle = (places[1:] + places[:-1]) / 2
    step = (middle[0] - places[0], places[-1] - middle[-1]) if len(middle) else (0.5, 0.5)
    return np.exp(np.concatenate(([places[0] - step[0]], middle, [places[-1] + step[1]])))
