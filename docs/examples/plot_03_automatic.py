"""
A ranker without settings
=========================

`AutoRanker` tries linear models of the columns and of their quantiles, then Fourier features and
kernels. It ends within a budget of seconds, and stops earlier where further trials promise nothing.
"""

import numpy as np

from pairgram import AutoRanker, make_ranking

X, y, qid = make_ranking(50, 15, 4, random_state=1)
hidden = y + 2 * np.sin(6 * X[:, 0]) * X[:, 1]
y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.7, 0.85, 0.95]))
model = AutoRanker(time_budget=3.0, random_state=0).fit(X, y, qid=qid)
for features, inputs, score, outcome in zip(
    *(model.trials_[name] for name in ("features", "inputs", "score", "outcome")), strict=True
):
    if np.isfinite(score):
        print(f"{features!s:>36} {inputs!s:>13} {score:.3f} {outcome}")
