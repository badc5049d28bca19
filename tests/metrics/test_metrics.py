"""Metrics against loops over documents, hand-computed values, and the tools that define them."""

import math
import pickle
from math import log2, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference_metrics as reference
from axes import drawn, every
from pairgram import MissingQueryWarning, RankRLSCV, fit_many, make_ranking, scan
from pairgram.metrics import CONVENTIONS, Metric, evaluate, get_metric, make_scorer, metric_names
from parts.metrics import FAMILIES
from parts.support import on_threads, real_array
from table_sources import scanned

TOP = tuple(name for name, family in FAMILIES.items() if family.ranks)
ERRORS = ("pairwise_squared_error", "pairwise_absolute_error")
VALUES = ("pearson", *ERRORS)  # of scores, not their order
PAIRS = ("auc", "kendall", "spearman", "misranking", "pairwise_accuracy", "ranking_error", *VALUES)
ALL = tuple(name.replace("@k%", "@30%").replace("@k", "@3") for name in metric_names())


def options_of(metric):
    """The arguments of the reference, with something harmless for what the family lacks."""
    return {
        "k": metric.k,
        "gain": metric.gain or "exp2",
        "discount": metric.discount or "log2",
        "empty": nan if metric.empty in (None, "skip") else metric.empty,
        "relevant": 1 if metric.relevant is None else metric.relevant,
        "divisor": metric.divisor or "relevant",
        "max_grade": metric.max_grade,
        "alpha": metric.alpha,
        "persistence": metric.persistence,
    }


@st.composite
def top_metrics(draw):
    family = draw(st.sampled_from(TOP))
    choices = {
        "gain": st.sampled_from(["exp2", "linear"]),
        "discount": st.sampled_from(["log2", "letor"]),
        "ties": st.sampled_from(["order", "average", "worst"]),
        "empty": st.sampled_from([0.0, 1.0, "skip"]),
        "relevant": st.sampled_from([1.0, 2.0]),
        "divisor": st.sampled_from(["relevant", "cut"]),
        "max_grade": st.sampled_from([4.0, 5.0]),
        "alpha": st.sampled_from([0.5, 20.0, 500.0]),
        "persistence": st.sampled_from([0.5, 0.8, 0.95]),
        "clip": st.just(0.0),  # of propensities, which are tested with clicks
    }
    properties = FAMILIES[family]
    k = None
    if properties.cut == "always" or (properties.cut == "optional" and draw(st.booleans())):
        k = draw(st.integers(1, 8))
    if properties.cut == "percent":
        k = draw(st.sampled_from([0.5, 1.0, 20.0, 50.0, 66.0, 100.0]))
    return Metric(family, k, **{name: draw(choices[name]) for name in properties.options})


@st.composite
def ragged(draw, longest, labels, scores):
    """Queries of 1 to `longest` rows as lists of (label, score)."""
    query = st.lists(st.tuples(labels, scores), min_size=1, max_size=longest)
    return draw(st.lists(query, min_size=1, max_size=4))


def flat(queries):
    rows = [row for query in queries for row in query]
    y, score = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return y, score, np.repeat(np.arange(len(queries)), [*map(len, queries)])


def columns(query):
    return [row[0] for row in query], [row[1] for row in query]


def random_lists(seed=0, n_queries=40, longest=60, n_scores=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    y = rng.choice(5, len(qid), p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
    scores = np.round(rng.normal(size=(n_scores, len(qid))), 1)  # with ties
    return y, scores, qid


# --- definitions -------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(top_metrics(), ragged(5, st.integers(0, 4), st.sampled_from([-1.0, -0.0, 0.0, 0.5, nan])))
def test_top_metrics_follow_their_definition(metric, queries):
    y, score, qid = flat(queries)
    got = metric(y, score, qid, per_query=True)
    expected = [
        reference.top(metric.family, *columns(q), metric.ties, **options_of(metric))
        for q in queries
    ]
    assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(PAIRS),
    ragged(12, st.sampled_from([-1.5, 0.0, 1.0, 2.25]), st.sampled_from([-1.0, -0.0, 0.0, 3.5])),
)
def test_pair_metrics_follow_their_definition(name, queries):
    y, score, qid = flat(queries)
    got = get_metric(name)(y, score, qid, per_query=True)
    expected = [reference.pairs(name, *columns(query)) for query in queries]
    assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["ranking_error", "pearson"]),
    ragged(12, st.floats(-1e3, 1e3), st.floats(-1e3, 1e3) | st.sampled_from([-1.0, 0.0, 2.0])),
    st.sampled_from([0.0, 1e6]),
    st.permutations(range(60)),
)
def test_real_labels_follow_the_definition(name, queries, offset, order):
    queries = [[(round(y, 3) + offset, round(f, 3)) for y, f in query] for query in queries]
    y, score, qid = flat(queries)
    expected = [reference.pairs(name, *columns(query)) for query in queries]
    metric = get_metric(name)
    assert_allclose(metric(y, score, qid, per_query=True), expected, rtol=1e-7, atol=1e-9)
    if not offset:
        tight = metric(y, score, qid, per_query=True)
        assert_allclose(tight, expected, rtol=1e-9, atol=1e-12)
    rows = [row for row in order if row < len(y)]
    seen = list(dict.fromkeys(qid[rows].tolist()))
    mixed = metric(y[rows], score[rows], qid[rows], per_query=True)
    assert_allclose(mixed, np.array(expected)[seen], rtol=1e-7, atol=1e-9)


