"""Errors of users' vectors in one round and in two, with Laplace and with Gaussian noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.cells.planner import plan_means
from shoal.errors import InputError
from shoal_studies.benchmarks.typical import measured
from shoal_studies.populations import populations


def run(
    epsilons: Sequence[float], repetitions: int, only: str = "", delta: str = "1e-9"
) -> Iterator[str]:
    """Lines of errors, one a population, loss, delta and number of rounds.

    Args:
        epsilons: Losses.
        repetitions: Simulated releases of each.
        only: A part of the names of the populations to take.
        delta: Of (epsilon, delta)-DP, beside none.

    Raises:
        InputError: No population has such a name.
    """
    chosen = [each for each in populations() if only in each.name]
    if not chosen:
        raise InputError(f"no population with {only!r}", "a part of a name", "leave it out")
    yield f"mean absolute error over cells, {repetitions} simulated releases a figure"
    yield (
        f"{'population':<33}{'eps':>5}{'delta':>7} {'noise':<9}{'rounds':>6}{'plain':>9}"
        f"{'value':>9}{'covered':>12}"
    )
    for population in chosen:
        for epsilon in epsilons:
            for allowed in ("0", delta):
                for rounds in (1, 2):
                    asked = population.occupancy, population.bounds, "user_clipped", epsilon
                    try:
                        plan = plan_means(*asked, {"rounds": rounds}, delta=allowed)
                    except InputError as error:
                        yield f"{population.name:<33}{epsilon:>5g} {rounds} rounds: {error}"
                        continue
                    found = measured(plan, population, repetitions)
                    noise = "Gaussian" if plan.gaussian else "Laplace"
                    yield (
                        f"{population.name:<33}{epsilon:>5g}{allowed:>7} {noise:<9}{rounds:>6}"
                        f"{found.plain:>9.3g}{found.value:>9.3g}"
                        f"{found.plain_covered:>6.0%}{found.covered:>6.0%}"
                    )
