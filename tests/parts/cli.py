"""The parts of cli that have tests of their own, and how its commands run in tests."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest import mock

from pairgram.cli import main, report
from pairgram.cli.named_files import load_scores
from pairgram.cli.report import print_table, show, significant
from pairgram.cli.training import PROTOCOL_METRICS
from pairgram.cli.values import parse_grid

__all__ = [
    "PROTOCOL_METRICS",
    "error",
    "invoke",
    "load_scores",
    "parse_grid",
    "print_table",
    "ran",
    "report",
    "run",
    "show",
    "significant",
]


def invoke(*arguments, input=b""):
    """Run a command as a shell does; return its exit code and what it wrote."""
    given = input.encode() if isinstance(input, str) else input
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(given)), "utf-8")
    words = ["pairgram", *map(str, arguments)]
    with (
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        mock.patch.object(sys, "stdin", stdin),
        mock.patch.object(sys, "argv", words),
        mock.patch("signal.signal"),
    ):
        try:
            main()
        except SystemExit as done:
            code = done.code
    out, err = (one.detach().getvalue().decode() for one in (stdout, stderr))
    return SimpleNamespace(exit_code=code, stdout=out, stderr=err, output=out + err)


def run(*arguments, code=0):
    """Return the output of a command that must end with an exit code."""
    found = invoke(*arguments)
    assert found.exit_code == code, found.output
    return found.stderr if code else found.stdout


def ran(*arguments, **options):
    """Return the output of a command that must succeed, and what it says besides."""
    found = invoke(*arguments, **options)
    assert found.exit_code == 0, found.output
    return found.stdout, found.stderr


def error(*arguments):
    """Return the message of one line of a command that must fail."""
    found = invoke(*arguments)
    assert found.exit_code == 2 and found.stdout == "", found.output
    assert found.stderr.startswith("pairgram: error: ") and found.stderr.count("\n") == 1
    return found.stderr.removeprefix("pairgram: error: ").removesuffix("\n")
