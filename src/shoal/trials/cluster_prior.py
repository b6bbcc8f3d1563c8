"""Makes priors from a noisy histogram with the parameters of paper 003 (Cluster-DP).

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
# The smallest noise of a count that is allowed is 1 divided by this: nobody needs less.
_STEEPEST = 64


@dataclass(frozen=True)
class ClusterPrior:
    """Replaces an outcome, with a probability, by a draw from a noisy histogram of its group.

    The probability lambda is the smallest one for the loss. The histogram has Laplace noise of
    scale sigma on each count and no share below gamma. It costs 2/sigma, because a label moves two
    bins, not one as printed. A response costs ln(1 + (1 - lambda - delta)/(lambda gamma)). Without
    a delta, no such prior errs less than `uniform_prior`
    (docs/theory/experiments.md#choice-of-parameters).

    Source: paper 003, Algorithm 2; erratum 12.

    Attributes:
        floor: gamma, the smallest share of a level in a prior, above 0 and at most 1/K.
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
    """The levels in use, gamma and lambda in parts of 2^-31, and the noise of counts."""

    kept: Integers
    floor: int
    replaced: int
    counts: NoisySum

    def steps(self, delta: Fraction) -> list[Step]:
        """Returns the steps of a histogram, two of whose counts move, and of a response."""
        kept = Fraction(PART - self.replaced, PART)
        least = Fraction(self.replaced * self.floor, ONE)
        return [self.counts.step(SIDES), Stated(response_epsilon(kept, least, delta), delta)]


def choice_of(
    asked: ClusterPrior, kept: tuple[int, ...], epsilon: Fraction, delta: Fraction
) -> PriorChoice:
    """Returns the choice with the smallest lambda for a floor, a noise, epsilon and delta."""
    levels = len(kept)
    floor = math.floor(asked.floor * PART)
    # In floating point, 1/K may be a bit too large: it is lowered below.
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
    """Returns priors in parts of 2^-31, from noisy counts in steps, shape (groups, levels)."""
    floor = float(chosen.floor)
    share = noisy / (chosen.counts.per_unit * sizes[:, None].astype(np.float64)) * PART
    share = np.clip(share, floor, float(PART))
    # Algorithm 2: a surplus is taken from shares above the floor, a lack is given to shares below
    # 1, each in proportion to its room.
    lack = PART - share.sum(axis=1, keepdims=True)
    room = np.where(lack < 0, share - floor, PART - share)
    total = room.sum(axis=1, keepdims=True)
    moved = share + np.divide(room, total, out=np.zeros_like(room), where=total > 0) * lack
    return _whole(moved, chosen.floor)


def _whole(share: Floats, floor: int) -> Ints:
    """Rounds shares to whole numbers that sum to 2^31, none of them below the floor."""
    found = np.maximum(np.floor(share), floor).astype(np.int64)
    rows = np.arange(len(found))
    # The shares follow from released counts: so the number of turns reveals nothing private.
    for _ in range(found.shape[1]):
        missing = PART - found.sum(axis=1)
        if not missing.any():
            break
        # The largest share takes what is missing, but never falls below the floor: where that stops
        # it, the next turn lowers the next largest share. So a row needs at most K turns.
        largest = found.argmax(axis=1)
        found[rows, largest] = np.maximum(found[rows, largest] + missing, floor)
    return found
