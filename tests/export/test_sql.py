"""Expressions of SQL in their dialects, with names that SQLite takes as one."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from pairgram import RankRLS, export, make_ranking
from row_value import row_value
from table_sources import scanned


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, 10, 4, random_state=0)


@pytest.mark.parametrize("inputs", [None, "quantile"])
def test_names_that_differ_by_case_alone(data, inputs):
    X, y, qid = data
    model = RankRLS(feature_map=inputs).fit(X, y, qid=qid)
    for names in (["id", "A", "a", "rowid"], ["c1", "c0", 'c"0', "LEAST("]):
        exported = export.to_sql(model, features=names, dialect="sqlite")
        assert export.verify(exported, model, X, qid).n_reordered == 0


# A type of columns, and how a missing value is written.
HOLES = [("double precision", "'NaN'"), ("double precision", "NULL"), ("real", "'NaN'")]
HOLES += [("integer", "NULL"), ("numeric(12, 3)", "NULL")]


def in_duckdb(script, query):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute(script)
        return connection.execute(query).fetchall()


def in_sqlite(script, query):
    connection = sqlite3.connect(":memory:")
    connection.executescript(script.replace("'NaN')", "NULL)").replace("'NaN',", "NULL,"))
    return connection.execute(query).fetchall()


# PostgreSQL does not run with the libraries of a sanitizer.
PLAIN = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@pytest.fixture(scope="module")
def postgres():
    """The folder of the socket of a server of PostgreSQL, which is stopped at the end."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (str(found[-1]) if found else None)
    if initdb is None or shutil.which("psql") is None:
        pytest.skip("there is no PostgreSQL")
    control = str(Path(initdb).resolve().with_name("pg_ctl"))
    with tempfile.TemporaryDirectory() as folder:
        user = []
        if os.getuid() == 0:  # as which PostgreSQL refuses to run
            shutil.chown(folder, "postgres")
            user = ["runuser", "-u", "postgres", "--"]
        data, log = f"{folder}/data", f"{folder}/log"

        def call(*command):
            named = {"capture_output": True, "cwd": folder, "env": PLAIN}
            subprocess.run([*user, *command], check=True, **named)

        call(initdb, "-D", data, "-A", "trust", "-U", "me")
        options = f"-c listen_addresses= -k {folder}"
        call(control, "-D", data, "-w", "-l", log, "-o", options, "start")
        try:
            yield folder
        finally:
            call(control, "-D", data, "-m", "immediate", "stop")


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def run(request):
    """A function that runs a script and returns the rows of a query, and its dialect."""
    if request.param == "duckdb":
        return in_duckdb, "standard"
    if request.param == "sqlite":
        return in_sqlite, "sqlite"
    folder = request.getfixturevalue("postgres")

    def of_psql(script, query):
        command = ["psql", "-h", str(folder), "-U", "me", "-d", "postgres", "-AtqX", "-v"]
        text = f"BEGIN; {script}; {query}; ROLLBACK;"
        named = {"capture_output": True, "text": True, "check": True, "env": PLAIN}
        done = subprocess.run([*command, "ON_ERROR_STOP=1"], input=text, **named)
        return [
            tuple(float(one) if one else None for one in line.split("|"))
            for line in done.stdout.splitlines()
        ]

    return of_psql, "standard"


def scored(run, models, X, kind, hole="NULL", cell=repr):
    """Return the scores of an engine by each model, for rows in columns of a type."""
    engine, dialect = run
    texts = [export.to_sql(model, features=["a", "b"], dialect=dialect) for model in models]
    rows = enumerate(X.tolist())
    cells = ", ".join(f"({k}, {hole if a != a else cell(a)}, {b!r})" for k, (a, b) in rows)
    script = f"CREATE TEMP TABLE t (k integer, a {kind}, b {kind}); INSERT INTO t VALUES {cells}"
    return np.array(engine(script, f"SELECT {', '.join(texts)} FROM t ORDER BY k"), float).T


def assert_shifted(found, own, atol):
    shift = found - own
    np.testing.assert_allclose(shift, np.full(len(own), np.median(shift)), atol=atol)


@pytest.mark.parametrize(("kind", "hole"), HOLES)
def test_a_missing_value_counts_as_in_the_model(data, run, kind, hole):
    X, y, qid = (values[:150] for values in data)
    X = np.round(4 * X[:, :2])
    X[5::7, 0] = np.nan
    whole = ~np.isnan(X[:, 0])
    models = [
        RankRLS(feature_map=inputs) for inputs in (None, "standard", "quantile", "raw+quantile")
    ]
    filled = [
        RankRLS(feature_map=row_value(inputs, fill="mean")).fit(scanned((X, y, qid)))
        for inputs in (None, "standard", "quantile", "raw+quantile")
    ]
    for model, found in zip(filled, scored(run, filled, X, kind, hole), strict=True):
        np.testing.assert_allclose(found, model.predict(X), atol=1e-9, err_msg=str(model))
    for model in models:
        model.fit(X[whole], y[whole], qid=qid[whole])
    for model, found in zip(models, scored(run, models, X, kind, hole), strict=True):
        assert np.isnan(found[~whole]).all(), model
        assert_shifted(found[whole], model.predict(X[whole]), 1e-9)


def of_categories(values, y, qid, label=None):
    """Return rows of categories and numbers, and a model of them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(values, len(y)), rng.integers(0, 9, len(y))])
    encoder = OneHotEncoder(sparse_output=False)
    columns = ColumnTransformer([("one", encoder, [0])], remainder="passthrough")
    y = y if label is None else (X[:, 0] == label) + 0.1 * X[:, 1]
    return X, make_pipeline(columns, RankRLS()).fit(X, y, rankrls__qid=qid)


@pytest.mark.parametrize("kind", ["double precision", "real", "numeric(12, 3)"])
def test_a_category_is_met_in_columns_of_every_type(data, run, kind):
    X, model = of_categories([0.1, 0.2, 0.3], *data[1:])
    assert_shifted(*scored(run, [model], X, kind), model.predict(X), 1e-5)


@pytest.mark.parametrize("values", [[2.0**24, 2.0**24 + 1, 2.0**24 + 3], [0.1, 0.1 + 1e-12, 1e300]])
def test_categories_that_are_one_number_in_float32_are_told_apart(data, run, values):
    """A column of double precision tells them apart, so the expression must."""
    X, model = of_categories(values, *data[1:], label=values[1])
    text = export.to_sql(model, features=["a", "b"], dialect=run[1])
    assert export.verify(text, model, X, data[2]).max_error < 1e-9
    # With exponents, because DuckDB 1 reads others as decimals, and some of these an ulp off.
    assert_shifted(
        *scored(run, [model], X, "double precision", cell="{:.17e}".format), model.predict(X), 1e-9
    )
