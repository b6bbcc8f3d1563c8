"""What `shoal unbiased` reads of a file: users, counts and numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def user_values(
    data: Path | None, user: str | None, users: int | None, value: str | None, missing: str
) -> Any:
    """Public counts of records, or the number of users."""
    from shoal.errors import InputError

    if data is not None and user is not None and users is None:
        table = read(data, value, user, missing)
        return counted(table.num_rows, table.column(user))
    if data is None and user is None and users is not None:
        return users
    raise InputError(
        "not one of a file and a number of users",
        "DATA with --user, or --users",
        "give for example --users 2000",
    )


def counted(rows: int, who: Any) -> Any:
    """Records of each user, or the number of rows if a row is a user."""
    import numpy as np

    from shoal.data import keys

    return rows if who is None else np.bincount(keys.encode(who, "user"))


def read(data: Path, value: str | None, user: str | None, missing: str) -> "pa.Table":
    """Columns of a file; without rows that lack one, if whether they are there is public."""
    import pyarrow.compute as pc

    from shoal.data.sources import read_columns
    from shoal.errors import InputError

    if missing not in {"refuse", "public"}:
        raise InputError(f"missing {missing[:40]!r}", "refuse or public", "choose one of these")
    table = read_columns(data, private={"value": value}, public={"user": user})
    if missing == "public":
        for name in table.column_names:
            table = table.filter(pc.invert(pc.is_null(table.column(name), nan_is_null=True)))
    return table


def numbers(table: "pa.Table", value: str) -> Any:
    """A column of numbers; a null becomes NaN, which is refused with the others."""
    import pyarrow as pa

    from shoal.checks import floats
    from shoal.errors import DataError

    column = table.column(value)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"a value column {value!r} of {kind}", "numbers", "convert the column to numbers"
        )
    return floats(column)
