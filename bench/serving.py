"""How soon and how fast a scorer answers: in a process, behind FastAPI, in Spark and in Flink.

    python bench/serving.py [TABLE ...] [--requests N] [--rows N] [--repeat N] [--threads N]

A request is 100 documents of 136 columns. What is run is the code of docs/serving.md, which is
read from there. Scores are asserted to have the bits of the model's before anything is timed.

- start: seconds from a file to the first score, in new processes that have imported the package;
- fastapi: requests to uvicorn on loopback, one after the other, and by four clients at a time;
- spark: rows of a Parquet file, scored and written by a session of all processors;
- pipeline: requests to pipelines of scikit-learn's transformers and a ranker: `predict` beside
  `row_scorer` and, for the shop's columns, onnxruntime with the rows as it takes them;
- flink: requests through an operator of PyFlink, which needs apache-flink, best in an environment
  of its own; the times of two numbers of requests tell that of one without the start of the job.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import in_fresh_process, markdown_table, print_tables, seconds
from pairgram import Kernel, Nystroem, RandomNodes, RankRLS, load_model

PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
N_DOCUMENTS, WIDTH, N_TRAIN, LENGTH = 100, 136, 4_000, 40
N_CLIENTS = 4
PERCENTILES = (50, 99)
MODELS: dict[str, Callable[[], RankRLS]] = {
    "linear": RankRLS,
    'linear, `feature_map="raw+quantile"`': lambda: RankRLS(feature_map="raw+quantile"),
    "200 sigmoid nodes": lambda: RankRLS(feature_map=RandomNodes(200, random_state=0)),
    "200 Nyström features": lambda: RankRLS(feature_map=Nystroem(n_components=200, random_state=0)),
    "rbf kernel, 4,000 rows": lambda: RankRLS(feature_map=Kernel("rbf")),
}
SERVED = ("linear", "200 sigmoid nodes")


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    threads: int
    requests: int
    rows: int


def code_of(name: str) -> str:
    """Return the code of the page that follows the heading of a name."""
    part = PAGE.read_text().split(f"\n## {name}\n")[1]
    return re.search(r"^```py\n(.*?)^```", part, re.MULTILINE | re.DOTALL)[1]


def saved(name: str, folder: str) -> RankRLS:
    """Fit a model to synthetic rows, write it to a folder, and return it."""
    rng = np.random.default_rng(0)
    X, y = rng.random((N_TRAIN, WIDTH)), rng.integers(0, 3, N_TRAIN).astype(float)
    model = MODELS[name]().fit(X, y, qid=np.arange(N_TRAIN) // LENGTH)
    model.save(f"{folder}/model.safetensors")
    return model


def documents(n_rows: int = N_DOCUMENTS) -> np.ndarray:
    """Return rows of a request."""
    return np.random.default_rng(1).random((n_rows, WIDTH)).astype(np.float32)


def spread(times: list[float]) -> list[str]:
    """Return the percentiles of times, in words."""
    return [seconds(float(np.percentile(times, share))) for share in PERCENTILES]


def timed(call: Callable[[], Any], n_calls: int) -> list[float]:
    """Return the seconds of every call."""
    found = []
    for _ in range(n_calls):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return found


def first_scores(path: str) -> list[float]:
    """Return the seconds of reading a file, of the scorer, of its first and its second scores."""
    X, moments = documents(), [time.perf_counter()]
    model = load_model(path)
    moments.append(time.perf_counter())
    scorer = model.row_scorer("float32")
    moments.append(time.perf_counter())
    for _ in range(2):
        scorer(X)
        moments.append(time.perf_counter())
    return np.diff(moments).tolist()


def table_start(options: Options) -> Iterator[str]:
    """Yield the table of the seconds until the first score."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            saved(name, folder)
            path = f"{folder}/model.safetensors"
            runs = [in_fresh_process(first_scores, path) for _ in range(options.repeat)]
            parts = np.median(runs, axis=0)
            size = os.path.getsize(path)
            whole = seconds(statistics.median(sum(run[:3]) for run in runs))
            rows.append([name, f"{size / 1e3:,.0f} kB", *map(seconds, parts), whole])
    header = ["model", "file", "read", "scorer", "first", "second", "file to first score"]
    yield markdown_table(header, rows)


