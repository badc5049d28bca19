"""Products that shrink towards a multiple of the identity, against systems written out."""

import numpy as np
import pytest
from sklearn.base import clone

from pairgram import (
    BatchFit,
    Cross,
    Preferences,
    QueryKFold,
    RandomFourier,
    RankRLS,
    RankRLSCV,
    RankSVM,
    fit_many,
    get_metric,
    load_model,
    make_ranking,
    scan,
)
from problems import BY_STEPS

D = 4
CROSS = Cross(slice(0, D), slice(D, 2 * D), keep=[2 * D])


class Lists:
    def __init__(self, n_queries=25, seed=0, *, bilinear=0.3, noise=1.0, of_cosine=1.0):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(5, 15, n_queries)
        self.qid = np.repeat(np.arange(n_queries), sizes)
        u, v = rng.normal(size=(n_queries, D))[self.qid], rng.normal(size=(len(self.qid), D))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        self.cosine = (u * v).sum(axis=1)
        W = of_cosine * np.eye(D) + bilinear * rng.normal(size=(D, D))
        truth = np.einsum("ia,ab,ib->i", u, W, v)
        self.y = np.round(3 * truth + noise * rng.normal(size=len(v)))
        self.X = np.hstack([u, v, rng.normal(size=(len(v), 1))])

    def system(self, pairs="with_ties"):
        """Return G, g and the identity of length 1."""
        X = self.X
        u = np.hstack([np.ones((len(X), 1)), X[:, :D]])
        products = (u[:, :, None] * X[:, None, D : 2 * D]).reshape(len(u), -1)
        H, y = np.hstack([X[:, 2 * D :], products]), self.y
        G, g = np.zeros((H.shape[1],) * 2), np.zeros(H.shape[1])
        for query in np.unique(self.qid):
            own = self.qid == query
            n = np.count_nonzero(own)
            L = n * np.eye(n) - 1 if pairs == "with_ties" else np.eye(n)
            G += H[own].T @ L @ H[own]
            g += H[own].T @ L @ y[own]
        identity = np.zeros(len(g))
        identity[-D * D :] = np.eye(D).ravel() / D**0.5
        return G, g, identity

    def ridge(self, alpha, pairs="with_ties"):
        G, g, identity = self.system(pairs)
        penalty = np.eye(len(g)) - np.outer(identity, identity)
        return np.linalg.solve(G + alpha * penalty, g)

    def take(self, rows):
        part = Lists.__new__(Lists)
        part.X, part.y, part.qid = self.X[rows], self.y[rows], self.qid[rows]
        return part


def centred(scores, qid):
    return scores - (np.bincount(qid, scores) / np.maximum(np.bincount(qid), 1))[qid]


@pytest.mark.parametrize("how", ["direct", "by steps"])
@pytest.mark.parametrize("pairs", ["with_ties", None])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e3, 1e9])
def test_the_penalty_leaves_multiples_of_the_identity_alone(set_limits, how, pairs, alpha):
    lists = Lists()
    set_limits(**(BY_STEPS if how == "by steps" else {}))
    model = RankRLS(alpha, pairs=pairs, feature_map=CROSS, prior="identity")
    model.fit(lists.X, lists.y, qid=lists.qid)
    expected = lists.ridge(alpha, pairs)
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-7 * abs(expected).max())
    W = model.coef_[-D * D :].reshape(D, D)
    assert model.prior_scale_ == pytest.approx(np.trace(W) / D)
    if alpha == 1e9:  # the multiple of the cosine that fits best
        np.testing.assert_allclose(W, model.prior_scale_ * np.eye(D), atol=1e-5)
        G, g, identity = lists.system(pairs)
        best = identity @ g / (identity @ G @ identity) / D**0.5
        assert model.prior_scale_ == pytest.approx(best, rel=1e-4)


