"""Kernels of some columns, their products and sums: values, models, files, parameters, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from pairgram import (
    Cross,
    Kernel,
    KernelMap,
    Nystroem,
    PairwiseELM,
    Preferences,
    Product,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    RankSVM,
    Sum,
    fit_many,
    kernel_matrix,
    load_model,
    scan,
)

BITS, NUMBERS = list(range(8)), list(range(8, 13))
NAMES = [f"bit {j}" for j in BITS] + [f"size {j}" for j in range(5)]


def tanimoto(A, B):
    products = A @ B.T
    sizes = (A**2).sum(1)[:, None] + (B**2).sum(1) - products
    return np.where(sizes == 0, 1.0, products / np.where(sizes == 0, 1.0, sizes))


def minmax(A, B):
    low = np.minimum(A[:, None], B).clip(0).sum(2) + np.minimum(-A[:, None], -B).clip(0).sum(2)
    high = np.maximum(A[:, None], B).clip(0).sum(2) + np.maximum(-A[:, None], -B).clip(0).sum(2)
    return np.where(high == 0, 1.0, low / np.where(high == 0, 1.0, high))


def rbf(A, B, gamma):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(2))


def laplacian(A, B, gamma):
    return np.exp(-gamma * np.abs(A[:, None] - B).sum(2))


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    bits = rng.random((n, 8)) < 0.4
    X = np.hstack([bits, rng.normal(size=(n, 5))])
    y = X[:, 0] * X[:, 8] + np.sin(X[:, 9]) + 0.1 * rng.normal(size=n)
    return X, y, np.repeat(np.arange(n // 10), 10)


KERNELS = {
    "product": Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS, gamma=0.3)),
    "product by default": Product(Kernel("minmax", BITS), Kernel("laplacian", slice(8, None))),
    "sum": Sum(
        Kernel("minmax", [0, 1, -1]),
        Kernel("linear", 9),
        Product(Kernel("laplacian", gamma=0.1), Kernel("polynomial", [9, 8], degree=2, coef0=0.5)),
        weights=[2.0, 0.5, 0.1],
    ),
    "columns": Kernel("rbf", [12, 3, 8]),
    "alone": Product(Kernel("linear", [10, 8])),
}


def reference(name, X, Z):
    """The kernels of `KERNELS`, by NumPy alone."""
    if name == "product":
        return tanimoto(X[:, :8], Z[:, :8]) * rbf(X[:, 8:], Z[:, 8:], 0.3)
    if name == "product by default":
        return minmax(X[:, :8], Z[:, :8]) * laplacian(X[:, 8:], Z[:, 8:], 1 / 5)
    if name == "sum":
        powers = (X[:, [8, 9]] @ Z[:, [8, 9]].T / 2 + 0.5) ** 2
        first = 2.0 * minmax(X[:, [0, 1, 12]], Z[:, [0, 1, 12]])
        return first + 0.5 * np.outer(X[:, 9], Z[:, 9]) + 0.1 * laplacian(X, Z, 0.1) * powers
    if name == "columns":
        return rbf(X[:, [12, 3, 8]], Z[:, [12, 3, 8]], 1 / 3)
    return X[:, [8, 10]] @ Z[:, [8, 10]].T


every = pytest.mark.parametrize("name", KERNELS)


@every
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "CSR"])
def test_the_matrix_is_that_of_numpy(name, make, set_limits):
    X, Z = rows()[0], rows(50, seed=1)[0]
    for tile in (7, 512):
        set_limits(tile=tile)
        found = kernel_matrix(make(X), make(Z), KERNELS[name])
        np.testing.assert_allclose(found, reference(name, X, Z), rtol=0, atol=1e-12)
        own = kernel_matrix(make(X), kernel=KERNELS[name], n_threads=2)
        np.testing.assert_allclose(own, reference(name, X, X), rtol=0, atol=1e-12)
        assert (own == own.T).all()


@every
def test_values_of_a_row_have_the_same_bits_wherever_it_stands(name):
    X, Z = rows()[0], rows(50, seed=1)[0]
    whole = kernel_matrix(X, Z, KERNELS[name])
    np.testing.assert_array_equal(kernel_matrix(X[17:19], Z, KERNELS[name]), whole[17:19])


@every
def test_all_landmarks_give_the_kernel(name):
    X, Z = rows()[0], rows(50, seed=1)[0].astype(np.float32)
    features = Nystroem(KERNELS[name], n_components=None, tol=0).fit(X)
    found = features.transform(X) @ features.transform(Z.astype(np.float64)).T
    wanted = reference(name, X, Z.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    features = Nystroem(KERNELS[name], n_components=10, random_state=0).fit(X)
    found, wide = features.transform(Z), features.transform(Z.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wide, rtol=0, atol=2e-5 * np.abs(wide).max())
    sparse = features.transform(scipy.sparse.csr_array(Z))
    np.testing.assert_array_equal(sparse, features.transform(Z))
    np.testing.assert_array_equal(features.transform(Z[3:4])[0], features.transform(Z)[3])


@every
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_compiled_values_are_those_of_the_matrix(name, data):
    n, m = data.draw(st.integers(1, 300)), data.draw(st.integers(2, 40))
    seed = data.draw(st.integers(0, 2**16))
    X, Z = (rows(-(-size // 10) * 10, seed + k)[0][:size] for k, size in enumerate((n, m)))
    model = RankRLS(kernel=KERNELS[name], scope="global").fit(Z, Z[:, 8] + np.arange(m))
    used = model.feature_map_.support_rows_
    wanted = reference(name, X, used) @ model.coef_
    scores = model.row_scorer()(X)
    size = np.abs(reference(name, X, used)) @ np.abs(model.coef_)
    assert (np.abs(scores - wanted) <= 1e-12 * size + 1e-300).all()
    np.testing.assert_allclose(model.predict(X), wanted, rtol=0, atol=1e-12 * size.max() + 1e-300)


@every
@pytest.mark.parametrize(
    "make",
    [
        RankRLS,
        lambda **kernel: RankRLSCV([0.1, 1.0, 10.0], **kernel),
        PairwiseELM,
    ],
    ids=["RankRLS", "RankRLSCV", "PairwiseELM"],
)
def test_a_fit_is_that_of_the_matrix(name, make):
    X, y, qid = rows()
    given = make(kernel="precomputed").fit(reference(name, X, X), y, qid=qid)
    parts = make(kernel=KERNELS[name]).fit(X, y, qid=qid)
    Z = rows(50, seed=1)[0]
    wanted = given.predict(reference(name, Z, X))
    np.testing.assert_allclose(parts.predict(Z), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    if hasattr(parts, "best_score_"):
        assert parts.best_score_ == pytest.approx(given.best_score_, abs=1e-10)


@every
def test_comparisons_and_the_kernel_of_a_callable(name):
    X, y, _ = rows()
    pairs = [(i, (7 * i + 3) % 120) for i in range(120)]
    better = np.array([(i, j) if y[i] > y[j] else (j, i) for i, j in pairs])
    answers = Preferences(better[:, 0], better[:, 1])
    parts = RankRLS(kernel=KERNELS[name]).fit(X, answers)
    called = RankRLS(kernel=lambda A, B: reference(name, A, B)).fit(X, answers)
    wanted = called.predict(X)
    np.testing.assert_allclose(parts.predict(X), wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_columns_have_names_in_frames_and_tables(tmp_path):
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=NAMES)
    kernel = Product(Kernel("tanimoto", NAMES[:8]), Kernel("rbf", NAMES[8:]))
    numbers = Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS))
    named = RankRLS(kernel=kernel, gamma=0.2).fit(frame, y, qid=qid)
    plain = RankRLS(kernel=numbers, gamma=0.2).fit(X, y, qid=qid)
    np.testing.assert_array_equal(named.predict(frame), plain.predict(X))
    np.testing.assert_array_equal(
        kernel_matrix(frame, kernel=kernel), kernel_matrix(X, kernel=numbers)
    )
    kept = named.feature_map_.kernel_
    assert [leaf.columns for leaf in kept.kernels] == [BITS, NUMBERS]
    assert [leaf.gamma for leaf in kept.kernels] == [0.2, 0.2]

    table = scan(frame.assign(y=y, q=qid), label="y", qid="q")
    for model in (RankRLS, RankSVM):
        landmarks = Nystroem(kernel, n_components=20, random_state=0)
        fitted = model(feature_map=landmarks).fit(table)
        K = kernel_matrix(X, fitted.feature_map_.components_, numbers)
        wanted = K @ fitted.feature_map_.whitening_ @ fitted.coef_
        np.testing.assert_allclose(fitted.predict(frame), wanted, atol=1e-9)


def test_columns_are_those_of_the_inputs():
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=NAMES)
    scale = np.abs(X).max(0)
    kernel = Product(Kernel("tanimoto", NAMES[:8]), Kernel("rbf", NAMES[8:]))
    found = RankRLS(kernel=kernel, inputs="maxabs").fit(frame, y, qid=qid).predict(frame)
    numbers = Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS))
    wanted = RankRLS(kernel=numbers).fit(X / scale, y, qid=qid)
    np.testing.assert_allclose(found, wanted.predict(X / scale), atol=1e-10)
    both = Kernel("rbf", ["size 0", "quantile of size 0"])
    for rows_of in (frame, frame.astype(np.float32)):
        model = RankRLS(kernel=both, inputs="raw+quantile").fit(rows_of, y, qid=qid)
        assert model.feature_map_.kernel_.columns == [8, 21]


@every
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "CSR"])
def test_a_file_holds_the_parts(name, make, tmp_path):
    X, y, qid = rows()
    path = tmp_path / "model.safetensors"
    for model in (
        RankRLS(kernel=KERNELS[name], gamma=0.2),
        RankRLSCV([0.1, 1.0], kernel=KERNELS[name]),
        RankRLS(feature_map=KernelMap(KERNELS[name])),
        RankSVM(feature_map=Nystroem(KERNELS[name], n_components=30, random_state=0)),
    ):
        model.fit(make(X), y, qid=qid).save(path)
        loaded = load_model(path)
        np.testing.assert_array_equal(loaded.predict(make(X)), model.predict(make(X)))
        assert loaded.feature_map_.kernel_ == model.feature_map_.kernel_
        given, found = ((one.feature_map or one).kernel for one in (model, loaded))
        assert found.get_params().keys() == given.get_params().keys()
        again = clone(loaded).fit(make(X), y, qid=qid)
        assert again.feature_map_.kernel_ == model.feature_map_.kernel_


def test_a_file_holds_names_and_a_slice(tmp_path):
    X, y, qid = rows()
    kernel = Sum(Kernel("tanimoto", NAMES[:8]), Kernel("rbf", slice(8, None)), weights=[1, 2])
    frame = pd.DataFrame(X, columns=NAMES)
    path = tmp_path / "model.safetensors"
    RankRLS(kernel=kernel).fit(frame, y, qid=qid).save(path)
    found = load_model(path).kernel
    assert found == kernel and repr(found) == repr(kernel).replace("[1, 2]", "[1.0, 2.0]")


def test_arrays_and_scalars_of_numpy_are_columns_and_parameters(tmp_path):
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=NAMES)
    kernel = Sum(
        Kernel("rbf", frame.columns[8:], gamma=np.float64(0.5)),
        Kernel("polynomial", np.array([9, 10]), degree=np.int64(2), coef0=np.float64(1)),
        Kernel("linear", np.int64(-1)),
        weights=np.array([1, 2, 3], np.float32),
    )
    model = RankRLS(kernel=kernel).fit(frame, y, qid=qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.feature_map_.kernel_ == model.feature_map_.kernel_
    np.testing.assert_array_equal(clone(loaded).fit(frame, y, qid=qid).coef_, model.coef_)


def test_frames_have_columns_in_one_order():
    frame = pd.DataFrame(rows(20)[0], columns=NAMES)
    with pytest.raises(ValueError, match=r"Z must have the columns of X, .*, got \['size 4'"):
        kernel_matrix(frame, frame[NAMES[::-1]], Kernel("rbf", "size 1"))
    found = kernel_matrix(frame, frame.to_numpy(), Kernel("rbf", "size 1"))
    np.testing.assert_allclose(found, kernel_matrix(frame, frame, Kernel("rbf", 9)), atol=1e-15)


@pytest.mark.parametrize("gammas", [[0.01, 0.1, 1.0], np.array([0.1, 1.0])])
def test_a_search_chooses_the_gamma_of_parts_without_their_own(gammas):
    X, y, qid = rows()
    kernel = Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS))
    search = RankRLSCV([0.1, 1.0], kernel=kernel, gamma=gammas, cv=QueryKFold(3))
    search.fit(X, y, qid=qid)
    assert search.gamma_ in list(gammas)
    assert search.feature_map_.kernel_.kernels[1].gamma == search.gamma_
    best = {}
    for gamma in gammas:
        own = Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS, gamma=float(gamma)))
        fixed = RankRLSCV([0.1, 1.0], kernel=own, cv=QueryKFold(3)).fit(X, y, qid=qid)
        best[float(gamma)] = fixed.best_score_
    assert best[search.gamma_] == pytest.approx(search.best_score_)
    assert search.best_score_ == pytest.approx(max(best.values()))
    with pytest.raises(ValueError, match="no gamma to choose"):
        RankRLSCV(kernel=KERNELS["product"], gamma=gammas).fit(X, y, qid=qid)


def test_parameters_are_nested():
    kernel = Product(Kernel("tanimoto", BITS), Sum(Kernel("rbf"), Kernel("linear")))
    model = RankRLS(kernel=kernel)
    assert model.get_params()["kernel__1__0__name"] == "rbf"
    other = clone(model).set_params(kernel__1__0__gamma=0.5, kernel__1__weights=[1.0, 3.0])
    assert other.kernel == Product(
        Kernel("tanimoto", BITS),
        Sum(Kernel("rbf", gamma=0.5), Kernel("linear"), weights=[1.0, 3.0]),
    )
    assert kernel.kernels[1].kernels[0].gamma is None and kernel.kernels[1].weights is None
    assert other.set_params(kernel__0=Kernel("minmax")).kernel.kernels[0] == Kernel("minmax")
    other.set_params(kernel__1__0__gamma=0.2, kernel__1=Sum(Kernel("laplacian")))
    assert other.kernel.kernels[1] == Sum(Kernel("laplacian", gamma=0.2))
    assert pickle.loads(pickle.dumps(other.kernel)) == other.kernel
    assert kernel != other.kernel and kernel != "rbf" and Sum(Kernel("rbf")) != Kernel("rbf")
    with pytest.raises(ValueError, match="Product has no parameter '2__gamma', but 0, 1"):
        model.set_params(kernel__2__gamma=1.0)
    with pytest.raises(ValueError, match="Kernel has no parameter 'gamma__x'"):
        model.set_params(kernel__0__gamma__x=1.0)


def test_a_grid_of_scikit_learn_tries_parts():
    X, y, qid = rows()
    grid = {"kernel__1__gamma": [0.01, 0.5], "alpha": [1.0]}
    kernel = Product(Kernel("tanimoto", BITS), Kernel("rbf", NUMBERS))
    splits = list(QueryKFold(3).split(X, y, qid))
    model = RankRLS(kernel=kernel, scope="global")
    search = GridSearchCV(model, grid, cv=splits, scoring="r2").fit(X, y)
    assert search.best_params_["kernel__1__gamma"] in (0.01, 0.5)
    assert search.best_estimator_.feature_map_.kernel_.kernels[1].gamma in (0.01, 0.5)


def test_a_repr_is_short():
    kernel = Product(Kernel("tanimoto", list(range(2048))), Kernel("rbf", gamma=0.5))
    assert repr(kernel) == (
        "Product(Kernel('tanimoto', columns=[0, 1, 2, 3, 4, 5, ...]), Kernel('rbf', gamma=0.5))"
    )
    assert "Product(Kernel('tanimoto'" in repr(RankRLS(kernel=kernel))


def test_a_kernel_of_all_columns_is_its_name(tmp_path):
    X, y, qid = rows()
    for name in ("rbf", "linear", "minmax"):
        bare = RankRLS(kernel=name, gamma=0.1).fit(X, y, qid=qid)
        given = RankRLS(kernel=Kernel(name), gamma=0.1).fit(X, y, qid=qid)
        np.testing.assert_array_equal(bare.coef_, given.coef_)
        assert bare.form_ == given.form_


def test_other_places_that_take_kernels(tmp_path):
    X, y, qid = rows()
    kernel = KERNELS["product"]
    side = Nystroem(Product(Kernel("rbf", [0, 1]), Kernel("linear", [2])), n_components=5)
    cross = Cross(list(range(8)), [8, 9, 10], right_map=side)
    assert RankRLS(feature_map=cross).fit(X, y, qid=qid).predict(X).shape == (120,)
    problems = [(X[:60], y[:60], qid[:60]), (X[60:], y[60:], qid[60:])]
    models = fit_many(RankRLS(kernel=kernel), problems)
    alone = RankRLS(kernel=kernel).fit(*problems[1][:2], qid=problems[1][2])
    np.testing.assert_array_equal(models.model_of(1).predict(X), alone.predict(X))
    small = RankRLS(kernel=kernel).fit(X, y, qid=qid).compress(120)
    np.testing.assert_allclose(
        small.predict(X), RankRLS(kernel=kernel).fit(X, y, qid=qid).predict(X), atol=1e-6
    )


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Kernel("rbf", 13), r"columns of the rbf kernel must name columns of X.*got 13"),
        (Kernel("rbf", "size 9"), r"columns of the rbf kernel must .* got 'size 9'; X has 'bit"),
        (Kernel("rbf", []), "columns of the rbf kernel must name a column or more, got none"),
        (Kernel("rbf", slice(5, 5)), "columns of the rbf kernel must name a column or more"),
        (Kernel("rbf", [3, "bit 3"]), "must name a column once, got 'bit 3' twice"),
        (Kernel("rbff"), "name of a Kernel must be one of 'rbf'.*got 'rbff'"),
        (Kernel("precomputed"), "name of a Kernel must be one of 'rbf'"),
        ("rbff", "kernel must be one of 'rbf', .*, a Kernel, Product or Sum, or a callable; got"),
        (Product(Kernel("rbff")), "name of a Kernel must be one of 'rbf'.*got 'rbff'"),
        (Product(Kernel("precomputed")), "name of a Kernel must be one of"),
        (Kernel(minmax, [0]), "name of a Kernel must be one of"),
        (Product("rbf"), r"kernels of a Product must each be .* got 'rbf': give Kernel\('rbf'\)"),
        (Sum(), "kernels of a Sum must be one or more, got none"),
        (Sum(Kernel("rbf"), weights=[1, 2]), "weights of a Sum must be a finite number > 0 for ea"),
        (Sum(Kernel("rbf"), weights=[0.0]), "weights of a Sum must be a finite number > 0"),
        (Sum(Kernel("rbf"), weights=3), "weights of a Sum must be a finite number > 0"),
        (Product(Kernel("rbf", gamma=-1.0)), "gamma must be None or a finite number > 0, got -1"),
        (Product(Kernel("polynomial", degree=0)), "degree must be an integer from 1"),
    ],
)
@pytest.mark.parametrize(
    "fit",
    [
        lambda kernel, X: kernel_matrix(X, kernel=kernel),
        lambda kernel, X: KernelMap(kernel).fit(X),
        lambda kernel, X: Nystroem(kernel, n_components=5).fit(X),
        lambda kernel, X: RankRLS(kernel=kernel).fit(X, np.arange(40), qid=[1] * 40),
        lambda kernel, X: RankSVM(feature_map=Nystroem(kernel, n_components=5)).fit(
            X, np.arange(40), qid=[1] * 40
        ),
    ],
    ids=["kernel_matrix", "KernelMap", "Nystroem", "RankRLS", "RankSVM"],
)
def test_what_is_wrong_is_named(kernel, message, fit):
    with pytest.raises(ValueError, match=message):
        fit(kernel, pd.DataFrame(rows(40)[0], columns=NAMES))


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="got 'bit 1'; X has no names: give numbers"):
        RankRLS(kernel=Kernel("rbf", "bit 1")).fit(rows(40)[0], np.arange(40), qid=[1] * 40)


def test_values_too_large_name_the_kernel():
    kernel = Product(Kernel("rbf", [0]), Kernel("polynomial", [8], degree=300, gamma=1e30))
    with pytest.raises(ValueError, match="the Product kernel of rows 0 and 0 is inf"):
        kernel_matrix(np.full((3, 13), 5.0), kernel=kernel)


def test_warnings_name_the_columns_of_a_part():
    X, y, qid = rows()
    X[:, 9:12] *= 1e4
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.warns(UserWarning, match="the rbf kernel will hardly see 2 of 5.*'size 2'"):
        RankRLS(kernel=Kernel("rbf", NAMES[8:])).fit(frame, y, qid=qid)
    packed = np.random.default_rng(0).integers(0, 256, (60, 20)).astype(float)
    with pytest.warns(UserWarning, match="looks like packed bits"):
        kernel_matrix(packed, kernel=Product(Kernel("tanimoto", slice(10)), Kernel("linear", [11])))
