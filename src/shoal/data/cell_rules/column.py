"""A column as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.data.cell_rules.rule import Needs
    from shoal.data.source import EngineColumn, EngineTable


@dataclass(frozen=True)
class Column:
    """A column as it is: text, integers, booleans or dates.

    Example:
        >>> str(Column("dest"))
        'dest'
    """

    name: str
    needs: ClassVar[Needs] = "key"

    def __str__(self) -> str:
        """The column's name."""
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Itself."""
        return (self.name,)

    @property
    def one_to_one(self) -> bool:
        """It is its own key."""
        return True

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """The column."""
        return (table[self.name],)

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The column."""
        return parts[0]

    def check(self, key: pa.Array[Any], counts: NDArray[np.int64]) -> None:
        """Whatever is there is a key."""

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The column."""
        return key
