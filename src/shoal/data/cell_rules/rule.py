"""What a cell rule is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.data.source import EngineColumn, EngineTable

Needs = Literal["key", "number", "time"]


class CellRule(Protocol):
    """One part of a cell's key: engine columns in, one discrete key column out.

    Class attribute: `needs`, what its columns hold.
    """

    needs: ClassVar[Needs]

    @property
    def name(self) -> str:
        """Name of the key column."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the records that it reads."""
        ...

    @property
    def one_to_one(self) -> bool:
        """Whether what the engine groups by and the keys of `combine` are one-to-one.

        Where they are not, several groups of the engine are one cell, and are added up.
        """
        return False

    def engine(self, table: EngineTable) -> tuple[EngineColumn, ...]:
        """What the engine computes for each record, one expression or several.

        Args:
            table: The records, in the engine.

        Returns:
            Expressions over the table's columns.
        """
        ...

    def combine(self, *parts: pa.Array[Any]) -> pa.Array[Any]:
        """The key of each row, from the engine's columns; may be coded.

        Args:
            *parts: Values of the expressions, one array each.

        Returns:
            One key a row.

        Raises:
            DataError: A value makes no key.
            MissingPartError: What computes the key is not installed.
        """
        ...

    def check(self, key: pa.Array[Any], counts: NDArray[np.int64]) -> None:
        """Look at the whole column of keys: what is said here depends on no order of rows.

        Args:
            key: Codes from `combine`, shape (rows,).
            counts: Records of each row, shape (rows,).

        Raises:
            DataError: Keys that are none.
        """
        del key, counts  # what makes a key is one

    def finish(self, key: pa.Array[Any]) -> pa.Array[Any]:
        """The key as people read it, from its code; keeps the order.

        Args:
            key: Codes from `combine`.

        Returns:
            One readable key for each code.
        """
        ...
