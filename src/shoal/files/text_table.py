"""Shows tables to people, as aligned text on terminals and as escaped HTML in notebooks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from shoal.errors import printable

if TYPE_CHECKING:
    import pyarrow as pa

# The rows of a table that are shown.
SHOWN = 12
# The characters of a line of text.
_LINE = 96
# Numbers from here to its inverse are written without an exponent.
_FEW_ZEROS = 1e-12
_NUMBER = re.compile(r"[±+-]*[\d.,]*(e[+-]?\d+)?[%*]?|nan|inf")


@dataclass(frozen=True)
class TextTable:
    """A table of texts: sentences above it, warnings next, and notes below.

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
    warnings: Sequence[str] = ()

    def __str__(self) -> str:
        """The whole with aligned columns."""
        above = _lines([*self.head.split("\n"), *(f"! {each}" for each in self.warnings)])
        table = aligned([self.columns, *self.rows]) if self.columns else []
        return "\n".join([*above, *table, *_lines(self.notes)])

    def to_html(self) -> str:
        """The same for notebooks and pages."""
        titles = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in self.rows]
        body = "".join(f"<tr>{line}</tr>" for line in [titles, *lines] if line)
        above = "".join(f"<p>{escape(each)}</p>" for each in self.head.split("\n"))
        warned = "".join(f"<p><b>Warning:</b> {escape(each)}</p>" for each in self.warnings)
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{above}{warned}<table>{body}</table>{below}"


class Shown:
    """An object that prints as a `TextTable`, on terminals and in notebooks."""

    def _text(self) -> TextTable:
        """Returns the table that is shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Sentences and columns of aligned text."""
        return str(self._text())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return self._text().to_html()


def _lines(paragraphs: Sequence[str]) -> list[str]:
    """Returns paragraphs as lines that are not too long."""
    return [line for each in paragraphs for line in wrap(each, _LINE, subsequent_indent="  ")]


def counted(number: int, word: str) -> str:
    """Returns a number of things in words: 1 cluster, 2 clusters."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with aligned columns, the first of which are the titles.

    Numbers are aligned to the right. A row of one text is a heading.

    Example:
        >>> aligned([["name", "users"], ["ccc", "1,200"], ["d", "7"]])
        ['name  users', 'ccc   1,200', 'd         7']
    """
    without_headings = [row for row in rows if len(row) > 1]
    columns = [*zip(*without_headings, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(map(_NUMBER.fullmatch, column[1:])) for column in columns]
    lines = []
    for row in rows:
        # A heading has a text in the first column alone.
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=False)
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def first_rows(
    head: str, table: pa.Table, notes: Sequence[str] = (), rows: int = SHOWN
) -> TextTable:
    """Returns the first rows of a table."""
    shown = [texts_of(row) for row in table.slice(0, rows).to_pylist()]
    more = [f"... {table.num_rows - rows} more rows"] if table.num_rows > rows else []
    return TextTable(head, [printable(name) for name in table.column_names], shown, [*more, *notes])


def texts_of(row: Mapping[str, object]) -> list[str]:
    """Returns the values of a row of a table as a person reads them."""
    digits = digits_of(row.get("low"), row.get("high"))
    return [text_of(value, digits) for value in row.values()]


def text_of(value: object, digits: int = 4) -> str:
    """Returns a value of a table as a person reads it: four digits, a dash for nothing.

    Example:
        >>> text_of(45200.0), text_of(1234567.0, 7), text_of(0.00001234), text_of(1e-30)
        ('45,200', '1,234,567', '0.00001234', '1e-30')
    """
    if value is None:
        return "-"
    if not isinstance(value, float):
        return printable(str(value))
    text = f"{value:.{digits}g}"
    # Nobody counts more zeros than these.
    return f"{Decimal(text):,f}" if _FEW_ZEROS < abs(value) < 1 / _FEW_ZEROS else text


def digits_of(low: Any, high: Any, least: int = 4) -> int:
    """Returns the digits with which both ends of an interval show its width with at least two."""
    if low is None or high is None or not 0 < high - low < math.inf:
        return least
    return max(least, 2 + math.ceil(math.log10(max(abs(low), abs(high)) / (high - low))))
