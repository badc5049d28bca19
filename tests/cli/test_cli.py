"""The command line: every command on made data, its errors, and the published results."""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import forks
import pairgram
from pairgram import (
    AutoRanker,
    ELMRankCV,
    Kernel,
    MaxNonzero,
    Nystroem,
    PairwiseELMCV,
    PointwiseELMCV,
    Positive,
    RandomFourier,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    dump_letor,
    evaluate,
    load_letor,
    load_model,
    make_ranking,
)
from pairgram.cli.table_of_commands import COMMANDS, options_of
from pairgram.features.row_values import Chain
from parts.cli import (
    PROTOCOL_METRICS,
    error,
    invoke,
    load_scores,
    parse_grid,
    ran,
    show,
    significant,
)
from parts.export import ACTIVATIONS
from row_value import inputs_of, row_value

# What models that mix all features in one number try by default.
BOTH = [None, "standard"]


def run(*arguments, input=None):
    """Run a command that must succeed and say nothing besides; return its output."""
    output, said = ran(*arguments, input=input)
    assert said == ""
    return output


def run_with_note(*arguments, input=None):
    """Run a command that must succeed; return its standard output and its one note."""
    output, said = ran(*arguments, input=input)
    assert said.startswith("pairgram: ") and said.count("\n") == 1
    return output, said.removeprefix("pairgram: ").removesuffix("\n")


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, (5, 15), 6, query_effect=1.0, random_state=0)


@pytest.fixture
def file(tmp_path, data):
    dump_letor(tmp_path / "train.txt", *data)
    return tmp_path / "train.txt"


@pytest.fixture
def valid_file(tmp_path):
    dump_letor(tmp_path / "vali.txt.gz", *make_ranking(20, 9, 6, random_state=1))
    return tmp_path / "vali.txt.gz"


@pytest.fixture
def model_file(tmp_path, data):
    X, y, qid = data
    RankRLS(alpha=0.5, pairs="without_ties").fit(X, y, qid=qid).save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


@pytest.fixture
def folder(tmp_path, data):
    X, y, qid = data
    (tmp_path / "Made").mkdir()
    for i in range(5):
        rows = qid % 5 == i
        dump_letor(tmp_path / "Made" / f"S{i + 1}.txt", X[rows], y[rows], qid[rows])
    return tmp_path / "Made"


# train


def test_train_chooses_as_the_library_does(file, data, tmp_path):
    X, y, qid = data
    out = tmp_path / "out.safetensors"
    options = ("--pairs", "gain_difference", "--pairs", "none")
    text = run("train", file, "-o", out, "--json", "--metric", "map", *options)
    expected = RankRLSCV(pairs=["gain_difference", None], scoring="map")
    expected.fit(X, y, qid=qid)
    report = json.loads(text)
    assert report.pop("seconds") >= 0
    assert report == {
        "model": "rankrls",
        "params": {
            "alpha": expected.alpha_,
            "pairs": str(expected.pairs_),
        },
        "metric": "map",
        "held_out": "leave-query-out",
        "score": expected.best_score_,
        "n_rows": len(y),
        "n_queries": 30,
        "n_features": 6,
        "output": str(out),
    }
    model = load_model(out)
    assert model.coef_.tolist() == expected.coef_.tolist()
    assert model.alpha == expected.alpha_ and model.pairs == expected.pairs_


def test_train_without_a_model_tries_several(file, data, tmp_path):
    X, y, qid = data
    out = tmp_path / "out.safetensors"
    report = json.loads(run("train", file, "-o", out, "--json", "--time-budget", 1e5))
    expected = AutoRanker(None).fit(X, y, qid=qid)
    assert report["model"] == "auto"
    assert report["score"] == expected.best_score_
    params = expected.cv_results_["params"][expected.best_index_]
    assert report["params"] == params | {"pairs": str(params["pairs"])}
    tried = [row["score"] for row in report["trials"]]
    assert tried == [None if np.isnan(s) else s for s in expected.trials_["score"].tolist()]
    outcomes = [row["outcome"] for row in report["trials"]]
    assert outcomes == expected.trials_["outcome"].tolist()
    np.testing.assert_array_equal(load_model(out).predict(X), expected.predict(X))
    lines = run("train", file, "-o", out, "--time-budget", 1e-6).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("what was tried"))
    table = lines[first:]
    assert sum(line.endswith("best") for line in table) == 1
    assert sum("over budget" in line or "no gain" in line for line in table) == len(tried) - 2


@pytest.mark.parametrize("options", [("--alphas", 1), ("--pairs", "with_ties")])
def test_train_with_options_of_rankrls_is_rankrls(file, tmp_path, options):
    report = json.loads(run("train", file, "-o", tmp_path / "m", "--json", *options))
    assert report["model"] == "rankrls"
    assert "trials" not in report


def test_inspect_says_what_predict_needs(data, tmp_path):
    X, y, qid = data
    first = RankRLSCV(feature_map="quantile").fit(X, y, qid=qid)
    RankRLS(prior=FrozenEstimator(first)).fit(X, y, qid=qid).save(tmp_path / "prior")
    text = run("inspect", tmp_path / "prior")
    assert "none of features: the scores of a prior are added" in text


def maps(kind, gammas, *arguments, **named):
    return [kind(*arguments, gamma=gamma, random_state=0, **named) for gamma in gammas]


