"""Run exported models in their engines, and hold the scores against those of the models."""

import argparse
import importlib
import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from tests.engines import engines
from tests.engines.cases import NAMES, cases, groups, rows, wares
from tests.engines.journey import journey

from pairgram import export

verify = importlib.import_module("pairgram.export.verify")  # whose function has its name
RECORDED = Path(__file__).parent / "recorded"
STORED = 95_000  # bytes of a file; the longest models are run, and not recorded


@dataclass(frozen=True)
class Engine:
    """What makes a model for an engine, and what runs it.

    `gaps` is what a missing value counts as: "null", so that rows with one are compared only if the
    model fills them, "zero", or "default", which is 0 or what the model filled, and none of the
    categories.
    """

    export: Callable[[Any], Any]
    run: Callable[..., engines.Answers]
    gaps: str = "zero"
    wide: bool = False  # whether the engine computes in float64
    quick: str = "recorded"  # how the quick tests know its answers: they may also have it "run"
    empty_is_missing: bool = False  # whether a missing text is an empty one


def _names(case):
    return None if case.sells else NAMES[: case.model.n_features_in_]


def _solr(case):
    return export.to_solr(case.model, case.name, store=case.name, features=_names(case))


def _sql(case, dialect):
    return export.to_sql(case.model, features=_names(case), dialect=dialect)


def _vespa(case, onnx=False):
    profile = export.to_vespa(case.model, name=case.name, features=_names(case))
    if (profile.onnx is not None) != onnx:
        raise ValueError("the other of the two engines takes it")
    return profile


ENGINES = {
    "solr": Engine(_solr, engines.solr, gaps="default"),
    "ranklib": Engine(lambda c: export.to_ranklib(c.model, features=_names(c)), engines.ranklib),
    "vespa": Engine(_vespa, engines.vespa, wide=True, empty_is_missing=True),
    "vespa, onnx": Engine(
        lambda c: _vespa(c, onnx=True), engines.vespa, quick="no", empty_is_missing=True
    ),
    "onnx": Engine(
        lambda c: export.to_onnx(c.model, features=_names(c)),
        engines.of_onnxruntime,
        gaps="null",
        quick="run",
        empty_is_missing=True,
    ),
    "sqlite": Engine(
        lambda c: _sql(c, "sqlite"), engines.sqlite, gaps="null", wide=True, quick="run"
    ),
    "duckdb": Engine(
        lambda c: _sql(c, "standard"), engines.duckdb, gaps="null", wide=True, quick="run"
    ),
    "postgresql": Engine(lambda c: _sql(c, "standard"), engines.postgresql, gaps="null", wide=True),
}


@dataclass(frozen=True)
class Found:
    """How the scores of an engine differ from those of a model."""

    error: float  # the largest, relative to the range of the scores of a query
    reordered: int  # queries
    wrong: str = ""  # what may not be, in words

    def __str__(self):
        return f"{self.error:.0e}" + f", {self.reordered} reordered" * bool(self.reordered)


def held(engine, case, exported, answers):
    """Hold the scores and the order of an engine against `predict`."""
    X, qid = wares() if case.sells else rows()
    theirs = np.array(answers.scores[case.name])
    place = np.arange(len(X))
    if case.sells:
        if engine.empty_is_missing:
            X = X.assign(brand=X["brand"].replace("", np.nan))
    elif case.fills and engine.gaps != "zero":
        X = np.where(np.isnan(X), case.fill_values, X)
    elif engine.gaps != "null":
        kept = [*case.categories] if engine.gaps == "default" else []
        gaps, X = X[:, kept], np.nan_to_num(X)
        X[:, kept] = gaps
    else:
        place = np.flatnonzero(~np.isnan(X).any(axis=1))
    X, qid, theirs = (X if case.sells else X[place]), qid[place], theirs[place]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = case.model.predict(X)
        given = theirs if engine.wide else theirs.astype(np.float32)
        with mock.patch.object(verify, "_scores", return_value=given):  # which takes long
            bound = export.verify(exported, case.model, X, qid).bound
    if engine.wide:
        bound *= 2.0**-26
    if not np.isfinite(theirs).all():
        return Found(np.inf, 0, f"{(~np.isfinite(theirs)).sum()} rows have no score")
    difference = np.abs(theirs - own - np.median(theirs - own))
    ratios, reordered = [0.0], []
    orders = answers.orders.get(case.name, {})
    for query in dict.fromkeys(qid.tolist()):
        members = np.flatnonzero(qid == query)
        order = members[np.argsort(-theirs[members], kind="stable")]
        if query in orders:
            order = np.array(orders[query])
            if sorted(order.tolist()) != members.tolist():
                return Found(np.inf, 0, f"query {query!r} has other rows")
        if np.ptp(own[members]) > bound:
            ratios.append(difference[members].max() / np.ptp(own[members]))
        lower = np.minimum.accumulate(own[order])
        if (own[order] > lower + 2 * bound).any():
            reordered.append(query)
    wrong = f"an error of {difference.max():.2g}, and {bound:.2g} may be"
    if reordered:
        wrong = f"the order of {', '.join(reordered)} differs"
    elif difference.max() <= bound:
        wrong = ""
    return Found(max(ratios), len(reordered), wrong)


