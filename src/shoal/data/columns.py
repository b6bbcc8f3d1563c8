"""Columns of a source for their roles: they are there, of one meaning each, and no role has two."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from shoal.data.csv_file import read_texts
from shoal.data.decimals import check_digits
from shoal.data.frames import check_guessed, check_same_types, chosen
from shoal.data.own_names import check_kept, check_present
from shoal.data.parquet_file import read_parquet
from shoal.data.source import collected, connect, held, is_csv, is_frame
from shoal.data.source_file import SourceFile
from shoal.data.sqlite_cells import of_their_type
from shoal.data.whole_keys import with_whole_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

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

    Columns are those that the source itself calls so, whatever an engine makes of its names. Types
    come from the source; a CSV file has none, so that its columns are read as their kind.
    To be called within `engine_errors`: the texts of an engine's own errors may be private.

    Args:
        source: As in `shoal.Records`.
        private: Role and column of what is protected; None for a role that nothing has.
        public: Role and column or columns of what is known to all.
        kinds: What each column is for.

    Raises:
        InputError: Another kind of source, or a private column in a public role.
        DataError: The source cannot be read, has no such columns, has names that the engine does
            not keep, or a private one of objects or of decimals of more than 38 digits.

    Guarantees: G-RECORDS, G-REFUSE.
    """
    if is_csv(source):
        return read_texts(source, kinds)
    source = collected(source)
    if isinstance(source, SourceFile):
        table, backend = read_parquet(source, private, list(kinds))
    elif is_frame(held(source)):
        table, backend = connect(_selected(source, private, public, list(kinds)))
    else:
        table, backend = connect(source)
        check_guessed(table)
        check_kept(source, table)
        check_present(source, list(table.schema()), list(kinds))
    check_digits(source, table, private)
    return with_whole_keys(of_their_type(table, kinds), kinds, backend), backend


def _selected(
    source: object,
    private: Mapping[str, str | None],
    public: Mapping[str, str | Sequence[str] | None],
    needed: Sequence[str],
) -> pa.Table:
    """The needed columns of a frame, or of a table of Ibis that is one and has its types."""
    frame = held(source)
    if frame is not source:
        check_kept(source, cast("EngineTable", source))
    found = chosen(frame, private, public, needed)
    if frame is not source:
        check_same_types(cast("EngineTable", source), connect(found)[0])
    return found
