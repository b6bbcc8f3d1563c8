"""Parquet files, one or several with the same columns, and the columns of their folders."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.data.csv_file import DAY, TRUTH, WHOLE
from shoal.data.file_set import partitions
from shoal.data.own_names import check_kept, check_present
from shoal.data.source import check_files, duckdb, engine_errors, literal_name
from shoal.data.source_file import describe, files_of
from shoal.errors import DataError, InputError
from shoal.files.patterns import fixed_part

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from shoal.data.source import Engine, EngineTable
    from shoal.data.source_file import SourceFile


def read_parquet(
    source: SourceFile, private: Mapping[str, str | None], needed: Sequence[str]
) -> tuple[EngineTable, Engine]:
    """A table of Parquet files, once their own schemas say that the columns are there.

    Several files are one table if their columns have the same names and types. A column that they
    do not have may be one of their folders: whole numbers, truths or dates if all folders say so,
    else texts, as in a CSV file. What a file says itself comes before what its folder is called.

    Args:
        source: A file, a pattern or a folder.
        private: Role and column of what is protected.
        needed: Names of the columns.

    Raises:
        DataError: No such columns, files of different columns, or what cannot be read.
        InputError: A private column that folders are named for: their names are public.

    Guarantees: G-REFUSE, G-RECORDS.
    """
    check_files(source)
    files = files_of(source)
    names = _same_columns(files)
    told = _told(source, files)
    extra = [name for name in told[0] if name not in names]
    check_present(source, [*names, *extra], needed)
    asked = [name for name in extra if name in needed]
    _check_public(asked, private)
    if asked:
        _check_folders(source, files, names)
    with engine_errors(source):
        backend = duckdb()
        table = backend.read_parquet(
            [literal_name(each) for each in files],
            hive_partitioning=bool(asked),
            hive_types_autocast=False,
        )
        check_kept(source, table.select(list(table.schema())[: len(names)]))
        kinds = {name: _kind([each[name] for each in told]) for name in asked}
        # A folder that the engine calls otherwise must fail, not be missing.
        return table.mutate([table[name].cast(kinds[name]).name(name) for name in asked]), backend


def _told(source: SourceFile, files: Sequence[SourceFile]) -> list[dict[str, str | None]]:
    """What the folders within a pattern or a folder say of each file; of a single file, nothing."""
    places = [each.place for each in files]
    if places == [source.place]:
        return [{}]
    return partitions(fixed_part(source.place) if source.pattern else source.place, places)


def _same_columns(files: Sequence[SourceFile]) -> list[str]:
    """Names of the columns that all files have, of the same types.

    Raises:
        DataError: A file whose columns are others.
    """
    known: list[str] = []
    first: dict[str, str] = {}
    for each in files:
        # The file that cannot be read is named, not all of them.
        with engine_errors(each):
            names, columns = _columns(each)
        if each is files[0]:
            known, first = names, columns
        for path in sorted({*columns, *first}):
            mine, others = (found.get(path, "not there") for found in (columns, first))
            if mine != others:
                raise DataError(
                    f"the column {path.split('.')[0]!r} of {describe(each)} is {mine}, but "
                    f"{others} in {describe(files[0])}",
                    "files whose columns have the same names and types",
                    "write one of the files anew, or name fewer files",
                )
    return known


def _columns(path: SourceFile) -> tuple[list[str], dict[str, str]]:
    """Names of columns, and the types of what is in them, as the file itself says."""
    import pyarrow.parquet as pq

    with Path(path).open("rb") as file:
        schema = pq.read_metadata(file).schema
    found: dict[str, str] = {}
    for at in range(len(schema)):
        leaf = schema.column(at)
        stated = str(leaf.logical_type)
        kind = f"{leaf.physical_type.lower()} {'' if stated == 'None' else stated}".strip()
        kind += f" of {leaf.length} bytes" * bool(leaf.length)
        kind += " repeated" * leaf.max_repetition_level
        # Of two columns of one name, both.
        found[leaf.path] = f"{found[leaf.path]} and {kind}" if leaf.path in found else kind
    return list(schema.to_arrow_schema().names), found


def _check_public(asked: Collection[str], private: Mapping[str, str | None]) -> None:
    for role, name in private.items():
        if name in asked:
            raise InputError(
                f"the {role} column {name!r}, which folders are named for",
                "a column of the files: names of folders are public",
                "name another column",
            )


def _check_folders(source: SourceFile, files: Sequence[SourceFile], names: Sequence[str]) -> None:
    """Refuse folders that an engine reads as another column: it looks at the whole path.

    Raises:
        DataError: A folder above is called like a column, or two folders are.
    """
    known = [name.casefold() for name in names]
    for each in files:
        parts = Path(each).parent.parts
        if any("\\" in part for part in parts):
            raise DataError(
                f"{describe(source)} with columns of folders, below a folder with a backslash",
                "names without one: engines end a folder's name there",
                "rename the folder, or move the files",
            )
        told = [part.split("=")[0].casefold() for part in parts if "=" in part]
        if len({*told, *known}) < len(told) + len(known):
            raise DataError(
                f"folders of {describe(source)} of which one is named for a column of the files, "
                "or two for one column",
                "folders such as month=5 for columns that the files do not have",
                "rename the folder or the column",
            )


def _kind(texts: Sequence[str | None]) -> str:
    """The type of a public key by all its texts, as in a CSV file."""
    found = {text for text in texts if text is not None}
    for kind, form in (("int64", WHOLE), ("boolean", TRUTH), ("date", DAY)):
        if found and all(re.fullmatch(form, text) for text in found):
            return kind if kind != "date" or all(map(_is_day, found)) else "string"
    return "string"


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
