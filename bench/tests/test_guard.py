"""The guard of benchmarks: what it measures, what it lets pass, and what it writes."""

import sys
import time
import tomllib

import pytest


@pytest.fixture
def guard(script, monkeypatch):
    guard = script("guard")
    monkeypatch.setattr(guard, "TURN", 1e-4)
    monkeypatch.setattr(guard, "N_TURNS", 3)
    return guard


def test_a_ratio_is_that_of_the_shortest_times(guard):
    ratio = guard.ratio_of((lambda: time.sleep(0.02), lambda: time.sleep(0.005)))
    assert 2 < ratio < 8
    durations = iter([0.05, 0.02, 0.05])
    ratio = guard.ratio_of((lambda: time.sleep(next(durations)), lambda: time.sleep(0.02)))
    assert 0.4 < ratio < 2


def test_a_high_ratio_is_measured_again(guard, monkeypatch):
    measured = []

    def ratio_of(ways):
        measured.append(ways)
        return [2.0, 1.5, 1.2, 1.8][len(measured) - 1]

    monkeypatch.setattr(guard, "ratio_of", ratio_of)
    assert guard.measure(lambda: "ways", 2.0) == 2.0
    assert len(measured) == 1
    measured.clear()
    assert guard.measure(lambda: "ways", 1.3) == 1.2
    assert len(measured) == 3
    measured.clear()
    assert guard.measure(lambda: "ways", 1.0) == 1.2
    assert len(measured) == 1 + guard.REPEATS == 4
    measured.clear()
    assert guard.measure(lambda: "ways", None) == 1.65  # the median


def test_slow_and_unknown_works_are_named(guard, monkeypatch):
    monkeypatch.setattr(guard, "ratio_of", lambda ways: ways)
    works = {"as ever": lambda: 1.24, "slow": lambda: 2.6, "new": lambda: 0.1}
    committed = {"as ever": 1.0, "slow": 2.0, "gone": 1.0}
    ratios, slow = guard.guard(works, committed)
    assert ratios == {"as ever": 1.24, "slow": 2.6, "new": 0.1}
    assert slow == ["slow", "new"]
    lines = guard.table(ratios, committed, slow).splitlines()[2:]
    assert lines == [
        "| as ever | 1.24 | 1 | 1.25 |  |",
        "| slow | 2.6 | 2 | 2.5 | TOO SLOW |",
        "| new | 0.1 |  |  | not committed |",
    ]


def test_the_exit_code_and_what_is_written(guard, monkeypatch, tmp_path, capsys):
    path = tmp_path / "guard.toml"
    path.write_text("[avx2]\nfast = 1.0\n[sse2]\nfast = 3.0\n")
    monkeypatch.setattr(guard, "COMMITTED", path)
    monkeypatch.setattr(guard, "vector_set", lambda: "avx2")
    monkeypatch.setattr(guard, "WORKS", {"fast": lambda: 1.5, "other, by far": lambda: 0.12345})
    monkeypatch.setattr(guard, "ratio_of", lambda ways: ways)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["guard.py", *words])
        return guard.main()

    assert run("--only", "fast") == 1
    assert "TOO SLOW" in capsys.readouterr().out
    assert run("--update", "--only", "other") == 0
    assert run("--only", "other") == 0
    assert run() == 1
    assert run("--update") == 0
    assert run() == 0
    assert tomllib.loads(path.read_text()) == {
        "avx2": {"fast": 1.5, "other, by far": 0.123},
        "sse2": {"fast": 3.0},
    }
    assert run("--vectors", "sse2", "--only", "fast") == 0
    assert "1.5" in capsys.readouterr().out
    monkeypatch.setattr(guard, "vector_set", lambda: "riscv64")
    assert run() == 1


def test_every_work_has_a_committed_ratio_for_every_machine(guard):
    committed = tomllib.loads(guard.COMMITTED.read_text())
    assert {"avx512f", "avx2"} <= set(committed)
    for ratios in committed.values():
        assert set(ratios) == set(guard.WORKS)
        assert all(0 < ratio < 1_000 for ratio in ratios.values())


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_every_work_runs(guard, monkeypatch, tmp_path):
    rows = guard.data.make(1_000, 20, 10)
    monkeypatch.setattr(guard, "rows", lambda: rows)
    monkeypatch.setattr(guard.data, "DEFAULT_FOLDER", tmp_path / "made")
    monkeypatch.setattr(guard.dual, "make_rows", lambda _, make=guard.dual.make_rows: make(80))
    for make in guard.WORKS.values():
        for way in make():
            way()
