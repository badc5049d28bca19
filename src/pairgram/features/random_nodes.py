"""Random hidden nodes, the feature map of extreme learning machines, and fewer linear ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike

from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram._support.parameters import ActivationName, check_parameters, stored
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import FLOAT64, Array, Arrays, Kind, Sizes, require
from pairgram.features.feature_map import (
    MAX_CONDITION,
    NOISE,
    FeatureMap,
    Formula,
    LinearNodes,
    RowScorer,
    finite_rows,
    generator,
    linear_nodes,
    native_nodes,
)
from pairgram.features.inputs import after_inputs, parts_of

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RandomState, RowsLike

COMPILED = {"sine": "sin"}  # names in compiled code that are others
NEED_POSITIVE = "Gaussian nodes exp(-b ||x - a||^2) need b > 0"


def _require_nodes(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Raise a ValueError unless the settings and arrays of nodes agree with each other."""
    is_gaussian = settings["fitted"]["activation_"] == "gaussian"
    require(not is_gaussian or (arrays["map_bias"] >= 0).all(), NEED_POSITIVE)


@dataclass(eq=False, repr=False)
class RandomNodes(FeatureMap):
    """Hidden nodes with random parameters, the feature map of extreme learning machines.

    The output of node k is ``g(a_kᵀ x + b_k)``, or ``exp(−b_k ‖x − a_k‖²)`` for a Gaussian node. If
    the map is the `feature_map` of a ranker, rows are mapped block by block while the Gram matrix
    is summed. The matrix H of all outputs is never stored.

    Parameters
    ----------
    n_nodes : int ≥ 1, default=1000
        Number of nodes, and so of output columns. Other maps call it ``n_components``.
    activation : str, default="sigmoid"
        The function g: "linear", "sigmoid" ``1 / (1 + exp(−z))``, "gaussian", "tanh", "relu"
        ``max(z, 0)``, "hardlim" ``[z ≥ 0]`` or "sine".
    weight_range : (float, float), default=(-1, 1)
        Range of a, which is uniform.
    bias_range : (float, float), default=(0, 1)
        Range of b, which is uniform. Gaussian nodes need b > 0, so it must not reach below 0.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of a and b.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features, n_nodes), float64
        The weights a, with a column for every node.
    bias_ : ndarray of shape (n_nodes,), float64
        The biases b.
    activation_ : str
        The `activation` of the fit.
    n_features_in_ : int

    Notes
    -----
    `transform` takes 2 · n · n_features · n_nodes flops, and about 1 ns per value for the
    activation. The draws depend only on the seed and on the numbers of features and nodes, not on
    the data. Scale the inputs to similar size, such as [0, 1], for which the default ranges are
    made. If nodes are not linear, `fit` gives a ``UserWarning`` if at least a third of the columns
    that vary have a standard deviation below a hundredth of the largest, in a sample of up to 1,024
    rows. Such columns hardly change the outputs. Gaussian nodes lose digits if ‖x‖ is much larger
    than ‖x − a‖, because their squared distance is computed as ``‖x‖² − 2 aᵀx + ‖a‖²``.

    References
    ----------
    Zong, Huang. Learning to rank with extreme learning machine. Neural Processing Letters, 2013.
    Eq. 5-7. Chen, Peng, Zhou, Li, Pan. Extreme learning machine for ranking: generalization
    analysis and applications. Neural Networks, 2014. §2.

    Examples
    --------
    >>> from pairgram import RandomNodes, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> RandomNodes(50, random_state=0).fit_transform(X).shape
    (2000, 50)
    >>> model = RankRLS(feature_map=RandomNodes(50, random_state=0)).fit(X, y, qid=qid)
    >>> model.coef_.shape
    (50,)
    """

    # Whether the matrix of linear nodes is well-conditioned, as in `LinearNodes`; None if unknown.
    _well_conditioned: bool | None = field(default=None, init=False)
    _draws_only = True

    n_nodes: int = 1000
    activation: ActivationName = "sigmoid"
    _: KW_ONLY
    weight_range: tuple[float, float] = (-1.0, 1.0)
    bias_range: tuple[float, float] = (0.0, 1.0)
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Draw the nodes for the number of features of X, shape (n_rows, n_features).

        Raises
        ------
        ValueError
            If a parameter is not as described, or if a Gaussian node has b ≤ 0. The message names
            the parameter.
        """
        X = finite_rows(self, X, reset=True)
        draw_nodes(self, self.n_features_in_)
        warn_of_rows(self, X, getattr(self, "feature_names_in_", None))
        return self

    def _fit_checked(self, X: Matrix, names: Sequence[Hashable] | None = None) -> Self:
        """Draw the nodes."""
        return draw_nodes(self, X.shape[1])

    def _draw(self, n_features: int) -> None:
        """Draw the nodes for a number of features."""
        check_parameters(self, "n_nodes", "activation", "weight_range", "bias_range")
        n_nodes = int(self.n_nodes)
        self.n_features_in_ = n_features
        self.activation_ = self.activation
        lowest, highest = self.bias_range
        if (lowest < 0 or highest == 0) and self.activation == "gaussian":
            raise ArgumentError(
                "bias_range",
                f"must have no numbers below 0, such as (0, 1), the default: {NEED_POSITIVE}, got "
                f"{lowest, highest}",
            )
        rng = generator(self.random_state)
        self.weights_ = rng.uniform(*self.weight_range, (n_features, n_nodes))
        self.bias_ = rng.uniform(lowest, highest, n_nodes)

    def _as_linear(self) -> LinearNodes | None:
        """Return the matrix and the offsets if all nodes are linear, otherwise None."""
        if self.activation_ != "linear":
            return None
        return LinearNodes(self.weights_, self.bias_, self._well_conditioned)

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        """Return a scorer of rows. If all nodes are linear, it needs only the inputs."""
        if (nodes := self._as_linear()) is None:
            return super()._scorer(coef, dtype)
        weights, offset = nodes.fold(coef)
        return RowScorer([(None, weights)], float(offset))

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        if self.activation_ == "linear":
            return x.times((self.weights_ @ coef)[:, None], self.bias_ @ coef)
        if self.activation_ == "gaussian":
            return x.radial(self.weights_.T, self.bias_, coef)
        return x.nodes(self.activation_, self.weights_, self.bias_, coef)

    def _node_map(self, dtype: DTypeLike) -> Any:
        """Return the compiled map for rows of a dtype."""
        weights, bias = self.weights_, self.bias_
        square: Vector | None = None
        if self.activation_ == "gaussian":  # b ‖x − a‖² = b ‖x‖² − 2 b aᵀx + b ‖a‖²
            square, bias = bias, bias * (weights**2).sum(axis=0)
            weights = -2 * square * weights
        kind = COMPILED.get(self.activation_, self.activation_)
        return native_nodes(dtype, weights, bias, square, kind)

    _in_file = Kind(
        {"fitted": {"activation_": stored("RandomNodes", "activation")["activation"]}},
        {
            "map_weights": Array(FLOAT64, ("features", "outputs")),
            "map_bias": Array(FLOAT64, ("outputs",)),
        },
        _require_nodes,
    )

    @property
    def _n_features_out(self) -> int:
        return len(self.bias_)


def draw_nodes(nodes: RandomNodes, n_features: int) -> RandomNodes:
    """Draw nodes for a number of features, as `fit` does, and return them."""
    nodes._draw(n_features)
    return nodes


def linear_nodes_of(weights: Vector, bias: Vector, *, well_conditioned: bool | None) -> RandomNodes:
    """Return the linear nodes with given weights and biases; see `LinearNodes`."""
    fitted = {"activation_": "linear"}
    settings = {"n_nodes": len(bias), "activation": "linear", "fitted": fitted}
    nodes = RandomNodes._restore({"map_weights": weights, "map_bias": bias}, settings)
    nodes._well_conditioned = well_conditioned
    return nodes


def join_nodes(maps: Sequence[RandomNodes]) -> RandomNodes:
    """Join fitted nodes into one map. All maps must have the same activation."""
    first = maps[0]
    if len(maps) == 1:
        return first
    arrays = {
        "map_weights": np.hstack([m.weights_ for m in maps]),
        "map_bias": np.concatenate([m.bias_ for m in maps]),
    }
    settings = first.get_params() | {"n_nodes": sum(m.n_nodes for m in maps)}
    settings["fitted"] = {"activation_": first.activation_}
    return RandomNodes._restore(arrays, settings)


@dataclass(frozen=True, eq=False)
class ReducedNodes:
    """At most ``n_inputs + 1`` linear nodes that have the inner products of many nodes.

    Attributes
    ----------
    nodes : RandomNodes, or InputMap with these
        The nodes ``Rᵀ [x, 1]`` with ``R Rᵀ = M Mᵀ``, where M are the weights and the bias of the
        many nodes.
    """

    nodes: Any
    _many: Vector  # M
    _back: Vector  # R's pseudo-inverse

    def expand(self, coefs: Vector) -> Vector:
        """Return models of the many nodes, (n_models, n_nodes), from those of the few.

        `coefs` has shape (n_models, rank). The models have the same norms and the same scores. The
        bits of one do not depend on the others, as those of BLAS do.
        """
        few = np.einsum("ij,jk->ik", coefs, self._back)
        return np.einsum("ij,jk->ik", few, self._many)


def reduce_nodes(feature_map: RandomNodes, *, constant: bool) -> ReducedNodes | None:
    """Return fewer linear nodes with the same inner products, if there are more than inputs.

    Let M = A, or M = [A; b] with the constant input, and ``M Mᵀ = R Rᵀ``. A model u of the few
    nodes is the model ``Mᵀ R⁺ᵀ u`` of the many, and their ridge problems are the same. R is a
    Cholesky factor. If M is ill-conditioned or does not have full row rank, R comes from its
    singular value decomposition. This takes n_inputs² · n_nodes flops.

    Parameters
    ----------
    feature_map : fitted transformer or None
    constant : bool
        Whether the offsets b count, as they do for pointwise rows. They cancel in differences.
    """
    nodes = linear_nodes(feature_map)
    if nodes is None or nodes.weights.shape[1] < nodes.weights.shape[0]:
        return None
    many = np.vstack([nodes.weights, nodes.bias]) if constant else nodes.weights
    with single_threaded_blas:
        factors = _cholesky_factors(many) or _singular_factors(many)
    if factors is None:
        return None
    root, back, good = factors
    if not constant:
        root = np.vstack([root, np.zeros(root.shape[1])])
    few = linear_nodes_of(root[:-1], root[-1], well_conditioned=good)
    return ReducedNodes(after_inputs(parts_of(feature_map)[0], few), many, back)


def _cholesky_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its inverse, True), or None if R may be ill-conditioned."""
    try:
        root = scipy.linalg.cholesky(many @ many.T, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    back = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
    bound = np.sqrt((root * root).sum() * (back * back).sum())  # a bound of the condition number
    return (root, back, True) if bound <= MAX_CONDITION else None


def _singular_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its pseudo-inverse, whether it is well-conditioned), or None if M is 0."""
    vectors, values, _ = scipy.linalg.svd(many, full_matrices=False, check_finite=False)
    kept = values > NOISE * max(many.shape) * values[0]
    if not kept.any():
        return None
    vectors, values = vectors[:, kept], values[kept]
    good = bool(values[-1] * MAX_CONDITION >= values[0])
    return vectors * values, (vectors / values).T, good
