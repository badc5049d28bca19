"""The probability that users look at each position, estimated from a log of clicks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.parameters import FLAG, check_setting
from pairgram.data.queries import as_ids, codes_of_objects

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
    monotone: bool = False,
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
    monotone : bool, default=False
        Whether propensities must not grow from one position to the next.

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
    check_setting("monotone", monotone, FLAG)
    place, clicks = _positions(position), real_array(click, "click")
    if clicks.shape != place.shape:
        raise ArgumentError(
            "click", f"must have shape ({len(place)},), as position has, got {clicks.shape}"
        )
    wrong = ~((clicks >= 0) & np.isfinite(clicks))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError("click", f"must be >= 0, got {clicks[row]} in {{place}}", row=row)
    shown = place > 0
    if (hidden := (clicks > 0) & ~shown).any():
        row = int(np.argmax(hidden))
        text = "must be from 1, the first place, where there is a click, got 0 or NaN in {place}"
        raise ArgumentError("position", text, row=row)
    if not (clicks[shown] > 0).any():
        raise ArgumentError("click", "has no click on a row that was shown")
    n_rows = len(place)
    query = None if qid is None else _codes(qid, n_rows, "qid")
    log = _Cells.of(place, clicks, _codes(item, n_rows, "item"), query)
    found = log.solve()
    errors = log.errors(found)
    n_clicks = log.clicks_of_positions
    if monotone and len(found) > 1:
        found = isotonic_regression(found, sample_weight=n_clicks, increasing=False)
    known = np.exp(found - found[0])
    return Propensities(log.positions, known, errors, np.rint(n_clicks).astype(np.int64))


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


def _codes(ids: ArrayLike, n_rows: int, name: str) -> Rows:
    """Return a whole number from 0 for every id, the same for equal ones."""
    found = as_ids(ids, n_rows, name)
    if found.dtype.kind in "iu" and n_rows:
        low, high = int(found.min()), int(found.max())
        if high - low < 4 * n_rows + 1024:  # which need not be sorted
            return (found.astype(np.uint64) - np.uint64(low % 2**64)).astype(np.int64)
    if found.dtype.kind == "O":
        return codes_of_objects(found, name)[0]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


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
    def of(cls, place: Rows, clicks: Vector, item: Rows, query: Rows | None) -> _Cells:
        """Count, and check that all positions are linked."""
        known = np.arange(min(int(place.max()) + 1, 2**16))
        if place.max() >= len(known):  # such as 999,999,999 for the place of what nobody saw
            known, place = np.unique(np.append(place, 0), return_inverse=True)
            place = place[:-1]
        n_places, n_items = len(known), int(item.max()) + 1
        if query is not None:
            item = query * n_items + item  # fewer than n_rows² numbers
        seen = place > 0
        if not seen.all():
            place, clicks, item = place[seen], clicks[seen], item[seen]
        key, n_shown, n_clicked = _counted(item * n_places + place, clicks)
        item = key // n_places
        column = key - item * n_places
        begin = np.flatnonzero(np.diff(item, prepend=-1))
        sizes = np.diff(begin, append=len(key))
        tells = (sizes > 1) & (np.add.reduceat(n_clicked, begin) > 0)
        kept = np.repeat(tells, sizes)
        every, sizes = np.flatnonzero(np.bincount(column)), sizes[tells]
        column = np.searchsorted(every, column[kept])
        ends = np.concatenate(([0], np.cumsum(sizes)))
        shape = (len(sizes), len(every))
        shown = scipy.sparse.csr_array((n_shown[kept], column, ends), shape)
        clicked = scipy.sparse.csr_array((n_clicked[kept], column, ends), shape)
        owner = np.arange(len(sizes))
        if query is not None:
            owner = np.unique(item[begin[tells]] // n_items, return_inverse=True)[1]
        cells = cls(known[every], shown, clicked, owner)
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


def _counted(key: Rows, clicks: Vector) -> tuple[Rows, Vector, Vector]:
    """Return the different keys, ascending, and how many rows and clicks each has."""
    if int(key.max()) < 4 * len(key) + 1024:  # which need not be sorted
        rows = np.bincount(key)
        kept = np.flatnonzero(rows)
        return kept, rows[kept].astype(float), np.bincount(key, clicks)[kept].astype(float)
    order = np.argsort(key, kind="stable")
    key, clicks = key[order], clicks[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    n_rows = np.diff(first, append=len(key)).astype(float)
    return key[first], n_rows, np.add.reduceat(clicks, first)
