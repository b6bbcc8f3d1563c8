"""Rules of papers that find keys, rebuilt with normal noise: means of the keys that each finds.

Of the settings of a rule those count that find most on the very table. Every user has at most
`MOST_KEYS` keys, as with our rule. Half of delta is for noise, half for keys of a lone user.
Sources: MAD and MAD2R arXiv 2502.08878; Renyi, of which only the abstract was at hand, arXiv
2603.09167; correlated noise arXiv 2408.06853.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from scipy import optimize, special

from shoal.privacy.noise import Simulated
from shoal.theory import key_threshold
from shoal.theory.key_threshold import MOST_KEYS
from shoal_studies.bench_keys import CAPS, DELTA, Pairs, counts, deviation, each_of, found, tables
from shoal_studies.populations import Floats

_PART = 0.1
_HALF = DELTA / 2
_MANY = np.arange(1, MOST_KEYS + 1)
_SHARES = 1 / np.sqrt(_MANY)
# The part of loss and delta that the first round of MAD2R has.
_FIRST = 0.1
# Weights of a Renyi rule are in parts of the weight of a user with one key.
_PARTS = 8


def ours(pairs: Pairs, epsilon: float, turn: int) -> float:
    """Two draws with noise that is drawn."""
    return found(pairs, key_threshold.selection(epsilon, DELTA), Simulated(turn))


def one_draw(pairs: Pairs, epsilon: float, turn: int) -> float:
    """Each of t keys has a share of 1/sqrt(t)."""
    scale = deviation(epsilon)
    weight = np.bincount(pairs.key, pairs.shares)
    return _passed(weight - _level(scale, _HALF, _SHARES), scale)


def mad(pairs: Pairs, epsilon: float, turn: int, most: int) -> float:
    """Users with few keys have back some of what a key has above its level, for all their keys."""
    scale = deviation(epsilon)
    unit = (pairs.many <= most) / pairs.many
    level = _level(scale, _HALF, _SHARES + (most >= _MANY) / _MANY / most)
    cut = level + 2 * scale
    heard = np.bincount(pairs.key, unit)
    excess = 1 - cut / np.maximum(heard, cut)
    back = np.bincount(pairs.user, unit * excess[pairs.key])[pairs.user] / most
    rest = np.bincount(pairs.key, pairs.shares - unit + unit * back)
    return _passed(rest + np.minimum(heard, cut) - level, scale)


def mad2r(pairs: Pairs, epsilon: float, turn: int, bias: int, far: int) -> float:
    """Of what a first round heard, keys found or hopeless leave, and keys near the level weigh."""
    first, second = deviation(epsilon) / np.sqrt([_FIRST, 1 - _FIRST])
    level = _level(second, _HALF * (1 - _FIRST), np.minimum(1, bias * _SHARES))
    weight = np.bincount(pairs.key, pairs.shares)
    heard = weight + first * np.random.default_rng(turn).normal(size=len(weight))
    gone = heard >= _level(first, _HALF * _FIRST, _SHARES)
    stays = (~gone & (heard + far * first >= level))[pairs.key]
    user, key = pairs.user[stays], pairs.key[stays]
    plain = 1 / np.sqrt(np.bincount(user)[user])
    low = np.maximum(heard - first, 1e-9)[key]
    share = plain * np.clip(level / low, 1 / bias, bias)
    norm = np.sqrt(np.bincount(user, share**2))[user]
    again = np.bincount(key, np.minimum(share / norm, bias * plain))
    return gone.sum() + _passed(again - level, second)


def renyi(pairs: Pairs, epsilon: float, turn: int, order: float) -> float:
    """A weight has the greatest chance that Renyi divergence from lower ones allows."""
    at = np.floor(np.bincount(pairs.key, pairs.shares) * _PARTS).astype(np.int64)
    chances = _chances(epsilon, order * np.log(2 / DELTA) / epsilon + 1)
    return chances[np.minimum(at, len(chances) - 1)].sum()


@cache
def _chances(epsilon: float, order: float) -> Floats:
    loss = epsilon - np.log1p(-1 / order) + np.log(_HALF * order) / (order - 1)
    room = (order - 1) * loss * (np.arange(1, _PARTS + 1) / _PARTS) ** 2
    odds: list[float] = []

    def over(odd: float, lower: Floats) -> float:
        """By how much a chance is too far from lower ones, either way; all are log odds."""
        pair = np.array(np.broadcast_arrays(odd, lower))
        logs = special.log_expit([pair, -pair])
        moved = np.logaddexp.reduce(order * logs + (1 - order) * logs[:, ::-1])
        return np.max(moved - room[: len(lower)])

    while not odds or odds[-1] < 20:
        weight = (len(odds) + 1) / _PARTS
        most = special.logit(_HALF * weight**2) if weight <= 1 else 21.0
        lower = np.array(odds[: -_PARTS - 1 : -1])
        if odds and over(most, lower) > 0:
            most = optimize.brentq(over, odds[-1], most, (lower,))
        odds.append(most)
    return special.expit([-np.inf, *odds])


def correlated(pairs: Pairs, epsilon: float, turn: int, cap: int) -> float:
    """Counts of users with so many keys at most, with noise that all keys have in common too."""
    keys = pairs.size[1] + np.sqrt(pairs.size[1])
    own = np.arange(1, cap + 1)
    moved = np.max(own - own**2 / keys) * keys / pairs.size[1]
    scale = deviation(epsilon) * np.sqrt(moved)
    return _passed(counts(pairs, cap, turn) - _level(scale, _HALF, np.ones(cap)), scale)


def opendp(pairs: Pairs, epsilon: float, turn: int, cap: int) -> float:
    """What OpenDP releases of counts of users with so many keys at most, with Gaussian noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    moves = dp.l02inf_distance(dp.absolute_distance(T="f64"))
    scale = deviation(epsilon) * cap**0.5
    level = int(_level(scale, _HALF, np.ones(cap))) + 2
    rule = dp.m.make_gaussian_threshold(whole, moves, scale=scale, threshold=level)
    assert rule.map((cap, cap**0.5, 1.0))[1] <= _HALF
    many = counts(pairs, cap, turn).astype(int)
    return len(rule(dict(enumerate(many.tolist()))))


