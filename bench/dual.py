"""How fast kernel rankers are and what they take: the dual form beside one eigendecomposition.

    python bench/dual.py [TABLE ...] [--repeat N] [--threads N] [--rows N] [--memory-rows N]

Prints a Markdown table for each question, on made data. Results are asserted to be equal before
anything is timed, and to have the same bits for one thread and two. Times are medians of runs that
alternate between the ways; "ratio" is a way's time divided by that of `scipy.linalg.eigh` on a
matrix of that size, by its default driver. "words" are the rise of resident memory during a fit in
a fresh process, from rows to model, kernel matrix included, in float64 words over n². At the
default sizes expect several minutes on two cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from common import (
    PeakMemory,
    in_fresh_process,
    markdown_table,
    print_tables,
    progress,
    seconds,
    stopwatch,
)
from pairgram import Kernel, RankRLS, RankRLSCV, kernel_matrix, threads

N_FEATURES, LENGTH, GAMMA = 46, 40, 1.0
ALPHAS = 2.0 ** np.arange(9, -21, -1)  # 30, descending


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    threads: int
    rows: int
    memory_rows: int


def make_rows(n_rows: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X in [0, 1], graded labels that depend on it, and ids of queries of 40 rows."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, N_FEATURES))
    score = np.sin(3 * X[:, :5]).sum(axis=1) + 0.3 * rng.normal(size=n_rows)
    y = np.searchsorted(np.quantile(score, [0.6, 0.9]), score).astype(float)
    return X.astype(dtype), y, np.arange(n_rows) // LENGTH


# Time -----------------------------------------------------------------------------------------


def path_by_hand(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the dual coefficients for every ridge, (n_alphas, n_rows), by NumPy and SciPy.

    Centres the rows and columns of the kernel matrix by queries of equal length.
    """
    squares = (X**2).sum(axis=1)
    K = np.exp(-GAMMA * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    root = np.sqrt(LENGTH)
    for _ in range(2):
        groups = K.reshape(-1, LENGTH, len(K))
        groups -= groups.mean(axis=1, keepdims=True)
        groups *= root
        K = np.ascontiguousarray(K.T)
    labels = y.reshape(-1, LENGTH)
    target = root * (labels - labels.mean(axis=1, keepdims=True)).ravel()
    # Not the default driver, evr: at 4,000 rows its dstemr fails on the zero eigenvalues, one for
    # each query, and bisection and inverse iteration, its way out, take four times evd's CPU time.
    values, vectors = scipy.linalg.eigh(K, driver="evd", overwrite_a=True, check_finite=False)
    solved = (vectors.T @ target / (values + ALPHAS[:, None])) @ vectors.T
    groups = solved.reshape(len(ALPHAS), -1, LENGTH)
    return (root * (groups - groups.mean(axis=2, keepdims=True))).reshape(solved.shape)


def table_time(options: Options) -> Iterator[str]:
    """Fit and 30 alphas, with and without held-out scores, beside one eigendecomposition."""
    X, y, qid = make_rows(options.rows - options.rows % LENGTH)
    valid = X[:LENGTH], y[:LENGTH], qid[:LENGTH]
    K = kernel_matrix(X, gamma=GAMMA)
    named = {"feature_map": Kernel("rbf", gamma=GAMMA)}
    search = RankRLSCV(ALPHAS, **named)
    one = RankRLS(ALPHAS[0], **named)
    expected = path_by_hand(X, y) @ K
    for held_out in (valid, None):
        scores = search.fit(X, y, qid=qid, validation=held_out).coef_path_ @ K
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6 * np.ptp(expected))
    ways: dict[str, Callable[[], Any]] = {
        "scipy.linalg.eigh alone": lambda: scipy.linalg.eigh(K),
        "pairgram, fit and 30 alphas": lambda: search.fit(X, y, qid=qid, validation=valid),
        "pairgram, with exact leave-query-out": lambda: search.fit(X, y, qid=qid),
        "NumPy by hand, fit and 30 alphas": lambda: path_by_hand(X, y),
        "pairgram, one alpha": lambda: one.fit(X, y, qid=qid),
    }
    require_equal_bits(X, y, qid, valid)
    runs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(options.repeat):
        for way, run in ways.items():
            progress(f"  {way}")
            cpu = time.process_time()
            wall = stopwatch(run)[0]
            runs[way].append((wall, time.process_time() - cpu))
    medians = {way: [statistics.median(t) for t in zip(*r, strict=True)] for way, r in runs.items()}
    base = medians["scipy.linalg.eigh alone"]
    rows = [
        [way, seconds(wall), f"{wall / base[0]:.2f}", seconds(cpu), f"{cpu / base[1]:.2f}"]
        for way, (wall, cpu) in medians.items()
    ]
    yield f"rbf kernel of {len(y)} x {N_FEATURES}, queries of {LENGTH}, 30 alphas"
    yield markdown_table(["way", "time", "ratio", "CPU time", "ratio"], rows)


