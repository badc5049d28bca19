"""The ranker without settings: what it tries, how it chooses, and what it keeps."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from pairgram import AutoRanker, RankRLSCV, evaluate, load_model, make_ranking
from parts.rankers import Task, auto as auto_ranker, planned, trials


def _made(interaction=0.0, n_queries=40, n_documents=12, seed=0):
    """Make rows whose labels are linear in the columns, or also a product of two of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_documents, 6))
    score = X[:, 0] - X[:, 1] + interaction * X[:, 2] * X[:, 3]
    score += 0.3 * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(score, [0.5, 0.8, 0.95]), score).astype(float)
    return X, y, np.repeat(np.arange(n_queries), n_documents)


@pytest.fixture(scope="module")
def linear():
    X, y, qid = _made()
    return X, y, qid, AutoRanker().fit(X, y, qid=qid)


def test_a_linear_model_of_linear_data_wins(linear):
    model = linear[-1]
    assert model.best_estimator_.kernel is None
    assert model.best_estimator_.feature_map is None
    assert (model.trials_["outcome"] == "best").sum() == 1
    assert not {"over budget", "skipped"} & set(model.trials_["outcome"])


def test_interactions_need_features_or_a_kernel():
    X, y, qid = _made(interaction=2.0)
    model = AutoRanker().fit(X, y, qid=qid)
    first = model.trials_["score"][0]
    assert model.best_score_ > first + 0.05
    assert model.best_estimator_.kernel or model.best_estimator_.feature_map is not None
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
    alone = RankRLSCV(
        pairs=["with_ties", "without_ties", "gain_difference"],
        target=["label", "gain"],
        inputs=best.inputs,
    ).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.best_score_ == alone.best_score_ == best.best_score_
    assert model.score(X, y, qid=qid) == alone.score(X, y, qid=qid)
    model.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.pairs == model.pairs_


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
    model = AutoRanker(time_budget=2.0).fit(X, y, qid=np.repeat(np.arange(60), 10))
    assert model.best_estimator_.kernel == "minmax"
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
    every = trials(Task(n_rows, 20, 6, sparse=sparse), 0)
    minmax = [trial.inputs for trial in every if trial.features == features]
    assert minmax == (["maxabs", None] if sparse else ["standard", "quantile", None])
    assert not any("minmax" in trial.features for trial in every if trial.features != features)


def test_every_score_is_that_of_the_search_alone(linear):
    X, y, qid, model = linear
    table = model.trials_
    assert list(table["features"][:6]) == ["columns"] * 5 + [table["features"][5]]
    for row in range(5):
        settings = {
            "pairs": ["with_ties", "without_ties", "gain_difference"],
            "target": ["label", "gain"],
        }
        alone = RankRLSCV(inputs=table["inputs"][row], **(settings if row else {}))
        alone.fit(X, y, qid=qid)
        assert table["score"][row] == alone.best_score_
        assert (table["pairs"][row], table["target"][row]) == (alone.pairs_, alone.target_)
        assert table["alpha"][row] == alone.alpha_


def test_features_must_lead_by_a_standard_error(linear):
    table = linear[-1].trials_
    best = 0
    for row in range(1, len(table["score"])):
        lead = table["score"][row] - table["score"][best]
        assert table["lead"][row] == pytest.approx(lead, abs=1e-15)
        assert table["standard_error"][row] > 0 or lead == 0
        if lead > (table["features"][row] != "columns") * table["standard_error"][row]:
            best = row
    assert table["outcome"][best] == "best"


def test_the_table_of_the_search(linear):
    model = linear[-1]
    results = model.cv_results_
    assert len(results["params"]) == len(model.trials_["score"])
    assert results["mean_test_score"][model.best_index_] == model.best_score_
    assert results["rank_test_score"][model.best_index_] <= 3
    assert results["params"][model.best_index_]["alpha"] == model.alpha_


@pytest.mark.parametrize("n_rows", [100, 5_000, 2_000_000])
@pytest.mark.parametrize("budget", [1e-9, 0.1, 10.0, 1e9])
def test_a_budget_is_a_plan_by_shape_alone(n_rows, budget):
    task = Task(n_rows, 20, 6, sparse=False)
    every = trials(task, 0)
    plan = planned(every, budget)
    assert plan[0] is every[0]
    assert sum(trial.seconds for trial in plan[1:]) <= budget
    assert [trial for trial in every if trial in plan] == plan
    left = budget - sum(trial.seconds for trial in plan)
    assert all(trial.seconds > left for trial in every if trial not in plan)
    assert (len(plan) == len(every)) == (sum(trial.seconds for trial in every) <= budget)


