"""`BatchFit`: the models of many data sets, with one key each."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.arrays import (
    block_rows,
    blocks,
    column_names,
    select_columns,
    take_rows,
    without_names,
)
from pairgram._support.checks import Rows, Vector, require_finite
from pairgram._support.files import shown
from pairgram._support.machine import cached_property, thread_count
from pairgram.data.dataset import as_slice
from pairgram.data.queries import Queries, comparable, comparable_id, plain_ids
from pairgram.features.feature_map import checked, linear_nodes, mapped, same_map
from pairgram.features.row_values import Chain
from pairgram.files.read_write import read_file, write_file
from pairgram.rankers.linear_ranker import LinearRanker
from pairgram.rankers.load import describe_part, restore_part
from pairgram.rankers.scores import checked_rows, in_float32

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator

# What models that share all else have of their own, in a file too.
OWN = ("alpha_", "C_", "best_score_")


@dataclass(frozen=True, eq=False)
class Models(Sequence[Any]):
    """Fitted estimators, which are made when they are asked for, and None where a fit failed.

    Attributes
    ----------
    n_models : int
    first : fitted estimator or None
        What all models share but for those that were fitted alone.
    own : dict of str to ndarray of shape (n_models, ...)
        The attributes of each, with those of `alone`: "coef_", if all have the same features, and
        others.
    alone : dict of int to fitted estimator
        Models that were fitted alone.
    """

    n_models: int
    first: Any
    own: Mapping[str, NDArray[Any]]
    alone: Mapping[int, Any]

    @classmethod
    def of_fits(cls, n_models: int, fitted: Mapping[int, Any]) -> Self:
        """Return models that were all fitted alone."""
        like = next(iter(fitted.values()), None)
        shape = np.shape(getattr(like, "coef_", 0.0))
        alike = len(shape) == 1 and all(
            isinstance(model, LinearRanker)
            and Chain.of(model.feature_map_)[:2] == (None, None)
            and model.coef_.shape == shape
            and same_map(_map_of(model), _map_of(like))
            for model in fitted.values()
        )
        if not alike:
            return cls(n_models, None, {}, fitted)
        coefs = np.full((n_models, *shape), np.nan)
        for number, model in fitted.items():
            coefs[number] = model.coef_
        return cls(n_models, None, {"coef_": coefs}, fitted)

    @property
    def coefs(self) -> Vector | None:
        """The coefficients, (n_models, n_coefficients); None if the features are not the same."""
        return self.own.get("coef_")

    def __len__(self) -> int:
        """Return the number of models."""
        return self.n_models

    def __getitem__(self, number: int | slice) -> Any:
        """Return the model of this number, or None; or a list of those of a slice."""
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        if number in self.alone or self.first is None or np.isnan(self.own["coef_"][number]).any():
            return self.alone.get(number)
        model = copy.copy(self.first)
        for name, values in self.own.items():
            setattr(model, name, values.item(number) if values.ndim == 1 else values[number])
        return model

    def values(self, name: str) -> NDArray[Any]:
        """Return an attribute of every model, (n_models,); NaN for those without."""
        if name in self.own:
            return self.own[name]
        values = np.full(len(self), getattr(self.first, name, np.nan), dtype=object)
        for number, model in self.alone.items():
            values[number] = getattr(model, name, np.nan)
        return values


@dataclass(frozen=True, eq=False)
class BatchFit:
    """The models that `fit_many` returns.

    ``batch[key]`` is the fitted estimator of a key, and ``len(batch)`` the number of keys.

    Attributes
    ----------
    keys : ndarray of shape (n_keys,)
        The key of every data set, in the order of their first rows; or the number of a data set of
        a list, or of a target.
    models : sequence of fitted estimators
        In the order of the keys. None stands in place of a model that could not be fitted.
    errors_ : ndarray of shape (n_keys,), object
        Why a key has no model, or None.
    fallback : fitted estimator, float or None
        The model or number that scores rows whose key has no model.
    """

    keys: NDArray[Any]
    models: Models
    errors_: NDArray[Any]
    fallback: Any = None

    def __repr__(self) -> str:
        return f"<BatchFit of {len(self)} models, {int(self._failed.sum())} failed>"

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.keys)

    def __getitem__(self, key: object) -> Any:
        """Return the fitted estimator of a key.

        Raises
        ------
        TypeError
            If `key` is not a single key, such as a list.
        KeyError
            If there is no such key.
        ValueError
            If its model could not be fitted. The message says why.
        """
        number = self._number_of(key)
        if self._failed[number]:
            raise ValueError(f"key {key!r} has no model: {self.errors_[number]}")
        return self.models[number]

    def __contains__(self, key: object) -> bool:
        """Tell whether a key was fitted, or tried."""
        try:
            self._number_of(key)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the keys, as over those of a dict."""
        return iter(self.keys)

    @cached_property
    def _failed(self) -> NDArray[np.bool_]:
        return self.errors_.astype(bool)

    @cached_property
    def _first(self) -> Any:
        """The first model that was fitted, or None."""
        return None if self._failed.all() else self.models[int(np.argmin(self._failed))]

    @property
    def coef_(self) -> Vector:
        """The coefficients of all models, (n_keys, n_coefficients); NaN if a fit failed.

        Raises
        ------
        ValueError
            If the models do not have the same features, as with kernels and maps of their own.
        """
        if self.models.coefs is None:
            raise ValueError(
                "the models do not have the same features: kernels, and maps that are fitted to "
                "the rows of one key, have features of their own"
            )
        return self.models.coefs

    def _values(self, name: str) -> Vector:
        return np.where(self._failed, np.nan, self.models.values(name).astype(np.float64))

    @property
    def alpha_(self) -> Vector:
        """The ridge that each search has chosen, (n_keys,); NaN without."""
        return self._values("alpha_")

    @property
    def best_score_(self) -> Vector:
        """The mean held-out score of each choice, (n_keys,); NaN without."""
        return self._values("best_score_")

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {key: number for number, key in enumerate(comparable(self.keys))}

    def _number_of(self, key: object) -> int:
        try:
            number = self._numbers.get(comparable_id(key))
        except TypeError:
            raise TypeError(f"a key must be hashable, got {type(key).__name__} {key!r}") from None
        if number is None:
            first = plain_ids(self.keys[:3])
            raise KeyError(f"no model has the key {key!r}, the first keys are {first}")
        return number

    def _numbers_by(self, ids: NDArray[Any], fallback: BaseEstimator | float | None) -> Rows:
        """Return the numbers of the models of distinct ids, and −1 where the fallback scores.

        Raises
        ------
        ValueError
            If an id has no model and there is no fallback, or all ids are of another kind.
        """
        found = np.array([self._numbers.get(one, -1) for one in comparable(ids)], dtype=np.int64)
        found[np.append(self._failed, True)[found]] = -1
        if not (found >= 0).any():
            _refuse_other_kind(self.keys, ids)
        if fallback is None and (found < 0).any():
            missing = plain_ids(ids[found < 0])
            named = ", ".join(map(repr, missing[:5])) + ", ..." * (len(missing) > 5)
            raise ValueError(
                f"{len(missing)} of {len(ids)} keys have no model ({named}): give fallback, a "
                "model of all rows or np.nan"
            )
        return found

    def _models_of(self, ids: NDArray[Any]) -> list[Any]:
        """Return what scores the rows of each of some distinct ids: its model, or the fallback.

        Raises
        ------
        ValueError
            The errors of `predict`.
        """
        numbers = self._numbers_by(ids, self.fallback)
        return [self.fallback if at < 0 else self.models[at] for at in numbers.tolist()]

    def predict(
        self,
        X: Any,
        by: ArrayLike | str,
        *,
        fallback: BaseEstimator | float | None = None,
    ) -> NDArray[Any]:
        """Return the score of every row by the model of its key.

        Parameters
        ----------
        X : array-like, frame or CSR matrix of shape (n_rows, n_features)
            A frame may have further columns if the models know the names of theirs.
        by : array-like of shape (n_rows,), or the name of a column of the frame X
            The key of every row.
        fallback : fitted estimator, float or None, default=None
            What scores rows whose key has no model: a ranker or another estimator, or a number such
            as ``np.nan``. None takes the `fallback` of the batch.

        Returns
        -------
        ndarray of shape (n_rows,)
            float32 for float32 X, otherwise float64. Scores of different models are comparable only
            as far as their labels are.

        Raises
        ------
        ValueError
            If a key has no model and there is no fallback (the message names the first five such
            keys); if X is not as described; if `fallback` was fitted to other columns than the
            models, or to the same in another order; or if all keys of the models are of one kind
            and all given keys of another, such as text and numbers, which are never equal.
        """
        keys = select_columns(X, by, "X") if isinstance(by, str) else by
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = Queries.make(n_rows, qid=keys, name="by")
        fallback = self.fallback if fallback is None else fallback
        first = self._first
        if fallback is not None:
            check_fallback(fallback, getattr(first, "feature_names_in_", None))
        model = fallback if first is None else first
        names, there = getattr(model, "feature_names_in_", None), column_names(X)
        if names is not None and there is not None:
            X = select_columns(X, list(names), "X")
        assert queries.ids is not None
        of_row = self._numbers_by(queries.ids, fallback)[queries.index()]
        known, unknown = np.flatnonzero(of_row >= 0), np.flatnonzero(of_row < 0)
        rows = checked_rows(first, X) if isinstance(first, LinearRanker) else X
        is_narrow = getattr(rows, "dtype", None) == np.float32
        scores = np.empty(n_rows, dtype=np.float32 if is_narrow else np.float64)
        if len(unknown):
            other: Any = fallback
            is_number = isinstance(other, Real)
            scores[unknown] = other if is_number else other.predict(take_rows(X, unknown))
        if not len(known):
            return scores
        if self.models.coefs is not None:
            found = self._products(rows, known, of_row)
            scores[known] = in_float32(found) if is_narrow else found
            return scores
        groups = Queries.make(len(known), qid=of_row[known])
        for group in range(groups.n_queries):
            at = known[groups.rows(group)]
            scores[at] = self.models[of_row[at[0]]].predict(take_rows(X, at))
        return scores

    def _products(self, rows: Any, known: Rows, of_row: Rows) -> Vector:
        """Return the scores of some rows by models that share all but their coefficients."""
        first, coefs = self._first, self.coef_
        feature_map = _map_of(first)
        scores, constants = np.empty(len(known)), None
        nodes = linear_nodes(feature_map)
        if nodes is not None:  # fewer products, which lose fewer digits
            feature_map, (coefs, constants) = nodes.before, nodes.fold(coefs)
        for part in blocks(len(known), block_rows(2 * coefs.shape[1])):
            at = as_slice(known[part])
            H = rows[at]
            if feature_map is not None:
                H = mapped(feature_map, checked(feature_map, H))
            if scipy.sparse.issparse(H):
                scores[part] = np.asarray(H.multiply(coefs[of_row[at]]).sum(axis=1)).ravel()
            else:
                H = np.require(H, requirements=["C", "A"])
                scores[part] = _core.score_each(H, coefs, of_row[at], thread_count())
            if constants is not None:
                scores[part] += constants[of_row[at]]
        if not np.isfinite(scores).all():
            require_finite(rows[known], "X", with_row=False)
            raise ValueError("X too large: scores of its rows overflow")
        if first.prior_ is not None:
            scores += without_names(first.prior_).predict(rows[known])
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all models, their keys, the errors and the fallback to one safetensors file.

        The file holds no code. It is written completely or not at all. `BatchFit.load` reads it.

        Raises
        ------
        ValueError
            If there is no model; if the models differ in more than their coefficients and what a
            search has chosen; if a key is neither text nor an integer; or for any reason for which
            a model cannot be saved.
        OSError
            If the file cannot be written. The message names the file.
        """
        if self._failed.all():
            why = f": {self.errors_[0]}" if len(self) else ""
            raise ValueError(f"the batch has no model{why}")
        coefs, first = self.coef_, self._first
        for number in self.models.alone:
            if _record(self.models[number]) != _record(first):
                raise ValueError(
                    f"cannot be saved: the model of key {self.keys.tolist()[number]!r} differs "
                    "from the first in more than its coefficients: save each alone"
                )
        arrays: dict[str, NDArray[Any]] = {"coefs": np.where(self._failed[:, None], 0.0, coefs)}
        settings: dict[str, Any] = {"feature_map": None, "keys": None, "fallback": None}
        settings["errors"] = self.errors_.tolist()
        fallback = self.fallback
        if isinstance(fallback, Real):  # as text, because JSON has no NaN
            settings["fallback_score"], fallback = repr(float(fallback)), None
        for name, model in (("model", first), ("fallback", fallback)):
            if model is not None:
                if not isinstance(model, LinearRanker):
                    kind = type(model).__name__
                    raise ValueError(
                        f"{name} of type {kind} cannot be saved: only rankers of this package"
                    )
                own, settings[name] = describe_part(name, model)
                arrays |= own
        for name in OWN:
            values = self._values(name)
            if np.isfinite(values[~self._failed]).all():
                arrays[name] = np.where(self._failed, 0.0, values)
        arrays["is_dual"] = (self.models.values("form_") == "dual").astype(np.int64)
        keys = self.keys.tolist()
        if self.keys.dtype.kind in "iuO" and {type(key) for key in keys} <= {int}:
            far = next((key for key in keys if not -(2**63) <= key < 2**63), None)
            if far is not None:
                raise ValueError(f"keys must be integers of 64 bits to be saved, got {far}")
            arrays["keys"] = np.array(keys, dtype=np.int64)
        else:
            settings["keys"] = keys
            wrong = next((key for key in keys if not isinstance(key, str)), None)
            if wrong is not None:
                raise ValueError(f"keys must be text or integers to be saved, got {wrong!r}")
        write_file(path, "BatchFit", arrays, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. Loading runs no code from the file.

        Raises
        ------
        ValueError
            If the file does not hold a BatchFit, is damaged, or has a setting or an array that
            `save` would not write. The message names the file.
        OSError
            If the file cannot be read.
        """
        _, arrays, settings = read_file(path, ("BatchFit",))
        made = {
            name: restore_part(arrays, name, record)
            for name in ("model", "fallback")
            if (record := settings[name]) is not None
        }
        errors = np.array(settings["errors"], dtype=object)
        first = made["model"]
        first.__dict__.pop("_column_sums", None)
        failed = np.array([error is not None for error in errors])
        own: dict[str, NDArray[Any]] = {name: arrays[name] for name in OWN if name in arrays}
        own |= {name[:-1]: own[name] for name in own if name[:-1] in first.get_params()}
        if hasattr(first, "form_"):
            own["form_"] = np.where(arrays["is_dual"] > 0, "dual", "primal")
        coefs = np.where(failed[:, None], np.nan, arrays["coefs"])
        keys = arrays.get("keys")
        if keys is None:
            keys = np.empty(len(coefs), dtype=object)
            keys[:] = settings["keys"]
        if len(set(keys.tolist())) < len(keys):
            raise ValueError(f"{shown(path)}: two models have the same key")
        score = settings.get("fallback_score")
        fallback = made.get("fallback") if score is None else float(score)
        models = Models(len(keys), first, own | {"coef_": coefs}, {})
        return cls(keys, models, errors, fallback)


