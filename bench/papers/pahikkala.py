"""Pahikkala et al. 2007: RankRLS and RLS on OHSUMED, and on graphs with a graph kernel.

    python bench/papers/pahikkala.py [--data FOLDER] [--threads N] [--seeds N]

T. Pahikkala, E. Tsivtsivadze, A. Airola, J. Boberg, T. Salakoski. Learning to rank with pairwise
regularized least-squares. SIGIR workshop on learning to rank, 2007. FOLDER/OHSUMED, and TD2003 and
TD2004 if they are there, hold LETOR 3.0's S1.txt ... S5.txt; see bench/letor.py. Each of the five
folds trains on three parts, chooses the ridge, and RankRLS whether tied pairs count, by MAP on the
fourth and is tested on the fifth. The paper's features are those of LETOR 1.0, of which OHSUMED has
25, LETOR 3.0 has 45. Prints Tables 1-3, and Table 8's comparison, dual RankRLS against RLS by
Kendall's τ_b, on made parses, for the paper's corpus is not free: NetworkX graphs with labelled
nodes, and Weisfeiler and Lehman's subtree kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse
from shared import comparison, markdown_table, parser, progress, seconds, start, stopwatch

import pairgram
from pairgram.datasets import Fold

MAP = pairgram.get_metric("map", "letor")
NAMES = ["map", *(f"{name}@{k}" for name in ("ndcg", "p") for k in range(1, 11))]
MEASURES = [pairgram.get_metric(name, "letor") for name in NAMES]
ALPHAS = 2.0 ** np.arange(-10, 21)
RANK_RLS, RLS, RANK_SVM, RANK_BOOST = "RankRLS", "RLS", "RankSVM", "RankBoost"
RANK_SVM_CS = 2.0 ** np.arange(-13, 6)  # of Chen et al. 2017
# LETOR's names of the folders.
FOLDERS = {"OHSUMED": "OHSUMED", "TREC2003": "TD2003", "TREC2004": "TD2004"}

# Tables 1-3: MAP, NDCG@1 ... NDCG@10, P@1 ... P@10. On OHSUMED MAP counts label 1 as relevant: with
# label 2 alone, as the text says, it would be near .32.
# fmt: off
PAPER: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "OHSUMED": {
        RANK_RLS: (
            0.447,
            0.549, 0.492, 0.477, 0.465, 0.453, 0.450, 0.451, 0.447, 0.447, 0.443,
            0.644, 0.614, 0.586, 0.570, 0.557, 0.546, 0.534, 0.524, 0.516, 0.505,
        ),
        RLS: (
            0.450,
            0.527, 0.499, 0.491, 0.474, 0.461, 0.454, 0.459, 0.460, 0.458, 0.452,
            0.635, 0.615, 0.602, 0.580, 0.560, 0.541, 0.545, 0.539, 0.525, 0.510,
        ),
        RANK_SVM: (
            0.447,
            0.495, 0.476, 0.465, 0.459, 0.458, 0.455, 0.447, 0.445, 0.443, 0.441,
            0.634, 0.619, 0.592, 0.579, 0.577, 0.558, 0.536, 0.525, 0.517, 0.507,
        ),
        RANK_BOOST: (
            0.440,
            0.498, 0.483, 0.473, 0.461, 0.450, 0.442, 0.439, 0.436, 0.433, 0.436,
            0.605, 0.595, 0.586, 0.562, 0.545, 0.525, 0.516, 0.505, 0.494, 0.495,
        ),
    },
    "TREC2003": {
        RANK_RLS: (
            0.257,
            0.400, 0.370, 0.355, 0.351, 0.350, 0.341, 0.344, 0.342, 0.344, 0.346,
            0.400, 0.350, 0.307, 0.285, 0.272, 0.247, 0.243, 0.230, 0.222, 0.214,
        ),
        RLS: (
            0.212,
            0.320, 0.350, 0.315, 0.310, 0.302, 0.301, 0.298, 0.296, 0.301, 0.303,
            0.320, 0.340, 0.273, 0.245, 0.220, 0.207, 0.194, 0.182, 0.182, 0.176,
        ),
        RANK_SVM: (
            0.256,
            0.420, 0.370, 0.379, 0.363, 0.347, 0.341, 0.340, 0.345, 0.342, 0.341,
            0.420, 0.350, 0.340, 0.300, 0.264, 0.243, 0.234, 0.233, 0.218, 0.206,
        ),
        RANK_BOOST: (
            0.212,
            0.260, 0.280, 0.270, 0.272, 0.279, 0.280, 0.287, 0.282, 0.282, 0.285,
            0.260, 0.270, 0.240, 0.230, 0.220, 0.210, 0.211, 0.193, 0.182, 0.178,
        ),
    },
    "TREC2004": {
        RANK_RLS: (
            0.359,
            0.480, 0.427, 0.421, 0.419, 0.407, 0.408, 0.410, 0.416, 0.418, 0.433,
            0.480, 0.400, 0.369, 0.347, 0.309, 0.291, 0.270, 0.253, 0.240, 0.235,
        ),
        RLS: (
            0.304,
            0.400, 0.373, 0.360, 0.364, 0.354, 0.351, 0.355, 0.356, 0.359, 0.370,
            0.400, 0.347, 0.316, 0.293, 0.261, 0.238, 0.225, 0.210, 0.197, 0.197,
        ),
        RANK_SVM: (
            0.350,
            0.440, 0.433, 0.409, 0.406, 0.393, 0.397, 0.406, 0.410, 0.414, 0.420,
            0.440, 0.407, 0.351, 0.327, 0.291, 0.273, 0.261, 0.247, 0.236, 0.225,
        ),
        RANK_BOOST: (
            0.384,
            0.480, 0.473, 0.464, 0.439, 0.437, 0.448, 0.457, 0.461, 0.464, 0.472,
            0.480, 0.447, 0.404, 0.347, 0.323, 0.304, 0.293, 0.277, 0.262, 0.253,
        ),
    },
}
# fmt: on
PAPER_PARSES = {RLS: "0.444", RANK_RLS: "0.500"}  # Table 8, τ_b

Predict = Callable[[Any], np.ndarray]


def train_rank_rls(fold: Fold) -> Predict:
    """Choose the ridge, and whether tied pairs count, by validation MAP."""
    model = pairgram.RankRLSCV(ALPHAS, pairs=["with_ties", "without_ties"], scoring=MAP)
    return _chosen(model, fold)


def train_rls(fold: Fold) -> Predict:
    """Least squares on labels: with an intercept, all pairs of rows, kept."""
    model = pairgram.RankRLSCV(
        ALPHAS, pairs=pairgram.Pairs(scope="global", weighting="documents"), scoring=MAP
    )
    return _chosen(model, fold)


def train_rank_svm(fold: Fold) -> Predict:
    """Choose C by validation MAP; the hinge is squared, which the paper's is not."""
    return _chosen(pairgram.RankSVMCV(RANK_SVM_CS, scoring=MAP), fold)


