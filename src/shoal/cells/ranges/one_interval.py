"""One interval for all cells: one permute-and-flip selection, everything else from counts.

Most of the noise of other plans pays for a range far wider than the users' means. Here ONE
selection finds a short interval that holds most of the weight. Its score is

    sum over users of weight inside  +  reward x halvings of the width ,

in which every user counts for at most 1, over all cells together. See `docs/theory/adaptive.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.design import add_by
from shoal.cells.ranges.base import RangeRule
from shoal.cells.ranges.selected import Range
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.privacy.noise import Noise

# One user counts for this much in a score.
USER = 1 << 16
# The narrowest candidates are the width over 2^10.
MOST_HALVINGS = 10
# Of everyone's weight, what the narrowest candidate earns for its width: where selection noise is
# large, and where it is small.
_REWARD, _MOST_REWARD = 0.35, 0.8
# Noise scales of the range that one halving may cost in weight: see docs/theory/adaptive.md.
_PATIENCE = 8.0
_MOST, _FIND, _LEAST = 0.5, 0.28, 1e-6
_LEAST_HALVINGS = 2
# The best candidate stands out from all others together by this, in logarithms.
_MARGIN = 4.5


@dataclass(frozen=True)
class OneInterval(RangeRule):
    """One privately selected interval for all cells (docs/theory/adaptive.md).

    Its candidates are all widths U 2^(-k/2) at steps of a quarter of their width.
    """

    title = "one interval for all cells"
    selects = "for all"
    rounds = 1
    least: ClassVar[Mapping[str, int]] = {"reward": 0}

    def parameters(
        self,
        design: Design,
        own: Parameters,
        epsilon: NDArray[np.float64],
        top: int,
    ) -> Parameters:
        """No reward yet: it follows from the noise."""
        return {"reward": np.zeros(1, dtype=np.int64)}

    def selecting(self, design: Design, epsilon: float) -> float:
        """sqrt(10/N) with N = epsilon times the weight of all users, at least what finds K."""
        weight = epsilon * float(_say(design).sum()) / USER
        halvings = _halvings(weight)
        if halvings == 0:
            return _LEAST
        return min(_MOST, max(_needed(weight, halvings), math.sqrt(10 / weight)))

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Rewards that do not fall."""
        return are_rewards(parameters["reward"])

    def most_narrowing(self, parameters: Parameters, top: int) -> int:
        """The narrowest candidate, with a factor of 2 for its rounding to even numbers."""
        return 2 << (len(parameters["reward"]) // 2)

    def score_sensitivity(self, design: Design) -> int:
        """One user counts for at most USER, over all cells."""
        return USER

    def tune(
        self,
        design: Design,
        parameters: Parameters,
        epsilon: float,
        relative_scale: NDArray[np.float64],
        selecting: float,
    ) -> Parameters:
        """The reward of every narrower width, in all, in 1/USER of a user.

        One more halving of the width earns what it saves in noise, but together they earn at most
        the part of everyone's weight that selection noise cannot hide. Widths that the selection's
        part of the loss cannot find earn nothing: its noise alone would choose among them.
        """
        everyone = float(_say(design).sum())
        weight = epsilon * everyone / USER
        halvings = _halvings(weight, selecting)
        noise = math.exp(float(np.log(relative_scale).mean()))
        hidden = _needed(weight, halvings) * (1 - _REWARD) / selecting
        most = min(_MOST_REWARD, max(_REWARD, 1 - hidden))
        # Sure of its range, the first halvings may earn more than the later ones.
        sure = (most - _REWARD) / (_MOST_REWARD - _REWARD)
        falling = (1 - sure * (1 - 2**-0.5)) ** (np.arange(2 * halvings) / 2)
        earned = np.minimum(_PATIENCE * noise / 2, most * falling / max(falling.sum(), 1.0))
        reward = np.floor(everyone * np.append(0.0, np.cumsum(earned)))
        return parameters | {"reward": reward.astype(np.int64)}

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """The same range for every cell."""
        reward = parameters["reward"]
        low, high, steps = candidates(len(reward) // 2, means.top)
        scores = _inside(means, low, high, steps) + reward[steps]
        where = noise.select(scores, float(scale[0]), 0)
        size = means.design.n_numbers
        return Range(np.full(size, low[where]), np.full(size, high[where]))


def are_rewards(reward: NDArray[np.int64]) -> bool:
    """Whether these could be rewards of narrower and narrower widths."""
    return bool(
        reward.ndim == 1
        and len(reward) % 2 == 1
        and len(reward) <= 2 * MOST_HALVINGS + 1
        and reward[0] == 0
        and (np.diff(reward) >= 0).all()
    )


def candidates(
    halvings: int, top: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lower ends, upper ends, and halvings times two of every candidate interval of [0, top].

    Example:
        >>> low, high, steps = candidates(1, 64)
        >>> low.tolist(), (high - low).tolist()
        ([0, 0, 10, 20, 0, 8, 16, 24, 32], [64, 44, 44, 44, 32, 32, 32, 32, 32])
    """
    low, width, steps = [], [], []
    for step in range(2 * halvings + 1):
        # Whole-number square roots are the same on every machine; even widths have a middle.
        wide = math.isqrt(top * top >> step) & ~1
        places = -(-(top - wide) // max(wide // 4, 1))
        low.append(np.arange(places + 1, dtype=np.int64) * (top - wide) // max(places, 1))
        width.append(np.full(places + 1, wide, dtype=np.int64))
        steps.append(np.full(places + 1, step, dtype=np.int64))
    start = np.concatenate(low)
    return start, start + np.concatenate(width), np.concatenate(steps)


def _say(design: Design) -> NDArray[np.int64]:
    """How much each member counts in the score: its weight over the heaviest, at most 1 a user."""
    part = design.weight / design.heaviest[design.number]
    if design.interval is not None:
        part = design.part / np.maximum(design.largest, 2.0**-60)[design.number]
    of_user = np.bincount(design.user, part)
    share = part / np.maximum(1.0, of_user[design.user])
    # Rounded downwards with a margin: the sum over a user's cells stays at most USER.
    say = np.floor(share * USER * (1 - 2.0**-40)).astype(np.int64)
    if int(add_by(design.user, say, len(of_user)).max()) > USER:
        raise InputError("a user with too much say", "at most one user's worth", "report this")
    return say


def _inside(
    means: PrivateMeans,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Weight of users inside each candidate; of one width, candidates come from left to right."""
    design, say = means.design, _say(means.design)
    if not design.widened:
        return _weight_between(means.means, say, low, high)
    inside = np.zeros(len(low), dtype=np.int64)
    heaviest, range_width = design.heaviest[design.number], high - low
    # Of one width, a member is inside for the middles in an interval around its mean.
    for step in range(int(steps[-1]) + 1):
        these = np.flatnonzero(steps == step)
        middle = (low + high)[these] // 2
        half = range_width[these[0]] * heaviest // (2 * design.weight)
        begin = np.searchsorted(middle, means.means - half, side="left")
        end = np.searchsorted(middle, means.means + half, side="right")
        change = add_by(begin, say, len(these) + 1) - add_by(end, say, len(these) + 1)
        inside[these] = np.cumsum(change)[:-1]
    return inside


def _weight_between(
    values: NDArray[np.int64],
    weight: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> NDArray[np.int64]:
    order = np.argsort(values)
    total = np.append(0, np.cumsum(weight[order]))
    upto = total[np.searchsorted(values[order], high, side="right")]
    return np.asarray(upto - total[np.searchsorted(values[order], low, side="left")])


def _count(halvings: int) -> int:
    return len(candidates(halvings, 1 << 30)[0])


def _needed(weight: float, halvings: int) -> float:
    """Part of the budget at which the best of the candidates stands out from an empty one.

    Where nobody counts, as in an optimal plan of a cell of two users, none ever does.
    """
    if weight == 0:
        return math.inf
    return 2 * (math.log(_count(halvings)) + _MARGIN) / ((1 - _REWARD) * weight)


def _halvings(weight: float, most: float = _FIND) -> int:
    """The narrowest width that a part of the budget can find; 0 where no range can be found."""
    part = min(most, _FIND)
    allowed = [k for k in range(_LEAST_HALVINGS, MOST_HALVINGS + 1) if _needed(weight, k) <= part]
    return allowed[-1] if allowed else 0
