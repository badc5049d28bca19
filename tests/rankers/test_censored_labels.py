"""Labels that may be censored: sums over pairs that are never listed, beside a list of them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st

import pairgram
from pairgram import Pairgram, Preferences, RankRLS, RankRLSCV, RankSVM


def made(seed, n_rows, n_lists, n_columns=3):
    """Return rows, bounds and ids, with ties, infinite bounds, and rows in no pair."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) + 50.0 * rng.normal(size=n_columns)
    low = rng.integers(0, 6, n_rows).astype(float)
    high = low + rng.choice([0.0, 0.0, 1.0, 2.0, np.inf], n_rows)
    low = np.where(rng.random(n_rows) < 0.2, -np.inf, low)
    high = np.where(np.isinf(low) & np.isinf(high), 3.0, high)
    return X, low, high, rng.integers(0, n_lists, n_rows)


def pairs_of(low, high, qid):
    """Return the winners, losers and margins of all pairs, by a loop."""
    found = []
    for i in range(len(low)):
        for j in range(len(low)):
            if i == j or qid[i] != qid[j]:
                continue
            tie = low[i] == high[i] == low[j] == high[j]
            if low[i] > high[j] or (tie and i < j):
                found.append((i, j, low[i] - high[j]))
    winner, loser, margin = (np.array(part) for part in zip(*found, strict=True))
    return winner, loser, margin


def ridge(X, pairs, alpha, offset=None):
    """Return the weights of least squares on differences that are written out."""
    winner, loser, margin = pairs
    if offset is not None:
        margin = margin - (offset[winner] - offset[loser])
    Z = X[winner] - X[loser]
    return np.linalg.solve(Z.T @ Z + alpha * np.eye(X.shape[1]), Z.T @ margin)


def value(name, pairs, scores):
    """Return the metric of pairs and the scores of their rows."""
    winner, loser, margin = pairs
    difference = scores[winner] - scores[loser]
    if name == "squared_error":
        return np.mean((margin - difference) ** 2)
    return np.mean((np.sign(difference[margin > 0]) + 1) / 2)


@given(st.integers(0, 10**6), st.integers(4, 40), st.integers(1, 3), st.booleans())
@settings(max_examples=80, deadline=None)
def test_weights(seed, n_rows, n_lists, started):
    X, low, high, qid = made(seed, n_rows, n_lists)
    try:
        pairs = pairs_of(low, high, qid)
    except ValueError:  # no pair
        return
    offset = np.random.default_rng(seed).normal(size=n_rows) if started else None
    expected = ridge(X, pairs, 0.7, offset)
    y = Preferences.from_intervals(low, high, qid)
    assert y.n_pairs == len(pairs[0])
    np.testing.assert_array_equal(
        y.counts(n_rows), np.bincount(np.concatenate(pairs[:2]), minlength=n_rows)
    )
    found = RankRLS(0.7).fit(X, y, offset=offset)
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-9, atol=1e-11)
    assert "_listed" not in vars(y)
    sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 20, X, 0.0))
    of_sparse = RankRLS(0.7).fit(sparse, y, offset=offset).coef_
    np.testing.assert_allclose(
        of_sparse, ridge(sparse.toarray(), pairs, 0.7, offset), rtol=1e-7, atol=1e-9
    )


