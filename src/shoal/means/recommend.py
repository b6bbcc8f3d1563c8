"""Which unbiased mean to take, by the total error of the average of all releases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from shoal import checks, documents
from shoal.errors import InputError
from shoal.files.text_table import aligned
from shoal.means.estimators.clipped import check_interval
from shoal.means.options import CLIPPED, PUBLISHES, RESIDUAL, SAMPLED, SYMMETRIC, Option
from shoal.means.plan import UnbiasedPlan, plan
from shoal.means.request import PUBLISHING, Request, counts_of
from shoal.privacy.budget import Amount, Budget, check_epsilon
from shoal.theory import clipping
from shoal.theory.clipping import Moment, Moments
from shoal.theory.trilemma import trilemma

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_RELEASES = 2**30
_LEAST_MARGIN, _MOST_MARGIN = 2.0**-10, 2.0**30


@dataclass(frozen=True)
class Recommendation:
    """The certificates of all four estimators, side by side. Make one with `recommend`.

    Source: docs/theory/trilemma.md#which-estimator.

    Attributes:
        users: The number of users of each release.
        budget: Largest loss of one release.
        moments: Public bounds on central moments.
        releases: How many are averaged.
        options: The four estimators, the least total error first.

    Example:
        >>> from shoal import unbiased
        >>> found = unbiased.recommend(
        ...     2000, epsilon=1, delta="1e-6", moment=unbiased.Moment(4, 1.5), interval=(0, 10)
        ... )
        >>> found.recommended.method
        'clipped_mean'
    """

    users: int
    budget: Budget
    moments: Moments
    releases: int
    options: tuple[Option, ...]

    @property
    def recommended(self) -> Option | None:
        """The least total error of those that can be had; None if none can."""
        return next((option for option in self.options if option.plan is not None), None)

    @property
    def otherwise(self) -> Option | None:
        """The best one for distributions that may be skewed."""
        possible = (option for option in self.options if option.plan is not None)
        return next((option for option in possible if option.method != SYMMETRIC), None)

    @property
    def reason(self) -> str:
        """The reason for the recommendation, in one sentence."""
        best, other = self.recommended, self.otherwise
        if best is None:
            return "No estimator can be had: allow some bias with an interval, or some delta."
        many = "" if self.releases == 1 else f" of the average of {self.releases} releases"
        known = "" if best.ratio is None else f", {best.ratio:.3g} times the lower bound"
        words = (
            f"{best.method} has the least certified error{many}, {best.total_error:.4g}{known}, "
            f"with a bias of at most {best.bias_bound:.4g}"
        )
        if best.method != SYMMETRIC:
            return f"{words}."
        instead = "nothing else can be had"
        if other is not None:
            instead = f"take {other.method} ({other.total_error:.4g})"
        return f"{words}, if the distribution is symmetric; if it may be skewed, {instead}."

    def __getitem__(self, method: str) -> Option:
        known = {option.method: option for option in self.options}
        return known[checks.choice(method, tuple(known), "method")]

    def table(self) -> pa.Table:
        """One row an estimator, the least total error first.

        Returns:
            One row an estimator, errors in the value's unit.
        """
        import pyarrow as pa

        return pa.Table.from_pylist([option.to_document() for option in self.options])

    def to_document(self) -> documents.Document:
        """The recommendation as a JSON object.

        Returns:
            Names and numbers.
        """
        best = self.recommended
        return {
            "users": self.users,
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "moments": [[moment.order, moment.size] for moment in self.moments],
            "releases": self.releases,
            "recommended": None if best is None else best.method,
            "reason": self.reason,
            "options": [option.to_document() for option in self.options],
        }

    def __str__(self) -> str:
        """A line for each estimator, then what each needs and publishes, and the reason."""
        names = ("method", "bias", "one release", "total error", "lower bound", "ratio")
        rows = [names, *(_row(option) for option in self.options)]
        notes = [
            f"{option.method}: {option.why_not}"
            if option.why_not
            else f"{option.method}: needs {option.needs}; publishes {option.publishes}"
            for option in self.options
        ]
        return "\n".join([*aligned(rows), *notes, self.reason])


def recommend(
    n: int | Sequence[int] | NDArray[Any],
    *,
    epsilon: Amount,
    delta: Amount = 0,
    moment: Moment | Sequence[Moment],
    interval: tuple[float, float] | None = None,
    bias: float | None = None,
    releases: int = 1,
    publish_values: bool = False,
    weights: str = "equal",
    cap: int | None = None,
) -> Recommendation:
    """Compare the certificates of all estimators, before any value is read; nothing is spent.

    The average of R releases, each on other users, has the bias of one and a variance of one over
    R: its error is at most sqrt(bias^2 + standard_error^2/R). So the clipped mean gets the bias
    budget for which that is least (paper 004, section 1; docs/theory/trilemma.md#which-estimator).
    The lower bound is the larger of `shoal.bounds.trilemma` for all R n users, and for n users over
    sqrt(R): the average is private for all of them, and the error of one release is at most
    sqrt(bias^2 + variance), of which averaging leaves at least the part 1/sqrt(R).

    With several moments the lower bound is for the smallest size at the largest order, whose class
    keeps all of them (Lyapunov).

    Args:
        n: Users of each release, or the number of records of each user, shape (users,).
        epsilon: Largest loss of one release.
        delta: The same.
        moment: Public bound on a central moment of a user's value, or several.
        interval: Public interval that holds the mean, in the value's unit; only `symmetric_mean`
            can do without.
        bias: Most bias that is accepted, in the value's unit; any if not said.
        releases: How many such releases will be averaged.
        publish_values: Whether sampled users' values may be published.
        weights: `equal`, or `counts`: in proportion to a user's records.
        cap: Largest weight with `counts`.

    Returns:
        All four estimators, the least total error first.

    Raises:
        InputError: An argument that is not usable.

    Guarantees: G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> request = {"epsilon": 1, "delta": "1e-6", "moment": Moment(4, 1.5), "interval": (0, 10)}
        >>> one, many = (recommend(2000, releases=r, **request) for r in (1, 10_000))
        >>> one["clipped_mean"].bias_bound > many["clipped_mean"].bias_bound > 0
        True
        >>> many.recommended.method, many.otherwise.method
        ('symmetric_mean', 'clipped_mean')
    """
    counts, moments = counts_of(n), clipping.moments_of(moment)
    budget = Budget.of(epsilon, delta)
    _check(budget, bias, publish_values)
    releases = checks.whole(releases, "releases", least=1, most=_MOST_RELEASES)
    ends = None if interval is None else check_interval(interval)
    heaviest = Request(CLIPPED, counts, moments, budget, weights=weights, cap=cap).weighed().share
    request: dict[str, Any] = {"counts": counts, "moment": moments, "weights": weights, "cap": cap}
    parts: dict[str, dict[str, Any]] = {
        CLIPPED: {"epsilon": budget.epsilon, "interval": ends},
        SAMPLED: {"delta": budget.delta, "interval": ends, "publish_values": True},
        RESIDUAL: {"epsilon": budget.epsilon, "delta": budget.delta, "interval": ends},
        SYMMETRIC: {"epsilon": budget.epsilon, "delta": budget.delta},
    }
    parts[RESIDUAL]["publish_values"] = True
    if ends is not None and bias != 0 and budget.epsilon > 0:
        parts[CLIPPED]["bias"] = best_bias(
            1 / heaviest, budget.epsilon, moments, ends, most=bias, releases=releases
        )
    found = [
        _option(method, {**request, **own}, releases, allowed=publish_values)
        for method, own in parts.items()
    ]
    found.sort(key=lambda option: option.total_error)
    return Recommendation(len(counts), budget, moments, releases, tuple(found))


def best_bias(
    users: int | Fraction,
    epsilon: Amount,
    moments: Moments,
    interval: tuple[float, float],
    *,
    most: float | None = None,
    releases: int = 1,
) -> float:
    """The bias budget of a clipped mean whose average over R releases has the smallest error.

    Minimises B(t)^2 + [sd^2/n + 2 ((W + 2t)/(n epsilon))^2]/R over margins t that keep the budget,
    B the bound `clipping.one_sided`.

    Args:
        users: Of each release, n; of weighted ones, as many as are as heavy as the heaviest.
        epsilon: Of each release.
        moments: Public bounds.
        interval: Of the mean, of width W.
        most: Largest bias; any if not said.
        releases: R.

    Raises:
        InputError: A bias budget that is not usable.

    Example:
        >>> from shoal.unbiased import Moment
        >>> one = best_bias(1000, 1, (Moment(2, 1),), (0, 1))
        >>> one > best_bias(1000, 1, (Moment(2, 1),), (0, 1), releases=100)
        True
    """
    size, width = clipping.deviation(moments), interval[1] - interval[0]
    shortest = _LEAST_MARGIN * size
    if most is not None:
        shortest = max(shortest, clipping.margin(moments, most))
    unit = float(users * check_epsilon(epsilon))

    def error(t: float) -> float:
        noise = 2 * ((width + 2 * t) / unit) ** 2
        return clipping.one_sided(moments, t) ** 2 + noise / releases

    t = clipping.least(error, shortest, max(_MOST_MARGIN * size, 2 * shortest))
    found = clipping.one_sided(moments, max(t, shortest))
    return found if most is None else min(found, most)


def worst_moment(moments: Moments) -> tuple[float, float]:
    """One (order, size) that implies all: E Y^p <= (E Y^q)^(p/q) for p <= q (Lyapunov).

    A lower bound for its class holds for the class of all of them, which is larger.

    Example:
        >>> from shoal.unbiased import Moment
        >>> worst_moment((Moment(2, 1), Moment(8, 1.8)))
        (8.0, 1.0)
    """
    return max(moment.order for moment in moments), clipping.deviation(moments)


def _option(method: str, request: Mapping[str, Any], releases: int, *, allowed: bool) -> Option:
    lacking = _lacking(method, request)
    if lacking:
        return Option(method, None, lacking)
    try:
        made = plan(method, **request)
    except InputError as error:
        return Option(method, None, f"cannot be planned: {error.got}; {error.todo}")
    consent = allowed or method not in PUBLISHING
    refusal = f"publishes {PUBLISHES[method]}, so only with publish_values=True"
    return Option(
        method,
        made if consent else None,
        "" if consent else refusal,
        epsilon=made.epsilon,
        delta=made.delta,
        bias_bound=made.bias_bound,
        standard_error=made.standard_error,
        rmse_bound=made.rmse_bound,
        total_error=math.hypot(made.bias_bound, made.standard_error / math.sqrt(releases)),
        lower_bound=_lower(made, releases),
    )


def _lacking(method: str, request: Mapping[str, Any]) -> str:
    """Why a method is impossible, whatever the numbers."""
    if method != SYMMETRIC and request["interval"] is None:
        return "needs an interval that holds the mean"
    if method != CLIPPED and request["delta"] == 0:
        return "needs a delta above 0: no pure private estimator is unbiased"
    if method != SAMPLED and request["epsilon"] == 0:
        return "needs an epsilon above 0"
    if method == CLIPPED and "bias" not in request:
        return "is biased"
    return ""


def _lower(made: UnbiasedPlan, releases: int) -> float | None:
    """What no estimator with this plan's loss and bias can beat; of equally weighed users."""
    ends = made.request.interval
    if ends is None or ends[0] == ends[1] or made.exact_delta >= 1:
        return None
    moment = worst_moment(made.request.moments)
    facts: tuple[Any, ...] = (made.exact_epsilon, made.exact_delta, made.bias_bound, moment)
    width = ends[1] - ends[0]
    one = trilemma(made.n, *facts, width=width).rmse / math.sqrt(releases)
    both = max(one, trilemma(made.n * releases, *facts, width=width).rmse)
    return both if math.isfinite(both) else None


def _row(option: Option) -> tuple[str, ...]:
    numbers = (
        *(option.bias_bound, option.rmse_bound, option.total_error),
        *(option.lower_bound, option.ratio),
    )
    shown = ("-" if x is None or not math.isfinite(x) else f"{x:.4g}" for x in numbers)
    return option.method, *shown


def _check(budget: Budget, bias: object, allowed: object) -> None:
    if budget.delta >= 1:
        raise InputError("delta is 1 or more", "from 0 to below 1", "give for example delta=1e-6")
    if budget.epsilon == 0 and budget.delta == 0:
        raise InputError("no budget at all", "epsilon or delta above 0", "give epsilon=1")
    if budget.epsilon:
        check_epsilon(budget.epsilon)
    checks.optional(bias, checks.number, "bias", least=0, below=2.0**300, example=0.1)
