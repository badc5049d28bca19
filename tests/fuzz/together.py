"""The short forms of all campaigns in one child, which imports what they need once."""

from __future__ import annotations

from pathlib import Path

from .campaigns import CAMPAIGNS
from .runner import FAILURES, Case, Outcome


def prepare(folder: Path, short: bool) -> None:
    """Write what each campaign needs, into a folder of its own."""
    for name, campaign in CAMPAIGNS.items():
        (folder / name).mkdir()
        campaign._function("prepare")(folder / name, short)


def cases(folder: Path, seed: int) -> Case:
    """Run the campaigns one after the other; outcomes that may be have their names."""
    numbers = [(name, k) for name, one in CAMPAIGNS.items() for k in range(one.n_short)]
    made = {name: one._function(one.cases)(folder / name, seed) for name, one in CAMPAIGNS.items()}

    def case(number: int) -> Outcome:
        name, own = numbers[number]
        outcome, detail = made[name](own)
        named = outcome if outcome in FAILURES else f"{name}: {outcome}"
        return named, f"{name} {own}: {detail}"

    return case
