"""Privacy amplification by shuffling, and the lower bound it gives: paper 004, section 2.2."""

import math
from dataclasses import dataclass, replace

import numpy as np

from shoal import checks
from shoal.errors import InputError
from shoal.theory import paths
from shoal.theory.problem import Amount, Moment, Setting, downwards

# Above the rounding of a few elementary functions.
_OUTWARD = 1 + 2.0**-40
# No shuffling helps beyond: e^30 blocks would be needed.
_MOST_EPSILON = 30


@dataclass(frozen=True)
class Shuffled:
    """The privacy loss of blocks of users together, after shuffling.

    Source: docs/theory/means.md#shuffling.

    Attributes:
        epsilon: At most that of each block, rounded upwards.
        delta: The probability bound, rounded upwards.

    Guarantees: G-LOSS.
    """

    epsilon: float
    delta: float


def least_added(blocks: int, epsilon: float) -> float:
    """Least delta_1 of the theorem: 2 exp(-m / (16 e^epsilon)), rounded upwards."""
    return 2 * math.exp(-blocks / 16 * math.exp(-epsilon)) * _OUTWARD


def shuffled(blocks: int, epsilon: Amount, delta: Amount, added: float) -> Shuffled:
    """Privacy of m steps, each (epsilon, delta)-private for its block, after shuffling the users.

    The j-th users of all blocks are permuted at random, for every j. The whole is private with
        epsilon_1 = ln(1 + (e^eps - 1)/(e^eps + 1) (8 sqrt(e^eps ln(4/delta_1)/m) + 8 e^eps/m)),
        delta' = delta_1 + (e^epsilon_1 + 1)(1 + e^-eps/2) m delta,
    for any delta_1 from 2 exp(-m/(16 e^eps)) to 1 (Feldman, McMillan, Talwar 2021, Theorem 3.8;
    paper 004, Theorem 2.2.2). Where that is no gain, (epsilon, delta) itself, which a fixed order
    of users has already. Neighbours: one user's value replaced. Steps may see earlier outcomes.

    Args:
        blocks: m, from 1.
        epsilon: Privacy loss of one step, above 0.
        delta: Of one step, from 0 to below 1.
        added: delta_1.

    Returns:
        The privacy of the whole, rounded upwards.

    Raises:
        InputError: A number is outside its range: `added` too small for so few blocks.

    Guarantees: G-LOSS.

    Example:
        >>> round(shuffled(100_000, 1.0, 0, 1e-8).epsilon, 4)
        0.0824
    """
    checked = Setting.of(blocks, epsilon, delta, 0.0, (2, 1.0))
    loss = checked.epsilon
    chance = checked.delta
    if loss == 0:
        raise InputError("epsilon is 0, at which nothing is lost", "give an epsilon above 0")
    least = least_added(checked.n, loss)
    share = checks.number(added, "added", least=0, most=1)
    if share < least:
        raise InputError(
            f"added={share} is below {least:.3g}, the least for {checked.n} blocks and epsilon",
            "use more blocks, a smaller epsilon, or a larger added",
        )
    total, chance_of_all = amplified(checked.n, loss, chance, share)
    return Shuffled(total, chance_of_all)


def amplified(blocks: int, epsilon: float, delta: float, added: float) -> tuple[float, float]:
    """Privacy after shuffling, as in `shuffled`, for numbers that are in range."""
    ratio = math.exp(-epsilon)
    # Beyond this there is no gain, and the exponential might overflow.
    if epsilon > _MOST_EPSILON + math.log(blocks):
        return epsilon, delta
    over = math.exp(epsilon) / blocks
    gain = 8 * math.sqrt(over * math.log(4 / added)) + 8 * over
    total = math.log1p(-math.expm1(-epsilon) / (1 + ratio) * gain) * _OUTWARD
    if total >= epsilon:
        return epsilon, delta
    rest = (math.exp(total) + 1) * (1 + ratio / 2) * blocks * delta
    chance = (added + rest) * _OUTWARD
    return (total, chance) if chance < 1 else (epsilon, delta)


