"""Public columns of an experiment: arms, clusters and covariates in an order of their own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import checks, documents
from shoal.checks import floats, private_numbers
from shoal.data import keys
from shoal.data.assigned_groups import checked_groups
from shoal.data.assignment import Assignment, enrol, key_column
from shoal.errors import DataError, DocumentError, InputError
from shoal.trials.effects import key_text
from shoal.trials.group_inference import check_one_by_one

ARM, CLUSTER, CONSTANT = "arm", "cluster", "constant"
_RESERVED = (ARM, CLUSTER, CONSTANT)
MOST_COVARIATES, MOST_UNITS, _LONGEST = 64, 1 << 20, 100
# Sums of squares of regressors must be numbers.
_SMALLEST, _LARGEST = 1e-50, 1e50
_FEWEST = 2
_SINGLE = "where an arm has nobody"


@dataclass(frozen=True, eq=False)
class Covariate:
    """One public column: distinct values, rising, and which of them each unit has.

    Attributes:
        name: What it is called.
        values: Numbers, or texts.
        codes: Position among the values, shape (units,).
    """

    name: str
    values: tuple[Any, ...]
    codes: NDArray[np.int64]

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return not isinstance(self.values[0], str)

    def to_document(self) -> documents.Document:
        """The column as a JSON object."""
        packed = documents.pack_integers(self.codes)
        return {"name": self.name, "values": list(self.values), "codes": packed}


@dataclass(frozen=True, eq=False)
class Columns:
    """All that is public of the units. They come by cluster, arm, then covariates.

    Units that are alike in all columns are interchangeable: no order of rows is kept.

    Attributes:
        assignment: Clusters, arms, sizes.
        covariates: In the order of their names.
        assigned: Group of each unit where groups were assigned whole, codes from 0; else None.
    """

    assignment: Assignment
    covariates: tuple[Covariate, ...] = field(repr=False)
    assigned: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Units."""
        return self.assignment.n

    @cached_property
    def arm(self) -> NDArray[np.int64]:
        """Arm of each unit, 0 for control."""
        return self.assignment.group % len(self.assignment.arms)

    @cached_property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each unit."""
        return self.assignment.group // len(self.assignment.arms)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The assigned group of each unit; each unit by itself where none were assigned."""
        return np.arange(self.n) if self.assigned is None else self.assigned

    @property
    def arms(self) -> list[str]:
        """Names of the arms, control first."""
        return [str(key_text(each)) for each in self.assignment.arms.to_pylist()]

    def covariate(self, name: str) -> Covariate:
        """A covariate, or the clusters as one.

        Raises:
            InputError: No such column.
        """
        if name == CLUSTER:
            named = tuple(str(key_text(each)) for each in self.assignment.clusters.to_pylist())
            return Covariate(CLUSTER, named, self.cluster)
        for each in self.covariates:
            if each.name == name:
                return each
        raise InputError(
            f"a column {checks.shown(name)}",
            f"one of {', '.join([CLUSTER, *(each.name for each in self.covariates)])}",
            "give it among the covariates, which are public",
        )

    def to_document(self) -> documents.Document:
        """The columns as a JSON object."""
        found = {
            "assignment": self.assignment.to_document(),
            "covariates": [each.to_document() for each in self.covariates],
        }
        if self.assigned is not None:
            found["assigned"] = documents.pack_integers(self.assigned)
        return found

    @classmethod
    def from_document(cls, document: documents.Document) -> Columns:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        assignment = Assignment.from_document(document["assignment"])
        found = cls(
            assignment,
            tuple(
                Covariate(
                    each["name"],
                    tuple(each["values"]),
                    documents.unpack_integers(each["codes"], "codes"),
                )
                for each in document["covariates"]
            ),
            documents.unpack_integers(document["assigned"], "assigned")
            if "assigned" in document
            else None,
        )
        known = assignment.units is None and all(map(found.has, found.covariates))
        if not known or not found.has_groups:
            raise DocumentError(
                "columns that are not those of the units",
                "a document written by shoal",
                "fetch it again, or have it delivered from the ledger",
            )
        return found

    @property
    def has_groups(self) -> bool:
        """Whether assigned groups, if any, are such as may have been."""
        if self.assigned is None:
            return True
        try:
            checked = checked_groups(self.assignment, pa.array(self.assigned))
        except (DataError, InputError):
            return False
        return bool(np.array_equal(checked.unit, self.assigned))

    def has(self, covariate: Covariate) -> bool:
        """Whether a covariate has a value for each unit, each value once, and all are used."""
        values, codes = covariate.values, covariate.codes
        kinds = set(map(type, values))
        return (
            kinds in ({float}, {str})
            and all(low < high for low, high in itertools.pairwise(values))
            and len(codes) == self.n
            and bool(np.array_equal(np.unique(codes), np.arange(len(values))))
        )


