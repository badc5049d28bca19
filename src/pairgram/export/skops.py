"""`skops_types`: what a file of skops may hold of this package."""

from __future__ import annotations

# By module: all that fitted rankers, feature maps and statistics are made of.
TYPES = {
    "data.hashed_ids": ("IdSet", "QueryIds", "WeightedIds"),
    "data.pairs": ("PairSettings",),
    "data.seen_columns": ("SeenColumns",),
    "features.cross": ("Cross",),
    "features.inputs": ("ListInputs", "QuantileInputs", "ScaledInputs"),
    "features.kernel_map": ("KernelMap",),
    "features.kernels": ("Kernel", "Product", "Sum"),
    "features.nystroem": ("Nystroem",),
    "features.random_fourier": ("RandomFourier",),
    "features.random_nodes": ("RandomNodes",),
    "metrics.evaluation": ("RankingScorer",),
    "metrics.metric": ("Metric",),
    "model_selection.judge": ("Criterion",),
    "rankers.auto": ("AutoRanker",),
    "rankers.elm": ("PairwiseELM", "PointwiseELM"),
    "rankers.elm_rank": ("ELMRank", "ELMRankCV"),
    "rankers.rank_rls": ("LSSVR", "MPRank", "RankRLS", "RankRLSCV"),
    "rankers.rank_svm": ("RankSVM", "RankSVMCV"),
    "solvers.pair_sums": ("PairSums",),
    "solvers.pairgram": ("Pairgram",),
    "solvers.posterior": ("Posterior",),
    "solvers.ridge_path": ("ColumnSums",),
}


def skops_types() -> list[str]:
    """Return the names of this package's types that a file of skops may hold, to be trusted.

    ``skops.io.dump`` writes any model and pipeline of this package without pickle. Its ``load``
    asks which types that are not scikit-learn's it may make: these. None of them runs code of the
    file. A loaded model gives the same bits.

    Returns
    -------
    list of str

    Notes
    -----
    A file of `save_model` is checked when it is read, every number and shape, and later versions
    read it. A file of skops is not checked in this way, and names modules that may change: read it
    with the version that wrote it, and only if you know who did.

    Examples
    --------
    >>> import skops.io
    >>> import pairgram
    >>> X, y, qid = pairgram.make_ranking(random_state=0)
    >>> skops.io.dump(pairgram.RankRLS().fit(X, y, qid=qid), "model.skops")
    >>> model = skops.io.load("model.skops", trusted=pairgram.export.skops_types())
    >>> model.predict(X).shape
    (2000,)
    """
    return [f"pairgram.{module}.{name}" for module, names in TYPES.items() for name in names]
