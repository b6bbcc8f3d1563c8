"""The symmetric mean of the least certificate: windows, shares of users and of epsilon, widths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from shoal.errors import InputError
from shoal.means.certificate import Certificate
from shoal.means.guess import Coarse, Middle, lattice
from shoal.means.noisy_sum import TICK_BITS, NoisySum
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


@dataclass(frozen=True, eq=False)
class _FirstSteps:
    """The first steps, and the weights and the epsilon of the last."""

    certificate: Certificate
    last: Weights
    epsilon: Fraction

    @property
    def least(self) -> float:
        """Below the certificate for every width."""
        return self.certificate.least + 2 * (self._unit * self.certificate.finest) ** 2

    def error(self, beyond: float) -> float:
        """The certificate for a half-width so far beyond the guess, with noise as on the reals."""
        c = self.certificate.finest + beyond
        tick = math.ldexp(c, -TICK_BITS + 1)
        return self.certificate.variance(c, 2 * (self._unit * c) ** 2, tick)

    @property
    def _unit(self) -> float:
        return 2 * float(self.last.share) / float(self.epsilon)


def symmetric_choice(request: Request, weights: Weights) -> SymmetricChoice:
    """The parts whose certificate is least, over a grid of first steps and every width.

    Each is judged with the best width of a grid, the best of them then gets the best width.
    """
    moments: Moments = request.moments
    size, found, least = clipping.deviation(moments), None, math.inf
    every = _first_steps(weights, moments, request.epsilon, request.delta)
    for first in sorted(every, key=lambda first: first.least):
        if first.least >= least:
            break
        error = min(first.error(size * beyond) for beyond in _ROUGH)
        if error < least:
            found, least = first, error
    if found is None:
        raise InputError(
            "a symmetric mean that cannot be planned: its coarse step would fail too often",
            "ask for a larger epsilon or delta, for more users, or use clipped_mean",
        )
    return _built(moments, found)


def _built(moments: Moments, found: _FirstSteps) -> SymmetricChoice:
    """With the best width, on its lattice: half a width of 2^21 to 2^22 ticks."""
    size, certificate, last = clipping.deviation(moments), found.certificate, found.last
    width = certificate.finest + clipping.least(found.error, 2.0**-6 * size, 2.0**12 * size)
    shift, half = lattice(certificate.coarse.exponent, width)
    return SymmetricChoice.of(
        coarse=certificate.coarse,
        middle=certificate.middle,
        shift=shift,
        half=half,
        noise=NoisySum.fit(2 * half * last.largest, half * last.total, found.epsilon),
    )


def _first_steps(
    weights: Weights, moments: Moments, epsilon: Fraction, delta: Fraction
) -> Iterator[_FirstSteps]:
    """Windows of all sizes, but for those that fail too often; with a middle step, or without."""
    size = math.frexp(clipping.deviation(moments))[1]
    for share in _SHARES:
        users = len(weights.number) * share // 2**16
        if users == 0:
            continue
        last = Weights(weights.number[users:])
        for part in _MIDDLES:
            with suppress(InputError):
                one = Coarse.fit(users, 0, epsilon * (1 - part), delta)
                for scale in _SCALES:
                    coarse = one.model_copy(update={"exponent": size + scale})
                    certificate = Certificate(coarse, None, moments, float(last.squares))
                    if certificate.failure > MOST_FAILURE:
                        continue
                    if part:
                        middle = _middle(coarse, moments, epsilon - coarse.loss)
                        certificate = replace(certificate, middle=middle)
                    yield _FirstSteps(certificate, last, epsilon)


def _middle(coarse: Coarse, moments: Moments, epsilon: Fraction) -> Middle:
    """One whose guess is off the least, roughly: by noise, and by far users."""
    n, off, sd = coarse.users, coarse.off, clipping.deviation(moments)
    unit = 2 * _USUAL / (n * float(epsilon))

    def far(t: float) -> float:
        return unit * (off + t) + 2 * off * clipping.tail(moments, t) + _USUAL * t / n

    t = min((sd * beyond for beyond in _BEYOND), key=far)
    return Middle.fit(n, coarse.exponent, off + t, epsilon)
