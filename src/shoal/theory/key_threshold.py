"""Levels of a private selection of keys: how high a noisy weight must be for a key to be released.

A user with t keys, at most `MOST_KEYS`, adds floor(K/sqrt(t)) to each: an l2 norm of at most K. Two
draws of discrete Gaussian noise, of scale 2^bits steps and with K = `first` and K = `second`, share
the loss. A key whose first noisy weight is `found_first` or more is released; one below `stay` gets
nothing more. Users add to keys in between in the second draw, from where `found_second` is enough.

With exact tails of Z, the noise, and w_t = floor(K/sqrt(t)), a user with t keys that nobody else
has shows one at once with a chance of 1 - (1 - P[Z >= found_first - w_t])^t at most. A number m of
them stays, of the binomial law of t and P[Z >= stay - w_t], and one of those is released with a
chance of f(m) = 1 - (1 - P[Z >= found_second - w_m])^m at most. The levels are the least at which
the first chance and the mean of max(f(1), ..., f(m)) are at most a given delta together, for ALL t:
many light keys have more chances than a heavy one, so t = 1 is not the worst.
Source: docs/theory/private-counts.md#keys.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import special

from shoal.arrays import Bools, Floats, Ints
from shoal.theory import gaussian

# The most keys of one user that count.
MOST_KEYS = 256
# The part of the zCDP loss that the first draw has.
_FIRST_SHARE = Fraction(2, 5)
# The first noisy weight at which a key stays, in noise scales.
_STAY = Fraction(5, 2)
# The part of delta for keys of one user that the first draw may use up.
_FIRST_DELTA = 0.1
# A user has at least about 2^24 steps of each draw, so that rounding costs next to nothing.
_FINE = 24
# The lattice takes about 2^-23 of delta at most.
_CLOSE = 20
# A relative margin, far above the errors of SciPy's functions and of sums of a few hundred terms.
_OUTWARD = 2.0**-26


class Selection(NamedTuple):
    """Public numbers of a selection of keys, in whole steps.

    Attributes:
        bits: Noise of both draws has the scale of 2^bits steps.
        first: The most that a user moves the first draw by, in the l2 norm.
        second: The same of the second draw.
        stay: A key whose first noisy weight is lower gets no weight in the second draw.
        found_first: A key with this first noisy weight is released.
        found_second: A key with this second noisy weight is released.
    """

    bits: int
    first: int
    second: int
    stay: int
    found_first: int
    found_second: int

    @property
    def rho(self) -> Fraction:
        """The zCDP loss of both draws."""
        squares = self.first**2 + self.second**2
        return Fraction(squares, 2 * 4**self.bits)


def selection(epsilon: float, delta: float) -> Selection:
    """Returns a selection that costs epsilon and delta: half of it for noise, half for lone keys.

    Both draws together move at most 2 `MOST_KEYS` numbers by at most a loss of `rho`, which is
    (epsilon, delta/2)-private; and a lone user shows a key of its own with a chance of delta/2.
    """
    half = delta / 2
    numbers = 2 * MOST_KEYS
    smooth = gaussian.rho_of(epsilon, half)
    fine = _FINE - math.log2(smooth) / 2
    # A lattice adds about (numbers + rho)/(12 4^bits) to delta.
    close = (math.log2(numbers / half) + _CLOSE) / 2
    bits = math.ceil(max(_FINE, fine, close))
    rho = gaussian.rho_of_lattice(epsilon, half, numbers, bits)
    squares = math.floor(Fraction(rho) * 2 * 4**bits)
    of_first = math.floor(squares * _FIRST_SHARE)
    first = math.isqrt(of_first)
    second = math.isqrt(squares - of_first)
    return with_levels(bits, first, second, half)


def with_levels(bits: int, first: int, second: int, delta: float) -> Selection:
    """Returns the selection with the least levels at which `shown_alone` is at most delta."""
    found_first = 0
    for at, weight in enumerate(_shares(first).tolist()):
        log_hidden = math.log1p(-delta * _FIRST_DELTA) / (at + 1)
        needed = weight + _level(bits, -math.expm1(log_hidden))
        found_first = max(found_first, needed)
    stay = math.ceil(_STAY * 2**bits)
    # The last level of a bisection at which keys are shown too often, and one that is high enough.
    bad = 0
    good = second + _level(bits, delta / (2 * MOST_KEYS))
    base = Selection(
        bits,
        first,
        second,
        stay,
        found_first,
        found_second=good,
    )
    at_once, stays = _first_draw(base)
    while good - bad > 1:
        middle = (good + bad) // 2
        later = _second_draw(base._replace(found_second=middle))
        shown = at_once + stays @ later
        if shown.max() * (1 + _OUTWARD) <= delta:
            good = middle
        else:
            bad = middle
    return base._replace(found_second=good)


def shown_alone(chosen: Selection) -> Floats:
    """Returns the chance that a user with t keys that nobody else has shows one of them.

    The result has an entry for each t from 1 to `MOST_KEYS`, rounded upwards.
    """
    at_once, stays = _first_draw(chosen)
    shown = at_once + stays @ _second_draw(chosen)
    return np.minimum(shown * (1 + _OUTWARD), 1.0)


def public_order(keys: Sequence[str]) -> Ints:
    """Returns the place of each key in the order of SHA-256 of its text; keys are distinct."""
    texts = [key.encode() for key in keys]
    digests = [hashlib.sha256(text).digest() for text in texts]
    order = sorted(range(len(keys)), key=digests.__getitem__)
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.arange(len(keys))
    return place


def counted(user: Ints, place: Ints) -> Bools:
    """Returns which memberships count: of each user the first `MOST_KEYS` in the public order."""
    found = np.bincount(user)[user] <= MOST_KEYS
    heavy = np.flatnonzero(~found)
    order = np.lexsort((place[heavy], user[heavy]))
    heavy = heavy[order]
    holder = user[heavy]
    rank = np.arange(len(heavy)) - np.searchsorted(holder, holder)
    found[heavy] = rank < MOST_KEYS
    return found


def weights(user: Ints, users: int, whole: int) -> Ints:
    """Returns floor(whole/sqrt(t)) for each membership of a user with t keys.

    A user with more than `MOST_KEYS` has nothing.
    """
    many = np.bincount(user, minlength=users)
    table = np.concatenate([[0], _shares(whole), [0]])
    share = table[np.minimum(many, MOST_KEYS + 1)]
    return share[user]


def _shares(whole: int) -> Ints:
    """Returns floor(whole/sqrt(t)) for t from 1 to `MOST_KEYS`, exactly."""
    shares = [math.isqrt(whole**2 // many) for many in range(1, MOST_KEYS + 1)]
    return np.array(shares, dtype=np.int64)


def _first_draw(chosen: Selection) -> tuple[Floats, Floats]:
    """Returns by t the chance that a key is found at once, and those that 1, 2, ... keys stay."""
    many = np.arange(1, MOST_KEYS + 1)
    weight = _shares(chosen.first)
    at_once = _any(_tails(chosen.bits, chosen.found_first - weight), many)
    stays = _tails(chosen.bits, chosen.stay - weight)[:, None]
    gone = np.maximum(many[:, None] - many, 0)
    # There are no ways for more keys than t; chances below the normal floats do not matter.
    ways = special.binom(many[:, None], many)
    law = ways * stays**many * (1 - stays) ** gone
    return at_once, law


def _second_draw(chosen: Selection) -> Floats:
    """Returns the most that up to m keys that stayed are released with, by m."""
    many = np.arange(1, MOST_KEYS + 1)
    weight = _shares(chosen.second)
    tails = _tails(chosen.bits, chosen.found_second - weight)
    return np.maximum.accumulate(_any(tails, many))


def _any(chance: Floats, many: Ints) -> Floats:
    """Returns the chance of at least one of many independent events of one chance each."""
    with np.errstate(divide="ignore"):
        log_none = many * np.log1p(-chance)
    return -np.expm1(log_none)


def _tails(bits: int, least: Ints) -> Floats:
    """Returns P[Z >= z] of whole z, rounded upwards: see `gaussian.tail_quantile`.

    By symmetry it is half of P[|Z| > z - 1] for z from 1 on; below, 1 is returned.
    """
    scale = 2.0**bits
    normal = special.ndtr((0.5 - least) / scale)
    lattice = 1 - 1 / (24 * scale * scale)
    bound = normal / lattice * (1 + _OUTWARD)
    return np.where(least >= 1, np.minimum(bound, 1.0), 1.0)


def _level(bits: int, chance: float) -> int:
    """Returns the least whole z with P[Z >= z] at most a chance or, rarely, the next."""
    both_sides = min(2 * chance, 1 - _OUTWARD)
    return gaussian.tail_quantile(2.0**bits, both_sides) + 1
