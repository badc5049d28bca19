"""Imports go one way: the table says what each folder of the package may import.

All import statements count, also those in functions and under TYPE_CHECKING.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pairgram"

# What each folder may import besides itself and the compiled code. `PUBLIC` is the package itself,
# of which a folder takes public names, as users do.
PUBLIC = "pairgram"
GROUND = {"_support"}
DATA = {"queries_and_pairs"} | GROUND
MAPS = {"inputs", "kernels"} | GROUND
PROBLEM = {"feature_maps"} | DATA
TABLES = {"datasets"} | DATA
JUDGED = {"problem", "metrics", "tables"} | TABLES | PROBLEM
RANKERS = {"model_files", "inputs", "kernels"} | JUDGED
SOLVERS = {"rankers", "model_selection"} | RANKERS
MACHINES = {"least_squares"} | SOLVERS
LAYERS = {
    "_support": set(),
    "queries_and_pairs": GROUND,
    "kernels": GROUND,
    "datasets": DATA,
    "tables": TABLES,
    "metrics": {"tables"} | TABLES,
    "feature_maps": MAPS,
    "problem": PROBLEM,
    "inputs": GROUND,
    "model_files": {"feature_maps", "kernels"} | DATA,
    "model_selection": JUDGED,
    "rankers": RANKERS,
    "least_squares": SOLVERS,
    "elm": MACHINES,
    "svm": MACHINES,
    "auto": {"elm", "svm"} | MACHINES,
    "export": {PUBLIC, "queries_and_pairs"},
    "inspection": {PUBLIC} | DATA,
    "pyterrier": {PUBLIC},
    "trec": {"metrics"} | TABLES,
    "comparison": {"trec", "metrics", "queries_and_pairs"},
    "plots": {PUBLIC},
    "cli": {"export", "trec", "comparison", "plots", "auto", "elm", "svm", PUBLIC} | MACHINES,
}
# Modules that may import only some modules of a folder, or more than their folder may.
NARROWER = {"problem": {"feature_maps": {"feature_maps.base"}}}
OF_THE_COMMAND_LINE = {"typer", "rich", "click"}

PATHS = sorted(SOURCE.rglob("*.py"))


def name_of(path):
    """``least_squares.gram`` of src/pairgram/least_squares/gram.py; '' of the package itself."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PATHS}


def imports_of(path):
    """Yield (line, full name of a module) of every import statement."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: an import that is relative"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                inner = whole.removeprefix("pairgram.")
                is_module = whole.startswith("pairgram.") and inner in {*MODULES, "_core"}
                yield node.lineno, whole if is_module else node.module


def own_imports_of(path):
    """Yield (line, name within the package) of every import of the package's modules."""
    for line, module in imports_of(path):
        if module == "pairgram":
            yield line, PUBLIC
        elif module.startswith("pairgram."):
            yield line, module.removeprefix("pairgram.")


def test_the_table_has_every_folder_and_no_circle():
    folders = {path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))}
    assert folders <= LAYERS.keys()
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py"}
    order = list(TopologicalSorter(LAYERS | {PUBLIC: set()}).static_order())
    assert set(order) == {*LAYERS, PUBLIC}
    assert order[-1] == "cli"
    assert not any("cli" in allowed for allowed in LAYERS.values())


def wrong_imports(name, found, allowed):
    """Return those of the imported modules that a module may not import."""
    folder = name.partition(".")[0]
    allowed = allowed | {folder, "_core"}
    narrower = NARROWER.get(folder, {})
    return [
        (line, module)
        for line, module in found
        if (room := module.partition(".")[0]) not in allowed
        or (room in narrower and module not in narrower[room])
    ]


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name):
    if name == "":  # the package itself, which takes names of all but the command line
        assert all(not module.startswith("cli") for _, module in own_imports_of(MODULES[name]))
        return
    found = own_imports_of(MODULES[name])
    assert wrong_imports(name, found, LAYERS[name.partition(".")[0]]) == []


def test_imports_that_go_up_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import pairgram.cli.report\n"
        "from pairgram import _core, svm\n"
        "from pairgram.feature_maps import base, known\n"
        "from pairgram import RankRLS\n"
        "if TYPE_CHECKING:\n    from pairgram.metrics.metric import Metric\n"
        "def function():\n    import pairgram.problem.data as data\n"
    )
    found = wrong_imports("problem.laplacian", own_imports_of(path), LAYERS["problem"])
    assert found == [
        (2, "cli.report"),
        (3, "svm"),
        (4, "feature_maps.known"),
        (5, PUBLIC),
        (7, "metrics.metric"),
    ]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("cli")])
def test_the_command_lines_packages_are_its_own(name):
    found = {module.partition(".")[0] for _, module in imports_of(MODULES[name])}
    assert not found & OF_THE_COMMAND_LINE


def test_no_module_imports_itself_by_others():
    """Modules of one folder form no circle, and neither do folders within a folder."""
    graph = {
        name: {module for _, module in own_imports_of(path)} - {PUBLIC, "_core"}
        for name, path in MODULES.items()
        if name
    }
    assert set().union(*graph.values()) <= set(MODULES)
    order = list(TopologicalSorter(graph).static_order())  # a CycleError names a circle
    assert len(order) == len(graph)
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph | {"_support.types": {"svm.rank_svm"}}).static_order())


def test_rank_rls_is_no_tower():
    """The longest chain of modules that it stands on, itself included."""
    graph = {
        name: {module for _, module in own_imports_of(path)} - {PUBLIC, "_core"}
        for name, path in MODULES.items()
    }
    height = {}
    for name in TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[below] for below in graph[name]), default=0)
    assert height["least_squares.rank_rls"] <= 12


FOLDERS = sorted({path.parent for path in PATHS if path.parent != SOURCE})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_folder_says_what_it_holds_and_imports(folder):
    """Two sentences or three; a folder without public paths has nothing else in its file."""
    tree = ast.parse((folder / "__init__.py").read_text())
    words = ast.get_docstring(tree)
    assert words and len(re.findall(r"\.(?=\s|$)", words)) >= 2
    name = folder.relative_to(SOURCE).as_posix()
    if name not in ("metrics", "datasets", "export", "plots", "pyterrier", "cli"):
        assert len(tree.body) == 1
    if name == "cli" or "/" in name:
        return
    named = {word.partition(".")[0] for word in re.findall(r"`([a-z_.]+)`", words)}
    said = named & LAYERS.keys() - {name}
    if "every folder below it" in words:
        said |= LAYERS["least_squares"]
    for other in re.findall(r"not `(\w+)`", words):
        said.remove(other)
    assert said == LAYERS[name] - {PUBLIC}
