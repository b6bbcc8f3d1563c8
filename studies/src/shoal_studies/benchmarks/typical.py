"""Errors that the default plan makes, beside every preset and what anybody writes by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from shoal.cells.assumptions import NAIVE
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.plan_warnings import plan_warnings
from shoal.cells.planner import make_plan, plan_means
from shoal.cells.request import Request
from shoal.cells.typical_error import typical_errors
from shoal.errors import InputError
from shoal_studies.populations import Population, populations
from shoal_studies.simulated_releases import releases_of

# Linear programs of more memberships take minutes, and arrays of them a long time to fill.
_MOST_OF_PROGRAM, _MOST_OF_ARRAYS = 10_000, 100_000
PRESETS: dict[str, tuple[str, dict[str, str | int | float], int | None]] = {
    "balanced": ("balanced", {}, None),
    "adaptive": ("adaptive", {}, None),
    "optimal, balanced": ("optimal", {"targets": "balanced"}, _MOST_OF_PROGRAM),
    "optimal, selected": (
        "optimal", {"targets": "balanced", "range": "selected"}, _MOST_OF_PROGRAM,
    ),
    "worst_case_optimal": ("worst_case_optimal", {}, None),
    "opt_array_averaging": ("opt_array_averaging", {}, _MOST_OF_ARRAYS),
    "levy": ("levy", {}, _MOST_OF_ARRAYS),
    "quantile": ("quantile", {}, _MOST_OF_ARRAYS),
    "akmv": ("akmv", {}, None),
}  # fmt: skip


def run(
    epsilons: Sequence[float], repetitions: int, only: str = "", delta: str = "0"
) -> Iterator[str]:
    """Lines of errors, one a population and loss, and geometric means of the ratios."""
    yield (
        f"mean absolute error over cells, {repetitions} simulated releases a figure; plain: the "
        "noisy number, value: with what other cells tell; covered: its 95% intervals; told: cells "
        "that are told, and the same figures of them alone"
    )
    yield (
        f"{'population':<33}{'eps':>5}{'plain':>9}{'value':>9}{'covered':>8}{'told':>6}{'value':>9}"
        f"{'covered':>8}{'+-':>9}{'stated':>8}{'best other':>11} {'which':<25}{'ratio':>6}"
    )
    ratios: list[float] = []
    for population in populations():
        if only in population.name:
            for epsilon in epsilons:
                line, ratio = _line(population, epsilon, repetitions, delta)
                ratios.append(ratio)
                yield line
    if not ratios:
        raise InputError(f"no population with {only!r}", "a part of a name", "leave it out")
    mean = math.exp(float(np.log(ratios).mean()))
    yield f"geometric mean of the ratios: {mean:.3f}, the largest {max(ratios):.2f}"


def _line(
    population: Population, epsilon: float, repetitions: int, delta: str
) -> tuple[str, float]:
    plan = default_plan(population, epsilon, delta)
    own = releases_of(plan, population, repetitions)
    value = float(own.error.mean())
    others = {
        name: _least(_preset(population, epsilon, *choice[:2]), population, repetitions)
        for name, choice in PRESETS.items()
        if choice[2] is None or len(population.occupancy.user) <= choice[2]
    }
    others |= naive(population, float(epsilon), repetitions)
    best = min(others, key=lambda name: others[name])
    spread = float(np.mean([np.std(each) for each in population.means]))
    stated = float(typical_errors(plan, spread / plan.width).mean()) * spread
    ratio = value / others[best]
    warned = "!" if plan_warnings(plan) else " "
    return (
        f"{population.name:<32}{warned}{float(epsilon):>5g}{own.plain.mean():>9.3g}{value:>9.3g}"
        f"{own.covered.mean():>8.0%}{own.told.mean():>6.0%}{own.of_told(own.error):>9.3g}"
        f"{own.of_told(own.covered):>8.0%}{own.of_told(own.half_width):>9.3g}"
        f"{stated / value:>8.2f}{others[best]:>11.3g} {best:<25}{ratio:>6.2f}"
    ), ratio


def default_plan(population: Population, epsilon: float, delta: str) -> PlanFacts:
    """Returns the plan that nobody chose anything of."""
    asked = {"epsilon": epsilon, "delta": delta}
    return make_plan(population.occupancy, Request.of(bounds=population.bounds, **asked))


def _preset(
    population: Population,
    epsilon: float,
    method: str,
    settings: dict[str, str | int | float],
    delta: str = "0",
) -> PlanFacts:
    return plan_means(
        population.occupancy, population.bounds, method, epsilon, settings, delta=delta
    )


def _least(plan: PlanFacts, population: Population, repetitions: int) -> float:
    found = releases_of(plan, population, repetitions)
    return float(min(found.plain.mean(), found.error.mean()))


def naive(population: Population, epsilon: float, repetitions: int) -> dict[str, float]:
    """What the naive estimators err."""
    low, high = population.bounds
    errors = dict.fromkeys(NAIVE, 0.0)
    for turn in range(repetitions):
        mean = np.clip(population.means[turn % len(population.means)], low, high)
        share, truth = (mean - low) / (high - low), population.truth(turn)
        for name, estimate in NAIVE.items():
            rng = np.random.default_rng([turn, len(name)])
            value = low + estimate(population.occupancy, share, epsilon, rng) * (high - low)
            errors[name] += float(np.abs(value - truth).mean()) / repetitions
    return errors
