"""Tables of the command line fit the terminal, or $COLUMNS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pairgram import make_ranking
from parts.cli import app

pytest.importorskip("pyarrow")

LABELS = ("--label", "relevance", "--qid", "query")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("a_folder_with_quite_a_long_name" * 2)
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    names = [f"a_column_with_quite_a_long_name_{number}" for number in range(4)]
    frame = pd.DataFrame(X, columns=names).assign(relevance=y, query=qid)
    frame.to_parquet(folder / "rows.parquet")
    rng = np.random.default_rng(0)
    for name in ("one", "other"):
        scores = X @ rng.normal(size=4)
        np.savetxt(folder / f"scores_with_quite_a_long_name_of_{name}.txt", scores)
    return folder


def _lines(*arguments: Any) -> list[str]:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.mark.parametrize("columns", [None, "60"])
def test_tables_fit(files: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None) -> None:
    monkeypatch.setenv("COLUMNS", columns or "80")
    room = int(columns or 80)
    rows, model = files / "rows.parquet", files / "m.safetensors"
    scores = sorted(files.glob("scores*.txt"))
    metrics = ("ndcg@1", "ndcg@3", "ndcg@10", "ndcg_linear@10", "map", "mrr", "pairwise_accuracy")
    several = [word for name in metrics for word in ("--metric", name)]
    commands: list[tuple[Any, ...]] = [
        ("train", rows, *LABELS, "-o", files / "auto", "--model", "auto", "--time-budget", "1"),
        ("train", rows, *LABELS, "-o", model),
        ("evaluate", rows, *LABELS, "--model", model, *several, "--per-query"),
        ("compare", rows, *LABELS, *scores),
        ("inspect", model),
    ]
    if columns is None:  # besides tables it prints a line of 80
        commands.append(("demo",))
    for command in commands:
        lines = _lines(*command)
        assert lines and max(map(len, lines)) <= room, (command[0], max(lines, key=len))
