"""The page of commands in the reference, made from the table of the command line.

python docs/command_reference.py > docs/api/commands.md
"""

import re

from pairgram.cli.parsing import parser_of
from pairgram.cli.table_of_commands import COMMANDS, options_of

OPTION = re.compile(r"(?<![\w-])(--\w[\w-]*)")


def reference():
    """Return the page in Markdown."""
    parts = [
        "# Commands",
        "What each command of `pairgram` takes, which `pairgram COMMAND --help-all` prints too.",
    ]
    for name, command in COMMANDS.items():
        usage = parser_of(name).usage
        parts += [f"## {name}", command.summary, f"```text\n{usage}\n```", _marked(command.text)]
        rows = [*command.arguments.items()]
        rows += [(f"{', '.join(one.names)} {one.value}", one.text) for one in options_of(name)]
        cells = [f"| `{flags.rstrip()}` | {_marked(text)} |" for flags, text in rows]
        parts.append("\n".join(["| argument or option | |", "|---|---|", *cells]))
        parts.append(f"```sh\n{command.examples}\n```")
    return "\n\n".join(parts) + "\n"


def _marked(text):
    """Return a text with its options as code, and no sign that would end a cell."""
    return OPTION.sub(r"`\1`", text).replace("|", r"\|")


if __name__ == "__main__":
    print(reference(), end="")
