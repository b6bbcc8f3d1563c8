"""Where values are clipped: to the public bounds, or to a range that is selected privately.

A selection `per cell` costs every user in the cell; one `for all` cells costs every user once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal.arrays import Floats, Ints, add, by_cell, largest
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, ends
from shoal.cells.mechanisms.weights import Parameters, Weights
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.noise import Noise
from shoal.privacy.permute_and_flip import UNIT

# One user counts for this much in a score that all cells share.
USER = 1 << 16
MOST_BINS = 1 << 21
# The narrowest candidates of one interval are the width over 2^10.
MOST_HALVINGS = 10
# Of everyone's weight, what the narrowest candidate earns for its width: where selection noise is
# large, and where it is small.
_REWARD = 0.35
_MOST_REWARD = 0.8
# Noise scales of the range that a halving may cost in weight: docs/theory/cells.md#adaptive-mean.
_PATIENCE = 8.0
_MOST = 0.5
_FIND = 0.28
_LEAST = 1e-6
_LEAST_HALVINGS = 2
# The best candidate stands out from all others together by this, in logarithms.
_MARGIN = 4.5


def range_bias(weights: Weights, chosen: Interval, top: int) -> Floats:
    """Most that clipping to a range adds to each cell's bias, over the width `top`.

    sum_l w_l max(low_l, U - high_l), less what windows leave out of the whole width; of clipped
    sums, (1/n) sum_l max(0, U m_l - T).
    """
    cell = weights.cell
    if weights.sums:
        lost = np.maximum(weights.count - chosen.high[cell] / top, 0)
    else:
        low, high = ends(weights, chosen)
        lost = weights.weight * (np.maximum(np.maximum(low, top - high), 0) / top)
    found = np.bincount(cell, lost, minlength=weights.n_cells) / weights.total
    return np.asarray(found - weights.missing / 2)


@dataclass(frozen=True)
class Range:
    """The public range: values are clipped to the bounds, and nothing is selected.

    Class attributes: what it `selects`; `rounds`, selections of each kind; `names` of its
    parameters; `of_vectors`, whether all cells of a user are clipped together.
    """

    selects: ClassVar[Literal["nothing", "per cell", "for all"]] = "nothing"
    rounds: ClassVar[int] = 0
    names: ClassVar[tuple[str, ...]] = ()
    of_vectors: ClassVar[bool] = False

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Public whole numbers that follow from weights, their own, and the loss of each cell."""
        return {}

    def fits(self, parameters: Parameters) -> bool:
        """Whether parameters, each within its limits, go together."""
        return True

    def selections(self, parameters: Parameters, cells: int) -> int:
        """How many scales the private selections in so many cells have."""
        return {"nothing": 0, "per cell": cells, "for all": 1}[self.selects]

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """The width over the shortest range that a selection can give, rounded upwards."""
        return 1

    def widest(self, parameters: Parameters) -> Floats | float:
        """The longest range over the width, of each cell or of all."""
        return 1.0

    def selecting(self, weights: Weights, epsilon: float) -> float:
        """Part of the budget for selections, at a total loss of epsilon."""
        return 0.0 if self.selects == "nothing" else 0.5

    def score_sensitivity(self, weights: Weights) -> int:
        """Most that one user moves a score of a selection."""
        return 1

    def tune(
        self, weights: Weights, parameters: Parameters, epsilon: float, scale: Floats, part: float
    ) -> Parameters:
        """Parameters of the selection, once noise and the selection's part of epsilon are known."""
        return parameters

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval | None:
        """The range of every cell by private selections; None if there are none."""
        return None


@dataclass(frozen=True)
class LevyInterval(Range):
    """Means clipped to mu -+ 1.5 tau, mu a private middle of them (paper 002, III-D; errata 7, 8).

    tau = U sqrt(ln(2K/gamma)/(2 m)) with K means of m records each, which leave it with chance
    `gamma`.
    """

    gamma: float = 0.2
    selects = "per cell"
    rounds = 1
    names = ("bins", "radius")

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Number of bins, and 1.5 tau in ticks over 2^FINE, of each cell."""
        pairs = zip(weights.pieces.tolist(), own["cap"].tolist(), strict=True)
        tau = np.array([math.sqrt(math.log(2 * k / self.gamma) / (2 * m)) for k, m in pairs])
        return {
            "bins": np.clip(np.floor(1 / tau), 1, MOST_BINS).astype(np.int64),
            "radius": np.minimum(top, np.ceil(1.5 * tau * top)).astype(np.int64),
        }

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """A range is at least the radius."""
        return -(-top // int(parameters["radius"].min()))

    def score_sensitivity(self, weights: Weights) -> int:
        """Pieces that one user touches: 1, or 2 of arrays with wrap_around."""
        return weights.touched

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """The private middle of each cell's means, and 1.5 tau around it."""
        top = means.top
        middles = []
        for at, inside in enumerate(by_cell(means.group_cell, means.weights.n_cells)):
            bins = int(parameters["bins"][at])
            scores = selection.middle_scores(means.group_means[inside], bins, top)
            middles.append(centre_of(noise.select(scores, float(scale[at]), at), bins, top))
        middle = np.array(middles, dtype=np.int64)
        radius = parameters["radius"]
        return Interval(np.maximum(middle - radius, 0), np.minimum(middle + radius, top))


