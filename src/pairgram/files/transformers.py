"""scikit-learn's transformers: what files hold of each, how it is made again, what it computes.

Each is an entry of `TRANSFORMERS`. A record of a transformer has its class, its parameters, and
what its fit found. Numbers by column are arrays, whose names begin with the place of the record,
such as ``transformers.0.mean_``.

Transformers are made again by their constructors and by a fit to a row or two, which sets what the
installed version of scikit-learn keeps for itself. Then the fitted values of the file are put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import getattr_static
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import kind_in
from pairgram._support.parameters import (
    FLAG,
    NAMES,
    RANGE,
    TEXT,
    Setting,
    choice,
    integer,
    number,
    optional,
)
from pairgram._support.schema import Arrays, brief, check_record, require
from pairgram.features.formulas import (
    Affine,
    Column,
    ColumnsAtOnce,
    Lookup,
    Rows,
    combined,
    is_missing,
    leaves,
)
from pairgram.files.columnwise import COLUMNWISE, LIST, VALUES
from pairgram.files.encoders import PLACE
from pairgram.files.transformer import (
    IN,
    OtherVersionError,
    Owned,
    Place,
    Settings,
    Transformer,
    Widths,
)

# Transformers within transformers are nested no deeper than this.
DEEPEST = 20

ANY = Setting("any value", lambda value: True)
WEIGHTS = Setting(
    "None or an object of names and finite numbers",
    lambda value: (
        value is None or (isinstance(value, dict) and all(map(number().fits, value.values())))
    ),
)


def by_owner(arrays: Arrays) -> Owned:
    """Return the arrays by the places of the records to which they belong."""
    owned: Owned = {}
    for name, array in arrays.items():
        owner, _, own = name.rpartition(".")
        owned.setdefault(owner, {})[own] = array
    return owned


def describe_transformer(transformer: object, at: Place, fitted: bool = True) -> Any:
    """Return the record of a transformer, and add its arrays to those of the place.

    Raises
    ------
    ValueError
        If a file cannot hold the transformer or a part of it. The message names the step.
    """
    if transformer is None or isinstance(transformer, str):
        return transformer or "passthrough"
    kind = TRANSFORMERS.get(type(transformer).__name__)
    if kind is None or kind.made is not type(transformer):
        raise ValueError(
            f"{at.step} is a {type(transformer).__name__} of {type(transformer).__module__}, which "
            "a file cannot hold without running code when it is loaded: "
            f"{', '.join(TRANSFORMERS)}, 'passthrough' and 'drop' can be saved"
        )
    settings = kind.settings_of(transformer, at.step)
    for name, value in settings.items():
        if callable(value):
            raise ValueError(f"{at.step} cannot be saved: {name} is a Python callable")
    found = kind.found_by(transformer) if fitted else None
    kind.describe(transformer, settings, found, at)
    for name, wanted in kind.settings.items():
        value = settings.get(name.rstrip("?"))
        if name.rstrip("?") in settings and not wanted.fits(value):
            raise ValueError(
                f"{at.step} cannot be saved with {name.rstrip('?')}={value!r}: a file holds "
                f"{wanted.wanted}"
            )
    if fitted:
        kind.refuse_unknown(transformer, at.step)
    record = {"kind": kind.name, "settings": settings, "fitted": found}
    output = getattr(transformer, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        record["output"] = output
    requests = getattr(transformer, "_metadata_request", None)
    if requests is not None and "sample_weight" in requests.fit.requests:
        record["sample_weight"] = requests.fit.requests["sample_weight"]
    return record


def check_transformer(
    record: Any, name: str, arrays: Owned, *, fitted: bool = True, depth: int = 0
) -> Widths:
    """Raise a ValueError unless a record is that of a transformer, and return its widths.

    The arrays of the record are taken out of `arrays`.

    Parameters
    ----------
    record : what JSON can hold
    name : str
        The place of the record in the file.
    arrays : dict
        As `by_owner` returns them.
    fitted : bool
        Whether the transformer has been fitted. One of no columns is not.
    depth : int
        How many transformers are around it.
    """
    if record == "passthrough":
        return None, None
    require(depth <= DEEPEST, f"{name}: transformers are nested more than {DEEPEST} deep")
    of_record = {
        "kind": choice(*TRANSFORMERS),
        "settings": VALUES,
        "fitted": optional(VALUES),
        "output?": choice("default", "pandas", "polars"),
        "sample_weight?": optional(FLAG),
    }
    check_record(record, of_record, name)
    kind = TRANSFORMERS[record["kind"]]
    check_record(record["settings"], kind.settings, name)
    require((record["fitted"] is not None) == fitted, f"{name}.fitted must be there: {fitted}")
    if fitted:
        check_record(record["fitted"], kind.fitted, f"{name}.fitted")
        names = record["fitted"].get("feature_names_in_")
        require(
            names is None or len(names) == record["fitted"].get("n_features_in_"),
            f"{name}.fitted.feature_names_in_ must have a name for each of n_features_in_",
        )
    return kind.check(record, name, arrays, depth)


def restore_transformer(record: Any, place: str, arrays: Owned) -> Any:
    """Make the transformer of a record that has been checked.

    Raises
    ------
    OtherVersionError
        If the installed version of scikit-learn has other parameters or fitted attributes than the
        version that wrote the file.
    """
    if isinstance(record, str):
        return record
    kind, settings = TRANSFORMERS[record["kind"]], dict(record["settings"])
    parameters = kind.made._get_param_names()
    for name, value in settings.items():
        if name not in parameters:
            raise OtherVersionError(f"{place}: {kind.name} has no parameter {name}")
        if kind.settings.get(name) is RANGE:
            settings[name] = tuple(value)
    made, fitted = kind.restore(record, settings, place, arrays), record["fitted"]
    if fitted is not None and "n_features_in_" in fitted:
        made.n_features_in_ = fitted["n_features_in_"]
        if "feature_names_in_" in fitted:
            made.feature_names_in_ = np.array(fitted["feature_names_in_"], dtype=object)
    if "output" in record:
        made.set_output(transform=record["output"])
    if "sample_weight" in record:
        with sklearn.config_context(enable_metadata_routing=True):
            made.set_fit_request(sample_weight=record["sample_weight"])
    return made


def columns_after(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the columns that a fitted transformer makes of columns, as formulas.

    Raises
    ------
    ValueError
        If there are no such formulas. The message names the step by its `place`.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return columns
    for kind in TRANSFORMERS.values():
        derives = kind.has_parts and isinstance(step, kind.made)
        own = getattr_static(step, "transform", None)
        if type(step) is kind.made or (derives and own is getattr_static(kind.made, "transform")):
            return kind.columns(step, columns, place)
    known = ", ".join(name for name in TRANSFORMERS if name != "Pipeline")
    raise ValueError(
        f"{place} is a {type(step).__name__}, which cannot be exported: the known transformers "
        f"are {known} and Pipelines of these"
    )


def columns_before(
    steps: list[tuple[str, Any]],
) -> tuple[int, tuple[str, ...] | None, list[Column]]:
    """Return what a fitted pipeline takes, and the columns that its steps make for the last one.

    Parameters
    ----------
    steps : list of (str, fitted estimator or "passthrough")

    Returns
    -------
    n_features : int
    names : tuple of str, or None
        The names of the columns, if the pipeline was fitted to a frame.
    columns : list of Column

    Raises
    ------
    ValueError
        As of `columns_after`.
    """
    first = next(step for _, step in steps if step is not None and not isinstance(step, str))
    names = getattr(first, "feature_names_in_", None)
    n_features = int(getattr(first, "n_features_in_", 0))
    columns: list[Column] = [Affine(j) for j in range(n_features)]
    for name, step in steps[:-1]:
        columns = columns_after(step, columns, f"step {name!r}")
    return n_features, None if names is None else tuple(map(str, names)), columns


def _width(part: object, n_columns: int) -> int:
    """Return how many columns a fitted transformer makes of some."""
    kind = TRANSFORMERS.get(type(part).__name__)
    return n_columns if kind is None else kind.width(part, n_columns)


def _check_names(parts: list[Any], name: str) -> None:
    names = [part["name"] for part in parts]
    for text in names:
        require(names.count(text) == 1, f"{name}: the name {brief(text)} is there twice")


def _restored(parts: list[Any], place: str, arrays: Owned) -> list[Any]:
    """Return the (name, transformer) of parts, and their columns if they have some."""
    return [
        (
            part["name"],
            restore_transformer(part["transformer"], f"{place}.{k}", arrays),
            *([part["columns"]] if "columns" in part else []),
        )
        for k, part in enumerate(parts)
    ]


class Chain(Transformer):
    """The transformer that applies others in turn."""

    has_parts = True

    def found_by(self, transformer: BaseEstimator) -> Settings:
        return {}

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        settings["steps"] = [
            {
                "name": name,
                "transformer": describe_transformer(part, at.within(k, name), found is not None),
            }
            for k, (name, part) in enumerate(settings["steps"])
        ]

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        first: int | None = None
        width: int | None = None
        steps, fitted = record["settings"]["steps"], record["fitted"] is not None
        for place_of, step in enumerate(steps):
            place = f"{name}.{place_of}"
            check_record(step, {"name": TEXT, "transformer": ANY}, place)
            found, out = check_transformer(
                step["transformer"], place, arrays, fitted=fitted, depth=depth + 1
            )
            require(
                None in (found, width) or found == width,
                f"{place} takes {found} columns, but gets {width}",
            )
            first = found if width is None else first
            width = width if out is None else out
        _check_names(steps, name)
        return first, width

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        settings["steps"] = _restored(settings["steps"], place, arrays)
        return self.made(**settings)

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        for name, part in step.steps:
            columns = columns_after(part, columns, f"{place}, step {name!r}")
        return columns

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        for _, part in step.steps:
            n_columns = _width(part, n_columns)
        return n_columns


class Columns(Transformer):
    """The transformer that applies others to some columns each."""

    has_parts = True

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        """Describe the parts. Columns become lists of names or of numbers."""
        given, places = settings["transformers"], {}
        parts = {name: (part, columns) for name, part, columns in given}
        if found is not None:
            places = _places_of(step)
            parts = {name: (part, columns) for name, part, columns in step.transformers_}
            if not {name for name, *_ in given} <= parts.keys():
                raise ValueError(f"{at.step} has had its transformers changed since it was fitted")
            found["sparse_output_"] = step.sparse_output_
            found["remainder"] = places["remainder"]
        names = np.asarray((found or {}).get("feature_names_in_", ()), dtype=object)
        if len(set(names)) < len(names):
            names = names[:0]

        def record(name: str, part: object, k: Any) -> Any:
            if isinstance(part, str):
                return part
            selected = bool(places.get(name))
            part = parts[name][0] if selected else part
            return describe_transformer(part, at.within(k, name), selected)

        settings["transformers"] = []
        for k, (name, part, columns) in enumerate(given):
            if found is not None:
                by_name = len(names) and _is_by_name(parts[name][1])
                columns = names[places[name]].tolist() if by_name else places[name]
            elif callable(columns) or isinstance(columns, slice):
                columns = []
            settings["transformers"].append(
                {"name": name, "columns": columns, "transformer": record(name, part, k)}
            )
        settings["remainder"] = record("remainder", settings["remainder"], "remainder")

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        settings, fitted = record["settings"], record["fitted"]
        parts, width = [*settings["transformers"]], 0
        names = None if fitted is None else fitted.get("feature_names_in_")
        taken: list[int] = []
        for place_of, part in enumerate(parts):
            place = f"{name}.{place_of}"
            check_record(part, {"name": TEXT, "columns": ANY, "transformer": ANY}, place)
            width += _check_part(part, place, arrays, fitted is not None, names, taken, depth)
        rest = {"name": "remainder", "columns": [], "transformer": settings["remainder"]}
        if fitted is not None:
            n_features, rest["columns"] = fitted["n_features_in_"], fitted["remainder"]
            wrong = next((at for at in taken if at >= n_features), None)
            require(wrong is None, f"{name}: there is no column {wrong}")
            known = set(taken)  # and all other columns are listed, so that there are not too many
            all_listed = n_features <= len(known) + len(fitted["remainder"])
            require(
                all_listed and sorted(set(range(n_features)) - known) == fitted["remainder"],
                f"{name}.fitted.remainder must be the columns that no transformer has",
            )
        place = f"{name}.remainder"
        width += _check_part(rest, place, arrays, fitted is not None, None, taken, depth)
        _check_names([*parts, rest], name)
        return (None, None) if fitted is None else (fitted["n_features_in_"], width)

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        parts = _restored(settings.pop("transformers"), place, arrays)
        rest = restore_transformer(settings.pop("remainder"), f"{place}.remainder", arrays)
        fitted = record["fitted"]
        if fitted is None:
            return self.made(parts, remainder=rest, **settings)
        names = fitted.get("feature_names_in_")
        at = {name: number for number, name in enumerate(names or ())}
        places = {
            name: [at[column] if isinstance(column, str) else column for column in columns]
            for name, _, columns in parts
        }
        places["remainder"] = fitted["remainder"]
        made = self.made(
            [(name, _plain(part), places[name]) for name, part, _ in parts],
            remainder=_plain(rest),
            **settings,
        )
        made.fit(np.zeros((1, fitted["n_features_in_"])))
        given = {name: (part, columns) for name, part, columns in parts}
        given["remainder"] = (rest, None)
        made.transformers_ = [
            (
                name,
                found if isinstance(given[name][0], str) else given[name][0],
                found_columns if name == "remainder" else given[name][1],
            )
            for name, found, found_columns in made.transformers_
        ]
        made.output_indices_ = _output_indices(made.transformers_, places)
        for name, part, _ in made.transformers_:
            if names is not None and places[name] and given[name][0] == "passthrough":
                part.feature_names_in_ = np.array(names, dtype=object)[places[name]]
        made.sparse_output_ = fitted["sparse_output_"]
        made.transformers = [(name, _unfitted(part), columns) for name, part, columns in parts]
        made.remainder = _unfitted(rest)
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        places, made = _places_of(step), []
        weights = step.transformer_weights or {}
        for name, part, _ in step.transformers_:
            if places[name] and not (isinstance(part, str) and part == "drop"):
                own = columns_after(part, [columns[j] for j in places[name]], f"{place}, {name!r}")
                weight = weights.get(name)
                made += own if weight is None else [one.scaled(float(weight), 0.0) for one in own]
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return max((found.stop for found in step.output_indices_.values()), default=0)


def _places_of(step: BaseEstimator) -> dict[str, list[int]]:
    """Return the numbers of the columns that each part of a fitted ColumnTransformer takes."""
    places = step._transformer_to_input_indices
    return {name: list(map(int, columns)) for name, columns in places.items()}


def _is_by_name(columns: Any) -> bool:
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return isinstance(columns, str) or any(isinstance(column, str) for column in columns)


def _plain(part: object) -> str:
    return part if isinstance(part, str) else "passthrough"


def _unfitted(part: object) -> Any:
    return part if isinstance(part, str) else clone(part)


def _output_indices(parts: list[Any], places: dict[str, list[int]]) -> dict[str, slice]:
    """Return which columns of the output every transformer makes, as a fit finds it."""
    indices: dict[str, slice] = {}
    end = 0
    for name, part, _ in parts:
        if not isinstance(part, str) and places[name]:
            begin, end = end, end + _width(part, len(places[name]))
            indices[name] = slice(begin, end)
    for name, *_ in [*parts, ("remainder",)]:
        indices.setdefault(name, slice(0, 0))
    return indices


def _check_part(
    part: Settings, name: str, arrays: Owned, fitted: bool, names: Any, taken: list[int], depth: int
) -> int:
    """Check a transformer of some columns, add these to `taken`, and return how many it makes."""
    columns, transformer = part["columns"], part["transformer"]
    by_name = isinstance(columns, list) and bool(columns) and NAMES.fits(columns)
    require(
        by_name or (isinstance(columns, list) and all(map(PLACE.fits, columns))),
        f"{name}.columns must be a list of names or of numbers from 0, got {brief(columns)}",
    )
    places = columns
    if by_name and fitted:
        at = {text: number for number, text in enumerate(names or ())}
        wrong = next((text for text in columns if text not in at), None)
        require(wrong is None, f"{name}.columns has {brief(wrong)}, which is no feature name")
        places = [at[text] for text in columns]
    if fitted:
        taken.extend(places)
    if transformer == "drop":
        return 0
    found, out = check_transformer(
        transformer, name, arrays, fitted=fitted and bool(columns), depth=depth + 1
    )
    require(
        not fitted or not columns or found in (None, len(columns)),
        f"{name} takes {found} columns, but gets {len(columns)}",
    )
    return len(columns) if out is None else out


TRANSFORMERS: Mapping[str, Transformer] = {
    kind.name: kind
    for kind in (
        *COLUMNWISE,
        Columns(
            "sklearn.compose",
            "ColumnTransformer",
            {
                "transformers": LIST,
                "remainder": ANY,
                "sparse_threshold": number(0, high=1),
                "n_jobs": optional(integer(-1024, 1024)),
                "transformer_weights": WEIGHTS,
                "verbose": FLAG,
                "verbose_feature_names_out": FLAG,
            },
            fitted={**IN, "sparse_output_": FLAG, "remainder": LIST},
            derived=("transformers_", "output_indices_"),
        ),
        Chain(
            "sklearn.pipeline",
            "Pipeline",
            {"steps": LIST, "transform_input": optional(NAMES), "verbose": FLAG},
            fitted={},
        ),
    )
}


class PipelineScorer:
    """Scores rows of a caller's own columns, text among them, in one thread.

    It computes what the steps of a pipeline compute by the formulas that exports have too: scores
    are those of `predict` up to rounding. Any number of threads may call it at the same time, and a
    pickle gives the same bits. It does not change when the pipeline is fitted again.

    Parameters
    ----------
    pipeline : fitted sklearn.pipeline.Pipeline that ends in a ranker of this package

    Attributes
    ----------
    feature_names_in_ : tuple of str, or None
        The names of the columns, if the pipeline was fitted to a frame.
    n_features_in_ : int
        The number of columns of the rows.
    texts : dict of str or int to frozenset of str
        The columns that are text, by name or else by number, with the categories of each.
    names : tuple of str or int
        The columns that are read, by name or else by number.
    reads_lists : bool
        Whether the score of a row depends on the other rows of its list.
    width : int
        The number of columns that are made of a row, with one for every category in a model that is
        not linear.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.n_features_in_, self.feature_names_in_, columns = columns_before(pipeline.steps)
        ranker: Any = pipeline.steps[-1][1].row_scorer()
        self.reads_lists = ranker.reads_lists
        self._ranker, self._coef, self._constant = ranker, None, 0.0
        # Of all columns, also of those whose weight is 0.
        encoded = [leaf for c in columns for leaf in leaves(c) if isinstance(leaf, Lookup)]
        accepted = ((one.source, one.accepted) for one in encoded if one.accepted is not None)
        self._accepted = [*dict.fromkeys(accepted)]
        if ranker.linear is not None:  # all categories of a source become one column
            coef, self._constant = ranker.linear
            sums = []
            for column, weight in combined(columns, coef.tolist()):
                if isinstance(column, Affine) and column.has_gaps:
                    self._constant += weight * column.offset
                    column, weight = Affine(column.source), weight * column.factor
                sums.append((column, weight))
            columns, self._coef = [one for one, _ in sums], np.array([weight for _, weight in sums])
        self._columns, self.width = ColumnsAtOnce(columns), max(1, len(columns))
        found = [leaf for column in columns for leaf in leaves(column)]
        found += encoded
        texts: dict[int, set[str]] = {}
        for one in found:
            keys = {*one.keys, *(one.accepted or ())} if isinstance(one, Lookup) else ()
            if own := {key for key in keys if isinstance(key, str)}:
                texts.setdefault(one.source, set()).update(own)
        sources = sorted({one.source for one in found}) or [0]  # to know how many rows there are
        names = self.feature_names_in_ or range(self.n_features_in_)
        self.names = tuple(names[source] for source in sources)
        self.texts = {names[source]: frozenset(texts[source]) for source in sorted(texts)}
        self._sources = [(source, object if source in texts else float) for source in sources]

    def __call__(
        self, X: NDArray[Any] | Mapping[str, ArrayLike], qid: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the scores of rows, (n_rows,).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or mapping
            Rows, of objects if there is text; or what has the values of a column under its name,
            ``X[name]``: a dict of lists, or a frame. Other columns are left out. None and NaN are
            missing. Numbers are not checked: an infinite one, or one that is missing where no step
            fills it, has no meaningful score.
        qid : array-like of shape (n_rows,) or None
            Query ids, for inputs within lists alone. None means that all rows are one list.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        TypeError
            If X is a list or another object without columns.
        ValueError
            If a column is not there, has another length than the first one, is text in the place of
            numbers, or has a category that its encoder refuses; or if X is an array of another
            shape.
        """
        return self.of_rows(self.rows_of(X), qid)

    def of_rows(self, rows: Rows, qid: ArrayLike | None) -> NDArray[Any]:
        """Return the scores of rows that `rows_of` has returned."""
        values = self._columns.of(rows, len(rows[self._sources[0][0]]))
        if self._coef is None:
            return np.asarray(self._ranker(values, qid))
        return _core.score_rows(values, self._coef) + self._constant

    def of_columns(self, names: Sequence[str]) -> ScorerOfColumns:
        """Return what scores rows of columns with these names."""
        return ScorerOfColumns(self, names)

    def rows_of(self, X: NDArray[Any] | Mapping[str, ArrayLike]) -> Any:
        """Return the columns of rows, which a matrix of numbers has as its own rows."""
        given: Any = X
        names: Sequence[Any] | None = self.feature_names_in_
        if not hasattr(X, "__getitem__") or isinstance(X, (list, tuple, str)):
            raise TypeError(
                "X must be a dict of lists, with a list for every column, a frame, or an ndarray, "
                f"got {type(X).__name__}"
            )
        if isinstance(X, np.ndarray):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X must be (n, {self.n_features_in_}), got shape {X.shape}")
            if not (self.texts or self._accepted) and X.dtype.kind == "f":
                return np.asarray(X.T, np.float64)
            given, names = X.T, range(self.n_features_in_)
        elif names is None:
            raise ValueError(
                "X must be an ndarray, because the pipeline was fitted to columns without names, "
                f"got {type(X).__name__}"
            )
        columns: list[Any] = [None] * self.n_features_in_
        for source, dtype in self._sources:
            columns[source] = one = _column_of(given, names[source], dtype)
            first, _ = self._sources[0]
            if len(one) != len(columns[first]):
                raise ValueError(
                    f"column {names[source]!r} of X has {len(one)} values, and column "
                    f"{names[first]!r} has {len(columns[first])}"
                )
        for source, accepted in self._accepted:
            values = columns[source].tolist()
            other = [row for row, value in enumerate(values) if value not in accepted]
            gaps = is_missing(columns[source][other])
            for row, is_gap in zip(other, gaps.tolist(), strict=True):
                if not is_gap or None not in accepted:
                    raise ValueError(
                        f"row {row} of X has {values[row]!r} in column {names[source]!r}, which no "
                        "row had in fit: its encoder has handle_unknown='error'"
                    )
        return columns


def _column_of(given: Any, name: Any, dtype: type) -> NDArray[Any]:
    """Return the values of a column, (n_rows,)."""
    try:
        values = given[name]
    except KeyError:
        raise ValueError(f"X has no column {name!r}") from None
    if dtype is float and (kind := kind_in(values)) != "numbers":  # such as the text "1"
        raise ValueError(f"column {name!r} of X must hold numbers, got {kind}")
    found: NDArray[Any] = np.asarray(values, dtype)
    if found.ndim != 1:
        raise ValueError(f"column {name!r} of X must be (n,), got shape {found.shape}")
    return found


def knows_text(step: object) -> bool:
    """Tell whether a fitted transformer, or a part of it, has categories that are text."""
    parts = [*getattr(step, "steps", ()), *getattr(step, "transformers_", ())]
    return any(knows_text(part[1]) for part in parts) or any(
        isinstance(value, str) for known in getattr(step, "categories_", ()) for value in known
    )


class ScorerOfColumns:
    """Scores rows of columns of a table, some of which a pipeline reads.

    Parameters
    ----------
    scorer : PipelineScorer
    names : sequence of str
        The names of the columns, in the order of the rows.
    """

    def __init__(self, scorer: PipelineScorer, names: Sequence[str]) -> None:
        self.scorer, self.reads_lists = scorer, scorer.reads_lists
        self.names = names

    def predict(self, X: NDArray[Any], qid: ArrayLike | None = None) -> NDArray[Any]:
        """Return the scores of rows, (n_rows,).

        Raises
        ------
        ValueError
            If a row has no finite score.
        """
        rows = self.scorer.rows_of(dict(zip(self.names, X.T, strict=True)))
        fitting = limits.now.dense_block_bytes // (8 * self.scorer.width)
        size, found = max(1, len(X) if self.reads_lists else fitting), [np.empty(0)]
        for begin in range(0, len(X), size):
            part: Any = [x if x is None else x[begin : begin + size] for x in rows]
            found.append(self.scorer.of_rows(part, qid))
        scores: NDArray[Any] = np.concatenate(found)
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores)))
            gaps = [name for name, x in zip(self.names, X[row], strict=True) if x != x]
            gaps = [repr(name) for name in gaps if name in self.scorer.names]
            why = "a step of the pipeline has no number for it"
            if gaps:
                why = f"no step of the pipeline fills what it lacks in column {', '.join(gaps)}"
            raise ValueError(f"row {row} of these gets the score {scores[row]}: {why}")
        return scores
