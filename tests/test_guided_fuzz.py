"""What a fuzzer guided by coverage kept, given to its targets; `.ci/fuzz` looks for more."""

import importlib
import warnings

import pytest

from fuzz.guided import CORPUS, TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_read_as_it_should_be(name):
    target = importlib.import_module(f"fuzz.guided.{name}")
    inputs = sorted((CORPUS / name).iterdir())
    assert len(inputs) > 20
    for path in inputs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                target.check(path.read_bytes())
            except Exception as error:
                error.add_note(str(path))
                raise
