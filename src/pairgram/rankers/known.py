"""The rankers of this package, by the names that model files give them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {
    "RankRLS": "pairgram.rankers.rank_rls",
    "PointwiseELM": "pairgram.rankers.elm",
    "PairwiseELM": "pairgram.rankers.elm",
    "ELMRank": "pairgram.rankers.elm_rank",
    "RankSVM": "pairgram.rankers.rank_svm",
}


def ranker_called(name: str) -> Any:
    """Return a class, whose module is imported now, since modules of rankers import this one."""
    return getattr(import_module(_MODULES[name]), name)
