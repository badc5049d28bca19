"""Estimators that are fitted to tables, beside the same estimators on arrays."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import pairgram as pg
from axes import every
from parts.data import mix
from parts.model_selection import TableFolds
from parts.solvers import statistics_of
from parts.support import on_threads
from parts.tables import GivenTable
from row_value import inputs_of, row_value
from table_sources import cut_table, make_rows

pytestmark = pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")

ROWS = make_rows()
BORDERS = (3, 3, 60, 61, 300)
ENDS = (1, 2, 59, 100, 200, 299, 301)


def tables(rows=ROWS, **names):
    """The same rows in one block, and cut at many places."""
    named = {"label": "label", "qid": "query", "features": rows.names} | names
    named = {name: value for name, value in named.items() if value is not None}
    frame = rows.frame
    return cut_table(frame, [], **named), cut_table(frame, BORDERS, ENDS, **named)


def close(found, wanted, tolerance):
    """Compare in the norm, which rounding errors of the solution follow."""
    assert np.linalg.norm(found - wanted) <= tolerance * np.linalg.norm(wanted)


def on_arrays(model, rows=ROWS, weight=False, qid=True):
    weight = rows.weight if weight else None
    return clone(model).fit(rows.X, rows.y, qid=rows.qid if qid else None, sample_weight=weight)


PRIOR = FrozenEstimator(LinearRegression().fit(ROWS.X, ROWS.y))
# What `tests/roads` does not give to tables.
RANK_RLS = {
    "plain": {},
    "weights of a prior": {"prior": np.arange(4.0)},
    "prior": {"prior": PRIOR},
    "prior with inputs": {"prior": PRIOR, "feature_map": "standard"},
    "nodes": {"feature_map": pg.RandomNodes(20, random_state=0), "alpha": 10.0},
    "standard nodes": {
        "feature_map": row_value("standard", pg.RandomNodes(20, random_state=0)),
        "alpha": 10.0,
        "prior": PRIOR,
    },
    "waves": {"feature_map": pg.RandomFourier(20, gamma=0.1, random_state=0), "alpha": 10.0},
}


@every(weighted=[False, True], name=RANK_RLS)
def test_rank_rls(name, weighted):
    model = pg.RankRLS(**({"alpha": 3.0} | RANK_RLS[name]))
    wanted = on_arrays(model, weight=weighted)
    fits = [clone(model).fit(table) for table in tables(weight="w" if weighted else None)]
    for fitted in fits:
        close(fitted.coef_, wanted.coef_, 1e-10)
        scores = fitted.predict(tables()[0])
        np.testing.assert_allclose(scores, wanted.predict(ROWS.X), rtol=1e-9, atol=1e-9)
        assert fitted.uses_qid_ and fitted.form_ == "primal"
        assert list(fitted.feature_names_in_) == ROWS.names
    if "prior" not in name and wanted._column_sums is not None:
        shares = [one.column_weights()["share"] for one in (fits[1], wanted)]
        np.testing.assert_allclose(*shares, rtol=1e-8, atol=1e-8)


@given(
    st.lists(st.integers(0, len(ROWS.y)), max_size=6),
    st.sets(st.integers(1, len(ROWS.y) - 1), max_size=6),
    st.sampled_from(["with_ties", "without_ties", "gain_difference", "label_difference"]),
    st.sampled_from(["pairs", "queries"]),
    st.sampled_from([np.float64, np.float32]),
    st.booleans(),
)
@settings(max_examples=25)
def test_statistics_do_not_depend_on_the_partitions(borders, ends, pairs, weighting, dtype, scale):
    rows = make_rows(dtype=dtype)
    model = pg.RankRLS(pairs=pg.Pairs(pairs, weighting=weighting), scale=scale, alpha=1.0)
    named = {"label": "label", "qid": "query", "features": rows.names, "weight": "w"}
    table = cut_table(rows.frame, borders, ends, **named)
    tolerance = 1e-12 if dtype is np.float64 else 1e-6
    spec = model._spec()
    (pair_settings,) = spec.settings
    blocks = GivenTable(clone(model), table, spec.rows).fitted(spec.rows.ways[0])
    totals = statistics_of(table, [blocks.step], [pair_settings], None)
    found = totals[0, 0, 0].gram
    wanted = pg.Pairgram(pairs=pg.Pairs(pairs, weighting=weighting))
    wanted.update(rows.X, rows.y, qid=rows.qid, sample_weight=rows.weight)
    close(found.G, wanted.G, tolerance)
    close(found.g, wanted.g, tolerance)
    assert found.n_rows == len(rows.y) and found.n_queries == len(np.unique(rows.qid))
    largest = np.linalg.eigvalsh(wanted.G)[-1]
    coef = clone(model).fit(table).coef_
    close(coef, on_arrays(model, rows, weight=True).coef_, tolerance * max(10, largest))


def test_pairs_of_rows_that_are_partitions_of_their_own():
    rows = make_rows(n_queries=3)
    model = pg.RankRLS(pairs=pg.Pairs(scope="global"))
    wanted = on_arrays(model, rows, qid=False)
    frame = rows.frame
    table = cut_table(frame, range(1, frame.num_rows), label="label", features=rows.names)
    close(clone(model).fit(table).coef_, wanted.coef_, 1e-10)


SEARCHES = {
    "plain": {},
    "alphas": {"alphas": [1e-2, 10.0, 1.0]},
    "lists": {"pairs": ["with_ties", "without_ties", "gain_difference"], "scale": [False, True]},
    "list of inputs": {"feature_map": [None, "standard", "quantile"]},
    "metric": {"scoring": "pairwise_accuracy"},
    "queries": {"pairs": pg.Pairs(weighting="queries")},
    "prior": {"prior": PRIOR},
    "weights of a prior": {"prior": np.arange(4.0), "scale": [False, True]},
    "targets": {"pairs": ["with_ties", pg.Pairs(target="gain")]},
    "nodes": {"feature_map": row_value("standard", pg.RandomNodes(20, random_state=0))},
    "err": {"scoring": "err"},
}


def compare_searches(found, wanted, tolerance=1e-12):
    np.testing.assert_allclose(found.scores_, wanted.scores_, rtol=0, atol=tolerance)
    for name in ("alpha_", "pairs_", "scale_", "best_index_", "form_"):
        assert getattr(found, name) == getattr(wanted, name) or name == "alpha_"
    np.testing.assert_allclose(found.alphas_, wanted.alphas_, rtol=1e-10)
    np.testing.assert_allclose(found.alpha_, wanted.alpha_, rtol=1e-10)
    assert found.cv_results_.keys() == wanted.cv_results_.keys()
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_allclose(
            found.cv_results_[name], wanted.cv_results_[name], rtol=0, atol=10 * tolerance
        )
    close(found.coef_path_, wanted.coef_path_, 1e-6)
    close(found.coef_, wanted.coef_, 1e-9)


@every(weighted=[False, True], name=SEARCHES)
def test_a_search_that_holds_every_query_out(name, weighted):
    model = pg.RankRLSCV(**SEARCHES[name])
    wanted = on_arrays(model, weight=weighted)
    _, table = tables(weight="w" if weighted else None)
    compare_searches(clone(model).fit(table), wanted)


@every(name=[*SEARCHES, "positive"])
def test_a_search_with_a_validation_table(name):
    model = pg.RankRLSCV(**(SEARCHES | {"positive": {"constraint": pg.Positive()}})[name])
    held = make_rows(seed=5)
    wanted = clone(model).fit(ROWS.X, ROWS.y, qid=ROWS.qid, validation=(held.X, held.y, held.qid))
    compare_searches(clone(model).fit(tables()[1], validation=tables(held)[1]), wanted)


FOLDS = {
    "int": 3,
    "none": None,
    "splitter": pg.QueryKFold(4),
    "shuffled": pg.QueryKFold(4, shuffle=True, random_state=7),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folds_are_those_of_the_same_rows_in_memory(name):
    cv, weighted = FOLDS[name], name in ("none", "splitter")
    for model in (
        pg.RankRLSCV(alphas=[0.1, 100.0], cv=cv, constraint=pg.Positive()),
        pg.RankRLSCV(alphas=[0.1, 100.0], cv=cv or 5),
        pg.RankSVMCV([0.01], cv=cv),
    ):
        wanted = on_arrays(model, weight=weighted)
        _, table = tables(weight="w" if weighted else None)
        found = clone(model).fit(table)
        assert found.cv_results_.keys() == wanted.cv_results_.keys()
        for column, values in wanted.cv_results_.items():
            if column.endswith("score"):
                np.testing.assert_allclose(found.cv_results_[column], values, rtol=1e-9)
        close(found.coef_, wanted.coef_, 1e-9)


def test_folds_of_a_seed():
    seen = []
    for table, cv in zip(
        [*tables(), tables()[0]],
        [*[pg.QueryKFold(4, shuffle=True, random_state=7)] * 2, pg.QueryKFold(4)],
        strict=True,
    ):
        table.reduce(_Folds(TableFolds.of(table, cv), found := []))
        seen.append(sorted(found))
    assert seen[0] == seen[1] != seen[2]
    assert len({fold for _, fold in seen[0]}) == 4
    wanted = [(qid, number * 4 // 40) for number, qid in enumerate(dict.fromkeys(ROWS.qid))]
    assert seen[2] == sorted(wanted)


def test_rows_that_come_in_another_order_have_no_folds():
    one = tables()[0]
    folds = TableFolds.of(one, 4)
    turned = np.argsort(-ROWS.qid, kind="stable")
    frame = ROWS.frame.take(turned)
    other = cut_table(frame, [], label="label", qid="query", features=ROWS.names)
    assert folds.places.tolist() == TableFolds.of(one, pg.QueryKFold(4)).places.tolist()
    with pytest.raises(ValueError, match="another order"):
        other.reduce(_Folds(folds, []))


class _Folds:
    needs_queries, reads_features = True, False

    def __init__(self, folds, seen):
        self.folds, self.seen = folds, seen

    def block(self, rows):
        folds = self.folds.of_runs(rows).tolist()
        self.seen += zip(rows.ids.tolist(), folds, strict=True)
        return 0

    def join(self, first, second):
        return 0


def test_pairs_of_all_rows_are_judged_by_folds():
    model = pg.RankRLSCV(
        pairs=pg.Pairs(scope="global"), alphas=[1.0, 100.0], scoring="pairwise_accuracy"
    )
    found = [clone(model).fit(table) for table in tables()]
    assert "split4_test_score" in found[0].cv_results_
    np.testing.assert_allclose(found[0].scores_, found[1].scores_, rtol=1e-10)
    held = make_rows(seed=5)
    wanted = clone(model).fit(ROWS.X, ROWS.y, qid=ROWS.qid, validation=(held.X, held.y, held.qid))
    for table, validation in zip(tables(), tables(held), strict=True):
        compare_searches(clone(model).fit(table, validation=validation), wanted)


def test_a_machine_with_a_validation_table():
    model, held = pg.PointwiseELMCV(n_nodes=20, random_state=0), make_rows(seed=5)
    wanted = clone(model).fit(ROWS.X, ROWS.y, qid=ROWS.qid, validation=(held.X, held.y, held.qid))
    for table, other in zip(tables(), tables(held), strict=True):
        found = clone(model).fit(table, validation=other)
        np.testing.assert_allclose(found.scores_, wanted.scores_, atol=1e-12)
        close(found.coef_, wanted.coef_, 1e-6)


def test_a_prior_of_pairs_of_all_rows():
    model = pg.RankRLS(
        1.0, pairs=pg.Pairs(scope="global"), feature_map="standard", prior=np.arange(4.0)
    )
    for table in tables():
        close(clone(model).fit(table).coef_, on_arrays(model).coef_, 1e-6)


@pytest.mark.parametrize("model", [pg.RankRLS(alpha=1.0), pg.RankRLSCV(alphas=[0.1, 1.0])])
def test_landmarks_are_drawn_by_the_numbers_of_rows(model):
    model.set_params(
        feature_map=make_pipeline(pg.Standard(), pg.Nystroem(n_components=15, random_state=0))
    )
    one, cut = [clone(model).fit(table) for table in tables(weight="w")]
    close(cut.coef_, one.coef_, 1e-8)
    Z = one.feature_map_[-1].transform(inputs_of(one).transform(ROWS.X))
    linear = clone(model).set_params(feature_map=None)
    linear.fit(Z, ROWS.y, qid=ROWS.qid, sample_weight=ROWS.weight)
    close(one.coef_, linear.coef_, 1e-8)
    close(one.predict(tables()[0]), Z @ linear.coef_, 1e-8)


@pytest.mark.parametrize(
    "named",
    [{"feature_map": "quantile"}, {"feature_map": pg.Nystroem(n_components=15, random_state=0)}],
)
def test_rows_are_drawn_by_the_hashes_of_their_numbers(set_limits, named):
    """What is found from a sample does not depend on the partitions."""
    set_limits(sample_rows=60)
    drawn = np.sort(np.argsort(mix(np.arange(len(ROWS.y), dtype=np.uint64)))[:60])
    for table in tables():
        numbers, rows = table.sample(60)
        np.testing.assert_array_equal(numbers, drawn)
        np.testing.assert_array_equal(rows.X, ROWS.X[drawn])
        np.testing.assert_array_equal(rows.y, ROWS.y[drawn])
    one, cut = [pg.RankRLS(**named).fit(table) for table in tables()]
    close(cut.coef_, one.coef_, 1e-9)
    if inputs_of(one) is not None:
        np.testing.assert_array_equal(
            inputs_of(one).transform(ROWS.X), inputs_of(cut).transform(ROWS.X)
        )
        sample = pg.RankRLS(**named).fit(ROWS.X[drawn], ROWS.y[drawn], qid=ROWS.qid[drawn])
        np.testing.assert_array_equal(
            inputs_of(one).transform(ROWS.X), inputs_of(sample).transform(ROWS.X)
        )


def objective(model, coef, Z, offset=0.0):
    """½ ‖w‖² + C Σ v_i v_j max(0, 1 − w·(z_i − z_j))² over the preference pairs."""
    scores, total = Z @ coef + offset, 0.0
    for name in np.unique(ROWS.qid):
        mine = ROWS.qid == name
        y, s, v = ROWS.y[mine], scores[mine], ROWS.weight[mine]
        gaps = np.maximum(0, 1 - (s[:, None] - s[None, :]))
        loss = gaps**2 if model.loss == "squared_hinge" else gaps
        total += (loss * np.outer(v, v) * (y[:, None] > y[None, :])).sum()
    return 0.5 * coef @ coef + model.C * total


@pytest.mark.parametrize(
    "named",
    [
        {"feature_map": pg.RandomNodes(20, random_state=0)},
        {"prior": np.arange(4.0) / 10},
        {"prior": PRIOR},
        {"tol": 1e-9},
    ],
    ids=["nodes", "weights of a prior", "prior", "exact"],
)
def test_rank_svm(named):
    model = pg.RankSVM(**({"C": 0.01, "tol": 1e-6} | named))
    wanted = on_arrays(model, weight=True)
    for table in tables(weight="w"):
        found = clone(model).fit(table)
        if "prior" not in named:
            Z = ROWS.X if found.feature_map_ is None else found.feature_map_.transform(ROWS.X)
            mine = objective(found, found.coef_, Z)
            assert mine == pytest.approx(objective(wanted, wanted.coef_, Z), rel=1e-8)
        assert found.history_["objective"][-1] == pytest.approx(
            wanted.history_["objective"][-1], rel=1e-8
        )
        close(found.predict(tables()[0]), wanted.predict(ROWS.X), 1e-4)


@pytest.mark.parametrize(
    "named", [{}, {"feature_map": [None, "standard"], "Cs": [0.1]}, {"Cs": [1e-3, 1.0, 1e-2]}]
)
def test_rank_svm_cv_with_a_validation_table(named):
    model = pg.RankSVMCV(tol=1e-4, **named)
    held = make_rows(seed=5)
    wanted = clone(model).fit(ROWS.X, ROWS.y, qid=ROWS.qid, validation=(held.X, held.y, held.qid))
    validation = tables(held)[1]
    found = clone(model).fit(tables()[1], validation=validation)
    np.testing.assert_allclose(found.Cs_, wanted.Cs_, rtol=1e-10)
    np.testing.assert_allclose(found.scores_, wanted.scores_, atol=2e-3)
    assert found.cv_results_.keys() == wanted.cv_results_.keys()
    own = pg.evaluate("ndcg@10", held.y, found.predict(validation), held.qid)["ndcg@10"]
    assert found.best_score_ == pytest.approx(own, abs=1e-9)
    assert found.C_ in found.Cs_


@pytest.mark.parametrize(
    "model",
    [
        pg.RankRLS(),
        pg.RankRLSCV(feature_map="quantile"),
        pg.RankSVM(C=0.1),
        pg.RankRLS(feature_map=pg.Nystroem(n_components=10, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_same_bits_in_every_run_and_for_any_number_of_threads(model):
    _, table = tables(weight="w")
    runs = on_threads((1, 2, 2), lambda: clone(model).fit(table))
    for other in runs[1:]:
        np.testing.assert_array_equal(other.coef_, runs[0].coef_)


def test_a_table_of_one_query():
    rows = make_rows(n_queries=1, shortest=50, longest=51)
    wanted = on_arrays(pg.RankRLS(), rows)
    named = {"label": "label", "features": rows.names}
    for table in (
        cut_table(rows.frame, [10, 20], [5, 15], qid="query", **named),
        cut_table(rows.frame, range(1, 50), qid="query", **named),
    ):
        close(clone(wanted).fit(table).coef_, wanted.coef_, 1e-10)


def test_row_of_batches_without_weight():
    """A partition whose rows all have weight 0 adds nothing, not even to scales."""
    rows = make_rows()
    rows.weight[:100] = 0
    rows.X[:100] *= 1e6
    named = {"label": "label", "qid": "query", "features": rows.names, "weight": "w"}
    for inputs in ("standard", "minmax", "quantile"):
        model = pg.RankRLS(feature_map=inputs)
        wanted = on_arrays(model, rows, weight=True)
        found = clone(model).fit(cut_table(rows.frame, [100, 110], **named))
        close(found.coef_, wanted.coef_, 1e-9)


def test_scores_that_are_rounding_error_count_as_such_in_every_block():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 10)
    X = rng.normal(size=(400, 3))
    X[:, 2] = np.where(qid == 0, 100 * X[:, 2], 0.0)  # which varies in one query alone
    labels = X @ [1.0, 0.5, 0.3] + rng.normal(size=400)
    frame = pa.table({f"f{k}": X[:, k] for k in range(3)} | {"label": labels, "query": qid})
    search = pg.RankRLSCV([1e2, 1.0, 1e-9], scoring="kendall")
    named = {"label": "label", "qid": "query", "features": ["f0", "f1", "f2"]}
    for table in (cut_table(frame, [], **named), cut_table(frame, (100, 200, 300), **named)):
        scores = clone(search).fit(table).scores_
        assert np.isnan(scores).tolist() == [False, False, True]
