"""Who is in which cluster and arm: the public side of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import checks, documents
from shoal.data import keys
from shoal.errors import DataError, DocumentError, InputError

_FEWEST_ARMS, _MOST_ARMS = 2, 64
_MOST_NUMBER = 2**63 - 1
# More units than any memory holds: sums of sizes stay within 64 bits.
_MOST_UNITS = 2**48
# docs/explanation/trials.md#whole-clusters-in-one-arm
_WHOLE_CLUSTERS = (
    "if whole clusters were assigned to arms, they are no clusters but assigned groups: release a "
    "table of units (best_table or uniform_prior) with names of units and without these clusters, "
    "then give the groups to the estimate: trial.estimate(assigned=clusters, unit=names), or shoal "
    "trial estimate --groups FILE --unit NAME --assigned CLUSTER; or ask questions that are known "
    "beforehand with Questions(assigned=clusters), shoal trial ask --assigned CLUSTER"
)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Units in groups of one cluster and one arm. All of it is public.

    Attributes:
        clusters: The clusters' keys, sorted.
        arms: The arms' keys, control first, then sorted.
        sizes: Units in each group, clusters x arms, all above 0.
        units: A public name of every unit in the order of this object, or None.
    """

    clusters: pa.Array[Any]
    arms: pa.Array[Any]
    sizes: NDArray[np.int64]
    units: pa.Array[Any] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Units."""
        return int(self.sizes.sum())

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of each unit, cluster x arms + arm, in the order of this object: rising."""
        return np.repeat(np.arange(self.sizes.size), self.sizes.ravel())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all of it."""
        return documents.digest(self.to_document())

    def to_document(self) -> documents.Document:
        """The assignment as a JSON object."""
        return dict(self._document)

    @cached_property
    def _document(self) -> documents.Document:
        return {
            "clusters": keys.to_document(pa.table({"cluster": self.clusters})),
            "arms": keys.to_document(pa.table({"arm": self.arms})),
            "sizes": documents.pack_integers(self.sizes.ravel()),
            "units": None if self.units is None else _names(self.units),
        }

    @classmethod
    def from_document(cls, document: documents.Document) -> Assignment:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        clusters = keys.from_document(document["clusters"]).column("cluster").combine_chunks()
        arms = keys.from_document(document["arms"]).column("arm").combine_chunks()
        groups = len(clusters) * len(arms)
        sizes = documents.unpack_integers(document["sizes"], "sizes")
        named = None if document["units"] is None else _named(document["units"])
        units = sum(sizes.tolist())
        whole = len(sizes) == groups > 0 and int(sizes.min()) > 0 and units <= _MOST_UNITS
        if not whole or (named is not None and len(named) != units):
            raise DocumentError(
                "an assignment whose sizes are not those of its groups",
                "a document written by shoal",
                "fetch it again, or have it delivered from the ledger",
            )
        return cls(clusters, arms, sizes.reshape(len(clusters), len(arms)).astype(np.int64), named)


def _names(units: pa.Array[Any]) -> documents.Document:
    """Names of units as a JSON object: whole numbers from 0 are packed, others listed."""
    if pa.types.is_integer(units.type):
        numbers = units.to_numpy(zero_copy_only=False)
        # Packed numbers come back as signed ones.
        if len(numbers) and int(numbers.min()) >= 0 and int(numbers.max()) <= _MOST_NUMBER:
            return {"type": str(units.type), "numbers": documents.pack_integers(numbers)}
    return keys.to_document(pa.table({"unit": units}))


def _named(document: documents.Document) -> pa.Array[Any]:
    if "numbers" not in document:
        return keys.from_document(document).column("unit").combine_chunks()
    numbers = documents.unpack_integers(document["numbers"], "units")
    named: Any = pa
    found: pa.Array[Any] = pa.array(numbers, type=named.type_for_alias(document["type"]))
    return found


@dataclass(frozen=True, eq=False)
class Enrolment:
    """An assignment, and the rows of the source that its units are.

    Attributes:
        assignment: The public side.
        rows: Position in the source of every unit, in the assignment's order.
        left_out: Clusters that were dropped because an arm had nobody.
    """

    assignment: Assignment
    rows: NDArray[np.int64] = field(repr=False)
    left_out: int = 0


def enrol(
    treatment: Any,
    cluster: Any = None,
    *,
    unit: Any = None,
    control: Any = None,
    single_arm: str = "refuse",
    kept: NDArray[np.bool_] | None = None,
) -> Enrolment:
    """Group units by cluster and arm, from public columns alone.

    Args:
        treatment: The arm of every unit: whole numbers, booleans or texts.
        cluster: The cluster of every unit; None for one cluster.
        unit: A public name of every unit, different from all others. Without it the order of rows
            is not kept: it could follow the outcomes.
        control: The arm that others are compared with; the first when sorted unless given.
        single_arm: What to do with clusters where an arm has nobody: `refuse`, or `drop`, which
            changes what is estimated to the effect in the clusters that are left.
        kept: Rows that count; the others are left out.

    Raises:
        DataError: Unusable columns, fewer than two arms, or clusters without all arms.
        InputError: An unknown control or rule.

    Example:
        >>> found = enrol([0, 1, 1, 0], ["b", "b", "a", "a"])
        >>> found.assignment.sizes.tolist(), found.rows.tolist()
        ([[1, 1], [1, 1]], [3, 2, 0, 1])
    """
    checks.choice(single_arm, ("refuse", "drop"), "single_arm")
    arms = key_column(treatment, "treatment")
    clusters = pa.array(["all"] * len(arms)) if cluster is None else key_column(cluster, "cluster")
    names = None if unit is None else key_column(unit, "unit")
    _check_lengths(arms, clusters, names)
    rows = np.arange(len(arms)) if kept is None else np.flatnonzero(kept)
    arm_keys, arm = keys.ranked(arms.take(rows), "treatment")
    cluster_keys, home = keys.ranked(clusters.take(rows), "cluster")
    arm_keys, arm = _control_first(arm_keys, arm, control)
    sizes = np.bincount(home * len(arm_keys) + arm, minlength=len(cluster_keys) * len(arm_keys))
    sizes = sizes.reshape(len(cluster_keys), len(arm_keys)).astype(np.int64)
    whole: NDArray[np.bool_] = np.asarray((sizes > 0).all(axis=1))
    _check_whole(whole, sizes, single_arm)
    chosen = whole[home]
    group = (np.cumsum(whole) - 1)[home] * len(arm_keys) + arm
    order = _order(group, names, rows, chosen)
    assignment = Assignment(
        cluster_keys.take(np.flatnonzero(whole)),
        arm_keys,
        sizes[whole],
        None if names is None else names.take(rows[order]),
    )
    return Enrolment(assignment, rows[order], int((~whole).sum()))


def _order(
    group: NDArray[np.int64],
    names: pa.Array[Any] | None,
    rows: NDArray[np.int64],
    chosen: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Units by group, then by name; without names in the order of rows."""
    found = np.flatnonzero(chosen)
    if names is not None:
        found = found[_rising(names.take(rows[found]))]
    return np.asarray(found[np.argsort(group[found], kind="stable")])


