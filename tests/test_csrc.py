"""The folders of the C++ code: who includes whom, who names what, and what the build reaches."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axes import every

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"
FILES = sorted(path for path in CSRC.rglob("*") if path.suffix in (".cpp", ".hpp", ".pyx"))
# Where programs are looked for: beside the interpreter first, as in a virtual environment.
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
# A folder includes itself and folders of lower floors.
FLOORS = {
    "bindings": 4,
    "solvers": 3,
    "features": 2,
    "metrics": 2,
    "data": 1,
    "linear_algebra": 1,
    "datasets": 1,
    "support": 0,
}


def folder_of(path):
    return path.relative_to(CSRC).parts[0]


def name_of(path):
    return str(path.relative_to(CSRC))


def test_every_file_stands_in_a_folder_with_a_floor():
    assert FILES
    assert {folder_of(path) for path in FILES} == set(FLOORS)
    assert not [path for path in CSRC.iterdir() if path.is_file()]


@every(path=FILES)
def test_includes_go_down(path):
    own = folder_of(path)
    for header in re.findall(r'(?:#include|extern from) "([^"]+)"', path.read_text()):
        assert (CSRC / header).is_file(), f"{header} is not a path from csrc"
        other = header.split("/")[0]
        assert other == own or FLOORS[other] < FLOORS[own], f"{own} includes {header}"


def test_bindings_alone_know_python():
    knowing = {
        folder_of(path) for path in FILES if re.search(r"pybind11|Python\.h", path.read_text())
    }
    assert knowing == {"bindings"}


def test_linear_algebra_alone_names_blas():
    bridge = (CSRC / "linear_algebra" / "scipy_blas.pyx").read_text()
    imports = re.findall(r"^from scipy\.linalg\.cython_\w+ cimport (.+)$", bridge, re.MULTILINE)
    routines = {name for line in imports for name in re.split(r",\s*", line)}
    assert {"dgemm", "dpotrf"} <= routines
    pattern = re.compile(rf"\b(?:cblas_|LAPACKE_)?(?:{'|'.join(routines)})_?\b")
    assert {folder_of(path) for path in FILES if pattern.search(path.read_text())} == {
        "linear_algebra"
    }


def test_the_build_names_every_file_and_no_other():
    """CMake takes no notice of properties that are set for a file that does not exist."""
    text = (ROOT / "CMakeLists.txt").read_text()
    named = set(re.findall(r"\bcsrc/([\w/]+\.\w+)", text))
    assert {name for name in named if not (CSRC / name).is_file()} == set()
    sources = {name_of(path) for path in FILES if path.suffix in (".cpp", ".pyx")}
    assert sources <= named
    properties = re.findall(r"set_source_files_properties\(csrc/(\S+)[^)]*\)", text)
    assert "features/activations.cpp" in properties


LINT = r"clang-format --dry-run -Werror (\$\(git ls-files '[^']+'\))"


@pytest.fixture
def repository(tmp_path):
    """A repository with a file in a folder of csrc, and how to run a command in it."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    (tmp_path / "csrc" / "support").mkdir(parents=True)

    def run(command):
        return subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": PROGRAMS},
            capture_output=True,
            text=True,
            check=False,
        )

    def write(name, text):
        (tmp_path / "csrc" / "support" / name).write_text(text)
        assert run("git init -q . && git add -A").returncode == 0

    return write, run


def test_the_lint_commands_list_files_in_folders(repository):
    write, run = repository
    listed = re.findall(LINT, (ROOT / "docs" / "contributing.md").read_text())
    listed += [
        re.search(r"clang-format.*(\$\(git ls-files .*\))", (ROOT / ".ci/run").read_text())[1]
    ]
    assert len(listed) == 2
    for name in ("one.cpp", "one.hpp"):
        write(name, "")
    for files in listed:
        found = run(f"echo {files}").stdout.split()
        assert found == ["csrc/support/one.cpp", "csrc/support/one.hpp"]


@pytest.mark.parametrize("name", ["one.cpp", "one.hpp"])
def test_the_lint_command_refuses_a_misformatted_file_in_a_folder(repository, name):
    if shutil.which("clang-format", path=PROGRAMS) is None:
        pytest.skip("needs clang-format, of the extra 'lint'")
    write, run = repository
    command = re.search(LINT, (ROOT / "docs" / "contributing.md").read_text())[0]
    write(name, "int f() { return 1; }\n")
    assert run(command).returncode == 0
    write(name, "int f( ){return 1;}\n")
    done = run(command)
    assert done.returncode != 0
    assert name in done.stderr
