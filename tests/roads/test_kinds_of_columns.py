"""What a column may hold is decided alike for arrays, frames and tables."""

import datetime
import re

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from axes import every
from pairgram import Pairgram, RandomNodes, RankRLS, fit_many, kernel_matrix, scan

N = 12
Y = np.arange(N) % 3.0
QID = np.arange(N) // 4
ONE = np.linspace(0.0, 1.0, N)
START = datetime.datetime(2024, 5, 1)
TICKS = np.arange(N)

FRAMES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}
# The values of a column, and what the message says.
REFUSED = {
    "times": ([START + datetime.timedelta(hours=int(k)) for k in TICKS], "times: subtract a ref"),
    "dates": (
        [START.date() + datetime.timedelta(days=int(k)) for k in TICKS],
        "dates: subtract a reference",
    ),
    "times of day": ([datetime.time(int(k)) for k in TICKS], "times of day: count"),
    "durations": ([datetime.timedelta(hours=int(k)) for k in TICKS], "durations: divide"),
    "text": (["a", "b"] * (N // 2), "text: encode text as numbers, as OneHotEncoder does"),
    "numerals": (["1", "2"] * (N // 2), "text: encode text as numbers, as OneHotEncoder does"),
}
LISTS = ([[1.0, 2.0]] * N, "lists: join lists to rows by numpy.vstack")  # in arrays


def scanned(frame):
    table = scan(frame, features=["one", "it"])
    table.rows()  # what is no number is refused when it is read as one
    return table


ROADS = {
    "fit": lambda frame: RankRLS().fit(frame, Y, qid=QID),
    "Pairgram": lambda frame: Pairgram.from_rows(frame, Y),
    "kernel_matrix": kernel_matrix,
    "feature map": lambda frame: RandomNodes(2, random_state=0).fit(frame),
    "scan": scanned,
}


def refusal(call, *arguments):
    """Return the message without the name of what was wrong, and without a single value."""
    with pytest.raises(ValueError) as caught:
        call(*arguments)
    return re.sub(r" \(.* in row \d+\)", "", str(caught.value).partition(": ")[2])


@every(kind=REFUSED, road=ROADS, package=FRAMES)
def test_a_column_that_is_no_numbers_gets_one_message(kind, package, road):
    values, said = REFUSED[kind]
    frame = FRAMES[package]({"one": ONE, "it": values})
    first = refusal(ROADS["fit"], FRAMES["polars"]({"one": ONE, "it": values}))
    assert first.startswith(f"column 'it' must hold numbers, got {said}")
    assert refusal(ROADS[road], frame) == first


@every(road=ROADS, package=FRAMES)
def test_columns_of_lists_are_their_entries(package, road):
    entries = np.column_stack([ONE, TICKS % 5, TICKS % 4]).astype(float)
    frame = FRAMES[package]({"one": ONE, "it": entries[:, 1:].tolist()})
    call = ROADS[road]
    if road == "scan":
        assert call(frame).feature_names == ["one", "it[0]", "it[1]"]
    elif road == "kernel_matrix":
        np.testing.assert_array_equal(call(frame), call(entries))
    else:
        result, wanted = call(frame), call(entries)
        assert list(result.feature_names_in_) == ["one", "it[0]", "it[1]"]
        for name in {"fit": ["coef_"], "Pairgram": ["G", "g"], "feature map": ["weights_"]}[road]:
            np.testing.assert_allclose(getattr(result, name), getattr(wanted, name), rtol=1e-12)


@pytest.mark.parametrize("kind", [*REFUSED, "lists"])
def test_arrays_get_the_same_message_with_the_number_of_the_column(kind):
    values, said = LISTS if kind == "lists" else REFUSED[kind]
    rows = np.empty((N, 2), dtype=object)
    rows[:, 0] = ONE
    rows[:, 1] = values
    wanted = f"column 1 must hold numbers, got {said}"
    model = RankRLS().fit(np.column_stack([ONE, ONE]), Y, qid=QID)
    for call in (ROADS["fit"], model.predict, lambda X: RankRLS().fit(X.tolist(), Y, qid=QID)):
        if kind == "lists" and call not in (ROADS["fit"], model.predict):
            continue  # nested lists of other lengths are no rows
        assert refusal(call, rows).startswith(wanted)


@every(kind=REFUSED, package=FRAMES)
def test_rows_to_score_and_to_validate_get_the_same_message(kind, package):
    frame_of = FRAMES[package]
    wrong, right = frame_of({"one": ONE, "it": REFUSED[kind][0]}), frame_of({"one": ONE, "it": ONE})
    wanted = refusal(ROADS["fit"], wrong)
    assert refusal(RankRLS().fit(right, Y, qid=QID).predict, wrong) == wanted
    scale = RankRLS(feature_map="standard").fit(right, Y, qid=QID).feature_map_
    assert refusal(scale.transform, wrong) == wanted
    keyed = frame_of({"one": ONE, "it": REFUSED[kind][0], "key": QID, "y": Y})
    assert refusal(lambda: fit_many(RankRLS(), keyed, "y", by="key")) == wanted


@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ns]", "m8[us]"])
def test_arrays_and_frames_of_times_alone_are_refused(dtype):
    ticks = TICKS.astype(dtype)[:, None]
    for rows in (ticks, pandas.DataFrame(ticks, columns=["it"])):
        numbers = ONE[:, None] if rows is ticks else pandas.DataFrame({"it": ONE})
        for call in (ROADS["fit"], RankRLS().fit(numbers, Y, qid=QID).predict):
            with pytest.raises(ValueError, match=r"must hold numbers, got (times|durations): "):
                call(rows)


@pytest.mark.parametrize("package", FRAMES)
@pytest.mark.filterwarnings("ignore:.*kept pairs.*")
def test_booleans_and_dictionaries_of_numbers_are_their_values(package):
    codes = np.array([3.0, 1.0, 2.0])[TICKS % 3]
    truth = TICKS % 2 == 0
    coded = {
        "pandas": pandas.Categorical(codes),
        "polars": codes,  # whose categories are text
        "pyarrow": pyarrow.array(codes).dictionary_encode(),
    }[package]
    frame = FRAMES[package]({"one": coded, "it": truth})
    plain = RankRLS().fit(np.column_stack([codes, truth]), Y, qid=QID)
    np.testing.assert_allclose(RankRLS().fit(frame, Y, qid=QID).coef_, plain.coef_, rtol=1e-12)


def test_categories_of_text_are_refused():
    text = ["a", "b"] * (N // 2)
    for frame in (
        pandas.DataFrame({"one": ONE, "it": pandas.Categorical(text)}),
        polars.DataFrame({"one": ONE, "it": polars.Series(text, dtype=polars.Categorical)}),
        pyarrow.table({"one": ONE, "it": pyarrow.array(text).dictionary_encode()}),
    ):
        for call in ROADS.values():
            assert refusal(call, frame).startswith("column 'it' must hold numbers, got text: ")


@pytest.mark.parametrize("package", FRAMES)
def test_frames_are_float32_if_no_column_needs_more(package):
    def frame_of(**types):
        return FRAMES[package]({name: ONE.astype(dtype) for name, dtype in types.items()})

    for types, wanted in (
        ({"a": "f4", "b": "f4"}, np.float32),
        ({"a": "f4", "b": "i2"}, np.float32),
        ({"a": "f4", "b": "f8"}, np.float64),
        ({"a": "f4", "b": "i8"}, np.float64),
    ):
        frame = frame_of(**types)
        assert RankRLS().fit(frame, Y, qid=QID).predict(frame).dtype == wanted, types


@pytest.mark.parametrize("road", [name for name in ROADS if name != "scan"])
def test_a_lazy_frame_is_refused(road):
    lazy = polars.LazyFrame({"one": ONE, "it": ONE})
    with pytest.raises(ValueError, match=r"^X is a LazyFrame: give X\.collect\(\), or scan\(X\)"):
        ROADS[road](lazy)


def test_columns_that_the_model_has_not_are_told_first():
    model = RankRLS().fit(pandas.DataFrame({"one": ONE}), Y, qid=QID)
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*unseen.*title"):
        model.predict(pandas.DataFrame({"one": ONE, "title": ["a"] * N}))
