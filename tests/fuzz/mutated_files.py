"""Model and Pairgram files of other bytes, and of other contents under a right checksum."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from pairgram import Pairgram, load_model
from parts.cli import invoke

from . import fitted, forge
from .runner import Case, Outcome

STEP = 7  # of so many models a short run takes one


def prepare(folder: Path, short: bool) -> None:
    """Write the sound files, and what is to be predicted with them."""
    for name, contents in _sound_files(short).items():
        (folder / name).write_bytes(contents)


@cache
def _sound_files(short: bool) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        _write_sound_files(Path(name), short)
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


def _write_sound_files(folder: Path, short: bool) -> None:
    made: list[tuple[str, bool, Any, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in list(fitted.models())[:: STEP if short else 1]:
            model, X = make()
            model.save(folder / f"{len(made)}")
            made.append((name, False, X, model.predict(X)))
        for name, make in list(fitted.statistics())[:: STEP if short else 1]:
            statistics = make()
            statistics.save(folder / f"{len(made)}")
            made.append((name, True, None, statistics.solve(0.5)))
    (folder / "made.pickle").write_bytes(pickle.dumps(made))


class _Files:
    """The sound files, and the place of a case's own."""

    def __init__(self, folder: Path) -> None:
        self.made = pickle.loads((folder / "made.pickle").read_bytes())
        self.bytes = [(folder / f"{i}").read_bytes() for i in range(len(self.made))]
        self.work = folder / f"work {os.getpid()}"

    def load(self, number: int) -> Any:
        if not self.made[number][1]:
            return load_model(self.work)
        try:
            return Pairgram.load(self.work)
        except ValueError as error:
            told = str(error).replace(f"{self.work}: ", "the bytes: ")
            try:
                Pairgram.from_bytes(self.work.read_bytes())
            except ValueError as of_bytes:
                if str(of_bytes) != told:
                    raise AssertionError(f"{of_bytes}, want {told}") from None
            else:
                raise AssertionError("the bytes were accepted") from None
            raise

    def judge(self, error: BaseException, what: str) -> Outcome:
        """Return whether an error of loading is the documented one."""
        if isinstance(error, ValueError) and str(error).startswith(f"{self.work}: "):
            return "refused", ""
        return "undocumented error", f"{what}: {error!r}"


# Raw mutations: any bytes


def raw(folder: Path, seed: int) -> Case:
    """Change bytes of a file: refused, or the same predictions."""
    files = _Files(folder)

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        source = number % len(files.made)
        name, _, X, expected = files.made[source]
        changed, how = _changed(rng, files.bytes[source])
        files.work.write_bytes(changed)
        what = f"{name}, {how}"
        try:
            model = files.load(source)
        except BaseException as error:
            return files.judge(error, what)
        found = model.solve(0.5) if X is None else model.predict(X)
        if np.array_equal(found, expected):
            return "same contents", ""
        return "silent loss", f"{what}: other predictions"

    return case


def _changed(rng: Generator, whole: bytes) -> tuple[bytes, str]:
    at, size = int(rng.integers(len(whole))), int(rng.integers(1, 30))
    head = int.from_bytes(whole[:8], "little")
    kind = int(rng.integers(12))
    if kind < 6:
        bit = int(rng.integers(8 * len(whole))) if kind < 4 else int(rng.integers(8 * (8 + head)))
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed), f"bit {bit}"
    if kind == 6:
        return whole[:at], f"cut at {at}"
    if kind == 7:
        return whole + rng.bytes(size), f"{size} bytes more"
    if kind == 8:
        return whole[:at] + whole[at + size :], f"{size} bytes removed at {at}"
    if kind == 9:
        return whole[:at] + rng.bytes(size) + whole[at + size :], f"{size} bytes at {at}"
    if kind == 10:
        lengths = (0, 1, head - 1, head + 1, head + 8, 10**8 + 1, 2**63, 2**64 - 1)
        length = lengths[int(rng.integers(len(lengths)))]
        return length.to_bytes(8, "little") + whole[8:], f"header of {length}"
    digits = [i for i in range(8, 8 + head) if whole[i : i + 1].isdigit()]
    at = int(rng.choice(digits))
    digit = b"%d" % rng.integers(10)
    return whole[:at] + digit + whole[at + 1 :], f"digit {digit!r} at {at}"


