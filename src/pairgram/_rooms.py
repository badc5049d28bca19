"""The rooms: what the package has beside its core, each of which can be deleted.

A room is a folder or a module of the package. Here stands all that others know of it: its public
names, and the words with which the tables of the core find what is there.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Room(NamedTuple):
    """What others know of a room.

    Attributes
    ----------
    names : mapping
        By modules: the public names in it, which ``pairgram`` has too.
    words : mapping
        By what words say, such as ``"skops"`` for types in files of skops, and by modules: the
        words, each of which is the name there of what it stands for.
    commands : tuple of str
        Which commands of the command line work with it alone.
    is_attribute : bool
        Whether ``pairgram`` has the room itself as an attribute, which its import must then allow
        where nothing else is installed.
    """

    names: Mapping[str, tuple[str, ...]] = {}
    words: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    commands: tuple[str, ...] = ()
    is_attribute: bool = True


ROOMS = {
    "auto": Room(
        {"auto.ranker": ("AutoRanker",)},
        words={"skops": {"auto.ranker": ("AutoRanker",)}},
    ),
    "certainty": Room(
        {
            "certainty.fitted_posterior": ("posterior",),
            "certainty.posterior": ("Posterior",),
            "certainty.propose": ("propose",),
        },
        words={
            "file": {"certainty.posterior": ("Posterior",)},
            "scoring": {"certainty.evidence": ("evidence",)},
            "skops": {"certainty.evidence": ("Evidence",)},
        },
    ),
    "cli": Room(is_attribute=False),
    "clicks": Room({"clicks.clicked": ("Clicks",)}),
    "comparing": Room(
        {"comparing.comparison": ("Comparison", "compare", "compare_values")},
        commands=("compare",),
    ),
    "comparisons": Room(
        {
            "comparisons.preferences": ("Preferences",),
            "comparisons.probabilities": ("probability_preferred",),
        },
        words={"skops": {"comparisons.comparison_metrics": ("ComparisonMetric",)}},
    ),
    "constraints": Room(
        {"constraints": ("ElasticNet", "MaxNonzero", "Positive")},
        words={"constraint": {"constraints": ("ElasticNet", "MaxNonzero", "Positive")}},
    ),
    "cross": Room(
        {
            "cross.interactions": ("leave_last_out", "sample_negatives"),
            "cross.products": ("Cross",),
            "cross.recommend": ("recommend",),
        },
        words={
            "command line": {"cross.ids": ("places_of",)},
            "feature map": {"cross.products": ("Cross",)},
            "skops": {"cross.products": ("Cross",)},
        },
        commands=("recommend",),
    ),
    "export": Room(
        {"export.feature_log": ("read_feature_log",), "export.pipelines": ("row_scorer",)},
        commands=("export",),
    ),
    "lists": Room(
        {"lists.fusion": ("fuse",), "lists.within_lists": ("within_lists",)}, commands=("fuse",)
    ),
    "mlflow": Room(is_attribute=False),
    "plots": Room(),
    "pyterrier": Room(is_attribute=False),
    "tables": Room(
        {"tables.scan": ("scan",), "tables.table_scores": ("predict",)},
        words={
            "command line": {
                "tables.scan": ("read_labels",),
                "tables.table_scores": ("write_tables",),
                "tables.sources": ("source_of",),
            }
        },
    ),
    "trees": Room(),
    "trec": Room(
        {"trec.run_files": ("read_qrels", "read_run", "write_run"), "trec.runs": ("evaluate_run",)},
        words={"command line": {"trec.run_files": ("parse_qrels", "parse_run", "run_lines")}},
    ),
}


def words_of(kind: str) -> dict[str, str]:
    """Return {word: the module that has it} of all rooms."""
    return {
        word: module
        for room in ROOMS.values()
        for module, names in room.words.get(kind, {}).items()
        for word in names
    }


def room_with(kind: str, word: str) -> Any:
    """Return what a word stands for, of a room that is imported for it."""
    return getattr(import_module(f"pairgram.{words_of(kind)[word]}"), word)


def public(name: str) -> Any:
    """Return a public name of another room, for what works with that room alone."""
    return getattr(import_module("pairgram"), name)
