"""The parts of cli that have tests of their own."""

from functools import cache

import typer.testing
from typer.testing import CliRunner

from pairgram.cli import report
from pairgram.cli.app import app
from pairgram.cli.fitting import PROTOCOL_METRICS
from pairgram.cli.options import load_scores, names_of, parse_grid
from pairgram.cli.report import print_table, show, show_alphas, significant

__all__ = [
    "PROTOCOL_METRICS",
    "app",
    "error",
    "load_scores",
    "names_of",
    "parse_grid",
    "print_table",
    "ran",
    "report",
    "run",
    "show",
    "show_alphas",
    "significant",
]

# Typer would make all commands again for each that runs.
typer.testing._get_command = cache(typer.testing._get_command)


def run(*arguments, code=0):
    """Return the output of a command that must end with an exit code."""
    found = CliRunner().invoke(app, [str(one) for one in arguments])
    assert found.exit_code == code, found.output
    return found.stderr if code else found.stdout


def ran(*arguments, **options):
    """Return the output of a command that must succeed, and what it says besides."""
    found = CliRunner().invoke(app, [str(one) for one in arguments], **options)
    assert found.exit_code == 0, found.output
    return found.stdout, found.stderr


def error(*arguments):
    """Return the message of one line of a command that must fail."""
    found = CliRunner().invoke(app, [str(one) for one in arguments])
    assert found.exit_code == 2 and found.stdout == "", found.output
    assert found.stderr.startswith("pairgram: error: ") and found.stderr.count("\n") == 1
    return found.stderr.removeprefix("pairgram: error: ").removesuffix("\n")
