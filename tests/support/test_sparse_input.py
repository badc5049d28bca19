"""Sparse matrices of callers: broken ones are refused before anything reads them."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import pairgram as pg
from axes import every
from broken_sparse import broken, doors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 5))
Y = RNG.integers(0, 3, 24).astype(float)
QID = np.arange(24) // 6
DOORS = doors(X, Y, QID)


@every(door=DOORS)
def test_every_door_refuses_broken_matrices(door):
    rng = np.random.default_rng(len(door))
    for _ in range(40):
        matrix, what = broken(X, rng)
        with pytest.raises(ValueError, match=r"must have|must be|cannot be cut") as error:
            DOORS[door](matrix)
        assert re.match(r"[XZ]\b", str(error.value)), (what, error.value)


@pytest.mark.parametrize(
    ("form", "part", "value"),
    [
        ("csr", "indptr", np.array([0, 9, 0], np.int32)),  # of which SciPy sees no entries
        ("csr", "data", np.ones((2, 1))),
        ("csr", "indices", np.zeros((1, 2), np.int32)),
        ("bsr", "data", np.ones((2, 2, 2))),
        ("bsr", "data", np.ones((2, 0, 1))),
        ("bsr", "data", np.ones(2)),
        ("coo", "data", np.ones((2, 1))),
        ("lil", "rows", np.array([[0]], object)),
        ("lil", "data", np.array([[1.0, 2.0], []], object)),
    ],
)
def test_other_broken_matrices(form, part, value):
    matrix = sp.coo_array(np.eye(2, 3)).asformat(form)
    setattr(matrix, part, value)
    with pytest.raises(ValueError, match=f"X must be .*in {form.upper()}"):
        pg.kernel_matrix(matrix)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sound_matrices_of_every_format_pass(dtype):
    dense = np.where(RNG.random(X.shape) < 0.4, X, 0)
    expected = pg.RankRLS().fit(dense, Y, qid=QID).coef_
    csr = sp.csr_array(dense)
    csr.indices, csr.indptr = csr.indices.astype(dtype), csr.indptr.astype(dtype)
    unsorted = csr[:, ::-1][:, ::-1]
    slack = csr.copy()
    slack.data, slack.indices = np.append(csr.data, 1.0), np.append(csr.indices, 0).astype(dtype)
    mixed = csr.copy()
    mixed.indices = mixed.indices.astype(np.int64)
    small = csr.copy()
    small.indices = small.indices.astype(np.uint8)
    dia = sp.dia_array((np.ones((3, 5)), [0, -2, 99]), shape=(24, 5))
    formats = [csr.tocsc(), csr.tocoo(), csr.tolil(), csr.todok(), csr.tobsr((2, 5))]
    for matrix in [csr, unsorted, slack, mixed, small, sp.csr_matrix(csr), *formats]:
        np.testing.assert_allclose(pg.RankRLS().fit(matrix, Y, qid=QID).coef_, expected, rtol=1e-9)
    products = dia.toarray() @ dia.toarray().T
    np.testing.assert_array_equal(pg.kernel_matrix(dia, kernel="linear"), products)
