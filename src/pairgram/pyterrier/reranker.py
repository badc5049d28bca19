"""`Ranker`, an estimator of PyTerrier that fits a ranker to results with features."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from pairgram._support.checks import AnyArray

if TYPE_CHECKING:
    import pandas

try:
    import pyterrier
except ImportError as error:
    message = "pairgram.pyterrier needs PyTerrier: pip install 'pairgram[pyterrier]'"
    raise ImportError(message) from error


class Ranker(pyterrier.Estimator):  # type: ignore[misc]
    """Rerank results by a ranker of this package.

    Put it at the end of a pipeline that computes features, such as ``bm25 >> features >> Ranker(
    RankRLSCV())``. Documents that were not judged, or have a label below 0, which says the same,
    count as not relevant, with the label 0.

    Parameters
    ----------
    estimator : ranker of this package, or Pipeline of scikit-learn that ends in one
        It is cloned before it is fitted.

    Attributes
    ----------
    estimator_ : the fitted estimator

    Examples
    --------
    >>> import numpy, pandas
    >>> from pairgram import RankRLSCV, make_ranking
    >>> from pairgram.pyterrier import Ranker
    >>> X, y, qid = make_ranking(20, 5, 3, random_state=0)
    >>> results = pandas.DataFrame(
    ...     {"qid": qid.astype(str), "docno": numpy.arange(len(y)).astype(str), "features": list(X)}
    ... )
    >>> qrels = results[["qid", "docno"]].assign(label=y)
    >>> ranker = Ranker(RankRLSCV()).fit(results, qrels)
    >>> int(ranker.transform(results)["rank"].max())
    4
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        super().__init__()
        self.estimator = estimator

    def fit(
        self,
        topics_and_results: pandas.DataFrame,
        qrels: pandas.DataFrame,
        topics_and_results_valid: pandas.DataFrame | None = None,
        qrels_valid: pandas.DataFrame | None = None,
    ) -> Self:
        """Fit the estimator to results whose relevance is known.

        Parameters
        ----------
        topics_and_results : pandas.DataFrame
            Results with the columns qid, docno and features. Each entry of features is an array,
            all of the same length. Rows may come in any order.
        qrels : pandas.DataFrame
            Judgements with the columns qid, docno and label.
        topics_and_results_valid, qrels_valid : pandas.DataFrame or None
            Results and judgements to choose settings by. Without them, a ranker that chooses its
            settings does so by its `cv`. Other rankers, and pipelines, ignore them with a warning.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a column is missing, if there are no results, or if a document is judged twice for a
            query.
        """
        X, y, qid = _rows(topics_and_results, qrels, self)
        named: dict[str, Any] = {}
        if (topics_and_results_valid is None) != (qrels_valid is None):
            raise ValueError("give topics_and_results_valid and qrels_valid, or neither")
        if topics_and_results_valid is not None:
            last = getattr(self.estimator, "steps", [(None, self.estimator)])[-1][1]
            alone = last is self.estimator
            if alone and "validation" in inspect.signature(last.fit).parameters:
                named["validation"] = _rows(topics_and_results_valid, qrels_valid, self)
            else:
                warnings.warn(
                    f"the validation results are not used: {type(last).__name__} chooses nothing, "
                    "or stands in a Pipeline",
                    UserWarning,
                    stacklevel=2,
                )
        with sklearn.config_context(enable_metadata_routing=True):  # by which qid reaches it
            self.estimator_ = clone(self.estimator).fit(X, y, qid=qid, **named)
        return self

    def transform(self, results: pandas.DataFrame) -> Any:
        """Return results with the scores of the fitted estimator, and ranks by these scores.

        Raises
        ------
        NotFittedError
            If the ranker was not fitted.
        ValueError
            If the number of features is not that of the fit.
        """
        if not hasattr(self, "estimator_"):
            raise NotFittedError("this Ranker is not fitted: call fit of it or of its pipeline")
        pyterrier.validate.result_frame(results, extra_columns=["features"], context=self)
        results = results.copy()
        scores: Any = []
        if len(results):
            scores = self.estimator_.predict(_matrix(results))
        results["score"] = np.asarray(scores, np.float64)
        return pyterrier.model.add_ranks(results)

    def transform_outputs(self, columns: list[str]) -> list[str]:
        """Return the columns of the results, given those of the input."""
        return [*columns, *(name for name in ("score", "rank") if name not in columns)]


def _rows(
    results: pandas.DataFrame, qrels: pandas.DataFrame, ranker: BaseEstimator
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the features, labels and query ids of results."""
    pyterrier.validate.result_frame(results, extra_columns=["features"], context=ranker)
    missing = {"qid", "docno", "label"} - {*qrels.columns}
    if missing:
        raise ValueError(f"qrels must have the columns qid, docno and label, without {missing}")
    if not len(results):
        raise ValueError("topics_and_results must have results, got none")
    judged = qrels[["qid", "docno", "label"]]
    twice = judged.duplicated(["qid", "docno"])
    if twice.any():
        row = judged[twice].iloc[0]
        raise ValueError(f"qrels must judge a document once, got {row.qid!r}, {row.docno!r} twice")
    if judged["label"].isna().any():
        row = judged[judged["label"].isna()].iloc[0]
        raise ValueError(f"qrels has no label for {row.qid!r}, {row.docno!r}")
    labels = results[["qid", "docno"]].merge(judged, on=["qid", "docno"], how="left")["label"]
    if labels.isna().all():
        raise ValueError(
            f"qrels must judge a result: none of the {len(results)} results has its qid and docno "
            "among them"
        )
    return _matrix(results), labels.fillna(0).clip(0).to_numpy(float), results["qid"].to_numpy()


def _matrix(results: pandas.DataFrame) -> AnyArray:
    return np.stack(results["features"].tolist()).astype(np.float64)
