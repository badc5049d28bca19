"""The training rows and the columns that the scores of kernel models are made of."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from pairgram import (
    Kernel,
    Nystroem,
    Product,
    RankRLS,
    RankRLSCV,
    RankSVM,
    Sum,
    column_effects,
    kernel_matrix,
    make_ranking,
    neighbours,
)


def affine(A, B):
    K = A @ B.T
    return (K.toarray() if scipy.sparse.issparse(K) else K) + 1


PARTS = [Kernel("tanimoto", slice(6)), Kernel("rbf", slice(6, None), gamma=0.5)]
KERNELS = {
    "rbf": "rbf",
    "product": Product(*PARTS),
    "sum": Sum(*PARTS, weights=[2.0, 0.5]),
    "columns": PARTS[1],
    "callable": affine,
}


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.random((n, 6)) < 0.5, rng.normal(size=(n, 3))])
    return X, X[:, 0] * X[:, 6] + rng.normal(size=n), np.repeat(np.arange(n // 10), 10)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "CSR"])
def test_shares_add_up_to_the_score(name, make):
    X, y, qid = rows()
    Z = rows(600, seed=1)[0]
    model = RankRLS(kernel=KERNELS[name]).fit(make(X), y, qid=qid)
    found = neighbours(model, make(Z), k=4)
    scores = model.predict(make(Z))
    np.testing.assert_allclose(found["share"].sum(axis=1) + found["rest"], scores, atol=1e-9)
    K = kernel_matrix(Z, X, KERNELS[name])
    shares = K[:, model.feature_map_.support_] * model.coef_
    largest = np.sort(-np.abs(shares), axis=1)[:, :4]
    np.testing.assert_allclose(-np.abs(found["share"]), largest, atol=1e-9)
    own = np.take_along_axis(K, found["row"], axis=1)
    np.testing.assert_allclose(found["similarity"], own, atol=1e-12)
    parts = found["parts"]
    if name == "product":
        np.testing.assert_allclose(parts.prod(axis=2), own, atol=1e-12)
    else:
        np.testing.assert_allclose(parts.sum(axis=2), own, atol=1e-12)
    if name in ("product", "sum"):
        factors = [1.0, 1.0] if name == "product" else [2.0, 0.5]
        for number, (part, factor) in enumerate(zip(PARTS, factors, strict=True)):
            values = np.take_along_axis(factor * kernel_matrix(Z, X, part), found["row"], axis=1)
            np.testing.assert_allclose(parts[:, :, number], values, atol=1e-12)


def test_other_models_with_rows():
    X, y, qid = rows()
    weight = np.where(np.arange(80) % 4 == 0, 0.0, 1.0)
    K = kernel_matrix(X, kernel="rbf")
    given = RankRLS(kernel="precomputed").fit(K, y, qid=qid)
    named = RankRLS(kernel="rbf").fit(X, y, qid=qid)
    np.testing.assert_array_equal(neighbours(given, K)["row"], neighbours(named, X)["row"])
    some = RankRLSCV([0.1, 1.0], kernel="rbf").fit(X, y, qid=qid, sample_weight=weight)
    assert (neighbours(some, X)["row"] % 4 > 0).all()
    for landmarks in ("uniform", "kmeans"):
        feature_map = Nystroem(KERNELS["sum"], n_components=9, landmarks=landmarks, random_state=0)
        svm = RankSVM(feature_map=feature_map, inputs="maxabs").fit(X, y, qid=qid)
        found = neighbours(svm, X, k=20)
        assert found["row"].shape == (80, 9)
        np.testing.assert_allclose(found["share"].sum(axis=1), svm.predict(X), atol=1e-6)
        assert ((found["row"] == -1) == (landmarks == "kmeans")).all()


@pytest.mark.parametrize("name", KERNELS)
def test_effects_are_what_a_row_without_the_column_loses(name):
    X, y, qid = rows()
    model = RankRLS(kernel=KERNELS[name]).fit(X, y, qid=qid)
    found = column_effects(model, X[:7])
    for column in range(X.shape[1]):
        without = X[:7].copy()
        without[:, column] = 0
        wanted = model.predict(X[:7]) - model.predict(without)
        np.testing.assert_allclose(found[:, column], wanted, atol=1e-10)
    assert (found[X[:7] == 0] == 0).all()


def test_effects_of_linear_models_are_their_contributions():
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(9)])
    model = RankRLS().fit(frame, y, qid=qid)
    np.testing.assert_allclose(column_effects(model, frame), X * model.coef_, atol=1e-12)
    model = RankRLS(kernel=Sum(Kernel("linear", [0, 7]), Kernel("linear", [7]), weights=[1, 2]))
    model.fit(scipy.sparse.csr_array(X), y, qid=qid)
    found = column_effects(model, scipy.sparse.csr_array(X))
    weights = X.T @ model.coef_ * np.array([1, 0, 0, 0, 0, 0, 0, 3, 0])
    np.testing.assert_allclose(found, X * weights, atol=1e-10)


def test_what_is_refused():
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    with pytest.raises(ValueError, match="model must have a kernel or a Nystroem map, got one wit"):
        neighbours(RankRLS().fit(X, y, qid=qid), X)
    model = RankRLS(kernel="rbf").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        neighbours(model, X, k=0)
    with pytest.raises(ValueError, match="X has 3 features"):
        neighbours(model, X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        column_effects(model, np.full((1, 4), np.nan))
    lists = RankRLS(inputs="rank").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="model must score rows alone"):
        column_effects(lists, X)


def test_the_most_similar_rows_are_told_where_a_small_ridge_hides_them():
    """Shares of alike rows cancel there, and are larger than that of the row itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = RankRLS(1e-9, kernel="rbf", scope="global").fit(X, rng.normal(size=60))
    own = np.arange(60)
    assert (neighbours(model, X, 1)["row"][:, 0] != own).mean() > 0.5
    found = neighbours(model, X, 3, by="similarity")
    np.testing.assert_array_equal(found["row"][:, 0], own)
    np.testing.assert_allclose(found["similarity"][:, 0], 1.0)
    assert (np.diff(found["similarity"], axis=1) <= 0).all()
    total = found["share"].sum(axis=1) + found["rest"]
    wanted = model.predict(X)
    size = np.abs(model.coef_).sum()  # of what cancels
    np.testing.assert_allclose(total - total.mean(), wanted - wanted.mean(), atol=1e-12 * size)
    with pytest.raises(ValueError, match="by must be one of 'share', 'similarity'"):
        neighbours(model, X, by="distance")
