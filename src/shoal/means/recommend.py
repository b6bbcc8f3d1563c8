"""Recommends an unbiased mean by the total error of the average of all releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from shoal import checks, documents
from shoal.arrays import Ints
from shoal.errors import InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import Shown, TextTable, counted, first_rows
from shoal.means.plan import UnbiasedPlan
from shoal.means.planner import plan
from shoal.means.request import CLIPPED, SYMMETRIC, Request, check_interval
from shoal.means.users import counts_of
from shoal.privacy.budget import Amount, Budget
from shoal.theory import clipping
from shoal.theory.clipping import Moment, Moments
from shoal.theory.trilemma import trilemma

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDS = {CLIPPED: "an interval that holds the mean", SYMMETRIC: "a symmetric distribution"}
_NUMBERS = ("bias_bound", "rmse_bound", "total_error", "lower_bound", "ratio")
# The largest number of releases.
_MOST_RELEASES = 2**30
# The smallest and the largest margin that are tried, in standard deviations.
_LEAST_MARGIN = 2.0**-10
_MOST_MARGIN = 2.0**30


@dataclass(frozen=True)
class Candidate:
    """The plan of one estimator, or the reason why there is none; errors are in the value's unit.

    `total_error` is the certified error of the average. On all distributions that keep the moments,
    no private estimator with this loss and bias has a smaller error than `lower_bound`; symmetric
    distributions are only some of these.
    """

    method: str
    plan: UnbiasedPlan | None
    reason: str = ""
    total_error: float = math.inf
    lower_bound: float | None = None

    def row(self) -> documents.Document:
        """Returns the candidate as a JSON object, with null for numbers that do not exist."""
        numbers: dict[str, float | None] = dict.fromkeys(_NUMBERS)
        if self.plan is not None:
            ratio = self.total_error / self.lower_bound if self.lower_bound else None
            errors = self.plan.bias_bound, self.plan.rmse_bound, self.total_error
            numbers = dict(zip(_NUMBERS, (*errors, self.lower_bound, ratio), strict=True))
        words = {"reason": self.reason or None, "needs": _NEEDS[self.method]}
        return {"method": self.method, **words, **numbers}


@dataclass(frozen=True)
class Recommendation(Shown, Tabular):
    """The certificates of both estimators, side by side. Make one with `recommend`.

    Source: docs/theory/means.md#which-estimator.

    Attributes:
        users: The number of users of each release.
        budget: Largest loss of one release.
        moments: Public bounds on central moments.
        releases: Number of releases that are averaged.
        options: The estimators, the one with the smallest total error first.
    """

    users: int
    budget: Budget
    moments: Moments
    releases: int
    options: tuple[Candidate, ...]

    @property
    def recommended(self) -> Candidate | None:
        """The possible estimator with the smallest total error; None if none is possible."""
        return next((option for option in self.options if option.plan is not None), None)

    @property
    def reason(self) -> str:
        """The reason for the recommendation, in one sentence."""
        best = self.recommended
        clipped = self[CLIPPED]
        if best is None or best.plan is None:
            return "No estimator is possible: allow a bias and give an interval, or allow a delta."
        of_average = "" if self.releases == 1 else f" of the average of {self.releases} releases"
        ratio = best.row()["ratio"]
        compared = "" if ratio is None else f", {ratio:.3g} times the lower bound"
        condition = ""
        if best.method == SYMMETRIC:
            instead = "no other estimator is possible"
            if clipped.plan is not None:
                instead = f"use {CLIPPED} ({clipped.total_error:.4g})"
            condition = f", if the distribution is symmetric; if it may be skewed, {instead}"
        return (
            f"{best.method} has the least certified error{of_average}, {best.total_error:.4g}"
            f"{compared}, with a bias of at most {best.plan.bias_bound:.4g}{condition}."
        )

    def __getitem__(self, method: str) -> Candidate:
        by_name = {option.method: option for option in self.options}
        return by_name[checks.choice(method, tuple(by_name), "method")]

    def table(self) -> "pa.Table":
        """The estimators as a table, the one with the smallest total error first.

        Returns:
            One row an estimator, errors in the value's unit.
        """
        import pyarrow as pa

        return pa.Table.from_pylist([option.row() for option in self.options])

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
            "options": [option.row() for option in self.options],
        }

    def _text(self) -> TextTable:
        """The table of both estimators, what each needs, and the reason."""
        head = f"mean of {counted(self.users, 'user')}, {self.budget.show(up=True)}"
        table = self.table().select(["method", *_NUMBERS])
        notes = [f"{x.method}: {x.reason or 'needs ' + _NEEDS[x.method]}" for x in self.options]
        return first_rows(head, table, [*notes, self.reason])


def recommend(
    n: int | Sequence[int] | NDArray[Any],
    *,
    epsilon: Amount,
    delta: Amount = 0,
    moment: Moment | Sequence[Moment],
    interval: tuple[float, float] | None = None,
    bias: float | None = None,
    releases: int = 1,
    weights: str = "equal",
    cap: int | None = None,
    interval_by: str | None = None,
) -> Recommendation:
    """Compare the certificates of both estimators, before any value is read; nothing is spent.

    The average of R releases, each on other users, errs by at most sqrt(bias^2 +
    standard_error^2/R): the clipped mean gets the bias budget that makes this smallest. The lower
    bound is the larger of two: `shoal.bounds.trilemma` for all R n users, and for n users divided
    by sqrt(R). Both are for the smallest size at the largest order, whose class keeps all moments
    (Lyapunov).

    Source: docs/theory/means.md#which-estimator; paper 004, section 1.

    Args:
        n: Users of each release, or the number of records of each user, shape (users,).
        epsilon: Largest loss of one release.
        delta: Largest delta of one release; `symmetric_mean` needs one above 0.
        moment: Public bound on a central moment of a user's value, or several.
        interval: Public interval that holds the mean, in the value's unit; `clipped_mean` needs it.
        bias: Largest bias that is accepted, in the value's unit; any if not given.
        releases: Number of such releases that will be averaged.
        weights: `equal`, or `counts`: in proportion to a user's records.
        cap: Largest weight with `counts`.
        interval_by: `normal` or `certified`, as in `plan`.

    Returns:
        Both estimators, the one with the smallest total error first.

    Raises:
        InputError: An argument that is not usable.

    Guarantees: G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> request = {"epsilon": 1, "delta": "1e-6", "moment": Moment(4, 1.5), "interval": (0, 10)}
        >>> [recommend(2000, releases=r, **request).recommended.method for r in (1, 10_000)]
        ['clipped_mean', 'symmetric_mean']
    """
    counts = counts_of(n)
    moments = clipping.moments_of(moment)
    budget = Budget.of(epsilon, delta)
    if budget.delta >= 1:
        raise InputError("delta is 1 or more", "give one below 1, for example delta=1e-6")
    releases = checks.whole(releases, "releases", least=1, most=_MOST_RELEASES)
    shared: dict[str, Any] = {"epsilon": budget.epsilon, "weights": weights, "cap": cap}
    shared |= {"interval_by": interval_by}
    # This request checks all arguments; a missing interval or bias is replaced by any other.
    ends = (0, 1) if interval is None else interval
    request = Request.of(method=CLIPPED, moments=moments, interval=ends, bias=bias or 1.0, **shared)
    # Without an interval, or where no bias is accepted, a clipped mean has no plan.
    clipped = Candidate(CLIPPED, None, "is biased" if interval else f"needs {_NEEDS[CLIPPED]}")
    if interval is not None and bias != 0:
        best = best_bias(request, counts, most=bias, releases=releases)
        asked = {**shared, "moment": moments, "interval": interval, "bias": best}
        clipped = _candidate(CLIPPED, releases, counts, asked)
    pure = "needs a delta above 0: no pure private estimator is unbiased"
    symmetric = Candidate(SYMMETRIC, None, pure)
    if budget.delta:
        asked = {**shared, "moment": moments, "delta": budget.delta}
        symmetric = _candidate(SYMMETRIC, releases, counts, asked)
    options = sorted((clipped, symmetric), key=lambda option: option.total_error)
    return Recommendation(len(counts), budget, moments, releases, tuple(options))


def best_bias(request: Request, counts: Ints, *, most: float | None, releases: int) -> float:
    """Returns the bias budget of the clipped mean whose average has the smallest error."""
    moments = request.moments
    low, high = check_interval(request.interval)
    size = clipping.deviation(moments)
    width = high - low
    shortest = _LEAST_MARGIN * size
    if most is not None:
        shortest = max(shortest, clipping.margin(moments, most))
    # The clipped range divided by this is the scale of the noise.
    unit = float(request.epsilon / request.weights_of(counts).share)

    def error(t: float) -> float:
        """Returns the squared bias plus the variance of the average's noise for a margin t."""
        noise = 2 * ((width + 2 * t) / unit) ** 2
        return clipping.one_sided(moments, t) ** 2 + noise / releases

    t = clipping.least(error, shortest, max(_MOST_MARGIN * size, 2 * shortest))
    bias = clipping.one_sided(moments, max(t, shortest))
    return bias if most is None else min(bias, most)