def test_sums_are_those_of_the_list(set_limits):
    X, low, high, qid = made(0, 200, 4, 40)
    X[:, 3], X[:, 5] = 7.0, qid  # which vary in no pair
    y = Preferences.from_intervals(low, high, qid)
    listed = Preferences(y.winner, y.loser, margin=y.margin, groups=y.groups)
    found, expected = (Pairgram.from_rows(X, one) for one in (y, listed))
    np.testing.assert_allclose(found.G, expected.G, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(found.g, expected.g, rtol=1e-10, atol=1e-8)
    assert found.pair_weight == expected.pair_weight
    assert not found.G[[3, 5]].any() and not found.G[:, [3, 5]].any()
    for of_many in ({"kernel": "rbf", "gamma": 0.1}, {"scale": True}, {"positive": True}):
        models = (RankRLS(2.0, **of_many).fit(X[:, :3], one) for one in (y, listed))
        np.testing.assert_allclose(*(m.predict(X[:, :3]) for m in models), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_compiled_pairs(n_threads):
    X, low, high, qid = made(1, 300, 3, 40)
    y = Preferences.from_intervals(low, high, qid)
    winner, loser, margin = pairs_of(low, high, qid)
    A = np.zeros((len(winner), 300))
    A[np.arange(len(winner)), winner], A[np.arange(len(winner)), loser] = 1.0, -1.0
    np.testing.assert_allclose(y.pairs.multiply(X, n_threads), A.T @ (A @ X), atol=1e-8)
    scores = np.ascontiguousarray(np.round(X[:, :5].T))
    better = np.sign(A @ scores.T)[margin > 0].T / 2 + 0.5
    lists = y.lists.index()[winner[margin > 0]]
    expected = [np.bincount(lists, one, minlength=y.lists.n_queries) for one in better]
    np.testing.assert_array_equal(y.pairs.concordant(scores, n_threads), expected)
    low, high = (np.where(np.isfinite(bound), bound, 0.0) - scores[0] for bound in (low, high))
    errors = low[winner] - high[loser]
    pull, squares = y.pairs.pull(low, high)
    np.testing.assert_allclose(pull, A.T @ errors, atol=1e-8)
    lists = np.bincount(y.lists.index()[winner], errors**2)
    np.testing.assert_allclose(squares, lists)


def test_many_lists_are_judged_by_any_number_of_threads():
    """Lists that are longer than a task's share, and short ones that are judged together."""
    sizes = [3, 4500, 1, 700, 2000, 1500, 9, 5000, 40]
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    low = rng.integers(0, 50, len(qid)).astype(float)
    high = np.where(rng.random(len(qid)) < 0.3, np.inf, low)
    y = Preferences.from_intervals(low, high, qid)
    scores = np.round(rng.normal(size=(2, len(qid))), 1)
    expected = np.zeros((2, len(sizes)))
    for list_, model in np.ndindex(len(sizes), 2):
        own = y.lists.index() == list_
        above = low[own, None] > high[own]
        difference = scores[model, own, None] - scores[model, own]
        expected[model, list_] = (np.sign(difference) / 2 + 0.5)[above].sum()
    for n_threads in (1, 2, 3):
        np.testing.assert_array_equal(y.pairs.concordant(scores, n_threads), expected)
    for loss in ("squared_hinge", "squared"):
        found = set()
        for n_threads in (1, 2, 3):
            of_pairs = y.loss(len(qid), loss)
            value, gradient = of_pairs.set_scores(scores[0], n_threads)
            product = of_pairs.product(scores[1], n_threads)
            found.add((value, gradient.tobytes(), product.tobytes()))
        assert len(found) == 1


@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
@pytest.mark.parametrize("started", [False, True])
def test_every_list_is_held_out(scoring, started):
    X, low, high, qid = made(2, 90, 6)
    offset = np.random.default_rng(0).normal(size=90) if started else None
    y = Preferences.from_intervals(low, high, qid)
    alphas = np.array([0.1, 1.0, 100.0])
    search = RankRLSCV(alphas, scoring=scoring, store_held_out=True).fit(X, y, offset=offset)
    assert search.cv_ == "leave-group-out"
    every = pairs_of(low, high, qid)
    for alpha, found in zip(alphas, search.cv_results_["mean_test_score"], strict=True):
        scores = np.zeros(90)
        for one in np.unique(qid):
            train = [part[qid[every[0]] != one] for part in every]
            scores[qid == one] = (X @ ridge(X, train, alpha, offset))[qid == one]
        if started:
            scores += offset
        np.testing.assert_allclose(found, value(scoring, every, scores), rtol=1e-9)
        if alpha == search.alpha_ and not started:
            centred = [(one - one.mean()) for q in set(qid) for one in (scores[qid == q],)]
            kept = [(o - o.mean()) for q in set(qid) for o in (search.held_out_[qid == q],)]
            np.testing.assert_allclose(np.hstack(kept), np.hstack(centred), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
@pytest.mark.parametrize("setting", [{}, {"positive": True}])
def test_folds_of_rows(scoring, setting):
    X, low, high, _ = made(3, 80, 1)
    y = Preferences.from_intervals(low, high)
    model = RankRLSCV([1.0, 10.0], scoring=scoring, **setting).fit(X, y)
    assert model.cv_ == "5 splits of rows"
    folds = np.arange(80) % 4
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
    search = RankRLSCV([1.0, 10.0], scoring=scoring, cv=splits, **setting).fit(X, y)
    for alpha, found in zip((1.0, 10.0), search.cv_results_["mean_test_score"], strict=True):
        total = weight = 0.0
        for train, test in splits:
            kept = Preferences.from_intervals(low[train], high[train])
            scores = RankRLS(alpha, **setting).fit(X[train], kept).predict(X[test])
            pairs = pairs_of(low[test], high[test], np.zeros(len(test)))
            n = (pairs[2] > 0).sum() if scoring == "accuracy" else len(pairs[2])
            total += n * value(scoring, pairs, scores)
            weight += n
        np.testing.assert_allclose(found, total / weight, rtol=1e-7)


def test_many_rows_without_a_list(set_limits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    label = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=20_000)
    high = np.where(rng.random(20_000) < 0.3, np.inf, label)
    y = Preferences.from_intervals(label, high)
    assert y.n_pairs > 10**8
    set_limits(available_memory=1e9, unasked_bytes=0)
    weights = RankRLSCV().fit(X, y).coef_
    # Least squares wants differences to be the margins, so it shrinks those of censored rows.
    np.testing.assert_allclose(weights / weights[0], [1, -2, 0.5, 0], atol=0.1)
    assert 0.7 < weights[0] < 0.97
    assert RankRLS().fit(X, y).score(X, y) > 0.75
    assert pairgram.evaluate(["accuracy"], y, np.zeros(20_000)) == {"accuracy": 0.5}
    hinge = RankSVM(1e-6).fit(X, y).coef_  # which asks for differences of the margins at least
    np.testing.assert_allclose(hinge / hinge[0], [1, -2, 0.5, 0], atol=0.05)
    assert hinge[0] > 1
    with pytest.raises(MemoryError, match="comparisons of 20000 rows"):
        _ = y.winner


def test_copies_and_text():
    y = Preferences.from_intervals([3.0, 10.0, 12.0, 3.0], [3.0, np.inf, 12.0, 3.0], [1, 1, 1, 1])
    for same in (y, copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        assert (
            repr(same) == "Preferences of 5 comparisons between 4 rows, 1 of them ties, in 1 groups"
        )
        assert same.winner.tolist() == [0, 1, 1, 2, 2] and same.loser.tolist() == [3, 0, 3, 0, 3]
    bounds = np.array([[3.0, 10.0, 12.0], [3.0, np.inf, 12.0]])
    y = Preferences.from_intervals(*bounds)
    bounds[:] = 0.0  # their owner may use them for something else
    assert list(zip(y.winner, y.loser, y.margin, strict=True)) == [(1, 0, 7.0), (2, 0, 9.0)]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"cv": "leave-item-out"}, "cv must be a number of folds.*'leave-group-out'.*got 'leave-i"),
        ({"cv": "leave-group-out"}, "needs two queries with comparisons, got 1"),
        ({"scoring": "log_loss"}, "needs probabilities"),
        ({"cv": [([0, 1, 2], [3, 4, 5])]}, "no pair of held-out rows to judge"),
        ({"cv": [([3, 4, 5], [0, 1, 2])]}, "split 0"),
    ],
)
def test_refused_searches(setting, message):
    low = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    y = Preferences.from_intervals(low, np.where(low == 0, 9.0, low))
    with pytest.raises(ValueError, match=message):
        RankRLSCV(**setting).fit(np.random.default_rng(0).normal(size=(6, 2)), y)


