"""Levels for keys against sums of the discrete Gaussian, draw by draw, and weights by the norm."""

import hashlib
import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from shoal.theory import gaussian, key_threshold
from shoal.theory.key_threshold import MOST_KEYS, Selection

# Noise bits, steps of a user in each draw, and delta.
# Where a user moves draws by much of the noise, several keys that stay have less chance than one.
CASES = [
    (11, 60, 75, 5e-7),
    (11, 60, 75, 5e-10),
    (11, 300, 360, 5e-7),
    (11, 1024, 1024, 5e-7),
    (11, 4096, 4096, 5e-7),
    (11, 4096, 5000, 1e-3),
]
MANY = (*range(1, 9), 16, 40, 100, 180, MOST_KEYS - 1, MOST_KEYS)
# What plans had at epsilon 0.01, 1 and 8 with levels of keys that all stay by themselves.
EARLIER = [
    (1e-6, (33, 16780522, 20551858, 21474836480, 53754527538, 42985090993)),
    (1e-6, (27, 19446444, 23816933, 335544320, 841113509, 688603740)),
    (1e-3, (24, 21232652, 26004582, 41943040, 86505953, 81003390)),
]
# Keys that only the user has, and all of its keys.
MIXED = [(1, 2), (1, MOST_KEYS), (2, 3), (3, 9), (20, 40), (100, MOST_KEYS)]


def tails(bits: int) -> list[Any]:
    """P[Z >= z] of whole z from 0 to 16 scales, by sums of its definition with 40 digits."""
    scale = 2**bits
    with mpmath.workdps(40):
        weight = [mpmath.exp(mpmath.mpf(-z * z) / (2 * scale**2)) for z in range(16 * scale)]
        norm = 2 * mpmath.fsum(weight) - 1
        above = [mpmath.mpf(0)]
        for each in reversed(weight):
            above.append(above[-1] + each / norm)
    return above[::-1]


def never(chosen: Selection, tail: list[Any], many: int, own_keys: int) -> Any:
    """The chance that none of the keys that only a user has is shown, of its many keys in all."""

    def at_least(z: int) -> Any:
        return tail[z] if z >= 0 else 1 - tail[1 - z]

    weight = math.floor(chosen.first / mpmath.sqrt(many))
    stays = at_least(chosen.stay - weight)
    at_once = at_least(chosen.found_first - weight)
    waits = max(stays - at_once, mpmath.mpf(0))
    chance = mpmath.mpf(0)
    for left in range(own_keys + 1):
        own = math.floor(chosen.second / mpmath.sqrt(left)) if left else 0
        missed = 1 - at_least(chosen.found_second - own)
        ways = mpmath.binomial(own_keys, left) * waits**left
        ways *= (1 - max(stays, at_once)) ** (own_keys - left)
        chance += ways * missed**left
    return chance


@pytest.mark.oracle
@pytest.mark.parametrize(("bits", "first", "second", "delta"), CASES)
def test_a_lone_user_shows_no_key_more_often_than_delta(
    bits: int, first: int, second: int, delta: float
) -> None:
    """Exact for every t, and close to delta at the worst: levels are hardly too high."""
    chosen = key_threshold.with_levels(bits, first, second, delta)
    stated = key_threshold.shown_alone(chosen)
    assert stated.max() <= delta
    worst = int(stated.argmax()) + 1
    some = [*MIXED, *((many, many) for many in MANY)]
    tail = tails(bits)
    with mpmath.workdps(40):
        for own, many in some:
            assert 1 - never(chosen, tail, many, own) <= stated[many - 1]
        exact = max(1 - never(chosen, tail, worst, own) for own in range(worst, 0, -7))
    assert 0.99 * delta <= exact <= delta


