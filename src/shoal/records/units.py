"""Whole columns of a source, for releases that need no counting by user and cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.errors import DataError
from shoal.records.source import connect, describe, engine_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def read_columns(source: object, names: Sequence[str]) -> pa.Table:
    """Some columns of records, in the order of the source's rows. Private.

    Args:
        source: As in `shoal.Records`: a Parquet or CSV file, a table in memory, an Ibis table.
        names: Columns, each at most once.

    Raises:
        DataError: The source cannot be read, a column is missing, or there is no row.

    Example:
        >>> import pyarrow as pa
        >>> read_columns(pa.table({"a": [3, 1], "b": [0, 0]}), ["a"]).column("a").to_pylist()
        [3, 1]
    """
    table, backend = connect(source)
    with engine_errors(source):
        known = list(table.schema())
    for name in names:
        if name not in known:
            raise DataError(
                f"no column {name!r} in {describe(source)}",
                f"one of {', '.join(sorted(known))}",
                "check the spelling",
            )
    with engine_errors(source):
        found: pa.Table = backend.to_pyarrow(table.select(*names))
    if found.num_rows == 0:
        raise DataError(
            f"no rows in {describe(source)}", "at least one", "check the source and its filters"
        )
    return found
