"""
How sure is the order, and what next?
=====================================

A model with a kernel is sure near the rows that it has seen, and unsure far from them. The next
rows to measure are those that may be best.
"""

import numpy as np
from matplotlib import pyplot as plt

from pairgram import Kernel, Preferences, RankRLS, RankRLSCV, plots, posterior, propose

rng = np.random.default_rng(1)
measured = np.concatenate([rng.uniform(0, 4, 14), rng.uniform(7, 8, 4)])
activity = np.sin(measured) + 0.3 * measured + 0.2 * rng.normal(size=18)

kernels = [Kernel("rbf", gamma=gamma) for gamma in (0.1, 0.3, 1.0)]
model = RankRLSCV(feature_map=kernels, scoring="evidence")
model.fit(measured[:, None], activity)
sure = posterior(model, measured[:, None], activity)

pool = np.linspace(0, 10, 201)
deviations = sure.std(pool[:, None], reference="training")
scores = model.predict(pool[:, None]) - model.predict(measured[:, None]).mean()
chosen = propose(sure, pool[:, None], 4)

plt.figure(figsize=(6.4, 3.6), layout="constrained")
low, high = scores - 1.96 * deviations, scores + 1.96 * deviations
plt.fill_between(pool, low, high, color="#0072B2", alpha=0.2, lw=0, label="95 % interval")
plt.plot(pool, scores, color="#0072B2", label="score")
plt.plot(measured, activity - activity.mean(), "k.", label="measured")
plt.plot(pool[chosen], scores[chosen], "*", color="#D55E00", ms=12, label="what to measure next")
plt.xlabel("a property of a compound")
plt.ylabel("activity, less its mean")
plt.legend(frameon=False)

# %%
# Votes of an arena say which models truly differ. The right side shows the ranks that each model
# may have. The best is 1 + the number of models that are known to be better. The worst is the
# number of models that are not known to be worse.

names = [f"model {letter}" for letter in "ABCDEFGHIJ"]
strength = np.linspace(1.0, -1.0, 10)
left = rng.integers(0, 10, 600)
right = (left + rng.integers(1, 10, 600)) % 10
left_wins = rng.random(600) < 1 / (1 + np.exp(strength[right] - strength[left]))
winner, loser = np.where(left_wins, left, right), np.where(left_wins, right, left)

votes = Preferences(winner, loser)
arena = posterior(RankRLS(1.0).fit(np.eye(10), votes), np.eye(10), votes)
plots.ranks(arena.rank_ranges(np.eye(10)), names)
