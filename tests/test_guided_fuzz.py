"""What a fuzzer guided by coverage kept, given to its targets; `.ci/fuzz` looks for more."""

import importlib
import warnings

import pytest

from fuzz.guided import TARGETS, corpus_of


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_read_as_it_should_be(name):
    target = importlib.import_module(f"fuzz.guided.{name}")
    n_inputs = 0
    for path, data in corpus_of(name):
        n_inputs += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                target.check(data)
            except Exception as error:
                error.add_note(path)
                raise
    assert n_inputs > 20
