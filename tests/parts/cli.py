"""The parts of cli that have tests of their own."""

from typer.testing import CliRunner

from pairgram.cli import report
from pairgram.cli.app import app
from pairgram.cli.fitting import PROTOCOL_METRICS
from pairgram.cli.options import load_scores, names_of, parse_grid
from pairgram.cli.report import print_table, show, show_alphas, significant

__all__ = [
    "PROTOCOL_METRICS",
    "app",
    "load_scores",
    "names_of",
    "parse_grid",
    "print_table",
    "report",
    "run",
    "show",
    "show_alphas",
    "significant",
]


def run(*arguments, code=0):
    """Return the output of a command that must end with an exit code."""
    found = CliRunner().invoke(app, [str(one) for one in arguments])
    assert found.exit_code == code, found.output
    return found.stderr if code else found.stdout
