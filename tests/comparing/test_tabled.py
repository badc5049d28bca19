"""Results that are tables: text and frames."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pairgram import RankRLSCV, compare, make_ranking
from parts.comparing import text_of

TABLE = {
    "name_of": np.array(["a & b", "<c>_%"], dtype=object),
    "value": np.array([0.5, 1e-5]),
    "count": np.array([1, 20]),
}


def test_text_has_numbers_at_the_right():
    assert text_of(TABLE).splitlines() == [
        "name_of   value  count",
        "a & b    0.5000      1",
        "<c>_%     1e-05     20",
    ]


def test_results_of_the_library_are_tables():
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    model = RankRLSCV().fit(X, y, qid=qid)
    compared = compare(y, qid, {"model": model.predict(X), "column": X[:, 0]}, ["map", "mrr"])
    assert set(compared.to_dict()) == {"n_queries", "means", "differences"}
    assert str(compared).startswith(
        f"20 queries, 95 % intervals\n{text_of(compared.means)}\n\nDiff"
    )
    assert repr(compared) == str(compared)
    best = model.to_frame().iloc[0]
    assert best["param_alpha"] == model.alpha_ and best["mean_test_score"] == model.best_score_
    assert len(model.to_frame()) == len(model.alphas_) and "params" not in model.to_frame()
    with pytest.raises(NotFittedError, match="not fitted"):
        RankRLSCV().to_frame()
