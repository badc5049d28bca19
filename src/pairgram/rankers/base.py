"""`LinearRanker`, the base class of all rankers, and how they take rows, tables and priors."""

from __future__ import annotations

import copy
import inspect
import os
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import (
    read_rows,
    real_array,
    refuse_index,
    refuse_lossy,
    require_label_each,
    without_names,
)
from pairgram._support.checks import (
    ArgumentError,
    Vector,
    naming_not_finite,
    require_finite,
    warn_caller,
)
from pairgram._support.row_warnings import (
    sample_of,
    warn_of_equal_labels,
    warn_of_rows,
    without_row_warnings,
)
from pairgram._support.whole_fit import WholeFit, by_keyword
from pairgram.data.dataset import RankingData, RowInfo, check_offset
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries, refuse_score_without_ids, warn_of_missing_queries
from pairgram.features.base import is_known, set_threads
from pairgram.features.input_map import InputMap, after_inputs, whole_map
from pairgram.features.inputs import FittedInputs, check_inputs, fit_inputs, inputs_of_moments
from pairgram.features.known import describe_map, same_map
from pairgram.files.kinds import PRIOR
from pairgram.files.read_write import write_file
from pairgram.metrics import evaluate, get_metric
from pairgram.rankers.column_weights import contributions_of, names_of, weights_of
from pairgram.rankers.row_scores import Scorer, checked_rows, scores_of
from pairgram.rankers.table_scores import scores_of_table
from pairgram.solvers.interface import ColumnSums
from pairgram.tables.blocks import SAMPLE_ROWS, BlockReader, one_row
from pairgram.tables.survey import MomentsTask
from pairgram.tables.table import Table, refuse_arguments

SPELLINGS = ("eval_set", "eval_group", "eval_qid")


