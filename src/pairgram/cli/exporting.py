"""``pairgram export`` writes a model in the form of a search engine, of ONNX, SQL or Python."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pairgram._rooms import public
from pairgram._support.files import replacing, shown
from pairgram.cli import named_files
from pairgram.cli.report import notes, warn

PLUGINS = ("ltr-plugin", "elasticsearch", "opensearch")
# The engines that take an option.
ENGINES_OF = {"fields": ("solr", *PLUGINS), "shift": PLUGINS, "store": ("solr",)}


def export(given: Any) -> int:
    """Write a model for a search engine, an ONNX runtime, SQL or plain Python."""
    to, output, name, verify = given.to, given.output, given.name, given.verify
    named_files.check_output(output, given.model, given.features, verify)
    if verify is None and (named_files.is_table(given) or given.one_query):
        raise ValueError("--qid and --one-query are for a table of --verify")
    for option, engines in ENGINES_OF.items():
        if getattr(given, option) is not None and to not in engines:
            raise ValueError(f"--{option} is for --to {', '.join(engines)}")
    if given.shift is not None and verify is None:
        raise ValueError("--shift needs the scores of --verify FILE")
    to, model = "ltr-plugin" if to in PLUGINS else to, named_files.load_model(given.model)
    rows: Any = None
    ids = None
    if verify is not None and named_files.is_table(given, verify):
        rows = named_files.scan_for(given, verify, model)
        named_files.refuse_lack(given, verify, False, not rows.has_queries)
    elif verify is not None:
        options = {"zero_based": given.zero_based}
        rows, _, ids = named_files.load_letor(verify, model, given.model, **options)
    own = {"features": _names(given.features, model), "store": given.store}
    own["name"] = name if to in ("solr", "ltr-plugin", "vespa", "python") else None
    own["fields"] = None if given.fields is None else _fields(given.fields)
    with notes():
        if given.shift is not None:
            scores = rows.scores(model) if hasattr(rows, "scores") else model.predict(rows)
            own |= {"shift": given.shift, "lowest": float(scores.min())}
        own = {key: value for key, value in own.items() if value is not None}
        exported = getattr(public("export"), f"to_{to.replace('-', '_')}")(model, **own)
    files, folder = {output: exported}, os.path.dirname(output)
    if (profiled := getattr(exported, "onnx", None)) is not None:
        files[os.path.join(folder, f"{name}.onnx")] = profiled
    if definitions := getattr(exported, "definitions", None):
        listed = definitions if to == "solr" else {"featureset": {"features": definitions}}
        files[os.path.join(folder, f"{name}.features.json")] = listed
    *_, last = files
    if output == "-" and (last != "-" or isinstance(exported, bytes)):
        what = f"{last} stands beside it" if last != "-" else "its bytes are no text"
        raise ValueError(f"--to {to} needs --output FILE: {what}")
    for file in files:
        named_files.check_output(file, given.model, given.features, verify)
    for file, content in files.items():
        _write(content, file)
    if verify is None:
        return 0
    with notes():
        parity = public("export").verify(exported, model, rows, ids)
    warn(f"{verify}: {parity}")
    if to == "ltr-plugin" and parity.lowest < 0:
        warn(
            f"warning: the lowest score of {verify} is {parity.lowest:.4g}, and Elasticsearch and "
            "OpenSearch refuse scores below 0: --shift NAME adds a feature that is always 1, and "
            "makes the scores positive"
        )
    return int(not parity.passes)  # what was written is there to be looked at


def _fields(text: str) -> dict[str, str]:
    """Return the fields of columns of a text such as ``price=price_f,brand=brand_s``."""
    found = dict(re.findall(r"\s*([^=,]+?)\s*=\s*([^=,]+?)\s*(?:,|$)", text))
    if len(found) <= text.count(","):
        raise ValueError(
            f"--fields takes different columns with their fields, such as a=a_f,b=b_s; got {text!r}"
        )
    return found


def _names(features: str | None, model: Any) -> list[str] | None:
    """Return the names of the columns, or None if the model knows them."""
    width = named_files.width_of(model)
    if features is None:
        known = hasattr(model, "feature_names_in_")
        return None if known else [f"f{number}" for number in range(1, width + 1)]
    lines = Path(features).read_text(encoding="utf-8-sig").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if len(names) != width:
        raise ValueError(
            f"--features: {shown(features)} has {len(names)} names, want the {width} of the "
            "model's features, one per line"
        )
    return names


def _write(content: Any, output: str) -> None:
    if isinstance(content, bytes):
        with replacing(output) as file:
            file.write(content)
        return
    if isinstance(content, (dict, list)):
        content = json.dumps(content, ensure_ascii=False, indent=1)
    named_files.write_lines(output, [str(content).rstrip("\n")])
