"""Feature maps: random hidden nodes, as scikit-learn transformers that the kernels know."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pairgram import _core
from pairgram._threads import resolve_n_threads, single_threaded_blas

__all__ = [
    "RandomNodes",
    "describe_map",
    "is_native",
    "join_nodes",
    "native_map",
    "restore_map",
    "same_map",
]

Activation = str | Callable[[NDArray[Any]], NDArray[Any]]
# Names here, and what the kernels call them.
ACTIVATIONS = {
    "linear": "linear",
    "sigmoid": "sigmoid",
    "gaussian": "gaussian",
    "tanh": "tanh",
    "relu": "relu",
    "hardlim": "hardlim",
    "sine": "sin",
}
BLOCK_ROWS = 4096


class RandomNodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Hidden nodes with random parameters, the feature map of extreme learning machines.

    Node k is ``g(a_kᵀ x + b_k)``; a Gaussian node is ``exp(−b_k ‖x − a_k‖²)``. Given to a ranker as
    `feature_map`, the rows are mapped block by block on the way to the Gram matrix, and the matrix
    H of all hidden values is never stored.

    Parameters
    ----------
    n_nodes : int ≥ 1, default=1000
    activation : str, callable, or sequence of these, default="sigmoid"
        "linear", "sigmoid" ``1 / (1 + exp(−z))``, "gaussian", "tanh", "relu" ``max(z, 0)``,
        "hardlim" ``[z ≥ 0]``, "sine", or a callable that maps an array of z element by element
        (slower, and such a model cannot be saved). Of a sequence, every entry has an equal share
        of the nodes, the first ones one more where they do not divide.
    weight_range : (float, float), default=(-1, 1)
        Range of a; with ``distribution="normal"``, the mean plus and minus one standard deviation.
    bias_range : (float, float), default=(0, 1)
        The same of b. Gaussian nodes need b > 0.
    distribution : {"uniform", "normal"}, default="uniform"
    random_state : int, RandomState, Generator or None, default=None
    n_threads : int or None, default=None
        Of `transform`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features, n_nodes), float64
        a, a node per column.
    bias_ : ndarray of shape (n_nodes,), float64
        b.
    n_features_in_ : int

    Notes
    -----
    2 · n · n_features · n_nodes flops and about 1 ns per value for the activation. The draws depend
    on the seed, the number of features and of nodes alone, not on the data. Inputs should be scaled
    by the user, to [0, 1] say: the ranges are for such. Gaussian nodes lose digits where ‖x‖ is
    much larger than ‖x − a‖: their squared distance is ``‖x‖² − 2 aᵀx + ‖a‖²``.

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

    def __init__(
        self,
        n_nodes: int = 1000,
        activation: Activation | Sequence[Activation] = "sigmoid",
        *,
        weight_range: tuple[float, float] = (-1.0, 1.0),
        bias_range: tuple[float, float] = (0.0, 1.0),
        distribution: str = "uniform",
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.distribution = distribution
        self.random_state = random_state
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the nodes for the number of features of X, shape (n_rows, n_features).

        Raises
        ------
        ValueError
            If a parameter is not as described, or a Gaussian node has b ≤ 0; names the parameter.
        """
        n_nodes: Any = self.n_nodes
        if isinstance(n_nodes, bool) or not isinstance(n_nodes, Integral) or n_nodes < 1:
            raise ValueError(f"n_nodes must be an integer >= 1, got {n_nodes!r}")
        if self.distribution not in ("uniform", "normal"):
            raise ValueError(
                f"distribution must be 'uniform' or 'normal', got {self.distribution!r}"
            )
        validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self._segments = _segments(self.activation, int(n_nodes))
        self.activation_ = self.activation
        weight_range = _check_range("weight_range", self.weight_range)
        bias_range = _check_range("bias_range", self.bias_range)
        if isinstance(self.random_state, np.random.Generator):
            rng: Any = self.random_state
        else:
            rng = check_random_state(self.random_state)
        shape = (self.n_features_in_, int(n_nodes))
        self.weights_ = _draw(rng, self.distribution, weight_range, shape)
        self.bias_ = _draw(rng, self.distribution, bias_range, shape[1:])
        for begin, end, kind in self._segments:
            if kind == "gaussian" and (self.bias_[begin:end] <= 0).any():
                raise ValueError(
                    f"Gaussian nodes exp(-b ||x - a||^2) need b > 0, but bias_range={bias_range} "
                    "gives others"
                )
        self._n_features_out = int(n_nodes)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the values of the nodes, (n_rows, n_nodes), float32 for float32 X, else float64.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, or holds NaN or infinity.
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        if hasattr(X, "toarray"):
            X = np.ascontiguousarray(X.toarray())
        threads = resolve_n_threads(self.n_threads)
        with single_threaded_blas():
            values = self._linear_parts(X.dtype).map(np.require(X, None, ["C", "A"]), threads)
        for begin, end, kind in self._segments:
            if callable(kind):
                part = np.asarray(kind(values[:, begin:end]))
                if part.shape != (len(X), end - begin):
                    raise ValueError(
                        f"activation {kind!r} must map an array element by element, but gave shape "
                        f"{part.shape} for {(len(X), end - begin)}"
                    )
                values[:, begin:end] = part
        return np.asarray(values)

    def node_map(self, dtype: Any) -> Any:
        """Return what the kernels map rows by, or None where an activation is a Python callable."""
        if any(callable(kind) for _, _, kind in self._segments):
            return None
        return self._linear_parts(dtype)

    def _linear_parts(self, dtype: Any) -> Any:
        """The kernels' map; nodes with a Python callable are left at ``aᵀx + b``."""
        weights, bias = self.weights_, self.bias_
        square: NDArray[np.float64] | None = None
        if any(kind == "gaussian" for _, _, kind in self._segments):
            weights, bias, square = weights.copy(), bias.copy(), np.zeros_like(bias)
            for begin, end, kind in self._segments:
                if kind == "gaussian":  # b ‖x − a‖² = b ‖x‖² − 2 b aᵀx + b ‖a‖²
                    centres, b = self.weights_[:, begin:end], self.bias_[begin:end]
                    weights[:, begin:end] = -2 * b * centres
                    bias[begin:end] = b * (centres**2).sum(axis=0)
                    square[begin:end] = b
        make = _core.NodeMap32 if dtype == np.float32 else _core.NodeMap64
        segments = [
            (begin, end, ACTIVATIONS[kind] if isinstance(kind, str) else "linear")
            for begin, end, kind in self._segments
        ]
        arrays: list[Any] = [
            None if a is None else np.ascontiguousarray(a, dtype=dtype)
            for a in (weights, bias, square)
        ]
        return make(arrays[0], arrays[1], arrays[2], segments)


