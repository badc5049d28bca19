"""The table of the command line: its models, its commands, and every option, once for all who ask.

Parsing, checks, help and the reference in the documentation are made from it. It imports only what
Python brings, because help must not wait for NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pairgram._rooms import ROOMS
from pairgram._support.parameters import (
    FOURIER_KERNEL,
    KERNEL_PARAMETERS,
    POSITIVE,
    ActivationName,
    Convention,
    EngineName,
    FusionName,
    InputsName,
    PairsName,
    Setting,
    choice,
    integer,
    words,
)


class Model(NamedTuple):
    """A model of the command line.

    Attributes
    ----------
    kind : str
        The name of the estimator that chooses its settings.
    summary : str
        One line for the help.
    grids : mapping
        The texts of the grids of ``pairgram letor``, by the names of the settings.
    defaults : mapping
        The settings that it has on the command line unless options say otherwise.
    """

    kind: str
    summary: str
    grids: Mapping[str, str] = {}
    defaults: Mapping[str, Any] = {}


_OF_ELM, _OF_SVM = {"Cs": "4^-15:4^10"}, {"Cs": "2^-12:2^6"}  # Zong and Huang 2013; Chen 2017
_OF_MAPS = {**_OF_SVM, "gamma": "2^-12:2^2"}
_SEED = {"random_state": 0}
_RBF = {"kernel": "rbf", "n_components": 500, **_SEED}
_MODELS = {
    "auto": Model(
        "AutoRanker",
        "tries linear models of the features and of their quantiles, then Fourier features and "
        "kernels, and keeps the best, or the mean of the linear ones that are equally good",
    ),
    "rankrls": Model(
        "RankRLSCV",
        "linear, or with --kernel, least squares on pairs; tries with and without tied pairs",
        {"alphas": "2^-15:2^24"},  # Pahikkala et al. 2007, §5
        {"pairs": ["with_ties", "without_ties"]},
    ),
    "elm-pairwise": Model(
        "PairwiseELMCV",
        "extreme learning machine on pairs: 1000 linear random nodes, or --kernel",
        _OF_ELM,
        _SEED,
    ),
    "elm-pointwise": Model("PointwiseELMCV", "the same on rows", _OF_ELM, _SEED),
    "elmrank": Model(
        "ELMRankCV", "two regularisers on 100 sigmoid nodes, pairs of all rows", {}, _SEED
    ),
    "ranksvm": Model("RankSVMCV", "linear, squared hinge loss on preference pairs", _OF_SVM),
    "rank-nystroem": Model(
        "RankSVMCV", "the same on 500 Nystroem features of a kernel", _OF_MAPS, _RBF
    ),
    "rank-fourier": Model(
        "RankSVMCV", "the same on 500 random Fourier features of a kernel", _OF_MAPS, _RBF
    ),
}
MODELS = {name: one for name, one in _MODELS.items() if name != "auto" or "auto" in ROOMS}
FIRST, *_ = MODELS
# The kernels, and the parameters that each uses.
KERNELS = {**dict.fromkeys(FOURIER_KERNEL.names, ("gamma",)), **KERNEL_PARAMETERS}
KERNELS_OF = {"rank-fourier": FOURIER_KERNEL.names, "": tuple(KERNEL_PARAMETERS)}
ENGINES = tuple(name.replace("_", "-") for name in words(EngineName))
EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")
COMPARED = ("ndcg@10", "map")
# What stands in the short help of a command with many options.
SHORT = "output label qid one-query exclude valid metric time-budget feature-map"


class Command(NamedTuple):
    """A command.

    Attributes
    ----------
    module : str
        The module that has a function of its name.
    summary, text : str
        What it does: one line, and the paragraphs below it.
    examples : str
        Lines that a shell takes.
    arguments : mapping
        Their help, by what they are called: ``FILE...`` are several.
    room : str
        The room that it works with, without which it is not there.
    """

    module: str
    summary: str
    arguments: Mapping[str, str]
    text: str
    examples: str
    room: str = "cli"


_FILE = (
    "LETOR (SVMlight) file, plain, .gz, .xz or .bz2; - stands for standard input. Or a table: "
    "Parquet, Arrow, CSV (.csv, commas) or TSV files (.tsv, tabs), a folder, a pattern in quotes "
    "such as 'data/*.parquet', or an address such as s3://bucket/folder."
)
_MODEL = "Model file that `pairgram train` wrote."
_COMMANDS = {
    "train": Command(
        "training",
        "Fit a model, choose its settings, and write it to a file.",
        {"FILE": _FILE},
        """\
