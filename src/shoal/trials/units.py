"""Checks the public columns of the units of an experiment, and sorts units by these columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.arrays import Bools, Ints
from shoal.data import keys
from shoal.data.columns_in_memory import paired, private_numbers
from shoal.errors import DataError, InputError
from shoal.privacy.budget import Amount
from shoal.release.columns import ONE_ROW
from shoal.trials.assigned_groups import check_groups, refuse_texts_but_units
from shoal.trials.design import RESERVED, Covariate, Design, column_of

_BETWEEN = (" + ", ":")
FEWEST = 2
_MOST_ARMS = 64
_MOST_COVARIATES = 64
_LONGEST = 100
# Sums of squares of regressors must be numbers.
_SMALLEST = 1e-50
_LARGEST = 1e50
_WHOLE_CLUSTERS = (
    "if whole clusters were assigned to arms, give them as assigned= (--assigned) and leave them "
    "out as clusters; for a table of units with names give them also when estimating: "
    "release.estimate(assigned=, unit=)"
)


class Units:
    """The units of a randomised experiment: public columns, in an order that outcomes cannot set.

    Attributes:
        design: The public facts of all units, in the order of this class.
        rows: The row of each unit of the design in the given columns, shape (units,).
        all_rows: The number of rows of the given columns.
        left_out: The number of clusters that were left out because an arm had nobody there.
        given: The columns as they were given, by role.
        one_by_one: Whether the caller said that units were assigned one by one.
    """

    design: Design
    rows: Ints
    all_rows: int
    left_out: int
    given: dict[str, Any]
    one_by_one: bool

    @np.errstate(all="ignore")
    def __init__(
        self,
        arm: Any,
        cluster: Any = None,
        covariates: Mapping[str, Any] | None = None,
        *,
        unit: Any = None,
        control: Any = None,
        assigned: Any = None,
        single_arm: str = "refuse",
        keep: Any = None,
        clustering_epsilon: Amount = 0,
    ) -> None:
        checks.choice(single_arm, ("refuse", "drop"), "single_arm")
        given = {} if covariates is None else checks.mapping(covariates, "covariates")
        named = {name: given[name] for name in sorted(map(_name, given))}
        if len(named) > _MOST_COVARIATES:
            raise InputError(
                f"there are {len(named)} covariates", f"give at most {_MOST_COVARIATES}"
            )
        groups = None if isinstance(assigned, str) else assigned
        refuse_texts_but_units(assigned if groups is None else None, None)
        self.one_by_one = assigned is not None and groups is None
        self.given = {
            "arm": arm,
            "cluster": cluster,
            "unit": unit,
            "assigned": groups,
            "keep": keep,
        } | {f"covariate {name}": each for name, each in named.items()}
        self.all_rows = _rows(self.given)
        paired({}, self.given)
        rows = np.arange(self.all_rows) if keep is None else _kept(keep, self.all_rows)
        arms, arm_code = _control_first(*_ranked(arm, "arm", rows), control)
        cluster_code = np.zeros(len(rows), dtype=np.int64)
        cluster_names: pa.Array[Any] = pa.array(["all"])
        if cluster is not None:
            cluster_names, cluster_code = _ranked(cluster, "cluster", rows)
        whole, self.left_out = _whole(
            cluster_code, arm_code, (len(cluster_names), len(arms)), single_arm
        )
        inside = whole[cluster_code]
        rows = rows[inside]
        cluster_code = (np.cumsum(whole) - 1)[cluster_code[inside]]
        cell = cluster_code * len(arms) + arm_code[inside]
        columns = [_covariate(name, each, rows) for name, each in named.items()]
        names = None if unit is None else _names(unit, rows)
        group = None if groups is None else _ranked(groups, "assigned", rows)[1]
        codes = [each.codes for each in columns]
        public = [cell, *([] if group is None else [group]), *codes]
        order = np.lexsort([*([] if names is None else [names[1]]), *reversed(public)])
        table = np.stack(public)[:, order]
        # Units that are equal in all public columns are neighbours now: `first` of each kind.
        first = np.flatnonzero(np.r_[True, (np.diff(table, axis=1) != 0).any(axis=0)])
        self.rows = rows[order]
        self.design = Design.of(
            clusters=cluster_names.take(np.flatnonzero(whole)),
            arms=arms,
            cell=cell[order][first],
            many=np.diff(np.r_[first, len(order)]),
            group=None if group is None else group[order][first],
            covariates=tuple(
                each.model_copy(update={"codes": each.codes[order[first]]}) for each in columns
            ),
            units=None if names is None else names[0].take(order),
            clustering_epsilon=clustering_epsilon,
        )
        if group is not None:
            check_groups(
                self.design,
                np.asarray(self.design.group)[self.design.kind_of_unit],
                keys.as_array(groups, "assigned").take(self.rows),
            )


def _ranked(values: Any, name: str, rows: Ints) -> "tuple[pa.Array[Any], Ints]":
    """Returns the distinct values of these rows of a column, sorted, and which one each row has."""
    return keys.ranked(keys.as_array(values, name).take(rows), name)


def _rows(given: Mapping[str, Any]) -> int:
    """Returns the number of rows that all columns have."""
    lengths = set()
    for name, column in given.items():
        if column is not None:
            try:
                lengths.add(len(column))
            except TypeError:
                raise DataError(f"{name} is not a column", "give a column of the units") from None
    if len(lengths) != 1 or 0 in lengths:
        raise DataError(
            f"the columns have {' and '.join(map(str, sorted(lengths)))} rows",
            "give columns of the same length, with at least one row",
        )
    return next(iter(lengths))


def _kept(keep: Any, rows: int) -> Ints:
    """Returns the rows that count, in their order."""
    found = np.asarray(keep)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise DataError("the rows to keep are not booleans", "give one true or false for each row")
    return np.flatnonzero(found)


def _names(unit: Any, rows: Ints) -> "tuple[pa.Array[Any], Ints]":
    """Returns names of units, which must all differ, and the place of each when sorted."""
    names = keys.as_array(unit, "unit").take(rows)
    distinct, place = keys.ranked(names, "unit")
    keys.check_spelling(distinct, "unit")
    if len(distinct) != len(names):
        several = int((np.bincount(place) > 1).sum())
        raise DataError(
            f"{several} names of units occur in several rows",
            ONE_ROW,
        )
    return names, place


def _control_first(arms: "pa.Array[Any]", arm: Ints, control: Any) -> "tuple[pa.Array[Any], Ints]":
    """Returns the arms with the control first, and the arm of each row among them."""
    if not FEWEST <= len(arms) <= _MOST_ARMS:
        raise DataError(
            f"there are {len(arms)} arms",
            f"name the column of the treatment, which has {FEWEST} to {_MOST_ARMS} arms",
        )
    values = arms.to_pylist()
    if control is None:
        if len(arms) > FEWEST:
            shown = ", ".join(checks.shown(each) for each in values[:10])
            raise InputError(
                f"it is not clear which of {len(arms)} arms is the control: {shown}",
                f"name it, for example control={checks.shown(values[0])} or on the command line "
                f"--control {checks.shown(str(values[0]))}",
            )
        return arms, arm
    if isinstance(control, list | dict | set) or control not in values:
        raise InputError(
            f"there is no arm {checks.shown(control)} to be the control",
            f"choose one of {', '.join(str(value) for value in values[:10])}",
        )
    at = values.index(control)
    order = np.r_[at, np.delete(np.arange(len(values)), at)]
    return arms.take(order), np.argsort(order)[arm]


def _whole(cluster: Ints, arm: Ints, shape: tuple[int, int], single_arm: str) -> tuple[Bools, int]:
    """Returns which clusters have units of every arm, and how many do not."""
    sizes = np.bincount(cluster * shape[1] + arm, minlength=shape[0] * shape[1]).reshape(shape)
    whole = np.asarray((sizes > 0).all(axis=1))
    lacking = int((~whole).sum())
    if len(sizes) > 1 and ((sizes > 0).sum(axis=1) == 1).all():
        raise DataError(
            f"each of {len(sizes)} clusters has units of only one arm",
            "give clusters within which units or groups were assigned, with units of every arm; "
            f"{_WHOLE_CLUSTERS}",
        )
    if not whole.any() or (lacking and single_arm == "refuse"):
        raise DataError(
            f"{lacking} of {len(whole)} clusters lack units of an arm",
            'if units were assigned one by one, give single_arm="drop" (--single-arm drop) to '
            f"leave such clusters out, or merge them; {_WHOLE_CLUSTERS}",
        )
    return whole, lacking


def _name(name: Any) -> str:
    """Returns the name of a covariate, and refuses one that questions would misread."""
    usable = keys.is_name(name) and len(name) <= _LONGEST and name not in RESERVED
    if usable and not any(each in name for each in _BETWEEN) and name == column_of(name):
        return str(name)
    raise InputError(
        f"the name {checks.shown(name)} of a covariate is not usable",
        f"rename it: up to {_LONGEST} printable characters without ' + ' and ':', not C(...), and "
        f"not one of {', '.join(RESERVED)}",
    )


def _covariate(name: str, values: Any, rows: Ints) -> Covariate:
    """Returns a column of numbers, booleans or texts, with a value for each row that counts."""
    numbers = private_numbers(values)
    if numbers is None or numbers.ndim != 1:
        texts = keys.as_array(values, name)
        if not pa.types.is_string(texts.type):
            raise DataError(
                f"the covariate {name!r} has the type {texts.type}",
                "convert it to numbers, booleans or texts, for example dates to days",
            )
        distinct, codes = keys.ranked(texts.take(rows), name)
        found = Covariate(name=name, values=tuple(map(str, distinct.to_pylist())), codes=codes)
    else:
        numbers = numbers[rows]
        if not (np.abs(numbers) <= _LARGEST).all():
            raise DataError(
                f"the covariate {name!r} has missing, infinite or huge numbers",
                f"give a number of up to {_LARGEST:g} for each unit; fill what is missing with a "
                "public value",
            )
        if 0 < np.abs(numbers).max(initial=0.0) < _SMALLEST:
            raise DataError(
                f"the covariate {name!r} has only numbers below {_SMALLEST:g}",
                "give it in another unit",
            )
        # Zero has one sign here, so that equal columns make equal questions.
        levels, place = np.unique(numbers + 0.0, return_inverse=True)
        found = Covariate(name=name, values=tuple(levels.tolist()), codes=place)
    if len(found.values) < FEWEST:
        raise InputError(f"the covariate {name!r} is the same for all units", "leave it out")
    return found
