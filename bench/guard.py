"""Whether pairgram has become slow: ratios of times beside those that are committed.

    python bench/guard.py [--only TEXT] [--vectors SET] [--update]

Each work is timed beside another one, NumPy's or pairgram's own, on one thread, in turns; its ratio
is that of the shortest times. Plain times say what the machine is, ratios what the code is; they
still depend on the width of vectors, so `guard.toml` has those of each width that was measured. A
ratio that is more than a quarter above the committed one is measured again, three times at most,
and the lowest counts. Prints a table; the exit code is 1 where a ratio stays above its limit.
`--update` writes the ratios of this machine instead, which is for a quiet machine and a change
that is meant.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

import by_hand
import data
import dual
import many
import pairgram
from common import markdown_table, progress, vector_set

COMMITTED = Path(__file__).with_suffix(".toml")
BAND = 1.25
REPEATS = 3  # of a measurement whose ratio is above its limit
TURN = 0.05  # seconds, at least, that a way takes before the other has its turn
N_TURNS, LONGEST = 20, 6.0  # of each way, and seconds after which there are no more
LENGTH = 100
ALPHAS = 2.0 ** np.arange(19, -11, -1)  # 30, descending

Ways = tuple[Callable[[], Any], Callable[[], Any]]
WORKS: dict[str, Callable[[], Ways]] = {}


def work(name: str) -> Callable[[Callable[[], Ways]], Callable[[], Ways]]:
    """Name a function that makes what is timed, and what it is timed beside."""

    def add(make: Callable[[], Ways]) -> Callable[[], Ways]:
        WORKS[name] = make
        return make

    return add


@functools.cache
def rows() -> data.Ranking:
    """Return data that are shaped as data a of the kernels, with a fifth of the rows."""
    return data.make(20_000, 136, 200)


def of_all_rows() -> pairgram.Pairgram:
    """Return the statistics of all pairs of the rows."""
    X, y, qid = rows()
    return pairgram.Pairgram.from_rows(X, y, qid=qid)


@work("fit and 30 alphas, beside NumPy")
def _fit() -> Ways:
    X, y, _ = rows()
    return (
        lambda: of_all_rows().path(ALPHAS),
        lambda: by_hand.path(by_hand.statistics_at_once(X, y, LENGTH), ALPHAS),
    )


@work("fit and 30 alphas, beside one alpha")
def _path() -> Ways:
    X, y, qid = rows()
    model = pairgram.RankRLS(1.0)
    return lambda: of_all_rows().path(ALPHAS), lambda: model.fit(X, y, qid=qid)


@work("statistics of float32, beside float64")
def _float32() -> Ways:
    X, y, qid = rows()
    Z = X.astype(np.float32)
    return lambda: pairgram.Pairgram.from_rows(Z, y, qid=qid), of_all_rows


@work("statistics of one list of 1,000,000 rows, beside lists of 100")
def _one_list() -> Ways:
    X, y, qid = data.make(1_000_000, 4, 10_000)
    statistics_of = functools.partial(pairgram.Pairgram.from_rows, X, y)
    return statistics_of, lambda: statistics_of(qid=qid)


@work("leave-query-out of 30 alphas, beside fit and 30 alphas")
def _leave_query_out() -> Ways:
    X, y, qid = rows()
    search = pairgram.RankRLSCV(ALPHAS)
    return lambda: search.fit(X, y, qid=qid), lambda: of_all_rows().path(ALPHAS)


@work("kernel path of 2,000 rows, beside eigh")
def _dual() -> Ways:
    X, y, qid = dual.make_rows(2_000)
    K = pairgram.kernel_matrix(X, gamma=dual.GAMMA)
    search = pairgram.RankRLSCV(dual.ALPHAS, feature_map=pairgram.Kernel("rbf", gamma=dual.GAMMA))
    return lambda: search.fit(X, y, qid=qid), lambda: scipy.linalg.eigh(K)


@work("NDCG@10 and MAP, beside NumPy")
def _metrics() -> Ways:
    _, y, qid = rows()
    score = np.random.default_rng(0).normal(size=len(y))
    return (
        lambda: pairgram.evaluate(["ndcg@10", "map"], y, score, qid),
        lambda: by_hand.ndcg_and_map(y, score, LENGTH),
    )


@work("load_letor, beside a sum of the file's bytes")
def _letor() -> Ways:
    path = data.DEFAULT_FOLDER / "guard.svm"
    path.parent.mkdir(parents=True, exist_ok=True)
    data.write_svmlight(path, data.Ranking(*(part[:4_000] for part in rows())))
    return (
        lambda: pairgram.load_letor(path),
        lambda: np.fromfile(path, np.uint8).sum(),
    )


@work("statistics of nodes that are made on the way, beside nodes that are ready")
def _nodes() -> Ways:
    X, y, qid = (part[:8_000] for part in rows())
    nodes = pairgram.RandomNodes(500, "sigmoid", random_state=0).fit(X)
    H = nodes.transform(X)
    from_rows = pairgram.Pairgram.from_rows
    return (
        lambda: from_rows(X, y, qid=qid, feature_map=nodes),
        lambda: from_rows(H, y, qid=qid),
    )


@work("RankSVM, beside RankRLS")
def _svm() -> Ways:
    X, y, qid = rows()
    svm, rls = pairgram.RankSVM(), pairgram.RankRLS()
    return lambda: svm.fit(X, y, qid=qid), lambda: rls.fit(X, y, qid=qid)


@work("fit_many of 1,000 small problems, beside NumPy's batches")
def _fit_many() -> Ways:
    X, y = many.make_sets(1_000, 30, 10)
    model, by = pairgram.RankRLS(), np.repeat(np.arange(1_000), 30)
    rows, labels = X.reshape(-1, 10), y.ravel()
    return lambda: pairgram.fit_many(model, rows, labels, by=by), lambda: many.batched(X, y)


@work("predict, beside X @ w")
def _predict() -> Ways:
    X, y, qid = rows()
    model = pairgram.RankRLS().fit(X, y, qid=qid)
    w = np.array(model.coef_)
    return lambda: model.predict(X), lambda: X @ w


def shortest(way: Callable[[], Any]) -> float:
    """Return the shortest time of some calls: of one, where that takes longer than a turn."""
    end, least = time.perf_counter() + TURN, np.inf
    while True:
        begin = time.perf_counter()
        way()
        now = time.perf_counter()
        least = min(least, now - begin)
        if now >= end:
            return least


def ratio_of(ways: Ways) -> float:
    """Return the shortest time of the first way over that of the second, called in turns."""
    least, begin = [np.inf, np.inf], time.perf_counter()
    for n_turns in range(N_TURNS):
        if n_turns >= 3 and time.perf_counter() - begin > LONGEST:
            break
        least = [min(known, shortest(way)) for known, way in zip(least, ways, strict=True)]
    return least[0] / least[1]


def measure(make: Callable[[], Ways], limit: float | None) -> float:
    """Return the ratio of a work: the lowest of some while it is above the limit.

    Without a limit, the median of as many.
    """
    ways = make()
    ratios = [ratio_of(ways)]
    while len(ratios) <= REPEATS and (limit is None or ratios[-1] > limit):
        ratios.append(ratio_of(ways))
    return statistics.median(ratios) if limit is None else min(ratios)


def guard(
    works: Mapping[str, Callable[[], Ways]], committed: Mapping[str, float]
) -> tuple[dict[str, float], list[str]]:
    """Return the ratio of every work, and the names of those that are too slow or unknown."""
    ratios, slow = {}, []
    for name, make in works.items():
        progress(f"  {name}")
        limit = BAND * committed[name] if name in committed else None
        ratios[name] = measure(make, limit)
        if limit is None or ratios[name] > limit:
            slow.append(name)
    return ratios, slow


def table(ratios: Mapping[str, float], committed: Mapping[str, float], slow: Iterable[str]) -> str:
    """Return what was measured beside what is committed."""
    lines = []
    for name, ratio in ratios.items():
        known = committed.get(name)
        verdict = "" if name not in slow else "TOO SLOW" if known else "not committed"
        cells = [f"{known:.3g}", f"{BAND * known:.3g}"] if known else ["", ""]
        lines.append([name, f"{ratio:.3g}", *cells, verdict])
    return markdown_table(["work", "ratio", "committed", "limit", ""], lines)


def write(path: Path, machine: str, ratios: Mapping[str, float]) -> None:
    """Replace the ratios of one kind of machine, of the works that were measured."""
    all_ratios = tomllib.loads(path.read_text()) if path.exists() else {}
    all_ratios[machine] = all_ratios.get(machine, {}) | dict(ratios)
    text = "# Ratios that `python bench/guard.py --update` measured, by the width of vectors.\n"
    for kind in sorted(all_ratios):
        text += f"\n[{kind}]\n"
        text += "".join(
            f"{json.dumps(n)} = {float(f'{r:.3g}')}\n" for n, r in all_ratios[kind].items()
        )
    path.write_text(text)


def main() -> int:
    """Measure, print the table, and say whether all is well."""
    parser = argparse.ArgumentParser(description="Compare ratios of times with committed ones.")
    parser.add_argument("--only", default="", metavar="TEXT", help="works with this in their name")
    parser.add_argument(
        "--vectors", metavar="SET", help="avx512f, avx2: what is measured has no wider vectors"
    )
    parser.add_argument("--update", action="store_true", help="commit the ratios of this machine")
    arguments = parser.parse_args()
    works = {name: make for name, make in WORKS.items() if arguments.only in name}
    machine = arguments.vectors or vector_set()
    committed = {} if arguments.update else tomllib.loads(COMMITTED.read_text()).get(machine, {})
    with pairgram.threads(1), threadpool_limits(1):
        ratios, slow = guard(works, committed)
    if arguments.update:
        write(COMMITTED, machine, ratios)
        slow = []
    print(f"One thread, {machine}\n\n{table(ratios, committed, slow)}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
