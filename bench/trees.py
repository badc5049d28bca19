"""Linear first, then trees: beside linear models and boosted trees with the same folds.

    python bench/trees.py --data FOLDER [--made N] [--threads N]
    python bench/trees.py --times [--threads N]

Every way gets the same five folds of the training queries. Boosted trees grow 300 rounds in each
fold, with every setting; the number of rounds is the one of the best NDCG@10 of all held-out
queries together, and the scores of all folds and settings are averaged. The linear model is chosen
by held-out queries, and fitted to all training rows. FOLDER has MQ2008 and OHSUMED in the layout of
`load_letor_folds`: the model sees four fifths of the queries. Made data have 136 columns, a third
of them skewed and a third with few values, and 250 queries of 20 rows to learn from and to test.
How long trees take to grow is measured by --times alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pairgram
from common import machine_line, markdown_table, progress, seconds, stopwatch, use_threads
from data import Ranking
from pairgram import Pairs, QueryKFold, RankRLSCV, get_metric, trees

NDCG = get_metric("ndcg@10")
ROUNDS, STEP = 300, 10
LINEAR = RankRLSCV(feature_map=[None, "standard", "quantile", "raw+quantile"], scoring="ndcg@10")
# Small trees serve small collections best, and larger ones what interacts.
LIGHTGBM = tuple(
    {"num_leaves": leaves, "min_data_in_leaf": rows, "learning_rate": 0.1, "feature_fraction": 0.5}
    for leaves, rows in ((7, 100), (15, 50), (31, 20))
)
XGBOOST = tuple({"max_depth": depth, "eta": 0.1, "colsample_bytree": 0.5} for depth in (3, 6))
CATBOOST = ({"depth": 5, "learning_rate": 0.1},)

# Scores of the held-out rows after every STEP rounds, (n_steps, n_held), and what predicts.
Grown = tuple[np.ndarray, Callable[[np.ndarray, int], np.ndarray]]


class Fold(NamedTuple):
    """Where trees of one fold start: the rows, and scores of the training and held-out rows."""

    train: Ranking
    held: Ranking
    scores: np.ndarray
    held_scores: np.ndarray


def by_lightgbm(fold: Fold, own: dict[str, Any], threads: int, pairs: Pairs | None) -> Grown:
    """Grow trees on the loss of pairs, or by lambdarank."""
    import lightgbm

    (X, y, qid), held = fold.train, fold.held
    loss = "lambdarank" if pairs is None else trees.objective(y, qid, pairs=pairs)
    settings = {"verbosity": -1, "num_threads": threads, "seed": 0, "metric": "None", **own}
    data = lightgbm.Dataset(X, y, group=lengths(qid), init_score=fold.scores)
    of_held = lightgbm.Dataset(
        held.X, held.y, group=lengths(held.qid), init_score=fold.held_scores, reference=data
    )
    stages: list[np.ndarray] = []

    def keep(scores: np.ndarray, _: object) -> tuple[str, float, bool]:
        stages.append(scores.copy())
        return "kept", 0.0, True

    model = lightgbm.train(
        {**settings, "objective": loss}, data, ROUNDS, valid_sets=[of_held], feval=keep
    )
    return np.array(stages[STEP - 1 :: STEP]), lambda X, n: model.predict(X, num_iteration=n)


def by_xgboost(fold: Fold, own: dict[str, Any], threads: int, _: object) -> Grown:
    """Grow trees by rank:ndcg."""
    import xgboost

    data, held = (
        xgboost.DMatrix(one.X, one.y, qid=numbers(one.qid)) for one in (fold.train, fold.held)
    )
    settings = {"objective": "rank:ndcg", "nthread": threads, "seed": 0, **own}
    model = xgboost.train(settings, data, ROUNDS)

    def predict(X: Any, n: int) -> np.ndarray:
        rows = X if isinstance(X, xgboost.DMatrix) else xgboost.DMatrix(X)
        return model.predict(rows, iteration_range=(0, n), output_margin=True).astype(np.float64)

    return np.array([predict(held, n) for n in range(STEP, ROUNDS + 1, STEP)]), predict


def by_catboost(fold: Fold, own: dict[str, Any], threads: int, _: object) -> Grown:
    """Grow trees by YetiRank."""
    import catboost

    data = catboost.Pool(fold.train.X, fold.train.y, group_id=numbers(fold.train.qid))
    settings = {"loss_function": "YetiRank", "random_seed": 0, "thread_count": threads}
    settings |= {"allow_writing_files": False, "verbose": False, "iterations": ROUNDS}
    model = catboost.CatBoost({**settings, **own}).fit(data)
    stages = model.staged_predict(fold.held.X, eval_period=STEP)
    return np.array([*stages]), lambda X, n: model.predict(X, ntree_end=n)


def grown(
    folds: list[Fold], X: np.ndarray, way: Callable[..., Grown], every: Any, *others: Any
) -> np.ndarray:
    """Return the mean scores of rows X by the trees of all folds and settings, less the starts."""
    total = np.zeros(len(X))
    held = Ranking(*(np.concatenate(parts) for parts in zip(*(f.held for f in folds), strict=True)))
    start = np.concatenate([fold.held_scores for fold in folds])
    for own in every:
        found = [way(fold, own, *others) for fold in folds]
        stages = np.concatenate([stages for stages, _ in found], axis=1)
        values = [NDCG(held.y, one, held.qid) for one in (start, *stages)]
        if n_rounds := STEP * int(np.argmax(values)):
            total += sum(predict(X, n_rounds) for _, predict in found)
    return total / len(folds) / len(every)


def compared(training: Ranking, X: np.ndarray, threads: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of every way, and its scores of rows X."""
    yield "linear", LINEAR.fit(training.X, training.y, qid=training.qid).predict(X)
    cv = QueryKFold(5, shuffle=True, random_state=0)
    flat = []
    for train, held in cv.split(training.X, qid=training.qid):
        rows, others = (Ranking(*(part[own] for part in training)) for own in (train, held))
        flat.append(Fold(rows, others, np.zeros(len(train)), np.zeros(len(held))))
    loss = Pairs(weighting="documents")

    def linear_first() -> np.ndarray:
        begun = list(trees.starts(LINEAR, *training, cv))
        folds = [
            one._replace(scores=own.scores, held_scores=own.held_scores)
            for one, own in zip(flat, begun, strict=True)
        ]
        start = np.mean([one.model.predict(X) for one in begun], axis=0)
        return start + grown(folds, X, by_lightgbm, LIGHTGBM, threads, loss)

    ways: dict[str, Callable[[], np.ndarray]] = {
        "linear, then trees": linear_first,
        "LightGBM on the loss of pairs": lambda: grown(
            flat, X, by_lightgbm, LIGHTGBM, threads, loss
        ),
        "LightGBM, lambdarank": lambda: grown(flat, X, by_lightgbm, LIGHTGBM, threads, None),
        "XGBoost, rank:ndcg": lambda: grown(flat, X, by_xgboost, XGBOOST, threads, None),
        "CatBoost, YetiRank": lambda: grown(flat, X, by_catboost, CATBOOST, threads, None),
    }
    for name, way in ways.items():
        yield name, way()


