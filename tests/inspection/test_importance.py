"""Permutation importances by queries, against shuffles and predictions one by one."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

from pairgram import (
    RandomNodes,
    RankRLS,
    evaluate,
    get_metric,
    make_ranking,
    query_permutation_importance,
)

X, Y, QID = make_ranking(60, 15, 5, random_state=0)
X = np.column_stack([X, QID])  # a column that only tells queries apart
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
LINEAR = RankRLS().fit(X, Y, qid=QID)


class Predicting:
    """The same model, of which only predictions are known."""

    def __init__(self, model):
        self.model = model

    def predict(self, X):
        return self.model.predict(X)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("scoring", ["ndcg@10", "map", "kendall"])
def test_linear_models_need_no_predictions(scoring, across):
    named = {"qid": QID, "scoring": scoring, "across": across, "random_state": 0}
    found = query_permutation_importance(LINEAR, X, Y, **named)
    expected = query_permutation_importance(Predicting(LINEAR), X, Y, **named)
    np.testing.assert_allclose(found.importances, expected.importances, atol=1e-9)
    assert found.importances.shape == (6, 5)
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    assert found.score == evaluate(scoring, Y, LINEAR.predict(X), QID)[scoring]
    assert np.argmax(found.importances_mean) == np.argmax(np.abs(LINEAR.coef_[:5]))


def test_values_stay_in_their_query():
    seen = []

    class Recording(Predicting):
        def predict(self, X):
            seen.append(X.copy())
            return super().predict(X)

    before = X.copy()
    found = query_permutation_importance(Recording(LINEAR), X, Y, qid=QID, n_repeats=2)
    np.testing.assert_array_equal(X, before)
    own, *shuffled = seen
    assert len(shuffled) == 12
    for number, rows in enumerate(shuffled):
        j = number // 2
        others = np.arange(6) != j
        np.testing.assert_array_equal(rows[:, others], own[:, others])
        for query in np.unique(QID):
            of_query = query == QID
            np.testing.assert_array_equal(np.sort(rows[of_query, j]), np.sort(own[of_query, j]))
        assert (rows[:, j] != own[:, j]).any() == (j < 5)
    assert (found.importances[5] == 0).all()


def test_losses_rise():
    model = RankRLS().fit(X, Y, qid=QID)
    loss = get_metric("pairwise_squared_error")
    assert not loss.greater_is_better
    found = query_permutation_importance(model, X, Y, qid=QID, scoring=loss, random_state=0)
    assert found.importances_mean[np.argmax(np.abs(LINEAR.coef_[:5]))] > 0


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(feature_map=RandomNodes(20, random_state=0)),
        RankRLS(inputs="standard"),
        RankRLS(kernel="rbf"),
        LinearRegression(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_other_models_and_frames(model):
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    named = {"qid": QID} if isinstance(model, RankRLS) else {}
    model.fit(frame, Y, **named)
    copy = frame.copy()
    found = query_permutation_importance(model, frame, Y, qid=QID, random_state=0)
    assert found.feature_names == list("abcde")
    pd.testing.assert_frame_equal(frame, copy)
    assert found.importances_mean.max() > 0.01


FRAME = pd.DataFrame(X, columns=list("fbdace"))
FRAMES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "pyarrow": pa.Table.from_pandas,
    "batch": pa.RecordBatch.from_pandas,
}


@pytest.mark.parametrize("model", [RankRLS(), RankRLS(inputs="standard")], ids=["plain", "inputs"])
@pytest.mark.parametrize("kind", FRAMES)
def test_frames_keep_their_names(kind, model):
    made = FRAMES[kind]
    model.fit(made(FRAME), Y, qid=QID)
    named = {"qid": QID, "random_state": 0, "n_repeats": np.int64(2)}
    found = query_permutation_importance(model, made(FRAME), Y, **named)
    assert found.feature_names == list("fbdace")
    expected = query_permutation_importance(
        type(model)(inputs=model.inputs).fit(X, Y, qid=QID), X, Y, **named
    )
    np.testing.assert_array_equal(found.importances, expected.importances)
    with pytest.raises(ValueError, match="feature names should match"):
        query_permutation_importance(model, made(FRAME[sorted(FRAME)]), Y, **named)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be an integer >= 1, got 0"),
        ({"n_repeats": 1.5}, "n_repeats must be an integer >= 1, got 1.5"),
        ({"qid": None}, "qid must be the query ids of the rows, got None"),
        ({"qid": QID[1:]}, "qid must have shape .900,., one id per row, got .899,."),
        ({"y": Y[1:]}, "y must have a label for each of the 900 rows of X, got .899,."),
        ({"scoring": "nonsense"}, "nonsense"),
    ],
)
def test_arguments_that_do_not_fit(named, message):
    with pytest.raises(ValueError, match=message):
        query_permutation_importance(LINEAR, X, **({"y": Y, "qid": QID} | named))
