"""Held-out scores tie where a model that is fitted without the rows ties them."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st
from sklearn.metrics.pairwise import pairwise_kernels

import forms
from axes import drawn
from pairgram import (
    ELMRankCV,
    PairwiseELMCV,
    PointwiseELMCV,
    QueryKFold,
    RandomNodes,
    RankRLSCV,
    RankSVMCV,
    _core,
    evaluate,
    fit_many,
)
from parts.data import Pairs, RankingData, checked_data, first_equal_rows
from parts.features import Kernel
from parts.solvers import Coordinates, PathTies, Work, leave_query_out
from reference import laplacian

ALPHAS = (100.0, 1.0, 0.01)
FORMS = [
    ("primal", None),
    ("dual", None),
    *(("smaller", kernel) for kernel in ("rbf", "laplacian", "polynomial", "tanimoto")),
]
N_QUERIES, QUERY_SIZE = 6, 10
QUERY = np.repeat(np.arange(N_QUERIES), QUERY_SIZE)


def repeated_rows(rng):
    """Six distinct rows of zeros and ones, each many times."""
    return ((rng.random((6, 5)) < 0.5) * 1.0)[rng.integers(0, 6, len(QUERY))]


def rows_with_names(rng):
    """A few common bits, and a bit that only this row has."""
    common = (rng.random((len(QUERY), 4)) < 0.5) * 1.0
    return np.hstack([common, np.eye(len(QUERY))])


def columns_of_one_query(rng):
    """Rows of a query in two groups, which differ in a column that only this query has."""
    groups = np.repeat(rng.standard_normal((2 * N_QUERIES, 3)), QUERY_SIZE // 2, axis=0)
    own = np.zeros((len(QUERY), N_QUERIES))
    own[np.arange(len(QUERY)), QUERY] = rng.integers(0, 5, len(QUERY))
    return np.hstack([groups, own])


def kernel_values(X, Z, kernel):
    if kernel is None:
        return X @ Z.T
    if kernel == "tanimoto":
        common = X @ Z.T
        total = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - common
        return np.divide(common, total, out=np.ones_like(common), where=total > 0)
    return pairwise_kernels(X, Z, metric=kernel, **({"coef0": 1} if kernel == "polynomial" else {}))


def refit_scores(X, y, query, kernel, pairs, alphas, folds, centred=False):
    """Scores of the test rows of every fold by models of its training rows, rounded: ties tie.

    They are centred by the mean of the training rows.
    """
    scores, whole = np.zeros((len(alphas), len(y))), kernel_values(X, X, kernel)
    for train, test in folds:
        K, across = whole[np.ix_(train, train)], whole[np.ix_(test, train)]
        L, _ = laplacian(y[train], query[train], pairs)
        for at, alpha in enumerate(alphas):
            dual = np.linalg.solve(L @ K + alpha * np.eye(len(train)), L @ y[train])
            scores[at, test] = across @ dual - (K @ dual).mean() * centred
    return np.round(scores, 9)


def leave_queries_out(query):
    return [(np.flatnonzero(query != q), np.flatnonzero(query == q)) for q in np.unique(query)]


def assert_as_refits(search, metric, y, query, scores):
    expected = np.array([evaluate([metric], y, s, query)[metric] for s in scores])
    np.testing.assert_allclose(search.scores_, expected, rtol=0, atol=1e-12)
    assert search.alpha_ == ALPHAS[int(np.argmax(expected))]


@pytest.mark.usefixtures("decomposition")
@pytest.mark.parametrize(("form", "kernel"), FORMS)
@pytest.mark.parametrize("draw", [repeated_rows, rows_with_names, columns_of_one_query])
@drawn(
    3,
    metric=["ndcg@10", "pairwise_accuracy"],
    cv=[None, 3],
    pairs=["with_ties", "without_ties"],
    seed=range(2),
)
def test_searches_choose_as_refits_do(draw, form, kernel, pairs, cv, metric, seed):
    rng = np.random.default_rng(seed)
    X, y = draw(rng), rng.integers(0, 3, len(QUERY)) * 1.0
    folds = leave_queries_out(QUERY) if cv is None else list(QueryKFold(cv).split(X, y, qid=QUERY))
    scores = refit_scores(X, y, QUERY, kernel, pairs, ALPHAS, folds)
    search = forms.RankRLSCV(
        ALPHAS, feature_map=kernel and Kernel(kernel), form=form, pairs=pairs, cv=cv, scoring=metric
    )
    assert_as_refits(search.fit(X, y, qid=QUERY), metric, y, QUERY, scores)


@pytest.mark.parametrize("metric", ["map", "pairwise_accuracy"])
@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_a_rest_without_signal_ties_all_rows(form, kernel, metric):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.random((len(QUERY), 3)), np.zeros(len(QUERY))
        y[QUERY == 0] = rng.integers(0, 3, QUERY_SIZE)
        scores = refit_scores(X, y, QUERY, kernel, "with_ties", ALPHAS, leave_queries_out(QUERY))
        search = forms.RankRLSCV(
            ALPHAS, feature_map=kernel and Kernel(kernel), form=form, scoring=metric
        ).fit(X, y, qid=QUERY)
        assert_as_refits(search, metric, y, QUERY, scores)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    "search",
    [
        RankRLSCV(),
        forms.RankRLSCV(form="primal"),
        RankRLSCV(pairs=Pairs(scope="global")),
        forms.RankRLSCV(pairs=Pairs(scope="global"), form="primal"),
        RankRLSCV(pairs=Pairs(scope="global"), feature_map=Kernel("rbf")),
        RankRLSCV(pairs=None),
        forms.RankRLSCV(pairs="gain_difference", cv=3, form="dual"),
        RankRLSCV(scale=True),
        RankRLSCV(feature_map=Kernel("laplacian"), cv=3),
        PairwiseELMCV(n_nodes=30, activation="sigmoid", random_state=0),
        PairwiseELMCV(n_nodes=500, activation="sigmoid", random_state=0),
        PointwiseELMCV(n_nodes=30, random_state=0),
        ELMRankCV(n_nodes=20, random_state=0),
        RankSVMCV(cv=3, Cs=[0.01, 1.0]),
        RankSVMCV(cv=3, Cs=[0.01, 1.0], loss="squared"),
    ],
    ids=lambda search: type(search).__name__,
)
def test_equal_rows_have_equal_scores(search, container, dtype):
    """Where the rows of a query are identical, nothing can be ranked."""
    rng = np.random.default_rng(0)
    X = container(rng.standard_normal((12, 33))[np.repeat(np.arange(12), 7)].astype(dtype))
    query, y = np.repeat(np.arange(12), 7), rng.integers(0, 4, 84) * 1.0
    search.set_params(scoring="pairwise_accuracy").fit(X, y, qid=query)
    scores = search.scores_[~np.isnan(search.scores_)]  # tiny ridges: rounding error
    assert len(scores) and (scores == 0.5).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("form", "kernel"), FORMS[:3])
def test_a_column_of_one_query_is_unknown_to_the_others(form, kernel, dtype):
    """Float32 statistics err more; ties are found all the same, ."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(20), 10)
    X = np.repeat(rng.standard_normal((40, 5)), 5, axis=0)
    own = np.where(query[:, None] == 0, np.tile(np.eye(10), (20, 1)), 0.0)
    y = rng.integers(0, 3, 200) * 1.0
    qid = np.where(query == 0, 0, 1 + query)
    alphas = 10.0 ** np.arange(4, 0, -1)
    search = forms.RankRLSCV(
        alphas,
        feature_map=kernel and Kernel(kernel),
        form=form,
        cv=[(np.arange(10, 200), np.arange(10))],
    )
    search.set_params(scoring="pairwise_accuracy").fit(
        np.hstack([X, own]).astype(dtype), y, qid=qid
    )
    without = search.scores_.copy()
    known = forms.RankRLSCV(search.alphas_, cv=search.cv, scoring="pairwise_accuracy", form="dual")
    if kernel is None:
        known.fit(X, y, qid=qid)
        np.testing.assert_allclose(without, known.scores_, atol=1e-12)
    assert len(np.unique(without)) <= 3  # two groups of rows: 0, ½ or 1 for those between them


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_long_queries_do_not_tie_by_chance(dtype):
    """Float32 statistics err more, but scores are as many as in float64, and as good."""
    n, rng = 3000, np.random.default_rng(0)
    query = np.repeat(np.arange(4), n)
    X = rng.normal(size=(4 * n, 20)) * np.logspace(0, -2.5, 20)
    y = X @ np.logspace(0, 2.5, 20) + rng.normal(size=4 * n)
    X = X.astype(np.float32)
    search = RankRLSCV([1e-3, 1.0], scoring="kendall").fit(X.astype(dtype), y, qid=query)
    assert (search.scores_ > 0.855).all()


