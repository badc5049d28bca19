"""Extreme learning machines for ranking: least squares on random nodes, or with a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import Vector
from pairgram._support.parameters import Form, InputsName, check_C
from pairgram.data.pairs import Pairs, PairSettings
from pairgram.features.kernels import Kernel
from pairgram.features.random_nodes import Activations, RandomNodes
from pairgram.metrics import Metric
from pairgram.model_selection.judge import as_list
from pairgram.rankers.ridge import RidgeRanker, RidgeSearch

# This is the grid of Zong and Huang, §5.2.
CS = 2.0 ** np.arange(-30, 21, 2)


class _ELM:
    """What the machines share: nodes or a kernel, and pairs within queries of weight 1."""

    pairs: Any
    n_nodes: int
    activation: Any
    weight_range: tuple[float, float]
    bias_range: tuple[float, float]
    random_state: Any
    _pairwise = True
    _file_kind = "PairwiseELM"

    def _settings(self, pairs: Any) -> PairSettings:
        if pairs is None and self._pairwise:
            raise ValueError("pairs must not be None: PointwiseELM fits the labels of rows")
        return PairSettings(pairs)

    def _shared_parameters(self) -> dict[str, Any]:
        """Return the parameters of the machine, except C, as a model file holds them."""
        machine = PairwiseELM if self._pairwise else PointwiseELM
        names = set(machine._get_param_names()) - {"C"}
        parameters = {name: getattr(self, name) for name in names}
        if not isinstance(self.random_state, Integral):
            parameters["random_state"] = None
        for name in ("weight_range", "bias_range"):
            parameters[name] = [float(bound) for bound in parameters[name]]
        if isinstance(self.activation, tuple):
            parameters["activation"] = list(self.activation)
        return parameters

    def _features(self) -> RandomNodes:
        return RandomNodes(
            self.n_nodes,
            self.activation,
            weight_range=self.weight_range,
            bias_range=self.bias_range,
            random_state=self.random_state,
        )


class _Machine(_ELM, RidgeRanker):
    C: float

    def _ridge(self) -> tuple[PairSettings, float, bool]:
        return self._settings(self.pairs), 1 / check_C("C", self.C), False

    def _parameters_to_save(self) -> dict[str, Any]:
        return self._shared_parameters() | {"C": self.C}


class PointwiseELM(_Machine):
    """Extreme learning machine for ranking that fits the labels of rows.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖β‖²``.
    n_nodes : int ≥ 1, default=1000
        Number of nodes. It has no effect with a kernel.
    activation : str, callable, or sequence of these, default="linear"
        Activation of the nodes; see `RandomNodes`. Any number of linear nodes costs only as much as
        the inputs.
    weight_range, bias_range : (float, float), default=(-1, 1) and (0, 1)
        The ranges from which weights and biases of the nodes are drawn uniformly.
    kernel : {"linear", "rbf", "polynomial", "laplacian", "tanimoto", "minmax", "precomputed"}, \
callable or None, default=None
        A kernel in place of nodes; see `kernel_matrix`. With "linear" the model is linear in the
        inputs. With "precomputed", X holds the kernel values between the rows and the training
        rows.
    gamma, degree, coef0 : float or None, int, float, default=None, 3, 1.0
        Parameters of the kernel.
    form : {"auto", "primal", "dual"}, default="auto"
        "primal" solves a system with one unknown per node or input, "dual" one with one unknown per
        row. Both give the same scores. "auto" takes the smaller system. Kernels other than "linear"
        have only the dual form.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of the random nodes.
    prior : array-like of shape (n_coefficients,), fitted model or None, default=None
        What the fit starts from; see `RankRLS`. Weights belong to the nodes, so they need an int as
        `random_state`.
    inputs : str or None, default=None
        As in `RankRLS`; they act before the nodes or the kernel.
    n_threads : int or None, default=None
        As in `RankRLS`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_coefficients,), float64
        The output weights β of the nodes, the weights of the inputs (``kernel="linear"``), or the
        dual coefficients of the support rows.
    inputs_ : object or None
        As in `RankRLS`.
    feature_map_ : RandomNodes, KernelMap or None
        The map whose outputs `coef_` multiplies: scores are ``feature_map_.transform(X) @ coef_``,
        with ``inputs_.transform(X)`` in place of X if there are `inputs`.
    form_ : {"primal", "dual"}
        The form that was solved.
    missing_, n_features_in_, feature_names_in_, uses_qid_, prior_, uses_offset_ :
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

    pairs = None
    _pairwise = False
    _file_kind = "PointwiseELM"

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_nodes: int = 1000,
        activation: Activations = "linear",
        weight_range: tuple[float, float] = (-1.0, 1.0),
        bias_range: tuple[float, float] = (0.0, 1.0),
        kernel: Kernel | None = None,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        random_state: Any = None,
        prior: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.random_state = random_state
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads


class PairwiseELM(_Machine):
    """Extreme learning machine for ranking that fits differences of labels within queries.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the errors relative to ``‖β‖²``.
    pairs : {"kept", "dropped", "gain", "absdiff"} or callable, default="kept"
        Weights of pairs: tied pairs are kept (as in the paper) or dropped, or pairs are weighted;
        see `RankRLS`.
    n_nodes, activation, weight_range, bias_range, kernel, gamma, degree, coef0, form, \
random_state, prior, inputs, n_threads :
        As in `PointwiseELM`.

    Attributes
    ----------
    coef_, inputs_, feature_map_, form_, missing_, n_features_in_, feature_names_in_, uses_qid_, \
prior_, uses_offset_ :
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

    def __init__(
        self,
        C: float = 1.0,
        *,
        pairs: Pairs = "kept",
        n_nodes: int = 1000,
        activation: Activations = "linear",
        weight_range: tuple[float, float] = (-1.0, 1.0),
        bias_range: tuple[float, float] = (0.0, 1.0),
        kernel: Kernel | None = None,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        random_state: Any = None,
        prior: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.pairs = pairs
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.random_state = random_state
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads


class _Search(_ELM, RidgeSearch):
    Cs: ArrayLike | None

    _too_weak = "C is so large"

    def _grid(self) -> tuple[list[tuple[PairSettings, bool]], Vector | None]:
        combinations = [(self._settings(pairs), False) for pairs in as_list(self.pairs, "pairs")]
        return combinations, 1 / self._checked_Cs()

    def _checked_Cs(self) -> Vector:
        """Return the Cs, in the caller's order."""
        Cs = CS if self.Cs is None else check_alphas(self.Cs, "Cs")
        return np.array([check_C("Cs", C) for C in Cs.tolist()])

    def _chosen(self, candidates: Any, metric: Metric, given: Vector | None) -> dict[str, Any]:
        """Return the attributes of the best candidate, in terms of C in place of alpha."""
        fitted = super()._chosen(candidates, metric, given)
        Cs = self._checked_Cs()
        fitted["Cs_"] = Cs
        fitted["C_"] = float(Cs[np.flatnonzero(fitted["alphas_"] == fitted["alpha_"])[0]])
        absent = ["alpha", "target", "scale", *(["pairs"] if self.pairs is None else [])]
        table = fitted["cv_results_"]
        every_C = np.tile(Cs, len(candidates))
        fitted["cv_results_"] = {
            "params": [
                {"C": C} | {name: row[name] for name in row if name not in absent}
                for C, row in zip(every_C.tolist(), table["params"], strict=True)
            ],
            "param_C": every_C,
        }
        columns = {f"param_{name}" for name in absent} | {"params"}
        fitted["cv_results_"] |= {name: table[name] for name in table if name not in columns}
        for name in ("alphas_", *(f"{name}_" for name in absent)):
            del fitted[name]
        return fitted

    def _parameters_to_save(self) -> dict[str, Any]:
        """Return the parameters of the chosen machine, which is what a model file holds."""
        chosen = {"C": self.C_, "gamma": self.gamma_}
        chosen |= {} if self.pairs is None else {"pairs": self.pairs_}
        return self._shared_parameters() | chosen


