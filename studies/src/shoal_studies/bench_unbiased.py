"""Unbiased means side by side: measured error, certificate, lower bound, and what is printed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from shoal.theory import clipping
from shoal.theory.clipping import Moment
from shoal_studies.paper_004 import Case, printed_clipped
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COMBINED,
    SYMMETRIC,
    WORDS,
    Asked,
    Job,
    Measured,
    amount,
    mirrored,
    simulate,
)
from shoal_studies.registry import Repetitions, Seed, bench
from shoal_studies.simulate import Effort

_GRID = tuple(itertools.product((1000, 10_000, 100_000), (0.1, 1.0), (1e-8, 1e-5), (2.0, 4.0, 8.0)))
_BIAS = 0.01
# Standard errors that a measured figure may be above its certificate.
_SLACK = 6.11
_WIDTH = 11
_COLUMNS = ("measured", "+-", "worst", "certified", "bound", "cert/bound", "printed/b")


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
    pairs = []
    for n, epsilon, delta, order in _GRID:
        for pair in measure(Asked(n, (Moment(order, 1.0),), epsilon, delta), effort):
            pairs.append(pair)
            yield _line(*pair)
    yield f"no error above its certificate, beyond {_SLACK:g} standard errors: " + (
        "yes" if all(within(*pair) for pair in pairs) else "no"
    )
    yield "no certificate below the bound, but for symmetric distributions: " + (
        "yes" if all(above(case) for case, _ in pairs) else "no"
    )
    for method in (CLIPPED, COMBINED, SYMMETRIC):
        these = [case for case, _ in pairs if case.part.method == method]
        ours = [case.certified / case.bound.rmse for case in these]
        gain = [case.printed / case.certified for case in these if case.printed < math.inf]
        yield (
            f"{WORDS[method]}: certificate over bound {min(ours):.3g} to {max(ours):.3g}; printed "
            f"over certificate {min(gain):.3g} to {max(gain):.3g}"
        )
    yield from gains(effort)


def measure(asked: Asked, effort: Effort) -> list[tuple[Case, Measured]]:
    """Clipped, combined and symmetric in one setting."""
    coin = mirrored(asked.moments, 1.0)
    runs = amount(effort, asked.n)
    clipped = Case(asked, asked.clipped(_BIAS), coin, _BIAS)
    cases = [clipped, *(Case(asked, x, coin) for x in (asked.combined(), asked.symmetric()))]
    found = simulate([Job(case.part, coin, 1.0, runs) for case in cases], effort)
    return list(zip(cases, found, strict=True))


def within(case: Case, found: Measured) -> bool:
    """Whether no error is above the certificate, beyond statistical slack."""
    exact = case.worst is None or case.worst <= case.certified
    return exact and found.rmse - _SLACK * found.rmse_error <= case.certified


def above(case: Case) -> bool:
    """Whether the certificate is not below the lower bound, where that applies."""
    return case.part.method == SYMMETRIC or case.certified >= case.bound.rmse


def _line(case: Case, found: Measured) -> str:
    asked = case.asked
    bound = case.bound.rmse
    errors = found.rmse, found.rmse_error, case.worst, case.certified, bound
    figures = ["-" if each is None else f"{each * math.sqrt(asked.n):.4g}" for each in errors]
    figures += [f"{each / bound:.3g}" for each in (case.certified, case.printed)]
    return (
        f"{asked.n:>7}{asked.epsilon:>6g}{asked.delta:>8.0e}{case.order:>4g} "
        f"{WORDS[case.part.method]:<10}" + "".join(f"{each:>{_WIDTH}}" for each in figures)
    )


def gains(effort: Effort) -> Iterator[str]:
    """What is gained over the paper, each part by itself, at 10,000 users unless said."""
    yield "gains over the paper, n = 10,000, epsilon 1, Gaussian moments of order 2 and 8"
    asked = Asked(10_000, (Moment(2, 1), Moment(8, 105**0.125)), 1.0, 1e-6)
    second = (Moment(2, 1),)
    unit = math.sqrt(asked.n)
    runs = amount(effort, asked.n)
    coin = mirrored(second, 1.0)
    combined = asked.combined()
    symmetric = asked.symmetric()
    jobs = [Job(part, coin, 1.0, runs) for part in (combined, symmetric)]
    one, other = (
        f"measured {found.rmse * unit:.4g} +- {found.rmse_error * unit:.2g}"
        for found in simulate(jobs, effort)
    )
    twice = math.sqrt(combined.variance_bound + 1 / asked.n)
    yield (
        f"1/n instead of 2/n: combined certificate {combined.rmse_bound * unit:.4g} instead of "
        f"{twice * unit:.4g}, {one}"
    )
    for bias in (0.1, 0.01, 0.001):
        # The margin of the clipped mean of order 2, as printed and ours.
        ours = Asked(asked.n, second, asked.epsilon, asked.delta).clipped(bias)
        case = Case(asked, ours, coin, bias)
        printed = printed_clipped(asked.n, asked.epsilon, 2.0, bias)
        yield (
            f"margin at order 2, bias {bias:g}: {clipping.margin(second, bias):.4g} instead of "
            f"{1 / bias:.4g} (without Scarf's bound {clipping.excess(second, 1.0) / bias:.4g}); "
            f"certificate {ours.rmse_bound * unit:.4g} instead of {printed * unit:.4g}, "
            f"worst two points {(case.worst or 0.0) * unit:.4g}"
        )
    yield (
        f"symmetric, delta {asked.delta:g}: certificate {symmetric.rmse_bound * unit:.4g}, {other}"
    )
