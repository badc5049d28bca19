"""Imports go one way: the table says what each folder of the package may import.

All import statements count, also those in functions and under TYPE_CHECKING.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pairgram"

# The package itself, of which the folders above it take public names, as users do.
PUBLIC = "pairgram"
# From the ground up: a folder may import itself, the compiled code, and the folders before it.
FLOORS = (
    "_support",
    "features",
    "data",
    "datasets",
    "files",
    "tables",
    "metrics",
    "clicks",
    "model_selection",
    "solvers",
    "rankers",
    PUBLIC,
    "export",
    "inspection",
    "plots",
    "pyterrier",
    "mlflow",
    "cli",
)
# Folders that may import less.
NARROWER = {
    "clicks": {"_support", "features", "data"},
    "datasets": {"_support", "data"},
    "export": {PUBLIC, "_support", "data", "features", "files"},
    "inspection": {PUBLIC, "_support", "data"},
    "plots": {PUBLIC},
    "pyterrier": {PUBLIC, "_support"},
    "mlflow": {PUBLIC, "_support"},
}
LAYERS = {
    folder: NARROWER.get(folder, set(FLOORS[:floor]))
    for floor, folder in enumerate(FLOORS)
    if folder != PUBLIC
}
OF_THE_COMMAND_LINE = {"typer", "rich", "click"}

PATHS = sorted(SOURCE.rglob("*.py"))


def name_of(path):
    """``solvers.pairgram`` of src/pairgram/solvers/pairgram.py; '' of the package itself."""
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


def test_the_table_has_every_folder():
    folders = {path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))}
    alone = {"pyterrier", "mlflow"}
    assert folders == LAYERS.keys() - alone
    names = {path.stem for path in SOURCE.glob("*.py")}
    assert names == {"__init__", *alone}


def wrong_imports(name, found, allowed):
    """Return those of the imported modules that a module may not import."""
    allowed = allowed | {name.partition(".")[0], "_core"}
    return [(line, module) for line, module in found if module.partition(".")[0] not in allowed]


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
        "from pairgram import _core, solvers\n"
        "from pairgram.features import base, known\n"
        "from pairgram import RankRLS\n"
        "if TYPE_CHECKING:\n    from pairgram.metrics.metric import Metric\n"
        "def function():\n    import pairgram.data.dataset as data\n"
    )
    found = wrong_imports("data.pairs", own_imports_of(path), LAYERS["data"])
    assert found == [
        (2, "cli.report"),
        (3, "solvers"),
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
        list(TopologicalSorter(graph | {"_support.checks": {"rankers.rank_svm"}}).static_order())


def test_rank_rls_is_no_tower():
    """The longest chain of modules that it stands on, itself included."""
    graph = {
        name: {module for _, module in own_imports_of(path)} - {PUBLIC, "_core"}
        for name, path in MODULES.items()
    }
    height = {}
    for name in TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[below] for below in graph[name]), default=0)
    assert height["rankers.rank_rls"] <= 13


FOLDERS = sorted({path.parent for path in PATHS if path.parent != SOURCE})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_folder_says_what_it_holds(folder):
    """Two sentences or three; a folder without public paths has nothing else in its file."""
    tree = ast.parse((folder / "__init__.py").read_text())
    words = ast.get_docstring(tree)
    assert words and len(re.findall(r"\.(?=\s|$)", words)) >= 2
    if folder.name not in ("clicks", "metrics", "datasets", "export", "plots", "pyterrier", "cli"):
        assert len(tree.body) == 1


# How often a module reads the text of an error. The texts are those of scikit-learn, pyarrow, Spark
# and the compiled parser of LETOR text.
TEXTS_THAT_ARE_READ = {
    "_support.arrays": 1,
    "rankers.base": 1,
    "datasets.letor": 1,
    "tables.sources": 2,
    "tables.spark": 1,
}
OF_PATTERNS = {"match", "fullmatch", "search", "sub", "findall", "finditer"}
OF_TEXTS = {"startswith", "endswith", "find", "index", "count", "partition", "rpartition", "split"}


def is_text(node):
    """Tell whether a node is the text of an error: ``str(error)``, or a part of ``error.args``."""
    if isinstance(node, ast.Call):
        return ast.unparse(node) in ("str(error)", "str(exception)")
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("error.args", "exception.args")


def readings(tree):
    """Yield the line of every comparison, search and pattern that has the text of an error."""
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.FunctionDef, ast.Lambda)):
            continue
        nodes = list(ast.walk(scope))
        texts = {
            ast.unparse(node.targets[0])
            for node in nodes
            if isinstance(node, ast.Assign) and is_text(node.value)
        }
        for node in nodes:
            parts = []
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                parts = [node.func.value] if node.func.attr in OF_TEXTS else []
                parts = node.args if node.func.attr in OF_PATTERNS else parts
            if any(is_text(n) or ast.unparse(n) in texts for part in parts for n in ast.walk(part)):
                yield node.lineno


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_errors_are_told_apart_by_their_attributes(path):
    lines = set(readings(ast.parse(path.read_text())))
    assert len(lines) == TEXTS_THAT_ARE_READ.get(name_of(path), 0), sorted(lines)


@pytest.mark.parametrize(
    "test",
    [
        'str(error).startswith("prior")',
        '"infinity" in str(error)',
        'error.args[0] == "x"',
        're.sub("row", "", str(error))',
        "ROW.search(str(error))",
    ],
)
def test_readings_of_texts_are_found(test):
    assert list(readings(ast.parse(f"def f(error):\n    return {test}"))) == [2]
    indirect = test.replace("str(error)", "text")
    assert list(readings(ast.parse(f"def f(error):\n    text = str(error)\n    {indirect}"))) == [3]
