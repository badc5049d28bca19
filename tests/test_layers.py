"""Imports go one way: the table says what each folder of the package may import.

All import statements count, also those in functions and under TYPE_CHECKING.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from pairgram._rooms import ROOMS

SOURCE = Path(__file__).parents[1] / "src" / "pairgram"

# The package itself, of which rooms take public names, as users do.
PUBLIC = "pairgram"
# The core from the ground up: a folder may import itself, the compiled code, the table of rooms
# and the folders before it.
FLOORS = (
    "_support",
    "features",
    "data",
    "datasets",
    "files",
    "metrics",
    "model_selection",
    "solvers",
    "rankers",
)
# Folders of the core that may import less.
NARROWER = {"datasets": {"_support", "data"}}
LAYERS = {
    folder: NARROWER.get(folder, set(FLOORS[:floor])) for floor, folder in enumerate(FLOORS)
} | {room: {PUBLIC, *FLOORS} for room in ROOMS}
# The folders that know a room, of which others ask nothing: none is to be left.
THAT_KNOW = {}

PATHS = sorted(SOURCE.rglob("*.py"))


def name_of(path):
    """``solvers.pairgram`` of src/pairgram/solvers/pairgram.py; '' of the package itself."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PATHS}


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path):
    """Return (line, full name of a module) of every import statement."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: an import that is relative"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                inner = whole.removeprefix("pairgram.")
                is_module = whole.startswith("pairgram.") and inner in {*MODULES, "_core"}
                found.append((node.lineno, whole if is_module else node.module))
    return found


def own_imports_of(path):
    """Yield (line, name within the package) of every import of the package's modules."""
    for line, module in imports_of(path):
        if module == "pairgram":
            yield line, PUBLIC
        elif module.startswith("pairgram."):
            yield line, module.removeprefix("pairgram.")


def test_the_tables_have_every_folder_and_module():
    folders = {path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "_rooms"}
    assert folders | modules == LAYERS.keys()


def test_public_names_of_a_room_are_its_own():
    for room, says in ROOMS.items():
        modules = {*says.names, *(module for words in says.words.values() for module in words)}
        assert {module.partition(".")[0] for module in modules} <= {room}


def wrong_imports(name, found, allowed):
    """Return those of the imported modules that a module may not import."""
    allowed = allowed | {name.partition(".")[0], "_core", "_rooms"}
    return [(line, module) for line, module in found if module.partition(".")[0] not in allowed]


def test_imports_go_down():
    """No module imports a room but the room's own, so that whoever deletes it finds all."""
    found = {
        name: wrong_imports(name, own_imports_of(path), LAYERS[name.partition(".")[0]])
        for name, path in MODULES.items()
        if name not in ("", "_rooms")
    }
    pairs = {
        (module.partition(".")[0], name.partition(".")[0]): (name, line)
        for name, wrong in found.items()
        for line, module in wrong
    }
    known = {(room, one) for room, folders in THAT_KNOW.items() for one in folders & LAYERS.keys()}
    assert {pair: place for pair, place in pairs.items() if pair not in known} == {}
    assert known <= pairs.keys()


def test_imports_that_go_up_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import pairgram.cli.report\n"
        "from pairgram import _core, solvers\n"
        "from pairgram.features import feature_map, known\n"
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


def test_a_module_is_the_only_one_of_its_name():
    names = [path.name for path in PATHS if path.name != "__init__.py"]
    assert len(set(names)) == len(names)


def test_every_folder_says_what_it_holds():
    """Two sentences or three; a folder without public paths has nothing else in its file."""
    for folder in {path.parent for path in PATHS if path.parent != SOURCE}:
        tree = ast.parse((folder / "__init__.py").read_text())
        words = ast.get_docstring(tree)
        assert words and len(re.findall(r"\.(?=\s|$)", words)) >= 2, folder.name
        public = {"metrics", "datasets", *ROOMS}
        assert len(tree.body) == 1 or folder.name in public, folder.name


# How often a module reads the text of an error. The texts are those of scikit-learn, pyarrow, Spark
# and the compiled parser of LETOR text.
TEXTS_THAT_ARE_READ = {
    "datasets.letor": 1,
    "tables.sources": 1,
    "tables.spark": 1,
}
OF_PATTERNS = {"match", "fullmatch", "search", "sub", "findall", "finditer"}
OF_TEXTS = {"startswith", "endswith", "find", "index", "count", "partition", "rpartition", "split"}


def is_text(node):
    """Tell whether a node is the text of an error: ``str(error)``, or a part of ``error.args``."""
    if isinstance(node, ast.Call):
        return ast.unparse(node) in ("str(error)", "str(exception)")
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("error.args", "exception.args")


def readings(nodes):
    """Yield the line of every comparison, search and pattern that has the text of an error."""
    for scope in nodes:
        if not isinstance(scope, (ast.FunctionDef, ast.Lambda)):
            continue
        own = list(ast.walk(scope))
        texts = {
            ast.unparse(node.targets[0])
            for node in own
            if isinstance(node, ast.Assign) and is_text(node.value)
        }
        for node in own:
            parts = []
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                parts = [node.func.value] if node.func.attr in OF_TEXTS else []
                parts = node.args if node.func.attr in OF_PATTERNS else parts
            if any(is_text(n) or ast.unparse(n) in texts for part in parts for n in ast.walk(part)):
                yield node.lineno


def test_errors_are_told_apart_by_their_attributes():
    counts = {name: len(set(readings(nodes_of(path)))) for name, path in MODULES.items()}
    known = {name: count for name, count in TEXTS_THAT_ARE_READ.items() if name in MODULES}
    assert {name: count for name, count in counts.items() if count} == known


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
    def lines(code):
        return list(readings(ast.walk(ast.parse(f"def f(error):\n    {code}"))))

    assert lines(f"return {test}") == [2]
    assert lines(f"text = str(error)\n    {test.replace('str(error)', 'text')}") == [3]


def patched_constants(text):
    """Yield the line of every place that puts a value in the place of a constant."""
    if not re.search(r"setattr|patch", text):  # most files, and parsing takes long
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("setattr", "patch", "patch.object")
        ):
            words = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            if any(str(word).rpartition(".")[2].strip("_").isupper() for word in words):
                yield node.lineno


def test_tests_patch_no_constant():
    """Sizes are fields of `Limits`, which tests hand in by a fixture."""
    paths = set(Path(__file__).parent.rglob("*.py")) - {Path(__file__).with_name("test_same.py")}
    found = {path.name: list(patched_constants(path.read_text())) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_patched_constants_are_found():
    text = "monkeypatch.setattr(module, '_ROWS', 3)\nmock.patch('module.ROWS', 3)\nf('ROWS')"
    assert list(patched_constants(text)) == [1, 2]
