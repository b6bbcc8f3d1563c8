"""What the second opinion on an unbiased mean reads from a manifest: strictly checked public facts.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.verification.strict import integers, rational, real, text, whole

CLIPPED, SAMPLED = "clipped_mean", "sampled_mean"
RESIDUAL, SYMMETRIC = "clipped_plus_residual", "symmetric_mean"
PUBLISHING = (SAMPLED, RESIDUAL)

_GRID = ("tick_exponent", "low", "high", "per_unit", "lattice_bits")
_STEPS = (
    *("coarse_users", "coarse_exponent", "coarse_per_user", "coarse_bits", "coarse_threshold"),
    *("coarse_windows", "coarse_delta"),
    *("middle_shift", "middle_half", "middle_per_unit", "middle_bits"),
    *("reuse", "shift", "half", "per_unit", "lattice_bits"),
)
_CHANCE = "sampling_words"
_COARSE_DELTA = "coarse_delta"
# Whole numbers that say what a method does; texts are those of large ones, and of a fraction.
PARAMETERS: dict[str, set[str]] = {
    CLIPPED: {*_GRID},
    SAMPLED: {_CHANCE},
    RESIDUAL: {*_GRID, _CHANCE},
    SYMMETRIC: {*_STEPS, _CHANCE},
}
# What says how squares beside a sum are released, where intervals are normal ones.
_SQUARES = {"square_step", "square_bits"}
NORMAL, _INTERVAL_BY = "normal", "interval_by"
_CLAIMS = ("bias_bound", "standard_error", "rmse_bound", "noise_scale")
_WORDS = re.compile(r"[1-9][0-9]{0,19}")
_MOST_WEIGHT, _FARTHEST = 2**30, 2.0**300
_MOST_ORDER, _LEAST_ORDER, _MOST_MOMENTS = 1000, 2, 20
_USUAL = 2.0**20


def signed(value: object) -> Fraction:
    """The same, below 0 with a minus."""
    found = text(value)
    if found.startswith("-"):
        number = rational(found[1:])
        if number == 0:
            raise ValueError
        return -number
    return rational(found)


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts of an unbiased mean.

    Attributes:
        method: One of the four.
        rising: Whether counts are ascending, which then says nothing of who they are.
        several: Whether a user has more than one record.
        weight: Whole-number weight of each user, in the order of the counts.
        moments: Pairs (order, size): E|X - mu|^order <= size^order.
        epsilon: Largest that was asked for.
        delta: Largest that was asked for.
        interval: Of the mean; None for the symmetric mean.
        bias: Budget of the clipped mean, else None.
        reuse: What was asked for of the symmetric mean, if anything.
        farthest: Largest absolute mean for the certificate of the symmetric mean.
        normal: Whether squares are released beside the sum, for normal intervals.
        parameters: Whole numbers by name.
        coarse_delta: Delta that is charged for a coarse step; 0 without one.
        claims: Bounds in the value's unit, by name.
    """

    method: str
    rising: bool
    several: bool
    weight: NDArray[np.int64]
    moments: tuple[tuple[float, float], ...]
    epsilon: Fraction
    delta: Fraction
    interval: tuple[float, float] | None
    bias: float | None
    reuse: bool | None
    farthest: float
    normal: bool
    parameters: dict[str, int]
    coarse_delta: Fraction
    claims: dict[str, float]

    @classmethod
    def of(cls, plan: documents.Document) -> Facts:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        method, request = plan["method"], plan["request"]
        moments = _moments(request["moments"])
        counts = _counts(plan["counts"])
        normal = _normal(request, method)
        parameters, coarse_delta = _parameters(plan["parameters"], method, normal=normal)
        return cls(
            method=method,
            rising=bool((np.diff(counts) >= 0).all()),
            several=int(counts.max()) > 1,
            weight=_weights(counts, request),
            moments=moments,
            epsilon=rational(request["epsilon"]),
            delta=rational(request["delta"]),
            interval=_interval(request["interval"], method),
            bias=_bias(request["bias"], method),
            reuse=_reuse(request["reuse"], method),
            farthest=_farthest(request["farthest"], method, moments),
            normal=normal,
            parameters=parameters,
            coarse_delta=coarse_delta,
            claims={name: real(plan["claims"][name]) for name in _CLAIMS},
        )

    @property
    def deviation(self) -> float:
        """Largest standard deviation: the least size, for E Y^2 <= (E Y^p)^(2/p)."""
        return min(size for _, size in self.moments)

    @property
    def chance(self) -> Fraction:
        """With which a user is sampled; 0 where nobody is."""
        return Fraction(self.parameters.get(_CHANCE, 0), 2**64)

    @property
    def final(self) -> NDArray[np.int64]:
        """Weights of the users whose values are averaged."""
        split = self.method == SYMMETRIC and self.parameters["reuse"] == 0
        return self.weight[self.parameters["coarse_users"] :] if split else self.weight

    @property
    def squares(self) -> Fraction:
        """Their sum w^2 / W^2; no user has no weight, so W > 0."""
        final = self.final.astype(np.int64)
        return Fraction(int((final * final).sum()), int(final.sum()) ** 2)


