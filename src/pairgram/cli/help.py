"""The help of commands."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

from pairgram.cli.table_of_commands import ABOUT, COMMANDS, Option, options_of

# A command with more options than these shows the first ones, and all with --help-all.
FEW_OPTIONS = 20
WIDEST = 100


def of_all() -> Iterator[str]:
    """Yield the lines of the help of ``pairgram``."""
    yield "Usage: pairgram COMMAND ..."
    yield ""
    yield "Learning to rank from one small matrix: pairwise least squares on files of rows."
    yield ""
    rows = [(name, command.summary) for name, command in COMMANDS.items()]
    yield from _listed("Commands", rows)
    rows = [("--version", "Print the version."), ("-h, --help", "Print help, also of a command.")]
    yield from _listed("Options", rows)
    yield from _paragraphs(ABOUT)


def of_command(name: str, everything: bool) -> Iterator[str]:
    """Yield the lines of the help of a command; of many options only the first, unless asked."""
    command, options = COMMANDS[name], options_of(name)
    short = len(options) > FEW_OPTIONS and not everything
    needed = [f"{one.flag} {one.value}" for one in options if f"*{name}" in one.commands]
    yield " ".join(["Usage: pairgram", name, *command.arguments, *needed, "[OPTIONS]"])
    yield ""
    yield command.summary
    yield ""
    if not short:
        yield from _paragraphs(command.text)
    yield from _listed("Arguments", list(command.arguments.items()))
    rows = [(written(one), one.text) for one in options if one.first or not short]
    more = f"Print all {len(options)} options, what the command does, and examples."
    yield from _listed("Options", [*rows, *([("--help-all", more)] if short else [])])
    if command.examples and not short:
        yield "Examples:"
        yield from (f"  {line}" for line in command.examples.splitlines())


def written(option: Option) -> str:
    """Return how an option is written, the short form first: ``-o, --output FILE``."""
    flags = [flag for flag in option.flags.split() if flag[0] == "-"]
    return f"{', '.join(sorted(flags, key=len))} {option.value}".rstrip()


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of paragraphs; indented lines stay as they are."""
    for paragraph in text.split("\n\n"):
        if "\n  " in paragraph:
            yield from paragraph.splitlines()
        else:
            yield from textwrap.wrap(paragraph, _width(), break_on_hyphens=False)
        yield ""


def _listed(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of a list of names and what they are."""
    if not rows:
        return
    yield f"{title}:"
    indent = min(max(len(name) for name, _ in rows), 22) + 4
    for name, text in rows:
        first = f"  {name}".ljust(indent)
        if len(first) > indent:
            yield first
            first = " " * indent
        yield from textwrap.wrap(
            text,
            _width(),
            initial_indent=first,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
        )
    yield ""
