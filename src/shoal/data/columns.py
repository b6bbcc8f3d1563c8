"""Columns of a source for their roles: they are there, of one meaning each, and no role has two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.csv_file import read_texts
from shoal.data.decimals import check_digits
from shoal.data.frames import check_guessed, check_typed
from shoal.data.source import check_frame, check_present, collected, connect, is_csv
from shoal.data.sqlite_cells import of_their_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shoal.data.csv_file import Kind
    from shoal.data.source import Engine, EngineTable


def open_columns(
    source: object,
    *,
    private: Mapping[str, str | None],
    public: Mapping[str, str | Sequence[str] | None],
    kinds: Mapping[str, Kind],
) -> tuple[EngineTable, Engine]:
    """A table with some columns of a source, and the engine that runs it.

    Types come from the source; a CSV file has none, so that its columns are read as their kind.
    To be called within `engine_errors`: the texts of an engine's own errors may be private.

    Args:
        source: As in `shoal.Records`.
        private: Role and column of what is protected; None for a role that nothing has.
        public: Role and column or columns of what is known to all.
        kinds: What each column is for.

    Raises:
        InputError: Another kind of source, or a private column in a public role.
        DataError: The source cannot be read, has no such columns, or a private one of objects
            or of decimals of more than 38 digits.

    Guarantees: G-CELLWISE, G-ROLES.
    """
    if is_csv(source):
        return read_texts(source, kinds)
    source = collected(source)
    check_typed(source, private)
    table, backend = connect(source)
    check_guessed(table)
    check_present(source, list(table.schema()), list(kinds))
    check_digits(source, table, private)
    check_frame(source, private, public)
    return of_their_type(table, kinds), backend
