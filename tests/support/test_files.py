"""Files are written whole or not at all."""

import errno
import os
import sys

import numpy as np
import pytest

from pairgram import Pairgram, dump_letor
from parts.support import replacing, shown


def test_replacing(tmp_path):
    path = tmp_path / "file"
    for contents in (b"one", b"two"):
        with replacing(path) as file:
            file.write(contents)
        assert path.read_bytes() == contents
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with replacing(tmp_path / name) as file:
            (temporary,) = tmp_path.glob(".file*")
            assert temporary.stat().st_mode & 0o777 == mode  # before there is anything to read
            file.write(b"new")
        assert path.stat().st_mode & 0o777 == mode


def test_an_interrupt_while_the_file_is_made_leaves_none(tmp_path, monkeypatch):
    def interrupted(*arguments):
        open(*arguments).close()
        raise KeyboardInterrupt

    monkeypatch.setattr("pairgram._support.files.open", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "file"):
        pass
    assert os.listdir(tmp_path) == []


def test_replacing_nothing_on_errors(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]
    missing = tmp_path / "no" / "file"
    with pytest.raises(FileNotFoundError) as caught, replacing(missing):
        pass
    assert caught.value.filename == str(missing)
    for special in (tmp_path, os.devnull):
        with pytest.raises(ValueError, match="path must name a file"), replacing(special):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights on Windows")
def test_replacing_keeps_a_link(tmp_path):
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_errors_of_writing_name_the_path(tmp_path):
    import resource

    path = tmp_path / "file"
    path.write_bytes(b"old")
    X = np.eye(60)
    write = (
        lambda: dump_letor(path, X, X[0]),
        lambda: dump_letor(tmp_path / "file.gz", np.random.default_rng(0).random((60, 60)), X[0]),
        lambda: Pairgram.from_rows(X, X[0]).save(path),
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for attempt in write:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        try:
            attempt()
        except OSError as error:
            caught = error
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.errno == errno.EFBIG
        assert caught.filename in (str(path), f"{path}.gz")
        assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == b"old"


def test_an_error_of_renaming_names_the_path(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError(errno.EIO, "broken", source, None, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="broken") as caught, replacing(tmp_path / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "file") and caught.value.filename2 is None
    assert os.listdir(tmp_path) == []


def test_paths_are_shown_on_one_line():
    assert shown("a b/é.txt") == "a b/é.txt"
    assert shown("a\nb\r\t\x1b[2J\x7f\u2028\u202e\udcff") == (
        r"a\nb\r\t\x1b[2J\x7f\u2028\u202e\udcff"
    )
    assert shown(b"\xff") == r"\udcff"
