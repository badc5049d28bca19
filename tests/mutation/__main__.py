"""Breaks the compiled code in one place after the other and demands a red test each time.

    python -m tests.mutation [--only TEXT]

copies the repository, builds it without optimisations that take long, checks that the tests are
green there, makes the mutations of `mutations.toml` one by one, builds what changed, and runs the
tests that should see it. Prints a table; the exit code is 1 where a mutation survives, or is none:
it does not compile, crashes or hangs. The build needs CMake, pybind11 and Cython beside what the
tests need.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pybind11

from . import MUTATIONS, ROOT, Mutation

FLAGS = "-O1 -DPAIRGRAM_NO_CLONES -Wno-psabi"  # compiles several times faster than a release
LIMIT = 900  # seconds, of one run of pytest


@dataclass
class Outcome:
    """What became of a mutation: `word` is "red" where a test has seen it."""

    word: str
    by: str  # the test, or the end of an output
    seconds: float = 0.0


class Copy:
    """A copy of the repository, its build, and an environment that imports the package from it."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.build, self.unbroken = (
            folder / "tree",
            folder / "build",
            folder / "unbroken",
        )
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for name in listed.split("\0"):
            if name and (ROOT / name).is_file():
                _copy_if_other(ROOT / name, self.tree / name)
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        command = [
            "cmake",
            *("-S", self.tree, "-B", self.build),
            *(["-G", "Ninja"] if shutil.which("ninja") else []),
            f"-DCMAKE_CXX_FLAGS={FLAGS}",
            "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF",
            f"-DSKBUILD_PROJECT_VERSION={version}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        # An environment of its own, so that no editable installation comes before the copy.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        packages = next((folder / "venv").glob("lib/python*/site-packages"))
        others = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "copy.pth").write_text("\n".join([str(self.tree / "src"), *others]) + "\n")
        self.python = folder / "venv" / "bin" / "python"

    def compile(self, n_jobs: int = 1) -> str:
        """Build what changed; return the errors."""
        done = subprocess.run(
            ["cmake", "--build", self.build, "--parallel", str(n_jobs)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return done.stdout[-2000:] + done.stderr[-2000:]
        for module in self.build.glob("_*.so"):
            _copy_if_other(module, self.tree / "src" / "pairgram" / module.name)
        return ""

    def test(self, tests: list[str]) -> Outcome:
        """Run tests until the first that is red."""
        command = [self.python, "-m", "pytest", "-x", "-q", "--tb=line", "-rfE"]
        command += ["-p", "no:cacheprovider", "-p", "tests.mutation.plugin"]
        command += ["--hypothesis-profile=mutation", *tests]
        environment = os.environ | {
            "PYTHONPATH": str(self.tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            done = subprocess.run(
                command,
                cwd=self.tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome("hangs", f"after {LIMIT} s")
        if done.returncode == 0:
            return Outcome("green", done.stdout.strip().rpartition("\n")[2])
        seen = re.search(r"^(?:FAILED|ERROR) (tests/\S+)", done.stdout, re.MULTILINE)
        if done.returncode != 1 or seen is None:
            return Outcome("no test", (done.stdout + done.stderr)[-2000:])
        return Outcome("red", seen[1])

    def outcome_of(self, mutation: Mutation) -> Outcome:
        """Make a mutation, test it, and take it back."""
        begin = time.perf_counter()
        path = self.tree / "csrc" / mutation.file
        text, times = path.read_text(), path.stat()
        mutation.apply(self.tree / "csrc")
        errors = self.compile()
        outcome = Outcome("does not compile", errors) if errors else self.test(mutation.tests)
        # With the times of before, so that the next build makes only what the next one changes.
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        shutil.rmtree(self.build)
        shutil.copytree(self.unbroken, self.build)
        if outcome.word == "green":
            outcome.word = "SURVIVES"
        outcome.seconds = time.perf_counter() - begin
        return outcome


def _copy_if_other(source: Path, target: Path) -> None:
    """Copy a file unless the target holds the same bytes, so that nothing is built for nothing."""
    if not target.exists() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def make_all(mutations: list[Mutation], folder: Path, n_jobs: int) -> bool:
    """Make mutations, `n_jobs` at a time; print a line for each; return whether all are red."""
    copies: Queue[Copy] = Queue()
    begin = time.perf_counter()
    for job in range(n_jobs):
        copy = Copy(folder / str(job))
        if errors := copy.compile(os.cpu_count() or 1):
            sys.exit(f"the code does not compile:\n{errors}")
        shutil.rmtree(copy.unbroken, ignore_errors=True)
        shutil.copytree(copy.build, copy.unbroken)
        copies.put(copy)
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    whole = {test for test in tests if "::" not in test}
    tests = [test for test in tests if test in whole or test.partition("::")[0] not in whole]
    if (unbroken := copy.test(tests)).word != "green":
        sys.exit(f"without a mutation the tests are not green: {unbroken.by}")
    print(f"unbroken: {unbroken.by}; {time.perf_counter() - begin:.0f} s", flush=True)

    def run(mutation: Mutation) -> bool:
        copy = copies.get()
        outcome = copy.outcome_of(mutation)
        copies.put(copy)
        cells = [mutation.file, mutation.breaks, outcome.word, outcome.by.strip()]
        print(" | ".join([*cells, f"{outcome.seconds:.0f} s"]), flush=True)
        return outcome.word == "red"

    with ThreadPoolExecutor(n_jobs) as pool:
        seen = list(pool.map(run, mutations))
    print(f"{sum(seen)} of {len(seen)} mutations red; {time.perf_counter() - begin:.0f} s")
    return all(seen)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="of the file or what breaks")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--folder", type=Path, help="keeps the builds for the next run")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if arguments.only in m.file or arguments.only in m.breaks]
    if not chosen:
        parser.error(f"no mutation has {arguments.only!r}")
    with tempfile.TemporaryDirectory() as made:
        return 0 if make_all(chosen, arguments.folder or Path(made), arguments.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
