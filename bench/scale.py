"""Tables larger than memory, and clusters: time, memory, equal bits, lost workers; LightGBM beside.

    python bench/scale.py [TABLE ...] [--rows N] [--folder DIR] [--threads N]

Makes Parquet files of N rows x 136 float32 columns in DIR, one million rows to a file, with queries
that the ends of files cut. They stay for the next run. Each table is a question; see the functions.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import (
    in_fresh_process,
    markdown_table,
    mebibytes,
    on_threads,
    print_tables,
    progress,
    seconds,
    stopwatch,
)
from pairgram import RankRLS, RankRLSCV, evaluate, scan

N_FEATURES, LENGTH, GROUP = 136, 100, 1 << 17
ROWS_OF_FILE = 1_000_000 - 37  # no multiple of the length of a query
MILLION = 1_000_000


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    repeat: int
    threads: int
    rows: int
    folder: Path

    def files(self, n_rows: int) -> list[str]:
        """Return the paths of files with at least so many rows, which are made if need be."""
        return make_files(self.folder, n_rows)


def make_files(folder: Path, n_rows: int) -> list[str]:
    """Return the paths of the files with the first rows; missing files are written."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    weights = np.random.default_rng(0).normal(size=N_FEATURES).astype(np.float32)
    spread = np.float32(np.linalg.norm(weights) / 12**0.5)
    paths = []
    for number in range(-(-n_rows // ROWS_OF_FILE)):
        path = folder / f"part-{number:04d}.parquet"
        paths.append(str(path))
        if path.exists():
            continue
        progress(f"writing {path.name}")
        rng = np.random.default_rng(number + 1)
        X = rng.random((N_FEATURES, ROWS_OF_FILE), dtype=np.float32)
        score = weights @ X + spread * rng.normal(size=ROWS_OF_FILE).astype(np.float32)
        cuts = np.quantile(score, [0.52, 0.84, 0.97, 0.99])
        columns = {f"f{j}": X[j] for j in range(N_FEATURES)}
        first = number * ROWS_OF_FILE
        columns["query"] = np.arange(first, first + ROWS_OF_FILE) // LENGTH
        columns["label"] = np.searchsorted(cuts, score).astype(np.int8)
        part = path.with_suffix(".tmp")
        pyarrow.parquet.write_table(pyarrow.table(columns), part, row_group_size=GROUP)
        part.replace(path)
    return paths


def table_of(paths: list[str], client: Any = None) -> Any:
    """Return the files as a table."""
    return scan(paths, label="label", qid="query", client=client)


def bits(model: Any) -> str:
    """Return a short hash of the bits of a model."""
    return hashlib.sha1(model.coef_.tobytes()).hexdigest()[:12]


# One machine ------------------------------------------------------------------------------------


def read_alone(paths: list[str]) -> float:
    """Return the seconds that pyarrow takes to read the files and to do nothing with them."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(paths)

    def read() -> None:
        for fragment in dataset.get_fragments():
            for _ in fragment.to_batches(batch_size=GROUP, batch_readahead=1):
                pass

    return stopwatch(read)[0]


def statistics_alone(n_rows: int) -> float:
    """Return the seconds that the statistics of so many rows in memory take."""
    rng = np.random.default_rng(0)
    size = 1 << 19
    X, y = rng.random((size, N_FEATURES), dtype=np.float32), rng.integers(0, 5, size).astype(float)
    model, qid = RankRLS(), np.arange(size) // LENGTH
    runs = [stopwatch(lambda: model.fit(X, y, qid=qid))[0] for _ in range(5)]
    return float(np.median(runs)) * n_rows / size


def fit_out_of_core(paths: list[str]) -> tuple[float, float]:
    """Return (seconds, highest resident bytes) of one fit in this process."""
    taken, _ = stopwatch(lambda: RankRLS().fit(table_of(paths)))
    return taken, highest_resident()


def highest_resident() -> float:
    """Return the largest resident memory that this process has had, in bytes; Linux only."""
    status = Path("/proc/self/status").read_text()
    return 1024.0 * int(status.partition("VmHWM:")[2].split()[0])


def out_of_core(options: Options) -> Iterator[str]:
    """A linear model of files: beside reading them alone and the statistics of ready rows."""
    rows = []
    for millions in (1, 2, 5, 10):
        if millions * MILLION > options.rows:
            break
        paths = options.files(millions * MILLION)
        n_rows = len(paths) * ROWS_OF_FILE
        runs = []
        for _ in range(options.repeat):
            read = in_fresh_process(read_alone, paths)
            fit, resident = in_fresh_process(fit_out_of_core, paths)
            ready = in_fresh_process(statistics_alone, n_rows)
            runs.append((read, ready, fit, resident, fit / (read + ready)))
        read, ready, fit, resident, ratio = np.median(runs, axis=0)
        rows.append(
            [
                f"{n_rows / 1e6:.1f} M",
                seconds(read),
                seconds(ready),
                seconds(fit),
                f"{ratio:.2f}",
                mebibytes(resident),
            ]
        )
    header = ["rows", "pyarrow reads", "statistics of ready rows", "fit", "fit / sum", "resident"]
    yield markdown_table(header, rows)


def second_pass(options: Options) -> Iterator[str]:
    """Leave-query-out for 30 alphas: what the second pass adds."""
    paths = options.files(2 * MILLION)
    n_rows = len(paths) * ROWS_OF_FILE
    fit = stopwatch(lambda: RankRLS().fit(table_of(paths)))[0]
    alphas = np.logspace(0, 8, 30)
    search = RankRLSCV(alphas)
    both = stopwatch(lambda: search.fit(table_of(paths)))[0]
    rng = np.random.default_rng(0)
    size = 1 << 17
    X, y = rng.random((size, N_FEATURES), dtype=np.float32), rng.integers(0, 5, size).astype(float)
    qid = np.arange(size) // LENGTH
    ready = stopwatch(lambda: RankRLSCV(alphas).fit(X, y, qid=qid))[0]
    rows = [
        ["one alpha, one pass", seconds(fit), f"{1e6 * fit / n_rows:.2f}"],
        ["30 alphas, two passes", seconds(both), f"{1e6 * both / n_rows:.2f}"],
        [f"30 alphas, {size} rows in memory", seconds(ready), f"{1e6 * ready / size:.2f}"],
    ]
    yield markdown_table(["way", "time", "µs a row"], rows)


# Clusters ---------------------------------------------------------------------------------------


def _cluster(n_workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


def dask(options: Options) -> Iterator[str]:
    """The same files on Dask: one worker, two workers, and two of which one is killed."""
    from distributed import Client

    paths = options.files(min(options.rows, 5 * MILLION))
    local = RankRLSCV()
    rows = []
    time_local, _ = stopwatch(lambda: local.fit(table_of(paths)))
    rows.append(["out of core, one process", seconds(time_local), bits(local)])
    times = {}
    for n_workers, kill in ((1, False), (2, False), (2, True)):
        with _cluster(n_workers) as cluster, Client(cluster) as client:
            model = RankRLSCV()
            model.fit(table_of(paths[:1], client))  # imports, in every worker
            if kill:
                pids = client.run(os.getpid)
                timer = threading.Timer(1.5, os.kill, (next(iter(pids.values())), signal.SIGKILL))
                timer.start()
            taken, _ = stopwatch(functools.partial(model.fit, table_of(paths, client)))
            times[n_workers, kill] = taken
            name = f"Dask, {n_workers} worker{'s' * (n_workers > 1)} x 1 thread"
            name += ", one killed after 1.5 s" if kill else ""
            rows.append([name, seconds(taken), bits(model)])
    yield markdown_table(["way", "RankRLSCV", "bits"], rows)
    yield f"Two workers beside one: {times[1, False] / times[2, False]:.2f} x."


def spark(options: Options) -> Iterator[str]:
    """The same files on Spark, with one core and twice with two."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    paths = options.files(min(options.rows, 2 * MILLION))
    rows = []
    for master in ("local[1]", "local[2]", "local[2]"):
        session = (
            SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.files.minPartitionNum", "8")
            .config("spark.driver.memory", "3g")
            .getOrCreate()
        )
        try:
            frame = session.read.parquet(*paths)
            table = scan(frame, label="label", qid="query")
            model = RankRLS()
            taken, _ = stopwatch(functools.partial(model.fit, table))
        finally:
            session.stop()
        rows.append([f"Spark {master}", seconds(taken), bits(model)])
    yield markdown_table(["way", "RankRLS", "bits"], rows)


def lightgbm(options: Options) -> Iterator[str]:
    """`DaskLGBMRanker` on the same cluster: time, NDCG@10, a lost worker, a query that is cut."""
    import dask.array as da
    import pyarrow.parquet
    from distributed import Client, wait
    from lightgbm import DaskLGBMRanker

    paths = options.files(min(options.rows, 2 * MILLION))
    held = options.files(len(paths) * ROWS_OF_FILE + 1)[-1:]
    test = pyarrow.parquet.read_table(held[0]).slice(100, 200_000 - 100)
    names = [f"f{j}" for j in range(N_FEATURES)]
    X = np.column_stack([test[name].to_numpy() for name in names])
    y, qid = test["label"].to_numpy().astype(float), test["query"].to_numpy()
    rows = []

    def quality(model: Any) -> str:
        return f"{evaluate('ndcg@10', y, model.predict(X), qid)['ndcg@10']:.4f}"

    with _cluster(2) as cluster, Client(cluster) as client:
        model = RankRLSCV()
        model.fit(table_of(paths[:1], client))
        taken, _ = stopwatch(lambda: model.fit(table_of(paths, client)))
        rows.append(["RankRLSCV on files", seconds(taken), _resident(client), quality(model)])
    for kill in (False, True):
        with _cluster(2) as cluster, Client(cluster) as client:
            parts = [client.submit(_arrays, path, names) for path in paths]
            wait(parts)
            sizes = [client.submit(_sizes, part).result() for part in parts]
            lengths = [int(size.sum()) for size in sizes]
            take = [client.submit(_item, part, k) for part in parts for k in (0, 1)]
            Xd = da.concatenate(
                [
                    da.from_delayed(_delayed(take[2 * k]), (n, N_FEATURES), np.float32)
                    for k, n in enumerate(lengths)
                ]
            )
            yd = da.concatenate(
                [
                    da.from_delayed(_delayed(take[2 * k + 1]), (n,), np.float64)
                    for k, n in enumerate(lengths)
                ]
            )
            gd = da.concatenate([da.from_array(size, chunks=len(size)) for size in sizes])
            ranker = DaskLGBMRanker(n_estimators=100, num_leaves=31, client=client, verbosity=-1)
            if kill:
                pids = client.run(os.getpid)
                timer = threading.Timer(3, os.kill, (next(iter(pids.values())), signal.SIGKILL))
                timer.start()
            begin = time.perf_counter()
            try:
                ranker.fit(Xd, yd, group=gd)
                found = quality(ranker.to_local())
            except Exception as error:
                found = f"{type(error).__name__}"
            taken = time.perf_counter() - begin
            name = "DaskLGBMRanker, 100 trees" + ", a worker killed after 3 s" * kill
            rows.append([name, seconds(taken), _resident(client), found])
    header = ["way", "time, data of LightGBM in memory", "resident per worker", "NDCG@10"]
    yield markdown_table(header, rows)
    yield (
        "LightGBM takes the sizes of queries within each partition. A query that a file cuts is "
        "therefore two queries, without a word."
    )


def _delayed(future: Any) -> Any:
    from dask.delayed import delayed

    return delayed(future)


def _arrays(path: str, names: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in names])
    qid = table["query"].to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(qid)]))
    return X, table["label"].to_numpy().astype(float), np.diff(starts)


