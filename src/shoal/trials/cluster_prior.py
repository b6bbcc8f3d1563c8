"""Priors from a noisy histogram, with paper 003's own parameters (Cluster-DP, cluster-free).

Source: paper 003, Algorithm 2; erratum 12; docs/theory/experiments.md#what-it-costs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.documents.model import Integers, Model
from shoal.errors import InputError
from shoal.privacy.accounting import Stated, Step
from shoal.privacy.noisy import NoisySum
from shoal.theory.randomised_response import response_epsilon
from shoal.trials.randomiser import ONE, PART, PART_BITS, replaced_for

_LATTICE_BITS = 20
# One label moves one count down and one up.
SIDES = 2
# Nobody needs less noise than a 64th of a count.
_STEEPEST = 64


@dataclass(frozen=True)
class ClusterPrior:
    """An outcome is replaced, with a probability, by a draw from a noisy histogram of its group.

    The probability lambda is the least at this loss. The histogram, with Laplace noise of scale
    sigma on each count and no level below gamma, costs 2/sigma: a label moves two bins, not one as
    printed. A response costs ln(1 + (1 - lambda - delta)/(lambda gamma)). Without a delta no such
    prior errs less than `uniform_prior` (docs/theory/experiments.md#choice-of-parameters).

    Source: paper 003, Algorithm 2; erratum 12.

    Attributes:
        floor: gamma, the least share of a level in a prior, above 0 and at most 1/K.
        noise: sigma, the scale of the noise of a count, in units of the trial.
        pooled: Whether all clusters share the histogram of an arm (cluster-free).

    Raises:
        InputError: Numbers outside their ranges.

    Guarantees: G-LOSS, G-UNBIASED, G-COVERAGE.

    Example:
        >>> from shoal import trials
        >>> study = trials.Experiment([0, 1] * 4000)
        >>> prior = trials.ClusterPrior(floor=0.1, noise=10)
        >>> plan = study.table(trials.Domain.counts(0, 4), epsilon=2, mechanism=prior)
        >>> plan.epsilon <= 2, plan.mechanism
        (True, 'cluster_prior')
    """

    floor: float
    noise: float
    pooled: bool = False

    def __post_init__(self) -> None:
        floor = checks.number(self.floor, "floor", above=0, most=1, example=0.1)
        object.__setattr__(self, "floor", floor)
        least = 1 / _STEEPEST
        object.__setattr__(self, "noise", checks.number(self.noise, "noise", least=least))


class PriorChoice(Model):
    """gamma and lambda in parts of 2^-31, and the noise of counts."""

    kept: Integers
    floor: int
    replaced: int
    counts: NoisySum

    def steps(self, delta: Fraction) -> list[Step]:
        """Counts of a histogram, of which an outcome moves two, and a response."""
        kept = Fraction(PART - self.replaced, PART)
        least = Fraction(self.replaced * self.floor, ONE)
        return [self.counts.step(SIDES), Stated(response_epsilon(kept, least, delta), delta)]


def choice_of(
    asked: ClusterPrior, kept: tuple[int, ...], epsilon: Fraction, delta: Fraction
) -> PriorChoice:
    """The least lambda at this floor and noise, of at most epsilon and delta."""
    levels = len(kept)
    floor = math.floor(asked.floor * PART)
    if not 1 <= floor <= PART // levels + 1:
        raise InputError(
            f"the floor is {asked.floor:g}",
            f"give a floor above 2^-{PART_BITS} and at most 1/{levels}, or use fewer than {levels} "
            "levels",
        )
    per_unit = math.floor(2**_LATTICE_BITS / asked.noise)
    counts = NoisySum.of(per_unit=per_unit, bits=_LATTICE_BITS)
    left = epsilon - counts.loss(SIDES)
    if left < 0 or (left == 0 and delta == 0):
        raise InputError(
            f"histogram noise of {asked.noise:.6g} costs {SIDES / asked.noise:.6g}, which "
            f"uses up epsilon {float(epsilon):.6g}",
            "raise the noise or epsilon",
        )
    floor = min(floor, PART // levels)
    return PriorChoice(
        kept=np.array(kept),
        floor=floor,
        replaced=replaced_for(left, delta, floor),
        counts=counts,
    )


def prior_of(noisy: Ints, sizes: Ints, chosen: PriorChoice) -> Ints:
    """Priors in parts of 2^-31 from noisy counts in steps, shape (groups, levels): Algorithm 2."""
    floor = float(chosen.floor)
    share = noisy / (chosen.counts.per_unit * sizes[:, None].astype(np.float64)) * PART
    share = np.clip(share, floor, float(PART))
    over = PART - share.sum(axis=1, keepdims=True)
    capacity = np.where(over < 0, share - floor, PART - share)
    total = capacity.sum(axis=1, keepdims=True)
    moved = share + np.divide(capacity, total, out=np.zeros_like(capacity), where=total > 0) * over
    return _whole(moved, chosen.floor)


def _whole(share: Floats, floor: int) -> Ints:
    """Whole numbers that sum to 2^31, none below the floor: excess is taken where there is most."""
    found = np.maximum(np.floor(share), floor).astype(np.int64)
    rows = np.arange(len(found))
    # A row needs at most K turns; rows and noise are public here, so their number may be seen.
    for _ in range(found.shape[1]):
        missing = PART - found.sum(axis=1)
        if not missing.any():
            break
        # One level of each row can always take it: the largest has at least 1/K.
        largest = found.argmax(axis=1)
        found[rows, largest] = np.maximum(found[rows, largest] + missing, floor)
    return found
