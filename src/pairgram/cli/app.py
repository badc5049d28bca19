"""``pairgram`` with all its commands, its help and its version."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer

import pairgram
from pairgram.cli.comparing import compare
from pairgram.cli.demo import demo
from pairgram.cli.export import export
from pairgram.cli.fitting import cv, train
from pairgram.cli.inspection import inspect
from pairgram.cli.protocol import letor
from pairgram.cli.report import Command, Commands, print_lines
from pairgram.cli.scoring import evaluate, predict

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
for command in (train, predict, evaluate, compare, cv, letor, inspect, export, demo):
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
    cv and compare take tables too.
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
