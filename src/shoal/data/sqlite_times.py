"""Days and times of SQLite, which are texts, or whatever else somebody has put into the column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.data.source import engine_call
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.data.source import EngineColumn, EngineTable

# What a shorter text goes on with, and what is behind a clock in UTC.
_MIDNIGHT, _ZONES = "0000-00-00 00:00:00", ("", "Z", "+00:00")
_TO_DAY, _TO_MINUTE, _TO_SECOND = 10, 16, 19
_FIRST_YEAR = "0001"


def is_time(column: EngineColumn) -> bool:
    """Whether a column is declared to hold days or times.

    Args:
        column: A column of a table of SQLite.
    """
    kind = column.type()
    return bool(kind.is_date() or kind.is_timestamp())


def in_one_form(column: EngineColumn) -> EngineColumn:
    """Days as `2024-01-31`, times as `2024-01-31 10:00:00`, maybe with a fraction; null for others.

    A day is of the calendar and a clock of a day: SQLite itself takes 30 February for 1 March. Its
    numbers would be days of another calendar, or seconds.

    Args:
        column: Days or times of a table of SQLite.

    Returns:
        The column's type, of texts that all have one form.

    Guarantees: G-ROWS.

    Example:
        >>> import ibis
        >>> table = ibis.table({"at": "timestamp"}, name="trips")
        >>> in_one_form(table.at).type().is_timestamp()
        True
    """
    import ibis

    kind = column.type()
    given = column.cast("string")
    text = given if kind.is_date() else given.replace("T", " ")
    short = text if kind.is_date() else text.replace("Z", "").replace("+00:00", "")
    written = (text == short) & (short.length() == _TO_DAY)
    if kind.is_timestamp():
        written |= _has_clock(short) & text.isin([short + zone for zone in _ZONES])
    form = short + engine_call("substr", _MIDNIGHT, short.length() + 1, kind="string")
    # What comes behind a zero byte is no part of a text's length.
    whole = engine_call("length", given.cast("binary")) == given.length()
    stored = engine_call("typeof", column, kind="string") == "text"
    sound = stored & whole & written & _exists(_first(form, _TO_SECOND))
    if kind.is_date():
        form = _first(form, _TO_DAY)
    # A cast to the column's type would round to milliseconds.
    return ibis.ifelse(sound, engine_call("trim", form, kind=kind), ibis.null(kind))


def check_forms(table: EngineTable, names: Iterable[str]) -> None:
    """Refuse public days and times that are written as no form that is read.

    To leave such rows out as if they were missing would say nothing of it. Columns that may be
    private are not for this: whether one cell is sound would decide.

    Args:
        table: The records, in a database of SQLite.
        names: Public columns.

    Raises:
        DataError: A cell that is neither null nor of one of the forms.

    Guarantees: G-RECORDS.
    """
    columns = {name: table[name] for name in names if is_time(table[name])}
    if not columns:
        return
    bad = [
        (column.notnull() & in_one_form(column).isnull()).any().name(f"bad_{at}")
        for at, column in enumerate(columns.values())
    ]
    (found,) = table.get_backend().to_pyarrow(table.agg(bad)).to_pylist()
    for at, (name, column) in enumerate(columns.items()):
        if found[f"bad_{at}"]:
            raise _unread(name, day=column.type().is_date())


def _unread(name: str, *, day: bool) -> DataError:
    times = "2024-01-31, 2024-01-31 10:00, 2024-01-31 10:00:00 or 2024-01-31T10:00:00.25"
    return DataError(
        f"the column {name!r} of a database of SQLite has {'days' if day else 'times'} that are "
        "written otherwise, or of no calendar",
        f"in every row nothing, or a text like {'2024-01-31' if day else times}"
        + ("" if day else ", with nothing, Z or +00:00 behind the clock"),
        "write them so, say with strftime of SQLite, or export the records to Parquet",
    )


def _has_clock(text: EngineColumn) -> EngineColumn:
    """Whether a text is as long as a day with a clock, or has a fraction behind one."""
    # GLOB cannot say that only digits follow: nothing else does.
    digits = _like(text, "?" * _TO_SECOND + ".[0-9]*") & ~_like(text, "*.*[^0-9]*")
    return text.length().isin([_TO_MINUTE, _TO_SECOND]) | digits


def _exists(moment: EngineColumn) -> EngineColumn:
    """Whether a text is what SQLite itself writes of a number of seconds, from the year 1 on."""
    seconds = engine_call("strftime", "%s", moment, kind="string")
    same = engine_call("datetime", seconds, "unixepoch", kind="string") == moment
    return same.fill_null(False) & (moment >= _FIRST_YEAR)


def _first(text: EngineColumn, many: int) -> EngineColumn:
    return engine_call("substr", text, 1, many, kind="string")


def _like(text: EngineColumn, pattern: str) -> EngineColumn:
    """Whether a text is written as a pattern of GLOB says."""
    return engine_call("glob", pattern, text, kind="boolean")
