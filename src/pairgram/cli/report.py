"""Print results on standard output, all else on standard error, and draw pictures to files."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import pairgram
from pairgram._support.files import naming, printable, replacing, shown
from pairgram._support.parameters import PARAMETERS, option_of

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator

ENDINGS = (".png", ".svg", ".pdf")

PlotFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw a picture; its name ends with .png, .svg or .pdf."),
]


def check_picture(path: Path | None) -> None:
    """Raise an error, before any work, if a picture cannot be drawn to a file."""
    if path is None:
        return
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"--plot wants a name that ends with .png, .svg or .pdf, got {path.name}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{shown(path)}: its folder does not exist")
    if find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib: pip install 'pairgram[plots]'")


def draw(path: Path, picture: Callable[[Any], Any], width: float = 6.4) -> None:
    """Write the picture that a function draws in an axes."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, 4.0), layout="constrained")
    picture(figure.subplots())
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def draw_search(path: Path, search: BaseEstimator) -> None:
    """Draw the scores of a search: along alpha or C, or over two settings."""
    if hasattr(search, "trials_"):
        draw(path, lambda ax: pairgram.plots.settings(search, "features", "inputs", ax), 8.0)
    elif hasattr(search, "alphas_") and hasattr(search, "Cs_"):
        draw(path, lambda ax: pairgram.plots.settings(search, "alpha", "C", ax), 8.0)
    else:
        draw(path, lambda ax: pairgram.plots.scores(search, ax))


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
    "Data": "one-query weight groups propensity clicks position item feature-log qrels offset "
    "group-queries dask float32 sparse",
    "Model": "",
    "Choice": "alphas Cs convention",
    "Output and machine": "plot threads json wide keep per-query std help",
}


# Whether tables may be wider than the terminal. A text that is broken keeps some columns.
_wide: ContextVar[bool] = ContextVar("wide", default=False)
WIDEST, NARROWEST = 1000, 12


class Command(TyperCommand):
    """A command that refuses an option given twice, because it could use only the last one."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options; many of them stand in panels."""
        params = self.get_params(ctx)
        is_long = len(params) > FEW_OPTIONS
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        sections |= {name: [] for name in (PANELS if is_long else ())}
        for param in params:
            record = param.get_help_record(ctx)
            if record is not None:
                other = "Model" if is_long else "Options"
                words = {option.lstrip("-") for option in param.opts}
                panel = next((n for n, own in PANELS.items() if words & {*own.split()}), other)
                title = panel if is_long else other
                is_argument = param.param_type_name == "argument"
                sections.setdefault("Arguments" if is_argument else title, []).append(record)
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
    print_lines([json.dumps(_finite(value), indent=2)])


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_wide(wide: bool) -> None:
    """Let tables be wider than the terminal, or not."""
    _wide.set(wide)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str | None = None,
    marked: int | None = None,
    footer: Sequence[Any] | None = None,
    cell: Callable[[Any], str] | None = None,
    n_keys: int = 1,
    optional: Collection[str] = (),
) -> None:
    """Print rows under column names, with numbers aligned right. Without names there is no head.

    A table that is wider than the terminal, or than $COLUMNS, is printed in several parts, each
    with some columns; texts are broken that take too much room alone. --wide
    prints it as it is.

    Parameters
    ----------
    columns, rows, title
        The table. Cells may be anything that `show` takes.
    marked : int or None
        The row to mark with an asterisk.
    footer : sequence or None
        A last row below a line.
    cell : callable or None
        The function that returns the text of a cell. None takes `show`.
    n_keys : int
        The number of the first columns, which say what a row is, and are in every part.
    optional : collection of str
        Columns that are left out if the terminal has no room for all columns.
    """
    from rich.cells import cell_len

    rows = [list(row) for row in rows]
    if not rows and title is not None:  # which says that there are none
        print_lines([title])
        return
    cells = rows if footer is None else [*rows, footer]
    made = []
    for i, name in enumerate(columns or [""] * len(rows[0])):
        values = [row[i] for row in cells]
        texts = [(cell or show)(value) for value in values]
        is_number = all(isinstance(value, (int, float)) or value == "" for value in values)
        width = max(map(cell_len, [name, *texts]))
        made.append(_Column(name, texts, is_number, width))
    knows = sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))  # a file or pipe has no width
    room = shutil.get_terminal_size().columns if knows and not _wide.get() else WIDEST
    for part in _parts(made, optional, n_keys, room - 3 * (marked is not None)):
        _print_part(part, bool(columns), footer is not None, title, marked, room)
        title = None