def collections(folder: str, n_made: int) -> Iterator[tuple[str, list[tuple[Ranking, Ranking]]]]:
    """Yield the name of every data set, and its training and test rows."""
    for name in ("MQ2008", "OHSUMED"):
        folds = pairgram.load_letor_folds(f"{folder}/{name}")
        yield name, [(joined(one.train, one.valid), Ranking(*one.test)) for one in folds]
    for kind in ("mixed", "interactions", "additive", "smooth network"):
        yield kind, [made(kind, seed) for seed in range(n_made)]


def made(kind: str, seed: int, n_queries: int = 250, size: int = 20) -> tuple[Ranking, Ranking]:
    """Return training and test rows; 30 of 136 columns matter, in the way that the kind says."""
    rng = np.random.default_rng(seed)
    n_features, qid = 136, np.repeat(np.arange(2 * n_queries), size)
    n_rows = len(qid)
    Z = rng.normal(size=(n_rows, 12)) @ rng.normal(size=(12, n_features)) / np.sqrt(12)
    Z += 0.7 * rng.normal(size=Z.shape) + 0.5 * rng.normal(size=(2 * n_queries, n_features))[qid]
    A = Z[:, rng.choice(n_features, 30, replace=False)]
    first, second = rng.choice(30, (2, 15))
    places, heights = rng.normal(size=(2, 30))
    parts = {
        "linear": A @ rng.normal(size=30),
        "interactions": (A[:, first] * A[:, second]) @ rng.normal(size=15),
        "additive": np.tanh(3 * (A - places)) @ heights,
        "smooth network": np.tanh(0.3 * A @ rng.normal(size=(30, 20))) @ rng.normal(size=20),
    }
    parts = {name: part / part.std() for name, part in parts.items()}
    parts["mixed"] = parts["linear"] + parts["interactions"] + parts["additive"]
    parts["interactions"] += 0.4 * parts["linear"]
    score = parts[kind] / parts[kind].std() + 0.7 * rng.normal(size=n_rows)
    y = np.searchsorted(np.quantile(score, [0.52, 0.84, 0.97, 0.99]), score).astype(float)
    third = n_features // 3
    Z[:, :third] = np.exp(Z[:, :third])
    Z[:, third : 2 * third] = np.round(2 * Z[:, third : 2 * third])
    half = qid < n_queries
    return Ranking(Z[half], y[half], qid[half]), Ranking(Z[~half], y[~half], qid[~half])


