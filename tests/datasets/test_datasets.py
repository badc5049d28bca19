"""LETOR files, folds and synthetic data."""

import bz2
import gzip
import lzma
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings, strategies as st
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Ridge

from letor_reference import WrongLine, dense, is_id, read, to_float32
from pairgram import RankRLSCV, _core, get_metric
from pairgram.datasets import (
    Fold,
    LetorData,
    dump_letor,
    load_letor,
    load_letor_folds,
    make_ranking,
)
from parts.datasets import letor
from parts.support import on_threads

PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def write(tmp_path):
    """Write bytes to a file, return its path."""

    def write_file(data, name="data.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write_file


def parser_of(*, piece=1 << 16, n_threads=1, dtype=np.float64):
    kernel = _core.LetorParser64 if dtype == np.float64 else _core.LetorParser32
    named = {"n_features": -1, "zero_based": False, "keep_comments": True}
    return kernel(name="f", piece_size=piece, n_threads=n_threads, **named)


def parse(data, *, chunk=1 << 20, **options):
    """Parse bytes by the kernel alone, which gets them in chunks; return the finished parser."""
    parser = parser_of(**options)
    for begin in range(0, len(data), chunk):
        parser.feed(data[begin : begin + chunk])
    parser.finish()
    return parser


def same_bits(left, right):
    left, right = np.asarray(left), np.asarray(right)
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


# Reading


def test_a_file_by_hand(write):
    path = write(
        "# a comment alone\n\n"
        "2 qid:7 1:0.5\t3:-1e-3   # docid = A #1 \r\n"
        "+1 qid:7 2:.5 3:5.#B\n"
        " \t\n"
        "0 qid:-3\n"
        ".5 qid:0 01:+1E2 2:-0"
    )
    X, y, qid, comments = load_letor(path, comments=True)
    expected = [[0.5, 0, -0.001], [0, 0.5, 5], [0, 0, 0], [100, -0.0, 0]]
    assert same_bits(X, np.array(expected))
    assert X.flags.c_contiguous and X.flags.writeable
    assert same_bits(y, np.array([2.0, 1, 0, 0.5]))
    assert same_bits(qid, np.array([7, 7, -3, 0], dtype=np.int64))
    assert comments == ["docid = A #1", "B", "", ""]
    S, *_ = load_letor(str(path), sparse=True)
    assert isinstance(S, sp.csr_array) and S.indices.dtype == S.indptr.dtype == np.int32
    assert S.nnz == 6  # the zero that the file names is stored
    assert np.array_equal(S.toarray(), X)
    Ridge().fit(S, y)


def test_n_features_and_zero_based(write):
    path = write("1 0:1 2:3\n0 1:5\n")
    X, _, qid = load_letor(path, zero_based=True)
    assert X.tolist() == [[1, 0, 3], [0, 5, 0]] and qid is None
    assert load_letor(path, zero_based=True, n_features=5)[0].shape == (2, 5)
    assert load_letor(path, zero_based=True, n_features=5, sparse=True)[0].shape == (2, 5)
    X, *_ = load_letor(write("1\n2 # only labels\n"))
    assert X.shape == (2, 0)
    X, *_ = load_letor(write("1 0000000000000000001:1 00000000000000000000000000000000000003:5\n"))
    assert X.tolist() == [[1, 0, 5]]


@pytest.mark.parametrize("piece_size", [1, 9, 1000])
def test_the_line_of_the_largest_index_is_that_of_the_file(piece_size):
    text = b"1 1:1\n\n# 9:9\n1 2:1 7:1\n0 3:1\n1 7:1\n"
    for cut in range(len(text)):
        parser = parser_of(piece=piece_size, n_threads=2)
        parser.feed(text[:cut])
        parser.feed(text[cut:])
        parser.finish()
        assert (parser.n_features, parser.largest_index_line, parser.n_lines) == (7, 4, 6)


def test_ids_are_equal_where_their_texts_are(write):
    cases = {
        "1 qid:1\n1 qid:01\n1 qid:01\n1 qid:-5\n": ["1", "01", "01", "-5"],
        "1 qid:9223372036854775807\n1 qid:-9223372036854775808\n": [2**63 - 1, -(2**63)],
        "1 qid:9223372036854775808\n1 qid:3\n": ["9223372036854775808", "3"],
        "1 qid:-0\n": ["-0"],
        "1 qid:q:Ä\n1 qid:q:Ä\n1 qid:+2\n": ["q:Ä", "q:Ä", "+2"],
        "1 qid:http://site/?q=2\n1 qid::\n1 qid:7\n": ["http://site/?q=2", ":", "7"],
        "1 qid:1b4e28ba-2fa1-11d2-883f-0016d3cca427\n": ["1b4e28ba-2fa1-11d2-883f-0016d3cca427"],
    }
    for text, expected in cases.items():
        qid = load_letor(write(text))[2]
        assert qid.tolist() == expected
        assert qid.dtype == (object if isinstance(expected[0], str) else np.int64)


def test_a_long_id_is_stored_once(write):
    rows = "1 qid:" + "a" * 255 + "\n"
    qid = load_letor(write(rows * 50_000 + "1 qid:2\n" * 50_000))[2]
    assert qid.nbytes == 8 * 100_000
    assert len({id(name) for name in qid.tolist()}) == 2
    assert qid[0] == "a" * 255 and qid[-1] == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="needs its devices")