def _sizes(part: tuple[Any, ...]) -> np.ndarray:
    return np.asarray(part[2])


def _item(part: tuple[Any, ...], number: int) -> Any:
    return part[number]


def _resident(client: Any) -> str:
    return mebibytes(max(client.run(highest_resident).values()))


def arithmetic(options: Options) -> Iterator[str]:
    """What a billion rows on a hundred workers would take, from parts that are measured here."""
    from distributed import Client

    paths = options.files(MILLION)
    n_rows = len(paths) * ROWS_OF_FILE
    task, _ = stopwatch(on_threads(1, lambda: RankRLS().fit(table_of(paths))))
    order = N_FEATURES + 1
    state = np.zeros((order, order))
    join, _ = stopwatch(lambda: [state + state for _ in range(100)])
    search = RankRLSCV()
    both, _ = stopwatch(on_threads(1, lambda: search.fit(table_of(paths))))
    basis = pickle.dumps(np.zeros((N_FEATURES, N_FEATURES)))
    with _cluster(2) as cluster, Client(cluster) as client:
        client.submit(abs, -1).result()
        calls, _ = stopwatch(lambda: client.gather(client.map(abs, range(1000), pure=False)))
    a_task = task / n_rows * MILLION
    a_judge = (both - task) / n_rows * MILLION
    rows = [
        ["one pass over 1 M rows, one thread, reading included", seconds(a_task)],
        ["held-out scores of 34 alphas for 1 M rows, one thread", seconds(a_judge)],
        [f"join of two results of {state.nbytes / 1024:.0f} KiB", seconds(join / 100)],
        [f"broadcast: basis of {len(basis) / 1024:.0f} KiB", "sent once to each worker"],
        ["scheduler, per task", seconds(calls / 1000)],
    ]
    yield markdown_table(["part", "time"], rows)
    for workers in (100, 1000):
        tasks = 1000
        rounds = -(-tasks // workers)
        one = rounds * a_task + tasks * 2 * calls / 1000
        two = rounds * (a_task + a_judge) + tasks * 4 * calls / 1000
        yield (
            f"1,000 M rows in {tasks} tasks on {workers} workers of one thread: {seconds(one)} for "
            f"one alpha, {seconds(two)} with leave-query-out; of these the scheduler takes "
            f"{seconds(tasks * 2 * calls / 1000)} and {seconds(tasks * 4 * calls / 1000)}."
        )


TABLES = {
    "out-of-core": out_of_core,
    "second-pass": second_pass,
    "dask": dask,
    "spark": spark,
    "lightgbm": lightgbm,
    "arithmetic": arithmetic,
}


def main() -> None:
    """Run the tables that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10 * MILLION, metavar="N", help="at most")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "pairgram-scale",
        metavar="DIR",
        help="of the made files",
    )
    packages = ("pyarrow", "dask", "pyspark", "lightgbm")
    print_tables(parser, TABLES, Options, packages, repeat=3)


if __name__ == "__main__":
    main()
