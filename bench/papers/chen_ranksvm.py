"""Chen et al. 2017: RankSVM on Nyström and random Fourier features, beside the paper's tables.

    python bench/papers/chen_ranksvm.py [--data FOLDER] [--pictures FOLDER] [--threads N]
        [--seeds N] [--curve-seeds N] [--exact N ...]

K. Chen, R. Li, Y. Dou, Z. Liang, Q. Lv. Ranking support vector machine with kernel approximation.
Computational Intelligence and Neuroscience, 2017. FOLDER holds OHSUMED and MQ2008, see
bench/letor.py; metrics are those of LETOR's evaluation tools. Each of the five folds trains on
three parts, and C and gamma are chosen by MAP on the fourth, its mean over the folds: one setting
for all. C is that of eq. 22, half of that of the authors' program.

Prints Table 4's rows for OHSUMED, with the authors' setting (m = 500, C = 2^-7, gamma = 2^-6) and
with the choice among the paper's grids (§4.1); the same models on MQ2008; the metrics of Figure 2
against m; Table 2's times at the shape of MQ2007's fold 1, on made data; the other cells of Tables
3 to 5. MQ2007 and TD2004 are not the project's to give: without FOLDER/TD2004 and FOLDER/MQ2007 the
paper's cells stand alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from shared import comparison, markdown_table, parser, picture, progress, seconds, start, stopwatch

import data
import pairgram
from pairgram.datasets import Fold

LINEAR, NYSTROEM, FOURIER = "RankSVM-Primal", "RankNystrom", "RankRandomFourier"
CS = 2.0 ** np.arange(-13, 6)  # the paper's grid, its C being that of the program
GAMMAS = 2.0 ** np.arange(-12, 3)
N_COMPONENTS = 500
THEIRS = (2.0**-7, 2.0**-6)  # C and gamma
CURVE = (10, 20, 50, 100, 200, 500, 1000, 2000)

TEST_METRICS = ["ndcg@1", "ndcg@3", "ndcg@5", "p@1", "p@3", "map", "ndcg@10", "mean_ndcg"]
METRICS = {name: pairgram.get_metric(name, "letor") for name in TEST_METRICS}
FIGURE_METRICS = ("ndcg@1", "ndcg@3", "mean_ndcg", "map")
ROWS = [
    *("NDCG@1", "NDCG@3", "NDCG@5", "P@1", "P@3", "MAP", "NDCG@10", "MeanNDCG"),
    *("training MAP", "validation MAP"),
    *(f"MAP F{i}" for i in range(1, 6)),
]
# Table 4, OHSUMED, in the order of `ROWS`; what it does not have is from runs of the authors'
# program with their setting.
NONE = float("nan")
# fmt: off
PAPER: Mapping[str, tuple[float, ...]] = {
    LINEAR: (0.5645, 0.5004, 0.4782, 0.6710, 0.6112, 0.4439, *[NONE] * 9),
    NYSTROEM: (
        0.5730, 0.4874, 0.4780, 0.6801, 0.5890, 0.4473, 0.4505, 0.5378, 0.4579, 0.4497,
        0.3529, 0.4461, 0.4491, 0.5160, 0.4725,
    ),
    FOURIER: (0.5728, 0.4965, 0.4804, 0.6801, 0.5983, 0.4472, *[NONE] * 9),
}
# fmt: on
# Tables 3, 4 and 5 whole, with what the paper took from others, in the order of `PUBLISHED_ROWS`.
PUBLISHED_ROWS = {
    "TD2004": ("NDCG@1", "NDCG@3", "NDCG@5", "P@1", "P@3", "MAP"),
    "OHSUMED": ("NDCG@1", "NDCG@3", "NDCG@5", "P@1", "P@3", "MAP"),
    "MQ2007": ("NDCG@1", "NDCG@3", "MeanNDCG", "P@1", "P@3", "MAP"),
}
# fmt: off
PUBLISHED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "TD2004": {
        "AdaRank-MAP": (0.4133, 0.4017, 0.3932, 0.4133, 0.3422, 0.3308),
        "AdaRank-NDCG": (0.3600, 0.3838, 0.3769, 0.3600, 0.3289, 0.2986),
        "FRank": (0.4400, 0.4479, 0.4362, 0.4400, 0.3867, 0.3809),
        "ListNet": (0.4400, 0.4371, 0.4209, 0.4400, 0.4000, 0.3721),
        "RankBoost": (0.4800, 0.4640, 0.4368, 0.4800, 0.4044, 0.3835),
        "RankSVM-Struct": (0.4400, 0.4092, 0.3935, 0.4400, 0.3511, 0.3505),
        LINEAR: (0.4666, 0.4468, 0.4277, 0.4666, 0.4000, 0.3793),
        NYSTROEM: (0.4933, 0.4348, 0.4254, 0.4933, 0.3911, 0.3899),
        FOURIER: (0.4933, 0.4422, 0.4265, 0.4933, 0.4000, 0.3924),
    },
    "OHSUMED": {
        "RankSVM-Struct": (0.5515, 0.4850, 0.4729, 0.6338, 0.5898, 0.4478),
        "ListNet": (0.5326, 0.4732, 0.4432, 0.6524, 0.6016, 0.4457),
        "AdaRank-MAP": (0.5388, 0.4682, 0.4613, 0.6338, 0.5895, 0.4487),
        "AdaRank-NDCG": (0.5330, 0.4790, 0.4673, 0.6719, 0.5984, 0.4498),
        "RankBoost": (0.4632, 0.4555, 0.4494, 0.5576, 0.5609, 0.4411),
        "RankRLS": (0.5490, 0.4770, 0.4530, 0.6440, 0.5860, 0.4470),
        LINEAR: (0.5645, 0.5004, 0.4782, 0.6710, 0.6112, 0.4439),
        NYSTROEM: (0.5730, 0.4874, 0.4780, 0.6801, 0.5890, 0.4473),
        FOURIER: (0.5728, 0.4965, 0.4804, 0.6801, 0.5983, 0.4472),
    },
    "MQ2007": {
        "RankSVM-Struct": (0.4096, 0.4063, 0.4966, 0.4746, 0.4315, 0.4645),
        "ListNet": (0.4002, 0.4091, 0.4988, 0.4640, 0.4334, 0.4652),
        "AdaRank-MAP": (0.3821, 0.3984, 0.4891, 0.4392, 0.4230, 0.4577),
        "AdaRank-NDCG": (0.3876, 0.4044, 0.4914, 0.4475, 0.4305, 0.4602),
        "RankBoost": (0.4134, 0.4072, 0.5003, 0.4823, 0.4348, 0.4662),
        "LambdaMART": (0.4147, 0.4119, 0.5011, NONE, NONE, 0.4660),
        "BL-MART": (0.4200, 0.4224, 0.5093, NONE, NONE, 0.4730),
        "CRR": (NONE, NONE, 0.5000, NONE, NONE, 0.4660),
        LINEAR: (0.4109, 0.4063, 0.4973, 0.4747, 0.4317, 0.4655),
        NYSTROEM: (0.4242, 0.4138, 0.5036, 0.4888, 0.4394, 0.4695),
        FOURIER: (0.4224, 0.4136, 0.5036, 0.4871, 0.4386, 0.4698),
    },
}
# fmt: on
# MQ2007's models have more features than those of the other data sets.
MQ2007_COMPONENTS = 2000
# Table 2, MQ2007 fold 1, m = 2000: C and gamma of eq. 22, seconds on 16 cores, MeanNDCG.
TABLE_2: Mapping[str, tuple[float, float | None, float, float]] = {
    LINEAR: (2.0**-11, None, 1.2, 0.5270),
    NYSTROEM: (2.0**-3, 2.0**-5, 10.9, 0.5330),
    FOURIER: (2.0**-3, 2.0**-5, 16.1, 0.5336),
}
# Its rows of solvers that are not pairgram's: seconds and MeanNDCG.
OTHER_SOLVERS = {
    "RankSVM-TRON, linear": (1.9, 0.5265),
    "RankSVM-Struct, linear": (2.2, 0.5268),
    "RankSVM-TRON, exact kernel": (47463.5, 0.5310),
}
MQ2007_SHAPE = (42_158, 46, 1_017)


def feature_map(way: str, gamma: float | None, n_components: int | None, seed: int) -> Any:
    """Return the features of a way, None for the linear one."""
    if way == LINEAR:
        return None
    kind = pairgram.Nystroem if way == NYSTROEM else pairgram.RandomFourier
    return kind(n_components=n_components, gamma=gamma, random_state=seed)


def fitted(
    way: str, fold: Fold, C: float, gamma: float | None, n_components: int, seed: int
) -> Any:
    """Return a RankSVM of a fold's training part."""
    features = feature_map(way, gamma, n_components, seed)
    model = pairgram.RankSVM(C, feature_map=features)
    return model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)


