"""Processes that begin with the libraries loaded, which takes longer than most of what they run."""

import multiprocessing
import os
from multiprocessing import forkserver

FRESH = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
LIBRARIES = ["pandas", "dask.dataframe", "distributed", "pydantic.type_adapter", "skops.io"]
# Of the package, where they are.
OWN = ("cli.app", "datasets", "tables.dask", "solvers.pairgram", "cross.interactions")
OWN += ("comparing.comparison", "cross.recommend", "rankers.load", "rankers.rank_rls")
OWN += ("rankers.rank_svm", "rankers.elm_rank", "rankers.fit_many")
LIBRARIES += [f"pairgram.{one}" for one in OWN]


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
