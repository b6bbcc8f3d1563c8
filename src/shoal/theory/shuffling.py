"""Computes privacy amplification by shuffling and its lower bound (paper 004, section 2.2)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from shoal import checks
from shoal.errors import InputError
from shoal.theory import paths
from shoal.theory.problem import Amount, Moment, Setting, downwards

# A factor above the rounding of a few elementary functions.
_OUTWARD = 1 + 2.0**-40
# With a larger epsilon shuffling would need e^30 blocks to help.
_MOST_EPSILON = 30


@dataclass(frozen=True)
class Shuffled:
    """The privacy loss of all blocks of users together, after shuffling.

    Source: docs/theory/means.md#shuffling.

    Attributes:
        epsilon: The epsilon of all blocks, at most the epsilon of one block, rounded upwards.
        delta: The delta of all blocks, rounded upwards.

    Guarantees: G-LOSS.
    """

    epsilon: float
    delta: float


def least_added(blocks: int, epsilon: float) -> float:
    """Returns the least `added` of `shuffled`: 2 exp(-blocks / (16 e^epsilon)), rounded upwards."""
    return 2 * math.exp(-blocks / 16 * math.exp(-epsilon)) * _OUTWARD


def shuffled(blocks: int, epsilon: Amount, delta: Amount, added: float) -> Shuffled:
    """Privacy of m steps, each (epsilon, delta)-private for its block, after shuffling the users.

    The j-th users of all blocks are permuted at random, for every j. All steps together have
        epsilon_1 = ln(1 + (e^eps - 1)/(e^eps + 1) (8 sqrt(e^eps ln(4/delta_1)/m) + 8 e^eps/m)),
        delta' = delta_1 + (e^epsilon_1 + 1)(1 + e^-eps/2) m delta,
    for any delta_1 from 2 exp(-m/(16 e^eps)) to 1 (Feldman, McMillan, Talwar 2021, Theorem 3.8;
    paper 004, Theorem 2.2.2). Where that is no gain, they have (epsilon, delta), as with a fixed
    order of users. In a neighbour one user's value is replaced. Steps may see earlier outcomes.

    Args:
        blocks: The number m of steps, from 1.
        epsilon: Privacy loss of one step, above 0.
        delta: The delta of one step, from 0 to below 1.
        added: The delta_1 of the formula.

    Returns:
        The privacy loss of all steps together, rounded upwards.

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
    smallest = least_added(checked.n, loss)
    delta_1 = checks.number(added, "added", least=0, most=1)
    if delta_1 < smallest:
        raise InputError(
            f"added={delta_1} is below {smallest:.3g}, the least for {checked.n} blocks and "
            "epsilon",
            "use more blocks, a smaller epsilon, or a larger added",
        )
    return Shuffled(*amplified(checked.n, loss, chance, delta_1))


def amplified(blocks: int, epsilon: float, delta: float, added: float) -> tuple[float, float]:
    """Returns epsilon and delta after shuffling, as in `shuffled`, for numbers in range."""
    inverse = math.exp(-epsilon)
    # With a larger epsilon there is no gain, and the exponential might overflow.
    if epsilon > _MOST_EPSILON + math.log(blocks):
        return epsilon, delta
    per_block = math.exp(epsilon) / blocks
    gain = 8 * math.sqrt(per_block * math.log(4 / added)) + 8 * per_block
    epsilon_all = math.log1p(-math.expm1(-epsilon) / (1 + inverse) * gain) * _OUTWARD
    if epsilon_all >= epsilon:
        return epsilon, delta
    deltas = (math.exp(epsilon_all) + 1) * (1 + inverse / 2) * blocks * delta
    delta_all = (added + deltas) * _OUTWARD
    if delta_all >= 1:
        return epsilon, delta
    return epsilon_all, delta_all


@dataclass(frozen=True)
class ShuffledBound:
    """A lower bound on the root mean squared error, proved by shuffling.

    Source: docs/theory/means.md#shuffling; paper 004, Theorem 2.2.3.

    Attributes:
        rmse: Lower bound on the root mean squared error, in the value's unit.
        blocks: The number of copies of the estimator that the proof averages; 1 if shuffling gains
            nothing.
        whole: Privacy loss of the shuffled average.

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
    no distribution. Let L(N, epsilon, delta) be a bound that holds whatever the bias. Then
        RMSE^2 >= m L(m n, epsilon_1, delta')^2 - (m - 1) bias^2,
    and the best m and delta_1 of a grid are taken (paper 004, Theorem 2.2.3, which leaves constants
    open).

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
            epsilon_all, delta_all = amplified(blocks, setting.epsilon, setting.delta, added)
            if epsilon_all >= setting.epsilon:
                continue
            many = replace(setting, n=setting.n * blocks, epsilon=epsilon_all, delta=delta_all)
            gained = blocks * _whatever_the_bias(many) ** 2
            lost = (blocks - 1) * setting.bias**2
            # `gained` is the difference plus `lost`, and rounding is far below 2^-40 of each. This
            # takes off the rounding of `lost`; `downwards` takes off that of the difference.
            square = gained - lost - 2.0**-40 * blocks * setting.bias**2
            if square > best.rmse**2:
                best = ShuffledBound(math.sqrt(square), blocks, Shuffled(epsilon_all, delta_all))
    return replace(best, rmse=downwards(best.rmse) * setting.size)


def _whatever_the_bias(setting: Setting) -> float:
    """Returns a lower bound on the RMSE of a private estimator, whatever its bias is."""
    private = paths.path_bounds(setting, points=48).always
    return max(private, paths.normal_bound(setting))


def _block_numbers(setting: Setting) -> list[int]:
    """Returns numbers of blocks, evenly over decades, up to where the bias must win."""
    if setting.epsilon == 0 or setting.epsilon > _MOST_EPSILON:
        return []
    # A bound never exceeds half the width, so m (L^2 - bias^2) is used up at 1e3 / bias^4 blocks.
    # The bias is limited so that its fourth power neither overflows nor vanishes.
    largest = min(1e15, 1e3 / min(max(setting.bias, 1e-60), 1e60) ** 4)
    return [int(number) for number in np.unique(np.geomspace(2, max(largest, 2), 40).round())]


def _added(setting: Setting, blocks: int) -> list[float]:
    """Returns values of delta_1 to try: up to about epsilon_1/(m n), where they hardly hurt.

    That is about epsilon/(n m^1.5) for m blocks.
    """
    smallest = least_added(blocks, setting.epsilon)
    # With so few blocks every delta_1 that is allowed is above 1.
    if smallest > 1:
        return []
    largest = setting.epsilon / (setting.n * blocks**1.5)
    return sorted({max(min(1.0, largest * part), smallest) for part in (1.0, 0.1, 0.01, 0.001)})
