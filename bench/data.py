"""The data of the benchmarks: those of the kernels, kept in a folder, and retrieval runs to fuse.

    python bench/data.py [--data FOLDER]

- **a**: 100,000 rows x 136 features, 1,000 queries x 100 documents; 153 MB as SVMlight text;
- **b**: 20,000 rows x 1,000 features, 200 queries x 100 documents.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from common import progress

Array = NDArray[np.float64]

DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "pairgram-bench"
SHAPES = {"a": (100_000, 136, 1_000), "b": (20_000, 1_000, 200)}  # rows, features, queries
DECIMALS = 5


class Ranking(NamedTuple):
    """Rows of queries of equal length, which stand together."""

    X: Array
    y: Array
    qid: NDArray[np.int64]


def load(name: str, folder: Path) -> Ranking:
    """Return data a or b, made on first use."""
    paths = [folder / f"{name}_{part}.npy" for part in Ranking._fields]
    if not all(path.exists() for path in paths):
        progress(f"making data {name} in {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        for path, array in zip(paths, make(*SHAPES[name]), strict=True):
            unfinished = path.with_suffix(f".{os.getpid()}.npy")
            np.save(unfinished, array)
            unfinished.replace(path)
    return Ranking(*(np.load(path) for path in paths))


def text_file(folder: Path) -> Path:
    """Return the path of data a as SVMlight text with 5 decimals, written on first use."""
    path = folder / "a.svm"
    if not path.exists():
        data = load("a", folder)
        progress(f"writing {path}")
        unfinished = path.with_suffix(f".{os.getpid()}")
        write_svmlight(unfinished, data)
        unfinished.replace(path)
    return path


def make(n_rows: int, n_features: int, n_queries: int, seed: int = 7, rank: int = 8) -> Ranking:
    """Make correlated features in [0, 1] with query offsets; labels 0-4 (52/32/13/2/1 %).

    Features are rounded to 5 decimals, so that text and arrays hold the same numbers.
    """
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(rank, n_features)) / np.sqrt(rank)
    X = rng.normal(size=(n_rows, rank)) @ basis
    X += rng.normal(size=(n_rows, n_features))
    qid = np.repeat(np.arange(n_queries, dtype=np.int64), n_rows // n_queries)
    X += (0.5 * rng.normal(size=(n_queries, n_features)))[qid]
    low = X.min(axis=0)
    X -= low
    X /= X.max(axis=0)
    weights = rng.normal(size=n_features) * (rng.random(n_features) < 0.3)
    score = X @ weights
    score = (score - score.mean()) / score.std()
    score += rng.normal(size=n_rows) + 0.3 * rng.normal(size=n_queries)[qid]
    y = np.searchsorted(np.quantile(score, [0.52, 0.84, 0.97, 0.99]), score).astype(np.float64)
    return Ranking(np.round(X, DECIMALS, out=X), y, qid)


def make_interactions(seed: int, n_queries: int = 200, n_documents: int = 15) -> Ranking:
    """Make 300 sparse features whose interactions in pairs matter as much as their linear part.

    The shape is that of LightGBM's example of ranking: 200 queries x 15 documents, labels 0-4
    (50/25/15/7/3 %). Columns that are always 0 may occur.
    """
    rng = np.random.default_rng(seed)
    n_features, n_rows = 300, n_queries * n_documents
    density = rng.beta(0.8, 3.2, n_features)  # the shares of rows in which columns are not 0
    X = np.where(
        rng.random((n_rows, n_features)) < density, rng.gamma(2.0, 0.5, (n_rows, n_features)), 0.0
    )
    qid = np.repeat(np.arange(n_queries), n_documents)
    active = rng.choice(n_features, 60, replace=False)
    linear = np.tanh(X[:, active]) @ rng.normal(size=60)
    densest = np.argsort(-density)[:60]
    first, second = rng.choice(densest, (2, 40))
    interactions = np.minimum(X[:, first], X[:, second]) @ rng.normal(size=40)
    score = sum((part - part.mean()) / part.std() for part in (linear, interactions))
    score = score + 0.7 * rng.normal(size=n_rows) + 0.5 * rng.normal(size=n_queries)[qid]
    grades = np.quantile(score, [0.5, 0.75, 0.9, 0.97])
    return Ranking(X, np.searchsorted(grades, score).astype(np.float64), qid)


class Runs(NamedTuple):
    """Documents of queries, each with the scores that retrieval runs gave it.

    Attributes
    ----------
    scores : ndarray of shape (n_documents, n_runs), float64
        NaN where a run did not retrieve the document. Every document was retrieved by some run.
    y : ndarray of shape (n_documents,), float64
        Grades 0-3.
    qid : ndarray of shape (n_documents,), int64
    """

    scores: Array
    y: Array
    qid: NDArray[np.int64]

    def take(self, rows: NDArray[np.bool_]) -> Runs:
        """Return some of the documents."""
        return Runs(*(array[rows] for array in self))


# How strongly the systems of a group see relevance, beside errors of variance about 1: the share of
# such groups, and the mean strength. A few are good, many are mediocre, some are bad.
STRENGTHS = ((0.2, 1.7), (0.55, 1.3), (0.25, 0.8))
MEAN_STRENGTH = sum(share * strength for share, strength in STRENGTHS)
# The variances of what all systems mistake for relevance, all of a kind, of a group, and of a run.
COMMON, OF_KIND, OF_GROUP, OWN = 0.4, 0.15, 0.4, 0.25
EASE = 0.4  # how much systems differ from query to query: the standard deviation of a logarithm
LEXICAL, DENSE, RERANKER = range(3)  # the kinds
GRADES = np.array([0.6, 0.3, 0.1])  # how frequent the grades 1-3 are among relevant documents
SIGNAL = np.array([0.0, 1.2, 1.9, 2.5])  # of the grades 0-3
DEPTH, RERANKED = 100, 50  # how many documents a run retrieves
UNANSWERED = 0.02  # how often a run retrieves nothing for a query


def make_runs(
    n_runs: int, n_queries: int, seed: int, spread: float = 1.0, n_documents: int = 300
) -> Runs:
    """Simulate retrieval runs of different quality that share errors.

    A group submits about three runs, variants of one system, which is lexical, dense or a reranker.
    All runs see the same apparent relevance: the signal of the grade, and an error that no fusion
    can remove. Each kind of system adds an error to it, then each group, more or less strongly
    seen, better for some queries than for others, and then each run. Scores of lexical runs are
    positive and skew, those of dense runs lie in a narrow band, those of rerankers are logits or
    probabilities, and every query has other scales and offsets. A run retrieves its best documents
    of `n_documents`, a reranker only from what the first run retrieves.

    `spread` multiplies the differences between the strengths of groups.
    """
    rng = np.random.default_rng([seed, n_runs])
    n_groups = 2 + n_runs // 3
    group = np.append(np.arange(n_groups), rng.integers(n_groups, size=n_runs - n_groups))
    kind_of_group = np.arange(n_groups) % 3
    kind = kind_of_group[group]
    shares, means = np.transpose(STRENGTHS)
    strength = rng.normal(rng.choice(means, size=n_groups, p=shares), 0.15)
    strength = np.maximum(MEAN_STRENGTH + spread * (strength - MEAN_STRENGTH), 0.05)
    is_probability = (rng.random(n_groups) < 0.5)[group]
    blocks = []
    for query in range(n_queries):
        y = np.zeros(n_documents)
        n_relevant = int(np.clip(rng.lognormal(2.5, 0.7), 2, n_documents // 5))
        y[:n_relevant] = rng.choice([1, 2, 3], size=n_relevant, p=GRADES)
        ease = rng.lognormal(0, 0.3) * rng.lognormal(0, EASE, n_groups)
        seen = SIGNAL[y.astype(int), None] + np.sqrt(COMMON) * rng.normal(size=(n_documents, 1))
        seen = seen + np.sqrt(OF_KIND) * rng.normal(size=(n_documents, 3))
        seen = ease * strength * seen[:, kind_of_group]
        seen += np.sqrt(OF_GROUP) * rng.normal(size=(n_documents, n_groups))
        seen = seen[:, group] + np.sqrt(OWN) * rng.normal(size=(n_documents, n_runs))
        reranked = np.where(_top(seen[:, :1], DEPTH), seen, -np.inf)
        kept = np.where(kind == RERANKER, _top(reranked, RERANKED), _top(seen, DEPTH))
        kept &= rng.random(n_runs) >= UNANSWERED
        size, offset = rng.lognormal(0, 0.4, n_groups)[group], rng.normal(size=n_groups)[group]
        scores = np.where(kept, _scores(seen, size, offset, kind, is_probability), np.nan)
        pool = rng.permutation(np.flatnonzero(kept.any(axis=1)))
        blocks.append(Runs(scores[pool], y[pool], np.full(len(pool), query)))
    return Runs(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _top(seen: Array, n: int) -> NDArray[np.bool_]:
    """Tell which entries are among the n largest of their column."""
    return seen >= -np.partition(-seen, n - 1, axis=0)[n - 1]


def _scores(
    seen: Array,
    size: Array,
    offset: Array,
    kind: NDArray[np.int64],
    is_probability: NDArray[np.bool_],
) -> Array:
    """Return what runs of three kinds make of what they see, all of them increasing functions."""
    logits = 2 * size * seen - 3 + offset
    return np.select(
        [kind == LEXICAL, kind == DENSE, is_probability],
        [8 * np.exp(0.5 * size * seen), 0.6 + 0.03 * (size * seen + offset), expit(logits)],
        logits,
    )


def write_svmlight(path: Path, data: Ranking) -> None:
    """Write lines ``label qid:ID 1:0.12345 ...``, ids from 1, a million numbers at a time.

    Lines whose ids have equally many digits are equally long: a matrix of characters, of which
    only the digits of the numbers differ.
    """
    ids = data.qid + 1
    n_digits = np.char.str_len(ids.astype(str))
    step = max(1, 1_000_000 // data.X.shape[1])
    with open(path, "wb") as file:
        for run in np.split(np.arange(len(ids)), np.flatnonzero(np.diff(n_digits)) + 1):
            for begin in range(0, len(run), step):
                rows = run[begin : begin + step]
                file.write(_lines(data.X[rows], data.y[rows], ids[rows]).tobytes())


def _lines(X: Array, y: Array, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
    values = "".join(f" {j + 1}:{0:.{DECIMALS}f}" for j in range(X.shape[1]))
    template = f"0 qid:{ids[0]}{values}\n".encode()
    lines = np.tile(np.frombuffer(template, np.uint8), (len(X), 1))
    lines[:, 0] += y.astype(np.uint8)
    begin = len("0 qid:")
    width = len(str(ids[0]))
    _put_digits(lines, np.arange(begin, begin + width)[:, None], ids[:, None])
    # The numbers' last digits stand before the spaces and the line's end.
    last = np.flatnonzero(np.isin(lines[0], (ord(" "), ord("\n"))))[2:] - 1
    places = np.concatenate(([-DECIMALS - 1], np.arange(-DECIMALS + 1, 1)))  # without the point
    _put_digits(lines, last + places[:, None], np.rint(X * 10**DECIMALS).astype(np.int64))
    return lines


def _put_digits(
    lines: NDArray[np.uint8], columns: NDArray[np.int64], numbers: NDArray[np.int64]
) -> None:
    """Write numbers (n_rows, n_numbers) as digits to columns (n_digits, n_numbers)."""
    for places in columns[::-1]:
        numbers, digits = np.divmod(numbers, 10)
        lines[:, places] = digits + ord("0")


def main() -> None:
    """Make the data and say where they are."""
    parser = argparse.ArgumentParser(description="Make the data of the kernel benchmarks.")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    folder = parser.parse_args().data
    for name in SHAPES:
        data = load(name, folder)
        print(f"{name}: {data.X.shape[0]:,} x {data.X.shape[1]:,} in {data.qid[-1] + 1:,} queries")
    path = text_file(folder)
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