def test_every_query_is_held_out_with_its_own_multiple():
    lists = Lists()
    model = RankRLSCV(feature_map=CROSS, prior="identity", store_held_out=True)
    model.fit(lists.X, lists.y, qid=lists.qid)
    assert len(model.alphas_) == 38
    alphas = model.alphas_
    for alpha in alphas[[0, 8, 20]]:
        model.set_params(alphas=[alpha]).fit(lists.X, lists.y, qid=lists.qid)
        for query in np.unique(lists.qid):
            own = lists.qid == query
            refit = RankRLS(alpha, feature_map=CROSS)
            refit.fit(lists.X[:9], lists.y[:9], qid=lists.qid[:9])
            refit.coef_ = lists.take(~own).ridge(alpha)
            expected = refit.predict(lists.X[own])
            np.testing.assert_allclose(
                model.held_out_[own] - model.held_out_[own].mean(),
                expected - expected.mean(),
                rtol=0,
                atol=1e-9 if alpha < alphas[0] else 1e-7,  # of the reference
            )


def test_groups_folds_and_both_roads_agree(limits_of):
    lists = Lists()
    groups = lists.qid // 5
    given = {"y": lists.y, "qid": lists.qid}
    model = RankRLSCV(
        feature_map=CROSS, prior="identity", store_held_out=True, cv=QueryKFold(5)
    ).fit(lists.X, **given)
    together = RankRLSCV(
        model.alphas_, feature_map=CROSS, prior="identity", store_held_out=True
    ).fit(lists.X, **given, groups=groups)
    folds = [(np.flatnonzero(groups != k), np.flatnonzero(groups == k)) for k in range(5)]
    same = RankRLSCV(
        [together.alpha_], feature_map=CROSS, prior="identity", store_held_out=True, cv=folds
    ).fit(lists.X, **given)
    np.testing.assert_allclose(
        *(centred(one.held_out_, lists.qid) for one in (together, same)), rtol=0, atol=1e-9
    )
    with limits_of(**BY_STEPS):
        stepped = RankRLSCV(feature_map=CROSS, prior="identity", cv=QueryKFold(5))
        stepped.fit(lists.X, **given)
    np.testing.assert_allclose(stepped.alphas_, model.alphas_, rtol=1e-7)
    np.testing.assert_allclose(stepped.coef_path_, model.coef_path_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(stepped.scores_, model.scores_, atol=1e-4)


@pytest.mark.parametrize("bilinear", [0.0, 1.0])
def test_the_choice_loses_to_cosine_by_no_more_than_noise(bilinear):
    """Where the truth is the cosine the ridge is large; where it is not, products help."""
    metric = get_metric("ndcg")
    gains = []
    for seed in range(12):
        lists = Lists(80, seed, bilinear=bilinear)
        train, test = lists.qid < 30, lists.qid >= 30
        model = RankRLSCV(feature_map=Cross(slice(0, D), slice(D, 2 * D)), prior="identity")
        model.fit(lists.X[train, : 2 * D], lists.y[train], qid=lists.qid[train])
        labels = lists.y[test] - lists.y.min()
        scores = [model.predict(lists.X[test, : 2 * D]), lists.cosine[test]]
        ours, theirs = (metric(labels, s, qid=lists.qid[test]) for s in scores)
        gains.append(ours - theirs)
    assert np.mean(gains) > (-0.005 if bilinear == 0 else 0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feature_map": None}, "'identity' but for a Cross and labels, got other features"),
        ({"feature_map": Cross([0, 1], [4, 5, 6])}, "for sides of 2 and 3 features"),
        ({"scale": True}, "'identity' with scale=True"),
        ({"form": "dual"}, "'identity' with form='dual'"),
        ({"positive": True}, "prior"),
        ({"prior": "model.json"}, r"load_model\('model.json'\), or 'identity'"),
    ],
)
def test_bad_settings(settings, message):
    lists = Lists()
    model = RankRLS(feature_map=CROSS, prior="identity").set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(lists.X, lists.y, qid=lists.qid)