def _chosen(model: Any, fold: Fold) -> Predict:
    X, y, qid = fold.train
    fitted: Predict = model.fit(X, y, qid=qid, validation=fold.valid).predict
    return fitted


def measure(folds: list[Fold], train: Callable[[Fold], Predict]) -> tuple[np.ndarray, float]:
    """Return the mean measures of the folds, (1, n_measures), and the seconds of training."""
    time, values = 0.0, np.empty((len(folds), len(MEASURES)))
    for row, fold in zip(values, folds, strict=True):
        fold_time, predict = stopwatch(functools.partial(train, fold))
        time += fold_time
        X, y, qid = fold.test
        row[:] = list(pairgram.evaluate(MEASURES, y, predict(X), qid).values())
    return values.mean(axis=0)[None], time


def tables_1_to_3(name: str, folds: list[Fold]) -> str:
    """Return a data set's part of Tables 1-3, and the times; ours blank where there are no folds.

    RankBoost's cells are the paper's alone.
    """
    none = np.full((1, len(MEASURES)), np.nan)
    results, times = dict.fromkeys(PAPER[name], none), []
    ways = {RANK_RLS: train_rank_rls, RLS: train_rls, RANK_SVM: train_rank_svm} if folds else {}
    for way, train in ways.items():
        progress(f"{name}, {way}")
        results[way], time = measure(folds, train)
        times.append([way, seconds(time)])
    rows = [metric.upper() for metric in NAMES]
    table = comparison(PAPER[name], results, rows, decimals=3)
    if not folds:
        return f"Tables 1-3, {name}, no files\n{table}"
    spent = markdown_table([f"{name}, five folds", "training and choosing"], times)
    return f"Tables 1-3, {name}\n{table}\n\n{spent}"


