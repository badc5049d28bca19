"""The parts of cli that have tests of their own."""

from pairgram.cli import report
from pairgram.cli.app import app
from pairgram.cli.fitting import PROTOCOL_METRICS
from pairgram.cli.options import load_scores, names_of, parse_grid, parse_range
from pairgram.cli.report import print_table, show, show_alphas, significant

__all__ = [
    "PROTOCOL_METRICS",
    "app",
    "load_scores",
    "names_of",
    "parse_grid",
    "parse_range",
    "print_table",
    "report",
    "show",
    "show_alphas",
    "significant",
]
