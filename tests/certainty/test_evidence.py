"""The evidence as what chooses: beside scikit-learn's process, and where there is none."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, PairwiseKernel

import forms
import pairgram as pg
from axes import every

TOLD = {"scoring": "evidence", "pairs": pg.Pairs(weighting="documents")}


def made(n_lists=8, n_rows=5, seed=0):
    rng = np.random.default_rng(seed)
    qid, X = np.repeat(np.arange(n_lists), n_rows), rng.normal(size=(n_lists * n_rows, 4))
    y = X @ rng.normal(size=4) + 5 * rng.normal(size=n_lists)[qid] + rng.normal(size=len(qid))
    return X, y, qid


def same_list(x, z, gamma=None):
    return float(x[-1] == z[-1])


def nearness(x, z, gamma=None):
    return np.exp(-0.2 * ((x[:-1] - z[:-1]) ** 2).sum())


@pytest.mark.parametrize("constant", [1e5, 1e6])
def test_beside_scikit_learn(constant):
    X, y, qid = made()
    model = pg.RankRLSCV([0.3, 2.0], feature_map=pg.Kernel("rbf", gamma=0.2), **TOLD)
    model.fit(X, y, qid=qid)
    for alpha, evidence in zip(model.alphas_, model.scores_, strict=True):
        one = pg.RankRLS(
            alpha, feature_map=pg.Kernel("rbf", gamma=0.2), pairs=pg.Pairs(weighting="documents")
        ).fit(X, y, qid=qid)
        noise = _noise(one, X, y, qid)
        kernel = ConstantKernel(noise / alpha, "fixed") * PairwiseKernel(metric=nearness)
        kernel += ConstantKernel(constant, "fixed") * PairwiseKernel(metric=same_list)
        process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
        process.fit(np.column_stack((X, qid)), y)
        # A constant of every list has the variance c: its density in 0 and its number of rows.
        flat = process.log_marginal_likelihood_value_ + 0.5 * 8 * np.log(2 * np.pi * constant * 5)
        np.testing.assert_allclose(evidence, flat, atol=40 / constant * 10)


def _noise(model, X, y, qid):
    """Return the noise of the highest likelihood: what the best scores leave, and their norm."""
    left = y - model.predict(X)
    left -= np.repeat([left[qid == one].mean() for one in np.unique(qid)], 5)
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    scale = model.alpha * model.coef_ @ K @ model.coef_
    return (left @ left + scale) / (len(y) - len(np.unique(qid)))


def test_a_large_system_and_all_forms():
    rng = np.random.default_rng(1)
    qid, X = np.repeat(np.arange(60), 10), rng.normal(size=(600, 300))
    y = X @ rng.normal(size=300) + rng.normal(size=600)
    primal, dual = (
        forms.RankRLSCV(form=form, **TOLD).fit(X, y, qid=qid) for form in ("primal", "dual")
    )
    np.testing.assert_allclose(primal.alphas_, dual.alphas_, rtol=1e-9)
    # The least ridge is 4e-10 λ_max, of which rounding errors of eigenvalues 0 are a part.
    np.testing.assert_allclose(primal.scores_, dual.scores_, rtol=0, atol=1e-4)
    np.testing.assert_allclose(primal.scores_[:20], dual.scores_[:20], rtol=0, atol=1e-8)
    assert primal.form_ == "primal" and dual.form_ == "dual"
    # The ridge of these weights is 1, and its evidence is within the noise of the best.
    at_one = pg.RankRLSCV([1.0], **TOLD).fit(X, y, qid=qid).best_score_
    assert primal.best_score_ - 3 < at_one < primal.best_score_ + 1e-9 + 3
    single = pg.RankRLSCV(**TOLD).fit(X.astype(np.float32), y, qid=qid)
    np.testing.assert_allclose(single.scores_, primal.scores_, rtol=0, atol=1e-2)


@every(rows=[slice(8, 16), slice(None)], alike=[0.0, 1.0], pairs=["with_ties", None])
def test_rows_that_tell_nothing_have_labels_with_noise(pairs, alike, rows):
    """The kernel values of the rows of a list that are 0, or all equal, have no differences."""
    rng = np.random.default_rng(4)
    qid, X, y = np.repeat(np.arange(4), 8), rng.normal(size=(32, 3)), rng.normal(size=32)
    X[rows] = alike
    told = {**TOLD, "alphas": [10.0, 1.0, 0.1], "pairs": pairs}
    primal, dual = (
        forms.RankRLSCV(**told, form=form).fit(X, y, qid=qid) for form in ("primal", "dual")
    )
    np.testing.assert_allclose(dual.scores_, primal.scores_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(dual.predict(X), primal.predict(X), rtol=0, atol=1e-9)


def test_it_finds_the_ridge_of_the_model():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        qid, X = np.repeat(np.arange(20), 10), rng.normal(size=(200, 30))
        y = 0.5 * X @ rng.normal(size=30) + rng.normal(size=200)
        found.append(np.log(pg.RankRLSCV(**TOLD).fit(X, y, qid=qid).alpha_ / 4.0))
    assert abs(np.mean(found)) < 5 * np.std(found) / 40**0.5


def test_comparisons_and_rows_alone():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 3))
    first, second = np.triu_indices(20, 1)
    some = rng.permutation(len(first))[:60]
    first, second = first[some], second[some]
    weight, D = rng.uniform(0.5, 2.0, 60), X[first] - X[second]
    margin = D @ [1.0, -1.0, 0.0] + rng.normal(size=60) / weight**0.5
    first, second = np.where(margin > 0, [first, second], [second, first])
    D, margin = D * np.sign(margin)[:, None], np.abs(margin)
    y = pg.Preferences(first, second, margin=margin, weight=weight)
    alphas = np.array([0.1, 1.0, 50.0])
    expected = []
    for alpha in alphas:
        C = np.diag(1 / weight) + D @ D.T / alpha
        noise = margin @ np.linalg.solve(C, margin) / 60
        size = np.linalg.slogdet(C)[1] + np.log(weight).sum()
        expected.append(-0.5 * (60 * np.log(2 * np.pi * noise) + 60 + size))
    for form in ("primal", "dual"):
        model = forms.RankRLSCV(alphas, scoring="evidence", form=form).fit(X, y)
        np.testing.assert_allclose(model.scores_, expected, rtol=0, atol=1e-8)
        assert model.scoring_.name == "evidence"
    rows = pg.RankRLSCV(alphas, pairs=None, scoring="evidence")
    rows.fit(D, margin, qid=np.arange(60) // 6, sample_weight=weight)
    np.testing.assert_allclose(rows.scores_, expected, rtol=0, atol=1e-8)
    machine = pg.PointwiseELMCV(1 / alphas, feature_map=pg.Kernel("linear"), scoring="evidence")
    machine.fit(D, margin, qid=np.arange(60) // 6, sample_weight=weight)
    np.testing.assert_allclose(machine.scores_, expected, rtol=0, atol=1e-8)


def test_batches_files_and_what_is_told(tmp_path):
    X, y, qid = made()
    targets = np.column_stack((y, X[:, 0] + np.random.default_rng(0).normal(size=40)))
    search = pg.RankRLSCV(**TOLD)
    models = pg.fit_many(search, X, targets, qid=qid).models
    for target, model in zip(targets.T, models, strict=True):
        alone = pg.RankRLSCV(**TOLD).fit(X, target, qid=qid)
        np.testing.assert_allclose(model.scores_, alone.scores_, rtol=1e-10)
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    assert np.isnan(alone.cv_results_["std_test_score"]).all()
    assert alone.held_out_ is None and alone.scoring_.greater_is_better
    np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], alone.scores_)
    assert alone.best_index_ == np.argmax(alone.scores_)
    alone.save(tmp_path / "model.pairgram")
    np.testing.assert_array_equal(pg.load_model(tmp_path / "model.pairgram").coef_, alone.coef_)
    again = pg.RankRLSCV(**{**TOLD, "scoring": alone.scoring_}).fit(X, targets[:, 1], qid=qid)
    np.testing.assert_array_equal(again.scores_, alone.scores_)
    scaled = pg.RankRLSCV(scale=[False, True], **TOLD).fit(X * [1, 10, 0.1, 1], y, qid=qid)
    assert len(scaled.cv_results_["mean_test_score"]) == 68
    pairs = pg.PairwiseELMCV(scoring="evidence", n_nodes=20, random_state=0).fit(X, y, qid=qid)
    assert np.isfinite(pairs.best_score_)


def test_labels_without_noise():
    X, _, qid = made()
    y = X @ [1.0, 2.0, 3.0, 4.0]
    model = pg.RankRLSCV(**TOLD).fit(X, y, qid=qid)
    assert np.isfinite(model.scores_[:5]).all()
    tiny = pg.RankRLSCV([1e-14, 1.0], **TOLD).fit(X, y, qid=qid)
    assert np.isnan(tiny.scores_[0]) and tiny.alpha_ == 1.0


def test_priors_and_offsets_are_subtracted():
    X, y, qid = made()
    start = np.array([1.0, -1.0, 0.5, 0.0])
    left = pg.RankRLSCV([1.0, 5.0], **TOLD).fit(X, y - X @ start, qid=qid)
    for told, arguments in (({"prior": start}, {}), ({}, {"offset": X @ start})):
        model = pg.RankRLSCV([1.0, 5.0], **TOLD, **told).fit(X, y, qid=qid, **arguments)
        np.testing.assert_allclose(model.scores_, left.scores_, rtol=1e-12)
    mapped = pg.RankRLSCV([1.0], feature_map=pg.RandomFourier(50, random_state=0), **TOLD)
    assert np.isfinite(mapped.fit(X, y, qid=qid).best_score_)