def centre_of(place: int, bins: int, top: int) -> int:
    """Returns the middle of a bin of [0, top]."""
    return (2 * place + 1) * top // (2 * bins)


@dataclass(frozen=True)
class QuantilePair(Range):
    """Means clipped to private quantiles of themselves (paper 002, section III-E).

    `quantiles` are `fixed`, 1/10 and 9/10, or `optimised`, ceil(2/epsilon) means from either end.
    """

    quantiles: str = "fixed"
    selects = "per cell"
    rounds = 2
    names = ("low_rank", "high_rank")

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Wanted ranks of each cell, in 1/UNIT of a mean."""
        pieces = weights.pieces
        if self.quantiles == "fixed":
            low = pieces * UNIT // 10
        else:
            out = np.minimum(np.ceil(2 / epsilon), pieces).astype(np.int64)
            low = np.minimum(out * UNIT, pieces * UNIT // 2)
        return {"low_rank": low, "high_rank": pieces * UNIT - low}

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Two candidates differ by at least one grid step."""
        return selection.CELLS

    def score_sensitivity(self, weights: Weights) -> int:
        """One mean moves a rank by UNIT; a user touches 1, or 2 of arrays with wrap_around."""
        return weights.touched * UNIT

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """Two private quantiles of each cell's means, in order and at least a candidate apart."""
        candidates = selection.grid(means.top)
        low = []
        high = []
        for at, inside in enumerate(by_cell(means.group_cell, means.weights.n_cells)):
            own = means.group_means[inside]
            one, other = sorted(
                noise.select(
                    selection.quantile_scores(own, int(parameters[rank][at]), candidates),
                    float(scale[at]),
                    2 * at + turn,
                )
                for turn, rank in enumerate(("low_rank", "high_rank"))
            )
            # A range needs a width: of two equal candidates the neighbours are taken.
            if one == other:
                one = max(one - 1, 0)
                other = min(other + 1, len(candidates) - 1)
            low.append(int(candidates[one]))
            high.append(int(candidates[other]))
        return Interval(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))


