"""Inputs within lists: against slow references, and rankers against fits to transformed columns."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, strategies as st
from scipy.stats import rankdata
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairgram as pg
from axes import every
from pairgram import _core

KINDS = ("rank", "raw+rank", "list-standard", "runs")


def of_one_list(kind, x):
    """The columns of one list and one input, by the definition."""
    n, x = len(x), x.astype(np.longdouble)
    if kind == "rank":
        below = np.array([(x < value).sum() + ((x == value).sum() - 1) / 2 for value in x])
        return [below / (n - 1) if n > 1 else np.full(1, 0.5)]
    if kind == "raw+rank":
        return [x, *of_one_list("rank", x)]
    if kind == "list-standard":
        x = x - x[0]  # which loses nothing here
        return [(x - x.mean()) / x.std() if np.ptp(x) > 0 else np.zeros(n)]
    scaled, reciprocal, there = np.zeros(n), np.zeros(n), ~np.isnan(x)
    known = x[there]
    if len(known):
        spread = np.ptp(known)
        scaled[there] = (known - known.min()) / spread if spread > 0 else 1.0
        reciprocal[there] = 60 / (60 + rankdata(-known))
    return [scaled, reciprocal]


def reference(kind, X, query):
    """The columns of rows, (n_rows, n_columns): those of one sort stand together."""
    halves = 2 if kind in ("raw+rank", "runs") else 1
    out = np.empty((halves, *X.shape))
    for name in np.unique(query):
        rows = query == name
        for j in range(X.shape[1]):
            out[:, rows, j] = of_one_list(kind, X[rows, j])
    return np.hstack(list(out))


@st.composite
def rows_in_lists(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.choice([1, 2, 3, 7, 40], size=draw(st.integers(1, 6)))
    query = rng.permutation(np.repeat(rng.permutation(len(sizes)), sizes))
    X = rng.normal(size=(len(query), draw(st.integers(1, 20))))
    if draw(st.booleans()):
        X = np.round(2 * X)
    X[:, 0] = draw(st.sampled_from([0.0, 1e9])) + rng.integers(0, 2, len(X))
    return X.astype(draw(st.sampled_from([np.float64, np.float32]))), query


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=rows_in_lists(), n_threads=st.integers(1, 3), seed=st.integers(0, 99))
def test_columns_follow_their_definition(kind, drawn, n_threads, seed):
    X, query = drawn
    if kind == "runs":
        X = np.where(np.random.default_rng(seed).random(X.shape) < 0.3, np.nan, X).astype(X.dtype)
    model = pg.RankRLS(pairs=None, inputs=kind)
    model.fit(X, np.arange(len(X)), qid=query)
    order = np.argsort(query, kind="stable")
    offsets = np.append(0, np.cumsum(np.unique(query, return_counts=True)[1]))
    lists = SimpleNamespace(offsets=offsets.astype(np.int64), order=order)
    with pg.threads(n_threads):
        found = model.inputs_.values(X, lists)
    assert found.dtype == X.dtype
    wanted = reference(kind, X.astype(np.float64), query)
    close = 1e-12 if X.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=close, atol=close)
    assert np.isfinite(model.predict(X, qid=query)).all()


@pytest.mark.parametrize("n", [2, 100, 3000])
def test_values_that_differ_in_their_last_bits(n):
    rng = np.random.default_rng(0)
    x = 1.0 + 2.0**-52 * rng.permutation(n)
    x[rng.integers(0, n, n // 10)] = 1.0
    out = _core.list_columns("rank", False, x[:, None].copy(), np.array([0, n]), None, 1)
    np.testing.assert_array_equal(out[:, 0], (rankdata(x) - 1) / (n - 1))


@every(n=[7, 8, 9, 16, 17, 100, 128, 129, 1024, 2048])
def test_lists_of_any_length_are_sorted(n):
    x = np.random.default_rng(n).permutation(np.arange(n) - n // 2).astype(float)
    out = _core.list_columns("rank", False, x[:, None].copy(), np.array([0, n]), None, 1)
    np.testing.assert_array_equal(out[:, 0], (rankdata(x) - 1) / (n - 1))


def test_zeros_of_both_signs_tie():
    X = np.array([[0.0], [-0.0], [1.0], [-1.0]])
    out = _core.list_columns("rank", False, X, np.array([0, 4]), None, 1)
    np.testing.assert_allclose(out[:, 0], [0.5, 0.5, 1.0, 0.0])


def problem(seed=0):
    X, y, qid = pg.make_ranking(60, (1, 12), 4, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order], qid[order]


@cache
def columns_of_the_problem(kind):
    X, _, qid = problem()
    return reference(kind, X, qid)


ESTIMATORS = [
    pg.RankRLS(),
    pg.RankRLS(pairs=None),
    pg.RankRLS(pairs=pg.Pairs("without_ties", scope="global")),
    pg.RankRLS(feature_map=pg.Kernel("rbf")),
    pg.RankRLS(form="dual"),
    pg.RankRLS(constraint=pg.Positive()),
    pg.RankRLS(feature_map=StandardScaler()),
    pg.RankRLS(feature_map=pg.Nystroem(n_components=10, random_state=0)),
    pg.RankRLSCV(),
    pg.RankRLSCV(cv=pg.QueryKFold(3), scale=[False, True]),
    pg.RankRLSCV(feature_map=[pg.Kernel("rbf", gamma=g) for g in [0.1, 1.0]]),
    pg.RankSVM(),
    pg.RankSVMCV(cv=3),
    pg.PointwiseELM(random_state=0),
    pg.PairwiseELM(random_state=0),
    pg.PointwiseELMCV(random_state=0),
    pg.PairwiseELMCV(random_state=0),
    pg.ELMRank(random_state=0),
    pg.ELMRankCV(random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@every(kind=KINDS)
def test_rankers_are_fitted_to_the_columns(estimator, kind):
    X, y, qid = problem()
    H, train = columns_of_the_problem(kind), qid < 40
    own = sklearn.clone(estimator).set_params(inputs=kind)
    own.fit(X[train], y[train], qid=qid[train])
    other = sklearn.clone(estimator).fit(H[train], y[train], qid=qid[train])
    wanted = other.predict(H[~train])
    found = own.predict(X[~train], qid=qid[~train])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9 * np.ptp(wanted))
    if hasattr(own, "scores_"):
        np.testing.assert_allclose(own.scores_, other.scores_, rtol=1e-9)
    assert own.score(X, y, qid=qid) == pytest.approx(other.score(H, y, qid=qid))
    if not isinstance(estimator.get_params().get("feature_map"), StandardScaler):
        scorer = own.row_scorer()
        np.testing.assert_array_equal(scorer(X[~train], qid[~train]), found)


@every(
    estimator=[
        pg.RankRLSCV(),
        pg.RankRLSCV(feature_map=pg.Kernel("rbf")),
        pg.RankSVMCV(),
        pg.ELMRankCV(random_state=0),
    ],
    kind=KINDS,
)
def test_rows_of_a_validation_set_have_lists_of_their_own(estimator, kind):
    X, y, qid = problem()
    H, train = columns_of_the_problem(kind), qid < 40
    own = sklearn.clone(estimator).set_params(inputs=kind)
    own.fit(X[train], y[train], qid=qid[train], validation=(X[~train], y[~train], qid[~train]))
    other = sklearn.clone(estimator)
    other.fit(H[train], y[train], qid=qid[train], validation=(H[~train], y[~train], qid[~train]))
    np.testing.assert_allclose(own.best_score_, other.best_score_, rtol=1e-9)


def test_a_search_chooses_among_all_inputs():
    X, y, qid = problem()
    valid = problem(1)
    kinds = [None, "raw+rank", "quantile", "list-standard"]
    for given_rows in ({}, {"validation": valid}):
        search = pg.RankRLSCV(inputs=kinds).fit(X, y, qid=qid, **given_rows)
        best = [pg.RankRLSCV(inputs=kind).fit(X, y, qid=qid, **given_rows) for kind in kinds]
        scores = [one.best_score_ for one in best]
        assert search.best_score_ == max(scores)
        chosen = None if search.inputs_ is None else search.inputs_.kind
        assert chosen == kinds[int(np.argmax(scores))]


def test_a_prior_within_lists():
    X, y, qid = problem()
    prior = pg.RankRLS(inputs="rank").fit(X, y, qid=qid)
    scores = prior.predict(X, qid=qid)
    own = pg.RankRLS(prior=FrozenEstimator(prior)).fit(X, y, qid=qid)
    other = pg.RankRLS().fit(X, y, qid=qid, offset=scores)
    wanted = other.predict(X) + scores
    np.testing.assert_allclose(own.predict(X, qid=qid), wanted, rtol=1e-9)
    same = pg.RankRLS(inputs="rank", prior=prior).fit(X, y, qid=qid)  # weights are added
    assert same.prior_ is None
    assert np.isfinite(same.predict(X, qid=qid)).all()


def test_scores_of_a_file_beside_columns_that_are_kept(tmp_path):
    X, y, qid = pg.make_ranking(30, (1, 9), 3, random_state=0)
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=y, qid=qid, doc=np.arange(len(y)))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    table = pg.scan(tmp_path / "rows.parquet", label="label", qid="qid", features=list("abc"))
    model = pg.RankRLS(inputs="raw+rank").fit(table)
    pg.predict(model, table, output=tmp_path / "scores.parquet", keep=["doc"])
    found = pd.read_parquet(tmp_path / "scores.parquet")
    np.testing.assert_array_equal(found["doc"], frame["doc"])
    np.testing.assert_array_equal(found["score"], model.predict(frame[list("abc")], qid=qid))
    mixed = frame.sample(frac=1, random_state=0)
    mixed = pg.scan(mixed, label="label", qid="qid", features=list("abc"))
    with pytest.raises(ValueError, match=r"together: sort the table by qid$"):
        next(pg.predict(model, mixed))
    assert pg.evaluate("ndcg@10", table, model)["ndcg@10"] == pytest.approx(
        model.score(frame[list("abc")], y, qid=qid)
    )


def test_runs_of_a_table_may_lack_rows(tmp_path):
    X, y, qid = pg.make_ranking(30, (1, 9), 3, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=y, qid=qid)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    table = pg.scan(tmp_path / "rows.parquet", label="label", qid="qid", features=list("abc"))
    model = pg.RankRLSCV(inputs="runs").fit(table)
    wanted = pg.RankRLSCV(inputs="runs").fit(frame[list("abc")], y, qid=qid)
    scores = wanted.predict(frame[list("abc")], qid=qid)
    np.testing.assert_allclose(model.predict(table), scores, rtol=1e-9)
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        pg.load_model(tmp_path / "model.safetensors").predict(table), model.predict(table)
    )
    valid = pg.RankRLSCV(inputs="runs").fit(table, validation=table)
    assert valid.best_score_ == pytest.approx(
        pg.RankRLSCV(inputs="runs")
        .fit(frame[list("abc")], y, qid=qid, validation=(frame[list("abc")], y, qid))
        .best_score_
    )
    with pytest.raises(ValueError, match="missing"):
        pg.RankRLSCV(inputs=["runs", "rank"]).fit(table)


def test_many_fits():
    X, y, qid = problem()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, qid=qid, user=qid % 7)
    fallback = pg.RankRLS(inputs="rank").fit(frame[list("abcd")], y, qid=qid)
    batch = pg.fit_many(
        pg.RankRLS(inputs="rank"),
        frame[frame.user < 6],
        "y",
        by="user",
        qid="qid",
        fallback=fallback,
    )
    found = batch.predict(frame, "user")  # the rows of a key are one list
    for user in range(7):
        rows = frame[frame.user == user]
        model = batch[user] if user < 6 else fallback
        wanted = model.predict(rows[list("abcd")])
        np.testing.assert_array_equal(found[frame.user == user], wanted)


def test_contributions_are_those_of_the_columns():
    X, y, qid = problem()
    model = pg.RankRLS(inputs="raw+rank").fit(pd.DataFrame(X, columns=list("abcd")), y, qid=qid)
    frame = pd.DataFrame(X, columns=list("abcd"))
    parts = model.contributions(frame, qid=qid)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(frame, qid=qid), rtol=1e-9)
    assert model.column_names_.tolist()[3:5] == ["d", "rank of a in its list"]
    weights = model.column_weights(frame, qid=qid)
    assert weights["share"].sum() == pytest.approx(1.0)


def test_tools_hand_query_ids_on():
    X, y, qid = problem()
    H = reference("rank", X, qid)
    own, other = pg.RankRLS(inputs="rank"), pg.RankRLS()
    own.fit(X, y, qid=qid)
    other.fit(H, y, qid=qid)
    scorer, splits = pg.make_scorer("ndcg@5"), list(pg.QueryKFold(3).split(X, y, qid))
    assert scorer(own, X, y, qid=qid) == pytest.approx(scorer(other, H, y, qid=qid))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), pg.RankRLS(inputs="rank")).fit(X, y, qid=qid)
        assert scorer(pipe, X, y, qid=qid) == pytest.approx(scorer(other, H, y, qid=qid))
        searches = [
            GridSearchCV(m, {"alpha": [0.1, 10.0]}, scoring=scorer, cv=splits).fit(R, y, qid=qid)
            for m, R in ((own, X), (other, H))
        ]
        assert searches[0].best_score_ == pytest.approx(searches[1].best_score_)
        assert searches[0].score(X, y, qid=qid) == pytest.approx(searches[1].score(H, y, qid=qid))


def test_many_rows_without_ids_are_warned_of():
    X, y, qid = pg.make_ranking(200, (5, 12), 3, random_state=0)
    model = pg.RankRLS(inputs="rank").fit(X, y, qid=qid)
    with pytest.warns(pg.MissingQueryWarning, match="one list"):
        model.predict(X)
    pg.RankRLS(inputs="standard").fit(X, y, qid=qid).predict(X)  # says nothing


def test_a_scorer_fills_missing_values_before_it_looks_at_lists():
    X, y, qid = pg.make_ranking(30, (2, 9), 3, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=y, qid=qid)
    table = pg.scan(frame, label="label", qid="qid", features=list("abc"), missing="mean")
    for kind in KINDS:
        model = pg.RankRLS(inputs=kind).fit(table)
        scores = model.row_scorer()(X, qid)
        np.testing.assert_array_equal(scores, model.predict(frame[list("abc")], qid=qid))
        assert model.row_scorer()(X[:0]).shape == (0,)
        with pytest.raises(ValueError, match="another order"):
            model.row_scorer()(np.asfortranarray(X))


def test_a_search_within_a_pipeline_is_told_query_ids():
    X, y, qid = problem()
    scorer, splits = pg.make_scorer("ndcg@5"), list(pg.QueryKFold(3).split(X, y, qid))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            pg.RankRLS(inputs="rank"), {"alpha": [1.0]}, scoring=scorer, cv=splits
        )
        pipe = make_pipeline(StandardScaler(), search).fit(X, y, qid=qid)
        other = pg.RankRLS(inputs="rank").fit(StandardScaler().fit_transform(X), y, qid=qid)
        found = scorer(pipe, X, y, qid=qid)
    assert found == pytest.approx(scorer(other, StandardScaler().fit_transform(X), y, qid=qid))


def test_a_table_without_ids_is_one_list():
    X, y, qid = problem()
    model = pg.RankRLS(inputs="rank").fit(X, y, qid=qid)
    table = pg.scan(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
