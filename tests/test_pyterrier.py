"""Rankers in pipelines of PyTerrier, with a retriever in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairgram import RankRLS, RankRLSCV, evaluate, make_ranking

pt = pytest.importorskip("pyterrier")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

N_QUERIES, N_DOCUMENTS = 40, 12
X, Y, QID = make_ranking(N_QUERIES, N_DOCUMENTS, 5, random_state=0)
RESULTS = pd.DataFrame(
    {
        "qid": [f"q{number}" for number in QID],
        "query": [f"words {number}" for number in QID],
        "docno": [f"d{number}" for number in range(len(Y))],
        "score": X[:, 0],
        "features": list(X),
    }
)
QRELS = RESULTS[["qid", "docno"]].assign(label=Y.astype(int))[Y > 0]  # the others are not judged
TOPICS = RESULTS[["qid", "query"]].drop_duplicates()


class Retriever(pt.Transformer):
    """Returns the results of the topics, in an order of its own."""

    def transform(self, topics):
        found = RESULTS[RESULTS["qid"].isin(topics["qid"])].sample(frac=1, random_state=1)
        return pt.model.add_ranks(found)


def split():
    return TOPICS.iloc[:24], TOPICS.iloc[24:32], TOPICS.iloc[32:]


def ranked(pipeline, topics):
    found = pipeline.transform(topics).merge(QRELS, on=["qid", "docno"], how="left").fillna(0)
    return found, evaluate("ndcg@10", found["label"], found["score"], found["qid"])["ndcg@10"]


def test_a_ranker_uses_the_column_of_ids():
    from pairgram.pyterrier import Ranker

    train, valid, test = split()
    rows = np.isin(RESULTS["qid"], train["qid"])
    held = np.isin(RESULTS["qid"], valid["qid"])
    own = RankRLSCV().fit(X[rows], Y[rows], qid=QID[rows])
    ranker = Ranker(RankRLSCV())
    pipeline = Retriever() >> ranker
    pipeline.fit(train, QRELS, None, None)
    np.testing.assert_allclose(ranker.estimator_.coef_, own.coef_, rtol=1e-9)
    assert not hasattr(ranker.estimator, "coef_")
    found, quality = ranked(pipeline, test)
    assert quality > ranked(Retriever(), test)[1] + 0.05
    best = found[found["rank"] == 0]
    assert (best["score"] == found.groupby("qid")["score"].max()[best["qid"]].to_numpy()).all()
    pipeline.fit(train, QRELS, valid, QRELS)
    own.fit(X[rows], Y[rows], qid=QID[rows], validation=(X[held], Y[held], QID[held]))
    np.testing.assert_allclose(ranker.estimator_.coef_, own.coef_, rtol=1e-9)


def test_labels_below_0_are_no_judgements():
    from pairgram.pyterrier import Ranker

    below = RESULTS[["qid", "docno"]].assign(label=np.where(Y > 0, Y, -2).astype(int))
    own, other = (Ranker(RankRLSCV()).fit(RESULTS, each).estimator_ for each in (QRELS, below))
    assert own.scoring_ == other.scoring_
    np.testing.assert_array_equal(own.coef_, other.coef_)


def test_an_experiment_and_a_pipeline_of_scikit_learn():
    from pairgram.pyterrier import Ranker

    train, valid, test = split()
    ranker = Ranker(make_pipeline(StandardScaler(), RankRLS()))
    pipeline = Retriever() >> ranker
    with pytest.warns(UserWarning, match="the validation results are not used"):
        pipeline.fit(train, QRELS, valid, QRELS)
    table = pt.Experiment(
        [Retriever(), pipeline], test, QRELS, ["map", "ndcg_cut_10"], names=["first", "pairgram"]
    )
    assert table["map"][1] > table["map"][0] + 0.05


def test_results_that_do_not_fit():
    from pairgram.pyterrier import Ranker

    ranker = Ranker(RankRLS())
    for results, qrels, words in (
        (RESULTS, pd.concat([QRELS, QRELS[:1]]), "qrels must judge a document once"),
        (RESULTS, QRELS[["qid", "docno"]], "qrels must have the columns"),
        (RESULTS, QRELS.assign(qid="other"), "qrels must judge a result: none of the 480"),
        (RESULTS, QRELS.assign(label=np.nan), "qrels has no label for 'q"),
        (RESULTS[:0], QRELS, "must have results"),
    ):
        with pytest.raises(ValueError, match=words):
            ranker.fit(results, qrels)
    with pytest.raises(NotFittedError, match="this Ranker is not fitted"):
        ranker.transform(RESULTS)
    ranker.fit(RESULTS, QRELS)
    with pytest.raises(ValueError, match=r"3 features.* expecting 5"):
        ranker.transform(RESULTS.assign(features=list(X[:, :3])))
    assert ranker.transform_outputs(["qid", "docno", "score"]) == ["qid", "docno", "score", "rank"]
    assert len(ranker.transform(RESULTS[:0])) == 0
    with pytest.raises(ValueError, match="give topics_and_results_valid and qrels_valid, or"):
        ranker.fit(RESULTS, QRELS, RESULTS)
