"""Tables that people look at: aligned text for terminals, escaped HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from shoal.errors import printable

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 20


@dataclass(frozen=True)
class TextTable:
    """A table of texts with a line above and notes below.

    Example:
        >>> print(TextTable("two cells", ["cell", "users"], [["Bern", "1,200"], ["Uri", "7"]]))
        two cells
        cell  users
        Bern  1,200
        Uri       7
        >>> TextTable("one & all", ["cell"], [["<a>"]]).to_html()
        '<p>one &amp; all</p><table><tr><th>cell</th></tr><tr><td>&lt;a&gt;</td></tr></table>'
    """

    head: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """The whole with aligned columns, the first to the left and all others to the right."""
        return "\n".join([self.head, *aligned([self.columns, *self.rows]), *self.notes])

    def to_html(self) -> str:
        """The same for notebooks."""
        titles = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in self.rows]
        body = "".join(f"<tr>{line}</tr>" for line in [titles, *lines])
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.head)}</p><table>{body}</table>{below}"


def counted(number: int, word: str) -> str:
    """A number of things in words: 1 cluster, 2 clusters."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of columns, the first of them to the left; a row of one text is a heading.

    Example:
        >>> aligned([["a", "bb"], ["ccc", "d"]])
        ['a    bb', 'ccc   d']
    """
    whole = [row for row in rows if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if at < left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]


def first_rows(
    head: str, table: pa.Table, notes: Sequence[str] = (), rows: int = _SHOWN
) -> TextTable:
    """The first rows of a table."""
    shown = [[text_of(value) for value in row.values()] for row in table.slice(0, rows).to_pylist()]
    more = [f"... {table.num_rows - rows} more rows"] if table.num_rows > rows else []
    return TextTable(head, [printable(name) for name in table.column_names], shown, [*more, *notes])


def text_of(value: object) -> str:
    """A value of a table as a person reads it: four digits, a dash for nothing."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))
