"""The base classes of least-squares rankers, of which searches choose a ridge and settings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from pairgram._support.checks import Vector
from pairgram._support.parameters import Form
from pairgram.data.dataset import RankingData, RowInfo
from pairgram.data.pairs import PairSettings
from pairgram.features.input_map import parts_of, whole_map
from pairgram.features.inputs import FittedInputs
from pairgram.features.kernel_map import KernelMap
from pairgram.features.kernels import KERNELS, Kernel, KernelSettings
from pairgram.metrics import Metric
from pairgram.model_selection.judge import (
    Judge,
    Judged,
    as_list,
    choose,
    column_of,
    join_judged,
    search_results,
)
from pairgram.model_selection.splits import default_cv
from pairgram.rankers.base import LinearRanker, begin_fit, block_readers, same_columns
from pairgram.rankers.scheduler import Grid, HoldOut, Request, Solve, Steps, Whole, run
from pairgram.solvers.constrained import NO_MAP, Constraints
from pairgram.solvers.dual_gram import require_memory
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.held_out.leave_out import split_scores
from pairgram.solvers.held_out.leave_pair_out import LEAVE_PAIR_OUT, LeavePairOut
from pairgram.solvers.held_out.scoring import HeldOut, HeldOutRows, is_cheap
from pairgram.solvers.held_out.ties import PathTies
from pairgram.solvers.interface import ColumnSums, Statistics
from pairgram.solvers.passes import (
    TablePath,
    folds_of,
    judge_table,
    statistics_of,
    table_metric,
    warn_of_equal_table,
)
from pairgram.solvers.ridge_path import default_alphas
from pairgram.tables.blocks import BlockReader
from pairgram.tables.table import Table, refuse_arguments


class FeaturesOrKernel(LinearRanker):
    """A ranker with a feature map or a kernel, in primal or dual form."""

    kernel: Kernel | None
    gamma: Any
    degree: int
    coef0: float
    form: Form
    _takes_path = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _has_kernel(self) -> bool:
        """Whether the model uses a kernel, and so has dual coefficients only."""
        return callable(self.kernel) or self.kernel not in (None, "linear")

    def _applies_first(self, data: RankingData, feature_map: Any) -> bool:
        return self._has_kernel or super()._applies_first(data, feature_map)

    def _with_map(
        self, data: RankingData, feature_map: Any, inputs: FittedInputs | None = None
    ) -> RankingData:
        """Check that a kernel problem fits in memory before its rows are copied; apply the map."""
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
        return super()._with_map(data, feature_map, inputs)

    def _gammas(self) -> list[float | None]:
        """Return the candidate gammas. `_unfitted_map` uses the first."""
        return [self.gamma]

    @property
    def _no_columns(self) -> str:
        """Why the model has no columns that weights of a prior could belong to."""
        return f"kernel={self.kernel!r}" if self._has_kernel else ""

    def _unfitted_map(self) -> Any:
        kernel: Kernel = "linear" if self.kernel is None else self.kernel
        gammas = self._gammas()
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

    def _kept(self, data: RankingData, models: dict[str, Vector]) -> dict[str, Any]:
        """Return the attributes for fitted models and the maps of their rows, by name.

        Weights of a prior are added. The map of a kernel drops rows whose coefficients are 0 in
        every model, such as rows of weight 0 and queries of one row.
        """
        inputs, feature_map = parts_of(whole_map(data))
        prior = self._prior_of(whole_map(data))
        if prior is not None and prior.coef is not None:
            models = {name: model + prior.coef for name, model in models.items()}
            measured = {"_column_sums": None}  # they were those of the difference alone
        else:
            measured = {}
        if self._has_kernel and self.kernel != "precomputed":
            used = np.any(
                [model.reshape(-1, model.shape[-1]).any(axis=0) for model in models.values()],
                axis=0,
            )
            if used.any() and not used.all():
                feature_map = feature_map.of_rows(np.flatnonzero(used))
                models = {name: model[..., used] for name, model in models.items()}
        return {"inputs_": inputs, "feature_map_": feature_map, **models, **measured}

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

    def _coordinates(
        self,
        data: RankingData,
        all_settings: list[PairSettings],
        scale: bool,
        *,
        path: bool = False,
        small: bool = False,
    ) -> Coordinates:
        """Choose how the problem is solved. A small problem always stays in features."""
        if small:
            return Coordinates.of_features(data, all_settings, small=True)
        constraints = self._constraints()
        if constraints is not None:
            inputs, feature_map = parts_of(data.feature_map)
            if feature_map is not None:
                raise ValueError(NO_MAP)
            n_columns = data.X.shape[1] if inputs is None else inputs.n_features_in_
            constraints.require_columns(n_columns, data.n_features)
            if self.form == "dual":
                raise ValueError(
                    "form must not be 'dual' with positive, l1_ratio or n_nonzero_coefs"
                )
            return Coordinates(data, scale=scale, constraints=constraints)
        return Coordinates.choose(
            data,
            all_settings,
            kernel=self._has_kernel,
            form=self.form,
            scale=scale,
            path=path,
            n_threads=self.n_threads,
        )

    def _table_coordinates(
        self, reader: BlockReader, all_settings: list[PairSettings], scale: bool
    ) -> tuple[BlockReader, Coordinates]:
        """Return the primal coordinates of a table, and the reader of its rows in them."""
        if scale or self._constraints() is not None:
            coordinates = self._coordinates(reader.pattern, all_settings, scale)
        else:
            coordinates = Coordinates.of_features(reader.pattern, all_settings)
        coordinates = coordinates.keeping_statistics()
        return replace(reader, pattern=coordinates.data), coordinates

    def _refuse_dual(self) -> None:
        """Raise a ValueError if a fit to a table would need all rows in memory."""
        if self._has_kernel:
            raise ValueError(
                f"kernel={self.kernel!r} needs all rows in memory, so a table cannot be fitted: "
                "give feature_map=Nystroem(...) or RandomFourier(...) in its place"
            )
        if self.form == "dual":
            raise ValueError("form='dual' needs all rows in memory, so a table cannot be fitted")

    @property
    def _is_batched(self) -> bool:
        """Whether compiled code can fit small problems side by side with others."""
        return not self._has_kernel and self.form == "auto" and self._constraints() is None

    def _constraints(self) -> Constraints | None:
        """Return the checked constraints of the weights, None if there are none."""
        return None

    def _kernel_parameters(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0", "form")
        }

    def _features(self) -> Any:
        """Return the unfitted feature map of a model without a kernel."""
        return self.feature_map


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


class RidgeSearch(FeaturesOrKernel):
    """Base class of searches that choose a ridge, and settings, by held-out scores."""

    cv: Any
    scoring: str | Metric | None
    store_held_out: bool
    _takes_path = True
    _too_weak = "alpha is so small"

    @abstractmethod
    def _grid(self) -> tuple[list[tuple[PairSettings, bool]], Vector | None]:
        """Return the checked combinations of settings and scale, and the alphas if given."""

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
        validation: Any = None,
    ) -> Self:
        """Score every combination of settings on held-out rows, and fit the best to all rows.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, offset :
            As in `RankRLS.fit`. The features of a table are read once more, to score the rows that
            are held out; `cv` says how.
        validation : (X, y), (X, y, qid) or (X, y, qid, offset), table of `scan`, or None
            A validation set, such as a `LetorData` of `load_letor_folds`. Its rows are held out,
            and `cv` must then be None. It needs query ids if `fit` gets `qid` or `group`, and
            offsets if `fit` gets `offset`. All its rows have weight 1. If X is a table, it is a
            table with the same features, whose weights count in the mean over queries. It may also
            be spelled as for LightGBM and XGBoost: ``eval_set=[(X, y)]`` with
            ``eval_group=[sizes]`` or ``eval_qid=[ids]``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described, if `scoring` cannot take the labels, if
            `cv` makes no splits, or if no query is left to fit to.

        Warns
        -----
        UserWarning
            As in `RankRLS.fit`.
        """
        combinations, _ = self._grid()  # checks the parameters
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        if isinstance(X, Table):
            refuse_arguments(y=y, **info._asdict())
            return self._fit_table(X, validation)
        data = self._check(X, y, info)
        self._warn_of_missing_queries(data, info)
        steps = self._steps(data, data.y[:, None], info.has_queries, validation=validation)
        (fitted,) = run(steps, data, self.n_threads)
        self.__dict__.update(fitted)
        self._warn_of_equal_labels(data, [settings for settings, _ in combinations])
        return self

    def _fit_table(self, table: Table, validation: Any) -> Self:
        """Score every combination on held-out rows of a table, in a second pass over it."""
        combinations, given = self._grid()
        self._refuse_dual()
        if self.store_held_out:
            raise ValueError("store_held_out must be False for a table: its rows are not kept")
        all_settings = [settings for settings, _ in combinations]
        scaled = any(scale for _, scale in combinations)
        table = begin_fit(self, table)
        held = table if validation is None else same_columns(self, table, validation)
        folds = None
        if validation is None:
            folds = folds_of(table, self.cv, all_settings, self._constraints() is not None)
        elif self.cv is not None:
            raise ValueError(f"give cv or validation, not both: got cv={self.cv!r} and a table")
        readers = block_readers(self, table, self._unfitted_map())
        pairs = [self._table_coordinates(reader, all_settings, scaled) for reader in readers]
        own = [reader for reader, _ in pairs]
        totals = statistics_of(table, own, all_settings, scaled, folds, self.n_threads)
        paths = [
            TablePath.of(
                totals, number, coordinates, settings, scale, given, folds, validation is None
            )
            for number, (_, coordinates) in enumerate(pairs)
            for settings, scale in combinations
        ]
        metric = table_metric(held, self.scoring)
        judged = judge_table(held, own, paths, metric, folds, self.n_threads)
        candidates = [
            _Candidate(
                readers[path.reader].pattern,
                path.coordinates,
                path.settings,
                path.scale,
                path.alphas,
                path.solved,
                found,
            )
            for path, found in zip(paths, judged, strict=True)
        ]
        fitted = self._chosen(candidates, metric, given)
        self.__dict__.update(fitted | {"uses_qid_": table.has_queries})
        warn_of_equal_table(table, totals)
        return self

    def _steps(
        self,
        data: RankingData,
        labels: Vector,
        uses_qid: bool,
        *,
        small: bool = False,
        validation: Any = None,
    ) -> Steps:
        """Choose a model for each column of `labels`; see `scheduler`."""
        combinations, given = self._grid()
        if len(data.y) < 2:
            raise ValueError(
                f"{type(self).__name__} holds rows out, so X must have two or more, got 1 sample"
            )
        candidates: list[list[_Candidate]] = [[] for _ in labels.T]
        held_outs: Sequence[HeldOut] = []
        all_settings = [settings for settings, _ in combinations]
        scaled = any(scale for _, scale in combinations)
        for own in self._mappings(data):
            if held_outs:
                held_outs = [held.of(replace(own, y=held.data.y)) for held in held_outs]
            elif self._has_kernel:  # what is wrong is told before the kernel is made
                held_outs = self._held_outs(
                    own, labels, all_settings, len(own.y), "dual", uses_qid, validation
                )
            coordinates = self._coordinates(own, all_settings, scaled, path=True, small=small)
            coordinates = coordinates.keeping_statistics()
            if not held_outs:
                width, form = coordinates.data.n_features, coordinates.name
                width = min(width, len(own.y)) if form == "dual" else width
                held_outs = self._held_outs(
                    own, labels, all_settings, width, form, uses_qid, validation
                )
            here = [held.within(coordinates.of_target(held.data.y).data) for held in held_outs]
            if not small:  # solving a small problem tells what is wrong as quickly
                self._refuse(coordinates, all_settings, given, here[0])
            for settings, scale in combinations:
                task = _Task(own, coordinates, settings, scale, given)
                if coordinates.constraints is None:
                    found = yield from _candidates(task, labels, here)
                else:
                    found = [_constrained_candidate(task, here[0], self.n_threads)]
                for target, candidate in enumerate(found):
                    candidates[target].append(candidate)
        shared = {"uses_qid_": uses_qid}
        return [
            self._chosen(of_target, held.metric, given) | shared
            for of_target, held in zip(candidates, held_outs, strict=True)
        ]

    @property
    def _is_batched(self) -> bool:
        """Whether compiled code can fit small problems side by side with others."""
        combinations, _ = self._grid()
        one = len(combinations) == len(self._kinds()) == 1 and not combinations[0][1]
        pairs_out = isinstance(self.cv, str) and self.cv == LEAVE_PAIR_OUT
        return one and not pairs_out and super()._is_batched

    def _n_scores(self) -> int:
        """Return how many held-out scores the fit keeps for each label."""
        given = self._grid()[1]
        return len(default_alphas(1.0, True)) if given is None else len(given)

    def _refuse(
        self,
        coordinates: Coordinates,
        all_settings: list[PairSettings],
        given: Vector | None,
        held_out: HeldOut,
    ) -> None:
        """Raise the errors of the search before a matrix is decomposed."""
        for settings in all_settings:
            coordinates.data.require_pairs(settings)
            started = coordinates.data.offset is not None
            n_alphas = len(default_alphas(1.0, started)) if given is None else len(given)
            held_out.require(settings, n_alphas, coordinates.form)
            if coordinates.form == "dual":
                in_dual = coordinates.data
                require_memory(
                    len(in_dual.y),
                    True,
                    in_dual.feature_map,
                    in_dual.dtype,
                    basis=held_out.needs_basis(settings, True),
                    held_out=held_out.n_matrices(settings),
                )

    def _held_outs(
        self,
        data: RankingData,
        labels: Vector,
        all_settings: list[PairSettings],
        n_dimensions: int,
        form: str,
        uses_qid: bool,
        validation: Any,
    ) -> Sequence[HeldOut]:
        """Return the object that holds rows out, for every target."""
        if isinstance(self.cv, str) and self.cv == LEAVE_PAIR_OUT and validation is None:
            if self._constraints() is not None:
                raise ValueError(
                    f"cv must not be {LEAVE_PAIR_OUT!r} with positive, l1_ratio or n_nonzero_coefs"
                )
            if self.store_held_out:
                raise ValueError(
                    f"store_held_out must be False with cv={LEAVE_PAIR_OUT!r}, where a row has "
                    "another score in every pair"
                )
            targets = [replace(data, y=y) for y in np.ascontiguousarray(labels.T)]
            return [LeavePairOut.make(target, self.scoring, self.n_threads) for target in targets]
        cv, held = self._held_rows(whole_map(data), uses_qid, self.cv, validation)
        if cv is None and held is None:
            cheap = self._constraints() is None and all(
                is_cheap(data, settings, n_dimensions, form) for settings in all_settings
            )
            cv = None if cheap else default_cv(data)
        judges = Judge.of_targets(
            data, labels, cv, held, self.scoring, self.n_threads, self.store_held_out
        )
        return [HeldOutRows(judge.data, judge, self.n_threads) for judge in judges]

    @property
    def _no_columns(self) -> str:
        return "a list of inputs" if len(self._kinds()) > 1 else super()._no_columns

    def _mappings(self, data: RankingData) -> Iterator[RankingData]:
        """Yield the data with every candidate of inputs and gamma. A single kind is there already.

        All gammas of one kind share the training rows.
        """
        kinds, gammas = self._kinds(), self._gammas()
        for kind in kinds:
            own = data
            if len(kinds) > 1:
                own = self._with_map(data, self._unfitted_map(), self._fit_inputs(data, kind))
            yield own
            for gamma in gammas[1:]:
                yield replace(own, feature_map=own.feature_map.with_gamma(gamma))

    def _kinds(self) -> list[str | None]:
        return as_list(self.inputs, "inputs")

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
        """Return the parameters of the kernel, with the chosen gamma."""
        return {**super()._kernel_parameters(), "gamma": self.gamma_}

    def _chosen(
        self, candidates: list[_Candidate], metric: Metric, given: Vector | None
    ) -> dict[str, Any]:
        """Return the attributes of the best candidate, with its ridges in the caller's order."""
        judged = join_judged([c.judged for c in candidates])
        otherwise = f", or every {self._too_weak} that held-out scores are rounding error"
        best, ranks = choose(judged.means, metric, otherwise)
        n_alphas = len(candidates[0].alphas)  # as many as of every other
        chosen, at = candidates[best // n_alphas], best % n_alphas
        order = np.arange(n_alphas)
        if given is not None:
            order = np.argsort(np.argsort(-given, kind="stable"), kind="stable")
        rows = (n_alphas * np.arange(len(candidates))[:, None] + order).ravel()
        of_candidates = {
            "pairs": column_of([c.settings.pairs for c in candidates]),
            "target": column_of([c.settings.target for c in candidates]),
            "scale": column_of([c.scale for c in candidates]),
        }
        if self._has_gamma:
            of_candidates["gamma"] = np.array([c.data.feature_map.gamma_ for c in candidates])
        if self.inputs is not None:
            fitted = [parts_of(whole_map(c.data))[0] for c in candidates]
            of_candidates["inputs"] = column_of([inputs and inputs.kind for inputs in fitted])
        columns = {"alpha": np.concatenate([c.alphas for c in candidates])[rows]}
        columns |= {name: np.repeat(values, n_alphas) for name, values in of_candidates.items()}
        path = chosen.coordinates.coefs(chosen.solved)
        return {
            "scoring_": metric,
            "alphas_": chosen.alphas[order],
            "scores_": chosen.judged.means[order],
            "alpha_": float(chosen.alphas[at]),
            "pairs_": chosen.settings.pairs,
            "target_": chosen.settings.target,
            "scale_": chosen.scale,
            "best_score_": float(judged.means[best]),
            "best_index_": int(np.argmax(rows == best)),
            "form_": chosen.coordinates.name,
            "gamma_": chosen.data.feature_map.gamma_ if self._has_gamma else None,
            "cv_results_": search_results(columns, judged.take(rows), ranks[rows]),
            **chosen.judged.stored,
            "_column_sums": chosen.column_sums(path[at]),
            **self._kept(chosen.data, {"coef_path_": path[order], "coef_": path[at].copy()}),
        }


class _Candidate(NamedTuple):
    """A combination of settings, the solutions of its ridge path, and its held-out scores."""

    data: RankingData
    coordinates: Coordinates
    settings: PairSettings
    scale: bool
    alphas: Vector  # descending
    solved: Vector  # in the coordinates, (n_alphas, n_dimensions)
    judged: Judged

    def column_sums(self, coef: Vector) -> ColumnSums | None:
        """Return how much the columns of X vary, if the statistics of the pairs are kept."""
        total = self.coordinates.known(self.settings)
        return None if total is None else self.coordinates.column_sums(total, coef)


class _Task(NamedTuple):
    """A combination of settings whose path is to be judged."""

    data: RankingData
    coordinates: Coordinates
    settings: PairSettings
    scale: bool
    given: Vector | None  # ridges, in any order


def _constrained_candidate(task: _Task, held_out: HeldOut, n_threads: int | None) -> _Candidate:
    """Judge one combination under constraints: the model of every split is solved anew."""
    data, coordinates, settings, scale, given = task
    assert isinstance(held_out, HeldOutRows)
    judge, data = held_out.judge, coordinates.data
    total = coordinates.statistics(settings, n_threads)
    alphas = None if given is None else np.sort(given)[::-1].copy()
    alphas, solved = coordinates.constrained(total, alphas, scale)

    def coefs_of(rest: Statistics) -> Vector:
        return coordinates.constrained(rest, alphas, scale)[1]

    if judge.validation is not None:
        scores = judge.validation.scores(slice(None), solved, n_threads)
    else:
        assert judge.splits is not None
        scores = np.hstack(split_scores(data, total, judge.splits, coefs_of, n_threads))
    judged = judge.judge(judge.shared(scores))
    return _Candidate(data, coordinates, settings, scale, alphas, solved, judged)


def _candidates(
    task: _Task, labels: Vector, held_outs: Sequence[HeldOut]
) -> Generator[Sequence[Request], list[Any], list[_Candidate]]:
    """Judge one combination for every target.

    Decompositions are not kept: in the dual form each takes at least 8 n² bytes.
    """
    data, coordinates, settings, scale, given = task
    basis = held_outs[0].needs_basis(settings, coordinates.name == "dual")
    whole = Whole(coordinates, settings, labels, lambda _, ridge, __: ridge, scale, basis)
    (ridges,) = yield [whole]
    started = data.offset is not None
    alphas = ridges[0].default_alphas(started) if given is None else np.sort(given)[::-1].copy()
    splits = held_outs[0].refits(settings, ridges[0])
    scores: Sequence[Vector | None] = [None] * len(held_outs)
    if splits is not None:
        at = PathTies.of(held_outs[0].data, settings, ridges[0], alphas).alphas
        grid = Grid(at, np.zeros_like(at), relative=False, scale=scale)
        (scores,) = yield [HoldOut(coordinates, settings, labels, splits, grid)]
    judged = [
        held.judge_path(
            settings,
            ridge,
            alphas,
            partial(target.statistics, settings, held.n_threads),
            coordinates.coefs,
            one,
        )
        for held, ridge, target, one in zip(held_outs, ridges, whole.targets(), scores, strict=True)
    ]
    return [
        _Candidate(data, coordinates, settings, scale, alphas, ridge.coef(alphas), found)
        for ridge, found in zip(ridges, judged, strict=True)
    ]