@drawn(
    10,
    n=[1, 2, 63, 64, 65, 256, 300, 1024, 1025, 4095, 4096],
    kind=["distinct", "tied", "two", "close", "constant", "ascending", "descending"],
)
@example(n=4096, kind="two")  # one digit, which is an odd number of them
@example(n=300, kind="close")  # whose order at the cut is not that of their first bits
def test_every_way_of_ranking_a_list(n, kind):
    rng = np.random.default_rng(n)
    y = rng.integers(0, 4, n).astype(float)
    score = {
        "distinct": rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
        "tied": np.round(rng.normal(size=n), 1),
        "two": 1 + 0.5 * rng.integers(0, 2, n),  # differ in one bit
        "close": 1 + np.finfo(float).eps * rng.permutation(n),  # differ in the lowest bits
        "constant": np.zeros(n),
        "ascending": np.arange(n) - n / 2,
        "descending": n / 2 - np.arange(n),
    }[kind]
    metrics = [f"dcg@{k}" for k in (1, 10, 64, 65, 300)] + ["dcg", "map", "mrr"]
    labels, scores = y.tolist(), score.tolist()  # of which Python's loops are quick
    for ties in ("order", "worst"):
        for name in metrics:  # each alone, since a longer cut beside it would rank otherwise
            metric = get_metric(name, ties=ties)
            expected = reference.top(metric.family, labels, scores, ties, **options_of(metric))
            assert_allclose(metric(y, score), expected, rtol=1e-12)


@every(n=[1, 7, 8, 9, 63, 64, 65, 200], gain=["exp2", "linear"])
def test_gains_are_exact_and_summed_from_the_top(n, gain):
    rng = np.random.default_rng(n)
    whole = rng.integers(0, 63, n).astype(float)
    high = rng.choice([0.0, -0.0, 1.0, 52.0, 53.0, 54.0, 62.0, 63.0, 999.0, 1000.0], n)
    real = np.where(rng.random(n) < 0.5, whole, rng.uniform(0, 70, n))
    for y in (whole, high, real, np.nextafter(whole, 0)):
        score = rng.normal(size=n)
        expected = 0.0
        for rank, label in enumerate(y[np.argsort(-score)]):
            expected += (2.0**label - 1 if gain == "exp2" else label) / math.log2(rank + 2)
        assert get_metric("dcg", gain=gain, ties="order")(y, score) == expected


@every(name=[name for name in ALL if get_metric(name).ties])
def test_averaged_ties_are_the_mean_over_all_orders(name):
    rng = np.random.default_rng(0)
    metric = get_metric(name, ties="average")
    options = options_of(metric)
    for _ in range(20):
        y, score = rng.choice(3, 6), rng.choice(3, 6)
        options["max_grade"] = int(max(y))
        expected = reference.top(metric.family, list(y), list(score), "average", **options)
        assert_allclose(metric(y, score), expected, rtol=1e-12, atol=1e-15)


def test_infinite_scores_are_ranked():
    assert get_metric("mrr")([0, 1, 0], [-math.inf, 1.0, math.inf]) == 0.5
    assert get_metric("mrr")([0, 1, 0], [-math.inf, math.inf, 3.0]) == 1.0


def test_real_labels_and_large_grades():
    y, score = [0.3, 6.25, 33.0, 5.1], [4.0, 3.0, 2.0, 1.0]
    for name in ("ndcg", "ndcg@2", "mean_ndcg", "dcg"):
        metric = get_metric(name)
        expected = reference.top(metric.family, y, score, "order", **options_of(metric))
        assert_allclose(metric(y, score), expected, rtol=1e-14)
    assert_allclose(
        get_metric("dcg")([70.0, 61.0, 62.0], [3, 2, 1]), 2.0**70 + 2**61 / log2(3) + 2**61
    )


def test_perfect_rankings_reach_exactly_one():
    rng = np.random.default_rng(1)
    y = rng.uniform(0, 5, 500)
    score = np.round(y, 1)
    y = score * 0.7
    qid = rng.integers(0, 20, 500)
    for ties in ("order", "average", "worst"):
        for name in ("ndcg@10", "ndcg", "mean_ndcg"):
            assert get_metric(name, ties=ties)(y, score, qid) == 1.0


# --- hand-computed values ----------------------------------------------------------------------