# Forged contents: what is loaded can be used

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400),
    *(0.5, -0.0, -1.5, 1e308, -1e308, 5e-324, 1e-320, float("nan"), float("inf"), -float("inf")),
    *("", "with_ties", "rbf", "precomputed", "linear", "gaussian", "sigmoid", "dual", "__class__"),
    *("\ud800", "\0", "\x1b[2J", "x" * 5000, "0.5"),
    *([], {}, [[]], [1, 2], [0.0, 1.0], [1e308, 1e308], [1, 10**18], [4, 4], [0] * 3000, ["rbf"]),
    *({"kind": "RandomNodes"}, {"kind": "Kernel", "shape": [1, 1]}, {"a": {"b": {"c": 1}}}),
)
NUMBERS: dict[str, tuple[Any, ...]] = {
    "f": (0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e30, -1.0, 1e-300),
    "u": (0, 1, 2**63, 2**64 - 1),
    "i": (0, -1, 1, 3, 4, 5, 17, 18, 10**4, 10**8, 2**31 - 1, -(2**31)),
}


def forged(folder: Path, seed: int) -> Case:
    """Change what a file says: refused, or a model that works."""
    files = _Files(folder)
    contents = [forge.parse(each) for each in files.bytes]

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        source = number % len(files.made)
        name, _, X, _ = files.made[source]
        mine = forge.parse(files.bytes[source])
        other = contents[int(rng.integers(len(contents)))]
        how = [_forge(rng, mine, other) for _ in range(int(rng.choice([1, 1, 1, 2, 3])))]
        what = f"{name}, {', '.join(how)}"
        files.work.write_bytes(forge.pack(mine))
        try:
            model = files.load(source)
        except BaseException as error:
            return files.judge(error, what)
        try:
            return _use(model, X, files.work, rng), ""
        except BaseException as error:
            return "undocumented error", f"{what}: {error!r}"

    return case


def _forge(rng: Generator, mine: forge.Contents, other: forge.Contents) -> str:
    """Change contents at one place; return how."""
    kind = int(rng.integers(10))
    if kind < 4:
        return _forge_setting(rng, mine)
    if kind < 8 and mine.tensors:
        return _forge_tensor(rng, mine, other)
    if kind == 8:
        mine.settings["feature_map"] = other.settings["feature_map"]
        mine.tensors = {
            **{name: t for name, t in mine.tensors.items() if not name.startswith("map_")},
            **{name: t for name, t in other.tensors.items() if name.startswith("map_")},
        }
        return f"feature map of {other.kind}"
    odd = int(rng.integers(4))
    if odd == 0:
        mine.kind = str(rng.choice([other.kind, "", "RankRLSCV", "object", "../x", "Pairgram"]))
        return f"kind {mine.kind!r}"
    if odd == 1:
        depth = int(rng.choice([5, 900, 1100, 60_000]))
        mine.text = json.dumps(mine.settings).replace("null", "[" * depth + "]" * depth)
        return f"nesting {depth}"
    if odd == 2:
        mine.text = str(rng.choice(["", "{}", "[]", "null", '{"feature_map": null}', "\x00"]))
        return f"settings {mine.text!r}"
    mine.settings, mine.tensors = other.settings, dict(other.tensors)
    return f"contents of {other.kind}"


def _forge_setting(rng: Generator, mine: forge.Contents) -> str:
    places = list(_places(mine.settings))
    record, key = places[int(rng.integers(len(places)))]
    kind = int(rng.integers(8))
    if kind == 0 and isinstance(record, dict):
        del record[key]
        return f"without {key}"
    if kind == 1 and isinstance(record, dict):
        record[f"{key}_"] = record[key]
        return f"more than {key}"
    if kind == 2:
        value = places[int(rng.integers(len(places)))]
        record[key] = json.loads(json.dumps(value[0][value[1]]))
        return f"{key} as {value[1]}"
    value = HOSTILE[int(rng.integers(len(HOSTILE)))]
    record[key] = json.loads(json.dumps(value))
    return f"{key} = {str(value)[:40]}"


def _places(record: Any) -> Any:
    """Yield every place of nested settings as (what holds it, key)."""
    for key in record if isinstance(record, dict) else range(len(record)):
        yield record, key
        if isinstance(record[key], (dict, list)):
            yield from _places(record[key])


