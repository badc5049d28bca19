"""The limit of tokens comes from the history of a repository alone."""

import subprocess

import gate
import pytest


@pytest.fixture
def repository(tmp_path):
    """Return a function that commits a module of so many tokens, and the history since then."""

    def commit(n_tokens, message="work"):
        (tmp_path / gate.SOURCE).mkdir(parents=True, exist_ok=True)
        (tmp_path / gate.SOURCE / "module.py").write_text("x\n" * n_tokens)
        (tmp_path / "CHANGELOG.md").write_text(
            "# Log\n## 1\n### Added\n- shards, many\n### Fixed\n- shapes\n## 0\n- forms\n"
        )
        git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
        for arguments in (["add", "."], ["commit", "-q", "--allow-empty", "-m", message]):
            subprocess.run([*git, *arguments], check=True)
        command = [*git, "rev-parse", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return commit, gate.History(tmp_path, commit(50_000))


def test_the_least_of_all_commits_counts(repository):
    commit, history = repository
    assert history.limit()[0] == 62_000
    commit(40_000)
    commit(45_000)
    assert history.tokens("HEAD") == 45_000
    assert history.limit()[0] == 52_000
    assert history.is_whole()


def test_only_capabilities_after_the_least_raise_the_limit(repository):
    commit, history = repository
    commit(45_000, "text\n\nCapability: shards +3000")
    commit(40_000, "text\n\nCapability: shards +500")
    assert history.limit()[0] == 52_000
    commit(40_200, "text\n\nCapability: shards +200\nCapability: shards +30")
    assert history.limit()[0] == 52_230


@pytest.mark.parametrize(
    ("trailer", "words"),
    [
        ("shards", "must end in"),
        ("shards 200", "must end in"),
        ("shapes +200", "'- shapes'"),
        ("s +200", "'- s'"),
    ],
)
def test_a_capability_has_a_number_and_is_in_the_changelog(repository, trailer, words):
    commit, history = repository
    commit(50_100, f"text\n\nCapability: {trailer}")
    with pytest.raises(SystemExit, match=words):
        history.limit()


def test_a_history_that_lacks_its_start_is_known(repository, tmp_path):
    commit, history = repository
    commit(50_000)
    assert not gate.History(history.root, "0" * 40).is_whole()
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{tmp_path}", copy], check=True)
    assert not gate.History(copy, history.start).is_whole()


def test_tokens_and_decisions():
    text = '"""Text."""\n\n\ndef f(x):  # comment\n    return f"{x + 1}" if x and x > 1 else 2\n'
    # def f ( x ) : return if x and x > 1 else 2
    assert gate.tokens_of(text) == 15
    assert gate.decisions_of(gate.ast.parse(text)) == 2


def test_rooms_that_are_known_outside():
    found = gate.imports_of_rooms(
        {
            "rankers/linear_ranker.py": "def f():\n    from pairgram.tables.scan import Table\n",
            "cli/app.py": "import pairgram.cli.tables\nfrom pairgram.data import pairs\n",
            "files/known.py": "PLACES = ['pairgram.tables.scan', 'pairgram.export']\n",
            "__init__.py": "from pairgram.tables.scan import scan\n",
        }
    )
    assert found == dict.fromkeys(sorted(gate.ROOMS), 0) | {"tables": 2, "export": 1}
