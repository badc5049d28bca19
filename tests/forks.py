"""Processes that begin with the libraries loaded, which takes longer than most of what they run."""

import multiprocessing
import os
from multiprocessing import forkserver

FRESH = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
LIBRARIES = ["pandas", "dask.dataframe", "distributed", "pairgram.cli.app", "pairgram.datasets"]
LIBRARIES += ["pydantic.type_adapter", "skops.io"]
LIBRARIES += ["pairgram.tables.dask", "pairgram.solvers.pairgram"]
LIBRARIES += ["pairgram.cross.interactions", "pairgram.comparing.comparison"]
ROOMS = ("load", "rank_rls", "rank_svm", "elm_rank", "fit_many", "recommend")
LIBRARIES += [f"pairgram.rankers.{one}" for one in ROOMS]


def start(code, *arguments):
    """Begin a program, with arguments of the command line."""
    if FRESH.get_start_method() == "forkserver":
        FRESH.set_forkserver_preload(LIBRARIES)
        forkserver.ensure_running()  # before distributed names other libraries
    code = f"import sys\nsys.argv[1:] = {[*map(str, arguments)]!r}\n{code}"
    process = FRESH.Process(target=exec, args=(code, {"__name__": "__main__"}))
    process.start()
    return process


def in_folder(folder):
    """Return the beginning of a program that prints to files of a folder."""
    return (
        f"import os, sys\nos.chdir({str(folder)!r})\n"
        'sys.stdout, sys.stderr = open("printed", "w", buffering=1), open("said", "w")\n'
    )
