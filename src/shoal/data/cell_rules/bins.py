"""Bins of a public number, such as a distance or an age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.cell_rules.rule import CellRule, Needs
from shoal.data.source import engine_call, engine_name
from shoal.errors import DataError

if TYPE_CHECKING:
    from typing import Any

    from shoal.data.source import EngineColumn, EngineTable

_MOST = 2**53


@dataclass(frozen=True)
class Bins(CellRule):
    """Bins of one width; the key is the bin's lower end. Made by `bins`.

    Attributes:
        column: Numbers.
        width: Of a bin, a whole number.
        start: The lower end of one of the bins, a whole number.
    """

    column: str
    width: int
    start: int = 0
    needs: ClassVar[Needs] = "number"

    def __str__(self) -> str:
        """As `bins` is called."""
        start = f",{self.start}" if self.start else ""
        return f"bins({self.column},{self.width}{start})"

    @property
    def name(self) -> str:
        """Name of the key column: the column's, with `_from`."""
        return f"{self.column}_from"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: the numbers."""
        return (self.column,)

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The number of each bin, in floating point."""
        number = table[self.column].cast("float64")
        if engine_name(table) != "sqlite":
            # Some frames say NaN for null; SQLite has none.
            number = number.isnan().ifelse(None, number)
        place = (number - float(self.start)) / float(self.width)
        # The engine's floor stays in floating point; that of Ibis goes through integers and back.
        return (engine_call("floor", place, kind="float64"),)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The number of each row's bin.

        Raises:
            DataError: A number that is infinite, or so large that bins are not told apart.
        """
        number = parts[0].fill_null(0.0).to_numpy(zero_copy_only=False)
        if not (np.abs(number) * self.width < _MOST).all():
            raise DataError(
                f"infinite or huge numbers in {self.column}",
                "numbers below 2^53",
                "clean the records, or scale the column",
            )
        absent = parts[0].is_null().to_numpy(zero_copy_only=False)
        return pa.array(number.astype(np.int64), mask=absent)

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The bin's lower end."""
        number = key.to_numpy(zero_copy_only=False).astype(np.int64)
        return pa.array(number * self.width + self.start)


def bins(column: str, width: int, start: int = 0) -> Bins:
    """A cell rule by a public number: bins of one width, each with its lower end.

    Args:
        column: Numbers, known to all.
        width: Of a bin, a whole number in the column's unit.
        start: The lower end of one of the bins.

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: No whole width above 0, or no whole start.

    Example:
        >>> str(bins("distance", 100)), bins("distance", 100).name
        ('bins(distance,100)', 'distance_from')
    """
    return Bins(
        checks.text(column, "column"),
        checks.whole(width, "the width of a bin", least=1, most=_MOST, example=10),
        checks.whole(start, "the start of a bin", least=-_MOST, most=_MOST, example=0),
    )
