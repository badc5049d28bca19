"""Products of two groups of columns, such as people × items, which are never made. Interactions
become rows, and models of products recommend.
"""
