"""Trees of other packages that grow on the loss of pairs, and start where a linear model ends.

`objective` is the loss of `RankRLS` for LightGBM and XGBoost. `starts` holds queries out of a
linear model and of the trees that correct it, both alike.
"""

from pairgram.trees.objective import PairwiseObjective, objective
from pairgram.trees.starts import Start, starts

__all__ = ["PairwiseObjective", "Start", "objective", "starts"]
