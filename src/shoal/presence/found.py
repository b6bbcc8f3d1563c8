"""Finds keys that enough users have, with a delta: two draws, of which nothing else is released.

Source: docs/theory/private-counts.md#keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from shoal.arrays import Ints
from shoal.data import keys
from shoal.data.aggregate import exact_sums
from shoal.data.records import Records
from shoal.presence.keys import texts_of
from shoal.presence.members import codes_of, owners
from shoal.privacy.accounting import NoisyVector, Stated, Step
from shoal.privacy.noise import Noise
from shoal.theory.key_threshold import (
    MOST_KEYS,
    Selection,
    counted,
    public_order,
    shown_alone,
    weights,
)

# Draws of keys have numbers from here on.
_START = 30_000_000


def steps_of(chosen: Selection, delta: Fraction) -> list[Step]:
    """Returns what finding cells costs: two draws, and a chance that a lone user shows a key."""
    moves = (chosen.first**2, chosen.second**2)
    draws = [
        NoisyVector("gaussian", chosen.bits, np.array([each], dtype=object), MOST_KEYS)
        for each in moves
    ]
    return [*draws, Stated(Fraction(0), delta / 2)]


def check_levels(chosen: Selection, delta: Fraction) -> None:
    """Refuses, with a ValueError, levels at which a lone user shows a key too often."""
    most = Fraction(float(shown_alone(chosen).max()))
    if most > delta / 2:
        raise ValueError


def found_cells(
    records: Records, periods: Sequence[str], chosen: Selection, noise: Noise
) -> pa.Table:
    """Returns the cells that are found, as columns of texts; the formal guarantee of `found_keys`.

    Whatever else is in a row is read by itself, as in `shoal.presence.members.members`.
    """
    table = records.private_groups(())
    who = owners(records, table, periods)
    known = []
    numbers = []
    for code in codes_of(records, table):
        encoded = (code if isinstance(code, pa.Array) else pa.array(code)).dictionary_encode()
        # Texts of any length, each by itself.
        spelled = np.array(texts_of(encoded.dictionary), dtype=object)
        texts, number = np.unique(spelled, return_inverse=True)
        known.append(texts)
        numbers.append(number[keys.numbers(encoded.indices)])
    distinct, key = np.unique(np.array(numbers), axis=1, return_inverse=True)
    columns = [texts[number].tolist() for texts, number in zip(known, distinct, strict=True)]
    names = [json.dumps(each) for each in zip(*columns, strict=True)]
    listed = np.flatnonzero(who >= 0)
    _, user = np.unique(who[listed], return_inverse=True)
    pairs = np.unique(np.stack([user, key.ravel()[listed]]), axis=1)
    found = found_keys(pairs[0], pairs[1], names, chosen, noise)
    rows = [json.loads(each) for each in found]
    cells = {
        rule.name: pa.array([row[at] for row in rows], pa.string())
        for at, rule in enumerate(records.rules)
    }
    return pa.table(cells)


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
    # Sums are whole numbers of Python: 64 bits would wrap around.
    exact = exact_sums(position, of_pairs, len(there))
    noisy = noise.add_gaussian(exact, bits, draw)
    return there, np.array(noisy, dtype=np.int64)
