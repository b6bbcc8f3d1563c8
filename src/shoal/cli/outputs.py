"""What all verbs with outputs share: the check before any work, and files after the charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from shoal.accounting.ledger import Entry


def check_places(
    inputs: Mapping[str, Path | None],
    *,
    force: bool,
    tables: Mapping[str, Path | None] | None = None,
    documents: Mapping[str, Path | None] | None = None,
    pictures: Mapping[str, Path | None] | None = None,
) -> None:
    """Refuse what could otherwise destroy a file, or fail only after the charge.

    Args:
        inputs: What is read, by the name that the command line gives it.
        force: Whether files that are there may be replaced.
        tables: Outputs of rows.
        documents: Outputs of JSON.
        pictures: Outputs of drawings.

    Raises:
        InputError: Another ending.
        DocumentError: A place that must not or cannot be written.
    """
    from shoal.outputs import check_outputs
    from shoal.tables import check_ending

    for place in (tables or {}).values():
        if place is not None:
            check_ending(place)
    for place in (pictures or {}).values():
        if place is not None:
            from shoal.report.pictures import check_picture

            check_picture(place)
    outputs = {**(tables or {}), **(documents or {}), **(pictures or {})}
    check_outputs(outputs, inputs, overwrite=force)


def deliver(
    entry: Entry | None,
    ledger: Path,
    *writers: tuple[Callable[..., None], Path | None],
    force: bool,
) -> None:
    """Write files of a release that is recorded; say how to get it if they cannot be written.

    Args:
        entry: Where it is recorded.
        ledger: In which ledger.
        *writers: What writes, and where to; None if it is not wanted.
        force: Whether files that are there may be replaced.

    Raises:
        DocumentError: A file that cannot be written; the release is safe.
    """
    from shoal.errors import DocumentError

    failure: DocumentError | None = None
    for write, place in writers:
        try:
            if place is not None:
                write(place, overwrite=force)
        except DocumentError as error:
            failure = error
    if failure is not None and entry is not None:
        raise DocumentError(
            failure.got,
            failure.allowed,
            f"the release is recorded as entry {entry.number} of {ledger}: choose another place "
            "and ask for it again by its name or with --again, which costs nothing",
        )
    if failure is not None:
        raise failure