def worst_moment(moments: Moments) -> tuple[float, float]:
    """Returns one (order, size) that implies all: E Y^p <= (E Y^q)^(p/q) for p <= q (Lyapunov)."""
    return max(moment.order for moment in moments), clipping.deviation(moments)


def _candidate(
    method: str, releases: int, counts: NDArray[Any], asked: dict[str, Any]
) -> Candidate:
    """Returns an estimator's plan with the error of the average, or why it cannot be planned."""
    try:
        made = plan(method, counts, **asked)
    except InputError as error:
        return Candidate(method, None, f"cannot be planned: {error.got}; {error.todo}")
    total = math.hypot(made.bias_bound, made.standard_error / math.sqrt(releases))
    return Candidate(method, made, "", total, _lower(made, releases))


def _lower(made: UnbiasedPlan, releases: int) -> float | None:
    """Returns a lower bound of errors for this plan's loss and bias, and equally weighed users."""
    if made.request.interval is None:
        return None
    low, high = made.request.interval
    if low == high:
        # The mean is known: nothing can be bounded.
        return None
    loss = made.exact_loss
    facts = loss.epsilon, loss.delta, made.bias_bound, worst_moment(made.request.moments)
    width = high - low
    of_each_release = trilemma(made.n, *facts, width=width).rmse / math.sqrt(releases)
    of_all_users = trilemma(made.n * releases, *facts, width=width).rmse
    bound = max(of_each_release, of_all_users)
    return bound if math.isfinite(bound) else None
