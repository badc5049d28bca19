"""`Clicks`: clicks on the rows of lists that were shown, which take the place of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import cached_property
from pairgram.data.clicks import wrong_click
from pairgram.data.judgements import Judgements
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries
from pairgram.metrics.metric import Metric, per_query_scores


@dataclass(frozen=True, eq=False, repr=False)
class Clicks(Judgements):
    """Clicks on lists that were shown, which take the place of the labels y.

    Parameters
    ----------
    clicked : array-like of shape (n_rows,), finite and ≥ 0
        How often each row was clicked: 0 or 1, or counts of equal lists.
    propensity : array-like of shape (n_rows,)
        The probability that a user looked at a row when its list was shown, above 0 and at most 1
        for every row with a click. Rows that were not shown have the propensity 0 or NaN, and lose
        against every click: leave out what had no chance to be shown. See `estimate_propensities`.

    Attributes
    ----------
    clicked, propensity : ndarray of shape (n_rows,), float64
    labels : ndarray of shape (n_rows,), float64
        Clicks / propensities; 0 for rows without a click.

    Raises
    ------
    ValueError
        If an argument is not as described. The message names it and the row.

    Notes
    -----
    Give ``y=Clicks(clicked, propensity)`` to ``fit``, with one ``qid`` for each list that was
    shown. Each click counts 1 / propensity times, and compares its row with all other rows of its
    list: with ``a`` for `labels`, `RankRLS` minimises
    ``Σ_i a_i Σ_j v_i v_j (1 − (f_i − f_j))² + alpha ‖w‖²`` with the weights v of rows, and
    `RankSVM` takes the squared hinge of the same pairs. So `pairs` may only
    have another weighting. Searches judge by "ips_dcg@10", in which clicks count as in the
    fit. Tools of scikit-learn split clicks as they split arrays.

    Examples
    --------
    >>> from pairgram import Clicks, RankRLS
    >>> y = Clicks([0, 1, 1, 0], propensity=[1.0, 0.5, 1.0, 0.5])
    >>> y
    Clicks on 2 of 4 rows
    >>> y.labels
    array([0., 2., 1., 0.])
    >>> RankRLS().fit([[0.0], [1.0], [2.0], [0.0]], y, qid=[1, 1, 2, 2]).coef_.round(2)
    array([0.57])
    """

    metric: ClassVar[str] = "ips_dcg@10"
    ndim: ClassVar[int] = 1

    clicked: Any
    propensity: Any

    def __post_init__(self) -> None:
        clicked, propensity = (
            real_array(self.clicked, "clicked"),
            real_array(self.propensity, "propensity"),
        )
        for name, values in (("clicked", clicked), ("propensity", propensity)):
            if values.shape != (clicked.size,):
                text = f"must have one number for each of {clicked.size} rows, got {values.shape}"
                raise ArgumentError(name, text)
            object.__setattr__(self, name, values)
        if (wrong := wrong_click(clicked, propensity)) is not None:
            row, of_clicks, text = wrong
            name = "clicked" if of_clicks else "propensity"
            raise ArgumentError(name, f"{text} in {{place}}", row=row)

    @cached_property
    def shown(self) -> Vector:
        """What clicks are divided by: the propensities of clicked rows, and 1 for all others."""
        return np.where(self.clicked > 0, self.propensity, 1.0)

    @cached_property
    def labels(self) -> Vector:
        """Clicks / propensities, (n_rows,)."""
        return self.clicked / self.shown

    def clipped(self, clip: float) -> Vector:
        """Return clicks / propensities, (n_rows,), with smaller propensities raised to a clip."""
        self._require_click()
        return self.labels * (self.shown / np.maximum(self.shown, clip))

    def judged(
        self, metrics: Sequence[Metric], scores: Vector, queries: Queries, weights: Vector | None
    ) -> tuple[Vector, dict[str, Vector]]:
        """Return metrics, (n_metrics, n_scores, n_queries), and statistics of each by name."""
        every: list[Vector] = []
        told: dict[str, Any] = {}
        share = (queries.sizes > 0) * (1.0 if weights is None else weights)
        gains_of = [metric.judged_labels(self.labels, self) for metric in metrics]
        for metric, gains in zip(metrics, gains_of, strict=True):
            values = per_query_scores((metric,), gains, scores, queries)[0]
            every.append(values)
            name, filled = metric.name, np.nan_to_num(values)
            of_row = share[queries.index()] * gains
            deviations = share * (filled - Metric.mean(values, weights)[..., None])
            n_counted = int(np.count_nonzero(share))
            # The spread is unknown of a single query.
            spread = n_counted / (n_counted - 1) if n_counted > 1 else np.nan
            with np.errstate(invalid="ignore", divide="ignore"):  # no click may weigh
                error = np.sqrt((deviations**2).sum(axis=-1) * spread) / share.sum()
                told |= {
                    f"{name} standard error": error,
                    f"{name} self-normalised": (share * filled).sum(axis=-1) / of_row.sum(),
                    f"{name} clipped": np.mean(self.shown[self.clicked > 0] < (metric.clip or 0)),
                    f"{name} effective clicks": 1.0 / ((of_row / of_row.sum()) ** 2).sum(),
                }
        return np.stack(every), {name: np.asarray(value) for name, value in told.items()}

    def of_rows(self, n_rows: int, weights: Any) -> tuple[Vector, Any]:
        """Return clicks / propensities, and the weights as they are."""
        if len(self) != n_rows:
            text = f"must have a click or 0 for each of the {n_rows} rows of X, got {len(self)}"
            raise ArgumentError("y", text)
        return self.labels, weights

    def taken(self, rows: Rows | slice) -> Clicks:
        """Return the clicks on these rows alone."""
        return self[rows]

    def require_settings(self, settings: Pairs) -> None:
        """Raise a ValueError if statistics are not of the pairs of clicks."""
        settings.require_clicks()

    def fitted_by(self, spec: Any) -> Any:
        """Return what a ranker fits to clicks."""
        self._require_click()
        return spec.of_clicks()

    def _require_click(self) -> None:
        if not self.clicked.any():
            raise ArgumentError("y", "has no click: Clicks are above 0 where one clicked")

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, as that of an array."""
        return self.clicked.shape

    def __len__(self) -> int:
        return len(self.clicked)

    def __getitem__(self, rows: Any) -> Clicks:
        return Clicks(self.clicked[rows], self.propensity[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        raise ValueError(
            "Clicks are more than one label for each row: give y=Clicks(...) to fit, score or "
            "evaluate, or take the attribute labels, which are clicks / propensities"
        )

    def __repr__(self) -> str:
        return f"Clicks on {np.count_nonzero(self.clicked)} of {len(self)} rows"
