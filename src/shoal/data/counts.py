"""Holds the public counts of records of each user in each cell, without names of users."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import checks, documents, files
from shoal.arrays import Ints
from shoal.data import keys
from shoal.data.columns_in_memory import array, paired
from shoal.data.gaps import gaps
from shoal.data.memberships import Memberships
from shoal.documents.strict_json import strict
from shoal.errors import DataError, DocumentError, InputError
from shoal.files.tables import Tabular, key_name
from shoal.files.text_table import Shown, TextTable, first_rows
from shoal.privacy.unit import Periods

if TYPE_CHECKING:
    from shoal.data.cell_rules import Rule

SCHEMA = "shoal.counts/1"
_PARTS = ("cells_per_user", "cell", "count")
# Of a record, if users count for at most so many of theirs.
_UNITS = 64
# Planners and mechanisms add up counts times up to 2^24 in whole numbers of 64 bits.
_MOST_RECORDS = 2**36


@dataclass(frozen=True)
class Summary:
    """Public facts of counts at a glance.

    Attributes:
        users: L, how many users there are.
        cells: G, how many cells there are.
        records: How many records there are.
        memberships: Pairs of a user and a cell with a record.
        cells_per_user: G_1, the most cells of one user.
        count_quantiles: Of the records of a membership: minimum, quartiles, maximum.
        users_per_cell: Of the users of a cell: minimum, quartiles, maximum.
    """

    users: int
    cells: int
    records: int
    memberships: int
    cells_per_user: int
    count_quantiles: tuple[int, ...]
    users_per_cell: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Counts(Shown, Tabular):
    """Contribution counts m_{g,l} of L users in G cells, as sorted sparse triples.

    Users are anonymous: their rows are ordered by what they contribute (most cells first, then
    most records), so nothing in here, or in a file made from it, tells who is who. Users who
    contribute the same have equal rows; which of these a user's values belong to is decided by the
    order of the users' public keys, never by the order of the records.

    Attributes:
        cells: One row a cell with its key columns, sorted by key.
        user: User of each membership, 0..L-1, ascending, shape (memberships,).
        cell: Cell of each membership, 0..G-1, ascending within a user; the same shape.
        count: Records of the membership, at least 1; the same shape.
        origin: The file that was counted, or from which these counts were loaded, which no output
            may replace; None if there is none.
        rules: The cell rules by which records were counted; none of counts from elsewhere.
        periods: The periods of the records, if a user and period takes the place of a user.
        records_per_user: For how many of its records a user counts at most; None without a limit.
            With one, counts are in units of which a record has `units`.

    Raises:
        InputError: The columns are no such triples.

    Example:
        >>> counts = Counts.from_counts(["a", "a", "b"], ["x", "y", "x"], [2, 1, 5])
        >>> counts.totals.tolist(), counts.summary().cells_per_user
        ([7, 1], 2)
    """

    cells: pa.Table
    user: Ints
    cell: Ints
    count: Ints
    origin: str | None = field(default=None, repr=False)
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    periods: Periods | None = None
    records_per_user: int | None = None

    def __post_init__(self) -> None:
        if not self._is_sorted():
            raise InputError(
                "the users and cells are not sorted, or are not whole numbers from 0",
                "make the counts with Counts.from_counts",
            )

    def _is_sorted(self) -> bool:
        """Whether users and cells are sorted whole numbers from 0, each with a record."""
        user = self.user
        cell = self.cell
        count = self.count
        cells = self.cells.num_rows
        if not 0 < len(user) == len(cell) == len(count) or not 0 < cells <= len(cell):
            return False
        step = np.diff(user, prepend=-1)
        return bool(
            ((step == 1) | ((step == 0) & (np.diff(cell, prepend=cells) > 0))).all()
            and step[0] == 1
            and 0 <= cell.min() <= cell.max() < cells
            and (np.bincount(cell, minlength=cells) > 0).all()
            and count.min() >= 1
            and count.sum(dtype=np.float64) <= _MOST_RECORDS
        )

    @classmethod
    def from_counts(
        cls,
        users: Sequence[Any] | NDArray[Any] | pa.Array[Any],
        cells: Sequence[Any] | NDArray[Any] | pa.Array[Any] | pa.Table | Mapping[str, Any],
        counts: Sequence[int] | NDArray[np.integer[Any]],
    ) -> Counts:
        """Counts from three columns of equal length, one row per user and cell.

        Args:
            users: Who, shape (memberships,); any discrete type. Names are not kept.
            cells: Where, shape (memberships,), or a table of as many rows for several key columns.
                A column whose name is one of a result's, such as `status`, becomes `status_`.
            counts: How many records, of the same shape; whole numbers of at least 1.

        Raises:
            DataError: Lengths differ, a null, a count below 1, a user twice in a cell, or no rows.
        """
        number = array(counts)
        if number is not None and number.size == 0:
            raise DataError("there are no records", "check the source and its filters")
        table = keys.as_table(cells, key_name)
        if number is None or number.ndim != 1 or number.dtype.kind not in "iu":
            kind = "mixed type" if number is None else f"type {number.dtype}"
            raise DataError(f"counts are of {kind}", "give one integer per row")
        if float(number.sum(dtype=np.float64)) > _MOST_RECORDS or int(number.min()) < 1:
            raise DataError(
                "a count is below 1, or the sum of all counts is larger than any table",
                f"leave empty rows out, and give at most {_MOST_RECORDS:,} records in all",
            )
        paired({}, {"user": users, "count": counts} | _named(cells))
        who = keys.as_array(users, "user")
        if not len(who) == table.num_rows == len(number):
            raise DataError(
                f"there are {len(who)} users, {table.num_rows} cells and {len(number)} counts",
                "give three columns of one length, one row for each user and cell",
            )
        return build(who, table, number.astype(np.int64))[0]

    def __repr__(self) -> str:
        return f"<Counts of {self.n_users} users, {self.n_cells} cells>"

    @property
    def n_users(self) -> int:
        """The number L of users with at least one record."""
        return int(self.user[-1]) + 1

    @property
    def n_cells(self) -> int:
        """The number G of cells with at least one record."""
        return int(self.cells.num_rows)

    @cached_property
    def memberships(self) -> Memberships:
        """These counts without the keys of cells."""
        return Memberships(self.user, self.cell, self.count, self.n_users, self.n_cells)

    @property
    def totals(self) -> Ints:
        """The records n_g of each cell, shape (cells,)."""
        return self.memberships.totals

    @property
    def units(self) -> int:
        """In how many units each record is counted."""
        return 1 if self.records_per_user is None else _UNITS

    @property
    def records(self) -> Ints:
        """The records of each cell, as far as they count, in whole numbers, shape (cells,)."""
        return np.rint(self.totals / self.units).astype(np.int64)

    def at_most(self, records_per_user: int) -> Counts:
        """Returns the counts in which each user counts for at most so many of its records.

        All records of a user with m of them weigh min(m, records_per_user)/m, in 64ths.

        Args:
            records_per_user: A whole number of at least 1.

        Returns:
            Counts in units; these counts themselves if nobody has more records.

        Raises:
            InputError: No such number, or counts of users who are limited already.

        Example:
            >>> counts = Counts.from_counts(["a", "a", "b"], ["x", "y", "x"], [6, 2, 3])
            >>> (counts.at_most(4).count / 64).tolist()
            [3.0, 1.0, 3.0]
        """
        most = checks.whole(records_per_user, "records_per_user", least=1, example=5)
        if self.records_per_user is not None:
            raise InputError(
                "records_per_user is given twice", "give it once, with the plan or the records"
            )
        whole = np.bincount(self.user, self.count)
        if whole.max() <= most:
            return self
        part = np.minimum(whole, most) / whole
        units = np.rint(_UNITS * self.count * part[self.user])
        limited = np.maximum(units, 1).astype(np.int64)
        return replace(self, count=limited, records_per_user=most)

    @property
    def users_per_cell(self) -> Ints:
        """Users of each cell, shape (cells,)."""
        return self.memberships.users_per_cell

    @property
    def cells_per_user(self) -> Ints:
        """The cells G_l of each user, shape (users,)."""
        return self.memberships.cells_per_user

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable name a cell: its key columns joined by a middle dot."""
        return tuple(keys.labels(self.cells))

    @cached_property
    def key_rows(self) -> tuple[tuple[object, ...], ...]:
        """The keys of each cell, as JSON has them."""
        columns = keys.to_document(self.cells)["columns"]
        return tuple(zip(*(column["values"] for column in columns), strict=True))

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """Which hours, days or other slots between the first and the last have no record."""
        return tuple(gaps(self.rules, self.cells))

    @property
    def _columns(self) -> tuple[Ints, ...]:
        """User, cell and count of each membership."""
        return self.user, self.cell, self.count

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of cells, counts and periods: equal for equal counts whoever the users are."""
        state = hashlib.sha256(documents.canonical_bytes(keys.to_document(self.cells)))
        for column in self._columns:
            state.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        if self.periods is not None:
            state.update(documents.canonical_bytes({"periods": self.periods.listed}))
        if self.records_per_user is not None:
            limit = {"records_per_user": self.records_per_user}
            state.update(documents.canonical_bytes(limit))
        return state.hexdigest()

    def same_as(self, other: Counts) -> bool:
        """Whether cells, counts and periods are equal, as their fingerprints then are."""
        columns = zip(self._columns, other._columns, strict=True)
        equal = all(np.array_equal(one, another) for one, another in columns)
        limits = self.records_per_user, other.records_per_user
        equal = equal and self.periods == other.periods and limits[0] == limits[1]
        return equal and keys.to_document(self.cells) == keys.to_document(other.cells)

    @property
    def of_whom(self) -> str:
        """The word for those whose records are counted: user, or user-month and the like."""
        return "user" if self.periods is None else f"user-{self.periods.kind}"

    def table(self) -> pa.Table:
        """One row a cell: its keys, users and records."""
        found = self.cells.append_column("users", pa.array(self.users_per_cell))
        return found.append_column("records", pa.array(self.records))

    @property
    def _sources(self) -> files.Places:
        """The file that was counted."""
        return {"records": self.origin}

    def _text(self) -> TextTable:
        head = (
            f"{self.records.sum():,} records of {self.n_users:,} {self.of_whom}s in "
            f"{self.n_cells:,} cells"
        )
        return first_rows(head, self.table(), self.gaps)

    def summary(self) -> Summary:
        """Users, cells, records, the most cells of one user and quantiles of the counts."""
        return Summary(
            users=self.n_users,
            cells=self.n_cells,
            records=int(self.records.sum()),
            memberships=len(self.count),
            cells_per_user=int(self.cells_per_user.max()),
            count_quantiles=_quartiles(self.count),
            users_per_cell=_quartiles(self.users_per_cell),
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the counts as a versioned JSON document.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the records, which are never replaced.

        Guarantees: G-REFUSE.
        """
        data = documents.canonical_bytes(self.to_document())
        files.write_bytes(path, data, self._sources, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counts:
        """Read what `save` wrote, or raise a `DocumentError` if it is damaged or another file."""
        # An absolute path, whatever the working folder is later.
        what = f"counts {checks.shown(os.fspath(path))}"
        counts = cls.from_document(strict(documents.read_bytes(path, "counts"), what))
        return replace(counts, origin=os.path.abspath(path))

    def to_document(self) -> documents.Document:
        """Returns the counts as a JSON object; counts are packed integer arrays."""
        return dict(self._document)

    @cached_property
    def _document(self) -> documents.Document:
        more: dict[str, Any] = {}
        if self.periods is not None:
            more["periods"] = self.periods.listed
        if self.records_per_user is not None:
            more["records_per_user"] = self.records_per_user
        return {
            "schema": SCHEMA,
            "cells": keys.to_document(self.cells),
            **{name: documents.pack_integers(getattr(self, name)) for name in _PARTS},
            **more,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_document(cls, document: object) -> Counts:
        """Inverts `to_document`, checked against its fingerprint."""
        found = documents.expect(documents.plain(document, "counts"), SCHEMA, "counts")
        try:
            if found.keys() - {"periods", "records_per_user"} != {
                "schema",
                "cells",
                "fingerprint",
                *_PARTS,
            }:
                raise KeyError
            periods = Periods.of_list(found["periods"]) if "periods" in found else None
            lengths, cell, count = (documents.unpack_integers(found[name], name) for name in _PARTS)
            sound = len(lengths) and lengths.max() <= len(cell) == lengths.sum()
            user = np.repeat(np.arange(len(lengths)), lengths if sound else 0)
            cells = keys.from_document(found["cells"])
            limit = found.get("records_per_user")
            counts = cls(cells, user, cell, count, periods=periods, records_per_user=limit)
            if counts.fingerprint != found["fingerprint"]:
                raise KeyError
        except (KeyError, TypeError, ValueError):
            raise DocumentError("the counts is damaged", "write the file again") from None
        vars(counts)["_document"] = found  # packing again would only take time
        return counts


def build(
    users: pa.Array[Any],
    cells: pa.Table,
    counts: Ints,
    *,
    finish: Callable[[pa.Table], pa.Table] = lambda cells: cells,
    origin: str | None = None,
    rules: tuple[Rule, ...] = (),
) -> tuple[Counts, Ints]:
    """Returns the canonical counts of rows (user, cell, count), and its order of the rows.

    Users come by what they contribute, ties by key: mechanisms treat users of equal counts
    differently (arrays, suppressed users), so that an order by rows would let one user's values,
    which rows may follow, change the part that others have.
    """
    who = keys.encode(users, "user")
    table, where = keys.encode_cells(cells)
    place = who * table.num_rows + where
    order = np.argsort(place)
    who = who[order]
    where = where[order]
    counts = counts[order]
    if not np.diff(place[order]).all():
        raise DataError("a user occurs twice in one cell", "add the counts up")
    # The sum of the marks of a user is the same for users with equal counts, and hardly for others.
    mark = _mix(where.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    mark = _mix(mark ^ counts.astype(np.uint64))
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    lengths = np.diff(starts, append=len(order))
    # Ties, by equal counts or by chance, stay in the order of `who`, which is that of public keys.
    rank = np.lexsort((np.add.reduceat(mark, starts), -np.add.reduceat(counts, starts), -lengths))
    lengths = lengths[rank]
    # The rows of each user, which are neighbours, move to the user's new place.
    move = np.repeat(starts[rank] - np.cumsum(lengths) + lengths, lengths) + np.arange(len(counts))
    user = np.repeat(np.arange(len(lengths)), lengths)
    return Counts(finish(table), user, where[move], counts[move], origin, rules), order[move]


def _named(cells: Any) -> dict[str, Any]:
    """Returns columns of cells by the names that messages use."""
    columns = cells if isinstance(cells, Mapping) else {"": cells}
    return {f"cell {name}".strip(): each for name, each in columns.items()}


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns scrambled numbers (splitmix64), which only have to be the same on every machine."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _quartiles(values: Ints) -> tuple[int, ...]:
    """Returns minimum, quartiles and maximum."""
    found = np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
    return tuple(int(each) for each in found)