def test_refused_rows_and_ties():
    X = np.random.default_rng(0).normal(size=(3, 2))
    with pytest.raises(
        ValueError, match=r"^lower and upper must have an interval for each of the 3"
    ):
        RankRLS().fit(X, Preferences.from_intervals([0.0, 1.0], [0.0, 1.0]))
    ties = Preferences.from_intervals([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="counts no comparison: all are ties"):
        RankRLSCV().fit(X, ties)
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        RankRLS().fit(np.full((3, 2), np.nan), ties)


def test_evaluate():
    X, low, high, qid = made(4, 60, 2)
    y = Preferences.from_intervals(low, high, qid)
    found = pairgram.evaluate(["accuracy", "squared_error"], y, X[:, 0])
    every = pairs_of(low, high, qid)
    for name, one in found.items():
        np.testing.assert_allclose(one, value(name, every, X[:, 0]))
    several = pairgram.evaluate(["accuracy", "log_loss"], y, X[:, :2].T)
    listed = pairgram.evaluate(["accuracy", "log_loss"], y.listed(), X[:, :2].T)
    for name, of_models in several.items():
        np.testing.assert_allclose(of_models, listed[name])


def test_refused_arguments_of_compiled_pairs():
    offsets, two = np.array([0, 2]), np.zeros(2)
    make = pairgram._core.IntervalPairs
    with pytest.raises(ValueError, match="upper must be 1-d, one per row"):
        make(offsets, None, two, np.zeros(3))
    with pytest.raises(ValueError, match="lower must not be NaN"):
        make(offsets, None, np.full(2, np.nan), two)
    pairs = make(offsets, None, two, two)
    for call in (
        lambda: pairs.multiply(np.zeros((3, 1)), 1),
        lambda: pairs.pull(two, np.zeros(3)),
        lambda: pairs.concordant(np.zeros((1, 3)), 1),
        lambda: pairs.concordant(np.full((1, 2), np.nan), 1),
    ):
        with pytest.raises(ValueError, match="must"):
            call()


@pytest.mark.parametrize("n_lists", [1, 4])
def test_auto_ranker_lists_no_pair(n_lists):
    X, low, high, qid = made(5, 60, n_lists)
    y = Preferences.from_intervals(low, high, qid)
    model = pairgram.AutoRanker(time_budget=30, random_state=0).fit(X, y)
    assert "_listed" not in vars(y)
    search = RankRLSCV(store_held_out=True).fit(X, y)
    assert model.best_score_ >= search.best_score_
    table = search.per_query_
    if n_lists == 1:
        assert len(table["accuracy"]) == 5
        return
    assert sorted(table["qid"]) == [0, 1, 2, 3]
    for one, found in zip(table["qid"], table["accuracy"], strict=True):
        own = qid == one
        pairs = pairs_of(low[own], high[own], qid[own])
        np.testing.assert_allclose(found, value("accuracy", pairs, search.held_out_[own]))


@pytest.mark.parametrize("scoring", ["accuracy", "squared_error"])
@pytest.mark.parametrize("censored", [(True, True), (True, False), (False, True)])
def test_a_validation_set_is_judged_by_its_own_comparisons(scoring, censored):
    X, low, high, qid = made(7, 60, 4)
    y = Preferences.from_intervals(low, high, qid)
    own = [np.flatnonzero(qid < 2), np.flatnonzero(qid >= 2)]
    train, held = (Preferences.from_intervals(low[one], high[one], qid[one]) for one in own)
    train, held = (
        labels if of_rows else labels.listed()
        for labels, of_rows in zip((train, held), censored, strict=True)
    )
    assert y.n_pairs == train.n_pairs + held.n_pairs
    search = RankRLSCV([1.0, 10.0], scoring=scoring)
    search.fit(X[own[0]], train, validation=(X[own[1]], held))
    assert search.cv_ == "validation set"
    for alpha, found in zip((1.0, 10.0), search.cv_results_["mean_test_score"], strict=True):
        scores = RankRLS(alpha).fit(X[own[0]], train).predict(X[own[1]])
        pairs = held.listed() if censored[1] else held
        expected = pairgram.evaluate([scoring], pairs, scores)[scoring]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
@pytest.mark.parametrize("n_threads", [1, 3])
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_loss_without_a_list(loss, n_threads, seed, n_rows, n_lists):
    _, low, high, qid = made(seed, n_rows, n_lists)
    try:
        y = Preferences.from_intervals(low, high, qid)
    except ValueError:  # no pair
        return
    rng = np.random.default_rng(seed)
    found, expected = (one.loss(n_rows, loss) for one in (y, y.listed()))
    for scale in (0.0, 0.5, 5.0):
        scores = 1e3 + np.round(scale * rng.normal(size=n_rows), rng.integers(0, 9))
        value, gradient = found.set_scores(scores, n_threads)
        of_list, slopes = expected.set_scores(scores)
        np.testing.assert_allclose(value, of_list, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-8)
        tied = len(np.unique(scores)) < n_rows  # where the curve of a tie jumps
        u = 1e3 + rng.normal(size=n_rows)
        if not tied:
            curve = found.product(u, n_threads)
            np.testing.assert_allclose(curve, expected.product(u), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("setting", [{}, {"loss": "squared"}, {"feature_map": "nodes"}])
@pytest.mark.parametrize("started", [False, True])
def test_rank_svm_lists_no_pair(setting, started):
    X, low, high, qid = made(8, 80, 3)
    offset = np.random.default_rng(0).normal(size=80) if started else None
    if setting.get("feature_map"):
        setting = {"feature_map": pairgram.RandomNodes(5, random_state=0)}
    y = Preferences.from_intervals(low, high, qid)
    found = RankSVM(0.01, tol=1e-10, **setting).fit(X, y, offset=offset)
    assert "_listed" not in vars(y)
    expected = RankSVM(0.01, tol=1e-10, **setting).fit(X, y.listed(), offset=offset)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-8)


def test_rank_svm_of_wide_sparse_rows_lists_no_pair(set_limits):
    set_limits(widest_gram=10)
    X = scipy.sparse.random_array((60, 30), density=0.2, random_state=0, format="csr")
    _, low, high, qid = made(9, 60, 2)
    y = Preferences.from_intervals(low, high, qid)
    found = RankSVM(0.1, tol=1e-10).fit(X, y)
    assert "_listed" not in vars(y)
    expected = RankSVM(0.1, tol=1e-10).fit(X, y.listed())
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_lists", [1, 6])
def test_rank_svm_holds_rows_out(n_lists):
    X, low, high, qid = made(10, 90, n_lists)
    y = Preferences.from_intervals(low, high, qid)
    folds = (qid if n_lists > 1 else np.arange(90)) % 3
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    search = pairgram.RankSVMCV([0.01, 1.0], cv=splits, tol=1e-9).fit(X, y)
    assert "_listed" not in vars(y)
    for C, found in zip((0.01, 1.0), search.cv_results_["mean_test_score"], strict=True):
        right = n = 0.0
        for train, test in splits:
            own = Preferences.from_intervals(low[train], high[train], qid[train])
            scores = RankSVM(C, tol=1e-9).fit(X[train], own).predict(X[test])
            pairs = pairs_of(low[test], high[test], qid[test])
            n_judged = (pairs[2] > 0).sum()
            right += n_judged * value("accuracy", pairs, scores)
            n += n_judged
        np.testing.assert_allclose(found, right / n, rtol=1e-9)
    twice = [(np.repeat(train, 2), test) for train, test in splits]
    with pytest.raises(ValueError, match="must train on a row once"):
        pairgram.RankSVMCV(cv=twice).fit(X, y)


def test_refused_losses_of_compiled_pairs():
    pairs = Preferences.from_intervals([1.0, 2.0], [1.0, 2.0]).pairs
    for low, high, loss, message in (
        (np.zeros(3), np.zeros(2), "squared", "low must be 1-d"),
        (np.zeros(2), np.zeros(3), "squared", "high must be 1-d"),
        (np.zeros(2), np.array([0, np.inf]), "squared", "bounds must be finite"),
        (np.zeros(2), np.zeros(2), "logistic", "must not be logistic"),
    ):
        with pytest.raises(ValueError, match=message):
            pairgram._core.IntervalLoss(pairs, low, high, loss=loss)
    y = Preferences.from_intervals([1.0, 3.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="margin must be 1, or 0 for a tie, with loss='logistic'"):
        RankSVM(loss="logistic").fit(np.eye(2), y)


def test_held_out_scores_have_the_offset():
    X, low, high, qid = made(0, 40, 4)
    y, offset = Preferences.from_intervals(low, high, qid), np.arange(40.0)
    valid = (X, y, None, offset)
    model = RankRLSCV([1.0], store_held_out=True).fit(X, y, offset=offset, validation=valid)
    np.testing.assert_allclose(model.held_out_, model.predict(X, offset=offset), rtol=1e-10)


def test_statistics_of_censored_labels_have_no_likelihood(tmp_path):
    y = Preferences.from_intervals([3.0, 10.0, 12.0, 1.0], [3.0, np.inf, 12.0, 1.0])
    X = np.random.default_rng(0).normal(size=(4, 2))
    total = Pairgram.from_rows(X, y)
    assert total.n_rows == y.n_pairs
    total.save(tmp_path / "sums")
    labels = Pairgram.from_rows(X, [0, 1, 2, 3], qid=[0] * 4)
    for sums in (total, Pairgram.load(tmp_path / "sums"), labels + 2.0 * total):
        with pytest.raises(ValueError, match="keep_covariance must be False for censored labels"):
            RankRLS.from_pairgram(sums, keep_covariance=True)
        with pytest.raises(ValueError, match="'evidence' for censored labels"):
            RankRLSCV.from_pairgrams([sums], [0.1, 1.0], scoring="evidence")
