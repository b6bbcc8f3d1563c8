"""Finds keys that enough users have, with a delta: two draws, of which nothing else is released.

Source: docs/theory/private-counts.md#keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.arrays import Ints, add
from shoal.privacy.noise import Noise
from shoal.theory.key_threshold import Selection, counted, public_order, weights

# Draws of keys have numbers from here on.
_START = 30_000_000


def found_keys(
    user: Ints, key: Ints, names: Sequence[str], chosen: Selection, noise: Noise
) -> list[str]:
    """Returns the names of the keys that are found, sorted.

    Formal guarantee: if a user comes or goes, the chance of each outcome changes as the loss of two
    Gaussian draws says, whose l2 norms it moves by `chosen.first` and `chosen.second` at most, and
    by half of the delta besides, for keys that nobody else has.

    Args:
        user: The user of each pair of a user and a key, each pair once.
        key: The position of its key among the names.
        names: Distinct texts of the keys, by which a user with too many keys is cut.
        chosen: Weights and levels.
        noise: Where noise comes from.
    """
    place = public_order(names)
    named = np.argsort(place)
    at = place[key]
    kept = counted(user, at)
    user = user[kept]
    at = at[kept]
    there, first = _noisy(user, at, chosen.first, chosen.bits, noise, _START)
    at_once = first >= chosen.found_first
    stays = (first >= chosen.stay) & ~at_once
    left = stays[np.searchsorted(there, at)]
    still, second = _noisy(user[left], at[left], chosen.second, chosen.bits, noise, _START + 1)
    found = [*there[at_once], *still[second >= chosen.found_second]]
    return sorted(names[named[each]] for each in found)


def _noisy(
    user: Ints, at: Ints, whole: int, bits: int, noise: Noise, draw: int
) -> tuple[Ints, Ints]:
    """Returns the places of keys that somebody has, ascending, and their noisy weights."""
    there, position = np.unique(at, return_inverse=True)
    users = int(user.max(initial=-1)) + 1
    of_pairs = weights(user, users, whole)
    exact = add(position, of_pairs, len(there)).tolist()
    noisy = noise.add_gaussian(exact, bits, draw)
    return there, np.array(noisy, dtype=np.int64)
