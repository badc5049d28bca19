"""Measures how much a reader must hold in mind, and stops a tree that has grown.

    .ci/gate

prints a table of this checkout, beside version 0.3.0 where its history has the figure: tokens of
the Python, what a plain call enters, parameters, which modules know of a room, and what a batch of
fits costs beside NumPy. The package must be installed.

One line has a limit, which stands in no file: the tokens may be `SLACK` more than the least that
any commit since 0.3.0 has had, and as many more as commits after that one name in trailers of their
messages::

    Capability: NAME +TOKENS

where the changelog must list NAME under "Added" of its newest version. Above the limit the exit
code is 1. A clone that lacks the history cannot know the least: it says so, and only prints.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import re
import runpy
import subprocess
import sys
import time
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "src/pairgram"
START = "b6774c6739aa1dce99d59a10ad6a9f85fb1b8b6f"  # version 0.3.0
SLACK = 12_000
# Folders and modules that the core is not to know.
ROOMS = set(runpy.run_path(str(ROOT / SOURCE / "_rooms.py"))["ROOMS"])


def tokens_by_line(text):
    """Count the names, operators and numbers of each line: text, comments and layout are free."""
    counts = {}
    begin, end = (getattr(tokenize, f"FSTRING_{word}", None) for word in ("START", "END"))
    depth = 0  # what stands in an f-string is text, as before Python 3.12
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.type == begin) - (token.type == end)
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER) and not depth:
            counts[token.start[0]] = counts.get(token.start[0], 0) + 1
    return counts


def tokens_of(text):
    return sum(tokens_by_line(text).values())


def decisions_of(tree):
    """Count the places where a function can go two ways."""
    count = 0
    for node in ast.walk(tree):
        count += isinstance(node, (ast.If, ast.IfExp, ast.ExceptHandler, ast.While, ast.match_case))
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return count


class History:
    """The commits of a repository since one of them."""

    def __init__(self, root, start=START):
        self.root, self.start, self._tokens = root, start, {}

    def git(self, *arguments, check=True):
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=check, capture_output=True, text=True).stdout

    def is_whole(self):
        """Tell whether the history goes back to its start."""
        shallow = self.git("rev-parse", "--is-shallow-repository", check=False).strip()
        command = ["git", "-C", str(self.root), "merge-base", "--is-ancestor", self.start, "HEAD"]
        return (
            shallow == "false"
            and subprocess.run(command, check=False, capture_output=True).returncode == 0
        )

    def files(self, commit):
        """Return {path of a module within the package: hash of its text}."""
        lines = self.git("ls-tree", "-r", commit, f"{SOURCE}/").splitlines()
        rows = [line.split(maxsplit=3) for line in lines if line.endswith(".py")]
        return {path.removeprefix(f"{SOURCE}/"): blob for _, _, blob, path in rows}

    def tokens(self, commit):
        """Count the tokens of a commit's Python."""
        blobs = self.files(commit).values()
        for blob in blobs - self._tokens.keys():
            self._tokens[blob] = tokens_of(self.git("cat-file", "blob", blob))
        return sum(self._tokens[blob] for blob in blobs)

    def added(self):
        """Return what the changelog lists as added in its newest version."""
        newest = re.split(r"^## ", (self.root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1]
        return newest.partition("### Added\n")[2].partition("\n### ")[0]

    def limit(self):
        """Return (limit of the tokens, sentences that say where it comes from)."""
        commits = [self.start, *self.git("rev-list", "--reverse", f"{self.start}..HEAD").split()]
        least, place = min((self.tokens(c), -i) for i, c in enumerate(commits))
        base = commits[-place]
        why = [f"{base[:8]} has had the least tokens: {least:,}; {SLACK:,} more are free"]
        limit = least + SLACK
        named = "%h%x09%(trailers:key=Capability,valueonly,unfold,separator=%x09)"
        for line in self.git("log", f"--format={named}", f"{base}..HEAD").splitlines():
            commit, *capabilities = filter(None, line.split("\t"))
            for text in capabilities:
                found = re.fullmatch(r"(.+) \+(\d+)", text.strip())
                if found is None:
                    raise SystemExit(f"{commit}: 'Capability: {text}' must end in +TOKENS")
                if not re.search(rf"^- {re.escape(found[1])}\b", self.added(), re.MULTILINE):
                    raise SystemExit(f"{commit}: CHANGELOG.md has no '- {found[1]}' under Added")
                limit += int(found[2])
                why.append(f"{commit} adds {found[1]}: {int(found[2]):,}")
        return limit, why


def room_of(path):
    """Return the folder of a module within the package, or its own name beside the folders."""
    return path.partition("/")[0].removesuffix(".py")


# Modules that say where names of rooms stand.
TABLES = {"__init__.py", "_rooms.py"}


def imports_of_rooms(texts):
    """Return {room: how many modules outside it import it, lazily or not}."""
    found = {room: set() for room in ROOMS}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            modules = []
            if isinstance(node, ast.ImportFrom) and path not in TABLES:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                modules = [node.value] if path not in TABLES else []
            parts = [module.split(".") for module in modules if module.startswith("pairgram.")]
            for room in {part[1] for part in parts} & ROOMS - {room_of(path)}:
                found[room].add(path)
    return {room: len(paths) for room, paths in sorted(found.items())}


class Bodies:
    """The tokens and decisions of all functions of the installed package."""

    def __init__(self, folder):
        self.folder, self.of = str(folder), {}
        for path in folder.rglob("*.py"):
            text = path.read_text()
            counts = tokens_by_line(text)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    own = sum(counts.get(i, 0) for i in range(node.lineno, node.end_lineno + 1))
                    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                    self.of[str(path), first] = own, decisions_of(node)

    def entered(self, call):
        """Return (tokens, decisions) of the whole bodies of all functions that a call enters.

        Moving, splitting, merging and inheriting change nothing.
        """
        seen = set()

        def profile(frame, event, _):
            if event == "call" and frame.f_code.co_filename.startswith(self.folder):
                seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

        call()  # what is imported or kept at the first call does not count
        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(None)
        bodies = [self.of[place] for place in seen if place in self.of]
        return tuple(map(sum, zip(*bodies, strict=True)))


def trips(pairgram, numpy):
    """Return {name: a plain call}."""
    draw = numpy.random.default_rng(0)
    X, qid = draw.standard_normal((600, 12)), numpy.repeat(numpy.arange(30), 20)
    y = numpy.digitize(X[:, 0], [-0.5, 0.5]) * 1.0
    model = pairgram.RankRLS().fit(X, y, qid=qid)
    rankers = ("RankRLS", "RankRLSCV", "RankSVM", "RankSVMCV")
    calls = {
        f"{name}.fit": lambda name=name: getattr(pairgram, name)().fit(X, y, qid=qid)
        for name in rankers
    }
    return calls | {
        "fit_many of one": lambda: pairgram.fit_many(pairgram.RankRLS(), [(X, y, qid)]),
        "predict": lambda: model.predict(X),
        "evaluate": lambda: pairgram.evaluate("ndcg@10", y, X[:, 0], qid),
    }


def parameters(pairgram):
    """Return (the most of one estimator, different ones of estimators, of all public classes)."""
    of = {}
    for name in pairgram.__all__:
        value = getattr(pairgram, name)
        if inspect.isclass(value):
            try:
                of[value] = list(inspect.signature(value).parameters)
            except ValueError:  # an exception's
                continue
    own = {c: names for c, names in of.items() if hasattr(c, "fit") and hasattr(c, "get_params")}
    return (
        max(map(len, own.values())),
        len({name for names in own.values() for name in names}),
        len({name for names in of.values() for name in names}),
    )


def batch(pairgram, numpy, count=1000, rows=40, columns=20):
    """Return {who: microseconds a data set} of one ridge for each of many small data sets."""
    draw = numpy.random.default_rng(0)
    X = draw.standard_normal((count, rows, columns))
    y = draw.integers(0, 4, (count, rows)) * 1.0
    parts = list(zip(X, y, strict=True))

    def many():
        return pairgram.fit_many(pairgram.RankRLS(), parts).coef_

    def by_hand():
        weights = []
        for one, labels in parts:
            Z = one - one.mean(0)
            G = rows * (Z.T @ Z) + numpy.eye(columns)
            weights.append(numpy.linalg.solve(G, rows * (Z.T @ (labels - labels.mean()))))
        return numpy.array(weights)

    def batched():
        Z = X - X.mean(1, keepdims=True)
        G = rows * numpy.matmul(Z.transpose(0, 2, 1), Z) + numpy.eye(columns)
        g = rows * numpy.einsum("gnd,gn->gd", Z, y - y.mean(1, keepdims=True))
        return numpy.linalg.solve(G, g[..., None])[..., 0]

    calls = {"fit_many": many, "NumPy, a loop": by_hand, "NumPy, batched": batched}
    numpy.testing.assert_allclose(many(), by_hand(), atol=1e-9)
    numpy.testing.assert_allclose(many(), batched(), atol=1e-9)
    seconds = {}
    for name, call in calls.items():
        times = []
        for _ in range(5):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        seconds[name] = 1e6 * min(times) / count
    return seconds


def lines_in(folder, *endings):
    paths = [path for ending in endings for path in (ROOT / folder).rglob(f"*{ending}")]
    return sum(len(path.read_text().splitlines()) for path in paths)


def main():
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    import numpy

    import pairgram

    def row(name, *values):
        print(f"{name:48s}" + "".join(f"{value:>12}" for value in values))

    history = History(ROOT)
    is_whole = history.is_whole()
    here = {
        str(path.relative_to(ROOT / SOURCE)): path.read_text()
        for path in sorted((ROOT / SOURCE).rglob("*.py"))
    }
    tokens = {path: tokens_of(text) for path, text in here.items()}
    total = sum(tokens.values())
    row("", "here", "0.3.0")
    row("tokens of the Python", f"{total:,}", f"{history.tokens(START):,}" if is_whole else "")
    core = sum(count for path, count in tokens.items() if room_of(path) not in ROOMS)
    row("  of the core", f"{core:,}")
    row("lines of C++", f"{lines_in('csrc', '.cpp', '.hpp', '.pyx'):,}")
    row("lines of tests", f"{lines_in('tests', '.py'):,}")
    bodies = Bodies(Path(pairgram.__file__).parent)
    for name, call in trips(pairgram, numpy).items():
        row(f"tokens / decisions entered by {name}", " / ".join(map(str, bodies.entered(call))))
    row(
        "parameters: most / of estimators / of classes",
        "{} / {} / {}".format(*parameters(pairgram)),
    )
    for room, count in imports_of_rooms(here).items():
        row(f"modules that import the room {room}", count)
    for name, time_of_one in batch(pairgram, numpy).items():
        row(f"40 x 20, one thread, {name}, microseconds", f"{time_of_one:.1f}")
    if not is_whole:
        print("This clone lacks the history since 0.3.0, so the tokens have no limit here.")
        return 0
    limit, why = history.limit()
    print(*why, sep="\n")
    print(f"tokens: {total:,} of at most {limit:,}")
    return int(total > limit)


if __name__ == "__main__":
    sys.exit(main())
