"""Samples of queries: which are taken, their weights, and how close their statistics come."""

import numpy as np
import pytest

from pairgram import Pairgram, make_ranking
from parts.data import checked_data
from parts.solvers import PairSums, sample_queries


def drawn(n_queries, n_rows, weights=None, sizes=(5, 15), **named):
    X, y, qid = make_ranking(n_queries, sizes, 4, random_state=0)
    X = np.column_stack([X, np.arange(len(y))])  # tells which rows were taken
    data = checked_data(X, y, qid=qid, **named)
    weights = np.ones(n_queries) if weights is None else weights
    return data, sample_queries(data, weights, n_rows)


def test_whole_queries_with_weights_of_one_over_their_probability():
    rng = np.random.default_rng(0)
    query_weights = rng.random(400)
    weights = rng.random(400) * query_weights
    weights[:3] = 100, 200, 0
    sizes = np.bincount(make_ranking(400, (5, 15), 4, random_state=0)[2])
    data, sample = drawn(400, 800, weights, query_weight=np.repeat(query_weights, sizes))
    rows = sample.X[:, -1].astype(int)
    kept = np.unique(data.queries.index()[rows])
    np.testing.assert_array_equal(np.isin(data.queries.index(), kept).nonzero()[0], np.sort(rows))
    np.testing.assert_array_equal(sample.y, data.y[rows])
    factors = sample.query_weights / data.query_weights[kept]
    assert {0, 1} <= set(kept)
    assert 2 not in kept
    np.testing.assert_array_equal(factors[:2], 1)  # taken for sure
    others = factors[2:] * weights[kept[2:]]
    np.testing.assert_allclose(others, others[0])
    assert (factors >= 1).all()
    assert 600 < len(rows) < 1000


def test_systematic_samples_are_unbiased(monkeypatch):
    """Over all starts the mean of a query's weight, 0 where it is left out, is what it was."""
    weights = 0.2 + np.random.default_rng(0).random(60)
    floor, total = np.floor, np.zeros(60)
    starts = (np.arange(300) + 0.5) / 300
    data, _ = drawn(60, 200, weights)
    for start in starts:
        monkeypatch.setattr(np, "floor", lambda x, s=start: floor(x - 0.5 + s))
        sample = sample_queries(data, weights, 200)
        kept = np.unique(data.queries.index()[sample.X[:, -1].astype(int)])
        total[kept] += sample.query_weights
    np.testing.assert_allclose(total / len(starts), 1, rtol=0.05)


def test_the_gram_matrix_is_near_that_of_all():
    data, sample = drawn(2000, 4000)
    settings = Pairgram(pairs="without_ties").settings
    whole, part = (PairSums.of(rows, settings) for rows in (data, sample))
    G, estimate = whole.G[:-1, :-1], part.G[:-1, :-1]
    assert np.abs(estimate - G).max() < 0.1 * np.abs(G).max()
    assert sample.queries.n_queries < 500


@pytest.mark.parametrize(
    ("n_queries", "n_rows", "sizes"),
    [(40, 300, (5, 15)), (1, 10, (100, 100)), (100, 200, (30, 30))],
    ids=["half of the rows", "one query", "long queries"],
)
def test_no_sample_where_it_would_be_most_rows_or_few_queries(n_queries, n_rows, sizes):
    assert drawn(n_queries, n_rows, sizes=sizes)[1] is None
