"""Plans of ratios of two sums in arms, such as conversions per visit, and of their differences.

For any number r the mean of x - r y has a known noise, and a variance by three second moments. The
interval of a ratio is Fieller's: every r for which 0 is in the interval of that mean. Nothing is
linearised.
Source: docs/theory/experiments.md#ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from shoal import checks
from shoal.arrays import Floats
from shoal.documents.model import Model
from shoal.errors import DataError, InputError
from shoal.privacy.accounting import Step
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Noise
from shoal.trials.design import Design
from shoal.trials.domain import Domain
from shoal.trials.plan import Private, Request, in_order
from shoal.trials.questions.noise import choices
from shoal.trials.questions.numbers import ticks_of
from shoal.trials.questions.pairs import (
    MOMENTS_OF_GROUP,
    Pair,
    PairChoice,
    PairDrawn,
    fair_share,
    pair_choice,
)
from shoal.trials.questions.sides import (
    Interval,
    Side,
    SidesPlan,
    check_entries,
    distinct,
    linear,
    noise_of_moments,
    sides_of,
)
from shoal.trials.questions.weights import Block, QuestionEntry

RATIO = "ratio"
# The standard deviation of x - r y without a guess, as a part of the range of x.
_USUAL_SD = 0.25
# A denominator may be all noise if this many deviations of it reach from its mean to its least.
_FAR = 4.0
# The search for an end of an interval begins at this part of a first guess, which it doubles.
_FIRST = 0.5
_DOUBLINGS = 60
# The first guess takes the denominator for at least this part of its range.
_SMALL = 1e-3
# Ends are found as closely as floating point allows.
_CLOSE = 1e-13


class RatiosRequest(Request):
    """Questions about ratios: the range of the denominator, and what is expected.

    `domain` is the range of the numerator. `expected` are means of numerator and denominator, and
    `sd` is the standard deviation of x - r y within arms.
    """

    denominator: Domain
    entries: tuple[QuestionEntry, ...]
    expected: tuple[float, float]
    sd: float
    lift: bool


@dataclass(frozen=True, eq=False)
class RatioSide(Side):
    """The ratio of the means of two outcomes x and y over the same weighted units.

    Second moments are those of x, of y, and of p x/U - q y/W, where U and W are the widths of the
    ranges, p is the part of the loss that x has, and q the rest.
    """

    share: float

    def parts(self, factor: float) -> Floats:
        """By which factors second moments add up to that of x + factor y."""
        p = self.share
        q = 1 - p
        # The ratio in units of the widths.
        c = -factor * self.second.width / self.first.width
        square = self.first.width**2
        of_first = 1 - c * p / q
        of_second = (c**2 - c * q / p) * square / self.second.width**2
        return np.array([of_first, of_second, c * square / (p * q)])

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the largest ratio that the ranges allow."""
        x = self.first
        y = self.second
        if y.low <= 0:
            return (0.0 if x.low >= 0 else -math.inf), math.inf
        ends = [top / bottom for top in (x.low, x.high) for bottom in (y.low, y.high)]
        return min(ends), max(ends)

    @property
    def inside(self) -> tuple[float, float]:
        """Both means, each moved into its range."""
        x, y = (min(max(each.whole, each.low), each.high) for each in (self.first, self.second))
        return x, y

    @property
    def value(self) -> float:
        """The ratio of both means, or NaN if the denominator's is not above 0."""
        x, y = self.inside
        return x / y if y > 0 else math.nan

    @property
    def error(self) -> float:
        """The standard error of the ratio where the denominator is far from 0."""
        spread = self.spread(-self.value)
        return math.sqrt(max(spread.variance, 0.0) + spread.noise) / self.inside[1]

    def interval(self, confidence: float) -> Interval:
        """Returns the ratio with Fieller's interval, within what is possible."""
        value = self.value
        least, most = self.possible
        if math.isnan(value):
            return Interval(least, value, value, most)
        x = self.first.whole
        y = self.second.whole
        half = self.spread(-value).half_width(confidence)
        if abs(x - value * y) >= half:
            # Noise took a mean so far out of its range that no ratio is likely: the nearest is.
            x, y = self.inside

        def excess(ratio: float) -> float:
            """Returns how far 0 is inside of the interval of x - ratio y."""
            return self.spread(-ratio).half_width(confidence) - abs(x - ratio * y)

        first = _FIRST * half / max(self.inside[1], _SMALL * self.second.width)
        low, high = (_end(excess, value, end, first) for end in (least, most))
        return Interval(low, value, value, high)


