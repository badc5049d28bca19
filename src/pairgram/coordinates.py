"""The coordinates in which a least-squares problem is solved, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pairgram.data import RankingData
from pairgram.linear_nodes import ReducedNodes, reduce_nodes
from pairgram.pairs import PairSettings
from pairgram.ridge import Vector

__all__ = ["Coordinates"]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows as their problem is solved: the same scores, in fewer dimensions.

    Attributes
    ----------
    data : RankingData
        In these coordinates.
    """

    data: RankingData
    _reduced: ReducedNodes | None = None

    @classmethod
    def choose(
        cls, data: RankingData, settings: list[PairSettings], *, scale: bool = False
    ) -> Coordinates:
        """Choose those of the least cost that serve all settings.

        With `scale`, which means the features of the model, those themselves.
        """
        if scale:
            return cls(data)
        pointwise = any(setting.pairs is None for setting in settings)
        reduced = reduce_nodes(data.feature_map, constant=pointwise)
        if reduced is None:
            return cls(data)
        return cls(replace(data, feature_map=reduced.nodes), reduced)

    def coefs(self, solved: Vector) -> Vector:
        """Return the coefficients of the model from those found here, (n_models, n_features)."""
        return solved if self._reduced is None else self._reduced.expand(solved)