def describe_map(feature_map: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any] | None]:
    """Return the arrays and settings from which `restore_map` makes a fitted map, for a file.

    Raises
    ------
    ValueError
        If the map is not of this package, or has a Python callable.
    """
    if feature_map is None:
        return {}, None
    if type(feature_map) is not RandomNodes:  # a subclass has code of its own
        raise ValueError(
            f"feature_map is a {type(feature_map).__name__}, which a file cannot hold without "
            "running code when it is loaded; RandomNodes can be saved, pickle holds the others"
        )
    settings = feature_map.get_params()  # as they may have been set since; then what fit used
    settings |= {"activation": feature_map.activation_, "n_nodes": len(feature_map.bias_)}
    if feature_map.node_map(np.float64) is None:
        raise ValueError(
            "activation is a Python callable, which a file cannot hold without running code when "
            "it is loaded; use one of the named activations"
        )
    if not isinstance(settings["random_state"], Integral):
        settings["random_state"] = None
    for name in ("weight_range", "bias_range"):
        settings[name] = [float(bound) for bound in settings[name]]
    if not isinstance(settings["activation"], str):
        settings["activation"] = list(settings["activation"])
    arrays = {"map_weights": feature_map.weights_, "map_bias": feature_map.bias_}
    return arrays, {"kind": "RandomNodes", **settings}


