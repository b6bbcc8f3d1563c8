"""No bias, by enumeration; and normal intervals that cover, on a few laws."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal import unbiased
from shoal.means.estimators import Facts, SymmetricChoice
from shoal.means.guess import Coarse, SumAboutGuess
from shoal.means.plan import UnbiasedPlan
from shoal.means.request import MeanDrawn, Request
from shoal.means.users import UserValues
from shoal.privacy.accounting import account
from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment

SIGMAS = 6.11


class Mirror:
    """Noise that is given, and mirrored where data are; it notes what is drawn."""

    def __init__(self, seed: int, sign: int) -> None:
        self.seed, self.sign = seed, sign
        self.asked: list[tuple[int, int, int]] = []

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Offset and coin are mirrored; who is in which part is the same."""
        self.asked.append((draw, size, 64))
        words = np.random.default_rng([self.seed, draw]).integers(0, 2**64, size, np.uint64)
        return ~words if self.sign < 0 and draw in (4, 6) else words

    def add_laplace(self, steps: list[int], bits: int, draw: int = 0) -> list[int]:
        """Noise of sums is mirrored, that of squares and counts is not."""
        self.asked.append((draw, len(steps), bits))
        sign = self.sign if draw in (7, 8) else 1
        # The same for every window, whose order mirroring turns round.
        noise = round(float(np.random.default_rng([self.seed, draw]).laplace()) * 2**bits)
        return [x + sign * noise for x in steps]


class Bounded(UnbiasedPlan):
    """With so few users nothing could be certified."""

    @property
    def facts(self) -> Facts:
        """With another variance."""
        return super().facts._replace(variance=1.0)


def small_plan(counts: list[int]) -> Any:
    """A last step that clips, a coarse one that fails sometimes, and a middle one between."""
    request = Request.of(
        method="symmetric_mean", moments=(Moment(2, 1),), epsilon=20, delta="1/2", weights="counts"
    )
    first = len(counts) // 2
    last = counts[first:]
    choice = SymmetricChoice(
        coarse=Coarse.fit(first, 1, Fraction(4), Fraction(1, 5)),
        middle=SumAboutGuess.fit(1, 3.5, Fraction(3), first),
        last=SumAboutGuess.fit(1, 1.5, Fraction(4), sum(last), last[-1]),
    )
    plan = Bounded(request, np.array(counts), choice)
    squares = plan.facts.last_sum.fit()
    return replace(plan, choice=choice.model_copy(update={"squares": squares}))


def draw(plan: UnbiasedPlan, values: Any, source: Any) -> MeanDrawn:
    """One draw from random words that are given."""
    return plan.draw(UserValues(np.asarray(values, dtype=np.float64), plan.counts), source)


@pytest.mark.property
def test_symmetric_means_are_unbiased_by_enumeration() -> None:
    """All signs of the values about a centre and all mirrored words, as likely as one another.

    Given that there is an estimate its mean is the centre, exactly; clipped about it without a
    guess it would not be. Squares and intervals are mirrored too.
    """
    plan, size = small_plan([1, 1, 1, 2, 2, 3]), np.array([0.1, 0.7, 2.3, 0.2, 1.9, 4.0])
    first = plan.choice.coarse.loss + plan.choice.middle.loss
    assert plan.exact_loss.epsilon == first > account([plan.facts.last_sum.step]).epsilon
    total, released, failed, skewed = Fraction(0), 0, 0, Fraction(0)
    for seed in range(6):
        for signs in itertools.product((1, -1), repeat=6):
            one, other = (
                draw(plan, sign * np.array(signs) * size, Mirror(seed, sign)) for sign in (1, -1)
            )
            assert (one.steps is None) == (other.steps is None)
            if one.steps is None:
                failed += 1
                continue
            assert plan.value(one) == -plan.value(other)
            assert one.squares == other.squares
            low, high = plan.interval(one, 0.9) or (0.0, 0.0)
            assert plan.interval(other, 0.9) == (-high, -low)
            total += plan.value(one) + plan.value(other)
            skewed += plan.value(one)
            released += 2
    assert total == 0
    assert skewed != 0
    assert released > 100
    assert failed > 10


@pytest.mark.property
def test_neighbours_take_the_same_draws() -> None:
    """As many numbers of the same scales, whether or not the coarse step fails."""
    plan, ended = small_plan([1] * 12), set()
    near, far = np.zeros(12), [1e300, -1e300, *range(0, 1000, 100)]
    for seed in range(12):
        asked = []
        for values in (near, far):
            source = Mirror(seed, 1)
            ended.add(draw(plan, values, source).steps is None)
            asked.append(source.asked)
        assert asked[0] == asked[1]
    assert ended == {True, False}


def law_of(rng: np.random.Generator, law: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Values of standard deviation 1 about 0."""
    if law == "normal":
        return rng.standard_normal(shape)
    if law == "uniform":
        return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
    return rng.exponential(size=shape) - 1


# Simulates 1,000 releases of 500 users each: coverage cannot be seen with fewer.
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("method", "law"),
    [("symmetric_mean", "uniform"), ("clipped_mean", "normal"), ("clipped_mean", "skewed")],
)
def test_normal_intervals_cover_and_are_not_wide(method: str, law: str) -> None:
    """94.5% to 96% at a false alarm rate of 1e-9, and a tenth wider than with V known at most."""
    users, runs, centre = 500, 1000, 0.37
    moments = (Moment(2, 1), Moment(8, 3.5 if law == "skewed" else 1.8))
    more: dict[str, Any] = {"delta": "1e-6", "epsilon": 2}
    if method == "clipped_mean":
        more = {"interval": (-1, 1), "bias": 0.002, "epsilon": 1}
    plan = unbiased.plan(method, users, moment=moments, **more)
    values = law_of(np.random.default_rng(5), law, (runs, users)) + centre
    drawn = plan.runs(values, Simulated(5))
    off = np.array([abs(float(plan.value(each)) - centre) for each in drawn])
    half = np.array([plan.half(0.95, each) for each in drawn])

    def covers(part: float) -> bool:
        share, slack = float((off <= part * half).mean()), SIGMAS * math.sqrt(0.05 * 0.95 / runs)
        return 0.945 - slack <= share <= 0.96 + slack

    assert covers(1)
    assert not covers(0.7)
    counted = float(len(plan.facts.last_sum.weights.number))
    exact = 1.96 * math.sqrt(1 / counted + 2 * plan.noise_scale**2)
    assert 0.95 <= float(half.mean()) / exact <= 1.1
    assert plan.half(0.95) > 1.9 * float(half.mean())
