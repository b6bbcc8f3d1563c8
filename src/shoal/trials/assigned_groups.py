"""Estimates effects of groups that were assigned whole (classes, villages, shops), by CR2.

Source: Bell and McCaffrey (2002); Pustejovsky and Tipton (2018);
docs/theory/experiments.md#assigned-groups.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.data import keys
from shoal.data.columns_in_memory import paired
from shoal.errors import DataError, InputError, printable
from shoal.trials.design import Covariate, Design, effect_weights
from shoal.trials.effect_estimation import (
    ROUNDING,
    UNKNOWN,
    Cells,
    Spread,
    degrees_of,
    effects_of,
    inferred,
)
from shoal.trials.results import Effect

# The value of `assigned` that says that units were assigned one by one.
UNITS = "units"
# The fewest groups of an arm.
FEWEST_GROUPS = 2
# Standard errors are unreliable if an arm has fewer groups than this.
_FEW_GROUPS = 10
# They are also unreliable with fewer degrees of freedom than this.
_FEW_DEGREES = 8.5
# The correlation within groups that predictions and degrees of freedom assume.
CORRELATION = 0.3
# Parts of a group that regressors fit exactly have no residuals.
_FITTED = 1e-9
# Logarithm of the significance level of the test that a covariate determines the arm.
_CHANCE = math.log(1e-6)
_THESE_UNITS = (
    "The effect on these units, over the assignment of whole groups and the mechanism; also the "
    "effect in the populations of these clusters, if their groups were drawn from them."
)
_ONE_CLUSTER = "The effect in a population that the assigned groups were drawn from."


def by_group(design: Design, code: Ints) -> Design:
    """Returns the design whose kinds of units are groups; `code` is the group of each unit."""
    cell = design.cell_of_unit[np.unique(code, return_index=True)[1]]
    return Design(clusters=design.clusters, arms=design.arms, cell=cell, many=np.bincount(code))


def cr2(regressors: Floats, sizes: Floats, weights: Floats, sums: Floats) -> Spread:
    """Returns the CR2 variance, and its degrees, of the sum of weights times sums of groups.

    Regressors, sizes, weights and sums have a row for each group.
    """
    # A group of m units counts as m times, hence the roots.
    root = np.sqrt(sizes)
    basis, singular_values, _ = np.linalg.svd(regressors * root[:, None], full_matrices=False)
    basis = basis[:, singular_values > _FITTED * singular_values[0]]
    # This is 1 less the leverage of each group, by which CR2 divides squared residuals.
    not_fitted = 1 - (basis**2).sum(axis=1)
    is_fitted = not_fitted <= _FITTED
    scale = np.where(is_fitted, 0.0, weights * np.sqrt(sizes / np.maximum(not_fitted, _FITTED)))
    mean = sums / root
    residual = mean - basis @ (basis.T @ mean)
    # Degrees of freedom for units without correlation in their group, and with it: the fewer count.
    correlated = 1 - CORRELATION + CORRELATION * sizes
    degrees = min(_degrees(scale, basis, phi) for phi in (np.ones(len(sizes)), correlated))
    if (is_fitted & (weights != 0)).any() or not degrees > 0:
        return UNKNOWN
    return Spread(float(((scale * residual) ** 2).sum()), degrees)


def _degrees(scale: Floats, basis: Floats, variances: Floats) -> float:
    """Returns (tr S)^2/tr S^2 of S = D (I - QQ') Phi (I - QQ') D = D Phi D + A C A'.

    D is the diagonal matrix of `scale`, Q is `basis`, and Phi the diagonal matrix of `variances`.
    """
    moved = variances[:, None] * basis
    ones = np.eye(basis.shape[1])
    sides = scale[:, None] * np.concatenate([basis, moved], axis=1)
    core = np.block([[basis.T @ moved, -ones], [-ones, 0 * ones]])
    return degrees_of(scale**2 * variances, sides, core)


def effects_of_groups(
    groups: Design, cells: Cells, sums: Floats, confidence: float
) -> list[Effect]:
    """Returns the effects of `effects_of`, with variances that are CR2 by assigned group."""
    weight = groups.sizes.sum(axis=1) / groups.n
    clusters, arms = groups.sizes.shape
    squares = cells.mean**2 + np.nan_to_num(np.abs(cells.s2))
    # A column for each cluster, and one for each arm but the control.
    in_cluster = groups.cluster[:, None] == np.arange(clusters)
    in_arm = groups.arm[:, None] == np.arange(1, arms)
    regressors = np.hstack([in_cluster, in_arm]).astype(np.float64)
    sizes = groups.many.astype(np.float64)
    variances = _within_clusters(groups, sums)
    groups_of_arm = np.bincount(groups.arm).tolist()
    found = []
    for arm, effect in enumerate(effects_of(groups, cells, confidence), 1):
        spread = cr2(regressors, sizes, effect_weights(groups, arm)[0], sums)
        # A variance below this is rounding.
        tiny = ROUNDING * float(weight**2 @ squares[:, [arm, 0]].sum(axis=1))
        here = inferred(effect.value, spread, tiny, confidence, _THESE_UNITS)
        there = effect.super_population
        if clusters == 1:
            there = inferred(effect.value, spread, tiny, confidence, _ONE_CLUSTER)
        pair = groups_of_arm[arm], groups_of_arm[0]
        warning = few_groups(pair, (effect.arm, effect.control), here.degrees_of_freedom)
        by_cluster = np.sqrt(variances[:, arm] + variances[:, 0])
        grouped = replace(
            effect,
            finite_population=here,
            super_population=there,
            clusters=replace(effect.clusters, standard_error=by_cluster),
            groups=pair,
        )
        found.append(grouped.warned(warning))
    return found


def _within_clusters(groups: Design, sums: Floats) -> Floats:
    """Returns the CR2 variance of each cell's mean, from the groups of that cell alone.

    The shape is (clusters, arms); a cell of one group has NaN.
    """
    cell = groups.cell
    units = groups.sizes.ravel().astype(np.float64)
    mean = np.bincount(cell, sums) / units
    residual = sums - groups.many * mean[cell]
    not_fitted = 1 - groups.many / units[cell]
    variance_part = np.zeros(len(cell))
    np.divide(residual**2, not_fitted, out=variance_part, where=not_fitted > 0)
    variance = np.bincount(cell, variance_part) / units**2
    return np.where(np.bincount(cell) > 1, variance, np.nan).reshape(groups.sizes.shape)


def few_groups(many: Sequence[int], arms: Sequence[object], degrees: float, of: str = "") -> str:
    """Returns a warning if an arm has few groups or a question few degrees of freedom, else ""."""
    fewest = min(many)
    if fewest >= _FEW_GROUPS and not degrees < _FEW_DEGREES:
        return ""
    freedom = "" if math.isnan(degrees) else f", and {degrees:.3g} degrees of freedom{of}"
    arm = printable(str(arms[many.index(fewest)]))
    return (
        f"{fewest} assigned groups in arm {arm}{freedom}: with "
        f"fewer than about {_FEW_GROUPS} groups in an arm, or groups of very unlike sizes, no "
        "standard error is reliable"
    )


def grouped(design: Design, assigned: Any, unit: Any = None) -> Ints:
    """Returns the group of each unit; `assigned` is in the order of `unit`, or of all units."""
    paired({}, {"assigned": assigned, "unit": unit})
    column = keys.as_array(assigned, "assigned")
    if unit is not None:
        column = _by_name(design, column, unit)
    elif len(column) != design.n:
        raise DataError(
            f"there are groups of {len(column)} rows for {design.n} units",
            "give one group for each unit, in the order of the table of the release, or give "
            "unit= with the names of the units of these rows",
        )
    code = keys.ranked(column, "assigned")[1]
    pairs = np.unique(np.stack([design.cell_of_unit, code]), axis=1)
    # With more pairs of cell and group than cells, some cell has units of several groups.
    if design.units is None and pairs.shape[1] > design.sizes.size:
        raise DataError(
            "units of one cluster and arm are in several assigned groups and have no names",
            "release with unit=, a public column of names, so that each unit finds its group",
        )
    check_groups(design, code, column)
    return code


def _by_name(design: Design, column: Any, unit: Any) -> Any:
    """Returns the groups of units in the order of the design."""
    if design.units is None:
        raise InputError("the units of the release have no names", "leave unit= out")
    names = keys.as_array(unit, "unit")
    if len(names) != len(column) or pc.count_distinct(names).as_py() != len(names):
        raise DataError(
            f"there are {len(column)} groups and {len(names)} names of units, or a name occurs "
            "twice",
            "give one group and one name for each unit",
        )
    if design.units.type != names.type:
        raise DataError(
            f"the names of units have the type {names.type}",
            f"convert them to {design.units.type}, as in the release",
        )
    place = pc.index_in(design.units, value_set=names)
    if place.null_count:
        raise DataError(
            f"{place.null_count} of {design.n} units of the release have no group",
            "give the names and groups of all units",
        )
    return column.take(place)


def check_groups(design: Design, code: Ints, labels: Any) -> None:
    """Refuse groups with units of several arms or clusters, and an arm of one group."""
    arms = len(design.arms)
    cell_of_unit = design.cell_of_unit
    # The cell of each group is that of its first unit.
    cell = cell_of_unit[np.unique(code, return_index=True)[1]]
    whole = (
        "give the groups that were assigned whole; if units were assigned one by one, give "
        'assigned="units"'
    )
    for what, is_elsewhere, todo in (
        ("arms", cell_of_unit % arms != cell[code] % arms, whole),
        ("clusters", cell_of_unit != cell[code], "give each group a name of its own"),
    ):
        if is_elsewhere.any():
            name = checks.shown(str(labels[int(is_elsewhere.argmax())].as_py()))
            raise DataError(f"the assigned group {name} has units of several {what}", todo)
    groups_of_arm = np.bincount(cell % arms, minlength=arms)
    if int(groups_of_arm.min()) < FEWEST_GROUPS:
        lone = checks.shown(str(design.arms[int(groups_of_arm.argmin())].as_py()))
        raise InputError(
            f"the arm {lone} has only one assigned group, which does not show how groups differ",
            f"give at least {FEWEST_GROUPS} groups in each arm; "
            'if units were assigned one by one, give assigned="units"',
        )


def refuse_texts_but_units(assigned: Any, unit: Any) -> None:
    """Refuse other texts than `units`, and names of units without groups."""
    if assigned not in (None, UNITS):
        raise InputError(
            f"assigned is {checks.shown(assigned)}",
            f"give {UNITS!r}, or the column itself (not its name) with the assigned group of each "
            "unit",
        )
    if unit is not None:
        raise InputError("unit= is given without assigned=", "give assigned= as well")


def assigned_by(design: Design) -> list[str]:
    """Returns names of covariates whose every value is in one arm only, and hardly by chance."""
    return [each.name for each in design.covariates if _never_varies(design, each)]


def _never_varies(design: Design, column: Covariate) -> bool:
    """Whether each value of a covariate is in one arm only, and chance would hardly do that.

    If groups were assigned whole, a group counts as one unit.
    """
    arms = len(design.arms)
    if design.group is None:
        codes = column.codes
        arm = design.arm
        many = design.many
    else:
        first = np.unique(design.group, return_index=True)[1]
        if bool((column.codes[first][design.group] != column.codes).any()):
            # The covariate varies within groups.
            return False
        codes = column.codes[first]
        arm = design.arm[first]
        many = np.ones(len(first), int)
    # Units of each value in each arm, shape (values, arms).
    count = np.bincount(codes * arms + arm, many, len(column.values) * arms).reshape(-1, arms)
    if bool((np.count_nonzero(count, axis=1) > 1).any()):
        return False
    sizes = count.sum(axis=0)
    if column.numeric and any(
        value == 0 and bool((by_arm == sizes).any())
        for value, by_arm in zip(column.values, count, strict=True)
    ):
        # A dose, or an interaction with the arm, is 0 for all units of an arm.
        return False
    # A value of m units has one arm with the probability sum_a p_a^m.
    shares = sizes / sizes.sum()
    units, values = np.unique(count.sum(axis=1), return_counts=True)
    # Instead of 0, whose logarithm is infinite, the smallest number above 0 is taken.
    log_chance = np.array([math.log(float((shares**m).sum()) or 5e-324) for m in units.tolist()])
    return bool(float(log_chance @ values) < _CHANCE)