# Graphs -------------------------------------------------------------------------------------------

N_SENTENCES, N_PARSES, N_LABELS, DEPTH = 60, 15, 8, 2
RLS_ONE_LEVEL = "RLS, all sentences at one level"


class Parses(NamedTuple):
    """Graphs of words, their goodness in two parts, and their sentences."""

    graphs: list[nx.Graph]  # nodes with a "label"
    share: np.ndarray  # of a graph's edges that are right
    level: np.ndarray  # of its sentence
    qid: np.ndarray


def make_parses(seed: int, n_sentences: int) -> Parses:
    """Make sentences of labelled words, and candidate graphs on each.

    The right edges obey a grammar, the pairs of labels that may be joined. A candidate has a share
    of its edges replaced by any; its goodness is the share that is right, to which its sentence
    adds a level of its own, as long sentences are hard to annotate. Edges have no direction, like
    the links of the Link Grammar.
    """
    grammar = np.triu(np.random.default_rng(7).random((N_LABELS, N_LABELS)) < 0.25)
    allowed = grammar | grammar.T
    rng = np.random.default_rng(seed)
    graphs, share, level = [], [], []
    for _ in range(n_sentences):
        n_words = int(rng.integers(12, 25))
        labels = rng.integers(0, N_LABELS, n_words)
        pairs = np.column_stack(np.triu_indices(n_words, 1))
        right = pairs[allowed[labels[pairs[:, 0]], labels[pairs[:, 1]]]]
        right = right[rng.permutation(len(right))[: 2 * n_words]]
        words = nx.Graph()
        words.add_nodes_from((word, {"label": int(label)}) for word, label in enumerate(labels))
        correct = nx.Graph(right.tolist())
        level += [rng.normal()] * N_PARSES
        for _ in range(N_PARSES):
            edges, wrong = right.copy(), rng.random(len(right)) < rng.uniform(0, 0.6)
            edges[wrong] = pairs[rng.integers(0, len(pairs), wrong.sum())]
            parse = words.copy()
            parse.add_edges_from(edges.tolist())
            graphs.append(parse)
            n_right = sum(correct.has_edge(*edge) for edge in parse.edges)
            share.append(n_right / max(parse.number_of_edges(), 1))
    qid = np.repeat(np.arange(n_sentences), N_PARSES)
    return Parses(graphs, np.array(share), np.array(level), qid)


def subtree_names(graphs: Iterable[nx.Graph], depth: int) -> Iterator[list[dict[Any, int]]]:
    """Yield the names of the nodes of each graph, {node: name}, at depths 0 ... `depth`.

    Nodes of any graphs share a name at depth k if and only if Weisfeiler and Lehman's relabelling
    gives them the same subtree of k steps. At depth 0 that is the node's attribute "label", then
    its name before with the sorted names of its neighbours (its successors, if edges have a
    direction). Shervashidze et al., JMLR 2011.
    """
    names: dict[Any, int] = {}
    for graph in graphs:
        keys: dict[Any, Any] = {node: data["label"] for node, data in graph.nodes(data=True)}
        found = []
        for step in range(depth + 1):
            now = {node: names.setdefault((step, key), len(names)) for node, key in keys.items()}
            keys = {node: (now[node], *sorted(now[other] for other in graph[node])) for node in now}
            found.append(now)
        yield found


