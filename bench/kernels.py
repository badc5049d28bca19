"""How fast the kernels are, beside NumPy by hand and the best peer that installs.

    python bench/kernels.py [TABLE ...] [--repeat N] [--data FOLDER] [--threads N]

Prints a Markdown table for each question. The data lie in FOLDER (else pairgram-bench in the folder
for temporary files), made on first use. Results are asserted to be equal before anything is
timed. Times are medians of runs that alternate between the ways; "ratio" is a way's time divided by
pairgram's. "RSS rise" is the highest resident memory during a call in a fresh process above what
was resident before it (the inputs included), after a call on tiny data that loads the libraries.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

import by_hand
import data
import pairgram
from common import (
    PeakMemory,
    in_fresh_process,
    interleaved,
    markdown_table,
    mebibytes,
    on_threads,
    print_tables,
    progress,
    ratio_table,
    seconds,
    stopwatch,
)

LENGTH = 100  # documents of every query
ALPHAS = 2.0 ** np.arange(19, -11, -1)  # 30, descending
ALPHA = 1.0


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    folder: Path
    threads: int


# Fit ------------------------------------------------------------------------------------------


def fit_ways(name: str, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the ways to 30 solutions on data a or b, by name; pairgram's first."""
    X, y, qid = data.load(name, folder)
    by_any_length = functools.partial(by_hand.statistics_of_any_lengths, X, y, qid)
    return {
        "pairgram": lambda: pairgram.Pairgram.from_rows(X, y, qid=qid).path(ALPHAS),
        "NumPy, all rows at once": lambda: by_hand.path(
            by_hand.statistics_at_once(X, y, LENGTH), ALPHAS
        ),
        "NumPy, blocks of 1 MiB": lambda: by_hand.path(
            by_hand.statistics_by_blocks(X, y, LENGTH), ALPHAS
        ),
        "NumPy, not centred (cancels)": lambda: by_hand.path(
            by_hand.statistics_uncentred(X, y, LENGTH), ALPHAS
        ),
        "NumPy, any query lengths": lambda: by_hand.path(by_any_length(), ALPHAS),
    }


def table_fit(options: Options) -> Iterator[str]:
    """Fit, 30 values of alpha: from rows to all weights."""
    for name in data.SHAPES:
        ways = fit_ways(name, options.folder)
        expected = ways["pairgram"]()
        for way in ways.values():
            np.testing.assert_allclose(way(), expected, rtol=1e-8, atol=1e-10 * expected.max())
        times = interleaved(ways, options.repeat)
        rises = {way: fit_memory(way, name, options) for way in ways}
        yield f"Data {name}: fit and 30 alphas"
        yield ratio_table(times, **{"RSS rise": {way: mebibytes(b) for way, b in rises.items()}})
        yield f"Data {name}: one alpha, `RankRLS(alpha).fit`"
        yield ratio_table(one_alpha_times(name, options))


def fit_memory(way: str, name: str, options: Options) -> float:
    """Return the rise of resident memory of one way, measured in a fresh process."""
    progress(f"memory: {way}, data {name}")
    return in_fresh_process(_fit_memory, way, name, options)


def _fit_memory(way: str, name: str, options: Options) -> float:
    function = fit_ways(name, options.folder)[way]
    warm_up()
    with PeakMemory() as memory:
        function()
    return memory.rise


def warm_up() -> None:
    """Load what is loaded on first use and wake the BLAS threads, on 400 rows of 4 features."""
    X, y, qid = pairgram.make_ranking(20, 20, 4, random_state=0)
    pairgram.Pairgram.from_rows(X, y, qid=qid).path(ALPHAS)
    for statistics in (by_hand.statistics_at_once, by_hand.statistics_by_blocks):
        by_hand.path(statistics(X, y, 20), ALPHAS)


def one_alpha_times(name: str, options: Options) -> dict[str, float]:
    """Return the times of `RankRLS.fit` and of Cholesky by hand."""
    X, y, qid = data.load(name, options.folder)
    model = pairgram.RankRLS(ALPHA)
    ways = {
        "pairgram": lambda: model.fit(X, y, qid=qid).coef_,
        "NumPy, all rows at once": lambda: by_hand.one_ridge(
            by_hand.statistics_at_once(X, y, LENGTH), ALPHA
        ),
        "NumPy, blocks of 1 MiB": lambda: by_hand.one_ridge(
            by_hand.statistics_by_blocks(X, y, LENGTH), ALPHA
        ),
    }
    expected = ways["pairgram"]()
    for way in ways.values():
        np.testing.assert_allclose(way(), expected, rtol=1e-8, atol=1e-10 * expected.max())
    return interleaved(ways, options.repeat)


