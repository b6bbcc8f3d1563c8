"""Forecasts from public numbers how exact each kind of release of a trial would be."""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from shoal import checks, documents, intervals
from shoal.arrays import Floats, Ints
from shoal.data.columns_in_memory import array
from shoal.errors import InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import Shown, TextTable, counted
from shoal.privacy.budget import Amount, check_epsilon, round_up, show
from shoal.trials.domain import Domain, domain_of
from shoal.trials.expected import Expected, effect_weights, kinds_of
from shoal.trials.histogram import fitted, mean_noise
from shoal.trials.plan import check_delta
from shoal.trials.questions.variances import MEANS_SHARE
from shoal.trials.unit_table import TableChoice, least_table, uniform_table

PLAIN = "no_privacy"
UNIFORM = "uniform_prior"
BEST = "best_table"
HISTOGRAM = "histogram"
QUESTIONS = "questions"
BY_HAND = "laplace_by_hand"
NAMES = (PLAIN, UNIFORM, BEST, HISTOGRAM, QUESTIONS, BY_HAND)
# Purposes of a release.
EFFECT = "effect"
CLUSTERS = "clusters"
TABLE = "table"
# The contents of a release.
UNITS = "units"
AGGREGATES = "aggregates"
EVERYTHING = "everything"
ANSWERS = "answers"
# A table of units is recommended where its variance is above the smallest by this part at most.
_TOLERANCE = 0.02
# The shares of arms unless given.
_SHARES = (0.5, 0.5)
# The smallest share; shares need not add up to 1.
_TINY = 1e-9
# The largest effect, in the outcome's unit.
_LARGEST = 1e50
_MOST_ARMS = 64
_MOST_UNITS = 2**48
_MOST_CLUSTERS = 10**6
_PURPOSES = {
    EFFECT: "if only effects of arms are wanted",
    CLUSTERS: "if effects by cluster are wanted (root mean square over clusters)",
    TABLE: "if later analyses are not known yet (of the effect)",
}


@dataclass(frozen=True)
class ForecastRow:
    """The errors that are expected of one kind of release.

    Attributes:
        mechanism: The name of the mechanism; `no_privacy` if there is none.
        releases: `units`, `aggregates`, `answers`, `one number` or `everything`.
        standard_error: The smallest and largest standard error of the effect over all expectations,
            in the outcome's unit; with several arms, the root mean square over their effects.
        cluster_error: The same for the effect in one cluster, as the root mean square over
            clusters; not a number where no effects by cluster are released.
        detectable: The smallest effect that is told from 0 with the wanted power, at the largest
            standard error, in the outcome's unit.
        power: The probability that the stated effect is told from 0, at the largest standard error;
            None if no effect was stated.
        reason: One sentence that describes the noise.
    """

    mechanism: str
    releases: str
    standard_error: tuple[float, float]
    cluster_error: tuple[float, float]
    detectable: float
    power: float | None
    reason: str

    def errors(self, purpose: str) -> tuple[float, float]:
        """Returns the errors of effects by cluster for that purpose, else of the mean effect."""
        return self.cluster_error if purpose == CLUSTERS else self.standard_error


