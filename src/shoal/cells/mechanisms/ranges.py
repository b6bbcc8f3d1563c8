"""Selects the range to which values are clipped: the public bounds, or a private range.

A selection `per cell` costs every user in the cell; one `for all` cells costs every user once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal.arrays import Floats, Ints, add, by_cell, largest
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, ends
from shoal.cells.mechanisms.weights import Limit, Parameters, Weights
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.noise import Noise
from shoal.privacy.permute_and_flip import UNIT

# One user counts for this much in a score that all cells share.
USER = 1 << 16
# The most candidates of a private middle.
MOST_BINS = 1 << 21
# The largest rank: scores in units of 1/USER of a user then fit 64 bits.
MOST_USERS = 1 << 40
# The narrowest candidates of one interval are the width divided by 2^10.
MOST_HALVINGS = 10
# The reward of the narrowest candidate with large selection noise, as a part of all users' weight.
_REWARD = 0.35
# The same reward with small selection noise.
_MOST_REWARD = 0.8
# A halving earns this many noise scales at most (docs/theory/cells.md#adaptive-mean).
_PATIENCE = 8.0
# The largest part of the budget for selections.
_MOST = 0.5
# The part of the budget with which a width must be found.
_FIND = 0.28
# The part of the budget for selections where no range can be found.
_LEAST = 1e-6
# The fewest halvings of the width that are worth a selection.
_LEAST_HALVINGS = 2
# The margin, in logarithms, by which the best candidate stands out from all others together.
_MARGIN = 4.5


def range_bias(weights: Weights, chosen: Interval, top: int) -> Floats:
    """Returns the most that clipping to a range adds to each cell's bias, as a part of the width.

    For means it is sum_l w_l max(low_l, top - high_l)/top, less the bias of windows without a
    range. For sums that are clipped to T it is (1/n) sum_l max(0, m_l - T/top).
    """
    cell = weights.cell
    if weights.sums:
        cut_off = np.maximum(weights.count - chosen.high[cell] / top, 0)
    else:
        low, high = ends(weights, cell, chosen)
        farthest_outside = np.maximum(np.maximum(low, top - high), 0)
        cut_off = weights.weight * (farthest_outside / top)
    bias = np.bincount(cell, cut_off, minlength=weights.n_cells) / weights.total
    return np.asarray(bias - weights.missing / 2)


@dataclass(frozen=True)
class Range:
    """The public range: values are clipped to the bounds, and nothing is selected.

    Class attributes: `selects` says what selections are for; `rounds` is the number of selections
    for each cell, or for all; `limits` are those of its parameters, by name; `of_vectors` says
    whether all cells of a user are clipped together.
    """

    selects: ClassVar[Literal["nothing", "per cell", "for all"]] = "nothing"
    rounds: ClassVar[int] = 0
    limits: ClassVar[Mapping[str, Limit]] = {}
    of_vectors: ClassVar[bool] = False

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Returns public whole numbers from weights, their parameters, and each cell's loss."""
        return {}

    def fits(self, parameters: Parameters) -> bool:
        """Returns whether parameters, each within its limits, go together."""
        return True

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Returns how many noise scales the private selections in so many cells have."""
        return {"nothing": 0, "per cell": cells, "for all": 1}[self.selects]

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Returns the width divided by the shortest selected range, rounded upwards."""
        return 1

    def widest(self, parameters: Parameters) -> Floats | float:
        """Returns the longest range, of each cell or of all, divided by the width."""
        return 1.0

    def selecting(self, weights: Weights, epsilon: float) -> float:
        """Returns the part of the budget for selections, at a total loss of epsilon."""
        return 0.0 if self.selects == "nothing" else 0.5

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns the most that one user moves a score of a selection."""
        return 1

    def tune(
        self, weights: Weights, parameters: Parameters, epsilon: float, scale: Floats, part: float
    ) -> Parameters:
        """Returns the parameters, fitted to noise scales and the selection's part of epsilon."""
        return parameters

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval | None:
        """Selects the range of every cell privately; None if nothing is selected."""
        return None


