"""Chen et al. 2014: ELMRank on drug activities and ratings, beside the paper's tables.

    python bench/papers/chen_elmrank.py [--data FOLDER] [--pictures FOLDER] [--threads N]
        [--movielens ratings.dat] [--jester jester-data-1.csv ...] [--no-qsar] [--trials N]

H. Chen, J. Peng, Y. Zhou, L. Li, Z. Pan. Extreme learning machine for ranking: generalization
analysis and applications. Neural Networks 53, 2014. FOLDER/qsar holds DHFR and COX2 of Sutherland,
O'Brien and Weaver 2004; see `qsar`. Table 4, and Figures 1 and 2 as pictures. Tables 1 to 3 need
files of MovieLens 1M and of Jester, which are not the project's to give: download them from
https://grouplens.org/datasets/movielens and https://eigentaste.berkeley.edu/dataset.

All ELMRank models have 100 sigmoid nodes, and the paper's grids for λ and C, chosen by ten-fold
cross-validation of the training rows in random order. So is the range of the nodes' parameters,
of two, but for the figures. Beside them are kernel models with an rbf kernel, whose γ and ridge are
chosen by the same folds. Of one query their paths of ridges are the same: what tells them apart is
the loss by which they are chosen, see `KERNEL_MODELS`.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from qsar import DATA_SETS, MEASURES, Qsar, load_qsar, measured
from recommendation import GROUPS, Ratings, load_jester, load_movielens, problems
from shared import comparison, markdown_table, parser, picture, progress, seconds, start, stopwatch
from sklearn.model_selection import KFold

import pairgram

RANGE = (-1.0, 1.0)
RANGES = [RANGE, (-0.3, 0.3)]
N_TRIALS = 50
N_SUBSETS = 10
N_DRAWS = 10
ONE_DRAW, AVERAGED = "ELMRank", f"ELMRank, {N_DRAWS} draws"
# fmt: off
# Table 4, in the order of `MEASURES`.
TABLE_4: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "DHFR": {
        "SVR": (0.1837, 0.7519, 0.5571, 0.7752, 0.8540),
        "RankSVM": (0.1726, 0.7618, 0.5747, 0.7758, 0.8632),
        "ELMRank": (0.1699, 0.7567, 0.5762, 0.7784, 0.8642),
    },
    "COX2": {
        "SVR": (0.3138, 0.5836, 0.4351, 0.6100, 0.9399),
        "RankSVM": (0.3173, 0.5703, 0.4346, 0.6174, 0.9231),
        "ELMRank": (0.3010, 0.6062, 0.4390, 0.6287, 0.9225),
    },
}
# Tables 1-3: ELMRank's MSD, M1D and percentage of misranked pairs for every group.
TABLES_1_TO_3: Mapping[str, tuple[tuple[float, float, float], ...]] = {
    "MovieLens": ((1.98, 1.03, np.nan), (2.00, 1.03, 45.5), (1.96, 1.07, 43.6)),
    "Jester": ((37.64, 4.57, 41.3), (38.98, 4.63, 39.3), (34.30, 4.37, 37.5)),
}
# fmt: on
LOSSES = ("MSD", "M1D", "misranked %")
GAMMAS = 2.0 ** np.arange(-8, 3, 2)
# The settings of `RankRLSCV` whose path holds a model, what it is chosen by, the model of a ridge.
KERNEL_MODELS: Mapping[str, tuple[dict[str, str], str, Callable[[float], Any]]] = {
    "MPRank": ({"scope": "global"}, "msd", lambda alpha: pairgram.MPRank(1 / (2 * alpha))),
    "LSSVR": (
        {"scope": "global", "weighting": "documents"},
        "msd",
        lambda alpha: pairgram.LSSVR(1 / alpha),
    ),
    "RankRLS": ({}, "pairwise_accuracy", pairgram.RankRLS),
}


def shuffled(seed: int, n_rows: int = 20) -> KFold:
    """Return ten folds in random order, fewer for less than two rows a fold.

    The rows of DHFR come in an order of their own, so folds of neighbours choose badly.
    """
    return KFold(min(10, n_rows // 2), shuffle=True, random_state=seed)


def search(seed: int, threads: int, **settings: Any) -> Any:
    """Return an ELMRank that chooses λ and C."""
    settings = {"cv": shuffled(seed), "weight_range": RANGE, **settings}
    return pairgram.ELMRankCV(**settings, random_state=seed, n_threads=threads)


def choose_kernel_model(name: str, X: np.ndarray, y: np.ndarray, folds: KFold, threads: int) -> Any:
    """Fit one of `KERNEL_MODELS`, γ and the ridge chosen by held-out folds of the rows."""
    settings, scoring, model_of = KERNEL_MODELS[name]
    search = pairgram.RankRLSCV(
        kernel="rbf", gamma=GAMMAS, cv=folds, scoring=scoring, n_threads=threads, **settings
    ).fit(X, y)
    kernel = {"kernel": "rbf", "gamma": search.gamma_, "n_threads": threads}
    return model_of(search.alpha_).set_params(**kernel).fit(X, y)


def trials(data: Qsar, n_trials: int, threads: int) -> np.ndarray:
    """Return test scores of machines with nodes, folds and choice of their own, (n_trials, n)."""
    scores = [
        search(seed, threads, weight_range=RANGES)
        .fit(data.X_train, data.y_train)
        .predict(data.X_test)
        for seed in range(n_trials)
    ]
    return np.array([s - s.mean() for s in scores])


def table_4(name: str, data: Qsar, n_trials: int, threads: int) -> str:
    """Return Table 4 for one data set: ELMRank in three ways, and kernel models."""
    own_time, scores = stopwatch(functools.partial(trials, data, n_trials, threads))
    averaged = search(0, threads, n_estimators=n_trials, weight_range=RANGES)
    fits = {"ELMRank, one choice for all nodes": functools.partial(averaged.fit, *data[:2])}
    for kind in KERNEL_MODELS:
        fits[f"{kind}, rbf"] = functools.partial(
            choose_kernel_model, kind, *data[:2], shuffled(0), threads
        )
    y = data.y_test
    single = np.array([measured(y, s) for s in scores])
    mean, spread = single.mean(axis=0), single.std(axis=0, ddof=1)
    columns = {f"paper: {way}": [f"{v:.4f}" for v in c] + [""] for way, c in TABLE_4[name].items()}
    columns["ELMRank, a single trial"] = [
        *(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, spread, strict=True)),
        seconds(own_time / n_trials),
    ]
    columns[f"ELMRank, mean score of {n_trials} trials"] = [
        *(f"{v:.4f}" for v in measured(y, scores.mean(axis=0))),
        seconds(own_time),
    ]
    for way, fit in fits.items():
        time, model = stopwatch(fit)
        values = measured(y, model.predict(data.X_test))
        columns[way] = [*(f"{v:.4f}" for v in values), seconds(time)]
    rows = zip([*MEASURES, "time"], *columns.values(), strict=True)
    return markdown_table([name, *columns], rows)


def learning_curves(
    data: Qsar, sizes: np.ndarray, threads: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return measures on the test rows over training sizes, for growing subsets of the rows.

    Returns
    -------
    ndarray of shape (n_subsets, n_sizes, 5)
        The measures of ELMRank, scores averaged over `N_DRAWS`.
    dict of str to ndarray of shape (n_subsets, n_sizes)
        MSD of ELMRank and of LSSVR.
    """
    msd = pairgram.get_metric("msd")
    values = np.empty((N_SUBSETS, len(sizes), len(MEASURES)))
    losses = {name: np.empty((N_SUBSETS, len(sizes))) for name in (ONE_DRAW, AVERAGED, "LSSVR")}
    for i in range(N_SUBSETS):
        order = np.random.default_rng(i).permutation(len(data.y_train))
        for j, size in enumerate(sizes):
            X, y = data.X_train[order[:size]], data.y_train[order[:size]]
            folds = shuffled(i, size)
            lssvr = choose_kernel_model("LSSVR", X, y, folds, threads)
            scores = {"LSSVR": lssvr.predict(data.X_test)}
            for name, n_draws in ((ONE_DRAW, 1), (AVERAGED, N_DRAWS)):
                model = search(i, threads, cv=folds, n_estimators=n_draws).fit(X, y)
                scores[name] = model.predict(data.X_test)
            values[i, j] = measured(data.y_test, scores[AVERAGED])
            for name, loss in losses.items():
                loss[i, j] = msd(data.y_test, scores[name])
    return values, losses


