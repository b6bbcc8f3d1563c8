"""The columns of an experiment: public ones checked and in order, and the private outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.checks import different
from shoal.data import keys
from shoal.data.assignment import Assignment, enrol
from shoal.data.outcome_space import Space, check_space
from shoal.errors import DataError
from shoal.privacy.unit import printed_text

MISSING = ("refuse", "public")


@dataclass(frozen=True, eq=False)
class Units:
    """The private side of a trial: one outcome for each unit, in the assignment's order."""

    assignment: Assignment
    outcomes: NDArray[np.float64]
    about: Mapping[str, Any]

    def __repr__(self) -> str:
        """Nothing private."""
        return f"<outcomes of {self.assignment.n} units>"


def take_in(
    outcomes: Any,
    treatment: Any,
    cluster: Any,
    *,
    space: Space,
    unit: Any,
    control: Any,
    missing: str,
    single_arm: str,
    outcome_name: str,
) -> Units:
    """Check the columns of an experiment and put its units in their public order.

    Args:
        outcomes: One outcome for each unit. Private.
        treatment: The arm of each unit.
        cluster: The cluster of each unit, or None.
        space: Where outcomes lie.
        unit: A public name of each unit, or None.
        control: The arm others are compared with, or None for the first.
        missing: `refuse` missing outcomes, or leave such units out because it is `public` which
            they are.
        single_arm: `refuse` or `drop` clusters where an arm has nobody.
        outcome_name: What the outcome is called: it tells outcomes of the same units apart.

    Raises:
        DataError: Columns that are not usable.
        InputError: Unknown rules, or the outcome in a public role.
    """
    checks.choice(missing, MISSING, "missing")
    check_space(space)
    printed_text(outcome_name)
    different({"outcome": outcomes}, {"treatment": treatment, "cluster": cluster, "unit": unit})
    numbers = space.numbers(outcomes)
    present = ~np.isnan(numbers)
    # Only absence may be declared public: an infinite outcome is an outcome.
    if np.isinf(numbers).any() or (missing == "refuse" and not present.all()):
        raise DataError(
            "missing or infinite outcomes",
            "a finite outcome in every row",
            'clean the data, or declare missing="public" to leave out units without an outcome if '
            "it is public which they are",
        )
    kept = present if missing == "public" else None
    arms = keys.as_array(treatment, "treatment")
    if len(arms) != len(numbers):
        raise DataError(
            "outcomes and treatments of different length",
            "one outcome and one treatment for each unit",
            "give columns of the same length",
        )
    found = enrol(arms, cluster, unit=unit, control=control, single_arm=single_arm, kept=kept)
    about = {
        "outcome": outcome_name,
        "missing": missing,
        "single_arm": single_arm,
        "clusters_left_out": found.left_out,
    }
    return Units(found.assignment, numbers[found.rows], about)
