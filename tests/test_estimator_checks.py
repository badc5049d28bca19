"""scikit-learn's own checks of estimators, none expected to fail."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import pairgram
from pairgram import (
    LSSVR,
    AutoRanker,
    ELMRank,
    ELMRankCV,
    Nystroem,
    PairwiseELM,
    PointwiseELMCV,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)

PUBLIC = [getattr(pairgram, name) for name in pairgram.__all__]
ESTIMATORS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, BaseEstimator)]


# What has no default is told here.
ARGUMENTS = {"Cross": ([0], [1])}


@parametrize_with_checks([kind(*ARGUMENTS.get(kind.__name__, ())) for kind in ESTIMATORS])
def test_every_estimator_as_it_is_made_without_parameters(estimator, check):
    check(estimator)


def test_all_estimators_are_checked():
    some = {"RankRLS", "RankRLSCV", "ELMRank", "ELMRankCV", "RankSVMCV", "Nystroem", "LSSVR"}
    assert {kind.__name__ for kind in ESTIMATORS} >= some


@parametrize_with_checks(
    [
        RankRLS(pairs="without_ties", scale=True),
        RankRLS(pairs="label_difference", weighting="queries"),
        RankRLS(pairs=None),
        RankRLS(form="dual"),
        RankRLS(kernel="rbf"),
        RankRLS(kernel="tanimoto"),
        RankRLS(kernel="minmax"),
        RankRLSCV(kernel="laplacian"),
        RankRLS(inputs="standard"),
        RankRLS(inputs="raw+quantile"),
        RankRLS(inputs="standard", kernel="minmax"),
        RankRLSCV(inputs=[None, "standard"]),
        RankSVM(inputs="maxabs"),
        RankRLSCV(pairs=["with_ties", "without_ties"], scale=[False, True]),
        PairwiseELM(activation="sigmoid", n_nodes=20, random_state=0),
        PointwiseELMCV(kernel="linear"),
        PairwiseELM(kernel="rbf"),
        ELMRank(n_nodes=10),
        ELMRank(n_nodes=10, pairs="without_ties", n_estimators=2),
        ELMRankCV(n_nodes=10, cv=3),
        ELMRankCV([0.1], [2.0, 1024.0], n_nodes=10, cv=3, pairs="without_ties"),
        LSSVR(10.0, kernel="rbf"),
        RankSVM(loss="squared", weighting="queries", tol=1e-6),
        RankSVM(feature_map=Nystroem(n_components=None)),
        RankSVM(feature_map=Nystroem(kernel="tanimoto", random_state=0)),
        RankSVMCV(cv=3),
        RankRLS(missing="mean"),
        RankRLS(missing="median", inputs="quantile"),
        RankRLS(missing="zero", kernel="rbf"),
        RankRLSCV(missing="mean"),
        PairwiseELM(missing="mean", n_nodes=20, random_state=0),
        ELMRank(n_nodes=10, missing="median"),
        RankSVM(missing="mean"),
        AutoRanker(time_budget=0.5, missing="mean"),
        RankSVMCV([0.1, 1.0], feature_map=[None, RandomNodes(5, random_state=0)], cv=3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    if "on_sparse_data" in check.func.__name__ and not get_tags(estimator).input_tags.sparse:
        pytest.skip("scikit-learn 1.6 does not look at this tag")
    check(estimator)