def test_letor_by_hand():
    # Query a, ranked: labels 1, 0, 2, 1. Gains 1, 0, 3, 1; discounts 1, 1, 1/log2(3), 1/2.
    # Query b has no relevant document: NDCG and MAP 0, and it counts in the mean.
    y = [0, 1, 1, 2, 0, 0]
    score = [0.8, 0.9, 0.1, 0.3, 1.0, 2.0]
    qid = ["a", "a", "a", "a", "b", "b"]
    at_3 = (1 + 3 / log2(3)) / (3 + 1 + 1 / log2(3))
    at_4 = (1 + 3 / log2(3) + 1 / 2) / (3 + 1 + 1 / log2(3))
    expected = {
        "ndcg@1": [1 / 3, 0],
        "ndcg@2": [1 / 4, 0],
        "ndcg@3": [at_3, 0],
        "ndcg@10": [at_4, 0],
        "mean_ndcg": [(1 / 3 + 1 / 4 + at_3 + at_4) / 4, 0],
        "map": [(1 / 1 + 2 / 3 + 3 / 4) / 3, 0],
        "p@3": [2 / 3, 0],
        "p@10": [3 / 10, 0],  # padded with irrelevant documents
        "dcg@3": [1 + 3 / log2(3), 0],
    }
    got = evaluate(list(expected), y, score, qid, convention="letor", per_query=True)
    means = evaluate(list(expected), y, score, qid, convention="letor")
    for name, values in expected.items():
        assert_allclose(got[name], values, rtol=1e-15)
        assert_allclose(means[name], np.mean(values), rtol=1e-15)


def test_every_convention_by_hand():
    # Ranked labels 0, 2, 1, and a query without relevant documents.
    y, score, qid = [0, 2, 1, 0, 0], [3, 2, 1, 1, 2], [1, 1, 1, 2, 2]
    ideal = {"exp2": 3 + 1 / log2(3), "linear": 2 + 1 / log2(3)}
    expected = {
        "default": [(3 / log2(3) + 1 / 2) / ideal["exp2"], 0],
        "letor": [(3 + 1 / log2(3)) / (3 + 1), 0],  # ranks 1 and 2 weigh the same
        "trec": [(2 / log2(3) + 1 / 2) / ideal["linear"], 0],
        "lightgbm": [(3 / log2(3) + 1 / 2) / ideal["exp2"], 1],
    }
    assert expected.keys() == CONVENTIONS.keys()
    for convention, values in expected.items():
        got = get_metric("ndcg@10", convention)(y, score, qid, per_query=True)
        assert_allclose(got, values, rtol=1e-15)


def test_the_default_convention():
    metric = get_metric("ndcg@10")
    assert (metric.gain, metric.discount, metric.ties, metric.empty) == ("exp2", "log2", "order", 0)
    assert metric == Metric("ndcg", 10) == get_metric("ndcg@10", "default")
    assert get_metric("map").relevant == 1


def test_treatments_of_ties_by_hand():
    y, score = [0, 3, 1], [1.0, 1.0, 1.0]
    dcg = {ties: get_metric("dcg", ties=ties)(y, score) for ties in ("order", "average", "worst")}
    assert_allclose(dcg["order"], 7 / log2(3) + 1 / 2)
    assert_allclose(dcg["average"], (8 / 3) * (1 + 1 / log2(3) + 1 / 2))
    assert_allclose(dcg["worst"], 1 / log2(3) + 7 / 2)
    # Two relevant of three: AP of (r r -), (r - r), (- r r) is 1, 5/6, 7/12.
    assert_allclose(get_metric("map", ties="average")(y, score), (1 + 5 / 6 + 7 / 12) / 3)
    assert_allclose(get_metric("mrr", ties="average")(y, score), (1 + 1 + 1 / 2) / 3)


def test_empty_queries_by_hand():
    y, score, qid = [0, 0, 1, 0], [1, 2, 2, 1], [1, 1, 2, 2]
    for name in ("ndcg@5", "mean_ndcg", "map", "recall@5", "mrr"):
        for empty, value in ((0, 0.5), (1, 1.0), ("skip", 1.0), (0.25, 0.625)):
            assert get_metric(name, empty=empty)(y, score, qid) == value
    assert get_metric("p@1", "lightgbm")(y, score, qid) == 0.5
    assert math.isnan(get_metric("map", empty="skip")([0, 0], [1, 2]))


def test_err_by_hand():
    # Chapelle et al. 2009: R = (2^y - 1) / 2^max.
    y, score = [1, 4, 0], [3, 2, 1]
    assert_allclose(get_metric("err")(y, score), 1 / 16 + 15 / 16 * 15 / 16 / 2)
    assert_allclose(get_metric("err@1", max_grade=5)(y, score), 1 / 32)


def test_msd_and_m1d_by_hand():
    # Residuals y - f: 1, 0, 3. Ordered pairs, over n^2 = 9.
    y, score = [2.0, 1.0, 5.0], [1.0, 1.0, 2.0]
    assert_allclose(get_metric("pairwise_squared_error")(y, score), 2 * (1 + 4 + 9) / 9)
    assert_allclose(get_metric("pairwise_absolute_error")(y, score), 2 * (1 + 2 + 3) / 9)
    offset = [value + 1e8 for value in score]
    assert_allclose(get_metric("pairwise_squared_error")(y, offset), 2 * (1 + 4 + 9) / 9, rtol=1e-7)
    for name in ERRORS:  # a large value in common does not swallow the labels
        assert get_metric(name)(y, [1e17] * 3) == get_metric(name)(y, [0.0] * 3) > 0


