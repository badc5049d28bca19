# ruff: noqa: F401, F403
"""The names that calls of the tables see: public names, and small values to call them with."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import inf, nan

import pairgram
from pairgram import *
from pairgram import clicks, export, make_ranking

X, y, qid = make_ranking(6, 5, 3, random_state=0)
frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y, query=qid)


def put(values, place, value):
    """Return a copy with one value at a place."""
    values = np.array(values, dtype=object if isinstance(value, str) else None)
    values[place] = value
    return values


FOLDER = tempfile.TemporaryDirectory()


def file(data, name="file.txt"):
    """Return the path of a file with this text, or these bytes."""
    path = Path(FOLDER.name) / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
