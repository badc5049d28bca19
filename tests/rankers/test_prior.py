"""Priors and offsets: fits of what they leave of the targets, beside explicit solutions."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import assume, given, settings, strategies as st
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline

import forms
import pairgram
import pairgram as pg
from axes import every
from problems import BY_STEPS, problems
from reference import laplacian
from reference_metrics import pairs as pair_metric


def made(seed=0, n_queries=8, n_rows=9, n_features=4, levels=4):
    """Rows, labels, queries, weights of a prior, and offsets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_rows, n_features))
    y = rng.integers(0, levels, len(X)).astype(float)
    qid = rng.permutation(np.repeat(np.arange(n_queries), n_rows))
    return X, y, qid, rng.normal(size=n_features), rng.normal(size=len(X))


def close(found, expected, tolerance=1e-8):
    expected = np.asarray(expected)
    scale = max(1.0, abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def corrected(X, t, o, L, alpha, origin=0.0, scale=False):
    """The origin plus the ridge solution for the targets t − o, by dense matrices."""
    G, g = X.T @ L @ X, X.T @ L @ (t - o)
    T = np.where(np.diag(G) > 0, np.diag(G), 1.0) ** -0.5 if scale else np.ones(len(g))
    return origin + T * np.linalg.solve(T[:, None] * G * T + alpha * np.eye(len(g)), T * g)


def msd(y, f, query):
    """The mean over queries of the mean squared error of differences, which a constant leaves."""
    ids = np.unique(query)
    return np.mean(
        [pair_metric("pairwise_squared_error", y[query == q], f[query == q]) for q in ids]
    )


@settings(max_examples=90, deadline=None)
@given(
    problems(max_features=4, integer_labels=True),
    st.sampled_from(["with_ties", "without_ties", "gain_difference", "label_difference", None]),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.sampled_from(["primal", "dual", "scaled", "sparse", "iterated"]),
    st.sampled_from(["label", "gain"]),
    st.sampled_from([0.03, 2.0]),
)
def test_fits_equal_explicit_solutions(limits_of, problem, pairs, weighting, how, target, alpha):
    rng = np.random.default_rng(len(problem.y))
    w0, o = rng.normal(size=problem.X.shape[1]), rng.normal(size=len(problem.y))
    X = sp.csr_array(problem.X) if how in ("sparse", "iterated") else problem.X
    named = {"pairs": pg.Pairs(pairs, weighting=weighting, target=target), "scale": how == "scaled"}
    form = how if how in ("primal", "dual") else "smaller"
    model = forms.RankRLS(alpha, **named, form=form, prior=w0)
    rows = {"qid": problem.query, "sample_weight": problem.v, "query_weight": problem.query_weight}
    with limits_of(**BY_STEPS) if how == "iterated" else nullcontext():
        try:
            model.fit(X, problem.y, **rows, offset=o)
        except ValueError as error:
            assert "no pair of rows counts" in str(error) or "zero for every row" in str(error)
            assume(False)
    L, _ = laplacian(problem.y, problem.query, pairs, problem.v, weighting, problem.query_weight)
    t = problem.y if target == "label" else 2.0**problem.y - 1
    expected = corrected(problem.X, t, problem.X @ w0 + o, L, alpha, w0, how == "scaled")
    close(model.coef_, expected)
    close(model.predict(X) + o, problem.X @ expected + o)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", None])
def test_the_path_starts_from_the_prior(form, pairs):
    X, y, qid, w0, o = made()
    model = forms.RankRLSCV(pairs=pairs, form=form, prior=w0).fit(X, y, qid=qid, offset=o)
    plain = forms.RankRLSCV(pairs=pairs, form=form).fit(X, y, qid=qid)
    close(model.alphas_[4:], plain.alphas_, 1e-12)
    L, _ = laplacian(y, qid, pairs)
    known = model.alphas_ >= 1e-7 * 1e4 / 2**15 * plain.alphas_[0]  # a share of λ_max
    assert known.sum() > 20
    for alpha, coef in zip(model.alphas_[known], model.coef_path_[known], strict=True):
        close(coef, corrected(X, y, X @ w0 + o, L, alpha, w0))
    assert (model.coef_ == model.coef_path_[np.argmax(model.alphas_ == model.alpha_)]).all()


def held_out_scores(X, y, qid, o, folds, alpha, pairs, scale=False, whole_scope=False):
    """The scores of folds by explicit models of the other rows, with their offsets."""
    scores = np.empty(len(y))
    query = np.zeros_like(qid) if whole_scope else qid
    for test in folds:
        rest = np.setdiff1d(np.arange(len(y)), test)
        L, _ = laplacian(y[rest], query[rest], pairs)
        w = corrected(X[rest], y[rest], o[rest], L, alpha, scale=scale)
        scores[test] = X[test] @ w + o[test]
    return scores


ALPHAS = [0.1, 3.0]


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize(
    ("pairs", "scope"),
    [
        ("with_ties", "query"),
        ("without_ties", "query"),
        ("gain_difference", "query"),
        (None, "query"),
        ("with_ties", "global"),
        ("without_ties", "global"),
    ],
)
def test_leave_query_out_equals_refits(form, pairs, scope):
    X, y, qid, w0, o = made(1)
    model = forms.RankRLSCV(
        ALPHAS,
        pairs=pg.Pairs(pairs, scope=scope),
        form=form,
        scoring="pairwise_squared_error",
        prior=w0,
    )
    model.fit(X, y, qid=qid, offset=o)
    folds = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    for alpha, found in zip(ALPHAS, model.scores_, strict=True):
        scores = held_out_scores(
            X, y, qid, X @ w0 + o, folds, alpha, pairs, whole_scope=scope == "global"
        )
        close(found, msd(y, scores, qid))


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize(
    ("pairs", "scale"), [("with_ties", False), ("with_ties", True), ("without_ties", False)]
)
def test_folds_equal_refits(form, by_rows, pairs, scale):
    X, y, qid, w0, o = made(2, n_queries=6)
    qid = np.zeros_like(qid) if by_rows else qid
    splitter = KFold(3, shuffle=True, random_state=0) if by_rows else pg.QueryKFold(3)
    splits = list(splitter.split(X, y, None if by_rows else qid))
    form = "smaller" if scale else form
    model = forms.RankRLSCV(
        ALPHAS,
        pairs=pairs,
        cv=splits,
        scale=scale,
        form=form,
        scoring="pairwise_squared_error",
        prior=w0,
    )
    model.fit(X, y, qid=qid, offset=o)
    for i, alpha in enumerate(ALPHAS):
        scores = held_out_scores(
            X, y, qid, X @ w0 + o, [test for _, test in splits], alpha, pairs, scale
        )
        for number, (_, test) in enumerate(splits):
            found = model.cv_results_[f"split{number}_test_score"][i]
            close(found, msd(y[test], scores[test], qid[test]))


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", None])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_leave_row_out_measures_offsets_from_the_mean_of_the_other_rows(pairs, form):
    X, y, qid, w0, o = made(3, n_queries=1, n_rows=12)
    v = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    model = forms.RankRLSCV(
        ALPHAS, pairs=pairs, form=form, scoring="pairwise_squared_error", prior=w0
    )
    model.fit(X, y, sample_weight=v, offset=o)
    both = X @ w0 + o
    for alpha, found in zip(ALPHAS, model.scores_, strict=True):
        scores = np.empty(len(y))
        for row in range(len(y)):
            rest = np.delete(np.arange(len(y)), row)
            L, _ = laplacian(y[rest], qid[rest], pairs, v[rest])
            w = corrected(X[rest], y[rest], both[rest], L, alpha)
            total = X @ w + both
            mean = 0.0 if pairs is None else v[rest] @ total[rest] / v[rest].sum()
            scores[row] = total[row] - mean
        close(found, msd(y, scores, qid))


@pytest.mark.parametrize("pairs", ["with_ties", None])
def test_leave_pair_out_equals_refits(pairs):
    X, y, qid, w0, o = made(4, n_queries=1, n_rows=16)
    X[1], y[0], y[1] = X[0], 0.0, 1.0  # they differ in their offsets alone
    model = pg.RankRLSCV(ALPHAS, pairs=pairs, cv="leave-pair-out", prior=w0).fit(X, y, offset=o)
    both = X @ w0 + o
    for alpha, found in zip(ALPHAS, model.scores_, strict=True):
        right = []
        for i, j in np.argwhere(y[:, None] > y):
            rest = np.delete(np.arange(len(y)), [i, j])
            L, _ = laplacian(y[rest], qid[rest], pairs)
            w = corrected(X[rest], y[rest], both[rest], L, alpha)
            right.append((X[i] - X[j]) @ w + both[i] - both[j] > 0)
        assert found == pytest.approx(np.mean(right), abs=1e-12)
    assert 0.3 < found < 1


def test_a_validation_set_has_the_prior_and_its_offsets():
    X, y, qid, w0, o = made(5)
    Z, z, zid, _, zo = made(6)
    model = pg.RankRLSCV(ALPHAS, scoring="pairwise_squared_error", prior=w0)
    model.fit(X, y, qid=qid, offset=o, validation=(Z, z, zid, zo))
    L, _ = laplacian(y, qid, "with_ties")
    for alpha, found in zip(ALPHAS, model.scores_, strict=True):
        close(found, msd(z, Z @ corrected(X, y, X @ w0 + o, L, alpha, w0) + zo, zid))


def rbf(A, B, gamma=0.25):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def test_a_kernel_takes_a_model_and_offsets(tmp_path):
    X, y, qid, _, o = made(7)
    Z = np.random.default_rng(1).normal(size=(5, 4))
    of_prior = pg.RankRLS(2.0).fit(X, y, qid=qid)
    p, K = X @ of_prior.coef_, rbf(X, X)
    L, _ = laplacian(y, qid, "without_ties")
    told = {"scoring": "pairwise_squared_error", "prior": FrozenEstimator(of_prior)}
    kernel = [pg.Kernel("rbf", gamma=0.25)]
    model = forms.RankRLSCV(ALPHAS, pairs="without_ties", feature_map=kernel, **told)
    model.fit(X, y, qid=qid, offset=o)
    alpha = model.alpha_
    a = np.linalg.solve(L @ K + alpha * np.eye(len(y)), L @ (y - p - o))
    expected = rbf(Z, X) @ a + Z @ of_prior.coef_
    close(model.predict(Z), expected)
    assert model.prior_ is of_prior
    for alpha, found in zip(ALPHAS, model.scores_, strict=True):
        scores = np.empty(len(y))
        for q in np.unique(qid):
            test, rest = np.flatnonzero(qid == q), np.flatnonzero(qid != q)
            M = L[np.ix_(rest, rest)]
            a = np.linalg.solve(
                M @ K[np.ix_(rest, rest)] + alpha * np.eye(len(rest)), M @ (y - p - o)[rest]
            )
            scores[test] = K[np.ix_(test, rest)] @ a + (p + o)[test]
        close(found, msd(y, scores, qid))
    model.save(tmp_path / "model")
    loaded = pg.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))
    assert isinstance(loaded.prior, FrozenEstimator)