ELM, ELM_ROWS = {"random_state": 0, "pairs": ["with_ties"]}, {"random_state": 0}
ELMRANK = {"n_nodes": 20, "random_state": 0, "feature_map": BOTH}
TRAINED = {
    "--alphas 8 --pairs without_ties": RankRLSCV([8.0], pairs=["without_ties"]),
    "--alphas 0 --pairs with_ties": RankRLSCV([0.0]),
    "--pairs none --alphas 0,1": RankRLSCV([0.0, 1.0], pairs=[None]),
    "-m elm-pairwise --metric map": PairwiseELMCV(scoring="map", **ELM),
    "-m elm-pairwise --nodes 20 --activation sigmoid --random-state 3 --Cs 8^-3:8^3": (
        PairwiseELMCV(
            2.0 ** np.arange(-9, 10, 3),
            n_nodes=20,
            activation="sigmoid",
            feature_map=BOTH,
            **ELM | {"random_state": 3},
        )
    ),
    "-m elm-pairwise --kernel linear": PairwiseELMCV(feature_map=Kernel("linear"), **ELM),
    "-m elm-pointwise --kernel rbf --gamma 0.5,8": PointwiseELMCV(
        feature_map=row_value(BOTH, [Kernel("rbf", gamma=g) for g in [0.5, 8.0]]), **ELM_ROWS
    ),
    "-m elm-pointwise --kernel polynomial --gamma 0.5": PointwiseELMCV(
        feature_map=row_value(BOTH, Kernel("polynomial", gamma=0.5)), **ELM_ROWS
    ),
    "-m elmrank --metric map --alphas 0.01,1 --Cs 8,512 --nodes 20": ELMRankCV(
        [0.01, 1], [8, 512], scoring="map", **ELMRANK
    ),
    "-m elmrank --alphas 0,1 --Cs 8 --nodes 20": ELMRankCV([0.0, 1.0], [8], **ELMRANK),
    "-m elmrank --nodes 20 --valid VALID": ELMRankCV(**ELMRANK),
    "--alphas 2^-3:2^3 --pairs with_ties --metric ndcg@3 --valid VALID": RankRLSCV(
        2.0 ** np.arange(-3, 4), scoring="ndcg@3"
    ),
    "-m ranksvm": RankSVMCV(),
    "-m ranksvm --Cs 0.01,1 --metric map --valid VALID": RankSVMCV([0.01, 1], scoring="map"),
    "-m rank-nystroem": RankSVMCV(feature_map=maps(Nystroem, [None], n_components=500)),
    "-m rank-nystroem --components 9 --gamma 0.25,4": RankSVMCV(
        feature_map=maps(Nystroem, [0.25, 4.0], n_components=9)
    ),
    "-m rank-nystroem --components 9 --kernel polynomial --valid VALID": RankSVMCV(
        feature_map=maps(Nystroem, [None], "polynomial", n_components=9)
    ),
    "-m rank-fourier --components 9 --kernel cauchy --gamma 0.5,2 --Cs 0.01,1": RankSVMCV(
        [0.01, 1], feature_map=maps(RandomFourier, [0.5, 2.0], 9, kernel="cauchy")
    ),
}


@pytest.mark.parametrize("options", TRAINED)
def test_every_model_is_that_of_the_library(options, file, valid_file, data, tmp_path):
    X, y, qid = data
    expected, out = clone(TRAINED[options]), tmp_path / "m"
    if isinstance(expected, RankSVMCV) and expected.feature_map is not None:
        expected.set_params(feature_map=row_value(BOTH, expected.feature_map))
    validation = tuple(load_letor(valid_file)) if "VALID" in options else None
    expected.fit(X, y, qid=qid, validation=validation)
    given = options.replace("VALID", str(valid_file)).split()
    report = json.loads(run("train", file, "-o", out, "--json", *given))
    assert (report["metric"], report["score"]) == (expected.scoring_.name, expected.best_score_)
    folds = hasattr(expected, "cv_results_") and "split0_test_score" in expected.cv_results_
    held_out = "5 folds" if folds else "leave-query-out"
    assert report["held_out"] == (str(valid_file) if validation else held_out)
    chosen = dict(expected.cv_results_["params"][expected.best_index_])
    chosen.pop("scale", None)  # which no option gives
    chain = Chain.of(chosen.pop("feature_map", None))
    columns = getattr(expected, "cv_results_", {})
    if any(Chain.of(one).scaling for one in columns.get("param_feature_map", [])):
        chosen["feature_map"] = chain.kind
    if getattr(chain.then, "kernel", "linear") != "linear":
        chosen["gamma"] = chain.then.gamma_
    assert {name: report["params"][name] for name in chosen} == json.loads(
        json.dumps(chosen, default=str)
    )
    scores = load_model(out).predict(X)
    np.testing.assert_allclose(scores, expected.predict(X), rtol=1e-10, atol=1e-10)
    text = run("train", file, "-o", out, *given)
    lines = dict(line.split(maxsplit=1) for line in text.splitlines() if line)
    assert lines["metric"] == expected.scoring_.name
    assert ("lower_is_better" in lines) == (not expected.scoring_.greater_is_better)
    assert lines["score"] == f"{expected.best_score_:.6g}"
    assert lines["held_out"] == report["held_out"]
    inspected = json.loads(run("inspect", out, "--json"))
    assert inspected["kind"] == type(load_model(out)).__name__


@pytest.mark.parametrize(
    ("name", "kernel", "options", "parameters"),
    [
        ("rankrls", "laplacian", ("--gamma", 2), {"gamma": 2.0}),
        ("rankrls", "polynomial", ("--pairs", "none"), {}),
        ("rankrls", "tanimoto", (), {}),
        ("rankrls", "minmax", (), {}),
    ],
)
def test_train_with_a_kernel(tmp_path, name, kernel, options, parameters):
    X, y, qid = make_ranking(8, 6, 4, random_state=0)
    X = np.abs(X)  # tanimoto takes no others
    dump_letor(tmp_path / "train.txt", X, y, qid)
    pairs = [None] if "none" in options else ["with_ties", "without_ties"]
    options = ("--kernel", kernel, "--alphas", "0.1,1", *options)
    report = json.loads(
        run("train", tmp_path / "train.txt", "-o", tmp_path / "m", "-m", name, *options, "--json")
    )
    expected = RankRLSCV([0.1, 1], feature_map=Kernel(kernel, **parameters), pairs=pairs)
    if kernel in ("laplacian", "polynomial"):
        expected.set_params(feature_map=row_value(BOTH, expected.feature_map))
    expected.fit(X, y, qid=qid)
    assert report["score"] == expected.best_score_
    assert load_model(tmp_path / "m").predict(X).tolist() == expected.predict(X).tolist()
    inspected = json.loads(run("inspect", tmp_path / "m", "--json"))
    assert inspected["parameters"]["feature_map"] == str(load_model(tmp_path / "m").feature_map)
    assert kernel in inspected["parameters"]["feature_map"]
    assert inspected["gamma"] == expected.feature_map_.gamma_
    text = run("inspect", tmp_path / "m")
    assert "none of features: coefficients of what the feature map makes" in text


