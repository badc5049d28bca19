"""Formulas of certainty and evidence, against a process with a flat constant in 50 digits."""

import numpy as np
import pandas as pd
from mpmath import mp

import forms
from axes import every
from pairgram import Kernel, Nystroem, Pairgram, Pairs, RankRLS, RankRLSCV, posterior, scan
from reference_process import Process, linear, rbf

SIZES = {"documents": (2, 4, 3, 5), "pairs": (4, 4, 4), "queries": (4, 4, 4)}
FORMS = {
    "primal": ({}, linear),
    "dual": ({"form": "dual"}, linear),
    "rbf": ({"feature_map": Kernel("rbf", gamma=0.3)}, rbf(0.3)),
}
ALPHA = 0.7


class Lists:
    """Rows of lists with large constants; sizes differ where the weighting bears it."""

    def __init__(self, weighting="documents"):
        rng = np.random.default_rng(5)
        sizes = SIZES[weighting]
        self.qid = np.repeat(np.arange(len(sizes)), sizes)
        n = len(self.qid)
        self.X = rng.normal(size=(n, 3)) + 2.0
        self.y = self.X @ [1.0, -2.0, 0.5] + 50.0 * self.qid + rng.normal(size=n)
        self.weight = rng.uniform(0.5, 2.0, n) if weighting == "documents" else np.ones(n)
        # How often the objective has L of weighting="documents": V times, or 2 / V times that.
        self.factor = {"documents": 1.0, "pairs": 4.0, "queries": 0.5}[weighting]

    @property
    def labelled(self):
        return {"X": self.X, "y": self.y, "qid": self.qid, "sample_weight": self.weight}

    def process(self, kernel, alpha=ALPHA):
        weight = [mp.mpf(self.factor) * w for w in self.weight.tolist()]
        return Process(kernel, self.X, self.y.tolist(), self.qid, weight, alpha)


def floats(matrix):
    return np.array(matrix.tolist(), float)


@every(form=FORMS, weighting=SIZES)
def test_deviations(form, weighting):
    lists, (setting, kernel) = Lists(weighting), FORMS[form]
    process = lists.process(kernel)
    model = forms.RankRLS(ALPHA, pairs=Pairs(weighting=weighting), **setting).fit(**lists.labelled)
    found = posterior(model, **lists.labelled)
    noise = float(process.noise_of_held_out_lists)
    np.testing.assert_allclose(found.noise, noise, rtol=1e-8)
    new = np.random.default_rng(0).normal(size=(7, 3)) + 2.0
    C = noise * floats(process.covariance(new, new))
    mean = floats(process.mean(new))[:, 0]
    scores, deviations = model.predict(new), found.std(new)
    np.testing.assert_allclose(scores - scores.mean(), mean - mean.mean(), rtol=1e-8)
    D = np.eye(7) - 1 / 7
    np.testing.assert_allclose(deviations, np.sqrt(np.diag(D @ C @ D)), rtol=1e-8)
    a, b = [0, 1, 2], [3, 4, 5]
    expected = np.sqrt(C[a, a] + C[b, b] - 2 * C[a, b])
    np.testing.assert_allclose(found.std_of_differences(new[a], new[b]), expected, rtol=1e-8)
    share = lists.weight / lists.weight.sum()
    of_mean = floats(process.covariance(new, lists.X)) @ share * noise
    own = noise * (share @ floats(process.covariance(lists.X, lists.X)) @ share)
    deviations = found.std(new, reference="training")
    expected = np.sqrt(np.diag(C) - 2 * of_mean + own)
    np.testing.assert_allclose(deviations, expected, rtol=1e-8)


def test_weights_and_their_draws():
    lists = Lists()
    process = lists.process(linear)
    model = RankRLS(ALPHA, pairs=Pairs(weighting="documents")).fit(**lists.labelled)
    found = posterior(model, **lists.labelled)
    noise = float(process.noise_of_held_out_lists)
    C = noise * floats(process.covariance(np.eye(3), np.eye(3)))
    np.testing.assert_allclose(found.covariance, C, rtol=1e-7, atol=1e-8 * C.max())
    # The bounds are five standard errors of 40,000 draws.
    draws = found.draw(40_000, random_state=0) - model.coef_
    spread = np.sqrt(np.outer(C.diagonal(), C.diagonal()) + C**2)
    assert (np.abs(np.cov(draws.T) - C) < 5 * spread / 200).all()
    assert (np.abs(draws.mean(axis=0)) < 5 * np.sqrt(C.diagonal()) / 200).all()


