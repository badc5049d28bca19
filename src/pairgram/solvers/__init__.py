"""What minimizes: statistics of pairs and their ridge path, in primal and dual form, solvers with
constraints, and the Newton method of RankSVM. Scores of held-out rows are in `hold_out`.
"""
