"""How fast RankSVM and its feature maps are, beside NumPy by hand and scikit-learn.

    python bench/ranksvm.py [TABLE ...] [--repeat N] [--threads N]
        [--data FOLDER] [--pictures FOLDER]

Prints a Markdown table for each question. Data a is that of bench/data.py; the rest is made, of the
shape of MQ2007's fold 1 (42,158 rows of 46 features in 1,017 queries) or as said. Objectives and
features are asserted to be equal before anything is timed. Times are medians of runs that alternate
between the ways; "ratio" is a way's time divided by pairgram's.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem as SklearnNystroem, RBFSampler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import data
from common import (
    PeakMemory,
    in_fresh_process,
    interleaved,
    markdown_table,
    mebibytes,
    print_tables,
    progress,
    ratio_table,
    seconds,
    stopwatch,
)
from pairgram import Nystroem, RandomFourier, RankSVM, threads
from pairgram.data.blocks import Arrays
from pairgram.data.dataset import RankingData, read_labelled
from pairgram.solvers.svm_training import SolverSettings, Training

sys.path.insert(0, str(Path(__file__).parent / "papers"))

N_ROWS, N_FEATURES, N_QUERIES = 42_158, 46, 1_017
C, GAMMA, N_COMPONENTS = 2.0**-3, 2.0**-5, 2_000
FURTHER_CS = 2.0 ** np.array([-4.0, -2, 0, 4])
ROW_COUNTS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COMPONENT_COUNTS = (250, 500, 1_000, 2_000, 4_000)
FEW_COMPONENTS = 250  # beside the growing number of rows


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path
    pictures: Path
    repeat: int
    threads: int


def make_rows(n_rows: int = N_ROWS, n_queries: int = N_QUERIES) -> data.Ranking:
    """Return rows with features in [0, 1] and three labels, of queries of nearly equal length."""
    made = data.make(n_rows, N_FEATURES, 1)
    qid = np.arange(n_rows) * n_queries // n_rows
    return data.Ranking(made.X, np.minimum(made.y, 2.0), qid)


# Linear ---------------------------------------------------------------------------------------


def pair_matrix(y: np.ndarray, qid: np.ndarray) -> sp.csr_array:
    """Return a row ``e_i − e_j`` for every preference pair; rows of a query stand together."""
    winners, losers = [], []
    for rows in np.split(np.arange(len(y)), np.flatnonzero(np.diff(qid)) + 1):
        i, j = np.nonzero(y[rows][:, None] > y[rows])
        winners.append(rows[i])
        losers.append(rows[j])
    i, j = np.concatenate(winners), np.concatenate(losers)
    columns, signs = np.column_stack([i, j]).ravel(), np.tile([1.0, -1.0], len(i))
    return sp.csr_array((signs, columns, np.arange(0, 2 * len(i) + 1, 2)), (len(i), len(y)))


def objective(w: np.ndarray, X: np.ndarray, A: sp.csr_array, C: float) -> float:
    """½ ‖w‖² + C Σ max(0, 1 − (f_i − f_j))² over explicit pairs."""
    slack = np.maximum(1 - A @ (X @ w), 0)
    return float(0.5 * w @ w + C * slack @ slack)


def newton_by_hand(
    X: np.ndarray, y: np.ndarray, qid: np.ndarray, C: float, tol: float
) -> np.ndarray:
    """Truncated Newton as in Chapelle and Keerthi 2010: explicit pairs, plain CG, halved steps."""
    A = pair_matrix(y, qid)
    w, first = np.zeros(X.shape[1]), None
    while True:
        slack = np.maximum(1 - A @ (X @ w), 0)
        gradient = w - 2 * C * (X.T @ (A.T @ slack))
        norm = np.linalg.norm(gradient)
        first = norm if first is None else first
        if norm <= tol * first:
            return w
        active = A[slack > 0]
        step, residual = np.zeros_like(w), -gradient
        direction, size = residual, norm**2
        while size > (0.1 * norm) ** 2:
            product = direction + 2 * C * (X.T @ (active.T @ (active @ (X @ direction))))
            length = size / (direction @ product)
            step, residual = step + length * direction, residual - length * product
            before, size = size, residual @ residual
            direction = residual + size / before * direction
        value, t = objective(w, X, A, C), 1.0
        while objective(w + t * step, X, A, C) > value:
            t /= 2
        w = w + t * step


def linear_svc(X: np.ndarray, y: np.ndarray, qid: np.ndarray, C: float, tol: float) -> np.ndarray:
    """scikit-learn's LinearSVC on explicit differences of rows, every second one turned round."""
    differences = pair_matrix(y, qid) @ X
    signs = np.where(np.arange(len(differences)) % 2, 1.0, -1.0)
    model = LinearSVC(C=C, dual=False, fit_intercept=False, tol=tol)
    fitted: np.ndarray = model.fit(differences * signs[:, None], signs).coef_[0]
    return fitted