class PointwiseELMCV(_Search):
    """PointwiseELM that chooses C by held-out scores.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        The values of C to choose from. None stands for ``2^-30, 2^-28, …, 2^20``, as in the paper.
    cv, scoring :
        As in `RankRLSCV`. By default every query is held out in turn, or every row of a single
        query, and the scores are exact.
    gamma : float > 0 or None, or a list of such to choose from, default=None
        Parameter of the kernel. None stands for ``1 / n_features``.
    inputs : a value as in `RankRLS`, or a list of values to choose from, default=None
    n_nodes, activation, weight_range, bias_range, kernel, degree, coef0, form, random_state, \
prior, n_threads :
        As in `PointwiseELM`.
    store_held_out : bool, default=False
        As in `RankRLSCV`.

    Attributes
    ----------
    C_ : float
        The chosen C. If several are equally good, it is the smallest.
    gamma_ : float or None
        The chosen gamma; None unless the kernel has a gamma.
    best_score_ : float
        Mean held-out score of the chosen settings. If `scoring` is a loss, such as "msd", this is
        the loss itself.
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
        place of alpha, and with ``param_gamma`` if the kernel has a gamma and
        ``param_inputs`` if `inputs` is not None.
    scoring_ : Metric
        The metric that judged the held-out scores.
    held_out_, per_query_ :
        As in `RankRLSCV`.
    coef_, inputs_, feature_map_, form_, missing_, n_features_in_, feature_names_in_, uses_qid_, \
prior_, uses_offset_ :
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

    pairs = None
    _pairwise = False
    _file_kind = "PointwiseELM"

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        cv: Any = None,
        scoring: str | Metric | None = None,
        n_nodes: int = 1000,
        activation: Activations = "linear",
        weight_range: tuple[float, float] = (-1.0, 1.0),
        bias_range: tuple[float, float] = (0.0, 1.0),
        kernel: Kernel | None = None,
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        random_state: Any = None,
        store_held_out: bool = False,
        prior: Any = None,
        inputs: InputsName | Sequence[InputsName | None] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.random_state = random_state
        self.store_held_out = store_held_out
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads


class PairwiseELMCV(_Search):
    """PairwiseELM that chooses C, and the pairs on request, by held-out scores.

    Parameters
    ----------
    Cs, cv, scoring, store_held_out :
        As in `PointwiseELMCV`.
    pairs : a value as in `PairwiseELM`, or a list of values to choose from, default="kept"
    gamma, inputs : as in `PointwiseELMCV`
    n_nodes, activation, weight_range, bias_range, kernel, degree, coef0, form, random_state, \
prior, n_threads :
        As in `PointwiseELM`.

    Attributes
    ----------
    pairs_ : str or callable
        The chosen pairs. `cv_results_` has the additional column ``param_pairs``.
    C_, gamma_, best_score_, best_index_, Cs_, scores_, coef_path_, cv_results_, scoring_, coef_, \
held_out_, per_query_, inputs_, feature_map_, form_, missing_, n_features_in_, feature_names_in_, \
uses_qid_, prior_, uses_offset_ :
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
    >>> model = PairwiseELMCV(pairs=["kept", "dropped"], random_state=0).fit(X, y, qid=qid)
    >>> model.cv_results_["param_C"].shape
    (52,)
    """

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        pairs: Any = "kept",
        cv: Any = None,
        scoring: str | Metric | None = None,
        n_nodes: int = 1000,
        activation: Activations = "linear",
        weight_range: tuple[float, float] = (-1.0, 1.0),
        bias_range: tuple[float, float] = (0.0, 1.0),
        kernel: Kernel | None = None,
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        random_state: Any = None,
        store_held_out: bool = False,
        prior: Any = None,
        inputs: InputsName | Sequence[InputsName | None] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.Cs = Cs
        self.pairs = pairs
        self.cv = cv
        self.scoring = scoring
        self.n_nodes = n_nodes
        self.activation = activation
        self.weight_range = weight_range
        self.bias_range = bias_range
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.random_state = random_state
        self.store_held_out = store_held_out
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads
