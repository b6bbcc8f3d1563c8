"""Records: who, what, where; counted or summed by one query in the engine that holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import checks
from shoal.data import counts as counting
from shoal.data import keys
from shoal.data.aggregate import Aggregate, Tally
from shoal.data.cell_rules import Rule, period_of, rules_of
from shoal.data.columns_in_memory import roles
from shoal.data.counts import Counts
from shoal.data.places import located
from shoal.data.sources import Columns, described, opened
from shoal.data.types import Use
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, InputError
from shoal.files.text_table import Shown, TextTable
from shoal.privacy.unit import DATES, RELATIONS, UNZONED, ZONED, Periods, Relation

Missing = Literal["refuse", "public"]

# Columns of the sums of measures, by their place.
_MEASURES = tuple(f"measure_{at}" for at in range(66))
_SUMS = {"centred": "tick", "squares": "tick * tick"}
# What times are said to be, and what a ledger keeps of it.
_FORMS = {"with a zone": ZONED, "without a zone": UNZONED, "dates": DATES}
# Of the text of a cell rule, and how many there may be: what a manifest can hold.
_LONGEST_RULE = 400
_MOST_RULES = 64


class Measure(Protocol):
    """What a statistic of its own needs added up."""

    @property
    def name(self) -> str:
        """Unique among measures."""

    def amount(self, lattice: Lattice) -> str:
        """SQL of what each record adds: a whole number from 0 to 2^bits.

        It is of the record's centred tick, `tick`, or of its value moved into the bounds, `v`.
        """


def above(threshold: float, lattice: Lattice) -> str:
    """SQL of whether a value is above a threshold."""
    return f"v > {_number(lattice.compared(threshold))}"


@dataclass(frozen=True, init=False, eq=False)
class Records(Shown):
    """A private table: one row a record, with a user, a value in public bounds, and cells.

    Nothing is read before `counts`, and no value leaves but through a mechanism.

    Args:
        source: A path (.parquet, .csv, .csv.gz, .csv.zst), a pattern of such files, a folder of
            Parquet files, a PyArrow, Polars or pandas table, a Spark frame, or an Ibis table of
            any backend.
        user: Column that says whose record it is.
        value: Column to be released in aggregate; clipped to the bounds and rounded to ticks. Users
            and records with private counts need none.
        bounds: Public range of the value, in its unit.
        by: A column, `timeslot`, `hour_of_day`, `hexagon`, their texts, or a list of these.
            Without it all records are one cell.
        missing: Rows whose user, cell or value is missing (null, NaN, infinite): `refuse` them, or
            drop them where the custodian declares `public` whether a value is present.
        tick_bits: Values are rounded to the width over 2^tick_bits.
        counts: Who has how many records in which cell: `private`, or `public` if everybody may
            know it.
        period: What is protected is a user's values in one period, which takes the place of a user
            in all counts: `month("at")` and the like, or a column with a few public values. The
            ledger then has a budget in each period (docs/ledger.md#a-budget-that-comes-back).
        times: With private counts, how a file of texts writes the times of its periods, which no
            row may tell: `with a zone`, `without a zone`, or `dates`. Others are missing.

    Raises:
        InputError: An option is not usable.
        DataError: A column is missing or of the wrong type, or the source cannot be read.

    Guarantees: G-RECORDS, G-ROWS.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"who": ["a", "a", "b"], "where": [1, 1, 2], "speed": [3.0, 5.0, 9.9]})
        >>> known = {"bounds": (0, 8), "by": "where", "counts": "public"}
        >>> records = Records(table, user="who", value="speed", **known)
        >>> records.counts().totals.tolist()
        [2, 1]
    """

    source: Any = field(repr=False)
    user: str
    value: str | None
    lattice: Lattice
    rules: tuple[Rule, ...]
    missing: Missing
    relation: Relation
    period: Rule | None
    records_per_user: int | None = None
    times: str | None = None

    def __init__(
        self,
        source: object,
        *,
        user: str,
        value: str | None = None,
        bounds: Bounds | tuple[float, float] | None = None,
        by: str | Rule | Sequence[str | Rule] | None = None,
        missing: str = "refuse",
        tick_bits: int = 20,
        counts: str = "private",
        period: str | Rule | None = None,
        times: str | None = None,
    ) -> None:
        checks.choice(missing, ("refuse", "public"), "missing")
        relation = checks.choice(counts, RELATIONS, "counts")
        _check_value(value, bounds, relation)
        if relation == "private" and missing == "public":
            raise InputError(
                "nobody may know whether a value is missing if the counts are private",
                "leave missing out: rows without user, cell or value never count then",
            )
        rules = rules_of(by)
        divided = period_of(period)
        _check_times(times, divided, relation)
        _check_names(user, value, rules, divided)
        for name, setting in (
            ("source", located(source)),
            ("user", user),
            ("value", value),
            ("lattice", Lattice(Bounds.of(bounds or (0, 1)), tick_bits)),
            ("rules", rules),
            ("missing", missing),
            ("relation", relation),
            ("period", divided),
            ("times", times),
        ):
            object.__setattr__(self, name, setting)

    @property
    def bounds(self) -> Bounds:
        """The public range of the value."""
        return self.lattice.bounds

    @property
    def place(self) -> str | None:
        """The file, which no output may replace; None for tables."""
        return self.source if isinstance(self.source, str) else None

    def __repr__(self) -> str:
        return f"<Records: {self._text().head}>"

    def _text(self) -> TextTable:
        by = ", ".join(map(str, self.rules)) or "nothing"
        bounds = f"[{self.bounds.lo:.12g}, {self.bounds.hi:.12g}]"
        whose = self.user if self.period is None else f"{self.user} and {self.period}"
        what = "records" if self.value is None else f"{self.value} in {bounds}"
        return TextTable(f"{what} of each {whose}, by {by}", (), ())

    def describe(self) -> dict[str, Any]:
        """Public facts, kept in plans and manifests: columns, rules of cells and of periods."""
        found: dict[str, Any] = {
            "user": self.user,
            "value": self.value,
            "cell": [str(rule) for rule in self.rules],
        }
        if self.relation == "public":
            found["missing"] = self.missing
        if self.period is not None:
            found["period"] = str(self.period)
        if self.times is not None:
            found["times"] = self.times
        if self.records_per_user is not None:
            found["records_per_user"] = self.records_per_user
        return found

    @property
    def read_rules(self) -> tuple[Rule, ...]:
        """The rules of cells, and that of periods after them if there is one."""
        return self.rules if self.period is None else (*self.rules, self.period)

    def at_most(self, records_per_user: int | None) -> Records:
        """Returns the records of which each user counts for at most so many, if a number is given.

        Their counts and sums are those of `Counts.at_most`.
        """
        if records_per_user is None or records_per_user == self.records_per_user:
            return self
        found = copy(self)
        most = checks.whole(records_per_user, "records_per_user", least=1, example=5)
        object.__setattr__(found, "records_per_user", most)
        return found

    def holds(self) -> str:
        """Returns what the column of the periods holds; only types of columns are looked at."""
        if self.period is None:
            return ""
        name = self.period.columns[0]
        uses = {name: self.period.use}
        with opened(self.source, uses, by_rows=True, forms=self._forms) as columns:
            return columns.holds(name)

    @property
    def _forms(self) -> dict[str, str]:
        """What is said of the times of periods."""
        if self.period is None or self.times is None:
            return {}
        return {self.period.columns[0]: _FORMS[self.times]}

    def counts(self) -> Counts:
        """Count the records of each user in each cell.

        Returns:
            The public counts.

        Raises:
            InputError: The counts are private.
            DataError: The source cannot be read, is empty, or has missing values that are refused.
        """
        if self.relation == "private":
            raise InputError(
                "the counts of these records are private: a table of them would be a release",
                'plan with keys= and users= in place of them; or give counts="public" if everybody '
                "may know who has how many records in which cell",
            )
        return self._limited(self._counted([], [])[0])

    def _limited(self, counts: Counts) -> Counts:
        most = self.records_per_user
        return counts if most is None else counts.at_most(most)

    def aggregate(
        self, measures: Sequence[Measure] = (), *, squares: bool = True
    ) -> tuple[Counts, Aggregate]:
        """Count, and add ticks and their squares, for each user and cell, in one pass.

        Args:
            measures: What statistics need added up besides.
            squares: Whether to add up squares, which variances alone need.

        Returns:
            The public counts, and exact integer sums of each user in each cell, which are private.

        Raises:
            InputError: More than 66 measures, or two of one name.
            DataError: As `counts`, or so many records of a user in one cell that sums of squares
                could pass 64 bits.
        """
        listed = checks.items(measures, "measures", least=0, most=len(_MEASURES))
        names = [each.name for each in listed]
        if len(set(names)) < len(names):
            raise InputError("a measure is given twice", f"give each of {', '.join(names)} once")
        public, sums = self._counted(["centred", *["squares"] * squares], listed)
        measured = {name: sums[at] for name, at in zip(names, _MEASURES, strict=False)}
        squared = sums.get("squares")
        members = public.memberships
        found = Aggregate(members, self.lattice, sums["centred"], squared, measured)
        limited = self._limited(public)
        if limited is public:
            return public, found
        return limited, found.scaled(limited.memberships)

    def tally(self, measure: Measure) -> tuple[Counts, Tally]:
        """Count the records of each user in each cell by what a measure gives them, in one pass.

        Args:
            measure: Gives each record a whole number.

        Returns:
            The public counts, and the records by these numbers, which are private.

        Raises:
            DataError: As `counts`.
        """
        public, lists = self._counted([], [], measure)
        lengths = pc.list_value_length(lists["part"])
        member = np.repeat(np.arange(len(lengths)), keys.numbers(lengths))
        part = keys.numbers(lists["part"].flatten())
        records = keys.numbers(lists["records"].flatten())
        found = Tally(public.count, member, part, records)
        return self._limited(public), found

    def _counted(
        self, powers: Sequence[str], measures: Sequence[Measure], divided: Measure | None = None
    ) -> tuple[Counts, dict[str, Any]]:
        """Returns public counts, and sums of powers of the ticks and of measures in their order.

        Or lists of parts and of the records in each, if they are `divided` by a measure.
        """
        table, period_holds = self._group(
            powers, measures, drop=self.missing == "public", divided=divided
        )
        lists: dict[str, Any] = {}
        if divided is not None:
            table, lists = _joined(table)
        counts = keys.numbers(table.column("count"))
        if len(counts) == 0:
            raise DataError(
                f"there are no records in {described(self.source)}",
                "check the source, its filters and the rule for missing values",
            )
        rules = self.read_rules
        columns = [table.column(at).combine_chunks() for at in range(len(rules) + 1)]
        read = [self.user, *(" or ".join(rule.columns) for rule in rules)]
        sums = {
            name: keys.numbers(table.column(name))
            for name in (*_SUMS, *_MEASURES)
            if name in table.column_names
        }
        self._check_present(dict(zip(read, columns, strict=True)), table, sums)
        users, *codes = map(_text, columns)
        for name, code in zip(read, (users, *codes), strict=True):
            keys.warn_of_words(name, code)
        for rule, code in zip(rules, codes, strict=True):
            rule.check(code)
        periods = None
        if self.period is not None:
            # The rule of periods is the last of all rules.
            *codes, period_codes = codes
            users, periods = self._in_periods(users, period_codes, period_holds)
        cells = pa.table(codes, names=[rule.name for rule in self.rules])
        if not self.rules:
            alike = keys.in_arrow(0 * counts)
            all_alike = pa.DictionaryArray.from_arrays(alike, pa.array(["all"], pa.string()))
            cells = pa.table([all_alike], names=["cell"])
        public, order = counting.build(
            users, cells, counts, finish=self._keys, origin=self.place, rules=self.rules
        )
        public = replace(public, periods=periods)
        if divided is not None:
            return public, {name: each.take(keys.in_arrow(order)) for name, each in lists.items()}
        return public, {name: each[order].astype(np.int64) for name, each in sums.items()}

    def _check_present(
        self, columns: Mapping[str, Any], table: pa.Table, sums: Mapping[str, Any]
    ) -> None:
        """Refuses a user, a cell or a value that is missing."""
        for name, column in columns.items():
            if column.null_count:
                raise _missing(name, "null")
        is_there = keys.numbers(table.column("present")) == keys.numbers(table.column("count"))
        if not is_there.all() or np.isnan(sums.get("centred", 0.0)).any():
            raise _missing(self.value, "null, NaN or infinite")

    def _in_periods(
        self, users: pa.Array[Any], codes: pa.Array[Any], holds: str
    ) -> tuple[pa.Array[Any], Periods]:
        """Returns a number for each user and period, which takes the place of a user; periods."""
        rule: Any = self.period
        found, place = keys.ranked(codes, rule.name)
        keys.check_spelling(found, rule.name)
        named = pa.table({rule.name: keys.as_array(rule.keys(found), rule.name)})
        pairs = keys.encode(users, self.user) * len(found) + place
        return keys.in_arrow(pairs), Periods.of(str(rule), holds, keys.labels(named))

    def _group(
        self,
        powers: Sequence[str],
        measures: Sequence[Measure],
        *,
        drop: bool,
        by_rows: bool = False,
        divided: Measure | None = None,
    ) -> tuple[pa.Table, str]:
        """Returns one row a user and cell with codes, records and sums, in the engine's order.

        And what the column of periods holds, or nothing without one. A user and cell that are
        `divided` by a measure have a row for each of its numbers.

        Rows without a user, a cell or a finite value are dropped without a word. If they are not,
        they are null or NaN here, to be refused, and no row of the source may be lacking.
        """
        uses: dict[str, Use] = {} if self.value is None else {self.value: "number"}
        hidden = [*uses]
        uses[self.user] = "key"
        for rule in self.read_rules:
            for name in rule.columns:
                # A column of dates may be a key and a time.
                uses[name] = "key" if uses.get(name) == "key" else rule.use
        with opened(self.source, uses, hidden, by_rows=by_rows, forms=self._forms) as columns:
            for rule in self.read_rules:
                _check_rule(rule, columns)
            holds = ""
            if self.period is not None and not by_rows:
                holds = columns.holds(self.period.columns[0])
            query = _queries(columns, self, drop=drop, by_rows=by_rows, divided=divided)
            sums = columns.engine.run(query("DOUBLE", powers, measures))
            if by_rows:
                return sums.combine_chunks(), holds
            largest = pc.max(sums.column("count")).as_py() or 0
            if powers and largest > 2 ** (53 - 2 * (self.lattice.bits - 1)):
                check_size(largest, self.lattice)
                sums = columns.engine.run(query("BIGINT", powers, measures))
        if not drop:
            columns.check_rows(int(keys.numbers(sums.column("count")).sum()))
        return sums.combine_chunks(), holds

    def private_groups(self, measures: Sequence[Measure]) -> pa.Table:
        """One row a user and code of a cell, of records whose counts are private. Private.

        Rows that lack something are dropped, and every row is read by itself. Sums are of whole
        numbers below 2^53, exact in any order.
        """
        return self._group(["centred"], measures, drop=True, by_rows=True)[0]

    def _keys(self, cells: pa.Table) -> pa.Table:
        """Returns key columns of the cells as people read them."""
        for at, rule in enumerate(self.rules):
            key = keys.as_array(rule.keys(cells.column(at).combine_chunks()), rule.name)
            cells = cells.set_column(at, rule.name, key)
        return cells


def check_size(largest: int, lattice: Lattice) -> None:
    """Refuses memberships whose sum of squares could pass 64 bits."""
    most = 2 ** (63 - 2 * (lattice.bits - 1)) - 1
    if largest > most:
        raise DataError(
            "a user has too many records in one cell for exact 64-bit sums",
            f"use smaller cells or fewer tick bits: {most:,} fit with {lattice.bits} tick bits",
        )


def _joined(table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Returns one row a user and cell of rows divided by parts, and lists of its parts."""
    measured = ("part", "count", "present")
    grouped = [name for name in table.column_names if name not in measured]
    sums: Any = [
        ("count", "sum"),
        ("present", "sum"),
        ("part", "list"),
        ("count", "list"),
    ]
    found = table.group_by(grouped, use_threads=False).aggregate(sums)
    whole = found.select([*grouped, "count_sum", "present_sum"])
    whole = whole.rename_columns([*grouped, "count", "present"])
    lists = {
        "part": found.column("part_list").combine_chunks(),
        "records": found.column("count_list").combine_chunks(),
    }
    return whole, lists


def _queries(
    columns: Columns, records: Records, *, drop: bool, by_rows: bool, divided: Measure | None
) -> Callable[[str, Sequence[str], Sequence[Measure]], str]:
    """Returns the query of a pass, by the type of its sums and what is measured.

    Rows that are read by themselves lack no value that is to be refused, so none is counted.

    Sums of whole numbers in floating point are exact in any order below 2^53, and faster than the
    integers of 128 bits that are used beyond.
    """
    engine = columns.engine
    lattice = records.lattice
    lo, hi = (_number(end) for end in (lattice.bounds.lo, lattice.bounds.hi))
    clipped = f"greatest(least(v, {hi}), {lo})"
    tick = f"CAST(floor(({clipped} - {lo}) * {_number(lattice.factor)} + 0.5e0) AS DOUBLE)"
    tick = f"{tick} - {_number(2 ** (lattice.bits - 1))}"
    rules = records.read_rules
    bases = {f"base_{at}": rule.base(columns) for at, rule in enumerate(rules)}
    codes = [rule.code.format(name) for rule, name in zip(rules, bases, strict=True)]
    groups = ", ".join(["who", *(f"key_{at}" for at in range(len(codes)))])
    inner = {"who": columns.key(records.user), **bases}
    value = "0" if records.value is None else columns.sql[records.value]
    inner["v"] = f"CAST({value} AS DOUBLE)"
    rows = f"(SELECT {_named(inner)} FROM {engine.relation}) AS bases"
    if drop:
        there = ["v - v = 0", *(f"{name} IS NOT NULL" for name in ("who", *bases))]
        rows += f" WHERE {' AND '.join(there)}"

    def query(kind: str, powers: Sequence[str], measures: Sequence[Measure]) -> str:
        # Arithmetic tells NaN from numbers: DuckDB answers isnan() from statistics. In floating
        # point a sum is NaN where a value is missing, which is refused.
        value = f"CAST({tick} AS {kind})" if powers or divided else "1"
        value = f"CASE WHEN v - v = 0 THEN {value} END"
        if powers and kind == "DOUBLE":
            value = f"{tick} + (v - v)"
        added = {name: _SUMS[name] for name in powers}
        for name, each in zip(_MEASURES, measures, strict=False):
            added[name] = f"CAST({each.amount(lattice)} AS {kind})"
        sums = {name: f"CAST(coalesce(sum({x}), 0) AS {kind})" for name, x in added.items()}
        coded = {f"key_{at}": code for at, code in enumerate(codes)}
        read = {"tick": value}
        if measures or divided:
            read["v"] = clipped
        inside = f"SELECT {_named({'who': 'who', **coded, **read})} FROM {rows}"
        counts = {"count": "count(*)"}
        if not by_rows:
            counts["present"] = "count(tick)"
        outside = _named(counts | sums)
        found = f"SELECT {groups}, {outside} FROM ({inside}) AS ticks GROUP BY {groups}"
        if divided is not None:
            part = f"CAST({divided.amount(lattice)} AS BIGINT)"
            inside = f"SELECT ticks.*, {part} AS part FROM ({inside}) AS ticks"
            found = (
                f"SELECT {groups}, part, {outside} FROM ({inside}) AS parts GROUP BY {groups}, part"
            )
        return found

    return query


