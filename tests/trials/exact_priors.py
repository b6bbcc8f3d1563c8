"""The exact distribution of what a small group releases with Cluster-DP: prior and responses.

A count of h weighs `weight` steps and gets noise P[Z = z] = (1 - a)/(1 + a) a^|z| with
a = exp(-2^-lattice_bits). Below the floor and from a share of 1 on the prior changes no more, so
steps there are one cell each, with the tail's closed form: nothing is cut off. Cells with the same
prior are one outcome, as the prior is what is released.

Given the prior, responses are independent and only that of the changed unit depends on its outcome:
so the pair of prior and own response has the loss of the whole release.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.privacy.noisy import NoisySum
from shoal.trials.cluster_prior import PriorChoice, prior_of
from shoal.trials.randomiser import PART, PART_BITS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def choice(levels: int, floor: int, replaced: int, weight: int, bits: int) -> PriorChoice:
    """Parts of 2^-31 and steps, with a coarser lattice than plans have."""
    counts = NoisySum.model_construct(per_unit=weight, bits=bits)
    return PriorChoice.model_construct(
        kept=np.arange(levels), floor=floor, replaced=replaced, counts=counts
    )


@dataclass(frozen=True, eq=False)
class Distribution:
    """A group of n units under a choice."""

    chosen: PriorChoice
    n: int

    @property
    def levels(self) -> int:
        """How many."""
        return len(self.chosen.kept)

    @cached_property
    def histograms(self) -> Ints:
        """All histograms of n units, a row each."""
        return histograms(self.n, self.levels)

    @cached_property
    def _cells(self) -> tuple[Ints, Ints]:
        """Distinct priors, and the number of the prior of every combination of steps."""
        steps = np.arange(*self._ends())
        noisy = np.stack(np.meshgrid(*[steps] * self.levels, indexing="ij"), axis=-1)
        noisy = noisy.reshape(-1, self.levels)
        prior = prior_of(noisy, np.full(len(noisy), self.n), self.chosen)
        # The last entry follows from the others: a key of 62 bits up to K = 3.
        key = prior[:, 0] << PART_BITS | prior[:, 1]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return prior[first], number

    @property
    def priors(self) -> Ints:
        """All priors that may be released, a row each."""
        return self._cells[0]

    @cached_property
    def prior_chances(self) -> Floats:
        """Probability of each prior given each histogram, histograms x priors."""
        table, number = self._step_chances(), self._cells[1]
        found = []
        for histogram in self.histograms:
            joint = np.ones(1)
            for count in histogram:
                joint = np.multiply.outer(joint, table[count]).ravel()
            found.append(np.bincount(number, weights=joint))
        return np.array(found)

    def responses(self, replaced: int) -> Floats:
        """Probability of each response given prior and outcome, outcomes x priors x responses."""
        share = replaced / PART
        own = (1 - share) * np.eye(self.levels)
        return np.asarray(own[:, None, :] + share * (self.priors / PART)[None])

    def neighbours(self, replaced: int) -> tuple[Floats, Floats]:
        """Distributions of prior and own response, pairs of neighbours x outcomes."""
        own = self.responses(replaced)
        before, after, first, second = self._pairs
        one = self.prior_chances[before][:, :, None] * own[first]
        other = self.prior_chances[after][:, :, None] * own[second]
        return one.reshape(len(one), -1), other.reshape(len(other), -1)

    @cached_property
    def _pairs(self) -> tuple[Ints, ...]:
        """Histograms before and after, and the unit's outcome before and after."""
        place = {tuple(row): at for at, row in enumerate(self.histograms.tolist())}
        unit = np.eye(self.levels, dtype=np.int64)
        found = [
            (place[tuple(rest + unit[y])], place[tuple(rest + unit[x])], y, x)
            for rest in histograms(self.n - 1, self.levels)
            for y, x in itertools.permutations(range(self.levels), 2)
        ]
        return tuple(np.array(found).T)

    def _ends(self) -> tuple[int, int]:
        """Steps between which the prior changes, the last excluded."""
        most = self.chosen.counts.per_unit * self.n
        return self.chosen.floor * most >> PART_BITS, most + 1

    def _step_chances(self) -> Floats:
        """Probability of each cell given the count, counts 0..n x cells."""
        start, stop = self._ends()
        centre = self.chosen.counts.per_unit * np.arange(self.n + 1)[:, None]
        a = math.exp(-(2.0**-self.chosen.counts.bits))
        found = (1 - a) / (1 + a) * a ** np.abs(np.arange(start, stop) - centre)
        found[:, 0] = _below(start - centre[:, 0], a)
        found[:, -1] = _below(centre[:, 0] - stop + 1, a)
        return np.asarray(found)


def _below(z: Ints, a: float) -> Floats:
    """P[Z <= z]: a^-z / (1 + a) up to 0, and one less the other tail above."""
    return np.where(z <= 0, a ** np.abs(z) / (1 + a), 1 - a ** (np.abs(z) + 1) / (1 + a))


def loss(one: Floats, other: Floats) -> float:
    """The largest log ratio of two distributions, over all pairs."""
    return float(np.log(one / other).max())


def hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    """The largest P(set) - e^epsilon P'(set), over all pairs and sets."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum(axis=1).max())


def histograms(n: int, levels: int) -> Ints:
    """All ways to put n units on the levels, a row each."""
    return np.array([h for h in itertools.product(range(n + 1), repeat=levels) if sum(h) == n])
