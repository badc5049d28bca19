"""The types of columns, and those that files are read as, where they differ or do not say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["common_schema", "is_number", "value_type", "with_floats"]


def value_type(kind: Any) -> Any:
    """Return the type of the values of a column, which a dictionary may hold."""
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def is_number(kind: Any) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    import pyarrow

    types = pyarrow.types
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    return any(test(kind) for test in tests)


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