def test_devices():
    with pytest.raises(ValueError, match=r"^/dev/zero: found a binary file, want a LETOR file"):
        load_letor("/dev/zero")
    with pytest.raises(OSError) as unreadable:
        load_letor("/proc/self/mem")
    assert unreadable.value.filename == "/proc/self/mem"


def test_lines_have_a_largest_length():
    parser = parser_of(piece=99)
    chunk = b" " * (1 << 26)
    parser.feed(b"1 1:1\n1 qid")
    with pytest.raises(ValueError, match=r"f:2: found a line of more than 268435456 bytes"):
        for _ in range(5):
            parser.feed(chunk)


def test_messages_of_paths_are_one_printable_line(tmp_path):
    folder = tmp_path / "a\nb\x1b[31m\u2028"
    folder.mkdir()
    path = folder / "data\r\udcff.txt"
    path.write_text("x\n")
    name = f"{tmp_path}/a\\nb\\x1b[31m\\u2028/data\\r\\udcff.txt"
    with pytest.raises(ValueError) as caught:
        load_letor(path)
    assert str(caught.value).startswith(f"{name}:1: found 'x'")
    path.write_bytes(lzma.compress(b"1 1:1\n")[:-2])
    with pytest.raises(ValueError) as caught:
        load_letor(path)
    assert str(caught.value).startswith(f"{name}:1: found a damaged")
    with pytest.raises(FileNotFoundError) as missing:
        next(load_letor_folds(folder))
    assert str(missing.value).startswith(f"{tmp_path}/a\\nb\\x1b[31m\\u2028: found none of")


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_by_first_bytes_and_damaged(write, suffix):
    rng = np.random.default_rng(0)
    lines = "".join(f"1 qid:{i} 1:{v!r}\n" for i, v in enumerate(rng.random(5000).tolist()))
    packed = PACKERS[suffix](lines.encode())
    path = write(packed, "no suffix")
    X, _, qid = load_letor(path)
    assert np.array_equal(X[:, 0], np.random.default_rng(0).random(5000))
    assert qid[-1] == 4999
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    for broken in (packed[: len(packed) // 2], packed[:-3], bytes(damaged)):
        with pytest.raises(ValueError, match=r"no suffix:\d+: found"):
            load_letor(write(broken, "no suffix"))


DIGITS = st.text("0123456789", min_size=1, max_size=25)
SIGNS = st.sampled_from(["", "+", "-"])
DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: f"{v:.30e}"),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(
        lambda v: repr(np.float32(v))[11:-1]
    ),
    st.tuples(
        SIGNS,
        DIGITS | st.builds("{}.{}".format, DIGITS, DIGITS | st.just("")),
        st.just("") | st.builds("{}{}{}".format, st.sampled_from("eE"), SIGNS, st.integers(0, 999)),
    ).map("".join),
    DIGITS.map(".{}".format),
    st.integers(0, 2**64).map(lambda bits: f"{bits}e-{bits % 30}"),
)


