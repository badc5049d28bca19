"""What to measure next: how many of the best compounds are found, and in what time.

    python bench/active.py [TABLE ...] [--data FOLDER] [--seeds N] [--threads N]

Starts with 10 compounds and measures 5 more in each of 10 rounds. "Found" is the share of the best
tenth that has been measured at the end, the mean over seeds with its standard error; "less" is that
minus the best other way, by seed. Times are those of all rounds, without the measurements.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from common import markdown_table, print_tables
from pairgram import RankRLSCV, propose

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from qsar import load_qsar

START, PICK, ROUNDS = 10, 5, 10
Choose = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path | None
    seeds: int
    repeat: int
    threads: int


def sets(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield names, standardised descriptors and activities."""
    for name in ("COX2", "DHFR") if folder is not None else ():
        assert folder is not None
        data = load_qsar(folder, name)
        X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
        spread = X.std(axis=0)
        yield name, (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(-0.05 * squares) + 1e-8 * np.eye(500))
    yield "made, smooth", X, root @ rng.normal(size=500) + 0.2 * rng.normal(size=500)


def gamma_of(X: np.ndarray) -> float:
    """Return the gamma of all ways: 1 / n_features, of standardised columns."""
    return 1.0 / X.shape[1]


def model_of(X: np.ndarray, y: np.ndarray) -> RankRLSCV:
    """Return our model of what has been measured; the ridge is chosen by single held-out rows."""
    model = RankRLSCV(kernel="rbf", gamma=gamma_of(X), weighting="documents", keep_covariance=True)
    return model.set_params(scoring="pairwise_squared_error").fit(X, y)


def ours(strategy: str, seed: int) -> Choose:
    """Return the choice of `propose`."""

    def choose(X: np.ndarray, y: np.ndarray, pool: np.ndarray, _: np.ndarray) -> np.ndarray:
        return propose(model_of(X, y), pool, PICK, strategy=strategy, random_state=seed)

    return choose


def greedy(X: np.ndarray, y: np.ndarray, pool: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Choose the highest scores."""
    return np.argsort(-model_of(X, y).predict(pool), kind="stable")[:PICK]


def process(X: np.ndarray, y: np.ndarray, pool: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Choose by the expected improvement of scikit-learn's process, which fits its amplitudes."""
    length = (0.5 / gamma_of(X)) ** 0.5
    kernel = ConstantKernel(1.0) * RBF(length, "fixed") + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    mean, deviations = model.predict(pool, return_std=True)
    above = mean - model.predict(X).max()
    z = above / deviations
    return np.argsort(-(above * norm.cdf(z) + deviations * norm.pdf(z)), kind="stable")[:PICK]


def random(X: np.ndarray, y: np.ndarray, pool: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Choose at random."""
    return order[:PICK]


def course(X: np.ndarray, y: np.ndarray, choose: Choose, seed: int) -> tuple[float, float]:
    """Return the share of the best tenth that is found, and the seconds of all choices."""
    rng = np.random.default_rng(seed)
    measured = rng.permutation(len(y))[:START]
    seconds = 0.0
    for _ in range(ROUNDS):
        left = np.setdiff1d(np.arange(len(y)), measured)
        order = rng.permutation(len(left))
        begin = time.perf_counter()
        chosen = choose(X[measured], y[measured], X[left], order)
        seconds += time.perf_counter() - begin
        measured = np.concatenate([measured, left[chosen]])
    best = np.argsort(-y)[: len(y) // 10]
    return float(np.isin(best, measured).mean()), seconds


def found(options: Options) -> Iterator[str]:
    """How much of the best tenth is found."""
    rows = []
    for name, X, y in sets(options.data):
        ways: dict[str, Callable[[int], Choose]] = {
            "random": lambda seed: random,
            "greedy": lambda seed: greedy,
            "scikit-learn's process": lambda seed: process,
            **{
                f'`propose`, "{strategy}"': lambda seed, strategy=strategy: ours(strategy, seed)
                for strategy in ("improvement", "upper", "thompson")
            },
        }
        shares, times = {}, {}
        for way, make in ways.items():
            runs = [course(X, y, make(seed), seed) for seed in range(options.seeds)]
            shares[way], times[way] = (np.array(part) for part in zip(*runs, strict=True))
        others = max(("random", "greedy", "scikit-learn's process"), key=lambda w: shares[w].mean())
        for way, share in shares.items():
            less = share - shares[others]
            error = less.std(ddof=1) / len(less) ** 0.5
            rows.append(
                [
                    name,
                    way,
                    f"{share.mean():.3f}",
                    f"{less.mean():+.3f} ± {error:.3f}",
                    f"{times[way].mean():.3f} s",
                ]
            )
    yield markdown_table(["compounds", "way", "found", "less the best other", "time"], rows)


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with qsar, the assays")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    print_tables(parser, {"found": found}, Options, ("numpy", "scikit-learn"), repeat=1)


if __name__ == "__main__":
    main()
