"""Packed files of one stream and of several: read whole, or refused."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest

from pairgram import load_letor
from parts.datasets import letor

PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}
PARTS = [b"".join(b"%d qid:%d 1:0.5\n" % (row % 3, part) for row in range(100)) for part in (1, 2)]


def contents(packed):
    """Return what the library reads of packed bytes."""
    return letor.unpacked(io.BufferedReader(io.BytesIO(packed)))[1].read()


@pytest.mark.parametrize("kind", PACKERS)
def test_streams_that_follow_each_other_are_one_text(kind, set_limits):
    pack = PACKERS[kind]
    first, second = map(pack, PARTS)
    for input_size in (1, 7, 1 << 16):
        set_limits(packed_bytes=input_size)
        for parts in ([first], [first, second], [first, pack(b""), second], [pack(b""), first]):
            expected = b"".join(map(_plain, parts))
            assert contents(b"".join(parts)) == expected
    long = np.random.default_rng(0).bytes(300_000)
    assert contents(pack(long) + pack(long[::-1])) == long + long[::-1]


def _plain(packed):
    unpack = {b"\x1f": gzip.decompress, b"\xfd": lzma.decompress, b"B": bz2.decompress}
    return unpack[packed[:1]](packed)


@pytest.mark.parametrize("kind", PACKERS)
def test_a_later_stream_that_is_damaged_or_cut_off_is_refused(kind, tmp_path):
    path = tmp_path / "data"
    first, second = map(PACKERS[kind], PARTS)
    path.write_bytes(first + second)
    X, y, qid = load_letor(path)
    assert len(qid) == 200

    def refused(packed):
        path.write_bytes(packed)
        try:
            found = load_letor(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}:"), error
            return True
        same = all(np.array_equal(a, b) for a, b in zip(found, (X, y, qid), strict=True))
        assert same, "rows were lost"
        return False

    n_harmless = 0
    for bit in range(8 * len(second)):
        damaged = bytearray(second)
        damaged[bit // 8] ^= 1 << bit % 8
        n_harmless += not refused(first + damaged)
    # Bits of the heads of gzip and bzip2 have no checksum, nor have those that fill the last byte.
    assert n_harmless <= {"gzip": 80, "xz": 0, "bzip2": 32}[kind]
    for length in range(1, len(second)):
        assert refused(first + second[:length])
    for tail in (b"x", b"1 qid:3 1:0.5\n", b"garbage" * 2000, first[:1], b"\0garbage"):
        assert refused(first + second + tail)
        assert refused(first + tail)


@pytest.mark.parametrize("kind", PACKERS)
def test_zero_bytes_may_follow_streams(kind, tmp_path, set_limits):
    path = tmp_path / "data"
    first, second = map(PACKERS[kind], PARTS)
    for input_size in (1, 5, 1 << 16):
        set_limits(packed_bytes=input_size)
        for n_zeros in (1, 4, 70_000):
            zeros = bytes(n_zeros)
            for packed, n_rows in ((first + zeros, 100), (first + zeros + second + zeros, 200)):
                path.write_bytes(packed)
                assert len(load_letor(path)[1]) == n_rows
    path.write_bytes(bytes(4) + first)
    with pytest.raises(ValueError, match="found"):
        load_letor(path)
