"""Least squares on comparisons: differences written out, and refits without what is held out."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st

import forms
import pairgram as pg
from axes import every
from parts.support import on_threads
from row_value import inputs_of, row_value
from tests import reference_comparisons as reference

WAYS = ("leave-comparison-out", "leave-item-out", "leave-group-out")


def problem(seed, n_items=12, n_pairs=60, n_features=4, ties=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, n_features))
    winner = rng.integers(0, n_items, n_pairs)
    loser = (winner + rng.integers(1, n_items, n_pairs)) % n_items
    margin = np.where(rng.random(n_pairs) < ties, 0.0, rng.exponential(size=n_pairs))
    weight = np.where(rng.random(n_pairs) < 0.1, 0.0, rng.uniform(0.5, 2.0, n_pairs))
    groups = rng.integers(0, 5, n_pairs)
    return X, winner, loser, margin, weight, groups


@every(
    shape=[(12, 4), (6, 20)],
    make=[np.asarray, scipy.sparse.csr_array, np.float32],
    form=["primal", "dual"],
)
def test_the_solution_of_differences_written_out(shape, make, form):
    X, winner, loser, margin, weight, _ = problem(1, shape[0], 60, shape[1])
    X = make(X)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    Z = reference.written_out(X, winner, loser)
    expected = reference.ridge(Z, margin, weight, 0.7)
    model = forms.RankRLS(0.7, form=form).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9, atol=1e-12)
    assert model.form_ == form and model.n_features_in_ == shape[1] and not model.uses_qid_
    rows = pg.RankRLS(0.7, pairs=None).fit(Z, margin, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, rows.coef_, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 40), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_any_comparisons(seed, n_items, n_pairs, n_features):
    X, winner, loser, margin, weight, _ = problem(seed, n_items, n_pairs, n_features)
    weight[0] = 1.0
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    expected = reference.ridge(reference.written_out(X, winner, loser), margin, weight, 0.5)
    for form in ("primal", "dual"):
        model = forms.RankRLS(0.5, form=form).fit(X, y)
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-10)


@every(
    way=WAYS,
    scoring=["accuracy", "squared_error"],
    make=[np.asarray, scipy.sparse.csr_array],
    form=["primal", "dual"],
)
def test_held_out_scores_are_those_of_refits(way, scoring, make, form):
    X, winner, loser, margin, weight, groups = problem(2)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight, groups=groups)
    alphas = np.array([30.0, 1.0, 1e-3])
    search = forms.RankRLSCV(alphas, cv=way, scoring=scoring, form=form)
    search.fit(make(X), y)
    Z = reference.written_out(X, winner, loser)
    folds = reference.folds_of(way, winner, loser, groups)
    expected = [reference.judged(scoring, Z, margin, weight, a, folds) for a in alphas]
    np.testing.assert_allclose(search.scores_, expected, rtol=1e-10)
    assert search.cv_ == way and search.form_ == form and search.scoring_.name == scoring
    held = np.zeros(len(winner))
    for test, scores in reference.refitted(Z, margin, weight, search.alpha_, folds):
        held[test] += scores / (2 if way == "leave-item-out" else 1)
    np.testing.assert_allclose(search.held_out_, held, atol=1e-10)
    one = forms.RankRLS(search.alpha_, form=form).fit(make(X), y)
    np.testing.assert_allclose(search.coef_, one.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"scale": True}, {"constraint": pg.Positive()}, {"form": "dual"}]
)
def test_splits_are_refits(options):
    X, winner, loser, margin, weight, _ = problem(3)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    every = np.arange(60)
    splits = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 4)]
    alphas = [3.0, 0.1]
    search = forms.RankRLSCV(alphas, cv=splits, scoring="squared_error", **options).fit(X, y)
    assert search.cv_ == "4 splits of comparisons"
    for number, (train, test) in enumerate(splits):
        part = pg.Preferences(
            winner[train], loser[train], margin=margin[train], weight=weight[train]
        )
        for k, alpha in enumerate(alphas):
            scores = forms.RankRLS(alpha, **options).fit(X, part).predict(X)
            errors = (margin[test] - (scores[winner[test]] - scores[loser[test]])) ** 2
            found = search.cv_results_[f"split{number}_test_score"][k]
            np.testing.assert_allclose(found, np.average(errors, weights=weight[test]), rtol=1e-8)


def test_folds_of_groups_and_splitters():
    from sklearn.model_selection import GroupKFold, KFold

    X, winner, loser, margin, _, groups = problem(4)
    y = pg.Preferences(winner, loser, margin=margin, groups=groups)
    by_groups = pg.RankRLSCV(cv=3, scoring="squared_error").fit(X, y)
    assert by_groups.cv_ == "3 splits of groups"
    assert pg.RankRLSCV(cv=GroupKFold(3)).fit(X, y).cv_ == "3 splits of groups"
    assert pg.RankRLSCV(cv=KFold(4)).fit(X, y).cv_ == "4 splits of groups"
    alone = pg.Preferences(winner, loser, margin=margin)
    for cv in (4, KFold(4)):
        assert pg.RankRLSCV(cv=cv).fit(X, alone).cv_ == "4 splits of comparisons"


def test_what_is_held_out_by_default():
    X, winner, loser, *_, groups = problem(5)
    assert (
        pg.RankRLSCV().fit(X, pg.Preferences(winner, loser, groups=groups)).cv_ == "leave-group-out"
    )
    assert pg.RankRLSCV().fit(X, pg.Preferences(winner, loser)).cv_ == "leave-item-out"
    for ids in (np.eye(12), scipy.sparse.eye_array(12, format="csr")):
        assert pg.RankRLSCV().fit(ids, pg.Preferences(winner, loser)).cv_ == "leave-comparison-out"
    both = np.hstack([X, np.eye(12)])
    assert pg.RankRLSCV().fit(both, pg.Preferences(winner, loser)).cv_ == "leave-comparison-out"
    once = pg.Preferences(np.arange(0, 12, 2), np.arange(1, 12, 2))
    assert pg.RankRLSCV().fit(X, once).cv_ == "leave-comparison-out"
    constrained = pg.RankRLSCV(constraint=pg.Positive()).fit(X, pg.Preferences(winner, loser))
    assert constrained.cv_ == "5 folds of items"
    star = pg.Preferences(np.zeros(11, dtype=int), np.arange(1, 12))
    assert pg.RankRLSCV(constraint=pg.Positive()).fit(X, star).cv_ == "5 splits of comparisons"


def test_comparisons_of_weight_0_do_not_choose_what_is_held_out():
    X = problem(5)[0]
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [0, 8]])
    absent = pg.Preferences(*pairs.T, weight=[1, 1, 1, 1, 0, 0])
    assert pg.RankRLSCV().fit(X, absent).cv_ == "leave-comparison-out"
    y, weight = pg.Preferences(*pairs[:5].T), [1, 1, 1, 1, 1, 0]
    one, same = (pg.RankRLSCV(cv="item-folds", scoring="squared_error") for _ in "ab")
    one.fit(X, y), same.fit(X, pg.Preferences(*pairs.T, weight=weight))
    np.testing.assert_allclose(one.scores_, same.scores_)


def test_column_weights():
    X, winner, loser, margin, weight, _ = problem(16)
    model = pg.RankRLS(0.5).fit(X, pg.Preferences(winner, loser, margin=margin, weight=weight))
    Z = reference.written_out(X, winner, loser)
    found = model.column_weights()
    order = found["column"]
    spread = np.sqrt(weight @ Z**2 / (2 * weight.sum()))
    np.testing.assert_allclose(found["spread"], spread[order], rtol=1e-10)
    G = (Z.T * weight) @ Z
    parts = model.coef_ * (G @ model.coef_)
    np.testing.assert_allclose(found["share"], (parts / parts.sum())[order], rtol=1e-10)
    svm = pg.RankSVM(0.5).fit(X, pg.Preferences(winner, loser, margin=margin, weight=weight))
    of_svm = svm.column_weights()
    np.testing.assert_allclose(of_svm["spread"], spread[of_svm["column"]], rtol=1e-10)


def held_by_hand(cv, winner, loser, groups):
    """Return the (training, test) comparisons of every split of groups or of items."""
    from sklearn.model_selection import KFold

    every = np.arange(len(winner))
    if cv == "item-folds":
        items, found = np.union1d(winner, loser), []
        for _, fold in KFold(5, shuffle=True, random_state=0).split(items):
            out = [np.isin(ends, items[fold]) for ends in (winner, loser)]
            test = np.concatenate([every[out[0]], every[out[1]]])
            found.append((every[~(out[0] | out[1])], test))
        return found
    days = np.unique(groups)
    numbers = range(1, len(days)) if cv == "forward" else [3, 4]
    return [(every[groups < days[t]], every[groups == days[t]]) for t in numbers]


@every(
    cv=["item-folds", "forward", "time"],
    options=[{}, {"form": "dual"}, {"constraint": pg.Positive()}, {"svm": True}],
    make=[np.asarray, scipy.sparse.csr_array],
)
def test_folds_of_items_and_of_days_are_refits(cv, options, make):
    from sklearn.model_selection import TimeSeriesSplit

    X, winner, loser, margin, weight, groups = problem(20)
    days = None if cv == "item-folds" else np.array(list("abcde"))[groups]
    y = pg.Preferences(winner, loser, margin=margin, weight=weight, groups=days)
    splits = held_by_hand(cv, winner, loser, groups)
    given = TimeSeriesSplit(2, test_size=1) if cv == "time" else cv
    named = {"cv": given, "scoring": "squared_error"}
    grid = [3.0, 0.1]
    if "svm" in options:
        search = pg.RankSVMCV(grid, loss="squared", tol=1e-10, **named).fit(make(X), y)
    else:
        search = forms.RankRLSCV(grid, **named, **options).fit(make(X), y)
    what = {"item-folds": "5 folds of items", "time": "2 splits of groups"}
    assert search.cv_ == what.get(cv, "4 splits of groups")
    held = {}
    for k, value in enumerate(grid):
        total = sums = 0.0
        held[value] = np.zeros(60), np.zeros(60)
        for train, test in splits:
            part = pg.Preferences(
                winner[train], loser[train], margin=margin[train], weight=weight[train]
            )
            model = pg.RankRLS(value, constraint=options.get("constraint"))
            if "svm" in options:
                model = pg.RankSVM(value, loss="squared", tol=1e-10)
            scores = model.fit(X, part).predict(X)
            own = scores[winner[test]] - scores[loser[test]]
            total += weight[test].sum()
            sums += weight[test] @ (margin[test] - own) ** 2
            np.add.at(held[value][0], test, own)
            np.add.at(held[value][1], test, 1)
        np.testing.assert_allclose(search.scores_[k], sums / total, rtol=1e-6)
    sums, times = held[grid[int(np.argmin(search.scores_))]]
    if cv == "item-folds":
        assert (times == 2).all()
    known = times > 0
    np.testing.assert_allclose(
        search.held_out_[known], (sums / np.maximum(times, 1))[known], atol=1e-6
    )


OF_ALL_ROWS = (
    {},
    {"form": "dual"},
    {"constraint": pg.Positive()},
    {"feature_map": pg.RandomNodes(9, random_state=0)},
    {"svm": True},
)
OF_DENSE_ROWS = (
    {"feature_map": ["standard", None]},
    {"feature_map": [pg.Kernel("rbf", gamma=g) for g in [0.3, 0.1]]},
)


@pytest.mark.parametrize(
    ("options", "make"),
    [
        *((options, np.asarray) for options in (*OF_ALL_ROWS, *OF_DENSE_ROWS)),
        *((options, scipy.sparse.csr_array) for options in OF_ALL_ROWS),
    ],
    ids=str,
)
def test_a_validation_set_of_comparisons(options, make):
    X, winner, loser, margin, weight, _ = problem(21)
    Z, better, worse, by, counts, _ = problem(22)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    held = pg.Preferences(better, worse, margin=by, weight=counts)
    offset = np.linspace(-1, 1, 12)
    named = {"scoring": "squared_error"}
    svm = "svm" in options
    kind, single = (pg.RankSVMCV, pg.RankSVM) if svm else (forms.RankRLSCV, forms.RankRLS)
    options = {"loss": "squared", "tol": 1e-10} if svm else options
    search = kind([3.0, 0.1], **named, **options)
    search.fit(make(X), y, offset=offset, validation=(make(Z), held, None, offset[::-1]))
    assert search.cv_ == "validation set"
    for row, params in enumerate(search.cv_results_["params"]):
        params = {name: params[name] for name in ("alpha", "C", "feature_map") if name in params}
        model = single(**{**options, **params}).fit(make(X), y, offset=offset)
        scores = model.predict(make(Z)) + offset[::-1]
        errors = (by - (scores[better] - scores[worse])) ** 2
        found = search.cv_results_["mean_test_score"][row]
        np.testing.assert_allclose(found, np.average(errors, weights=counts), rtol=1e-6)
    scores = search.predict(make(Z)) + offset[::-1]
    np.testing.assert_allclose(search.held_out_, scores[better] - scores[worse], atol=1e-7)
    assert len(search.per_query_["comparison"]) == 60


@pytest.mark.parametrize(
    "options",
    [
        {"feature_map": pg.Kernel("rbf", gamma=0.3)},
        {"feature_map": pg.RandomNodes(9, random_state=0)},
        {"feature_map": "standard"},
        {"feature_map": row_value("quantile", pg.Kernel("laplacian"))},
    ],
    ids=str,
)
def test_the_scores_of_features_written_out(options, tmp_path):
    X, winner, loser, margin, weight, _ = problem(7)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    model = forms.RankRLS(0.5, **options).fit(X, y)
    H = np.asarray(model.feature_map_.transform(X))
    if model.form_ == "dual" and H.shape == (len(X), len(X)):  # the values of a kernel
        values, vectors = np.linalg.eigh(H)
        H = vectors * np.sqrt(np.maximum(values, 0.0))
    coef = reference.ridge(reference.written_out(H, winner, loser), margin, weight, 0.5)
    expected, scores = H @ coef, model.predict(X)
    np.testing.assert_allclose(
        scores - scores.mean(), expected - expected.mean(), rtol=1e-7, atol=1e-9
    )
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(pg.load_model(tmp_path / "model.safetensors").predict(X), scores)


def test_inputs_count_rows_as_often_as_they_are_compared():
    X, winner, loser, margin, *_ = problem(8)
    y = pg.Preferences(winner, loser, margin=margin)
    model = pg.RankRLS(1.0, feature_map="standard").fit(X, y)
    seen = np.concatenate([X[winner], X[loser]])
    np.testing.assert_allclose(
        inputs_of(model).transform(X), (X - seen.mean(axis=0)) / seen.std(axis=0), rtol=1e-10
    )


def test_a_search_over_kernels():
    X, winner, loser, margin, *_ = problem(9)
    y = pg.Preferences(winner, loser, margin=margin)
    search = pg.RankRLSCV(
        feature_map=row_value([None, "standard"], [pg.Kernel("rbf", gamma=g) for g in [0.1, 1.0]])
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 4 * 34 and search.form_ == "dual"
    kernel = search.feature_map_.transform(
        X if inputs_of(search) is None else inputs_of(search).transform(X)
    )
    given = pg.RankRLS(search.alpha_, feature_map=pg.Kernel("precomputed")).fit(kernel, y)
    np.testing.assert_allclose(given.predict(kernel), search.predict(X), rtol=1e-7, atol=1e-9)


def test_a_prior_and_offsets():
    X, winner, loser, margin, weight, _ = problem(10)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    Z = reference.written_out(X, winner, loser)
    w0 = np.arange(4.0)
    model = pg.RankRLS(2.0, prior=w0).fit(X, y)
    expected = w0 + reference.ridge(Z, margin - Z @ w0, weight, 2.0)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    offset = np.linspace(-1, 1, 12)
    model = pg.RankRLS(2.0).fit(X, y, offset=offset)
    left = margin - (offset[winner] - offset[loser])
    np.testing.assert_allclose(model.coef_, reference.ridge(Z, left, weight, 2.0), rtol=1e-9)
    search = pg.RankRLSCV([2.0], scoring="squared_error", cv="leave-comparison-out")
    search.fit(X, y, offset=offset)
    folds = reference.folds_of("leave-comparison-out", winner, loser)
    expected = reference.judged("squared_error", Z, left, weight, 2.0, folds)
    np.testing.assert_allclose(search.scores_, expected, rtol=1e-10)


def test_items_without_a_difference_tie():
    X, winner, loser, *_ = problem(11)
    X[1] = X[0]
    y = pg.Preferences(np.append(winner, [0, 1]), np.append(loser, [1, 0]))
    for way in ("leave-comparison-out", "leave-item-out"):
        search = pg.RankRLSCV(cv=way).fit(X, y)
        assert (search.held_out_[-2:] == 0).all()


@pytest.mark.filterwarnings("ignore:.*spreads so much more widely")
def test_an_item_that_holds_a_direction_is_refitted():
    X, winner, loser, margin, weight, _ = problem(12)
    X[:, 0] = 0.0
    X[3, 0] = 1e6
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    alphas = [1e2, 1e-2]
    search = pg.RankRLSCV(alphas, cv="leave-item-out", scoring="squared_error").fit(X, y)
    folds = reference.folds_of("leave-item-out", winner, loser)
    Z = reference.written_out(X, winner, loser)
    Z[:, 0] = np.where((winner == 3) | (loser == 3), Z[:, 0], 0.0)
    expected = [reference.judged("squared_error", Z, margin, weight, a, folds) for a in alphas]
    np.testing.assert_allclose(search.scores_, expected, rtol=1e-6)


def test_the_same_bits_for_any_number_of_threads():
    X, winner, loser, margin, weight, _ = problem(13, 200, 30_000, 30)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    for way in WAYS[:2]:
        one, three = on_threads((1, 3), lambda cv=way: pg.RankRLSCV(cv=cv).fit(X, y))
        np.testing.assert_array_equal(one.scores_, three.scores_)
        np.testing.assert_array_equal(one.coef_, three.coef_)


def test_stored_values_have_the_mean_that_is_told():
    X, winner, loser, margin, weight, groups = problem(14)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight, groups=groups)
    for cv in (*WAYS, 4):
        for scoring in ("accuracy", "squared_error"):
            search = pg.RankRLSCV(cv=cv, scoring=scoring).fit(X, y)
            values = search.per_query_[scoring]
            known = ~np.isnan(values)
            mean = np.average(values[known], weights=weight[known])
            np.testing.assert_allclose(mean, search.best_score_, rtol=1e-12)
            assert len(search.per_query_["comparison"]) == 60


def test_auto_ranker():
    X, winner, loser, *_ = problem(15, 60, 900)
    bent = np.column_stack([X, np.exp(X[:, 0])])
    y = pg.Preferences(
        np.where(X[winner, 0] > X[loser, 0], winner, loser),
        np.where(X[winner, 0] > X[loser, 0], loser, winner),
    )
    model = pg.AutoRanker(time_budget=None).fit(bent, y)
    assert model.cv_ == "leave-item-out" and model.best_score_ > 0.95
    outcomes = model.trials_["outcome"].tolist()
    assert outcomes.count("best") == 1 and not [one for one in outcomes if "failed" in one]
    assert model.score(bent, y) > 0.95


@every(way=[*WAYS, "splits"], form=["primal", "dual"], make=[np.asarray, scipy.sparse.csr_array])
def test_comparisons_that_no_other_tells_apart_tie(way, form, make):
    """Rounding errors have the signs of the labels, so that they would win every comparison."""
    winner, loser = np.arange(0, 40, 2), np.arange(1, 40, 2)
    y = pg.Preferences(winner, loser, groups=winner // 4)
    every = np.arange(20)
    splits = [(np.setdiff1d(every, test), test) for test in np.array_split(every, 4)]
    cv = splits if way == "splits" else way
    search = forms.RankRLSCV([100.0, 1.0, 1e-3], cv=cv, form=form)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    for X in (np.eye(40), 3 * rotation):
        search.fit(make(X), y)
        np.testing.assert_array_equal(search.scores_, 0.5)
        assert not search.held_out_.any()


def test_rare_columns_tie_without_their_items():
    """Binary features, and columns that single items have: many comparisons are exact ties."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((60, 4)) < 0.5, np.eye(60)[:, :20]]).astype(np.float64)
    _, winner, loser, *_ = problem(17, 60, 800)
    Z, alphas = reference.written_out(X, winner, loser), [1.0, 1e-2]
    for way in ("leave-item-out", "leave-comparison-out"):
        folds = reference.folds_of(way, winner, loser)
        search = pg.RankRLSCV(alphas, cv=way).fit(X, pg.Preferences(winner, loser))
        for alpha, found in zip(alphas, search.scores_, strict=True):
            total = count = 0.0
            for test, scores in reference.refitted(Z, np.ones(800), np.ones(800), alpha, folds):
                rounded = np.where(abs(scores) < 1e-11, 0.0, scores)
                total, count = total + (np.sign(rounded) / 2 + 0.5).sum(), count + len(test)
            np.testing.assert_allclose(found, total / count, rtol=1e-12)


@every(form=["primal", "dual"], way=[*WAYS, 3])
def test_what_is_common_to_all_rows_costs_no_digit(way, form):
    X, winner, loser, margin, weight, groups = problem(18)
    X = np.round(256 * X) / 256
    y = pg.Preferences(winner, loser, margin=margin, weight=weight, groups=groups)
    search = forms.RankRLSCV([0.5], cv=way, form=form, scoring="squared_error")
    expected = search.fit(X, y).held_out_
    np.testing.assert_allclose(search.fit(X + 1e10, y).held_out_, expected, atol=1e-12)


def test_the_arrays_of_the_caller_are_copied():
    X, winner, loser, margin, weight, _ = problem(19)
    y = pg.Preferences(winner, loser, margin=margin, weight=weight)
    expected = pg.RankRLS().fit(X, y).coef_
    for array in (winner, loser, margin, weight):
        array[:] = 0
    np.testing.assert_array_equal(pg.RankRLS().fit(X, y).coef_, expected)