def _end(excess: Callable[[float], float], value: float, end: float, first: float) -> float:
    """Returns where an interval ends on one side: at the first crossing, or what is possible."""
    side = math.copysign(1.0, end - value)
    step = max(first, abs(value) * _CLOSE)
    near = value
    for _ in range(_DOUBLINGS if value != end and first > 0 else 0):
        tried = value + side * step
        if side * (tried - end) >= 0:
            tried = end
        if excess(tried) < 0:
            close = _CLOSE * max(abs(near), abs(tried))
            return float(brentq(excess, near, tried, rtol=_CLOSE, xtol=close))
        if tried == end:
            break
        near = tried
        step *= 2
    return end


@dataclass(frozen=True, eq=False, repr=False)
class RatiosPlan(SidesPlan):
    """A plan of ratios: see `trials.Questions.plan` with two domains."""

    request: RatiosRequest
    chosen: PairChoice

    kind: ClassVar[str] = "ratios"
    request_model: ClassVar[type[Request]] = RatiosRequest
    chosen_model: ClassVar[type[Model]] = PairChoice
    drawn_model: ClassVar[type[Model]] = PairDrawn

    @property
    def with_lift(self) -> bool:
        """Whether relative differences are shown, too."""
        return self.request.lift

    @property
    def of_mean(self) -> str:
        """The word for the ratio of an arm."""
        return RATIO

    @cached_property
    def numbers(self) -> Pair:
        """The whole numbers that are released."""
        return Pair(self.design.many, self.chosen)

    @cached_property
    def own_steps(self) -> Sequence[Step]:
        """One noisy vector, from whose numbers all ratios must follow."""
        self.numbers.check()
        for each in (self.numbers.first, self.numbers.second):
            if not all(each.answer(sides.block.rows) for sides in self.blocks):
                raise LookupError
        return [self.numbers.step]

    @property
    def domains(self) -> tuple[Domain, Domain]:
        """The ranges of numerator and denominator."""
        return self.domain, self.request.denominator

    def columns_of(self, outcomes: Any) -> dict[str, Any]:
        """Returns both outcomes, numerator first."""
        try:
            first, second = outcomes
        except (TypeError, ValueError):
            raise DataError(
                "a ratio has two outcomes", "give a numerator and a denominator"
            ) from None
        return {"numerator": first, "denominator": second}

    def ordered(self, private: Private) -> tuple[Floats, Floats]:
        """Returns both outcomes in the design's order."""
        x, y = self.columns_of(private.outcomes).values()
        study = private.study
        return in_order(x, self.domain, study), in_order(y, self.request.denominator, study)

    def respond(self, outcomes: Any, noise: Noise) -> PairDrawn:
        """Draws all numbers with their noise.

        Formal guarantee: label differential privacy with `exact_epsilon`, whatever both outcomes.
        """
        x, y = outcomes
        ticks = ticks_of(x, self.domain), ticks_of(y, self.request.denominator)
        return self.numbers.draw(ticks, self.design.kind_of_unit, self.groups, noise)

    def check_drawn(self, drawn: PairDrawn) -> None:
        """Refuse drawn numbers that are not as many as planned."""
        moments = MOMENTS_OF_GROUP * (int(self.groups.max()) + 1)
        found = len(drawn.first), len(drawn.second), len(drawn.moments)
        many = len(self.chosen.first_steps)
        if found != (many, len(self.chosen.second_steps), moments):
            raise ValueError

    def sides(self, block: Block, drawn: PairDrawn | None) -> Iterator[RatioSide]:
        """Yields the ratio of each row of weights."""
        widths = self.domain.width, self.request.denominator.width
        values = self.numbers.moment_values(widths)
        moments = np.zeros((int(self.groups.max()) + 1, MOMENTS_OF_GROUP))
        columns: list[Floats | None] = [None, None]
        if drawn is not None:
            moments = np.array(drawn.moments, dtype=float).reshape(moments.shape) * values
            columns = [np.array(each, dtype=float) for each in (drawn.first, drawn.second)]
        fit, weights, moments_of_fit, groups = self.fits(block, moments)
        scales = noise_of_moments(groups, values)
        both = []
        numbers = self.numbers.first, self.numbers.second
        for at, domain in enumerate(self.domains):
            ends = domain.levels[0], domain.levels[-1]
            expected = self.request.expected[at]
            both.append(linear(numbers[at], columns[at], block.rows, weights, ends, expected))
        for at, (x, y) in enumerate(zip(*both, strict=True)):
            variance = None
            if drawn is None:
                variance = self.request.sd**2 * self.lengths_of(block)[at]
            own = fit.of_row(at)
            share = self.numbers.share
            yield RatioSide(x, y, own, moments_of_fit, scales, variance, share)

    def warnings(self, **_: Any) -> list[str]:
        """A sentence if the denominator may be all noise."""
        room = self.request.expected[1] - self.request.denominator.levels[0]
        noises = [
            each.second.noise for sides in self.blocks for each in self.sides(sides.block, None)
        ]
        if _FAR * math.sqrt(max(noises)) < room:
            return []
        return [
            "at this size nothing is learned of some ratio: its denominator may be all noise; take "
            "a narrower domain, more users or a larger epsilon"
        ]

    def meanings(self) -> Iterator[str]:
        """Yields the sentences below the table."""
        ends = [f"{each.levels[0]:g} to {each.levels[-1]:g}" for each in self.domains]
        x, y = self.request.expected
        yield (
            "a ratio is the sum of numerators over the sum of denominators of an arm: numerators "
            f"of a unit are from {ends[0]}, denominators from {ends[1]}; others are moved to the "
            "nearer end, which changes the ratio"
        )
        middles = _guess(self.domains, None)
        given = "no expected= was given: the middles" if (x, y) == middles else "expected"
        yield (
            f"predicted for means of {x:.4g} and {y:.4g} ({given}) and a standard deviation of "
            f"{self.request.sd:.4g} of numerator - ratio x denominator (sd); results do not depend "
            "on these guesses, but how noise is shared does"
        )


