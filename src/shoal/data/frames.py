"""Frames in memory whose private columns have no type of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.checks.python_objects import untyped
from shoal.data.source import engine_errors, held, in_memory
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shoal.data.source import EngineTable


def check_typed(source: Any, private: Mapping[str, str | None]) -> None:  # noqa: ANN401
    """Refuse private columns of Python objects, in a frame of pandas or Polars.

    Ibis would find a type that suits all cells: with one user's 35 digits everybody's decimals have
    35, and with one text nobody's number is one.

    Args:
        source: A source; tables of other kinds have types by themselves.
        private: Role and column of what is protected.

    Raises:
        DataError: A column of objects, whatever is in it.

    Guarantees: G-CELLWISE.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"speed": pd.Series([1, 2.5], dtype=object)})
        >>> check_typed(frame, {"value": "speed"})
        Traceback (most recent call last):
        shoal.errors.DataError: the value column 'speed' holds Python objects; allowed: ...
    """
    source = held(source)
    if type(source).__module__.split(".")[0] not in {"pandas", "polars"}:
        return
    with engine_errors(source):
        columns = {role: source[name] for role, name in private.items() if name in source.columns}
    for role, column in columns.items():
        if untyped(column):
            raise _untyped(role, str(private[role]))


def check_guessed(table: EngineTable) -> None:
    """Refuse an expression of Ibis over frames for which Ibis has guessed types of numbers.

    Which of their columns becomes the private one is not known, so none may be guessed. The columns
    of a frame alone have their names: see `check_typed`.

    Raises:
        DataError: A column of objects that is read as numbers.

    Guarantees: G-CELLWISE.
    """
    if in_memory(table):
        return
    with engine_errors(table):
        guessed = [
            name
            for frame, schema in _frames(table)
            for name, kind in schema.items()
            if kind.is_numeric() and untyped(frame[name])
        ]
    if guessed:
        raise _untyped("numeric", guessed[0])


def _frames(table: EngineTable) -> Iterator[tuple[Any, Any]]:
    """Frames that an expression of Ibis reads, with the types that Ibis gives their columns."""
    import ibis.expr.operations as ops

    for node in table.op().find(ops.InMemoryTable):
        frame = getattr(node.data, "obj", None)
        if type(frame).__module__.split(".")[0] == "pandas":
            yield frame, node.schema


def _untyped(role: str, name: str) -> DataError:
    return DataError(
        f"the {role} column {name!r} holds Python objects",
        "a column of one type for all its cells, such as float64",
        "convert it first, for example with astype(float)",
    )
