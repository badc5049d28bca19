"""Load LETOR's five folds: a folder of files with parts for training, validation and test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from pairgram._support.files import shown
from pairgram.datasets.letor_load import as_text_ids, load_letor

_N_FOLDS = 5
_SUFFIXES = ("", ".xz", ".gz", ".bz2")
_PARTS = ("train", "vali", "test")


class LetorData(NamedTuple):
    """The rows of a part of a data set, with their labels and query ids.

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

    A part is a tuple ``(X, y, qid)``, so it can be the validation set of a search, as in
    ``RankRLSCV().fit(X, y, qid=qid, validation=fold.valid)``.

    Attributes
    ----------
    name : str
        "Fold1" to "Fold5".
    train, valid, test : LetorData
        The three parts. They have the same number of features.
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
        A folder in one of two layouts. The first has the files ``S1.txt`` … ``S5.txt``: fold i
        trains on S_i, S_{i+1} and S_{i+2}, validates on S_{i+3} and tests on S_{i+4}, modulo 5. The
        second has the folders ``Fold1`` … ``Fold5``, each with ``train.txt``, ``vali.txt`` and
        ``test.txt``. Every file name may have a further ending .xz, .gz or .bz2. If the folder has
        both layouts, the S files are read.
    dtype, sparse, n_threads
        As in `load_letor`.
    n_features : int or None
        The number of columns of every part. None takes the largest index in the S files or in the
        files of ``Fold1``, which hold every row of the data set in LETOR's folds.

    Yields
    ------
    Fold
        The folds in the order of their names. A fold has ``.name``, ``.train``, ``.valid`` and
        ``.test``, and each part has ``.X``, ``.y`` and ``.qid``. Training rows stand in the order
        of the files.

    Raises
    ------
    FileNotFoundError
        If the folder is missing, or if neither layout is complete. The message names what is
        missing.
    ValueError
        The errors of `load_letor`; also if some S files have ids and others have none, or if a
        later fold has more features than ``Fold1`` and `n_features` is None.

    Notes
    -----
    The S files are read once, before the first fold. Each fold copies its training rows when it is
    asked for. Its validation and test parts share the memory of the S files. A loop over the folds
    that keeps no fold therefore takes 1 + 3/5 times the memory of the data set.

    Examples
    --------
    >>> from pairgram import RankRLSCV, load_letor_folds
    >>> for fold in load_letor_folds("MQ2008"):  # doctest: +SKIP
    ...     model = RankRLSCV(scoring="map")
    ...     model.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
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
    """Return the paths of the files that exist, with any suffix, and the names of the others."""
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
    """Give all parts as many features as the widest part has. The added features are 0."""
    n_features = max(part.X.shape[1] for part in parts)
    for i, part in enumerate(parts):  # in place, so that at most one matrix is in memory twice
        parts[i] = part._replace(X=_widened(part.X, n_features))
    return parts


def _widened(X: Any, n_features: int) -> Any:
    n_rows, n_own = X.shape
    if n_own == n_features:
        return X
    is_sparse: bool = sp.issparse(X)  # a plain bool, because the type guard does not cover arrays
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
