"""How sure scores are, against dense Gaussian processes with a flat constant for every list."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import pairgram as pg
from axes import every
from fuzz.forge import Tensor, pack, parse
from parts.support import on_threads

ALPHA = 3.0


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
    "rbf": ({"kernel": "rbf", "gamma": 0.2}, lambda X: np.exp(-0.2 * cdist(X, X) ** 2)),
    "tanimoto": (
        {"kernel": "tanimoto"},
        lambda X: X @ X.T / ((X**2).sum(1)[:, None] + (X**2).sum(1) - X @ X.T),
    ),
}


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_deviations(kind, search, tmp_path):
    lists, (setting, kernel) = Lists(), KINDS[kind]
    told = {"weighting": "documents", "keep_covariance": True, **setting}
    model = pg.RankRLSCV([ALPHA], **told) if search else pg.RankRLS(ALPHA, **told)
    model.fit(**lists.labelled)
    posterior, X, qid = model.posterior_, lists.X, lists.qid
    assert posterior.kind == "exact" and posterior.label_noise == pytest.approx(posterior.noise)
    unit = posterior.noise**0.5
    K = kernel(X)
    C = covariance(K, qid, lists.weight, ALPHA)
    scores, found = model.predict(X, qid=qid, return_std=True)
    np.testing.assert_array_equal(scores, model.predict(X))
    np.testing.assert_allclose(found / unit, relative(C, within(qid)), rtol=1e-8, atol=1e-9)
    _, found = model.predict(X, return_std=True)
    everybody = np.full((len(X), len(X)), 1 / len(X))
    np.testing.assert_allclose(found / unit, relative(C, everybody), rtol=1e-8, atol=1e-9)
    _, found = model.predict(X, return_std=True, reference="training")
    training = np.tile(lists.weight / lists.weight.sum(), (len(X), 1))
    np.testing.assert_allclose(found / unit, relative(C, training), rtol=1e-7, atol=1e-8)
    a, b = np.arange(30), np.arange(30, 60)
    expected = np.sqrt(C[a, a] + C[b, b] - 2 * C[a, b])
    found = model.std_of_differences(X[a], X[b])
    np.testing.assert_allclose(found / unit, expected, rtol=1e-8, atol=1e-9)
    above = model.probability_above(X[a], X[b])
    np.testing.assert_allclose(above, 1 - model.probability_above(X[b], X[a]), atol=1e-12)
    difference = model.predict(X[a]) - model.predict(X[b])
    assert ((above > 0.5) == (difference > 0)).all()
    model.save(tmp_path / "model.pairgram")
    loaded = pg.load_model(tmp_path / "model.pairgram")
    for one in (model, loaded):
        for reference in ("list", "training"):
            again = one.predict(X[:20], return_std=True, reference=reference)[1]
            known = model.predict(X[:20], return_std=True, reference=reference)[1]
            np.testing.assert_array_equal(again, known)


@pytest.mark.parametrize("constant", [1e5, 1e6])
def test_beside_scikit_learn(constant):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=50)
    kernel = RBF(1.0, "fixed") + ConstantKernel(constant, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(X, y)
    mean, C = process.predict(Z, return_cov=True)
    told = {"weighting": "documents", "kernel": "rbf", "gamma": 0.5, "keep_covariance": True}
    model = pg.RankRLS(0.05, **told).fit(X, y)
    scores, found = model.predict(Z, return_std=True)
    np.testing.assert_allclose(scores - scores.mean(), mean - mean.mean(), atol=1e-5)
    expected = relative(C, np.full((20, 20), 1 / 20))
    # The process of scikit-learn has the noise 0.05, and so the prior variance 1.
    np.testing.assert_allclose(found * (0.05 / model.posterior_.noise) ** 0.5, expected, rtol=1e-5)


def test_noise_is_unbiased():
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(8), 6), rng.normal(size=(48, 4))
    found = []
    for _ in range(400):
        w = rng.normal(size=4)
        y = X @ w + 5.0 * rng.normal(size=8)[qid] + 2**0.5 * rng.normal(size=48)
        model = pg.RankRLS(2.0, weighting="documents", keep_covariance=True).fit(X, y, qid=qid)
        found.append([model.posterior_.noise])
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
    model = pg.RankRLS(ALPHA * unit, weighting=weighting, keep_covariance=True).fit(**told)
    other = pg.RankRLS(ALPHA, weighting="documents", keep_covariance=True).fit(**told)
    assert model.posterior_.kind == "exact"
    found, expected = (
        m.predict(lists.X, qid=lists.qid, return_std=True)[1] for m in (model, other)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert model.posterior_.label_noise == pytest.approx(other.posterior_.label_noise)
    lists = Lists(sizes=[2, 3, 9, 12])
    model.fit(lists.X, lists.y, qid=lists.qid)
    exact = weighting == "documents"
    assert model.posterior_.kind == ("exact" if exact else "approximate")
    assert (model.posterior_.label_noise is not None) == exact


@every(
    setting=[
        {"scale": True},
        {"inputs": "standard"},
        {"inputs": "quantile"},
        {"feature_map": pg.RandomFourier(30, gamma=0.02, random_state=0)},
        {"feature_map": pg.RandomNodes(8, activation="linear", random_state=0)},
        {"feature_map": pg.RandomNodes(100, random_state=0), "inputs": "standard"},
        {"feature_map": pg.Cross([0], [1, 2, 3])},
        {"pairs": None},
        {"scope": "global"},
    ]
)
def test_any_features(setting):
    lists = Lists(seed=1)
    told = {"weighting": "documents", "keep_covariance": True, **setting}
    model = pg.RankRLS(ALPHA, **told).fit(**lists.labelled)
    H = lists.X if model.inputs_ is None else model.inputs_.transform(lists.X)
    H = H if model.feature_map_ is None else model.feature_map_.transform(H)
    qid = lists.qid if setting.get("scope") != "global" else 0 * lists.qid
    if setting.get("scale"):
        D = np.eye(len(H)) - within(qid, lists.weight)
        H = H / np.sqrt(np.einsum("ij,i,ij->j", D @ H, lists.weight, D @ H))
    C = covariance(H @ H.T, qid, lists.weight, ALPHA)
    if setting.get("pairs", "") is None:
        P = H @ H.T / ALPHA
        C = P - P @ np.linalg.solve(P + np.diag(1 / lists.weight), P)
    found = model.predict(lists.X, qid=lists.qid, return_std=True)[1]
    expected = relative(C, within(lists.qid))
    np.testing.assert_allclose(found / model.posterior_.noise**0.5, expected, rtol=1e-6, atol=1e-8)


def test_wide_rows_of_few_lists():
    lists = Lists(4, 5, 60)
    model = pg.RankRLS(ALPHA, weighting="documents", keep_covariance=True).fit(**lists.labelled)
    assert model.form_ == "dual"
    C = covariance(lists.X @ lists.X.T, lists.qid, lists.weight, ALPHA)
    found = model.predict(lists.X, qid=lists.qid, return_std=True)[1]
    unit = model.posterior_.noise**0.5
    np.testing.assert_allclose(found / unit, relative(C, within(lists.qid)), rtol=1e-7)
    other = np.random.default_rng(1).normal(size=(2, 60)) + 20  # has directions of its own
    sparse = scipy.sparse.csr_array(lists.X)
    of_sparse = pg.RankRLS(ALPHA, weighting="documents", keep_covariance=True, form="dual")
    of_sparse.fit(sparse, lists.y, qid=lists.qid, sample_weight=lists.weight)
    np.testing.assert_allclose(
        of_sparse.std_of_differences(other[:1], other[1:]),
        model.std_of_differences(other[:1], other[1:]),
        rtol=1e-7,
    )


def test_statistics_and_tables():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    told = {"weighting": "documents"}
    total = pg.Pairgram.from_rows(LISTS.X, LISTS.y, qid=LISTS.qid, **told)
    model = pg.RankRLS.from_pairgram(total, ALPHA, keep_covariance=True)
    B = within(LISTS.qid)
    r = LISTS.y - model.predict(LISTS.X)
    expected = (LISTS.y - B @ LISTS.y) @ (r - B @ r) / (60 - 10)
    assert model.posterior_.noise == pytest.approx(expected)
    C = covariance(LISTS.X @ LISTS.X.T, LISTS.qid, np.ones(60), ALPHA)
    found = model.predict(LISTS.X, qid=LISTS.qid, return_std=True)[1]
    np.testing.assert_allclose(found / expected**0.5, relative(C, B), rtol=1e-7)
    frame = pandas.DataFrame(LISTS.X, columns=list("abcde")).assign(y=LISTS.y, q=LISTS.qid)
    table = pg.scan(frame, label="y", qid="q")
    for kind in (pg.RankRLS(ALPHA, **told), pg.RankRLSCV([ALPHA], **told)):
        of_table = kind.set_params(keep_covariance=True).fit(table)
        again = of_table.predict(frame[list("abcde")], qid=LISTS.qid, return_std=True)[1]
        np.testing.assert_allclose(again, found, rtol=1e-7)
        both = of_table.predict(table, return_std=True)
        np.testing.assert_array_equal(both[1], again)
        np.testing.assert_array_equal(both[0], of_table.predict(table))
        ranges = of_table.rank_ranges(table)
        expected = of_table.rank_ranges(frame[list("abcde")], qid=LISTS.qid)
        for name, values in expected.items():
            np.testing.assert_array_equal(ranges[name], values)
        chosen = pg.propose(of_table, table, 3, strategy="variance")
        alone = pg.propose(of_table, frame[list("abcde")], 3, strategy="variance")
        assert chosen.tolist() == alone.tolist()


@pytest.mark.parametrize("setting", [{}, {"kernel": "rbf", "gamma": 0.05}, {"form": "dual"}])
@pytest.mark.parametrize("grouped", [False, True])
def test_comparisons(setting, grouped):
    lists = Lists(1, 20)
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)])
    weight = rng.uniform(0.5, 2.0, 60)
    groups = np.arange(60) // 6 if grouped else None
    y = pg.Preferences(*pairs.T, margin=rng.exponential(size=60), weight=weight, groups=groups)
    model = pg.RankRLS(ALPHA, keep_covariance=True, **setting).fit(lists.X, y)
    K = lists.X @ lists.X.T
    if "kernel" in setting:
        K = np.exp(-0.05 * cdist(lists.X, lists.X) ** 2)
    A = np.zeros((60, 20))
    A[np.arange(60), pairs[:, 0]], A[np.arange(60), pairs[:, 1]] = 1.0, -1.0
    P = K / ALPHA
    C = P - P @ A.T @ np.linalg.solve(A @ P @ A.T + np.diag(1 / weight), A @ P)
    found = model.predict(lists.X, return_std=True)[1] / model.posterior_.noise**0.5
    np.testing.assert_allclose(found, relative(C, np.full((20, 20), 0.05)), rtol=1e-6)


def test_a_batch_of_models_and_weights_of_zero():
    setting = {"weighting": "documents", "keep_covariance": True, "kernel": "rbf", "gamma": 0.1}
    weight = np.where(np.arange(60) % 6 == 5, 0.0, 1.0)
    model = pg.RankRLS(ALPHA, **setting).fit(LISTS.X, LISTS.y, qid=LISTS.qid, sample_weight=weight)
    kept = weight > 0
    other = pg.RankRLS(ALPHA, **setting).fit(LISTS.X[kept], LISTS.y[kept], qid=LISTS.qid[kept])
    for reference in ("list", "training"):
        found, expected = (
            one.predict(LISTS.X, qid=LISTS.qid, return_std=True, reference=reference)[1]
            for one in (model, other)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    linear = pg.RankRLS(ALPHA, keep_covariance=True)
    batch = pg.fit_many(linear, [(LISTS.X, LISTS.y, LISTS.qid)] * 2)
    expected = linear.fit(LISTS.X, LISTS.y, qid=LISTS.qid).predict(LISTS.X, return_std=True)[1]
    for one in batch.models:
        np.testing.assert_array_equal(one.predict(LISTS.X, return_std=True)[1], expected)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_deviations_in_a_long_list_have_the_same_bits_for_any_number_of_threads(kernel):
    rng = np.random.default_rng(0)
    X, P = rng.normal(size=(90, 4)), rng.normal(size=(2500, 4))
    model = pg.RankRLS(kernel=kernel, keep_covariance=True).fit(X, X[:, 0], qid=np.arange(90) // 9)
    one, *others = on_threads((1, 2, 3), lambda: model.predict(P, return_std=True)[1])
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_a_row_alone_has_no_deviation():
    model = pg.RankRLS(keep_covariance=True).fit(LISTS.X, LISTS.y, qid=LISTS.qid)
    assert model.predict(LISTS.X[:1], return_std=True)[1] == 0.0
    for inputs in ("rank", "list-standard"):
        of_lists = pg.RankRLS(inputs=inputs, keep_covariance=True)
        of_lists.fit(LISTS.X, LISTS.y, qid=LISTS.qid)
        assert of_lists.predict(LISTS.X, qid=LISTS.qid, return_std=True)[1].all()


def test_draws_of_weights():
    model = pg.RankRLS(ALPHA, weighting="documents", keep_covariance=True).fit(**LISTS.labelled)
    draws = model.draw_weights(20_000, random_state=0)
    total = pg.Pairgram.from_rows(**LISTS.labelled, weighting="documents")
    C = model.posterior_.noise * np.linalg.inv(total.G + ALPHA * np.eye(5))
    np.testing.assert_allclose(np.cov(draws.T), C, atol=0.05 * C.max())
    np.testing.assert_allclose(draws.mean(axis=0), model.coef_, atol=5 * (C.max() / 20_000) ** 0.5)
    np.testing.assert_array_equal(model.draw_weights(3, random_state=1)[:1].shape, (1, 5))
    scorer = model.row_scorer(draw=7)
    weights = model.draw_weights(1, random_state=7)[0]
    np.testing.assert_allclose(scorer(LISTS.X), LISTS.X @ weights, rtol=1e-12)
    table = model.column_weights()
    np.testing.assert_allclose(table["deviation"], np.sqrt(C.diagonal())[table["column"]])
    np.testing.assert_allclose(table["ratio"], table["weight"] / table["deviation"])
    plain = pg.RankRLS(ALPHA).fit(**LISTS.labelled)
    assert "deviation" not in plain.column_weights()


def test_noise_of_statistics():
    """References are the residuals of rows, and how many labels the sums have of each list."""
    lists, told = Lists(sizes=[3, 8, 8, 12]), {"weighting": "documents"}
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
        model = pg.RankRLS.from_pairgram(total, ALPHA, prior=prior, keep_covariance=True)
        target = y if prior is None else y - X @ start
        left, loss, degrees = y - model.predict(X), 0.0, 0.0
        for q, factor in enumerate(factors):
            w, own = weight * (qid == q), target - np.average(target, weights=weight * (qid == q))
            loss += factor * (w * own) @ left
            degrees += factor * (np.count_nonzero(w) - 1)
        assert model.posterior_.noise == pytest.approx(loss / degrees)
    # A day that has been forgotten counts no more.
    rest = pg.Pairgram.from_rows(X[qid > 0], y[qid > 0], qid=qid[qid > 0], **told)
    first = pg.Pairgram.from_rows(X[qid == 0], y[qid == 0], qid=qid[qid == 0], **told)
    found = pg.RankRLS.from_pairgram((rest + first) - first, ALPHA, keep_covariance=True)
    expected = pg.RankRLS.from_pairgram(rest, ALPHA, keep_covariance=True)
    assert found.posterior_.noise == pytest.approx(expected.posterior_.noise)


@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
@pytest.mark.parametrize("setting", [{"scope": "global"}, {"pairs": None}], ids=str)
def test_statistics_know_as_much_of_labels_as_rows(weighting, setting):
    lists, told = Lists(sizes=[3, 8, 8, 12]), {"weighting": weighting, **setting}
    total = pg.Pairgram.from_rows(**lists.labelled, **told)
    found = pg.RankRLS.from_pairgram(total, ALPHA, keep_covariance=True).posterior_
    expected = pg.RankRLS(ALPHA, **told, keep_covariance=True).fit(**lists.labelled).posterior_
    assert found.kind == expected.kind
    assert (found.label_noise is None) == (expected.label_noise is None)
    if "scope" in setting:
        assert found.label_noise == pytest.approx(expected.label_noise)


@pytest.mark.parametrize("setting", [{"weighting": "documents"}, {"pairs": None}], ids=str)
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
    found = pg.RankRLS.from_pairgram(total, 2.0, keep_covariance=True).posterior_
    plain = pg.Pairgram.from_rows(X, y, qid=qid, **setting)
    expected = pg.RankRLS.from_pairgram(plain, 1.0, keep_covariance=True).posterior_
    if alike:
        assert found.label_noise == pytest.approx(expected.label_noise)
    else:
        assert found.kind == "approximate" and found.label_noise is None


def test_statistics_of_comparisons():
    rng = np.random.default_rng(0)
    X, pairs = rng.normal(size=(12, 3)), np.array([rng.choice(12, 2, False) for _ in range(300)])
    y = pg.Preferences(
        *pairs.T, margin=rng.exponential(size=300), weight=rng.uniform(0, 2, 300) // 1
    )
    of_rows = pg.RankRLS(ALPHA, keep_covariance=True).fit(X, y)
    total = pg.Pairgram.from_rows(X, y)
    for statistics in (total, pg.Pairgram.from_bytes(total.to_bytes())):
        model = pg.RankRLS.from_pairgram(statistics, ALPHA, keep_covariance=True)
        assert model.posterior_.kind == of_rows.posterior_.kind == "exact"
        np.testing.assert_allclose(
            model.std_of_differences(X[:6], X[6:]), of_rows.std_of_differences(X[:6], X[6:])
        )
        assert model.posterior_.label_noise == pytest.approx(of_rows.posterior_.label_noise)


@pytest.mark.parametrize(
    ("array", "change", "message"),
    [
        ("posterior_root", np.ones_like, "posterior_root must be upper triangular"),
        ("posterior_mean", None, "posterior_shares needs posterior_mean"),
        ("posterior_shares", None, "posterior_shares is missing, which a kernel needs"),
    ],
)
def test_posteriors_of_files_are_whole(tmp_path, array, change, message):
    lists, path = Lists(), tmp_path / "model.pairgram"
    model = pg.RankRLS(ALPHA, kernel="rbf", keep_covariance=True).fit(**lists.labelled)
    model.save(path)
    contents = parse(path.read_bytes())
    if change is None:
        del contents.tensors[array]
    else:
        values = getattr(model.posterior_, array.removeprefix("posterior_"))
        contents.tensors[array] = Tensor.of(change(values))
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message):
        pg.load_model(path)


def test_linear_kernels_are_kept_in_files(tmp_path):
    model = pg.RankRLS(ALPHA, kernel="linear", keep_covariance=True).fit(**LISTS.labelled)
    model.save(tmp_path / "model")
    loaded, pair = pg.load_model(tmp_path / "model"), (LISTS.X[:5], LISTS.X[5:10])
    np.testing.assert_array_equal(loaded.std_of_differences(*pair), model.std_of_differences(*pair))


def test_comparisons_weigh_a_margin_as_two_labels():
    lists = Lists(1, 20)
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)])
    y = pg.Preferences(*pairs.T, margin=rng.exponential(size=60))
    model = pg.RankRLS(ALPHA, keep_covariance=True).fit(lists.X, y)
    assert 2 * model.posterior_.label_noise == pytest.approx(model.posterior_.noise)
    total = pg.Pairgram.from_rows(lists.X, y)
    of_sums = pg.RankRLS.from_pairgram(total, ALPHA, keep_covariance=True).posterior_
    assert 2 * of_sums.label_noise == pytest.approx(of_sums.noise)


@pytest.mark.parametrize("kind", list(KINDS))
def test_rank_ranges_count_who_is_known_to_be_above(kind):
    lists = Lists(seed=3)
    model = pg.RankRLS(ALPHA, weighting="documents", keep_covariance=True, **KINDS[kind][0])
    model.fit(**lists.labelled)
    rng = np.random.default_rng(4)
    X, qid = rng.normal(size=(29, 5)) + 20.0, rng.integers(0, 4, 29)
    X[7] = X[3]
    found = model.rank_ranges(X, qid=qid, level=0.8)
    scores, deviations = model.predict(X, qid=qid, return_std=True)
    np.testing.assert_array_equal(found["score"], scores[found["row"]])
    np.testing.assert_array_equal(found["deviation"], deviations[found["row"]])
    np.testing.assert_array_equal(found["qid"], qid[found["row"]])
    for place, row in enumerate(found["row"]):
        same = np.flatnonzero(qid == qid[row])
        above = model.probability_above(X[same], np.tile(X[row], (len(same), 1)))
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
        found = (
            pg.RankRLS(1e-6, keep_covariance=True).fit(np.eye(12), votes).rank_ranges(np.eye(12))
        )
        true = 1 + (strength > strength[found["row"], None]).sum(axis=1)
        held.append(((found["best"] <= true) & (true <= found["worst"])).mean())
        assert (found["worst"] - found["best"]).mean() < 8  # of 11
    assert 0.95 < np.mean(held) < 1.0
