"""Package, extension and stub agree; names come with their first use."""

import ast
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pairgram
import stub
from axes import every
from pairgram import _core

SOURCE = Path(pairgram.__file__).parent


def test_one_version():
    assert pairgram.__version__ == _core.__version__ == importlib.metadata.version("pairgram")


def stub_of_compiled():
    return ast.parse((SOURCE / "_core.pyi").read_text())


def test_the_stub_names_what_the_extension_has():
    named = set()
    for node in stub_of_compiled().body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
    private = {name for name in named if name.startswith("_") and not name.endswith("__")}
    found = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert named - private == found


@every(function=[node for node in stub_of_compiled().body if isinstance(node, ast.FunctionDef)])
def test_the_stub_has_the_arguments_of_the_extension(function):
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    signatures = getattr(_core, function.name).__doc__
    for argument in arguments:
        assert f"{argument.arg}: " in signatures, (argument.arg, signatures)
    first = next(
        line
        for line in signatures.splitlines()
        if f"{function.name}(features" in line or (f"{function.name}(" in line and "->" in line)
    )
    assert first.count(": ") - first.count("::") >= len(arguments)


def test_public_names_exist_and_have_docstrings():
    for name in pairgram.__all__:
        value = getattr(pairgram, name)
        if name != "__version__":
            assert inspect.getdoc(value), name


def test_the_help_names_what_there_is():
    words = pairgram.__doc__.replace(",", " ").split()
    assert set(pairgram.__all__) - {"__version__"} <= set(words)


def test_every_public_name_is_there():
    assert len(set(pairgram.__all__)) == len(pairgram.__all__)
    assert set(pairgram.__all__) == set(pairgram._MODULE_OF) <= set(dir(pairgram))
    for name in pairgram.__all__:
        assert getattr(pairgram, name) is not None
    with pytest.raises(AttributeError, match="'pairgram' has no attribute 'nothing'"):
        _ = pairgram.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from pairgram import nothing  # noqa: F401


def test_type_checkers_see_the_same_names():
    assert stub.PATH.read_text() == stub.text(), "python tests/stub.py makes it"


def test_modules_are_attributes_and_names_come_late():
    code = (
        "import sys, pairgram\n"
        "assert 'numpy' not in sys.modules\n"
        "assert pairgram.metrics.evaluate is pairgram.evaluate\n"
        "assert 'pairgram.rankers.rank_rls' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()


def test_a_scipy_with_other_integers_is_an_import_error():
    """Cython raises this TypeError where the signatures of BLAS differ."""
    program = """
import sys
class Ilp64:
    def find_spec(self, name, path=None, target=None):
        if name == "pairgram._scipy_blas":
            raise TypeError("C function scipy.linalg.cython_blas.dgemm has wrong signature")
sys.meta_path.insert(0, Ilp64())
import pairgram._core
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()
    assert any(line.startswith("ImportError: pairgram needs a SciPy whose BLAS") for line in last)
    assert any("dgemm has wrong signature" in line for line in last)


def test_dir_holds_names_alone():
    assert all(name.isidentifier() for name in dir(pairgram))
    assert {"RankRLS", "metrics", "export"} <= set(dir(pairgram))


def test_what_is_installed_computes_right_numbers():
    """The products of the check call no BLAS, whose kernels for a machine may be wrong."""
    X, y, qid = pairgram.make_ranking(300, 20, 50, random_state=0)
    model = pairgram.RankRLSCV().fit(X, y, qid=qid)
    Z = X - np.array([X[qid == q].mean(axis=0) for q in range(300)])[qid]
    gradient = np.einsum("ij,i->j", Z, 20 * (y - np.einsum("ij,j->i", Z, model.coef_)))
    np.testing.assert_allclose(gradient, model.alpha_ * model.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), np.einsum("ij,j->i", X, model.coef_), atol=1e-9)
    assert model.best_score_ > 0.6


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pybind11 refuses sub-interpreters there")
def test_a_sub_interpreter_is_refused():
    program = """
import _xxsubinterpreters, sys
code = f"import sys; sys.path[:] = {sys.path!r}\\nimport pairgram._core"
_xxsubinterpreters.run_string(_xxsubinterpreters.create(), code)
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "pairgram works in the main interpreter of a process alone" in result.stderr
