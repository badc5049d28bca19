"""`propose`, against the covariances of all rows, which are made and updated one by one."""

import warnings

import numpy as np
import pytest
import scipy.sparse

import forms
from pairgram import Kernel, Pairgram, Pairs, Posterior, RandomFourier, RankRLS, posterior, propose
from row_value import row_value

SETTINGS = {
    "linear": {},
    "dual": {"form": "dual"},
    "kernel": {"feature_map": Kernel("rbf", gamma=0.2)},
    "fourier": {"feature_map": row_value("standard", RandomFourier(40, gamma=0.2, random_state=0))},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(40, 4)), rng.normal(size=(60, 4))
    pool[7] = pool[3]
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=40)
    return X, y, pool


def fitted(name, rows):
    return sure(forms.RankRLS(0.5, pairs=Pairs(weighting="documents"), **SETTINGS[name]), *rows[:2])


def sure(model, X, y, qid=None):
    return posterior(model.fit(X, y, qid=qid), X, y, qid=qid)


def joint(posterior, X, pool):
    """Return the covariances of rows of a pool, and of the best measured one, from deviations."""
    predict = posterior.model.predict
    scores = predict(X)
    every = np.vstack([pool, X[[int(np.argmax(scores))]]])
    n = len(every)
    deviations = posterior.std(every, reference="training")
    first, second = np.triu_indices(n, 1)
    D = np.zeros((n, n))
    D[first, second] = posterior.std_of_differences(every[first], every[second]) ** 2
    D += D.T
    variances = deviations**2
    return (variances[:, None] + variances - D) / 2, np.append(predict(pool), scores.max())


def worth(strategy, scores, C):
    deviations = np.sqrt(np.maximum(C.diagonal(), 0))
    if strategy == "variance":
        return deviations
    return scores + deviations


@pytest.mark.parametrize("few", [False, True], ids=["all", "a few first"])
@pytest.mark.parametrize("strategy", ["upper", "variance"])
@pytest.mark.parametrize("name", SETTINGS)
def test_rows(rows, name, strategy, few, set_limits):
    X, _, pool = rows
    set_limits(proposed_rows=25 if few else 100)
    model = fitted(name, rows)
    C, scores = joint(model, X, pool)
    expected = []
    for _ in range(6):
        values = worth(strategy, scores, C)[: len(pool)]
        values[expected] = -np.inf
        row = int(np.argmax(np.round(values, 10)))
        expected.append(row)
        C = C - np.outer(C[row], C[row]) / (C[row, row] + model.label_noise)
    found = propose(model, pool, 6, strategy=strategy)
    assert found.tolist() == expected


def test_statistics_and_sparse_rows(rows):
    X, y, pool = rows
    total = Pairgram.from_rows(X, y, pairs=Pairs(weighting="documents"))
    model = posterior(RankRLS.from_pairgram(total, 0.5), total)
    assert len(propose(model, pool, 3, strategy="variance")) == 3
    sparse = scipy.sparse.csr_array(pool)
    of_rows = fitted("linear", rows)
    np.testing.assert_array_equal(
        propose(of_rows, sparse, 4, strategy="upper"), propose(of_rows, pool, 4, strategy="upper")
    )


@pytest.mark.parametrize(("weighting", "unit"), [("pairs", 25.0), ("queries", 0.08)])
@pytest.mark.parametrize("of_statistics", [False, True])
def test_labels_of_lists_that_differ_a_little(weighting, unit, of_statistics, tmp_path):
    """A choice teaches about as much as where all lists weigh the same."""
    rng = np.random.default_rng(2)
    X, qid = rng.normal(size=(200, 4)), np.repeat(np.arange(8), 25)
    y, pool = X @ rng.normal(size=4) + rng.normal(size=200), rng.normal(size=(300, 4))
    model = sure(RankRLS(0.5 * unit, pairs=Pairs(weighting=weighting)), X, y, qid)
    expected = propose(model, pool, 6, strategy="variance")
    qid[24] = 1
    other = sure(RankRLS(0.5 * unit, pairs=Pairs(weighting=weighting)), X, y, qid)
    if of_statistics:
        total = Pairgram.from_rows(X, y, qid=qid, pairs=Pairs(weighting=weighting))
        other = posterior(RankRLS.from_pairgram(total, 0.5 * unit), total)
    assert other.kind == "approximate"
    assert other.label_noise == pytest.approx(model.label_noise, rel=0.1)
    other.save(tmp_path / "posterior")
    for one in (other, Posterior.load(tmp_path / "posterior")):
        if not of_statistics:
            np.testing.assert_array_equal(propose(one, pool, 3, strategy="variance"), expected[:3])


@pytest.mark.parametrize("strategy", ["upper", "variance"])
def test_labels_without_noise(rows, strategy):
    X, _, pool = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = sure(RankRLS(0.5, feature_map=Kernel("rbf", gamma=0.2)), X, np.ones(len(X)))
    assert model.noise == 0
    found = propose(model, pool, 4, strategy=strategy)
    assert len(np.unique(found)) == 4
