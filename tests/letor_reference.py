"""A slow, obvious reader of LETOR files, which shares nothing with the compiled code."""

from __future__ import annotations

import math
import re
import unicodedata
from fractions import Fraction

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(rb"-?[1-9][0-9]*|0")


class WrongLine(Exception):
    """Line number and reason of the first wrong line; line 0 where there is no row."""


def to_float32(text):
    """Return the float32 nearest to a decimal text, ties to even, inf beyond the range."""
    exact = Fraction(text)
    near = np.float32(min(max(float(text), -3.4028234663852886e38), 3.4028234663852886e38))
    limit = Fraction(2) ** 128 - Fraction(2) ** 103
    if abs(exact) >= limit:
        return np.float32(math.inf if exact > 0 else -math.inf)
    steps = [np.nextafter(near, np.float32(s), dtype=np.float32) for s in (-3.4e38, 3.4e38)]
    candidates = [near, *(step for step in steps if np.isfinite(step))]
    best = min(abs(Fraction(float(c)) - exact) for c in candidates)
    ties = [c for c in candidates if abs(Fraction(float(c)) - exact) == best]
    even = [c for c in ties if c.view(np.uint32) % 2 == 0]
    return even[0] if len(ties) > 1 else ties[0]


def read_number(token):
    if NUMBER.fullmatch(token) is None or not math.isfinite(float(token)):
        raise ValueError(f"{token!r} is no finite number")
    return float(token)


def is_id(text):
    """Tell whether bytes may be an id."""
    try:
        name = text.decode()
    except UnicodeDecodeError:
        return False
    unseen = any(
        c.isspace() or unicodedata.category(c) == "Cc" or c in "\u200b\ufeff" for c in name
    )
    feature = re.search("[0-9]:", name)
    return 1 <= len(text) <= 255 and not unseen and not feature and "#" not in name


def read_row(text, zero_based, n_features):
    """Return (label, id or None, {feature: value}) of a line without its comment."""
    tokens = re.split(rb"[ \t]+", text.strip(b" \t"))
    label = read_number(tokens.pop(0))
    qid = None
    if tokens and tokens[0].startswith(b"qid:"):
        qid = tokens.pop(0)[4:]
        if not is_id(qid):
            raise ValueError("wrong id")
        qid = qid.decode()
    features = {}
    for token in tokens:
        index, colon, value = token.partition(b":")
        if not colon or re.fullmatch(rb"[0-9]+", index) is None:
            raise ValueError("wrong feature")
        feature = int(index) - (not zero_based)
        limit = 2**31 - 1 if n_features is None else n_features
        if not 0 <= feature < limit or (features and feature <= max(features)):
            raise ValueError("wrong index")
        features[feature] = read_number(value)
    return label, qid, features


def read(data, *, zero_based=False, n_features=None):
    """Return (rows of {feature: value}, labels, ids or None, comments) or raise WrongLine."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    rows, labels, ids, comments = [], [], [], []
    for number, line in enumerate(lines, 1):
        try:
            text, _, comment = line.removesuffix(b"\r").partition(b"#")
            if b"\0" in comment:
                raise ValueError("NUL in a comment")
            if not text.strip(b" \t"):
                continue
            label, qid, features = read_row(text, zero_based, n_features)
            if ids and (ids[0] is None) != (qid is None):
                raise ValueError("ids in some rows")
            comment = comment.strip(b" \t").decode()
        except ValueError as error:
            raise WrongLine(number, str(error)) from None
        rows.append(features)
        labels.append(label)
        ids.append(qid)
        comments.append(comment)
    if not rows:
        raise WrongLine(0, "no row")
    if ids[0] is None:
        return rows, labels, None, comments
    if all(INTEGER.fullmatch(qid.encode()) and -(2**63) <= int(qid) < 2**63 for qid in ids):
        ids = [int(qid) for qid in ids]
    return rows, labels, ids, comments


def dense(rows, n_features=None, dtype=np.float64):
    """Return the rows as a matrix."""
    if n_features is None:
        n_features = max((max(row) + 1 for row in rows if row), default=0)
    X = np.zeros((len(rows), n_features), dtype=dtype)
    for i, row in enumerate(rows):
        for feature, value in row.items():
            X[i, feature] = value
    return X
