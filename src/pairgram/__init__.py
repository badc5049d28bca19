"""Learning to rank from one small matrix.

Rankers are scikit-learn estimators: ``fit(X, y, qid=...)``, ``predict(X)``, ``save(path)``. Those
whose names end in CV choose their settings by held-out queries.

Train:
    RankRLS, RankRLSCV                        least squares on pairs, or on rows (``pairs=None``)
    PairwiseELM, PairwiseELMCV                on pairs, on random nodes or with a kernel
    PointwiseELM, PointwiseELMCV              on rows, on random nodes or with a kernel
    ELMRank, ELMRankCV                        pairs of all rows, draws of nodes averaged
    AutoRanker                                chooses the best of several models by held-out queries
    RankSVM, RankSVMCV                        squared hinge loss on pairs
    fit_many, BatchFit                        a model for each of many data sets
    recommend                                 the best items for every user
    posterior, Posterior                      how sure the scores of a model are
    propose                                   which rows to measure next
    fuse                                      one result list of several: RRF, CombSUM, learnt
    within_lists                              ranks and scales of columns within their lists
    save_model, load_model                    files of models, and of pipelines that end in one
    row_scorer                                a fast function that scores rows, for serving
    threads, time_limit                       how many threads a ``with`` block takes, and how long

Say what is compared:
    Pairs                                     which pairs, with what weight, and their targets
    Preferences                               "A was preferred to B", in place of labels
    probability_preferred                     how likely each of two rows is to be preferred
    Clicks                                    clicks on lists, with propensities, in place of labels

Map features:
    Standard, MinMax, MaxAbs, Quantile        scales and quantiles of columns, as ``feature_map``
    Fill                                      values in the place of missing ones
    RandomNodes, RandomFourier, Nystroem      the ``feature_map`` of RankRLS or RankSVM
    Cross                                     products of two groups of columns, users × items
    Kernel, kernel_matrix                     a kernel in place of a map, and its values

Send a model elsewhere:
    export                                    to search engines, ONNX, SQL and Python

Constrain weights:
    Positive, ElasticNet, MaxNonzero          the ``constraint`` of RankRLS

Make rows from interactions:
    sample_negatives                          items that users have not seen, to learn from
    leave_last_out                            the last interactions of every user, to test with

Stream, merge and subtract data:
    Pairgram                                  the sufficient statistics

Measure:
    evaluate, metric_names                    ranking metrics by name
    evaluate_run                              metrics of TREC runs, by ids of documents
    compare, compare_values, Comparison         systems, query by query, with tests
    get_metric, Metric, make_scorer           one metric, or a scorer of scikit-learn
    QueryKFold                                folds of whole queries
    MissingQueryWarning                       warns of query ids that an estimator does not get

Understand a ranker:
    plots                                     pictures, drawn by matplotlib

Grow trees on what a ranker leaves:
    trees                                     the loss of pairs for LightGBM, and where trees start

Read, write and make data:
    load_letor, load_letor_folds, dump_letor  LETOR (SVMlight) files
    read_run, write_run, read_qrels           TREC runs and relevance judgements
    read_feature_log                          features that a search engine logged
    scan, predict                             tables larger than memory
    make_ranking                              seeded synthetic data
"""

import importlib
import sys
from typing import Any

from pairgram._rooms import ROOMS

if sys.version_info < (3, 12):  # later versions refuse by themselves what here would hang
    _interpreters = importlib.import_module("_xxsubinterpreters")
    if _interpreters.get_current() != _interpreters.get_main():
        raise ImportError(
            "pairgram works in the main interpreter of a process alone, and this is a "
            "sub-interpreter: give mod_wsgi WSGIApplicationGroup %{GLOBAL}, or take another server"
        )

# Names come with their first use: SciPy and scikit-learn take a second to import, which neither
# `pairgram --help` nor a program that only reads files should wait for.
_NAMES = {
    "_core": ("__version__",),
    "_support.machine": ("threads", "time_limit"),
    "data.pairs": ("Pairs",),
    "data.queries": ("MissingQueryWarning",),
    "datasets": (
        "dump_letor",
        "load_letor",
        "load_letor_folds",
        "make_ranking",
    ),
    "features.kernel_map": ("Kernel",),
    "features.kernels": ("kernel_matrix",),
    "features.nystroem": ("Nystroem",),
    "features.random_fourier": ("RandomFourier",),
    "features.random_nodes": ("RandomNodes",),
    "features.row_values": ("Fill", "MaxAbs", "MinMax", "Quantile", "Standard"),
    "metrics": ("Metric", "evaluate", "get_metric", "make_scorer", "metric_names"),
    "model_selection.splits": ("QueryKFold",),
    "rankers.batch_fit": ("BatchFit",),
    "rankers.elm": ("PairwiseELM", "PairwiseELMCV", "PointwiseELM", "PointwiseELMCV"),
    "rankers.elm_rank": ("ELMRank", "ELMRankCV"),
    "rankers.fit_many": ("fit_many",),
    "rankers.load": ("load_model", "save_model"),
    "rankers.rank_rls": ("RankRLS", "RankRLSCV"),
    "rankers.rank_svm": ("RankSVM", "RankSVMCV"),
    "solvers.pairgram": ("Pairgram",),
}
for _room in ROOMS.values():
    _NAMES |= _room.names
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULE_OF)
_FOLDERS = {module.partition(".")[0] for module in _NAMES if module[0] != "_"} | {
    room for room in ROOMS if ROOMS[room].is_attribute
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(f"pairgram.{_MODULE_OF[name]}"), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"pairgram.{name}")
    else:
        raise AttributeError(f"module 'pairgram' has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_FOLDERS, *(name for name in globals() if name.startswith("__"))})
