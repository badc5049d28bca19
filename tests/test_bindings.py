"""The compiled code takes what fits, and copies nothing; `refusals/bindings.txt` has the rest."""

import numpy as np
import pytest

from pairgram import _core
from refusals.values import N, call, format_letor, functions

# The class stands for what takes a problem: its constructor makes the checks.
CALLS = ("RankingProblem", "gram", "cross_hold_out", "evaluate_metrics")


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_fit(name):
    call(name)
    call(name, order=np.arange(N)[::-1].copy())
    if name in ("gram", "cross_hold_out"):
        call(name, pairs="omega", labels=np.ones(N))
        levels = {"level_values": np.array([-1.0, 0.0, 1.0, 2.0]), "omega": np.ones((4, 4))}
        call(name, pairs="omega", **levels)


def test_rows_of_files_and_knots_that_fit():
    assert format_letor() == b"0 1:1 2:1\n0 1:1\n"
    assert format_letor(first=1, n_rows=1) == b"0 1:1\n"
    assert format_letor(first=2, n_rows=0) == b""
    functions()


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        (b"a", True),
        ("é".encode(), True),
        ("\ud7ff".encode(), True),
        (b"\xed\xa0\x80", False),  # a surrogate
        ("\U0010ffff".encode(), True),
        (b"\xf4\x90\x80\x80", False),  # above the last character
        (b"\xe0\x9f\xbf", False),  # longer than need be
        (b"\xf0\x8f\xbf\xbf", False),
        (b"\xc1\xbf", False),
        (b"\xc3", False),  # cut off
        ("\u3000".encode(), False),  # a blank
        (b"a#", False),
        (b"1:2", False),
        (b"a:2", True),
        (b"", False),
    ],
)
def test_letor_ids_are_text(text, is_id):
    assert _core.is_letor_id(text) is is_id
