"""Experiments in which whole groups are assigned; `python -m` prints how intervals cover."""

import sys
from dataclasses import dataclass
from functools import cache

import numpy as np

from shoal.data.assigned_groups import groups_of
from shoal.data.assignment import enrol
from shoal.data.outcome_space import Space
from shoal.privacy.noise import Simulated
from shoal.trials.mechanisms.outcomes import UniformPrior
from shoal.trials.request import Units
from shoal.trials.unit_release import draw_units

SPACE = Space.counts(0, 10)
WITHIN = 0.3


@dataclass(frozen=True)
class Design:
    """Groups of unequal sizes in clusters, half of each cluster's groups in each arm.

    Attributes:
        clusters: How many.
        groups: In each cluster.
        least: Units of the smallest group.
        most: Units of the largest group.
        epsilon: Of the responses.
    """

    clusters: int
    groups: int
    least: int
    most: int
    epsilon: float


DESIGNS = {
    "one cluster": Design(1, 40, 5, 60, 4),
    "two clusters": Design(2, 20, 5, 60, 2),
    "five clusters": Design(5, 8, 2, 30, 4),
    "pairs of groups": Design(30, 2, 5, 40, 4),
}


@cache
def figures(name: str, runs: int) -> tuple[int, int, float]:
    """How many intervals hold the effect, none: those of groups, those of units one by one.

    Units, groups and outcomes stay; arms are drawn anew in every run, and so are the responses. The
    intraclass correlation of outcomes is 0.3. Last the mean degrees of freedom.

    Args:
        name: Of the design.
        runs: Assignments and draws.
    """
    design, rng = DESIGNS[name], np.random.default_rng(1)
    many = design.clusters * design.groups
    sizes = rng.integers(design.least, design.most + 1, many)
    group = np.repeat(np.arange(many), sizes)
    home = group // design.groups
    own, common = rng.normal(size=len(group)), rng.normal(size=many)
    outcome = 5 + 2 * (np.sqrt(1 - WITHIN) * own + np.sqrt(WITHIN) * common[group])
    outcome = np.clip(np.rint(outcome + rng.normal(size=design.clusters)[home]), 0, 10)
    names = np.arange(len(group))
    parts, covered, degrees = None, np.zeros(2, dtype=int), 0.0
    for run in range(runs):
        order = rng.permuted(np.tile(np.arange(design.groups) % 2, (design.clusters, 1)), axis=1)
        found = enrol(order.ravel()[group], home, unit=names)
        parts = parts or UniformPrior(design.epsilon).choose(found.assignment.sizes, SPACE)
        units = Units(found.assignment, outcome[found.rows], {})
        released = draw_units(units, SPACE, parts.parameters, Simulated(run), pooled=True)
        groups = groups_of(found.assignment, group, names)
        for at, given in enumerate((groups, None)):
            (effect,) = released.effects(0.95, given)
            low, high = effect.finite_population.interval
            covered[at] += low <= 0 <= high
            degrees += effect.finite_population.degrees_of_freedom * (at == 0)
    return int(covered[0]), int(covered[1]), degrees / runs


def main(runs: int) -> None:
    """Print the table of docs/theory/inference.md."""
    print("| groups | covered | one by one | degrees |\n| --- | --- | --- | --- |")
    for name in DESIGNS:
        whole, single, degrees = figures(name, runs)
        print(f"| {name} | {whole / runs:.1%} | {single / runs:.1%} | {degrees:.3g} |")


if __name__ == "__main__":
    main(int(sys.argv[1]))