def measured(model: Any, fold: Fold) -> dict[str, float]:
    """Return the test metrics, and MAP of the other parts."""
    X, y, qid = fold.test
    values = dict(
        zip(
            TEST_METRICS,
            pairgram.evaluate(list(METRICS.values()), y, model.predict(X), qid).values(),
            strict=True,
        )
    )
    for part in ("train", "valid"):
        X, y, qid = getattr(fold, part)
        values[part] = METRICS["map"](y, model.predict(X), qid)
    return values


def table_rows(
    way: str,
    folds: list[Fold],
    C: float,
    gamma: float | None,
    seeds: int,
    n_components: int | None = None,
) -> np.ndarray:
    """Return the values of `ROWS`, (n_seeds, n_rows)."""
    result = []
    for seed in range(seeds if way != LINEAR else 1):
        m = n_components or N_COMPONENTS
        models = [fitted(way, fold, C, gamma, m, seed) for fold in folds]
        values = [measured(model, fold) for model, fold in zip(models, folds, strict=True)]
        means = [np.mean([v[name] for v in values]) for name in (*TEST_METRICS, "train", "valid")]
        result.append([*means, *(v["map"] for v in values)])
    return np.array(result)


def choose(
    way: str, folds: list[Fold], n_components: int | None = None
) -> tuple[float, float | None, float]:
    """Return the C and gamma of the best mean validation MAP of all folds, and that MAP."""
    gammas: Sequence[float | None] = [None] if way == LINEAR else GAMMAS.tolist()
    scores = []
    for fold in folds:
        search = pairgram.RankSVMCV(
            CS,
            feature_map=[
                feature_map(way, gamma, n_components or N_COMPONENTS, 0) for gamma in gammas
            ],
            scoring=METRICS["map"],
        )
        X, y, qid = fold.train
        search.fit(X, y, qid=qid, validation=fold.valid)
        scores.append(search.cv_results_["mean_test_score"].reshape(len(gammas), len(CS)))
    mean = np.mean(scores, axis=0)
    i, j = np.unravel_index(int(mean.argmax()), mean.shape)
    return float(CS[j]), gammas[i], float(mean[i, j])


