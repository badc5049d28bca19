"""How sure scores are, against dense Gaussian processes with a flat constant for every list."""

import copy

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import forms
import pairgram as pg
from axes import every
from fuzz.forge import Tensor, pack, parse
from parts.support import on_threads
from row_value import row_value

ALPHA = 3.0


def sure(model, X, y=None, **told):
    """Return the posterior of a model that is fitted to rows."""
    return pg.posterior(model.fit(X, y, **told), X, y, **told)


class Lists:
    """Rows of lists with different constants, and weights."""

    def __init__(self, n_lists=10, n_rows=6, n_columns=5, seed=0, sizes=None):
        rng = np.random.default_rng(seed)
        sizes = np.full(n_lists, n_rows) if sizes is None else np.asarray(sizes)
        self.qid = np.repeat(np.arange(len(sizes)), sizes)
        n = len(self.qid)
        self.X = rng.normal(size=(n, n_columns)) + 20.0
        self.weight = rng.uniform(0.5, 2.0, n)
        truth = rng.normal(size=n_columns)
        constants = 3.0 * rng.normal(size=len(sizes))
        self.y = self.X @ truth + constants[self.qid] + rng.normal(size=n) / self.weight**0.5

    @property
    def labelled(self):
        return {"X": self.X, "y": self.y, "qid": self.qid, "sample_weight": self.weight}


LISTS = Lists()


def covariance(K, qid, weight, alpha):
    """Return that of the scores of all rows in units of the noise, with a flat constant by list."""
    B = (qid[:, None] == np.unique(qid)).astype(float)
    W = np.diag(weight)
    L = W - W @ B @ np.linalg.inv(B.T @ W @ B) @ B.T @ W
    P = K / alpha
    return P - P @ L @ np.linalg.solve(np.eye(len(P)) + P @ L, P)


def relative(C, shares):
    """Return the deviations of scores relative to a mean, of which each row of shares is one."""
    D = np.eye(len(C)) - shares
    return np.sqrt(np.diag(D @ C @ D.T))


def within(qid, weight=1.0):
    same = (qid[:, None] == qid) * weight
    return same / same.sum(axis=1, keepdims=True)


KINDS = {
    "primal": ({}, lambda X: X @ X.T),
    "dual": ({"form": "dual"}, lambda X: X @ X.T),
    "rbf": (
        {"feature_map": pg.Kernel("rbf", gamma=0.2)},
        lambda X: np.exp(-0.2 * cdist(X, X) ** 2),
    ),
    "tanimoto": (
        {"feature_map": pg.Kernel("tanimoto")},
        lambda X: X @ X.T / ((X**2).sum(1)[:, None] + (X**2).sum(1) - X @ X.T),
    ),
}


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_deviations(kind, search, tmp_path):
    lists, (setting, kernel) = Lists(), KINDS[kind]
    told = {"pairs": pg.Pairs(weighting="documents"), **setting}
    model = forms.RankRLSCV([ALPHA], **told) if search else forms.RankRLS(ALPHA, **told)
    posterior, X, qid = sure(model, **lists.labelled), lists.X, lists.qid
    assert posterior.kind == "exact" and posterior.label_noise == pytest.approx(posterior.noise)
    unit = posterior.noise**0.5
    K = kernel(X)
    C = covariance(K, qid, lists.weight, ALPHA)
    found = posterior.std(X, qid=qid)
    np.testing.assert_allclose(found / unit, relative(C, within(qid)), rtol=1e-8, atol=1e-9)
    found = posterior.std(X)
    everybody = np.full((len(X), len(X)), 1 / len(X))
    np.testing.assert_allclose(found / unit, relative(C, everybody), rtol=1e-8, atol=1e-9)
    found = posterior.std(X, reference="training")
    training = np.tile(lists.weight / lists.weight.sum(), (len(X), 1))
    np.testing.assert_allclose(found / unit, relative(C, training), rtol=1e-7, atol=1e-8)
    a, b = np.arange(30), np.arange(30, 60)
    expected = np.sqrt(C[a, a] + C[b, b] - 2 * C[a, b])
    found = posterior.std_of_differences(X[a], X[b])
    np.testing.assert_allclose(found / unit, expected, rtol=1e-8, atol=1e-9)
    above = posterior.probability_above(X[a], X[b])
    np.testing.assert_allclose(above, 1 - posterior.probability_above(X[b], X[a]), atol=1e-12)
    difference = model.predict(X[a]) - model.predict(X[b])
    assert ((above > 0.5) == (difference > 0)).all()
    posterior.save(tmp_path / "posterior")
    loaded = pg.Posterior.load(tmp_path / "posterior")
    assert (loaded.noise, loaded.kind) == (posterior.noise, posterior.kind)
    np.testing.assert_allclose(loaded.model.predict(X), model.predict(X), rtol=1e-9)
    for reference in ("list", "training"):
        again = loaded.std(X[:20], reference=reference)
        np.testing.assert_array_equal(again, posterior.std(X[:20], reference=reference))
    model.fit(-X, lists.y)  # of which the posterior knows nothing
    np.testing.assert_array_equal(posterior.std_of_differences(X[a], X[b]), found)


