"""The scripts of benchmarks: each loads, prints the tables that are asked for, and some of them."""

import argparse
import os
import runpy
import shlex
import sys
import types
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

import pairgram

FOLDER = Path(__file__).parents[1]
SCRIPTS = [
    path for path in FOLDER.rglob("*.py") if path.parent.name != "tests" and path.stem != "__main__"
]


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS))
def test_every_script_loads(script, name):
    """With what it imports, some of which has no public name."""
    module = script(name)
    assert Path(module.__file__).parent in (FOLDER, FOLDER / "papers")
    assert module.__doc__


def commands_of_pages():
    """Return the words of every command of the pages."""
    every = runpy.run_path(str(FOLDER / "every.py"))
    pages = (page.read_text() for page in every["PAGES"])
    return [shlex.split(command) for page in pages for _, command in every["commands_of"](page)]


class Parsed(Exception):
    """What a script is stopped by when it has read its words."""


@pytest.mark.parametrize("words", commands_of_pages(), ids=" ".join)
def test_scripts_take_the_words_of_the_pages(script, monkeypatch, words):
    parse = argparse.ArgumentParser.parse_args

    def parsed(self, *given):
        parse(self, *given)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.setattr(sys, "argv", words[1:])
    with pytest.raises(Parsed):
        script(Path(words[1]).stem).main()


def test_pages_name_ways_that_there_are(script):
    known = script("letor").trainers(1, [0.4, 3.0])
    for words in commands_of_pages():
        if words[1] == "bench/letor.py" and "--way" in words:
            assert any(words[words.index("--way") + 1] in way for way in known)


def test_threads_are_limited_here_and_in_fresh_processes(script):
    common, thread_count = script("common"), pairgram._support.machine.thread_count
    with threadpool_limits(None):  # gives BLAS its threads back
        assert common.use_threads(None) == thread_count()
        assert common.use_threads(1) == thread_count() == 1
        assert common.in_fresh_process(thread_count) == 1
        assert common.on_threads(3, thread_count)() == 3


def test_tables_that_are_asked_for(script, monkeypatch, capsys):
    common = script("common")
    tables = {name: lambda options, name=name: [f"{name} {options}"] for name in "ab"}

    def printed(*words):
        monkeypatch.setattr(sys, "argv", ["bench.py", *words])
        parser = argparse.ArgumentParser()
        parser.add_argument("--rows", type=int, default=5)
        with threadpool_limits(None):  # gives BLAS its threads back
            common.print_tables(parser, tables, types.SimpleNamespace, ("numpy",), repeat=2)
        return capsys.readouterr().out.split("\n", 1)[1]

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    threads = common.use_threads(None)
    said = f"namespace(rows=5, repeat=2, threads={threads})"
    assert printed() == f"Medians of 2 runs.\n\na {said}\n\nb {said}\n"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    said = "namespace(rows=6, repeat=1, threads=1)"
    chosen = printed("b", "--rows", "6", "--repeat", "1", "--threads", "1")
    assert chosen == f"Medians of 1 runs.\n\nb {said}\n"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    with pytest.raises(SystemExit):
        printed("c")
    assert "unknown table 'c'; the tables are a, b" in capsys.readouterr().err


@pytest.fixture
def here(script, monkeypatch):
    """Return a function that loads a script whose new processes are calls: they import for long."""

    def loaded(name):
        module = script(name)
        monkeypatch.setattr(module, "in_fresh_process", lambda work, *given: work(*given))
        return module

    return loaded


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_tables_of_the_dual(here, monkeypatch, capsys):
    small = ["--rows", "80", "--memory-rows", "600", "--repeat", "1"]
    monkeypatch.setattr(sys, "argv", ["dual.py", *small])
    here("dual").main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert [cells[0].strip() for cells in tables].count("way") == 2
    formulas = [float(cells[1]) for cells in tables[-6:]]
    assert formulas == [1.0, 1.5, 1.5] * 2
    assert all(float(cells[2]) >= 0 for cells in tables[-6:])


@pytest.mark.filterwarnings("ignore")
def test_tables_of_wide_rows(here, monkeypatch, capsys):
    small = ["--rows", "800", "--features", "120", "--large-rows", "900", "--large-features", "300"]
    monkeypatch.setattr(sys, "argv", ["wide.py", *small, "--repeat", "1"])
    here("wide").main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    first = [cells[0].strip() for cells in tables]
    assert first.count("as they are") == first.count("lognormal") == 1
    assert first.count("RankRLSCV") == 2
    products = [int(tables[first.index(scales)][1]) for scales in ("as they are", "lognormal")]
    assert all(34 < count < 10_000 for count in products)
    assert [cells[1].strip() for cells in tables[-3:]] == ["one ridge", "cv=None", "cv=5"]


