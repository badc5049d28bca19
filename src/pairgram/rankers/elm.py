"""Extreme learning machines for ranking: least squares on random nodes, or with a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import ArgumentError
from pairgram._support.parameters import ActivationName, check_C
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.features.random_nodes import RandomNodes
from pairgram.features.row_values import Chain
from pairgram.model_selection.judge import as_list
from pairgram.rankers.linear_ranker import LinearRanker, LinearSearch
from pairgram.rankers.ridge import RidgeSpec, ridge_spec, search_spec

if TYPE_CHECKING:
    from pairgram._support.types import CV, BaseEstimator, Estimator, RandomState, Transformer
    from pairgram.metrics.evaluation import Scoring

# This is the grid of Zong and Huang, §5.2.
CS = 2.0 ** np.arange(-30, 21, 2)


def _ways_of(model: BaseEstimator, values: Sequence[Any]) -> list[Chain]:
    """Return what a row is to a machine: after a scale come the nodes, unless a map is given."""
    ways, seed = [Chain.of(one) for one in values], model.random_state
    nodes = RandomNodes(model.n_nodes, model.activation, random_state=seed)
    for name in ("n_nodes", "activation"):
        is_default = getattr(model, name) == getattr(type(model), name)
        if not is_default and all(way.then is not None for way in ways):
            raise ArgumentError(
                name, "has no effect beside this feature_map: leave one of both out"
            )
    for way in ways:
        if seed is not None and getattr(way.then, "random_state", seed) is None:
            text = "has no effect beside this feature_map: give it the seed, as in RandomNodes(50, "
            raise ArgumentError("random_state", f"{text}random_state=0)")
    return [way._replace(then=nodes) if way.then is None else way for way in ways]


def _pairwise(value: PairsLike) -> Pairs:
    pairs = Pairs.of(value)
    if pairs.kind is None:
        raise ValueError("pairs must not be None: PointwiseELM fits the labels of rows")
    return pairs


def _machine(model: BaseEstimator, settings: Pairs) -> RidgeSpec:
    (way,) = _ways_of(model, [model.feature_map])
    return ridge_spec(model, settings, 1 / check_C("C", model.C), way)


def _search(model: BaseEstimator, settings: Sequence[Pairs], told: tuple[str, ...]) -> RidgeSpec:
    given = CS if model.Cs is None else check_alphas(model.Cs, "Cs")
    Cs = np.array([check_C("Cs", C) for C in given.tolist()])
    ways = _ways_of(model, as_list(model.feature_map, "feature_map"))
    told += ("feature_map",) * isinstance(model.feature_map, (list, tuple))
    return search_spec(model, settings, 1 / Cs, ways, told, Cs=Cs)


@dataclass(eq=False, repr=False)
class _Machine(LinearRanker):
    """The parameters of both machines. Only `PairwiseELM` has a parameter `pairs`."""

    C: float = 1.0
    _: KW_ONLY
    pairs: PairsLike | None = field(default=None, init=False)
    n_nodes: int = 1000
    activation: ActivationName = "linear"
    feature_map: Transformer | None = None
    random_state: RandomState = None
    prior: Estimator | ArrayLike | None = None


@dataclass(eq=False, repr=False)
class _MachineSearch(LinearSearch):
    """The parameters of both searches. Only `PairwiseELMCV` has a parameter `pairs`."""

    Cs: ArrayLike | None = None
    _: KW_ONLY
    pairs: PairsLike | Sequence[PairsLike] | None = field(default=None, init=False)
    cv: CV = None
    scoring: Scoring = None
    n_nodes: int = 1000
    activation: ActivationName = "linear"
    feature_map: Any | Sequence[Any] = None
    random_state: RandomState = None
    prior: Estimator | ArrayLike | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class PointwiseELM(_Machine):
    """Extreme learning machine for ranking that fits the labels of rows.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖β‖²``.
    n_nodes : int ≥ 1, default=1000
        Number of nodes. Not to be given beside a `feature_map` that takes their place.
    activation : str, default="linear"
        Activation of the nodes; see `RandomNodes`. Any number of linear nodes costs only as much as
        the columns.
    feature_map : str, transformer, Kernel or None, default=None
        What comes before these nodes: a scale, such as "standard", or `Fill`. Or what takes their
        place: ``RandomNodes(...)`` with other settings, or a `Kernel`. A Pipeline has both. With
        ``Kernel("linear")`` the model is linear in the columns.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of the random nodes.
    prior : array-like of shape (n_coefficients,), fitted model or None, default=None
        What the fit starts from; see `RankRLS`. Weights belong to the nodes, so they need an int as
        `random_state`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_coefficients,), float64
        The output weights β of the nodes, the weights of the columns (``Kernel("linear")``), or the
        dual coefficients of the support rows.
    feature_map_ : RandomNodes, Kernel, Pipeline that ends in them, or None
        The map whose outputs `coef_` multiplies: scores are ``feature_map_.transform(X) @ coef_``.
    form_ : {"primal", "dual"}
        The form that was solved: "primal" is a system with one unknown per node or input, "dual"
        one with one unknown per row. Both give the same scores. The smaller system is solved, but
        the dual one for kernels other than "linear".
    n_features_in_, feature_names_in_, uses_qid_, prior_ :
        As in `RankRLS`.

    See Also
    --------
    PointwiseELMCV : Chooses C by held-out queries or a validation set.

    Notes
    -----
    Minimises ``‖β‖² + C Σ_i v_i (y_i − h(x_i)ᵀβ)²`` with the sample weights v. In the primal form
    ``β = (I/C + HᵀVH)⁻¹ HᵀVy``. There is no intercept besides the biases of the nodes.

    Nodes and kernels need features of similar size; scale them to [0, 1], for instance. L nodes
    cost n · L² + L³ flops; for linear nodes L is at most the number of inputs d. The dual form of a
    kernel costs n² · d + n³ flops and n² memory.

    References
    ----------
    Zong, Huang. Learning to rank with extreme learning machine. Neural Processing Letters, 2013.
    Eq. 4 and 9.

    Examples
    --------
    >>> from pairgram import PointwiseELM, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = PointwiseELM(C=2.0**-10, random_state=0).fit(X, y, qid=qid)
    >>> model.coef_.shape, model.form_
    ((1000,), 'primal')
    """

    _file_kind = "PointwiseELM"

    def _spec(self) -> RidgeSpec:
        return _machine(self, Pairs(None))


@dataclass(eq=False, repr=False, kw_only=True)
class PairwiseELM(_Machine):
    """Extreme learning machine for ranking that fits differences of labels within queries.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖β‖²``.
    pairs : Pairs, str or callable, default="with_ties"
        What is compared, as in `RankRLS`, but not None. The paper takes those with ties.
    n_nodes, activation, feature_map, random_state, prior :
        As in `PointwiseELM`.

    Attributes
    ----------
    coef_, feature_map_, form_, n_features_in_, feature_names_in_, \
