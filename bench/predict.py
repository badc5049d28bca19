"""How fast `predict` is, beside onnxruntime, NumPy, scikit-learn's Ridge and LightGBM.

    python bench/predict.py [TABLE ...] [--repeat N] [--threads N]

Prints a Markdown table for each question, on made rows. Scores are asserted to be equal before
anything is timed (Ridge and LightGBM are models of their own, and only there to compare times).
Times are medians of runs that alternate between the ways; "ratio" is a way's time divided by
pairgram's. onnxruntime runs the same model, of coefficients that have been put together, in the
same type, with the same number of threads; for a hundred rows with one thread or with that number,
whichever takes less time.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import onnx
import onnxruntime
import pandas as pd
from onnx import helper, numpy_helper
from sklearn.linear_model import Ridge

from common import interleaved, markdown_table, print_tables, ratio_table
from pairgram import Kernel, Nystroem, RandomFourier, RandomNodes, RankRLS

N_SMALL, SMALL_WIDTH = 100, 50
N_LARGE, WIDTH = 100_000, 136
N_LINEAR = 1_000_000
N_TRAIN, LENGTH = 4_000, 40
N_CALLS = 100  # in a row, before the next way has its turn

Way = Callable[[], Any]


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    threads: int


def training_rows(width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X in [0, 1], graded labels, and ids of queries of 40 rows."""
    rng = np.random.default_rng(0)
    X = rng.random((N_TRAIN, width))
    return X, rng.integers(0, 3, N_TRAIN).astype(float), np.arange(N_TRAIN) // LENGTH


def fitted(width: int, n_rows: int = N_TRAIN, **parameters: Any) -> RankRLS:
    """Return a model of made rows."""
    X, y, qid = (part[:n_rows] for part in training_rows(width))
    return RankRLS(**parameters).fit(X, y, qid=qid)


# The same models in onnxruntime ---------------------------------------------------------------