@pytest.mark.parametrize("kernel", ["linear", "tanimoto"])
def test_a_kernel_without_gamma_has_no_grid_of_it(folder, kernel):
    options = ("--model", "rank-nystroem", "--kernel", kernel, "--components", 4)
    report = json.loads(run("letor", folder, *options, "--Cs", "0.25,1", "--json"))
    assert all(fold["params"].keys() == {"C"} for fold in report["folds"])


@pytest.mark.parametrize(("n_queries", "length", "folds"), [(4, 9, 4), (1, 7, 3), (1, 30, 5)])
def test_no_more_folds_than_queries(n_queries, length, folds, tmp_path):
    X, y, qid = make_ranking(n_queries, length, 6, random_state=0)
    dump_letor(tmp_path / "few.txt", X, y, qid)
    grid = ("--model", "elmrank", "--alphas", "0.1,1", "--Cs", "8", "--metric", "kendall")
    expected = ELMRankCV([0.1, 1], [8], cv=folds, scoring="kendall", random_state=0)
    expected.set_params(feature_map=BOTH)
    expected.fit(X, y, qid=qid)
    report = json.loads(
        run("train", tmp_path / "few.txt", "-o", tmp_path / "few.model", *grid, "--json")
    )
    assert (report["held_out"], report["score"]) == (f"{folds} folds", expected.best_score_)


def test_train_sparse(file, tmp_path):
    options = ("--alphas", "1", "--pairs", "with_ties")
    run("train", file, "-o", tmp_path / "a", *options)
    run("train", file, "-o", tmp_path / "b", *options, "--sparse")
    a, b = (load_model(tmp_path / name).coef_ for name in "ab")
    np.testing.assert_allclose(b, a, rtol=1e-9)


# predict, evaluate


def test_predict(file, model_file, data, tmp_path):
    expected = load_model(model_file).predict(data[0]).tolist()
    assert [float(line) for line in run("predict", model_file, file).splitlines()] == expected
    (tmp_path / "scores.txt").write_text("old\n" * 1000)
    assert run("predict", model_file, file, "-o", tmp_path / "scores.txt") == ""
    lines = (tmp_path / "scores.txt").read_text().splitlines()
    assert lines == [repr(score) for score in expected]
    assert not list(tmp_path.glob(".*"))


def test_fewer_features_are_zeros(model_file, tmp_path):
    two = tmp_path / "two.txt"
    two.write_text("0 qid:1 1:1\n1 qid:1 2:2\n")
    coef = load_model(model_file).coef_
    note = f"note: {two} has 0 in every row for features 3 to 6"
    text, said = run_with_note("predict", model_file, two)
    np.testing.assert_allclose([float(line) for line in text.split()], [coef[0], 2 * coef[1]])
    assert said == note
    assert run_with_note("evaluate", two, "--model", model_file, "--json")[1] == note
    two.write_text("0 qid:1 1:1 6:1\n")
    assert run("predict", model_file, two).count("\n") == 1


def test_a_file_without_ids_is_one_query(model_file, tmp_path):
    bare = tmp_path / "bare.txt"
    dump_letor(bare, *make_ranking(1, 9, 6, random_state=0)[:2])
    warning = f"warning: {bare} has no qid: all 9 rows are one query"
    one = ("train", bare, "-o", tmp_path / "m")
    text = run(*one, "--alphas", 1, "--one-query")
    assert re.search(r"n_rows +9\n n_queries +1\n n_features +6\n", text)
    for model in ("elm-pointwise", "elmrank"):  # which do not compare rows within queries
        run(*one, "--model", model)
    run(*one, "--pairs", "none")
    long = tmp_path / "long.txt"
    dump_letor(long, *make_ranking(1, 1001, 3, random_state=0)[:2])
    run("train", long, "-o", tmp_path / "m", "--alphas", 1, "--one-query")
    text, said = run_with_note("evaluate", bare, "--model", model_file)
    assert said == warning and "9 rows, 1 query, convention" in text
    text, said = run_with_note("evaluate", bare, "--scores", "-", input="1\n" * 9)
    assert said == warning
    run("evaluate", bare, "--model", model_file, "--one-query")
    run("predict", model_file, bare)
    bare.write_text("1 6:1\n")
    said = run_with_note("evaluate", bare, "--model", model_file)[1]
    assert said == f"warning: {bare} has no qid: its row is one query"


def test_evaluate_a_model_and_its_scores(file, model_file, data, tmp_path):
    X, y, qid = data
    run("predict", model_file, file, "-o", tmp_path / "scores")
    by_model = json.loads(run("evaluate", file, "--model", model_file, "--json"))
    by_scores = json.loads(run("evaluate", file, "--scores", tmp_path / "scores", "--json"))
    names = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr"]
    assert by_model == by_scores
    assert by_model == {
        "file": str(file),
        "convention": "default",
        "n_rows": len(y),
        "n_queries": 30,
        "metrics": evaluate(names, y, load_model(model_file).predict(X), qid),
    }


