"""Holds the results of the installed package against those of another revision.

    python -m tests.same write FILE [--revision NAME]
    python -m tests.same compare OLD NEW [--allowed .ci/same.toml]

`write` goes through all configurations, and writes what they give. `compare` says which results
differ; the exit code is 1 where one differs without a reason, or where a reason is needed no more.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import tomllib
from pathlib import Path

from . import archive
from .archive import Difference

ROOT = Path(__file__).parents[2]
SHOWN = 400  # differences that are printed


def write(path: Path, revision: str, only: str) -> None:
    """Run all configurations of which the name begins with a text."""
    from . import behaviour, fits, uses
    from .results import results_of

    start = time.perf_counter()
    every = itertools.chain(*(module.configurations() for module in (fits, uses, behaviour)))
    results = {name: results_of(run) for name, run in every if name.startswith(only)}
    archive.write(path, results, revision)
    seconds = time.perf_counter() - start
    print(f"{len(results)} configurations in {seconds:.0f} s: {path}")


def compare(old_path: Path, new_path: Path, list_path: Path, explained_too: bool) -> int:
    """Print what differs, and return the exit code."""
    old, revision = archive.read(old_path)
    new, _ = archive.read(new_path)
    lists = tomllib.loads(list_path.read_text())
    entries = [one for name in lists if revision.startswith(name) for one in lists[name]]
    allowed = archive.allowed_of(entries)
    counts, unexplained, explained = archive.compare(old, new, allowed)
    for key, found in [*unexplained, *(explained if explained_too else [])][:SHOWN]:
        share = f" {found.share:.1e}" if found.share >= 0 else ""
        print(f"{key}: {found.what}{share}")
    if len(unexplained) > SHOWN:
        print(f"… and {len(unexplained) - SHOWN} more; all of them, by model and result:")
        print_groups(unexplained)
    unmet = [one for one in allowed if not one.met]
    for one in unmet:
        print(f"{list_path.name}: nothing differs in {one.configuration!r}, {one.result!r}")

    titles = ("", "configurations", "equal to the bit", "within 1e-9", "explained", "unexplained")
    rows = [
        (area, len(c.configurations), c.equal, c.close, c.explained, c.unexplained)
        for area, c in counts.items()
    ]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    width = max(len(str(row[0])) for row in rows)
    print(f"\nagainst {revision or old_path}")
    for row in (titles, *rows):
        numbers = (f"{it:>{len(title) + 2}}" for it, title in zip(row[1:], titles[1:], strict=True))
        print(f"{row[0]:<{width}}{''.join(numbers)}")
    return 1 if unexplained or unmet else 0


def print_groups(differences: list[tuple[str, Difference]]) -> None:
    """Print for each model and result how many configurations differ, how far, and one of them."""
    groups: dict[tuple[str, str], list[tuple[str, Difference]]] = {}
    for key, found in differences:
        configuration, _, result = key.partition(archive.ARROW)
        model = "/".join(configuration.split("/")[1:2]) or configuration
        groups.setdefault((model, result), []).append((key, found))
    for (model, result), group in sorted(groups.items()):
        key, worst = max(group, key=lambda one: one[1].share)
        share = f" {worst.share:.1e}" if worst.share >= 0 else ""
        print(f"{len(group):5d} {model}{archive.ARROW}{result}: {key}: {worst.what}{share}")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.same", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write", help="write the results of the installed package")
    writer.add_argument("file", type=Path)
    writer.add_argument("--revision", default="", help="what the results are called")
    writer.add_argument("--only", default="", help="how the names of configurations begin")
    comparer = commands.add_parser("compare", help="compare two files of results")
    comparer.add_argument("old", type=Path)
    comparer.add_argument("new", type=Path)
    comparer.add_argument("--allowed", type=Path, default=ROOT / ".ci" / "same.toml")
    comparer.add_argument("--explained", action="store_true", help="print explained ones, too")
    chosen = parser.parse_args()
    if chosen.command == "write":
        write(chosen.file, chosen.revision, chosen.only)
        return 0
    return compare(chosen.old, chosen.new, chosen.allowed, chosen.explained)


if __name__ == "__main__":
    sys.exit(main())
