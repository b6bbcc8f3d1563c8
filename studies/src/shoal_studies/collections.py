"""Contribution counts that studies and benchmarks share: one cell each, public by nature."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from shoal.data.occupancy import Counts
from shoal.errors import InputError


def itms() -> NDArray[np.int64]:
    """217 counts with the published statistics of the ITMS cell; made up to match them.

    L = 217, n = 17,166, m* = 417, m_* = 1, median 46 (paper 002, section IV). At the Levy cap, 56,
    160 arrays with wrap_around and 164 with best_fit. They are not the original counts.

    Example:
        >>> counts = itms()
        >>> len(counts), int(counts.sum()), int(counts.max()), int(counts.min())
        (217, 17166, 417, 1)
    """
    text = (files("shoal_studies") / "itms_counts.csv").read_text(encoding="utf-8")
    return np.array(text.split(), dtype=np.int64)


def geometric(levels: int = 6) -> NDArray[np.int64]:
    """2^i users with 2^(M-i) records each, i = 0..M (paper 001, section IV).

    Example:
        >>> geometric(2).tolist()
        [4, 2, 2, 1, 1, 1, 1]
    """
    if not 0 <= levels <= 20:
        raise InputError(f"{levels} levels", "0 to 20", "give for example levels=6")
    level = np.arange(levels + 1)
    return np.repeat(2 ** level[::-1], 2**level)


def extreme(users: int = 101, most: int = 10) -> NDArray[np.int64]:
    """One user with `most` records, and one record of each other user (paper 001, section IV).

    Example:
        >>> extreme(4, most=10).tolist()
        [10, 1, 1, 1]
    """
    return heavy(most, users - 1, 1)


def heavy(most: int = 1000, others: int = 100, few: int = 10) -> NDArray[np.int64]:
    """One user with `most` records, and `others` with `few` each.

    Example:
        >>> heavy(9, 2, 3).tolist()
        [9, 3, 3]
    """
    if min(most, few) < 1 or others < 0:
        raise InputError(
            f"one user with {most} records and {others} with {few}",
            "at least one record a user",
            "give for example most=1000, others=100, few=10",
        )
    return np.append(most, np.full(others, few, dtype=np.int64))


def equal(users: int = 200, each: int = 20) -> NDArray[np.int64]:
    """As many records of every user.

    Example:
        >>> equal(3, 5).tolist()
        [5, 5, 5]
    """
    return heavy(each, users - 1, each)


def one_cell(counts: NDArray[np.int64]) -> Counts:
    """An occupancy of one cell, `all`, from the records of each user.

    Example:
        >>> one_cell(extreme())
        <Counts of 101 users, 1 cells>
    """
    users = len(counts)
    return Counts.from_counts(np.arange(users), ["all"] * users, counts)
