"""Quality and time on LETOR's data: RankRLS as in its paper, other pairs, AutoRanker, peers.

    python bench/letor.py [DATA_SET ...] [--data FOLDER] [--way WORDS] [--threads N]
                          [--budget SECONDS ...] [--lightgbm-random N] [--xgboost] [--catboost]

FOLDER, else the environment's PAIRGRAM_DATA, else ../shared/data beside the project, holds OHSUMED
(LETOR 3.0) and MQ2008 (LETOR 4.0), each as S1.txt ... S5.txt, plain or compressed. Each of the five
folds trains on three parts, chooses settings by MAP on the fourth and is tested on the fifth;
printed are means over the test parts. "Time" is that of training and choosing in all five folds.
Every way is said on stderr as soon as it is measured. --way "RankRLS, with" runs only the ways
whose names hold these words. Without LightGBM's way nothing is compared with it, and it need not be
installed. --budget 0.4 3 adds AutoRanker with so many seconds a fold, --lightgbm-random 40 LightGBM
with so many settings drawn at random, --xgboost and --catboost add these two.

"Ahead" is a paired 95 % bootstrap interval over the test queries of all folds.

NDCG and MeanNDCG of OHSUMED have LETOR's discount 1, 1, 1/log2(i); those of MQ2008 1/log2(1 + i).
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline

import pairgram
from boosters import (
    Predict,
    random_lightgbm_settings,
    train_catboost,
    train_lightgbm,
    train_xgboost,
)
from common import machine_line, markdown_table, progress, seconds, stopwatch, use_threads
from pairgram import Pairs
from pairgram.datasets import Fold

CONVENTIONS = {"OHSUMED": "letor", "MQ2008": "default"}
CUTS = range(1, 11)
PAPER_ALPHAS = 2.0 ** np.arange(-15, 25)

# Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
# least-squares. SIGIR workshop on learning to rank for information retrieval, 2007. Tables 1-3,
# OHSUMED: columns RankRLS and RLS. The paper had the 25 features of LETOR's first release, LETOR
# 3.0 has 45 for the same rows, so that the numbers need not agree to the last digit.
PAPER: Mapping[str, tuple[float, float]] = {
    "map": (0.447, 0.450),
    "ndcg@1": (0.549, 0.527),
    "ndcg@2": (0.492, 0.499),
    "ndcg@3": (0.477, 0.491),
    "ndcg@4": (0.465, 0.474),
    "ndcg@5": (0.453, 0.461),
    "ndcg@6": (0.450, 0.454),
    "ndcg@7": (0.451, 0.459),
    "ndcg@8": (0.447, 0.460),
    "ndcg@9": (0.447, 0.458),
    "ndcg@10": (0.443, 0.452),
    "p@1": (0.644, 0.635),
    "p@2": (0.614, 0.615),
    "p@3": (0.586, 0.602),
    "p@4": (0.570, 0.580),
    "p@5": (0.557, 0.560),
    "p@6": (0.546, 0.541),
    "p@7": (0.534, 0.545),
    "p@8": (0.524, 0.539),
    "p@9": (0.516, 0.525),
    "p@10": (0.505, 0.510),
}

Trainer = Callable[[Fold], Predict]


class Result(NamedTuple):
    """The test metrics of one way: means over folds, MAP of every query, and seconds."""

    means: dict[str, float]
    maps: np.ndarray
    time: float


RANK_RLS = "RankRLS, with or without tied pairs, 2^-15..2^24"
POINTWISE = "RLS on rows (pairs=None), 2^-15..2^24"
LINEAR = "linear, all defaults"
QUANTILES = "linear in columns and quantiles, by leave-query-out"
FOURIER = "500 Fourier features of quantiles, by leave-query-out"
AUTOMATIC = "AutoRanker, all defaults"
BUDGET = "AutoRanker, budget {:g} s"
HURRIED = "AutoRanker, budget 1/5 of LightGBM's time"
LIGHTGBM = "LightGBM lambdarank, 4 settings, early stopping"
RANDOM = "LightGBM lambdarank, {} random settings, early stopping"
XGBOOST = "XGBoost rank:ndcg and rank:map, 4 settings, early stopping"
CATBOOST = "CatBoost YetiRank, up to 300 trees of depth 5"
SEVERAL = tuple(
    Pairs(kind, target=target)
    for kind, target in (
        ("with_ties", "label"),
        ("without_ties", "label"),
        ("without_ties", "gain"),
        ("gain_difference", "label"),
        ("gain_difference", "gain"),
    )
)
FOURIER_GAMMA = 1 / 60  # a sixteenth of 1 / variance, for 45 columns
PEERS = (LINEAR, QUANTILES, FOURIER, LIGHTGBM)  # whose MAP is compared query by query
RESAMPLES = 10_000


def train_rank_rls(fold: Fold, **settings: Any) -> Predict:
    """Choose the ridge, and the settings given as lists, by validation MAP."""
    model = pairgram.RankRLSCV(scoring="map", **settings)
    X, y, qid = fold.train
    return model.fit(X, y, qid=qid, validation=fold.valid).predict


def train_single(fold: Fold, **settings: Any) -> Predict:
    """Fit one of the models that the ranker without settings may choose, to the same rows."""
    X, y, qid = (np.concatenate(parts) for parts in zip(fold.train, fold.valid, strict=True))
    kinds = ("with_ties", "without_ties", "gain_difference")
    several = [Pairs(kind, target=target) for kind in kinds for target in ("label", "gain")]
    model = pairgram.RankRLSCV(scoring="map", pairs=several, **settings)
    model.fit(X, y, qid=qid)
    return lambda rows: model.predict(rows)


def train_automatic(fold: Fold, **settings: Any) -> Predict:
    """Let the ranker without settings choose, by leave-query-out of training and validation parts.

    LightGBM sees the same rows: it trains on the first part and stops by the second.
    """
    X, y, qid = (np.concatenate(parts) for parts in zip(fold.train, fold.valid, strict=True))
    model = pairgram.AutoRanker(scoring="map", **settings)
    model.fit(X, y, qid=qid)
    return lambda rows: model.predict(rows)


def trainers(
    threads: int,
    budgets: Sequence[float] = (),
    n_random: int = 0,
    xgboost: bool = False,
    catboost: bool = False,
) -> dict[str, Trainer]:
    """Return what is compared; the first is the paper's method, the last are the peers."""
    ways = {
        RANK_RLS: functools.partial(
            train_rank_rls, alphas=PAPER_ALPHAS, pairs=["with_ties", "without_ties"]
        ),
        POINTWISE: functools.partial(train_rank_rls, alphas=PAPER_ALPHAS, pairs=None),
    }
    ways[LINEAR] = train_rank_rls
    for pairs in SEVERAL:
        name = f"pairs={pairs.kind!r}, target={pairs.target!r}, default alphas"
        ways[name] = functools.partial(train_rank_rls, pairs=pairs)
    ways[QUANTILES] = functools.partial(train_single, feature_map="raw+quantile")
    fourier = pairgram.RandomFourier(500, gamma=FOURIER_GAMMA, random_state=0)
    ways[FOURIER] = functools.partial(
        train_single, feature_map=make_pipeline(pairgram.Quantile(), fourier)
    )
    ways[AUTOMATIC] = train_automatic
    for budget in budgets:
        ways[BUDGET.format(budget)] = functools.partial(train_automatic, time_budget=budget)
    ways[LIGHTGBM] = functools.partial(train_lightgbm, threads=threads)
    if n_random:
        drawn = functools.partial(train_lightgbm, settings=random_lightgbm_settings(n_random))
        ways[RANDOM.format(n_random)] = functools.partial(drawn, threads=threads)
    if xgboost:
        ways[XGBOOST] = functools.partial(train_xgboost, threads=threads)
    if catboost:
        ways[CATBOOST] = functools.partial(train_catboost, threads=threads)
    return ways


