"""fit_many against a plain loop of fits."""

import weakref
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit

import pairgram as pg
from parts.rankers import fit_many as fit_many_module


def problems(n=6, seed=0):
    """Problems of many sizes: one query or several, tuples or dicts, with and without weights."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        n_queries = 1 if i % 3 == 0 else 6
        X, y, qid = pg.make_ranking(
            n_queries, 36 if n_queries == 1 else 4 + i, n_features=3, random_state=seed + i
        )
        if i % 3 == 0:
            found.append((X, y))
        elif i % 3 == 1:
            found.append((X, y, qid))
        else:
            order = rng.permutation(len(y))
            found.append(
                {
                    "X": X[order],
                    "y": y[order],
                    "qid": qid[order],
                    "sample_weight": rng.choice([0.0, 1.0, 2.0], len(y)),
                    "query_weight": None,
                }
            )
    return found


def fitted_alone(estimator, problem):
    if isinstance(problem, tuple):
        problem = dict(zip(("X", "y", "qid"), problem, strict=False))
    return clone(estimator).fit(**{k: v for k, v in problem.items() if v is not None})


def rows_of(problem):
    return problem["X"] if isinstance(problem, dict) else problem[0]


@pytest.mark.parametrize(
    "estimator",
    [
        pg.ELMRank(n_nodes=7, random_state=0),
        pg.ELMRank(n_nodes=60, n_estimators=3, pairs="without_ties", scope="query", random_state=1),
        pg.ELMRankCV(n_nodes=7, cv=3, random_state=0),
        pg.ELMRankCV(
            [1.0, 0.1],
            [8.0],
            n_nodes=50,
            cv=3,
            n_estimators=2,
            pairs="gain_difference",
            random_state=0,
        ),
        pg.ELMRankCV(
            n_nodes=5, cv=3, weight_range=[(-1, 1), [-3, 3]], scoring="ndcg", random_state=0
        ),
        pg.ELMRankCV(n_nodes=5, cv=3, activation=np.tanh, random_state=0),
        pg.ELMRankCV(n_nodes=5, cv=ShuffleSplit(2, test_size=0.5, random_state=0), random_state=0),
        pg.ELMRankCV(
            n_nodes=5,
            cv=KFold(3, shuffle=True, random_state=np.random.RandomState(0)),
            random_state=0,
        ),
        pg.ELMRank(n_nodes=7, random_state=np.random.RandomState(5)),
        pg.ELMRank(n_nodes=7, random_state=np.random.default_rng(5)),
    ],
)
def test_elm_models_have_the_bits_of_fits_alone(estimator):
    given = problems()
    found = pg.fit_many(estimator, given)
    assert (found.table["error"] == None).all()  # noqa: E711
    for model, problem in zip(found.models, given, strict=True):
        alone = fitted_alone(estimator, problem)
        assert type(model) is type(alone)
        assert vars(model).keys() == vars(alone).keys()
        assert (model.coef_ == alone.coef_).all()
        assert (model.predict(rows_of(problem)) == alone.predict(rows_of(problem))).all()
        assert model.uses_qid_ == alone.uses_qid_
        if isinstance(model, pg.ELMRankCV):
            assert (model.scores_ == alone.scores_).all()
            assert (model.alpha_, model.C_) == (alone.alpha_, alone.C_)
            assert model.weight_range_ == alone.weight_range_


@pytest.mark.parametrize(
    "estimator",
    [
        pg.RankRLS(),
        pg.RankRLS(0.0),
        pg.RankRLS(0.3, pairs="without_ties", weighting="queries"),
        pg.RankRLS(pairs="label_difference", target="gain"),
        pg.RankRLS(pairs=None, feature_map=pg.RandomNodes(50, random_state=0)),
        pg.RankRLS(scope="global", feature_map=pg.RandomNodes(5, random_state=0)),
        pg.RankRLS(scale=True),
        pg.RankRLSCV(cv=3),
        pg.RankRLSCV([10.0, 1.0], cv=3, pairs="without_ties", scoring="kendall"),
        pg.RankRLSCV(cv=3, pairs=None, feature_map=pg.RandomNodes(5, random_state=0)),
        pg.RankRLSCV(cv=3, pairs=["with_ties", "without_ties"]),
        pg.RankRLSCV(),
        pg.PointwiseELM(0.1, random_state=0),
        pg.PairwiseELM(0.1, n_nodes=30, activation="tanh", pairs="without_ties", random_state=0),
        pg.PairwiseELM(0.1, kernel="rbf"),
        pg.PointwiseELMCV([0.1, 1.0], cv=3, kernel="linear"),
        pg.PairwiseELMCV(cv=3, n_nodes=30, activation="tanh", random_state=0),
    ],
)
def test_rank_rls_models_are_those_of_fits_alone(estimator):
    given = problems()
    found = pg.fit_many(estimator, given, n_threads=2)
    for model, problem in zip(found.models, given, strict=True):
        alone = fitted_alone(estimator, problem)
        assert vars(model).keys() == vars(alone).keys()
        expected = alone.predict(rows_of(problem))
        np.testing.assert_allclose(
            model.predict(rows_of(problem)), expected, atol=1e-8 * abs(expected).max()
        )
        if hasattr(model, "alphas_"):
            np.testing.assert_allclose(model.alphas_, alone.alphas_, rtol=1e-10)
            np.testing.assert_allclose(model.scores_, alone.scores_, rtol=1e-6)
            assert model.cv_results_.keys() == alone.cv_results_.keys()
            assert (model.pairs_, model.scale_) == (alone.pairs_, alone.scale_)


def test_what_compiled_code_fits_side_by_side(monkeypatch):
    """Fits of small problems do not go through the estimator's fit."""
    given = problems(3)

    def native(estimator, given=given):
        with monkeypatch.context() as patch:
            patch.setattr(fit_many_module._Batch, "_fit_alone", lambda self, fit: None)
            return [model is not None for model in pg.fit_many(estimator, given).models]

    assert native(pg.ELMRank(n_nodes=5)) == [True] * 3
    assert native(pg.ELMRankCV(n_nodes=5, cv=3)) == [True] * 3
    assert native(pg.RankRLS(pairs="gain_difference")) == [True] * 3
    assert native(pg.RankRLSCV(cv=3)) == [True] * 3
    assert native(pg.RankRLSCV()) == [True] * 3
    assert native(pg.PairwiseELMCV(cv=3, random_state=0)) == [True] * 3
    assert native(pg.RankRLSCV(cv=3, target=["label", "gain"])) == [False] * 3
    assert native(pg.RankRLSCV([1.0], cv="leave-pair-out"), given[:1]) == [False]
    assert native(pg.RankRLS(scale=True)) == [False] * 3
    assert native(pg.RankRLS(form="dual")) == native(pg.RankRLS(kernel="rbf")) == [False] * 3
    assert native(Recording()) == [False] * 3
    assert native(pg.RankRLS(), [(csr_array(given[0][0]), given[0][1])]) == [False]
    assert native(pg.RankRLS(), [(given[0][0].astype(np.float32), given[0][1])]) == [True]


