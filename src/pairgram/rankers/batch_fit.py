"""`BatchFit`: the models of many data sets, with one key each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import (
    block_rows,
    blocks,
    column_names,
    converted_times,
    predicted,
    reads_lists,
    select_columns,
    take_rows,
)
from pairgram._support.checks import Rows, Vector, require_finite
from pairgram._support.files import shown
from pairgram._support.machine import cached_property
from pairgram.data.queries import Queries
from pairgram.features.base import same_map
from pairgram.features.gaps import filled
from pairgram.features.inputs import after_inputs
from pairgram.files.read_write import read_file, write_file
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.load import part_of, restore_model
from pairgram.rankers.scores import checked_rows, lists_of, scores_of

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator


# The parameters in which the models of a file may differ.
OWN = ("alpha", "C")
# Other attributes, in which they may not differ.
SHARED = (
    "pairs_",
    "target_",
    "scale_",
    "gamma_",
    "weight_range_",
    "uses_qid_",
    "uses_offset_",
    "missing",
)


@dataclass(frozen=True)
class BatchFit:
    """The models that `fit_many` returns.

    Attributes
    ----------
    models : list
        A fitted estimator for every problem, in the order of the problems. For y of shape (n_rows,
        n_targets) it is a list of one estimator per target. None stands in place of a model that
        could not be fitted.
    table : dict of str to ndarray
        A row for every model, with the columns ``problem`` and ``target`` (numbers from 0),
        ``n_rows``, ``n_queries``, ``alpha``, ``C``, ``best_score`` (NaN if the model has none), and
        ``error`` (text, or None).
    keys : ndarray of shape (n_problems,)
        The key of every problem: the distinct values of the column `by` in the order of their first
        rows, or else the number of the problem.
    fallback : fitted estimator, float or None
        The model or number that scores rows whose key has no model.
    """

    models: list[Any]
    table: dict[str, NDArray[Any]]
    keys: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    fallback: Any = None

    def __repr__(self) -> str:
        failed = int(sum(error is not None for error in self.table["error"]))
        return f"<BatchFit of {len(self.table['error'])} models, {failed} failed>"

    def __len__(self) -> int:
        """Return the number of problems, of which each may have models of several targets.

        A batch without problems counts as false.
        """
        return len(self.models)

    def model_of(self, key: object) -> Any:
        """Return the model of a key.

        Parameters
        ----------
        key : hashable
            One of `keys`. For keys that are times of NumPy, it may also be a time of pandas or of
            the standard library.

        Returns
        -------
        fitted estimator, list or None
            For several targets a list of one estimator per target. None stands in place of a model
            that could not be fitted.

        Raises
        ------
        TypeError
            If `key` is not a single key, such as a list.
        KeyError
            If no model has the key.
        """
        return self.models[self._number_of(key)]

    def without(self, keys: Iterable[Any]) -> BatchFit:
        """Return the batch without the models of some keys, such as those of users to forget.

        The other models, and the fallback, are those of this batch.

        Parameters
        ----------
        keys : iterable
            Some of `keys`, each as `model_of` takes it.

        Returns
        -------
        BatchFit

        Raises
        ------
        TypeError
            If `keys` is one text or another single value, or if an entry is not a single key.
        KeyError
            If no model has one of the keys.
        """
        if isinstance(keys, (str, bytes)) or not np.iterable(keys):
            raise TypeError(f"keys must be a list of keys, got {type(keys).__name__} {keys!r}")
        gone = {self._number_of(key) for key in keys}
        kept = np.array([number for number in range(len(self)) if number not in gone], np.int64)
        rows = np.isin(self.table["problem"], kept)
        table = {name: column[rows] for name, column in self.table.items()}
        table["problem"] = np.searchsorted(kept, table["problem"])
        models = [self.models[number] for number in kept.tolist()]
        return BatchFit(models, table, self.keys[kept], self.fallback)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {key: number for number, key in enumerate(self.keys.tolist())}

    def _number_of(self, key: object) -> int:
        are_times = self.keys.dtype.kind in "mM"
        try:
            number = self._numbers.get(_plain_time(key, self.keys.dtype) if are_times else key)
        except TypeError:
            raise TypeError(f"a key must be hashable, got {type(key).__name__} {key!r}") from None
        if number is None:
            first = list(self.keys[:3]) if are_times else self.keys[:3].tolist()
            raise KeyError(f"no model has the key {key!r}, the first keys are {first}")
        return number

    def _numbers_by(self, ids: NDArray[Any], fallback: BaseEstimator | float | None) -> Rows:
        """Return the numbers of the models of distinct ids, and −1 where the fallback scores.

        Raises
        ------
        ValueError
            If an id has no model and there is no fallback, or all ids are of another kind.
        """
        keys = as_keys(ids, self.keys)
        pairs = zip(self.keys.tolist(), self.models, strict=True)
        numbers = {key: number for number, (key, model) in enumerate(pairs) if model is not None}
        found = np.array([numbers.get(one, -1) for one in keys], dtype=np.int64)
        if not (found >= 0).any():
            _refuse_other_kind(self.keys, ids)
        if fallback is None and (found < 0).any():
            missing = [keys[number] for number in np.flatnonzero(found < 0).tolist()]
            named = ", ".join(map(repr, missing[:5])) + ", ..." * (len(missing) > 5)
            raise ValueError(
                f"{len(missing)} of {len(keys)} keys have no model ({named}): give fallback, a "
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
        if any(model is not None for model in self.models):
            self._alike()
        numbers = self._numbers_by(ids, self.fallback)
        return [self.fallback if at < 0 else self.models[at] for at in numbers.tolist()]

    @property
    def _fitted(self) -> list[Any]:
        """The models that were fitted, after a check that there is one per problem."""
        if any(isinstance(model, list) for model in self.models):
            raise ValueError(
                "the problems have several targets: this is for batches of one model per problem"
            )
        fitted = [model for model in self.models if model is not None]
        if not fitted:
            why = ": every problem failed, as its table says" if self.models else ""
            raise ValueError(f"the batch has no model{why}")
        return fitted

    def _alike(self) -> list[Any]:
        """Return the models that were fitted, after a check that they take the same rows."""
        fitted = self._fitted
        if any(getattr(model, "uses_offset_", False) for model in fitted):
            raise ValueError(
                "models were fitted with an offset, so each needs it to predict: "
                "models[number].predict(X, offset=...)"
            )
        if any(_columns_of(model) != _columns_of(fitted[0]) for model in fitted):
            raise ValueError(
                "the models were fitted to different columns, or in another order: let each "
                "predict alone, models[number].predict(X)"
            )
        return fitted

    @property
    def coef_(self) -> Vector:
        """The coefficients of all models, (n_models, n_coefficients); NaN if a fit failed.

        Raises
        ------
        ValueError
            If the models do not have the same features, as with kernels, inputs and nodes of their
            own.
        """
        first = self._fitted[0]
        for key, model in zip(self.keys.tolist(), self.models, strict=True):
            if model is not None and not (
                np.shape(model.coef_) == np.shape(first.coef_)
                and same_map(_map_of(model), _map_of(first))
            ):
                raise ValueError(
                    f"the models do not have the same features: that of key {key!r} differs from "
                    "the first. Give nodes and other maps an int as random_state; kernel models "
                    "have features of their own, and so have models with inputs, which are fitted "
                    "to the rows of one key"
                )
        missing = np.full(np.shape(first.coef_), np.nan)
        return np.array([missing if model is None else model.coef_ for model in self.models])

    def predict(
        self,
        X: Any,
        keys: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        fallback: BaseEstimator | float | None = None,
    ) -> NDArray[Any]:
        """Return the score of every row by the model of its key.

        Parameters
        ----------
        X : array-like, frame or CSR matrix of shape (n_rows, n_features)
            A frame may have further columns if the models know the names of theirs.
        keys : array-like of shape (n_rows,), or the name of a column of the frame X
        qid : array-like of shape (n_rows,) or None, default=None
            Query ids, which only models with `inputs` within lists look at. None means that all
            rows of a key are one list.
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
        fallback = self.fallback if fallback is None else fallback
        is_needed = fallback is None or any(model is not None for model in self.models)
        fitted = self._alike() if is_needed else []
        if fallback is not None:
            check_fallback(fallback, _columns_of(fitted[0])[1] if fitted else None)
        first = fitted[0] if fitted else fallback
        keys = select_columns(X, keys, "X") if isinstance(keys, str) else keys
        names = getattr(first, "feature_names_in_", None)
        there = column_names(X)
        if names is not None and there is not None:
            lost = next((name for name in names if name not in there), None)
            if lost is not None:
                raise ValueError(f"X has no column {lost!r}, which the models were fitted to")
            X = select_columns(X, list(names), "X")
        rows = _rows_without_model(X) if isinstance(first, Real) else checked_rows(first, X)
        if not any(map(reads_lists, fitted)) and not any(map(_fills, (*fitted, fallback))):
            require_finite(rows, "X")  # the others look for themselves
        queries = Queries.make(rows.shape[0], qid=keys, name="keys")
        lists = queries.index()
        if qid is not None:  # keys have lists of their own
            within = Queries.make(rows.shape[0], qid=qid)
            lists = lists * within.n_queries + within.index()
        assert queries.ids is not None
        of_row = self._numbers_by(queries.ids, fallback)[queries.index()]
        known, unknown = np.flatnonzero(of_row >= 0), np.flatnonzero(of_row < 0)
        scores = np.empty(len(of_row), dtype=rows.dtype)
        if len(unknown):
            scores[unknown] = _scores_of_others(fallback, X, rows, unknown, lists)
        if not len(known):
            return scores
        if all(map(is_product, fitted)) and not scipy.sparse.issparse(rows):
            coefs = self.coef_
            for part in blocks(len(known), block_rows(2 * rows.shape[1])):
                at = known[part]
                scores[at] = np.einsum("ij,ij->i", rows[at], coefs[of_row[at]])
            if not np.isfinite(scores[known]).all():
                require_finite(rows[known], "X", with_row=False)
                raise ValueError("X too large: scores of its rows overflow")
            return scores
        models = Queries.make(len(known), qid=of_row[known])
        for group in range(models.n_queries):
            at = known[models.rows(group)]
            scores[at] = _scores(self.models[of_row[at[0]]], rows[at], lists[at])
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all models, their keys, the table and the fallback to one safetensors file.

        The file holds no code. It is written completely or not at all. `BatchFit.load` reads it.
        Searches, such as `RankRLSCV`, come back as the models that they chose, as in `load_model`.
        What `LinearRanker.column_weights` needs without rows is not kept, nor what tells how sure
        scores are: with `keep_covariance`, save each model alone.

        Raises
        ------
        ValueError
            If there is no model; if the models do not have the same features or differ in a
            parameter other than alpha and C; if a key is neither text nor an integer; or for any
            reason for which a model cannot be saved.
        OSError
            If the file cannot be written. The message names the file.
        """
        models, coefs = self._fitted, self.coef_
        first = models[0]
        if any(type(model) is not type(first) for model in models):
            raise ValueError("cannot be saved: the models differ in their class, save each alone")
        plain = (str, bool, int, float, type(None))  # what may be changed in one of them
        told = [n for n, value in first.get_params(deep=False).items() if isinstance(value, plain)]
        for name in (*SHARED, *(name for name in told if name not in OWN)):
            if any(getattr(m, name, None) != getattr(first, name, None) for m in models):
                raise ValueError(f"cannot be saved: the models differ in {name}, save each alone")
        if any(_columns_of(model) != _columns_of(first) for model in models):
            raise ValueError("cannot be saved: the models differ in their columns, save each alone")
        if any(getattr(m, "prior_", None) is not getattr(first, "prior_", None) for m in models):
            raise ValueError("cannot be saved: the models differ in their prior, save each alone")
        fitted = np.array([model is not None for model in self.models])
        arrays: dict[str, NDArray[Any]] = {"coefs": np.where(fitted[:, None], coefs, 0.0)}
        settings: dict[str, Any] = {"feature_map": None, "keys": None, "fallback": None}
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
                contents, record = model._contents()
                settings[name] = {"kind": model._file_kind, "settings": record}
                arrays |= {f"{name}.{key}": array for key, array in contents.items()}
        settings["errors"] = self.table["error"].tolist()
        numbers = ("n_rows", "n_queries", "alpha", "C", "best_score")
        for name in numbers:
            column = self.table[name]
            if np.isfinite(column[fitted]).all():
                arrays[name] = np.where(fitted | (column.dtype.kind == "i"), column, 0)
        if _fills(first):
            none = np.zeros(first.n_features_in_)
            arrays["fills"] = np.array([none if m is None else m.fill_values_ for m in self.models])
        forms = [getattr(model, "form_", None) == "dual" for model in self.models]
        arrays["is_dual"] = np.array(forms, dtype=np.int64)
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
            name: restore_model(record["kind"], part_of(arrays, name), record["settings"])
            for name in ("model", "fallback")
            if (record := settings[name]) is not None
        }
        errors, first = settings["errors"], made["model"]
        own_alone = ("_column_sums", "posterior_")
        shared = {name: value for name, value in vars(first).items() if name not in own_alone}
        own = [name for name in OWN if name in first.get_params() and name in arrays]
        columns = {name: arrays[name].tolist() for name in own}
        forms = ["dual" if dual else "primal" for dual in arrays["is_dual"].tolist()]
        models: list[Any] = []
        for number, coef in enumerate(arrays["coefs"]):
            if errors[number] is not None:
                models.append(None)
                continue
            model = type(first).__new__(type(first))
            model.__dict__.update(shared, coef_=coef)
            model.__dict__.update({name: values[number] for name, values in columns.items()})
            if hasattr(first, "form_"):
                model.form_ = forms[number]
            if _fills(first):
                model.fill_values_ = arrays["fills"][number]
            models.append(model)
        keys = arrays.get("keys")
        if keys is None:
            keys = np.empty(len(models), dtype=object)
            keys[:] = settings["keys"]
        table: dict[str, NDArray[Any]] = {
            "problem": np.arange(len(models)),
            "target": np.zeros(len(models), np.int64),
            "n_rows": arrays["n_rows"],
            "n_queries": arrays["n_queries"],
        }
        failed = np.array([error is not None for error in errors])
        for name in ("alpha", "C", "best_score"):
            values = arrays.get(name, np.full(len(models), np.nan))
            table[name] = np.where(failed, np.nan, values)
        table["error"] = np.empty(len(models), dtype=object)
        table["error"][:] = errors
        if len(set(keys.tolist())) < len(keys):
            raise ValueError(f"{shown(path)}: two models have the same key")
        score = settings.get("fallback_score")
        return cls(models, table, keys, made.get("fallback") if score is None else float(score))


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


def _plain_time(key: object, dtype: np.dtype[Any]) -> Any:
    """Return a time as `tolist` of an array of this dtype has it; other keys as they are."""
    if not isinstance(key, (date, timedelta, np.datetime64, np.timedelta64)):
        return key
    if getattr(key, "tzinfo", None) is not None:
        return key
    # NumPy would drop the nanoseconds of pandas, which `to_numpy` keeps.
    given: Any = key.to_numpy() if hasattr(key, "to_numpy") else key
    if not isinstance(given, np.generic):
        given = np.asarray(given, f"{'m' if isinstance(given, timedelta) else 'M'}8[us]")
    if given.dtype.kind != dtype.kind:
        return key
    found, exact = converted_times(np.atleast_1d(given), dtype)
    return found.tolist()[0] if exact[0] else key


def as_keys(ids: NDArray[Any], keys: NDArray[Any]) -> list[Any]:
    """Return ids as `tolist` of the keys has them; times may be of another unit or type.

    Ids may then be equal.
    """
    listed: list[Any] = ids.tolist()
    kind, dtype = ids.dtype.kind, keys.dtype
    if kind not in "mM" and dtype.kind not in "mM":
        return listed
    if dtype.kind == "O" or ids.dtype == dtype:
        return listed
    if kind == "O":
        return [_plain_time(key, dtype) for key in listed]
    if kind != dtype.kind:  # some times are whole numbers as Python has them
        _refuse_other_kind(keys, ids)
    found, exact = converted_times(ids, dtype)
    return [
        new if same else key for key, new, same in zip(listed, found.tolist(), exact, strict=True)
    ]


def _rows_without_model(X: Any) -> Any:
    """Return an array without columns that has the rows of X, which no model reads."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    is_narrow = getattr(X, "dtype", None) == np.float32
    return np.empty((n_rows, 0), np.float32 if is_narrow else np.float64)


