"""MPRank and LS-SVR, two published models that are special cases of pairwise least squares."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from pairgram._support.arrays import column_names, readable
from pairgram._support.parameters import Form, InputsName, check_C
from pairgram.data.dataset import RankingData, RowInfo
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import check_weights
from pairgram.features.kernels import Kernel
from pairgram.rankers.ridge import RidgeRanker
from pairgram.tables.table import Table

# The bias of a kernel model is the mean error of at most this many rows.
KNOWN_ROWS = 128


class _Preset(RidgeRanker):
    C: float
    feature_map = None
    _needs_queries = False
    _pairs: PairSettings

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

    def _ridge_of(self, C: float) -> float:
        return 1 / C

    def _ridge(self) -> tuple[PairSettings, float, bool]:
        return self._pairs, self._ridge_of(check_C("C", self.C)), False

    def _check(self, X: Any, y: ArrayLike | None, info: RowInfo) -> RankingData:
        if info.query_weight is not None:
            raise ValueError(
                f"query_weight must be None: {type(self).__name__} takes all rows together, "
                "whatever their queries"
            )
        return super()._check(X, y, info)


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
    _pairs = PairSettings("kept", "global")

    def _ridge_of(self, C: float) -> float:
        return 1 / (2 * C)


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
    _pairs = PairSettings("kept", "global", "documents")

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, offset :
            As in `RankRLS.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `RankRLS.fit`.
        """
        if isinstance(X, Table):
            raise ValueError(
                "LSSVR cannot be fitted to a table: RankRLS(scope='global', weighting='documents') "
                "has the same weights"
            )
        X = readable(X, "X")
        super().fit(
            X,
            y,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
            offset=offset,
        )
        labels = np.asarray(y, dtype=np.float64).ravel()
        given = 1.0 if sample_weight is None else sample_weight
        v = check_weights(given, len(labels), "sample_weight")
        rows = np.flatnonzero(v > 0)
        errors = labels[rows]
        if self.feature_map_ is not None:
            # The error of row i is b + a_i / (C v_i), so a few rows give b without all of K.
            rows = rows[:KNOWN_ROWS]
            dual = np.zeros(len(labels))
            dual[self.feature_map_.support_] = self.coef_
            errors = labels[rows] - dual[rows] / (self.C * v[rows])
        if scipy.sparse.issparse(X):
            X = X.tocsr()
        elif column_names(X) is None:  # a frame stays a frame, so that its names are checked
            X = np.asarray(X)
        own = None if offset is None else np.asarray(offset)[rows]
        # scikit-learn takes rows of pyarrow's tables from version 1.7 on.
        is_arrow = type(X).__module__.startswith("pyarrow")
        taken = X.take(rows) if is_arrow else _safe_indexing(X, rows)
        errors -= super().predict(taken, offset=own)
        self.intercept_ = float(np.average(errors, weights=v[rows]))
        return self

    def _warn_of_equal_labels(self, data: RankingData, settings: list[PairSettings]) -> None:
        """Do nothing: the bias fits equal labels."""

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return ``wᵀφ(x) + b`` for the rows of X. Arguments and errors are those of `RankRLS`."""
        scores = super().predict(X, offset=offset)
        if isinstance(X, Table):  # its blocks have been here
            return scores
        return np.asarray(scores + self.intercept_, dtype=scores.dtype)
