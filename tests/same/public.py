"""The public names of the package, also where the installed version has others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import pairgram
from forms import in_form

# What later versions call otherwise: the name here -> the name in the older version. It is the name
# of a function, class, parameter, attribute or array of a file, or "parameter=word" for a word of a
# parameter.
RENAMED: dict[str, str] = {"Kernel": "KernelMap"}


class Public:
    """A public object whose names, parameters and words are those of RENAMED's left side."""

    def __init__(self, it: Any) -> None:
        self._it = it

    def __getattr__(self, name: str) -> Any:
        found = attribute(self._it, name)
        return Public(found) if callable(found) or isinstance(found, ModuleType) else found

    def __call__(self, *positional: Any, **named: Any) -> Any:
        form = named.pop("form", "smaller") if "form" not in _parameters(self._it) else "smaller"
        return in_form(form, self._it(*positional, **_in_its_words(self._it, named)))


def attribute(it: Any, name: str, *default: Any) -> Any:
    """Return an attribute by its name or, where it has none, by its older name."""
    if name in RENAMED and not hasattr(it, name):
        name = RENAMED[name]
    return getattr(it, name, *default)


def in_later_words(text: str) -> str:
    """Return a text with the names and words of later versions in place of the older ones.

    It also changes words that have another meaning in the text, but so it does in any version.
    """
    later = {old.split("=")[-1]: new.split("=")[-1] for new, old in RENAMED.items()}
    return re.sub(r"\w+", lambda word: later.get(word[0], word[0]), text)


