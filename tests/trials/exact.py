"""The exact distribution of a unit-level release about a small group: priors and responses.

A count of h weighs `weight` steps and gets noise P[Z = z] = (1 - a)/(1 + a) a^|z| with
a = exp(-2^-lattice_bits). Below the floor and from a share of 1 on the prior changes no more, so
steps there are one cell each, with the tail's closed form: nothing is cut off. Cells with the same
prior are one outcome, as the prior is what is released.

Given the prior, responses are independent and only that of the changed unit depends on its outcome:
probabilities of all other responses are the same factor on both sides and sum to 1. So the pair of
prior and own response has the loss of the whole release; `whole` enumerates everything instead.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.trials import response
from shoal.trials.parameters import BITS, ONE, Parameters


@dataclass(frozen=True, eq=False)
class Distribution:
    """A group of n units under given parameters.

    `drawn` are the parameters that the noise and the prior really follow; what they cost is for the
    caller to compare.
    """

    drawn: Parameters
    n: int

    @cached_property
    def histograms(self) -> NDArray[np.int64]:
        """All histograms of n units, a row each."""
        return histograms(self.n, self.drawn.levels)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct priors, and the number of the prior of every combination of steps."""
        steps = np.arange(*self._ends())
        noisy = np.stack(np.meshgrid(*[steps] * self.drawn.levels, indexing="ij"), axis=-1)
        noisy = noisy.reshape(-1, self.drawn.levels)
        prior = response.prior_of(noisy, np.full(len(noisy), self.n), self.drawn)
        # Entries are below 2^32 and the last follows from the others: a key of 64 bits up to K = 3.
        key = prior[:, 0].astype(np.uint64) << np.uint64(BITS) | prior[:, 1].astype(np.uint64)
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return prior[first], number

    @property
    def priors(self) -> NDArray[np.int64]:
        """All priors that may be released, a row each."""
        return self._cells[0]

    @cached_property
    def prior_chances(self) -> NDArray[np.float64]:
        """Probability of each prior given each histogram, histograms x priors."""
        table, number = self._step_chances(), self._cells[1]
        found = []
        for histogram in self.histograms:
            joint = np.ones(1)
            for count in histogram:
                joint = np.multiply.outer(joint, table[count]).ravel()
            found.append(np.bincount(number, weights=joint))
        return np.array(found)

    def responses(self, parameters: Parameters) -> NDArray[np.float64]:
        """Probability of each response given prior and outcome, outcomes x priors x responses."""
        lam = parameters.replaced / ONE
        kept = (ONE - parameters.replaced) / ONE * np.eye(parameters.levels)
        return np.asarray(kept[:, None, :] + lam * (self.priors / ONE)[None])

    def neighbours(self, parameters: Parameters) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distributions of prior and own response, pairs of neighbours x outcomes.

        Args:
            parameters: Those of the responses: `drawn`, or the same with another `replaced`.
        """
        own = self.responses(parameters)
        before, after, first, second = self._pairs
        one = self.prior_chances[before][:, :, None] * own[first]
        other = self.prior_chances[after][:, :, None] * own[second]
        return one.reshape(len(one), -1), other.reshape(len(other), -1)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], ...]:
        """Histograms before and after, and the unit's outcome before and after."""
        place = {tuple(row): at for at, row in enumerate(self.histograms.tolist())}
        unit = np.eye(self.drawn.levels, dtype=np.int64)
        found = [
            (place[tuple(rest + unit[y])], place[tuple(rest + unit[x])], y, x)
            for rest in histograms(self.n - 1, self.drawn.levels)
            for y, x in itertools.permutations(range(self.drawn.levels), 2)
        ]
        return tuple(np.array(found).T)

    def _ends(self) -> tuple[int, int]:
        """Steps between which the prior changes, the last excluded."""
        if self.drawn.weight == 0:
            return 0, 1
        most = self.drawn.weight * self.n
        return self.drawn.floor * most >> BITS, most + 1

    def _step_chances(self) -> NDArray[np.float64]:
        """Probability of each cell given the count, counts 0..n x cells."""
        start, stop = self._ends()
        if stop - start == 1:
            return np.ones((self.n + 1, 1))
        centre = self.drawn.weight * np.arange(self.n + 1)[:, None]
        found = mass(np.arange(start, stop) - centre, self.drawn.lattice_bits)
        found[:, 0] = below(start - centre[:, 0], self.drawn.lattice_bits)
        found[:, -1] = below(centre[:, 0] - stop + 1, self.drawn.lattice_bits)
        return found


def mass(z: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
    """P[Z = z]."""
    a = math.exp(-(2.0**-bits))
    return np.asarray((1 - a) / (1 + a) * a ** np.abs(z))


def below(z: NDArray[np.int64], bits: int) -> NDArray[np.float64]:
    """P[Z <= z]: a^-z / (1 + a) up to 0, and one less the other tail above."""
    a = math.exp(-(2.0**-bits))
    return np.where(z <= 0, a ** np.abs(z) / (1 + a), 1 - a ** (np.abs(z) + 1) / (1 + a))


def loss(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest log ratio of two distributions, over all pairs."""
    return float(np.log(one / other).max())


def hockey_stick(one: NDArray[np.float64], other: NDArray[np.float64], epsilon: float) -> float:
    """The largest P(set) - e^epsilon P'(set), over all pairs and sets."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum(axis=1).max())


def histograms(n: int, levels: int) -> NDArray[np.int64]:
    """All ways to put n units on the levels, a row each."""
    rows = [h for h in itertools.product(range(n + 1), repeat=levels) if sum(h) == n]
    return np.array(rows)


def whole(parameters: Parameters, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distributions of prior and all n responses for all neighbouring outcome vectors.

    By enumeration of everything, without the shortcut of `Distribution.neighbours`.
    """
    distribution, levels = Distribution(parameters, n), parameters.levels
    place = {tuple(row): at for at, row in enumerate(distribution.histograms.tolist())}
    own = distribution.responses(parameters)
    distributions: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for outcomes in itertools.product(range(levels), repeat=n):
        counted = response.tabulate(np.array(outcomes), np.zeros(n, dtype=np.int64), 1, levels)
        joint = distribution.prior_chances[place[tuple(counted[0].tolist())]][:, None]
        for outcome in outcomes:
            joint = (joint[:, :, None] * own[outcome][:, None, :]).reshape(len(joint), -1)
        distributions[outcomes] = joint.ravel()
    pairs = [
        (y, x)
        for y, x in itertools.permutations(distributions, 2)
        if sum(a != b for a, b in zip(y, x, strict=True)) == 1
    ]
    return np.array([distributions[y] for y, _ in pairs]), np.array(
        [distributions[x] for _, x in pairs]
    )
