"""Print results on standard output, and all else on standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any, NoReturn
from unicodedata import east_asian_width

import typer
from typer.core import TyperCommand, TyperGroup

from pairgram._support.files import naming, printable, shown
from pairgram._support.parameters import PARAMETERS, option_of

# typer does not export the base class of its usage errors. Its package depends on the version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
# The exit code after Ctrl-C, which typer returns itself.
INTERRUPTED = 130


# The help of a command with more options than these has a panel for each kind of option.
FEW_OPTIONS = 20
# The first are what people need first. Options that stand nowhere are of the model.
PANELS = {
    "First options": "output model scores run valid metric label qid features exclude missing "
    "time-budget",
    "Data": "one-query weight groups propensity qrels float32 sparse",
    "Model": "",
    "Output and machine": "convention json per-query help",
}


# Where standard output is no terminal, and the widest text that is not broken.
WIDEST, NARROWEST = 1000, 12


class Command(TyperCommand):
    """A command that refuses an option given twice, because it could use only the last one."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options; many of them stand in panels."""
        params = self.get_params(ctx)
        is_long = len(params) > FEW_OPTIONS
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        sections |= {name: [] for name in (PANELS if is_long else ("Options",))}
        for param in params:
            record = param.get_help_record(ctx)
            if record is None:
                continue
            title = "Options"
            if param.param_type_name == "argument":
                title = "Arguments"
            elif is_long:
                words = {option.lstrip("-") for option in param.opts}
                title = next((n for n, own in PANELS.items() if words & {*own.split()}), "Model")
            sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command line."""
        given = self.make_parser(ctx).parse_args(list(args))[2]
        for option in given:
            if given.count(option) > 1 and not option.multiple:
                raise ValueError(
                    f"{option.opts[0]} is given {given.count(option)} times, want it once"
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors of arguments name the options of their names."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            from pairgram._support.checks import ArgumentError

            if isinstance(error, ArgumentError):
                options = {one.name: one.opts[0] for one in self.params if one.opts[0][0] == "-"}
                error.spell = partial(_as_option, options)
            raise


class Commands(TyperGroup):
    """The group of commands. Errors are one line and exit code 2, never a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit; print errors of data, files and memory for the user."""
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
            with naming("standard output"):
                sys.stdout.flush()
        except _UsageError as error:
            _fail(_usage(error.format_message()))  # type: ignore[attr-defined]
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        except RuntimeError as error:  # of a lock that Ctrl-C found half released
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
            status = INTERRUPTED
        except BrokenPipeError:  # the reader has stopped reading
            _give_up_stdout()
            sys.exit(1)
        except OSError as error:
            _give_up_stdout()
            what = error.strerror or str(error)
            _fail(what if error.filename is None else f"{shown(error.filename)}: {what}")
        except MemoryError as error:
            _fail(f"not enough memory: {error}" if str(error) else "not enough memory")
        except ValueError as error:
            _fail(str(error))
        except ImportError as error:
            if error.name is not None:  # of Python; it does not say what to install
                raise
            _fail(str(error))
        if status == INTERRUPTED:
            warn("interrupted")
        sys.exit(status if isinstance(status, int) else 0)


def _as_option(options: dict[str, str], name: str, value: str | None) -> str:
    """Return how errors of the library name an argument, and leave out words for Python alone.

    `options` has the command's own, by the names of their arguments.
    """
    known = name in PARAMETERS and PARAMETERS[name].option
    option = option_of(name) if known else options.get(name)
    if option is None:
        return name if value is None else f"{name}={value}" if name else ""
    value = "" if value in (None, "True") else value.strip("'")
    return f"{option} {value}".rstrip()


def _usage(message: str) -> str:
    """Return typer's message without a word of the package that checks, and with what helps.

    Further arguments are most often what the shell makes of a pattern without quotes.
    """
    if message.startswith("Got unexpected extra argument"):
        return f"{message}: a pattern of files needs quotes, as in 'data/*.parquet'"
    return message.replace(": Value error, ", ": ", 1)


def _give_up_stdout() -> None:
    """Discard output that cannot be written, so that Python's exit does not fail on it again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> NoReturn:
    text = " ".join(line.strip() for line in message.splitlines())
    print(f"pairgram: error: {printable(text)}", file=sys.stderr)
    sys.exit(2)