def exported_to(engine, group, begin=0, step=1):
    """Return the exported models of an engine, without what it refuses, of a group of cases.

    `begin` and `step` choose some of the cases.
    """
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases()[begin::step]:
            if case.group != group:
                continue
            try:
                found[case] = engine.export(case)
            except ValueError:
                continue
    return found


def record(name, exported, answers, rows, qid):
    """Write what an engine answered to a file, a case on a line."""
    head = {"engine": answers.version, "columns": rows.columns.tolist()}
    lines = [head | {"rows": rows.to_numpy().tolist(), "queries": qid.tolist()}]
    for case, one in exported.items():
        text = one if isinstance(one, str) else json.dumps(one, separators=(",", ":"))
        entry = {"case": str(case), "names": one.feature_names, "exported": text}
        entry["template"] = getattr(one, "template", "")
        entry["texts"] = one.text_names
        entry["definitions"] = getattr(one, "definitions", [])
        entry["fills"] = case.fill_values.tolist() if case.fills else None
        lines.append(entry | {"scores": answers.scores[case.name]})
    lines = [json.dumps(line) for line in lines]
    shortest = np.argsort([0, *map(len, lines[1:])], kind="stable")
    kept = shortest[np.cumsum([len(lines[at]) for at in shortest]) <= STORED]
    RECORDED.mkdir(exist_ok=True)
    file = RECORDED / f"{re.sub('[, ]+', '_', name)}.jsonl"
    file.write_text("".join(lines[at] + "\n" for at in sorted(kept.tolist())))


def main():
    """Run the engines, print what was found, and return whether nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("--engines", nargs="+", choices=[*ENGINES], default=[*ENGINES])
    parser.add_argument("--record", action="store_true", help="write the answers to files")
    given = parser.parse_args()
    table, n_wrong = {}, 0
    for name, group in product(given.engines, groups()):
        engine, start = ENGINES[name], time.perf_counter()
        exported = exported_to(engine, group)
        if not exported:
            continue
        try:
            answers = engine.run(exported, *groups()[group])
        except engines.Unavailable as reason:
            print(f"{name}: skipped, because {reason}")
            continue
        shown = f"{name}, {group}" if group else name
        print(
            f"{shown}: {answers.version}, started in {answers.seconds:.1f} s, "
            f"{answers.mebibytes:.0f} MiB, {len(exported)} models in "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
        for case, one in exported.items():
            found = table[str(case), name] = held(engine, case, one, answers)
            if found.wrong:
                n_wrong += 1
                print(f"  wrong: {case}: {found.wrong}")
        if given.record and engine.quick == "recorded":
            file = f"{name} shop" if group == "shop" else name
            record(file, exported, answers, *groups()[group])
    if "solr" in {name for _, name in table}:
        told, wrong = journey()
        n_wrong += len(wrong)
        lines = [*told, *(f"wrong: {one}" for one in wrong)]
        print("from Solr's log to a model in Solr:", *lines, sep="\n  ")
    ran = list(dict.fromkeys(name for _, name in table))
    print("", f"| model, inputs | {' | '.join(ran)} |", "|---" * (1 + len(ran)) + "|", sep="\n")
    for case in map(str, cases()):
        if any((case, name) in table for name in ran):
            print(f"| {case} | {' | '.join(str(table.get((case, n), '')) for n in ran)} |")
    print(f"{len(table)} models in engines, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
