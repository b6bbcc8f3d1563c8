"""Unbiased means side by side: measured error, certificate, lower bound, and what is printed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from shoal.means.estimators import ClippedPlan
from shoal.theory import clipping
from shoal.theory.clipping import Moment
from shoal.theory.trilemma import trilemma
from shoal_studies import unbiased_printed
from shoal_studies.known_distributions import mirrored
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COMBINED,
    SYMMETRIC,
    WORDS,
    Asked,
    Part,
    Sampled,
)
from shoal_studies.registry import Repetitions, Seed, bench
from shoal_studies.simulate import Effort
from shoal_studies.unbiased_exact import worst
from shoal_studies.unbiased_measure import Job, Measured, amount, simulate

_GRID = tuple(itertools.product((1000, 10_000, 100_000), (0.1, 1.0), (1e-8, 1e-5), (2.0, 4.0, 8.0)))
_BIAS = 0.01
# Standard errors that a measured figure may be above its certificate.
_SLACK = 6.11
_WIDTH = 11
_COLUMNS = ("measured", "+-", "worst", "certified", "bound", "cert/bound", "printed/b")
_GAIN = Asked(10_000, (Moment(2, 1), Moment(8, 105**0.125)), 1.0, 1e-6)


@dataclass(frozen=True, eq=False)
class Line:
    """One estimator in one setting; errors in units of 1/sqrt(n)."""

    asked: Asked
    part: Part
    found: Measured
    worst: float | None
    bound: float
    printed: float

    @property
    def certified(self) -> float:
        """Ours."""
        return self.part.rmse_bound

    @property
    def within(self) -> bool:
        """Whether no error is above the certificate, beyond statistical slack."""
        exact = self.worst is None or self.worst <= self.certified
        return exact and self.found.rmse - _SLACK * self.found.rmse_error <= self.certified

    @property
    def above(self) -> bool:
        """Whether the certificate is not below the lower bound, where that applies."""
        return self.part.method == SYMMETRIC or self.certified >= self.bound

    def __str__(self) -> str:
        """One line."""
        asked, unit = self.asked, math.sqrt(self.asked.n)
        name = WORDS[self.part.method]
        head = (
            f"{asked.n:>7}{asked.epsilon:>6g}{asked.delta:>8.0e}{asked.moments[0].order:>4g} "
            f"{name:<10}"
        )
        errors = (
            self.found.rmse,
            self.found.rmse_error,
            self.worst,
            self.certified,
            self.bound,
        )
        ratios = self.certified / self.bound, self.printed / self.bound
        figures = [
            f"{'-':>{_WIDTH}}" if each is None else f"{each * unit:>{_WIDTH}.4g}" for each in errors
        ]
        return head + "".join([*figures, *(f"{each:>{_WIDTH}.3g}" for each in ratios)])


@bench("unbiased")
def unbiased(repetitions: Repetitions = 2000, seed: Seed = 0) -> Iterator[str]:
    """Measure errors of unbiased means beside certificates, lower bounds and the paper's bounds.

    In units of 1/sqrt(n) over users, epsilon, delta and the order of a moment of size 1.

    `measured` is simulated on values of +-1 and `worst` exact on the worst two points that were
    found; `bound` is the lower bound over all distributions with the moment, which is no bound for
    symmetric distributions, nor for these data alone: easier distributions allow less. The clipped
    mean has a bias budget of 0.01 and spends no delta; the mean is in [0, 1]. Then the gains over
    the paper, one a line.

    Example: shoal bench unbiased --repetitions 200
    """
    effort = Effort(repetitions=repetitions, seed=seed)
    yield (
        f"errors in units of 1/sqrt(n), moment of size 1, interval [0, 1]; clipped: bias {_BIAS:g}"
    )
    yield f"{'users':>7}{'eps':>6}{'delta':>8}{'ord':>4} {'estimator':<10}" + "".join(
        f"{name:>{_WIDTH}}" for name in _COLUMNS
    )
    lines = []
    for n, epsilon, delta, order in _GRID:
        asked = Asked(n, (Moment(order, 1.0),), epsilon, delta)
        for line in measure(asked, effort):
            lines.append(line)
            yield str(line)
    yield from _verdicts(lines)
    yield from gains(effort)


def measure(asked: Asked, effort: Effort) -> list[Line]:
    """Clipped, combined and symmetric in one setting.

    Example:
        >>> asked = Asked(1000, (Moment(4, 1.0),), 1.0, 1e-6)
        >>> all(line.within and line.above for line in measure(asked, Effort(repetitions=50)))
        True
    """
    order = asked.moments[0].order
    facts = unbiased_printed.Facts(asked.n, asked.epsilon, asked.delta, order)
    parts: tuple[tuple[Part, float, float, float], ...] = (
        (asked.clipped(_BIAS), 0.0, _BIAS, unbiased_printed.clipped(facts, _BIAS)),
        (asked.combined(), asked.delta, 0.0, unbiased_printed.combined(facts)),
        (asked.symmetric(), asked.delta, 0.0, unbiased_printed.symmetric(facts)),
    )
    coin, runs = mirrored(asked.moments, 1.0), amount(effort, asked.n)
    found = simulate([Job(part, coin, 1.0, runs) for part, *_ in parts], effort)
    return [
        Line(
            asked,
            part,
            got,
            worst(part)[1].rmse if isinstance(part, ClippedPlan | Sampled) else None,
            trilemma(asked.n, asked.epsilon, delta, bias, (order, 1.0)).rmse,
            printed,
        )
        for (part, delta, bias, printed), got in zip(parts, found, strict=True)
    ]


def _verdicts(lines: list[Line]) -> Iterator[str]:
    within, above = (all(getattr(line, name) for line in lines) for name in ("within", "above"))
    yield f"no error above its certificate, beyond {_SLACK:g} standard errors: {_yes(within)}"
    yield f"no certificate below the bound, but for symmetric distributions: {_yes(above)}"
    for method in (CLIPPED, COMBINED, SYMMETRIC):
        these = [line for line in lines if line.part.method == method]
        ours = [line.certified / line.bound for line in these]
        gain = [line.printed / line.certified for line in these if line.printed < math.inf]
        yield (
            f"{WORDS[method]}: certificate over bound {min(ours):.3g} to {max(ours):.3g}; printed "
            f"over certificate {min(gain):.3g} to {max(gain):.3g}"
        )


def gains(effort: Effort) -> Iterator[str]:
    """What is gained over the paper, each part by itself, at 10,000 users unless said.

    Example:
        >>> len(list(gains(Effort(repetitions=20))))
        6
    """
    yield "gains over the paper, n = 10,000, epsilon 1, Gaussian moments of order 2 and 8"
    unit, runs = math.sqrt(_GAIN.n), amount(effort, _GAIN.n)
    combined, coin = _GAIN.combined(), mirrored((Moment(2, 1),), 1.0)
    parts: list[Part] = [combined, _GAIN.symmetric()]
    found = simulate([Job(part, coin, 1.0, runs) for part in parts], effort)
    twice = math.sqrt(combined.variance_bound + 1 / _GAIN.n)
    yield (
        f"1/n instead of 2/n: combined certificate {combined.rmse_bound * unit:.4g} instead of "
        f"{twice * unit:.4g}, measured {_told(found[0], unit)}"
    )
    for bias in (0.1, 0.01, 0.001):
        yield _margins(bias)
    yield (
        f"symmetric, delta {_GAIN.delta:g}: certificate {parts[1].rmse_bound * unit:.4g}, "
        f"measured {_told(found[1], unit)}"
    )


def _margins(bias: float) -> str:
    """Margin and certificate of the clipped mean of order 2, with the printed margin and ours."""
    asked = Asked(_GAIN.n, (Moment(2, 1),), _GAIN.epsilon, _GAIN.delta)
    facts = unbiased_printed.Facts(asked.n, asked.epsilon, asked.delta, 2.0)
    ours, unit = asked.clipped(bias), math.sqrt(asked.n)
    exact = worst(ours)[1].rmse
    tangent = clipping.excess(asked.moments, 1.0) / bias
    return (
        f"margin at order 2, bias {bias:g}: {ours.margin:.4g} instead of {1 / bias:.4g} (without "
        f"Scarf's bound {tangent:.4g}); certificate {ours.rmse_bound * unit:.4g} instead of "
        f"{unbiased_printed.clipped(facts, bias) * unit:.4g}, worst two points {exact * unit:.4g}"
    )


def _told(found: Measured, unit: float) -> str:
    return f"{found.rmse * unit:.4g} +- {found.rmse_error * unit:.2g}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
