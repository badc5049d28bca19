"""What a model leaves of labels is right, or a warning says that it has lost its digits."""

import warnings

import numpy as np
import pandas as pd
import pytest

from axes import every
from pairgram import Pairgram, Pairs, RankRLS, RankRLSCV, posterior, scan

LOST = "fewer than two digits"
SIZES = [1.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]


def rows_of(size, dtype):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(200), 20)
    X = rng.normal(size=(len(qid), 3)).astype(dtype)
    noise = rng.normal(size=len(qid))
    return X, X @ np.array([size, size, 0.0]) + noise, qid, noise


def told(function):
    """What a function returns, and whether it warns of digits."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = function()
    return value, any(LOST in str(one.message) for one in found)


def centred(values, qid):
    return values - (np.bincount(qid, values) / np.bincount(qid))[qid]


@every(dtype=[np.float64, np.float32], size=SIZES, road=["statistics", "prior", "table"])
def test_noise_of_sums(road, size, dtype):
    X, y, qid, noise = rows_of(size, dtype)
    alpha = 1e-9 / size**2  # whose part of the noise is small

    def fitted():
        if road == "table":
            frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, q=qid)
            table = scan(frame, label="y", qid="q", features=list("abc"))
            return posterior(RankRLS(alpha, pairs=Pairs(weighting="documents")).fit(table), table)
        total = Pairgram.from_rows(X, y, qid=qid, pairs=Pairs(weighting="documents"))
        prior = [size, size, 0.0] if road == "prior" else None
        return posterior(RankRLS.from_pairgram(total, alpha, prior=prior), total)

    found, warned = told(fitted)
    Z = np.column_stack([centred(x, qid) for x in X.T.astype(np.float64)])
    left = np.linalg.lstsq(Z, centred(noise, qid), rcond=None)[1][0]
    wanted = left / (len(y) - 200)
    assert warned or found.noise == pytest.approx(wanted, rel=0.05)
    assert not (warned and size <= (100 if dtype == np.float32 else 1e5))
    assert warned or size < 1e8


@every(dtype=[np.float64, np.float32], size=SIZES)
def test_losses_of_statistics(size, dtype):
    X, y, qid, noise = rows_of(size, dtype)
    alphas = [1e-9 / size**2, 1e-8 / size**2]
    parts = [qid % 2 == 0, qid % 2 == 1]
    days = [Pairgram.from_rows(X[part], y[part], qid=qid[part]) for part in parts]
    model, warned = told(lambda: RankRLSCV.from_pairgrams(days, alphas))
    wanted = []
    for train, test in (parts, parts[::-1]):
        Z = np.column_stack([centred(x, qid) for x in X.T.astype(np.float64)])
        e = centred(noise, qid)
        error = e[test] - Z[test] @ np.linalg.lstsq(Z[train], e[train], rcond=None)[0]
        wanted.append(np.mean(error**2))
    assert warned or model.best_score_ == pytest.approx(np.mean(wanted), rel=0.05)
    assert not (warned and size <= (100 if dtype == np.float32 else 1e5))
    assert warned or size < 1e8
