"""What a configuration gives: a flat dictionary of arrays and texts."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .public import Public, attribute, fill_of, pg, scale_of

Result = np.ndarray | str

ATTRIBUTES = (
    "coef_",
    "intercept_",
    "alpha_",
    "C_",
    "pairs_",
    "target_",
    "scale_",
    "form_",
    "best_score_",
    "best_index_",
    "alphas_",
    "Cs_",
    "scores_",
    "coef_path_",
    "held_out_",
    "per_query_",
    "scoring_",
    "fill_values_",
    "n_iter_",
    "n_hessian_products_",
    "n_features_in_",
    "feature_names_in_",
    "column_names_",
    "uses_qid_",
    "cv_",
    "agreement_",
)
# What differs from run to run, in the tables of fitted models.
SECONDS = ("seconds", "expected_seconds")


def text_of(value: Any) -> str:
    """Return a text of settings that is the same in every run."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, np.ndarray):
        return text_of(value.tolist())
    if isinstance(value, np.generic):
        return text_of(value.item())
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return re.sub(r" at 0x[0-9a-f]+", "", value if isinstance(value, str) else repr(value))


def flat(name: str, value: Any) -> Iterator[tuple[str, Result]]:
    """Take apart what a function returned."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key not in SECONDS:
                yield from flat(f"{name}.{key}" if name else str(key), one)
    elif scipy.sparse.issparse(value):
        yield from flat(name, {"dense": value.toarray(), "nnz": value.nnz})
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        yield from flat(name, named | {"text": str(value)})
    elif isinstance(value, (bool, int, float, np.generic, np.ndarray)) and (
        np.asarray(value).dtype.kind in "biuf"
    ):
        yield name, np.asarray(value)
    elif isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        for number, one in enumerate(value):
            yield from flat(f"{name}.{number}", one)
    else:
        yield name, text_of(value)


def of_file(data: bytes) -> str:
    """Return the header of a file of safetensors without what depends on the version or on bits."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    for name in ("version", "format", "sha256"):
        header.get("__metadata__", {}).pop(name, None)
    return json.dumps(header, sort_keys=True, indent=1)


def described(error: Exception) -> str:
    """Return the kind of an error, as Python itself calls it, and its words."""
    kind = next(base for base in type(error).__mro__ if base.__module__ == "builtins")
    return f"{kind.__name__}: {error}"


def joined(
    found: Mapping[str, Any], pairs: str = "pairs", target: str = "target"
) -> dict[str, Any]:
    """Return results with one text of pairs and their targets, which 0.3 tells apart."""
    found = {  # of kernels, whose gamma 0.3 tells apart
        name: value
        for name, value in found.items()
        if name != "gamma" and type(value).__name__ != "Kernel"
    }
    if pairs not in found or getattr(found[pairs], "kind", found[pairs]) is None:
        return {name: value for name, value in found.items() if name not in (pairs, target)}
    kinds = found[pairs] if isinstance(found[pairs], np.ndarray) else [found[pairs]]
    targets = np.atleast_1d(found.get(target, [None] * len(kinds)))
    texts = [
        f"{text_of(getattr(kind, 'kind', kind))} {getattr(kind, 'target', own) or 'label'}"
        for kind, own in zip(kinds, targets, strict=True)
    ]
    others = {name: value for name, value in found.items() if name not in (pairs, target)}
    return others | {pairs: texts}


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or the text of its error."""
    try:
        return function()
    except Exception as error:
        return described(error)


def of_model(model: Any, new: Any, offset: Any = None) -> dict[str, Any]:
    """Return all that a fitted ranker tells, and its scores of new rows, with their offsets."""
    found = {name: attribute(model, name, None) for name in ATTRIBUTES}
    found = {name: value for name, value in found.items() if value is not None}
    found = joined(found, "pairs_", "target_")
    results = attribute(model, "cv_results_", None)
    if results is not None:
        params = [
            {k: v for k, v in joined(one).items() if k not in ("inputs", "feature_map")}
            for one in results["params"]
        ]
        found["cv_results_"] = {"params": text_of(params)} | {
            name: column for name, column in results.items() if name.endswith("test_score")
        }
    history = attribute(model, "history_", None)
    if isinstance(history, dict):
        found["history_"] = {k: v for k, v in history.items() if "seconds" not in k}
    trials = attribute(model, "trials_", None)
    if trials is not None:
        found["trials_"] = joined(trials)
    if "fill_values_" not in found and fill_of(model) is not None:
        found["fill_values_"] = fill_of(model)
    if scale_of(model) is not None:
        found["inputs_"] = scale_of(model)
    fitted = Public(model)
    if offset is not None:
        if "offset" in inspect.signature(model.predict).parameters:  # as in 0.3
            return found | {"predict": model.predict(new, offset=offset)}
        return found | {"predict": model.predict(new) + offset}
    found["predict"] = fitted.predict(new)
    found["weights"] = attempt(fitted.column_weights)
    found["contributions"] = attempt(lambda: fitted.contributions(new))
    found["scorer"] = attempt(lambda: _by_scorer(fitted, new))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        refused = attempt(lambda: fitted.save(path))
        if refused is not None:
            return found | {"file": refused.replace(folder, "FOLDER")}
        return found | {
            "file": of_file(path.read_bytes()),
            "predict of file": pg.load_model(path).predict(new),
        }


def _by_scorer(model: Any, new: Any) -> Any:
    return np.ravel(model.row_scorer()(np.ascontiguousarray(np.asarray(new), dtype=np.float64)))


def results_of(function: Callable[[Path], Any]) -> dict[str, Result]:
    """Run a configuration: its results, its warnings and its error, as flat names."""
    with warnings.catch_warnings(record=True) as told, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        try:
            value = function(Path(folder))
            found = dict(flat("", value if isinstance(value, Mapping) else {"value": value}))
        except Exception as error:
            found = {"error": text_of(described(error))}
        texts = {text_of(f"{one.category.__name__}: {one.message}") for one in told}
        if texts:
            found["warnings"] = "\n".join(sorted(texts))
        return {
            name: one.replace(folder, "FOLDER") if isinstance(one, str) else one
            for name, one in found.items()
        }
