"""Columns of lists in frames in memory: each entry is a feature, as in tables."""

import numpy as np
import pytest

from pairgram import Cross, Pairgram, RankRLS, RankRLSCV, export, load_model, recommend, scan

pd = pytest.importorskip("pandas")

N_QUERIES, SIZE, WIDTH = 15, 6, 3


class Rows:
    def __init__(self, dtype=np.float64):
        rng = np.random.default_rng(0)
        self.qid = np.repeat(np.arange(N_QUERIES), SIZE)
        self.u = rng.normal(size=(N_QUERIES, WIDTH)).astype(dtype)[self.qid]
        self.v = rng.normal(size=(len(self.qid), WIDTH)).astype(dtype)
        self.price = rng.normal(size=len(self.qid)).astype(dtype)
        self.y = np.digitize((self.u * self.v).sum(axis=1) + 0.3 * self.price, [-1.0, 1.0])

    def frame(self, package="pandas", as_lists=list):
        columns = {"user": as_lists(self.u), "price": self.price, "item": as_lists(self.v)}
        if package == "pandas":
            return pd.DataFrame(columns)
        made = pytest.importorskip(package)
        if package == "polars":
            return made.DataFrame(columns | {"user": self.u.tolist(), "item": self.v})
        columns |= {"user": self.u.tolist(), "item": self.v.tolist()}
        return made.table(columns)

    @property
    def X(self):
        return np.hstack([self.u, self.price[:, None], self.v])


MODEL = RankRLSCV(feature_map=Cross("user", "item", keep="price"))
ARRAYS = RankRLSCV(feature_map=Cross([0, 1, 2], [4, 5, 6], keep=3))
ENTRIES = ["user[0]", "user[1]", "user[2]", "price", "item[0]", "item[1]", "item[2]"]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
@pytest.mark.filterwarnings("ignore:all users get one list")
def test_fits_are_those_of_the_entries(package, tmp_path):
    rows = Rows()
    frame = rows.frame(package)
    model = MODEL.fit(frame, rows.y, qid=rows.qid)
    expected = ARRAYS.fit(rows.X, rows.y, qid=rows.qid)
    assert list(model.feature_names_in_) == ENTRIES
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(rows.X))
    assert model.score(frame, rows.y, qid=rows.qid) == expected.score(rows.X, rows.y, qid=rows.qid)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model").predict(frame), expected.predict(rows.X)
    )
    parity = export.verify(export.to_vespa(model, "adapter"), model, frame, rows.qid)
    assert parity.n_reordered == 0
    found = recommend(model, frame[:2], rows.frame()[["price", "item"]], k=3)
    np.testing.assert_array_equal(
        found.places, recommend(expected, rows.u[:2], rows.X[:, 3:], k=3).places
    )


@pytest.mark.parametrize("as_lists", [list, lambda rows: rows.tolist()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_those_of_the_entries(as_lists, dtype):
    rows = Rows(dtype)
    frame = rows.frame(as_lists=as_lists)
    model = RankRLS().fit(frame, rows.y, qid=rows.qid)
    wanted = dtype if as_lists is list else np.float64
    assert model.predict(frame).dtype == wanted
    half = frame.assign(user=list(rows.u.astype(np.float16)))
    assert RankRLS().fit(half, rows.y, qid=rows.qid).predict(half).dtype == wanted
    ints = frame.assign(user=[[0, one] for one in rows.qid.tolist()])
    assert RankRLS().fit(ints, rows.y, qid=rows.qid).predict(ints).dtype == np.float64


def test_statistics_and_tables_have_the_same_names():
    rows = Rows()
    frame = rows.frame()
    total = Pairgram.from_rows(frame, rows.y, qid=rows.qid)
    table = scan(frame.assign(y=rows.y, q=rows.qid), label="y", qid="q")
    model = RankRLS().fit(frame, rows.y, qid=rows.qid)
    np.testing.assert_allclose(RankRLS().fit(table).coef_, model.coef_, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(table), model.predict(frame))
    assert list(RankRLS.from_pairgram(total, 1.0).feature_names_in_) == ENTRIES
    left = total - Pairgram.from_rows(frame[:SIZE], rows.y[:SIZE], qid=rows.qid[:SIZE])
    fewer = RankRLS().fit(frame[SIZE:], rows.y[SIZE:], qid=rows.qid[SIZE:])
    np.testing.assert_allclose(left.solve(1.0), fewer.coef_, rtol=1e-9)
