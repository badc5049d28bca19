"""A scorer gives the bits of `predict`, to any number of threads, and does not change.

It goes to other processes as a pickle, and scores soon after its model was read from a file.
"""

import asyncio
import pickle
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import forks
import pairgram as pg
from axes import every
from table_sources import scanned

X, y, qid = pg.make_ranking(40, 10, 6, random_state=0)
MODELS = [
    pg.RankRLS(),
    pg.RankRLS(feature_map="standard"),
    pg.RankRLS(feature_map="raw+quantile"),
    pg.RankRLS(feature_map=pg.RandomNodes(20, activation="linear", random_state=0)),
    pg.RankRLS(feature_map=pg.RandomNodes(20, activation="gaussian", random_state=0)),
    pg.RankRLS(feature_map=make_pipeline(pg.MinMax(), pg.RandomFourier(20, random_state=0))),
    pg.RankRLS(feature_map=pg.Nystroem(n_components=20, random_state=0)),
    pg.RankRLS(feature_map=pg.Kernel("rbf", gamma=0.1)),
    pg.RankSVM(C=0.1),
    pg.ELMRank(n_nodes=10, random_state=0),
]


@every(model=MODELS, dtype=[np.float64, np.float32])
def test_the_bits_of_predict_in_every_thread(model, dtype):
    rows = X.astype(dtype)
    model.fit(rows, y, qid=qid)
    scorer, expected = model.row_scorer(dtype), model.predict(rows)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: scorer(rows), range(64)):
            np.testing.assert_array_equal(scores.astype(dtype), expected)
    model.fit(rows, -y, qid=qid)
    np.testing.assert_array_equal(scorer(rows).astype(dtype), expected)


LOADS = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    X, scorers = pickle.load(file)
found = [scorer(X.astype(scorer.dtype)) for scorer in scorers]
with open(sys.argv[2], "wb") as file:
    pickle.dump(found, file)
"""


def test_a_pickle_gives_the_same_bits_in_another_process(tmp_path):
    holes = X.copy()
    holes[::7, 2] = np.nan
    fitted = [model.fit(X, y, qid=qid) for model in MODELS]
    table = scanned((holes, y, qid))
    fitted.append(pg.RankRLS(feature_map=pg.Fill()).fit(table))
    drawn = pg.RankRLS().fit(X, y, qid=qid)
    drawn.coef_ = pg.posterior(drawn, X, y, qid=qid).draw(1, random_state=1)[0]
    drawn = drawn.row_scorer()
    scorers = [model.row_scorer(dtype) for model in fitted for dtype in ("float64", "float32")]
    scorers.append(drawn)
    told = pickle.dumps((X, scorers))
    expected = [one(X.astype(one.dtype)) for one in scorers]
    for model in fitted[:-1]:  # a scorer is frozen, and so is its pickle
        model.fit(X, -y, qid=qid)
    assert pickle.dumps((X, scorers)) == told
    (tmp_path / "told").write_bytes(told)
    forks.start(LOADS, tmp_path / "told", tmp_path / "found").join()
    found = pickle.loads((tmp_path / "found").read_bytes())
    for scores, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(scores, wanted)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_loaded_model_scores_soon(model, tmp_path):
    model.fit(X, y, qid=qid).save(tmp_path / "m")
    seconds = []
    for _ in range(5):  # other programs may keep the processors busy
        loaded = pg.load_model(tmp_path / "m")
        start = time.perf_counter()
        loaded.row_scorer()(X[:1])
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.01


def test_missing_values():
    holes = X.copy()
    holes[::7, 2] = np.nan
    model = pg.RankRLS(feature_map=pg.Fill()).fit(scanned((holes, y, qid)))
    np.testing.assert_array_equal(model.row_scorer()(holes), model.predict(holes))


@pytest.mark.parametrize("inputs", [None, "quantile"])
@pytest.mark.parametrize("missing", [None, "mean"])
def test_rows_that_a_scorer_does_not_take(inputs, missing):
    pandas = pytest.importorskip("pandas")
    holes = X.copy()
    if missing:
        holes[::7, 2] = np.nan
    blocks = scanned((holes, y, qid))
    model = (
        pg.RankRLS(feature_map=missing and pg.Fill(missing)).fit(blocks)
        if inputs is None
        else pg.RankRLS(feature_map=inputs).fit(X, y, qid=qid)
    )
    scorer = model.row_scorer()
    for rows, error, match in (
        (
            X.astype(np.float32),
            TypeError,
            r"got float32: take row_scorer\(dtype='float32'\), or convert",
        ),
        (X.astype(int), TypeError, "got int64: take predict, or convert"),
        (X.tolist(), TypeError, "got list"),
        (pandas.DataFrame(X), TypeError, "got DataFrame"),
        (X[:, :5].copy(), ValueError, r"\(n, 6\), got shape \(400, 5\)"),
        (X[:, :1].copy(), ValueError, r"got shape \(400, 1\)"),
        (X[0], ValueError, r"got shape \(6,\)"),
    ):
        with pytest.raises(error, match=match):
            scorer(rows)
    if missing is None or inputs:
        for rows in (np.asfortranarray(X), X[::2]):
            with pytest.raises(ValueError, match="ascontiguousarray"):
                scorer(rows)
    np.testing.assert_array_equal(scorer(X), model.predict(X))


def test_fastapi_as_the_page_has_it(tmp_path, monkeypatch):
    fastapi = pytest.importorskip("fastapi")
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    (code,) = re.findall(r"\n## FastAPI\n.*?^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    model = pg.RankRLS().fit(X, y, qid=qid)
    model.save(tmp_path / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    rows = X[:100].astype(np.float32)
    expected = model.row_scorer("float32")(rows)

    async def receive():
        return {"type": "http.request", "body": rows.tobytes()}

    request = fastapi.Request({"type": "http", "method": "POST", "headers": []}, receive)
    response = asyncio.run(names["of_bytes"](request))
    np.testing.assert_array_equal(np.frombuffer(response.body), expected)
    assert names["of_json"](rows.tolist()) == expected.tolist()

    def asked(path, body):
        """Return the status and the answer of the application itself."""
        sent = []

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        asyncio.run(names["app"](scope, receive, send))
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])

    assert asked("/bytes", rows.tobytes()) == (200, expected.tobytes())
    assert asked("/bytes", b"") == (200, b"")
    for path, body in (
        ("/bytes", rows.tobytes()[:-4]),
        ("/json", b"[]"),
        ("/json", b"[[1, 2]]"),
        ("/json", b"[[1, 2, 3, 4, 5, 6], [1]]"),
    ):
        status, answer = asked(path, body)
        assert (path, body[:9], status) == (path, body[:9], 422) and b"detail" in answer