@pytest.mark.parametrize("constant", [1e5, 1e6])
def test_beside_scikit_learn(constant):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=50)
    kernel = RBF(1.0, "fixed") + ConstantKernel(constant, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(X, y)
    mean, C = process.predict(Z, return_cov=True)
    told = {"pairs": pg.Pairs(weighting="documents"), "feature_map": pg.Kernel("rbf", gamma=0.5)}
    model = forms.RankRLS(0.05, **told)
    posterior = sure(model, X, y)
    scores, found = model.predict(Z), posterior.std(Z)
    np.testing.assert_allclose(scores - scores.mean(), mean - mean.mean(), atol=1e-5)
    expected = relative(C, np.full((20, 20), 1 / 20))
    # The process of scikit-learn has the noise 0.05, and so the prior variance 1.
    np.testing.assert_allclose(found * (0.05 / posterior.noise) ** 0.5, expected, rtol=1e-5)


def test_noise_is_unbiased():
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(8), 6), rng.normal(size=(48, 4))
    found = []
    for _ in range(400):
        w = rng.normal(size=4)
        y = X @ w + 5.0 * rng.normal(size=8)[qid] + 2**0.5 * rng.normal(size=48)
        model = pg.RankRLS(2.0, pairs=pg.Pairs(weighting="documents"))
        found.append([sure(model, X, y, qid=qid).noise])
        C = covariance(X @ X.T, qid, np.ones(48), 2.0)
        error = model.predict(X) - X @ w
        D = np.eye(48) - within(qid)
        scaled = error @ np.linalg.pinv(D @ C @ D.T, rcond=1e-8) @ error
        found[-1].append(scaled / (2.0 * 4))
    noise, scale = np.mean(found, axis=0)
    assert abs(noise - 2.0) < 0.1 and abs(scale - 1.0) < 0.06