def power(value: float | None) -> str:
    """Return ``2^-7``."""
    return "" if value is None else f"2^{np.log2(value):.0f}"


def chosen_table(
    chosen: Mapping[str, tuple[float, float | None, float]],
    rows: Mapping[str, np.ndarray],
    times: Mapping[str, float],
) -> str:
    """Return a table of the chosen settings, what they give, and the time of choosing."""
    lines = []
    for way, (C, gamma, _) in chosen.items():
        means, spread = rows[way].mean(axis=0), rows[way].std(axis=0)
        shown = [ROWS.index(name) for name in ("training MAP", "validation MAP", *ROWS[:8])]
        cells = [f"{means[i]:.4f}" + (f" ± {spread[i]:.4f}" if spread.any() else "") for i in shown]
        lines.append([way, power(C), power(gamma), *cells, seconds(times[way])])
    header = ["chosen by validation MAP", "C", "γ", "training MAP", "validation MAP", *ROWS[:8]]
    return markdown_table([*header, "choosing"], lines)


def curves(
    folds: list[Fold],
    chosen: Mapping[str, tuple[float, float | None, float]],
    n_seeds: int,
) -> dict[str, np.ndarray]:
    """Return the test metrics of Figure 2 against m: (n_metrics, n_m), one m for the linear way."""
    result = {}
    for way, (C, gamma, _) in chosen.items():
        sizes = CURVE if way != LINEAR else CURVE[:1]
        values = np.empty((n_seeds, len(sizes), len(folds), len(FIGURE_METRICS)))
        for seed in range(n_seeds if way != LINEAR else 1):
            for j, size in enumerate(sizes):
                for k, fold in enumerate(folds):
                    found = measured(fitted(way, fold, C, gamma, size, seed), fold)
                    values[seed, j, k] = [found[name] for name in FIGURE_METRICS]
        used = values if way != LINEAR else values[:1]
        result[way] = used.mean(axis=(0, 2)).T
    return result


