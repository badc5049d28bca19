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
    is_attribute : bool
        Whether ``pairgram`` has the room itself as an attribute, which its import must then allow
        where nothing else is installed.
    """

    names: Mapping[str, tuple[str, ...]] = {}
    words: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    is_attribute: bool = True


ROOMS = {
    "auto": Room(
        {"auto.ranker": ("AutoRanker",)},
        words={"skops": {"auto.ranker": ("AutoRanker",)}},
    ),
    "certainty": Room(
        {
            "certainty.fits": ("posterior",),
            "certainty.posterior": ("Posterior",),
            "certainty.propose": ("propose",),
        },
    ),
    "cli": Room(is_attribute=False),
    "clicks": Room({"clicks.clicked": ("Clicks",)}),
    "constraints": Room({"constraints": ("ElasticNet", "MaxNonzero", "Positive")}),
    "export": Room(),
    "mlflow": Room(is_attribute=False),
    "plots": Room(),
    "pyterrier": Room(is_attribute=False),
    "tables": Room({"tables.scan": ("scan",)}),
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
