"""The one pass over the records, as an Ibis expression that every engine runs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from shoal import checks
from shoal.data.collation import as_bytes
from shoal.data.engine_number import as_floats
from shoal.data.source import engine_call, in_memory
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

    from shoal.data.cell_rules.rule import CellRule, Needs
    from shoal.data.csv_file import Kind as CsvKind
    from shoal.data.source import Engine, EngineColumn, EngineTable
    from shoal.data.value_lattice import Lattice

# A column type of Ibis, which a checker cannot see.
Kind = Any

_KEYS = "text, integers, booleans or dates (times by timeslot)"
_BATCH = 1_000_000
_PENDING = 8_000_000
_SUMS = ("count", "present", "centred", "squares")
# Columns of the sums of measures, by their place.
MEASURED = tuple(f"measure_{at}" for at in range(8))


class Columns(Protocol):
    """Which columns of a source are read, and how."""

    @property
    def user(self) -> str:
        """The column of users."""

    @property
    def value(self) -> str:
        """The column of values. Private."""

    @property
    def lattice(self) -> Lattice:
        """Bounds and ticks of the values."""

    @property
    def rules(self) -> tuple[CellRule, ...]:
        """What makes a record's cell."""

    @property
    def missing(self) -> str:
        """`refuse`, or `public` to leave out records with missing values."""


class Measure(Protocol):
    """What a statistic of its own needs added up."""

    @property
    def name(self) -> str:
        """Unique among measures."""

    def ticks(self, tick: EngineColumn, lattice: Lattice) -> EngineColumn:
        """0 to 2^bits for each record, from its centred tick (-2^(bits-1) to 2^(bits-1))."""


def kinds_of(user: str, rules: tuple[CellRule, ...]) -> dict[str, CsvKind]:
    """What each public column is for, where the source has no types of its own."""
    kinds: dict[str, CsvKind] = {user: "key"}
    for rule in rules:
        for name in rule.columns:
            if rule.needs != "key":
                kinds[name] = rule.needs
            kinds.setdefault(name, "key")
    return kinds


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
            fits, allowed = _FITS[rule.needs]
            if not fits(schema[name]):
                raise _bad_type(name, schema[name], allowed)


def measured(measures: object) -> list[Measure]:
    """The measures as a list.

    Args:
        measures: What statistics need added up besides.

    Raises:
        InputError: No list, too many, another thing among them, or two of one name.
    """
    found = checks.items(measures, "measures", least=0, most=len(MEASURED))
    names = [getattr(each, "name", None) for each in found]
    sound = all(isinstance(name, str) for name in names) and all(
        callable(getattr(each, "ticks", None)) for each in found
    )
    if sound and len(set(names)) == len(names):
        return found
    raise InputError(
        "measures that say no name or no ticks, or two of one name",
        "measures of statistics such as share_above",
        "leave measures out for counts, sums and squares",
    )


def run(
    table: EngineTable,
    backend: Engine,
    records: Columns,
    *,
    sums: bool,
    measures: Sequence[Measure] = (),
) -> pa.Table:
    """Group the records by user and cell.

    Sums of whole numbers in floating point are exact, in any order, below 2^53, and faster than
    the engines' 128-bit integers; memberships too large for that are added again as integers.

    Returns:
        Columns user, one a rule, count (rows), present (rows with a value), and with `sums` the
        sum of centred ticks and of their squares, and one sum for each measure.
    """
    found = _pass(table, backend, records, "float64" if sums else "", measures)
    largest = pc.max(found.column("count")).as_py() or 0
    if sums:
        check_size(largest, records.lattice)
    if sums and largest > 2 ** (53 - 2 * (records.lattice.bits - 1)):
        found = _pass(table, backend, records, "int64", measures)
    return found


def _pass(
    table: EngineTable, backend: Engine, records: Columns, kind: str, measures: Sequence[Measure]
) -> pa.Table:
    expression, names = _expression(table, records, kind, measures)
    one_to_one = all(rule.one_to_one for rule in records.rules)
    if one_to_one or in_memory(table):
        found = _combine(backend.to_pyarrow(expression), records.rules, names)
        return found if one_to_one else _merge([found])
    # Several groups of the engine, often many small ones, are one cell: merged as they stream by.
    pending: list[pa.Table] = []
    for batch in _stream(expression, backend):
        part = _combine(pa.Table.from_batches([batch]), records.rules, names)
        pending.append(_merge([part]))
        if sum(part.num_rows for part in pending) > _PENDING:
            pending = [_merge(pending)]
    if not pending:
        return _combine(expression.schema().to_pyarrow().empty_table(), records.rules, names)
    return _merge(pending)


def _stream(expression: EngineTable, backend: Engine) -> Iterator[pa.RecordBatch]:
    if backend.name == "duckdb":
        # The stream of Ibis 12 asks DuckDB 2 for a method that is gone; the query is Ibis's, and so
        # is what comes before it: tables in memory and functions become known to the engine.
        backend._run_pre_execute_hooks(expression)
        query = backend.con.sql(backend.compile(expression))
        yield from query.to_arrow_reader(_BATCH)
        return
    yield from backend.to_pyarrow_batches(expression, chunk_size=_BATCH)


