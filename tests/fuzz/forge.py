"""Files as anyone may write them: any contents, with the checksum that belongs to them."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F4": "float4_e2m1fn_x2",
}
NAMES = {name: code for code, name in DTYPES.items()}


@dataclass
class Tensor:
    """An array as safetensors holds it, whether NumPy could or not."""

    code: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: Any) -> Tensor:
        array = np.ascontiguousarray(array)
        return cls(NAMES[array.dtype.name], array.shape, array.tobytes())

    @property
    def array(self) -> Any:
        """The array that one may change, None where the bytes are none of NumPy's numbers."""
        if self.code not in ("F64", "F32", "I64", "I32", "U64"):
            return None
        dtype = np.dtype(DTYPES[self.code])
        if len(self.data) != dtype.itemsize * np.prod(self.shape):
            return None
        return np.frombuffer(bytearray(self.data), dtype).reshape(self.shape)


@dataclass
class Contents:
    """What a file of this package holds; `text` takes the place of the settings where it is set."""

    kind: str
    settings: Any
    tensors: dict[str, Tensor]
    text: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


def instead(name: str, make: Callable[[Any], Any]) -> Callable[[Contents], None]:
    """Return the change of a tensor to another array."""

    def change(contents: Contents) -> None:
        contents.tensors[name] = Tensor.of(make(contents.tensors[name].array))

    return change


def parse(contents: bytes) -> Contents:
    """Return what a sound file holds."""
    (size,) = struct.unpack("<Q", contents[:8])
    header, data = json.loads(contents[8 : 8 + size]), contents[8 + size :]
    metadata = header.pop("__metadata__")
    tensors = {
        name: Tensor(entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    kind, settings = metadata["kind"], json.loads(metadata["settings"])
    return Contents(kind, settings, tensors, None, metadata)


def pack(contents: Contents) -> bytes:
    """Return the bytes of a file that holds `contents`, with a checksum that is right."""
    text = json.dumps(contents.settings, sort_keys=True) if contents.text is None else contents.text
    digest = hashlib.sha256(f"{contents.kind}\n{text}\n".encode("utf-8", "surrogatepass"))
    for name in sorted(contents.tensors):
        tensor = contents.tensors[name]
        digest.update(f"{name} {DTYPES[tensor.code]} {tensor.shape}\n".encode())
        digest.update(tensor.data)
    header: dict[str, Any] = {
        "__metadata__": {
            **contents.metadata,
            "kind": contents.kind,
            "settings": text,
            "sha256": digest.hexdigest(),
        }
    }
    data = b""
    for name, tensor in contents.tensors.items():
        header[name] = {
            "dtype": tensor.code,
            "shape": tensor.shape,
            "data_offsets": [len(data), len(data) + len(tensor.data)],
        }
        data += tensor.data
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data
