"""The command line, ``pairgram``. `table` has its commands and options; `app` reads and runs them.

Each other module holds the functions of some commands, and is imported when one of them runs.
"""

from pairgram.cli.app import main

__all__ = ["main"]