def figure_2(drawn: Mapping[str, Mapping[str, np.ndarray]], folder: Path) -> str:
    """Draw the curves of every data set; return MAP and MeanNDCG against m."""
    with picture(folder, "chen_ranksvm_figure_2", len(drawn), len(FIGURE_METRICS)) as axes:
        for row, (name, ways) in zip(axes, drawn.items(), strict=True):
            for axis, values in zip(row, range(len(FIGURE_METRICS)), strict=True):
                for way, curve in ways.items():
                    if way == LINEAR:
                        axis.axhline(curve[values, 0], ls=":", color="black", label=way)
                    else:
                        axis.semilogx(CURVE, curve[values], marker=".", label=way)
                axis.set(title=f"{name}: {FIGURE_METRICS[values]}", xlabel="m")
            row[0].legend(fontsize="small")
    lines = []
    for name, ways in drawn.items():
        for metric in ("map", "mean_ndcg"):
            i = FIGURE_METRICS.index(metric)
            for way, curve in ways.items():
                cells = [f"{v:.4f}" for v in curve[i]]
                cells += [""] * (len(CURVE) - len(cells))
                lines.append([f"{name} {metric}: {way}", *cells])
    return markdown_table(["test, against m", *map(str, CURVE)], lines)


def made_rows(n_rows: int, n_features: int, n_queries: int) -> data.Ranking:
    """Return rows of queries of nearly equal length, with three labels."""
    made = data.make(n_rows, n_features, 1)
    qid = np.arange(n_rows) * n_queries // n_rows
    return data.Ranking(made.X, np.minimum(made.y, 2.0), qid)


def table_2(exact: Sequence[int], repeat: int = 3) -> str:
    """Return the times of fits at MQ2007's shape, map included; the exact kernel has fewer rows."""
    lines = []
    whole = made_rows(*MQ2007_SHAPE)
    for way, (C, gamma, theirs, ndcg) in TABLE_2.items():
        model = pairgram.RankSVM(C, feature_map=feature_map(way, gamma, 2000, 0))
        fit = functools.partial(model.fit, whole.X, whole.y, qid=whole.qid)
        time = float(np.median([stopwatch(fit)[0] for _ in range(repeat)]))
        cells = [f"{len(whole.y):,}", f"{theirs} s", f"{ndcg:.4f}", seconds(time)]
        lines.append([way, *cells, *work_of(model)])
    C, gamma, *_ = TABLE_2[NYSTROEM]
    for n_rows in exact:
        part = data.Ranking(*(array[:n_rows] for array in whole))
        model = pairgram.RankSVM(C, feature_map=pairgram.Nystroem(gamma=gamma, n_components=None))
        time, _ = stopwatch(functools.partial(model.fit, part.X, part.y, qid=part.qid))
        cells = ["exact kernel", f"{n_rows:,}", "", "", seconds(time), *work_of(model)]
        lines.append(cells)
    for name, (theirs, ndcg) in OTHER_SOLVERS.items():
        lines.append([name, "42,158", f"{theirs} s", f"{ndcg:.4f}", "", "", ""])
    header = ["Table 2, made data", "rows", "paper, MQ2007, 16 cores", "paper's MeanNDCG", "ours"]
    header.append("features")
    return markdown_table([*header, "Hessian products"], lines)


