"""Bytes of a CSV file, which may be compressed: all of them, or the file is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from shoal.data.source_file import describe
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

Codec: TypeAlias = Literal["gzip", "zstd"]

_BLOCK = 2**20
_MARK = b"\xef\xbb\xbf"
# How files are compressed, by the ending of their names.
CODECS: dict[str, Codec | None] = {".csv": None, ".csv.gz": "gzip", ".csv.zst": "zstd"}


def codec_of(path: str | os.PathLike[str]) -> Codec | None:
    """How a CSV file is compressed, by its name.

    Example:
        >>> codec_of("a.csv"), codec_of("A.CSV.GZ"), codec_of("a.csv.zst")
        (None, 'gzip', 'zstd')
    """
    name = os.fspath(path).casefold()
    return next((codec for ending, codec in CODECS.items() if name.endswith(ending)), None)


def blocks(path: str | os.PathLike[str]) -> Generator[bytes, None, None]:
    r"""The text of a CSV file in blocks of a size, in constant memory, without a byte-order mark.

    Engines do not look at the check sums of what they decompress, and end where it ends: a file
    that was cut off would be fewer records.

    Args:
        path: The file.

    Raises:
        DataError: What should be compressed is not, not whole, or damaged.

    Guarantees: G-RECORDS.

    Example:
        >>> import gzip, tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".csv.gz") as file:
        ...     _ = file.write(gzip.compress(b"who\nann\n"))
        ...     file.flush()
        ...     b"".join(blocks(file.name))
        b'who\nann\n'
    """
    import pyarrow as pa

    codec = codec_of(path)
    if codec is None:
        with open(path, "rb") as plain:
            yield from _apart(plain)
        return
    try:
        with pa.input_stream(os.fspath(path), compression=codec) as packed:
            yield from _apart(packed)
    except (OSError, pa.ArrowException):
        raise DataError(
            f"{describe(path)}, which is damaged or not compressed as its name says",
            f"a whole {codec} file",
            "compress it again, or give it without compression",
        ) from None


def _apart(file: Any) -> Iterator[bytes]:
    start = file.read(len(_MARK))
    if start not in {_MARK, b""}:
        yield start
    while block := file.read(_BLOCK):
        yield block
