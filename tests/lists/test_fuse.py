"""`fuse` beside slow references, values by hand, and what no order or scale may change."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm, t

from axes import every
from pairgram import (
    Kernel,
    RankRLS,
    RankRLSCV,
    evaluate_run,
    fuse,
    load_model,
    within_lists,
    write_run,
)

METHODS = ("rrf", "combsum", "combmnz", "borda")
BM25 = {"q1": {"a": 12.0, "b": 9.0, "c": 3.0}, "q2": {"a": 7.0, "d": 5.0}}
DENSE = {"q1": {"b": 0.9, "d": 0.8, "e": 0.8}, "q3": {"x": 0.1}}


def by_query(run):
    lists = {}
    for query, document, score in zip(run["qid"], run["docno"], run["score"], strict=True):
        assert document not in lists.setdefault(query, {})
        lists[query][document] = score
    return lists


def assert_same(found, expected):
    found = by_query(found.run)
    assert found.keys() == expected.keys()
    for query, own in expected.items():
        assert found[query].keys() == own.keys()
        for document, score in own.items():
            assert found[query][document] == pytest.approx(score, rel=1e-12, abs=1e-14)


# --- references --------------------------------------------------------------------------------


def rank_of(own, document):
    """The mean rank of a document in a list; ties share their ranks."""
    above = sum(score > own[document] for score in own.values())
    equal = sum(score == own[document] for score in own.values())
    return above + (equal + 1) / 2


def scaled(own, document):
    low, high = min(own.values()), max(own.values())
    return 1.0 if high == low else (own[document] - low) / (high - low)


def reference(runs, method):
    """Every score by its definition, one document after the other."""
    fused = {}
    for query in dict.fromkeys(query for run in runs for query in run):
        lists = [run.get(query, {}) for run in runs]
        pool = {document for own in lists for document in own}
        fused[query] = {}
        for document in pool:
            having = [own for own in lists if document in own]
            if method == "rrf":
                score = sum(1 / (60 + rank_of(own, document)) for own in having)
            elif method == "borda":
                score = 0.0
                for own in lists:
                    full = {name: own.get(name, -1e9) for name in pool}
                    below = len(pool) - rank_of(full, document)
                    score += below / (len(pool) - 1) if len(pool) > 1 else 0.5
            else:
                score = sum(scaled(own, document) for own in having)
                score *= len(having) if "mnz" in method else 1
            fused[query][document] = score
    return fused


def random_runs(rng, n_runs=4, n_queries=5):
    """Runs with ties, of other depths and scales, each without some queries and documents."""
    runs = []
    for _ in range(n_runs):
        size, offset = rng.lognormal(sigma=2), rng.normal()
        run = {}
        for query in range(n_queries):
            if rng.random() < 0.8:
                names = rng.permutation(12)[: rng.integers(1, 12)]
                values = offset + size * rng.integers(-4, 5, len(names)) / 4
                run[f"q{query}"] = {f"d{n}": v for n, v in zip(names, values.tolist(), strict=True)}
        runs.append(run or {"q0": {"d0": 1.0}})
    return runs


@pytest.mark.parametrize("method", METHODS)
@every(seed=range(12))
def test_methods_are_their_definitions(method, seed):
    runs = random_runs(np.random.default_rng(seed))
    assert_same(fuse(runs, method=method), reference(runs, method))


def test_values_by_hand():
    runs = [BM25, DENSE]
    rrf = {
        "q1": {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62.5, "e": 1 / 62.5},
        "q2": {"a": 1 / 61, "d": 1 / 62},
        "q3": {"x": 1 / 61},
    }
    assert_same(fuse(runs), rrf)  # the method without judgements
    combsum = {"a": 1.0, "b": 6 / 9 + 1, "c": 0.0, "d": 0.0, "e": 0.0}
    rest = {"q2": {"a": 1.0, "d": 0.0}, "q3": {"x": 1.0}}
    assert_same(fuse(runs, method="combsum"), {"q1": combsum, **rest})
    combsum["b"] *= 2
    assert_same(fuse(runs, method="combmnz"), {"q1": combsum, **rest})
    # Of four others: d and e share the last places of the first run, a and c those of the other.
    borda = {"a": 1 + 0.125, "b": 0.75 + 1, "c": 0.5 + 0.125, "d": 0.125 + 0.625, "e": 0.75}
    rest = {"q2": {"a": 1.5, "d": 0.5}, "q3": {"x": 1.0}}
    assert_same(fuse(runs, method="borda"), {"q1": borda, **rest})


def test_the_best_stand_first_and_ties_in_the_order_of_trec_eval():
    run = fuse([BM25, DENSE]).run
    assert run["docno"].tolist() == ["b", "a", "e", "d", "c", "a", "d", "x"]
    assert run["qid"].tolist() == ["q1"] * 5 + ["q2"] * 2 + ["q3"]
    assert run["score"].dtype == np.float64


# --- what may not change the result ------------------------------------------------------------


@settings(max_examples=36, deadline=None)
@given(st.integers(0, 2**32 - 1), st.permutations(range(4)), st.sampled_from(METHODS))
def test_the_order_of_runs_does_not_matter(seed, order, method):
    runs = random_runs(np.random.default_rng(seed))
    first, second = fuse(runs, method=method), fuse([runs[i] for i in order], method=method)
    assert [(q, list(own.items())) for q, own in sorted(by_query(first.run).items())] == [
        (q, list(own.items())) for q, own in sorted(by_query(second.run).items())
    ]


def mapped(run, function):
    return {q: {d: function(score) for d, score in own.items()} for q, own in run.items()}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_ranks_alone_matter_to_rrf_and_borda(seed):
    rng = np.random.default_rng(seed)
    runs = random_runs(rng)
    monotone = [np.arctan, lambda x: x**3, lambda x: 5 * x - 1e3, lambda x: 2.0 ** (x / 100)]
    scale = [lambda x: 8 * x, lambda x: x / 4, lambda x: 2 * x, lambda x: x]
    small = [mapped(run, lambda x: round(x, 6) / 1e3) for run in runs]
    for method in ("rrf", "borda"):
        changed = [mapped(run, f) for run, f in zip(small, monotone, strict=True)]
        assert by_query(fuse(small, method=method).run) == by_query(
            fuse(changed, method=method).run
        )
    for method in METHODS:
        changed = [mapped(run, f) for run, f in zip(runs, scale, strict=True)]
        assert by_query(fuse(runs, method=method).run) == by_query(fuse(changed, method=method).run)


def test_one_query_says_nothing_of_another():
    runs = random_runs(np.random.default_rng(1))
    for method in METHODS:
        whole = by_query(fuse(runs, method=method).run)
        for query in whole:
            alone = [{query: run[query]} if query in run else {} for run in runs]
            if sum(bool(run) for run in alone) == len(runs):
                assert by_query(fuse(alone, method=method).run)[query] == whole[query]


# --- learnt weights ----------------------------------------------------------------------------


def judged_runs(n_queries, seed=0, n_runs=4):
    """Runs of which the first sees relevance well, in its scores, and the others hardly."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, [{} for _ in range(n_runs)]
    for query in range(n_queries):
        labels = (rng.random(40) < 0.2).astype(int)
        labels[:2] = 0, 1
        qrels[f"q{query}"] = {f"d{i}": int(label) for i, label in enumerate(labels)}
        for number, run in enumerate(runs):
            seen = (3.0 if number == 0 else 0.3) * labels + rng.normal(size=40)
            best = np.argsort(-seen)[:25]
            run[f"q{query}"] = {f"d{i}": float(seen[i]) for i in best}
    return qrels, runs


