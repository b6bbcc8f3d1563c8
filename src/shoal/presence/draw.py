"""Carries a plan of private counts out: two looks, a range, the answers; users are short vectors.

Everything that a user adds to a draw follows from its own records, the request, and earlier draws.

Source: docs/theory/private-counts.md#one-user-one-vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats, Ints
from shoal.data.aggregate import exact_sums
from shoal.data.records import Records
from shoal.data.value_lattice import Lattice
from shoal.presence.found import found_cells
from shoal.presence.look import Look, look_of, ranges_of, sizes_of
from shoal.presence.members import Members, members
from shoal.presence.request import Request
from shoal.presence.rounds import Round
from shoal.presence.vectors import cut, sizes, weights
from shoal.privacy.noise import Noise
from shoal.theory.key_threshold import Selection

# The draws of one release, of which no two have the same noise.
_CELLS = 1
_SIZES = 2
_RANGE = 3
_ANSWERS = 4
_HULL = 5
# Places of values between the bounds that ranges are judged by: 2^10 pieces.
_PLACES = 10
# A record this many times nearer than the bounds are apart counts as lost by a range.
_FAR = 8
# The public prize of a short range: how much of the noise that it avoids counts like lost weight.
_PRIZE = 0.5


class Drawn(NamedTuple):
    """The whole numbers that left the mechanism, in units of their draws.

    Attributes:
        cells: The first look, a number for each cell; None without one.
        sizes: The second look, by block and size.
        range: The position of the selected range; None without values.
        answers: By block: a number for each cell, of values a row for each part.
        keys: The cells that were found; None if they were listed.
    """

    cells: list[int] | None
    sizes: dict[str, list[int]]
    range: int | None
    answers: dict[str, list[int]]
    keys: pa.Table | None = None


@dataclass(frozen=True)
class Ramp:
    """How far each record goes up a piece of the range, in ticks: a measure of a pass."""

    at: int
    low: int
    width: int

    @property
    def name(self) -> str:
        """Unique among pieces."""
        return f"ramp {self.at}"

    def amount(self, lattice: Lattice) -> str:
        """SQL of min(max(tick - low, 0), width), of a tick counted from the middle."""
        low = self.low - (1 << (lattice.bits - 1))
        return f"greatest(least(tick - {low}, {self.width}), 0)"


def pieces_of(request: Request, chosen: tuple[int, int]) -> list[Ramp]:
    """Returns what is below the range, its pieces, and what is above it."""
    low, high = chosen
    top = 1 << request.tick_bits
    many = request.n_pieces
    ends = [0, *(low + (high - low) * at // many for at in range(many + 1)), top]
    return [Ramp(at, start, end - start) for at, (start, end) in enumerate(pairwise(ends))]


def draw(
    request: Request,
    rounds: Mapping[str, Round],
    records: Records,
    noise: Noise,
    chosen_keys: Selection | None = None,
) -> Drawn:
    """Returns what leaves the mechanism; with a selection of keys the cells are found first.

    Formal guarantee: for whoever comes or goes, the chance of every outcome changes by a factor of
    at most exp(the sum of whole/2^bits over the rounds), in any data set, and by what finding cells
    costs (`shoal.presence.found.found_keys`).
    """
    if chosen_keys is not None:
        cells = found_cells(records, request.periods, chosen_keys, noise)
        if not cells.num_rows:
            return Drawn(None, {}, None, {}, cells)
        of_found = request.of_cells(cells)
        return draw(of_found, rounds, records, noise)._replace(keys=cells)
    cells = request.keys
    found = members(records, cells, periods=request.periods)
    noisy_cells = None
    if "cells" in rounds:
        of_cells = rounds["cells"]
        spread = _weigh(found, _amounts(request, found, "records"), of_cells.whole, 0.0)
        noisy_cells = noise.add_laplace(_by_cell(found, spread), of_cells.bits, _CELLS)
    in_users = None if noisy_cells is None else np.array(noisy_cells) / rounds["cells"].whole
    first = look_of(request, rounds, in_users, {})
    seen = _sizes(request, rounds, found, first, noise)
    look = look_of(request, rounds, in_users, _in_users(rounds, seen))
    chosen = None if request.guide is None else request.guide.range
    if "range" in rounds:
        scores = _scores(request, rounds, found, look)
        chosen = noise.select(scores, 2.0 ** rounds["range"].bits, _RANGE)
    answers = _answers(request, rounds, records, found, look, chosen, noise)
    return Drawn(noisy_cells, seen, chosen, answers)


def _amounts(request: Request, found: Members, block: str) -> Floats:
    """Returns what each membership adds to a block, in users, records, or upper bounds."""
    count = found.memberships.count.astype(np.float64)
    if block == "users":
        return np.ones(len(count))
    if request.records_per_user is not None:
        user = found.memberships.user
        whole = np.bincount(user, count, found.memberships.n_users)
        part = np.minimum(whole, request.records_per_user) / np.maximum(whole, 1.0)
        scaled = count * part[user]
    else:
        scaled = count
    if block != "sum":
        return scaled
    low, high = request.bounds
    place = found.ticks / np.maximum(count, 1.0) / 2.0**request.tick_bits
    return scaled * (low + (high - low) * place) / max(high, 1e-300)


def _weigh(found: Members, parts: Floats, whole: int, cap: float) -> Ints:
    """Returns whole numbers of each membership, at most `whole` for a user."""
    of = found.memberships
    return weights(parts, of.user, of.n_users, whole=whole, cap=cap)


def _by_cell(found: Members, numbers: Ints) -> list[int]:
    """Returns exact sums of each cell."""
    of = found.memberships
    return exact_sums(of.cell, numbers, of.n_cells)


def _parts(request: Request, found: Members, block: str, look: Look) -> Floats:
    """Returns what memberships ask for in a block: of values in proportion to priorities."""
    if block != "values":
        return _amounts(request, found, block)
    records = _amounts(request, found, "records")
    return records * look.priority[found.memberships.cell]


def _sizes(
    request: Request,
    rounds: Mapping[str, Round],
    found: Members,
    look: Look,
    noise: Noise,
) -> dict[str, list[int]]:
    """Returns the second look: how many users have how much, block by block, in one draw."""
    if "sizes" not in rounds:
        return {}
    drawn = rounds["sizes"]
    of = found.memberships
    exact = {}
    for block, units in drawn.blocks.items():
        parts = _parts(request, found, block, look)
        edges = sizes_of(block, of.n_cells).edges
        many = sizes(parts, of.user, of.n_users, edges)
        exact[block] = [int(each) * units for each in many]
    return _noisy(drawn, exact, noise, _SIZES)


def _in_users(rounds: Mapping[str, Round], seen: Mapping[str, list[int]]) -> dict[str, Floats]:
    """Returns noisy numbers of the second look in users."""
    return {name: np.array(each) / rounds["sizes"].blocks[name] for name, each in seen.items()}


def _scores(request: Request, rounds: Mapping[str, Round], found: Members, look: Look) -> Ints:
    """Returns the weight inside each range or near it, and a public prize of short ones.

    A user who comes lowers none and raises each by at most its weight.
    """
    drawn = rounds["range"]
    answers = rounds["answers"]
    of = found.memberships
    last = 1 << _PLACES
    top = 1 << request.tick_bits
    weight = _weigh(found, _parts(request, found, "values", look), drawn.whole >> _PLACES, 0.0)
    mean = found.ticks / np.maximum(of.count, 1)
    place = np.clip(np.floor(mean / top * last), 0, last).astype(np.int64)
    by_place = np.array(exact_sums(place, weight, last + 1), dtype=np.int64)
    low, high = ranges_of(last)
    places = np.arange(last + 1)
    # Of each range how far each place lies outside of it.
    away = np.maximum(np.maximum(low[:, None] - places, places - high[:, None]), 0)
    near = np.maximum(last - _FAR * away, 0)
    cap = look.caps["values"]
    counted = max(cap.users, 1.0) if cap.known else look.users
    noise = min(of.n_cells * answers.scale("values") / counted, 1.0)
    prize = _PRIZE * _FAR * noise * (1 - (high - low) / last)
    public = np.floor(look.users * drawn.whole * prize)
    return np.asarray(near @ by_place + public.astype(np.int64))


def _answers(
    request: Request,
    rounds: Mapping[str, Round],
    records: Records,
    found: Members,
    look: Look,
    chosen: int | None,
    noise: Noise,
) -> dict[str, list[int]]:
    """Returns the answers: all blocks in one draw, but for users who are counted without a cap."""
    drawn = rounds["answers"]
    exact: dict[str, list[int]] = {}
    free = {}
    for block in request.totals:
        units = drawn.blocks[block]
        cap = look.caps[block]
        if cap.hull:
            many = np.full(len(found.memberships.cell), units, dtype=np.int64)
            free[block] = noise.add_hull(_by_cell(found, many), drawn.bits, _HULL)
        else:
            parts = _amounts(request, found, block)
            exact[block] = _by_cell(found, _weigh(found, parts, units, cap.size))
    if chosen is not None:
        exact |= _values(request, drawn, records, found, look, chosen)
    return _noisy(drawn, exact, noise, _ANSWERS) | free


def _values(
    request: Request,
    drawn: Round,
    records: Records,
    found: Members,
    look: Look,
    chosen: int,
) -> dict[str, list[int]]:
    """Returns parts of each cell's weight in the range, and six tails of all cells together.

    Tails are the weights below and above the range, and between them at its low and its high end:
    of users below the cap, then of those above it.
    """
    low, high = (int(each[chosen]) for each in ranges_of(1 << request.tick_bits))
    have = found
    if request.n_pieces > 1:
        # The second pass has its own rows: every amount is taken from it anew.
        pieces = pieces_of(request, (low, high))
        have = members(records, request.keys, pieces, request.periods)
    inside, outside = _shares(request, have, (low, high))
    parts = _parts(request, have, "values", look)
    of = have.memberships
    cap = look.caps["values"].size
    of_cells = cut(_weigh(have, parts, drawn.blocks["values"], cap), inside)
    of_all = cut(_weigh(have, parts, drawn.blocks["tails"], cap), outside)
    is_above_cap = (np.bincount(of.user, parts, of.n_users) > cap)[of.user].astype(np.int64)
    below, at_low, at_high, above = (exact_sums(is_above_cap, each, 2) for each in of_all)
    tails = [sum(below), at_low[0], at_high[0], at_low[1], at_high[1], sum(above)]
    return {
        "values": [number for each in of_cells for number in _by_cell(have, each)],
        "tails": tails,
    }


def _shares(request: Request, have: Members, chosen: tuple[int, int]) -> tuple[Floats, Floats]:
    """Returns falling shares of memberships inside the range, and of the whole bounds.

    The latter cut off what is below the range, what is at its low end, and what is at its high end.
    """
    low, high = chosen
    top = 1 << request.tick_bits
    count = np.maximum(have.memberships.count, 1)
    if request.n_pieces == 1:
        mean = have.ticks / count
        below = np.minimum(mean / low, 1.0) if low else np.ones(len(mean))
        above = np.maximum(mean - high, 0.0) / max(top - high, 1)
        inside = np.clip((mean - low) / (high - low), 0.0, 1.0)[None]
        return inside, _outside(below, inside, above)
    width = np.array([max(each.width, 1) for each in pieces_of(request, chosen)])
    shares = have.measured / (count * width[:, None])
    below = shares[0] if low else np.ones(len(count))
    return shares[1:-1], _outside(below, shares[1:-1], shares[-1])


def _outside(below: Floats, inside: Floats, above: Floats) -> Floats:
    """Returns shares not below the range, at its high end or above it, and above it."""
    return np.stack([below, above + (below - above) * inside.mean(axis=0), above])


def _noisy(
    drawn: Round, exact: Mapping[str, list[int]], noise: Noise, draw_number: int
) -> dict[str, list[int]]:
    """Returns all blocks with the noise of one draw."""
    flat = noise.add_laplace(
        [each for block in exact.values() for each in block], drawn.bits, draw_number
    )
    found: dict[str, Any] = {}
    at = 0
    for name, block in exact.items():
        found[name] = flat[at : at + len(block)]
        at += len(block)
    return found
