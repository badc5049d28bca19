"""Cases that fail in each of the ways, to see that the runner tells."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from .runner import Case, Outcome


def prepare(folder: Path, short: bool) -> None:
    """Do nothing."""


def broken(folder: Path, seed: int) -> Case:
    """Crash, hang, end and lose."""

    def case(number: int) -> Outcome:
        if number == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if number == 2:
            time.sleep(600)
        if number == 4:
            sys.exit(7)
        if number == 5:
            return "silent loss", "of a row"
        return "refused", ""

    return case
