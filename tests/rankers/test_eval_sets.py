"""`fit` takes a validation set by the arguments of LightGBM, XGBoost and PyTerrier."""

import numpy as np
import pytest

from axes import every
from pairgram import AutoRanker, ELMRankCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV, make_ranking

X, Y, QID = make_ranking(30, (3, 9), 4, random_state=0)
TRAIN, VALID = QID < 20, QID >= 20
ROWS = (X[TRAIN], Y[TRAIN])
SIZES = np.bincount(QID[TRAIN])
HELD = (X[VALID], Y[VALID])
HELD_SIZES = np.bincount(QID[VALID])[20:]

SEARCHES = [
    RankRLSCV(),
    RankSVMCV(Cs=[0.01, 0.1]),
    ELMRankCV(n_nodes=10, n_estimators=2, random_state=0),
    AutoRanker(time_budget=0.2, random_state=0),
]


@every(
    named=[
        {"eval_set": [HELD], "eval_group": [HELD_SIZES]},
        {"eval_set": HELD, "eval_group": HELD_SIZES},
        {"eval_set": [HELD], "eval_group": [HELD_SIZES.tolist()]},
        {"eval_set": [HELD], "eval_qid": [QID[VALID]]},
        {"eval_set": [HELD], "eval_qid": QID[VALID].tolist()},
    ],
    search=SEARCHES[:3],
)
def test_other_spellings_of_validation(search, named):
    search.fit(*ROWS, group=SIZES, validation=(*HELD, QID[VALID]))
    expected = search.coef_
    search.fit(*ROWS, group=SIZES, **named)
    np.testing.assert_array_equal(search.coef_, expected)


def test_the_automatic_ranker_takes_them():
    search = SEARCHES[3]
    search.fit(*ROWS, group=SIZES, eval_set=[HELD], eval_group=[HELD_SIZES])
    assert search.predict(X).shape == Y.shape


def test_rows_without_queries():
    search = RankRLSCV(scope="global")
    expected = search.fit(*ROWS, validation=HELD).coef_
    np.testing.assert_array_equal(search.fit(*ROWS, eval_set=[HELD]).coef_, expected)


@pytest.mark.parametrize("model", [RankRLS(), RankSVM()])
def test_models_without_settings_to_choose_warn_once(model):
    with pytest.warns(UserWarning, match=r"ignores eval_set and eval_group") as caught:
        model.fit(*ROWS, group=SIZES, eval_set=[HELD], eval_group=[HELD_SIZES])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    expected = type(model)().fit(*ROWS, group=SIZES).coef_
    np.testing.assert_array_equal(model.coef_, expected)
    model.fit(*ROWS, group=SIZES, eval_set=None, eval_group=None, eval_qid=None)
