"""Masks, imaginary parts, text and NaN are refused by name wherever a caller's numbers come in."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.preprocessing import FunctionTransformer

import pairgram as pg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60).astype(float)
QID = np.arange(60) // 6
MODEL = pg.RankRLS().fit(X, Y, qid=QID)


def masked(values):
    """Mask the entries of row 7, in all columns but the first."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[7 if mask.ndim == 1 else (7, slice(1, None))] = True
    return np.ma.array(values, mask=mask)


FITS = {
    "X": lambda lossy: pg.RankRLS().fit(lossy(X), Y, qid=QID),
    "y": lambda lossy: pg.RankRLSCV().fit(X, lossy(Y), qid=QID),
    "qid": lambda lossy: pg.RankSVM().fit(X, Y, qid=lossy(QID)),
    "sample_weight": lambda lossy: pg.PointwiseELM().fit(X, Y, sample_weight=lossy(Y + 1)),
    "query_weight": lambda lossy: pg.RankRLS().fit(X, Y, qid=QID, query_weight=lossy(Y + 1)),
}
OTHERS = {
    "predict": ("X", lambda lossy: MODEL.predict(lossy(X))),
    "nodes": ("X", lambda lossy: pg.RandomNodes(3).fit(lossy(X))),
    "kernel_matrix": ("X", lambda lossy: pg.kernel_matrix(lossy(X))),
    "Z": ("Z", lambda lossy: pg.kernel_matrix(X, lossy(X))),
    "precomputed": ("X", lambda lossy: pg.kernel_matrix(lossy(X @ X.T), kernel="precomputed")),
    "pairgram X": ("X", lambda lossy: pg.Pairgram.from_rows(lossy(X), Y)),
    "pairgram y": ("y", lambda lossy: pg.Pairgram.from_rows(X, lossy(Y))),
    "validation X": (
        "X of validation",
        lambda lossy: pg.RankRLSCV().fit(X, Y, validation=(lossy(X), Y)),
    ),
    "validation y": (
        "y of validation",
        lambda lossy: pg.RankRLSCV().fit(X, Y, validation=(X, lossy(Y))),
    ),
    "labels": ("y", lambda lossy: pg.evaluate("map", lossy(Y), Y)),
    "scores": ("score", lambda lossy: pg.evaluate("map", Y, lossy(Y))),
    "weights": ("sample_weight", lambda lossy: pg.evaluate("map", Y, Y, sample_weight=lossy(Y))),
    "score": ("y", lambda lossy: MODEL.score(X, lossy(Y), qid=QID)),
    "many": ("X", lambda lossy: pg.fit_many(pg.RankRLS(), [(lossy(X), Y)], on_error="raise")),
    "targets": (
        "y",
        lambda lossy: pg.fit_many(pg.RankRLS(), [(X, lossy(np.c_[Y, Y]))], on_error="raise"),
    ),
    "dump": ("X", lambda lossy: pg.dump_letor("/dev/null", lossy(X), Y)),
    "map": (
        "what feature_map makes",
        lambda lossy: pg.RankRLS(feature_map=FunctionTransformer(lossy)).fit(X, Y),
    ),
    "kernel": (
        "the matrix of kernel .*",
        lambda lossy: pg.RankRLS(kernel=lambda A, B: lossy(A @ B.T)).fit(X, Y),
    ),
}
OTHERS |= {name: (name, call) for name, call in FITS.items()}


@pytest.mark.parametrize("where", OTHERS)
def test_masks_and_imaginary_parts_are_refused(where):
    name, call = OTHERS[where]
    dense = X.shape[0] if where in ("precomputed", "kernel") else None
    column = (
        "" if name in ("y", "qid", "score", "y of validation") or "weight" in name else ", column 1"
    )
    column = ", column 0" if where == "targets" else column
    if dense is None and where != "map" and where != "targets":
        with pytest.raises(ValueError, match=rf"^{name} must not be masked, .* in row 7{column}"):
            call(masked)
    with pytest.raises(ValueError, match=rf"^Complex data not supported: {name} must be real"):
        call(lambda values: values * 1j)


def test_masked_arrays_without_a_masked_entry_pass():
    plain = np.ma.array(X, mask=False)
    np.testing.assert_array_equal(pg.RankRLS().fit(plain, Y, qid=QID).coef_, MODEL.coef_)