def published(name: str, ours: Mapping[str, np.ndarray]) -> str:
    """Return Table 3, 4 or 5: the paper's cells, and those of ours, (n_seeds, n_rows), if any."""
    lines = []
    for way, cells in PUBLISHED[name].items():
        line = [way]
        for row, theirs in zip(PUBLISHED_ROWS[name], cells, strict=True):
            line.append("" if np.isnan(theirs) else f"{theirs:.4f}")
            line.append(f"{ours[way][:, ROWS.index(row)].mean():.4f}" if way in ours else "")
        lines.append(line)
    header = [f"{row}: {what}" for row in PUBLISHED_ROWS[name] for what in ("paper", "ours")]
    return markdown_table([name, *header], lines)


def work_of(model: Any) -> list[str]:
    """Return the numbers of features and of Hessian products."""
    return [f"{len(model.coef_):,}", str(model.n_hessian_products_)]


def main() -> None:
    """Print the tables, draw the picture."""
    options = parser("Print the tables of Chen et al. 2017 beside ours.")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="default: %(default)s")
    options.add_argument("--curve-seeds", type=int, default=3, metavar="N", help="of Figure 2")
    options.add_argument(
        "--exact",
        type=int,
        nargs="*",
        default=[2000, 4000],
        metavar="N",
        help="rows of the exact kernel",
    )
    arguments = options.parse_args()
    start(arguments)
    print(f"\n{table_2(arguments.exact)}", flush=True)
    drawn = {}
    for name in ("OHSUMED", "MQ2008", "TD2004", "MQ2007"):
        if name in ("TD2004", "MQ2007") and not (arguments.data / name).is_dir():
            print(f"\nThe paper's cells, no files\n{published(name, {})}", flush=True)
            continue
        m = MQ2007_COMPONENTS if name == "MQ2007" else N_COMPONENTS
        folds = list(pairgram.load_letor_folds(arguments.data / name))
        chosen, times = {}, {}
        for way in PAPER:
            progress(f"{name}: choosing C and gamma, {way}")
            times[way], chosen[way] = stopwatch(functools.partial(choose, way, folds, m))
        rows = {
            way: table_rows(way, folds, C, gamma, arguments.seeds, m)
            for way, (C, gamma, _) in chosen.items()
        }
        if name == "OHSUMED":
            ours = {LINEAR: rows[LINEAR]} | {
                way: table_rows(way, folds, *THEIRS, arguments.seeds) for way in (NYSTROEM, FOURIER)
            }
            print(f"\nOHSUMED, Table 4, with the authors' setting; {LINEAR} with ours")
            print(comparison(PAPER, ours, ROWS, spread=True), flush=True)
        if name in PUBLISHED:
            print(
                f"\nThe paper's cells, settings chosen by us\n{published(name, rows)}", flush=True
            )
        print(f"\n{name}, {arguments.seeds} seeds\n{chosen_table(chosen, rows, times)}", flush=True)
        progress(f"{name}: Figure 2")
        drawn[name] = curves(folds, chosen, arguments.curve_seeds)
    print(f"\nFigure 2, settings of m = {N_COMPONENTS}\n{figure_2(drawn, arguments.pictures)}")


if __name__ == "__main__":
    main()