Without --model, several models are tried on held-out queries, linear ones
first, and the best is kept; see --time-budget. With --model, or options of
rankrls, every combination of --alphas or --Cs, --gamma, --pairs and
--feature-map is scored. Queries are scored by models that have not seen them:
each query in turn (exact leave-query-out), those of five folds (elmrank,
RankSVMs), or those of --valid. The best is fitted to all of FILE, without the
rows of --valid. The printed score is its score on held-out queries, and the
seconds are the time of fitting and choosing.

Where columns have long tails, as prices have, linear models try them as they
are, scaled, and as quantiles, unless --feature-map says what to try. What raw
columns would have had is printed too. Nonlinear nodes and kernels of
distances, such as rbf, try scaled columns beside raw ones.

elmrank chooses by pairwise_squared_error unless --metric says otherwise.
--model auto always fits a first model, and may take a little longer than its
time.

A file without qids, or a table without --qid, is refused unless --one-query is
given. It is accepted for models that do not compare rows within queries
(--pairs none, elm-pointwise, elmrank).

A table may be larger than memory. Its rows are read in blocks: once for labels
and query ids, once to see whether columns have long tails, once to fit, and
once more to score held-out queries. Without --model, rankrls is fitted to it.
RankSVMs take a pass or more for every step of every fold; with --valid there
are no folds. --model auto, elmrank and models with kernels read the whole
table into memory, but for rank-nystroem and rank-fourier. So do others if all
rows are one query, because these rows are held out one by one.

With --propensity, a table is a log of the lists that were shown, --label is
the column of clicks, and --qid that of the ids of lists. Each click is divided
by its propensity, both in the fit and in the metric that chooses settings.""",
        """\
pairgram train train.txt -o model.safetensors
pairgram train 'data/*.parquet' --label relevance --qid query_id -o model.safetensors
pairgram train train.txt -o model.safetensors --time-budget 5
pairgram train train.txt -o model.safetensors --valid vali.txt --metric map
pairgram train train.txt -o model.safetensors --alphas 100 --pairs without_ties
pairgram train train.txt -o model.safetensors --model elm-pairwise --activation sigmoid
pairgram train train.txt -o model.safetensors --model rank-fourier --gamma 8^-3:8^0""",
    ),
    "predict": Command(
        "measuring",
        "Score the documents of a file, one number per line, or as a column of a table.",
        {"MODEL": _MODEL, "FILE": _FILE},
        """\
Scores stand in the order of the rows of the file. A higher score is better.
Each number is the shortest text that reads back to exactly the score. Labels
are not used, but a LETOR line must have one; write 0 if there is none. A table
may be larger than memory, and needs no labels. A model that was trained on
named columns finds them by their names.""",
        """\
pairgram predict model.safetensors test.txt --output scores.txt
pairgram predict model.safetensors test.txt | pairgram evaluate test.txt --scores -
pairgram predict model.safetensors 'new/*.parquet' --keep doc_id --output scores.parquet
pairgram predict model.safetensors new.csv --keep name --output scores.csv""",
    ),
    "evaluate": Command(
        "measuring",
        "Print ranking metrics of scores or of a model.",
        {"FILE": _FILE},
        """\
