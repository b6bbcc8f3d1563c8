"""Bias against error: what the estimators certify, what they do, and what nobody can beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.theory.clipping import Moment
from shoal.theory.trilemma import Trilemma, trilemma
from shoal_studies import drawing, unbiased_drawing, unbiased_printed
from shoal_studies.drawing import Shown
from shoal_studies.known_distributions import Points, mirrored
from shoal_studies.measure import Effort
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COMBINED,
    SAMPLED,
    SYMMETRIC,
    WORDS,
    Asked,
    Combined,
    Part,
    Sampled,
)
from shoal_studies.study import Outcome, Row, Study, short, span
from shoal_studies.unbiased_exact import worst
from shoal_studies.unbiased_measure import Job, Measured, amount, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def _run(effort: Effort) -> Outcome:
    drawing.check()
    budgets, orders = (_BUDGETS, _ORDERS) if effort.full else (_FEW, _ORDERS[1:])
    users = USERS if effort.full else USERS[::2]
    every = [case for order in orders for n in users for case in cases(order, n, budgets)]
    # So few values are ever sampled that a simulation would show none.
    shown = [case for case in every if _shows(case)]
    jobs = [Job(case.part, case.distribution, 1.0, _runs(case, effort)) for case in shown]
    found = dict(zip(map(id, shown), simulate(jobs, effort), strict=True))
    pairs = [(case, found.get(id(case))) for case in every]
    return Outcome([_row(*pair) for pair in pairs], _picture(pairs), _reading(pairs))


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


def _picture(pairs: Sequence[tuple[Case, Measured | None]]) -> Figure:
    title = f"Error against bias, epsilon {EPSILON:g}, delta {DELTA:g}"
    panels = sorted({(case.order, case.n) for case, _ in pairs})
    orders = {order for order, _ in panels}
    figure, axes = drawing.canvas(title, len(panels) // len(orders), len(orders))
    shown: Shown = {}
    for axis, (order, n) in zip(axes, panels, strict=True):
        these = [each for each in pairs if (each[0].order, each[0].n) == (order, n)]
        _clipped_lines(axis, shown, [each for each in these if each[0].method == CLIPPED])
        for case, found in these:
            if case.method in {COMBINED, SYMMETRIC}:
                _level(axis, shown, case, found)
        unbiased_drawing.finish(axis, f"order {order:g}, {n:,} users", "bias budget", "RMSE")
    drawing.legend(figure, shown)
    return figure


def _clipped_lines(axis: Axes, shown: Shown, these: Sequence[tuple[Case, Measured | None]]) -> None:
    colour, dark = unbiased_drawing.COLOURS[CLIPPED], unbiased_drawing.COLOURS["bound"]
    across = [case.bias for case, _ in these]
    for name, along, shade, style in (
        ("clipped: certificate", [case.certified for case, _ in these], colour, "-"),
        ("clipped: as printed", [case.printed for case, _ in these], colour, "--"),
        ("lower bound", [case.bound.rmse for case, _ in these], dark, "-"),
        ("lower bound as printed", [case.printed_bound for case, _ in these], dark, "--"),
    ):
        unbiased_drawing.line(axis, shown, name, across, along, colour=shade, style=style)
    measured = [found for _, found in these if found is not None]
    unbiased_drawing.marks(
        axis,
        shown,
        "clipped: simulated, worst two points",
        across,
        [each.rmse for each in measured],
        [each.rmse_error for each in measured],
        colour=colour,
    )


def _level(axis: Axes, shown: Shown, case: Case, found: Measured | None) -> None:
    """An unbiased estimator: the same for every budget; its mark stands at the left."""
    colour, name = unbiased_drawing.COLOURS[case.method], WORDS[case.method]
    shown[f"{name}: certificate"] = axis.axhline(case.certified, color=colour, linewidth=1.5)
    if found is None:
        return
    at = [_BUDGETS[0] * (0.7 if case.method == COMBINED else 0.5)]
    unbiased_drawing.marks(
        axis,
        shown,
        f"{name}: simulated",
        at,
        [found.rmse],
        [found.rmse_error],
        colour=colour,
    )


def _reading(pairs: Sequence[tuple[Case, Measured | None]]) -> str:
    def figures(method: str, order: float) -> list[Case]:
        return [case for case, _ in pairs if (case.method, case.order) == (method, order)]

    parts = []
    for order in sorted({case.order for case, _ in pairs}):
        these = figures(CLIPPED, order)
        near = np.array([case.certified / case.bound.rmse for case in these])
        far = np.array([case.printed / case.printed_bound for case in these])
        exact = np.array([case.certified / case.worst for case in these if case.worst])
        parts.append(
            f"With order {order:g} the clipped mean's certificate is {span(near)} times the lower "
            f"bound (as printed: {span(far, 0)} times the printed bound) and {span(exact)} times "
            "what two points make it err."
        )
    level = [
        f"{WORDS[case.method]} {case.certified * case.n**0.5:.3g}"
        for case, _ in pairs
        if case.method != CLIPPED and (case.order, case.n) == (4.0, USERS[-1])
    ]
    within = max(found.rmse / case.certified for case, found in pairs if found is not None)
    return (
        f"{' '.join(parts)} For order 4 and {USERS[-1]:,} users the unbiased means' certificates "
        f"are, in units of 1/sqrt(n): {', '.join(level)}. The symmetric one may be below the "
        "bound: its class of distributions is smaller. Simulated errors are at most "
        f"{within:.3f} times the certificates, and never four standard errors above: "
        f"{'yes' if _holds(pairs) else 'no'}. The sampled mean, and the combined one of order 2, "
        f"are not simulated: at delta {DELTA:g} hardly any run would sample anybody."
    )


def _holds(pairs: Sequence[tuple[Case, Measured | None]]) -> bool:
    return all(
        found.rmse - 4 * found.rmse_error <= case.certified
        for case, found in pairs
        if found is not None
    )


TRADE_OFF = Study(
    "004-trade-off",
    "Bias against error, certificates and lower bounds",
    "paper 004, theorems 1.2.1, 1.2.2 and 2.1.1, section 3",
    _run,
)
