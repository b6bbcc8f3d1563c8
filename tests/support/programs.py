"""Linear programs for tests, and their exact answers: by HiGHS, and by enumeration in fractions."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.arrays import Floats, Ints
from shoal.cells.facts.program import Program


def of_counts(user: Ints, cell: Ints, count: Ints, target: Floats, cost: Floats | float) -> Program:
    """Shares are counts over the totals of their cells."""
    share = count / np.bincount(cell, count)[cell]
    costs = np.broadcast_to(np.asarray(cost, dtype=np.float64), share.shape)
    return Program(user, cell, share, costs, target, int(np.max(user)) + 1)


@st.composite
def small(draw: Callable[[st.SearchStrategy[object]], object]) -> Program:
    """Up to five users in up to three cells, some of them free, with costs."""
    pairs = st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 2)), st.integers(1, 50), min_size=1
    )
    counts: dict[tuple[int, int], int] = draw(pairs)
    user, cell = np.array(list(counts)).T
    # Cells without users are not cells.
    cell = np.unique(cell, return_inverse=True)[1]
    n_cells, size = int(cell.max()) + 1, len(counts)
    targets = st.lists(st.floats(0.01, 0.6), min_size=n_cells, max_size=n_cells)
    costs = st.lists(st.floats(0.1, 10), min_size=size, max_size=size)
    count = np.array(list(counts.values()))
    return of_counts(user, cell, count, np.array(draw(targets)), np.array(draw(costs)))


def random(seed: int, users: int = 40, cells: int = 9, *, degenerate: bool = False) -> Program:
    """Heavy users; with targets that some users make up exactly, or any."""
    rng = np.random.default_rng(seed)
    present = rng.random((users, cells)) < rng.random((users, 1)) / 2
    present[rng.integers(0, users, cells), np.arange(cells)] = True
    user, cell = np.nonzero(present)
    count = np.ceil(3 * rng.pareto(1.3, len(user)) + 1).clip(max=400).astype(np.int64)
    if degenerate:
        middle = np.array([np.median(count[cell == each]) for each in range(cells)])
        target = np.minimum(2.5 * middle / np.bincount(cell, count), 0.55)
        return of_counts(user, cell, count, target, 1.0)
    cost = rng.uniform(0.3, 3, len(user))
    return of_counts(user, cell, count, rng.uniform(0.05, 0.55, cells), cost)


def by_highs(program: Program) -> tuple[float, Floats]:
    """The least loss and its dual variables: min t over x = 1/b, y = w/b, docs/theory/cells.md."""
    needing = program.needing()
    at, cell, cells = np.arange(len(needing.share)), needing.cell, len(needing.target)
    entries, columns = len(at), cells + len(at) + 1
    if not cells:
        return 0.0, np.zeros(program.n_users)

    def matrix(rows: int, *parts: tuple[Ints, Ints, Floats]) -> sp.csr_array:
        row, column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sp.csr_array((value, (row, column)), (rows, columns))

    errors = matrix(
        cells,
        (np.arange(cells), np.arange(cells), 0.5 - needing.target),
        (cell, cells + at, np.full(entries, -0.5)),
    )
    shares = matrix(entries, (at, cells + at, np.ones(entries)), (at, cell, -needing.share))
    users = np.arange(program.n_users)
    losses = matrix(
        program.n_users,
        (needing.user, cells + at, needing.cost),
        (users, np.full(len(users), columns - 1), -np.ones(len(users))),
    )
    right = np.concatenate([-np.ones(cells), np.zeros(entries + len(users))])
    objective = np.zeros(columns)
    objective[-1] = 1
    found = linprog(objective, sp.vstack([errors, shares, losses]), right, method="highs")
    return float(found.fun), -found.ineqlin.marginals[-len(users) :]


def exact_loss(program: Program, weight: Floats, noise: Floats) -> Fraction:
    """The largest loss of a user, in fractions."""
    spent = [Fraction(0)] * program.n_users
    for user, cell, cost, kept in zip(
        program.user, program.cell, program.cost, weight, strict=True
    ):
        if kept > 0:
            spent[user] += Fraction(cost) * Fraction(kept) / Fraction(noise[cell])
    return max(spent)


def exact_errors(program: Program, weight: Floats, noise: Floats) -> list[Fraction]:
    """(1 - sum w)/2 + b of each cell, in fractions."""
    kept = [Fraction(0)] * len(program.target)
    for cell, one in zip(program.cell, weight, strict=True):
        kept[cell] += Fraction(one)
    return [(1 - total) / 2 + Fraction(each) for total, each in zip(kept, noise, strict=True)]


def exact_bound(program: Program, duals: Floats) -> Fraction:
    """Least cost at these duals over all vertices of all cells: any subset keeps everything."""
    share, cost = ([Fraction(x) for x in each] for each in (program.share, program.cost))
    price = [Fraction(each) for each in duals]
    total = Fraction(0)
    for cell, target in enumerate(program.target.tolist()):
        if target >= 1 / 2:
            continue
        entries, best = np.flatnonzero(program.cell == cell).tolist(), None
        for many in range(1, len(entries) + 1):
            for chosen in combinations(entries, many):
                room = Fraction(target) - Fraction(1, 2) + sum(share[i] for i in chosen) / 2
                if room > 0:
                    paid = sum(price[program.user[i]] * cost[i] * share[i] for i in chosen) / room
                    best = paid if best is None else min(best, paid)
        assert best is not None
        total += best
    return total / sum(price)
