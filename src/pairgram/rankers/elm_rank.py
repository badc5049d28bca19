"""ELMRank: pairwise least squares on random nodes with two regularisers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import ArgumentError, Vector, require_finite, verbatim
from pairgram._support.parameters import ActivationName, check_parameters
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.features.feature_map import generator
from pairgram.features.inputs import after_inputs, parts_of
from pairgram.features.random_nodes import RandomNodes, draw_nodes, join_nodes
from pairgram.features.row_values import Chain, chain_of
from pairgram.model_selection.judge import Judge, Tried, as_list, choose_among, in_order_of
from pairgram.rankers.linear_ranker import LinearRanker, LinearSearch
from pairgram.rankers.preparation import Preparation, Search, needs_rows, warn_of_inputs
from pairgram.rankers.prior import Prior
from pairgram.rankers.ridge import LeastSquares
from pairgram.solvers.costs import Work
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.grid import Grid
from pairgram.solvers.hold_out import split_scores
from pairgram.solvers.ridge_path import blas_guard

if TYPE_CHECKING:
    from pairgram._support.types import CV, BaseEstimator, RandomState
    from pairgram.metrics.evaluation import Scoring

# These are the grids of Chen et al. 2014, §4.1.
ALPHAS = np.array([1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
CS = np.exp2(np.arange(1.0, 26.0))


@dataclass(frozen=True, eq=False)
class DrawnSpec(LeastSquares):
    """What ELMRank and its search fit: a model on every draw of nodes, whose scores are averaged.

    Attributes
    ----------
    rows : Preparation
        What comes before the nodes of each of some ways to choose from.
    nodes : tuple of RandomNodes
        Those of each way, which are not drawn.
    n_estimators, random_state :
        As in `ELMRank`.
    alphas, Cs : ndarray of shape (n_alphas,) and (n_Cs,)
        What to choose from, in the caller's order.
    """

    nodes: tuple[RandomNodes, ...]
    n_estimators: int
    random_state: Any
    alphas: Vector
    Cs: Vector

    @classmethod
    def of(
        cls,
        model: BaseEstimator,
        values: Sequence[Any],
        alphas: Vector,
        Cs: Vector,
        search: Search | None = None,
    ) -> DrawnSpec:
        """Check the parameters that both rankers have, given the values of `feature_map`."""
        check_parameters(model, "n_estimators")
        ways = [_way_of(model, value) for value in values]
        pairs = Pairs.of(model.pairs, "global")
        if pairs.kind is None:
            raise ValueError("pairs must not be None: ELMRank fits differences within pairs")
        before = tuple(way._replace(then=None) for way in ways)
        return cls(
            Preparation(before, needed=needs_rows(model)),
            (pairs,),
            tuple(way.then for way in ways),
            model.n_estimators,
            model.random_state,
            alphas,
            Cs,
            search=search and search.for_pairs((pairs,)),
        )

    def fit(
        self, data: RankingData, prior: Prior | None, held: RankingData | None = None
    ) -> dict[str, Any]:
        """Return the fitted attributes; see `LeastSquares.fit`.

        Weights are rescaled, since the objective depends only on their ratios.
        """
        require_finite(data.X, "X")
        data = data.with_weights_in_range()
        if self.rows.is_one:  # others try what helps
            warn_of_inputs(self.nodes[0], data, parts_of(data.feature_map)[0])
        with blas_guard(min(len(data.y), data.n_features)):  # enter it only once
            if self.search is None:
                (nodes,) = self.draws([data.n_features])
                return self._model(data, nodes, _grid(self.alphas, self.Cs))
            return self._searched(data, held)

    def draws(self, n_features: Sequence[int]) -> list[list[RandomNodes]]:
        """Return the fitted nodes of every draw of each way, given its number of features.

        Each draw has its own seed, which is the same for all ways.
        """
        rng = generator(self.random_state)
        integers = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
        seeds = integers(2**31 - 1, size=self.n_estimators).tolist()
        return [
            [draw_nodes(clone(nodes).set_params(random_state=seed), width) for seed in seeds]
            for nodes, width in zip(self.nodes, n_features, strict=True)
        ]

    def _model(self, data: RankingData, nodes: list[RandomNodes], grid: Grid) -> dict[str, Any]:
        """Fit the model of one alpha and C; average it over the draws."""
        coefs = [found[0] for found in self._along(data, nodes, grid)]
        return {
            "coef_": np.concatenate(coefs) / len(nodes),
            "feature_map_": chain_of(data)._replace(then=join_nodes(nodes)).value,
        }

    def _along(self, data: RankingData, nodes: list[RandomNodes], grid: Grid) -> Iterator[Vector]:
        """Yield the models of a grid, (n_grid, n_nodes), for every draw."""
        for draw in nodes:
            one = self._with_nodes(data, draw)
            yield one.coefs(grid.of(one.statistics(self.settings[0])))

    def _with_nodes(self, data: RankingData, nodes: RandomNodes) -> Coordinates:
        """Return the data with nodes after a scale, in the form of the smaller system."""
        inputs, _ = parts_of(data.feature_map)
        mapped = replace(data, feature_map=after_inputs(inputs, nodes))
        work = Work(len(self.alphas) * len(self.Cs), path=True)
        return Coordinates.choose(mapped, self.settings, work=work, iterate=False)

    def _searched(self, data: RankingData, held: RankingData | None) -> dict[str, Any]:
        """Judge every combination of settings on rows that are held out, and keep the best."""
        search = self.search
        assert search is not None
        judge = Judge.make(data, _folds(search.cv, data), held, search.scoring)
        alphas = np.sort(self.alphas)[::-1]  # ties go to the largest alpha and the smallest C
        Cs = np.sort(self.Cs)
        grid = _grid(alphas, Cs)
        every = [*self.rows.each(data)]
        drawn = self.draws([own.n_features for own in every])
        mapped = [*zip(every, drawn, strict=True)]
        columns = {"alpha": np.repeat(alphas, len(Cs)), "C": np.tile(Cs, len(alphas))}
        tried = []
        for (own, nodes), way, then in zip(mapped, self.rows.ways, self.nodes, strict=True):
            judged = judge.judge(judge.shared(self._held_out(own, nodes, judge, grid)))
            settings = {"feature_map": way._replace(then=then).short}
            tried.append(Tried(judged, columns, settings if search.told else {}))
        of_alpha, of_C = in_order_of(-self.alphas, 0), in_order_of(self.Cs, 0)
        order = (of_alpha[:, None] * len(Cs) + of_C).ravel()
        number, at, told = choose_among(tried, order, judge.metric)
        told["scores_"] = told["scores_"].reshape(len(alphas), len(Cs))
        alpha, C = float(columns["alpha"][at]), float(columns["C"][at])
        model = self._model(*mapped[number], _grid([alpha], [C]))
        grids = {"alphas_": self.alphas.copy(), "Cs_": self.Cs.copy()}
        return model | told | grids | {"alpha_": alpha, "C_": C}

    def _held_out(
        self, data: RankingData, nodes: list[RandomNodes], judge: Judge, grid: Grid
    ) -> Any:
        """Return the mean held-out score of all draws, (n_grid, n_held_out_rows)."""
        total: Any = 0.0
        if judge.splits is not None:
            for draw in nodes:
                one = self._with_nodes(data, draw)
                statistics = one.statistics(self.settings[0])
                parts = split_scores(one.data, statistics, judge.splits, grid.of)
                total = total + np.hstack(parts)
            return total / len(nodes)
        for draw, models in zip(nodes, self._along(data, nodes, grid), strict=True):
            inputs, _ = parts_of(data.feature_map)
            own = replace(data, feature_map=after_inputs(inputs, draw))
            total = total + judge.of(own).validation_scores(models)
        return total / len(nodes)


@dataclass(eq=False, repr=False)
class ELMRank(LinearRanker):
    """Extreme learning machine for ranking with two regularisers (ELMRank).

    Parameters
    ----------
    alpha : float ≥ 0, default=1e-3
        Ridge, λ in the paper. The objective is a mean over pairs, so it does not depend on the
        size of the data.
    C : float > 0, default=1024.0
        1/C is the second regulariser, which is added to the linear system.
    pairs : Pairs, str or callable, default="with_ties"
        As in `RankRLS`, but not None. A kind alone stands for pairs of all rows, as in the paper;
        ``Pairs(scope="query")`` for those within queries.
    n_nodes : int ≥ 1, default=100
        Number of nodes of a draw.
    activation : str, default="sigmoid"
        As in `RandomNodes`. The weights and biases of the nodes are from −1 to 1, and the biases of
        Gaussian nodes from 0 to 1.
    n_estimators : int ≥ 1, default=1
        Number of independent draws of the nodes, whose scores are averaged. The paper has 50.
    random_state : int, RandomState, Generator or None, default=None
        Source of the seeds. Every draw has its own seed.
    feature_map : str, scale, Fill, RandomNodes, Pipeline of these, or None, default=None
        What comes before these nodes, such as "standard"; see `RankRLS`. ``RandomNodes(...)``,
        alone or at the end of a Pipeline, takes their place: `n_nodes` and `activation` have then
        no effect, nor has the `random_state` of the map. Its `weight_range` has a large effect;
        `ELMRankCV` can choose it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_estimators * n_nodes,), float64
        Output weights of the nodes, divided by `n_estimators`, so that
        ``feature_map_.transform(X) @ coef_`` is the mean score of all draws.
    feature_map_ : RandomNodes, or Pipeline that ends in them
        The nodes of all draws.
    n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankRLS`.

    See Also
    --------
    ELMRankCV : Chooses alpha, C, and what comes before the nodes, or the nodes themselves.

    Notes
    -----
    H are the outputs of the nodes, L is the Laplacian of the pair weights W, and N = Σ_ij W_ij. For
    each draw, ``A = (2/N) HᵀLH + alpha I``, ``B = (2/N) HᵀLy``, and ``β = (AᵀA + I/C)⁻¹ AᵀB``. For
    C → ∞ this minimises ``(1/N) Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))² + alpha ‖β‖²``. (In eq. 5 of
    the paper, ``λ I_m`` must be ``λ I_n``.) A is positive definite and has the eigenvectors of
    HᵀLH, so β is the solution of a damped ridge. A draw costs n · n_nodes² + n_nodes³ flops. If
    there are many rows, H is not stored. Scale the columns to similar size, as by
    ``feature_map="minmax"``.

    There is no prior, and `fit` takes no table of `scan`.

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

    _file_kind = "ELMRank"
    _scope = "global"

    alpha: float = 1e-3
    C: float = 1024.0
    _: KW_ONLY
    pairs: PairsLike = "with_ties"
    n_nodes: int = 100
    activation: ActivationName = "sigmoid"
    n_estimators: int = 1
    random_state: RandomState = None
    feature_map: Any = None

    def _spec(self) -> DrawnSpec:
        check_parameters(self, "alpha", "C")
        alphas, Cs = np.array([float(self.alpha)]), np.array([float(self.C)])
        return DrawnSpec.of(self, [self.feature_map], alphas, Cs)


@dataclass(eq=False, repr=False)
class ELMRankCV(LinearSearch):
    """ELMRank that chooses alpha, C and its feature map by held-out scores.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each ≥ 0, or None, default=None
        The ridges to choose from. None stands for ``10^-5 … 10^1``, as in the paper.
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        The values of C to choose from. None stands for ``2^1 … 2^25``.
    cv : None, int, splitter or iterable of splits, default=None
        How rows are held out if `fit` gets no validation set. None stands for five folds of
        queries, or of the rows if there is a single query. There are fewer folds if there are
        fewer queries. Other values are as in `RankRLSCV`, with one exception. With a single query,
        an int gives fewer folds if a fold would otherwise have less than two rows, since no pair
        could then be scored. The paper has ``cv=10``.
    scoring : str, Metric, scorer or None, default="pairwise_squared_error"
        As in `RankRLSCV`. It judges the mean score of all draws, within queries.
    feature_map : a value as in `ELMRank`, or a list of values to choose from, default=None
        ``[RandomNodes(100, weight_range=(-r, r)) for r in (1, 0.3)]`` chooses the range of the
        weights. The draws of all values have the same seeds.
    pairs, n_nodes, activation, n_estimators, random_state :
        As in `ELMRank`.

    Attributes
    ----------
    alpha_, C_ : float
        The chosen pair.
    best_score_ : float
        Mean held-out score of the chosen settings. If `scoring` is a loss, such as
        "pairwise_squared_error", this is the loss itself.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas, in the caller's order. The default descends.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C, in the caller's order. The default ascends.
    scores_ : ndarray of shape (n_alphas, n_Cs)
        Mean held-out scores with the chosen feature map.
    cv_results_ : dict
        A row for every combination, in the columns that `RankRLSCV` names, with
        ``param_alpha``, ``param_C``, and ``param_feature_map`` if `feature_map` is a list.
    coef_, feature_map_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `ELMRank`.
    scoring_, held_out_, per_query_ :
        As in `RankRLSCV`.

    Notes
    -----
    The whole grid comes from one eigendecomposition per fold, draw and feature map. If there are
    many rows, the statistics of a fold's test rows are subtracted from those of all rows. This
    needs pairs with ties, or folds of whole queries, because it is exact only for these. If several
    settings are equally good, the first `feature_map` wins, then the largest alpha and the smallest
    C.

    One setting is chosen for all draws, by their mean score. The trials of the paper choose a
    setting for every draw. To do the same, average the scores of several models with one draw
    each; give them different seeds, and preferably different folds.

    With query ids and pairs of all rows, the default, the model is fitted to all pairs. Folds still
    hold whole queries, and held-out scores are compared within queries.

    `fit` takes no table of `scan`, as in `ELMRank`.

    References
    ----------
    Chen et al. 2014, §4.1 (grids, 10 folds, 50 draws).

    Examples
    --------
    >>> from pairgram import ELMRankCV, RandomNodes, make_ranking
    >>> X, y, _ = make_ranking(1, 200, random_state=0)
    >>> nodes = [RandomNodes(100, weight_range=(-r, r)) for r in (1, 0.3)]
    >>> model = ELMRankCV(feature_map=nodes, random_state=0).fit(X, y)
    >>> model.scores_.shape
    (7, 25)
    """

    _file_kind = "ELMRank"
    _scope = "global"

    alphas: ArrayLike | None = None
    Cs: ArrayLike | None = None
    _: KW_ONLY
    cv: CV = None
    scoring: Scoring = "pairwise_squared_error"
    pairs: PairsLike = "with_ties"
    n_nodes: int = 100
    activation: ActivationName = "sigmoid"
    n_estimators: int = 1
    random_state: RandomState = None
    feature_map: Any | Sequence[Any] = None

    def _spec(self) -> DrawnSpec:
        values = as_list(self.feature_map, "feature_map")
        told = ("feature_map",) * isinstance(self.feature_map, (list, tuple))
        search = Search(self.cv, self.scoring, told)
        alphas = ALPHAS if self.alphas is None else check_alphas(self.alphas, zero=True)
        Cs = CS if self.Cs is None else check_alphas(self.Cs, "Cs")
        return DrawnSpec.of(self, values, alphas, Cs, search)


def _way_of(model: BaseEstimator, value: Any) -> Chain:
    """Return what a row is: after a scale come the nodes, which are not drawn."""
    way = Chain.of(value)
    if way.then is None:
        own = RandomNodes(model.n_nodes, model.activation)
        if model.activation != "gaussian":  # of which biases must be positive
            own.bias_range = own.weight_range
        way = way._replace(then=own)
    if type(way.then) is not RandomNodes:
        raise ArgumentError(
            "feature_map",
            "must be a scale, such as 'standard', a Fill, RandomNodes, or a Pipeline of these, got "
            f"{verbatim(repr(value))}",
        )
    check_parameters(way.then, "n_nodes", "activation")
    return way


def _folds(cv: Any, data: RankingData) -> Any:
    """Return `cv`; with one query, an int is limited so that every fold has two rows."""
    if isinstance(cv, Integral) and not isinstance(cv, bool) and data.is_single_query:
        return min(cv, max(2, len(data.y) // 2))
    return cv


def _grid(alphas: ArrayLike, Cs: ArrayLike) -> Grid:
    """Return all pairs of an alpha and a C. C changes fastest."""
    a, c = np.asarray(alphas, dtype=np.float64), np.asarray(Cs, dtype=np.float64)
    return Grid(np.repeat(a, len(c)), np.tile(1 / np.sqrt(c), len(a)))
