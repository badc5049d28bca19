"""The evidence of ridge problems: the restricted likelihood of the labels, and its judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pairgram._support.checks import ArgumentError, Vector
from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.pairs import Pairs
from pairgram.model_selection.judge import EVIDENCE, Criterion, Judged
from pairgram.solvers.formulation import PathJudge, RidgeModels
from pairgram.solvers.ridge_path import RidgePath
from pairgram.solvers.statistics import degrees_of_labels

if TYPE_CHECKING:
    pass

# What a model leaves of the labels is rounding error below so many rounding errors of the labels.
LEAST_LEFT = 1e3


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
            "scoring", f"must not be {EVIDENCE.name!r} for labels that differ in no list"
        )
    terms, least = path.terms(alphas), 0.0
    if path.is_dual:  # where nothing is subtracted
        left = alphas * terms.explained
    else:
        left, least = squares - terms.explained, LEAST_LEFT * rounding * squares
    known = left > least
    if not known.any():
        raise ArgumentError(
            "alphas",
            f"must be larger for {{scoring={EVIDENCE.name!r}}}: what their models leave of the "
            "labels is rounding error",
        )
    of_noise = degrees * (np.log(2 * np.pi / degrees * np.where(known, left, 1.0)) + 1)
    return np.where(known, -0.5 * (of_noise + terms.shrinking), np.nan)


@dataclass(frozen=True, eq=False)
class ByEvidence(PathJudge):
    """Judges the models of a path by their evidence; nothing is held out."""

    metric: ClassVar[Criterion] = EVIDENCE

    @classmethod
    def make(cls, data: RankingData) -> ByEvidence:
        """Return the judge of rows, or of their comparisons."""
        if data.preferences is not None:
            of = data.preferences
            data = RankingData(np.empty((of.n_pairs, 0)), of.margin, of.queries, of.weight)
        return cls(data)

    def of(self, data: RankingData) -> ByEvidence:
        """Return the same: another feature map does not change the labels."""
        return self

    def require(self, settings: Pairs, n_alphas: int) -> float:
        """Raise a ValueError if no model of the noise fits; else return 0 more seconds."""
        data = self.data.as_scope(settings)
        _refuse_settings(settings, degrees_of_labels(data, settings)[1])
        return 0.0

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge every alpha by `log_evidence`. Call `require` first."""
        settings = models.settings
        data = self.data.as_scope(settings)
        degrees, _, _ = degrees_of_labels(data, settings)
        targets = np.array(data.target(settings), np.float64)
        rooted = apply_half_laplacian(data.problem(settings), targets)
        told = float(rooted @ rooted), float(degrees), models.ridge.rounding(self.data.dtype)
        evidence = log_evidence(models.ridge, models.alphas, *told)
        return Judged(evidence, np.full(len(evidence), np.nan))


def _refuse_settings(settings: Pairs, weight: float | None) -> None:
    """Raise a ValueError if the labels have no likelihood.

    `weight` is None if a label of weight 1 has another noise in every list.
    """
    if settings.compiled not in ("kept", "none"):
        raise ArgumentError(
            "scoring",
            f"must not be {EVIDENCE.name!r} with {{pairs={settings.kind!r}}}, where the labels "
            "make the weights, so that no model of their noise fits: give {pairs='with_ties'}",
        )
    if weight is None and settings.weighting == "documents":
        raise ArgumentError(
            "scoring",
            f"must not be {EVIDENCE.name!r} where query_weight differs, so that the noise of a "
            "label would depend on its list: sample_weight says how sure a label is",
        )
    if weight is None:
        raise ArgumentError(
            "scoring",
            f"must not be {EVIDENCE.name!r} with {{weighting={settings.weighting!r}}}, where the "
            "noise of a label would depend on the size of its list: give {weighting='documents'}, "
            "as Pairs of RankRLSCV take it",
        )
