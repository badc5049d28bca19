"""Random Fourier features: cosines whose inner products approximate a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from pairgram._support.checks import Vector
from pairgram._support.parameters import FOURIER_KERNEL, POSITIVE, FourierKernel, check_parameters
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import FLOAT64, Array, Kind
from pairgram.features.feature_map import FeatureMap, Formula, finite_rows, generator, native_nodes

if TYPE_CHECKING:
    from pairgram._support.types import RandomState, RowsLike


@dataclass(eq=False, repr=False)
class RandomFourier(FeatureMap):
    """Random Fourier features ``z(x) = sqrt(2/m) cos(xW + b)`` with ``z(x)ᵀz(y) ≈ k(x, y)``.

    If the map is the `feature_map` of a ranker, rows are mapped block by block while the Gram
    matrix is summed. The features of all rows are never stored.

    Parameters
    ----------
    n_components : int ≥ 1, default=500
        The number of features m.
    kernel : {"rbf", "laplacian", "cauchy"}, default="rbf"
        - "rbf": ``exp(−γ ‖x − y‖²)``; W is ``sqrt(2γ)`` times standard normal;
        - "laplacian": ``exp(−γ ‖x − y‖₁)``; W is γ times standard Cauchy;
        - "cauchy": ``Π_k 1 / (1 + γ² (x_k − y_k)²)``; W is Laplace with scale γ.
    gamma : float > 0 or None, default=None
        The parameter γ of the kernel. None stands for ``1 / n_features``.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of W and b. For "rbf", equal seeds give the draws of scikit-learn's
        ``RBFSampler``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features, n_components), float64
        The matrix W.
    bias_ : ndarray of shape (n_components,), float64
        The offsets b, uniform in [0, 2π).
    kernel_ : str
        The `kernel` of the fit.
    gamma_ : float
        The gamma that is used.
    n_features_in_ : int

    Notes
    -----
    `transform` takes 2 · n · n_features · m flops, and about 1 ns per value for the cosine. The
    draws depend only on the seed and on the numbers of features and components, not on the data.
    The error of an approximated kernel value is O(1 / sqrt(m)).

    `fit` gives a ``UserWarning`` if at least a third of the columns that vary have a standard
    deviation below a hundredth of the largest, in a sample of up to 1,024 rows. Such columns hardly
    change the kernel.

    Rows in float32 are mapped in float32, except for "laplacian". Its weights have no finite
    variance, and the phases of the largest weights would be lost.

    References
    ----------
    Rahimi, Recht. Random features for large-scale kernel machines. NIPS 2007. Algorithm 1, Fig. 1.
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. §3.2.2, Algorithm 2.

    Examples
    --------
    >>> from pairgram import RandomFourier, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> RandomFourier(100, random_state=0).fit_transform(X).shape
    (2000, 100)
    >>> RankRLS(feature_map=RandomFourier(100, random_state=0)).fit(X, y, qid=qid).coef_.shape
    (100,)
    """

    _draws_only = True

    n_components: int = 500
    _: KW_ONLY
    kernel: FourierKernel = "rbf"
    gamma: float | None = None
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Draw W and b for the number of features of X, shape (n_rows, n_features).

        Raises
        ------
        ValueError
            If a parameter is not as described. The message names it.
        """
        check_parameters(self, "n_components", "RandomFourier.kernel", "gamma")
        n_components, kernel = int(self.n_components), self.kernel
        X = finite_rows(self, X, reset=True)
        warn_of_rows(self, X, getattr(self, "feature_names_in_", None))
        self.gamma_ = 1 / self.n_features_in_ if self.gamma is None else float(self.gamma)
        self.kernel_ = kernel
        rng, shape = generator(self.random_state), (self.n_features_in_, n_components)
        if kernel == "laplacian":
            self.weights_ = self.gamma_ * rng.standard_cauchy(shape)
        elif kernel == "cauchy":
            self.weights_ = rng.laplace(scale=self.gamma_, size=shape)
        else:
            self.weights_ = (2 * self.gamma_) ** 0.5 * rng.normal(size=shape)
        self.bias_ = rng.uniform(0, 2 * np.pi, n_components)
        return self

    def _node_map(self, dtype: DTypeLike) -> Any:
        """Return the compiled map for rows of a dtype."""
        return native_nodes(
            dtype,
            self.weights_,
            self.bias_,
            None,
            "cos",
            scale=(2 / len(self.bias_)) ** 0.5,
            in_double=self.kernel_ == "laplacian",
        )

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        return x.nodes("cos", self.weights_, self.bias_, (2 / len(coef)) ** 0.5 * coef)

    _in_file = Kind(
        {"fitted": {"kernel_": FOURIER_KERNEL, "gamma_": POSITIVE}},
        {
            "map_weights": Array(FLOAT64, ("features", "outputs")),
            "map_bias": Array(FLOAT64, ("outputs",)),
        },
    )

    @property
    def _n_features_out(self) -> int:
        return len(self.bias_)
