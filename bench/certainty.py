"""How sure scores are: whether intervals hold what they claim, and what they take.

    python bench/certainty.py [TABLE ...] [--data FOLDER] [--seeds N] [--repeat N] [--threads N]

Prints a Markdown table for each question. A difference of two scores, or of two labels, lies within
z deviations of the predicted one as often as a normal variable does, if the model is right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.linalg
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from common import interleaved, markdown_table, print_tables, ratio_table
from pairgram import Posterior, RankRLS, RankRLSCV, posterior, propose
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.kernel_map import Kernel
from pairgram.solvers.dual_gram import DualGram

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from qsar import load_qsar

LEVELS = np.array([0.5, 0.8, 0.9, 0.95])


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path | None
    seeds: int
    repeat: int
    threads: int


def covered(errors: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the share of errors within the intervals of each level, (n_levels,)."""
    reach = deviations[:, None] * norm.ppf((1 + LEVELS) / 2)
    return (np.abs(errors)[:, None] <= reach).mean(axis=0)


def pairs_of(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 2,000 pairs of different rows."""
    first = rng.integers(0, n_rows, 2000)
    return first, (first + rng.integers(1, n_rows, 2000)) % n_rows


class Made:
    """Lists with true scores: linear, smooth or with noise of two sizes."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_lists, n_rows = 40, 12
        X = rng.normal(size=(n_lists * n_rows, 6))
        self.qid = np.repeat(np.arange(n_lists), n_rows)
        if kind == "smooth":
            squares = ((X[:, None] - X) ** 2).sum(axis=2)
            root = np.linalg.cholesky(np.exp(-0.05 * squares) + 1e-8 * np.eye(len(X)))
            self.truth = root @ rng.normal(size=len(X))
        else:
            self.truth = X @ rng.normal(size=6)
        noise = rng.normal(size=len(X))
        if kind == "two sizes of noise":
            noise *= np.where(rng.random(len(X)) < 0.2, 2.0, 0.4)
        self.X, self.noisy = X, self.truth + noise
        self.y = self.noisy + 3.0 * rng.normal(size=n_lists)[self.qid]
        setting = {"feature_map": Kernel("rbf", gamma=0.05)} if kind == "smooth" else {}
        self.model = RankRLS(1.0, pairs=Pairs(weighting="documents"), **setting)
        self.search = RankRLSCV(pairs=Pairs(weighting="documents"), **setting)
        self.search.set_params(scoring="pairwise_squared_error")
        self.by_evidence = clone(self.search).set_params(scoring="evidence")


def coverage(options: Options) -> Iterator[str]:
    """Share of differences within their intervals."""
    rows = []
    for kind in ("linear", "smooth", "two sizes of noise"):
        for name in ("model", "search", "by_evidence"):
            of_truth, of_labels = [], []
            for seed in range(options.seeds):
                data, rng = Made(kind, seed), np.random.default_rng(seed)
                train = data.qid < 30
                estimator = getattr(data, name)
                told = {"y": data.y[train], "qid": data.qid[train]}
                estimator.fit(data.X[train], **told)
                sure = posterior(estimator, data.X[train], **told)
                X, truth, y = (part[~train] for part in (data.X, data.truth, data.y))
                i, j = pairs_of(len(X), rng)
                f, deviations = estimator.predict(X), sure.std_of_differences(X[i], X[j])
                of_truth.append(covered(truth[i] - truth[j] - f[i] + f[j], deviations))
                own = 12 * (i // 12) + (i + 1 + j % 11) % 12  # another row of the same list
                squares = sure.std_of_differences(X[i], X[own]) ** 2
                deviations = np.sqrt(squares + 2 * sure.label_noise)
                of_labels.append(covered(y[i] - y[own] - f[i] + f[own], deviations))
            ridge = {"model": "true", "search": "chosen"}.get(name, "by evidence")
            rows.append(line(kind, ridge, "true scores", of_truth))
            rows.append(line(kind, ridge, "labels", of_labels))
    for name in ("COX2", "DHFR") if options.data is not None else ():
        rows += list(of_assay(name, options))
    head = ["data", "ridge", "differences of", *(f"{level:.0%}" for level in LEVELS)]
    yield markdown_table(head, rows)


def line(data: str, ridge: str, what: str, shares: list[np.ndarray]) -> list[str]:
    """Return the cells of a row."""
    return [data, ridge, what, *(f"{share:.3f}" for share in np.mean(shares, axis=0))]


def of_assay(name: str, options: Options) -> Iterator[list[str]]:
    """Yield the rows of an assay: labels of a fifth of its compounds, or of its test set."""
    assert options.data is not None
    data = load_qsar(options.data, name)
    X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    published = np.split(np.arange(len(y)), [len(data.y_train)])
    for kernel, is_drawn in (
        (k, is_drawn) for k in ("linear", "rbf") for is_drawn in (True, False)
    ):
        found = []
        for seed in range(options.seeds if is_drawn else 1):
            rng = np.random.default_rng(seed)
            train, test = published
            if is_drawn:
                train, test = np.split(rng.permutation(len(y)), [int(0.8 * len(y))])
            search = RankRLSCV(feature_map=Kernel(kernel), pairs=Pairs(weighting="documents"))
            search.set_params(feature_map="standard", scoring="pairwise_squared_error")
            sure = posterior(search.fit(X[train], y[train]), X[train], y[train])
            i, j = (test[part] for part in pairs_of(len(test), rng))
            squares = sure.std_of_differences(X[i], X[j]) ** 2
            deviations = np.sqrt(squares + 2 * sure.label_noise)
            f = search.predict(X)
            found.append(covered(y[i] - y[j] - f[i] + f[j], deviations))
        of = f"{name}, {kernel}" if is_drawn else f"{name}, {kernel}, published test set"
        yield line(of, "chosen", "labels", found)


def times(options: Options) -> Iterator[str]:
    """Time of deviations, beside scores and the product that they need."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 136))
    y, qid = X @ rng.normal(size=136) + rng.normal(size=100_000), np.arange(100_000) // 100
    linear = RankRLS(10.0).fit(X, y, qid=qid)
    of_rows = posterior(linear, X, y, qid=qid)
    kernel, few = RankRLS(1.0, feature_map=Kernel("rbf", gamma=0.005)), (X[:2000], y[:2000])
    of_few = posterior(kernel.fit(*few, qid=qid[:2000]), *few, qid=qid[:2000])
    Z, root = X[-5000:], np.triu(rng.normal(size=(2000, 2000))) + 100 * np.eye(2000)
    triangle = np.asfortranarray(of_rows.root.T)
    right = np.asfortranarray(rng.normal(size=(2000, 5000)))
    of_linear: dict[str, Callable[[], object]] = {
        "`predict`": lambda: linear.predict(X),
        "`dtrmm` of that size": lambda: scipy.linalg.blas.dtrmm(
            1.0, triangle, X.T, lower=1, trans_a=1
        ),
        "`std`, lists": lambda: of_rows.std(X, qid=qid),
        "the same, one list": lambda: of_rows.std(X),
        "10,000 draws of the weights": lambda: of_rows.draw(10_000, random_state=0),
    }
    of_kernel: dict[str, Callable[[], object]] = {
        "`predict`": lambda: kernel.predict(Z),
        "a triangular solve of that size": lambda: scipy.linalg.solve_triangular(
            root, right, check_finite=False
        ),
        "`std`, one list": lambda: of_few.std(Z),
        'the same, `reference="training"`': lambda: of_few.std(Z, reference="training"),
    }
    with threadpool_limits(options.threads):
        yield ratio_table(interleaved(of_linear, options.repeat))
        yield ratio_table(interleaved(of_kernel, options.repeat))


def process(options: Options) -> Iterator[str]:
    """Beside the Gaussian process of scikit-learn: 1,000 rows, 5,000 scored, the same kernel."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1000, 10)), rng.normal(size=(5000, 10))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1000)
    covariance = RBF(10**0.5 / 2**0.5, "fixed") + ConstantKernel(1e5, "fixed")
    beside = GaussianProcessRegressor(covariance, alpha=0.1, optimizer=None)
    ours = RankRLS(
        0.1, feature_map=Kernel("rbf", gamma=0.1), pairs=Pairs(weighting="documents")
    ).fit(X, y)
    sure = posterior(ours, X, y)
    pool = rng.normal(size=(20_000, 10))
    calls: dict[str, Callable[[], object]] = {
        "`RankRLS`: fit and posterior": lambda: posterior(ours.fit(X, y), X, y),
        "scikit-learn: fit": lambda: beside.fit(X, y),
        "`RankRLS`: deviations": lambda: sure.std(Z, reference="training"),
        "scikit-learn: deviations": lambda: beside.predict(Z, return_std=True),
        "`propose`, 50 of 20,000": lambda: propose(sure, pool, 50),
    }
    beside.fit(X, y)
    with threadpool_limits(options.threads):
        yield ratio_table(interleaved(calls, options.repeat))


def recalibration(options: Options) -> Iterator[str]:
    """How far shares are from their level, as they are and by factors of held-out differences."""
    rows = []
    for kind in ("linear", "smooth", "two sizes of noise", "wrong kernel"):
        for lists in ("40 lists", "one list"):
            off = [off_of_made(kind, lists, seed) for seed in range(options.seeds)]
            for what, part in zip(("true scores", "labels"), zip(*off, strict=True), strict=True):
                rows.append([kind, lists, what, *offset_cells(list(part))])
    for name in ("COX2", "DHFR") if options.data is not None else ():
        for kernel in ("linear", "rbf"):
            found = offset_cells(off_of_assay(name, kernel, options))
            rows.append([name, f"one list, {kernel}", "labels", *found])
    head = ["data", "fitted to", "differences of", "as they are", "by the mean square"]
    yield markdown_table([*head, "by the median", "the factors"], rows)


Factored = tuple[np.ndarray, np.ndarray]  # shares within intervals (3, n_levels), two factors


def offset_cells(found: list[Factored]) -> list[str]:
    """Return how far the mean shares are from the levels in points, and the mean factors."""
    shares = np.mean([one for one, _ in found], axis=0)
    factors = np.mean([of for _, of in found], axis=0)
    points = 100 * np.abs(shares - LEVELS).mean(axis=1)
    return [*(f"{point:.1f}" for point in points), " and ".join(f"{of:.2f}" for of in factors)]


def factors_of(sure: Posterior, X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Return how much wider held-out differences spread than they should, by squares and medians.

    Every fifth list, or row of a single list, is held out of a model with the ridge and the noise.
    """
    fold = (qid if len(np.unique(qid)) > 1 else np.random.default_rng(0).permutation(len(y))) % 5
    ratios, model = [], sure.model
    for one in range(5):
        own = fold == one
        rest = RankRLS(model.alpha_, feature_map=model.feature_map)
        rest.set_params(pairs=Pairs(weighting="documents"))
        others = {"X": X[~own], "y": y[~own], "qid": qid[~own]}
        of_rest = posterior(rest.fit(**others), **others)
        i, j = np.triu_indices(own.sum(), 1)
        same = qid[own][i] == qid[own][j]
        i, j = i[same], j[same]
        unit = sure.noise / of_rest.noise
        squares = unit * of_rest.std_of_differences(X[own][i], X[own][j]) ** 2
        left = y[own] - rest.predict(X[own])
        deviations = np.sqrt(squares + 2 * sure.label_noise)
        ratios.append((left[i] - left[j]) / deviations)
    found = np.concatenate(ratios)
    return np.array([np.sqrt(np.mean(found**2)), np.median(np.abs(found)) / norm.ppf(0.75)])


def factored(errors: np.ndarray, deviations: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the shares within intervals as they are, and with each of the factors."""
    return np.array([covered(errors, deviations * by) for by in (1.0, *factors)])


def off_of_made(kind: str, lists: str, seed: int) -> list[Factored]:
    """Return what is covered of true scores and of labels, and the factors."""
    data, rng = (
        Made("smooth" if kind == "wrong kernel" else kind, seed),
        np.random.default_rng(seed),
    )
    qid, y = data.qid, data.y
    if lists == "one list":
        qid, y = np.zeros(len(y), int), data.noisy
    search = data.search
    if kind == "wrong kernel":
        search.set_params(feature_map=Kernel("rbf", gamma=0.5))
    train = data.qid < 30
    told = {"X": data.X[train], "y": y[train], "qid": qid[train]}
    sure = posterior(search.fit(**told), **told)
    factors = factors_of(sure, data.X[train], y[train], qid[train])
    X, truth, y = data.X[~train], data.truth[~train], y[~train]
    i, j = pairs_of(len(X), rng)
    own = 12 * (i // 12) + (i + 1 + j % 11) % 12
    f = search.predict(X)
    of_truth = factored(
        truth[i] - truth[j] - f[i] + f[j], sure.std_of_differences(X[i], X[j]), factors
    )
    squares = sure.std_of_differences(X[i], X[own]) ** 2
    deviations = np.sqrt(squares + 2 * sure.label_noise)
    of_labels = factored(y[i] - y[own] - f[i] + f[own], deviations, factors)
    return [(of_truth, factors), (of_labels, factors)]


def off_of_assay(name: str, kernel: str, options: Options) -> list[Factored]:
    """Return what is covered of the labels of an assay, and the factors."""
    assert options.data is not None
    data = load_qsar(options.data, name)
    X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    found = []
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        train, test = np.split(rng.permutation(len(y)), [int(0.8 * len(y))])
        search = RankRLSCV(feature_map=Kernel(kernel), pairs=Pairs(weighting="documents"))
        search.set_params(feature_map="standard", scoring="pairwise_squared_error")
        sure = posterior(search.fit(X[train], y[train]), X[train], y[train])
        factors = factors_of(sure, X[train], y[train], np.zeros(len(train), int))
        i, j = (test[part] for part in pairs_of(len(test), rng))
        squares = sure.std_of_differences(X[i], X[j]) ** 2
        deviations = np.sqrt(squares + 2 * sure.label_noise)
        f = search.predict(X)
        found.append((factored(y[i] - y[j] - f[i] + f[j], deviations, factors), factors))
    return found


WAYS = {"the evidence": "evidence", "held-out labels": "pairwise_squared_error"}


def choice(options: Options) -> Iterator[str]:
    """What a ridge costs that evidence or held-out rows choose, beside the best of its path."""
    rows = []
    for kind in ("linear", "smooth", "two sizes of noise", "long-tailed noise", "wrong kernel"):
        for n_lists in (5, 10, 30):
            lost = np.array([lost_of_made(kind, n_lists, seed) for seed in range(options.seeds)])
            rows.append([kind, f"{n_lists} of 12", *shares(lost)])
    for name in ("COX2", "DHFR") if options.data is not None else ():
        for n_rows in (40, 100, None):
            lost = lost_of_assay(name, n_rows, options)
            rows.append([name, "4/5 of the rows" if n_rows is None else str(n_rows), *shares(lost)])
    head = ["data", "rows", *WAYS, "first less second"]
    yield markdown_table(head, rows)


def shares(lost: np.ndarray) -> list[str]:
    """Return the cells of what two ways lose, (n_seeds, 2), and the paired difference."""
    gap = lost[:, 0] - lost[:, 1]
    error = gap.std(ddof=1) / len(gap) ** 0.5
    return [*(f"{share:.1%}" for share in lost.mean(axis=0)), f"{gap.mean():+.1%} ± {error:.1%}"]


def lost_of_made(kind: str, n_lists: int, seed: int) -> list[float]:
    """Return how much larger errors of true differences are than those of the best ridge."""
    is_smooth = kind in ("smooth", "wrong kernel")
    data = Made("smooth" if is_smooth else kind, seed)
    rng = np.random.default_rng(seed)
    if kind == "long-tailed noise":
        data.y = data.truth + rng.standard_t(2, size=len(data.y))
    setting = {"feature_map": Kernel("rbf", gamma=0.5 if kind == "wrong kernel" else 0.05)}
    train, test = data.qid < n_lists, data.qid >= 30
    truth = data.truth[test] - data.truth[test].mean()

    def errors(coefs: np.ndarray, model: RankRLSCV) -> np.ndarray:
        H = (
            data.X[test]
            if model.feature_map_ is None
            else model.feature_map_.transform(data.X[test])
        )
        scores = H @ coefs.T
        return ((scores - scores.mean(axis=0) - truth[:, None]) ** 2).mean(axis=0)

    found = []
    for scoring in WAYS.values():
        search = RankRLSCV(pairs=Pairs(weighting="documents"), scoring=scoring)
        search.set_params(**setting if is_smooth else {})
        search.fit(data.X[train], data.y[train], qid=data.qid[train])
        path = errors(search.coef_path_, search)
        found.append(float(errors(search.coef_[None], search)[0] / path.min() - 1))
    return found


def lost_of_assay(name: str, n_rows: int | None, options: Options) -> np.ndarray:
    """Return how much larger errors of held-out labels are than with the better of both ways."""
    assert options.data is not None
    data = load_qsar(options.data, name)
    X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    lost = []
    for seed in range(options.seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [int(0.8 * len(y))])
        errors = []
        for scoring in WAYS.values():
            search = RankRLSCV(
                feature_map=Kernel("rbf", gamma=list(GAMMAS / X.shape[1])), scoring=scoring
            )
            search.set_params(feature_map="standard", pairs=Pairs(weighting="documents"))
            search.fit(X[train[:n_rows]], y[train[:n_rows]])
            errors.append(np.var(y[test] - search.predict(X[test])))
        lost.append(np.array(errors) / min(errors) - 1)
    return np.array(lost)


GAMMAS = np.array([0.1, 0.3, 1.0, 3.0])


def evidence(options: Options) -> Iterator[str]:
    """Time of 34 ridges of 4,000 rows by the evidence, beside the path alone and held-out rows."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(4000, 10)), np.arange(4000) // 20
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=4000)
    told = {"feature_map": Kernel("rbf", gamma=0.05), "pairs": Pairs(weighting="documents")}
    rows = RankingData.delimit(X, y, qid)
    data = replace(rows, feature_map=Kernel("rbf", gamma=0.05).fit(X))
    gram = DualGram(data, Pairs("with_ties", scope="query", weighting="documents"))

    def path() -> None:
        ridge = gram.decompose()
        ridge.coef(ridge.default_alphas())

    calls: dict[str, Callable[[], object]] = {
        "the path alone": path,
        **{
            f"`RankRLSCV` by {way}": RankRLSCV(scoring=scoring, **told).fit
            for way, scoring in WAYS.items()
        },
    }
    first, *others = calls
    fits = {name: partial(calls[name], X, y, qid=qid) for name in others}
    with threadpool_limits(options.threads):
        yield ratio_table(interleaved({first: calls[first], **fits}, options.repeat))


TABLES = {
    "coverage": coverage,
    "choice": choice,
    "recalibration": recalibration,
    "times": times,
    "evidence": evidence,
    "process": process,
}


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with qsar, the assays")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="of the coverage")
    print_tables(parser, TABLES, Options, ("numpy", "scipy", "scikit-learn"), repeat=5)


if __name__ == "__main__":
    main()