@dataclass(frozen=True)
class SumThreshold(Range):
    """Sums clipped to [0, T], T about the ceil(2/epsilon)-th largest (paper 001, section IV)."""

    selects = "per cell"
    rounds = 1
    names = ("rank", "most")

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Wanted rank in 1/UNIT of a user, and the most records of a user, of each cell."""
        users = weights.pieces
        beyond = np.minimum(np.ceil(2 / epsilon), users + 1).astype(np.int64)
        rank = np.maximum((users - beyond) * UNIT + UNIT // 2, 0)
        most = largest(weights.cell, weights.count, weights.n_cells)
        return {"rank": rank.astype(np.int64), "most": most}

    def widest(self, parameters: Parameters) -> Floats:
        """T is at most U m*."""
        return parameters["most"].astype(np.float64)

    def score_sensitivity(self, weights: Weights) -> int:
        """One user moves a rank by UNIT."""
        return UNIT

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """T of each cell."""
        size = means.weights.n_cells
        high = []
        for at, inside in enumerate(by_cell(means.weights.cell, size)):
            candidates = selection.grid(means.top)[1:] * int(parameters["most"][at])
            rank = int(parameters["rank"][at])
            scores = selection.quantile_scores(means.sums[inside], rank, candidates)
            high.append(int(candidates[noise.select(scores, float(scale[at]), at)]))
        return Interval(np.zeros(size, dtype=np.int64), np.array(high, dtype=np.int64))


@dataclass(frozen=True)
class OneInterval(Range):
    """One privately selected interval for all cells (docs/theory/cells.md#adaptive-mean).

    Candidates are all widths U 2^(-k/2) at steps of a quarter of their width, and score the weight
    of users inside, at most 1 a user, plus a reward for halvings of the width.
    """

    selects = "for all"
    rounds = 1
    names = ("reward",)

    def fits(self, parameters: Parameters) -> bool:
        """Rewards of narrower and narrower widths do not fall."""
        reward = parameters["reward"]
        sized = len(reward) % 2 == 1 and len(reward) <= 2 * MOST_HALVINGS + 1
        return sized and int(reward[0]) == 0 and bool((np.diff(reward) >= 0).all())

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """No reward yet: it follows from the noise."""
        return {"reward": np.zeros(1, dtype=np.int64)}

    def selecting(self, weights: Weights, epsilon: float) -> float:
        """sqrt(10/N) with N = epsilon times the weight of all users, at least what finds K."""
        weight = epsilon * float(_votes(weights).sum()) / USER
        halvings = _halvings(weight)
        if halvings == 0:
            return _LEAST
        return min(_MOST, max(_needed(weight, halvings), math.sqrt(10 / weight)))

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """The narrowest candidate, with a factor of 2 for its rounding to even numbers."""
        return 2 << (len(parameters["reward"]) // 2)

    def score_sensitivity(self, weights: Weights) -> int:
        """One user counts for at most USER, over all cells."""
        return USER

    def tune(
        self, weights: Weights, parameters: Parameters, epsilon: float, scale: Floats, part: float
    ) -> Parameters:
        """Reward of every narrower width, in 1/USER of a user (docs/theory/cells.md#adaptive-mean).

        Halvings earn what they save in noise, in all at most the weight that selection noise cannot
        hide.
        """
        everyone = float(_votes(weights).sum())
        weight = epsilon * everyone / USER
        halvings = _halvings(weight, part)
        noise = math.exp(float(np.log(scale).mean()))
        hidden = _needed(weight, halvings) * (1 - _REWARD) / part
        most = min(_MOST_REWARD, max(_REWARD, 1 - hidden))
        # Sure of its range, the first halvings may earn more than the later ones.
        sure = (most - _REWARD) / (_MOST_REWARD - _REWARD)
        falling = (1 - sure * (1 - 2**-0.5)) ** (np.arange(2 * halvings) / 2)
        earned = np.minimum(_PATIENCE * noise / 2, most * falling / max(falling.sum(), 1.0))
        reward = np.floor(everyone * np.append(0.0, np.cumsum(earned)))
        return parameters | {"reward": reward.astype(np.int64)}

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """The same range for every cell."""
        reward = parameters["reward"]
        size = means.weights.n_cells
        low, high, steps = selection.intervals(len(reward) // 2, means.top)
        scores = _votes_inside(means, low, high, steps) + reward[steps]
        where = noise.select(scores, float(scale[0]), 0)
        return Interval(np.full(size, low[where]), np.full(size, high[where]))


def _votes(weights: Weights) -> Ints:
    """How much each member counts in the score: its weight over the heaviest, at most 1 a user."""
    part = weights.weight / weights.heaviest[weights.cell]
    if weights.window is not None:
        part = weights.part / np.maximum(weights.largest, 2.0**-60)[weights.cell]
    of_user = np.bincount(weights.user, part)
    share = part / np.maximum(1.0, of_user[weights.user])
    # Rounded downwards with a margin: the sum over a user's cells stays at most USER.
    votes = np.floor(share * USER * (1 - 2.0**-40)).astype(np.int64)
    if int(add(weights.user, votes, len(of_user)).max()) > USER:
        raise AssertionError("a user has more than one vote")
    return votes


def _votes_inside(means: PrivateMeans, low: Ints, high: Ints, steps: Ints) -> Ints:
    """Votes of users inside each candidate; of one width, candidates come from left to right."""
    weights = means.weights
    votes = _votes(means.weights)
    if not weights.widened:
        order = np.argsort(means.means)
        value = means.means[order]
        total = np.append(0, np.cumsum(votes[order]))
        upto = total[np.searchsorted(value, high, side="right")]
        return np.asarray(upto - total[np.searchsorted(value, low, side="left")])
    inside = np.zeros(len(low), dtype=np.int64)
    heaviest = weights.heaviest[weights.cell]
    width = high - low
    # Of one width, a member is inside for the middles in an interval around its mean.
    for step in range(int(steps[-1]) + 1):
        these = np.flatnonzero(steps == step)
        middle = (low + high)[these] // 2
        half = width[these[0]] * heaviest // (2 * weights.weight)
        begin = np.searchsorted(middle, means.means - half, side="left")
        end = np.searchsorted(middle, means.means + half, side="right")
        change = add(begin, votes, len(these) + 1) - add(end, votes, len(these) + 1)
        inside[these] = np.cumsum(change)[:-1]
    return inside


def _needed(weight: float, halvings: int) -> float:
    """Part of the budget at which the best candidate stands out; infinite where nobody counts."""
    if weight == 0:
        return math.inf
    number = len(selection.intervals(halvings, 1 << 30)[0])
    return 2 * (math.log(number) + _MARGIN) / ((1 - _REWARD) * weight)


def _halvings(weight: float, most: float = _FIND) -> int:
    """The narrowest width that a part of the budget can find; 0 where no range can be found."""
    part = min(most, _FIND)
    allowed = [k for k in range(_LEAST_HALVINGS, MOST_HALVINGS + 1) if _needed(weight, k) <= part]
    return allowed[-1] if allowed else 0