@dataclass(frozen=True)
class ShuffledBound:
    """A lower bound on the root mean squared error, proved by shuffling.

    Source: docs/theory/means.md#shuffling; paper 004, Theorem 2.2.3.

    Attributes:
        rmse: Lower bound on the root mean squared error, in the value's unit.
        blocks: How many copies of the estimator the proof averages; 1 if shuffling gains nothing.
        whole: Privacy of the shuffled average.

    Guarantees: G-BOUND.
    """

    rmse: float
    blocks: int
    whole: Shuffled


def shuffled_trilemma(
    n: int,
    epsilon: Amount,
    delta: Amount,
    bias: float,
    moment: Moment,
    *,
    width: float | None = None,
) -> ShuffledBound:
    """A lower bound on the RMSE by shuffling: weaker than `trilemma`, by another proof.

    The average of m copies on m n users has a squared error of at most
    RMSE^2/m + (1 - 1/m) bias^2, and is (epsilon_1, delta')-private after shuffling, which changes
    no distribution. With L(N, epsilon, delta) a bound that holds whatever the bias,
        RMSE^2 >= m L(m n, epsilon_1, delta')^2 - (m - 1) bias^2,
    the best over m and delta_1 on a grid (paper 004, Theorem 2.2.3, which leaves constants open).

    Args: as of `trilemma`; at an epsilon of 0 nothing is shuffled.

    Returns:
        The bound, in the value's unit, and how it was found.

    Raises:
        InputError: A number is outside its range.

    Guarantees: G-BOUND.

    Example:
        >>> found = shuffled_trilemma(1000, 0.1, 0, 1e-4, (2, 1.0))
        >>> found.blocks > 1, found.rmse > 0.2
        (True, True)
    """
    setting = Setting.of(n, epsilon, delta, bias, moment, width)
    start = _whatever_the_bias(setting)
    best = ShuffledBound(start, 1, Shuffled(setting.epsilon, setting.delta))
    for blocks in _block_numbers(setting):
        for added in _added(setting, blocks):
            whole = amplified(blocks, setting.epsilon, setting.delta, added)
            if whole[0] >= setting.epsilon:
                continue
            many = replace(setting, n=setting.n * blocks, epsilon=whole[0], delta=whole[1])
            square = blocks * _whatever_the_bias(many) ** 2 - (blocks - 1) * setting.bias**2
            # The difference may cancel: its rounding is relative to the first of the two.
            square -= 2.0**-40 * blocks * setting.bias**2
            if square > best.rmse**2:
                best = ShuffledBound(math.sqrt(square), blocks, Shuffled(*whole))
    return replace(best, rmse=downwards(best.rmse) * setting.size)


def _whatever_the_bias(setting: Setting) -> float:
    private = paths.path_bounds(setting, points=48).always
    return max(private, paths.normal_bound(setting))


def _block_numbers(setting: Setting) -> list[int]:
    """Whole numbers spread evenly over decades, up to where the bias must win."""
    if setting.epsilon == 0 or setting.epsilon > _MOST_EPSILON:
        return []
    # A bound never exceeds half the width, so m (L^2 - bias^2) is used up by then.
    # A bias that is large enough for 1e3 / bias^4 to vanish is as good as a larger one, and one
    # whose fourth power vanishes as good as none.
    most = min(1e15, 1e3 / min(max(setting.bias, 1e-60), 1e60) ** 4)
    return [int(number) for number in np.unique(np.geomspace(2, max(most, 2), 40).round())]


def _added(setting: Setting, blocks: int) -> list[float]:
    """Values of delta_1 below epsilon_1/(m n), about epsilon/(n m^1.5), where they do not hurt."""
    least = least_added(blocks, setting.epsilon)
    scale = setting.epsilon / (setting.n * blocks**1.5)
    aims = [min(1.0, scale * part) for part in (1.0, 0.1, 0.01, 0.001)]
    return sorted({max(aim, least) for aim in aims if max(aim, least) <= 1})
