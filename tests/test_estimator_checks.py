"""scikit-learn's own checks of estimators, none expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from pairgram import (
    LSSVR,
    ELMRank,
    ELMRankCV,
    MPRank,
    PairwiseELM,
    PairwiseELMCV,
    PointwiseELM,
    PointwiseELMCV,
    RandomNodes,
    RankNystroem,
    RankRandomFourier,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)


@parametrize_with_checks(
    [
        RankRLS(),
        RankRLS(pairs="dropped", scale=True),
        RankRLS(pairs="absdiff", weighting="queries"),
        RankRLS(pairs=None),
        RankRLS(form="dual"),
        RankRLS(kernel="rbf"),
        RankRLS(kernel="tanimoto"),
        RankRLS(kernel="minmax"),
        RankRLSCV(),
        RankRLSCV(kernel="laplacian"),
        RankRLSCV(pairs=["kept", "dropped"], scale=[False, True]),
        PointwiseELM(random_state=0),
        PairwiseELM(activation="sigmoid", n_nodes=20, random_state=0),
        PointwiseELMCV(kernel="linear"),
        PairwiseELM(kernel="rbf"),
        PairwiseELMCV(random_state=0),
        ELMRank(n_nodes=10),
        ELMRank(n_nodes=10, pairs="dropped", n_estimators=2),
        ELMRankCV(n_nodes=10, cv=3),
        ELMRankCV([0.1], [2.0, 1024.0], n_nodes=10, cv=3, pairs="dropped"),
        MPRank(),
        LSSVR(),
        LSSVR(10.0, kernel="rbf"),
        RankSVM(),
        RankSVM(loss="squared", weighting="queries", tol=1e-6),
        RankNystroem(random_state=0),
        RankNystroem(n_components=None),
        RankNystroem(kernel="tanimoto", random_state=0),
        RankRandomFourier(random_state=0),
        RankSVMCV(cv=3),
        RankSVMCV([0.1, 1.0], feature_map=[None, RandomNodes(5, random_state=0)], cv=3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
