"""Keys that are found: what a user adds to both draws, and which keys are released."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from shoal.presence.found import found_keys
from shoal.theory.key_threshold import MOST_KEYS, Selection, counted, public_order, selection

KEYS = 600
NAMES = [f"key {at}" for at in range(KEYS)]
CHOSEN = selection(2.0, 1e-6)


@dataclass
class Prescribed:
    """Says what every key has after noise, and keeps what it had before."""

    first: int
    second: int = 0
    asked: list[list[int]] = field(default_factory=list)

    def add_gaussian(self, steps: list[int], bits: int, draw: int) -> list[int]:
        """The same number for every key."""
        assert bits == CHOSEN.bits
        self.asked.append(list(map(int, steps)))
        return [self.first if len(self.asked) == 1 else self.second] * len(steps)


def _pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Thirty users with 1 to 400 of 600 keys each."""
    rng = np.random.default_rng(seed)
    parts = [
        (np.full(many, at), rng.choice(KEYS, many, replace=False))
        for at, many in enumerate(rng.integers(1, 401, 30))
    ]
    user, key = zip(*parts, strict=True)
    return np.concatenate(user), np.concatenate(key)


def _weights(user: np.ndarray, key: np.ndarray) -> list[dict[int, int]]:
    """What each key has in both draws, by its place in the public order; all of them stay."""
    noise = Prescribed(CHOSEN.stay)
    found_keys(user, key, NAMES, CHOSEN, noise)  # type: ignore[arg-type]
    place = public_order(NAMES)[key]
    there = np.unique(place[counted(user, place)]).tolist()
    return [dict(zip(there, each, strict=True)) for each in noise.asked]


@pytest.mark.parametrize("seed", range(4))
def test_a_user_moves_keys_of_others_by_at_most_what_draws_cost(seed: int) -> None:
    """P-REPLAY of keys: the l2 norm is at most K, and nearly K for keys that others have."""
    user, key = _pairs(seed)
    without = int(np.random.default_rng(seed).integers(30))
    rest = user != without
    whole = _weights(user, key)
    less = _weights(user[rest], key[rest])
    for most, before, after in zip((CHOSEN.first, CHOSEN.second), whole, less, strict=True):
        assert after.keys() <= before.keys()
        moves = [before[each] - after[each] for each in after]
        assert min(moves) >= 0
        norm = sum(each**2 for each in moves)
        assert 0.9 * most**2 < norm <= most**2


def test_keys_are_found_in_either_draw_and_sorted() -> None:
    """All at once, all by the second draw, or none; a user has its first 256 keys by the hash."""
    user = np.zeros(400, dtype=np.int64)
    key = np.arange(400)
    kept = sorted(NAMES[at] for at in np.flatnonzero(public_order(NAMES[:400]) < MOST_KEYS))

    def found(first: int, second: int) -> list[str]:
        noise = Prescribed(first, second)
        return found_keys(user, key, NAMES[:400], CHOSEN, noise)  # type: ignore[arg-type]

    assert found(CHOSEN.found_first, 0) == kept
    assert found(CHOSEN.stay, CHOSEN.found_second) == kept
    assert found(CHOSEN.found_first - 1, CHOSEN.found_second - 1) == []
    assert found(CHOSEN.stay - 1, CHOSEN.found_second) == []


def test_nobody_has_no_key() -> None:
    """An empty table has the same two draws, of no number."""
    nobody = np.zeros(0, dtype=np.int64)
    noise = Prescribed(0)
    assert found_keys(nobody, nobody, [], CHOSEN, noise) == []  # type: ignore[arg-type]
    assert noise.asked == [[], []]
    assert isinstance(CHOSEN, Selection)
