"""Chen et al. 2014: ELMRank on drug activities and ratings, beside the paper's tables.

    python bench/papers/chen_elmrank.py [--data FOLDER] [--pictures FOLDER] [--threads N]
        [--movielens ratings.dat] [--jester jester-data-1.csv ...] [--books BX-Book-Ratings.csv]
        [--made] [--no-qsar] [--trials N] [--experiments N] [--reviewers N] [--references N]

H. Chen, J. Peng, Y. Zhou, L. Li, Z. Pan. Extreme learning machine for ranking: generalization
analysis and applications. Neural Networks 53, 2014. FOLDER/qsar holds DHFR and COX2 of Sutherland,
O'Brien and Weaver 2004; see `qsar`. Table 4, and Figures 1 and 2 as pictures. Tables 1 to 3 need
files of MovieLens 1M, Jester and Book-Crossing, which are not the project's to give: download them
from https://grouplens.org/datasets/movielens, https://eigentaste.berkeley.edu/dataset and
http://www2.informatik.uni-freiburg.de/~cziegler/BX. With --made the tables of files that are not
given are those of made ratings of the same shape, whose cells show that the runs work, not how
good the methods are. Without files and without it, the paper's cells stand alone.

All ELMRank models have 100 sigmoid nodes, and the paper's grids for λ and C, chosen by ten-fold
cross-validation of the training rows in random order. So is the range of the nodes' parameters,
of two, but for the figures. Beside them are kernel models with an rbf kernel, whose γ and ridge are
chosen by the same folds. Of one query their paths of ridges are the same: what tells them apart is
the loss by which they are chosen, see `KERNEL_MODELS`. SVR, RankSVM, SVRank and RankBoost have
their settings from the same folds too, see `COMPARATORS`.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparators import RankBoost, RankSVM, SVRank, choose
from qsar import DATA_SETS, MEASURES, Qsar, load_qsar, measured
from recommendation import (
    GROUPS,
    Problem,
    Ratings,
    leave_one_out,
    load_books,
    load_jester,
    load_movielens,
    made_ratings,
    problems,
)
from shared import comparison, markdown_table, parser, picture, progress, seconds, start, stopwatch
from sklearn.model_selection import KFold
from sklearn.svm import SVR

import pairgram

RANGE = (-1.0, 1.0)
RANGES = [RANGE, (-0.3, 0.3)]  # of the weights and biases of nodes
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
# Tables 1-3: mean and standard deviation, for each group MSD, M1D and the percentage of misranked
# pairs. RankBoost's scores have no scale, so that only its misranked pairs mean something.
NONE = (np.nan, np.nan)
TABLES_1_TO_3: Mapping[str, Mapping[str, tuple[tuple[float, float], ...]]] = {
    "MovieLens": {
        "MPRank": (
            (2.01, 0.02), (1.04, 0.05), NONE,
            (2.02, 0.06), (1.04, 0.02), (47.1, 0.5),
            (2.07, 0.05), (1.06, 0.01), (44.2, 0.5),
        ),
        "SVRank": (
            (2.43, 0.13), (1.17, 0.03), NONE,
            (2.36, 0.16), (1.15, 0.07), NONE,
            (2.66, 0.09), (1.24, 0.02), NONE,
        ),
        "RankBoost": (
            NONE, NONE, NONE,
            NONE, NONE, (47.6, 0.7),
            NONE, NONE, (46.3, 1.1),
        ),
        "ELMRank": (
            (1.98, 0.04), (1.03, 0.02), NONE,
            (2.00, 0.04), (1.03, 0.01), (45.5, 0.4),
            (1.96, 0.04), (1.07, 0.01), (43.6, 0.5),
        ),
    },
    "Jester": {
        "MPRank": (
            (51.34, 2.90), (5.08, 0.15), (41.0, 0.6),
            (46.77, 2.03), (4.98, 0.13), (40.8, 0.6),
            (49.33, 3.11), (4.88, 0.14), (37.1, 0.6),
        ),
        "SVRank": (
            (55.00, 5.14), (5.40, 0.20), NONE,
            (57.75, 5.14), (5.27, 0.20), NONE,
            (56.06, 4.26), (5.25, 0.19), NONE,
        ),
        "RankBoost": (
            NONE, NONE, (47.9, 0.8),
            NONE, NONE, (43.2, 0.5),
            NONE, NONE, (41.7, 0.8),
        ),
        "ELMRank": (
            (37.64, 1.37), (4.57, 0.09), (41.3, 0.6),
            (38.98, 1.61), (4.63, 0.09), (39.3, 0.5),
            (34.30, 1.21), (4.37, 0.08), (37.5, 0.5),
        ),
    },
    "Books": {
        "MPRank": (
            (4.00, 3.12), (1.38, 0.60), NONE,
        ),
        "SVRank": (
            (3.64, 3.04), (1.32, 0.56), NONE,
        ),
        "RankBoost": (
            NONE, NONE, NONE,
        ),
        "ELMRank": (
            (2.81, 3.44), (0.97, 0.77), NONE,
        ),
    },
}
# fmt: on
LOSSES = ("MSD", "M1D", "misranked %")
GAMMAS = 2.0 ** np.arange(-8, 3, 2)
# Settings of `RankRLS`, and what its ridge is chosen by. MPRank is the preset with
# C = 1 / (2 alpha), and LSSVR that with C = 1 / alpha, whose bias changes no order.
KERNEL_MODELS: Mapping[str, tuple[dict[str, str], str]] = {
    "MPRank": ({"pairs": pairgram.Pairs(scope="global")}, "pairwise_squared_error"),
    "LSSVR": (
        {"pairs": pairgram.Pairs(scope="global", weighting="documents")},
        "pairwise_squared_error",
    ),
    "RankRLS": ({}, "pairwise_accuracy"),
}
# What the paper compares with: the model, its grid, and what the settings are chosen by.
PAIR_GRID = {"C": 10.0 ** np.arange(2, 5, 0.5), "gamma": GAMMAS[:4]}
COMPARATORS: Mapping[str, tuple[Any, Mapping[str, Any], str]] = {
    "SVR": (SVR(), {"C": 10.0 ** np.arange(-1, 4), "gamma": GAMMAS}, "pairwise_squared_error"),
    "RankSVM": (RankSVM(), PAIR_GRID, "ranking_error"),
    "SVRank": (SVRank(), PAIR_GRID, "pairwise_squared_error"),
    "RankBoost": (RankBoost(), {"n_rounds": (10, 30, 100)}, "misranking"),
}


def shuffled(seed: int, n_rows: int = 20) -> KFold:
    """Return ten folds in random order, fewer for less than two rows a fold.

    The rows of DHFR come in an order of their own, so folds of neighbours choose badly.
    """
    return KFold(min(10, n_rows // 2), shuffle=True, random_state=seed)


def nodes_of(bounds: tuple[float, float]) -> Any:
    """Return nodes with weights and biases from a range."""
    return pairgram.RandomNodes(100, weight_range=bounds, bias_range=bounds)


MAPS = [*map(nodes_of, RANGES)]


def search(seed: int, **settings: Any) -> Any:
    """Return an ELMRank that chooses λ and C."""
    settings = {"cv": shuffled(seed), "feature_map": nodes_of(RANGE), **settings}
    return pairgram.ELMRankCV(**settings, random_state=seed)


def choose_kernel_model(name: str, X: np.ndarray, y: np.ndarray, folds: KFold) -> Any:
    """Fit one of `KERNEL_MODELS`, γ and the ridge chosen by held-out folds of the rows."""
    settings, scoring = KERNEL_MODELS[name]
    kernels = [pairgram.Kernel("rbf", gamma=gamma) for gamma in GAMMAS]
    search = pairgram.RankRLSCV(feature_map=kernels, cv=folds, scoring=scoring, **settings)
    search.fit(X, y)
    kernel = {"feature_map": pairgram.Kernel("rbf", gamma=search.feature_map_.gamma_)}
    return pairgram.RankRLS(search.alpha_, **kernel, **settings).fit(X, y)


def choose_comparator(name: str, X: np.ndarray, y: np.ndarray, folds: KFold) -> Any:
    """Fit one of `COMPARATORS`, its settings chosen by held-out folds of the rows."""
    model, grid, scoring = COMPARATORS[name]
    return choose(model, grid, X, y, folds=folds, scoring=scoring)


def trials(data: Qsar, n_trials: int) -> np.ndarray:
    """Return test scores of machines with nodes, folds and choice of their own, (n_trials, n)."""
    scores = [
        search(seed, feature_map=MAPS).fit(data.X_train, data.y_train).predict(data.X_test)
        for seed in range(n_trials)
    ]
    return np.array([s - s.mean() for s in scores])


def table_4(name: str, data: Qsar, n_trials: int) -> str:
    """Return Table 4 for one data set: the paper's, its methods, and other kernel models."""
    own_time, scores = stopwatch(functools.partial(trials, data, n_trials))
    averaged = search(0, n_estimators=n_trials, feature_map=MAPS)
    fits = {
        name: functools.partial(choose_comparator, name, *data[:2], shuffled(0))
        for name in ("SVR", "RankSVM")
    }
    fits["ELMRank, one choice for all nodes"] = functools.partial(averaged.fit, *data[:2])
    for kind in KERNEL_MODELS:
        fits[f"{kind}, rbf"] = functools.partial(choose_kernel_model, kind, *data[:2], shuffled(0))
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