class Graph:
    """An ONNX graph that is written down step by step, from the input "X" on."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.constants)}"
        array = np.asarray(value, self.dtype)
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def step(self, operator: str, *inputs: Any) -> str:
        """Return the name of what an operator makes of names and constants."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        name = f"s{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name]))
        return name

    def scorer(self, scores: str, width: int, threads: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that runs the graph from rows to scores, (n_rows, 1)."""
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        graph = helper.make_graph(
            self.nodes,
            "scores",
            [helper.make_tensor_value_info("X", kind, [None, width])],
            [helper.make_tensor_value_info(scores, kind, [None, 1])],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        return lambda X: session.run(None, {"X": X})[0]


def in_onnx(model: RankRLS, dtype: Any, options: Options) -> Callable[[np.ndarray], np.ndarray]:
    """Return the scores of a model by onnxruntime."""
    graph, coef, nodes = Graph(dtype), model.coef_[:, None], model.feature_map_
    if nodes is None:
        scores = graph.step("MatMul", "X", coef)
    elif type(nodes) is RandomNodes:
        z = graph.step("Add", graph.step("MatMul", "X", nodes.weights_), nodes.bias_)
        scores = graph.step("MatMul", graph.step("Sigmoid", z), coef)
    elif type(nodes) is RandomFourier:
        z = graph.step("Add", graph.step("MatMul", "X", nodes.weights_), nodes.bias_)
        scores = graph.step("MatMul", graph.step("Cos", z), coef * np.sqrt(2 / len(coef)))
    else:
        of_landmarks = type(nodes) is Nystroem
        rows = nodes.components_ if of_landmarks else nodes.support_rows_
        values = rbf_steps(graph, rows, nodes.gamma_)
        scores = graph.step("MatMul", values, nodes.whitening_ @ coef if of_landmarks else coef)
    return graph.scorer(scores, model.n_features_in_, options.threads)


def rbf_steps(graph: Graph, rows: np.ndarray, gamma: float) -> str:
    """Return ``exp(2γ X Zᵀ − γ‖z‖² − γ‖x‖²)``."""
    products = graph.step("MatMul", "X", 2 * gamma * rows.T)
    products = graph.step("Add", products, -gamma * (rows**2).sum(axis=1))
    squares = graph.step("MatMul", graph.step("Mul", "X", "X"), np.full((rows.shape[1], 1), gamma))
    return graph.step("Exp", graph.step("Sub", products, squares))


def assert_equal_scores(found: np.ndarray, expected: np.ndarray, model: RankRLS) -> None:
    """Assert that scores agree as far as the type of the features tells."""
    eps = np.finfo(found.dtype).eps
    size = max(1.0, float(np.abs(model.coef_).sum()))
    if type(model.feature_map_) is Nystroem:
        size = float(np.abs(model.feature_map_.whitening_ @ model.coef_).sum())
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * eps * size)


# A hundred rows -------------------------------------------------------------------------------


def table_small(options: Options) -> Iterator[str]:
    """Microseconds of one call of many in a row, 100 × 50."""
    maps = {
        "linear": None,
        "200 sigmoid nodes": RandomNodes(200, random_state=0),
        "Fourier 500": RandomFourier(500, random_state=0),
        "Nyström 200": Nystroem(n_components=200, random_state=0),
    }
    for dtype in (np.float64, np.float32):
        X = np.random.default_rng(1).random((N_SMALL, SMALL_WIDTH)).astype(dtype)
        lines = []
        for name, feature_map in maps.items():
            model = fitted(SMALL_WIDTH, feature_map=feature_map)
            peers = [
                in_onnx(model, dtype, Options(options.repeat, threads))
                for threads in sorted({1, options.threads})
            ]
            for peer in peers:
                assert_equal_scores(model.predict(X), peer(X)[:, 0], model)
            scorer = model.row_scorer(dtype)
            np.testing.assert_array_equal(scorer(X).astype(dtype), model.predict(X))
            ours, frozen, *theirs = calls(
                options,
                functools.partial(model.predict, X),
                functools.partial(scorer, X),
                *(functools.partial(peer, X) for peer in peers),
            )
            best = min(theirs)
            times = [microseconds(value) for value in (ours, frozen, best)]
            lines.append([name, *times, f"{best / ours:.2f}", f"{best / frozen:.2f}"])
        yield f"{N_SMALL} × {SMALL_WIDTH}, {np.dtype(dtype)}, µs a call, and ratios to onnxruntime"
        header = [
            "model",
            "predict",
            "row_scorer()",
            "onnxruntime",
            "of predict",
            "of row_scorer()",
        ]
        yield markdown_table(header, lines)
    yield from _linear_calls(options)


def _linear_calls(options: Options) -> Iterator[str]:
    X = np.random.default_rng(1).random((N_SMALL, SMALL_WIDTH))
    model = fitted(SMALL_WIDTH)
    rows, y, qid = training_rows(SMALL_WIDTH)
    names = [f"feature {k}" for k in range(SMALL_WIDTH)]
    frame = pd.DataFrame(X, columns=names)
    named = RankRLS().fit(pd.DataFrame(rows, columns=names), y, qid=qid)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(named.predict(frame), model.predict(X))
    ridge, ridge_of_frame = Ridge().fit(rows, y), Ridge().fit(pd.DataFrame(rows, columns=names), y)
    trees = lightgbm.LGBMRanker(verbose=-1, n_jobs=options.threads)
    trees.fit(rows, y, group=np.bincount(qid))
    scorer = model.row_scorer()
    ways: dict[str, Way] = {
        "pairgram, linear": lambda: model.predict(X),
        "pairgram, linear, row_scorer()": lambda: scorer(X),
        "NumPy's product alone": lambda: X @ model.coef_,
        "scikit-learn's Ridge": lambda: ridge.predict(X),
        "LightGBM, 100 trees of 31 leaves": lambda: trees.predict(X),
        "pairgram, linear, a pandas frame": lambda: named.predict(frame),
        "scikit-learn's Ridge, a pandas frame": lambda: ridge_of_frame.predict(frame),
    }
    times = dict(zip(ways, calls(options, *ways.values()), strict=True))
    first = times["pairgram, linear"]
    lines = [[way, microseconds(time), f"{time / first:.2f}"] for way, time in times.items()]
    yield f"predict, {N_SMALL} × {SMALL_WIDTH}, float64, µs a call"
    yield markdown_table(["way", "time", "ratio"], lines)


def calls(options: Options, *ways: Way) -> list[float]:
    """Return the median seconds of one call of each way, of many in a row.

    Every call is timed on its own: other work of the machine interrupts few of them.
    """
    runs: list[list[float]] = [[] for _ in ways]
    for _ in range(3 * options.repeat):
        for way, run in zip(ways, runs, strict=True):
            way()
            for _ in range(N_CALLS):
                begin = time.perf_counter()
                way()
                run.append(time.perf_counter() - begin)
    return [statistics.median(run) for run in runs]


def microseconds(value: float) -> str:
    """Return seconds as microseconds with three digits."""
    return f"{1e6 * value:#.3g}".rstrip(".")


# Many rows ------------------------------------------------------------------------------------


def table_linear(options: Options) -> Iterator[str]:
    """A million rows by a linear model."""
    model, rows = fitted(WIDTH), training_rows(WIDTH)
    ridge = Ridge().fit(rows[0], rows[1])
    for dtype in (np.float64, np.float32):
        X = np.random.default_rng(1).random((N_LINEAR, WIDTH), dtype)
        coef, peer = model.coef_.astype(dtype), in_onnx(model, dtype, options)
        assert_equal_scores(model.predict(X), peer(X)[:, 0], model)
        ways: dict[str, Way] = {
            "pairgram": lambda X=X: model.predict(X),
            "NumPy's product alone": lambda X=X, coef=coef: X @ coef,
            "onnxruntime": lambda X=X, peer=peer: peer(X),
            "scikit-learn's Ridge": lambda X=X: ridge.predict(X),
        }
        yield f"predict, linear, {N_LINEAR:,} × {WIDTH}, {np.dtype(dtype)}"
        yield ratio_table(interleaved(ways, options.repeat))


def table_maps(options: Options) -> Iterator[str]:
    """A hundred thousand rows through nodes and kernels."""
    models = {
        "1,000 sigmoid nodes": fitted(WIDTH, feature_map=RandomNodes(1_000, random_state=0)),
        "1,000 Fourier features": fitted(WIDTH, feature_map=RandomFourier(1_000, random_state=0)),
        "rbf kernel, 2,000 support rows": fitted(WIDTH, 2_000, feature_map=Kernel("rbf")),
    }
    for dtype in (np.float64, np.float32):
        X = np.random.default_rng(1).random((N_LARGE, WIDTH), dtype)
        for name, model in models.items():
            peer = in_onnx(model, dtype, options)
            assert_equal_scores(model.predict(X[:999]), peer(X[:999])[:, 0], model)
            ways: dict[str, Way] = {
                "pairgram": lambda X=X, model=model: model.predict(X),
                "onnxruntime": lambda X=X, peer=peer: peer(X),
            }
            yield f"predict, {name}, {N_LARGE:,} × {WIDTH}, {np.dtype(dtype)}"
            yield ratio_table(interleaved(ways, options.repeat))


# ----------------------------------------------------------------------------------------------


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "small": table_small,
    "linear": table_linear,
    "maps": table_maps,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print tables of times of predict.")
    packages = ("numpy", "scipy", "scikit-learn", "onnxruntime", "lightgbm", "pandas")
    print_tables(parser, TABLES, Options, packages)


if __name__ == "__main__":
    main()