def test_rows_of_one_query_in_folds_tie():
    rng = np.random.default_rng(1)
    X, y = repeated_rows(rng), rng.integers(0, 3, len(QUERY)) * 1.0
    one = np.zeros(len(QUERY), int)
    folds = [
        (np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k))
        for k in range(3)
    ]
    for form, kernel in FORMS:
        scores = refit_scores(X, y, one, kernel, "with_ties", ALPHAS, folds)
        search = forms.RankRLSCV(
            ALPHAS,
            feature_map=kernel and Kernel(kernel),
            form=form,
            cv=folds,
            scoring="pairwise_accuracy",
        )
        assert_as_refits(search.fit(X, y), "pairwise_accuracy", y, np.arange(60) % 3, scores)


@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_leave_row_out_ties_twins_with_equal_labels(form, kernel):
    """A twin with another label is fitted to when the row is held out, so these do not tie."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = repeated_rows(rng)[:24]
        y, one = rng.integers(0, 3, 24) * 1.0, np.zeros(24, int)
        folds = [(np.delete(np.arange(24), i), np.array([i])) for i in range(24)]
        scores = refit_scores(X, y, one, kernel, "with_ties", ALPHAS, folds, centred=True)
        search = forms.RankRLSCV(
            ALPHAS, feature_map=kernel and Kernel(kernel), form=form, scoring="pairwise_accuracy"
        ).fit(X, y)
        assert_as_refits(search, "pairwise_accuracy", y, one, scores)


@pytest.mark.parametrize("pairs", ["with_ties", None])
@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_leave_pair_out_ties_what_refits_tie(form, kernel, pairs):
    for draw in (repeated_rows, rows_with_names):
        rng = np.random.default_rng(0)
        X, y = draw(rng)[:14], rng.integers(0, 3, 14) * 1.0
        one, right = np.zeros(14, int), np.zeros((len(ALPHAS), 2))
        for i, j in np.argwhere(y[:, None] > y):
            fold = [(np.delete(np.arange(14), [i, j]), np.array([i, j]))]
            scores = refit_scores(X, y, one, kernel, pairs, ALPHAS, fold)
            right += np.stack([(np.sign(scores[:, i] - scores[:, j]) + 1) / 2, np.ones(3)], axis=1)
        search = forms.RankRLSCV(
            ALPHAS,
            feature_map=kernel and Kernel(kernel),
            form=form,
            pairs=pairs,
            cv="leave-pair-out",
        )
        np.testing.assert_allclose(
            search.fit(X, y).scores_, right[:, 0] / right[:, 1], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(("form", "kernel"), FORMS)
def test_rows_of_a_validation_set_tie(form, kernel):
    rng = np.random.default_rng(2)
    X, y = rows_with_names(rng), rng.integers(0, 3, len(QUERY)) * 1.0
    train, test = np.flatnonzero(QUERY < 4), np.flatnonzero(QUERY >= 4)
    scores = refit_scores(X, y, QUERY, kernel, "with_ties", ALPHAS, [(train, test)])[:, test]
    search = forms.RankRLSCV(
        ALPHAS, feature_map=kernel and Kernel(kernel), form=form, scoring="pairwise_accuracy"
    )
    held = (X[test], y[test], QUERY[test])
    search.fit(X[train], y[train], qid=QUERY[train], validation=held)
    assert_as_refits(search, "pairwise_accuracy", y[test], QUERY[test], scores)


def test_a_batch_chooses_as_single_fits():
    rng = np.random.default_rng(3)
    problems = [(rows_with_names(rng), rng.integers(0, 3, 60) * 1.0, QUERY) for _ in range(5)]
    search = RankRLSCV(ALPHAS, cv=3, scoring="pairwise_accuracy")
    for (X, y, query), model in zip(problems, fit_many(search, problems).models, strict=True):
        alone = RankRLSCV(ALPHAS, cv=3, scoring="pairwise_accuracy").fit(X, y, qid=query)
        assert model.best_score_ == alone.best_score_


@pytest.mark.filterwarnings("ignore:columns")
def test_close_rows_do_not_tie():
    """Rows that a model can tell apart keep their order, however near they are."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(20), 10)
    signal = np.tile(np.arange(10.0), 20)
    X = np.column_stack([rng.standard_normal(20)[query], 1e-7 * signal])
    for form, kernel in (("primal", None), ("dual", None), ("smaller", "laplacian")):
        search = forms.RankRLSCV(
            feature_map=kernel and Kernel(kernel),
            form=form,
            scoring="pairwise_accuracy",
            scale=False,
        )
        search.fit(X, signal, qid=query)
        assert (search.scores_ > 0.999).all()


