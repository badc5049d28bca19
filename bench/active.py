"""What to measure next, and what to show: how much is found, and what it costs to try things.

    python bench/active.py [TABLE ...] [--data FOLDER] [--seeds N] [--threads N]

found: starts with 10 compounds and measures 5 more in each of 10 rounds. "Found" is the share of
the best tenth that has been measured at the end, the mean over seeds with its standard error;
"less" is that minus the best other way, by seed. Times are those of all rounds, without the
measurements.

regret: five lists a day show 5 of 200 things, or of 30 that are drawn anew for each list, and
statistics of the days make the model of the next. Regret is the true score of the best 5, less that
of those shown, added over all lists. The share of epsilon-greedy was tuned on other seeds.
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
from pairgram import Kernel, Pairgram, Pairs, RankRLS, RankRLSCV, posterior, propose

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from qsar import load_qsar

START, PICK, ROUNDS = 10, 5, 10
DAYS, LISTS, SHOWN, WIDTH = 60, 5, 5, 20
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
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
    """Return our model of what has been measured; evidence chooses the ridge."""
    model = RankRLSCV(
        feature_map=Kernel("rbf", gamma=gamma_of(X)), pairs=Pairs(weighting="documents")
    )
    return model.set_params(scoring="evidence").fit(X, y)


def ours(X: np.ndarray, y: np.ndarray, pool: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Return the choice of `propose`."""
    return propose(posterior(model_of(X, y), X, y), pool, PICK)


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
    best = np.argsort(-y, kind="stable")[: len(y) // 10]
    return float(np.isin(best, measured).mean()), seconds


def found(options: Options) -> Iterator[str]:
    """How much of the best tenth is found."""
    rows = []
    for name, X, y in sets(options.data):
        ways: dict[str, Callable[[int], Choose]] = {
            "random": lambda seed: random,
            "greedy": lambda seed: greedy,
            "scikit-learn's process": lambda seed: process,
            '`propose`, "upper"': lambda seed: ours,
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


def draws_of(
    way: str, total: Pairgram | None, alpha: float, rng: np.random.Generator
) -> np.ndarray | None:
    """Return the weights of the lists of the next day, of which one row may stand for all."""
    if total is None:
        return None
    model = RankRLS.from_pairgram(total, alpha)
    if way == "thompson":
        return posterior(model, total).draw(LISTS, rng)
    return np.tile(model.coef_, (LISTS, 1))


def regret_of(way: str, share: float, noise: float, same: bool, seed: int) -> np.ndarray:
    """Return the regret of every day, (DAYS,)."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=WIDTH) / WIDTH**0.5
    things = rng.normal(size=(200, WIDTH))
    total: Pairgram | None = None
    regret = np.zeros(DAYS)
    for day in range(DAYS):
        weights = draws_of(way, total, WIDTH * noise**2, rng)
        shown, labels = [], []
        for number in range(LISTS):
            listed = things if same else things[rng.choice(200, 30, replace=False)]
            true = listed @ truth
            order = rng.permutation(len(listed))
            if weights is not None:
                order = np.argsort(-(listed @ weights[number]), kind="stable")
            tried = rng.random(SHOWN) < (share if way == "epsilon-greedy" else 0.0)
            first, others = order[:SHOWN].copy(), order[SHOWN:]
            first[tried] = rng.choice(others, tried.sum(), replace=False)
            regret[day] += np.sort(true)[-SHOWN:].sum() - true[first].sum()
            shown.append(listed[first])
            labels.append(true[first] + rng.normal() + noise * rng.normal(size=SHOWN))
        qid = day * LISTS + np.repeat(np.arange(LISTS), SHOWN)
        rows = np.vstack(shown), np.concatenate(labels)
        today = Pairgram.from_rows(*rows, qid=qid, pairs=Pairs(weighting="documents"))
        total = today if total is None else total + today
    return regret


def regret(options: Options) -> Iterator[str]:
    """What rankings cost that try things, and those that do not."""
    rows = []
    for same in (True, False):
        for noise in (0.5, 2.0):
            setting = noise, same
            tuning = range(1000, 1000 + options.seeds)
            share = min(
                SHARES,
                key=lambda share: sum(
                    regret_of("epsilon-greedy", share, *setting, seed).sum() for seed in tuning
                ),
            )
            for way in ("greedy", "epsilon-greedy", "thompson"):
                runs = range(options.seeds)
                found = np.array([regret_of(way, share, *setting, seed) for seed in runs])
                total, late = found.sum(axis=1), found[:, -10:].sum(axis=1)
                rows.append(
                    [
                        "the same 200" if same else "30 anew",
                        f"{noise:g}",
                        f"{way} ({share:g})" if way == "epsilon-greedy" else way,
                        *(
                            f"{one.mean():.0f} ± {one.std(ddof=1) / len(one) ** 0.5:.0f}"
                            for one in (total, late)
                        ),
                    ]
                )
    yield markdown_table(
        ["things of a list", "noise", "way", f"regret of {DAYS} days", "of the last 10"], rows
    )


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with qsar, the assays")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    print_tables(
        parser, {"found": found, "regret": regret}, Options, ("numpy", "scikit-learn"), repeat=1
    )


if __name__ == "__main__":
    main()
