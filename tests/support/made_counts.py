"""Counts for tests."""

import numpy as np
from hypothesis import strategies as st

from shoal.data.counts import Counts


def sparse(seed: int, users: int = 30, cells: int = 8) -> Counts:
    """A sparse counts with a few heavy users; user 0 is everywhere, cell 0 has everybody."""
    rng = np.random.default_rng(seed)
    present = rng.random((users, cells)) < 0.4
    present[:, 0] = True
    present[0, :] = True
    user, cell = np.nonzero(present)
    count = np.ceil(np.exp(1.2 * rng.normal(size=len(user)) + 1)).astype(int)
    return Counts.from_counts(user, cell, count)


def _from_pairs(pairs: dict[tuple[int, int], int]) -> Counts:
    users, cells = zip(*pairs, strict=True)
    return Counts.from_counts(users, cells, list(pairs.values()))


small = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 4)), st.integers(1, 60), min_size=1
).map(_from_pairs)


def crowded(users: int = 50, cells: int = 80) -> Counts:
    """Every user in every cell, equally often: Gaussian noise is far smaller than Laplace noise."""
    user, cell = np.divmod(np.arange(users * cells), cells)
    return Counts.from_counts(user, cell, np.full(users * cells, 3))
