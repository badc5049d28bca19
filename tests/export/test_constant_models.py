"""Constant models, and missing values of pandas in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from pairgram import Fill, RankRLS, export, make_ranking

X, Y, QID = make_ranking(10, 8, 3, random_state=0)
FRAME = pd.DataFrame(X, columns=list("abc"))
FRAME["s"] = np.where(X[:, 0] > 0.5, "red", "blue")


def _fitted(*steps: Any) -> Any:
    with config_context(enable_metadata_routing=True):
        ranker = RankRLS().set_fit_request(qid=True)
        columns = ColumnTransformer([*steps], remainder="passthrough")
        return make_pipeline(columns, ranker).fit(FRAME, Y, qid=QID)


@pytest.mark.parametrize("to", [export.to_solr, export.to_ltr_plugin])
def test_a_model_without_features_is_refused(to: Any) -> None:
    """A single group of rare categories tells no rows apart."""
    rare = OneHotEncoder(max_categories=1, handle_unknown="infrequent_if_exist", drop="if_binary")
    with config_context(enable_metadata_routing=True):
        ranker = RankRLS().set_fit_request(qid=True)
        columns = ColumnTransformer([("text", rare, ["s"])])
        with pytest.warns(UserWarning):
            model = make_pipeline(columns, ranker).fit(FRAME, np.zeros(len(Y)), qid=QID)
    with pytest.raises(ValueError, match="the model has the same score for every row"):
        to(model, "m")


def test_python_takes_the_missing_value_of_pandas() -> None:
    frame = FRAME.assign(s=FRAME["s"].where(FRAME.index % 7 > 0, None))
    frame.loc[3, "a"] = np.nan
    with config_context(enable_metadata_routing=True):
        steps = [("text", OneHotEncoder(), ["s"]), ("gap", SimpleImputer(), ["a"])]
        ranker = RankRLS().set_fit_request(qid=True)
        columns = ColumnTransformer(steps, remainder="passthrough")
        model = make_pipeline(columns, ranker).fit(frame, Y, qid=QID)
    filled = RankRLS(feature_map=Fill("mean")).fit(frame[["a", "b", "c"]], Y, qid=QID)
    for one, row in ((model, [None, 0.2, 0.3, None]), (filled, [None, 0.2, 0.3])):
        names: dict[str, Any] = {}
        exec(str(export.to_python(one)), names)
        missing = [pd.NA if value is None else value for value in row]
        assert names["score"](missing) == names["score"](row)
        assert np.isfinite(names["score"](row))


def test_the_name_of_a_function_has_the_place_of_other_names() -> None:
    model = RankRLS().fit(X, Y, qid=QID)
    assert str(export.to_python(model, "f", features=list("abc"))) == str(
        export.to_python(model, name="f", features=list("abc"))
    )
    assert str(export.to_python(model, "f", features=list("abc"))).startswith("def f(x):")


def test_what_is_for_rounds_of_boosting_is_said_to_be_needless() -> None:
    with pytest.raises(TypeError, match=r"RankRLS.fit\(\) got .* 'callbacks': it is not needed"):
        RankRLS().fit(X, Y, qid=QID, callbacks=[])


def test_the_plugin_has_the_names_of_both_engines_and_a_model_a_name():
    X, y, qid = make_ranking(n_features=2, random_state=0)
    model = RankRLS().fit(X, y, qid=qid)
    bodies = [
        to(model, features=["a", "b"])
        for to in (export.to_elasticsearch, export.to_opensearch, export.to_ltr_plugin)
    ]
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0]["model"]["name"] == "model"
