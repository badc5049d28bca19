"""The work of the soak test: results equal to serial ones, no growth of memory, no deadlock."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pairgram import (
    ELMRank,
    Kernel,
    Nystroem,
    Pairgram,
    PairwiseELM,
    RandomFourier,
    RankRLS,
    RankRLSCV,
    RankSVM,
    evaluate,
    fit_many,
    load_model,
    make_ranking,
)

# A call that has not come back after so many seconds is a deadlock: stacks are printed, and the
# process ends.
LONGEST = 300
X, Y, QID = make_ranking(60, (3, 20), 8, random_state=0)
SEVERAL = [(X[q == QID], Y[q == QID]) for q in range(20)]


def _of_model(model: object) -> Callable[[Path], np.ndarray]:
    def work(folder: Path) -> np.ndarray:
        fitted = model.__class__(**model.get_params(deep=False)).fit(X, Y, qid=QID)
        path = folder / f"{threading.get_ident()}.safetensors"
        fitted.save(path)
        scores = fitted.predict(X)
        np.testing.assert_array_equal(load_model(path).predict(X), scores)
        return scores

    return work


def _of_statistics(folder: Path) -> np.ndarray:
    total = Pairgram.from_rows(X, Y, qid=QID) - Pairgram.from_rows(
        X[QID < 9], Y[QID < 9], qid=QID[QID < 9]
    )
    return Pairgram.from_bytes(total.to_bytes()).path([0.1, 10.0])


def _of_batch(folder: Path) -> np.ndarray:
    return fit_many(RankRLSCV(), SEVERAL).coef_


def _of_metrics(folder: Path) -> np.ndarray:
    found = evaluate(["ndcg@10", "map", "kendall"], Y, X[:, 0], QID, per_query=True)
    return np.concatenate([found[name] for name in ("ndcg@10", "map")])


WORK: dict[str, Callable[[Path], np.ndarray]] = {
    "RankRLS": _of_model(RankRLS()),
    "RankRLSCV": _of_model(
        RankRLSCV(pairs=["with_ties", "gain_difference"], feature_map=[None, "quantile"])
    ),
    "kernel": _of_model(RankRLSCV(feature_map=Kernel("rbf", gamma=0.3))),
    "RankSVM": _of_model(RankSVM(C=0.1, tol=1e-6)),
    "Fourier": _of_model(RankSVM(C=0.1, feature_map=RandomFourier(40, random_state=0))),
    "Nyström": _of_model(RankRLS(feature_map=Nystroem(n_components=30, random_state=0))),
    "nodes": _of_model(PairwiseELM(n_nodes=30, activation="sigmoid", random_state=0)),
    "ELMRank": _of_model(ELMRank(n_nodes=20, n_estimators=2, random_state=0)),
    "statistics": _of_statistics,
    "batch": _of_batch,
    "metrics": _of_metrics,
}


@dataclass
class Report:
    """What was done, and what was wrong."""

    seconds: float
    calls: Counter[str] = field(default_factory=Counter)
    processes: int = 0
    first_mib: float = 0.0
    last_mib: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.seconds:.0f} s, {self.calls.total()} calls, {self.processes} processes"]
        lines += [f"  {name}: {count}" for name, count in sorted(self.calls.items())]
        lines += [
            f"resident: {self.first_mib:.0f} MiB at a quarter, {self.last_mib:.0f} at the end"
        ]
        return "\n".join(lines + [f"WRONG: {one}" for one in self.wrong])


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def in_process(name: str, folder: str, queue: object) -> None:
    """Do a piece of work in a process of its own; where it hangs, say so before it is given up."""
    faulthandler.dump_traceback_later(LONGEST - 20)
    queue.put(WORK[name](Path(folder)))
    faulthandler.cancel_dump_traceback_later()


def soak(seconds: float, n_threads: int) -> Report:
    """Work for so many seconds in so many threads, and start a process now and then."""
    report = Report(seconds)
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = {what: work(folder) for what, work in WORK.items()}
        begin = time.monotonic()
        end = begin + seconds

        def check(what: str, found: np.ndarray, where: str) -> None:
            same = np.array_equal(found, expected[what], equal_nan=True)
            with lock:
                report.calls[what] += 1
                if not same:
                    report.wrong.append(f"{what} in {where} differs from the serial result")

        def thread(number: int) -> None:
            rng = np.random.default_rng(number)
            names = list(WORK)
            while time.monotonic() < end:
                what = names[rng.integers(len(names))]
                try:
                    check(what, WORK[what](folder), f"thread {number}")
                except Exception as error:
                    with lock:
                        report.wrong.append(f"{what} in thread {number}: {error!r}")

        threads = [threading.Thread(target=thread, args=(k,)) for k in range(n_threads)]
        for one in threads:
            one.start()
        ways = ("fork", "spawn")
        rng = np.random.default_rng(0)
        while time.monotonic() < end:
            what = list(WORK)[rng.integers(len(WORK))]
            way = ways[report.processes % 2]
            check(what, _in_a_process(way, what, name, report), f"a process by {way}")
            report.processes += 1
            if not report.first_mib and time.monotonic() > begin + seconds / 4:
                report.first_mib = resident_mib()
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        for one in threads:
            one.join()
        faulthandler.cancel_dump_traceback_later()
        report.last_mib = resident_mib()
    return report


def _in_a_process(way: str, what: str, folder: str, report: Report) -> np.ndarray:
    context = multiprocessing.get_context(way)
    queue = context.Queue()
    process = context.Process(target=in_process, args=(what, folder, queue))
    process.start()
    try:
        return queue.get(timeout=LONGEST)
    except Exception as error:
        report.wrong.append(f"{what} in a process by {way}: {error!r}")
        return np.empty(0)
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()
