"""``--plot FILE``: a picture of what a command has done."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import pairgram
from pairgram._support.files import replacing, shown

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


def draw_search(path: Path, search: Any) -> None:
    """Draw the scores of a search: along alpha or C, or over two settings."""
    if hasattr(search, "trials_"):
        draw(path, lambda ax: pairgram.plots.settings(search, "features", "inputs", ax), 8.0)
    elif hasattr(search, "alphas_") and hasattr(search, "Cs_"):
        draw(path, lambda ax: pairgram.plots.settings(search, "alpha", "C", ax), 8.0)
    else:
        draw(path, lambda ax: pairgram.plots.scores(search, ax))
