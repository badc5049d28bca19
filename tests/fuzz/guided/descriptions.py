"""Model files as a text that one may change anywhere, with lengths and checksum made to fit.

A description has a line with the kind, a line with the settings, a line with name, dtype and shape
of each array, an empty line, and the bytes of the arrays. Missing bytes are zeros. Bytes that begin
with "=" are a file as it is.
"""

from __future__ import annotations

import math
import re

from ..forge import DTYPES, Contents, Tensor, pack, parse

AS_IT_IS = b"="
MOST_BYTES = 1 << 16  # of an array
METADATA = {"format": "pairgram-2", "version": "0.4.0"}
SIZES = {
    code: 1 if code == "BOOL" else int(code.partition("_")[0].strip("BFIUC")) // 8
    for code in DTYPES
    if code != "F4"
}


def described(contents: bytes) -> bytes:
    """Return the description of a sound file."""
    mine = parse(contents)
    shapes = [(name, each.code, *each.shape) for name, each in mine.tensors.items()]
    text = mine.metadata["settings"]
    lines = [mine.kind, text, *(" ".join(map(str, line)) for line in shapes)]
    return "\n".join([*lines, "", ""]).encode() + b"".join(t.data for t in mine.tensors.values())


def file_of(description: bytes) -> bytes:
    """Return the file that a description tells of."""
    if description.startswith(AS_IT_IS):
        return description[len(AS_IT_IS) :]
    head, _, data = description.partition(b"\n\n")
    kind, text, *lines = (head.decode(errors="replace") + "\n").split("\n")
    tensors = {}
    for name, code, *lengths in (line.split(" ") for line in lines if " " in line):
        if code not in SIZES or not all(re.fullmatch("[0-9]{1,9}", n) for n in lengths):
            continue
        shape = tuple(map(int, lengths))
        size = SIZES[code] * math.prod(shape)
        if size <= MOST_BYTES:
            tensors[name] = Tensor(code, shape, data[:size].ljust(size, b"\0"))
            data = data[size:]
    return pack(Contents(kind, None, tensors, text, METADATA))
