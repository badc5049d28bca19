"""All that docs/benchmarks.md and docs/papers.md measure, in one command that can be stopped.

    python -m bench [--data FOLDER] [--results FOLDER] [--only TEXT] [--list | --all]

Every command of the pages is run in its order. What it prints goes to RESULTS/NUMBER.txt, and
RESULTS/NUMBER.json says the command, the revision, the machine, when it began, how many seconds it
took, and how it ended. A command that ended well at this revision is not run again.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "papers.md")
RATINGS = "--movielens"  # files that each has to fetch, and to name
NO_DATA = 3  # the exit code of this program if a command was left out


@dataclass(frozen=True)
class Result:
    """What became of a command."""

    command: str
    section: str
    revision: str
    machine: str
    began: str
    seconds: float
    code: int
    packages: dict[str, str]


def commands_of(page: str) -> Iterator[tuple[str, str]]:
    """Yield the section and the text of every command of the page that runs a benchmark."""
    section, is_code = "", False
    for line in page.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            is_code = line == "```sh"
        elif line.startswith("## "):
            section = line.removeprefix("## ")
        elif is_code and line.startswith("python bench/"):
            yield section, " ".join(line.partition("  #")[0].split())


def run(number: int, section: str, command: str, arguments: argparse.Namespace) -> Result:
    """Run a command, with what it prints in a file."""
    words = shlex.split(command)
    words[:2] = [sys.executable, str(ROOT / words[1])]
    words = [str(arguments.data.resolve()) if word == "FOLDER" else word for word in words]
    began, start = datetime.now(UTC), time.perf_counter()
    with (arguments.results / f"{number:02}.txt").open("w") as file:
        code = subprocess.run(
            words, cwd=arguments.results, stdout=file, stderr=subprocess.STDOUT
        ).returncode
    result = Result(
        command,
        section,
        revision(),
        f"{platform.machine()}, {platform.system()} {platform.release()}",
        began.isoformat(timespec="seconds"),
        round(time.perf_counter() - start, 1),
        code,
        {one.metadata["Name"]: one.version for one in distributions()},
    )
    text = json.dumps(asdict(result), indent=2)
    (arguments.results / f"{number:02}.json").write_text(text + "\n")
    return result


def revision() -> str:
    """Return the revision of this checkout, with a plus if files differ from it."""
    head, changed = (
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain"])
    )
    return head + "+" * bool(changed)


def known(number: int, command: str, folder: Path) -> Result | None:
    """Return the result of a command that was run before."""
    path = folder / f"{number:02}.json"
    result = Result(**json.loads(path.read_text())) if path.exists() else None
    return result if result is not None and result.command == command else None


def main() -> int:
    """List or run the commands; return how it ended."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with MQ2008, OHSUMED and qsar")
    parser.add_argument("--results", type=Path, default=Path("build/bench"), metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="TEXT", help="commands with this text alone")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="print the commands; this is the default")
    mode.add_argument("--all", action="store_true", help="run the commands")
    arguments = parser.parse_args()
    arguments.results = arguments.results.resolve()
    arguments.results.mkdir(parents=True, exist_ok=True)
    left_out, failed, seconds = 0, 0, 0.0
    every: dict[str, str] = {}
    for section, text in (one for page in PAGES for one in commands_of(page.read_text())):
        every.setdefault(text, section)  # a later section may name it again
    for number, (command, section) in enumerate(every.items(), 1):
        if arguments.only not in command:
            continue
        result = known(number, command, arguments.results)
        here = revision()
        is_done = result is not None and result.code == 0 and result.revision == here
        is_done &= not here.endswith("+")  # what differs may differ again
        if arguments.all and not is_done:
            if ("FOLDER" in command and arguments.data is None) or RATINGS in command:
                why = "needs ratings" if RATINGS in command else "give --data"
                print(f"{number:02}  left out  {command}: {why}", flush=True)
                left_out += 1
                continue
            print(f"{number:02}  running   {command}", flush=True)
            result = run(number, section, command, arguments)
        failed += result is not None and result.code != 0
        seconds += 0 if result is None else result.seconds
        took = "not run" if result is None else f"{result.seconds:8.1f} s, exit {result.code}"
        print(f"{number:02}  {took}  {section}: {command}", flush=True)
    print(f"{seconds / 3600:.2f} hours in all")
    return 1 if failed else NO_DATA if left_out else 0
