"""TREC's files of runs and judgements, and metrics of runs. Documents are known by their ids, and
values are those of trec_eval.
"""
