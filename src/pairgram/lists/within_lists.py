"""`within_lists`: what a value is beside the others of its list, by which any ranker can learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support.arrays import read_rows
from pairgram._support.checks import AnyArray, ArgumentError, first_not_finite, require_finite
from pairgram._support.machine import thread_count
from pairgram._support.parameters import ListKind, check_text, words
from pairgram.data.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pairgram._support.types import RowsLike

# What the reciprocal ranks of runs add to a rank (Cormack et al., SIGIR 2009).
RANK_OFFSET = 60


def within_lists(X: RowsLike, qid: ArrayLike | None, kind: ListKind = "raw+rank") -> AnyArray:
    """Compare every value with the others of its column in its list.

    Features such as BM25 can be compared within the results of one query alone. Give a ranker what
    this function makes of its rows, in `fit` as in `predict`: the score of a row then depends on
    the other rows of its list.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Missing values are NaN, for "runs" alone.
    qid : array-like of shape (n_rows,) or None
        Ids of the lists, in any order. None means that all rows are one list.
    kind : {"raw+rank", "rank", "standard", "runs"}, default="raw+rank"
        What is made of each column:

        - "rank": the share of the other rows of the list with lower values, where equal values
          count half; 0.5 for a single row;
        - "raw+rank": the columns of X, and then their ranks;
        - "standard": ``(x − mean) / deviation`` over the list, and 0 where all values of the list
          are equal;
        - "runs": for columns that are scores of retrieval systems, NaN where a system lacks the
          row. First the scores from 0 to 1 over the list, and then the reciprocal ranks
          ``60 / (60 + rank)``. Both are 0 where the score is missing. `fuse` uses them.

    Returns
    -------
    ndarray of shape (n_rows, n_features), or (n_rows, 2 n_features) for "raw+rank" and "runs"
        float32 for float32 X, else float64.

    Raises
    ------
    ValueError
        If X holds infinity, or NaN where none may be missing; if its differences or squares
        overflow within a list; if `qid` has another length; or if `kind` is none of these words.

    Notes
    -----
    Nothing is fitted, and no row has a weight. The cost is O(n_rows log n_rows) for each column.

    Examples
    --------
    >>> from pairgram import within_lists
    >>> within_lists([[3.0], [1.0], [7.0], [5.0]], [1, 1, 2, 2], "rank").ravel()
    array([1., 0., 1., 0.])
    """
    check_text("kind", kind, words(ListKind))
    rows = read_rows(X)
    rows = np.require(rows.toarray() if scipy.sparse.issparse(rows) else rows, None, ["C", "A"])
    require_finite(np.where(np.isnan(rows), 0, rows) if kind == "runs" else rows, "X")
    lists = Queries.make(len(rows), qid=qid)
    word, keeps_inputs = kind.removeprefix("raw+"), kind.startswith("raw+")
    threads = thread_count(rows.size)
    found = _core.list_columns(word, keeps_inputs, rows, lists.offsets, lists.order, threads)
    if word != "rank" and (place := first_not_finite(found)) is not None:
        raise ArgumentError(
            "X",
            "too large: differences or squares of its values overflow within a list, which "
            f"{kind!r} needs: divide {{place}}",
            column=place[2] % rows.shape[1],
        )
    return found
