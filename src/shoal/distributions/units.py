"""Plans bins: how much every user counts in every cell, in whole units.

A member, a user in a cell, has units: a public whole number that is its weight in the cell, the
most by which it moves the cell's bins, and its loss, all at once.

Source: docs/theory/cells.md#bins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import Floats, Ints, add
from shoal.cells.facts import coarse
from shoal.cells.mechanisms.weights import members
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.privacy.accounting import NoisyVector, Step
from shoal.release.envelope import FEWEST_ALIKE
from shoal.theory import sum_zero
from shoal.theory.allocation import Problem, balanced

# Noise has the scale of 2^BITS units.
BITS = 24
# The parts of the largest load to which users' loads are capped, of which the best is taken.
_CAPS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03)
# Of the weight that caps move, what typically biases a share, and the least typical noise, in units
# of noise, that it is weighed against.
TYPICAL_BIAS = 0.2
_NOISE = 2.0
# Below this epsilon times users no common distribution is found.
_FEWEST = 75.0
# With a smaller part of epsilon times users it is found in one round.
_TWO_ROUNDS = 150.0
# The part of epsilon for the common distribution: at least, at most for few users, by epsilon
# times users, and at most where cells are too noisy to say anything of their own.
_LEAST_PART = 0.1
_MOST_PART = 0.3
_PART = 40.0
_NOISY_PART = 0.9
# The number of bins is (_BINS / noise of a cell, in the mean)^(2/3), within these limits.
_BINS = 0.2
_FEWEST_BINS = 6
_MOST_BINS = 24
# The coarse bins of which the fullest of each cell is looked for. Their noise is at most this part
# of all units, or twice it where that costs 2^-_FEWEST_HALVINGS of a user's units.
COARSE = 6
_NOISE_OF_FULLEST = 0.05
_FEWEST_HALVINGS = 5


@dataclass(frozen=True, eq=False)
class Units:
    """The units of all members, and what finding a common distribution costs.

    Attributes:
        counts: The public counts.
        cells: The planned cells.
        units: Of each member of these cells, in the order of the counts, shape (members,).
        vote: The units of each user in each round that finds the common distribution.
        rounds: The number of these rounds; 0 if all thresholds are given or users are too few.
        fullest: A look at the fullest bins of cells costs users 2^-fullest of their units; 0: none.
        bins: The planned number of bins whose edges are found; 1 if all thresholds are given.
    """

    counts: Counts
    cells: Ints
    units: Ints
    vote: int
    rounds: int
    fullest: int
    bins: int

    @cached_property
    def _members(self) -> tuple[Ints, Ints]:
        """The members of the planned cells, and the cell of each."""
        return members(self.counts, self.cells)

    @property
    def member(self) -> Ints:
        """The positions of the members among the memberships of the counts."""
        return self._members[0]

    @property
    def cell(self) -> Ints:
        """The cell of each member, as a position among the planned ones."""
        return self._members[1]

    @property
    def user(self) -> Ints:
        """The user of each member."""
        return self.counts.user[self.member]

    @cached_property
    def total(self) -> Ints:
        """The units of each planned cell: the sum of its bins."""
        return add(self.cell, self.units, len(self.cells))

    @cached_property
    def noise(self) -> Floats:
        """One unit of noise as a part of each cell; huge in a cell in which nobody counts."""
        return np.asarray(2.0**BITS / np.maximum(self.total, 1))

    @cached_property
    def moved(self) -> Floats:
        """The part of each cell's weight that caps and whole units move between users, at most."""
        cell = self.cell
        size = len(self.cells)
        count = self.counts.count[self.member]
        total = np.maximum(self.total, 1)
        share = count / np.bincount(cell, count, size)[cell]
        weight = self.units / total[cell]
        moved = np.bincount(cell, np.abs(weight - share), size) / 2
        # Bins of a member are whole units, too, so that each may move a unit of its cell.
        members_of_cell = np.bincount(cell, minlength=size)
        moved += members_of_cell / total
        return np.asarray(np.minimum(moved, 1.0))

    @property
    def moved_for_readers(self) -> Floats:
        """The same as everybody may have it: rounded upwards, as it follows from single users."""
        few_users = self.counts.users_per_cell[self.cells] < FEWEST_ALIKE
        return np.asarray(np.minimum(coarse.parts_upwards(self.moved, few_users), 1.0))

    @property
    def votes(self) -> int:
        """The units of all users in a round."""
        return self.vote * int(np.count_nonzero(np.bincount(self.user)))

    def alike(self, part: float) -> float:
        """The units in the fullest bins of cells that are alike, with this part in each.

        As members of a cell are few, its fullest bin has more by chance.
        """
        cells = len(self.cells)
        total = np.maximum(self.total, 1)
        weight = self.units / total[self.cell]
        chance = np.sqrt(np.bincount(self.cell, weight**2, cells))
        parts = part + (1 - part) * chance
        return float(self.total @ parts)

    @property
    def steps(self) -> list[Step]:
        """The rounds, with one vote of every user, a look at fullest bins, and bins of cells."""
        users = self.counts.n_users
        present = np.bincount(self.user, minlength=users) > 0
        of_round: Step = NoisyVector("counted", BITS, present * self.vote)
        of_users = add(self.user, self.units, users)
        steps = [of_round] * self.rounds + [NoisyVector("counted", BITS, of_users)]
        if self.fullest:
            steps.append(NoisyVector("laplace", BITS, -(-of_users >> self.fullest)))
        return steps

    def check(self) -> None:
        """Refuses units whose sums or products with counts would not fit 64 bits."""
        sound = (
            self.units.shape == self.member.shape
            and bool((self.units >= 0).all())
            and 0 <= self.rounds <= 2
            and (self.vote > 0) == (self.rounds > 0)
            and (self.fullest == 0 or (self.rounds > 0 and self.fullest >= _FEWEST_HALVINGS))
            and 1 <= self.bins <= _MOST_BINS
            and int(self.total.max()) > 0
        )
        largest = max(int(self.units.max()), self.vote)
        records = np.bincount(self.user, self.counts.count[self.member])
        most = max(int(records.max()), len(self.units))
        if not sound or largest * most >= 2**62:
            raise InputError(
                "a user has too many records, or too large a loss, for exact whole numbers",
                "use smaller cells or a smaller epsilon",
            )


