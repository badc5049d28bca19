"""Cross: the products, and every fit that never makes them, against products that are made."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

import pairgram as pg
from axes import every
from fuzz.forge import Tensor, pack, parse
from parts.support import on_threads
from row_value import row_value

LEFT, RIGHT, KEPT = [1, 3, 4], [0, 5, 6, 7], [2]
PAIRS = ("with_ties", "without_ties", "gain_difference", "label_difference", "clicks", None)
ALPHAS = 10.0 ** np.arange(-2, 5)


class Lists:
    """Rows of which the left columns are the same within a query."""

    def __init__(self, sizes, seed=0, dtype=np.float64):
        rng = np.random.default_rng(seed)
        self.qid = np.repeat(rng.permutation(len(sizes)), sizes)
        X = rng.normal(size=(len(self.qid), 8))
        X[:, LEFT] = rng.normal(size=(len(sizes), len(LEFT)))[self.qid]
        truth = rng.normal(size=(len(LEFT), len(RIGHT)))
        scores = np.einsum("na,ab,nb->n", X[:, LEFT], truth, X[:, RIGHT]) + X[:, 2]
        self.y = np.digitize(scores, [-1.0, 0.5, 2.0]).astype(float)
        self.weight = rng.choice([0.0, 0.5, 1.0, 2.0], len(self.qid))
        self.X = X.astype(dtype)

    @property
    def labelled(self):
        return {"X": self.X, "y": self.y, "qid": self.qid}


def explicit(X, left=LEFT, right=RIGHT, kept=KEPT):
    """Return the products of a row, one after the other."""
    rows = []
    for row in X:
        sides = [1.0, *row[left]]
        rows.append([*row[kept], *(u * v for u in sides for v in row[right])])
    return np.array(rows, dtype=X.dtype)


def cross(**changed):
    return pg.Cross(**{"left": LEFT, "right": RIGHT, "keep": KEPT, **changed})


@pytest.fixture(scope="module")
def lists():
    return Lists(np.random.default_rng(1).integers(1, 30, 25))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(lists, dtype):
    X = lists.X.astype(dtype)
    made = cross().fit_transform(X)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, explicit(X))


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=12),
    st.sampled_from(PAIRS),
    st.sampled_from(["pairs", "documents", "queries"]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_fits_are_those_of_products(sizes, pairs, weighting, weighted, seed):
    lists = Lists(sizes, seed)
    weight = lists.weight if weighted else None
    given = {"y": lists.y, "qid": lists.qid, "sample_weight": weight}
    settings = {"pairs": pg.Pairs(pairs, weighting=weighting)}
    H = explicit(lists.X)
    model, other = pg.RankRLS(1.0, feature_map=cross(), **settings), None
    try:
        other = pg.RankRLS(1.0, **settings).fit(H, **given)
    except ValueError as error:  # no pair counts
        with pytest.raises(ValueError, match=str(error)[:20]):
            model.fit(lists.X, **given)
        return
    model.fit(lists.X, **given)
    np.testing.assert_allclose(
        model.coef_, other.coef_, atol=1e-10 * max(1.0, np.abs(other.coef_).max())
    )
    np.testing.assert_allclose(model.predict(lists.X), other.predict(H), atol=1e-9)


@every(sizes=[(1, 12), (20, 60)], pairs=PAIRS)
def test_held_out_scores_are_those_of_products(pairs, sizes):
    lists = Lists(np.random.default_rng(2).integers(*sizes, 30), seed=3)
    given = {"y": lists.y, "qid": lists.qid, "sample_weight": lists.weight}
    settings = {"alphas": ALPHAS, "pairs": pairs}
    model = pg.RankRLSCV(feature_map=cross(), **settings).fit(lists.X, **given)
    other = pg.RankRLSCV(**settings).fit(explicit(lists.X), **given)
    np.testing.assert_allclose(model.held_out_, other.held_out_, atol=1e-8)
    np.testing.assert_allclose(model.scores_, other.scores_, atol=1e-9)
    assert model.alpha_ == other.alpha_


@pytest.mark.filterwarnings("ignore:settings are chosen by")
@pytest.mark.parametrize("rows", [0.0, 1e18], ids=["by refits", "by rows"])
def test_groups_of_queries_are_held_out_together(lists, set_limits, rows):
    set_limits(group_rows=rows)
    groups = lists.qid // 20  # some of more queries than are projected at once
    given = {"y": lists.y, "qid": lists.qid, "groups": groups}
    settings = {"alphas": ALPHAS}
    model = pg.RankRLSCV(feature_map=cross(), **settings).fit(lists.X, **given)
    for group in np.unique(groups):
        rest, own = groups != group, groups == group
        refit = pg.RankRLS(model.alpha_, feature_map=cross()).fit(
            lists.X[rest], lists.y[rest], qid=lists.qid[rest]
        )
        ours, theirs = model.held_out_[own], refit.predict(lists.X[own])
        for query in np.unique(lists.qid[own]):
            of_query = lists.qid[own] == query
            np.testing.assert_allclose(
                ours[of_query] - ours[of_query][0],
                theirs[of_query] - theirs[of_query][0],
                atol=1e-8,
            )


def test_left_side_that_varies_within_queries(lists):
    rng = np.random.default_rng(4)
    X = rng.normal(size=lists.X.shape)
    given = {"y": lists.y, "qid": lists.qid}
    model = pg.RankRLSCV(ALPHAS, feature_map=cross()).fit(X, **given)
    other = pg.RankRLSCV(ALPHAS).fit(explicit(X), **given)
    np.testing.assert_allclose(model.scores_, other.scores_, atol=1e-9)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)


def test_one_row_that_differs_is_seen(lists):
    X = lists.X.copy()
    row = np.flatnonzero(np.bincount(lists.qid)[lists.qid] > 5)[3]
    X[row, LEFT[1]] += 1.0
    model = pg.RankRLS(feature_map=cross()).fit(X, lists.y, qid=lists.qid)
    other = pg.RankRLS().fit(explicit(X), lists.y, qid=lists.qid)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-10)


def test_a_side_may_be_mapped_before(lists):
    nodes = pg.RandomFourier(5, random_state=0)
    before = ColumnTransformer([("left", nodes, LEFT), ("right", "passthrough", RIGHT)])
    products = pg.Cross(slice(5), slice(5, None))
    model = make_pipeline(before, pg.RankRLS(feature_map=products))
    model.fit(lists.X, lists.y, rankrls__qid=lists.qid)
    u = np.c_[np.ones(len(lists.X)), nodes.fit_transform(lists.X[:, LEFT])]
    H = (u[:, :, None] * lists.X[:, RIGHT][:, None]).reshape(len(u), -1)
    other = pg.RankRLS().fit(H, lists.y, qid=lists.qid)
    np.testing.assert_allclose(model.predict(lists.X), other.predict(H), atol=1e-8)


@pytest.mark.parametrize("of", [slice(None, -2), slice(-4, -2), slice(1, None, -1), slice(0, 2)])
def test_slices_are_those_of_python(of):
    X = np.arange(12.0).reshape(3, 4)
    chosen = pg.Cross(of, slice(-2, None)).fit(X)
    assert chosen.left_.tolist() == list(range(4))[of]
    assert chosen.right_.tolist() == [2, 3]


def test_statistics_tables_and_svm(lists, tmp_path):
    order = np.argsort(lists.qid, kind="stable")
    X, y, qid = lists.X[order], lists.y[order], lists.qid[order]
    model = pg.RankRLS(2.0, feature_map=cross()).fit(X, y, qid=qid)
    half = len(y) // 2
    half += int(np.argmax(qid[half:] != qid[half - 1]))
    fitted = clone(cross()).fit(X)
    total = pg.Pairgram.from_rows(X[:half], y[:half], qid=qid[:half], feature_map=fitted)
    total += pg.Pairgram.from_rows(X[half:], y[half:], qid=qid[half:], feature_map=fitted)
    np.testing.assert_allclose(total.solve(2.0), model.coef_, atol=1e-10)

    names = [f"c{j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, qid=qid)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    table = pg.scan(tmp_path / "rows.parquet", label="y", qid="qid")
    named = pg.Cross([f"c{j}" for j in LEFT], [f"c{j}" for j in RIGHT], keep="c2")
    of_table = pg.RankRLS(2.0, feature_map=named).fit(table)
    np.testing.assert_allclose(of_table.coef_, model.coef_, atol=1e-9)
    of_frame = pg.RankRLS(2.0, feature_map=named).fit(frame[names], y, qid=qid)
    np.testing.assert_allclose(of_frame.coef_, model.coef_, atol=1e-12)

    for rows in ({"X": frame[names], "y": y, "qid": qid}, {"X": table}):
        total = pg.Pairgram.from_rows(**rows, feature_map=named)
        np.testing.assert_allclose(total.solve(2.0), model.coef_, atol=1e-9)

    svm = pg.RankSVM(0.1, feature_map=cross(), tol=1e-10).fit(X, y, qid=qid)
    other = pg.RankSVM(0.1, tol=1e-10).fit(explicit(X), y, qid=qid)
    np.testing.assert_allclose(svm.coef_, other.coef_, atol=1e-6)

    folds = pg.RankRLSCV(ALPHAS, cv=pg.QueryKFold(3), feature_map=cross()).fit(X, y, qid=qid)
    others = pg.RankRLSCV(ALPHAS, cv=pg.QueryKFold(3)).fit(explicit(X), y, qid=qid)
    np.testing.assert_allclose(folds.scores_, others.scores_, atol=1e-9)


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", "gain_difference"])
def test_dependent_columns_of_float32_rows_are_held_out(pairs):
    """Queries have more rows than the right side has columns: categories, and a sum of two."""
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(12), 60)
    people, things = rng.normal(size=(12, 3))[qid], rng.normal(size=(len(qid), 8))
    things[:, :5] = np.eye(5)[rng.integers(0, 5, len(qid))]
    things[:, 7] = things[:, 5] + things[:, 6]
    X = np.hstack([people, things]).astype(np.float32)
    y = np.round(people[:, 0] * things[:, 0] + things[:, 7] + rng.normal(size=len(qid)))
    settings = {"pairs": pairs, "feature_map": pg.Cross(slice(0, 3), slice(3, 11))}
    search = pg.RankRLSCV([1.0, 100.0], **settings)
    held, scores = search.fit(X, y, qid=qid).held_out_, search.scores_
    search.fit(X.astype(np.float64), y, qid=qid)
    np.testing.assert_allclose(held, search.held_out_, rtol=0, atol=1e-3)
    np.testing.assert_allclose(scores, search.scores_, atol=1e-2)
    for query in (0, 7):
        rest, own = qid != query, qid == query
        refit = pg.RankRLS(search.alpha_, **settings).fit(X[rest], y[rest], qid=qid[rest])
        np.testing.assert_allclose(held[own], refit.predict(X[own]), rtol=0, atol=1e-3)


def test_columns_that_vary_in_no_query_have_no_weight(lists):
    X = lists.X.copy()
    X[:, RIGHT[2]] = np.random.default_rng(0).normal(size=lists.qid.max() + 1)[lists.qid]
    X[:, LEFT[0]] = 0.0
    coef = pg.RankRLS(1e-3, feature_map=cross()).fit(X, lists.y, qid=lists.qid).coef_
    W = coef[len(KEPT) :].reshape(1 + len(LEFT), len(RIGHT))
    assert (W[:, 2] == 0).all()
    assert (W[1] == 0).all()
    assert np.count_nonzero(W) == 3 * 3


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_bits_do_not_depend_on_threads_nor_on_neighbours(lists, n_threads):
    fits = on_threads(
        (3, n_threads),
        lambda: pg.RankRLSCV(ALPHAS, feature_map=cross()).fit(**lists.labelled),
    )
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].held_out_, fits[1].held_out_)
    scores = fits[0].predict(lists.X)
    mixed = np.random.default_rng(n_threads).permutation(len(scores))
    np.testing.assert_array_equal(fits[0].predict(lists.X[mixed]), scores[mixed])
    np.testing.assert_array_equal(
        [fits[0].predict(lists.X[[row]])[0] for row in range(20)], scores[:20]
    )


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("map_left", [1, 3, 0], "map_left and map_right must not have a column on both sides"),
        ("map_right", [0, 5, 6, 8], "map_right must be columns of the 8 of X"),
        ("map_right", [0, 5, 6, 6], "map_right must name a column once"),
        ("map_kept", [-1], "map_kept must be columns of the 8 of X"),
    ],
)
def test_files_with_wrong_columns(lists, tmp_path, name, columns, message):
    pg.RankRLS(feature_map=cross()).fit(**lists.labelled).save(tmp_path / "model")
    contents = parse((tmp_path / "model").read_bytes())
    contents.tensors[name] = Tensor.of(np.array(columns))
    (tmp_path / "model").write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message):
        pg.load_model(tmp_path / "model")


@pytest.mark.parametrize("held", ["lists", "folds", "validation"])
def test_a_search_chooses_among_maps(lists, tmp_path, held):
    maps = [cross(keep=None), cross(), pg.Cross(LEFT[:2], RIGHT)]
    named = {"cv": 3} if held == "folds" else {}
    other = Lists([9, 8, 12], seed=5)
    told = {"validation": (other.X, other.y, other.qid)} if held == "validation" else {}
    search = pg.RankRLSCV(ALPHAS, feature_map=maps, **named).fit(**lists.labelled, **told)
    singles = [
        pg.RankRLSCV(ALPHAS, feature_map=m, **named).fit(**lists.labelled, **told) for m in maps
    ]
    found = search.cv_results_["mean_test_score"].reshape(3, -1)
    np.testing.assert_array_equal(found, [one.scores_ for one in singles])
    best = int(np.argmax([one.best_score_ for one in singles]))
    assert search.best_score_ == singles[best].best_score_
    assert repr(search.feature_map_) == repr(maps[best])
    tried = list(map(repr, search.cv_results_["param_feature_map"]))
    assert tried == list(np.repeat(list(map(repr, maps)), len(ALPHAS)))
    np.testing.assert_array_equal(search.coef_, singles[best].coef_)
    search.save(tmp_path / "model.pairgram")
    loaded = pg.load_model(tmp_path / "model.pairgram")
    np.testing.assert_array_equal(loaded.predict(lists.X), search.predict(lists.X))


def test_a_search_chooses_among_maps_of_a_table(lists):
    maps = [None, cross(), pg.RandomNodes(5, random_state=0)]
    frame = pd.DataFrame(lists.X, columns=list("abcdefgh")).assign(y=lists.y, q=lists.qid)
    table = pg.scan(frame.sort_values("q", kind="stable"), label="y", qid="q")
    search = pg.RankRLSCV(ALPHAS, feature_map=maps).fit(table)
    singles = [pg.RankRLSCV(ALPHAS, feature_map=one).fit(**lists.labelled) for one in maps]
    found = search.cv_results_["mean_test_score"].reshape(len(maps), -1)
    np.testing.assert_allclose(found, [one.scores_ for one in singles], rtol=1e-12)


def test_a_list_of_maps_beside_other_choices(lists):
    maps = [cross(), None]
    search = pg.RankRLSCV(
        [1.0], feature_map=row_value([None, "standard"], maps), scale=[False, True]
    )
    search.fit(**lists.labelled)
    assert len(search.cv_results_["params"]) == 8
    prior = pg.RankRLS().fit(**lists.labelled)
    started = pg.RankRLSCV([1e9], feature_map=maps, prior=prior).fit(**lists.labelled)
    np.testing.assert_allclose(started.predict(lists.X), prior.predict(lists.X), atol=1e-3)


def test_names_of_products():
    frame = pd.DataFrame(np.ones((3, 4)), columns=["age", "sex", "price", "year"])
    feature_map = pg.Cross(["age", "sex"], "price", keep="year").fit(frame)
    names = feature_map.get_feature_names_out().tolist()
    assert names == ["year", "price", "age × price", "sex × price"]


def test_quantiles_that_no_side_names_change_nothing(lists):
    names = [f"c{j}" for j in range(lists.X.shape[1])]
    frame = pd.DataFrame(lists.X, columns=names).assign(y=lists.y, qid=lists.qid)
    table, left = pg.scan(frame, label="y", qid="qid"), ["c1", "c3", "c4"]
    message = r"'raw\+quantile' before a Cross changes nothing, because no side names a column"
    with pytest.warns(UserWarning, match=message):
        model = pg.RankRLS(feature_map=make_pipeline(pg.Quantile(raw=True), cross())).fit(
            **lists.labelled
        )
    plain = pg.RankRLS(feature_map=cross()).fit(**lists.labelled)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    with pytest.warns(UserWarning, match=message):
        pg.RankRLS(
            feature_map=make_pipeline(pg.Quantile(raw=True), pg.Cross(left, ["c0", "c5"]))
        ).fit(table)
    named = pg.Cross(left, ["c0", "quantile of c5"])
    pg.RankRLS(feature_map=make_pipeline(pg.Quantile(raw=True), named)).fit(table)
    search = pg.RankRLSCV(feature_map=row_value([None, "quantile", "raw+quantile"], cross()))
    assert search.fit(**lists.labelled).best_score_ > 0


def test_parameters_that_are_set_after_a_fit_do_not_count_before_the_next(lists, tmp_path):
    for fitted, later in ((KEPT, None), (None, KEPT)):
        model = pg.RankRLS(feature_map=cross(keep=fitted)).fit(**lists.labelled)
        made, wanted = model.feature_map_.transform(lists.X), model.predict(lists.X)
        model.feature_map_.set_params(keep=later)
        np.testing.assert_array_equal(model.feature_map_.transform(lists.X), made)
        assert len(model.feature_map_.get_feature_names_out()) == made.shape[1]
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(pg.load_model(tmp_path / "model").predict(lists.X), wanted)
