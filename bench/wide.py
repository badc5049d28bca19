"""How fast wide sparse rows are fitted by least squares, and on which road.

    python bench/wide.py [TABLE ...] [--rows N] [--features N] [--large-rows N]
        [--large-features N] [--repeat N] [--threads N]

Prints a Markdown table for each question. Rows have 30 ones in columns that are drawn, and stand in
queries of 20. Columns are as they are, or multiplied by lognormal numbers (sigma 1.5), which
steps of conjugate gradients find hard. A product is one of XᵀLX with a vector. Residuals are true
ones, which NumPy and SciPy compute anew, as a share of the right-hand side; they are asserted to be
small.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

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
from data import Ranking
from pairgram import RankRLS, RankRLSCV, RankSVM, RankSVMCV
from pairgram._support.limits import limits_of
from pairgram.data.dataset import RankingData, read_labelled
from pairgram.data.pairs import Pairs
from pairgram.solvers.systems import Systems

PER_ROW, SIZE = 30, 20
# What sends every fit one way.
STEPS = {"direct_seconds": 0.0, "step_patience": np.inf}
DIRECT = {"step_patience": 0.0}
# Rows, columns, ones in a row, columns of which every row has an entry, and lognormal scales.
BORDERS = (
    (20_000, 500, 30, 0, False),
    (20_000, 2_000, 30, 0, False),
    (20_000, 2_000, 30, 5, True),
    (20_000, 2_000, 400, 0, False),
    (3_000, 30_000, 30, 0, False),
    (3_000, 30_000, 30, 5, True),
    (600, 50_000, 200, 0, False),
)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    rows: int
    features: int
    large_rows: int
    large_features: int
    repeat: int
    threads: int


def make_rows(
    n: int, d: int, per_row: int = PER_ROW, dense: int = 0, lognormal: bool = False
) -> Ranking:
    """Return sparse rows of which hidden weights, and noise, make four labels."""
    rng = np.random.default_rng(0)
    entries = n * per_row
    X: Any = sp.csr_array(
        (np.ones(entries), rng.integers(0, d, entries), np.arange(0, entries + 1, per_row)),
        shape=(n, d),
    )
    X.sum_duplicates()
    if lognormal:
        X = sp.csr_array(X @ sp.diags_array(np.exp(1.5 * rng.normal(size=d))))
    if dense:
        X = sp.csr_array(sp.hstack([rng.normal(size=(n, dense)), X[:, dense:]]))
    deviations = np.sqrt(np.maximum(np.asarray(X.power(2).mean(axis=0)), 1e-12) * d)
    score = X @ (rng.normal(size=d) / deviations) + 0.3 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(float)
    return Ranking(X, y, np.arange(n) // SIZE)


def laplacian(z: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """L z of all pairs within queries, whose rows stand together."""
    sizes = np.bincount(qid)
    return np.asarray(sizes[qid] * z - np.bincount(qid, z)[qid])


def residuals(rows: Ranking, alphas: np.ndarray, coefs: np.ndarray) -> float:
    """Return the largest share of the right-hand side that is left over."""
    X, y, qid = rows
    b = X.T @ laplacian(y, qid)
    left = [
        np.linalg.norm(b - X.T @ laplacian(X @ w, qid) - alpha * w)
        for alpha, w in zip(alphas, coefs, strict=True)
    ]
    return float(max(left) / np.linalg.norm(b))


def systems_of(rows: Ranking) -> Systems:
    """Return the system of all rows."""
    return Systems([RankingData.delimit(*read_labelled(*rows[:2]), rows.qid)], Pairs("with_ties"))


def table_one(options: Options) -> Iterator[str]:
    """One ridge and RankSVM, beside scikit-learn's least squares of single rows."""
    rows = make_rows(options.rows, options.features)
    alpha = 100.0
    ways: dict[str, Callable[[], Any]] = {
        "RankRLS": functools.partial(RankRLS(alpha).fit, *rows[:2], qid=rows.qid),
        "RankSVM": functools.partial(RankSVM(1e-2).fit, *rows[:2], qid=rows.qid),
        'scikit-learn, Ridge(solver="lsqr")': functools.partial(
            Ridge(alpha / SIZE, solver="lsqr", tol=1e-8).fit, *rows[:2]
        ),
    }
    with limits_of(**STEPS):
        left = residuals(rows, np.array([alpha]), ways["RankRLS"]().coef_[None])
        assert left < 1e-8, left
        systems = systems_of(rows)
        systems.solve(np.array([alpha]))
        times = interleaved(ways, options.repeat)
    yield f"One ridge, {_shape(rows)}, alpha = {alpha:g}"
    yield ratio_table(
        times, products={"RankRLS": f"{systems.n_products}"}, residual={"RankRLS": f"{left:.0e}"}
    )


