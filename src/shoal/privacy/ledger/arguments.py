"""What may stand in a ledger: texts and documents that SQLite keeps as they are."""

from __future__ import annotations

from typing import NamedTuple

from shoal.errors import InputError

_MOST_BYTES = 900_000_000  # SQLite keeps rows below a billion bytes
_LONGEST_TEXT = 1000
_LONGEST_NAME = 200


class Texts(NamedTuple):
    """What a release is known by, as Python's own texts.

    Attributes:
        question: What was asked for.
        name: What the release is of.
        kind: What is released.
    """

    question: str
    name: str
    kind: str


def checked_text(value: object, name: str, *, empty: bool = False) -> str:
    """A short text of Unicode, as Python's own; another thing is refused.

    Args:
        value: The argument.
        name: Its name.
        empty: Whether it may be empty.

    Raises:
        InputError: It is not.
    """
    try:
        # A text with equality of its own would be found or missed as it likes.
        found = str(value)
        if (empty or found) and len(found) <= _LONGEST_TEXT:
            found.encode()
            return found
    except (TypeError, UnicodeEncodeError):
        pass
    what = "empty, broken or long text" if isinstance(value, str) else f"a {type(value).__name__}"
    raise InputError(
        f"{name} is {what}", f"up to {_LONGEST_TEXT} characters of Unicode", f"give {name} as text"
    )


def printed_text(value: object) -> str:
    """A name, of a release or of values, that is short printable text, as Python's own.

    Raises:
        InputError: It is not.

    Example:
        >>> printed_text("2013-05")
        '2013-05'
    """
    found = str(value) if isinstance(value, str) else None
    if found is None or not found.isprintable() or len(found) > _LONGEST_NAME:
        raise InputError(
            "a release name that is not printable text",
            f"up to {_LONGEST_NAME} printable characters",
            'give for example name="2013-05"',
        )
    return found


def release_name(value: object) -> str:
    """What a release is of: printable text that no other name looks like, or none.

    Args:
        value: The argument.

    Raises:
        InputError: No short printable text, or blanks around it or two in a row, which no reader
            sees.

    Example:
        >>> release_name("2013-05"), release_name("")
        ('2013-05', '')
    """
    name = printed_text(value)
    if name != " ".join(name.split()):
        raise InputError(
            f"the release name {name!r}, with blanks around it or two in a row",
            "a name that no other one looks like",
            f"give for example name={' '.join(name.split())!r}",
        )
    return name


def to_record(question: object, name: object, kind: object) -> Texts:
    """What a new entry is known by, as Python's own texts; name and kind may be empty.

    Raises:
        InputError: One of them is no short text of Unicode, or not what a release may be named.
    """
    asked = checked_text(question, "question")
    return Texts(asked, release_name(name), checked_text(kind, "kind", empty=True))


def to_find(question: object, name: object) -> tuple[str, str]:
    """What an entry is looked for by, as Python's own texts, whatever older ledgers hold.

    Raises:
        InputError: One of them is no short text of Unicode.
    """
    return checked_text(question, "question"), checked_text(name, "name", empty=True)


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
