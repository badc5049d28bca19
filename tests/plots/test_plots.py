"""Pictures draw the numbers that they return, and labels that are drawn do not overlap."""

from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from pairgram import (
    Preferences,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    compare,
    make_ranking,
    plots,
    posterior,
)

matplotlib.use("agg")
X, Y, QID = make_ranking(40, 8, 12, random_state=0)
NAMES = [f"a long name of a column, number {j}" for j in range(12)]
FRAME = pd.DataFrame(X, columns=NAMES)
SEARCH = RankRLSCV().fit(FRAME, Y, qid=QID)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def new_axes():
    return Figure(figsize=(5, 3)).subplots()


def overlaps(ax):
    """Return pairs of tick labels of an axis that lie over each other."""
    ax.figure.canvas.draw()
    found = []
    for axis in (ax.xaxis, ax.yaxis):
        labels = [one for one in axis.get_ticklabels() if one.get_text() and one.get_visible()]
        if any(one.get_rotation() for one in labels):
            continue  # boxes of turned labels overlap where the labels do not
        boxes = [one.get_window_extent() for one in labels]
        found += [(a, b) for a, b in pairwise(boxes) if a.overlaps(b)]
    return found


def check(plot, ax=None):
    """A picture has labels, which do not overlap, and is drawn where it was asked for."""
    assert ax is None or plot.ax is ax
    assert plot.ax.get_xlabel()
    assert overlaps(plot.ax) == []
    return plot.data


def assert_standard_error(data, search, values):
    found = data["standard_error"][data["score"] == search.best_score_][0]
    assert found == pytest.approx(np.nanstd(values) / np.isfinite(values).sum() ** 0.5)


@pytest.mark.parametrize("search", [SEARCH, RankRLSCV(cv=QueryKFold(4)).fit(X, Y, qid=QID)])
def test_scores(search):
    ax = new_axes()
    data = check(plots.scores(search, ax), ax)
    order = np.argsort(search.alphas_)
    np.testing.assert_array_equal(data["alpha"], search.alphas_[order])
    np.testing.assert_array_equal(data["score"], search.scores_[order])
    assert data["chosen"] == [search.alpha_]
    if search is SEARCH:
        values = search.per_query_["ndcg@10"]
    else:
        values = np.array(
            [search.cv_results_[f"split{k}_test_score"][search.best_index_] for k in range(4)]
        )
    assert_standard_error(data, search, values)
    (line,) = [one for one in ax.lines if len(one.get_xdata()) == len(data["alpha"])]
    np.testing.assert_array_equal(line.get_ydata(), data["score"])


def test_scores_along_C():
    search = RankSVMCV(Cs=[0.1, 0.001, 0.01]).fit(X, Y, qid=QID)
    data = check(plots.scores(search))
    assert data["C"].tolist() == [0.001, 0.01, 0.1]
    assert data["chosen"] == [search.C_]
    assert np.isfinite(data["standard_error"]).all()


def test_a_standard_error_that_is_not_known():
    plot = plots.scores(RankRLSCV(scoring="ranking_error").fit(X, Y, qid=QID))
    assert plot.ax.get_ylabel() == "ranking_error (less is better)"
    assert not np.isnan(check(plot)["standard_error"]).any()
    plot = plots.scores(RankRLSCV(cv="leave-pair-out").fit(X[:20], Y[:20]))
    assert np.isnan(check(plot)["standard_error"]).all()


