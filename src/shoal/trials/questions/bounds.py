"""Plans of means and effects whatever missing outcomes are, where who lacks one is private.

Of a unit v is the outcome about the middle of the range, or 0 if it is missing; q is v^2, or U^2/4
if it is missing; m is 1 if it is missing. Sums of v and q are drawn as for complete outcomes, and
those of m beside them: the number of missing outcomes costs nothing but rounding.
Source: docs/theory/experiments.md#missing-outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from shoal.arrays import Floats
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.privacy.accounting import NoisyVector, Step
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Noise
from shoal.trials.design import Design
from shoal.trials.domain import Domain
from shoal.trials.plan import Private, Request, in_order
from shoal.trials.questions.noise import choices, choices_of_cells
from shoal.trials.questions.numbers import (
    BITS,
    MOMENTS,
    NUMBERS,
    TICKS,
    Choice,
    Numbers,
    sums_by,
    ticks_of,
)
from shoal.trials.questions.sides import (
    Compared,
    Interval,
    Side,
    SidesPlan,
    check_entries,
    distinct,
    linear,
    noise_of_moments,
    sides_of,
)
from shoal.trials.questions.variances import fit_of
from shoal.trials.questions.weights import MEAN, Block, QuestionEntry

# Numbers of missing outcomes are rounded, too: so many steps of epsilon are left for that, and so
# many more for each side.
_FEW = 64
_OF_SIDE = 4


class BoundsRequest(Request):
    """Questions as they were asked, and the stated standard deviation of outcomes within arms."""

    entries: tuple[QuestionEntry, ...]
    sd: float
    # Another request than that for complete outcomes.
    missing: Literal["worst"] = "worst"


class BoundsDrawn(Model):
    """Drawn numbers of outcomes and of missing ones, and second moments, in steps."""

    numbers: tuple[int, ...]
    missing: tuple[int, ...]
    moments: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BoundsSide(Side):
    """The mean of an arm: of outcomes about the middle, and half the range of each missing one."""

    def parts(self, factor: float) -> Floats:
        """The second moment is that of outcomes at either end, if they are missing."""
        return np.ones(1)

    @property
    def error(self) -> float:
        """The standard error of the mean of complete outcomes."""
        spread = self.spread(0.0)
        return math.sqrt(max(spread.variance, 0.0) + spread.noise)

    def interval(self, confidence: float) -> Interval:
        """Returns means with all missing outcomes at either end, and the interval that holds both.

        It goes from the lower end of the interval of the one to the upper end of the other's.
        """
        v = self.first
        reach = v.width / 2
        missing = min(max(self.second.mean, 0.0), reach)
        ends = []
        for sign in (-1.0, 1.0):
            mean = min(max(v.mean + sign * missing, -reach), reach)
            half = self.spread(sign).half_width(confidence)
            ends.append((v.low + reach + mean, half))
        (bottom, down), (top, up) = ends
        return Interval(bottom - down, bottom, top, top + up)


@dataclass(frozen=True, eq=False, repr=False)
class BoundsPlan(SidesPlan):
    """A plan of means and effects whatever missing outcomes are: `trials.Questions.plan`."""

    request: BoundsRequest
    chosen: Choice

    kind: ClassVar[str] = "bounds"
    request_model: ClassVar[type[Request]] = BoundsRequest
    chosen_model: ClassVar[type[Model]] = Choice
    drawn_model: ClassVar[type[Model]] = BoundsDrawn

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of outcomes."""
        return Numbers(self.design.many, self.chosen)

    @cached_property
    def missing_numbers(self) -> Numbers:
        """The numbers of missing outcomes, by the sizes of the same weights in the same steps."""
        found = Numbers(self.design.many, self.chosen)
        if found.rows is not None:
            found.rows = np.abs(found.rows)
        return found

    @cached_property
    def own_steps(self) -> Sequence[Step]:
        """One noisy vector, from whose numbers all means must follow, and those of missing ones."""
        self.numbers.check()
        wanted = [each.block.rows for each in self.blocks]
        wanted += [fit_of(self.design, each.block, self.chosen.by)[1] for each in self.blocks]
        for numbers in (self.numbers, self.missing_numbers):
            if not all(numbers.answer(each) for each in wanted):
                raise LookupError
        if not self.chosen.moment_step:
            raise LookupError
        rounded = 1 if self.numbers.rows is None else len(self.numbers.rows)
        most = int(self.numbers.step.moves[0]) + rounded
        return [NoisyVector("laplace", BITS, np.array([most]))]

    def answers_head(self, many: int) -> str:
        """Returns the first line of answers, which says what missing outcomes are."""
        head = super().answers_head(many)
        return f"{head}; whatever missing outcomes are: a value has them in the middle of the range"

    @property
    def follows(self) -> bool:
        """Whether all means follow, also those of missing outcomes, at no more than was asked."""
        try:
            return self.exact_epsilon <= self.request.epsilon
        except LookupError:
            # There is no loss if the sizes of weights tell nothing of some side.
            return False

    def ordered(self, private: Private) -> Floats:
        """Returns outcomes in the design's order, NaN where one is missing."""
        return in_order(private.outcomes, self.domain, private.study, may_lack=True)

    def respond(self, outcomes: Any, noise: Noise) -> BoundsDrawn:
        """Draws all numbers with their noise.

        Formal guarantee: label differential privacy with `exact_epsilon`, whatever outcomes are,
        and whichever are missing.
        """
        gone = np.isnan(outcomes)
        middle = self.domain.levels[0] + self.domain.width / 2
        ticks = ticks_of(np.where(gone, middle, outcomes), self.domain)
        ticks[gone] = 0
        kind = self.design.kind_of_unit
        of_outcomes = self.numbers.sums_of(ticks, kind)
        at_end = np.where(gone, TICKS // 2, 0)
        of_missing = self.missing_numbers.sums_of(at_end, kind)
        numbers = noise.add_laplace([*of_outcomes, *of_missing], BITS, NUMBERS)
        squares = sums_by(self.groups[kind], ticks**2 + at_end**2)
        moments = [each // self.chosen.moment_step for each in squares]
        return BoundsDrawn(
            numbers=tuple(numbers[: len(of_outcomes)]),
            missing=tuple(numbers[len(of_outcomes) :]),
            moments=tuple(noise.add_laplace(moments, BITS, MOMENTS)),
        )

    def check_drawn(self, drawn: BoundsDrawn) -> None:
        """Refuse drawn numbers that are not as many as planned."""
        found = len(drawn.numbers), len(drawn.missing), len(drawn.moments)
        many = len(self.chosen.steps)
        if found != (many, many, int(self.groups.max()) + 1):
            raise ValueError

    def sides(self, block: Block, drawn: BoundsDrawn | None) -> Iterator[BoundsSide]:
        """Yields the mean of each row of weights; none is expected to be missing."""
        domain = self.domain
        value = np.array([self.numbers.moment_value(domain.width)])
        moments = np.zeros((int(self.groups.max()) + 1, 1))
        columns: list[Floats | None] = [None, None]
        if drawn is not None:
            moments = np.array(drawn.moments, dtype=float)[:, None] * value
            columns = [np.array(each, dtype=float) for each in (drawn.numbers, drawn.missing)]
        fit, weights, moments_of_fit, groups = self.fits(block, moments)
        scales = noise_of_moments(groups, value)
        ends = domain.levels[0], domain.levels[-1]
        middle = sum(ends) / 2
        numbers = self.numbers, self.missing_numbers
        both = [
            linear(each, column, block.rows, weights, ends, middle)
            for each, column in zip(numbers, columns, strict=True)
        ]
        for at, (v, missing) in enumerate(zip(*both, strict=True)):
            variance = None
            if drawn is None:
                variance = self.request.sd**2 * self.lengths_of(block)[at]
            yield BoundsSide(v, missing, fit.of_row(at), moments_of_fit, scales, variance)

    def cut(self, interval: Interval, question: Compared) -> Interval:
        """Returns the part of an interval that the range allows.

        Means are cut after they were compared: an end that is cut is no quantile any more.
        """
        least = self.domain.levels[0]
        most = self.domain.levels[-1]
        if question.control is not None:
            most -= least
            least = -most
        return interval._replace(low=max(interval.low, least), high=min(interval.high, most))

    def warnings(self, **_: Any) -> list[str]:
        """A sentence if noise fills the range."""
        width = self.domain.width
        if all(2 * each.half_width < width for each in self.predicted):
            return []
        return [
            "at this size nothing is learned of some question: its interval is as long as the "
            "range; take a narrower domain, more users or a larger epsilon"
        ]

    def meanings(self) -> Iterator[str]:
        """Yields the sentences below the table."""
        low = self.domain.levels[0]
        high = self.domain.levels[-1]
        yield f"outcomes are from {low:g} to {high:g}; others are moved to the nearer end"
        yield (
            "who lacks an outcome is private, and so is how many: an interval holds whatever "
            "missing outcomes are, and a value is that with each of them in the middle of the range"
        )
        yield (
            f"predicted for outcomes of standard deviation {self.request.sd:.4g} (sd), none of "
            "them missing: each hundredth that is missing makes the interval of a mean a hundredth "
            "of the range longer"
        )


def bounds_of(
    design: Design,
    entries: Sequence[QuestionEntry],
    domain: Domain,
    epsilon: Amount,
    sd: float,
) -> BoundsPlan:
    """Returns the plan of bounds: see `trials.Questions.plan`."""
    check_entries(design, entries, 'missing="worst"')
    request = BoundsRequest.of(domain=domain, epsilon=epsilon, entries=tuple(entries), sd=sd)
    blocks = distinct([*sides_of(design, request.entries, MEAN, with_lift=False)])
    sides = sum(len(each.rows) for each in blocks)
    loss = request.epsilon - Fraction(_FEW + _OF_SIDE * sides, 2**BITS)
    if loss <= 0:
        raise InputError(f"epsilon {epsilon} is too small", "ask for an epsilon of 0.001 or more")
    for tried in (
        choices(design, blocks, domain.width, loss),
        choices_of_cells(design, entries, loss),
    ):
        made = [BoundsPlan(request, design, each) for each in tried]
        found = [each for each in made if each.follows]
        if found:
            return min(found, key=lambda each: sum(one.half_width for one in each.predicted))
    raise InputError("the questions are too many", "ask fewer")
