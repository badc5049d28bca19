"""Numbers that come in: what is sound passes, and errors of others survive a pickle."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import FunctionTransformer

import pairgram as pg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60).astype(float)
QID = np.arange(60) // 6
MODEL = pg.RankRLS().fit(X, Y, qid=QID)


def test_masked_arrays_without_a_masked_entry_pass():
    plain = np.ma.array(X, mask=False)
    np.testing.assert_array_equal(pg.RankRLS().fit(plain, Y, qid=QID).coef_, MODEL.coef_)


def test_arrow_tables_keep_their_column_names():
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    frame = table.to_pandas()
    batch = table.to_batches()[0]
    for rows in (table, batch):
        for model in (
            pg.RankRLS(),
            pg.RankRLS(feature_map=pg.Kernel("rbf")),
            pg.ELMRank(n_nodes=3),
        ):
            fitted = model.fit(rows, Y)
            assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
            for other in (table, frame, batch):
                assert fitted.predict(other).shape == (60,)
        total = pg.Pairgram.from_rows(rows, Y, qid=QID)
        assert total.feature_names_in_ == ["a", "b", "c"]
        total.update(frame, Y, qid=QID + 10)
        model = pg.RankRLS.from_pairgram(total)
        assert model.predict(table).shape == (60,)


def test_objects_of_numbers_are_numbers_of_a_feature_map():
    objects = FunctionTransformer(lambda rows: rows.astype(object))
    model = pg.RankRLS(feature_map=objects).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, MODEL.coef_, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["pairwise_absolute_error", "pairwise_squared_error", "pearson", "ranking_error"]
)
def test_large_values_whose_sums_do_not_overflow(name):
    large = 1e151 if name == "pairwise_squared_error" else 1e303
    assert np.isfinite(pg.evaluate(name, [large, -large] * 50, [-large, large] * 50)[name])


@pytest.mark.parametrize("unit", [1e308, 1e-300])
def test_means_of_metrics_heed_ratios_of_weights_alone(unit):
    y, score, qid = [2, 1, 0, 0, 1, 2], [1, 2, 3, 1, 2, 3], [1, 1, 1, 2, 2, 2]
    weights = np.array([1, 1, 1, 0.5, 0.5, 0.5])
    expected = pg.evaluate("map", y, score, qid, sample_weight=weights)
    assert pg.evaluate("map", y, score, qid, sample_weight=unit * weights) == expected


def test_results_of_callables_are_looked_at_too():
    with pytest.raises(ValueError, match=r"what pairs=.* gives"):
        pg.RankRLS(pairs=lambda a, b: 1j * abs(a - b)).fit(X, Y)


def test_an_error_is_the_same_after_a_pickle():
    wrong = X.copy()
    wrong[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7, column 2") as found:
        pg.RankRLS().fit(wrong, Y, qid=QID)
    error = found.value
    error.add_note("a note")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert copy.__notes__[-1] == "a note" and copy.args == error.args