@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
def test_equal_lists_have_the_same_deviations_in_every_weighting(weighting):
    lists = Lists()
    told = {"X": lists.X, "y": lists.y, "qid": lists.qid}
    unit = {"pairs": 6.0, "documents": 1.0, "queries": 2 / 6}[weighting]
    model = pg.RankRLS(ALPHA * unit, pairs=pg.Pairs(weighting=weighting))
    posterior = sure(model, **told)
    other = sure(pg.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents")), **told)
    assert posterior.kind == "exact"
    found, expected = (one.std(lists.X, qid=lists.qid) for one in (posterior, other))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert posterior.label_noise == pytest.approx(other.label_noise)
    lists = Lists(sizes=[2, 3, 9, 12])
    posterior = sure(model, lists.X, lists.y, qid=lists.qid)
    assert posterior.kind == ("exact" if weighting == "documents" else "approximate")


@every(
    setting=[
        {"scale": True},
        {"feature_map": "standard"},
        {"feature_map": "quantile"},
        {"feature_map": pg.RandomFourier(30, gamma=0.02, random_state=0)},
        {"feature_map": pg.RandomNodes(8, activation="linear", random_state=0)},
        {"feature_map": row_value("standard", pg.RandomNodes(100, random_state=0))},
        {"feature_map": pg.Cross([0], [1, 2, 3])},
        {"pairs": None},
        {"pairs": pg.Pairs(scope="global", weighting="documents")},
    ]
)
def test_any_features(setting):
    lists = Lists(seed=1)
    model = forms.RankRLS(ALPHA, **{"pairs": pg.Pairs(weighting="documents"), **setting})
    posterior = sure(model, **lists.labelled)
    H = lists.X if model.feature_map_ is None else model.feature_map_.transform(lists.X)
    qid = lists.qid if "global" not in str(setting) else 0 * lists.qid
    if setting.get("scale"):
        D = np.eye(len(H)) - within(qid, lists.weight)
        H = H / np.sqrt(np.einsum("ij,i,ij->j", D @ H, lists.weight, D @ H))
    C = covariance(H @ H.T, qid, lists.weight, ALPHA)
    if setting.get("pairs", "") is None:
        P = H @ H.T / ALPHA
        C = P - P @ np.linalg.solve(P + np.diag(1 / lists.weight), P)
    found = posterior.std(lists.X, qid=lists.qid)
    expected = relative(C, within(lists.qid))
    np.testing.assert_allclose(found / posterior.noise**0.5, expected, rtol=1e-6, atol=1e-8)


def test_wide_rows_of_few_lists():
    lists = Lists(4, 5, 60)
    posterior = sure(pg.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents")), **lists.labelled)
    assert posterior.model.form_ == "dual"
    C = covariance(lists.X @ lists.X.T, lists.qid, lists.weight, ALPHA)
    found = posterior.std(lists.X, qid=lists.qid)
    unit = posterior.noise**0.5
    np.testing.assert_allclose(found / unit, relative(C, within(lists.qid)), rtol=1e-7)
    other = np.random.default_rng(1).normal(size=(2, 60)) + 20  # has directions of its own
    sparse = scipy.sparse.csr_array(lists.X)
    of_sparse = forms.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents"), form="dual")
    told = {"y": lists.y, "qid": lists.qid, "sample_weight": lists.weight}
    np.testing.assert_allclose(
        sure(of_sparse, sparse, **told).std_of_differences(other[:1], other[1:]),
        posterior.std_of_differences(other[:1], other[1:]),
        rtol=1e-7,
    )


def test_statistics_and_tables():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    told = {"pairs": pg.Pairs(weighting="documents")}
    total = pg.Pairgram.from_rows(LISTS.X, LISTS.y, qid=LISTS.qid, **told)
    model = pg.RankRLS.from_pairgram(total, ALPHA)
    posterior = pg.posterior(model, total)
    B = within(LISTS.qid)
    r = LISTS.y - model.predict(LISTS.X)
    expected = (LISTS.y - B @ LISTS.y) @ (r - B @ r) / (60 - 10)
    assert posterior.noise == pytest.approx(expected)
    C = covariance(LISTS.X @ LISTS.X.T, LISTS.qid, np.ones(60), ALPHA)
    found = posterior.std(LISTS.X, qid=LISTS.qid)
    np.testing.assert_allclose(found / expected**0.5, relative(C, B), rtol=1e-7)
    frame = pandas.DataFrame(LISTS.X, columns=list("abcde")).assign(y=LISTS.y, q=LISTS.qid)
    table = pg.scan(frame, label="y", qid="q")
    X = frame[list("abcde")]
    for kind in (forms.RankRLS(ALPHA, **told), forms.RankRLSCV([ALPHA], **told)):
        of_table = sure(kind, table)
        again = of_table.std(X, qid=LISTS.qid)
        np.testing.assert_allclose(again, found, rtol=1e-7)
        np.testing.assert_array_equal(of_table.std(table), again)
        ranges = of_table.rank_ranges(table)
        for name, values in of_table.rank_ranges(X, qid=LISTS.qid).items():
            np.testing.assert_array_equal(ranges[name], values)
        chosen = pg.propose(of_table, table, 3, strategy="variance")
        alone = pg.propose(of_table, X, 3, strategy="variance")
        assert chosen.tolist() == alone.tolist()


@pytest.mark.parametrize(
    "told", [{"scale": True}, {"feature_map": "quantile"}, {"feature_map": row_value(fill="mean")}]
)
def test_tables_with_settings(told):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, given = LISTS.X.copy(), {"pairs": pg.Pairs(weighting="documents"), **told}
    if isinstance(told.get("feature_map"), pg.Fill):
        X[3, 2] = np.nan
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(y=LISTS.y, q=LISTS.qid)
    found = sure(forms.RankRLS(ALPHA, **given), pg.scan(frame, label="y", qid="q"))
    expected = sure(forms.RankRLS(ALPHA, **given), frame[list("abcde")], LISTS.y, qid=LISTS.qid)
    rows = frame[list("abcde")]
    ratio = found.std(rows) / expected.std(rows)
    np.testing.assert_allclose(ratio, (found.noise / expected.noise) ** 0.5, rtol=1e-6)


@pytest.mark.parametrize(
    "setting", [{}, {"feature_map": pg.Kernel("rbf", gamma=0.05)}, {"form": "dual"}]
)
@pytest.mark.parametrize("grouped", [False, True])
def test_comparisons(setting, grouped):
    lists = Lists(1, 20)
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)])
    weight = rng.uniform(0.5, 2.0, 60)
    groups = np.arange(60) // 6 if grouped else None
    y = pg.Preferences(*pairs.T, margin=rng.exponential(size=60), weight=weight, groups=groups)
    posterior = sure(forms.RankRLS(ALPHA, **setting), lists.X, y)
    K = lists.X @ lists.X.T
    if "feature_map" in setting:
        K = np.exp(-0.05 * cdist(lists.X, lists.X) ** 2)
    A = np.zeros((60, 20))
    A[np.arange(60), pairs[:, 0]], A[np.arange(60), pairs[:, 1]] = 1.0, -1.0
    P = K / ALPHA
    C = P - P @ A.T @ np.linalg.solve(A @ P @ A.T + np.diag(1 / weight), A @ P)
    found = posterior.std(lists.X) / posterior.noise**0.5
    np.testing.assert_allclose(found, relative(C, np.full((20, 20), 0.05)), rtol=1e-6)