def test_any_estimator_and_any_rows():
    given = problems(3)
    ridge = pg.fit_many(Ridge(), [problem[:2] for problem in given[:2]])
    assert (ridge.models[1].coef_ == Ridge().fit(*given[1][:2]).coef_).all()
    np.testing.assert_array_equal(ridge.table["alpha"], [1.0, 1.0])
    X, y = given[0]
    rows = [csr_array(X), X.tolist(), np.asfortranarray(X)]
    for model in (pg.RankRLS(), pg.ELMRank(n_nodes=4, random_state=0)):
        found = pg.fit_many(model, [(each, y.tolist()) for each in rows])
        for each, one in zip(rows, found.models, strict=True):
            np.testing.assert_allclose(one.coef_, clone(model).fit(each, y).coef_, rtol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [pg.RankRLS(), pg.RankRLSCV(cv=3), pg.RankRLSCV(), pg.PairwiseELM(0.1, random_state=0)],
)
def test_small_problems_of_float32_rows_are_solved_in_float64(estimator):
    given = [p for p in problems(6) if isinstance(p, tuple)]
    single = [(X.astype(np.float32), *rest) for X, *rest in given]
    found = pg.fit_many(estimator, single, on_error="raise").models
    for model, (X, *rest) in zip(found, single, strict=True):
        double = fitted_alone(estimator, (X.astype(np.float64), *rest))
        np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-8)
        alone = fitted_alone(estimator, (X, *rest))  # whose statistics are summed in float32
        expected = alone.predict(X)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-5 * np.abs(expected).max())
        assert model.predict(X).dtype == np.float32
        assert getattr(model, "alpha_", None) == pytest.approx(getattr(alone, "alpha_", None))


