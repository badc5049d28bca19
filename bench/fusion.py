"""Quality of fusing retrieval runs from few judged queries, on simulated runs.

    python bench/fusion.py [--runs N ...] [--judged N ...] [--way WORDS ...] [--seeds N]
                           [--first-seed N] [--threads N]
    python bench/fusion.py --files [--threads N]

For every seed there are 30 to 50 judged queries to learn from, or as many as --judged says, and 100
others to test on. --way fuse Comb runs only RRF and the ways whose names hold one of these. Printed
are means over seeds: NDCG@10, MAP, the paired difference of NDCG@10 to reciprocal rank fusion (RRF)
with its standard error over seeds, and the time of learning. But for the methods of `pairgram.fuse`
features are made beforehand: scores are from 0 to 1 in every query unless a row says "as they are",
and reciprocal ranks are 60 / (60 + rank). --files prints, in place of quality, the times of fusing
six TREC runs of about 50,000 rows each with 50 judged queries, reading included.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas

import pairgram
from common import (
    interleaved,
    machine_line,
    markdown_table,
    progress,
    seconds,
    stopwatch,
    use_threads,
)
from data import Array, Runs, make_runs
from pairgram._support.machine import thread_count

N_RUNS = (6, 30, 286)
N_TEST = 100
N_JUDGED = 50  # of the files
RRF = "RRF: sum of 1 / (60 + rank)"
NDCG, MAP = pairgram.get_metric("ndcg@10"), pairgram.get_metric("map")
LIGHTGBM_LEAVES = (4, 15)  # small trees, since there are few queries
LEARNING_RATE = 0.1
MIN_DATA_IN_LEAF = 50
MAX_ROUNDS = 300
PATIENCE = 30


class Task(NamedTuple):
    """The documents of some queries, with the features that ways of fusion use.

    Attributes
    ----------
    y, qid : ndarray of shape (n_documents,)
    raw : ndarray of shape (n_documents, n_runs), float64
        The scores; NaN where a run did not retrieve the document.
    reciprocal : ndarray of shape (n_documents, n_runs), float64
        60 / (60 + rank), or 0 for what was not retrieved. Tied documents have their mean rank.
    minmax : ndarray of shape (n_documents, n_runs), float64
        Scores from 0 to 1 in every query, or 0 for what was not retrieved.
    """

    y: Array
    qid: np.ndarray
    raw: Array
    reciprocal: Array
    minmax: Array

    @classmethod
    def of(cls, runs: Runs) -> Task:
        """Make the features."""
        scores = pandas.DataFrame(runs.scores)
        queries = scores.groupby(runs.qid)
        reciprocal = 60 / (60 + queries.rank(ascending=False))
        low, high = queries.transform("min"), queries.transform("max")
        features = (
            part.fillna(0.0).to_numpy() for part in (reciprocal, (scores - low) / (high - low))
        )
        return cls(runs.y, runs.qid, runs.scores, *map(np.ascontiguousarray, features))


Features = Callable[[Task], Array]
Predict = Callable[[Task], Array]
Trainer = Callable[[Task], Predict]


def best_run(train: Task) -> Predict:
    """Take the run of the best NDCG@10 on the training queries."""
    values = [NDCG(train.y, ranks, train.qid) for ranks in np.ascontiguousarray(train.reciprocal.T)]
    return lambda task: task.reciprocal[:, int(np.argmax(values))]


def linear(train: Task) -> Predict:
    """Fit weights of scores; the ridge by leave-query-out."""
    model = pairgram.RankRLSCV().fit(train.minmax, train.y, qid=train.qid)
    return lambda task: model.predict(task.minmax)


def from_rrf(features: Features, train: Task) -> Predict:
    """Fit weights that start from RRF, in the multiple that fits best."""
    X, rrf = features(train), train.reciprocal.sum(axis=1)[:, None]
    total = pairgram.Pairgram.from_rows(rrf, train.y, qid=train.qid)
    weights = np.zeros(X.shape[1])
    weights[-train.reciprocal.shape[1] :] = max(total.g[0] / total.G[0, 0], 0.0)
    model = pairgram.RankRLSCV(prior=weights)
    model.fit(X, train.y, qid=train.qid)
    return lambda task: model.predict(features(task))


def fused(method: str, train: Task) -> Predict:
    """Fuse by a method of `pairgram.fuse`; what it learns comes from the training queries."""
    if method != "learnt":
        return lambda task: _fused(task, method=method)
    model = pairgram.fuse(_runs(train), _lists(train, train.y)).model
    return lambda task: _fused(task, method=model)


def _fused(task: Task, **settings: Any) -> Array:
    """Return the scores of the documents in the order of the task."""
    run = pairgram.fuse(_runs(task), **settings).run
    scores = np.empty(len(task.y))
    scores[run["docno"].astype(np.int64)] = run["score"]
    return scores


def _runs(task: Task) -> list[dict[str, Any]]:
    return [_lists(task, scores) for scores in task.raw.T]


def _lists(task: Task, values: Array) -> dict[str, Any]:
    """Return columns of rows with a value, whose documents are the numbers of the rows."""
    rows = np.flatnonzero(~np.isnan(values))
    return {"qid": task.qid[rows], "docno": rows, "score": values[rows]}


def positive(features: Features, train: Task) -> Predict:
    """Fit weights that are not negative; the ridge by five folds of queries."""
    model = pairgram.RankRLSCV(constraint=pairgram.Positive())
    model.fit(features(train), train.y, qid=train.qid)
    return lambda task: model.predict(features(task))


def train_lightgbm(features: Features, train: Task) -> Predict:
    """Boost with small and larger trees until NDCG@10 of a fifth of the queries stalls.

    The better size is then trained on all queries with as many rounds.
    """
    import lightgbm

    X, held = features(train), train.qid % 5 == 4

    def boost(rows: Any, rounds: int, valid: Any = None, **settings: Any) -> Any:
        parameters = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "learning_rate": LEARNING_RATE,
            "min_data_in_leaf": MIN_DATA_IN_LEAF,
            "seed": 0,
            "deterministic": True,
            "num_threads": thread_count(),
            "verbosity": -1,
            **settings,
        }
        sets = [
            lightgbm.Dataset(
                X[part], train.y[part], group=np.unique(train.qid[part], return_counts=True)[1]
            )
            for part in (rows, valid)
            if part is not None
        ]
        stop = [lightgbm.early_stopping(PATIENCE, verbose=False)] if valid is not None else []
        return lightgbm.train(parameters, sets[0], rounds, valid_sets=sets[1:], callbacks=stop)

    tried = []
    for leaves in LIGHTGBM_LEAVES:
        booster = boost(~held, MAX_ROUNDS, held, num_leaves=leaves)
        tried.append((booster.best_score["valid_0"]["ndcg@10"], booster.best_iteration, leaves))
    _, rounds, leaves = max(tried)
    booster = boost(np.full(len(held), True), rounds, num_leaves=leaves)
    return lambda task: booster.predict(features(task))


def _reciprocal(task: Task) -> Array:
    return task.reciprocal


def _raw_and_reciprocal(task: Task) -> Array:
    return np.hstack([task.raw, task.reciprocal])


def _minmax_and_reciprocal(task: Task) -> Array:
    return np.hstack([task.minmax, task.reciprocal])


AS_THEY_ARE = "LightGBM on scores as they are and reciprocal ranks"
LEARNT = "fuse, learnt"
POSITIVE = "RankRLSCV on both, weights ≥ 0"
WAYS: Mapping[str, Trainer] = {
    "best single run, chosen on the training queries": best_run,
    RRF: partial(fused, "rrf"),
    "Borda": partial(fused, "borda"),
    "CombSUM: sum of scores": partial(fused, "combsum"),
    "CombMNZ": partial(fused, "combmnz"),
    AS_THEY_ARE: partial(train_lightgbm, _raw_and_reciprocal),
    "LightGBM on scores and reciprocal ranks": partial(train_lightgbm, _minmax_and_reciprocal),
    "RankRLSCV on scores": linear,
    "RankRLSCV on reciprocal ranks, prior RRF": partial(from_rrf, _reciprocal),
    "RankRLSCV on both, prior RRF": partial(from_rrf, _minmax_and_reciprocal),
    LEARNT: partial(fused, "learnt"),
    POSITIVE: partial(positive, _minmax_and_reciprocal),
}
SLOW_WAYS, FEW_RUNS = {AS_THEY_ARE, POSITIVE}, 100  # they take minutes a seed with 286 runs


def tasks(
    n_runs: int, seed: int, spread: float, judged: Sequence[int] = ()
) -> Iterator[tuple[Task, Task]]:
    """Yield the training and test queries of a seed: 30 to 50, or as many as asked for, and 100."""
    wanted = judged or [int(np.random.default_rng(seed).integers(30, 51))]
    runs = make_runs(n_runs, max(wanted) + N_TEST, seed, spread)
    test = Task.of(runs.take(runs.qid >= max(wanted)))
    for n_train in wanted:
        yield Task.of(runs.take(runs.qid < n_train)), test


def run(
    n_runs: int,
    seeds: range,
    ways: Mapping[str, Trainer],
    spread: float = 1.0,
    judged: Sequence[int] = (),
) -> list[dict[str, np.ndarray]]:
    """Return (NDCG@10, MAP, seconds) of every way and seed, each of shape (n_seeds, 3).

    There is a dict for every number of judged queries.
    """
    found: list[dict[str, list[list[float]]]] = [
        {way: [] for way in ways} for _ in judged or [None]
    ]
    for seed in seeds:
        progress(f"{n_runs} runs, seed {seed}")
        for own, (train, test) in zip(found, tasks(n_runs, seed, spread, judged), strict=True):
            for way, trainer in ways.items():
                time, predict = stopwatch(partial(trainer, train))
                scores = predict(test)
                values = [metric(test.y, scores, test.qid) for metric in (NDCG, MAP)]
                own[way].append([*values, time])
    return [{way: np.array(values) for way, values in own.items()} for own in found]


def write_files(folder: Path, n_runs: int = 6, n_queries: int = 600) -> tuple[list[Path], Path]:
    """Write runs, and the judgements of some queries; return their paths."""
    runs = make_runs(n_runs, n_queries, seed=0)
    document = np.arange(len(runs.y))
    paths = [folder / f"{number}.run" for number in range(n_runs)]
    for path, scores in zip(paths, runs.scores.T, strict=True):
        pairgram.write_run(path, runs.qid, document, scores)
    judged = runs.qid < N_JUDGED
    rows = zip(runs.qid[judged], document[judged], runs.y[judged], strict=True)
    (folder / "qrels").write_text("".join(f"{q} 0 {d} {y:.0f}\n" for q, d, y in rows))
    return paths, folder / "qrels"


def times_of_files() -> str:
    """Return the table of the times of reading runs and of fusing them."""
    with tempfile.TemporaryDirectory() as folder:
        paths, qrels = write_files(Path(folder))
        n_rows = [len(pairgram.read_run(path)["score"]) for path in paths]
        work: dict[str, Callable[[], Any]] = {
            "reading the runs alone": lambda: [pairgram.read_run(path) for path in paths],
            "fuse, learnt": lambda: pairgram.fuse(paths, qrels),
        }
        for method in ("rrf", "combsum", "borda"):
            work[f"fuse, {method}"] = partial(pairgram.fuse, paths, method=method)
        assert pairgram.fuse(paths, qrels).n_judged == N_JUDGED
        times = interleaved(work, repeat=5)
    title = f"{len(paths)} runs of {np.mean(n_rows):,.0f} rows, {N_JUDGED} judged queries"
    return markdown_table([title, "time"], [[name, seconds(time)] for name, time in times.items()])


def comparison(found: Mapping[str, np.ndarray]) -> str:
    """Return the table of all ways."""
    rows = []
    for way, values in found.items():
        ndcg, mean_ap, time = values.mean(axis=0)
        difference = values[:, 0] - found[RRF][:, 0]
        error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
        paired = f"{difference.mean():+.4f} ± {error:.4f}" if way != RRF else ""
        rows.append([way, f"{ndcg:.4f}", paired, f"{mean_ap:.4f}", seconds(time)])
    return markdown_table(["way", "NDCG@10", "minus RRF", "MAP", "time"], rows)


def main() -> None:
    """Print a table for every number of runs."""
    parser = argparse.ArgumentParser(description="Print the quality of fusing simulated runs.")
    parser.add_argument("--runs", type=int, nargs="+", default=N_RUNS, metavar="N")
    parser.add_argument(
        "--judged", type=int, nargs="+", default=[], metavar="N", help="how many queries"
    )
    parser.add_argument(
        "--way", nargs="+", default=[""], metavar="WORDS", help="run only RRF and these ways"
    )
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="how many")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--spread", type=float, default=1.0, help="multiplies differences between the runs' quality"
    )
    parser.add_argument("--files", action="store_true", help="print the times of fusing files")
    parser.add_argument("--threads", type=int, metavar="N", help="of pairgram, BLAS and LightGBM")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    print(machine_line(("numpy", "scipy", "pandas", "lightgbm")))
    if arguments.files:
        print(f"\n{times_of_files()}")
        return
    for n_runs in arguments.runs:
        left_out = SLOW_WAYS if n_runs > FEW_RUNS else ()
        ways = {
            name: WAYS[name]
            for name in WAYS
            if name == RRF
            or (name not in left_out and any(words in name for words in arguments.way))
        }
        found = run(n_runs, seeds, ways, arguments.spread, arguments.judged)
        for n_judged, own in zip(arguments.judged or ["30 to 50"], found, strict=True):
            title = f"{n_runs} runs, {n_judged} judged queries, means of {len(seeds)} seeds:"
            print(f"\n{title}\n\n{comparison(own)}", flush=True)


if __name__ == "__main__":
    main()
