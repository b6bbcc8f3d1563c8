"""Made-up populations in which users or cells are unlike, where clipping hides most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal_studies.populations import SPEEDS, Members, Population, made, memberships

if TYPE_CHECKING:
    Floats = NDArray[Any]
    Draw: TypeAlias = Callable[[np.random.Generator], Floats]
    Kind: TypeAlias = tuple[str, Draw, tuple[float, float]]

_DRAWS = 2
# Cells and users.
_FEW = ((12, 1500), (18, 3000), (25, 1500), (25, 5000))
_SHORT, _LOW, _LONG, _YES_OR_NO = (0.0, 40.0), (0.0, 60.0), (0.0, 1000.0), (0.0, 1.0)


def unlike() -> Iterator[Population]:
    """Users of two kinds, of long tails or at zero, and cells that few users tell apart."""
    members = memberships(71, 1500, 40, 6)
    for kind in (*_kinds(members, 72), _yes_or_no(members)):
        yield _population(members, kind)
    yield _trend(1200, 60)
    yield _hexagons(200, 0.3)
    yield _hexagons(2000, 0.2)
    yield _sorted_kinds(150, 50)
    yield _sorted_kinds(3000, 100)
    yield from _five_cells()
    yield _many_cells()
    yield _half_at_zero(300)
    yield _half_at_zero(3000)


def few() -> Iterator[Population]:
    """Six kinds of values in each of four sizes, with 12 to 25 cells."""
    for cells, users in _FEW:
        members = memberships([73, cells, users], users, cells, 5)
        for name, draw, bounds in _kinds(members, [74, cells, users]):
            kind = f"{name}, {cells} cells, {users} users", draw, bounds
            yield _population(members, kind, prefix="few", draws=1)


def _population(
    members: Members, kind: Kind, *, prefix: str = "unlike", draws: int = _DRAWS, region: int = 0
) -> Population:
    """Draws of a kind of values; regions of so many cells are labels of their own."""
    name, draw, bounds = kind
    means = [draw(np.random.default_rng([75, len(name), turn])) for turn in range(draws)]
    return made(f"{prefix}: {name}", *members, means, bounds, region)


def _kinds(members: Members, seed: int | list[int]) -> Iterator[Kind]:
    """Values of six kinds that clipping of users may bias in some cells more than in others."""
    user, cell, count = members
    users, cells, size = int(user.max()) + 1, int(cell.max()) + 1, len(user)
    fixed, records = np.random.default_rng(seed), np.bincount(user, count)
    heavy = records >= np.quantile(records, 0.9)
    middle = fixed.normal(25, 6, cells)
    outlier = np.where(np.arange(cells) % 10 == 3, 55, fixed.normal(15, 2, cells))
    often, logarithm = fixed.uniform(0.02, 0.4, cells), fixed.normal(2.5, 0.6, cells)
    rarely = np.exp(fixed.uniform(np.log(0.005), np.log(0.15), cells))

    def rare(rng: np.random.Generator) -> Floats:
        chance = rarely[cell] * np.exp(rng.normal(0, 1, users))[user]
        return np.asarray(rng.binomial(count, np.minimum(chance, 1)) / count)

    yield (
        "two kinds",
        lambda r: middle[cell] + _kind(r, users, 0.1, 30, -3)[user] + r.normal(0, 3, size),
        SPEEDS,
    )
    yield (
        "heavy different",
        lambda r: middle[cell] + np.where(heavy, 25, 0)[user] + r.normal(0, 3, size),
        SPEEDS,
    )
    yield (
        "outlier cells",
        lambda r: outlier[cell] + r.normal(0, 3, users)[user] + r.normal(0, 2, size),
        SPEEDS,
    )
    yield (
        "zero-inflated",
        lambda r: (r.random(size) < often[cell]) * r.exponential(30, users)[user],
        (0.0, 300.0),
    )
    yield (
        "lognormal",
        lambda r: np.exp(logarithm[cell] + r.normal(0, 1, users)[user] + r.normal(0, 0.5, size)),
        (0.0, 500.0),
    )
    yield "rare yes or no", rare, _YES_OR_NO


def _kind(
    rng: np.random.Generator, users: int, part: float, one: float, other: float
) -> NDArray[Any]:
    """One value for a random part of the users, another one for the rest."""
    return np.where(rng.random(users) < part, one, other)


def _yes_or_no(members: Members) -> Kind:
    chance = np.random.default_rng(76).uniform(0.2, 0.8, int(members.cell.max()) + 1)
    users = int(members.user.max()) + 1

    def draw(rng: np.random.Generator) -> Floats:
        return (rng.random(users)[members.user] < chance[members.cell]).astype(float)

    return "yes or no of users", draw, _YES_OR_NO


def _trend(users: int, periods: int) -> Population:
    """Each user has a run of periods."""
    rng = np.random.default_rng(77)
    start, length = rng.integers(0, periods - 4, users), rng.integers(1, 10, users)
    user = np.repeat(np.arange(users), length)
    first = np.repeat(np.cumsum(length) - length, length)
    cell = (start[user] + np.arange(len(user)) - first) % periods
    members = Members(user, cell, _counts(rng, user, 0.1, 0.8))

    def draw(rng: np.random.Generator) -> Floats:
        own = rng.normal(0, 4, users)[user]
        return np.asarray(8 + 0.7 * cell + own + rng.normal(0, 2, len(user)))

    return _population(members, ("growing trend", draw, SPEEDS))


def _counts(
    rng: np.random.Generator, user: NDArray[np.int64], rate: float, deviation: float
) -> NDArray[np.int64]:
    """Geometric counts, times how busy a user is."""
    busy = np.ceil(rng.lognormal(0, deviation, int(user.max()) + 1))[user]
    return (rng.geometric(rate, len(user)) * busy).astype(np.int64)


def _hexagons(users: int, fast: float) -> Population:
    """Eight regions of eight cells: a user stays in one, fast ones in the two main cells of it."""
    rng = np.random.default_rng([78, users])
    place, is_fast = rng.integers(0, 8, users), rng.random(users) < fast
    main = np.arange(8) < 2
    pull = np.where(is_fast[:, None], np.where(main, 6.0, 0.5), 1.0)
    # With Gumbel noise added the largest ones are drawn in proportion to the pull.
    order = np.argsort(-np.log(pull) - rng.gumbel(size=pull.shape), axis=1)
    user, rank = np.nonzero(np.arange(8) < rng.integers(1, 8, users)[:, None])
    cell = place[user] * 8 + order[user, rank]
    members = Members(user, cell, _counts(rng, user, 0.03, 0.8))
    own = rng.normal(0, 2, 64)[cell] + rng.normal(0, 3, 8)[cell // 8]
    speed = np.where(is_fast, 24, 6)[user] * np.where(main, 1, 0.5)[cell % 8] + own

    def draw(rng: np.random.Generator) -> Floats:
        return np.asarray(np.maximum(speed + rng.normal(0, 2, users)[user], 0))

    return _population(members, (f"nested hexagons, {users} users", draw, _LOW), region=8)


def _sorted_kinds(users: int, cells: int) -> Population:
    """A fifth of the users is nearly alone in a fifth of the cells, and unlike the others."""
    rng = np.random.default_rng([79, users])
    kind, fifth = rng.random(users) < 0.2, cells // 5
    user = np.repeat(np.arange(users), rng.integers(1, 9, users))
    inside = kind[user] & (rng.random(len(user)) < 0.85)
    cell = np.where(
        inside, rng.integers(0, fifth, len(user)), rng.integers(fifth, cells, len(user))
    )
    user, cell = np.unique([user, cell], axis=1)
    members = Members(user, cell, _counts(rng, user, 0.03, 1.0))

    def draw(rng: np.random.Generator) -> Floats:
        own = np.where(kind, 20, 4) + rng.normal(0, 3, users)
        return np.asarray(own[user] + rng.normal(0, 2, len(user)))

    return _population(members, (f"sorted kinds, {users} users", draw, _LOW))


def _five_cells() -> Iterator[Population]:
    members = memberships(80, 3000, 5, 3, 0.1)
    user, rising = members.user, 3.0 * members.cell
    kinds: tuple[Kind, ...] = (
        ("5 cells, Pareto", lambda r: (5 + rising) * r.pareto(2.2, 3000)[user], _LONG),
        ("5 cells, two kinds", lambda r: _kind(r, 3000, 0.05, 50, 10)[user] + rising, SPEEDS),
    )
    for kind in kinds:
        yield _population(members, kind)


def _many_cells() -> Population:
    members, users = memberships(81, 20_000, 300, 5, 0.2), 20_000
    middle = np.random.default_rng(82).normal(30, 6, 300)[members.cell]

    def draw(rng: np.random.Generator) -> Floats:
        own = _kind(rng, users, 0.1, 30, -3)[members.user]
        return np.asarray(middle + own + rng.normal(0, 3, len(middle)))

    return _population(members, ("300 cells, two kinds", draw, SPEEDS))


def _half_at_zero(users: int) -> Population:
    members = memberships([83, users], users, 50, 6)
    moves = np.random.default_rng([84, users]).random(users) < 0.45
    height = 9 * np.random.default_rng(85).uniform(0.3, 1.5, 50)[members.cell]

    def draw(rng: np.random.Generator) -> Floats:
        found = height + rng.normal(0, 2, users)[members.user]
        return np.where(moves[members.user], found, 0.0)

    return _population(members, (f"half at zero, {users} users", draw, _SHORT))
