"""Learning from simulated clicks on LETOR's data, beside labels, clicks as labels, and LightGBM.

    python bench/clicks.py [DATA_SET ...] [--data FOLDER] [--results FILE] [--seeds N]
                           [--folds N] [--impressions N ...] [--way WORDS] [--threads N]

FOLDER, else the environment's PAIRGRAM_DATA, else ../shared/data beside the project, holds OHSUMED
and MQ2008, each as S1.txt ... S5.txt, plain or compressed.

Two weak production rankers, each trained on the labels of a hundredth of the queries, show the ten
best documents of every query of the first four parts of a fold, half of the impressions each. Users
look at position i with a probability of 1/i, 1/sqrt(i) or 1/i² ("steep") and click what is
attractive, also irrelevant documents if there is noise. Every way learns from these clicks, of the
rows that were shown unless it says otherwise, and is tested by the labels of the fifth part.

Each measured run is a line of FILE. Runs that are there already are not made again, so that a
benchmark which was stopped goes on; the tables are of all runs in FILE that were asked for.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pairgram
from common import machine_line, markdown_table, progress, stopwatch, use_threads
from letor import default_folder
from pairgram.clicks import ClickLog, Clicks, estimate_propensities, simulate
from pairgram.datasets import Fold

SETS = ("MQ2008", "OHSUMED")
POWERS = {"1/i": 1.0, "1/sqrt(i)": 0.5, "steep": 2.0}
NOISES = (0.0, 0.1)
SHOWN = 10
ROUNDS, PATIENCE = 200, 30
TREES = {"num_leaves": 7, "learning_rate": 0.1, "min_data_in_leaf": 100}
WRONG = 1.2  # the power of propensities that are wrong
GOAL = 0.012  # below full information, at 200 impressions

KNOWN, ESTIMATED, WRONGLY = "known propensities", "estimated", "wrong by a power"
HINGE = "RankSVMCV, known"
BELOW = "known, and rows that were not shown"
UNCLICKED = "1/p, against unclicked alone (biased)"
AS_LABELS, FULL = "clicks as labels", "full information"
PLAIN, WITH_POSITION = "LightGBM", "LightGBM, position="
Predict = Callable[[Any], np.ndarray]


class Rows(NamedTuple):
    """Rows with their labels; queries are numbers, and stand together."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray


