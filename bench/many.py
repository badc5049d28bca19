"""Ridges of thousands of small data sets: `fit_many` beside loops and batched NumPy.

    python bench/many.py [TABLE ...] [--small] [--repeat N]

All ways have one thread, but for the two of the last table. What NumPy gives is equal, which is
checked first. `--small` makes a tenth of the data sets.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import pandas
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from common import interleaved, markdown_table, on_threads, print_tables
from pairgram import PairwiseELM, RankRLS, RankRLSCV, RankSVM, RankSVMCV, fit_many, threads

# Data sets, rows of each, features.
SHAPES = (
    (1_000, 20, 10),
    (1_000, 40, 20),
    (500, 100, 50),
    (500, 30, 60),
    (200, 400, 100),
)
FEW = 5  # data sets of LightGBM
Ways = Mapping[str, tuple[Callable[[], Any], int]]


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    small: bool
    repeat: int
    threads: int

    def number(self, n: int) -> int:
        """Return the number of data sets."""
        return max(n // 10, 10) if self.small else n


def make_sets(n_sets: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n_sets, n, d) and labels (n_sets, n) from 0 to 3."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_sets, n, d))
    scores = np.einsum("sij,sj->si", X, rng.normal(size=(n_sets, d))) / np.sqrt(d)
    return X, np.clip(np.round(scores + 1.5), 0.0, 3.0)


def by_hand(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the weights of one list by its centred rows: n Σ x xᵀ is the sum over pairs."""
    Z, t = X - X.mean(axis=0), y - y.mean()
    n, d = X.shape
    if n < d:
        return Z.T @ np.linalg.solve(n * Z @ Z.T + np.eye(n), n * t)
    return np.linalg.solve(n * Z.T @ Z + np.eye(d), n * t @ Z)