class _Noise(NamedTuple):
    """A kind of release, and what it adds to the variances of a trial without privacy.

    `added` is added to the variance of each unit, one number or one for each expectation, and
    `effects` to the variance of the mean effect and to the mean one of effects by cluster.
    """

    mechanism: str
    releases: str
    reason: str
    added: Floats | float = 0.0
    effects: Sequence[float] = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Forecast(Shown, Tabular):
    """The expected errors of each kind of release of one trial: public, nothing is spent.

    Source: docs/theory/experiments.md#choice-of-parameters; docs/theory/experiments.md#inference.

    Attributes:
        sizes: Units of each cell, shape (clusters, arms), control first.
        domain: Levels of the outcome.
        exact_epsilon: The privacy loss of one outcome.
        exact_delta: The delta of (epsilon, delta)-DP, which only a uniform prior uses.
        expected: What is publicly expected of outcomes, or None for a family of expectations.
        effect: Effect whose power is computed, in the outcome's unit, or None.
        confidence: Confidence of the intervals.
        power: Probability with which the detectable effect is told from 0.

    Example:
        >>> from shoal import trials
        >>> found = trials.forecast(6000, trials.Domain.binary(), epsilon=1, clusters=3, effect=0.1)
        >>> found.recommend("effect").mechanism, 0.9 < found["uniform_prior"].power < 1
        ('questions', True)
    """

    sizes: Ints = field(repr=False)
    domain: Domain
    exact_epsilon: Fraction
    exact_delta: Fraction
    expected: Expected | None
    effect: float | None
    confidence: float
    power: float

    @cached_property
    def rows(self) -> tuple[ForecastRow, ...]:
        """The errors of each kind of release; the first row is without privacy."""
        plain = kinds_of(self.expected, self.domain).outcome_variance(self.domain)
        weights = effect_weights(self.sizes).sum(axis=(1, 2))
        found = []
        for each in self._releases():
            of_effect, of_clusters = (
                _extreme_errors(weight * (plain + each.added) + noise)
                for weight, noise in zip(weights, each.effects, strict=True)
            )
            largest = of_effect[1]
            power = None
            if self.effect is not None:
                power = intervals.power(self.effect, largest, self.confidence)
            detectable = intervals.detectable(largest, self.power, self.confidence)
            row = ForecastRow(
                each.mechanism,
                each.releases,
                of_effect,
                of_clusters,
                detectable,
                power,
                each.reason,
            )
            found.append(row)
        return tuple(found)

    def _releases(self) -> Iterator[_Noise]:
        """Yields all kinds of releases that can be made; the first is without privacy."""
        domain = self.domain
        sizes = self.sizes
        epsilon = self.exact_epsilon
        kinds = kinds_of(self.expected, domain)

        def added(chosen: TableChoice) -> Floats:
            variances = chosen.table(domain).variances
            return kinds.added_variance(domain, tuple(chosen.kept.tolist()), variances)

        yield _Noise(PLAIN, EVERYTHING, "no privacy")
        uniform = uniform_table(domain, epsilon, self.exact_delta, "auto", self.expected)
        reason = f"a uniform prior on {len(uniform.kept)} of {domain.size} levels"
        yield _Noise(UNIFORM, UNITS, reason, added(uniform))
        with suppress(InputError):
            # Tables and counts are not made for every epsilon and domain.
            best = least_table(domain, epsilon, "auto", self.expected)
            reason = (
                f"a table of {len(best.above)} responses on {len(best.kept)} of {domain.size} "
                f"levels: no unbiased one has a variance below {best.bound(domain):.4g}"
            )
            yield _Noise(BEST, UNITS, reason, added(best))
            noise = mean_noise(fitted(self.n, epsilon), domain, sizes)
            # Weights are those of units, and noise is that of means.
            of_effect, of_clusters = (
                float((weight * sizes * noise).sum()) for weight in effect_weights(sizes)
            )
            reason = f"noise of {math.sqrt(of_effect):.3g} in the effect, whatever the outcomes are"
            yield _Noise(HISTOGRAM, AGGREGATES, reason, effects=[of_effect, of_clusters])
        asked, by_hand = noise_of_effects(sizes, domain.width, float(epsilon))
        for name, releases, deviations in (
            (QUESTIONS, ANSWERS, asked),
            (BY_HAND, "one number", (by_hand, math.nan)),
        ):
            reason = f"noise of {deviations[0]:.3g} in the effect"
            yield _Noise(name, releases, reason, effects=[each**2 for each in deviations])

    @property
    def n(self) -> int:
        """The number of units."""
        return int(self.sizes.sum())

    @property
    def epsilon(self) -> float:
        """The privacy loss of one outcome, rounded upwards."""
        return round_up(self.exact_epsilon)

    def __getitem__(self, mechanism: str) -> ForecastRow:
        """The row of a mechanism by its name."""
        by_name = {each.mechanism: each for each in self.rows}
        return by_name[checks.choice(mechanism, tuple(by_name), "mechanism")]

    @property
    def purposes(self) -> tuple[str, ...]:
        """The purposes of a release: `effect`, `clusters` where there are several, and `table`."""
        return (EFFECT, CLUSTERS, TABLE) if len(self.sizes) > 1 else (EFFECT, TABLE)

    def recommend(self, purpose: str) -> ForecastRow:
        """Chooses the kind of release whose largest variance is smallest for a purpose.

        For a table, from which anything can be computed later, a uniform prior is chosen, which
        needs no curator, unless the variance of the best table is 2% smaller. The same table is
        chosen for the effect, or for effects by cluster, if its variance is within 2% of the
        smallest.

        Args:
            purpose: One of `purposes`.

        Returns:
            The row.

        Raises:
            InputError: No such purpose.
        """
        checks.choice(purpose, self.purposes, "purpose")
        table = self[UNIFORM]
        for each in self.rows:
            ratio = each.standard_error[1] ** 2 / table.standard_error[1] ** 2
            if each.mechanism == BEST and ratio < 1 - _TOLERANCE:
                table = each
        if purpose == TABLE:
            return table
        # A number by hand has no interval, and a release without privacy is no choice.
        private = [each for each in self.rows if each.releases in (UNITS, AGGREGATES, ANSWERS)]
        usable = [each for each in private if np.isfinite(each.errors(purpose)).all()]
        best = min(usable, key=lambda each: each.errors(purpose)[1])
        if table.errors(purpose)[1] ** 2 * (1 - _TOLERANCE) <= best.errors(purpose)[1] ** 2:
            return table
        return best

    def table(self) -> pa.Table:
        """The forecast as a table, with the columns of `against`.

        Returns:
            One row a mechanism: standard errors, least detectable effect and power.
        """
        return self.against()

    def against(
        self,
        *,
        n: Sequence[int] | None = None,
        epsilon: Sequence[Amount] | None = None,
        clusters: Sequence[int] | None = None,
    ) -> pa.Table:
        """The forecast for all combinations of other numbers of units, losses and clusters.

        If `n` or `clusters` is given, clusters have equal sizes and arms the shares that they have
        here; if neither is, the sizes stay as they are.

        Args:
            n: Numbers of units in all.
            epsilon: Losses of one outcome.
            clusters: Numbers of clusters.

        Returns:
            One row for each combination and mechanism: n, clusters, epsilon, mechanism, releases,
            least_standard_error, standard_error (the largest), detectable, power (null if no effect
            was given).

        Raises:
            InputError: Numbers that make no forecast.

        Example:
            >>> from shoal import trials
            >>> found = trials.forecast(1000, trials.Domain.binary(), epsilon=1)
            >>> error = found.against(n=[1000, 4000])["standard_error"].to_numpy()
            >>> len(error), round(float(error[0] / error[6]), 3)
            (12, 2.0)
        """
        fixed = n is None and clusters is None
        shares = self.sizes.sum(axis=0) / self.n
        rows = []
        for units, groups, loss in itertools.product(
            [self.n] if n is None else checks.items(n, "n"),
            [len(self.sizes)] if clusters is None else checks.items(clusters, "clusters"),
            [self.exact_epsilon] if epsilon is None else checks.items(epsilon, "epsilon"),
        ):
            sizes = self.sizes if fixed else even(units, groups, shares.tolist())
            varied = replace(self, sizes=sizes, exact_epsilon=check_epsilon(loss))
            rows += [
                {
                    "n": varied.n,
                    "clusters": len(sizes),
                    "epsilon": varied.epsilon,
                    "mechanism": row.mechanism,
                    "releases": row.releases,
                    "least_standard_error": row.standard_error[0],
                    "standard_error": row.standard_error[1],
                    "detectable": row.detectable,
                    "power": row.power,
                }
                for row in varied.rows
            ]
        found = pa.Table.from_pylist(rows)
        # A column of nulls alone would have no type.
        return found.set_column(8, "power", found["power"].cast(pa.float64()))

    def to_document(self) -> documents.Document:
        """The forecast as a JSON object.

        Returns:
            The request, each row, and the recommendations.
        """
        return {
            "units": self.n,
            "clusters": len(self.sizes),
            "arms": self.sizes.shape[1],
            "domain": asdict(self.domain),
            "epsilon": str(self.exact_epsilon),
            "delta": str(self.exact_delta),
            "expected": None if self.expected is None else asdict(self.expected),
            "effect": self.effect,
            "confidence": self.confidence,
            "power": self.power,
            "mechanisms": self.table().drop_columns(["n", "clusters", "epsilon"]).to_pylist(),
            "recommended_for": {each: self.recommend(each).mechanism for each in self.purposes},
        }

    def _text(self) -> TextTable:
        """Returns the forecast as text, with a row for each kind of release."""
        clusters, arms = self.sizes.shape
        head = (
            f"trial of {self.n:,} units in {counted(clusters, 'cluster')}, {arms} arms, epsilon "
            f"{show(self.exact_epsilon)} for one outcome"
        )
        rows = [
            [
                f"{each.mechanism} ({each.releases})",
                _range(each.standard_error),
                f"{each.detectable:.3g}",
                "" if each.power is None else f"{each.power:.0%}",
            ]
            for each in self.rows
        ]
        columns = "mechanism (releases)", "standard error", "detectable", "power"
        return TextTable(head, columns, rows, self._notes())

    def _notes(self) -> list[str]:
        """Returns the sentences below the table: what it assumes, and what is recommended."""
        basis = "the given expectation" if self.expected else "a range of possible outcomes"
        moved = "outcomes outside the domain are moved to its nearest level"
        notes = [
            f"standard errors of a constant effect for {basis}; recommendations use the largest",
            (
                "assumed: units are assigned one by one (within clusters, if given); if whole "
                "groups are, errors are larger, and study.ask() predicts them"
            ),
            (
                f"detectable: effect whose {100 * self.confidence:.4g}% interval excludes 0 with "
                f"probability {self.power:.4g}"
            ),
            "texts that are not a label count as the first level" if self.domain.labels else moved,
        ]
        for purpose in self.purposes:
            best = self.recommend(purpose)
            plain = self.rows[0].errors(purpose)[1]
            ratio = best.errors(purpose)[1] / plain
            error = _range(best.errors(purpose))
            notes.append(
                f"recommended {_PURPOSES[purpose]}: {best.mechanism}, standard error {error} "
                f"({ratio:.2f} times non-private)"
            )
        if self.recommend(EFFECT).releases == ANSWERS:
            notes.append("questions: `shoal trial ask --effect`, in Python study.ask().effect()")
        return [*notes, self.recommend(TABLE).reason]


