"""
Let held-out queries scale the columns
======================================

Columns of odd shapes hurt a linear ranker. Quantiles bend a column so that equal steps hold equally
many rows. A search that gets a list of feature maps chooses.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairgram import RankRLSCV, evaluate, make_ranking

X, y, qid = make_ranking(120, 20, 6, random_state=0)
skewed = np.exp(6 * X)  # what a column of prices or counts looks like
train, test = qid < 80, qid >= 80

model = RankRLSCV(feature_map=[None, "standard", "quantile", "raw+quantile"])
model.fit(skewed[train], y[train], qid=qid[train])
plain = RankRLSCV().fit(skewed[train], y[train], qid=qid[train])
for name, one in (("as they are", plain), (repr(model.feature_map_), model)):
    found = evaluate("ndcg@10", y[test], one.predict(skewed[test]), qid[test])
    print(f"{name:>12}: NDCG@10 {found['ndcg@10']:.3f}")

# %%
# The best mean of each of the inputs, over all ridges:

results = model.cv_results_
kinds = [str(one["feature_map"]) for one in results["params"]]
best = {
    kind: max(s for k, s in zip(kinds, results["mean_test_score"], strict=True) if k == kind)
    for kind in dict.fromkeys(kinds)
}
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(list(best), list(best.values()), color="#0072B2")
ax.set(xlabel="held-out NDCG@10", xlim=(min(best.values()) - 0.02, max(best.values()) + 0.01))
