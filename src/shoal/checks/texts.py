"""Texts as Python's own, whatever their class says of them."""

from __future__ import annotations


def own_text(value: object) -> str:
    """A text as Python's own, without what a subclass says of equality, length or characters.

    Raises:
        TypeError: Another thing.

    Example:
        >>> own_text("person")
        'person'
    """
    return str.__str__(value)
