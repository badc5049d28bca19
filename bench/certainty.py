"""How sure scores are: whether intervals hold what they claim, and what they take.

    python bench/certainty.py [TABLE ...] [--data FOLDER] [--seeds N] [--repeat N] [--threads N]

Prints a Markdown table for each question. A difference of two scores, or of two labels, lies within
z deviations of the predicted one as often as a normal variable does, if the model is right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from common import interleaved, markdown_table, print_tables, ratio_table
from pairgram import RankRLS, RankRLSCV, propose

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from qsar import load_qsar

LEVELS = np.array([0.5, 0.8, 0.9, 0.95])


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path | None
    seeds: int
    repeat: int
    threads: int


def covered(errors: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the share of errors within the intervals of each level, (n_levels,)."""
    reach = deviations[:, None] * norm.ppf((1 + LEVELS) / 2)
    return (np.abs(errors)[:, None] <= reach).mean(axis=0)


def pairs_of(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 2,000 pairs of different rows."""
    first = rng.integers(0, n_rows, 2000)
    return first, (first + rng.integers(1, n_rows, 2000)) % n_rows


class Made:
    """Lists with true scores: linear, smooth or with noise of two sizes."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_lists, n_rows = 40, 12
        X = rng.normal(size=(n_lists * n_rows, 6))
        self.qid = np.repeat(np.arange(n_lists), n_rows)
        if kind == "smooth":
            squares = ((X[:, None] - X) ** 2).sum(axis=2)
            root = np.linalg.cholesky(np.exp(-0.05 * squares) + 1e-8 * np.eye(len(X)))
            self.truth = root @ rng.normal(size=len(X))
        else:
            self.truth = X @ rng.normal(size=6)
        noise = rng.normal(size=len(X))
        if kind == "two sizes of noise":
            noise *= np.where(rng.random(len(X)) < 0.2, 2.0, 0.4)
        self.X = X
        self.y = self.truth + noise + 3.0 * rng.normal(size=n_lists)[self.qid]
        setting = {"kernel": "rbf", "gamma": 0.05} if kind == "smooth" else {}
        self.model = RankRLS(1.0, weighting="documents", keep_covariance=True, **setting)
        self.search = RankRLSCV(weighting="documents", keep_covariance=True, **setting)
        self.search.set_params(scoring="pairwise_squared_error")


def coverage(options: Options) -> Iterator[str]:
    """Share of differences within their intervals."""
    rows = []
    for kind in ("linear", "smooth", "two sizes of noise"):
        for name in ("model", "search"):
            of_truth, of_labels = [], []
            for seed in range(options.seeds):
                data, rng = Made(kind, seed), np.random.default_rng(seed)
                train = data.qid < 30
                estimator = getattr(data, name)
                estimator.fit(data.X[train], data.y[train], qid=data.qid[train])
                X, truth, y = (part[~train] for part in (data.X, data.truth, data.y))
                i, j = pairs_of(len(X), rng)
                f, deviations = estimator.predict(X), estimator.std_of_differences(X[i], X[j])
                of_truth.append(covered(truth[i] - truth[j] - f[i] + f[j], deviations))
                own = 12 * (i // 12) + (i + 1 + j % 11) % 12  # another row of the same list
                squares = estimator.std_of_differences(X[i], X[own]) ** 2
                deviations = np.sqrt(squares + 2 * estimator.posterior_.label_noise)
                of_labels.append(covered(y[i] - y[own] - f[i] + f[own], deviations))
            ridge = "true" if name == "model" else "chosen"
            rows.append(line(kind, ridge, "true scores", of_truth))
            rows.append(line(kind, ridge, "labels", of_labels))
    for name in ("COX2", "DHFR") if options.data is not None else ():
        rows += list(of_assay(name, options))
    head = ["data", "ridge", "differences of", *(f"{level:.0%}" for level in LEVELS)]
    yield markdown_table(head, rows)


def line(data: str, ridge: str, what: str, shares: list[np.ndarray]) -> list[str]:
    """Return the cells of a row."""
    return [data, ridge, what, *(f"{share:.3f}" for share in np.mean(shares, axis=0))]


def of_assay(name: str, options: Options) -> Iterator[list[str]]:
    """Yield the rows of an assay: labels of a fifth of the compounds, which are held out."""
    assert options.data is not None
    data = load_qsar(options.data, name)
    X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    for kernel in ("linear", "rbf"):
        found = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(y))
            train, test = np.split(order, [int(0.8 * len(y))])
            search = RankRLSCV(kernel=kernel, weighting="documents", keep_covariance=True)
            search.set_params(inputs="standard", scoring="pairwise_squared_error")
            search.fit(X[train], y[train])
            i, j = (test[part] for part in pairs_of(len(test), rng))
            squares = search.std_of_differences(X[i], X[j]) ** 2
            deviations = np.sqrt(squares + 2 * search.posterior_.label_noise)
            f = search.predict(X)
            found.append(covered(y[i] - y[j] - f[i] + f[j], deviations))
        yield line(f"{name}, {kernel}", "chosen", "labels", found)


def times(options: Options) -> Iterator[str]:
    """Time of deviations, beside scores and the product that they need."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 136))
    y, qid = X @ rng.normal(size=136) + rng.normal(size=100_000), np.arange(100_000) // 100
    linear = RankRLS(10.0, keep_covariance=True, n_threads=options.threads).fit(X, y, qid=qid)
    settings = {"kernel": "rbf", "gamma": 0.005, "keep_covariance": True}
    kernel = RankRLS(1.0, n_threads=options.threads, **settings)
    kernel.fit(X[:2000], y[:2000], qid=qid[:2000])
    Z, root = X[-5000:], kernel.posterior_.root + 10 * np.eye(2000)
    triangle = np.asfortranarray(linear.posterior_.root.T)
    right = np.asfortranarray(rng.normal(size=(2000, 5000)))
    of_linear: dict[str, Callable[[], object]] = {
        "`predict`": lambda: linear.predict(X),
        "`dtrmm` of that size": lambda: scipy.linalg.blas.dtrmm(
            1.0, triangle, X.T, lower=1, trans_a=1
        ),
        "`predict(return_std=True)`, lists": lambda: linear.predict(X, qid=qid, return_std=True),
        "the same, one list": lambda: linear.predict(X, return_std=True),
        "10,000 draws of the weights": lambda: linear.draw_weights(10_000, random_state=0),
    }
    of_kernel: dict[str, Callable[[], object]] = {
        "`predict`": lambda: kernel.predict(Z),
        "a triangular solve of that size": lambda: scipy.linalg.solve_triangular(
            root, right, check_finite=False
        ),
        "`predict(return_std=True)`, one list": lambda: kernel.predict(Z, return_std=True),
        'the same, `reference="training"`': lambda: kernel.predict(
            Z, return_std=True, reference="training"
        ),
    }
    with threadpool_limits(options.threads):
        yield ratio_table(interleaved(of_linear, options.repeat))
        yield ratio_table(interleaved(of_kernel, options.repeat))


def process(options: Options) -> Iterator[str]:
    """Beside the Gaussian process of scikit-learn: 1,000 rows, 5,000 scored, the same kernel."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1000, 10)), rng.normal(size=(5000, 10))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1000)
    covariance = RBF(10**0.5 / 2**0.5, "fixed") + ConstantKernel(1e5, "fixed")
    beside = GaussianProcessRegressor(covariance, alpha=0.1, optimizer=None)
    settings = {"kernel": "rbf", "gamma": 0.1, "weighting": "documents", "keep_covariance": True}
    ours = RankRLS(0.1, n_threads=options.threads, **settings)
    pool = rng.normal(size=(20_000, 10))
    calls: dict[str, Callable[[], object]] = {
        "`RankRLS`: fit": lambda: ours.fit(X, y),
        "scikit-learn: fit": lambda: beside.fit(X, y),
        "`RankRLS`: deviations": lambda: ours.predict(Z, return_std=True, reference="training"),
        "scikit-learn: deviations": lambda: beside.predict(Z, return_std=True),
        "`propose`, 50 of 20,000": lambda: propose(ours, pool, 50),
    }
    ours.fit(X, y)
    beside.fit(X, y)
    with threadpool_limits(options.threads):
        yield ratio_table(interleaved(calls, options.repeat))


TABLES = {"coverage": coverage, "times": times, "process": process}


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with qsar, the assays")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="of the coverage")
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn"), repeat=5)


if __name__ == "__main__":
    main()
