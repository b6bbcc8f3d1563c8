"""Parameters of a unit-level mechanism, chosen from public facts by the variance they predict."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.data.outcome_space import FEWEST_LEVELS, MOST_LEVELS, Space, check_space
from shoal.errors import InputError
from shoal.trials.expected import Expected, check_expected, kinds_of
from shoal.trials.parameter_search import Found, Search, is_uniform
from shoal.trials.parameters import Parameters
from shoal.trials.predicted import Scene, represent

Floats = NDArray[np.float64]
_LEVELS = (2, 3, 4, 5, 6, 8, 11, 16, 24, 32, 64, 128, 256)
_FEWEST_ARMS = 2
# More units than any memory holds.
_MOST = 2.0**48


@dataclass(frozen=True)
class Choice:
    """The parameters of a mechanism, with the standard errors that they are expected to give.

    Attributes:
        parameters: The mechanism's whole numbers.
        reason: Why these, in one sentence with the predicted figures.
        standard_error: Of the effect, in the outcome's unit, least and most over what may be
            expected; with several arms, the root mean square over their effects.
        uniform: The same, in the outcome's unit, for a uniform prior on all levels; infinite where
            it keeps no outcome.
        ratio: Largest ratio of the predicted variance to that of a uniform prior on all levels.
    """

    parameters: Parameters
    reason: str
    standard_error: tuple[float, float]
    uniform: tuple[float, float]
    ratio: float


def choose(
    sizes: NDArray[np.int64],
    space: Space,
    *,
    epsilon: Fraction,
    delta: Fraction,
    pooled: bool,
    levels: int | str = "auto",
    floor: float | None = None,
    sigma: float | None = None,
    expected: Expected | None = None,
) -> Choice:
    """Levels, floor and noise with the least predicted variance, at most epsilon and delta.

    A uniform prior on few or all levels is compared with priors from noisy histograms, at equal
    loss. The variance of an effect is, over assignment and mechanism,

        sum over groups of (n_c/n)^2/n_{c,a} [V + lambda/(1-lambda) mean (y - q1)^2
            + lambda/(1-lambda)^2 Var(q) + rounding],

    with V, y and the histogram behind the prior q as expected, and q1 and Var(q) its mean and
    variance. What is chosen is at most 2 % worse than a uniform prior on all levels under
    everything that may be expected. Of several uniform priors it is the one whose largest ratio to
    the best of them is least. A prior from histograms is chosen only where it is more than 2 %
    better than the uniform ones, on as many levels and on the chosen ones, under all of it.

    With delta = 0 that is never so: on the same levels and at the same loss no prior adds less than
    the uniform one, whatever the outcomes are. Let E = e^epsilon - 1 and the floor be g/K; then
    lambda/(1-lambda) = K/(g E), a prior q is at least g parts uniform, and the two terms are
    K/(g E) mean (y - Y)^2 + (K/(g E))^2 Var(q), with Y from q: not less than g/g of the first and
    g/g^2 of the second for the uniform one, g = 1. With a delta a histogram of very many units that
    are alike can win (least found: 0.0003); a delta far below one over the units changes nothing.

    Source: docs/theory/trials.md#choice-of-parameters.

    Args:
        sizes: Units of each group, clusters x arms, control first.
        space: Levels of the outcome.
        epsilon: The loss of one outcome.
        delta: The delta of (epsilon, delta)-DP.
        pooled: Whether all clusters share the histogram of an arm (cluster-free).
        levels: How many levels to use, `all`, or `auto` to have it chosen.
        floor: gamma, the least share of a level in a prior; None to have it chosen.
        sigma: Noise of the histogram in counts, infinite for a uniform prior; None to choose.
            A floor or noise that is given is used, even where a uniform prior is better.
        expected: What is publicly expected of outcomes; None for a family of expectations.

    Returns:
        Parameters of at most epsilon and delta, the same ones in every run.

    Raises:
        InputError: Sizes, levels, floor or noise outside their ranges, or an epsilon at which no
            outcome is kept.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.data.outcome_space import Space
        >>> found = choose(
        ...     np.array([[500, 500]]), Space.counts(0, 10),
        ...     epsilon=Fraction(1), delta=Fraction(0), pooled=False,
        ... )
        >>> found.parameters.levels, found.parameters.weight, found.ratio < 0.5
        (3, 0, True)
    """
    sizes, space, expected = checked_sizes(sizes), check_space(space), check_expected(expected)
    if floor is not None and is_uniform(sigma):
        raise InputError(
            "a floor without a histogram", "a floor or infinite noise", "leave one of them out"
        )
    groups = represent(sizes, pooled=pooled)
    scene = Scene(groups, space, kinds_of(expected, space))
    options = _options(space, levels)
    if floor is not None:
        # A given floor is possible on few enough levels; on none of them it is refused below.
        options = [kept for kept in options if floor * len(kept) <= 1] or options
    return _choice(Search(scene, options, epsilon, delta).found(floor, sigma), scene)


def checked_sizes(sizes: object) -> NDArray[np.int64]:
    """Units of each group as whole numbers, clusters x arms.

    Raises:
        InputError: Another shape, fewer than two arms, or groups without units.
    """
    found = checks.array(sizes)
    if found is None or not _is_table(found) or float(found.astype(float).sum()) > _MOST:
        raise InputError(
            "sizes of another kind",
            "whole numbers above 0, clusters x arms, control first, at least two arms",
            "give for example [[500, 500], [80, 120]]",
        )
    return found.astype(np.int64)


def _is_table(found: NDArray[Any]) -> bool:
    table = found.ndim == _FEWEST_ARMS and found.shape[1] >= _FEWEST_ARMS and len(found) > 0
    return table and found.dtype.kind in "iu" and int(found.min()) >= 1


def _options(space: Space, levels: int | str) -> list[tuple[int, ...]]:
    check_levels(levels)
    if levels == "auto":
        size = space.size
        numbers = sorted({*(n for n in _LEVELS if n < size), size})
        return [space.coarse(number) for number in numbers]
    if levels == "all":
        return [space.coarse(space.size)]
    return [space.coarse(int(levels))]


def check_levels(levels: object) -> int | str:
    """How many levels to use: a whole number, `all` or `auto`.

    Raises:
        InputError: Something else.

    Example:
        >>> check_levels("all"), check_levels(np.int8(3))
        ('all', 3)
    """
    if isinstance(levels, str):
        return checks.choice(levels, ("all", "auto"), "levels")
    return checks.whole(levels, "levels", least=FEWEST_LEVELS, most=MOST_LEVELS)


def _choice(found: Found, scene: Scene) -> Choice:
    parameters, variance, full = found.parameters, found.variance, found.uniform
    errors, plain = np.sqrt(variance), np.sqrt(full)
    ratio = float((variance / full).max())
    size, number = scene.space.size, len(variance)
    prior = "a uniform prior"
    if parameters.weight:
        prior = "priors from noisy histograms" + (" of the arms" if scene.groups.pooled else "")
    everything = parameters.levels == size
    part = f"all {size}" if everything else f"{parameters.levels} of {size}"
    why = "as given" if found.given else "the least predicted variance at this loss"
    assumed = "as expected" if number == 1 else f"under {number} assumptions"
    most = "" if number == 1 else "at most "
    compared = f", {most}{ratio:.3g} times the variance of a uniform prior on all of them"
    if (everything and not parameters.weight) or not np.isfinite(full).all():
        compared = ""
    return Choice(
        parameters,
        f"{prior} on {part} levels, {why}: a standard error of {_range(errors)} {assumed}"
        + compared,
        (float(errors.min()), float(errors.max())),
        (float(plain.min()), float(plain.max())),
        ratio,
    )


def _range(errors: Floats) -> str:
    low, high = f"{errors.min():.3g}", f"{errors.max():.3g}"
    return low if low == high else f"{low} to {high}"