def require_equal_bits(X: Any, y: Any, qid: Any, valid: Any) -> None:
    """Compare the results of one thread and two."""
    found = []
    search = RankRLSCV(ALPHAS, feature_map=Kernel("rbf", gamma=GAMMA))
    for n_threads in (1, 2):
        for held_out in (valid, None):
            with threads(n_threads):
                search.fit(X, y, qid=qid, validation=held_out)
            found.append((search.coef_path_, search.scores_))
    for one, other in zip(found[:2], found[2:], strict=True):
        for of_one, of_other in zip(one, other, strict=True):
            np.testing.assert_array_equal(of_one, of_other)


# Contention -----------------------------------------------------------------------------------


def table_busy(options: Options) -> Iterator[str]:
    """The same work while other processes keep as many processors busy as there are threads."""
    X, y, qid = make_rows(options.rows - options.rows % LENGTH)
    valid = X[:LENGTH], y[:LENGTH], qid[:LENGTH]
    K = kernel_matrix(X, gamma=GAMMA)
    search = RankRLSCV(ALPHAS, feature_map=Kernel("rbf", gamma=GAMMA))
    one = RankRLS(ALPHAS[0], feature_map=Kernel("rbf", gamma=GAMMA))
    ways: dict[str, Callable[[], Any]] = {
        "pairgram, one alpha": lambda: one.fit(X, y, qid=qid),
        "pairgram, fit and 30 alphas": lambda: search.fit(X, y, qid=qid, validation=valid),
        "pairgram, with exact leave-query-out": lambda: search.fit(X, y, qid=qid),
        "scipy.linalg.eigh alone": lambda: scipy.linalg.eigh(K),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for n_busy in (0, options.threads):
        others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(n_busy)]
        for other in others:
            other.start()
        for way, run in ways.items():
            progress(f"  {way}, {n_busy} busy processes")
            took = [stopwatch(run)[0] for _ in range(options.repeat)]
            times[way].append(statistics.median(took))
        for other in others:
            other.terminate()
            other.join()
    rows = [
        [way, seconds(quiet), seconds(busy), f"{busy / quiet:.2f}"]
        for way, (quiet, busy) in times.items()
    ]
    yield f"rbf kernel of {len(y)} x {N_FEATURES} beside {options.threads} busy processes"
    yield markdown_table(["way", "alone", "beside them", "ratio"], rows)


def _spin() -> None:
    while True:
        pass


# Memory ---------------------------------------------------------------------------------------

FITS: Mapping[str, tuple[float, Any]] = {
    "RankRLS, one alpha": (1.0, RankRLS(1.0, feature_map=Kernel("rbf", gamma=GAMMA))),
    **{
        f"RankRLSCV, 30 alphas, {way}": (
            1.5,
            RankRLSCV(ALPHAS, feature_map=Kernel("rbf", gamma=GAMMA)),
        )
        for way in ("validation rows", "leave-query-out")
    },
}


def table_memory(options: Options) -> Iterator[str]:
    """Resident memory of a whole fit beside what the documentation says."""
    rows, n_rows = [], options.memory_rows
    for dtype in (np.float64, np.float32):
        for name, (documented, _) in FITS.items():
            progress(f"  {name}, {dtype.__name__}")
            took, rise = in_fresh_process(_fit, name, n_rows, dtype)
            words = rise / 8 / n_rows**2
            cells = [f"{documented:.2f}", f"{words:.2f}", f"{rise / 2**30:.2f} GiB", seconds(took)]
            rows.append([f"{name}, {dtype.__name__}", *cells])
    yield f"rbf kernel of {n_rows} x {N_FEATURES}: memory of the fit, in words over n²"
    yield markdown_table(["fit", "documented", "words", "rise", "time"], rows)


def _fit(name: str, n_rows: int, dtype: Any) -> tuple[float, float]:
    X, y, qid = make_rows(n_rows, dtype)
    model = FITS[name][1]
    few = slice(0, 3 * LENGTH)
    valid = X[few], y[few], qid[few]
    model.fit(*valid[:2], qid=valid[2])
    held_out = {"validation": valid} if "validation" in name else {}
    with PeakMemory() as memory:
        took, _ = stopwatch(lambda: model.fit(X, y, qid=qid, **held_out))
    return took, memory.rise


# ----------------------------------------------------------------------------------------------


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "time": table_time,
    "busy": table_busy,
    "memory": table_memory,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print tables of times and memory of kernels.")
    parser.add_argument("--rows", type=int, default=4_000, metavar="N", help="that are timed")
    parser.add_argument("--memory-rows", type=int, default=10_000, metavar="N")
    print_tables(parser, TABLES, Options, ("numpy", "scipy"), repeat=3)


if __name__ == "__main__":
    main()
