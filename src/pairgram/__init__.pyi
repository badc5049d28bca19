"""The public names, for type checkers; `__init__.py` imports each at its first use."""

from pairgram import (
    auto as auto,
    certainty as certainty,
    clicks as clicks,
    comparing as comparing,
    comparisons as comparisons,
    constraints as constraints,
    cross as cross,
    datasets as datasets,
    export as export,
    lists as lists,
    metrics as metrics,
    plots as plots,
    tables as tables,
    trec as trec,
    trees as trees,
)
from pairgram._core import __version__ as __version__
from pairgram._support.machine import threads as threads, time_limit as time_limit
from pairgram.auto.ranker import AutoRanker as AutoRanker
from pairgram.certainty.fitted_posterior import posterior as posterior
from pairgram.certainty.posterior import Posterior as Posterior
from pairgram.certainty.propose import propose as propose
from pairgram.clicks.clicked import Clicks as Clicks
from pairgram.comparing.comparison import (
    Comparison as Comparison,
    compare as compare,
    compare_values as compare_values,
)
from pairgram.comparisons.preferences import Preferences as Preferences
from pairgram.comparisons.probabilities import probability_preferred as probability_preferred
from pairgram.constraints import (
    ElasticNet as ElasticNet,
    MaxNonzero as MaxNonzero,
    Positive as Positive,
)
from pairgram.cross.interactions import (
    leave_last_out as leave_last_out,
    sample_negatives as sample_negatives,
)
from pairgram.cross.products import Cross as Cross
from pairgram.cross.recommend import recommend as recommend
from pairgram.data.pairs import Pairs as Pairs
from pairgram.data.queries import MissingQueryWarning as MissingQueryWarning
from pairgram.datasets import (
    dump_letor as dump_letor,
    load_letor as load_letor,
    load_letor_folds as load_letor_folds,
    make_ranking as make_ranking,
)
from pairgram.export.feature_log import read_feature_log as read_feature_log
from pairgram.export.pipelines import row_scorer as row_scorer
from pairgram.features.kernel_map import Kernel as Kernel
from pairgram.features.kernels import kernel_matrix as kernel_matrix
from pairgram.features.nystroem import Nystroem as Nystroem
from pairgram.features.random_fourier import RandomFourier as RandomFourier
from pairgram.features.random_nodes import RandomNodes as RandomNodes
from pairgram.features.row_values import (
    Fill as Fill,
    MaxAbs as MaxAbs,
    MinMax as MinMax,
    Quantile as Quantile,
    Standard as Standard,
)
from pairgram.lists.fusion import fuse as fuse
from pairgram.lists.within_lists import within_lists as within_lists
from pairgram.metrics import (
    Metric as Metric,
    evaluate as evaluate,
    get_metric as get_metric,
    make_scorer as make_scorer,
    metric_names as metric_names,
)
from pairgram.model_selection.splits import QueryKFold as QueryKFold
from pairgram.rankers.batch_fit import BatchFit as BatchFit
from pairgram.rankers.elm import (
    PairwiseELM as PairwiseELM,
    PairwiseELMCV as PairwiseELMCV,
    PointwiseELM as PointwiseELM,
    PointwiseELMCV as PointwiseELMCV,
)
from pairgram.rankers.elm_rank import ELMRank as ELMRank, ELMRankCV as ELMRankCV
from pairgram.rankers.fit_many import fit_many as fit_many
from pairgram.rankers.load import load_model as load_model, save_model as save_model
from pairgram.rankers.rank_rls import RankRLS as RankRLS, RankRLSCV as RankRLSCV
from pairgram.rankers.rank_svm import RankSVM as RankSVM, RankSVMCV as RankSVMCV
from pairgram.solvers.pairgram import Pairgram as Pairgram
from pairgram.tables.scan import scan as scan
from pairgram.tables.table_scores import predict as predict
from pairgram.trec.run_files import (
    read_qrels as read_qrels,
    read_run as read_run,
    write_run as write_run,
)
from pairgram.trec.runs import evaluate_run as evaluate_run

__all__: list[str]
