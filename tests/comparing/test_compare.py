"""Comparisons of systems: tests against SciPy and enumeration, intervals, tables."""

import itertools
import json
import math
from math import nan

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from axes import every
from pairgram import (
    compare,
    compare_values,
    evaluate,
    evaluate_run,
    get_metric,
    make_ranking,
    plots,
)
from parts.comparing import (
    bootstrap_means,
    holm,
    percentile_intervals,
    randomization_test,
)


def made(n_queries=40):
    X, y, qid = make_ranking(n_queries, 12, 5, random_state=0)
    return y, qid, {"one": X[:, 0], "two": X[:, :2].sum(axis=1), "three": X[:, 2]}


def enumerated(differences):
    """The fraction of all signs whose sum is as far from 0 as that of the differences."""
    signs = itertools.product([-1, 1], repeat=len(differences))
    total = abs(math.fsum(differences))
    sums = [abs(math.fsum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]
    return sum(size >= total - 1e-12 for size in sums) / len(sums)


# --- tests -------------------------------------------------------------------------------------


@every(decimals=[1, 15], n=[1, 2, 5, 9, 11])
def test_few_queries_are_enumerated(n, decimals):
    rng = np.random.default_rng(n)
    columns = np.round(rng.normal(0.3, 1, (n, 4)), decimals)  # one decimal: many equal sums
    p = randomization_test(columns, 10_000, rng)
    for column in range(4):
        own = columns[:, column]
        assert_allclose(p[column], enumerated(own), rtol=1e-14)
        if n > 1:
            exact = stats.permutation_test(
                (own, np.zeros(n)), lambda a, b, axis: np.mean(a - b, axis=axis),
                permutation_type="samples", n_resamples=np.inf, vectorized=True,
            )  # fmt: skip
            assert_allclose(p[column], exact.pvalue, rtol=1e-14)


def test_differences_of_zero_have_no_sign():
    rng = np.random.default_rng(0)
    few = rng.normal(0.5, 1, 8)
    many = np.concatenate([few, np.zeros(500), np.full(3, nan)])[:, None]
    assert randomization_test(many, 1000, rng)[0] == enumerated(few)
    assert randomization_test(np.zeros((5, 1)), 1000, rng)[0] == 1.0


def test_many_queries_are_drawn():
    rng = np.random.default_rng(1)
    columns = rng.normal([0.0, 0.1, 0.2, 0.3], 1, (200, 4))
    p = randomization_test(columns, 40_000, rng)
    for column in range(4):
        theirs = stats.permutation_test(
            (columns[:, column], np.zeros(200)), lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples", n_resamples=4_000, vectorized=True, random_state=rng,
        ).pvalue  # fmt: skip
        assert abs(p[column] - theirs) < 5 * math.sqrt(max(theirs, 1e-3) / 4_000)
    assert_allclose(p, stats.ttest_1samp(columns, 0).pvalue, atol=0.012)
    far = randomization_test(columns + 5, 999, rng)
    assert_array_equal(far, 1 / 1000)
    # 18 queries are enumerated, and drawn if there are fewer permutations.
    some = rng.normal(0.4, 1, (18, 1))
    exact, drawn = (randomization_test(some, n, rng)[0] for n in (1 << 18, 100_000))
    assert exact != drawn and abs(exact - drawn) < 0.01


def test_holm_by_hand():
    p = np.array([0.01, 0.04, nan, 0.03, 0.005])
    assert_allclose(holm(p), [0.03, 0.06, nan, 0.06, 0.02])
    assert_array_equal(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert_array_equal(holm(np.array([nan])), [nan])


def test_bootstrap():
    rng = np.random.default_rng(3)
    values = rng.exponential(1, (80, 2))
    values[:30, 1] = nan
    low, high = percentile_intervals(bootstrap_means(values, 20_000, rng))
    for column in range(2):
        own = values[:, column][~np.isnan(values[:, column])]
        named = {"n_resamples": 20_000, "confidence_level": 0.95, "method": "percentile"}
        theirs = stats.bootstrap((own,), np.mean, random_state=rng, **named).confidence_interval
        assert_allclose([low[column], high[column]], theirs, atol=0.02)
    for value in (nan, 0.5):
        means = bootstrap_means(np.full((3, 1), value), 10, rng)
        assert_array_equal(percentile_intervals(means), [[value], [value]])


# --- comparisons -------------------------------------------------------------------------------


def test_the_tables():
    y, qid, scores = made()
    result = compare(y, qid, scores, ["ndcg@5", "misranking"])
    for name in scores:
        values = evaluate(["ndcg@5", "misranking"], y, scores[name], qid, per_query=True)
        for metric in values:
            assert_array_equal(result.values[metric][name], values[metric])
    means = result.means
    assert means["metric"].tolist() == ["ndcg@5"] * 3 + ["misranking"] * 3
    assert means["system"].tolist() == ["one", "two", "three"] * 2
    expected = [evaluate("ndcg@5", y, score, qid)["ndcg@5"] for score in scores.values()]
    assert_array_equal(means["mean"][:3], expected)
    assert ((means["low"] < means["mean"]) & (means["mean"] < means["high"])).all()
    rows = result.differences
    pairs = list(zip(rows["system"], rows["against"], strict=True))
    assert pairs == [("two", "one"), ("three", "one"), ("three", "two")] * 2
    for row, (system, against) in enumerate(pairs):
        values = result.values[rows["metric"][row]]
        difference = values[system] - values[against]
        kept = difference[~np.isnan(difference)]
        assert_allclose(rows["difference"][row], kept.mean(), rtol=1e-12)
        assert rows["low"][row] < kept.mean() < rows["high"][row]
        better = kept > 1e-12 if row < 3 else kept < -1e-12  # misranking is a loss
        ties = np.abs(kept) <= 1e-12
        found = [rows[name][row] for name in ("wins", "ties", "losses")]
        assert found == [better.sum(), ties.sum(), (~better & ~ties).sum()]
    for part in (slice(0, 3), slice(3, 6)):
        assert_array_equal(rows["p_holm"][part], holm(rows["p"][part]))


def test_the_baseline_and_the_seed():
    y, qid, scores = made()
    result = compare(y, qid, scores, baseline="two")
    assert result.differences["system"].tolist() == ["one", "three"]
    assert result.differences["against"].tolist() == ["two", "two"]
    again = compare(y, qid, scores, baseline="two")
    other = compare(y, qid, scores, baseline="two", random_state=1)
    assert str(result) == str(again)
    assert result.differences["p"][0] != other.differences["p"][0]
    assert result.means["low"][0] != other.means["low"][0]


def test_undefined_queries_are_left_out():
    y = [1, 0, 0, 0, 1, 0]
    scores = {"a": [2, 1, 1, 2, 1, 2], "b": [1, 2, 2, 1, 2, 1]}
    result = compare(y, ["x", "x", "y", "y", "z", "z"], scores, "auc")
    assert result.means["n_queries"].tolist() == [2, 2]
    rows = result.differences
    assert [rows[name][0] for name in ("wins", "ties", "losses")] == [1, 0, 1]
    assert rows["difference"][0] == 0.0 and rows["p"][0] == 1.0


def test_one_query_has_no_interval():
    scores = {"a": np.array([1.0, 3.0, 2.0]), "b": np.arange(3.0)}
    found = compare(np.arange(3.0), np.zeros(3), scores, "kendall")
    for table in (found.means, found.differences):
        assert np.isnan([table["low"], table["high"]]).all()
    assert found.means["mean"].tolist() == pytest.approx([1 / 3, 1])


def test_equal_systems():
    y, qid, scores = made()
    result = compare(y, qid, {"a": scores["one"], "b": scores["one"] * 2})
    rows = result.differences
    assert rows["ties"][0] == len(set(qid)) and rows["p"][0] == 1.0


def test_text_and_json():
    y, qid, scores = made()
    result = compare(y, qid, scores, ["ndcg@5", "map"])
    read = json.loads(json.dumps(result.to_dict()))
    assert read["n_queries"] == 40
    assert [row["system"] for row in read["means"]] == ["one", "two", "three"] * 2
    assert set(read["differences"][0]) == set(result.differences)
    lines = str(result).splitlines()
    assert lines[0] == "40 queries, 95 % intervals"
    assert lines[1].split() == ["metric", "system", "mean", "low", "high", "n_queries"]
    assert len({len(line) for line in lines[1:8]}) == 1  # aligned
    assert f"{result.means['mean'][0]:.4f}" in lines[2]


def compare_runs(qrels, runs, metrics, **options):
    values = {name: evaluate_run(qrels, run, metrics, per_query=True) for name, run in runs.items()}
    return compare_values(values, **options)


def test_runs():
    y, qid, scores = made(12)
    documents = [f"d{row}" for row in range(len(y))]
    qrels = {"qid": qid, "docno": documents, "label": y.astype(int)}
    runs = {
        name: {"qid": qid, "docno": documents, "score": score} for name, score in scores.items()
    }
    result = compare_runs(qrels, runs, ["map", "ndcg@5", "bpref"], baseline="one")
    same = compare(
        y, qid, scores, [get_metric(name, "trec") for name in ("map", "ndcg@5")], baseline="one"
    )
    for metric in ("map", "ndcg@5"):
        for name in scores:
            assert_array_equal(result.values[metric][name], same.values[metric][name])
    assert_array_equal(result.differences["p"][:4], same.differences["p"])
    some = {**runs["two"], "score": np.where(qid == qid[0], nan, scores["two"])}
    lacking = compare_runs(qrels, {"all": runs["two"], "some": some}, "map")
    assert lacking.values["map"]["some"][0] == 0.0


Y, QID = [1, 0, 0, 1], ["a", "a", "b", "b"]


@every(seed=range(20))
def test_rounding_errors_are_no_differences(seed):
    """One system is a line of the other, so that the metric ties in every query."""
    rng = np.random.default_rng(seed)
    qid, y, score = np.repeat(np.arange(12), 4), rng.integers(0, 3, 48), rng.normal(size=48)
    found = compare(y, qid, {"a": score, "b": 3 * score + 1}, "pearson", n_permutations=100)
    n_defined = found.means["n_queries"][0]
    assert found.differences["ties"].tolist() == [n_defined]
    assert found.differences["low"] == found.differences["high"] == [0.0]
    assert found.differences["p"].tolist() == found.differences["p_holm"].tolist() == [1.0]
    errors = ["pairwise_squared_error", "pairwise_absolute_error"]
    found = compare(1e5 * y, qid, {"a": 1e5 * score, "b": 1e5 * score + 7}, errors)
    assert found.differences["ties"].tolist() == [12, 12]
    assert found.differences["p"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", [str, int, lambda k: (k, "q"), lambda k: np.datetime64(k, "ns")])
def test_ids_of_any_type_are_plain_for_json(name):
    y, qid, scores = made()
    named = [name(k) for k in qid.tolist()]
    of_times = np.array(named) if isinstance(named[0], np.datetime64) else named
    found = compare(y, of_times, scores, n_permutations=100, n_resamples=100)
    assert list(found.qid) == list(dict.fromkeys(named))
    assert json.loads(json.dumps(found.to_dict()))["n_queries"] == len(found.qid)


def test_less_is_better_for_losses_of_runs():
    qrels = {f"q{number}": {"a": 1, "b": 0} for number in range(6)}
    good, bad = ({query: {"a": a, "b": 1.0} for query in qrels} for a in (2.0, 0.0))
    for metric, better in (("misranking", 0.0), ("pairwise_absolute_error", 0.0), ("mrr", 1.0)):
        found = compare_runs(qrels, {"bad": bad, "good": good}, metric).differences
        assert found["wins"].tolist() == [6] and found["losses"].tolist() == [0]
        assert evaluate_run(qrels, good, metric) == {metric: better}


@pytest.mark.parametrize("exponent", [-400, -100, -20, 200, 400])
def test_the_unit_of_labels_decides_nothing(exponent):
    """Such as labels in mol/l, whose squared errors are far below 1."""
    rng, qid = np.random.default_rng(0), np.repeat(np.arange(12), 5)
    metric = "pairwise_squared_error"
    y, *scores = rng.normal(size=(3, 60))
    systems = dict(zip("ab", scores, strict=True))
    expected = compare(y, qid, systems, metric).differences
    unit = 2.0**exponent
    others = {name: values * unit for name, values in systems.items()}
    found = compare(y * unit, qid, others, metric)
    for name in ("wins", "ties", "losses", "p"):
        assert_allclose(found.differences[name], expected[name], rtol=1e-10)
    assert_allclose(found.differences["difference"], expected["difference"] * unit**2, rtol=1e-10)
    pytest.importorskip("matplotlib").use("Agg")
    assert all(bar.get_height() for bar in plots.differences(found).containers[0])
