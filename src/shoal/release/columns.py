"""Reads columns of a file by their roles, and checks the column that a privacy unit names."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.data import keys
from shoal.data.columns_in_memory import roles
from shoal.data.sources import names_of, read_columns
from shoal.errors import DataError, InputError
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import EACH_ROW
from shoal.release.plan import Source

# The step to take if a user of an experiment has several rows.
PER_USER = (
    "say what the outcome of a user is with user= and per_user= (--user, --per-user): mean, sum, "
    "any or last:COLUMN"
)


def is_unit(name: str, privacy_unit: str) -> bool:
    """Whether a privacy unit, which people type, names a column; case and blanks do not count."""
    return _plain(name) == _plain(privacy_unit) != ""


def unit_column(
    source: object,
    users: str | None,
    privacy_unit: str,
    ledger: str | os.PathLike[str] | Ledger | None,
) -> str | None:
    """Returns the column, besides that of users, that the privacy unit names; None if none does.

    Without a privacy unit it is that of the ledger.
    """
    wanted = privacy_unit or unit_of_ledger(ledger)
    if wanted in ("", EACH_ROW) or is_unit(users or "", wanted):
        return None
    return next((name for name in names_of(source) if is_unit(name, wanted)), None)


def unit_of_ledger(ledger: str | os.PathLike[str] | Ledger | None) -> str:
    """Returns what a ledger counts; empty without one."""
    if ledger is None:
        return ""
    return (ledger if isinstance(ledger, Ledger) else Ledger(ledger)).privacy_unit.name


def check_rows(source: Source, privacy_unit: str) -> None:
    """Refuse to take rows for users, unless somebody declares that each row is another one."""
    if source.user or source.unit or privacy_unit in ("", EACH_ROW):
        return
    raise InputError(
        f"each row is a unit here, and the ledger counts {privacy_unit!r}",
        "say whose row each is with user= (--user), and in an experiment with per_user= "
        f"(--per-user); if each row is another {privacy_unit}, declare it: user={EACH_ROW!r}",
    )


def read_by_roles(
    data: object,
    source: Source,
    role: str,
    public: Mapping[str, str | None],
    *,
    look: bool,
    texts: bool = False,
    ledger: Any = None,
) -> dict[str, Any]:
    """Returns columns by their roles, and the private one if `look` says so.

    If it is public which rows lack something, these rows are left out; to find them, the private
    column is read too. A column that the privacy unit names (that of the ledger, if the source
    names none) is read as well, and refused if one of its values belongs to several units.
    """
    private = {role: source.value or None}
    unit = unit_to_check(data, source, ledger)
    given = {**public, "privacy unit": unit}
    # No column may have a private and a public role, also if it is not read.
    roles(private, given)
    if not look and source.missing != "public":
        private = {}
    table = read_columns(data, private=private, public=given, texts=texts, missing=source.missing)
    found = dict[str, Any]()
    for column_role, name in {**given, **private}.items():
        found[column_role] = None if name is None else table.column(name)
    if unit is not None:
        check_column(unit, found["privacy unit"], found.get("user"))
    return found


def unit_to_check(data: object, source: Source, ledger: Any) -> str | None:
    """Returns the column, besides that of users, that the privacy unit names; None if none does.

    It is refused to charge a ledger of users by rows.
    """
    wanted = source.privacy_unit or unit_of_ledger(ledger)
    check_rows(source, wanted)
    users = source.user if source.tells_users else source.unit
    return unit_column(data, users, wanted, None)


def check_unit_of_users(
    source: object,
    *,
    user: str,
    value: str | None,
    missing: str,
    privacy_unit: str,
    ledger: str | os.PathLike[str] | Ledger | None,
) -> None:
    """Refuse a privacy unit that is a column of records, if one of its values has several users."""
    unit = unit_column(source, user, privacy_unit, ledger)
    if unit is None:
        return
    private = {"value": value}
    public = {"user": user, "privacy unit": unit}
    roles(private, public)
    # The values are read only if it is public which of them are missing: to leave these rows out.
    private = private if missing == "public" else {}
    table = read_columns(source, private=private, public=public, missing=missing)
    check_column(unit, table.column(unit), table.column(user))


def check_column(name: str, column: Any, users: Any) -> None:
    """Refuse a privacy unit one of whose values has several users, or rows without `users`.

    The charge would say that it protects all values of one of them, but it protects one user.
    """
    codes = keys.encode(keys.as_array(column, name), name)
    owners = "several rows, each of which is a unit"
    todo = PER_USER
    if users is not None:
        who = keys.encode(keys.as_array(users, "user"), "user")
        # Each pair of a value and a user counts once.
        codes = np.unique(np.stack([codes, who]), axis=1)[0]
        owners = "several users"
        todo = f"plan again with {name!r} as the column of users, or use a ledger of these users"
    if (np.bincount(codes) > 1).any():
        raise DataError(f"values of {name!r}, the privacy unit, belong to {owners}", todo)


def check_one_row(name: str, users: Any) -> None:
    """Refuse users with several rows, whose outcome nobody has said."""
    codes = keys.encode(keys.as_array(users, name), name)
    if (np.bincount(codes) > 1).any():
        raise DataError(f"{name!r} has several rows", PER_USER)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
