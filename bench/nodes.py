"""How fast extreme learning machines are, beside NumPy by hand and scikit-learn.

    python bench/nodes.py [TABLE ...] [--repeat N] [--threads N]

Prints a Markdown table for each question, on made data. Results are asserted to be equal before
anything is timed. Times are medians of runs that alternate between the ways; "ratio" is a way's
time divided by pairgram's.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from scipy.linalg import blas
from sklearn.model_selection import KFold
from sklearn.neural_network import _base as sklearn_activations
from threadpoolctl import threadpool_limits

from common import (
    PeakMemory,
    in_fresh_process,
    interleaved,
    markdown_table,
    mebibytes,
    on_threads,
    print_tables,
    ratio_table,
)
from pairgram import ELMRankCV, Pairgram, RandomNodes, RankRLS, _core, fit_many

N_ROWS, N_FEATURES, LENGTH, N_NODES = 42_000, 46, 40, 1_000


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    threads: int


def make_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X in [0, 1], graded labels, and ids of queries of 40 rows."""
    rng = np.random.default_rng(0)
    X = rng.random((N_ROWS, N_FEATURES))
    y = rng.integers(0, 3, N_ROWS).astype(float)
    return X, y, np.repeat(np.arange(N_ROWS // LENGTH), LENGTH)


# Gram matrix of hidden nodes ------------------------------------------------------------------


def nodes_by_hand(X: np.ndarray, y: np.ndarray, nodes: RandomNodes) -> np.ndarray:
    """Map all rows, centre them per query, and multiply by syrk: (n_nodes, n_nodes), upper."""
    H = scipy.special.expit(X @ nodes.weights_ + nodes.bias_)
    groups = H.reshape(-1, LENGTH, N_NODES)
    groups -= groups.mean(axis=1, keepdims=True)
    return blas.dsyrk(LENGTH, H.T)


def table_gram(options: Options) -> Iterator[str]:
    """The fused Gram matrix beside dsyrk on the ready matrix, and NumPy with H in memory."""
    X, y, qid = make_rows()
    nodes = RandomNodes(N_NODES, "sigmoid", random_state=0).fit(X)
    H = nodes.transform(X)

    def ours(feature_map: Any, rows: np.ndarray) -> Pairgram:
        return Pairgram.from_rows(rows, y, qid=qid, feature_map=feature_map)

    expected = np.triu(nodes_by_hand(X, y, nodes))
    found = np.triu(ours(nodes, X).G)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * expected.max())
    ways = {
        "pairgram, mapped on the way": lambda: ours(nodes, X),
        "SciPy's dsyrk alone, H ready": lambda: blas.dsyrk(1.0, H.T),
        "pairgram, H ready": lambda: ours(None, H),
        "NumPy and SciPy, H in memory": lambda: nodes_by_hand(X, y, nodes),
    }
    times = interleaved(ways, options.repeat)
    memory = {
        way: mebibytes(in_fresh_process(_gram_memory, way))
        for way in ("pairgram, mapped on the way", "NumPy and SciPy, H in memory")
    }
    yield f"Gram matrix of {N_NODES:,} sigmoid nodes, n = {N_ROWS:,}, d = {N_FEATURES}"
    yield ratio_table(times, **{"RSS rise": memory})


def _gram_memory(way: str) -> float:
    X, y, qid = make_rows()
    nodes = RandomNodes(N_NODES, "sigmoid", random_state=0).fit(X)
    small = slice(0, 10 * LENGTH)
    works: Mapping[str, Callable[[slice], Any]] = {
        "pairgram, mapped on the way": lambda rows: Pairgram.from_rows(
            X[rows], y[rows], qid=qid[rows], feature_map=nodes
        ),
        "NumPy and SciPy, H in memory": lambda rows: nodes_by_hand(X[rows], y[rows], nodes),
    }
    works[way](small)
    with PeakMemory() as memory:
        works[way](slice(None))
    return memory.rise


# Linear nodes ---------------------------------------------------------------------------------


def table_linear(options: Options) -> Iterator[str]:
    """Linear nodes beside the plain model on the inputs."""
    X, y, qid = make_rows()
    models: dict[str, Any] = {"RankRLS on the inputs": RankRLS()}
    for n_nodes in (N_NODES, 100_000):
        nodes = RandomNodes(n_nodes, "linear", random_state=0)
        models[f"{n_nodes:,} linear nodes"] = RankRLS(feature_map=nodes)
    explicit = nodes.set_params(n_nodes=N_NODES).fit_transform(X)
    models[f"{N_NODES:,} linear nodes as values"] = RankRLS()
    nodes.set_params(n_nodes=100_000)
    fits = {
        name: functools.partial(model.fit, explicit if "values" in name else X, y, qid=qid)
        for name, model in models.items()
    }
    scores = [fits[name]().predict(explicit if "values" in name else X) for name in list(fits)]
    np.testing.assert_allclose(scores[1], scores[3], rtol=0, atol=1e-8)
    slow = {name: fits.pop(name) for name in list(fits) if "values" in name}
    yield f"Fit, n = {N_ROWS:,}, d = {N_FEATURES}"
    yield ratio_table(interleaved(fits, options.repeat) | interleaved(slow, options.repeat))


# Activations ----------------------------------------------------------------------------------


def table_activations(options: Options, n_values: int = 1 << 14) -> Iterator[str]:
    """Nanoseconds per float64 value on one thread, values in the cache."""
    z = np.random.default_rng(0).normal(scale=3, size=n_values)
    out = np.empty_like(z)
    peers: dict[str, dict[str, Callable[[], Any]]] = {
        "exp": {"NumPy": lambda: np.exp(z, out=out)},
        "sigmoid": {
            "SciPy": lambda: scipy.special.expit(z, out=out),
            "scikit-learn": lambda: _in_place(sklearn_activations.inplace_logistic, z, out),
        },
        "tanh": {"NumPy": lambda: np.tanh(z, out=out)},
        "cos": {"NumPy": lambda: np.cos(z, out=out)},
        "sin": {"NumPy": lambda: np.sin(z, out=out)},
    }
    rows = []
    with threadpool_limits(1):
        copies: Callable[[], Any] = functools.partial(_in_place, _nothing, z, out)
        for name, ways in peers.items():
            ours = functools.partial(_core.apply_activation, name)
            every = {"pairgram": lambda f=ours: _in_place(f, z, out), **ways}
            expected = {way: np.array(_result(every[way], out)) for way in every}
            for values in expected.values():
                np.testing.assert_allclose(values, expected["pairgram"], rtol=1e-13, atol=1e-15)
            times = _time_of({**every, "copy": copies})
            in_place = ("pairgram", "scikit-learn")
            for way in in_place:
                if way in times:
                    times[way] -= times["copy"]
            speeds = {way: 1e9 * times[way] / n_values for way in every}
            rows.append(
                [name, f"{speeds['pairgram']:.2f}"]
                + [
                    f"{speeds[way]:.2f} ({speeds[way] / speeds['pairgram']:.1f}×)"
                    if way in speeds
                    else ""
                    for way in ("NumPy", "SciPy", "scikit-learn")
                ]
            )
    yield "Activations, ns per float64 value, one thread, 128 KiB of values"
    yield markdown_table(["function", "pairgram", "NumPy", "SciPy", "scikit-learn"], rows)


def _time_of(ways: Mapping[str, Callable[[], Any]], n_calls: int = 50) -> dict[str, float]:
    """Return the median seconds of one call, of many in a row."""
    rows = {way: lambda f=f: [f() for _ in range(n_calls)] for way, f in ways.items()}
    return {way: time / n_calls for way, time in interleaved(rows, 25, pause=0).items()}


def _in_place(function: Callable[[np.ndarray], Any], z: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, z)
    function(out)


def _nothing(values: np.ndarray) -> None:
    pass


def _result(function: Callable[[], Any], out: np.ndarray) -> np.ndarray:
    function()
    return out


# Many small problems --------------------------------------------------------------------------


def make_problems(n_problems: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return problems of 100 rows and 10 features with real labels."""
    rng = np.random.default_rng(0)
    problems = []
    for _ in range(n_problems):
        X = rng.random((100, 10))
        problems.append((X, X @ rng.normal(size=10) + 0.1 * rng.normal(size=100)))
    return problems


def elm_rank_by_hand(X: np.ndarray, y: np.ndarray, model: ELMRankCV) -> np.ndarray:
    """Return the mean squared difference of every (alpha, C) by one eigh per fold, in NumPy."""
    nodes = model.feature_map_
    H = scipy.special.expit(X @ nodes.weights_ + nodes.bias_)
    alphas, Cs = model.alphas_[:, None, None], model.Cs_[:, None]
    total = np.zeros((len(model.alphas_), len(model.Cs_)))
    folds = KFold(model.cv, shuffle=True, random_state=0)
    for train, test in folds.split(X):
        centred, labels = H[train] - H[train].mean(axis=0), y[train] - y[train].mean()
        values, vectors = scipy.linalg.eigh(2 / len(train) * centred.T @ centred, driver="evd")
        a = values + alphas
        weights = a / (a**2 + 1 / Cs) * (vectors.T @ (2 / len(train) * labels @ centred))
        scores = weights @ (H[test] @ vectors).T
        errors = y[test] - scores
        total += errors.var(axis=-1) * 2
    return total / model.cv


def _all_by_hand(problems: list[tuple[np.ndarray, np.ndarray]], model: ELMRankCV) -> None:
    """Do so with BLAS held to one thread: others only wait for each other at this size."""
    with threadpool_limits(1, "blas"):
        for X, y in problems:
            elm_rank_by_hand(X, y, model)


def table_many(options: Options, n_problems: int = 300) -> Iterator[str]:
    """ELMRankCV: 7 × 25 grid, 10 folds, n = 100, 100 nodes, for one problem and for many."""
    problems = make_problems(n_problems)
    model = ELMRankCV(cv=10, random_state=0)
    X, y = problems[0]
    expected = elm_rank_by_hand(X, y, model.fit(X, y))
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-6)

    few = problems[:30]
    ways: dict[str, Callable[[], Any]] = {
        f"fit_many, {threads} thread{'s'[: threads - 1]}": on_threads(
            threads, lambda: fit_many(model, problems)
        )
        for threads in dict.fromkeys((options.threads, 1))
    }
    times = {
        way: t / n_problems for way, t in interleaved(ways, max(3, options.repeat // 3)).items()
    }
    loops = {
        f"fit, one after the other, splits in {options.threads} threads": lambda: [
            model.fit(X, y) for X, y in few
        ],
        "NumPy, an eigh per fold, 1 thread": functools.partial(_all_by_hand, few, model),
    }
    times |= {
        way: t / len(few) for way, t in interleaved(loops, max(3, options.repeat // 3)).items()
    }
    yield f"ELMRankCV, 175 settings × 10 folds, n = 100, 100 nodes: per problem, of {n_problems}"
    yield ratio_table(times)


# ----------------------------------------------------------------------------------------------


TABLES: Mapping[str, Callable[[Options], Iterator[str]]] = {
    "gram": table_gram,
    "linear": table_linear,
    "activations": table_activations,
    "many": table_many,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print tables of times of hidden nodes.")
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn"))


if __name__ == "__main__":
    main()