def test_a_small_budget_tries_one_model():
    X, y, qid = _made()
    model = AutoRanker(time_budget=1e-6).fit(X, y, qid=qid)
    assert list(model.trials_["outcome"]).count("over budget") == len(model.trials_["score"]) - 1
    assert np.isfinite(model.trials_["score"]).sum() == 1
    assert len(model.cv_results_["params"]) == 1


def test_the_clock_only_stops_with_a_warning(monkeypatch):
    X, y, qid = _made()
    clock = itertools.count(0, 20)
    monkeypatch.setattr(auto_ranker.time, "perf_counter", lambda: float(next(clock)))
    with pytest.warns(
        UserWarning, match="more than 100 s with a budget of 30 s, so .* were skipped"
    ):
        model = AutoRanker().fit(X, y, qid=qid)
    outcomes = list(model.trials_["outcome"])
    assert outcomes[0] == "best" or "tried" in outcomes
    assert "skipped" in outcomes


def test_a_trial_that_fails_is_told_and_left_out(monkeypatch):
    X, y, qid = _made()
    fit = RankRLSCV.fit

    def failing(self, *arguments, **named):
        if self.inputs == "standard":
            raise MemoryError("no room")
        return fit(self, *arguments, **named)

    monkeypatch.setattr(RankRLSCV, "fit", failing)
    model = AutoRanker(time_budget=0.5).fit(X, y, qid=qid)
    failed = model.trials_["inputs"] == "standard"
    assert set(model.trials_["outcome"][failed]) <= {"failed: no room", "over budget"}
    assert "failed: no room" in model.trials_["outcome"]


def test_sparse_rows_keep_their_zeros():
    X, y, qid = _made()
    X[np.abs(X) < 0.7] = 0
    model = AutoRanker(time_budget=1.0).fit(scipy.sparse.csr_array(X), y, qid=qid)
    assert set(model.trials_["inputs"]) == {None, "maxabs"}
    np.testing.assert_allclose(
        model.predict(scipy.sparse.csr_array(X)), model.predict(X), atol=1e-9
    )


@pytest.mark.parametrize(("cv", "scoring"), [(3, "map"), (None, "pairwise_accuracy")])
def test_splits_and_metrics(cv, scoring):
    X, y, qid = _made()
    model = AutoRanker(0.2, cv=cv, scoring=scoring).fit(X, y, qid=qid)
    assert model.scoring_.name == scoring
    alone = RankRLSCV(pairs=model.pairs_, target=model.target_, cv=cv, scoring=scoring)
    assert np.nanmax(model.trials_["score"]) >= alone.fit(X, y, qid=qid).best_score_ - 1e-12


def test_a_validation_set_judges():
    X, y, qid = _made()
    valid = _made(seed=5)
    model = AutoRanker(0.2).fit(X, y, qid=qid, validation=valid)
    held = evaluate("ndcg@10", valid[1], model.predict(valid[0]), valid[2])["ndcg@10"]
    assert model.best_score_ == pytest.approx(held, abs=1e-12)


def test_offsets_are_added():
    X, y, qid = _made()
    offset = 2.0 * X[:, 0]
    model = AutoRanker(0.05).fit(X, y, qid=qid, offset=offset)
    alone = RankRLSCV(pairs=model.pairs_, target=model.target_, inputs=model.best_estimator_.inputs)
    alone.fit(X, y, qid=qid, offset=offset)
    np.testing.assert_array_equal(model.predict(X, offset=offset), alone.predict(X, offset=offset))
    with pytest.raises(ValueError, match="offset"):
        model.predict(X)


def test_real_labels_of_one_query():
    X, y, _ = make_ranking(1, 80, random_state=0)
    model = AutoRanker().fit(X, y + 0.25)
    assert model.scoring_.name == "pairwise_accuracy"
    assert model.pairs_ == "with_ties"
    assert np.isnan(model.trials_["standard_error"]).all()


def test_weights_and_bad_parameters():
    X, y, qid = _made()
    weights = np.ones(len(y))
    weights[qid == 3] = 0
    kept = qid != 3
    ours = AutoRanker(0.1).fit(X, y, qid=qid, sample_weight=weights)
    without = AutoRanker(0.1).fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(ours.predict(X), without.predict(X), rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="time_budget must be"):
        AutoRanker(time_budget=0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="cv"):
        AutoRanker(cv=1).fit(X, y, qid=qid)


def test_lines_tell_what_is_tried(capsys):
    X, y, qid = _made()
    AutoRanker(0.1, verbose=True).fit(X, y, qid=qid)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("columns: 0.")
    assert lines[1].startswith("columns: 0.")
    assert lines[2].startswith("columns of standard inputs: 0.")


def test_what_takes_long_is_announced(capsys, set_limits):
    X, y, qid = _made()
    set_limits(long_seconds=0.0)
    AutoRanker(1e-6, verbose=True).fit(X, y, qid=qid)
    assert capsys.readouterr().err.startswith("columns: takes about ")
