"""The first steps that a symmetric mean may have: bins, windows, shares, middle steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from shoal.errors import InputError
from shoal.means.estimators.coarse import MOST_EXPONENT, Coarse
from shoal.means.estimators.failure_probability import Setting
from shoal.means.estimators.grid import TICK_BITS
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.sampled import Chance
from shoal.means.estimators.weights import Weights
from shoal.theory import clipping
from shoal.theory.clipping import Moments

_SCALES = range(-1, 7)
_WINDOWS = (1, 2)
# Parts of epsilon, or of the users, for the first step: 2^-7 to 1/2, two to an octave; more of the
# users where they hardly suffice.
_SHARES = tuple(round(2.0 ** (16 - k / 2)) for k in range(2, 15))
_MANY = tuple(2**16 * k // 8 for k in (5, 6, 7))
_WHOLE = 2**16
# Parts for the middle step: of what the coarse step leaves, or of the first users' epsilon.
_PARTS = tuple(Fraction(k, 64) for k in (1, 2, 4, 8, 16))
_HALVES = tuple(Fraction(k, 8) for k in (0, 1, 2, 4))
# Deviations beyond the first guess that a middle step keeps; a logarithm of how rare is rare.
_BEYOND = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 16.0, 32.0)
_USUAL = 20.0


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """A symmetric mean that is to be planned.

    Attributes:
        weights: Of the users.
        moments: Public bounds.
        epsilon: Largest loss.
        delta: Largest delta; with `reuse` half of it is for each step.
        reuse: All users in all steps, or a split; None for the smaller error.
        farthest: The certificate holds for means up to this, in absolute value.
    """

    weights: Weights
    moments: Moments
    epsilon: Fraction
    delta: Fraction
    reuse: bool | None
    farthest: float


@dataclass(frozen=True, eq=False)
class First:
    """The first steps, and what they leave.

    Attributes:
        setting: What the certificate depends on.
        final: The weights of the last step.
        epsilon: Of the last step; with users reused, of a middle step too.
        spare: Of a middle step on users of their own; None with users reused.
        chance: With which values are sampled if the first step fails.
        coarse_delta: The delta of the first step.
    """

    setting: Setting
    final: Weights
    epsilon: Fraction
    spare: Fraction | None
    chance: Chance
    coarse_delta: Fraction

    @property
    def least(self) -> float:
        """Below the certificate for every width."""
        return self.setting.least + 2 * (self._unit * self.setting.finest) ** 2

    def error(self, beyond: float) -> float:
        """The certificate for a half-width so far beyond the guess, with noise as on the reals."""
        c = self.setting.finest + beyond
        tick = math.ldexp(c, -TICK_BITS + 1)
        return self.setting.variance(c, 2 * (self._unit * c) ** 2, tick)

    def middles(self) -> Iterator[First]:
        """The same with middle steps; widths are those that are roughly best."""
        for part in _PARTS if self.spare is None else (Fraction(1),):
            epsilon = part * (self.epsilon if self.spare is None else self.spare)
            try:
                middle = _middle(self.setting, epsilon)
            except InputError:
                continue
            left = self.epsilon - (middle.loss if self.spare is None else 0)
            yield replace(self, setting=replace(self.setting, middle=middle), epsilon=left)

    @cached_property
    def _unit(self) -> float:
        return 2 * float(self.final.share) / float(self.epsilon)


def coarse_steps(request: SearchRequest) -> Iterator[First]:
    """All without a middle step; with a split, some of them leave a part of epsilon for one."""
    if request.reuse is not False:
        for share in _SHARES:
            yield from _reused(request, share)
    if request.reuse is not True:
        for share in (*_SHARES, *_MANY):
            yield from _split(request, share)


def _reused(request: SearchRequest, share: int) -> Iterator[First]:
    part, delta = request.epsilon * share / _WHOLE, request.delta / 2
    for coarse in _fitting(request, request.weights.users, part, delta):
        left = request.epsilon - coarse.loss
        yield _first(request, coarse, request.weights, left, None, delta)


def _split(request: SearchRequest, share: int) -> Iterator[First]:
    users = request.weights.users * share // _WHOLE
    if not 0 < users < request.weights.users:
        return
    final = request.weights.after(users)
    for part in _HALVES:
        for coarse in _fitting(request, users, request.epsilon * (1 - part), request.delta):
            spare = request.epsilon - coarse.loss if part else Fraction(0)
            yield _first(request, coarse, final, request.epsilon, spare, request.delta)


def _fitting(
    request: SearchRequest, users: int, epsilon: Fraction, delta: Fraction
) -> Iterator[Coarse]:
    """Coarse steps of all sizes, but for those that nearly always fail."""
    size = math.frexp(clipping.deviation(request.moments))[1]
    for scale, windows in itertools.product(_SCALES, _WINDOWS):
        if abs(size + scale) > MOST_EXPONENT:
            continue
        try:
            coarse = Coarse.fit(users, size + scale, epsilon, delta, windows)
        except InputError:
            continue
        if coarse.threshold <= coarse.per_user * coarse.together(users):
            yield coarse


def _first(
    request: SearchRequest,
    coarse: Coarse,
    final: Weights,
    epsilon: Fraction,
    spare: Fraction | None,
    delta: Fraction,
) -> First:
    chance, squares = Chance.at_most(delta), float(final.squares)
    setting = Setting(
        coarse, request.moments, squares, spare is None, float(chance.exact), request.farthest
    )
    return First(setting, final, epsilon, spare, chance, delta)


def _middle(setting: Setting, epsilon: Fraction) -> Middle:
    """One whose guess is off the least, roughly: by noise, and by far users."""
    moments, n, off = setting.moments, setting.coarse.users, setting.first
    sd = clipping.deviation(moments)
    if epsilon <= 0:
        raise InputError("no epsilon for a middle step", "some", "leave the step out")
    unit = 2 * _USUAL / (n * float(epsilon))

    def far(t: float) -> float:
        return unit * (off + t) + 2 * off * clipping.tail(moments, t) + _USUAL * t / n

    t = min((sd * beyond for beyond in _BEYOND), key=far)
    return Middle.fit(n, setting.coarse.exponent, off + t, epsilon)
