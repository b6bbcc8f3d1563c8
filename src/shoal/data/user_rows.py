"""Makes one row a user of a log: public columns, and outcomes of the user's own rows.

One query groups the rows by user in the engine that holds them. Of the rows of a user only whole
numbers leave it, which no order of rows, no engine and no other user can change. A row is rounded
to 2^31 parts or more of the outcome's range, and counts for at most 2^19 such ranges.
Source: docs/theory/experiments.md#outcomes-of-users.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import Bools, Floats, Ints
from shoal.data.columns_in_memory import roles
from shoal.data.engines import DuckDB
from shoal.data.keys import warn_of_words
from shoal.data.places import located
from shoal.data.sources import Columns, described, opened
from shoal.data.types import Use
from shoal.errors import DataError, InputError

# What the outcome of a user may be, besides the last one.
MEAN = "mean"
SUM = "sum"
ANY = "any"
# The number of rows with an outcome, which only ratios ask for.
ROWS = "rows"
_LAST = re.compile(r"last:(.+)", re.DOTALL)
WAYS = "mean, sum, any, or last:COLUMN with a column of times"
# A range has between 2^31 and 2^32 parts.
_FINE_BITS = 32
# A row counts for at most so many parts.
_MOST_PARTS = 2**51
# Parts leave the engine as halves, whose sums fit 64 bits for 2^31 rows.
_HALF = 2**20
# Sums of halves, and outcomes in parts, are cut here: far outside of every range.
_MOST_HALVES = 2**42
_FARTHEST_PARTS = 2**43
# The lower end of the range of a sum is at most this many ranges from 0.
_MOST_RANGES = 1000


class PerUser(NamedTuple):
    """What the outcome of a user is: of which column, how, and within which range."""

    column: str
    way: str
    low: float
    high: float

    @property
    def time(self) -> str | None:
        """The column of times that says which row is the last."""
        return time_of(self.way)

    @property
    def start(self) -> float:
        """The number from which parts are counted."""
        return self.low if self.way == MEAN or self.time else 0.0

    @property
    def scale(self) -> float:
        """How many parts one unit has: a power of 2, so that whole numbers are exact."""
        _, exponent = math.frexp(self.high - self.low)
        return 2.0 ** (_FINE_BITS - exponent)

    @property
    def needs_rows(self) -> bool:
        """Whether a user without a row that has an outcome has none."""
        return self.way == MEAN or self.time is not None


class Users(NamedTuple):
    """Public columns by their roles and private outcomes, one row a user."""

    public: dict[str, Any]
    outcomes: tuple[Floats, ...]


def time_of(way: str) -> str | None:
    """Returns the column of times of `last:COLUMN`, and None of other ways; InputError if none."""
    last = _LAST.fullmatch(way)
    if last is not None:
        return last[1]
    if way not in (MEAN, SUM, ANY, ROWS):
        raise InputError(f"there is no outcome per user {way!r}", f"give {WAYS}")
    return None


def read_users(
    data: object,
    user: str,
    public: Mapping[str, str | None],
    outcomes: Sequence[PerUser],
    *,
    missing: str = "refuse",
) -> Users:
    """Returns a row for each user of a log. The outcomes, which are NaN if missing, are private.

    Where it is public which rows and users lack something (`missing`), these are left out.
    """
    named = {role: name for role, name in public.items() if name is not None}
    private, uses = _uses(user, named, outcomes)
    place = located(data)
    with opened(place, uses, private) as columns:
        table = columns.engine.run(_query(columns, user, named, outcomes))
        columns.check_rows(int(table.column("every").to_numpy().sum()))
    if table.num_rows == 0:
        raise DataError(f"{described(place)} has no rows", "check the source and its filters")
    table = _with_users(table, user, missing)
    found = {
        role: _one_value(table, at, name, user, missing)
        for at, (role, name) in enumerate(named.items())
    }
    numbers = [_outcome(each, *_numbers(table, at)) for at, each in enumerate(outcomes)]
    known = np.ones(table.num_rows, dtype=bool)
    if missing == "public":
        for column in found.values():
            known &= column.is_valid().to_numpy(zero_copy_only=False)
        for each in numbers:
            known &= ~np.isnan(each)
    for role, name in named.items():
        found[role] = found[role].filter(pa.array(known))
        warn_of_words(name, found[role])
    return Users(found, tuple(each[known] for each in numbers))


def _uses(
    user: str, public: Mapping[str, str], outcomes: Sequence[PerUser]
) -> tuple[list[str], dict[str, Use]]:
    """Returns the private columns, and the use of every column."""
    private = {}
    names = ["outcome"] if len(outcomes) == 1 else ["numerator", "denominator"]
    uses: dict[str, Use] = {name: "public" for name in public.values()}
    uses[user] = "key"
    for role, each in zip(names, outcomes, strict=False):
        private[role] = each.column
        uses[each.column] = "number"
        if each.start == 0 and abs(each.low) > _MOST_RANGES * (each.high - each.low):
            raise InputError(
                "the range of a sum is narrow and far from 0",
                f"give a domain within {_MOST_RANGES} times its width of 0",
            )
    for at, each in enumerate(outcomes):
        if each.time is None:
            continue
        private[f"times {at}"] = each.time
        if uses.setdefault(each.time, "time") == "number":
            raise InputError(f"the column {each.time!r} is the outcome", "name a column of times")
    roles(private, {"user": user, **public})
    return [*private.values()], uses


def _query(
    columns: Columns, user: str, public: Mapping[str, str], outcomes: Sequence[PerUser]
) -> str:
    """Returns SQL of one row a user: rows, the ends of public columns, and whole numbers."""
    key = columns.key(user)
    parts = [f"{key} IS NULL AS nobody", "count(*) AS every"]
    for at, name in enumerate(public.values()):
        column = columns.key(name)
        parts += [f"min({column}) AS least{at}", f"max({column}) AS most{at}"]
        parts.append(f"count({column}) AS known{at}")
    parts += [_halves(columns, each, at) for at, each in enumerate(outcomes)]
    rows = f"SELECT {', '.join(parts)} FROM {columns.engine.relation} GROUP BY {key}"
    # In the order of names: that of groups may follow how many rows there are.
    return f"{rows} ORDER BY {key}"


def _halves(columns: Columns, outcome: PerUser, at: int) -> str:
    """Returns SQL of a user's parts as two halves, and of the number of rows with an outcome."""
    value = f"CAST({columns.sql[outcome.column]} AS DOUBLE)"
    known = f"{value} IS NOT NULL AND NOT isnan({value})"
    time = None if outcome.time is None else columns.sql[outcome.time]
    if time is not None:
        known += f" AND {time} IS NOT NULL"
    counted = {
        ANY: f"CASE WHEN {value} <> 0 THEN 1e0 ELSE 0e0 END",
        ROWS: "1e0",
    }
    counted_from = f"{counted.get(outcome.way, value)} - ({_double(outcome.start)})"
    parts = f"({counted_from}) * {_double(outcome.scale)}"
    most = _double(_MOST_PARTS)
    whole = f"floor(least(greatest({parts}, -{most}), {most}) + 0.5e0)"
    # Engines leave NULL out of `greatest`: a row without an outcome would count as the least one.
    row = f"CASE WHEN {known} THEN {whole} END"
    total = "max" if outcome.way == ANY else "sum"
    if time is not None:
        pair = f"named_struct('t', {time}, 'x', {whole})"
        if isinstance(columns.engine, DuckDB):
            pair = f"struct_pack(t := {time}, x := {whole})"
        # Of rows of one time the one with the largest outcome is the last, in any order of rows.
        row = f"max(CASE WHEN {known} THEN {pair} END).x"
        total = ""
    half = _double(_HALF)
    high = f"floor(({row}) / {half})"
    low = f"({row}) - {high} * {half}"
    return (
        f"CAST({total}({high}) AS BIGINT) AS high{at}, CAST({total}({low}) AS BIGINT) AS low{at}, "
        f"count(CASE WHEN {known} THEN 1 END) AS rows{at}"
    )


