"""The one pass over the records, as an Ibis expression that every engine runs alike."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import DataError
from shoal.records.cells import Column, Hexagon, HourOfDay, Timeslot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from shoal.records.cells import CellRule
    from shoal.records.records import Records
    from shoal.records.source import Engine, EngineColumn, EngineTable

# A column type of Ibis, which a checker cannot see.
Kind = Any

_KEYS = "text, integers, booleans, dates or times"
_BATCH = 1_000_000
_PENDING = 8_000_000
_SUMS = ("count", "present", "centred", "squares")


def check_types(
    schema: Mapping[str, Any], user: str, value: str, rules: tuple[CellRule, ...]
) -> None:
    """Refuse columns that are no numbers where numbers are needed, or no keys.

    Raises:
        DataError: A column of the wrong type.
    """
    kind = schema[value]
    if not _is_number(kind):
        raise _bad_type(value, kind, "numbers")
    if not _is_key(schema[user]):
        raise _bad_type(user, schema[user], _KEYS)
    for rule in rules:
        for name in rule.columns:
            if isinstance(rule, Hexagon) and not _is_number(schema[name]):
                raise _bad_type(name, schema[name], "degrees, as numbers")
            if isinstance(rule, Timeslot | HourOfDay) and not _is_time(schema[name]):
                raise _bad_type(name, schema[name], "times or dates")
            if isinstance(rule, Column) and not _is_key(schema[name]):
                raise _bad_type(name, schema[name], _KEYS)


def run(table: EngineTable, backend: Engine, records: Records, *, sums: bool) -> pa.Table:
    """Group the records by user and cell.

    Returns:
        Columns user, one a rule, count (rows), present (rows with a value), and with `sums` the
        sum of centred ticks and of their squares.
    """
    expression, engine_names = _expression(table, records, sums=sums)
    if all(len(rule.columns) == 1 for rule in records.rules):
        found = backend.to_pyarrow(expression)
        return _combine(found, records.rules, engine_names)
    pending: list[pa.Table] = []
    for batch in _stream(expression, backend):
        part = _combine(pa.Table.from_batches([batch]), records.rules, engine_names)
        pending.append(_merge([part]))
        if sum(part.num_rows for part in pending) > _PENDING:
            pending = [_merge(pending)]
    if not pending:
        return _combine(expression.schema().to_pyarrow().empty_table(), records.rules, engine_names)
    return _merge(pending)


def _stream(expression: EngineTable, backend: Engine) -> Iterator[pa.RecordBatch]:
    if backend.name == "duckdb":
        # The stream of Ibis 12 asks DuckDB 2 for a method that is gone; the query is Ibis's.
        query = backend.con.sql(backend.compile(expression))
        yield from query.to_arrow_reader(_BATCH)
        return
    yield from backend.to_pyarrow_batches(expression, chunk_size=_BATCH)


def check_missing(found: pa.Table, counts: np.ndarray, records: Records) -> None:
    """Refuse missing users, cells or values; how many there are is not said.

    Raises:
        DataError: Something is missing, or a membership is too large for 64-bit sums.
    """
    for name in ("user", *(rule.name for rule in records.rules)):
        if found.column(name).null_count:
            raise _missing(records.user if name == "user" else name, "null")
    if (found.column("present").to_numpy() != counts).any():
        raise _missing(records.value, "null, NaN or infinite")
    most = 2 ** (63 - 2 * (records.lattice.bits - 1)) - 1
    if int(counts.max()) > most:
        raise DataError(
            "a user with too many records in one cell for exact 64-bit sums",
            f"at most {most:,} with {records.lattice.bits} tick bits",
            "use smaller cells or fewer tick bits",
        )


def _expression(
    table: EngineTable, records: Records, *, sums: bool
) -> tuple[EngineTable, list[list[str]]]:
    import ibis

    lattice = records.lattice
    value: EngineColumn = table[records.value].cast("float64")
    largest = sys.float_info.max
    # NaN sorts above every number, so a range check catches it on every engine.
    finite = value.between(-largest, largest)
    columns: dict[str, Any] = {"user": table[records.user]}
    names: list[list[str]] = []
    for rule in records.rules:
        parts = rule.engine(table)
        names.append([f"{rule.name}_{at}" for at in range(len(parts))])
        columns.update(zip(names[-1], parts, strict=True))
    keys = list(columns)
    clipped: EngineColumn = ibis.greatest(
        ibis.least(value, ibis.literal(lattice.bounds.hi, "float64")),
        ibis.literal(lattice.bounds.lo, "float64"),
    )
    tick = ((clipped - lattice.bounds.lo) * lattice.factor + 0.5).floor().cast("int64")
    centred = tick - 2 ** (lattice.bits - 1)
    columns["tick"] = ibis.ifelse(finite, centred, ibis.null("int64")) if sums else finite
    rows = table.select(**columns)
    if records.missing == "public":
        there = rows.tick.notnull() if sums else rows.tick
        for key in keys:
            there = there & rows[key].notnull()
        rows = rows.filter(there)
    present = rows.tick.count() if sums else rows.tick.fill_null(False).cast("int64").sum()  # noqa: FBT003
    found = {"count": rows.count(), "present": present}
    if sums:
        found |= {"centred": rows.tick.sum(), "squares": (rows.tick * rows.tick).sum()}
    return rows.group_by(keys).agg(**found), names


def _combine(found: pa.Table, rules: tuple[CellRule, ...], names: list[list[str]]) -> pa.Table:
    columns = {"user": found.column("user").combine_chunks()}
    for rule, parts in zip(rules, names, strict=True):
        arrays = [found.column(part).combine_chunks() for part in parts]
        if len(arrays) > 1 and any(array.null_count for array in arrays):
            raise _missing(" or ".join(rule.columns), "null")
        columns[rule.name] = rule.combine(*arrays)
    for name in _SUMS:
        if name in found.column_names:
            # A group without any value has a null sum; it is refused right after.
            columns[name] = found.column(name).combine_chunks().fill_null(0).cast(pa.int64())
    return pa.table(columns)


def _merge(parts: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts)
    sums = [name for name in _SUMS if name in table.column_names]
    keys = [name for name in table.column_names if name not in sums]
    merged = table.group_by(keys).aggregate([(name, "sum") for name in sums])
    return merged.rename_columns({f"{name}_sum": name for name in sums}).combine_chunks()


def _is_number(kind: Kind) -> bool:
    return bool(kind.is_numeric() and not kind.is_boolean())


def _is_time(kind: Kind) -> bool:
    return bool(kind.is_timestamp() or kind.is_date())


def _is_key(kind: Kind) -> bool:
    return bool(
        kind.is_string()
        or kind.is_integer()
        or kind.is_boolean()
        or kind.is_date()
        or kind.is_timestamp()
    )


def _bad_type(name: str, kind: object, allowed: str) -> DataError:
    return DataError(
        f"the column {name!r} holds {kind}", allowed, "convert it, or name another column"
    )


def _missing(name: str, what: str) -> DataError:
    return DataError(
        f"{what} in the column {name!r}",
        "a user, cells and a finite value in every row",
        'clean the records, or declare missing="public" to drop such rows if it is public '
        "which they are",
    )