MAPS = [
    None,
    pg.RandomNodes(6, "sigmoid", random_state=0),
    pg.RandomNodes(9, random_state=0),
    pg.Nystroem(n_components=6, random_state=0),
]


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_weights_belong_to_the_features_of_the_map(feature_map, alpha, tmp_path):
    X, y, qid, _, o = made(8)
    H = X if feature_map is None else clone(feature_map).fit(X).transform(X)
    w0 = np.random.default_rng(0).normal(size=H.shape[1])
    model = pg.RankRLS(alpha, feature_map=feature_map, prior=w0).fit(X, y, qid=qid, offset=o)
    L, _ = laplacian(y, qid, "with_ties")
    expected = H @ corrected(H, y, H @ w0 + o, L, alpha, w0) + o
    found = model.predict(X) + o
    close(found, expected)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(pg.load_model(tmp_path / "model").predict(X) + o, found)
    # The same as a frozen model of these features, whose weights become part of coef_.
    frozen = pg.RankRLS(1.0, feature_map=feature_map).fit(X, y, qid=qid)
    frozen.coef_ = w0
    again = pg.RankRLS(alpha, feature_map=feature_map, prior=FrozenEstimator(frozen))
    again.fit(X, y, qid=qid, offset=o)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.prior_ is None


RANKERS = [
    pg.RankRLS(1e14),
    pg.RankRLS(1e14, pairs=None),
    pg.RankRLS(1e14, scale=True),
    pg.RankRLS(1e14, feature_map=pg.Kernel("rbf")),
    pg.RankRLSCV([1e14]),
    pg.PairwiseELM(1e-14, n_nodes=5, random_state=0),
    pg.PointwiseELM(1e-14, n_nodes=5, random_state=0),
    pg.RankSVM(1e-12),
]


