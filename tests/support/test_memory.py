"""What counts as available memory, and what stays within it."""

import os
import tracemalloc
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy import sparse

from pairgram import ELMRank, Nystroem, RandomNodes, RankRLS, dump_letor, load_letor
from parts.data import RankingData
from parts.support import machine as memory

GIB = 2**30


@pytest.fixture
def system(tmp_path):
    """Return a function that writes the files of a system with 8 GiB available."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    write({"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:   {8 * 2**20} kB\n"})
    return write


def test_the_system_alone(system, tmp_path):
    assert memory.available_memory(tmp_path) == 8 * GIB


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
def test_the_limit_of_a_cgroup(system, tmp_path, files, expected, group):
    system({"proc/self/cgroup": f"1:name=systemd:/old\n0::/{group}\n"})
    system({f"sys/fs/cgroup/{group}/{name}": text + "\n" for name, text in files.items()})
    assert memory.available_memory(tmp_path) == expected


def test_the_tightest_cgroup_around(system, tmp_path):
    system({"proc/self/cgroup": "0::/outer/inner\n"})
    groups = "sys/fs/cgroup/outer"
    system({f"{groups}/inner/memory.max": f"{4 * GIB}\n"})
    system({f"{groups}/inner/memory.current": f"{GIB}\n"})
    system({f"{groups}/memory.max": f"{2 * GIB}\n", f"{groups}/memory.current": f"{GIB}\n"})
    assert memory.available_memory(tmp_path) == GIB


def test_other_systems(tmp_path, monkeypatch):
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory.available_memory(tmp_path) == physical
    monkeypatch.delattr(os, "sysconf")
    assert memory.available_memory(tmp_path) == inf


def test_what_does_not_fit_is_refused_with_advice(free_memory):
    free_memory(3.0 * GIB)
    memory.require("a matrix", 3 * GIB)
    with pytest.raises(MemoryError, match=r"^a matrix takes 3.5 GiB, .* 3 GiB are free: use less$"):
        memory.require("a matrix", 3.5 * GIB, "use less")
    with pytest.raises(MemoryError, match=r"^it takes 4 GiB, but 3 GiB are free$"):
        memory.require("it", 4 * GIB)


def test_dense_files_that_do_not_fit(tmp_path, free_memory):
    path = tmp_path / "a.txt"
    dump_letor(path, np.ones((2, 3)), [0, 1])
    path.write_text(path.read_text() + "1 1000:1\n")
    free_memory(1000.0)
    with pytest.raises(
        ValueError,
        match="want them to fit into memory: load_letor takes sparse=True",
    ):
        load_letor(path)
    assert load_letor(path, sparse=True)[0].shape == (3, 1000)


def peak(function, *arguments):
    """Return the most bytes of arrays that were alive at once, of those that the call made."""
    tracemalloc.start()
    function(*arguments)
    bytes_ = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return bytes_


def test_rows_are_mapped_in_blocks_of_bounded_size():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(4000, 3)), rng.normal(size=4000)
    model = ELMRank(n_nodes=100, n_estimators=40, random_state=0).fit(X[:60], y[:60])
    expected = model.feature_map_.transform(X) @ model.coef_
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)
    assert expected.itemsize * 4000**2 > 100 << 20
    assert peak(model.predict, X) < 40 << 20
    data = RankingData.delimit(X, y)
    data = replace(data, feature_map=model.feature_map_)
    found = data.scores(slice(None), model.coef_[None])
    np.testing.assert_allclose(found[0], expected, rtol=1e-10)
    assert peak(data.scores, slice(None), model.coef_[None]) < 40 << 20


def test_sparse_rows_are_made_dense_in_blocks_of_bounded_size():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 4000, (2, 1600))
    X = sparse.csr_array((rng.uniform(size=1600), tuple(places)), shape=(4000, 4000))
    nodes = RandomNodes(5, random_state=0).fit(X)
    H = nodes.transform(X)
    np.testing.assert_allclose(H[:50], nodes.transform(X[:50].toarray()), rtol=1e-12)
    assert peak(nodes.transform, X) < 60 << 20
    model = RankRLS(feature_map=Nystroem(n_components=5, random_state=0))
    model.fit(X, np.arange(4000.0), qid=np.zeros(4000))
    assert peak(model.predict, X) < 60 << 20
