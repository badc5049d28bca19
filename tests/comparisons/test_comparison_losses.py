"""RankSVM on comparisons, and its logistic loss: minima that SciPy finds of losses written out."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import pairgram as pg
from axes import every
from parts.support import on_threads
from tests import reference_comparisons as reference

LOSSES = ("squared_hinge", "squared", "logistic")


def problem(seed, n_items=15, n_pairs=200, n_features=4, margins=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    truth = rng.normal(size=n_features)
    a = rng.integers(0, n_items, n_pairs)
    b = (a + rng.integers(1, n_items, n_pairs)) % n_items
    wins = rng.random(n_pairs) < 1 / (1 + np.exp(-(X[a] - X[b]) @ truth))
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    margin = rng.choice(margins, n_pairs, p=[0.2] + [0.8 / (len(margins) - 1)] * (len(margins) - 1))
    return X, winner, loser, margin, rng.uniform(0.0, 2.0, n_pairs)


def loss_of(name, margin, d):
    one = {
        "squared_hinge": lambda m, d: np.maximum(0, m - d) ** 2,
        "squared": lambda m, d: (m - d) ** 2,
        "logistic": lambda m, d: np.logaddexp(0, -d),
    }[name]
    return np.where(margin == 0, (one(0, d) + one(0, -d)) / 2, one(margin, d))


def minimum(name, Z, margin, weight, C):
    def objective(w):
        return 0.5 * w @ w + C * weight @ loss_of(name, margin, Z @ w)

    found = scipy.optimize.minimize(objective, np.zeros(Z.shape[1]), tol=1e-14)
    return found.x, objective


@every(loss=LOSSES, make=[np.asarray, scipy.sparse.csr_array, np.float32])
def test_the_minimum(loss, make):
    margins = (0.0, 1.0) if loss == "logistic" else (0.0, 0.5, 2.0)
    X, winner, loser, margin, weight = problem(1, margins=margins)
    X = make(X)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    model = pg.RankSVM(0.7, loss=loss, tol=1e-10).fit(X, y)
    Z = reference.written_out(X, winner, loser)
    expected, objective = minimum(loss, Z, margin, weight, 0.7)
    np.testing.assert_allclose(model.coef_, expected, atol=2e-6)
    assert objective(model.coef_) <= objective(expected) * (1 + 1e-13)
    np.testing.assert_allclose(model.history_["objective"][-1], objective(model.coef_), rtol=1e-12)


def test_the_largest_scores_do_not_overflow():
    X = np.array([[0.0], [1e4], [-1e4]])
    model = pg.RankSVM(1e4, loss="logistic").fit(X, pg.Preferences([1, 0, 2], [0, 2, 1]))
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(X)).all()


def test_graded_labels():
    X, y, qid = pg.make_ranking(15, 9, 4, random_state=0)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, len(y))
    model = pg.RankSVM(0.1, loss="logistic", tol=1e-10).fit(X, y, qid=qid, sample_weight=weight)
    pairs = [
        (i, j)
        for query in np.unique(qid)
        for i in np.flatnonzero(qid == query)
        for j in np.flatnonzero(qid == query)
        if y[i] > y[j]
    ]
    winner, loser = np.array(pairs).T
    given = pg.Preferences(winner, loser, weight=weight[winner] * weight[loser])
    np.testing.assert_allclose(
        pg.RankSVM(0.1, loss="logistic", tol=1e-10).fit(X, given).coef_, model.coef_, rtol=1e-8
    )
    one, three = on_threads((1, 3), lambda: pg.RankSVM(0.1, loss="logistic").fit(X, y, qid=qid))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    search = pg.RankSVMCV(loss="logistic", scoring="ndcg@10").fit(X, y, qid=qid)
    assert search.best_score_ > 0.5


def test_one_hot_rows_are_bradley_terry():
    rng = np.random.default_rng(2)
    skill = np.sort(rng.normal(size=6))
    a, b = rng.integers(0, 6, 4000), rng.integers(0, 6, 4000)
    a, b = a[a != b], b[a != b]
    wins = rng.random(len(a)) < 1 / (1 + np.exp(skill[b] - skill[a]))
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    model = pg.RankSVM(1e6, loss="logistic", tol=1e-9).fit(
        scipy.sparse.eye_array(6, format="csr"), pg.Preferences(winner, loser)
    )
    # The maximum likelihood: every item wins as often as is expected of it.
    scores = model.predict(np.eye(6))
    expected = np.zeros(6)
    for i, j in zip(winner, loser, strict=True):
        p = 1 / (1 + np.exp(scores[j] - scores[i]))
        expected[i] += p
        expected[j] += 1 - p
    np.testing.assert_allclose(expected, np.bincount(winner, minlength=6), rtol=1e-5)
    np.testing.assert_allclose(scores - scores.mean(), skill - skill.mean(), atol=0.25)


@pytest.mark.parametrize("loss", LOSSES)
def test_held_out_scores_are_those_of_refits(loss):
    X, winner, loser, margin, weight = problem(3)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    every = np.arange(200)
    splits = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 3)]
    scoring = "log_loss" if loss == "logistic" else "squared_error"
    options = {"loss": loss, "tol": 1e-9}
    search = pg.RankSVMCV([0.1, 2.0], cv=splits, scoring=scoring, **options).fit(X, y)
    for number, (train, test) in enumerate(splits):
        part = pg.Preferences(
            winner[train], loser[train], margin=margin[train], weight=weight[train]
        )
        held = pg.Preferences(winner[test], loser[test], margin=margin[test], weight=weight[test])
        for k, C in enumerate((0.1, 2.0)):
            scores = pg.RankSVM(C, **options).fit(X, part).predict(X)
            expected = pg.evaluate(scoring, held, scores)[scoring]
            found = search.cv_results_[f"split{number}_test_score"][k]
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert search.cv_ == "3 splits of comparisons" and search.scoring_.name == scoring
    one = pg.RankSVM(search.C_, **options).fit(X, y)
    np.testing.assert_allclose(search.coef_, one.coef_, rtol=1e-6)


def test_a_feature_map_and_groups(free_memory):
    X, winner, loser, margin, _ = problem(4)
    y = pg.Preferences(winner, loser, margin=margin, groups=np.arange(200) % 7)
    search = pg.RankSVMCV(feature_map=[None, pg.RandomNodes(20, random_state=0)]).fit(X, y)
    assert search.cv_ == "5 splits of groups" and len(search.scores_) == 11
    nodes = pg.RandomNodes(20, random_state=0)
    model = pg.RankSVM(0.5, feature_map=nodes, tol=1e-8).fit(X, y)
    alone = pg.RankSVM(0.5, tol=1e-8).fit(nodes.fit_transform(X), y)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-6)
    free_memory(7 * len(X) * 20)
    again = pg.RankSVM(0.5, feature_map=nodes, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-6, atol=1e-7)


def test_the_same_bits_for_any_number_of_threads():
    X, winner, loser, margin, weight = problem(5, 3000, 60_000, 5)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    for loss in LOSSES:
        one, three = on_threads((1, 3), lambda name=loss: pg.RankSVM(0.01, loss=name).fit(X, y))
        np.testing.assert_array_equal(one.coef_, three.coef_)


def test_probabilities(tmp_path):
    X, winner, loser, *_ = problem(6)
    y = pg.Preferences(winner, loser)
    search = pg.RankSVMCV(loss="logistic", scoring="log_loss").fit(X, y)
    p = pg.probability_preferred(search, X[:5], X[5:10])
    scores = search.predict(X)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(scores[5:10] - scores[:5])), rtol=1e-12)
    np.testing.assert_allclose(p + pg.probability_preferred(search, X[5:10], X[:5]), 1.0)
    search.save(tmp_path / "model.safetensors")
    loaded = pg.load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(pg.probability_preferred(loaded, X[:5], X[5:10]), p)


def test_probabilities_are_those_of_the_loss_that_was_fitted(tmp_path):
    rows, comparisons = np.eye(3), pg.Preferences([0, 1, 2], [1, 2, 1])
    hinge, logistic = (pg.RankSVM(loss=loss) for loss in ("squared_hinge", "logistic"))
    hinge.fit(rows, comparisons).set_params(loss="logistic")
    with pytest.raises(
        ValueError, match="must be a RankSVM with loss='logistic', got loss='squared_hinge'"
    ):
        pg.probability_preferred(hinge, rows, rows)
    expected = pg.probability_preferred(logistic.fit(rows, comparisons), rows, rows[::-1])
    logistic.set_params(loss="squared_hinge")
    np.testing.assert_array_equal(pg.probability_preferred(logistic, rows, rows[::-1]), expected)
    for model in (hinge, logistic):
        model.save(tmp_path / f"{model._loss}.safetensors")
    loaded = pg.load_model(tmp_path / "logistic.safetensors")
    np.testing.assert_array_equal(pg.probability_preferred(loaded, rows, rows[::-1]), expected)
    with pytest.raises(
        ValueError, match="must be a RankSVM with loss='logistic', got loss='squared_hinge'"
    ):
        pg.probability_preferred(pg.load_model(tmp_path / "squared_hinge.safetensors"), rows, rows)


def test_probabilities_are_calibrated():
    """Over 20 seeds, bins of at least 10,000 held-out comparisons err by less than .03."""
    probabilities, outcomes = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, truth = rng.normal(size=(60, 8)), rng.normal(size=8) / 2
        a = rng.integers(0, 60, 7000)
        b = (a + rng.integers(1, 60, 7000)) % 60
        wins = rng.random(7000) < 1 / (1 + np.exp(-(X[a] - X[b]) @ truth))
        winner, loser = np.where(wins, a, b), np.where(wins, b, a)
        fitted = slice(0, 1000)
        model = pg.RankSVMCV(loss="logistic", scoring="log_loss")
        model.fit(X, pg.Preferences(winner[fitted], loser[fitted]))
        probabilities.append(pg.probability_preferred(model, X[a[1000:]], X[b[1000:]]))
        outcomes.append(wins[1000:])
    p, outcome = np.concatenate(probabilities), np.concatenate(outcomes)
    order = np.argsort(p)
    for part in np.array_split(order, len(p) // 10_000):
        assert len(part) >= 10_000
        assert abs(p[part].mean() - outcome[part].mean()) < 0.03