def test_lists_of_complex_numbers():
    for call, name in (
        (lambda: pg.RankRLS().fit((X * 1j).tolist(), Y), "X"),
        (lambda: pg.RankRLS().fit(X, (Y * 1j).tolist()), "y"),
        (lambda: pg.RankRLS().fit(X, Y, qid=list(Y * 1j)), "qid"),
        (lambda: pg.RankRLS(pairs=lambda a, b: 1j * abs(a - b)).fit(X, Y), "what pairs=.* gives"),
        (lambda: pg.RankRLSCV([1j]).fit(X, Y), "alphas"),
    ):
        with pytest.raises(ValueError, match=f"^Complex data not supported: {name} must be real"):
            call()


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_column_that_is_no_numbers_is_named(make):
    frame = make({"price": [1.0, 2, 3], "colour": ["4", "blue", "red"]})
    for call in (
        lambda: pg.RankRLS().fit(frame, Y[:3]),
        lambda: pg.Pairgram.from_rows(frame, Y[:3]),
        lambda: pg.kernel_matrix(frame),
        lambda: pg.RandomNodes(2).fit(frame),
    ):
        with pytest.raises(ValueError, match=r"^X: column 'colour' must hold numbers, got text\b"):
            call()


def test_columns_of_other_types_are_named():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "when": pd.to_datetime(["2020-01-01"] * 3)})
    with pytest.raises(ValueError, match=r"^X: column 'when' must .*, got times: subtract"):
        pg.RankRLS().fit(frame, Y[:3])
    frame = pd.DataFrame({"a": [1.0, 2, 3], "kind": pd.Categorical(["x", "y", "x"])})
    with pytest.raises(ValueError, match=r"^X: column 'kind' must .*, got text.*: encode"):
        pg.RankRLS().fit(frame, Y[:3])
    frame = pd.DataFrame({"a": [1.0, 2, 3], "phase": [1j, 2, 3]})
    with pytest.raises(ValueError, match=r"^X: column 'phase' must .*, got complex numbers"):
        pg.RankRLS().fit(frame, Y[:3])


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, np.asarray])
def test_a_single_column_in_place_of_rows_is_refused(make):
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional container)"):
        pg.RankRLS().fit(make(X[:, 0]), Y, qid=QID)
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional container)"):
        MODEL.predict(make(X[0]))


@pytest.mark.parametrize("names", ["aba", [0, 1, 0]])
def test_repeated_names_of_columns_are_named(names):
    frame = pd.DataFrame(X[:, :3], columns=list(names))
    model = pg.RankRLS().fit(X[:, :3], Y)
    for call in (
        lambda: pg.RankRLS().fit(frame, Y),
        lambda: pg.RankRLSCV().fit(frame.astype(object), Y),
        lambda: pg.fit_many(pg.RankRLS(), [(frame, Y)], on_error="raise"),
        lambda: pg.Pairgram.from_rows(frame, Y),
        lambda: pg.RandomNodes(2).fit(frame),
        lambda: model.predict(frame),
        lambda: model.column_weights(frame),
    ):
        with pytest.raises(
            ValueError, match=r"^X must have columns of different names, got '?[a0]'? 2 times"
        ):
            call()


def test_arrow_tables_keep_their_column_names():
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    frame = table.to_pandas()
    batch = table.to_batches()[0]
    for rows in (table, batch):
        for model in (pg.RankRLS(), pg.RankRLS(kernel="rbf"), pg.ELMRank(n_nodes=3)):
            fitted = model.fit(rows, Y)
            assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
            for other in (table, frame, batch):
                assert fitted.predict(other).shape == (60,)
        total = pg.Pairgram.from_rows(rows, Y, qid=QID)
        assert total.feature_names_in_ == ["a", "b", "c"]
        total.update(frame, Y, qid=QID + 10)
        model = pg.RankRLS.from_pairgram(total)
        assert model.predict(table).shape == (60,)
        with pytest.raises(ValueError, match="must have the columns of the rows before"):
            total.update(table.select(["b", "a", "c"]), Y, qid=QID + 20)


def spoil(rows):
    """Make NaN in column 2 of the row that is row 47 of X."""
    made = rows.copy()
    made[(rows == X[47]).all(axis=1), 2] = np.nan
    return made


@pytest.mark.parametrize(
    "model",
    [
        pg.RankRLS(feature_map=FunctionTransformer(spoil)),
        pg.RankRLS(feature_map=FunctionTransformer(spoil), form="dual"),
        pg.RankRLSCV(feature_map=FunctionTransformer(spoil)),
        pg.RankSVM(feature_map=FunctionTransformer(spoil)),
        pg.RankSVMCV(feature_map=FunctionTransformer(spoil), cv=2),
    ],
)
def test_a_feature_map_that_makes_nan_is_named(model):
    with pytest.raises(ValueError, match=r"feature_map makes NaN of row 47 of X, in its column 2"):
        model.fit(X, Y, qid=QID)
    if not hasattr(model, "cv"):
        model.fit(X[:40], Y[:40], qid=QID[:40])
        with pytest.raises(ValueError, match=r"feature_map makes NaN of row 47 of X"):
            model.predict(X)


