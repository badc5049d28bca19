"""Transformers before a ranker are exported as they were fitted, or refused by name."""

import re

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from axes import every
from pairgram import Kernel, RandomNodes, RankRLS, export, make_ranking
from row_value import row_value

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(60, 10, 5, random_state=0)
    frame = pandas.DataFrame(X * [1, 10, 100, 3, 5], columns=["id", "A", "a", "c0", "e"])
    return frame, y, qid


@every(
    remainder=["passthrough", "drop", MinMaxScaler()],
    chosen=[
        ["a", "id"],
        "A",
        slice("A", "c0"),
        slice(None, "a"),
        slice("c0", None),
        slice(1, 3),
        [True, False, True, False, False],
        [-1, 0],
    ],
)
def test_chosen_columns(data, chosen, remainder):
    frame, y, qid = data
    scaler = MinMaxScaler() if chosen != "A" else "passthrough"
    if chosen == "A":
        chosen = ["A"]
    chooser = ColumnTransformer([("some", scaler, chosen)], remainder=remainder)
    model = make_pipeline(chooser, RankRLS()).fit(frame, y, rankrls__qid=qid)
    for features in (None, ["e", "c0", "a", "A", "id"], list("stuvw")):
        rows = frame.set_axis(features, axis=1) if features else frame
        own = model.predict(frame)
        source = export.to_python(model, features=features)
        space = {}
        exec(str(source), space)
        scores = np.array([space["score"](row) for row in rows.to_numpy().tolist()])
        np.testing.assert_allclose(scores - own, np.median(scores - own), atol=1e-9)


def test_encoders_of_numbers_with_rare_and_missing_ones(data):
    _, y, qid = data
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (len(y), 2)).astype(float)
    holes = np.where(X == 5, np.nan, X)
    for rows, encoder in (
        (X, OneHotEncoder(min_frequency=0.3)),
        (X, OneHotEncoder(max_categories=3)),
        (X, OneHotEncoder(min_frequency=1)),
        (holes, OneHotEncoder()),
    ):
        encoder.set_params(sparse_output=False)
        model = make_pipeline(encoder, RankRLS()).fit(rows, y, rankrls__qid=qid)
        exported = export.to_python(model, features=["a", "b"])
        assert export.verify(exported, model, rows, qid).max_error < 1e-12


def test_steps_must_give_the_columns_of_the_ranker(data):
    frame, y, qid = data
    model = make_pipeline(StandardScaler(), RankRLS()).fit(frame, y, rankrls__qid=qid)
    model[-1].fit(frame.to_numpy()[:, :3], y, qid=qid)
    with pytest.raises(ValueError, match="fitted to 3 columns, and the steps before it give 5"):
        export.to_python(model)


def one_hot(X, y, qid, **named):
    """Return a model whose first column is encoded, and whose others pass through."""
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = ColumnTransformer([("one", encoder, [0])], remainder="passthrough")
    return make_pipeline(columns, RankRLS(**named)).fit(X, y, rankrls__qid=qid)


def of_categories(y, categories):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.choice(categories, len(y)), rng.normal(size=len(y))])


CATEGORIES = [0.1, 0.2, 0.3, 2.0**24 + 1, 1e-40]


@every(
    named=[{}, {"feature_map": Kernel("rbf")}, {"feature_map": Kernel("laplacian")}],
    precision=["float32", "float64", None],
)
def test_categories_that_float32_rounds_are_met_in_onnx(data, named, precision):
    _, y, qid = data
    X = of_categories(y, CATEGORIES)
    model = one_hot(X, y, qid, **named)
    exported = export.to_onnx(model, features=["a", "b"], precision=precision)
    parity = export.verify(exported, model, X, qid)
    assert parity.max_error <= 1e-3 * parity.spread
    assert parity.n_reordered == 0


def test_categories_that_float32_rounds_are_met_in_vespa(data):
    _, y, qid = data
    X = of_categories(y, CATEGORIES)
    model = one_hot(X, y, qid)
    profile = export.to_vespa(model, "m", features=["attribute(a)", "b"])
    assert export.verify(profile, model, X, qid).max_error < 1e-5
    # An attribute may be double as well.
    assert "((attribute(a) == 0.1) + (attribute(a) == 0.10000000149011612))" in profile
    X[:, 0] = np.arange(len(y)) % 3
    assert "* (a == 1.0)" in export.to_vespa(one_hot(X, y, qid), "m", features=["a", "b"])


@pytest.mark.parametrize("values", [[2.0**24, 2.0**24 + 1], [0.1, 0.1 + 1e-12]])
def test_categories_that_are_one_number_in_float32(data, values):
    _, y, qid = data
    X = of_categories(y, [1.0, *values])
    model = one_hot(X, y, qid)
    message = f"column 'a' has the categories {values[0]!r} and {values[1]!r}, which are one number"
    for write in (export.to_onnx, lambda m, **named: export.to_vespa(m, "m", **named)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)} for .* float32"):
            write(model, features=["a", "b"])
    exact = export.to_python(model, features=["a", "b"])
    assert export.verify(exact, model, X, qid).max_error < 1e-12


@pytest.mark.parametrize("inputs", ["quantile", "raw+quantile"])
def test_rows_at_knots_are_exact_where_knots_are_close(inputs):
    rng = np.random.default_rng(0)
    near = np.float32(1)
    values = [0.0, *(float(near := np.nextafter(near, np.float32(2))) for _ in range(6)), 3.0]
    # As decimal text, each is another double of the same float32.
    values = [float(f"{value:.8g}") for value in values]
    X = rng.choice(values, (397, 2))  # of which percentiles are rows
    y = rng.normal(size=397) + X @ [1, 1] + 3 * (X[:, 0] > values[3])
    model = RankRLS(feature_map=inputs).fit(X, y, qid=np.arange(397) // 10)
    for exported in (
        export.to_onnx(model, features=["a", "b"], precision="float32"),
        export.to_onnx(model, features=["a", "b"], precision="float64"),
        export.to_solr(model, "m", features=["a", "b"]),
    ):
        parity = export.verify(exported, model, X)
        assert parity.max_error <= 1e-4 * parity.spread


@pytest.mark.parametrize("write", ["to_onnx", "to_solr", "to_vespa"])
def test_knots_beyond_float32(data, write):
    frame, y, qid = data
    X = frame.to_numpy() * [1, 1, 1e39, 1, 1]
    model = RankRLS(feature_map="quantile").fit(X, y, qid=qid)
    name = () if write == "to_onnx" else ("m",)
    with pytest.raises(
        ValueError, match=r"column 'c' has the knot .*e\+.*, which is beyond float32"
    ):
        getattr(export, write)(model, *name, features=list("abcde"))


@pytest.mark.parametrize("named", [{}, {"feature_map": RandomNodes(9, random_state=0)}], ids=len)
@pytest.mark.parametrize("width", [1e-6, 1.0, 1e6])
def test_a_value_at_the_end_of_float32_counts_as_the_highest(data, named, width):
    frame, y, qid = data
    X = frame.to_numpy() * width
    named = {"feature_map": row_value("quantile", named.get("feature_map"))}
    model = RankRLS(**named).fit(X, y, qid=qid)
    largest = float(np.finfo(np.float32).max)
    X[::3, 1], X[1::3, 2] = largest, -largest
    for exported in (
        export.to_solr(model, "m", features=list("abcde")),
        export.to_onnx(model, features=list("abcde")),
        export.to_vespa(model, "m", features=list("abcde")),
    ):
        assert export.verify(exported, model, X, qid).max_error < 1e-3
