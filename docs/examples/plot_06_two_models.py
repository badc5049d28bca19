"""
Are two models different?
=========================

A difference of means says little without the queries behind it. `compare` tests it by random
assignments of signs, and corrects for the number of pairs.
"""

from pairgram import RankRLSCV, compare, make_ranking, plots

X, y, qid = make_ranking(150, (5, 25), 10, random_state=2)
train, test = qid < 90, qid >= 90
models = {"pairs": RankRLSCV(pairs="gain_difference"), "rows": RankRLSCV(pairs=None)}
scores = {
    name: model.fit(X[train], y[train], qid=qid[train]).predict(X[test])
    for name, model in models.items()
}
scores["first column"] = X[test, 0]
result = compare(y[test], qid[test], scores, "ndcg@10")
print(result)

# %%
# Query by query:

plots.differences(result, ("pairs", "rows"))
