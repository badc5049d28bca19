"""What a road leads from: drawn rows, and an estimator with drawn settings."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import assume, strategies as st
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import pairgram as pg
from forms import in_form
from row_value import row_value


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a data set; the rows of a query stand together, so that tables may hold them.

    With propensities, y are clicks. Comparisons take the place of y, of the ids and of the weights.
    """

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray
    weight: np.ndarray | None = None
    propensity: np.ndarray | None = None
    groups: np.ndarray | None = None
    preferences: pg.Preferences | None = None

    def __len__(self) -> int:
        return len(self.y)

    def taken(self, rows: Any) -> "Rows":
        assert self.preferences is None
        others = (self.weight, self.propensity, self.groups)
        parts = [None if one is None else one[rows] for one in others]
        return Rows(self.X[rows], self.y[rows], self.query[rows], *parts)

    def rounded_to_float32(self) -> "Rows":
        """Return rows that an engine of float32 reads as they are."""
        return replace(self, X=self.X.astype(np.float32).astype(np.float64))

    @property
    def names(self) -> list[str]:
        return [f"f{j}" for j in range(self.X.shape[1])]

    @property
    def offsets(self) -> np.ndarray:
        starts = np.flatnonzero(np.diff(self.query, prepend=-1))
        return np.append(starts, len(self))

    @property
    def labels(self) -> Any:
        """What ``fit`` takes for y."""
        if self.propensity is not None:
            return pg.Clicks(self.y, self.propensity)
        return self.y if self.preferences is None else self.preferences

    @property
    def others(self) -> dict[str, np.ndarray]:
        """The columns beside labels, ids and weights, by the names that tables have."""
        named = {"propensity": self.propensity, "groups": self.groups}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def fit_arguments(self) -> dict[str, Any]:
        if self.preferences is not None:
            return {}
        groups = {} if self.groups is None else {"groups": self.groups}
        return {"qid": self.query, "sample_weight": self.weight, **groups}


@dataclass(frozen=True, eq=False)
class Journey:
    """An estimator that is not fitted, the rows that it is to be fitted to, and a seed."""

    estimator: Any
    rows: Rows
    seed: int

    @property
    def is_search(self) -> bool:
        return type(self.estimator).__name__.endswith("CV")

    @property
    def parameters(self) -> dict[str, Any]:
        return self.estimator.get_params(deep=False)

    @property
    def is_pointwise(self) -> bool:
        """Whether the labels themselves are fitted. Else a constant says nothing."""
        pointwise = isinstance(self.estimator, (pg.PointwiseELM, pg.PointwiseELMCV))
        pairs = self.parameters.get("pairs", "with_ties")
        return pointwise or getattr(pairs, "kind", pairs) is None

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def fit(self, rows: Rows | None = None, **changed: Any) -> Any:
        """Fit a clone to the rows, with changed arguments of ``fit``."""
        rows = self.rows if rows is None else rows
        arguments = {"X": rows.X, "y": rows.labels, **rows.fit_arguments} | changed
        return clone(self.estimator).fit(
            **{name: value for name, value in arguments.items() if value is not None}
        )

    def with_parameters(self, **changed: Any) -> "Journey":
        return replace(self, estimator=clone(self.estimator).set_params(**changed))

    def in_form(self, form: str) -> "Journey":
        """Return the journey in this form, if its ranker solves one."""
        own = clone(self.estimator)
        solves = hasattr(own._spec(), "form")
        return replace(self, estimator=in_form(form, own) if solves else own)

    def nudged(self, share: float, seed: int, values_too: bool = False) -> "Journey":
        """Return the journey with columns that differ by a share of their deviations, or values.

        Equal values of a column stay equal, so constants and repeated rows stay what they are. The
        weights of the rows differ by the share too, so that every sum is rounded otherwise.
        """
        rng = np.random.default_rng(seed)
        X = self.rows.X.copy()
        for column in X.T:
            known = ~np.isnan(column)
            values, place = np.unique(column[known], return_inverse=True)
            if not len(values):
                continue
            centre = 0.0 if values_too else values[np.argmin(np.abs(values - np.median(values)))]
            moved = values + share * rng.choice([-1.0, 1.0], len(values)) * (values - centre)
            column[known] = moved[place]
        weight = np.ones(len(X)) if self.rows.weight is None else self.rows.weight
        least = min(share, 2.0**-40)
        weight = weight * (1.0 + least * rng.choice([-1.0, 1.0], len(X)))
        compared = self.rows.preferences
        if compared is not None:
            moved = 1.0 + least * rng.choice([-1.0, 1.0], compared.n_pairs)
            compared = compared.counting(moved)
        return replace(self, rows=replace(self.rows, X=X, weight=weight, preferences=compared))


