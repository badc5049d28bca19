"""Damaged and hostile input in child processes, the short form; `python -m tests.fuzz` is the long.

The cases depend on their numbers alone.
"""

from fuzz.campaigns import BROKEN, CAMPAIGNS, TOGETHER
from fuzz.runner import run, table


def test_no_case_fails():
    report = run(TOGETHER, seed=0, n_cases=TOGETHER.n_short, short=True, n_jobs=1, limit=60)
    assert report.failures == []
    assert sum(report.outcomes.values()) == TOGETHER.n_short
    for name, campaign in CAMPAIGNS.items():
        assert report.outcomes[f"{name}: refused"] > 0.5 * campaign.n_short


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