def test_ranking_error_by_hand():
    # Pairs: (3, 1) right; (3, 2.5) wrong, 0.5; (1, 2.5) tied score, 1.5 / 2. Three pairs in all.
    y, score = [3.0, 1.0, 2.5], [0.5, 0.1, 0.9]
    metric = get_metric("ranking_error")
    assert_allclose(metric(y, score), 0.5 / 3)
    assert_allclose(metric(y, [0.5, 0.1, 0.1]), (1.5 / 2) / 3)
    assert_allclose(metric(y, [0, 0, 0]), (2 + 0.5 + 1.5) / 2 / 3)
    assert_allclose(metric(y, [-3, -1, -2.5]), (2 + 0.5 + 1.5) / 3)
    assert metric(y, y) == 0
    assert metric([0.1] * 7, [1, 1, 2, 2, 3, 3, 3]) == 0  # no label differs, but there are pairs
    assert metric([7, 7, 8], [-math.inf, math.inf, 0]) == 1 / 3
    assert math.isnan(metric([1], [1]))
    assert not metric.greater_is_better
    shifted = [label + 1e9 for label in y]
    assert_allclose(metric(shifted, [0, 0, 0]), (2 + 0.5 + 1.5) / 2 / 3, rtol=1e-12)


def test_ranking_error_of_zero_and_one_labels_is_misranking():
    y, scores, qid = random_lists(12)
    y = (y > 0).astype(float)
    sizes, positive = np.bincount(qid), np.bincount(qid, y)
    share = positive * (sizes - positive) / np.maximum(1, sizes * (sizes - 1) / 2)
    misranking = get_metric("misranking")(y, scores[0], qid, per_query=True)
    got = get_metric("ranking_error")(y, scores[0], qid, per_query=True)
    expected = np.where(share > 0, share * misranking, np.where(sizes > 1, 0.0, nan))
    assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1500, 3000])
@pytest.mark.parametrize("decimals", [0, 2, 12])
def test_ranking_error_of_long_lists(n, decimals):
    rng = np.random.default_rng(n)
    y = np.round(rng.normal(5, 1, n), decimals)
    score = np.round(y + rng.normal(size=n), decimals)
    wrong = (y[:, None] > y) & (score[:, None] < score)
    tied = (y[:, None] > y) & (score[:, None] == score)
    expected = ((y[:, None] - y) * (wrong + 0.5 * tied)).sum() / (n * (n - 1) / 2)
    assert_allclose(get_metric("ranking_error")(y, score), expected, rtol=1e-10)


def test_pearson_by_hand():
    metric = get_metric("pearson")
    assert_allclose(metric([1, 2, 3], [1, 2, 4]), 3 / math.sqrt(2 * (14 / 3)))
    assert metric([1, 2], [5, 7]) == 1
    assert metric([1, 2], [7, 5]) == -1
    for y, score in (([0.1] * 3, [1, 2, 3]), ([1, 2, 3], [0.1] * 3), ([1], [1])):
        assert math.isnan(metric(y, score))
    score = np.array([1, 2, 4])
    expected = metric([1, 2, 3], score)
    for same in (score * 1e-300, score * 1e300, score + 1e12):
        assert_allclose(metric([1, 2, 3], same), expected, rtol=1e-12)


def test_lightgbm_map_divides_by_the_cut():
    y, score = [1, 1, 1, 0], [4, 1, 2, 3]
    assert_allclose(get_metric("map@2")(y, score), 1 / 3)
    assert_allclose(get_metric("map@2", "lightgbm")(y, score), 1 / 2)


# --- the tools that define conventions ---------------------------------------------------------


def test_sklearn_area_under_the_curve():
    from sklearn.metrics import roc_auc_score

    y, scores, qid = random_lists(4)
    ours = evaluate([get_metric("auc", relevant=2)], y, scores, qid, per_query=True)["auc"]
    for q in range(40):
        relevant = y[qid == q] >= 2
        for s in range(3):
            if relevant.any() and not relevant.all():
                expected = roc_auc_score(relevant, scores[s, qid == q])
                assert_allclose(ours[s, q], expected, rtol=1e-14)
            else:
                assert math.isnan(ours[s, q])
    whole = get_metric("auc")(y, scores[0])
    assert_allclose(whole, roc_auc_score(y >= 1, scores[0]), rtol=1e-14)
    accuracy = get_metric("pairwise_accuracy")(np.minimum(y, 1), scores[0])
    assert_allclose(whole, accuracy, rtol=1e-14)


# What CalcEnrichment (0.5, 1, 5 and 20 %) and CalcBEDROC (alpha 20, 5 and 160.9) of RDKit 2026.9.1
# gave for n documents with the scores i * step mod n, of which those with i² mod m = 1 are active.
RDKIT = {
    (10, 3, 4): ([2, 2, 2, 1], [0.8808316558689043, 0.6443613025567582, 0.9999998971506049]),
    (100, 37, 9): (
        [0, 0, 1.8181818181818181, 0.9090909090909091],
        [0.3079409580025861, 0.3392226906953637, 0.00799767750791157],
    ),
    (333, 100, 7): (
        [1.7526315789473683, 1.7526315789473683, 1.0309597523219813, 1.0463472113118617],
        [0.3152510794659005, 0.3652658004418733, 0.489743586208495],
    ),
}


