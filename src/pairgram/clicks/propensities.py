"""The probability that users look at each position, estimated from a log of clicks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import ArrayLike

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram.data.queries import Queries, check_weights

MAX_STEPS = 100
TOLERANCE = 1e-10


class Propensities(NamedTuple):
    """The propensity of every position, relative to that of the first.

    Attributes
    ----------
    position : ndarray of shape (n_positions,), int64
        The positions, ascending.
    propensity : ndarray of shape (n_positions,), float64
        1 for the first position. Others may be above 1, by chance or because users see them first.
    standard_error : ndarray of shape (n_positions,), float64
        The standard errors, over queries, of the logarithms of the propensities; 0 for the first
        position.
    n_clicks : ndarray of shape (n_positions,), int64
        The number of clicks on each position from which its propensity was estimated.
    """

    position: Rows
    propensity: Vector
    standard_error: Vector
    n_clicks: Rows

    def of(self, position: ArrayLike) -> Vector:
        """Return the propensity of every row of a log, for `Clicks`.

        Propensities are divided by the largest one: only their ratios are known, and `Clicks`
        take none above 1.

        Parameters
        ----------
        position : array-like of shape (n_rows,)
            0 or NaN means that the row was not shown; its propensity is 0.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        ValueError
            If a position has no propensity.
        """
        place = _positions(position)
        known = np.append(self.propensity / self.propensity.max(), 0.0)
        at = np.minimum(np.searchsorted(self.position, place), len(self.position) - 1)
        wrong = (place > 0) & (self.position[at] != place)
        if wrong.any():
            row = int(np.argmax(wrong))
            text = f"must have a propensity, got position {place[row]} in {{place}}"
            raise ArgumentError("position", text, row=row)
        return known[np.where(place > 0, at, len(self.position))]


def estimate_propensities(
    position: ArrayLike,
    click: ArrayLike,
    *,
    item: ArrayLike,
    qid: ArrayLike | None = None,
) -> Propensities:
    """Estimate from clicks the probability that users look at each position.

    Parameters
    ----------
    position : array-like of shape (n_rows,) of whole numbers
        The place at which a row was shown, from 1. Rows of position 0 or NaN were not shown.
    click : array-like of shape (n_rows,), ≥ 0
        How often the row was clicked there.
    qid : array-like of shape (n_rows,), or None
        Ids of what users searched for. A query may have been shown many times, with one id; these
        are not the ids of the lists that were shown. Standard errors are over these queries. None
        takes every item as a query of its own.
    item : array-like of shape (n_rows,)
        Ids of documents. Propensities are estimated from documents that were shown at several
        positions for the same query, because they are equally good at all of them (intervention
        harvesting). The same id in two queries means two documents. Without `qid`, an id must
        therefore identify both the document and the query.

    Returns
    -------
    Propensities

    Raises
    ------
    ValueError
        If items do not link all positions to the first, or a position has no click on the items
        that link it; or if an argument is not as described.

    Notes
    -----
    Users who look at position k click what is attractive there. An item d with the attractiveness
    ``g_d`` that was shown ``n_dk`` times at position k is therefore expected to be clicked ``n_dk
    p_k g_d`` times. Given the total number of clicks on d, they fall on positions like draws with
    the probabilities ``n_dk p_k / Σ_j n_dj p_j``, in which ``g_d`` cancels. Newton's method finds
    the logarithms of p that maximise the likelihood of these draws, which is concave. The estimate
    is consistent if the expected clicks are as above, whatever their distribution. Only ratios of p
    can be known. This takes O(n_rows log n_rows) time.

    References
    ----------
    Agarwal, Zaitsev, Wang, Li, Najork, Joachims (2019). Estimating position bias without intrusive
    interventions. WSDM (what is compared). Hausman, Hall, Griliches (1984). Econometric models for
    count data with an application to the patents-R&D relationship. Econometrica 52 (how).

    Examples
    --------
    >>> import numpy as np
    >>> from pairgram import make_ranking
    >>> from pairgram.clicks import estimate_propensities, simulate
    >>> X, y, qid = make_ranking(random_state=0)
    >>> log = simulate(y, qid, X[:, :2].T, n_impressions=500, k=4, random_state=0)
    >>> found = estimate_propensities(log.position, log.click, qid=qid[log.row], item=log.row)
    >>> found.propensity.round(1).tolist()
    [1.0, 0.5, 0.3, 0.3]
    """
    place = _positions(position)
    n_rows = len(place)
    clicks = check_weights(click, n_rows, "click")
    shown = place > 0
    if (hidden := (clicks > 0) & ~shown).any():
        row = int(np.argmax(hidden))
        text = "must be from 1, the first place, where there is a click, got 0 or NaN in {place}"
        raise ArgumentError("position", text, row=row)
    if not (clicks > 0).any():
        raise ArgumentError("click", "has no click on a row that was shown")
    items = Queries.make(n_rows, qid=item, name="item").index()
    queries = items if qid is None else Queries.make(n_rows, qid=qid).index()
    log = _Cells.of(place[shown], clicks[shown], items[shown], queries[shown])
    found = log.solve()
    n_clicks = np.rint(log.clicks_of_positions).astype(np.int64)
    return Propensities(log.positions, np.exp(found), log.errors(found), n_clicks)


def _positions(position: ArrayLike) -> Rows:
    """Return positions as int64, 0 for those that are missing."""
    values = real_array(position, "position")
    if values.ndim != 1:
        raise ArgumentError("position", f"must have shape (n_rows,), got {values.shape}")
    values = np.where(np.isnan(values), 0.0, values)
    wrong = (values < 0) | (values != np.rint(values)) | (values > 2**31)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = f"must be a whole number from 1, or 0 or NaN, got {values[row]:g} in {{place}}"
        raise ArgumentError("position", text, row=row)
    return values.astype(np.int64)


def _listed(positions: Rows) -> str:
    return ", ".join(map(str, positions[:10].tolist())) + ", ..." * (len(positions) > 10)


class _Cells(NamedTuple):
    """How often items were shown and clicked at positions, if they tell of them.

    Attributes
    ----------
    positions : ndarray of shape (n_positions,), int64
    shown, clicked : csr_array of shape (n_items, n_positions)
        Both have the same entries. Items that were clicked, and shown at two positions or more.
    query : ndarray of shape (n_items,), int64
    """

    positions: Rows
    shown: Any
    clicked: Any
    query: Rows

    @classmethod
    def of(cls, place: Rows, clicks: Vector, item: Rows, query: Rows) -> _Cells:
        """Count the rows that were shown, and check that all positions are linked."""
        positions, column = np.unique(place, return_inverse=True)
        n_items = int(item.max()) + 1
        # An item of two queries is two items.
        things, row = np.unique(query * n_items + item, return_inverse=True)
        shape = len(things), len(positions)
        shown = scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape)
        clicked = scipy.sparse.csr_array((clicks, (row, column)), shape)
        tells = (np.diff(shown.indptr) > 1) & (clicked.sum(axis=1) > 0)
        owner = np.unique(things[tells] // n_items, return_inverse=True)[1]
        cells = cls(positions, shown[tells], clicked[tells], owner)
        cells._require_links()
        return cells

    def _require_links(self) -> None:
        """Raise a ValueError for positions whose ratio to the first is not known, or 0."""
        clicked = self.clicked.copy()
        clicked.eliminate_zeros()
        links = (clicked > 0).astype(np.int64).T @ (self.shown > 0).astype(np.int64)
        for directed, problem in (
            (
                False,
                "no clicked item links to position {first}: show some items at both, and let qid "
                "be what was searched for, not the lists that were shown",
            ),
            (
                True,
                "had no click, or had all, where items link it to position {first}: leave the rows "
                "of these positions out",
            ),
        ):
            _, part = scipy.sparse.csgraph.connected_components(
                links, directed=directed, connection="strong"
            )
            apart = self.positions[part != part[0]]
            if len(apart):
                text = problem.format(first=self.positions[0])
                raise ArgumentError(
                    "position",
                    f": the ratio of propensities is unknown for {_listed(apart)}: {text}",
                )

    @property
    def clicks_of_positions(self) -> Vector:
        return np.asarray(self.clicked.sum(axis=0), np.float64)

    def _shares(self, logs: Vector) -> Any:
        """Return the probability that a click on an item falls on each position."""
        own = self.shown.copy()
        own.data = own.data * np.exp(logs)[own.indices]
        own.data /= np.repeat(own.sum(axis=1), np.diff(own.indptr))
        return own

    def _step(self, logs: Vector) -> tuple[Vector, Vector, float]:
        """Return the gradient, minus the Hessian and the likelihood."""
        shares, total = self._shares(logs), np.asarray(self.clicked.sum(axis=1))
        gradient = self.clicks_of_positions - total @ shares
        weighted = shares.copy()
        weighted.data = weighted.data * np.repeat(total, np.diff(shares.indptr))
        hessian = np.diag(total @ shares) - (weighted.T @ shares).toarray()
        return gradient, hessian, float(self.clicked.data @ np.log(shares.data))

    def solve(self) -> Vector:
        """Return the logarithms of the propensities."""
        n_positions = len(self.positions)
        logs = -np.log(np.arange(1.0, n_positions + 1))
        gradient, hessian, value = self._step(logs)
        for _ in range(MAX_STEPS):
            step = np.append(0.0, np.linalg.lstsq(hessian[1:, 1:], gradient[1:])[0])
            step *= min(1.0, 4.0 / max(np.abs(step).max(), 1e-300))
            if np.abs(step).max() < TOLERANCE:
                break
            for _ in range(30):  # the function is concave, and so a shorter step is higher
                found = self._step(logs + step)
                if found[2] >= value - 1e-12 * abs(value):
                    break
                step /= 2
            logs = logs + step
            gradient, hessian, value = found
        return logs - logs[0]

    def errors(self, logs: Vector) -> Vector:
        """Return standard errors over queries: the limit of drawing these many times."""
        shares, total = self._shares(logs), np.asarray(self.clicked.sum(axis=1))
        _, hessian, _ = self._step(logs)
        rest = self.clicked - scipy.sparse.diags_array(total) @ shares
        n_queries = int(self.query.max(initial=-1)) + 1
        owner = scipy.sparse.csr_array(
            (np.ones(len(self.query)), (self.query, np.arange(len(self.query)))),
            shape=(n_queries, len(self.query)),
        )
        of_query = owner @ rest
        scatter = (of_query.T @ of_query).toarray()[1:, 1:]
        inverse = np.linalg.pinv(hessian[1:, 1:])
        return np.append(0.0, np.sqrt(np.diag(inverse @ scatter @ inverse)))