# Leave-query-out ------------------------------------------------------------------------------


def table_leave_query_out(options: Options, n_refits: int = 20) -> Iterator[str]:
    """Exact leave-query-out: NDCG@10 of 30 alphas on data a."""
    X, y, qid = data.load("a", options.folder)
    model = pairgram.RankRLSCV(ALPHAS, scoring="ndcg@10")
    total = by_hand.statistics_at_once(X, y, LENGTH)
    n_queries = int(qid[-1]) + 1

    def refits(queries: np.ndarray) -> np.ndarray:
        """Return the scores of these queries, (n_alphas, n_queries, LENGTH)."""
        each = by_hand.held_out_scores(X, y, LENGTH, total, queries, ALPHAS)
        return np.stack(list(each), axis=1)

    progress(f"refitting without each of {n_queries:,} queries, once")
    scores = refits(np.arange(n_queries)).reshape(len(ALPHAS), -1)
    means = by_hand.ndcg_of_many(y, scores, LENGTH)
    np.testing.assert_allclose(model.fit(X, y, qid=qid).scores_, means, rtol=1e-9)

    few = np.linspace(0, n_queries - 1, n_refits).astype(int)

    def on_one_thread() -> np.ndarray:
        with threadpool_limits(1):  # some BLAS lose more to threads than small matrices gain
            return refits(few)

    times = interleaved(
        {
            "pairgram": lambda: model.fit(X, y, qid=qid),
            "refits": lambda: refits(few),
            "refits, one thread": on_one_thread,
        },
        options.repeat,
    )
    way = f"NumPy, {n_queries:,} refits by subtraction, without metric (from {n_refits})"
    yield "Data a: exact leave-query-out, 30 alphas, NDCG@10, `RankRLSCV(alphas).fit`"
    yield ratio_table(
        {
            "pairgram, with metric": times["pairgram"],
            way: times["refits"] * n_queries / n_refits,
            "the same on one thread": times["refits, one thread"] * n_queries / n_refits,
        }
    )


# Metrics --------------------------------------------------------------------------------------


