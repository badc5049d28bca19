"""The package itself: names on first use, files written whole."""

import os
import subprocess
import sys

import pytest

import pairgram
from pairgram._files import replacing


def test_every_public_name_is_there():
    assert len(set(pairgram.__all__)) == len(pairgram.__all__)
    assert set(pairgram.__all__) == set(pairgram._MODULE_OF) <= set(dir(pairgram))
    for name in pairgram.__all__:
        assert getattr(pairgram, name) is not None
    with pytest.raises(AttributeError, match="'pairgram' has no attribute 'nothing'"):
        _ = pairgram.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from pairgram import nothing  # noqa: F401


def test_modules_are_attributes_and_names_come_late():
    code = (
        "import sys, pairgram\n"
        "assert 'numpy' not in sys.modules\n"
        "assert pairgram.metrics.evaluate is pairgram.evaluate\n"
        "assert 'pairgram.least_squares' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
