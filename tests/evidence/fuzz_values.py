"""Hostile arguments: whatever a caller may hand over by mistake or on purpose."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Distinctive digits: no message may hold them when they came in as a private value.
CANARY = 7391.254817
CANARIES = ("7391.25", "7391254", "canary-of-fuzz")
WORD = "canary-of-fuzz"

Make = "Callable[[Path], Any]"


class Raises:
    """Every way to look at it fails, with a private word in the message."""

    def _fail(self, *_: object, **__: object) -> Any:  # noqa: ANN401
        raise RuntimeError(WORD)

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __getitem__ = _fail
    __array__ = __float__ = __int__ = __index__ = __bool__ = __lt__ = __gt__ = __fspath__ = _fail
    __format__ = __contains__ = __call__ = __add__ = __arrow_c_array__ = __dataframe__ = _fail


class Odd:
    """An object like any other, that is not what was asked for."""

    lo, hi, order, size, seed = "a", None, math.nan, "b", -1


def _generator() -> Any:  # noqa: ANN401
    yield from (1, 2, 3)


def _scalars() -> dict[str, Any]:
    kinds = ("int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "longdouble")
    found: dict[str, Any] = {
        f"numpy {kind}": (lambda k=kind: np.dtype(k).type(3)) for kind in kinds
    }
    found |= {
        "numpy complex": lambda: np.complex128(1 + 2j),
        "numpy bool": lambda: np.bool_(True),  # noqa: FBT003
        "numpy nan": lambda: np.float32("nan"),
        "numpy inf": lambda: np.float64("-inf"),
        "numpy datetime": lambda: np.datetime64("2020-01-01"),
        "numpy nat": lambda: np.datetime64("NaT"),
        "numpy text": lambda: np.str_("x"),
        "numpy bytes": lambda: np.bytes_(b"x"),
    }
    return found


NUMBERS: dict[str, Any] = {
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "1e308": lambda: 1e308,
    "-1e308": lambda: -1e308,
    "1e-320": lambda: 1e-320,
    "0": lambda: 0,
    "0.0": lambda: 0.0,
    "-0.0": lambda: -0.0,
    "-1": lambda: -1,
    "1": lambda: 1,
    "-0.5": lambda: -0.5,
    "0.5": lambda: 0.5,
    "2": lambda: 2,
    "3.5": lambda: 3.5,
    "17": lambda: 17,
    "256": lambda: 256,
    "1e6": lambda: 1_000_000,
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "2**64": lambda: 2**64,
    "10**30": lambda: 10**30,
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "-10**5000": lambda: -(10**5000),
    "true": lambda: True,
    "false": lambda: False,
    "1e16": lambda: 1e16,
    "1e-9": lambda: 1e-9,
    "1e-300": lambda: 1e-300,
    "1-2**-53": lambda: 1 - 2.0**-53,
    "complex": lambda: 1 + 2j,
    "fraction": lambda: Fraction(1, 3),
    "huge fraction": lambda: Fraction(10**5000, 3),
    "tiny fraction": lambda: Fraction(1, 10**5000),
    "decimal": lambda: Decimal("0.25"),
    "decimal nan": lambda: Decimal("NaN"),
    "decimal snan": lambda: Decimal("sNaN"),
    "decimal inf": lambda: Decimal("Infinity"),
    "huge decimal": lambda: Decimal("1e999999"),
    **_scalars(),
}

TEXTS: dict[str, Any] = {
    "empty text": lambda: "",
    "surrogate": lambda: "\ud800",
    "nul": lambda: "a\0b",
    "long text": lambda: "x" * 100_000,
    "newline": lambda: "a\nb",
    "word": lambda: "mean",
    "number text": lambda: "1",
    "long number": lambda: "1" * 5000,
    "exponent": lambda: "1e999999999",
    "zero division": lambda: "1/0",
    "nan text": lambda: "nan",
    "percent": lambda: "%s{0}{x}",
    "call": lambda: "timeslot(a,0h)",
    "hexagon": lambda: "hexagon(a,b,99999999999)",
    "share": lambda: "share_above(nan)",
    "arabic digits": lambda: "٣",
    "bytes": lambda: b"bytes",
    "bytearray": lambda: bytearray(b"x"),
    "selected": lambda: "selected",
    "auto": lambda: "auto",
}

OBJECTS: dict[str, Any] = {
    "none": lambda: None,
    "object": object,
    "odd": Odd,
    "raises": Raises,
    "class": lambda: Odd,
    "function": lambda: len,
    "lambda": lambda: lambda: None,
    "generator": _generator,
    "iterator": lambda: iter([1, 2]),
    "range": lambda: range(5),
    "module": lambda: math,
    "type": lambda: int,
    "ellipsis": lambda: ...,
    "exception": lambda: ValueError(WORD),
    "slice": lambda: slice(1, 2),
    "not implemented": lambda: NotImplemented,
    "empty dict": dict,
    "dict": lambda: {"a": 1},
    "odd dict": lambda: {1: 2, None: [3]},
    "nested dict": lambda: {"a": {"b": {"c": math.nan}}},
    "raises dict": lambda: {"a": Raises()},
    "surrogate dict": lambda: {"\ud800": "\ud800"},
    "huge dict": lambda: {"a": 10**5000},
    "set": lambda: {1, 2},
    "frozenset": frozenset,
    "empty list": list,
    "empty tuple": tuple,
    "pair": lambda: (1, 2),
    "swapped": lambda: (10, 0),
    "equal pair": lambda: (3, 3),
    "nan pair": lambda: (math.nan, 1),
    "inf pair": lambda: (0, math.inf),
    "wide pair": lambda: (-1e308, 1e308),
    "narrow pair": lambda: (0, 5e-324),
    "huge pair": lambda: (0, 10**5000),
    "text pair": lambda: ("a", "b"),
    "triple": lambda: (1, 2, 3),
    "bool pair": lambda: (False, True),
    "list of none": lambda: [None],
    "texts": lambda: ["a", "b"],
    "mixed": lambda: [1, "a", None, 2.5],
    "nested": lambda: [[1, 2], [3]],
    "nans": lambda: [math.nan],
    "raises list": lambda: [Raises(), Raises()],
    "surrogates": lambda: ["\ud800", "\udfff"],
    "huge list": lambda: [10**5000, 1],
    "lists": lambda: [[]],
    "empty texts": lambda: ["", ""],
    "method pairs": lambda: [("balanced", 3), ("x",)],
    "three pairs": lambda: [("a", {}, 1)],
    "bools": lambda: [True, False, True],
    "negatives": lambda: [-1, -2],
    "zeros": lambda: [0, 0, 0],
    "deep list": lambda: _deep(200),
    "methods": lambda: ["balanced", "optimal"],
    "rows": lambda: [[0.5, 0.5], [0.5, 0.5]],
    "weights": lambda: {"a": 2.0, "b": math.nan},
}


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def _masked() -> Any:  # noqa: ANN401
    return np.ma.masked_array([CANARY, 1.0, 2.0], mask=[True, False, False])


def _big_endian() -> Any:  # noqa: ANN401
    return np.array([CANARY, 1, 2], dtype=">f8")


def _filled() -> Any:  # noqa: ANN401
    found = np.empty(3, dtype=object)
    for at in range(3):
        found[at] = Raises()
    return found


def _read_only() -> Any:  # noqa: ANN401
    found = np.arange(6.0)
    found.flags.writeable = False
    return found


ARRAYS: dict[str, Any] = {
    "empty array": lambda: np.array([]),
    "scalar array": lambda: np.array(CANARY),
    "floats": lambda: np.array([CANARY, 1.0, 2.0]),
    "matrix": lambda: np.full((3, 3), CANARY),
    "cube": lambda: np.full((2, 2, 2), CANARY),
    "no rows": lambda: np.empty((0, 3)),
    "no columns": lambda: np.empty((3, 0)),
    "masked": _masked,
    "big endian": _big_endian,
    "object array": lambda: np.array([CANARY, None, WORD], dtype=object),
    "raises array": _filled,
    "nan array": lambda: np.array([CANARY, math.nan, math.inf]),
    "ints": lambda: np.arange(6),
    "huge ints": lambda: np.array([2**63 - 1, 2**63 - 1]),
    "unsigned": lambda: np.array([2**64 - 1], "u8"),
    "negative ints": lambda: np.array([-5, 3]),
    "half": lambda: np.array([1, 2, 3], dtype="f2"),
    "bool array": lambda: np.array([True, False]),
    "complex array": lambda: np.array([1j, CANARY]),
    "text array": lambda: np.array([WORD, "b"]),
    "byte array": lambda: np.array([b"a", b"b"]),
    "dates": lambda: np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    "range_widths": lambda: np.array([1, 2], "m8[s]"),
    "records": lambda: np.array([(1, CANARY)], dtype=[("a", "i8"), ("b", "f8")]),
    "strided": lambda: np.arange(20.0)[::-3],
    "read only": _read_only,
    "float huge": lambda: np.array([1e308, -1e308, 1e308]),
    "tiny": lambda: np.array([5e-324, 1.0]),
    "huge objects": lambda: np.array([10**5000, 1], dtype=object),
    "matrix type": lambda: np.asmatrix([[1, 2]]),
    "private list": lambda: [CANARY, WORD, None],
    "private words": lambda: [WORD, WORD],
    "private rows": lambda: [[CANARY], [CANARY, 1]],
    "private decimals": lambda: [Decimal("7391.254817")],
    "private dict": lambda: {"a": [CANARY], "b": [WORD, 1]},
}


FRAMES: dict[str, Any] = {
    "arrow nulls": lambda: pa.array([CANARY, None]),
    "arrow null": lambda: pa.nulls(3),
    "arrow chunks": lambda: pa.chunked_array([[CANARY], [1.0]]),
    "arrow none": lambda: pa.array([], pa.float64()),
    "arrow no chunks": lambda: pa.chunked_array([], pa.int64()),
    "arrow list": lambda: pa.array([[1], [CANARY]]),
    "arrow struct": lambda: pa.array([{"a": CANARY}]),
    "arrow words": lambda: pa.array([WORD, "b", None]),
    "arrow codes": lambda: pa.array([WORD, "b"]).dictionary_encode(),
    "arrow binary": lambda: pa.array([b"\xff"]),
    "arrow decimals": lambda: pa.array([Decimal("7391.254817")]),
    "arrow half": lambda: pa.array(np.array([1], "f2")),
    "arrow times": lambda: pa.array([1, 2], pa.timestamp("ns")),
    "arrow map": lambda: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "arrow scalar": lambda: pa.scalar(CANARY),
    "arrow table": lambda: pa.table({"user": ["a", "b"], "value": [CANARY, 1.0], "cell": [1, 2]}),
    "arrow null table": lambda: pa.table(
        {"user": ["a", None], "value": [CANARY, None], "cell": [1, None]}
    ),
    "arrow twice": lambda: pa.Table.from_arrays(
        [pa.array([1]), pa.array([CANARY])], names=["user", "user"]
    ),
    "arrow nested table": lambda: pa.table(
        {"user": [["a"]], "value": [[CANARY]], "cell": [{"a": 1}]}
    ),
    "arrow text values": lambda: pa.table({"user": ["a"], "value": [WORD], "cell": [1]}),
    "arrow empty table": lambda: pa.table({}),
    "arrow no rows": lambda: pa.table(
        {
            "user": pa.array([], pa.string()),
            "value": pa.array([], pa.float64()),
            "cell": pa.array([], pa.int64()),
        }
    ),
    "arrow batch": lambda: pa.record_batch({"a": [CANARY]}),
    "arrow schema": lambda: pa.schema([("a", pa.int8())]),
    "pandas series": lambda: pd.Series([CANARY, None]),
    "pandas words": lambda: pd.Series([WORD, pd.NA], dtype="string"),
    "pandas index": lambda: pd.Index([1, 2]),
    "pandas category": lambda: pd.Series([WORD, "b"], dtype="category"),
    "pandas nullable": lambda: pd.Series([1, None], dtype="Int64"),
    "pandas frame": lambda: pd.DataFrame({"user": ["a"], "value": [CANARY], "cell": [1]}),
    "pandas twice": lambda: pd.DataFrame([[1, CANARY]], columns=["user", "user"]),
    "pandas objects": lambda: pd.DataFrame({"user": [Odd()], "value": [WORD], "cell": [1]}),
    "pandas numbered": lambda: pd.DataFrame([[1, CANARY]]),
    "pandas empty": pd.DataFrame,
    "pandas nat": lambda: pd.Series([pd.NaT, pd.Timestamp("2020")]),
    "pandas mixed": lambda: pd.DataFrame(
        {"user": ["a", 1], "value": [CANARY, WORD], "cell": [1, "x"]}
    ),
    "polars series": lambda: pl.Series([CANARY, None]),
    "polars words": lambda: pl.Series([WORD, None]),
    "polars frame": lambda: pl.DataFrame({"user": ["a"], "value": [CANARY], "cell": [1]}),
    "polars lazy": lambda: pl.LazyFrame({"user": ["a"], "value": [CANARY], "cell": [1]}),
    "polars list": lambda: pl.DataFrame({"user": [["a"]], "value": [CANARY], "cell": [1]}),
    "polars objects": lambda: pl.Series([Odd()], dtype=pl.Object),
    "polars empty": pl.DataFrame,
    "polars broken": lambda: pl.LazyFrame({"a": [1]}).select("b"),
}

PATHS: dict[str, Any] = {
    "missing": lambda folder: folder / "missing.csv",
    "folder": lambda folder: folder,
    "folder text": str,
    "fifo": lambda folder: folder / "fifo.csv",
    "fifo json": lambda folder: folder / "fifo.json",
    "fifo parquet": lambda folder: folder / "fifo.parquet",
    "nowhere": lambda folder: folder / "no" / "such" / "place.csv",
    "nul path": lambda folder: f"{folder}/a\0b.csv",
    "long path": lambda folder: f"{folder}/{'x' * 5000}.csv",
    "surrogate path": lambda folder: f"{folder}/\ud800.csv",
    "byte path": lambda folder: str(folder).encode() + b"/x.csv",
    "binary csv": lambda folder: folder / "binary.csv",
    "empty csv": lambda folder: folder / "empty.csv",
    "broken csv": lambda folder: folder / "broken.csv",
    "binary parquet": lambda folder: folder / "binary.parquet",
    "pattern": lambda folder: f"{folder}/*.csv",
    "device": lambda _: "/dev/zero",
    "null device": lambda _: "/dev/null",
    "picture": lambda folder: folder / "out.png",
    "json": lambda folder: folder / "out.json",
}


def files(folder: Path) -> None:
    """What the paths point to."""
    import os

    for ending in ("csv", "json", "parquet"):
        os.mkfifo(folder / f"fifo.{ending}")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "binary.parquet").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    (folder / "empty.csv").write_bytes(b"")
    lines = f"user,value,cell\na,{CANARY},1\nb,{WORD},2\n" + 'c,"\n' * 3
    (folder / "broken.csv").write_text(lines)


def _made(make: Callable[[], Any]) -> Callable[[Path], Any]:
    return lambda _: make()


def pool() -> dict[str, Callable[[Path], Any]]:
    """All values by name; each call makes a new one."""
    found: dict[str, Callable[[Path], Any]] = {}
    for group in (NUMBERS, TEXTS, OBJECTS, ARRAYS, FRAMES):
        for name, make in group.items():
            found[name] = _made(make)
    return found | PATHS