def check_missing(found: pa.Table, counts: np.ndarray, records: Columns) -> None:
    """Refuse missing users, cells or values; how many there are is not said.

    Raises:
        DataError: Something is missing.
    """
    for name in ("user", *(rule.name for rule in records.rules)):
        if found.column(name).null_count:
            raise _missing(records.user if name == "user" else name, "null")
    if (found.column("present").to_numpy() != counts).any():
        raise _missing(records.value, "null, NaN or infinite")


def check_size(largest: int, lattice: Lattice) -> None:
    """Refuse memberships whose sum of squares could pass 64 bits.

    Raises:
        DataError: More records of a user in a cell than fit.
    """
    most = 2 ** (63 - 2 * (lattice.bits - 1)) - 1
    if largest > most:
        raise DataError(
            "a user with too many records in one cell for exact 64-bit sums",
            f"at most {most:,} with {lattice.bits} tick bits",
            "use smaller cells or fewer tick bits",
        )


def _expression(
    table: EngineTable, records: Columns, kind: str, measures: Sequence[Measure]
) -> tuple[EngineTable, list[list[str]]]:
    import ibis

    columns: dict[str, Any] = {"user": as_bytes(table, table[records.user])}
    names: list[list[str]] = []
    for number, rule in enumerate(records.rules):
        parts = [as_bytes(table, part) for part in rule.engine(table)]
        names.append([f"key_{number}_{at}" for at in range(len(parts))])
        columns.update(zip(names[-1], parts, strict=True))
    keys = list(columns)
    value = as_floats(table[records.value])
    # Only arithmetic tells NaN from numbers everywhere: range checks and even isnan() are answered
    # by DuckDB from a Parquet file's statistics, which leave NaN out.
    finite = value - value == 0.0
    tick = _centred(value, records.lattice).cast(kind) if kind else ibis.literal(1, "int8")
    columns["tick"] = ibis.ifelse(finite, tick, ibis.null(tick.type()))
    rows = table.select(**columns)
    if records.missing == "public":
        rows = rows.filter(rows.tick.notnull(), *(rows[key].notnull() for key in keys))
    found = {"count": rows.count(), "present": rows.tick.count()}
    if kind:
        found |= {"centred": rows.tick.sum(), "squares": (rows.tick * rows.tick).sum()}
        for at, measure in enumerate(measures):
            found[MEASURED[at]] = measure.ticks(rows.tick, records.lattice).cast(kind).sum()
    return rows.group_by(keys).agg(**found), names


def _texts(array: pa.Array[Any]) -> pa.Array[Any]:
    return array.cast(pa.string()) if pa.types.is_binary(array.type) else array


def _centred(value: EngineColumn, lattice: Lattice) -> EngineColumn:
    import ibis

    lo, hi = (ibis.literal(side, "float64") for side in (lattice.bounds.lo, lattice.bounds.hi))
    clipped: EngineColumn = ibis.greatest(ibis.least(value, hi), lo)
    # The engine's floor stays in floating point; that of Ibis goes through integers and back.
    tick = engine_call("floor", (clipped - lo) * lattice.factor + 0.5, kind="float64")
    return tick - float(2 ** (lattice.bits - 1))


def _combine(found: pa.Table, rules: tuple[CellRule, ...], names: list[list[str]]) -> pa.Table:
    columns = {"user": _texts(found.column("user").combine_chunks())}
    for rule, parts in zip(rules, names, strict=True):
        arrays = [_texts(found.column(part).combine_chunks()) for part in parts]
        if len(arrays) > 1 and any(array.null_count for array in arrays):
            raise _missing(" or ".join(rule.columns), "null")
        columns[rule.name] = rule.combine(*arrays)
    for name in found.column_names:
        if _is_sum(name):
            column = found.column(name).combine_chunks()
            # A group without any value has a null sum; it is refused right after.
            filled = column.fill_null(0) if column.null_count else column
            columns[name] = filled.cast(pa.int64(), safe=False)
    return pa.table(columns)


def _merge(parts: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts)
    sums = [name for name in table.column_names if _is_sum(name)]
    keys = [name for name in table.column_names if name not in sums]
    merged = table.group_by(keys).aggregate([(name, "sum") for name in sums])
    return merged.rename_columns({f"{name}_sum": name for name in sums}).combine_chunks()


def _is_sum(name: str) -> bool:
    return name in _SUMS or name in MEASURED


def _is_number(kind: Kind) -> bool:
    return bool(kind.is_numeric() and not kind.is_boolean())


def _is_time(kind: Kind) -> bool:
    return bool(kind.is_timestamp() or kind.is_date())


def _is_key(kind: Kind) -> bool:
    # Times are cells by their slot only: engines disagree about zones and fractions of a second.
    return bool(kind.is_string() or kind.is_integer() or kind.is_boolean() or kind.is_date())


_FITS: dict[Needs, tuple[Callable[[Kind], bool], str]] = {
    "key": (_is_key, _KEYS),
    "number": (_is_number, "numbers"),
    "time": (_is_time, "times or dates"),
}


def _bad_type(name: str, kind: Kind, allowed: str) -> DataError:
    if kind.is_unknown():
        # Such as DuckDB's times with a zone in nanoseconds.
        return DataError(
            f"the column {name!r} holds what only its engine has a type for",
            f"{allowed}; times with a zone in microseconds",
            "convert it, say with astype or cast, or name another column",
        )
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
