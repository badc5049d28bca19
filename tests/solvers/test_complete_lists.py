"""Queries that share one list of things, in closed form, against fits to explicit products."""

import numpy as np
import pytest
from sklearn.base import clone

from pairgram import Cross, QueryKFold, RankRLS, RankRLSCV

N_QUERIES, N_THINGS, LEFT, RIGHT = 12, 9, 4, 5
CROSS = Cross(slice(0, LEFT), slice(LEFT, None), common_ridge=0.5)
N_FEATURES = (LEFT + 1) * RIGHT
ALPHAS = 10.0 ** np.arange(4, -3, -1)


class Lists:
    """People × things, all with all, in any order of the queries' rows."""

    def __init__(self, seed=0, dtype=np.float64, origin=1e3):
        rng = np.random.default_rng(seed)
        things = rng.normal(size=(N_THINGS, RIGHT))
        things[:, 0] += origin
        things[:, 4] = 2.0  # does not vary
        people = np.repeat(rng.normal(size=(N_QUERIES, LEFT)), N_THINGS, axis=0)
        # Rows of queries in turn; those of a query keep their order.
        self.qid = np.repeat(np.arange(N_QUERIES), N_THINGS)
        order = np.argsort(np.tile(np.arange(N_THINGS), N_QUERIES), kind="stable")
        self.X = np.hstack([people, np.tile(things, (N_QUERIES, 1))]).astype(dtype)[order]
        self.qid = self.qid[order]
        self.y = rng.integers(0, 4, len(self.qid)).astype(float)
        of_things, of_queries = rng.choice([0.0, 1.0, 2.5], N_THINGS), rng.choice([0.5, 3], 12)
        of_things[:2] = 1.0
        self.weight = (of_queries[:, None] * of_things).ravel()[order]
        self.query_weight = rng.choice([0.5, 1.0, 2.0], N_QUERIES)[self.qid]

    @property
    def products(self):
        u = np.hstack([np.full((len(self.X), 1), 2**0.5), self.X[:, :LEFT]])
        return (u[:, :, None] * self.X[:, None, LEFT:]).reshape(len(u), -1)


# No direct solution is taken. Steps end before the first, so that none is taken in silence.
CLOSED = {"direct_seconds": 0.0, "step_patience": np.inf, "gradient_steps": 0}


@pytest.fixture
def closed(set_limits):
    set_limits(**CLOSED)


@pytest.mark.parametrize("pairs", ["with_ties", None])
@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_every_ridge_and_every_query_held_out(closed, pairs, weighting, weighted, scale):
    lists = Lists(origin=0.0 if pairs is None else 1e3)
    weights = {"sample_weight": lists.weight, "query_weight": lists.query_weight}
    given = {"y": lists.y, "qid": lists.qid, **(weights if weighted else {})}
    settings = {"pairs": pairs, "weighting": weighting, "scale": scale}
    settings |= {"alphas": ALPHAS, "store_held_out": True}
    model = RankRLSCV(feature_map=CROSS, **settings).fit(lists.X, **given)
    other = RankRLSCV(**settings).fit(lists.products, **given)
    assert "split0_test_score" not in model.cv_results_
    largest = abs(other.coef_path_).max()
    np.testing.assert_allclose(model.coef_path_, other.coef_path_, rtol=0, atol=1e-9 * largest)
    np.testing.assert_allclose(model.scores_, other.scores_, atol=1e-9)
    assert model.alpha_ == other.alpha_
    centred = [
        one.held_out_ - np.bincount(lists.qid, one.held_out_)[lists.qid] / N_THINGS
        for one in (model, other)
    ]
    np.testing.assert_allclose(*centred, rtol=0, atol=1e-9 * max(1.0, abs(centred[1]).max()))
    one = RankRLS(1.0, pairs=pairs, weighting=weighting, scale=scale, feature_map=CROSS)
    np.testing.assert_allclose(
        one.fit(lists.X, **given).coef_, model.coef_path_[4], rtol=0, atol=1e-12 * largest
    )


