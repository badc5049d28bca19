"""A kernel model of few landmarks: exact with all of them, and honest about what is lost."""

import numpy as np
import pytest

from pairgram import PairwiseELM, RankRLS, RankRLSCV, evaluate, load_model, make_ranking


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, 10, 5, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(kernel="rbf", gamma=0.1),
        RankRLS(kernel="polynomial", degree=2, inputs="standard"),
        RankRLS(kernel="laplacian", inputs="quantile"),
        RankRLSCV(kernel="minmax", alphas=[1.0, 10.0]),
        PairwiseELM(kernel="rbf", C=1.0),
    ],
    ids=str,
)
def test_all_rows_as_landmarks_give_the_same_scores(data, model, tmp_path):
    X, y, qid = data
    model.fit(X, y, qid=qid)
    other = model.compress(len(X))
    scores, expected = other.predict(X), model.predict(X)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5 * np.ptp(expected))
    assert other.agreement_ > 0.9999
    other.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), scores)


def test_a_second_fit_has_the_pairs_of_the_model(data):
    X, y, qid = data
    settings = {"pairs": "without_ties", "weighting": "documents", "target": "gain"}
    model = RankRLS(0.5, kernel="rbf", gamma=0.1, **settings).fit(X, y, qid=qid)
    small = model.compress(len(X))
    first = small.predict(X)
    again = small.fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(again, first, rtol=0, atol=1e-5 * np.ptp(first))
    search = RankRLSCV([0.1, 1.0], kernel="rbf", pairs=["without_ties"]).fit(X, y, qid=qid)
    small = search.compress(5)
    assert (small.alpha, small.pairs, small.scope) == (search.alpha_, "without_ties", "query")


def test_the_agreement_is_that_of_the_training_rows(data):
    X, y, qid = data
    model = RankRLS(kernel="rbf", gamma=0.3).fit(X, y, qid=qid)
    shares = []
    for n_landmarks in (5, 40, 200):
        other = model.compress(n_landmarks)
        assert len(other.feature_map_.components_) == n_landmarks
        expected = evaluate("pairwise_accuracy", model.predict(X), other.predict(X))
        assert other.agreement_ == pytest.approx(expected["pairwise_accuracy"], abs=1e-3)
        shares.append(other.agreement_)
    assert shares == sorted(shares)
    assert shares[0] < 0.95 < shares[2]


def test_what_cannot_be_compressed(data):
    X, y, qid = data
    with pytest.raises(ValueError, match="this RankRLS has none"):
        RankRLS().fit(X, y, qid=qid).compress(5)
    model = RankRLS(kernel="rbf").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="n_landmarks must be at most 300"):
        model.compress(301)
    with pytest.raises(ValueError, match="n_landmarks"):
        model.compress(0)
    with pytest.raises(ValueError, match="named kernel"):
        RankRLS(kernel="precomputed").fit(X @ X.T, y, qid=qid).compress(5)
