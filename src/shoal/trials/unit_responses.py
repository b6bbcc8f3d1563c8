"""What releases of units' responses share: codes, moments, columns, and numbers that fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.data.assignment import Assignment
from shoal.errors import DocumentError
from shoal.trials.response import tabulate

if TYPE_CHECKING:
    import pyarrow as pa


def codes_of(counts: NDArray[np.int64], given: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Response of each unit; rising within a group if units have no names: the order says nothing.

    Args:
        counts: Units with each response, clusters x arms x responses.
        given: Response of each named unit, or None.

    Example:
        >>> codes_of(np.array([[[1, 2], [0, 1]]]), None).tolist()
        [0, 1, 1, 1]
    """
    if given is not None:
        return given
    groups, responses = math.prod(counts.shape[:2]), counts.shape[2]
    return np.repeat(np.tile(np.arange(responses), groups), counts.ravel())


def moments_of(
    counts: NDArray[np.int64], above: NDArray[np.float64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance (divisor d - 1, NaN for one unit) of what the units of a group say.

    Args:
        counts: Units with each response, clusters x arms x responses.
        above: What each response says above the lowest level, of a shape that spreads to that.
        sizes: Units, clusters x arms.

    Returns:
        Clusters x arms each.
    """
    mean = (counts * above).sum(axis=2) / sizes
    squares = (counts * (above - mean[:, :, None]) ** 2).sum(axis=2)
    spread = np.full(sizes.shape, np.nan)
    np.divide(squares, sizes - 1, out=spread, where=sizes > 1)
    return mean, spread


def columns_of(assignment: Assignment) -> dict[str, pa.Array[Any]]:
    """Columns of a table of units that are public beforehand: cluster, arm, unit if named."""
    arms = assignment.sizes.shape[1]
    found = {
        "cluster": assignment.clusters.take(assignment.group // arms),
        "arm": assignment.arms.take(assignment.group % arms),
    }
    return found if assignment.units is None else {**found, "unit": assignment.units}


def counts_agree(
    assignment: Assignment, counts: NDArray[np.int64], given: NDArray[np.int64] | None
) -> bool:
    """Whether counts add up to the groups, and are those of the named units' responses.

    Args:
        assignment: The groups.
        counts: Units with each response, clusters x arms x responses.
        given: Response of each named unit, or None.
    """
    sizes, responses = assignment.sizes, counts.shape[2]
    if (given is None) != (assignment.units is None):
        return False
    # Sums of absurd numbers wrap: what is above the largest allowed is refused before.
    if int(counts.max()) > int(sizes.max()) or not np.array_equal(counts.sum(axis=2), sizes):
        return False
    return given is None or (
        int(given.max()) < responses
        and np.array_equal(
            tabulate(given, assignment.group, sizes.size, responses), counts.reshape(-1, responses)
        )
    )


def unpacked(document: documents.Document, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Packed integers of a shape; others are not even inflated.

    Raises:
        DocumentError: They are of another shape, or damaged.
    """
    if document[name]["length"] != math.prod(shape):
        raise damaged()
    return documents.unpack_integers(document[name], name).reshape(shape)


def damaged() -> DocumentError:
    """The error for a document whose parts do not fit each other."""
    return DocumentError(
        "responses or parameters that do not fit the groups",
        "a document written by shoal",
        "fetch it again, or have it delivered from the ledger",
    )
