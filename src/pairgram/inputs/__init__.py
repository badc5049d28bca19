"""Inputs: scaled columns and distribution functions of columns, which act before all else.

This folder may import `_support`.
"""
