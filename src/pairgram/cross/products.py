"""Products of two groups of columns: people × items, queries × documents."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

import pairgram._core as _core
from pairgram._support.checks import AnyArray, ArgumentError, verbatim
from pairgram._support.parameters import COUNT, TEXT, Setting, is_integer, list_of, optional
from pairgram._support.schema import INT64, Array, Arrays, Kind, Sizes, require
from pairgram.cross.named_columns import Columns, column_numbers, columns_in_file
from pairgram.cross.sides import Sides
from pairgram.features.feature_map import (
    FeatureMap,
    Formula,
    finite_rows,
)

if TYPE_CHECKING:
    from pairgram._support.checks import Vector
    from pairgram._support.types import Matrix, RowsLike


_COLUMN = Setting("a name or a number", lambda value: is_integer(value) or TEXT.fits(value))
COLUMNS = Setting(
    "a name or a number of a column, or a list of these",
    lambda value: _COLUMN.fits(value) or list_of(_COLUMN, "").fits(value),
)


@dataclass(eq=False, repr=False)
class Cross(FeatureMap):
    """Products ``u_a v_b`` of columns u of one side and v of the other, such as people × items.

    A linear model of these features is ``f(u, v) = uᵀ W v``. If u describes a person (or a query)
    and v an item (or a document), the model ranks for people and items that it has never seen.
    A constant 1 stands before u, so that a part of the model, ``w₀ᵀ v``, is the same for everybody.

    Products of all rows are never stored. If the left side is the same for all rows of a query, as
    it is if a query is a person, they are not even computed: the Gram matrix of q queries takes
    ``n r² + q (p r)² / 2`` multiplications for p columns times r, in place of ``n (p r)²``.

    Parameters
    ----------
    left : str, int, slice, or list of str and int
        The columns u, by their names if X is a frame, or by their numbers. A table's column of
        lists, such as embeddings, stands for one column per entry.
    right : str, int, slice, or list of str and int
        The columns v.
    keep : str, int, slice, list of str and int, or None, default=None
        Columns that are features as they are. They matter only if they vary within queries.

    Attributes
    ----------
    kept_, left_, right_ : ndarray of int64
        The numbers of the columns.
    n_features_in_ : int

    Notes
    -----
    The features are the kept columns, then v, then ``u_a v`` for every a. `transform` takes one
    multiplication per feature. So ``coef_[n_kept:].reshape(-1, n_right)`` of a fitted ranker has a
    row for the part that is the same for everybody, and one for each column of the left side.

    A matrix of (p r)² numbers may be too large, as for two embeddings of 384 numbers. `RankRLS` and
    `RankRLSCV` then solve by conjugate gradients, in ``O(n r + q p r)`` for each step, and
    ``cv=None`` holds out five folds of queries in place of every query. If the left side varies
    within queries, runs of equal rows take the place of queries. Conjugate gradients end at a
    residual of 1e-8 to 1e-10. Columns of very different sizes, or far from 0, therefore lose digits
    where alpha is small: scale them.

    After a scale, as in ``make_pipeline(Quantile(raw=True), Cross(...))``, the columns are those
    that the scale makes. Quantiles beside the columns are columns of their own. They are named like
    ``quantile of age``, or numbered after those of X. They count only if a side names them, and a
    ranker warns if none does.

    References
    ----------
    Pahikkala, Waegeman, Tsivtsivadze, Salakoski, De Baets. Learning intransitive reciprocal
    relations with kernel methods. European Journal of Operational Research 206, 2010. Pahikkala,
    Airola, Stock, De Baets, Waegeman. Efficient regularized least-squares algorithms for
    conditional ranking on relational data. Machine Learning 93, 2013. §4.

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import Cross
    >>> Cross([0, 1], [2, 3]).fit_transform(np.array([[2.0, 3, 5, 7]]))
    array([[ 5.,  7., 10., 14., 15., 21.]])
    """

    _of_columns = ("left", "right", "keep")  # the parameters that may have names

    left: Columns
    right: Columns
    _: KW_ONLY
    keep: Columns | None = None

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Find the columns in rows X, (n_rows, n_features).

        Raises
        ------
        ValueError
            If a column is unknown or on both sides, or a parameter is not as described. The
            message names it.
        """
        return self._fit_named(
            finite_rows(self, X, reset=True), getattr(self, "feature_names_in_", None)
        )

    def _fit_checked(self, X: Matrix, names: Sequence[Hashable] | None = None) -> Self:
        self.n_features_in_ = X.shape[1]
        return self._fit_named(X, names)

    def _fit_named(self, X: Matrix, names: Sequence[Hashable] | None) -> Self:
        self.kept_ = column_numbers(self.keep, "keep", X.shape[1], names)
        self.left_ = column_numbers(self.left, "left", X.shape[1], names)
        self.right_ = column_numbers(self.right, "right", X.shape[1], names)
        for name, columns in (("left", self.left_), ("right", self.right_)):
            if not len(columns):
                raise ArgumentError(name, "must name a column or more, got none")
        both = np.intersect1d(self.left_, self.right_)
        if len(both):
            shown = int(both[0]) if names is None else names[both[0]]
            raise ArgumentError(
                "left",
                f"must not have columns of the right side, got {verbatim(repr(shown))} on both: "
                "give keep a column that is its square",
            )
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Return names such as ``"age × price"``.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), or None
            Names of the columns of X; None takes those of the fit, or x0, x1 and so on.

        Returns
        -------
        ndarray of shape (n_features_out,), of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        left, right = names[self.left_], names[self.right_]
        products = [f"{u} × {v}" for u in left for v in right]
        return np.array([*names[self.kept_], *right, *products], dtype=object)

    def _unmade(self) -> Sides:
        n_left, n_right = len(self.left_) + 1, len(self.right_)
        right = copy(self)  # the kept columns, and the right side times 1
        right.left_ = self.left_[:0]
        columns = np.concatenate([self.kept_, self.left_, self.right_])
        return Sides(self.left_, n_left, n_right, right, columns)

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        n_kept, identity = len(self.kept_), np.eye(self.n_features_in_)
        rows = coef[n_kept:].reshape(-1, len(self.right_))
        weights = np.zeros(self.n_features_in_)
        weights[self.kept_] = coef[:n_kept]
        weights[self.right_] += rows[0]
        products = x.products(identity[:, self.left_] @ rows[1:], identity[:, self.right_])
        return x.times(weights[:, None]).plus(products)

    def _node_map(self, dtype: DTypeLike) -> Any:
        kind = _core.NodeMap32 if dtype == np.float32 else _core.NodeMap64
        return kind.cross(self.n_features_in_, self.kept_, self.left_, self.right_)

    @staticmethod
    def _check_sides(settings: Any, arrays: Arrays, sizes: Sizes) -> None:
        """Check that all columns are those of the rows."""
        n_features = settings["fitted"]["n_features_in_"]
        for name in ("map_kept", "map_left", "map_right"):
            columns = arrays[name]
            inside = ((columns >= 0) & (columns < n_features)).all()
            require(inside, f"{name} must be columns of the {n_features} of X")
            require(len(np.unique(columns)) == len(columns), f"{name} must name a column once")
        both = np.isin(arrays["map_left"], arrays["map_right"]).any()
        require(not both, "map_left and map_right must not have a column on both sides")
        sizes["features"] = n_features
        n_outputs = sizes["n_kept"] + (sizes["left"] + 1) * sizes["right"]
        require(sizes.setdefault("outputs", n_outputs) == n_outputs, f"want {n_outputs} features")

    _in_file = Kind(
        {
            "left": COLUMNS,
            "right": COLUMNS,
            "keep": optional(COLUMNS),
            "fitted": {"n_features_in_": COUNT},
        },
        {
            "map_kept": Array(INT64, ("n_kept",)),
            "map_left": Array(INT64, ("left",)),
            "map_right": Array(INT64, ("right",)),
        },
        _check_sides,
    )

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the current parameters, as a model file holds them."""
        own = super()._saved_parameters()
        found = {"left": self.left_, "right": self.right_, "keep": self.kept_}
        return {name: columns_in_file(own[name], numbers) for name, numbers in found.items()}

    @property
    def _n_features_out(self) -> int:
        return len(self.kept_) + (len(self.left_) + 1) * len(self.right_)
