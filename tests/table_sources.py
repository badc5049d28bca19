"""Tables that are cut anywhere, and the arrays that they hold."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pairgram import make_ranking, scan
from parts.tables import Place


@dataclass
class Rows:
    """The rows of a table as arrays. The rows of a query stand together."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    weight: np.ndarray

    @property
    def frame(self):
        columns = {f"f{k}": column for k, column in enumerate(self.X.T)}
        return pa.table(columns | {"label": self.y, "query": self.qid, "w": self.weight})

    @property
    def names(self):
        return [f"f{k}" for k in range(self.X.shape[1])]


def make_rows(n_queries=40, n_features=4, dtype=np.float64, seed=0, shortest=1, longest=25):
    """Queries of various sizes, with weights of which some are 0."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(shortest, longest, n_queries)
    n = int(sizes.sum())
    X = rng.normal(size=(n, n_features)) * rng.uniform(0.5, 3, n_features) + 1
    hidden = X @ rng.normal(size=n_features) + rng.normal(size=n)
    y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.75, 0.9])).astype(float)
    qid = np.repeat(rng.permutation(n_queries) + 100, sizes)
    return Rows(X.astype(dtype), y, qid, rng.choice([0.0, 0.5, 1.0, 2.0], n))


@dataclass
class Cut:
    """A partition of some rows of an Arrow table, in batches that end at the given rows."""

    table: object
    ends: list
    name: str = "a part"

    def batches(self, number, columns):
        begin = 0
        for end in sorted({*self.ends, self.table.num_rows}):
            if end > begin:
                place = Place(self.name, number, begin)
                yield columns.rows(self.table.slice(begin, end - begin), place)
            begin = max(begin, end)


def cut_table(frame, borders, batch_ends=(), **names):
    """Describe a table whose partitions end at the given rows."""
    borders = [0, *sorted(borders), frame.num_rows]
    parts = [
        Cut(frame.slice(a, b - a), [e - a for e in batch_ends if a < e < b], f"part {k}")
        for k, (a, b) in enumerate(pairwise(borders))
    ]
    return replace(scan(frame, **names), partitions=tuple(parts))


def write_parts(folder, frame, borders, row_group_size=None):
    """Write a table into Parquet files that end at the given rows."""
    borders = [0, *borders, frame.num_rows]
    paths = []
    for number, (begin, end) in enumerate(pairwise(borders)):
        paths.append(folder / f"part-{number:02}.parquet")
        pq.write_table(frame.slice(begin, end - begin), paths[-1], row_group_size=row_group_size)
    return paths


def ranking_rows(n_queries=30):
    """Rows of `make_ranking`, as `Rows`."""
    X, y, qid = make_ranking(n_queries=n_queries, random_state=0)
    return Rows(X, y.astype(float), qid, np.ones(len(y)))


def arrow(X, y, qid=None, weight=None):
    """Return rows as a table of pyarrow, whose features are one column of lists, without names."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    columns = {"X": lists, "y": y, "qid": qid, "weight": weight}
    return pa.table({name: one for name, one in columns.items() if one is not None})


def scanned(*parts):
    """Describe parts of rows, (X, y, qid, weight) or the first of these, as a table."""
    tables = [arrow(*part) for part in parts]
    named = {one: one for one in ("qid", "weight") if one in tables[0].column_names}
    return scan(lambda: iter(tables), label="y", **named)


ROWS = make_rows()
NAMES = {"label": "label", "qid": "query", "features": ROWS.names}


def cut(rows=ROWS, **names):
    """Describe these rows as a table whose parts and batches end within queries."""
    return cut_table(rows.frame, [3, 3, 60, 300], [1, 59, 100, 301], **NAMES | names)


# Rows whose columns all have names, for frames of any package.
COLUMNS = {"label": "y", "qid": "q", "weight": "w", "features": [f"x{j}" for j in range(5)]}


def named_frame(X, y, qid, weights):
    """Return the rows in pandas, with ids of text and their numbers."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(y=y, q=[f"query {one}" for one in qid], w=weights, row=range(len(y)))


def same(found, expected, atol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol * np.abs(expected).max())
