"""What is asked of an unbiased mean, checked, and the estimator that answers it."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.means.estimators.base import Estimator
from shoal.means.estimators.calibrate import SearchRequest, best
from shoal.means.estimators.clipped import Clipped, check_interval
from shoal.means.estimators.normal import CERTIFIED, INTERVALS, NORMAL
from shoal.means.estimators.residual import Residual
from shoal.means.estimators.sampled import Chance, Sampled
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.estimators.weights import MOST_WEIGHT, Weights
from shoal.privacy.budget import Budget, check_epsilon
from shoal.theory import clipping

METHODS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (Clipped, Sampled, Residual, Symmetric)
}
PUBLISHING = (Sampled.name, Residual.name)
WEIGHTS = ("equal", "counts")
_FARTHEST = 2.0**20
_MOST_FARTHEST = 2.0**300


@dataclass(frozen=True, eq=False)
class Request:
    """Public facts and what was asked for, checked.

    Attributes:
        method: One of `METHODS`.
        counts: Records of each user, ascending.
        moments: Public bounds on central moments of a user's value.
        budget: Largest epsilon and delta.
        interval: Public interval that holds the mean; None for `symmetric_mean`.
        bias: Budget of `clipped_mean`, else None.
        weights: `equal` or `counts`.
        cap: Largest weight with `counts`, else None.
        reuse: Of `symmetric_mean`: whether all users are in both steps; None for the best.
        farthest: Of `symmetric_mean`: its certificate holds for means up to this; else None.
        interval_by: One of `INTERVALS`.
    """

    method: str
    counts: NDArray[np.int64]
    moments: clipping.Moments
    budget: Budget
    interval: tuple[float, float] | None = None
    bias: float | None = None
    weights: str = "equal"
    cap: int | None = None
    reuse: bool | None = None
    farthest: float | None = None
    interval_by: str = CERTIFIED

    def __post_init__(self) -> None:
        if self.interval is not None:
            object.__setattr__(self, "interval", check_interval(self.interval))

    def check(self) -> None:
        """Refuse parts that are missing, unusable, or not for this method.

        Raises:
            InputError: There is one.
        """
        _check_losses(self.method, self.budget)
        for name, value, only in (
            ("bias", self.bias, Clipped.name),
            ("reuse", self.reuse, Symmetric.name),
            ("farthest", self.farthest, Symmetric.name),
        ):
            if self.method != only:
                _only(value, name, only)
        if self.method == Clipped.name:
            _check_bias(self.bias)
        if self.method == Symmetric.name:
            _only(self.interval, "interval", "the other methods")
            _check_farthest(self.farthest, clipping.deviation(self.moments))
        else:
            check_interval(self.interval)
        if self.reuse is not None and type(self.reuse) is not bool:
            raise InputError("reuse that is no truth value", "True, False or None", "leave it out")
        checks.choice(self.interval_by, INTERVALS, "interval_by")

    def weighed(self) -> Weights:
        """The users' weights.

        Raises:
            InputError: Too many or too heavy users, or an unknown way to weigh them.
        """
        checks.choice(self.weights, WEIGHTS, "weights")
        if self.cap is not None and (type(self.cap) is not int or self.cap < 1):
            raise InputError("a cap that is no whole number from 1", "1, 2, ...", "give cap=10")
        if self.weights == "equal":
            _only(self.cap, "cap", 'weights="counts"')
            return Weights.equal(len(self.counts))
        return Weights(np.minimum(self.counts, self.cap or int(self.counts[-1])))

    def estimator(self) -> Estimator:
        """The best estimator for the request.

        Raises:
            InputError: A part is missing, not usable, or not for this method.
        """
        self.check()
        found = self._certified()
        return found.with_squares() if self.interval_by == NORMAL else found

    def _certified(self) -> Estimator:
        weights, budget = self.weighed(), self.budget
        if self.method == Symmetric.name:
            farthest = self.farthest_mean()
            delta, reuse = budget.delta, self.reuse
            return best(
                SearchRequest(weights, self.moments, budget.epsilon, delta, reuse, farthest)
            )
        interval = check_interval(self.interval)
        if self.method == Clipped.name:
            bias = float(self.bias or 0)
            return Clipped.plan(weights, self.moments, interval, budget.epsilon, bias=bias)
        chance = Chance.at_most(budget.delta)
        if self.method == Sampled.name:
            return Sampled(weights, self.moments, interval, chance)
        return Residual.best(weights, self.moments, interval, budget.epsilon, chance)

    def farthest_mean(self) -> float:
        """Where the certificate of a symmetric mean ends: 2^20 sizes of the moment unless said."""
        if self.farthest is None:
            return _FARTHEST * clipping.deviation(self.moments)
        return self.farthest


def counts_of(counts: object) -> NDArray[np.int64]:
    """Public counts, ascending: of so many users with a record each, or one count a user.

    Raises:
        InputError: Something else.

    Example:
        >>> counts_of(3).tolist(), counts_of([2, 1]).tolist()
        ([1, 1, 1], [1, 2])
    """
    if isinstance(counts, Integral) and not isinstance(counts, bool):
        users = checks.whole(counts, "users", least=1, most=MOST_WEIGHT, example=1000)
        return Weights.equal(users).number
    found = checks.array(counts)
    if (
        found is None
        or (found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu")
        or (found.min() < 1 or found.max() > MOST_WEIGHT)
    ):
        raise InputError(
            "counts that are not usable",
            "the number of users, or whole numbers from 1, one a user",
            "give for example 1000",
        )
    return np.sort(found.astype(np.int64))


def _check_losses(method: str, budget: Budget) -> None:
    if method != Clipped.name and budget.delta == 0:
        raise pure(method)
    if budget.delta >= 1:
        raise InputError("a delta of 1 or more", "from 0 to below 1", "give for example delta=1e-6")
    if method == Sampled.name:
        _only(budget.epsilon or None, "epsilon", "the other methods")
    else:
        check_epsilon(budget.epsilon)
    if method == Clipped.name:
        _only(budget.delta or None, "delta", "the other methods")


def _check_bias(bias: object) -> None:
    if bias is None:
        raise InputError(
            "a clipped mean without a bias budget",
            "the most bias that is accepted, above 0, in the value's unit",
            "give for example bias=0.1 (--bias 0.1), or ask recommend (`shoal unbiased plan`)",
        )
    checks.number(bias, "bias", above=0, below=_MOST_FARTHEST, example=0.1)


def _check_farthest(farthest: object, size: float) -> None:
    if farthest is None:
        return
    # No bin is below half a size, and values are cut off at 2^61 bins; its square is a number.
    checks.number(farthest, "farthest", least=0, most=min(2.0**59 * size, _MOST_FARTHEST))


def pure(method: str) -> InputError:
    """The error for an unbiased estimator without delta: there is none."""
    return InputError(
        f"{method} with delta 0: no (epsilon, 0)-private estimator is unbiased for Gaussians, or "
        "any exponential family of unbounded parameters, and no concentrated-private one (paper "
        "004, section 5)",
        "a delta above 0 for sampled_mean, clipped_plus_residual and symmetric_mean",
        "give for example delta=1e-6, or use clipped_mean with a bias budget",
    )


def refuse_publishing(method: str, *, publish_values: bool) -> None:
    """Refuse what publishes values, unless it is asked for in so many words.

    Raises:
        InputError: It publishes values and this was not said.
    """
    if method in PUBLISHING and publish_values is not True:
        raise InputError(
            f"{method} publishes values: each user's is sampled with probability delta, and then "
            "what the estimate shows of it is not hidden by any noise",
            "publish_values=True, from who may decide that for the users",
            "say publish_values=True, or use symmetric_mean or clipped_mean",
        )


def _only(value: object, name: str, what: str) -> None:
    if value is not None:
        raise InputError(f"{name} where it means nothing", f"{name} with {what}", "leave it out")
