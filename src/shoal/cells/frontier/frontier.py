"""A frontier: errors of several methods against the privacy loss, as figures, table and text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from shoal import checks
from shoal.cells.frontier.errors import P, Point
from shoal.cells.frontier.points import Points
from shoal.cells.frontier.text import describe, notes
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon, round_up, show

if TYPE_CHECKING:
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
class Frontier(Points[P]):
    """Errors of several methods against the privacy loss, on the same cells; see `Points`."""

    def plan(self, method: str, epsilon: Amount) -> P:
        """The plan of a method at one of the losses, to be looked at, saved or released.

        Args:
            method: Its name, with its settings, as in `methods`.
            epsilon: One of the losses in `epsilons`.

        Returns:
            The plan, which spends at most this loss.

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

        Returns:
            One row a method and loss, then one a bound.
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
        """The table, what was left out and the notes, as a JSON object.

        Returns:
            Rows, methods that were left out, and notes.
        """
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


def _row(point: Point[P]) -> dict[str, object]:
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
