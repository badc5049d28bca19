"""Sparse matrices whose structure is broken, and all doors of the library that take one."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import forms
import pairgram as pg

FAR = (-1, -(2**31), -(2**40), 10**8, 2**31 - 1, 2**40)


def wrong_index(rng, n):
    """An index outside 0 … n − 1, mostly near it."""
    return int(rng.choice([n, n + 1, *FAR]))


def broken(X, rng):
    """Return a copy of a dense matrix in a sparse format, broken in one place, and what is broken.

    Breaks by random choice: an index, or several; indptr's begin, order, end or length; the lengths
    of data and indices; coordinates and offsets; also with 64-bit indices.
    """
    kind = str(rng.choice(["csr", "csr", "csr", "csc", "coo", "bsr", "lil", "dok"]))
    make = {
        "csr": sp.csr_array,
        "csc": sp.csc_array,
        "coo": sp.coo_array,
        "bsr": lambda A: sp.bsr_array(A, blocksize=(1, 1)),
        "lil": sp.lil_array,
        "dok": sp.dok_array,
    }[kind]
    S = make(np.where(rng.random(X.shape) < 0.7, X, 0))
    if kind in ("csr", "csc", "bsr"):
        return S, f"{kind} {break_compressed(S, rng)}"
    n_rows, n_columns = X.shape
    if kind == "coo":
        S.coords = tuple(part.astype(np.int64) for part in S.coords)
        axis, at = int(rng.integers(2)), int(rng.integers(S.nnz))
        S.coords[axis][at] = wrong_index(rng, X.shape[axis])
        if rng.random() < 0.2:
            S.data = S.data[:-1]
    elif kind == "lil":
        row = int(rng.choice([i for i, columns in enumerate(S.rows) if columns]))
        if rng.random() < 0.5:
            S.rows[row][0] = wrong_index(rng, n_columns)
        else:
            S.data[row] = S.data[row][:-1]
    else:
        S._dict[int(rng.integers(n_rows)), wrong_index(rng, n_columns)] = 1.0
    return S, kind


def break_compressed(S, rng):
    """Break CSR, CSC or BSR in place."""
    limit = S.shape[0 if S.format == "csc" else 1]
    if rng.random() < 0.5:
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    dtype = S.indices.dtype
    how = str(
        rng.choice(["index", "indices", "begin", "order", "end", "long", "short", "data", "cut"])
    )
    wrong = np.array(wrong_index(rng, limit)).astype(dtype)  # may wrap to another wrong one
    wrong = np.array(limit, dtype) if 0 <= wrong < limit else wrong
    at = int(rng.integers(len(S.indices)))
    if how == "index":
        S.indices[at] = wrong
    elif how == "indices":
        S.indices[:] = wrong
    elif how == "begin":
        S.indptr[0] = int(rng.choice([-1, 1, -(10**6)]))
    elif how == "order":
        place = int(rng.integers(1, len(S.indptr) - 1))
        S.indptr[place] = int(rng.choice([-1, -(2**31), 10**8, 2**31 - 1]))
    elif how == "end":
        S.indptr[-1] += int(rng.choice([1, 7, 10**6]))
    elif how == "long":
        S.indptr = np.append(S.indptr, S.indptr[-1])
    elif how == "short":
        S.indptr = S.indptr[:-1].copy()
    elif how == "data":
        S.data = S.data[:-1].copy()
    else:
        S.indices = S.indices[: len(S.indices) // 2].copy()
    return how


def doors(X, y, qid):
    """Return the functions that take a sparse matrix like X: {name: function}."""
    rankers = {
        "RankRLS": pg.RankRLS(),
        "RankRLS dual": forms.RankRLS(form="dual"),
        "RankRLS rbf": pg.RankRLS(feature_map=pg.Kernel("rbf")),
        "RankRLS nodes": pg.RankRLS(feature_map=pg.RandomNodes(3, random_state=0)),
        "RankRLSCV": pg.RankRLSCV([1.0]),
        "PairwiseELMCV": pg.PairwiseELMCV([1.0], n_nodes=3, random_state=0),
        "ELMRank": pg.ELMRank(n_nodes=3, random_state=0),
        "RankSVM": pg.RankSVM(),
        "RankSVMCV": pg.RankSVMCV([1.0], cv=2),
    }
    maps = {
        "RandomNodes": pg.RandomNodes(3, random_state=0),
        "RandomFourier": pg.RandomFourier(3, random_state=0),
        "Nystroem": pg.Nystroem(n_components=3, random_state=0),
    }
    gram = pg.Pairgram.from_rows(X, y, qid=qid)
    found = {}
    for name, ranker in rankers.items():
        fitted = clone(ranker).fit(X, y, qid=qid)
        found[f"{name}.fit"] = lambda S, r=ranker: r.fit(S, y, qid=qid)
        found[f"{name}.predict"] = fitted.predict
    for name, feature_map in maps.items():
        fitted = clone(feature_map).fit(X)
        found[f"{name}.fit"] = feature_map.fit
        found[f"{name}.transform"] = fitted.transform
    one = pg.RankRLS().fit(X, y, qid=qid)
    return found | {
        "score": lambda S: one.score(S, y, qid=qid),
        "make_scorer": lambda S: pg.make_scorer("map")(one, S, y, qid=qid),
        "Pairgram.from_rows": lambda S: pg.Pairgram.from_rows(S, y, qid=qid),
        "Pairgram.update": lambda S: gram.update(S, y),
        "validation set": lambda S: pg.RankRLSCV([1.0]).fit(X, y, qid=qid, validation=(S, y, qid)),
        "RankSVMCV validation": lambda S: pg.RankSVMCV([1.0]).fit(
            X, y, qid=qid, validation=(S, y, qid)
        ),
        "fit_many": lambda S: pg.fit_many(pg.RankRLS(), [(S, y, qid)]),
        "fit_many kernel": lambda S: pg.fit_many(
            pg.RankRLS(feature_map=pg.Kernel("rbf")), [(S, y, qid)]
        ),
        "kernel_matrix": pg.kernel_matrix,
        "kernel_matrix Z": lambda S: pg.kernel_matrix(X, S),
        "kernel_matrix laplacian": lambda S: pg.kernel_matrix(S, kernel="laplacian"),
        "dump_letor": lambda S: pg.dump_letor("/dev/null", S, y, qid=qid),
    }
