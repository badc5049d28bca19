"""Seeded synthetic ranking data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairgram._support.checks import Rows, Vector
from pairgram._support.parameters import AT_LEAST_0, check_setting, check_size

# The share of labels below each fifth of the label range, as in the web search data sets.
_CUMULATIVE_SHARES = (0.0, 0.52, 0.84, 0.97, 0.99, 1.0)


def make_ranking(
    n_queries: int = 100,
    n_documents: int | tuple[int, int] = 20,
    n_features: int = 20,
    *,
    n_informative: int | None = None,
    n_levels: int = 5,
    n_factors: int = 8,
    noise: float = 1.0,
    query_effect: float = 0.5,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> tuple[Vector, Vector, Rows]:
    """Make data like those of web search: features are correlated, and high labels are rare.

    Parameters
    ----------
    n_queries : int ≥ 1
        Number of queries.
    n_documents : int ≥ 1 or (low, high)
        Number of documents per query. For a range, each query draws its own number, and both ends
        are possible.
    n_features : int ≥ 1
        Number of features.
    n_informative : int from 0 to n_features, or None
        Number of features on which the labels depend. They are drawn at random. None takes 30 % of
        the features, but at least one.
    n_levels : int ≥ 1
        Number of different labels 0 … n_levels - 1. With 5 levels, about 52, 32, 13, 2 and 1 % of
        the documents have label 0 … 4. Other numbers of levels follow the same curve.
    n_factors : int ≥ 0
        Number of hidden factors that make the features correlated. With 0 they are independent.
    noise : float ≥ 0
        Standard deviation of the part of the relevance that the features do not explain, relative
        to the part that they explain.
    query_effect : float ≥ 0
        Standard deviation of the offsets of queries, relative to the standard deviation within
        queries. Each feature has an offset, and so has the relevance. A pairwise loss does not see
        the offset of the relevance, whereas it misleads a pointwise loss.
    random_state : int, RandomState, Generator or None
        Seed or source of the data. Equal seeds give equal data.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), float64
        Each feature has the smallest value 0 and the largest value 1.
    y : ndarray of shape (n_rows,), float64
        Labels 0 … n_levels - 1.
    qid : ndarray of shape (n_rows,), int64
        Ids 0 … n_queries - 1. The documents of a query stand together, in the order of the ids.

    Raises
    ------
    ValueError
        If an argument is not a number or is out of its range.

    Notes
    -----
    Let f be the factors and ε, ε' the noise of a document, and b, b' the offsets of its query, all
    standard normal. The features are A f + ε + query_effect · b, with a random matrix A, and each
    is then mapped onto [0, 1]. The relevance is a standardised random linear function of the
    informative features, plus noise · ε' + query_effect · b'. Labels cut it at its quantiles.

    This takes O(n_rows · n_features · n_factors) time, and memory for two matrices like `X`.

    Examples
    --------
    >>> from pairgram.datasets import make_ranking
    >>> X, y, qid = make_ranking(n_queries=3, n_documents=(5, 9), random_state=0)
    >>> X.shape[1], len(set(qid.tolist()))
    (20, 3)
    """
    n_queries = check_size("n_queries", n_queries)
    n_features = check_size("n_features", n_features)
    n_levels = check_size("n_levels", n_levels)
    n_factors = check_size("n_factors", n_factors, 0)
    noise = float(check_setting("noise", noise, AT_LEAST_0))
    query_effect = float(check_setting("query_effect", query_effect, AT_LEAST_0))
    if n_informative is None:
        n_informative = max(1, round(0.3 * n_features))
    n_informative = check_size("n_informative", n_informative, 0, n_features)
    rng = _as_random(random_state)
    sizes = _draw_sizes(rng, n_queries, n_documents)
    qid = np.repeat(np.arange(n_queries, dtype=np.int64), sizes)

    X = rng.normal(size=(len(qid), n_features))
    if n_factors:
        loadings = rng.normal(size=(n_factors, n_features)) / np.sqrt(n_factors)
        X += rng.normal(size=(len(qid), n_factors)) @ loadings
    X += query_effect * rng.normal(size=(n_queries, n_features))[qid]

    informative = rng.permutation(n_features)[:n_informative]
    relevance = _standardised(X[:, informative] @ rng.normal(size=n_informative))
    relevance += noise * rng.normal(size=len(qid))
    relevance += query_effect * rng.normal(size=n_queries)[qid]
    steps = np.arange(1, n_levels) / n_levels
    shares = np.interp(steps, np.linspace(0, 1, len(_CUMULATIVE_SHARES)), _CUMULATIVE_SHARES)
    y = np.searchsorted(np.quantile(relevance, shares), relevance).astype(np.float64)

    low = X.min(axis=0)
    spread = X.max(axis=0) - low
    X -= low
    X /= np.where(spread > 0, spread, 1)
    return X, y, qid


def _as_random(random_state: object) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_size("random_state", random_state, 0))


def _draw_sizes(
    rng: np.random.RandomState | np.random.Generator,
    n_queries: int,
    n_documents: int | Sequence[int],
) -> Rows:
    if not isinstance(n_documents, Sequence):
        return np.full(n_queries, check_size("n_documents", n_documents), dtype=np.int64)
    if len(n_documents) != 2:
        raise ValueError(f"n_documents must be an integer or (low, high), got {n_documents!r}")
    low = check_size("n_documents[0]", n_documents[0])
    high = check_size("n_documents[1]", n_documents[1], low)
    return low + np.floor(rng.random(n_queries) * (high - low + 1)).astype(np.int64)


def _standardised(values: Vector) -> Vector:
    spread = values.std()
    centred = values - values.mean()
    return centred / spread if spread > 0 else centred
