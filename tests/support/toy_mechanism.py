"""A mean mechanism in one file: a user counts for the root of its records."""

import numpy as np

from shoal.arrays import Floats, Ints, largest
from shoal.cells.mechanisms.methods import Method, Row
from shoal.cells.mechanisms.weights import Limit, Parameters, Weights, linear, members
from shoal.data.counts import Counts
from shoal.verification.recount.cells_loss import Counted
from shoal.verification.recount.reading import Release


def _roots(counts: Counts, member: Ints) -> Ints:
    """Returns the root of each member's records, rounded down."""
    return np.floor(np.sqrt(counts.count[member])).astype(np.int64)


def _caps(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns the largest root in each cell, which caps nobody."""
    member, cell = members(counts, cells)
    return {"root": largest(cell, _roots(counts, member), len(cells))}


def _weigh(counts: Counts, cells: Ints, root: Ints) -> Weights:
    """Returns the root of each member's records, at most the cap of its cell."""
    member, cell = members(counts, cells)
    return linear(counts, cells, np.minimum(_roots(counts, member), root[cell]))


TOY = Row(lambda _: Method("", "by cell", _weigh, _caps, {"root": Limit("cells", 1, "records")}))


def recounted(cells: Release) -> Counted:
    """Returns the root of every membership's records, rounded down."""
    root = np.array([int(each**0.5) for each in cells.count.tolist()])
    return Counted(root, root, root)
