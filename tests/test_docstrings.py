"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import pairgram

SOURCE = Path(pairgram.__file__).parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages(pairgram.__path__, "pairgram.")
    if not module.name.endswith(("._core", "._scipy_blas"))
]
N_DOCSTRINGS, N_EXAMPLES = 29, 109  # at least
WITHOUT = {"BatchFit", "MissingQueryWarning", "__version__", "load_model", "metric_names"}


def examples_of(name):
    """Return the docstrings of a module that have examples."""
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in examples_of(name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_every_module_of_every_folder_is_found():
    """A folder without `__init__.py` would be passed over, and its examples with it."""
    files = {
        ".".join(("pairgram", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in SOURCE.rglob("*.py")
    }
    folders = {name.removesuffix(".__init__") for name in files}
    assert set(MODULES) | {"pairgram"} == folders


def test_no_example_is_lost():
    tests = [test for name in MODULES for test in examples_of(name)]
    assert len(tests) >= N_DOCSTRINGS
    assert sum(len(test.examples) for test in tests) >= N_EXAMPLES
    with_examples = {test.name.rpartition(".")[2] for test in tests}
    assert set(pairgram.__all__) - WITHOUT <= with_examples
