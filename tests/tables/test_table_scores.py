"""Scores and metrics of tables, and values that take the place of missing ones."""

import csv
import errno
import os
import pickle
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairgram
from axes import every
from pairgram import (
    ELMRank,
    Fill,
    Kernel,
    RankRLS,
    RankRLSCV,
    RankSVM,
    evaluate,
    get_metric,
    load_model,
    scan,
)
from parts.tables import table_scores as row_scores
from row_value import fill_of, row_value
from table_sources import NAMES, ROWS, cut, cut_table, make_rows, write_parts

MODEL = RankRLS().fit(ROWS.X, ROWS.y, qid=ROWS.qid)
METRICS = ["ndcg@10", "map", "err", "kendall", "mrr", "ndcg"]


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_metrics_of_a_table(weighted):
    table = cut(weight="w" if weighted else None)
    weight = ROWS.weight if weighted else None
    scores = MODEL.predict(ROWS.X)
    wanted = evaluate(METRICS, ROWS.y, scores, ROWS.qid, sample_weight=weight)
    found = evaluate(METRICS, table, MODEL)
    assert found.keys() == wanted.keys()
    for name in METRICS:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12, nan_ok=True)
    wanted = evaluate(METRICS, ROWS.y, scores, ROWS.qid, per_query=True)
    found = evaluate(METRICS, table, MODEL, per_query=True)
    ids = list(dict.fromkeys(ROWS.qid.tolist()))
    np.testing.assert_array_equal(found.pop("qid"), ids)
    for name in METRICS:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
    if not weighted:
        assert MODEL.score(table) == pytest.approx(MODEL.score(ROWS.X, ROWS.y, qid=ROWS.qid))


def test_the_best_grade_is_that_of_all_rows():
    """Partitions may have lower labels than the whole table."""
    scores = MODEL.predict(ROWS.X)
    wanted = evaluate("err", ROWS.y, scores, ROWS.qid)["err"]
    order = np.argsort([ROWS.y[ROWS.qid == q].max() for q in ROWS.qid], kind="stable")
    frame = ROWS.frame.take(order)
    table = cut_table(frame, range(20, 400, 20), **NAMES)
    assert evaluate("err", table, MODEL)["err"] == pytest.approx(wanted, rel=1e-12)
    metric = get_metric("err", max_grade=5)
    wanted = evaluate(metric, ROWS.y, scores, ROWS.qid)["err"]
    assert evaluate(metric, table, MODEL)["err"] == pytest.approx(wanted, rel=1e-12)


def test_metrics_without_ids():
    found = evaluate("kendall", cut(qid=None), MODEL, per_query=True)
    assert found.keys() == {"kendall"} and found["kendall"].shape == (1,)
    wanted = evaluate("kendall", ROWS.y, MODEL.predict(ROWS.X))["kendall"]
    assert evaluate("kendall", cut(qid=None), MODEL)["kendall"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_have_the_bits_of_those_of_arrays(dtype, tmp_path):
    rows = make_rows(dtype=dtype)
    scores = MODEL.predict(rows.X)
    for table in (cut(rows), cut(rows, label=None, qid=None)):
        found = MODEL.predict(table)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, scores)
    n_rows = pairgram.predict(MODEL, cut(rows), output=tmp_path / "scores.parquet")
    assert n_rows == len(rows.y)
    written = pq.read_table(tmp_path / "scores.parquet")
    assert written.column_names == ["query", "score"]
    np.testing.assert_array_equal(written["score"].to_numpy(), scores)
    np.testing.assert_array_equal(written["query"].to_numpy(), rows.qid)


