"""Which way sparse rows are solved, and what is told of the time."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import forms
import pairgram as pg
from axes import every
from pairgram._support import limits
from pairgram._support.rates import seconds_of
from problems import BY_STEPS
from table_sources import scanned

# Steps are begun whatever they may take, and end when the direct solution would be there.
IMPATIENT = {"largest_set": 0, "direct_seconds": 0.0, "exact_patience": 0.0}


def sparse_rows(n_features=80):
    rng = np.random.default_rng(3)
    X = sp.random_array((600, n_features), density=0.1, random_state=rng, format="csr")
    y = np.digitize(X @ rng.normal(size=n_features), [-0.5, 0, 0.5]).astype(float)
    return X, y, np.repeat(np.arange(50), 12)


def has_folds(search):
    return "split0_test_score" in search.cv_results_


@pytest.mark.parametrize(
    "model", [pg.RankRLSCV(), pg.RankRLSCV([0.1, 10.0, 1.0], cv=3), pg.AutoRanker(1e-6)]
)
@pytest.mark.parametrize("dense", [True, False])
def test_a_large_path_is_not_kept(set_limits, model, dense):
    X, y, qid = sparse_rows()
    X = X.toarray() if dense else X
    whole, few = clone(model).fit(X, y, qid=qid), clone(model)
    set_limits(path_bytes=8 * whole.coef_path_.size - 1)
    few.fit(X, y, qid=qid)
    assert few.coef_path_ is None
    np.testing.assert_allclose(few.coef_, whole.coef_, rtol=1e-12)
    np.testing.assert_array_equal(few.scores_, whole.scores_)


def test_small_rows_are_held_out_exactly():
    X, y, qid = sparse_rows()
    search = pg.RankRLSCV().fit(X, y, qid=qid)
    assert not has_folds(search)
    np.testing.assert_allclose(search.scores_, pg.RankRLSCV().fit(X.toarray(), y, qid=qid).scores_)


def wide_rows(n_rows, n_features):
    rng = np.random.default_rng(0)
    index = rng.integers(0, n_features, 5 * n_rows)
    X = sp.csr_array((np.ones(5 * n_rows), index, np.arange(0, 5 * n_rows + 1, 5)))
    X.resize(n_rows, n_features)
    return X, rng.integers(0, 3, n_rows).astype(float), np.arange(n_rows) // 20


@pytest.mark.parametrize(
    ("shape", "cv", "folds"),
    [
        ((4_000, 500), None, False),  # the direct solution takes a moment
        ((4_000, 3_000), None, True),
        ((4_000, 3_000), 3, True),
        ((500, 4_000), None, False),  # the dual form is small
    ],
)
def test_the_shape_decides(shape, cv, folds):
    X, y, qid = wide_rows(*shape)
    search = pg.RankRLSCV([1.0, 10.0], cv=cv).fit(X, y, qid=qid)
    assert has_folds(search) == folds
    assert search.form_ == ("dual" if shape[0] < shape[1] else "primal")


def test_one_ridge_of_rows_that_are_neither_small_nor_large_is_solved_by_steps(limits_of):
    X, y, qid = wide_rows(4_000, 3_000)
    found = pg.RankRLS().fit(X, y, qid=qid).coef_
    with limits_of(**BY_STEPS):
        by_steps = pg.RankRLS().fit(X, y, qid=qid).coef_
    with limits_of(step_patience=0.0):
        direct = pg.RankRLS().fit(X, y, qid=qid).coef_
    assert (found == by_steps).all() and not (found == direct).all()
    np.testing.assert_allclose(found, direct, rtol=0, atol=1e-8 * abs(direct).max())


@pytest.mark.parametrize("n_features", [80, 700])  # the primal form, and the dual one
def test_many_steps_end_in_the_direct_solution(limits_of, n_features):
    X, y, qid = sparse_rows(n_features)
    one = pg.RankRLS(1e-7, pairs="without_ties", feature_map="maxabs")
    many = pg.RankRLSCV([1e-8, 1e-7], cv=3, pairs=["with_ties", "without_ties"])
    direct, searched = one.fit(X, y, qid=qid).coef_, many.fit(X, y, qid=qid).coef_path_
    with limits_of(**IMPATIENT):  # warnings are errors here
        assert (one.fit(X, y, qid=qid).coef_ == direct).all()
        assert (many.fit(X, y, qid=qid).coef_path_ == searched).all()
    assert one.form_ == many.form_ == ("dual" if n_features > len(y) else "primal")


def test_dense_blocks_are_taken_where_sparse_products_cost_as_much():
    rows, squares = 1_000, 400**2
    share = limits.now.dense_share
    sparse = seconds_of({"sparse gram": rows * share**2 * squares})
    assert sparse == pytest.approx(seconds_of({"gram": rows * squares}), rel=0.1)


def test_folds_that_were_begun_by_steps_are_folds_in_the_end(limits_of):
    X, y, qid = sparse_rows()
    folds = pg.RankRLSCV([1e-8], cv=5).fit(X, y, qid=qid)
    with limits_of(**IMPATIENT):
        search = pg.RankRLSCV([1e-8]).fit(X, y, qid=qid)
    assert has_folds(search) and (search.scores_ == folds.scores_).all()


@pytest.mark.parametrize("n_features", [80, 700])
def test_what_does_not_fit_in_memory_is_solved_by_steps(free_memory, n_features):
    X, y, qid = sparse_rows(n_features)
    direct = pg.RankRLS().fit(X, y, qid=qid).coef_
    free_memory(100_000)
    search = pg.RankRLSCV([1.0, 1e-1]).fit(X, y, qid=qid)
    assert has_folds(search) and search.form_ == "primal"
    np.testing.assert_allclose(search.coef_path_[0], direct, rtol=0, atol=1e-6 * abs(direct).max())


@every(scope=["query", "global"], dtype=[np.float64, np.float32])
def test_huge_values_that_a_query_shares_cost_no_digits_in_the_dual_form(scope, dtype):
    """Times that some queries have and others have not; rows of weight 0 are not seen."""
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 100), density=0.2, random_state=rng).toarray().astype(dtype)
    qid, y = np.repeat(np.arange(12), 5), rng.integers(0, 3, 60).astype(float)
    weight = rng.choice([0.0, 1.0, 2.0], 60)
    lists = qid if scope == "query" else np.zeros(60, int)
    times = rng.integers(-8, 8, 60) + 2.0**40 * (1 + lists % 3)
    X = np.column_stack([np.where(lists % 2 == 0, times, 0.0), X])
    X[5, 7] = 0.0
    model = forms.RankRLS(1.0, form="dual", pairs=pg.Pairs(scope=scope))
    dense = model.fit(X, y, qid=qid, sample_weight=weight).coef_
    found = model.fit(sp.csr_array(X), y, qid=qid, sample_weight=weight).coef_
    np.testing.assert_allclose(found, dense, rtol=0, atol=1e-12 * abs(dense).max())
    given = sp.csr_array(X)
    before = given.data.copy()
    model.fit(given, y, qid=qid, sample_weight=weight)
    assert (given.data == before).all()


def test_a_query_without_entries_is_one_of_zeros():
    X, y, qid = sparse_rows(700)
    X = X.tolil()
    X[12:24] = 0
    X = X.tocsr()
    for rows in (X, 0 * X):
        dense = forms.RankRLS(form="dual").fit(rows.toarray(), y, qid=qid).coef_
        found = forms.RankRLS(form="dual").fit(rows, y, qid=qid).coef_
        np.testing.assert_allclose(found, dense, rtol=0, atol=1e-10 * (abs(dense).max() + 1e-300))


@pytest.mark.parametrize(
    "model",
    [
        pg.RankRLS(constraint=pg.ElasticNet(0.5)),
        pg.RankRLS(constraint=pg.Positive()),
        pg.RankRLSCV([1.0], constraint=pg.MaxNonzero(5)),
        pg.RankRLSCV(constraint=pg.ElasticNet(0.5), cv=3),
    ],
    ids=repr,
)
def test_constraints_that_need_too_large_a_matrix_are_refused(model):
    X, y, qid = wide_rows(400, 3_000_000)
    with pytest.raises(MemoryError, match=r"Gram matrix of 3000000 features.*RankRLS without"):
        model.fit(X, y, qid=qid)


def test_dense_tables_say_what_takes_sparse_rows(free_memory):
    X, y, qid = sparse_rows()
    table = scanned((X.toarray(), y, qid))
    free_memory(100_000)
    for model in (pg.RankRLS(), pg.RankRLSCV()):
        with pytest.raises(MemoryError, match=r"Gram matrix of 80 features, .* fewer features"):
            model.fit(table)


def test_a_search_of_labels_and_scales_by_steps_needs_no_matrix():
    """Rows as hashed ids make them, with millions of columns."""
    X, y, qid = wide_rows(400, 1_000_000)
    search = pg.RankRLSCV([1.0, 10.0], cv=3, feature_map=[None, "maxabs"]).fit(X, y, qid=qid)
    few = np.unique(X.indices)
    dense = pg.RankRLSCV([1.0, 10.0], cv=3, feature_map=[None, "maxabs"])
    dense.fit(X[:, few].toarray(), y, qid=qid)
    np.testing.assert_allclose(search.scores_, dense.scores_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(search.coef_[few], dense.coef_, rtol=0, atol=1e-6)
    assert np.count_nonzero(search.coef_path_) == np.count_nonzero(search.coef_path_[:, few])


@pytest.mark.parametrize(
    "model", [pg.RankRLS(10.0, scale=True), pg.RankRLSCV([100.0, 1.0, 10.0], cv=3)]
)
@pytest.mark.parametrize("judged", ["folds", "validation"])
def test_columns_without_an_entry_change_nothing(model, judged, set_limits):
    set_limits(seen_columns=100, **BY_STEPS)
    X, y, qid = sparse_rows()
    columns = np.arange(80) * 7 + 3
    wide = sp.csr_array((X.data, columns[X.indices], X.indptr), shape=(600, 1000))
    model, given = clone(model), [{}, {}]
    if judged == "validation" and isinstance(model, pg.RankRLSCV):
        model.set_params(cv=None)
        given = [{"validation": (rows[:240], y[:240], qid[:240])} for rows in (X, wide)]
    narrow = clone(model).fit(X, y, qid=qid, **given[0])
    found = model.fit(wide, y, qid=qid, **given[1])
    assert found.coef_.shape == (1000,) and np.count_nonzero(found.coef_) <= 80
    np.testing.assert_array_equal(found.coef_[columns], narrow.coef_)
    np.testing.assert_array_equal(found.predict(wide), narrow.predict(X))
    if isinstance(model, pg.RankRLSCV):
        np.testing.assert_array_equal(found.scores_, narrow.scores_)
        np.testing.assert_array_equal(found.coef_path_[:, columns], narrow.coef_path_)


def test_rows_of_zeros_by_steps(set_limits):
    set_limits(**BY_STEPS)
    X, y, qid = sparse_rows()
    assert not pg.RankRLSCV(cv=3).fit(0 * X, y, qid=qid).coef_.any()


@every(scope=["query", "global"], pairs=["with_ties", "without_ties", "gain_difference"])
def test_times_cost_no_digits(pairs, scope):
    rng = np.random.default_rng(0)
    X, y, qid = sparse_rows()
    dense = X.toarray()
    dense[:, 0] = 1.7e9 + 1e6 * rng.normal(size=50)[qid] + 100 * rng.normal(size=len(y))
    dense[qid < 9, 1] = 3e8 + rng.normal(size=108)  # of some queries alone
    rows, model = sp.csr_array(dense), pg.RankRLS(pairs=pg.Pairs(pairs, scope=scope))
    # Labels may be times too, of which a label is no gain.
    labels = (y, y + 1.6e9) if pairs != "gain_difference" else (y,)
    for own in labels:
        expected = clone(model).fit(dense, own, qid=qid).coef_
        found = clone(model).fit(rows, own, qid=qid).coef_
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)
        assert found[0] != 0


def test_sparse_items_that_are_compared_may_have_times():
    rng = np.random.default_rng(0)
    X = sparse_rows()[0].toarray()
    X[:, 0] = 1.7e9 + 100 * rng.normal(size=len(X))
    y = pg.Preferences(rng.integers(0, 300, 900), rng.integers(300, 600, 900))
    expected = pg.RankRLS().fit(X, y).coef_
    np.testing.assert_allclose(pg.RankRLS().fit(sp.csr_array(X), y).coef_, expected, rtol=1e-7)


@every(big=[1e5, 1e12, 1e16], pairs=["with_ties", "without_ties", "label_difference"])
def test_rows_that_outweigh_others_cost_no_digits(pairs, big):
    X, y, qid = sparse_rows()
    weights = np.ones(len(y))
    weights[::12], weights[7::12] = big, big**0.5
    dense, found = (
        pg.Pairgram.from_rows(rows, y, qid=qid, pairs=pairs, sample_weight=weights)
        for rows in (X.toarray(), sp.csr_array(X))
    )
    squares = dense.G.diagonal()
    atol = 1e-12 * np.sqrt(np.outer(squares, squares))
    assert (np.abs(found.G - dense.G) <= atol).all()
    np.testing.assert_allclose(found.g, dense.g, rtol=1e-11)


def test_what_is_common_to_sparse_items_cancels_in_each_group_of_them():
    rng = np.random.default_rng(0)
    X = sparse_rows()[0].toarray()
    group = np.repeat([0, 1], 300)  # of items that comparisons join
    X[:, 0] = np.array([0, 1.7e12])[group] + rng.normal(size=600)
    pairs = rng.integers(0, 300, (900, 2)) + rng.integers(0, 2, 900)[:, None] * 300
    y = pg.Preferences(*pairs[pairs[:, 0] != pairs[:, 1]].T)
    expected = pg.RankRLS().fit(X, y).coef_
    np.testing.assert_allclose(pg.RankRLS().fit(sp.csr_array(X), y).coef_, expected, rtol=1e-7)


@every(form=["primal", "dual"], pairs=["with_ties", "without_ties"])
def test_rows_of_weight_0_do_not_hide_what_the_others_share(pairs, form):
    rng = np.random.default_rng(0)
    X, weights, qid = np.zeros((40, 60)), np.ones(40), np.arange(40) // 10
    X[np.arange(40), 1 + np.arange(40)] = 1
    weights[::10] = 0
    counts = weights > 0
    y = rng.integers(0, 3, 40).astype(float)
    X[counts, 0] = 1e9 + y[counts] + rng.normal(size=36)
    model = forms.RankRLS(1e-3, pairs=pairs, form=form)
    expected = clone(model).fit(X[counts], y[counts], qid=qid[counts]).coef_
    found = model.fit(sp.csr_array(X), y, qid=qid, sample_weight=weights).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
def test_the_weight_of_a_row_may_stand_in_two_rows(pairs):
    X, y = np.zeros((4, 60)), np.array([1, 1, 0, 0.0])
    X[:2, 0], X[2, 1], X[:2, 2] = 1, 1, 0.5
    of_two, of_one = (
        pg.Pairgram.from_rows(sp.csr_array(rows), labels, sample_weight=weights, pairs=pairs).G
        for rows, labels, weights in ((X, y, [1e13, 1e13, 1, 1]), (X[1:], y[1:], [2e13, 1, 1]))
    )
    np.testing.assert_allclose(of_two, of_one, rtol=1e-12)
    X[1, 0] = 0.25  # rows of one label form no pair without ties
    dense, sparse = (
        pg.Pairgram.from_rows(rows, y, sample_weight=[1e13, 1e13, 1, 1], pairs=pairs).G
        for rows in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-12 * dense.max())


def test_times_of_all_rows_together_merge_without_a_loss():
    X, y, _ = sparse_rows()
    X = X.toarray()
    X[:, 0] = 1.7e9 + np.random.default_rng(0).normal(size=len(X))
    half = np.arange(len(y)) < 250
    sums = [
        sum(
            pg.Pairgram.from_rows(kind(X[rows]), y[rows], pairs=pg.Pairs(scope="global"))
            for rows in (~half, half)
        )
        for kind in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(sums[1].G, sums[0].G, rtol=1e-12, atol=1e-12 * sums[0].G.max())


def test_steps_end_without_a_warning_far_from_0(set_limits):
    set_limits(**BY_STEPS)
    rng = np.random.default_rng(1)
    spread = rng.normal(size=(900, 1))
    rest = sp.random_array((900, 2000), density=0.001, random_state=rng, format="csr")
    X = sp.hstack([sp.csr_array(1e8 + spread), rest]).tocsr()
    y = spread[:, 0] + 0.1 * rng.normal(size=900)
    model = pg.RankRLS().fit(X, y, qid=np.arange(900) // 9)  # warnings are errors here
    assert abs(model.coef_[0] - 1) < 0.1
