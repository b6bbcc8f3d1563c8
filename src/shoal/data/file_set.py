"""Several files that are one table: those of a pattern, or the Parquet files of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from shoal.errors import DataError
from shoal.files import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

PARQUET = (".parquet", ".pq")
# How Hive and Spark write what is missing.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
# Names that Spark and others keep notes of their own under.
_NOTES = ("_", ".")
# Notes that say which files count: others are replaced, or not complete.
_COUNTED = {"_delta_log": "Delta Lake", ".hoodie": "Hudi", "_temporary": "an unfinished job"}
# Of a path: a folder may lead back to itself.
_LONGEST = 4000


def members(given: str, place: str, *, pattern: bool) -> list[tuple[str, str]]:
    """The files that a path stands for, as the user would call them and where they are.

    Nothing depends on the order in which a system lists them: it is that of their names' bytes.

    Args:
        given: The path as it was given: of a file, a pattern, or a folder.
        place: The same, whatever the working folder is.
        pattern: Whether it is a pattern, rather than a file whose name has brackets.

    Raises:
        DataError: No file is like the pattern, or a folder that holds anything but Parquet files.

    Example:
        >>> members("a.csv", "/data/a.csv", pattern=False)
        [('a.csv', '/data/a.csv')]
    """
    if pattern:
        found = patterns.matches(place)
        if not found:
            raise DataError(
                f"no file whose name is like {given!r}",
                "a pattern of at least one Parquet or CSV file",
                "check the pattern, which the shell must not replace: put it in quotes",
            )
        return _apart(_called(found, patterns.fixed_part(given), patterns.fixed_part(place)))
    if os.path.isdir(place) and not _is_csv(place):
        return _apart(_called(_in_folder(given, place), given, place))
    return [(given, place)]


def partitions(root: str, files: list[str]) -> list[dict[str, str | None]]:
    """What the folders between a set and each of its files say: `month=5` is a column `month`.

    Args:
        root: The folder that the files lie in.
        files: Its files, as absolute paths.

    Raises:
        DataError: Files in folders of different columns, or a name that can be read in two ways.

    Example:
        >>> partitions("/trips", ["/trips/month=5/a.parquet", "/trips/month=6/a.parquet"])
        [{'month': '5'}, {'month': '6'}]
    """
    found = [_told(os.path.relpath(each, root)) for each in files]
    for path, each in zip(files, found, strict=True):
        if list(each) != list(found[0]):
            raise DataError(
                f"{os.path.relpath(path, root)!r}, which lies in folders of other columns "
                f"than {os.path.relpath(files[0], root)!r}",
                "folders with the same columns in the same order, such as year=2013/month=5",
                "move the file, or name fewer files",
            )
    return found


def _told(path: str) -> dict[str, str | None]:
    """Columns that the folders of a relative path stand for."""
    found: dict[str, str | None] = {}
    for part in Path(path).parts[:-1]:
        name, equals, value = part.partition("=")
        if not equals:
            continue
        # DuckDB ends a folder's name at a backslash, too.
        plain = name and value and "%" not in name and not {"=", "\\"} & {*value}
        if not plain or name.casefold() in map(str.casefold, found):
            raise DataError(
                f"a folder {part!r} whose column has no plain name and value, or another's name",
                "folders such as month=5, each of another column",
                "rename the folder",
            )
        found[name] = None if value == _NOTHING else _decoded(value)
    return found


def _decoded(value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        pass
    raise DataError(
        f"a folder named for {value!r}, which is no text in UTF-8",
        "folders such as month=5",
        "rename the folder",
    )


def _called(found: list[str], given: str, place: str) -> list[tuple[str, str]]:
    names = (os.path.join(given, os.path.relpath(each, place)) for each in found)
    return list(zip(names, found, strict=True))


def _apart(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same files, each once; a link to another of them would count its records twice.

    A pattern may find a file in several ways: by several `**`, or through folders and back.
    """
    once: dict[str, str] = {}
    for called, place in found:
        once.setdefault(patterns.plain(place), called)
    seen: dict[tuple[int, int], str] = {}
    for place, called in once.items():
        try:
            state = os.stat(place)
        except OSError:  # whoever reads it says so
            continue
        first = seen.setdefault((state.st_dev, state.st_ino), place)
        if first != place:
            raise DataError(
                f"{called!r}, which is the same file as {once[first]!r}",
                "each file once",
                "remove the link, or name fewer files",
            )
    return [(called, place) for place, called in once.items()]


def _in_folder(given: str, place: str) -> list[str]:
    found = sorted(_walk(given, place), key=os.fsencode)
    if not found:
        raise DataError(
            f"a folder {given!r} without Parquet files",
            "a Parquet or CSV file, a pattern of files, or a folder of Parquet files",
            "check the path; give CSV files by a pattern such as 'trips/*.csv'",
        )
    return found


def _walk(given: str, folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda each: os.fsencode(each.name))
    except OSError:
        listed = None
    if listed is None:
        raise DataError(
            f"a folder {given!r} that cannot be listed", "a readable folder", "check its rights"
        )
    for each in listed:
        called = os.path.join(given, each.name)
        if each.name in _COUNTED:
            raise DataError(
                f"{called!r}, the notes of {_COUNTED[each.name]}: not all files there are records",
                "a folder whose Parquet files all are",
                "read it with its own tools, and give shoal the table",
            )
        if each.name.startswith(_NOTES):
            continue
        if each.is_dir():
            if "=" not in each.name or len(called) > _LONGEST:
                raise _foreign(called, "another folder")
            yield from _walk(called, each.path)
        elif each.name.casefold().endswith(PARQUET):
            yield each.path
        else:
            raise _foreign(called, "a file of another kind")


def _foreign(called: str, what: str) -> DataError:
    folder, name = os.path.split(called)
    ending = ".csv" if _is_csv(name) else ".parquet"
    return DataError(
        f"{called!r}, {what} in a folder of records",
        "Parquet files, and folders such as month=5 with such files",
        f"move it, or give files by a pattern such as {str(Path(folder, '*' + ending))!r}",
    )


def _is_csv(place: str) -> bool:
    return ".csv" in os.path.basename(place).casefold()
