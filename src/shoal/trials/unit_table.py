"""Plans tables of units, with a private response for each unit from a response table."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats, Ints
from shoal.documents.model import Integers, Model, Numbers
from shoal.errors import InputError
from shoal.files.text_table import TextTable
from shoal.intervals import student
from shoal.privacy.accounting import Stated, Step
from shoal.privacy.noise import Noise
from shoal.trials.assigned_groups import (
    by_group,
    effects_of_groups,
    grouped,
    refuse_texts_but_units,
)
from shoal.trials.best_table import AUTO_LEVELS, Proof, best_table
from shoal.trials.cluster_prior import SIDES, ClusterPrior, PriorChoice, prior_of
from shoal.trials.domain import Domain
from shoal.trials.effect_estimation import Cells, effects_of, warned
from shoal.trials.expected import Expected, effect_weights, kinds_of
from shoal.trials.plan import Plan, Request
from shoal.trials.randomiser import PART, ResponseTable, even, with_prior
from shoal.trials.results import Effects

# The draws of one release.
_ROUNDING = 0
_RESPONDING = 1
# Numbers of levels in use that are tried.
_LEVELS = (2, 3, 4, 5, 6, 8, 11, 16, 24, 32, 64, 128, 256)
# Fewer levels may have variances above those of all levels by this part at most.
_TOLERANCE = 0.02
# This part of an expected distribution is spread evenly, so that unexpected levels have a bound.
_EVEN = 0.02


class TableRequest(Request):
    """A table of units, as it was asked for."""

    mechanism: Literal["best_table", "uniform_prior", "cluster_prior"]
    levels: int | Literal["auto", "all"]
    expected: Expected | None = None


class PriorRequest(TableRequest):
    """A table of units whose prior is a noisy histogram."""

    mechanism: Literal["cluster_prior"] = "cluster_prior"
    prior: ClusterPrior


class TableChoice(Model):
    """The table: positions of levels in use, responses above the lowest, their numbers, a proof."""

    kept: Integers
    above: Numbers
    numbers: Integers
    proof: Proof | None = None

    @classmethod
    def with_table(
        cls, kept: tuple[int, ...], table: ResponseTable, proof: Proof | None = None
    ) -> "TableChoice":
        """Returns the choice of a table on these levels."""
        numbers = table.numbers.ravel()
        return cls(kept=np.array(kept), above=table.above, numbers=numbers, proof=proof)

    def table(self, domain: Domain) -> ResponseTable:
        """Returns the responses with their exact probabilities."""
        numbers = self.numbers.reshape(len(self.above), len(self.kept))
        return ResponseTable(domain.array[self.kept], self.above, numbers)

    def bound(self, domain: Domain) -> float | None:
        """Returns a bound below which no unbiased response of this loss has its variance."""
        return None if self.proof is None else max(0.0, self.proof.bound(domain.array[self.kept]))


class TableDrawn(Model):
    """Noisy histograms in steps, units of each cell by response, and responses of named units."""

    histogram: tuple[int, ...] = ()
    counts: Integers
    responses: Integers | None = None


@dataclass(frozen=True, eq=False, repr=False)
class TablePlan(Plan):
    """A plan of a table of units: see `trials.Experiment.table`."""

    request: TableRequest

    kind: ClassVar[str] = "table"
    request_model: ClassVar[type[Request]] = TableRequest
    chosen_model: ClassVar[Any] = TableChoice
    drawn_model: ClassVar[type[Model]] = TableDrawn

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self.request.mechanism

    @property
    def levels(self) -> Floats:
        """The levels in use, in the outcome's unit."""
        return np.asarray(self.domain.array[self.chosen.kept])

    @cached_property
    def response_table(self) -> ResponseTable:
        """The table that all units share, but for a cluster prior, which has one a group."""
        table: ResponseTable = self.chosen.table(self.domain)
        return table

    @property
    def own_steps(self) -> list[Step]:
        """The step of one response, whose loss is that of its table."""
        delta = self.request.delta
        return [Stated(self.response_table.epsilon(delta), delta)]

    @property
    def bound(self) -> float | None:
        """A bound below which no unbiased response of this loss has its variance."""
        found: float | None = self.chosen.bound(self.domain)
        return found

    @property
    def variance(self) -> float | None:
        """The largest variance of a response over the levels, or the mean that was made least."""
        proof = self.chosen.proof
        found = self.response_table.variances
        weights = None if proof is None else proof.mean_of
        return float(found.max() if weights is None else weights @ found)

    @property
    def responses(self) -> int:
        """The number of responses."""
        return len(self.response_table.above)

    def respond(self, outcomes: Floats, noise: Noise) -> TableDrawn:
        """Rounds outcomes to levels and draws a response for each, by one random word each.

        Formal guarantee: label differential privacy with `exact_epsilon`. Without names only counts
        of each cell are released, whose distribution is that of any order of rows.
        """
        design = self.design
        codes = self.domain.encode(outcomes, noise.bits(design.n, _ROUNDING), self.chosen.kept)
        histogram, tables = self._tables(codes, noise)
        words = noise.bits(design.n, _RESPONDING)
        given = np.empty_like(codes)
        for units, table in tables:
            given[units] = table.respond(codes[units], words[units])
        many = design.sizes.size * self.responses
        counts = np.bincount(design.cell_of_unit * self.responses + given, minlength=many)
        # The order of rows without names may follow the outcomes: it is forgotten here.
        named = None if design.units is None else given
        return TableDrawn(histogram=histogram, counts=counts, responses=named)

    def _tables(self, codes: Ints, noise: Noise) -> tuple[tuple[int, ...], Any]:
        """Returns the noisy histogram that is released, if any, and the table of each set of units.

        `codes` are the private positions of levels.
        """
        return (), [(slice(None), self.response_table)]

    def values(self, drawn: TableDrawn) -> Floats:
        """Returns responses less the lowest level, shape (cells, responses) or (1, responses)."""
        return self.response_table.above[None]

    def check_drawn(self, drawn: TableDrawn) -> None:
        """Refuse drawn numbers that do not fit the units of the plan."""
        self.values(drawn)
        sizes = self.design.sizes
        named = drawn.responses
        counts = drawn.counts.reshape(sizes.size, self.responses)
        complete = bool((counts.sum(axis=1) == sizes.ravel()).all())
        if (named is None) != (self.design.units is None) or not complete:
            raise ValueError
        if named is not None:
            place = self.design.cell_of_unit * self.responses + named
            if not np.array_equal(np.bincount(place, minlength=counts.size), counts.ravel()):
                raise ValueError

    def nameless(self, drawn: TableDrawn) -> TableDrawn:
        """Returns how many units have each response, without the response of each unit."""
        return drawn.model_copy(update={"responses": None})

    def codes(self, drawn: TableDrawn) -> Ints:
        """Returns the response of each unit, rising within a cell if units have no names."""
        if drawn.responses is not None:
            return drawn.responses
        cells = self.design.sizes.size
        return np.repeat(np.tile(np.arange(self.responses), cells), drawn.counts)

    def debiased(self, drawn: TableDrawn) -> Floats:
        """Returns the debiased outcome of each unit less the lowest level."""
        above = self.values(drawn)
        cell = self.design.cell_of_unit if len(above) > 1 else 0
        return np.asarray(above[cell, self.codes(drawn)])

    def read(
        self, drawn: TableDrawn, confidence: float, assigned: Any = None, unit: Any = None, **_: Any
    ) -> Effects:
        """Returns the effects of all arms; standard errors contain the mechanism's variance."""
        design = self.design
        above = self.values(drawn)
        sizes = design.sizes
        counts = drawn.counts.reshape(*sizes.shape, self.responses)
        responses = np.broadcast_to(above, (sizes.size, self.responses)).reshape(counts.shape)
        mean = (counts * responses).sum(axis=2) / sizes
        squares = (counts * (responses - mean[:, :, None]) ** 2).sum(axis=2)
        # `Cells.of` makes the variance of a single unit unknown.
        cells = Cells.of(sizes, mean, squares / np.maximum(sizes - 1, 1))
        group = None
        if assigned is None or isinstance(assigned, str):
            refuse_texts_but_units(assigned, unit)
            if not assigned and design.group is not None:
                group = design.group[design.kind_of_unit]
        else:
            group = grouped(design, assigned, unit)
        # Without privacy, no larger standard error of the effect is expected than `error`.
        plain = kinds_of(self.request.expected, self.domain).outcome_variance(self.domain).max()
        error = math.sqrt(float(effect_weights(sizes)[0].sum() * plain))
        if group is None:
            found = effects_of(design, cells, confidence)
            planned = student(math.inf, 0.95) * error
        else:
            sums = np.bincount(group, self.debiased(drawn)).astype(np.float64)
            found = effects_of_groups(by_group(design, group), cells, sums, confidence)
            planned = math.nan
        return Effects(tuple(warned(found, counts, responses)), planned)

    def table(self, drawn: TableDrawn, confidence: float) -> pa.Table:
        """Returns a row for each unit: cluster, arm, unit if named, response, debiased."""
        design = self.design
        kind = self.design.kind_of_unit
        columns: dict[str, Any] = {
            "cluster": design.clusters.take(design.cluster[kind]),
            "arm": design.arms.take(design.arm[kind]),
        }
        if design.units is not None:
            columns["unit"] = design.units
        columns["response"] = pa.array(self._names(self.codes(drawn)))
        columns["debiased"] = pa.array(self.levels[0] + self.debiased(drawn))
        return pa.table(columns)

    def _names(self, codes: Ints) -> Any:
        """Returns responses as outcomes if they are levels, otherwise as numbers from 0."""
        if self.mechanism == "best_table":
            return codes
        labels = self.domain.labels
        return (np.array(labels)[self.chosen.kept] if labels else self.levels)[codes]

    @property
    def reason(self) -> str:
        """The reason for the choice, in one sentence with its figures."""
        many = len(self.chosen.kept)
        size = self.domain.size
        part = f"all {size} levels" if many == size else f"{many} of {size} levels"
        if self.bound is None:
            return f"a uniform prior on {part}: an outcome is kept or replaced by one of them"
        kind = "worst" if self.chosen.proof.mean_of is None else "mean expected"
        return (
            f"a table of {self.responses} responses on {part}: its {kind} variance is "
            f"{self.variance:.4g}; no table at this loss has less than {self.bound:.4g}"
        )

    def _text(self) -> TextTable:
        """The plan as text: its loss, and the variance of a response under each level."""
        pairs = zip(self.levels, self.response_table.variances, strict=True)
        rows = [[f"{level:g}", f"{variance:.4g}"] for level, variance in pairs]
        return TextTable(
            self._head("table"), ["level", "variance of a response"], rows, [self.reason]
        )