def test_searches_of_comparisons(tmp_path):
    lists, y = Lists(1, 20), pg.Preferences(np.arange(20), np.arange(3, 23) % 20)
    search = pg.RankRLSCV([1.0, ALPHA]).fit(lists.X, y)
    search.save(tmp_path / "model")
    found = sure(pg.RankRLS(search.alpha_), lists.X, y)
    for model in (search, pg.load_model(tmp_path / "model")):
        np.testing.assert_allclose(pg.posterior(model, lists.X, y).std(lists.X), found.std(lists.X))


def test_a_batch_of_models_and_weights_of_zero():
    setting = {"pairs": pg.Pairs(weighting="documents"), "feature_map": pg.Kernel("rbf", gamma=0.1)}
    weight = np.where(np.arange(60) % 6 == 5, 0.0, 1.0)
    told = {"qid": LISTS.qid, "sample_weight": weight}
    posterior = sure(forms.RankRLS(ALPHA, **setting), LISTS.X, LISTS.y, **told)
    kept = weight > 0
    rows = LISTS.X[kept], LISTS.y[kept]
    other = sure(forms.RankRLS(ALPHA, **setting), *rows, qid=LISTS.qid[kept])
    for reference in ("list", "training"):
        found, expected = (
            one.std(LISTS.X, qid=LISTS.qid, reference=reference) for one in (posterior, other)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    linear, rows = pg.RankRLS(ALPHA), (LISTS.X, LISTS.y)
    batch = pg.fit_many(linear, [(*rows, LISTS.qid)] * 2)
    expected = sure(linear, *rows, qid=LISTS.qid).std(LISTS.X)
    for one in batch.models:
        found = pg.posterior(one, *rows, qid=LISTS.qid).std(LISTS.X)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_deviations_in_a_long_list_have_the_same_bits_for_any_number_of_threads(kernel):
    rng = np.random.default_rng(0)
    X, P = rng.normal(size=(90, 4)), rng.normal(size=(2500, 4))
    posterior = sure(
        pg.RankRLS(feature_map=kernel and pg.Kernel(kernel)), X, X[:, 0], qid=np.arange(90) // 9
    )
    one, *others = on_threads((1, 2, 3), lambda: posterior.std(P))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_a_row_alone_has_no_deviation():
    told = {"y": LISTS.y, "qid": LISTS.qid}
    assert sure(pg.RankRLS(), LISTS.X, **told).std(LISTS.X[:1]) == 0.0


def test_draws_of_weights():
    posterior = sure(pg.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents")), **LISTS.labelled)
    draws, model = posterior.draw(20_000, random_state=0), posterior.model
    total = pg.Pairgram.from_rows(**LISTS.labelled, pairs=pg.Pairs(weighting="documents"))
    C = posterior.noise * np.linalg.inv(total.G + ALPHA * np.eye(5))
    np.testing.assert_allclose(posterior.covariance, C, rtol=1e-9)
    np.testing.assert_allclose(np.cov(draws.T), C, atol=0.05 * C.max())
    np.testing.assert_allclose(draws.mean(axis=0), model.coef_, atol=5 * (C.max() / 20_000) ** 0.5)
    np.testing.assert_array_equal(posterior.draw(3, random_state=1)[:1].shape, (1, 5))
    drawn = copy.copy(model)
    drawn.coef_ = posterior.draw(1, random_state=7)[0]
    scores = drawn.row_scorer()(LISTS.X)
    np.testing.assert_allclose(scores, LISTS.X @ drawn.coef_, rtol=1e-12)
    assert (scores != model.predict(LISTS.X)).all()


def test_weights_of_few_rows():
    lists = Lists(4, 5, 60)
    posterior = sure(pg.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents")), **lists.labelled)
    total = pg.Pairgram.from_rows(**lists.labelled, pairs=pg.Pairs(weighting="documents"))
    C = posterior.noise * np.linalg.inv(total.G + ALPHA * np.eye(60))
    np.testing.assert_allclose(posterior.covariance, C, atol=1e-10 * C.max())


def test_rows_are_those_of_the_fit():
    X, y, qid = LISTS.X, LISTS.y, LISTS.qid
    for setting in ({}, {"feature_map": pg.Kernel("rbf", gamma=0.2)}, {"feature_map": "standard"}):
        model = forms.RankRLS(ALPHA, **setting).fit(X, y, qid=qid)
        other = np.where(np.arange(60) == 7, y + 0.01, y)
        for wrong in ((X, other, qid), (X[:-6], y[:-6], qid[:-6]), (X, y, qid // 2)):
            with pytest.raises(ValueError, match="not the rows that the model was fitted to"):
                pg.posterior(model, *wrong[:2], qid=wrong[2])
        with pytest.raises(ValueError, match="X has 4 features, but RankRLS is expecting 5"):
            pg.posterior(model, X[:, 1:], y, qid=qid)
    total = pg.Pairgram.from_rows(X[qid > 0], y[qid > 0], qid=qid[qid > 0])
    with pytest.raises(ValueError, match="not the rows that the model was fitted to"):
        pg.posterior(pg.RankRLS(ALPHA).fit(X, y, qid=qid), total)


def test_maps_that_were_drawn_are_not_drawn_again():
    told = {"y": LISTS.y, "qid": LISTS.qid}
    model = pg.RankRLS(ALPHA, feature_map=pg.RandomNodes(20)).fit(LISTS.X, **told)
    search = pg.RankRLSCV(feature_map=[pg.RandomFourier(9), pg.RandomFourier(20)])
    for one in (model, search.fit(LISTS.X, **told)):
        assert pg.posterior(one, LISTS.X, **told).std(LISTS.X).all()


def test_searches_hold_groups_out_for_the_noise():
    told = {"y": LISTS.y, "qid": LISTS.qid, "groups": LISTS.qid // 2}
    search = pg.RankRLSCV([ALPHA]).fit(LISTS.X, **told)
    found = pg.posterior(search, LISTS.X, **told).noise
    assert found != pg.posterior(search, LISTS.X, LISTS.y, qid=LISTS.qid).noise


def of_sums(total, alpha=ALPHA):
    return pg.posterior(pg.RankRLS.from_pairgram(total, alpha), total)


def test_noise_of_statistics():
    """References are the residuals of rows, and how many labels the sums have of each list."""
    lists, told = Lists(sizes=[3, 8, 8, 12]), {"pairs": pg.Pairs(weighting="documents")}
    X, y, qid = lists.X, lists.y, lists.qid
    weight, factors = np.where(np.arange(31) % 4, lists.weight, 0.0), 0.5 ** np.arange(4)[::-1]
    days = [
        pg.Pairgram.from_rows(
            X[qid == q], y[qid == q], qid=qid[qid == q], sample_weight=weight[qid == q], **told
        )
        for q in range(4)
    ]
    total = days[0]
    for day in days[1:]:
        total = 0.5 * total + day
    total = pg.Pairgram.from_bytes(total.to_bytes())
    start = np.arange(5.0)
    for prior in (None, start):
        model = pg.RankRLS.from_pairgram(total, ALPHA, prior=prior)
        target = y if prior is None else y - X @ start
        left, loss, degrees = y - model.predict(X), 0.0, 0.0
        for q, factor in enumerate(factors):
            w, own = weight * (qid == q), target - np.average(target, weights=weight * (qid == q))
            loss += factor * (w * own) @ left
            degrees += factor * (np.count_nonzero(w) - 1)
        assert pg.posterior(model, total).noise == pytest.approx(loss / degrees)
    # A day that has been forgotten counts no more.
    rest = pg.Pairgram.from_rows(X[qid > 0], y[qid > 0], qid=qid[qid > 0], **told)
    first = pg.Pairgram.from_rows(X[qid == 0], y[qid == 0], qid=qid[qid == 0], **told)
    assert of_sums((rest + first) - first).noise == pytest.approx(of_sums(rest).noise)


@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
@pytest.mark.parametrize(("kind", "scope"), [("with_ties", "global"), (None, "query")])
def test_statistics_know_as_much_of_labels_as_rows(weighting, kind, scope):
    lists = Lists(sizes=[3, 8, 8, 12])
    told = {"pairs": pg.Pairs(kind, scope=scope, weighting=weighting)}
    total = pg.Pairgram.from_rows(**lists.labelled, **told)
    found = of_sums(total)
    expected = sure(forms.RankRLS(ALPHA, **told), **lists.labelled)
    assert found.kind == expected.kind
    if kind:
        assert found.label_noise == pytest.approx(expected.label_noise)


@pytest.mark.parametrize(
    "setting", [{"pairs": pg.Pairs(weighting="documents")}, {"pairs": None}], ids=str
)
@pytest.mark.parametrize("alike", [True, False])
def test_statistics_know_the_weights_of_queries(setting, alike):
    lists = Lists(sizes=[3, 8, 8, 12])
    X, y, qid = lists.X, lists.y, lists.qid
    weight = np.full(31, 4.0) if alike else 1.0 + qid
    days = [qid < 2, qid >= 2]
    total = sum(
        pg.Pairgram.from_rows(X[d], y[d], qid=qid[d], query_weight=weight[d], **setting)
        for d in days
    )
    total = pg.Pairgram.from_bytes((0.5 * total).to_bytes())
    found = of_sums(total, 2.0)
    plain = pg.Pairgram.from_rows(X, y, qid=qid, **setting)
    expected = of_sums(plain, 1.0)
    if alike:
        assert found.label_noise == pytest.approx(expected.label_noise)
    else:
        assert found.kind == "approximate"


def test_statistics_of_comparisons():
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(12, 3)), np.array([rng.choice(12, 2, False) for _ in range(300)])
    y = pg.Preferences(
        *pairs.T, margin=rng.exponential(size=300), weight=rng.uniform(0, 2, 300) // 1
    )
    of_rows = sure(pg.RankRLS(ALPHA), X, y)
    total = pg.Pairgram.from_rows(X, y)
    for statistics in (total, pg.Pairgram.from_bytes(total.to_bytes())):
        found = of_sums(statistics)
        assert found.kind == of_rows.kind == "exact"
        np.testing.assert_allclose(
            found.std_of_differences(X[:6], X[6:]), of_rows.std_of_differences(X[:6], X[6:])
        )
        assert found.label_noise == pytest.approx(of_rows.label_noise)


@pytest.mark.parametrize(
    ("array", "change", "message"),
    [
        ("root", np.ones_like, "root must be upper triangular"),
        ("mean", None, "shares needs mean"),
        ("shares", None, "shares must be there with a kernel alone"),
        ("model.coef_", None, "coef_"),
    ],
)
def test_posteriors_of_files_are_whole(tmp_path, array, change, message):
    lists, path = Lists(), tmp_path / "posterior"
    posterior = sure(pg.RankRLS(ALPHA, feature_map=pg.Kernel("rbf")), **lists.labelled)
    posterior.save(path)
    contents = parse(path.read_bytes())
    if change is None:
        del contents.tensors[array]
    else:
        contents.tensors[array] = Tensor.of(change(getattr(posterior, array)))
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message):
        pg.Posterior.load(path)


def test_roots_of_files_belong_to_their_model(tmp_path):
    lists, path = Lists(), tmp_path / "posterior"
    sure(pg.RankRLS(ALPHA), **lists.labelled).save(path)
    contents = parse(path.read_bytes())
    contents.tensors["root"] = Tensor.of(np.eye(3))
    contents.tensors["mean"] = Tensor.of(np.ones(3))
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match="root must have a column for every coefficient"):
        pg.Posterior.load(path)
    with pytest.raises(ValueError, match="holds 'Posterior', want"):
        pg.load_model(path)
    pg.RankRLS().fit(**lists.labelled).save(path)
    with pytest.raises(ValueError, match="holds a model, 'RankRLS', want Posterior"):
        pg.Posterior.load(path)


def test_linear_kernels_are_kept_in_files(tmp_path):
    posterior = sure(pg.RankRLS(ALPHA, feature_map=pg.Kernel("linear")), **LISTS.labelled)
    posterior.save(tmp_path / "posterior")
    loaded, pair = pg.Posterior.load(tmp_path / "posterior"), (LISTS.X[:5], LISTS.X[5:10])
    expected = posterior.std_of_differences(*pair)
    np.testing.assert_array_equal(loaded.std_of_differences(*pair), expected)


@pytest.mark.parametrize(
    "setting", [{}, {"feature_map": pg.Kernel("rbf")}, {"feature_map": "quantile"}]
)
def test_models_of_files_have_posteriors_too(setting, tmp_path):
    model = forms.RankRLSCV([1.0, ALPHA], **setting).fit(**LISTS.labelled)
    model.save(tmp_path / "model")
    found, expected = (
        pg.posterior(one, **LISTS.labelled).std(LISTS.X)
        for one in (pg.load_model(tmp_path / "model"), model)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_comparisons_weigh_a_margin_as_two_labels():
    lists = Lists(1, 20)
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)])
    y = pg.Preferences(*pairs.T, margin=rng.exponential(size=60))
    for found in (sure(pg.RankRLS(ALPHA), lists.X, y), of_sums(pg.Pairgram.from_rows(lists.X, y))):
        assert 2 * found.label_noise == pytest.approx(found.noise)


@pytest.mark.parametrize("kind", list(KINDS))
def test_rank_ranges_count_who_is_known_to_be_above(kind):
    lists = Lists(seed=3)
    model = forms.RankRLS(ALPHA, pairs=pg.Pairs(weighting="documents"), **KINDS[kind][0])
    posterior = sure(model, **lists.labelled)
    rng = np.random.default_rng(4)
    X, qid = rng.normal(size=(29, 5)) + 20.0, rng.integers(0, 4, 29)
    X[7] = X[3]
    found = posterior.rank_ranges(X, qid=qid, level=0.8)
    scores, deviations = posterior.model.predict(X), posterior.std(X, qid=qid)
    np.testing.assert_array_equal(found["score"], scores[found["row"]])
    np.testing.assert_array_equal(found["deviation"], deviations[found["row"]])
    np.testing.assert_array_equal(found["qid"], qid[found["row"]])
    for place, row in enumerate(found["row"]):
        same = np.flatnonzero(qid == qid[row])
        above = posterior.probability_above(X[same], np.tile(X[row], (len(same), 1)))
        assert found["best"][place] == 1 + (above > 0.8).sum()
        assert found["worst"][place] == len(same) - (above < 0.2).sum()
        assert found["rank"][place] == 1 + (scores[same] > scores[row]).sum() or row in (3, 7)
    assert sorted(found["row"]) == list(range(29))


def test_the_ranks_of_an_arena_hold_the_true_ones():
    """Votes have the probabilities of Bradley and Terry, and so noise that is not normal."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        strength = 0.7 * rng.normal(size=12)
        a = rng.integers(0, 12, 800)
        b = (a + rng.integers(1, 12, 800)) % 12
        wins = rng.random(800) < 1 / (1 + np.exp(strength[b] - strength[a]))
        votes = pg.Preferences(np.where(wins, a, b), np.where(wins, b, a))
        found = sure(pg.RankRLS(1e-6), np.eye(12), votes).rank_ranges(np.eye(12))
        true = 1 + (strength > strength[found["row"], None]).sum(axis=1)
        held.append(((found["best"] <= true) & (true <= found["worst"])).mean())
        assert (found["worst"] - found["best"]).mean() < 8  # of 11
    assert 0.95 < np.mean(held) < 1.0
