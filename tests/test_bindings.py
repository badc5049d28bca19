"""The compiled code refuses whatever would make it read or write outside its arrays."""

import numpy as np
import pytest

from pairgram import _core

N = 10
# The class stands for what takes a problem: its constructor makes the checks.
CALLS = ("RankingProblem", "gram", "leave_query_out", "evaluate_metrics")
WITH_FEATURES = ("gram", "leave_query_out")
PROBLEM = ("labels", "offsets", "order", "row_weights", "query_weights", "pairs", "weighting")
PROBLEM += ("level_values", "omega")
METRIC = ("ndcg", 5, "exp2", "log2", "order", 0.0, 1.0, 1.0, "relevant", 0.0)


def call(name, **changes):
    """Call compiled code with arguments that fit each other, but for the changes."""
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 3.0
    arguments = {"labels": labels, "offsets": np.array([0, 4, N])}
    if name == "evaluate_metrics":
        arguments |= {"scores": rng.normal(size=(2, N)), "order": None}
        arguments |= {"specs": [METRIC], "n_threads": 1}
        return _core.evaluate_metrics(**(arguments | changes))
    arguments |= {"pairs": "dropped", "weighting": "pairs"}
    features = {"features": rng.normal(size=(N, 2)), "targets": labels[:, None].copy()}
    if name == "leave_query_out":
        features |= {"basis": np.eye(2), "eigenvalues": np.ones(2), "projection": np.ones(2)}
        features |= {"alphas": np.array([2.0, 1.0])}
    own = {key: changes.pop(key) for key in list(changes) if key in PROBLEM}
    problem = _core.RankingProblem(**(arguments | own))
    if name == "RankingProblem":
        return problem
    return getattr(_core, name)(problem, **(features | changes))


def unaligned(array, by=1):
    """Return a copy that begins so many bytes after an aligned address."""
    buffer = bytearray(array.nbytes + by)
    copy = np.frombuffer(buffer, array.dtype, offset=by).reshape(array.shape)
    copy[...] = array
    assert copy.flags.c_contiguous
    assert not copy.flags.aligned
    return copy


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_fit(name):
    call(name)
    call(name, order=np.arange(N)[::-1].copy())


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 10**9, N], "not decrease"),
        ([0, -(10**9), N], "not decrease"),
        ([-5, 4, N], "begin with 0"),
        ([2, 4, N], "begin with 0"),
        ([0, 4], "end with the number of rows"),
        ([0, 4, N + 1], "end with the number of rows"),
        ([], "offsets must be 1-d"),
        ([[0, 4, N]], "offsets must be 1-d"),
    ],
)
def test_offsets(name, offsets, message):
    with pytest.raises(ValueError, match=message):
        call(name, offsets=np.array(offsets, dtype=np.int64))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "order",
    [
        np.arange(1, N + 1),
        np.arange(N) - 1,
        np.zeros(N, dtype=np.int64),
        np.array([*range(N - 1), 10**12]),
        np.arange(N - 1),
        np.arange(N).reshape(2, 5),
    ],
)
def test_order(name, order):
    with pytest.raises(ValueError, match="order must"):
        call(name, order=order)


@pytest.mark.parametrize("name", CALLS)
def test_labels(name):
    for labels in (np.zeros(N - 1), np.zeros((N, 1)), np.full(N, np.nan)):
        with pytest.raises(ValueError, match=r"labels|scores|number of rows"):
            call(name, labels=labels)


@pytest.mark.parametrize(
    ("name", "argument", "shape"),
    [("RankingProblem", "labels", (N,)), ("RankingProblem", "row_weights", (N,))]
    + [("RankingProblem", "query_weights", (2,)), ("evaluate_metrics", "labels", (N,))]
    + [(name, "features", (N, 2)) for name in WITH_FEATURES]
    + [(name, "targets", (N, 1)) for name in WITH_FEATURES]
    + [("evaluate_metrics", "scores", (2, N))],
)
def test_unaligned_arrays(name, argument, shape):
    for by in (1, 4):
        with pytest.raises(ValueError, match="aligned"):
            call(name, **{argument: unaligned(np.ones(shape), by)})


@pytest.mark.parametrize("n_inputs", [1, 3])
def test_features_are_the_inputs_of_a_map(n_inputs):
    nodes = _core.NodeMap64(np.ones((n_inputs, 4)), np.zeros(4), None, [(0, 4, "sigmoid")])
    with pytest.raises(ValueError, match="features must be the map's inputs"):
        call("gram", map=nodes)


@pytest.mark.parametrize("name", WITH_FEATURES)
@pytest.mark.parametrize(
    "changes",
    [
        {"features": np.ones(2 * N)},
        {"features": np.ones((N - 1, 2))},
        {"targets": np.ones(N)},
        {"targets": np.ones((N - 1, 1))},
        {"row_weights": np.ones(N - 1)},
        {"row_weights": np.ones((N, 1))},
        {"query_weights": np.ones(3)},
        {"query_weights": np.ones((2, 1))},
        {"pairs": "some"},
        {"weighting": "some"},
    ],
)
def test_shapes_and_names_of_least_squares(name, changes):
    with pytest.raises(ValueError, match=r"features|targets|weights|pairs|weighting"):
        call(name, **changes)


