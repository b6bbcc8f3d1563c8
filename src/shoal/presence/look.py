"""What two looks decide, all of it public: priorities of cells, caps of users, scores of ranges.

Source: docs/theory/private-counts.md#caps-and-priorities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.presence.request import Request
from shoal.presence.rounds import NO_CAP, Round

# The part of what users are cut by that counts as an error in totals.
_LOST = 0.5
# How far apart the values of heavy users and of others may be in a cell, in ranges: at most, by the
# noise of what tails say of it, and by the root of cells over users.
_MOST_APART = 0.1
_APART_BY_NOISE = 8.0
_APART_BY_USERS = 0.6
# Sizes of users: the first and the last power of two, in half octaves between them.
_EDGES = {"records": (0, 20), "sum": (-8, 20), "values": (-6, 20)}
# The priority of the average user: it lies in the middle of a size, so that users who are nearly
# alike have the same size.
_AVERAGE = 2**-0.25
# Noise scales: of two sizes beside the most frequent one that are no noise, of a size that stands
# out by itself, and of the least weight of a cell.
_BESIDE = 2.0
STANDS_OUT = 6.0
# Noise scales of a size that stands out by itself for certain: noise alone does so in one of a
# thousand releases over all sizes, and at six scales in one of twenty.
_CERTAIN = 10.0
LEAST = 1.5
# How much totals are scaled up at most for what caps cut off.
_MOST_UP = 2.0
# The part of the weight that caps may move if a look says nothing.
UNKNOWN = 0.5
# The part of its users that a look must see for a cap.
_SEEN = 0.6
# The size, in caps, of heavy users whom noise may hide.
_HIDDEN = 4.0


@dataclass(frozen=True)
class Cap:
    """How much of a user counts.

    Attributes:
        size: A user with amounts of this size or more has all of its units.
        up: Totals are multiplied by it, to make up for what the cap cuts off.
        moved: The part of the weight that the cap moves between users, or may move.
        users: How many users of the cap's size would have all the weight.
        known: Whether the look said something.
        hull: Whether users are counted without a cap.
    """

    size: float
    up: float = 1.0
    moved: float = 0.0
    users: float = 0.0
    known: bool = True
    hull: bool = False


class Look(NamedTuple):
    """Public facts after the looks: the priority of each cell, about how many users, the caps."""

    priority: Floats
    users: float
    caps: dict[str, Cap]


class Sizes(NamedTuple):
    """Sizes of users, ascending: the upper end of each, and what its users are taken to have."""

    edges: Floats
    middles: Floats


def sizes_of(block: str, cells: int) -> Sizes:
    """Returns the sizes that users are told apart by, half an octave each: constants of the plan.

    Numbers of cells are whole, and few: their sizes are whole numbers, a quarter of an octave or
    more apart.
    """
    if block == "users":
        octaves = np.arange(0, np.log2(max(cells, 2)) + 0.25, 0.25)
        edges = np.unique(np.floor(2.0**octaves))
        first = np.append(0.0, edges[:-1]) + 1
        return Sizes(edges, (first + edges) / 2)
    lowest, highest = _EDGES[block]
    edges = 2.0 ** np.arange(lowest, highest + 0.5, 0.5)
    return Sizes(edges, np.maximum(edges / 2**0.25, edges[0]))


def priorities(weights: Floats | None, scale: float, cells: int) -> Floats:
    """Returns the priority of each cell: the fewer users it has, the more each of them counts.

    It is one divided by the cell's noisy weight, drawn to that of the average cell by the part that
    noise has of their variance, and at least 1.5 noise scales. Without weights all cells are alike.
    """
    if weights is None:
        return np.ones(cells)
    middle = float(weights.mean())
    noise = 2 * scale**2
    differ = max(float(weights.var()) - noise, 0.0)
    kept = differ / max(differ + noise, 1e-300)
    drawn = middle + kept * (weights - middle)
    priority = 1 / np.maximum(drawn, LEAST * scale)
    users = np.maximum(weights, 0.0)
    average = float(users @ priority) / max(float(users.sum()), 1e-300)
    if average <= 0:
        return np.ones(cells)
    return _AVERAGE * priority / average


def cap_of(
    seen: Floats,
    scale: float,
    sizes: Sizes,
    cells: int,
    noise: float,
    apart: float | None = None,
) -> Cap:
    """Returns the size with the least error, from noisy numbers of users by size.

    A total errs by its noise and by half of what is cut. A mean errs by the noise of its weight,
    and by what is moved between users whose values are so far apart.

    Args:
        seen: Users of each size, with noise of `scale`.
        scale: Of the noise of the look, in users.
        sizes: What users of each size have.
        cells: How many cells there are, each with noise in proportion to the cap.
        noise: The scale of the noise of the answers, in users at the cap.
        apart: How far apart values of heavy users and of others may be, in ranges; None of totals.
    """
    top = int(np.argmax(seen))
    low, high = _bulk(seen, top, scale)
    is_clear = seen[top] >= STANDS_OUT * scale
    place = np.arange(len(seen))
    is_bulk = (place >= low) & (place <= high)
    users = np.maximum(seen, 0.0)
    # The bulk of users, and whatever stands out by itself: a second kind far from the first.
    certain = np.where(is_bulk | (seen > _CERTAIN * scale), users, 0.0)
    if not is_clear or certain.sum() < _SEEN * seen.sum():
        return Cap(float(sizes.edges[0]), moved=UNKNOWN, known=False)
    edges, middles = sizes
    total = float(certain @ middles)
    # What users of all sizes have together under each cap.
    under_cap = np.minimum(middles, edges[:, None]) @ certain
    of_noise = cells * edges * noise
    if apart is not None:
        parts = np.minimum(edges[:, None] / middles, 1.0)
        amounts = certain * middles
        of_caps = np.array([_moved(amounts, part) for part in parts])
        error = np.hypot(of_noise / under_cap, apart * of_caps)
        # A cap below all users gives all the same weight, as every lower one would.
        error[: max(low - 1, 0)] = np.inf
    else:
        error = of_noise + _LOST * (total - under_cap)
    best = int(np.argmin(error))
    size = float(edges[best])
    kept = float(under_cap[best])
    # What may be noise decides no cap, but how far a total can be trusted.
    possible = np.where(is_bulk | (seen > STANDS_OUT * scale), users, 0.0)
    moved = _moved(possible * middles, np.minimum(size / middles, 1.0))
    moved += _HIDDEN * scale * size / kept
    return Cap(size, min(total / kept, _MOST_UP), min(moved, UNKNOWN), kept / size)


def _moved(amounts: Floats, kept: Floats) -> float:
    """Returns the part of all amounts that moves to other sizes if of each a part is kept."""
    after = amounts * kept
    return float(np.maximum(amounts / amounts.sum() - after / after.sum(), 0.0).sum())


def _bulk(seen: Floats, top: int, scale: float) -> tuple[int, int]:
    """Returns the first and the last size around the most frequent one that are no noise."""
    low = top
    while low > 0 and seen[max(low - 2, 0) : low].sum() > _BESIDE * scale:
        low -= 1
    high = top
    while high < len(seen) - 1 and seen[high + 1 : high + 3].sum() > _BESIDE * scale:
        high += 1
    return low, high


def look_of(
    request: Request,
    rounds: Mapping[str, Round],
    weights: Floats | None,
    seen: Mapping[str, Floats],
) -> Look:
    """Returns what follows from the noisy numbers of both looks, in users."""
    cells = request.keys.num_rows
    guide = request.guide
    if guide is not None:
        of_guide = {name: Cap(**vars(each)) for name, each in guide.caps.items()}
        return Look(np.array(guide.priority), guide.users, of_guide)
    answers = rounds["answers"]
    scale = rounds["cells"].scale("cells") if "cells" in rounds else 0.0
    users = float(request.users)
    if weights is not None:
        users = max(float(weights.sum()), 1.0)
    caps = {}
    for block in answers.blocks:
        if block == "tails":
            continue
        if block in seen:
            noise = rounds["sizes"].scale(block)
            sizes = sizes_of(block, cells)
            apart = None
            if block == "values":
                apart = _apart(answers, cells, users)
            found = cap_of(seen[block], noise, sizes, cells, answers.scale(block), apart)
        else:
            found = _given(request, block)
        if block == "users" and _without_cap(found, cells):
            found = Cap(float(cells), hull=True)
        caps[block] = found
    return Look(priorities(weights, scale, cells), users, caps)


def _apart(answers: Round, cells: int, users: float) -> float:
    """Returns how far apart the values of heavy users and of others may be unseen, in ranges."""
    by_noise = _APART_BY_NOISE * answers.scale("tails") / users
    by_users = _APART_BY_USERS * float(np.sqrt(cells / users))
    return min(float(np.hypot(by_noise, by_users)), _MOST_APART)


def _given(request: Request, block: str) -> Cap:
    """Returns a cap that the request gives; of users, without one they are counted in all cells."""
    if block in ("records", "sum") and request.records_per_user is not None:
        return Cap(float(request.records_per_user))
    return Cap(float(request.keys.num_rows), hull=True)


def _without_cap(cap: Cap, cells: int) -> bool:
    """Whether users are counted without a cap: it hides nothing, and its noise grows with cells."""
    # Its noise has (cells + 2) / 3 scales, with a cap as many as the cap: a sixth more is worth it.
    return cells <= NO_CAP or not cap.known or cells + 2 <= 3.5 * max(cap.size, 2.0)


def ranges_of(top: int) -> tuple[Ints, Ints]:
    """Returns both ends of all ranges of widths 2^(-k/2), in steps of a quarter of each."""
    low = []
    high = []
    for halvings in range(9):
        width = 2.0 ** (-halvings / 2)
        starts = np.append(np.arange(0.0, 1.0 - width, width / 4), 1.0 - width)
        low.append(np.rint(starts * top))
        high.append(np.rint((starts + width) * top))
    return np.concatenate(low).astype(np.int64), np.concatenate(high).astype(np.int64)
