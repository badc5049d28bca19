"""The ranker without settings: what it tries, how it chooses, and what it keeps."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from pairgram import AutoRanker, Clicks, Pairs, RankRLSCV, evaluate, load_model, make_ranking
from pairgram.clicks import simulate
from pairgram.features.row_values import Chain
from parts.auto import Task, ranker as auto_ranker, trials
from problems import BY_STEPS


def _made(interaction=0.0, n_queries=40, n_documents=12, seed=0):
    """Make rows whose labels are linear in the columns, or also a product of two of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_documents, 6))
    score = X[:, 0] - X[:, 1] + interaction * X[:, 2] * X[:, 3]
    score += 0.3 * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(score, [0.5, 0.8, 0.95]), score).astype(float)
    return X, y, np.repeat(np.arange(n_queries), n_documents)


X, y, qid = _made()


@pytest.fixture(scope="module")
def linear():
    return X, y, qid, AutoRanker(time_budget=None).fit(X, y, qid=qid)


@pytest.fixture
def columns_alone(monkeypatch):
    """Try no features and no kernels, which take most of the time."""
    every = auto_ranker.trials
    monkeypatch.setattr(
        auto_ranker,
        "trials",
        lambda *given: [one for one in every(*given) if one.features == "columns"],
    )


def test_a_linear_model_of_linear_data_wins(linear):
    model = linear[-1]
    assert Chain.of(model.best_estimator_.feature_map).then is None
    assert (model.trials_["outcome"] == "best").sum() == 1
    assert not {"over budget", "stopped"} & set(model.trials_["outcome"])


def test_interactions_need_features_or_a_kernel():
    X, y, qid = _made(interaction=2.0)
    model = AutoRanker(time_budget=None).fit(X, y, qid=qid)
    first = model.trials_["score"][0]
    assert model.best_score_ > first + 0.05
    assert model.best_estimator_.feature_map is not None
    fresh = _made(interaction=2.0, seed=1)
    linear = RankRLSCV().fit(X, y, qid=qid)
    ours, theirs = (
        evaluate("ndcg@10", fresh[1], one.predict(fresh[0]), fresh[2])["ndcg@10"]
        for one in (model, linear)
    )
    assert ours > theirs + 0.05


def test_the_winner_is_an_ordinary_ranker(linear, tmp_path):
    X, y, qid, model = linear
    best = model.best_estimator_
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    assert model.best_score_ == best.best_score_
    assert model.score(X, y, qid=qid) == best.score(X, y, qid=qid)
    model.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.pairs == model.pairs_


def test_without_a_time_the_model_is_the_same_again(linear):
    X, y, qid, model = linear
    again = AutoRanker(time_budget=None).fit(X, y, qid=qid)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert list(again.trials_["outcome"]) == list(model.trials_["outcome"])


def _within(scores, qid):
    """Return the differences of scores from the mean of their query."""
    return scores - (np.bincount(qid, scores) / np.bincount(qid))[qid]


def _means(X, y, qid, table, **settings):
    """Return what a mean of linear models should be: scores, held-out scores and their metric."""
    members, held = [], []
    rows = [row for row in range(len(table["score"])) if table["features"][row] == "columns"]
    best = max(rows, key=lambda row: (table["score"][row], -row))
    found = {}
    for row in [best, *(row for row in rows if row != best)]:
        named = {"feature_map": table["inputs"][row], "pairs": table["pairs"][row]}
        search = RankRLSCV(**named, **settings).fit(X, y, qid=qid)
        found[row] = search.per_query_["ndcg@10"]
        behind = found[best] - found[row]
        error = behind.std(ddof=1) / np.sqrt(len(behind))
        if behind.mean() <= error:
            size = _within(search.held_out_, qid).std()
            members.append(_within(search.predict(X), qid) / size)
            held.append(_within(search.held_out_, qid) / size)
    held = np.mean(held, axis=0)
    return (
        len(members),
        np.mean(members, axis=0),
        held,
        evaluate("ndcg@10", y, held, qid)["ndcg@10"],
    )