def _record(model: Any) -> Any:
    """Return what a file has of a model but for its coefficients and what a search has chosen."""
    contents, record = model._contents()
    of_each = ("coef_", "variances", "covariances")
    others = {name: array.tobytes() for name, array in contents.items() if name not in of_each}
    fitted = record["fitted"] | {"form_": None}
    return others, record | {"alpha": None, "C": None, "fitted": fitted}


def _map_of(model: Any) -> Any:
    """Return what makes the features of a model from rows: its inputs and its map."""
    return Chain.of(getattr(model, "feature_map_", None)).after_fill


def _refuse_other_kind(keys: NDArray[Any], ids: NDArray[Any]) -> None:
    """Raise a ValueError if all keys are of one kind, and all those given of another."""
    wanted, found = _kind_of(keys), _kind_of(ids)
    if wanted is not None and found is not None and wanted != found:
        own, given = (
            some[0] if some.dtype.kind in "mM" else some[:1].tolist()[0] for some in (keys, ids)
        )
        raise ValueError(
            f"keys must be {wanted}, such as {own!r}, because the models have such keys, got "
            f"{found}, such as {given!r}, and these are never equal"
        )


def _kind_of(keys: NDArray[Any]) -> str | None:
    """Return what messages call the kind of keys; None if there is none, or more than one."""
    times, differences = "times", "differences of times"
    if keys.dtype.kind in "mM":
        return times if keys.dtype.kind == "M" else differences
    # NumPy's differences are numbers, too.
    names: dict[Any, str] = {(np.timedelta64, timedelta): differences, (np.datetime64, date): times}
    names |= {str: "text", Real: "numbers"}
    kinds = {
        next((name for kind, name in names.items() if isinstance(key, kind)), type(key).__name__)
        for key in keys.tolist()
    }
    return kinds.pop() if len(kinds) == 1 else None


def is_product(model: BaseEstimator) -> bool:
    """Tell whether every score is the product of the row and the coefficients."""
    return bool(getattr(model, "_is_linear", False)) and model.feature_map_ is None


def check_fallback(fallback: BaseEstimator | float | None, names: NDArray[Any] | None) -> None:
    """Raise a ValueError unless a fallback is a fitted estimator with `predict`, or a number.

    An estimator must have been fitted to the columns with the names that the models have, in their
    order, if both have names.
    """
    if isinstance(fallback, Real) and not isinstance(fallback, bool):
        return
    if isinstance(fallback, type) or not hasattr(fallback, "predict"):
        found = fallback if isinstance(fallback, (str, bool, type)) else type(fallback).__name__
        raise ValueError(f"fallback must be a fitted model or a number, got {found!r}")
    try:
        check_is_fitted(fallback)
    except NotFittedError as error:
        raise ValueError(f"fallback: {error}") from None
    known = getattr(fallback, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"fallback has the columns {list(known)}, but the models have {list(names)}"
        )
