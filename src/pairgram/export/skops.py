"""`skops_types`: the types of this package that a skops file may hold."""

from __future__ import annotations

from pairgram._rooms import words_of

# By module: what fitted rankers, feature maps and statistics are made of; rooms name their own.
TYPES = {
    "data.hashed_ids": ("QueryIds",),
    "data.pairs": ("Pairs",),
    "features.inputs": ("FittedInputs",),
    "features.kernel_map": ("Kernel",),
    "features.nystroem": ("Nystroem",),
    "features.random_fourier": ("RandomFourier",),
    "features.random_nodes": ("RandomNodes",),
    "features.row_values": ("Fill", "MaxAbs", "MinMax", "Quantile", "Standard"),
    "metrics.evaluation": ("RankingScorer",),
    "metrics.metric": ("Metric",),
    "model_selection.splits": ("QueryKFold",),
    "rankers.elm": ("PairwiseELM", "PairwiseELMCV", "PointwiseELM", "PointwiseELMCV"),
    "rankers.elm_rank": ("ELMRank", "ELMRankCV"),
    "rankers.rank_rls": ("RankRLS", "RankRLSCV"),
    "rankers.rank_svm": ("RankSVM", "RankSVMCV"),
    "solvers.pair_sums": ("Mean", "PairSums"),
    "solvers.pairgram": ("Pairgram",),
    "solvers.ridge_path": ("ColumnSums",),
}


def skops_types() -> list[str]:
    """Return the names of this package's types, for the argument ``trusted`` of ``skops.io.load``.

    ``skops.io.dump`` writes any model and pipeline of this package without pickle. ``load`` must be
    told which types besides scikit-learn's it may create: these. None of them runs code from the
    file. A loaded model gives scores with the same bits.

    Returns
    -------
    list of str

    Notes
    -----
    When a file of `save_model` is read, every number and shape is checked, and later versions of
    this package read it. A skops file is not checked in this way, and names modules that may
    change: read it with the version that wrote it, and only if you know who wrote it.

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
    own = [(name, module) for module, names in TYPES.items() for name in names]
    return [f"pairgram.{module}.{name}" for name, module in (*own, *words_of("skops").items())]
