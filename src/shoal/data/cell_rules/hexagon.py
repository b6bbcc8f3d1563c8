"""Hexagons of H3."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.data.cell_rules.rule import CellRule, Needs
from shoal.data.engine_number import as_floats, nan_as_null
from shoal.errors import DataError, MissingPartError, ShoalWarning

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from shoal.data.source import EngineColumn, EngineTable

FINEST = 15
_POLE, _DATE_LINE, _CIRCLE = 90, 180, 66.6
# Of a place that is none, but would be one the other way round or not: no index of H3.
_NOWHERE, _OTHER_WAY = 0, 1


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
        """The H3 index of each pair as an integer, or a mark of a place that is none: see `check`.

        Raises:
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
        inside, other = _inside(lat, lon), _inside(lon, lat)
        lat, lon = np.where(inside, lat, 0.0), np.where(inside, lon, 0.0)
        found = coordinates_to_cells(lat, lon, self.resolution).to_numpy().astype(np.int64)
        return pa.array(np.where(inside, found, np.where(other, _OTHER_WAY, _NOWHERE)))

    def check(self, key: pa.Array[Any], counts: NDArray[np.int64]) -> None:
        """Refuse places that are none, and ask whether the two columns changed places.

        Cells are public, and so is what is said of all records together, in whatever order.

        Args:
            key: Codes from `combine`, shape (rows,).
            counts: Records of each row, shape (rows,).

        Raises:
            DataError: Coordinates outside the globe.

        Warns:
            ShoalWarning: Most records lie beyond a polar circle, and the other way round do not.
        """
        encoded = key.dictionary_encode()
        cells = encoded.dictionary.to_numpy()
        # Whole numbers in floating point, so that their order does not matter.
        records = np.bincount(encoded.indices.to_numpy(), counts, len(cells))
        meant = f"did you mean hexagon({self.lon},{self.lat},{self.resolution})?"
        if (cells <= _OTHER_WAY).any():
            asked = bool(2 * records[cells == _OTHER_WAY].sum() > records.sum())
            raise DataError(
                f"coordinates outside the globe in {self.lat} or {self.lon}"
                + f", most of them inside the other way round ({meant})" * asked,
                "latitudes of -90 to 90 degrees, then longitudes of -180 to 180",
                "check the columns and their order",
            )
        if 2 * records[_polar(cells)].sum() > records.sum():
            warnings.warn(
                f"most records lie beyond a polar circle, and the other way round do not: {meant}",
                ShoalWarning,
                stacklevel=2,
            )

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The index in hexadecimal, as H3 writes it."""
        return pa.array([f"{index:x}" for index in key.to_pylist()], type=pa.string())


def _inside(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (np.abs(lat) <= _POLE) & (np.abs(lon) <= _DATE_LINE)
    return found


def _polar(cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether cells lie beyond a polar circle, but not with latitude and longitude exchanged."""
    from h3ronpy.vector import cells_to_coordinates

    places: Any = pa.record_batch(cells_to_coordinates(cells.astype(np.uint64)))
    lat, lon = (np.abs(places.column(name).to_numpy()) for name in ("lat", "lng"))
    found: NDArray[np.bool_] = (lat > _CIRCLE) & (lon <= _CIRCLE)
    return found


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
