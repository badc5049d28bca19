"""Tables on a Dask cluster of two worker processes, beside the local engine."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

import forks
import pairgram as pg
from row_value import fill_of
from table_sources import make_rows, write_parts

ROWS = make_rows()
NAMES = {"label": "label", "qid": "query", "features": ROWS.names, "weight": "w"}
BORDERS = [100, 101, 101, 300]


@pytest.fixture(scope="module")
def client():
    forks.start("").join()
    way = forks.FRESH.get_start_method()
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": way}),
        LocalCluster(**given, processes=True) as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.fixture
def tables(client, tmp_path):
    """The same files for the local engine and for the cluster."""
    write_parts(tmp_path, ROWS.frame, BORDERS)
    return pg.scan(tmp_path, **NAMES), pg.scan(tmp_path, client=client, **NAMES)


PRIOR = FrozenEstimator(LinearRegression().fit(ROWS.X, ROWS.y))
MODELS = {
    "RankRLS": pg.RankRLS(feature_map="standard", prior=PRIOR),
    "quantiles": pg.RankRLS(feature_map="quantile", scale=True),
    "global": pg.RankRLS(pairs=pg.Pairs(scope="global")),
    "RankRLSCV": pg.RankRLSCV(
        pairs=["with_ties", "gain_difference"], feature_map=pg.RandomNodes(9, random_state=0)
    ),
    "folds": pg.RankRLSCV(cv=3, constraint=pg.Positive()),
    "landmarks": pg.RankRLS(feature_map=pg.Nystroem(n_components=9, random_state=0)),
    "machine": pg.PairwiseELMCV(n_nodes=9, random_state=0),
    "RankSVM": pg.RankSVM(C=0.1, tol=0.01),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_as_on_one_machine(tables, name):
    fits = [clone(MODELS[name]).fit(table) for table in tables]
    np.testing.assert_array_equal(fits[1].coef_, fits[0].coef_)
    if hasattr(fits[0], "scores_"):
        np.testing.assert_array_equal(fits[1].scores_, fits[0].scores_)


def test_a_validation_table(tables):
    svm = pg.RankSVMCV(Cs=[0.001, 0.01], tol=0.1)  # in few passes
    fits = [clone(svm).fit(table, validation=tables[0]) for table in tables]
    np.testing.assert_array_equal(fits[0].scores_, fits[1].scores_)
    fits = [pg.RankRLSCV().fit(table, validation=tables[1]) for table in tables]
    np.testing.assert_array_equal(fits[0].scores_, fits[1].scores_)


def test_scores_and_metrics(tables, tmp_path):
    local, remote = tables
    model = pg.RankRLS(prior=PRIOR).fit(local)
    np.testing.assert_array_equal(model.predict(remote), model.predict(local))
    assert pg.evaluate(["ndcg@10", "err"], remote, model) == pg.evaluate(
        ["ndcg@10", "err"], local, model
    )
    assert pg.predict(model, remote, output=tmp_path / "scores.parquet") == len(ROWS.y)
    written = pq.read_table(tmp_path / "scores.parquet")
    np.testing.assert_array_equal(written["query"].to_numpy(), ROWS.qid)
    np.testing.assert_array_equal(written["score"].to_numpy(), model.predict(local))


def test_missing_values_and_progress(client, tmp_path):
    X = ROWS.X.copy()
    X[::7, 1] = np.nan
    write_parts(tmp_path, replace(ROWS, X=X).frame, BORDERS)
    seen = []
    fits = [
        pg.RankRLS(feature_map=pg.Fill()).fit(
            pg.scan(tmp_path, **NAMES, **named).watched(seen.append)
        )
        for named in ({}, {"client": client})
    ]
    np.testing.assert_array_equal(fill_of(fits[0]), fill_of(fits[1]))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert sum(seen) == 2 * 3 * len(ROWS.y)  # labels, means and statistics


def test_a_frame_of_dask(client):
    frame = ROWS.frame.to_pandas()
    pieces = [frame.iloc[a:b] for a, b in zip([0, *BORDERS], [*BORDERS, len(frame)], strict=True)]

    def piece(number):
        return pieces[number]

    table = pg.scan(dd.from_map(piece, range(len(pieces)), meta=frame.iloc[:0]), **NAMES)
    model = pg.RankRLS()
    wanted = clone(model).fit(ROWS.X, ROWS.y, qid=ROWS.qid, sample_weight=ROWS.weight)
    found = clone(model).fit(table)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9)
    np.testing.assert_array_equal(
        found.predict(table), found.predict(pd.DataFrame(ROWS.X, columns=ROWS.names))
    )
    assert list(found.feature_names_in_) == ROWS.names
    with pytest.raises(ValueError, match="client must be None for a frame of Dask"):
        pg.scan(dd.from_pandas(frame, npartitions=2), client=client, **NAMES)
    ids = [f"query {k}" for k in ROWS.qid]
    as_text = dd.from_pandas(frame.assign(query=ids), npartitions=5, sort=False)
    np.testing.assert_allclose(
        clone(model).fit(pg.scan(as_text, **NAMES)).coef_, wanted.coef_, rtol=1e-9
    )


def test_errors_reach_the_caller(client, tmp_path):
    frame = ROWS.frame
    values = ROWS.X[:, 1].copy()
    values[150] = np.nan
    at = frame.schema.get_field_index("f1")
    write_parts(tmp_path, frame.set_column(at, "f1", pa.array(values)), BORDERS)
    table = pg.scan(tmp_path, client=client, **NAMES)
    model = pg.RankRLS()
    message = r"part-03\.parquet, row 49, .*: column 'f1' has a missing"
    with pytest.raises(ValueError, match=message):
        model.fit(table)
    assert not hasattr(model, "coef_")
    fitted = pg.RankRLS().fit(ROWS.X, ROWS.y, qid=ROWS.qid)
    with pytest.raises(ValueError, match=message):
        pg.predict(fitted, table, output=tmp_path / "scores.parquet")
    assert not (tmp_path / "scores.parquet").exists()
    with pytest.raises(ValueError, match="do not stand together"):
        double = pa.concat_tables([frame, frame.slice(0, 1)])
        write_parts(tmp_path, double, [10])
        pg.RankRLS().fit(pg.scan(sorted(tmp_path.glob("part-0[01]*")), client=client, **NAMES))


@dataclass
class Deadly:
    """A partition that kills the process that reads it, unless a file says that it has done so."""

    own: object
    done: Path

    @property
    def name(self):
        return self.own.name

    def batches(self, number, columns):
        yield from self.own.batches(number, columns)
        if number == 3 and not self.done.exists():
            self.done.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_costs_its_tasks_alone(client, tmp_path):
    write_parts(tmp_path, ROWS.frame, range(60, 480, 60))
    wanted = pg.RankRLSCV().fit(pg.scan(tmp_path, **NAMES))
    table = pg.scan(tmp_path, client=client, **NAMES)
    table.survey()
    done = tmp_path / "done"
    table = replace(table, partitions=tuple(Deadly(one, done) for one in table.partitions))
    workers = client.run(os.getpid).values()
    found = pg.RankRLSCV().fit(table)
    victim = int(done.read_text())
    assert victim in workers
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    np.testing.assert_array_equal(found.scores_, wanted.scores_)
    client.wait_for_workers(2, timeout=120)
    assert victim not in client.run(os.getpid).values()


def test_frames_whose_partitions_dask_would_fuse(tmp_path):
    """Of files with many other columns, Dask reads several into a partition."""
    X, y, qid = pg.make_ranking(40, 50, 12, random_state=0)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)]).assign(y=y, q=qid)
    for number in range(4):
        frame[500 * number : 500 * (number + 1)].to_parquet(tmp_path / f"p{number}.parquet")
    names = {"label": "y", "qid": "q", "features": ["f0", "f1"]}
    table = pg.scan(dd.read_parquet(tmp_path), **names)
    model = pg.RankRLS().fit(table)
    np.testing.assert_allclose(
        model.coef_, pg.RankRLS().fit(pg.scan(frame, **names)).coef_, rtol=1e-9
    )
    assert np.array_equal(model.predict(table), model.predict(frame[["f0", "f1"]]))
    wide = pg.scan(dd.read_parquet(tmp_path), label="y", qid="q")
    wide.survey()
    wanted = pg.evaluate("kendall", table, model)
    assert pg.evaluate("kendall", wide, model) == pytest.approx(wanted, rel=1e-12)
    of_wide, of_own = (pg.RankRLSCV().fit(table, validation=one) for one in (wide, table))
    np.testing.assert_allclose(of_wide.scores_, of_own.scores_, rtol=1e-12)


def test_columns_without_text_as_names():
    frame = ROWS.frame.to_pandas().rename(columns={name: n for n, name in enumerate(ROWS.names)})
    named = {"label": "label", "qid": "query", "weight": "w"}
    known = [str(n) for n in range(len(ROWS.names))]
    tables = (pg.scan(f, **named, features=known) for f in (frame, dd.from_pandas(frame, 2)))
    local, dask = (pg.RankRLS().fit(table) for table in tables)
    np.testing.assert_allclose(dask.coef_, local.coef_, rtol=1e-9)
    np.testing.assert_array_equal(dask.feature_names_in_, known)
