"""What may stand in a ledger: texts and documents that SQLite keeps as they are."""

from __future__ import annotations

from shoal.errors import InputError

_MOST_BYTES = 900_000_000  # SQLite keeps rows below a billion bytes
_LONGEST_TEXT = 1000


def check_text(value: object, name: str, *, empty: bool = False) -> None:
    """Refuse what is no short text of Unicode.

    Args:
        value: The argument.
        name: Its name.
        empty: Whether it may be empty.

    Raises:
        InputError: It is not.
    """
    try:
        if isinstance(value, str) and (empty or value) and len(value) <= _LONGEST_TEXT:
            value.encode()
            return
    except UnicodeEncodeError:
        pass
    what = "empty, broken or long text" if isinstance(value, str) else f"a {type(value).__name__}"
    raise InputError(
        f"{name} is {what}", f"up to {_LONGEST_TEXT} characters of Unicode", f"give {name} as text"
    )


def check_texts(question: object, name: object, kind: object = "") -> None:
    """Refuse what is no short text of Unicode; name and kind may be empty.

    Raises:
        InputError: One of them is not.
    """
    check_text(question, "question")
    check_text(name, "name", empty=True)
    check_text(kind, "kind", empty=True)


def check_document(value: object) -> None:
    """Refuse a document that is not bytes, or more of them than a row holds.

    Args:
        value: The argument.

    Raises:
        InputError: It is.
    """
    if not isinstance(value, bytes):
        raise InputError(
            f"document is a {type(value).__name__}", "bytes", "encode the document first"
        )
    if len(value) > _MOST_BYTES:
        raise InputError(
            f"document has {len(value)} bytes", f"at most {_MOST_BYTES}", "split the release"
        )
