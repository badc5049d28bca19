"""Tables of CSR blocks, and LETOR files with large indices."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from pairgram import (
    Pairgram,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    dump_letor,
    evaluate,
    scan,
)
from problems import BY_STEPS

N_ROWS = 600


def sparse_rows(n_features):
    rng = np.random.default_rng(5)
    X = sp.random_array(
        (N_ROWS, n_features), density=20 / n_features, random_state=rng, format="csr"
    )
    y = np.digitize(X @ rng.normal(size=n_features), [-0.5, 0, 0.5]).astype(float)
    return X, y, np.repeat(np.arange(50), 12), rng.uniform(0, 2, N_ROWS)


def table_of(*arrays, size=77):
    """Return the table of arrays in blocks that end within queries."""

    def batches():
        for begin in range(0, N_ROWS, size):
            yield tuple(array[begin : begin + size] for array in arrays)

    return scan(batches)


MODELS = (
    RankRLS(10.0),
    RankRLS(10.0, feature_map="maxabs", prior=np.ones(400)),
    RankRLSCV([1.0, 100.0]),
    RankRLSCV(
        [1.0, 100.0], cv=3, feature_map=[None, "maxabs"], pairs=["with_ties", "without_ties"]
    ),
    RankSVM(0.1),
    RankSVMCV([0.01, 0.1], cv=2),
)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("by_steps", [False, True], ids=["by the rule", "by steps"])
def test_a_table_of_csr_blocks_has_the_model_of_arrays(model, by_steps, set_limits):
    set_limits(**(BY_STEPS if by_steps else {}))
    X, y, qid, weight = sparse_rows(400)
    arrays = clone(model).fit(X, y, qid=qid, sample_weight=weight)
    table = table_of(X, y, qid, weight)
    of_table = clone(model).fit(table)
    for name in ("coef_", "scores_", "held_out_"):
        if hasattr(arrays, name):
            np.testing.assert_array_equal(getattr(of_table, name), getattr(arrays, name))
    np.testing.assert_array_equal(of_table.predict(table), arrays.predict(X))
    found = evaluate("ndcg@10", table, of_table)["ndcg@10"]
    np.testing.assert_allclose(
        found, evaluate("ndcg@10", y, arrays.predict(X), qid, sample_weight=weight)["ndcg@10"]
    )


@pytest.mark.parametrize("search", [RankRLSCV([1.0, 100.0]), RankSVMCV([0.01, 0.1])], ids=repr)
def test_rows_of_a_validation_table_count_by_their_weights(search):
    X, y, qid, weight = sparse_rows(400)
    weight = np.where(qid < 5, 100.0, 0.01)
    table, validation = table_of(X, y, qid), table_of(X, y, qid, weight)
    found = clone(search).fit(table, validation=validation)
    dense = table_of(X.toarray(), y, qid, weight)
    wanted = clone(search).fit(table_of(X.toarray(), y, qid), validation=dense)
    np.testing.assert_allclose(found.scores_, wanted.scores_, rtol=0, atol=1e-3)
    alone = clone(search).fit(X, y, qid=qid, validation=(X, y, qid))
    assert np.abs(found.scores_ - alone.scores_).max() > 1e-3


def test_rows_that_do_not_fit_in_memory_are_read_in_passes(free_memory):
    X, y, qid, weight = sparse_rows(30)
    whole = table_of(X, y, qid, weight)
    # 600 rows with 20 entries take 144 kB, and 30 features a Gram matrix of 7.7 kB.
    free_memory(120_000)
    table = table_of(X, y, qid, weight)
    assert table.in_memory() is None
    for model in (
        RankRLS(10.0),
        RankRLS(10.0, feature_map="maxabs"),
        RankRLSCV([1.0, 100.0]),
        RankSVM(0.1, tol=1e-9),
    ):
        found = clone(model).fit(table)
        wanted = clone(model).fit(X.toarray(), y, qid=qid, sample_weight=weight)
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-6, atol=1e-8)
    for inputs in ("standard", "quantile"):
        with pytest.raises(ValueError, match="zeros of a sparse matrix"):
            RankRLS(feature_map=inputs).fit(table)
    assert whole.survey().n_rows == N_ROWS


def test_rows_and_a_matrix_that_do_not_fit_in_memory(free_memory):
    X, y, qid, _ = sparse_rows(3000)
    free_memory(100_000)
    message = (
        r"Gram matrix of 3000 features, .* takes 0\.201 GiB, but 9\.31e-05 GiB are free: take "
        r"fewer features, or a machine with 0\.000\d+ GiB for the sparse rows.*RankSVM"
    )
    for model in (RankRLS(), RankRLSCV(cv=3)):
        with pytest.raises(MemoryError, match=message):
            model.fit(table_of(X, y, qid))


def test_statistics_of_csr_blocks():
    X, y, qid, weight = sparse_rows(30)
    found = Pairgram().update(table_of(X, y, qid, weight))
    wanted = Pairgram().update(X.toarray(), y, qid=qid, sample_weight=weight)
    np.testing.assert_allclose(found.G, wanted.G, rtol=1e-12, atol=1e-9)


def test_a_buffer_that_is_filled_again():
    X, y, qid, _ = sparse_rows(400)
    buffer = np.empty(X.nnz)

    def batches():
        for begin in range(0, N_ROWS, 150):
            part = X[begin : begin + 150]
            values = buffer[: part.nnz]
            values[:] = part.data
            block = sp.csr_array((values, part.indices, part.indptr), shape=part.shape)
            yield block, y[begin : begin + 150], qid[begin : begin + 150]
            values[:] = -1.0

    found = RankRLS(10.0).fit(scan(batches))
    np.testing.assert_array_equal(found.coef_, RankRLS(10.0).fit(X, y, qid=qid).coef_)


def test_letor_files_with_millions_of_indices(tmp_path):
    X, y, qid, _ = sparse_rows(400)
    columns = np.sort(np.random.default_rng(0).choice(5_000_000, 400, replace=False))
    wide = sp.csr_array((X.data, columns[X.indices], X.indptr), shape=(N_ROWS, 5_000_000))
    paths = [str(tmp_path / name) for name in ("train.txt", "valid.txt")]
    for path, rows in zip(paths, (slice(None), slice(0, 240)), strict=True):
        dump_letor(path, wide[rows], y[rows], qid=qid[rows])
    table, validation = map(scan, paths)
    search = RankRLSCV([1.0, 100.0]).fit(table, validation=validation)
    arrays = RankRLSCV([1.0, 100.0])
    arrays.fit(X, y, qid=qid, validation=(X[:240], y[:240], qid[:240]))
    np.testing.assert_allclose(search.scores_, arrays.scores_, rtol=0, atol=1e-9)
    known = columns[columns < search.n_features_in_]
    np.testing.assert_allclose(search.coef_[known], arrays.coef_[: len(known)], atol=1e-6)
    np.testing.assert_allclose(search.predict(validation), arrays.predict(X[:240]), atol=1e-6)
    assert evaluate("ndcg@10", validation, search)["ndcg@10"] > 0.9
