"""Numbers of Arrow in floating point, each cell by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


def floats(column: Any) -> NDArray[np.float64]:  # noqa: ANN401
    """The nearest float of each number of an Arrow column, NaN where there is none.

    Arrow's own cast of a decimal errs in the last bit at some numbers of digits, and a column has
    as many as its longest cell: one user's cell would decide how the others are read. Their texts
    are read one by one.

    Args:
        column: Numbers, booleans or decimals, as an array or in chunks.

    Returns:
        Shape (rows,), in the units of the column.

    Raises:
        pyarrow.ArrowException: Anything else.

    Guarantees: G-CELLWISE.

    Example:
        >>> from decimal import Decimal
        >>> float(floats(pa.array([Decimal("0.5")], pa.decimal128(30, 11)))[0])
        0.5
    """
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    found = column.cast(pa.float64(), safe=False)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64)
