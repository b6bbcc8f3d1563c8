"""Writes tables to files, by their ending, and hands them to other libraries as frames."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import checks, files
from shoal.errors import InputError, MissingPartError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# Columns of results of all families, which stand beside keys. Adding one changes how public counts
# call a key column of that name.
RESULT_COLUMNS = frozenset(
    {
        "user",
        "count",
        "statistic",
        "status",
        "users",
        "records",
        "reason",
        "source",
        "value",
        "low",
        "high",
        "noisy_value",
        "noise_scale",
        "bias_bound",
        "worst_case_error",
        "typical_error",
        "typical_half_width",
        "certified_error",
        "lower_bound",
    }
)


class Tabular(ABC):
    """An object with a table, which goes to files and to other libraries.

    Methods also take the arguments of `table`, such as the confidence of intervals.
    """

    @abstractmethod
    def table(self) -> pa.Table:
        """All of it as a table."""

    @property
    def _sources(self) -> files.Places:
        """Files that it was made from, which no output replaces."""
        return {}

    def to_pandas(self, *options: Any, **named: Any) -> pd.DataFrame:
        """The table for pandas.

        Args:
            *options: What `table` takes.
            **named: The same, by name.

        Returns:
            The rows of `table`.

        Raises:
            InputError: As `table`.
            MissingPartError: pandas is not installed.
        """
        return to_pandas(self.table(*options, **named))

    def to_polars(self, *options: Any, **named: Any) -> pl.DataFrame:
        """The table for Polars.

        Args:
            *options: What `table` takes.
            **named: The same, by name.

        Returns:
            The rows of `table`.

        Raises:
            InputError: As `table`.
            MissingPartError: Polars is not installed.
        """
        return to_polars(self.table(*options, **named))

    def write(
        self, path: files.Place, *options: Any, overwrite: bool = False, **named: Any
    ) -> None:
        """Write the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            *options: What `table` takes.
            overwrite: Replace a file that is there.
            **named: What `table` takes, by name.

        Raises:
            InputError: Another ending, or as `table`.
            DocumentError: There is a file already, the place cannot be written, or it is that of
                one that it was made from, which are never replaced.

        Guarantees: G-REFUSE.
        """
        write(self.table(*options, **named), path, self._sources, overwrite=overwrite)


def key_name(column: str) -> str:
    """Returns the name of a key column, which is no name of a result's column in any case.

    Example:
        >>> key_name("dest"), key_name("Status")
        ('dest', 'Status_')
    """
    return f"{column}_" if column.casefold() in RESULT_COLUMNS else column


def write(
    table: pa.Table,
    path: files.Place,
    inputs: files.Places | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a table in one step, as CSV, Parquet or JSON, by the path's ending.

    Raises:
        InputError: Another ending.
        DocumentError: An input, a file already, or a place that cannot be written.
    """
    ending = check_ending(path)
    files.write_bytes(path, _ENCODE[ending](table), inputs, overwrite=overwrite)


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a path that a table can be written to.

    Example:
        >>> check_ending("speeds.CSV")
        '.csv'
    """
    place = checks.path(path)
    ending = Path(place).suffix.lower()
    if ending not in _ENCODE:
        raise InputError(
            f"an output is named {checks.shown(place, 300)}",
            "choose a name that ends in .csv, .parquet or .json",
        )
    return ending


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table for pandas."""
    if find_spec("pandas") is None:
        raise _missing("pandas")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table for Polars."""
    if find_spec("polars") is None:
        raise _missing("polars")
    import polars as pl

    return pl.DataFrame(table)


def _missing(part: str) -> MissingPartError:
    return MissingPartError(f"{part} is not installed", f'run pip install "shoal[{part}]"')


def _csv(table: pa.Table) -> bytes:
    from pyarrow import csv

    stream = io.BytesIO()
    csv.write_csv(table, stream)
    return stream.getvalue()


def _parquet(table: pa.Table) -> bytes:
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def _json(table: pa.Table) -> bytes:
    import json

    rows = table.to_pylist()
    return (json.dumps(rows, default=str, allow_nan=False, indent=1) + "\n").encode()


_ENCODE = {".csv": _csv, ".parquet": _parquet, ".json": _json}
