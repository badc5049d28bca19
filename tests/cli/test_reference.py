"""The page of commands in the reference is made from the table of the command line."""

import runpy
from pathlib import Path

from pairgram.cli.table_of_commands import COMMANDS, OPTIONS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_that_of_the_table():
    made = runpy.run_path(str(DOCS / "command_reference.py"))["reference"]()
    assert (DOCS / "api" / "commands.md").read_text(encoding="utf-8") == made


def test_there_are_ten_commands():
    names = "train predict evaluate compare fuse recommend letor inspect export demo"
    assert [*COMMANDS] == names.split()


def test_every_option_is_of_a_command():
    for option in OPTIONS:
        commands = option.commands.replace("*", "").split()
        assert commands and {*commands} <= {*COMMANDS}, option.flags
