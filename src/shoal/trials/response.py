"""Randomised responses: a prior for each group, an outcome kept or replaced, a debiased number."""

import numpy as np
from numpy.typing import NDArray

from shoal.trials.parameters import BITS, ONE, Parameters

_LOW = np.uint64(ONE - 1)
_SHIFT = np.uint64(BITS)


def tabulate(
    codes: NDArray[np.int64], group: NDArray[np.int64], groups: int, levels: int
) -> NDArray[np.int64]:
    """How many units of each group are on each level. Private.

    Example:
        >>> tabulate(np.array([0, 1, 1]), np.array([0, 0, 1]), 2, 2).tolist()
        [[1, 1], [0, 1]]
    """
    return np.bincount(group * levels + codes, minlength=groups * levels).reshape(groups, levels)


def prior_of(
    noisy: NDArray[np.int64], sizes: NDArray[np.int64], parameters: Parameters
) -> NDArray[np.int64]:
    """The prior of each group from its noisy histogram, in whole numbers of 2^-32.

    Shares are clamped to [gamma, 1] and moved together until they sum to 1: s above 1 takes from
    each share in proportion to its distance from gamma, s below 1 gives in proportion to its
    distance from 1 (paper 003, Algorithm 2). Only public numbers go in.

    Args:
        noisy: Steps, groups x levels; ignored where the parameters have no histogram.
        sizes: Units of each group.
        parameters: The mechanism's.

    Returns:
        Whole numbers, groups x levels: each at least `parameters.floor`, each row summing to 2^32.

    Example:
        >>> from shoal.trials.parameters import Parameters
        >>> found = Parameters((0, 1), floor=ONE // 4, replaced=ONE // 2, weight=2**18)
        >>> (prior_of(np.array([[2**20, 0]]), np.array([4]), found) / ONE).tolist()
        [[0.75, 0.25]]
    """
    floor = float(parameters.floor)
    if parameters.weight == 0:
        share = np.full((len(sizes), parameters.levels), ONE / parameters.levels)
        return _whole(share, parameters)
    whole = noisy / (parameters.weight * sizes[:, None].astype(np.float64)) * ONE
    share = np.clip(whole, floor, float(ONE))
    over = ONE - share.sum(axis=1, keepdims=True)
    capacity = np.where(over < 0, share - floor, ONE - share)
    total = capacity.sum(axis=1, keepdims=True)
    moved = share + np.divide(capacity, total, out=np.zeros_like(capacity), where=total > 0) * over
    return _whole(moved, parameters)


def respond(
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    prior: NDArray[np.int64],
    parameters: Parameters,
    words: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Keep each outcome with probability 1 - lambda, else draw from its group's prior.

    The high half of a word decides which, the low half draws: both exact, of 2^-32. Every unit is
    treated alike, whatever is decided.

    Args:
        codes: Level of each unit. Private.
        group: Group of each unit.
        prior: Whole numbers, groups x levels.
        parameters: The mechanism's.
        words: One fair word for each unit.

    Returns:
        A level for each unit: private no more.
    """
    groups, levels = prior.shape
    # Rows of cumulated priors behind each other are one rising sequence: one search for all units.
    ends = np.cumsum(prior, axis=1) + (np.arange(groups) << BITS)[:, None]
    place = (words & _LOW).astype(np.int64) + (group << BITS)
    drawn = np.searchsorted(ends.ravel(), place, side="right") - group * levels
    replaced = (words >> _SHIFT) < np.uint64(parameters.replaced)
    return np.where(replaced, drawn, codes)


def debiased(
    levels: NDArray[np.float64], prior: NDArray[np.int64], parameters: Parameters
) -> NDArray[np.float64]:
    """An unbiased outcome for each response: omega(y) = (y - lambda sum y q(y)) / (1 - lambda).

    It is the row of the inverse of Q = (1 - lambda) I + lambda q 1' times the levels
    (docs/theory/trials.md#debiased-responses), so its mean over the responses of a unit is that
    unit's outcome.

    Args:
        levels: The K levels in use, in the outcome's unit.
        prior: Whole numbers, groups x K.
        parameters: The mechanism's.

    Returns:
        Outcome's unit, groups x K.

    Example:
        >>> from shoal.trials.parameters import Parameters
        >>> found = Parameters((0, 1), floor=ONE // 2, replaced=ONE // 2)
        >>> debiased(np.array([0.0, 1.0]), np.array([[ONE // 2, ONE // 2]]), found).tolist()
        [[-0.5, 1.5]]
    """
    mean = prior @ levels / ONE
    return np.asarray((levels - parameters.lam * mean[:, None]) / (1 - parameters.lam))


def _whole(share: NDArray[np.float64], parameters: Parameters) -> NDArray[np.int64]:
    """Whole numbers that sum to 2^32, none below the floor: excess is taken where there is most."""
    found = np.maximum(np.floor(share), parameters.floor).astype(np.int64)
    missing = ONE - found.sum(axis=1)
    rows = np.arange(len(found))
    # One level of each row can always take it: the largest has at least 1/K, its floor is below.
    largest = found.argmax(axis=1)
    levels = found.shape[1]
    # A row needs at most K turns; rows and noise are public here, so their number may be seen.
    for _ in range(levels):
        if not missing.any():
            break
        found[rows, largest] = np.maximum(found[rows, largest] + missing, parameters.floor)
        missing = ONE - found.sum(axis=1)
        largest = found.argmax(axis=1)
    return found
