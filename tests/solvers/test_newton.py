"""The compiled Newton method against explicit pairs, for every way to store features."""

import operator
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

import reference_svm
from axes import every
from pairgram import _core
from problems import pair_operator, problems

LOSSES = ["squared_hinge", "squared", "logistic"]
TOL = 1e-8
CS = np.array([0.01, 1.0, 50.0])


def dense(H):
    return _core.dense_features(H)


def shuffled(H):
    order = np.random.default_rng(0).permutation(len(H))
    scattered = np.empty_like(H)
    scattered[order] = H
    return _core.dense_features(scattered, order)


def single(H):
    return _core.dense_features(H.astype(np.float32))


def sparse(H):
    rows = sp.csr_array(H)
    indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    return _core.sparse_features(indptr, indices, rows.data, H.shape[1])


def made(H):
    return _core.made_features(*H.shape, 5, lambda begin, end: H[begin:end].copy())


def whitened(H):
    inner = np.hstack((H, H[:, :1]))
    whitening = np.vstack((np.eye(H.shape[1]), np.zeros(H.shape[1])))
    whitening[-1, 0], whitening[0, 0] = 0.25, 0.75
    return _core.whitened_features(_core.dense_features(inner), whitening)


KINDS = {kind.__name__: kind for kind in (dense, shuffled, single, sparse, made, whitened)}


def gram(H, A, W):
    difference = A @ H
    return difference.T @ (W[:, None] * difference)


def solve(losses, curvature, Cs=CS, constant=(), **named):
    tasks = [(loss, np.array(constant, np.int64)) for loss in losses]
    named = {"steepness": 1.0, "tol": TOL, "max_iter": 200, "n_threads": 1} | named
    return _core.solve_svm(tasks, curvature, np.asarray(Cs, float), **named)


@settings(max_examples=36)
@given(
    problems(),
    st.sampled_from(LOSSES),
    st.sampled_from(list(KINDS)),
    st.booleans(),
    st.integers(0, 9),
)
def test_the_gradient_of_explicit_pairs_vanishes(problem, loss, kind, by_diagonal, seed):
    order = problem.order
    y, query, v = problem.y[order], problem.query[order], problem.v
    v = None if v is None else v[order]
    H = problem.X[order].astype(np.float32).astype(float)
    offset = np.random.default_rng(seed).normal(size=len(y))
    weight = None if problem.query_weight is None else problem.query_weight[order]
    A, W = reference_svm.preference_pairs(y, query, v, weight)
    curvature = gram(H, A, W) if W.any() else np.zeros((H.shape[1],) * 2)
    curvature = np.diag(curvature).copy() if by_diagonal else curvature
    weights = {"row_weights": v, "query_weights": problem.per_query_weight}

    def loss_of(n_threads):
        pairs = pair_operator(y, problem.offsets, loss, **weights)
        return _core.loss_of_rows(KINDS[kind](H), pairs, offset, n_threads)

    steepness = 0.125 if loss == "logistic" else 1.0
    coefs, histories = solve([loss_of(1)], curvature, steepness=steepness)
    assert coefs.shape == (1, 3, H.shape[1]) and len(histories) == 3
    for C, w, history in zip(CS, coefs[0], histories, strict=True):
        value, gradient, _ = reference_svm.pair_loss(H @ w + offset, A, W, loss)
        at_zero = reference_svm.pair_loss(offset, A, W, loss)[1]
        size = C * np.linalg.norm(H.T @ at_zero)
        found = np.linalg.norm(w + C * (H.T @ gradient))
        assert history.converged
        assert found <= (1e-7 if len(history.step) else 0) * size + 1e-9
        objective = 0.5 * w @ w + C * value
        np.testing.assert_allclose(history.objective[-1], objective, rtol=1e-9, atol=1e-10)
        assert (np.diff(history.objective) <= 1e-9 * history.objective[0]).all()
        assert len(history.step) == len(history.n_hessian_products) == len(history.n_passes)
    for n_threads in (2, 5):
        several = [loss_of(n_threads), loss_of(1)]
        both = solve(several, curvature, n_threads=n_threads, steepness=steepness)[0]
        np.testing.assert_array_equal(both, [coefs[0]] * 2)


