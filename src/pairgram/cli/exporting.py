"""``pairgram export`` writes a model in the form of a search engine, of ONNX, SQL or Python."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pairgram._rooms import public
from pairgram._support.files import replacing, shown
from pairgram.cli import named_files
from pairgram.cli.report import notes, warn

PLUGINS = ("ltr-plugin", "elasticsearch", "opensearch")
NAMED = (*PLUGINS, "solr", "vespa", "python")


def export(given: Any) -> int:
    """Write a model for a search engine, an ONNX runtime, SQL or plain Python."""
    to, output, verify = given.to, given.output, given.verify
    named_files.check_output(output, given.model, given.features, verify)
    if verify is None and (named_files.is_table(given) or given.one_query):
        raise ValueError("--qid and --one-query are for a table of --verify")
    model = named_files.load_model(given.model)
    rows: Any = None
    ids = None
    if verify is not None and named_files.is_table(given, verify):
        rows = named_files.scan_for(given, verify, model)
        named_files.refuse_lack(given, verify, False, not rows.has_queries)
    elif verify is not None:
        options = {"zero_based": given.zero_based}
        rows, _, ids = named_files.load_letor(verify, model, given.model, **options)
    own = {"name": given.name} if to in NAMED else {}
    with notes():
        function = getattr(public("export"), f"to_{to.replace('-', '_')}")
        exported = function(model, features=_names(given.features, model), **own)
    files, beside = {output: exported}, os.path.join(os.path.dirname(output), given.name)
    if (profiled := getattr(exported, "onnx", None)) is not None:
        files[f"{beside}.onnx"] = profiled
    if definitions := getattr(exported, "definitions", None):
        listed = definitions if to == "solr" else {"featureset": {"features": definitions}}
        files[f"{beside}.features.json"] = listed
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
    if to in PLUGINS and parity.lowest < 0:
        warn(
            f"warning: the lowest score of {verify} is {parity.lowest:.4g}, and Elasticsearch and "
            "OpenSearch refuse scores below 0: shift= and lowest= of export.to_ltr_plugin in "
            "Python make the scores positive"
        )
    return int(not parity.passes)  # what was written is there to be looked at


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
