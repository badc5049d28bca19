"""Run a target under atheris, or write its seeds.

python -m tests.fuzz.guided TARGET [OPTION OF LIBFUZZER ...] [FOLDER ...]
python -m tests.fuzz.guided TARGET --seeds FOLDER
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import warnings
from pathlib import Path

import atheris

from . import TARGETS


def main() -> None:
    target, *options = sys.argv[1:] or [""]
    if target not in TARGETS:
        sys.exit(f"{__doc__}\nTARGET is one of {', '.join(TARGETS)}.")
    sys.path.insert(0, str(Path(__file__).parents[2]))  # the references of the tests
    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["pairgram"]):
        module = importlib.import_module(f".{target}", __package__)
    if options[:1] == ["--seeds"]:
        folder = Path(options[1])
        folder.mkdir(parents=True, exist_ok=True)
        for seed in module.seeds():
            (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
        return

    def check(data: bytes) -> None:
        try:
            module.check(data)
        except BaseException:
            print(f"{data!r} is a finding:", file=sys.stderr, flush=True)
            raise

    # What libFuzzer starts again where it merges; it puts the words together with blanks.
    again = f"{sys.executable} -m {__package__} {target}"
    atheris.Setup([again, *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
