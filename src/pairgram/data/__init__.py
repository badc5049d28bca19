"""The rows of a fit in memory: queries and their ids, weights of pairs, and `dataset.RankingData`,
which checks them. Graph Laplacians of the pairs are compiled.
"""
