"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import pairgram

MODULES = [
    module.name
    for module in pkgutil.walk_packages(pairgram.__path__, "pairgram.")
    if not module.name.endswith(("._core", "._scipy_blas"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_the_main_classes_have_examples():
    for value in (
        pairgram.RankRLS,
        pairgram.RankRLSCV,
        pairgram.RankSVM,
        pairgram.RankSVMCV,
        pairgram.Pairgram,
        pairgram.load_letor,
    ):
        assert ">>>" in value.__doc__
