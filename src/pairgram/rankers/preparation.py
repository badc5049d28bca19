"""`Preparation`: the inputs, the feature map and the prior of a model, as its rows meet them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import real_array, without_names
from pairgram._support.checks import ArgumentError, Vector, not_finite
from pairgram._support.row_warnings import sample_of, warn_of_rows, without_row_warnings
from pairgram.data.dataset import RankingData
from pairgram.features.base import is_known, set_threads
from pairgram.features.input_map import InputMap, after_inputs, fit_after, whole_map
from pairgram.features.inputs import FittedInputs, check_inputs, fit_inputs, inputs_of_moments
from pairgram.features.kernels import Kernel
from pairgram.features.known import same_map
from pairgram.rankers.row_scores import checked_rows
from pairgram.solvers.dual_gram import require_memory
from pairgram.tables.blocks import SAMPLE_ROWS, BlockReader, one_row
from pairgram.tables.survey import MomentsTask
from pairgram.tables.table import Table

QUANTILES = ("quantile", "raw+quantile")


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

    @property
    def kept(self) -> Any:
        """The model that `predict` adds to, or None if its weights are part of the new model."""
        return self.model if self.coef is None else None

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
        if (column := not_finite(coef)) is not None:
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


@dataclass(frozen=True, eq=False)
class Preparation:
    """What becomes of rows before a linear model sees them, and what its fit starts from.

    Attributes
    ----------
    kinds : tuple of str or None
        The kinds of inputs to choose from.
    feature_map : unfitted transformer or None
        A clone of it is fitted to what the inputs make. For a kernel it is the `KernelMap`.
    kernel : str, callable or None
        The kernel, if the model has one other than "linear", and so dual coefficients only.
    takes_path : bool
        Whether a kernel's problem is decomposed, which takes more memory than one solution.
    prior : array-like, fitted model or None
    no_columns : str
        Why the model has no columns that weights of a prior could belong to; "" if it has.
    n_threads : int or None
    """

    kinds: tuple[str | None, ...] = (None,)
    feature_map: Any = None
    kernel: Kernel | None = None
    takes_path: bool = False
    prior: Any = None
    no_columns: str = ""
    n_threads: int | None = None

    def prior_of(self, feature_map: Any) -> Prior | None:
        """Return the prior of a model with a fitted map, its inputs included."""
        return None if self.prior is None else Prior.of(self.prior, feature_map, self.no_columns)

    def each(self, data: RankingData) -> Iterator[RankingData]:
        """Yield the data with every kind of inputs. A single kind is there already."""
        for kind in self.kinds:
            yield data if len(self.kinds) == 1 else self.mapped(data, kind)

    def mapped(self, data: RankingData, kind: str | None) -> RankingData:
        """Return the data with inputs of one kind and the map, which are fitted to them."""
        return self.with_map(data, self.inputs(data, kind))

    def inputs(self, data: RankingData, kind: str | None) -> FittedInputs | None:
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
        weights = None
        if data.may_vanish:
            data = data.with_weights_in_range()
            weights = data.v * data.query_weight_of_rows
        if weights is not None and not weights.any():
            raise ValueError(
                "no pair of rows counts: sample_weight times query_weight is 0 for every row"
            )
        inputs = fit_inputs(str(kind), data.X, weights, self.n_threads)
        return replace(inputs, feature_names_in_=data.names)

    def _refuse_inputs(self, kind: str | None) -> None:
        """Raise a ValueError if the kernel takes X as it is."""
        for kernel in (self.kernel, getattr(self.feature_map, "kernel", None)):
            if kernel == "precomputed" or callable(kernel):
                raise ValueError(
                    f"inputs must be None with kernel={kernel!r}, which takes X as it is: got "
                    f"{kind!r}"
                )

    def with_map(self, data: RankingData, inputs: FittedInputs | None = None) -> RankingData:
        """Return the data with a clone of the map that is fitted to what `inputs` make.

        Inputs are applied to X here, rather than where X is read, for CSR rows, whose zeros stay
        zeros, for kernels, and for maps of other packages.

        Raises
        ------
        MemoryError
            If a kernel's problem does not fit in memory. The rows are not copied then.
        """
        feature_map = self.feature_map
        known = is_known(feature_map)
        if self.kernel is not None:
            self._require_memory(data)
        first = self.kernel is not None or scipy.sparse.issparse(data.X)
        if inputs is not None and (first or not (feature_map is None or known)):
            data = replace(data, X=inputs.values(data.X, self.n_threads), applied=inputs)
            inputs = None
        if feature_map is None:
            own = None if inputs is None else InputMap(inputs, None, self.n_threads)
            return data if own is None else replace(data, feature_map=own)
        feature_map = clone(feature_map)
        set_threads(feature_map, self.n_threads)
        if known and len(self.kinds) == 1:  # others try what helps
            warn_of_inputs(feature_map, data, inputs)
        with without_row_warnings():  # the map would repeat them without the column names
            if not known:
                return replace(data, feature_map=feature_map.fit(data.X, data.y))
            return replace(data, feature_map=fit_after(inputs, feature_map, data.X))

    def _require_memory(self, data: RankingData) -> None:
        X, precomputed = data.X, self.kernel == "precomputed"
        size = X.data.nbytes + X.indices.nbytes if scipy.sparse.issparse(X) else X.nbytes
        require_memory(
            len(data.y),
            self.takes_path,
            None if precomputed else self.feature_map,
            X.dtype,
            feature_bytes=0.0 if precomputed else float(size),
        )

    def readers(self, table: Table) -> tuple[list[BlockReader], Prior | None]:
        """Return a reader for each of the kinds of inputs, and the prior.

        A clone of the map is fitted to what each of them makes.

        Rows are drawn for what needs them: quantiles, landmarks and the widths of kernels are found
        from at most `SAMPLE_ROWS` rows, which do not depend on the partitions. Scales are exact.
        """
        kinds = [check_inputs(kind) for kind in self.kinds]
        draws = self.feature_map is not None or any(kind in QUANTILES for kind in kinds)
        if draws:
            rows = table.sample(SAMPLE_ROWS).rows
            assert rows.y is not None
            data = RankingData.delimit(rows.X, rows.y, sample_weight=rows.weights)
        else:  # the type and the number of features are enough
            data = one_row(table)
        if table.feature_names is not None:
            data = replace(data, names=np.array(table.feature_names, dtype=object))
        prior, moments = None, None
        readers = []
        for kind in kinds:
            inputs: FittedInputs | None = None
            if kind in QUANTILES:
                inputs = self.inputs(data, kind)
            elif kind is not None:
                self._refuse_inputs(kind)
                found = moments = moments or table.run(MomentsTask(self.n_threads))
                inputs = replace(
                    inputs_of_moments(
                        kind, found.lowest, found.highest, found.mean, found.squares, found.weight
                    ),
                    feature_names_in_=data.names,
                )
            own = self.with_map(data, inputs)
            prior = self.prior_of(whole_map(own))
            if prior is not None:
                own = own.plus_offset(np.zeros(len(own.y)))  # so that it is known to have offsets
                names = getattr(prior.model, "feature_names_in_", None)
                if names is not None and table.feature_names not in (None, list(names)):
                    raise ArgumentError(
                        "prior",
                        f": the table must have its features, {list(names)}, got "
                        f"{table.feature_names}",
                    )
            own = own.take(np.arange(1))  # which the maps and inputs do not need any more
            scores = None if prior is None else prior.without_names().scores
            readers.append(BlockReader(own, scores, self.n_threads))
        return readers, prior


def warn_of_inputs(feature_map: Any, data: RankingData, inputs: FittedInputs | None) -> None:
    """Warn if the rows, after `inputs`, do not suit a map or kernel of this package."""
    known, names = data.applied or inputs, None if data.names is None else data.names.tolist()
    rows = data.X if inputs is None else inputs.values(sample_of(data.X))
    warn_of_rows(feature_map, rows, names if known is None else known.names(names))