class _Column(NamedTuple):
    """A column of a table: its name, the texts of its cells, that of the footer last."""

    name: str
    texts: list[str]
    is_number: bool
    width: int


def _taken(columns: list[_Column]) -> int:
    """Return how many columns of the terminal a table takes."""
    return 1 + sum(column.width for column in columns) + 2 * (len(columns) - 1)


def _widths(columns: list[_Column], room: int) -> list[int]:
    """Return widths with which columns fit the room; the widest texts are made narrower."""
    widths = [column.width for column in columns]
    for _ in range(_taken(columns) - room):
        texts = [width * (not one.is_number) for width, one in zip(widths, columns, strict=True)]
        if max(texts) <= NARROWEST:
            break
        widths[texts.index(max(texts))] -= 1
    return widths


def _parts(
    every: list[_Column], optional: Collection[str], n_keys: int, room: int
) -> list[list[_Column]]:
    """Return the columns of every part of a table, whose parts are no wider than the room."""

    def fits(chosen: list[_Column]) -> bool:
        return _taken(chosen) <= room

    if not fits(every):
        every = [column for column in every if column.name not in optional]
    if fits(every):
        return [every]
    parts: list[list[_Column]] = []
    for column in every[n_keys:]:
        if parts and fits([*parts[-1], column]):
            parts[-1].append(column)
        else:
            parts.append([*every[:n_keys], column])
    return parts or [every]


def _print_part(
    columns: list[_Column],
    has_names: bool,
    has_footer: bool,
    title: str | None,
    marked: int | None,
    room: int,
) -> None:
    """Print some columns of a table. Texts are broken if they take more than the room."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        show_header=has_names,
        show_footer=has_footer,
    )
    widths = _widths(columns, room - 3 * (marked is not None))
    for column, width in zip(columns, widths, strict=True):
        justify: Any = "right" if column.is_number else "left"
        foot = column.texts[-1] if has_footer else ""
        own: Any = {"no_wrap": width == column.width, "overflow": "fold", "max_width": width}
        table.add_column(Text(column.name), Text(foot), justify=justify, **own)
    if marked is not None:
        table.add_column("")
    rows = list(zip(*(column.texts for column in columns), strict=True))
    for number, row in enumerate(rows[:-1] if has_footer else rows):
        best = number == marked
        star = [Text("*" if best else "")] if marked is not None else []
        table.add_row(*map(Text, row), *star, style="bold green" if best else None)
    page = StringIO()  # a broken pipe is then an error here, not in rich
    # The width has room for every cell, because rich would cut numbers.
    console = Console(file=page, force_terminal=sys.stdout.isatty(), width=WIDEST)
    if title is not None:
        console.print(Text(title, style="bold"), width=room)
    console.print(table)
    print_lines(line.rstrip() for line in page.getvalue().rstrip().split("\n"))


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
def working(what: str) -> Iterator[None]:
    """Show on standard error what is being done, if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(what)):  # a path may look like markup
        yield


def progress(items: Iterable[Any], what: str, total: int) -> Iterator[Any]:
    """Iterate with a progress bar on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, total=total, console=Console(stderr=True), transient=True)


@contextmanager
def passes() -> Iterator[Callable[..., Any]]:
    """Yield a function that returns a table whose passes are shown on standard error.

    With ``counts=True`` that function makes a first pass, which counts the rows. Nothing is shown,
    and no pass is made, unless standard error is a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda table, counts=True: table
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")

    columns = (
        TextColumn("pass {task.fields[number]}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, number = bar.add_task("", total=None, number=1), 0

        def watch(table: Any, counts: bool = True) -> Any:
            n_rows: int | None = None
            done = 0

            def advance(n: int) -> None:
                nonlocal done, number
                if done == 0:
                    number += 1
                    bar.reset(task, total=n_rows, number=number)
                done += n
                bar.advance(task, n)
                if done == n_rows:
                    done = 0

            table = table.watched(advance)
            if counts:
                n_rows, done = table.survey().n_rows, 0
            return table

        yield watch