def run(folds: list[Fold], ways: Mapping[str, Trainer], convention: str) -> dict[str, Result]:
    """Train and test every way."""
    names = ["map", "mean_ndcg", *(f"{family}@{k}" for family in ("ndcg", "p") for k in CUTS)]
    metrics = [pairgram.get_metric(name, convention) for name in names]
    results = {}
    for way, train in ways.items():
        time, values, maps = 0.0, [], []
        for fold in folds:
            progress(f"{fold.name}: {way}")
            fold_time, predict = stopwatch(functools.partial(train, fold))
            time += fold_time
            test = fold.test
            scores = predict(test.X)
            values.append(list(pairgram.evaluate(metrics, test.y, scores, test.qid).values()))
            maps.append(metrics[0](test.y, scores, test.qid, per_query=True))
        means = dict(zip(names, np.mean(values, axis=0), strict=True))
        results[way] = Result(means, np.concatenate(maps), time)
        quality = f"MAP {means['map']:.4f}, NDCG@10 {means['ndcg@10']:.4f}"
        progress(f"{way}: {quality}, {seconds(time)}")
    return results


def tables(name: str, folder: Path, ways: Mapping[str, Trainer]) -> Iterator[str]:
    """Yield the tables of one data set."""
    folds = list(pairgram.load_letor_folds(folder / name))
    for train in ways.values():  # loads what is loaded on first use
        train(folds[0])
    results = run(folds, ways, CONVENTIONS[name])
    if LIGHTGBM in results:
        budget = results[LIGHTGBM].time / 5 / len(folds)
        hurried = functools.partial(train_automatic, time_budget=budget)
        results |= run(folds, {HURRIED: hurried}, CONVENTIONS[name])
    yield f"{name}: means over five test parts"
    yield comparison(results)
    if name == "OHSUMED" and {RANK_RLS, POINTWISE} <= set(results):
        yield "OHSUMED: as published (25 features) | here (45 features of LETOR 3.0) | difference"
        yield published(results[RANK_RLS].means, results[POINTWISE].means)