Each metric is the mean over queries. Conventions differ in gain, discount,
ties and queries without relevant documents, so numbers of different
conventions are not comparable. "letor" is the convention of LETOR's evaluation
tools. The published NDCG@k of MQ2007 and MQ2008 (LETOR 4.0) is 0 for a list
shorter than k. No convention here does this, so it is not comparable. With
--model, a table may be larger than memory. Its labels and query ids are read
in a pass of their own. With --scores only these are read, into memory. With
--propensity, labels are clicks, and the metric is ips_dcg@10. The function
evaluate_run of Python measures TREC runs, as trec_eval does.""",
        """\
pairgram evaluate test.txt --scores scores.txt
pairgram evaluate test.txt --model model.safetensors --metric map --convention letor
pairgram evaluate test.txt --model model.safetensors --json | jq .metrics.map
pairgram evaluate 'test/*.parquet' --model model.safetensors --label relevance --qid query_id
pairgram evaluate test.parquet --scores scores.csv --label relevance --qid query_id
pairgram evaluate test.txt --scores scores.txt --metric ndcg@10 --per-query""",
    ),
    "compare": Command(
        "measuring",
        "Compare the scores of several systems, query by query.",
        {
            "FILE...": "LETOR (SVMlight) file or table, and two or more files with a score for "
            "each of its rows, as those of evaluate --scores."
        },
        """\
The first table has the mean of every metric with its bootstrap interval. The
second has, for every pair of systems, the difference, the numbers of queries
that are better, equal and worse, and p-values of the paired randomisation test
(p). p_holm is corrected for the number of pairs, but not for the number of
metrics. Only labels and query ids of a table are read.""",
        """\
pairgram compare test.txt a.scores b.scores
pairgram compare test.txt a.scores b.scores c.scores --baseline a.scores --metric map
pairgram compare test.parquet a.scores b.parquet --label relevance --qid query_id
pairgram compare test.txt a.scores b.scores --json | jq .differences""",
        "comparing",
    ),
    "fuse": Command(
        "lists",
        "Fuse TREC runs: reciprocal ranks, CombSUM, CombMNZ, Borda, or learnt weights.",
        {"RUN...": "Two or more TREC runs; - is standard input."},
        """\
Without judgements, a document gets the sum of 1 / (60 + rank) over the runs.
With --qrels, weights are learnt from the judged queries, for reciprocal ranks
and for scores that are scaled to 0 to 1 in every query. They are used if they
improve held-out queries. Documents that a run lacks count as beyond its end.""",
        """\
pairgram fuse bm25.run dense.run --output fused.run
pairgram fuse bm25.run dense.run --method combsum --output fused.run
pairgram fuse bm25.run dense.run --qrels qrels.txt --output fused.run""",
        "lists",
    ),
    "recommend": Command(
        "lists",
        "Write the best items for every user, a row for each: user, rank, item, score.",
        {
            "MODEL": _MODEL,
            "USERS": "Table with a row for every user: Parquet, Arrow, CSV (.csv, commas) or TSV "
            "files (.tsv, tabs), a folder or a pattern.",
            "ITEMS": "Table with a row for every item.",
        },
        """\
The model must have been trained on named columns, as of a table. Columns of
users are read from USERS, and the others from ITEMS. Columns of lists, such as
embeddings, must have the length of the fit. Pairs of --exclude whose user or
item is unknown are ignored, and a note tells how many.""",
        """\
pairgram recommend model.safetensors users.parquet items.parquet --exclude seen.parquet -o o.parquet
pairgram recommend model.safetensors users.csv items.csv --user-id person --item-id sku""",
        "cross",
    ),
    "letor": Command(
        "training",
        "Run LETOR's five-fold protocol on a folder.",
        {"FOLDER": "Folder with S1.txt ... S5.txt or Fold1 ... Fold5, compressed or not."},
        """\
