"""What all verbs with outputs share: the check before any work, and files after the charge."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.privacy.ledger import Entry


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
    from shoal.errors import InputError
    from shoal.files import check_outputs
    from shoal.files.tables import check_ending

    for place in (tables or {}).values():
        if place is not None:
            check_ending(place)
    for place in (pictures or {}).values():
        if place is not None:
            from shoal.pictures import check_picture

            check_picture(place)
    for name, place in (documents or {}).items():
        if place is not None and place.suffix.lower() != ".json":
            raise InputError(f"{name} {str(place)!r}", "a name that ends in .json", "choose one")
    outputs = {**(tables or {}), **(documents or {}), **(pictures or {})}
    check_outputs(outputs, inputs, overwrite=force)


@contextmanager
def delivering(
    entry: "Entry | None",
    ledger: Path,
    *writers: tuple[Callable[..., None], Path | None],
    force: bool,
) -> Iterator[None]:
    """Write files, then show in the block; what fails says that the release is recorded.

    A reader who has gone is left to the command line: what it wanted to see it has seen.

    Args:
        entry: Where the release is recorded; None if it is not.
        ledger: In which ledger.
        *writers: What writes, and where to; None if it is not wanted.
        force: Whether files that are there may be replaced.

    Raises:
        DocumentError: What failed; the release is safe.
    """
    from shoal.errors import DocumentError, ShoalError

    try:
        _write_all(writers, force=force)
        yield
    except BrokenPipeError:
        raise
    except ShoalError as error:
        if entry is None:
            raise
        got, allowed = error.got, error.allowed
    except OSError as error:
        if entry is None:
            raise
        got = f"the output cannot be written ({error.strerror or type(error).__name__})"
        allowed = "a place with free space"
    except Exception as error:
        if entry is None:
            raise
        # Its text could hold anything: only its kind is shown.
        got, allowed = f"unexpected {type(error).__name__} after the charge", "no failure"
    else:
        return
    raise DocumentError(
        got,
        allowed,
        f"the release is recorded as entry {entry.number} of {ledger}: choose another place "
        "and ask for it again under the same name, which costs nothing",
    ) from None


def _write_all(
    writers: tuple[tuple[Callable[..., None], Path | None], ...], *, force: bool
) -> None:
    """Write all files that can be written, and only then fail."""
    failure: Exception | None = None
    for write, place in writers:
        try:
            if place is not None:
                write(place, overwrite=force)
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure
