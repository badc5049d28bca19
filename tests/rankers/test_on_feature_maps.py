"""RankSVM on feature maps: the exact kernel, memory, parameters, files, published results."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import pairgram as pg
import reference_svm

DATA = X, y, qid = pg.make_ranking(30, (1, 12), 5, random_state=0)


def kernel_scores(K, A, W, C):
    """Scores of the kernel RankSVM, by L-BFGS on explicit pairs and the root of K."""
    values, vectors = np.linalg.eigh(K)
    H = vectors * np.sqrt(np.maximum(values, 0))
    result = scipy.optimize.minimize(
        reference_svm.objective,
        np.zeros(len(K)),
        (H, A, W, C),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return H @ result.x


@pytest.mark.parametrize(
    ("named", "kernel"),
    [
        ({"gamma": 2.0}, lambda X: rbf_kernel(X, gamma=2.0)),
        (
            {"kernel": "laplacian", "gamma": 1.0},
            lambda X: laplacian_kernel(X, gamma=1.0),
        ),
        (
            {"kernel": "polynomial", "gamma": 0.5, "degree": 2},
            lambda X: polynomial_kernel(X, gamma=0.5, degree=2, coef0=1.0),
        ),
    ],
    ids=["rbf", "laplacian", "polynomial"],
)
def test_all_rows_as_landmarks_are_the_exact_kernel(named, kernel):
    X, y, qid = DATA
    A, W = reference_svm.preference_pairs(y, qid)
    feature_map = pg.Nystroem(n_components=None, landmarks="kmeans", **named, tol=0.0)
    model = pg.RankSVM(0.5, feature_map=feature_map, tol=1e-9).fit(
        X, y, qid=qid
    )  # which all rows are stronger than
    np.testing.assert_array_equal(model.feature_map_.component_indices_, np.arange(len(y)))
    expected = kernel_scores(kernel(X), A, W, 0.5)
    scores = model.predict(X)
    differences, others = A @ scores, A @ expected
    np.testing.assert_allclose(differences, others, atol=1e-4 * np.abs(others).max())
    few = pg.RankSVM(
        0.5, feature_map=pg.Nystroem(n_components=5, **named, random_state=0), tol=1e-9
    )
    few.fit(X, y, qid=qid)
    assert np.abs(A @ few.predict(X) - others).max() > 0.01 * np.abs(others).max()


def test_too_many_landmarks_are_refused_with_the_memory_that_they_take(free_memory):
    needed = 48 * len(y) ** 2
    free_memory(needed)
    pg.RankSVM(feature_map=pg.Nystroem(n_components=None)).fit(X, y, qid=qid)
    free_memory(needed - 1)
    message = f"n_components: the kernel of {len(y)} landmarks, with its eigenvectors, takes"
    for n_components in (None, len(y)):
        with pytest.raises(MemoryError, match=message):
            pg.RankSVM(feature_map=pg.Nystroem(n_components=n_components)).fit(X, y, qid=qid)
    pg.RankSVM(feature_map=pg.Nystroem(n_components=len(y) - 1)).fit(X, y, qid=qid)


def test_a_search_over_gamma_gives_what_a_fit_of_the_choice_gives():
    maps = [pg.Nystroem(gamma=g, n_components=20, random_state=0) for g in (0.1, 1.0)]
    search = pg.RankSVMCV([0.1, 1.0], feature_map=maps, cv=3).fit(X, y, qid=qid)
    chosen = pg.Nystroem(gamma=search.feature_map_.gamma_, n_components=20, random_state=0)
    model = pg.RankSVM(search.C_, feature_map=chosen).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, search.coef_)


@pytest.mark.parametrize(
    ("kind", "maps", "tolerance"),
    [
        (pg.Nystroem, (0.4579, 0.4497, 0.4473), 0.002),  # training, validation, test
        (pg.RandomFourier, (None, None, 0.4472), 0.003),
    ],
)
def test_map_on_ohsumed_is_that_of_chen_et_al(benchmark_data, kind, maps, tolerance):
    metric = pg.get_metric("map", "letor")
    values = []
    for fold in pg.load_letor_folds(benchmark_data / "OHSUMED"):
        feature_map = kind(n_components=500, gamma=2**-6, random_state=0)
        model = pg.RankSVM(2**-7, feature_map=feature_map)
        model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        parts = (fold.train, fold.valid, fold.test)
        values.append([metric(rows.y, model.predict(rows.X), rows.qid) for rows in parts])
    for value, expected in zip(np.mean(values, axis=0), maps, strict=True):
        assert expected is None or abs(value - expected) <= tolerance