def test_learnt_weights_are_those_of_the_recipe():
    qrels, runs = judged_runs(60)
    train = {query: own for query, own in qrels.items() if int(query[1:]) < 30}
    found = fuse(runs, train)
    assert found.is_learnt and found.n_judged == 30 and found.gain > found.gain_error > 0
    rows = [
        (query, document, qrels[query][document], *(run[query].get(document) for run in runs))
        for query in qrels
        for document in dict.fromkeys(name for run in runs for name in run[query])
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "label", 0, 1, 2, 3])
    scores = frame[[0, 1, 2, 3]].astype(float)
    queries = scores.groupby(frame["qid"])
    low, high = queries.transform("min"), queries.transform("max")
    ranks = 60 / (60 + queries.rank(ascending=False))
    X = np.nan_to_num(np.hstack([(scores - low) / (high - low), ranks]))
    known = frame["qid"].isin(train).to_numpy()
    y, qid = frame["label"].to_numpy(float), frame["qid"].to_numpy()
    rrf = X[:, 4:].sum(axis=1)
    top = bottom = 0.0
    for query in train:
        own = qid == query
        a, b = rrf[own] - rrf[own].mean(), y[own] - y[own].mean()
        top, bottom = top + own.sum() * (a @ b), bottom + own.sum() * (a @ a)
    prior = np.repeat([0.0, top / bottom], 4)
    search = RankRLSCV(prior=prior).fit(X[known], y[known], qid=qid[known])
    np.testing.assert_allclose(found.model.coef_, search.coef_, rtol=1e-6)
    fused = by_query(found.run)
    for query, document, score in zip(qid, frame["docno"], search.predict(X), strict=True):
        assert fused[query][document] == pytest.approx(score, rel=1e-6, abs=1e-9)
    assert found.model.coef_[0] == found.model.coef_[:4].max()
    # On the other queries the good run has won.
    test = {query: own for query, own in qrels.items() if query not in train}
    ndcg = [
        evaluate_run(test, fuse(runs, *args).run, "ndcg@10")["ndcg@10"] for args in ((train,), ())
    ]
    assert ndcg[0] > ndcg[1] + 0.05


