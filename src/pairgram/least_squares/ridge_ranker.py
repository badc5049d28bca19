"""What fits one ridge problem, and what searches paths of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pairgram._support.types import Vector
from pairgram.feature_maps.kernel_map import KernelMap
from pairgram.kernels.settings import KERNELS, KernelSettings
from pairgram.least_squares.dual_gram import Statistics, require_memory
from pairgram.least_squares.formulation import Coordinates
from pairgram.least_squares.held_out.leave_pair_out import LEAVE_PAIR_OUT, HeldOutPairs
from pairgram.least_squares.ridge_path import DEFAULT_POWERS
from pairgram.metrics import Metric
from pairgram.model_selection.judge import HeldOutScoring, choose, is_validation_set
from pairgram.preferences.pairs import PairSettings
from pairgram.problem.data import RankingData
from pairgram.rankers.base import LinearRanker

__all__ = ["Candidate", "RidgeRanker", "RidgeSearch", "as_list"]


class _FeaturesOrKernel(LinearRanker):
    """A feature map, or a kernel, and the form of the system."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    form: str
    _takes_path = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "minmax"
        return tags

    @property
    def _has_kernel(self) -> bool:
        """Whether the model is one in the space of a kernel, with dual coefficients alone."""
        return callable(self.kernel) or self.kernel not in (None, "linear")

    def _with_map(self, data: RankingData, feature_map: Any) -> RankingData:
        """Check the memory of a kernel problem, before its rows are copied and anything is made."""
        if self._has_kernel:
            precomputed = self.kernel == "precomputed"
            X, n_rows = data.X, len(data.y)
            size = X.data.nbytes + X.indices.nbytes if scipy.sparse.issparse(X) else X.nbytes
            require_memory(
                n_rows,
                self._takes_path,
                None if precomputed else feature_map,
                X.dtype,
                feature_bytes=0.0 if precomputed else float(size),
            )
        return super()._with_map(data, feature_map)

    def _gammas(self) -> list[float | None]:
        """Return those to choose from, the first of which `_unfitted_map` takes."""
        return [self.gamma]

    def _unfitted_map(self) -> Any:
        kernel, gammas = "linear" if self.kernel is None else self.kernel, self._gammas()
        for gamma in gammas:
            KernelSettings(kernel, gamma, self.degree, self.coef0)  # checks them
        if self.kernel is None:
            return self._features()
        if getattr(self, "feature_map", None) is not None:
            raise ValueError(
                f"give kernel or feature_map, not both: got kernel={self.kernel!r} and "
                f"feature_map={self.feature_map!r}"
            )
        if self.kernel == "linear":
            return None
        return KernelMap(
            self.kernel,
            gamma=gammas[0],
            degree=self.degree,
            coef0=self.coef0,
        )

    def _keep_map(self, feature_map: Any) -> None:
        """Set the feature map; of a kernel, without rows whose coefficients are 0 in every model.

        Such are rows of weight 0, and queries of one row.
        """
        self.feature_map_ = feature_map
        if not self._has_kernel or self.kernel == "precomputed":
            return
        used = getattr(self, "coef_path_", self.coef_[None]).any(axis=0)
        if used.all() or not used.any():
            return
        self.feature_map_ = feature_map.of_rows(np.flatnonzero(used))
        for name in ("coef_", "coef_path_"):
            if hasattr(self, name):
                setattr(self, name, getattr(self, name)[..., used])

    def _rows_to_score(self, X: Any) -> Any:
        try:
            return super()._rows_to_score(X)
        except ValueError as error:
            if self.kernel == "precomputed" and "is expecting" in str(error):
                raise ValueError(
                    f"{str(error).rstrip('.')}: with kernel='precomputed', the kernels of "
                    f"every row with the {self.n_features_in_} training rows"
                ) from None
            raise

    def _kernel_parameters(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0", "form")
        }

    def _features(self) -> Any:
        """Return the feature map where there is no kernel."""
        return self.feature_map


