"""
Rank compounds by their fingerprints
====================================

Compounds are compared within an assay only. A kernel needs nothing but similarities, and each assay
is held out exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairgram import Kernel, RankRLSCV, plots

rng = np.random.default_rng(0)
prints = rng.random((240, 128)) < 0.15
prints[:, :20] |= rng.random((240, 1)) < 0.3  # a scaffold that some compounds share
assay = np.arange(240) // 20
activity = prints[:, :10].sum(axis=1) - prints[:, 100:104].sum(axis=1) + rng.normal(size=240)
activity += 5 * rng.normal(size=12)[assay]  # assays have levels of their own

model = RankRLSCV(feature_map=Kernel("tanimoto"), scoring="kendall")
model.fit(prints.astype(float), activity, qid=assay)
print(f"Kendall's tau of assays that the model has not seen: {model.best_score_:.2f}")
plots.scores(model)

# %%
# Widths of an rbf kernel on the same bits:

kernels = [Kernel("rbf", gamma=gamma) for gamma in (0.01, 0.03, 0.1, 0.3)]
search = RankRLSCV(feature_map=kernels, scoring="kendall")
search.fit(prints.astype(float), activity, qid=assay)

ax = plt.subplots()[1]
table = search.to_frame().sort_values("param_alpha")
for gamma, own in table.groupby(table["param_feature_map"].map(lambda kernel: kernel.gamma)):
    ax.semilogx(own["param_alpha"], own["mean_test_score"], label=f"gamma = {gamma:g}")
ax.set(xlabel="alpha", ylabel="kendall")
ax.legend()
