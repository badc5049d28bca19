"""
Train on files, score into files
================================

`scan` describes rows that stay where they are. The fit reads them in blocks, and the result is that
of arrays.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from pairgram import RankRLSCV, evaluate, make_ranking, plots, predict, scan

folder = Path(tempfile.mkdtemp())
X, y, qid = make_ranking(300, (5, 40), 4, random_state=0)
names = ["bm25", "dense", "age", "clicks"]
frame = pd.DataFrame(X, columns=names).assign(grade=y, query=qid)
for part, first in enumerate(range(0, len(frame), 1500)):  # files end in the middle of queries
    frame[first : first + 1500].to_parquet(folder / f"part-{part}.parquet")

table = scan(folder, label="grade", qid="query")
model = RankRLSCV().fit(table)
print(table)
print(evaluate(["ndcg@10", "map"], table, model))
print(predict(model, table, output=folder / "scores.parquet"), "rows written")

# %%
# A second pass over the features scored the queries that were held out, for every ridge:

plots.scores(model)

# %%
# The model is that of the rows in memory, to the last digits:

arrays = RankRLSCV().fit(frame[names], y, qid=qid)
print(np.abs(model.coef_ - arrays.coef_).max())
