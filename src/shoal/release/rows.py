"""Shows statistics of cells, of private and of public counts, in the same words and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrays import Bools, Floats, Ints
from shoal.data import keys
from shoal.documents.model import Model
from shoal.errors import printable
from shoal.files.tables import key_name
from shoal.files.text_table import SHOWN, counted, digits_of, text_of
from shoal.release.envelope import Text

# Statistics that are printed beside one another.
_SIDE_BY_SIDE = 4
# Shares that are, if they are all that was asked for.
_SHARES = 12
# What is shown of a cell that is not reliable, and what being reliable means.
COMMON = "not reliable: the number that all cells have in common, moved towards the cell's own"
RELIABLE = (
    "reliable: expected to be closer to the truth than one number for all cells, unless these are "
    "too few to compare; how precise it is, the interval says"
)
# Statistics that are whole numbers.
WHOLE = ("users", "records")


class Row(NamedTuple):
    """One statistic of all cells, of which each entry is an array with one number a cell.

    Attributes:
        name: The statistic.
        asked: As it was asked for: `histogram` of one of its bins.
        value: The best estimate; NaN if nothing is known.
        low: The lower end of its interval.
        high: The upper end; NaN if there is none.
        noisy: The number with its noise alone.
        noise: Mean size of the noise; NaN of what is a ratio of noisy numbers.
        status: Whether each cell is reliable, or why not.
        common: Whether a cell shows the number that all have in common, moved towards its own.
    """

    name: str
    asked: str
    value: Floats
    low: Floats
    high: Floats
    noisy: Floats
    noise: Floats
    status: list[str]
    common: Bools


class RowPart(Model):
    """One statistic of all cells in a document; null where nothing is known."""

    statistic: Text
    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    status: tuple[Text, ...]

    @classmethod
    def of_row(cls, row: Row) -> RowPart:
        """The entries of a row."""
        return cls(
            statistic=row.name,
            value=_or_none(row.value),
            low=_or_none(row.low),
            high=_or_none(row.high),
            status=tuple(row.status),
        )


class SideBySide(NamedTuple):
    """Titles and lines of a printed table, and sentences on what it does not show."""

    titles: list[str]
    lines: list[list[str]]
    notes: list[str]


def side_by_side(
    cells: pa.Table, rows: Sequence[Row], counts: Mapping[str, Ints] | None = None
) -> SideBySide:
    """Returns the first cells with their first statistics beside one another.

    Shares that one word asks for, such as histogram, are shown if nothing else is. `counts` are
    public numbers of each cell by their names.
    """
    known = counts or {}
    shown = [row for row in rows if row.asked == row.name][:_SIDE_BY_SIDE]
    titles = [printable(name) for name in cells.column_names] + [*known]
    for row in shown:
        titles += [printable(row.name), "low", "high"]
    shares = [row for row in rows if not shown and row.asked == rows[0].asked][:_SHARES]
    titles += [_last_limit(row) for row in shares]
    lines = []
    for at, key in enumerate(cells.slice(0, SHOWN).to_pylist()):
        names = [printable(str(each)) for each in key.values()]
        line = [*names, *(f"{number[at]:,}" for number in known.values())]
        for row in shown:
            line += _texts(row, at)
        line += [_percent(row, at) for row in shares]
        lines.append(line)
    if cells.num_rows > SHOWN:
        lines.append([f"... {cells.num_rows - SHOWN:,} more in to_pandas() and files"])
    asked = {row.asked for row in (*shown, *shares)}
    others = [each for each in dict.fromkeys(row.asked for row in rows) if each not in asked]
    notes = [f"{', '.join(others)}: in to_pandas() and files"] if others else []
    if shares:
        begin = "" if shares[0].asked.startswith("cdf") else "from the limit before "
        notes.append(
            f"Columns are shares of the records {begin}up to a limit. Intervals, and shares "
            "without a column, are in to_pandas() and files."
        )
    return SideBySide(titles, lines, notes)


def _last_limit(row: Row) -> str:
    """Returns the title of a share: the limit up to which it counts values."""
    kind, _, numbers = row.name.removesuffix(")").partition("(")
    limit = text_of(float(numbers.rpartition(",")[2]), 4)
    return f"above {limit}" if kind == "share_above" else f"to {limit}"


def _percent(row: Row, at: int) -> str:
    """Returns the share of one cell; in brackets if it is not reliable."""
    text = f"{row.value[at]:.0%}"
    return text if row.status[at] == "reliable" else f"({text})"


def _texts(row: Row, at: int) -> list[str]:
    """Returns value and interval of one cell; in brackets if it is not reliable."""
    value = float(row.value[at])
    low = float(row.low[at])
    high = float(row.high[at])
    digits = 4
    if np.isfinite([low, high]).all():
        digits = digits_of(low, high)
    whole = row.name in WHOLE
    texts = []
    for each in (value, low, high):
        if np.isnan(each):
            texts.append("-")
        else:
            texts.append(f"{each:,.0f}" if whole else text_of(each, digits))
    if row.status[at] != "reliable":
        texts[0] = f"({texts[0]})"
    return texts


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """Yields how many cells are reliable; one sentence for statistics of which as many are."""
    by_number: dict[int, list[str]] = {}
    for row in rows:
        names = by_number.setdefault(row.status.count("reliable"), [])
        if row.asked not in names:
            names.append(row.asked)
    for number, names in by_number.items():
        which = "" if len(by_number) == 1 else f" for {', '.join(names)}"
        yield f"Reliable{which}: {number:,} of {counted(len(rows[0].status), 'cell')}."


def reasons(rows: Sequence[Row], why: Mapping[str, str]) -> Iterator[str]:
    """Yields what reliable means, and why cells are not, given the reasons in words."""
    if any("reliable" in row.status for row in rows):
        yield RELIABLE
    if any(row.common.any() for row in rows):
        yield f"(in brackets) {COMMON}"
    for status, reason in why.items():
        names = [*dict.fromkeys(row.asked for row in rows if status in row.status)]
        if names:
            yield f"{status} ({', '.join(names)}): {reason}"


def rows_table(
    cells: pa.Table,
    rows: Sequence[Row],
    why: Mapping[str, str],
    counts: Mapping[str, Floats],
    *,
    all: bool = False,
) -> pa.Table:
    """Returns a row for each cell and statistic; `counts` are users and records, NaN if unknown."""
    totals = {
        name: pa.array(number, pa.int64(), mask=np.isnan(number), safe=False)
        for name, number in counts.items()
    }
    blocks = []
    for row in rows:
        columns: dict[str, Any] = _keys(cells)
        columns["statistic"] = [row.name] * cells.num_rows
        columns["status"] = row.status
        reasons_of_cells = [why.get(each) for each in row.status]
        columns["reason"] = pa.array(reasons_of_cells, pa.string())
        columns["source"] = ["common" if each else "own" for each in row.common.tolist()]
        columns |= totals
        columns |= {
            "value": _floats(row.value),
            "low": _floats(row.low),
            "high": _floats(row.high),
            "noisy_value": _floats(row.noisy),
            "noise_scale": _floats(row.noise),
        }
        blocks.append(pa.table(columns))
    table = pa.concat_tables(blocks).combine_chunks()
    return table if all else table.drop_columns(["noisy_value"])


def histogram_table(
    cells: pa.Table, bins: Sequence[tuple[float, float]], rows: Sequence[Row]
) -> pa.Table:
    """Returns a row for each cell and bin, the bins of a cell together."""
    blocks = []
    for (low, high), row in zip(bins, rows, strict=True):
        columns = {
            **_keys(cells),
            "bin_low": [low] * cells.num_rows,
            "bin_high": [high] * cells.num_rows,
            "share": _floats(row.value),
            "low": _floats(row.low),
            "high": _floats(row.high),
            "status": row.status,
        }
        blocks.append(pa.table(columns))
    place = np.arange(cells.num_rows * len(rows))
    order = place.reshape(len(rows), -1).T.ravel()
    table = pa.concat_tables(blocks)
    return table.take(keys.in_arrow(order)).combine_chunks()


def _keys(cells: pa.Table) -> dict[str, Any]:
    """Returns key columns, whose names are no names of result columns."""
    return {key_name(name): cells.column(name) for name in cells.column_names}


def _floats(numbers: Floats) -> pa.Array[Any]:
    """Returns a column with nulls for what is not known."""
    return pa.array(numbers, mask=np.isnan(numbers))


def _or_none(numbers: Floats) -> tuple[float | None, ...]:
    """Returns numbers, and None for what is not known."""
    return tuple(None if np.isnan(each) else each for each in numbers.tolist())