@dataclass(frozen=True, eq=False, repr=False)
class PriorPlan(TablePlan):
    """A plan of a table of units whose prior is a noisy histogram of cluster and arm."""

    request: PriorRequest

    kind: ClassVar[str] = "cluster_prior"
    request_model: ClassVar[type[Request]] = PriorRequest
    chosen_model: ClassVar[Any] = PriorChoice

    @property
    def own_steps(self) -> list[Step]:
        """The steps of a histogram and of a response."""
        most = PART // len(self.chosen.kept)
        if not (0 < self.chosen.floor <= most and 0 < self.chosen.replaced < PART):
            raise LookupError
        found: list[Step] = self.chosen.steps(self.request.delta)
        return found

    @cached_property
    def response_table(self) -> ResponseTable:
        """The table of a uniform prior with this lambda, as the histogram is not known yet."""
        return with_prior(self.levels, self.chosen.replaced, even(len(self.levels)))

    @property
    def bound(self) -> float | None:
        """None, as no bound is known."""
        return None

    @property
    def variance(self) -> float | None:
        """None, as the histogram decides it."""
        return None

    @property
    def _group(self) -> Ints:
        """The histogram that each unit is in, of its cluster and arm, or of its arm."""
        arms = len(self.design.arms)
        cell = self.design.cell_of_unit
        return cell % arms if self.request.prior.pooled else cell

    def _tables(self, codes: Ints, noise: Noise) -> tuple[tuple[int, ...], Any]:
        """Returns the noisy histograms of all groups, and each group's units with its table."""
        group = self._group
        levels = self.responses
        sizes = np.bincount(group)
        counts = np.bincount(group * levels + codes, minlength=len(sizes) * levels)
        noisy = tuple(self.chosen.counts.add(counts.tolist(), noise))
        # Only noisy numbers decide the table of a group.
        priors = self.priors(noisy)
        ends = np.cumsum(sizes)
        units = np.split(np.argsort(group, kind="stable"), ends[:-1])
        tables = (with_prior(self.levels, self.chosen.replaced, prior) for prior in priors)
        return noisy, zip(units, tables, strict=True)

    def priors(self, noisy: tuple[int, ...]) -> Ints:
        """Returns the prior of each group in parts of 2^-31, from drawn numbers."""
        sizes = np.bincount(self._group)
        return prior_of(np.array(noisy).reshape(len(sizes), -1), sizes, self.chosen)

    def values(self, drawn: TableDrawn) -> Floats:
        """Returns responses less the lowest level, shape (cells, responses)."""
        outcomes = self.levels - self.levels[0]
        replaced = self.chosen.replaced / PART
        mean = self.priors(drawn.histogram) / PART @ outcomes
        found = (outcomes - replaced * mean[:, None]) / (1 - replaced)
        return np.tile(found, (self.design.sizes.size // len(found), 1))

    @property
    def reason(self) -> str:
        """The loss by the histogram, in one sentence."""
        prior = self.request.prior
        cost = float(self.chosen.counts.loss(SIDES))
        return (
            f"priors from histograms with noise of {prior.noise:.4g} a count, which costs "
            f"{cost:.4g} of epsilon; no share below {prior.floor:.4g}"
            + ("" if self.loss.delta else ": without a delta a uniform prior is better")
        )


@lru_cache(maxsize=64)
def least_table(
    domain: Domain, epsilon: Fraction, levels: int | str, expected: Expected | None
) -> TableChoice:
    """Returns the table of least variance, with its proof, on the number of levels asked for.

    `auto` asks for 32 levels at most. The largest variance of all levels is made least or, if
    outcomes are `expected`, the mean variance. Its weights are the expected shares of the levels; a
    fiftieth of all weight is spread evenly.
    """
    by_word = {"auto": min(domain.size, AUTO_LEVELS), "all": domain.size}
    how_many: Any = by_word.get(str(levels), levels)
    kept = domain.coarse(how_many)
    weights = None
    if expected is not None:
        kinds = kinds_of(expected, domain)
        share = kinds.share @ kinds.levels @ domain.moved_to(kept)
        weights = (1 - _EVEN) * share / share.sum() + _EVEN / len(kept)
        # Floating-point parts add up to 1 only nearly.
        weights = weights / weights.sum()
    return TableChoice.with_table(kept, *best_table(domain.array[list(kept)], epsilon, weights))


def uniform_table(
    domain: Domain,
    epsilon: Fraction,
    delta: Fraction,
    levels: int | str,
    expected: Expected | None,
) -> TableChoice:
    """Returns a uniform prior on the number of levels whose variances are nearest to the smallest.

    For each expectation, the predicted variance is divided by the smallest of all numbers of
    levels; the number of levels is taken whose largest ratio is smallest.
    """
    numbers = [domain.size if levels == "all" else levels]
    if levels == "auto":
        numbers = sorted({*(each for each in _LEVELS if each < domain.size), domain.size})
    kinds = kinds_of(expected, domain)
    plain = kinds.outcome_variance(domain)
    tried = []
    predicted = []
    for number in numbers:
        kept = domain.coarse(int(number))
        try:
            table = ResponseTable.uniform(domain.array[list(kept)], epsilon, delta)
        except InputError:
            # With so many levels no outcome would be kept.
            continue
        tried.append(TableChoice.with_table(kept, table))
        predicted.append(plain + kinds.added_variance(domain, kept, table.variances))
    if not tried:
        raise InputError(
            f"epsilon {float(epsilon):.3g} would replace every outcome by a random level",
            "raise epsilon, or use fewer levels",
        )
    variances = np.array(predicted)
    worst = (variances / variances.min(axis=0)).max(axis=1)
    if len(tried[-1].kept) == domain.size:
        # All levels are always within the tolerance of themselves.
        allowed = (variances <= variances[-1] * (1 + _TOLERANCE)).all(axis=1)
        worst[~allowed] = np.inf
    return tried[int(worst.argmin())]
