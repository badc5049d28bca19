"""`Sides`: what fits do in place of making products of two groups of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.row_warnings import tell
from pairgram.cross.cross_rows import CrossRows
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries
from pairgram.features.feature_map import FeatureMap
from pairgram.features.inputs import InputMap

# So many rows tell whether left sides vary within queries.
SEEN_ROWS = 10_000


class Sides(NamedTuple):
    """The sides of a map to products.

    Attributes
    ----------
    left : ndarray of int64, or None
        The columns of the left side; None if other columns are made of the rows before.
    n_left, n_right : int
        The numbers of features of the sides. Each of one is multiplied by each of the other.
    right : FeatureMap
        A fitted map to the kept columns and the right side.
    columns : ndarray of int64
        The columns that the sides are made of, with those that are kept.
    """

    left: Rows | None
    n_left: int
    n_right: int
    right: FeatureMap
    columns: Rows

    def after(self, inputs: Any) -> Sides:
        """Return the sides of rows that inputs come before."""
        return self._replace(left=None, right=InputMap(inputs, self.right))

    def check_inputs(self, inputs: Any, warns: bool) -> None:
        """Warn of inputs that have no effect before products."""
        if warns and len(inputs.parts) > 1 and self.columns.max() < inputs.n_features_in_:
            tell(
                "inputs",
                f"{inputs.kind!r} before a Cross changes nothing, because no side names a column "
                "that it adds, which come after those of X: use 'quantile', or give a side some of "
                "them",
            )

    def rows_of(self, systems: Sequence[RankingData], settings: Pairs) -> CrossRows:
        """Return the rows of several systems, for products with their statistics."""
        return CrossRows(self.n_left, self.n_right, self.right, systems, settings)

    def step_work(self, data: RankingData) -> dict[str, float]:
        """Return the work of a product with XᵀLX without it, for one of several systems."""
        n_products = self.n_left * self.n_right
        n_rows, width = len(data.y), data.n_features - n_products + self.n_right
        n_left = n_rows if self._width(data) is None else data.queries.n_filled
        return {"step value": float(n_rows) * width, "gram": 2.0 * n_left * n_products}

    def direct_work(
        self, data: RankingData, n_rows: int, n_held_alphas: int
    ) -> dict[str, float] | None:
        """Return the work up to a matrix, and of held-out scores; None if left sides vary."""
        width = self._width(data)
        if width is None:
            return None
        d, n_queries = float(data.n_features), data.queries.n_filled
        n_held = min(float(n_rows), n_queries * float(width))
        work = {"gram": n_rows * float(width) ** 2 + n_queries * d * d / 2}
        if n_held_alphas:
            work["gram"] += (2.0 * n_held * width + n_queries * d) * d
            work["held out"] = n_held * d * n_held_alphas
        return work

    def _width(self, data: RankingData) -> int | None:
        """Return how many columns vary within queries, or None if the left side does too.

        Some of the rows tell whether it does.
        """
        if scipy.sparse.issparse(data.X):
            return None
        if self.left is not None:
            rows = slice(SEEN_ROWS)
            query, left = data.queries.index()[rows], data.X[rows][:, self.left]
            same = (left[1:] == left[:-1]).all(axis=1) | (query[1:] != query[:-1])
            if not same.all():
                return None
        return data.n_features - (self.n_left - 1) * self.n_right

    def folds_out(
        self, data: RankingData, settings: Pairs, eigen: Any, folds: Queries, alphas: Vector
    ) -> tuple[Vector, Vector] | None:
        """Return scores and shares of whole folds that are held out; None if left sides vary."""
        order = np.arange(len(data.y)) if folds.order is None else folds.order
        sorted_, of_queries = data.take(order), None
        if sorted_.group_of is not None:
            first = np.flatnonzero(np.diff(sorted_.group_of, prepend=-1))
            of_queries = np.append(first, len(sorted_.group_of)).astype(np.int64)
        with single_threaded_blas:
            found = _core.cross_hold_out(
                sorted_.problem(settings),
                sorted_.X,
                sorted_.targets(settings),
                basis=np.ascontiguousarray(eigen.basis),
                eigenvalues=eigen.eigenvalues,
                projection=eigen.projection,
                alphas=alphas,
                folds=of_queries,
                map=sorted_.node_map(),
                n_threads=thread_count(),
            )
        if found is None:
            return None
        scores, held = np.empty((len(alphas), len(order))), np.empty(len(order))
        scores[:, order], held[order] = found
        return scores, held
