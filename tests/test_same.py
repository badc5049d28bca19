"""What ``python -m tests.same`` calls a difference; ``.ci/same`` runs it for a revision."""

import numpy as np
import pytest

from axes import every
from same import archive, public
from same.__main__ import compare

RESULTS = {
    "one/a -> coef_": np.array([1.0, -2.0, np.nan]),
    "one/a -> predict": np.array([3.0], dtype=np.float32),
    "one/b -> text": "weights 1.5 and 2.5 of 3",
    "two -> rank": np.array([1, 2]),
}


def _found(changed, allowed=()):
    """Return counts and names of what has no reason."""
    counts, unexplained, _ = archive.compare(RESULTS, RESULTS | changed, list(allowed))
    return counts, [name for name, _ in unexplained]


def test_equal_results_have_no_difference():
    counts, unexplained = _found({})
    assert not unexplained
    assert [(c.equal, len(c.configurations)) for c in counts.values()] == [(3, 2), (1, 1)]


@every(
    changed=[
        {"one/a -> coef_": np.array([1.0, -2.0 - 4e-9, np.nan])},
        {"one/a -> coef_": np.array([1.0, -2.0, 0.0])},
        {"one/a -> coef_": np.array([1.0, -2.0])},
        {"one/a -> predict": np.array([3.0])},
        {"one/b -> text": "weights 1.5 and 2.5 of 4"},
        {"one/b -> text": "weights 1.5 and 2.50001 of 3"},
        {"one/b -> text": np.array(1.0)},
        {"two -> rank": np.array([2, 1])},
        {"two -> more": np.array(1.0)},
    ]
)
def test_what_differs_is_found(changed):
    assert _found(changed)[1] == list(changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"one/a -> coef_": np.array([1.0, -2.0 - 1e-9, np.nan])},
        {"one/b -> text": "weights 1.5000000000000002 and 2.5 of 3"},
    ],
    ids=str,
)
def test_rounding_errors_are_counted(changed):
    counts, unexplained = _found(changed)
    assert not unexplained and counts["one"].close == 1


def test_an_error_stands_for_all_results_that_it_took_away():
    old = {
        "a -> 0.0.coef_": np.ones(2),
        "a -> 0.0.text": "x",
        "a -> 1.0.text": "y",
        "a -> keys": "k",
    }
    new = {"a -> 0.0.error": "no model", "a -> 1.0.text": "y", "a -> keys": "k"}
    assert [name for name, _ in archive.compare(old, new, [])[1]] == ["a -> 0.0.error"]
    failed = {"a -> error": "ValueError"}
    assert [name for name, _ in archive.compare(old, failed, [])[1]] == ["a -> error"]


def test_reasons_are_those_of_the_revision_and_must_be_needed(tmp_path, capsys):
    old, new, reasons = (tmp_path / name for name in ("old", "new", "reasons.toml"))
    nested = {"one/a": {"coef_": np.ones(2), "text": "x"}}
    archive.write(old, nested, "0123456789")
    archive.write(new, {"one/a": {"coef_": np.zeros(2), "text": "x"}}, "")
    entry = '[[0123456]]\nconfiguration = "one/*"\nresult = "coef_"\nreason = "It was wrong."\n'
    reasons.write_text(entry)
    assert compare(old, new, reasons, False) == 0
    assert compare(old, old, reasons, False) == 1  # nothing differs
    reasons.write_text(entry.replace("0123456", "9999999"))
    assert compare(old, new, reasons, False) == 1
    assert "one/a -> coef_: numbers 1.0e+00" in capsys.readouterr().out


def test_older_names_are_used_where_there_are_no_newer_ones(monkeypatch):
    class Older:
        def __init__(self, ties="kept"):
            self.ties = ties

    monkeypatch.setattr(public, "RENAMED", {"pairs": "ties", "pairs=all": "ties=kept"})
    monkeypatch.setattr(public, "_words", set)
    assert public.Public(Older)(pairs="all").ties == "kept"
    assert public.attribute(Older("dropped"), "pairs") == "dropped"
    assert public.in_later_words("all but ties=kept") == "all but pairs=all"

    monkeypatch.setattr(public, "_words", lambda: {"all"})
    assert public.Public(Older)(pairs="all").ties == "all"
