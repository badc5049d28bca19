"""
Choose the ridge by held-out queries
====================================

A search scores every query by models that have not seen it, exactly and without a refit, for all
ridges at once.
"""

import matplotlib.pyplot as plt

from pairgram import RankRLSCV, make_ranking, plots

X, y, qid = make_ranking(60, (5, 20), 12, random_state=3)
model = RankRLSCV().fit(X, y, qid=qid)
print(f"alpha {model.alpha_:.3g}, held-out NDCG@10 {model.best_score_:.3f}")

# %%
# The band is the standard error of the mean over queries. It says how much of a difference between
# two ridges is chance.

plots.scores(model)

# %%
# The weights shrink as the ridge grows.

ax = plt.subplots()[1]
ax.semilogx(model.alphas_, model.coef_path_)
ax.axvline(model.alpha_, ls="--")
ax.set(xlabel="alpha", ylabel="weights")
