"""Roads: ways to the same model that must lead to the same answers.

Add a road by the decorator `road`. An estimator adds itself to `journeys.KINDS`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from journeys import KINDS, Journey
from outcomes import NUDGE, NUDGE_32, Outcome, Reference, arrive, outcome_of


@dataclass(frozen=True)
class Road:
    """A way to a model.

    Attributes
    ----------
    name : str
    travel : callable
        Leads a journey to an outcome, or to None if the road is not open to it.
    kinds : tuple of str
        The kinds of estimators that go this road.
    plain : callable
        The road that it is held against.
    refuses : tuple of str
        Regular expressions of the errors that the documentation states for this road alone.
    spares : str or None
        A regular expression of the errors that the plain road has, and this road need not have.
    nudge : float
        The share of the deviations of a column by which its numbers may be rounded.
    nudge_values : bool
        Whether it is a share of the values themselves, so that a common offset loses digits.
    """

    name: str
    travel: Callable[[Journey], Outcome | None]
    kinds: tuple[str, ...]
    plain: Callable[[Journey], Outcome]
    refuses: tuple[str, ...] = ()
    spares: str | None = None
    nudge: float = NUDGE
    nudge_values: bool = False

    def faults(self, journey: Journey) -> list[str] | None:
        """Return what is wrong at the end of the road, or None if it is closed."""
        outcome = arrive(self.travel, journey)
        if outcome is None:
            return None
        reference = Reference(
            self.plain,
            journey,
            nudge_values=self.nudge_values,
            exact=self.nudge < NUDGE_32,
        )
        refused = str(reference.outcome.error)
        if self.spares is not None and outcome.error is None and re.search(self.spares, refused):
            return []
        if outcome.error is not None and reference.outcome.error is None:
            text = str(outcome.error)
            if any(re.search(pattern, text) for pattern in self.refuses):
                return []
        return reference.faults(outcome, self.nudge)


def plain(journey: Journey) -> Outcome:
    """Fit arrays of float64, and score the same rows."""
    return outcome_of(journey, journey.fit())


ROADS: dict[str, Road] = {}
ALL = tuple(KINDS)
SINGLE = tuple(kind for kind in KINDS if "CV" not in kind)
SEARCHES = tuple(kind for kind in KINDS if "CV" in kind)
OF_CLICKS = tuple(kind for kind in KINDS if KINDS[kind].told == "clicks")
OF_GROUPS = tuple(kind for kind in KINDS if KINDS[kind].told == "groups")
WITH_GAPS = tuple(kind for kind in KINDS if KINDS[kind].told == "gaps")
COMPARED = tuple(kind for kind in KINDS if KINDS[kind].told == "comparisons")
LINEAR = ("RankRLS", "RankRLSCV", "RankRLSCV of folds", "RankSVM", "RankSVMCV")


def road(
    kinds: tuple[str, ...] = ALL, **named: Any
) -> Callable[[Callable[[Journey], Outcome | None]], Callable[[Journey], Outcome | None]]:
    """Add a function to the roads, under its name."""

    def added(travel: Callable[[Journey], Outcome | None]) -> Any:
        name = travel.__name__.replace("_", " ").strip()
        assert name not in ROADS, name
        ROADS[name] = Road(name, travel, kinds, **({"plain": plain} | named))
        return travel

    return added