@pytest.mark.parametrize("settings", RDKIT)
def test_rdkit(settings):
    n, step, m = settings
    i = np.arange(n)
    y, score = i * i % m == 1, i * step % n
    enrichment, bedroc = RDKIT[settings]
    names = ["ef@0.5%", "ef@1%", "ef@5%", "ef@20%"]
    assert_allclose(list(evaluate(names, y, score).values()), enrichment, rtol=1e-14)
    ours = [get_metric("bedroc", alpha=alpha)(y, score) for alpha in (20, 5, 160.9)]
    assert_allclose(ours, bedroc, rtol=1e-12)


def test_screening_by_hand():
    y, score = np.zeros(700), -np.arange(700.0)
    y[[0, 48, 49, 699]] = 1
    assert get_metric("ef@7%")(y, score) == 2 * 700 / 49 / 4  # 700 * 0.07 is 49, not more
    assert get_metric("ef@100%")(y, score) == 1.0
    for name in ("ef@1%", "bedroc"):
        assert get_metric(name)(np.zeros(5), np.arange(5)) == 0.0
        assert math.isnan(get_metric(name, empty="skip")(np.zeros(5), np.arange(5)))
        assert get_metric(name)(np.ones(5), np.arange(5)) == 1.0
    assert_allclose(get_metric("bedroc")([0, 0, 1], [3, 2, 1]), 0.0, atol=1e-15)
    assert_allclose(get_metric("bedroc")([1, 0, 0], [3, 2, 1]), 1.0)
    # A library of many documents is one list, and no warning asks for ids.
    assert evaluate(["auc", "ef@1%", "bedroc"], [1] + [0] * 1999, -np.arange(2000))["auc"] == 1.0


def test_rank_biased_precision_by_hand():
    assert_allclose(get_metric("rbp")([2, 0, 1], [3, 2, 1]), 0.2 * (1 + 0.64))
    metric = get_metric("rbp@2", persistence=0.5)
    assert_allclose(metric([1, 1, 1], [3, 2, 1]), 0.5 * 1.5)
    assert_allclose(get_metric("rbp@1", ties="average")([1, 0], [1, 1]), 0.1)


def test_sklearn_averages_ties():
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score

    y, scores, qid = random_lists(3)
    sizes = np.bincount(qid)
    y[qid == 5] = 0
    queries = [q for q in range(40) if sizes[q] > 1]
    for k in (None, 1, 3, 10, 100):
        cut = "" if k is None else f"@{k}"
        names = [f"dcg{cut}", f"ndcg{cut}"]
        averaged = [get_metric(name, gain="linear", ties="average") for name in names]
        ours = evaluate(averaged, y, scores[0], qid, per_query=True)
        for name, theirs in zip(names, (dcg_score, ndcg_score), strict=True):
            expected = [theirs([y[qid == q]], [scores[0][qid == q]], k=k) for q in queries]
            assert_allclose(ours[name][queries], expected, rtol=1e-12, atol=1e-15)
    distinct = scores[1] + np.arange(len(y)) * 1e-5
    ours = get_metric("map")(y, distinct, qid, per_query=True)
    for q in range(40):
        if (y[qid == q] >= 1).any():
            expected = average_precision_score(y[qid == q] >= 1, distinct[qid == q])
            assert_allclose(ours[q], expected, rtol=1e-12)


def test_lightgbm_reports_the_same():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(4)
    y, _, qid = random_lists(4)
    y[qid == 7] = 0
    X = rng.normal(size=(len(y), 3)) + 0.3 * y[:, None]
    data = lightgbm.Dataset(X, y, group=np.bincount(qid))
    recorded: dict[str, dict[str, list[float]]] = {}
    few_leaves = {"num_leaves": 4, "verbosity": -1, "num_threads": 1}  # many tied scores
    told = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3, 10, 100]}
    record = {"valid_sets": [data], "callbacks": [lightgbm.record_evaluation(recorded)]}
    booster = lightgbm.train(told | few_leaves, data, num_boost_round=3, **record)
    score = booster.predict(X)
    assert len(np.unique(score)) < len(score)
    theirs = recorded["training"]
    ours = evaluate(list(theirs), y, score, qid, convention="lightgbm")
    assert len(ours) == 8
    for name, values in theirs.items():
        assert_allclose(ours[name], values[-1], rtol=1e-9, err_msg=name)


@every(decimals=[0, 1, 12], n=[50, 3000, 6000])
def test_scipy_correlations(n, decimals):
    from scipy.stats import kendalltau, pearsonr, spearmanr

    rng = np.random.default_rng(n)
    y = np.round(rng.normal(size=n), decimals)
    score = np.round(y + rng.normal(size=n), decimals)
    assert_allclose(get_metric("kendall")(y, score), kendalltau(y, score).statistic, rtol=1e-12)
    assert_allclose(get_metric("spearman")(y, score), spearmanr(y, score).statistic, rtol=1e-12)
    assert_allclose(get_metric("pearson")(y, score), pearsonr(y, score).statistic, rtol=1e-12)


# --- one answer for every way to ask -----------------------------------------------------------


