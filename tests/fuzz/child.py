"""A child process of the runner: ``python -m fuzz.child NAME FOLDER SEED BEGIN END``."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from .campaigns import BROKEN, CAMPAIGNS, TOGETHER
from .runner import work

MORE_MEMORY = 2 << 30  # bytes that a case may ask for beyond what the process has


def _limit_memory() -> None:
    """Make an allocation out of proportion an error, except under sanitizers, which reserve all."""
    if "asan" in os.environ.get("LD_PRELOAD", "") or not sys.platform.startswith("linux"):
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    name, folder, seed, begin, end = sys.argv[1:]
    warnings.simplefilter("ignore")
    _limit_memory()
    known = {one.name: one for one in (*CAMPAIGNS.values(), BROKEN, TOGETHER)}
    work(known[name], Path(folder), int(seed), int(begin), int(end))
