"""MPRank and LS-SVR, two published models that are special cases of pairwise least squares."""

from __future__ import annotations

from typing import Any

from pairgram._support.parameters import Form, InputsName, check_C
from pairgram.data.pairs import PairSettings
from pairgram.features.kernels import Kernel
from pairgram.rankers.ridge import RidgeRanker, RidgeSpec, ridge_spec


class _Preset(RidgeRanker):
    C: float
    scope = "global"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Kernel | None = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        prior: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads


class MPRank(_Preset):
    """Magnitude-preserving ranking: fit differences of labels by least squares, with a kernel.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖w‖²``.
    kernel : str, callable or None, default="linear"
        See `kernel_matrix`. "linear" and None stand for the inputs themselves. With "precomputed",
        X holds the kernel values between the rows and the training rows.
    gamma, degree, coef0 : float or None, int, float, default=None, 3, 1.0
        Parameters of the kernel.
    form : {"auto", "primal", "dual"}, default="auto"
        As in `RankRLS`.
    prior : array-like of shape (n_features,), fitted model or None, default=None
        What the fit starts from; see `RankRLS`.
    n_threads : int or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (n_coefficients,), float64
        Weights of the inputs (``kernel="linear"``), or dual coefficients of the support rows.
    feature_map_ : KernelMap or None
    form_, missing_, n_features_in_, feature_names_in_, uses_qid_, prior_, uses_offset_ :
        As in `RankRLS`.

    See Also
    --------
    RankRLS : Has pairs within queries, other pair weights, and feature maps.
    RankRLSCV : With ``scope="global"`` it chooses ``C = 1 / (2 alpha_)`` by held-out rows.

    Notes
    -----
    Minimises ``‖w‖² + C Σ_i Σ_j v_i v_j ((y_i − y_j) − (f_i − f_j))²`` over all ordered pairs of
    rows, whatever their queries, with ``f = wᵀφ(x)`` and the sample weights v. Half the sum equals
    ``V Σ_i v_i (y_i − f_i − b)²`` at the best b, where V is the sum of the weights. MPRank is
    therefore ridge regression with an intercept, and also `RankRLS` with ``scope="global"`` and
    ``alpha = 1 / (2C)``. In papers that divide the sum by n², or count each pair once, C differs by
    that factor.

    References
    ----------
    Cortes, Mohri, Rastogi. Magnitude-preserving ranking algorithms. ICML 2007.

    Examples
    --------
    >>> from pairgram import MPRank, make_ranking
    >>> X, y, _ = make_ranking(5, 20, random_state=0)
    >>> MPRank(C=0.1, kernel="rbf").fit(X, y).predict(X).shape
    (100,)
    """

    _file_kind = "MPRank"

    def _spec(self) -> RidgeSpec:
        return ridge_spec(self, PairSettings("kept", "global"), 1 / (2 * check_C("C", self.C)))


class LSSVR(_Preset):
    """Least squares support vector regression: fit labels of rows, with a bias without a ridge.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖w‖²``; papers often call it γ.
    kernel, gamma, degree, coef0, form, prior, inputs, n_threads :
        As in `MPRank`.

    Attributes
    ----------
    coef_, inputs_, feature_map_, form_, missing_, n_features_in_, feature_names_in_, uses_qid_, \
prior_, uses_offset_ :
        As in `MPRank`.
    intercept_ : float
        The bias b.

    See Also
    --------
    PointwiseELM : Fits labels by least squares without a bias.
    RankRLSCV : With ``scope="global", weighting="documents"`` it chooses ``C = 1 / alpha_``.

    Notes
    -----
    Minimises ``½ ‖w‖² + ½ C Σ_i v_i (y_i − wᵀφ(x_i) − b)²`` with the sample weights v. Queries do
    not matter. The weights w are those of `RankRLS` with ``pairs="kept"``, ``scope="global"``,
    ``weighting="documents"`` and ``alpha = 1 / C``. The bias changes no ranking. Predictions
    include it, so that they can be used as a regression.

    References
    ----------
    Suykens, Van Gestel, De Brabanter, De Moor, Vandewalle. Least squares support vector machines.
    World Scientific, 2002.

    Examples
    --------
    >>> from pairgram import LSSVR, make_ranking
    >>> X, y, _ = make_ranking(5, 20, random_state=0)
    >>> model = LSSVR(C=10.0, kernel="rbf").fit(X, y)
    >>> bool(abs((y - model.predict(X)).mean()) < 1e-10)
    True
    """

    intercept_: float
    _file_kind = "LSSVR"

    def _spec(self) -> RidgeSpec:
        settings = PairSettings("kept", "global", "documents")
        return ridge_spec(self, settings, 1 / check_C("C", self.C), has_intercept=True)
