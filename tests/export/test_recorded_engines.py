"""What engines answered, held against what `verify` assumes that they compute.

``.ci/engines --record`` makes the files, by running the engines themselves. Those that are packages
of Python answer here.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.engines.__main__ import ENGINES, exported_to, held
from tests.engines.cases import groups

from axes import every
from parts.definitions import atoms_of
from parts.export import (
    RanklibModel,
    SolrModel,
    SqlExpression,
    VespaProfile,
    _scores,
)

FILES = sorted((Path(__file__).parents[1] / "engines" / "recorded").glob("*.jsonl"))
# What makes a model of its text again, and how far scores may be, relative to their range.
KINDS = {
    "solr": (lambda text: SolrModel(json.loads(text)), 1e-5),
    "ranklib": (RanklibModel, 1e-5),
    "vespa": (VespaProfile, 1e-5),  # verify takes columns of float32, as attributes may be
    "postgresql": (SqlExpression, 1e-12),
}


def test_engines_are_recorded():
    names = {path.stem for path in FILES}
    assert names >= {*KINDS, "solr_shop", "vespa_shop", "postgresql_shop"}
    assert {name.removesuffix("_shop") for name in names} == {*KINDS}
    assert max(path.stat().st_size for path in FILES) < 100_000


@every(path=FILES)
def test_an_engine_computes_what_is_assumed(path):
    head, *lines = map(json.loads, path.read_text().splitlines())
    for line in lines:
        try:
            as_assumed(head, line, path.stem)
        except BaseException as error:
            error.add_note(line["case"])
            raise


# Text of Vespa's, or a test for a missing value.
IF = re.compile(r"""("(?:[^"\\]|\\.)*")|if\((?:isNan\(x\[(\d+)\]\)|x\[(\d+)\] == "")""")


def in_words_of_python(found):
    text, number, of_text = found.groups()
    return text or f"where(gap[{number or of_text}]"


def as_assumed(head, line, engine):
    kind, is_shop = engine.removesuffix("_shop"), engine.endswith("_shop")
    X = np.array(head["rows"], object)
    for j, name in enumerate(head["columns"]):
        if any(isinstance(value, str) for value in X[:, j]):
            if name not in line["texts"]:
                X[:, j] = 0.0  # text that the model does not read
            elif kind == "vespa":  # which has no missing text
                X[X[:, j] == "", j] = np.nan
    X = X if line["texts"] else X.astype(float)
    if line["fills"] is not None and kind.startswith("solr"):  # defaults of the features
        X = np.where(np.isnan(X), line["fills"], X)
    make, tolerance = KINDS[kind]
    exported = make(line["exported"]).named(tuple(line["names"]), tuple(line["texts"]))
    exported.atoms = atoms_of(line["names"], line["definitions"])
    if kind == "ranklib":
        exported.atoms = {str(k): atom for k, atom in enumerate(exported.atoms.values(), 1)}
    if line["template"]:
        exported.template = IF.sub(in_words_of_python, line["template"])
    assumed = _scores(exported, X)
    found = np.array(line["scores"])
    if kind == "postgresql" and not is_shop and line["fills"] is None:  # NULL has no score
        assert np.isfinite(found[~np.isnan(X).any(axis=1)]).all()
    else:
        assert np.isfinite(found).all()
    # Far rows have far larger scores, whose last digits are larger.
    limits = {"rtol": tolerance, "atol": tolerance * np.ptp(found[:12])}
    np.testing.assert_allclose(found, assumed, **limits)


QUICK = [name for name, one in ENGINES.items() if one.quick == "run"]


@pytest.mark.parametrize(("group", "least"), [("", 18), ("shop", 4)])
@pytest.mark.parametrize("name", QUICK)
def test_an_engine_of_python_gives_the_scores_of_predict(name, group, least):
    """The engines take every second case in turn; `.ci/engines` gives each of them all."""
    engine = ENGINES[name]
    exported = exported_to(engine, group, QUICK.index(name) % 2, 2)
    assert len(exported) >= least
    answers = engine.run(exported, *groups()[group])
    wrong = {str(case): held(engine, case, one, answers).wrong for case, one in exported.items()}
    assert not {case: found for case, found in wrong.items() if found}