@np.errstate(all="ignore")
def forecast(
    sizes: ArrayLike | int,
    domain: Domain | str,
    epsilon: Amount,
    *,
    delta: Amount = 0,
    clusters: int | None = None,
    shares: Sequence[float] | None = None,
    expected: Expected | None = None,
    effect: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
) -> Forecast:
    """Expected standard errors, powers and least detectable effects of all kinds of releases.

    Variances over assignment and mechanism are exact for the expected outcomes. Nothing private
    goes in.

    Source: docs/theory/experiments.md#private-responses; errata 12, 14, 15.

    Args:
        sizes: Units of each cell, shape (clusters, arms), control first; or units in all.
        domain: Levels of the outcome: a `trials.Domain`, or a text such as `binary`.
        epsilon: The privacy loss of one outcome.
        delta: The delta of (epsilon, delta)-DP, which only a uniform prior uses.
        clusters: Number of clusters of equal size, if `sizes` is one number; 1 unless given.
        shares: Shares of the arms, control first, if `sizes` is one number; halves unless given.
        expected: What is publicly expected of outcomes; None for a family of expectations, of which
            the largest standard error counts.
        effect: Effect whose power is computed, in the outcome's unit.
        confidence: Confidence of two-sided normal intervals, above 0 and below 1.
        power: Probability with which the detectable effect is told from 0.

    Returns:
        A row for every kind of release; nothing is spent.

    Raises:
        InputError: Numbers that make no forecast.

    Example:
        >>> from shoal import trials
        >>> found = trials.forecast(6000, trials.Domain.binary(), epsilon=1, clusters=3)
        >>> round(found["uniform_prior"].detectable, 3)
        0.078
    """
    domain = domain_of(domain)
    todo = "give for example trials.Expected(mean=50, sd=10), or leave it out"
    checks.optional(expected, checks.instance, Expected, "expected", todo)
    confidence = checks.check_confidence(confidence)
    power = intervals.check_power(power)
    effect = checks.optional(effect, checks.number, "effect", least=-_LARGEST, most=_LARGEST)
    table = sizes_of(sizes, clusters, shares)
    losses = check_epsilon(epsilon), check_delta(delta)
    made = Forecast(table, domain, *losses, expected, effect, confidence, power)
    # Unusable confidences, powers and effects are found here.
    _ = made.rows
    return made


