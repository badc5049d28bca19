"""Simulated retrieval runs, the features of fusion, and what fusion makes of them."""

import sys

import numpy as np
import pytest

import pairgram


def test_runs_are_those_of_the_seed(script):
    make_runs = script("data").make_runs
    runs, again, other = make_runs(9, 4, seed=3), make_runs(9, 4, seed=3), make_runs(9, 4, seed=4)
    for array, same in zip(runs, again, strict=True):
        np.testing.assert_array_equal(array, same)
    assert other.scores.shape != runs.scores.shape or (other.y != runs.y).any()
    assert set(runs.y) <= {0, 1, 2, 3}
    retrieved = ~np.isnan(runs.scores)
    assert retrieved.any(axis=1).all()
    for query in range(4):
        n_retrieved = retrieved[runs.qid == query].sum(axis=0)
        assert set(n_retrieved[np.arange(9) % 5 == 2]) <= {0, 50}  # a group of rerankers
        assert n_retrieved[0] in (0, 100)


def test_some_runs_are_better_and_variants_agree(script):
    fusion, make_runs = script("fusion"), script("data").make_runs
    task = fusion.Task.of(make_runs(30, 60, seed=5))
    quality = [fusion.NDCG(task.y, np.ascontiguousarray(x), task.qid) for x in task.reciprocal.T]
    assert max(quality) > 1.1 * np.median(quality) > 1.1 * 1.1 * min(quality)
    assert fusion.NDCG(task.y, task.reciprocal.sum(axis=1), task.qid) > max(quality)
    # The first twelve runs are of twelve groups, and each of the others is a variant of one.
    alike = np.corrcoef(task.reciprocal.T)[12:, :12]
    second, first = np.sort(alike, axis=1)[:, -2:].T
    assert (first > second + 0.02).mean() > 0.8


def test_features_of_a_query(script):
    fusion, data = script("fusion"), script("data")
    nan = np.nan
    scores = np.array([[5.0, nan], [1.0, nan], [5.0, nan], [3.0, -1.0], [nan, 7.0], [2.0, 3.0]])
    task = fusion.Task.of(data.Runs(scores, np.zeros(6), np.array([0, 0, 0, 0, 1, 1])))
    ranks = np.array([[1.5, nan], [4, nan], [1.5, nan], [3, 1], [nan, 1], [1, 2]])
    np.testing.assert_allclose(task.reciprocal, np.nan_to_num(60 / (60 + ranks)), rtol=1e-15)
    # A single retrieved document has no range: its score from 0 to 1 is 0.
    expected = [[1, 0], [0, 0], [1, 0], [0.5, 0], [0, 1], [0, 0]]
    np.testing.assert_allclose(task.minmax, expected, rtol=1e-15)


@pytest.mark.parametrize("spread", [0.3, 1.0])
@pytest.mark.parametrize("n_runs", [6, 30])
def test_learned_weights_do_not_fall_below_rrf(script, n_runs, spread):
    """By more than noise: the means of five seeds, which are not those of the tables."""
    fusion = script("fusion")
    ways = {name: way for name, way in fusion.WAYS.items() if name.endswith("prior RRF")}
    ways |= {fusion.RRF: fusion.WAYS[fusion.RRF]}
    (found,) = fusion.run(n_runs, range(1000, 1005), ways, spread=spread)
    rrf = found.pop(fusion.RRF)[:, 0]
    assert len(found) == 2
    for values in found.values():
        assert (values[:, 0] - rrf).mean() >= -0.005


@pytest.mark.parametrize(("n_runs", "n_seeds"), [(6, 10), (30, 4)])
def test_fuse_with_few_judged_queries_does_not_fall_below_rrf(script, n_runs, n_seeds):
    fusion = script("fusion")
    ways = {name: fusion.WAYS[name] for name in (fusion.RRF, fusion.LEARNT)}
    found = fusion.run(n_runs, range(1000, 1000 + n_seeds), ways, judged=[3, 5, 20])
    leads = [(own[fusion.LEARNT] - own[fusion.RRF])[:, 0] for own in found]
    for lead in leads:
        assert lead.mean() >= -2 * lead.std(ddof=1) / np.sqrt(len(lead))
    assert not leads[0].any() and leads[-1].any()  # of three queries nothing is learnt


def test_the_methods_of_fuse_are_those_of_the_features(script):
    fusion = script("fusion")
    ((train, test),) = fusion.tasks(6, 7, 1.0)
    sums = {
        fusion.RRF: test.reciprocal.sum(axis=1) / 60,
        "CombSUM: sum of scores": test.minmax.sum(axis=1),
        "CombMNZ": test.minmax.sum(axis=1) * (~np.isnan(test.raw)).sum(axis=1),
    }
    for name, expected in sums.items():
        found = fusion.WAYS[name](train)(test)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_files_hold_the_runs(script, tmp_path):
    paths, qrels = script("fusion").write_files(tmp_path, n_runs=5, n_queries=52)
    runs = script("data").make_runs(5, 52, seed=0)
    for path, scores in zip(paths, runs.scores.T, strict=True):
        found, kept = pairgram.read_run(path), ~np.isnan(scores)
        assert len(found["score"]) == kept.sum()
        np.testing.assert_array_equal(scores[found["docno"].astype(int)], found["score"])
    judged = pairgram.read_qrels(qrels)
    assert set(judged["qid"]) == {str(query) for query in range(50)}
    np.testing.assert_array_equal(runs.y[judged["docno"].astype(int)], judged["label"])


def test_tables_of_fusion(script, monkeypatch, capsys):
    words = ["--runs", "6", "--seeds", "2", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["fusion.py", *words])
    fusion = script("fusion")
    fusion.main()
    lines = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    table = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}
    assert set(fusion.WAYS) < set(table)
    for way in fusion.WAYS:
        ndcg, difference, mean_ap, _ = table[way]
        assert 0.2 < float(mean_ap) < float(ndcg) < 0.9
        if way != fusion.RRF:
            expected = float(ndcg) - float(table[fusion.RRF][0])
            assert float(difference.split(" ")[0]) == pytest.approx(expected, abs=1.01e-4)
