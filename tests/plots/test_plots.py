"""Pictures draw the numbers of models, and labels that are drawn do not overlap."""

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


def check(found, ax=None):
    """A picture has labels, which do not overlap, and is drawn where it was asked for."""
    assert ax is None or found is ax
    assert found.get_xlabel()
    assert overlaps(found) == []
    return found


def line_of(ax):
    """Return the numbers of the line of scores, and the chosen one."""
    lines = {line.get_label().split(":")[0]: line for line in ax.lines}
    return *lines["held-out mean"].get_data(), lines["chosen"].get_xdata()[0]


def errors_of(ax):
    """Return half the widths of the band around the line; None if there is none."""
    if not ax.collections:
        return None
    corners = ax.collections[0].get_paths()[0].vertices
    tried = line_of(ax)[0]
    return np.array([np.ptp(corners[corners[:, 0] == one, 1]) / 2 for one in tried])


def assert_standard_error(ax, search, values):
    found = errors_of(ax)[line_of(ax)[1] == search.best_score_][0]
    assert found == pytest.approx(np.nanstd(values) / np.isfinite(values).sum() ** 0.5)


@pytest.mark.parametrize("search", [SEARCH, RankRLSCV(cv=QueryKFold(4)).fit(X, Y, qid=QID)])
def test_scores(search):
    ax = new_axes()
    check(plots.scores(search, ax), ax)
    order = np.argsort(search.alphas_)
    alphas, scores, chosen = line_of(ax)
    np.testing.assert_array_equal(alphas, search.alphas_[order])
    np.testing.assert_array_equal(scores, search.scores_[order])
    assert chosen == search.alpha_
    if search is SEARCH:
        values = search.per_query_["ndcg@10"]
    else:
        values = np.array(
            [search.cv_results_[f"split{k}_test_score"][search.best_index_] for k in range(4)]
        )
    assert_standard_error(ax, search, values)


def test_scores_of_the_settings_that_were_chosen():
    search = RankRLSCV(feature_map=["standard", None]).fit(X, Y, qid=QID)
    assert_standard_error(plots.scores(search), search, search.per_query_["ndcg@10"])


def test_scores_along_C():
    search = RankSVMCV(Cs=[0.1, 0.001, 0.01]).fit(X, Y, qid=QID)
    ax = check(plots.scores(search))
    tried, _, chosen = line_of(ax)
    assert tried.tolist() == [0.001, 0.01, 0.1]
    assert chosen == search.C_
    assert np.isfinite(errors_of(ax)).all()


def test_a_standard_error_that_is_not_known():
    ax = plots.scores(RankRLSCV(scoring="ranking_error").fit(X, Y, qid=QID))
    assert ax.get_ylabel() == "ranking_error (less is better)"
    assert np.isfinite(errors_of(check(ax))).all()
    ax = plots.scores(RankRLSCV(cv="leave-pair-out").fit(X[:20], Y[:20]))
    assert errors_of(check(ax)) is None


def test_standard_errors_of_comparisons_and_of_queries_with_a_value():
    battles = Preferences(np.arange(60), np.arange(60)[::-1] + 60)
    search = RankRLSCV(cv="leave-comparison-out").fit(X[:120], battles)
    assert len(search.per_query_["accuracy"]) == 60
    assert_standard_error(plots.scores(search), search, search.per_query_["accuracy"])
    labels = np.where(np.isin(QID, QID[: len(QID) // 2]), Y, 0)
    search = RankRLSCV(scoring="misranking").fit(X, labels, qid=QID)
    assert_standard_error(plots.scores(search), search, search.per_query_["misranking"])


def bars_of(ax):
    """Return the heights of the bars, without those of the legend."""
    return np.array([bar.get_height() for bar in ax.containers[0]])


def test_differences():
    systems = {"fitted": SEARCH.predict(FRAME), "first": X[:, 0], "none": np.zeros(len(Y))}
    found = compare(Y, QID, systems, ["ndcg@10", "auc"], n_permutations=100, n_resamples=100)
    ax = check(plots.differences(found))
    change = bars_of(ax)
    values = found.values["ndcg@10"]
    expected = values["first"] - values["fitted"]
    np.testing.assert_array_equal(change, np.sort(expected[np.isfinite(expected)]))
    words = [one.get_text() for one in ax.get_legend().get_texts()]
    assert f"first better: {(change > 0).sum()}" in words
    assert change.mean() == pytest.approx(found.differences["difference"][0])
    other = bars_of(check(plots.differences(found, ("none", "first"), "auc")))
    values = found.values["auc"]
    assert other.mean() == pytest.approx(np.nanmean(values["none"]) - np.nanmean(values["first"]))
    found = compare(Y, QID, systems, "misranking", n_permutations=100, n_resamples=100)
    ax = plots.differences(found, ("fitted", "first"))
    at = np.flatnonzero(found.differences["system"] == "first")[0]
    words = [one.get_text() for one in ax.get_legend().get_texts()]
    assert f"first better: {found.differences['wins'][at]}" in words


def test_axes_of_ones_own(tmp_path):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.scores(SEARCH, left)
    plots.scores(SEARCH, right)
    figure.savefig(tmp_path / "both.png")
    assert (tmp_path / "both.png").stat().st_size > 10_000
    assert not pyplot.get_fignums()


def labels_of(ax):
    """Return the labels of the rows, the upper ones first."""
    return [one.get_text() for one in ax.get_yticklabels()]


def test_ranks_have_names_and_intervals():
    battles = Preferences([0] * 30 + [1] * 30 + [3] * 5, [1] * 30 + [2] * 30 + [2] * 5)
    arena = posterior(RankRLS().fit(np.eye(4), battles), np.eye(4), battles)
    found = arena.rank_ranges(np.eye(4))
    names = ["a long name of a model, and longer still", "b", "c", "d"]
    ax = check(plots.ranks({name: column[:3] for name, column in found.items()}, names))
    assert labels_of(ax) == [names[row][:35] + "…" * int(row == 0) for row in found["row"][:3]]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), found["score"][:3])
    reaches = [np.ptp(ends[:, 0]) / 2 for ends in ax.collections[0].get_segments()]
    np.testing.assert_allclose(reaches, 1.96 * found["deviation"][:3])
    assert labels_of(check(plots.ranks(found))) == [f"row {row}" for row in found["row"]]
    ax = plots.ranks(pd.DataFrame(found), pd.Series(list("abcd"), index=[3, 2, 1, 0]))
    assert labels_of(ax) == ["abcd"[row] for row in found["row"]]  # as they stand, not by index
    several = arena.rank_ranges(np.eye(4), qid=[0, 0, 1, 1])
    second = {name: column[2:] for name, column in several.items()}
    assert labels_of(check(plots.ranks(second, names))) == [names[row] for row in second["row"]]