def test_columns_that_are_kept(tmp_path):
    frame = ROWS.frame.append_column("text", pa.array([f"row {k}" for k in range(len(ROWS.y))]))
    frame = frame.append_column("many", frame["text"].dictionary_encode())
    table = cut_table(frame, [3, 70], [1, 50, 90], **NAMES)
    keep = ["many", "f1", "text", "label"]
    pairgram.predict(MODEL, table, output=tmp_path / "scores.parquet", keep=keep)
    written = pq.read_table(tmp_path / "scores.parquet")
    assert written.column_names == [*keep, "score"]
    assert written["text"].to_pylist() == frame["text"].to_pylist() == written["many"].to_pylist()
    np.testing.assert_array_equal(written["f1"].to_numpy(), ROWS.X[:, 1])
    one = next(pairgram.predict(MODEL, table, keep="label"))  # one name, and not its letters
    assert one.column_names == ["label", "score"]
    batches = list(pairgram.predict(MODEL, table, keep=[]))
    assert {tuple(one.column_names) for one in batches} == {("score",)}
    assert sum(one.num_rows for one in batches) == len(ROWS.y)


def test_every_model_with_predict_scores_a_table():
    model = LinearRegression().fit(ROWS.X, ROWS.y)
    found = scores_of(model, cut())
    np.testing.assert_allclose(found, model.predict(ROWS.X), rtol=1e-12)
    frame = pd.DataFrame(ROWS.X, columns=ROWS.names)
    named = LinearRegression().fit(frame, ROWS.y)
    again = scores_of(named, cut())
    np.testing.assert_allclose(again, found, rtol=1e-9)
    prior = RankRLS(prior=FrozenEstimator(named)).fit(cut())
    np.testing.assert_allclose(prior.predict(cut()), prior.predict(frame), rtol=1e-9)
    assert prior.score(cut()) == pytest.approx(prior.score(frame, ROWS.y, qid=ROWS.qid))
    assert hasattr(named, "feature_names_in_")