def test_noise_of_statistics():
    lists = Lists()
    process = lists.process(linear)
    total = Pairgram.from_rows(**lists.labelled, pairs=Pairs(weighting="documents"))
    found = posterior(RankRLS.from_pairgram(total, ALPHA), total)
    noise = float(process.left / process.degrees)
    np.testing.assert_allclose(found.noise, noise, rtol=1e-8)
    new = np.random.default_rng(0).normal(size=(4, 3))
    C = noise * floats(process.covariance(new, new))
    expected = np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1])
    np.testing.assert_allclose(found.std_of_differences(new[:1], new[1:2]), expected, rtol=1e-8)


@every(form=FORMS, weighting=SIZES)
def test_evidence(form, weighting):
    lists, (setting, kernel) = Lists(weighting), FORMS[form]
    alphas = [1e-3, 0.7, 100.0]
    expected = [float(lists.process(kernel, alpha).evidence) for alpha in alphas]
    model = forms.RankRLSCV(alphas, scoring="evidence", pairs=Pairs(weighting=weighting), **setting)
    model.fit(**lists.labelled)
    np.testing.assert_allclose(model.scores_, expected, rtol=0, atol=1e-8)
    assert model.alpha_ == alphas[int(np.argmax(expected))]


def test_evidence_of_a_band(set_limits):
    lists, alphas = Lists(), [1e-2, 1.0, 30.0]
    set_limits(band_order=2)
    for setting, kernel in FORMS.values():
        expected = [float(lists.process(kernel, alpha).evidence) for alpha in alphas]
        model = forms.RankRLSCV(
            alphas, scoring="evidence", pairs=Pairs(weighting="documents"), **setting
        )
        found = model.fit(**lists.labelled).scores_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_evidence_compares_maps_and_gammas():
    lists, told = Lists(), {"scoring": "evidence", "pairs": Pairs(weighting="documents")}
    model = forms.RankRLSCV(
        [ALPHA], feature_map=[Kernel("rbf", gamma=g) for g in [0.05, 0.3]], **told
    ).fit(**lists.labelled)
    of_gammas = [float(lists.process(rbf(gamma)).evidence) for gamma in (0.05, 0.3)]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], of_gammas, atol=1e-8)
    maps = [None, Nystroem("rbf", gamma=0.3, n_components=14)]
    model = forms.RankRLSCV([ALPHA], feature_map=maps, **told).fit(**lists.labelled)
    of_maps = [float(lists.process(linear).evidence), of_gammas[1]]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], of_maps, atol=1e-6)


def test_evidence_of_weighted_rows_and_the_noise_of_a_table(tmp_path):
    lists, alphas = Lists(), [0.1, 0.7, 10.0]
    lists.weight[3] = 0.0  # a row that counts as absent
    seen = lists.weight > 0
    rows = Lists()
    rows.X, rows.y, rows.qid, rows.weight = (
        part[seen] for part in (lists.X, lists.y, lists.qid, lists.weight)
    )
    expected = [float(rows.process(linear, alpha).evidence) for alpha in alphas]
    search = RankRLSCV(alphas, scoring="evidence", pairs=Pairs(weighting="documents"))
    search.fit(lists.X, lists.y, qid=lists.qid, sample_weight=lists.weight)
    np.testing.assert_allclose(search.scores_, expected, rtol=0, atol=1e-8)
    assert search.best_score_ == search.scores_.max() and search.alpha_ == alphas[1]
    frame = pd.DataFrame({"y": lists.y, "q": lists.qid, "w": lists.weight})
    for j in range(3):
        frame[f"f{j}"] = lists.X[:, j]
    for number, part in enumerate(np.split(np.arange(len(frame)), [4, 9])):
        frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    for source in (frame, tmp_path):
        table = scan(source, label="y", qid="q", weight="w")
        found = posterior(RankRLS(0.7, pairs=Pairs(weighting="documents")).fit(table), table)
        noise = float(rows.process(linear, 0.7).left) / (seen.sum() - 4)
        np.testing.assert_allclose(found.noise, noise, rtol=1e-8)