@pytest.mark.parametrize("name", WITH_FEATURES)
@pytest.mark.parametrize(
    ("level_values", "omega", "message"),
    [
        ([0.0, 1.0], np.ones((2, 2)), "one of level_values"),
        ([0.0, 1.0, 3.0], np.ones((3, 3)), "one of level_values"),
        ([], np.ones((0, 0)), "one of level_values"),
        ([2.0, 1.0, 0.0], np.ones((3, 3)), "ascend"),
        ([0.0, 1.0, 2.0], np.ones((3, 2)), "n_levels, n_levels"),
        ([0.0, 1.0, 2.0], np.ones(9), "n_levels, n_levels"),
        ([[0.0, 1.0, 2.0]], np.ones((3, 3)), "level_values must be 1-d"),
        (None, np.ones((3, 3)), "needs its levels"),
        ([0.0, 1.0, 2.0], None, "needs its levels"),
    ],
)
def test_levels_of_omega(name, level_values, omega, message):
    levels = None if level_values is None else np.array(level_values, dtype=float)
    with pytest.raises(ValueError, match=message):
        call(name, pairs="omega", level_values=levels, omega=omega)


@pytest.mark.parametrize("name", WITH_FEATURES)
@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_labels_that_are_added_up(name, wrong):
    labels = np.ones(N)
    call(name, pairs="omega", labels=labels)
    labels[-1] = wrong
    with pytest.raises(ValueError, match="finite and not negative"):
        call(name, pairs="omega", labels=labels)


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_levels_of_omega_that_fit(name):
    levels = np.array([-1.0, 0.0, 1.0, 2.0])
    call(name, pairs="omega", level_values=levels, omega=np.ones((4, 4)))
    labels = np.full(N, np.nan)
    with pytest.raises(ValueError, match="one of level_values"):
        call(name, pairs="omega", level_values=levels, omega=np.ones((4, 4)), labels=labels)


@pytest.mark.parametrize(
    "changes",
    [
        {"basis": np.ones((2, 3))},
        {"basis": np.ones(4)},
        {"eigenvalues": np.ones(1)},
        {"eigenvalues": np.ones((2, 1))},
        {"projection": np.ones(3)},
        {"projection": np.ones((1, 2))},
        {"alphas": np.ones((1, 1))},
        {"targets": np.ones((N, 2))},
        {"folds": np.array([0, 1])},
        {"folds": np.array([1, 2])},
        {"folds": np.array([0, 2, 1, 2])},
        {"folds": np.array([[0, 2]])},
        {"basis": None, "eigenvalues": np.ones(3), "projection": np.ones(3)},
        {"n_free": -1},
        {"n_free": 2},
    ],
)
def test_shapes_of_leave_query_out(changes):
    names = r"basis|eigenvalues|projection|alphas|targets|offsets|n_free"
    with pytest.raises(ValueError, match=names):
        call("leave_query_out", **changes)


def test_rows_in_the_basis_need_no_basis():
    np.testing.assert_array_equal(
        call("leave_query_out", basis=None), call("leave_query_out", basis=np.eye(2))
    )


def test_a_basis_without_directions_gives_scores_0():
    empty = {"basis": np.empty((2, 0)), "eigenvalues": np.empty(0), "projection": np.empty(0)}
    np.testing.assert_array_equal(call("leave_query_out", **empty), np.zeros((2, N)))


def test_block_rows():
    with pytest.raises(ValueError, match="block_rows"):
        call("gram", block_rows=-1)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (0, "area", "a metric must be one of 'dcg', .*; got 'area'"),
        (1, 0, "cut of a metric"),
        (1, -3, "cut of a metric"),
        (0, "mean_ndcg", "counts all ranks"),
        (0, "rprec", "counts all ranks"),
        (0, "ef", "counts all ranks"),
        (2, "log2", "gain must be one of 'exp2', 'linear'; got 'log2'"),
        (3, "linear", "discount must be one of"),
        (4, "", "ties must be one of"),
        (8, "rank", "divisor must be one of"),
    ],
)
def test_fields_of_a_metric(field, value, message):
    spec = (*METRIC[:field], value, *METRIC[field + 1 :])
    with pytest.raises(ValueError, match=message):
        call("evaluate_metrics", specs=[spec])


def test_a_gram_matrix_has_a_column():
    with pytest.raises(ValueError, match="must have a column or more"):
        call("gram", features=np.zeros((N, 0)), targets=np.zeros((N, 0)))


def test_rows_of_a_file_are_taken_once():
    options = {"n_features": -1, "zero_based": False, "keep_comments": False}
    for take in ("take_dense", "take_csr"):
        parser = _core.LetorParser64(name="a", **options, piece_size=100, n_threads=1)
        parser.feed(b"1 qid:1 1:2 2:3\n0 qid:1 2:5\n")
        parser.finish()
        getattr(parser, take)()
        for again in ("take_dense", "take_csr"):
            with pytest.raises(ValueError, match="the rows have been taken"):
                getattr(parser, again)()