def columns_of(
    arm: Any,
    cluster: Any,
    covariates: Mapping[str, Any] | None,
    control: Any,
    assigned: Any = None,
) -> tuple[Columns, NDArray[np.int64]]:
    """Public columns in an order of their own, and the row of the source that each unit is.

    Raises:
        DataError: Columns that are not usable, cells of clusters without an arm, groups of several
            arms or clusters.
        InputError: Names that are taken, an unknown control, or an arm of one unit or group.
    """
    try:
        enrolled = enrol(arm, cluster, control=control)
    except DataError as error:
        if _SINGLE not in error.got:
            raise
        # Other mechanisms leave such clusters out; here columns and outcomes stay as they are.
        todo = "merge such clusters with others, or leave their units out of all columns"
        raise DataError(error.got, error.allowed, todo) from None
    assignment, rows = enrolled.assignment, enrolled.rows
    _check_sizes(assignment)
    given = given_covariates(covariates)
    if len(given) > MOST_COVARIATES:
        raise InputError(
            f"{len(given)} covariates", f"up to {MOST_COVARIATES}", "leave some of them out"
        )
    read = [_covariate(name, values, assignment.n) for name, values in given]
    codes = [each.codes[rows] for each in reversed(read)]
    groups = None if assigned is None else _groups(assignment, assigned, rows)
    if groups is not None:
        codes = [groups, *codes]
    place = np.lexsort((*codes, assignment.group))
    order = rows[place]
    own = tuple(Covariate(each.name, each.values, each.codes[order]) for each in read)
    found = Columns(assignment, own, None if groups is None else groups[place])
    return found, np.asarray(order)


def groups_said(assigned: Any) -> Any:
    """A column of assigned groups, or None where units were assigned one by one.

    Raises:
        InputError: Another text than `units`.
    """
    if not isinstance(assigned, str):
        return assigned
    check_one_by_one(assigned, None)
    return None


def _groups(
    assignment: Assignment,
    assigned: Any,
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The assigned group of each unit, in the order of the assignment."""
    column = key_column(assigned, "assigned")
    if len(column) != assignment.n:
        raise DataError(
            f"groups of {len(column)} rows for {assignment.n} units",
            "one assigned group for each unit",
            "give columns of the same length",
        )
    return checked_groups(assignment, column.take(rows)).unit


def given_covariates(covariates: object) -> list[tuple[str, Any]]:
    """Names and columns, in the order of the names.

    Raises:
        InputError: No mapping, or unusable names.
    """
    found = {} if covariates is None else checks.mapping(covariates, "covariates")
    return [(name, found[name]) for name in sorted(map(_name, found))]


def _check_sizes(assignment: Assignment) -> None:
    if assignment.n > MOST_UNITS:
        raise InputError(
            f"{assignment.n} units", f"up to {MOST_UNITS}", "use a mechanism that releases a table"
        )
    sizes = assignment.sizes.sum(axis=0)
    if int(sizes.min()) < _FEWEST:
        lone = str(assignment.arms[int(sizes.argmin())].as_py())
        raise InputError(
            f"one unit in the arm {checks.shown(lone)}",
            "at least two units in each arm: one tells nothing of how outcomes differ",
            "leave this arm out",
        )


def _name(name: object) -> str:
    if not isinstance(name, str) or not keys.is_name(name) or len(name) > _LONGEST:
        raise InputError(
            f"a covariate named {checks.shown(name)}",
            f"printable names of up to {_LONGEST} characters",
            "rename it",
        )
    if name in _RESERVED or " + " in name:
        raise InputError(
            f"a covariate named {checks.shown(name)}",
            f"another name than {', '.join(_RESERVED)}, without ' + '",
            "rename it",
        )
    return name


def _covariate(name: str, values: Any, units: int) -> Covariate:
    """A column of numbers, booleans or texts, one for each unit."""
    numbers = _numbers(values)
    if numbers is None:
        texts = keys.as_array(values, name)
        if not pa.types.is_string(texts.type):
            raise DataError(
                f"a covariate {name!r} of type {texts.type}",
                "numbers, booleans or texts",
                "convert it, for example dates to days",
            )
        distinct, codes = keys.ranked(texts, name)
        found = Covariate(name, tuple(distinct.to_pylist()), codes)
    else:
        if not (np.isfinite(numbers) & (np.abs(numbers) <= _LARGEST)).all():
            raise DataError(
                f"a covariate {name!r} with missing, infinite or huge numbers",
                f"a number of up to {_LARGEST:g} for each unit",
                "covariates are public: fill what is missing with a public value",
            )
        if 0 < np.abs(numbers).max(initial=0.0) < _SMALLEST:
            raise DataError(
                f"a covariate {name!r} of numbers near 0, all below {_SMALLEST:g}",
                "numbers whose squares are numbers",
                "give it in a smaller unit",
            )
        # Zero has one sign: the same column is the same question.
        levels, place = np.unique(numbers + 0.0, return_inverse=True)
        found = Covariate(name, tuple(levels.tolist()), place.astype(np.int64))
    if len(found.codes) != units:
        raise DataError(
            f"a covariate {name!r} of {len(found.codes)} rows for {units} units",
            "one number or text for each unit",
            "give columns of the same length",
        )
    if len(found.values) < _FEWEST:
        raise InputError(
            f"a covariate {name!r} that is the same for all units",
            "covariates that differ between units",
            "leave it out",
        )
    return found


def _numbers(values: Any) -> NDArray[np.float64] | None:
    """Numbers in floating point, or None for what is something else."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            return floats(values)
        except Exception:
            return None
    found = private_numbers(values)
    return found if found is not None and found.ndim == 1 else None