@pytest.mark.parametrize("convention", ["letor", "default", "trec", "lightgbm"])
def test_evaluate_conventions(file, model_file, data, convention):
    X, y, qid = data
    names = ["ndcg@5", "map", "p@2"]
    options = [option for name in names for option in ("--metric", name)]
    scores = "".join(f"{score}\n" for score in load_model(model_file).predict(X))
    text = run(
        *("evaluate", file, "--scores", "-", *options),
        *("--convention", convention, "--json"),
        input=scores + "\n",
    )
    expected = evaluate(names, y, load_model(model_file).predict(X), qid, convention=convention)
    assert json.loads(text)["metrics"] == expected


def test_evaluate_prints_a_table(file, model_file, data):
    X, y, qid = data
    names = ["map", "pairwise_squared_error"]
    text = run("evaluate", file, "--model", model_file, "--metric", names[0], "--metric", names[1])
    for name, value in evaluate(names, y, load_model(model_file).predict(X), qid).items():
        assert [name, f"{value:.4f}"] in [line.split() for line in text.splitlines()]


def test_an_undefined_metric_is_null(model_file, tmp_path):
    (tmp_path / "same.txt").write_text("1 qid:1 1:1\n1 qid:1 6:2\n")
    options = ("--model", model_file, "--metric", "pairwise_accuracy", "--json")
    assert json.loads(run("evaluate", tmp_path / "same.txt", *options))["metrics"] == {
        "pairwise_accuracy": None
    }


# letor


def check_shape(report, **expected):
    assert list(report) == ["dataset", "model", "metric", "folds", "mean"]
    for name, value in expected.items():
        assert report[name] == value
    assert [fold["fold"] for fold in report["folds"]] == [f"Fold{i}" for i in range(1, 6)]
    for fold in report["folds"]:
        assert list(fold) == ["fold", "params", "valid", "test", "seconds"]
        assert list(fold["params"]) == ["alpha", "pairs"]
        assert fold["seconds"] > 0
    for part in ("valid", "test"):
        assert set(report["mean"][part]) == {*PROTOCOL_METRICS, report["metric"]}
        for name, value in report["mean"][part].items():
            values = [fold[part][name] for fold in report["folds"]]
            assert value == pytest.approx(np.mean(values), rel=1e-14)


def test_letor_json(folder):
    report = json.loads(run("letor", folder, "--json"))
    check_shape(report, dataset="Made", model="rankrls", metric="map")
    fold = next(pairgram.load_letor_folds(folder))
    metric = pairgram.get_metric("map", "letor")
    expected = RankRLSCV(
        2.0 ** np.arange(-15, 25), pairs=["with_ties", "without_ties"], scoring=metric
    ).fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
    first = report["folds"][0]
    assert first["params"]["alpha"] == expected.alpha_
    assert first["params"]["pairs"] == expected.pairs_
    assert first["valid"]["map"] == expected.best_score_
    assert first["test"] == evaluate(
        PROTOCOL_METRICS,
        fold.test.y,
        expected.predict(fold.test.X),
        fold.test.qid,
        convention="letor",
    )


def test_letor_options(folder):
    options = ("--pairs", "none", "--metric", "mrr", "--alphas", "1,8", "--convention", "default")
    report = json.loads(run("letor", folder, "--json", *options))
    check_shape(report, model="rankrls", metric="mrr")
    for fold in report["folds"]:
        assert fold["params"]["pairs"] is None
    text = run("letor", folder, *options)
    mean = next(line.split() for line in text.splitlines() if line.split()[:1] == ["mean"])
    values = [f"{report['mean'][part]['mrr']:.4f}" for part in ("valid", "test")]
    assert mean[1:3] == values


def test_letor_chooses_as_the_library_does(folder):
    fold = next(pairgram.load_letor_folds(folder))
    Cs, gammas = 2.0 ** np.arange(-12, 7), 2.0 ** np.arange(-12, 3)
    for options, expected in (
        (("elm-pointwise",), PointwiseELMCV(random_state=0)),
        (("ranksvm",), RankSVMCV(Cs)),
        (
            ("rank-nystroem", "--components", 5),
            RankSVMCV(Cs, feature_map=maps(Nystroem, gammas, n_components=5)),
        ),
    ):
        expected.set_params(scoring=pairgram.get_metric("map", "letor"))
        expected.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
        first = json.loads(run("letor", folder, "--json", "--model", *options))["folds"][0]
        gamma = {"gamma": expected.feature_map_.gamma_} if len(options) > 1 else {}
        assert first["params"] == {"C": expected.C_} | gamma
        assert first["valid"]["map"] == pytest.approx(expected.best_score_, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("OHSUMED", (), {"map": 0.4477, "mean_ndcg": 0.5355}),
        ("MQ2008", (), {"map": 0.4763}),
        ("OHSUMED", ("--model", "elm-pairwise", "--kernel", "linear"), {"map": 0.4476}),
        ("OHSUMED", ("--model", "elm-pointwise", "--kernel", "linear"), {"map": 0.4490}),
    ],
)
def test_published_protocol(benchmark_data, name, options, expected):
    report = json.loads(run("letor", benchmark_data / name, "--json", *options))
    if not options:
        check_shape(report, dataset=name, model="rankrls", metric="map")
    for metric, value in expected.items():
        assert report["mean"]["test"][metric] == pytest.approx(value, abs=5e-5)


# inspect


