"""Frames of pandas in another byte order, or sparse, are read as plain dense ones."""

import warnings

import numpy as np
import pandas as pd
import pytest

from axes import every
from pairgram import (
    Kernel,
    Pairgram,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    evaluate,
    fit_many,
    make_ranking,
    scan,
)

X, Y, QID = make_ranking(20, 10, 4, random_state=0)
PLAIN = pd.DataFrame(np.where(X > 0.5, np.round(4 * X), 0), columns=list("abcd"))
SPARSE = PLAIN.astype(pd.SparseDtype("float64", 0))
FRAMES = {
    ">f8": (PLAIN.astype(">f8"), PLAIN),
    ">f4": (PLAIN.astype(">f4"), PLAIN.astype("f4")),
    ">i4": (PLAIN.astype(">i4"), PLAIN),
    "one of >f8": (PLAIN.astype({"b": ">f8"}), PLAIN),
    "sparse": (SPARSE, PLAIN),
    "sparse int": (PLAIN.astype(pd.SparseDtype("int64", 0)), PLAIN),
    "sparse bool": (PLAIN.astype(pd.SparseDtype("bool", False)), PLAIN.astype(bool)),
    "sparse beside dense": (SPARSE.assign(b=PLAIN["b"]), PLAIN),
    "sparse beside >f8": (SPARSE.assign(b=PLAIN["b"].astype(">f8")), PLAIN),
}


def table_of(frame):
    return scan(frame.assign(y=Y, q=QID), label="y", qid="q")


ROADS = {
    "fit": lambda frame: RankRLS().fit(frame, Y, qid=QID).coef_,
    "search": lambda frame: RankRLSCV().fit(frame, Y, qid=QID).coef_,
    "svm": lambda frame: RankSVM(tol=1e-9).fit(frame, Y, qid=QID).coef_,
    "predict": lambda frame: RankRLS().fit(PLAIN, Y, qid=QID).predict(frame),
    "statistics": lambda frame: Pairgram.from_rows(frame, Y, qid=QID).G,
    "map": lambda frame: RandomNodes(3, random_state=0).fit(frame).transform(frame),
    "inputs": lambda frame: RankRLS(feature_map="maxabs").fit(frame, Y, qid=QID).coef_,
    "kernel": lambda frame: (
        RankRLS(feature_map=Kernel("rbf")).fit(frame, Y, qid=QID).predict(frame)
    ),
    "batch": lambda frame: fit_many(RankRLS(), [(frame, Y, QID)]).coef_,
    "table": lambda frame: RankRLS().fit(table_of(frame)).coef_,
    "scores": lambda frame: RankRLS().fit(PLAIN, Y, qid=QID).score(table_of(frame)),
    "labels": lambda frame: RankRLS().fit(PLAIN, frame["b"], qid=frame["a"]).coef_,
    "metric": lambda frame: evaluate("ndcg@3", frame["b"], frame["c"], qid=QID)["ndcg@3"],
}


@pytest.mark.parametrize("road", ROADS)
@every(kind=FRAMES)
def test_as_the_plain_frame(road, kind):
    frame, plain = FRAMES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, wanted = (np.asarray(ROADS[road](one)) for one in (frame, plain))
    scale = np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-5 if "4" in kind else 1e-8) * scale)
