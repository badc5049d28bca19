"""What is written after a command, and its help, as argparse reads and prints them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable
from contextlib import suppress
from textwrap import indent
from typing import Any, NoReturn

from pairgram._support.files import printable
from pairgram._support.parameters import check_setting
from pairgram.cli.table_of_commands import ABOUT, COMMANDS, SHORT, Option, options_of
from pairgram.cli.values import parse_grid, parse_names

# A command with more options than these shows the first ones, and all with --help-all.
FEW_OPTIONS = 20
# What makes values of texts, by what the values look like.
NUMBERS: dict[str, Any] = {"N": int, "SECONDS": float}
LISTS: dict[str, Any] = {"GRID": parse_grid, "A,B,...": parse_names}


class Parser(ArgumentParser):
    """A parser whose errors are raised, for one line without the usage."""

    def __init__(self, usage: str, description: str, epilog: str) -> None:
        super().__init__(
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=RawDescriptionHelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raise a ValueError."""
        raise ValueError(message)


def parser_of(name: str, everything: bool = True) -> Parser:
    """Return the parser of a command; of many options its help has only the first, unless asked."""
    command, options = COMMANDS[name], options_of(name)
    short = len(options) > FEW_OPTIONS and not everything
    needed = [f"{one.flag} {one.value}" for one in options if one.is_needed_by(name)]
    about, examples = command.summary, ""
    if not short:
        about += f"\n\n{command.text}"
        examples = f"examples:\n{indent(command.examples, '  ')}"
    usage = " ".join(["pairgram", name, *command.arguments, *needed, "[options]"])
    parser = Parser(usage, about, examples)
    for argument, text in command.arguments.items():
        many = "+" if argument.endswith("...") else None
        word = argument.strip(".")
        parser.add_argument(word.lower(), metavar=word, nargs=many, help=text)
    for option in options:
        is_hidden = short and option.flag[2:] not in SHORT.split()
        kind: dict[str, Any] = {"action": "store_true"}
        if option.value:
            kind = {"action": "append", "metavar": option.value, "default": []}
        parser.add_argument(
            *option.names,
            dest=option.parameter,
            help=SUPPRESS if is_hidden else option.text.replace("%", "%%"),
            **kind,
        )
    if short:
        more = f"Print all {len(options)} options, of which some are named here, and what it does."
        parser.add_argument("--help-all", help=more, action="store_true")
    return parser


def parser_of_all() -> Parser:
    """Return the parser of ``pairgram``, for its help."""
    what = "Learning to rank from one small matrix: pairwise least squares on files of rows."
    parser = Parser("pairgram COMMAND ...", what, ABOUT)
    commands = parser.add_argument_group("commands")
    for name, command in COMMANDS.items():
        commands.add_argument(name, help=command.summary)
    parser.add_argument("--version", help="Print the version.", action="store_true")
    parser.add_argument("-h", "--help", help="Print help, also of a command.", action="store_true")
    return parser


def parsed(command: str, given: list[str]) -> Namespace:
    """Return what is written after a command.

    The attributes are the arguments and the options, by the names of their parameters. ``settings``
    has those of models, and ``columns`` those of tables, if they are given.
    """
    options, parser = options_of(command), parser_of(command)
    found, others = parser.parse_known_intermixed_args(given)
    for word in others:
        if word.startswith("-"):
            raise unknown(
                "option", word.partition("=")[0], [flag for one in options for flag in one.names]
            )
    if others:  # most often what the shell makes of a pattern without quotes
        raise ValueError(
            f"Got unexpected extra argument ({' '.join(others)}): a pattern of files needs quotes, "
            "as in 'data/*.parquet'"
        )
    found.settings, found.columns = {}, {}
    for option in options:
        if not option.value:
            continue
        several = [_value(option, text) for text in getattr(found, option.parameter)]
        if not several and option.is_needed_by(command):
            raise ValueError(f"{command} needs {option.flag} {option.value}")
        if len(several) > 1 and not option.many:
            raise ValueError(f"{option.flag} is given {len(several)} times, want it once")
        one = (several if option.many else several[0]) if several else option.default
        setattr(found, option.parameter, one)
        if several and (option.models or option.of_tables):
            (found.settings if option.models else found.columns)[option.parameter] = one
    return found


def _value(option: Option, text: str) -> Any:
    """Return the value of an option that a text stands for."""
    if not text:  # most often a variable of a shell that is not set
        raise ValueError(f"{option.flag} needs a value: {option.flag} {option.value}")
    if option.value in LISTS:
        return LISTS[option.value](text, option.flag)
    value: Any = text
    with suppress(ValueError):  # the setting refuses the text
        value = NUMBERS[option.value](text) if option.value in NUMBERS else text
    if option.setting is not None:
        check_setting(option.flag, value, option.setting)
    return None if option.many and value == "none" else value


def unknown(what: str, name: str, known: Iterable[str]) -> ValueError:
    """Return the error for an unknown name, which asks for the likely one."""
    from pairgram._support.checks import did_you_mean

    return ValueError(f"No such {what} {printable(name)!r}{did_you_mean(name, known)}")
