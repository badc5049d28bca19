"""
How many judged queries are enough
==================================

Judgements cost money. A learning curve shows what further queries would bring. Queries are added
whole; the statistics of further queries are added to those before, so that nothing is fitted anew.
"""

import matplotlib.pyplot as plt

from pairgram import RankRLS, learning_curve, make_ranking, plots

X, y, qid = make_ranking(150, (5, 25), 40, random_state=0)
curve = learning_curve(RankRLS(alpha=10.0), X, y, qid=qid, random_state=0)
print(curve)
plots.learning(curve)

# %%
# A strong ridge helps while queries are few:

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for alpha, colour in ((1.0, "#0072B2"), (1000.0, "#D55E00")):
    curve = learning_curve(RankRLS(alpha), X, y, qid=qid, random_state=0)
    ax.plot(curve.n_queries, curve.mean, marker="o", color=colour, label=f"alpha = {alpha:g}")
ax.set(xlabel="queries to learn from", ylabel=curve.metric)
ax.legend(frameon=False)
