"""Every figure of the README and of the pages names the command that made it, and the date.

A figure is a number with a unit of time (from ns to hours) or of measured memory (KiB, MiB, GiB), a
ratio such as 3.2x, or a score such as .4477 or 0.448, in prose or in a table. These numbers are no
figures: those in code, versions, counts of rows, percentages (95 %), sizes of files and of
limits (kB, MB, bytes), and dimensions of matrices (30 × 51). What blocks of text show is tested by
test_readme.
"""

import re
from pathlib import Path

from axes import every

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

NUMBER = r"(?<![\w.])(?:\d[\d,]*)?\.?\d+"
FIGURE = re.compile(
    rf"{NUMBER} ?(?:ns|µs|ms|s|min|minutes|hours|KiB|MiB|GiB)(?![\w/])"  # 1.3 ms
    rf"|{NUMBER} ?[x×](?! ?[\d(])(?!\w)"  # 3.2x, but not 30 × 51
    r"|(?<![\w.])0?\.\d{3,4}(?!\d)"  # .4477
)
COMMAND = re.compile(r"python (bench/[\w/]+\.py)|python -m (bench)\b|(\.ci/\w+)|pairgram letor\b")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def sections_of(text):
    """Return the text of each section, with that of the sections around it, and its prose."""
    found, fence = [[0, "", ""]], None
    for line in text.splitlines():
        mark = re.match(r"(```+|~~~+)", line)
        heading = None if fence else re.match(r"(#+) ", line)
        if heading:
            found.append([len(heading[1]), "", ""])
        found[-1][1] += line + "\n"
        if not fence and not mark and not line.startswith("    "):
            found[-1][2] += re.sub(r"`[^`]*`", "``", line) + "\n"
        if mark:
            fence = None if fence else mark[1]
    sections, around = [], []
    for level, whole, prose in found:
        around = [outer for outer in around if outer[0] < level] + [(level, whole)]
        sections.append(("".join(text for _, text in around), prose))
    return sections


def unfounded(text):
    """Return the figures of a page that no command with a date makes."""
    return [
        figure
        for whole, prose in sections_of(text)
        if not (COMMAND.search(whole) and DATE.search(whole))
        for figure in FIGURE.findall(prose)
    ]


@every(page=PAGES)
def test_figures_have_a_command_and_a_date(page):
    text = page.read_text(encoding="utf-8")
    assert not unfounded(text)
    for paths in COMMAND.findall(text):
        for path in filter(None, paths):
            assert (ROOT / path).exists(), path


def test_what_a_figure_is():
    page = "# A\n3.2x, 1.3 ms, .4477, 0.448, 731 MiB, 2.1 × as long, 93×.\n"
    assert len(unfounded(page)) == 7
    assert not unfounded(page + "`python bench/kernels.py`, 2026-11-25\n")
    assert len(unfounded(page + "`python bench/kernels.py`\n")) == 7
    assert len(unfounded(page + "## B\n`.ci/guard`, 2026-11-25: 5 s\n")) == 7
    assert not unfounded("NumPy 2.4, 30 × 51 columns, 95 %, 153 MB, `0.448`\n```\n.4477\n```\n")
