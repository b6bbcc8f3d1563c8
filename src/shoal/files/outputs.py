"""What a run may write: nothing that it reads, nothing twice, nothing that is there."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from shoal import files
from shoal.errors import DocumentError
from shoal.files.patterns import would_match

if TYPE_CHECKING:
    from collections.abc import Mapping

Paths: TypeAlias = "Mapping[str, str | os.PathLike[str] | None]"
Key: TypeAlias = tuple[Any, ...]


def check_outputs(outputs: Paths, inputs: Paths, *, overwrite: bool) -> None:
    """Refuse outputs before anything is counted, drawn or charged for them.

    Links are followed, so that two spellings, a symbolic and a hard link of one file are one file.

    Args:
        outputs: What each output is called, and where to; None if it is not wanted.
        inputs: The same of everything that is read or recorded in.
        overwrite: Files that are there may be replaced, but no input and no ledger.

    Raises:
        DocumentError: An output that is an input or lies in one, two outputs that are one file, a
            file that is there already, or a place that cannot be written.

    Guarantees: G-REFUSE.

    Example:
        >>> check_outputs({"--output": None}, {"DATA": "flights.parquet"}, overwrite=False)
    """
    read = _given(inputs)
    written: dict[str, Path] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        target = files.place_of(path)
        _refuse_inputs(name, target, read)
        for other, given in written.items():
            if (_keys(target) | _folded(target)) & (_keys(given) | _folded(given)):
                raise _taken(name, target, f"the place of {other}")
        written[name] = target
    for target in written.values():
        files.check_free(target, overwrite=overwrite)
    for target in written.values():
        files.check_writable(target)


def write_bytes(
    path: str | os.PathLike[str], data: bytes, inputs: Paths, *, overwrite: bool
) -> None:
    """Write a file that is none of those that its contents were made from.

    Args:
        path: Where to.
        data: What the file holds.
        inputs: What is never replaced, and where it is.
        overwrite: Replace another file that is there.

    Raises:
        DocumentError: There is a file already, the place cannot be written, or it is an input.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_bytes(folder + "/a.json", b"{}", {"records": None}, overwrite=False)
    """
    keep_inputs(path, inputs)
    files.write_bytes(path, data, overwrite=overwrite)


def keep_inputs(path: str | os.PathLike[str], inputs: Paths) -> None:
    """Refuse an output that is what its contents were made from, whether files may be replaced.

    Args:
        path: Where to.
        inputs: What was read, by what a message calls it; None if it is no file.

    Raises:
        DocumentError: It is an input.

    Guarantees: G-REFUSE.

    Example:
        >>> keep_inputs("speeds.parquet", {"records": "flights.parquet"})
    """
    _refuse_inputs("an output", files.place_of(path), _given(inputs))


def _given(inputs: Paths) -> dict[str, Path]:
    return {name: Path(path) for name, path in inputs.items() if path is not None}


def _refuse_inputs(name: str, target: Path, read: Mapping[str, Path]) -> None:
    for other, given in read.items():
        if _keys(target) & _keys(given) or _within(target, given):
            raise _taken(name, target, f"what is read as {other}")
        if would_match(given, target):
            raise _taken(name, target, f"one of the files that are read as {other}, or would be")


def _keys(path: Path) -> set[Key]:
    """What a file is known by: itself, and its name in its folder, before and after links."""
    found: set[Key] = set()
    for each in {path, _real(path)}:
        found |= _identity(each)
        found.add((*_folder(each), each.name))
    return found


def _folded(path: Path) -> set[Key]:
    """Names as file systems see them that fold case or accents."""
    return {
        (*_folder(each), unicodedata.normalize("NFKC", each.name).casefold())
        for each in {path, _real(path)}
    }


def _within(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder of records, at any depth and by whatever link."""
    if not folder.is_dir():
        return False
    real, reached = _real(path), _reached(folder)
    return any(_identity(each) & reached for each in (real, *real.parents))


def _reached(folder: Path) -> set[Key]:
    """All files and folders that are found from a folder, links followed."""
    found = _identity(folder)
    for place, folders, names in os.walk(folder, followlinks=True):
        here = [(name, _identity(Path(place, name))) for name in (*folders, *names)]
        # Links that lead back would never end.
        known = {name for name, own in here if own <= found}
        folders[:] = [name for name in folders if name not in known]
        found = found.union(*(own for _, own in here))
    return found


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # a current folder that was removed; a broken name
        return path


def _folder(path: Path) -> Key:
    found = _identity(path.parent)
    return next(iter(found)) if found else (str(_real(path.parent)),)


def _identity(path: Path) -> set[Key]:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return set()
    return {(found.st_dev, found.st_ino)}


def _taken(name: str, target: Path, what: str) -> DocumentError:
    return DocumentError(
        f"{name} {os.fspath(target)!r}, which is {what}",
        "a file of its own for each output, forced (overwrite=True, --force) or not",
        "choose another name",
    )