def _forge_tensor(rng: Generator, mine: forge.Contents, other: forge.Contents) -> str:
    name = str(rng.choice(sorted(mine.tensors)))
    kind = int(rng.integers(10))
    if kind == 0:
        del mine.tensors[name]
        return f"without {name}"
    if kind == 1:
        second = str(rng.choice(sorted(other.tensors)))
        mine.tensors[name] = other.tensors[second]
        return f"{name} as {second} of {other.kind}"
    if kind == 2:
        code = str(rng.choice(list(forge.DTYPES)))
        mine.tensors[name] = forge.Tensor(code, mine.tensors[name].shape, mine.tensors[name].data)
        return f"{name} called {code}"
    if (array := mine.tensors[name].array) is None:
        return f"{name} once more"
    if kind in (3, 4, 5) and array.size:
        values = NUMBERS[array.dtype.kind]
        value = values[int(rng.integers(len(values)))]
        where = int(rng.integers(array.size)) if kind != 5 else slice(None)
        with np.errstate(over="ignore"):
            array.reshape(-1)[where] = value
        mine.tensors[name] = forge.Tensor.of(array)
        return f"{name}[{where}] = {value}"
    shapes = [
        array.T,
        array.reshape(-1),
        array[None],
        array[:-1],
        array[:0],
        np.concatenate([array, array]),
        array[..., :1],
        np.zeros((0, *array.shape[1:], 10**6)),
        array[array.size // 2 :] if array.ndim == 1 else array[:, ::-1],
    ]
    dtypes = ("float64", "float32", "float16", "int64", "int32", "uint64", "bool", "complex64")
    if kind == 6:
        with np.errstate(over="ignore"):
            changed = array.astype(str(rng.choice(dtypes)))
    else:
        changed = shapes[int(rng.integers(len(shapes)))]
    mine.tensors[name] = forge.Tensor.of(changed)
    return f"{name} of {changed.dtype} {changed.shape}"


def _use(model: Any, X: Any, path: Path, rng: Generator) -> str:
    """Do with a model what its owner would; return how that went."""
    repr(model)
    finite = solved(model) if X is None else predicted(model, X)
    again = path.with_name(f"{path.name} again")
    model.save(again)
    type(model).load(again) if X is None else load_model(again)
    if rng.random() < 0.05:
        for look in LOOKS:
            look(path)
    return finite


# What is done with some of the files, by rooms.
LOOKS: list[Any] = []


@LOOKS.append
def _inspected(path: Path) -> None:
    result = invoke("inspect", path)
    if result.exit_code not in (0, 2) or "\x1b" in result.output:
        raise AssertionError(f"inspect: {result.output[-200:]}")


def predicted(model: Any, X: Any) -> str:
    """Predict rows of several forms; return how that went."""
    dense_only = hasattr(model, "feature_names_in_") or "precomputed" in (
        getattr(model, "kernel", None),
        getattr(model.feature_map_, "kernel", None),
    )
    width = model.n_features_in_
    dense = np.resize(np.asarray(X.toarray() if sp.issparse(X) else X), (4, min(width, 10_000)))
    outcome = "works"
    variants = [dense, dense.astype(np.float32)] + ([] if dense_only else [sp.csr_array(dense)])
    for rows in variants:
        try:
            with np.errstate(all="ignore"):
                scores = model.predict(rows)
        except ValueError:  # another width, or values that are too large
            outcome = "refuses to predict"
            continue
        if scores.shape != (len(dense),):
            raise AssertionError(f"scores of shape {scores.shape}")
        if not np.isfinite(scores).all() and outcome == "works":
            outcome = "scores overflow"
    model.get_params()
    return outcome


def _other_rows(statistics: Any) -> tuple[Any, Any]:
    """Return rows that fit, of which some vary."""
    X = np.resize([0.0, 1.0, 3.0], (5, getattr(statistics.feature_map, "n_features_in_", 0)))
    return (X if X.size else np.resize([0.0, 1.0, 3.0], (5, statistics.n_features))), np.arange(5.0)


def _settings_of(statistics: Any) -> dict[str, Any]:
    return {"pairs": statistics.settings, "feature_map": statistics.feature_map}


def solved(statistics: Any) -> str:
    """Solve, and make and add other statistics; return how that went."""
    with np.errstate(all="ignore"):
        try:
            weights = [statistics.solve(0.5), *statistics.path([0.1, 10.0])]
            other = Pairgram.from_rows(*_other_rows(statistics), **_settings_of(statistics))
            repr([statistics + other, statistics - statistics, statistics.n_varying])
        except ValueError:
            return "refuses to solve"
    return "works" if np.isfinite(weights).all() else "weights overflow"
