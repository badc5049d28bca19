"""``pairgram export`` writes a model in the form of a search engine, of ONNX, SQL or Python."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairgram
from pairgram._rooms import public
from pairgram._support.files import replacing, shown
from pairgram._support.parameters import EngineName, check_text, words
from pairgram.cli import options as opt
from pairgram.cli.report import print_lines, warn
from pairgram.cli.tables import Columns, with_columns

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator

ENGINES = [name.replace("_", "-") for name in words(EngineName)]


@with_columns("qid", "one_query")
def export(
    model: opt.ModelFile,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar=f"<{'|'.join(ENGINES)}>",
            help="The engine or language. elasticsearch and opensearch stand for ltr-plugin, their "
            "learning-to-rank plugin.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File to write to; - prints it.")
    ] = Path("-"),
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the model, rank profile or function.")
    ] = "model",
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Names of the columns, one per line, in the order of the features. "
            "[default: those of the model]",
            show_default=False,
        ),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="A=F,...",
            help="The fields of the index that hold the values of columns, for --to solr and "
            "ltr-plugin. Definitions of features with these values are written too.",
        ),
    ] = None,
    store: Annotated[str | None, typer.Option(metavar="NAME", help="Solr's feature store.")] = None,
    shift: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A feature that is always 1, whose weight makes the scores of --verify positive "
            "(ltr-plugin).",
        ),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="LETOR file or table to score as the engine would. Prints how the scores differ "
            "from the model's. The exit code is 1 if the order changed in a query. For ltr-plugin, "
            "warns of scores below 0 too, which the engine refuses.",
        ),
    ] = None,
    *,
    columns: Columns,
) -> None:
    """Write a model for a search engine, an ONNX runtime, SQL or plain Python.

    Scales and whitening become part of the weights. If an engine cannot express a model, the error
    names an alternative. For Vespa, a model that cannot be an expression needs an ONNX file, which
    is written beside the profile as NAME.onnx. For Solr and ltr-plugin, features that the engine
    computes from fields, such as categories, are written beside the model as NAME.features.json.

    \b
    Examples:
      pairgram export model.safetensors --to solr --name m1 --store s1 --output m1.json
      pairgram export model.safetensors --to onnx --verify test.txt --output m1.onnx
      pairgram export model.safetensors --to sql --features names.txt
    """
    check_text("--to", to, ENGINES)
    if to in ("elasticsearch", "opensearch"):
        to = "ltr-plugin"
    read = None if verify is None else Path(verify)
    opt.check_output(output, model, features, read)
    if verify is None and columns.make_table():
        raise ValueError("--qid and --one-query are for a table of --verify")
    for option, value, engines in (
        ("--fields", fields, ("solr", "ltr-plugin", "elasticsearch", "opensearch")),
        ("--shift", shift, ("ltr-plugin", "elasticsearch", "opensearch")),
        ("--store", store, ("solr",)),
    ):
        if value is not None and to not in engines:
            raise ValueError(f"{option} is for --to {', '.join(engines)}")
    if shift is not None and verify is None:
        raise ValueError("--shift needs the scores of --verify FILE")
    ranker = pairgram.load_model(model)
    names = _names(features, ranker)
    own: dict[str, Any] = {"features": names}
    given: tuple[Any, Any] = (None, None)
    if verify is not None:
        given = _rows_of(verify, columns, ranker)
    rows, ids = given
    if store is not None:
        own["store"] = store
    if fields is not None:
        own["fields"] = _fields(fields)
    if shift is not None:
        with _names_are_known():
            own |= {"shift": shift, "lowest": _lowest_score(ranker, rows)}
    function = getattr(public("export"), f"to_{to.replace('-', '_')}")
    if to in ("solr", "ltr-plugin", "vespa", "python"):
        own["name"] = name
    with opt.warnings_as_notes():
        exported = function(ranker, **own)
    beside: dict[str, Any] = {}
    if getattr(exported, "onnx", None) is not None:
        beside[f"{name}.onnx"] = exported.onnx
    if definitions := getattr(exported, "definitions", None):
        listed = definitions if to == "solr" else {"featureset": {"features": definitions}}
        beside[f"{name}.features.json"] = listed
    if beside and str(output) == "-":
        raise ValueError(f"--to {to} needs --output FILE: {next(iter(beside))} stands beside it")
    for file in beside:
        opt.check_output(output.with_name(file), output, model, features, read)
    _write(exported, output)
    for file, content in beside.items():
        _write(content, output.with_name(file))
    if verify is not None:
        with _names_are_known():
            parity = public("export").verify(exported, ranker, rows, ids)
        warn(f"{verify}: {parity}")
        if to == "ltr-plugin" and parity.lowest < 0:
            warn(
                f"warning: the lowest score of {verify} is {parity.lowest:.4g}, and Elasticsearch "
                "and OpenSearch refuse scores below 0: --shift NAME adds a feature that is always "
                "1, and makes the scores positive"
            )
        if not parity.passes:  # what was written is there to be looked at
            raise typer.Exit(1)


@contextmanager
def _names_are_known() -> Iterator[None]:
    """Within this context, scikit-learn does not warn that rows of a file have no names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def _rows_of(file: str, columns: Columns, ranker: BaseEstimator) -> tuple[Any, Any]:
    """Return the rows of a LETOR file and their query ids, or a table, which has them itself."""
    if not columns.make_table(file):
        data = opt.load_data(Path(file), n_features=opt.width_of(ranker))
        return data.X, data.qid
    table = columns.scan(file, opt.columns_of(ranker))
    columns.require(file, table, not columns.one_query, needs_labels=False)
    return table, None


def _fields(text: str) -> dict[str, str]:
    """Return the fields of columns of a text such as ``price=price_f,brand=brand_s``."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    found = {name.strip(): field.strip() for name, _, field in pairs}
    if len(found) < len(pairs) or "" in (*found, *found.values()):
        raise ValueError(
            f"--fields takes different columns with their fields, such as a=a_f,b=b_s; got {text!r}"
        )
    return found


def _lowest_score(ranker: BaseEstimator, rows: Any) -> float:
    from pairgram.data.streams import as_stream

    table = as_stream(rows)
    scores = ranker.predict(rows) if table is None else table.scores(ranker)
    return float(scores.min())


def _names(features: Path | None, ranker: BaseEstimator) -> list[str] | None:
    if features is None:
        steps = getattr(ranker, "steps", None)
        known = hasattr(steps[0][1] if steps else ranker, "feature_names_in_")
        if known:
            return None
        return [f"f{number}" for number in range(1, opt.width_of(ranker) + 1)]
    lines = features.read_text(encoding="utf-8-sig").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if len(names) != (width := opt.width_of(ranker)):
        raise ValueError(
            f"--features: {shown(features)} has {len(names)} names, want the {width} of the "
            "model's features, one per line"
        )
    return names


def _write(exported: object, output: Path) -> None:
    if isinstance(exported, bytes):
        if str(output) == "-":
            raise ValueError("--to onnx needs --output FILE: its bytes are no text")
        content = bytes(exported)
    else:
        text = str(exported)
        if isinstance(exported, (dict, list)):
            text = json.dumps(exported, ensure_ascii=False, indent=1)
        if str(output) == "-":
            print_lines([text])
            return
        content = (text.rstrip("\n") + "\n").encode()
    with replacing(output) as file:
        file.write(content)