def key_column(values: object, name: str) -> pa.Array[Any]:
    """Keys of a column; whole numbers of any width are the same keys.

    Raises:
        DataError: No such keys.
    """
    array = keys.as_array(values, name)
    if not pa.types.is_integer(array.type) or pa.types.is_uint64(array.type):
        return array
    return array.cast(pa.int64())


def _rising(names: pa.Array[Any]) -> NDArray[np.int64]:
    """The order in which names rise, if no two are alike."""
    if pa.types.is_integer(names.type):
        numbers = names.to_numpy(zero_copy_only=False)
        order = np.argsort(numbers, kind="stable")
        double = bool((np.diff(numbers[order]) == 0).any())
    else:
        order = pc.sort_indices(names).to_numpy().astype(np.int64)
        double = pc.count_distinct(names).as_py() != len(names)
    if double:
        raise DataError(
            "a unit that is named twice",
            "one row and one name for each unit",
            "give each unit one outcome, or leave the names out",
        )
    return order


def _control_first(
    found: pa.Array[Any],
    arm: NDArray[np.int64],
    control: Any,
) -> tuple[pa.Array[Any], NDArray[np.int64]]:
    if not _FEWEST_ARMS <= len(found) <= _MOST_ARMS:
        raise DataError(
            f"{len(found)} arms",
            f"{_FEWEST_ARMS} to {_MOST_ARMS}",
            "name the column that holds the treatment",
        )
    values = found.to_pylist()
    if control is None:
        return found, arm
    if not isinstance(control, str | int | date | np.generic):
        raise InputError(
            f"a control arm of type {type(control).__name__}",
            "one arm: a text, whole number, boolean or date",
            "name an arm of the treatment column",
        )
    if control not in values:
        raise InputError(
            f"a control arm {checks.shown(control)}",
            f"one of {', '.join(str(value) for value in values[:10])}",
            "name an arm of the treatment column",
        )
    at = values.index(control)
    order = np.r_[at, np.delete(np.arange(len(values)), at)]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return found.take(order), place[arm]


def _check_lengths(
    arms: pa.Array[Any], clusters: pa.Array[Any], names: pa.Array[Any] | None
) -> None:
    lengths = {len(arms), len(clusters), len(arms) if names is None else len(names)}
    if len(lengths) != 1 or len(arms) == 0:
        raise DataError(
            f"columns of {' and '.join(str(n) for n in sorted(lengths))} rows",
            "the same number of rows in each, at least one",
            "give one treatment and one cluster for each unit",
        )


def _check_whole(whole: NDArray[np.bool_], sizes: NDArray[np.int64], single_arm: str) -> None:
    lacking = int((~whole).sum())
    if len(sizes) > 1 and ((sizes > 0).sum(axis=1) == 1).all():
        raise DataError(
            f"{len(sizes)} clusters, each of which has one arm",
            "units of every arm in a cluster, within which units or groups were assigned",
            _WHOLE_CLUSTERS,
        )
    if lacking and single_arm == "refuse":
        raise DataError(
            f"{lacking} of {len(whole)} clusters where an arm has nobody",
            "units of every arm in every cluster",
            'if units were assigned one by one, give single_arm="drop" (--single-arm drop) to '
            f"leave such clusters out; {_WHOLE_CLUSTERS}",
        )
    if not whole.any():
        raise DataError(
            "no cluster with units of every arm",
            "units of every arm in a cluster",
            f"if units were assigned one by one within larger clusters, give these; "
            f"{_WHOLE_CLUSTERS}",
        )
