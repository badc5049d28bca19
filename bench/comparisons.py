"""How fast models learn from comparisons, beside scikit-learn on differences, choix and CatBoost.

    python bench/comparisons.py [TABLE ...] [--pairs N] [--items N] [--features N]
        [--repeat N] [--threads N]

Prints a Markdown table for each question. Items have normal features; comparisons are drawn with
the odds of a linear model. Where objectives agree, coefficients are asserted to be equal to 1e-8
(1e-6 beside choix, whose steps end there) before anything is timed. The differences that
scikit-learn needs are written out before its clock starts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge

from common import PeakMemory, interleaved, markdown_table, mebibytes, print_tables, ratio_table
from pairgram import Preferences, RankRLS, RankRLSCV, RankSVM, evaluate

ALPHAS = np.geomspace(1e-2, 1e6, 30)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    pairs: int
    items: int
    features: int
    repeat: int
    threads: int


@dataclass(frozen=True)
class Drawn:
    """Items, and comparisons of them.

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features)
    y : Preferences
    """

    X: np.ndarray
    y: Preferences

    @property
    def differences(self) -> np.ndarray:
        """The rows of a regression, written out: (n_pairs, n_features)."""
        return self.X[self.y.winner] - self.X[self.y.loser]


def draw(n_pairs: int, n_items: int, n_features: int, seed: int = 0) -> Drawn:
    """Return items, and who wins by the odds of a linear model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    skill = X @ rng.normal(size=n_features) / np.sqrt(n_features)
    a = rng.integers(0, n_items, n_pairs)
    b = (a + rng.integers(1, n_items, n_pairs)) % n_items
    wins = rng.random(n_pairs) < 1 / (1 + np.exp(skill[b] - skill[a]))
    return Drawn(X, Preferences(np.where(wins, a, b), np.where(wins, b, a)))


def assert_close(found: np.ndarray, expected: np.ndarray, share: float = 1e-8) -> None:
    """Assert that coefficients differ by at most a share of the largest."""
    assert np.abs(found - expected).max() <= share * np.abs(expected).max()


def least_squares(options: Options) -> Iterator[str]:
    """One ridge, beside scikit-learn's on differences."""
    drawn = draw(options.pairs, options.items, options.features)
    Z, ones = drawn.differences, np.ones(options.pairs)
    ours = RankRLS(10.0)
    theirs = Ridge(10.0, fit_intercept=False, solver="cholesky")
    assert_close(ours.fit(drawn.X, drawn.y).coef_, theirs.fit(Z, ones).coef_)
    with PeakMemory() as memory:
        ours.fit(drawn.X, drawn.y)
    times = interleaved(
        {
            "`RankRLS`": lambda: ours.fit(drawn.X, drawn.y),
            "scikit-learn `Ridge`, differences": lambda: theirs.fit(Z, ones),
        },
        options.repeat,
    )
    beside = {
        "`RankRLS`": mebibytes(memory.rise),
        "scikit-learn `Ridge`, differences": f"{mebibytes(Z.nbytes)}, the differences alone",
    }
    yield f"One ridge of {options.pairs:,} comparisons of {options.items:,} × {options.features}:"
    yield ratio_table(times, memory=beside)


def held_out(options: Options) -> Iterator[str]:
    """Thirty ridges with exact held-out accuracy."""
    drawn = draw(options.pairs, options.items, options.features)
    searches = {
        f'`cv="{way}"`': RankRLSCV(ALPHAS, cv=way)
        for way in ("leave-comparison-out", "leave-item-out")
    }
    fits = {
        name: (lambda search=search: search.fit(drawn.X, drawn.y))
        for name, search in searches.items()
    }
    times = interleaved(fits, options.repeat)
    best = {name: f"{search.best_score_:.4f}" for name, search in searches.items()}
    yield f"{len(ALPHAS)} ridges of {options.pairs:,} comparisons, `RankRLSCV`:"
    yield ratio_table(times, accuracy=best)


