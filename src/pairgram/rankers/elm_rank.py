"""ELMRank: pairwise least squares on random nodes with two regularisers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import ArgumentError, Vector, require_finite
from pairgram._support.parameters import InputsName, Scope, check_parameters
from pairgram.data.dataset import RankingData, RowInfo
from pairgram.data.pairs import Pairs, PairSettings
from pairgram.features.base import generator
from pairgram.features.input_map import after_inputs, parts_of, whole_map
from pairgram.features.random_nodes import (
    NEED_POSITIVE,
    Activation,
    RandomNodes,
    check_range,
    join_nodes,
)
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
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.scheduler import Fitted, Grid, HoldOut, Steps, Whole, run
from pairgram.solvers.formulation import Coordinates

Range = tuple[float, float]
# These are the grids of Chen et al. 2014, §4.1.
ALPHAS = np.array([1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
CS = np.exp2(np.arange(1.0, 26.0))
# Held-out scores of single draws take at most this many bytes before they are averaged.
HELD_OUT_BYTES = 64 << 20
# Takes the number of features and the ranges of the weights, and returns the nodes of every draw
# for every range.
DrawNodes = Callable[[int, list[Range]], list[list[RandomNodes]]]


class _ELMRank(LinearRanker):
    """What ELMRank and its search share: draws of nodes, and a model that averages their scores."""

    pairs: Pairs
    scope: Scope
    n_nodes: int
    activation: Any
    weight_range: Any
    bias_range: Range | None
    n_estimators: int
    random_state: Any
    feature_map = None  # `fit` draws the nodes
    _needs_queries = False  # by default all rows form pairs
    _file_kind = "ELMRank"

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
        X, y, qid, group, sample_weight, query_weight :
            As in `RankRLS.fit`.
        offset : None
            This ranker has no prior and takes no offset: anything else is a ValueError.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `RankRLS.fit`.

        Warns
        -----
        UserWarning
            As in `RankRLS.fit`.
        """
        return self._fit(X, y, RowInfo(qid, group, sample_weight, query_weight, offset))

    def _fit(self, X: Any, y: ArrayLike | None, info: RowInfo, **options: Any) -> Self:
        self._check_parameters()
        data = self._check(X, y, info)
        require_finite(data.X, "X")
        if len(self._kinds()) == 1:  # others try what helps
            self._warn_of_rows(self, data, parts_of(data.feature_map)[0])
        steps = self._steps(data, data.y[:, None], info.has_queries, **options)
        (fitted,) = run(steps, data, self.n_threads)
        self.__dict__.update(fitted)
        self._warn_of_equal_labels(data, [self._settings()])
        return self

    def _delimit(self, X: Any, y: ArrayLike, info: RowInfo) -> RankingData:
        """Delimit rows. Weights are rescaled, since the objective depends only on their ratios."""
        if info.offset is not None:
            raise ArgumentError(
                "offset",
                f" must be None: {type(self).__name__} has no prior and takes no offset, but "
                "PairwiseELM and RankRLS do",
            )
        data = super()._delimit(X, y, info)
        return replace(
            data,
            row_weights=_in_range(data.row_weights),
            query_weights=_in_range(data.query_weights),
        )

    def _check_parameters(self) -> None:
        """Raise a ValueError if a parameter is not as described; the message names it."""
        check_parameters(self, "n_estimators")
        if not (isinstance(self.activation, str) or callable(self.activation)):
            raise ValueError(f"activation must be one name or callable, got {self.activation!r}")
        if self.pairs is None:
            raise ValueError("pairs must not be None: ELMRank fits differences within pairs")
        for weight_range in self._ranges():
            self._bias_range(weight_range)
        self._settings()

    def _ranges(self) -> list[Range]:
        """Return the candidate ranges of the weights."""
        return [check_range("weight_range", self.weight_range)]

    def _bias_range(self, weight_range: Range) -> Range:
        """Return the range of the biases for a range of the weights."""
        if self.bias_range is not None:
            return check_range("bias_range", self.bias_range)
        if self.activation == "gaussian" and weight_range[0] < 0:
            raise ValueError(
                f"{NEED_POSITIVE}, but bias_range=None takes weight_range={weight_range}, which "
                "reaches below 0: give a bias_range such as (0, 1)"
            )
        return weight_range

    def _settings(self) -> PairSettings:
        """Return which pairs count."""
        return PairSettings(self.pairs, self.scope)

    def _n_scores(self) -> int:
        """Return how many held-out scores the fit keeps for each label."""
        return 0

    @abstractmethod
    def _steps(
        self,
        data: RankingData,
        labels: Vector,
        uses_qid: bool,
        *,
        small: bool = False,
        draw: DrawNodes | None = None,
    ) -> Steps:
        """Fit a model to each column of `labels`; see `scheduler`.

        `draw` makes the nodes in place of `_draw_nodes`.
        """

    @property
    def _is_batched(self) -> bool:
        """Whether compiled code can fit small problems side by side with others."""
        self._check_parameters()
        return True

    def _parameters_to_save(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super()._parameters_to_save()
        if not isinstance(self.random_state, Integral):
            parameters["random_state"] = None
        if self.bias_range is not None:
            parameters["bias_range"] = check_range("bias_range", self.bias_range)
        return parameters

    def _draw_nodes(self, n_features: int, ranges: list[Range]) -> list[list[RandomNodes]]:
        """Return, for every range, the fitted nodes of every draw. Each draw has its own seed."""
        rng = generator(self.random_state)
        integers = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
        seeds = integers(2**31 - 1, size=self.n_estimators)
        return [
            [
                RandomNodes(
                    self.n_nodes,
                    self.activation,
                    weight_range=weight_range,
                    bias_range=self._bias_range(weight_range),
                    random_state=int(seed),
                    n_threads=self.n_threads,
                ).draw_for(n_features)
                for seed in seeds
            ]
            for weight_range in ranges
        ]

    def _models(
        self,
        data: RankingData,
        labels: Vector,
        nodes: list[RandomNodes],
        grids: list[Grid],
        uses_qid: bool,
    ) -> Steps:
        """Fit one model, with its own alpha and C, to every target; average it over the draws."""
        answers = yield [
            Whole(
                Coordinates(_with_nodes(data, draw), small=True),
                self._settings(),
                labels,
                lambda target, ridge, weight: grids[target].coef(ridge, weight)[0],
                basis=any(np.any(grid.damping) for grid in grids),
            )
            for draw in nodes
        ]
        feature_map = join_nodes(nodes)
        return [
            {
                "coef_": np.concatenate(coefs) / len(nodes),
                "inputs_": parts_of(whole_map(data))[0],
                "feature_map_": feature_map,
                "uses_qid_": uses_qid,
            }
            for coefs in zip(*answers, strict=True)
        ]


class ELMRank(_ELMRank):
    """Extreme learning machine for ranking with two regularisers (ELMRank).

    Parameters
    ----------
    alpha : float ≥ 0, default=1e-3
        Ridge, λ in the paper. The objective is a mean over pairs, so it does not depend on the
        size of the data.
    C : float > 0, default=1024.0
        1/C is the second regulariser, which is added to the linear system.
    pairs : {"kept", "dropped", "gain", "absdiff"} or callable, default="kept"
        As in `RankRLS`.
    scope : {"global", "query"}, default="global"
        "global": all rows form pairs with each other, as in the paper. "query": pairs are formed
        within queries.
    n_nodes : int ≥ 1, default=100
        Number of nodes of a draw.
    activation : str or callable, default="sigmoid"
        As in `RandomNodes`.
    weight_range : (float, float), default=(-1, 1)
        Range of the nodes' weights. It has a large effect; `ELMRankCV` can choose it.
    bias_range : (float, float) or None, default=None
        Range of the nodes' biases. None takes `weight_range`. Gaussian nodes need positive biases.
    n_estimators : int ≥ 1, default=1
        Number of independent draws of the nodes, whose scores are averaged. The paper has 50.
    random_state : int, RandomState, Generator or None, default=None
        Source of the seeds. Every draw has its own seed.
    inputs : str or None, default=None
        As in `RankRLS`; they act before the nodes.
    n_threads : int or None, default=None
        Number of threads. None takes the CPUs that the process may use, but at most
        ``OMP_NUM_THREADS``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_estimators * n_nodes,), float64
        Output weights of the nodes, divided by `n_estimators`, so that
        ``feature_map_.transform(X) @ coef_`` is the mean score of all draws.
    inputs_ : object or None
        As in `RankRLS`.
    feature_map_ : RandomNodes
        The nodes of all draws.
    n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankRLS`.

    See Also
    --------
    ELMRankCV : Chooses alpha, C and the range of the nodes.

    Notes
    -----
    H are the outputs of the nodes, L is the Laplacian of the pair weights W, and N = Σ_ij W_ij. For
    each draw, ``A = (2/N) HᵀLH + alpha I``, ``B = (2/N) HᵀLy``, and ``β = (AᵀA + I/C)⁻¹ AᵀB``. For
    C → ∞ this minimises ``(1/N) Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))² + alpha ‖β‖²``. (In eq. 5 of
    the paper, ``λ I_m`` must be ``λ I_n``.) A is positive definite and has the eigenvectors of
    HᵀLH, so β is the solution of a damped ridge. A draw costs n · n_nodes² + n_nodes³ flops. If
    there are many rows, H is not stored. Scale the inputs to similar size, such as [0, 1].

    References
    ----------
    Chen, Peng, Zhou, Li, Pan. Extreme learning machine for ranking: generalization analysis and
    applications. Neural Networks, 2014. Eq. 4-8.

    Examples
    --------
    >>> from pairgram import ELMRank, make_ranking
    >>> X, y, _ = make_ranking(1, 200, random_state=0)
    >>> ELMRank(n_estimators=5, random_state=0).fit(X, y).predict(X).shape
    (200,)
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        C: float = 1024.0,
        *,
        pairs: Pairs = "kept",
        scope: Scope = "global",
        n_nodes: int = 100,
        activation: Activation = "sigmoid",
        weight_range: Range = (-1.0, 1.0),
        bias_range: Range | None = None,
        n_estimators: int = 1,
        random_state: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.C = C
        self.pairs = pairs
        self.scope = scope
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.inputs = inputs
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_parameters(self, "alpha", "C")

    def _steps(
        self,
        data: RankingData,
        labels: Vector,
        uses_qid: bool,
        *,
        small: bool = False,
        draw: DrawNodes | None = None,
    ) -> Steps:
        (nodes,) = (draw or self._draw_nodes)(data.n_features, self._ranges())
        grids = [_grid([self.alpha], [self.C])] * labels.shape[1]
        return (yield from self._models(data, labels, nodes, grids, uses_qid))

    def _parameters_to_save(self) -> dict[str, Any]:
        return super()._parameters_to_save() | {"weight_range": self._ranges()[0]}


class ELMRankCV(_ELMRank):
    """ELMRank that chooses alpha, C and the range of its nodes by held-out scores.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each ≥ 0, or None, default=None
        The ridges to choose from. None stands for ``10^-5 … 10^1``, as in the paper.
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        The values of C to choose from. None stands for ``2^1 … 2^25``.
    cv : None, int, splitter or iterable of splits, default=None
        How rows are held out if `fit` gets no validation set. None stands for five folds of
        queries, or of the rows if there is a single query. There are fewer folds if there are
        fewer queries. Other values are as in
        `RankRLSCV`, with one exception. With a single query, an int gives fewer folds if a fold
        would otherwise have less than two rows, since no pair could then be scored. The paper has
        ``cv=10``.
    scoring : str, Metric, scorer or None, default="msd"
        As in `RankRLSCV`. It judges the mean score of all draws, within queries.
    weight_range : (float, float) or list of such, default=(-1, 1)
        Range of the nodes' weights, or a list of ranges to choose from. All ranges have the same
        seeds.
    inputs : a value as in `RankRLS`, or a list of values to choose from, default=None
    pairs, scope, n_nodes, activation, bias_range, n_estimators, random_state, n_threads :
        As in `ELMRank`.
    store_held_out : bool, default=False
        As in `RankRLSCV`.

    Attributes
    ----------
    alpha_, C_ : float
        The chosen pair.
    weight_range_ : (float, float)
        The chosen range.
    best_score_ : float
        Mean held-out score of the chosen settings. If `scoring` is a loss, such as "msd", this is
        the loss itself.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas, in the caller's order. The default descends.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C, in the caller's order. The default ascends.
    scores_ : ndarray of shape (n_alphas, n_Cs)
        Mean held-out scores with the chosen range.
    cv_results_ : dict
        A row for every combination, in the columns that `RankRLSCV` names, with
        ``param_weight_range``, ``param_alpha``, ``param_C``, and ``param_inputs`` if `inputs` is
        not None.
    coef_, inputs_, feature_map_, scoring_, held_out_, per_query_, n_features_in_, \
feature_names_in_, uses_qid_ :
        As in `ELMRank` and `RankRLSCV`.

    Notes
    -----
    The whole grid comes from one eigendecomposition per fold, draw and range. If there are many
    rows, the statistics of a fold's test rows are subtracted from those of all rows. This needs
    kept pairs, or folds of whole queries, because it is exact only for these. If several settings
    are equally good, the first inputs win, then the first range, the largest alpha and the
    smallest C.

    One setting is chosen for all draws, by their mean score. The trials of the paper choose a
    setting for every draw. To do the same, average the scores of several models with one draw
    each; give them different seeds, and preferably different folds.

    With query ids and ``scope="global"``, the model is fitted to pairs of all rows. Folds still
    hold whole queries, and held-out scores are compared within queries.

    References
    ----------
    Chen et al. 2014, §4.1 (grids, 10 folds, 50 draws).

    Examples
    --------
    >>> from pairgram import ELMRankCV, make_ranking
    >>> X, y, _ = make_ranking(1, 200, random_state=0)
    >>> model = ELMRankCV(weight_range=[(-1, 1), (-0.3, 0.3)], random_state=0).fit(X, y)
    >>> model.scores_.shape
    (7, 25)
    """

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        Cs: ArrayLike | None = None,
        *,
        cv: Any = None,
        scoring: str | Metric | None = "msd",
        pairs: Pairs = "kept",
        scope: Scope = "global",
        n_nodes: int = 100,
        activation: Activation = "sigmoid",
        weight_range: Range | list[Range] = (-1.0, 1.0),
        bias_range: Range | None = None,
        n_estimators: int = 1,
        random_state: Any = None,
        store_held_out: bool = False,
        inputs: InputsName | Sequence[InputsName | None] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.pairs = pairs
        self.scope = scope
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.store_held_out = store_held_out
        self.inputs = inputs
        self.n_threads = n_threads

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
        X, y, qid, group, sample_weight, query_weight :
            As in `RankRLS.fit`.
        offset : None
            This ranker has no prior and takes no offset: anything else is a ValueError.
        validation : (X, y) or (X, y, qid), or None
            A validation set, as in `RankRLSCV.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `RankRLSCV.fit`.
        """
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        return self._fit(X, y, info, validation=validation)

    def _mappings(self, data: RankingData) -> Iterator[RankingData]:
        """Yield the data with every kind of inputs. A single kind is there already."""
        kinds = self._kinds()
        for kind in kinds:
            one = len(kinds) == 1
            yield data if one else self._with_map(data, None, self._fit_inputs(data, kind))

    def _kinds(self) -> list[str | None]:
        return as_list(self.inputs, "inputs")

    @property
    def _is_batched(self) -> bool:
        return len(self._kinds()) == 1 and super()._is_batched

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._grid_axes()

    def _n_scores(self) -> int:
        alphas, Cs = self._grid_axes()
        return len(alphas) * len(Cs) * (1 + self.n_estimators)

    def _steps(
        self,
        data: RankingData,
        labels: Vector,
        uses_qid: bool,
        *,
        small: bool = False,
        draw: DrawNodes | None = None,
        validation: Any = None,
    ) -> Steps:
        if len(data.y) < 2:
            raise ValueError("ELMRankCV holds rows out, so X must have two or more, got 1 sample")
        cv, held_rows = self._held_rows(None, uses_qid, self._folds(data), validation)
        if held_rows is None and cv is None:
            cv = default_cv(data)
        judges = Judge.of_targets(
            data, labels, cv, held_rows, self.scoring, self.n_threads, self.store_held_out
        )
        ranges, (alphas, Cs) = self._ranges(), (np.sort(axis) for axis in self._grid_axes())
        alphas = alphas[::-1]  # ties go to the largest alpha and the smallest C
        grid = _grid(alphas, Cs)
        mapped = [
            (own, nodes)
            for own in self._mappings(data)
            for nodes in (draw or self._draw_nodes)(own.n_features, ranges)
        ]
        judged: list[list[Judged]] = [[] for _ in judges]
        for own, nodes in mapped:
            held = yield from self._held_out(own, labels, nodes, judges[0], grid)
            for target, judge in enumerate(judges):
                judged[target].append(judge.judge(judge.shared(held[target])))
        shape = (len(mapped), len(alphas), len(Cs))
        found = [join_judged(parts) for parts in judged]
        choices = [
            choose(one.means, judge.metric) for one, judge in zip(found, judges, strict=True)
        ]
        chosen = [tuple(map(int, np.unravel_index(k, shape))) for k, _ in choices]
        fitted: Fitted = [{} for _ in judges]
        for r in sorted({r for r, _, _ in chosen}):
            targets = [t for t, choice in enumerate(chosen) if choice[0] == r]
            grids = [_grid([alphas[chosen[t][1]]], [Cs[chosen[t][2]]]) for t in targets]
            own, nodes = mapped[r]
            models = yield from self._models(
                own, np.ascontiguousarray(labels[:, targets]), nodes, grids, uses_qid
            )
            for t, model in zip(targets, models, strict=True):
                results = self._results(found[t], choices[t], shape)
                stored = judged[t][r].stored
                fitted[t] = {**model, **results, **stored, "scoring_": judges[t].metric}
        return fitted

    def _results(
        self, judged: Judged, choice: tuple[int, NDArray[np.int64]], shape: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the attributes that describe the choice, with grids in the caller's order."""
        kinds, ranges, (alphas, Cs) = self._kinds(), self._ranges(), self._grid_axes()
        best, ranks = choice
        of_alpha = np.argsort(np.argsort(-alphas, kind="stable"))
        of_C = np.argsort(np.argsort(Cs, kind="stable"))
        of_range = np.arange(shape[0])[:, None, None] * (len(alphas) * len(Cs))
        order = (of_range + of_alpha[:, None] * len(Cs) + of_C).ravel()
        at = int(np.flatnonzero(order == best)[0])
        r, i, j = map(int, np.unravel_index(at, shape))
        columns = {
            "weight_range": np.repeat(column_of(ranges * len(kinds)), len(alphas) * len(Cs)),
            "alpha": np.tile(np.repeat(alphas, len(Cs)), shape[0]),
            "C": np.tile(Cs, shape[0] * len(alphas)),
        }
        if self.inputs is not None:
            columns["inputs"] = np.repeat(column_of(kinds), judged.means.size // len(kinds))
        table = judged.take(order)
        return {
            "alpha_": float(alphas[i]),
            "C_": float(Cs[j]),
            "weight_range_": ranges[r % len(ranges)],
            "best_score_": float(judged.means[best]),
            "best_index_": at,
            "alphas_": alphas.copy(),
            "Cs_": Cs.copy(),
            "scores_": table.means.reshape(shape)[r].copy(),
            "cv_results_": search_results(columns, table, ranks[order]),
        }

    def _folds(self, data: RankingData) -> Any:
        """Return `cv`; with one query, an int is limited so that every fold has two rows."""
        one_query = data.queries.n_filled == 1
        if isinstance(self.cv, Integral) and not isinstance(self.cv, bool) and one_query:
            return min(self.cv, max(2, len(data.y) // 2))
        return self.cv

    def _held_out(
        self,
        data: RankingData,
        labels: Vector,
        nodes: list[RandomNodes],
        judge: Judge,
        grid: Grid,
    ) -> Any:
        """Request the mean held-out score of all draws, (n_targets, n_grid, n_held_out_rows)."""
        settings, n_targets, n_grid = self._settings(), labels.shape[1], len(grid.alphas)
        n_scores = n_targets * n_grid * len(judge.scored.y)
        step = max(1, HELD_OUT_BYTES // (8 * n_scores))
        total: Any = 0.0
        for begin in range(0, len(nodes), step):
            part = nodes[begin : begin + step]
            draws = [Coordinates(_with_nodes(data, draw), small=True) for draw in part]
            if judge.splits is not None:
                splits = judge.splits
                answers = yield [HoldOut(draw, settings, labels, splits, grid) for draw in draws]
                total = sum(answers[1:], start=total + answers[0])
                continue
            answers = yield [
                Whole(
                    draw,
                    settings,
                    labels,
                    lambda _, ridge, weight: grid.coef(ridge, weight),
                    basis=bool(np.any(grid.damping)),
                )
                for draw in draws
            ]
            for draw, coefs in zip(draws, answers, strict=True):
                assert judge.validation is not None
                validation = replace(judge.validation, feature_map=whole_map(draw.data))
                models = np.concatenate(coefs)
                scores = validation.scores(slice(None), models, self.n_threads)
                total = total + scores.reshape(n_targets, n_grid, -1)
        return total / len(nodes)

    def _ranges(self) -> list[Range]:
        value = self.weight_range
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if not (isinstance(value, (list, tuple)) and all(np.ndim(bounds) == 1 for bounds in value)):
            value = [value]
        if not value:
            raise ValueError("weight_range: a list of ranges to choose from must not be empty")
        return [check_range("weight_range", bounds) for bounds in value]

    def _grid_axes(self) -> tuple[Vector, Vector]:
        """Return the alphas and the Cs to choose from, in the caller's order."""
        alphas = ALPHAS if self.alphas is None else check_alphas(self.alphas, zero=True)
        return alphas, CS if self.Cs is None else check_alphas(self.Cs, "Cs")

    def _parameters_to_save(self) -> dict[str, Any]:
        """Return the parameters of the chosen `ELMRank`, which is what a model file holds."""
        parameters = super()._parameters_to_save()
        for name in ("alphas", "Cs", "cv", "scoring", "store_held_out"):
            del parameters[name]
        chosen = {"alpha": self.alpha_, "C": self.C_, "weight_range": self.weight_range_}
        return parameters | chosen


def _with_nodes(data: RankingData, nodes: RandomNodes) -> RankingData:
    """Return the data with nodes after their inputs."""
    inputs, _ = parts_of(data.feature_map)
    return replace(data, feature_map=after_inputs(inputs, nodes))


def _in_range(weights: Vector | None) -> Vector | None:
    """Scale huge or tiny weights by a power of 4, so that the largest is near 1.

    Other weights are returned as they are. A power of 4 does not change how square roots of weights
    are rounded.
    """
    if weights is None or not weights.any() or 1e-30 <= weights.max() <= 1e30:
        return weights
    exponent = int(np.frexp(weights.max())[1])
    return np.ldexp(weights, -(exponent + exponent % 2))


def _grid(alphas: ArrayLike, Cs: ArrayLike) -> Grid:
    """Return all pairs of an alpha and a C. C changes fastest."""
    a, c = np.asarray(alphas, dtype=np.float64), np.asarray(Cs, dtype=np.float64)
    return Grid(np.repeat(a, len(c)), np.tile(1 / np.sqrt(c), len(a)), relative=True)
