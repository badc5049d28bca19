"""The models of the command line, and how its options become their settings.

A new model needs one entry in `MODELS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pairgram._support.words import KERNEL_PARAMETERS, OF_DISTANCES
from pairgram.cli.settings import KERNELS, OPTIONS, Settings, given, heeds, parse_grid

if TYPE_CHECKING:
    from pairgram.metrics import Metric


@dataclass(frozen=True)
class Model:
    """One model of the command line.

    Attributes
    ----------
    summary : str
        One line for the help.
    search : callable
        ``search(settings, scoring)`` returns an estimator that chooses its settings in
        ``fit(X, y, qid=..., validation=...)`` as `RankRLSCV` does: with ``predict``, ``save``,
        ``best_score_``, ``scoring_`` and ``cv_results_``.
    takes : frozenset of str
        The fields of `Settings` that the model uses, besides ``n_threads``. Others are refused.
    protocol : mapping of str to sequence of float
        The grids of ``pairgram letor``, by the names of their fields.
    held_out : str
        What ``search`` holds out if there is no validation set.
    kernels : tuple of str
        The kernels that the model accepts. For "rank-..." models the first is the default; other
        models have no default kernel.
    metric : str or None
        The default metric to choose by. None depends on the labels.
    in_memory : bool
        Whether the model needs all rows in memory, so that a table is read as a whole.
    """

    summary: str
    search: Callable[[Settings, Metric | None], Any]
    takes: frozenset[str]
    protocol: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held_out: str = "leave-query-out"
    kernels: tuple[str, ...] = ()
    metric: str | None = None
    in_memory: bool = False

    def with_inputs(self, settings: Settings, sparse: bool) -> Settings:
        """Return the settings with the default inputs of the model, if none are given.

        Models that mix all features in one number may need them scaled, so they try that too.
        `sparse` tells whether zeros must stay zeros.
        """
        kernel = settings.kernel or (self.kernels[0] if "n_components" in self.takes else None)
        activation = settings.activation or (("linear",) if self.kernels else ("sigmoid",))
        has_nodes = kernel is None and "activation" in self.takes
        mixes = set(activation) != {"linear"} if has_nodes else kernel in OF_DISTANCES
        if settings.inputs or not mixes:
            return settings
        return replace(settings, inputs=("none", "maxabs" if sparse else "standard"))


def _inputs(settings: Settings) -> list[Any] | None:
    """Return the inputs to choose from, or None if there are none."""
    return [None if name == "none" else name for name in settings.inputs] or None


def _prior(settings: Settings) -> Any:
    """Return the frozen model of --prior, or None."""
    if settings.prior is None:
        return None
    from sklearn.frozen import FrozenEstimator

    from pairgram.rankers.load import load_model

    try:
        model = load_model(settings.prior)
    except ValueError as error:
        raise ValueError(f"--prior: {error}") from None
    if hasattr(model, "steps"):
        raise ValueError(f"--prior {settings.prior}: found a Pipeline, want a ranker alone")
    return FrozenEstimator(model)


def _auto(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.rankers.auto import AutoRanker

    said: dict[str, Any] = {"budget": settings.budget, "random_state": settings.random_state}
    return AutoRanker(
        scoring=scoring,
        verbose=sys.stderr.isatty(),
        n_threads=settings.n_threads,
        **{name: value for name, value in said.items() if value is not None},
    )


def _rankrls(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.rankers.rank_rls import RankRLSCV

    names = settings.pairs or ("kept", "dropped")
    return RankRLSCV(
        settings.alphas or None,
        pairs=[None if name == "none" else name for name in names],  # type: ignore[misc]
        scope=settings.scope or "query",  # type: ignore[arg-type]
        target=list(settings.targets),  # type: ignore[arg-type]
        scale=settings.scale,
        inputs=_inputs(settings),
        positive=settings.positive,
        prior=_prior(settings),
        weighting=settings.weighting,  # type: ignore[arg-type]
        scoring=scoring,
        n_threads=settings.n_threads,
        **_of_kernel(settings),
    )


def _rls(settings: Settings, scoring: Metric | None) -> Any:
    return _rankrls(replace(settings, pairs=("none",)), scoring)


def _elm_pointwise(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.rankers.elm import PointwiseELMCV

    return PointwiseELMCV(
        settings.Cs or None,
        scoring=scoring,
        inputs=_inputs(settings),
        prior=_prior(settings),
        **_of_elm(settings),
    )


def _elm_pairwise(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.rankers.elm import PairwiseELMCV

    if "none" in settings.pairs:
        raise ValueError("--model elm-pairwise takes no --pairs none; --model elm-pointwise does")
    pairs = list(settings.pairs) or ["kept"]
    return PairwiseELMCV(
        settings.Cs or None,
        pairs=pairs,
        scoring=scoring,
        inputs=_inputs(settings),
        prior=_prior(settings),
        **_of_elm(settings),
    )


def _elmrank(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.rankers.elm_rank import ELMRankCV

    if "none" in settings.pairs or len(settings.pairs) > 1:
        raise ValueError("--model elmrank takes one --pairs, and not none")
    if len(settings.activation) > 1:
        raise ValueError("--model elmrank takes one --activation, not a mix of them")
    said: dict[str, Any] = {
        "scoring": scoring,
        "scope": settings.scope,
        "n_estimators": settings.n_estimators,
        "inputs": _inputs(settings),
    }
    return ELMRankCV(
        settings.alphas or None,
        settings.Cs or None,
        pairs=settings.pairs[0] if settings.pairs else "kept",  # type: ignore[arg-type]
        **{name: value for name, value in said.items() if value is not None},
        **_of_nodes(settings),
    )


def _ranksvm(
    settings: Settings, scoring: Metric | None, feature_map: Sequence[Any] = (None,)
) -> Any:
    from pairgram.rankers.rank_svm import RankSVMCV

    said: dict[str, Any] = {} if settings.tol is None else {"tol": settings.tol}
    return RankSVMCV(
        settings.Cs or None,
        feature_map=list(feature_map),
        inputs=_inputs(settings),
        prior=_prior(settings),
        weighting=settings.weighting,  # type: ignore[arg-type]
        scoring=scoring,
        n_threads=settings.n_threads,
        **said,
    )


def _rank_nystroem(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.features.nystroem import Nystroem

    n_components = None if settings.n_components == 0 else settings.n_components or _COMPONENTS
    named = {"n_components": n_components, "landmarks": settings.landmarks or "uniform"}
    said: dict[str, Any] = {"degree": settings.degree, "coef0": settings.coef0}
    named |= {name: value for name, value in said.items() if value is not None}
    return _ranksvm(settings, scoring, _maps(Nystroem, settings, **named))


def _rank_fourier(settings: Settings, scoring: Metric | None) -> Any:
    from pairgram.features.random_fourier import RandomFourier

    if settings.n_components == 0:
        raise ValueError("--components all is of --model rank-nystroem")
    named = {"n_components": settings.n_components or _COMPONENTS}
    return _ranksvm(settings, scoring, _maps(RandomFourier, settings, **named))


def _maps(kind: Any, settings: Settings, **named: Any) -> list[Any]:
    """Return a feature map for every gamma."""
    named |= {"kernel": settings.kernel or "rbf", "random_state": settings.random_state or 0}
    gammas = settings.gammas if heeds(named["kernel"], "gamma") else None
    return [kind(gamma=gamma, **named) for gamma in gammas or (None,)]


def _of_elm(settings: Settings) -> dict[str, Any]:
    return {**_of_nodes(settings), **_of_kernel(settings)}


def _of_kernel(settings: Settings) -> dict[str, Any]:
    """Return the parameters of a kernel that the options give."""
    said: dict[str, Any] = {
        "kernel": settings.kernel,
        "gamma": list(settings.gammas) if settings.gammas else None,
        "degree": settings.degree,
        "coef0": settings.coef0,
    }
    return {name: value for name, value in said.items() if value is not None}


def _of_nodes(settings: Settings) -> dict[str, Any]:
    """Return the parameters of random nodes that the options give; others keep their defaults."""
    names = ("n_nodes", "weight_range", "bias_range", "n_threads")
    said = {name: getattr(settings, name) for name in names}
    if settings.activation:
        one = len(settings.activation) == 1
        said["activation"] = settings.activation[0] if one else list(settings.activation)
    return {
        "random_state": settings.random_state or 0,
        **{name: value for name, value in said.items() if value is not None},
    }


_NODES = frozenset({"Cs", "n_nodes", "activation", "weight_range", "bias_range", "random_state"})
_KERNEL = frozenset({"kernel", "gammas", "degree", "coef0"})
_ELM = _NODES | _KERNEL | {"inputs", "prior"}
_SVM = frozenset({"Cs", "weighting", "tol", "inputs", "prior"})
_KERNEL_SVM = _SVM | {"kernel", "gammas", "n_components", "random_state"}
_COMPONENTS = 500
_RLS = _KERNEL | {"alphas", "targets", "scale", "weighting", "inputs", "positive", "prior"}
_KERNELS = tuple(KERNEL_PARAMETERS)
_RLS_GRID = {"alphas": parse_grid("2^-15:2^24", "alphas")}  # Pahikkala et al. 2007, §5
_ELM_GRID = {"Cs": parse_grid("2^-30:2^20:2", "Cs")}  # Zong and Huang 2013, §5.2
# Chen et al. 2017, §4.1
_SVM_GRID = {"Cs": parse_grid("2^-12:2^6", "Cs")}
_KERNEL_SVM_GRID = _SVM_GRID | {"gammas": parse_grid("2^-12:2^2", "gammas")}

MODELS: Mapping[str, Model] = {
    "auto": Model(
        "tries linear models of the features and of their quantiles, then Fourier features and "
        "kernels, and keeps the best",
        *(_auto, frozenset({"budget", "random_state"})),
        in_memory=True,
    ),
    "rankrls": Model(
        "linear, or with --kernel, least squares on pairs; tries tied pairs kept and dropped",
        *(_rankrls, _RLS | {"pairs", "scope"}, _RLS_GRID),
        kernels=_KERNELS,
    ),
    "rls": Model(
        "the same on rows (pointwise), without intercept",
        *(_rls, _RLS, _RLS_GRID),
        kernels=_KERNELS,
    ),
    "elm-pairwise": Model(
        "extreme learning machine on pairs: 1000 linear random nodes, or --kernel",
        *(_elm_pairwise, _ELM | {"pairs"}, _ELM_GRID),
        kernels=_KERNELS,
    ),
    "elm-pointwise": Model(
        "the same on rows", *(_elm_pointwise, _ELM, _ELM_GRID), kernels=_KERNELS
    ),
    "elmrank": Model(
        "two regularisers on 100 sigmoid nodes, pairs of all rows or --scope query",
        *(_elmrank, _NODES | {"alphas", "pairs", "scope", "n_estimators", "inputs"}),
        metric="msd",
        in_memory=True,
    ),
    "ranksvm": Model(
        "linear, squared hinge loss on preference pairs",
        *(_ranksvm, _SVM, _SVM_GRID),
    ),
    "rank-nystroem": Model(
        "the same on 500 Nystroem features of a kernel",
        *(_rank_nystroem, _KERNEL_SVM | {"landmarks", "degree", "coef0"}, _KERNEL_SVM_GRID),
        kernels=_KERNELS,
    ),
    "rank-fourier": Model(
        "the same on 500 random Fourier features of a kernel",
        *(_rank_fourier, _KERNEL_SVM, _KERNEL_SVM_GRID),
        kernels=("rbf", "laplacian", "cauchy"),
    ),
}


def default_model(settings: Settings, on_table: bool) -> str:
    """Return the model of ``pairgram train`` without --model: the one that takes the options."""
    others = set(given(settings)) - MODELS["auto"].takes
    return "rankrls" if (others or on_table) and settings.budget is None else "auto"


def require_table(name: str, settings: Settings, has_valid: bool) -> None:
    """Raise a ValueError unless a model with these settings can be fitted to a table."""
    entry = MODELS[name]
    if settings.kernel not in (None, "linear") and "n_components" not in entry.takes:
        raise ValueError(
            f"--kernel {settings.kernel} of --model {name} needs all rows in memory, so it cannot "
            "be fitted to a table: take --model rank-nystroem, which approximates kernels"
        )
    if "tol" in entry.takes and not has_valid:
        raise ValueError(f"--model {name} needs --valid, to choose its settings, for a table")


def get_model(name: str, settings: Settings) -> Model:
    """Return the model of a name.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the names), or if an option is given that the
        model does not take.
    """
    from pairgram._support.checks import check_text

    model = MODELS[check_text("--model", name, MODELS)]
    for setting in given(settings):
        if setting not in model.takes:
            others = ", ".join(other for other, entry in MODELS.items() if setting in entry.takes)
            raise ValueError(f"--model {name} takes no {OPTIONS[setting]}; {others} can")
    if settings.kernel is not None and settings.kernel not in model.kernels:
        known = ", ".join(model.kernels)
        raise ValueError(f"--kernel of --model {name} is one of {known}, got {settings.kernel!r}")
    kernel = settings.kernel
    if kernel is None and "n_components" in model.takes:
        kernel = model.kernels[0]
    for setting in ("gammas", "degree", "coef0"):
        parameter = setting.removesuffix("s")
        if setting in given(settings) and not heeds(kernel, parameter):
            having = ", ".join(k for k in model.kernels if parameter in KERNELS[k])
            raise ValueError(
                f"{OPTIONS[setting]} is of --kernel {having}, but "
                + ("no kernel is given" if kernel is None else f"the kernel is {kernel}")
            )
    return model


def chosen(model: Any) -> dict[str, Any]:
    """Return the settings that a fitted search has chosen, as values for JSON."""
    return _row(model.cv_results_, model.best_index_)


def tried(model: Any) -> list[dict[str, Any]]:
    """Return a row for every combination of settings, with its held-out ``score``."""
    scores = model.cv_results_["mean_test_score"]
    return [
        {**_row(model.cv_results_, row), "score": float(score)} for row, score in enumerate(scores)
    ]


def trials(model: Any) -> list[dict[str, Any]]:
    """Return a row for every model that the automatic choice tried or left out, for JSON."""
    names = [name for name in model.trials_ if name != "expected_seconds"]
    rows = zip(*(model.trials_[name].tolist() for name in names), strict=True)
    return [
        {name: None if value != value else value for name, value in zip(names, row, strict=True)}
        for row in rows
    ]


def _row(results: Mapping[str, Any], row: int) -> dict[str, Any]:
    values = {
        name.removeprefix("param_"): column[row]
        for name, column in results.items()
        if name.startswith("param_")
    }
    if "feature_map" in values:  # gamma is the only setting of a map that options can vary
        feature_map = values.pop("feature_map")
        if feature_map is not None and heeds(feature_map.kernel, "gamma"):
            values["gamma"] = feature_map.gamma_
    return {name: getattr(value, "item", lambda v=value: v)() for name, value in values.items()}
