"""TREC runs and judgements: files, forms, and the numbers of trec_eval."""

import gzip
import re
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.testing import assert_array_equal

from axes import every
from pairgram import evaluate_run, get_metric, read_qrels, read_run, write_run

pytrec_eval = pytest.importorskip("pytrec_eval")

MEASURES = {"map", "P", "recall", "recip_rank", "ndcg", "ndcg_cut", "Rprec", "bpref", "success"}
MEASURES |= {"map_cut"}
LEVELS = ([-2, -1, 0, 1], [0, 1], [-1, 0, 1, 2, 3], [0, 0, 0, 5, 12, 40], [0])


def scores(rng, size):
    kinds = (
        rng.normal(size=size),
        np.round(rng.normal(size=size), 1),  # tied
        1 + 1e-9 * rng.normal(size=size),  # tied in float32
        1e39 * rng.integers(0, 2, size),  # infinite in float32
    )
    return kinds[rng.integers(len(kinds))].tolist()


def labels(rng, size):
    levels = LEVELS[rng.integers(len(LEVELS))]
    while True:  # trec_eval does not end where no document of a query is judged
        found = rng.choice(levels, size).tolist()
        if max(found) >= 0:
            return found


def made(seed):
    """Judgements and a run: ties, documents and queries in one alone, many levels."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(rng.integers(1, 12)):
        pool = [f"d{i}" for i in range(rng.integers(0, 150))] + ["é", "Z", "a"]
        for lists, values in ((qrels, labels), (run, scores)):
            if q == 0 or rng.random() < 0.85:
                size = rng.integers(1, len(pool) + 1)
                names = rng.permutation(pool)[:size].tolist()
                lists[f"q{q}"] = dict(zip(names, values(rng, size), strict=True))
    return qrels, run


@every(seed=range(40))
def test_the_numbers_of_trec_eval(seed):
    qrels, run = made(seed)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)
    names = list(theirs["q0"])
    ours = evaluate_run(qrels, run, names, per_query=True, missing="skip")
    assert set(ours["qid"]) == set(theirs)
    for name in names:
        assert_array_equal(ours[name], [theirs[q][name] for q in ours["qid"]], err_msg=name)
    whole = evaluate_run(qrels, run, names)
    for name in names:
        values = [theirs[q][name] for q in theirs]
        np.testing.assert_allclose(whole[name], sum(values) / len(qrels), rtol=1e-13)


def test_by_hand():
    """R = 3: b at rank 1 is not relevant, d is not judged, c is not retrieved."""
    qrels = {"q": {"a": 2, "b": 0, "c": 1, "x": 1, "y": -1}}
    run = {"q": {"b": 3.0, "d": 2.0, "a": 1.0, "x": 0.5}, "other": {"a": 1.0}}
    metrics = ["AP", "P@2", "RR", "nDCG", "recall_4", "rprec", "bpref"]
    found = evaluate_run(qrels, run, metrics)
    ideal = 2 + 1 / np.log2(3) + 1 / np.log2(4)
    expected = [(1 / 3 + 2 / 4) / 3, 0, 1 / 3, (2 / np.log2(4) + 1 / np.log2(5)) / ideal, 2 / 3]
    expected += [1 / 3, 0.0]  # bpref: the only other document stands above both
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-14)
    assert list(found) == metrics


def test_ties_stand_in_descending_order_of_documents():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0 + 1e-9}}
    assert evaluate_run(qrels, run, "mrr")["mrr"] == 1 / 3
    assert evaluate_run(qrels, {"q": {"a": 1.0, "A": 1.0, "B": 1.0}}, "mrr")["mrr"] == 1.0


def test_queries_that_the_run_lacks():
    qrels, run = {"q": {"a": 1}, "p": {"a": 1}, "none": {"a": 0}}, {"q": {"a": 1}, "z": {"a": 1}}
    assert evaluate_run(qrels, run, "map")["map"] == 1 / 3
    assert evaluate_run(qrels, run, "map", missing="skip")["map"] == 1.0
    table = evaluate_run(qrels, run, "map", per_query=True)
    assert table["qid"].tolist() == ["q", "p", "none"]
    assert table["map"].tolist() == [1, 0, 0]
    skip = get_metric("map", empty="skip")
    assert evaluate_run(qrels, run, skip)["map"] == 0.5


def test_conventions_and_thresholds():
    qrels, run = {"q": {"a": 1, "b": 3}}, {"q": {"a": 2.0, "b": 1.0}}
    linear = evaluate_run(qrels, run, "ndcg")["ndcg"]
    assert linear == evaluate_run(qrels, run, "ndcg_linear", convention="default")["ndcg_linear"]
    assert linear > evaluate_run(qrels, run, "ndcg", convention="default")["ndcg"]
    assert evaluate_run(qrels, run, [get_metric("mrr", relevant=2)])["mrr"] == 0.5


# --- forms -------------------------------------------------------------------------------------


def columns(lists, names):
    rows = [(q, d, v) for q, own in lists.items() for d, v in own.items()]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


class Ranx:
    """What a run or judgements of ranx offer."""

    def __init__(self, lists):
        self.lists = lists

    def to_dict(self):
        return self.lists


def test_every_form_gives_the_same(tmp_path):
    qrels, run = made(3)
    expected = evaluate_run(qrels, run, ["map", "ndcg@10"])
    as_run = columns(run, ("qid", "docno", "score"))
    write_run(tmp_path / "run.gz.txt", *as_run.values())
    (tmp_path / "run.gz").write_bytes(gzip.compress((tmp_path / "run.gz.txt").read_bytes()))
    lines = [f"{q}\t0 {d}   {v}\n" for q, own in qrels.items() for d, v in own.items()]
    (tmp_path / "qrels").write_text("# by hand\n" + "\n".join(lines), encoding="utf-8")
    shapes = [
        (tmp_path / "qrels", str(tmp_path / "run.gz")),
        (read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run.gz")),
        (pd.DataFrame(columns(qrels, ("qid", "docno", "label"))), pd.DataFrame(as_run)),
        (
            pl.DataFrame(columns(qrels, ("query_id", "doc_id", "relevance"))),
            pl.DataFrame(columns(run, ("query_id", "doc_id", "score"))).to_arrow(),
        ),
        (pd.DataFrame(columns(qrels, ("q_id", "doc_id", "score"))), Ranx(run)),
        (Ranx(qrels), columns(run, ("q_id", "docid", "score"))),
    ]
    for some_qrels, some_run in shapes:
        assert evaluate_run(some_qrels, some_run, ["map", "ndcg@10"]) == expected


def test_numbers_as_ids():
    frame = pd.DataFrame({"qid": [7, 7], "docno": [1, 2], "score": [1.0, 2.0]})
    assert evaluate_run({"7": {"2": 1}}, frame, "mrr")["mrr"] == 1.0


def test_a_score_nan_is_not_retrieved():
    found = evaluate_run({"q": {"a": 1, "b": 1}}, {"q": {"a": 1.0, "b": np.nan}}, "map")
    assert found == {"map": 0.5}


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["\u2028", "\x85", "\x1c", "\u00a0"])
def test_ids_may_have_blanks_that_are_not_of_ascii(tmp_path, blank):
    path = tmp_path / "run.txt"
    path.write_bytes(f"q1 Q0 d{blank}x 1 2.5 tag\n".encode())
    found = read_run(path)
    assert (found["docno"][0], found["score"][0]) == (f"d{blank}x", 2.5)


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_a_byte_order_mark_is_no_part_of_an_id(tmp_path, read):
    path = tmp_path / "file.txt"
    rest = "1 2.5 tag" if read is read_run else "1"
    path.write_bytes(f"\ufeffq1 Q0 a {rest}\nq1 Q0 b {rest}\n".encode())
    assert read(path)["qid"].tolist() == ["q1", "q1"]


def test_a_row_whose_query_begins_like_a_comment_is_no_comment(tmp_path):
    path = tmp_path / "file.txt"
    comments = "# shoes Q0 d9 1 2.5 tag\n#\n#\tx\n#made by hand\n#a Q0 d 1 high tag\n"
    path.write_text(f"{comments}#shoes Q0 d1 1 2.5 tag\n#\xff\nb Q0 d1 1 1.5 tag\n", "latin-1")
    assert read_run(path)["qid"].tolist() == ["#shoes", "b"]
    path.write_text("# made in 2020\n#shoes 0 d1 1\n#shoes 0 d2 many\nb 0 d1 0\n")
    assert read_qrels(path)["qid"].tolist() == ["#shoes", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_read_one_by_one(tmp_path, seed):
    """Rows among comments, blank lines, and tags with blanks, wherever they stand."""
    rng = np.random.default_rng(seed)
    lines, expected = [], []
    for number in range(rng.integers(1, 60)):
        kind = rng.choice(["row", "row", "row", "tag", "comment", "row like a comment", "blank"])
        query = f"#q{number % 3}" if kind == "row like a comment" else f"q{number % 3}"
        row = f"{query}\tQ0 d{number}  {number} {number / 8} run"
        if kind == "comment":
            lines.append(rng.choice([f"# {row}", "#made by hand", "#q Q0 d 1 high tag"]))
        elif kind == "blank":
            lines.append(" \t")
        else:
            lines.append(row + (" of two words" if kind == "tag" else ""))
            expected.append((query, f"d{number}", number / 8))
    path = tmp_path / "run.txt"
    path.write_text("\n".join([*lines, "end Q0 d 1 1 t"]))
    expected.append(("end", "d", 1.0))
    assert (
        list(zip(*(column.tolist() for column in read_run(path).values()), strict=True)) == expected
    )
    wrong = int(rng.integers(len(lines) + 1))
    for text, message in (("q Q0 d 1 1", "5 fields"), ("q Q0 d 1 x t", "the score 'x'")):
        path.write_text("\n".join([*lines[:wrong], text, *lines[wrong:]]))
        with pytest.raises(ValueError, match=rf"run.txt:{wrong + 1}: found {message}"):
            read_run(path)


def test_a_null_character_ends_no_line(tmp_path):
    path = tmp_path / "run.txt"
    rows = "".join(f"q Q0 d{number} 1 2 tag\n" for number in range(200))
    path.write_text(f"{rows}q Q0 a 1 2\n\0 q Q0 b 1 2 t\n")
    with pytest.raises(ValueError, match=r":201: found 5 fields, want 6"):
        read_run(path)
    path.write_text(f"{rows}q Q0 \0 1 2 t\nq Q0 b 1 2 t\n")
    assert read_run(path)["docno"].tolist()[-2:] == ["\0", "b"]


WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text('#\ufeffBZh\x85\u2028\u00a0\x1c\x00\x7f 1{":', max_size=12),
    st.sampled_from(["", "#", "#shoes", "\ufeffa", "BZh9", "\ud800", 'abcdefgh{"', " a", "a\n"]),
    st.integers(),
)


@settings(max_examples=120, deadline=None)
@example([("#shoes", "d"), ("b", "d")], "t")
@example([("\ufeffa", "d"), ("b", "d")], "t")
@example([("BZh9", "d"), ("b", "d")], "t")
@example([('abcdefgh{"', "d")], "t")
@example([("\x01\x02\x03\x04\x05", "d")], "t")
@example([("q", "\x01\x02\x03\x04\x05")], "t")
@example([("q", "d")], "\x01\x02\x03\x04\x05")
@example([("q", "\ud800")], "t")
@example([(1, "d"), ("1", "e")], "t")
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3, unique=True), WORDS)
def test_a_run_is_read_back_as_it_was_or_refused(rows, tag):
    queries, documents = [row[0] for row in rows], [row[1] for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run")
        try:
            write_run(path, queries, documents, np.arange(len(rows)) / 3, tag=tag)
        except (ValueError, TypeError) as error:
            assert re.match("(qid|docno|tag) must", str(error))
            assert not list(Path(folder).iterdir())
            return
        found = read_run(path)
        assert path.read_bytes().splitlines()[0].endswith(str(tag).encode())
    keys = [(str(q), str(d), k / 3) for k, (q, d) in enumerate(rows)]
    assert sorted(zip(*(column.tolist() for column in found.values()), strict=True)) == sorted(keys)
    assert len({key[0] for key in keys}) == len({(type(q), q) for q in queries})


def test_the_ranks_are_those_of_trec_eval(tmp_path):
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 5, 400)
    docno = np.array([f"d{i}" for i in range(400)])
    score = np.round(rng.normal(size=400), 1) + rng.integers(0, 2, 400) * 1e-9
    score[::50] = np.nan
    write_run(tmp_path / "run", qid, docno, score, tag="mine")
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert len(lines) == 392 and {line[5] for line in lines} == {"mine"}
    assert list(dict.fromkeys(line[0] for line in lines)) == list(dict.fromkeys(map(str, qid)))
    known = dict(zip(docno.tolist(), score.tolist(), strict=True))
    assert all(known[line[2]] == float(line[4]) for line in lines)
    for q in set(qid.tolist()):
        own = [line for line in lines if line[0] == str(q)]
        assert [line[3] for line in own] == [str(i + 1) for i in range(len(own))]
        for first, second in pairwise(own):
            a, b = ((np.float32(line[4]), line[2]) for line in (first, second))
            assert a > b
    run = {q: {} for q in {line[0] for line in lines}}
    for line in lines:
        run[line[0]][line[2]] = float(line[4])
    for rank in (1, 7):  # the document at a rank is the only relevant one
        qrels = {line[0]: {line[2]: 1} for line in lines if line[3] == str(rank)}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
        assert {found["recip_rank"] for found in theirs.values()} == {1 / rank}


@pytest.mark.parametrize("end", ["gz", "xz", "bz2"])
def test_a_run_is_written_as_its_name_says(tmp_path, end):
    path = tmp_path / f"a.run.{end}"
    write_run(path, [1, 1, 2], ["a", "b", "a"], [0.5, 1.5, 2.5])
    assert not path.read_bytes().startswith(b"1 Q0")
    assert read_run(path)["docno"].tolist() == ["b", "a", "a"]


def test_metrics_of_one_name_are_told_apart():
    qrels, run = {"q": {"a": 3, "b": 1, "c": 2}}, {"q": {"a": 1.0, "b": 3.0, "c": 2.0}}
    found = evaluate_run(qrels, run, ["map", "AP", "ndcg_cut_10"])
    assert found["map"] == found["AP"]