@pytest.mark.parametrize("ties", ["order", "average", "worst"])
def test_threads_and_batches_do_not_change_a_bit(ties):
    y, scores, qid = random_lists(5, n_queries=350, longest=200)
    assert scores.size > 2 * 2**15  # enough for threads
    metrics = [Metric(m.family, m.k, ties=ties) if m.ties else m for m in map(get_metric, ALL)]
    together, *others = on_threads(
        (1, 2, 3, 7), lambda: evaluate(metrics, y, scores, qid, per_query=True)
    )
    for again in others:
        for name in together:
            assert_array_equal(together[name], again[name])
    means = evaluate(metrics, y, scores, qid)
    for metric in metrics:
        for s, score in enumerate(scores):
            alone = metric(y, score, qid, per_query=True)
            assert_array_equal(alone, together[metric.name][s], err_msg=metric.name)
            assert metric(y, score, qid) == means[metric.name][s]


def test_few_long_queries_for_many_scores():
    y, scores, _ = random_lists(6, n_queries=300, longest=200, n_scores=19)
    (together,) = on_threads([3], lambda: evaluate(["ndcg@10", "map"], y, scores, 0 * y))
    for s, score in enumerate(scores):
        assert together["ndcg@10"][s] == get_metric("ndcg@10")(y, score)
        assert together["map"][s] == get_metric("map")(y, score)


@pytest.mark.parametrize("ties", ["average", "worst"])
def test_rows_in_any_order(ties):
    y, scores, qid = random_lists(7)
    metrics = [Metric(m.family, m.k, ties=ties) if m.ties else m for m in map(get_metric, ALL)]
    expected = evaluate(metrics, y, scores, qid, per_query=True)
    rows = np.random.default_rng(0).permutation(len(y))
    _, first = np.unique(qid[rows], return_index=True)
    seen = qid[rows][np.sort(first)]
    got = evaluate(metrics, y[rows], scores[:, rows], qid[rows], per_query=True)
    for name in expected:
        assert_allclose(got[name], expected[name][:, seen], rtol=1e-12, atol=1e-13, err_msg=name)


def test_interleaved_queries_keep_the_order_of_their_rows():
    y, scores, qid = random_lists(8)
    position = np.concatenate([np.arange(size) for size in np.bincount(qid)])
    rows = np.lexsort((qid, position))  # first rows of all queries, then second rows, …
    expected = evaluate(ALL, y, scores, qid, per_query=True)
    got = evaluate(ALL, y[rows], scores[:, rows], qid[rows], per_query=True)
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


def test_inputs_of_other_types():
    y, scores, qid = random_lists(9)
    exact = np.round(scores * 8) / 8
    expected = evaluate(ALL, y, exact, qid)
    variants = [
        (y.astype(np.int64), exact.astype(np.float32)),
        (y.astype(np.float32), np.asfortranarray(exact)),
        (list(y), [list(row) for row in exact]),
    ]
    frozen = y.copy(), exact.copy()
    for array in frozen:
        array.setflags(write=False)
    for labels, score in [*variants, frozen]:
        got = evaluate(ALL, labels, score, [f"q{q}" for q in qid])
        for name in expected:
            assert_array_equal(got[name], expected[name])


def test_unaligned_and_foreign_byte_orders():
    y, scores, qid = random_lists(9)
    expected = evaluate(ALL, y, scores, qid)
    for values in (y, scores):
        buffer = bytearray(values.nbytes + 1)
        unaligned = np.frombuffer(buffer, offset=1).reshape(values.shape)
        unaligned[...] = values
        assert not unaligned.flags.aligned
        for variant in (unaligned, values.astype(">f8"), values.astype("<f8")):
            arguments = (variant, scores) if values is y else (y, variant)
            got = evaluate(ALL, *arguments, qid)
            for name in expected:
                assert_array_equal(got[name], expected[name])
    assert real_array(y, "y") is y


def test_pandas_and_polars():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pandas.Series, polars.Series):
        got = get_metric("ndcg@10")(series([0, 1]), series([1.0, 2.0]), series(["a", "a"]))
        assert got == 1.0


def test_mean_leaves_undefined_queries_out():
    values = np.array([[1.0, nan, 3.0], [nan, nan, nan]])
    assert_array_equal(Metric.mean(values), [2.0, nan])
    assert_array_equal(Metric.mean(values, np.array([1.0, 5.0, 3.0])), [2.5, nan])
    assert math.isnan(Metric.mean(values[0], np.array([0.0, 1.0, 0.0])))
    y, score, qid = [1, 0, 1, 1], [1, 2, 2, 1], [1, 1, 2, 2]
    assert_array_equal(get_metric("misranking")(y, score, qid, per_query=True), [1, nan])
    assert get_metric("misranking")(y, score, qid) == 1.0
    assert math.isnan(get_metric("kendall")([1, 1], [1, 2]))


def test_sample_weight_weighs_queries():
    y, score, qid = [1, 0, 0, 1], [2, 1, 2, 1], [1, 1, 2, 2]
    weights = [1, 5, 1, 1]  # query means 3 and 1
    assert_allclose(get_metric("p@1")(y, score, qid, sample_weight=weights), 3 / 4)
    rows = [0, 2, 1, 3]
    take = [np.asarray(v)[rows] for v in (y, score, qid, [1, 5, 1, 1])]
    assert_allclose(get_metric("p@1")(*take[:3], sample_weight=take[3]), 3 / 4)


# --- errors ------------------------------------------------------------------------------------


def test_more_labels_that_a_metric_cannot_take():
    y = [-2.0, 1.5, 7.0]
    for name in PAIRS:
        assert math.isfinite(get_metric(name)(y, [1, 2, 3]))


