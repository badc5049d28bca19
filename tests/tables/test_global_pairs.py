"""Pairs of all rows of a table, and pairs of a caller's own weight that are sent elsewhere."""

import numpy as np
import pandas as pd
import pytest

import pairgram
from table_sources import scanned


def test_pairs_with_ties_take_any_number_of_labels():
    y = np.arange(1100.0)
    model, cuts = pairgram.RankRLS(pairs=pairgram.Pairs(scope="global")), (1, 2, 300)
    X, weights = np.stack([y**2, np.sin(y)], 1) / 1e3, np.arange(1100) % 7.0
    pieces = np.split(np.arange(len(y)), cuts)
    wanted = model.fit(X, y, sample_weight=weights).coef_.copy()
    table = scanned(*((X[at], y[at], None, weights[at]) for at in pieces))
    np.testing.assert_allclose(model.fit(table).coef_, wanted, rtol=1e-9)


def test_a_callable_within_queries_is_sent_too():
    X, y, qid = pairgram.make_ranking(30, 20, 6, random_state=0)
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X).rename(columns=str).assign(y=y, q=qid)
    table = pairgram.scan(dask.from_pandas(frame, npartitions=4), label="y", qid="q")
    model = pairgram.RankRLS(pairs=lambda a, b: np.abs(a - b) ** 1.5)
    wanted = model.fit(X, y, qid=qid).coef_.copy()
    np.testing.assert_allclose(model.fit(table).coef_, wanted, rtol=1e-9)