def test_shapes_of_scores():
    for scores in (np.zeros(N), np.zeros((2, N - 1)), np.zeros((1, 1, N))):
        with pytest.raises(ValueError, match="scores"):
            call("evaluate_metrics", scores=scores)


@pytest.mark.parametrize("name", CALLS)
def test_other_dtypes_are_never_copied(name):
    with pytest.raises(TypeError):
        call(name, labels=np.zeros(N, dtype=np.float32))
    with pytest.raises(TypeError):
        call(name, offsets=np.array([0, 4, N], dtype=np.int32))


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": np.array([0, 10**9, 3])},
        {"indptr": np.array([-1, 2, 3])},
        {"indptr": np.array([0, 2, 4])},
        {"indptr": np.array([0, 3])},
        {"indptr": np.array([[0, 2, 3]])},
        {"indptr": None},
        {"indices": None},
        {"indices": np.zeros(2, dtype=np.int64)},
        {"values": np.zeros((3, 1))},
        {"labels": np.zeros((2, 1))},
        {"first": -1},
        {"first": 1, "n_rows": 2},
        {"first": 2**62, "n_rows": 2**62},
        {"n_rows": -1},
        {"values": unaligned(np.ones(3))},
    ],
)
def test_format_letor(changes):
    arguments = {
        "values": np.ones(3),
        "indptr": np.array([0, 2, 3]),
        "indices": np.array([0, 1, 0]),
        "labels": np.zeros(2),
        "first": 0,
        "n_rows": 2,
        "ids": None,
        "comments": None,
        "zero_based": False,
    }
    assert _core.format_letor(**arguments) == b"0 1:1 2:1\n0 1:1\n"
    with pytest.raises(ValueError, match=r"indptr|values|labels|rows|aligned"):
        _core.format_letor(**(arguments | changes))


@pytest.mark.parametrize(("first", "n_rows"), [(1, 2), (2, 1), (3, 0), (0, 3), (-1, 1)])
def test_format_letor_of_rows_that_are_not_there(first, n_rows):
    arguments = {"indptr": None, "indices": None, "ids": None, "comments": None}
    arguments |= {"values": np.ones((2, 1)), "labels": np.zeros(2), "zero_based": False}
    assert _core.format_letor(**arguments, first=1, n_rows=1) == b"0 1:1\n"
    assert _core.format_letor(**arguments, first=2, n_rows=0) == b""
    with pytest.raises(ValueError, match="no such rows"):
        _core.format_letor(**arguments, first=first, n_rows=n_rows)


def test_knots_of_input_columns():
    good = {"knots": np.array([0.0, 1.0, 2.0]), "values": np.zeros(3), "ends": np.array([1, 3])}
    _core.InputColumns.functions(**good, keeps_inputs=False)
    for name, wrong, message in (
        ("knots", np.array([5.0, 1.0, 1.0]), "ascend"),
        ("knots", np.array([5.0, 2.0, 1.0]), "ascend"),
        ("knots", np.array([5.0, 1.0, np.nan]), "ascend"),
        ("knots", np.array([0.0, 1.0, np.inf]), "finite range"),
        ("knots", np.zeros((3, 1)), "n_knots"),
        ("values", np.zeros(2), "n_knots"),
        ("ends", np.array([1, 2]), "those of the knots"),
        ("ends", np.array([1, 4]), "1 to 256 knots"),
        ("ends", np.array([0, 3]), "1 to 256 knots"),
        ("ends", np.array([3, 3]), "1 to 256 knots"),
        ("ends", np.array([[1, 3]]), "n_inputs"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.InputColumns.functions(**good | {name: wrong}, keeps_inputs=False)
    many = {"knots": np.arange(257.0), "values": np.zeros(257), "ends": np.array([257])}
    with pytest.raises(ValueError, match="1 to 256 knots"):
        _core.InputColumns.functions(**many, keeps_inputs=False)
    for wrong in (np.zeros(2), np.zeros((3, 1))):
        with pytest.raises(ValueError, match="centres and factors"):
            _core.InputColumns.scaled(np.zeros(3), wrong)


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        (b"a", True),
        ("é".encode(), True),
        ("\ud7ff".encode(), True),
        (b"\xed\xa0\x80", False),  # a surrogate
        ("\U0010ffff".encode(), True),
        (b"\xf4\x90\x80\x80", False),  # above the last character
        (b"\xe0\x9f\xbf", False),  # longer than need be
        (b"\xf0\x8f\xbf\xbf", False),
        (b"\xc1\xbf", False),
        (b"\xc3", False),  # cut off
        ("\u3000".encode(), False),  # a blank
        (b"a#", False),
        (b"1:2", False),
        (b"a:2", True),
        (b"", False),
    ],
)
def test_letor_ids_are_text(text, is_id):
    assert _core.is_letor_id(text) is is_id
