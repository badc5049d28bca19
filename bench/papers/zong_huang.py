"""Zong and Huang 2013: pointwise and pairwise ELM on OHSUMED, beside the paper's tables.

    python bench/papers/zong_huang.py [--data FOLDER] [--pictures FOLDER] [--threads N] [--seeds N]

W. Zong, G.-B. Huang. Learning to rank with extreme learning machine. Neural Processing Letters,
2013. FOLDER/OHSUMED, and TD2003 and TD2004 if they are there, hold LETOR 3.0's S1.txt ... S5.txt;
see bench/letor.py. Each of the five folds trains on three parts, chooses C by MAP on the fourth and
is tested on the fifth. MAP, NDCG and P are those of LETOR's evaluation tools. Nodes are 1000 linear
random nodes: mean and standard deviation over seeds. RankSVM is linear, with a squared hinge.
Prints Tables 1 to 3, what remains of the differences, times, Figure 2's surface, and on made data
of the shapes of TD2003 and TD2004 the times of the cells that cost the paper too much (TD2004 with
the linear kernel).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from shared import comparison, markdown_table, parser, picture, progress, seconds, start, stopwatch

import pairgram
from pairgram.datasets import Fold

CS = 2.0 ** np.arange(-30, 21, 2)
NODES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
N_FOLDS = 5
MAP = pairgram.get_metric("map", "letor")
AT_CUTS = {"OHSUMED": "ndcg", "TD2003": "p", "TD2004": "p"}
MEASURES = {
    name: [MAP, *(pairgram.get_metric(f"{metric}@{k}", "letor") for k in range(1, 11))]
    for name, metric in AT_CUTS.items()
}
ROWS = {
    name: [f"MAP F{i}" for i in range(1, N_FOLDS + 1)] + [f"{m.name.upper()} mean" for m in metrics]
    for name, metrics in MEASURES.items()
}
RANK_SVM_CS = 2.0 ** np.arange(-13, 6)  # of Chen et al. 2017
# Rows, queries and features of the data sets that are made for times.
SHAPES = {"TD2003": (49_058, 50, 44), "TD2004": (74_146, 75, 64)}

# Tables 1-3: MAP of folds 1-5 and their mean, then the means of NDCG@1 ... NDCG@10 for OHSUMED, of
# P@1 ... P@10 for the others. The linear kernel cost too much on TD2004.
REGRESSION, REGULARIZED, RANK_SVM = "Regression", "Regularized", "RankSVM"
POINT_NODES, POINT_KERNEL = "pointwise nodes", "pointwise kernel"
PAIR_NODES, PAIR_KERNEL = "pairwise nodes", "pairwise kernel"
NONE = (np.nan,) * 16
# fmt: off
PAPER: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "OHSUMED": {
        REGRESSION: (
            0.2979, 0.4302, 0.4398, 0.4978, 0.4442, 0.4220,
            0.4456, 0.4532, 0.4426, 0.4368, 0.4278, 0.4216, 0.4217, 0.4187, 0.4136, 0.4110,
        ),
        REGULARIZED: (
            0.3374, 0.4351, 0.4703, 0.5061, 0.4703, 0.4439,
            0.5361, 0.4784, 0.4740, 0.4601, 0.4568, 0.4536, 0.4449, 0.4444, 0.4427, 0.4436,
        ),
        POINT_NODES: (
            0.3421, 0.4510, 0.4734, 0.5137, 0.4574, 0.4475,
            0.5550, 0.4932, 0.4874, 0.4739, 0.4696, 0.4623, 0.4556, 0.4565, 0.4529, 0.4501,
        ),
        POINT_KERNEL: (
            0.3459, 0.4466, 0.4751, 0.5127, 0.4724, 0.4505,
            0.5232, 0.5024, 0.4975, 0.4896, 0.4782, 0.4685, 0.4645, 0.4616, 0.4627, 0.4607,
        ),
        RANK_SVM: (
            0.3038, 0.4468, 0.4648, 0.4990, 0.4528, 0.4334,
            0.4958, 0.4331, 0.4207, 0.4240, 0.4164, 0.4159, 0.4133, 0.4072, 0.4124, 0.4140,
        ),
        PAIR_NODES: (
            0.3421, 0.4483, 0.4707, 0.5118, 0.4639, 0.4474,
            0.5211, 0.4977, 0.4895, 0.4742, 0.4691, 0.4589, 0.4557, 0.4496, 0.4466, 0.4422,
        ),
        PAIR_KERNEL: (
            0.3450, 0.4514, 0.4696, 0.5115, 0.4642, 0.4483,
            0.5642, 0.5019, 0.4923, 0.4866, 0.4755, 0.4611, 0.4567, 0.4573, 0.4555, 0.4574,
        ),
    },
    "TD2003": {
        REGRESSION: (
            0.1262, 0.3009, 0.2665, 0.2658, 0.2450, 0.2409,
            0.3200, 0.3000, 0.2600, 0.2450, 0.2160, 0.2133, 0.2057, 0.1950, 0.1844, 0.1780,
        ),
        REGULARIZED: (
            0.1745, 0.2031, 0.3703, 0.2734, 0.1955, 0.2434,
            0.3400, 0.3400, 0.3000, 0.2550, 0.2360, 0.2067, 0.2086, 0.1975, 0.1822, 0.1760,
        ),
        POINT_NODES: (
            0.1677, 0.3010, 0.2673, 0.2466, 0.2437, 0.2453,
            0.3600, 0.3400, 0.2867, 0.2750, 0.2440, 0.2267, 0.2029, 0.2050, 0.1911, 0.1820,
        ),
        POINT_KERNEL: (
            0.1511, 0.2982, 0.4101, 0.2332, 0.2536, 0.2692,
            0.3600, 0.3500, 0.2867, 0.2600, 0.2400, 0.2267, 0.2057, 0.1950, 0.1889, 0.1780,
        ),
        RANK_SVM: (
            0.1637, 0.2576, 0.4079, 0.2356, 0.2490, 0.2628,
            0.3200, 0.3100, 0.2933, 0.2850, 0.2760, 0.2500, 0.2229, 0.2075, 0.2000, 0.1880,
        ),
        PAIR_NODES: (
            0.1555, 0.2965, 0.3242, 0.2707, 0.2395, 0.2573,
            0.3400, 0.3200, 0.2533, 0.2400, 0.2280, 0.2233, 0.2086, 0.1975, 0.1845, 0.1760,
        ),
        PAIR_KERNEL: (
            0.1614, 0.3138, 0.4093, 0.2411, 0.2610, 0.2773,
            0.3600, 0.3400, 0.2800, 0.2700, 0.2600, 0.2333, 0.2200, 0.2025, 0.1911, 0.1820,
        ),
    },
    "TD2004": {
        REGRESSION: (
            0.1725, 0.2117, 0.2196, 0.1910, 0.2442, 0.2078,
            0.3600, 0.3400, 0.3333, 0.3200, 0.3120, 0.2867, 0.2705, 0.2683, 0.2593, 0.2493,
        ),
        REGULARIZED: (
            0.1908, 0.1817, 0.2035, 0.1886, 0.2311, 0.1992,
            0.2933, 0.3200, 0.2978, 0.2833, 0.2720, 0.2644, 0.2629, 0.2500, 0.2415, 0.2347,
        ),
        POINT_NODES: (
            0.2139, 0.2118, 0.2146, 0.2077, 0.2562, 0.2208,
            0.4000, 0.3800, 0.3511, 0.3333, 0.3200, 0.2933, 0.2781, 0.2733, 0.2607, 0.2507,
        ),
        POINT_KERNEL: NONE,
        RANK_SVM: (
            0.2107, 0.2091, 0.2063, 0.2185, 0.2740, 0.2237,
            0.4133, 0.3467, 0.3467, 0.3333, 0.3013, 0.2867, 0.2800, 0.2667, 0.2548, 0.2520,
        ),
        PAIR_NODES: (
            0.2306, 0.2186, 0.1948, 0.2263, 0.2612, 0.2263,
            0.4533, 0.4000, 0.3600, 0.3433, 0.3253, 0.2933, 0.2857, 0.2700, 0.2578, 0.2480,
        ),
        PAIR_KERNEL: NONE,
    },
}
# fmt: on
# The whole powers of two at which test MAP, and NDCG but for a digit or two, is the paper's. Those
# of the pairwise kernel are partly odd, which the grid that the paper states is not.
THEIR_CS = {POINT_KERNEL: (-10, -10, -8, -10, -10), PAIR_KERNEL: (-20, -17, -15, -15, -15)}

Predict = Callable[[Any], np.ndarray]
Trainer = Callable[[Fold, int], Predict]


def train_regression(fold: Fold, _: int = 0) -> Predict:
    """Least squares on labels, with intercept, without a ridge."""
    X, y = fold.train.X, fold.train.y
    weights = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    return lambda rows: rows @ weights[:-1]


def train_regularized(
    fold: Fold, _: int = 0, *, intercept: bool = True, target: str = "label"
) -> Predict:
    """Ridge regression, the ridge chosen by validation MAP; an intercept has no ridge."""
    X, y, qid = fold.train
    labels = y if target == "label" else 2.0**y - 1
    at, level = (X.mean(axis=0), labels.mean()) if intercept else (0.0, 0.0)
    valid = (fold.valid.X - at, fold.valid.y, fold.valid.qid)
    model = pairgram.RankRLSCV(1 / CS, pairs=None, scoring=MAP)
    model.fit(X - at, labels - level, qid=qid, validation=valid)
    return lambda rows: model.predict(rows - at)


def train_elm(fold: Fold, seed: int, *, search: Any, **settings: Any) -> Predict:
    """Choose C by validation MAP."""
    model = search(CS, scoring=MAP, random_state=seed, **settings)
    X, y, qid = fold.train
    fitted: Predict = model.fit(X, y, qid=qid, validation=fold.valid).predict
    return fitted


def train_rank_svm(fold: Fold, _: int) -> Predict:
    """Choose the C of a linear RankSVM by validation MAP."""
    model = pairgram.RankSVMCV(RANK_SVM_CS, scoring=MAP)
    X, y, qid = fold.train
    fitted: Predict = model.fit(X, y, qid=qid, validation=fold.valid).predict
    return fitted


def trainers() -> dict[str, Trainer]:
    """Return what is compared, under the paper's columns."""
    point = functools.partial(train_elm, search=pairgram.PointwiseELMCV)
    pair = functools.partial(train_elm, search=pairgram.PairwiseELMCV)
    return {
        REGRESSION: train_regression,
        REGULARIZED: train_regularized,
        POINT_NODES: point,
        POINT_KERNEL: functools.partial(point, feature_map=pairgram.Kernel("linear")),
        RANK_SVM: train_rank_svm,
        PAIR_NODES: pair,
        PAIR_KERNEL: functools.partial(pair, feature_map=pairgram.Kernel("linear")),
    }


