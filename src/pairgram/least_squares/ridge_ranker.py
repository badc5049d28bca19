"""The base class of rankers that fit one ridge."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from pairgram._support.types import Vector
from pairgram.least_squares.features_or_kernel import FeaturesOrKernel
from pairgram.least_squares.scheduler import Solve, Steps, run
from pairgram.least_squares.table_fit import statistics_of, warn_of_equal_table
from pairgram.problem.data import RankingData, RowInfo
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.rankers.table_rows import begin_fit, block_readers
from pairgram.tables.table import Table, refuse_arguments

__all__ = ["RidgeRanker"]


class RidgeRanker(FeaturesOrKernel):
    """Base class of rankers that fit one ridge."""

    @abstractmethod
    def _ridge(self) -> tuple[PairSettings, float, bool]:
        """Return the checked (settings, alpha, scale)."""

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
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            C-contiguous arrays of float64 or float32 are not copied. A table has labels, query ids
            and weights of rows itself, so all other arguments must be left out. A first pass reads
            these columns alone. Its features are read once, and once more for each of: scales of
            `inputs`, what is drawn from rows (quantiles, landmarks, the width of a kernel), and
            ``missing="mean"``. Kernels other than "linear" and the dual form take no table.
        y : array-like of shape (n_rows,)
            Relevance labels, any real numbers. Only a table does without.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. With neither `qid` nor `group`, all rows are
            one query. A `MissingQueryWarning` warns of this if there are more than 1,000 rows and
            pairs are formed within queries.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of the queries, in place of `qid`, if the rows of each query stand together.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            A weight of 2 is the same as having the row twice. The weight of a pair is the product
            of the weights of its rows. The weights of all pairs must add up to at least 1e-290 and
            at most 1e303.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weights of queries, given for every row and constant within a query.
        offset : array-like of shape (n_rows,), finite, or None
            Scores of the rows by something else. The model fits what they leave of the targets,
            as if their column had the weight 1 and no ridge; `predict` and `score` then need the
            offsets of their rows. Labels alone decide which pairs count, and how much. Tools of
            scikit-learn hand offsets on if metadata routing is enabled, but ``predict`` of
            ``GridSearchCV`` takes none: use its ``best_estimator_``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.

        Warns
        -----
        UserWarning
            If no query has two rows with different labels, although tied pairs count: the model is
            then zero.
        """
        settings, _, _ = self._ridge()  # checks the parameters
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        if isinstance(X, Table):
            refuse_arguments(y=y, **info._asdict())
            return self._fit_table(X)
        data = self._check(X, y, info)
        self._warn_of_missing_queries(data, info)
        steps = self._steps(data, data.y[:, None], info.has_queries)
        (fitted,) = run(steps, data, self.n_threads)
        self.__dict__.update(fitted)
        self._warn_of_equal_labels(data, [settings])
        return self

    def _fit_table(self, table: Table) -> Self:
        """Fit the model to a table, whose rows are read once, and more often for some maps."""
        settings, alpha, scale = self._ridge()
        self._refuse_dual()
        table = begin_fit(self, table)
        (reader,) = block_readers(self, table, self._unfitted_map())
        own, coordinates = self._table_coordinates(reader, [settings], scale)
        totals = statistics_of(table, [own], [settings], scale, None, self.n_threads)
        total = totals[0, settings, 0].with_pairs(settings)
        coordinates = replace(coordinates, _known={settings: total})
        coef, sums = coordinates.solve(settings, alpha, scale=scale, n_threads=self.n_threads)
        shared = {"form_": "primal", "uses_qid_": table.has_queries, "_column_sums": sums}
        self.__dict__.update(shared | self._kept(reader.pattern, {"coef_": coef}))
        warn_of_equal_table(table, totals)
        return self

    def _steps(
        self, data: RankingData, labels: Vector, uses_qid: bool, *, small: bool = False
    ) -> Steps:
        """Fit a model to each column of `labels`; see `scheduler`."""
        settings, alpha, scale = self._ridge()
        coordinates = self._coordinates(data, [settings], scale, small=small)
        (solved,) = yield [Solve(coordinates, settings, labels, alpha, scale)]
        shared = {"form_": coordinates.name, "uses_qid_": uses_qid}
        return [
            {"_column_sums": sums} | self._kept(data, {"coef_": coef}) | shared
            for coef, sums in solved
        ]

    @property
    def _is_batched(self) -> bool:
        """Whether compiled code can fit small problems side by side with others."""
        return not self._ridge()[2] and super()._is_batched

    def _n_scores(self) -> int:
        """Return how many held-out scores the fit keeps for each label."""
        return 0
