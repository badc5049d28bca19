"""Tables of the command line fit the terminal, or $COLUMNS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pairgram import make_ranking
from parts.cli import invoke

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
        np.savetxt(folder / f"scores_of_{name}.txt", X @ rng.normal(size=4))
    return folder


def _lines(*arguments: Any) -> list[str]:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_tables_fit(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
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
        ("demo",),
    ]
    for command in commands:
        lines = _lines(*command)
        lines = [line for line in lines if str(files) not in line]  # which a terminal breaks
        assert lines and max(map(len, lines)) <= 80, (command[0], max(lines, key=len))