def test_other_bad_input():
    lists = Lists()
    model = RankRLSCV(feature_map=CROSS, prior="identity", cv="leave-pair-out")
    with pytest.raises(ValueError, match="'identity' with cv='leave-pair-out'"):
        model.fit(lists.X, lists.y, qid=lists.qid)
    comparisons = Preferences([0, 1], [2, 3])
    with pytest.raises(ValueError, match="got comparisons"):
        RankRLS(feature_map=CROSS, prior="identity").fit(lists.X, comparisons)
    with pytest.raises(ValueError, match="must be a fitted model"):
        RankSVM(feature_map=CROSS, prior="identity").fit(lists.X, lists.y, qid=lists.qid)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(lists.X, columns=[f"x{j}" for j in range(9)])
    table = scan(frame.assign(y=lists.y, q=lists.qid), label="y", qid="q")
    with pytest.raises(ValueError, match="needs all rows in memory"):
        RankRLS(feature_map=CROSS, prior="identity").fit(table)


def test_one_list_is_held_out_by_folds(tmp_path):
    lists = Lists(2)
    own = lists.qid == 0
    X = np.vstack([lists.X[own]] * 4)
    y = np.tile(lists.y[own], 4)
    model = RankRLSCV(pairs=None, feature_map=CROSS, prior="identity").fit(X, y)
    assert "split0_test_score" in model.cv_results_
    mapped = Cross(
        slice(0, D),
        slice(D, 2 * D),
        left_map=RandomFourier(8, random_state=0),
        right_map=RandomFourier(8, random_state=0),
    )
    one = RankRLS(1e12, feature_map=mapped, prior="identity").fit(lists.X, lists.y, qid=lists.qid)
    W = one.coef_[-64:].reshape(8, 8)
    np.testing.assert_allclose(W, one.prior_scale_ * np.eye(8), atol=1e-8)


def test_files_remember_that_models_start_from_the_identity(tmp_path):
    lists = Lists()
    model = RankRLSCV(feature_map=CROSS, prior="identity").fit(lists.X, lists.y, qid=lists.qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.prior, loaded.prior_scale_) == ("identity", model.prior_scale_)
    again = clone(loaded).fit(lists.X, lists.y, qid=lists.qid)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=0, atol=1e-9)
    half = lists.take(lists.qid % 2 == 0)
    fits = [(one.X, one.y, one.qid) for one in (lists, half)]
    batch = fit_many(RankRLS(feature_map=CROSS, prior="identity"), fits)
    batch.save(tmp_path / "batch")
    for one, known in zip(BatchFit.load(tmp_path / "batch").models, batch.models, strict=True):
        assert one.prior_scale_ == known.prior_scale_
    assert len({one.prior_scale_ for one in batch.models}) == 2


def test_a_file_of_another_map_does_not_start_from_the_identity(tmp_path):
    lists = Lists()
    model = RankRLS().fit(lists.X, lists.y, qid=lists.qid)
    model.prior_scale_ = 1.0
    with pytest.raises(ValueError, match="prior must not be 'identity' but for a Cross"):
        model.save(tmp_path / "model")


def test_a_fit_forgets_the_one_before(tmp_path):
    X, y, qid = make_ranking(20, 6, 4, random_state=0)
    X[:, :2] = X[::6, :2].repeat(6, axis=0)
    model = RankRLS(feature_map=Cross([0, 1], [2, 3]), prior="identity").fit(X, y, qid=qid)
    again = clone(model).set_params(prior=None).fit(X, y, qid=qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model").set_params(prior=None).fit(X, y, qid=qid)
    model.set_params(prior=None).fit(X, y, qid=qid)
    assert vars(model).keys() == vars(loaded).keys() == vars(again).keys()
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").prior is None
    search = RankRLSCV(keep_covariance=True).fit(X, y, qid=qid)
    search.set_params(keep_covariance=False).fit(X, y, qid=qid)
    assert vars(search).keys() == vars(clone(search).fit(X, y, qid=qid)).keys()
