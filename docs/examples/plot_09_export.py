"""
Into a search engine, and checked
=================================

An engine computes in float32. `export.verify` scores rows as the engine would, and counts the
queries whose order changes.
"""

import json

import matplotlib.pyplot as plt
import numpy as np

from pairgram import RandomNodes, RankRLS, RankRLSCV, export, make_ranking

X, y, qid = make_ranking(80, 15, 5, random_state=0)
names = ["bm25", "title_bm25", "price", "age", "clicks"]
model = RankRLSCV().fit(X, y, qid=qid)
body = export.to_solr(model, "m1", store="s1", features=names)
print(json.dumps(body["params"], indent=1))
print(export.verify(body, model, X, qid))

# %%
# Hidden nodes become a neural network of Solr.

nodes = RankRLS(feature_map=RandomNodes(50, activation="sigmoid", random_state=0))
nodes.fit(X, y, qid=qid)
network = export.to_solr(nodes, "m2", features=names)
print(export.verify(network, nodes, X, qid))

# %%
# What float32 changes, beside the scores themselves:

weights = body["params"]["weights"]
single = sum(X[:, j].astype(np.float32) * np.float32(weights[name]) for j, name in enumerate(names))
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.scatter(model.predict(X), single - model.predict(X), s=4, color="#0072B2")
ax.set(xlabel="score", ylabel="Solr's score − score")