def sizes_of(
    sizes: ArrayLike | int, clusters: int | None = None, shares: Sequence[float] | None = None
) -> Ints:
    """Returns units of each cell, from a table or from their number and even clusters."""
    if isinstance(sizes, Integral | bool):
        parts = _SHARES if shares is None else shares
        return even(sizes, 1 if clusters is None else clusters, parts)
    if clusters is not None or shares is not None:
        raise InputError(
            "clusters or shares are given together with sizes of cells",
            "give either a table of sizes, or units, clusters and shares",
        )
    return _checked(sizes)


def noise_of_effects(
    sizes: Ints, width: float, epsilon: float
) -> tuple[tuple[float, float], float]:
    """Returns the standard deviations of the noise of effects as questions, and of one by hand.

    The first two are those of the mean effect and, as a root mean square, of effects by cluster, if
    both are asked as questions. The last is that of noise added to the mean effect alone.
    """
    effects = sizes.shape[1] - 1
    # Released effects share epsilon, since control is in all of them. Released means of arms need
    # not share it, since no unit is in two arms.
    weight = sizes.sum(axis=1, keepdims=True) / sizes.sum() / sizes
    largest = np.maximum(weight[:, 1:], weight[:, :1]).max(axis=0)
    by_effects = effects**2 * float((largest**2).mean())
    by_means = float((weight[:, 1:].max(axis=0) ** 2 + weight[:, 0].max() ** 2).mean())
    # If effects are released, a part of epsilon is spent on means of groups, by which variances are
    # estimated: only the rest is left for effects.
    rest = (1 - MEANS_SHARE) ** 2
    # In a cluster, an effect needs the larger of two weights, and the two means need both.
    larger = 1 / np.minimum(sizes[:, 1:], sizes[:, :1]) ** 2
    both = 1 / sizes[:, 1:] ** 2 + 1 / sizes[:, :1] ** 2
    of_clusters = min(effects**2 * float(larger.mean()) / rest, float(both.mean()))
    of_mean = min(by_effects / rest, by_means)
    by_hand = min(by_effects, by_means)

    def deviation(squared_scale: float) -> float:
        """Returns the standard deviation of Laplace noise of this scale for width and epsilon 1."""
        return math.sqrt(2 * squared_scale) * width / epsilon

    return (deviation(of_mean), deviation(of_clusters)), deviation(by_hand)


