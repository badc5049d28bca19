"""What counts as available memory."""

import os
from math import inf

import numpy as np
import pytest

from pairgram import _letor_load, _memory, dump_letor, load_letor

GIB = 2**30


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a function that writes the files of a system with 8 GiB available."""
    monkeypatch.setattr(_memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(_memory, "_CGROUPS", tmp_path / "cgroup")

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    write({"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:   {8 * 2**20} kB\n"})
    return write


def test_the_system_alone(system):
    assert _memory.available_memory() == 8 * GIB


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": str(3 * GIB), "memory.current": str(GIB)}, 2 * GIB),
        ({"memory.max": str(30 * GIB), "memory.current": str(GIB)}, 8 * GIB),
        ({"memory.max": "max", "memory.current": str(GIB)}, 8 * GIB),
        ({"memory.max": str(GIB), "memory.current": str(2 * GIB)}, 0),
        ({"memory.max": str(GIB)}, 8 * GIB),
        ({"memory.max": "?", "memory.current": "?"}, 8 * GIB),
        (
            {
                "memory.max": str(3 * GIB),
                "memory.current": str(2 * GIB),
                "memory.stat": f"anon 1\ninactive_file {GIB}\nactive_file 5\n",
            },
            2 * GIB,
        ),
    ],
)
@pytest.mark.parametrize("group", ["", "user/session"])
def test_the_limit_of_a_cgroup(system, files, expected, group):
    system({"proc/self/cgroup": f"1:name=systemd:/old\n0::/{group}\n"})
    system({f"cgroup/{group}/{name}": text + "\n" for name, text in files.items()})
    assert _memory.available_memory() == expected


def test_the_tightest_cgroup_around(system):
    system({"proc/self/cgroup": "0::/outer/inner\n"})
    system({"cgroup/outer/inner/memory.max": f"{4 * GIB}\n"})
    system({"cgroup/outer/inner/memory.current": f"{GIB}\n"})
    system({"cgroup/outer/memory.max": f"{2 * GIB}\n", "cgroup/outer/memory.current": f"{GIB}\n"})
    assert _memory.available_memory() == GIB


def test_other_systems(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "_PROC", tmp_path)
    monkeypatch.setattr(_memory, "_CGROUPS", tmp_path)
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert _memory.available_memory() == physical
    monkeypatch.delattr(os, "sysconf")
    assert _memory.available_memory() == inf


def test_dense_files_that_do_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    dump_letor(path, np.ones((2, 3)), [0, 1])
    path.write_text(path.read_text() + "1 1000:1\n")
    monkeypatch.setattr(_letor_load, "available_memory", lambda: 1000.0)
    with pytest.raises(ValueError, match="want them to fit into memory: pass sparse=True"):
        load_letor(path)
    assert load_letor(path, sparse=True)[0].shape == (3, 1000)
