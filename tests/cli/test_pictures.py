"""``--plot FILE`` writes a picture, or says why not before any work."""

import numpy as np
import pytest
from typer.testing import CliRunner

from pairgram import dump_letor, make_ranking
from parts.cli import app

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def rows(tmp_path):
    X, y, qid = make_ranking(30, 8, 4, random_state=0)
    dump_letor(tmp_path / "rows.txt", X, y, qid=qid)
    return tmp_path / "rows.txt"


def run(rows, *arguments):
    output = rows.parent / "model.safetensors"
    return CliRunner().invoke(app, ["train", str(rows), "-o", str(output), *map(str, arguments)])


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize(
    "model",
    [
        ("--model", "rankrls"),
        ("--model", "elm-pairwise", "--nodes", "10"),
        ("--model", "elmrank", "--nodes", "10"),
        ("--time-budget", "0.5"),
    ],
    ids=lambda model: model[1],
)
def test_searches(rows, model, ending):
    picture = rows.parent / f"picture{ending}"
    found = run(rows, *model, "--plot", picture)
    assert found.exit_code == 0, found.output
    assert picture.read_bytes().startswith(STARTS[ending])
    assert picture.stat().st_size > 5000


def test_differences_of_two_systems(rows, tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        scores = np.random.default_rng(seed).normal(size=len(rows.read_text().splitlines()))
        (tmp_path / f"{name}.scores").write_text("".join(f"{one}\n" for one in scores))
    systems = [str(tmp_path / f"{name}.scores") for name in "ab"]
    arguments = ["compare", str(rows), *systems, "--plot", str(tmp_path / "two.png")]
    found = CliRunner().invoke(app, [*arguments, "--permutations", "100"])
    assert found.exit_code == 0, found.output
    assert (tmp_path / "two.png").read_bytes().startswith(STARTS[".png"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("picture.bmp", "--plot wants a name that ends with .png, .svg or .pdf, got picture.bmp"),
        ("nowhere/picture.png", "its folder does not exist"),
    ],
)
def test_pictures_that_cannot_be_drawn(rows, name, message):
    found = run(rows, "--plot", rows.parent / name)
    assert found.exit_code == 2 or found.exit_code == 1
    assert message in found.output.replace("\n", " ")
    assert [path.name for path in rows.parent.iterdir()] == ["rows.txt"]