def test_err_refuses_endless_ties():
    y, score = np.zeros(70_000), np.zeros(70_000)
    assert get_metric("err@10", ties="average")(y, score) == 0


# --- documents that were not retrieved ---------------------------------------------------------


def test_documents_without_a_score_count_but_have_no_rank():
    y, score = [2, 0, 1, 1], [0.5, 0.9, nan, nan]
    found = evaluate(
        ["map", "recall@10", "p@2", "mrr", "rprec", "hit_rate@2", "ndcg_linear"], y, score
    )
    ideal = 2 + 1 / log2(3) + 1 / log2(4)
    expected = [0.5 / 3, 1 / 3, 0.5, 0.5, 1 / 3, 1.0, 2 / log2(3) / ideal]
    assert_allclose(list(found.values()), expected, rtol=1e-14)
    nothing = evaluate(["map", "ndcg", "mean_ndcg", "err", "p@1", "bedroc"], [1, 0], [nan, nan])
    assert list(nothing.values()) == [0.0] * 6
    assert get_metric("map", empty=0.25)([0, 0], [nan, 1]) == 0.25
    # -inf has a rank, before them.
    assert get_metric("mrr")([1, 1], [nan, -math.inf]) == 1.0


@pytest.mark.parametrize("discount", ["log2", "letor"])
def test_the_mean_ndcg_of_documents_without_a_score_is_that_over_all_ranks(discount):
    rng = np.random.default_rng(0)
    for n_scored in (0, 1, 3, 7):
        y, score = rng.integers(0, 3, 7), rng.normal(size=7)
        y[0], score[rng.permutation(7)[n_scored:]] = 2, nan
        ndcg = [get_metric(f"ndcg@{k}", discount=discount)(y, score) for k in range(1, 8)]
        assert_allclose(get_metric("mean_ndcg", discount=discount)(y, score), np.mean(ndcg))


@pytest.mark.parametrize("n", [50, 300, 5000])
def test_lists_of_any_length_leave_out_what_was_not_retrieved(n):
    rng = np.random.default_rng(n)
    y, score = rng.integers(0, 3, n), np.round(rng.normal(size=n), 2)
    score[rng.random(n) < 0.3] = nan
    score[:3] = nan, -math.inf, math.inf
    kept = ~np.isnan(score)
    missed = np.flatnonzero(~kept & (y >= 1))  # of the others nothing counts
    some = np.concatenate([np.flatnonzero(kept), missed])
    one, few = {"qid": np.zeros(n)}, {"qid": np.zeros(len(some))}
    for ties in ("order", "average", "worst"):
        for name in ("map", "p@10", "recall@100", "mrr", "rbp", "rprec"):
            metric = get_metric(name, ties=ties)
            got = evaluate(metric, y, score, **one)
            assert got == evaluate(metric, y[some], score[some], **few)
            assert got == evaluate(metric, y, np.where(kept, score, -nan), **one)  # the other sign


# --- objects -----------------------------------------------------------------------------------


def test_metrics_are_values():
    metric = get_metric("map@10", "lightgbm", relevant=2)
    assert eval(repr(metric)) == metric
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert hash(metric) == hash(get_metric("map@10", "lightgbm", relevant=2))
    assert metric.greater_is_better
    losses = {name for name in ALL if not get_metric(name).greater_is_better}
    assert losses == {"misranking", "ranking_error", *ERRORS}


class Ranker(BaseEstimator):
    """Scores by one column; remembers whether it saw qid."""

    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y, qid=None):
        self.uses_qid_ = qid is not None
        return self

    def predict(self, X):
        return X[:, self.column]


@pytest.fixture
def ranking_data():
    y, _, qid = random_lists(11)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    X[:, 1] += y
    return X, y, qid


def test_scorer(ranking_data):
    X, y, qid = ranking_data
    model = Ranker(1).fit(X, y, qid=qid)
    scorer = make_scorer("ndcg@10", "letor")
    assert scorer(model, X, y, qid=qid) == get_metric("ndcg@10", "letor")(y, X[:, 1], qid)
    weight = np.random.default_rng(0).uniform(size=len(y))
    expected = get_metric("pairwise_squared_error")(y, X[:, 1], qid, sample_weight=weight)
    loss = make_scorer("pairwise_squared_error")
    assert loss(model, X, y, qid=qid, sample_weight=weight) == -expected
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert copy(model, X, y, qid=qid) == scorer(model, X, y, qid=qid)
    assert repr(scorer).startswith("make_scorer(get_metric('ndcg@10', gain='exp2'")
    with pytest.raises(ValueError, match=r"sklearn.set_config\(enable_metadata_routing=True\)"):
        scorer(model, X, y)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        scorer(make_pipeline(StandardScaler(), model), X, y)
    one_query = Ranker(1).fit(X, y)
    assert scorer(one_query, X, y) == get_metric("ndcg@10", "letor")(y, X[:, 1])


def test_a_scorer_takes_no_nan(ranking_data):
    class Broken(Ridge):
        def predict(self, X):
            return super().predict(X) * nan

    X, y, qid = ranking_data
    with pytest.raises(ValueError, match=r"Broken\.predict returned NaN, want numbers"):
        make_scorer("map")(Broken().fit(X, y), X, y, qid=qid)
    with pytest.raises(ValueError, match=r"Broken\.predict returned NaN, want numbers"):
        evaluate("map", scanned((X, y, qid)), Broken().fit(X, y))


