"""Tables on disk."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from shoal import documents
from shoal.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".parquet")


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a table's path that does not end in .csv or .parquet.

    Raises:
        InputError: Another ending.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(
            f"a table at {os.fspath(path)!r}",
            f"a name that ends in {' or '.join(ENDINGS)}",
            "choose one of these",
        )


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table in one step, as CSV or Parquet by the path's ending.

    Raises:
        InputError: Another ending.
        DocumentError: The place cannot be written.
    """
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    check_ending(path)
    stream = io.BytesIO()
    if Path(path).suffix.lower() == ".csv":
        pcsv.write_csv(table, stream)
    else:
        pq.write_table(table, stream)
    documents.write_bytes(path, stream.getvalue())
