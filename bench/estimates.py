"""How long fits take, beside what they announce.

Each fit runs once with a limit of 0 s, so that it says how long it expects to take, and is then
timed. The rates in `pairgram._support.rates` are those of two cores that do nothing else: the
shortest of several times counts, as other processes only add to it.

    python bench/estimates.py [--repeat N] [--long]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import machine_line, markdown_table, progress, seconds, stopwatch
from pairgram import (
    ELMRank,
    ELMRankCV,
    Kernel,
    Pairs,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    make_ranking,
)
from pairgram._support.limits import limits_of

UNITS = {"s": 1, "minutes": 60, "hours": 3_600, "days": 86_400}


class Case(NamedTuple):
    """A fit, what it is called, and a limit in seconds above which it says how long it takes."""

    name: str
    fit: Callable[[], Any]
    limit: float = 1e-9


def text_of(model: Any) -> str:
    """Return an estimator in one line."""
    return " ".join(repr(model).split())


def rows_of(model: Any, n_queries: int, size: int, n_features: int) -> Case:
    """Return a fit to dense rows."""
    X, y, qid = make_ranking(n_queries, size, n_features, random_state=0)
    name = f"{text_of(model)}, {n_queries * size:,} × {n_features:,}"
    return Case(name, lambda: model.fit(X, y, qid=qid))


def sparse_rows_of(model: Any, n_rows: int, n_features: int) -> Case:
    """Return a fit to rows of 30 ones."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_features, size=30 * n_rows)
    starts = np.arange(0, 30 * n_rows + 1, 30)
    X = sp.csr_array((np.ones(30 * n_rows), columns, starts), (n_rows, n_features))
    X.sum_duplicates()
    y = np.digitize(X @ rng.normal(size=n_features), [-3.0, 0.0, 3.0]).astype(float)
    name = f"{text_of(model)}, {n_rows:,} × {n_features:,}, 30 ones a row"
    return Case(name, lambda: model.fit(X, y, qid=np.arange(n_rows) // 20))


def cases(is_long: bool) -> Iterator[Case]:
    """Yield fits of several sizes."""
    more = 4 if is_long else 1
    yield rows_of(RankRLS(), 1_000 * more, 50, 136)
    yield rows_of(RankRLSCV(), 1_000 * more, 50, 136)
    yield rows_of(RankRLSCV(), 400 * more, 50, 400)
    yield rows_of(RankRLSCV(cv=5), 400 * more, 50, 400)
    yield rows_of(RankRLSCV(feature_map=RandomNodes(500, random_state=0)), 400 * more, 50, 20)
    yield rows_of(RankRLSCV(feature_map=Kernel("rbf")), 40 * more, 50, 20)
    yield rows_of(RankRLSCV(np.logspace(-3, 3, 5), cv="leave-pair-out"), 1, 500 * more, 50)
    yield sparse_rows_of(RankRLS(), 40_000 * more, 5_000 * more)
    yield rows_of(RankSVM(), 1_000 * more, 50, 50)
    yield rows_of(RankSVM(), 400 * more, 50, 800)
    yield rows_of(RankSVM(loss="logistic", C=1e-6), 1, 4_000 * more, 10)
    yield rows_of(RankSVMCV(cv=3), 1_000 * more, 50, 50)
    yield rows_of(RankSVMCV(cv=3), 400 * more, 50, 400)
    yield sparse_rows_of(RankSVM(C=0.01), 40_000 * more, 5_000 * more)
    yield sparse_rows_of(RankSVMCV(cv=3), 40_000 * more, 5_000 * more)
    yield rows_of(
        ELMRank(n_nodes=500, n_estimators=2, random_state=0, pairs=Pairs()), 100 * more, 50, 20
    )
    yield rows_of(ELMRank(pairs=Pairs(), n_estimators=5, random_state=0), 400 * more, 50, 20)
    yield rows_of(ELMRankCV(pairs=Pairs(), random_state=0, cv=5), 400 * more, 50, 20)
    yield rows_of(ELMRankCV(n_nodes=500, pairs=Pairs(), random_state=0, cv=5), 100, 50, 20)


def told(case: Case) -> float:
    """Return the seconds that a fit announces."""
    with warnings.catch_warnings(record=True) as found, limits_of(long_fit_seconds=case.limit):
        warnings.simplefilter("always")
        case.fit()
    (text,) = (str(one.message) for one in found if "expected to take" in str(one.message))
    number, unit = text.split("about ")[1].split()[:2]
    return float(number) * UNITS[unit]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="times that each fit is measured")
    parser.add_argument("--long", action="store_true", help="four times the rows")
    options = parser.parse_args()
    rows = []
    for case in cases(options.long):
        expected = told(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taken = min(stopwatch(case.fit)[0] for _ in range(options.repeat))
        rows.append([case.name, seconds(expected), seconds(taken), f"{expected / taken:.2f}"])
        progress(" ".join(rows[-1]))
    print(markdown_table(["fit", "announced", "took", "ratio"], rows))
    print(machine_line(["numpy", "scipy"]))


if __name__ == "__main__":
    main()
