"""Drawn ranking problems: query sizes, labels and weights that make the corner cases."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

# The limits by which sparse rows of any size are solved by steps of conjugate gradients alone.
BY_STEPS = {"largest_set": 0, "direct_seconds": 0.0, "step_patience": np.inf}


@dataclass
class Problem:
    """Rows with the query number of each, in any order."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray
    v: np.ndarray | None
    query_weight: np.ndarray | None

    @property
    def named(self):
        """What a fit takes besides rows and labels."""
        return {"qid": self.query, "sample_weight": self.v, "query_weight": self.query_weight}

    @property
    def order(self):
        return np.argsort(self.query, kind="stable")

    @property
    def offsets(self):
        return np.concatenate(([0], np.cumsum(np.bincount(self.query)))).astype(np.int64)

    @property
    def per_query_weight(self):
        if self.query_weight is None:
            return None
        weights = np.ones(len(self.offsets) - 1)
        weights[self.query] = self.query_weight
        return weights


@st.composite
def problems(draw, max_features=4, weights=True, min_queries=1, integer_labels=False):
    """Queries that are empty, single, all tied, small or one huge; labels few or continuous."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 30]), min_size=min_queries, max_size=6))
    sizes.append(draw(st.sampled_from([1, 2, 5])))  # so that there is a row
    if draw(st.booleans()):
        sizes.append(60)
    query = np.repeat(np.arange(len(sizes)), sizes)
    if draw(st.booleans()):
        query = rng.permutation(query)
    n = len(query)
    kind = "levels" if integer_labels else draw(st.sampled_from(["levels", "real", "tied"]))
    y = {
        "levels": rng.integers(0, 5, n).astype(float),
        "real": np.round(rng.normal(size=n), 2),
        "tied": np.full(n, 2.0),
    }[kind]
    X = rng.normal(size=(n, draw(st.integers(1, max_features))))
    v = query_weight = None
    if weights and draw(st.booleans()):
        v = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    if weights and draw(st.booleans()):
        query_weight = rng.choice([0.0, 0.5, 2.0], len(sizes))[query]
    return Problem(X, y, query, v, query_weight)


COMPILED = {None: "none", "with_ties": "kept", "without_ties": "dropped"}


def ranking_problem(problem, pairs, weighting="pairs"):
    """The compiled problem of some rows, built without the rest of the library."""
    from pairgram import _core
    from reference import OMEGAS

    named = {"pairs": COMPILED.get(pairs)}
    if named["pairs"] is None:
        levels = np.unique(problem.y)
        omega = np.array([[OMEGAS[pairs](a, b) for b in levels] for a in levels])
        named = {"pairs": "omega", "level_values": levels, "omega": omega}
    return _core.RankingProblem(
        problem.y,
        problem.offsets,
        order=problem.order,
        row_weights=problem.v,
        query_weights=problem.per_query_weight,
        weighting=weighting,
        **named,
    )


def compiled(problem, pairs, weighting="pairs", dtype=np.float64, target=None):
    """The problem, the features and the targets of some rows, as the compiled code takes them."""
    target = problem.y if target is None else target
    X = np.ascontiguousarray(problem.X, dtype=dtype)
    return ranking_problem(problem, pairs, weighting), X, target[:, None].copy()


def pair_operator(y, offsets, loss="squared_hinge", **named):
    """The loss of the preference pairs of rows that stand query after query."""
    from pairgram import _core

    named = {"pairs": "dropped", "weighting": "pairs"} | named
    return _core.PairOperator(_core.RankingProblem(y, offsets, **named), loss=loss)


class OfScores:
    """A loss of pairs as a function of scores: of weights of features, each of which has one row.

    The product with 1 and the sum of one number are exact, so that the bits are those of the loss.
    """

    def __init__(self, pairs):
        self.pairs, self.scores = pairs, None

    def loss(self, n, n_threads):
        """Return it as compiled code has it."""
        from pairgram import _core

        entries = np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n)
        rows = _core.sparse_features(*entries, n)
        return _core.loss_of_rows(rows, self.pairs, np.zeros(n), n_threads)

    def set_scores(self, scores, n_threads=1):
        """Return the loss of scores and its gradient."""
        self.scores = scores
        value, _, _, gradient = self.loss(len(scores), n_threads).at(scores, scores, 0.0)
        return value, gradient

    def product(self, u, n_threads=1):
        """Return the product with the Hessian at these scores."""
        return self.loss(len(u), n_threads).product(self.scores, u)