def restore_map(arrays: dict[str, NDArray[Any]], settings: dict[str, Any] | None) -> Any:
    """Make the fitted map that `describe_map` described."""
    if settings is None:
        return None
    settings = dict(settings)
    if (kind := settings.pop("kind", None)) != "RandomNodes":
        raise ValueError(f"a feature map of kind {kind!r} is not known to this version")
    feature_map = RandomNodes(**settings)
    feature_map.weights_, feature_map.bias_ = arrays["map_weights"], arrays["map_bias"]
    feature_map.n_features_in_, feature_map._n_features_out = feature_map.weights_.shape
    feature_map.activation_ = feature_map.activation
    feature_map._segments = _segments(feature_map.activation, feature_map._n_features_out)
    return feature_map


def join_nodes(maps: Sequence[RandomNodes]) -> RandomNodes:
    """Return fitted nodes side by side, as one map; all of the same single activation."""
    first = maps[0]
    if len(maps) == 1:
        return first
    joined = RandomNodes(**{**first.get_params(), "n_nodes": sum(m.n_nodes for m in maps)})
    joined.weights_ = np.hstack([m.weights_ for m in maps])
    joined.bias_ = np.concatenate([m.bias_ for m in maps])
    joined.n_features_in_, joined._n_features_out = joined.weights_.shape
    joined.activation_ = first.activation_
    joined._segments = _segments(joined.activation, joined._n_features_out)
    return joined


def same_map(a: Any, b: Any) -> bool:
    """Tell whether two fitted feature maps make the same features."""
    if a is b:
        return True
    if type(a) is RandomNodes and type(b) is RandomNodes:
        return (
            a._segments == b._segments
            and np.array_equal(a.weights_, b.weights_)
            and np.array_equal(a.bias_, b.bias_)
        )
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except (AttributeError, TypeError, pickle.PicklingError):  # a lambda
        return False


def is_native(feature_map: Any) -> bool:
    """Tell whether the kernels know a fitted feature map: whether there is a `native_map`."""
    return type(feature_map) is RandomNodes and not any(
        callable(kind) for _, _, kind in feature_map._segments
    )


def native_map(feature_map: Any, dtype: Any) -> Any:
    """Return the kernels' map for a fitted feature map, or None where rows must be transformed."""
    return feature_map.node_map(dtype) if type(feature_map) is RandomNodes else None


def _segments(activation: Any, n_nodes: int) -> list[tuple[int, int, Activation]]:
    kinds = [activation] if isinstance(activation, str) or callable(activation) else activation
    try:
        kinds = list(kinds)
    except TypeError:
        kinds = [kinds]
    for kind in kinds:
        if not (callable(kind) or (isinstance(kind, str) and kind in ACTIVATIONS)):
            names = ", ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"activation must be of {names}, or a callable; got {kind!r}")
    if not 1 <= len(kinds) <= n_nodes:
        raise ValueError(f"activation must have 1 to n_nodes={n_nodes} entries, got {len(kinds)}")
    bounds = [0]
    for i in range(len(kinds)):
        bounds.append(bounds[-1] + n_nodes // len(kinds) + (i < n_nodes % len(kinds)))
    return [(bounds[i], bounds[i + 1], kind) for i, kind in enumerate(kinds)]


def _check_range(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair of numbers, got {value!r}") from None
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError(f"{name} must be a pair low <= high of finite numbers, got {value!r}")
    return low, high


def _draw(
    rng: Any, distribution: str, bounds: tuple[float, float], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    low, high = bounds
    if distribution == "uniform":
        return np.asarray(rng.uniform(low, high, shape))
    return np.asarray(rng.normal((low + high) / 2, (high - low) / 2, shape))