def subtree_counts(graphs: Iterable[nx.Graph], depth: int) -> scipy.sparse.csr_array:
    """Return how often each name occurs in each graph, CSR (n_graphs, n_names)."""
    columns: list[int] = []
    ends = [0]
    for found in subtree_names(graphs, depth):
        columns += [name for names in found for name in names.values()]
        ends.append(len(columns))
    counts = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends))
    counts.sum_duplicates()
    return counts


def subtree_kernel(graphs: Iterable[nx.Graph], depth: int = DEPTH) -> np.ndarray:
    """Return the cosine of the counts of every two graphs, (n_graphs, n_graphs), 1 if isomorphic.

    Train and test graphs go in together; those to be predicted are rows, those trained on columns.
    """
    counts = subtree_counts(graphs, depth)
    K = (counts @ counts.T).toarray()
    return np.asarray(K / np.sqrt(np.outer(K.diagonal(), K.diagonal())))


def parse_correlations(seed: int, n_sentences: int) -> dict[str, float]:
    """Return the mean τ_b of RLS and of RankRLS on sentences that they have not seen.

    All choose the ridge by held-out sentences. RankRLS learns from differences within sentences, to
    which their levels are nothing; RLS has to fit the levels, whose size is ours to choose. So RLS
    is also given the same graphs with goodness free of them: how far that brings it up to RankRLS
    is how much of the latter's advantage the levels make. (RankRLS is the same on both.)
    """
    data = make_parses(seed, 2 * n_sentences)
    K = subtree_kernel(data.graphs)
    train = data.qid < n_sentences
    y = data.share + data.level
    found = {}
    for name, target, pairs in (
        (RLS, y, None),
        (RANK_RLS, y, "with_ties"),
        (RLS_ONE_LEVEL, data.share, None),
    ):
        model = pairgram.RankRLSCV(
            pairs=pairs, feature_map=pairgram.Kernel("precomputed"), scoring="kendall"
        )
        centred = target[train] - target[train].mean()  # the intercept of RLS
        model.fit(K[np.ix_(train, train)], centred, qid=data.qid[train])
        scores = model.predict(K[np.ix_(~train, train)])
        found[name] = float(
            pairgram.evaluate("kendall", y[~train], scores, data.qid[~train])["kendall"]
        )
    return found


def table_8(n_seeds: int, n_sentences: int) -> str:
    """Return τ_b on made parses beside the paper's on its corpus."""
    runs = [parse_correlations(seed, n_sentences) for seed in range(n_seeds)]
    rows = []
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
        rows.append([name, PAPER_PARSES.get(name, ""), f"{values.mean():.3f}{spread}"])
    better = np.mean([run[RANK_RLS] > run[RLS] for run in runs])
    rows.append(["RankRLS above RLS", "", f"{better:.0%} of {n_seeds} seeds"])
    return markdown_table(["τ_b", "paper: BioInfer", "ours: made parses"], rows)


def main() -> None:
    """Print the tables."""
    options = parser("Print the tables of Pahikkala et al. 2007 beside ours.")
    options.add_argument("--seeds", type=int, default=10, metavar="N", help="default: %(default)s")
    arguments = options.parse_args()
    start(arguments)
    for name, folder in FOLDERS.items():
        given = name == "OHSUMED" or (arguments.data / folder).is_dir()
        folds = list(pairgram.load_letor_folds(arguments.data / folder)) if given else []
        print(f"\n{tables_1_to_3(name, folds)}", flush=True)
    progress("graphs")
    print(f"\nTable 8\n{table_8(arguments.seeds, N_SENTENCES)}")


if __name__ == "__main__":
    main()