def comparison(results: Mapping[str, Result]) -> str:
    """Return the table of all ways: quality, time, LightGBM's time divided by it, intervals."""
    rows = []
    peers = [peer for peer in PEERS if peer in results]
    for way, (values, maps, time) in results.items():
        quality = [f"{values[name]:.4f}" for name in ("map", "ndcg@10", "mean_ndcg")]
        leads = ["" if way == peer else _interval(maps - results[peer].maps) for peer in peers]
        faster = f"{results[LIGHTGBM].time / time:.0f}" if LIGHTGBM in results else ""
        rows.append([way, *quality, *leads, seconds(time), faster])
    leads = [f"MAP ahead of {peer.split(',')[0].removesuffix(' lambdarank')}" for peer in peers]
    header = ["way", "MAP", "NDCG@10", "MeanNDCG", *leads, "time", "times faster than LightGBM"]
    return markdown_table(header, rows)


def _interval(leads: np.ndarray) -> str:
    """Return the 95 % bootstrap interval of the mean of differences in the single queries."""
    leads = leads[~np.isnan(leads)]
    rows = np.random.default_rng(0).integers(0, len(leads), (RESAMPLES, len(leads)))
    low, high = np.quantile(leads[rows].mean(axis=1), [0.025, 0.975])
    return f"{low:+.4f} … {high:+.4f}"


def published(rank_rls: Mapping[str, float], rls: Mapping[str, float]) -> str:
    """Return the table of the paper's values beside ours."""
    rows = []
    for name, paper in PAPER.items():
        row = [name.upper()]
        for theirs, ours in zip(paper, (rank_rls[name], rls[name]), strict=True):
            row += [f"{theirs:.3f}", f"{ours:.3f}", f"{ours - theirs:+.3f}"]
        rows.append(row)
    columns = [f"{way}: {what}" for way in ("RankRLS", "RLS") for what in ("paper", "ours", "diff")]
    return markdown_table(["measure", *columns], rows)


def default_folder() -> Path:
    """Return where the data lie: PAIRGRAM_DATA, else ../shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("PAIRGRAM_DATA", beside))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print quality and time on LETOR's data.")
    parser.add_argument("sets", nargs="*", metavar="DATA_SET", help=", ".join(CONVENTIONS))
    parser.add_argument("--data", type=Path, default=default_folder(), metavar="FOLDER")
    parser.add_argument(
        "--way", default="", metavar="WORDS", help="run only the ways whose names hold these words"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="of all sides, and of BLAS")
    parser.add_argument(
        "--budget", type=float, nargs="+", default=[], metavar="SECONDS", help="of AutoRanker"
    )
    parser.add_argument(
        "--lightgbm-random", type=int, default=0, metavar="N", help="how many settings are drawn"
    )
    parser.add_argument("--xgboost", action="store_true", help="compare with XGBoost too")
    parser.add_argument("--catboost", action="store_true", help="compare with CatBoost too")
    arguments = parser.parse_args()
    unknown = set(arguments.sets) - set(CONVENTIONS)
    if unknown:
        parser.error(f"unknown data set {min(unknown)!r}; they are {', '.join(CONVENTIONS)}")
    known = trainers(
        use_threads(arguments.threads),
        arguments.budget,
        arguments.lightgbm_random,
        arguments.xgboost,
        arguments.catboost,
    )
    ways = {way: train for way, train in known.items() if arguments.way in way}
    if not ways:
        parser.error(f"no way has {arguments.way!r} in its name; they are {'; '.join(known)}")
    peers = [name for name in ("xgboost", "catboost") if getattr(arguments, name)]
    print(machine_line(("numpy", "scipy", "lightgbm", *peers)))
    for name in arguments.sets or CONVENTIONS:
        for text in tables(name, arguments.data, ways):
            print(f"\n{text}", flush=True)


if __name__ == "__main__":
    main()
