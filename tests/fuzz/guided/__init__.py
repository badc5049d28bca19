r"""Inputs that a fuzzer chooses by the code that they reach, and a corpus of those that it kept.

Each module here is a target: `seeds` yields valid small inputs, and `check` takes any bytes and
raises unless they are refused with the documented error or used as they should be. The suite gives
each target the whole corpus, `tests/fuzz/corpus/TARGET`. `.ci/fuzz` builds the compiled code with
clang's coverage and sanitizers and lets atheris look for more:

    .ci/fuzz 1200 letor_text model_files

The corpus is made of the seeds and of what was found. These commands, in the environment that
`.ci/fuzz` makes, write the seeds again and keep of all inputs what reaches code of its own:

    python -m tests.fuzz.guided TARGET --seeds SEEDS
    python -m tests.fuzz.guided TARGET -merge=1 tests/fuzz/corpus/TARGET FOUND SEEDS
"""

__all__ = ["CORPUS", "TARGETS"]

from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
TARGETS = ("letor_text", "model_files", "pairgram_bytes", "sparse_rows")
