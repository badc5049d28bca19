"""Ranking metrics as their definitions read: loops over documents, pairs and orders of ties."""

import itertools
import math
from fractions import Fraction
from statistics import fmean


def orders(y, f, ties):
    """All rankings (lists of row numbers) that a treatment of ties allows."""
    if ties == "order":
        return [sorted(range(len(y)), key=lambda i: -f[i])]
    if ties == "worst":
        return [sorted(range(len(y)), key=lambda i: (-f[i], y[i]))]
    runs = [[i for i in range(len(y)) if f[i] == s] for s in sorted(set(f), reverse=True)]
    products = itertools.product(*(itertools.permutations(run) for run in runs))
    return [[i for run in product for i in run] for product in products]


def gain_of(label, gain):
    return 2.0**label - 1 if gain == "exp2" else float(label)


def weight(i, discount):
    """Weight of position i = 1, 2, …"""
    if discount == "log2":
        return 1 / math.log2(1 + i)
    return 1.0 if i <= 2 else 1 / math.log2(i)


def dcg(labels, k, gain, discount):
    return sum(gain_of(v, gain) * weight(i, discount) for i, v in enumerate(labels[:k], 1))


def one_ranking(
    family,
    labels,
    unranked=(),
    *,
    k,
    gain,
    discount,
    empty,
    relevant,
    divisor,
    max_grade,
    alpha,
    persistence,
):
    """The metric of labels in ranked order; documents of the labels `unranked` have no rank."""
    everything = [*labels, *unranked]
    n, cut = len(everything), len(everything) if k is None else k
    hits = [v >= relevant for v in labels]
    total = sum(v >= relevant for v in everything)
    best = sorted(everything, reverse=True)
    if family == "ndcg_linear":
        family, gain = "ndcg", "linear"
    if family == "ips_dcg":
        family, gain = "dcg", "linear"
    if family == "dcg":
        return dcg(labels, cut, gain, discount)
    if family in ("ndcg", "mean_ndcg"):
        if not any(gain_of(v, gain) > 0 for v in everything):
            return empty
        cuts = [cut] if family == "ndcg" else range(1, n + 1)
        return fmean(dcg(labels, c, gain, discount) / dcg(best, c, gain, discount) for c in cuts)
    if family == "p":
        return sum(hits[:cut]) / cut
    if family == "err":
        value, reach = 0.0, 1.0
        for i, v in enumerate(labels[:cut], 1):
            stop = (2.0**v - 1) / 2.0**max_grade
            value += reach * stop / i
            reach *= 1 - stop
        return value
    if family == "rbp":
        return (1 - persistence) * sum(hit * persistence**i for i, hit in enumerate(hits[:cut]))
    if total == 0:
        return empty
    if family == "rprec":
        return sum(hits[:total]) / total
    if family == "hit_rate":
        return float(any(hits[:cut]))
    if family == "ef":
        first = math.ceil(Fraction(k) * n / 100)
        return (sum(hits[:first]) / first) / (total / n)
    if family == "bedroc":
        if total == n:
            return 1.0
        powers = [math.exp(-alpha * i / n) for i in range(1, n + 1)]
        rie, high, low = (
            math.fsum(ranks) / total / fmean(powers)
            for ranks in (itertools.compress(powers, hits), powers[:total], powers[-total:])
        )
        return (rie - low) / (high - low)
    if family == "recall":
        return sum(hits[:cut]) / total
    if family == "mrr":
        return next((1 / i for i, hit in enumerate(hits[:cut], 1) if hit), 0.0)
    if family == "map":
        last = min(cut, len(hits))
        found = [sum(hits[:i]) / i for i in range(1, last + 1) if hits[i - 1]]
        return math.fsum(found) / (min(cut, total) if divisor == "cut" else total)
    raise AssertionError(family)


def top(family, y, f, ties, **options):
    """The mean over the rankings that `ties` allows; NaN for a query without rows.

    Documents whose score is NaN have no rank.
    """
    if not len(y):
        return math.nan
    unranked = [label for label, score in zip(y, f, strict=True) if score != score]
    y, f = [label for label, s in zip(y, f, strict=True) if s == s], [s for s in f if s == s]
    value = fmean(
        one_ranking(family, [y[i] for i in order], unranked, **options)
        for order in orders(y, f, ties)
    )
    return max(value, 0.0) if family == "bedroc" else value


def sign(x):
    return (x > 0) - (x < 0)


def mean_ranks(values):
    return [sum(v < u for v in values) + (sum(v == u for v in values) + 1) / 2 for u in values]


def pairs(family, y, f):
    """Metrics over pairs of rows."""
    n = len(y)
    if family in ("pairwise_squared_error", "pairwise_absolute_error"):
        if n < 2:
            return math.nan
        power = 2 if family == "pairwise_squared_error" else 1
        terms = [abs((y[i] - y[j]) - (f[i] - f[j])) ** power for i in range(n) for j in range(n)]
        return math.fsum(terms) / n**2
    if family == "pearson":
        if not n or len(set(y)) == 1 or len(set(f)) == 1:
            return math.nan
        dy, df = ([v - fmean(values) for v in values] for values in (y, f))
        cov = math.fsum(a * b for a, b in zip(dy, df, strict=True))
        return cov / math.sqrt(math.fsum(a * a for a in dy) * math.fsum(b * b for b in df))
    if family == "auc":
        pairs = [(f[i], f[j]) for i in range(n) for j in range(n) if y[i] >= 1 > y[j]]
        return fmean((a > b) + (a == b) / 2 for a, b in pairs) if pairs else math.nan
    below = [(i, j) for i in range(n) for j in range(i)]
    if family == "spearman":
        ry, rf = mean_ranks(y), mean_ranks(f)
        vy = sum((r - (n + 1) / 2) ** 2 for r in ry)
        vf = sum((r - (n + 1) / 2) ** 2 for r in rf)
        cov = sum((a - (n + 1) / 2) * (b - (n + 1) / 2) for a, b in zip(ry, rf, strict=True))
        return cov / math.sqrt(vy * vf) if vy * vf else math.nan
    if family == "kendall":
        both = sum(sign(y[i] - y[j]) * sign(f[i] - f[j]) for i, j in below)
        untied_y = sum(y[i] != y[j] for i, j in below)
        untied_f = sum(f[i] != f[j] for i, j in below)
        return both / math.sqrt(untied_y * untied_f) if untied_y * untied_f else math.nan
    if family == "ranking_error":
        if n < 2:
            return math.nan
        terms = [
            abs(y[i] - y[j]) * (0.5 if f[i] == f[j] else float((y[i] > y[j]) != (f[i] > f[j])))
            for i, j in below
        ]
        return math.fsum(terms) / (n * (n - 1) / 2)
    losses = [
        0.5 if f[i] == f[j] else float((y[i] > y[j]) != (f[i] > f[j]))
        for i, j in below
        if y[i] != y[j]
    ]
    if not losses:
        return math.nan
    return fmean(losses) if family == "misranking" else 1 - fmean(losses)
