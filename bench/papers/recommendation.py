"""The recommendation task of Chen et al. 2014, §4.2: the data and the problems made of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = [
    "GROUPS",
    "SHAPES",
    "Problem",
    "Ratings",
    "leave_one_out",
    "load_books",
    "load_jester",
    "load_movielens",
    "made_ratings",
    "problems",
]

# Reference reviewers have rated at least so many items, and fewer than so many.
GROUPS = ((20, 40), (40, 60), (60, 80))
TESTED = (50, 300)
NOT_RATED = 99.0  # in Jester's files
# Books: reviewers have rated at least so many, and a book has so many ratings by such reviewers.
MANY_BOOKS, MANY_REVIEWERS = 200, 10
# A problem of fewer items has less than two folds of two rows to train on.
FEWEST_ITEMS = 8


class Shape(NamedTuple):
    """What a data set is like: its size, its scale, and how many items a reviewer rates."""

    n_reviewers: int
    n_items: int
    low: float
    high: float
    fewest: int
    mean: int
    whole: bool  # ratings are whole numbers


SHAPES = {
    "MovieLens": Shape(6_040, 3_883, 1.0, 5.0, 20, 166, True),
    "Jester": Shape(73_421, 100, -10.0, 10.0, 15, 56, False),
    "Books": Shape(130, 87, 1.0, 10.0, 2, 16, True),
}


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


def load_books(path: Path) -> Ratings:
    """Read Book-Crossing's ``BX-Book-Ratings.csv``: lines ``"reviewer";"book";"rating"``, a head.

    A rating of 0 says that there is none. Kept are reviewers of 200 books or more, then the books
    that ten or more of them have rated, then the reviewers who have rated one of these.
    """
    ids = []
    with path.open(encoding="latin-1", newline="") as file:
        lines = csv.reader(file, delimiter=";", escapechar="\\")
        next(lines, None)
        for line in lines:
            if len(line) != 3 or not line[2].isdigit():
                raise ValueError(f'{path}, line {lines.line_num}: want "276725";"034545104X";"8"')
            ids.append(line)
    rated = [line for line in ids if line[2] != "0"]
    if not rated:
        raise ValueError(f"{path}: found no ratings")
    reviewers, books, ratings = np.array(rated).T
    _, row, counts = np.unique(reviewers, return_inverse=True, return_counts=True)
    kept = counts[row] >= MANY_BOOKS
    _, column, counts = np.unique(books[kept], return_inverse=True, return_counts=True)
    kept[kept] = counts[column] >= MANY_REVIEWERS
    if not kept.any():
        raise ValueError(
            f"{path}: found no book with {MANY_REVIEWERS} ratings by reviewers who have rated "
            f"{MANY_BOOKS} books"
        )
    (_, row), (_, column) = (
        np.unique(part[kept], return_inverse=True) for part in (reviewers, books)
    )
    table = np.full((row.max() + 1, column.max() + 1), np.nan, dtype=np.float32)
    table[row, column] = ratings[kept].astype(np.float32)
    return Ratings(table, 1.0, 10.0)


def made_ratings(name: str, seed: int = 0) -> Ratings:
    """Make ratings of a shape in `SHAPES`.

    A reviewer's liking is the quality of the item, his own mildness, three tastes that he and the
    item share more or less, and chance. Some items are rated by more reviewers than others.
    """
    shape = SHAPES[name]
    size = (shape.n_reviewers, shape.n_items)
    rng = np.random.default_rng(seed)
    counts = shape.fewest + rng.exponential(shape.mean - shape.fewest, size[0]).astype(np.int64)
    counts = np.minimum(counts, shape.n_items)
    # The items of the highest Gumbel variables are draws without replacement (Vieira 2014).
    chance = rng.normal(size=size[1]) + rng.gumbel(size=size)
    last = np.take_along_axis(np.sort(chance, axis=1)[:, ::-1], counts[:, None] - 1, axis=1)
    liking = rng.normal(size=(size[0], 3)) @ rng.normal(size=(3, size[1])) / 2
    liking += rng.normal(size=(size[0], 1)) / 2 + rng.normal(size=size[1]) / 2
    liking += rng.normal(size=size) / 2
    table = (shape.low + shape.high) / 2 + (shape.high - shape.low) / 4 * liking
    table = np.clip(np.rint(table) if shape.whole else table, shape.low, shape.high)
    table[chance < last] = np.nan
    return Ratings(table.astype(np.float32), shape.low, shape.high)


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
        yield _problem(ratings, reviewer, chosen, medians, rng)


def leave_one_out(ratings: Ratings, rng: np.random.Generator) -> Iterator[Problem]:
    """Yield the problem of every reviewer in turn, whose references are all others.

    Reviewers of fewer than `FEWEST_ITEMS` items are references alone. The rest is as in `problems`.
    """
    medians = np.nanmedian(ratings.table, axis=1)
    reviewers = np.arange(len(ratings.table))
    for reviewer in np.flatnonzero(np.isfinite(ratings.table).sum(axis=1) >= FEWEST_ITEMS):
        yield _problem(ratings, reviewer, reviewers[reviewers != reviewer], medians, rng)


def _problem(
    ratings: Ratings,
    reviewer: int,
    references: np.ndarray,
    medians: np.ndarray,
    rng: np.random.Generator,
) -> Problem:
    items = rng.permutation(np.flatnonzero(np.isfinite(ratings.table[reviewer])))
    X = ratings.table[np.ix_(references, items)]
    X = np.where(np.isfinite(X), X, medians[references][:, None]).T
    X = np.ascontiguousarray((X - ratings.low) / (ratings.high - ratings.low), dtype=np.float64)
    y, half = ratings.table[reviewer, items].astype(np.float64), len(items) // 2
    return Problem(X[:half], y[:half], X[half:], y[half:])
