"""`Preferences`: comparisons of two rows, which take the place of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

import pairgram._core as _core
from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import cached_property
from pairgram._support.parameters import Loss
from pairgram.comparisons.compared_rows import ComparedRows, compared
from pairgram.comparisons.comparison_judge import BY_COMPARISON, BY_GROUP, BY_ITEM, ComparisonJudge
from pairgram.comparisons.comparison_metrics import evaluate_comparisons
from pairgram.comparisons.coordinates import coordinates_of
from pairgram.comparisons.held_out_comparisons import HeldOutComparisons
from pairgram.data.dataset import RankingData
from pairgram.data.judgements import Judgements
from pairgram.data.pairs import LARGEST_PAIR_WEIGHT, SMALLEST_PAIR_WEIGHT, Pairs
from pairgram.data.queries import Queries, check_weights
from pairgram.metrics.metric import Metric
from pairgram.solvers.formulation import Coordinates

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# What a caller may tell of rows, but not beside comparisons.
_OF_ROWS = ("qid", "sample_weight", "query_weight", "groups")
# `Preferences.from_intervals` lists so many pairs at most.
MOST_PAIRS = 10**7
# Why tools that take arrays of labels cannot take comparisons.
_NO_ARRAY = (
    "Preferences are comparisons of two rows of X, not one label for each row, so no tool that "
    "splits rows, or that looks at labels, can take them: give y=Preferences(...) to fit of "
    "RankRLS, RankSVM or their searches, which hold comparisons out themselves: "
    "RankRLSCV(cv=...) in place of GridSearchCV or cross_validate; n_pairs is their number"
)


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Judgements):
    """Comparisons of rows of X, which take the place of the labels y: "A was preferred to B".

    Parameters
    ----------
    winner, loser : array-like of shape (n_pairs,) of int
        Row numbers of X, counted from 0: the row that was preferred, and the row to which it was
        preferred. A row may be in any number of comparisons, or in none. The same two rows may be
        compared several times.
    weight : array-like of shape (n_pairs,) or float, finite and ≥ 0, or None, default=None
        A weight of 2 is the same as having the comparison twice. A comparison of weight 0 counts as
        absent.
    margin : array-like of shape (n_pairs,) or float, finite and ≥ 0, default=1.0
        By how much the winner is better. 0 is a tie, in which it does not matter which row is
        called the winner. A negative margin is refused: exchange the two rows.
    groups : array-like of shape (n_pairs,), any hashable type, or None, default=None
        Ids of what belongs together, such as the judge, the day or the battle. Searches hold out
        all comparisons of a group together.

    Attributes
    ----------
    winner, loser : ndarray of shape (n_pairs,), int64
    margin : ndarray of shape (n_pairs,), float64
    weight : ndarray of shape (n_pairs,), float64, or None
    groups : ndarray of shape (n_pairs,), or None
    queries : Queries
        The comparisons of every group; all of them if there are no groups.

    Raises
    ------
    ValueError
        If an argument is not as described. The message names it and the comparison.

    Notes
    -----
    Give ``y=Preferences(...)`` to ``fit`` of `RankRLS`, `RankRLSCV`, `RankSVM` or `RankSVMCV`.
    Least squares minimises ``Σ_p w_p (m_p − (f_i − f_j))² + alpha ‖w‖²`` over the comparisons p of
    a winner i and a loser j, each once, with weights w_p and margins m_p. X holds every row once,
    however often it is compared. The fitted model scores rows, as any other.

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import Preferences, RankRLS
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])
    >>> y = Preferences(winner=[2, 2, 1], loser=[0, 1, 0])
    >>> y
    Preferences of 3 comparisons
    >>> scores = RankRLS(alpha=0.1).fit(X, y).predict(X)
    >>> np.argsort(-scores).tolist()
    [2, 1, 0]
    """

    metric: ClassVar[str] = "accuracy"

    winner: Any
    loser: Any
    _: KW_ONLY
    weight: Any = None
    margin: Any = 1.0
    groups: Any = None
    queries: Queries = field(init=False)

    def __post_init__(self) -> None:
        winner, loser = _row_numbers(self.winner, "winner"), _row_numbers(self.loser, "loser")
        n_pairs = len(winner)
        if len(loser) != n_pairs:
            raise ArgumentError(
                "loser", f"must have a row for each of the {n_pairs} of winner, got {len(loser)}"
            )
        if n_pairs == 0:
            raise ArgumentError("winner", "must name at least one row, got none")
        same = winner == loser
        if same.any():
            at = int(np.argmax(same))
            raise ArgumentError(
                "loser",
                f"must be another row than the winner, got row {winner[at]} as both in "
                f"comparison {at}",
            )
        margin = _per_comparison(self.margin, n_pairs, "margin")
        weight = None
        if self.weight is not None:
            weight = _per_comparison(self.weight, n_pairs, "weight")
            total = float(weight.sum())
            if not SMALLEST_PAIR_WEIGHT <= total <= LARGEST_PAIR_WEIGHT:
                raise ArgumentError(
                    "weight",
                    f"must add up to at least {SMALLEST_PAIR_WEIGHT:g} and at most "
                    f"{LARGEST_PAIR_WEIGHT:g}, got {total:.3g}",
                )
        values = {"winner": winner, "loser": loser, "margin": margin, "weight": weight}
        for name, value in values.items():
            if value is not None:
                value = value.copy()  # the caller may change the array
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        # The groups are checked here.
        queries = Queries.make(n_pairs, qid=self.groups, name="groups")
        object.__setattr__(self, "queries", queries)
        if self.groups is not None and queries.ids is not None:
            groups = queries.ids[queries.index()]
            groups.flags.writeable = False
            object.__setattr__(self, "groups", groups)

    @classmethod
    def from_intervals(
        cls, lower: ArrayLike, upper: ArrayLike, qid: ArrayLike | None = None
    ) -> Self:
        """List the pairs of labels in intervals whose order is known, as comparisons.

        An assay that ends at 10 µM reports ">10": `lower` is 10 and `upper` infinity. Such a label
        is censored. Rows are compared if it is known which is higher.

        Parameters
        ----------
        lower, upper : array-like of shape (n_rows,)
            The interval of the label of every row of X: equal bounds for a label that is known,
            −infinity or infinity for a bound that is not.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids. Rows are compared within queries, which become the groups. None means that
            all rows are one query.

        Returns
        -------
        Preferences
            Two labels that are known are compared with the margin ``y_i − y_j``, equal ones as a
            tie. Otherwise i is compared with j if ``lower_i > upper_j``, with that difference as
            the margin: the least by which i is higher.

        Raises
        ------
        ValueError
            If a bound is NaN, if bounds are in the wrong order or both infinite of one sign, if no
            order is known, or if there are more than 10,000,000 pairs.

        Notes
        -----
        `RankSVM` with its default loss asks for differences of scores of at least the margin, which
        is all that is known. Least squares asks for differences equal to the margin. For a censored
        pair this pulls down a difference that may well be larger: for ">10" and 3, towards 7.

        Examples
        --------
        >>> import numpy as np
        >>> from pairgram import Preferences
        >>> y = Preferences.from_intervals([3.0, 10.0, 12.0], [3.0, np.inf, 12.0])
        >>> list(zip(y.winner.tolist(), y.loser.tolist(), y.margin.tolist()))
        [(1, 0, 7.0), (2, 0, 9.0)]
        """
        low, high = real_array(lower, "lower"), real_array(upper, "upper")
        if low.ndim != 1 or low.shape != high.shape:
            raise ArgumentError(
                "upper", f"must have a bound for each of lower, {low.shape}, got {high.shape}"
            )
        for name, bounds, never in (("lower", low, np.inf), ("upper", high, -np.inf)):
            wrong = np.isnan(bounds) | (bounds == never)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ArgumentError(name, f"must not be {bounds[row]}, as in {{place}}", row=row)
        if (low > high).any():
            row = int(np.argmax(low > high))
            raise ArgumentError(
                "lower", f"must be <= upper, got {low[row]} > {high[row]} in {{place}}", row=row
            )
        queries = Queries.make(len(low), qid=qid)
        winner, loser = _pairs_in_order(low, high, queries)
        groups = None
        if qid is not None:
            groups = queries.index()[winner]
            groups = groups if queries.ids is None else queries.ids[groups]
        return cls(winner, loser, margin=low[winner] - high[loser], groups=groups)

    @property
    def comparisons(self) -> Preferences:
        """These comparisons."""
        return self

    def of_rows(self, n_rows: int, weights: Any) -> tuple[Vector, Any]:
        """Return labels of 0, and the weight of the comparisons of every row."""
        self.require_rows(n_rows)
        return np.zeros(n_rows), self.counts(n_rows)

    def taken(self, rows: Rows | slice) -> None:
        """Return None: the numbers of rows are others among some of them."""

    def require_settings(self, settings: Pairs) -> None:
        """Raise a ValueError if settings of pairs say what comparisons say themselves."""
        if settings != Pairs():
            raise ArgumentError(
                "pairs",
                "must be 'with_ties' beside y=Preferences(...), which say themselves what is "
                f"compared, got {settings.short!r}",
            )

    def fitted_by(self, spec: Any) -> Any:
        """Return what a ranker fits to comparisons."""
        return spec.of_preferences(self)

    def compared(self, data: RankingData, H: Matrix) -> ComparedRows:
        """Return the comparisons of rows with features H as a regression without an intercept."""
        return compared(data, H)

    def coordinates(self, data: RankingData, *told: Any) -> Coordinates:
        """Return the coordinates in which least squares of comparisons of rows is solved."""
        return coordinates_of(data, *told)

    def judge(self, data: RankingData, *told: Any, **ways: Any) -> ComparisonJudge:
        """Return what holds comparisons of rows out; see `ComparisonJudge.make`."""
        return ComparisonJudge.make(data, *told, **ways)

    def judge_of_path(self, data: RankingData, *told: Any, exact: bool) -> HeldOutComparisons:
        """Return what judges ridge paths by comparisons of rows that are held out."""
        judge = self.judge(data, *told, exact=exact)
        return HeldOutComparisons(judge.rows, judge)

    def holds_one_by_one(self, cv: object) -> bool:
        """Tell whether items, comparisons or groups are held out of one decomposition."""
        return cv in (BY_ITEM, BY_COMPARISON, BY_GROUP)

    def evaluate(
        self, metrics: Sequence[str | Metric], score: object, per_comparison: bool
    ) -> dict[str, Any]:
        """Return metrics of comparisons by their names; see `pairgram.evaluate`."""
        return evaluate_comparisons(metrics, self, score, per_comparison)

    @property
    def n_pairs(self) -> int:
        """The number of comparisons."""
        return len(self.winner)

    @cached_property
    def w(self) -> Vector:
        """The weights, (n_pairs,); ones if none were given."""
        return np.ones(self.n_pairs) if self.weight is None else self.weight

    def counts(self, n_rows: int) -> Vector:
        """Return the weight of the comparisons of every row, (n_rows,)."""
        both = np.concatenate([self.winner, self.loser])
        return np.asarray(np.bincount(both, np.tile(self.w, 2), minlength=n_rows))

    def loss(self, n_rows: int, name: Loss) -> Any:
        """Return the loss of the comparisons as a function of the scores of rows, compiled.

        Raises
        ------
        ValueError
            If the loss is logistic and a margin is neither 1 nor 0.
        """
        margin = self.margin
        if name == "logistic" and ((margin != 1) & (margin != 0)).any():
            at = int(np.argmax((margin != 1) & (margin != 0)))
            raise ArgumentError(
                "margin",
                "must be 1, or 0 for a tie, with loss='logistic', whose differences of scores are "
                f"log-odds, got {margin[at]} in comparison {at}",
            )
        pairs = _core.Comparisons(n_rows, self.winner, self.loser, self.w)
        return _core.ComparisonLoss(pairs, margin, loss=name)

    def counting(self, counts: Vector) -> Preferences:
        """Return the same comparisons, whose weights are multiplied by counts, (n_pairs,)."""
        told = {"weight": self.w * counts, "margin": self.margin, "groups": self.groups}
        return Preferences(self.winner, self.loser, **told)

    def differences(self, scores: Vector) -> Vector:
        """Return the score of each winner less that of its loser: (..., n_pairs)."""
        return scores[..., self.winner] - scores[..., self.loser]

    def require_rows(self, n_rows: int) -> None:
        """Raise a ValueError if a row number is not one of so many rows; the message names it."""
        for name in ("winner", "loser"):
            rows = getattr(self, name)
            if rows.max() >= n_rows:
                at = int(np.argmax(rows >= n_rows))
                raise ArgumentError(
                    name,
                    f"must be row numbers of X, 0 to {n_rows - 1}, got {rows[at]} in comparison "
                    f"{at}",
                )

    def require_alone(self, told: Mapping[str, object]) -> None:
        """Raise a ValueError if the caller tells of rows what comparisons have no use for."""
        for name in _OF_ROWS:
            if told.get(name) is not None:
                instead = {"sample_weight": "weight", "query_weight": "weight"}.get(name, "groups")
                raise ArgumentError(
                    name,
                    "must be None beside y=Preferences(...), whose comparisons need no queries: "
                    f"give Preferences({instead}=...)",
                )

    @property
    def labels(self) -> NoReturn:
        raise ValueError(_NO_ARRAY)

    def __len__(self) -> NoReturn:
        raise ValueError(_NO_ARRAY)

    def __bool__(self) -> bool:
        return True

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        raise ValueError(_NO_ARRAY)

    def __getitem__(self, key: object) -> NoReturn:
        raise ValueError(_NO_ARRAY)

    def __repr__(self) -> str:
        return f"Preferences of {self.n_pairs} comparisons"


def _pairs_in_order(low: Vector, high: Vector, queries: Queries) -> tuple[Rows, Rows]:
    """Return the winners and losers of all pairs whose order is known, and of ties, once each."""
    losers, n_pairs = [np.empty(0, np.int64)] * len(low), 0
    for query in range(queries.n_queries):
        rows = np.arange(len(low))[queries.rows(query)]
        lows, highs = low[rows], high[rows]
        for row in rows.tolist():
            ties = (lows == high[row]) & (highs == low[row]) & (rows > row)
            losers[row] = rows[(highs < low[row]) | ties]
            n_pairs += len(losers[row])
            if n_pairs > MOST_PAIRS:
                raise ArgumentError(
                    "lower",
                    f"and upper must give at most {MOST_PAIRS:,} pairs whose order is known: take "
                    "fewer rows, or shorter queries",
                )
    if n_pairs == 0:
        raise ArgumentError("lower", "and upper do not tell for any two rows which is higher")
    return np.repeat(np.arange(len(low)), [*map(len, losers)]), np.concatenate(losers)


def _row_numbers(values: ArrayLike, name: str) -> Rows:
    """Return row numbers as int64, after checking that they are integers ≥ 0."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(
            name,
            "must be row numbers of X, one integer for each comparison, got an array of shape "
            f"{array.shape} and type {array.dtype}: pandas.Index(names).get_indexer(values) finds "
            "the rows of names",
        )
    rows = np.ascontiguousarray(array, np.int64)
    if (rows < 0).any():
        at = int(np.argmax(rows < 0))
        raise ArgumentError(name, f"must be row numbers >= 0, got {rows[at]} in comparison {at}")
    return rows


def _per_comparison(values: ArrayLike, n_pairs: int, name: str) -> Vector:
    """Return a finite number >= 0 for every comparison."""
    try:
        return check_weights(values, n_pairs, name)
    except ArgumentError as error:
        if error.row is not None:
            error.place = f"comparison {error.row}"
        raise
