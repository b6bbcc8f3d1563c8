"""A frontier: errors of several methods against the privacy loss, as figures, table and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from shoal import checks
from shoal.cells.frontier.errors import Bound, JointBound, LeftOut, Point, bound_of, jointly
from shoal.cells.frontier.text import describe, notes
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon
from shoal.privacy.displayed_loss import round_up, show

if TYPE_CHECKING:
    from fractions import Fraction

    from shoal.cells.plan import Plan
    from shoal.privacy.budget import Amount

LOWER_BOUND, JOINT_BOUND = "lower bound, each cell alone", "lower bound, all cells at once"
_TYPES: dict[str, pa.DataType] = {
    "method": pa.string(),
    "epsilon": pa.float64(),
    "asked": pa.float64(),
    "spent": pa.float64(),
    "cells": pa.int64(),
    "worst": pa.float64(),
    "median": pa.float64(),
    "geometric_mean": pa.float64(),
    "below_quarter": pa.int64(),
    "better_than_guessing": pa.int64(),
    "certified": pa.bool_(),
    "noise_worst": pa.float64(),
    "noise_median": pa.float64(),
    "gap": pa.float64(),
}


@dataclass(frozen=True, eq=False)
class Frontier:
    """Errors of several methods against the privacy loss, on the same cells.

    Attributes:
        points: One a method and loss, method by method, losses rising.
        left_out: Methods without a plan at a loss, with the reason.
    """

    points: tuple[Point, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that have a plan, with their settings."""
        return tuple(dict.fromkeys(each.method for each in self.points))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Losses at which methods are compared, rising."""
        return tuple(sorted({each.epsilon for each in self.points}))

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The lower bound at every loss where one is known: not where noise is Gaussian."""
        found = [
            bound_of([one for one in self.points if one.epsilon == at]) for at in self.epsilons
        ]
        return tuple(each for each in found if each is not None)

    @cached_property
    def joint_bounds(self) -> tuple[JointBound, ...]:
        """What no worst cell beats, at the losses where an optimal plan proves it."""
        found: dict[Fraction, float] = {}
        for each in self.points:
            worst = jointly(each)
            if worst > found.get(each.epsilon, 0.0):
                found[each.epsilon] = worst
        if len(self.bounds) < len(self.epsilons):
            # Gaussian noise may do better than what holds for Laplace noise.
            found = {each.epsilon: found[each.epsilon] for each in self.bounds
                     if each.epsilon in found}  # fmt: skip
        return tuple(JointBound(epsilon, found[epsilon]) for epsilon in sorted(found))

    def of(self, method: str) -> tuple[Point, ...]:
        """The points of one method, losses rising."""
        wanted = checks.text(method, "method")
        return tuple(each for each in self.points if each.method == wanted)

    def plan(self, method: str, epsilon: Amount) -> Plan:
        """The plan of a method at one of the losses, to be looked at, saved or released.

        Raises:
            InputError: There is none.
        """
        exact = check_epsilon(epsilon)
        for each in self.of(method):
            if each.epsilon == exact:
                return each.plan
        raise InputError(
            f"no plan {checks.shown(method)} at epsilon {checks.shown(epsilon)}",
            f"{', '.join(self.methods)} at {', '.join(show(each) for each in self.epsilons)}",
            "choose one of these",
        )

    def table(self) -> pa.Table:
        """One row a method and loss, then the lower bounds; errors over the range.

        `epsilon` is the loss that methods are compared at, `asked` the one the plan was asked
        for, `spent` the one it has. `worst`, `median` and `geometric_mean` are over cells.
        `noise_worst` and `noise_median` are for methods without a certificate, over the range they
        select; `gap` is the plan's own proof of how close to the best it is, where it has one.
        """
        rows = [_row(each) for each in self.points]
        for bound in self.bounds:
            spent = float(bound.spent)
            row = {"method": LOWER_BOUND, "epsilon": round_up(bound.epsilon), "spent": spent}
            rows.append(row | {"cells": len(bound.error), "certified": True} | vars(bound.figures))
        for joint in self.joint_bounds:
            epsilon = round_up(joint.epsilon)
            row = {"method": JOINT_BOUND, "epsilon": epsilon, "spent": epsilon}
            rows.append(row | {"certified": True, "worst": joint.worst})
        return pa.Table.from_pylist(rows, pa.schema(_TYPES))

    def to_document(self) -> dict[str, object]:
        """The table, what was left out and the notes, as a JSON object."""
        left_out = [
            {"method": each.method, "epsilon": round_up(each.epsilon), "reason": each.reason}
            for each in self.left_out
        ]
        return {
            "statistics": [each.name for each in self.points[0].plan.statistics],
            "rows": self.table().to_pylist(),
            "left_out": left_out,
            "notes": notes(self),
        }

    def __str__(self) -> str:
        """The worst and the median cell of every method at every loss, as an aligned table."""
        return describe(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Frontier of {len(self.methods)} methods at {len(self.epsilons)} losses>"


def _row(point: Point) -> dict[str, object]:
    noise, plan = point.noise_figures, point.plan
    return vars(point.figures) | {
        "method": point.method,
        "epsilon": round_up(point.epsilon),
        "asked": round_up(plan.request.epsilon or point.epsilon),
        "spent": plan.epsilon,
        "cells": len(plan.released),
        "certified": plan.certified,
        "noise_worst": noise and noise.worst,
        "noise_median": noise and noise.median,
        "gap": plan.gap,
    }
