"""Compute the sums over rows from which statistics are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.blocks import BLOCK_ROWS, blocks
from pairgram._support.checks import require_finite
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.feature_maps.base import linear_nodes, node_map_of
from pairgram.feature_maps.input_map import factors_of
from pairgram.feature_maps.linear_nodes import LinearNodes
from pairgram.least_squares.sparse_gram import sparse_gram, worth_densifying
from pairgram.problem.data import RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings

__all__ = ["NOISE", "SMALLEST_SQUARES", "clear_noise", "mean_of", "sums_of"]

# If a subtraction leaves less than this share of a feature's sum of squares, the rest is rounding
# error.
NOISE = 1e-13
# At least one feature must have a sum of squares of this size: otherwise a grid of ridges would
# leave the range of floating-point numbers.
SMALLEST_SQUARES = 1e-297


def sums_of(
    data: RankingData,
    settings: PairSettings,
    n_threads: int | None,
    *,
    constant: bool = False,
    varying: NDArray[np.int64] | None = None,
    may_vanish: bool = False,
) -> tuple[NDArray[np.float64], float]:
    """Return (the sums over [X, y], Σ W). It is a ValueError if X holds NaN or infinity.

    A linear map is applied to the sums of the inputs instead of the rows, if that loses no digits.
    With `constant` the sums are those over [X, 1, y]. `varying`, of shape (n_features + 1,), is set
    to the number of queries in which each feature varies; its last entry is the number of queries
    in which any feature varies. Features that vary by next to nothing are a ValueError; with
    `may_vanish` they count as constants, which is for a part of rows that were accepted.
    """
    sums, pair_weight = _sums_of(data, settings, n_threads, constant, varying)
    squares = np.diag(sums)[: len(sums) - 1 - constant]
    if squares.max(initial=0.0) < SMALLEST_SQUARES:
        data.require_pair_weight(settings, pair_weight)
        if not may_vanish:
            _refuse_vanished(data, settings, n_threads, squares)
        sums[: len(squares)], sums[:, : len(squares)] = 0.0, 0.0
    return sums, pair_weight


def _refuse_vanished(
    data: RankingData,
    settings: PairSettings,
    n_threads: int | None,
    squares: NDArray[np.float64],
) -> None:
    """Raise a ValueError if features vary, but their squared differences are too small."""
    if not squares.any() and node_map_of(data.feature_map, data.X.dtype) is not None:
        return  # what nodes make of rows that differ is equal but for rounding
    varying = np.zeros(len(squares) + 1, dtype=np.int64)
    _sums_of(data, settings, n_threads, False, varying)
    if varying[-1] == 0:
        return
    origin = "X" if data.feature_map is None else "what the feature map makes"
    what = f"{origin} or the weights" if data.may_vanish else origin
    most = squares.max(initial=0.0)
    raise ValueError(
        f"{what} too small: of no feature do weighted squared differences add up to "
        f"{SMALLEST_SQUARES:g} or more, {most:.1g} at most: multiply X, as StandardScaler does"
    )


def _sums_of(
    data: RankingData,
    settings: PairSettings,
    n_threads: int | None,
    constant: bool,
    varying: NDArray[np.int64] | None,
) -> tuple[NDArray[np.float64], float]:
    if varying is not None:
        varying[:] = 0
    if (nodes := linear_nodes(data.feature_map)) is not None and nodes.acts_on_sums():
        # The offsets of the nodes cancel in differences within pairs.
        offsets, inputs = settings.pairs is None, replace(data, feature_map=nodes.before)
        of_inputs = None if varying is None else np.zeros(inputs.n_features + 1, dtype=np.int64)
        sums, pair_weight = _sums_of(inputs, settings, n_threads, offsets, of_inputs)
        if varying is not None and of_inputs is not None:  # nodes are sums of the inputs
            has_values = int(np.count_nonzero(inputs.has_pairs(settings)))
            varying[:] = has_values if offsets else of_inputs[-1]
        return _apply(nodes, sums, offsets), pair_weight
    if settings.pairs is not None and (factors := factors_of(data.feature_map)) is not None:
        inputs = replace(data, feature_map=None)
        sums, pair_weight = _sums_of(inputs, settings, n_threads, constant, varying)
        factors = np.append(factors, np.ones(len(sums) - len(factors)))
        return sums * factors[:, None] * factors, pair_weight
    threads = resolve_n_threads(n_threads)
    node_map = node_map_of(data.feature_map, data.X.dtype)
    if node_map is not None and not data.feature_map.shows_not_finite:
        require_finite(data.X, "X")
    sparse = scipy.sparse.issparse(data.X) and data.feature_map is None
    if sparse and not worth_densifying(data):
        sums, pair_weight, size = sparse_gram(data, settings, constant=constant, varying=varying)
        clear_noise(sums, size)
    else:
        parts: list[tuple[NDArray[np.float64], float]] = []
        with single_threaded_blas():
            for block in data.blocks(settings, constant=constant):
                part = _core.gram(
                    block.problem,
                    block.X,
                    block.targets,
                    map=block.node_map,
                    varying=varying,
                    n_threads=threads,
                )
                parts = [part if not parts else (parts[0][0] + part[0], parts[0][1] + part[1])]
        sums, pair_weight = parts[0]
    if node_map is not None:  # outputs that differ only by rounding do not differ
        rounding = data.feature_map._rounding(data.X[:256])
        with np.errstate(over="ignore"):
            size = np.append(pair_weight * rounding**2, np.zeros(1 + constant))
        clear_noise(sums, size, 1.0)
    diagonal = np.diag(sums)
    if data.X.dtype == np.float32 and _leaves_float32(data, diagonal[: data.n_features]):
        wide = replace(data, X=data.X.astype(np.float64))
        return _sums_of(wide, settings, n_threads, constant, varying)
    if not np.isfinite(diagonal).all():
        data.require_finite_features()
        column = int(np.argmin(np.isfinite(diagonal)))
        origin = "X" if data.feature_map is None else "the feature map"
        of_target = column == len(diagonal) - 1
        what = data.target_name if of_target else f"feature {column} of {origin}"
        if data.row_weights is not None or data.query_weights is not None:
            what = f"the weights or {what}"
        raise ValueError(f"{what} too large: the weighted sum of squared differences overflows")
    return sums, float(pair_weight)


def _apply(nodes: LinearNodes, sums: NDArray[np.float64], offsets: bool) -> NDArray[np.float64]:
    """Return the sums over [AᵀX + b, y] from those over [X, 1, y]; without offsets from [X, y]."""
    T = np.zeros((len(sums), nodes.weights.shape[1] + 1))
    T[: len(nodes.weights), :-1], T[-1, -1] = nodes.weights, 1.0
    if offsets:
        T[-2, :-1] = nodes.bias
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        return np.asarray(T.T @ (sums @ T))


def _leaves_float32(data: RankingData, diagonal: NDArray[np.float64]) -> bool:
    """Tell whether squares overflowed in float32, or vanished in a tiny column that is not 0."""
    X = data.X
    if data.feature_map is not None:
        return not np.isfinite(diagonal).all()
    odd = np.flatnonzero(~np.isfinite(diagonal) | (diagonal == 0))
    if not len(odd):
        return False
    largest = abs(X[:, odd]).max(axis=0)
    largest = largest.toarray().ravel() if scipy.sparse.issparse(largest) else largest
    if not np.isfinite(largest).all():
        return False  # NaN or infinity is an error in float64 too
    vanished = (diagonal[odd] == 0) & (largest > 0) & (largest < 1e-15)
    return bool((vanished | ~np.isfinite(diagonal[odd])).any())


def clear_noise(sums: NDArray[np.float64], size: NDArray[np.float64], share: float = NOISE) -> None:
    """Set to 0 the rows and columns of features for which only rounding error is left."""
    diagonal = np.diag(sums)
    noise = np.isfinite(diagonal) & (diagonal <= share * size) & (size > 0)
    sums[noise] = 0.0
    sums[:, noise] = 0.0


def mean_of(
    data: RankingData, settings: PairSettings
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return (total weight, first row, weighted mean of the rows minus the first row) of [X, y]."""
    v, y = data.v, data.target(settings)
    total = float(v.sum())
    share = v / total if total > 0 else v
    sparse = scipy.sparse.issparse(data.X) and data.feature_map is None
    first = data.X[[0]].toarray()[0] if sparse else data.features(slice(0, 1))[0]
    origin = np.append(first, y[0]).astype(np.float64)
    if sparse:  # centring would fill the rows
        return total, origin, np.append(share @ data.X, share @ y) - origin * share.sum()
    mean = np.zeros(len(origin))
    with np.errstate(invalid="ignore"):  # NaN and infinity are found in the sums
        for rows in blocks(len(y), BLOCK_ROWS):
            mean[:-1] += share[rows] @ (data.features(rows) - origin[:-1])
            mean[-1] += share[rows] @ (y[rows] - origin[-1])
    return total, origin, mean
