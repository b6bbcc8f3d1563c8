"""Users who count alike: a private radius (loose bounds) beside whole bounds (tight), and Laplace.

Where values fill the bounds a private radius gains little, and loses several times as much with
outliers or long tails, and cuts off rare events; where they fill a tenth of the bounds it gains
with most of them. Bounds are public and say what values can be, so in few cells the default keeps
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.cells.planner import plan_means
from shoal.data.occupancy import Counts
from shoal_studies.benchmarks.typical import measured, naive
from shoal_studies.populations import Population

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

# Users, cells, and cells of a user.
SHAPES = (
    (400, 1, 1),
    (1000, 1, 1),
    (4000, 1, 1),
    (1000, 3, 3),
    (1000, 6, 2),
    (1000, 12, 4),
    (3000, 30, 3),
)
RANGES = (0.0, 100.0), (0.0, 1000.0)
# How many users have an event.
_OFTEN, _RARELY = 0.35, 0.02
_DRAWS = 8
_METHODS: tuple[tuple[str, dict[str, str | int | float]], ...] = (
    ("user_clipped", {}),
    ("optimal", {"targets": "balanced"}),
)
_LAPLACE = "Laplace, one vote a user"


def _outliers(part: float) -> Callable[[np.random.Generator, int], Floats]:
    def draw(rng: np.random.Generator, users: int) -> Floats:
        return np.where(rng.random(users) < part, 90.0, rng.normal(35, 6, users))

    return draw


def _events(rate: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, users: np.where(rng.random(users) < rate, 100.0, 0.0)


KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, users: rng.normal(35, 16, users),
    "narrow": lambda rng, users: rng.normal(35, 6, users),
    "3% far away": _outliers(0.03),
    "10% far away": _outliers(0.1),
    "long tails": lambda rng, users: np.minimum(20 * rng.lognormal(0, 0.8, users), 100),
    "yes or no": _events(_OFTEN),
    "rare events": _events(_RARELY),
}


def run(epsilon: float, repetitions: int) -> Iterator[str]:
    """Lines of errors and coverage, one for each shape, bounds and kind of values.

    Args:
        epsilon: Total loss.
        repetitions: Simulated releases of each.
    """
    yield (
        f"mean absolute error at epsilon {epsilon:g}, and coverage of 95% intervals, "
        f"{repetitions} simulated releases a figure; one record of each user in each of its cells"
    )
    yield (
        f"{'users':>6}{'cells':>6}{'each':>5}{'bounds':>8}  {'values':<13}{'private (loose)':>17}"
        f"{'whole (tight)':>17}{'Laplace':>9}"
    )
    for shape in SHAPES:
        for bounds in RANGES:
            for name, kind in KINDS.items():
                population = _population(shape, bounds, kind)
                numbers = [
                    _measured(population, method, settings, epsilon, repetitions)
                    for method, settings in _METHODS
                ]
                by_hand = naive(population, epsilon, repetitions)[_LAPLACE]
                users, cells, each = shape
                yield (
                    f"{users:>6}{cells:>6}{each:>5}{bounds[1]:>8g}  {name:<13}"
                    + "".join(f"{error:>11.3g}{covered:>6.0%}" for error, covered in numbers)
                    + f"{by_hand:>9.3g}"
                )


def _measured(
    population: Population,
    method: str,
    settings: dict[str, str | int | float],
    epsilon: float,
    repetitions: int,
) -> tuple[float, float]:
    plan = plan_means(population.occupancy, population.bounds, method, epsilon, settings)
    found = measured(plan, population, repetitions)
    return found.value, found.covered


def _population(
    shape: tuple[int, int, int],
    bounds: tuple[float, float],
    kind: Callable[[np.random.Generator, int], Floats],
) -> Population:
    users, cells, each = shape
    who = np.repeat(np.arange(users), each)
    cell = (who + np.tile(np.arange(each), users)) % cells
    occupancy = Counts.from_counts(who, cell, np.ones(len(who), dtype=np.int64))
    means = []
    for turn in range(_DRAWS):
        rng = np.random.default_rng([turn, *shape])
        # Users are exchangeable, so that any order of them will do.
        own = kind(rng, users)[occupancy.user]
        means.append(np.clip(own + rng.normal(0, 2, len(own)), *bounds))
    return Population("few cells", occupancy, means, bounds)