def _counts(packed: documents.Document) -> NDArray[np.int64]:
    counts = integers(packed, "counts")
    if not 0 < len(counts) <= _MOST_WEIGHT or int(counts.min()) < 1:
        raise ValueError
    return counts


def _weights(counts: NDArray[np.int64], request: documents.Document) -> NDArray[np.int64]:
    cap, kind = request["cap"], request["weights"]
    if kind == "equal" and cap is None:
        return np.ones(len(counts), dtype=np.int64)
    if kind != "counts" or (cap is not None and whole(cap) < 1):
        raise ValueError
    most = _MOST_WEIGHT + 1 if cap is None else min(cap, _MOST_WEIGHT + 1)
    weight = np.minimum(counts, most)
    # At most 2^30 users of at most 2^30 + 1: the sum fits, but its squares need a sum of 2^30.
    if int(weight.sum()) > _MOST_WEIGHT:
        raise ValueError
    return weight


def _moments(pairs: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(pairs, list) or not 0 < len(pairs) <= _MOST_MOMENTS:
        raise ValueError
    found = tuple((real(order), real(size)) for order, size in pairs)
    if not all(
        _LEAST_ORDER <= order <= _MOST_ORDER and 1 / _FARTHEST <= size <= _FARTHEST
        for order, size in found
    ):
        raise ValueError
    return found


def _interval(ends: Any, method: str) -> tuple[float, float] | None:
    if (ends is None) != (method == SYMMETRIC):
        raise ValueError
    if ends is None:
        return None
    low, high = map(real, ends)
    if not -_FARTHEST <= low <= high <= _FARTHEST:
        raise ValueError
    return low, high


def _bias(bias: object, method: str) -> float | None:
    if (bias is None) != (method != CLIPPED):
        raise ValueError
    if bias is not None and not 0 < real(bias) < _FARTHEST:
        raise ValueError
    return None if bias is None else real(bias)


def _reuse(reuse: object, method: str) -> bool | None:
    if reuse is None or (isinstance(reuse, bool) and method == SYMMETRIC):
        return reuse
    raise ValueError


def _farthest(farthest: object, method: str, moments: tuple[tuple[float, float], ...]) -> float:
    if farthest is None:
        return _USUAL * min(size for _, size in moments)
    if method != SYMMETRIC or not 0 <= real(farthest) <= _FARTHEST:
        raise ValueError
    return real(farthest)


def _normal(request: documents.Document, method: str) -> bool:
    """Whether intervals are normal: certified ones are not mentioned."""
    if _INTERVAL_BY not in request:
        return False
    if request[_INTERVAL_BY] != NORMAL or method not in (CLIPPED, SYMMETRIC):
        raise ValueError
    return True


def _parameters(
    found: documents.Document, method: str, *, normal: bool
) -> tuple[dict[str, int], Fraction]:
    if found.keys() != PARAMETERS[method] | (_SQUARES if normal else set()):
        raise ValueError
    coarse_delta = rational(found[_COARSE_DELTA]) if _COARSE_DELTA in found else Fraction(0)
    numbers = {name: whole(found[name]) for name in found.keys() - {_COARSE_DELTA, _CHANCE}}
    if _CHANCE in found:
        if not _WORDS.fullmatch(text(found[_CHANCE])):
            raise ValueError
        numbers[_CHANCE] = int(found[_CHANCE])
    return numbers, coarse_delta
