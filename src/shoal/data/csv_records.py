"""How many records a CSV file has, by its commas, quotes and line ends alone (RFC 4180)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.data.csv_bytes import blocks
from shoal.data.source_file import describe
from shoal.errors import DataError

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

_QUOTE, _LINE, _RETURN = b'"\n\r'
_ENDS = b"\n", b"\r"


def _among(characters: bytes) -> NDArray[np.bool_]:
    return np.isin(np.arange(256), list(characters))


_BESIDE = _among(b',\n\r"')


def count_records(path: str | os.PathLike[str], *, columns: int) -> int:
    r"""Records of a CSV file behind its line of names, in one pass of constant memory.

    A quote opens a cell at its start, closes it at its end, and is doubled inside; a line that ends
    outside of quotes is a record. Empty lines are none, but where there is one column alone.

    Args:
        path: The file.
        columns: How many columns the first line names.

    Raises:
        DataError: A quote that is never closed, or that stands elsewhere.

    Guarantees: G-RECORDS.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b'who,note\n1,"a\nb"\n\n2,""\n')
        ...     file.flush()
        ...     count_records(file.name, columns=2)
        2
    """
    # The byte before each block: the file starts as a line does.
    before, inside, lines = b"\n", 0, 0
    for block in blocks(path):
        text = np.frombuffer(before + block, np.uint8)
        quotes = np.flatnonzero(text[1:] == _QUOTE) + 1
        if not _placed(text, quotes, inside):
            raise malformed(path)
        lines += _lines(text, quotes, inside, empty=columns == 1)
        inside = (inside + len(quotes)) % 2
        before = block[-1:]
    if inside:
        raise malformed(path)
    return lines + (before not in _ENDS) - 1


def malformed(path: str | os.PathLike[str]) -> DataError:
    """What is said of a file whose records nobody can tell."""
    return DataError(
        f"the CSV file {describe(path)} is malformed",
        "double quotes around whole cells alone, each closed, and doubled inside of a cell; lines "
        "that all end alike",
        "write the file again with a CSV writer",
    )


def _placed(text: NDArray[np.uint8], quotes: NDArray[np.int64], inside: int) -> bool:
    """Whether quotes open and close whole cells; a quote at the block's end is for the next one."""
    opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
    if text[0] == _QUOTE and not inside and not _BESIDE[text[1]]:
        return False
    closing = closing[closing + 1 < len(text)]
    return bool(_BESIDE[text[opening - 1]].all() and _BESIDE[text[closing + 1]].all())


def _lines(text: NDArray[np.uint8], quotes: NDArray[np.int64], inside: int, *, empty: bool) -> int:
    """Line ends outside of quotes, of empty lines only if these count."""
    line, back = text == _LINE, text == _RETURN
    # Both together end one line.
    ends = np.flatnonzero(back[1:] | (line[1:] & ~back[:-1])) + 1
    if inside or len(quotes):
        ends = ends[(inside + np.searchsorted(quotes, ends)) % 2 == 0]
    if empty:
        return len(ends)
    return int((~(line | back)[ends - 1]).sum())
