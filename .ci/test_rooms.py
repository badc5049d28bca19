"""What goes with a room is what names it, and no more."""

import ast
import re

import pytest
import rooms

HELPER = """
from pairgram import Clicks, RankRLS, clicks

SEEN = Clicks([1.0], [1.0])
PLAIN = RankRLS()
__all__ = ["PLAIN", "SEEN"]
"""
TESTS = '''"""Tests."""
import pairgram as pg
from helper import PLAIN, SEEN
from parts.clicks import simulation
from pairgram import RankRLS


def test_plain():
    assert PLAIN is not RankRLS()


def test_seen(seen):
    assert SEEN is seen


def test_drawn():
    assert pg.clicks.simulate()


def test_words():
    assert "pairgram train --propensity p" and "clicksand"
'''


def test_statements_that_name_a_room_go_with_all_that_they_bind():
    names = rooms.names_of("clicks")
    text, lost = rooms.without(HELPER, names, "clicks", {}, "")
    assert lost == {"Clicks", "clicks", "SEEN"}
    assert text == "from pairgram import RankRLS\nPLAIN = RankRLS()\n__all__ = ['PLAIN']"
    text, lost = rooms.without(TESTS, names, "clicks", {"helper": lost}, "")
    assert lost == {"SEEN", "simulation", "test_seen", "test_drawn", "test_words"}
    assert [node.name for node in ast.parse(text).body if hasattr(node, "name")] == ["test_plain"]


def test_a_name_that_is_also_a_room_is_none():
    text = "def test():\n    lists = [1]\n    return lists"
    assert rooms.without(text, rooms.names_of("lists"), "lists", {}, "")[1] == set()
    for use in ("pg.lists", "pairgram.lists.fusion"):
        told = f"def test():\n    return {use}"
        assert rooms.without(told, rooms.names_of("lists"), "lists", {}, "")[1] == {"test"}


def test_words_within_words_are_none():
    text = "def test():\n    assert 'clicksand' != 'auto' and lists"
    assert rooms.without(text, rooms.names_of("clicks"), "clicks", {}, "")[1] == set()
    assert rooms.without(text, rooms.names_of("auto"), "auto", {}, "")[1] == {"test"}


@pytest.mark.parametrize("room", rooms.ROOMS)
def test_only_its_entry_leaves_the_table(room, tmp_path):
    for name in ("src/pairgram/_rooms.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((rooms.ROOT / name).read_text())
    (tmp_path / "tests/refusals").mkdir(parents=True)
    for name in (f"{room}.txt", f"{room}-other.txt", "other.txt"):
        (tmp_path / "tests/refusals" / name).write_text("f(x) | | no\n")
    rooms.delete(tmp_path, room)
    left = rooms.runpy.run_path(str(tmp_path / "src/pairgram/_rooms.py"))["ROOMS"]
    assert left.keys() == rooms.ROOMS.keys() - {room}
    assert [path.name for path in (tmp_path / "tests/refusals").iterdir()] == ["other.txt"]
    text = (tmp_path / "pyproject.toml").read_text()
    assert f"\n{room} = [" not in text and not re.search(rf"[\[,]{room}[\],]", text)
