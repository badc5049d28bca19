r"""Inputs that a fuzzer chooses by the code that they reach, and a corpus of those that it kept.

Each module here is a target: `seeds` yields valid small inputs, and `check` takes any bytes and
raises unless they are refused with the documented error or used as they should be. The suite gives
each target its whole corpus, a folder of `tests/fuzz/corpus.tar.xz`. `.ci/fuzz` builds the compiled
code with clang's coverage and sanitizers and lets atheris look for more:

    .ci/fuzz 1200 letor_text model_files

The corpus is made of the seeds and of what was found. These commands, in the environment that
`.ci/fuzz` makes, write the seeds again, keep of all inputs what reaches code of its own, and pack
it:

    tar -xf tests/fuzz/corpus.tar.xz
    python -m tests.fuzz.guided TARGET --seeds SEEDS
    python -m tests.fuzz.guided TARGET -merge=1 corpus/TARGET FOUND SEEDS
    tar -cJf tests/fuzz/corpus.tar.xz --sort=name --owner=0 --group=0 --mtime=@0 corpus
"""

__all__ = ["TARGETS", "corpus_of"]

import tarfile
from collections.abc import Iterator
from pathlib import Path

TARGETS = ("letor_text", "model_files", "pairgram_bytes", "sparse_rows")


def corpus_of(target: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every input that was kept for a target."""
    with tarfile.open(Path(__file__).parents[1] / "corpus.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if f"/{target}/" in member.name else None
            if file is not None:
                yield member.name, file.read()
