"""Groups that were assigned to arms whole: classes, villages, shops. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import checks
from shoal.data import keys
from shoal.data.assignment import Assignment, key_column
from shoal.errors import DataError, InputError

Whole = NDArray[np.int64]
FEWEST_GROUPS = 2


@dataclass(frozen=True, eq=False)
class AssignedGroups:
    """Which group each unit is in, and in which cluster and arm each group is.

    Attributes:
        unit: Group of each unit, codes from 0, in the assignment's order, shape (units,).
        cluster: Cluster of each group, shape (groups,).
        arm: Arm of each group, 0 for control, shape (groups,).
        sizes: Units of each group, shape (groups,).
        arms: How many arms there are.
    """

    unit: Whole
    cluster: Whole
    arm: Whole
    sizes: Whole
    arms: int

    @property
    def of_arms(self) -> Whole:
        """Groups of each arm, shape (arms,)."""
        return np.bincount(self.arm, minlength=self.arms).astype(np.int64)


def groups_of(assignment: Assignment, assigned: object, unit: object = None) -> AssignedGroups:
    """Check that units were assigned in these groups, from public columns alone.

    Args:
        assignment: Clusters, arms, sizes and names of units.
        assigned: The group of each unit: texts, whole numbers, booleans or dates. In the order of
            `unit`, or in the order of the assignment without it.
        unit: Names of units, each once; others than the assignment's are left out.

    Raises:
        DataError: Columns that are not usable, names that are missing, a group with units of
            several arms or clusters, or groups that units without names do not tell.
        InputError: Names for units that have none, or an arm of one group.

    Guarantees: G-COVERAGE.

    Example:
        >>> from shoal.data.assignment import enrol
        >>> home, arm = np.arange(12) // 3, np.arange(12) // 3 % 2
        >>> found = groups_of(enrol(arm, unit=np.arange(12)).assignment, home, np.arange(12))
        >>> found.arm.tolist(), found.sizes.tolist()
        ([0, 1, 0, 1], [3, 3, 3, 3])
    """
    column = key_column(assigned, "assigned")
    if unit is not None:
        column = _by_name(assignment, column, unit)
    elif len(column) != assignment.n:
        raise DataError(
            f"groups of {len(column)} rows for {assignment.n} units",
            "one group for each unit of the release, in the order of its table",
            "give unit= with the names of the units of these rows",
        )
    _check_known(assignment, keys.ranked(column, "assigned")[1])
    return checked_groups(assignment, column)


def checked_groups(assignment: Assignment, column: pa.Array[Any]) -> AssignedGroups:
    """Check that units were assigned in these groups.

    Args:
        assignment: Clusters, arms, sizes.
        column: The group of each unit, in the order of the assignment.

    Raises:
        DataError: A group with units of several arms or clusters.
        InputError: An arm of one group.

    Guarantees: G-COVERAGE.
    """
    labels, code = keys.ranked(column, "assigned")
    arms = len(assignment.arms)
    first = np.unique(code, return_index=True)[1]
    cell = assignment.group[first]
    _check_whole(assignment, labels, code, cell)
    sizes = np.bincount(code).astype(np.int64)
    found = AssignedGroups(code, cell // arms, cell % arms, sizes, arms)
    lone = int(found.of_arms.argmin())
    if found.of_arms[lone] < FEWEST_GROUPS:
        raise InputError(
            f"one assigned group in the arm {checks.shown(str(assignment.arms[lone].as_py()))}",
            f"at least {FEWEST_GROUPS} groups in each arm: one tells nothing of how groups differ",
            "there is no standard error for such an experiment; if units were assigned one by one, "
            'give assigned="units"',
        )
    return found


def _by_name(assignment: Assignment, column: pa.Array[Any], unit: object) -> pa.Array[Any]:
    """The groups of the assignment's units, in its order."""
    if assignment.units is None:
        raise InputError(
            "names of units for a release whose units have none",
            "groups in the order of the table",
            "leave unit= out, or release with unit= next time",
        )
    names = key_column(unit, "unit")
    if len(names) != len(column):
        raise DataError(
            f"groups of {len(column)} rows and names of {len(names)}",
            "one name for each row",
            "give columns of the same length",
        )
    if pc.count_distinct(names).as_py() != len(names):
        raise DataError(
            "a unit that is named twice", "one row for each unit", "give each unit one group"
        )
    known: pa.Array[Any] = key_column(assignment.units, "unit")
    if known.type != names.type:
        raise DataError(
            f"names of units of type {names.type}",
            f"{known.type}, as in the release",
            "convert them",
        )
    place = pc.index_in(known, value_set=names)
    if place.null_count:
        raise DataError(
            f"{place.null_count} of {len(known)} units of the release without a group",
            "a row for each unit of the release",
            "give the names and groups of all units",
        )
    return column.take(place)


def _check_known(assignment: Assignment, code: Whole) -> None:
    """Refuse groups that units without names do not tell: their order within cells is none."""
    if assignment.units is not None:
        return
    pairs = np.unique(np.stack([assignment.group, code]), axis=1)
    if pairs.shape[1] > assignment.sizes.size:
        raise DataError(
            "several assigned groups among units of one cluster and arm that have no names",
            "names of units, or one group for each cluster and arm",
            "release with unit=, public names of the units, by which groups are joined",
        )


def _check_whole(assignment: Assignment, labels: pa.Array[Any], code: Whole, cell: Whole) -> None:
    """Refuse groups with units of several arms or clusters."""
    arms = len(assignment.arms)
    own, first = assignment.group, cell[code]
    mixed = np.flatnonzero(own % arms != first % arms)
    if len(mixed):
        name = checks.shown(str(labels[int(code[mixed[0]])].as_py()))
        raise DataError(
            f"an assigned group {name} with units of several arms",
            "groups all units of which have one arm",
            "give the groups that were assigned whole, in the order of the table or with their "
            'unit=; if units were assigned one by one, give assigned="units"',
        )
    spread = np.flatnonzero(own != first)
    if len(spread):
        name = checks.shown(str(labels[int(code[spread[0]])].as_py()))
        raise DataError(
            f"an assigned group {name} with units of several clusters",
            "groups within clusters, which are what groups were assigned within",
            "give classes of two schools two names",
        )
