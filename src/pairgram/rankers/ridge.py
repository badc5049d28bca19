"""Least-squares rankers: `RidgeSpec`, what they fit, and the base classes that fit it."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, Vector, verbatim
from pairgram._support.parameters import Form
from pairgram._support.row_warnings import (
    warn_of_equal_labels,
    warn_of_narrow_columns,
)
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs, no_pairs
from pairgram.features.feature_map import is_kernel
from pairgram.features.inputs import parts_of
from pairgram.features.kernel_map import Kernel, is_linear_kernel, with_support
from pairgram.features.row_values import Chain, chain_of
from pairgram.model_selection.judge import (
    Judge,
    Judged,
    Measure,
    Tried,
    choose_among,
    in_order_of,
)
from pairgram.model_selection.splits import default_cv
from pairgram.rankers.preparation import (
    GivenArrays,
    Preparation,
    Search,
    Spec,
)
from pairgram.rankers.prior import Prior
from pairgram.rankers.set_search import choose_for_sets, with_units
from pairgram.solvers.constraint import NO_MAP, NO_PRIOR, Constraint
from pairgram.solvers.costs import ONE_RIDGE, Work
from pairgram.solvers.formulation import Coordinates, PathJudge, RidgeModels, column_squares
from pairgram.solvers.group_fits import SOLVED, RowSets, search_sets, solve_sets
from pairgram.solvers.path_judges import (
    LEAVE_PAIR_OUT,
    HeldOutRows,
    HoldOut,
    LeavePairOut,
    is_cheap,
)
from pairgram.solvers.ridge_path import (
    DEFAULT_POWERS,
    LARGEST_GRADED,
    ColumnSums,
    blas_guard,
    default_alphas,
)
from pairgram.solvers.statistics import SPARSE_GRAM, require_gram

if TYPE_CHECKING:
    from pairgram._support.types import CV, BaseEstimator
    from pairgram.rankers.validation import Validation

# A ridge that is so many times the squares of a column leaves nothing of it.
SHRUNK = 1e6


@dataclass(frozen=True, eq=False)
class LeastSquares(Spec):
    """What a ranker fits by least squares, to one target or to several.

    Attributes
    ----------
    settings : tuple of Pairs
        The pairs to choose from.
    search : Search or None
        How to choose. None fits one of each.
    """

    settings: tuple[Pairs, ...]
    search: Search | None = field(default=None, kw_only=True)

    def of_clicks(self) -> Self:
        """Return what the ranker fits to clicks: the pairs of clicks in place of the default."""
        pairs = ", ".join(repr(one.short) for one in self.settings)
        if {one.kind for one in self.settings} - {"with_ties", "clicks"} or len(self.settings) > 1:
            raise ArgumentError(
                "pairs",
                "must be 'with_ties', the default, beside y=Clicks(...), which say themselves what "
                f"is compared, got {verbatim(pairs)}",
            )
        settings = (replace(self.settings[0], kind="clicks"),)
        return replace(self, settings=settings, search=self.search and self.search.of_clicks())

    @abstractmethod
    def fit(
        self, data: RankingData, prior: Prior | None, held: RankingData | None = None
    ) -> dict[str, Any]:
        """Return the fitted attributes.

        Parameters
        ----------
        data : RankingData
            The rows, with the map if there is one to choose, and the scores of the prior.
        prior : Prior or None
        held : RankingData or None
            The rows of a validation set.
        """

    def fit_arrays(self, rows: GivenArrays, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to arrays."""
        data = rows.data
        if self.rows.is_one:
            data = rows.fitted(self.rows.ways[0]).whole
        held = None if validation is None else rows.held(validation, data)
        fitted = self.fit(data, rows.prior, held)
        if not fitted["coef_"].any():
            self._warn_of_equal_labels(data)
        return fitted

    @property
    def warns_of_ties(self) -> bool:
        """Whether labels that are all equal deserve a warning. Other pairs are then an error."""
        return {one.compiled for one in self.settings} == {"kept"}

    def _warn_of_equal_labels(self, data: RankingData) -> None:
        """Warn if labels are why a model is zero."""
        if self.warns_of_ties and data.offset is None and not data.labels_differ(self.settings[0]):
            warn_of_equal_labels()


