"""The cells that are answered: a public list, which the records do not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import checks
from shoal.arrays import Ints
from shoal.data import keys
from shoal.data.cell_rules import Rule
from shoal.data.key_lists import key_list
from shoal.data.sources import read_columns, read_texts_of
from shoal.errors import InputError
from shoal.privacy.unit import plain_spelling

# Cells of which each user's vector has a few numbers.
MOST_CELLS = 1 << 16
_EXAMPLE = (
    'give for example keys={"branch": ["North", "South"]}, a table, or a file; or delta="1e-9", '
    'with which cells are found that enough users have; or counts="public" if everybody may know '
    "who has how many records in which cell"
)


def cells_of(given: Any, rules: Sequence[Rule]) -> pa.Table:
    """Returns a column of keys for each rule, from a mapping, a table, or a file of keys.

    A mapping lists the keys of each rule, of which all combinations are cells; a rule of which all
    keys are known, such as `weekday`, may be left out. A table or a file has a row for each cell.
    No rule at all makes one cell.

    Raises:
        InputError: A rule without keys, keys of no rule, too many cells, or two with one text.
        DataError: Keys that are no names, or a file that cannot be read.
    """
    if not rules:
        if given:
            raise InputError("keys are given, but no cell rule", "leave keys out, or give by=")
        return pa.table({"cell": ["all"]})
    if given is None or isinstance(given, Mapping):
        found = _combined({} if given is None else given, rules)
    else:
        found = _listed(given, rules)
    if not 0 < found.num_rows <= MOST_CELLS:
        raise InputError(
            f"there are {found.num_rows:,} cells", f"list between 1 and {MOST_CELLS:,} cells"
        )
    texts = list(zip(*map(texts_of, found.columns), strict=True))
    if len(set(texts)) < len(texts):
        raise InputError(
            "two listed cells have the same text, by which records are matched",
            "list each cell once",
        )
    return found


def cells_to_find(rules: Sequence[Rule]) -> pa.Table:
    """Returns a column of texts for each rule, without a cell: which there are will be found."""
    return pa.table({rule.name: pa.array([], pa.string()) for rule in rules})


def periods_of(given: Any, rule: Rule | None) -> tuple[str, ...]:
    """Returns the public periods of a plan as sorted texts; none of records without a period.

    Raises:
        InputError: Periods of records that have none, or the other way round, or one that is
            spelled twice.
    """
    if rule is None or given is None:
        if rule is not None or given is not None:
            raise InputError(
                "the periods of the plan and the period of the records belong together",
                'give for example period=shoal.month("at") with the records, and '
                'periods=["2026-05"] or "2026-01..2026-12" with the plan',
            )
        return ()
    column = key_list(given, rule)
    names = keys.labels(pa.table({"period": column}))
    plain = plain_spelling(pa.array(names)).unique()
    if len(plain) < len(names):
        raise InputError("a period is listed twice", "list each period once")
    return tuple(sorted(names))


def positions(codes: Sequence[Any], cells: pa.Table, rows: int) -> Ints:
    """Returns where each row's cell is in the public list, by its text; -1 if it is not there.

    Each column is looked up in the public list before it is joined with those before it: numbers
    are then as small as that list, whatever keys there are in the rows.
    """
    place = np.zeros(rows, dtype=np.int64)
    listed = np.zeros(cells.num_rows, dtype=np.int64)
    for column, code in zip(cells.columns, codes, strict=False):
        known, of_cell = np.unique(np.array(texts_of(column), dtype=object), return_inverse=True)
        states, listed = np.unique(listed * len(known) + of_cell, return_inverse=True)
        array = code if isinstance(code, pa.Array) else pa.array(code)
        encoded = array.dictionary_encode()
        index = {text: at for at, text in enumerate(known.tolist())}
        at = np.array(
            [index.get(text, -1) for text in texts_of(encoded.dictionary)], dtype=np.int64
        )
        own = at[keys.numbers(encoded.indices)]
        joined = place * len(known) + own
        nearest = np.minimum(np.searchsorted(states, joined), len(states) - 1)
        is_listed = (place >= 0) & (own >= 0) & (states[nearest] == joined)
        place = np.where(is_listed, nearest, -1)
    # Every cell of the list is a state of its own.
    cell = np.zeros(cells.num_rows, dtype=np.int64)
    cell[listed] = np.arange(cells.num_rows)
    return np.where(place >= 0, cell[place], -1)


def _combined(given: Mapping[str, Any], rules: Sequence[Rule]) -> pa.Table:
    """Returns all combinations of the keys of each rule."""
    left = dict(given)
    listed = []
    for rule in rules:
        calls = [each for each in (str(rule), rule.name) if each in left]
        if not calls and not rule.domain:
            raise InputError(
                f"the keys of {str(rule)!r} are not given, and which occur is private", _EXAMPLE
            )
        values = left.pop(calls[0]) if calls else rule.domain
        listed.append(key_list(values, rule))
    if left:
        raise InputError(
            f"keys are given for {checks.shown(next(iter(left)))}, which is no cell rule",
            f"give keys for {', '.join(map(str, rules))}",
        )
    if np.prod([float(len(each)) for each in listed]) > MOST_CELLS:
        raise InputError(
            "the combinations of all keys are too many cells",
            f"list fewer keys, or a table of the cells that matter: at most {MOST_CELLS:,}",
        )
    places = np.array(list(product(*(range(len(each)) for each in listed))), dtype=np.int64)
    columns = [each.take(keys.in_arrow(places[:, at])) for at, each in enumerate(listed)]
    return pa.Table.from_arrays(columns, names=[rule.name for rule in rules])


def _listed(given: Any, rules: Sequence[Rule]) -> pa.Table:
    """Returns the rows of a table or file with a column for each rule."""
    if (
        not hasattr(given, "columns")
        and not isinstance(given, str)
        and not hasattr(given, "__fspath__")
    ):
        raise InputError(f"keys have the type {type(given).__name__}", _EXAMPLE)
    names = [rule.name for rule in rules]
    if hasattr(given, "columns"):
        wanted = {f"key {at}": name for at, name in enumerate(names)}
        found = read_columns(given, private={}, public=wanted)
    else:
        found = read_texts_of(given, names)
    columns = {rule.name: key_list(found.column(rule.name).to_pylist(), rule) for rule in rules}
    return keys.as_table(columns)


def texts_of(column: Any) -> list[str]:
    """Returns keys in the spelling in which they are compared: see `plain_spelling`."""
    texts: list[str] = plain_spelling(pc.cast(column, pa.string())).to_pylist()
    return texts