def measure(
    folds: list[Fold], train: Trainer, n_seeds: int, name: str = "OHSUMED"
) -> tuple[np.ndarray, float]:
    """Return the rows of the paper's tables for every seed, (n_seeds, n_rows), and the seconds.

    The seconds are those of training and choosing in all folds, with one seed.
    """
    time, values = 0.0, np.empty((n_seeds, len(folds), len(MEASURES[name])))
    for seed in range(n_seeds):
        for i, fold in enumerate(folds):
            fold_time, predict = stopwatch(functools.partial(train, fold, seed))
            time += fold_time
            X, y, qid = fold.test
            values[seed, i] = list(pairgram.evaluate(MEASURES[name], y, predict(X), qid).values())
    rows = np.concatenate([values[:, :, 0], values.mean(axis=1)], axis=1)
    return rows, time / n_seeds


def train_at_their_C(fold: Fold, _: int, *, column: str) -> Predict:
    """Fit a column of the linear kernel with the C of `THEIR_CS`."""
    model = (pairgram.PointwiseELM if column == POINT_KERNEL else pairgram.PairwiseELM)(
        2.0 ** THEIR_CS[column][int(fold.name[-1]) - 1], feature_map=pairgram.Kernel("linear")
    )
    fitted: Predict = model.fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict
    return fitted


