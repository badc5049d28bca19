"""Sparse matrices whose parts do not fit each other, at every door: refused, not read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from sklearn.base import clone

from pairgram import ELMRank, Pairgram, RankRLSCV, RankSVMCV, dump_letor, fit_many, kernel_matrix

from . import fitted
from .runner import Case, Outcome

FORMATS = ("csr", "csr", "csr", "csc", "coo", "bsr", "lil")
INDICES = (-1, -(2**31), 1, 3, 4, 5, 17, 18, 71, 72, 10**4, 10**8, 2**31 - 1)


def prepare(folder: Path, short: bool) -> None:
    """Do nothing: matrices need no files."""


def doors(folder: Path) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield (name, function of a matrix) of everything that takes rows; it has 18 x 4 entries."""
    X, y, qid = fitted.rows()
    S = sp.csr_array(X)
    for name, estimator in fitted.estimators():
        if name.startswith(("RankRLSCV nodes", "RankSVM nodes", "RankRLSCV fourier")):
            continue  # what maps these rows is among the others
        model = clone(estimator).fit(S, y, qid=qid)
        yield f"{name}: fit", lambda M, made=estimator: clone(made).fit(M, y, qid=qid)
        yield f"{name}: predict", model.predict
        if name == "RankRLS":
            yield f"{name}: score", partial(model.score, y=y, qid=qid)
    for search in (RankRLSCV([1.0, 2.0]), RankSVMCV([0.1, 1.0])):
        name = type(search).__name__
        yield (
            f"{name}: validation",
            lambda M, made=search: clone(made).fit(X, y, qid=qid, validation=(M, y, qid)),
        )
    for name, feature_map in fitted.feature_maps():
        yield f"{name}: fit", lambda M, made=feature_map: clone(made).fit(M)
        yield f"{name}: transform", clone(feature_map).fit(S).transform
    yield "Pairgram.from_rows", lambda M: Pairgram.from_rows(M, y, qid=qid)
    yield "Pairgram.update", lambda M: Pairgram.from_rows(X, y, qid=qid + 9).update(M, y, qid=qid)
    for ranker in (RankRLSCV([1.0, 2.0]), ELMRank(n_nodes=3, random_state=0)):
        yield (
            f"fit_many {type(ranker).__name__}",
            lambda M, made=ranker: fit_many(made, [(S, y, qid), (M, y, qid)]),
        )
    for kernel in fitted.KERNELS:
        yield f"kernel_matrix {kernel}", partial(kernel_matrix, kernel=kernel)
        yield f"kernel_matrix {kernel}, Z", lambda M, k=kernel: kernel_matrix(X, M, kernel=k)
    yield "dump_letor", lambda M: dump_letor(folder / f"work {os.getpid()}", M, y, qid)


def corrupted(folder: Path, seed: int) -> Case:
    """Give a matrix that is damaged to one of the doors."""
    every = list(doors(folder))

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        name, door = every[number % len(every)]
        matrix, how = _damaged(rng)
        what = f"{name}, {how}"
        if _is_sound(matrix):
            return "sound matrix", ""
        try:
            door(matrix)
        except ValueError:
            return "refused", ""
        except BaseException as error:
            return "undocumented error", f"{what}: {error!r}"
        return "silent loss", f"{what}: accepted"

    return case


def _damaged(rng: Generator) -> tuple[Any, str]:
    """Return a matrix with something wrong, or rarely not, and what it is."""
    X = fitted.rows()[0] * (rng.random((18, 4)) < rng.choice([0.3, 1.0]))
    matrix = sp.csr_array(X).asformat(FORMATS[int(rng.integers(len(FORMATS)))])
    if rng.random() < 0.5 and matrix.format in ("csr", "csc"):
        matrix.sort_indices()
        assert matrix.has_canonical_format  # remembered, whatever happens to the indices
    value = INDICES[int(rng.integers(len(INDICES)))]
    if matrix.format == "lil":
        row = int(rng.integers(18))
        if rng.random() < 0.5:
            matrix.rows[row] = [*matrix.rows[row][:-1], value]
            return matrix, f"lil rows[{row}] = {matrix.rows[row]}"
        matrix.data[row] = matrix.data[row][:-1]
        return matrix, f"lil data[{row}] is shorter"
    parts = ("row", "col", "data") if matrix.format == "coo" else ("indices", "indptr", "data")
    part = parts[int(rng.choice([0, 0, 0, 1, 1, 1, 2]))]
    array = getattr(matrix, part).copy()
    kind = int(rng.integers(8))
    if part == "data" or kind == 0:
        array = array[: -int(rng.integers(1, 4))]
        how = f"of length {len(array)}"
    elif kind == 1:
        array = np.append(array, array[-1:])
        how = f"of length {len(array)}"
    else:
        at = int(rng.integers(len(array)))
        at = (0, len(array) - 1, at, at, at)[int(rng.integers(5))]
        if rng.random() < 0.3:
            array = array.astype(np.int64)
            value = value * 2**31 + 1 if rng.random() < 0.3 else value
        array[at] = value
        how = f"[{at}] = {value}"
    if matrix.format == "coo" and part != "data":
        coords = list(matrix.coords)
        coords[parts.index(part)] = array
        matrix.coords = tuple(coords)
    else:
        setattr(matrix, part, array)
    return matrix, f"{matrix.format} {part} {how}"


def _is_sound(matrix: Any) -> bool:
    """Tell whether the parts of a matrix fit each other."""
    n_rows, n_columns = matrix.shape
    if matrix.format == "lil":
        pairs = list(zip(matrix.rows, matrix.data, strict=True))
        return all(
            len(row) == len(data) and all(0 <= i < n_columns for i in row) for row, data in pairs
        )
    if matrix.format == "coo":
        rows, columns = matrix.coords
        if not len(rows) == len(columns) == len(matrix.data):
            return False
        return _within(rows, n_rows) and _within(columns, n_columns)
    if matrix.format == "csc":
        n_rows, n_columns = n_columns, n_rows
    if matrix.format == "bsr":
        n_rows //= matrix.data.shape[1]
        n_columns //= matrix.data.shape[2]
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices
    return bool(
        len(indptr) == n_rows + 1
        and indptr[0] == 0
        and (np.diff(indptr) >= 0).all()
        and indptr[-1] <= len(indices) == len(matrix.data)
        and _within(indices[: indptr[-1]], n_columns)
    )


def _within(indices: Any, length: int) -> bool:
    return bool(((indices >= 0) & (indices < length)).all())
