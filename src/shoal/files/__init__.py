"""Writes output files whole or not at all, never over an input, and over no file unless asked.

An output is known by its ending, and so is a ledger: no output can be one.
"""

import glob
import os
import secrets
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from shoal import checks
from shoal.errors import DocumentError

Place: TypeAlias = str | os.PathLike[str]
Places: TypeAlias = Mapping[str, Place | None]

ENDINGS = (".json", ".csv", ".parquet", ".html", ".png", ".svg", ".pdf", ".yaml", ".md")


def check_outputs(outputs: Places, inputs: Places, *, overwrite: bool) -> None:
    """Refuse outputs, by what they are called, before anything is counted, drawn or charged.

    It refuses another ending, an input or a part of it, one file twice, a file that is there unless
    it may be overwritten, and a place that cannot be written. Links are followed. Guarantees:
    G-REFUSE.
    """
    # The output that is written to each place.
    name_of_place: dict[str, str] = {}
    targets = []
    for name, path in outputs.items():
        if path is None:
            continue
        target = _target(name, path, inputs)
        _check_free(target, overwrite=overwrite)
        # Some file systems take no notice of capital letters.
        other = name_of_place.setdefault(str(target.resolve()).casefold(), name)
        if other != name:
            raise _taken(name, target, f"also the name of {other}")
        targets.append(target)
    for target in targets:
        # A draft is made and removed again, to see whether the place can be written.
        draft = _draft(target)
        try:
            draft.touch(exist_ok=False)
            draft.unlink()
        except OSError as error:
            raise _unwritable(target, error) from None


def write_bytes(
    path: Place, data: bytes, inputs: Places | None = None, *, overwrite: bool = False
) -> None:
    """Make a file in one step, so that readers see nothing or all of it.

    It refuses what `check_outputs` refuses.
    `inputs` are what the contents were made from, which are never replaced. Guarantees: G-REFUSE.
    """
    target = _target("an output", path, inputs or {})
    _check_free(target, overwrite=overwrite)
    draft = _draft(target)
    try:
        with draft.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if overwrite:
            draft.replace(target)
        else:
            _take(draft, target)
    except FileExistsError:
        raise _there(target) from None
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        draft.unlink(missing_ok=True)


def _take(draft: Path, target: Path) -> None:
    """Give a finished draft its name unless somebody has it, also if they took it a moment ago."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        target.touch(exist_ok=False)
        draft.replace(target)


def _target(name: str, path: Place, inputs: Places) -> Path:
    """Returns the path of an output; refuses unknown endings and inputs."""
    target = Path(checks.path(path, name))
    if target.suffix.lower() not in ENDINGS:
        raise DocumentError(
            f"{name} is named {os.fspath(target)!r}",
            f"choose a name that ends in {', '.join(ENDINGS[:-1])}",
        )
    for other, place in inputs.items():
        if place is not None and _touches(target, Path(place)):
            raise _taken(name, target, f"the input {other} or a part of it")
    return target


def _touches(target: Path, read: Path) -> bool:
    """Whether an output is a file that is read, lies in a folder that is, or fits a pattern."""
    try:
        real = target.resolve()
        place = str(read.absolute())
        if read.is_dir():
            members = list(read.rglob("*"))
            within = real.is_relative_to(read.resolve())
        elif read.exists():
            members = [read]
            within = False
        else:
            # `**/` stands for any folders, and for none.
            patterns = {place.casefold(), place.casefold().replace("**/", "")}
            names = {str(each).casefold() for each in (real, target.absolute())}
            within = any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
            members = list(map(Path, glob.glob(place, recursive=True)))
        if within or not target.exists():
            return within
        # Two names may be those of one file.
        return any(each.exists() and target.samefile(each) for each in members)
    except (OSError, ValueError):
        # Where this cannot be found out, the output is refused.
        return True


def _check_free(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where something is that must not be replaced."""
    if not os.path.lexists(target):
        return
    if not target.is_file():
        raise DocumentError(
            f"{os.fspath(target)!r} is not a regular file", "choose another file or a new name"
        )
    if not overwrite:
        raise _there(target)


def _draft(target: Path) -> Path:
    """Returns a new hidden name in the folder of the target, under which it is written first."""
    return target.parent / f".shoal-{secrets.token_hex(8)}"


def _taken(name: str, target: Path, what: str) -> DocumentError:
    return DocumentError(
        f"{name} {os.fspath(target)!r} is {what}",
        "choose another name: no two outputs share a name, and no input is replaced",
    )


def _there(target: Path) -> DocumentError:
    return DocumentError(
        f"the file {os.fspath(target)!r} exists already",
        "choose another place for it, or replace it with --force (overwrite=True in Python)",
    )


def folder_fault(target: Path) -> tuple[str, str] | None:
    """Says what is wrong with the folder of a new file, and a step; None if nothing is."""
    folder = target.parent
    if folder.is_dir():
        return None
    for each in (folder, *folder.parents):
        if os.path.lexists(each) and not each.is_dir():
            return f"{os.fspath(each)!r} is no folder", "choose a folder for the file"
    return f"there is no folder {os.fspath(folder)!r}", "make it, or choose another folder"


def _unwritable(target: Path, error: OSError) -> DocumentError:
    """Returns the error that says why a file cannot be written."""
    fault = folder_fault(target)
    if fault is not None:
        return DocumentError(*fault)
    return DocumentError(
        f"{os.fspath(target)!r} cannot be written ({error.strerror or type(error).__name__})",
        "choose a path in a writable folder, or free some space",
    )
