"""
What the columns are worth
==========================

The importance of a column is what the metric loses when its values are shuffled within queries. A
column that only tells queries apart is worth nothing.
"""

import pandas as pd

from pairgram import RankRLSCV, make_ranking, plots, query_permutation_importance

X, y, qid = make_ranking(100, 20, 6, random_state=0)
frame = pd.DataFrame(X, columns=["bm25", "title", "age", "price", "clicks", "length"])
frame["popularity of the query"] = qid / 100
train, test = qid < 60, qid >= 60
model = RankRLSCV().fit(frame[train], y[train], qid=qid[train])

found = query_permutation_importance(
    model, frame[test], y[test], qid=qid[test], n_repeats=20, random_state=0
)
plots.importances(found)

# %%
# The contributions of the columns to one document add up to its score, up to a constant that is the
# same for all documents of the query.

for name, share in zip(model.column_names_, model.contributions(frame[test])[0], strict=True):
    print(f"{name:>23} {share:7.3f}")