def table_linear(options: Options, C: float = 0.01, tol: float = 1e-3) -> Iterator[str]:
    """Linear RankSVM on data a, beside explicit pairs in NumPy; and LinearSVC on 50 queries."""
    whole = data.load("a", options.data)
    part = data.Ranking(*(array[: 50 * 100] for array in whole))
    for rows, peers in (
        (whole, {"NumPy and SciPy, explicit pairs": newton_by_hand}),
        (part, {"NumPy and SciPy, explicit pairs": newton_by_hand, "LinearSVC": linear_svc}),
    ):
        model = RankSVM(C, tol=tol)
        ways: dict[str, Callable[[], Any]] = {
            f"pairgram, {options.threads} threads": functools.partial(
                model.fit, rows.X, rows.y, qid=rows.qid
            )
        }
        ways |= {name: functools.partial(peer, *rows, C, tol) for name, peer in peers.items()}
        A = pair_matrix(rows.y, rows.qid)
        values = {}
        for name, way in ways.items():
            found = way()
            values[name] = objective(getattr(found, "coef_", found), rows.X, A, C)
        ours, *theirs = values.values()
        assert all(ours <= other * (1 + 1e-5) for other in theirs), values
        times = interleaved(ways, options.repeat)
        shown = {name: f"{value:.8g}" for name, value in values.items()}
        yield (
            f"RankSVM, n = {len(rows.y):,}, d = {rows.X.shape[1]}, {A.shape[0]:,} pairs, C = {C}, "
            f"relative gradient {tol:g}: {model.n_hessian_products_} Hessian products"
        )
        yield ratio_table(times, objective=shown)


# Kernel features ------------------------------------------------------------------------------


def feature_maps(n_components: int = N_COMPONENTS) -> dict[str, Any]:
    """Return the maps of the kernel tables."""
    named = {"gamma": GAMMA, "random_state": 0}
    return {
        "Fourier": RandomFourier(n_components, **named),
        "Nyström": Nystroem(n_components=n_components, **named),
    }


