"""Names in pictures, drawn as they are."""

from __future__ import annotations

from shoal.errors import printable


def drawn(name: str, most: int = 60) -> str:
    r"""A name as Matplotlib's text: cut, printable, and never read as a formula.

    Args:
        name: Of a cell, an arm, a cluster or a question.
        most: Characters that have room.

    Example:
        >>> print(drawn("$10 to $99"))
        \$10 to \$99
    """
    return printable(name)[:most].replace("$", r"\$")