@pytest.mark.parametrize("n_judged", [0, 1, 4])
def test_few_judged_queries_leave_rrf(n_judged):
    qrels, runs = judged_runs(12)
    some = {query: own for query, own in qrels.items() if int(query[1:]) < n_judged}
    some["q11"] = {"d5": 0, "d6": 0}  # without different labels, it teaches nothing
    found, rrf = fuse(runs, some), fuse(runs)
    assert not found.is_learnt and found.n_judged == n_judged and found.gain is None
    np.testing.assert_allclose(found.run["score"], rrf.run["score"], rtol=1e-14)
    np.testing.assert_array_equal(found.run["docno"], rrf.run["docno"])
    np.testing.assert_allclose(60 * found.model.coef_[4:], np.ones(4), rtol=1e-14)
    np.testing.assert_allclose(found.model.coef_[:4], np.zeros(4), atol=1e-15)


def test_without_a_gain_in_held_out_queries_the_weights_are_those_of_rrf():
    kept = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        _, runs = judged_runs(8, seed)
        noise = {q: {f"d{i}": int(rng.random() < 0.2) for i in range(40)} for q in runs[0]}
        found = fuse(runs, noise)
        enough = t.ppf(norm.cdf(1), found.n_judged - 1) * found.gain_error
        assert found.n_judged == 8 and found.is_learnt == (found.gain > enough)
        if not found.is_learnt:
            kept += 1
            np.testing.assert_array_equal(found.run["docno"], fuse(runs).run["docno"])
    assert kept >= 12


def test_a_ranker_of_runs_that_is_not_linear_fuses_too():
    qrels, runs = judged_runs(12)
    found = fuse(runs, qrels)
    X = np.array([[run["q0"].get(f"d{i}", np.nan) for run in runs] for i in range(40)])
    X = X[~np.isnan(X).all(axis=1)]
    H = within_lists(X, None, "runs")
    model = RankRLS(feature_map=Kernel("rbf")).fit(H, np.arange(len(X)) % 3)
    fused = fuse(runs, method=model)
    assert fused.model is model and fuse(runs).model is None
    assert len(fused.run["score"]) == len(found.run["score"]) and np.ptp(fused.run["score"]) > 0


def test_a_model_fuses_other_queries_after_it_was_saved(tmp_path):
    qrels, runs = judged_runs(40)
    named = dict(zip(("bm25", "dense", "title", "fresh"), runs, strict=True))
    found = fuse(named, qrels)
    found.model.save(tmp_path / "fusion.safetensors")
    model = load_model(tmp_path / "fusion.safetensors")
    reordered = {name: named[name] for name in ("fresh", "title", "bm25", "dense")}
    again = fuse(reordered, method=model)
    assert again.model is model
    for name in found.run:
        np.testing.assert_array_equal(found.run[name], again.run[name])
    one = {name: {"q7": run["q7"]} for name, run in named.items()}
    assert_same(fuse(one, method=model), {"q7": by_query(found.run)["q7"]})


# --- forms and errors --------------------------------------------------------------------------


def test_every_form_of_a_run_is_taken(tmp_path):
    columns = [(q, d, s) for q, own in BM25.items() for d, s in own.items()]
    frame = pd.DataFrame(columns, columns=["qid", "docno", "score"])
    write_run(tmp_path / "bm25.run", *(frame[name] for name in frame))
    forms = [BM25, frame, dict(frame), tmp_path / "bm25.run"]
    expected = fuse([BM25, DENSE])
    for form in forms:
        for name, column in fuse([form, DENSE]).run.items():
            np.testing.assert_array_equal(column, expected.run[name])
    write_run(tmp_path / "fused.run", *expected.run.values())
    assert evaluate_run({"q1": {"b": 1}}, tmp_path / "fused.run", "mrr") == {"mrr": 1.0}


def test_a_score_nan_is_no_document():
    with_nan = {"q1": {**BM25["q1"], "z": float("nan")}, "q2": BM25["q2"], "q9": {"z": np.nan}}
    for method in METHODS:
        expected, found = fuse([BM25, DENSE], method=method), fuse([with_nan, DENSE], method=method)
        for name, column in expected.run.items():
            np.testing.assert_array_equal(found.run[name], column)


def test_borda_takes_the_lowest_number():
    lowest = -np.finfo(float).max
    runs = [{"q": {"a": lowest, "b": 1.0}}, {"q": {"a": 2.0, "c": 1.0}}]
    fused = fuse(runs, method="borda").run
    assert dict(zip(fused["docno"], fused["score"], strict=True)) == {"a": 1.5, "b": 1.0, "c": 0.5}