def _named(columns: dict[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in columns.items())


def _number(value: float) -> str:
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _text(column: pa.Array[Any]) -> pa.Array[Any]:
    return column.cast(pa.string()) if pa.types.is_binary(column.type) else column


def _check_rule(rule: Rule, columns: Columns) -> None:
    """Refuses a rule whose columns do not fit, or whose text is also the name of a column."""
    for name in rule.columns:
        columns.check_use(name, rule.use)
    if str(rule) in columns.names and rule.columns != (str(rule),):
        raise InputError(
            f"{str(rule)!r} is a cell rule and also a column of the source",
            "rename the column, or compute the cells as a column of another name",
        )


def _check_names(
    user: str, value: str | None, cells: tuple[Rule, ...], period: Rule | None = None
) -> None:
    names = [rule.name for rule in cells]
    rules = cells if period is None else (*cells, period)
    read_names = [user, *names] if value is None else [user, value, *names]
    sound = all(map(keys.is_name, read_names)) and len(rules) <= _MOST_RULES
    if not sound or any(len(str(rule)) > _LONGEST_RULE for rule in rules):
        raise InputError(
            "the name of a user, value or cell column, or the number of rules, is not allowed",
            f"give printable names of up to {keys.LONGEST_NAME} characters, and at most "
            f"{_MOST_RULES} cell rules of up to {_LONGEST_RULE} characters each",
        )
    read = [column for rule in cells for column in rule.columns]
    divided = () if period is None else period.columns
    roles({"value": value}, {"user": user, "cell": read, "period": divided})
    if user.casefold() in {str(rule).casefold() for rule in rules}:
        raise InputError(
            f"the user column {user!r} is also given as cell or period, which would publish who is "
            "who",
            "leave it out of by and period: these hold several users",
        )
    if len(set(names)) != len(names):
        raise InputError(
            f"two cell columns share a name: {', '.join(names)}",
            "rename one of them in the source; give hexagons different resolutions",
        )


def _check_value(value: str | None, bounds: object, relation: Relation) -> None:
    """Refuses a value without bounds, and public counts without a value."""
    if value is None and relation == "public":
        raise InputError(
            "no column of values is given",
            "name the value; or leave counts out to count users and records privately",
        )
    if (value is None) != (bounds is None):
        raise InputError(
            "a value and its public bounds belong together",
            'give for example value="minutes", bounds=(0, 240), or neither of them',
        )


def _check_times(times: str | None, period: Rule | None, relation: Relation) -> None:
    """Refuses words for the form of times where none are needed."""
    if times is None:
        return
    checks.choice(times, tuple(_FORMS), "times")
    if period is None or period.use != "time" or relation == "public":
        raise InputError(
            "times says how times of periods are written, with private counts alone",
            "leave it out, or give a period such as month(at)",
        )


def _missing(name: str | None, what: str) -> DataError:
    return DataError(
        f"the column {name!r} has {what} values",
        "clean the records; or, if it is public which rows lack a user, a cell or a finite value, "
        'declare missing="public" (--missing public) to drop these rows',
    )
