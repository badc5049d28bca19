"""`as_regressor` opens scikit-learn's tools for regressors to rankers."""

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression

from pairgram import (
    AutoRanker,
    Nystroem,
    QueryKFold,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    as_regressor,
    make_ranking,
)

X, Y, QID = make_ranking(30, 10, 4, random_state=0)


def test_partial_dependence_of_a_linear_model_is_a_line():
    model = RankRLS().fit(X, Y, qid=QID)
    found = partial_dependence(as_regressor(model), X, [1], grid_resolution=5, kind="average")
    slope = np.diff(found["average"][0]) / np.diff(found["grid_values"][0])
    np.testing.assert_allclose(slope, model.coef_[1], rtol=1e-9)
    curved = RankRLS(feature_map=RandomNodes(20, random_state=0)).fit(X, Y, qid=QID)
    found = partial_dependence(as_regressor(curved), X, [(0, 1)], grid_resolution=4)
    assert found["average"].shape == (1, 4, 4)


def test_voting_averages_the_scores(routing):
    rankers = [("rls", as_regressor(RankRLS())), ("svm", as_regressor(RankSVM()))]
    model = VotingRegressor([*rankers, ("linear", LinearRegression())]).fit(X, Y, qid=QID)
    expected = [
        RankRLS().fit(X, Y, qid=QID).predict(X),
        RankSVM().fit(X, Y, qid=QID).predict(X),
        LinearRegression().fit(X, Y).predict(X),
    ]
    np.testing.assert_allclose(model.predict(X), np.mean(expected, axis=0))


def test_stacking_on_folds_of_queries(routing):
    splits = list(QueryKFold(3).split(X, Y, groups=QID))
    rankers = [("rls", as_regressor(RankRLS())), ("svm", as_regressor(RankSVM()))]
    model = StackingRegressor(rankers, as_regressor(RankRLS()), cv=splits).fit(X, Y, qid=QID)
    assert model.predict(X).shape == Y.shape
    fitted = [(name, as_regressor(one.ranker.fit(X, Y, qid=QID))) for name, one in rankers]
    model = StackingRegressor(fitted, LinearRegression(), cv="prefit").fit(X, Y)
    assert model.predict(X).shape == Y.shape


def test_what_is_fitted_stays_fitted():
    ranker = RankRLS().fit(X, Y, qid=QID)
    model = as_regressor(ranker)
    assert is_regressor(model)
    assert model.ranker_ is ranker
    np.testing.assert_array_equal(model.predict(X), ranker.predict(X))
    assert model.n_features_in_ == 4
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    unfitted = as_regressor(RankRLS())
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    assert not hasattr(unfitted, "n_features_in_")
    unfitted.fit(X, Y, qid=QID)
    assert not hasattr(unfitted.ranker, "coef_")
    np.testing.assert_array_equal(unfitted.predict(X), ranker.predict(X))


@pytest.mark.parametrize("inputs", [None, "standard", "minmax", "maxabs"])
@pytest.mark.parametrize("make", [RankRLS, RankSVM, RankRLSCV], ids=lambda one: one.__name__)
def test_weights_are_those_of_the_columns_of_x(make, inputs):
    rows = X * [1, 100, 0.01, 1] + [0, 50, 0, -3]
    model = as_regressor(make(inputs=inputs).fit(rows, Y, qid=QID))
    found = rows @ model.coef_ + model.intercept_
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-9)
    assert isinstance(model.intercept_, float) and model.coef_.dtype == np.float64


def test_the_weights_of_an_automatic_ranker():
    ranker = AutoRanker(time_budget=1e-6, random_state=0).fit(X, Y, qid=QID)
    model = as_regressor(ranker)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, ranker.predict(X), atol=1e-9)


def test_models_that_are_not_linear_in_x_have_no_weights():
    first = RankRLS(kernel="rbf").fit(X, Y, qid=QID)
    for ranker, found in (
        (RankRLS(inputs="quantile"), "has inputs='quantile'"),
        (RankRLS(inputs="raw+quantile"), "has inputs='raw.quantile'"),
        (RankRLS(feature_map=Nystroem(n_components=9, random_state=0)), "has Nystroem"),
        (RankRLS(kernel="rbf"), "has KernelMap"),
        (RankRLS(prior=FrozenEstimator(first)), "adds the scores of its prior, a RankRLS"),
    ):
        model = as_regressor(ranker.fit(X, Y, qid=QID))
        for name in ("coef_", "intercept_"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=f"linear in the columns of X, .* {found}"):
                getattr(model, name)
    assert not hasattr(as_regressor(RankRLS()), "coef_")


@pytest.mark.parametrize("inputs", [None, "standard", "minmax", "maxabs"])
def test_shap_explains_a_linear_ranker(inputs):
    shap = pytest.importorskip("shap")
    ranker = RankRLS(inputs=inputs).fit(X * [1, 100, 0.01, 1], Y, qid=QID)
    rows = X * [1, 100, 0.01, 1]
    explainer = shap.LinearExplainer(as_regressor(ranker), rows)
    sums = explainer.shap_values(rows).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(sums, ranker.predict(rows), atol=1e-9)
