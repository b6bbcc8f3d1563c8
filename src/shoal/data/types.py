"""Tells what columns hold, by one table of types for every source, every engine and every use.

A type that is not in the table is refused by column and type. It is never read as the type that it
is stored in: months of pandas are stored as whole numbers, and durations of Arrow are, too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from shoal.errors import DataError

Kind = Literal["whole", "float", "decimal", "truth", "text", "uuid", "date", "time"]
# The use of a column: as users or cells, public in any way, as numbers, as labels, or as times.
Use = Literal["key", "public", "number", "label", "time"]

# Whole numbers below these keep their last digit.
MOST_WHOLE: dict[Kind | None, int] = {"float": 2**53, "decimal": 10**18}
_EXTENSION = b"ARROW:extension:name"
_MOST_DIGITS = 38  # of a decimal of DuckDB


@dataclass(frozen=True)
class _Type:
    """A kind of value, how engines call it, and whether a type of Arrow is of this kind."""

    kind: Kind
    engines: str
    arrow: Callable[[Any], bool]


_TYPES = (
    _Type("whole", "u?(tiny|small|big)int|u?int(eger)?", pa.types.is_integer),
    _Type("float", "float|double", pa.types.is_floating),
    _Type(
        "decimal",
        r"decimal\([0-9, ]+\)|u?hugeint",
        # DuckDB reads longer decimals as floats, whose last digits depend on the longest cell.
        lambda kind: pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS,
    ),
    _Type("truth", "boolean", pa.types.is_boolean),
    _Type(
        "text",
        r"(var)?char(\([0-9]+\))?|string( collate .*)?",
        lambda kind: kind in {pa.string(), pa.large_string(), pa.string_view()},
    ),
    _Type("uuid", "uuid", lambda kind: kind == pa.uuid()),
    _Type("date", "date", pa.types.is_date),
    _Type("time", "timestamp(tz)?(_s|_ms|_ns|_ntz)?( with time zone)?", pa.types.is_timestamp),
)
# The kinds that a column may hold by its use, and what to convert other kinds to. Numbers that are
# keys, or that are compared with labels, are whole in every row.
_FITS: dict[Use, tuple[set[Kind], str]] = {
    "key": (
        {"whole", "truth", "text", "uuid", "date"},
        "text, integers, booleans or dates (times by timeslot)",
    ),
    "public": (
        {"whole", "float", "decimal", "truth", "text", "uuid", "date", "time"},
        "text, numbers, booleans, dates or times",
    ),
    "number": ({"whole", "float", "decimal", "truth"}, "numbers or booleans"),
    "label": ({"whole", "float", "decimal", "truth", "text"}, "text or numbers"),
    "time": ({"time", "date"}, "times or dates"),
}


def kind_of(engine_type: str) -> Kind | None:
    """Returns what a type of an engine means, whichever engine it is."""
    name = engine_type.lower()
    return next((each.kind for each in _TYPES if re.fullmatch(each.engines, name)), None)


def kind_in_arrow(kind: Any) -> Kind | None:
    """Returns what a type of Arrow means: that of the values, if each is written once."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return next((each.kind for each in _TYPES if each.arrow(kind)), None)


def refuse_unknown(schema: pa.Schema, uses: Mapping[str, Use]) -> None:
    """Refuses columns of other types, which an engine would read as what they are stored in."""
    for name, use in uses.items():
        field: Any = schema.field(name)
        stands_for = (field.metadata or {}).get(_EXTENSION)
        if stands_for:
            raise misfit(name, f"the extension type {stands_for.decode(errors='replace')}", use)
        if kind_in_arrow(field.type) is None:
            raise misfit(name, in_words(field.type), use)


def misfit(name: str, held: str, use: Use) -> DataError:
    """Returns the error of a column that holds something that does not fit its use."""
    return DataError(f"the column {name!r} holds {held}", f"convert it to {_FITS[use][1]}")


def fits(kind: Kind | None, use: Use) -> bool:
    """Whether a column of a kind fits a use."""
    return kind in _FITS[use][0]


def in_words(kind: Any) -> str:
    """Returns a type of Arrow as messages call it."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        return f"the extension type {kind.extension_name}"
    return str(kind)
