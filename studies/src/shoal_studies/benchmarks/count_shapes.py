"""One round and two on made-up counts of many shapes, with values of several kinds.

From these follows where the default with a delta has two rounds: where they do not lose with any
kind of values. Counts are public, kinds of values are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.planner import plan_means
from shoal.cells.posterior import values_of
from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.theory.user_clipping import rounds

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Kind = Callable[[np.random.Generator, "Counts"], Floats]

_CONFIDENCE = 0.95
_LATTICE = Lattice(Bounds.of((0.0, 1.0)))
# Place and deviation of most values, over the width of the bounds.
_PLACE, _SPREAD = 0.4, 1 / 6


class Shape(NamedTuple):
    """Counts: so many users in so many cells, each in a few of them."""

    users: int
    cells: int
    cells_of_user: int


SHAPES = (
    Shape(500, 12, 10), Shape(2000, 12, 3), Shape(2000, 40, 3), Shape(2000, 40, 10),
    Shape(2000, 40, 30), Shape(2000, 150, 25),
    Shape(2000, 300, 40), Shape(2000, 600, 40), Shape(4000, 900, 40),
)  # fmt: skip


def run(
    epsilons: Sequence[float],
    repetitions: int,
    delta: str = "1e-9",
    users: int | None = None,
) -> Iterator[str]:
    """Lines of ratios of errors, two rounds over one, a line a shape of counts and loss."""
    shapes = [each for each in SHAPES if users in (None, each.users)]
    if not shapes:
        allowed = ", ".join(str(each) for each in sorted({shape.users for shape in SHAPES}))
        raise InputError(f"shapes of {users} users", allowed, "leave users out")
    yield (
        f"error of two rounds over that of one, delta {delta}, {repetitions} simulated releases "
        "a figure"
    )
    yield (
        f"{'users':>6}{'cells':>6}{'each':>5}{'eps':>5}{'default':>8}  {'noise':<19}"
        + "".join(f"{name:>11}" for name in KINDS)
    )
    for shape in shapes:
        occupancy = counts_of(shape)
        for epsilon in epsilons:
            yield _line(shape, occupancy, epsilon, delta, repetitions)


def _line(shape: Shape, occupancy: Counts, epsilon: float, delta: str, repetitions: int) -> str:
    one, two = (
        plan_means(occupancy, (0.0, 1.0), "user_clipped", epsilon, {"rounds": each}, delta=delta)
        for each in (1, 2)
    )
    ratios = [
        _error(two, kind, repetitions) / _error(one, kind, repetitions) for kind in KINDS.values()
    ]
    default = rounds(epsilon, float(delta), shape.users, len(occupancy.user), occupancy.n_cells)
    noise = " then ".join("Gaussian" if plan.gaussian else "Laplace" for plan in (one, two))
    return (
        f"{shape.users:>6}{shape.cells:>6}{shape.cells_of_user:>5}{epsilon:>5g}"
        f"{default:>8}  {noise:<19}" + "".join(f"{ratio:>11.2f}" for ratio in ratios)
    )


def _error(plan: PlanFacts, kind: Kind, repetitions: int) -> float:
    found = []
    for turn in range(repetitions):
        aggregate = _drawn(plan.counts, kind, turn)
        drawn = draw(plan, aggregate, Simulated(turn))
        value = values_of(Estimates(plan, *drawn), _CONFIDENCE).value
        found.append(np.abs(value - aggregate.cell_means()[plan.released]).mean())
    return float(np.mean(found))


def _drawn(occupancy: Counts, kind: Kind, turn: int) -> Aggregate:
    share = np.clip(kind(np.random.default_rng([5, turn]), occupancy), 0, 1)
    sums = np.rint(share * 2.0**_LATTICE.bits).astype(np.int64) * occupancy.count
    centred = sums - (occupancy.count << (_LATTICE.bits - 1))
    return Aggregate(occupancy, _LATTICE, centred, np.zeros_like(centred))


def counts_of(shape: Shape) -> Counts:
    """Users in cells of unlike popularity, with counts that have a long tail."""
    rng = np.random.default_rng([6, *shape])
    pull = rng.lognormal(0, 0.8, shape.cells)
    degree = np.clip(rng.poisson(shape.cells_of_user, shape.users), 1, shape.cells)
    user = np.repeat(np.arange(shape.users), degree)
    cell = np.concatenate(
        [rng.choice(shape.cells, size, replace=False, p=pull / pull.sum()) for size in degree]
    )
    busy = np.ceil(rng.lognormal(0, 0.8, shape.users))[user]
    count = np.minimum(rng.geometric(0.05, len(user)) * busy, 2000).astype(np.int64)
    return Counts.from_counts(user.tolist(), cell.tolist(), count.tolist())


def _normal(between: float) -> Kind:
    """Normal values; this part of the variance between cells, four sevenths of the rest by user."""

    def draw(rng: np.random.Generator, occupancy: Counts) -> Floats:
        cells = rng.normal(0, between**0.5, occupancy.n_cells)[occupancy.cell]
        users = rng.normal(0, ((1 - between) * 4 / 7) ** 0.5, occupancy.n_users)[occupancy.user]
        rest = ((1 - between) * 3 / 7 / occupancy.count) ** 0.5
        whole = cells + users + rest * rng.normal(0, 1, len(occupancy.user))
        return np.asarray(_PLACE + _SPREAD * whole)

    return draw


def _two_kinds(rng: np.random.Generator, occupancy: Counts) -> Floats:
    level = rng.choice([0.2, 0.75], occupancy.n_users)[occupancy.user]
    return np.asarray(level + rng.normal(0, 0.05, len(level)))


def _long_tails(rng: np.random.Generator, occupancy: Counts) -> Floats:
    users = rng.normal(-5, 1.2, occupancy.n_users)[occupancy.user]
    return np.asarray(np.exp(users + rng.normal(0, 0.5, len(users))))


def _zeros(rng: np.random.Generator, occupancy: Counts) -> Floats:
    some = rng.binomial(1, 0.4, occupancy.n_users)[occupancy.user]
    return np.asarray(some * rng.exponential(0.15, len(some)))


KINDS: dict[str, Kind] = {
    "alike": _normal(0.05),
    "normal": _normal(0.3),
    "apart": _normal(0.9),
    "two kinds": _two_kinds,
    "long tails": _long_tails,
    "zeros": _zeros,
}