@contextmanager
def server(folder: str) -> Iterator[Callable[[], http.client.HTTPConnection]]:
    """Serve the page's application on loopback; the value makes connections."""
    Path(folder, "app.py").write_text(code_of("FastAPI"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    process = subprocess.Popen([*command, "--log-level", "warning"], cwd=folder)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("uvicorn did not start") from None
                time.sleep(0.05)
        yield lambda: http.client.HTTPConnection("127.0.0.1", port)
    finally:
        process.terminate()
        process.wait()


def asked(connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
    """Return the answer to a request."""
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.read()
    assert response.status == 200, found
    return found


def table_fastapi(options: Options) -> Iterator[str]:
    """Yield the table of requests to a server on loopback, and of the scorer alone."""
    X, rows = documents(), []
    bodies = {"/bytes": X.tobytes(), "/json": json.dumps(X.tolist()).encode()}
    for name in SERVED:
        with tempfile.TemporaryDirectory() as folder:
            scorer = saved(name, folder).row_scorer("float32")
            expected = scorer(X)
            times = timed(partial(scorer, X), options.requests)
            rows.append([f"{name}, no server", *spread(times), f"{1 / np.mean(times):,.0f}"])
            with server(folder) as connect:
                for path, body in bodies.items():
                    connection = connect()
                    found = asked(connection, path, body)
                    scores = np.frombuffer(found) if path == "/bytes" else json.loads(found)
                    np.testing.assert_array_equal(scores, expected)
                    ask = partial(asked, connection, path, body)
                    timed(ask, 50)
                    times = timed(ask, options.requests)
                    connection.close()

                    def client(path: str = path, body: bytes = body) -> None:
                        with closing(connect()) as own:
                            timed(lambda: asked(own, path, body), options.requests // N_CLIENTS)

                    begin = time.perf_counter()
                    with ThreadPoolExecutor(N_CLIENTS) as pool:
                        list(pool.map(lambda _: client(), range(N_CLIENTS)))
                    rate = options.requests // N_CLIENTS * N_CLIENTS
                    rate /= time.perf_counter() - begin
                    rows.append([f"{name}, {path}", *spread(times), f"{rate:,.0f}"])
    yield markdown_table(["model", "p50", "p99", "requests a second"], rows)


def table_spark(options: Options) -> Iterator[str]:
    """Yield the table of rows that Spark has scored."""
    import pandas as pd
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    X, rows = documents(options.rows).astype(np.float64), []
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(WIDTH)])
    place = np.arange(len(X))
    frame = frame.assign(qid=place // N_DOCUMENTS, doc=place)
    for name in SERVED:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            scorer = saved(name, folder).row_scorer()
            frame.to_parquet("rows.parquet", row_group_size=len(frame) // 8)
            times = []
            for _ in range(options.repeat + 1):  # the first starts the workers
                shutil.rmtree("scores.parquet", ignore_errors=True)
                code = code_of("Spark").replace('"rows.parquet"', f'"{folder}/rows.parquet"')
                code = code.replace('"scores.parquet"', f'"{folder}/scores.parquet"')
                begin = time.perf_counter()
                exec(compile(code, PAGE.name, "exec"), {"__name__": "__main__"})
                times.append(time.perf_counter() - begin)
            found = pd.read_parquet("scores.parquet").sort_values("doc")["score"]
            np.testing.assert_array_equal(found, scorer(X))
            whole = statistics.median(times[1:])
            alone = statistics.median(timed(partial(scorer, X), options.repeat))
            cells = [seconds(whole), f"{len(X) / whole:,.0f}", f"{len(X) / alone:,.0f}"]
            rows.append([name, *cells])
    session.stop()
    yield markdown_table(["model", f"{len(X):,} rows", "rows a second", "the scorer alone"], rows)


def table_flink(options: Options) -> Iterator[str]:
    """Yield the table of requests through an operator of Flink."""
    if importlib.util.find_spec("pyflink") is None:
        yield "The table of Flink needs apache-flink."
        return
    from pyflink.datastream import StreamExecutionEnvironment

    X, rows = documents(), []
    for name in SERVED:
        with tempfile.TemporaryDirectory() as folder:
            scorer = saved(name, folder).row_scorer("float32")
            code = code_of("Flink").replace("model.safetensors", f"{folder}/model.safetensors")
            whole = {}
            most = min(options.requests, 2_000)  # Flink has a collection in memory several times
            for n_requests in (most // 4, most):
                environment = StreamExecutionEnvironment.get_execution_environment()
                environment.set_parallelism(1)
                environment.set_python_executable(sys.executable)
                told = [(number, X.tobytes()) for number in range(n_requests)]
                requests = environment.from_collection(told)
                names = {"requests": requests, "__name__": "__main__"}
                times = []
                for _ in range(options.repeat):
                    begin = time.perf_counter()
                    exec(compile(code, PAGE.name, "exec"), names)
                    with names["scores"].execute_and_collect() as found:
                        scores = dict(found)
                    times.append(time.perf_counter() - begin)
                assert len(scores) == n_requests
                np.testing.assert_array_equal(scores[0], scorer(X))
                whole[n_requests] = statistics.median(times)
            (few, short), (many, long) = whole.items()
            rate = (many - few) / (long - short)
            rows.append([name, seconds(short), seconds(long), f"{rate:,.0f}"])
    header = ["model", f"job of {few} requests", f"of {many}", "requests a second"]
    yield markdown_table(header, rows)


def shop_rows(n_rows: int, seed: int) -> Any:
    """Return a frame of numbers and text with gaps."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    brands = np.array([f"brand {number}" for number in range(300)], dtype=object)
    columns: dict[str, Any] = {"brand": rng.choice(brands, n_rows)}
    columns["colour"] = rng.choice(np.array(["red", "blue", "green"], dtype=object), n_rows)
    for name in ("price", "rating", "stock"):
        columns[name] = np.where(rng.random(n_rows) < 0.2, np.nan, rng.gamma(2.0, 20.0, n_rows))
    return pd.DataFrame(columns)


def shop_pipeline() -> Any:
    """Return a pipeline of imputers, a logarithm, a scale, one-hot text and a ranker."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    fill = SimpleImputer(strategy="median", add_indicator=True)
    columns = make_column_transformer(
        (make_pipeline(fill, FunctionTransformer(np.log1p)), ["price"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["rating", "stock"]),
        (OneHotEncoder(handle_unknown="ignore"), ["brand", "colour"]),
    )
    return make_pipeline(columns, RankRLS())


def table_pipeline(options: Options) -> Iterator[str]:
    """Yield the table of requests to pipelines."""
    import onnxruntime
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from pairgram import export, row_scorer

    lists, y = np.arange(N_TRAIN) // LENGTH, np.random.default_rng(2).random(N_TRAIN)
    numbers = np.random.default_rng(0).random((N_TRAIN, WIDTH))
    scaled = make_pipeline(SimpleImputer(), StandardScaler(), RankRLS())
    train, few, rows = shop_rows(N_TRAIN, 0), max(20, options.requests // 20), []
    array, frame = documents().astype(np.float64), shop_rows(N_DOCUMENTS, 1)
    texts = frame[["brand", "colour"]].to_numpy(object)
    single = frame[["price", "rating", "stock"]].to_numpy(np.float32)
    asks = {
        f"{WIDTH} numbers, an array": (scaled, numbers, array, array),
        "the shop's columns, a dict of lists": (
            shop_pipeline(),
            train,
            frame,
            frame.to_dict("list"),
        ),
    }
    for name, (pipeline, X, asked, given) in asks.items():
        scorer = row_scorer(pipeline.fit(X, y, rankrls__qid=lists))
        wanted = pipeline.predict(asked)
        np.testing.assert_allclose(scorer(given), wanted, atol=1e-12 * np.ptp(wanted))
        model = export.to_onnx(pipeline, features=[*asked] if asked is frame else None)
        session = onnxruntime.InferenceSession(bytes(model))
        feeds = {"features": array.astype(np.float32)}
        if asked is frame:
            feeds = {"features": single, "texts": texts}
        run = partial(session.run, None, feeds)
        np.testing.assert_allclose(np.ravel(run()[0]), wanted, atol=1e-4 * np.ptp(wanted))
        calls = (partial(pipeline.predict, asked), few), (partial(scorer, given), options.requests)
        times = [timed(*call) for call in (*calls, (run, options.requests))]
        rows.append([name, *(spread(one)[0] for one in times)])
    yield markdown_table(["columns", "predict", "row_scorer", "onnxruntime, float32"], rows)


TABLES = {
    "start": table_start,
    "pipeline": table_pipeline,
    "fastapi": table_fastapi,
    "spark": table_spark,
    "flink": table_flink,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2_000, metavar="N")
    parser.add_argument("--rows", type=int, default=200_000, metavar="N", help="of Spark")
    packages = ("numpy", "fastapi", "uvicorn", "pyspark", "apache-flink")
    print_tables(parser, TABLES, Options, packages, repeat=5)


if __name__ == "__main__":
    main()