def exact_kernel(X, kernel, gamma):
    rows = [[mpmath.mpf(float(x)) for x in row] for row in X]
    values = {
        "linear": lambda a, b: mpmath.fsum(x * z for x, z in zip(a, b, strict=True)),
        "rbf": lambda a, b: mpmath.exp(
            -gamma * mpmath.fsum((x - z) ** 2 for x, z in zip(a, b, strict=True))
        ),
    }
    return mpmath.matrix([[values[kernel](a, b) for b in rows] for a in rows])


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
@pytest.mark.parametrize(
    ("form", "kernel"), [("primal", "linear"), ("dual", "linear"), ("dual", "rbf")]
)
def test_the_tolerance_is_above_the_errors(form, kernel, pairs, graded):
    """Differences of held-out scores err by less than it, beside refits with 60 digits."""
    rng = np.random.default_rng(4)
    query, y = np.repeat(np.arange(3), 5), rng.integers(0, 3, 15) * 1.0
    X = np.hstack([rng.standard_normal((15, 3)), np.eye(15)])
    X *= 10.0 ** np.linspace(2, -2, X.shape[1]) if graded else 1.0
    data, one = checked_data(X, y, qid=query), Pairs(pairs)
    if kernel != "linear":
        data = RankingData(data.X, data.y, data.queries, feature_map=Kernel(kernel).fit(X))
    at = Coordinates.choose(data, [one], kernel=kernel != "linear", form=form, work=Work(path=True))
    total = at.statistics(one)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * 10.0 ** np.array([4, 0, -4, -9])
    held = leave_query_out(at.data, total.settings, ridge, alphas, lambda: total)
    ties = PathTies.of(at.data, one, ridge, alphas)
    with mpmath.workdps(60):
        K = exact_kernel(X, kernel, Fraction(1, X.shape[1]) if kernel == "rbf" else None)
        for train, test in leave_queries_out(query):
            L = mpmath.matrix(laplacian(y[train], query[train], pairs)[0].tolist())
            inner = mpmath.matrix([[K[int(i), int(j)] for j in train] for i in train])
            for model, alpha in enumerate(alphas):
                shifted = L * inner + mpmath.mpf(float(alpha)) * mpmath.eye(len(train))
                dual = mpmath.lu_solve(shifted, L * mpmath.matrix(y[train].tolist()))
                exact = [
                    mpmath.fsum(K[int(i), int(j)] * dual[t] for t, j in enumerate(train))
                    for i in test
                ]
                errors = [
                    float(mpmath.mpf(held[model, i]) - e) for i, e in zip(test, exact, strict=True)
                ]
                s = held[model, test]
                amplified = ties.largest / alpha * (ties.spread + np.ptp(s))
                tolerance = ties.rounding * (amplified + np.ptp(s) + np.abs(s).max())
                assert np.ptp(errors) <= tolerance / 2