def with_validation(model: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `fit` with `validation` in place of its other spellings.

    Parameters
    ----------
    model : ranker
    named : dict
        The arguments by keyword. ``eval_set=[(X, y)]`` with ``eval_group=[sizes]`` or
        ``eval_qid=[ids]``, lists of one entry each or the entry itself, stand for ``validation=(X,
        y, qid)``. A ranker without settings to choose ignores them with a warning.

    Raises
    ------
    ValueError
        If `validation` is given as well, if there are several sets, or sizes or ids without rows.
    """
    given = {name: named[name] for name in SPELLINGS if named.get(name) is not None}
    named = {name: value for name, value in named.items() if name not in SPELLINGS}
    if not given:
        return named
    if "validation" not in inspect.signature(type(model).fit).parameters:
        warn_caller(
            f"{type(model).__name__} has no settings to choose, so fit ignores "
            f"{' and '.join(given)}: take the class whose name ends with CV",
            UserWarning,
        )
        return named
    if named.get("validation") is not None:
        raise ArgumentError(
            "validation", f" and {' and '.join(given)} say the same: give one of them"
        )
    if "eval_set" not in given:
        raise ValueError(f"{' and '.join(given)} came without eval_set, the rows (X, y)")
    if "eval_group" in given and "eval_qid" in given:
        raise ValueError("eval_group and eval_qid say the same in two ways: give one of them")
    X, y = _pair(given["eval_set"])
    qid, sizes = (_only(name, given.get(name)) for name in ("eval_qid", "eval_group"))
    if sizes is not None:
        try:
            offsets = Queries.make(len(y), group=sizes).offsets
        except (TypeError, ValueError) as error:
            raise type(error)(f"eval_{error}") from None  # which begins with "group"
        qid = np.repeat(np.arange(len(sizes)), np.diff(offsets))
    return named | {"validation": (X, y) if qid is None else (X, y, qid)}


def _pair(sets: Any) -> tuple[Any, Any]:
    """Return the only (X, y)."""
    if isinstance(sets, list) and len(sets) == 1:
        (sets,) = sets
    if isinstance(sets, tuple) and len(sets) == 2:
        return sets
    found = f"a list of {len(sets)}" if isinstance(sets, list) else type(sets).__name__
    raise ValueError(f"eval_set must be [(X, y)], one set, got {found}")


def _only(name: str, values: Any) -> Any:
    """Return the only array of a list, or the array that was given itself."""
    if values is None or not isinstance(values, (list, tuple)) or np.ndim(values[0]) == 0:
        return values
    if len(values) != 1:
        raise ArgumentError(name, f" must have one entry, as eval_set has, got {len(values)}")
    return values[0]


def frozen(prior: Any) -> Any:
    """Return a fitted model as a FrozenEstimator, and any other prior as it is.

    A clone of a model is not fitted, but a clone of a FrozenEstimator is the same object.
    """
    if not hasattr(prior, "fit") or isinstance(prior, (type, FrozenEstimator)):
        return prior
    try:
        check_is_fitted(prior)
    except NotFittedError:
        return prior
    return FrozenEstimator(prior)


# What errors of a validation set call it.
_VALIDATION = ("validation", "X of validation", "y of validation")


class Prior(NamedTuple):
    """What the parameter `prior` says.

    Attributes
    ----------
    coef : ndarray of shape (n_features,), float64, or None
        Weights of the features of the new model. Its own weights are then a sum with these.
    model : estimator or None
        The fitted model that was frozen. Without `coef`, its scores are added to those of the new
        model.
    """

    coef: Vector | None
    model: Any

    @classmethod
    def of(cls, prior: Any, feature_map: Any, no_columns: str) -> Prior:
        """Read the parameter.

        Parameters
        ----------
        prior : array-like of shape (n_features,), fitted model or FrozenEstimator
        feature_map : fitted transformer or None
            The map of the new model, its inputs included.
        no_columns : str
            Why the new model has no columns that weights could belong to; "" if it has.

        Raises
        ------
        ValueError
            If the prior is none of these, or if it is weights and there are no columns.
        TypeError
            If the frozen estimator has no method `predict`.
        """
        prior = frozen(prior)
        if isinstance(prior, FrozenEstimator):
            model = prior.estimator
            if not callable(getattr(model, "predict", None)):
                raise TypeError(f"prior must have predict, got a frozen {type(model).__name__}")
            if "coef_" not in vars(model):  # the check takes as long as a small fit
                try:
                    check_is_fitted(model)
                except NotFittedError as error:
                    raise ArgumentError("prior", f": {error}") from None
            if getattr(model, "uses_offset_", False):
                raise ArgumentError(
                    "prior",
                    f" is a {type(model).__name__} that needs an offset to predict: give its "
                    "scores to fit, as offset",
                )
            linear = not no_columns and getattr(model, "_is_linear", False)
            own = after_inputs(
                getattr(model, "inputs_", None), getattr(model, "feature_map_", None)
            )
            if linear and same_map(own, feature_map):
                return cls(model.coef_, model)
            return cls(None, model)
        if hasattr(prior, "fit"):
            raise ArgumentError(
                "prior",
                f": this {type(prior).__name__} is not fitted: fit it before; in a grid of "
                "settings, whose values are cloned, give FrozenEstimator(model), of sklearn.frozen",
            )
        if isinstance(prior, str):
            raise ArgumentError("prior", f" must be a fitted model: give load_model({prior!r})")
        if np.ndim(prior) != 1:
            raise ArgumentError(
                "prior",
                " must be None, weights of shape (n_features,), or a fitted model, got "
                f"{type(prior).__name__}",
            )
        if no_columns:
            raise ArgumentError(
                "prior",
                f" must be a fitted model with {no_columns}, got weights: there are "
                "no fixed columns that they could belong to",
            )
        coef = real_array(prior, "prior")
        if not np.isfinite(coef).all():
            column = int(np.argmin(np.isfinite(coef)))
            raise ArgumentError(
                "prior",
                f" must not hold NaN or infinity, got {coef[column]} for ",
                column=column,
            )
        return cls(coef, None)

    def without_names(self) -> Prior:
        """Return a prior that scores arrays whose column names have been checked."""
        return self._replace(model=without_names(self.model))

    def scores(self, X: Any, data: RankingData, n_threads: int | None) -> Vector:
        """Return the scores of rows, (n_rows,), float64.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_inputs)
            The rows as the caller gave them.
        data : RankingData
            The same rows after the checks, with the feature map of the new model.
        n_threads : int or None

        Raises
        ------
        ValueError
            If the prior cannot score the rows, as because they have other columns.
        """
        try:
            if self.coef is None:
                scores: ArrayLike = self.model.predict(X)
            else:
                if self.model is not None:
                    checked_rows(self.model, X)  # the names and the number of columns
                scores = self._of_columns(data, n_threads)
        except ValueError as error:
            if getattr(error, "parameter", None) == "prior":
                raise
            found = getattr(error, "found", None)
            raise ArgumentError("prior", f": {error}", found=found) from error
        scores = real_array(scores, "the scores of prior")
        if scores.shape != (len(data.y),) or not np.isfinite(scores).all():
            data.require_finite_features()
            raise ArgumentError("prior", " must give every row one finite score, but it does not")
        return scores

    def _of_columns(self, data: RankingData, n_threads: int | None) -> Vector:
        assert self.coef is not None
        if len(self.coef) != data.n_features:
            raise ArgumentError(
                "prior",
                f" must have a weight for each of {data.n_features} features, got {len(self.coef)}",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(data.scores(slice(None), self.coef[None], n_threads)[0])


QUANTILES = ("quantile", "raw+quantile")


def begin_fit(model: Any, table: Table) -> Table:
    """Check that a model can be fitted to a table, and return it with its missing values filled.

    Raises
    ------
    ValueError
        If the table has no labels, or no query ids where pairs are formed within queries; or if
        the rows of a query do not stand together.
    """
    name = type(model).__name__
    table.require_labels(f"{name}.fit")
    has_queries = table.has_queries
    if model._needs_queries and not has_queries:
        otherwise = ", or give the model {scope='global'}" if hasattr(model, "scope") else ""
        text = f"{name}.fit compares rows within queries: {table.advice_on_ids}{otherwise}"
        raise ArgumentError(None, text)
    table.survey()
    table = table.filled()
    model.n_features_in_ = table.n_features
    model.__dict__.pop("feature_names_in_", None)
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.uses_offset_, model.prior_ = False, None
    model.missing_ = table.layout.fill
    return table


def same_columns(model: Any, table: Table, other: Any) -> Table:
    """Return a validation table, after checking that it has the columns of the table of `fit`.

    Raises
    ------
    ValueError
        If it is no table, or has other features, no labels or no query ids.
    """
    if not isinstance(other, Table):
        raise ArgumentError(
            "validation", f" must be a table, as X is: use scan, got {type(other).__name__}"
        )
    other = other.widened(table.n_features).with_features(table.feature_names)
    if other.feature_names != table.feature_names or other.n_features != table.n_features:
        raise ArgumentError(
            "validation",
            " must have the features of the table of fit, "
            f"{table.feature_names or table.n_features}, got "
            f"{other.feature_names or other.n_features}",
        )
    if other.has_queries != table.has_queries:
        raise ArgumentError(
            "validation", " must have query ids if the table of fit has, and only then"
        )
    other.require_labels("validation")
    other.survey()
    fill = table.layout.fill
    filled: Table = other.filled() if fill is None else other.filling(fill)
    return filled


def block_readers(model: Any, table: Table, feature_map: Any) -> list[BlockReader]:
    """Return a reader for each of the inputs that the model chooses from; see `begin_fit`.

    A clone of `feature_map` is fitted to what each of them makes.

    Rows are drawn for what needs them: quantiles, landmarks and the widths of kernels are found
    from at most `SAMPLE_ROWS` rows, which do not depend on the partitions. Scales are exact.
    """
    kinds = [check_inputs(kind) for kind in model._kinds()]
    draws = feature_map is not None or any(kind in QUANTILES for kind in kinds)
    if draws:
        rows = table.sample(SAMPLE_ROWS).rows
        assert rows.y is not None
        data = RankingData.delimit(rows.X, rows.y, sample_weight=rows.weights)
    else:  # the type and the number of features are enough
        data = one_row(table)
    moments = None
    readers = []
    for kind in kinds:
        inputs: FittedInputs | None = None
        if kind in QUANTILES:
            inputs = model._fit_inputs(data, kind)
        elif kind is not None:
            model._refuse_inputs(kind)
            found = moments = moments or table.run(MomentsTask(model.n_threads))
            inputs = replace(
                inputs_of_moments(
                    kind, found.lowest, found.highest, found.mean, found.squares, found.weight
                ),
                feature_names_in_=getattr(model, "feature_names_in_", None),
            )
        own = model._with_map(data, feature_map, inputs)
        prior = model._prior_of(whole_map(own))
        if prior is not None:
            model.prior_ = prior.model if prior.coef is None else None
            own = own.plus_offset(np.zeros(len(own.y)))  # so that it is known to have offsets
            names = getattr(prior.model, "feature_names_in_", None)
            if names is not None and table.feature_names not in (None, list(names)):
                raise ArgumentError(
                    "prior",
                    f": the table must have its features, {list(names)}, got {table.feature_names}",
                )
            prior = prior.without_names()
        own = own.take(np.arange(1))  # which the maps and inputs do not need any more
        readers.append(BlockReader(own, None if prior is None else prior.scores, model.n_threads))
    return readers


class LinearRanker(WholeFit, BaseEstimator):  # type: ignore[misc]
    """The base class of all rankers: it checks data, predicts, scores, and writes files."""

    __metadata_request__fit = {"qid": True, "sample_weight": True, "offset": True}  # noqa: RUF012
    __metadata_request__predict = {"offset": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "sample_weight": True, "offset": True}  # noqa: RUF012

    _file_kind = "RankRLS"  # the class that a model file names

    coef_: NDArray[np.float64]
    feature_map_: Any
    inputs_: FittedInputs | None = None
    missing_: NDArray[np.float64] | None = None
    uses_qid_: bool
    uses_offset_: bool = False
    prior_: Any = None
    feature_map: Any
    inputs: Any = None
    n_threads: int | None
    _column_sums: ColumnSums | None = None  # see `weights`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(kind in (None, "maxabs") for kind in self._kinds())
        tags.target_tags.required = True
        return tags

    def __sklearn_clone__(self) -> Any:
        """Return an estimator with the same settings that is not fitted; a fitted prior stays."""
        bare, prior = copy.copy(self), getattr(self, "prior", None)
        if prior is not None:
            bare.__dict__["prior"] = frozen(prior)
        return BaseEstimator.__sklearn_clone__(bare)

    def _check(self, X: Any, y: ArrayLike | None, info: RowInfo) -> RankingData:
        data = self._check_rows(X, y, info)
        return self._with_prior(X, data if len(self._kinds()) > 1 else self._mapped(data))

    @property
    def _no_columns(self) -> str:
        """Why the model has no columns that weights of a prior could belong to; "" if it has."""
        return ""

    def _prior_of(self, feature_map: Any) -> Prior | None:
        """Return the prior of a model with a fitted feature map."""
        prior = getattr(self, "prior", None)
        return None if prior is None else Prior.of(prior, feature_map, self._no_columns)

    def _with_prior(self, X: Any, data: RankingData) -> RankingData:
        """Add the scores of the prior to the offset of rows; X is as the caller gave it."""
        self.uses_offset_, self.prior_, self.missing_ = data.offset is not None, None, None
        prior = self._prior_of(whole_map(data))
        if prior is None:
            return data
        self.prior_ = prior.model if prior.coef is None else None
        return data.plus_offset(prior.scores(X, data, self.n_threads))

    @property
    def _is_linear(self) -> bool:
        """Whether scores are ``features @ coef_`` and nothing else."""
        own = type(self).predict is LinearRanker.predict
        return own and self.prior_ is None and not self.uses_offset_

    def _mapped(self, data: RankingData) -> RankingData:
        """Return `data` with inputs and a feature map that are fitted to them.

        Of a list of inputs to choose from, the first is taken.
        """
        return self._with_map(data, self._unfitted_map(), self._fit_inputs(data, self._kinds()[0]))

    def _kinds(self) -> list[str | None]:
        """Return the kinds of inputs to choose from, as they were given."""
        return [self.inputs]

    def _fit_inputs(self, data: RankingData, kind: str | None) -> FittedInputs | None:
        """Return inputs that are fitted to the rows, as often as their weights say; or None.

        Raises
        ------
        ValueError
            If `kind` is unknown; if the rows are not numbers of columns but kernel values, or are
            a callable's own; or if every row has weight 0.
        """
        if check_inputs(kind) is None:
            return None
        self._refuse_inputs(kind)
        weights = data.v * data.query_weight_of_rows if data.may_vanish else None
        if weights is not None and not weights.any():
            raise ValueError(
                "no pair of rows counts: sample_weight times query_weight is 0 for every row"
            )
        inputs = fit_inputs(str(kind), data.X, weights, self.n_threads)
        return replace(inputs, feature_names_in_=getattr(self, "feature_names_in_", None))

    def _refuse_inputs(self, kind: str | None) -> None:
        """Raise a ValueError if the kernel takes X as it is."""
        feature_map = getattr(self, "feature_map", None)
        for kernel in (getattr(self, "kernel", None), getattr(feature_map, "kernel", None)):
            if kernel == "precomputed" or callable(kernel):
                raise ValueError(
                    f"inputs must be None with kernel={kernel!r}, which takes X as it is: got "
                    f"{kind!r}"
                )

    def _applies_first(self, data: RankingData, feature_map: Any) -> bool:
        """Whether the inputs are applied to X before the fit, rather than where X is read.

        They are for CSR rows, whose zeros stay zeros, and for maps of other packages.
        """
        others = feature_map is not None and not is_known(feature_map)
        return others or scipy.sparse.issparse(data.X)

    def _with_map(
        self, data: RankingData, feature_map: Any, inputs: FittedInputs | None = None
    ) -> RankingData:
        """Return `data` with a clone of the feature map that is fitted to what `inputs` make."""
        if inputs is not None and self._applies_first(data, feature_map):
            data = replace(data, X=inputs.values(data.X, self.n_threads), applied=inputs)
            inputs = None
        if feature_map is None:
            own = None if inputs is None else InputMap(inputs, None, self.n_threads)
            return data if own is None else replace(data, feature_map=own)
        feature_map = clone(feature_map)
        set_threads(feature_map, self.n_threads)
        if is_known(feature_map) and len(self._kinds()) == 1:  # others try what helps
            self._warn_of_rows(feature_map, data, inputs)
        with without_row_warnings():  # the map would repeat them without the column names
            if not is_known(feature_map):
                return replace(data, feature_map=feature_map.fit(data.X, data.y))
            if inputs is None:
                return replace(data, feature_map=feature_map.fit_checked(data.X))
            fitted = feature_map.fit_checked(inputs.for_fit(data.X, feature_map.draws_only))
            return replace(data, feature_map=InputMap(inputs, fitted, self.n_threads))

    def _warn_of_rows(
        self, feature_map: Any, data: RankingData, inputs: FittedInputs | None
    ) -> None:
        """Warn if the rows, after `inputs`, do not suit a map or kernel of this package."""
        names = getattr(self, "feature_names_in_", None)
        known = data.applied or inputs
        rows = data.X if inputs is None else inputs.values(sample_of(data.X))
        warn_of_rows(feature_map, rows, names if known is None else known.names(names))

    def _check_rows(self, X: Any, y: ArrayLike | None, info: RowInfo) -> RankingData:
        if isinstance(X, Table):
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to a table, because it needs all rows in "
                "memory: RankRLSCV, PairwiseELMCV and RankSVM can be"
            )
        refuse_index(X)
        refuse_lossy(y, "y")
        require_label_each(X, y)
        X, y = read_rows(X, estimator=self, y=y, reset=True)
        return self._delimit(X, y, info)

    def _delimit(self, X: Any, y: ArrayLike, info: RowInfo) -> RankingData:
        """Delimit rows whose X and y have been checked, and check their weights."""
        data = RankingData.delimit(X, y, *info)
        for name, weights in (
            ("sample_weight", data.row_weights),
            ("query_weight", data.query_weights),
        ):
            if weights is not None and not weights.any():
                raise ArgumentError(name, " must not be zero for every row: no pair would count")
        return data

    @property
    def _needs_queries(self) -> bool:
        """Whether the model is fitted to pairs within queries."""
        pairs = getattr(self, "pairs", "kept")
        several = pairs if isinstance(pairs, (list, tuple)) else [pairs]
        within = getattr(self, "scope", "query") == "query"
        return within and any(one is not None for one in several)

    def _warn_of_missing_queries(self, data: RankingData, info: RowInfo) -> None:
        """Warn in `fit` if query ids seem to have been forgotten."""
        if self._needs_queries and not info.has_queries:
            warn_of_missing_queries(f"{type(self).__name__}.fit", len(data.y))

    def _warn_of_equal_labels(self, data: RankingData, settings: list[PairSettings]) -> None:
        """Warn in `fit` if kept pairs are all tied. Other pairs are then an error."""
        if data.offset is None and all(one.kind == "kept" for one in settings):
            warn_of_equal_labels(lambda: data.labels_differ(settings[0]))

    def _arguments_of_fit(self, named: dict[str, Any]) -> dict[str, Any]:
        return with_validation(self, named)

    def _unfitted_map(self) -> Any:
        """Return the feature map; `fit` fits a clone of it."""
        return self.feature_map

    def _held_rows(
        self, feature_map: Any, uses_qid: bool, cv: Any, validation: Any
    ) -> tuple[Any, RankingData | None]:
        """Return (cv, the rows of the validation set). At least one of them is None.

        Raises
        ------
        ValueError
            If both are given, if `cv` is a validation set, or if `validation` is not as described.
        """
        if isinstance(cv, tuple) and 2 <= len(cv) <= 4 and _is_matrix(cv[0]) and np.ndim(cv[1]) < 2:
            raise ValueError(
                "cv must not be a validation set: give it to fit, as validation=(X, y) or "
                "validation=(X, y, qid)"
            )
        if validation is None:
            return cv, None
        if cv is not None:
            raise ValueError(f"give cv or validation, not both: got cv={cv!r} and a validation set")
        if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3, 4):
            raise ArgumentError(
                "validation",
                " must be (X, y), (X, y, qid) or (X, y, qid, offset), got "
                f"{type(validation).__name__}",
            )
        try:
            return None, self._validation(feature_map, uses_qid, *validation)
        except ValueError as error:
            if getattr(error, "parameter", None) in _VALIDATION:
                raise
            raise ArgumentError("validation", f": {error}") from error  # not X, y and qid of fit

    def _validation(
        self,
        feature_map: Any,
        uses_qid: bool,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> RankingData:
        """Check the rows of a validation set, and give them the same feature map and prior."""
        if qid is None and uses_qid:
            raise ArgumentError(
                "validation",
                " is (X, y), but fit has query ids: give (X, y, qid), or eval_qid or "
                "eval_group beside eval_set",
            )
        if (offset is None) == self.uses_offset_:
            wanted = "an offset: give (X, y, qid, offset)"
            wanted = wanted if offset is None else "no offset: give (X, y) or (X, y, qid)"
            raise ArgumentError("validation", f" must be as the rows of fit, which have {wanted}")
        refuse_lossy(y, "y of validation")
        require_label_each(X, y, " of validation")
        given = X
        X, y = read_rows(X, "X of validation", estimator=self, y=y)
        if feature_map is None or is_known(feature_map):  # others may take NaN
            require_finite(X, "X of validation")
        data = replace(RankingData.delimit(X, y, qid, offset=offset), feature_map=feature_map)
        prior = self._prior_of(feature_map)
        return data if prior is None else data.plus_offset(prior.scores(given, data, None))

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return the scores by which rows are ranked, highest first.

        The scores are ``X @ coef_``, or ``feature_map_.transform(X) @ coef_`` if there is a feature
        map. With `inputs`, ``inputs_.transform(X)`` takes the place of X. The scores of `prior_`
        and the offsets are added.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            With ``kernel="precomputed"``, the kernel values between every row and the training
            rows.
        offset : array-like of shape (n_rows,) or None
            Scores that are added. A model that was fitted with an offset needs them, and no other
            model takes them.

        Returns
        -------
        ndarray of shape (n_rows,)
            float32 for float32 X, otherwise float64. A frame of any package is float32 if a
            float32 holds what each column holds, and one column is float32.

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, holds NaN or infinity, or has
            columns of times, text, lists or other objects; or if
            `offset` is missing, or given to a model that was fitted without.

        Notes
        -----
        The score of a row has the same bits whatever other rows X has, wherever the row stands, and
        for any number of threads. This holds for arrays of one type, and for CSR matrices; the
        scores of an array and of a CSR matrix differ by rounding errors. It may not hold if
        features come from callables or from transformers of other packages.

        The preparations for a map of this package are kept for the next call, if its arrays take at
        most 64 MiB. To change a fitted map, assign a new array: a change within an array may not be
        noticed.
        """
        if isinstance(X, Table):
            refuse_arguments(offset=offset)
            return scores_of_table(self, X)
        rows = self._rows_to_score(X)
        with naming_not_finite(getattr(self, "feature_names_in_", None)):
            scores = scores_of(self, rows)
        if self.prior_ is None and offset is None and not self.uses_offset_:
            return scores
        if (offset is None) == self.uses_offset_:
            wanted = "needs the " if offset is None else "takes no "
            how = "with one" if offset is None else "without"
            rest = f" of the rows to score: it was fitted {how}"
            raise ArgumentError("offset", rest, lead=f"{type(self).__name__} {wanted}")
        total = scores.astype(np.float64)
        if self.prior_ is not None:
            filled = self.missing_ is not None
            total += without_names(self.prior_).predict(rows) if filled else self.prior_.predict(X)
        if offset is not None:
            total += check_offset(offset, len(total))
        return np.asarray(total, dtype=scores.dtype)

    def _without_names(self) -> Self:
        """Return a copy that takes arrays in place of frames with names."""
        other = copy.copy(self)
        other.__dict__.pop("feature_names_in_", None)
        if other.prior_ is not None:
            other.prior_ = without_names(other.prior_)
        return other

    def _rows_to_score(self, X: Any) -> Any:
        rows = checked_rows(self, X)
        if self.missing_ is None or scipy.sparse.issparse(rows):
            return rows
        missing = np.isnan(rows)
        return np.where(missing, self.missing_.astype(rows.dtype), rows) if missing.any() else rows

    @by_keyword
    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@10 over queries.

        The gain of a label is ``2^y − 1``, and the discount of place i is ``1 / log2(1 + i)``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
        y : array-like of shape (n_rows,), ≥ 0
            A table has labels, query ids and weights itself.
        qid : array-like of shape (n_rows,) or None
            Query ids. None means that the rows are one query.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of rows. The weight of a query is the mean weight of its rows.
        offset : array-like of shape (n_rows,) or None
            As in `predict`.

        Raises
        ------
        ValueError
            If a label is negative, if the model was fitted with query ids and none are given, or if
            `offset` is not as `predict` wants it.
            For negative labels use another metric, such as ``scoring=make_scorer("kendall")`` in
            scikit-learn's tools, or ``evaluate("kendall", ...)``.

        Warns
        -----
        MissingQueryWarning
            If query ids are missing within scikit-learn's cross-validation, because that turns the
            error into NaN.
        """
        check_is_fitted(self)
        if isinstance(X, Table):
            refuse_arguments(y=y, qid=qid, sample_weight=sample_weight, offset=offset)
            return float(evaluate("ndcg@10", X, self)["ndcg@10"])
        if qid is None and self.uses_qid_:
            refuse_score_without_ids(self)
        refuse_lossy(y, "y")
        labels = np.asarray(y)
        if labels.size and labels.dtype.kind in "iuf" and (labels < 0).any():
            row = int(np.argmax(labels.ravel() < 0))
            lead = "score is NDCG@10, which takes labels >= 0, but "
            rest = (
                ": use scoring=make_scorer('pairwise_accuracy') or another metric for real "
                "labels ('kendall', 'spearman', 'msd', 'm1d')"
            )
            text = f" is {labels.ravel()[row]} in "
            raise ArgumentError("y", text, rest, lead=lead, row=row)
        metric = get_metric("ndcg@10")
        scores = self.predict(X, offset=offset)
        return float(metric(labels, scores, qid, sample_weight=sample_weight))

    @property
    def column_names_(self) -> NDArray[Any]:
        """The names of the columns that `weights` and `contributions` are about, (n_columns,).

        They are those of X, or ``x0``, ``x1``, … if X had no names. With ``inputs="raw+quantile"``
        every column is there twice, and all that are replaced by their quantiles come second, named
        like ``quantile of x0``.
        """
        check_is_fitted(self)
        return names_of(self)

    def weights(self, X: Any = None, *, qid: ArrayLike | None = None) -> dict[str, NDArray[Any]]:
        """Return the weights of the columns, the most important first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or None, default=None
            Rows on which to measure how much the columns vary. None takes what `fit` found.
        qid : array-like of shape (n_rows,) or None, default=None
            Query ids of X.

        Returns
        -------
        dict of str to ndarray of shape (n_features,)
            ``pandas.DataFrame(model.weights())`` makes a frame of it. The columns are

            - ``column``: the number of the column of X from 0, or that of `inputs_`;
            - ``name``: its name in `column_names_`;
            - ``weight``: the score is the sum of weight × value, up to a constant;
            - ``spread``: the standard deviation of the column within queries;
            - ``importance``: ``|weight| × spread``, which does not depend on the column's unit;
            - ``share``: the share of the variance of the score within queries. It is the
              covariance of weight × value and the score, divided by the variance of the score.
              Shares add up to 1. They can be negative, and are 0 if the score does not vary.

        Raises
        ------
        ValueError
            If the model is not linear in the columns of X; if X is not as described; or if there is
            no X and the fit did not measure the columns.

        Notes
        -----
        The spread is ``sqrt(½ Σ_ij W_ij (x_i − x_j)² / Σ_ij W_ij)``. If `fit` measured it, W are
        the weights of the pairs that were fitted. On given rows, all pairs of rows of a query have
        weight 1, which is also what the default pairs of `RankRLS` have.

        `fit` measures the columns if it sums their Gram matrix over pairs anyway. It does not for
        the dual form, for conjugate gradients, for ``pairs=None``, for nodes, in `fit_many` for
        small problems, in `RankSVM` if the Gram matrix is estimated, and for least squares that
        start from a prior.
        """
        check_is_fitted(self)
        return weights_of(self, X, qid)

    def contributions(self, X: Any) -> Any:
        """Return what every column adds to the score of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features), float64
            Values × weights, in the order of `column_names_`. The sum of a row is its score without
            its offset, up to one constant that is the same for all rows and changes no ranking.
            Only differences between rows of a query say something.

        Raises
        ------
        ValueError
            If the model is not linear in the columns of X, or X is not as in `predict`.
        """
        check_is_fitted(self)
        return contributions_of(self, X)

    def scorer(self, dtype: DTypeLike = np.float64) -> Scorer:
        """Return a frozen function that scores rows without checking them, for serving.

        It takes C-contiguous rows of one type, in one thread of its own. Its scores are float64,
        and for float64 rows they have the bits of `predict`. Threads may share it. For
        100 rows of 50 columns and a linear model it takes 1.6 µs.

        Parameters
        ----------
        dtype : float64 or float32, default=float64
            The type of the rows.

        Returns
        -------
        callable
            ``scorer(X) -> ndarray of shape (n_rows,), float64``.

        Raises
        ------
        ValueError
            If only Python can score rows, as for callables; or if the model adds offsets or the
            scores of a prior.

        Examples
        --------
        >>> from pairgram import RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> scorer = RankRLS().fit(X, y, qid=qid).scorer()
        >>> scorer(X[:100]).shape
        (100,)
        """
        check_is_fitted(self)
        return Scorer(self, dtype)

    def compress(self, n_landmarks: int, *, random_state: Any = 0) -> Any:
        """Return a smaller model that replaces a kernel's training rows by a few of them.

        Parameters
        ----------
        n_landmarks : int ≥ 1
            How many training rows the new model has at most. Rows that represent the others well
            are taken, by randomly pivoted Cholesky.
        random_state : int, RandomState, Generator or None, default=0

        Returns
        -------
        RankRLS
            A fitted model with a `Nystroem` map. Its scores are those of the function nearest to
            this model's among the functions of the landmarks, in the norm of the kernel. Its
            attribute `agreement_` is the share of pairs of the training rows that both models order
            alike, from 0 to 1, over all pairs with different scores.

        Raises
        ------
        ValueError
            If the model has no named kernel, fewer rows than `n_landmarks`, offsets, a prior that
            is a model, or an intercept.

        Notes
        -----
        This takes n_rows · n_landmarks kernel values, n_rows · n_landmarks² flops, and the n_rows²
        kernel values of the agreement.

        Examples
        --------
        >>> from pairgram import RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> model = RankRLS(kernel="rbf", gamma=0.01).fit(X[:500], y[:500], qid=qid[:500])
        >>> small = model.compress(50)
        >>> small.feature_map_.components_.shape, small.agreement_ > 0.9
        ((50, 20), True)
        """
        from pairgram.rankers.compress import compressed

        check_is_fitted(self)
        return compressed(self, n_landmarks, random_state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file, which holds no code.

        The file is written completely or not at all. `load_model` reads it. The file holds the
        results of the last fit and the current parameters, as a pickle does; so fit again after
        ``set_params``. A `random_state` that is not an int is not kept.

        Raises
        ------
        ValueError
            If a parameter is a Python callable, which a file cannot hold, or if a parameter has
            been set to a value that `fit` would refuse.
        OSError
            If the file cannot be written. The message names the file.
        """
        check_is_fitted(self)
        write_file(path, self._file_kind, *self._contents())

    def _contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and settings of a model file.

        Weights of a prior are part of `coef_`. A prior whose scores are added is kept as a model
        within the model.
        """
        map_arrays, map_settings = describe_map(self.feature_map_)
        arrays = {"coef_": self.coef_, **map_arrays}
        if self._column_sums is not None:
            squares, products, weight = self._column_sums
            arrays |= {"variances": squares / weight, "covariances": products / weight}
        if self.missing_ is not None:
            arrays["missing"] = self.missing_
        if self.inputs_ is not None:
            arrays |= self.inputs_.arrays()
        names = ("uses_qid_", "n_features_in_", "form_", "intercept_")
        settings = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if hasattr(self, "feature_names_in_"):
            settings["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        if self.uses_offset_:
            settings["uses_offset_"] = True
        parameters = self._parameters_to_save()
        parameters |= {"feature_map": map_settings, "fitted": settings}
        parameters["inputs"] = None if self.inputs_ is None else self.inputs_.kind
        parameters.pop("prior", None)
        if isinstance(parameters.get("positive"), np.ndarray):
            parameters["positive"] = parameters["positive"].tolist()
        if self.prior_ is not None:
            if not isinstance(self.prior_, LinearRanker):
                raise ValueError(
                    f"prior is a {type(self.prior_).__name__}, which a file cannot hold without "
                    "running code when it is loaded: rankers of this package can be saved"
                )
            of_prior, settings_of_prior = self.prior_._contents()
            arrays |= {f"{PRIOR}{name}": array for name, array in of_prior.items()}
            parameters["prior"] = {"kind": self.prior_._file_kind, "settings": settings_of_prior}
        return arrays, parameters

    def _parameters_to_save(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


def _is_matrix(X: Any) -> bool:
    """Tell whether a value is a matrix of rows rather than a split."""
    return scipy.sparse.issparse(X) or hasattr(X, "columns") or getattr(X, "ndim", 0) == 2