def make_run(n_queries: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels 0-4, scores that follow them loosely, and query ids."""
    rng = np.random.default_rng(seed)
    y = rng.choice(np.arange(5.0), n_queries * LENGTH, p=[0.52, 0.32, 0.13, 0.02, 0.01])
    return y, y + 2 * rng.normal(size=len(y)), np.repeat(np.arange(n_queries), LENGTH)


def table_metrics(options: Options) -> Iterator[str]:
    """NDCG@10 and MAP, and NDCG@10, of 10,000 queries x 100 documents, from three flat arrays."""
    import pytrec_eval

    y, score, qid = make_run(10_000)
    qrel, run = trec_dictionaries(np.exp2(y).astype(int) - 1, score, qid)
    # trec_eval's gain is the label, so the labels that it gets are gains.
    evaluator = pytrec_eval.RelevanceEvaluator(qrel, {"ndcg_cut.10", "map"})

    def trec() -> tuple[float, float]:
        results = evaluator.evaluate(run).values()
        return (
            np.mean([query["ndcg_cut_10"] for query in results]),
            np.mean([query["map"] for query in results]),
        )

    ways = {
        "pairgram": lambda: tuple(pairgram.evaluate(["ndcg@10", "map"], y, score, qid).values()),
        "NumPy, equal lengths only": lambda: by_hand.ndcg_and_map(y, score, LENGTH),
        "pytrec_eval, dictionaries ready": trec,
    }
    expected = ways["pairgram"]()
    for way in ways.values():
        np.testing.assert_allclose(way(), expected, rtol=1e-6)
    times = interleaved(ways, options.repeat)
    building = stopwatch(lambda: trec_dictionaries(y.astype(int), score, qid))[0]
    times["pytrec_eval, with making its dictionaries"] = (
        building + times["pytrec_eval, dictionaries ready"]
    )
    yield "NDCG@10 and MAP, 10,000 queries x 100 documents"
    yield ratio_table(times)
    alone = {
        "pairgram": lambda: pairgram.evaluate("ndcg@10", y, score, qid)["ndcg@10"],
        "NumPy, equal lengths only": lambda: by_hand.ndcg_of_many(y, score[None], LENGTH)[0],
    }
    np.testing.assert_allclose(*(way() for way in alone.values()), rtol=1e-12)
    yield "NDCG@10 alone, of the same rows"
    yield ratio_table(interleaved(alone, options.repeat))


def trec_dictionaries(
    labels: np.ndarray, score: np.ndarray, qid: np.ndarray
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return what pytrec_eval takes: labels and scores by query and document name."""
    names = [str(i) for i in range(LENGTH)]
    qrel, run = {}, {}
    rows = zip(
        qid[::LENGTH].tolist(),
        labels.reshape(-1, LENGTH).tolist(),
        score.reshape(-1, LENGTH).tolist(),
        strict=True,
    )
    for query, query_labels, query_scores in rows:
        qrel[str(query)] = dict(zip(names, query_labels, strict=True))
        run[str(query)] = dict(zip(names, query_scores, strict=True))
    return qrel, run


def table_many_scores(options: Options) -> Iterator[str]:
    """NDCG@10 of 30 score vectors of 100,000 rows, in one call."""
    y, score, qid = make_run(1_000)
    rng = np.random.default_rng(1)
    scores = score + rng.normal(size=(30, len(y)))
    ways = {
        "pairgram": lambda: pairgram.evaluate("ndcg@10", y, scores, qid)["ndcg@10"],
        "NumPy, equal lengths only": lambda: by_hand.ndcg_of_many(y, scores, LENGTH),
    }
    np.testing.assert_allclose(*(way() for way in ways.values()), rtol=1e-12)
    yield "NDCG@10 of 30 score vectors, 1,000 queries x 100 documents"
    yield ratio_table(interleaved(ways, options.repeat))


# Reading --------------------------------------------------------------------------------------

FORMS: Mapping[str, Mapping[str, Any]] = {
    "pairgram, dense float64": {},
    "pairgram, dense float32": {"dtype": np.float32},
    "pairgram, CSR float64": {"sparse": True},
}


def table_read(options: Options) -> Iterator[str]:
    """Read 153 MB of SVMlight text: 100,000 rows x 136 features."""
    from sklearn.datasets import load_svmlight_file

    path = data.text_file(options.folder)
    X, y, qid = data.load("a", options.folder)
    read = functools.partial(pairgram.load_letor, path)
    for form in FORMS.values():
        Z, labels, ids = read(**form)
        Z = Z.toarray() if form.get("sparse") else Z
        np.testing.assert_array_equal(Z, X.astype(Z.dtype))
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(ids, qid + 1)
    progress("reading by scikit-learn, once")
    time, (Z, labels, _) = stopwatch(lambda: load_svmlight_file(str(path), query_id=True))
    np.testing.assert_allclose(Z.toarray(), X, rtol=1e-15)
    np.testing.assert_array_equal(labels, y)
    del Z
    ways = {name: functools.partial(read, **form) for name, form in FORMS.items()}
    times = interleaved(ways, options.repeat)
    times["scikit-learn load_svmlight_file, CSR, once"] = time
    rises = {name: mebibytes(in_fresh_process(_read_memory, name, options)) for name in FORMS}
    yield f"Reading {path.stat().st_size / 1e6:.0f} MB of SVMlight text, in the page cache"
    yield ratio_table(times, **{"RSS rise above the arrays": rises})


def _read_memory(form: str, options: Options) -> float:
    path, load = data.text_file(options.folder), pairgram.load_letor  # imported by its first use
    with PeakMemory() as memory:
        X, *others = load(path, **FORMS[form])
    arrays = [X.data, X.indices, X.indptr] if FORMS[form].get("sparse") else [X]
    return memory.rise - sum(array.nbytes for array in (*arrays, *others))


# Streaming ------------------------------------------------------------------------------------

STREAM_ROWS = 100_000
STREAM_WAYS = ("pairgram", "NumPy, blocks of 1 MiB")


def table_stream(options: Options) -> Iterator[str]:
    """`Pairgram.update` on blocks of 100,000 float32 rows x 136 features, up to 10 million rows.

    One run each in a fresh process: the time grows with n, the memory must not.
    """
    data.load("a", options.folder)  # made here, so that no measured process makes it
    rows = []
    for n_rows in (1_000_000, 2_000_000, 5_000_000, 10_000_000):
        for way in STREAM_WAYS:
            progress(f"streaming {n_rows:,} rows: {way}")
            time, rise = in_fresh_process(_stream, way, n_rows, options)
            rows.append(
                [way, f"{n_rows:,}", seconds(time), f"{1e9 * time / n_rows:.0f}", mebibytes(rise)]
            )
    yield "Streaming float32 rows x 136 features in calls of 100,000, then one solution"
    yield markdown_table(["way", "rows", "time", "ns per row", "RSS rise above two calls"], rows)


def _stream(way: str, n_rows: int, options: Options) -> tuple[float, float]:
    X, y, qid = data.load("a", options.folder)
    calls = [(np.ascontiguousarray(Z, dtype=np.float32), y) for Z in (X, X[::-1])]
    n_calls = n_rows // STREAM_ROWS
    of_each = [
        by_hand.statistics_at_once(Z.astype(np.float64), labels, LENGTH) for Z, labels in calls
    ]
    del X
    counts = [(n_calls + 1) // 2, n_calls // 2]
    G = sum(n * G for n, (G, _) in zip(counts, of_each, strict=True))
    g = sum(n * g for n, (_, g) in zip(counts, of_each, strict=True))
    warm_up()
    function = functools.partial(_streamed, way, calls, qid, n_calls)
    with PeakMemory() as memory:
        time, weights = stopwatch(function)
    expected = by_hand.one_ridge((G, g), ALPHA)
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    return time, memory.rise


def _streamed(
    way: str, calls: list[tuple[np.ndarray, np.ndarray]], qid: np.ndarray, n_calls: int
) -> np.ndarray:
    if way == "pairgram":
        total = pairgram.Pairgram()
        n_queries = int(qid[-1]) + 1
        for call in range(n_calls):
            X, y = calls[call % 2]
            total.update(X, y, qid=qid + call * n_queries)
        return total.solve(ALPHA)
    G, g = 0.0, 0.0
    for call in range(n_calls):
        more_G, more_g = by_hand.statistics_by_blocks(*calls[call % 2], LENGTH)
        G, g = G + more_G.astype(np.float64), g + more_g
    return by_hand.one_ridge((G, g), ALPHA)


# Half-Laplacian and Gram ----------------------------------------------------------------------


def table_gram(options: Options) -> Iterator[str]:
    """The Gram matrix of every kind of pairs, on data a; n·d·(d + 1) flops, as syrk counts."""
    X, y, qid = data.load("a", options.folder)
    n_rows, n_features = X.shape
    flops = n_rows * n_features * (n_features + 1)
    rows = []
    for dtype in (np.float64, np.float32):
        Z = X.astype(dtype)
        peak = syrk_peak(dtype, options.repeat)
        rows.append([f"syrk of SciPy, n = 2,000: {Z.dtype}", "1", "", f"{peak / 1e9:.0f}", "100 %"])
        ways = {}
        for pairs in ("with_ties", "without_ties", "gain_difference"):
            for threads in sorted({1, options.threads}):
                statistics_of = functools.partial(
                    pairgram.Pairgram.from_rows, Z, y, qid=qid, pairs=pairs
                )
                ways[pairs, threads] = on_threads(threads, statistics_of)
                expected = by_hand.dense_gram(X, y, LENGTH, pairs)
                tolerance = (1e-10 if dtype == np.float64 else 1e-5) * expected.max()
                G = ways[pairs, threads]().G
                np.testing.assert_allclose(G, expected, rtol=0, atol=tolerance)
        for (pairs, threads), time in interleaved(ways, options.repeat).items():
            speed = flops / time
            share = f"{100 * speed / (peak * threads):.0f} %"
            way = f"pairgram, {pairs}: {Z.dtype}"
            rows.append([way, str(threads), seconds(time), f"{speed / 1e9:.0f}", share])
    yield "Data a: `Pairgram.from_rows`, half-Laplacian and Gram matrix"
    yield markdown_table(["work", "threads", "time", "GFLOP/s", "of syrk's peak x threads"], rows)


def syrk_peak(dtype: type, repeat: int, order: int = 2_000) -> float:
    """Return the flops per second of one thread in a large product that BLAS likes."""
    A = np.random.default_rng(0).random((order, order)).astype(dtype)
    syrk = blas.dsyrk if dtype == np.float64 else blas.ssyrk
    with threadpool_limits(1):
        time = interleaved({"syrk": lambda: syrk(1.0, A.T)}, repeat)["syrk"]
    return order * order * (order + 1) / time


# ----------------------------------------------------------------------------------------------


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "fit": table_fit,
    "leave-query-out": table_leave_query_out,
    "metrics": table_metrics,
    "many-scores": table_many_scores,
    "read": table_read,
    "stream": table_stream,
    "gram": table_gram,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description="Print tables of times: pairgram, NumPy by hand, peers."
    )
    parser.add_argument(
        "--data", dest="folder", type=Path, default=data.DEFAULT_FOLDER, metavar="FOLDER"
    )
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn", "pytrec_eval-terrier"))


if __name__ == "__main__":
    main()
