"""`check` runs no foreign text, and says the truth about scores that are wrong or missing."""

import numpy as np
import pytest

from pairgram import RankRLS, export, make_ranking


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, 10, 4, random_state=0)


def test_names_of_a_model_run_no_code(data, tmp_path):
    X, y, qid = data
    target = tmp_path / "made"
    model = RankRLS().fit(X, y, qid=qid)
    call = (
        "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']"
        f"[0].__init__.__globals__['system']('touch {target}')"
    )
    for names in (["a", "b", "c", call], ["a", "b", "c", "x[0]"]):
        parity = export.check(export.to_vespa(model, "m", features=names), model, X)
        assert parity.n_reordered == 0
        assert not target.exists()
    for broken in (f"{call}\nrest", "a\x00", "a\u2028b"):
        with pytest.raises(ValueError, match="line breaks"):
            export.to_vespa(model, "m", features=["a", "b", "c", broken])
    profile = export.to_vespa(model, "m", features=list("abcd"))
    profile.template = call
    with pytest.raises(ValueError, match="changed"):
        export.check(profile, model, X)


@pytest.mark.parametrize("inputs", [None, "quantile"])
def test_names_that_look_like_parts_of_an_expression(data, inputs):
    X, y, qid = data
    model = RankRLS(inputs=inputs).fit(X, y, qid=qid)
    for names in (["a", "e", "min", "1"], ["max", "0", "x", "."]):
        parity = export.check(export.to_vespa(model, "m", features=names), model, X, qid)
        assert parity.max_error <= parity.bound
        assert parity.n_reordered == 0


def test_a_keyword_is_no_name_of_a_function(data):
    X, y, qid = data
    with pytest.raises(ValueError, match="name of Python"):
        export.to_python(RankRLS().fit(X, y, qid=qid), features=list("abcd"), name="class")
