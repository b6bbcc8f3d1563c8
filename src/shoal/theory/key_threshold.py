"""Levels of a private selection of keys: how high a noisy weight must be for a key to be released.

A user with t keys, at most `MOST_KEYS`, adds floor(K/sqrt(t)) to each: an l2 norm of at most K. Two
draws of discrete Gaussian noise, of scale 2^bits steps and with K = `first` and K = `second`, share
the loss. A key whose first noisy weight is `found_first` or more is released; one below `stay` gets
nothing more. Users add to keys in between in the second draw, from where `found_second` is enough.

With exact tails of Z, the noise, and w_t = floor(K/sqrt(t)), a key that only a user with t keys has
is found at once with a chance of a = P[Z >= found_first - w_t], and reaches `stay` with one of
b = P[Z >= stay - w_t]. Of m such keys that stay one is released with a chance of at most
f(m) = 1 - (1 - P[Z >= found_second - w_m])^m. A user with s such keys, at most t, shows one with a
chance of 1 - (1 - a)^s + E[f(M)] at most, where M has the binomial law of s and b. The levels are
the least at which this is at most a given delta for ALL s and t: many light keys have more chances
than a heavy one, and where f falls, a few keys have more than many.
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
_OUTWARD = 2.0**-36


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
    enough = second + _level(bits, delta / (2 * MOST_KEYS))
    chosen = Selection(
        bits,
        first,
        second,
        stay,
        found_first,
        found_second=0,
    )
    shown = shown_alone(chosen)
    while shown.max() > delta:
        # The next level is the least for users with this number of keys.
        worst = np.array([shown.argmax() + 1])
        bad = chosen.found_second
        good = enough
        while good - bad > 1:
            middle = (good + bad) // 2
            if _shown(chosen._replace(found_second=middle), worst)[0] <= delta:
                good = middle
            else:
                bad = middle
        chosen = chosen._replace(found_second=good)
        shown = shown_alone(chosen)
    return chosen


def shown_alone(chosen: Selection) -> Floats:
    """Returns the highest chance that a user with t keys shows one that nobody else has.

    The result has an entry for each t from 1 to `MOST_KEYS`, rounded upwards.
    """
    return _shown(chosen, np.arange(1, MOST_KEYS + 1))


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


def _shown(chosen: Selection, many: Ints) -> Floats:
    """Returns what `shown_alone` does for users with so many keys."""
    weight = _shares(chosen.first)[many - 1]
    at_once = _tails(chosen.bits, chosen.found_first - weight)
    stays = _tails(chosen.bits, chosen.stay - weight)
    leaves = _tails(chosen.bits, 1 + weight - chosen.stay)
    of_second = _tails(chosen.bits, chosen.found_second - _shares(chosen.second))
    # By how many keys are known to stay, and by users: the mean over what other keys do.
    later = np.zeros((MOST_KEYS + 1, 1))
    later[1:, 0] = _any(of_second, np.arange(1, MOST_KEYS + 1))
    most = np.zeros(len(many))
    for own in range(1, int(many.max()) + 1):
        later = stays * later[1:] + leaves * later[:-1]
        shown = _any(at_once, own) + later[0]
        most = np.maximum(most, np.where(own <= many, shown, 0.0))
    return np.minimum(most * (1 + _OUTWARD), 1.0)


def _any(chance: Floats, many: Ints | int) -> Floats:
    """Returns the chance of at least one of many independent events of one chance each."""
    with np.errstate(divide="ignore"):
        log_none = many * np.log1p(-chance)
    return -np.expm1(log_none)


def _tails(bits: int, least: Ints) -> Floats:
    """Returns P[Z >= z] of whole z, rounded upwards: see `gaussian.tail_quantile`."""
    scale = 2.0**bits
    normal = special.ndtr((0.5 - least) / scale)
    lattice = 1 - 1 / (24 * scale * scale)
    bound = normal / lattice * (1 + _OUTWARD)
    return np.minimum(bound, 1.0)


def _level(bits: int, chance: float) -> int:
    """Returns the least whole z with P[Z >= z] at most a chance or, rarely, the next."""
    both_sides = min(2 * chance, 1 - _OUTWARD)
    return gaussian.tail_quantile(2.0**bits, both_sides) + 1