def learning_curves(data: Qsar, sizes: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return measures on the test rows over training sizes, for growing subsets of the rows.

    Returns
    -------
    ndarray of shape (n_subsets, n_sizes, 5)
        The measures of ELMRank, scores averaged over `N_DRAWS`.
    dict of str to ndarray of shape (n_subsets, n_sizes)
        MSD of ELMRank and of LSSVR.
    """
    msd = pairgram.get_metric("pairwise_squared_error")
    values = np.empty((N_SUBSETS, len(sizes), len(MEASURES)))
    losses = {name: np.empty((N_SUBSETS, len(sizes))) for name in (ONE_DRAW, AVERAGED, "LSSVR")}
    for i in range(N_SUBSETS):
        order = np.random.default_rng(i).permutation(len(data.y_train))
        for j, size in enumerate(sizes):
            X, y = data.X_train[order[:size]], data.y_train[order[:size]]
            folds = shuffled(i, size)
            lssvr = choose_kernel_model("LSSVR", X, y, folds)
            scores = {"LSSVR": lssvr.predict(data.X_test)}
            for name, n_draws in ((ONE_DRAW, 1), (AVERAGED, N_DRAWS)):
                model = search(i, cv=folds, n_estimators=n_draws).fit(X, y)
                scores[name] = model.predict(data.X_test)
            values[i, j] = measured(data.y_test, scores[AVERAGED])
            for name, loss in losses.items():
                loss[i, j] = msd(data.y_test, scores[name])
    return values, losses


def figures(folder: Path, sets: Mapping[str, Qsar]) -> str:
    """Draw Figures 1 and 2; return some of the numbers."""
    rows = []
    curves = {}
    for name, data in sets.items():
        progress(f"learning curves, {name}")
        sizes = np.append(np.arange(10, len(data.y_train), 10), len(data.y_train))
        curves[name] = sizes, *learning_curves(data, sizes)
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


def groups_of(name: str) -> Sequence[tuple[int, int] | None]:
    """Return the groups of reviewers of Tables 1-3; the books have none."""
    return [None] if name == "Books" else GROUPS


def tables_1_to_3(
    name: str, ours: Mapping[str, np.ndarray] | None = None, *, made: bool = False
) -> str:
    """Return Tables 1-3 for one data set, of values (n_experiments, 3 n_groups) or without ours."""
    paper = TABLES_1_TO_3[name]
    rows = [
        loss if group is None else f"{group[0]}-{group[1]}: {loss}"
        for group in groups_of(name)
        for loss in LOSSES
    ]
    if ours is None:
        ours = dict.fromkeys(paper, np.full((1, len(rows)), np.nan))
    return comparison(paper, ours, rows, spread=True, decimals=2, difference=not made)


def experiments(
    ratings: Ratings, group: tuple[int, int] | None, n_experiments: int, **sizes: int
) -> Iterator[list[Problem]]:
    """Yield the problems of one experiment after another; without a group, of each reviewer."""
    if group is None:
        yield from ([problem] for problem in leave_one_out(ratings, np.random.default_rng(0)))
    else:
        for i in range(n_experiments):
            yield list(problems(ratings, group, np.random.default_rng(i), **sizes))


def fit_each(way: str, tests: list[Problem], seed: int) -> Sequence[Any]:
    """Fit a column of Tables 1-3 to every problem, its settings chosen for each."""
    folds = shuffled(seed, min(len(test.y_train) for test in tests))
    if way == "ELMRank":
        estimator = search(seed, cv=folds, feature_map=MAPS)
        return pairgram.fit_many(estimator, [(t.X_train, t.y_train) for t in tests]).models
    fit = choose_kernel_model if way in KERNEL_MODELS else choose_comparator
    return [fit(way, test.X_train, test.y_train, folds) for test in tests]


def losses_of(way: str, tests: list[Problem], models: Sequence[Any]) -> np.ndarray:
    """Return the means of `LOSSES` over the problems, (3,), NaN where they mean nothing."""
    scores = [model.predict(test.X_test) for model, test in zip(models, tests, strict=True)]
    qid = np.repeat(np.arange(len(tests)), [len(test.y_test) for test in tests])
    labels = np.concatenate([test.y_test for test in tests])
    metrics = ["pairwise_squared_error", "pairwise_absolute_error", "misranking"]
    found = pairgram.evaluate(metrics, labels, np.concatenate(scores), qid)
    values = np.array(list(found.values())) * (1, 1, 100)
    values[:2] = np.nan if way == "RankBoost" else values[:2]
    return values


def recommend(name: str, ratings: Ratings, *, made: bool, n_experiments: int, **sizes: int) -> str:
    """Return Tables 1-3 for one data set: one ranker a test reviewer, in every column."""
    paper = TABLES_1_TO_3[name]
    parts: dict[str, list[np.ndarray]] = {way: [] for way in paper}
    times, n_models = dict.fromkeys(paper, 0.0), 0
    for group in groups_of(name):
        found: dict[str, list[np.ndarray]] = {way: [] for way in paper}
        for i, tests in enumerate(experiments(ratings, group, n_experiments, **sizes)):
            progress(f"{name} {group or ''}, experiment {i + 1}")
            n_models += len(tests)
            for way in paper:
                time, models = stopwatch(functools.partial(fit_each, way, tests, i))
                times[way] += time
                found[way].append(losses_of(way, tests, models))
        for way, values in found.items():
            parts[way].append(np.array(values))
    ours = {way: np.concatenate(values, axis=1) for way, values in parts.items()}
    table = tables_1_to_3(name, ours, made=made)
    spent = [[way, seconds(time / n_models)] for way, time in times.items()]
    return f"{table}\n\n{markdown_table([name, 'training and choosing, a reviewer'], spent)}"


def options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    made = parser("Print the tables of Chen et al. 2014 beside ours.")
    made.add_argument("--no-qsar", action="store_true", help="leave Table 4 and the figures out")
    made.add_argument("--trials", type=int, default=N_TRIALS, metavar="N")
    made.add_argument("--movielens", type=Path, metavar="FILE", help="ratings.dat of MovieLens 1M")
    made.add_argument("--jester", type=Path, nargs="+", metavar="FILE", help="jester-data-*.csv")
    made.add_argument("--books", type=Path, metavar="FILE", help="BX-Book-Ratings.csv")
    made.add_argument(
        "--made", action="store_true", help="make the ratings of data sets without a file"
    )
    made.add_argument("--experiments", type=int, default=10, metavar="N", help="of a group")
    made.add_argument("--reviewers", type=int, default=300, metavar="N", help="of an experiment")
    made.add_argument("--references", type=int, default=300, metavar="N", help="of a reviewer")
    return made


def main() -> None:
    """Print the tables, draw the pictures."""
    arguments = options().parse_args()
    start(arguments)
    if not arguments.no_qsar:
        sets = {name: load_qsar(arguments.data, name) for name in DATA_SETS}
        for name, data in sets.items():
            progress(f"Table 4, {name}")
            print(f"\n{table_4(name, data, arguments.trials)}", flush=True)
        print(f"\n{figures(arguments.pictures, sets)}", flush=True)
    loaders = {"MovieLens": load_movielens, "Jester": load_jester, "Books": load_books}
    for name, load in loaders.items():
        files = getattr(arguments, name.lower())
        if files is None and not arguments.made:
            print(f"\nTables 1-3, {name}: no file\n\n{tables_1_to_3(name)}")
            continue
        text = recommend(
            name,
            made_ratings(name) if files is None else load(files),
            made=files is None,
            n_experiments=arguments.experiments,
            n_reviewers=arguments.reviewers,
            n_references=arguments.references,
        )
        of = "made ratings" if files is None else "the public file"
        print(f"\nTables 1-3, {name}: {of}\n\n{text}", flush=True)


if __name__ == "__main__":
    main()
