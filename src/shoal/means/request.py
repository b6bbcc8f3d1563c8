"""What is asked of an unbiased mean, and nothing else: checked once, before any work."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer, model_validator

from shoal import checks
from shoal.documents.model import Model, checked
from shoal.errors import InputError
from shoal.means.weights import Weights
from shoal.privacy.budget import check_epsilon
from shoal.theory.clipping import Moment

METHODS = CLIPPED, SYMMETRIC = "clipped_mean", "symmetric_mean"
WEIGHTS = ("equal", "counts")
# How intervals may be made.
INTERVALS = ("normal", "certified")
Interval = tuple[float, float]
_MOST = 2.0**300


def check_interval(interval: object) -> Interval:
    """A public interval [a, b] of finite numbers, a <= b."""
    with suppress(TypeError, ValueError):
        low, high = interval if isinstance(interval, tuple | list) else ()
        if all(map(checks.is_number, (low, high))) and -_MOST <= low <= high <= _MOST:
            return float(low) + 0.0, float(high) + 0.0
    raise InputError(
        "an interval for the mean that is not usable",
        "give two numbers within +-2^300, the lower first: for example interval=(0, 100)",
    )


_Text = PlainSerializer(str, return_type=str)
_Moments = Annotated[
    Any,
    BeforeValidator(lambda given: tuple(x if isinstance(x, Moment) else Moment(*x) for x in given)),
    PlainSerializer(lambda moments: [[each.order, each.size] for each in moments]),
]


class Request(Model):
    """The arguments of `shoal.unbiased.plan` but for the counts; see there for each."""

    method: Annotated[str, checked(checks.choice, METHODS, "method")]
    moments: _Moments
    epsilon: Annotated[Fraction, checked(check_epsilon), _Text]
    delta: Annotated[Fraction, checked(checks.amount, "delta"), _Text] = Fraction(0)
    interval: Annotated[Interval | None, checked(check_interval)] = None
    bias: Annotated[
        float | None, checked(checks.number, "bias", above=0, below=_MOST, example=0.1)
    ] = None
    weights: Annotated[str, checked(checks.choice, WEIGHTS, "weights")] = "equal"
    cap: Annotated[int | None, checked(checks.whole, "cap", least=1, example=10)] = None
    interval_by: Annotated[str | None, checked(checks.choice, INTERVALS, "interval_by")] = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuses what is missing, or does not go with the method."""
        if self.weights == WEIGHTS[0]:
            _only(self.cap, "cap", 'weights="counts"')
        if self.method == CLIPPED:
            _only(self.delta or None, "delta", "symmetric_mean")
            check_interval(self.interval)
            if self.bias is None:
                raise InputError(
                    "a clipped mean without a bias budget",
                    "give the most bias that is accepted, in the value's unit, bias=0.1 "
                    "(--bias 0.1), or ask recommend (`shoal unbiased plan`)",
                )
            return self
        _only(self.interval, "interval", "clipped_mean")
        _only(self.bias, "bias", "clipped_mean")
        if self.delta == 0:
            raise _pure()
        if self.delta >= 1:
            raise InputError("a delta of 1 or more", "give one below 1, for example delta=1e-6")
        return self

    def weights_of(self, counts: NDArray[np.int64]) -> Weights:
        """The users' weights, from their counts, ascending."""
        if self.weights == WEIGHTS[0]:
            return Weights.equal(len(counts))
        return Weights(np.minimum(counts, self.cap or int(counts[-1])))


def _pure() -> InputError:
    return InputError(
        "symmetric_mean with delta 0: no (epsilon, 0)-private estimator is unbiased for Gaussians, "
        "or any exponential family of unbounded parameters, and no concentrated-private one (paper "
        "004, section 5)",
        "give a delta above 0, for example delta=1e-6, or use clipped_mean with a bias budget",
    )


def _only(value: object, name: str, what: str) -> None:
    if value is not None:
        raise InputError(f"{name} where it means nothing", f"{name} with {what}", "leave it out")
