"""How many records exact whole numbers hold: more are refused before anything is planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cells.contributions.design import FINE
from shoal.cells.contributions.parts_of_weights import PART, PartsOfWeights
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice

# Means and mean squares of weighed users are kept finely enough from here on.
FEWEST_BITS = 20


def check_counts(occupancy: Counts, lattice: Lattice) -> None:
    """Refuse counts with which sums of ticks, or keys of memberships, would not fit 64 bits.

    Raises:
        InputError: A user has too many records in one cell.
    """
    most = int(occupancy.count.max())
    if most << (lattice.bits + FINE + 1) >= 2**63 or (most + 1) * occupancy.n_cells >= 2**62:
        raise InputError(
            f"{most:,} records of one user in one cell",
            f"fewer than 2^{62 - lattice.bits - FINE} at {lattice.bits} tick bits",
            "use fewer tick bits or smaller cells",
        )


def check_weights(request: Request, occupancy: Counts, lattice: Lattice) -> None:
    """Refuse what methods that weigh users cannot do exactly.

    Raises:
        InputError: Fewer than 20 tick bits with a variance, where rounding would pass its margins;
            or counts whose parts do not fit 64 bits.
    """
    most, bits = int(occupancy.count.max()), 62 - lattice.bits - PART
    large = most >= 1 << bits or int(occupancy.totals.max()) >= 1 << (62 - PART)
    rule = request.parts.contributions
    if isinstance(rule, PartsOfWeights) and large:
        raise InputError(
            f"{most:,} records of one user, or {int(occupancy.totals.max()):,}, in one cell",
            f"fewer than 2^{bits} and 2^{62 - PART} with parts of weights",
            "use fewer tick bits, smaller cells or another method",
        )
    weighs = rule.together and any(each.power > 1 for each in request.statistics)
    if weighs and lattice.bits < FEWEST_BITS:
        raise InputError(
            f"a variance with the method {request.method} and {lattice.bits} tick bits",
            f"at least {FEWEST_BITS} tick bits",
            f"give tick_bits={FEWEST_BITS}",
        )