@settings(max_examples=90, deadline=None)
@given(st.lists(DECIMALS, min_size=1, max_size=20))
@example(
    ["4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400", "0e99999999999"]
)
@example(["2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993"])
@example(["0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", "9007199254740992.5"])
@example(["-0", "1e23", "8.5e-22", "123456789012345678901", "0e999999999999999999999"])
@example(["1e-99999999999999999999999", "0." + "0" * 30 + "1", "179769313486231570000e288"])
def test_numbers_round_as_python_does(texts):
    finite = [t for t in texts if np.isfinite(float(t))]
    data = "".join(f"{t} 1:{t}\n" for t in finite).encode()
    if finite:
        parser = parse(data)
        expected = np.array([float(t) for t in finite])
        assert same_bits(parser.labels(), expected)
        assert same_bits(parser.take_dense()[:, 0], expected)
    for text in set(texts) - set(finite):
        with pytest.raises(ValueError, match=":1: found"):
            parse(f"{text}\n".encode())


@settings(max_examples=90, deadline=None)
@given(DECIMALS)
# The nearest double is the midpoint of two floats; these are not.
@example("8.753519821166992e+01")
@example("8.584119006991386e-02")
@example("5.690852701663971e-01")
# The midpoint, and below one.
@example("1.000000059604644775390625")
@example("1.00000017881393432617187499")
@example("1e-45")
@example("7.0064923216240853e-46")
@example("7.0064923216240854e-46")
@example("3.4028235677973366e38")
@example("3.4028235677973365e38")
def test_float32_rounds_once(text):
    expected = to_float32(text)
    data = f"1 1:{text}\n".encode()
    if np.isfinite(expected):
        found = parse(data, dtype=np.float32).take_dense()
        negative_zero = expected == 0 and text.startswith("-")
        assert same_bits(found[0, 0], -np.float32(0) if negative_zero else expected)
    else:
        with pytest.raises(ValueError, match="float32"):
            parse(data, dtype=np.float32)


@st.composite
def letor_texts(draw):
    """Well-formed files with everything that may vary."""
    with_ids = draw(st.booleans())
    blank = st.sampled_from([" ", "  ", "\t", " \t "])
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from(["", "  ", "# only", "\t#"])))
            continue
        tokens = [draw(st.sampled_from(["0", "1", "-2.5", "+1", "1e1"]))]
        if with_ids:
            tokens.append("qid:" + draw(st.sampled_from(["1", "2", "-7", "q1"])))
        if draw(st.booleans()):
            features = range(draw(st.integers(0, 9)))
        else:
            features = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
        tokens += [
            f"{i + 1}:{draw(st.sampled_from(['0', '.5', '5.', '1e-3', '-3']))}" for i in features
        ]
        line = "".join(token + draw(blank) for token in tokens)
        lines.append(line + draw(st.sampled_from(["", "#", "# é #2", "#docid = 3 "])))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return (
        newline.join([*lines, "1 qid:1" if with_ids else "1"])
        + draw(st.sampled_from(["", newline]))
    ).encode()


def assert_equals_reference(parsed, data):
    rows, labels, ids, comments = read(data)
    parser = parsed()
    assert same_bits(parser.labels(), np.array(labels))
    assert parser.comments() == comments
    found = letor._ids(parser)
    assert (found is None) == (ids is None)
    assert ids is None or found.tolist() == ids
    assert same_bits(parser.take_dense(), dense(rows))
    S = letor._take_csr(parsed())
    assert [
        dict(zip(*pair, strict=True))
        for pair in zip(
            np.split(S.indices, S.indptr[1:-1]), np.split(S.data, S.indptr[1:-1]), strict=True
        )
    ] == rows


@settings(max_examples=120, deadline=None)
@given(letor_texts(), st.integers(1, 80), st.integers(1, 80), st.integers(1, 3))
def test_reads_as_the_reference_for_any_chunks(data, chunk, piece, n_threads):
    options = {"chunk": chunk, "piece": piece, "n_threads": n_threads}
    assert_equals_reference(lambda: parse(data, **options), data)


