"""Before a draw: what will be written is written and read back, with placeholders for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import documents
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.documents import Document


def rehearse(make: Callable[[], Document], schema: str, read: Callable[[Document], object]) -> None:
    """Refuse public facts that would leave a release that nobody can read, before it is charged.

    Guarantees: what is released has a manifest of its schema that shoal reads back (G-LEDGER);
    nothing private decides, as every number is a placeholder.

    Args:
        make: Makes the manifest, with placeholders where the draw comes.
        schema: Of the manifest.
        read: Reads it the way a delivered release is read.

    Raises:
        InputError: It cannot be written, is not of its schema, or cannot be read back.

    Example:
        >>> rehearse(lambda: {"schema": "a/1", "name": float("nan")}, "a/1", print)
        Traceback (most recent call last):
        shoal.errors.InputError: public facts that a manifest cannot hold (contents that JSON ...
    """
    why = ""
    try:
        read(documents.parse(documents.canonical_bytes(make()), schema, "manifest"))
    except InputError as error:
        why = error.got
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        why = getattr(error, "got", "its parts do not fit each other when it is read back")
    else:
        return
    raise InputError(
        f"public facts that a manifest cannot hold ({why})",
        "names, keys and amounts that can be written and read back; nothing was drawn",
        "shorten names and keys, round times and give amounts with fewer digits",
    ) from None
