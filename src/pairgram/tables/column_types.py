"""The types of columns, and those that files are read as, where they differ or do not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pairgram._support.column_kinds import kind_of

__all__ = [
    "WHOLE",
    "common_schema",
    "is_number",
    "kind_of_values",
    "plain_values",
    "value_type",
    "whole_numbers",
    "with_floats",
]

# A number that no other text of this kind is equal to.
WHOLE = re.compile("0|-?[1-9][0-9]*")


def value_type(kind: Any) -> Any:
    """Return the type of the values of a column, which a dictionary may hold, without views."""
    import pyarrow

    return _plain_type(kind.value_type if pyarrow.types.is_dictionary(kind) else kind)


def _plain_type(kind: Any) -> Any:
    """Return a type without views of text or bytes, as polars writes them.

    pyarrow reads views, but can neither take rows of them nor decode dictionaries of them.
    """
    import pyarrow

    types = pyarrow.types
    if types.is_string_view(kind):
        return pyarrow.large_string()
    if types.is_binary_view(kind):
        return pyarrow.large_binary()
    if types.is_dictionary(kind):
        return pyarrow.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if types.is_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if types.is_large_list(kind):
        return pyarrow.large_list(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind


def plain_values(table: Any) -> Any:
    """Return a table whose text and bytes are no views, which pyarrow knows too little of."""
    import pyarrow

    for place, field in enumerate(table.schema):
        kind = _plain_type(field.type)
        if kind == field.type:
            continue
        column = table.column(place)
        if pyarrow.types.is_dictionary(kind):
            chunks = [
                pyarrow.DictionaryArray.from_arrays(
                    chunk.indices, chunk.dictionary.cast(kind.value_type), ordered=kind.ordered
                )
                for chunk in column.chunks
            ]
            column = pyarrow.chunked_array(chunks, kind)
        else:
            column = column.cast(kind)
        table = table.set_column(place, field.with_type(kind), column)
    return table


def is_number(kind: Any) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    import pyarrow

    return not pyarrow.types.is_dictionary(kind) and kind_of(kind) == "numbers"


def kind_of_values(kind: Any) -> str:
    """Return what messages call the values of a type. Values of different kinds are never equal.

    Numbers, booleans and columns without any value are of one kind.
    """
    import pyarrow

    types, kind = pyarrow.types, value_type(kind)
    if types.is_timestamp(kind):
        return f"times {'without' if kind.tz is None else 'with'} a time zone"
    found = kind_of(kind)
    return "values of another kind" if found == "objects" else found


def common_schema(schema: Any, own: Any) -> Any:
    """Return the schema of a table with types that hold the numbers of one more file too.

    Integers and floats become float64, and so do booleans and other numbers. Types that are no
    numbers stay as they are, and so do the names.
    """
    import pyarrow

    for place, field in enumerate(schema):
        at = own.get_field_index(field.name)
        if at < 0 or own.field(at).type == field.type:
            continue
        kinds = [value_type(kind) for kind in (field.type, own.field(at).type)]
        if pyarrow.types.is_null(kinds[0]):
            common = kinds[1]
        elif all(map(is_number, kinds)):
            common = pyarrow.float64()
            if all(
                pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) for kind in kinds
            ):
                pair = [pyarrow.schema([(field.name, kind)]) for kind in kinds]
                common = pyarrow.unify_schemas(pair, promote_options="permissive").field(0).type
        else:
            continue
        schema = schema.set(place, field.with_type(common))
    return schema


def with_floats(schema: Any, names: Sequence[str]) -> tuple[Any, frozenset[str]]:
    """Return the schema of files of text, some of whose columns hold numbers of any kind.

    Types are guessed by the first rows, which may lack the decimals or values of later ones.

    Returns
    -------
    schema : pyarrow.Schema
    whole : frozenset of str
        Those of the columns whose first rows are whole numbers.
    """
    import pyarrow

    whole = set()
    for name in names:
        place = schema.get_field_index(name)
        kind = schema.field(place).type
        if pyarrow.types.is_integer(kind):
            whole.add(name)
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_null(kind):
            schema = schema.set(place, pyarrow.field(name, pyarrow.float64()))
    return schema, frozenset(whole)


def whole_numbers(column: Any) -> tuple[Any, int]:
    """Return a column of text as int64, and the first row of another text, or -1.

    Numbers have no leading zeros and plus signs: each is that of one text. Spaces around them do
    not count, and what pyarrow takes for a missing number is null.
    """
    import pyarrow.csv

    encoded = column.dictionary_encode()  # neighbouring ids are mostly equal
    texts = encoded.dictionary
    try:
        numbers = texts.cast(pyarrow.int64())
        if numbers.cast(texts.type).equals(texts):
            return numbers.take(encoded.indices), -1
    except pyarrow.ArrowInvalid:
        pass
    missing = set(pyarrow.csv.ConvertOptions().null_values)
    found: list[int | None] = []
    for code, text in enumerate(map(str.strip, texts.to_pylist())):
        known = WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63
        if not known and text not in missing:
            return None, encoded.indices.index(code).as_py()
        found.append(int(text) if known else None)
    return pyarrow.array(found, pyarrow.int64()).take(encoded.indices), -1
