"""
Are two models different?
=========================

A difference of means says little without the queries behind it.
"""

import numpy as np
import scipy.stats

from pairgram import RankRLSCV, evaluate, make_ranking, plots

X, y, qid = make_ranking(150, (5, 25), 10, random_state=2)
train, test = qid < 90, qid >= 90
first = RankRLSCV(pairs="gain").fit(X[train], y[train], qid=qid[train]).predict(X[test])
second = RankRLSCV(pairs=None).fit(X[train], y[train], qid=qid[train]).predict(X[test])
one, other = (
    evaluate("ndcg@10", y[test], scores, qid[test], per_query=True)["ndcg@10"]
    for scores in (first, second)
)
p = scipy.stats.ttest_rel(one, other, nan_policy="omit").pvalue
print(f"mean difference {np.nanmean(one - other):+.4f}, p = {p:.2f} by a paired t test")
plots.differences(one, other, ("pairs", "rows"), "NDCG@10")
