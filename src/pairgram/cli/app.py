"""``pairgram`` with all its commands, its help and its version, and the command demo."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

import pairgram
from pairgram._rooms import ROOMS
from pairgram.cli.export import export
from pairgram.cli.fitting import letor, train
from pairgram.cli.inspection import inspect
from pairgram.cli.recommend import recommend
from pairgram.cli.report import Command, Commands, print_lines, print_table
from pairgram.cli.scoring import compare, evaluate, fuse, predict

METRICS = ("ndcg@10", "map", "pairwise_accuracy")
N_TRAIN = 60
#: 60 training queries and 200 test queries. Each query has its own level of relevance.
DATA: dict[str, Any] = {
    "n_queries": N_TRAIN + 200,
    "n_documents": 30,
    "n_features": 50,
    "noise": 0.5,
    "query_effect": 1.0,
}


def run_demo(seed: int) -> list[tuple[Any, ...]]:
    """Return scores, choices and times of pointwise RLS and RankRLS.

    Both models choose alpha by leave-query-out. The pointwise model gets centred data, which acts
    like an intercept. Without it the comparison would not be fair.
    """
    X, y, qid = pairgram.make_ranking(**DATA, random_state=seed)
    train = qid < N_TRAIN
    test = ~train
    X_train, y_train = X[train], y[train]
    models = (
        ("RLS, pointwise", [None], X_train - X_train.mean(axis=0), y_train - y_train.mean()),
        ("RankRLS, pairwise", ["with_ties", "without_ties"], X_train, y_train),
    )
    # Loads libraries, so that no time has that of loading them.
    pairgram.RankRLSCV().fit(X_train[:120], y_train[:120], qid=qid[:120])
    rows = []
    for name, pairs, features, labels in models:
        start = time.perf_counter()
        model = pairgram.RankRLSCV(pairs=pairs, scoring="pairwise_accuracy")  # type: ignore[arg-type]
        model.fit(features, labels, qid=qid[train])
        seconds = time.perf_counter() - start
        values = pairgram.evaluate(METRICS, y[test], model.predict(X[test]), qid[test])
        rows.append((name, *values.values(), model.alpha_, seconds))
    return rows


def demo(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the data.")] = 0,
) -> None:
    """Learn to rank synthetic data; nothing is downloaded.

    Each query has its own level of relevance and of features, as real queries do. This level says
    nothing about the order within the query. Pointwise least squares fits it nevertheless, and
    loses accuracy. Pairs within a query do not see it. Both models choose their ridge by exact
    leave-query-out on the training queries, and are tested on other queries.
    """
    size = f"{N_TRAIN} queries to train on, {DATA['n_queries'] - N_TRAIN} to test on"
    print_table(
        ("model", *METRICS, "alpha", "seconds"),
        run_demo(seed),
        title=f"{size}, {DATA['n_documents']} documents of {DATA['n_features']} features each",
    )
    print_lines(["metrics are those of the test queries, seconds those of fitting and choosing"])


# The signals that ask a process to end. Windows has no SIGHUP.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

app = typer.Typer(
    cls=Commands,
    name="pairgram",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
commands = (
    train,
    predict,
    evaluate,
    compare,
    fuse,
    recommend,
    letor,
    inspect,
    export,
    demo,
)
OF_ROOMS = {name for room in ROOMS.values() for name in room.commands}
for command in commands:
    if command in (train, predict, evaluate, letor, inspect, demo) or command.__name__ in OF_ROOMS:
        app.command(cls=Command)(command)


def run() -> None:
    """Run the command line."""
    _open_closed_streams()
    _clean_up_on_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a name that it cannot encode must not be an error
            stream.reconfigure(errors="replace")
    app(prog_name="pairgram")


def _open_closed_streams() -> None:
    """Replace standard streams that are closed, which Python has as None.

    Notes are then lost. Results, and reading, are an error of the stream: "Bad file descriptor".
    """
    for name, flags, mode in (
        ("stdin", os.O_WRONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _clean_up_on_signals() -> None:
    """Let signals that end the process raise, so that no temporary files are left behind."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    for one in ENDING:  # a second one, of either kind, must not end the cleaning up
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_lines([f"pairgram {pairgram.__version__}"])
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Learning to rank from one small matrix: pairwise least squares on LETOR files.

    A LETOR (SVMlight) file has one line per document, "label qid:ID index:value ... # comment". It
    may be compressed by gzip, xz or bzip2, and "-" stands for standard input. An ID is a number or
    a text of at most 255 bytes without blanks, without "#", and without ":" after a digit. train,
    predict and evaluate also take tables that may be larger than memory, such as Parquet files, and
    compare takes tables too.
    Results go to standard output, everything else to standard error. An error is one line, and the
    exit code is then 2.

    \b
    Start with:
      pairgram demo
      pairgram train train.txt --output model.safetensors
      pairgram predict model.safetensors test.txt --output scores.txt
      pairgram evaluate test.txt --scores scores.txt
    """
    if context.invoked_subcommand is None:
        print_lines([context.get_help()])
