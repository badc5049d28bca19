"""People × things: one model of products, beside products that are made, and peers.

    python bench/cross.py [TABLE ...] [--people N] [--things N] [--rows N] [--repeat N]
        [--threads N]

Prints a Markdown table for each question. People and things have normal features, and what a person
likes of a thing is bilinear in both with a part that is the same for all; each person rates some
things in four grades.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from common import (
    PeakMemory,
    interleaved,
    markdown_table,
    mebibytes,
    print_tables,
    ratio_table,
    stopwatch,
)
from pairgram import (
    Cross,
    RankRLS,
    RankRLSCV,
    get_metric,
    leave_last_out,
    recommend,
    sample_negatives,
)

LEFT, RIGHT = 29, 51  # columns; with the part for all there are 30 × 51 products


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    people: int
    things: int
    rows: int
    repeat: int
    threads: int


@dataclass(frozen=True)
class World:
    """People and things, and what people like."""

    people: np.ndarray
    things: np.ndarray
    likes: np.ndarray  # (n_left, n_right) what people of a kind like of things
    common: np.ndarray  # (n_right,) what all people like

    @classmethod
    def draw(cls, n_people: int, n_things: int, left: int, right: int, seed: int = 0) -> World:
        """Return normal people and things."""
        rng = np.random.default_rng(seed)
        return cls(
            rng.normal(size=(n_people, left)),
            rng.normal(size=(n_things, right)),
            rng.normal(size=(left, right)) / np.sqrt(left * right),
            rng.normal(size=right) / np.sqrt(right),
        )

    def truth(self, people: np.ndarray, things: np.ndarray) -> np.ndarray:
        """Return how much each of some people likes each of some things."""
        return (self.people[people] @ self.likes + self.common) @ self.things[things].T

    def rate(self, n_rows: int, seed: int = 0) -> tuple[np.ndarray, ...]:
        """Return X, four grades, the person and the thing of rows, person by person."""
        rng = np.random.default_rng(seed)
        person = np.sort(rng.integers(0, len(self.people), n_rows))
        thing = rng.integers(0, len(self.things), n_rows)
        who = self.people[person] @ self.likes + self.common
        liked = np.einsum("ij,ij->i", who, self.things[thing]) + rng.normal(size=n_rows)
        X = np.hstack([self.people[person], self.things[thing]])
        return X, np.digitize(liked, [-1.0, 0.5, 2.0]).astype(float), person, thing


def cross(left: int, right: int) -> Cross:
    """Return the map of rows of people × things."""
    return Cross(slice(0, left), slice(left, left + right))


def whole(options: Options) -> Iterator[str]:
    """Fit the whole log, with exact scores for people who were never seen."""
    X, y, person, _ = World.draw(options.people, options.things, LEFT, RIGHT).rate(options.rows)
    feature_map = cross(LEFT, RIGHT)
    one = RankRLS(1e4, feature_map=feature_map)
    search = RankRLSCV(feature_map=feature_map, cv=None)
    with PeakMemory() as of_one:
        one.fit(X, y, qid=person)
    with PeakMemory() as of_search:
        search.fit(X, y, qid=person)
    fits = {
        "`RankRLS`": lambda: one.fit(X, y, qid=person),
        "`RankRLSCV`, 34 ridges, leave-query-out": lambda: search.fit(X, y, qid=person),
    }
    times = interleaved(fits, options.repeat)
    memory = dict(zip(times, (mebibytes(m.rise) for m in (of_one, of_search)), strict=True))
    n = (LEFT + 1) * RIGHT
    yield f"{options.rows:,} rows of {options.people:,} people, {LEFT + 1} × {RIGHT} products:"
    yield ratio_table(times, memory=memory)
    yield f"The rows take {mebibytes(X.nbytes)}, the Gram matrix {mebibytes(8 * n * n)}."


def explicit(options: Options) -> Iterator[str]:
    """A tenth of the rows, beside products that are made; the results are equal."""
    n_people, n_rows = options.people // 10, options.rows // 10
    X, y, person, _ = World.draw(n_people, options.things, LEFT, RIGHT).rate(n_rows)
    feature_map = cross(LEFT, RIGHT)
    making, H = stopwatch(lambda: feature_map.fit_transform(X))
    ours = RankRLSCV(feature_map=feature_map, cv=None)
    theirs = RankRLSCV(cv=None)
    a, b = ours.fit(X, y, qid=person), theirs.fit(H, y, qid=person)
    assert abs(a.alpha_ - b.alpha_) < 1e-12 * b.alpha_
    assert np.abs(a.scores_ - b.scores_).max() < 1e-9
    assert np.abs(a.coef_ - b.coef_).max() < 1e-9 * np.abs(b.coef_).max()
    one, other = RankRLS(1e4, feature_map=feature_map), RankRLS(1e4)
    times = interleaved(
        {
            "`Cross`, one ridge": lambda: one.fit(X, y, qid=person),
            "products, one ridge": lambda: other.fit(H, y, qid=person),
            "`Cross`, 34 ridges, leave-query-out": lambda: ours.fit(X, y, qid=person),
            "products, 34 ridges, leave-query-out": lambda: theirs.fit(H, y, qid=person),
        },
        max(1, options.repeat // 2),
    )
    yield f"{n_rows:,} rows; the products, made in {making:.1f} s, take {mebibytes(H.nbytes)}:"
    yield ratio_table(times)


def embeddings(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of length 1 in float32, of which few directions have most of the variance."""
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0].astype(np.float32)
    rows = rng.standard_normal((n, d), dtype=np.float32) / np.sqrt(1 + np.arange(d, dtype="f"))
    rows = rows @ basis + 0.5 * basis[0]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def steps(options: Options) -> Iterator[str]:
    """Products that are too many for a matrix: one ridge by conjugate gradients."""
    n_queries, size, d = 10_000, 100, 384
    rng = np.random.default_rng(0)
    queries = embeddings(n_queries, d, rng)
    X = np.empty((n_queries * size, 2 * d), np.float32)
    truth = queries @ (rng.normal(size=(d, d)) / d).astype(np.float32)
    y = np.empty(len(X))
    for first in range(0, n_queries, 1000):
        rows, own = slice(first * size, (first + 1000) * size), slice(first, first + 1000)
        X[rows, :d] = np.repeat(queries[own], size, axis=0)
        X[rows, d:] = embeddings(1000 * size, d, rng)
        y[rows] = np.einsum("qid,qd->qi", X[rows, d:].reshape(1000, size, d), truth[own]).ravel()
    y = np.digitize(y / y.std() + rng.normal(size=len(y)), [-0.5, 0.7, 1.6]).astype(float)
    documents = X[:, d:].reshape(n_queries, size, d)

    def product(W: np.ndarray) -> np.ndarray:
        """Return G W, query by query, in double."""
        folded, sums = queries.astype(float) @ W, np.empty((n_queries, d))
        for query, V in enumerate(documents):
            z = V.astype(float) @ folded[query]
            sums[query] = size * ((z - z.mean()) @ V)
        return queries.astype(float).T @ sums

    W = np.ones((d, d)) / d
    for _ in range(8):
        W = product(W)
        largest = float(np.linalg.norm(W))
        W /= largest
    alpha = largest / 1e4
    model = RankRLS(alpha, feature_map=Cross(slice(0, d), slice(d, 2 * d)))
    qid = np.repeat(np.arange(n_queries), size)
    with PeakMemory() as memory:
        seconds = [stopwatch(lambda: model.fit(X, y, qid=qid))[0] for _ in range(options.repeat)]
    labels = y.reshape(n_queries, size)
    labels = size * (labels - labels.mean(axis=1, keepdims=True))
    b = queries.astype(float).T @ np.array([z @ V for z, V in zip(labels, documents, strict=True)])
    W = model.coef_.reshape(d, d)
    left = np.linalg.norm(b - product(W) - alpha * W) / np.linalg.norm(b)
    yield f"{len(X):,} rows, {n_queries:,} queries, {d} × {d} products, α = λ_max / 1e4:"
    yield markdown_table(
        ["way", "seconds", "true residual", "memory beside the rows"],
        [["`RankRLS`", f"{np.median(seconds):.1f}", f"{left:.0e}", mebibytes(memory.rise)]],
    )
    yield f"The rows take {mebibytes(X.nbytes)}, a matrix of the products {d**4 * 8 / 1e9:.0f} GB."


