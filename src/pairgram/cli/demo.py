"""``pairgram demo`` compares pairwise with pointwise least squares on synthetic data."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

import pairgram
from pairgram.cli import options as opt
from pairgram.cli.report import print_json, print_lines, print_table, show_rows

METRICS = ("ndcg@10", "map", "pairwise_accuracy")
N_TRAIN = 60
#: 60 training queries and 200 test queries. Each query has its own level of relevance.
DATA: dict[str, Any] = {
    "n_queries": N_TRAIN + 200,
    "n_documents": 30,
    "n_features": 50,
    "noise": 0.5,
    "query_effect": 1.0,
}


def run_demo(seed: int, n_threads: int | None) -> list[dict[str, Any]]:
    """Return choices, scores and times of a random order, pointwise RLS and RankRLS.

    Both models choose alpha by leave-query-out. The pointwise model gets centred data, which acts
    like an intercept. Without it the comparison would not be fair.
    """
    import numpy as np

    X, y, qid = pairgram.make_ranking(**DATA, random_state=seed)
    train = qid < N_TRAIN
    test = ~train
    X_train, y_train = X[train], y[train]
    models = (
        ("RLS, pointwise", [None], X_train - X_train.mean(axis=0), y_train - y_train.mean()),
        ("RankRLS, pairwise", ["kept", "dropped"], X_train, y_train),
    )
    pairgram.RankRLSCV(pairs=["kept"]).fit(
        X_train[:60], y_train[:60], qid=qid[:60]
    )  # loads libraries
    order = np.random.default_rng(seed).permutation(int(test.sum()))
    rows: list[dict[str, Any]] = [
        {"model": "random order", "alpha": None, "pairs": None, "seconds": None}
    ]
    scores = [order.astype(np.float64)]
    for name, pairs, features, labels in models:
        start = time.perf_counter()
        model = pairgram.RankRLSCV(
            pairs=pairs,  # type: ignore[arg-type]
            scoring="pairwise_accuracy",
            n_threads=n_threads,
        )
        model.fit(features, labels, qid=qid[train])
        seconds = time.perf_counter() - start
        rows.append(
            {"model": name, "alpha": model.alpha_, "pairs": model.pairs_, "seconds": seconds}
        )
        scores.append(model.predict(X[test]))
    values = pairgram.evaluate(METRICS, y[test], np.array(scores), qid[test], n_threads=n_threads)
    return [
        {**row, "test": {name: float(values[name][i]) for name in METRICS}}
        for i, row in enumerate(rows)
    ]


def demo(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the data.")] = 0,
    threads: opt.Threads = None,
    as_json: opt.Json = False,
) -> None:
    """Learn to rank synthetic data; nothing is downloaded.

    Each query has its own level of relevance and of features, as real queries do. This level says
    nothing about the order within the query. Pointwise least squares fits it all the same, and
    loses accuracy. Pairs within a query do not see it. Both models choose their ridge by exact
    leave-query-out on the training queries, and are tested on other queries.

    \b
    Examples:
      pairgram demo
      pairgram demo --seed 1 --json
    """
    start = time.perf_counter()
    rows = run_demo(seed, threads)
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"seed": seed, "data": DATA, "n_train": N_TRAIN, "models": rows})
        return
    size = f"{N_TRAIN} queries to train on, {DATA['n_queries'] - N_TRAIN} to test on"
    print_table(
        ("model", *METRICS, "alpha", "seconds"),
        [
            (
                row["model"],
                *row["test"].values(),
                row["alpha"] or "",
                "" if row["seconds"] is None else row["seconds"],
            )
            for row in show_rows(rows)
        ],
        title=f"{size}, {DATA['n_documents']} documents of {DATA['n_features']} features each",
    )
    print_lines(
        [
            "metrics are those of the test queries; seconds are those of fitting and choosing",
            f"{seconds:.2f} s in all",
        ]
    )
