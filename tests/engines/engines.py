"""The engines: each is given exported models and rows, and answers with scores and orders."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
MAVEN_SECONDS = 180


class Unavailable(Exception):
    """An engine that is not to be had on this machine, and why."""


@dataclass
class Answers:
    """What an engine answers.

    `scores` has a list of the scores of the rows for every case, NaN for none, `orders` the rows of
    every query in the engine's order, where it has one.
    """

    version: str
    seconds: float = 0.0  # of starting it
    mebibytes: float = 0.0  # the most that it had in memory
    scores: dict[str, list[float]] = field(default_factory=dict)
    orders: dict[str, dict[str, list[int]]] = field(default_factory=dict)


def class_path(profile):
    """Return the class path of a profile of pom.xml, which Maven downloads."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise Unavailable("there is no Maven, or no Java")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "path")
        command = [maven, "-q", "-B", "-f", HERE / "pom.xml", "-P", profile]
        try:
            done = subprocess.run(
                [*command, "dependency:build-classpath", f"-Dmdep.outputFile={file}"],
                capture_output=True,
                text=True,
                timeout=MAVEN_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven does not get it in {MAVEN_SECONDS} s") from None
        if done.returncode or not file.exists():
            errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
            raise Unavailable(f"Maven does not get it: {(errors or ['no error is told'])[0]}")
        return file.read_text()


@contextmanager
def java(profile, source, *arguments):
    """Run a source file in Java; yield the process, and the seconds until its first line."""
    path = class_path(profile)
    with tempfile.TemporaryDirectory() as folder:
        listed, log = Path(folder, "arguments"), Path(folder, "log")
        listed.write_text(f'-cp "{path}"\n-Xmx1g\n')
        start = time.perf_counter()
        with log.open("w") as errors:
            process = subprocess.Popen(
                ["java", f"@{listed}", HERE / source, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            process.log = log
            process.first_line = process.stdout.readline().strip()
            process.seconds = time.perf_counter() - start
            if not process.first_line:
                raise Unavailable(f"{source} ended at its start: {log.read_text()[-1000:]}")
            yield process
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def peak(pid):
    """Return the most memory that a process had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def version_of(profile, artifact):
    """Return a version of pom.xml."""
    text = (HERE / "pom.xml").read_text().split(f"<id>{profile}</id>")[1]
    return text.split(f"<artifactId>{artifact}</artifactId>")[1].split("<version>")[1].split("<")[0]


SOLR_FILES = {
    "solr.xml": "<solr/>",
    "rows/core.properties": "name=rows\n",
    "rows/conf/schema.xml": """<schema name="rows" version="1.6">
  <fieldType name="string" class="solr.StrField"/>
  <fieldType name="number" class="solr.FloatPointField" docValues="true"/>
  <field name="id" type="string" stored="true"/>
  <field name="query" type="string" indexed="true"/>
  <dynamicField name="f*" type="number"/>
  <field name="price" type="number"/>
  <field name="rating" type="number"/>
  <field name="stock" type="number"/>
  <field name="brand" type="string"/>
  <field name="colour" type="string"/>
  <uniqueKey>id</uniqueKey>
</schema>""",
    "rows/conf/solrconfig.xml": """<config>
  <luceneMatchVersion>LATEST</luceneMatchVersion>
  <schemaFactory class="ClassicIndexSchemaFactory"/>
  <requestHandler name="/query" class="solr.SearchHandler"/>
  <queryParser name="ltr" class="org.apache.solr.ltr.search.LTRQParserPlugin"/>
</config>""",
}
# Above this size a model goes to the server as a file that a wrapper names.
WRAPPED = 20_000


def request(url, body=None, method="PUT"):
    """Send JSON, and return the answer; raise a RuntimeError with the engine's words."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    sent = urllib.request.Request(url, data, headers, method=method if data else "GET")
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(error.read().decode()[:1000]) from None


def solr(exported, rows, qid):
    """Upload features and models by REST, index the rows, and rerank all documents of a query."""
    answers = Answers(f"Solr {version_of('solr', 'solr-ltr')}")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SOLR_FILES.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(text)
        with java("solr", "Solr.java", folder) as server:
            answers.seconds = server.seconds
            url = f"http://127.0.0.1:{server.first_line.split()[1]}/solr/rows"
            _fill_solr(url, rows, qid)
            for case, body in exported.items():
                _upload(url, Path(folder, "rows", "conf"), case, body)
                scores = np.full(len(rows), np.nan)
                orders = answers.orders.setdefault(case.name, {})
                for query in dict.fromkeys(qid.tolist()):
                    rerank = f"{{!ltr model={case.name} reRankDocs=1000}}"
                    asked = {"q": f"query:{query}", "rq": rerank, "fl": "id,score", "rows": 1000}
                    text = urllib.parse.urlencode(asked)
                    found = request(f"{url}/query?{text}")["response"]["docs"]
                    orders[query] = [int(one["id"]) for one in found]
                    for one in found:
                        scores[int(one["id"])] = one["score"]
                answers.scores[case.name] = scores.tolist()
            answers.mebibytes = peak(server.pid)
    return answers


def _fill_solr(url, rows, qid):
    """Index the rows."""
    documents = [
        {"id": str(row), "query": query}
        | {name: value for name, value in values.items() if value == value}
        for row, (values, query) in enumerate(zip(rows.to_dict("records"), qid, strict=True))
    ]
    request(f"{url}/update?commit=true", documents, method="POST")


def _upload(url, conf, case, body):
    """Upload the features and the model of a case."""
    fills = case.fill_values
    features = []
    computed = {one["name"] for one in body.definitions}
    for j, name in enumerate(body.feature_names):
        if name in body.text_names or name in computed:
            continue
        params = {"field": name}
        if fills is not None:
            params["defaultValue"] = float(fills[j])
        made = {"class": "org.apache.solr.ltr.feature.FieldValueFeature", "params": params}
        features.append({"store": case.name, "name": name, **made})
    request(f"{url}/schema/feature-store", [*features, *body.definitions])
    if len(json.dumps(body)) > WRAPPED:
        (conf / f"{case.name}.json").write_text(json.dumps(body))
        body = {
            "store": case.name,
            "name": case.name,
            "class": "org.apache.solr.ltr.model.DefaultWrapperModel",
            "params": {"resource": f"{case.name}.json"},
        }
    request(f"{url}/schema/model-store", body)


@contextmanager
def harness(answers, profile, source, folder):
    """Run a source file that reads models and rows in a folder, until it has written scores."""
    with java(profile, source, folder) as process:
        answers.seconds = process.seconds
        # An engine may print lines of its own.
        if not any(line.strip() == "done" for line in process.stdout):
            raise RuntimeError(f"{source} failed:\n{process.log.read_text()[:4000]}")
        answers.mebibytes = peak(process.pid)
    yield


def ranklib(exported, rows, qid):
    """Let RankLib read the text of models and of rows."""
    answers = Answers(f"RankyMcRankFace {version_of('ranklib', 'RankyMcRankFace')}")
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"0 qid:{query} "
            + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1) if value == value)
            for row, query in zip(rows.to_numpy().tolist(), qid.tolist(), strict=True)
        ]
        Path(folder, "rows").write_text("\n".join(lines) + "\n")
        for case, text in exported.items():
            Path(folder, f"{case.name}.model").write_text(text)
        with harness(answers, "ranklib", "Ranklib.java", folder):
            for case in exported:
                found = Path(folder, f"{case.name}.scores").read_text().split()
                answers.scores[case.name] = [*map(float, found)]
    return answers