def _double(number: float) -> str:
    """Returns SQL of a number in floating point, and not of a decimal."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


def _with_users(table: pa.Table, user: str, missing: str) -> pa.Table:
    """Returns the rows of users, and refuses rows without one unless they may be left out."""
    nobody = table.column("nobody")
    if missing != "public" and bool(nobody.to_numpy().any()):
        raise DataError(
            f"some rows have no {user!r}",
            'fill them in, or plan again with missing="public" (--missing public), which leaves '
            "them out",
        )
    return table.filter(pc.invert(nobody))


def _one_value(table: pa.Table, at: int, name: str, user: str, missing: str) -> Any:
    """Returns the value that each user has in all rows in a public column."""
    least: Any = table.column(f"least{at}").combine_chunks()
    most: Any = table.column(f"most{at}").combine_chunks()
    known = table.column(f"known{at}").to_numpy()
    same: Any = pc.equal(least, most)
    fits = same.fill_null(False).to_numpy(zero_copy_only=False)
    fits &= known == table.column("every").to_numpy()
    if missing == "public":
        fits |= known == 0
    if not fits.all():
        raise DataError(
            f"{name!r} is not one value for each {user!r}: it changes, or is missing in some rows",
            "the arm is the one that a user was assigned to, and covariates are from before the "
            "experiment: join them to the log from the table of assignments",
        )
    return least.cast(pa.string()) if pa.types.is_binary(least.type) else least


def _numbers(table: pa.Table, at: int) -> tuple[Ints, Ints, Ints]:
    """Returns the two halves and the rows of an outcome; nothing is 0."""
    columns: Any = [table.column(f"{name}{at}") for name in ("high", "low", "rows")]
    high, low, rows = (each.fill_null(0).to_numpy() for each in columns)
    return high, low, rows


def _outcome(outcome: PerUser, high: Ints, low: Ints, rows: Ints) -> Floats:
    """Returns the outcome of each user, within its range; NaN if there is none."""
    if outcome.way == MEAN:
        # The exact quotient of the sum by the rows, from halves that fit 64 bits.
        many = np.maximum(rows, 1)
        whole, rest = np.divmod(high, many)
        parts = whole * _HALF + (rest * _HALF + low) // many
    else:
        parts = np.clip(high, -_MOST_HALVES, _MOST_HALVES) * _HALF + low
    near = np.clip(parts, -_FARTHEST_PARTS, _FARTHEST_PARTS)
    value = outcome.start + near / outcome.scale
    inside = np.clip(value, outcome.low, outcome.high)
    is_missing: Bools = (rows == 0) & outcome.needs_rows
    return np.where(is_missing, np.nan, inside)