@given(
    n=st.integers(0, 30),
    d=st.integers(0, 4),
    n_groups=st.integers(1, 3),
    dtype=st.sampled_from([np.float64, np.float32]),
    sparse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=90, deadline=None)
def test_first_equal_rows(n, d, n_groups, dtype, sparse, seed):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, 0.1], (max(n, 1), d)).astype(dtype)
    rows = rng.integers(0, len(X), n)
    groups, labels = rng.integers(0, n_groups, n), rng.integers(0, 2, n) * 1.0
    given = scipy.sparse.csr_array(X) if sparse else X
    found = first_equal_rows(given, rows, groups, [labels])
    expected = [
        next(
            j
            for j in range(n)
            if groups[j] == groups[i]
            and labels[j] == labels[i]
            and (X[rows[j]] == X[rows[i]]).all()
        )
        for i in range(n)
    ]
    np.testing.assert_array_equal(np.arange(n) if found is None else found, expected)


def joined(scores, offsets, order, amplification, spread, rounding):
    """Join ties, query by query and model by model."""
    out = scores.copy()
    for begin, end in itertools.pairwise(offsets):
        rows = order[begin:end]
        if len(rows) < 2 or not np.isfinite(scores[0, rows]).all():
            continue
        s = scores[:, rows]
        ranges = s.max(axis=1) - s.min(axis=1)
        apart = rounding * (amplification * (spread + ranges) + ranges + np.abs(s).max(axis=1))
        apart[~np.isfinite(s).all(axis=1)] = np.nan
        ascending = rows[np.lexsort((rows, s[0]))]
        cuts = np.flatnonzero(np.diff(scores[0, ascending]) > apart[0]) + 1
        for group in np.split(ascending, cuts):
            first = group.min()
            for m in range(len(scores)):
                near = group[np.abs(scores[m, group] - scores[m, first]) <= apart[m]]
                out[m, near if m else group] = scores[m, first]
    return out


