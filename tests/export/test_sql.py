"""Expressions of SQL in their dialects, with names that SQLite takes as one."""

import pytest

from pairgram import RankRLS, export, make_ranking


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, 10, 4, random_state=0)


@pytest.mark.parametrize("inputs", [None, "quantile"])
def test_names_that_differ_by_case_alone(data, inputs):
    X, y, qid = data
    model = RankRLS(inputs=inputs).fit(X, y, qid=qid)
    for names in (["id", "A", "a", "rowid"], ["c1", "c0", 'c"0', "LEAST("]):
        exported = export.to_sql(model, features=names, dialect="sqlite")
        assert export.check(exported, model, X, qid).n_reordered == 0


def test_dialects(data):
    X, y, qid = data
    linear = RankRLS().fit(X, y, qid=qid)
    quantile = RankRLS(inputs="quantile").fit(X, y, qid=qid)
    text = export.to_sql(quantile, features=list("abcd"), dialect="bigquery")
    assert "LEAST(GREATEST((`a` - " in text
    assert '"' not in text
    for dialect in ("standard", "mysql", "bigquery"):
        exported = export.to_sql(linear, features=list("abcd"), dialect=dialect)
        assert export.check(exported, linear, X, qid).n_reordered == 0
        exported = export.to_sql(quantile, features=list("abcd"), dialect=dialect)
        with pytest.raises(ValueError, match="dialect='sqlite'"):
            export.check(exported, quantile, X, qid)
    for name in ("a`b", "a\\b"):
        with pytest.raises(ValueError, match="BigQuery has no"):
            export.to_sql(linear, features=["a", "b", "c", name], dialect="bigquery")
