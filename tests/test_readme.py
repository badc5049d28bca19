"""The Python of the README and of the documentation runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def run(code, folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


README = blocks_of(ROOT / "README.md")


@pytest.mark.parametrize("block", README, ids=range(len(README)))
def test_block(block, tmp_path):
    run(block, tmp_path)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem
)
def test_page(page, tmp_path):
    """The blocks of a page are one program, as a reader would type them."""
    run("\n".join(blocks_of(page)), tmp_path)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem
)
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
