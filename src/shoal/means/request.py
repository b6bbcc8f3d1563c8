"""Defines the request of an unbiased mean, and the whole numbers of a draw."""

from contextlib import suppress
from fractions import Fraction
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, PlainSerializer, model_validator

from shoal import checks
from shoal.arrays import Ints
from shoal.documents.model import Model, checked
from shoal.errors import InputError
from shoal.means.users import UserWeights
from shoal.privacy.budget import check_epsilon
from shoal.theory.clipping import Moment, moments_of

METHODS = CLIPPED, SYMMETRIC = "clipped_mean", "symmetric_mean"
WEIGHTS = ("equal", "counts")
# Kinds of intervals.
INTERVALS = ("normal", "certified")
Interval = tuple[float, float]
# The largest end of an interval, and the largest bias.
_MOST = 2.0**300


def check_interval(interval: object) -> Interval:
    """Returns a public interval [a, b] of finite numbers with a <= b, and refuses any other."""
    # What is no pair cannot be unpacked.
    with suppress(TypeError, ValueError):
        low, high = interval if isinstance(interval, tuple | list) else ()
        if all(map(checks.is_number, (low, high))) and -_MOST <= low <= high <= _MOST:
            # Adding 0.0 turns minus zero into zero.
            return float(low) + 0.0, float(high) + 0.0
    raise InputError(
        "the interval for the mean is not usable",
        "give two numbers within +-2^300, the lower first: for example interval=(0, 100)",
    )


_Text = PlainSerializer(str, return_type=str)


class Request(Model):
    """The arguments of `shoal.unbiased.plan` without the counts; each is described there."""

    method: Annotated[str, checked(checks.choice, METHODS, "method")]
    moments: Annotated[tuple[Moment, ...], AfterValidator(moments_of)]
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
        """Refuses arguments that do not belong to the method, and missing ones."""
        clipped = self.method == CLIPPED
        # Each argument with its value, whether it is allowed here, and where it is allowed.
        for name, value, allowed, where in (
            ("delta", self.delta or None, not clipped, SYMMETRIC),
            ("interval", self.interval, clipped, CLIPPED),
            ("bias", self.bias, clipped, CLIPPED),
            ("cap", self.cap, self.weights == WEIGHTS[1], 'weights="counts"'),
        ):
            if value is not None and not allowed:
                raise InputError(
                    f"{name} does not apply here", f"leave it out, or give it with {where}"
                )
        if clipped and self.bias is None:
            raise InputError(
                "a clipped mean needs a bias budget",
                "give the largest bias you accept, such as bias=0.1, or use unbiased.recommend",
            )
        if clipped:
            check_interval(self.interval)
        elif not 0 < self.delta < 1:
            raise InputError(
                f"symmetric_mean does not work with delta {float(self.delta):g}: no estimator "
                "with pure or concentrated differential privacy is unbiased for Gaussians or any "
                "exponential family of unbounded parameters (paper 004, section 5)",
                "give a delta above 0 and below 1, for example delta=1e-6, or use clipped_mean "
                "with a bias budget",
            )
        return self

    def weights_of(self, counts: Ints) -> UserWeights:
        """Returns the users' weights, ascending, from their ascending counts."""
        most = 1 if self.weights == WEIGHTS[0] else self.cap or int(counts[-1])
        return UserWeights(np.minimum(counts, most))


class MeanDrawn(NamedTuple):
    """Whole numbers of one draw: noisy sum and squares in steps, and a guess of bin and offset.

    All of them are None if there is no estimate.
    """

    steps: int | None
    squares: int | None = None
    guess: tuple[int, int] | None = None
