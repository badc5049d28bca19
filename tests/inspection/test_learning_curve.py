"""Learning curves by queries are those of refits."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import FitFailedWarning

from pairgram import (
    QueryKFold,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    evaluate,
    get_metric,
    learning_curve,
    make_ranking,
)

RNG = np.random.default_rng(0)
X, Y, QID = make_ranking(40, (3, 12), 5, random_state=0)
ORDER = RNG.permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], np.array([f"q{number}" for number in QID])[ORDER]
WEIGHT = RNG.uniform(0.5, 2.0, len(Y))


class Counting(RankRLS):
    """A ranker of another class, which is refitted for every size."""

    fits = 0

    def fit(self, *args, **named):
        type(self).fits += 1
        return super().fit(*args, **named)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pairs": "without_ties", "alpha": 10.0},
        {"weighting": "queries", "target": "gain"},
        {"scale": True, "positive": True},
        {"scope": "global"},
        {"scope": "global", "pairs": "without_ties"},
    ],
)
def test_statistics_give_the_curve_of_refits(settings):
    named = {"qid": QID, "sizes": [1, 3, 20], "random_state": 0, "sample_weight": WEIGHT}
    found = learning_curve(RankRLS(**settings), X, Y, **named)
    before = Counting.fits
    refitted = learning_curve(Counting(**settings), X, Y, **named)
    assert Counting.fits == before + 15
    assert found.n_queries.tolist() == [1, 3, 20]
    assert found.metric == "ndcg@10"
    np.testing.assert_allclose(found.scores, refitted.scores, rtol=1e-9)
    assert found.scores.shape == (3, 5)
    assert found.mean[-1] > found.mean[0]


def test_every_size_is_of_whole_queries_and_holds_the_smaller_ones():
    seen = []

    class Recording(RankRLS):
        def fit(self, X, y, **named):
            seen.append(X[:, 0])
            return super().fit(X, y, **named)

    curve = learning_curve(Recording(), X, Y, qid=QID, sizes=[2, 5, 9], cv=QueryKFold(2))
    for fold in (seen[:3], seen[3:]):
        for smaller, larger in pairwise(fold):
            assert set(smaller) < set(larger)
        for size, rows in zip(curve.n_queries, fold, strict=True):
            found = np.isin(X[:, 0], rows)
            assert len(set(QID[found])) == size
            assert not set(QID[found]) & set(QID[~found])


@pytest.mark.parametrize(
    "estimator",
    [RankRLSCV(), RankSVM(), RankRLS(feature_map=RandomNodes(10, random_state=0))],
    ids=lambda one: type(one).__name__,
)
def test_every_ranker(estimator):
    named = {"sizes": [0.2, 1.0], "cv": np.int64(5), "random_state": 0}
    curve = learning_curve(estimator, X, Y, qid=QID, **named)
    assert curve.n_queries.tolist() == [6, 32]
    assert np.isfinite(curve.scores).all()


@pytest.mark.parametrize("make", [pd.DataFrame, scipy.sparse.csr_matrix, np.ndarray.tolist])
def test_kinds_of_rows(make):
    named = {"qid": QID.tolist(), "sizes": [4, 8], "random_state": 0}
    expected = learning_curve(RankRLS(), X, Y, **named).scores
    found = learning_curve(RankRLS(), make(X), Y.tolist(), **named).scores
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_last_point_is_a_fit_to_all_queries_of_a_fold():
    curve = learning_curve(
        RankRLS(), X, Y, qid=QID, cv=QueryKFold(4), scoring=get_metric("map"), random_state=1
    )
    assert len(curve.n_queries) == 10
    for fold, (train, test) in enumerate(QueryKFold(4).split(X, Y, groups=QID)):
        model = RankRLS().fit(X[train], Y[train], qid=QID[train])
        expected = evaluate("map", Y[test], model.predict(X[test]), QID[test])["map"]
        assert curve.scores[-1, fold] == pytest.approx(expected)
    assert curve.standard_error == pytest.approx(curve.scores.std(axis=1, ddof=1) / 2)
    assert str(curve).splitlines()[0].split() == ["queries", "map", "standard_error"]
    assert len(str(curve).splitlines()) == 11


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"sizes": [0]}, "sizes must be from 1 to the 32 queries that a fold leaves, got 0"),
        ({"sizes": [33]}, "got 33"),
        ({"sizes": [0.5, 1.5]}, r"sizes must be shares in \(0, 1\], got 1.5"),
        ({"sizes": []}, "sizes must be a list of numbers"),
        ({"sizes": ["a"]}, "sizes must be a list of numbers"),
        ({"qid": QID[1:]}, "qid must have shape"),
        ({"y": Y[1:]}, f"y must have a label for each of the {len(Y)} rows of X, got {len(Y) - 1}"),
        ({"scoring": "nonsense"}, "nonsense"),
    ],
)
def test_arguments_that_do_not_fit(named, message):
    with pytest.raises(ValueError, match=message):
        learning_curve(RankRLS(), X, **({"y": Y, "qid": QID} | named))


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


@pytest.mark.parametrize("make", [polars_frame, pa.table, pa.record_batch])
def test_frames_of_other_packages(make):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    named = {"qid": QID, "sizes": [4, 8], "random_state": 0}
    expected = learning_curve(RankRLSCV(), pd.DataFrame(columns), Y, **named).scores
    found = learning_curve(RankRLSCV(), make(columns), Y, **named).scores
    np.testing.assert_array_equal(found, expected)


def test_weights_are_those_of_fit():
    named = {"qid": QID, "sizes": [4, 8], "random_state": 0}
    plain = learning_curve(RankRLS(), X, Y, **named).scores
    np.testing.assert_allclose(
        learning_curve(RankRLS(), X, Y, sample_weight=2.0, **named).scores,
        learning_curve(RankRLS(), X, Y, sample_weight=np.full(len(Y), 2.0), **named).scores,
    )
    assert (learning_curve(RankRLS(), X, Y, sample_weight=WEIGHT, **named).scores != plain).any()
    for n_rows in (len(Y) - 1, len(Y) + 7):
        with pytest.raises(ValueError, match=r"sample_weight must have shape .*, one per row, got"):
            learning_curve(RankRLS(), X, Y, sample_weight=np.ones(n_rows), **named)
    with pytest.raises(
        ValueError, match=r"sample_weight must be finite and >= 0, got -1.0 in row 0"
    ):
        learning_curve(RankRLS(), X, Y, sample_weight=-np.ones(len(Y)), **named)


@pytest.mark.parametrize(
    "estimator", [RankRLS(), Counting(), RankRLSCV(), RankSVM()], ids=lambda one: type(one).__name__
)
def test_sizes_without_pairs_have_no_score(estimator):
    """In most folds the first query is a single document, from which no ranker learns."""
    qid = np.concatenate([np.arange(20), 20 + np.arange(60) // 6])
    rows, labels = X[:80], np.arange(80) % 3
    with pytest.warns(FitFailedWarning, match="of 15 fits failed, .* The first error is: ") as told:
        curve = learning_curve(estimator, rows, labels, qid=qid, sizes=[1, 5, 24], random_state=0)
    failed = np.isnan(curve.scores)
    assert f"{failed.sum()} of 15" in str(told[0].message)
    assert 0 < failed[0].sum() < 5
    assert not failed[-1].any()
    known = curve.scores[0][~failed[0]]
    assert curve.mean[0] == pytest.approx(known.mean())
    error = known.std(ddof=1) / len(known) ** 0.5 if len(known) > 1 else np.nan
    assert curve.standard_error[0] == pytest.approx(error, nan_ok=True)


@pytest.mark.parametrize("estimator", [RankRLS(), Counting(), RankSVM()])
def test_a_ranker_that_the_largest_size_does_not_fit_is_an_error(estimator):
    with pytest.raises(ValueError, match=r"no .*pair.* counts"):
        learning_curve(estimator, X[:20], Y[:20], qid=np.arange(20), sizes=[1, 16])
    with pytest.raises(ValueError, match="alpha"):
        learning_curve(RankRLSCV([-1.0]), X, Y, qid=QID, sizes=[2, 8])


def test_a_single_list_has_no_curve():
    X, y, _ = make_ranking(1, 30, 3, random_state=0)
    for named in ({}, {"qid": None}):
        with pytest.raises(ValueError, match="qid must be the query ids of the rows, got None: "):
            learning_curve(RankRLS(), X, y, **named)
