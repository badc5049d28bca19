"""How much a reader must hold in mind: measures of the package's shape, which may only fall.

`test_layers.py` says which room may import which. Bounds here are the figures of today; whoever
lowers one lowers its bound.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

import pairgram

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "pairgram"
PATHS = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "__init__.py"
}


@cache
def tree_of(name):
    return ast.parse(PATHS[name].read_text())


def needs(name):
    """Return the modules that a module imports anywhere, but for type checkers alone."""
    found, nodes = set(), [tree_of(name)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            base = node.module.removeprefix("pairgram.")
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found & PATHS.keys() - {name}


def stands_on(name):
    """Return how many modules a module needs, itself included."""
    found, waiting = set(), {name}
    while waiting:
        found.add(one := waiting.pop())
        waiting |= needs(one) - found
    return len(found)


def lines_of_code():
    """Count lines without docstrings, comments and blank lines."""
    count = 0
    for name, path in PATHS.items():
        hidden = set()
        for node in ast.walk(tree_of(name)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and (
                ast.get_docstring(node) is not None
            ):
                text = node.body[0]
                hidden |= set(range(text.lineno, text.end_lineno + 1))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.strip()
            count += bool(code) and not code.startswith("#") and number not in hidden
    return count


def asks_for_tables():
    """Count the places that ask whether they have a table."""
    return sum(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and "Table" in ast.unparse(node.args[1]).replace(",", " ").strip("()").split()
        for name in PATHS
        for node in ast.walk(tree_of(name))
    )


def parameters_of_any_type():
    """Return the share of parameters that are annotated Any, in percent."""
    annotations = [
        argument.annotation
        for name in PATHS
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.FunctionDef)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if argument.annotation is not None
    ]
    return 100 * sum(ast.unparse(one) == "Any" for one in annotations) / len(annotations)


def hooks():
    """Return the private names that two or more classes of rankers define."""
    rankers = (getattr(pairgram, name) for name in pairgram.__all__)
    classes = {
        base
        for ranker in rankers
        if isinstance(ranker, type) and hasattr(ranker, "fit") and hasattr(ranker, "predict")
        for base in ranker.__mro__
        if base.__module__.startswith("pairgram")
    }
    names = [
        name
        for base in classes
        for name in vars(base)
        # abc and scikit-learn put the others into every class
        if name[0] == "_" and name[:2] != "__" and "__" not in name and name[:5] != "_abc_"
    ]
    return {name for name in names if names.count(name) > 1}


def travel(function):
    """Return (calls of our Python code, modules) while a function runs."""
    calls, modules = 0, set()

    def profile(frame, event, _):
        nonlocal calls
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("pairgram."):
            calls += 1
            modules.add(module)

    function()  # what is imported or kept at the first call does not count
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls, len(modules)


def trees_of_tests():
    """Yield (path in the folder, syntax tree) of tests, but for those of versions and imports."""
    others = {"same", "roads", "test_same.py", "test_layers.py", "test_house.py"}
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS)
        if name.parts[0] not in others:
            yield name, ast.parse(path.read_text())


def patched_constants():
    """Count the places where tests put a value in the place of a constant."""
    return sum(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("setattr", "patch", "patch.object"))
        and any(
            isinstance(one, ast.Constant)
            and isinstance(one.value, str)
            and one.value.rpartition(".")[2].strip("_").isupper()
            for one in node.args[:2]
        )
        for _, tree in trees_of_tests()
        for node in ast.walk(tree)
    )


def is_private(module):
    """Tell whether a module is no public path; the compiled code is not counted."""
    public = {
        "clicks",
        "metrics",
        "datasets",
        "export",
        "plots",
        "pyterrier",
        "mlflow",
        "cli",
        "_core",
    }
    return module.startswith("pairgram.") and module.removeprefix("pairgram.") not in public


def imports_of_private_modules():
    """Count the imports of private modules in tests; a file of tests/parts is one place."""
    found = []
    for name, tree in trees_of_tests():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pairgram"):
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                inner = [one for one in whole if one.removeprefix("pairgram.") in PATHS]
                modules = [node.module, *inner]
            else:
                continue
            if any(is_private(module) for module in modules):
                found.append(name if name.parts[0] == "parts" else (name, node.lineno))
    return len(set(found))


@pytest.mark.parametrize(
    ("measure", "bound"),
    [
        (lambda: len(PATHS), 145),
        (lines_of_code, 37_585),
        (lambda: max(len(path.read_text().splitlines()) for path in PATHS.values()), 1000),
        (asks_for_tables, 1),
        (parameters_of_any_type, 3.81),
        (lambda: len(hooks()), 4),
        (lambda: stands_on("rankers.rank_rls"), 80),
        (lambda: stands_on("rankers.fit_many"), 60),
        (lambda: stands_on("solvers.pairgram"), 39),
        (lambda: stands_on("metrics.evaluation"), 21),
        (patched_constants, 0),
        (imports_of_private_modules, 16),
    ],
    ids=[
        "modules",
        "lines of code",
        "longest module",
        "isinstance of Table",
        "percent of Any",
        "hooks",
        "RankRLS stands on",
        "fit_many stands on",
        "Pairgram stands on",
        "evaluate stands on",
        "constants that tests patch",
        "imports of private modules in tests",
    ],
)
def test_the_house_does_not_grow(measure, bound):
    found = measure()
    assert found <= bound
    assert found > 0.97 * bound - 1, f"lower the bound to {found}"


@pytest.mark.parametrize(
    ("ranker", "calls", "modules"),
    [(pairgram.RankRLS(), 168, 26), (pairgram.RankRLSCV(), 366, 33), (pairgram.RankSVM(), 210, 24)],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_fit_does_not_travel_further(ranker, calls, modules):
    X, y, qid = pairgram.make_ranking(100, 20, 20, random_state=0)
    found = travel(lambda: ranker.fit(X, y, qid=qid))
    assert found[0] <= calls and found[1] <= modules
    assert found[0] > 0.97 * calls - 1, f"lower the bounds to {found}"
