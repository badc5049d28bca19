"""Statistics of comparisons, compiled sums and losses of them, and their metrics."""

import numpy as np
import pytest
import scipy.sparse

import pairgram as pg
from pairgram import _core
from pairgram.comparisons.compared_rows import connected
from problems import OfScores
from tests import reference_comparisons as reference


def problem(seed, n_items=12, n_pairs=60, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    winner = rng.integers(0, n_items, n_pairs)
    loser = (winner + rng.integers(1, n_items, n_pairs)) % n_items
    return X, winner, loser, rng.exponential(size=n_pairs), rng.uniform(0.5, 2.0, n_pairs)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_statistics_add_and_subtract(make):
    X, winner, loser, margin, weight = problem(1)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    Z = reference.written_out(X, winner, loser)
    total = pg.Pairgram.from_rows(make(X), y)
    np.testing.assert_allclose(total.G, (Z.T * weight) @ Z, rtol=1e-10)
    np.testing.assert_allclose(total.g, Z.T @ (weight * margin), rtol=1e-10)
    np.testing.assert_allclose(total.yy, weight @ margin**2)
    np.testing.assert_allclose(total.pair_weight, 2 * weight.sum())
    model = pg.RankRLS.from_pairgram(total, 2.0)
    np.testing.assert_allclose(model.coef_, pg.RankRLS(2.0).fit(X, y).coef_, rtol=1e-9)
    parts = [
        pg.Preferences(winner[some], loser[some], margin=margin[some], weight=weight[some])
        for some in (slice(0, 40), slice(40, 60))
    ]
    both = pg.Pairgram.from_rows(make(X), parts[0]).update(make(X), parts[1])
    np.testing.assert_allclose(both.G, total.G, rtol=1e-10)
    rest = both - pg.Pairgram.from_rows(make(X), parts[1])
    first = pg.Pairgram.from_rows(make(X), parts[0])
    np.testing.assert_allclose(rest.G, first.G, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(pg.Pairgram.from_bytes(total.to_bytes()).g, total.g)


def test_comparisons_add_to_lists():
    X, y, qid = pg.make_ranking(8, 10, 4, random_state=0)
    rows, winner, loser, margin, weight = problem(2)
    given = pg.Preferences(winner, loser, margin=margin, weight=weight)
    both = pg.Pairgram.from_rows(X, y, qid=qid, ids=None).update(rows, given)
    alone = pg.Pairgram.from_rows(X, y, qid=qid), pg.Pairgram.from_rows(rows, given)
    np.testing.assert_allclose(both.G, alone[0].G + alone[1].G)
    np.testing.assert_allclose(both.g, alone[0].g + alone[1].g)


def test_features_of_statistics():
    X, winner, loser, margin, _ = problem(3)
    y = pg.Preferences(winner, loser, margin=margin)
    nodes = pg.RandomNodes(7, random_state=0)
    total = pg.Pairgram.from_rows(X, y, feature_map=nodes)
    mapped = pg.Pairgram.from_rows(nodes.fit_transform(X), y)
    np.testing.assert_allclose(total.G, mapped.G)


def test_what_is_common_to_connected_items_cancels():
    X, winner, loser, margin, _ = problem(4, 40, 300)
    half = winner % 2 == loser % 2  # comparisons within the even items and within the odd ones
    winner, loser, margin = winner[half], loser[half], margin[half]
    far = X + np.where(np.arange(40) % 2, 1e9, -1e9)[:, None]
    y = pg.Preferences(winner, loser, margin=margin)
    Z = reference.written_out(far, winner, loser)
    np.testing.assert_allclose(pg.Pairgram.from_rows(far, y).G, Z.T @ Z, rtol=1e-12)


def test_compiled_comparisons():
    X, winner, loser, margin, weight = problem(5)
    pairs = _core.Comparisons(12, winner, loser, weight)
    Z = reference.written_out(X, winner, loser)
    A = np.eye(12)[winner] - np.eye(12)[loser]
    expected = np.column_stack([(A.T * weight) @ Z, A.T @ (weight * margin)])
    for n_threads in (1, 3):
        found = pairs.multiply(X, margin, n_threads)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert connected(6, np.array([0, 4]), np.array([2, 5])).tolist() == [0, 1, 0, 3, 4, 4]


@pytest.mark.parametrize("loss", ["squared_hinge", "squared", "logistic"])
def test_compiled_losses_have_their_derivatives(loss):
    _, winner, loser, _, weight = problem(8)
    margin = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    pairs = _core.Comparisons(12, winner, loser, weight)
    bound = OfScores(_core.ComparisonLoss(pairs, margin, loss=loss))
    rng = np.random.default_rng(0)
    scores, u = rng.normal(size=12), rng.normal(size=12)
    _, gradient = bound.set_scores(scores, 2)
    product = bound.product(u, 2)
    step = 1e-6
    above, below = bound.set_scores(scores + step * u), bound.set_scores(scores - step * u)
    np.testing.assert_allclose((above[0] - below[0]) / (2 * step), gradient @ u, rtol=1e-6)
    np.testing.assert_allclose((above[1] - below[1]) / (2 * step), product, atol=1e-6)


def test_metrics_of_comparisons():
    y = pg.Preferences([0, 1, 2, 0], [1, 2, 0, 2], margin=[1, 1, 1, 0], weight=[1, 2, 1, 1])
    scores = np.array([1.0, 1.0, 0.0])
    found = pg.evaluate(["accuracy", "squared_error", "log_loss"], y, scores)
    d = np.array([0.0, 1.0, -1.0, 1.0])
    assert found["accuracy"] == (0.5 + 2 + 0) / 4
    assert found["squared_error"] == pytest.approx((1 + 0 + 4 + 1) / 5)
    losses = np.logaddexp(0, -d)
    losses[3] = (np.logaddexp(0, -1.0) + np.logaddexp(0, 1.0)) / 2
    assert found["log_loss"] == pytest.approx(np.array([1, 2, 1, 1]) @ losses / 5)
    each = pg.evaluate("accuracy", y, scores, per_query=True)["accuracy"]
    np.testing.assert_array_equal(each, [0.5, 1.0, 0.0, np.nan])
    two = pg.evaluate("accuracy", y, np.stack([scores, -scores]))["accuracy"]
    np.testing.assert_allclose(two, [2.5 / 4, 1.5 / 4])
    model = pg.RankRLS().fit(np.eye(3), y)
    assert (
        model.score(np.eye(3), y)
        == pg.evaluate("accuracy", y, model.predict(np.eye(3)))["accuracy"]
    )


def test_updates_of_comparisons_are_no_queries():
    X, winner, loser, margin, weight = problem(5)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    total = pg.Pairgram().update(X, y).update(X, y).update(X, y)
    assert total.n_queries == 0 and total.n_rows == 3 * len(winner)
    model = pg.RankRLS.from_pairgram(total, 2.0)
    assert not model.uses_qid_
    assert not pg.RankRLSCV.from_pairgrams([pg.Pairgram.from_rows(X, y)] * 3).uses_qid_
    np.testing.assert_allclose(model.coef_, pg.RankRLS(2.0 / 3).fit(X, y).coef_, rtol=1e-9)
    labels = np.arange(12) % 3
    assert model.score(X, labels) == pytest.approx(
        pg.evaluate("ndcg@10", labels, model.predict(X))["ndcg@10"]
    )
    again = pg.Pairgram.from_bytes(total.to_bytes())
    assert again.n_queries == 0 and not pg.RankRLS.from_pairgram(again).uses_qid_
    assert (total - pg.Pairgram.from_rows(X, y)).n_rows == 2 * len(winner) and (
        0.5 * total
    ).n_queries == 0


@pytest.mark.parametrize("first", ["labels", "comparisons"])
def test_ids_are_checked_beside_comparisons(first):
    X, labels, qid = pg.make_ranking(8, 10, 4, random_state=0)
    rows, winner, loser, margin, weight = problem(2)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    total = pg.Pairgram()
    for step in (first, "labels" if first == "comparisons" else "comparisons"):
        total = total.update(X, labels, qid=qid) if step == "labels" else total.update(rows, y)
    assert total.n_queries == 8 and pg.RankRLS.from_pairgram(total).uses_qid_
    with pytest.raises(ValueError, match="qid"):
        total.update(X, labels, qid=qid)
    alone = pg.Pairgram.from_rows(X, labels, qid=qid), pg.Pairgram.from_rows(rows, y)
    np.testing.assert_allclose(total.G, sum(alone).G)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_comparisons_are_subtracted_part_by_part(make):
    X, winner, loser, margin, weight = problem(7, n_pairs=60)
    rows, parts = make(X), [slice(0, 10), slice(10, 30), slice(30, 60)]

    def of(part):
        named = {"margin": margin[part], "weight": weight[part]}
        return pg.Pairgram.from_rows(rows, pg.Preferences(winner[part], loser[part], **named))

    total = of(slice(0, 30)) + of(slice(30, 60))
    left = total - of(parts[0]) - of(parts[1])
    assert left.n_rows == 30
    np.testing.assert_allclose(left.G, of(parts[2]).G, atol=1e-9)
    np.testing.assert_allclose(left.g, of(parts[2]).g, atol=1e-9)
    labels = np.arange(len(X)) % 3
    both = total + pg.Pairgram.from_rows(rows, labels, qid=np.zeros(len(X)))
    both = both - of(parts[0]) - pg.Pairgram.from_rows(rows, labels, qid=np.zeros(len(X)))
    np.testing.assert_allclose(both.G, (of(parts[1]) + of(parts[2])).G, atol=1e-8)
    nothing = left - of(parts[2])
    assert nothing.n_rows == 0 and not nothing.G.any()
    single = pg.Pairgram.from_rows(X, labels, pairs=None)
    single = single - pg.Pairgram.from_rows(X[:5], labels[:5], pairs=None)
    rest = pg.Pairgram.from_rows(X[5:], labels[5:], pairs=None)
    np.testing.assert_allclose(single.G, rest.G, atol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_comparisons_in_which_features_vary_are_counted_and_subtracted_in_any_portions(make):
    rows = make(np.array([[0, 1.0], [0, 2], [0, 4], [1, 0]]))
    winner, loser, weight = np.array([1, 2, 3, 3]), np.array([0, 1, 0, 1]), np.array([1, 1, 1, 0])

    def of(part):
        pairs = pg.Preferences(winner[part], loser[part], weight=weight[part])
        return pg.Pairgram.from_rows(rows, pairs)

    labels = pg.Pairgram.from_rows(rows, [0, 1, 2, 3], qid=[0] * 4)
    both = labels + of([0, 1]) + of([2, 3])
    assert both.n_varying.tolist() == [2, 4]  # a comparison of weight 0 is none
    left = both - of([0, 1, 2, 3])
    assert left.n_varying.tolist() == [1, 1]
    np.testing.assert_allclose(left.G, labels.G, atol=1e-12)
    alike = pg.Pairgram.from_rows(rows[:3], [0, 1, 2], qid=[0] * 3) + of([0, 1, 2])
    assert not (alike - of([2])).G[0].any()  # the only pair in which the feature varied
