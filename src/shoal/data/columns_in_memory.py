"""Reads columns in memory as numbers or users, and refuses columns that cannot be paired."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import Floats, Ints
from shoal.data import keys
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

Users: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any]"
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, type(None))


def finite_numbers(values: ArrayLike) -> Floats:
    """Returns private values as finite floating-point numbers; DataError for all others."""
    masked = np.ma.is_masked(values)
    # NumPy would read what is behind a mask.
    numbers = None if masked else private_numbers(values)
    if masked or (numbers is not None and not np.isfinite(numbers).all()):
        raise DataError(
            "there are missing or infinite values, or masked ones",
            "give finite numbers; if it is public which records have a value, drop the others "
            "first",
        )
    if numbers is None or numbers.size == 0:
        raise DataError(
            "the values are not real numbers, or there are none",
            "give a number for each record, for example with astype(float)",
        )
    return numbers


def column_of_numbers(values: ArrayLike) -> Floats:
    """Returns one finite number for each record; DataError for anything else."""
    numbers = finite_numbers(values)
    if numbers.ndim != 1:
        raise DataError(
            f"the values have the shape {numbers.shape}, not one number for each record",
            "give one column",
        )
    return numbers


def user_codes(users: Users, records: int) -> Ints:
    """Returns the user of each record as a number from 0, in the order of the users' keys."""
    codes = keys.encode(keys.as_array(users, "user"), "user")
    if len(codes) != records:
        raise DataError(
            f"there are {records} values and {len(codes)} keys of users",
            "give one value and one user for each record",
        )
    return codes


def array(value: object) -> NDArray[Any] | None:
    """Returns an array of numbers, texts or objects; None for a mask, ragged lists and the like."""
    if np.ma.is_masked(value):
        return None
    with suppress(Exception):
        found = np.asarray(value)
        return found if found.dtype.kind in "biufUSMmO" else None
    return None


def private_numbers(values: Any) -> Floats | None:
    """Returns private numbers in floating point, NaN where one is missing; None for anything else.

    A list is read number by number, and its rows may be lists; a column must have a numeric type of
    its library. Anything else is refused by its type, which tells nothing of a value.

    Example:
        >>> private_numbers([1, True]).tolist(), private_numbers(["1"]) is None
        ([1.0, 1.0], True)
    """
    with suppress(Exception), np.errstate(over="ignore"):
        if isinstance(values, list | tuple):
            nested = all(isinstance(each, list | tuple | np.ndarray) for each in values[:1])
            kinds = set(map(type, chain.from_iterable(values) if nested else values))
            if any(
                not issubclass(kind, _NUMBERS) or issubclass(kind, np.timedelta64) for kind in kinds
            ):
                return None
            return np.array(values, dtype=np.float64)
        if type(values).__module__.startswith("pyarrow"):
            return floats(values)
        found = array(values)
        return (
            found.astype(np.float64) if found is not None and found.dtype.kind in "biuf" else None
        )
    return None


def floats(column: Any) -> Floats:
    """Returns the nearest float of each number of an Arrow column, NaN where there is none.

    Decimals are read from their texts: Arrow's cast is wrong in the last bit at some numbers of
    digits. A column has as many digits as its longest cell, so that one person's cell could
    otherwise change how those of others are read.

    Example:
        >>> import pyarrow as pa
        >>> floats(pa.array([1, None])).tolist()
        [1.0, nan]
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    ):
        # A text would be read as the number that it may spell.
        raise pa.ArrowTypeError
    found = column.cast(pa.float64(), safe=False)
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64)


def is_object_column(column: object) -> bool:
    """Whether a column in memory holds Python objects, by its dtype alone: it has no one type.

    Example:
        >>> is_object_column(np.array([1, 2.5])), is_object_column(np.array([1, "a"], dtype=object))
        (False, True)
    """
    kind = getattr(column, "dtype", None)
    return "object" in str(getattr(getattr(kind, "categories", None), "dtype", kind)).lower()


def roles(
    private: Mapping[str, str | None], public: Mapping[str, str | Sequence[str] | None]
) -> None:
    """Refuse a private column that is named in a public role, whatever the case of its letters."""
    for role, name in private.items():
        for other, given in public.items():
            names = [given] if isinstance(given, str) else given or ()
            if name is not None and any(name.casefold() == each.casefold() for each in names):
                raise _both(f"the {role} column {name!r} is also given as {other}", role, other)


def paired(private: Mapping[str, object], public: Mapping[str, object]) -> None:
    """Refuse columns in memory that cannot be paired row by row.

    One column (one object, or one memory) may not be private and public, and columns of pandas must
    have one index: their rows may be sorted differently.
    """
    for role, column in private.items():
        for other, given in public.items():
            if column is not None and given is not None and _shared(column, given):
                raise _both(f"the {role} column is also given as {other}", role, other)
    _check_indexes({**private, **public})


def _check_indexes(columns: Mapping[str, object]) -> None:
    """Refuse columns of pandas with unlike indexes; columns without one are read by position."""
    known = {name: _index(column) for name, column in columns.items()}
    known = {name: index for name, index in known.items() if index is not None}
    if not known:
        return
    first, *others = known
    for name in others:
        one = known[first]
        other = known[name]
        if len(one) != len(other):
            continue  # Columns of different lengths are refused for that.
        todo = "sort them alike, or give .to_numpy() of each if their rows are alike already"
        if not one.equals(other):
            raise DataError(f"the {first} column has another index than the {name} column", todo)
        if not one.is_unique and not one.is_(other):
            # Equal labels of several rows do not say which row is which.
            raise DataError(
                f"the {first} column and the {name} column are of different frames, with an index "
                "that repeats itself",
                todo,
            )


def _index(column: object) -> Any:
    """The index of a column of pandas, or None: `index` of lists and of Arrow is a method."""
    found = getattr(column, "index", None)
    return found if hasattr(found, "equals") and not callable(found) else None


def _shared(one: Any, other: Any) -> bool:
    """Whether two columns are one object, or share memory as an array and its view do."""
    if one is other:
        return True
    with suppress(TypeError, ValueError):
        return bool(np.shares_memory(np.asarray(one), np.asarray(other)))
    return False


def _both(got: str, role: str, other: str) -> InputError:
    return InputError(
        got,
        f"give another column as {other}: the {other} is public, the {role} private",
    )