def test_names_of_columns():
    X, y = problems(1)[0]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for estimator in (pg.RankRLS(), pg.ELMRankCV(n_nodes=4, cv=3, random_state=0)):
        model = pg.fit_many(estimator, [(frame, y)]).models[0]
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "estimator",
    [
        pg.ELMRank(n_nodes=8, n_estimators=2, random_state=0),
        pg.ELMRankCV(n_nodes=30, cv=3, weight_range=[(-1, 1), (-5, 5)], random_state=0),
        pg.ELMRankCV(n_nodes=5, random_state=0),
        pg.RankRLS(pairs=None),
        pg.RankRLSCV(cv=3),
        pg.RankRLSCV(),
        pg.RankRLSCV(scale=[False, True], scoring="pairwise_squared_error"),
        pg.RankRLSCV(kernel="rbf", gamma=[0.1, 1.0]),
        pg.PairwiseELMCV(n_nodes=30, activation="tanh", random_state=0),
    ],
)
def test_many_targets(estimator):
    rng = np.random.default_rng(0)
    X, qid = rng.uniform(size=(30, 3)), np.repeat(np.arange(6), 5)
    Y = np.column_stack([X @ rng.normal(size=3) + rng.normal(size=30) for _ in range(4)])
    found = pg.fit_many(estimator, [(X, Y, qid), (X, Y[:, 0], qid)])
    assert [len(found.models[0]), found.models[1] is not None] == [4, True]
    for target, model in enumerate(found.models[0]):
        alone = clone(estimator).fit(X, Y[:, target], qid=qid)
        expected = alone.predict(X)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-8 * abs(expected).max())
        if hasattr(alone, "alpha_"):
            assert found.table["best_score"][target] == pytest.approx(alone.best_score_, rel=1e-7)
            scores = alone.cv_results_["mean_test_score"]
            np.testing.assert_allclose(model.cv_results_["mean_test_score"], scores, rtol=1e-7)
    assert found.table["problem"].tolist() == [0, 0, 0, 0, 1]
    assert found.table["target"].tolist() == [0, 1, 2, 3, 0]
    dropped = clone(estimator).set_params(pairs="without_ties")
    with pytest.warns(FitFailedWarning, match="needs pairs='with_ties' or None"):
        found = pg.fit_many(dropped, [(X, Y, qid), (X, Y[:, 0], qid)])
    assert found.models[0] == [None] * 4 and found.models[1] is not None


def test_errors_do_not_stop_the_others():
    given = problems(8)
    X, y = given[0]
    infinite = X.copy()
    infinite[2, 0] = np.inf
    bad = {
        1: ((infinite, y), "infinity"),
        2: ((X, np.full(len(y), 3.0)), "no pair of rows counts"),
        4: ((X, y[:-1]), "y must have a label for each of"),
        5: (X, "a problem must be"),
        6: ({"X": X}, "must have X and y"),
        7: ({"X": X, "y": y, "qid": [None] * len(y)}, "qid must not be missing"),
    }
    for number, (problem, _) in bad.items():
        given[number] = problem
    estimator = pg.ELMRankCV(n_nodes=5, cv=3, pairs="without_ties", random_state=0)
    with pytest.warns(FitFailedWarning, match="6 of 8 problems failed, the first is problem 1"):
        found = pg.fit_many(estimator, given)
    assert repr(found) == "<BatchFit of 8 models, 6 failed>"
    for number, model in enumerate(found.models):
        if number not in bad:
            assert (model.coef_ == fitted_alone(estimator, given[number]).coef_).all()
            assert found.table["alpha"][number] == model.alpha_
            assert found.table["C"][number] == model.C_
            assert found.table["best_score"][number] == model.best_score_
            assert found.table["n_rows"][number] == len(rows_of(given[number]))
            continue
        assert model is None
        assert bad[number][1] in found.table["error"][number]
        assert np.isnan(found.table["alpha"][number])
    for number in (1, 2, 4, 7):  # which fit itself refuses in the same words
        with pytest.raises(ValueError) as error:
            fitted_alone(estimator, given[number])
        assert found.table["error"][number] == f"ValueError: {error.value}"
    with pytest.raises(ValueError, match="infinity") as error:
        pg.fit_many(estimator, given, on_error="raise")
    assert error.value.__notes__ == ["in problem 1 of fit_many"]


