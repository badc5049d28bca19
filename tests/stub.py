"""Makes `__init__.pyi`, by which type checkers see the public names: python tests/stub.py."""

from pathlib import Path

import pairgram

PATH = Path(pairgram.__file__).with_suffix(".pyi")
HEAD = '"""The public names, for type checkers; `__init__.py` imports each at its first use."""'
PUBLIC_FOLDERS = {"datasets", "metrics"}
WIDTH = 100


def _in_order(name):
    """Classes stand before functions, as ruff sorts them."""
    return name[0].islower(), name


def imports(module, names):
    """Return the statement that exports names of a module, as ruff formats it."""
    parts = [f"{name} as {name}" for name in sorted(names, key=_in_order)]
    line = f"from {module} import {', '.join(parts)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {part}," for part in parts), ")"])


def text():
    """Return the text of the stub."""
    rooms = {name for name, room in pairgram.ROOMS.items() if room.is_attribute}
    lines = [imports("pairgram", PUBLIC_FOLDERS | rooms)]
    for module, names in sorted(pairgram._NAMES.items()):
        lines.append(imports(f"pairgram.{module}", names))
    return "\n".join([HEAD, "", *lines, "", "__all__: list[str]", ""])


if __name__ == "__main__":
    PATH.write_text(text())
