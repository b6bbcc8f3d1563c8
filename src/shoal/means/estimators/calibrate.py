"""The symmetric mean of the least certificate: bins, split or reuse, losses and width."""

import math
from collections.abc import Iterable

from shoal.errors import InputError
from shoal.means.estimators.first_steps import First, SearchRequest, coarse_steps
from shoal.means.estimators.middle import lattice
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.symmetric import Symmetric
from shoal.theory import clipping

__all__ = ["SearchRequest", "best"]
# Half-widths beyond the guess that are tried, in deviations.
_ROUGH = tuple(2.0 ** (k / 2) for k in range(-4, 15))


def best(request: SearchRequest) -> Symmetric:
    """The parts whose certificate is least, over a grid of first steps and every width.

    First steps have bins or sliding windows of several sizes, a part of epsilon or of the users,
    and a middle step with a part of epsilon, or none: a much finer guess pays where noise matters.
    Each is judged with the best width of a grid, the best of them then gets the best width.

    Raises:
        InputError: epsilon or delta is too small, or there are too few users for any certificate.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.means.estimators.weights import Weights
        >>> moments = (clipping.Moment(2, 1), clipping.Moment(8, 1.8))
        >>> one, tiny = Fraction(1), Fraction(1, 10**6)
        >>> found = best(SearchRequest(Weights.equal(10**5), moments, one, tiny, None, 1e6))
        >>> found.reuse, round(found.rmse_bound * 10**2.5, 3)
        (True, 1.006)
    """
    size = clipping.deviation(request.moments)
    coarse = sorted(coarse_steps(request), key=lambda first: first.least)
    without, least = _least(coarse, size, math.inf)
    # What no width and no noise could save is left out before middle steps are made.
    refined = (x for first in coarse if first.setting.least < least for x in first.middles())
    found = _least(refined, size, least)[0] or without
    if found is None:
        raise InputError(
            "a symmetric mean that cannot be planned",
            "an epsilon and delta above 0 that fit the lattice, and at least two users",
            "ask for a larger epsilon or delta, for more users, or use another method",
        )
    return _built(request, found)


def _least(firsts: Iterable[First], size: float, least: float) -> tuple[First | None, float]:
    """The one of the least certificate below one that is known, if any, and the certificate."""
    found, at = None, len(_ROUGH) // 2
    for first in firsts:
        if first.least >= least:
            continue
        error, at = _downhill(first, size, at)
        if error < least:
            found, least = first, error
    return found, least


def _downhill(first: First, size: float, at: int) -> tuple[float, int]:
    """A least error among `_ROUGH` widths, walking from one that was good before."""
    error = first.error(size * _ROUGH[at])
    for step in (1, -1):
        while 0 <= at + step < len(_ROUGH):
            other = first.error(size * _ROUGH[at + step])
            if not other < error:
                break
            error, at = other, at + step
    return error, at


def _built(request: SearchRequest, found: First) -> Symmetric:
    """With the best width, on its lattice: half a width of 2^21 to 2^22 ticks."""
    size, setting, final = clipping.deviation(request.moments), found.setting, found.final
    width = setting.finest + clipping.least(found.error, 2.0**-6 * size, 2.0**12 * size)
    shift, half = lattice(setting.coarse.exponent, width)
    noise = NoisySum.fit(2 * half * final.largest, half * final.total, found.epsilon)
    return Symmetric(
        request.weights,
        request.moments,
        coarse=setting.coarse,
        reuse=setting.reuse,
        shift=shift,
        half=half,
        noise=noise,
        chance=found.chance,
        coarse_delta=found.coarse_delta,
        farthest=request.farthest,
        middle=setting.middle,
    )
