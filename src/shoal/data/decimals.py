"""Decimals that DuckDB reads as floating point by the digits of their longest cell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.data.source_file import files_of
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.data.source import EngineTable

_MOST_DIGITS = 38


def check_digits(source: object, table: EngineTable, private: Mapping[str, str | None]) -> None:
    """Refuse private decimals of more than 38 digits, by their type alone.

    DuckDB divides such a number of a Parquet file by a power of ten in floating point, so that the
    digits of one user's number decide in which direction those of the others are rounded.

    Args:
        source: A Parquet file, or a table of any kind.
        table: The same as a table of Ibis.
        private: Role and column of what is protected.

    Raises:
        DataError: A private column of such a type.
        Exception: What the engine raises of a file without a schema: its text may be private.

    Guarantees: G-RECORDS.

    Example:
        >>> import ibis
        >>> table = ibis.table({"speed": "decimal(60, 3)"}, name="trips")
        >>> check_digits(table, table, {"value": "speed"})
        Traceback (most recent call last):
        shoal.errors.DataError: the value column 'speed' holds decimals of 60 digits; allowed: ...
    """
    digits = _of_file(source) if isinstance(source, str | os.PathLike) else _of_table(table)
    for role, name in private.items():
        if name is not None and digits.get(name, 0) > _MOST_DIGITS:
            raise DataError(
                f"the {role} column {name!r} holds decimals of {digits[name]} digits",
                f"at most {_MOST_DIGITS} digits, or floating point",
                "convert it to DECIMAL(38, s) or double",
            )


def _of_file(path: str | os.PathLike[str]) -> dict[str, int]:
    import pyarrow.parquet as pq

    with Path(files_of(path)[0]).open("rb") as file:
        return {
            field.name: field.type.precision
            for field in pq.read_schema(file)
            if pa.types.is_decimal(field.type)
        }


def _of_table(table: EngineTable) -> dict[str, int]:
    kinds: dict[str, Any] = dict(table.schema().items())
    # An engine that does not say how many digits there are has its own most, at most 38.
    return {name: kind.precision or 0 for name, kind in kinds.items() if kind.is_decimal()}