def test_inspect_a_model(model_file):
    report = json.loads(run("inspect", model_file, "--top", 2, "--json"))
    coef, table = load_model(model_file).coef_, load_model(model_file).column_weights()
    order = table["column"][:2]
    assert (np.diff(table["importance"]) < 0).all()
    measures = ("weight", "spread", "importance", "share")
    assert report == {
        "file": str(model_file),
        "kind": "RankRLS",
        "version": pairgram.__version__,
        "parameters": {
            "alpha": 0.5,
            "constraint": None,
            "prior": None,
            "feature_map": None,
            "pairs": "without_ties",
            "scale": False,
        },
        "n_features": 6,
        "largest_weights": [
            {"feature": int(j) + 1, **{name: table[name][row] for name in measures}}
            for row, j in enumerate(order)
        ],
    }
    np.testing.assert_array_equal(table["weight"][:2], coef[order])
    text = run("inspect", model_file)
    assert "RankRLS" in text and f"{coef[order[0]]:.6g}" in text
    assert re.search("alpha +0.5\n", text)
    assert "gamma" not in text and "kernel" not in text


def test_inspect_puts_the_most_important_feature_first(data, tmp_path):
    X, y, qid = data
    units = np.array([1e3, 1e-3, 1.0, 1.0, 1.0, 1.0])
    RankRLS(1e-9).fit(X * units, y, qid=qid).save(tmp_path / "m")
    features = [
        row["feature"]
        for row in json.loads(run("inspect", tmp_path / "m", "--json"))["largest_weights"]
    ]
    RankRLS(1e-9).fit(X, y, qid=qid).save(tmp_path / "in_one_unit")
    report = json.loads(run("inspect", tmp_path / "in_one_unit", "--json"))
    assert features == [row["feature"] for row in report["largest_weights"]]
    assert "importance" in run("inspect", tmp_path / "m")


def test_inspect_shows_constraints(data, tmp_path):
    X, y, qid = data
    RankRLS(constraint=Positive([0, 2])).fit(X, y, qid=qid).save(tmp_path / "m")
    text = run("inspect", tmp_path / "m")
    assert re.search(r"constraint +Positive\(columns=\[0, 2\]\)\n", text)
    RankRLS(constraint=MaxNonzero(4)).fit(X, y, qid=qid).save(tmp_path / "m")
    text = run("inspect", tmp_path / "m")
    assert re.search("n_features +6\n", text)
    assert re.search(r"constraint +MaxNonzero\(k=4\)\n", text)
    model = RankRLS(pairs=None).fit(1e7 * X, y, qid=qid)  # of small weights
    model.save(tmp_path / "m")
    text, largest = run("inspect", tmp_path / "m", "--top", 1), abs(model.coef_).argmax()
    assert text.split()[-2:] == [str(largest + 1), f"{model.coef_[largest]:.6g}"]
    assert re.search("pairs +none\n", text)


def test_inspect_nodes(file, tmp_path):
    nodes = ("-m", "elm-pairwise", "--nodes", 8, "--activation", "tanh")
    run("train", file, "-o", tmp_path / "m", *nodes)
    report = json.loads(run("inspect", tmp_path / "m", "--json"))
    assert report["n_features"] == 6 and "largest_weights" not in report
    assert report["n_coefficients"] == 8
    shown = report["parameters"]["feature_map"]
    assert shown.startswith("RandomNodes(activation='tanh'") and "n_nodes=8" in shown
    rows = dict(line.split(maxsplit=1) for line in run("inspect", tmp_path / "m").split("\n")[1:-1])
    assert rows["feature_map"] == shown
    assert rows["weights"] == "none of features: coefficients of what the feature map makes"


def test_inspect_linear_nodes_by_their_features(file, data, tmp_path):
    X = data[0]
    run("train", file, "-o", tmp_path / "m", "-m", "elm-pairwise", "--nodes", 8)
    model = load_model(tmp_path / "m")
    expected = model.feature_map_.weights_ @ model.coef_
    weights = json.loads(run("inspect", tmp_path / "m", "--json"))["largest_weights"]
    assert [row["feature"] for row in weights] == (np.argsort(-abs(expected)) + 1).tolist()
    found = np.array([row["weight"] for row in sorted(weights, key=lambda row: row["feature"])])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    scores = X @ found
    np.testing.assert_allclose(np.diff(scores), np.diff(model.predict(X)), atol=1e-12)


# demo


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_demo_shows_that_pairs_help(seed):
    lines = [line.rsplit(maxsplit=4) for line in run("demo", "--seed", seed).splitlines()]
    pointwise, pairwise = (
        np.array(line[1:4], float) for line in lines if line and line[0].strip().startswith("R")
    )
    assert (pointwise + 0.02 < pairwise).all()


# Errors


