"""
A model for each user, starting from everybody's
================================================

A user with few ratings is best served by everybody's model. One with many ratings has a taste of
their own. A prior gives both.
"""

import matplotlib.pyplot as plt
import numpy as np

from pairgram import RankRLS, evaluate, fit_many

rng = np.random.default_rng(0)
common = rng.normal(size=12)
ways = {"everybody's model": None, "own model": None, "own, from everybody's": None}
sizes = [4, 8, 16, 32, 64, 128]
quality = {name: [] for name in ways}
for size in sizes:
    users = []
    for _ in range(60):
        taste = common + 0.6 * rng.normal(size=12)
        X = rng.normal(size=(size + 40, 12))
        users.append((X, np.rint(X @ taste + rng.normal(size=size + 40))))
    rows = [(X[:size], y[:size]) for X, y in users]
    qid = np.repeat(np.arange(60), size)
    everybody = RankRLS(10.0).fit(*map(np.concatenate, zip(*rows, strict=True)), qid=qid)
    own = fit_many(RankRLS(10.0), rows).models
    both = fit_many(RankRLS(150.0), rows, prior=everybody).models
    for name, models in zip(ways, ([everybody] * 60, own, both), strict=True):
        found = [
            evaluate("kendall", y[size:], model.predict(X[size:]))["kendall"]
            for model, (X, y) in zip(models, users, strict=True)
        ]
        quality[name].append(np.nanmean(found))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, values), colour in zip(quality.items(), ("#767676", "#E69F00", "#0072B2"), strict=True):
    ax.plot(sizes, values, marker="o", color=colour, label=name)
ax.set(xscale="log", xlabel="ratings of a user", ylabel="Kendall's tau on other items")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
