"""Ranking data: LETOR (SVMlight) files, LETOR's five folds, and synthetic data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from pairgram._files import shown
from pairgram._letor_dump import dump_letor
from pairgram._letor_load import as_text_ids, load_letor

__all__ = [
    "Fold",
    "LetorData",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_ranking",
    "padded",
]

_N_FOLDS = 5
_SUFFIXES = ("", ".xz", ".gz", ".bz2")
_PARTS = ("train", "vali", "test")
# The share of labels below each fifth of the label range, as in the web search data sets.
_CUMULATIVE_SHARES = (0.0, 0.52, 0.84, 0.97, 0.99, 1.0)


class LetorData(NamedTuple):
    """A part of a data set.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), float64
    qid : ndarray of shape (n_rows,), int64, or object with a str in every entry, or None
    """

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any] | None

    def __repr__(self) -> str:
        """Return the shapes."""
        qid = None if self.qid is None else self.qid.shape
        return f"LetorData(X: {self.X.shape}, y: {self.y.shape}, qid: {qid})"


class Fold(NamedTuple):
    """One fold of a cross-validation.

    A part is a tuple ``(X, y, qid)``, so that ``cv=fold.valid`` is a validation set for
    `RankRLSCV`.

    Attributes
    ----------
    name : str
        "Fold1" to "Fold5".
    train, valid, test : LetorData
        With equal numbers of features.
    """

    name: str
    train: LetorData
    valid: LetorData
    test: LetorData

    def __repr__(self) -> str:
        """Return the name and the shapes."""
        return (
            f"Fold({self.name!r}, train={self.train!r}, valid={self.valid!r}, test={self.test!r})"
        )


def load_letor_folds(
    folder: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    n_threads: int | None = None,
) -> Iterator[Fold]:
    """Iterate over the five folds of a LETOR data set.

    Parameters
    ----------
    folder : str or os.PathLike
        Holds either ``S1.txt`` … ``S5.txt``, of which fold i trains on S_i, S_{i+1} and S_{i+2},
        validates on S_{i+3} and tests on S_{i+4}, modulo 5; or ``Fold1`` … ``Fold5``, each with
        ``train.txt``, ``vali.txt`` and ``test.txt``. Every file may end in .xz, .gz or .bz2 in
        addition. A folder with both is read by its S files.
    dtype, sparse, n_threads
        As in `load_letor`.
    n_features : int or None
        The number of columns of every part. None takes the largest index of the S files, or of
        the files of ``Fold1``, which hold every row of the data set in LETOR's folds.

    Yields
    ------
    Fold
        With ``.name``, ``.train``, ``.valid`` and ``.test``, of which each part has ``.X``, ``.y``
        and ``.qid``; in the order of their names. Training rows stand in the order of the files.

    Raises
    ------
    FileNotFoundError
        If the folder is missing, or holds neither layout completely; names what is missing.
    ValueError
        As `load_letor`; if some S files have ids and others none; if a later fold has more
        features than ``Fold1`` and `n_features` is None.

    Notes
    -----
    The S files are read once, before the first fold; each fold copies its training rows when its
    turn comes, and its validation and test parts are those of the S files themselves. So a loop
    over the folds takes 1 + 3/5 times the memory of the data set, where no fold is kept.

    Examples
    --------
    >>> from pairgram import RankRLSCV, load_letor_folds
    >>> for fold in load_letor_folds("MQ2008"):  # doctest: +SKIP
    ...     model = RankRLSCV(cv=fold.valid, scoring="map")
    ...     model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    ...     print(fold.name, model.alpha_, model.score(fold.test.X, fold.test.y, qid=fold.test.qid))
    """
    root = os.fspath(folder)
    if not os.path.isdir(root):
        raise FileNotFoundError(f"{shown(root)}: no such folder")
    options = {"dtype": dtype, "sparse": sparse, "n_threads": n_threads}
    split_names = [f"S{i}.txt" for i in range(1, _N_FOLDS + 1)]
    fold_names = [f"Fold{i}/{part}.txt" for i in range(1, _N_FOLDS + 1) for part in _PARTS]
    splits, missing_splits = _find_files(root, split_names)
    if not missing_splits:
        return _folds_of_splits(splits, n_features, options)
    parts, missing_parts = _find_files(root, fold_names)
    if not missing_parts:
        return _folds_of_parts(parts, n_features, options)
    raise FileNotFoundError(_missing_message(root, splits, missing_splits, parts, missing_parts))


def _find_files(root: str, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the paths of the files that are there, whatever suffix, and the others' names."""
    found, missing = [], []
    for name in names:
        paths = [os.path.join(root, *name.split("/")) + suffix for suffix in _SUFFIXES]
        path = next((path for path in paths if os.path.isfile(path)), None)
        if path is None:
            missing.append(name)
        else:
            found.append(path)
    return found, missing