def logistic(options: Options) -> Iterator[str]:
    """Bradley-Terry on features, beside scikit-learn's logistic regression on differences."""
    drawn = draw(options.pairs // 10, options.items, options.features)
    Z = drawn.differences
    sign = np.where(np.arange(len(Z)) % 2, 1.0, -1.0)  # it wants two classes
    Z *= sign[:, None]
    exact = RankSVM(0.01, loss="logistic", tol=1e-12)
    theirs = LogisticRegression(C=0.01, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    assert_close(exact.fit(drawn.X, drawn.y).coef_, theirs.fit(Z, sign).coef_[0])
    ours = RankSVM(0.01, loss="logistic")
    usual = LogisticRegression(C=0.01, fit_intercept=False)
    times = interleaved(
        {
            '`RankSVM(loss="logistic")`': lambda: ours.fit(drawn.X, drawn.y),
            "the same, tol=1e-12": lambda: exact.fit(drawn.X, drawn.y),
            "scikit-learn `LogisticRegression`, lbfgs, differences": lambda: usual.fit(Z, sign),
            "scikit-learn, newton-cholesky, tol=1e-12": lambda: theirs.fit(Z, sign),
        },
        options.repeat,
    )
    yield f"Logistic loss of {len(Z):,} comparisons of {options.items:,} × {options.features}:"
    yield ratio_table(times)


def players(options: Options) -> Iterator[str]:
    """Bradley-Terry with a strength for each player, beside choix."""
    import choix

    n_items, n_pairs = min(options.items, 200), options.pairs // 50
    drawn = draw(n_pairs, n_items, options.features)
    pairs = list(zip(drawn.y.winner.tolist(), drawn.y.loser.tolist(), strict=True))
    ids = scipy.sparse.eye_array(n_items, format="csr")
    model = RankSVM(10.0, loss="logistic", tol=1e-12)

    def by_choix() -> np.ndarray:
        return choix.opt_pairwise(n_items, pairs, alpha=0.05, method="Newton-CG", tol=1e-12)

    assert_close(model.fit(ids, drawn.y).coef_, by_choix(), 1e-6)
    times = interleaved(
        {
            '`RankSVM(C=10, loss="logistic")`': lambda: model.fit(ids, drawn.y),
            "choix `opt_pairwise(alpha=0.05)`": by_choix,
        },
        options.repeat,
    )
    yield f"Strengths of {n_items} players from {n_pairs:,} battles:"
    yield ratio_table(times)


def trees(options: Options) -> Iterator[str]:
    """Accuracy on comparisons of items that were not seen, beside CatBoost's PairLogit."""
    from catboost import CatBoost, Pool

    n_items, n_pairs = min(options.items, 1000), options.pairs // 50
    rows = []
    for seed in range(5):
        drawn = draw(n_pairs, 2 * n_items, options.features, seed)
        first, second = drawn.y.winner < n_items, drawn.y.loser < n_items
        seen = Preferences(drawn.y.winner[first & second], drawn.y.loser[first & second])
        fresh = Preferences(drawn.y.winner[~first & ~second], drawn.y.loser[~first & ~second])
        pool = Pool(
            drawn.X[:n_items],
            label=np.zeros(n_items),
            group_id=np.zeros(n_items, dtype=int),
            pairs=np.column_stack([seen.winner, seen.loser]),
        )
        boosted = CatBoost(
            {
                "loss_function": "PairLogit",
                "iterations": 300,
                "verbose": False,
                "random_seed": 0,
                "allow_writing_files": False,
                "thread_count": options.threads,
            }
        )
        ours = RankRLSCV()
        fits = {
            "`RankRLSCV`": lambda ours=ours, drawn=drawn, seen=seen: ours.fit(
                drawn.X[:n_items], seen
            ),
            "CatBoost PairLogit, 300 trees": lambda boosted=boosted, pool=pool: boosted.fit(pool),
        }
        times = interleaved(fits, 1)
        scores = {"`RankRLSCV`": ours, "CatBoost PairLogit, 300 trees": boosted}
        rows.append(
            {
                name: (evaluate("accuracy", fresh, model.predict(drawn.X))["accuracy"], times[name])
                for name, model in scores.items()
            }
        )
    yield f"Linear items, {n_pairs // 4:,} comparisons of {n_items} seen; 5 seeds, means:"
    yield markdown_table(
        ["way", "accuracy on items that were not seen", "time"],
        [
            [
                name,
                f"{np.mean([row[name][0] for row in rows]):.4f}",
                f"{np.mean([row[name][1] for row in rows]):.3f} s",
            ]
            for name in rows[0]
        ],
    )


TABLES = {
    "least-squares": least_squares,
    "held-out": held_out,
    "logistic": logistic,
    "players": players,
    "trees": trees,
}


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--items", type=int, default=10_000, metavar="N")
    parser.add_argument("--features", type=int, default=50, metavar="N")
    packages = ("numpy", "scikit-learn", "choix", "catboost")
    print_tables(parser, TABLES, Options, packages, repeat=5)


if __name__ == "__main__":
    main()