Each fold trains on three parts, chooses by the fourth and tests on the last.
Settings are chosen for each fold by --metric on its validation part. Without
options, this is the protocol of the RankRLS paper: with and without tied
pairs, ridges 2^-15 to 2^24, MAP, and the metrics of LETOR's evaluation tools.
With --model elm-pairwise or elm-pointwise, it is the protocol of the paper on
extreme learning machines: 1000 linear nodes or --kernel linear, and C 2^-30,
2^-28 to 2^20. With RankSVMs, the grids are those of the paper on kernel
approximation: C 2^-12 to 2^6 and gamma 2^-12 to 2^2. (The tables of that paper
have one choice for all folds.) The published NDCG@k of MQ2007 and MQ2008
(LETOR 4.0) is 0 for a list shorter than k. No convention here does this, so it
is not comparable.

The seconds of a fold are the time of fitting and choosing, without reading
files and testing.""",
        """\
pairgram letor MQ2008
pairgram letor OHSUMED --pairs none
pairgram letor OHSUMED --model elm-pairwise --kernel linear
pairgram letor OHSUMED --model rank-nystroem --gamma 2^-8:2^-4 --Cs 2^-9:2^-3
pairgram letor MQ2008 --pairs gain_difference --pairs with_ties --metric ndcg@10
pairgram letor MQ2008 --json | jq .mean.test.map""",
    ),
    "inspect": Command(
        "showing",
        "Print what a model file holds.",
        {"FILE": "Model file."},
        """\
It prints the kind of the model, its parameters, and the most important
features. Features count from 1, as in LETOR files. The size of a weight
depends on the unit of its feature. The importance does not: it is |weight|
times spread, the standard deviation of the feature within queries. The share
is that of the variance of the scores within queries. If the file does not hold
spreads, as for linear nodes, features are sorted by |weight|. Other nodes and
kernels have no weights of features. For a pipeline it prints the steps too,
and features are the columns that the ranker gets.""",
        """\
pairgram inspect model.safetensors
pairgram inspect model.safetensors --json | jq .parameters.alpha""",
    ),
    "export": Command(
        "exporting",
        "Write a model for a search engine, an ONNX runtime, SQL or plain Python.",
        {"MODEL": _MODEL},
        """\
Scales and whitening become part of the weights. If an engine cannot express a
model, the error names an alternative. For Vespa, a model that cannot be an
expression needs an ONNX file, which is written beside the profile as
NAME.onnx. For Solr and ltr-plugin, features that the engine computes from
fields, such as categories, are written beside the model as NAME.features.json.
The functions of pairgram.export in Python name the fields, Solr's store, and
a feature that makes scores positive.""",
        """\
pairgram export model.safetensors --to solr --name m1 --output m1.json
pairgram export model.safetensors --to onnx --verify test.txt --output m1.onnx
pairgram export model.safetensors --to sql --features names.txt""",
        "export",
    ),
    "demo": Command(
        "showing",
        "Learn to rank synthetic data; nothing is downloaded.",
        {},
        """\
Each query has its own level of relevance and of features, as real queries do.
This level says nothing about the order within the query. Pointwise least
squares fits it nevertheless, and loses accuracy. Pairs within a query do not
see it. Both models choose their ridge by exact leave-query-out on the training
queries, and are tested on other queries.""",
        "pairgram demo\npairgram demo --seed 1",
    ),
}
COMMANDS = {name: one for name, one in _COMMANDS.items() if one.room in ROOMS}
ABOUT = """\
A LETOR (SVMlight) file has one line per document, "label qid:ID index:value
... # comment". It may be compressed by gzip, xz or bzip2, and "-" stands for
standard input. An ID is a number or a text of at most 255 bytes without
blanks, without "#", and without ":" after a digit. train, predict and evaluate
also take tables that may be larger than memory, such as Parquet files, and
compare takes tables too. Results go to standard output, everything else to
standard error. An error is one line, and the exit code is then 2.

