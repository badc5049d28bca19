"""What all classes that choose by held-out rows share: grids, tables, folds, validation sets."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.preprocessing import FunctionTransformer

from axes import drawn, every
from pairgram import (
    ELMRankCV,
    Kernel,
    Pairs,
    PairwiseELMCV,
    PointwiseELMCV,
    QueryKFold,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    fit_many,
    make_ranking,
)

CLASSES = {
    "RankRLSCV": RankRLSCV(pairs=["with_ties", "gain_difference"]),
    "RankRLSCV of a kernel": RankRLSCV(feature_map=[Kernel("rbf", gamma=g) for g in [0.1, 1.0]]),
    "PointwiseELMCV": PointwiseELMCV(n_nodes=8, activation="sigmoid", random_state=0),
    "PairwiseELMCV": PairwiseELMCV(
        feature_map=Kernel("linear"), pairs=["with_ties", "without_ties"]
    ),
    "ELMRankCV": ELMRankCV(
        feature_map=[RandomNodes(5, weight_range=(-r, r)) for r in (1, 3)], random_state=0
    ),
    "RankSVMCV": RankSVMCV(feature_map=[None, RandomNodes(5, random_state=0)]),
}
EXACT = [name for name in CLASSES if name not in ("ELMRankCV", "RankSVMCV")]
EACH = pytest.mark.parametrize("name", CLASSES)
COLUMNS = {
    "RankRLSCV": ["alpha", "pairs", "scale"],
    "RankRLSCV of a kernel": ["alpha", "pairs", "scale", "feature_map"],
    "PointwiseELMCV": ["C"],
    "PairwiseELMCV": ["C", "pairs"],
    "ELMRankCV": ["alpha", "C", "feature_map"],
    "RankSVMCV": ["C", "feature_map"],
}


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(12, (3, 9), 4, random_state=0, noise=1.0)
    return X, y, qid


def search(name, alphas, Cs, **parameters):
    """Return a search of the grids that its class has."""
    model = clone(CLASSES[name]).set_params(**parameters)
    grids = {"alphas": alphas, "Cs": Cs}
    return model.set_params(**{k: v for k, v in grids.items() if k in model.get_params()})


def axes(model):
    return [attribute for attribute in ("alphas_", "Cs_") if hasattr(model, attribute)]


# Grids --------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("cv", [None, 3])
def test_grids_stay_in_the_callers_order(name, cv, rows):
    X, y, qid = rows
    alphas, Cs = [0.3, 49.0, 0.01, 3.0], [3.0, 0.01, 0.3]
    given = search(name, alphas, Cs, cv=cv).fit(X, y, qid=qid)
    ascending = search(name, sorted(alphas), sorted(Cs), cv=cv).fit(X, y, qid=qid)
    values = [{"alphas_": alphas, "Cs_": Cs}[axis] for axis in axes(given)]
    at = np.ix_(*(np.argsort(axis) for axis in values))
    for axis, wanted in zip(axes(given), values, strict=True):
        assert getattr(given, axis).tolist() == wanted
        assert getattr(ascending, axis).tolist() == sorted(wanted)
    np.testing.assert_array_equal(given.scores_[at], ascending.scores_)
    if hasattr(given, "coef_path_"):
        np.testing.assert_array_equal(given.coef_path_[at], ascending.coef_path_)
    shape = (2 if name != "PointwiseELMCV" else 1, *map(len, values))
    for column, cells in given.cv_results_.items():
        assert len(cells) == np.prod(shape)
        if column == "params" or column == "param_feature_map":
            continue  # whose maps are clones
        found = np.asarray(cells, dtype=object if "range" in column else None)
        wanted = np.asarray(ascending.cv_results_[column], dtype=found.dtype)
        for one, other in zip(found.reshape(*shape, -1), wanted.reshape(*shape, -1), strict=True):
            np.testing.assert_array_equal(one[at], other)
    for axis in axes(given):
        assert getattr(given, f"{axis[:-2]}_") == getattr(ascending, f"{axis[:-2]}_")
    np.testing.assert_array_equal(given.coef_, ascending.coef_)


@pytest.mark.parametrize("name", [name for name in CLASSES if "kernel" not in name])
def test_equally_good_settings_are_the_largest_alpha_and_the_smallest_C_in_any_order(name):
    """Rows that every model orders as their labels do."""
    y, qid = np.tile(np.arange(1.0, 7.0), 6), np.repeat(np.arange(6), 6)
    rising = {"n_nodes": 1, "weight_range": (0.5, 0.6), "activation": "linear"}
    parameters = {
        "ELMRankCV": {"feature_map": RandomNodes(**rising)},
        "PointwiseELMCV": {"feature_map": RandomNodes(**rising, random_state=0)}
        | {key: getattr(PointwiseELMCV, key) for key in ("n_nodes", "activation")},
        "RankSVMCV": {"feature_map": [None, FunctionTransformer()]},
    }.get(name, {})
    alphas, Cs = [0.1, 1.0, 10.0], [1e-3, 1e-2, 0.1]
    for grids in zip(itertools.permutations(alphas), itertools.permutations(Cs), strict=True):
        model = search(name, *grids, cv=3, scoring="pairwise_accuracy", **parameters)
        model.fit(y[:, None], y, qid=qid)
        table = model.cv_results_
        assert set(table["mean_test_score"]) == set(table["rank_test_score"]) == {1}
        wanted = {"alpha": 10.0, "C": 1e-3}
        first = table["params"][0]  # of the first combination of other settings
        best = {key: wanted.get(key, value) for key, value in first.items()}
        assert table["params"][model.best_index_] == best
        assert all(getattr(model, f"{key}_") == value for key, value in best.items())


# Tables -------------------------------------------------------------------------------------------


def assert_table(model, name, n_splits):
    table = model.cv_results_
    splits = [f"split{k}_test_score" for k in range(n_splits)]
    means = ["mean_test_score", "std_test_score", "rank_test_score"]
    assert list(table) == ["params", *(f"param_{c}" for c in COLUMNS[name]), *splits, *means]
    assert len({len(column) for column in table.values()}) == 1
    for row, params in enumerate(table["params"]):
        assert list(params) == COLUMNS[name]
        for key, value in params.items():
            assert value is table[f"param_{key}"][row] or value == table[f"param_{key}"][row]
    scores = table["mean_test_score"] * (1 if model.scoring_.greater_is_better else -1)
    ranks = [1 + (scores > score).sum() for score in scores]
    np.testing.assert_array_equal(table["rank_test_score"], ranks)
    if n_splits:
        parts = np.array([table[split] for split in splits])
        np.testing.assert_allclose(table["std_test_score"], parts.std(axis=0), rtol=1e-12)
    best = table["params"][model.best_index_]
    assert table["rank_test_score"][model.best_index_] == 1
    assert table["mean_test_score"][model.best_index_] == model.best_score_
    for key, value in best.items():
        chosen = getattr(model, f"{key}_")
        if hasattr(value, "fit"):  # a caller may fit it again
            seed = {"random_state": None} if name == "ELMRankCV" else {}  # draws have their own
            assert chosen is not value
            assert chosen.get_params() | seed == value.get_params() | seed
        else:
            assert chosen is value or chosen == value


@EACH
@drawn(
    4,
    scoring=["pairwise_accuracy", "pairwise_squared_error"],
    held_out=["queries", "splits", "validation", "rows"],
)
def test_every_search_has_the_same_table(name, held_out, scoring, rows):
    X, y, qid = rows
    cv = {"splits": QueryKFold(4)}.get(held_out)
    model = search(name, [1.0, 0.01], [0.5, 2.0], cv=cv, scoring=scoring)
    if held_out == "rows":
        model.fit(X[:30], y[:30])
    else:
        held = (X[:20], y[:20], qid[:20]) if held_out == "validation" else None
        model.fit(X, y, qid=qid, validation=held)
    n_splits = {"splits": 4, "validation": 0}.get(held_out, 0 if name in EXACT else 5)
    assert_table(model, name, n_splits)


def test_leave_pair_out_has_no_standard_deviation(rows):
    X, y, _ = rows
    for name in EXACT:
        model = search(name, [1.0, 0.01], [0.5, 2.0], cv="leave-pair-out")
        if "pairs" in model.get_params():
            model.set_params(pairs="with_ties")
        model.fit(X[:15], y[:15])
        assert_table(model, name, 0)
        assert np.isnan(model.cv_results_["std_test_score"]).all()
        assert not np.isnan(model.cv_results_["mean_test_score"]).any()


def accuracy(y, scores):
    """The share of pairs in the right order, equal scores ½."""
    i, j = np.nonzero(y[:, None] > y)
    return np.mean((np.sign(scores[i] - scores[j]) + 1) / 2) if len(i) else np.nan


def msd(y, scores):
    """The mean of squared errors of differences over all pairs."""
    errors = (y[:, None] - y) - (scores[:, None] - scores)
    return (errors**2).mean()


METRICS = {"pairwise_accuracy": accuracy, "pairwise_squared_error": msd}


def of_queries(metric, y, scores, qid, v, c):
    """The values and the weights of all queries that have a value; rows of weight 0 are absent."""
    values, weights = [], []
    for query in np.unique(qid[v > 0]):
        rows = (qid == query) & (v > 0)
        value = METRICS[metric](y[rows], scores[rows])
        if rows.sum() > 1 and not np.isnan(value):
            values.append(value)
            weights.append(v[rows].mean() * c[rows][0])
    return np.array(values), np.array(weights)


def weights_of(rows, weighted):
    _, y, qid = rows
    rng = np.random.default_rng(0)
    v = rng.choice([0.0, 0.5, 1.0, 2.0], len(y)) if weighted else np.ones(len(y))
    c = rng.choice([0.5, 1.0, 3.0], qid.max() + 1)[qid] if weighted else np.ones(len(y))
    return v, c


@every(kernel=[None, "rbf"], weighted=[False, True], metric=METRICS)
def test_the_standard_deviation_over_queries_is_that_of_refits(metric, weighted, kernel, rows):
    X, y, qid = rows
    v, c = weights_of(rows, weighted)
    alphas = [10.0, 0.1, 1.0]
    model = RankRLSCV(alphas, feature_map=kernel and Kernel(kernel), scoring=metric)
    table = model.fit(X, y, qid=qid, sample_weight=v, query_weight=c).cv_results_
    for row, alpha in enumerate(alphas):
        scores = np.zeros(len(y))
        for query in np.unique(qid):
            rest = qid != query
            named = {"qid": qid[rest], "sample_weight": v[rest], "query_weight": c[rest]}
            one = RankRLS(alpha, feature_map=kernel and Kernel(kernel)).fit(
                X[rest], y[rest], **named
            )
            scores[~rest] = one.predict(X[~rest])
        values, weights = of_queries(metric, y, scores, qid, v, c)
        mean = np.average(values, weights=weights)
        np.testing.assert_allclose(table["mean_test_score"][row], mean, rtol=1e-8)
        deviation = np.sqrt(np.average((values - mean) ** 2, weights=weights))
        np.testing.assert_allclose(table["std_test_score"][row], deviation, rtol=1e-7)
        if not weighted:
            np.testing.assert_allclose(deviation, values.std(), rtol=1e-12)


@every(name=["RankRLS", "RankSVM"], weighted=[False, True], metric=METRICS)
def test_the_standard_deviation_over_splits_is_that_of_refits(name, metric, weighted, rows):
    X, y, qid = rows
    v, c = weights_of(rows, weighted)
    grid = [1.0, 0.1]
    folds = [(qid >= k, qid < k) for k in (3, 5)]  # of 3 and 5 queries, some in both
    splits = [tuple(map(np.flatnonzero, fold)) for fold in folds]
    make = {"RankRLS": (RankRLSCV, RankRLS), "RankSVM": (RankSVMCV, RankSVM)}[name]
    exact = {} if name == "RankRLS" else {"tol": 1e-9}
    model = make[0](grid, cv=splits, scoring=metric, **exact)
    table = model.fit(X, y, qid=qid, sample_weight=v, query_weight=c).cv_results_
    for row, value in enumerate(grid):
        parts, everything = [], []
        for train, test in splits:
            named = {"qid": qid[train], "sample_weight": v[train], "query_weight": c[train]}
            one = make[1](value, **exact).fit(X[train], y[train], **named)
            found = of_queries(metric, y[test], one.predict(X[test]), qid[test], v[test], c[test])
            parts.append(np.average(found[0], weights=found[1]))
            everything.append(np.array(found))
        for k, part in enumerate(parts):
            np.testing.assert_allclose(table[f"split{k}_test_score"][row], part, rtol=1e-6)
        np.testing.assert_allclose(table["std_test_score"][row], np.std(parts), rtol=1e-5)
        values, weights = np.hstack(everything)
        mean = np.average(values, weights=weights)  # over the queries of all splits
        np.testing.assert_allclose(table["mean_test_score"][row], mean, rtol=1e-6)


@EACH
def test_the_standard_deviation_of_a_validation_set_is_that_over_its_queries(name, rows):
    X, y, qid = rows
    held = make_ranking(9, (2, 7), 4, random_state=1, noise=1.0)
    model = search(name, [1.0], [0.5], scoring="pairwise_accuracy")
    model.fit(X, y, qid=qid, validation=held)
    scores = model.predict(held[0])
    ones = np.ones(len(held[1]))
    values, _ = of_queries("pairwise_accuracy", held[1], scores, held[2], ones, ones)
    np.testing.assert_allclose(model.best_score_, values.mean(), rtol=1e-12)
    found = model.cv_results_["std_test_score"][model.best_index_]
    np.testing.assert_allclose(found, values.std(), rtol=1e-9)


# Without cv ---------------------------------------------------------------------------------------


def n_splits_of(model):
    return sum(name.startswith("split") for name in model.cv_results_)


@EACH
@pytest.mark.parametrize(("n_queries", "n_folds"), [(12, 5), (4, 4), (2, 2)])
def test_without_cv_every_query_is_left_out_or_five_folds_of_queries(
    name, n_queries, n_folds, rows
):
    X, y, qid = (part[rows[2] < n_queries] for part in rows)
    assert len(np.unique(qid)) == n_queries
    grids = ([1.0, 0.01], [0.5, 2.0])
    model = search(name, *grids, scoring="pairwise_squared_error").fit(X, y, qid=qid)
    numbers = np.unique(qid)
    each = [(np.flatnonzero(qid != q), np.flatnonzero(qid == q)) for q in numbers]
    cv = each if name in EXACT else QueryKFold(n_folds)
    same = search(name, *grids, scoring="pairwise_squared_error", cv=cv).fit(X, y, qid=qid)
    assert n_splits_of(model) == (0 if name in EXACT else n_folds)
    np.testing.assert_allclose(model.scores_, same.scores_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-7)


@pytest.mark.parametrize("name", ["ELMRankCV", "RankSVMCV"])
@pytest.mark.parametrize(("n_rows", "n_folds"), [(30, 5), (10, 5), (9, 4), (5, 2), (4, 2)])
def test_folds_of_the_rows_of_one_query_hold_two_or_more(name, n_rows, n_folds):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, 3)), rng.permutation(n_rows) * 1.0
    model = search(name, [1.0], [0.5, 2.0], scoring="pairwise_squared_error").fit(X, y)
    cv = KFold(n_folds, shuffle=True, random_state=0)
    assert n_splits_of(model) == n_folds
    same = search(name, [1.0], [0.5, 2.0], scoring="pairwise_squared_error", cv=cv).fit(X, y)
    np.testing.assert_array_equal(model.scores_, same.scores_)


def flops(n_rows, width, pairs, n_refits):
    """Of refits without some rows: each reads all rows, or subtracts a few where pairs are kept."""
    read = n_rows if pairs == "with_ties" else n_rows * n_refits
    return width**2 * (read + 10.0 * width * n_refits)


@pytest.mark.parametrize(
    ("parameters", "several", "width"),
    [
        ({"pairs": "without_ties"}, False, 4),  # rows of one query
        ({"pairs": "without_ties", "feature_map": Kernel("rbf")}, False, "rows"),
        ({"pairs": "gain_difference", "feature_map": RandomNodes(7, random_state=0)}, False, 7),
        ({"pairs": ["with_ties", "without_ties"]}, False, 4),  # one way for all combinations
        ({"pairs": Pairs("without_ties", scope="global")}, True, 4),
        ({"pairs": Pairs("with_ties", scope="global")}, True, 4),
        (
            {"pairs": Pairs("label_difference", scope="global"), "feature_map": Kernel("rbf")},
            True,
            "rows",
        ),
    ],
    ids=str,
)
def test_refits_that_take_long_are_folds(set_limits, parameters, several, width, rows):
    X, y, qid = rows if several else (rows[0][:30], rows[1][:30], None)
    n_refits = len(np.unique(qid)) if several else len(y)
    pairs = getattr(parameters["pairs"], "kind", parameters["pairs"])
    pairs = pairs if isinstance(pairs, str) else "without_ties"
    needed = flops(len(y), len(y) if width == "rows" else width, pairs, n_refits)
    model = RankRLSCV([1.0, 0.1], scoring="pairwise_squared_error", **parameters)
    set_limits(refit_flops=needed)
    exact = clone(model).fit(X, y, qid=qid)
    assert n_splits_of(exact) == 0
    set_limits(refit_flops=np.nextafter(needed, 0))
    folds = clone(model).fit(X, y, qid=qid)
    assert n_splits_of(folds) == 5
    same = clone(model).set_params(cv=5).fit(X, y, qid=qid)
    for name, column in same.cv_results_.items():
        np.testing.assert_array_equal(folds.cv_results_[name], column)
    assert (folds.scores_ != exact.scores_).any()
    (one,) = fit_many(model, [(X, y, qid)]).models
    assert n_splits_of(one) == 5
    np.testing.assert_allclose(one.scores_, folds.scores_, rtol=1e-8)


@pytest.mark.parametrize(
    ("parameters", "several"),
    [
        ({"pairs": "with_ties"}, False),
        ({"pairs": None}, False),
        ({"pairs": "with_ties", "feature_map": Kernel("rbf")}, False),
        *(
            ({"pairs": pairs}, True)
            for pairs in ("with_ties", "without_ties", "gain_difference", None)
        ),
        ({"pairs": Pairs("without_ties", weighting="queries"), "feature_map": Kernel("rbf")}, True),
        ({"pairs": Pairs(None, scope="global")}, True),
        ({"pairs": Pairs("with_ties", scope="global"), "feature_map": Kernel("rbf")}, True),
    ],
    ids=str,
)
def test_what_needs_no_refit_is_left_out_however_long_the_data(
    set_limits, parameters, several, rows
):
    X, y, qid = rows if several else (rows[0][:30], rows[1][:30], None)
    set_limits(refit_flops=0)
    assert n_splits_of(RankRLSCV([1.0, 0.1], **parameters).fit(X, y, qid=qid)) == 0


# Validation sets ----------------------------------------------------------------------------------


@EACH
def test_a_validation_set_may_be_of_one_query_where_fit_has_no_ids(name, rows):
    X, y, _ = rows
    model = search(name, [1.0], [1.0], scoring="pairwise_accuracy")
    model.fit(X[:40], y[:40], validation=[X[40:], y[40:]])
    expected = accuracy(y[40:], model.predict(X[40:]))
    np.testing.assert_allclose(model.best_score_, expected, rtol=1e-12)
    assert not model.uses_qid_


def test_the_deviation_leaves_out_splits_without_a_value():
    X, y, qid = make_ranking(12, 6, 4, random_state=0)
    tied = np.where(qid == 0, 1.0, y)  # no pair of query 0 can be scored
    search = RankRLSCV([1.0], cv=QueryKFold(12), scoring="pairwise_accuracy")
    table = search.fit(X, tied, qid=qid).cv_results_
    parts = np.array([table[f"split{k}_test_score"][0] for k in range(12)])
    assert np.isnan(parts[0]) and not np.isnan(parts).all()
    np.testing.assert_allclose(table["std_test_score"], [np.nanstd(parts)], rtol=1e-12)


def test_linear_nodes_are_held_out_as_exactly_as_their_inputs():
    X, y, _ = make_ranking(1, 30, 4, random_state=0)
    many = PairwiseELMCV([0.1, 1.0], pairs="without_ties", n_nodes=1000, random_state=0).fit(X, y)
    assert "split0_test_score" not in many.cv_results_


@pytest.mark.parametrize("estimator", [RankRLSCV([1.0, 10.0]), RankRLSCV([1.0, 10.0], cv=2)])
def test_an_error_of_one_problem_leaves_the_others(estimator):
    class Omega:
        def __call__(self, a, b):
            if np.max(a) > 50:
                raise ValueError("too large")
            return np.abs(a - b) + 0.0

    X, y, qid = make_ranking(4, 8, 3, random_state=0)
    estimator = clone(estimator).set_params(pairs=Omega())
    with pytest.warns(FitFailedWarning, match="key 1: ValueError: too large"):
        batch = fit_many(estimator, [(X, y, qid), (X, y + 100, qid), (X, y, qid)])
    assert [model is None for model in batch.models] == [False, True, False]


def test_groups_go_to_splitters_that_take_them():
    X, y, qid = make_ranking(6, 8, 3, random_state=0)
    before = list(warnings.filters)
    for cv in (GroupKFold(3), KFold(3), ShuffleSplit(2, random_state=0), QueryKFold(3)):
        search = RankRLSCV([1.0], cv=cv).fit(X, y, qid=qid)
        assert len([name for name in search.cv_results_ if name.startswith("split")]) >= 2
    assert warnings.filters == before
    expected = RankRLSCV([1.0], cv=list(GroupKFold(3).split(X, y, qid))).fit(X, y, qid=qid)
    given = RankRLSCV([1.0], cv=GroupKFold(3)).fit(X, y, qid=qid)
    assert given.best_score_ == expected.best_score_
