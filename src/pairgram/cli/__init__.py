"""The command line, ``pairgram``: `table_of_commands` has its options, and `app` runs what is read.

Each other module holds the functions of some commands, and is imported when one of them runs.
"""

from pairgram.cli.app import main

__all__ = ["main"]