class RidgeRanker(_FeaturesOrKernel):
    """Fits one ridge."""

    @abstractmethod
    def _ridge(self) -> tuple[PairSettings, float, bool]:
        """Return the checked (settings, alpha, scale)."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
            C-contiguous arrays of either type are not copied.
        y : array-like of shape (n_rows,)
            Relevance labels, any real numbers.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids, rows in any order. None, without `group`: all rows are one query, of which
            a `MissingQueryWarning` warns for more than 1,000 rows and pairs within queries.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of queries whose rows stand together, instead of `qid`.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            Weight 2 is the same as the row twice. The weights of all pairs, products of two, must
            add up to 1e-290 or more, and 1e303 at most.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Constant within a query.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.
        """
        settings, alpha, scale = self._ridge()
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        self._warn_of_missing_queries(data, qid, group)
        coordinates = Coordinates.choose(
            data,
            [settings],
            kernel=self._has_kernel,
            form=self.form,
            scale=scale,
            n_threads=self.n_threads,
        )
        self.coef_ = coordinates.solve(settings, alpha, scale=scale, n_threads=self.n_threads)
        self.form_ = coordinates.form
        self._keep_map(data.feature_map)
        self.uses_qid_ = qid is not None or group is not None
        return self


class RidgeSearch(_FeaturesOrKernel):
    """Chooses a ridge, and settings, by held-out scores."""

    cv: Any
    scoring: str | Metric | None
    _takes_path = True
    _too_weak = "alpha is so small"

    @abstractmethod
    def _grid(self) -> tuple[list[tuple[PairSettings, bool]], Vector | None]:
        """Return the checked combinations of settings and scale, and the alphas if given."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Score every combination of settings on held-out rows, and fit the best to all.

        Parameters and errors are those of `RankRLS.fit`. Besides, a ValueError where `scoring`
        cannot take the labels, `cv` makes no splits, or no query is left to fit to.
        """
        combinations, given = self._grid()
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        self._warn_of_missing_queries(data, qid, group)
        if len(data.y) < 2:
            raise ValueError(
                f"{type(self).__name__} holds rows out, so X must have two or more, got 1 sample"
            )
        self.uses_qid_ = qid is not None or group is not None
        scoring = self._scoring(data, self.uses_qid_)
        candidates: list[Candidate] = []
        for gamma in self._gammas():
            if candidates:
                data = replace(data, feature_map=data.feature_map.with_gamma(gamma))
            candidates += self._candidates(data, combinations, given, scoring.of(data))
        self._choose(candidates, scoring.metric)
        return self

    def _candidates(
        self,
        data: RankingData,
        combinations: list[tuple[PairSettings, bool]],
        given: Vector | None,
        scoring: HeldOutScoring | HeldOutPairs,
    ) -> list[Candidate]:
        """Score all combinations, of one feature map."""
        coordinates = Coordinates.choose(
            data,
            [settings for settings, _ in combinations],
            kernel=self._has_kernel,
            form=self.form,
            scale=any(scale for _, scale in combinations),
            path=True,
            n_threads=self.n_threads,
        )
        scoring = replace(scoring, data=coordinates.data)
        for settings, _ in combinations:  # what is refused is so before a matrix is decomposed
            coordinates.data.require_pairs(settings)
            n_alphas = len(DEFAULT_POWERS) if given is None else len(given)
            scoring.require(settings, n_alphas, coordinates.form)
            if coordinates.form == "dual":
                in_dual, held_out = coordinates.data, scoring.n_matrices(settings)
                require_memory(
                    len(data.y), True, in_dual.feature_map, in_dual.dtype, held_out=held_out
                )
        candidates: list[Candidate] = []
        totals: dict[PairSettings, Statistics] = {}
        for settings, scale in combinations:
            if settings not in totals:
                totals[settings] = coordinates.statistics(settings, self.n_threads)
            total = totals[settings]
            candidates.append(
                _candidate(data.feature_map, coordinates, scoring, total, scale, given)
            )
        return candidates

    def _scoring(self, data: RankingData, uses_qid: bool) -> HeldOutScoring | HeldOutPairs:
        if isinstance(self.cv, str) and self.cv == LEAVE_PAIR_OUT:
            return HeldOutPairs.make(data, self.scoring, self.n_threads)
        validation = None
        if is_validation_set(self.cv):
            validation = self._validation(data.feature_map, uses_qid, *self.cv)
        return HeldOutScoring.make(data, self.cv, validation, self.scoring, self.n_threads)

    def _gammas(self) -> list[float | None]:
        is_array = isinstance(self.gamma, np.ndarray) and self.gamma.ndim == 1
        gammas = as_list(self.gamma.tolist() if is_array else self.gamma, "gamma")
        if len(gammas) > 1 and not self._has_gamma:
            raise ValueError(
                f"gamma must not be a list with kernel={self.kernel!r}, which has no gamma to "
                "choose"
            )
        return gammas

    @property
    def _has_gamma(self) -> bool:
        return isinstance(self.kernel, str) and "gamma" in KERNELS.get(self.kernel, ())

    def _kernel_parameters(self) -> dict[str, Any]:
        """Return those of the kernel that was chosen."""
        return {**super()._kernel_parameters(), "gamma": self.gamma_}

    def _choose(self, candidates: list[Candidate], metric: Metric) -> None:
        """Set what is fitted to the best candidate."""
        scores = np.concatenate([c.scores for c in candidates])
        otherwise = f", or every {self._too_weak} that held-out scores are rounding error"
        best, ranks = choose(scores, metric, otherwise)
        of_candidate = np.repeat(np.arange(len(candidates)), [len(c.alphas) for c in candidates])
        chosen = candidates[int(of_candidate[best])]
        at = best - int(np.searchsorted(of_candidate, of_candidate[best]))
        self.scoring_ = metric
        self.alphas_, self.scores_ = chosen.alphas, chosen.scores
        self.alpha_ = float(chosen.alphas[at])
        self.pairs_, self.target_ = chosen.settings.pairs, chosen.settings.target
        self.scale_ = chosen.scale
        self.best_score_ = float(scores[best])
        self.form_ = chosen.coordinates.form
        self.gamma_ = chosen.feature_map.gamma_ if self._has_gamma else None
        self.coef_path_ = chosen.coordinates.coefs(chosen.solved)
        self.coef_ = self.coef_path_[at].copy()
        self._keep_map(chosen.feature_map)

        def column(values: list[Any]) -> NDArray[np.object_]:
            full = np.empty(len(values), dtype=object)
            full[:] = values
            return full[of_candidate]

        columns = {
            "alpha": np.concatenate([c.alphas for c in candidates]),
            "pairs": column([c.settings.pairs for c in candidates]),
            "target": column([c.settings.target for c in candidates]),
            "scale": column([c.scale for c in candidates]),
        }
        if self._has_gamma:
            columns["gamma"] = np.array([c.feature_map.gamma_ for c in candidates])[of_candidate]
        self.cv_results_ = {f"param_{name}": values for name, values in columns.items()}
        self.cv_results_ |= {"mean_test_score": scores, "rank_test_score": ranks}


class Candidate(NamedTuple):
    """A combination of settings: what its ridge path solves to, and the held-out scores."""

    feature_map: Any
    coordinates: Coordinates
    settings: PairSettings
    scale: bool
    alphas: Vector
    solved: Vector  # in the coordinates, (n_alphas, n_dimensions)
    scores: Vector


def _candidate(
    feature_map: Any,
    coordinates: Coordinates,
    scoring: HeldOutScoring | HeldOutPairs,
    total: Statistics,
    scale: bool,
    given: Vector | None,
) -> Candidate:
    """Score one combination; its decomposition, 8 n² bytes in the dual, is not kept."""
    ridge = total.decompose(scale=scale)
    alphas = ridge.default_alphas() if given is None else given
    scores = scoring.scores(total, ridge, scale, alphas, coordinates.coefs)
    solved = ridge.coef(alphas)
    return Candidate(feature_map, coordinates, total.settings, scale, alphas, solved, scores)


def as_list(value: Any, name: str) -> list[Any]:
    """Return a setting, or the settings to choose from, as a list."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name}: a list of settings to choose from must not be empty")
        return list(value)
    return [value]