def ratios_of(
    design: Design,
    entries: Sequence[QuestionEntry],
    domains: tuple[Domain, Domain],
    epsilon: Amount,
    *,
    sd: float | None,
    expected: tuple[float, float] | None,
    with_lift: bool,
) -> RatiosPlan:
    """Returns the plan of ratios of two outcomes: see `trials.Questions.plan`."""
    check_entries(design, entries, "a ratio")
    first, second = domains
    if second.levels[0] < 0:
        raise InputError(
            f"the denominator's domain begins at {second.levels[0]:g}",
            "give one that begins at 0 or, better, at 1",
        )
    x, y = _guess(domains, expected)
    if sd is None:
        sd = _USUAL_SD * first.width if expected is None else _usual(first, x)
    least = 1e-6 * first.width
    most = first.width + second.width
    request = RatiosRequest.of(
        domain=first,
        denominator=second,
        epsilon=epsilon,
        entries=tuple(entries),
        expected=(x, y),
        sd=checks.number(sd, "sd", least=least, most=most, example=_USUAL_SD * first.width),
        lift=with_lift,
    )
    blocks = distinct([*sides_of(design, request.entries, RATIO, with_lift=with_lift)])
    share = fair_share((first.width, second.width), x / y)
    made = [
        RatiosPlan(request, design, pair_choice(each, design.many, request.epsilon, share))
        for each in choices(design, blocks, first.width, request.epsilon)
    ]
    return min(made, key=lambda each: sum(one.standard_error for one in each.predicted))


def _usual(domain: Domain, mean: float) -> float:
    """Returns a guess of the standard deviation: that of counts, or half of the largest one."""
    low = domain.levels[0]
    is_counts = bool((np.diff(domain.array) == 1).all())
    if is_counts and mean > max(low, 0):
        return math.sqrt(mean)
    largest = math.sqrt((mean - low) * (domain.levels[-1] - mean))
    return max(largest / 2, 1e-3 * domain.width)


def _guess(
    domains: tuple[Domain, Domain], expected: tuple[float, float] | None
) -> tuple[float, float]:
    """Returns the expected means of both outcomes; without a guess their middles."""
    if expected is None:
        x, y = ((each.levels[0] + each.levels[-1]) / 2 for each in domains)
        return x, y
    given = checks.items(expected, "expected", least=2, most=2)
    x, y = (
        checks.number(each, "expected", least=domain.levels[0], most=domain.levels[-1])
        for each, domain in zip(given, domains, strict=True)
    )
    if y <= 0:
        raise InputError("the expected denominator is 0", "give its expected mean, such as 3")
    return x, y