def test_columns_without_values_are_told_once():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["user"], frame["label"] = np.arange(60) % 4, rng.normal(size=60)
    frame.loc[frame["user"] > 0, "b"] = np.nan
    named = {"by": "user", "label": "label"}
    message = (
        "column 'b' of X has no value in any row of 3 of 4 problems, so that 0 takes the place"
    )
    for estimator in (pg.RankRLS(missing="mean"), pg.RankRLSCV(missing="mean", cv=3)):
        with pytest.warns(UserWarning, match=f"{message} of the mean") as caught:
            found = pg.fit_many(estimator, frame, **named)
        assert len(caught) == 1 and found.models[1].fill_values_[1] == 0
    large = rng.normal(size=(300, 300))
    large[:, 7] = np.nan  # fitted alone, and once for each target
    targets = rng.normal(size=(300, 2))
    for y, threads in ((targets, 1), (targets, 2), (targets[:, 0], 2)):
        with pytest.warns(UserWarning, match="column 7 of X has no value in any row of 2 of 2 "):
            pg.fit_many(pg.RankRLS(missing="mean"), 2 * [(large, y)], n_threads=threads)
    frame.loc[frame["user"] == 1, "c"] = np.nan
    problems = [(d[["a", "b", "c"]].to_numpy(), d["label"]) for _, d in frame.groupby("user")]
    with pytest.warns(UserWarning, match="columns 1, 2 of X have no value .* of up to 3 of 4"):
        pg.fit_many(pg.RankRLS(missing="median"), problems)
    problems = [(d[["a", "b", "c"]], d["label"]) for _, d in frame.groupby("user")]
    with pytest.warns(UserWarning, match="columns 'b', 'c' of X have no value .* of up to 3 of 4"):
        pg.fit_many(pg.RankRLS(missing="median"), problems)


@pytest.mark.parametrize(
    "estimator", [pg.RankRLS("1"), pg.RankRLSCV(cv=99), pg.ELMRank(n_nodes=0), Ridge(-1)], ids=str
)
def test_errors_of_the_estimator(estimator):
    with pytest.raises(ValueError, match="1 of 1 problems failed") as found:
        pg.fit_many(estimator, problems(1))
    with pytest.raises(ValueError) as error:
        fitted_alone(estimator, problems(1)[0])
    assert str(error.value) in str(found.value)


def test_groups_and_threads_change_nothing(set_limits):
    given = problems(7)
    estimator = pg.ELMRankCV(n_nodes=6, cv=3, n_estimators=2, random_state=0)
    one = pg.fit_many(estimator, iter(given), n_threads=1)
    set_limits(group_size=2)
    set_limits(batch_bytes=1)
    four = pg.fit_many(estimator, iter(given), n_threads=4)
    for a, b in zip(one.models, four.models, strict=True):
        assert (a.coef_ == b.coef_).all()
        assert (a.scores_ == b.scores_).all()


def test_the_estimator_stays_as_it_was_and_no_problems_are_no_models():
    estimator = pg.ELMRankCV(n_nodes=6, cv=pg.QueryKFold(3), random_state=np.random.RandomState(0))
    X, y, qid = problems(2)[1]
    first = pg.fit_many(estimator, [(X, y, qid), (X, y, qid)])
    assert not hasattr(estimator, "coef_")
    assert (first.models[0].coef_ == first.models[1].coef_).all()
    again = pg.fit_many(estimator, [(X, y, qid)])
    assert (first.models[0].coef_ == again.models[0].coef_).all()
    nothing = pg.fit_many(estimator, [])
    assert nothing.models == []
    assert {len(column) for column in nothing.table.values()} == {0}


