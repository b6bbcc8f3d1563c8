"""A private column serves as nothing public: neither by its name nor as the same memory.

Users, units, cells, clusters, treatments and names are public and leave the process as they are, so
none of them may be the private column itself. A copy under another name is not recognised: that
would take a look at private values. `docs/explanation/model.md` says what the custodian vouches
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.checks.shared_memory import shared
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def check_columns(
    private: Mapping[str, str | None], public: Mapping[str, str | Sequence[str] | None]
) -> None:
    """Refuse a private column that is named in a public role, whatever the case of its letters.

    Engines fold the case of names: DuckDB reads `speed` where `SPEED` is asked for.

    Args:
        private: Role and column; None for a role that nothing has.
        public: Role and column or columns.

    Raises:
        InputError: One column in both.

    Guarantees: G-REFUSE.

    Example:
        >>> check_columns({"outcome": "bought"}, {"unit": "person", "cluster": None})
    """
    for role, name in private.items():
        for other, given in public.items():
            names = [given] if isinstance(given, str) else given or ()
            if name is not None and any(name.casefold() == each.casefold() for each in names):
                raise _both(f"the {role} column {name!r} as {other}", role, other)


def check_arrays(private: Mapping[str, object], public: Mapping[str, object]) -> None:
    """Refuse a private column that is given in a public role: the same object, or shared memory.

    Views, slices, reversed and retyped views are recognised; contents are never compared.

    Args:
        private: Role and column.
        public: Role and column; None for a role that nothing has.

    Raises:
        InputError: One column, or a part of one, in both.

    Guarantees: G-REFUSE.

    Example:
        >>> check_arrays({"outcome": [0, 1]}, {"unit": ["ann", "bob"], "cluster": None})
    """
    for role, column in private.items():
        for other, given in public.items():
            if column is not None and given is not None and shared(column, given):
                raise _both(f"the {role} column, or memory that it shares, as {other}", role, other)


def _both(got: str, role: str, other: str) -> InputError:
    return InputError(
        got,
        f"a {other} column that does not hold the {role}",
        f"the {other} is public and leaves as it is: give another column",
    )
