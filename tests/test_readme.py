"""The Python of the README and of the documentation runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

import forks
from axes import every
from pairgram.cli.parsing import parsed

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


COMMAND = """import shlex, sys
from pairgram.cli import main
for line in {lines!r}:
    sys.argv[:] = shlex.split(line)[1:]
    try:
        main()
    except SystemExit as done:
        assert not done.code, line
"""


def program_of(page):
    """Return the blocks of Python of a page, with the commands of its consoles between them."""
    found = re.findall(
        r"^```(python|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S
    )
    parts = []
    for kind, block in found:
        if kind == "console":
            lines = block.replace("\\\n", " ").splitlines()
            assert all(line.startswith("$ pairgram ") for line in lines), lines
            block = COMMAND.format(lines=lines)
        parts.append(block)
    return "\n".join(parts)


def run(code, folder):
    strict = "import warnings\nwarnings.simplefilter('error')\n"
    process = forks.start(forks.in_folder(folder) + strict + code)
    process.join()
    assert process.exitcode == 0, (folder / "said").read_text()
    return (folder / "printed").read_text()


README = blocks_of(ROOT / "README.md")


@pytest.mark.parametrize("block", README, ids=range(len(README)))
def test_block(block, tmp_path):
    run(block, tmp_path)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem
)
def test_page(page, tmp_path):
    """The blocks of a page are one program, as a reader would type them.

    Blocks of text show what it prints.
    """
    printed = run(program_of(page), tmp_path)
    for shown in re.findall(r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        assert shown in printed


@every(page=[ROOT / "README.md", *PAGES, ROOT / "CHANGELOG.md"])
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_address_of_the_repository_stands_in_one_place():
    """Only the project's description may name it; all else reads it there."""
    folders = [ROOT / name for name in (".ci", ".github", "src", "docs", "bench", "csrc")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    texts = {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for path in [*files, ROOT / "README.md", ROOT / "CITATION.cff", ROOT / "CHANGELOG.md"]
        if path.suffix in ("", ".py", ".pyi", ".md", ".toml", ".yml", ".cff", ".hpp", ".cpp")
    }
    assert not [str(name) for name, text in texts.items() if re.search(r"//\S*/pairgram\b", text)]


def commands_of(page):
    """Return the arguments of every pairgram command of a page."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    parts = (part for block in blocks for line in block.splitlines() for part in line.split("|"))
    words = (shlex.split(part, comments=True) for part in parts)
    return [found[1:] for found in words if found[1:] and found[0].endswith("pairgram")]


SHELLS = [page for page in (ROOT / "README.md", *PAGES) if commands_of(page)]


@pytest.mark.parametrize("page", SHELLS, ids=lambda page: page.stem)
def test_commands_have_the_options_that_are_shown(page):
    for name, *arguments in commands_of(page):
        if name[0] != "-" and not {"-h", "--help", "--help-all"} & {*arguments}:
            parsed(name, arguments)


def test_a_command_with_an_option_twice_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\npairgram train a.csv -o m --features a \\\n  --features b\n```\n")
    with pytest.raises(ValueError, match="--features is given 2 times"):
        test_commands_have_the_options_that_are_shown(page)
