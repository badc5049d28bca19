"""Deletes each room of the package in a copy, and checks that all else builds and passes.

    .ci/rooms [room ...] [--tests TEXT] [--folder FOLDER]

A room is what `src/pairgram/_rooms.py` lists. With its entry go its folders of source, of compiled
source and of tests, its table of refusals, its extra and its pages. Then go, of all other tests,
the statements that name what it has: a test that asks for a room is one of the room's. What is left
must have right types, and its tests must pass. The package and what its tests need are installed
where this runs; the copy is built anew for a room with compiled source alone.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = runpy.run_path(str(ROOT / "src/pairgram/_rooms.py"))["ROOMS"]
# They read pages, which are mended by hand, and the texts of the repository.
OF_PAGES = ("test_readme.py", "test_site.py", "test_figures.py", "test_same.py", "test_mutation.py")
OF_PAGES += ("cli/test_reference.py",)


def names_of(room: str) -> set[str]:
    """Return the names by which others ask for a room."""
    says = ROOMS[room]
    tables = (says.names, *says.words.values())
    found = {name for table in tables for names in table.values() for name in names}
    return found | {*says.commands} | ADDED.get(room, set())


# Words that stand for a room in calls, and are none of its names.
ADDED = {
    "auto": {"auto"},
    "clicks": {"clicked", "propensity", "ips_dcg@10", "--propensity", "clicks"},
    "cli": {"shell"},
    "comparisons": {"compared", "leave-item-out", "leave-comparison-out", "leave-group-out"},
    "export": {"shop", "text_model", "OneHotEncoder", "OrdinalEncoder", "TfidfVectorizer"},
    "tables": {"Table", "csv", "to_parquet", "write_table", "log.parquet", "rows.parquet"}
    | {"gap.csv", "text.csv"},
}
# Names that texts have as ordinary words.
ORDINARY = {"predict"}


class Mentions(ast.NodeVisitor):
    """Tells whether a statement names one of some names."""

    def __init__(self, names: set[str], room: str) -> None:
        self.names, self.room, self.module = names, room, f"pairgram.{room}"
        self.found = False

    def generic_visit(self, node: ast.AST) -> None:
        word = None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring, which asks for nothing
        if isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.Attribute):
            of_package = isinstance(node.value, ast.Name) and node.value.id in ("pg", "pairgram")
            self.found |= of_package and node.attr == self.room
            word = node.attr if of_package or node.attr in ADDED.get(self.room, ()) else None
        elif isinstance(node, ast.arg):
            word = node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            word = node.value
            pieces = set(re.findall(r"[\w.@-]+", word))
            self.found |= any(f"{self.module}." in f"{piece}." for piece in pieces)
            self.found |= not word.isidentifier() and bool((self.names - ORDINARY) & pieces)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", "") or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
            self.found |= any(f"{name}.".startswith(f"{self.module}.") for name in names)
            self.found |= any(alias.name in self.names for alias in node.names)
        self.found |= word in self.names
        if not self.found:
            super().generic_visit(node)


def mentions(node: ast.AST, names: set[str], room: str) -> bool:
    visitor = Mentions(names, room)
    visitor.visit(node)
    return visitor.found


def defined_by(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    targets = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return {one.id for one in targets if isinstance(one.ctx, ast.Store)}


def without(
    text: str, names: set[str], room: str, gone: dict[str, set[str]], folder: str
) -> tuple[str, set[str]]:
    """Return the text of a module without what names a room, and the names that it has lost.

    `gone` has what modules of the tests have lost, by their names, and `folder` is that of this.
    """
    tree, lost = ast.parse(text), set()
    kept = list(tree.body)
    while True:
        rest = []
        for node in kept:
            if isinstance(node, ast.ImportFrom):
                module = ".".join(filter(None, [folder if node.level else "", node.module]))
                beside = gone.get(f"{folder}.{module}", set())  # a folder that pytest imports from
                bad = gone.get(module.removeprefix("tests."), set()) | beside
                bad = names if module == "pairgram" else bad
                inner = f"{module}."
                left = [
                    alias
                    for alias in node.names
                    if alias.name not in bad and f"{inner}{alias.name}" != f"pairgram.{room}"
                ]
                if f"{module}.".startswith((f"pairgram.{room}.", f"parts.{room}.")):
                    left = []
                if len(left) < len(node.names):
                    lost |= {a.asname or a.name for a in node.names if a not in left}
                    if not left:
                        continue
                    node.names = left
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                pass  # the docstring
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                some = [one for one in node.value.elts if one.value not in lost]
                node.value.elts = some
            elif mentions(node, names | lost, room):
                lost |= defined_by(node)
                continue
            rest.append(node)
        if len(rest) == len(kept) and rest == kept:
            tree.body = rest
            return ast.unparse(ast.fix_missing_locations(tree)), lost
        kept = rest


def strip_tests(tests: Path, room: str) -> None:
    """Take what names a room from all tests, and from what they share."""
    names, gone = names_of(room), {}
    paths = sorted(tests.rglob("*.py"), key=lambda path: path.name.startswith("test_"))
    for _ in range(4):  # helpers of helpers of helpers
        before = {name: set(lost) for name, lost in gone.items()}
        for path in paths:
            parts = path.relative_to(tests).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text, lost = without(path.read_text(), names, room, gone, ".".join(parts[:-1]))
            if lost:
                path.write_text(text + "\n")
                gone.setdefault(module, set()).update(lost)
        if gone == before:
            break
    values = names | gone.get("refusals.values", set())
    either = "|".join(map(re.escape, sorted(values))) or "(?!)"
    word = re.compile(rf"(?<![\w.])({either})(?!\w)")
    for path in (tests / "refusals").glob("*.txt"):
        rows: list[str] = []
        for line in path.read_text().splitlines():
            if line.startswith(" ") and rows:
                rows[-1] += f"\n{line}"
            else:
                rows.append(line)
        rows = [row for row in rows if row.startswith("#") or not word.search(row)]
        if any(row and not row.startswith("#") for row in rows):
            path.write_text("\n".join(rows) + "\n")
        else:
            path.unlink()


def delete(tree: Path, room: str) -> bool:
    """Delete a room; return whether it had compiled source."""
    table = tree / "src/pairgram/_rooms.py"
    text = table.read_text()
    (rooms,) = (
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOMS"
    )
    at = [key.value for key in rooms.keys].index(room)
    lines = text.splitlines(keepends=True)
    del lines[rooms.keys[at].lineno - 1 : rooms.values[at].end_lineno]
    table.write_text("".join(lines))
    compiled = (tree / "csrc" / room).exists()
    for path in (
        tree / "src/pairgram" / room,
        tree / "src/pairgram" / f"{room}.py",
        tree / "csrc" / room,
        tree / "tests" / room,
        *(tree / "tests").rglob(f"test_{room}.py"),
        tree / "tests/parts" / f"{room}.py",
        *(p for p in (tree / "tests/refusals").glob("*.txt") if room in p.stem.split("-")),
        *(tree / "docs").rglob(f"{room}.md"),
    ):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in (tree / "docs").rglob("index.md"):  # which lists pages, one a line
        path.write_text(re.sub(rf"^{room}\n", "", path.read_text(), flags=re.MULTILINE))
    project = tree / "pyproject.toml"
    text = re.sub(rf"^{room} = \[.*\]\n", "", project.read_text(), flags=re.MULTILINE)
    project.write_text(re.sub(rf'"pairgram\[{room}\]", |(?<=[\[,]){room},|,{room}(?=\])', "", text))
    strip_tests(tree / "tests", room)
    return compiled


def run(title: str, command: list[object], tree: Path) -> bool:
    """Run a command in the copy; print the end of what it says if it fails."""
    paths = [f"{tree}/src", *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        list(map(str, command)),
        cwd=tree,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]
    print(f"   {title}: {last}", flush=True)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-60:]))
    return done.returncode == 0


def check(room: str, folder: Path, tests: list[str]) -> bool:
    """Check the package without a room, in a folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    tree = folder / "tree"  # one path, so that types of what is the same are known
    shutil.rmtree(tree, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    print(f"== without {room}", flush=True)
    if delete(tree, room):
        target = ["--quiet", "--no-deps", "--no-build-isolation", "--target", folder / "built", "."]
        if not run("build", [sys.executable, "-m", "pip", "install", *target], tree):
            return False
        compiled = (folder / "built/pairgram").glob("*.so")
    else:
        import pairgram._core

        compiled = Path(pairgram._core.__file__).parent.glob("*.so")
    for path in compiled:
        shutil.copy2(path, tree / "src/pairgram")
    python, pytest = sys.executable, ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ignored = [f"--ignore=tests/{name}" for name in OF_PAGES]
    steps = {
        "names": [python, "tests/stub.py"],
        "types": [python, "-m", "mypy", "--cache-dir", folder / "mypy"],
        "tests": [python, *pytest, *ignored, *tests],
    }
    found = [run(title, command, tree) for title, command in steps.items()]  # all of them run
    return all(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="[default: all]")
    parser.add_argument("--tests", default="-n auto tests", help="what pytest is told")
    parser.add_argument("--folder", type=Path, help="where the copies are made, and stay")
    chosen = parser.parse_args()
    rooms = chosen.rooms or list(ROOMS)
    with tempfile.TemporaryDirectory() as folder:
        where = chosen.folder or Path(folder)
        failed = [room for room in rooms if not check(room, where, chosen.tests.split())]
    if failed:
        print("Without these rooms something fails:", *failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