def chosen_Cs(folds: list[Fold]) -> str:
    """Return the C of the linear kernels that validation MAP chooses, beside the paper's."""
    searches = {POINT_KERNEL: pairgram.PointwiseELMCV, PAIR_KERNEL: pairgram.PairwiseELMCV}
    rows = [[fold.name] for fold in folds]
    for column, search in searches.items():
        for row, fold, theirs in zip(rows, folds, THEIR_CS[column], strict=True):
            X, y, qid = fold.train
            model = search(CS, scoring=MAP, feature_map=pairgram.Kernel("linear"))
            model.fit(X, y, qid=qid, validation=fold.valid)
            row += [f"2^{np.log2(model.C_):.0f}", f"2^{theirs}"]
    header = [f"{c}: {what}" for c in searches for what in ("by validation MAP", "paper's")]
    return markdown_table(["C", *header], rows)


def map_path(model: Any, part: Any) -> np.ndarray:
    """Return the MAP of a part for every C of a fitted search on nodes, (n_Cs,)."""
    scores = np.ascontiguousarray(model.coef_path_ @ model.feature_map_.transform(part.X).T)
    return np.asarray(pairgram.evaluate([MAP], part.y, scores, part.qid)["map"])


def baselines(folds: list[Fold]) -> str:
    """Return MAP of the variants of the regularised baseline, which the paper does not describe."""
    rows = [["paper", *(f"{value:.4f}" for value in PAPER["OHSUMED"][REGULARIZED][: N_FOLDS + 1])]]
    for intercept in (True, False):
        for target in ("label", "gain"):
            train = functools.partial(train_regularized, intercept=intercept, target=target)
            values = measure(folds, train, 1)[0][0, : N_FOLDS + 1]
            name = f"{'with' if intercept else 'no'} intercept, target {target}"
            rows.append([name, *(f"{value:.4f}" for value in values)])
    return markdown_table(["Regularized, MAP", *ROWS["OHSUMED"][:N_FOLDS], "mean"], rows)


