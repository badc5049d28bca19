"""Every refusal of `tests/refusals` names its argument and its place, and says what is wanted."""

import builtins
import re
import shutil
from pathlib import Path

import pytest

from refusals import TABLES, refusals_of, values

NAMES = vars(values)


def place_of(error):
    """Return what the attributes of an `ArgumentError` say, as the tables write it."""
    if not hasattr(error, "parameter"):
        return ""
    words = [error.parameter or ""]
    words += [
        f"{name} {n}" for name in ("row", "column") if (n := getattr(error, name, None)) is not None
    ]
    return " ".join(words).strip()


@pytest.fixture(autouse=True)
def _leave_no_file():
    """Take the files of a table away, which another would read."""
    folder = Path(values.FOLDER.name)
    before = set(folder.iterdir())
    yield
    for path in set(folder.iterdir()) - before:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.mark.parametrize("room", TABLES)
def test_what_is_refused(room):
    wrong = []
    for refusal in refusals_of(room):
        kind, _, words = refusal.words.rpartition("Error: ")
        kind = getattr(builtins, f"{kind}Error") if kind else ValueError
        pattern = ".*".join(map(re.escape, words.removeprefix("^").split("…")))
        try:
            eval(refusal.call, dict(NAMES))
            found = "nothing is refused"
        except Exception as error:
            found = f"{place_of(error)} | {type(error).__name__}: {error}"
            begins = re.match if words.startswith("^") else re.search
            if (
                isinstance(error, kind)
                and place_of(error) == refusal.place
                and begins(pattern, str(error), re.DOTALL)
            ):
                continue
        wrong.append(f"{room}.txt:{refusal.line}: {refusal.call}\n    {found}")
    assert not wrong, "\n" + "\n".join(wrong)
