"""Whether two columns are the same memory: views, slices, chunks, frames; never their contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.errors import is_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Strided views are compared exactly; a pair that takes longer counts as shared.
_MOST_WORK = 100_000
_VIEW_BITS = 128
_BYTE = 8


def shared(one: object, other: object) -> bool:
    """Whether two columns are one object, or any byte belongs to both.

    Different columns of one matrix, frame or structured array are not shared. No value is looked
    at; what has no memory of its own, such as a list, is compared by identity alone.

    Example:
        >>> matrix = np.zeros((4, 2))
        >>> shared(matrix[:, 0], matrix[:, 1]), shared(matrix[:, 0], matrix[::-1, 0])
        (False, True)
    """
    if one is other:
        return True
    theirs = [each for each in regions(other) if each.size]
    ends = [np.lib.array_utils.byte_bounds(each) for each in theirs]
    first, last = (np.array([pair[at] for pair in ends], dtype=np.uint64) for at in (0, 1))
    for each in regions(one):
        if each.size:
            low, high = np.lib.array_utils.byte_bounds(each)
            near = np.flatnonzero((first < np.uint64(high)) & (last > np.uint64(low)))
            if any(_meet(each, theirs[at]) for at in near.tolist()):
                return True
    return False


def regions(column: Any) -> Iterator[NDArray[Any]]:
    """Memory that holds the values of a column, as views of it; nothing of what has none.

    Masks of missing values and dictionaries of texts are left out: several columns may share them.
    """
    # A class may call anything its module.
    library = str(getattr(type(column), "__module__", "")).split(".")[0]
    if isinstance(column, np.ndarray):
        yield column
    elif isinstance(column, pa.Array):
        yield from _arrow(column)
    elif isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from _arrow(chunk)
    elif isinstance(column, pa.Table | pa.RecordBatch):
        for each in column.columns:
            yield from regions(each)
    elif library == "pandas":
        yield from _pandas(column)
    elif library == "polars":
        yield from _polars(column)
    elif not isinstance(column, list | tuple | str | range):
        yield from _other(column)


def _meet(one: NDArray[Any], other: NDArray[Any]) -> bool:
    shares: Any = np.shares_memory
    try:
        return bool(shares(one, other, max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def _arrow(array: pa.Array[Any]) -> Iterator[NDArray[Any]]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        # Texts of categories may be shared; numbers in their place may be a column of their own.
        if not _worded(array.dictionary.type):
            yield from _arrow(array.dictionary)
        array = array.indices
    buffers = array.buffers()[1:]
    bits = _width(array.type)
    if bits:
        start = array.offset * bits // _BYTE
        stop = -(-(array.offset + len(array)) * bits // _BYTE)
        yield from (each[start:stop] for each in _bytes(buffers[:1]))
    elif len(array):
        yield from _bytes(buffers)


def _worded(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _width(kind: pa.DataType) -> int:
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return _VIEW_BITS
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def _bytes(buffers: list[Any]) -> Iterator[NDArray[np.uint8]]:
    for buffer in buffers:
        if buffer is not None and buffer.size:
            yield np.frombuffer(buffer, dtype=np.uint8)


def _pandas(column: Any) -> Iterator[NDArray[Any]]:
    if hasattr(column, "columns"):
        for at in range(len(column.columns)):
            yield from _pandas(column.iloc[:, at])
        return
    values = getattr(column, "array", column)
    if hasattr(values, "__arrow_array__") and hasattr(values, "_pa_array"):
        yield from regions(values.__arrow_array__())
        return
    for name in ("codes", "_ndarray", "sp_values", "_data"):
        found = getattr(values, name, None)
        if isinstance(found, np.ndarray):
            yield found
            return


def _polars(column: Any) -> Iterator[NDArray[Any]]:
    import polars as pl

    if isinstance(column, pl.DataFrame):
        for each in column.get_columns():
            yield from _polars(each)
    elif isinstance(column, pl.Series):
        # As numbers behind it where Arrow has such: not those of 128 bits, nor Python's objects.
        kind = column.dtype
        physical = column if kind.is_decimal() else column.to_physical()
        for chunk in physical.get_chunks():
            try:
                lent = chunk.to_arrow(compat_level=pl.CompatLevel.newest())
            except BaseException as error:
                if not is_failure(error):
                    raise
                # What cannot be lent is refused, or copied, by whoever reads the column.
                return
            yield from _arrow(lent)


def _other(column: Any) -> Iterator[NDArray[Any]]:
    """Whatever else lends its memory: by the buffer protocol, to Arrow, or to NumPy."""
    kind = type(column)
    try:
        if hasattr(kind, "__arrow_c_stream__"):
            yield from regions(pa.chunked_array(column))
        elif hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_array__"):
            yield from regions(pa.array(column))
        elif hasattr(kind, "__array__") or hasattr(column, "__array_interface__"):
            yield np.asarray(column)
        else:
            yield np.asarray(memoryview(column))
    except BaseException as error:
        if not is_failure(error):
            raise
        # What cannot be lent is refused, or copied, by whoever reads the column.
        return
