"""The draws of private counts, and what each costs: constants that no record changes.

A user moves a draw by at most `whole` units, shared among blocks of numbers that its noise is added
to; noise has the scale of 2^bits units. So the loss of each draw is whole/2^bits.

Source: docs/theory/private-counts.md#one-user-one-vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shoal.errors import InputError
from shoal.presence.request import Request
from shoal.privacy.accounting import NoisyVector, Selections, Step
from shoal.theory.key_threshold import Selection, selection

# A user has at least 2^24 units of each draw, so that rounding them down costs next to nothing.
_FINE = 24
# Noise of more bits would not fit 64-bit whole numbers, nor would sums beyond this.
_MOST_BITS = 57
_MOST_UNITS = 2**60
# Parts of epsilon: a look at how users differ, where they are many or few, and a range of values,
# where cells are many or few.
_LOOK = Fraction(10, 100)
_LOOK_OF_FEW = Fraction(20, 100)
_RANGE = Fraction(4, 100)
_RANGE_OF_FEW = Fraction(15, 100)
# Epsilon times users from which there are many users: with statistics of values, and with totals
# alone. Cells from which there are many.
_MANY_USERS = 1000
_MANY_USERS_OF_TOTALS = 400
MANY_CELLS = 10
# Up to so many cells, users are counted without a cap.
NO_CAP = 5
# Shares of the answers: of values twice that of each total; and of what tells how much lies outside
# the range, where cells are many or few.
_SHARE = 20
_TAILS = 2
_TAILS_OF_FEW = 5


# The part of epsilon that finds cells.
_OF_KEYS = Fraction(1, 4)
# The least delta with which cells are found: levels for a smaller one are too far for noise.
_LEAST_DELTA = Fraction(1, 10**15)
# So much less of it is spent, as levels are computed in floating point.
_LESS = Fraction(1, 10**9)


class Round(NamedTuple):
    """One draw of noise: units of a user in each block, and the bits of the noise."""

    blocks: dict[str, int]
    bits: int

    @property
    def whole(self) -> int:
        """The most units that one user moves the draw by."""
        return sum(self.blocks.values())

    def scale(self, block: str) -> float:
        """The scale of the noise of a block, in users."""
        return 2.0**self.bits / self.blocks[block]

    def check(self) -> None:
        """Refuse, with a ValueError, blocks or bits that no plan has."""
        positive = all(each > 0 for each in self.blocks.values())
        if not (positive and self.blocks and 0 <= self.bits <= _MOST_BITS):
            raise ValueError

    def step(self, name: str) -> Step:
        """What it costs, for the accountant."""
        moves = np.array([self.whole])
        if name == "range":
            # Scores of the range only rise if a user comes.
            return Selections(self.bits, moves)
        return NoisyVector("laplace", self.bits, moves)


def rounds_of(request: Request) -> dict[str, Round]:
    """Returns the draws of a request in their order: `cells`, `sizes`, `range`, `answers`.

    Raises:
        InputError: Epsilon is too small or too large for whole numbers of 64 bits.
    """
    # Nobody knows how many cells will be found: many, if any list was too long to make.
    cells = MANY_CELLS if request.finds else request.keys.num_rows
    epsilon = request.epsilon
    left = epsilon
    if request.finds:
        left -= epsilon * _OF_KEYS
    found = {}
    first, second = _looks(request, cells)
    if request.guide is None and (first or second):
        many = _MANY_USERS if request.n_pieces else _MANY_USERS_OF_TOTALS
        part = epsilon * _LOOK_OF_FEW
        if epsilon * request.users >= many:
            part = epsilon * _LOOK
        shares = sum(first.values()) + sum(second.values())
        for name, look in (("cells", first), ("sizes", second)):
            if look:
                own = part * sum(look.values()) / shares
                found[name] = _round(own, look, request.users)
        left -= part
    if request.guide is None and request.n_pieces:
        part = epsilon * (_RANGE if cells >= MANY_CELLS else _RANGE_OF_FEW)
        found["range"] = _round(part, {"range": 1}, request.users)
        left -= part
    answers = dict.fromkeys(request.totals, _SHARE)
    if request.n_pieces:
        tails = _TAILS if cells >= MANY_CELLS else _TAILS_OF_FEW
        answers |= {"values": 2 * _SHARE, "tails": tails}
    found["answers"] = _round(left, answers, request.users)
    return found


def selection_of(request: Request) -> Selection | None:
    """Returns how cells are found; None if they are listed."""
    if not request.finds:
        return None
    if request.delta < _LEAST_DELTA:
        raise InputError(
            f"delta is {float(request.delta):g}, too small to find cells",
            f"give {float(_LEAST_DELTA):g} or more, such as 1e-9",
        )
    epsilon = request.epsilon * _OF_KEYS * (1 - _LESS)
    delta = float(request.delta)
    if Fraction(delta) > request.delta:
        delta = math.nextafter(delta, 0.0)
    return selection(float(epsilon), delta)


def _looks(request: Request, cells: int) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the shares of two looks: how heavy cells are, then how much users have in all."""
    first = {}
    second = {}
    if request.n_pieces:
        if cells >= MANY_CELLS:
            first["cells"] = 3
        second["values"] = 2
    for name in request.totals:
        capped = name != "users" or cells > NO_CAP
        if capped and _cap_of(request, name) is None:
            second[name] = 2
    return first, second


def _cap_of(request: Request, name: str) -> int | None:
    """Returns a cap that the request gives for a total, in place of one that a look finds."""
    return None if name == "users" else request.records_per_user


def _round(epsilon: Fraction, shares: Mapping[str, int], users: int) -> Round:
    """Returns a draw that costs at most epsilon, whose blocks have units in these shares."""
    bits = max(_FINE, _FINE + 3 - math.floor(math.log2(epsilon)))
    unit = epsilon * 2**bits / sum(shares.values())
    found = Round({name: math.floor(unit * share) for name, share in shares.items()}, bits)
    if bits > _MOST_BITS:
        raise InputError("epsilon is too small for exact noise", "give a larger epsilon")
    if found.whole * users >= _MOST_UNITS:
        raise InputError(
            "epsilon times the number of users is too large for exact sums",
            "give a smaller epsilon; with this one there is hardly any noise",
        )
    return found