def batched(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the weights of all lists of one size."""
    Z, t = X - X.mean(axis=1, keepdims=True), (y - y.mean(axis=1, keepdims=True))[:, :, None]
    n, d = X.shape[1:]
    across = Z.transpose(0, 2, 1)
    if n < d:
        return (across @ np.linalg.solve(n * Z @ across + np.eye(n), n * t))[..., 0]
    return np.linalg.solve(n * across @ Z + np.eye(d), n * across @ t)[..., 0]


def by_scikit_learn(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the weights of one list by scikit-learn."""
    ridge = Ridge(1 / len(y), fit_intercept=False)
    return ridge.fit(X - X.mean(axis=0), y - y.mean()).coef_


def by_lightgbm(X: np.ndarray, y: np.ndarray) -> Any:
    """Fit LambdaMART to one list."""
    rows = lightgbm.Dataset(X, y, group=[len(y)], params={"verbose": -1})
    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    return lightgbm.train(settings, rows)


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Raise an error unless weights are equal but for rounding."""
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * abs(expected).max())


def microseconds(options: Options, ways: Ways, n_threads: int = 1) -> dict[str, str]:
    """Return how long every way takes for a data set."""
    with threads(n_threads), threadpool_limits(1, "blas"):
        times = interleaved({way: call for way, (call, _) in ways.items()}, options.repeat)
    return {way: f"{1e6 * times[way] / n:.1f}" for way, (_, n) in ways.items()}


def ways_of_shape(n_sets: int, n: int, d: int) -> Ways:
    """Return the ways to fit data sets of one shape."""
    X, y = make_sets(n_sets, n, d)
    model, keys = RankRLS(), np.repeat(np.arange(n_sets), n)
    rows, labels, listed = X.reshape(-1, d), y.ravel(), list(zip(X, y, strict=True))
    expected = batched(X, y)
    near(fit_many(model, rows, labels, by=keys).coef_, expected)
    near(fit_many(model, listed).coef_, expected)
    near(by_hand(X[0], y[0]), expected[0])
    near(by_scikit_learn(X[0], y[0]), expected[0])

    def each(fit: Callable[..., Any], some: int | None = None) -> Callable[[], Any]:
        return lambda: [fit(*one) for one in listed[:some]]

    return {
        "`fit_many`, arrays with keys": (lambda: fit_many(model, rows, labels, by=keys), n_sets),
        "`fit_many`, a list": (lambda: fit_many(model, listed), n_sets),
        "NumPy, batched": (lambda: batched(X, y), n_sets),
        "NumPy, a loop": (each(by_hand), n_sets),
        "scikit-learn's `Ridge`, a loop": (each(by_scikit_learn), n_sets),
        "LightGBM's LambdaMART, a loop": (each(by_lightgbm, FEW), FEW),
    }


def table_shapes(options: Options) -> Iterator[str]:
    """Data sets of one shape each."""
    shapes = {
        f"{options.number(n_sets):,} × ({n} × {d})": ways_of_shape(options.number(n_sets), n, d)
        for n_sets, n, d in SHAPES
    }
    columns = [microseconds(options, ways) for ways in shapes.values()]
    rows = [[way, *(column[way] for column in columns)] for way in columns[0]]
    yield "Microseconds a data set, on one thread"
    yield markdown_table(["way", *shapes], rows)


def table_users(options: Options) -> Iterator[str]:
    """Users of 5 to 200 rows in any order, beside what brings the rows of each together."""
    n_users = options.number(100_000)
    rng = np.random.default_rng(0)
    user = rng.permutation(np.repeat(np.arange(n_users), rng.integers(5, 201, n_users)))
    X, y = rng.normal(size=(len(user), 20)), rng.integers(0, 4, len(user)) * 1.0
    model = RankRLS()

    def gathered() -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(pandas.factorize(user)[0], kind="stable")
        return X[order], y[order]

    batch = fit_many(model, X, y, by=user)
    for number, key in enumerate(batch.keys[:20]):
        near(batch.coef_[number], by_hand(X[user == key], y[user == key]))
    ways: Ways = {
        "`fit_many`, keys in any order": (lambda: fit_many(model, X, y, by=user), n_users),
        "pandas' `factorize`, sort and gather, no fit": (gathered, n_users),
    }
    yield f"{n_users:,} users of 5 to 200 rows × 20: microseconds a user, on one thread"
    yield markdown_table(["way", "time"], list(microseconds(options, ways).items()))


def table_others(options: Options) -> Iterator[str]:
    """Targets, searches, nodes, and one small fit."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1_000, 50)), rng.normal(size=(1_000, options.number(2_000)))
    model, n_targets = RankRLS(), Y.shape[1]

    def by_numpy() -> np.ndarray:
        Z, n = X - X.mean(axis=0), len(X)
        return np.linalg.solve(n * Z.T @ Z + np.eye(50), n * Z.T @ (Y - Y.mean(axis=0))).T

    near(fit_many(model, X, Y).coef_, by_numpy())
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        f"{n_targets:,} targets of 1,000 × 50, `fit_many`": (
            lambda: fit_many(model, X, Y),
            n_targets,
        ),
        f"{n_targets:,} targets of 1,000 × 50, NumPy at once": (by_numpy, n_targets),
    }
    n_sets = options.number(200)
    lists = [(*one, np.arange(80) // 8) for one in zip(*make_sets(n_sets, 80, 20), strict=True)]
    single = [(*one, None) for one in zip(*make_sets(n_sets, 40, 20), strict=True)]
    for what, estimator, sets in (
        ("`RankRLSCV`, every query held out", RankRLSCV(), lists),
        ("`RankRLSCV(cv=5)`", RankRLSCV(cv=5), lists),
        ("`RankSVMCV`, 11 values of C, 5 folds", RankSVMCV(), lists),
        ("`RankSVM`", RankSVM(), single),
        ("`PairwiseELM`, 50 nodes", PairwiseELM(n_nodes=50, random_state=0), single),
    ):
        size = "80 × 20, 10 queries" if sets is lists else "40 × 20"

        def loop(one: Any = estimator, given: Any = sets) -> None:
            for rows, of_rows, qid in given:
                one.fit(rows, of_rows, qid=qid)

        ways |= {
            f"{what}: {n_sets} × ({size}), `fit_many`": (
                functools.partial(fit_many, estimator, sets),
                n_sets,
            ),
            f"{what}: a loop": (loop, n_sets),
        }
    (one,), (labels,) = make_sets(1, 30, 20)
    near(model.fit(one, labels).coef_, by_hand(one, labels))
    ways |= {
        "`RankRLS().fit`, 30 × 20": (lambda: [model.fit(one, labels) for _ in range(99)], 99),
        "NumPy by hand, 30 × 20": (lambda: [by_hand(one, labels) for _ in range(99)], 99),
    }
    yield "Microseconds a model, on one thread"
    yield markdown_table(["what", "time"], list(microseconds(options, ways).items()))


def table_threads(options: Options) -> Iterator[str]:
    """Two threads beside one."""
    lines = []
    for n_sets, n, d in SHAPES:
        number = options.number(n_sets)
        X, y = make_sets(number, n, d)
        keys, rows, labels = np.repeat(np.arange(number), n), X.reshape(-1, d), y.ravel()
        call = functools.partial(fit_many, RankRLS(), rows, labels, by=keys)
        ways: Ways = {str(k): (on_threads(k, call), number) for k in (1, 2)}
        found = microseconds(options, ways, 2)
        lines.append([f"{number:,} × ({n} × {d})", *found.values()])
    yield "Microseconds a data set, arrays with keys"
    yield markdown_table(["data sets", "one thread", "two threads"], lines)


TABLES: dict[str, Callable[[Options], Iterator[str]]] = {
    "shapes": table_shapes,
    "users": table_users,
    "others": table_others,
    "threads": table_threads,
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the data sets")
    print_tables(parser, TABLES, Options, ("numpy", "scikit-learn", "lightgbm"), repeat=5)


if __name__ == "__main__":
    main()