@pytest.mark.filterwarnings("ignore:settings are chosen by")
@pytest.mark.parametrize("pairs", ["with_ties", None])
@pytest.mark.parametrize("common_ridge", [0.5, None])
@pytest.mark.parametrize("kind", ["plain", "weighted", "few queries", "few things"])
def test_what_starts_from_the_identity(limits_of, pairs, common_ridge, kind):
    """Against the direct way, which `test_identity.py` holds against systems written out."""
    lists = Lists(origin=0.0)
    cross = Cross(slice(0, 4), slice(4, 8), common_ridge=common_ridge)
    of_nobody = (lists.qid != 3).astype(float)  # a query without weight is judged all the same
    weights = {"sample_weight": lists.weight, "query_weight": lists.query_weight * of_nobody}
    rows = np.ones(len(lists.y), dtype=bool)
    if kind == "few queries":
        rows = lists.qid < 3  # the identity has a part that no query sees
    elif kind == "few things":
        rows = np.arange(len(rows)) // N_QUERIES < 4
    X, y, qid = lists.X[rows], lists.y[rows], lists.qid[rows]
    weights = weights if kind == "weighted" else {}
    settings = {"pairs": pairs, "feature_map": cross, "prior": "identity", "store_held_out": True}
    model = RankRLSCV(**settings)
    other = clone(model).fit(X, y, qid=qid, **weights)
    with limits_of(**CLOSED):
        model.fit(X, y, qid=qid, **weights)
    assert "split0_test_score" not in model.cv_results_
    np.testing.assert_allclose(model.alphas_, other.alphas_, rtol=1e-9)
    digits = other.alphas_ > 1e-8 * other.alphas_[4]  # of both ways
    coefs = [one.coef_path_[digits] for one in (model, other)]
    np.testing.assert_allclose(*coefs, rtol=0, atol=1e-9 * abs(coefs[1]).max())
    for alpha in other.alphas_[[0, 4, 12, 20]]:
        held = []
        for ways in (CLOSED, {}):
            with limits_of(**ways):
                model.set_params(alphas=[alpha]).fit(X, y, qid=qid, **weights)
            held.append(model.held_out_ - np.bincount(qid, model.held_out_)[qid] / sum(qid == 0))
        np.testing.assert_allclose(*held, rtol=0, atol=1e-9 * abs(held[1]).max())


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e3])
def test_held_out_scores_are_those_of_refits(limits_of, alpha):
    lists = Lists(seed=1)
    model = RankRLSCV([alpha], feature_map=CROSS, store_held_out=True)
    with limits_of(**CLOSED):
        found = model.fit(lists.X, lists.y, qid=lists.qid).held_out_
    for query in range(N_QUERIES):
        own = lists.qid == query
        refit = RankRLS(alpha, feature_map=CROSS)
        refit.fit(lists.X[~own], lists.y[~own], qid=lists.qid[~own])
        expected = refit.predict(lists.X[own])
        np.testing.assert_allclose(
            found[own] - found[own].mean(), expected - expected.mean(), rtol=0, atol=1e-10
        )


def test_results_have_the_same_bits_for_any_number_of_threads(closed):
    lists = Lists(dtype=np.float32)
    one, three = (
        RankRLSCV(feature_map=CROSS, store_held_out=True, n_threads=n).fit(
            lists.X, lists.y, qid=lists.qid
        )
        for n in (1, 3)
    )
    np.testing.assert_array_equal(one.coef_path_, three.coef_path_)
    np.testing.assert_array_equal(one.held_out_, three.held_out_)


def test_a_validation_set_judges_them(limits_of):
    lists = Lists()
    rng = np.random.default_rng(1)
    held = rng.normal(size=(40, LEFT + RIGHT)), rng.integers(0, 3, 40).astype(float)
    held += (np.arange(40) // 8,)
    model = RankRLSCV(ALPHAS, feature_map=CROSS)
    with limits_of(**CLOSED):
        found = model.fit(lists.X, lists.y, qid=lists.qid, validation=held).scores_
    expected = model.fit(lists.X, lists.y, qid=lists.qid, validation=held).scores_
    np.testing.assert_allclose(found, expected, atol=1e-9)


def differ_in_one_value(lists):
    lists.X[7, LEFT] += 1e-9
    return {}


def differ_on_the_left(lists):
    lists.X[7, 0] += 1e-9
    return {}


def other_weights(lists):
    weight = lists.weight.copy()
    weight[np.flatnonzero(weight)[3]] *= 1.001
    return {"sample_weight": weight}


def other_sizes(lists):
    lists.X, lists.y, lists.qid = lists.X[:-1], lists.y[:-1], lists.qid[:-1]
    return {}


@pytest.mark.parametrize(
    "change", [differ_in_one_value, differ_on_the_left, other_weights, other_sizes]
)
def test_lists_that_are_not_complete_take_steps(set_limits, change):
    lists = Lists(seed=2)
    given = change(lists)
    set_limits(direct_seconds=0.0, step_patience=np.inf)
    model = RankRLSCV(ALPHAS, feature_map=CROSS).fit(lists.X, lists.y, qid=lists.qid, **given)
    assert "split0_test_score" in model.cv_results_  # folds, not queries


@pytest.mark.parametrize(
    "settings",
    [{"pairs": "without_ties"}, {"cv": QueryKFold(3)}, {"pairs": ["with_ties", "without_ties"]}],
)
def test_other_pairs_and_folds_take_steps(set_limits, settings):
    lists = Lists(seed=2)
    model = RankRLSCV(ALPHAS, feature_map=CROSS, **settings)
    direct = {"cv": QueryKFold(5), **settings}
    expected = RankRLSCV(ALPHAS, feature_map=CROSS, **direct).fit(lists.X, lists.y, qid=lists.qid)
    set_limits(direct_seconds=0.0, step_patience=np.inf)
    model.fit(lists.X, lists.y, qid=lists.qid)
    assert "split0_test_score" in model.cv_results_
    if "cv" in settings:
        np.testing.assert_allclose(model.scores_, expected.scores_, atol=1e-4)


@pytest.mark.parametrize("column", [0, LEFT])
def test_infinity_is_told(closed, column):
    lists = Lists()
    lists.X[:, column] = np.inf
    with pytest.raises(ValueError, match="X contains infinity"):
        RankRLS(feature_map=CROSS).fit(lists.X, lists.y, qid=lists.qid)