Start with:
  pairgram demo
  pairgram train train.txt --output model.safetensors
  pairgram predict model.safetensors test.txt --output scores.txt
  pairgram evaluate test.txt --scores scores.txt"""


class Option(NamedTuple):
    """An option of some commands.

    Attributes
    ----------
    flags : str
        How it is written, the long form first; a value follows in capitals, such as ``--top N``.
    commands : str
        The commands that take it; "*" stands before those that need it.
    help : str
        In which ``{names}`` stands for the names that it takes.
    setting : Setting or None
        What its value must be.
    default : object
        The value if it is not given, if the help shows it.
    name : str
        The parameter of the library that it gives, if that is called otherwise.
    models : str
        The models that it is a setting of.
    of_tables : bool
        Whether it names a column of a table, or says what stands there.
    many : bool
        Whether it may be repeated.
    """

    flags: str
    commands: str
    help: str
    setting: Setting | None = None
    default: Any = None
    name: str = ""
    models: str = ""
    of_tables: bool = False
    many: bool = False

    @property
    def names(self) -> list[str]:
        """How it may be written, the long form first."""
        return [word for word in self.flags.split() if word[0] == "-"]

    @property
    def flag(self) -> str:
        """The long form."""
        return self.names[0]

    @property
    def value(self) -> str:
        """What the value looks like; nothing if there is none."""
        return "".join(word for word in self.flags.split() if word[0] != "-")

    @property
    def parameter(self) -> str:
        """The name of the value in Python."""
        return self.name or self.flag.lstrip("-").replace("-", "_")

    @property
    def text(self) -> str:
        """The help, with the names that it takes and its default."""
        named = ", ".join(self.setting.names) if self.setting else ""
        shown = self.default is not None and f" [default: {self.default}]"
        return self.help.replace("{names}", named) + (shown or "")

    def is_needed_by(self, command: str) -> bool:
        """Tell whether a command does not run without it."""
        return f"*{command}" in self.commands


_ELMS, _SVMS = "elm-pairwise elm-pointwise", "ranksvm rank-nystroem rank-fourier"
_KERNEL_MODELS = f"rankrls {_ELMS} rank-nystroem rank-fourier"
_FITS, _MEASURES = "train letor", "train evaluate compare"
_PAIRS = choice(*(name for name in words(PairsName) if name != "clicks"), "none")
_SUMMARIES = "; ".join(f"{name}: {model.summary}" for name, model in MODELS.items())
_CONVENTION = choice(*words(Convention))
_TO_WRITE = "device or pipe to write to; - stands for standard output."

OPTIONS = (
    Option("--output -o MODEL", "*train", "Model file to write."),
    Option(
        "--output -o FILE",
        "predict",
        f"File, {_TO_WRITE} A name that ends with .parquet, .arrow, .csv or .tsv makes a file of "
        "columns, one of which is score.",
        default="-",
    ),
    Option("--output -o FILE", "fuse", f"File, {_TO_WRITE}", default="-"),
    Option("--output -o FILE", "export", "File to write to; - prints it.", default="-"),
    Option(
        "--output -o FILE",
        "recommend",
        "File to write to, whose name ends with .parquet, .arrow, .csv or .tsv; - prints lines "
        "with tabs.",
        default="-",
    ),
    Option(
        "--label COLUMN",
        _MEASURES,
        "Column of the labels of a table.",
        of_tables=True,
    ),
    Option(
        "--qid COLUMN",
        f"{_MEASURES} predict export",
        "Column of the query ids of a table.",
        of_tables=True,
    ),
    Option(
        "--one-query",
        "train evaluate export",
        "All rows are one query, such as one assay: a file without qids, or a table without --qid.",
    ),
    Option(
        "--features A,B,...",
        "train evaluate predict",
        "Columns of a table that are features, or one column of lists of numbers. [default: those "
        "that the model was fitted to, or all columns that no other option names, without the "
        "index of pandas and names of folders such as day=1]",
        of_tables=True,
    ),
    Option(
        "--exclude A,B,...",
        "train evaluate predict",
        "Columns of a table that are no features, such as titles, in place of --features.",
        of_tables=True,
    ),
    Option(
        "--missing NAME",
        "train",
        "What replaces missing features of a table: {names}. Mean and median are those of the "
        "column in the training rows, the median of at most 100,000 of them. The model file keeps "
        "these values, and predict uses them. "
        "[default: mean, or an error with --features]",
        choice("zero", "mean", "median"),
        of_tables=True,
    ),
    Option(
        "--groups COLUMN",
        "train",
        "Column of a table with groups of queries that are held out together, such as days.",
        of_tables=True,
    ),
    Option(
        "--propensity COLUMN",
        "train evaluate",
        "Column of the probabilities with which users looked at a table's rows. The labels are "
        "then clicks.",
        of_tables=True,
    ),
    Option(
        "--valid FILE",
        "train",
        "Validation file to choose settings by; a table if FILE is one. [default: leave-query-out, "
        "or folds]",
        name="validation",
    ),
    Option(
        "--metric NAME",
        "train",
        "Metric to choose by. [default: ndcg@10, or "
        "pairwise_accuracy for labels that are no grades]",
        name="scoring",
    ),
    Option("--metric NAME", "letor", "Metric to choose by on the validation part.", default="map"),
    Option(
        "--metric NAME",
        "evaluate",
        "Metric such as ndcg@10, ndcg_linear@10, map, p@5, recall@10, rprec, mrr, hit_rate@10, "
        "rbp, err, auc, ef@1%, bedroc, kendall. Repeat it for several. "
        f"[default: {', '.join(EVALUATED)}]",
        many=True,
    ),
    Option(
        "--metric NAME",
        "compare",
        "Metric, as of `pairgram evaluate`. Repeat it for several. "
        f"[default: {', '.join(COMPARED)}]",
        many=True,
    ),
    Option(
        "--model -m NAME",
        "train",
        f"{_SUMMARIES}. [default: {FIRST}; rankrls for tables, or if options are given that this "
        "does not take]",
        choice(*MODELS),
    ),
    Option("--model -m NAME", "letor", f"{_SUMMARIES}.", choice(*MODELS), "rankrls"),
    Option("--model -m MODEL", "evaluate", "Model file that scores FILE."),
    Option(
        "--time-budget SECONDS",
        "train",
        "Seconds within which --model auto ends, whose speed decides what is tried. [default: 30]",
        POSITIVE,
        models="auto",
    ),
    Option(
        "--feature-map NAME",
        _FITS,
        "What features become: {names}. Repeat it to try several. [default: none; train also tries "
        "standard and quantile where columns have long tails]",
        choice(*words(InputsName), "none"),
        models=f"rankrls {_ELMS} elmrank {_SVMS}",
        many=True,
    ),
    Option(
        "--alphas GRID",
        _FITS,
        "Ridges to try: one, or several such as 0.1,1,10 or 2^-15:2^24 (all whole powers). "
        "[default: a grid that fits the data; for letor that of "
        "the model's paper]",
        models="rankrls elmrank",
    ),
    Option(
        "--Cs GRID",
        _FITS,
        "Weights C of the errors to try, for models with C; written like --alphas. [default: the "
        "grid of the model's paper]",
        models=f"{_ELMS} elmrank {_SVMS}",
    ),
    Option(
        "--pairs NAME",
        _FITS,
        "Weight of a pair of rows: {names}. The first two weigh each pair 1, the next two by the "
        "difference of 2^label or of the labels; none fits single rows. Repeat it to try several. "
        "[default: with_ties and without_ties for rankrls, else with_ties]",
        _PAIRS,
        models="rankrls elm-pairwise",
        many=True,
    ),
    Option(
        "--kernel NAME",
        _FITS,
        "Kernel in place of features or nodes: rbf, laplacian, polynomial, linear, tanimoto or "
        "minmax; for rank-fourier rbf, laplacian or cauchy. Kernels other than linear cost rows^2 "
        "memory and rows^3 time, except with rank-.... [default: none; rbf for rank-...]",
        models=_KERNEL_MODELS,
    ),
    Option(
        "--gamma GRID",
        _FITS,
        "Gamma of the kernel: rbf exp(-gamma |a - b|^2), laplacian exp(-gamma |a - b|_1), "
        "polynomial (gamma a.b + 1)^3. Several values to try are written like --alphas. "
        "[default: 1 / features; for letor the grid of the model's paper]",
        models=_KERNEL_MODELS,
    ),
    Option(
        "--components N",
        _FITS,
        "Number of features that approximate the kernel. [default: 500]",
        integer(1),
        name="n_components",
        models="rank-nystroem rank-fourier",
    ),
    Option(
        "--nodes N",
        _FITS,
        "Number of random nodes. [default: the model's]",
        integer(1),
        name="n_nodes",
        models=f"{_ELMS} elmrank",
    ),
    Option(
        "--activation NAME",
        _FITS,
        "Activation of the nodes: {names}. [default: linear; sigmoid for elmrank]",
        choice(*words(ActivationName)),
        models=f"{_ELMS} elmrank",
    ),
    Option(
        "--random-state N",
        _FITS,
        "Seed of the nodes or components. [default: 0]",
        integer(0, 2**32 - 1),
        models=f"auto {_ELMS} elmrank rank-nystroem rank-fourier",
    ),
    Option("--sparse", _FITS, "Store features of LETOR files sparsely, for files with many zeros."),
    Option(
        "--zero-based",
        "train predict evaluate compare export",
        "LETOR files count features from 0.",
    ),
    Option(
        "--scores FILE",
        "evaluate",
        "File with a score for each row of FILE, one per line; - is standard input. Or a Parquet, "
        "Arrow, CSV or TSV file with a column score, as predict writes it.",
    ),
    Option(
        "--qrels FILE",
        "fuse",
        "File of TREC relevance judgements of some of the queries, to learn weights from.",
    ),
    Option("--per-query", "evaluate", "Print the values of every query, with its id."),
    Option(
        "--baseline NAME",
        "compare",
        "The file that all others are compared with. [default: every pair of files]",
    ),
    Option(
        "--convention NAME", "letor", "Convention of the metrics: {names}.", _CONVENTION, "letor"
    ),
    Option(
        "--convention NAME",
        "evaluate compare",
        "Convention of the metrics: {names}.",
        _CONVENTION,
        "default",
    ),
    Option(
        "--keep A,B,...",
        "predict",
        "Columns of a table to write before the scores, if --output has columns. Those of CSV and "
        "TSV are the text of the file. [default: that of --qid]",
    ),
    Option(
        "--method NAME",
        "fuse",
        "How to fuse: {names}. [default: rrf; with --qrels learnt]",
        choice(*words(FusionName)),
    ),
    Option("--k -k N", "recommend", "How many items for every user.", integer(1), 10),
    Option("--user-id COLUMN", "recommend", "Column of the ids of users.", default="user"),
    Option("--item-id COLUMN", "recommend", "Column of the ids of items.", default="item"),
    Option(
        "--exclude FILE",
        "recommend",
        "Table of pairs of a user and an item that are left out, such as seen ones, with both "
        "columns of ids.",
    ),
    Option(
        "--to NAME",
        "*export",
        "The engine or language: {names}. elasticsearch and opensearch stand for ltr-plugin, their "
        "learning-to-rank plugin.",
        choice(*ENGINES),
    ),
    Option(
        "--name NAME", "export", "Name of the model, rank profile or function.", default="model"
    ),
    Option(
        "--features FILE",
        "export",
        "Names of the columns, one per line, in the order of the features. [default: those of the "
        "model]",
    ),
    Option(
        "--verify FILE",
        "export",
        "LETOR file or table to score as the engine would. Prints how the scores differ from the "
        "model's. The exit code is 1 if the order changed in a query. For ltr-plugin, warns of "
        "scores below 0 too, which the engine refuses.",
    ),
    Option("--top N", "inspect", "How many features to print.", integer(0), 10),
    Option("--seed N", "demo", "Seed of the data.", integer(0), 0),
    Option("--json", "train letor evaluate compare inspect", "Print JSON."),
)


def options_of(command: str) -> list[Option]:
    """Return the options of a command, in the order of its help."""
    return [one for one in OPTIONS if command in one.commands.replace("*", "").split()]
