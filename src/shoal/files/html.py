"""Tables for notebooks: what a person would look at, escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from shoal.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_SHOWN = 20


def of_rows(
    head: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A table with a line above and notes below.

    Example:
        >>> of_rows("one & all", ["cell"], [["<a>"]])
        '<p>one &amp; all</p><table><tr><th>cell</th></tr><tr><td>&lt;a&gt;</td></tr></table>'
    """
    titles = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in [titles, *lines])
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<p>{escape(head)}</p><table>{body}</table>{below}"


def of_table(head: str, table: pa.Table, notes: Sequence[str] = ()) -> str:
    """The first rows of a table."""
    shown = table.slice(0, _SHOWN).to_pylist()
    rows = [[text_of(row[name]) for name in table.column_names] for row in shown]
    more = [f"... {table.num_rows - _SHOWN} more rows"] if table.num_rows > _SHOWN else []
    return of_rows(head, [printable(name) for name in table.column_names], rows, [*more, *notes])


def text_of(value: object) -> str:
    """A value of a table as a person reads it: four digits, a dash for nothing."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))
