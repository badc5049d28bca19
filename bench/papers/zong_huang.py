"""Zong and Huang 2013: pointwise and pairwise ELM on OHSUMED, beside the paper's tables.

    python bench/papers/zong_huang.py [--data FOLDER] [--pictures FOLDER] [--threads N] [--seeds N]

W. Zong, G.-B. Huang. Learning to rank with extreme learning machine. Neural Processing Letters,
2013. FOLDER/OHSUMED holds LETOR 3.0's S1.txt ... S5.txt; see bench/letor.py. Each of the five folds
trains on three parts, chooses C by MAP on the fourth and is tested on the fifth. MAP and NDCG are
those of LETOR's evaluation tools. Nodes are 1000 linear random nodes: mean and standard deviation
over seeds. Prints Tables 1 and 2, what remains of the differences, times, Figure 2's surface, and
the time of the cells that the paper left blank (TD2004 with the linear kernel) on made data.
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
MEASURES = [MAP, *(pairgram.get_metric(f"ndcg@{k}", "letor") for k in range(1, 11))]
ROWS = [f"MAP F{i}" for i in range(1, N_FOLDS + 1)] + [
    f"{metric.name.upper()} mean" for metric in MEASURES
]

# Tables 1 and 2, OHSUMED: MAP of folds 1-5 and their mean, then the mean of NDCG@1 ... NDCG@10.
REGRESSION, REGULARIZED = "Regression", "Regularized"
POINT_NODES, POINT_KERNEL = "pointwise nodes", "pointwise kernel"
PAIR_NODES, PAIR_KERNEL = "pairwise nodes", "pairwise kernel"
# fmt: off
PAPER: Mapping[str, tuple[float, ...]] = {
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
    PAIR_NODES: (
        0.3421, 0.4483, 0.4707, 0.5118, 0.4639, 0.4474,
        0.5211, 0.4977, 0.4895, 0.4742, 0.4691, 0.4589, 0.4557, 0.4496, 0.4466, 0.4422,
    ),
    PAIR_KERNEL: (
        0.3450, 0.4514, 0.4696, 0.5115, 0.4642, 0.4483,
        0.5642, 0.5019, 0.4923, 0.4866, 0.4755, 0.4611, 0.4567, 0.4573, 0.4555, 0.4574,
    ),
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


def trainers(threads: int) -> dict[str, Trainer]:
    """Return what is compared, under the paper's columns."""
    point = functools.partial(train_elm, search=pairgram.PointwiseELMCV, n_threads=threads)
    pair = functools.partial(train_elm, search=pairgram.PairwiseELMCV, n_threads=threads)
    return {
        REGRESSION: train_regression,
        REGULARIZED: train_regularized,
        POINT_NODES: point,
        POINT_KERNEL: functools.partial(point, kernel="linear"),
        PAIR_NODES: pair,
        PAIR_KERNEL: functools.partial(pair, kernel="linear"),
    }


def measure(folds: list[Fold], train: Trainer, n_seeds: int) -> tuple[np.ndarray, float]:
    """Return the rows of the paper's tables for every seed, (n_seeds, n_rows), and the seconds.

    The seconds are those of training and choosing in all folds, with one seed.
    """
    time, values = 0.0, np.empty((n_seeds, len(folds), len(MEASURES)))
    for seed in range(n_seeds):
        for i, fold in enumerate(folds):
            fold_time, predict = stopwatch(functools.partial(train, fold, seed))
            time += fold_time
            X, y, qid = fold.test
            values[seed, i] = list(pairgram.evaluate(MEASURES, y, predict(X), qid).values())
    rows = np.concatenate([values[:, :, 0], values.mean(axis=1)], axis=1)
    return rows, time / n_seeds


