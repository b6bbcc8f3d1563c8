"""Numbers of Arrow, and lists of Python's, in floating point: each cell by itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.errors import is_failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

UNORDERED = (set, frozenset)
_TYPES = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_null,
)
# Of a range, which has any length in no memory; read as Python's objects in seconds.
_MOST_COUNTED = 2**24
_LENDS = ("dtype", "__array__", "__array_interface__", "__array_struct__")
_LENDS_ARROW = ("__arrow_array__", "__arrow_c_array__", "__arrow_c_stream__")
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, type(None))


def floats(column: Any) -> NDArray[np.float64]:
    """The nearest float of each number of an Arrow column, NaN where there is none.

    Arrow's own cast of a decimal is wrong in the last bit at some numbers of digits, and a column
    has as many as its longest cell: one user's cell would decide how the others are read. Their
    texts are read one by one.

    Args:
        column: Numbers, booleans or decimals, as an array or in chunks.

    Returns:
        Shape (rows,), in the units of the column.

    Raises:
        pyarrow.ArrowException: Anything else.

    Guarantees: G-RECORDS.

    Example:
        >>> from decimal import Decimal
        >>> float(floats(pa.array([Decimal("0.5")], pa.decimal128(30, 11)))[0])
        0.5
    """
    if not any(test(column.type) for test in _TYPES):
        # A text would be read as the number that it may spell.
        raise pa.ArrowTypeError
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    found = column.cast(pa.float64(), safe=False)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64)


def listed(column: object) -> bool:
    """Whether a column is a list, or another iterable of Python objects, without a type of its own.

    Example:
        >>> listed([1, 2.5]), listed(np.array([1, 2.5])), listed(pa.array([1])), listed("12")
        (True, False, False, False)
    """
    if isinstance(column, str | bytes | bytearray | Mapping):
        return False
    return (hasattr(column, "__iter__") or hasattr(column, "__getitem__")) and not any(
        hasattr(column, name) for name in (*_LENDS, *_LENDS_ARROW)
    )


def floats_of(cells: Iterable[object]) -> NDArray[np.float64]:
    """The nearest float of each cell of a list, NaN for None, whatever the other cells are.

    Arrow and NumPy would look for a type that suits all cells: Arrow reads whole numbers where half
    precision and an integer meet.

    Args:
        cells: Booleans and numbers of Python or NumPy, or None.

    Returns:
        Shape (cells,).

    Raises:
        TypeError: Any other cell, or a whole number beyond floating point; says nothing of it.

    Guarantees: G-RECORDS.

    Example:
        >>> floats_of([np.float16(0.5), 3, True, None]).tolist()
        [0.5, 3.0, 1.0, nan]
    """
    # Without a length it may never end, and a set has its cells in any order.
    if not hasattr(cells, "__len__") or _endless(cells) or isinstance(cells, UNORDERED):
        raise TypeError
    found = list(cells)
    if not all(map(_is_number, set(map(type, found)))):
        raise TypeError
    with suppress(OverflowError), np.errstate(over="ignore"):
        return np.array(found, dtype=np.float64)
    raise TypeError


def read_floats(values: Any) -> NDArray[np.float64] | None:
    """Private numbers of a list or an array in floating point, or None for what holds others.

    Rows of a list may be lists or arrays of one length. A range of 2^24 numbers or more is none.

    Guarantees: G-RECORDS.

    Example:
        >>> read_floats([1, True]).tolist(), read_floats(["a"]) is None
        ([1.0, 1.0], True)
    """
    if not listed(values):
        return checks.numbers(values)
    if _endless(values):
        return None
    try:
        kinds = set(map(type, values))
        if kinds == {np.ndarray}:
            return checks.numbers(values)
        if kinds and kinds <= {list, tuple}:
            (width,) = set(map(len, values))
            return floats_of(list(chain.from_iterable(values))).reshape(len(values), width)
        return floats_of(values)
    except BaseException as error:
        if not is_failure(error):
            raise
        # The text of an error may hold a value.
        return None


def _endless(values: object) -> bool:
    # A range says how long it is and holds nothing: no memory bounds it.
    return isinstance(values, range) and len(values[:_MOST_COUNTED]) == _MOST_COUNTED


def _is_number(kind: type) -> bool:
    # NumPy's spans of time are integers by their class.
    return issubclass(kind, _NUMBERS) and not issubclass(kind, np.timedelta64)
