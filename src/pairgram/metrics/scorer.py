"""A scorer for scikit-learn that computes a metric and requests qid and sample_weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from pairgram.metrics.metric import Metric
from pairgram.queries_and_pairs.queries import refuse_score_without_ids

__all__ = ["RankingScorer"]


class RankingScorer:
    """The scorer that `metrics.make_scorer` returns."""

    def __init__(self, metric: Metric, n_threads: int | None) -> None:
        self.metric = metric
        self.n_threads = n_threads
        self._requests: dict[str, bool | str | None] = {
            "qid": True,
            "sample_weight": True,
            "offset": True,
        }

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the metric for ``estimator.predict(X)``; greater is better."""
        if qid is None and _was_fitted_with_qid(estimator):
            refuse_score_without_ids(estimator)
        score = estimator.predict(X) if offset is None else estimator.predict(X, offset=offset)
        if np.isnan(np.asarray(score)).any():  # a metric would take it for not retrieved
            raise ValueError(f"{type(estimator).__name__}.predict returned NaN, want numbers")
        value = self.metric(
            y,
            score,
            qid,
            sample_weight=sample_weight,
            n_threads=self.n_threads,
        )
        return value if self.metric.greater_is_better else -value

    def __repr__(self) -> str:
        """Return the call that makes this scorer."""
        threads = "" if self.n_threads is None else f", n_threads={self.n_threads}"
        return f"make_scorer({self.metric!r}{threads})"

    def set_score_request(
        self,
        *,
        qid: bool | str | None = True,
        sample_weight: bool | str | None = True,
        offset: bool | str | None = True,
    ) -> RankingScorer:
        """Set what scikit-learn's metadata routing passes on. At first all are requested.

        Parameters
        ----------
        qid, sample_weight, offset : bool, str or None
            True: pass it on. False: do not pass it on. None: it is an error if it is given. A str:
            pass on the metadata of this name.
        """
        self._requests = {"qid": qid, "sample_weight": sample_weight, "offset": offset}
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request of this scorer for scikit-learn's routing."""
        request = MetadataRequest(owner=self)
        for parameter, alias in self._requests.items():
            request.score.add_request(param=parameter, alias=alias)
        return request


def _was_fitted_with_qid(estimator: Any) -> bool:
    """Tell whether a ranker, or the ranker in a pipeline or a search, was fitted with qid."""
    while not hasattr(estimator, "uses_qid_"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif getattr(estimator, "steps", None):
            estimator = estimator.steps[-1][1]
        else:
            return False
    return bool(estimator.uses_qid_)