@pytest.mark.oracle
@pytest.mark.parametrize(("first", "second"), [(60, 75), (1024, 1024), (4096, 5000), (9000, 9000)])
def test_keys_of_others_that_stay_or_leave_make_no_user_worse(
    first: int, second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state of each key of a user with up to five, of which others have some as well."""
    monkeypatch.setattr(key_threshold, "MOST_KEYS", 5)
    chosen = key_threshold.with_levels(11, first, second, 1e-6)
    tail = [float(each) for each in tails(11)]

    def at_least(z: int) -> float:
        return tail[z] if z >= 0 else 1 - tail[1 - z]

    for many, stated in enumerate(key_threshold.shown_alone(chosen), start=1):
        weight = math.isqrt(first**2 // many)
        at_once = at_least(chosen.found_first - weight)
        waits = at_least(chosen.stay - weight) - at_once
        chance = {"found": at_once, "waits": waits, "gone": 1 - at_once - waits}
        shown = np.zeros((many + 1, many))
        for own in range(1, many + 1):
            for states in itertools.product(chance, repeat=own):
                reached = math.prod(chance[state] for state in states)
                left = states.count("waits")
                for shared in range(many - own + 1):
                    each = math.isqrt(second**2 // max(left + shared, 1))
                    hidden = (1 - at_least(chosen.found_second - each)) ** left
                    hidden *= "found" not in states
                    shown[own, shared] += reached * (1 - hidden)
        assert shown.max() <= stated <= 1.0001 * shown.max()


@pytest.mark.property
@pytest.mark.parametrize(("delta", "numbers"), EARLIER)
def test_levels_of_earlier_plans_stay_valid(delta: float, numbers: tuple[int, ...]) -> None:
    """A bound that grows, by however little, would refuse files of plans and releases."""
    assert key_threshold.shown_alone(Selection(*numbers)).max() <= delta / 2


@pytest.mark.oracle
def test_levels_for_one_key_alone_are_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at t = 1 alone lets users with many keys show one far too often."""
    with monkeypatch.context() as patched:
        patched.setattr(key_threshold, "MOST_KEYS", 1)
        wrong = key_threshold.with_levels(11, 60, 75, 5e-7)
    tail = tails(11)
    with mpmath.workdps(40):
        assert 1 - never(wrong, tail, 1, 1) <= 5e-7
        assert 1 - never(wrong, tail, MOST_KEYS, MOST_KEYS) > 10 * 5e-7
    assert key_threshold.shown_alone(wrong).max() > 10 * 5e-7


@pytest.mark.oracle
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-15])
def test_a_selection_costs_what_it_may(epsilon: float, delta: float) -> None:
    """Half of delta is for the noise of all numbers of a user, and half for keys of its own."""
    chosen = key_threshold.selection(epsilon, delta)
    noise = gaussian.delta_of_lattice(epsilon, float(chosen.rho), 2 * MOST_KEYS, chosen.bits)
    alone = key_threshold.shown_alone(chosen).max()
    assert 0.999 * delta <= noise + alone <= delta
    assert alone <= delta / 2
    assert min(chosen.first, chosen.second) > 2**22


@pytest.mark.property
@pytest.mark.parametrize("whole", [1, 15, 16, 1000, 2**30 + 1])
def test_no_user_has_a_longer_vector(whole: int) -> None:
    """Weights are the largest equal whole numbers whose l2 norm is at most K, for every t."""
    many = np.arange(1, MOST_KEYS + 2)
    user = np.repeat(many - 1, many)
    found = key_threshold.weights(user, len(many), whole)
    for t in range(1, MOST_KEYS + 1):
        own = {int(each) for each in found[user == t - 1]}
        (weight,) = own
        assert t * weight**2 <= whole**2 < t * (weight + 1) ** 2
    assert not found[user == MOST_KEYS].any()


@pytest.mark.property
def test_the_keys_that_count_follow_from_their_texts() -> None:
    """Of a user with too many keys the first by SHA-256 count, whoever else has which keys."""
    texts = [f"key {at}" for at in range(400)]
    place = key_threshold.public_order(texts)
    assert sorted(place) == list(range(400))
    by_hash = sorted(range(400), key=lambda at: hashlib.sha256(texts[at].encode()).hexdigest())
    assert [int(place[at]) for at in by_hash] == list(range(400))
    rng = np.random.default_rng(1)
    held = {0: range(390), 3: range(50, 350), 7: (5, 395)}
    user = np.concatenate([np.full(len(keys), who) for who, keys in held.items()])
    key = np.concatenate([np.array(keys) for keys in held.values()])
    order = rng.permutation(len(user))
    user, key = user[order], key[order]
    kept = key_threshold.counted(user, place[key])
    for who, keys in held.items():
        expected = [each for each in by_hash if each in keys][:MOST_KEYS]
        assert set(key[kept & (user == who)]) == set(expected)
    assert key_threshold.counted(user[:0], user[:0]).shape == (0,)
