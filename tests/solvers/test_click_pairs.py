"""Least squares from clicks, against pairs that are written out and against refits."""

import itertools

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings as hypothesis_settings, strategies as st
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

import forms
import pairgram as pg
from pairgram import (
    Clicks,
    Kernel,
    Pairgram,
    Pairs,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    _core,
    scan,
)
from pairgram.metrics import evaluate, get_metric, make_scorer
from problems import BY_STEPS, OfScores

ALPHAS = [100.0, 1.0, 0.01]


def within(scores, clicks, qid):
    """Return scores less their mean in every list, and 0 in lists that say nothing of a model."""
    scores = scores.copy()
    for one in np.unique(qid):
        rows = qid == one
        scores[rows] -= scores[rows].mean() if clicks[rows].any() else scores[rows]
    return scores


def log(seed, n_lists=25, width=4):
    """Return X, clicks, list ids, propensities and weights of rows; some lists have no click."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(rng.permutation(n_lists), rng.integers(1, 9, n_lists))
    n = len(qid)
    X = rng.normal(size=(n, width))
    clicks = (rng.random(n) < 0.3) * rng.integers(1, 3, n).astype(float)
    clicks[0] = 1.0
    clicks[qid == qid[-1]] = 1.0  # a list of which every row is clicked
    shown = rng.choice([1.0, 0.5, 1 / 3, 0.1], n)
    propensity = np.where(clicks > 0, shown, rng.choice([0.0, np.nan, 0.7], n))
    return X, clicks, qid, propensity, rng.choice([0.0, 0.5, 1.0, 2.0], n)


def click_pairs(X, clicks, qid, propensity, weight=None, weighting="pairs"):
    """Return the weights and the differences of clicked rows and all others of their lists."""
    weight = np.ones(len(X)) if weight is None else weight
    weights, differences = [], []
    for one in np.unique(qid):
        rows = np.flatnonzero(qid == one)
        pairs = [
            (clicks[i] / propensity[i] * weight[i] * weight[j], X[i] - X[j])
            for i, j in itertools.product(rows, rows)
            if clicks[i] > 0 and weight[i] > 0
        ]
        total = sum(w for w, _ in pairs)
        divisor = {"pairs": 1.0, "documents": weight[rows].sum(), "queries": total}[weighting]
        weights += [w / divisor for w, _ in pairs]
        differences += [difference for _, difference in pairs]
    return np.array(weights), np.reshape(differences, (-1, X.shape[1]))


def written_out(*rows, **named):
    """Return G, g and the constant of the sum over the pairs."""
    W, D = click_pairs(*rows, **named)
    return (D.T * W) @ D, D.T @ W, W.sum()


def solved(alpha, *rows, **named):
    G, g, _ = written_out(*rows, **named)
    return np.linalg.solve(G + alpha * np.eye(len(g)), g)


def close(actual, expected, share=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=share * np.abs(expected).max())


@given(
    seed=st.integers(0, 2**32 - 1),
    weighting=st.sampled_from(["pairs", "documents", "queries"]),
    weighs=st.booleans(),
)
@hypothesis_settings(max_examples=25, deadline=None)
def test_every_click_is_compared_with_all_other_rows(seed, weighting, weighs):
    X, clicks, qid, propensity, weight = log(seed)
    weight = weight if weighs else None
    y, named = Clicks(clicks, propensity), {"qid": qid, "sample_weight": weight}
    expected = solved(0.3, X, clicks, qid, propensity, weight, weighting)
    model = RankRLS(0.3, pairs=Pairs(weighting=weighting)).fit(X, y, **named)
    close(model.coef_, expected, 1e-11)
    dual = forms.RankRLS(0.3, pairs=Pairs(weighting=weighting), form="dual").fit(X, y, **named)
    close(dual.coef_, expected, 1e-9)
    statistics = Pairgram.from_rows(X, y, **named, pairs=Pairs("clicks", weighting=weighting))
    close(RankRLS.from_pairgram(statistics, 0.3).coef_, expected, 1e-11)
    labels = clicks / np.where(clicks > 0, propensity, 1.0)
    by_word = RankRLS(0.3, pairs=Pairs("clicks", weighting=weighting))
    close(by_word.fit(X, labels, **named).coef_, expected, 1e-11)
    close(pg.fit_many(by_word, X, labels, by=0 * qid, **named).coef_[0], expected, 1e-11)


def test_every_click_may_have_a_propensity_of_its_own(limits_of):
    X, clicks, qid, propensity, _ = log(4, n_lists=900)
    propensity = np.where(clicks > 0, np.random.default_rng(0).uniform(0.01, 1, len(X)), 0.0)
    assert len(np.unique(clicks / np.where(clicks > 0, propensity, 1.0))) > 1000
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    expected = solved(0.5, X, clicks, qid, propensity)
    y, named = Clicks(clicks, propensity), {"qid": qid}
    close(RankRLS(0.5).fit(X, y, **named).coef_, expected)
    close(RankRLS(0.5).fit(scipy.sparse.csr_array(X), y, **named).coef_, expected)
    with limits_of(**BY_STEPS):
        close(RankRLS(0.5).fit(scipy.sparse.csr_array(X), y, **named).coef_, expected, 1e-6)


def test_the_loss_of_statistics_differs_from_that_of_pairs_by_a_constant():
    X, clicks, qid, propensity, _ = log(3)
    G, g, constant = written_out(X, clicks, qid, propensity)
    statistics = Pairgram.from_rows(X, Clicks(clicks, propensity), qid=qid, pairs="clicks")
    close(statistics.G, G, 1e-12)
    close(statistics.g, g, 1e-12)
    assert constant > 0


@given(seed=st.integers(0, 2**32 - 1), form=st.sampled_from(["primal", "dual"]))
@hypothesis_settings(max_examples=10, deadline=None)
def test_every_list_is_held_out_exactly(seed, form):
    X, clicks, qid, propensity, _ = log(seed)
    for alpha in ALPHAS:
        search = forms.RankRLSCV([alpha], form=form)
        search.fit(X, Clicks(clicks, propensity), qid=qid)
        expected = np.empty(len(X))
        for one in np.unique(qid):
            out = qid == one
            rest = [values[~out] for values in (X, clicks, qid, propensity)]
            expected[out] = X[out] @ solved(alpha, *rest)
        close(within(search.held_out_, clicks, qid), within(expected, clicks, qid), 1e-8)
        assert search.scoring_.name == "ips_dcg@10"
        measured = evaluate("ips_dcg@10", Clicks(clicks, propensity), expected, qid)
        np.testing.assert_allclose(search.best_score_, measured["ips_dcg@10"], rtol=1e-6)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_folds_and_groups_are_refits(form):
    X, clicks, qid, propensity, _ = log(11)
    y, named = Clicks(clicks, propensity), {"qid": qid}
    folds = [(train, test) for train, test in QueryKFold(3).split(X, clicks, qid)]
    expected = np.empty(len(X))
    for train, test in folds:
        rest = [values[train] for values in (X, clicks, qid, propensity)]
        expected[test] = X[test] @ solved(1.0, *rest)
    for cv in (QueryKFold(3), folds):
        search = forms.RankRLSCV([1.0], form=form, cv=cv)
        found = search.fit(X, y, **named).held_out_
        close(within(found, clicks, qid), within(expected, clicks, qid), 1e-9)
    groups = qid % 4
    search = forms.RankRLSCV([1.0], form=form).fit(X, y, **named, groups=groups)
    for one in range(4):
        out = groups == one
        rest = [values[~out] for values in (X, clicks, qid, propensity)]
        expected[out] = X[out] @ solved(1.0, *rest)
    close(within(search.held_out_, clicks, qid), within(expected, clicks, qid), 1e-9)


def test_steps_for_sparse_rows_find_the_same(limits_of):
    X, clicks, qid, propensity, _ = log(5, n_lists=40, width=12)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    expected = solved(0.5, X, clicks, qid, propensity)
    sparse = scipy.sparse.csr_array(X)
    close(RankRLS(0.5).fit(sparse, Clicks(clicks, propensity), qid=qid).coef_, expected, 1e-9)
    with limits_of(**BY_STEPS):
        stepped = RankRLS(0.5).fit(sparse, Clicks(clicks, propensity), qid=qid)
    close(stepped.coef_, expected, 1e-6)


def test_a_kernel_finds_the_same_function():
    X, clicks, qid, propensity, _ = log(7)
    kernel = RankRLS(0.5, feature_map=Kernel("precomputed")).fit(
        X @ X.T, Clicks(clicks, propensity), qid=qid
    )
    expected = X @ solved(0.5, X, clicks, qid, propensity)
    close(kernel.predict(X @ X.T), expected, 1e-8)


def frame_of(X, clicks, qid, propensity):
    columns = {f"f{j}": column for j, column in enumerate(X.T)}
    return pandas.DataFrame({"list": qid, "clicked": clicks, "p": propensity, **columns})


def test_a_table_has_a_column_of_propensities():
    X, clicks, qid, propensity, _ = log(8)
    frame = frame_of(X, clicks, qid, propensity)
    table = scan(frame, label="clicked", qid="list", propensity="p")
    assert table.feature_names == ["f0", "f1", "f2", "f3"]
    expected = solved(0.5, X, clicks, qid, propensity)
    model = RankRLS(0.5).fit(table)
    close(model.coef_, expected, 1e-11)
    close(Pairgram.from_rows(table, pairs="clicks").G, written_out(X, clicks, qid, propensity)[0])
    by_rows = evaluate("ips_dcg@3", Clicks(clicks, propensity), X @ expected, qid)
    assert evaluate("ips_dcg@3", table, model)["ips_dcg@3"] == pytest.approx(by_rows["ips_dcg@3"])
    search = RankRLSCV(ALPHAS).fit(table)
    of_rows = RankRLSCV(ALPHAS).fit(X, Clicks(clicks, propensity), qid=qid)
    np.testing.assert_allclose(search.scores_, of_rows.scores_)
    assert model.score(table) == pytest.approx(
        model.score(frame[table.feature_names], Clicks(clicks, propensity), qid=qid)
    )


def test_a_validation_set_has_propensities_of_its_own():
    X, clicks, qid, propensity, _ = log(9)
    held = log(10)
    search = RankRLSCV(ALPHAS).fit(
        X,
        Clicks(clicks, propensity),
        qid=qid,
        validation=(held[0], Clicks(held[1], held[3]), held[2]),
    )
    for alpha, score in zip(ALPHAS, search.scores_, strict=True):
        scores = held[0] @ solved(alpha, X, clicks, qid, propensity)
        expected = evaluate("ips_dcg@10", Clicks(held[1], held[3]), scores, held[2])
        assert score == pytest.approx(expected["ips_dcg@10"])


def test_scikit_learn_hands_propensities_on():
    X, clicks, qid, propensity, _ = log(12)
    with config_context(enable_metadata_routing=True):
        grid = GridSearchCV(
            RankRLS(), {"alpha": ALPHAS}, cv=QueryKFold(3), scoring=make_scorer("ips_dcg@10")
        )
        grid.fit(X, Clicks(clicks, propensity), qid=qid)
    search = RankRLSCV(ALPHAS, cv=QueryKFold(3)).fit(X, Clicks(clicks, propensity), qid=qid)
    folds = [[grid.cv_results_[f"split{k}_test_score"][i] for k in range(3)] for i in range(3)]
    found = [search.cv_results_[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(np.transpose(folds), found)


def test_statistics_of_days_add_up():
    X, clicks, qid, propensity, _ = log(14)
    total = Pairgram(pairs="clicks")
    for day in (qid < 10, qid >= 10):
        total.update(X[day], Clicks(clicks[day], propensity[day]), qid=qid[day])
    close(total.G, written_out(X, clicks, qid, propensity)[0], 1e-12)


X, CLICKS, QID, PROPENSITY, _ = log(15)


def test_clicks_that_are_weighted_differently_than_pairs_of_two_classes():
    """Two rows are as relevant, and seen with 1 and .2: pairs with unclicked rows alone are biased.

    Users click a row if they look at it, so that every list has two clicks, one or none. The sum
    over all lists puts both rows level, which weights 1 / p with tied pairs dropped do not.
    """
    looks = np.array([1.0, 0.2])
    lists = [(1.0, 0.2 * 1.0), (0.0, 0.8)]  # (whether the second is clicked, how often)
    X = np.tile(np.eye(2), (2, 1))
    clicks = np.array([value for second, _ in lists for value in (1.0, second)])
    qid, weight = np.repeat([0, 1], 2), np.repeat([share for _, share in lists], 2)
    model = RankRLS(1e-9).fit(X, Clicks(clicks, np.tile(looks, 2)), qid=qid, query_weight=weight)
    assert model.coef_[0] == pytest.approx(model.coef_[1], abs=1e-6)
    others = RankRLS(1e-9, pairs="without_ties").fit(
        X, clicks, qid=qid, sample_weight=np.tile(1 / looks, 2), query_weight=weight
    )
    assert others.coef_[0] - others.coef_[1] > 0.5


def slow_ips(clicks, scores, qid, propensity, k, clip):
    values = []
    for one in dict.fromkeys(qid.tolist()):
        rows = np.flatnonzero(qid == one)
        ranked = rows[np.argsort(-scores[rows], kind="stable")][:k]
        values.append(
            sum(
                clicks[row] / max(propensity[row], clip) / np.log2(2 + place)
                for place, row in enumerate(ranked)
                if clicks[row] > 0
            )
        )
    return np.array(values)


def test_the_metric_of_clicks_where_little_is_known():
    """Nothing is said of what is not known, without warnings, which are errors here."""
    clicks, scores, shown = [1, 0, 1], [1.0, 2.0, 3.0], [1e-170, 0.5, 0.5]
    found = evaluate("ips_dcg@3", Clicks(clicks, shown), scores)
    assert np.isnan(found["ips_dcg@3 standard error"])
    assert found["ips_dcg@3 effective clicks"] == pytest.approx(1.0)
    weights = [1.0, 1.0, 0.0]  # of no click
    found = evaluate(
        "ips_dcg@3", Clicks([0, 0, 1], shown), scores, [0, 0, 1], sample_weight=weights
    )
    assert np.isnan(found["ips_dcg@3 self-normalised"])
    assert np.isnan(found["ips_dcg@3 effective clicks"])


@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_the_metric_of_clicks(clip):
    scores = X @ np.arange(4.0)
    metric = get_metric("ips_dcg@3", clip=clip)
    expected = slow_ips(CLICKS, scores, QID, PROPENSITY, 3, clip)
    arguments = (Clicks(CLICKS, PROPENSITY), scores, QID)
    each = evaluate(metric, *arguments, per_query=True)
    np.testing.assert_allclose(each["ips_dcg@3"], expected)
    found = evaluate(metric, *arguments)
    clicked = CLICKS > 0
    weights = CLICKS[clicked] / np.maximum(PROPENSITY[clicked], clip)
    wanted = {
        "ips_dcg@3": expected.mean(),
        "ips_dcg@3 standard error": expected.std(ddof=1) / np.sqrt(len(expected)),
        "ips_dcg@3 self-normalised": expected.sum() / weights.sum(),
        "ips_dcg@3 clipped": np.mean(PROPENSITY[clicked] < clip),
        "ips_dcg@3 effective clicks": weights.sum() ** 2 / (weights**2).sum(),
    }
    assert found.keys() == wanted.keys()
    np.testing.assert_allclose([*found.values()], [*wanted.values()])
    several = evaluate(metric, Clicks(CLICKS, PROPENSITY), np.stack([scores, -scores]), QID)
    assert several["ips_dcg@3 standard error"][0] == pytest.approx(
        wanted["ips_dcg@3 standard error"]
    )


def test_a_clip_judges_a_search():
    metric = get_metric("ips_dcg@3", clip=0.3)
    search = RankRLSCV([1.0], scoring=metric)
    search.fit(X, Clicks(CLICKS, PROPENSITY), qid=QID)
    expected = slow_ips(CLICKS, search.held_out_, QID, PROPENSITY, 3, 0.3).mean()
    assert search.best_score_ == pytest.approx(expected)


def test_a_warning_tells_of_clicks_that_nothing_divides():
    clicks, scores = np.minimum(CLICKS, 1.0), X[:, 0]
    table = scan(
        frame_of(X, clicks, QID, PROPENSITY).drop(columns="p"), label="clicked", qid="list"
    )
    model = RankRLS().fit(table)
    for judge in (
        lambda: evaluate("ips_dcg@10", clicks, scores, QID),
        lambda: evaluate("ips_dcg@10", table, model),
    ):
        with pytest.warns(UserWarning, match="ips_dcg@10: no click counts more than 1"):
            judge()
    evaluate("ips_dcg@10", Clicks(clicks, PROPENSITY), scores, QID)
    evaluate("ips_dcg@10", clicks / np.where(clicks > 0, PROPENSITY, 1.0), scores, QID)


@given(
    seed=st.integers(0, 2**32 - 1),
    weighting=st.sampled_from(["pairs", "documents", "queries"]),
    loss=st.sampled_from(["squared_hinge", "squared"]),
    weighs=st.booleans(),
)
@hypothesis_settings(max_examples=25, deadline=None)
def test_the_hinge_of_clicks_is_that_of_pairs_that_are_written_out(seed, weighting, loss, weighs):
    X, clicks, qid, propensity, weight = log(seed)
    weight = weight if weighs else None
    y, named = Clicks(clicks, propensity), {"qid": qid, "sample_weight": weight}
    model = RankSVM(
        0.7, pairs=Pairs("without_ties", weighting=weighting), loss=loss, tol=1e-10
    ).fit(X, y, **named)
    W, D = click_pairs(X, clicks, qid, propensity, weight, weighting)
    missing = 1.0 - D @ model.coef_
    if loss == "squared_hinge":
        missing = np.maximum(missing, 0.0)
    gradient = model.coef_ - 2 * 0.7 * D.T @ (W * missing)
    size = np.linalg.norm(2 * 0.7 * D.T @ W)
    assert np.linalg.norm(gradient) <= 1e-8 * size


def assert_close(found, *parts):
    """Compare with the sum of parts, by the size of each row's own."""
    error = np.abs(found - sum(parts))
    assert (error <= 1e-12 * sum(map(np.abs, parts))).all()


