"""Checks the public columns of the units of an experiment, and sorts units by these columns."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.arrays import Bools, Ints
from shoal.data import keys
from shoal.data.columns_in_memory import paired, private_numbers
from shoal.errors import DataError, InputError
from shoal.privacy.budget import Amount
from shoal.release.columns import PER_USER
from shoal.release.plan import Source
from shoal.trials.assigned_groups import check_groups, refuse_texts_but_units
from shoal.trials.design import RESERVED, Covariate, Design, column_of

# What stands between names in questions, and so in no name.
_BETWEEN = (" + ", ":")
# The fewest arms, units of an arm, and values of a covariate.
FEWEST = 2
_MOST_ARMS = 64
_MOST_COVARIATES = 64
# The most characters of a covariate's name.
_LONGEST = 100
# More different numbers of a covariate are rounded, as each would make a kind of units.
_MOST_VALUES = 1000
# The smallest and the largest number of a covariate: sums of squares of regressors must be finite
# and above 0.
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
        source: The columns of the file or table that they were read from, if they were.
    """

    design: Design
    rows: Ints
    all_rows: int
    left_out: int
    given: dict[str, Any]
    one_by_one: bool
    source: Source | None = None

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
        exact: bool = False,
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
        cells = _cells(self.given, self.all_rows, control, single_arm)
        self.left_out = cells.left_out
        columns = [_covariate(name, each, cells.rows, exact=exact) for name, each in named.items()]
        public = [cells.cell]
        if groups is not None:
            public.append(_ranked(groups, "assigned", cells.rows)[1])
        public += [each.codes for each in columns]
        # `lexsort` sorts by the last column first: units of a kind come in the order of names.
        sorted_by = public[::-1]
        names = None
        if unit is not None:
            names, place = _names(unit, cells.rows)
            sorted_by.insert(0, place)
        order = np.lexsort(sorted_by)
        table = np.stack(public)[:, order]
        # Units that are equal in all public columns are neighbours now: `first` of each kind.
        first = np.flatnonzero(np.r_[True, (np.diff(table, axis=1) != 0).any(axis=0)])
        self.rows = cells.rows[order]
        self.design = Design.of(
            clusters=cells.clusters,
            arms=cells.arms,
            cell=table[0, first],
            many=np.diff(np.r_[first, len(order)]),
            group=None if groups is None else table[1, first],
            covariates=tuple(
                each.model_copy(update={"codes": each.codes[order[first]]}) for each in columns
            ),
            units=None if names is None else names.take(order),
            clustering_epsilon=clustering_epsilon,
        )
        if groups is not None:
            check_groups(
                self.design,
                np.asarray(self.design.group)[self.design.kind_of_unit],
                keys.as_array(groups, "assigned").take(self.rows),
            )

    def check_unit(self, privacy_unit: str) -> None:
        """Refuse another word for users than that by which they were read, if they were."""
        read_as = privacy_unit if self.source is None else self.source.protects
        if privacy_unit != read_as:
            raise InputError(
                f"the users were read as {read_as!r}, and the charge would be for {privacy_unit!r}",
                f"give privacy_unit={privacy_unit!r} where they are read, too: a column of this "
                "name is then checked",
            )


class _Cells(NamedTuple):
    """The rows that count, the cell of each, and the keys of clusters and arms, control first.

    `left_out` is the number of clusters in which an arm has nobody.
    """

    rows: Ints
    cell: Ints
    clusters: "pa.Array[Any]"
    arms: "pa.Array[Any]"
    left_out: int


def _cells(given: Mapping[str, Any], all_rows: int, control: Any, single_arm: str) -> _Cells:
    """Returns the cells of clusters and arms, without clusters that lack units of an arm."""
    keep = given["keep"]
    rows = np.arange(all_rows) if keep is None else _kept(keep, all_rows)
    arms, arm = _control_first(*_ranked(given["arm"], "arm", rows), control)
    cluster = np.zeros(len(rows), dtype=np.int64)
    clusters: pa.Array[Any] = pa.array(["all"])
    if given["cluster"] is not None:
        clusters, cluster = _ranked(given["cluster"], "cluster", rows)
    has_all_arms = _has_all_arms(cluster, arm, (len(clusters), len(arms)), single_arm)
    inside = has_all_arms[cluster]
    # The clusters that stay are numbered again, from 0.
    cluster = (np.cumsum(has_all_arms) - 1)[cluster[inside]]
    return _Cells(
        rows=rows[inside],
        cell=cluster * len(arms) + arm[inside],
        clusters=clusters.take(np.flatnonzero(has_all_arms)),
        arms=arms,
        left_out=int((~has_all_arms).sum()),
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
        raise DataError("names of units occur in several rows", PER_USER)
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
    # The sorting order of a permutation is its inverse: the new place of each arm.
    return arms.take(order), np.argsort(order)[arm]


def _has_all_arms(cluster: Ints, arm: Ints, shape: tuple[int, int], single_arm: str) -> Bools:
    """Returns which clusters have units of every arm, and refuses others unless they may go."""
    clusters, arms = shape
    sizes = np.bincount(cluster * arms + arm, minlength=clusters * arms).reshape(shape)
    found = np.asarray((sizes > 0).all(axis=1))
    lacking = int((~found).sum())
    if clusters > 1 and ((sizes > 0).sum(axis=1) == 1).all():
        raise DataError(
            f"each of {clusters} clusters has units of only one arm",
            "give clusters within which units or groups were assigned, with units of every arm; "
            f"{_WHOLE_CLUSTERS}",
        )
    if lacking == clusters or (lacking and single_arm == "refuse"):
        raise DataError(
            f"{lacking} of {clusters} clusters lack units of an arm",
            'if units were assigned one by one, give single_arm="drop" (--single-arm drop) to '
            f"leave such clusters out, or merge them; {_WHOLE_CLUSTERS}",
        )
    return found


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


def _covariate(name: str, values: Any, rows: Ints, *, exact: bool) -> Covariate:
    """Returns a column of numbers, booleans or texts, with a value for each row that counts.

    More than 1,000 different numbers are rounded to 1,000 steps of their range, unless `exact`.
    """
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
        rounded = len(levels) > _MOST_VALUES and not exact
        if rounded:
            low = levels[0]
            step = (levels[-1] - low) / _MOST_VALUES
            levels, again = np.unique(
                low + step * np.rint((levels - low) / step), return_inverse=True
            )
            place = again[place]
        values = tuple(levels.tolist())
        found = Covariate(name=name, values=values, codes=place, rounded=rounded)
    if len(found.values) < FEWEST:
        raise InputError(f"the covariate {name!r} is the same for all units", "leave it out")
    return found