@settings(max_examples=120, deadline=None)
@given(
    letor_texts(),
    st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.integers(0, 3),
            st.sampled_from(list(b" \t\n\r#:.0123qid-+eE\0\xffx")),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 60),
)
def test_mutated_files_read_as_the_reference_or_fail_at_its_line(data, mutations, chunk):
    mutated = bytearray(data)
    for where, kind, byte in mutations:
        at = where % (len(mutated) + 1)
        if kind == 0:
            mutated.insert(at, byte)
        elif kind == 1:
            mutated[at : at + 1] = bytes([byte])
        else:
            del mutated[at : at + kind]
    mutated = bytes(mutated)
    try:
        rows, *_ = read(mutated)
    except WrongLine as wrong:
        with pytest.raises(ValueError) as caught:
            parse(mutated, chunk=chunk, piece=chunk, n_threads=2)
        line = wrong.args[0]
        assert str(caught.value).startswith(f"f:{line}: found" if line else "f: found no row")
        return
    if max((max(row) for row in rows if row), default=0) < 10**5:
        assert_equals_reference(lambda: parse(mutated, chunk=chunk), mutated)


def test_equals_scikit_learn_and_any_thread_count(write):
    X, y, qid = make_ranking(50, (1, 40), 30, random_state=3)
    X[X < 0.3] = 0
    path = write(b"")
    dump_letor(path, sp.csr_array(X), y, qid)
    expected, labels, ids = load_svmlight_file(str(path), query_id=True, n_features=30)
    for S, own_labels, own_ids in on_threads(
        (1, 2, 5), lambda: load_letor(path, sparse=True, n_features=30)
    ):
        assert same_bits(S.toarray(), expected.toarray())
        assert np.array_equal(S.indices, expected.indices) and same_bits(own_labels, labels)
        assert np.array_equal(own_ids, ids)
        assert same_bits(load_letor(path, n_features=30)[0], X)


def test_chunks_of_the_file(write, set_limits):
    X, y, qid = make_ranking(5, 7, 4, random_state=3)
    path = write(b"")
    dump_letor(path, X, y, qid)
    for size in (1, 7, 1000):
        set_limits(chunk_bytes=size)
        assert same_bits(load_letor(path)[0], X)


# Writing