def surface(fold: Fold, search: Any) -> np.ndarray:
    """Return validation and test MAP over numbers of linear nodes and C, (2, n_nodes, n_Cs)."""
    values = np.empty((2, len(NODES), len(CS)))
    for i, n_nodes in enumerate(NODES):
        X, y, qid = fold.train
        model = search(CS, scoring=MAP, n_nodes=n_nodes, random_state=0)
        model.fit(X, y, qid=qid, validation=fold.valid)
        values[:, i] = [map_path(model, part) for part in (fold.valid, fold.test)]
    return values


def figure_2(fold: Fold, folder: Path) -> str:
    """Draw MAP on fold 1 over the number of nodes and C; return its best per number of nodes."""
    searches = {"pointwise": pairgram.PointwiseELMCV, "pairwise": pairgram.PairwiseELMCV}
    surfaces = {name: surface(fold, search) for name, search in searches.items()}
    with picture(folder, "zong_huang_figure_2", 2, 2) as axes:
        for row, (name, values) in zip(axes, surfaces.items(), strict=True):
            for axis, part, cells in zip(row, ("validation", "test"), values, strict=True):
                mesh = axis.pcolormesh(np.log2(CS), range(len(NODES)), cells, shading="nearest")
                axis.set(title=f"{name}, linear nodes: {part} MAP, fold 1")
                axis.set(xlabel="log2 C", ylabel="nodes")
                axis.set_yticks(range(len(NODES)), [str(n) for n in NODES])
                axis.figure.colorbar(mesh)
    rows = []
    for i, n_nodes in enumerate(NODES):
        cells = []
        for valid, test in (values[:, i] for values in surfaces.values()):
            best = int(np.argmax(valid))
            cells += [f"2^{np.log2(CS[best]):.0f}", f"{valid[best]:.4f}", f"{test[best]:.4f}"]
        rows.append([str(n_nodes), *cells])
    header = [f"{name}: {what}" for name in searches for what in ("C", "validation", "test")]
    return markdown_table(["nodes", *header], rows)


