"""Hexagons of H3."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.cell_rules.rule import CellRule, Needs
from shoal.data.engine_number import as_floats, nan_as_null
from shoal.errors import DataError, MissingPartError

if TYPE_CHECKING:
    from typing import Any

    from shoal.data.source import EngineColumn, EngineTable

FINEST = 15
_POLE, _DATE_LINE = 90, 180


@dataclass(frozen=True)
class Hexagon(CellRule):
    """The H3 hexagon of a place; the key is the index in hexadecimal. Made by `hexagon`.

    Attributes:
        lat: Column of latitudes in degrees.
        lon: Column of longitudes in degrees.
        resolution: 0 (continents) to 15 (a square metre).
    """

    lat: str
    lon: str
    resolution: int
    needs: ClassVar[Needs] = "number"

    def __str__(self) -> str:
        """As `hexagon` is called."""
        return f"hexagon({self.lat},{self.lon},{self.resolution})"

    @property
    def name(self) -> str:
        """Name of the key column: `hexagon_` and the resolution."""
        return f"hexagon_{self.resolution}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the rule reads: latitude and longitude, in degrees."""
        return self.lat, self.lon

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The coordinates; H3 runs on batches of them as they stream by."""
        return tuple(nan_as_null(table, as_floats(table[name])) for name in self.columns)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The H3 index of each pair as an integer.

        Raises:
            DataError: Coordinates outside the globe.
            MissingPartError: h3ronpy is not installed.
        """
        if find_spec("h3ronpy") is None:
            raise MissingPartError(
                "h3ronpy is not installed",
                "it computes hexagons",
                'run pip install "shoal[geo]"',
            )
        from h3ronpy.vector import coordinates_to_cells

        lat, lon = (part.to_numpy(zero_copy_only=False).astype(np.float64) for part in parts)
        inside = (np.abs(lat) <= _POLE) & (np.abs(lon) <= _DATE_LINE)
        if not inside.all():
            raise DataError(
                f"coordinates outside the globe in {self.lat} or {self.lon}",
                "degrees, -90 to 90 and -180 to 180",
                "check the columns and their order",
            )
        found = coordinates_to_cells(lat, lon, self.resolution).to_numpy()
        return pa.array(found.astype(np.int64))

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The index in hexadecimal, as H3 writes it."""
        return pa.array([f"{index:x}" for index in key.to_pylist()], type=pa.string())


def hexagon(lat: str, lon: str, resolution: int) -> Hexagon:
    """A cell rule by place: H3 hexagons of one resolution.

    Args:
        lat: Column of latitudes in degrees.
        lon: Column of longitudes in degrees.
        resolution: 0 (continents) to 15 (a square metre).

    Returns:
        A rule for `Records(cell=...)`.

    Raises:
        InputError: Another resolution.

    Example:
        >>> hexagon("lat", "lon", 7).name
        'hexagon_7'
    """
    fineness = checks.whole(resolution, "a hexagon resolution", most=FINEST, example=7)
    return Hexagon(checks.text(lat, "lat"), checks.text(lon, "lon"), fineness)
