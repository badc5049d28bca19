"""Model files: their format, and what each kind of file must hold.

This folder may import `feature_maps`, `kernels`, `preferences` and `_support`.
"""