class Log(NamedTuple):
    """What users clicked.

    Attributes
    ----------
    rows : Rows
    of_ranker : list of ClickLog
        What each production ranker showed. It shows the same list of a query every time.
    n_impressions : int
        Of every query and ranker.
    """

    rows: Rows
    of_ranker: list[ClickLog]
    n_impressions: int

    def lists(self, values: Callable[[ClickLog], np.ndarray]) -> np.ndarray:
        """Return the sum of values over the impressions of every row, ranker after ranker."""
        n = len(self.rows.y)
        return np.concatenate(
            [np.bincount(log.row, values(log), minlength=n) for log in self.of_ranker]
        )

    @property
    def clicks(self) -> np.ndarray:
        """The clicks on every row, ranker after ranker: impressions of one list add up."""
        return self.lists(lambda log: log.click)

    @property
    def positions(self) -> np.ndarray:
        return np.rint(self.lists(lambda log: log.position) / self.n_impressions).astype(int)

    def arguments(self, shown: np.ndarray) -> dict[str, np.ndarray]:
        """X of some rows of all lists, their list as qid, and their query as groups."""
        n = len(self.of_ranker)
        X, qid = np.tile(self.rows.X, (n, 1))[shown], np.tile(self.rows.qid, n)[shown]
        number = np.repeat(np.arange(n), len(self.rows.y))[shown]
        return {"X": X, "qid": number * (qid.max() + 1) + qid, "groups": qid}

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return row, impression, position and click of all that was shown."""
        parts = []
        for number, log in enumerate(self.of_ranker):
            own = log.position > 0
            impression = number * 10**9 + log.impression[own]
            parts.append((log.row[own], impression, log.position[own], log.click[own]))
        row, impression, position, click = (np.concatenate(p) for p in zip(*parts, strict=True))
        return row, impression, position, click


class Cell(NamedTuple):
    """Which users click, and on what."""

    name: str
    fold: int
    seed: int
    bias: str
    noise: float
    impressions: int


def whole(*parts: Any) -> Rows:
    """Return parts of a fold as one, with numbers as query ids."""
    X, y, qid = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    changes = np.append(False, qid[1:] != qid[:-1])
    return Rows(X, y, np.cumsum(changes))


def looks(bias: str) -> np.ndarray:
    """Return the probability of looking at every position."""
    return np.arange(1.0, SHOWN + 1) ** -POWERS[bias]


def make_log(rows: Rows, cell: Cell, part: int) -> Log:
    """Let two weak rankers show lists to users."""
    rng = np.random.default_rng([cell.seed, cell.fold, part])
    n_queries = int(rows.qid.max()) + 1
    logs = []
    for _ in range(2):
        while True:  # queries whose labels are all equal say nothing
            few = np.isin(rows.qid, rng.choice(n_queries, max(2, n_queries // 100), replace=False))
            if rows.y[few].any():
                break
        weak = pairgram.RankRLS(1.0).fit(rows.X[few], rows.y[few], qid=rows.qid[few])
        logs.append(
            simulate(
                rows.y,
                rows.qid,
                weak.predict(rows.X),
                n_impressions=cell.impressions // 2,
                k=SHOWN,
                examination=looks(cell.bias),
                noise=cell.noise,
                max_grade=2,
                random_state=rng,
            )
        )
    return Log(rows, logs, cell.impressions // 2)


def propensities(log: Log, cell: Cell, how: str) -> np.ndarray:
    """Return the propensity of every row of all lists."""
    position = log.positions
    if how == ESTIMATED:
        row, _, place, click = log.joined()
        found = estimate_propensities(place, click, item=row, qid=log.rows.qid[row])
        return found.of(position)
    known = np.append(0.0, looks(cell.bias))[position]
    return known**WRONG if how == WRONGLY else known


def learn(
    log: Log, cell: Cell, how: str = KNOWN, hinge: bool = False, below: bool = False
) -> Predict:
    """Learn as pairgram does from clicks with propensities: from rows that were shown, or all."""
    model = pairgram.RankSVMCV(cv=5) if hinge else pairgram.RankRLSCV()
    shown = (log.positions > 0) | below
    propensity = propensities(log, cell, how)[shown]
    return model.fit(y=Clicks(log.clicks[shown], propensity), **log.arguments(shown)).predict


def learn_from_labels(log: Log, cell: Cell, full: bool = False) -> Predict:
    """Learn as from labels: those of all rows, or the share of impressions with a click."""
    model = pairgram.RankRLSCV()
    if full:
        return model.fit(log.rows.X, log.rows.y, qid=log.rows.qid).predict
    model.set_params(scoring="ndcg_linear@10")
    shown = log.positions > 0
    rates = log.clicks[shown] / log.n_impressions
    return model.fit(y=rates, **log.arguments(shown)).predict


def learn_against_unclicked(log: Log, cell: Cell) -> Predict:
    """Weigh clicked rows by 1 / propensity, and drop pairs of two clicked ones."""
    row, impression, position, click = log.joined()
    weight = np.where(click > 0, 1 / looks(cell.bias)[position - 1], 1.0)
    model = pairgram.RankRLSCV(pairs="without_ties", cv=5)
    found = {"qid": impression, "groups": log.rows.qid[row], "sample_weight": weight}
    return model.fit(log.rows.X[row], click, **found).predict


def learn_trees(log: Log, valid: Log, threads: int, position: bool) -> Predict:
    """Boost LightGBM's lambdarank on clicks until NDCG@10 of other clicks stalls."""
    import lightgbm

    def dataset(given: Log) -> Any:
        row, impression, place, click = given.joined()
        sizes = np.diff(np.append(np.flatnonzero(np.diff(impression, prepend=-1)), len(row)))
        places = {"position": place - 1} if position else {}
        return lightgbm.Dataset(given.rows.X[row], click, group=sizes, **places)

    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_threads": threads,
        "seed": 0,
        "deterministic": True,
        "verbosity": -1,
        **TREES,
    }
    stop = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    return lightgbm.train(
        parameters, dataset(log), ROUNDS, valid_sets=[dataset(valid)], callbacks=stop
    ).predict


def ways_of(fold: Fold, cell: Cell, threads: int) -> Mapping[str, Callable[[], Predict]]:
    """Return what is compared; the logs are made when the first asks for them."""
    log_of_all = functools.cache(lambda: make_log(whole(fold.train, fold.valid), cell, 0))
    parts = functools.cache(
        lambda: (make_log(whole(fold.train), cell, 1), make_log(whole(fold.valid), cell, 2))
    )

    def way(learner: Callable[..., Predict], **named: Any) -> Callable[[], Predict]:
        return lambda: learner(log_of_all(), cell, **named)

    def trees(position: bool) -> Callable[[], Predict]:
        return lambda: learn_trees(*parts(), threads, position)

    return {
        KNOWN: way(learn),
        ESTIMATED: way(learn, how=ESTIMATED),
        WRONGLY: way(learn, how=WRONGLY),
        HINGE: way(learn, hinge=True),
        BELOW: way(learn, below=True),
        UNCLICKED: way(learn_against_unclicked),
        AS_LABELS: way(learn_from_labels),
        FULL: way(learn_from_labels, full=True),
        PLAIN: trees(False),
        WITH_POSITION: trees(True),
    }