def _missing_message(
    root: str,
    splits: list[str],
    missing_splits: list[str],
    parts: list[str],
    missing_parts: list[str],
) -> str:
    looked_for = (
        "S1.txt … S5.txt or Fold1 … Fold5 with train.txt, vali.txt and test.txt "
        "(each also as .xz, .gz or .bz2)"
    )
    if not splits and not parts:
        return f"{shown(root)}: found none of {looked_for}"
    missing = missing_parts if parts else missing_splits
    return f"{shown(root)}: {', '.join(missing)} missing, looked for {looked_for}"


def _folds_of_splits(
    paths: list[str], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    splits = padded(
        [LetorData(*load_letor(path, n_features=n_features, **options)) for path in paths]
    )
    if len({split.qid is None for split in splits}) > 1:
        without = next(path for path, split in zip(paths, splits, strict=True) if split.qid is None)
        raise ValueError(f"{shown(without)}: found no qid, want ids as in the other S files")
    for i in range(_N_FOLDS):
        turn = [splits[(i + k) % _N_FOLDS] for k in range(_N_FOLDS)]
        yield Fold(f"Fold{i + 1}", _stacked(turn[:3]), turn[3], turn[4])


def _folds_of_parts(
    paths: list[str], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    for i in range(_N_FOLDS):
        files = paths[len(_PARTS) * i : len(_PARTS) * (i + 1)]
        parts = padded(
            [LetorData(*load_letor(path, n_features=n_features, **options)) for path in files]
        )
        n_features = parts[0].X.shape[1] or None
        yield Fold(f"Fold{i + 1}", *parts)


def padded(parts: list[LetorData]) -> list[LetorData]:
    """Give all parts as many features as the widest has; the added ones are 0."""
    n_features = max(part.X.shape[1] for part in parts)
    for i, part in enumerate(parts):  # in place, so that no more than one matrix is there twice
        parts[i] = part._replace(X=_widened(part.X, n_features))
    return parts


def _widened(X: Any, n_features: int) -> Any:
    n_rows, n_own = X.shape
    if n_own == n_features:
        return X
    is_sparse: bool = sp.issparse(X)  # a plain bool: the type guard knows no arrays
    if is_sparse:
        return sp.csr_array((X.data, X.indices, X.indptr), shape=(n_rows, n_features))
    wide = np.zeros((n_rows, n_features), dtype=X.dtype)
    wide[:, :n_own] = X
    return wide


def _stacked(parts: list[LetorData]) -> LetorData:
    matrices = [part.X for part in parts]
    sparse = sp.issparse(matrices[0])
    X: Any = sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
    qids = [part.qid for part in parts if part.qid is not None]
    if any(qid.dtype == object for qid in qids):
        qids = [as_text_ids(qid) for qid in qids]
    return LetorData(
        X,
        np.concatenate([part.y for part in parts]),
        np.concatenate(qids) if qids else None,
    )


def make_ranking(
    n_queries: int = 100,
    n_documents: int | tuple[int, int] = 20,
    n_features: int = 20,
    *,
    n_informative: int | None = None,
    n_levels: int = 5,
    n_factors: int = 8,
    noise: float = 1.0,
    query_effect: float = 0.5,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Make ranking data like that of web search: correlated features, few documents of high label.

    Parameters
    ----------
    n_queries : int
        At least 1.
    n_documents : int ≥ 1 or (low, high)
        Documents per query; of a range, each query draws its number, both ends included.
    n_features : int
        At least 1.
    n_informative : int from 0 to n_features, or None
        How many features, drawn at random, the labels depend on; None takes 30 %, one at least.
    n_levels : int ≥ 1
        Labels are 0 … n_levels - 1; of 5 levels about 52, 32, 13, 2 and 1 % of the documents have
        label 0 … 4, of others as many as the same curve gives.
    n_factors : int ≥ 0
        The number of hidden factors by which features correlate; 0 makes them independent.
    noise : float ≥ 0
        Standard deviation of what the features do not tell, relative to what they do.
    query_effect : float ≥ 0
        Standard deviation of the offset that each feature, and the relevance, has in a query,
        relative to that within queries. The relevance's offset is invisible to a pairwise loss
        and misleads a pointwise one.
    random_state : int, RandomState, Generator or None
        Equal ones give equal data.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), float64
        Each feature in [0, 1], its smallest value 0 and its largest 1.
    y : ndarray of shape (n_rows,), float64
    qid : ndarray of shape (n_rows,), int64
        0 … n_queries - 1; the documents of a query stand together, in the order of the ids.

    Raises
    ------
    ValueError, TypeError
        If a number is out of its range, or no number.

    Notes
    -----
    With factors f of a document and offsets b of its query, all standard normal, the features are
    A f + ε + query_effect · b, each then mapped onto [0, 1]; the relevance is a random linear
    function of the informative ones, standardised, + noise · ε' + query_effect · b'. Labels cut the
    relevance at its quantiles.

    O(n_rows · n_features · n_factors); memory for two matrices like `X`.

    Examples
    --------
    >>> from pairgram.datasets import make_ranking
    >>> X, y, qid = make_ranking(n_queries=3, n_documents=(5, 9), random_state=0)
    >>> X.shape[1], len(set(qid.tolist()))
    (20, 3)
    """
    n_queries = _check_count(n_queries, "n_queries", 1)
    n_features = _check_count(n_features, "n_features", 1)
    n_levels = _check_count(n_levels, "n_levels", 1)
    n_factors = _check_count(n_factors, "n_factors", 0)
    noise = _check_scale(noise, "noise")
    query_effect = _check_scale(query_effect, "query_effect")
    if n_informative is None:
        n_informative = max(1, round(0.3 * n_features))
    n_informative = _check_count(n_informative, "n_informative", 0, n_features)
    rng = _as_random(random_state)
    sizes = _draw_sizes(rng, n_queries, n_documents)
    qid = np.repeat(np.arange(n_queries, dtype=np.int64), sizes)

    X = rng.normal(size=(len(qid), n_features))
    if n_factors:
        loadings = rng.normal(size=(n_factors, n_features)) / np.sqrt(n_factors)
        X += rng.normal(size=(len(qid), n_factors)) @ loadings
    X += query_effect * rng.normal(size=(n_queries, n_features))[qid]

    informative = rng.permutation(n_features)[:n_informative]
    relevance = _standardised(X[:, informative] @ rng.normal(size=n_informative))
    relevance += noise * rng.normal(size=len(qid))
    relevance += query_effect * rng.normal(size=n_queries)[qid]
    steps = np.arange(1, n_levels) / n_levels
    shares = np.interp(steps, np.linspace(0, 1, len(_CUMULATIVE_SHARES)), _CUMULATIVE_SHARES)
    y = np.searchsorted(np.quantile(relevance, shares), relevance).astype(np.float64)

    low = X.min(axis=0)
    spread = X.max(axis=0) - low
    X -= low
    X /= np.where(spread > 0, spread, 1)
    return X, y, qid


def _check_count(value: Any, name: str, low: int, high: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low or (high is not None and value > high):
        wanted = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {wanted}, got {value}")
    return int(value)


def _check_scale(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and >= 0, got {value}")
    return float(value)


def _as_random(random_state: object) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(_check_count(random_state, "random_state", 0))


def _draw_sizes(
    rng: np.random.RandomState | np.random.Generator,
    n_queries: int,
    n_documents: int | Sequence[int],
) -> NDArray[np.int64]:
    if not isinstance(n_documents, Sequence):
        return np.full(n_queries, _check_count(n_documents, "n_documents", 1), dtype=np.int64)
    if len(n_documents) != 2:
        raise ValueError(f"n_documents must be an integer or (low, high), got {n_documents!r}")
    low = _check_count(n_documents[0], "n_documents[0]", 1)
    high = _check_count(n_documents[1], "n_documents[1]", low)
    draws = rng.random(n_queries) if isinstance(rng, np.random.Generator) else rng.rand(n_queries)
    return low + np.floor(draws * (high - low + 1)).astype(np.int64)


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = values.std()
    centred: NDArray[np.float64] = values - values.mean()
    return centred / spread if spread > 0 else centred
