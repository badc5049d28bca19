"""The QSAR data sets of Chen et al. 2014, §4.3, and the measures of its Table 4."""

from __future__ import annotations

import csv
import lzma
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pairgram

__all__ = ["DATA_SETS", "MEASURES", "Qsar", "load_qsar", "measured"]

DATA_SETS = {"DHFR": "dhfr_25d_desc.txt", "COX2": "cox2_25d_desc.txt"}
# The paper's names and pairgram's. NDCG has the gain 2^y − 1 of the real-valued activity.
MEASURES = {
    "ranking error": "ranking_error",
    "correlation": "pearson",
    "Kendall's τ": "kendall",
    "Spearman's ρ": "spearman",
    "NDCG": "ndcg",
}


class Qsar(NamedTuple):
    """Descriptors scaled to [0, 1] over all rows, (n_rows, n_descriptors), and activities."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_qsar(folder: Path, name: str) -> Qsar:
    """Read a table of Sutherland, O'Brien and Weaver 2004, plain or packed by xz.

    Tab-separated: a compound's name, which the head does not name, then ``Activity`` (pIC50),
    ``set`` (1 training, 2 test, others left out), and the descriptors after ``Order``.
    """
    path = folder / "qsar" / DATA_SETS[name]
    packed = path.with_name(path.name + ".xz")
    text = lzma.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    head, *lines = csv.reader(text.decode().splitlines(), delimiter="\t")
    part, first = head.index("set"), head.index("Order") + 1
    lines = [line for line in lines if line and line[part] in ("1", "2")]
    X = np.array([line[first:] for line in lines], dtype=np.float64)
    y = np.array([line[head.index("Activity")] for line in lines], dtype=np.float64)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    X = (X - low) / np.where(span > 0, span, 1.0)
    train = np.array([line[part] == "1" for line in lines])
    return Qsar(X[train], y[train], X[~train], y[~train])


def measured(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the `MEASURES` of scores, (5,)."""
    return np.array(list(pairgram.evaluate(list(MEASURES.values()), y, scores).values()))