@dataclass(frozen=True, eq=False)
class RidgeSpec(LeastSquares):
    """What a least-squares ranker fits: some values to choose from, or one of each.

    Attributes
    ----------
    rows : Preparation
        The inputs and feature maps to choose from, and the prior.
    alphas : ndarray of shape (n_alphas,), or None
        The ridges. None stands for a grid that depends on the data.
    scales : tuple of bool
    form : {"auto", "primal", "dual"}
        Which system is solved: "auto" takes the smaller one.
    constraint : Constraint or None
        What the weights must be like.
    """

    alphas: Vector | None
    scales: tuple[bool, ...] = (False,)
    form: Form = "auto"
    constraint: Constraint | None = None

    def of_preferences(self, preferences: Any) -> Self:
        """Return the least squares of comparisons, whose pairs are given and not made of labels."""
        for one in self.settings:
            preferences.require_settings(one)
        return replace(self, settings=(Pairs(None),))

    @property
    def takes_sets(self) -> bool:
        """Whether compiled code can solve sets of rows, of which the feature map reads none."""
        told = self.constraint, self.form, self.scales, len(self.settings)
        plain = told == (None, "auto", (False,), 1)
        holds_out = self.search is None or self._holds_out(self.search)
        return self.rows.takes_sets and plain and holds_out

    def _holds_out(self, search: Search) -> bool:
        """Tell whether compiled code holds rows out as a search says."""
        of_queries = not self.settings[0].joins_all_rows
        return not isinstance(search.cv, str) and of_queries and search.criterion is None

    @property
    def n_searched(self) -> int:
        """How many ridges a search judges; 0 if there is none."""
        if self.search is None:
            return 0
        return len(DEFAULT_POWERS) if self.alphas is None else len(self.alphas)

    @property
    def joins_all_rows(self) -> bool:
        """Whether all rows of a set form pairs, whatever their queries."""
        return self.settings[0].joins_all_rows

    @property
    def shares_targets(self) -> bool:
        """Whether several targets of the same rows can be one set, whose system they share."""
        return self.search is None and self.settings[0].compiled in ("none", "kept")

    def no_pairs(self, n_rows: int) -> ValueError:
        """Return the error for rows without pairs that count."""
        return no_pairs(self.settings[0], n_rows)

    def models_of_sets(self, sets: RowSets) -> dict[str, Any] | None:
        """Return attributes of the models of all sets, and their "state".

        None if compiled code cannot take the rows.
        """
        (settings,), alphas, search = self.settings, self.alphas, self.search
        expand: Callable[[Vector], Vector] = np.asarray
        if sets.data.feature_map is not None:
            coordinates = Coordinates.of_features(sets.data, self.settings)
            sets, expand = sets._replace(data=coordinates.data), coordinates.coefs
        if search is not None:
            found = self._chosen_of_sets(sets, search)
        else:
            assert alphas is not None
            solved = solve_sets(sets, settings, alphas[0])
            found = solved and {"coef_": solved.weights, "state": solved.states}
        if found is not None:
            coefs, n_rows = found["coef_"], np.diff(sets.data.queries.offsets[sets.bounds])
            found["form_"] = np.where(n_rows < coefs.shape[1], "dual", "primal")
            found["coef_"] = expand(coefs)
        return found

    def _chosen_of_sets(self, sets: RowSets, search: Search) -> dict[str, Any] | None:
        """Return the weights and state of every set, and what the search has chosen."""
        sets = with_units(sets, search.cv, exact=True)
        (settings,) = self.settings
        searched = search_sets(sets, settings, self._descending)
        if searched is None:
            return None
        found = choose_for_sets(sets, searched, search.scoring, search.cv is not None)
        values = found.pop("value")
        if search.Cs is None:
            return found | {"alpha_": values}
        return found | {"C_": search.Cs[np.argmax(values[:, None] == self.alphas, axis=1)]}

    @property
    def _descending(self) -> Vector | None:
        """The ridges to choose from, descending; None for those that depend on the data."""
        return None if self.alphas is None else np.sort(self.alphas)[::-1].copy()

    def fit(
        self, data: RankingData, prior: Prior | None, held: RankingData | None = None
    ) -> dict[str, Any]:
        """Return the fitted attributes."""
        searches, small = self.search is not None, limits.now.largest_set
        n_columns = data.n_features
        if held is None and self.takes_sets and len(data.y) * n_columns <= small:
            found = (self._searched_as_set if searches else self._solved_as_set)(data, prior)
            if found is not None:
                return found
        with blas_guard(min(len(data.y), n_columns)):  # enter it only once
            return self._searched(data, prior, held) if searches else self._solved(data, prior)

    def _solved(self, data: RankingData, prior: Prior | None) -> dict[str, Any]:
        """Fit one ridge."""
        (settings,), (scale,), alphas = self.settings, self.scales, self.alphas
        assert alphas is not None
        coordinates = self._coordinates(data)
        coef, sums, form = coordinates.solve(settings, alphas[0], scale=scale)
        compares = data.preferences is not None and form == "dual"
        if coordinates.form == "dual" or compares:
            self._warn_of_narrow_columns(data, None)
        kept = {"form_": form, "_column_sums": sums}
        return kept | self._kept(data, prior, {"coef_": coef})

    def _solved_as_set(self, data: RankingData, prior: Prior | None) -> dict[str, Any] | None:
        """Fit one ridge to small rows, if compiled code takes them."""
        (settings,), alphas = self.settings, self.alphas
        assert alphas is not None
        coordinates = Coordinates.of_features(data.as_scope(settings), self.settings)
        sets = RowSets.of(coordinates.data)
        form, tells = self._form_of_set(coordinates, settings)
        found = solve_sets(sets, settings, alphas[0], tells=tells)
        if found is None or found.states[0] != SOLVED:
            return None  # other code says what is wrong
        kept = {"form_": form, "_column_sums": found.column_sums() if tells else None}
        return kept | self._kept(data, prior, {"coef_": coordinates.coefs(found.weights)[0]})

    def _warn_of_narrow_columns(
        self, data: RankingData, sums: ColumnSums | None, alpha: float = np.inf
    ) -> None:
        """Warn if narrow columns are lost: by a decomposition, or by a ridge far above them."""
        if parts_of(data.feature_map)[1] is not None:
            return
        squares = column_squares(data, self.settings[0]) if sums is None else sums.squares
        is_far = alpha >= SHRUNK * squares[squares > 0].min(initial=np.inf)
        if is_far or sums is None or len(squares) > LARGEST_GRADED:
            warn_of_narrow_columns(squares, data.names if data.feature_map is None else None)

    def _coordinates(
        self, data: RankingData, *, validates: bool = False, iterate: bool | None = None
    ) -> Coordinates:
        """Choose how the problem is solved.

        `validates` says that a validation set judges. `iterate` is as in `Coordinates.choose`.
        """
        scale = any(self.scales)
        if self.constraint is not None:
            inputs, feature_map = parts_of(data.feature_map)
            if feature_map is not None:
                raise ValueError(NO_MAP)
            if self.rows.prior is not None:
                raise ValueError(NO_PRIOR)
            n_columns = data.X.shape[1] if inputs is None else inputs.n_features_in_
            constraint = self.constraint.of_columns(n_columns, data.n_features, data.names)
            if scipy.sparse.issparse(data.X):
                require_gram(data.n_features, SPARSE_GRAM)
            if data.preferences is not None:
                data = data.preferences.compared(data, data.features())
            work = self._work(data, validates)
            return Coordinates(data, constraint=constraint, work=work)
        if self.search is not None:
            cv, holds_out = self.search.cv, self.search.criterion is None
            compares = data.preferences is not None and data.preferences.holds_one_by_one(cv)
            iterate = False if compares or not holds_out or _leaves_pairs_out(cv) else iterate
        return Coordinates.choose(
            data,
            self.settings,
            kernel=is_kernel(data.feature_map),
            form=self.form,
            scale=scale,
            work=self._work(data, validates),
            iterate=iterate,
        )

    def _work(self, data: RankingData, validates: bool) -> Work:
        """Return what is solved for every combination of settings."""
        if self.search is None:
            return ONE_RIDGE
        n_alphas, cv = len(DEFAULT_POWERS), self.search.cv
        n_alphas = n_alphas if self.alphas is None else len(self.alphas)
        if validates or self.search.criterion is not None or _leaves_pairs_out(cv):
            return Work(n_alphas, path=True)
        exact = cv is None and self.constraint is None
        if exact:
            width = min(len(data.y), data.n_features)
            form = "dual" if width == len(data.y) else "primal"
            exact = all(is_cheap(data, settings, width, form) for settings in self.settings)
        n_held = data.held_together.n_filled
        n_splits = cv if isinstance(cv, int) else default_cv(n_held, len(data.y))
        return Work(n_alphas, 1 + n_splits, path=True, exact=exact)

    def _kept(
        self, data: RankingData, prior: Prior | None, models: dict[str, Vector]
    ) -> dict[str, Any]:
        """Return the attributes for fitted models and the maps of their rows, by name.

        Weights of a prior are added. The map of a kernel drops rows whose coefficients are 0 in
        every model, such as rows of weight 0 and queries of one row.
        """
        chain = chain_of(data)
        if prior is not None:
            models = prior.added_to(models)
        if is_kernel(chain.then):
            kernel, models = _without_zeros(chain.then, models)
            chain = chain._replace(then=kernel)
        return {"feature_map_": chain.value, **models}

    def _searched(
        self, data: RankingData, prior: Prior | None, held: RankingData | None
    ) -> dict[str, Any]:
        """Judge every combination of settings on rows that are held out, and keep the best."""
        judge: PathJudge | None = None
        candidates: list[Candidate] = []
        iterate: bool | None = None
        for own in self.rows.each(data):
            if judge is not None:
                judge = judge.of(own)
            elif is_kernel(own.feature_map):  # what is wrong is told before the kernel is made
                judge = self._judge(own, len(own.y), "dual", held)
            coordinates = self._coordinates(own, validates=held is not None, iterate=iterate)
            if judge is None:
                iterate = coordinates.iterate  # of all candidates, which are judged alike
                width, form = coordinates.data.n_features, coordinates.name
                width = min(width, len(own.y)) if form == "dual" else width
                judge = self._judge(own, width, form, held, not coordinates.iterate)
            here = judge.within(coordinates.data)
            self._refuse(coordinates, here)
            for settings, scale in itertools.product(self.settings, self.scales):
                found = self._along(own, coordinates, settings, scale, here)
                if found is None:  # steps take longer here than direct solutions, and so they may
                    assert coordinates.instead is not None  # with the other settings
                    coordinates = coordinates.instead()
                    here = judge.within(coordinates.data)
                    iterate = False
                    found = self._along(own, coordinates, settings, scale, here)
                assert found is not None
                candidates.append(found)
        assert judge is not None
        return self._chosen(candidates, judge.metric, prior)

    def _searched_as_set(self, data: RankingData, prior: Prior | None) -> dict[str, Any] | None:
        """Choose one of the ridges of small rows, if compiled code takes them."""
        if data.preferences is not None:
            return None
        (settings,), alphas = self.settings, self._descending
        coordinates = Coordinates.of_features(data, self.settings)
        form, tells = self._form_of_set(coordinates, settings)
        width = min(coordinates.data.X.shape)
        judge = self._judge_of_rows(data, width, form, None, exact=True).judge
        units = judge.units()
        if units is None and judge.splits is not None:
            return None
        sets = RowSets.of(coordinates.data)._replace(units=units)
        found = search_sets(sets, settings, alphas, tells=tells)
        if found is None or found.states[0] != SOLVED:
            return None  # other code says what is wrong
        one_candidate = Candidate(
            data,
            replace(coordinates, told=form),
            settings,
            False,
            found.values[0],
            found.models[0],
            judge.judge_units(found.scores),
            found.column_sums if tells else None,
        )
        return self._chosen([one_candidate], judge.metric, prior)

    def _form_of_set(self, coordinates: Coordinates, settings: Pairs) -> tuple[str, bool]:
        """Return the form in which compiled code solves rows, and whether sums are kept."""
        form = coordinates.smaller_form()
        known = settings.kind is not None and parts_of(coordinates.data.feature_map)[1] is None
        return form, known and form == "primal"

    def _judge(
        self,
        data: RankingData,
        n_dimensions: int,
        form: str,
        held: RankingData | None,
        exact: bool = True,
    ) -> PathJudge:
        """Return the object that holds rows out."""
        search = self.search
        assert search is not None
        if search.criterion is not None:
            given = {"cv": search.cv is not None, "validation": held is not None}
            given["groups"] = data.group_of is not None
            constrained = self.constraint is not None
            search.criterion.require(self.settings, self.alphas, given, constrained=constrained)
            return search.criterion.judge(data)
        if data.preferences is not None:
            told = search.cv, held, search.scoring
            exact = exact and self.constraint is None
            return data.preferences.judge_of_path(data, *told, exact=exact)
        if held is None and _leaves_pairs_out(search.cv):
            if self.constraint is not None:
                raise ValueError(f"cv must not be {LEAVE_PAIR_OUT!r} with a constraint")
            return LeavePairOut.make(data, search.scoring)
        return self._judge_of_rows(data, n_dimensions, form, held, exact)

    def _judge_of_rows(
        self, data: RankingData, n_dimensions: int, form: str, held: RankingData | None, exact: bool
    ) -> HeldOutRows:
        """Return what holds rows out."""
        assert self.search is not None
        exact = exact and self.constraint is None
        for settings in self.settings:
            exact = exact and is_cheap(data, settings, n_dimensions, form)
        told = self.search.cv, held, self.search.scoring
        return HeldOutRows(data, Judge.make(data, *told, exact=exact))

    def _refuse(self, coordinates: Coordinates, held_out: PathJudge) -> None:
        """Raise the errors of the search before a matrix is decomposed."""
        data = coordinates.data
        for settings in self.settings:
            data.require_pairs(settings)
            n_alphas = len(default_alphas(1.0, data.offset is not None))
            n_alphas = n_alphas if self.alphas is None else len(self.alphas)
            held_out.require(settings, n_alphas)

    def _along(
        self,
        data: RankingData,
        coordinates: Coordinates,
        settings: Pairs,
        scale: bool,
        judge: PathJudge,
    ) -> Candidate | None:
        """Judge one combination along its ridges.

        The result is None if steps of conjugate gradients take longer than direct solutions.
        Decompositions are not kept: in the dual form each takes at least 8 n² bytes.
        """
        make = partial(Candidate, data, coordinates, settings, scale)
        given = self._descending
        if coordinates.constraint is not None or coordinates.iterate:
            assert isinstance(judge, HoldOut)
            judged_along = judge.judge_steps if coordinates.iterate else judge.judge_constrained
            solved = judged_along(coordinates, settings, scale, given)
            return None if solved is None else make(*solved)
        basis = judge.needs_basis(settings, coordinates.name == "dual")
        statistics = partial(coordinates.statistics, settings)
        ridge = statistics().decompose(scale=scale, basis=basis)
        alphas = given
        if alphas is None:
            reach = len(self.rows.ways) * len(self.settings) * len(self.scales) == 1  # all as many
            alphas = ridge.default_alphas(data.offset is not None, reach)
        models = RidgeModels(settings, ridge, alphas, statistics, coordinates.coefs, scale)
        return make(alphas, ridge.coef(alphas), judge.judge_path(models))

    def _chosen(
        self,
        candidates: Sequence[Candidate],
        metric: Measure,
        prior: Prior | None,
    ) -> dict[str, Any]:
        """Return the attributes of the best candidate, with its ridges in the caller's order."""
        search = self.search
        assert search is not None
        n_alphas = len(candidates[0].alphas)  # as many as of every other
        order = in_order_of(None if self.alphas is None else -self.alphas, n_alphas)
        tried, name = [], "alpha" if search.Cs is None else "C"
        for one in candidates:
            values = one.alphas if search.Cs is None else search.Cs[np.argsort(order)]
            told = one.told(search.told, self.rows.filler)
            tried.append(Tried(one.judged, {name: values}, told))
        number, at, fitted = choose_among(tried, order, metric)
        chosen, (_, grid, settings) = candidates[number], tried[number]
        width = max(chosen.solved.shape[1], chosen.data.n_features)
        if 8 * n_alphas * width > limits.now.path_bytes:  # as of millions of columns
            models = {"coef_": chosen.coordinates.coefs(chosen.solved[at : at + 1])[0].copy()}
        else:
            path = chosen.coordinates.coefs(chosen.solved[order])
            models = {"coef_path_": path, "coef_": path[int(np.argmax(order == at))].copy()}
        sums = chosen.known_sums(models["coef_"])
        decomposes = self.constraint is None or self.alphas is None
        if decomposes and not chosen.scale and not chosen.coordinates.iterate:
            self._warn_of_narrow_columns(chosen.data, sums, float(chosen.alphas[at]))
        fitted |= {f"{name}s_": grid[name][order], f"{name}_": float(grid[name][at])}
        fitted |= {f"{told}_": value for told, value in settings.items() if told != "feature_map"}
        return fitted | {
            "form_": chosen.coordinates.name,
            "_column_sums": sums,
            "coef_path_": None,
            **self._kept(chosen.data, prior, models),
        }

    def fit_stream(self, rows: Any, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to a stream."""
        own = None if self.search is None else self.search.criterion
        if own is not None:
            text = "needs all rows in memory: give a frame, not a table"
            raise ValueError(f"scoring={own.name!r} {text}")
        return rows.least_squares(self, validation)


class Candidate(NamedTuple):
    """A combination of settings, the solutions of its ridge path, and its held-out scores."""

    data: RankingData
    coordinates: Coordinates
    settings: Pairs
    scale: bool
    alphas: Vector  # descending
    solved: Vector  # in the coordinates, (n_alphas, n_dimensions)
    judged: Judged
    column_sums: Callable[[Vector], ColumnSums] | None = None

    def known_sums(self, coef: Vector) -> ColumnSums | None:
        """Return the column sums of a model, if statistics of all rows are known."""
        if self.column_sums is None:
            return self.coordinates.known_sums(self.settings, coef)
        return self.column_sums(coef)

    def told(self, names: Sequence[str], fill: Any) -> dict[str, Any]:
        """Return some of the settings by their names; `fill` is what has filled gaps before."""
        way = chain_of(self.data)._replace(fill=fill)
        found = {"feature_map": way.short, "pairs": self.settings.short}
        found["scale"] = self.scale
        return {name: found[name] for name in names}


def _without_zeros(kernel: Kernel, models: dict[str, Vector]) -> tuple[Kernel, dict[str, Vector]]:
    """Return a kernel and models without the rows whose coefficients are 0 in every model."""
    if kernel.support_rows_ is None:
        return kernel, models
    every = [model.reshape(-1, model.shape[-1]).any(axis=0) for model in models.values()]
    used = np.any(every, axis=0)
    if not used.any() or used.all():
        return kernel, models
    kernel = with_support(kernel, np.flatnonzero(used))
    return kernel, {name: model[..., used] for name, model in models.items()}


def _leaves_pairs_out(cv: CV) -> bool:
    return isinstance(cv, str) and cv == LEAVE_PAIR_OUT


def ridge_spec(
    model: BaseEstimator,
    settings: Pairs,
    alpha: float,
    way: Chain,
    **others: Any,
) -> RidgeSpec:
    """Return the spec of a ranker that fits one ridge.

    Parameters
    ----------
    model : ranker
    settings : Pairs
    alpha : float
    way : Chain
        What a row is.
    **others : any
        Further attributes of `RidgeSpec`.
    """
    rows = Preparation((_without_linear(way),), prior=model.prior)
    alphas = np.array([float(alpha)])
    return RidgeSpec(rows, (settings,), alphas, **others)


def search_spec(
    model: BaseEstimator,
    settings: Sequence[Pairs],
    alphas: Vector | None,
    ways: Sequence[Chain],
    told: tuple[str, ...],
    *,
    Cs: Vector | None = None,
    **others: Any,
) -> RidgeSpec:
    """Return the spec of a search; `told` and `Cs` are those of `Search`, as in `ridge_spec`."""
    cv = list(model.cv) if isinstance(model.cv, Iterator) else model.cv  # read more than once
    search = Search(cv, model.scoring, told, Cs).for_pairs(settings)
    rows = Preparation((*map(_without_linear, ways),), takes_path=True, prior=model.prior)
    return RidgeSpec(
        rows,
        tuple(settings),
        alphas,
        search=search,
        **others,
    )


def _without_linear(way: Chain) -> Chain:
    """Return a way whose kernel has been checked; the linear one is that of the columns."""
    if not is_kernel(way.then):
        return way
    way.then._function()  # which checks it
    return way._replace(then=None) if is_linear_kernel(way.then) else way
