"""Memberships have cells without users, and tell nothing of private counts."""

import numpy as np

from shoal.data.aggregate import exact_sums
from shoal.data.memberships import Memberships

MEMBERS = Memberships(
    user=np.array([0, 0, 1]),
    cell=np.array([1, 3, 1]),
    count=np.array([71, 72, 73]),
    n_users=97,
    n_cells=5,
)


def test_cells_and_users_without_records_are_counted() -> None:
    """Their numbers are given, so that what follows has an entry for each."""
    assert MEMBERS.totals.tolist() == [0, 144, 0, 72, 0]
    assert MEMBERS.users_per_cell.tolist() == [0, 2, 0, 1, 0]
    assert MEMBERS.cells_per_user.tolist() == [2, 1, *[0] * 95]


def test_a_repr_tells_how_many_cells_alone() -> None:
    """Counts may be private, and so may the number of users."""
    assert repr(MEMBERS) == "Memberships(n_cells=5)"


def test_sums_are_exact_where_64_bits_overflow() -> None:
    """Also of negative amounts, and of cells without any."""
    amounts = np.array([2**62 + 1, -3, 2**62 + 1])
    assert exact_sums(MEMBERS.cell, amounts, 5) == [0, 2**63 + 2, 0, -3, 0]
