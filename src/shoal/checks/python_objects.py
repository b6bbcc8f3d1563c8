"""Columns of Python objects: only a look at every cell would tell what they hold."""

from __future__ import annotations

from shoal.errors import is_failure


def untyped(column: object) -> bool:
    """Whether a column in memory holds Python objects, by its dtype alone.

    A library that reads such a column gives it the type that suits all of its cells, so that one
    cell decides how the others are read. A list has no dtype: it is not said to be untyped.

    Example:
        >>> import numpy as np
        >>> untyped(np.array([1, 2.5])), untyped(np.array([1, 2.5], dtype=object)), untyped([1, 2])
        (False, True, False)
    """
    try:
        kind = getattr(column, "dtype", None)
        inner = getattr(getattr(kind, "categories", None), "dtype", kind)
        return "object" in str(inner).lower()
    except BaseException as error:
        if not is_failure(error):
            raise
        # What does not even have a type to show is not read.
        return True
