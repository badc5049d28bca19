"""The rows of a fit, of arrays or a table, and what becomes of them before a model sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from pairgram._support.checks import ArgumentError, Vector, verbatim
from pairgram._support.row_warnings import (
    sample_of,
    warn_of_rows,
    without_row_warnings,
)
from pairgram.data.blocks import Arrays, Dataset
from pairgram.data.dataset import RankingData, RowInfo
from pairgram.data.pairs import Pairs
from pairgram.data.queries import warn_of_missing_queries
from pairgram.features.feature_map import draws_only, is_kernel, is_known, unmade
from pairgram.features.gaps import filled
from pairgram.features.inputs import (
    FittedInputs,
    InputMap,
    fit_after,
    fit_inputs,
    prepared_as,
    whole_map,
)
from pairgram.features.kernels import is_precomputed
from pairgram.features.row_values import AS_IT_IS, Chain, Fill, chain_of
from pairgram.model_selection.judge import (
    BaseJudge,
    Criterion,
    Judge,
    ModelJudge,
    criterion_of,
    metric_of,
)
from pairgram.rankers.prior import Prior
from pairgram.rankers.validation import held_rows
from pairgram.solvers.dual_gram import require_memory
from pairgram.solvers.group_fits import RowSets, one_array

# The inputs that have quantiles.
QUANTILES = ("quantile", "raw+quantile")

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike
    from pairgram.rankers.validation import Validation


@dataclass(frozen=True, eq=False)
class Preparation:
    """What becomes of rows before a linear model sees them, and what its fit starts from.

    Attributes
    ----------
    ways : tuple of Chain
        What rows are: the values of `feature_map` to choose from, which are not fitted. All fill
        gaps alike.
    takes_path : bool
        Whether a kernel's problem is decomposed, which takes more memory than one solution.
    prior : array-like, fitted model or None
    maps_change : bool
        Whether other maps are fitted to parts of the rows, so that weights of a prior belong to
        no map.
    needed : str
        Why the model needs all rows in memory, whatever the ways; "" if it does not.
    """

    ways: tuple[Chain, ...] = (Chain(),)
    takes_path: bool = False
    prior: Any = None
    maps_change: bool = False
    needed: str = ""

    @property
    def no_columns(self) -> str:
        """Why the model has no columns that weights of a prior could belong to; "" if it has."""
        if kernel := self._kernel:
            return kernel
        if self.maps_change and any(way.then is not None for way in self.ways):
            return "a feature_map"
        return "" if self.is_one else "a list of feature maps"

    @property
    def no_table(self) -> str:
        """Why the model cannot be fitted to a table; "" if it can."""
        if kernel := self._kernel:
            return (
                f"{kernel} needs all rows in memory, so a table cannot be fitted: give "
                "feature_map=Nystroem(...) or RandomFourier(...) in its place"
            )
        return self.needed

    @property
    def _kernel(self) -> str:
        """What messages call the kernel, if a way has one, else an empty text."""
        kernels = [way.then.kernel for way in self.ways if is_kernel(way.then)]
        return f"kernel={kernels[0]!r}" if kernels else ""

    def __post_init__(self) -> None:
        """Raise a ValueError if steps do not go together, or if the ways fill gaps differently."""
        for way in self.ways:
            if way != AS_IT_IS:
                way.require()
        if not self.is_one and len({repr(way.fill) for way in self.ways}) > 1:
            raise ArgumentError(
                "feature_map",
                "must fill gaps alike wherever it may choose: begin all with one Fill, as in "
                "[Fill(), make_pipeline(Fill(), Quantile())]",
            )

    @property
    def filler(self) -> Fill | None:
        """What fills gaps before anything else sees the rows, not fitted; None if nothing does."""
        return self.ways[0].fill

    @property
    def is_one(self) -> bool:
        """Whether there is no choice of what a row is."""
        return len(self.ways) == 1

    @property
    def starts_alike(self) -> bool:
        """Whether the scores of the prior are the same for all ways, whose maps are not its own."""
        of_rows = self.no_columns != "" and not is_kernel(self.ways[0].then)
        return of_rows or not self.is_one

    @property
    def takes_sets(self) -> bool:
        """Whether compiled code takes sets of the rows, of which the feature map reads none."""
        fill, scaling, then = self.ways[0]
        plain = self.is_one and fill is None and scaling is None
        return plain and (then is None or draws_only(then))

    def of_sets(
        self, given: RowSets, names: NDArray[Any] | None
    ) -> tuple[RowSets | None, Vector | None, dict[str, Any]]:
        """Return sets with the map, and with the scores of the prior as offsets.

        Beside them there are the weights of the prior, and the attributes that all models have.
        `names` are those of the columns. There are no sets if no row is finite.
        """
        X, feature_map, prior = one_array(given.blocks), self.ways[0].then, None
        data = replace(given.data, X=X)
        with np.errstate(over="ignore", invalid="ignore"):
            known = np.flatnonzero(np.isfinite(X.sum(axis=1)))
        if not len(known):
            return None, None, {}
        finite = data if len(known) == len(data.y) else data.take(known)
        if feature_map is not None:
            finite = self.with_map(finite, feature_map)
            data = replace(data, feature_map=finite.feature_map)
        if self.prior is not None:
            prior = Prior.of(self.prior, whole_map(data), self.no_columns)
            scores = np.full(len(data.y), np.nan)
            scores[known] = prior.of_filled(names).scores(finite.X, finite)
            data = data.plus_offset(scores)
        shared = {"feature_map_": chain_of(data).value, "prior_": prior and prior.kept}
        return given._replace(data=data, blocks=[X]), prior and prior.coef, shared

    def each(self, data: RankingData) -> Iterator[RankingData]:
        """Yield the data as each of the ways makes them. If there is one, they have it."""
        for way in self.ways:
            yield data if self.is_one else self.mapped(data, way)

    def mapped(self, data: RankingData, way: Chain) -> RankingData:
        """Return the data with inputs and the map of a way, which are fitted to them."""
        if way.scaling is None and way.then is None:
            return data
        return self.with_map(data, way.then, self.inputs(data, way.kind))

    def inputs(self, data: RankingData, kind: str | None) -> FittedInputs | None:
        """Return inputs that are fitted to the rows, as often as their weights say; or None.

        Raises
        ------
        ValueError
            If every row has weight 0.
        """
        if kind is None:
            return None
        inputs = fit_inputs(str(kind), data.X, _weights_of(data))
        return replace(inputs, feature_names_in_=data.names)

    def fill(self, data: RankingData) -> Fill:
        """Return what takes the place of missing values, found from the rows.

        Raises
        ------
        ValueError
            If the rows are sparse, if every row has weight 0, or if X holds infinity.
        """
        assert self.filler is not None
        is_number = not isinstance(self.filler.value, str)
        weights = None if is_number else _weights_of(data)
        return clone(self.filler)._fit_rows(data.X, weights, data.names)

    def with_map(
        self, data: RankingData, feature_map: Any, inputs: FittedInputs | None = None
    ) -> RankingData:
        """Return the data with a clone of the map that is fitted to what `inputs` make.

        Inputs are applied to X here, rather than where X is read, for CSR rows, whose zeros stay
        zeros, for kernels, and for maps of other packages.

        Raises
        ------
        MemoryError
            If a kernel's problem does not fit in memory. The rows are not copied then.
        """
        known, of_kernel = is_known(feature_map), is_kernel(feature_map)
        if of_kernel:
            self._require_memory(data, feature_map)
        first = of_kernel or scipy.sparse.issparse(data.X)
        if inputs is not None and (first or not (feature_map is None or known)):
            data, inputs = prepared_as(data, replace(data, applied=inputs)), None
        if feature_map is None:
            own = None if inputs is None else InputMap(inputs, None)
            return data if own is None else replace(data, feature_map=own)
        feature_map = clone(feature_map)
        if known and self.is_one:  # others try what helps
            warn_of_inputs(feature_map, data, inputs)
        with without_row_warnings():  # the map would repeat them without the column names
            if not known:
                return replace(data, feature_map=_fitted(feature_map, data.X))
            names = None if data.names is None else data.names.tolist()
            names = names if data.applied is None else data.applied.names(names)
            fitted = fit_after(inputs, feature_map, data.X, names)
        made = data.applied or inputs
        if made is not None and (products := unmade(fitted)) is not None:
            products.check_inputs(made, self.is_one)
        return replace(data, feature_map=fitted)

    def _require_memory(self, data: RankingData, feature_map: Any) -> None:
        X, precomputed = data.X, is_precomputed(feature_map.kernel)
        size = X.data.nbytes + X.indices.nbytes if scipy.sparse.issparse(X) else X.nbytes
        require_memory(
            len(data.y),
            self.takes_path,
            None if precomputed else feature_map,
            feature_bytes=0.0 if precomputed else float(size),
        )


def _fitted(feature_map: Any, X: Any) -> Any:
    """Fit a transformer of another package, without the labels, of which some are held out."""
    try:
        return feature_map.fit(X)
    except (TypeError, ValueError) as error:
        text = f"cannot be fitted to X alone: {verbatim(error)}; what needs labels goes before the "
        raise ArgumentError("feature_map", f"{text}ranker in a Pipeline") from error


def _weights_of(data: RankingData) -> Vector | None:
    """Return how often every row counts for what is found from rows without labels, or None.

    Raises
    ------
    ValueError
        If every row has weight 0.
    """
    if not data.may_vanish:
        return None
    data = data.with_weights_in_range()
    weights = data.v * data.query_weight_of_rows
    if not weights.any():
        raise ValueError(
            "no pair of rows counts: sample_weight times query_weight is 0 for every row"
        )
    return weights


def warn_of_inputs(feature_map: object, data: RankingData, inputs: FittedInputs | None) -> None:
    """Warn if the rows, after `inputs`, do not suit a map or kernel of this package."""
    known, names = data.applied or inputs, None if data.names is None else data.names.tolist()
    rows = data.X if inputs is None else inputs.values(sample_of(data.X))
    warn_of_rows(feature_map, rows, names if known is None else known.names(names))


def needs_rows(model: object) -> str:
    """Return why a ranker cannot be fitted to a table if it reads its rows again and again."""
    return (
        f"{type(model).__name__} cannot be fitted to a table, because it needs all rows in memory: "
        "RankRLSCV, PairwiseELMCV, RankSVM and RankSVMCV can be"
    )


class Search(NamedTuple):
    """How a search holds rows out, judges their scores and tells what it has chosen.

    Attributes
    ----------
    cv : None, int, splitter, iterable of splits or "leave-pair-out"
    scoring : str, Metric, scorer, Criterion or None
    told : tuple of str
        The settings besides the ridge that are told: some of "pairs", "scale" and "feature_map".
    Cs : ndarray of shape (n_alphas,), or None
        What is told in place of the ridges: ``1 / alphas``.
    has_probabilities : bool
        Whether differences of scores are log-odds.
    """

    cv: Any
    scoring: Any
    told: tuple[str, ...] = ()
    Cs: Vector | None = None
    has_probabilities: bool = False

    @property
    def criterion(self) -> Criterion | None:
        """What chooses by itself, if nothing is held out."""
        return criterion_of(self.scoring)

    def for_pairs(self, settings: Sequence[Pairs]) -> Search:
        """Return the search of these pairs: those of clicks are judged by clicks as well."""
        return self.of_clicks() if any(one.is_of_clicks for one in settings) else self

    def of_clicks(self) -> Search:
        """Return the search that judges by clicks / propensities, as its labels are.

        Raises
        ------
        ValueError
            If another metric is asked for, which would give the labels another meaning.
        """
        metric = metric_of(self.scoring or "ips_dcg@10", np.zeros(1), False)
        metric.require_clicks("scoring")
        return self._replace(scoring=metric)


@dataclass(frozen=True, eq=False)
class Spec(ABC):
    """What a ranker is to fit: a value that its parameters make, and that does the fit.

    Attributes
    ----------
    rows : Preparation
        What becomes of the rows before the model sees them.
    """

    rows: Preparation
    takes_sets: ClassVar[Any] = False  # whether compiled code can fit it to many sets of rows

    @abstractmethod
    def of_clicks(self) -> Self:
        """Return what the ranker fits to clicks.

        Raises
        ------
        ValueError
            If it does not learn from clicks with its parameters.
        """

    @abstractmethod
    def fit_arrays(self, rows: GivenArrays, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to arrays."""

    def of_preferences(self, preferences: Any) -> Self:
        """Return what the ranker fits to comparisons.

        Raises
        ------
        ValueError
            If it takes none, or not with its settings of pairs.
        """
        raise ArgumentError(
            "y", "must be labels, got Preferences, which RankRLS, RankSVM and their searches take"
        )

    def fit_stream(self, rows: Any, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to a stream.

        A spec without this method says in `Preparation.no_table` why, which is told before.
        """
        raise NotImplementedError


SpecOf = TypeVar("SpecOf", bound=Spec)


class GivenRows(ABC):
    """Rows that a ranker is fitted to.

    Attributes
    ----------
    has_queries : bool
        Whether queries were given.
    prior : Prior or None
        What the parameter `prior` says. It is read when rows are mapped, and the same for all maps.
    fill : Fill or None
        What takes the place of missing values, which the rows have no more.
    """

    has_queries: Any
    prior: Prior | None = None
    fill: Any = None

    @abstractmethod
    def spec_of(self, spec: SpecOf) -> SpecOf:
        """Return what is fitted to rows like these: to labels, clicks or comparisons."""

    @abstractmethod
    def fitted(self, way: Chain) -> Dataset[RankingData]:
        """Return the rows with inputs and a map, and with the scores of the prior."""

    @abstractmethod
    def judge(
        self,
        data: Dataset[RankingData],
        search: Search,
        validation: Validation,
    ) -> ModelJudge:
        """Return which rows a search holds out, and what judges them."""

    def with_told(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of a model with those that its rows and its prior tell."""
        fitted |= {"uses_qid_": self.has_queries, "prior_": self.prior and self.prior.kept}
        if self.fill is not None:
            fitted["feature_map_"] = Chain.of(fitted["feature_map_"])._replace(fill=self.fill).value
        return fitted


class GivenArrays(GivenRows):
    """Rows that `fit` is given as arrays.

    Attributes
    ----------
    arguments : dict
        The arguments of `fit` that tell of the rows, as they were given.
    data : RankingData
        The rows after the checks. They have the scores of a prior that are the same for all maps.
    """

    def __init__(
        self,
        model: BaseEstimator,
        X: RowsLike,
        y: ArrayLike | None,
        info: RowInfo,
        preparation: Preparation,
    ) -> None:
        self._model, self._info, self._preparation = model, info, preparation
        self.arguments: dict[str, Any] = {"X": X, "y": y, **info._asdict()}
        self.has_queries = info.qid is not None
        if info.groups is not None and not (self.has_queries or model._reads_queries):
            info = info._replace(qid=info.groups)  # which nothing but the metric sees
        self.data: RankingData = model._check_rows(X, y, info)
        if preparation.filler or preparation.prior is not None:
            self._prepare(preparation)
        if not self.has_queries and self.data.preferences is None and model._needs_queries:
            warn_of_missing_queries(f"{type(model).__name__}.fit", len(self.data.y))

    def _prepare(self, preparation: Preparation) -> None:
        """Fill gaps, and add the scores of a prior that are the same for all maps."""
        if preparation.filler is not None:
            self.fill = preparation.fill(self.data)
            self.data = replace(self.data, X=filled(self.data.X, self.fill.fill_))
        if preparation.prior is not None and preparation.starts_alike:
            self.data = self._started(self.data, preparation)

    def fitted(self, way: Chain) -> Arrays[RankingData]:
        """Return the rows with inputs and a clone of the feature map that are fitted to them.

        The scores of the model's prior are added to their offset.
        """
        preparation = self._preparation
        data = preparation.mapped(self.data, way)
        if preparation.prior is not None and not preparation.starts_alike:
            data = self._started(data, preparation)
        return Arrays(data, data)

    def _started(self, data: RankingData, preparation: Preparation) -> RankingData:
        """Return the data with the scores of the prior, which is read for their map."""
        self.prior = Prior.of(preparation.prior, whole_map(data), preparation.no_columns)
        scorer, X = self.prior, self.arguments["X"]
        if self.fill is not None:
            scorer, X = scorer.of_filled(self.data.names), self.data.X
        return data.plus_offset(scorer.scores(X, data))

    def spec_of(self, spec: SpecOf) -> SpecOf:
        """Return what is fitted to rows like these: to labels, clicks or comparisons."""
        judgements = self.data.judgements
        return spec if judgements is None else judgements.fitted_by(spec)

    def _held_as_given(self, validation: Validation, pattern: RankingData) -> RankingData:
        """Return the rows of a validation set; their map is not fitted if it is another package's.

        Such a map checks rows by itself.
        """
        maps = [way.then for way in self._preparation.ways]
        ours = any(one is None or is_known(one) for one in maps)
        return self.held(validation, pattern if ours else replace(pattern, feature_map=maps[0]))

    def held(self, validation: Any, pattern: RankingData) -> RankingData:
        """Return the rows of a validation set as they are given, with the scores of the prior."""
        prior = self.prior
        if prior is not None and self.fill is not None:
            prior = prior.of_filled(self.data.names)
        started = None if prior is None else prior.scores
        fill = None if self.fill is None else self.fill.fill_
        held = held_rows(self._model, validation, pattern, started, self._info, fill)
        return replace(held, row_weights=None)

    def judge(
        self,
        data: Dataset[RankingData],
        search: Search,
        validation: Validation,
    ) -> BaseJudge:
        """Return which rows a search holds out, and what judges them.

        Parameters
        ----------
        data : Dataset of RankingData
            The rows, with the inputs alone, if there is one kind of them.
        search : Search
        validation : a value as in `RankSVMCV.fit`
        """
        pattern = data.pattern
        held = None if validation is None else self._held_as_given(validation, pattern)
        if pattern.preferences is not None:
            told = search.cv, held, search.scoring
            ways = {"exact": False, "has_probabilities": search.has_probabilities}
            return pattern.preferences.judge(pattern, *told, **ways)
        return Judge.make(pattern, search.cv, held, search.scoring)
