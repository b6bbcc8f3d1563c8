"""One call from records to a release, for analysts who need no plan of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from shoal.cells.plan import plan
from shoal.cells.release import Release
from shoal.data.cell_rules import Rule
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds
from shoal.privacy.budget import Amount
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated


def mean_by(
    data: object,
    *,
    user: str,
    value: str,
    bounds: Bounds | tuple[float, float],
    by: str | Rule | Sequence[str | Rule] | None = None,
    epsilon: Amount,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    name: str = "",
    missing: str = "refuse",
    noise: Simulated | None = None,
    **more: Any,
) -> Release:
    """Plan means of cells, print the plan, and release them: `Records`, `plan` and `Plan.release`.

    Args:
        data: A path, a pattern of files, or a table, as in `shoal.Records`.
        user: Column that says whose record it is.
        value: Column to be averaged.
        bounds: Public range of the value, in its unit.
        by: Columns or cell rules; without them all records are one cell.
        epsilon: Largest total privacy loss of any user.
        ledger: The data set's ledger, or its path; without one only simulated noise is allowed.
        name: What the release is of, such as a period; another name draws, and costs, again.
        missing: Rows without user, cell or value: `refuse` them, or drop them as `public`.
        noise: `shoal.Simulated(seed)` to try it out: marked and not private.
        **more: Other arguments of `shoal.plan`, such as `objective`, `max_error` or `min_users`.

    Returns:
        The release: print it, or take `to_pandas()`.

    Raises:
        ShoalError: As `Records`, `plan` and `Plan.release`; nothing was charged then.

    Guarantees: G-LOSS, G-LEDGER, G-REFUSE.

    Example:
        >>> import pyarrow as pa, shoal
        >>> trips = pa.table({"bus": [*range(400)], "line": [1, 2] * 200, "speed": [30.0] * 400})
        >>> means = shoal.mean_by(
        ...     trips, user="bus", value="speed", bounds=(0, 65), by="line", epsilon=5,
        ...     noise=shoal.Simulated(1),
        ... )  # doctest: +ELLIPSIS
        2 of 2 cells released with epsilon 5 per user, ...
        >>> means.to_pandas()["value"].round().tolist()
        [30.0, 30.0]
    """
    records = Records(data, user=user, value=value, bounds=bounds, by=by, missing=missing)
    planned = plan(records, epsilon=epsilon, **more)
    print(planned)
    return planned.release(records, ledger=ledger, name=name, noise=noise)
