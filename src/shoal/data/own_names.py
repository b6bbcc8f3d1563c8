"""Columns by the names that the source itself gives them: what an engine calls them is checked."""

from __future__ import annotations

import os
import re
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.data.source import engine_errors, engine_name, is_csv, library
from shoal.data.source_file import describe, files_of
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shoal.data.source import EngineTable

# How near names are that may be meant, and how many are told.
_ALIKE, _MOST_MEANT = 0.7, 3
_OTHER_MARKS = {";": "semicolons", "\t": "tabs"}
_NUMBERED = re.compile(r"_[0-9]+$")


def check_present(source: object, known: Sequence[str | None], needed: Sequence[str]) -> None:
    """Refuse columns that are not there, and names that an engine could take for another column's.

    Engines fold the case of names: of `speed` and `SPEED` in one table, they read either.

    Args:
        source: What the columns are of, for messages.
        known: The source's own names, in its order; None for a name that is no text.
        needed: Names that are asked for.

    Raises:
        DataError: No such column, or several whose names differ in case alone.

    Guarantees: G-REFUSE.

    Example:
        >>> check_present("a.parquet", ["speed", None, "SPEED", "cell"], ["cell"])
    """
    texts = [name for name in known if name is not None]
    folded = Counter(name.casefold() for name in texts)
    for name in needed:
        if name not in texts:
            raise DataError(
                f"no column {name!r} in {describe(source)}{_meant(source, name, texts, needed)}",
                _listed(source, texts),
                "check the spelling",
            )
        if folded[name.casefold()] > 1:
            raise DataError(
                f"columns of {describe(source)} that are called {name!r} but for case",
                "names that differ in more than case, which engines do not tell apart",
                "rename one of them",
            )


def check_kept(source: Any, table: EngineTable) -> None:
    """Refuse a source whose columns an engine calls otherwise than the source does.

    Of two columns `x` DuckDB calls one `x_1`, whatever else has that name; Ibis calls all columns
    of a frame `col0`, `col1` and so on if the name of one is no text. A column that is asked for by
    its own name would be another one then, and a private column a public one.

    Args:
        source: A Parquet file, or a table that an engine holds.
        table: The same as a table of Ibis.

    Raises:
        DataError: A name that is another one, or that is not unlike all others of its table.
        Exception: What a file without a schema raises: its text may be private.

    Guarantees: G-REFUSE.

    Example:
        >>> import ibis, pyarrow as pa
        >>> table = ibis.memtable(pa.table({"speed": [1.0], "Speed": [2.0]}))
        >>> check_kept(table, table)
        Traceback (most recent call last):
        shoal.errors.DataError: columns of the ibis table that an engine calls by other names; ...
    """
    if isinstance(source, str | os.PathLike):
        kept = _names_of_file(source) == list(table.schema())
    elif library(source) == "ibis" and engine_name(table) == "duckdb":
        kept = not any(map(_numbered_twice, _stored(table)))
    elif library(source) == "pyspark":
        kept = list(source.columns) == list(table.schema())
    else:
        kept = True
    with engine_errors(source):
        sound = kept and _sound(table)
    if not sound:
        raise DataError(
            f"columns of {describe(source)} that an engine calls by other names",
            "names that are texts, not empty, and differ in more than case",
            "rename the columns, also those that are not needed",
        )


def _sound(table: EngineTable) -> bool:
    """Whether no engine renames a column of an expression, or of the frames behind it."""
    import ibis.expr.operations as ops

    tables = table.op().find(ops.Relation)
    return all(_apart(list(each.schema)) for each in tables) and all(
        _same(each) for each in tables if isinstance(each, ops.InMemoryTable)
    )


def _apart(names: Sequence[str]) -> bool:
    return all(names) and len({name.casefold() for name in names}) == len(names)


def _stored(table: EngineTable) -> Iterator[list[str]]:
    """Names of columns of the tables, views and queries that an expression reads in its engine."""
    import ibis.expr.operations as ops

    for each in table.op().find(ops.Relation):
        if isinstance(each, ops.DatabaseTable | ops.SQLQueryResult | ops.SQLStringView):
            yield list(each.schema)


def _numbered_twice(names: Sequence[str]) -> bool:
    """Whether there are `x`, `x_1` and `x_1_1`, as DuckDB calls `x`, `x` and `x_1` of one file.

    A view of files does not say what its columns are called in there.
    """
    folded = {name.casefold() for name in names}
    shorter = {name: _NUMBERED.sub("", name) for name in folded if _NUMBERED.search(name)}
    return any(
        first in shorter and first in folded and shorter[first] in folded
        for first in shorter.values()
    )


def _same(node: Any) -> bool:
    """Whether the columns of a table in memory are called in Ibis as they are."""
    frame, names = getattr(node.data, "obj", None), list(node.schema)
    # Datasets have names in their schema alone; what Ibis has made of no frame has only its own.
    found = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if found is None:
        found = getattr(getattr(frame, "schema", None), "names", names)
    # Ibis leaves nothing of the names that it has replaced.
    replaced = library(frame) == "pandas" and names == [f"col{at}" for at in range(len(names))]
    return list(found) == names and not replaced


def _names_of_file(path: str | os.PathLike[str]) -> list[str]:
    import pyarrow.parquet as pq

    with Path(files_of(path)[0]).open("rb") as file:
        return list(pq.read_schema(file).names)


def _meant(source: object, name: str, known: Sequence[str], needed: Sequence[str]) -> str:
    """A question for the columns whose names are nearest."""
    # The first line of a CSV file may be a record: only what is called so elsewhere says it is not.
    unsure = is_csv(source) and not any(each in known for each in needed)
    found = near(name, known, cutoff=1.0 if unsure else _ALIKE)
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""


def near(name: str, known: Sequence[str], *, cutoff: float = _ALIKE) -> list[str]:
    """Names that are alike but for case, blanks, signs and a few letters, nearest first.

    Example:
        >>> near("tail num", ["dest", "TailNum"]), near("sped", ["speed", "dest"])
        (['TailNum'], ['speed'])
    """
    plain: dict[str, list[str]] = {}
    for each in sorted(set(known)):
        plain.setdefault(_letters(each), []).append(each)
    found = get_close_matches(_letters(name), plain, n=_MOST_MEANT, cutoff=cutoff)
    return [each for alike in found for each in plain[alike]][:_MOST_MEANT]


def _letters(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())


def _listed(source: object, known: Sequence[str]) -> str:
    if is_csv(source):
        # Without a line of names the first record would be told.
        told = f"one of the {len(known)} columns that the first line names, with commas between"
        for mark, called in _OTHER_MARKS.items():
            if len(known) == 1 and mark in known[0]:
                return f"{told}: the file seems to be separated by {called}, write it with commas"
        return told
    return f"one of {', '.join(sorted(known))}" if known else "columns whose names are texts"
