"""The ranker without settings: quality on made data beside LightGBM, and how it keeps to its time.

    python bench/automatic.py [--seeds N] [--threads N]
    python bench/automatic.py --budgets [SECONDS ...] [--busy N]

The first prints quality beside six settings of LightGBM, the second how long fits take beside their
time budgets, while N other processes are busy.

The data have the shape of LightGBM's example of ranking: 200 queries x 15 documents, 300 sparse
features and interactions; see `data.make_interactions`. Each seed makes 200 more queries to test
on. LightGBM trains 100 rounds of lambdarank. "Ahead of LightGBM" compares with the one setting that
is the best in the mean of all test queries, which nobody could have known before.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import scipy.sparse

import pairgram
from common import machine_line, markdown_table, progress, seconds, stopwatch, use_threads
from data import Ranking, make_interactions

N_TRAINING = 200
LIGHTGBM = tuple(itertools.product((7, 15, 31), (0.05, 0.1)))  # leaves, learning rate
ROUNDS = 100

Train = Callable[[Ranking], Callable[[np.ndarray], np.ndarray]]


def automatic(data: Ranking) -> Callable[[np.ndarray], np.ndarray]:
    """Fit the ranker without settings."""
    return pairgram.AutoRanker().fit(data.X, data.y, qid=data.qid).predict


def linear(data: Ranking) -> Callable[[np.ndarray], np.ndarray]:
    """Fit the linear default."""
    return pairgram.RankRLSCV().fit(data.X, data.y, qid=data.qid).predict


def boosted(leaves: int, rate: float, threads: int) -> Train:
    """Return the training of one setting of LightGBM."""

    def train(data: Ranking) -> Callable[[np.ndarray], np.ndarray]:
        import lightgbm

        parameters = {
            "objective": "lambdarank",
            "num_leaves": leaves,
            "learning_rate": rate,
            "num_threads": threads,
            "seed": 0,
            "deterministic": True,
            "verbosity": -1,
        }
        group = np.bincount(data.qid)
        booster = lightgbm.train(parameters, lightgbm.Dataset(data.X, data.y, group=group), ROUNDS)
        return booster.predict

    return train


def split(seed: int) -> tuple[Ranking, Ranking]:
    """Return the training and the test queries of a seed."""
    data = make_interactions(seed, 2 * N_TRAINING)
    first = data.qid < N_TRAINING
    return Ranking(*(part[first] for part in data)), Ranking(
        data.X[~first], data.y[~first], data.qid[~first] - N_TRAINING
    )


def measured(ways: dict[str, Train], n_seeds: int) -> dict[str, tuple[list, float]]:
    """Return the mean NDCG@10 on the test queries of every seed, and the mean seconds."""
    metric = pairgram.get_metric("ndcg@10")
    values: dict[str, list[float]] = {way: [] for way in ways}
    times = dict.fromkeys(ways, 0.0)
    for seed in range(n_seeds):
        training, test = split(seed)
        for way, train in ways.items():
            progress(f"seed {seed}: {way}")
            time, predict = stopwatch(functools.partial(train, training))
            times[way] += time / n_seeds
            values[way].append(float(metric(test.y, predict(test.X), test.qid)))
    return {way: (values[way], times[way]) for way in ways}


# Rows, columns and rows of a query.
SHAPES = ((3_500, 28, 20), (1_500, 12, 20), (1_500, 12, 375), (50_000, 136, 50))
WIDE = (20_000, 6_000, 30)  # rows, columns and ones in a row


def made_rows(n_rows: int, n_columns: int, size: int) -> Ranking:
    """Return rows whose labels are a sum of two columns and a product of two others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    score = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n_rows)
    return Ranking(X, _grades(score), np.arange(n_rows) // size)


def wide_rows(n_rows: int, n_columns: int, n_ones: int) -> Ranking:
    """Return sparse rows of ones, in queries of 20 rows."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, n_columns, n_rows * n_ones)
    places = (np.repeat(np.arange(n_rows), n_ones), columns)
    X = scipy.sparse.csr_array((np.ones(len(columns)), places), shape=(n_rows, n_columns))
    score = X @ rng.normal(size=n_columns) + rng.normal(size=n_rows)
    return Ranking(X, _grades(score), np.arange(n_rows) // 20)


def _grades(score: np.ndarray) -> np.ndarray:
    return np.digitize(score, np.quantile(score, [0.6, 0.85, 0.95])).astype(float)


def kept_times(budgets: list[float], busy: int) -> str:
    """Return the table of the seconds that fits took, while other processes were busy."""
    data = {f"{n} x {d}, queries of {size}": made_rows(n, d, size) for n, d, size in SHAPES}
    data[f"{WIDE[0]} x {WIDE[1]}, CSR"] = wide_rows(*WIDE)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        rows = []
        for name, ranking in data.items():
            row = [name]
            for budget in budgets:
                model = pairgram.AutoRanker(time_budget=budget)
                fit = functools.partial(model.fit, ranking.X, ranking.y, qid=ranking.qid)
                time, _ = stopwatch(fit)
                first = model.trials_["seconds"][0]
                alone = f" (the first trial {first:.2f})" if first > budget else ""
                made = int(np.isfinite(model.trials_["score"]).sum())
                row.append(f"{time:.2f}{alone}, {made} trials")
                progress(f"{name}, {budget:g} s: {row[-1]}")
                assert time <= max(1.1 * budget, 1.1 * first) + 0.2, "the budget does not hold"
            rows.append(row)
    finally:
        for process in others:
            process.kill()
    return markdown_table(["rows", *(f"{budget:g} s" for budget in budgets)], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare the automatic ranker with LightGBM.")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--threads", type=int, metavar="N", help="of pairgram and LightGBM")
    parser.add_argument(
        "--budgets", type=float, nargs="*", metavar="SECONDS", help="print times beside budgets"
    )
    parser.add_argument("--busy", type=int, default=2, metavar="N", help="other processes")
    arguments = parser.parse_args()
    threads = use_threads(arguments.threads)
    if arguments.budgets is not None:
        print(machine_line(("numpy", "scipy")))
        print(kept_times(arguments.budgets or [0.3, 1.0, 2.0, 10.0], arguments.busy))
        return
    print(machine_line(("numpy", "scipy", "lightgbm")))
    ways = {"AutoRanker": automatic, "RankRLSCV, linear": linear}
    peers = {
        f"LightGBM, {leaves} leaves, rate {rate}": boosted(leaves, rate, threads)
        for leaves, rate in LIGHTGBM
    }
    found = measured(ways | peers, arguments.seeds)
    best = max(peers, key=lambda way: np.mean(found[way][0]))
    rows = []
    for way, (values, time) in found.items():
        ahead = np.subtract(values, found[best][0])
        error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.nan
        lead = "" if way == best else f"{ahead.mean():+.4f} ± {error:.4f}"
        rows.append([way, f"{np.mean(values):.4f}", lead, seconds(time)])
    print(f"\nNDCG@10 of test queries, mean of {arguments.seeds} seeds; ± standard errors\n")
    header = ["way", "NDCG@10", f"ahead of {best}", "time"]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