def table_path(options: Options) -> Iterator[str]:
    """All 34 default ridges of one system, on columns as they are and of other scales."""
    lines = []
    for lognormal in (False, True):
        rows = make_rows(options.rows, options.features, lognormal=lognormal)
        largest = systems_of(rows).largest_eigenvalue()
        alphas = largest / 1e4 * 2.0 ** np.arange(15, -19, -1.0)
        time, systems, found = np.inf, None, None
        for _ in range(options.repeat):
            own = systems_of(rows)
            taken, solved = stopwatch(functools.partial(own.solve, alphas))
            if taken < time:
                time, systems, found = taken, own, solved
        left = residuals(rows, alphas, found[0])
        assert left < 1.1e-8, left
        scales = "lognormal" if lognormal else "as they are"
        lines.append([scales, f"{systems.n_products}", seconds(time), f"{left:.0e}"])
    yield f"34 ridges, {_shape(rows)}; the best of {options.repeat} runs"
    yield markdown_table(["columns", "products", "time", "largest residual"], lines)


def search_cost(model: Any, n: int, d: int) -> tuple[float, float, float]:
    """Return the seconds of a search, the rise of resident memory, and the bytes of the rows."""
    rows = make_rows(n, d)
    few = slice(0, 50 * SIZE)
    model.fit(rows.X[few], rows.y[few], qid=rows.qid[few])
    with PeakMemory() as memory:
        time, _ = stopwatch(functools.partial(model.fit, *rows[:2], qid=rows.qid))
    X = rows.X
    return time, memory.rise, float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def table_search(options: Options) -> Iterator[str]:
    """All defaults of RankRLSCV, and RankSVMCV, with memory; and many more rows and columns."""
    lines = []
    for model, n, d in (
        (RankRLSCV(), options.rows, options.features),
        (RankSVMCV(cv=3), options.rows, options.features),
        (RankRLSCV(), options.large_rows, options.large_features),
    ):
        name = type(model).__name__
        progress(f"{name}, {n:,} × {d:,}")
        time, rise, size = in_fresh_process(search_cost, model, n, d)
        # 1.5 times the rows, and for six systems 40 vectors of n_rows and 80 of n_features
        allowed = 1.5 * size + 6 * 8 * (40 * n + 80 * d)
        cells = [seconds(time), mebibytes(size), mebibytes(rise), f"{rise / allowed:.2f}"]
        lines.append([name, f"{n:,} × {d:,}", *cells])
    yield "Searches; the bound is 1.5 times the rows, 40 vectors of n and 80 of d for six systems"
    yield markdown_table(["search", "rows", "time", "CSR", "memory", "of the bound"], lines)


def table_product(options: Options) -> Iterator[str]:
    """One product, beside SciPy's two with X alone."""
    rows = make_rows(options.rows, options.features)
    p = np.random.default_rng(1).normal(size=(1, rows.X.shape[1]))
    systems = systems_of(rows)
    ours = systems.products(p, [0])[0]
    theirs = rows.X.T @ laplacian(rows.X @ p[0], rows.qid)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * abs(theirs).max())
    ways: dict[str, Callable[[], Any]] = {
        f"XᵀLXp, {options.threads} threads": lambda: systems.products(p, [0]),
        "SciPy, Xᵀ(Xp)": lambda: rows.X.T @ (rows.X @ p[0]),
    }
    yield f"A product, {_shape(rows)}"
    yield ratio_table(interleaved(ways, 3 * options.repeat))


def table_borders(options: Options) -> Iterator[str]:
    """The road that the shape chooses, beside both roads."""
    share, lines = options.rows / 160_000, []
    for n, d, per_row, dense, lognormal in BORDERS:
        n, d = max(SIZE * 10, int(share * n)), max(60, int(share * d))
        rows = make_rows(n, d, min(per_row, d // 4), dense, lognormal)
        what = f"{_shape(rows)}{', lognormal' * lognormal}{f', {dense} dense' if dense else ''}"
        for name, model in (
            ("one ridge", RankRLS(1.0)),
            ("cv=None", RankRLSCV()),
            ("cv=5", RankRLSCV(cv=5)),
        ):
            progress(f"{what}, {name}")
            times = {}
            for road, limits in (("chosen", {}), ("direct", DIRECT), ("steps", STEPS)):
                with limits_of(**limits):
                    fit = functools.partial(model.fit, *rows[:2], qid=rows.qid)
                    times[road] = min(stopwatch(fit)[0] for _ in range(min(3, options.repeat)))
            ratio = times["chosen"] / min(times.values())
            lines.append([what, name, *map(seconds, times.values()), f"{ratio:.1f}"])
    yield "The chosen road beside the others; the ratio is to the fastest"
    yield markdown_table(["rows", "fit", "chosen", "direct", "steps", "ratio"], lines)


def _shape(rows: Ranking) -> str:
    n, d = rows.X.shape
    return f"{n:,} × {d:,}, {rows.X.nnz / n:.0f} entries a row"


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "one": table_one,
    "path": table_path,
    "search": table_search,
    "product": table_product,
    "borders": table_borders,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print tables of fits of wide sparse rows.")
    for name, number in (
        ("--rows", 160_000),
        ("--features", 20_000),
        ("--large-rows", 400_000),
        ("--large-features", 100_000),
    ):
        parser.add_argument(name, type=int, default=number, metavar="N")
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn"), repeat=3)


if __name__ == "__main__":
    main()