def vespa(exported, rows, qid):
    """Let Vespa evaluate expressions; text goes to it as the digits of its bytes.

    A feature of a model that does not ask whether it is missing counts 0 then. NaN is a value for
    the global phase, a document that a run lacks. Where a profile has a model of ONNX, Vespa makes
    the tensor that goes in, and its nodes leave the rest to onnxruntime.
    """
    import onnxruntime

    answers = Answers(f"Vespa {version_of('vespa', 'searchlib')}")
    with tempfile.TemporaryDirectory() as folder:
        asks = any(case.group for case in exported)
        numbers = {name for name in rows if rows[name].dtype != object}
        filled = rows if asks else rows.fillna(0.0)
        written = [qid.tolist()] + [
            [
                repr(value) if name in numbers else f"x{_text(value).encode().hex()}"
                for value in filled[name].tolist()
            ]
            for name in rows
        ]
        lines = ["\t".join(map(str, row)) for row in zip(*written, strict=True)]
        head = "\t".join(["query", *rows])
        Path(folder, "rows").write_text("\n".join([head, *lines]) + "\n")
        for case, profile in exported.items():
            text = re.findall(r"^        expression: (.*)$", str(profile), re.MULTILINE)[0]
            Path(folder, f"{case.name}.expression").write_text(text)
        with harness(answers, "vespa", "Vespa.java", folder):
            for case, profile in exported.items():
                found = np.loadtxt(Path(folder, f"{case.name}.scores"), ndmin=2)
                if profile.onnx is not None:
                    session = onnxruntime.InferenceSession(bytes(profile.onnx))
                    found = session.run(None, {"features": found.astype(np.float32)})[0]
                answers.scores[case.name] = found[:, 0].tolist()
    return answers


def of_onnxruntime(exported, rows, qid):
    """Score rows by onnxruntime."""
    import onnxruntime

    answers = Answers(f"onnxruntime {onnxruntime.__version__}")
    for case, file in exported.items():
        start = time.perf_counter()
        session = onnxruntime.InferenceSession(bytes(file), providers=["CPUExecutionProvider"])
        answers.seconds = max(answers.seconds, time.perf_counter() - start)
        numbers = [name for name in rows if name not in file.text_names]
        # Columns that a model does not read may be text.
        given = (
            rows[numbers]
            .apply(pd.to_numeric, errors="coerce")
            .fillna({name: 0.0 for name in numbers if rows[name].dtype == object})
        )
        inputs = {"features": given.to_numpy(np.float32)}
        if file.text_names:
            inputs["texts"] = rows[list(file.text_names)].map(_text).to_numpy(object)
        asked = {one.name for one in session.get_inputs()}
        inputs = {name: value for name, value in inputs.items() if name in asked}
        scores = session.run(None, inputs)[0][:, 0]
        answers.scores[case.name] = scores.tolist()
    return answers


