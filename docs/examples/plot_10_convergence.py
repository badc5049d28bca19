"""
RankSVM takes a handful of steps
================================

The pairgram is close to the Hessian of the squared hinge, so it preconditions the Newton solver.
"""

import matplotlib.pyplot as plt

from pairgram import RandomFourier, RankSVM, make_ranking

X, y, qid = make_ranking(200, 30, 10, random_state=0)
models = {
    "linear, C = 0.01": RankSVM(C=0.01, tol=1e-8),
    "linear, C = 1": RankSVM(C=1.0, tol=1e-8),
    "200 Fourier features": RankSVM(
        C=0.01, tol=1e-8, feature_map=RandomFourier(200, random_state=0)
    ),
}
for name, model in models.items():
    model.fit(X, y, qid=qid)
    print(f"{name:>22}: {model.n_iter_} steps, {model.n_hessian_products_} Hessian products")
    plt.semilogy(model.history_["relative_gradient"], marker="o", label=name)
plt.xlabel("Newton step")
plt.ylabel("gradient / first gradient")
plt.legend(frameon=False)