def warn(message: str) -> None:
    """Print a note or a warning about the results on standard error."""
    print(f"pairgram: {printable(message)}", file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print results line by line. An error of writing names standard output."""
    with naming("standard output"):
        sys.stdout.writelines(f"{line}\n" for line in lines)


def print_json(value: object) -> None:
    """Print JSON. Numbers that are not finite become null, because JSON does not have them."""
    print_lines([json.dumps(_finite(value), indent=2, default=str)])


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str | None = None,
    footer: Sequence[Any] | None = None,
    cell: Callable[[Any], str] | None = None,
    n_keys: int = 1,
) -> None:
    """Print rows under column names, with numbers aligned right. Without names there is no head.

    A table that is wider than the terminal, or than $COLUMNS, is printed in several parts, each
    with some columns; a text that takes too much room alone is broken.

    Parameters
    ----------
    columns, rows, title
        The table. Cells may be anything that `show` takes.
    footer : sequence or None
        A last row below a blank line.
    cell : callable or None
        The function that returns the text of a cell. None takes `show`.
    n_keys : int
        The number of the first columns, which say what a row is, and are in every part.
    """
    knows = sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))  # a file or pipe has no width
    room = shutil.get_terminal_size().columns if knows else WIDEST
    if title is not None:
        print_lines(_broken(title, room))
    cells = [list(row) for row in rows]
    if not cells:  # which the title says
        return
    n_rows = len(cells) + bool(columns)
    cells += [] if footer is None else [list(footer)]
    made = []
    for i, values in enumerate(zip(*cells, strict=True)):
        is_number = all(isinstance(value, (int, float)) or value == "" for value in values)
        made.append(_Column([*columns[i : i + 1], *map(cell or show, values)], is_number))
    parts = [made[:n_keys]]
    for column in made[n_keys:]:
        if len(parts[-1]) == n_keys or _taken([*parts[-1], column]) <= room:
            parts[-1].append(column)
        else:
            parts.append([*made[:n_keys], column])
    for part in parts:
        while _taken(part) > room:
            longest = max(part, key=lambda column: 0 if column.is_number else column.width)
            if longest.is_number or longest.width <= NARROWEST:
                break
            longest.width -= 1
        lines = [_line(part, row) for row in zip(*(one.texts for one in part), strict=True)]
        if footer is not None:
            lines.insert(n_rows, "")
        if columns:
            lines.insert(1, " " + "─" * (_taken(part) - 1))
        print_lines(["", *lines])


class _Column:
    """A column of a table: the texts of its cells, after its name if the table has names."""

    def __init__(self, texts: list[str], is_number: bool) -> None:
        self.texts, self.is_number = texts, is_number
        self.width = max(map(_width, texts))

    def padded(self, text: str) -> str:
        blank = " " * (self.width - _width(text))
        return blank + text if self.is_number else text + blank


def _width(text: str) -> int:
    """Return how many columns of the terminal a text takes: wide characters take two."""
    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def _broken(text: str, width: int) -> list[str]:
    """Return the lines of a text, none of which is wider."""
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _taken(columns: list[_Column]) -> int:
    """Return how many columns of the terminal a table takes."""
    return sum(column.width + 2 for column in columns) - 1


def _line(columns: list[_Column], row: Sequence[str]) -> str:
    """Return a row of a table; texts that are wider than their column go on below it."""
    cells = [
        [text] if _width(text) <= column.width else _broken(text, column.width)
        for column, text in zip(columns, row, strict=True)
    ]
    lines = (
        " " + "  ".join(column.padded(text) for column, text in zip(columns, line, strict=True))
        for line in zip_longest(*cells, fillvalue="")
    )
    return "\n".join(line.rstrip() for line in lines)


def significant(value: object) -> str:
    """Return the text of a cell, with six digits for a float, however small it is."""
    return f"{value:.6g}" if isinstance(value, float) else show(value)


def show(value: object) -> str:
    """Return the text of a cell.

    A float has four decimals or digits. Other texts are yes and no, none, A:B for a range, and A+B
    for a mix.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        if 0 < abs(value) < 1e-3:
            return f"{value:.4g}"
        return f"{value:.4f}" if abs(value) < 1e5 else f"{value:.6g}"
    if isinstance(value, (list, tuple)):  # a range or a mix of names, written as in the options
        return ("+" if isinstance(value[0], str) else ":").join(map(significant, value))
    return printable(str(value))


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as ``1 row`` or ``2 rows``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def show_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of settings with one spelling for a whole column.

    The values of alpha, C and gamma are powers of two if all of a column are.
    """
    spelled = [dict(row) for row in rows]
    for name in ("alpha", "C", "gamma"):
        having = [row for row in spelled if row.get(name) is not None]
        column = show_alphas([row[name] for row in having])
        for row, text in zip(having, column, strict=True):
            row[name] = text
    return spelled


def show_alphas(alphas: Sequence[float]) -> list[str]:
    """Return ``2^7`` for 128.0 if all values are powers of two, else six digits of each."""
    parts = [math.frexp(alpha) for alpha in alphas]
    if all(fraction == 0.5 for fraction, _ in parts):
        return [f"2^{exponent - 1}" for _, exponent in parts]
    return [f"{alpha:.6g}" for alpha in alphas]


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error what is being done, if it is a terminal; yield what shows more."""

    def tell(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{printable(text)}\x1b[K", end="", file=sys.stderr, flush=True)

    tell(what)
    try:
        yield tell
    finally:
        tell("")


@contextmanager
def passes() -> Iterator[Callable[..., Any]]:
    """Yield a function that returns a table whose passes are shown on standard error.

    With ``counts=True`` that function makes a first pass, which counts the rows. Nothing is shown,
    and no pass is made, unless standard error is a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda table, counts=True: table
        return
    number, start = 0, 0.0
    with working("") as tell:

        def watch(table: Any, counts: bool = True) -> Any:
            n_rows: int | None = None
            done = 0

            def advance(n: int) -> None:
                nonlocal done, number, start
                if done == 0:
                    number, start = number + 1, time.monotonic()
                done += n
                seconds = time.monotonic() - start
                speed = done / max(seconds, 1e-3)
                of = "" if n_rows is None else f" of {n_rows:,}"
                left = "" if n_rows is None else f", {(n_rows - done) / speed:.0f} s left"
                tell(f"pass {number}: {done:,}{of} rows, {speed:,.0f} rows/s{left}")
                if done == n_rows:
                    done = 0

            table = table.watched(advance)
            if counts:
                n_rows, done = table.survey().n_rows, 0
            return table

        yield watch
