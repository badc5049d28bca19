"""The models of the command line, and how its options become their settings.

A new model needs one entry in `MODELS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairgram
from pairgram._support.parameters import (
    FOURIER_KERNEL,
    KERNEL_PARAMETERS,
    OF_DISTANCES,
    OF_MODELS,
    check_text,
    option_of,
)
from pairgram.cli.options import Settings, heeds, parse_grid, sharing

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator
    from pairgram.metrics import Metric


@dataclass(frozen=True)
class Model:
    """One model of the command line.

    Attributes
    ----------
    summary : str
        One line for the help.
    kind : str
        The name of the estimator that chooses its settings.
    takes : set of str
        The settings that the model uses. Others are refused.
    protocol : mapping of str to list of float
        The grids of ``pairgram letor``, by the names of the settings.
    kernels : tuple of str
        The kernels that the model accepts.
    metric : str or None
        The default metric to choose by. None depends on the labels.
    in_memory : bool
        Whether the model needs all rows in memory, so that a table is read as a whole.
    defaults : mapping
        The settings that are not the estimator's, if no option gives them.
    adapt : callable
        What makes arguments of the estimator of the settings, or refuses them.
    """

    summary: str
    kind: str
    takes: AbstractSet[str]
    protocol: Mapping[str, Any] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    metric: str | None = None
    in_memory: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    adapt: Callable[[Settings], Settings] = dict

    def with_scales(self, settings: Settings, sparse: bool) -> Settings:
        """Return the settings with the default scales of the model, if none are given.

        Nonlinear nodes and kernels of distances may need scaled features, so they try these too.
        `sparse` tells whether zeros must stay zeros.
        """
        kernel = settings.get("kernel", self.defaults.get("kernel"))
        mixes = kernel in OF_DISTANCES
        if kernel is None and "activation" in self.takes:
            mixes = settings.get("activation", "linear" if self.kernels else "sigmoid") != "linear"
        if "inputs" in settings or not mixes:
            return settings
        return {**settings, "inputs": [None, "maxabs" if sparse else "standard"]}

    def search(self, settings: Settings, scoring: Metric | str | None) -> Any:
        """Return an estimator that chooses its settings in ``fit``.

        It does so as `RankRLSCV` does: with ``validation``, ``predict``, ``save``, ``best_score_``,
        ``scoring_`` and ``cv_results_``.
        """
        given = {**self.defaults, **settings}
        targets, weighting = given.pop("target", ["label"]), given.pop("weighting", "pairs")
        if "pairs" in given:
            given["pairs"] = [
                pairgram.Pairs(kind, weighting=weighting, target=target)
                for kind in given["pairs"]
                for target in targets
            ]
        given = self.adapt(given)
        if "prior" in given:
            given["prior"] = _prior(given["prior"])
        if {"inputs", "feature_map"} & given.keys():
            from pairgram.features.row_values import WORDS, Chain

            kinds, maps = given.pop("inputs", [None]), given.pop("feature_map", [None])
            ways = [Chain(None, WORDS.get(kind), one) for kind in kinds for one in maps]
            given["feature_map"] = [way.short for way in ways]
        return getattr(pairgram, self.kind)(scoring=scoring, **given)


def filling(search: BaseEstimator, missing: str) -> None:
    """Let a search fill gaps, as an option says."""
    from pairgram.features.row_values import Chain, Fill

    fill = Fill(0.0 if missing == "zero" else missing)
    given = search.feature_map
    if isinstance(given, list):
        search.feature_map = [Chain.of(one)._replace(fill=fill).value for one in given]
    else:
        search.feature_map = fill


def fills(search: BaseEstimator) -> bool:
    """Tell whether a search fills gaps."""
    return bool(search.__sklearn_tags__().input_tags.allow_nan)


def _prior(path: Path) -> Any:
    """Return the frozen model of --prior."""
    from sklearn.frozen import FrozenEstimator

    try:
        model = pairgram.load_model(path)
    except ValueError as error:
        raise ValueError(f"--prior: {error}") from None
    if hasattr(model, "steps"):
        raise ValueError(f"--prior {path}: found a Pipeline, want a ranker alone")
    return FrozenEstimator(model)


def _for_elmrank(given: Settings) -> Settings:
    if len(given["pairs"]) > 1:
        raise ValueError("--model elmrank takes one --pairs")
    return {**given, "pairs": replace(given["pairs"][0], scope="global")}


def _for_svm(given: Settings) -> Settings:
    return {**given, "pairs": given["pairs"][0]}


def _on_maps(given: Settings, kind: str = "Kernel", names: tuple[str, ...] = ()) -> Settings:
    """Return settings with feature maps, one for every gamma, in place of those of a kernel."""
    if "kernel" not in given:
        return given
    of_map = {name: given[name] for name in ("kernel", "gamma", *names) if name in given}
    others = {name: given[name] for name in given if name not in of_map}
    gammas = of_map.pop("gamma", [None])
    maps = [getattr(pairgram, kind)(gamma=gamma, **of_map) for gamma in gammas]
    return others | {"feature_map": maps}


def _for_svm_on(kind: str, given: Settings) -> Settings:
    return _for_svm(_on_maps(given, kind, ("n_components", "random_state")))


_NODES = {"Cs", "n_nodes", "activation", "random_state"}
_KERNEL = {"kernel", "gamma"}
_ELM = _NODES | _KERNEL | {"inputs", "prior"}
_SVM = {"Cs", "weighting", "inputs", "prior"}
_MAP = _KERNEL | {"n_components", "random_state"}
_KERNEL_SVM = _SVM | _MAP
_RLS = _KERNEL | {"alphas", "target", "scale", "weighting", "inputs", "prior"}
_OF_SVM = {"pairs": ["without_ties"]}
_OF_MAPS = {"n_components": 500, "kernel": "rbf", "random_state": 0, **_OF_SVM}
_KERNELS = tuple(KERNEL_PARAMETERS)
_RLS_GRID = {"alphas": parse_grid("2^-15:2^24", "alphas")}  # Pahikkala et al. 2007, §5
_ELM_GRID = {"Cs": parse_grid("2^-30:2^20:2", "Cs")}  # Zong and Huang 2013, §5.2
# Chen et al. 2017, §4.1
_SVM_GRID = {"Cs": parse_grid("2^-12:2^6", "Cs")}
_KERNEL_SVM_GRID = _SVM_GRID | {"gamma": parse_grid("2^-12:2^2", "gamma")}

_MODELS = {
    "auto": Model(
        "tries linear models of the features and of their quantiles, then Fourier features and "
        "kernels, and keeps the best, or the mean of the linear ones that are equally good",
        *("AutoRanker", {"time_budget", "random_state"}),
        in_memory=True,
        adapt=lambda given: {"verbose": sys.stderr.isatty(), **given},
    ),
    "rankrls": Model(
        "linear, or with --kernel, least squares on pairs; tries with and without tied pairs",
        *("RankRLSCV", _RLS | {"pairs"}, _RLS_GRID),
        kernels=_KERNELS,
        defaults={"pairs": ["with_ties", "without_ties"]},
        adapt=_on_maps,
    ),
    "rls": Model(
        "the same on rows (pointwise), without intercept",
        *("RankRLSCV", _RLS, _RLS_GRID),
        kernels=_KERNELS,
        defaults={"pairs": [None]},
        adapt=_on_maps,
    ),
    "elm-pairwise": Model(
        "extreme learning machine on pairs: 1000 linear random nodes, or --kernel",
        *("PairwiseELMCV", _ELM | {"pairs"}, _ELM_GRID),
        kernels=_KERNELS,
        defaults={"pairs": ["with_ties"], "random_state": 0},
        adapt=_on_maps,
    ),
    "elm-pointwise": Model(
        "the same on rows",
        *("PointwiseELMCV", _ELM, _ELM_GRID),
        kernels=_KERNELS,
        defaults={"random_state": 0},
        adapt=_on_maps,
    ),
    "elmrank": Model(
        "two regularisers on 100 sigmoid nodes, pairs of all rows",
        *("ELMRankCV", _NODES | {"alphas", "pairs", "inputs"}),
        metric="pairwise_squared_error",
        in_memory=True,
        defaults={"pairs": ["with_ties"], "random_state": 0},
        adapt=_for_elmrank,
    ),
    "ranksvm": Model(
        "linear, squared hinge loss on preference pairs",
        *("RankSVMCV", _SVM, _SVM_GRID),
        defaults=_OF_SVM,
        adapt=_for_svm,
    ),
    "rank-nystroem": Model(
        "the same on 500 Nystroem features of a kernel",
        *("RankSVMCV", _KERNEL_SVM, _KERNEL_SVM_GRID),
        kernels=_KERNELS,
        defaults=_OF_MAPS,
        adapt=partial(_for_svm_on, "Nystroem"),
    ),
    "rank-fourier": Model(
        "the same on 500 random Fourier features of a kernel",
        *("RankSVMCV", _KERNEL_SVM, _KERNEL_SVM_GRID),
        kernels=FOURIER_KERNEL.names,
        defaults=_OF_MAPS,
        adapt=partial(_for_svm_on, "RandomFourier"),
    ),
}
MODELS = {name: model for name, model in _MODELS.items() if model.kind in pairgram.__all__}
FIRST, *_ = MODELS


def default_model(settings: Settings, on_table: bool) -> str:
    """Return the model of ``pairgram train`` without --model: the first that takes the options."""
    others = settings.keys() - MODELS[FIRST].takes
    return "rankrls" if (others or on_table) and "time_budget" not in settings else FIRST


def require_table(name: str, settings: Settings) -> None:
    """Raise a ValueError unless a model with these settings can be fitted to a table."""
    kernel = settings.get("kernel", "linear")
    if kernel != "linear" and "n_components" not in MODELS[name].takes:
        raise ValueError(
            f"--kernel {kernel} of --model {name} needs all rows in memory, so it cannot "
            "be fitted to a table: take --model rank-nystroem, which approximates kernels"
        )


def get_model(name: str, settings: Settings) -> Model:
    """Return the model of a name.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the names), or if an option is given that the
        model does not take.
    """
    model = MODELS[check_text("--model", name, MODELS)]
    for setting in settings:
        if setting not in model.takes:
            others = ", ".join(other for other, entry in MODELS.items() if setting in entry.takes)
            raise ValueError(f"--model {name} takes no {option_of(setting)}; {others} can")
    kernel = settings.get("kernel", model.defaults.get("kernel"))
    if kernel is not None:
        check_text("--kernel", kernel, model.kernels)
    if "gamma" in settings and not heeds(kernel, "gamma"):
        raise ValueError(f"--gamma is for --kernel rbf, laplacian and others, got {kernel!r}")
    return model


def _settings(**given: Any) -> Settings:
    """Return the values of the options of models; raise a ValueError if two do not go together."""
    for name in ("n_nodes", "activation", "random_state"):
        if "kernel" in given and name in given:
            raise ValueError(f"give --kernel or {option_of(name)}, not both: nodes have no kernel")
    return given


def _model_option(default: str = "") -> Any:
    summaries = "; ".join(f"{name}: {model.summary}" for name, model in MODELS.items())
    return typer.Option(
        *("--model", "-m"), metavar="NAME", help=f"{summaries}.{default}", show_default=not default
    )


ModelName = Annotated[str, _model_option()]
ModelOrAuto = Annotated[
    str | None,
    _model_option(
        f" [default: {FIRST}; rankrls for tables, or if options are given that this does not take]"
    ),
]
with_settings = sharing("settings", OF_MODELS, _settings)


def chosen(model: BaseEstimator) -> dict[str, Any]:
    """Return the settings that a fitted search has chosen, as values for JSON."""
    from pairgram.features.row_values import Chain

    values = {
        name.removeprefix("param_"): column[model.best_index_]
        for name, column in model.cv_results_.items()
        if name.startswith("param_")
    }
    if "feature_map" in values:  # options can vary its scale, and gamma of a map
        chain = Chain.of(values.pop("feature_map"))
        if any(Chain.of(one).scaling for one in model.cv_results_["param_feature_map"]):
            values["feature_map"] = chain.kind
        if heeds(getattr(chain.then, "kernel", None), "gamma"):
            values["gamma"] = chain.then.gamma_
    return {name: getattr(value, "item", lambda v=value: v)() for name, value in values.items()}


def trials(model: BaseEstimator) -> list[dict[str, Any]]:
    """Return a row for every model that the automatic choice tried or left out, for JSON."""
    names = [name for name in model.trials_ if name != "expected_seconds"]
    rows = zip(*(model.trials_[name].tolist() for name in names), strict=True)
    return [
        {name: None if value != value else value for name, value in zip(names, row, strict=True)}
        for row in rows
    ]
