"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import importlib.util
import pkgutil
import warnings
from functools import cache
from pathlib import Path

import pytest

import pairgram

SOURCE = Path(pairgram.__file__).parent
# Packages that need others which the tests do without.
OPTIONAL = {"pairgram.pyterrier": "pyterrier", "pairgram.mlflow": "mlflow"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that are about to remove what others use
    MODULES = [
        module.name
        for module in pkgutil.walk_packages(
            pairgram.__path__, "pairgram.", onerror=lambda name: OPTIONAL[name]
        )
        if not module.name.endswith(("._core", "._scipy_blas"))
    ]
N_DOCSTRINGS, N_EXAMPLES = 29, 109  # at least
WITHOUT = {"BatchFit", "MissingQueryWarning", "__version__", "load_model", "metric_names"}


@cache
def examples_of(name):
    """Return the docstrings of a module that have examples."""
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in found if test.examples]


def package_of(name):
    return ".".join(name.split(".")[:2])


def is_there(name):
    needed = OPTIONAL.get(package_of(name))
    return needed is None or importlib.util.find_spec(needed) is not None


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    if not is_there(name):
        pytest.skip(f"{name} needs a package that is not there")
    monkeypatch.chdir(tmp_path)  # some write files
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        if package_of(name) in OPTIONAL:  # which may use what others are about to remove
            warnings.simplefilter("ignore")
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
    missing = {name for name in folders - {"pairgram"} if is_there(name)} - set(MODULES)
    assert missing == set()
    assert set(MODULES) <= folders


def test_no_example_is_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that only some modules need
        tests = [test for name in MODULES if is_there(name) for test in examples_of(name)]
    assert len(tests) >= N_DOCSTRINGS
    assert sum(len(test.examples) for test in tests) >= N_EXAMPLES
    with_examples = {test.name.rpartition(".")[2] for test in tests}
    assert set(pairgram.__all__) - WITHOUT <= with_examples
