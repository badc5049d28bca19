"""The evidence of ridge problems: the restricted likelihood of the labels, and its judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pairgram._support.checks import AnyArray, ArgumentError, Vector
from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.pairs import Pairs
from pairgram.model_selection.judge import Criterion, Judged
from pairgram.solvers.formulation import PathJudge, RidgeModels
from pairgram.solvers.ridge_path import RidgePath

# What a model leaves of the labels is rounding error below so many rounding errors of the labels.
LEAST_LEFT = 1e3
# Total weights of lists that differ by no more than this share are equal.
EQUAL = 1e-9


def log_evidence(
    path: RidgePath, alphas: Vector, squares: float, degrees: float, rounding: float
) -> Vector:
    """Return the logarithm of the restricted likelihood at its best noise, (n_alphas,).

    It is that of ``R y``, the labels of weight 1 less the mean of their list: with ν degrees of
    freedom, and with ``Q = yᵀLy − gᵀ (G + alpha I)⁻¹ g``, which is least at ν times the noise,

        ``−½ (ν log(2π Q / ν) + ν + log det(I + G / alpha))``.

    NaN where Q is rounding error, as of labels without noise and a tiny ridge.

    Parameters
    ----------
    path : RidgePath
    alphas : ndarray of shape (n_alphas,), > 0
    squares : float
        ``yᵀLy``.
    degrees : float
        ν, the number of rows that count, less one for each list.
    rounding : float
        The rounding error of sums, relative to them.
    """
    if not squares > 0:
        raise ArgumentError(
            "scoring", f"must not be {evidence.name!r} for labels that differ in no list"
        )
    (shrinking, explained), least = _terms(path, alphas), 0.0
    if path.is_dual:  # where nothing is subtracted
        left = alphas * explained
    else:
        left, least = squares - explained, LEAST_LEFT * rounding * squares
    known = left > least
    if not known.any():
        raise ArgumentError(
            "alphas",
            f"must be larger for {{scoring={evidence.name!r}}}: what their models leave of the "
            "labels is rounding error",
        )
    of_noise = degrees * (np.log(2 * np.pi / degrees * np.where(known, left, 1.0)) + 1)
    return np.where(known, -0.5 * (of_noise + shrinking), np.nan)


def _terms(path: RidgePath, alphas: Vector) -> tuple[Vector, Vector]:
    """Return ``log det(I + G / alpha)`` and ``gᵀ (G + alpha I)⁻¹ g``, (n_alphas,) each.

    In the dual form G stands for ``R K Rᵀ``, and g for ``R y``. A band form needs no eigenvectors.
    """
    if path.band is not None and path.band.serves(alphas):
        scale = path.band.form.scale
        solved, rotated, logs = path.band.form.solved(alphas, path.band.target)
        if not np.isnan(logs).any():
            return logs - len(rotated) * np.log(alphas / scale), scale * (solved @ rotated)
    eigen = path.eigen
    values, squares = eigen.eigenvalues, np.square(eigen.projection)
    if path.is_dual:  # whose basis holds the roots of the eigenvalues
        squares = squares / values
    explained = (squares / (values + alphas[:, None])).sum(axis=1) + eigen.unseen / alphas
    return np.log1p(values / alphas[:, None]).sum(axis=1), explained


def degrees_of_labels(data: RankingData, settings: Pairs) -> tuple[int, float | None, float]:
    """Return Σ rank(L_q), the total weight of every list, None if these differ, and their mean."""
    index, n_queries = data.queries.index(), data.queries.n_queries
    total: AnyArray = np.bincount(index, data.v, minlength=n_queries)
    counted = np.bincount(index, data.v > 0, minlength=n_queries)
    factor = settings.factor(total, total**2)
    if data.query_weights is not None:
        factor = factor * data.query_weights
    if settings.kind is not None:
        counted = np.maximum(counted - 1, 0)
        factor = factor * total
    known = (counted > 0) & (factor > 0)
    weights = factor[known]
    rank = int(counted[known].sum())
    if not len(weights):
        return rank, None, 1.0
    mean = float(weights @ counted[known]) / rank
    return rank, None if np.ptp(weights) > EQUAL * weights.max() else mean, mean


@dataclass(frozen=True, eq=False)
class ByEvidence(PathJudge):
    """Judges the models of a path by their evidence; nothing is held out."""

    @property
    def metric(self) -> Criterion:
        """What judges."""
        return evidence

    def of(self, data: RankingData) -> ByEvidence:
        """Return the same: another feature map does not change the labels."""
        return self

    def require(self, settings: Pairs, n_alphas: int) -> None:
        """Raise a ValueError if no model of the noise fits."""
        data = self.data.as_scope(settings)
        _refuse_settings(settings, degrees_of_labels(data, settings)[1])

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge every alpha by `log_evidence`. Call `require` first."""
        settings = models.settings
        data = self.data.as_scope(settings)
        degrees, _, _ = degrees_of_labels(data, settings)
        targets = np.array(data.target(settings), np.float64)
        rooted = apply_half_laplacian(data.problem(settings), targets)
        told = float(rooted @ rooted), float(degrees), models.ridge.rounding(self.data.dtype)
        found = log_evidence(models.ridge, models.alphas, *told)
        return Judged(found, np.full(len(found), np.nan))


class Evidence(Criterion):
    """The restricted likelihood of the labels, for least squares alone: ``scoring="evidence"``."""

    def require(
        self,
        settings: Sequence[Pairs],
        alphas: Vector | None,
        told: Mapping[str, bool],
        *,
        constrained: bool,
    ) -> None:
        """Raise a ValueError if the evidence could not choose, or if rows are to be held out."""
        for name, given in told.items():
            if given:
                raise ArgumentError(
                    name,
                    f"must not be given with {{scoring={self.name!r}}}, which holds nothing out: "
                    "it takes the likelihood of all labels",
                )
        wrong = ""
        if len(settings) > 1:
            wrong = "where pairs or targets are chosen, whose likelihoods cannot be compared"
        elif constrained:
            wrong = "with a constraint, under which weights are not normal"
        elif alphas is not None and not alphas.min() > 0:
            wrong = "with an alpha of 0, which has no likelihood"
        if wrong:
            raise ArgumentError("scoring", f"must not be {self.name!r} {wrong}")

    def judge(self, data: RankingData) -> ByEvidence:
        """Return the judge of rows, or of their comparisons."""
        if data.preferences is not None:
            of = data.preferences
            data = RankingData(np.empty((of.n_pairs, 0)), of.margin, of.queries, of.weight)
        return ByEvidence(data)


evidence = Evidence("evidence")


def _refuse_settings(settings: Pairs, weight: float | None) -> None:
    """Raise a ValueError if the labels have no likelihood.

    `weight` is None if a label of weight 1 has another noise in every list.
    """
    if settings.compiled not in ("kept", "none"):
        raise ArgumentError(
            "scoring",
            f"must not be {evidence.name!r} with {{pairs={settings.kind!r}}}, where the labels "
            "make the weights, so that no model of their noise fits: give {pairs='with_ties'}",
        )
    if weight is None and settings.weighting == "documents":
        raise ArgumentError(
            "scoring",
            f"must not be {evidence.name!r} where query_weight differs, so that the noise of a "
            "label would depend on its list: sample_weight says how sure a label is",
        )
    if weight is None:
        raise ArgumentError(
            "scoring",
            f"must not be {evidence.name!r} with {{weighting={settings.weighting!r}}}, where the "
            "noise of a label would depend on the size of its list: give {weighting='documents'}, "
            "as Pairs of RankRLSCV take it",
        )