def figures(folder: Path, sets: Mapping[str, Qsar], threads: int) -> str:
    """Draw Figures 1 and 2; return some of the numbers."""
    rows = []
    curves = {}
    for name, data in sets.items():
        progress(f"learning curves, {name}")
        sizes = np.append(np.arange(10, len(data.y_train), 10), len(data.y_train))
        curves[name] = sizes, *learning_curves(data, sizes, threads)
    with picture(folder, "chen_elmrank_figure_1", 1, len(sets)) as axes:
        for axis, (name, (sizes, values, _)) in zip(axes[0], curves.items(), strict=True):
            axis.plot(sizes, values.mean(axis=0), label=list(MEASURES))
            axis.set(title=f"{AVERAGED}: {name}", xlabel="training rows", ylim=(0, 1))
            axis.legend(fontsize="small")
    with picture(folder, "chen_elmrank_figure_2", 1, len(sets)) as axes:
        for axis, (name, (sizes, _, losses)) in zip(axes[0], curves.items(), strict=True):
            for label, loss in losses.items():
                axis.plot(sizes, np.median(loss, axis=0), label=label)
            axis.set(title=name, xlabel="training rows", ylabel="MSD of the test rows, median")
            axis.legend()
    for name, (sizes, values, losses) in curves.items():
        for j in sorted({0, 1, 4, len(sizes) // 2, len(sizes) - 1}):
            error = f"{values[:, j, 0].mean():.4f}"
            cells = [f"{np.median(loss[:, j]):.3f}" for loss in losses.values()]
            rows.append([name, str(sizes[j]), error, *cells])
    header = ["", "training rows", f"{AVERAGED}: ranking error", *(f"{n}: MSD" for n in losses)]
    return markdown_table(header, rows)


def recommend(
    name: str, ratings: Ratings, *, n_experiments: int, threads: int, **sizes: int
) -> str:
    """Return Tables 1-3 for one data set: one ranker a test reviewer, all of them in one call."""
    metrics = [pairgram.get_metric(metric) for metric in ("msd", "m1d", "misranking")]
    ours, paper, total = {}, {}, 0.0
    for group, cells in zip(GROUPS, TABLES_1_TO_3[name], strict=True):
        values = np.empty((n_experiments, len(metrics)))
        for i in range(n_experiments):
            progress(f"{name} {group}, experiment {i + 1} of {n_experiments}")
            tests = list(problems(ratings, group, np.random.default_rng(i), **sizes))
            estimator = search(i, threads, weight_range=RANGES)
            train = functools.partial(
                pairgram.fit_many, estimator, [(t.X_train, t.y_train) for t in tests]
            )
            time, batch = stopwatch(train)
            total += time
            scores = [
                model.predict(test.X_test) for model, test in zip(batch.models, tests, strict=True)
            ]
            qid = np.repeat(np.arange(len(tests)), [len(test.y_test) for test in tests])
            labels = np.concatenate([test.y_test for test in tests])
            found = pairgram.evaluate(metrics, labels, np.concatenate(scores), qid)
            values[i] = list(found.values())
        key = f"{name} {group[0]}-{group[1]}"
        ours[key], paper[key] = values * (1, 1, 100), cells
    table = comparison(paper, ours, LOSSES, spread=True, decimals=2)
    per_model = total / (len(GROUPS) * n_experiments * len(tests))
    return f"{table}\n\nTraining and choosing: {seconds(per_model)} a reviewer"


def options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    made = parser("Print the tables of Chen et al. 2014 beside ours.")
    made.add_argument("--no-qsar", action="store_true", help="leave Table 4 and the figures out")
    made.add_argument("--trials", type=int, default=N_TRIALS, metavar="N")
    made.add_argument("--movielens", type=Path, metavar="FILE", help="ratings.dat of MovieLens 1M")
    made.add_argument("--jester", type=Path, nargs="+", metavar="FILE", help="jester-data-*.csv")
    made.add_argument("--experiments", type=int, default=10, metavar="N", help="of a group")
    made.add_argument("--reviewers", type=int, default=300, metavar="N", help="of an experiment")
    made.add_argument("--references", type=int, default=300, metavar="N", help="of a reviewer")
    return made


def main() -> None:
    """Print the tables, draw the pictures."""
    arguments = options().parse_args()
    threads = start(arguments)
    if not arguments.no_qsar:
        sets = {name: load_qsar(arguments.data, name) for name in DATA_SETS}
        for name, data in sets.items():
            progress(f"Table 4, {name}")
            print(f"\n{table_4(name, data, arguments.trials, threads)}", flush=True)
        print(f"\n{figures(arguments.pictures, sets, threads)}", flush=True)
    given = {}
    if arguments.movielens is not None:
        given["MovieLens"] = functools.partial(load_movielens, arguments.movielens)
    if arguments.jester is not None:
        given["Jester"] = functools.partial(load_jester, arguments.jester)
    for name, load in given.items():
        text = recommend(
            name,
            load(),
            n_experiments=arguments.experiments,
            threads=threads,
            n_reviewers=arguments.reviewers,
            n_references=arguments.references,
        )
        print(f"\n{text}", flush=True)


if __name__ == "__main__":
    main()
