"""What an aggregate mechanism leaves: noisy numbers of clusters, and how to read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from shoal import documents
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError
from shoal.privacy.noise import Noise
from shoal.trials import response
from shoal.trials.aggregates import Contrast
from shoal.trials.effects import ClusterEffects, Effect, Inference
from shoal.trials.few_units import kurtosis, units_that_count, warned_of
from shoal.trials.histogram import NoisyHistogram
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson
from shoal.trials.inference import super_population
from shoal.trials.request import Units

KIND = "clusters"
_ROUNDING = 0
_THESE_UNITS = "The effect on these units, over the assignment and the mechanism."
_UNITS = "The effect in a population that the units of this one cluster were drawn from."
Aggregate: TypeAlias = NoisyHorvitzThompson | NoisyHistogram
KINDS: dict[str, type[Aggregate]] = {
    "noisy_horvitz_thompson": NoisyHorvitzThompson,
    "noisy_histogram": NoisyHistogram,
}


@dataclass(frozen=True, eq=False)
class AggregateRelease:
    """Noisy whole numbers of clusters, and what they mean: public.

    Attributes:
        space: Levels of the outcome.
        assignment: Clusters, arms, sizes.
        aggregate: The mechanism's whole numbers.
        released: What it drew.
    """

    space: Space
    assignment: Assignment
    aggregate: Aggregate
    released: list[int]

    def effects(self, confidence: float) -> tuple[Effect, ...]:
        """Every arm against the control; standard errors contain the mechanism's variance."""
        found = self.aggregate.effects(self.released)
        effects = [_effect(each, self.assignment, confidence) for each in found]
        units = units_that_count(self.assignment.sizes)
        return tuple(
            # Where the mechanism's noise is most of the error, that is known exactly.
            effect if each.noise > each.sampling + each.pool else warned_of(effect, told)
            for each, effect in zip(found, effects, strict=True)
            for told in [units[[0, each.arm]] / self._kurtosis(each.arm)]
        )

    def _kurtosis(self, arm: int) -> float:
        """Of the noisy outcomes of an arm and control; 1 where only differences are released."""
        if not isinstance(self.aggregate, NoisyHistogram):
            return 1.0
        share = np.maximum(self.aggregate.shares(self.released), 0.0)
        counts = share * self.assignment.sizes[:, :, None].astype(np.float64)
        if not (counts[:, [0, arm]].sum(axis=(0, 2)) > 0).all():
            return 1.0
        levels = self.space.array - self.space.array[0]
        return kurtosis(counts, np.broadcast_to(levels, counts.shape), arm)

    def table(self) -> pa.Table:
        """Noisy shares of the levels in every group, or noisy differences of every cluster."""
        if isinstance(self.aggregate, NoisyHistogram):
            return self._shares(self.aggregate)
        assignment, found = self.assignment, self.aggregate.effects(self.released)
        clusters = len(assignment.clusters)
        home = np.tile(np.arange(clusters), len(found))
        arm = np.repeat([each.arm for each in found], clusters)
        noise = np.concatenate([each.noise_variance for each in found])
        return pa.table(
            {
                "cluster": assignment.clusters.take(home),
                "arm": assignment.arms.take(arm),
                "units": pa.array(assignment.sizes[home, arm]),
                "control_units": pa.array(assignment.sizes[home, 0]),
                "difference": pa.array(np.concatenate([each.difference for each in found])),
                "noise_standard_error": pa.array(np.sqrt(noise)),
            }
        )

    def _shares(self, aggregate: NoisyHistogram) -> pa.Table:
        """One row a cluster, arm and level; unbiased shares may lie below 0."""
        assignment, share = self.assignment, aggregate.shares(self.released)
        _, arms, levels = share.shape
        row = np.arange(share.size)
        labels = self.space.labels
        outcomes = pa.array(list(labels)) if labels else pa.array(self.space.levels)
        return pa.table(
            {
                "cluster": assignment.clusters.take(row // (arms * levels)),
                "arm": assignment.arms.take(row // levels % arms),
                "units": pa.array(assignment.sizes.ravel()[row // levels]),
                "outcome": outcomes.take(row % levels),
                "share": pa.array(share.ravel()),
            }
        )

    def to_document(self) -> documents.Document:
        """What was released, as a JSON object."""
        return {"kind": KIND, "numbers": list(self.released)}

    @classmethod
    def from_document(
        cls,
        document: documents.Document,
        space: Space,
        assignment: Assignment,
        mechanism: documents.Document,
    ) -> AggregateRelease:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        aggregate = KINDS[mechanism["name"]].from_document(mechanism["aggregate"])
        numbers = [int(number) for number in document["numbers"]]
        if (
            not np.array_equal(aggregate.sizes, assignment.sizes)
            or aggregate.levels != space.levels
        ):
            raise DocumentError(
                "a mechanism for other groups or levels than the trial's",
                "a document written by shoal",
                "fetch it again, or have it delivered from the ledger",
            )
        return cls(space, assignment, aggregate, numbers)


def draw_aggregate(
    units: Units, space: Space, aggregate: Aggregate, noise: Noise
) -> AggregateRelease:
    """Round outcomes to levels, count them and draw (docs/theory/trials.md#aggregates).

    Guarantee: label differential privacy with `aggregate.exact_epsilon`. Counts of each group are a
    sum over units, whose words are independent and alike: no distribution depends on the order of
    rows.

    Args:
        units: The outcomes. Private.
        space: Levels of the outcome.
        aggregate: The mechanism's whole numbers.
        noise: Where randomness comes from.
    """
    assignment = units.assignment
    words = noise.bits(assignment.n, _ROUNDING)
    codes = space.encode(units.outcomes, words, range(space.size))
    sizes = assignment.sizes
    counts = response.tabulate(codes, assignment.group, sizes.size, space.size)
    released = aggregate.draw(counts.reshape(*sizes.shape, -1), noise)
    return AggregateRelease(space, assignment, aggregate, released)


def _effect(found: Contrast, assignment: Assignment, confidence: float) -> Effect:
    arms = assignment.arms.to_pylist()
    here = Inference(
        found.standard_error,
        found.interval(confidence),
        found.degrees_of_freedom,
        confidence,
        _THESE_UNITS,
    )
    there = replace(here, about=_UNITS)
    if len(found.difference) > 1:
        there = super_population(assignment.sizes, found.difference, confidence)
    names = tuple(assignment.clusters.to_pylist())
    clusters = ClusterEffects(names, found.difference, found.cluster_error, found.weight)
    return Effect(arms[found.arm], arms[0], found.value, here, there, clusters)