def _map_of(model: BaseEstimator) -> Any:
    """Return what makes the features of a model from rows: its inputs and its map."""
    return after_inputs(getattr(model, "inputs_", None), getattr(model, "feature_map_", None))


def is_product(model: BaseEstimator) -> bool:
    """Tell whether every score is the product of the row and the coefficients."""
    own = getattr(model, "_is_linear", False) and model.fill_values_ is None
    return bool(own) and _map_of(model) is None


def _fills(model: object) -> bool:
    """Tell whether a model fills missing values."""
    return getattr(model, "fill_values_", None) is not None


def _columns_of(model: BaseEstimator) -> tuple[Any, ...]:
    """Return the number and the names of the columns that a model takes."""
    names = getattr(model, "feature_names_in_", None)
    return getattr(model, "n_features_in_", None), None if names is None else tuple(names)


def _scores(model: BaseEstimator, rows: NDArray[Any], qid: Rows) -> Vector:
    """Return the scores of rows that have been checked, and that are of some lists."""
    if not isinstance(model, LinearRanker):
        return np.asarray(predicted(model, rows, qid))
    lists = lists_of(model, len(qid), qid)
    rows = filled(rows, model.fill_values_, 1)
    scores = scores_of(model, rows, lists)
    return scores if model.prior_ is None else scores + _scores(model.prior_, rows, qid)


def _scores_of_others(
    fallback: Any, X: NDArray[Any], rows: NDArray[Any], numbers: Rows, lists: Rows
) -> Any:
    """Return the scores of some rows by a fallback: a ranker, another estimator or a number."""
    if isinstance(fallback, Real):
        return fallback
    some = rows[numbers] if column_names(X) is None else take_rows(X, numbers)
    if isinstance(fallback, LinearRanker):
        return _scores(fallback, checked_rows(fallback, some), lists[numbers])
    return predicted(fallback, some, lists[numbers])


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
    if getattr(fallback, "uses_offset_", False):
        raise ValueError("fallback needs the offset of its rows, want a model without one")
    known = getattr(fallback, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"fallback has the columns {list(known)}, but the models have {list(names)}"
        )
