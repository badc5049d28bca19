"""The list of mutations fits the compiled code; ``python -m tests.mutation`` makes them."""

from mutation import CSRC, EXEMPT, MUTATIONS, ROOT, sources


def test_every_text_stands_once_in_its_file():
    for mutation in MUTATIONS:
        text = (CSRC / mutation.file).read_text()
        assert text.count(mutation.old) == 1, (mutation.file, mutation.old)
        assert mutation.new != mutation.old
        assert mutation.breaks.endswith("."), mutation
        for test in mutation.tests:
            assert (ROOT / test.partition("::")[0]).is_file(), test


def test_every_source_has_a_mutation():
    assert {mutation.file for mutation in MUTATIONS} | set(EXEMPT) == sources()
    assert len(sources()) > 60
