"""What the scores of a model are made of: similar training rows, and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import pairgram
from pairgram._support.arrays import blocks, read_rows, reads_lists, without_names
from pairgram._support.checks import ArgumentError, require_finite
from pairgram._support.parameters import NeighboursBy, check_size, check_text, words

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike

# Kernel values of so many rows are in memory at once.
BLOCK = 256


def _checked(model: BaseEstimator, X: RowsLike) -> Any:
    """Return the rows, after checking that each has a score of its own."""
    check_is_fitted(model)
    if reads_lists(model):
        raise ArgumentError(
            "model", "must score rows alone, which a model with inputs within lists cannot do"
        )
    rows = read_rows(X, estimator=model, sparse="csr")
    fill = getattr(model, "fill_values_", None)
    if fill is not None and not scipy.sparse.issparse(rows):
        rows = np.where(np.isnan(rows), fill.astype(rows.dtype), rows)
    require_finite(rows, "X")
    return rows


def _rows_within(model: BaseEstimator) -> tuple[Any, Any, NDArray[np.float64], NDArray[np.int64]]:
    """Return the (kernel, rows, their weights, their numbers in fit) of a kernel model."""
    own = model.feature_map_
    coef = np.asarray(model.coef_, np.float64)
    if isinstance(own, pairgram.KernelMap):
        return own.kernel_, own.support_rows_, coef, own.support_
    if isinstance(own, pairgram.Nystroem):
        rows = own.components_
        numbers = getattr(own, "component_indices_", np.full(len(rows), -1))
        return own.kernel_, rows, np.asarray(own.whitening_, np.float64) @ coef, numbers
    what = "no feature map" if own is None else type(own).__name__
    raise ArgumentError("model", f"must have a kernel or a Nystroem map, got one with {what}")


def neighbours(
    model: BaseEstimator, X: RowsLike, k: int = 5, *, by: NeighboursBy = "share"
) -> dict[str, NDArray[Any]]:
    """Return the training rows that contribute most to the score of each row.

    The score of a kernel model is a sum over training rows, ``Σ_i w_i K(x, x_i)``, to which an
    intercept or the scores of a prior may be added.

    Parameters
    ----------
    model : fitted ranker with a kernel, a `KernelMap` or a `Nystroem` map
        The landmarks of a `Nystroem` map take the place of training rows.
    X : array-like or CSR matrix of shape (n_rows, n_features)
    k : int ≥ 1, default=5
        How many training rows are returned for each row of X; all of them, if there are fewer.
    by : {"share", "similarity"}, default="share"
        Which training rows are returned: those whose shares of the score are largest in absolute
        value, or those that are most similar.

    Returns
    -------
    dict of str to ndarray
        - ``row``, int64 of shape (n_rows, k): the numbers of the training rows in `fit`, in the
          order of `by`; −1 for landmarks of "kmeans", which are no training rows;
        - ``share``, shape (n_rows, k): what each adds to the score, ``w_i K(x, x_i)``;
        - ``rest``, shape (n_rows,): what all other training rows add;
        - ``similarity``, shape (n_rows, k): the kernel values ``K(x, x_i)``;
        - ``parts``, shape (n_rows, k, n_parts): for a `Product` or a `Sum`, the weighted values of
          its parts, whose product or sum is the similarity; for other kernels, the similarity.

    Raises
    ------
    ValueError
        If the model has no kernel, or inputs within lists; if X is not as in `predict`.

    Notes
    -----
    Only differences of scores within a list have a meaning, and negative shares matter as much as
    positive ones: similarity to a training row that ranked low pulls a row down.

    With a small ridge, the rows with the largest shares are often not the most similar ones.
    Weights are then large, and rows that are similar to each other may have opposite signs: their
    shares nearly cancel, though each is larger than that of the most similar row.
    ``by="similarity"`` finds the most similar rows for any ridge. Rows whose weight is exactly 0
    are not among them where the model does not keep them; see `RankRLS` for its ``feature_map_``.

    Kernel values are computed for 256 rows of X at a time.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking, neighbours
    >>> X, y, qid = make_ranking(20, 20, 10, random_state=0)
    >>> model = RankRLS(kernel="rbf").fit(X, y, qid=qid)
    >>> found = neighbours(model, X, k=3)
    >>> found["row"].shape, found["parts"].shape
    ((400, 3), (400, 3, 1))
    """
    check_text("by", by, words(NeighboursBy))
    rows = _checked(model, X)
    kernel, support, weights, numbers = _rows_within(model)
    k = min(check_size("k", k), len(weights))
    inputs, n_rows = getattr(model, "inputs_", None), rows.shape[0]
    kernels = getattr(kernel, "kernels", (kernel,))
    found: dict[str, NDArray[Any]] = {
        "row": np.empty((n_rows, k), np.int64),
        "share": np.empty((n_rows, k)),
        "rest": np.empty(n_rows),
        "similarity": np.empty((n_rows, k)),
        "parts": np.empty((n_rows, k, len(kernels))),
    }
    for block in blocks(n_rows, BLOCK):
        own = rows[block] if inputs is None else inputs.transform(rows[block])
        K = model.feature_map_.transform(own) if support is None else _values(kernel, own, support)
        shares = K * weights
        most = np.abs(shares) if by == "share" else K
        order = np.argsort(-most, axis=1, kind="stable")[:, :k]
        found["row"][block] = numbers[order]
        found["share"][block] = np.take_along_axis(shares, order, axis=1)
        found["rest"][block] = shares.sum(axis=1) - found["share"][block].sum(axis=1)
        found["similarity"][block] = np.take_along_axis(K, order, axis=1)
        if len(kernels) == 1 and not hasattr(kernel, "kernels"):
            found["parts"][block, :, 0] = found["similarity"][block]
            continue
        for number, (part, factor) in enumerate(zip(kernels, kernel.factors, strict=True)):
            values = factor * _values(part, own, support)
            found["parts"][block, :, number] = np.take_along_axis(values, order, axis=1)
    return found


def _values(kernel: object, X: RowsLike, Z: RowsLike) -> NDArray[Any]:
    """Return the values of a kernel that has its numbers."""
    name = getattr(kernel, "name", None)
    own: Any = name if callable(name) else kernel
    return pairgram.kernel_matrix(X, Z, own)


def column_effects(model: BaseEstimator, X: RowsLike) -> NDArray[np.float64]:
    """Return by how much the score of a row would fall if a column were 0, for each column.

    For fingerprints, this is what the score would lose without a bit. For a model that is linear in
    a column, it is ``weight × value``, as in `contributions` up to the constant that inputs
    subtract from the column. In other models effects depend on each other, and do not add up to the
    score.

    Parameters
    ----------
    model : fitted ranker
    X : array-like or CSR matrix of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64
        The score of the row minus the score of the same row with 0 in the column. Where a row has 0
        already, the effect is 0. If 0 is not a usual value of a column, such as a year, its effect
        means little.

    Raises
    ------
    ValueError
        If X is not as in `predict`, or if the model has inputs within lists.

    Notes
    -----
    The cost is that of scoring as many rows as X has nonzero entries.

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import RankRLS, column_effects
    >>> bits = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    >>> model = RankRLS(kernel="tanimoto", scope="global").fit(bits, [3, 1, 2, 0])
    >>> column_effects(model, bits[:1]).round(2)
    array([[2.  , 0.  , 0.06]])
    """
    rows = _checked(model, X)
    own = without_names(model)
    effects = np.zeros(rows.shape)
    for number in range(rows.shape[0]):
        row = rows[[number]].toarray()[0] if scipy.sparse.issparse(rows) else rows[number]
        columns = np.flatnonzero(row)
        for some in np.array_split(columns, max(1, -(-len(columns) // BLOCK))):
            variants = np.repeat(row[None], len(some) + 1, axis=0)
            variants[np.arange(len(some)), some] = 0
            scores = np.asarray(own.predict(variants), np.float64)
            effects[number, some] = scores[-1] - scores[:-1]
    return effects