def table_kernel(options: Options) -> Iterator[str]:
    """Map and training at m = 2,000, its parts, and every further C from the last solution.

    The parts of a fit have no public names.
    """
    rows = make_rows()
    settings = SolverSettings("squared_hinge", "pairs", 1e-3, 100)
    lines, further = [], []
    for name, feature_map in feature_maps().items():
        ways: dict[str, Callable[[], Any]] = {
            "fit": functools.partial(feature_map.fit, rows.X),
            "transform": functools.partial(feature_map.transform, rows.X),
            "all": functools.partial(
                RankSVM(C, feature_map=feature_map).fit,
                *rows[:2],
                qid=rows.qid,
            ),
        }
        model = [way() for way in ways.values()][-1]
        mapped = replace(
            RankingData.delimit(*read_labelled(*rows[:2]), rows.qid), feature_map=feature_map
        )
        make = functools.partial(Training.make, Arrays.of(mapped), settings, exact=False)
        ways["make"] = make
        ways["predict"] = functools.partial(model.predict, rows.X)
        times = interleaved(ways, max(3, options.repeat // 3))
        counts = [f"{model.n_iter_}", f"{model.n_hessian_products_}"]
        lines.append([name, *(seconds(time) for time in times.values()), *counts])

        training = make()
        for count, weight in enumerate(FURTHER_CS.tolist(), 1):
            solve = functools.partial(training.solve, [training.whole()], FURTHER_CS[:count])
            time, (_, histories) = stopwatch(solve)
            cells = [f"2^{np.log2(weight):.0f}", seconds(time), f"{len(histories[-1].step)}"]
            further.append([name, *cells, f"{histories[-1].n_hessian_products.sum()}"])
    header = ["fitting the map", "transform", "RankSVM, map included"]
    header += ["of it features and Gram matrix", "predict", "Newton steps"]
    yield f"m = {N_COMPONENTS:,}, n = {N_ROWS:,}, d = {N_FEATURES}, C = 2^{np.log2(C):.0f}"
    yield markdown_table(["features", *header, "Hessian products"], lines)
    yield "Each C from the solution before; features, and a Gram matrix of a sample, shared"
    header = ["features", "C", "time with those before", "Newton steps", "Hessian products"]
    yield markdown_table(header, further)


def table_maps(options: Options) -> Iterator[str]:
    """Random Fourier and Nyström features beside scikit-learn's, by threads and precision."""
    X = make_rows().X
    named = {"gamma": GAMMA, "random_state": 0}
    for name, theirs, n_components in (
        ("Fourier", RBFSampler(n_components=N_COMPONENTS, **named), N_COMPONENTS),
        ("Nyström", SklearnNystroem(n_components=500, **named), 500),
    ):
        for dtype in (np.float64, np.float32):
            rows = X.astype(dtype)
            theirs.fit(rows)
            lines = []
            for n_threads in dict.fromkeys((1, options.threads)):
                ours = feature_maps(n_components)[name].fit(rows)
                _check_kernel(ours, theirs, rows[:200])
                ways = {"ours": lambda m=ours, r=rows: m.transform(r)}
                ways["theirs"] = lambda m=theirs, r=rows: m.transform(r)
                with threads(n_threads), threadpool_limits(n_threads):
                    times = interleaved(ways, max(3, options.repeat // 2))
                ratio = times["theirs"] / times["ours"]
                cells = [seconds(time) for time in times.values()]
                lines.append([f"{n_threads}", *cells, f"{ratio:.1f}"])
            peer = type(theirs).__name__
            yield f"{name} map, {len(X):,} × {N_FEATURES} → {n_components:,}, {dtype.__name__}"
            yield markdown_table(["threads", "pairgram", f"scikit-learn's {peer}", "ratio"], lines)


def _check_kernel(ours: Any, theirs: Any, rows: np.ndarray) -> None:
    """Assert that two maps have the same inner products."""
    a, b = (np.asarray(m.transform(rows), dtype=np.float64) for m in (ours, theirs))
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=2e-3 if rows.dtype == np.float32 else 1e-6)


# Growth ---------------------------------------------------------------------------------------


def fit_cost(n_rows: int, n_components: int) -> tuple[float, float]:
    """Return the seconds of a fit and the rise of resident memory above the loaded rows."""
    rows = make_rows(n_rows, max(1, n_rows // 40))
    feature_map = feature_maps(n_components)["Fourier"] if n_components else None
    model = RankSVM(C, feature_map=feature_map)
    model.fit(rows.X[:2000], rows.y[:2000], qid=rows.qid[:2000])
    with PeakMemory() as memory:
        time, _ = stopwatch(functools.partial(model.fit, rows.X, rows.y, qid=rows.qid))
    return time, memory.rise


def table_growth(options: Options) -> Iterator[str]:
    """Time and memory against rows and against features, as tables and as a picture."""
    from shared import picture

    costs = {}
    for n_components in (0, FEW_COMPONENTS):
        for n_rows in ROW_COUNTS:
            progress(f"n = {n_rows:,}, m = {n_components}")
            cost = in_fresh_process(fit_cost, n_rows, n_components)
            costs[n_rows, n_components] = cost
    for n_components in COMPONENT_COUNTS:
        progress(f"m = {n_components:,}")
        cost = in_fresh_process(fit_cost, N_ROWS, n_components)
        costs[N_ROWS, n_components] = cost

    def lines(keys: list[tuple[int, int]]) -> list[list[str]]:
        return [[seconds(costs[key][0]), mebibytes(costs[key][1])] for key in keys]

    by_rows = [
        [f"{n:,}", *linear, *fourier]
        for n, linear, fourier in zip(
            ROW_COUNTS,
            lines([(n, 0) for n in ROW_COUNTS]),
            lines([(n, FEW_COMPONENTS) for n in ROW_COUNTS]),
            strict=True,
        )
    ]
    yield f"Against rows, d = {N_FEATURES}: linear, and m = {FEW_COMPONENTS} Fourier features"
    few = f"m = {FEW_COMPONENTS}"
    yield markdown_table(["n", "linear", "memory", few, "memory"], by_rows)
    keys = [(N_ROWS, m) for m in COMPONENT_COUNTS]
    yield f"Against Fourier features, n = {N_ROWS:,}"
    found = zip(COMPONENT_COUNTS, lines(keys), strict=True)
    yield markdown_table(["m", "time", "memory"], [[f"{m:,}", *cells] for m, cells in found])
    with picture(options.pictures, "ranksvm_growth", 2, 2) as axes:
        for cost, (unit, size) in enumerate((("seconds", 1.0), ("MiB", 2.0**20))):
            of_rows, of_features = axes[cost]
            for n_components, label in ((0, "linear"), (FEW_COMPONENTS, few)):
                values = [costs[n, n_components][cost] / size for n in ROW_COUNTS]
                of_rows.loglog(ROW_COUNTS, values, marker=".", label=label)
            of_rows.set(xlabel="rows", ylabel=unit)
            of_rows.legend()
            values = [costs[key][cost] / size for key in keys]
            of_features.loglog(COMPONENT_COUNTS, values, marker=".")
            of_features.set(xlabel=f"Fourier features of {N_ROWS:,} rows", ylabel=unit)


# ----------------------------------------------------------------------------------------------


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "linear": table_linear,
    "kernel": table_kernel,
    "maps": table_maps,
    "growth": table_growth,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print tables of times of RankSVM.")
    parser.add_argument("--data", type=Path, default=data.DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--pictures", type=Path, default=Path("build/bench"), metavar="FOLDER")
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn"))


if __name__ == "__main__":
    main()
