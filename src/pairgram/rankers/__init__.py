"""The estimators: `base.LinearRanker`, least squares, ELMs, RankSVM, and `fit_many`.
`load` reads their files; `known` finds their classes by name.
"""