def test_a_wrong_line_leaves_no_model(tmp_path):
    (tmp_path / "bad.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:x\n")
    assert "bad.txt:2:" in error("train", tmp_path / "bad.txt", "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_scores_are_decimal_numbers_and_infinity(file, tmp_path, data):
    n_rows = len(data[1])
    scores = tmp_path / "scores.txt"
    numbers = ["+1", ".5", "5.", "1e-400", "-0", "inf", "-Infinity", "1E+2"]
    scores.write_text(" \r\n\t".join(numbers[i % len(numbers)] for i in range(n_rows)) + "\n \n\n")
    found = load_scores(str(scores), n_rows)
    assert found == [float(numbers[i % len(numbers)]) for i in range(n_rows)]


@pytest.mark.parametrize("packed", [False, True])
def test_files_come_by_standard_input(file, valid_file, model_file, tmp_path, packed):
    text = file.read_bytes()
    given = {"input": gzip.compress(text) if packed else text}
    assert run("predict", model_file, "-", **given) == run("predict", model_file, file)
    by_file = run("evaluate", file, "--model", model_file)
    assert (
        run("evaluate", "-", "--model", model_file, **given).split("\n")[1:]
        == (by_file.split("\n")[1:])
    )
    scores = tmp_path / "scores"
    run("predict", model_file, file, "-o", scores)
    text = run("evaluate", "-", "--scores", scores, **given)
    assert text.startswith("standard input: ") and text.split("\n")[1:] == by_file.split("\n")[1:]
    run("train", "-", "-o", tmp_path / "a", "--valid", valid_file, **given)
    run("train", file, "-o", tmp_path / "b", "--valid", valid_file)
    a, b = load_model(tmp_path / "a"), load_model(tmp_path / "b")
    assert a.get_params() == b.get_params() and (a.coef_ == b.coef_).all()
    text = run("train", "-", "-o", tmp_path / "a", "--alphas", 1, **given)
    assert re.search("file +standard input\n", text)


def test_standard_input_has_its_name_in_errors(file, model_file, tmp_path, with_streams):
    def said(*arguments, input=b""):
        result = invoke(*arguments, input=input)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1
        return result.stderr.removeprefix("pairgram: error: ").strip()

    wrong = said("train", "-", "-o", tmp_path / "m", input=b"1 qid:1 1:0.5\n0 qid:1 1:x\n")
    assert wrong.startswith("standard input:2: fo")
    assert said("evaluate", file, "--scores", "-", input=b"1\nx\n").startswith("standard input:2:")
    err = with_streams((2, "predict", model_file, "-", "-o", file), input=file)[1]
    assert f"--output {file} is one of the other files of this command" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_device_is_named(file, model_file):
    assert error("predict", model_file, file, "-o", "/dev/full") == (
        "/dev/full: No space left on device"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_names_cannot_move_the_cursor(model_file, data, tmp_path):
    X, y, qid = data
    folder = tmp_path / "a\nb\x1b[2J"
    folder.mkdir()
    path = folder / "x\r.txt"
    dump_letor(path, X, y, qid)
    shown_path = f"{tmp_path}/a\\nb\\x1b[2J/x\\r.txt"
    assert run("evaluate", path, "--model", model_file).startswith(f"{shown_path}: ")
    assert error("inspect", path).startswith(f"{shown_path}: not a")
    assert error("train", path, "-o", path).startswith(f"--output {shown_path} is one of")
    frame = pd.DataFrame(X, columns=["a\x1b[2J", "b\n", "[b]c", "d", "e", "f"])
    RankRLS().fit(frame, y, qid=qid).save(tmp_path / "named")
    weights = json.loads(run("inspect", tmp_path / "named", "--json"))["largest_weights"]
    assert {row["name"] for row in weights} == set(frame.columns)
    text = run("inspect", tmp_path / "named")
    assert "\x1b" not in text and r"a\x1b[2J" in text and r"b\n" in text and "[b]c" in text


def test_foreign_and_damaged_models(model_file, file, tmp_path):
    contents = bytearray(model_file.read_bytes())
    contents[-3] ^= 1
    model_file.write_bytes(contents)
    for arguments in (("predict", model_file, file), ("inspect", model_file)):
        assert "damaged, its checksum does not match" in error(*arguments)


def test_an_input_is_not_replaced(file, valid_file, model_file, tmp_path):
    link = tmp_path / "link"
    os.link(file, link)
    before = {path: path.read_bytes() for path in (file, valid_file, model_file)}
    for command, output in (
        (("train", file), file),
        (("train", file), link),
        (("train", file, "--valid", valid_file), valid_file),
        (("predict", model_file, file), file),
        (("predict", model_file, file), model_file),
    ):
        wrong = f"--output {output} is one of the other files of this command"
        assert error(*command, "-o", output) == wrong
    assert before == {path: path.read_bytes() for path in before}


def test_parts_of_different_widths_are_padded(file, tmp_path):
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:1 9:1\n0 qid:1 1:2\n")
    for train, valid in ((file, wide), (wide, file)):
        run("train", train, "-o", tmp_path / "m", "--valid", valid)
        assert load_model(tmp_path / "m").n_features_in_ == 9


def test_no_memory_is_one_line(file, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pairgram.cli.named_files.read_letor", refuse)
    assert error("train", file, "-o", tmp_path / "m") == "not enough memory"


def test_an_interruption_that_ends_in_an_error_of_a_lock(file, tmp_path, monkeypatch):
    """Ctrl-C may strike where Python's own locks are neither taken nor released."""
    lock = threading.Lock()

    def strike(*_, **__):
        with lock:
            lock.release()
            raise KeyboardInterrupt

    monkeypatch.setattr("pairgram.cli.named_files.read_letor", strike)
    result = invoke("train", file, "-o", tmp_path / "m")
    assert (result.exit_code, result.stderr) == (130, "pairgram: interrupted\n")


# The options' small language, cells


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", [1.0]),
        ("0.1, 1,1e3", [0.1, 1.0, 1000.0]),
        ("2^-2:2^1", [0.25, 0.5, 1.0, 2.0]),
        ("10^0:10^+2,5", [1.0, 10.0, 100.0, 5.0]),
        ("2^1,2,3", [2.0, 3.0]),
        ("4^-1:4^1,9", [0.25, 1.0, 4.0, 9.0]),
        ("0,1", [0.0, 1.0]),
        ("0.0,1", [0.0, 1.0]),
    ],
)
def test_parse_grid(text, values):
    assert parse_grid(text, "--alphas") == values


def test_activations_are_those_of_the_nodes():
    (names,) = (one.setting.names for one in options_of("train") if one.flag == "--activation")
    assert tuple(ACTIVATIONS) == (*names, "cos")  # of Fourier features


def test_cells():
    values = (0.5, 1e9, 0.0, -1.23456e-5, True, None, 3, "a")
    assert [show(v) for v in values] == [
        *("0.5000", "1e+09", "0.0000", "-1.235e-05", "yes", "none", "3", "a"),
    ]
    assert [significant(v) for v in (0.5, 1.23456789e-7, 3, None)] == [
        "0.5",
        "1.23457e-07",
        "3",
        "none",
    ]


# The process


def test_version_and_help():
    assert run("--version") == f"pairgram {pairgram.__version__}\n"
    assert run() == run("--help") == run("-h")
    for command in COMMANDS:
        text = run(command, "--help-all")
        assert f"usage: pairgram {command}" in text
        assert f"\n  pairgram {command} " in text


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from pairgram.cli.app import run\n"
        "for given in (['--help'], ['train', '--help'], ['export', '--help-all']):\n"
        "    assert run(given) == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pairgram._core'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.skipif(sys.platform == "win32", reason="devices and named pipes are POSIX")
def test_scores_go_to_devices_and_pipes(file, model_file, tmp_path):
    scores = run("predict", model_file, file)
    assert run("predict", model_file, file, "-o", "/dev/stdout") == scores
    assert run("predict", model_file, file, "-o", os.devnull) == ""
    with open(tmp_path / "kept", "w+") as kept:  # what stands there stays
        kept.write("kept\n")
        kept.flush()
        run("predict", model_file, file, "-o", f"/dev/fd/{kept.fileno()}")
    assert (tmp_path / "kept").read_text() == "kept\n" + scores
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        assert run("predict", model_file, file, "-o", pipe) == ""
        assert read.result() == scores


MAIN = "from pairgram.cli import main; main()"


# Streams as Python makes them when it starts, for a process that has the libraries loaded.
STREAMS = """
import io, os, sys
from pairgram.cli.table_of_commands import COMMANDS, options_of
from pairgram.features.row_values import Chain
def set_streams(paths, closed, encoding, unbuffered):
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(os.open(paths[fd], os.O_WRONLY | os.O_APPEND if fd else os.O_RDONLY), fd)
        raw = open(fd, "wb" if fd else "rb", 0 if fd and unbuffered else -1, closefd=False)
        stream = io.TextIOWrapper(raw, encoding, write_through=bool(fd and unbuffered))
        setattr(sys, name, None if fd in closed else stream)
    for fd in closed:
        os.close(fd)
"""


@pytest.fixture
def with_streams(tmp_path):
    """Return what runs commands, which end with the status that each begins with.

    It returns what they wrote to streams that are files.
    """
    out, err = written = tmp_path / "out", tmp_path / "err"

    def run_all(
        *commands, closed=(), input=os.devnull, output=out, encoding="utf-8", unbuffered=False
    ):
        for path in written:
            path.write_text("")
        paths = [*map(str, (input, output, err))]
        code = f"{STREAMS}set_streams({paths}, {closed}, {encoding!r}, {unbuffered})\n{MAIN}"
        for status, *arguments in commands:
            process = forks.start(code, *arguments)
            process.join()
            assert process.exitcode == status
        return tuple(path.read_text() for path in written)

    return run_all


posix = pytest.mark.skipif(sys.platform == "win32", reason="a shell sets the streams")


def of_a_shell(streams, *arguments):
    """Run a command with streams that a shell sets, before Python starts."""
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-c", MAIN, *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(model_file, unbuffered, with_streams, monkeypatch):
    commands = (2, "inspect", model_file), (2, "--version")
    refused = "pairgram: error: standard output: No space left on device\n"
    written = with_streams(*commands, output="/dev/full", unbuffered=bool(unbuffered))
    assert written == ("", len(commands) * refused)
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    assert of_a_shell(">/dev/full", "--version") == (2, "", refused)


@posix
def test_streams_that_cannot_encode(file, tmp_path, with_streams):
    odd = os.fsdecode(bytes(tmp_path / "odd") + b"\xff\xe4.txt")
    try:
        os.link(file, odd)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    train = (0, "train", odd, "-o", tmp_path / "m", "--model", "rankrls")
    out, err = with_streams(train, (2, "inspect", odd), encoding="ascii")
    assert r"odd\udcff\udce4.txt" in out
    assert r"odd\udcff\udce4.txt: not a model" in err and err.count("\n") == 1


@posix
def test_a_broken_pipe_is_quiet(model_file, tmp_path, with_streams):
    (tmp_path / "long.txt").write_text("0 qid:1 6:1\n" * 50_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def first_line():
        with open(pipe) as found:
            return found.readline()

    with ThreadPoolExecutor() as pool:
        line = pool.submit(first_line)
        predict = (1, "predict", model_file, tmp_path / "long.txt")
        try:
            assert with_streams(predict, output=pipe) == ("", "")
        finally:
            while not line.done():  # it would wait for ever for a command that has failed
                with contextlib.suppress(OSError):
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        assert line.result().endswith("\n")


# A process that does not end with its terminal hands that on, as by nohup.
OF_A_SHELL = (
    "import signal\n"
    "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_DFL)\n"
)


@pytest.mark.skipif(sys.platform == "win32", reason="the signals are POSIX")
@pytest.mark.parametrize("names", [("SIGTERM", "SIGHUP"), ("SIGHUP", "SIGTERM")])
def test_signals_that_end_the_process_leave_no_file(file, model_file, tmp_path, names):
    """A service manager, or a terminal that is closed, may send a second one meanwhile."""
    first, second = (int(getattr(signal, name)) for name in names)
    folder = tmp_path / "out"
    folder.mkdir()
    code = (  # writes a file, and ends itself meanwhile
        f"{forks.in_folder(tmp_path)}{OF_A_SHELL}"
        "import time\n"
        "from pairgram.cli import measuring\n"
        "def scores():\n"
        "    try:\n"
        "        yield 1.0\n"
        f"        print(len(os.listdir({str(folder)!r})))\n"
        f"        os.kill(os.getpid(), {first}); time.sleep(60)\n"
        f"    finally: os.kill(os.getpid(), {second}); time.sleep(0.01); print('cleaned up')\n"
        "measuring.letor_scores = lambda *given, **named: (None, scores())\n"
        f"{MAIN}"
    )
    process = forks.start(code, "predict", model_file, file, "-o", folder / "s.txt")
    process.join()
    assert process.exitcode == 128 + first
    assert (tmp_path / "printed").read_text() == "1\ncleaned up\n"
    assert (tmp_path / "said").read_text() == ""
    assert os.listdir(folder) == []


def test_warnings_of_the_library_are_notes(tmp_path):
    X, y, qid = make_ranking(20, 8, 6, random_state=0)
    dump_letor(tmp_path / "raw.txt", X * [1, 1, 1, 1, 1e5, 1], y, qid=qid)
    said = run_with_note(
        *("train", tmp_path / "raw.txt", "-o", tmp_path / "m", "--kernel", "rbf", "--alphas", 1),
        *("--feature-map", "none"),
    )[1]
    assert said.startswith("warning: columns of X differ so much in spread that the rbf kernel")
    assert "counted from 0. Scale them alike" in said


@pytest.mark.parametrize("model", ["rankrls", "ranksvm", "rank-fourier", "elm-pairwise"])
def test_train_with_inputs(model, data, file, tmp_path):
    X = data[0]
    options = ("train", file, "-o", tmp_path / "m", "-m", model, "--Cs", "0.1,1")
    options = options[:-2] if model == "rankrls" else options
    report = json.loads(
        run(*options, "--feature-map", "none", "--feature-map", "raw+quantile", "--json")
    )
    assert report["params"]["feature_map"] in (None, "raw+quantile")
    report = json.loads(run(*options, "--feature-map", "raw+quantile", "--json"))
    assert report["params"]["feature_map"] == "raw+quantile"
    loaded = load_model(tmp_path / "m")
    assert inputs_of(loaded).transform(X).shape == (len(X), 2 * X.shape[1])
    inspected = json.loads(run("inspect", tmp_path / "m", "--json"))
    value = load_model(tmp_path / "m").feature_map
    assert inspected["parameters"]["feature_map"] == " ".join(str(value).split())
    if model in ("rankrls", "ranksvm"):
        largest = inspected["largest_weights"]
        names = {(row["feature"], row["part"]) for row in largest}
        assert len(names) == len(largest) > 0
        assert all(0 < number <= X.shape[1] for number, _ in names)
        assert {kind for _, kind in names} <= {"raw", "quantile"}
        table = loaded.column_weights()
        second, column = divmod(int(table["column"][0]), X.shape[1])
        assert largest[0]["feature"] == column + 1
        assert largest[0]["part"] == ("quantile" if second else "raw")
        assert largest[0]["weight"] == table["weight"][0]
    scores = run("predict", tmp_path / "m", file)
    assert np.array(scores.split(), float) == pytest.approx(loaded.predict(X))


def long_tails(X):
    return np.exp(15 * X)


@pytest.mark.parametrize("model", ["rankrls", "ranksvm", "auto"])
def test_columns_with_long_tails_are_tried_in_other_ways(model, data, tmp_path):
    X, y, qid = data
    file, out = tmp_path / "tails.txt", tmp_path / "m"
    dump_letor(file, long_tails(X), y, qid)
    report = json.loads(run("train", file, "-o", out, "-m", model, "--json"))
    raw = json.loads(
        run("train", file, "-o", out, "-m", "rankrls", "--feature-map", "none", "--json")
    )
    assert raw["params"].get("feature_map") is None and "raw_columns" not in raw
    assert report["score"] > report["raw_columns"] or model == "auto"
    if model == "rankrls":
        assert report["params"]["feature_map"] in ("standard", "quantile")
        assert report["raw_columns"] == raw["score"]
        text = run("train", file, "-o", out, "-m", model)
        assert re.search(rf"raw_columns +{raw['score']:.6g}\n", text)
    plain = json.loads(run("train", write(tmp_path, data), "-o", out, "-m", "rankrls", "--json"))
    assert "raw_columns" not in plain and "feature_map" not in plain["params"]
    ones = np.column_stack([(X[:, 0] > 1.5), X[:, 1:]])  # a rare 1 is no tail
    dump_letor(file, ones, y, qid)
    plain = json.loads(run("train", file, "-o", out, "-m", "rankrls", "--json"))
    assert "feature_map" not in plain["params"]


def write(folder, rows):
    dump_letor(folder / "rows.txt", *rows)
    return folder / "rows.txt"


def test_files_that_count_from_0(data, tmp_path):
    X, y, qid = data
    dump_letor(tmp_path / "zero.txt", X, y, qid, zero_based=True)
    dump_letor(tmp_path / "one.txt", X, y, qid)
    fit = ("--alphas", 1, "-o")
    assert "--zero-based" in error("train", tmp_path / "zero.txt", *fit, tmp_path / "z")
    run("train", tmp_path / "zero.txt", *fit, tmp_path / "z", "--zero-based")
    run("train", tmp_path / "one.txt", *fit, tmp_path / "o")
    scores = run("predict", tmp_path / "z", tmp_path / "zero.txt", "--zero-based")
    assert scores == run("predict", tmp_path / "o", tmp_path / "one.txt")
    given = ("evaluate", tmp_path / "zero.txt", "--model", tmp_path / "z", "--zero-based", "--json")
    assert json.loads(run(*given))["n_queries"] == 30


def test_inputs_of_sparse_files(file, data, tmp_path):
    options = ("train", file, "-o", tmp_path / "m", "--sparse", "--kernel", "rbf", "--alphas", 1)
    report = json.loads(run(*options, "--json"))
    assert report["params"]["feature_map"] in (None, "maxabs")


def test_help_of_many_options_fits_a_screen(monkeypatch):
    """What people need first is in sight, and every option is a word away."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("train", "--help").splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 80
    first = re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", "\n".join(lines))
    assert {"--output", "--qid", "--label", "--metric", "--valid", "--help-all"} <= {*first}
    everything = run("train", "--help-all")
    assert all(one.flag in everything for one in options_of("train"))
    for command in COMMANDS:
        lines = run(command, "--help").splitlines()
        assert max(map(len, lines)) <= 80 or command != "demo"