uses_qid_, prior_ :
        As in `PointwiseELM`.

    See Also
    --------
    PairwiseELMCV : Chooses C by held-out queries or a validation set.

    Notes
    -----
    Minimises ``‖β‖² + C · ½ Σ_ij W_ij ((y_i − y_j) − (h(x_i) − h(x_j))ᵀβ)²`` over the ordered pairs
    within queries, where ``W_ij = v_i v_j ω(y_i, y_j)``. The solution is
    ``β = (I/C + HᵀLH)⁻¹ HᵀLy`` in the primal form, and ``Rᵀ (I/C + R K Rᵀ)⁻¹ R y`` with
    ``L = RᵀR`` in the dual form. This is `RankRLS` with ``alpha = 1/C`` on the nodes. Scale the
    features, as for `PointwiseELM`.

    References
    ----------
    Zong, Huang. Learning to rank with extreme learning machine. Neural Processing Letters, 2013.
    Eq. 10-16.

    Examples
    --------
    >>> from pairgram import PairwiseELM, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = PairwiseELM(C=2.0**-10, activation="sigmoid", random_state=0).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    pairs: PairsLike = "with_ties"
    _file_kind = "PairwiseELM"

    def _spec(self) -> RidgeSpec:
        return _machine(self, _pairwise(self.pairs))


