"""Estimators on symmetric distributions and one that is not, with centres off any lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.theory.clipping import Moment, Moments
from shoal_studies.chart import Chart, Row
from shoal_studies.known_distributions import Distribution, Drawn, Normal
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COLOURS,
    COMBINED,
    SAMPLED,
    SYMMETRIC,
    WORDS,
    Asked,
    Part,
)
from shoal_studies.registry import Finding, Study, short, study
from shoal_studies.simulate import Effort
from shoal_studies.unbiased_measure import Job, Measured, amount, simulate

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


@study(
    "004-distributions",
    "Bias and error on five distributions",
    "paper 004, sections 3 and 4",
)
def distributions(effort: Effort) -> Study:
    """The sampled and the combined mean have delta 0.01, so that some users are sampled."""
    centres, known = (
        (CENTRES, KNOWN_DISTRIBUTIONS) if effort.full else (CENTRES[:1], KNOWN_DISTRIBUTIONS[::2])
    )
    planned = [
        (distribution, centre, part)
        for distribution, moments in known
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
    rows = [case.row for case in cases]
    shown: list[Row] = [
        {**case.row, "off": case.off, "over": case.found.rmse / case.part.rmse_bound}
        for case in cases
    ]
    looks = {WORDS[name]: (colour, "", "o") for name, colour in COLOURS.items() if name in WORDS}
    charts = [
        Chart(shown, "distribution", name, "estimator", labels=("distribution", label), looks=looks)
        for name, label in (
            ("off", "simulated bias, in its standard errors"),
            ("over", "simulated RMSE over the certificate"),
        )
    ]
    return Study(rows, charts, _findings(cases))


def _findings(cases: Sequence[Case]) -> list[Finding]:
    kept = [case for case in cases if case.promised]
    clipped = max(abs(case.found.bias) for case in kept if case.part.method == CLIPPED)
    broken = max((case for case in cases if not case.promised), key=lambda case: abs(case.off))
    over = max(case.found.rmse / case.part.rmse_bound for case in kept)
    findings = []
    for name in (SAMPLED, COMBINED, SYMMETRIC):
        off = max(abs(case.off) for case in kept if case.part.method == name)
        findings.append(
            Finding(f"largest simulated bias of the {WORDS[name]} mean, in standard errors",
                    f"0 (here: within {_FAR:g})", f"{off:.1f}", off <= _FAR)
        )  # fmt: skip
    return [
        *findings,
        Finding(f"largest bias of the clipped mean with a budget of {BIAS:g}", "-",
                f"{clipped:.2g}"),
        Finding("bias of the symmetric mean on lognormal values, in standard errors",
                "not promised to be 0", f"{broken.found.bias:.2g}, {abs(broken.off):.0f}"),
        Finding("largest error over the certificate, where it holds", "-", f"{over:.3f}"),
    ]  # fmt: skip
