"""Bias against error: what the estimators certify, what they do, and what nobody can beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.theory.clipping import Moment
from shoal.theory.trilemma import Trilemma, trilemma
from shoal_studies import unbiased_printed
from shoal_studies.chart import Chart, Row
from shoal_studies.known_distributions import Points, mirrored
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COLOURS,
    COMBINED,
    SAMPLED,
    SYMMETRIC,
    WORDS,
    Asked,
    Combined,
    Part,
    Sampled,
)
from shoal_studies.registry import Finding, Study, short, spans, study
from shoal_studies.simulate import Effort
from shoal_studies.unbiased_exact import worst
from shoal_studies.unbiased_measure import Job, Measured, amount, simulate

USERS = (1000, 10_000, 100_000)
EPSILON, DELTA = 1.0, 1e-6
_ORDERS = (2.0, 4.0)
_BUDGETS = tuple(float(each) for each in np.geomspace(1e-4, 0.1, 7))
_FEW = (1e-4, 0.003, 0.1)
# The symmetric mean takes ten times the time of others.
_FEWER = 3
_FAR = 3.0


@dataclass(frozen=True, eq=False)
class Case:
    """One estimator in one setting."""

    order: float
    n: int
    method: str
    bias: float
    part: Part
    distribution: Points
    worst: float | None

    @cached_property
    def bound(self) -> Trilemma:
        """No private estimator with this bias has a smaller error over all distributions."""
        delta = 0 if self.method == CLIPPED else DELTA
        return trilemma(self.n, EPSILON, delta, self.bias, (self.order, 1.0))

    @property
    def printed_bound(self) -> float:
        """The same as printed: the largest of the paper's theorems and proposition."""
        return max(term.rmse for term in self.bound.terms if term.source.endswith("as printed"))

    @property
    def printed(self) -> float:
        """The paper's certificate; of the symmetric mean, its leading terms."""
        facts = unbiased_printed.Facts(self.n, EPSILON, DELTA, self.order)
        if self.method == CLIPPED:
            return unbiased_printed.clipped(facts, self.bias)
        if self.method == COMBINED:
            return unbiased_printed.combined(facts)
        return unbiased_printed.symmetric(facts) if self.method == SYMMETRIC else self.certified

    @property
    def certified(self) -> float:
        """Our certificate."""
        return self.part.rmse_bound


def cases(order: float, n: int, budgets: Sequence[float]) -> list[Case]:
    """All estimators: the clipped mean with every budget, and the three unbiased ones.

    Example:
        >>> [WORDS[case.method] for case in cases(4.0, 1000, (0.01,))]
        ['clipped', 'sampled', 'combined', 'symmetric']
    """
    moments = (Moment(order, 1.0),)
    asked = Asked(n, moments, EPSILON, DELTA)
    found = []
    for bias in budgets:
        part = asked.clipped(bias)
        distribution, exact = worst(part)
        found.append(Case(order, n, CLIPPED, bias, part, distribution, exact.rmse))
    coin = mirrored(moments, 1.0)
    # Of variance 1 as well, as far out as the moment allows.
    far = mirrored(moments, _FAR) if order == _ORDERS[0] else coin
    sampled, combined = asked.sampled(), asked.combined()
    return [
        *found,
        Case(order, n, SAMPLED, 0.0, sampled, coin, worst(sampled)[1].rmse),
        Case(order, n, COMBINED, 0.0, combined, coin, worst(combined)[1].rmse),
        Case(order, n, SYMMETRIC, 0.0, asked.symmetric(), far, None),
    ]


@study(
    "004-trade-off",
    "Bias against error, certificates and lower bounds",
    "paper 004, theorems 1.2.1, 1.2.2 and 2.1.1, section 3",
)
def trade_off(effort: Effort) -> Study:
    """Epsilon 1, delta 1e-6."""
    budgets, orders = (_BUDGETS, _ORDERS) if effort.full else (_FEW, _ORDERS[1:])
    users = USERS if effort.full else USERS[::2]
    every = [case for order in orders for n in users for case in cases(order, n, budgets)]
    # So few values are ever sampled that a simulation would show none.
    shown = [case for case in every if _shows(case)]
    jobs = [Job(case.part, case.distribution, 1.0, _runs(case, effort)) for case in shown]
    found = dict(zip(map(id, shown), simulate(jobs, effort), strict=True))
    pairs = [(case, found.get(id(case))) for case in every]
    rows = [_row(*pair) for pair in pairs]
    return Study(rows, [_chart(pairs)], _findings(pairs))


