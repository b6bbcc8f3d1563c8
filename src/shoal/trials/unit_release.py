"""What a unit-level mechanism leaves: responses of units, their priors, and how to read them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import documents
from shoal.data.assigned_groups import AssignedGroups
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import FEWEST_LEVELS, Space
from shoal.privacy.noise import Noise
from shoal.trials import response
from shoal.trials.effects import Effect
from shoal.trials.few_units import warned
from shoal.trials.group_inference import effects_of_groups, warned_of_groups
from shoal.trials.inference import effects_of
from shoal.trials.parameters import ONE, Parameters
from shoal.trials.request import Units
from shoal.trials.unit_responses import (
    codes_of,
    columns_of,
    counts_agree,
    damaged,
    moments_of,
    unpacked,
)

KIND = "units"
# Draws of one release, told apart.
_ROUNDING, _RESPONDING = 0, 1


@dataclass(frozen=True, eq=False)
class UnitRelease:
    """Responses of all units and the priors they were drawn with: public.

    Attributes:
        space: Levels of the outcome.
        assignment: Clusters, arms, sizes.
        parameters: The mechanism's whole numbers.
        pooled: Whether all clusters share the prior of an arm (cluster-free).
        prior: Whole numbers of 2^-32, clusters x arms x K, or 1 x arms x K if pooled.
        counts: Responses on each level in use, clusters x arms x K.
        responses: Level of each named unit among those in use, in the assignment's order; None
            for units without names.
    """

    space: Space
    assignment: Assignment
    parameters: Parameters
    pooled: bool
    prior: NDArray[np.int64]
    counts: NDArray[np.int64]
    responses: NDArray[np.int64] | None

    @cached_property
    def levels(self) -> NDArray[np.float64]:
        """The levels in use, in the outcome's unit."""
        return self.space.array[list(self.parameters.kept)]

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Level of each unit among those in use; rising within a group if units have no names."""
        return codes_of(self.counts, self.responses)

    @cached_property
    def omega(self) -> NDArray[np.float64]:
        """Debiased outcome of each level, clusters x arms x K."""
        flat = self.prior.reshape(-1, self.parameters.levels)
        found = response.debiased(self.levels, flat, self.parameters).reshape(self.prior.shape)
        return np.broadcast_to(found, self.counts.shape)

    @cached_property
    def debiased(self) -> NDArray[np.float64]:
        """Debiased outcome of each unit, in the assignment's order."""
        flat = self.omega.reshape(-1, self.parameters.levels)
        return np.asarray(flat[self.assignment.group, self.codes])

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean above the lowest level and variance (divisor d - 1, NaN for one unit) of omega.

        Differences of means keep their digits, wherever the levels are.

        Returns:
            Clusters x arms each.
        """
        return moments_of(self.counts, self._above, self.assignment.sizes)

    def effects(
        self, confidence: float, groups: AssignedGroups | None = None
    ) -> tuple[Effect, ...]:
        """Every arm against the control; standard errors contain the mechanism's variance.

        Args:
            confidence: Of each interval on its own.
            groups: Groups that were assigned whole; None if units were, one by one.
        """
        if groups is None:
            mean, spread = self.moments()
            found = effects_of(self.assignment, mean, spread, confidence=confidence)
            return warned(found, self.counts, self._above)
        each = np.broadcast_to(self._above, self.counts.shape).reshape(-1, self.parameters.levels)
        above = each[self.assignment.group, self.codes]
        parts = self.moments(), above
        found = effects_of_groups(self.assignment, groups, *parts, confidence)
        return warned_of_groups(warned(found, self.counts, self._above))

    @cached_property
    def _above(self) -> NDArray[np.float64]:
        """What each response says above the lowest level."""
        flat, away = self.prior.reshape(-1, self.parameters.levels), self.levels - self.levels[0]
        found = response.debiased(away, flat, self.parameters)
        return np.asarray(found.reshape(self.prior.shape))

    def table(self) -> pa.Table:
        """One row a unit: cluster, arm, unit if named, outcome, debiased."""
        told = {"outcome": self._outcomes().take(self.codes), "debiased": pa.array(self.debiased)}
        return pa.table({**columns_of(self.assignment), **told})

    def priors(self) -> pa.Table:
        """One row a cluster, arm and level: the share of the level in the prior."""
        assignment, (_clusters, arms, levels) = self.assignment, self.prior.shape
        row = np.arange(self.prior.size)
        home = np.zeros(len(row), dtype=np.int64) if self.pooled else row // (arms * levels)
        names = pa.array(["all"]) if self.pooled else assignment.clusters
        return pa.table(
            {
                "cluster": names.take(home),
                "arm": assignment.arms.take(row // levels % arms),
                "outcome": self._outcomes().take(row % levels),
                "share": pa.array(self.prior.ravel() / ONE),
            }
        )

    def _outcomes(self) -> pa.Array[Any]:
        kept = list(self.parameters.kept)
        labels = self.space.labels
        return pa.array([labels[at] for at in kept] if labels else self.levels)

    def to_document(self) -> documents.Document:
        """What was released, as a JSON object.

        Units without names are interchangeable: how many gave each response says all.
        """
        given = self.responses
        return {
            "kind": KIND,
            "prior": documents.pack_integers(self.prior.ravel()),
            "counts": documents.pack_integers(self.counts.ravel()),
            "responses": None if given is None else documents.pack_integers(given),
        }

    @classmethod
    def from_document(
        cls,
        document: documents.Document,
        space: Space,
        assignment: Assignment,
        mechanism: documents.Document,
    ) -> UnitRelease:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        parameters = parameters_of(mechanism["parameters"], space.size)
        shape = (*assignment.sizes.shape, parameters.levels)
        pooled = bool(mechanism["pooled"])
        given = document["responses"]
        found = cls(
            space,
            assignment,
            parameters,
            pooled,
            unpacked(document, "prior", (1, *shape[1:]) if pooled else shape),
            unpacked(document, "counts", shape),
            None if given is None else unpacked(document, "responses", (assignment.n,)),
        )
        if not found._agrees():
            raise damaged()
        return found

    def _agrees(self) -> bool:
        """Whether numbers fit each other: what follows need not ask again."""
        # Sums of absurd numbers wrap: what is above the largest allowed is refused before.
        return (
            int(self.prior.max()) <= ONE
            and bool((self.prior.sum(axis=2) == ONE).all())
            and int(self.prior.min()) >= self.parameters.floor
            and counts_agree(self.assignment, self.counts, self.responses)
        )


def draw_units(
    units: Units, space: Space, parameters: Parameters, noise: Noise, *, pooled: bool
) -> UnitRelease:
    """Round outcomes to levels, draw priors and responses (paper 003, Algorithm 2).

    Guarantees: label differential privacy with `parameters.epsilon(delta)` for every delta; the
    histogram's loss is attained and the response's is that of the floor. Order and shape of what is
    released depend on public columns alone. Every unit has words of its own, independent and alike:
    without names only counts of each group are released, whose distribution is that of any order of
    rows.

    Args:
        units: The outcomes. Private.
        space: Levels of the outcome.
        parameters: The mechanism's whole numbers.
        noise: Where randomness comes from.
        pooled: Whether all clusters share the prior of an arm.
    """
    assignment = units.assignment
    clusters, arms = assignment.sizes.shape
    codes = space.encode(units.outcomes, noise.bits(assignment.n, _ROUNDING), parameters.kept)
    group = assignment.group % arms if pooled else assignment.group
    sizes = assignment.sizes.sum(axis=0) if pooled else assignment.sizes.ravel()
    prior = _prior(codes, group, sizes, parameters, noise)
    given = response.respond(codes, group, prior, parameters, noise.bits(assignment.n, _RESPONDING))
    counts = response.tabulate(given, assignment.group, clusters * arms, parameters.levels)
    return UnitRelease(
        space,
        assignment,
        parameters,
        pooled,
        prior.reshape(1 if pooled else clusters, arms, parameters.levels),
        counts.reshape(clusters, arms, parameters.levels),
        # Rows without names may follow the outcomes: their order is forgotten here.
        None if assignment.units is None else given,
    )


def _prior(
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    sizes: NDArray[np.int64],
    parameters: Parameters,
    noise: Noise,
) -> NDArray[np.int64]:
    shape = (len(sizes), parameters.levels)
    if parameters.weight == 0:
        return response.prior_of(np.zeros(shape, dtype=np.int64), sizes, parameters)
    counts = response.tabulate(codes, group, *shape)
    steps = (counts * parameters.weight).ravel().tolist()
    noisy = noise.add_laplace(steps, parameters.lattice_bits)
    # Floating-point shares are made of noisy numbers only: nothing private is left to protect.
    return response.prior_of(np.array(noisy, dtype=np.int64).reshape(shape), sizes, parameters)


def parameters_of(document: documents.Document, levels: int) -> Parameters:
    """The parameters of a document, for a space of some levels.

    Raises:
        DocumentError: They fit no such space.
    """
    kept = kept_of(document["kept"], levels)
    if any(type(number) is not int for name, number in document.items() if name != "kept"):
        raise damaged()
    return Parameters(**{**document, "kept": kept})


def kept_of(positions: list[int], levels: int) -> tuple[int, ...]:
    """Positions of the levels in use, of a document.

    Args:
        positions: As the document has them.
        levels: Of the space.

    Raises:
        DocumentError: They are no positions of it.
    """
    whole = all(type(each) is int for each in positions) and len(positions) >= FEWEST_LEVELS
    rising = whole and all(low < high for low, high in itertools.pairwise(positions))
    if not rising or positions[0] < 0 or positions[-1] >= levels:
        raise damaged()
    return tuple(positions)
