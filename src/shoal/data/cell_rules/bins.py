"""Bins of a public number, such as a distance or an age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import checks
from shoal.data.cell_rules.rule import CellRule, Needs
from shoal.data.engine_number import as_floats, nan_as_null
from shoal.data.source import engine_call
from shoal.errors import DataError

if TYPE_CHECKING:
    from typing import Any

    from shoal.data.source import EngineColumn, EngineTable

# Numbers, widths and starts are below it, so that differences are exact in floating point.
_MOST = 2**52
# In place of the bin of a number that is too large for one.
_NOWHERE = 2**60


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

    @property
    def one_to_one(self) -> bool:
        """The engine's number of a bin is the key."""
        return True

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The number of each bin: floor((floor(x) - start) / width).

        Ends of bins are whole numbers, so that x is in the bin of floor(x). Differences of such
        numbers are exact, and their quotient by a whole width is never rounded up to a whole
        number: a / w is at least 1 / w below it, more than half a unit in the last place for
        |a| < 2^53.
        """
        import ibis

        number = nan_as_null(table, as_floats(table[self.column]))
        # The engine's floor stays in floating point; that of Ibis goes through integers and back.
        whole = engine_call("floor", number, kind="float64")
        place = (whole - float(self.start)) / float(self.width)
        # A missing number is not far: its bin is null, as it is.
        far = number.abs() >= float(_MOST)
        found = ibis.ifelse(far, float(_NOWHERE), engine_call("floor", place, kind="float64"))
        return (found.cast("int64"),)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The number of each row's bin.

        Raises:
            DataError: A number that is infinite, or so large that bins are not told apart.
        """
        found = parts[0].cast(pa.int64())
        if pa.scalar(_NOWHERE) in pc.unique(found):
            raise DataError(
                f"infinite or huge numbers in {self.column}",
                "numbers between -2^52 and 2^52",
                "clean the records, or scale the column",
            )
        return found

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The bin's lower end."""
        number = key.to_numpy(zero_copy_only=False).astype(np.int64)
        return pa.array(number * self.width + self.start)


def bins(column: str, width: int, start: int = 0) -> Bins:
    """A cell rule by a public number: bins of one width, each with its lower end.

    x lies in the bin from start + k width to before start + (k + 1) width, with k =
    floor((x - start) / width), without rounding: -1e-17 is not in the bin from 0.

    Args:
        column: Numbers between -2^52 and 2^52 in floating point, known to all.
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
        checks.whole(width, "the width of a bin", least=1, most=_MOST - 1, example=10),
        checks.whole(start, "the start of a bin", least=1 - _MOST, most=_MOST - 1, example=0),
    )
