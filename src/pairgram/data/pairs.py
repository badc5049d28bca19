"""`Pairs`: what is compared: which pairs of rows count, with what weight, and what is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Vector, not_finite
from pairgram._support.parameters import (
    PairsName,
    Scope,
    Target,
    Weighting,
    check,
    check_parameters,
)

Omega = Callable[[Vector, Vector], Vector]

OMEGAS: dict[str, Omega] = {
    "gain_difference": lambda a, b: np.abs(np.exp2(a) - np.exp2(b)),
    "label_difference": lambda a, b: np.abs(a - b),
}
# The names of the pairs in compiled code, whose other pairs are those of an ω.
_COMPILED = {None: "none", "with_ties": "kept", "without_ties": "dropped"}
# The weights of all pairs must add up to a number between these two: otherwise squares and products
# of solutions would leave the range of floating-point numbers.
SMALLEST_PAIR_WEIGHT, LARGEST_PAIR_WEIGHT = 1e-290, 1e303
# A general ω takes at most this many different labels: a query costs levels³ / 3 flops.
MAX_LEVELS = 1000


@dataclass(frozen=True, repr=False)
class Pairs:
    """What is compared: which pairs of rows count, with what weight, and what is fitted to them.

    Rankers and statistics take it as `pairs`. A kind alone stands for it: ``pairs="without_ties"``
    is ``pairs=Pairs("without_ties")``.

    Parameters
    ----------
    kind : str, callable or None, default="with_ties"
        Weight ω of a pair with labels a and b:

        - "with_ties": 1, tied pairs included;
        - "without_ties": 1 where a ≠ b;
        - "gain_difference": ``|2^a − 2^b|``, the difference of the gains of NDCG;
        - "label_difference": ``|a − b|``;
        - "clicks": ``a + b``, for labels that are clicks / propensities, as those of `Clicks`. Up
          to a constant, the objective of least squares is then
          ``Σ_i y_i Σ_j (1 − (f_i − f_j))²`` over the rows of a query, weighted as usual;
        - a callable ω(a, b) that is symmetric, broadcasts over arrays, and returns finite values
          ≥ 0;
        - None: there are no pairs. The model is fitted to the labels of single rows, without an
          intercept (pointwise regularised least squares).
    scope : {"query", "global"}, default="query"
        "query": pairs are formed within queries. "global": all rows form pairs with each other.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
        What has weight 1 in the objective. Weights of rows are the `sample_weight` of `fit`.

        - "pairs": every pair;
        - "documents": every row (the pairs of a query are multiplied by ``1 / Σ v``);
        - "queries": every query (its pairs are multiplied by ``1 / (½ Σ_ij W_ij)``).
    target : {"label", "gain"}, default="label"
        The model fits differences of labels y, or of their gains ``2^y − 1``, which are those of
        NDCG.

    Raises
    ------
    ValueError
        If a value is not one of those above. The message names it.

    Examples
    --------
    >>> from pairgram import Pairs, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(pairs=Pairs("without_ties", weighting="queries")).fit(X, y, qid=qid)
    >>> model.pairs
    Pairs('without_ties', weighting='queries')
    """

    kind: PairsName | Omega | None = "with_ties"
    _: KW_ONLY
    scope: Scope = "query"
    weighting: Weighting = "pairs"
    target: Target = "label"

    @classmethod
    def of(cls, value: PairsLike, scope: Scope = "query") -> Pairs:
        """Return pairs as they are, or those that a kind alone stands for."""
        if isinstance(value, str):
            return _pairs_of(value, scope)
        return value if isinstance(value, Pairs) else cls(value, scope=scope)

    @property
    def short(self) -> PairsLike:
        """The kind, if it says all, or else the pairs themselves."""
        return self.kind if self == Pairs.of(self.kind) else self

    def in_file(self) -> dict[str, Any]:
        """Return the values by their names, as files hold them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __repr__(self) -> str:
        _, *others = self.in_file().items()
        told = [f"{name}={value!r}" for name, value in others if value != USUAL[name]]
        return f"Pairs({', '.join([repr(self.kind), *told])})"

    def __post_init__(self) -> None:
        check("pairs", self.kind)
        check_parameters(self, "scope", "weighting", "target")
        if not self.is_of_clicks:
            return
        for name, wanted in (("scope", "query"), ("target", "label")):
            if getattr(self, name) != wanted:
                raise ArgumentError(
                    name,
                    f"must be {wanted!r} for clicks, where a list that was shown is a "
                    f"query, got {getattr(self, name)!r}",
                )

    @property
    def compiled(self) -> str:
        """The name of the pairs in compiled code: none, kept, dropped or omega."""
        return "omega" if callable(self.kind) else _COMPILED.get(self.kind, "omega")

    @property
    def is_of_clicks(self) -> bool:
        """Whether every clicked row is compared with all other rows of its list."""
        return isinstance(self.kind, str) and self.kind == "clicks"

    def require_clicks(self) -> None:
        """Raise a ValueError if these are no pairs of clicks."""
        if not self.is_of_clicks:
            raise ArgumentError(
                "pairs", f"must be 'clicks' for statistics of clicks, got {self.short!r}"
            )

    @property
    def are_within_queries(self) -> bool:
        """Whether there are pairs, and all of them within queries."""
        return self.kind is not None and self.scope == "query"

    @property
    def reads_queries(self) -> bool:
        """Whether a fit depends on queries: on pairs within them, or on weights of their rows."""
        return self.are_within_queries or (self.kind is None and self.weighting == "queries")

    @property
    def joins_all_rows(self) -> bool:
        """Whether all rows form pairs, as in one query. Without pairs the scope has no effect."""
        return self.scope == "global" and self.kind is not None

    def factor(self, weight: Vector, pair_weight: Vector) -> Vector:
        """Return what the sums over the pairs of each query are multiplied by.

        They are given the weights of the query's rows and of its pairs in both orders, before they
        are multiplied. Without pairs the sums are those over the rows.
        """
        if self.kind is None:
            return _inverse(weight) if self.weighting == "queries" else np.ones_like(weight)
        if self.weighting == "pairs":
            return np.ones_like(weight)
        return _inverse(weight if self.weighting == "documents" else pair_weight / 2)

    def scatter_factor(self, weight: Vector) -> Vector:
        """Return what the scatter of each query's rows is multiplied by, given their weight.

        All pairs of a query add up to its weight times its scatter. Without pairs the rows count
        as they are, and not as differences from their mean.
        """
        ones = np.where(weight > 0, 1.0, 0.0)
        if self.kind is None:
            return _inverse(weight) if self.weighting == "queries" else ones
        of_queries = 2 * _inverse(weight)
        return {"pairs": weight, "documents": ones, "queries": of_queries}[self.weighting]

    def targets(self, y: Vector) -> Vector:
        """Return the targets whose differences are fitted: labels, or gains 2^y − 1."""
        if self.target == "label":
            return y
        with np.errstate(over="ignore"):
            gains = np.exp2(y) - 1
        if (row := not_finite(gains)) is not None:
            text = f"{{argument}}='gain' is 2^y - 1, too large for label {y[row]} in {{place}}"
            raise ArgumentError("target", text, row=row)
        return gains

    def levels(self, y: Vector) -> tuple[Vector, Vector] | None:
        """Return the distinct labels (K,) and ω of their pairs (K, K), or None if not needed.

        They are needed for every ω other than "with_ties", "without_ties" and "clicks".

        Raises
        ------
        ValueError
            If there are more than 1,000 distinct labels, or if ω is not finite, symmetric and ≥ 0.
        """
        return self._levels(y) if self.compiled == "omega" else None

    def _levels(self, y: Vector) -> tuple[Vector, Vector] | None:
        if self.is_of_clicks:  # compiled code adds the labels up
            if (y < 0).any():
                row = int(np.argmax(y < 0))
                text = f"must hold clicks / propensities, 0 or more, got {y[row]} in {{place}}"
                raise ArgumentError("y", text, row=row)
            return None
        values = np.unique(y)
        if len(values) > MAX_LEVELS:
            raise ValueError(
                f"pairs={self.kind!r} takes at most {MAX_LEVELS} distinct labels, got "
                f"{len(values)}; pairs='with_ties' and pairs='without_ties' take any real labels"
            )
        omega = self.kind if callable(self.kind) else OMEGAS[str(self.kind)]
        with np.errstate(over="ignore", invalid="ignore"):
            weights = real_array(
                omega(values[:, None], values[None, :]), f"what pairs={self.kind!r} gives"
            )
        if weights.shape != (len(values), len(values)):
            raise ValueError(
                "pairs must be a callable that broadcasts like a NumPy ufunc: called with labels "
                f"of shapes ({len(values)}, 1) and (1, {len(values)}), it gave {weights.shape}"
            )
        for wrong, what in (
            (~np.isfinite(weights), "finite"),
            (weights < 0, ">= 0"),
            (weights != weights.T, "symmetric"),
        ):
            if wrong.any():
                i, j = np.argwhere(wrong)[0]
                raise ValueError(
                    f"pair weights must be {what}, but pairs={self.kind!r} gives "
                    f"{weights[i, j]} for labels {values[i]} and {values[j]}"
                )
        return values, np.ascontiguousarray(weights)


PairsLike = Pairs | PairsName | Omega | None
USUAL = Pairs().in_file()


@lru_cache(32)
def _pairs_of(kind: Any, scope: Scope) -> Pairs:
    return Pairs(kind, scope=scope)


def _inverse(values: Vector) -> Vector:
    """Return the inverse of each number, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def no_pairs(settings: Pairs, n_rows: int) -> ValueError:
    """Return the error of rows of which no pair counts, or no row (pointwise)."""
    return ValueError(
        f"no pair of rows counts, with pairs={settings.kind!r} and n_samples={n_rows}: every "
        "query has a single row, or weight 0, or, where tied pairs do not count, rows of one label"
    )


def no_training_pairs(number: int) -> ValueError:
    """Return the error for a split of `cv` that leaves no pairs to train on."""
    return ValueError(
        f"cv: the training rows of split {number} have no pairs that count: give cv a splitter "
        "that leaves some, or fit a validation set"
    )