@settings(max_examples=36, deadline=None)
@given(st.data())
def test_round_trip(tmp_path_factory, data):
    n_rows, n_features = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    width = 32 if dtype == np.float32 else 64
    finite = st.floats(width=width, allow_nan=False, allow_infinity=False)
    cells = st.lists(finite, min_size=n_rows * n_features, max_size=n_rows * n_features)
    X = np.array(data.draw(cells), dtype=dtype).reshape(n_rows, n_features)
    labels = st.floats(allow_nan=False, allow_infinity=False)
    y = np.array(data.draw(st.lists(labels, min_size=n_rows, max_size=n_rows)))
    text = st.text(
        st.characters(exclude_characters="#\x7f", min_codepoint=33, exclude_categories=["Cs"]),
        min_size=1,
        max_size=9,
    )
    texts = text.map("q".__add__).filter(lambda name: is_id(name.encode()))
    ids = st.one_of(st.integers(-(2**63), 2**63 - 1), texts)
    kind = data.draw(st.sampled_from(["none", "int", "str"]))
    qid = None
    if kind != "none":
        one = ids.filter(lambda v: isinstance(v, int if kind == "int" else str))
        qid = np.array(data.draw(st.lists(one, min_size=n_rows, max_size=n_rows)))
    comment = st.text(
        st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=9
    )
    comments = data.draw(
        st.lists(comment.map(lambda c: c.strip(" \t")), min_size=n_rows, max_size=n_rows)
    )
    zero_based = data.draw(st.booleans())
    suffix = data.draw(st.sampled_from(["", ".gz", ".xz", ".bz2"]))
    path = tmp_path_factory.mktemp("round") / f"data.txt{suffix}"

    options = {"dtype": dtype, "zero_based": zero_based, "comments": True}
    for sparse in (False, True):
        stored = sp.csr_array(X) if sparse else X
        dump_letor(path, stored, y, qid, comments=comments, zero_based=zero_based)
        found = load_letor(path, **options, sparse=sparse, n_features=n_features)
        if sparse:
            assert same_bits(found[0].data, stored.data)
            assert np.array_equal(found[0].indices, stored.indices)
            assert np.array_equal(found[0].indptr, stored.indptr)
        else:
            assert same_bits(found[0], X)
        assert same_bits(found[1], y) and found[3] == comments
        assert (qid is None and found[2] is None) or found[2].tolist() == qid.tolist()
    if suffix:
        head = path.read_bytes()
        assert head[:2] == PACKERS[suffix](b"")[:2]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_is_written(tmp_path):
    path = tmp_path / "a.txt"
    dump_letor(path, [[0.1, 0], [1e-7, 2]], [0, 1.5], ["a", "b"], comments=["x", ""])
    assert path.read_bytes() == b"0 qid:a 1:0.1 2:0 # x\n1.5 qid:b 1:1e-07 2:2\n"
    X = sp.coo_array(([1.0, 2, 3], ([0, 0, 1], [2, 2, 0])), shape=(2, 4))
    before = X.copy()
    dump_letor(path, X, [0, 1], zero_based=True)
    assert path.read_bytes() == b"0 2:3\n1 0:3\n"
    assert (before != X).nnz == 0
    unsorted = sp.csr_array((np.array([1.0, 2]), np.array([1, 0]), np.array([0, 2])))
    dump_letor(path, unsorted, [0])
    assert path.read_bytes() == b"0 1:2 2:1\n"
    assert unsorted.indices.tolist() == [1, 0]
    dump_letor(path, np.asfortranarray(np.arange(6).reshape(3, 2)), np.zeros(3), np.arange(3))
    assert load_letor(path)[0].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_wrong_data_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("kept")
    X, y = np.ones((3, 2)), np.zeros(3)
    nan = X.copy()
    nan[2, 1] = np.nan
    cases = [((nan, y), {}), ((sp.csr_array(nan), y), {}), ((X, y, ["a", "b", "c#"]), {})]
    for arguments, options in [*cases, ((X, y), {"comments": ["a", "b", "\ud800"]})]:
        with pytest.raises(ValueError, match="row 2"):
            dump_letor(path, *arguments, **options)
    assert path.read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def damaged_matrices():
    """Yield (name, sparse matrix) whose parts do not fit each other."""
    S = sp.csr_array(np.ones((3, 2)))
    for part, at, value in (
        ("indices", 1, -4),
        ("indices", 1, -1),
        ("indices", 2, 3),
        ("indices", 5, 2**31 - 1),
        ("indptr", 0, 1),
        ("indptr", 1, 7),
        ("indptr", 1, -3),
        ("indptr", -1, 99),
    ):
        for matrix in (S.copy(), S.tocsc(), S.tobsr((1, 1))):
            getattr(matrix, part)[at] = value
            yield f"{matrix.format} {part}[{at}] = {value}", matrix
    for axis, value in ((0, -1), (0, 3), (1, 2)):
        matrix = S.tocoo()
        matrix.coords[axis][4] = value
        yield f"coo {axis} {value}", matrix


@pytest.mark.parametrize(("name", "matrix"), list(damaged_matrices()))
def test_a_damaged_matrix_is_not_written(tmp_path, name, matrix):
    with pytest.raises(ValueError, match=r"ind(ex|ic|ptr)|within its shape"):
        dump_letor(tmp_path / "a.txt", matrix, [0, 1, 0])
    assert list(tmp_path.iterdir()) == []


# Folds


def fold_rows(fold):
    return [part.y.tolist() for part in (fold.train, fold.valid, fold.test)]


@pytest.mark.parametrize("sparse", [False, True])
def test_folds_of_splits(write, sparse):
    for i in range(1, 6):
        data = f"{i} qid:{'x' if i == 5 else i} {i}:1\n".encode()
        suffix = ["", ".xz", ".gz", ".bz2", ""][i - 1]
        path = write(PACKERS.get(suffix, bytes)(data), f"S{i}.txt{suffix}")
    folds = list(load_letor_folds(path.parent, sparse=sparse))
    assert [fold.name for fold in folds] == [f"Fold{i}" for i in range(1, 6)]
    assert fold_rows(folds[0]) == [[1, 2, 3], [4], [5]]
    assert fold_rows(folds[3]) == [[4, 5, 1], [2], [3]]
    assert folds[3].train.qid.tolist() == ["4", "x", "1"]
    for fold in folds:
        assert {part.X.shape[1] for part in fold[1:]} == {5}
        assert np.argwhere(fold.train.X.toarray() if sparse else fold.train.X)[:, 1].tolist() == [
            int(label) - 1 for label in fold.train.y
        ]
    write("5 5:1\n", "S5.txt")
    with pytest.raises(ValueError, match=r"S5\.txt: found no qid"):
        next(load_letor_folds(path.parent))


