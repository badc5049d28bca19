"""RankSVM's presets: what they stand for, the exact kernel, files."""

import pickle

import numpy as np
import pytest
import scipy.optimize
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import reference_svm
from pairgram import (
    Nystroem,
    RandomFourier,
    RankNystroem,
    RankRandomFourier,
    RankSVM,
    RankSVMCV,
    get_metric,
    load_letor_folds,
    load_model,
    make_ranking,
)
from pairgram._support import memory


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, (1, 12), 5, random_state=0)


SOLVER = {
    "loss": "squared",
    "weighting": "queries",
    "tol": 1e-6,
    "max_iter": 7,
    "memory_limit": 0,
    "n_threads": 1,
}
NYSTROEM = {"kernel": "polynomial", "gamma": 0.3, "degree": 2, "coef0": 0.5, "landmarks": "kmeans"}
FOURIER = {"kernel": "rbf", "gamma": 0.3, "orthogonal": True}


@pytest.mark.parametrize(
    ("preset", "feature_map"),
    [
        (RankNystroem(random_state=0), Nystroem(n_components=500, random_state=0)),
        (
            RankNystroem(0.1, n_components=9, **NYSTROEM, eigenvalue_tol=0.1, random_state=3),
            Nystroem(n_components=9, **NYSTROEM, tol=0.1, random_state=3),
        ),
        (RankRandomFourier(random_state=0), RandomFourier(500, random_state=0)),
        (
            RankRandomFourier(0.1, n_components=9, **FOURIER, random_state=3),
            RandomFourier(9, **FOURIER, random_state=3),
        ),
    ],
    ids=["nystroem", "nystroem, all said", "fourier", "fourier, all said"],
)
@pytest.mark.parametrize("solver", [{}, SOLVER], ids=["default", "all said"])
def test_a_preset_is_rank_svm_on_its_map(data, tmp_path, preset, feature_map, solver):
    X, y, qid = data
    model = clone(preset).set_params(**solver).fit(X, y, qid=qid)
    plain = RankSVM(preset.C, feature_map=feature_map, **solver).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert type(model.feature_map_) is type(feature_map)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is RankSVM
    for name, value in solver.items():
        assert getattr(loaded, name) == value
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    refitted = loaded.fit(X, y, qid=qid)  # with the map's own settings
    np.testing.assert_array_equal(refitted.coef_, model.coef_)


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
        ({"kernel": "laplacian", "gamma": 1.0}, lambda X: laplacian_kernel(X, gamma=1.0)),
        (
            {"kernel": "polynomial", "gamma": 0.5, "degree": 2},
            lambda X: polynomial_kernel(X, gamma=0.5, degree=2, coef0=1.0),
        ),
    ],
    ids=["rbf", "laplacian", "polynomial"],
)
def test_all_rows_as_landmarks_are_the_exact_kernel(data, named, kernel):
    X, y, qid = data
    A, W = reference_svm.preference_pairs(y, qid)
    model = RankNystroem(0.5, n_components=None, **named, eigenvalue_tol=0.0, tol=1e-9)
    model.set_params(landmarks="kmeans").fit(X, y, qid=qid)  # which all rows are stronger than
    np.testing.assert_array_equal(model.feature_map_.component_indices_, np.arange(len(y)))
    expected = kernel_scores(kernel(X), A, W, 0.5)
    scores = model.predict(X)
    differences, others = A @ scores, A @ expected
    np.testing.assert_allclose(differences, others, atol=1e-4 * np.abs(others).max())
    few = RankNystroem(0.5, n_components=5, **named, random_state=0, tol=1e-9).fit(X, y, qid=qid)
    assert np.abs(A @ few.predict(X) - others).max() > 0.01 * np.abs(others).max()


def test_too_many_landmarks_are_refused_with_the_memory_that_they_take(data, monkeypatch):
    X, y, qid = data
    needed = 48 * len(y) ** 2
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    RankNystroem(n_components=None).fit(X, y, qid=qid)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    message = f"n_components: the kernel of {len(y)} landmarks, with its eigenvectors, takes"
    for n_components in (None, len(y)):
        with pytest.raises(MemoryError, match=message):
            RankNystroem(n_components=n_components).fit(X, y, qid=qid)
    RankNystroem(n_components=len(y) - 1).fit(X, y, qid=qid)


def test_wrong_parameters_are_named(data):
    X, y, qid = data
    for model, name in (
        (RankNystroem(n_components=0), "n_components"),
        (RankNystroem(kernel="cauchy"), "kernel"),
        (RankNystroem(landmarks="all"), "landmarks"),
        (RankNystroem(C=-1), "C"),
        (RankRandomFourier(n_components=None), "n_components"),
        (RankRandomFourier(kernel="polynomial"), "kernel"),
        (RankRandomFourier(gamma=0), "gamma"),
    ):
        with pytest.raises(ValueError, match=name):
            model.fit(X, y, qid=qid)


def test_a_callable_kernel_cannot_be_saved(data, tmp_path):
    X, y, qid = data
    model = RankNystroem(kernel=rbf_kernel, n_components=10, random_state=0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="kernel is a Python callable"):
        model.save(tmp_path / "model")


def test_a_search_over_gamma_gives_what_the_preset_gives(data):
    X, y, qid = data
    maps = [Nystroem(gamma=g, n_components=20, random_state=0) for g in (0.1, 1.0)]
    search = RankSVMCV([0.1, 1.0], feature_map=maps, cv=3).fit(X, y, qid=qid)
    preset = RankNystroem(
        search.C_, n_components=20, gamma=search.feature_map_.gamma_, random_state=0
    )
    np.testing.assert_array_equal(preset.fit(X, y, qid=qid).coef_, search.coef_)


@pytest.mark.parametrize(
    ("kind", "maps", "tolerance"),
    [
        (RankNystroem, (0.4579, 0.4497, 0.4473), 0.002),  # training, validation, test
        (RankRandomFourier, (None, None, 0.4472), 0.003),
    ],
)
def test_map_on_ohsumed_is_that_of_chen_et_al(benchmark_data, kind, maps, tolerance):
    metric = get_metric("map", "letor")
    values = []
    for fold in load_letor_folds(benchmark_data / "OHSUMED"):
        model = kind(2**-7, n_components=500, gamma=2**-6, random_state=0)
        model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        parts = (fold.train, fold.valid, fold.test)
        values.append([metric(rows.y, model.predict(rows.X), rows.qid) for rows in parts])
    for value, expected in zip(np.mean(values, axis=0), maps, strict=True):
        assert expected is None or abs(value - expected) <= tolerance
