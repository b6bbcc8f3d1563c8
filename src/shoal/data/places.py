"""Finds all files of records that a path stands for, and refuses it if one cannot be read."""

import filecmp
import glob
import os
import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from shoal import checks
from shoal.errors import DataError, ShoalWarning

PARQUET = (".parquet", ".pq")
# How CSV files are compressed, by the endings of their names.
CODECS = {".csv": "none", ".csv.gz": "gzip", ".csv.zst": "zstd"}
ENDINGS = (*PARQUET, *CODECS)
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_WRITTEN = f"write it as Parquet, or as CSV in UTF-8 with commas; names end in {', '.join(ENDINGS)}"
# The step that makes a file of another kind readable, by its ending.
_INSTEAD = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "save it as CSV UTF-8"),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".7z", ".tar", ".tgz"), "unpack it"),
}
# Folders of tables whose own log says which of their files count.
_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}


def located(source: object) -> object:
    """Returns a path as text that no change of the working folder moves; anything else as it is."""
    if not isinstance(source, str | os.PathLike):
        return source
    path = checks.path(source, "a source")
    if not os.path.lexists(path):
        if _REMOTE.match(path):
            raise DataError(
                f"{path!r} is not on this machine, and shoal reads local files only",
                "download it, or read it with PyArrow and give the table",
            )
        path = os.path.expanduser(path)
    return os.path.join(os.getcwd(), path)


def called(path: str) -> str:
    """Returns a path as messages show it: from the working folder, if it is in there."""
    return repr(path.removeprefix(os.path.join(os.getcwd(), "")))


def codec_of(path: str) -> str:
    """Returns how a CSV file is compressed, by its name; an empty text for another file."""
    name = path.casefold()
    return next((codec for ending, codec in CODECS.items() if name.endswith(ending)), "")


def file_literal(path: str) -> str:
    """Returns a path in SQL: square brackets and stars in a name are no pattern."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", path).replace("'", "''") + "'"


def files_of(path: str) -> list[str]:
    """Returns all files of a path, a pattern or a folder, in the order of their names.

    An error names any file that a person may expect among them and that cannot be read.
    """
    found: dict[str, str] = {}
    for match in _matches(path):
        for each in _inside(match) if os.path.isdir(match) else [match]:
            _check_file(each)
            other = found.setdefault(os.path.realpath(each), each)
            if other != each:
                raise DataError(
                    f"{called(each)} and {called(other)} are one file, which would count twice",
                    "remove the link",
                )
    files = sorted(found.values(), key=os.fsencode)
    if not files:
        raise DataError(
            f"no file of records at {called(path)}",
            f"give a file that ends in {', '.join(ENDINGS)}, a pattern for such files (in "
            "quotes), or a folder of such files",
        )
    for each in files:
        if codec_of(each) != codec_of(files[0]):
            raise DataError(
                f"several kinds of files are at {called(path)}: {called(files[0])} and "
                f"{called(each)}",
                "give a pattern for one kind, or convert the others",
            )
    return files


def warn_of_copies(files: Sequence[str]) -> None:
    """Warns of files that are alike byte by byte: the records of a copy count once more."""
    by_size: dict[int, str] = {}
    for each in files:
        other = by_size.setdefault(os.stat(each).st_size, each)
        if other != each and filecmp.cmp(each, other, shallow=False):
            warnings.warn(
                f"{called(each)} and {called(other)} hold the same bytes, and each record counts "
                "twice; move one of them away if it is a copy",
                ShoalWarning,
                stacklevel=2,
            )


def _matches(path: str) -> list[str]:
    """Returns what a path or a pattern names."""
    if os.path.lexists(path):
        return [path]
    # A folder that exists is taken literally, even with * or [ in its name.
    root = next(each for each in Path(path).parents if each.is_dir())
    like = os.path.relpath(path, root)
    asks_for_hidden = any(map(_is_hidden, Path(like).parts))
    found = glob.glob(like, root_dir=root, recursive=True)
    return [
        str(root / each)
        for each in found
        if asks_for_hidden or not any(map(_is_hidden, Path(each).parts))
    ]


def _inside(folder: str) -> Iterator[str]:
    """Yields files of a folder and its folders, without hidden ones such as notes of Spark."""

    def failed(error: OSError) -> None:
        raise DataError(
            f"the folder {called(str(error.filename))} cannot be read ({type(error).__name__})",
            "give this user the permission to read it",
        ) from None

    for place, folders, files in os.walk(folder, onerror=failed):
        for name in {*folders} & {*_LOGS}:
            raise DataError(
                f"{called(place)} is a table of {_LOGS[name]}, whose log says which files count",
                "read it with its own library and give the table",
            )
        folders[:] = [each for each in folders if not _is_hidden(each)]
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                raise DataError(
                    f"{called(os.path.join(place, name))} is a link to a folder, which is not read",
                    "replace it by the folder itself",
                )
        for name in files:
            if not _is_hidden(name):
                yield os.path.join(place, name)


def _is_hidden(name: str) -> bool:
    return name[0] in "_."


def _check_file(path: str) -> None:
    """Refuses anything but a file that shoal reads."""
    if not os.path.exists(path):
        raise DataError(f"{called(path)} is a link to a file that is not there", "mend the link")
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise DataError(f"{called(path)} is a pipe or a device", "give a file, no pipe")
    if not path.casefold().endswith(ENDINGS):
        ending = Path(path).suffix.casefold()
        raise DataError(
            f"{called(path)} is no Parquet or CSV file by its name",
            _INSTEAD.get(ending, f"{_WRITTEN}; notes in a folder have names that begin with _"),
        )


@contextmanager
def readable(path: str, kind: str) -> Iterator[None]:
    """Turns errors of reading a file into one that names the file."""
    try:
        yield
    except PermissionError:
        raise DataError(
            f"{called(path)} may not be read", "give this user the permission to read it"
        ) from None
    except (pa.ArrowException, OSError):
        raise DataError(
            f"{called(path)} is no {kind}, or it is damaged or cut off", "write it again"
        ) from None