def _text(value):
    """Return text, empty for missing text."""
    return value if isinstance(value, str) else ""


def _selects(exported, rows):
    """Return the text that creates a table of the rows, and a query of the scores per case."""
    kinds = {name: "TEXT" if rows[name].dtype == object else "DOUBLE PRECISION" for name in rows}
    listed = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    create = f"CREATE TEMPORARY TABLE listed (place INTEGER, {listed})"
    selects = {
        case: f"SELECT {text} AS score FROM listed ORDER BY place"
        for case, text in exported.items()
    }
    return create, selects


def _places(rows, text_gap=None):
    """Return the number and the values of every row; missing text is NULL."""
    columns = [
        [text_gap if value != value else value for value in rows[name].tolist()]
        if rows[name].dtype == object
        else rows[name].tolist()
        for name in rows
    ]
    return [(place, *row) for place, row in enumerate(zip(*columns, strict=True))]


def _numbers(found):
    """Return a column of numbers, NaN for NULL."""
    return [float("nan") if value is None else float(value) for (value,) in found]


def sqlite(exported, rows, qid):
    """Score the rows of a table in SQLite, where a missing value is NULL."""
    import sqlite3

    answers = Answers(f"SQLite {sqlite3.sqlite_version}")
    create, selects = _selects(exported, rows)
    with sqlite3.connect(":memory:") as connection:
        connection.execute(create)
        marks = ", ".join("?" * (1 + rows.shape[1]))
        connection.executemany(f"INSERT INTO listed VALUES ({marks})", _places(rows))
        for case, select in selects.items():
            answers.scores[case.name] = _numbers(connection.execute(select).fetchall())
    connection.close()
    return answers


def duckdb(exported, rows, qid):
    """Score the rows of a table in DuckDB, where a missing value is NaN."""
    import duckdb as package

    answers = Answers(f"DuckDB {package.__version__}")
    create, selects = _selects(exported, rows)
    start = time.perf_counter()
    with package.connect() as connection:
        answers.seconds = time.perf_counter() - start
        connection.execute(create)
        marks = ", ".join("?" * (1 + rows.shape[1]))
        connection.begin()  # for each row alone takes as long as ten
        connection.executemany(f"INSERT INTO listed VALUES ({marks})", _places(rows))
        for case, select in selects.items():
            answers.scores[case.name] = _numbers(connection.execute(select).fetchall())
    return answers


def _copied(value):
    """Write a value as COPY reads it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        return escaped.replace("\t", "\\t").replace("\r", "\\r")
    return "\\N" if value is None or value != value else repr(value)


def postgresql(exported, rows, qid):
    """Start a PostgreSQL on a socket of its own, and score the rows of a table; NULL is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found or shutil.which("psql") is None:
        raise Unavailable("no PostgreSQL is installed")
    binaries = found[-1].parent
    create, selects = _selects(exported, rows)
    # The server refuses to run as root.
    own = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        if own:
            shutil.chown(folder, "postgres")
        data = f"{folder}/data"
        start = time.perf_counter()
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
        for command in (
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"],
            [binaries / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"],
        ):
            done = subprocess.run(
                [*own, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=folder
            )
            if done.returncode:
                raise Unavailable(f"{command[0].name} failed with code {done.returncode}")
        try:
            seconds = time.perf_counter() - start
            lines = [create.replace("TEMPORARY ", "") + ";", "COPY listed FROM STDIN;"]
            for place, *row in _places(rows):
                values = [_copied(value) for value in row]
                lines.append("\t".join([str(place), *values]))
            lines.append("\\.")
            lines += [f"\\echo case {case.name}\n{text};" for case, text in selects.items()]
            text = "SHOW server_version;\n" + "\n".join(lines) + "\n"
            asked = ["psql", "-h", folder, "-U", "postgres", "-At", "-q", "-v", "ON_ERROR_STOP=1"]
            done = subprocess.run([*own, *asked], input=text, capture_output=True, text=True)
            if done.returncode:
                case = done.stdout.rpartition("case ")[2].split("\n")[0]
                raise RuntimeError(f"{case}: {done.stderr[:2000]}")
            pid = int(Path(data, "postmaster.pid").read_text().split()[0])
            memory = peak(pid)
        finally:
            stop = [*own, binaries / "pg_ctl", "-D", data, "-m", "fast", "stop"]
            subprocess.run(stop, stdout=subprocess.DEVNULL, cwd=folder)
    version, *parts = done.stdout.split("case ")
    answers = Answers(f"PostgreSQL {version.split()[0]}", seconds, memory)
    for part in parts:
        name, *scores = part.removesuffix("\n").split("\n")
        answers.scores[name] = [float(one) if one else float("nan") for one in scores]
    return answers