@every(ranker=RANKERS)
def test_a_strong_ridge_leaves_the_prior(ranker):
    X, y, qid, _, o = made(9)
    prior = pg.RankRLS(2.0, feature_map=pg.Kernel("rbf")).fit(X, y, qid=qid)
    model = clone(ranker).set_params(prior=FrozenEstimator(prior)).fit(X, y, qid=qid, offset=o)
    expected, found = prior.predict(X) + o, model.predict(X) + o
    bias = getattr(model, "intercept_", 0.0)
    close(found - bias, expected, 1e-6)
    assert (np.argsort(found) == np.argsort(expected)).all()


@pytest.mark.parametrize("scale", [False, True])
def test_streams_start_from_weights(scale):
    X, y, qid, w0, _ = made(10)
    stream = pg.Pairgram(pairs="without_ties")
    for part in np.array_split(np.unique(qid), 3):
        rows = np.isin(qid, part)
        stream.update(X[rows], y[rows], qid=qid[rows])
    L, _ = laplacian(y, qid, "without_ties")
    model = pg.RankRLS(0.7, pairs="without_ties", scale=scale, prior=w0).fit(X, y, qid=qid)
    found = stream.solve(0.7, scale=scale, prior=w0)
    close(found, corrected(X, y, X @ w0, L, 0.7, w0, scale))
    close(found, model.coef_)
    close(pg.RankRLS.from_pairgram(stream, 0.7, scale=scale, prior=w0).coef_, found, 1e-14)
    path = stream.path([5.0, 0.7], scale=scale, prior=w0)
    close(path[1], found)
    path = stream.path(prior=w0, scale=scale)
    assert path.shape == (38, 4)
    close(path[0], w0, 1e-5)
    close(stream.path(scale=scale, prior=np.zeros(4))[4:], stream.path(scale=scale), 1e-14)


