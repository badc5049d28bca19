"""The command line, ``pairgram``. A module holds one or two commands; `models` lists the models.

It needs typer, the extra ``pairgram[cli]``. Nothing else in this package needs it.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line which packages are missing."""
    try:
        from pairgram.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "click"):
            raise
        sys.stderr.write("pairgram: the command line needs: pip install 'pairgram[cli]'\n")
        sys.exit(2)
    run()
