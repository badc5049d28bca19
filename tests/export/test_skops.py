"""skops keeps models, maps and statistics without pickle, and the bits of their scores."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairgram
from pairgram import (
    AutoRanker,
    Cross,
    ELMRank,
    ELMRankCV,
    Kernel,
    Nystroem,
    Pairgram,
    Pairs,
    PairwiseELM,
    PairwiseELMCV,
    PointwiseELM,
    PointwiseELMCV,
    Preferences,
    QueryKFold,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    make_ranking,
    make_scorer,
)

skops_io = pytest.importorskip("skops.io")

NODES = RandomNodes(12, activation="gaussian", random_state=np.random.RandomState(0))
OF_ARRAYS = {
    "columns": RankRLS(alpha=np.float64(2)),
    "search": RankRLSCV(scoring="ndcg@5"),
    "evidence": RankRLSCV(scoring="evidence", pairs=Pairs("with_ties", weighting="documents")),
    "scorer": RankRLSCV(scoring=make_scorer("ndcg@5")),
    "RankSVM": RankSVM(C=0.1),
    "RankSVMCV": RankSVMCV(cv=QueryKFold(3)),
    "kernels": RankRLS(feature_map=Kernel("laplacian")),
    "scaled": RankRLS(feature_map="standard"),
    "quantiles": RankRLS(feature_map="raw+quantile"),
    "nodes": RankRLS(feature_map=NODES),
    "Fourier": RankRLS(feature_map=RandomFourier(20, random_state=0)),
    "Nyström": RankRLS(feature_map=Nystroem(n_components=9, random_state=0)),
    "Cross": RankRLS(feature_map=Cross([0, 1], [2, 3], keep=[4])),
    "prior": RankRLS(prior=RankRLS().fit(*make_ranking(20, 10, 6, random_state=1)[:2])),
    "ELMRank": ELMRank(n_nodes=8, random_state=0),
    "ELMRankCV": ELMRankCV(n_nodes=8, random_state=0),
    "PairwiseELM": PairwiseELM(n_nodes=8, random_state=0),
    "PairwiseELMCV": PairwiseELMCV(n_nodes=8, random_state=0),
    "PointwiseELM": PointwiseELM(n_nodes=8, random_state=0),
    "PointwiseELMCV": PointwiseELMCV(n_nodes=8, random_state=0),
    "AutoRanker": AutoRanker(time_budget=None, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), NODES, RankRLS()),
}
MAPS = [
    NODES,
    RandomFourier(20, random_state=0),
    Nystroem(n_components=9, kernel="laplacian"),
    Cross([0, 1], [2, 3], keep=[4]),
]
X, y, qid = make_ranking(40, 10, 6, random_state=0)


def kept(model):
    """Return what a file of a model holds, and the types that it asks to be trusted."""
    data = skops_io.dumps(model)
    loaded = skops_io.loads(data, trusted=pairgram.export.skops_types())
    return loaded, set(skops_io.get_untrusted_types(data=data))


def fitted():
    """Yield models, and functions of what they answer."""
    for model in OF_ARRAYS.values():
        name = "" if not hasattr(model, "steps") else "rankrls__"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield model.fit(X, y, **{f"{name}qid": qid}), lambda one: one.predict(X)
    compared = RankRLSCV().fit(X, Preferences(np.arange(200), np.arange(200, 400)))
    yield compared, lambda one: one.predict(X)
    scales = [pairgram.Standard(), pairgram.MinMax(), pairgram.MaxAbs(), pairgram.Quantile()]
    for feature_map in [*MAPS, *scales, pairgram.Fill()]:
        yield feature_map.fit(X), lambda one: one.transform(X)
    for scope in ("query", "global"):
        total = Pairgram.from_rows(X, y, qid=qid, pairs=Pairs(scope=scope))
        yield total, lambda one: RankRLS.from_pairgram(one).coef_


def test_the_same_bits_of_all_that_is_kept_and_the_types_are_those_of_the_list():
    found = set()
    for model, answer in fitted():
        loaded, types = kept(model)
        np.testing.assert_array_equal(answer(loaded), answer(model), err_msg=str(model))
        found |= types
    assert found == set(pairgram.export.skops_types())


def test_callables_are_not_trusted():
    model = RankRLS(pairs=lambda a, b: abs(a - b)).fit(X, y, qid=qid)
    with pytest.raises(Exception, match=r"Untrusted types|not supported|lambda|pickle"):
        skops_io.loads(skops_io.dumps(model), trusted=pairgram.export.skops_types())