@pytest.mark.parametrize("sparse", [False, True])
def test_folds_print_shapes(sparse):
    X = np.zeros((3, 2))
    with_ids = LetorData(sp.csr_array(X) if sparse else X, np.zeros(3), np.arange(3))
    assert repr(with_ids) == "LetorData(X: (3, 2), y: (3,), qid: (3,))"
    assert repr(with_ids._replace(qid=None)) == "LetorData(X: (3, 2), y: (3,), qid: None)"
    fold = Fold("Fold1", with_ids, with_ids, with_ids)
    part = repr(with_ids)
    assert repr(fold) == f"Fold('Fold1', train={part}, valid={part}, test={part})"


def test_a_fold_is_what_fitting_takes(write):
    X, y, qid = make_ranking(25, 8, 4, random_state=0)
    for i in range(1, 6):
        rows = qid % 5 == i - 1
        path = write("", f"S{i}.txt")
        dump_letor(path, X[rows], y[rows], qid[rows])
    fold = next(load_letor_folds(path.parent))
    model = RankRLSCV(scoring="map")
    model.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
    score = get_metric("map")(fold.valid.y, model.predict(fold.valid.X), fold.valid.qid)
    np.testing.assert_allclose(model.best_score_, score)


def test_folds_of_folders(write):
    for i in range(1, 6):
        for k, part in enumerate(("train", "vali", "test")):
            path = write(f"{10 * i + k} qid:1 {k + 1}:1\n", f"Fold{i}/{part}.txt")
    folder = path.parent.parent
    folds = list(load_letor_folds(folder))
    assert fold_rows(folds[2]) == [[30], [31], [32]]
    assert {part.X.shape for fold in folds for part in fold[1:]} == {(1, 3)}
    write("1 qid:1 4:1\n", "Fold4/vali.txt")
    with pytest.raises(ValueError, match=r"vali\.txt:1: found '4:1', want an index of at most 3"):
        list(load_letor_folds(folder))
    assert {f.test.X.shape for f in load_letor_folds(folder, n_features=4)} == {(1, 4)}
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"Fold5/test\.txt missing, looked for"):
        load_letor_folds(folder)


@pytest.mark.parametrize(
    ("name", "n_queries", "n_features", "labels"),
    [("MQ2008", 784, 46, [12279, 2001, 931]), ("OHSUMED", 106, 45, [11303, 2585, 2252])],
)
def test_letor_data(benchmark_data, name, n_queries, n_features, labels):
    folds = list(load_letor_folds(benchmark_data / name))
    y = np.concatenate([fold.test.y for fold in folds])
    qid = np.concatenate([fold.test.qid for fold in folds])
    assert np.bincount(y.astype(int)).tolist() == labels
    assert len(np.unique(qid)) == n_queries and qid.dtype == np.int64
    for fold in folds:
        assert {part.X.shape[1] for part in fold[1:]} == {n_features}
        assert sum(len(part.y) for part in fold[1:]) == sum(labels)
    with lzma.open(benchmark_data / name / "S5.txt.xz") as file:
        expected, *_ = load_svmlight_file(file, query_id=True, n_features=n_features)
    assert same_bits(folds[0].test.X, expected.toarray())


# Synthetic data


