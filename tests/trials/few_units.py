"""Intervals where an arm has few units, or few of a kind; `python -m` prints a table."""

import sys
from functools import cache

import numpy as np

from shoal.data.outcome_space import Space
from shoal.privacy.noise import Simulated
from shoal.trials.mechanisms.outcomes import UniformPrior
from shoal.trials.request import Units
from shoal.trials.unit_release import draw_units
from tests.trials.acceptance import Population

# Units of control and of the arm, the share of yes in both, and epsilon.
THIN = ((300, 2, 0.5, 2), (300, 10, 0.5, 2), (1000, 10, 0.1, 6), (1000, 30, 0.05, 6))
ENOUGH = ((300, 40, 0.5, 2), (1000, 200, 0.15, 6), (500, 500, 0.05, 6))


@cache
def figures(control: int, arm: int, share: float, epsilon: int, runs: int) -> tuple[int, int]:
    """Of so many runs: how many intervals hold the effect, none, and how many effects warn.

    Args:
        control: Units.
        arm: Units.
        share: Of outcomes that are 1, in both arms.
        epsilon: Of the responses.
        runs: Assignments and draws.
    """
    n, space = control + arm, Space.binary()
    yes = (np.arange(n) < round(n * share)).astype(float)
    population = Population(np.array([[control, arm]]), np.column_stack([yes, yes]))
    chosen = UniformPrior(epsilon).choose(population.assignment.sizes, space).parameters
    rng, covered, warned = np.random.default_rng(1), 0, 0
    for run in range(runs):
        units = Units(population.assignment, population.outcomes(rng), {})
        (effect,) = draw_units(units, space, chosen, Simulated(run), pooled=True).effects(0.95)
        low, high = effect.finite_population.interval
        covered += low <= 0 <= high
        warned += bool(effect.warning)
    return covered, warned


def main(runs: int) -> None:
    """Print the table of docs/theory/inference.md."""
    print("| control and arm, share of yes | covered | warned |\n| --- | --- | --- |")
    for control, arm, share, epsilon in (*THIN, *ENOUGH):
        covered, warned = figures(control, arm, share, epsilon, runs)
        print(
            f"| {control:,} and {arm}, {share:.0%} | {covered / runs:.1%} | {warned / runs:.1%} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
