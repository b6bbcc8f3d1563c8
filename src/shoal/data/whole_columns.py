"""Whole columns of a source, for releases that need no counting by user and cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.checks import roles
from shoal.data.sources import described, located, opened
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from shoal.data.sources import Use


def read_columns(
    source: object,
    *,
    private: Mapping[str, str | None],
    public: Mapping[str, str | None],
    texts: bool = False,
) -> pa.Table:
    """Some columns of records, in the order of the source's rows. Private.

    Raises:
        InputError: A private column in a public role.
        DataError: The source cannot be read, a column is missing, or there is no row.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"bought": [3, 1], "arm": [0, 1], "age": [20, 30]})
        >>> read_columns(table, private={"outcome": "bought"}, public={"treatment": "arm"}).shape
        (2, 2)
    """
    roles(private, public)
    hidden = [name for name in private.values() if name is not None]
    uses: dict[str, Use] = dict.fromkeys(hidden, "text" if texts else "answer")
    uses.update({name: "key" for name in public.values() if name is not None})
    place = located(source)
    with opened(place, uses, hidden) as columns:
        # Numbers and labels have a type of their own but in a CSV file.
        sql = {name: columns.sql[name] for name in uses}
        chosen = ", ".join(f"{each} AS c{at}" for at, each in enumerate(sql.values()))
        found = columns.engine.run(f"SELECT {chosen} FROM {columns.engine.relation}")
    if found.num_rows == 0:
        raise DataError(
            f"no rows in {described(place)}", "at least one", "check the source and its filters"
        )
    return found.rename_columns(list(uses))
