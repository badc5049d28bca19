"""Files are written whole or not at all."""

import os
import sys

import pytest

from pairgram._files import replacing


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