def ranking(width, n=120, seed=0):
    """Return rows of ten queries, their labels, their offsets, and the explicit pairs."""
    rng = np.random.default_rng(seed)
    y, offsets = rng.integers(0, 4, n).astype(float), np.arange(0, n + 1, n // 10)
    query = np.repeat(np.arange(10), n // 10)
    return rng, rng.normal(size=(n, width)), y, offsets, reference_svm.preference_pairs(y, query)


@every(size=[1e-40, 1e-3, 1.0, 1e40, 1e140], width=[5, 300])
def test_the_hessian_of_all_pairs_needs_one_product(size, width):
    rng, H, y, offsets, (A, W) = ranking(width)
    H = size * H * 10.0 ** rng.integers(-3, 1, width)
    pairs = pair_operator(y, offsets, "squared")
    loss = _core.loss_of_rows(dense(H), pairs, np.zeros(len(y)))
    for C in (1e-3 / size**2, 0.1 / size**2):
        coefs, (history,) = solve([loss], gram(H, A, W), [C], tol=1e-3)
        assert history.n_hessian_products.tolist() == [1] and history.converged
        expected = np.linalg.solve(np.eye(width) / C + 2 * gram(H, A, W), 2 * H.T @ (A.T @ W))
        scale = 1e-6 * np.abs(H @ expected).max()
        np.testing.assert_allclose(H @ coefs[0, 0], H @ expected, rtol=0, atol=scale)


@every(loss=LOSSES)
def test_a_poor_curvature_changes_no_minimum(loss):
    _, H, y, offsets, (A, W) = ranking(4)
    exact = gram(H, A, W)
    diagonal = np.diag(exact).copy()
    indefinite = -3 * np.sqrt(np.outer(diagonal, diagonal))
    np.fill_diagonal(indefinite, diagonal)
    assert np.linalg.eigvalsh(indefinite)[0] < 0
    found = []
    for curvature in (exact, diagonal, indefinite):
        pairs = pair_operator(y, offsets, loss)
        one = _core.loss_of_rows(dense(H), pairs, np.zeros(len(y)))
        coefs, histories = solve([one], curvature)
        assert all(history.converged for history in histories)
        found.append(coefs)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(found[2], found[1])  # its diagonal is left


def test_no_step_raises_the_objective():
    """Of rows that are separated, whose gradient is all rounding error at the second C."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        H, y, offsets = (
            1e18 * rng.normal(size=(9, 16)),
            rng.permutation(9) * 1.0,
            np.array([0, 4, 9]),
        )
        A, W = reference_svm.preference_pairs(y, np.repeat([0, 1], [4, 5]))
        loss = _core.loss_of_rows(dense(H), pair_operator(y, offsets), np.zeros(9))
        for history in solve([loss], gram(H, A, W), [0.01, 1.0], tol=1e-9)[1]:
            assert (np.diff(history.objective) <= 1e-6 * history.objective[:-1]).all()


@every(loss=["squared_hinge", "logistic"], C=[0.1, 10.0])
def test_a_step_ends_where_its_slope_is_small(loss, C):
    """That of the first step, which is far too short where the labels follow a feature."""
    _, H, y, offsets, (A, W) = ranking(4)
    H[:, 0] += 3 * y
    pairs = pair_operator(y, offsets, loss)
    one = _core.loss_of_rows(dense(H), pairs, np.zeros(len(y)))
    coefs, (history,) = solve([one], gram(H, A, W), [C], max_iter=1)
    ((w,),), (length,) = coefs, history.step

    def slope(w):
        return w @ (w + C * H.T @ reference_svm.pair_loss(H @ w, A, W, loss)[1])

    at_zero = C * w @ (H.T @ reference_svm.pair_loss(np.zeros(len(y)), A, W, loss)[1])
    assert abs(slope(w)) <= 0.05 * abs(at_zero)
    assert abs(slope(w / length)) > 0.1 * abs(at_zero / length)


def test_every_c_has_a_step_however_small_the_gradient():
    _, H, y, offsets, (A, W) = ranking(4)
    loss = _core.loss_of_rows(dense(H), pair_operator(y, offsets), np.zeros(len(y)))
    coefs, histories = solve([loss], gram(H, A, W), [1.0, 1.001], tol=0.1)
    assert histories[1].relative_gradient[0] < 0.1
    assert [len(history.step) > 0 for history in histories] == [True, True]
    assert (coefs[0, 0] != coefs[0, 1]).all()


@every(width=[3, 700])
def test_many_losses_are_solved_as_each_alone(width):
    """In threads, and with factors that are too large to be kept for all C together."""
    rng, H, y, offsets, (A, W) = ranking(width)
    weights, curvature = rng.random((3, len(y))), gram(H, A, W)

    def losses():
        for v in weights:
            pairs = pair_operator(y, offsets, row_weights=v)
            yield _core.loss_of_rows(dense(H), pairs, np.zeros(len(y)))

    alone = [solve([loss], curvature, tol=1e-4)[0][0] for loss in losses()]
    for n_threads in (1, 2, 5):
        found, histories = solve(list(losses()), curvature, tol=1e-4, n_threads=n_threads)
        np.testing.assert_array_equal(found, alone)
        assert len(histories) == 9


def test_curvature_that_is_not_a_number_leaves_the_start():
    _, H, y, offsets, _ = ranking(4)
    loss = _core.loss_of_rows(dense(H), pair_operator(y, offsets), np.zeros(len(y)))
    for value in (np.nan, np.inf):
        coefs, histories = solve([loss], np.full((4, 4), value))
        assert not any(history.converged or len(history.step) for history in histories)
        np.testing.assert_array_equal(coefs, 0.0)


def test_constant_features_keep_the_weight_0():
    _, H, y, offsets, (A, W) = ranking(4)
    H[:, 2] = 1e15 + 1e10 * np.repeat(np.arange(10), 12)
    curvature = gram(H[:, [0, 1, 3]], A, W)
    whole = np.zeros((4, 4))
    whole[np.ix_([0, 1, 3], [0, 1, 3])] = curvature
    zeros = np.zeros(len(y))
    loss = _core.loss_of_rows(dense(H), pair_operator(y, offsets), zeros)
    less = _core.loss_of_rows(dense(H[:, [0, 1, 3]].copy()), pair_operator(y, offsets), zeros)
    coefs = solve([loss], whole, constant=[2], tol=1e-6)[0]
    assert (coefs[..., 2] == 0).all()
    expected = solve([less], curvature, tol=1e-6)[0]
    np.testing.assert_allclose(coefs[..., [0, 1, 3]], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_blocks_that_are_read_again_have_the_same_minimum(kind):
    _, H, y, offsets, (A, W) = ranking(5)
    curvature, n_calls = gram(H, A, W), []

    def blocks():
        n_calls.append(1)
        for begin, end in pairwise([0, 36, 120]):
            pairs = pair_operator(y[begin:end], np.arange(0, end - begin + 1, 12))
            features = KINDS[kind](H[begin:end].copy())
            yield _core.loss_of_rows(features, pairs, np.zeros(end - begin))

    def at(w, step, t):
        first, second = (loss.at(w, step, t) for loss in blocks())
        return tuple(map(operator.add, first, second))

    def product(w, direction):
        return sum(loss.product(w, direction) for loss in blocks())

    whole = _core.loss_of_rows(KINDS[kind](H), pair_operator(y, offsets), np.zeros(len(y)))
    expected = solve([whole], curvature)[0]
    n_calls.clear()
    found, histories = solve([_core.loss_by_passes(5, at, product)], curvature)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert histories[-1].n_passes[-1] == len(n_calls)

    def broken(w, direction):
        raise KeyError("of a block")

    with pytest.raises(KeyError, match="of a block"):
        solve([_core.loss_by_passes(5, at, broken)], curvature)