@pytest.mark.usefixtures("columns_alone")
@pytest.mark.parametrize("settings", [{}, {"cv": 3}])
def test_linear_models_that_cannot_be_told_apart_are_averaged(settings):
    X, y, qid = _made(seed=1)
    X = np.exp(X / 2)
    model = AutoRanker(time_budget=None, **settings).fit(X, y, qid=qid)
    table = model.trials_
    row = next(row for row, name in enumerate(table["features"]) if name.startswith("mean of"))
    n_members, scores, held, metric = _means(X, y, qid, table, **settings)
    assert table["features"][row] == f"mean of {n_members} linear models"
    assert n_members > 1
    assert table["inputs"][row] == "raw+quantile"
    assert table["outcome"][row] == "best"
    ours = _within(model.predict(X), qid)
    np.testing.assert_allclose(ours / ours.std(), scores / scores.std(), atol=1e-7)
    own = _within(model.held_out_, qid)
    np.testing.assert_allclose(own / own.std(), held / held.std(), atol=1e-7)
    assert model.best_score_ == pytest.approx(metric, abs=1e-12)
    total = model.contributions(X).sum(axis=1) - model.predict(X)
    assert np.ptp(total) < 1e-9 * abs(model.predict(X)).max()


@pytest.mark.usefixtures("columns_alone")
def test_a_mean_of_rows_in_any_order_is_held_out_query_by_query(columns_alone):
    rows = np.random.default_rng(0).permutation(len(y))
    tables = []
    for order in (np.arange(len(y)), rows):
        model = AutoRanker(time_budget=None).fit(X[order], y[order], qid=qid[order])
        table = model.cv_results_
        (at,) = (k for k, name in enumerate(table["param_features"]) if name.startswith("mean of"))
        tables.append((table["mean_test_score"][at], table["std_test_score"][at]))
    np.testing.assert_allclose(*tables)


def test_weights_and_a_validation_set_of_a_mean():
    weights = np.ones(len(y))
    weights[qid == 3] = 0
    kept = qid != 3
    valid = _made(seed=5)
    models = [
        AutoRanker(None).fit(X, y, qid=qid, sample_weight=weights),
        AutoRanker(None).fit(X[kept], y[kept], qid=qid[kept]),
        AutoRanker(None).fit(X, y, qid=qid, validation=valid),
    ]
    for model in models:
        assert any(name.startswith("mean of") for name in model.trials_["features"])
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-6, atol=1e-8)
    held = evaluate("ndcg@10", valid[1], models[2].predict(valid[0]), valid[2])["ndcg@10"]
    assert models[2].best_score_ == pytest.approx(held, abs=1e-12)


def test_importance_of_columns_is_that_of_the_winner(linear):
    X, _, _, model = linear
    ours, theirs = model.column_weights(), model.best_estimator_.column_weights()
    for name, values in theirs.items():
        np.testing.assert_array_equal(ours[name], values)
    total = model.contributions(X).sum(axis=1) - model.predict(X)
    assert np.ptp(total) < 1e-12 * abs(model.predict(X)).max()


def test_a_minmax_kernel_wins_and_scores_rows_below_those_of_the_fit():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(600, 40)) * (rng.random((600, 40)) < 0.2)
    similarity = [np.minimum(X, x).sum(axis=1) / np.maximum(X, x).sum(axis=1) for x in X[:20]]
    y = rng.normal(size=20) @ similarity
    y = np.digitize(y, np.quantile(y, [0.5, 0.8]))
    model = AutoRanker(time_budget=None).fit(X, y, qid=np.repeat(np.arange(60), 10))
    assert model.best_estimator_.feature_map.kernel == "minmax"
    assert np.isfinite(model.predict(X - 1)).all()


@pytest.mark.parametrize(
    ("n_rows", "sparse", "features"),
    [
        (500, False, "minmax kernel"),
        (500, True, "minmax kernel"),
        (100_000, False, "500 minmax landmarks"),
        (100_000, True, "500 minmax landmarks"),
    ],
)
def test_minmax_is_tried_on_the_columns_and_on_scaled_inputs(n_rows, sparse, features):
    every = trials(Task(n_rows, 20, 20 * n_rows, sparse=sparse), 0)
    minmax = [trial.inputs for trial in every if trial.features == features]
    assert minmax == (["maxabs", None] if sparse else ["standard", "quantile", None])
    assert not any("minmax" in trial.features for trial in every if trial.features != features)


def test_every_score_is_that_of_the_search_alone(linear):
    X, y, qid, model = linear
    table = model.trials_
    rows = np.flatnonzero(table["features"] == "columns")
    assert len(rows) == 4 * 6
    assert (table["inputs"][0], table["pairs"][0]) == (None, "with_ties")
    for row in rows:
        alone = RankRLSCV(feature_map=table["inputs"][row], pairs=table["pairs"][row])
        alone.fit(X, y, qid=qid)
        assert table["score"][row] == alone.best_score_
        assert table["alpha"][row] == alone.alpha_