def test_make_ranking():
    X, y, qid = make_ranking(400, (5, 30), 12, random_state=0)
    sizes = np.bincount(qid)
    assert X.shape == (len(y), 12) and X.dtype == y.dtype == np.float64 and qid.dtype == np.int64
    assert sizes.min() == 5 and sizes.max() == 30 and len(sizes) == 400
    assert (np.diff(qid) >= 0).all()
    assert (X.min(axis=0) == 0).all() and (X.max(axis=0) == 1).all()
    assert np.allclose(
        np.bincount(y.astype(int)) / len(y), [0.52, 0.32, 0.13, 0.02, 0.01], atol=1e-3
    )
    correlation = np.corrcoef(X.T)[np.triu_indices(12, 1)]
    assert np.abs(correlation).mean() > 0.1
    independent, *_ = make_ranking(400, 20, 12, n_factors=0, query_effect=0, random_state=0)
    assert np.abs(np.corrcoef(independent.T)[np.triu_indices(12, 1)]).max() < 0.06
    means = np.array([X[qid == q].mean(axis=0) for q in range(400)])
    within = np.mean([X[qid == q].var(axis=0) for q in range(400)], axis=0)
    assert (means.var(axis=0) > 1.5 * within / sizes.mean()).all()  # queries shift the features


def test_make_ranking_labels_follow_the_informative_features():
    quiet = make_ranking(
        50, 20, 10, n_informative=10, noise=0, query_effect=0, n_levels=10, random_state=1
    )
    X, y, _ = quiet
    assert sorted(set(y)) == list(range(10))
    assert Ridge(alpha=1e-6).fit(X, y).score(X, y) > 0.75
    X, y, _ = make_ranking(50, 20, 10, n_informative=0, random_state=1)
    assert Ridge().fit(X, y).score(X, y) < 0.05
    assert set(make_ranking(5, 4, 1, n_levels=1, random_state=1)[1]) == {0}
    assert make_ranking(1, 1, 1)[0].tolist() == [[0]]


@pytest.mark.parametrize("make", [int, np.random.RandomState, np.random.default_rng])
def test_make_ranking_is_seeded(make):
    first, second = (make_ranking(5, (2, 9), 4, random_state=make(3)) for _ in range(2))
    assert all(same_bits(a, b) for a, b in zip(first, second, strict=True))
    other = make_ranking(5, (2, 9), 4, random_state=make(4))
    assert not same_bits(first[0], other[0])


IDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text('#\ufeff\x85\u2028\u00a0\x1c\x00\x7f 01{":', max_size=12),
    st.sampled_from(["", "#", "1:", "qid:", 'ab{"', "\ud800", "\ufeff", "007"]),
    st.integers(),
)
COMMENTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text("#\ufeff\x85\u2028\u00a0\x1c\x00\x7f \x01\x0b\t\r\n", max_size=80),
)


@settings(max_examples=90, deadline=None)
@given(st.lists(st.tuples(IDS, COMMENTS), min_size=1, max_size=3))
def test_ids_and_comments_are_read_back_as_they_were_or_refused(rows):
    ids, comments = [row[0] for row in rows], [row[1] for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.txt")
        try:
            dump_letor(path, np.ones((len(rows), 1)), np.arange(len(rows)), ids, comments=comments)
        except ValueError as error:
            assert re.match("(qid|comments) must", str(error))
            assert not list(Path(folder).iterdir())
            return
        _, y, qid, found = load_letor(path, comments=True)
    assert y.tolist() == [*range(len(rows))]
    assert [str(one) for one in qid.tolist()] == [str(one) for one in ids]
    assert found == [text.strip(" \t") for text in comments]


def test_dump_keeps_float32_of_any_byte_order(tmp_path):
    X = np.array([[0.1, 2.5], [1e-7, 3.0]], dtype=np.float32)
    dump_letor(tmp_path / "native", X, [0, 1])
    assert b"0 1:0.1 2:2.5" in (tmp_path / "native").read_bytes()
    unaligned = np.frombuffer(bytearray(X.nbytes + 1), np.float32, offset=1).reshape(X.shape)
    unaligned[...] = X
    for variant in (X.astype(">f4"), X.astype("<f4"), unaligned, sp.csr_array(X)):
        dump_letor(tmp_path / "other", variant, np.array([0, 1], dtype=">f8"))
        assert (tmp_path / "other").read_bytes() == (tmp_path / "native").read_bytes()
    dump_letor(tmp_path / "double", X.astype(">f8"), [0, 1])
    assert b"0 1:0.10000000149011612 2:2.5" in (tmp_path / "double").read_bytes()
