"""A trial before it runs: what each mechanism would report, from public numbers alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import checks, documents
from shoal.data.outcome_space import Space, check_space
from shoal.errors import InputError
from shoal.privacy.budget import Amount, Budget
from shoal.trials import student
from shoal.trials.charge import charge_of
from shoal.trials.choose import checked_sizes
from shoal.trials.expected import Expected, check_expected
from shoal.trials.forecast_facts import ForecastFacts
from shoal.trials.forecast_text import describe
from shoal.trials.mechanism_forecasts import NAMES, forecasts_of

if TYPE_CHECKING:
    import pyarrow as pa

_SHARES = (0.5, 0.5)
_TINY, _LARGEST = 1e-9, 1e50
_MOST_ARMS, _MOST_UNITS, _MOST_CLUSTERS = 64, 2**48, 10**6


@dataclass(frozen=True, eq=False)
class TrialPlan(ForecastFacts):
    """A forecast of every mechanism for one trial; see `ForecastFacts`.

    Source: docs/theory/trials.md#choice-of-parameters; docs/theory/inference.md.

    Example:
        >>> from shoal import trials
        >>> found = trials.plan(6000, trials.Space.binary(), clusters=3, epsilon=1, effect=0.1)
        >>> found.recommended.mechanism, 0.9 < found.power_of("uniform_prior") < 1
        ('uniform_prior', True)
    """

    def table(self) -> pa.Table:
        """The forecast as a table, with the columns of `against`.

        Returns:
            One row a mechanism: standard errors, least detectable effect and power.
        """
        return _table([self])

    def against(
        self,
        *,
        n: Sequence[int] | None = None,
        epsilon: Sequence[Amount] | None = None,
        clusters: Sequence[int] | None = None,
    ) -> pa.Table:
        """The plan for other numbers of units, losses and clusters: all combinations.

        With `n` or `clusters` the clusters are of equal size and have the plan's shares of arms;
        with neither, the sizes are the plan's.

        Args:
            n: Units in all.
            epsilon: Losses of one outcome.
            clusters: Numbers of clusters.

        Returns:
            One row for each combination and mechanism: n, clusters, epsilon, mechanism, releases,
            least_standard_error, standard_error (the largest), detectable, power (null if no effect
            was given), levels in use.

        Raises:
            InputError: Numbers that make no plan.

        Example:
            >>> from shoal.data.outcome_space import Space
            >>> found = plan(1000, Space.binary(), epsilon=1).against(n=[1000, 4000])
            >>> error = found["standard_error"].to_numpy()
            >>> len(found), round(float(error[0] / error[9]), 3)
            (18, 2.0)
        """
        fixed = n is None and clusters is None
        shares = self.sizes.sum(axis=0) / self.n
        plans = []
        for units, groups, loss in itertools.product(
            [self.n] if n is None else checks.items(n, "n"),
            [len(self.sizes)] if clusters is None else checks.items(clusters, "clusters"),
            [self.charge.epsilon] if epsilon is None else checks.items(epsilon, "epsilon"),
        ):
            sizes = self.sizes if fixed else even(units, groups, shares.tolist())
            plans.append(self._with(sizes, charge_of(loss, self.charge.delta)))
        return _table(plans)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            What was asked for, and the forecast of each mechanism.
        """
        exact = {"epsilon": str(self.charge.epsilon), "delta": str(self.charge.delta)}
        return {
            "units": self.n,
            "clusters": len(self.sizes),
            "arms": self.sizes.shape[1],
            "space": self.space.to_document(),
            **exact,
            "expected": None if self.expected is None else self.expected.to_document(),
            "effect": self.effect,
            "confidence": self.confidence,
            "power": self.power,
            "mechanisms": self.table().drop_columns(["n", "clusters", "epsilon"]).to_pylist(),
            "recommended": self.recommended.mechanism,
            "reason": self.recommended.reason,
            "recommended_for": {each: self.recommend(each).mechanism for each in self.purposes},
        }

    def __str__(self) -> str:
        """Head, one row a mechanism, and what is recommended."""
        return describe(self)

    @np.errstate(all="ignore")
    def _with(self, sizes: NDArray[np.int64], charge: Budget) -> TrialPlan:
        found = forecasts_of(sizes, self.space, charge, self.expected)
        return replace(self, sizes=sizes, charge=charge, forecasts=found)


