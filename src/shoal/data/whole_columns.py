"""Whole columns of a source, for releases that need no counting by user and cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.checks import roles
from shoal.data.columns import open_columns
from shoal.data.connection_turns import turn
from shoal.data.source import engine_errors
from shoal.data.source_file import describe, located, unchanged
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from shoal.data.csv_file import Kind


def read_columns(
    source: object,
    *,
    private: Mapping[str, str | None],
    public: Mapping[str, str | None],
    texts: bool = False,
) -> pa.Table:
    """Some columns of records, in the order of the source's rows. Private.

    Args:
        source: As in `shoal.Records`: files, a table in memory, an Ibis table.
        private: Role and column of what is protected; None for a role that nothing has.
        public: The same of what is known to all: none of it may be a private column.
        texts: Private columns of a CSV file are texts, as labels are, rather than numbers.

    Raises:
        InputError: A private column in a public role.
        DataError: The source cannot be read, a column is missing, or there is no row.

    Guarantees: G-REFUSE, G-RECORDS.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"bought": [3, 1], "arm": [0, 1], "age": [20, 30]})
        >>> read_columns(table, private={"outcome": "bought"}, public={"treatment": "arm"}).shape
        (2, 2)
    """
    roles(private, public)
    kinds: dict[str, Kind] = dict.fromkeys(_named(private), "text" if texts else "answer")
    kinds.update(dict.fromkeys(_named(public), "key"))
    source = located(source)
    with unchanged(source) as now, turn(now), engine_errors(now):
        table, backend = open_columns(now, private=private, public=public, kinds=kinds)
        found: pa.Table = backend.to_pyarrow(table.select(*kinds))
    if found.num_rows == 0:
        raise DataError(
            f"no rows in {describe(source)}", "at least one", "check the source and its filters"
        )
    return found


def _named(roles: Mapping[str, str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in roles.values() if name is not None))
