"""scikit-learn's own checks of estimators, none expected to fail."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import pairgram
from pairgram import (
    Fill,
    Kernel,
    Nystroem,
    Pairs,
    Quantile,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    Standard,
)

PUBLIC = [getattr(pairgram, name) for name in pairgram.__all__]
MADE = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
ESTIMATORS = [kind for kind in MADE if hasattr(kind, "fit")]  # constraints are values of parameters


# What has no default is told here, and that the models which one tries are not many.
ARGUMENTS = {"Cross": ([0], [1]), "AutoRanker": (1e-6,)}


def every_check(estimator):
    """Run all checks that suit the estimator, and return how many passed."""
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    if not get_tags(estimator).input_tags.sparse:  # scikit-learn 1.6 does not look at this tag
        results = [one for one in results if "on_sparse_data" not in one["check_name"]]
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert not failed
    return sum(one["status"] == "passed" for one in results)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_as_it_is_made_without_parameters(kind):
    assert every_check(kind(*ARGUMENTS.get(kind.__name__, ()))) > 30


def test_all_estimators_are_checked():
    some = {"RankRLS", "RankRLSCV", "ELMRank", "ELMRankCV", "RankSVMCV", "Nystroem"}
    assert {kind.__name__ for kind in ESTIMATORS} >= some


@pytest.mark.parametrize(
    "estimator",
    [
        RankRLS(pairs=Pairs("label_difference", weighting="queries"), scale=True),
        RankRLS(pairs=None),
        RankRLS(feature_map=make_pipeline(Standard(), Kernel("minmax"))),
        RankRLS(feature_map=make_pipeline(Fill("median"), Quantile(raw=True))),
        RankRLSCV(
            feature_map=make_pipeline(Fill(0.0), Kernel("laplacian")),
            pairs=["with_ties", "without_ties"],
        ),
        RankSVM(
            feature_map=make_pipeline(Fill("mean"), Nystroem(kernel="tanimoto", random_state=0))
        ),
        RankSVMCV([0.1, 1.0], feature_map=[None, RandomNodes(5, random_state=0)], cv=3),
    ],
    ids=repr,
)
def test_estimators_with_parameters(estimator):
    assert every_check(estimator) > 30
