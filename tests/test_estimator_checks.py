"""scikit-learn's own checks of estimators, none expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from pairgram import (
    PairwiseELM,
    PairwiseELMCV,
    PointwiseELM,
    PointwiseELMCV,
    RankRLS,
    RankRLSCV,
)


@parametrize_with_checks(
    [
        RankRLS(),
        RankRLS(pairs="dropped", scale=True),
        RankRLS(pairs="absdiff", weighting="queries"),
        RankRLS(pairs=None),
        RankRLSCV(),
        RankRLSCV(pairs=["kept", "dropped"], scale=[False, True]),
        PointwiseELM(random_state=0),
        PairwiseELM(activation="sigmoid", n_nodes=20, random_state=0),
        PointwiseELMCV(kernel="linear"),
        PairwiseELMCV(random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