def test_models_share_no_parameter():
    X, y, _ = pg.make_ranking(1, 20, n_features=3, random_state=0)
    targets = np.column_stack([y, y + X[:, 0]])
    nodes = pg.RankRLS(feature_map=pg.RandomNodes(8, random_state=0))
    several, one = pg.fit_many(nodes, [(X, targets), (X, y)]).models
    models = [*several, one]
    models[0].set_params(feature_map__n_nodes=3)
    assert [model.feature_map.n_nodes for model in models] == [3, 8, 8]
    ranges = [[-1.0, 1.0], [-2.0, 2.0]]
    chosen = pg.ELMRankCV(n_nodes=4, cv=3, weight_range=ranges, random_state=0)
    first, second = pg.fit_many(chosen, [(X, y), (X, y)]).models
    first.weight_range[0][0] = 0.0
    assert second.weight_range == [[-1.0, 1.0], [-2.0, 2.0]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(
    "estimator",
    [
        pg.ELMRankCV(n_nodes=4, cv=3, random_state=0),
        pg.RankRLSCV(cv=3),
        Ridge(),
        pg.ELMRank(n_nodes=4, scope="none"),
    ],
    ids=str,
)
def test_data_are_let_go(estimator, n_threads, set_limits):
    set_limits(group_size=1)
    alive = []

    def refilled():
        seen = []
        for seed in range(8):
            X, y, _ = pg.make_ranking(1, 20, n_features=3, random_state=seed)
            seen += [weakref.ref(X), weakref.ref(y)]
            alive.append(sum(reference() is not None for reference in seen))
            yield {"X": X, "y": y}
            del X, y

    all_fail = getattr(estimator, "scope", None) == "none"
    with pytest.raises(ValueError, match="8 of 8") if all_fail else nullcontext():
        pg.fit_many(estimator, refilled(), n_threads=n_threads)
    assert max(alive) <= 2 * (2 if n_threads == 1 else 5)


class Recording(pg.RankRLS):
    """Tells how many threads it was fitted with."""

    def fit(self, X, y, **weights):
        self.fitted_with_ = self.n_threads
        return super().fit(X, y, **weights)


def test_threads_of_fits_alone():
    found = pg.fit_many(Recording(n_threads=2), [problems(1)[0]], n_threads=1).models[0]
    assert (found.fitted_with_, found.n_threads) == (1, 2)
    found = pg.fit_many(Recording(n_threads=2), [problems(1)[0]]).models[0]
    assert (found.fitted_with_, found.n_threads) == (2, 2)


@pytest.mark.parametrize("own", [None, 1, 4])
def test_threads_of_feature_maps(own):
    nodes = pg.RandomNodes(4, random_state=0, n_threads=own)
    for estimator in (
        Recording(feature_map=nodes, n_threads=2),
        pg.RankRLS(feature_map=nodes, n_threads=2),
    ):
        found = pg.fit_many(estimator, [problems(1)[0]], n_threads=1).models[0]
        alone = clone(estimator).fit(*problems(1)[0])
        assert found.feature_map_.n_threads == alone.feature_map_.n_threads == (own or 2)


def test_no_targets_are_an_error():
    X, y = problems(1)[0]
    with pytest.warns(FitFailedWarning, match=r"1 of 2 problems failed.*shape \(36, 0\)"):
        found = pg.fit_many(pg.RankRLS(), [(X, y[:, None][:, :0]), (X, y)])
    assert found.models[0] is None
    assert found.table["error"][0].startswith("ValueError: y must have one label")


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("estimator", [pg.RankRLS(), pg.RankRLSCV([1.0, 0.1], scoring="ips_dcg@5")])
def test_propensities_divide_every_target(estimator, n_targets):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(10), 6)
    clicks = (rng.random((60, n_targets)) < 0.4) * 1.0
    propensity = rng.uniform(0.2, 1.0, 60)
    problem = {"X": X, "y": clicks, "qid": qid, "propensity": propensity}
    for model, click in zip(pg.fit_many(estimator, [problem]).models[0], clicks.T, strict=True):
        alone = clone(estimator).fit(X, click, qid=qid, propensity=propensity)
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-12)