def blank_cells(name: str) -> str:
    """Return the times of a data set's columns on made data of its shape.

    Choosing is what a cell of one fold takes: 26 values of C, three fifths of the queries to train
    on and one fifth for their MAP.
    """
    n_rows, n_queries, n_features = SHAPES[name]
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features))
    y = (X[:, 0] + rng.normal(size=n_rows) > 2.5).astype(float)
    qid = np.arange(n_rows) * n_queries // n_rows
    ridge = np.linalg.solve(X.T @ X + np.eye(n_features), X.T @ y)
    np.testing.assert_allclose(
        pairgram.PointwiseELM(feature_map=pairgram.Kernel("linear")).fit(X, y, qid=qid).coef_,
        ridge,
        rtol=1e-8,
    )
    fifth = qid * N_FOLDS // n_queries
    train, valid = ([a[part] for a in (X, y, qid)] for part in (fifth < 3, fifth == 3))
    rows = []
    for way, model, search in (
        (POINT_NODES, pairgram.PointwiseELM, pairgram.PointwiseELMCV),
        (POINT_KERNEL, pairgram.PointwiseELM, pairgram.PointwiseELMCV),
        (PAIR_NODES, pairgram.PairwiseELM, pairgram.PairwiseELMCV),
        (PAIR_KERNEL, pairgram.PairwiseELM, pairgram.PairwiseELMCV),
    ):
        settings: dict[str, Any] = {"random_state": 0}
        if way in THEIR_CS:
            settings["feature_map"] = pairgram.Kernel("linear")
        fit = functools.partial(model(**settings).fit, X, y, qid=qid)
        choosing = functools.partial(
            search(CS, scoring=MAP, **settings).fit, *train[:2], qid=train[2], validation=valid
        )
        # One run more, for what is loaded on first use.
        times = [[stopwatch(run)[0] for _ in range(6)][1:] for run in (fit, choosing)]
        rows.append([way, *(seconds(float(np.median(runs))) for runs in times)])
    shape = f"{n_rows:,} rows in {n_queries} queries × {n_features}"
    return markdown_table([f"{name}: {shape}", "fit to all rows", "choosing C, one fold"], rows)


def tables(name: str, results: Mapping[str, np.ndarray]) -> str:
    """Return a data set's part of Tables 1-3, ours blank where there are no results."""
    none = np.full((1, len(ROWS[name])), np.nan)
    parts = (
        (REGRESSION, REGULARIZED),
        (POINT_NODES, POINT_KERNEL),
        (RANK_SVM, PAIR_NODES, PAIR_KERNEL),
    )
    return "\n\n".join(
        comparison(
            PAPER[name], {way: results.get(way, none) for way in ways}, ROWS[name], spread=True
        )
        for ways in parts
    )


def run(name: str, folds: list[Fold], n_seeds: int) -> str:
    """Return a data set's part of Tables 1-3, and the times of its columns."""
    results, times = {}, []
    for way, train in trainers().items():
        progress(f"{name}, {way}")
        train(folds[0], 0)  # loads what is loaded on first use
        seeds = n_seeds if way in (POINT_NODES, PAIR_NODES) else 1
        results[way], time = measure(folds, train, seeds, name)
        times.append([way, seconds(time)])
    spent = markdown_table([f"{name}, five folds", "training and choosing"], times)
    return f"{name}\n\n{tables(name, results)}\n\n{spent}"


def main() -> None:
    """Print the tables, draw the picture."""
    options = parser("Print the tables of Zong and Huang 2013 beside ours.")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="default: %(default)s")
    arguments = options.parse_args()
    start(arguments)
    for name in SHAPES:
        progress(f"times at the shape of {name}")
        print(f"\nMade data\n{blank_cells(name)}", flush=True)
        if (arguments.data / name).is_dir():
            given = list(pairgram.load_letor_folds(arguments.data / name))
            print(f"\n{run(name, given, arguments.seeds)}", flush=True)
        else:
            print(f"\n{name}, no files\n\n{tables(name, {})}", flush=True)
    folds = list(pairgram.load_letor_folds(arguments.data / "OHSUMED"))
    print(f"\n{run('OHSUMED', folds, arguments.seeds)}", flush=True)
    print(f"\n{chosen_Cs(folds)}")
    theirs = {
        column: measure(folds, functools.partial(train_at_their_C, column=column), 1)[0]
        for column in THEIR_CS
    }
    print("\nOHSUMED, with the paper's C")
    print(comparison(PAPER["OHSUMED"], theirs, ROWS["OHSUMED"]))
    print(f"\n{baselines(folds)}", flush=True)
    progress("Figure 2")
    text = figure_2(folds[0], arguments.pictures)
    print(f"\nFigure 2, fold 1: the best C by validation MAP\n{text}")


if __name__ == "__main__":
    main()
