"""scikit-learn's own checks of estimators, none expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from pairgram import RankRLS, RankRLSCV


@parametrize_with_checks(
    [
        RankRLS(),
        RankRLS(pairs="dropped", scale=True),
        RankRLS(pairs="absdiff", weighting="queries"),
        RankRLS(pairs=None),
        RankRLSCV(),
        RankRLSCV(pairs=["kept", "dropped"], scale=[False, True]),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
