"""A user's script, which .ci/run gives to type checkers beside the installed package, and runs."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import pairgram
from pairgram import (
    AutoRanker,
    Metric,
    Nystroem,
    Pairgram,
    RankRLS,
    RankRLSCV,
    RankSVM,
    compare,
    evaluate,
    export,
    fit_many,
    get_metric,
    load_model,
    make_ranking,
)


def searched(X: NDArray[np.float64], y: NDArray[np.float64], qid: NDArray[np.int64]) -> RankRLSCV:
    """Return a linear model whose ridge is chosen."""
    model = RankRLSCV(
        pairs=["with_ties", "without_ties"], feature_map="standard", scoring="ndcg@10"
    )
    fitted: RankRLSCV = model.fit(X, y, qid=qid)
    return fitted


def main() -> None:
    """Fit, judge, save, load and export models."""
    X, y, qid = make_ranking(20, (3, 12), 5, random_state=0)
    model = searched(X, y, qid)
    scores: NDArray[np.float64] = model.predict(X)
    metric: Metric = get_metric("map")
    means: dict[str, float] = evaluate(["ndcg@10", metric], y, scores, qid)
    values = metric(y, scores, qid=qid, per_query=True)
    svm = RankSVM(C=0.1, feature_map=Nystroem(n_components=10, random_state=0)).fit(X, y, qid=qid)
    table = compare(y, qid, {"ridge": scores, "svm": svm.predict(X)}, "ndcg@10")
    first = qid < 10
    total = Pairgram.from_rows(X[first], y[first], qid=qid[first])
    total += Pairgram.from_rows(X[~first], y[~first], qid=qid[~first])
    path: NDArray[np.float64] = total.path([0.1, 1.0])
    batch = fit_many(RankRLS(alpha=1.0), [(X[qid == q], y[qid == q]) for q in range(3)])
    automatic = AutoRanker(time_budget=0.2, random_state=0).fit(X, y, qid=qid)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        again = load_model(file)
        assert np.array_equal(again.predict(X), scores)
    body = export.to_solr(RankRLS().fit(X, y, qid=qid), "model", features=list("abcde"))
    print(pairgram.__version__, means["map"], values.shape, path.shape, len(batch.models))
    print(table, automatic.predict(X).shape, len(body["features"]))


if __name__ == "__main__":
    main()