def _shows(case: Case) -> bool:
    """Whether hardly any value of the simulated distribution is ever published."""
    part, distribution = case.part, case.distribution
    if isinstance(part, Combined):
        return part.margin > max(distribution.values)
    return not isinstance(part, Sampled)


def _runs(case: Case, effort: Effort) -> int:
    runs = amount(effort, case.n)
    return max(20, runs // _FEWER) if case.method == SYMMETRIC else runs


def _row(case: Case, found: Measured | None) -> Row:
    row: Row = {
        "order": case.order,
        "users": case.n,
        "estimator": WORDS[case.method],
        "bias_budget": case.bias,
        "certificate": short(case.certified),
        "worst_two_points": "" if case.worst is None else short(case.worst),
        "simulated": "" if found is None else short(found.rmse),
        "simulated_error": "" if found is None else short(found.rmse_error),
        "simulated_distribution": "" if found is None else case.distribution.name,
        "printed_certificate": short(case.printed),
        "bound": short(case.bound.rmse),
        "printed_bound": short(case.printed_bound),
    }
    return row


def _chart(pairs: Sequence[tuple[Case, Measured | None]]) -> Chart:
    """Certificates and bounds against the bias budget, with what was simulated."""
    rows: list[Row] = []
    for case, found in pairs:
        own, clipped = f"{WORDS[case.method]}: certificate", case.method == CLIPPED
        points = {own: case.certified}
        if case.method == SAMPLED:
            continue
        if clipped:
            points |= {"clipped: as printed": case.printed, "lower bound": case.bound.rmse,
                       "lower bound as printed": case.printed_bound}  # fmt: skip
        for name, each in points.items():
            row: Row = {"bias": case.bias or _BUDGETS[0], "line": name, "rmse": each,
                        "panel": f"order {case.order:g}, {case.n:,} users"}  # fmt: skip
            if name == own and found is not None:
                row |= {"simulated": found.rmse, "bar": 2 * found.rmse_error}
            rows.append(row)
    dark, clipped_colour = COLOURS["bound"], COLOURS[CLIPPED]
    looks = {
        "clipped: certificate": (clipped_colour, "-", ""),
        "clipped: as printed": (clipped_colour, "--", ""),
        "lower bound": (dark, "-", ""),
        "lower bound as printed": (dark, "--", ""),
    } | {
        f"{WORDS[name]}: certificate": (COLOURS[name], "-", "") for name in (COMBINED, SYMMETRIC)
    }  # fmt: skip
    return Chart(rows, "bias", "rmse", "line", "panel", ("bias budget", "RMSE"), "xy", looks,
                 marks="simulated", error="bar")  # fmt: skip


def _findings(pairs: Sequence[tuple[Case, Measured | None]]) -> list[Finding]:
    findings = []
    for order in sorted({case.order for case, _ in pairs}):
        these = [case for case, _ in pairs if (case.method, case.order) == (CLIPPED, order)]
        near = np.array([case.certified / case.bound.rmse for case in these])
        far = np.array([case.printed / case.printed_bound for case in these])
        exact = np.array([case.certified / case.worst for case in these if case.worst])
        name = f"clipped mean, order {order:g}"
        findings += [
            spans(f"{name}: certificate over lower bound", near, "at least 1", near >= 1),
            spans(f"{name}: printed certificate over printed bound", far, "at least 1", far >= 1),
            spans(f"{name}: certificate over the error on two points", exact, "at least 1",
                  exact >= 1),
        ]  # fmt: skip
    level = [
        f"{WORDS[case.method]} {case.certified * case.n**0.5:.3g}"
        for case, _ in pairs
        if case.method != CLIPPED and (case.order, case.n) == (4.0, USERS[-1])
    ]
    kept = [(case, found) for case, found in pairs if found is not None]
    within = max(found.rmse / case.certified for case, found in kept)
    holds = all(found.rmse - 4 * found.rmse_error <= case.certified for case, found in kept)
    return [
        *findings,
        Finding(f"certificates of unbiased means in units of 1/sqrt(n), order 4, {USERS[-1]:,} "
                "users", "-", ", ".join(level)),
        Finding("largest simulated error over the certificate, within 4 standard errors of 1",
                "at most 1", f"{within:.3f}", holds),
    ]  # fmt: skip
