"""The symmetric mean of the least certificate: windows, shares of users and of epsilon, widths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from shoal.errors import InputError
from shoal.means.certificate import Certificate
from shoal.means.guess import Coarse, Middle, lattice
from shoal.means.noisy_sum import NoisySum
from shoal.means.plan_file import Request, SymmetricChoice
from shoal.means.users import Weights
from shoal.theory import clipping
from shoal.theory.clipping import Moments

# Coarse steps that may fail more often are none.
MOST_FAILURE = 1e-6
# Bins of 2^k deviations, roughly.
_SCALES = range(-1, 7)
# Parts of the users for the first steps, in 2^-16: 2^-7 to 1/2, two to an octave, and more.
_SHARES = (
    *(round(2.0 ** (16 - k / 2)) for k in range(2, 15)),
    *(2**16 * k // 8 for k in (5, 6, 7)),
)
# Parts of their epsilon for the middle step.
_MIDDLES = tuple(Fraction(k, 16) for k in (0, 1, 2, 3, 4, 6, 8, 10))
# Deviations beyond the first guess that a middle step keeps; a logarithm of how rare is rare.
_BEYOND = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 16.0, 32.0)
_USUAL = 20.0
# Half-widths beyond the guess that are tried, in deviations.
_ROUGH = tuple(2.0 ** (k / 2) for k in range(-4, 15))


def symmetric_choice(request: Request, weights: Weights) -> SymmetricChoice:
    """The parts whose certificate is least, over a grid of first steps and every width.

    Each is judged with the best width of a grid, the best of them then gets the best width.
    """
    size, found, least = clipping.deviation(request.moments), None, math.inf
    for each in sorted(_first_steps(request, weights), key=lambda each: each.least):
        if each.least >= least:
            break
        error = min(each.error(size * beyond) for beyond in _ROUGH)
        if error < least:
            found, least = each, error
    if found is None:
        raise InputError(
            "a symmetric mean that cannot be planned: its coarse step would fail too often",
            "ask for a larger epsilon or delta, for more users, or use clipped_mean",
        )
    width = found.finest + clipping.least(found.error, 2.0**-6 * size, 2.0**12 * size)
    shift, half = lattice(found.coarse.exponent, width)
    last = Weights(weights.number[found.coarse.users :])
    noise = NoisySum.fit(2 * half * last.largest, half * last.total, request.epsilon)
    steps = {"coarse": found.coarse, "middle": found.middle, "noise": noise}
    return SymmetricChoice.of(**steps, shift=shift, half=half)


def _first_steps(request: Request, weights: Weights) -> Iterator[Certificate]:
    """Windows of all sizes, but for those that fail too often; with a middle step, or without."""
    moments, epsilon, delta = request.moments, request.epsilon, request.delta
    size = math.frexp(clipping.deviation(moments))[1]
    for share, part in itertools.product(_SHARES, _MIDDLES):
        users = len(weights.number) * share // 2**16
        with suppress(InputError):
            one = Coarse.fit(users, 0, epsilon * (1 - part), delta)
            last = Weights(weights.number[users:])
            unit = 2 * float(last.share / epsilon)
            for scale in _SCALES:
                coarse = one.model_copy(update={"exponent": size + scale})
                found = Certificate(coarse, None, moments, float(last.squares), unit)
                if found.failure > MOST_FAILURE:
                    continue
                if part:
                    found = replace(found, middle=_middle(coarse, moments, epsilon - coarse.loss))
                yield found


def _middle(coarse: Coarse, moments: Moments, epsilon: Fraction) -> Middle:
    """One whose guess is off the least, roughly: by noise, and by far users."""
    n, off, sd = coarse.users, coarse.off, clipping.deviation(moments)
    unit = 2 * _USUAL / (n * float(epsilon))

    def far(t: float) -> float:
        return unit * (off + t) + 2 * off * clipping.tail(moments, t) + _USUAL * t / n

    t = min((sd * beyond for beyond in _BEYOND), key=far)
    return Middle.fit(n, coarse.exponent, off + t, epsilon)