@dataclass(frozen=True)
class LevyInterval(Range):
    """Means are clipped to mu -+ 1.5 tau around a private middle mu of them.

    tau = U sqrt(ln(2K/gamma)/(2 m)) for K means of m records each: with probability `gamma` one of
    them is further than tau from its expectation (paper 002, III-D; errata 7, 8).
    """

    gamma: float = 0.2
    selects = "per cell"
    rounds = 1
    limits: ClassVar[Mapping[str, Limit]] = {
        "bins": Limit("cells", 1, MOST_BINS),
        "radius": Limit("cells", 1, "width"),
    }

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Returns each cell's number of bins, and 1.5 tau in units of 2^-FINE ticks."""
        pairs = zip(weights.pieces.tolist(), own["cap"].tolist(), strict=True)
        tau = np.array([math.sqrt(math.log(2 * k / self.gamma) / (2 * m)) for k, m in pairs])
        return {
            "bins": np.clip(np.floor(1 / tau), 1, MOST_BINS).astype(np.int64),
            "radius": np.minimum(top, np.ceil(1.5 * tau * top)).astype(np.int64),
        }

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Returns the width divided by the least radius: a range is at least a radius long."""
        return -(-top // int(parameters["radius"].min()))

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns the pieces that one user touches: 1, or 2 for arrays with wrap_around."""
        return weights.touched

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """Selects a middle of each cell's means, and returns 1.5 tau on both sides of it."""
        top = means.top
        middles = []
        for at, inside in enumerate(by_cell(means.pieces.cell, means.weights.n_cells)):
            bins = int(parameters["bins"][at])
            scores = selection.middle_scores(means.pieces.value[inside], bins, top)
            place = noise.select(scores, float(scale[at]), at)
            middles.append(centre_of(place, bins, top))
        middle = np.array(middles, dtype=np.int64)
        radius = parameters["radius"]
        return Interval(np.maximum(middle - radius, 0), np.minimum(middle + radius, top))


def centre_of(place: int, bins: int, top: int) -> int:
    """Returns the middle of a bin of [0, top]."""
    return (2 * place + 1) * top // (2 * bins)


@dataclass(frozen=True)
class QuantilePair(Range):
    """Means are clipped to private quantiles of themselves (paper 002, section III-E).

    `quantiles` are `fixed`, at 1/10 and 9/10, or `optimised`, at ceil(2/epsilon) means from either
    end.
    """

    quantiles: str = "fixed"
    selects = "per cell"
    rounds = 2
    limits: ClassVar[Mapping[str, Limit]] = dict.fromkeys(
        ("low_rank", "high_rank"), Limit("cells", 0, MOST_USERS)
    )

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Returns the low and the high rank of each cell, in units of 1/UNIT of a mean."""
        pieces = weights.pieces
        if self.quantiles == "fixed":
            low = pieces * UNIT // 10
        else:
            outside = np.minimum(np.ceil(2 / epsilon), pieces).astype(np.int64)
            # The low rank is not above the middle one, so that it is below the high rank.
            low = np.minimum(outside * UNIT, pieces * UNIT // 2)
        return {"low_rank": low, "high_rank": pieces * UNIT - low}

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Returns the number of grid steps: two candidates differ by at least one of them."""
        return selection.CELLS

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns UNIT for each mean that a user touches: 1, or 2 for arrays with wrap_around."""
        return weights.touched * UNIT

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """Selects two quantiles of each cell's means, in order and at least a candidate apart."""
        candidates = selection.grid(means.top)
        low = []
        high = []
        for at, inside in enumerate(by_cell(means.pieces.cell, means.weights.n_cells)):
            places = []
            for turn, rank in enumerate(("low_rank", "high_rank")):
                wanted = int(parameters[rank][at])
                scores = selection.quantile_scores(means.pieces.value[inside], wanted, candidates)
                places.append(noise.select(scores, float(scale[at]), 2 * at + turn))
            first, last = sorted(places)
            # A range needs a width: instead of two equal candidates, their neighbours are taken.
            if first == last:
                first = max(first - 1, 0)
                last = min(last + 1, len(candidates) - 1)
            low.append(int(candidates[first]))
            high.append(int(candidates[last]))
        return Interval(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))