def test_odd_results_of_feature_maps():
    for make, message in (
        (lambda rows: rows[:, :0], r"and a column or more, but gave shape \(1, 0\)"),
        (lambda rows: rows[0], r"but gave shape \(3,\)"),
        (lambda rows: rows.astype(str), "what feature_map makes: columns 0, 1, 2 must .* got text"),
        (
            lambda rows: pd.DataFrame({"a": ["x"] * len(rows)}),
            "what feature_map makes: column 'a' must hold",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            pg.RankRLS(feature_map=FunctionTransformer(make)).fit(X, Y, qid=QID)
    objects = FunctionTransformer(lambda rows: rows.astype(object))
    np.testing.assert_allclose(
        pg.RankRLS(feature_map=objects).fit(X, Y, qid=QID).coef_, MODEL.coef_, rtol=1e-12
    )


@pytest.mark.parametrize(
    "model", [pg.RankRLS(feature_map=pg.RandomNodes(3)), pg.ELMRank(n_nodes=3)]
)
def test_a_range_of_infinite_width_is_named(model):
    target = model if hasattr(model, "weight_range") else model.feature_map
    target.set_params(weight_range=(-1e308, 1e308))
    with pytest.raises(ValueError, match="weight_range must be a range whose width is finite"):
        model.fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    "name", ["pairwise_absolute_error", "pairwise_squared_error", "pearson", "ranking_error"]
)
def test_values_whose_sums_overflow_are_refused(name):
    qid = [1, 1, 2, 2]
    with pytest.raises(ValueError, match=rf"{name} takes labels of at most .*1e\+308 in row 0"):
        pg.evaluate(name, [1e308, -1e308, 1, 2], [1, 2, 1, 4], qid)
    if name != "ranking_error":
        with pytest.raises(ValueError, match=rf"{name} takes scores of at most .* in row 1"):
            pg.evaluate(name, [1, 2, 1, 2], [1e307, -1e308, 1, 4], qid)
    large = 1e151 if name == "pairwise_squared_error" else 1e303
    assert np.isfinite(pg.evaluate(name, [large, -large] * 50, [-large, large] * 50)[name])


@pytest.mark.parametrize("unit", [1e308, 1e-300])
def test_means_of_metrics_heed_ratios_of_weights_alone(unit):
    y, score, qid = [2, 1, 0, 0, 1, 2], [1, 2, 3, 1, 2, 3], [1, 1, 1, 2, 2, 2]
    weights = np.array([1, 1, 1, 0.5, 0.5, 0.5])
    expected = pg.evaluate("map", y, score, qid, sample_weight=weights)
    assert pg.evaluate("map", y, score, qid, sample_weight=unit * weights) == expected


@pytest.mark.parametrize(
    "make",
    [np.array, list, pd.Series, lambda y: pd.Series(y, dtype="Float64")],
    ids=["array", "list", "series", "nullable series"],
)
@pytest.mark.parametrize("model", [pg.RankRLS(), pg.RankRLSCV(), pg.ELMRank()], ids=repr)
def test_a_label_that_is_not_finite_is_told_with_its_row(model, make):
    y = Y.copy()
    y[7] = np.nan
    with pytest.raises(ValueError, match=r"^Input y contains NaN\. It stands in row 7, .* from 0$"):
        model.fit(X, make(y), qid=QID)
    y[[7, 9]] = np.inf
    with pytest.raises(ValueError, match=r"infinity .* in row 7, .*0, the first of 2 such rows$"):
        model.fit(X, make(y), qid=QID)


def test_a_validation_label_that_is_not_finite_is_told_with_its_row():
    wrong = np.where(np.arange(60) == 11, np.nan, Y)
    with pytest.raises(ValueError, match=r"^validation: Input y contains NaN\. .* row 11, counted"):
        pg.RankRLSCV().fit(X, Y, qid=QID, validation=(X, wrong, QID))


def test_a_label_of_many_fits_is_told_with_its_row_of_the_frame():
    frame = pd.DataFrame({"x": [3.0, 1.0, 2.0], "y": [1.0, 2.0, np.nan], "by": [0, 1, 0]})
    with pytest.raises(ValueError, match="row 2 of the frame"):
        pg.fit_many(pg.RankRLS(), frame, by="by", label="y", on_error="raise")


@pytest.mark.parametrize("estimator", [pg.RankRLSCV(), pg.RankSVM(), pg.PairwiseELM()], ids=str)
def test_an_unknown_argument_of_fit_names_the_class_that_was_made(estimator):
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) got an .* 'early_stopping_rounds'"):
        estimator.fit(X, Y, qid=QID, early_stopping_rounds=5)
    with pytest.raises(TypeError, match=r"'sample_weigth': did you mean 'sample_weight'\?$"):
        estimator.fit(X, Y, qid=QID, sample_weigth=np.ones(len(Y)))


