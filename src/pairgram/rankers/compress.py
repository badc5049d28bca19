"""Replace a kernel and its training rows by a Nyström map of a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.machine import single_threaded_blas
from pairgram._support.parameters import check_size
from pairgram.features.kernel_map import KernelMap, is_made, kernel_between
from pairgram.features.kernels import kernel_matrix
from pairgram.features.nystroem import Nystroem
from pairgram.metrics.evaluation import evaluate
from pairgram.rankers.known import ranker_called

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RandomState


def compressed(model: BaseEstimator, n_landmarks: int, random_state: RandomState) -> Any:
    """Return a `RankRLS` with a Nyström map; see `LinearRanker.compress`."""
    check_size("n_landmarks", n_landmarks)
    kernel_map = model.feature_map_
    name = type(model).__name__
    if type(kernel_map) is not KernelMap:
        raise ValueError(f"compress is for models with a kernel, and this {name} has none")
    rows = kernel_map.support_rows_
    if not is_made(kernel_map):
        raise ValueError(
            f"compress needs a named kernel and its training rows, got kernel={kernel_map.kernel!r}"
        )
    if getattr(model, "uses_offset_", False) or getattr(model, "prior_", None) is not None:
        raise ValueError(f"compress is not for a {name} with offsets or a prior that is a model")
    n_rows = rows.shape[0]
    if n_landmarks > n_rows:
        raise ValueError(f"n_landmarks must be at most {n_rows}, the rows of the model")
    kernel: dict[str, Any] = {
        "gamma": kernel_map.gamma_,
        "degree": kernel_map.degree,
        "coef0": kernel_map.coef0,
    }
    of_parts = not isinstance(kernel_map.kernel, str)  # whose columns may have names
    own = kernel_map.kernel_ if of_parts else kernel_map.kernel
    nystroem = Nystroem(
        own,
        n_components=n_landmarks,
        landmarks="rpcholesky",
        random_state=random_state,
        n_threads=model.n_threads,
        **kernel,
    )
    settings = model._parameters_to_save() if model._file_kind == "RankRLS" else {}
    names = {"alpha", "pairs", "scope", "weighting", "target"} & settings.keys()
    other = ranker_called("RankRLS")(
        **{name: settings[name] for name in names},
        feature_map=nystroem,
        missing=model.missing,
        n_threads=model.n_threads,
    )
    nystroem.fit(rows)
    with single_threaded_blas:
        between = kernel_matrix(
            rows, nystroem.components_, own, n_threads=model.n_threads, **kernel
        )
        coef = np.asarray(nystroem.whitening_).T @ (between.T @ np.asarray(model.coef_))
        ours = kernel_between(kernel_map, rows) @ np.asarray(model.coef_)
        theirs = between @ (np.asarray(nystroem.whitening_) @ coef)
    told = ("n_features_in_", "feature_names_in_", "uses_qid_", "inputs_", "fill_values_")
    known = {name: getattr(model, name) for name in told if hasattr(model, name)}
    other.__dict__.update(known, coef_=coef, feature_map_=nystroem, form_="primal")
    if model.inputs_ is not None:
        other.inputs = model.inputs_.kind
    found = evaluate("pairwise_accuracy", ours, theirs)["pairwise_accuracy"]
    other.agreement_ = 1.0 if np.isnan(found) else float(found)
    return other
