"""The rankers of this package, by the names that model files give them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["ranker_called"]

_MODULES = {
    "RankRLS": "pairgram.least_squares.rank_rls",
    "MPRank": "pairgram.least_squares.presets",
    "LSSVR": "pairgram.least_squares.presets",
    "PointwiseELM": "pairgram.elm.elm",
    "PairwiseELM": "pairgram.elm.elm",
    "ELMRank": "pairgram.elm.elm_rank",
    "RankSVM": "pairgram.svm.rank_svm",
}


def ranker_called(name: str) -> Any:
    """Return a class, whose module is imported now, since modules of rankers import this one."""
    return getattr(import_module(_MODULES[name]), name)