def test_features_must_lead_by_a_standard_error(linear):
    table = linear[-1].trials_
    best, before = 0, None
    for row in np.flatnonzero(np.isfinite(table["score"]))[1:]:
        if before is not None:  # features that may have become the best; their error says so
            lead = table["score"][row] - table["score"][before]
            if table["lead"][row] == pytest.approx(lead, abs=1e-15):
                best = before
        before = None
        lead, error = table["score"][row] - table["score"][best], table["standard_error"][row]
        assert table["lead"][row] == pytest.approx(lead, abs=1e-15)
        assert error > 0 or lead == 0
        if table["features"][row] == "columns":
            best = row if lead > 0 else best
        elif table["features"][row].startswith("mean of"):
            best = row if lead >= -error else best
        elif lead > error:
            before = row
    assert table["outcome"][best if before is None else before] == "best"


@pytest.mark.usefixtures("columns_alone")
def test_standard_errors_have_the_weights_of_queries(linear):
    X, y, qid, _ = linear
    weights = np.random.default_rng(0).uniform(0.1, 3, 40)
    weights[30:] = 0.0  # which counts as absent
    ways = None, "raw+quantile"
    values = [
        RankRLSCV(feature_map=one, scoring="ndcg@5")
        .fit(X, y, qid=qid, query_weight=weights[qid])
        .per_query_["ndcg@5"]
        for one in ways
    ]
    leads, share = values[1] - values[0], weights / weights.sum()
    lead = share @ leads
    expected = np.sqrt((share**2 * (leads - lead) ** 2).sum() * 30 / 29)
    model = AutoRanker(time_budget=None, scoring="ndcg@5")
    trials = model.fit(X, y, qid=qid, query_weight=weights[qid]).trials_
    assert trials["inputs"][:2].tolist() == [*ways]
    assert trials["lead"][1] == pytest.approx(lead, rel=1e-9)
    assert trials["standard_error"][1] == pytest.approx(expected, rel=1e-9)


def test_the_table_of_the_search(linear):
    model = linear[-1]
    results = model.cv_results_
    assert len(results["params"]) == np.isfinite(model.trials_["score"]).sum()
    assert results["mean_test_score"][model.best_index_] == model.best_score_
    assert results["params"][model.best_index_]["alpha"] == model.alpha_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_rows", [100, 5_000, 2_000_000])
def test_few_trials_have_tried_inputs_and_pairs(n_rows, sparse):
    choices = ("with_ties", "without_ties", Pairs(target="gain"))
    every = trials(Task(n_rows, 20, 20 * n_rows, choices, sparse=sparse), 0)
    assert (every[0].inputs, every[0].choice) == (None, "with_ties")
    kinds = [None, "maxabs"] if sparse else [None, "raw+quantile", "quantile", "standard"]
    linear = [trial for trial in every if trial.features == "columns"]
    assert every[: len(linear)] == linear
    pairs = {(trial.inputs, trial.choice) for trial in linear}
    assert pairs == {(kind, choice) for kind in kinds for choice in choices}
    assert len(linear) == len(pairs)
    assert len({trial.inputs for trial in linear[:3]}) == 2
    assert len({trial.choice for trial in linear[:3]}) == 2


def test_a_small_budget_tries_one_model():
    model = AutoRanker(time_budget=1e-6).fit(X, y, qid=qid)
    alone = RankRLSCV().fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert set(model.trials_["outcome"][1:]) <= {"over budget", "no gain"}
    assert np.isfinite(model.trials_["score"]).sum() == 1
    assert len(model.cv_results_["params"]) == 1


def test_a_trial_that_would_not_end_in_time_is_not_begun(monkeypatch):
    every = auto_ranker.trials

    def with_long_ones(*given):
        first, *others = every(*given)
        return [first, *(replace(one, work={"gram": 1e15}) for one in others)]

    monkeypatch.setattr(auto_ranker, "trials", with_long_ones)
    model = AutoRanker(time_budget=1000.0).fit(X, y, qid=qid)
    assert list(model.trials_["outcome"][1:24]) == ["over budget"] * 23


