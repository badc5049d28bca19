"""The command line, ``pairgram``. A module holds a command or two; `models` is the table of models.

Imports public names, and what it shows of every room below. It needs typer and rich, the extra
``pairgram[cli]``; nothing else in this package does.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line what it lacks."""
    try:
        from pairgram.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.stderr.write("pairgram: the command line needs: pip install 'pairgram[cli]'\n")
        sys.exit(2)
    run()