def test_standard_errors_of_comparisons_and_of_queries_with_a_value():
    battles = Preferences(np.arange(60), np.arange(60)[::-1] + 60)
    search = RankRLSCV(cv="leave-comparison-out").fit(X[:120], battles)
    assert len(search.per_query_["accuracy"]) == 60
    assert_standard_error(plots.scores(search).data, search, search.per_query_["accuracy"])
    labels = np.where(np.isin(QID, QID[: len(QID) // 2]), Y, 0)
    search = RankRLSCV(scoring="misranking").fit(X, labels, qid=QID)
    assert_standard_error(plots.scores(search).data, search, search.per_query_["misranking"])


def test_differences():
    systems = {"fitted": SEARCH.predict(FRAME), "first": X[:, 0], "none": np.zeros(len(Y))}
    found = compare(Y, QID, systems, ["ndcg@10", "auc"], n_permutations=100, n_resamples=100)
    plot = plots.differences(found)
    data = check(plot)
    at = np.argsort(found.qid)[np.searchsorted(np.sort(found.qid), data["qid"])]
    values = found.values["ndcg@10"]
    np.testing.assert_array_equal(data["difference"], (values["first"] - values["fitted"])[at])
    assert (np.diff(data["difference"]) >= 0).all()
    assert len(data["qid"]) == np.isfinite(values["first"]).sum()
    words = [one.get_text() for one in plot.ax.get_legend().get_texts()]
    assert f"first better: {(data['difference'] > 0).sum()}" in words
    assert data["difference"].mean() == pytest.approx(found.differences["difference"][0])
    other = check(plots.differences(found, ("none", "first"), "auc"))
    values = found.values["auc"]
    assert other["difference"].mean() == pytest.approx(
        np.nanmean(values["none"]) - np.nanmean(values["first"])
    )
    found = compare(Y, QID, systems, "misranking", n_permutations=100, n_resamples=100)
    plot = plots.differences(found, ("fitted", "first"))
    at = np.flatnonzero(found.differences["system"] == "first")[0]
    words = [one.get_text() for one in plot.ax.get_legend().get_texts()]
    assert f"first better: {found.differences['wins'][at]}" in words


def test_axes_of_ones_own(tmp_path):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.scores(SEARCH, left)
    plots.scores(SEARCH, right)
    figure.savefig(tmp_path / "both.png")
    assert (tmp_path / "both.png").stat().st_size > 10_000
    assert not pyplot.get_fignums()


def test_weights_have_intervals():
    model = RankRLS().fit(FRAME, Y, qid=QID)
    table = model.column_weights()
    variances = posterior(model, FRAME, Y, qid=QID).covariance.diagonal()
    table["deviation"] = np.sqrt(variances)[table["column"]]
    data = check(plots.weights(table, n_largest=5))
    for name in ("name", "weight", "deviation"):
        np.testing.assert_array_equal(data[name], table[name][:5])
    plot = plots.weights(pd.DataFrame(table), new_axes())
    assert [bar.get_width() for bar in plot.ax.patches] == table["weight"].tolist()
    (error,) = plot.ax.collections
    reaches = [half for (low, _), (high, _) in error.get_segments() for half in [(high - low) / 2]]
    np.testing.assert_allclose(reaches, 1.96 * table["deviation"])


def test_ranks_have_names_and_intervals():
    battles = Preferences([0] * 30 + [1] * 30 + [3] * 5, [1] * 30 + [2] * 30 + [2] * 5)
    arena = posterior(RankRLS().fit(np.eye(4), battles), np.eye(4), battles)
    found = arena.rank_ranges(np.eye(4))
    names = ["a long name of a model, and longer still", "b", "c", "d"]
    plot = plots.ranks(found, names, n_first=3)
    data = check(plot)
    assert data["name"].tolist() == [names[row] for row in found["row"][:3]]
    for name in ("score", "deviation", "best", "worst"):
        np.testing.assert_array_equal(data[name], found[name][:3])
    assert check(plots.ranks(found))["name"].tolist() == [f"row {row}" for row in found["row"]]
    column = plots.ranks(found, pd.Series(names, index=[3, 2, 1, 0])).data["name"]
    assert column.tolist() == [names[row] for row in found["row"]]  # as they stand, not by index
    several = arena.rank_ranges(np.eye(4), qid=[0, 0, 1, 1])
    second = {name: column[2:] for name, column in several.items()}
    found = check(plots.ranks(second, names))["name"]
    assert found.tolist() == [names[row] for row in second["row"]]