def best_things(options: Options) -> Iterator[str]:
    """The ten best things of everybody, beside the product of BLAS alone and `implicit`."""
    from implicit.cpu.topk import topk

    rng = np.random.default_rng(0)
    n_users, n_items, d = 20_000, 100_000, 50
    users, items = rng.normal(size=(n_users, d)), rng.normal(size=(n_items, d))
    X = np.hstack([users[rng.integers(0, n_users, 4000)], items[rng.integers(0, n_items, 4000)]])
    model = RankRLS(feature_map=Cross(slice(0, d), slice(d, 2 * d)))
    model.fit(X, rng.integers(0, 3, 4000), qid=np.arange(4000) // 20)
    weights = model.coef_.reshape(d + 1, d)
    vectors = weights[0] + users @ weights[1:]
    narrow = vectors.astype(np.float32), items.astype(np.float32)
    seen = scipy.sparse.random_array(
        (n_users, n_items), density=2e-4, format="csr", random_state=rng
    )

    def in_blocks(a: np.ndarray, b: np.ndarray) -> None:
        for first in range(0, n_users, 1000):
            a[first : first + 1000] @ b.T

    calls = {
        "`recommend`": lambda: recommend(model, users, items),
        "`recommend(exclude=)`, 20 seen a person": lambda: recommend(
            model, users, items, exclude=seen.nonzero()
        ),
        "BLAS, float64, blocks of the product": lambda: in_blocks(vectors, items),
        "BLAS, float32, blocks of the product": lambda: in_blocks(*narrow),
        "implicit `topk`, float32": lambda: topk(
            narrow[1], narrow[0], 10, num_threads=options.threads
        ),
    }
    yield f"Ten best of {n_items:,} things for each of {n_users:,} people, {d} dimensions:"
    yield ratio_table(interleaved(calls, options.repeat))


def quality(options: Options) -> Iterator[str]:
    """NDCG@10 for people and things that were seen or not, beside LightGBM, LightFM and ALS."""
    import lightgbm
    from implicit.als import AlternatingLeastSquares
    from lightfm import LightFM  # of lightfm-next, which builds

    n_people, n_things, left, right = 1000, 500, 8, 10
    ndcg = get_metric("ndcg@10")
    found: dict[str, list[list[float]]] = {}
    for seed in range(3):
        world = World.draw(n_people, n_things, left, right, seed)
        X, y, person, thing = world.rate(60_000, seed)
        known = (person < 800) & (thing < 400)
        rng = np.random.default_rng(seed)

        def ours(X=X, y=y, person=person, known=known):
            model = RankRLSCV(feature_map=cross(left, right))
            return model.fit(X[known], y[known], qid=person[known]).predict

        def for_all(X=X, y=y, person=person, known=known):
            model = RankRLSCV()
            return model.fit(X[known], y[known], qid=person[known]).predict

        def trees(X=X, y=y, person=person, known=known):
            sizes = np.unique(person[known], return_counts=True)[1]
            ranker = lightgbm.LGBMRanker(
                n_estimators=300, n_jobs=options.threads, verbosity=-1, random_state=0
            )
            return ranker.fit(X[known], y[known].astype(int), group=sizes).predict

        def als(y=y, person=person, thing=thing, known=known, world=world):
            liked = scipy.sparse.csr_array(
                (1.0 + y[known], (person[known], thing[known])), shape=(n_people, n_things)
            )
            model = AlternatingLeastSquares(
                32, random_state=0, num_threads=options.threads, use_gpu=False
            )
            with threadpool_limits(1, "blas"):  # as it advises
                model.fit(scipy.sparse.csr_matrix(liked), show_progress=False)
            return model.user_factors @ model.item_factors.T

        def warp(y=y, person=person, thing=thing, known=known, world=world):
            liked = known & (y >= 2)
            pairs = scipy.sparse.coo_matrix(
                (y[liked] - 1, (person[liked], thing[liked])), shape=(n_people, n_things)
            )
            sides = [
                scipy.sparse.csr_matrix(np.hstack([np.ones((len(rows), 1)), rows]))
                for rows in (world.people, world.things)
            ]
            model = LightFM(32, loss="warp", random_state=0)
            model.fit(
                pairs.astype(bool).astype(np.float32),
                user_features=sides[0],
                item_features=sides[1],
                sample_weight=pairs.astype(np.float32),
                epochs=30,
                num_threads=options.threads,
            )
            _, people = model.get_user_representations(sides[0])
            biases, things = model.get_item_representations(sides[1])
            return people @ things.T + biases

        predicts = {
            "`RankRLSCV` of `Cross`": ours(),
            "`RankRLSCV`, the same list for all": for_all(),
            "LightGBM lambdarank, 300 trees": trees(),
        }
        tables = {
            "LightFM, WARP of features, 32 factors, 30 epochs": (warp(), True),
            "implicit ALS, 32 factors": (als(), False),
        }
        for people, things in (
            (range(800), range(400)),
            (range(800, 1000), range(400)),
            (range(800), range(400, 500)),
            (range(800, 1000), range(400, 500)),
        ):
            some = rng.choice(np.array(people), 200, replace=False)
            shown = np.array(things)
            truth = world.truth(some, shown)
            grades = np.digitize(truth, [-1.0, 0.5, 2.0]).astype(float).ravel()
            rows = np.hstack(
                [
                    np.repeat(world.people[some], len(shown), axis=0),
                    np.tile(world.things[shown], (len(some), 1)),
                ]
            )
            lists = np.repeat(np.arange(len(some)), len(shown))
            for name, predict in predicts.items():
                value = ndcg(grades, predict(rows), lists)
                found.setdefault(name, [[], [], [], []])[_number(people, things)].append(value)
            seen = people.start == 0 and things.start == 0
            for name, (scores, has_features) in tables.items():
                value = np.nan
                if seen or has_features:
                    value = ndcg(grades, scores[np.ix_(some, shown)].ravel(), lists)
                found.setdefault(name, [[], [], [], []])[_number(people, things)].append(value)
    yield f"NDCG@10 of all things, {n_people:,} × {n_things}, {left} × {right} features, 3 seeds:"
    yield markdown_table(
        ["way", "people and things seen", "new people", "new things", "both new"],
        [
            [name, *(f"{np.mean(v):.3f}" if np.isfinite(v).all() else "" for v in values)]
            for name, values in found.items()
        ],
    )


def _number(people: range, things: range) -> int:
    """Return the column of people and things that were seen or not."""
    return int(people.start > 0) + 2 * int(things.start > 0)


def rows(options: Options) -> Iterator[str]:
    """Things that were not seen, drawn for a million interactions."""
    rng = np.random.default_rng(0)
    n, n_users, n_items = 1_000_000, 50_000, 100_000
    users, items = rng.integers(0, n_users, n), (n_items * rng.random(n) ** 3).astype(np.int64)
    catalog = np.arange(n_items)

    def by_loop(n_drawn: int = 1) -> None:
        order = np.argsort(users, kind="stable")
        for own in np.split(items[order], np.flatnonzero(np.diff(users[order])) + 1):
            left = np.setdiff1d(catalog[rng.integers(0, n_items, 2 * n_drawn * len(own))], own)
            rng.permutation(left)[: n_drawn * len(own)]

    calls = {
        f"`sample_negatives`, {by}, {n_drawn} each": lambda by=by, n_drawn=n_drawn: (
            sample_negatives(users, items, n_drawn, by=by, catalog=catalog, random_state=0)
        )
        for by in ("uniform", "popularity")
        for n_drawn in (1, 4)
    }
    calls["a loop over users in NumPy, uniform, 1 each"] = by_loop
    calls["`leave_last_out`"] = lambda: leave_last_out(users, np.arange(n))
    yield f"{n:,} interactions of {n_users:,} people with {n_items:,} things:"
    yield ratio_table(interleaved(calls, options.repeat))


TABLES = {
    "whole": whole,
    "explicit": explicit,
    "steps": steps,
    "recommend": best_things,
    "rows": rows,
    "quality": quality,
}


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=6_040, metavar="N")
    parser.add_argument("--things", type=int, default=3_700, metavar="N")
    parser.add_argument("--rows", type=int, default=800_000, metavar="N")
    packages = ("numpy", "scipy", "lightgbm", "implicit", "lightfm-next")
    print_tables(parser, TABLES, Options, packages, repeat=3)


if __name__ == "__main__":
    main()
