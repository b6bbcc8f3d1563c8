"""Estimators on symmetric distributions and one that is not, with centres off any lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.theory.clipping import Moment, Moments
from shoal_studies import drawing, unbiased_drawing
from shoal_studies.drawing import Shown
from shoal_studies.known_distributions import Distribution, Drawn, Normal
from shoal_studies.measure import Effort
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COMBINED,
    SAMPLED,
    SYMMETRIC,
    WORDS,
    Asked,
    Part,
)
from shoal_studies.study import Outcome, Row, Study, short
from shoal_studies.unbiased_measure import Job, Measured, amount, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USERS, EPSILON, DELTA, BIAS = 1000, 1.0, 1e-4, 0.01
# Enough of the users are sampled for a simulation to see it.
_OFTEN = 0.01
CENTRES = (math.pi / 10, -1000 / 3)
# Deviations of a normal distribution that hardly any figure exceeds.
_FAR = 4.0


def _orders(*pairs: tuple[float, float]) -> Moments:
    return tuple(Moment(order, size) for order, size in pairs)


# E|X|^8 of the first three is 105, 8!/2^4 and 3^4/9; E|X|^3 of t4 is 2 sqrt(2); lognormal has only
# its variance to say.
KNOWN_DISTRIBUTIONS: tuple[tuple[Distribution, Moments], ...] = (
    (Normal(), _orders((2, 1), (8, 105**0.125))),
    (Drawn("laplace"), _orders((2, 1), (8, 2520**0.125))),
    (Drawn("uniform"), _orders((2, 1), (8, 9**0.125))),
    (Drawn("t4"), _orders((2, 1), (3, 2**0.5))),
    (Drawn("lognormal"), _orders((2, 1))),
)
SKEWED = "lognormal"


@dataclass(frozen=True, eq=False)
class Case:
    """One estimator on one distribution."""

    distribution: Distribution
    centre: float
    part: Part
    found: Measured

    @property
    def off(self) -> float:
        """The simulated bias in standard errors."""
        return self.found.bias / self.found.bias_error

    @property
    def promised(self) -> bool:
        """Whether the estimator's certificate is for such distributions."""
        return self.part.method != SYMMETRIC or self.distribution.name != SKEWED

    @property
    def row(self) -> Row:
        """For the table."""
        found, part = self.found, self.part
        return {
            "distribution": self.distribution.name,
            "centre": self.centre,
            "estimator": WORDS[part.method],
            "delta": short(float(part.loss.delta), 3),
            "bias": short(found.bias, 4),
            "bias_error": short(found.bias_error, 4),
            "bias_bound": part.bias_bound,
            "rmse": short(found.rmse),
            "rmse_error": short(found.rmse_error, 4),
            "certificate": short(part.rmse_bound),
            "promised": int(self.promised),
            "failed": found.failed,
            "runs": len(found.error),
        }


def parts(moments: Moments, centre: float) -> list[Part]:
    """All four estimators for values of a centre, in an interval of width 1 around it.

    Example:
        >>> [part.method for part in parts((Moment(2, 1),), 0.1)][:2]
        ['clipped_mean', 'sampled_mean']
    """
    interval = (centre - 0.6, centre + 0.4)
    asked = Asked(USERS, moments, EPSILON, DELTA, interval)
    often = Asked(USERS, moments, EPSILON, _OFTEN, interval)
    return [asked.clipped(BIAS), often.sampled(), often.combined(), asked.symmetric()]


def _run(effort: Effort) -> Outcome:
    drawing.check()
    centres, distributions = (
        (CENTRES, KNOWN_DISTRIBUTIONS) if effort.full else (CENTRES[:1], KNOWN_DISTRIBUTIONS[::2])
    )
    planned = [
        (distribution, centre, part)
        for distribution, moments in distributions
        for centre in centres
        for part in parts(moments, centre)
    ]
    runs = amount(effort, USERS)
    jobs = [
        Job(part, distribution, centre, max(20, runs // (4 if part.method == SYMMETRIC else 2)))
        for distribution, centre, part in planned
    ]
    found = simulate(jobs, effort)
    cases = [Case(*each, got) for each, got in zip(planned, found, strict=True)]
    return Outcome([case.row for case in cases], _picture(cases), _reading(cases))


def _picture(cases: Sequence[Case]) -> Figure:
    title = f"Bias on five distributions, {USERS:,} users, epsilon {EPSILON:g}"
    figure, axes = drawing.canvas(title, 2)
    shown: Shown = {}
    names = list(dict.fromkeys(case.distribution.name for case in cases))
    for shift, method in enumerate((CLIPPED, SAMPLED, COMBINED, SYMMETRIC)):
        these = [case for case in cases if case.part.method == method]
        at = [names.index(case.distribution.name) + 0.18 * shift - 0.27 for case in these]
        colour = unbiased_drawing.COLOURS[method]
        shown[WORDS[method]] = axes[0].plot(
            at, [case.off for case in these], "o", color=colour, markersize=4
        )[0]
        ratio = [case.found.rmse / case.part.rmse_bound for case in these]
        axes[1].plot(at, ratio, "o", color=colour, markersize=4)
    for level in (-_FAR, _FAR):
        axes[0].axhline(level, color="#999999", linewidth=0.8, linestyle=":")
    axes[0].set(ylabel="simulated bias, in its standard errors", yscale="symlog")
    axes[1].set(ylabel="simulated RMSE over the certificate")
    axes[1].axhline(1.0, color="#333333", linewidth=0.8)
    for axis in axes:
        axis.set_xticks(range(len(names)), names)
    drawing.legend(figure, shown)
    return figure


def _reading(cases: Sequence[Case]) -> str:
    kept = [case for case in cases if case.promised]
    free = [case for case in kept if case.part.bias_bound == 0]
    clipped = [case for case in kept if case.part.method == CLIPPED]
    broken = max((case for case in cases if not case.promised), key=lambda case: abs(case.off))
    most = max(abs(case.found.bias) for case in clipped)
    worst = max(case.found.rmse / case.part.rmse_bound for case in kept)
    by_name = {
        name: max(abs(case.off) for case in free if case.part.method == name)
        for name in (SAMPLED, COMBINED, SYMMETRIC)
    }
    offs = ", ".join(f"{WORDS[name]} {off:.1f}" for name, off in by_name.items())
    return (
        f"Largest simulated bias in standard errors, where none is promised: {offs} (beyond "
        f"{_FAR:g}: {'yes' if max(by_name.values()) > _FAR else 'none'}), {len(free)} figures of "
        f"{len(cases[0].found.error):,} releases each (symmetric: "
        f"{len(cases[-1].found.error):,}). The clipped mean with a budget of {BIAS:g} "
        f"has a bias of up to {most:.2g}. On lognormal values, which are not symmetric, the "
        f"symmetric mean has a bias of {broken.found.bias:.2g} deviations, "
        f"{abs(broken.off):.0f} standard errors: its promise does not cover them. Errors are at "
        f"most {worst:.3f} times the certificates where these hold. The sampled and the combined "
        f"mean have delta {_OFTEN:g} here, so that a simulation sees some users sampled."
    )


DISTRIBUTIONS = Study(
    "004-distributions",
    "Bias and error on five distributions",
    "paper 004, sections 3 and 4",
    _run,
)
