"""The recommendation task of Chen et al. 2014, §4.2: the data and the problems made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["GROUPS", "Problem", "Ratings", "load_jester", "load_movielens", "problems"]

# Reference reviewers have rated at least so many items, and fewer than so many.
GROUPS = ((20, 40), (40, 60), (60, 80))
TESTED = (50, 300)
NOT_RATED = 99.0  # in Jester's files


class Ratings(NamedTuple):
    """What every reviewer gave every item, NaN where nothing, and the ends of the scale."""

    table: np.ndarray  # (n_reviewers, n_items), float32
    low: float
    high: float


class Problem(NamedTuple):
    """The items that one reviewer has rated: by the scaled ratings of references, and halved."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_movielens(path: Path) -> Ratings:
    """Read MovieLens 1M's ``ratings.dat``: lines ``reviewer::movie::rating::time``."""
    fields = path.read_bytes().replace(b"::", b" ").split()
    if not fields or len(fields) % 4:
        raise ValueError(f"{path}: want lines such as 1::1193::5::978300760")
    reviewers, movies, ratings, _ = np.array(fields, dtype=np.int64).reshape(-1, 4).T
    (_, row), (_, column) = (np.unique(ids, return_inverse=True) for ids in (reviewers, movies))
    table = np.full((row.max() + 1, column.max() + 1), np.nan, dtype=np.float32)
    table[row, column] = ratings
    return Ratings(table, 1.0, 5.0)


def load_jester(paths: Sequence[Path]) -> Ratings:
    """Read Jester's ``jester-data-*.csv``: a reviewer per line, a count, then 100 ratings or 99."""
    tables = [np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float32) for path in paths]
    widths = sorted({table.shape[1] for table in tables})
    if len(widths) != 1:
        raise ValueError(f"Jester's files must have as many columns, found {widths}")
    table = np.concatenate(tables)[:, 1:]
    table[table == NOT_RATED] = np.nan
    return Ratings(table, -10.0, 10.0)


def problems(
    ratings: Ratings,
    group: tuple[int, int],
    rng: np.random.Generator,
    *,
    n_reviewers: int = 300,
    n_references: int = 300,
) -> Iterator[Problem]:
    """Yield the problem of every test reviewer of one experiment.

    Test reviewers are drawn among those with 50 to 300 ratings; for each, reference reviewers among
    the others of the group, and a half of his items to train on. What a reference has not rated is
    his median (Cortes, Mohri, Rastogi 2007, from whom the experiment is). References' ratings are
    scaled to [0, 1].

    Raises
    ------
    ValueError
        If there are too few reviewers.
    """
    counts = np.isfinite(ratings.table).sum(axis=1)
    tested = np.flatnonzero((counts >= TESTED[0]) & (counts <= TESTED[1]))
    references = np.flatnonzero((counts >= group[0]) & (counts < group[1]))
    for what, found, wanted in (
        (f"{TESTED[0]} to {TESTED[1]} ratings", tested, n_reviewers),
        (f"{group[0]} to {group[1]} ratings", references, n_references + 1),
    ):
        if len(found) < wanted:
            raise ValueError(f"found {len(found)} reviewers with {what}, want {wanted} or more")
    medians = np.full(len(counts), np.nan)
    medians[references] = np.nanmedian(ratings.table[references], axis=1)
    for reviewer in rng.choice(tested, n_reviewers, replace=False):
        chosen = rng.choice(references[references != reviewer], n_references, replace=False)
        items = rng.permutation(np.flatnonzero(np.isfinite(ratings.table[reviewer])))
        X = ratings.table[np.ix_(chosen, items)]
        X = np.where(np.isfinite(X), X, medians[chosen][:, None]).T
        X = np.ascontiguousarray((X - ratings.low) / (ratings.high - ratings.low), dtype=np.float64)
        y, half = ratings.table[reviewer, items].astype(np.float64), len(items) // 2
        yield Problem(X[:half], y[:half], X[half:], y[half:])
