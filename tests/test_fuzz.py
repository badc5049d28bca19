"""Damaged and hostile input in child processes, the short form; `python -m tests.fuzz` is the long.

The cases depend on their numbers alone.
"""

from fuzz.campaigns import CAMPAIGNS, TOGETHER
from fuzz.runner import run


def test_no_case_fails():
    report = run(TOGETHER, seed=0, n_cases=TOGETHER.n_short, short=True, n_jobs=1, limit=60)
    assert report.failures == []
    assert sum(report.outcomes.values()) == TOGETHER.n_short
    for name, campaign in CAMPAIGNS.items():
        assert report.outcomes[f"{name}: refused"] > 0.5 * campaign.n_short
