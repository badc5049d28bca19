"""Features that engines logged, in the forms in which they log them."""

import gzip
import json

import numpy as np
import pytest

from pairgram import RankRLS, read_feature_log

QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
# The same features in the forms of the engines: b lacks a price.
VALUES = {
    "q1": {"a": {"bm25": 2.5, "price": 30.0}, "b": {"bm25": 1.0}, "x": {"bm25": 0.5, "price": 1.0}},
    "q2": {"c": {"bm25": 7e-05, "price": -3.0}},
}


def solr(qid, docs):
    listed = [
        {"id": docno, "[features]": ",".join(f"{name}={value}" for name, value in own.items())}
        for docno, own in docs.items()
    ]
    return {"qid": qid, "responseHeader": {"status": 0}, "response": {"docs": listed}}


def plugin(qid, docs):
    hits = []
    for docno, own in docs.items():
        log = [{"name": name, "value": value} for name, value in own.items()]
        log += [{"name": name} for name in ("bm25", "price") if name not in own]
        hits.append({"_id": docno, "fields": {"_ltrlog": [{"main": log}]}})
    return {"qid": qid, "hits": {"total": {"value": len(hits)}, "hits": hits}}


def vespa(qid, docs):
    hits = [
        {"id": f"index:content/0/{docno}", "fields": {"documentid": docno, "matchfeatures": own}}
        for docno, own in docs.items()
    ]
    return {"qid": qid, "root": {"id": "toplevel", "children": hits}}


PLUGINS = ("ltr_plugin", "elasticsearch", "opensearch")
FORMS = {"solr": solr, "vespa": vespa, **dict.fromkeys(PLUGINS, plugin)}


@pytest.mark.parametrize("engine", FORMS)
def test_forms(engine, tmp_path):
    lines = [json.dumps(FORMS[engine](qid, docs)) for qid, docs in VALUES.items()]
    absent = 0.0 if engine == "solr" else np.nan
    expected = {
        "qid": ["q1", "q1", "q2"],
        "docno": ["a", "b", "c"],
        "position": [1, 2, 1],
        "label": [2.0, 0.0, 1.0],
        "bm25": [2.5, 1.0, 7e-05],
        "price": [30.0, absent, -3.0],
    }
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    for source in (lines, path, [FORMS[engine](*one) for one in VALUES.items()]):
        found = read_feature_log(source, engine, qrels=QRELS)
        assert list(found) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
    zero = read_feature_log(lines, engine, qrels=QRELS, unjudged="zero")
    assert zero["docno"].tolist() == ["a", "b", "x", "c"]
    assert zero["label"].tolist() == [2.0, 0.0, 0.0, 1.0] and zero["position"].tolist()[2] == 3
    # A label below 0 says that a document was not judged.
    below = {query: {"x": -2} | own for query, own in QRELS.items()}
    for unjudged, expected in (("drop", found), ("zero", zero)):
        found = read_feature_log(lines, engine, qrels=below, unjudged=unjudged)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
    bare = read_feature_log(lines, engine)
    assert "label" not in bare and len(bare["qid"]) == 4


def test_the_text_of_solr():
    """Names may hold commas and signs, and numbers are those of Java."""
    text = "a,b=1.0E10,c=d=-2.5,far=Infinity,none=NaN,last=1.0E-7"
    doc = {"id": "a", "[features]": text}
    found = read_feature_log([{"qid": 7.0, "response": {"docs": [doc]}}], "solr")
    assert list(found)[3:] == ["a,b", "c=d", "far", "none", "last"]
    values = [found[name][0] for name in list(found)[3:]]
    np.testing.assert_array_equal(values, [1e10, -2.5, np.inf, np.nan, 1e-7])
    assert found["qid"].tolist() == ["7"]
    echoed = {"responseHeader": {"params": {"qid": "x"}}, "response": {"docs": [doc]}}
    assert read_feature_log([echoed], "solr")["qid"].tolist() == ["x"]


def test_pages_of_one_query_follow_each_other():
    pages = [solr("q", {"a": {"f": 1}}), solr("r", {"a": {"f": 2}}), solr("q", {"b": {"f": 3}})]
    found = read_feature_log(pages, "solr")
    assert found["qid"].tolist() == ["q", "q", "r"] and found["position"].tolist() == [1, 2, 1]
    assert found["f"].tolist() == [1, 3, 2]


def test_positions_of_a_later_page_of_solr():
    pages = [solr("q", {"a": {"f": 1}, "b": {"f": 2}}), solr("q", {"c": {"f": 3}})]
    pages[1]["response"]["start"] = 10
    assert read_feature_log(pages, "solr")["position"].tolist() == [1, 2, 11]
    assert read_feature_log(pages[1:], "solr")["position"].tolist() == [11]


def test_ids_of_other_members():
    doc = {"sku": ["s7"], "[features]": "f=1"}
    line = {"search": "q", "response": {"docs": [doc]}}
    found = read_feature_log([line], "solr", query="search", document="sku")
    assert found["docno"].tolist() == ["s7"] and found["qid"].tolist() == ["q"]
    hit = {"id": "x", "fields": {"summaryfeatures": {"f": 1, "vespa.summaryFeatures.cached": 0}}}
    empty = {"qid": "none", "root": {"id": "toplevel", "fields": {"totalCount": 0}}}
    found = read_feature_log([empty, {"qid": "q", "root": {"children": [hit]}}], "vespa")
    assert list(found) == ["qid", "docno", "position", "f"] and found["docno"].tolist() == ["x"]


def test_clicks_are_judgements():
    rng = np.random.default_rng(0)
    lines, clicks = [], {"qid": [], "docno": [], "label": []}
    for shown in range(60):
        docs = {f"d{j}": {"bm25": rng.normal(), "price": rng.normal()} for j in range(8)}
        lines.append(vespa(shown, docs))
        for docno, own in docs.items():
            if own["bm25"] + 0.3 * rng.normal() > 0.8:
                for name, value in zip(clicks, (shown, docno, 1.0), strict=True):
                    clicks[name].append(value)
    found = read_feature_log(lines, "vespa", qrels=clicks, unjudged="zero")
    assert len(found["qid"]) == 480 and found["label"].sum() == len(clicks["qid"])
    X = np.column_stack([found["bm25"], found["price"]])
    model = RankRLS(1.0).fit(X, found["label"], qid=found["qid"])
    assert model.coef_[0] > 5 * abs(model.coef_[1])


def test_several_logs_of_a_hit_are_refused():
    logs = [{"log": [{"name": "a", "value": 1.0}]}, {"log": [{"name": "a", "value": 2.0}]}]
    for listed in (logs, [{"log": [], "other": []}]):
        line = {"qid": "q", "hits": {"hits": [{"_id": "d", "fields": {"_ltrlog": listed}}]}}
        with pytest.raises(ValueError, match="line 1: document 'd' has 2 logs"):
            read_feature_log([line], "opensearch")