@pytest.mark.parametrize(
    "estimator",
    [
        pg.RankRLS(2.0),
        pg.RankRLSCV(),
        pg.RankRLSCV(cv=3),
        pg.RankRLSCV(scale=True),
        pg.PairwiseELMCV(n_nodes=7, random_state=0),
        pg.RankSVM(0.1),
        pg.RankRLS(pairs=pg.Pairs("gain_difference", scope="global")),
    ],
    ids=str,
)
def test_many_fits_equal_single_fits(estimator):
    rows = [made(seed, n_queries=4, n_rows=4 + seed) for seed in range(5)]
    whole = pg.RankRLS(2.0).fit(*(np.concatenate([r[k] for r in rows]) for k in (0, 1)))
    estimator = clone(estimator).set_params(prior=FrozenEstimator(whole))
    lists = [(X, y, qid) for X, y, qid, _, _ in rows]
    for (X, y, qid), model in zip(lists, pg.fit_many(estimator, lists).models, strict=True):
        single = clone(estimator).fit(X, y, qid=qid)
        close(model.predict(X), single.predict(X))


def test_many_targets_share_a_prior():
    X, y, qid, w0, _ = made(11)
    Y = np.column_stack([y, -y, y**2])
    estimator = pg.RankRLSCV([0.5, 4.0], prior=w0)
    models = pg.fit_many(estimator, X, Y, qid=qid).models
    for target, model in zip(Y.T, models, strict=True):
        single = clone(estimator).fit(X, target, qid=qid)
        close(model.coef_, single.coef_)
        assert model.alpha_ == single.alpha_


