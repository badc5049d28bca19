"""Transformers before a ranker are exported as they were fitted, or refused by name."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from pairgram import RankRLS, export, make_ranking

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(60, 10, 5, random_state=0)
    frame = pandas.DataFrame(X * [1, 10, 100, 3, 5], columns=["id", "A", "a", "c0", "e"])
    return frame, y, qid


@pytest.mark.parametrize(
    "chosen",
    [
        ["a", "id"],
        "A",
        slice("A", "c0"),
        slice(None, "a"),
        slice("c0", None),
        slice(1, 3),
        [True, False, True, False, False],
        [-1, 0],
    ],
    ids=str,
)
@pytest.mark.parametrize("remainder", ["passthrough", "drop", MinMaxScaler()], ids=str)
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


def test_what_an_encoder_cannot_export(data):
    _, y, qid = data
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (len(y), 2)).astype(float)
    holes = np.where(X == 5, np.nan, X)
    big = np.where(X == 5, 2.0**24 + 1, X)
    for rows, encoder, match in (
        (X, OneHotEncoder(min_frequency=0.3), "infrequent"),
        (X, OneHotEncoder(max_categories=3), "infrequent"),
        (holes, OneHotEncoder(), "NaN"),
        (big, OneHotEncoder(), r"2\*\*24"),
    ):
        encoder.set_params(sparse_output=False)
        model = make_pipeline(encoder, RankRLS()).fit(rows, y, rankrls__qid=qid)
        with pytest.raises(ValueError, match=f"OneHotEncoder.*{match}"):
            export.to_python(model, features=["a", "b"])
    encoder = OneHotEncoder(min_frequency=1, sparse_output=False)
    model = make_pipeline(encoder, RankRLS()).fit(X, y, rankrls__qid=qid)
    exported = export.to_python(model, features=["a", "b"])
    assert export.check(exported, model, X, qid).n_reordered == 0


def test_steps_must_give_the_columns_of_the_ranker(data):
    frame, y, qid = data
    model = make_pipeline(StandardScaler(), RankRLS()).fit(frame, y, rankrls__qid=qid)
    model[-1].fit(frame.to_numpy()[:, :3], y, qid=qid)
    with pytest.raises(ValueError, match="fitted to 3 columns, and the steps before it give 5"):
        export.to_python(model)