def test_residuals_of_wide_rows_are_those_of_dense_matrices(script):
    """The residual of the solution vanishes, and that of another one does not."""
    wide = script("wide")
    rows = wide.make_rows(200, 60, 5)
    exact = pairgram.RankRLS(2.0).fit(rows.X.toarray(), rows.y, qid=rows.qid).coef_
    assert wide.residuals(rows, [2.0], exact[None]) < 1e-12
    assert wide.residuals(rows, [2.0], 1.01 * exact[None]) > 1e-4


def test_tables_of_many_data_sets(script, monkeypatch, capsys):
    many = script("many")
    few = {"shapes": (6, 8, 3), "wide": (6, 5, 9)}
    monkeypatch.setattr(many, "SHAPES", tuple(few.values()))
    monkeypatch.setattr(sys, "argv", ["many.py", "--small", "--repeat", "1", "--threads", "1"])
    many.main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert len(tables) == 8 + 4 + 16 + 4
    for cells in tables:
        if cells[0].strip() not in ("way", "what", "data sets", "---"):
            assert all(float(cell) > 0 for cell in cells[1:])


@pytest.mark.filterwarnings("ignore")
def test_tables_of_certainty(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["certainty.py", "coverage", "--seeds", "2", "--repeat", "1"])
    script("certainty").main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    labels = [cells for cells in tables if cells[2].strip() == "labels" and "two" not in cells[0]]
    assert len(labels) == 6
    for cells in labels:  # of two draws
        shares = [float(share) for share in cells[3:]]
        assert shares == sorted(shares) and abs(shares[2] - 0.9) < 0.06


@pytest.mark.filterwarnings("ignore")
def test_tables_of_what_to_measure(script, monkeypatch, capsys):
    active = script("active")
    monkeypatch.setattr(active, "ROUNDS", 3)
    monkeypatch.setattr(active, "DAYS", 12)
    monkeypatch.setattr(sys, "argv", ["active.py", "--seeds", "2"])
    active.main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    found = {cells[1].strip(): float(cells[2]) for cells in tables[2:6]}
    assert len(found) == 4 and found['`propose`, "upper"'] > found["random"]
    regrets = [float(cells[3].split("±")[0]) for cells in tables[8:]]
    assert len(regrets) == 12 and min(regrets) > 0


def test_every_table_of_the_page_has_a_command(script):
    """And all commands are run by ``python -m bench --all``."""
    every = script("every")
    page = every.PAGES[0].read_text()
    commands = [one for text in every.PAGES for one in every.commands_of(text.read_text())]
    assert {part.split()[1] for _, part in commands} <= {
        path.relative_to(FOLDER.parent).as_posix() for path in SCRIPTS
    }
    with_tables = {
        section.partition("\n")[0] for section in page.split("\n## ")[1:] if "\n|" in section
    }
    assert with_tables == {section for section, _ in commands} & with_tables


def test_commands_are_run_once(script, monkeypatch, tmp_path, capsys):
    every = script("every")
    page = tmp_path / "page.md"
    page.write_text("## Made\n\n```sh\npython bench/made.py 3  # a remark\n```\n")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "made.py").write_text("import sys\nprint(sys.argv[1:])\n")
    monkeypatch.setattr(every, "PAGES", [page])
    monkeypatch.setattr(every, "ROOT", tmp_path)
    monkeypatch.setattr(every, "revision", lambda: "one")
    words = ["bench", "--all", "--results", str(tmp_path / "results")]
    monkeypatch.setattr(sys, "argv", words)
    assert every.main() == 0 and "running" in capsys.readouterr().out
    assert (tmp_path / "results" / "01.txt").read_text() == "['3']\n"
    assert every.main() == 0 and "running" not in capsys.readouterr().out
    monkeypatch.setattr(every, "revision", lambda: "two")
    (tmp_path / "bench" / "made.py").write_text("raise SystemExit(7)")
    assert every.main() == 1 and "exit 7" in capsys.readouterr().out
    page.write_text("```sh\npython bench/made.py --data FOLDER\n```\n")
    assert every.main() == every.NO_DATA and "give --data" in capsys.readouterr().out


def test_tables_of_serving(here, monkeypatch, capsys):
    pytest.importorskip("fastapi")
    serving = here("serving")
    for name in ("FastAPI", "Spark", "Flink"):  # as the page promises
        assert len([line for line in serving.code_of(name).splitlines() if line]) <= 16
    few = ["start", "pipeline", "fastapi", "--requests", "8", "--repeat", "1"]
    monkeypatch.setattr(sys, "argv", ["serving.py", *few])
    serving.main()
    tables = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert len(tables) == 2 + len(serving.MODELS) + 2 + 2 + 2 + 3 * len(serving.SERVED)
