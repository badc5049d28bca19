"""Mutations of the compiled code: small changes, each of which must turn a test red.

`mutations.toml` holds them, ``python -m tests.mutation`` makes them one by one.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
_DATA = tomllib.loads((Path(__file__).parent / "mutations.toml").read_text())


@dataclass(frozen=True)
class Mutation:
    """A change of one place of one source.

    Attributes
    ----------
    file : str
        Path from csrc.
    old, new : str
        The text, which stands once in the file, and what takes its place.
    tests : list of str
        What pytest is told to run.
    breaks : str
        What goes wrong.
    """

    file: str
    old: str
    new: str
    tests: list[str]
    breaks: str

    def apply(self, csrc: Path) -> None:
        """Change the file below `csrc`."""
        path = csrc / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new))


MUTATIONS = [Mutation(**fields) for fields in _DATA["mutation"]]
EXEMPT: dict[str, str] = _DATA["exempt"]  # file: reason


def sources() -> set[str]:
    """Return the files of csrc with code: every .cpp, and every .hpp that branches or loops."""
    found = {str(path.relative_to(CSRC)) for path in CSRC.rglob("*.cpp")}
    for path in CSRC.rglob("*.hpp"):
        code = re.sub(r"//.*", "", path.read_text())
        if re.search(r"\b(for|if|while|switch) \(", code):
            found.add(str(path.relative_to(CSRC)))
    return found
