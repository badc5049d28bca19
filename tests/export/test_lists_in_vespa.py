"""Models of runs in Vespa's global phase, which compares the documents of a list."""

import numpy as np
import pytest

from pairgram import RankRLS, RankRLSCV, export, fuse, make_ranking, scan

NAMES = ["lexical", "closeness(field, embedding)"]


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(60, 20, 2, random_state=0)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[qid < 3, 1] = np.nan  # lists of which a run has no document,
    for query in range(3, 6):  # and one alone
        rows = np.flatnonzero(qid == query)
        X[rows[1:], 0], X[rows[0], 0] = np.nan, 7.0
    order = rng.permutation(len(y))
    return X[order], y[order], qid[order]


@pytest.mark.parametrize("make", [lambda: RankRLSCV(inputs="runs"), lambda: RankRLS(inputs="runs")])
def test_scores_are_those_of_the_model(data, make):
    X, y, qid = data
    model = make().fit(X, y, qid=qid)
    exported = export.to_vespa(model, "fused", features=NAMES)
    parity = export.verify(exported, model, X, qid)
    assert parity.n_queries == 60
    assert parity.n_reordered == parity.n_close == 0
    assert parity.max_error < 1e-13 * parity.spread
    cuts = np.array_split(np.argsort(qid, kind="stable"), 7)  # in the middle of queries
    table = scan(lambda: ((X[rows], y[rows], qid[rows]) for rows in cuts), missing=None)
    found = export.verify(exported, model, table)
    assert found.max_error < 1e-13 * parity.spread
    assert found.n_queries == 60 and found.n_reordered == 0


def test_the_profile(data):
    X, y, qid = data
    model = RankRLS(inputs="runs").fit(X, y, qid=qid)
    model.coef_ = np.array([0.5, 0.0, 0.25, -2.0])
    assert str(export.to_vespa(model, "fused", features=NAMES)) == (
        "rank-profile fused inherits default {\n"
        "    global-phase {\n"
        "        rerank-count: 1000\n"
        "        expression: if(isNan(lexical), 0.0, "
        "0.5 * if(reciprocal_rank(lexical, 60) > 0.01626, 1.0, normalize_linear(lexical)) + "
        "15.0 * reciprocal_rank(lexical, 60)) + "
        "if(isNan(closeness(field, embedding)), 0.0, "
        "(-120.0) * reciprocal_rank(closeness(field, embedding), 60))\n"
        "    }\n"
        "}\n"
    )
    shorter = export.to_vespa(model, "fused", features=NAMES, rerank_count=50, inherits="base")
    assert "inherits base" in shorter and "rerank-count: 50\n" in shorter
    wrong = export.to_vespa(model, "fused", features=NAMES)
    model.coef_ = np.array([0.5, 0.0, 0.25, 2.0])
    assert export.verify(wrong, model, X, qid).n_reordered > 30


def test_what_fuse_learnt_and_what_it_did_not(data):
    X, y, qid = data
    columns = [
        {
            str(query): {f"d{row}": X[row, column] for row in np.flatnonzero(qid == query)}
            for query in range(60)
        }
        for column in range(2)
    ]
    runs = dict(zip(["bm25", "dense"], columns, strict=True))
    for n_judged in (2, 60):
        qrels = {
            str(query): {f"d{row}": int(y[row]) for row in np.flatnonzero(qid == query)}
            for query in range(n_judged)
        }
        model = fuse(runs, qrels).model
        exported = export.to_vespa(model, "fused", features=NAMES)
        parity = export.verify(exported, model, X, qid)
        assert parity.max_error < 1e-13 and parity.n_reordered == 0


def test_ties_differ_as_the_documentation_says(data):
    _, y, qid = data
    model = RankRLS(inputs="runs").fit(np.column_stack([y, qid]), y, qid=qid)
    model.coef_ = np.array([1.0, 0.0, 0.0, 0.0])
    exported = export.to_vespa(model, "fused", features=NAMES)
    # Of documents that all tie one has the scaled score 1 and the others 1/2, in place of 1.
    tied = np.ones((4, 2))
    assert export.verify(exported, model, tied).max_error == pytest.approx(0.5)
    model.coef_ = np.array([0.0, 0.0, 1.0, 0.0])  # ranks 1 to 4 in place of 2.5
    exported = export.to_vespa(model, "fused", features=NAMES)
    mean = 60 / (60 + 2.5)
    error = [60 / 61 - mean, 60 / 62 - mean, 60 / 63 - mean, 60 / 64 - mean]
    wanted = np.abs(error - np.median(error)).max()
    assert export.verify(exported, model, tied).max_error == pytest.approx(wanted)
