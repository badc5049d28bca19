"""``pairgram``: reads what is written, prints help, runs a command, and says what is wrong."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

from pairgram._support.files import naming, printable, shown
from pairgram._support.parameters import check_setting
from pairgram.cli.help import of_all, of_command
from pairgram.cli.report import print_lines, warn
from pairgram.cli.table_of_commands import COMMANDS, OPTIONS, Option, options_of
from pairgram.cli.values import parse_grid, parse_names

# The signals that ask a process to end. Windows has no SIGHUP.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
# What makes values of texts, by what the values look like.
NUMBERS: dict[str, Any] = {"N": int, "SECONDS": float}
LISTS: dict[str, Any] = {"GRID": parse_grid, "A,B,...": parse_names}


def main() -> None:
    """Run the command line and exit; errors are one line and exit code 2, never a traceback."""
    for number in ENDING:  # they raise, so that no temporary files are left behind
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # names that it cannot encode are no errors
    try:
        status = run(sys.argv[1:])
        with naming("standard output"):
            sys.stdout.flush()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Ctrl-C may strike where a lock of Python is half released.
        if not any(isinstance(one, KeyboardInterrupt) for one in (error, error.__context__)):
            raise
        warn("interrupted")
        status = 130
    except BrokenPipeError:  # the reader has stopped reading
        status = 1
    except (OSError, MemoryError, ImportError, ValueError) as error:
        if isinstance(error, ImportError) and error.name is not None:
            raise  # an error of Python, which does not say what to install
        warn(f"error: {' '.join(_words_of(error).split())}")
        status = 2
    try:
        sys.stdout.flush()
    except OSError:  # discards output that cannot be written, on which Python's exit would fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _words_of(error: Exception) -> str:
    if isinstance(error, OSError):
        file = "" if error.filename is None else f"{shown(error.filename)}: "
        return file + (error.strerror or str(error))
    return (
        f"not enough memory: {error}".rstrip(": ") if isinstance(error, MemoryError) else str(error)
    )


def run(given: list[str]) -> int:
    """Run what is written after ``pairgram``; return the exit code."""
    name = given[0] if given else "--help"
    if name in ("-h", "--help"):
        print_lines(of_all())
    elif name == "--version":
        import pairgram

        print_lines([f"pairgram {pairgram.__version__}"])
    elif name not in COMMANDS:
        raise ValueError(_unknown("option" if name[0] == "-" else "command", name, COMMANDS))
    elif everything := {"-h", "--help", "--help-all"}.intersection(given):
        print_lines(of_command(name, "--help-all" in everything))
    else:
        function = getattr(import_module(f"pairgram.cli.{COMMANDS[name].module}"), name)
        try:
            return function(parsed(name, given[1:])) or 0
        except ValueError as error:
            if hasattr(error, "spell"):  # an `ArgumentError`: it is to name options
                flags = {one.parameter: one.flag for one in (*OPTIONS, *options_of(name))}
                error.spell = partial(_as_option, flags)
            raise
    return 0


def parsed(command: str, given: list[str]) -> SimpleNamespace:
    """Return what is written after a command.

    The attributes are the arguments and the options, by the names of their parameters. ``settings``
    has those of models, and ``columns`` those of tables, if they are given.
    """
    options, written, rest = options_of(command), [], iter(given)
    by_flag = {flag: one for one in options for flag in one.flags.split() if flag[0] == "-"}
    found: dict[Option, list[Any]] = {one: [] for one in options}
    for word in rest:
        if word == "-" or not word.startswith("-"):
            written.append(word)
            continue
        flag, has_value, value = word.partition("=")
        if word[1] != "-":
            flag, has_value, value = word[:2], word[2:], word[2:]
        if flag not in by_flag:
            raise ValueError(_unknown("option", flag, by_flag))
        option = by_flag[flag]
        if option.value and not has_value:
            value = next(rest, "")
        if bool(option.value) != bool(value):
            wanted = f"needs a value: {option.flag} {option.value}"
            raise ValueError(
                f"{flag} {wanted if option.value else f'takes no value, got {value!r}'}"
            )
        found[option].append(_value(option, value))
    values = _arguments(command, written)
    settings: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for option, several in found.items():
        if len(several) > 1 and not option.many:
            raise ValueError(f"{option.flag} is given {len(several)} times, want it once")
        if not several and f"*{command}" in option.commands:
            raise ValueError(f"Missing option '{option.flag}'")
        one = (several if option.many else several[0]) if several else option.default
        values[option.parameter] = one
        if several and (option.models or option.of_tables):
            (settings if option.models else columns)[option.parameter] = one
    return SimpleNamespace(**values, settings=settings, columns=columns)


def _arguments(command: str, written: list[str]) -> dict[str, Any]:
    """Return the arguments of a command by their names."""
    names = COMMANDS[command].arguments
    needed = [name for name in names if name[0] != "["]
    found: list[Any] = [written] if written and needed and needed[0][-1] == "." else written
    if len(found) < len(needed):
        raise ValueError(f"Missing argument '{needed[len(found)]}'")
    if len(found) > len(names):  # most often what the shell makes of a pattern without quotes
        raise ValueError(
            f"Got unexpected extra argument ({' '.join(found[len(names) :])}): a pattern of files "
            "needs quotes, as in 'data/*.parquet'"
        )
    return {name.strip("[].").lower(): one for name, one in zip_longest(names, found)}


def _value(option: Option, text: str) -> Any:
    """Return the value of an option that a text stands for."""
    if option.value in LISTS:
        return LISTS[option.value](text, option.flag)
    value: Any = text or True
    with suppress(ValueError):  # the setting refuses the text
        value = NUMBERS[option.value](text) if option.value in NUMBERS else value
    if option.setting is not None:
        check_setting(option.flag, value, option.setting)
    return None if option.many and value == "none" else value


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    from pairgram._support.checks import did_you_mean

    return f"No such {what} {printable(name)!r}{did_you_mean(name, known)}"


def _as_option(flags: dict[str, str], name: str, value: str | None) -> str:
    """Return how errors of the library name an argument, and leave out words for Python alone."""
    if name not in flags:
        return name if value is None else f"{name}={value}" if name else ""
    value = "" if value in (None, "True") else value.strip("'")
    return f"{flags[name]} {value}".rstrip()


def _stop(number: int, frame: object) -> None:
    for one in ENDING:  # a second one, of either kind, must not end the cleaning up
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(128 + number)
