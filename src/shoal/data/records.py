"""Records: who, what, where; counted or summed in the engine that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.checks import roles
from shoal.data import keys
from shoal.data import occupancy as occupancies
from shoal.data import one_pass as passing
from shoal.data.aggregate import Aggregate
from shoal.data.cell_rules.parse import rules_of
from shoal.data.columns import open_columns
from shoal.data.connection_turns import turn
from shoal.data.source import engine_errors
from shoal.data.source_file import SourceFile, describe, located, unchanged
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.data.cell_rules.rule import CellRule
    from shoal.data.occupancy import Occupancy
    from shoal.data.one_pass import Measure
    from shoal.data.source import Engine, EngineTable

Missing = Literal["refuse", "public"]


@dataclass(frozen=True, init=False, eq=False)
class Records:
    """A private table: one row a record, with a user, a value in public bounds, and cells.

    Nothing is read before `occupancy` or `aggregate`, and no value ever leaves but through a
    mechanism. Which user has how many records in which cell is public.

    Args:
        source: A path (.parquet, .csv, .csv.gz, .csv.zst), a pattern of such files, a folder of
            Parquet files, a PyArrow, Polars or pandas table, a Spark frame, or an Ibis table of
            any backend.
        user: Column that says whose record it is.
        value: Column to be released in aggregate; clipped to the bounds and rounded to ticks.
        bounds: Public range of the value, in its unit.
        cell: A column, `timeslot`, `hour_of_day`, `hexagon`, their texts, or a list of these.
        missing: Rows whose user, cell or value is missing (null, NaN, infinite): `refuse` them, or
            drop them where the custodian declares `public` whether a value is present.
        tick_bits: Values are rounded to the width over 2^tick_bits.

    Raises:
        InputError: An option is not usable.
        DataError: A column is missing or of the wrong type, or the source cannot be read.

    Guarantees: G-RECORDS, G-ROWS.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"who": ["a", "a", "b"], "where": [1, 1, 2], "speed": [3.0, 5.0, 9.9]})
        >>> records = Records(table, user="who", value="speed", bounds=(0, 8), cell="where")
        >>> records.occupancy().totals.tolist()
        [2, 1]
    """

    source: Any = field(repr=False)
    user: str
    value: str
    lattice: Lattice
    rules: tuple[CellRule, ...]
    missing: Missing

    def __init__(
        self,
        source: object,
        *,
        user: str,
        value: str,
        bounds: Bounds | tuple[float, float],
        cell: str | CellRule | Sequence[str | CellRule],
        missing: str = "refuse",
        tick_bits: int = 20,
    ) -> None:
        checks.choice(missing, ("refuse", "public"), "missing")
        rules = rules_of(cell)
        _check_names(user, value, rules)
        for name, setting in (
            # Where the file is now: it is read there, and no output may replace it.
            ("source", located(source)),
            ("user", user),
            ("value", value),
            ("lattice", Lattice(Bounds.of(bounds), tick_bits)),
            ("rules", rules),
            ("missing", missing),
        ):
            object.__setattr__(self, name, setting)

    @property
    def bounds(self) -> Bounds:
        """The public range of the value."""
        return self.lattice.bounds

    @property
    def place(self) -> str | None:
        """Where the file is, which no output may replace; None for tables."""
        return self.source.place if isinstance(self.source, SourceFile) else None

    def describe(self) -> dict[str, Any]:
        """Public facts, kept in plans and manifests: columns, cell rules, the missing rule.

        Returns:
            Names and rules by what they are.
        """
        return {
            "user": self.user,
            "value": self.value,
            "cell": [str(rule) for rule in self.rules],
            "missing": self.missing,
        }

    def occupancy(self) -> Occupancy:
        """Count the records of each user in each cell.

        Returns:
            The public counts.

        Raises:
            DataError: The source cannot be read, is empty, or has missing values that are refused.
        """
        return self._group(sums=False)[0]

    def aggregate(self, measures: Sequence[Measure] = ()) -> Aggregate:
        """Count, and add ticks and their squares, for each user and cell, in one pass.

        Args:
            measures: What statistics need added up besides.

        Returns:
            Exact integer sums of each user in each cell. Private.

        Raises:
            InputError: The measures are no list of at most eight, each with a name of its own.
            DataError: As `occupancy`, or so many records of a user in one cell that sums of squares
                could pass 64 bits.
        """
        wanted = passing.measured(measures)
        occupancy, (centred, squares, *others) = self._group(sums=True, measures=wanted)
        named = {each.name: found for each, found in zip(wanted, others, strict=True)}
        return Aggregate(occupancy, self.lattice, centred, squares, named)

    def _open(self, source: object) -> tuple[EngineTable, Engine]:
        table, backend = open_columns(
            source,
            private={"value": self.value},
            public={
                "user": self.user,
                "cell": [column for rule in self.rules for column in rule.columns],
            },
            kinds={**passing.kinds_of(self.user, self.rules), self.value: "number"},
        )
        passing.check_types(dict(table.schema().items()), self.user, self.value, self.rules)
        return table, backend

    def _group(
        self, *, sums: bool, measures: Sequence[Measure] = ()
    ) -> tuple[Occupancy, list[np.ndarray]]:
        # Names and types are of this pass: the file may be another one since the last.
        with unchanged(self.source) as source, turn(source), engine_errors(source):
            table, backend = self._open(source)
            found = passing.run(table, backend, self, sums=sums, measures=measures)
        counts = found.column("count").to_numpy().astype(np.int64)
        if len(counts) == 0:
            raise DataError(
                f"no records in {describe(self.source)}",
                "at least one row with user, cell and value",
                "check the source, its filters and the missing rule",
            )
        passing.check_missing(found, counts, self)
        for rule in self.rules:
            rule.check(found.column(rule.name).combine_chunks(), counts)
        cells = found.select([rule.name for rule in self.rules])
        users = found.column("user").combine_chunks()
        occupancy, order = occupancies.build(
            users, cells, counts, finish=self._finished, origin=self.place
        )
        names = ("centred", "squares", *passing.MEASURED[: len(measures)]) if sums else ()
        return occupancy, [found.column(name).to_numpy()[order] for name in names]

    def _finished(self, cells: pa.Table) -> pa.Table:
        """Key columns of the cells as their rules call them."""
        found = {
            rule.name: rule.finish(cells.column(rule.name).combine_chunks()) for rule in self.rules
        }
        return pa.table({name: keys.as_array(column, name) for name, column in found.items()})


# Of the text of a cell rule, and how many there may be: what a manifest can hold.
_LONGEST_RULE, _MOST_RULES = 400, 64


def _check_names(user: str, value: str, rules: tuple[CellRule, ...]) -> None:
    texts = all(
        keys.is_name(name) for name in (user, value, *(rule.name for rule in rules))
    ) and all(len(str(rule)) <= _LONGEST_RULE for rule in rules)
    if not texts or not 0 < len(rules) <= _MOST_RULES:
        raise InputError(
            "a user, value or cell that is no column",
            f"printable names of up to {keys.LONGEST_NAME} characters, and at least one cell rule "
            f"and at most {_MOST_RULES}, of up to {_LONGEST_RULE} characters each",
            'give for example user="tailnum", value="speed", cell=["dest"]',
        )
    read = [column for rule in rules for column in rule.columns]
    roles({"value": value}, {"user": user, "cell": read})
    names = [rule.name for rule in rules]
    if len(set(names)) != len(names) or set(names) & RESERVED:
        raise InputError(
            f"cell columns named {', '.join(names)}",
            f"different names, none of {', '.join(sorted(RESERVED))}",
            "rename a column of the source; where two rules call their keys alike, give one a copy "
            "of its column under another name, or hexagons another resolution",
        )


RESERVED = frozenset({
    "user", "count", "present", "centred", "squares", "statistic", "status", "users", "records",
    "reason", "source", "value", "low", "high", "plain", "plain_low", "plain_high", "noise_scale",
    "bias_bound", "worst_case_error", "count_sum",
    "present_sum", "centred_sum", "squares_sum", *passing.MEASURED,
    *(f"{name}_sum" for name in passing.MEASURED),
})  # fmt: skip