@dataclass(eq=False, repr=False, kw_only=True)
class PointwiseELMCV(_MachineSearch):
    """PointwiseELM that chooses C by held-out scores.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        The values of C to choose from. None stands for ``2^-30, 2^-28, …, 2^20``, as in the paper.
    cv, scoring :
        As in `RankRLSCV`. By default every query is held out in turn, or every row of a single
        query, and the scores are exact.
    feature_map : as in `PointwiseELM`, or a list of such to choose from, default=None
    n_nodes, activation, random_state, prior :
        As in `PointwiseELM`.

    Attributes
    ----------
    C_ : float
        The chosen C. If several are equally good, it is the smallest.
    best_score_ : float
        Mean held-out score of the chosen settings. If `scoring` is a loss, such as
        "pairwise_squared_error", this is the loss itself.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C, in the caller's order. The default ascends.
    scores_ : ndarray of shape (n_Cs,)
        Mean held-out scores along `Cs_`.
    coef_path_ : ndarray of shape (n_Cs, n_coefficients)
        Coefficients along `Cs_`.
    cv_results_ : dict
        A row for every combination, in the columns that `RankRLSCV` names, with ``param_C`` in
        place of alpha.
    scoring_ : Metric
        The metric that judged the held-out scores.
    held_out_, per_query_ :
        As in `RankRLSCV`.
    coef_, feature_map_, form_, n_features_in_, feature_names_in_, \
uses_qid_, prior_ :
        As in `PointwiseELM`.

    Notes
    -----
    All C come from one decomposition, and so do the leave-query-out scores: see `RankRLSCV`.

    References
    ----------
    Zong, Huang 2013, §5.2 (grid).

    Examples
    --------
    >>> from pairgram import PointwiseELMCV, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> PointwiseELMCV(random_state=0).fit(X, y, qid=qid).scores_.shape
    (26,)
    """

    _file_kind = "PointwiseELM"

    def _spec(self) -> RidgeSpec:
        return _search(self, [Pairs(None)], ())


@dataclass(eq=False, repr=False, kw_only=True)
class PairwiseELMCV(_MachineSearch):
    """PairwiseELM that chooses C, and the pairs on request, by held-out scores.

    Parameters
    ----------
    Cs, cv, scoring :
        As in `PointwiseELMCV`.
    pairs : a value as in `PairwiseELM`, or a list of values to choose from, default="with_ties"
    feature_map : as in `PointwiseELM`, or a list of such to choose from, default=None
    n_nodes, activation, random_state, prior :
        As in `PointwiseELM`.

    Attributes
    ----------
    pairs_ : Pairs, str or callable
        The chosen pairs. `cv_results_` has the additional column ``param_pairs``.
    C_, best_score_, best_index_, Cs_, scores_, coef_path_, cv_results_, scoring_, coef_, \
held_out_, per_query_, feature_map_, form_, n_features_in_, \
feature_names_in_, uses_qid_, prior_ :
        As in `PointwiseELMCV`.

    Notes
    -----
    All C come from one decomposition, and so do the leave-query-out scores: see `RankRLSCV`.

    References
    ----------
    Zong, Huang 2013, §5.2 (grid).

    Examples
    --------
    >>> from pairgram import PairwiseELMCV, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> pairs = ["with_ties", "without_ties"]
    >>> model = PairwiseELMCV(pairs=pairs, random_state=0).fit(X, y, qid=qid)
    >>> model.cv_results_["param_C"].shape
    (52,)
    """

    pairs: PairsLike | Sequence[PairsLike] = "with_ties"
    _file_kind = "PairwiseELM"

    def _spec(self) -> RidgeSpec:
        settings = [_pairwise(pairs) for pairs in as_list(self.pairs, "pairs")]
        return _search(self, settings, ("pairs",))
