"""``pairgram``: reads what is written, prints help, runs a command, and says what is wrong."""

from __future__ import annotations

import io
import os
import signal
import sys
from functools import partial
from importlib import import_module

from pairgram._support.files import naming, shown
from pairgram.cli.parsing import parsed, parser_of, parser_of_all, unknown
from pairgram.cli.report import print_lines, warn
from pairgram.cli.table_of_commands import COMMANDS, OPTIONS, options_of

# The signals that ask a process to end. Windows has no SIGHUP.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


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
        print_lines([parser_of_all().format_help().rstrip()])
    elif name == "--version":
        import pairgram

        print_lines([f"pairgram {pairgram.__version__}"])
    elif name not in COMMANDS:
        raise unknown("option" if name.startswith("-") else "command", name, COMMANDS)
    elif everything := {"-h", "--help", "--help-all"}.intersection(given):
        print_lines([parser_of(name, "--help-all" in everything).format_help().rstrip()])
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