def _in_its_words(function: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
    if "store_held_out" in _parameters(function):  # of 0.3; later versions keep what they can
        whole = named.get("scoring") != "evidence" and named.get("cv") != "leave-pair-out"
        named = {"store_held_out": whole, **named}
    if hasattr(pairgram, "Pairs") and "pairs" in _parameters(function):
        named = _of_pairs(function, dict(named))
    if "constraint" in _parameters(function):  # 0.3 has three parameters in place of one
        named = _constrained(named)
    if {"feature_map", "inputs"} & {*_parameters(function)} == {"feature_map"}:  # later than 0.3
        named = _of_rows(_of_kernel(function, dict(named)))
    return {_parameter(function, k): _word(k, v) for k, v in named.items()} if RENAMED else named


def _of_kernel(function: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with `Kernel`, or nodes, in place of the words of 0.3."""
    of_nodes = {
        "n_nodes",
        "activation",
        "weight_range",
        "bias_range",
        "random_state",
    } & named.keys()
    if of_nodes - set(_parameters(function)):
        own = {word: named.pop(word) for word in of_nodes}
        draws = "n_estimators" in _parameters(function)
        named["feature_map"] = _drawn(own, named) if draws else pairgram.RandomNodes(**own)
    told = {word: named.pop(word) for word in ("gamma", "degree", "coef0") if word in named}
    kernel = named.pop("kernel", None)
    if kernel is not None:
        gammas = told.pop("gamma", None)
        listed = gammas if isinstance(gammas, list) else [gammas]
        kernels = [pairgram.Kernel(kernel, gamma=gamma, **told) for gamma in listed]
        named["feature_map"] = kernels if isinstance(gammas, list) else kernels[0]
    return named


def _drawn(own: dict[str, Any], named: dict[str, Any]) -> Any:
    """Return the nodes of ELMRank, one for each range of weights to choose from."""
    named["random_state"] = own.pop("random_state", None)
    own = {"n_nodes": 100, **own}
    bounds, biases = own.pop("weight_range", (-1.0, 1.0)), own.pop("bias_range", None)
    maps = [
        pairgram.RandomNodes(**own, weight_range=one, bias_range=biases or one)
        for one in (bounds if isinstance(bounds, list) else [bounds])
    ]
    return maps if isinstance(bounds, list) else maps[0]


def _of_rows(named: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with one value of `feature_map` in place of three of 0.3."""
    if not {"inputs", "missing"} & named.keys():
        return named
    from pairgram.features.row_values import WORDS, Chain

    kinds, missing = named.pop("inputs", None), named.pop("missing", None)
    maps = named.pop("feature_map", None)
    fill = None
    if missing is not None:
        fill = pairgram.Fill(0.0 if isinstance(missing, str) and missing == "zero" else missing)
    chains = [
        Chain(fill, None if kind is None else WORDS[kind], one)
        for kind in (kinds if isinstance(kinds, list) else [kinds])
        for one in (maps if isinstance(maps, list) else [maps])
    ]
    several = isinstance(kinds, list) or isinstance(maps, list)
    values = [chain.short for chain in chains]
    return named | {"feature_map": values if several else values[0]}


def scale_of(model: Any) -> str | None:
    """Return the word of the scale of a fitted model, or None."""
    if hasattr(model, "inputs_"):  # as in 0.3
        return None if model.inputs_ is None else str(model.inputs_.kind)
    if not hasattr(pairgram, "Fill"):
        return None
    from pairgram.features.row_values import Chain

    return Chain.of(attribute(model, "feature_map_", None)).kind


def fill_of(model: Any) -> Any:
    """Return what takes the place of missing values in a later fitted model, or None."""
    value = attribute(model, "feature_map_", None)
    first = value[0] if hasattr(value, "steps") else value
    return getattr(first, "fill_", None)


def map_of(model: Any) -> Any:
    """Return the fitted map after a scale."""
    value = model.feature_map_
    return value[-1] if hasattr(value, "steps") else value


def _of_pairs(function: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with `Pairs` in place of the words that 0.3 has beside `pairs`."""
    told = {word: named.pop(word) for word in ("scope", "weighting", "target") if word in named}
    if not told:
        return named
    usual = "without_ties" if "SVM" in function.__name__ else "with_ties"
    kinds, targets = named.get("pairs", usual), told.pop("target", "label")
    if function.__name__.startswith("ELMRank"):
        told = {"scope": "global", **told}
    every = [
        pairgram.Pairs(kind, target=target, **told)
        for kind in (kinds if isinstance(kinds, list) else [kinds])
        for target in (targets if isinstance(targets, list) else [targets])
    ]
    several = isinstance(kinds, list) or isinstance(targets, list)
    return named | {"pairs": every if several else every[0]}


def _constrained(named: dict[str, Any]) -> dict[str, Any]:
    others = {k: v for k, v in named.items() if k not in OF_WEIGHTS}
    positive, ratio, most = (named.get(k) for k in OF_WEIGHTS)
    if ratio:
        return {**others, "constraint": pairgram.ElasticNet(ratio, positive=bool(positive))}
    if most:
        return {**others, "constraint": pairgram.MaxNonzero(most)}
    if positive:
        columns = None if positive is True else positive
        return {**others, "constraint": pairgram.Positive(columns)}
    return others


# The parameters of weights in 0.3.
OF_WEIGHTS = ("positive", "l1_ratio", "n_nonzero_coefs")
# What a search of a table is given: 0.3 refuses to keep the scores of rows that are held out.
OF_TABLES: dict[str, bool] = {}
if "store_held_out" in inspect.signature(pairgram.RankRLSCV).parameters:
    OF_TABLES["store_held_out"] = False


def _parameter(function: Callable[..., Any], name: str) -> str:
    return RENAMED[name] if name in RENAMED and name not in _parameters(function) else name


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def _word(parameter: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_word(parameter, one) for one in value]
    key = f"{parameter}={value}"
    if not isinstance(value, str) or key not in RENAMED or value in _words():
        return value
    return RENAMED[key].partition("=")[2]


@cache
def _words() -> set[str]:
    """Return the words in quotes in the docstrings of all public classes and functions."""
    public = [getattr(pairgram, name) for name in pairgram.__all__]
    texts = [inspect.getdoc(it) or "" for it in public if callable(it)]
    return {word for text in texts for word in re.findall(r'"(\w+)"', text)}


pg = Public(pairgram)


def with_sparse_scale(estimator: Any) -> None:
    """Change the scales of an estimator to the one that keeps zeros, if it has any."""
    settings = estimator.get_params(deep=False)
    if settings.get("inputs"):
        estimator.set_params(inputs="maxabs")
    elif "inputs" not in settings and settings.get("feature_map") is not None:
        from pairgram.features.row_values import WORDS, Chain

        given = settings["feature_map"]
        chains = [Chain.of(one) for one in (given if isinstance(given, list) else [given])]
        if any(chain.scaling is not None for chain in chains):
            whole = {repr(chain.then): chain._replace(scaling=WORDS["maxabs"]) for chain in chains}
            values = [chain.short for chain in whole.values()]
            estimator.set_params(feature_map=values if len(values) > 1 else values[0])