def test_grid_search_routes_qid(ranking_data, routing):
    X, y, qid = ranking_data
    search = GridSearchCV(
        Ranker(), {"column": [0, 1]}, scoring=make_scorer("ndcg@10"), cv=GroupKFold(3)
    )
    search.fit(X, y, qid=qid, groups=qid)
    assert search.best_params_ == {"column": 1}
    assert search.best_estimator_.uses_qid_
    _, held_out = next(iter(GroupKFold(3).split(X, y, qid)))
    expected = get_metric("ndcg@10")(y[held_out], X[held_out, 1], qid[held_out])
    assert search.cv_results_["split0_test_score"][1] == expected
    assert search.score(X, y, qid=qid) == get_metric("ndcg@10")(y, X[:, 1], qid)


def test_several_scorers_and_pipelines(ranking_data, routing):
    X, y, qid = ranking_data
    scoring = {"map": make_scorer("map"), "loss": make_scorer("misranking")}
    named = {"scoring": scoring, "cv": GroupKFold(3), "params": {"qid": qid, "groups": qid}}
    result = cross_validate(make_pipeline(StandardScaler(), Ranker(1)), X, y, **named)
    assert (result["test_map"] > 0).all()
    assert (result["test_loss"] < 0).all()


def test_score_request_can_be_changed(ranking_data, routing):
    X, y, qid = ranking_data
    scorer = make_scorer("map").set_score_request(qid="query", sample_weight=False)
    named = {"scoring": scorer, "cv": GroupKFold(3), "params": {"query": qid, "groups": qid}}
    model = Ranker(1).set_fit_request(qid="query")
    result = cross_validate(model, X, y, **named, error_score="raise")
    assert len(result["test_score"]) == 3


def test_cross_validation_without_routing_says_what_to_do(ranking_data):
    X, y, qid = ranking_data
    message = "enable_metadata_routing"
    with pytest.warns(MissingQueryWarning, match=message), pytest.raises(ValueError, match=message):
        cross_validate(
            Ranker(1), X, y, scoring=make_scorer("map"), params={"qid": qid}, error_score="raise"
        )


@pytest.mark.parametrize("name", ["auc", "bedroc", "ef@10%", "hit_rate@3", "ndcg_linear@5", "rbp"])
def test_metrics_choose_models_and_judge_tables(name):
    X, y, qid = make_ranking(30, 15, 4, random_state=0)
    model = RankRLSCV(scoring=name).fit(X, y, qid=qid)
    assert_allclose(evaluate(name, y, model.held_out_, qid)[name], model.best_score_, rtol=1e-12)
    assert_allclose(
        make_scorer(name)(model, X, y, qid=qid), get_metric(name)(y, model.predict(X), qid)
    )
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, qid=qid)
    table = scan(frame, label="y", qid="qid")
    model = RankRLSCV().fit(table)
    expected = evaluate(name, y, model.predict(frame[list("abcd")]), qid)[name]
    assert_allclose(evaluate(name, table, model)[name], expected, rtol=1e-9)


@every(
    y=[np.linspace(5.5, 9.5, 20), np.arange(20) % 5 + 1.0],
    name=["bedroc", "ef@5%", "map", "mrr", "p@10", "auc"],
)
def test_labels_that_differ_and_all_count_as_relevant_warn(name, y):
    scores = np.arange(20.0)
    with pytest.warns(UserWarning, match=f"{name}: every label is at least relevant=1"):
        evaluate(name, y, scores)
    evaluate(get_metric(name, relevant=y.mean()), y, scores)
    evaluate(name, np.ones(20), scores)


def test_labels_of_all_rows_decide_whether_a_metric_warns():
    y = np.concatenate([np.arange(30) % 3 + 1.0, np.arange(90) % 3])
    frame = pd.DataFrame({"a": np.arange(120.0) % 7, "y": y, "qid": np.repeat(range(4), 30)})
    higher = frame.assign(y=y + 1)

    def in_parts(frame):
        return scan(lambda: iter([frame[:30], frame[30:]]), label="y", qid="qid")

    model = RankRLSCV(scoring="map").fit(frame[["a"]], y, qid=frame["qid"])
    assert evaluate("map", in_parts(frame), model)["map"] > 0
    for call in (
        lambda: evaluate("map", in_parts(higher), model),
        lambda: RankRLSCV(scoring="map").fit(frame[["a"]], y + 1, qid=frame["qid"]),
        lambda: RankRLSCV(scoring="map").fit(in_parts(higher)),
    ):
        with pytest.warns(UserWarning, match="map: every label is at least relevant=1") as found:
            call()
        assert len(found) == 1
    fit_many(RankRLSCV(scoring="map"), [(frame[["a"]], y + 1, frame["qid"])] * 3)


def test_bedroc_of_a_small_alpha_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 40), rng.normal(size=40)
    expected = evaluate("auc", y, score)["auc"]
    for alpha in (1e-20, 1e-16, 1e-12, 1e-8):
        assert_allclose(get_metric("bedroc", alpha=alpha)(y, score), expected, atol=1e-7)