@np.errstate(all="ignore")
def plan(
    sizes: ArrayLike | int,
    space: Space,
    *,
    epsilon: Amount,
    delta: Amount = 0,
    clusters: int | None = None,
    shares: Sequence[float] | None = None,
    expected: Expected | None = None,
    effect: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
) -> TrialPlan:
    """Expected standard errors, powers and least detectable effects of all mechanisms.

    Variances are those of `shoal.trials.choose` for private outcomes of units, and for noisy
    aggregates that of the assignment and of their noise. Nothing private goes in.

    Source: docs/theory/trials.md; errata 12, 14, 15.

    Args:
        sizes: Units of each group, shape (clusters, arms), control first; or units in all.
        space: Levels of the outcome.
        epsilon: The loss of one outcome.
        delta: The delta of (epsilon, delta)-DP; noisy aggregates do not use it.
        clusters: How many of equal size, if `sizes` is one number; 1 unless given.
        shares: Of the arms, control first, if `sizes` is one number; halves unless given.
        expected: What is publicly expected of outcomes; None for a family of expectations, of which
            the largest standard error counts.
        effect: Whose power is wanted, in the outcome's unit.
        confidence: Of two-sided normal intervals, above 0 and below 1.
        power: Probability of telling the least detectable effect from 0.

    Returns:
        A forecast for every mechanism; nothing is spent.

    Raises:
        InputError: Numbers that make no plan.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> found = plan(6000, Space.binary(), clusters=3, epsilon=1, effect=0.1)
        >>> found.recommended.mechanism, round(found.detectable("uniform_prior"), 3)
        ('uniform_prior', 0.078)
    """
    check_space(space)
    check_expected(expected)
    confidence, power = checks.check_confidence(confidence), student.check_power(power)
    effect = checks.optional(effect, checks.number, "effect", least=-_LARGEST, most=_LARGEST)
    if isinstance(sizes, Integral | bool):
        parts = _SHARES if shares is None else shares
        table = even(sizes, 1 if clusters is None else clusters, parts)
    elif clusters is not None or shares is not None:
        raise InputError(
            "clusters or shares beside sizes of groups",
            "one number of units with them",
            "give either a table of sizes, or units, clusters and shares",
        )
    else:
        table = checked_sizes(sizes)
    charge = charge_of(epsilon, delta)
    found = forecasts_of(table, space, charge, expected)
    made = TrialPlan(table, space, charge, expected, effect, confidence, power, found)
    # Unusable confidences, powers and effects are found here.
    made.detectable(NAMES[0])
    made.power_of(NAMES[0])
    return made


def even(n: int, clusters: int, shares: Sequence[float]) -> NDArray[np.int64]:
    """Sizes of groups: clusters alike up to one unit, arms in these shares up to one unit.

    Args:
        n: Units.
        clusters: How many.
        shares: Of the arms, control first, above 0; their sum does not matter.

    Raises:
        InputError: A group would have nobody.

    Example:
        >>> even(11, 2, [0.5, 0.5]).tolist()
        [[3, 3], [2, 3]]
    """
    given = checks.items(shares, "shares", least=2, most=_MOST_ARMS)
    part = np.array([checks.number(each, "a share", least=_TINY, most=1 / _TINY) for each in given])
    n = checks.whole(n, "units", least=1, most=_MOST_UNITS, example=6000)
    clusters = checks.whole(clusters, "clusters", least=1, most=_MOST_CLUSTERS, example=3)
    if n >= clusters:
        units = n // clusters + (np.arange(clusters) < n % clusters)
        ends = np.rint(units[:, None] * (np.cumsum(part) / part.sum())).astype(np.int64)
        sizes = np.diff(ends, axis=1, prepend=0)
        if sizes.min() > 0:
            return np.asarray(sizes)
    raise InputError(
        f"{n!r} units in {clusters!r} clusters and {part.size} arms",
        "whole numbers, two arms or more, at least one unit in every group",
        "give for example plan(6000, space, clusters=3, epsilon=1)",
    )


def _table(plans: Sequence[TrialPlan]) -> pa.Table:
    import pyarrow as pa

    rows = [(each, forecast) for each in plans for forecast in each.forecasts]
    return pa.table(
        {
            "n": pa.array([each.n for each, _ in rows], pa.int64()),
            "clusters": pa.array([len(each.sizes) for each, _ in rows], pa.int64()),
            "epsilon": pa.array([each.epsilon for each, _ in rows], pa.float64()),
            "mechanism": pa.array([forecast.mechanism for _, forecast in rows], pa.string()),
            "releases": pa.array([forecast.releases for _, forecast in rows], pa.string()),
            "least_standard_error": pa.array([forecast.standard_error[0] for _, forecast in rows]),
            "standard_error": pa.array([forecast.standard_error[1] for _, forecast in rows]),
            "detectable": pa.array(
                [each.detectable(forecast.mechanism) for each, forecast in rows]
            ),
            "power": pa.array(
                [each.power_of(forecast.mechanism) for each, forecast in rows], pa.float64()
            ),
            "levels": pa.array([forecast.levels for _, forecast in rows], pa.int64()),
        }
    )
