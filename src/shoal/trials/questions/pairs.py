"""Draws the numbers of a release of two outcomes of every unit, whose loss is exact.

Both outcomes x and y have the same rows of weights, in steps of their own, by which they move
numbers by at most E_x and E_y steps. Beside them second moments of disjoint groups are drawn: those
of x and y in steps of 2 T^2/E_x and 2 T^2/E_y squared ticks, and those of E_x x - E_y y in steps of
2 T^2 (E_x + E_y), where T is the number of ticks of a range. They cost nothing but rounding.
Source: docs/theory/experiments.md#two-outcomes.
"""

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.documents.model import Integers, Model
from shoal.errors import InputError
from shoal.privacy.accounting import NoisyVector
from shoal.privacy.noise import LARGEST_STEPS, Noise
from shoal.trials.questions.numbers import (
    BITS,
    MOMENTS,
    NUMBERS,
    ROUNDING,
    TICKS,
    Choice,
    Numbers,
    fitted,
    sums_by,
)

# Second moments of a group of units.
MOMENTS_OF_GROUP = 3
# Of the loss each outcome has at least this part, whatever ratio is expected.
_LEAST_SHARE = 0.1


class PairChoice(Model):
    """Weights of kinds or the sum that each is in, as in `Choice`, and the steps of both outcomes.

    `by` names the columns that make groups of second moments besides arms.
    """

    rows: Integers | None
    sums: Integers | None
    first_steps: Integers
    second_steps: Integers
    by: tuple[str, ...]


class PairDrawn(Model):
    """Drawn numbers of both outcomes, and three second moments of each group, in steps."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    moments: tuple[int, ...]


class Pair:
    """The numbers of a choice of two outcomes for `many` units of each kind."""

    def __init__(self, many: Ints, choice: PairChoice) -> None:
        parts: dict[str, Any] = {"rows": choice.rows, "sums": choice.sums, "by": choice.by}
        self.many = many
        self.first = Numbers(many, Choice(**parts, steps=choice.first_steps, moment_step=0))
        self.second = Numbers(many, Choice(**parts, steps=choice.second_steps, moment_step=0))

    @cached_property
    def most_steps(self) -> tuple[int, int]:
        """The most steps that each outcome moves its numbers by."""
        return self.first.most_steps, self.second.most_steps

    @property
    def share(self) -> float:
        """The part of the loss that the first outcome has."""
        return self.most_steps[0] / sum(self.most_steps)

    @cached_property
    def step(self) -> NoisyVector:
        """The noisy vector, with the most steps that a unit moves it by."""
        return NoisyVector(
            "laplace", BITS, np.array([sum(self.most_steps) + rounding_of(self.first)])
        )

    @cached_property
    def moment_steps(self) -> tuple[int, int, int]:
        """The steps of the second moments of x, of y and of E_x x - E_y y, in squared ticks."""
        first, second = self.most_steps
        twice = 2 * TICKS**2
        return -(-twice // first), -(-twice // second), twice * (first + second)

    def check(self) -> None:
        """Refuse numbers that do not fit 60 bits."""
        self.first.check()
        self.second.check()
        # A second moment is at most (T/2)^2 for each unit, and that of E_x x - E_y y E^2 as much.
        largest = int(self.many.sum()) * sum(self.most_steps)
        if largest >= LARGEST_STEPS:
            raise InputError(
                f"the numbers of {int(self.many.sum())} units do not fit 60 bits",
                "ask for an epsilon nearer to 1",
            )

    def draw(self, ticks: tuple[Ints, Ints], kind: Ints, groups: Ints, noise: Noise) -> PairDrawn:
        """Draws all numbers, from private ticks and the kinds of units and groups of kinds."""
        x, y = (np.clip(each, -TICKS // 2, TICKS // 2) for each in ticks)
        of_first = self.first.sums_of(x, kind)
        numbers = noise.add_laplace([*of_first, *self.second.sums_of(y, kind)], BITS, NUMBERS)
        plain = list[int]()
        steps = self.moment_steps
        of_unit = groups[kind]
        squares = [sums_by(of_unit, each) for each in (x * x, y * y, x * y)]
        a, b = self.most_steps
        for xx, yy, xy in zip(*squares, strict=True):
            mixed = a * a * xx - 2 * a * b * xy + b * b * yy
            plain += [each // step for each, step in zip((xx, yy, mixed), steps, strict=True)]
        return PairDrawn(
            first=tuple(numbers[: len(of_first)]),
            second=tuple(numbers[len(of_first) :]),
            moments=tuple(noise.add_laplace(plain, BITS, MOMENTS)),
        )

    def moment_values(self, widths: tuple[float, float]) -> Floats:
        """What one step of each second moment is worth.

        The first two are in the squared units of the outcomes. The third is that of
        p x/U - q y/W, where U and W are the widths, and p and q the parts of the loss.
        """
        first, second, mixed = self.moment_steps
        of_first = first * (widths[0] / TICKS) ** 2
        of_second = second * (widths[1] / TICKS) ** 2
        return np.array([of_first, of_second, mixed / (TICKS * sum(self.most_steps)) ** 2])


def rounding_of(numbers: Numbers) -> int:
    """Returns by how many steps rounding may move the numbers of a unit and its second moments."""
    moved = 1 if numbers.rows is None else len(numbers.rows)
    return 2 * moved + MOMENTS_OF_GROUP


def fair_share(widths: tuple[float, float], ratio: float) -> float:
    """Returns the part of the loss of a numerator by which the noise of x - ratio y is least."""
    first = math.cbrt(widths[0] ** 2)
    second = math.cbrt((ratio * widths[1]) ** 2)
    return min(max(first / (first + second), _LEAST_SHARE), 1 - _LEAST_SHARE)


def pair_choice(choice: Choice, many: Ints, epsilon: Fraction, share: float) -> PairChoice:
    """Returns the choice of one outcome for two, of which the first has a share of epsilon."""
    rounding = Fraction(rounding_of(Numbers(many, choice)), 2**BITS)
    if epsilon < ROUNDING * rounding:
        raise InputError(
            f"epsilon {float(epsilon):.3g} is too small for {2 * len(choice.steps)} numbers",
            f"ask for an epsilon of {float(ROUNDING * rounding):.3g} or more, or fewer questions",
        )
    parts: dict[str, Any] = {"rows": choice.rows, "sums": choice.sums, "by": choice.by}
    of_first = Fraction(share) * (epsilon - rounding)
    losses = of_first, epsilon - rounding - of_first
    steps = []
    for each in losses:
        wanted = choice.steps.astype(np.float64) * float(epsilon / each)
        steps.append(fitted(parts, many, wanted, each, moments=False).steps)
    return PairChoice(**parts, first_steps=steps[0], second_steps=steps[1])