@pytest.mark.parametrize("heaviest", [1.0, 1e12])  # one row may outweigh its list
def test_the_operator_of_clicks_has_the_gradient_and_the_hessian_of_its_loss(heaviest):
    _, clicks, qid, propensity, weight = log(21)
    a = clicks / np.where(clicks > 0, propensity, 1.0)
    rng = np.random.default_rng(0)
    order = np.argsort(qid, kind="stable")
    a, weight, qid = a[order], weight[order], qid[order]
    weight = np.where(np.diff(qid, prepend=-1) != 0, heaviest, weight)
    offsets = np.concatenate(([0], np.cumsum(np.unique(qid, return_counts=True)[1])))
    problem = _core.RankingProblem(a, offsets, row_weights=weight, pairs="omega", weighting="pairs")
    pairs = _core.PairOperator(problem)
    of_scores = OfScores(pairs)
    same_list = (qid[:, None] == qid) & ~np.eye(len(qid), dtype=bool)
    W = np.where(same_list, (a * weight)[:, None] * weight, 0.0)
    np.testing.assert_allclose(sum(pairs.pair_weights), W.sum())
    for scores in (rng.normal(size=len(a)), np.round(rng.normal(size=len(a)))):
        missing = 1.0 - (scores[:, None] - scores)
        active = W * (missing > 0)
        loss, gradient = of_scores.set_scores(scores)
        pull = 2 * active * missing
        np.testing.assert_allclose(loss, (active * missing**2).sum())
        assert_close(gradient, pull.sum(axis=0), -pull.sum(axis=1))
        u = rng.normal(size=len(a))
        both = 2 * (active + active.T)
        assert_close(of_scores.product(u), both.sum(axis=1) * u, -both @ u)


def test_a_search_of_other_kinds_judges_by_clicks_too():
    search = RankSVMCV([0.1, 1.0], cv=2).fit(X, Clicks(CLICKS, PROPENSITY), qid=QID)
    assert search.scoring_.name == "ips_dcg@10"
