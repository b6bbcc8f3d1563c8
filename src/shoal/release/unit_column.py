"""A privacy unit that is a column of the records: a charge says what it protects, or is refused."""

import os

import numpy as np
from numpy.typing import NDArray

from shoal.data.sources import names_of
from shoal.errors import DataError
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import EACH_ROW


def unit_column(
    source: object, privacy_unit: str, ledger: str | os.PathLike[str] | Ledger | None
) -> str | None:
    """The column that the privacy unit names, or the ledger's where it is not said."""
    if not privacy_unit and ledger is not None:
        privacy_unit = (ledger if isinstance(ledger, Ledger) else Ledger(ledger)).unit
    if privacy_unit in ("", EACH_ROW):
        return None
    # A unit is named by hand: other letters or blanks make no other column.
    return next((name for name in names_of(source) if _plain(name) == _plain(privacy_unit)), None)


def check_unit_column(
    name: str, codes: NDArray[np.int64], users: NDArray[np.int64] | None, todo: str
) -> None:
    """Refuse a column one of whose values has several users, or several rows if rows are users.

    The charge would say that it protects all values of one of them, but it protects one user.
    """
    if users is not None:
        codes, users = np.unique(np.stack([codes, users]), axis=1)
    several = int((np.bincount(codes) > 1).sum())
    if several:
        of_several = "several rows, each of which is a unit" if users is None else "several users"
        raise DataError(
            f"{several} values of {name!r}, the privacy unit, belong to {of_several}", todo
        )


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
