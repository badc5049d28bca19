"""Columns in very different units: one ridge is exact, and a path tells what it loses."""

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import forms
from axes import every
from pairgram import (
    Kernel,
    Pairgram,
    Positive,
    Preferences,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    fit_many,
    scan,
)

LOST = "spreads so much more widely"


def problem(n_rows, n_features, wide, spread, seed=0):
    """Rows of which one column spreads far more widely than the others, with an offset too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[:, wide] = spread * (5 + rng.random(n_rows))
    y = X[:, 0 if wide else 1] + X[:, wide] / spread + 0.1 * rng.normal(size=n_rows)
    return X, y, np.arange(n_rows) // 5


def minimiser(X, y, qid, alpha):
    """The weights by least squares of all differences, in columns of like size."""
    first, second = np.nonzero(np.triu(qid[:, None] == qid, 1))
    Z, t = X[first] - X[second], y[first] - y[second]
    size = np.abs(Z).max(axis=0)
    ridge = np.diag(np.sqrt(alpha) / size)
    found = np.linalg.lstsq(np.vstack([Z / size, ridge]), np.r_[t, np.zeros(len(size))], rcond=0)
    return found[0] / size


def by_table(X, y, qid, alpha):
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y, q=qid)
    return RankRLS(alpha).fit(scan(frame, label="y", qid="q", features=names)).coef_


def by_model_of_statistics(X, y, qid, alpha):
    return RankRLS.from_pairgram(Pairgram.from_rows(X, y, qid=qid), alpha).coef_


def by_fit_to(make, **settings):
    return lambda X, y, qid, alpha: RankRLS(alpha, **settings).fit(make(X), y, qid=qid).coef_


ROADS = {
    "fit": by_fit_to(np.asarray),
    "float32": by_fit_to(np.float32),
    "linear kernel": by_fit_to(np.asarray, feature_map=Kernel("linear")),
    "statistics": lambda X, y, qid, alpha: Pairgram.from_rows(X, y, qid=qid).solve(alpha),
    "model of statistics": by_model_of_statistics,
    "batch": lambda X, y, qid, alpha: fit_many(RankRLS(alpha), [(X, y, qid)]).coef_[0],
    "sparse rows": by_fit_to(scipy.sparse.csr_matrix),
    "table": by_table,
}


@pytest.mark.parametrize("road", ROADS)
@every(spread=[1e3, 1e6, 1e9, 1e12], shape=[(540, 2, 1), (200, 8, 0), (200, 8, 7), (20, 45, 44)])
def test_one_ridge_is_the_minimiser(road, shape, spread):
    X, y, qid = problem(*shape, spread)
    if road == "float32":
        X = X.astype(np.float32).astype(np.float64)
    expected = minimiser(X, y, qid, 1.0)
    rtol = 1e-4 if road == "float32" else 1e-7
    size = np.abs(X - X.mean(axis=0)).max(axis=0)  # weights are as good as what they do
    found = ROADS[road](X, y, qid, 1.0)
    np.testing.assert_allclose(
        found * size, expected * size, rtol=rtol, atol=rtol * np.abs(expected * size).max()
    )


def test_dependent_columns_have_the_solution_of_smallest_norm():
    X, y, qid = problem(60, 3, 2, 1.0)
    X = np.c_[X, 3 * X[:, :1]]
    found = RankRLS(0.0).fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(found[3], 3 * found[0], rtol=1e-9)


@pytest.mark.parametrize("road", ["fit", "statistics", "batch", "table"])
def test_dependent_wide_columns_are_told(road):
    X, y, qid = problem(540, 2, 1, 6.3e10)
    with pytest.warns(UserWarning, match="column 1 of X spreads so much more widely than column 0"):
        ROADS[road](np.c_[X, X[:, 1] / 1000], y, qid, 1.0)


def paths(X, y, qid):
    """The roads of a path of ridges."""
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    table = frame.assign(y=y, q=qid)
    yield lambda **kw: RankRLSCV(**kw).fit(frame, y, qid=qid)
    yield lambda **kw: RankRLSCV(**kw).fit(scan(table, label="y", qid="q", features=names))
    yield lambda **kw: Pairgram.from_rows(frame, y, qid=qid).path(**kw)
    half = qid % 2 == 0
    parts = [Pairgram.from_rows(frame[part], y[part], qid=qid[part]) for part in (half, ~half)]
    yield lambda **kw: RankRLSCV.from_pairgrams(parts, **kw)
    yield lambda **kw: fit_many(RankRLSCV(**kw), [(frame, y, qid)])
    yield lambda **kw: RankRLSCV(**kw).fit(scipy.sparse.csr_matrix(X), y, qid=qid)
    yield lambda **kw: RankRLSCV(constraint=Positive(), **kw).fit(frame, y, qid=qid)
    winner, loser = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    yield lambda **kw: RankRLSCV(**kw).fit(frame, Preferences(winner, loser))


KEEPING = (0, 4, 5, 7)  # of the roads of paths: those that reach down to narrow columns


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize(("n_rows", "n_features"), [(540, 2), (200, 8), (20, 45)])
def test_a_path_tells_which_columns_it_loses(number, n_rows, n_features):
    X, y, qid = problem(n_rows, n_features, 1, 6.3e10)
    road = list(paths(X, y, qid))[number]
    if number in KEEPING and n_rows > n_features:
        road()  # without a warning
        return
    with pytest.warns(UserWarning, match=LOST) as told:
        road()
    assert len([one for one in told if LOST in str(one.message)]) == 1
    assert ("column 1 of X" if number == 5 else "column 'c1' of X") in str(told[0].message)
    road(scale=True)


@every(spread=[1e9, 6.3e10, 1e14], number=KEEPING)
def test_a_search_keeps_narrow_columns(number, spread):
    X, y, qid = problem(200, 8, 1, spread)
    found = list(paths(X, y, qid))[number]()
    alike = list(paths(X / X.std(axis=0), y, qid))[number]()
    score, best = (np.max(one.best_score_) for one in (found, alike))
    assert score > best - 0.02


@pytest.mark.filterwarnings("ignore:column . of X spreads")  # by ridges far above columns
def test_held_out_scores_of_columns_in_any_units():
    """Of ridges that reach from the widest to the narrowest column, against refits."""
    rng = np.random.default_rng(0)
    units = np.array([2.0**-50, 1.0, 2.0**17, 2.0**31, 2.0**5])
    X, qid = rng.normal(size=(90, 5)) * units, np.arange(90) // 6
    y = X / units @ rng.normal(size=5) + rng.normal(size=90)
    alphas = RankRLSCV().fit(X, y, qid=qid).alphas_
    assert alphas[-1] < units.min() ** 2 < units.max() ** 2 < alphas[0]
    for alpha in alphas[::9]:
        held = RankRLSCV([alpha], scoring="pairwise_squared_error").fit(X, y, qid=qid).held_out_
        for q in range(15):
            own = qid == q
            refit = RankRLS(alpha).fit(X[~own], y[~own], qid=qid[~own]).predict(X[own])
            found, wanted = (part - part.mean() for part in (held[own], refit))
            np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(3))
def test_paths_minimise_in_any_units(seed):
    """The objective of columns in powers of two, with 150 digits, is that of the exact solution."""
    rng = np.random.default_rng(seed)
    units = np.exp2(rng.integers(-60, 61, 5))
    X = rng.normal(size=(40, 5)) * units
    y = X @ (rng.normal(size=5) / units) + rng.normal(size=40)
    alphas = np.exp2(np.arange(130.0, -130.0, -26))
    found = Pairgram.from_rows(X, y).path(alphas)
    with mpmath.workdps(150):
        Z, t = (mpmath.matrix((40**0.5 * (part - part.mean(axis=0))).tolist()) for part in (X, y))
        for alpha, coef in zip(alphas.tolist(), found, strict=True):
            best = mpmath.lu_solve(Z.T * Z + alpha * mpmath.eye(5), Z.T * t)
            ours = mpmath.matrix(coef.tolist())
            loss = [mpmath.norm(t - Z * w) ** 2 + alpha * mpmath.norm(w) ** 2 for w in (ours, best)]
            assert loss[0] - loss[1] <= 1e-9 * mpmath.norm(t) ** 2


@every(kind=["days", "constant", "constant in lists", "flags", "standard"], number=[0, 4])
def test_columns_that_lose_nothing_are_no_warning(number, kind):
    X, y, qid = problem(540, 3, 1, 730.0)
    if kind == "constant":
        X[:, 1] = 1e12
    elif kind == "constant in lists":
        X[:, 1] = 1e12 + 1e9 * qid
    elif kind == "flags":
        X[:, [0, 2]] = X[:, [0, 2]] > 2
    elif kind == "standard":
        X[:, 1] *= 1e9
    road = list(paths(X, y, qid))[number]
    road(**({"feature_map": "standard"} if kind == "standard" else {}))


def test_a_dual_form_of_sparse_rows_or_comparisons_tells_what_it_loses():
    X, y, qid = problem(60, 3, 1, 6.3e10)
    wide = scipy.sparse.csr_matrix(np.c_[X, np.zeros((60, 2100))])
    with pytest.warns(UserWarning, match="column 1 of X .* column [02]"):
        RankRLS().fit(wide, y, qid=qid)
    with pytest.warns(UserWarning, match="column 1 of X .* column [02]"):
        forms.RankRLS(form="dual").fit(X, Preferences([0, 1], [5, 7]))


def test_many_columns_of_which_nothing_is_lost_are_no_warning():
    """A spread of 10,000 beside 1, which a path holds to 1e-9, whatever the number of columns."""
    X, y, qid = problem(900, 400, 1, 3e4)
    expected = minimiser(X, y, qid, 1.0)
    found = RankRLSCV([1.0, 2.0], scoring="pairwise_squared_error").fit(X, y, qid=qid)
    size = np.abs(X - X.mean(axis=0)).max(axis=0)
    gap = (found.coef_path_[0] - expected) * size
    assert np.abs(gap).max() < 1e-8 * np.abs(expected * size).max()


@pytest.mark.parametrize("of", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_of_weight_0_are_no_warning(of):
    X, y, qid = problem(60, 80, 1, 730.0)
    X[0, 0] = 1e15
    model = RankRLSCV().fit(of(X), y, qid=qid, sample_weight=np.arange(60) > 0)
    assert model.form_ == "dual"


@every(number=range(8))
def test_a_path_tells_of_a_flag_that_it_loses(number):
    X, y, qid = problem(540, 2, 1, 6.3e10)
    X[:, 0] = X[:, 0] > 0
    road = list(paths(X, 2 * X[:, 0] + 0.1 * y, qid))[number]
    if number in KEEPING:
        alike = list(paths(X / X.std(axis=0), 2 * X[:, 0] + 0.1 * y, qid))[number]()
        assert np.max(road().best_score_) > np.max(alike.best_score_) - 0.02
        return
    with pytest.warns(UserWarning, match=LOST):
        road()


@pytest.mark.parametrize("of", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("kind", [RankRLSCV, RankSVMCV])
def test_rare_flags_beside_ordinary_columns_are_no_warning(kind, of):
    rng = np.random.default_rng(0)
    flags = rng.random((2000, 50)) < 1 / np.geomspace(3, 2000, 50)
    X = np.c_[rng.normal(size=(2000, 3)), flags]
    kind().fit(of(X), np.round(X[:, 0]), qid=np.arange(2000) // 10)


def test_default_values_of_C_tell_which_columns_they_lose():
    X, y, qid = problem(540, 2, 1, 6.3e10)
    y = np.round(y)
    winner, loser = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    frame = pd.DataFrame(X, columns=["a", "b"])
    table = scan(frame.assign(y=y, q=qid), label="y", qid="q", features=["a", "b"])
    roads = ({"X": frame, "y": y, "qid": qid}, {"X": frame, "y": Preferences(winner, loser)})
    for given in (*roads, {"X": table}):
        with pytest.warns(UserWarning, match="'b' of X .* 'a' .* give feature_map='standard'"):
            RankSVMCV().fit(**given)
        RankSVMCV(feature_map=[None, "standard"]).fit(**given)
    exact = RankSVMCV([1.0]).fit(X, y, qid=qid)
    X[:, 1] = 1e12 + 1e9 * qid
    RankSVMCV().fit(X, y, qid=qid)
    assert exact.best_score_ > 0.95


@pytest.mark.parametrize("positive", [[1, 0], (0, 1), np.array([1, 0])])
def test_a_mask_of_two_columns_is_refused(positive):
    X, y, qid = problem(60, 2, 1, 1.0)
    with pytest.raises(ValueError, match=r"may be a mask or numbers: give Positive\(\)"):
        RankRLS(constraint=Positive(positive)).fit(X, y, qid=qid)
    RankRLS(constraint=Positive([0, 1])).fit(np.c_[X, X[:, 0] ** 2], y, qid=qid)