def read(path: Path) -> dict[tuple[Cell, str], dict[str, float]]:
    """Return the runs of a file."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        run = json.loads(line)
        cell = Cell(*(run.pop(name) for name in Cell._fields))
        found[cell, run.pop("way")] = run
    return found


def measure(path: Path, cells: list[Cell], folder: Path, words: str, threads: int) -> None:
    """Add the runs that are missing to the file."""
    known = read(path)
    folds = functools.cache(lambda name: list(pairgram.load_letor_folds(folder / name)))
    for cell in cells:
        fold = folds(cell.name)[cell.fold]
        for way, learner in ways_of(fold, cell, threads).items():
            if (cell, way) in known or words not in way:
                continue
            try:
                time, predict = stopwatch(learner)
                scores = predict(fold.test.X)
                ndcg = pairgram.get_metric("ndcg@10")(fold.test.y, scores, fold.test.qid)
                run = {"ndcg": ndcg, "seconds": time}
            except ValueError as error:  # as if items link no positions
                run = {"ndcg": float("nan"), "seconds": 0.0, "error": str(error)}
            with path.open("a") as file:
                file.write(json.dumps(cell._asdict() | {"way": way} | run) + "\n")
            progress(f"{'/'.join(map(str, cell))} {way}: {run['ndcg']:.4f}, {run['seconds']:.1f} s")


def paired(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the mean lead and its standard error."""
    leads = ours - theirs
    return float(leads.mean()), float(leads.std(ddof=1) / np.sqrt(len(leads)))


def tables(path: Path, cells: list[Cell]) -> Iterator[str]:
    """Yield the table of every data set and number of impressions, and what misses the goal."""
    runs, wanted = read(path), set(cells)
    rows: dict[tuple[Any, ...], dict[str, dict[Any, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (cell, way), run in runs.items():
        if cell in wanted:
            key = (cell.name, cell.impressions, cell.bias, cell.noise)
            rows[key][way][cell.fold, cell.seed] = run["ndcg"]
    ways = [KNOWN, ESTIMATED, WRONGLY, HINGE, BELOW, UNCLICKED, AS_LABELS]
    ways += [PLAIN, WITH_POSITION, FULL]
    for name, number in sorted({key[:2] for key in rows}):
        lines: list[list[str]] = []
        misses: list[str] = []
        for key in (key for key in rows if key[:2] == (name, number)):
            users, found = f"{key[2]}, noise {key[3]:g}", rows[key]
            n_runs = max(len(found[way]) for way in ways)
            values = [[v for v in found[way].values() if v == v] for way in ways]
            lines.append([users, str(n_runs), *(f"{np.mean(v):.4f}" if v else "" for v in values)])
            failed = sum(v != v for v in found[ESTIMATED].values())
            if failed:
                misses.append(f"- {users}: propensities cannot be estimated in {failed} runs")
            misses += [f"- {users}, {text}" for text in _misses(found, number)]
        yield f"{name}, {number} impressions a query: mean NDCG@10 of the test parts"
        yield markdown_table(["users", "runs", *ways], lines)
        yield "Below the goal:\n\n" + ("\n".join(misses) or "none")


def _misses(found: Mapping[str, Mapping[Any, float]], impressions: int) -> Iterator[str]:
    """Say where known or estimated propensities stay behind others by more than the goal."""
    for ours, other in itertools.product((KNOWN, ESTIMATED), (WITH_POSITION, AS_LABELS, FULL)):
        both = sorted(set(found[ours]) & set(found[other]))
        both = [run for run in both if found[ours][run] == found[ours][run]]
        if len(both) < 2 or (other == FULL and impressions < 200):
            continue
        lead, error = paired(
            *(np.array([found[way][run] for run in both]) for way in (ours, other))
        )
        if lead < (-GOAL if other == FULL else -2 * error):
            yield f"{ours}: {lead:+.4f} (s {error:.4f}) to {other}"


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description="Learn from simulated clicks on LETOR's data.")
    parser.add_argument("sets", nargs="*", metavar="DATA_SET", help=", ".join(SETS))
    parser.add_argument("--data", type=Path, default=default_folder(), metavar="FOLDER")
    parser.add_argument("--results", type=Path, default=Path("clicks.jsonl"), metavar="FILE")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--folds", type=int, default=5, metavar="N")
    parser.add_argument("--impressions", type=int, nargs="+", default=[20, 200], metavar="N")
    parser.add_argument(
        "--way", default="", metavar="WORDS", help="run only the ways whose names hold these words"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="of all sides, and of BLAS")
    arguments = parser.parse_args()
    unknown = set(arguments.sets) - set(SETS)
    if unknown:
        parser.error(f"unknown data set {min(unknown)!r}; they are {', '.join(SETS)}")
    threads = use_threads(arguments.threads)
    cells = [
        Cell(name, fold, seed, bias, noise, number)
        for number in arguments.impressions
        for seed in range(arguments.seeds)
        for name in arguments.sets or SETS
        for fold in range(arguments.folds)
        for bias in POWERS
        for noise in NOISES
    ]
    measure(arguments.results, cells, arguments.data, arguments.way, threads)
    print(machine_line(("numpy", "scipy", "lightgbm")))
    for text in tables(arguments.results, cells):
        print(f"\n{text}", flush=True)


if __name__ == "__main__":
    main()
