"""RankSVM in the space of a kernel, seen through Nyström or random Fourier features."""

from __future__ import annotations

from typing import Any

from pairgram.feature_maps.nystroem import Nystroem
from pairgram.feature_maps.random_fourier import RandomFourier
from pairgram.kernels.settings import Kernel
from pairgram.preferences.pairs import Weighting
from pairgram.svm.rank_svm import Loss, RankSVM

__all__ = ["RankNystroem", "RankRandomFourier"]


class _KernelRankSVM(RankSVM):
    """A RankSVM that makes its feature map of its own parameters."""

    feature_map = None

    def _parameters_to_save(self) -> dict[str, Any]:
        """A model file holds the RankSVM that it is."""
        return {name: getattr(self, name) for name in RankSVM._get_param_names()}


class RankNystroem(_KernelRankSVM):
    """Kernel RankSVM on Nyström features; on all rows as landmarks the exact one.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the loss, which is summed over pairs.
    n_components : int ≥ 1 or None, default=500
        Landmarks. None: all rows, and so the kernel RankSVM itself, for 48 n² bytes and O(n³)
        time; a MemoryError says how much is missing.
    kernel, gamma, degree, coef0, landmarks, random_state : as in `Nystroem`
    eigenvalue_tol : float ≥ 0, default=1e-6
        `Nystroem`'s ``tol``.
    loss, weighting, tol, max_iter, warm_start, memory_limit, n_threads : as in `RankSVM`

    Attributes
    ----------
    feature_map_ : Nystroem
    coef_, history_, n_iter_, n_hessian_products_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankSVM`.

    See Also
    --------
    RankSVMCV : Chooses C and gamma, from ``feature_map=[Nystroem(gamma=g) for g in ...]``.

    Notes
    -----
    The same as ``RankSVM(C, feature_map=Nystroem(...))``; a model file holds that. ``predict``
    takes the kernel of a row with every landmark.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Algorithms 1 and 3; their program's C is
    twice this one.

    Examples
    --------
    >>> from pairgram import RankNystroem, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> RankNystroem(0.01, n_components=50, random_state=0).fit(X, y, qid=qid).coef_.shape
    (50,)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_components: int | None = 500,
        kernel: Kernel = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        landmarks: str = "uniform",
        eigenvalue_tol: float = 1e-6,
        random_state: Any = None,
        loss: Loss = "squared_hinge",
        weighting: Weighting = "pairs",
        tol: float = 1e-3,
        max_iter: int = 100,
        warm_start: bool = False,
        memory_limit: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.eigenvalue_tol = eigenvalue_tol
        self.random_state = random_state
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.kernel == "minmax"
        return tags

    def _unfitted_map(self) -> Nystroem:
        return Nystroem(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            n_components=self.n_components,
            landmarks=self.landmarks,
            tol=self.eigenvalue_tol,
            random_state=self.random_state,
        )


class RankRandomFourier(_KernelRankSVM):
    """Kernel RankSVM on random Fourier features.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the loss, which is summed over pairs.
    n_components, kernel, gamma, orthogonal, random_state : as in `RandomFourier`
    loss, weighting, tol, max_iter, warm_start, memory_limit, n_threads : as in `RankSVM`

    Attributes
    ----------
    feature_map_ : RandomFourier
    coef_, history_, n_iter_, n_hessian_products_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankSVM`.

    See Also
    --------
    RankSVMCV : Chooses C and gamma, from ``feature_map=[RandomFourier(gamma=g) for g in ...]``.

    Notes
    -----
    The same as ``RankSVM(C, feature_map=RandomFourier(...))``; a model file holds that.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Algorithms 2 and 3; their program's C is
    twice this one.

    Examples
    --------
    >>> from pairgram import RankRandomFourier, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> RankRandomFourier(0.01, n_components=50, random_state=0).fit(X, y, qid=qid).coef_.shape
    (50,)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_components: int = 500,
        kernel: str = "rbf",
        gamma: float | None = None,
        orthogonal: bool = False,
        random_state: Any = None,
        loss: Loss = "squared_hinge",
        weighting: Weighting = "pairs",
        tol: float = 1e-3,
        max_iter: int = 100,
        warm_start: bool = False,
        memory_limit: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.orthogonal = orthogonal
        self.random_state = random_state
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.n_threads = n_threads

    def _unfitted_map(self) -> RandomFourier:
        return RandomFourier(
            self.n_components,
            kernel=self.kernel,
            gamma=self.gamma,
            orthogonal=self.orthogonal,
            random_state=self.random_state,
        )
