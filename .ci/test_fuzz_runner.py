"""The runner of hostile input tells apart what it counts."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fuzz.campaigns import BROKEN
from fuzz.runner import run, table


def test_the_runner_tells_crashes_hangs_and_losses():
    report = run(BROKEN, seed=0, n_cases=7, short=True, n_jobs=1, limit=2)
    assert report.outcomes == {"refused": 3, "crash": 2, "hang": 1, "silent loss": 1}
    for failure, expected in zip(
        report.failures,
        ("1: crash: SIGSEGV", "2: hang: no", "4: crash: exit code 7", "5: silent"),
        strict=True,
    ):
        assert failure.startswith(f"broken-on-purpose {expected}")
    assert table([report]).splitlines()[1].split()[1:] == ["7", "3", "2", "1", "1", "0"]
