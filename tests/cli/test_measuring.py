"""Measuring on the command line: values of every query, comparisons."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from pairgram import (
    RankRLS,
    compare,
    dump_letor,
    evaluate,
    fuse,
    make_ranking,
    read_run,
    write_run,
)
from parts.cli import ran as run


@pytest.fixture
def files(tmp_path, monkeypatch):
    """LETOR data, scores, judgements and runs, of which the last query lacks results."""
    monkeypatch.chdir(tmp_path)
    X, y, qid = make_ranking(12, 8, 4, random_state=0)
    dump_letor("test.txt", X, y, qid=[f"q{q}" for q in qid])
    names = np.array([f"d{row}" for row in range(len(y))])
    for name, score in (("a", X[:, 0]), ("b", X[:, 1]), ("c", X[:, 0] * 2)):
        (tmp_path / f"{name}.scores").write_text("".join(f"{value}\n" for value in score))
        kept = (np.arange(len(y)) % 3 > 0) & (qid < 11)
        write_run(f"{name}.run", qid[kept], names[kept], score[kept])
    lines = (f"{q} 0 {d} {int(v)}\n" for q, d, v in zip(qid, names, y, strict=True))
    (tmp_path / "qrels.txt").write_text("".join(lines))
    RankRLS().fit(X, y, qid=qid).save("model.safetensors")
    return X, y, qid


def test_values_of_every_query(files):
    X, y, qid = files
    pd.DataFrame(X, columns=list("abcd")).assign(y=y, q=qid).to_parquet("test.parquet")
    expected = evaluate(["ndcg@10", "auc"], y, X[:, 0], qid, per_query=True)
    metrics = ("--metric", "ndcg@10", "--metric", "auc", "--per-query")
    report = json.loads(run("evaluate", "test.txt", "--scores", "a.scores", *metrics, "--json")[0])
    assert [row["qid"] for row in report["queries"]] == [f"q{q}" for q in range(12)]
    for name in expected:
        found = [np.nan if row[name] is None else row[name] for row in report["queries"]]
        assert_allclose(found, expected[name], rtol=0)
    assert report["metrics"] == evaluate(["ndcg@10", "auc"], y, X[:, 0], qid)
    text, _ = run("evaluate", "test.txt", "--scores", "a.scores", *metrics)
    lines = [line.split() for line in text.splitlines()]
    assert lines[2] == ["query", "ndcg@10", "auc"]
    assert ["q5", *(f"{expected[name][5]:.4f}" for name in expected)] in lines
    assert lines[-1] == ["mean", *(f"{value:.4f}" for value in report["metrics"].values())]
    model = ("--model", "model.safetensors", *metrics, "--json")
    table = ("--label", "y", "--qid", "q", "--features", "a,b,c,d")
    by_file = json.loads(run("evaluate", "test.txt", *model)[0])
    by_table = json.loads(run("evaluate", "test.parquet", *table, *model)[0])
    assert [row["ndcg@10"] for row in by_table["queries"]] == [
        row["ndcg@10"] for row in by_file["queries"]
    ]
    assert [row["qid"] for row in by_table["queries"]] == list(range(12))
    assert_allclose(by_table["metrics"]["auc"], by_file["metrics"]["auc"], rtol=1e-12)


def test_compare_scores(files):
    X, y, qid = files
    names = ("a.scores", "b.scores", "c.scores")
    scores = dict(zip(names, (X[:, 0], X[:, 1], X[:, 0] * 2), strict=True))
    text, note = run("compare", "test.txt", *names, "--json")
    expected = compare(y, [f"q{q}" for q in qid], scores, ["ndcg@10", "map"]).to_dict()
    assert json.loads(text) == {"file": "test.txt", **expected}
    assert note == ""
    options = ("--baseline", "a.scores", "--metric", "mrr")
    text, _ = run("compare", "test.txt", *names, *options)
    result = compare(y, qid, scores, "mrr", baseline="a.scores")
    lines = text.splitlines()
    assert lines[0] == "12 queries, 95 % intervals"
    heads = [line.split() for line in lines if line.strip().startswith("metric")]
    assert heads == [list(t) for t in (result.means, result.differences)]
    cells = [line.split() for line in lines]
    row = {name: column[0] for name, column in result.differences.items()}
    shown = [f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()]
    assert shown in cells
    assert sum(line.split()[:1] == ["mrr"] for line in lines) == 3 + 2


def assert_run(path, expected):
    found = read_run(path)
    for name, column in expected.run.items():
        np.testing.assert_array_equal(found[name], column)


def test_fuse_runs(files):
    runs = ["a.run", "b.run", "c.run"]
    run("fuse", *runs, "--output", "rrf.run")
    assert_run("rrf.run", fuse(runs))
    second = Path("b.run").read_text()
    text, note = run("fuse", "a.run", "-", "--method", "combmnz", input=second)
    Path("mnz.run").write_text(text)
    assert_run("mnz.run", fuse(runs[:2], method="combmnz"))
    assert note == ""


def test_fuse_by_learnt_weights(files):
    runs = ["a.run", "b.run", "c.run"]
    _, note = run("fuse", *runs, "--qrels", "qrels.txt", "--output", "fused.run")
    expected = fuse(runs, "qrels.txt")
    assert_run("fused.run", expected)
    kept = "weights are learnt" if expected.is_learnt else "the weights are those of rrf"
    gain = f"{expected.gain:+.4f} ± {expected.gain_error:.4f}"
    assert note.startswith(f"pairgram: note: {kept}: ") and gain in note and "11 judged" in note
    lines = Path("qrels.txt").read_text().splitlines(keepends=True)
    Path("few.txt").write_text("".join(line for line in lines if line.startswith("3 ")))
    _, note = run("fuse", *runs, "--qrels", "few.txt", "--output", "rrf.run")
    assert "1 judged query of different labels, which are too few to learn from" in note
    np.testing.assert_array_equal(read_run("rrf.run")["docno"], fuse(runs).run["docno"])