def _level(scale: float, delta: float, shares: Floats) -> float:
    """The level that a user with t keys of these shares passes with a chance of delta at most."""
    each = each_of(delta, _MANY[: len(shares)])
    return np.max(shares - scale * special.ndtri(each))


def _passed(above: Floats, scale: float) -> float:
    return special.ndtr(above / scale).sum()


# Each rule and its settings.
RULES: dict[str, tuple[Any, list[Any]]] = {
    "ours": (ours, [()]),
    "one draw": (one_draw, [()]),
    "MAD": (mad, [*product((5, 10, 20, 50, 100, MOST_KEYS))]),
    "MAD2R": (mad2r, [*product((1, 2), (1, 2, 3))]),
    "Renyi": (renyi, [*product((1.15, 1.35, 1.6, 2.0, 2.6))]),
    "correlated": (correlated, [*product(CAPS)]),
}
if find_spec("opendp"):
    RULES["OpenDP"] = (opendp, [*product((1, 8, 32, 64))])


def lines(releases: int, epsilon: list[float], only: str) -> Iterator[str]:
    """What `shoal bench presence --keys --rules` prints."""
    yield f"keys found at delta {DELTA:g} with {_PART:g} of epsilon, means of {releases} releases"
    yield f"{'table':<20}{'eps':>6}" + "".join(f"{name:>11}" for name in RULES)
    for made in tables():
        pairs = made().counted()
        for loss in epsilon if only in pairs.name else ():
            row = f"{pairs.name:<20}{loss:>6g}"
            for rule, settings in RULES.values():
                many = [
                    sum(rule(pairs, loss * _PART, turn, *setting) for turn in range(releases))
                    for setting in settings
                ]
                row += f"{max(many) / releases:>11.1f}"
            yield row
