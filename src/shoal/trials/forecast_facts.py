"""What each mechanism of a trial would tell, from public numbers: the facts of a forecast."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.data.outcome_space import Space
from shoal.privacy.budget import Budget, round_up
from shoal.trials import student
from shoal.trials.expected import Expected
from shoal.trials.mechanism_forecasts import AGGREGATES, ANSWERS, UNITS, Forecast
from shoal.trials.parameter_search import TOLERANCE

# What a release may be for.
EFFECT, CLUSTERS, TABLE = "effect", "clusters", "table"


@dataclass(frozen=True, eq=False)
class ForecastFacts:
    """A forecast of every mechanism for one trial: public, nothing is spent.

    Attributes:
        sizes: Units of each group, shape (clusters, arms), control first.
        space: Levels of the outcome.
        charge: Exact epsilon and delta of one outcome.
        expected: What is publicly expected of outcomes, or None for a family of expectations.
        effect: The effect whose power is wanted, in the outcome's unit, or None.
        confidence: Of the intervals.
        power: Probability with which the least detectable effect is distinguished from 0.
        forecasts: One for each mechanism, first without privacy.
    """

    sizes: NDArray[np.int64] = field(repr=False)
    space: Space
    charge: Budget
    expected: Expected | None
    effect: float | None
    confidence: float
    power: float
    forecasts: tuple[Forecast, ...] = field(repr=False)

    @property
    def n(self) -> int:
        """The number of units."""
        return int(self.sizes.sum())

    @property
    def epsilon(self) -> float:
        """The loss of one outcome, rounded upwards."""
        return round_up(self.charge.epsilon)

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Least and most expected: shape (mechanisms, 2), in the outcome's unit."""
        return np.array([each.standard_error for each in self.forecasts])

    def __getitem__(self, mechanism: str) -> Forecast:
        """The forecast of a mechanism by its name.

        Raises:
            InputError: No such mechanism.
        """
        known = {each.mechanism: each for each in self.forecasts}
        return known[checks.choice(mechanism, tuple(known), "mechanism")]

    @property
    def purposes(self) -> tuple[str, ...]:
        """What a release may be for: `effect`, `clusters` where there are several, and `table`."""
        return (EFFECT, CLUSTERS, TABLE) if len(self.sizes) > 1 else (EFFECT, TABLE)

    def recommend(self, purpose: str) -> Forecast:
        """The mechanism for a purpose, by the largest predicted variance.

        For the effects of arms, with intervals: what has the least variance of all releases. For
        effects by cluster: the least mean variance of those. For a table from which anything can be
        computed later: `recommended`, which is also taken where it is within 2 % of the least.

        Args:
            purpose: One of `purposes`.

        Returns:
            The forecast of the mechanism.

        Raises:
            InputError: No such purpose.
        """
        at = int(checks.choice(purpose, self.purposes, "purpose") == CLUSTERS)
        table = self.recommended
        if purpose == TABLE:
            return table
        # A number by hand has no interval, and what is not private is no choice.
        every = [each for each in self.forecasts if each.releases in (UNITS, AGGREGATES, ANSWERS)]
        known = [each for each in every if np.isfinite(each.errors[at]).all()]
        best = min(known, key=lambda each: each.errors[at][1])
        close = table.errors[at][1] ** 2 * (1 - TOLERANCE) <= best.errors[at][1] ** 2
        return table if close else best

    @property
    def recommended(self) -> Forecast:
        """The mechanism for private outcomes of units: uniform prior unless another is 2 % better.

        It needs no curator; variances are compared where they are largest.
        """
        best = self["uniform_prior"]
        limit = (1 - TOLERANCE) * best.standard_error[1] ** 2
        for each in self.forecasts:
            if each.releases == UNITS and each.standard_error[1] ** 2 < limit:
                best, limit = each, each.standard_error[1] ** 2
        return best

    def detectable(self, mechanism: str) -> float:
        """The least effect detected with the plan's power, at the largest standard error.

        A two-sided interval with normal quantiles; in the outcome's unit.

        Args:
            mechanism: Its name, as in `table`.

        Returns:
            In the outcome's unit.

        Raises:
            InputError: No such mechanism.
        """
        return student.detectable(self[mechanism].standard_error[1], self.power, self.confidence)

    def power_of(self, mechanism: str) -> float | None:
        """The probability that the plan's effect is detected, at the largest standard error.

        Args:
            mechanism: Its name, as in `table`.

        Returns:
            A probability; None if the plan has no effect.

        Raises:
            InputError: No such mechanism.
        """
        if self.effect is None:
            return None
        return student.power(self.effect, self[mechanism].standard_error[1], self.confidence)