def _extreme_errors(variance: Floats) -> tuple[float, float]:
    """Returns the smallest and the largest standard error."""
    return float(np.sqrt(variance.min())), float(np.sqrt(variance.max()))


def _range(errors: tuple[float, float]) -> str:
    """Returns the smallest and the largest error as text, or one number if they look equal."""
    low, high = (f"{each:.3g}" for each in errors)
    return low if low == high else f"{low} to {high}"


def _checked(sizes: object) -> Ints:
    """Returns the units of each cell as whole numbers, shape (clusters, arms)."""
    found = array(sizes)
    if (
        found is None
        or found.ndim != 2
        or found.shape[1] < 2
        or not len(found)
        or found.dtype.kind not in "iu"
        or int(found.min()) < 1
        or float(found.astype(float).sum()) > _MOST_UNITS
    ):
        raise InputError(
            "the sizes are not a table of whole numbers above 0",
            "give a row for each cluster, a column for each arm, control first: [[500, 500], "
            "[80, 120]]",
        )
    return found.astype(np.int64)


def even(n: Any, clusters: Any, shares: Sequence[float]) -> Ints:
    """Returns sizes of cells, in which clusters are equal and arms have shares up to one unit."""
    given = checks.items(shares, "shares", least=2, most=_MOST_ARMS)
    part = np.array([checks.number(each, "a share", least=_TINY, most=1 / _TINY) for each in given])
    n = checks.whole(n, "units", least=1, most=_MOST_UNITS, example=6000)
    clusters = checks.whole(clusters, "clusters", least=1, most=_MOST_CLUSTERS, example=3)
    if n >= clusters:
        # The first clusters get the units that are left over.
        units = n // clusters + (np.arange(clusters) < n % clusters)
        # Sums over arms are rounded, so that the arms of a cluster add up to its units.
        ends = np.rint(units[:, None] * (np.cumsum(part) / part.sum())).astype(np.int64)
        sizes = np.diff(ends, axis=1, prepend=0)
        if sizes.min() > 0:
            return np.asarray(sizes)
    raise InputError(
        f"{n!r} units do not fill {clusters!r} clusters with {part.size} arms",
        "give two arms or more, with at least one unit each in every cluster: forecast(6000, "
        "domain, clusters=3, epsilon=1)",
    )