def train_at_their_C(fold: Fold, _: int, *, column: str) -> Predict:
    """Fit a column of the linear kernel with the C of `THEIR_CS`."""
    model = (pairgram.PointwiseELM if column == POINT_KERNEL else pairgram.PairwiseELM)(
        2.0 ** THEIR_CS[column][int(fold.name[-1]) - 1], kernel="linear"
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
            model = search(CS, scoring=MAP, kernel="linear")
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
    rows = [["paper", *(f"{value:.4f}" for value in PAPER[REGULARIZED][: N_FOLDS + 1])]]
    for intercept in (True, False):
        for target in ("label", "gain"):
            train = functools.partial(train_regularized, intercept=intercept, target=target)
            values = measure(folds, train, 1)[0][0, : N_FOLDS + 1]
            name = f"{'with' if intercept else 'no'} intercept, target {target}"
            rows.append([name, *(f"{value:.4f}" for value in values)])
    return markdown_table(["Regularized, MAP", *ROWS[:N_FOLDS], "mean"], rows)


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


def blank_cells(threads: int) -> str:
    """Return the times of fits to made data of TD2004's shape."""
    n_rows, n_queries, n_features = 74_146, 72, 64
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features))
    y = (X[:, 0] + rng.normal(size=n_rows) > 2.5).astype(float)
    qid = np.arange(n_rows) * n_queries // n_rows
    ridge = np.linalg.solve(X.T @ X + np.eye(n_features), X.T @ y)
    kernel = {"kernel": "linear", "n_threads": threads}
    np.testing.assert_allclose(
        pairgram.PointwiseELM(**kernel).fit(X, y, qid=qid).coef_, ridge, rtol=1e-8
    )
    rows = []
    for model in (
        pairgram.PointwiseELM(**kernel),
        pairgram.PairwiseELM(**kernel),
        pairgram.PointwiseELM(random_state=0, n_threads=threads),
        pairgram.PairwiseELM(random_state=0, n_threads=threads),
    ):
        fit = functools.partial(model.fit, X, y, qid=qid)
        name = type(model).__name__ + (", linear kernel" if model.kernel else ", 1000 linear nodes")
        rows.append([name, seconds(float(np.median([stopwatch(fit)[0] for _ in range(9)])))])
    return markdown_table([f"{n_rows:,} rows in {n_queries} queries × {n_features}", "fit"], rows)


def main() -> None:
    """Print the tables, draw the picture."""
    options = parser("Print the tables of Zong and Huang 2013 beside ours.")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="default: %(default)s")
    arguments = options.parse_args()
    threads = start(arguments)
    folds = list(pairgram.load_letor_folds(arguments.data / "OHSUMED"))
    results, times = {}, []
    for way, train in trainers(threads).items():
        progress(way)
        train(folds[0], 0)  # loads what is loaded on first use
        n_seeds = arguments.seeds if way in (POINT_NODES, PAIR_NODES) else 1
        results[way], time = measure(folds, train, n_seeds)
        times.append([way, seconds(time)])
    for ways in ((REGRESSION, REGULARIZED), (POINT_NODES, POINT_KERNEL), (PAIR_NODES, PAIR_KERNEL)):
        print(f"\nOHSUMED\n{comparison(PAPER, {w: results[w] for w in ways}, ROWS, spread=True)}")
    print(f"\n{markdown_table(['OHSUMED, five folds', 'training and choosing'], times)}")
    print(f"\n{chosen_Cs(folds)}")
    theirs = {
        column: measure(folds, functools.partial(train_at_their_C, column=column), 1)[0]
        for column in THEIR_CS
    }
    print(f"\nOHSUMED, with the paper's C\n{comparison(PAPER, theirs, ROWS)}")
    print(f"\n{baselines(folds)}")
    progress("Figure 2")
    text = figure_2(folds[0], arguments.pictures)
    print(f"\nFigure 2, fold 1: the best C by validation MAP\n{text}")
    print(f"\nTD2004's shape, made data\n{blank_cells(threads)}")


if __name__ == "__main__":
    main()