def test_a_user_starts_from_everybody():
    """A user with few rows is served better by everybody's model and the own rows together."""
    rng = np.random.default_rng(0)
    everybody = rng.normal(size=12)
    X = rng.normal(size=(100, 30, 12))
    w = everybody + 0.4 * rng.normal(size=(100, 12))
    y = np.round(np.einsum("uij,uj->ui", X, w) + rng.normal(size=X.shape[:2]))
    whole = pg.RankRLS(1.0).fit(X[:50, :10].reshape(-1, 12), y[:50, :10].ravel())
    users = [(X[u, :10], y[u, :10]) for u in range(50, 100)]
    accuracy = {}
    for name, prior in (("own", None), ("both", FrozenEstimator(whole))):
        models = pg.fit_many(pg.RankRLSCV(prior=prior), users).models
        scores = [
            pair_metric("pairwise_accuracy", y[u, 10:], model.predict(X[u, 10:]))
            for u, model in zip(range(50, 100), models, strict=True)
        ]
        accuracy[name] = np.mean(scores)
    accuracy["whole"] = np.mean([
        pair_metric("pairwise_accuracy", y[u, 10:], whole.predict(X[u, 10:]))
        for u in range(50, 100)
    ])  # fmt: skip
    assert accuracy["both"] > max(accuracy["whole"], accuracy["own"]) + 0.01


def test_rows_without_weight_and_constant_columns():
    X, y, qid, w0, o = made(12)
    X[:, 3] = 5.0
    v = np.ones(len(y))
    v[::5] = 0.0
    wild = np.where(v > 0, o, 1e6)
    model = pg.RankRLSCV(scoring="pairwise_squared_error", prior=w0).fit(
        X, y, qid=qid, sample_weight=v, offset=wild
    )
    seen = v > 0
    again = pg.RankRLSCV(scoring="pairwise_squared_error", prior=w0).fit(
        X[seen], y[seen], qid=qid[seen], offset=o[seen]
    )
    close(model.coef_, again.coef_)
    close(model.scores_, again.scores_)
    assert model.coef_[3] == w0[3]


def test_equal_rows_with_different_offsets():
    """Rows that are held out one by one share a score only if their offsets are equal too."""
    X, y, _, w0, o = made(13, n_queries=1, n_rows=10)
    X[5:], y[5:] = X[:5], y[:5]
    model = pg.RankRLSCV([1.0], scoring="pairwise_squared_error", prior=w0).fit(X, y, offset=o)
    moved = X.copy()
    moved[5:] += 1e-13  # no two rows are equal now
    close(
        model.scores_,
        pg.RankRLSCV([1.0], scoring="pairwise_squared_error", prior=w0)
        .fit(moved, y, offset=o)
        .scores_,
    )


def test_default_scoring_and_pairs_come_from_the_labels():
    X, y, qid, w0, o = made(14)
    model = pg.RankRLSCV(prior=w0, pairs="gain_difference").fit(X, y, qid=qid, offset=o - 100)
    assert model.scoring_.name == "ndcg@10"
    close(
        model.coef_path_,
        pg.RankRLSCV(prior=w0, pairs="gain_difference").fit(X, y, qid=qid, offset=o).coef_path_,
    )