def plan_units(
    counts: Counts, cells: Ints, epsilon: float, *, finds: bool, certified: bool
) -> Units:
    """Returns the units with the least typical error; if `certified`, every record counts.

    `finds` says whether edges are found by a common distribution.
    """
    member, cell = members(counts, cells)
    user = counts.user[member]
    count = counts.count[member]
    share = count / np.bincount(cell, count)[cell]
    first = _noise(user, cell, share)
    users = int(np.count_nonzero(np.bincount(user)))
    part = _part(epsilon, users, first) if finds else 0.0
    rounds = 0
    if part:
        rounds = 2 if part * epsilon * users > _TWO_ROUNDS else 1
    left = (1 - part) * epsilon
    load = np.bincount(user, share / first[cell])
    best = None
    for cap in (1.0,) if certified else _CAPS:
        with np.errstate(divide="ignore"):
            kept = np.minimum(1.0, cap * load.max() / load)[user]
        weight = share * kept
        weight /= np.bincount(cell, weight)[cell]
        noise = first
        if cap < 1:
            noise = _noise(user, cell, weight)
        moved = np.bincount(cell, np.abs(weight - share)) / 2
        noise_of_cells = noise / left
        bins = _bins_of(noise_of_cells) if finds else 1
        of_noise = _size(bins) * noise_of_cells
        of_bias = TYPICAL_BIAS * moved
        errors = np.hypot(of_noise, of_bias)
        error = float(np.log(errors).mean())
        if best is None or error < best[0]:
            rate = weight / noise[cell]
            best = error, rate, bins
    assert best is not None
    _, rate, bins = best
    vote = math.floor(part * epsilon / rounds * 2**BITS) if rounds else 0

    def of_look(fullest: int) -> Units:
        """Returns the units if a look at fullest bins costs so little."""
        most = math.floor(left * 2**BITS)
        if fullest:
            most = (most << fullest) // ((1 << fullest) + 1)
        units = np.floor(rate * most).astype(np.int64)
        return Units(counts, cells, _within(units, user, most), vote, rounds, fullest, bins)

    found = of_look(0)
    if rounds:
        found = of_look(_halvings(found))
    found.check()
    return found


def _halvings(units: Units) -> int:
    """Returns how cheap a look at fullest bins can be; 0 if it would be too noisy for its cost."""
    away = float(units.total.sum()) - units.alike(1 / COARSE)
    times = _NOISE_OF_FULLEST * away / 2**BITS
    halvings = math.floor(math.log2(max(times, 1.0)))
    if halvings < _FEWEST_HALVINGS - 1:
        return 0
    return max(halvings, _FEWEST_HALVINGS)


def _part(epsilon: float, users: int, noise: Floats) -> float:
    """Returns the part of epsilon that finds a common distribution; 0 for very few users.

    The noisier cells are, the more of what is said of them is what they have in common.
    """
    everyone = epsilon * users
    if everyone < _FEWEST:
        return 0.0
    of_few = min(_MOST_PART, _PART / everyone)
    of_typical_cell = float(np.median(noise)) / epsilon
    of_noisy = min(_NOISY_PART, of_typical_cell)
    return max(_LEAST_PART, of_few, of_noisy)


def _bins_of(noise: Floats) -> int:
    """Returns how many bins are worth their noise, of which a unit is given in parts of cells."""
    of_cell = float(np.minimum(noise, 1.0).mean())
    wanted = math.pow(_BINS / of_cell, 2 / 3)
    return round(min(max(wanted, _FEWEST_BINS), _MOST_BINS))


def _size(bins: int) -> float:
    """Returns the typical noise below an edge in the middle of so many bins, in units of noise."""
    if bins == 1:
        return _NOISE
    middle = bins // 2
    return max(_NOISE, float(sum_zero.mean_size(bins, middle)))


def _noise(user: Ints, cell: Ints, weight: Floats) -> Floats:
    """Returns the noise of each cell with which no user loses more than 1."""
    users = int(user.max()) + 1
    alike = np.ones(int(cell.max()) + 1)
    problem = Problem(user, cell, weight, users, alike)
    return balanced(problem).noise_scale


def _within(units: Ints, user: Ints, allowed: int) -> Ints:
    """Returns the units, less where the sum of a user's is above what is allowed by rounding."""
    spent = add(user, units, int(user.max()) + 1)
    part = allowed / np.maximum(spent, 1)
    less = np.floor(units * part[user]).astype(np.int64)
    over = spent > allowed
    return np.where(over[user], less, units)


def ranks_of(bins: int) -> Sequence[float]:
    """Returns the ranks of a common distribution at which the edges of so many bins lie."""
    if bins < 8:
        return (0.05, 0.25, 0.5, 0.75, 0.95)
    if bins == 8:
        return (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
    if bins < _MOST_BINS:
        return (0.02, *np.linspace(0.1, 0.9, bins - 3).tolist(), 0.98)
    # Far cells lie anywhere.
    return [each / bins for each in range(1, bins)]