def joined(*parts: Any) -> Ranking:
    """Return the rows of several parts, one after the other."""
    return Ranking(*(np.concatenate(own) for own in zip(*parts, strict=True)))


def numbers(qid: np.ndarray) -> np.ndarray:
    """Return the number of the query of every row, which stand together."""
    return np.cumsum(np.diff(qid, prepend=qid[0]) != 0)


def lengths(qid: np.ndarray) -> np.ndarray:
    """Return how many rows every query has."""
    return np.bincount(numbers(qid))


def table_of_quality(folder: str, n_made: int, threads: int) -> str:
    """Return the table of NDCG@10, and how far each way is ahead of LightGBM."""
    lines = []
    for name, parts in collections(folder, n_made):
        values: dict[str, list[np.ndarray]] = {}
        for training, test in parts:
            for way, scores in compared(training, test.X, threads):
                found = NDCG(test.y, scores, test.qid, per_query=True)
                progress(f"{name}: {way}, {found.mean():.4f}")
                values.setdefault(way, []).append(found)
        every = {way: np.concatenate(found) for way, found in values.items()}
        for way, found in every.items():
            ahead = found - every["LightGBM, lambdarank"]
            error = ahead.std(ddof=1) / np.sqrt(len(ahead))
            lead = f"{ahead.mean():+.4f} ± {error:.4f}" if error else ""
            lines.append([name, way, f"{found.mean():.4f}", lead])
    header = ["data", "way", "NDCG@10", "ahead of lambdarank"]
    return markdown_table(header, lines)


def table_of_times(threads: int) -> str:
    """Return the seconds of 100 trees of 31 leaves on 200,000 x 136, and of one gradient."""
    import lightgbm

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(200_000, 136)), np.repeat(np.arange(2_000), 100)
    score = X[:, :20] @ rng.normal(size=20) + 3 * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(score, [0.52, 0.84, 0.97, 0.99]), score).astype(float)
    common = {"verbosity": -1, "num_threads": threads, "seed": 0}
    data = lightgbm.Dataset(X, y, group=lengths(qid), params=common).construct()
    loss = trees.objective(y, qid)
    losses = {"loss of pairs": loss, "lambdarank": "lambdarank", "rank_xendcg": "rank_xendcg"}
    times: dict[str, list[float]] = {name: [] for name in losses}
    for _ in range(3):
        for name, one in losses.items():
            settings = {**common, "objective": one}
            times[name].append(stopwatch(partial(lightgbm.train, settings, data, 100))[0])
    many = trees.objective(np.tile(y, 5), np.arange(1_000_000) // 100)
    scores = rng.normal(size=1_000_000)
    of_gradient = np.median([stopwatch(lambda: many(scores))[0] for _ in range(9)])
    lines = [[f"100 trees, {name}", seconds(np.median(own))] for name, own in times.items()]
    lines.append(["one gradient of 1,000,000 rows", seconds(of_gradient)])
    return markdown_table(["way", "time"], lines)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Compare linear models and boosted trees.")
    parser.add_argument("--data", metavar="FOLDER", help="the folder of MQ2008 and OHSUMED")
    parser.add_argument("--made", type=int, default=2, metavar="N", help="seeds of made data")
    parser.add_argument("--times", action="store_true", help="print how long trees take to grow")
    parser.add_argument("--threads", type=int, metavar="N")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.times:
        parser.error("--data or --times is wanted")
    threads = use_threads(arguments.threads)
    print(machine_line(("numpy", "lightgbm", "xgboost", "catboost")) + "\n")
    if arguments.times:
        print(table_of_times(threads))
    else:
        print(table_of_quality(arguments.data, arguments.made, threads))


if __name__ == "__main__":
    main()
