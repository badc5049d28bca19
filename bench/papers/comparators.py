"""What Chen et al. 2014 compare with: RankBoost, and support vector machines on pairs.

Each is as small as it can be, for these tables alone. The solvers are scikit-learn's. `choose`
finds the settings, also those of scikit-learn's SVR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.svm import LinearSVC, LinearSVR

import pairgram
from pairgram._support.machine import thread_count

__all__ = ["RankBoost", "RankSVM", "SVRank", "choose"]

# A weak ranker without an error has an infinite weight, and what it settles needs no more rounds.
MAX_ADVANTAGE = 1 - 1e-6


class RankBoost(BaseEstimator):
    """Boost weak rankers ``1[x_column > threshold]`` (Freund, Iyer, Schapire, Singer 2003, §3).

    Each round takes the ranker of the greatest |r|, the weighted pairs that it orders rightly
    less those that it orders wrongly, with the weight ``ln((1 + r) / (1 − r)) / 2`` (their third
    method). Pairs are those of different labels, all alike at the start.
    """

    def __init__(self, n_rounds: int = 100) -> None:
        self.n_rounds = n_rounds

    def fit(self, X: np.ndarray, y: np.ndarray) -> RankBoost:
        """Fit to rows, (n_rows, n_features), and labels, (n_rows,)."""
        self.rankers_: list[tuple[int, float, float]] = []  # column, threshold, weight
        order = np.argsort(X, axis=0, kind="stable")
        values = np.take_along_axis(X, order, axis=0)
        possible = values[1:] > values[:-1]
        worse = np.less.outer(y, y)  # [i, j]: row j has the higher label
        scores = np.zeros(len(y))
        while worse.any() and len(self.rankers_) < self.n_rounds:
            wrong = np.where(worse, np.subtract.outer(scores, scores), -np.inf)
            weights = np.exp(wrong - wrong.max())
            weights /= weights.sum()
            # Rows above a threshold add what they win less what they lose. All rows add 0.
            balance = weights.sum(axis=0) - weights.sum(axis=1)
            advantage = np.where(possible, -np.cumsum(balance[order], axis=0)[:-1], 0.0)
            row, column = np.unravel_index(np.abs(advantage).argmax(), advantage.shape)
            r = np.clip(advantage[row, column], -MAX_ADVANTAGE, MAX_ADVANTAGE)
            if r == 0:
                break
            ranker = (int(column), float(values[row, column]), float(np.arctanh(r)))
            self.rankers_.append(ranker)
            scores += _votes(X, *ranker)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return scores, (n_rows,)."""
        return np.sum([np.zeros(len(X)), *(_votes(X, *ranker) for ranker in self.rankers_)], axis=0)


def _votes(X: np.ndarray, column: int, threshold: float, weight: float) -> np.ndarray:
    return weight * (X[:, column] > threshold)


class _PairMachine(BaseEstimator):
    """A linear machine on differences of rows whose inner products are those of an rbf kernel.

    Minimises ``½ ‖f‖² + C · mean loss of the pairs``. As many features as rows make the kernel
    exact, and the solver for linear machines does what one for kernels would do on all pairs.
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0) -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit to rows, (n_rows, n_features), and labels, (n_rows,)."""
        self.features_ = Nystroem(gamma=self.gamma, n_components=len(X), random_state=0).fit(X)
        features = self.features_.transform(X)
        first, second = np.triu_indices(len(y), 1)
        self.coef_ = self._solve(features[first] - features[second], y[first] - y[second])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return scores, (n_rows,)."""
        return np.asarray(self.features_.transform(X) @ self.coef_)

    def _solve(self, differences: np.ndarray, targets: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _settings(self, n_pairs: int) -> dict[str, Any]:
        return {"C": self.C / n_pairs, "fit_intercept": False, "tol": 1e-2, "random_state": 0}


class RankSVM(_PairMachine):
    """Ranking SVM: loss ``(|y_i − y_j| − sign(y_i − y_j) (f_i − f_j))₊`` of pairs of unlike labels.

    The margin is the difference of the labels, as in Agarwal and Niyogi 2009. Labels, of which some
    differ, must make two pairs or more.
    """

    def _solve(self, differences: np.ndarray, targets: np.ndarray) -> np.ndarray:
        unlike = targets != 0
        differences, targets = differences[unlike], targets[unlike]
        # (|t| − s)₊ = |t| (1 − s/|t|)₊. Every other pair is turned, for a classifier wants two
        # classes and the labels may come in order.
        sides = np.where(np.arange(len(targets)) % 2, 1.0, -1.0)
        rows = (sides / targets)[:, None] * differences
        machine = LinearSVC(loss="hinge", **self._settings(len(targets)))
        return np.asarray(machine.fit(rows, sides, sample_weight=np.abs(targets)).coef_[0])


class SVRank(_PairMachine):
    """Support vector regression of the differences of all pairs (Cortes, Mohri, Rastogi 2007, §5).

    The loss is ``(|(y_i − y_j) − (f_i − f_j)| − epsilon)₊``.
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0, epsilon: float = 0.0) -> None:
        super().__init__(C, gamma)
        self.epsilon = epsilon

    def _solve(self, differences: np.ndarray, targets: np.ndarray) -> np.ndarray:
        machine = LinearSVR(epsilon=self.epsilon, **self._settings(len(targets)))
        return np.asarray(machine.fit(differences, targets).coef_)


def choose(
    model: Any,
    grid: Mapping[str, Sequence[float]],
    X: np.ndarray,
    y: np.ndarray,
    *,
    folds: KFold,
    scoring: str,
) -> Any:
    """Fit a clone of a model with the settings whose mean metric of held-out folds is the best.

    A fold for which the metric is not defined, such as one with equal labels, is the same to all
    settings and counts nothing.
    """
    metric = pairgram.get_metric(scoring)
    sign = 1 if metric.greater_is_better else -1

    def score(settings: Mapping[str, float]) -> float:
        parts = [
            metric(
                y[test],
                clone(model).set_params(**settings).fit(X[train], y[train]).predict(X[test]),
            )
            for train, test in folds.split(X)
        ]
        return sign * float(np.nan_to_num(parts).mean())

    candidates = list(ParameterGrid(grid))
    scores = Parallel(n_jobs=thread_count())(delayed(score)(settings) for settings in candidates)
    return clone(model).set_params(**candidates[int(np.argmax(scores))]).fit(X, y)