@given(
    sizes=st.lists(st.integers(0, 12), max_size=5),
    n_models=st.integers(1, 4),
    n_threads=st.integers(1, 3),
    ordered=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=120, deadline=None)
def test_join_ties(sizes, n_models, n_threads, ordered, seed):
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *sizes])
    n = int(offsets[-1])
    order = rng.permutation(n)
    scores = rng.integers(0, 5, (n_models, n)) + 1e-9 * rng.integers(-3, 4, (n_models, n))
    if n and rng.random() < 0.3:
        scores[rng.integers(n_models), rng.integers(n)] = rng.choice([np.nan, np.inf])
    amplification = np.sort(10.0 ** rng.integers(0, 3, n_models))
    with np.errstate(invalid="ignore"):
        expected = joined(
            scores, offsets, np.arange(n) if ordered else order, amplification, 2.0, 1e-9 / 3
        )
    _core.join_ties(
        scores, offsets, None if ordered else order, amplification, 2.0, 1e-9 / 3, n_threads
    )
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_join_ties_of_many_scores(n_threads):
    """So many that they are shared among threads."""
    rng = np.random.default_rng(0)
    offsets, n_models = np.arange(0, 3601, 90), 40
    n = int(offsets[-1])
    scores = rng.integers(0, 40, (n_models, n)) + 1e-9 * rng.integers(-3, 4, (n_models, n))
    assert scores.size > 1 << 17
    amplification = np.sort(10.0 ** rng.integers(0, 3, n_models))
    expected = joined(scores, offsets, np.arange(n), amplification, 2.0, 1e-9 / 3)
    assert (expected != scores).any()
    _core.join_ties(scores, offsets, None, amplification, 2.0, 1e-9 / 3, n_threads)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("feature_map", [None, RandomNodes(7, random_state=0)])
def test_rows_of_one_list_that_nothing_tells_apart_have_the_score_0(feature_map):
    """Else the labels, which the rounding of a score depends on, would seem to be predicted."""
    rng = np.random.default_rng(1)
    X, y = np.full((7, 2), 0.3), np.round(rng.normal(size=7), 3)
    model = RankRLSCV(feature_map=feature_map).fit(X, y)
    assert not model.held_out_.any()
    assert (model.scores_ == 0.5).all()