def test_a_prior_of_another_kind_is_added():
    X, y, qid, _, _ = made(15)
    prior = Ridge().fit(X, y)
    model = pg.RankRLS(1.0, prior=FrozenEstimator(prior)).fit(X, y, qid=qid)
    L, _ = laplacian(y, qid, "with_ties")
    p = prior.predict(X)
    close(model.predict(X), X @ corrected(X, y, p, L, 1.0) + p)


def test_a_prior_of_named_columns():
    X, y, qid, _, _ = made(16)
    frame = pd.DataFrame(X, columns=list("abcd"))
    prior = FrozenEstimator(pg.RankRLS().fit(frame, y, qid=qid))
    model = pg.RankRLS(prior=prior).fit(frame, y, qid=qid)
    close(model.coef_, pg.RankRLS(prior=prior.coef_).fit(X, y, qid=qid).coef_, 1e-14)


@pytest.mark.parametrize("how", ["weights", "model", "offset", "positive"])
def test_default_alphas_reach_the_prior(how):
    X, _, qid, truth, noise = made(n_queries=6, n_rows=4)
    y = X @ truth + noise  # the rows are too few to find out more than the truth
    offset = X @ truth if how in ("offset", "positive") else None
    model = pg.RankRLS().fit(X, y)
    model.coef_ = truth
    options = {
        "weights": {"prior": truth},
        "model": {"prior": FrozenEstimator(model)},
        "offset": {},
        "positive": {"constraint": pg.Positive()},
    }[how]
    search = forms.RankRLSCV(scoring="pairwise_squared_error", **options)
    search.fit(X, y, qid=qid, offset=offset)
    plain = pg.RankRLSCV(scoring="pairwise_squared_error").fit(X, y, qid=qid)
    assert plain.alphas_.shape == (34,)
    largest = np.linalg.eigvalsh(pg.Pairgram.from_rows(X, y, qid=qid).G)[-1]
    np.testing.assert_allclose(search.alphas_[:4] / largest, [1e6, 1e3, 100, 10], rtol=1e-9)
    np.testing.assert_allclose(search.alphas_[4:], plain.alphas_, rtol=1e-9)
    assert search.alpha_ >= search.alphas_[3]


def test_default_Cs_reach_the_prior():
    X, y, qid, _, _ = made()
    model = pg.RankSVMCV(prior=np.ones(4)).fit(X, y, qid=qid)
    plain = pg.RankSVMCV().fit(X, y, qid=qid)
    np.testing.assert_allclose(model.Cs_[4:], plain.Cs_, rtol=1e-12)
    np.testing.assert_allclose(model.Cs_[:4] / plain.Cs_[0], [1e-6, 1e-3, 1e-2, 1e-1])
    kept = pg.RankSVM(float(model.Cs_[0]), prior=np.ones(4)).fit(X, y, qid=qid)
    close(kept.coef_, np.ones(4), 1e-4)


def test_clones_and_parameters():
    X, y, qid, w0, _ = made(17)
    frozen = FrozenEstimator(pg.RankRLS().fit(X, y, qid=qid))
    for name in pairgram.__all__:
        takes = getattr(getattr(pairgram, name), "_get_param_names", list)()
        if "prior" in takes:
            estimator = getattr(pairgram, name)(prior=frozen)
            assert clone(estimator).prior is frozen
            assert clone(estimator).fit(X, y, qid=qid).get_params(deep=False)["prior"] is frozen
    model = pg.RankRLS(prior=w0)
    model.fit(X, y, qid=qid, offset=y).set_params(prior=None).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, pg.RankRLS().fit(X, y, qid=qid).coef_)


def test_offsets_are_routed_to_fits():
    import sklearn

    X, y, qid, w0, o = made(18)
    model = pg.RankRLS(prior=w0)
    with sklearn.config_context(enable_metadata_routing=True):
        rows = {"qid": qid, "offset": o}
        for scoring in (None, pg.make_scorer("ndcg@10")):
            found = cross_validate(
                model, X, y, cv=pg.QueryKFold(3), params=rows, scoring=scoring, error_score="raise"
            )["test_score"]
            for (train, test), score in zip(pg.QueryKFold(3).split(X, y, qid), found, strict=True):
                part = clone(model).fit(X[train], y[train], qid=qid[train], offset=o[train])
                assert score == part.score(X[test], y[test], qid=qid[test])
        search = GridSearchCV(model, {"alpha": [1.0, 9.0]}, cv=pg.QueryKFold(3)).fit(X, y, **rows)
    assert search.best_score_ > 0


