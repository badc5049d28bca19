"""RankRLS and RankRLSCV: the contract, held-out scores against refits, scikit-learn's tools."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import reference
from axes import drawn, every
from pairgram import (
    MissingQueryWarning,
    Pairgram,
    Pairs,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    evaluate,
    fit_many,
    get_metric,
    make_ranking,
    make_scorer,
)
from problems import problems

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
DATA = X, y, qid = make_ranking(30, (1, 25), 6, random_state=0)


@given(problems(), st.sampled_from(PAIRS), st.booleans(), st.sampled_from([0.5, 100.0]))
def test_fit_minimises_the_objective(problem, pairs, scale, alpha):
    S, total = reference.statistics(
        problem.X, problem.y, problem.query, pairs, problem.v, "pairs", problem.query_weight
    )
    if not np.abs(S).max() > 1e-12 * total:  # no pair
        return
    diagonal = np.diag(S)[:-1]
    factor = np.where(diagonal > 1e-20, 1 / np.sqrt(np.maximum(diagonal, 1e-20)), 1.0)
    expected = reference.ridge(S, alpha, factor if scale else None)
    model = RankRLS(alpha, pairs=pairs, scale=scale).fit(problem.X, problem.y, **problem.named)
    tolerance = 1e-8 * max(1.0, np.abs(expected).max())
    if not (scale and (diagonal < 1e-12 * max(1e-300, diagonal.max())).any()):
        assert_allclose(model.coef_, expected, rtol=0, atol=tolerance)
        assert_allclose(model.predict(problem.X), problem.X @ expected, atol=10 * tolerance)


def test_one_pairwise_query_is_ridge_regression_with_an_intercept():
    w = RankRLS(3.0).fit(X, y).coef_
    assert_allclose(w, Ridge(3.0 / len(y)).fit(X, y).coef_, rtol=1e-9)
    w = RankRLS(3.0, pairs=None).fit(X, y).coef_
    assert_allclose(w, Ridge(3.0, fit_intercept=False).fit(X, y).coef_, rtol=1e-9)


def test_scope_global_pairs_rows_of_different_queries():
    assert_allclose(
        RankRLS(pairs=Pairs("without_ties", scope="global")).fit(X, y, qid=qid).coef_,
        RankRLS(pairs="without_ties").fit(X, y).coef_,
    )


@pytest.mark.parametrize("pairs", [pairs for pairs in PAIRS if pairs])
def test_a_constant_changes_no_difference(pairs):
    model = RankRLS(pairs=Pairs(pairs, target="gain")).fit(X, y, qid=qid)
    far = RankRLS(pairs=Pairs(pairs, target="gain")).fit(X + 1e8, y, qid=qid)
    scores, expected = far.predict(X + 1e8), model.predict(X)
    for query in np.unique(qid):
        rows = qid == query
        centred = expected[rows] - expected[rows].mean()
        assert_allclose(
            scores[rows] - scores[rows].mean(), centred, atol=1e-6 * np.abs(expected).max()
        )


def test_score_is_ndcg():
    model = RankRLS().fit(X, y, qid=qid)
    expected = evaluate(["ndcg@10"], y, model.predict(X), qid)["ndcg@10"]
    assert model.score(X, y, qid=qid) == expected
    assert 0 < RankRLS().fit(X, y).score(X, y) <= 1


# Held-out scores ----------------------------------------------------------------------------------


def refit_scores(X, y, qid, alphas, metric, **parameters):
    """Mean metric of explicit refits without each query, (n_alphas,)."""
    scores = np.empty((len(alphas), len(y)))
    for i, alpha in enumerate(alphas):
        for query in np.unique(qid):
            rest = qid != query
            model = RankRLS(alpha, **parameters).fit(X[rest], y[rest], qid=qid[rest])
            scores[i, ~rest] = model.predict(X[~rest])
    return [metric(y, row, qid) for row in scores]


@every(scope=["query", "global"], pairs=PAIRS)
def test_default_cv_is_leave_query_out(pairs, scope):
    metric = get_metric("pairwise_squared_error")
    alphas = [100.0, 1.0, 0.01]
    model = RankRLSCV(alphas, pairs=Pairs(pairs, scope=scope), scoring=metric).fit(X, y, qid=qid)
    expected = refit_scores(X, y, qid, alphas, metric, pairs=Pairs(pairs, scope=scope))
    assert_allclose(model.scores_, expected, rtol=1e-9)
    assert model.alpha_ == alphas[int(np.argmin(expected))]
    assert model.best_score_ == min(model.scores_)
    best = RankRLS(model.alpha_, pairs=Pairs(pairs, scope=scope)).fit(X, y, qid=qid)
    assert_allclose(model.coef_, best.coef_, rtol=1e-9)


@settings(deadline=None, max_examples=20)
@given(
    problem=problems(),
    pairs=st.sampled_from(["with_ties", "without_ties", None]),
    weighting=st.sampled_from(["pairs", "documents", "queries"]),
)
def test_one_query_is_left_out_row_by_row(problem, pairs, weighting):
    from parts.data import checked_data
    from parts.solvers import PairSums, leave_row_out

    X, y, v = problem.X, problem.y, problem.v
    n = len(y)
    if n < 3 or (v is not None and (v > 0).sum() < 3):
        return
    data = checked_data(X, y, sample_weight=v)
    total = PairSums.of(data, Pairs(pairs, weighting=weighting))
    largest = np.linalg.eigvalsh(total.G)[-1]
    if largest < 1e-9:
        return
    alphas = largest * np.array([1.0, 1e-2])
    scores = leave_row_out(data, total.settings, total.decompose(), alphas, lambda: total)
    weights = np.ones(n) if v is None else v
    for i in range(n):
        rest = np.arange(n) != i
        named = (pairs, weights[rest], weighting)
        S, _ = reference.statistics(X[rest], y[rest], np.zeros(n - 1), *named)
        for alpha, row in zip(alphas, scores, strict=True):
            w = reference.ridge(S, alpha)
            expected = X[i] @ w
            if pairs is not None:
                share = weights[rest] / weights[rest].sum()
                expected -= share @ X[rest] @ w
            size = max(1.0, np.abs(y).max(), np.abs(X @ w).max())
            assert_allclose(row[i], expected, rtol=0, atol=1e-8 * size)


def test_one_query_cv_chooses_by_row():
    for pairs in ("with_ties", "without_ties", None):
        model = RankRLSCV([1e4, 1.0], pairs=pairs).fit(X, y)
        assert model.scoring_.name == "pairwise_accuracy"
        assert model.scores_.shape == (2,)
    wide = np.random.default_rng(0).normal(size=(400, 300))  # 400 refits would take long
    found = RankRLSCV([1.0], pairs="without_ties").fit(wide, wide[:, 0])
    folds = RankRLSCV([1.0], pairs="without_ties", cv=5).fit(wide, wide[:, 0])
    assert_array_equal(found.scores_, folds.scores_)


@pytest.mark.parametrize(
    "splitter", [QueryKFold(4), GroupKFold(3), ShuffleSplit(2, random_state=0), KFold(3)]
)
@drawn(8, pairs=PAIRS, scope=["query", "global"], scale=[False, True])
def test_splitters_equal_refits(pairs, scope, scale, splitter):
    alphas = [10.0, 0.1]
    metric = get_metric("pairwise_squared_error")
    named = {"pairs": Pairs(pairs, scope=scope)}
    model = RankRLSCV(alphas, **named, scale=scale, cv=splitter, scoring=metric)
    model.fit(X, y, qid=qid)
    by_group = isinstance(splitter, (QueryKFold, GroupKFold))
    ids = {"qid" if isinstance(splitter, QueryKFold) else "groups": qid if by_group else None}
    splits = splitter.split(X, y, **ids)
    expected = []
    for train, test in splits:
        fits = [
            RankRLS(a, **named, scale=scale).fit(X[train], y[train], qid=qid[train]) for a in alphas
        ]
        per_query = [
            metric(y[test], fit.predict(X[test]), qid[test], per_query=True) for fit in fits
        ]
        expected.append(np.array(per_query))
    pooled = np.nanmean(np.concatenate(expected, axis=1), axis=1)  # every held-out query counts 1
    assert_allclose(model.scores_, pooled, rtol=1e-8)


def test_a_validation_set():
    Xv, yv, qv = make_ranking(10, 10, 6, random_state=1)
    model = RankRLSCV([1.0, 1e3], scoring="map").fit(X, y, qid=qid, validation=(Xv, yv, qv))
    expected = [
        get_metric("map")(yv, RankRLS(alpha).fit(X, y, qid=qid).predict(Xv), qv)
        for alpha in model.alphas_
    ]
    assert_allclose(model.scores_, expected)
    assert model.alphas_.tolist() == [1.0, 1e3]


def test_combinations_share_the_table_of_results():
    model = RankRLSCV(
        pairs=[
            *("with_ties", "gain_difference", None),
            *(Pairs(kind, target="gain") for kind in ("with_ties", "gain_difference", None)),
        ],
        scale=[False, True],
    ).fit(X, y, qid=qid)
    names = list(model.cv_results_)
    rows = [
        dict(zip(names, row, strict=True)) for row in zip(*model.cv_results_.values(), strict=True)
    ]
    assert len(rows) == 12 * 34
    best = min(rows, key=lambda row: row["rank_test_score"])
    assert best["mean_test_score"] == model.best_score_ == model.scores_.max()
    assert (best["param_alpha"], best["param_pairs"]) == (model.alpha_, model.pairs_)
    for row in rows[::97]:
        one = RankRLSCV(
            [row["param_alpha"]],
            pairs=row["param_pairs"],
            scale=row["param_scale"],
        ).fit(X, y, qid=qid)
        assert_allclose(one.best_score_, row["mean_test_score"])


def test_scores_follow_weights():
    v = np.where(qid < np.median(qid), 2.0, 0.0)
    rows = v > 0
    weighted = RankRLSCV([1.0, 10.0]).fit(X, y, qid=qid, sample_weight=v)
    without = RankRLSCV([1.0, 10.0]).fit(X[rows], y[rows], qid=qid[rows], sample_weight=v[rows])
    assert_allclose(weighted.scores_, without.scores_)
    assert_allclose(weighted.coef_, without.coef_)


def test_a_ridge_of_0_is_one_of_the_grid():
    search = RankRLSCV([1.0, 0.0]).fit(X, y, qid=qid)
    assert search.alphas_.tolist() == [1.0, 0.0]
    assert_allclose(
        search.coef_path_[1] @ X.T, RankRLS(alpha=0).fit(X, y, qid=qid).predict(X), atol=1e-9
    )
    refitted = refit_scores(X, y, qid, [0.0], get_metric("ndcg@10"))
    assert_allclose(search.scores_[1], refitted[0], rtol=1e-12)
    (one,) = fit_many(RankRLSCV([1.0, 0.0]), [(X, y, qid)]).models
    assert (one.coef_ == search.coef_).all() and one.best_score_ == search.best_score_
    twice = np.column_stack([X, X])  # of which the solution is not unique
    assert np.isfinite(RankRLSCV([1.0, 0.0], cv=3).fit(twice, y, qid=qid).scores_[0])
    pairs = RankRLSCV([0.0], cv="leave-pair-out", pairs=Pairs(scope="global")).fit(X[:40], y[:40])
    assert 0 < pairs.best_score_ <= 1


def test_default_scoring_takes_any_labels():
    assert RankRLSCV([1.0]).fit(X, y, qid=qid).scoring_.name == "ndcg@10"
    assert RankRLSCV([1.0]).fit(X, y - 1, qid=qid).scoring_.name == "pairwise_accuracy"


# scikit-learn's tools -----------------------------------------------------------------------------


def test_ids_route_through_pipelines_and_searches(routing):
    pytest.importorskip("sklearn", minversion="1.8")  # which hands ids to score as well
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    pipeline.fit(X, y, qid=qid)
    assert pipeline.score(X, y, qid=qid) > 0.5
    search = GridSearchCV(pipeline, {"rankrls__alpha": [0.1, 100.0]}, cv=QueryKFold(3))
    search.fit(X, y, qid=qid)
    scorer = make_scorer("ndcg@10")
    same = clone(search).set_params(scoring=scorer).fit(X, y, qid=qid)
    assert_allclose(same.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    results = cross_validate(
        RankRLSCV([1.0, 10.0]), X, y, cv=QueryKFold(3), params={"qid": qid}, return_estimator=True
    )
    assert all(model.uses_qid_ for model in results["estimator"])
    weighted = cross_validate(
        RankRLS(), X, y, cv=QueryKFold(3), params={"qid": qid, "sample_weight": y + 1}
    )
    assert (weighted["test_score"] != results["test_score"]).any()


def test_without_routing_the_error_says_how():
    search = GridSearchCV(RankRLS(), {"alpha": [1.0]}, error_score="raise")
    message = "enable_metadata_routing=True"
    with pytest.warns(MissingQueryWarning, match=message), pytest.raises(ValueError, match=message):
        search.fit(X, y, qid=qid)


def test_output_containers():
    with sklearn.config_context(transform_output="pandas"):
        pipeline = make_pipeline(MinMaxScaler(), RankRLS())
        assert pipeline.fit(X, y, rankrls__qid=qid).predict(X).shape == y.shape


def test_a_number_of_folds_keeps_queries_whole():
    folds = RankRLSCV([1.0, 100.0], cv=3).fit(X, y, qid=qid)
    same = RankRLSCV([1.0, 100.0], cv=QueryKFold(3)).fit(X, y, qid=qid)
    assert_array_equal(folds.scores_, same.scores_)


def test_a_single_query_is_held_out_by_rows():
    empty = RankRLSCV([1.0, 10.0], scoring="kendall").fit(X, y, qid=0 * y)
    alone = RankRLSCV([1.0, 10.0], scoring="kendall").fit(X, y)
    assert_allclose(empty.scores_, alone.scores_)


def test_held_out_scores_that_would_be_rounding_error_are_nan():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(12, 30)), rng.normal(size=12), np.arange(12) // 3
    largest = np.linalg.eigvalsh(Pairgram.from_rows(X, y, qid=qid).G)[-1]
    alphas = largest * np.array([1e-2, 1e-6, 1e-9, 1e-12, 1e-14])
    model = RankRLSCV(alphas, scoring="pairwise_squared_error").fit(X, y, qid=qid)
    assert np.isnan(model.scores_).tolist() == [False, False, False, True, True]
    expected = refit_scores(X, y, qid, alphas[:3], get_metric("pairwise_squared_error"))
    assert_allclose(model.scores_[:3], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="every alpha is so small"):
        RankRLSCV(alphas[3:], scoring="pairwise_squared_error").fit(X, y, qid=qid)


@pytest.mark.parametrize("size", [4, 200])
def test_tiny_ridges_take_the_direct_solver(size):
    """Rows many or few against the features; the directions of a query are those of others."""
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(5 * size, 3)), np.repeat(np.arange(5), size)
    y = X @ [1, 2, 3] + rng.normal(size=5 * size)
    model = RankRLSCV([1.0, 1e-12], scoring="pairwise_squared_error").fit(X, y, qid=qid)
    expected = refit_scores(X, y, qid, [1.0, 1e-12], get_metric("pairwise_squared_error"))
    assert_allclose(model.scores_, expected, rtol=1e-9)


def test_splits_of_every_form():
    rows = np.arange(len(y))
    halves = [
        (rows[: len(y) // 2], rows[len(y) // 2 :]),
        (rows[len(y) // 2 :], rows[: len(y) // 2]),
    ]
    expected = RankRLSCV([1.0], cv=halves).fit(X, y, qid=qid).scores_
    masks = [tuple(np.isin(rows, part) for part in split) for split in halves]
    for same in (tuple(halves), masks, iter(halves), [tuple(map(list, half)) for half in halves]):
        assert_array_equal(RankRLSCV([1.0], cv=same).fit(X, y, qid=qid).scores_, expected)


def test_weights_of_the_mean_are_pooled_over_folds():
    v = np.where(qid % 3 == 0, 3.0, 1.0)
    w = np.where(qid % 5 == 0, 0.0, 1.0)
    metric = get_metric("pairwise_squared_error")
    model = RankRLSCV([1.0], cv=QueryKFold(4), scoring=metric)
    model.fit(X, y, qid=qid, sample_weight=v, query_weight=w)
    values, weights = [], []
    for train, test in QueryKFold(4).split(X, qid=qid):
        fit = RankRLS(1.0).fit(
            X[train], y[train], qid=qid[train], sample_weight=v[train], query_weight=w[train]
        )
        values.extend(metric(y[test], fit.predict(X[test]), qid[test], per_query=True))
        weights.extend((v * w)[test][np.unique(qid[test], return_index=True)[1]])
    known = ~np.isnan(values)
    expected = np.average(np.array(values)[known], weights=np.array(weights)[known])
    assert_allclose(model.best_score_, expected)


def test_a_scorer_names_the_metric():
    scorer = make_scorer("ndcg@5", convention="letor")
    assert RankRLSCV([1.0], scoring=scorer).fit(X, y, qid=qid).scoring_ == scorer.metric


def test_large_coefficients_predict_float32():
    X = np.array([[1.0], [2.0], [3.0]], dtype=np.float32) * np.float32(1e-30)
    model = RankRLS(0.0).fit(X, [0.0, 1e12, 2e12])
    assert model.coef_[0] > 1e38
    assert_allclose(np.diff(model.predict(X)), 1e12, rtol=1e-5)


@every(scale=[False, True], pairs=["with_ties", "without_ties", "gain_difference", None])
def test_rows_of_weight_0_beside_the_only_row_that_counts_leave_nothing(pairs, scale):
    """Rounding errors of a column that is constant in all pairs would be scaled to its size."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        qid, y, w = np.repeat(np.arange(8), 3), rng.integers(0, 3, 24) * 1.0, rng.random(24)
        X = rng.normal(size=(24, 3))
        if pairs is not None:
            X[:12, 0] = 0.0
        y[:2], w[:3] = (0.0, 1.0), 0.5
        w[12:] *= np.tile([0.0, 0.0, 1.0], 4)
        counted = w > 0
        model = RankRLS(pairs=pairs, scale=scale).fit(X, y, qid=qid, sample_weight=w)
        alone = RankRLS(pairs=pairs, scale=scale).fit(
            X[counted], y[counted], qid=qid[counted], sample_weight=w[counted]
        )
        assert_allclose(model.coef_, alone.coef_, rtol=1e-9, atol=1e-12)


def test_parameters_may_be_numbers_of_float32():
    X, y, qid = make_ranking(random_state=0)
    found = RankRLS(np.float32(2.0)).fit(X, y, qid=qid)
    np.testing.assert_array_equal(found.coef_, RankRLS(2.0).fit(X, y, qid=qid).coef_)
