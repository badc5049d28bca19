"""Labels without differences: the model is zero, and `fit` says so once."""

import numpy as np
import pandas as pd
import pytest

import pairgram as pg
from axes import every

WORDS = "no query has two rows with different labels, so there is nothing to learn: the model is"
QUERY = np.repeat(np.arange(8), 5)
LABELS = np.repeat([0.1, 2.0, 0.3, 2.0, 2.0, 7.1, 1.0, 0.0], 5)
GRADES = np.repeat([1, 2, 0, 2, 2, 3, 1, 0], 5)


def rows():
    return np.random.default_rng(0).normal(size=(40, 3))


def fit_that_warns(model, *arguments, **named):
    with pytest.warns(UserWarning, match=WORDS) as found:
        model.fit(*arguments, **named)
    assert len(found) == 1
    assert found[0].filename == __file__
    assert not model.coef_.any()


@every(
    model=[
        pg.RankRLS(),
        pg.RankRLS(feature_map=pg.Kernel("rbf")),
        pg.RankRLSCV(),
        pg.PairwiseELM(random_state=0),
        pg.PairwiseELMCV(random_state=0),
        pg.ELMRank(pairs=pg.Pairs(), random_state=0),
        pg.ELMRankCV(pairs=pg.Pairs(), random_state=0),
        pg.AutoRanker(time_budget=1.0, random_state=0),
    ]
)
def test_a_fit_to_labels_without_differences_warns_once(model):
    order = np.random.default_rng(1).permutation(40)
    fit_that_warns(model, rows()[order], GRADES[order], qid=QUERY[order])


@pytest.mark.parametrize(
    "model", [pg.RankRLS(pairs=pg.Pairs(scope="global")), pg.ELMRank(random_state=0)]
)
def test_pairs_of_all_rows_need_two_different_labels(model):
    model.fit(rows(), LABELS, qid=QUERY)
    fit_that_warns(model, rows(), np.full(40, 0.3), qid=QUERY)


def test_rows_of_weight_0_do_not_count():
    y, weights = np.tile([1, 1, 0, 0, 0], 8), np.tile([1, 1, 0, 0, 0], 8)
    pg.RankRLS().fit(rows(), y, qid=QUERY)
    fit_that_warns(pg.RankRLS(), rows(), y, qid=QUERY, sample_weight=weights)
    pg.RankRLS().fit(rows(), y, qid=QUERY, sample_weight=np.tile([0, 1, 1, 0, 0], 8))


def test_one_pair_with_different_labels_is_enough():
    for row in range(40):
        y = LABELS.copy()
        y[row] += 1
        assert pg.RankRLS().fit(rows(), y, qid=QUERY).coef_.any()
        qid = np.where(np.arange(40) == row, 8, QUERY)  # a query of its own
        fit_that_warns(pg.RankRLS(), rows(), y, qid=qid)


def test_labels_are_compared_within_many_queries_of_any_size():
    sizes = np.random.default_rng(2).integers(1, 4, 5000)
    qid = np.repeat(np.arange(5000), sizes)
    X, y = np.random.default_rng(3).normal(size=(len(qid), 2)), qid % 7.0
    fit_that_warns(pg.RankRLS(), X, y, qid=qid)
    y[np.flatnonzero(np.diff(qid) == 0)[-1]] += 1
    pg.RankRLS().fit(X, y, qid=qid)


def test_offsets_and_pointwise_models_learn_from_equal_labels():
    X = rows()
    assert pg.RankRLS().fit(X, LABELS, qid=QUERY, offset=X[:, 0]).coef_.any()
    assert pg.RankRLS(pairs=None).fit(X, LABELS, qid=QUERY).coef_.any()
    assert pg.PointwiseELM(random_state=0).fit(X, LABELS, qid=QUERY).coef_.any()


@pytest.mark.parametrize("model", [pg.RankRLS(), pg.RankRLSCV(), pg.RankRLSCV(cv=3)])
def test_tables_warn_too(model):
    frame = pd.DataFrame(rows(), columns=list("abc")).assign(y=GRADES, q=QUERY)
    fit_that_warns(model, pg.scan(frame, label="y", qid="q"))
    model.fit(pg.scan(frame.assign(y=frame.index % 2), label="y", qid="q"))


def test_a_table_whose_rows_all_form_pairs_needs_two_labels():
    frame = pd.DataFrame(rows(), columns=list("abc")).assign(y=GRADES, q=QUERY)
    pg.RankRLS(pairs=pg.Pairs(scope="global")).fit(pg.scan(frame, label="y", qid="q"))
    fit_that_warns(
        pg.RankRLS(pairs=pg.Pairs(scope="global")), pg.scan(frame.assign(y=1), label="y", qid="q")
    )


def test_many_fits_give_no_warning():
    batch = pg.fit_many(pg.RankRLS(), [(rows(), LABELS, QUERY), (rows(), np.arange(40.0))])
    kernel = pg.fit_many(pg.RankRLS(feature_map=pg.Kernel("rbf")), [(rows(), LABELS, QUERY)])
    assert not batch.models[0].coef_.any()
    assert batch.models[1].coef_.any()
    assert not kernel.models[0].coef_.any()


def test_rows_of_weight_0_do_not_count_in_tables_of_one_scope():
    frame = pd.DataFrame(rows(), columns=list("abc")).assign(y=GRADES, w=(GRADES == 2) * 1.0)
    model = pg.RankRLS(pairs=pg.Pairs(scope="global"))
    fit_that_warns(model, pg.scan(frame, label="y", weight="w"))
    model.fit(pg.scan(frame.assign(w=1.0), label="y", weight="w"))
