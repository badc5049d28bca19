"""A query that holds nearly all of a column's variation is held out by a refit."""

import math

import mpmath
import numpy as np
import pytest

import forms
from pairgram import RankRLSCV, make_ranking
from reference import laplacian

N_QUERIES, SIZE, N_FEATURES = 30, 5, 6


def rows(big, small):
    rng = np.random.default_rng(0)
    n = N_QUERIES * SIZE
    X, qid = rng.normal(size=(n, N_FEATURES)), np.repeat(np.arange(N_QUERIES), SIZE)
    X[:SIZE, 0] *= big
    X[SIZE:, 0] *= small
    y = rng.integers(0, 4, n).astype(float)
    return X, y, qid, rng.choice([0.5, 1.0, 2.0], n)


def without(X, y, qid, v, alpha, pairs, query):
    """The scores of a query by the model without it, in 60 digits; integers count 2^-200."""
    rest, unit = qid != query, np.vectorize(lambda x: int(math.ldexp(x, 200)), otypes=[object])
    L = unit(laplacian(y[rest], qid[rest], pairs, v[rest])[0])
    H = unit(X[rest])
    HL = H.T @ L
    with mpmath.workdps(60):
        G = mpmath.matrix((HL @ H).tolist()) * mpmath.mpf(2) ** -600
        G += mpmath.mpf(float(alpha)) * mpmath.eye(X.shape[1])
        w = mpmath.lu_solve(G, mpmath.matrix((HL @ unit(y[rest])).tolist()) * mpmath.mpf(2) ** -600)
        return np.array([float(s) for s in mpmath.matrix(X[~rest].tolist()) * w])


def error(found, exact):
    """The error of differences, as a share of the largest."""
    off = (found - found[0]) - (exact - exact[0])
    return abs(off).max() / np.ptp(exact)


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
@pytest.mark.parametrize(("big", "small"), [(1e4, 1e-2), (1e2, 1e-4), (1e4, 1.0)])
def test_scores_keep_their_digits(set_limits, pairs, big, small):
    X, y, qid, v = rows(big, small)
    largest = RankRLSCV(cv=3).fit(X, y, qid=qid, sample_weight=v).alphas_[0] / 3.2768
    alphas = largest / np.array([1.0, 2e6, 2e8])

    def errors():
        found = []
        for alpha in alphas:
            search = forms.RankRLSCV([alpha], pairs=pairs, form="primal")
            held_out = search.fit(X, y, qid=qid, sample_weight=v).held_out_
            of_query = {query: held_out[qid == query] for query in (0, 3)}
            found.append(
                [
                    error(scores, without(X, y, qid, v, alpha, pairs, query))
                    for query, scores in of_query.items()
                ]
            )
        return np.array(found)

    refitted = errors()
    assert refitted[1:].max() < 1e-13 and refitted[0].max() < 1e-10
    set_limits(held_refits=0)
    identities = errors()
    assert identities[2, 0] > 1e-10  # the refit is needed
    assert (identities[:, 1] == refitted[:, 1]).all()


def test_the_whole_path_is_that_of_single_ridges():
    X, y, qid, _ = rows(1e4, 1e-4)
    largest = RankRLSCV(cv=3).fit(X, y, qid=qid).alphas_[0]
    alphas = largest / np.array([1.0, 1e7, 1e9])
    scores = RankRLSCV(alphas, scoring="pairwise_squared_error").fit(X, y, qid=qid).scores_
    for alpha, score in zip(alphas, scores, strict=True):
        one = RankRLSCV([alpha], scoring="pairwise_squared_error").fit(X, y, qid=qid)
        np.testing.assert_allclose(one.best_score_, score, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:.*spreads so much more widely")
def test_the_largest_directions_are_refitted_first(set_limits):
    """Every query has a column of its own; the ones that are refitted are exact."""
    X, y, qid = make_ranking(8, 6, 3, random_state=0)
    own = np.zeros((len(y), 8))
    rng = np.random.default_rng(0)
    own[np.arange(len(y)), qid] = 1e4 * 2.0**qid * rng.normal(size=len(y))
    X = np.hstack([X, own])
    alpha = RankRLSCV(cv=2).fit(X, y, qid=qid).alphas_[0] / 1e9
    search = forms.RankRLSCV([alpha], form="primal")
    every = search.fit(X, y, qid=qid).held_out_
    set_limits(held_refits=1)
    one = search.fit(X, y, qid=qid).held_out_
    set_limits(held_refits=0)
    none = search.fit(X, y, qid=qid).held_out_
    differs = [bool((one[qid == q] != none[qid == q]).any()) for q in range(8)]
    assert differs == [False] * 7 + [True]
    np.testing.assert_allclose(one[qid == 7], every[qid == 7], rtol=1e-6)


@pytest.mark.parametrize(("big", "small"), [(1e4, 1e3), (1e4, 30.0), (1e4, 10.0), (1e4, 0.01)])
def test_small_ridges_keep_their_digits(big, small):
    """The share of a column that others hold goes over the bound above which they are asked."""
    X, y, qid, v = rows(big, small)
    largest = RankRLSCV(cv=3).fit(X, y, qid=qid, sample_weight=v).alphas_[0] / 3.2768
    for alpha in largest / 10.0 ** np.array([0, 3, 5, 7, 10]):
        search = forms.RankRLSCV([alpha], form="primal")
        scores = search.fit(X, y, qid=qid, sample_weight=v).held_out_[qid == 0]
        assert error(scores, without(X, y, qid, v, alpha, "with_ties", 0)) < 3e-10


@pytest.mark.parametrize("leak", [0.0, 1e-6])
@pytest.mark.filterwarnings("ignore:.*spreads so much more widely")
def test_columns_that_each_query_has_for_itself(leak):
    """The small columns lose no more digits than the large ones."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(24), 4)
    own = leak * 1e4 * rng.normal(size=(96, 24))
    own[np.arange(96), qid] = 1e4 * (1 + qid) * rng.normal(size=96)
    X, y = np.hstack([rng.normal(size=(96, 3)), own]), rng.integers(0, 4, 96).astype(float)
    largest = RankRLSCV(cv=3).fit(X, y, qid=qid).alphas_[0] / 3.2768
    for alpha in largest / np.array([1e6, 1e10]):
        search = forms.RankRLSCV([alpha], form="primal").fit(X, y, qid=qid)
        for query in (0, 23):
            exact = without(X, y, qid, np.ones(96), alpha, "with_ties", query)
            assert error(search.held_out_[qid == query], exact) < 1e-12