@pytest.mark.parametrize(
    "model",
    [
        ELMRank(n_nodes=5, n_estimators=2, random_state=0),
        RankRLS(feature_map=Kernel("rbf", gamma=0.1)),
        RankSVM(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_were_fitted_to_arrays(model):
    model.fit(ROWS.X, ROWS.y, qid=ROWS.qid)
    np.testing.assert_array_equal(model.predict(cut()), model.predict(ROWS.X))
    assert model.score(cut()) == pytest.approx(model.score(ROWS.X, ROWS.y, qid=ROWS.qid))


def test_features_are_found_by_their_names(tmp_path):
    model = RankRLSCV(alphas=[1.0, 10.0]).fit(cut(), validation=cut())
    turned = cut(features=["f3", "w", "f1", "f0", "f2"])
    np.testing.assert_array_equal(model.predict(turned), model.predict(cut()))
    assert model.score(turned) == model.score(cut())
    again = RankRLSCV(alphas=[1.0, 10.0]).fit(cut(), validation=turned)
    np.testing.assert_array_equal(again.scores_, model.scores_)
    assert turned.feature_names == ["f3", "w", "f1", "f0", "f2"]


def test_pipelines_that_choose_columns_by_name():
    frame = pd.DataFrame(ROWS.X, columns=ROWS.names)
    chosen = ColumnTransformer([("scaled", StandardScaler(), ["f2", "f0"])], remainder="drop")
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(chosen, RankRLS()).fit(frame, ROWS.y, qid=ROWS.qid)
    np.testing.assert_allclose(scores_of(model, cut()), model.predict(frame), rtol=1e-12)


def scores_of(model, table):
    return np.concatenate([one["score"].to_numpy() for one in pairgram.predict(model, table)])


@pytest.mark.parametrize("ending", [".pq", ".csv", ".tsv", ".arrow", ".feather"])
def test_scores_are_written_as_the_name_says(ending, tmp_path):
    path = tmp_path / f"scores{ending}"
    n_rows = pairgram.predict(MODEL, cut(), output=path)
    wanted = pa.concat_tables(pairgram.predict(MODEL, cut())).to_pandas()
    tabs = pyarrow.csv.ParseOptions(delimiter="\t" if ending == ".tsv" else ",")
    if ending in (".csv", ".tsv"):
        found = pyarrow.csv.read_csv(path, parse_options=tabs).to_pandas()
    else:
        found = (pd.read_parquet if ending == ".pq" else pd.read_feather)(path)
    assert n_rows == len(found) == len(wanted)
    assert list(found) == list(wanted)
    np.testing.assert_array_equal(found["score"], wanted["score"])


def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"before")
    table = cut()

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            if self.file.tell() > 20:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

    replacing = row_scores.replacing

    @contextmanager
    def filling(path):
        with replacing(path) as file:
            yield Full(file)

    monkeypatch.setattr(row_scores, "replacing", filling)
    with pytest.raises(OSError, match="No space left on device"):
        pairgram.predict(MODEL, table, output=path)
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_scores_are_not_written_to_a_device():
    with pytest.raises(ValueError, match="a folder or a device"):
        pairgram.predict(MODEL, cut(), output="/dev/full")


def test_an_error_while_scoring_leaves_no_file(tmp_path):
    frame = ROWS.frame
    at = frame.schema.get_field_index("f1")
    values = ROWS.X[:, 1].copy()
    values[200] = np.nan
    table = cut_table(frame.set_column(at, "f1", pa.array(values)), [50], [100, 150], **NAMES)
    with pytest.raises(ValueError, match=r"part 1, row .*: column 'f1' has a missing value"):
        pairgram.predict(MODEL, table, output=tmp_path / "scores.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="no/such/folder"):
        pairgram.predict(MODEL, cut(), output=tmp_path / "no/such/folder/scores.parquet")


def test_no_rows(tmp_path):
    pq.write_table(ROWS.frame.slice(0, 0), tmp_path / "rows.parquet")
    table = scan(tmp_path, **NAMES)
    with pytest.raises(ValueError, match="the table has no rows"):
        pairgram.predict(MODEL, table, output=tmp_path / "scores.parquet")
    assert list(pairgram.predict(MODEL, table)) == []
    assert [one.name for one in tmp_path.iterdir()] == ["rows.parquet"]


# Missing values


def with_gaps(dtype=np.float64, seed=1):
    """Rows of which some features are NaN, the same as an Arrow table with null and NaN."""
    rows = make_rows(dtype=dtype)
    rng = np.random.default_rng(seed)
    gaps = rng.random(rows.X.shape) < 0.2
    gaps[:, 3] = False
    rows.X[gaps] = np.nan
    frame = rows.frame
    at = frame.schema.get_field_index("f1")
    values = pa.array(rows.X[:, 1], from_pandas=True)
    assert values.null_count
    return rows, frame.set_column(at, "f1", values)


@every(
    kind=[RankRLS(feature_map="standard"), RankRLSCV(), RankSVM(tol=1e-6)],
    dtype=[np.float64, np.float32],
    missing=["zero", "mean"],
)
def test_missing_values(missing, dtype, kind):
    rows, frame = with_gaps(dtype)
    wanted = np.zeros(4)
    if missing == "mean":
        v = rows.weight[:, None] * ~np.isnan(rows.X)
        wanted = (v * np.nan_to_num(rows.X.astype(float))).sum(axis=0) / v.sum(axis=0)
    table = cut_table(frame, [3, 99], [50, 60], weight="w", **NAMES)
    value = row_value(kind.feature_map, fill=missing)
    found = clone(kind).set_params(feature_map=value).fit(table)
    np.testing.assert_allclose(fill_of(found), wanted, rtol=1e-12)
    X = np.where(np.isnan(rows.X), fill_of(found).astype(dtype), rows.X)
    on_arrays = clone(kind).fit(X, rows.y, qid=rows.qid, sample_weight=rows.weight)
    tolerance = 1e-3 if isinstance(kind, RankSVM) or dtype is np.float32 else 1e-8
    np.testing.assert_allclose(found.coef_, on_arrays.coef_, rtol=tolerance, atol=tolerance)
    scores = found.predict(frame.select(rows.names).to_pandas())
    np.testing.assert_array_equal(found.predict(table), scores)
    filled = pd.DataFrame(X, columns=rows.names)
    np.testing.assert_array_equal(scores, found.predict(filled))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(table), scores)
    wanted = evaluate("ndcg@10", rows.y, scores, rows.qid)["ndcg@10"]
    unweighted = cut_table(frame, [3], [50], **NAMES)
    assert evaluate("ndcg@10", unweighted, found)["ndcg@10"] == pytest.approx(wanted, rel=1e-12)
    whole = make_rows(dtype=dtype)
    assert fill_of(clone(kind).fit(cut(whole))) is None
    found.set_params(feature_map=kind.feature_map).fit(whole.X, whole.y, qid=whole.qid)
    assert fill_of(found) is None


def test_missing_values_with_a_prior():
    rows, frame = with_gaps()
    prior = FrozenEstimator(LinearRegression().fit(make_rows().X, rows.y))
    table = cut_table(frame, [3], [50], **NAMES)
    found = RankRLS(prior=prior, feature_map=Fill()).fit(table)
    filled = np.where(np.isnan(rows.X), fill_of(found), rows.X)
    scores = (filled @ found.coef_) + prior.predict(filled)
    np.testing.assert_allclose(found.predict(table), scores, rtol=1e-9)
    frame = pd.DataFrame(rows.X, columns=rows.names)
    np.testing.assert_allclose(found.predict(frame), scores, rtol=1e-9)


def test_progress_counts_every_row_of_every_pass(tmp_path):
    write_parts(tmp_path, ROWS.frame, [40, 41], row_group_size=30)
    seen = []
    table = scan(tmp_path, **NAMES).watched(seen.append)
    RankRLSCV(feature_map="standard").fit(table)
    # Labels, scales, statistics and held-out scores.
    assert sum(seen) == 4 * len(ROWS.y)
    seen.clear()
    RankRLS(feature_map="quantile").fit(table).predict(table)
    # A sample, statistics and scores: labels are known by now.
    assert sum(seen) == 3 * len(ROWS.y)


def test_a_fitted_model_is_the_same_after_a_copy(tmp_path):
    model = RankRLS(feature_map="standard", prior=np.zeros(4)).fit(cut())
    assert clone(model).get_params().keys() == model.get_params().keys()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(cut()), model.predict(cut()))
    path = tmp_path / "model.safetensors"
    RankRLS(feature_map="standard").fit(cut()).save(path)
    loaded = load_model(path)
    np.testing.assert_array_equal(
        loaded.predict(cut()), RankRLS(feature_map="standard").fit(cut()).predict(cut())
    )


def test_what_is_kept_of_other_arguments_is_as_it_stands_there(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("q,g,w,f\n1,007,1.50,2\n1,007,01,3\n2,,1,4\n")
    model = RankRLS().fit(pd.DataFrame({"f": [1.0, 2.0]}), [0, 1], qid=[0, 0])
    table = scan(path, features="f", qid="q", weight="w")
    (batch,) = pairgram.predict(model, table, keep=["g", "w"])
    assert batch["g"].to_pylist() == ["007", "007", ""]
    assert batch["w"].to_pylist() == [1.5, 1.0, 1.0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_kept_of_text_is_as_it_stands_there(tmp_path, ending):
    names = ["sku", "ean", "version", "name", *ROWS.names]
    texts = [["007", "18446744073709551616", "1.10", "NA"], ["x1", "18446744073709551615", "", ""]]
    with open(tmp_path / "rows.csv", "w") as file:
        file.write(",".join(names) + "\n")
        for text, row in zip(texts, ROWS.X[:2].tolist(), strict=True):
            file.write(",".join([*text, *map(repr, row)]) + "\n")
    output, kept = tmp_path / f"scores.{ending}", names[:4]
    table = scan(tmp_path / "rows.csv", features=ROWS.names)
    assert pairgram.predict(MODEL, table, output=output, keep=kept) == 2
    if ending == "parquet":
        read = pq.read_table(output).select(kept).to_pylist()
        assert [list(row.values()) for row in read] == texts
    else:
        with open(output, newline="") as file:
            assert [row[:4] for row in csv.reader(file)] == [kept, *texts]