@dataclass(frozen=True)
class SumThreshold(Range):
    """Sums are clipped to [0, T], with T near the ceil(2/epsilon)-th largest (paper 001, IV)."""

    selects = "per cell"
    rounds = 1
    limits: ClassVar[Mapping[str, Limit]] = {
        "rank": Limit("cells", 0, MOST_USERS),
        "most": Limit("cells", 1, "records"),
    }

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Returns each cell's wanted rank in units of 1/UNIT of a user, and its largest count."""
        users = weights.pieces
        # In a cell with fewer than 2/epsilon users the rank is 0.
        beyond = np.minimum(np.ceil(2 / epsilon), users + 1).astype(np.int64)
        # Half of a user is added, so that the rank lies between two users.
        rank = np.maximum((users - beyond) * UNIT + UNIT // 2, 0)
        most = largest(weights.cell, weights.count, weights.n_cells)
        return {"rank": rank.astype(np.int64), "most": most}

    def widest(self, parameters: Parameters) -> Floats:
        """Returns the largest counts: a sum is at most the width times the largest count."""
        return parameters["most"].astype(np.float64)

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns UNIT, by which one user moves a rank."""
        return UNIT

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """Selects the threshold T of each cell."""
        size = means.weights.n_cells
        high = []
        for at, inside in enumerate(by_cell(means.pieces.cell, size)):
            # A threshold of 0 would have no noise.
            candidates = selection.grid(means.top)[1:] * int(parameters["most"][at])
            rank = int(parameters["rank"][at])
            scores = selection.quantile_scores(means.pieces.value[inside], rank, candidates)
            place = noise.select(scores, float(scale[at]), at)
            high.append(int(candidates[place]))
        return Interval(np.zeros(size, dtype=np.int64), np.array(high, dtype=np.int64))


@dataclass(frozen=True)
class OneInterval(Range):
    """One privately selected interval for all cells (docs/theory/cells.md#adaptive-mean).

    Candidates have the width of the bounds times 2^(-k/2), at steps of a quarter of their width.
    The score of a candidate is the weight of the users inside, at most 1 for each user, plus a
    reward for its halvings of the width.
    """

    selects = "for all"
    rounds = 1
    limits: ClassVar[Mapping[str, Limit]] = {"reward": Limit(None, 0, 1 << 60)}

    def fits(self, parameters: Parameters) -> bool:
        """Returns whether rewards start at 0 and never fall as widths become narrower."""
        reward = parameters["reward"]
        # One reward for the width itself, and two for each halving.
        sized = len(reward) % 2 == 1 and len(reward) <= 2 * MOST_HALVINGS + 1
        return sized and int(reward[0]) == 0 and bool((np.diff(reward) >= 0).all())

    def parameters(
        self, weights: Weights, own: Parameters, epsilon: Floats, top: int
    ) -> Parameters:
        """Returns a reward of 0: `tune` finds the rewards once the noise is known."""
        return {"reward": np.zeros(1, dtype=np.int64)}

    def selecting(self, weights: Weights, epsilon: float) -> float:
        """Returns the part sqrt(10/weight), or the part that finds the narrowest width if larger.

        `weight` is epsilon times the weight of all users.
        """
        weight = epsilon * float(_votes(weights).sum()) / USER
        halvings = _halvings(weight)
        if halvings == 0:
            return _LEAST
        return min(_MOST, max(_needed(weight, halvings), math.sqrt(10 / weight)))

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Returns the width divided by the narrowest candidate, times 2 for its rounding."""
        return 2 << (len(parameters["reward"]) // 2)

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns USER, the most that one user counts for in all cells together."""
        return USER

    def tune(
        self, weights: Weights, parameters: Parameters, epsilon: float, scale: Floats, part: float
    ) -> Parameters:
        """Returns the reward of every narrower width, in units of 1/USER of a user.

        A halving earns what it saves in noise. All together earn at most the weight that selection
        noise cannot hide (docs/theory/cells.md#adaptive-mean).
        """
        all_votes = float(_votes(weights).sum())
        weight = epsilon * all_votes / USER
        halvings = _halvings(weight, part)
        # The geometric mean of the cells' noise scales.
        noise = math.exp(float(np.log(scale).mean()))
        # The part of all votes that selection noise hides.
        hidden = _needed(weight, halvings) * (1 - _REWARD) / part
        largest_reward = min(_MOST_REWARD, max(_REWARD, 1 - hidden))
        # The less selection noise hides, the more the first halvings earn than the later ones.
        # `sure` is 0 with large selection noise, and 1 with small noise.
        sure = (largest_reward - _REWARD) / (_MOST_REWARD - _REWARD)
        # Candidates narrow by half a halving at a time.
        falling = (1 - sure * (1 - 2**-0.5)) ** (np.arange(2 * halvings) / 2)
        allowed = largest_reward * falling / max(falling.sum(), 1.0)
        earned = np.minimum(_PATIENCE * noise / 2, allowed)
        reward = np.floor(all_votes * np.append(0.0, np.cumsum(earned)))
        return parameters | {"reward": reward.astype(np.int64)}

    def select(
        self, means: PrivateMeans, parameters: Parameters, scale: Floats, noise: Noise
    ) -> Interval:
        """Selects one range, the same for every cell."""
        reward = parameters["reward"]
        size = means.weights.n_cells
        low, high, steps = selection.intervals(len(reward) // 2, means.top)
        scores = _votes_inside(means, low, high, steps) + reward[steps]
        place = noise.select(scores, float(scale[0]), 0)
        return Interval(np.full(size, low[place]), np.full(size, high[place]))


def _votes(weights: Weights) -> Ints:
    """Returns each member's vote: its weight divided by its cell's heaviest, at most 1 for a user.

    Votes are in units of 1/USER of a user.
    """
    of_heaviest = weights.weight / weights.heaviest[weights.cell]
    if weights.window is not None:
        # In a cell where nobody counts, all votes are 0.
        of_heaviest = weights.part / np.maximum(weights.largest, 2.0**-60)[weights.cell]
    of_user = np.bincount(weights.user, of_heaviest)
    vote = of_heaviest / np.maximum(1.0, of_user[weights.user])
    # Rounded downwards with a margin: the sum over a user's cells stays at most USER.
    votes = np.floor(vote * USER * (1 - 2.0**-40)).astype(np.int64)
    if int(add(weights.user, votes, len(of_user)).max()) > USER:
        raise AssertionError("a user has more than one vote")
    return votes


def _votes_inside(means: PrivateMeans, low: Ints, high: Ints, steps: Ints) -> Ints:
    """Returns the votes inside each candidate; candidates of one width come from left to right.

    `steps` has the number of narrowings of each candidate's width.
    """
    weights = means.weights
    votes = _votes(means.weights)
    if not weights.widened:
        order = np.argsort(means.means)
        rising = means.means[order]
        votes_before = np.append(0, np.cumsum(votes[order]))
        up_to_high = votes_before[np.searchsorted(rising, high, side="right")]
        below_low = votes_before[np.searchsorted(rising, low, side="left")]
        return np.asarray(up_to_high - below_low)
    inside = np.zeros(len(low), dtype=np.int64)
    heaviest = weights.heaviest[weights.cell]
    width = high - low
    # A member is inside the candidates of one width whose middles are near enough to its mean.
    for step in range(int(steps[-1]) + 1):
        of_width = np.flatnonzero(steps == step)
        middle = (low + high)[of_width] // 2
        half = width[of_width[0]] * heaviest // (2 * weights.weight)
        # Each vote is added at the first of these candidates, and taken off after the last one.
        begin = np.searchsorted(middle, means.means - half, side="left")
        end = np.searchsorted(middle, means.means + half, side="right")
        change = add(begin, votes, len(of_width) + 1) - add(end, votes, len(of_width) + 1)
        inside[of_width] = np.cumsum(change)[:-1]
    return inside


def _needed(weight: float, halvings: int) -> float:
    """Returns the part of the budget at which the best candidate stands out, or infinity."""
    if weight == 0:
        return math.inf
    # The number of candidates is the same for every large enough width.
    low, _, _ = selection.intervals(halvings, 1 << 30)
    return 2 * (math.log(len(low)) + _MARGIN) / ((1 - _REWARD) * weight)


def _halvings(weight: float, most: float = _FIND) -> int:
    """Returns the most halvings of the width that a part of the budget finds, or 0."""
    part = min(most, _FIND)
    allowed = [k for k in range(_LEAST_HALVINGS, MOST_HALVINGS + 1) if _needed(weight, k) <= part]
    return max(allowed, default=0)