def refused(fit):
    """Return the error of a fit, which is the same after a pickle."""
    with pytest.raises(ValueError, match=r"\S") as found:
        fit()
    error = found.value
    error.add_note("a note")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert copy.__notes__[-1] == "a note" and copy.args == error.args
    return error


def test_an_error_has_the_place_of_a_value_that_is_not_finite():
    wrong = X.copy()
    wrong[7, 2] = np.nan
    error = refused(lambda: pg.RankRLS().fit(wrong, Y, qid=QID))
    assert (error.parameter, error.row, error.column) == ("X", 7, 2)
    assert str(error).startswith("Input X contains NaN: row 7, column 2, counted from 0: fill")
    error = refused(lambda: pg.RankRLS().fit(pd.DataFrame(wrong, columns=list("abc")), Y, qid=QID))
    assert (error.parameter, error.row, error.column) == ("X", 7, 2)
    assert "row 7, column 2 ('c'), counted" in str(error)
    error = refused(lambda: pg.RankRLS().fit(X, np.where(np.arange(60) == 5, np.inf, Y), qid=QID))
    assert (error.parameter, error.row, error.column) == ("y", 5, None)


@pytest.mark.parametrize(
    ("parameter", "column", "fit"),
    [
        ("prior", None, lambda: pg.RankRLS(prior="text").fit(X, Y, qid=QID)),
        ("prior", None, lambda: pg.RankRLS(prior=np.ones(2)).fit(X, Y, qid=QID)),
        ("prior", 1, lambda: pg.RankRLS(prior=[0, np.nan, 0]).fit(X, Y, qid=QID)),
        ("validation", None, lambda: pg.RankRLSCV().fit(X, Y, qid=QID, validation=(X, Y))),
        (
            "validation",
            None,
            lambda: pg.RankRLSCV().fit(X, Y, qid=QID, validation=(X[:, :2], Y, QID)),
        ),
        ("offset", None, lambda: pg.RankRLS().fit(X, Y, qid=QID, offset=Y[1:])),
        ("alpha", None, lambda: pg.RankRLS(alpha=-1).fit(X, Y, qid=QID)),
    ],
)
def test_an_error_has_the_name_of_the_parameter(parameter, column, fit):
    error = refused(fit)
    assert (error.parameter, error.row, error.column) == (parameter, None, column)


def test_an_error_of_many_fits_has_the_row_of_the_frame():
    frame = pd.DataFrame({"x": [3.0, 1.0, np.nan], "y": [1.0, 2.0, 0.0], "by": [0, 1, 0]})
    error = refused(lambda: pg.fit_many(pg.RankRLS(), frame, by="by", label="y", on_error="raise"))
    assert (error.parameter, error.row, error.column) == ("X", 2, 0)
    assert "row 2 of the frame, column 0, counted" in str(error)
    frame = frame.assign(x=1.0, weight=np.array([1.0, 1.0, None], dtype=object))
    options = {"by": "by", "label": "y", "sample_weight": "weight", "on_error": "raise"}
    error = refused(lambda: pg.fit_many(pg.RankRLS(), frame, **options))
    assert (error.parameter, error.row) == ("sample_weight", 2)
    assert str(error).endswith("must be real numbers: got None in row 2 of the frame")


def test_an_error_about_a_column_of_a_table_has_the_parameter():
    error = refused(lambda: pg.scan(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), label="z"))
    assert (error.parameter, error.row, error.column) == ("label", None, None)
    assert str(error).startswith("label: there is no column 'z' in the table")


@pytest.mark.parametrize("X, y", [(np.array(1.0), Y), (X, np.array(1.0)), (np.array(1.0),) * 2])
def test_an_array_without_dimensions_is_refused_as_rows_and_labels(X, y):
    with pytest.raises(ValueError, match=r"2D array, got scalar|1d array, got an array of shape"):
        pg.RankRLS().fit(X, y)