@pytest.mark.filterwarnings("ignore:settings are chosen by")
@pytest.mark.parametrize("n_queries", [2, 350])
def test_a_trial_that_runs_over_is_stopped_and_leaves_nothing_behind(
    n_queries, monkeypatch, set_limits
):
    """Large queries of a kernel need eigenvectors of LAPACK, which cannot be interrupted."""
    X, y, qid = make_ranking(n_queries, 3500 // n_queries, 3, random_state=0)
    every = auto_ranker.trials

    def first_and_last(*given):
        first, *_, last = every(*given)
        return [first, replace(last, work={})]  # which is expected to take no time

    monkeypatch.setattr(auto_ranker, "trials", first_and_last)
    set_limits(patient_seconds=1e9)
    began = time.perf_counter()
    model = AutoRanker(time_budget=0.3).fit(X, y, qid=qid)
    seconds = time.perf_counter() - began
    assert list(model.trials_["outcome"]) == ["best", "stopped"]
    assert seconds < 3.0  # it would take longer than that
    alone = RankRLSCV().fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.best_estimator_.feature_map is None


def test_families_are_given_up_whose_first_trials_stay_behind():
    X, y, qid = make_ranking(40, 10, 5, random_state=0)
    table = AutoRanker(None).fit(X, y, qid=qid).trials_
    given_up = [
        name
        for name, out in zip(table["features"], table["outcome"], strict=True)
        if out == "given up"
    ]
    assert given_up
    linear = np.nanmax(table["score"][table["features"] == "columns"])
    for word in {name.split(",")[0] for name in given_up}:
        rows = [row for row, name in enumerate(table["features"]) if name.split(",")[0] == word]
        assert (table["outcome"][rows[:2]] == "tried").all()
        assert (table["score"][rows[:2]] < linear).all()
        assert (table["outcome"][rows[2:]] == "given up").all()


def test_time_without_gain_is_bounded_by_that_of_linear_models(set_limits):
    set_limits(patience=0.0, patient_seconds=0.0)
    model = AutoRanker(time_budget=None).fit(X, y, qid=qid)
    features = model.trials_["features"]
    linear = [name == "columns" or name.startswith("mean of") for name in features]
    assert set(model.trials_["outcome"][np.logical_not(linear)]) == {"no gain"}


@pytest.mark.usefixtures("columns_alone")
def test_a_trial_that_fails_is_told_and_left_out(monkeypatch):
    fit = RankRLSCV.fit

    def failing(self, *arguments, **named):
        if self.feature_map == "standard":
            raise MemoryError("no room")
        return fit(self, *arguments, **named)

    monkeypatch.setattr(RankRLSCV, "fit", failing)
    model = AutoRanker(time_budget=None).fit(X, y, qid=qid)
    failed = model.trials_["inputs"] == "standard"
    outcomes = {"failed: no room", "given up", "no gain"}
    assert set(model.trials_["outcome"][failed]) <= outcomes
    assert "failed: no room" in model.trials_["outcome"]


def test_sparse_rows_keep_their_zeros():
    X, y, qid = _made()
    X[np.abs(X) < 0.7] = 0
    model = AutoRanker(time_budget=1.0).fit(scipy.sparse.csr_array(X), y, qid=qid)
    assert set(model.trials_["inputs"]) == {None, "maxabs"}
    assert {name for name in model.trials_["features"] if name.startswith("mean of")}
    np.testing.assert_allclose(
        model.predict(scipy.sparse.csr_array(X)), model.predict(X), atol=1e-9
    )


@pytest.mark.parametrize(("cv", "scoring"), [(3, "map"), (None, "pairwise_accuracy")])
def test_splits_and_metrics(cv, scoring):
    model = AutoRanker(0.2, cv=cv, scoring=scoring).fit(X, y, qid=qid)
    assert model.scoring_.name == scoring
    alone = RankRLSCV(cv=cv, scoring=scoring).fit(X, y, qid=qid)
    assert model.trials_["score"][0] == pytest.approx(alone.best_score_, abs=1e-12)


@pytest.mark.usefixtures("columns_alone")
def test_offsets_are_added():
    offset = 2.0 * X[:, 0]
    model = AutoRanker(None).fit(X, y, qid=qid, offset=offset)
    assert not any(name.startswith("mean of") for name in model.trials_["features"])
    alone = RankRLSCV(pairs=model.pairs_, feature_map=model.best_estimator_.feature_map)
    alone.fit(X, y, qid=qid, offset=offset)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_real_labels_of_one_query():
    X, y, _ = make_ranking(1, 80, random_state=0)
    model = AutoRanker().fit(X, y + 0.25)
    assert model.scoring_.name == "pairwise_accuracy"
    assert model.pairs_ == "with_ties"
    assert np.isnan(model.trials_["standard_error"]).all()


def test_weights_of_0_are_as_rows_left_out():
    weights = np.ones(len(y))
    weights[qid == 3] = 0
    kept = qid != 3
    ours = AutoRanker(1e-6).fit(X, y, qid=qid, sample_weight=weights)
    without = AutoRanker(1e-6).fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(ours.predict(X), without.predict(X), rtol=1e-7, atol=1e-9)


def test_lines_tell_what_is_tried_and_what_is_not(capsys):
    model = AutoRanker(None, verbose=True).fit(X, y, qid=qid)
    lines = capsys.readouterr().err.splitlines()
    *lines, last = lines
    assert len(lines) == len(model.trials_["score"])
    (best,) = model.trials_["features"][model.trials_["outcome"] == "best"]
    assert last.startswith(f"kept: {best}")
    assert lines[0].startswith("columns, with_ties: 0.")
    assert any(line.startswith("columns of raw+quantile inputs, with_ties: 0.") for line in lines)
    assert sum(line.endswith(": given up") for line in lines) == list(
        model.trials_["outcome"]
    ).count("given up")
    AutoRanker(1e-6, verbose=True).fit(X, y, qid=qid)
    assert ": over budget" in capsys.readouterr().err.splitlines()[1]


@pytest.mark.usefixtures("columns_alone")
def test_a_mean_that_would_run_over_is_stopped(monkeypatch):
    def late(*given):
        raise TimeoutError

    monkeypatch.setattr(auto_ranker, "mean_of_columns", late)
    table = AutoRanker(None).fit(X, y, qid=qid).trials_
    (row,) = (row for row, name in enumerate(table["features"]) if name.startswith("mean of"))
    assert table["outcome"][row] == "stopped"
    assert (table["outcome"] == "best").sum() == 1


@pytest.mark.usefixtures("columns_alone")
def test_wide_sparse_rows_have_the_same_folds_in_all_trials(set_limits):
    rng = np.random.default_rng(0)
    X, y, qid = _made(interaction=2.0, seed=1)
    X = np.hstack([X, rng.normal(size=(len(X), 10))]) * (rng.random((len(X), 16)) < 0.6)
    set_limits(**BY_STEPS)
    rows = scipy.sparse.csr_array(X)
    model = AutoRanker(None).fit(rows, y, qid=qid)
    alone = RankRLSCV().fit(rows, y, qid=qid)
    assert model.trials_["score"][0] == pytest.approx(alone.best_score_, abs=1e-12)
    assert len(model.cv_results_["params"]) == len(model.trials_["score"])
    assert any(name.startswith("mean of") for name in model.trials_["features"])


@pytest.fixture
def log():
    """Return rows that were shown in lists, what was clicked, the lists, and propensities."""
    X, y, qid = make_ranking(40, 10, 5, random_state=0)
    drawn = simulate(y, qid, X[:, :3].T, n_impressions=4, k=6, random_state=0)
    return X[drawn.row], drawn.click, drawn.impression, drawn.propensity


@pytest.mark.usefixtures("columns_alone")
def test_clicks_are_judged_by_propensities(log):
    X, clicks, lists, propensity = log
    y = Clicks(clicks, propensity)
    model = AutoRanker(time_budget=None).fit(X, y, qid=lists)
    assert model.scoring_.name == "ips_dcg@10"
    made = model.trials_["outcome"] != "no gain"
    assert set(model.trials_["pairs"][made]) == {"clicks"}
    found = evaluate("ips_dcg@10", y, model.held_out_, lists)
    np.testing.assert_allclose(model.best_score_, found["ips_dcg@10"], rtol=1e-10)
    plain = 0
    for row in np.flatnonzero(made & (model.trials_["features"] == "columns")):
        inputs = model.trials_["inputs"][row]
        one = RankRLSCV(feature_map=inputs).fit(X, y, qid=lists)
        np.testing.assert_allclose(model.trials_["score"][row], one.best_score_, rtol=1e-12)
        plain += 1
    assert plain > 1
    # A row that a user hardly looks at counts for more, so that the biased clicks judge otherwise.
    biased = evaluate("ips_dcg@10", Clicks(clicks, np.ones(len(X))), model.held_out_, lists)
    assert abs(biased["ips_dcg@10"] - model.best_score_) > 0.01


@pytest.mark.usefixtures("columns_alone")
def test_clicks_of_a_validation_set(log):
    X, clicks, lists, propensity = log
    first = lists < np.median(lists)
    rest = ~first
    y = Clicks(clicks, propensity)
    held = (X[rest], y[rest], lists[rest])
    model = AutoRanker(time_budget=None)
    model.fit(X[first], y[first], qid=lists[first], validation=held)
    scores = model.predict(X[rest])
    found = evaluate("ips_dcg@10", y[rest], scores, lists[rest])
    np.testing.assert_allclose(model.best_score_, found["ips_dcg@10"], rtol=1e-8)
