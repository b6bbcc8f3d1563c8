"""What one pass over private records leaves: sums of each user in each public cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import Ints
from shoal.data import keys
from shoal.data.cell_rules import Rule
from shoal.data.memberships import Memberships
from shoal.data.records import Measure, Records
from shoal.presence.keys import positions
from shoal.privacy.unit import plain_spelling


@dataclass(frozen=True, eq=False)
class Members:
    """Each user in each cell that is answered, sorted by user and public number of the cell.

    Attributes:
        memberships: Who has how many records in which cell. Private, also how many users there are.
        ticks: Sum of ticks of each membership, from 0, shape (memberships,).
        measured: Sums of each measure, shape (measures, memberships).
    """

    memberships: Memberships
    ticks: Ints = field(repr=False)
    measured: Ints = field(repr=False)


def members(
    records: Records,
    cells: pa.Table,
    measures: Sequence[Measure] = (),
    periods: Sequence[str] = (),
) -> Members:
    """Returns what a pass over the records leaves for the cells and periods of public lists.

    With periods a user in one period takes the place of a user, and rows of others fall out.

    Rows without a user, a key of the list, or a finite value fall out by the user's own records:
    nobody else's decide how a row is read, and nothing is said of them. The order of the rows is
    that of users and cells, whatever the engine's, so that sums of floating-point numbers of one
    user are the same whoever else is there. Users and codes with one plain spelling are one.
    """
    table = records.private_groups(measures)
    cell = positions(codes_of(records, table), cells, table.num_rows)
    who = owners(records, table, periods)
    inside = np.flatnonzero((cell >= 0) & (who >= 0))
    _, user = np.unique(who[inside], return_inverse=True)
    n_users = int(user.max(initial=-1)) + 1
    place = user.astype(np.int64) * cells.num_rows + cell[inside]
    pairs, member = np.unique(place, return_inverse=True)

    def added(name: str) -> Ints:
        # Whole numbers in floating point, which are exact in any order.
        numbers = keys.numbers(table.column(name))[inside].astype(np.float64)
        return np.bincount(member, numbers, len(pairs)).astype(np.int64)

    count = added("count")
    half = records.lattice.bits - 1
    ticks = added("centred") + (count << half)
    measured = np.zeros((len(measures), len(pairs)), dtype=np.int64)
    for at in range(len(measures)):
        measured[at] = added(f"measure_{at}")
    many = cells.num_rows
    found = Memberships(pairs // many, pairs % many, count, n_users, many)
    return Members(found, ticks, measured)


def codes_of(records: Records, table: pa.Table) -> list[Any]:
    """Returns the key of each rule in every row of a pass."""
    return [
        rule.keys(table.column(at + 1).combine_chunks()) for at, rule in enumerate(records.rules)
    ]


def owners(records: Records, table: pa.Table, periods: Sequence[str]) -> Ints:
    """Returns the number of the user, or of the user in its period, in every row of a pass.

    It is -1 in a row whose period is not listed.
    """
    who = _users(table.column(0).combine_chunks()).astype(np.int64)
    if records.period is None:
        return who
    code = table.column(len(records.rules) + 1).combine_chunks()
    listed = pa.table({"period": pa.array(periods, pa.string())})
    period = positions([_names(records.period, code)], listed, table.num_rows)
    return np.where(period >= 0, who * max(len(periods), 1) + period, -1)


def _users(names: pa.Array[Any]) -> Ints:
    """Returns a number for each user: one for 007 and 7, so that nobody counts as two."""
    encoded = names.dictionary_encode()
    number: Ints = keys.numbers(encoded.indices)
    if pa.types.is_integer(names.type):
        return number
    plain = plain_spelling(pc.cast(encoded.dictionary, pa.string())).dictionary_encode()
    spelling: Ints = keys.numbers(plain.indices)
    return spelling[number]


def _names(rule: Rule, code: pa.Array[Any]) -> pa.Array[Any]:
    """Returns the names of periods as ledgers have them; null where there is no period."""
    encoded = code.dictionary_encode()
    if not len(encoded.dictionary):
        # Without any name there is no type of names, either.
        return pa.nulls(len(code), pa.string())
    column = keys.as_array(rule.keys(encoded.dictionary), rule.name)
    names = pa.array(keys.labels(pa.table({"period": column})), pa.string())
    return names.take(encoded.indices)
