"""Ways in which one column can be handed over twice, from whole numbers in NumPy."""

from __future__ import annotations

import array
import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Lent:
    """A column of a library that nobody knows, lent to NumPy."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__

    def __len__(self) -> int:
        return len(self.values)


class Streamed:
    """A column of a library that nobody knows, lent to Arrow."""

    def __init__(self, values: pa.ChunkedArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self.values.__arrow_c_stream__(requested)


def _listed(values: NDArray[Any]) -> tuple[Any, Any]:
    listed = values.tolist()
    return listed, listed


def _framed(values: NDArray[Any]) -> tuple[Any, Any]:
    frame = pd.DataFrame({"x": values, "y": values})
    return frame["x"], frame["x"].to_numpy()


def _blocked(values: NDArray[Any]) -> tuple[Any, Any]:
    frame = pd.DataFrame(np.stack([values, values], axis=1), columns=["x", "y"])
    return frame["y"], frame.to_numpy()[:, 1]


def _masked_frame(values: NDArray[Any]) -> tuple[Any, Any]:
    series = pd.Series(values).astype("Int64")
    return series, series[::-1]


def _arrow_frame(values: NDArray[Any]) -> tuple[Any, Any]:
    series = pd.Series(values).astype("int64[pyarrow]")
    return series, series.array


def _polars(values: NDArray[Any]) -> tuple[Any, Any]:
    frame = pl.DataFrame({"x": values.copy()})
    return frame["x"], frame["x"].slice(0)


def _polars_arrow(values: NDArray[Any]) -> tuple[Any, Any]:
    series = pl.Series(values.copy())
    return series, series.to_arrow()


def _table(values: NDArray[Any]) -> tuple[Any, Any]:
    table = pa.table({"x": pa.array(values.copy())})
    return table.column("x"), table.column("x").chunk(0)


def _chunked(values: NDArray[Any]) -> tuple[Any, Any]:
    pieces = [pa.array(values[:3].copy()), pa.array(values[3:].copy())]
    return pa.chunked_array(pieces), pa.chunked_array(pieces[::-1])


def _arrays(values: NDArray[Any]) -> tuple[Any, Any]:
    own = array.array("q", values.tolist())
    return own, np.frombuffer(own, dtype=np.int64)


def _foreign(values: NDArray[Any]) -> tuple[Any, Any]:
    held = (ctypes.c_int64 * len(values))(*values.tolist())
    lent: Any = held
    return held, np.frombuffer(lent, dtype=np.int64)


def _lent_view(values: Any) -> tuple[Any, Any]:
    return values, memoryview(values)


def _streamed(values: NDArray[Any]) -> tuple[Any, Any]:
    held = pa.chunked_array([pa.array(values.copy())])
    return held, Streamed(held)


FORMS: dict[str, Callable[[NDArray[Any]], tuple[Any, Any]]] = {
    "the same array": lambda values: (values, values),
    "a view": lambda values: (values, values[:]),
    "reversed": lambda values: (values, values[::-1]),
    "another type": lambda values: (values, values.view(np.uint64)),
    "a masked array": lambda values: (values, np.ma.masked_array(values)),
    "read only": lambda values: (values, np.broadcast_to(values, values.shape)),
    "memory view": _lent_view,
    "an array of Python": _arrays,
    "an array of C": _foreign,
    "lent to NumPy": lambda values: (values, Lent(values)),
    "lent to Arrow": _streamed,
    "Arrow over NumPy": lambda values: (values, pa.array(values)),
    "a column of a table": _table,
    "chunks": _chunked,
    "a slice of Arrow": lambda values: ((whole := pa.array(values.copy())), whole.slice(0)),
    "a list": _listed,
    "a column of pandas": _framed,
    "a block of pandas": _blocked,
    "nullable pandas": _masked_frame,
    "pandas over Arrow": _arrow_frame,
    "a column of Polars": _polars,
    "Polars as Arrow": _polars_arrow,
}
