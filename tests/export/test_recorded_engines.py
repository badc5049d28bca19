"""What engines answered, held against what `verify` assumes that they compute.

``.ci/engines --record`` makes the files, by running the engines themselves.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from parts.data import Queries
from parts.export import RanklibModel, SolrModel, _scores

FILES = sorted((Path(__file__).parents[1] / "engines" / "recorded").glob("*.jsonl"))


def entries():
    for path in FILES:
        head, *lines = map(json.loads, path.read_text().splitlines())
        for line in lines:
            yield pytest.param(head, line, path.stem, id=f"{path.stem}: {line['case']}")


def test_engines_are_recorded():
    assert {path.stem for path in FILES} >= {"solr", "solr_normalizers", "ranklib", "solr_shop"}


@pytest.mark.parametrize(("head", "line", "engine"), [*entries()])
def test_an_engine_computes_what_is_assumed(head, line, engine):
    X = np.array(head["rows"], object)
    for j, name in enumerate(head["columns"]):
        if isinstance(X[0, j], str) and name not in line["texts"]:
            X[:, j] = 0.0  # text that the model does not read
    X = X if line["texts"] else X.astype(float)
    if line["fills"] is not None and engine != "ranklib":  # defaults of the features
        X = np.where(np.isnan(X), line["fills"], X)
    names = tuple(line["names"])
    text = line["exported"]
    exported = RanklibModel(text) if engine == "ranklib" else SolrModel(json.loads(text))
    exported.definitions = line["definitions"]
    queries = Queries.make(len(X), qid=np.array(head["queries"]))
    assumed = _scores(exported.named(names, tuple(line["texts"])), X, queries)
    found = np.array(line["scores"])
    assert np.isfinite(found).all()
    # Far rows have far larger scores, whose last digits in float32 are larger.
    np.testing.assert_allclose(found, assumed, rtol=1e-5, atol=1e-5 * np.ptp(found[:12]))
