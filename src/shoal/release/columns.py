"""Reads columns of a file by their roles, and checks the column that a privacy unit names."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.data import keys
from shoal.data.columns_in_memory import roles
from shoal.data.sources import names_of, read_columns
from shoal.errors import DataError
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import EACH_ROW
from shoal.release.plan import Source

# The step to take if a person has several rows.
ONE_ROW = (
    "make one row for each of them, for example with its mean outcome; or release means by user "
    "with shoal.summarize (shoal plan --user)"
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
    if not privacy_unit and ledger is not None:
        privacy_unit = (ledger if isinstance(ledger, Ledger) else Ledger(ledger)).privacy_unit.name
    if privacy_unit in ("", EACH_ROW) or is_unit(users or "", privacy_unit):
        return None
    return next((name for name in names_of(source) if is_unit(name, privacy_unit)), None)


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
    users = source.user or source.unit
    unit = unit_column(data, users, source.privacy_unit or "", ledger)
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
    todo = ONE_ROW
    if users is not None:
        who = keys.encode(keys.as_array(users, "user"), "user")
        # Each pair of a value and a user counts once.
        codes = np.unique(np.stack([codes, who]), axis=1)[0]
        owners = "several users"
        todo = f"plan again with {name!r} as the column of users, or use a ledger of these users"
    several = int((np.bincount(codes) > 1).sum())
    if several:
        raise DataError(f"{several} values of {name!r}, the privacy unit, belong to {owners}", todo)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