SHAPES = ("wide", "square", "tall", "column")
LABELS = ("levels", "binary", "negative", "real", "tied")
# What is done to the columns of some rows, one after the other.
Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _repeated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X[rng.integers(0, max(1, len(X) // 2), len(X))]


def _one_column(change: Callable[[np.ndarray, np.random.Generator], Any]) -> Change:
    def changed(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        X[:, j] = change(X[:, (j := rng.integers(X.shape[1]))], rng)
        return X

    return changed


CHANGES: dict[str, Change] = {
    "as drawn": lambda X, rng: X,
    "repeated rows": _repeated,
    "whole numbers": lambda X, rng: np.round(3 * X),
    "0 and 1": lambda X, rng: (X > 0).astype(float),
    "one of the columns": lambda X, rng: np.eye(X.shape[1])[np.argmax(X, axis=1)],
    "a sum": lambda X, rng: np.hstack([X[:, 1:], X[:, 1:].sum(axis=1, keepdims=True)]),
    "a constant": _one_column(lambda column, rng: 7.5),
    "a large constant": _one_column(lambda column, rng: 1.7e9),
    "nearly constant": _one_column(lambda column, rng: 1.0 + 1e-9 * column),
    "a common offset": _one_column(lambda column, rng: column + 1e5),
    "tiny": _one_column(lambda column, rng: 1e-6 * column),
    "huge": _one_column(lambda column, rng: 1e6 * column),
    "all tiny": lambda X, rng: 1e-9 * X,
    "all huge": lambda X, rng: 1e9 * X,
}


@st.composite
def rows_of_queries(draw: Any) -> Rows:
    """Draw rows of every awkward kind."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(SHAPES))
    if draw(st.booleans()) and shape != "wide":
        sizes = np.array([draw(st.integers(2, 12))])  # one list
    else:
        many = 4 if shape in ("wide", "square") else 12
        sizes = rng.choice([1, 2, 3, 5, 8], size=draw(st.integers(2, many)))
    n = int(sizes.sum())
    d = {
        "wide": n + draw(st.integers(1, 8)),
        "square": n,
        "tall": draw(st.integers(2, 6)),
        "column": 1,
    }[shape]
    X = rng.normal(size=(n, d))
    hidden = X @ rng.normal(size=d) + draw(st.sampled_from([0.0, 1.0, 100.0])) * rng.normal(size=n)
    for change in draw(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=2)):
        X = CHANGES[change](X, rng)
    thirds = np.digitize(hidden, np.quantile(hidden, [0.5, 0.8])).astype(float)
    y = {
        "levels": thirds,
        "binary": np.minimum(thirds, 1.0),
        "negative": thirds - 1.0,
        "real": np.round(3 * hidden / np.abs(hidden).max(), 3),
        "tied": np.full(n, 1.0),
    }[draw(st.sampled_from(LABELS))]
    query = np.repeat(rng.permutation(len(sizes)), sizes)
    if draw(st.sampled_from([False, False, False, True])):  # columns that describe the query
        X[:, : d // 2] = X[np.repeat(np.cumsum(sizes) - sizes, sizes), : d // 2]
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n) if draw(st.booleans()) else None
    return Rows(np.ascontiguousarray(X), y, query, weight)


@dataclass(frozen=True)
class Kind:
    """An estimator and the settings that are drawn for it.

    A ridge is a share of the sum of squares of the columns, so that it matters at every scale.
    `told` is what the rows have: a name of `OF_ROWS`.
    """

    make: Callable[..., Any]
    settings: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    ridge: str | None = None
    ridges: str | None = None
    told: str = "labels"


def _clicks(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows that were shown, of which some were clicked, once or twice."""
    n = len(rows)
    clicks = (rng.random(n) < 0.4) * rng.integers(1, 3, n).astype(float)
    if n > 1:
        clicks[rng.integers(n)] = 1.0
    unseen = rng.choice([0.0, np.nan, 0.7], n)
    shown = np.where(clicks > 0, rng.choice([1.0, 0.5, 0.2], n), unseen)
    return replace(rows, y=clicks, propensity=shown)


def _in_groups(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows with groups of one query to three."""
    numbers = np.unique(rows.query, return_inverse=True)[1]
    n_queries = numbers.max() + 1
    of_query = rng.permutation(n_queries) // rng.integers(1, 4)
    return replace(rows, groups=of_query[numbers])


def _comparisons(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows of which some are compared, now and then as a tie, or in groups."""
    n, n_pairs = len(rows), rng.integers(2, 3 * len(rows))
    first = rng.integers(0, n, n_pairs)
    second = (first + rng.integers(1, n, n_pairs)) % n
    wins = rows.y[first] >= rows.y[second]
    margin = rng.choice([0.0, 1.0, 2.5], n_pairs)
    margin[0] = 1.0
    compared = pg.Preferences(
        np.where(wins, first, second),
        np.where(wins, second, first),
        margin=margin,
        weight=rng.choice([0.5, 1.0], n_pairs) if rng.random() < 0.5 else None,
        groups=np.arange(n_pairs) % 3 if rng.random() < 0.5 else None,
    )
    return replace(rows, weight=None, preferences=compared)


def _with_gaps(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows of which some values are missing; a column has a value or none at all."""
    X = rows.X.copy()
    X[rng.random(X.shape) < rng.choice([0.05, 0.3])] = np.nan
    if X.shape[1] > 2 and rng.random() < 0.2:
        X[:, rng.integers(X.shape[1])] = np.nan
    return replace(rows, X=X)


OF_ROWS: dict[str, Callable[[Rows, np.random.Generator], Rows]] = {
    "labels": lambda rows, rng: rows,
    "clicks": _clicks,
    "groups": _in_groups,
    "comparisons": _comparisons,
    "gaps": _with_gaps,
}
PAIRS = ("with_ties", "without_ties", "gain_difference", "label_difference", "clicks", None)
SHARES = (1e-7, 1e-3, 1.0, 10.0)
INPUTS = (None, None, "standard", "minmax", "maxabs", "quantile", "raw+quantile")
MAPS = (
    pg.RandomNodes(7, random_state=0),
    pg.RandomFourier(6, random_state=1),
    pg.Nystroem(n_components=5, random_state=2),
    StandardScaler(),
    pg.Cross(0, slice(1, None)),
    pg.Cross(slice(1, None, 2), slice(2, None, 2), keep=0),
)
HELD_OUT = {
    "scoring": (None, None, "ndcg@10", "pairwise_accuracy", "pairwise_squared_error"),
}
MISSING = ("zero", "mean", "median")
WEIGHTINGS = ("pairs", "documents", "queries")
RIDGE = {"pairs": tuple(pg.Pairs(kind, weighting=w) for kind in PAIRS for w in WEIGHTINGS)}
OF_SVM = {"pairs": tuple(pg.Pairs("without_ties", weighting=w) for w in WEIGHTINGS)}
KERNELS = {
    "feature_map": tuple(
        pg.Kernel(kernel, gamma=gamma)
        for kernel in ("linear", "rbf", "laplacian", "minmax")
        for gamma in (None, 0.3)
    )
}
NODES = {"n_nodes": (5, 30), "activation": ("linear", "sigmoid", "gaussian"), "random_state": (0,)}
OF_CLICKS = tuple(
    pg.Pairs(kind, weighting=w) for kind in ("with_ties", "clicks") for w in WEIGHTINGS
)
WITHIN_LISTS = {"scale": (False, True), "inputs": INPUTS}

KINDS = {
    "RankRLS": Kind(
        pg.RankRLS,
        {
            "pairs": tuple(
                replace(pairs, scope=scope, target=target)
                for pairs in RIDGE["pairs"]
                if pairs.kind != "clicks"
                for scope in ("query", "query", "global")
                for target in ("label", "gain")
            ),
            "scale": (False, False, True),
            "inputs": INPUTS,
        },
        ridge="alpha",
    ),
    "RankRLS of a map": Kind(pg.RankRLS, {**RIDGE, "feature_map": MAPS, "inputs": INPUTS}, "alpha"),
    "RankRLS of a kernel": Kind(pg.RankRLS, {**RIDGE, **KERNELS, "inputs": INPUTS}, "alpha"),
    "RankRLS with constraints": Kind(
        pg.RankRLS,
        {
            **RIDGE,
            "constraint": (pg.Positive(), None, pg.Positive([0]), pg.MaxNonzero(1)),
            "scale": (False, True),
        },
        "alpha",
    ),
    "RankRLSCV": Kind(pg.RankRLSCV, {**RIDGE, **HELD_OUT, "inputs": INPUTS}),
    "RankRLSCV of choices": Kind(
        pg.RankRLSCV,
        {
            "pairs": (
                "with_ties",
                ["with_ties", "without_ties"],
                ["gain_difference", None],
                [pg.Pairs(kind, target="gain") for kind in ("with_ties", None)],
            ),
            "scale": (False, [False, True]),
            "inputs": (None, [None, "standard"], ["quantile", "raw+quantile"]),
            **HELD_OUT,
        },
        ridges="alphas",
    ),
    "RankRLSCV of folds": Kind(
        pg.RankRLSCV,
        {
            **RIDGE,
            **HELD_OUT,
            "cv": (2, pg.QueryKFold(2), pg.QueryKFold(2, shuffle=True, random_state=0)),
        },
    ),
    "RankRLSCV of a kernel": Kind(pg.RankRLSCV, {**RIDGE, **KERNELS, **HELD_OUT}, ridges="alphas"),
    "RankRLSCV of a map": Kind(pg.RankRLSCV, {**RIDGE, **HELD_OUT, "feature_map": MAPS}),
    "PointwiseELM": Kind(pg.PointwiseELM, {**NODES, "inputs": INPUTS}),
    "PairwiseELM": Kind(pg.PairwiseELM, {**NODES, "pairs": PAIRS[:-1], "inputs": INPUTS}),
    "PointwiseELMCV": Kind(pg.PointwiseELMCV, {**NODES, **HELD_OUT}),
    "PairwiseELMCV": Kind(pg.PairwiseELMCV, {**NODES, **HELD_OUT, "pairs": PAIRS[:-1]}),
    "ELMRank": Kind(
        pg.ELMRank,
        {
            **NODES,
            "pairs": (pg.Pairs(), "with_ties"),
            "n_estimators": (1, 3),
            "activation": ("sigmoid",),
        },
    ),
    "ELMRankCV": Kind(
        pg.ELMRankCV,
        {
            **HELD_OUT,
            "n_nodes": (5,),
            "random_state": (0,),
            "cv": (2, None),
            "Cs": ([1.0, 1024.0],),
            "alphas": ([1e-3, 1.0],),
        },
    ),
    "RankSVM": Kind(
        pg.RankSVM,
        {
            **OF_SVM,
            "tol": (1e-9,),
            "inputs": INPUTS,
            "C": (1e-2, 1.0),
        },
    ),
    "RankSVMCV": Kind(
        pg.RankSVMCV,
        {**HELD_OUT, "Cs": ([1e-2, 1.0],), "tol": (1e-9,), "cv": (2, pg.QueryKFold(2))},
    ),
    "RankRLS of clicks": Kind(
        pg.RankRLS,
        {"pairs": OF_CLICKS, **WITHIN_LISTS},
        "alpha",
        told="clicks",
    ),
    "RankRLSCV of clicks": Kind(
        pg.RankRLSCV,
        {
            "scoring": (None, "ips_dcg@3"),
            "cv": (None, 2),
            "inputs": (None, "standard", [None, "quantile"]),
        },
        ridges="alphas",
        told="clicks",
    ),
    "RankSVM of clicks": Kind(
        pg.RankSVM,
        {**OF_SVM, "tol": (1e-9,), "C": (1e-2, 1.0)},
        told="clicks",
    ),
    "RankSVMCV of clicks": Kind(
        pg.RankSVMCV, {"Cs": ([1e-2, 1.0],), "tol": (1e-9,), "cv": (2,)}, told="clicks"
    ),
    "RankRLSCV by evidence": Kind(
        pg.RankRLSCV,
        {
            "scoring": ("evidence",),
            "pairs": tuple(
                pg.Pairs(weighting="documents", scope=scope)
                for scope in ("query", "query", "global")
            ),
            "scale": (False, False, [False, True]),
            "inputs": (None, None, "standard", [None, "quantile"]),
        },
        ridges="alphas",
    ),
    "RankRLSCV of groups": Kind(
        pg.RankRLSCV, {**RIDGE, **HELD_OUT, "cv": (None, 2, "forward")}, told="groups"
    ),
    "RankSVMCV of groups": Kind(
        pg.RankSVMCV,
        {**HELD_OUT, "Cs": ([1e-2, 1.0],), "tol": (1e-9,), "cv": (2, "forward")},
        told="groups",
    ),
    "RankRLS with gaps": Kind(
        pg.RankRLS,
        {**RIDGE, "missing": MISSING, "scale": (False, True), "inputs": INPUTS},
        "alpha",
        told="gaps",
    ),
    "RankRLSCV with gaps": Kind(
        pg.RankRLSCV,
        {**RIDGE, **HELD_OUT, "missing": MISSING, "inputs": (None, "standard", [None, "quantile"])},
        ridges="alphas",
        told="gaps",
    ),
    "RankSVM with gaps": Kind(
        pg.RankSVM, {"missing": MISSING, "tol": (1e-9,), "C": (1e-2, 1.0)}, told="gaps"
    ),
    "PairwiseELM with gaps": Kind(
        pg.PairwiseELM, {**NODES, "missing": MISSING, "inputs": INPUTS}, told="gaps"
    ),
    "RankRLS of comparisons": Kind(
        pg.RankRLS,
        {"pairs": ("with_ties",), **WITHIN_LISTS},
        "alpha",
        told="comparisons",
    ),
    "RankRLSCV of comparisons": Kind(
        pg.RankRLSCV,
        {
            "scoring": (None, "squared_error"),
            "cv": (None, 2, "leave-item-out", "leave-comparison-out", "item-folds"),
            "inputs": (None, "standard"),
        },
        ridges="alphas",
        told="comparisons",
    ),
    "RankSVM of comparisons": Kind(
        pg.RankSVM, {"tol": (1e-9,), "C": (1e-2, 1.0)}, told="comparisons"
    ),
    "RankSVMCV of comparisons": Kind(
        pg.RankSVMCV,
        {"scoring": (None, "squared_error"), "Cs": ([1e-2, 1.0],), "tol": (1e-9,), "cv": (None, 2)},
        told="comparisons",
    ),
}


@st.composite
def journeys(draw: Any, name: str) -> Journey:
    """Draw rows, and the settings of an estimator of one of the kinds."""
    kind = KINDS[name]
    drawn = draw(rows_of_queries())
    if "feature_map" in kind.settings:
        assume(drawn.X.shape[1] > 2)  # a column for every part
    drawn = OF_ROWS[kind.told](drawn, np.random.default_rng(draw(st.integers(0, 1000))))
    settings = {name: draw(st.sampled_from(values)) for name, values in kind.settings.items()}
    if {"inputs", "missing"} & settings.keys():
        of_rows = [settings.pop(name, None) for name in ("inputs", "feature_map", "missing")]
        settings["feature_map"] = row_value(*of_rows)
    known = np.nan_to_num(drawn.X)
    columns = known - known.mean(axis=0)
    if settings.get("feature_map") is not None:
        columns = np.ones(drawn.X.shape)  # which are of this size
    size = float((columns**2).sum()) or 1.0
    if kind.ridge is not None:
        settings[kind.ridge] = draw(st.sampled_from(SHARES)) * size
    if kind.ridges is not None:
        settings[kind.ridges] = (np.array(SHARES[1:]) * size).tolist()
    estimator = kind.make(**{**settings, **_sampled(settings)})
    return Journey(estimator, drawn, draw(st.integers(0, 1000)))


def _sampled(settings: dict[str, Any]) -> dict[str, Any]:
    """Return clones of the maps, because a road must not change another's."""
    value = settings.get("feature_map")
    return {"feature_map": clone(value)} if hasattr(value, "fit") else {}