@pytest.mark.parametrize(
    "ranker",
    [pg.RankRLS(), pg.RankRLSCV(), pg.RankSVM(), pg.PairwiseELM(5, random_state=0)],
    ids=str,
)
def test_a_fitted_model_is_a_prior_and_stays_fitted_in_clones(ranker):
    X, y, qid, _, _ = made(23)
    before = pg.RankRLS(5.0).fit(X[:36], y[:36], qid=qid[:36])
    wanted = clone(ranker).set_params(prior=FrozenEstimator(before)).fit(X, y, qid=qid).predict(X)
    given = clone(ranker).set_params(prior=before)
    assert given.prior is before  # as it was given
    for model in (given, clone(given), clone(clone(given)), clone(Pipeline([("rank", given)]))[-1]):
        np.testing.assert_array_equal(model.fit(X, y, qid=qid).predict(X), wanted)
    assert not hasattr(clone(given), "coef_")


def test_a_fitted_model_is_a_prior_in_searches_and_batches():
    X, y, qid, _, _ = made(24)
    before = pg.RankRLS(5.0).fit(X[:36], y[:36], qid=qid[:36])
    frozen = pg.RankRLS(prior=FrozenEstimator(before))
    with sklearn.config_context(enable_metadata_routing=True):
        found, wanted = (
            GridSearchCV(model, {"alpha": [1.0, 9.0]}, cv=pg.QueryKFold(3)).fit(X, y, qid=qid)
            for model in (pg.RankRLS(prior=before), frozen)
        )
    assert found.best_score_ == wanted.best_score_
    frame = pd.DataFrame(X, columns=list("abcd")).assign(user=qid % 2, y=y)
    own = pg.RankRLS(5.0).fit(frame[list("abcd")], y, qid=qid)
    for rows, named, model in (
        ([(X, y, qid)], {}, before),
        (frame, {"y": "y", "by": "user"}, own),
    ):
        found, wanted = (
            pg.fit_many(pg.RankRLS(prior=prior), rows, **named).models[0].coef_
            for prior in (model, FrozenEstimator(model))
        )
        np.testing.assert_array_equal(found, wanted)


def test_weights_are_measured_on_the_whole_model():
    X, y, qid, w0, o = made(24)
    for ranker in (pg.RankRLS(), pg.RankRLSCV(), pg.RankSVM(0.1)):
        model = clone(ranker).set_params(prior=w0).fit(X, y, qid=qid, offset=o)
        table = model.column_weights(X, qid=qid)
        close(np.sort(table["weight"]), np.sort(model.coef_), 1e-12)
        close(model.contributions(X).sum(axis=1) + o, model.predict(X) + o, 1e-12)
    L, _ = laplacian(y, qid, "without_ties")
    products = X.T @ L @ X @ model.coef_ * model.coef_
    close(np.sort(model.column_weights()["share"]), np.sort(products / products.sum()))


def test_what_was_held_out_has_the_prior_and_the_offsets():
    X, y, qid, w0, o = made(25)
    model = pg.RankRLSCV([1.0], scoring="pairwise_squared_error", prior=w0)
    model.fit(X, y, qid=qid, offset=o)
    folds = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    scores = held_out_scores(X, y, qid, X @ w0 + o, folds, 1.0, "with_ties")
    found = model.held_out_ - scores  # equal up to a constant for each query
    assert max(np.ptp(found[test]) for test in folds) < 1e-8
    assert msd(y, model.held_out_, qid) == pytest.approx(model.best_score_, rel=1e-12)
